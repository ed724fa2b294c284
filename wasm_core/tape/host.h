/* What the engine asks of its host: one import, and ids of host objects to let go of. */
#ifndef PG_HOST_H
#define PG_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "tape/graph.h"

typedef enum {
  HOST_HOOK, /* tensor hook: one gradient in, a replacement or none out */
  /* after accumulation: the leaf in, what the hook returned out, which must be nothing or that
   * leaf */
  HOST_POST_HOOK,
  HOST_NODE_PRE_HOOK, /* gradients of the outputs in; none, or any word and all replacements out */
  /* Gradients of the inputs, 256 times their number added to the kind, then those of the outputs
   * in; the first replaced so or not. */
  HOST_NODE_HOOK,
  HOST_FUNCTION,
  HOST_PACK,   /* a tensor in, the id of what was made of it out */
  HOST_UNPACK, /* nothing in, a tensor out; the id is that of what was packed */
  /* see multi_hooks.c: gradients of several tensors in; 256 is added to the kind for the first
   * of them alone */
  HOST_SEVERAL,
  HOST_APPLY, /* any function: see host_apply; tensors in, the number of results out */
  /* tells the watcher of a walk, 256 times one of these added to the kind: see host_watcher */
  HOST_WALK,
  HOST_TRACE = 32,
  HOST_REPORT,
  HOST_LINE,
  HOST_NAME, /* of a hook: see host_name */
  /* the results of the function that was applied last, which the host then forgets */
  HOST_RETURNED,
  HOST_CLOCK = 100 /* the event that begins, or -1: nanoseconds out */
} HostCall;

/* Calls the host's object `id` with n tensors; up to cap results come back in out (owned by the
 * pool, NULL: none), their number in *n_out. False with ERR_HOST set if the host raised. */
bool host_call(HostCall kind, int32_t id, int n, Tensor *const *in, int cap, Tensor **out,
               int *n_out);
/* Calls a custom function, for at most cap words: those of custom_given. */
bool host_function(int32_t id, int n, Tensor *const *in, int cap, int64_t *words, int *n_out);
/* the type of what was returned and is no tensor, which the host tells */
const char *host_told(void);
/* A hook of a node: n_replaced tensors that it may replace, all or none, then n_more to look at.
 * What it puts in their place comes back in `out`, which holds n_replaced. */
bool host_node_hook(HostCall kind, int32_t id, int n_replaced, Tensor *const *in, int n_more,
                    Tensor *const *more, Tensor **out, bool *replaced);
/* Calls the host's function `id` with n tensors (NULL: none there), which may return any number
 * of them: *out, NULL where there is none, which the pool owns. What else the function takes and
 * returns is the affair of the host, which puts the tensors among it. False with ERR_HOST set if
 * it raised. */
bool host_apply(int32_t id, int n, Tensor *const *in, int *n_out, Tensor ***out);
/* Calls the pack hook of a pair; the id of what it returned together with the unpack hook, and
 * back. */
int32_t host_pack(int32_t hooks, Tensor *t);
Tensor *host_unpack(int32_t packed);
/* Sets the engine's variables by the modes of the calling thread (PG_MODE_ bits of the frame). */
void modes_enter(int32_t modes);
bool host_grad_enabled(void);
int32_t host_thread(void); /* the number of the thread that calls */
/* The host's id for the place that its program is at, until host_drop; 0 with ERR_HOST set if
 * the host raised. */
int32_t host_trace(void);
/* Whether walks back are told to a function of the host, of words: (WALK_BEGINS) how many roots
 * and inputs there are, whether the graph is retained, is made, and leaves accumulate, and how
 * many rows there are, then the roots, their gradients, and the inputs, 0 where there is none;
 * (WALK_FOUND) what was found for the inputs, if that is returned; (WALK_ENDS) whether it
 * failed. */
enum { WALK_BEGINS, WALK_FOUND, WALK_ENDS };
extern int32_t host_watcher; /* its id, 0: none */
void host_walk_begins(const GraphWalk *w);
void host_walk_found(int n, Tensor *const *found);
void host_walk_ends(bool thrown);
/* Warns of a failure with this heading, and the lines of the trace, or 0, below it. */
void host_report(int32_t trace, const char *heading);
/* The last line of a trace, or "" (also of 0); it lies in the frame's data, so only once all
 * there was read. */
const char *host_line(int32_t trace);
/* What a hook is called, in the same place. */
const char *host_name(int32_t hook);
/* The host's clock in nanoseconds; a profile's event that begins, or -1, for hosts that note
 * more about it. */
int64_t host_clock(int32_t event);
/* The host's object is not needed any more; told to the host after the crossing. */
void host_drop(int32_t id);

/* For the host: it keeps its lock over a backward as long as the last one was. */
void host_note_work(int64_t work);
void host_note_levels(int32_t n); /* of forward mode, that are entered */

#endif

/* What the engine asks of its host: one import, and ids of host objects to let go of. */
#ifndef PG_HOST_H
#define PG_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/tensor.h"

/* What the engine asks of a callback: X(NAME, name, number). Hosts read the numbers by name:
 * host_hook. */
/* clang-format off */
#define HOST_CALLS(X)                                                                              \
  X(HOOK, hook, 0) /* tensor hook: one gradient in, a replacement or none out */                   \
  /* after accumulation: the leaf in; what the hook returned out: nothing, or that leaf */         \
  X(POST_HOOK, post_hook, 1)                                                                       \
  /* gradients of the outputs in; none, or any word and all replacements out */                    \
  X(NODE_PRE_HOOK, node_pre_hook, 2)                                                               \
  /* gradients of the inputs, 256 times their number added to the kind, then those of the outputs  \
   * in; the first replaced so or not */                                                           \
  X(NODE_HOOK, node_hook, 3)                                                                       \
  X(FUNCTION, function, 4)                                                                         \
  X(PACK, pack, 5)     /* a tensor in, the id of what was made of it out */                        \
  X(UNPACK, unpack, 6) /* nothing in, a tensor out; the id is that of what was packed */           \
  /* see multi_hooks.c: gradients of several tensors in; 256 is added for the first alone */       \
  X(SEVERAL, several, 7)                                                                           \
  X(APPLY, apply, 8) /* any function: see host_apply; tensors in, the number of results out */     \
  /* tells the watcher of a walk, 256 times one of these added: see walk/watch.h */                \
  X(WALK, walk, 9)                                                                                 \
  /* asks for an op: see ops/dispatch.c */                                                         \
  X(DISPATCH, dispatch, 10)                                                                        \
  X(TRACE, trace, 32)                                                                              \
  X(REPORT, report, 33)                                                                            \
  X(LINE, line, 34)                                                                                \
  X(NAME, name, 35) /* of a hook: see host_name */                                                 \
  /* the results of the function that was applied last, which the host then forgets */             \
  X(RETURNED, returned, 36)                                                                        \
  X(CLOCK, clock, 100) /* the event that begins, or -1: nanoseconds out */
/* clang-format on */
typedef enum {
#define X(NAME, name, number) HOST_##NAME = number,
  HOST_CALLS(X)
#undef X
} HostCall;

/* How the host is reached, and what stands between it and the engine: set by the boundary before
 * the first call. */
typedef struct {
  /* Runs a callback on n words, for at most cap words: how many came, -1 if it raised. The lists
   * stand wherever there is room, one perhaps where the other does. */
  int32_t (*enter)(int32_t kind, int32_t id, int n, const int64_t *in, int cap, int64_t *out);
  void (*drop)(int32_t id); /* see host_drop */
  bool (*allows_forward)(void);
  char *data; /* a text of the host's, of at most so many bytes */
  int32_t data_bytes;
  const int32_t *thread, *most_nested;
  int32_t *work, *dual_levels;
} HostPort;
extern HostPort host_port;

/* Hooks on several tensors have ids below 0, which are the engine's own: set by multi_hooks.c,
 * which gives them out. */
typedef struct {
  Tensor *(*run)(int32_t id, Tensor *g);
  void (*drop)(int32_t id);
} SeveralHooks;
extern const SeveralHooks *several_hooks;

/* The n tensors that a callback gave as words, which the pool owns from now on. */
bool host_take_in(int n, const int64_t *words, Tensor **out);
/* Gives the host a reference of its own to each tensor, as a word. */
void host_hand_out(int n, Tensor *const *in, int64_t *words);
/* Calls the host with n words, for at most cap; false with the error set if it raised. */
bool host_words(int32_t kind, int32_t id, int n, const int64_t *in, int cap, int64_t *out,
                int *n_out);
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
int32_t host_thread(void); /* the number of the thread that calls */
/* The host's id for the place that its program is at, until host_drop; 0 with ERR_HOST set if
 * the host raised. */
int32_t host_trace(void);
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

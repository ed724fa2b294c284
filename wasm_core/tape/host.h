/* The engine's calls to its host: one import, and ids of host objects to drop. */
#ifndef PG_HOST_H
#define PG_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/tensor.h"

/* Kinds of callbacks: X(NAME, name, number). Hosts read the numbers by name: host_hook. */
/* clang-format off */
#define HOST_CALLS(X)                                                                              \
  X(HOOK, hook, 0) /* tensor hook: one gradient in, a replacement or none out */                   \
  /* after accumulation: the leaf in; none or that leaf out */                                     \
  X(POST_HOOK, post_hook, 1)                                                                       \
  /* gradients of the outputs in; no words, or any word and all replacements out */                \
  X(NODE_PRE_HOOK, node_pre_hook, 2)                                                               \
  /* gradients of the inputs, then of the outputs in; 256 times the number of inputs is added to   \
   * the kind; out as NODE_PRE_HOOK, replacements of the former */                                 \
  X(NODE_HOOK, node_hook, 3)                                                                       \
  X(FUNCTION, function, 4)                                                                         \
  X(PACK, pack, 5)     /* a tensor in, the id of the packed object out */                          \
  X(UNPACK, unpack, 6) /* nothing in, a tensor out; the id is the packed object's */               \
  /* see multi_hooks.c: gradients of several tensors in; 256 is added in mode "any" */             \
  X(SEVERAL, several, 7)                                                                           \
  X(APPLY, apply, 8) /* any function: see host_apply; tensors in, the number of results out */     \
  /* tells the watcher about a walk; 256 times the event is added: see walk/watch.h */             \
  X(WALK, walk, 9)                                                                                 \
  /* asks for an op's answer: see ops/dispatch.c */                                                \
  X(DISPATCH, dispatch, 10)                                                                        \
  X(TRACE, trace, 32)                                                                              \
  X(REPORT, report, 33)                                                                            \
  X(LINE, line, 34)                                                                                \
  X(NAME, name, 35) /* the name of a hook: see host_name */                                        \
  /* the results of the last APPLY, which the host then forgets */                                 \
  X(RETURNED, returned, 36)                                                                        \
  X(POLL, poll, 37) /* asks whether a long call goes on: see ground/poll.h */ \
  X(CLOCK, clock, 100) /* the event that begins, or -1: nanoseconds out */
/* clang-format on */
typedef enum {
#define X(NAME, name, number) HOST_##NAME = number,
  HOST_CALLS(X)
#undef X
} HostCall;

/* The way to the host, and the memory shared with it: set by the boundary before the first call. */
typedef struct {
  /* Runs a callback on n words, for at most cap result words; returns their number, -1 if it
   * raised. `in` and `out` may be the same memory. */
  int32_t (*enter)(int32_t kind, int32_t id, int n, const int64_t *in, int cap, int64_t *out);
  void (*drop)(int32_t id); /* see host_drop */
  bool (*allows_forward)(void);
  char *data; /* the host's text, at most data_bytes long */
  int32_t data_bytes;
  const int32_t *thread, *most_nested;
  int32_t *work, *dual_levels;
} HostPort;
extern HostPort host_port;

/* Functions for hooks on several tensors, whose ids are below 0 and are assigned by
 * multi_hooks.c. */
typedef struct {
  Tensor *(*run)(int32_t id, Tensor *g);
  void (*drop)(int32_t id);
} SeveralHooks;
extern const SeveralHooks *several_hooks;

/* Converts n words of a callback to tensors, which the pool then owns. */
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
/* Calls a custom function, for at most cap words, which custom_given reads. */
bool host_function(int32_t id, int n, Tensor *const *in, int cap, int64_t *words, int *n_out);
/* the host's name for the type of a result that is no tensor */
const char *host_told(void);
/* Calls a node's hook with n_replaced tensors that it may replace, all or none, and n_more that it
 * only reads. The replacements come back in `out`, which holds n_replaced. */
bool host_node_hook(HostCall kind, int32_t id, int n_replaced, Tensor *const *in, int n_more,
                    Tensor *const *more, Tensor **out, bool *replaced);
/* Calls the host's function `id` with n tensors (NULL: absent). *out gets its *n_out results (NULL:
 * absent), owned by the pool. The host handles the arguments and results that are no tensors. False
 * with ERR_HOST set if it raised. */
bool host_apply(int32_t id, int n, Tensor *const *in, int *n_out, Tensor ***out);
/* Calls the pack hook of a pair and returns an id for its result and the unpack hook; host_unpack
 * takes that id. */
int32_t host_pack(int32_t hooks, Tensor *t);
Tensor *host_unpack(int32_t packed);
int32_t host_thread(void); /* the number of the thread that calls */
/* The host's id for its program's present place, valid until host_drop; 0 with ERR_HOST set if the
 * host raised. */
int32_t host_trace(void);
/* Warns of a failure with this heading and the lines of the trace (0: none) below it. */
void host_report(int32_t trace, const char *heading);
/* The last line of a trace, "" if there is none or the trace is 0. Overwrites the frame's data. */
const char *host_line(int32_t trace);
/* The name of a hook. Overwrites the frame's data. */
const char *host_name(int32_t hook);
/* The host's clock in nanoseconds. `event` is the profile's event that begins, or -1, for hosts
 * that note more about it. */
int64_t host_clock(int32_t event);
/* Drops the host's object; the host is told after the crossing. */
void host_drop(int32_t id);

/* Tells the host the work of a backward, by which it decides whether to keep its lock during the
 * next one. */
void host_note_work(int64_t work);
void host_note_levels(int32_t n); /* the number of entered levels of forward mode */

#endif

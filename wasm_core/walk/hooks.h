/* What runs at a node beside its function, for the walk back (walk.c): hooks of the host, and
 * the accumulation of gradients into leaves. */
#ifndef PG_HOOKS_H
#define PG_HOOKS_H

#include "tape/graph.h"

typedef struct {
  int32_t id, slot;
} Due;

/* The hooks at a point, listed before the first runs, since hooks add and remove hooks: those on
 * the list run all the same. */
int due_hooks(const Node *n, HookPoint point, Due **due);
/* The list, of which n were due, has run or failed; false if it failed. */
bool hooks_done(int n_due);
/* The user has removed a hook: host_drop, as soon as no list of hooks runs. */
void hook_drop(int32_t id);
bool has_hooks(const Node *n, HookPoint point);
/* Registers a hook on a tensor's gradient, or after its accumulation; false with PyTorch's
 * error. */
bool tensor_hook_add(Tensor *t, int32_t id, bool post);
/* Adds to the end of such a list; takes from it, and tells the host. */
bool leaf_hook_add(Hook **list, int32_t id);
bool leaf_hook_remove(Hook **list, int32_t id);
bool node_remove_hook(Node *n, int32_t id);
/* The gradient that a tensor's hook leaves; NULL for none, or with the error set. */
Tensor *run_hook(int32_t id, Tensor *g);
Tensor *run_leaf_hooks(const Tensor *leaf, Tensor *g);
/* Hooks that see all of v, which they may replace, and all of `more`. What v holds is the
 * pool's. */
bool run_node_hooks(Node *n, HookPoint point, int n_v, Tensor **v, int n_more, Tensor *const *more);
/* Pre-hooks see the gradients that `grads` owns. */
bool run_prehooks(Node *n, int n_grads, Tensor **grads);
/* Hooks of a leaf, its new gradient, which is `held` by the caller, and the hooks after it. */
bool run_accumulator(Node *n, Tensor *held);
/* retain_grad: a later backward adds to what an earlier one left. */
bool retain_into(Tensor *t, Tensor *g);

/* Of a hook on one of several tensors (multi_hooks.c), whose id is below 0: the id of its host's
 * function, and 2^32 times how many hold that */
int64_t several_share(int32_t hook);

#endif

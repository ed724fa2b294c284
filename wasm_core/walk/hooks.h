/* The host's hooks at nodes, and the accumulation of gradients into leaves, for walk.c. */
#ifndef PG_HOOKS_H
#define PG_HOOKS_H

#include "tape/graph.h"

typedef struct {
  int32_t id, slot;
} Due;

/* Lists the hooks at a point before the first runs, because hooks add and remove hooks: all on the
 * list run. */
int due_hooks(const Node *n, HookPoint point, Due **due);
/* Ends a list of n_due hooks; false if one failed. */
bool hooks_done(int n_due);
/* Drops a removed hook, as soon as no list of hooks runs. */
void hook_drop(int32_t id);
bool has_hooks(const Node *n, HookPoint point);
/* Registers a hook on a tensor's gradient, or after its accumulation; false with PyTorch's
 * error. */
bool tensor_hook_add(Tensor *t, int32_t id, bool post);
/* leaf_hook_add appends to a list; leaf_hook_remove removes from it and drops the host's
 * function. */
bool leaf_hook_add(Hook **list, int32_t id);
bool leaf_hook_remove(Hook **list, int32_t id);
bool node_remove_hook(Node *n, int32_t id);
/* The gradient after a tensor's hook; NULL: none, or the error is set. */
Tensor *run_hook(int32_t id, Tensor *g);
Tensor *run_leaf_hooks(const Tensor *leaf, Tensor *g);
/* Runs a node's hooks, which see all of v and may replace it, and all of `more`. The pool owns the
 * tensors in v. */
bool run_node_hooks(Node *n, HookPoint point, int n_v, Tensor **v, int n_more, Tensor *const *more);
/* Runs pre-hooks on the gradients that `grads` owns. */
bool run_prehooks(Node *n, int n_grads, Tensor **grads);
/* Runs a leaf's hooks on the gradient `held` by the caller, accumulates it, and runs the
 * post-hooks. */
bool run_accumulator(Node *n, Tensor *held);
/* retain_grad: sets t's .grad, or adds to the one of an earlier backward. */
bool retain_into(Tensor *t, Tensor *g);

/* For a hook on one of several tensors (multi_hooks.c), with an id below 0: the id of the host's
 * function, plus 2^32 times the number of hooks that share it. */
int64_t several_share(int32_t hook);

#endif

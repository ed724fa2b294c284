/* The host's hooks at nodes, and the accumulation of gradients into leaves, for walk.c. */
#ifndef PG_HOOKS_H
#define PG_HOOKS_H

#include "tape/graph.h"

typedef struct {
  int32_t id, slot;
} Due;

/* Lists the hooks at a point before the first runs, because hooks add and remove hooks: all on the
 * list run. */
int hooks_due(const Node *n, HookPoint point, Due **due);
/* Ends a list of n_due hooks; false if one failed. */
bool hooks_done(int n_due);
/* Drops a removed hook, as soon as no list of hooks runs. */
void hook_drop(int32_t id);
bool hooks_exist(const Node *n, HookPoint point);
/* Registers a hook on a tensor's gradient, or after its accumulation; false with PyTorch's
 * error. */
bool tensor_hook_add(Tensor *t, int32_t id, bool post);
/* hook_leaf_add appends to a list; hook_leaf_remove removes from it and drops the host's
 * function. */
bool hook_leaf_add(Hook **list, int32_t id);
bool hook_leaf_remove(Hook **list, int32_t id);
bool node_remove_hook(Node *n, int32_t id);
/* The gradient after a tensor's hook; NULL: none, or the error is set. */
Tensor *hook_run(int32_t id, Tensor *g);
Tensor *hooks_run_leaf(const Tensor *leaf, Tensor *g);
/* Runs a node's hooks, which see all of v and may replace it, and all of `more`. The pool owns the
 * tensors in v. */
bool hooks_run_node(Node *n, HookPoint point, int n_v, Tensor **v, int n_more, Tensor *const *more);
/* Runs pre-hooks on the gradients that `grads` owns. */
bool hooks_run_pre(Node *n, int n_grads, Tensor **grads);
/* Runs a leaf's hooks on the gradient `held` by the caller, accumulates it, and runs the
 * post-hooks. */
bool hooks_run_accumulator(Node *n, Tensor *held);
/* retain_grad: sets t's .grad, or adds to the one of an earlier backward. */
bool hooks_retain_into(Tensor *t, Tensor *g);

/* For a hook on one of several tensors (multi_hooks.c), with an id below 0: the id of the host's
 * function, plus 2^32 times the number of hooks that share it. */
int64_t hooks_share(int32_t hook);

#endif

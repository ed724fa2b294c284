/* What runs at a node beside its function, for the walk back (engine.c): hooks of the host, and the accumulation of
 * gradients into leaves. */
#ifndef PG_HOOKS_H
#define PG_HOOKS_H

#include "graph.h"

typedef struct {
  int32_t id, slot;
} Due;

/* The hooks at a point, listed before the first runs, since hooks add and remove hooks. */
int due_hooks(const Node *n, HookPoint point, Due **due);
bool has_hooks(const Node *n, HookPoint point);
/* The gradient that a tensor's hook leaves; NULL for none, or with the error set. */
Tensor *run_hook(int32_t id, Tensor *g);
Tensor *run_leaf_hooks(const Tensor *leaf, Tensor *g);
/* Hooks that see all of v, which they may replace, and all of `more`. What v holds is the pool's. */
bool run_node_hooks(Node *n, HookPoint point, int n_v, Tensor **v, int n_more, Tensor *const *more);
/* Pre-hooks see the gradients that `grads` owns. */
bool run_prehooks(Node *n, int n_grads, Tensor **grads);
/* Hooks of a leaf, its new gradient, which is `held` by the caller, and the hooks after it. */
bool run_accumulator(Node *n, Tensor *held);
/* retain_grad: a later backward adds to what an earlier one left. */
bool retain_into(Tensor *t, Tensor *g);

#endif

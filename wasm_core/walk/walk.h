/* The walk back: see walk.c. */
#ifndef PG_WALK_H
#define PG_WALK_H

#include "tape/graph.h"

typedef struct {
  Tensor *tensor; /* NULL: the edge by itself, borrowed */
  Edge edge;
} GraphEnd;
typedef struct {
  int n_roots;
  const GraphEnd *roots;
  Tensor *const *grads; /* one a root, or NULL */
  int n_inputs;
  const GraphEnd *inputs;
  bool retain_graph, create_graph;
  bool accumulate; /* into leaves' .grad; otherwise the gradients of inputs are returned */
  bool allow_unused, materialize; /* what to do about inputs without a gradient */
  /* Above 0: that many walks one after the other, each as by a call of its own, and their
   * results stacked. `grads` have a dimension more, a row a walk; or there are none and one
   * root, whose elements the walks start from in turn. */
  int n_rows;
} GraphWalk;
/* Whether the gradients (NULL: ones) of the first n roots fit them; and one alone: no complex
 * root starts from ones, and none from a gradient that is complex where it is not. */
bool walk_check_gradients(const GraphWalk *w, int n);
bool walk_check_kind(int index, DType dtype, const Tensor *given);
Task *task_start(const GraphWalk *w); /* NULL if it failed; otherwise task_end is due */
/* Walks to the end, or to a custom node, which task_asks then names: its function, which the
 * host runs, gives `gi` (one an edge, NULL: none) for the next task_run. False if it failed. */
bool task_run(Task *task, Tensor **gi);
Node *task_asks(Task *task, Tensor ***grads);
bool task_creates_graph(const Task *task);
/* What was collected, owned by the pool; how many, or -1 if it failed. */
int task_results(Task *task, Tensor **captured);
/* Several walks, one after the other (jacobians.c). */
struct Call;
typedef struct Course {
  /* What follows a walk, which it ends; NULL: the result is given, or it failed. */
  Task *(*next)(struct Call *c, struct Course *k, Task *done);
  void (*drop)(struct Course *k);
} Course;
/* The course that a task belongs to, which it owns: gives it, and takes another. */
Course *task_course(Task *task, Course *other);
void task_end(Task *task);
void task_abort(Task *task); /* the host's function failed */
/* All of it in one go, custom nodes by callbacks from within. */
bool walk_captured(const GraphWalk *w, Tensor **captured);
bool walk_is_whole(void);          /* no backward that is running was given inputs */
int64_t walk_id(void);             /* of the backward that is running, -1: none */
bool walk_is_nested(void);         /* whether it is not the only one */
bool walk_will_run(const Node *n); /* in the backward that is running */
bool walk_retains(void);           /* whether that, if any, keeps saved tensors */
/* Lets the host's function be called, without arguments, once that one has walked its graph;
 * false outside of any. */
bool walk_queue(int32_t callback);
/* All nodes that it runs, in their order, borrowed, in scratch; how many. */
int walk_order(Node ***order);
/* Backward from roots with gradients (NULL: ones). `inputs`: accumulate only there; `capture`
 * non-NULL: return gradients of inputs there instead (retained by the pool). */
bool walk_backward(int n_roots, Tensor *const *roots, Tensor *const *grads, bool retain_graph,
                   bool create_graph, int n_inputs, Tensor *const *inputs, bool accumulate,
                   bool allow_unused, Tensor **captured);
/* Runs a node's gradient function, the engine's checks included. Used by CopySlices and fronts. */
bool node_apply(Node *n, Tensor **g, Tensor **gi);
/* Runs the TangentFn of n's type. */
Tensor *node_tangent(Node *n, Tensor *const *t, int output_nr, Tensor *y);
/* PyTorch's rule for a gradient that reaches an input described by m: shape, then dtype. */
Tensor *gradient_fit(Node *n, int index, Tensor *g, const OutputMeta *m);

/* The product of `with` and the derivative of roots by u, of which all is newer than the node
 * `since`. */
bool walk_product(int n, Tensor *const *roots, Tensor *const *with, bool create_graph,
                  uint64_t since, Tensor *u, Tensor **out);

#endif

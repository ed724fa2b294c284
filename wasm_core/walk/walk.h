/* The walk of a backward: see walk.c. */
#ifndef PG_WALK_H
#define PG_WALK_H

#include "tape/graph.h"

typedef struct {
  Tensor *tensor; /* NULL: `edge` is used; borrowed */
  Edge edge;
} GraphEnd;
typedef struct {
  int n_roots;
  const GraphEnd *roots;
  Tensor *const *grads; /* one for each root, or NULL */
  int n_inputs;
  const GraphEnd *inputs;
  bool retain_graph, create_graph;
  bool accumulate; /* into leaves' .grad; otherwise the gradients of inputs are returned */
  bool allow_unused, materialize; /* inputs without a gradient: give NULL; give zeros */
  /* Above 0: the number of walks, run one after the other as separate calls; their results are
   * stacked. `grads` have an additional first dimension, a row for each walk. Without `grads` there
   * is one root, and each walk starts from one of its elements. */
  int n_rows;
} GraphWalk;
/* Whether the gradients (NULL: ones) of the first n roots fit; sets the error if not.
 * walk_check_kind checks one: a complex root needs a gradient, and root and gradient must both be
 * complex or both real. */
bool walk_check_gradients(const GraphWalk *w, int n);
bool walk_check_kind(int index, DType dtype, const Tensor *given);
Task *task_start(const GraphWalk *w); /* NULL on failure; otherwise call task_end later */
/* Walks to the end, or to a custom node, which task_asks then returns. The host runs its function;
 * the results are `gi` of the next task_run (one for each edge, NULL: none). False on failure. */
bool task_run(Task *task, Tensor **gi);
Node *task_asks(Task *task, Tensor ***grads);
bool task_creates_graph(const Task *task);
/* Stores the captured gradients, owned by the pool; returns their number, -1 on failure. */
int task_results(Task *task, Tensor **captured);
/* A sequence of walks (jacobians.c). */
struct Call;
typedef struct Course {
  /* Ends `done` and returns the next walk; NULL: the result is set, or it failed. */
  Task *(*next)(struct Call *c, struct Course *k, Task *done);
  void (*drop)(struct Course *k);
} Course;
/* Sets the course that a task owns; returns the former one. */
Course *task_course(Task *task, Course *other);
void task_end(Task *task);
void task_abort(Task *task); /* the host's function failed */
/* Runs a whole walk; custom nodes run by nested callbacks. */
bool walk_captured(const GraphWalk *w, Tensor **captured);
bool walk_is_whole(void);          /* no running backward was given inputs */
int64_t walk_id(void);             /* of the running backward, -1: none */
bool walk_is_nested(void);         /* whether several backwards run */
bool walk_will_run(const Node *n); /* in the running backward */
bool walk_retains(void);           /* whether saved tensors are kept; true outside of one */
/* Queues a call of the host's function, without arguments, for the end of the running backward;
 * false outside of one. */
bool walk_queue(int32_t callback);
/* The nodes that the running backward runs, in order, borrowed, in scratch; returns their
 * number. */
int walk_order(Node ***order);
/* Backward from roots with gradients (NULL: ones). `inputs`: accumulate only there; `capture`
 * non-NULL: return gradients of inputs there instead (retained by the pool). */
bool walk_backward(int n_roots, Tensor *const *roots, Tensor *const *grads, bool retain_graph,
                   bool create_graph, int n_inputs, Tensor *const *inputs, bool accumulate,
                   bool allow_unused, Tensor **captured);
/* Runs a node's gradient function with the engine's checks. Used by CopySlices and hosts too. */
bool node_apply(Node *n, Tensor **g, Tensor **gi);
/* Runs the TangentFn of n's type. */
Tensor *node_tangent(Node *n, Tensor *const *t, int output_nr, Tensor *y);
/* PyTorch's rule for a gradient that reaches an input described by m: shape, then dtype. */
Tensor *gradient_fit(Node *n, int index, Tensor *g, const OutputMeta *m);

/* The product of `with` and the derivative of roots by u. The walk ignores nodes older than
 * `since`. */
bool walk_product(int n, Tensor *const *roots, Tensor *const *with, bool create_graph,
                  uint64_t since, Tensor *u, Tensor **out);

#endif

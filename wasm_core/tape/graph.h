/* The tape: nodes, edges, saved values, and the walk back.
 *
 * A differentiable op makes its node before it computes (node_new returns NULL when nothing needs a
 * gradient), saves what its gradient needs, and gives the node to its output:
 *
 *     Node *n = node_new(&MulBackward0, 2, 0, a, b, NULL);   // 2 saved tensors, 0 numbers, inputs
 *     if (needs(n, 0)) save(n, 1, b);
 *     if (needs(n, 1)) save(n, 0, a);
 *     Tensor *y = ...;
 *     return set_history(y, n);
 *
 * The gradient function gets one tensor an output (NULL: undefined) and fills one an input; it
 * composes ops (op.h), which record themselves when create_graph asks for it. Gradients of a
 * broadcast operand need not be summed nor cast: the engine brings each to its input's shape and
 * dtype. A saved tensor is a snapshot: see tensor.h. */
#ifndef PG_GRAPH_H
#define PG_GRAPH_H

#include <stddef.h>

#include "tensor/tensor.h"

typedef struct {
  Node *node; /* owned; NULL: no gradient needed */
  int32_t input_nr;
} Edge;

typedef struct {
  /* snapshot with no history; NULL if nothing was saved, it was freed, or a hook packed it */
  Tensor *value;
  Node *grad_fn; /* the edge of the tensor when it was saved; owned, NULL for outputs and leaves */
  Tensor *leaf;  /* a leaf that requires grad: kept to find its accumulator */
  Tensor *original; /* check mode: the input, for what became of its history; owned */
  Tensor *unpacked; /* what the unpack hook gave, while the node runs; owned */
  int64_t *form;    /* of what was packed, FORM_...; owned */
  Version *version; /* for the check mode */
  uint32_t version_saved;
  int32_t output_nr;
  int32_t packed; /* the host's id of what its pack hook made of the tensor; 0: none */
  bool is_output, requires_grad, set;
  bool widened; /* a half tensor, which formulas get in float */
} Saved;

enum { FORM_DTYPE, FORM_RANK, FORM_SIZES };
static inline size_t form_bytes(int64_t rank) {
  return (size_t)(FORM_SIZES + rank) * sizeof(int64_t);
}

typedef union {
  int64_t i;
  double f;
} Number;

typedef void GradFn(Node *n, Tensor **g, Tensor **gi);
/* The tangent of output output_nr, which is y, for the inputs' tangents t (NULL: zero, not all of
 * them). NULL: zero. */
typedef Tensor *TangentFn(Node *n, Tensor *const *t, int output_nr, Tensor *y);

typedef struct {
  const char *name; /* "MulBackward0" */
  GradFn *grad;
  /* Names for node._saved_*: of the saved tensors, slot by slot, the last with * if it is all
   * the rest, with # if it is a number of the host; then after | those of the numbers in order,
   * each with a letter: i, f, b; x a Scalar, shown as what it was (ScalarKind); o an int, None if it is
   * INT64_MAX (o-: if negative); e a float, None if 0; m dimensions as bits, M the only one of
   * them; l a list after its length, a digit a list of so many, d of three the last so many as
   * the node's first number says, each empty if it begins with INT64_MAX, D as d but empty if
   * the second number is 0, r all the rest as a list; tnone,tanh one of these texts, - being
   * None; and without a number of their own t and a single text, s0 the sizes, n0 the count of
   * elements of input 0, F false. Those called - have no name. Or, after |, a schema: the
   * arguments behind the first are floats (x). */
  const char *fields;
  uint8_t each;         /* of NODE_EACH, NODE_SPARSE, NODE_PARTS */
  const char *in_place; /* its name where the op was done in place, if that is another */
  TangentFn *tangent;   /* NULL: the transpose of grad */
} NodeType;

enum {
  NODE_EACH = 1,   /* it goes element by element: takes whatever an unpack hook gives for what was
                      saved, and sparse gradients, which ops refuse that take none. It leaves the
                      gradient of an operand that is broadcast to be summed, and its own result
                      may be the sum of the elements */
  NODE_SPARSE = 2, /* it takes sparse gradients */
  NODE_PARTS = 4   /* of NODE_EACH, a function of complex numbers that is not analytic */
};

/* Declares a node type and opens its gradient function; GRAD_EACH one that goes element by element,
 * GRAD_PARTS one of them that is not analytic, GRAD_SPARSE one that takes sparse gradients:
 *     GRAD(MulBackward0, "self other") { gi[0] = t_mul(g[0], saved(n, 1)); ... }      */
#define GRAD(NAME, FIELDS) GRAD_OF(NAME, FIELDS, 0, NULL)
#define GRAD_EACH(NAME, FIELDS) GRAD_OF(NAME, FIELDS, NODE_EACH, NULL)
#define GRAD_PARTS(NAME, FIELDS) GRAD_OF(NAME, FIELDS, NODE_EACH | NODE_PARTS, NULL)
#define GRAD_SPARSE(NAME, FIELDS) GRAD_OF(NAME, FIELDS, NODE_SPARSE, NULL)
#define GRAD_OF(NAME, FIELDS, EACH, IN_PLACE) GRAD_WITH(NAME, FIELDS, EACH, IN_PLACE, NULL)
#define GRAD_WITH(NAME, FIELDS, EACH, IN_PLACE, TANGENT_FUNCTION)                              \
  static void grad_##NAME(Node *n, Tensor **g, Tensor **gi);                                   \
  static const NodeType NAME = {#NAME, grad_##NAME, FIELDS, EACH, IN_PLACE, TANGENT_FUNCTION}; \
  static void grad_##NAME(__attribute__((unused)) Node *n, __attribute__((unused)) Tensor **g, \
                          __attribute__((unused)) Tensor **gi)
/* Declares a node type whose tangent is not the transpose of its gradient: the gradient leaves
 * something out, or masks what is no number. TANGENT opens the function of the tangent:
 *     TANGENT(PutBackward0) { return t_put(t[0], saved(n, 0), t[1], n->numbers[0].i); }      */
#define GRAD_AND_TANGENT(NAME, FIELDS) \
  static TangentFn tangent_##NAME;     \
  GRAD_WITH(NAME, FIELDS, 0, NULL, tangent_##NAME)
#define TANGENT(NAME)                                                                             \
  static Tensor *tangent_##NAME(Node *n, Tensor *const *t, __attribute__((unused)) int output_nr, \
                                __attribute__((unused)) Tensor *y)

/* What a gradient arriving at an output must look like. */
typedef struct {
  uint8_t dtype, ndim;
  bool defined;    /* gradients for it are checked */
  bool described;  /* it is a tensor, with these sizes and this dtype */
  uint8_t form;    /* of FORM_ABSENT: it has no elements, nor has a gradient */
  int64_t near[4]; /* the sizes, up to rank 4 */
  int64_t *far;    /* the sizes of higher ranks */
} OutputMeta;
static inline const int64_t *output_sizes(const OutputMeta *m) {
  return m->ndim <= 4 ? m->near : m->far;
}

/* Hooks of a node, run in the order of HookPoint, then of the outputs' first hooks, then of
 * registration. */
typedef enum { AT_TENSOR, AT_RETAIN, AT_CAPTURE, AT_PRE, AT_POST } HookPoint;
typedef struct NodeHook {
  struct NodeHook *next;
  int32_t id;   /* the host's callable */
  int32_t slot; /* AT_TENSOR, AT_RETAIN: which output */
  uint8_t point;
  /* AT_RETAIN: whose .grad is set; weak, the tensor removes the hook when it dies */
  Tensor *retained;
} NodeHook;

typedef struct Tangents Tangents; /* of a node's inputs, see forward.h */

struct Node {
  int32_t refs;
  uint32_t magic;
  const NodeType *type;
  uint64_t sequence;
  Edge *edges; /* edges, saves and numbers follow in the same block */
  Saved *saves;
  Number *numbers;
  OutputMeta *outputs; /* &output when there is one */
  OutputMeta output;
  uint16_t n_edges, n_saves, n_numbers, n_outputs;
  int32_t host;         /* id of the host's object for custom nodes, 0 otherwise */
  int32_t metadata;     /* id of the host's dictionary for this node; 0: none yet */
  bool freed;           /* saved values were released by a backward */
  bool guarded;         /* some saved value has hooks or a version to check */
  bool running;         /* its gradient function is at work */
  bool unpacked_inputs; /* inputs were saved that hooks have still to pack */
  uint8_t kind;         /* NODE_PLAIN, ... */
  NodeHook *hooks;
  void *state;      /* of the backward that is running, see walk.c; the link of the dead list */
  Tensor *variable; /* accumulators: the leaf, owned */
  Node *inner;      /* CopySlices: the node of the op done on the view, owned */
  struct Origin *origin; /* anomaly.h: where it was made; NULL unless that is recorded */
  Tangents *tangents;    /* while outputs wait for theirs, owned */
  bool unrecorded;       /* made for the sake of tangents alone */
  bool in_float;  /* of an op of half types: gradients come in one, its formula is of float */
  uint16_t kinds; /* ScalarKind of the first arguments of the call, two bits each */
  uint16_t row;   /* which of op_rows was called, if one of them is not 0 */
};

/* NODE_SLICE: of type AsStridedView. */
enum { NODE_PLAIN, NODE_ACCUMULATE, NODE_COPY_SLICES, NODE_SLICE, NODE_HOST, NODE_ERROR };
#define NODE_MAGIC 0x70676e31u
static inline bool node_is(const void *handle) {
  return handle && ((const Node *)handle)->magic == NODE_MAGIC;
}

/* --- modes --- */
extern bool grad_mode; /* whether ops make nodes now: to be recorded, or for tangents */
extern bool recording; /* is_grad_enabled, or what a backward asks for: nodes become histories */
/* Gradients are made of ops, each of which the host may answer, recorded or not. */
extern bool by_ops;
/* Of tensors of FORM_HOSTED: t without a history, as the host makes it, and g added to a sum in
 * place. NULL and false: it made none. */
extern Tensor *(*detached_by_host)(Tensor *t);
extern double (*number_by_host)(Tensor *t); /* its one element */
extern bool (*added_by_host)(Tensor *sum, Tensor *g);
extern bool any_layout;       /* a new gradient need not have its leaf's strides */
extern bool saved_check_mode; /* "check" instead of "snapshot" */
extern bool view_replay;      /* views are recorded anew as they were made, not as_strided */

/* Evaluates an expression, or runs the block that follows, while ops make no nodes. What grad_mode
 * was comes back at the end of it, however it is left. */
static inline bool grad_mode_off(void) {
  bool was = grad_mode;
  grad_mode = false;
  return was;
}
static inline void grad_mode_back(const bool *was) { grad_mode = *was; }
#define GRAD_MODE_WAS bool was_ __attribute__((cleanup(grad_mode_back), unused)) = grad_mode_off()
#define WITHOUT_GRAD(...) \
  ({                      \
    GRAD_MODE_WAS;        \
    __VA_ARGS__;          \
  })
#define WITHOUT_GRAD_BLOCK for (GRAD_MODE_WAS, once_ = true; once_; once_ = false)

/* --- recording --- */
/* An inference tensor may be marked, but nothing is recorded for its sake. */
static inline bool tensor_requires_grad(const Tensor *t) {
  if (t->grad_fn || (t->flags & (FLAG_REQUIRES_GRAD | FLAG_INFERENCE)) == FLAG_REQUIRES_GRAD)
    return true;
  const Tensor *base = t->meta ? t->meta->base : 0;
  return base && (base->grad_fn || (base->flags & FLAG_REQUIRES_GRAD));
}
/* Whether a function of t has a history or a tangent. */
bool tensor_tracked(const Tensor *t);
/* Whether an op on these (NULL-terminated; NULL-able ones go through node_new_list) is recorded. */
/* up to a NULL */
Node *node_new_for(const NodeType *type, int n_saves, int n_numbers, Tensor *const *inputs);
#define node_new(type, n_saves, n_numbers, ...) \
  node_new_for(type, n_saves, n_numbers, (Tensor *const[]){__VA_ARGS__})
Node *node_new_list(const NodeType *type, int n_saves, int n_numbers, int n, Tensor *const *inputs);
Node *node_alone(const NodeType *type, int n_saves); /* not recorded: keeps tensors as nodes do */
Node *node_beside(const NodeType *type, const Node *n); /* of the same inputs */
/* For nodes whose saves are counted only later (NODE_HOST). */
bool node_make_saves(Node *n, int n_saves);
/* Whether the gradient of this input is wanted: by anyone when recording, by the running
 * backward in a GRAD. */
bool needs(const Node *n, int input);
void save(Node *n, int slot, Tensor *t);        /* an input (n may be NULL, t may be NULL) */
void save_output(Node *n, int slot, Tensor *y); /* an output, after set_history */
/* NULL if none was saved; fails if it was freed, or written to in "check" mode. A complex tensor
 * comes conjugated: so a formula of real numbers is that of analytic functions too. */
Tensor *saved(Node *n, int slot);
Tensor *saved_plain(Node *n, int slot); /* as it was, for formulas of other functions */
extern Tensor *(*conjugate)(Tensor *t); /* t_conj, for the former */
/* Notes what output k is like; `defined`: gradients for it are checked. */
bool node_describe(Node *n, int k, const Tensor *y, bool defined);
/* Gives y the node as its history; consumes the node's reference; both may be NULL. */
Tensor *set_history(Tensor *y, Node *n);
/* outputs of one node, in order; none after one that failed */
Tensor *set_history_at(Tensor *y, Node *n, int output_nr);
void set_histories(Tensor **y, Node *n, int count); /* all of them; NULL after a failure */
/* y as another form of its op records it: PyTorch numbers the nodes of in-place and scalar forms
 * apart. `name` is static. */
Tensor *renamed(Tensor *y, const char *name);
/* what it saved has other names too */
Tensor *renamed_with(Tensor *y, const char *name, const char *fields);
/* Declares node_NAME, of an op that PyTorch records without a derivative. */
#define NO_DERIVATIVE(name)                                                 \
  static void refuse_##name(Node *n, Tensor **g, Tensor **gi) {             \
    (void)n, (void)g, (void)gi;                                             \
    fail(ERR_RUNTIME, "derivative for aten::" #name " is not implemented"); \
  }                                                                         \
  static const NodeType node_##name = {                                     \
      "torch::autograd::NotImplemented", refuse_##name, "", false, NULL, NULL};
/* One that nothing records yet; NULL if it cannot have so many of them. */
Node *node_bare(const NodeType *type, int n_edges, int n_saves, int n_numbers);
Node *node_unnumbered(const NodeType *type); /* takes no number of the sequence */
bool node_may_have(int n, const char *what); /* as many; the error is set if not */
bool node_describe_output(Node *n, int k, const Tensor *y);
void node_drop(Node *n); /* a node that was made but will not be used (after a failure) */
static inline void num_i(Node *n, int k, int64_t v) {
  if (n) n->numbers[k].i = v;
}
static inline void num_f(Node *n, int k, double v) {
  if (n) n->numbers[k].f = v;
}

/* --- numbers of the host (fields.c) --- */
/* How many numbers a field takes, from number `at` on; it begins at its colon. */
int node_width(const Node *n, const char *field, int at);
/* What a number of the host was that is kept as a double: an int if it is whole, or as noted. */
typedef enum { SCALAR_BY_VALUE, SCALAR_FLOAT, SCALAR_BOOL, SCALAR_COMPLEX } ScalarKind;
enum { NOTED_KINDS = 8 };
/* That of number `at`. */
ScalarKind node_kind(const Node *n, int at);

/* --- saved values (saved.c) --- */
void saves_pack(Node *n); /* runs the pack hooks on the inputs that were saved */
/* Before a node runs: unpacks what hooks packed and checks what has a version, used by the
 * formula or not. */
bool saves_ready(Node *n);
void saves_done(Node *n); /* after it ran: lets go of what was unpacked */
/* After an in-place op on self whose node is n: its outputs are self, its input is what self
 * was. */
void saves_written(Node *n, Tensor *self);
extern Tensor *inplace_self; /* what the running in-place op writes to; NULL if none does */
extern Tensor *(*inplace_copy)(Tensor *t); /* how that is cloned */
/* Of the output that z is: z is saved, where the same in float was. */
void saves_narrowed(Node *n, Tensor *z);
/* z is the output of n in the place of another, which was saved. */
void saves_replaced(Node *n, Tensor *z);
void saved_release(Saved *s);
Tensor *saved_for_host(Node *n, int slot);
void *saved_freed(void); /* sets the error of a graph that was freed */
/* Packs a saved value with a pair of hooks of the host. PyTorch's four errors. */
bool saved_register_hooks(Node *n, int slot, int32_t hooks);
/* The pairs of hooks for what is saved from now on; the innermost counts, 0 is a pair that does
 * nothing. */
bool saved_hooks_push(int32_t id);
void saved_hooks_pop(void);
/* what was pushed and popped in a backward is as it was before */
void saved_hooks_end(int64_t task);
/* The backward that hooks are pushed in, by its number: what it pushes goes with it. NULL: none. */
extern const int64_t *saved_hooks_task;
/* Until enabled (NULL), hooks are refused with this message; fails with it at once if there are
 * some now. */
bool saved_hooks_disable(const char *text);
const char *saved_hooks_disabled(void); /* NULL: not disabled */

/* --- histories --- */
/* Gives y, which nobody has seen, the history and the tangent of x: it is the same tensor to the
 * tape. */
bool tensor_stand_in(Tensor *y, Tensor *x);
/* y in float, for one call of an op that has no loops of y's half type; see ops/in_float.h. */
extern Tensor *(*widened)(Tensor *y);
/* What y stands for, if it is such a copy as it was made. */
static inline Tensor *narrow_form(const Tensor *y) {
  Tensor *of = y->meta ? y->meta->stands_for : NULL;
  return of && of->dtype != y->dtype && !tensor_version(y) ? of : NULL;
}
/* z, y narrowed to a half type, is from now on the output of y's node that y was: a half gradient
 * comes to the node, which keeps z instead of y. */
bool tensor_take_output(Tensor *z, Tensor *y);
extern bool computes_in_float; /* an op whose outputs will be narrowed runs */
/* Borrowed; regenerates the one of a view whose base changed, and fails if that view allows
 * none. */
Node *tensor_grad_fn(Tensor *t);
Edge tensor_edge(Tensor *t); /* owned reference; the accumulator of a leaf; {NULL} if none */
/* going by the node it has, which for a view may be of before a write */
bool tensor_is_leaf(const Tensor *t);
bool tensor_is_view(const Tensor *t);
/* Before an in-place write: leaf and view rules of PyTorch. False with the error set. */
bool check_inplace(Tensor *t);
bool check_inference_write(const Tensor *t); /* the one of them that holds for out= too */
const char *node_short_name(const Node *n);  /* without the namespace, as PyTorch prints it */
/* its name without "Backward0", or without "Backward" alone */
const char *node_stem(const Node *n);
/* After an in-place op on t whose node is n (NULL when nothing needs a gradient). Consumes n. */
void rebase_history(Tensor *t, Node *n);
void rebase_output(Tensor *t, Node *n, int output_nr); /* t is output output_nr of n */
/* Whether writing to x what depends on `value` (NULL: nothing) keeps to those rules. */
bool check_inplace_by(Tensor *x, const Tensor *value);
/* Makes v (just made by tensor_alias from self) a view of self: version, base, origin. */
Tensor *make_view(Tensor *self, Tensor *v, Node *n, ViewOrigin origin);
/* The node of a view of x without saves: recorded or not, where view_replay wants to know it. */
Node *node_of_view(const NodeType *type, int n_numbers, Tensor *x);
Tensor *t_detach(Tensor *t);
Tensor *t_detach_(Tensor *t);
void node_retain(Node *n);
void node_release(Node *n);
void node_release_saved(Node *n);
/* What an in-place op must not do because of t's history, when it will be recorded. */
bool check_rebase(Tensor *t);
Node *tensor_accumulator(Tensor *t); /* owned; of a leaf that requires grad */
NodeHook *node_add_hook(Node *n, HookPoint point, int32_t id, int32_t slot);
bool tensor_retain_grad(Tensor *t);
extern const NodeType AccumulateGrad, CopySlices, AsStridedView;

/* --- walking back (walk.c) --- */
typedef struct Task Task;
/* What a walk that is under way notes at a node; several may be. */
typedef struct Visit {
  Task *task;
  struct Visit *below; /* of an outer walk, at the same node */
  bool needed;         /* its gradients are wanted: it runs or is captured */
} Visit;
extern Task
    *pruned_task; /* the walk that runs, if inputs were named: some gradients are not needed */
static inline Visit *visit_of(const Task *task, const Node *n) {
  Visit *v = n->state;
  while (v && v->task != task) v = v->below;
  return v;
}

/* Joins tensors to the tape: called once, before the first tensor. */
void tape_begin(void);
int64_t node_live_count(void);
uint64_t node_sequence(void); /* of the next node */

#endif

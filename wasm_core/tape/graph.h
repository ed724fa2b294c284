/* The tape: nodes, edges, saved values, and the walk back.
 *
 * A differentiable op makes its node before it computes (node_new returns NULL if no input needs a
 * gradient), saves the values that its gradient needs, and gives the node to its output:
 *
 *     Node *n = node_new(&MulBackward0, 2, 0, a, b, NULL);   // 2 saved tensors, 0 numbers, inputs
 *     if (needs(n, 0)) save(n, 1, b);
 *     if (needs(n, 1)) save(n, 0, a);
 *     Tensor *y = ...;
 *     return set_history(y, n);
 *
 * The gradient function gets a tensor for each output (NULL: undefined) and sets one for each
 * input. It composes ops (op.h), which record themselves under create_graph. It need not sum or
 * cast the gradient of a broadcast operand: the engine converts each gradient to its input's shape
 * and dtype. A saved tensor is a snapshot: see tensor.h. */
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
  Tensor *original; /* check mode: the input, to see changes of its history; owned */
  Tensor *unpacked; /* the unpack hook's result, while the node runs; owned */
  int64_t *form;    /* dtype and sizes of the packed tensor, FORM_...; owned */
  Version *version; /* for check mode */
  uint32_t version_saved;
  int32_t output_nr;
  int32_t packed; /* the host's id of its pack hook's result; 0: none */
  bool is_output, requires_grad, set;
  bool widened; /* a half tensor that gradient functions get in float */
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
/* Returns the tangent of y, output output_nr, for the inputs' tangents t (an entry NULL: zero; at
 * least one is not NULL). Returns NULL for zero. */
typedef Tensor *TangentFn(Node *n, Tensor *const *t, int output_nr, Tensor *y);

/* Kinds of fields of a node: X(KIND, word, the value that the host is shown). A digit after the
 * word is a count, or the number of an input. */
#define FIELD_KINDS(X)                                                                       \
  X(INT, "int", "")                                                                          \
  X(OPTIONAL_INT, "int?", "None if it is INT64_MAX")                                         \
  X(NATURAL, "natural?", "an int, None if it is negative")                                   \
  X(FLOAT, "float", "")                                                                      \
  X(OPTIONAL_FLOAT, "float?", "None if it is 0")                                             \
  X(BOOL, "bool", "")                                                                        \
  X(FALSE, "false", "False; takes no number")                                                \
  X(SCALAR, "scalar", "a number of the type that the host gave (ScalarKind)")                \
  X(TEXT, "text",                                                                            \
    "one of the texts behind =, as text=none,tanh; - is None. A single one takes no number") \
  X(DIM, "dim", "the only dimension whose bit is set, or None")                              \
  X(DIMS, "dims", "the dimensions whose bits are set")                                       \
  X(INTS, "ints",                                                                            \
    "a list behind its length; ints4: a list of 4, empty if it begins with INT64_MAX")       \
  X(REST, "rest", "all remaining numbers as a list")                                         \
  X(WINDOW, "window", "the last ones of three, as many as the node's first number says")     \
  X(OPTIONAL_WINDOW, "window?", "the same, empty if the node's second number is 0")          \
  X(SIZES, "sizes", "sizes0: the sizes of input 0; takes no number")                         \
  X(NUMEL, "numel", "numel0: the number of elements of input 0; takes no number")
typedef enum {
#define X(KIND, word, value) FIELD_##KIND,
  FIELD_KINDS(X)
#undef X
      FIELD_NONE /* a name without a kind, of no value */
} FieldKind;

typedef struct {
  const char *name; /* "MulBackward0" */
  GradFn *grad;
  /* The names for node._saved_*. First those of the saved tensors, slot by slot: "other*" is a
   * list of all the rest, "other#" a number of the host. Behind | those of the numbers in order,
   * each with its kind, "dim:int" (FIELD_KINDS). What is called - has no name. Or, behind |, a
   * schema, whose arguments after the first are floats and Scalars. */
  const char *fields;
  uint8_t each;         /* of NODE_EACH, NODE_SPARSE, NODE_PARTS */
  const char *in_place; /* the name for the in-place form, if it differs */
  TangentFn *tangent;   /* NULL: the transpose of grad */
} NodeType;

enum {
  NODE_EACH = 1,   /* element-wise: any tensor from an unpack hook fits; sparse gradients are
                    * refused only by its ops; gradients of broadcast operands are left to be
                    * summed; the op's own result may be a sum of elements */
  NODE_SPARSE = 2, /* takes sparse gradients */
  NODE_PARTS = 4   /* NODE_EACH whose function is not analytic for complex numbers */
};

/* Declares a node type and opens its gradient function. GRAD_EACH: element-wise. GRAD_PARTS:
 * element-wise but not analytic. GRAD_SPARSE: takes sparse gradients.
 *     GRAD(MulBackward0, "self other") { gi[0] = t_mul(g[0], saved_tensor(n, 1)); ... } */
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
/* Declares a node type whose tangent is not the transpose of its gradient, because the gradient
 * omits a term or masks NaNs. TANGENT opens the function of the tangent:
 *     TANGENT(PutBackward0) { return t_put(t[0], saved_tensor(n, 0), t[1], n->numbers[0].i); } */
#define GRAD_AND_TANGENT(NAME, FIELDS) \
  static TangentFn tangent_##NAME;     \
  GRAD_WITH(NAME, FIELDS, 0, NULL, tangent_##NAME)
#define TANGENT(NAME)                                                                             \
  static Tensor *tangent_##NAME(Node *n, Tensor *const *t, __attribute__((unused)) int output_nr, \
                                __attribute__((unused)) Tensor *y)

/* The dtype and sizes that a gradient arriving at an output must have. */
typedef struct {
  uint8_t dtype, ndim;
  bool defined;    /* gradients are checked against it */
  bool described;  /* the output is a tensor; sizes and dtype are set */
  uint8_t form;    /* FORM_ABSENT or 0: whether the output, and so a gradient, lacks elements */
  int64_t near[4]; /* the sizes, up to rank 4 */
  int64_t *far;    /* the sizes of higher ranks */
} OutputMeta;
static inline DType output_dtype(const OutputMeta *m) { return (DType)m->dtype; }
static inline const int64_t *output_sizes(const OutputMeta *m) {
  return m->ndim <= 4 ? m->near : m->far;
}

/* Hooks of a node, run in the order of HookPoint, then of the outputs' first hooks, then of
 * registration. */
typedef enum { AT_TENSOR, AT_RETAIN, AT_CAPTURE, AT_PRE, AT_POST } HookPoint;
typedef struct NodeHook {
  struct NodeHook *next;
  int32_t id;   /* the host's callable */
  int32_t slot; /* AT_TENSOR, AT_RETAIN: the output's number */
  uint8_t point;
  /* AT_RETAIN: the tensor whose .grad is set; weak, it removes the hook when it dies */
  Tensor *retained;
} NodeHook;

typedef struct Tangents Tangents; /* tangents of a node's inputs, see walk/forward.c */

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
  bool running;         /* its gradient function runs */
  bool unpacked_inputs; /* some saved inputs wait for their pack hooks */
  uint8_t kind;         /* NODE_PLAIN, ... */
  NodeHook *hooks;
  void *state;      /* visits of running backwards, see walk.c; then the link of the dead list */
  Tensor *variable; /* accumulators: the leaf, owned */
  Node *inner;      /* CopySlices: the node of the in-place op on the view, owned */
  struct Origin *origin; /* anomaly mode: the place it was made at, else NULL */
  Tangents *tangents;    /* the inputs' tangents while outputs wait for theirs, owned */
  bool unrecorded;       /* made for tangents only */
  bool in_float;         /* half gradients arrive, the gradient function computes in float */
  uint16_t kinds;        /* ScalarKind of the first arguments of the call, two bits each */
  uint16_t row;          /* the row in op_rows that was called, if `kinds` is not 0 */
};

/* NODE_SLICE: the type is AsStridedView. */
enum { NODE_PLAIN, NODE_ACCUMULATE, NODE_COPY_SLICES, NODE_SLICE, NODE_HOST, NODE_ERROR };
#define NODE_MAGIC 0x70676e31u
static inline bool node_is(const void *handle) {
  return handle && ((const Node *)handle)->magic == NODE_MAGIC;
}

/* --- modes --- */
extern bool grad_mode; /* whether ops make nodes now: to be recorded, or for tangents */
extern bool recording; /* is_grad_enabled, or create_graph of a backward: nodes become histories */
/* Gradient functions use ops alone, recorded or not: the host may answer each of them. */
extern bool by_ops;
/* For tensors of FORM_HOSTED: the host detaches t, or adds g to `sum` in place. NULL and false: the
 * host gave no result. */
extern Tensor *(*detached_by_host)(Tensor *t);
extern double (*number_by_host)(Tensor *t); /* the one element of t */
extern bool (*added_by_host)(Tensor *sum, Tensor *g);
extern bool any_layout;       /* a new gradient need not have its leaf's strides */
extern bool saved_check_mode; /* "check" instead of "snapshot" */
extern bool view_replay;      /* rebuilds views by their own nodes, not by as_strided */

/* Evaluates an expression, or runs the following block, while ops make no nodes. grad_mode is
 * restored at the end, however control leaves. */
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
/* An inference tensor may have FLAG_REQUIRES_GRAD but never causes recording. */
static inline bool tensor_requires_grad(const Tensor *t) {
  if (t->grad_fn || (t->flags & (FLAG_REQUIRES_GRAD | FLAG_INFERENCE)) == FLAG_REQUIRES_GRAD)
    return true;
  const Tensor *base = t->meta ? t->meta->base : 0;
  return base && (base->grad_fn || (base->flags & FLAG_REQUIRES_GRAD));
}
/* Whether the result of an op on t would get a history or a tangent. */
bool tensor_tracked(const Tensor *t);
/* The node of an op on `inputs`, which end with NULL; NULL if the op is not recorded. node_new_list
 * takes inputs that may be NULL. */
Node *node_new_for(const NodeType *type, int n_saves, int n_numbers, Tensor *const *inputs);
#define node_new(type, n_saves, n_numbers, ...) \
  node_new_for(type, n_saves, n_numbers, (Tensor *const[]){__VA_ARGS__})
Node *node_new_list(const NodeType *type, int n_saves, int n_numbers, int n, Tensor *const *inputs);
Node *node_alone(const NodeType *type, int n_saves);    /* in no graph, only for its saves */
Node *node_beside(const NodeType *type, const Node *n); /* with the inputs of n */
/* For nodes whose number of saves is known only after they are made (NODE_HOST). */
bool node_make_saves(Node *n, int n_saves);
/* Whether the gradient of this input is wanted: while recording, by any backward; in a GRAD, by the
 * running one. */
bool needs(const Node *n, int input);
void save(Node *n, int slot, Tensor *t);        /* an input (n may be NULL, t may be NULL) */
void save_output(Node *n, int slot, Tensor *y); /* an output, after set_history */
/* NULL if none was saved; fails if it was freed, or written to in "check" mode. Returns a complex
 * tensor conjugated, so that the formula for real numbers also holds for analytic functions. */
Tensor *saved_tensor(Node *n, int slot);
Tensor *saved_plain(Node *n, int slot); /* not conjugated, for functions that are not analytic */
extern Tensor *(*conjugate)(Tensor *t); /* t_conj, used by saved_tensor */
/* Stores the dtype and sizes of output k; `defined`: gradients for it are checked. */
bool node_describe(Node *n, int k, const Tensor *y, bool defined);
/* Gives y the node as its history; consumes the node's reference; both may be NULL. */
Tensor *set_history(Tensor *y, Node *n);
/* for the outputs of one node, in order; no call may follow a failed one */
Tensor *set_history_at(Tensor *y, Node *n, int output_nr);
void set_histories(Tensor **y, Node *n, int count); /* for all outputs; sets NULL after a failure */
/* Renames y's node for another form of the op: PyTorch numbers the nodes of in-place and scalar
 * forms separately. `name` is static. */
Tensor *node_rename(Tensor *y, const char *name);
/* also renames the saved values */
Tensor *node_rename_with(Tensor *y, const char *name, const char *fields);
/* Declares node_NAME, the type for an op that PyTorch records without a derivative. */
#define NO_DERIVATIVE(name)                                                 \
  static void refuse_##name(Node *n, Tensor **g, Tensor **gi) {             \
    (void)n, (void)g, (void)gi;                                             \
    fail(ERR_RUNTIME, "derivative for aten::" #name " is not implemented"); \
  }                                                                         \
  static const NodeType node_##name = {                                     \
      "torch::autograd::NotImplemented", refuse_##name, "", false, NULL, NULL};
/* A node outside any graph; NULL if a count exceeds node_may_have's limit. */
Node *node_bare(const NodeType *type, int n_edges, int n_saves, int n_numbers);
Node *node_unnumbered(const NodeType *type); /* without a sequence number of its own */
bool node_may_have(int n, const char *what); /* at most UINT16_MAX; or the error */
bool node_describe_output(Node *n, int k, const Tensor *y);
void node_drop(Node *n); /* a node that was made but will not be used (after a failure) */
static inline void num_i(Node *n, int k, int64_t v) {
  if (n) n->numbers[k].i = v;
}
static inline void num_f(Node *n, int k, double v) {
  if (n) n->numbers[k].f = v;
}

/* --- numbers of the host (fields.c) --- */
/* The count of numbers of a field, the first being number `at`; `field` points at its colon. */
typedef struct {
  FieldKind kind;
  int count;         /* the digit after the word, or 0 */
  const char *texts; /* of a FIELD_TEXT */
} Field;
/* The field whose name ends at a colon, which `field` points to. */
Field field_of(const char *field);
/* How many of the node's numbers the field takes; `at`: where they begin. */
int field_width(const Node *n, const Field *f, int at);
/* The host's type of a number that is kept as a double: SCALAR_BY_VALUE is an int if whole, else a
 * float. */
typedef enum { SCALAR_BY_VALUE, SCALAR_FLOAT, SCALAR_BOOL, SCALAR_COMPLEX } ScalarKind;
enum { NOTED_KINDS = 8 };
/* The kind of number `at`. */
ScalarKind node_kind(const Node *n, int at);

/* --- saved values (saved.c) --- */
void saves_pack(Node *n); /* runs the pack hooks on the inputs that were saved */
/* Before a node runs: unpacks packed values and checks versions, also of values that the gradient
 * function does not use. */
bool saves_ready(Node *n);
void saves_done(Node *n); /* after it ran: releases the unpacked values */
/* After an in-place op on self with node n: saved outputs follow self's version, the saved input no
 * longer does. */
void saves_written(Node *n, Tensor *self);
extern Tensor *inplace_self; /* the tensor that the running in-place op writes to; NULL: none */
extern Tensor *(*inplace_copy)(Tensor *t); /* clones inplace_self */
/* Replaces the float form of output z by z among n's saved values. */
void saves_narrowed(Node *n, Tensor *z);
/* Replaces a saved output of n by z, which took its place as the output. */
void saves_replaced(Node *n, Tensor *z);
void saved_release(Saved *s);
Tensor *saved_for_host(Node *n, int slot);
void *saved_freed(void); /* sets the error for a freed graph */
/* Packs a saved value with a pair of the host's hooks; false with the error set. */
bool saved_register_hooks(Node *n, int slot, int32_t hooks);
/* Pushes and pops the pair of hooks for values saved from now on. The innermost pair is used; id 0
 * is a pair that does nothing. */
bool saved_hooks_push(int32_t id);
void saved_hooks_pop(void);
/* restores the hooks as they were before that backward */
void saved_hooks_end(int64_t task);
/* The number of the backward that hooks are pushed in; the hooks end with it. NULL: none. */
extern const int64_t *saved_hooks_task;
/* Until enabled (NULL), pushing hooks fails with this message; fails with it at once if hooks are
 * pushed now. */
bool saved_hooks_disable(const char *text);
const char *saved_hooks_disabled(void); /* NULL: not disabled */

/* --- histories --- */
/* Gives y, a tensor just made, the history and the tangent of x: the tape treats the two as one. */
bool tensor_stand_in(Tensor *y, Tensor *x);
/* y in float, for one call of an op without loops for y's half type; see ops/in_float.h. */
extern Tensor *(*widened)(Tensor *y);
/* The half tensor that y, made by `widened`, stands for; NULL if y is no such copy or was written
 * to. */
static inline Tensor *narrow_form(const Tensor *y) {
  Tensor *of = y->meta ? y->meta->stands_for : NULL;
  return of && of->dtype != y->dtype && !tensor_version(y) ? of : NULL;
}
/* Makes z, y narrowed to a half type, the output of y's node in y's place. The node gets half
 * gradients and keeps z instead of y. */
bool tensor_take_output(Tensor *z, Tensor *y);
extern bool computes_in_float; /* the running op's outputs will be narrowed */
/* Borrowed. Regenerates the node of a view whose base was written to; fails if the view allows no
 * new history. */
Node *tensor_grad_fn(Tensor *t);
Edge tensor_edge(Tensor *t); /* an owned reference, for a leaf its accumulator; {NULL}: none */
/* by t->grad_fn, which for a view may date from before a write to its base */
bool tensor_is_leaf(const Tensor *t);
bool tensor_is_view(const Tensor *t);
/* Before an in-place write: leaf and view rules of PyTorch. False with the error set. */
bool history_check_inplace(Tensor *t);
bool history_check_inference_write(const Tensor *t); /* holds for out= too */
const char *node_short_name(const Node *n); /* without the namespace, as PyTorch prints it */
/* the name without "Backward0", or with the number but without "Backward" */
const char *node_stem(const Node *n);
/* Records an in-place op on t with node n (NULL: no gradient needed). Consumes n. */
void record_rebase(Tensor *t, Node *n);
void record_rebase_output(Tensor *t, Node *n, int output_nr); /* t is output output_nr of n */
/* history_check_inplace for writing values that depend on `value` (NULL: none) to x. */
bool history_check_inplace_by(Tensor *x, const Tensor *value);
/* Makes v (just made by tensor_alias from self) a view of self: version, base, origin. */
Tensor *record_view(Tensor *self, Tensor *v, Node *n, ViewOrigin origin);
/* The node of a view of x, without saves; also made unrecorded under view_replay. */
Node *node_of_view(const NodeType *type, int n_numbers, Tensor *x);
Tensor *t_detach(Tensor *t);
Tensor *t_detach_(Tensor *t);
void node_retain(Node *n);
void node_release(Node *n);
void node_release_saved(Node *n);
/* Whether t's history allows a recorded in-place op; sets the error if not. */
bool history_check_rebase(Tensor *t);
Node *tensor_accumulator(Tensor *t); /* owned; of a leaf that requires grad */
NodeHook *node_add_hook(Node *n, HookPoint point, int32_t id, int32_t slot);
bool tensor_retain_grad(Tensor *t);
extern const NodeType AccumulateGrad, CopySlices, AsStridedView;

/* --- walking back (walk.c) --- */
typedef struct Task Task;
/* A running walk's entry at a node; walks may nest. */
typedef struct Visit {
  Task *task;
  struct Visit *below; /* an outer walk's entry at the same node */
  bool needed;         /* the node runs or its gradients are captured */
} Visit;
extern Task
    *pruned_task; /* the running walk, if inputs were named: some gradients are not needed */
static inline Visit *visit_of(const Task *task, const Node *n) {
  Visit *v = n->state;
  while (v && v->task != task) v = v->below;
  return v;
}

/* Installs the tape's functions in letting_go: called once, before the first tensor. */
void tape_begin(void);
int64_t node_live_count(void);
uint64_t node_sequence(void); /* the next node's number */

#endif

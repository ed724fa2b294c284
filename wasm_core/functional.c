/* torch.autograd.functional: products with Jacobians and Hessians, and the matrices themselves.
 *
 * The host asks for fresh inputs, calls its user's function on them, and asks for the derivative of what came out: so the
 * function runs with nothing of the engine on the stack. Every answer is made of gradients. Those are linear in what they start
 * from, so that their own derivative by that is the product from the other side: two walks back instead of forward mode. Where a
 * walk comes to a custom function, the host runs that and then goes on with it, as in any backward. */
#include <string.h>

#include "create.h"
#include "forward.h"
#include "memory.h"
#include "op.h"
#include "ops_private.h"

/* What strict mode looks at. */
typedef enum { OUTPUTS, GRAD_INPUTS, JACOBIAN, BACK, BACK_TRICK, DOUBLE_BACK, DOUBLE_BACK_TRICK, ROW } Stage;

/* The walks that an answer takes, in this order: the GRADIENT of one number; the derivative of what it starts from, with roots and
 * ends SWAPPED; then a PRODUCT with the vector. Or one for the ROWS of each output. */
enum { GRADIENT = 1, SWAPPED = 2, PRODUCT = 4, ROWS = 8 };

typedef struct {
  const char *name;
  uint8_t walks;
  Stage last;
} Answer;

static const Answer answers[] = {
    {"vjp", PRODUCT, BACK},
    {"jvp", SWAPPED | PRODUCT, BACK_TRICK},
    {"vhp", GRADIENT | PRODUCT, DOUBLE_BACK},
    {"hvp", GRADIENT | SWAPPED | PRODUCT, DOUBLE_BACK_TRICK},
    {"jacobian", ROWS, ROW},
    {"hessian", GRADIENT, JACOBIAN}, /* the function whose Jacobian it is */
};
static const Answer *const vjp = &answers[0], *const jvp = &answers[1];

/* An answer under way. The host may have to run custom functions before the next walk can begin, so all this outlives a crossing. */
struct Course {
  const Answer *answer;
  bool many; /* the function returned a tuple */
  bool create_graph, strict, vectorize;
  uint8_t left; /* of the answer's walks */
  int32_t row;  /* whose output's it is, of ROWS */
  Tensors outputs, points, v; /* v.n == -1: none */
  Tensors roots, by, start;   /* of the walk under way, and at the end the answer is the roots */
  int32_t n_held, cap;
  Tensor *held[]; /* the tensors of all these lists, owned */
};

/* What the host asks: the number of the answer, and in words how long the vector is, -1 if there is none, whether (at first) the
 * inputs or (then) the outputs are many, whether to record, to be strict, to go back for all outputs at once, how many outputs there
 * are, and all these tensors. */
static Course asked(Call *c) {
  enum { HEAD = 6 };
  Ints words = arg_ints(c, 1);
  const int64_t *head = words.v, n_v = head[0] < 0 ? 0 : head[0], n_outputs = head[5];
  const Answer *answer = &answers[arg_int(c, 0)];
  Course k = {.answer = answer, .many = head[1], .create_graph = head[2], .strict = head[3], .vectorize = head[4], .left = answer->walks};
  k.outputs = tensors_at(head + HEAD, n_outputs);
  k.points = tensors_at(head + HEAD + n_outputs, words.n - HEAD - n_outputs - n_v);
  k.v = tensors_at(head + words.n - n_v, n_v);
  if (head[0] < 0) k.v.n = -1;
  return k;
}

/* Room for n tensors. */
static Tensors blank(int64_t n) {
  Tensors list = {(int32_t)n, scratch_array(n + 1, sizeof *list.v)};
  if (list.v) memset(list.v, 0, (size_t)n * sizeof *list.v);
  else list.n = 0;
  return list;
}

static const Tensors none = {-1, NULL};

static void record(bool on) {
  recording = on && !inference_mode;
  grad_mode = recording || forward_on;
}

/* ------------------------------------------------------------ strict mode */

#define NOT_STRICT " This is not allowed in strict mode"

/* What strict mode says of tensor %d of a stage if it did not arrive, and if it has no history: all of it, or one word,
 * what is independent of the input. */
static const struct {
  const char *absent, *constant;
} strict_texts[] = {
    [OUTPUTS] = {"", "Output %d of the user-provided function does not require gradients. The outputs must be computed in a "
                     "differentiable manner from the input when running in strict mode."},
    [GRAD_INPUTS] = {"output", "The gradient with respect to input %d is independent of the inputs of the user-provided function."
                               NOT_STRICT "."},
    [JACOBIAN] = {"output", "While computing the hessian, found that the jacobian of the user-provided function with respect to input %d "
                            "is independent of the input." NOT_STRICT ". You should ensure that your function is twice differentiable "
                            "and that the jacobian depends on the inputs (this would be violated by a linear function for example)."},
    [BACK] = {"output", "jacobian"},
    [BACK_TRICK] = {"The gradient with respect to the input is independent of entry %d in the grad_outputs when using the double backward "
                    "trick to compute forward mode gradients." NOT_STRICT ".", "jacobian"},
    [DOUBLE_BACK] = {"jacobian", "hessian"},
    [DOUBLE_BACK_TRICK] = {"The hessian of the user-provided function is independent of entry %d in the grad_jacobian." NOT_STRICT
                           " as it prevents from using the double backward trick to replace forward mode AD.", "hessian"},
    [ROW] = {"Output %d of the user-provided function is independent of input %d." NOT_STRICT ".", "jacobian"},
};

static void strict_error(const char *text, const char *after, int first, int second) {
  if (strchr(text, '%')) fail(ERR_RUNTIME, text, first, second);
  else fail(ERR_RUNTIME, "The %s of the user-provided function is independent of input %d." NOT_STRICT "%s.", text, first, after);
}

/* In strict mode the error of a stage, unless all tensors are there and (with `history`) recorded; `output` is whose row they
 * are, or -1. */
static void demand(const Course *k, Stage stage, Tensors found, bool history, int output) {
  for (int i = 0; k->strict && i < found.n && !failed(); i++) {
    int first = output < 0 ? i : output;
    if (!found.v[i]) strict_error(strict_texts[stage].absent, "", first, i);
    else if (history && !tensor_requires_grad(found.v[i])) strict_error(strict_texts[stage].constant, " when create_graph=True", first, i);
  }
}

/* ------------------------------------------------------------ inputs */

/* A new tensor of the same values: a view where the result is to reach the one given. */
static Tensor *fresh(Tensor *t, bool create_graph, bool requires_grad) {
  if (create_graph && tensor_requires_grad(t)) return t_view_as(t, t);
  Tensor *made = vmap_refuses_leaf() ? NULL : t_detach(t);
  return made && requires_grad ? op_requires_grad_(made, true) : made;
}

static Tensors all_fresh(Tensors given, bool create_graph, bool requires_grad) {
  Tensors made = blank(given.n < 0 ? 0 : given.n);
  for (int i = 0; i < made.n; i++) made.v[i] = fresh(given.v[i], create_graph, requires_grad);
  made.n = given.n;
  return made;
}

/* Whether a vector fits what it multiplies; to be absent that must be one number. */
static void check_vector(const Course *k, Tensors like) {
  const Tensors v = k->v;
  bool many = k->many;
  if (v.n < 0 && (like.n != 1 || like.v[0]->numel != 1))
    fail(ERR_RUNTIME, "The vector v can only be None if the %s a single Tensor with a single element.",
         k->answer == vjp ? "user-provided function returns" : "input to the user-provided function is");
  else if (v.n >= 0 && v.n != like.n)
    fail(ERR_RUNTIME, many ? "v is a tuple of invalid length: should be %d but got %d." : "The given v should contain a single Tensor.", like.n,
         v.n);
  for (int i = 0; i < v.n && !failed(); i++) {
    if (tensor_same_shape(v.v[i], like.v[i])) continue;
    const char *wanted = shape_text(like.v[i]), *got = shape_text(v.v[i]);
    if (many) fail(ERR_RUNTIME, "Entry %d in v has invalid size: should be torch.Size(%s) but got torch.Size(%s).", i, wanted, got);
    else fail(ERR_RUNTIME, "v has invalid size: should be torch.Size(%s) but got torch.Size(%s).", wanted, got);
  }
}

/* What the function is to be called with. */
void op_functional_points(Call *c) {
  Course k = asked(c);
  record(true);
  for (int i = 0; k.answer->walks == GRADIENT && i < k.points.n && !failed(); i++)
    op_requires_grad_(k.points.v[i], true); /* duals, too, are to be reached */
  Tensors points = all_fresh(k.points, k.create_graph, true);
  if (k.answer->walks & PRODUCT && k.answer != vjp && !failed()) check_vector(&k, k.points);
  if (!failed()) ret_tensors(c, points.n, points.v);
}

/* ------------------------------------------------------------ matrices */

/* The identity over all elements of several tensors, cut by tensor: (sum of all n, n_k) for each. */
static Tensors units(Tensors like) {
  int64_t total = 0, at = 0;
  for (int i = 0; i < like.n; i++) total += like.v[i]->numel;
  Tensor *eye = t_eye(total, total, dtype_default());
  Tensors pieces = blank(like.n);
  for (int i = 0; eye && i < like.n; at += like.v[i++]->numel)
    pieces.v[i] = t_to(t_narrow(eye, 1, at, like.v[i]->numel), (DType)like.v[i]->dtype);
  return pieces;
}

/* Gradients of all elements of y by x, one behind the other, as their Jacobian; NULL: zeros. */
static Tensor *shaped(Tensor *gradients, const Tensor *y, const Tensor *x) {
  int64_t sizes[2 * MAX_DIM];
  int n = y->ndim + x->ndim;
  memcpy(sizes, y->sizes, y->ndim * sizeof *sizes);
  memcpy(sizes + y->ndim, x->sizes, x->ndim * sizeof *sizes);
  return gradients ? t_view(gradients, n, sizes) : tensor_zeros(n, sizes, (DType)x->dtype);
}

/* The unit vectors for what is pushed forward. */
void op_functional_units(Call *c) {
  Tensors made = units(arg_tensors(c, 0));
  if (!failed()) ret_tensors(c, made.n, made.v);
}

/* What came forward from each unit vector, stacked, as Jacobians: for each output by each input. */
void op_functional_columns(Call *c) {
  Tensors columns = arg_tensors(c, 0), inputs = arg_tensors(c, 1), table = blank((int64_t)columns.n * inputs.n);
  for (int i = 0; i < columns.n; i++) {
    int64_t at = 0;
    for (int k = 0; k < inputs.n && !failed(); at += inputs.v[k++]->numel) {
      Tensor *piece = t_narrow(columns.v[i], 0, at, inputs.v[k]->numel), *last = t_movedim(piece, (Ints){1, (int64_t[]){0}}, (Ints){1, (int64_t[]){-1}});
      int n = last ? last->ndim - 1 : 0;
      int64_t sizes[2 * MAX_DIM];
      if (n) memcpy(sizes, last->sizes, (size_t)n * sizeof *sizes);
      memcpy(sizes + n, inputs.v[k]->sizes, inputs.v[k]->ndim * sizeof *sizes);
      table.v[i * inputs.n + k] = t_reshape(last, n + inputs.v[k]->ndim, sizes);
    }
  }
  if (!failed()) ret_tensors(c, table.n, table.v);
}

#define NOT_FORWARD "torch.autograd.functional.jacobian: `%s=True` and `strategy=\"forward-mode\"` are not supported together (yet). " \
                    "Please either set `%s=False` or `strategy=\"reverse-mode\"`."

/* Whether it is the way forward, and whether the other options allow it. */
void op_functional_strategy(Call *c) {
  const char *strategy = arg_str(c, 1), *hint = strcmp(arg_str(c, 0), "jacobian") == 0 ? " Hint: If your function has more outputs than "
      "inputs, \"forward-mode\" tends to be more performant. Otherwise, prefer to use \"reverse-mode\"." : "";
  bool forward = strcmp(strategy, "forward-mode") == 0;
  if (!forward && strcmp(strategy, "reverse-mode") != 0)
    fail(ERR_ASSERTION, "Expected strategy to be either \"forward-mode\" or \"reverse-mode\".%s", hint);
  if (forward && arg_bool(c, 2)) fail(ERR_NOT_IMPLEMENTED, NOT_FORWARD, "create_graph", "create_graph");
  if (forward && arg_bool(c, 3)) fail(ERR_RUNTIME, NOT_FORWARD, "strict", "strict");
  if (forward && !arg_bool(c, 4))
    fail(ERR_NOT_IMPLEMENTED, "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`.");
  ret_bool(c, forward);
}

/* ------------------------------------------------------------ walks */

/* Outputs, points, vector, and what each of three walks starts from or finds: gradients, zeros, their derivatives, products. */
enum { MOST_LISTS = 7 };

static Tensors keep(Course *k, Tensors given) {
  Tensors list = {given.n, k->held + k->n_held};
  for (int i = 0; i < given.n; i++) tensor_retain(k->held[k->n_held++] = given.v[i]);
  return list;
}

void course_drop(Course *k) {
  for (int i = 0; i < k->n_held; i++) tensor_release(k->held[i]);
  mem_free(k, sizeof *k + (size_t)k->cap * sizeof *k->held);
}

static Course *course_new(const Course *given) {
  int64_t outputs = given->outputs.n, points = given->points.n, most = outputs > points ? outputs : points;
  int64_t cap = MOST_LISTS * most + (given->answer->walks & ROWS ? outputs * points : 0);
  Course *k = failed() || cap > INT32_MAX ? NULL : mem_alloc_zero(sizeof *k + (size_t)cap * sizeof *k->held);
  if (!k) return NULL;
  *k = *given;
  k->cap = (int32_t)cap;
  k->outputs = k->roots = keep(k, given->outputs);
  k->points = k->by = keep(k, given->points);
  if (k->v.n > 0) k->v = keep(k, given->v);
  if (k->answer->walks & ROWS) k->roots = (Tensors){0, k->held + k->n_held};
  if (!outputs) k->left &= (uint8_t)~ROWS;
  return k;
}

/* The walk from the roots that are there and have a history, to `by`; NULL if there are none. What they start from is `with`
 * (n <= 0: ones; `rows` above 0: see GraphWalk). */
static Task *pull(const Course *k, Tensors roots, Tensors with, bool retain, bool create_graph, int rows) {
  Tensors seeds = blank(roots.n);
  GraphEnd *ends = scratch_array((int64_t)roots.n + k->by.n + 1, sizeof *ends);
  int n = 0;
  for (int i = 0; i < roots.n && !failed(); i++)
    if (roots.v[i] && tensor_requires_grad(roots.v[i])) {
      seeds.v[n] = with.n > 0 ? with.v[i] : NULL;
      ends[n++] = (GraphEnd){roots.v[i], {NULL, 0}};
    }
  for (int i = 0; i < k->by.n && !failed(); i++) ends[n + i] = (GraphEnd){k->by.v[i], {NULL, 0}};
  if (n && !k->by.n) fail(ERR_RUNTIME, "`inputs` argument to `grad()` cannot be empty.");
  if (!n || failed()) return NULL;
  return task_start(&(GraphWalk){.n_roots = n, .roots = ends, .grads = with.n > 0 ? seeds.v : NULL, .n_inputs = k->by.n, .inputs = ends + n,
                                 .retain_graph = retain, .create_graph = create_graph, .allow_unused = true, .n_rows = rows});
}

/* The zeros that gradients start from, whose derivative by them is wanted. */
static Tensors zeros_to_start(const Course *k) {
  Tensors start = blank(k->roots.n);
  for (int i = 0; i < start.n; i++) {
    Tensor *zeros = start.v[i] = t_zeros_like(k->roots.v[i] ? k->roots.v[i] : k->by.v[i]);
    if (zeros && !dtype_is_float((DType)zeros->dtype)) fail(ERR_RUNTIME, "Only Tensors of floating point and complex dtype can require gradients");
    if (failed()) return (Tensors){0, NULL};
    zeros->flags |= FLAG_REQUIRES_GRAD;
  }
  return start;
}

/* A backward for each number of one output. */
static Task *walk_rows(const Course *k) {
  Tensor *y = k->outputs.v[k->row];
  if (!y->numel) t_stack((Tensors){0, NULL}, 0); /* fails as PyTorch does */
  return pull(k, (Tensors){1, &y}, none, true, k->create_graph, (int)y->numel);
}

/* A batch of them: the unit vectors of all outputs together. */
static Task *walk_batch(const Course *k) {
  if (k->strict)
    fail(ERR_RUNTIME, "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set "
                      "`strict=False` or `vectorize=False`.");
  Tensors flat = blank(k->outputs.n), start = units(k->outputs);
  if (failed()) return NULL;
  if (!start.v[0]->sizes[0]) fail(ERR_INDEX, "index 0 is out of bounds for dimension 0 with size 0");
  for (int i = 0; i < flat.n; i++) flat.v[i] = t_reshape(k->outputs.v[i], 1, (int64_t[]){-1});
  return pull(k, flat, start, k->create_graph, k->create_graph, failed() ? 0 : (int)start.v[0]->sizes[0]);
}

static uint8_t next_of(const Course *k) { return (uint8_t)(k->left & -k->left); }

static Task *begin(Course *k) {
  switch (next_of(k)) {
    case GRADIENT: return pull(k, k->roots, none, true, true, 0);
    case SWAPPED:
      k->start = keep(k, zeros_to_start(k));
      return pull(k, k->roots, k->start, true, true, 0);
    case PRODUCT: return pull(k, k->roots, k->v, k->create_graph, k->create_graph, 0);
    default: return k->vectorize ? walk_batch(k) : walk_rows(k);
  }
}

/* Zeros for gradients that did not arrive. */
static void complete(Tensors found, Tensors like) {
  for (int i = 0; i < found.n; i++)
    if (!found.v[i]) found.v[i] = t_zeros_like(like.v[i]);
}

/* The Jacobians of output i, of gradients that stand from row `at` on. */
static void take_rows(Course *k, Tensors found, int i, int64_t at) {
  Tensors row = blank(found.n);
  demand(k, ROW, found, k->create_graph, i);
  for (int j = 0; j < row.n && !failed(); j++) {
    Tensor *y = k->outputs.v[i], *rows = found.v[j] && k->vectorize ? t_narrow(found.v[j], 0, at, y->numel) : found.v[j];
    if (!failed()) row.v[j] = shaped(rows, y, k->points.v[j]);
  }
  k->roots.n += keep(k, row).n;
}

/* What a walk found; NULL: it did not arrive. */
static void take(Course *k, Tensors found) {
  uint8_t walk = next_of(k);
  int64_t at = 0;
  if (walk == PRODUCT || k->answer->walks == GRADIENT) {
    if (walk == PRODUCT) demand(k, k->answer->last, found, k->create_graph, -1);
    complete(found, k->answer == jvp ? k->outputs : k->points);
  }
  if (walk == GRADIENT) demand(k, JACOBIAN, found, true, -1);
  if (walk == SWAPPED && k->answer == jvp) demand(k, GRAD_INPUTS, found, true, -1);
  if (walk == SWAPPED) k->by = k->start;
  if (walk != ROWS) k->roots = keep(k, found);
  else
    do take_rows(k, found, k->row, at);
    while (at += k->outputs.v[k->row]->numel, ++k->row < k->outputs.n && k->vectorize);
  if (walk != ROWS || k->row == k->outputs.n) k->left = (uint8_t)(k->left & ~walk);
}

static void give(Call *c, const Course *k) {
  Tensors made = blank(k->roots.n);
  for (int i = 0; i < made.n; i++) {
    made.v[i] = k->create_graph ? k->roots.v[i] : t_detach(k->roots.v[i]);
    if (k->create_graph) tensor_retain(pool_push(made.v[i]));
  }
  if (!failed()) ret_tensors(c, made.n, made.v);
}

Task *course_next(Call *c, Course *k, Task *done) {
  Task *task = NULL;
  record(true);
  if (done) {
    Tensors found = blank(k->by.n);
    if (task_results(done, found.v) >= 0) take(k, found);
    task_end(done);
  }
  while (!failed() && k->left && !(task = begin(k)))
    if (!failed()) take(k, blank(k->by.n));
  if (task) task_course(task, k);
  else {
    if (!failed()) give(c, k);
    course_drop(k);
  }
  return task;
}

static void demand_one_number(const Course *k) {
  if (!(k->answer->walks & GRADIENT)) return;
  if (k->many || k->outputs.n != 1) fail(ERR_RUNTIME, "The function given to %s should return a single Tensor", k->answer->name);
  else if (k->outputs.v[0]->numel != 1)
    fail(ERR_RUNTIME, "The Tensor returned by the function given to %s should contain a single element", k->answer->name);
}

/* The derivative of the function that made these outputs of those points, or what the host must run first (op_backward_resume). */
void op_functional_answer(Call *c) {
  Course given = asked(c);
  record(true);
  demand(&given, OUTPUTS, given.outputs, true, -1);
  demand_one_number(&given);
  if (given.left & PRODUCT && !failed()) {
    given.v = all_fresh(given.v, given.create_graph, false);
    check_vector(&given, given.answer == vjp ? given.outputs : given.points);
  }
  Course *k = course_new(&given);
  if (k) task_go_on(c, course_next(c, k, NULL), NULL);
}

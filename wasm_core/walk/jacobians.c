/* torch.autograd.functional: products with Jacobians and Hessians, and the matrices themselves.
 *
 * The host asks for new inputs, calls its user's function on them, and asks for the derivative of
 * the outputs: so the function runs without a frame of the engine on the stack. Every answer is
 * made of gradients. A gradient is linear in the gradient it starts from, and its derivative by
 * that is the product from the other side: two backwards instead of forward mode. When a walk
 * reaches a custom function, the host runs it and continues, as in any backward. */
#include <string.h>

#include "ground/memory.h"
#include "ops/create/create.h"
#include "ops/op.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"
#include "tape/forward.h"
#include "tape/levels.h"
#include "walk/custom.h"
#include "walk/jacobians.h"
#include "walk/services.h"
#include "walk/walk.h"

/* Stages that strict mode checks. */
typedef enum {
  OUTPUTS,
  GRAD_INPUTS,
  JACOBIAN,
  BACK,
  BACK_TRICK,
  DOUBLE_BACK,
  DOUBLE_BACK_TRICK,
  ROW
} Stage;

/* The walks of an answer, in this order: GRADIENT, of one number; SWAPPED, the derivative by the
 * gradients that a walk starts from; PRODUCT, with the vector. Or ROWS, for the rows of each
 * output. */
enum { GRADIENT = 1, SWAPPED = 2, PRODUCT = 4, ROWS = 8 };

typedef struct {
  const char *name;
  uint8_t walks;
  Stage last;
} Answer;

static const Answer answers[] = {
#define X(name, asked, walks) {#name, asked, walks},
    FUNCTIONAL_ANSWERS(X)
#undef X
};
static const Answer *const vjp = &answers[0], *const jvp = &answers[1];

/* An unfinished answer. It outlives a crossing, because the host may have to run custom functions
 * between walks. */
typedef struct {
  Course course; /* continues after each walk */
  const Answer *answer;
  bool many; /* the function returned a tuple */
  bool create_graph, strict, vectorize;
  uint8_t left;               /* the answer's remaining walks */
  int32_t row;                /* ROWS: the current output */
  Tensors outputs, points, v; /* v.n == -1: none */
  Tensors roots, by, start;   /* of the current walk; at the end the roots are the answer */
  int32_t n_held, cap;
  Tensor *held[]; /* the tensors of all these lists, owned */
} Plan;

/* Reads the host's arguments: the number of the answer, and words: the length of the vector (-1:
 * none); whether the inputs (first call) or outputs (second call) are a tuple; create_graph;
 * strict; vectorize; the number of outputs; then the outputs, the points and the vector. */
static Plan read_plan(Call *c) {
  enum { HEAD = 6 };
  Ints words = arg_ints(c, 1);
  const int64_t *head = words.v;
  int n_v = (int)head[0], n_outputs = (int)head[5];
  Tensors all = custom_tensors_at(head + HEAD, words.n - HEAD), v = {n_v, all.v + (all.n - n_v)};
  Plan k = {.answer = &answers[arg_int(c, 0)],
            .v = v,
            .many = head[1],
            .create_graph = head[2],
            .strict = head[3],
            .vectorize = head[4]};
  k.outputs = (Tensors){n_outputs, all.v};
  k.points = (Tensors){all.n - n_outputs - (n_v < 0 ? 0 : n_v), all.v + n_outputs};
  k.left = k.answer->walks;
  return k;
}

/* A list of n NULLs. */
static Tensors blank(int n) {
  Tensors list = {n, scratch_array_zero((int64_t)n + 1, sizeof *list.v)};
  if (!list.v) list.n = 0;
  return list;
}

static void record(void) {
  recording = !inference_mode;
  grad_mode = recording || forward_on;
}

/* ------------------------------------------------------------ strict mode */

#define NOT_STRICT " This is not allowed in strict mode"

/* Errors of strict mode for tensor %d of a stage: if it is absent, and if it has no history. A
 * single word names the thing that is independent of the input. */
static const struct {
  const char *absent, *constant;
} strict_texts[] = {
    [OUTPUTS] =
        {"", "Output %d of the user-provided function does not require gradients. The outputs must "
             "be computed in a differentiable manner from the input when running in strict mode."},
    [GRAD_INPUTS] = {"output", "The gradient with respect to input %d is independent of the inputs "
                               "of the user-provided function." NOT_STRICT "."},
    [JACOBIAN] =
        {"output",
         "While computing the hessian, found that the jacobian of the user-provided function with "
         "respect to input %d is independent of the input." NOT_STRICT
         ". You should ensure that your function is twice differentiable and that the jacobian "
         "depends on the inputs (this would be violated by a linear function for example)."},
    [BACK] = {"output", "jacobian"},
    [BACK_TRICK] =
        {"The gradient with respect to the input is independent of entry %d in the grad_outputs "
         "when using the double backward trick to compute forward mode gradients." NOT_STRICT ".",
         "jacobian"},
    [DOUBLE_BACK] = {"jacobian", "hessian"},
    [DOUBLE_BACK_TRICK] =
        {"The hessian of the user-provided function is independent of entry %d in the "
         "grad_jacobian." NOT_STRICT
         " as it prevents from using the double backward trick to replace forward mode AD.",
         "hessian"},
    [ROW] = {"Output %d of the user-provided function is independent of input %d." NOT_STRICT ".",
             "jacobian"},
};

static void strict_error(const char *text, const char *after, int first, int second) {
  if (strchr(text, '%')) fail(ERR_RUNTIME, text, first, second);
  else
    fail(ERR_RUNTIME,
         "The %s of the user-provided function is independent of input %d." NOT_STRICT "%s.", text,
         first, after);
}

/* In strict mode, sets a stage's error unless all tensors are present and (with `history`)
 * recorded. `output` is the output of their row, or -1. */
static void demand(const Plan *k, Stage stage, const Tensors *found, bool history, int output) {
  for (int i = 0; k->strict && i < found->n && !failed(); i++) {
    int first = output < 0 ? i : output;
    if (!found->v[i]) strict_error(strict_texts[stage].absent, "", first, i);
    else if (history && !tensor_requires_grad(found->v[i]))
      strict_error(strict_texts[stage].constant, " when create_graph=True", first, i);
  }
}

/* ------------------------------------------------------------ inputs */

/* A new tensor with the values of t: a view if the result must be differentiable by t. */
static Tensor *fresh(Tensor *t, bool create_graph, bool requires_grad) {
  if (create_graph && tensor_requires_grad(t)) return t_view_as(t, t);
  Tensor *made = vmap_refuses_leaf() ? NULL : t_detach(t);
  return made && requires_grad ? op_requires_grad_(made, true) : made;
}

static void all_fresh(Tensors *list, bool create_graph, bool requires_grad) {
  Tensor *const *given = list->v;
  if (list->n > 0) *list = blank(list->n);
  for (int i = 0; i < list->n; i++) list->v[i] = fresh(given[i], create_graph, requires_grad);
}

/* Sets the error unless the vector fits the tensors that it multiplies; it may be absent for a
 * single number. */
static void check_vector(const Plan *k, const Tensors *like) {
  int n = k->v.n;
  if (n < 0 && (like->n != 1 || like->v[0]->numel != 1))
    fail(ERR_RUNTIME,
         "The vector v can only be None if the %s a single Tensor with a single element.",
         k->answer == vjp ? "user-provided function returns"
                          : "input to the user-provided function is");
  else if (n >= 0 && n != like->n)
    fail(ERR_RUNTIME,
         k->many ? "v is a tuple of invalid length: should be %d but got %d."
                 : "The given v should contain a single Tensor.",
         like->n, n);
  for (int i = 0; i < n && !failed(); i++) {
    if (tensor_same_shape(k->v.v[i], like->v[i])) continue;
    const char *wanted = shape_text(like->v[i]), *got = shape_text(k->v.v[i]);
    if (k->many)
      fail(ERR_RUNTIME,
           "Entry %d in v has invalid size: should be torch.Size(%s) but got torch.Size(%s).", i,
           wanted, got);
    else
      fail(ERR_RUNTIME, "v has invalid size: should be torch.Size(%s) but got torch.Size(%s).",
           wanted, got);
  }
}

/* Returns the arguments for the function. */
void op_functional_points(Call *c) {
  Plan k = read_plan(c);
  record();
  for (int i = 0; k.answer->walks == GRADIENT && i < k.points.n && !failed(); i++)
    op_requires_grad_(k.points.v[i], true); /* gradients must reach dual tensors too */
  all_fresh(&k.points, k.create_graph, true);
  if (k.answer->walks & PRODUCT && k.answer != vjp && !failed()) check_vector(&k, &k.points);
  if (!failed()) ret_tensors(c, k.points.n, k.points.v);
}

/* ------------------------------------------------------------ matrices */

/* The identity over all elements of several tensors, split by tensor: (sum of all n, n_k) for
 * each. */
static Tensors units(Tensors like) {
  int64_t total = 0, at = 0;
  for (int i = 0; i < like.n; i++) total += like.v[i]->numel;
  Tensor *eye = t_eye(total, total, dtype_default());
  Tensors pieces = blank(like.n);
  for (int i = 0; eye && i < like.n; at += like.v[i++]->numel)
    pieces.v[i] = t_to(t_narrow(eye, 1, at, like.v[i]->numel), tensor_dtype(like.v[i]));
  return pieces;
}

/* Reshapes stacked gradients by x, one for each element of a tensor with sizes y, to a Jacobian;
 * NULL gives zeros. */
static Tensor *shape_jacobian(Tensor *gradients, int n, const int64_t *y, const Tensor *x) {
  int64_t sizes[2 * MAX_DIM];
  memcpy(sizes, y, (size_t)n * sizeof *sizes);
  memcpy(sizes + n, x->sizes, x->ndim * sizeof *sizes);
  n += x->ndim;
  return gradients ? t_reshape(gradients, n, sizes) : tensor_zeros(n, sizes, tensor_dtype(x));
}

/* Splits stacked tangents, one for each unit vector, into Jacobians of each output by each
 * input. */
void op_functional_columns(Call *c) {
  Tensors columns = arg_tensors(c, 0), inputs = arg_tensors(c, 1),
          table = blank(columns.n * inputs.n);
  Tensor **to = table.v;
  for (int i = 0; i < columns.n; i++) {
    Tensor *column = columns.v[i];
    int64_t at = 0;
    for (int k = 0; k < inputs.n && !failed(); at += inputs.v[k++]->numel) {
      Tensor *piece = t_narrow(column, 0, at, inputs.v[k]->numel);
      piece = t_movedim(piece, (Ints){1, (int64_t[]){0}}, (Ints){1, (int64_t[]){-1}});
      if (piece) *to++ = shape_jacobian(piece, column->ndim - 1, column->sizes + 1, inputs.v[k]);
    }
  }
  if (!failed()) ret_tensors(c, table.n, table.v);
}

#define NOT_FORWARD                                                                        \
  "torch.autograd.functional.jacobian: `%s=True` and `strategy=\"forward-mode\"` are not " \
  "supported together (yet). "                                                             \
  "Please either set `%s=False` or `strategy=\"reverse-mode\"`."

/* The unit vectors for forward mode, if it is the strategy and the other options allow it. */
void op_functional_units(Call *c) {
  const char *strategy = arg_str(c, 1),
             *hint =
                 arg_bool(c, 2)
                     ? ""
                     : " Hint: If your function has more outputs than inputs, \"forward-mode\" "
                       "tends to be more performant. Otherwise, prefer to use \"reverse-mode\".";
  if (strcmp(strategy, "forward-mode") != 0)
    fail(ERR_ASSERTION, "Expected strategy to be either \"forward-mode\" or \"reverse-mode\".%s",
         hint);
  else if (arg_bool(c, 3)) fail(ERR_NOT_IMPLEMENTED, NOT_FORWARD, "create_graph", "create_graph");
  else if (arg_bool(c, 4)) fail(ERR_RUNTIME, NOT_FORWARD, "strict", "strict");
  else if (!arg_bool(c, 5))
    fail(ERR_NOT_IMPLEMENTED, "Computing Jacobian using forward-AD or forward-over-reverse Hessian "
                              "isonly implemented for `vectorize=True`.");
  Tensors made = units(arg_tensors(c, 0));
  if (!failed()) ret_tensors(c, made.n, made.v);
}

/* ------------------------------------------------------------ walks */

/* The number of lists: outputs, points, vector, gradients, zeros, their derivatives, products, each
 * as long as the outputs or the points. Or a table. */
enum { MOST_LISTS = 7 };

/* Moves a list into the plan, which outlives the crossing. */
static void keep(Plan *k, Tensors *list) {
  Tensor **to = k->held + k->n_held;
  for (int i = 0; i < list->n; i++) tensor_retain(k->held[k->n_held++] = list->v[i]);
  list->v = to;
}

static void drop(Course *course) {
  Plan *k = (Plan *)course;
  for (int i = 0; i < k->n_held; i++) tensor_release(k->held[i]);
  mem_free(k, sizeof *k + (size_t)k->cap * sizeof *k->held);
}

static Task *next(Call *c, Course *course, Task *done);

static Plan *plan_new(const Plan *given) {
  int64_t cap = (int64_t)(given->outputs.n + MOST_LISTS) * (given->points.n + MOST_LISTS);
  Plan *k = failed() || cap > INT32_MAX / 8 ? NULL
                                            : mem_alloc(sizeof *k + (size_t)cap * sizeof *k->held);
  if (!k) return NULL;
  *k = *given;
  k->course = (Course){next, drop};
  k->cap = (int32_t)cap;
  keep(k, &k->outputs);
  keep(k, &k->points);
  keep(k, &k->v);
  k->by = k->points;
  k->roots = k->outputs;
  if (k->left & ROWS) k->roots = (Tensors){0, k->held + k->n_held};
  if (!k->outputs.n) k->left &= (uint8_t)~ROWS;
  return k;
}

/* Starts a walk from the present roots that have a history, to `by`; NULL if there are none. They
 * start from `with` (NULL or n <= 0: ones). `rows` above 0: see GraphWalk. */
static Task *pull(const Plan *k, const Tensors *roots, const Tensors *with, bool create_graph,
                  int rows) {
  Tensor **seeds = scratch_array((int64_t)roots->n + 1, sizeof *seeds);
  GraphEnd *ends = scratch_array_zero((int64_t)roots->n + k->by.n + 1, sizeof *ends);
  bool given = with && with->n > 0;
  int n = 0;
  if (failed()) return NULL;
  for (int i = 0; i < roots->n; i++)
    if (roots->v[i] && tensor_requires_grad(roots->v[i])) {
      if (given) seeds[n] = with->v[i];
      ends[n++].tensor = roots->v[i];
    }
  for (int i = 0; i < k->by.n; i++) ends[n + i].tensor = k->by.v[i];
  if (n && !k->by.n) fail(ERR_RUNTIME, "`inputs` argument to `%s()` cannot be empty.", "grad");
  if (!n || failed()) return NULL;
  bool retain = create_graph || (rows && !given); /* further outputs need the graph */
  return task_start(&(GraphWalk){.n_roots = n,
                                 .roots = ends,
                                 .grads = given ? seeds : NULL,
                                 .n_inputs = k->by.n,
                                 .inputs = ends + n,
                                 .retain_graph = retain,
                                 .create_graph = create_graph,
                                 .allow_unused = true,
                                 .n_rows = rows});
}

/* Makes zeros as start gradients of the roots, by which the result is then differentiated. */
static void start_from_zeros(Plan *k) {
  k->start = blank(k->roots.n);
  for (int i = 0; i < k->start.n; i++) {
    Tensor *zeros = k->start.v[i] = t_zeros_like(k->roots.v[i] ? k->roots.v[i] : k->by.v[i]);
    if (zeros && dtype_is_inexact(tensor_dtype(zeros))) zeros->flags |= FLAG_REQUIRES_GRAD;
    else
      fail(ERR_RUNTIME, "Only Tensors of floating point and complex dtype can require gradients");
  }
  keep(k, &k->start);
}

/* A backward of a batch: the unit vectors of all outputs. */
static Task *walk_batch(const Plan *k) {
  if (k->strict)
    fail(ERR_RUNTIME,
         "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
         "supported together. Please either set `strict=False` or `vectorize=False`.");
  Tensors flat = blank(k->outputs.n), start = units(k->outputs);
  for (int i = 0; i < flat.n; i++) flat.v[i] = t_reshape(k->outputs.v[i], 1, (int64_t[]){-1});
  if (failed()) return NULL;
  if (!start.v[0]->sizes[0])
    return fail(ERR_INDEX, "index 0 is out of bounds for dimension 0 with size 0");
  return pull(k, &flat, &start, k->create_graph, (int)start.v[0]->sizes[0]);
}

/* A backward for each number of the next output. */
static Task *walk_rows(const Plan *k) {
  Tensors one = {1, k->outputs.v + k->row};
  int64_t n = one.v[0]->numel;
  if (!n) t_stack((Tensors){0, NULL}, 0); /* fails as PyTorch does */
  return pull(k, &one, NULL, k->create_graph, (int)n);
}

/* The current or next walk. */
static int current(const Plan *k) { return k->left & -k->left; }

static Task *begin(Plan *k) {
  int walk = current(k);
  if (walk == ROWS) return k->vectorize ? walk_batch(k) : walk_rows(k);
  if (walk == SWAPPED) start_from_zeros(k);
  return pull(k, &k->roots,
              walk == SWAPPED   ? &k->start
              : walk == PRODUCT ? &k->v
                                : NULL,
              walk != PRODUCT || k->create_graph, 0);
}

/* Adds the Jacobians of the next output, from gradients in rows from `at` on. */
static void take_rows(Plan *k, const Tensors *found, int64_t at) {
  Tensors row = blank(found->n);
  const Tensor *y = k->outputs.v[k->row];
  demand(k, ROW, found, k->create_graph, k->row++);
  for (int i = 0; i < row.n && !failed(); i++) {
    Tensor *rows = found->v[i] && k->vectorize ? t_narrow(found->v[i], 0, at, y->numel)
                                               : found->v[i];
    if (!failed()) row.v[i] = shape_jacobian(rows, y->ndim, y->sizes, k->points.v[i]);
  }
  keep(k, &row);
  k->roots.n += row.n;
}

/* Takes the gradients found by a walk (NULL: none arrived). */
static void take(Plan *k, Tensors *found) {
  int walk = current(k);
  const Tensors *like = k->answer == jvp ? &k->outputs : &k->points;
  if (walk == PRODUCT) demand(k, k->answer->last, found, k->create_graph, -1);
  /* absent results of the last walk become zeros */
  for (int i = 0; i < found->n && k->left == walk && walk != ROWS; i++)
    if (!found->v[i]) found->v[i] = t_zeros_like(like->v[i]);
  if (walk == GRADIENT) demand(k, JACOBIAN, found, true, -1);
  if (walk == SWAPPED && k->answer == jvp) demand(k, GRAD_INPUTS, found, true, -1);
  if (walk == SWAPPED) k->by = k->start;
  if (walk == ROWS) {
    int64_t at = 0;
    do take_rows(k, found, at);
    while (at += k->outputs.v[k->row - 1]->numel, k->vectorize && k->row < k->outputs.n);
    if (k->row < k->outputs.n) return;
  } else {
    keep(k, found);
    k->roots = *found;
  }
  k->left = (uint8_t)(k->left & ~walk);
}

static void give(Call *c, const Plan *k) {
  Tensors made = blank(k->roots.n);
  for (int i = 0; i < made.n; i++) {
    made.v[i] = k->create_graph ? k->roots.v[i] : t_detach(k->roots.v[i]);
    tensor_retain(made.v[i]);
    pool_push(made.v[i]);
  }
  if (!failed()) ret_tensors(c, made.n, made.v);
}

static Task *next(Call *c, Course *course, Task *done) {
  Plan *k = (Plan *)course;
  Task *task = NULL;
  bool walked = done;
  record();
  for (;; walked = true) { /* also if there was no root to walk from */
    Tensors found = blank(walked ? k->by.n : 0);
    if (done) {
      task_results(done, found.v);
      task_end(done);
      done = NULL;
    }
    if (walked && !failed()) take(k, &found);
    if (failed() || !k->left || (task = begin(k))) break;
  }
  if (task) task_course(task, &k->course);
  else {
    if (!failed()) give(c, k);
    drop(&k->course);
  }
  return task;
}

static void demand_one_number(const Plan *k) {
  if (!(k->answer->walks & GRADIENT)) return;
  if (k->many || k->outputs.n != 1)
    fail(ERR_RUNTIME, "The function given to %s should return a single Tensor", k->answer->name);
  else if (k->outputs.v[0]->numel != 1)
    fail(ERR_RUNTIME,
         "The Tensor returned by the function given to %s should contain a single element",
         k->answer->name);
}

/* The derivative of the outputs by the points, or the custom function that the host must run first
 * (op_backward_resume). */
void op_functional_answer(Call *c) {
  Plan given = read_plan(c);
  record();
  demand(&given, OUTPUTS, &given.outputs, true, -1);
  demand_one_number(&given);
  if (given.left & PRODUCT && !failed()) {
    all_fresh(&given.v, given.create_graph, false);
    check_vector(&given, given.answer == vjp ? &given.outputs : &given.points);
  }
  Plan *k = plan_new(&given);
  if (k) task_go_on(c, next(c, &k->course, NULL), NULL);
}

/* softmax, log_softmax and logsumexp over any dimension.
 *
 * A contiguous tensor is outer x n x inner. A row (inner == 1) or a strip of adjacent columns is
 * computed in passes that stay in the nearest cache; maxima and sums are folds of reduce.h. Both
 * gradients are ops, which can be differentiated again. */
#include <math.h>

#include "ground/paths.h"
#include "ground/poll.h"
#include "kernels/lanes.h"
#include "ops/reduce/reduce.h"
#include "reduce_rows.h"

#define EXP_float(x) exp_down(x) /* for x up to 0 */
#define EXP_double(x) exp(x)

/* ------------------------------------------------------------ strips */

/* y and the operands a, b share one layout: n rows, `step` apart, of `width` adjacent columns. */
typedef struct {
  const void *a, *b;
  void *y;
  int64_t n, step, width;
  const float *next; /* for a row of float: the next row, or itself if it is the last */
  bool first;
  LoopScratch *scratch; /* for rows of float; next_most is this row's maximum, but in the first */
  /* for a row of float: exp(a - max), and 1 over their sum; NULL unless they are kept */
  float *powers, *inverse;
} Span;

enum { SPAN_COLUMNS = 128 };

typedef void SpanLoop(const Span *s);

/* Folds the columns of `x` in the span into results of the same type. */
static void span_fold(const Reducer *folds, DType d, const Span *s, const void *x, void *out) {
  Strip strip = {.reducer = &folds[d],
                 .x = x,
                 .n = s->n,
                 .step = s->step,
                 .width = s->width,
                 .out = out,
                 .out_step = 1};
  (s->step == 1 ? folds[d].run : folds[d].columns)(&strip);
}

/* Sets y = VALUE for each element; VALUE may use a, b, y and the column's m and t. */
#define SPAN_MAP(T, VALUE)                                                    \
  for (int64_t i = 0; i < s->n; i++) {                                        \
    int64_t at = i * s->step;                                                 \
    VECTOR_LOOP for (int64_t j = 0; j < s->width; j++) {                      \
      T a = a_[at + j], b = b_[at + j], y = y_[at + j], m = m_[j], t = t_[j]; \
      (void)a, (void)b, (void)y, (void)m, (void)t;                            \
      y_[at + j] = VALUE;                                                     \
    }                                                                         \
  }
#define ROW_MAP(T, VALUE)                          \
  {                                                \
    const T m = m_[0], t = t_[0];                  \
    (void)m, (void)t;                              \
    WIDE_LOOP for (int64_t j = 0; j < s->n; j++) { \
      T a = a_[j], b = b_[j], y = y_[j];           \
      (void)a, (void)b, (void)y;                   \
      y_[j] = VALUE;                               \
    }                                              \
  }
#define MAP(T, VALUE) \
  if (s->step == 1) ROW_MAP(T, VALUE) else SPAN_MAP(T, VALUE)
#define SPAN_HEAD(T)                                \
  const T *a_ = s->a, *b_ = s->b ? s->b : s->a;     \
  T *y_ = s->y, m_[SPAN_COLUMNS], t_[SPAN_COLUMNS]; \
  (void)b_, (void)m_;                               \
  m_[0] = t_[0] = 0;

#define SOFTMAX_LOOPS(T, D)                                                                  \
  static void softmax_##T(const Span *s) {                                                   \
    SPAN_HEAD(T)                                                                             \
    span_fold(max_folds, D, s, a_, m_);                                                      \
    MAP(T, EXP_##T(a - m))                                                                   \
    span_fold(sum_folds, D, s, y_, t_);                                                      \
    for (int64_t j = 0; j < s->width; j++) t_[j] = 1 / t_[j];                                \
    MAP(T, y * t)                                                                            \
  }                                                                                          \
  static void log_softmax_##T(const Span *s) {                                               \
    SPAN_HEAD(T)                                                                             \
    span_fold(max_folds, D, s, a_, m_);                                                      \
    MAP(T, EXP_##T(a - m))                                                                   \
    span_fold(sum_folds, D, s, y_, t_);                                                      \
    for (int64_t j = 0; j < s->width; j++) t_[j] = (T)log((double)t_[j]);                    \
    MAP(T, a - m - t)                                                                        \
  }                                                                                          \
  static void softmax_backward_##T(const Span *s) { /* a = g, b = y: y (g - sum g y) */      \
    SPAN_HEAD(T)                                                                             \
    MAP(T, a * b)                                                                            \
    span_fold(sum_folds, D, s, y_, t_);                                                      \
    MAP(T, y - b * t)                                                                        \
  }                                                                                          \
  static void log_softmax_backward_##T(const Span *s) { /* a = g, b = y: g - exp(y) sum g */ \
    SPAN_HEAD(T)                                                                             \
    span_fold(sum_folds, D, s, a_, t_);                                                      \
    MAP(T, a - EXP_##T(b) * t)                                                               \
  }
/* Columns of float only: rows of float have functions of their own. */
#undef MAP
#define MAP SPAN_MAP
SOFTMAX_LOOPS(float, DT_F32)
#undef MAP
#define MAP(T, VALUE) \
  if (s->step == 1) ROW_MAP(T, VALUE) else SPAN_MAP(T, VALUE)
SOFTMAX_LOOPS(double, DT_F64)

static void softmax_row(const Span *s) {
  SPAN_HEAD(float)
  m_[0] = s->first ? value_max_row_f32(a_, (size_t)s->n) : s->scratch->next_most;
  t_[0] = 1 / value_exp_row_f32(y_, a_, (size_t)s->n, m_[0], s->scratch, s->next);
  ROW_MAP(float, (y * t))
  TOOK(SOFTMAX_ROW);
}
static void log_softmax_row(const Span *s) {
  SPAN_HEAD(float)
  m_[0] = s->first ? value_max_row_f32(a_, (size_t)s->n) : s->scratch->next_most;
  const float sum = value_exp_row_f32(s->powers, a_, (size_t)s->n, m_[0], s->scratch, s->next);
  if (s->inverse) *s->inverse = 1 / sum;
  t_[0] = (float)log((double)sum);
  ROW_MAP(float, a - m - t)
  TOOK(SOFTMAX_ROW);
}
static void softmax_backward_row(const Span *s) {
  SPAN_HEAD(float)
  ROW_MAP(float, (a * b))
  span_fold(sum_folds, DT_F32, s, y_, t_);
  ROW_MAP(float, y - b * t)
}
static void log_softmax_backward_row(const Span *s) {
  SPAN_HEAD(float)
  span_fold(sum_folds, DT_F32, s, a_, t_);
  if (s->powers) { /* no exponential again */
    b_ = s->powers, t_[0] *= *s->inverse;
    ROW_MAP(float, a - b * t)
    TOOK(SOFTMAX_KEPT);
    return;
  }
  value_subtract_exp_row_f32(y_, a_, b_, (size_t)s->n, t_[0], s->scratch);
  TOOK(SOFTMAX_ROW);
}

/* The loops of a type, for strips of columns and for rows. */
typedef struct {
  SpanLoop *columns, *rows;
} SpanLoops;
typedef const SpanLoops *const SpanTable[DT_COUNT];
#define SPAN_TABLE(name)                                                          \
  static SpanTable name##_loops = {                                               \
      [DT_F32] = &(const SpanLoops){.columns = name##_float, .rows = name##_row}, \
      [DT_F64] = &(const SpanLoops){.columns = name##_double, .rows = name##_double}};
SPAN_TABLE(softmax)
SPAN_TABLE(log_softmax)
SPAN_TABLE(softmax_backward)
SPAN_TABLE(log_softmax_backward)

/* Runs one of the loops along `dim` over contiguous operands of their type. */
static Tensor *run_spans(const SpanLoops *loops, Tensor *a, Tensor *b, int64_t dim, Tensor *kept) {
  a = t_contiguous(a);
  if (b) b = t_contiguous(b);
  if (failed() || !a) return NULL;
  DType d = tensor_dtype(a);
  Tensor *y = tensor_empty(a->ndim, a->sizes, d);
  if (!y || y->numel == 0 || tensor_absent(y)) return y;
  int64_t inner = 1, outer = 1, bytes = dtype_bytes(d);
  for (int i = 0; i < a->ndim; i++) *(i < dim ? &outer : &inner) *= i == dim ? 1 : a->sizes[i];
  LoopScratch scratch;
  Span s = {.n = a->ndim ? a->sizes[dim] : 1, .step = inner, .scratch = &scratch};
  if (kept) s.powers = (float *)(void *)tensor_data(kept), s.inverse = s.powers + a->numel;
  const char *a_at = tensor_data(a), *b_at = b ? tensor_data(b) : NULL;
  char *y_at = tensor_data(y);
  SpanLoop *loop = inner == 1 ? loops->rows : loops->columns;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t j = 0; j < inner; j += SPAN_COLUMNS) {
      int64_t at = (o * s.n * inner + j) * bytes;
      s.width = inner - j < SPAN_COLUMNS ? inner - j : SPAN_COLUMNS;
      if (poll_stops(8 * s.n * s.width)) return NULL;
      s.first = o == 0,
      s.next = (const float *)(const void *)(a_at + (o + 1 < outer ? at + s.n * bytes : at));
      s.a = a_at + at, s.b = b_at ? b_at + at : NULL, s.y = y_at + at;
      loop(&s);
      if (kept) s.powers += s.n, s.inverse++;
    }
  return y;
}

/* ------------------------------------------------------------ softmax */

/* Memory for the exponentials of log_softmax, which save its gradient from computing them again: as
 * much as the result, up to a size. It goes to the node's second slot, which nothing shows. */
enum { KEEP_MOST = 1 << 22 };
static Tensor *powers_for(const Tensor *x, int64_t dim) {
  if (x->dtype != DT_F32 || x->ndim == 0 || dim != x->ndim - 1 || x->numel == 0 ||
      x->numel > KEEP_MOST)
    return NULL;
  return tensor_empty(1, (int64_t[]){x->numel + x->numel / x->sizes[dim]}, DT_F32);
}

static bool last_dim(const Tensor *x, int64_t dim) {
  return x && (dim == -1 || dim == x->ndim - 1 || x->ndim == 0);
}

static Tensor *forward(const NodeType *type, SpanTable table, const char *name, Tensor *x,
                       int64_t dim, DType dtype) {
  if (failed() || !x) return NULL;
  if (dtype != DT_NONE) x = t_to(x, dtype);
  if (failed() || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  const SpanLoops *loops = KERNEL_OF(table, tensor_dtype(x), name);
  if (!loops) return NULL;
  Node *n = node_new(type, 2, 1, x, NULL);
  num_i(n, 0, dim);
  Tensor *kept = n && table == log_softmax_loops ? powers_for(x, dim) : NULL,
         *y = set_history(run_spans(loops, x, NULL, dim, kept), n);
  if (n) save_output(n, 0, y);
  if (kept && !failed() && n->saves[0].value) tensor_retain(n->saves[1].value = kept);
  return y;
}

/* The gradient, which records both operands. */
static Tensor *backward(const NodeType *type, SpanTable table, const char *name, Tensor *g,
                        Tensor *y, int64_t dim, Tensor *kept) {
  if (failed() || !g || !y || (dim = dim_wrap(dim, y->ndim)) < 0) return NULL;
  const SpanLoops *loops = KERNEL_OF(table, tensor_dtype(y), name);
  if (!loops) return NULL;
  if (g->dtype != y->dtype) g = t_to(g, tensor_dtype(y));
  Node *n = node_new(type, 2, 1, g, y, NULL);
  num_i(n, 0, dim);
  save(n, 0, g);
  save(n, 1, y);
  return set_history(run_spans(loops, g, y, dim, kept), n);
}

/* gx = y (g - s), s = sum g y. For h at gx: dg = y (h - sum h y), dy = h g - h s - g sum h y. */
GRAD(SoftmaxBackwardDataBackward0, "grad_output output | dim:int")
{
  Tensor *h = g[0], *go = saved_tensor(n, 0), *y = saved_tensor(n, 1);
  int64_t dim = n->numbers[0].i;
  if (needs(n, 0)) gi[0] = t_softmax_backward(h, y, dim, tensor_dtype(y));
  if (!needs(n, 1)) return;
  Tensor *s = t_sum(t_mul(go, y), ONE_DIM(dim), true, DT_NONE),
         *hy = t_sum(t_mul(h, y), ONE_DIM(dim), true, DT_NONE);
  gi[1] = t_sub(t_mul(h, t_sub(go, s)), t_mul(go, hy));
}

/* `dtype`, that of the argument of softmax, matters on other devices. */
Tensor *t_softmax_backward(Tensor *g, Tensor *y, int64_t dim, DType dtype) {
  OP_ENTERED(t_softmax_backward, "_softmax_backward_data", g, y, dim, dtype);
  IN_FLOAT(t_softmax_backward(g, y, dim, dtype), g, y);
  if (blocked(g, y)) return NULL;
  return backward(&SoftmaxBackwardDataBackward0, softmax_backward_loops,
                  last_dim(y, dim) ? "softmax_backward_lastdim_kernel_impl"
                                   : "softmax_backward_kernel_impl",
                  g, y, dim, NULL);
}

/* gx = g - exp(y) sum g. For h at gx: dg = h - sum h exp(y), dy = -h exp(y) sum g. */
GRAD(LogSoftmaxBackwardDataBackward0, "grad_output output | dim:int")
{
  Tensor *h = g[0], *e = t_exp(saved_tensor(n, 1));
  int64_t dim = n->numbers[0].i;
  if (needs(n, 0)) gi[0] = t_sub(h, t_sum(t_mul(h, e), ONE_DIM(dim), true, DT_NONE));
  if (needs(n, 1))
    gi[1] = t_neg(t_mul(t_mul(h, e), t_sum(saved_tensor(n, 0), ONE_DIM(dim), true, DT_NONE)));
}

/* kept: the exponentials of y, or NULL. */
static Tensor *log_backward(Tensor *g, Tensor *y, int64_t dim, DType dtype, Tensor *kept) {
  OP_ENTERED_AS(log_backward(g, y, dim, dtype, kept), "_log_softmax_backward_data", g, y, dim,
                dtype);
  IN_FLOAT(log_backward(g, y, dim, dtype, NULL), g, y);
  if (blocked(g, y)) return NULL;
  return backward(&LogSoftmaxBackwardDataBackward0, log_softmax_backward_loops,
                  last_dim(y, dim) ? "log_softmax_backward_lastdim_kernel_impl"
                                   : "log_softmax_backward_kernel_impl",
                  g, y, dim, kept);
}

Tensor *t_log_softmax_backward(Tensor *g, Tensor *y, int64_t dim, DType dtype) {
  return log_backward(g, y, dim, dtype, NULL);
}

GRAD(SoftmaxBackward0, "result | dim:int")
{
  Tensor *y = saved_tensor(n, 0);
  if (y) gi[0] = t_softmax_backward(g[0], y, n->numbers[0].i, tensor_dtype(y));
}
GRAD(LogSoftmaxBackward0, "result | dim:int")
{
  Tensor *y = saved_tensor(n, 0);
  if (y) gi[0] = log_backward(g[0], y, n->numbers[0].i, tensor_dtype(y), n->saves[1].value);
}

Tensor *t_softmax(Tensor *x, int64_t dim, DType dtype) {
  OP_ENTERED(t_softmax, "softmax", x, dim, dtype);
  IN_FLOAT_AS(dtype, t_softmax(x, dim, dtype), x);
  return forward(&SoftmaxBackward0, softmax_loops,
                 last_dim(x, dim) ? "softmax_lastdim_kernel_impl" : "softmax_kernel_impl", x, dim,
                 dtype);
}
Tensor *t_log_softmax(Tensor *x, int64_t dim, DType dtype) {
  OP_ENTERED(t_log_softmax, "log_softmax", x, dim, dtype);
  IN_FLOAT_AS(dtype, t_log_softmax(x, dim, dtype), x);
  return forward(&LogSoftmaxBackward0, log_softmax_loops,
                 last_dim(x, dim) ? "log_softmax_lastdim_kernel_impl" : "log_softmax_kernel_impl",
                 x, dim, dtype);
}

/* The ops of PyTorch's dispatcher. `half_to_float` is for other devices. */
static bool check_half_to_float(bool half_to_float) {
  if (half_to_float)
    fail(ERR_RUNTIME, "softmax with half to float conversion is not supported on CPU");
  return !failed();
}

Tensor *t_softmax_of(Tensor *x, int64_t dim, bool half_to_float) {
  return check_half_to_float(half_to_float) ? t_softmax(x, dim, DT_NONE) : NULL;
}
Tensor *t_log_softmax_of(Tensor *x, int64_t dim, bool half_to_float) {
  return check_half_to_float(half_to_float) ? t_log_softmax(x, dim, DT_NONE) : NULL;
}

GRAD(SafeSoftmaxBackward0, "result | dim:int")
{ grad_SoftmaxBackward0(n, g, gi); }

/* softmax, but zeros where all of a row are -inf. */
Tensor *t_safe_softmax(Tensor *x, int64_t dim, DType dtype) {
  OP_ENTERED(t_safe_softmax, "_safe_softmax", x, dim, dtype);
  IN_FLOAT_AS(dtype, t_safe_softmax(x, dim, dtype), x);
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  if (dtype != DT_NONE) x = t_to(x, dtype);
  Node *n = failed() ? NULL : node_new(&SafeSoftmaxBackward0, 1, 1, x, NULL);
  num_i(n, 0, dim);
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    Tensor *nothing = t_all(t_eq(x, tensor_wrapped_f(-INFINITY)), ONE_DIM(dim), true),
           *zero = tensor_wrapped_f(0);
    y = t_masked_fill(t_softmax(t_masked_fill(x, nothing, zero), dim, DT_NONE), nothing, zero);
  }
  y = set_history(y, n);
  if (n) save_output(n, 0, y);
  return y;
}

/* ------------------------------------------------------------ logsumexp */

/* y = log sum exp x: dx = g exp(x - y). */
GRAD(LogsumexpBackward0, "self result | dim:dims keepdim:bool")
{
  gi[0] = t_mul(reduce_restore_dims(g[0], n, 0),
                t_exp(t_sub(saved_tensor(n, 0), reduce_restore_dims(saved_tensor(n, 1), n, 0))));
}

static void finish_logsumexp(Tensor *y, const Tensor *shift) {
  if (tensor_absent(y)) return;
  char *y_at = tensor_data(y), *shift_at = tensor_data(shift);
  DISPATCH_FLOAT(tensor_dtype(y), {
    T *v = (T *)(void *)y_at;
    const T *m = (const T *)(const void *)shift_at;
    for (int64_t i = 0; i < y->numel; i++) v[i] = (T)log((double)v[i]) + m[i];
  })
}

/* Replaces infinite maxima by 0: exp(inf - inf) would be NaN. */
static void clear_infinite(Tensor *shift) {
  if (tensor_absent(shift)) return;
  char *at = tensor_data(shift);
  DISPATCH_FLOAT(tensor_dtype(shift), {
    T *m = (T *)(void *)at;
    for (int64_t i = 0; i < shift->numel; i++) m[i] = isinf(m[i]) ? 0 : m[i];
  })
}

/* logsumexp of complex numbers, shifted by the greatest real part. */
static Tensor *complex_logsumexp(Tensor *x, DimMask mask) {
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    Tensor *real = x->numel ? t_real(x) : NULL;
    Tensor *shift = real ? reduce_fold(max_folds, max_folds, real, mask, NULL, NULL)
                         : tensor_wrapped_f(0);
    if (shift && real) clear_infinite(shift);
    int64_t dims[MAX_DIM];
    int n = 0;
    for (int i = 0; i < x->ndim; i++)
      if (mask >> i & 1) dims[n++] = i;
    Tensor *terms = t_exp(t_sub(x, shift));
    y = t_add(t_log(n ? t_sum(terms, (Ints){n, dims}, true, DT_NONE) : terms), shift);
  }
  return y;
}

Tensor *t_logsumexp(Tensor *x, Ints dims, bool keepdim) {
  OP_ENTERED(t_logsumexp, "logsumexp", x, dims, keepdim);
  IN_FLOAT(t_logsumexp(x, dims, keepdim), x);
  DimMask mask;
  if (failed() || !x || !reduce_dims_mask(x, dims, &mask)) return NULL;
  x = t_to(x, elementwise_float_dtype(tensor_dtype(x)));
  Node *n = failed() ? NULL : node_new(&LogsumexpBackward0, 2, SHAPE_NUMBERS + x->ndim, x, NULL);
  if (failed()) return NULL;
  reduce_note_shape(n, 0, x, mask, keepdim);
  save(n, 0, x);
  Tensor *y = NULL;
  if (dtype_is_complex(tensor_dtype(x))) {
    y = complex_logsumexp(x, mask);
  } else {
    Tensor *shift = reduce_fold(max_folds, max_folds, x, mask, NULL, NULL);
    if (shift) clear_infinite(shift);
    y = WITHOUT_GRAD(reduce_fold(sum_folds, sum_folds, t_exp(t_sub(x, shift)), mask, NULL, NULL));
    if (y) finish_logsumexp(y, shift);
  }
  y = set_history(keepdim ? y : reduce_drop_dims(y, mask), n);
  if (n) save_output(n, 1, y);
  return y;
}

/* The default dim of nn.functional, with PyTorch's warning. */
int64_t softmax_dim(const Tensor *x, const int64_t *dim, const char *name) {
  if (dim || !x) return dim ? *dim : 0;
  warn_user("Implicit dimension choice for %s has been deprecated. Change the call to include "
            "dim=X as an argument.",
            name);
  return x->ndim == 0 || x->ndim == 1 || x->ndim == 3 ? 0 : 1;
}

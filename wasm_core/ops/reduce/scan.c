/* Running folds along a dimension: cumsum, cumprod, cummax, cummin, logcumsumexp.
 *
 * A contiguous tensor is outer x n x inner; adjacent columns advance together. float32 accumulates
 * in double, as PyTorch does. A scan can run backwards, for gradients. */
#include <math.h>

#include "ground/poll.h"
#include "kernels/complex_maths.h"

#include "ground/memory.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "reduce_rows.h"
#include "tape/forward.h"

/* ------------------------------------------------------------ the walk */

enum { SCAN_COLUMNS = 256 };

/* n steps over `width` adjacent columns; step is the signed distance from one to the next. */
typedef struct {
  const void *x;
  void *y;
  int64_t *index; /* for cummax and cummin: the places of the values; laid out like y */
  int64_t n, step, width;
} Scan;

typedef void ScanLoop(const Scan *s);

#define SCAN_SUM(NAME, T, A, R, IDENTITY, OP)                              \
  static void NAME(const Scan *s) {                                        \
    if (s->width == 1) {                                                   \
      const T *from = s->x;                                                \
      R *to = s->y;                                                        \
      A sum = IDENTITY;                                                    \
      for (int64_t i = 0; i < s->n; i++, from += s->step, to += s->step) { \
        A v = (A) * from;                                                  \
        sum = OP(sum, v);                                                  \
        *to = (R)sum;                                                      \
      }                                                                    \
      return;                                                              \
    }                                                                      \
    A acc[SCAN_COLUMNS];                                                   \
    for (int64_t j = 0; j < s->width; j++) acc[j] = IDENTITY;              \
    for (int64_t i = 0; i < s->n; i++) {                                   \
      const T *restrict x = (const T *)s->x + i * s->step;                 \
      R *restrict y = (R *)s->y + i * s->step;                             \
      for (int64_t j = 0; j < s->width; j++) {                             \
        A v = (A)x[j];                                                     \
        acc[j] = OP(acc[j], v);                                            \
        y[j] = (R)acc[j];                                                  \
      }                                                                    \
    }                                                                      \
  }
#define SCAN_SUMS(NAME, IDENTITY, OP, COMPLEX_OP)                                    \
  SCAN_SUM(NAME##_f32, float, double, float, IDENTITY, OP)                           \
  SCAN_SUM(NAME##_f64, double, double, double, IDENTITY, OP)                         \
  SCAN_SUM(NAME##_c64, complex_f32, complex_f64, complex_f32, IDENTITY, COMPLEX_OP)  \
  SCAN_SUM(NAME##_c128, complex_f64, complex_f64, complex_f64, IDENTITY, COMPLEX_OP) \
  SCAN_SUM(NAME##_u8, uint8_t, uint64_t, uint8_t, IDENTITY, OP)                      \
  SCAN_SUM(NAME##_i8, int8_t, uint64_t, int8_t, IDENTITY, OP)                        \
  SCAN_SUM(NAME##_i16, int16_t, uint64_t, int16_t, IDENTITY, OP)                     \
  SCAN_SUM(NAME##_i32, int32_t, uint64_t, int32_t, IDENTITY, OP)                     \
  SCAN_SUM(NAME##_i64, int64_t, uint64_t, int64_t, IDENTITY, OP)                     \
  static ScanLoop *const NAME##_loops[DT_COUNT] = {                                  \
      [DT_F32] = NAME##_f32, [DT_F64] = NAME##_f64, [DT_U8] = NAME##_u8,             \
      [DT_I8] = NAME##_i8,   [DT_I16] = NAME##_i16, [DT_I32] = NAME##_i32,           \
      [DT_I64] = NAME##_i64, [DT_C64] = NAME##_c64, [DT_C128] = NAME##_c128};
SCAN_SUMS(cumsum, 0, FOLD_ADD, FOLD_ADD)
SCAN_SUMS(cumprod, 1, FOLD_MUL, complex_mul_f64)

/* Scans contiguous x into fresh y (and index, int64) along dim. */
static Tensor *run_scan(ScanLoop *const loops[DT_COUNT], Tensor *x, int64_t dim, bool backwards,
                        Tensor *index) {
  x = t_contiguous(x);
  if (blocked(x)) return NULL;
  Tensor *y = tensor_empty(x->ndim, x->sizes, tensor_dtype(x));
  if (!y || y->numel == 0 || tensor_absent(y)) return y;
  int64_t inner = 1, outer = 1, bytes = dtype_bytes(tensor_dtype(x));
  for (int i = 0; i < x->ndim; i++) *(i < dim ? &outer : &inner) *= i == dim ? 1 : x->sizes[i];
  int64_t n = x->ndim ? x->sizes[dim] : 1, start = backwards ? (n - 1) * inner : 0;
  Scan s = {.n = n, .step = backwards ? -inner : inner};
  const char *x_at = tensor_data(x);
  char *y_at = tensor_data(y);
  int64_t *index_at = index ? (int64_t *)(void *)tensor_data(index) : NULL;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t j = 0; j < inner; j += SCAN_COLUMNS) {
      int64_t at = o * n * inner + j + start;
      s.width = inner - j < SCAN_COLUMNS ? inner - j : SCAN_COLUMNS;
      if (poll_stops_elements(n * s.width)) return NULL;
      s.x = x_at + at * bytes, s.y = y_at + at * bytes, s.index = index_at ? index_at + at : NULL;
      loops[x->dtype](&s);
    }
  return y;
}

/* x in the type of the scan: dtype if given, else int64 for integers; in place x's own. */
static Tensor *scan_input(Tensor *x, int64_t dim, DType dtype, const char *name) {
  if (blocked(x) || dim_wrap(dim, x->ndim) < 0) return NULL;
  if (dtype == DT_NONE)
    dtype = dtype_is_inexact(tensor_dtype(x)) || x == inplace_self ? tensor_dtype(x) : DT_I64;
  if (x == inplace_self && dtype != tensor_dtype(x))
    return fail(ERR_RUNTIME,
                "Bad in-place call: input tensor dtype %s and output tensor dtype %s should match",
                dtype_c_name(tensor_dtype(x)), dtype_c_name(dtype));
  if (dtype == DT_BOOL)
    return fail(ERR_NOT_IMPLEMENTED, "\"%s_out_cpu\" not implemented for 'Bool'", name);
  if (!reduce_check_recorded(x, dtype)) return NULL;
  return t_to(x, dtype);
}

/* ------------------------------------------------------------ cumsum, cumprod */

/* y_i = x_0 + ... + x_i: dx_i = g_i + ... + g_last, and the other way round. */
static Tensor *cumsum(Tensor *x, int64_t dim, bool backwards);
GRAD(CumsumBackward0, "| dim:int")
{
  const int64_t dim = n->numbers[0].i;
  gi[0] = gradient_is_asked() && !n->numbers[1].i
              ? t_flip(t_cumsum(t_flip(g[0], ONE_DIM(dim)), dim, DT_NONE), ONE_DIM(dim))
              : cumsum(g[0], dim, !n->numbers[1].i);
}

static Tensor *cumsum(Tensor *x, int64_t dim, bool backwards) {
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  Node *n = dtype_is_inexact(tensor_dtype(x)) ? node_new(&CumsumBackward0, 0, 2, x, NULL) : NULL;
  num_i(n, 0, dim);
  num_i(n, 1, backwards);
  return set_history(run_scan(cumsum_loops, x, dim, backwards, NULL), n);
}

Tensor *t_cumsum(Tensor *x, int64_t dim, DType dtype) {
  OP_ENTERED(t_cumsum, "cumsum", x, dim, dtype);
  x = scan_input(x, dim, dtype, "cumsum");
  IN_FLOAT(t_cumsum(x, dim, DT_NONE), x);
  return cumsum(x, dim, false);
}

/* y_i = x_0 ... x_i: dx_k = (g_k y_k + ... + g_last y_last) / x_k before the first zero x_z. At it,
 * dx_z = y_(z-1) (g_z + g_(z+1) x_(z+1) + ...). Behind it, 0. */
#define CUMPROD_GRADIENT(T)                                                                   \
  static void cumprod_gradient_##T(const T *x, const T *g, T *dx, int64_t n, int64_t step) {  \
    int64_t zero = 0;                                                                         \
    while (zero < n && x[zero * step] != 0) zero++;                                           \
    double before = 1, chain = 1, at_zero = 0, sum = 0;                                       \
    for (int64_t i = 0; i < zero; i++) before *= (double)x[i * step];                         \
    for (int64_t i = zero; i < n; i++) {                                                      \
      if (i > zero) chain *= (double)x[i * step];                                             \
      at_zero += chain * (double)g[i * step];                                                 \
      dx[i * step] = 0;                                                                       \
    }                                                                                         \
    if (zero < n) dx[zero * step] = (T)(before * at_zero);                                    \
    for (int64_t i = 0; i < zero; i++) { /* the products y, and then the sums from the end */ \
      double y = i ? (double)dx[(i - 1) * step] * (double)x[i * step] : (double)x[0];         \
      dx[i * step] = (T)y;                                                                    \
    }                                                                                         \
    for (int64_t i = zero - 1; i >= 0; i--) {                                                 \
      sum += (double)g[i * step] * (double)dx[i * step];                                      \
      dx[i * step] = (T)(sum / (double)x[i * step]);                                          \
    }                                                                                         \
  }
CUMPROD_GRADIENT(float)
CUMPROD_GRADIENT(double)

static Tensor *cumprod_gradient(Tensor *g, Tensor *x, int64_t dim) {
  g = t_contiguous(g);
  x = t_contiguous(x);
  if (blocked(g, x)) return NULL;
  Tensor *dx = tensor_empty(x->ndim, x->sizes, tensor_dtype(x));
  if (!dx || !x->numel || tensor_absent(dx)) return dx;
  int64_t n = x->ndim ? x->sizes[dim] : 1, inner = 1;
  for (int i = (int)dim + 1; i < x->ndim; i++) inner *= x->sizes[i];
  const char *x_at = tensor_data(x), *g_at = tensor_data(g);
  char *dx_at = tensor_data(dx);
  for (int64_t k = 0; k < x->numel / n; k++) {
    int64_t at = k / inner * n * inner + k % inner;
    if (poll_stops(8 * n)) return NULL;
    if (x->dtype == DT_F32)
      cumprod_gradient_float((const float *)(const void *)x_at + at,
                             (const float *)(const void *)g_at + at, (float *)(void *)dx_at + at, n,
                             inner);
    else
      cumprod_gradient_double((const double *)(const void *)x_at + at,
                              (const double *)(const void *)g_at + at, (double *)(void *)dx_at + at,
                              n, inner);
  }
  return dx;
}

/* The gradient of cumprod as ops, which can be differentiated again, zeros or not: dx_k = sum over
 * i >= k of g_i times the product of the first i + 1 factors but x_k. */
static Tensor *cumprod_gradient_tape(Tensor *g, Tensor *x, int64_t dim) {
  int64_t n = x->ndim ? x->sizes[dim] : 1;
  if (x->ndim == 0 || n == 0) return x->ndim ? t_mul(g, x) : g;
  Tensor **parts = scratch_array(n, sizeof *parts);
  for (int64_t k = 0; parts && k < n; k++) {
    Tensor *others = k ? t_prod_dim(t_narrow(x, dim, 0, k), dim, true, DT_NONE)
                       : t_ones_like(t_detach(t_narrow(x, dim, 0, 1)));
    if (k + 1 < n) {
      Tensor *behind[2] = {
          others, t_mul(others, t_cumprod(t_narrow(x, dim, k + 1, n - k - 1), dim, DT_NONE))};
      others = t_cat((Tensors){2, behind}, dim);
    }
    parts[k] = t_sum(t_mul(t_narrow(g, dim, k, n - k), others), ONE_DIM(dim), true, DT_NONE);
  }
  return t_cat((Tensors){(int32_t)n, parts}, dim);
}

GRAD(CumprodBackward0, "self result | dim:int")
{
  Tensor *x = saved_tensor(n, 0);
  if (blocked(x) || !g[0]) return;
  if (x->numel <= 1) gi[0] = g[0];
  else
    gi[0] = (grad_mode || dtype_is_complex(tensor_dtype(x))
                 ? cumprod_gradient_tape
                 : cumprod_gradient)(g[0], x, n->numbers[0].i);
}

Tensor *t_cumprod(Tensor *x, int64_t dim, DType dtype) {
  OP_ENTERED(t_cumprod, "cumprod", x, dim, dtype);
  x = scan_input(x, dim, dtype, "cumprod");
  IN_FLOAT(t_cumprod(x, dim, DT_NONE), x);
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  Node *n = dtype_is_inexact(tensor_dtype(x)) ? node_new(&CumprodBackward0, 2, 1, x, NULL) : NULL;
  num_i(n, 0, dim);
  save(n, 0, x);
  Tensor *y = set_history(run_scan(cumprod_loops, x, dim, false, NULL), n);
  save_output(n, 1, y);
  return y;
}

/* ------------------------------------------------------------ cummax, cummin */

/* The last of equal values counts; a NaN stays until the next NaN. */
#define SCAN_EXTREME(NAME, T, BETTER)                                                             \
  static void NAME(const Scan *s) {                                                               \
    if (s->width == 1) {                                                                          \
      const T *from = s->x;                                                                       \
      T *to = s->y, top = s->n ? ELEMENT(from) : 0;                                               \
      int64_t where = 0;                                                                          \
      for (int64_t i = 0; i < s->n; i++) {                                                        \
        T v = ELEMENT(from + i * s->step);                                                        \
        bool better = (v != v) | ((top == top) & (v BETTER top));                                 \
        top = better ? v : top;                                                                   \
        where = better ? i : where;                                                               \
        to[i * s->step] = top;                                                                    \
        s->index[i * s->step] = where;                                                            \
      }                                                                                           \
      return;                                                                                     \
    }                                                                                             \
    const T *x = s->x;                                                                            \
    T *y = s->y, best[SCAN_COLUMNS];                                                              \
    int64_t *index = s->index, at[SCAN_COLUMNS];                                                  \
    for (int64_t i = 0; i < s->n; i++, x += s->step, y += s->step, index += s->step)              \
      for (int64_t j = 0; j < s->width; j++) {                                                    \
        T v = ELEMENT(x + j);                                                                     \
        if (i == 0 || v != v || (best[j] == best[j] && v BETTER best[j])) best[j] = v, at[j] = i; \
        y[j] = best[j];                                                                           \
        index[j] = at[j];                                                                         \
      }                                                                                           \
  }
#define SCAN_EXTREMES(NAME, BETTER)                                                             \
  SCAN_EXTREME(NAME##_f32, float, BETTER)                                                       \
  SCAN_EXTREME(NAME##_f64, double, BETTER)                                                      \
  SCAN_EXTREME(NAME##_u8, uint8_t, BETTER)                                                      \
  SCAN_EXTREME(NAME##_b8, bool, BETTER)                                                         \
  SCAN_EXTREME(NAME##_i8, int8_t, BETTER)                                                       \
  SCAN_EXTREME(NAME##_i16, int16_t, BETTER)                                                     \
  SCAN_EXTREME(NAME##_i32, int32_t, BETTER)                                                     \
  SCAN_EXTREME(NAME##_i64, int64_t, BETTER)                                                     \
  static ScanLoop *const NAME##_loops[DT_COUNT] = {                                             \
      [DT_F32] = NAME##_f32, [DT_F64] = NAME##_f64, [DT_U8] = NAME##_u8,   [DT_I8] = NAME##_i8, \
      [DT_I16] = NAME##_i16, [DT_I32] = NAME##_i32, [DT_I64] = NAME##_i64, [DT_BOOL] = NAME##_b8};
SCAN_EXTREMES(cummax, >=)
SCAN_EXTREMES(cummin, <=)

/* y_i = x_(index_i): each g_i goes to x_(index_i). */
static Tensor *send_back(Node *n, Tensor *g) {
  Tensor *index = saved_tensor(n, 0);
  if (blocked(g, index) || g->ndim == 0) return g;
  return t_scatter_add(t_zeros_like(t_detach(g)), n->numbers[0].i, index, g);
}
GRAD(CummaxBackward0, "indices self | dim:int")
{ gi[0] = send_back(n, g[0]); }
GRAD(CumminBackward0, "indices self | dim:int")
{ gi[0] = send_back(n, g[0]); }

static void scan_extreme(const NodeType *type, ScanLoop *const loops[DT_COUNT], Tensor *x,
                         int64_t dim, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return;
  Node *n = dtype_is_float(tensor_dtype(x)) ? node_new(type, 2, 1, x, NULL) : NULL;
  num_i(n, 0, dim);
  out[1] = tensor_empty(x->ndim, x->sizes, DT_I64);
  out[0] = out[1] ? run_scan(loops, x, dim, false, out[1]) : NULL;
  save(n, 0, out[1]);
  save(n, 1, x);
  set_history_at(out[0], n, 0);
}

void t_cummax(Tensor *x, int64_t dim, Tensor *out[2]) {
  OP_ENTERED(t_cummax, "cummax", x, dim, out);
  IN_FLOAT_OUT(2, out, t_cummax(x, dim, out), x)
  scan_extreme(&CummaxBackward0, cummax_loops, x, dim, out);
}
void t_cummin(Tensor *x, int64_t dim, Tensor *out[2]) {
  OP_ENTERED(t_cummin, "cummin", x, dim, out);
  IN_FLOAT_OUT(2, out, t_cummin(x, dim, out), x)
  scan_extreme(&CumminBackward0, cummin_loops, x, dim, out);
}

/* ------------------------------------------------------------ logcumsumexp */

static inline double log_add_exp(double a, double b) {
  if (a != a || b != b) return a + b;
  double low = a < b ? a : b, high = a < b ? b : a;
  return low == high && isinf(low) ? high : high + log1p(exp(low - high));
}

#define LOGCUMSUMEXP(T, A, ADD)                                    \
  static void logcumsumexp_##T(const Scan *s) {                    \
    const T *x = s->x;                                             \
    T *y = s->y;                                                   \
    A acc[SCAN_COLUMNS];                                           \
    for (int64_t i = 0; i < s->n; i++, x += s->step, y += s->step) \
      for (int64_t j = 0; j < s->width; j++) {                     \
        acc[j] = i ? ADD(acc[j], (A)x[j]) : (A)x[j];               \
        y[j] = (T)acc[j];                                          \
      }                                                            \
  }
LOGCUMSUMEXP(float, double, log_add_exp)
LOGCUMSUMEXP(double, double, log_add_exp)
LOGCUMSUMEXP(complex_f32, complex_f64, complex_logaddexp)
LOGCUMSUMEXP(complex_f64, complex_f64, complex_logaddexp)
static ScanLoop *const logcumsumexp_loops[DT_COUNT] = {[DT_F32] = logcumsumexp_float,
                                                       [DT_F64] = logcumsumexp_double,
                                                       [DT_C64] = logcumsumexp_complex_f32,
                                                       [DT_C128] = logcumsumexp_complex_f64};

static Tensor *logcumsumexp(Tensor *x, int64_t dim, bool backwards);

/* exp(p) times the running sums of w exp(q) over the elements that are `wanted`; log_w is the
 * logarithm of their w. */
static Tensor *log_sums(Tensor *log_w, Tensor *wanted, Tensor *p, Tensor *q, int64_t dim,
                        bool backwards) {
  Tensor *lowest = tensor_wrapped_f(log_w && log_w->dtype == DT_F32 ? -3.4028234663852886e38
                                                                    : -1.7976931348623157e308);
  return t_exp(t_add(logcumsumexp(t_add(t_where(wanted, log_w, lowest), q), dim, backwards), p));
}

/* y_k = exp(p_k) (w_k exp(q_k) + ...), by logarithms, with positive and negative w apart. It is
 * linear in w, and the gradient in g, by sums in the other direction: dw = exp(q) (g exp(p) + ...),
 * dp = g y, dq = w dw. */
static Tensor *weighted_sums(Tensor *w, Tensor *p, Tensor *q, int64_t dim, bool backwards);
GRAD(WeightedSumsBackward, "w p q result | dim:int")
{
  Tensor *dw = weighted_sums(g[0], saved_tensor(n, 2), saved_tensor(n, 1), n->numbers[0].i,
                             !n->numbers[1].i);
  gi[0] = dw;
  if (needs(n, 1)) gi[1] = t_mul(g[0], saved_tensor(n, 3));
  if (needs(n, 2)) gi[2] = t_mul(saved_tensor(n, 0), dw);
}
static Tensor *weighted_sums(Tensor *w, Tensor *p, Tensor *q, int64_t dim, bool backwards) {
  if (blocked(w, p, q)) return NULL;
  Node *n = node_new(&WeightedSumsBackward, 4, 2, w, p, q, NULL);
  num_i(n, 0, dim);
  num_i(n, 1, backwards);
  save(n, 0, w);
  save(n, 1, p);
  save(n, 2, q);
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    bool complex = dtype_is_complex(tensor_dtype(w)) || dtype_is_complex(tensor_dtype(p));
    Tensor *zero = tensor_wrapped_f(0), *log_w = complex ? t_log(w) : t_log(t_abs(w));
    if (complex) y = t_exp(t_add(logcumsumexp(t_add(log_w, q), dim, backwards), p));
    else
      y = t_sub(log_sums(log_w, t_gt(w, zero), p, q, dim, backwards),
                log_sums(log_w, t_lt(w, zero), p, q, dim, backwards));
  }
  y = set_history(y, n);
  if (n) save_output(n, 3, y);
  return y;
}

/* dx_k = exp(x_k) (g_k exp(-y_k) + ...); for a backward scan these sums run forwards. */
GRAD(LogcumsumexpBackward0, "self result | dim:int")
{
  if (g[0] && g[0]->ndim == 0) gi[0] = g[0];
  else
    gi[0] = weighted_sums(g[0], saved_tensor(n, 0), t_neg(saved_tensor(n, 1)), n->numbers[0].i,
                          !n->numbers[1].i);
}

static Tensor *logcumsumexp(Tensor *x, int64_t dim, bool backwards) {
  IN_FLOAT(logcumsumexp(x, dim, backwards), x);
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  if (!dtype_is_complex(tensor_dtype(x)) &&
      !dtype_check_float_kernel("logcumsumexp_out_cpu", tensor_dtype(x)))
    return NULL;
  Node *n = node_new(&LogcumsumexpBackward0, 2, 2, x, NULL);
  num_i(n, 0, dim);
  num_i(n, 1, backwards);
  save(n, 0, x);
  Tensor *y = set_history(run_scan(logcumsumexp_loops, x, dim, backwards, NULL), n);
  if (n) save_output(n, 1, y);
  return y;
}

Tensor *t_logcumsumexp(Tensor *x, int64_t dim) {
  OP_ENTERED(t_logcumsumexp, "logcumsumexp", x, dim);
  return logcumsumexp(x, dim, false);
}

/* Normalisation: layer_norm, batch_norm, group_norm, rms_norm. Ops composed of these are in
 * instance_norm.c.
 *
 * A contiguous input consists of rows of adjacent elements. Sums run over blocks of a row in four
 * vectors and over blocks and rows in double, so their order depends on the shape alone. A
 * first-order gradient is two passes over each row; under create_graph it is composed of ops, from
 * the input alone. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/number.h"
#include "ground/paths.h"
#include "ground/poll.h"
#include "kernels/simd.h"
#include "nn_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/nn.h"
#include "tape/forward.h"

/* For functions that run once a channel, not once an element: compiled small. */
#define ONCE SMALL NOINLINE

/* ------------------------------------------------------------ sums over a row */

typedef f32x4 vec_float;
typedef f64x2 vec_double;
enum { SUM_BLOCK = 512 };

/* The float kernels are compiled for speed, the double ones for size. */
#define SIZE_float
#define SIZE_double SMALL
#define VECTOR_float VECTOR_LOOP
#define VECTOR_double
#define WIDE_float WIDE_LOOP
#define WIDE_double

/* out[0] = sum of A and, if TWO, out[1] = sum of B. These are expressions of g, x, w (elements of
 * the rows) and c (a number). */
#define ROW_SUMS(NAME, T, TWO, A, B)                                                          \
  SIZE_##T static void NAME##_##T(const T *g_, const T *x_, const T *w_, T number, int64_t n, \
                                  double out[2]) {                                            \
    enum { LANES = 16 / sizeof(T), CHAINS = TWO ? 2 : 4 };                                    \
    out[0] = out[1] = 0;                                                                      \
    for (int64_t at = 0; at < n; at += SUM_BLOCK) {                                           \
      int64_t m = n - at < SUM_BLOCK ? n - at : SUM_BLOCK, i = 0;                             \
      vec_##T a[4] = {{0}, {0}, {0}, {0}}, b[2] = {{0}, {0}}, c = number - (vec_##T){0};      \
      (void)c;                                                                                \
      for (; i + CHAINS * LANES <= m; i += CHAINS * LANES)                                    \
        UNROLLED for (int l = 0; l < CHAINS; l++) {                                           \
          vec_##T g, x, w;                                                                    \
          const int64_t k = at + i + l * LANES;                                               \
          memcpy(&g, g_ + k, sizeof g), memcpy(&x, x_ + k, sizeof x),                         \
              memcpy(&w, w_ + k, sizeof w);                                                   \
          (void)g, (void)x, (void)w;                                                          \
          a[l] += A;                                                                          \
          if (TWO) b[l & 1] += B;                                                             \
        }                                                                                     \
      vec_##T a_ = a[0] + a[1] + (a[2] + a[3]), b_ = b[0] + b[1];                             \
      T low = 0, high = 0;                                                                    \
      for (int l = 0; l < LANES; l++) low += a_[l], high += b_[l];                            \
      for (; i < m; i++) {                                                                    \
        T g = g_[at + i], x = x_[at + i], w = w_[at + i], c = number;                         \
        (void)g, (void)x, (void)w, (void)c;                                                   \
        low += A;                                                                             \
        if (TWO) high += B;                                                                   \
      }                                                                                       \
      out[0] += (double)low, out[1] += (double)high;                                          \
    }                                                                                         \
  }

#define ROW_KERNELS(T)                              \
  ROW_SUMS(plain, T, false, x, x)                   \
  ROW_SUMS(squares, T, false, (x - c) * (x - c), x) \
  ROW_SUMS(dots, T, true, g, g *(x - c))            \
  ROW_SUMS(weighted_dots, T, true, (g * w), g * w * (x - c))

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wshadow"
#else
#pragma GCC diagnostic ignored "-Wshadow"
#endif
ROW_KERNELS(float)
ROW_KERNELS(double)

/* ------------------------------------------------------------ layer_norm: kernels */

typedef struct {
  int64_t rows, width;
  double eps;
  const void *x, *g, *weight, *bias; /* weight, bias: one row, or NULL */
  void *y, *mean, *rstd;             /* y is dx on the way back */
  double *dw, *db;                   /* one row each, or NULL */
} Layer;

/* A row stays in the nearest cache while its statistics, then its values are computed. */
#define LAYER_FORWARD(T)                                                                           \
  SIZE_##T static void layer_forward_##T(const Layer *l) {                                         \
    const T *w = l->weight, *b = l->bias, *x = l->x;                                               \
    T *y = l->y;                                                                                   \
    for (int64_t r = 0; r < l->rows && !poll_stops(2 * l->width);                                  \
         r++, x += l->width, y += l->width) {                                                      \
      double sums[2], n = (double)l->width;                                                        \
      plain_##T(x, x, x, 0, l->width, sums);                                                       \
      const T mean = (T)(sums[0] / n);                                                             \
      squares_##T(x, x, x, mean, l->width, sums);                                                  \
      const T rstd = (T)(1 / sqrt(sums[0] / n + l->eps));                                          \
      ((T *)l->mean)[r] = mean;                                                                    \
      ((T *)l->rstd)[r] = rstd;                                                                    \
      if (w && b)                                                                                  \
        WIDE_##T for (int64_t i = 0; i < l->width; i++) y[i] = (x[i] - mean) * rstd * w[i] + b[i]; \
      else if (w)                                                                                  \
        VECTOR_##T for (int64_t i = 0; i < l->width; i++) y[i] = (x[i] - mean) * rstd * w[i];      \
      else if (b)                                                                                  \
        VECTOR_##T for (int64_t i = 0; i < l->width; i++) y[i] = (x[i] - mean) * rstd + b[i];      \
      else VECTOR_##T for (int64_t i = 0; i < l->width; i++) y[i] = (x[i] - mean) * rstd;          \
    }                                                                                              \
  }

/* dx = rstd (gw - mean gw - x^ mean(gw x^)), x^ = (x - mean) rstd, gw = g w. */
#define LAYER_DX(T)                                                                         \
  SIZE_##T static void layer_dx_##T(const Layer *l, const T *x, const T *g, T mean, T rstd, \
                                    T *dx) {                                                \
    const T *w = l->weight;                                                                 \
    double sums[2], n = (double)l->width;                                                   \
    if (w) weighted_dots_##T(g, x, w, mean, l->width, sums);                                \
    else dots_##T(g, x, x, mean, l->width, sums);                                           \
    const T a = (T)(sums[0] / n), b = (T)(sums[1] / n * (double)rstd * (double)rstd);       \
    if (w)                                                                                  \
      WIDE_##T for (int64_t i = 0; i < l->width; i++)                                       \
          dx[i] = rstd * (g[i] * w[i] - a - (x[i] - mean) * b);                             \
    else                                                                                    \
      VECTOR_##T for (int64_t i = 0; i < l->width; i++)                                     \
          dx[i] = rstd * (g[i] - a - (x[i] - mean) * b);                                    \
  }

/* Sums columns over GROUP rows in their own type, four at a time, and these sums in double. */
enum { GROUP = 16 };
#define LAYER_BACKWARD(T)                                                                          \
  SIZE_##T static void layer_columns_##T(const Layer *l, int64_t from, int64_t to, T *dw, T *db) { \
    memset(dw, 0, 2 * (size_t)l->width * sizeof(T)); /* db follows */                              \
    int64_t r = from, n = l->width;                                                                \
    for (; r + 4 <= to; r += 4) {                                                                  \
      const T *x = (const T *)l->x + r * n, *g = (const T *)l->g + r * n;                          \
      const T *m = (const T *)l->mean + r, *k = (const T *)l->rstd + r;                            \
      const T m0 = m[0], m1 = m[1], m2 = m[2], m3 = m[3], k0 = k[0], k1 = k[1], k2 = k[2],         \
              k3 = k[3];                                                                           \
      VECTOR_##T for (int64_t i = 0; i < n; i++) {                                                 \
        T g0 = g[i], g1 = g[i + n], g2 = g[i + 2 * n], g3 = g[i + 3 * n];                          \
        dw[i] += (g0 * ((x[i] - m0) * k0) + g1 * ((x[i + n] - m1) * k1)) +                         \
                 (g2 * ((x[i + 2 * n] - m2) * k2) + g3 * ((x[i + 3 * n] - m3) * k3));              \
        db[i] += (g0 + g1) + (g2 + g3);                                                            \
      }                                                                                            \
    }                                                                                              \
    for (; r < to; r++) {                                                                          \
      const T *x = (const T *)l->x + r * n, *g = (const T *)l->g + r * n;                          \
      const T mean = ((const T *)l->mean)[r], rstd = ((const T *)l->rstd)[r];                      \
      VECTOR_##T for (int64_t i = 0; i < n; i++) dw[i] += g[i] * ((x[i] - mean) * rstd),           \
          db[i] += g[i];                                                                           \
    }                                                                                              \
    VECTOR_##T for (int64_t i = 0; i < n; i++) l->dw[i] += (double)dw[i],                          \
        l->db[i] += (double)db[i];                                                                 \
  }                                                                                                \
  SIZE_##T static void layer_backward_##T(const Layer *l, void *scratch) {                         \
    T *dw = scratch, *db = dw ? dw + l->width : NULL;                                              \
    for (int64_t from = 0; from < l->rows && !poll_stops(4 * GROUP * l->width); from += GROUP) {   \
      int64_t to = from + GROUP < l->rows ? from + GROUP : l->rows;                                \
      for (int64_t r = from; l->y && r < to; r++)                                                  \
        layer_dx_##T(l, (const T *)l->x + r * l->width, (const T *)l->g + r * l->width,            \
                     ((const T *)l->mean)[r], ((const T *)l->rstd)[r], (T *)l->y + r * l->width);  \
      if (l->dw) layer_columns_##T(l, from, to, dw, db);                                           \
    }                                                                                              \
  }
LAYER_FORWARD(float)
LAYER_FORWARD(double)
LAYER_DX(float)
LAYER_DX(double)
LAYER_BACKWARD(float)
LAYER_BACKWARD(double)

typedef struct {
  void (*forward)(const Layer *l);
  void (*backward)(const Layer *l, void *scratch);
} LayerKernels;
#define LAYER_KERNELS(T) (&(const LayerKernels){layer_forward_##T, layer_backward_##T})
static const LayerKernels *const layer_kernels[DT_COUNT] = {[DT_F32] = LAYER_KERNELS(float),
                                                            [DT_F64] = LAYER_KERNELS(double)};

static void *data_or_null(Tensor *t) { return t ? tensor_data(t) : NULL; }

static bool check_parameter(Tensor *x, Tensor *p) {
  if (p && p->dtype != x->dtype)
    fail(ERR_RUNTIME, "mixed dtype (CPU): %s",
         p->dtype == DT_F32 ? "all inputs must share same datatype."
                            : "expect parameter to have scalar type of Float");
  return !failed();
}

/* A vector of doubles as a tensor of this type and shape. */
ONCE static Tensor *from_doubles(const double *v, int ndim, const int64_t *sizes, DType d) {
  Tensor *y = failed() ? NULL : tensor_empty(ndim, sizes, d);
  char *at = y ? tensor_data(y) : NULL;
  for (int64_t i = 0; y && i < y->numel; i++) element_store_f(at + i * dtype_bytes(d), d, v[i]);
  return y;
}

/* ------------------------------------------------------------ gradients on the tape */

/* x^, which is x normalised over `dims`, and 1 / deviation in rstd; recorded, for the gradients of
 * y = x^ w + b. */
ONCE static Tensor *normalise_over(Tensor *x, Ints dims, double eps, Tensor **rstd) {
  Tensor *centred = t_sub(x, t_mean(x, dims, true, DT_NONE));
  *rstd = t_rsqrt(t_add_f(t_mean(t_mul(centred, centred), dims, true, DT_NONE), eps));
  return t_mul(centred, *rstd);
}

/* t with the value of `given`, but the history of t. */
ONCE static Tensor *valued(Tensor *t, Tensor *given) { return t_add(t, t_detach(t_sub(given, t))); }

/* The same for statistics that are given: their values count, and they depend on x as those of x
 * do. */
ONCE static Tensor *normalise_by(Tensor *x, Ints dims, Tensor *mean, Tensor **rstd) {
  Tensor *centred = t_sub(x, valued(t_mean(x, dims, true, DT_NONE), mean)),
         *var = t_mean(t_mul(centred, centred), dims, true, DT_NONE);
  *rstd = t_rsqrt(valued(var, t_pow(*rstd, tensor_wrapped_f(-2))));
  return t_mul(centred, *rstd);
}

/* What a gradient op of normalisation is wanted to give. */
enum { OF_INPUT, OF_WEIGHT, OF_BIAS };
#define WANTED(n) ((Bools){3, (const int64_t[]){needs(n, 0), needs(n, 1), needs(n, 2)}})

ONCE static bool check_mask(Bools mask) {
  if (mask.n != 3) fail(ERR_RUNTIME, "expected output_mask to have 3 elements, but got %d", mask.n);
  return !failed();
}

/* False with an error unless t, if there is one, has n elements of x's type. */
ONCE static bool check_size(const Tensor *x, const Tensor *t, const char *name, int64_t n) {
  if (!t || failed()) return !failed();
  if (t->numel != n)
    fail(ERR_RUNTIME, "expected %s to have %lld elements, but got %lld", name, (Shown)n,
         (Shown)t->numel);
  else if (t->dtype != x->dtype)
    fail(ERR_RUNTIME, "expected %s to have scalar type %s but found %s", name, legacy(x),
         legacy(t));
  return !failed();
}

/* Whether an op of these is differentiated. */
ONCE static bool is_tracked(Tensor *g, Tensor *x, Tensor *weight) {
  return gradient_is_recorded() &&
         (tensor_tracked(g) || tensor_tracked(x) || (weight && tensor_tracked(weight)));
}

ONCE static Tensor *tape_dx(Tensor *gw, Tensor *unit, Tensor *rstd, Ints dims) {
  Tensor *along = t_mul(unit, t_mean(t_mul(gw, unit), dims, true, DT_NONE));
  return t_mul(rstd, t_sub(t_sub(gw, t_mean(gw, dims, true, DT_NONE)), along));
}

/* ------------------------------------------------------------ layer_norm */

static Ints last_dims(const Tensor *x, int64_t count) {
  int64_t *dims = scratch_array(count ? count : 1, sizeof *dims);
  for (int64_t i = 0; dims && i < count; i++) dims[i] = x->ndim - count + i;
  return (Ints){dims ? (int32_t)count : 0, dims};
}

static Layer layer_of(Tensor *x, int64_t count, Tensor *weight, Tensor *bias, double eps) {
  Layer l = {.rows = 1,
             .width = 1,
             .eps = eps,
             .x = tensor_data(x),
             .weight = data_or_null(weight),
             .bias = data_or_null(bias)};
  for (int i = 0; i < x->ndim; i++) *(i < x->ndim - count ? &l.rows : &l.width) *= x->sizes[i];
  return l;
}

/* unit, rstd: from normalise_over or normalise_by. */
ONCE static void layer_tape(Tensor *g, Tensor *unit, Tensor *rstd, Tensor *weight, Ints dims,
                            Bools mask, Tensor **out) {
  if (mask.v[OF_INPUT]) out[OF_INPUT] = tape_dx(weight ? t_mul(g, weight) : g, unit, rstd, dims);
  if (mask.v[OF_WEIGHT]) out[OF_WEIGHT] = t_mul(g, unit);
  if (mask.v[OF_BIAS]) out[OF_BIAS] = g;
}

ONCE static void layer_plain(Tensor *g, Tensor *x, int64_t count, Tensor *mean, Tensor *rstd,
                             Tensor *weight, Bools mask, Tensor **out) {
  x = t_contiguous(x);
  if (weight) weight = t_contiguous(weight);
  g = t_contiguous(g), mean = t_contiguous(mean), rstd = t_contiguous(rstd);
  if (blocked(x, g, mean) || !rstd) return;
  DType d = tensor_dtype(x);
  const LayerKernels *kernels = KERNEL_OF(layer_kernels, d, "LayerNormBackwardKernelImpl");
  if (!kernels) return;
  Layer l = layer_of(x, count, weight, NULL, 0);
  l.g = tensor_data(g), l.mean = tensor_data(mean), l.rstd = tensor_data(rstd);
  if (mask.v[OF_INPUT] && (out[OF_INPUT] = tensor_empty(x->ndim, x->sizes, d)))
    l.y = tensor_data(out[OF_INPUT]);
  size_t width = (size_t)l.width;
  void *columns = NULL;
  if (mask.v[OF_WEIGHT] || mask.v[OF_BIAS]) {
    l.dw = scratch_array(l.width, 2 * sizeof(double));
    columns = scratch_array(l.width, 2 * sizeof(double));
    if (failed()) return;
    memset(l.dw, 0, 2 * width * sizeof(double));
    l.db = l.dw + width;
  }
  kernels->backward(&l, columns);
  if (l.dw && l.rows >= 4) TOOK(LAYER_COLUMNS);
  const int64_t *shape = x->sizes + x->ndim - count;
  if (mask.v[OF_WEIGHT]) out[OF_WEIGHT] = from_doubles(l.dw, (int)count, shape, d);
  if (mask.v[OF_BIAS]) out[OF_BIAS] = from_doubles(l.db, (int)count, shape, d);
}

static bool check_normalized(Tensor *x, Ints shape, const char *star, Tensor *weight, Tensor *bias);

ONCE static bool check_layer(Tensor *g, Tensor *x, Ints shape, Tensor *mean, Tensor *rstd,
                             Tensor *weight, Tensor *bias, Bools mask) {
  if (!check_mask(mask) || !check_normalized(x, shape, ", ", weight, bias)) return false;
  const int64_t rows = sizes_numel(x->ndim - shape.n, x->sizes);
  if (!tensor_same_shape(g, x))
    fail(ERR_RUNTIME, "expected grad_out to have the shape %s of input, but got %s", shape_text(x),
         shape_text(g));
  return check_size(x, g, "grad_out", x->numel) && check_size(x, mean, "mean", rows) &&
         check_size(x, rstd, "rstd", rows) && check_parameter(x, weight);
}

ONCE static Tensor *as_statistics(Tensor *t, const Tensor *x, int64_t count) {
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < x->ndim; i++) sizes[i] = i < x->ndim - count ? x->sizes[i] : 1;
  return t_reshape(t, x->ndim, sizes);
}

void t_native_layer_norm_backward(Tensor *g, Tensor *x, Ints shape, Tensor *mean, Tensor *rstd,
                                  Tensor *weight, Tensor *bias, Bools mask, Tensor *out[3]) {
  OP_ENTERED(t_native_layer_norm_backward, "native_layer_norm_backward", g, x, shape, mean, rstd,
             weight, bias, mask, out);
  IN_FLOAT_MIXED_OUT(3, out,
                     t_native_layer_norm_backward(g, x, shape, mean, rstd, weight, bias, mask, out),
                     x, g, mean, rstd, weight, bias)
  out[0] = out[1] = out[2] = NULL;
  if (blocked(g, x, mean) || !rstd || !check_layer(g, x, shape, mean, rstd, weight, bias, mask))
    return;
  if (!is_tracked(g, x, weight) && !tensor_absent(g)) {
    layer_plain(g, x, shape.n, mean, rstd, weight, mask, out);
    return;
  }
  Ints dims = last_dims(x, shape.n);
  rstd = as_statistics(rstd, x, shape.n);
  Tensor *unit = normalise_by(x, dims, as_statistics(mean, x, shape.n), &rstd);
  layer_tape(g, unit, rstd, weight, dims, mask, out);
  for (int i = OF_WEIGHT; i <= OF_BIAS; i++)
    if (out[i]) out[i] = t_sum_to(out[i], shape.n, shape.v);
}

GRAD(NativeLayerNormBackward0,
     "input weight result1 result2 bias | -:int -:int normalized_shape:rest")
{
  Tensor *x = saved_tensor(n, 0), *weight = saved_tensor(n, 1), *rstd;
  if (!g[0] || blocked(x)) return;
  const Ints shape = {(int)n->numbers[0].i, x->sizes + x->ndim - n->numbers[0].i};
  const Bools mask = WANTED(n);
  if (gradient_is_recorded() || (tensor_absent(g[0]) && !by_ops) || x->form) {
    Ints dims = last_dims(x, shape.n);
    Tensor *unit = normalise_over(x, dims, n->numbers[1].f, &rstd);
    layer_tape(g[0], unit, rstd, weight, dims, mask, gi);
    return;
  }
  t_native_layer_norm_backward(g[0], x, shape, saved_tensor(n, 2), saved_tensor(n, 3), weight,
                               by_ops ? saved_tensor(n, 4) : NULL, mask, gi);
}

/* `star`: how torch writes "any dims before" in the message. */
ONCE static bool check_normalized(Tensor *x, Ints shape, const char *star, Tensor *weight,
                                  Tensor *bias) {
  if (shape.n < 1) {
    fail(ERR_RUNTIME, "Expected normalized_shape to be at least 1-dimensional, i.e., containing at "
                      "least one element, but got normalized_shape = []");
    return false;
  }
  const char *text = sizes_text(shape.n, shape.v);
  Tensor *given[2] = {weight, bias};
  static const char *const names[2] = {"weight", "bias"};
  for (int i = 0; i < 2; i++)
    if (given[i] && !sizes_equal(given[i]->ndim, given[i]->sizes, shape.n, shape.v))
      fail(ERR_RUNTIME,
           "Expected %s to be of same shape as normalized_shape, but got %s of shape %s and "
           "normalized_shape = %s",
           names[i], names[i], shape_text(given[i]), text);
  if (shape.n > x->ndim || !sizes_equal(shape.n, shape.v, shape.n, x->sizes + x->ndim - shape.n))
    fail(ERR_RUNTIME,
         "Given normalized_shape=%s, expected input with shape [*%s%s, but got input of size%s",
         text, star, text + 1, shape_text(x));
  return !failed();
}

void t_native_layer_norm(Tensor *x, Ints shape, Tensor *weight, Tensor *bias, double eps,
                         Tensor *out[3]) {
  OP_ENTERED(t_native_layer_norm, "native_layer_norm", x, shape, weight, bias, eps, out);
  IN_FLOAT_MIXED_OUT(3, out, t_native_layer_norm(x, shape, weight, bias, eps, out), x, weight, bias)
  out[0] = out[1] = out[2] = NULL;
  if (blocked(x) || !check_normalized(x, shape, ", ", weight, bias)) return;
  if (!check_parameter(x, weight) || !check_parameter(x, bias)) return;
  const LayerKernels *kernels = KERNEL_OF(layer_kernels, tensor_dtype(x), "LayerNormKernelImpl");
  if (!kernels) return;
  Tensor *inputs[3] = {x, weight, bias};
  Node *n = node_new_list(&NativeLayerNormBackward0, 5, 2 + shape.n, 3, inputs);
  save(n, 4, bias);
  for (int i = 0; n && i < shape.n; i++) num_i(n, 2 + i, shape.v[i]);
  save(n, 0, x);
  save(n, 1, weight);
  num_i(n, 0, shape.n);
  num_f(n, 1, eps);
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < x->ndim; i++) sizes[i] = i < x->ndim - shape.n ? x->sizes[i] : 1;
  Tensor *plain = NULL;
  WITHOUT_GRAD_BLOCK {
    plain = t_contiguous(x);
    if (weight) weight = t_contiguous(weight);
    if (bias) bias = t_contiguous(bias);
  }
  DType d = tensor_dtype(x);
  for (int i = 0; i < 3 && !failed(); i++) out[i] = tensor_empty(x->ndim, i ? sizes : x->sizes, d);
  if (!failed()) {
    const bool absent = tensor_absent(out[0]);
    Layer l = layer_of(plain, shape.n, weight, bias, eps);
    l.y = tensor_data(out[0]), l.mean = tensor_data(out[1]), l.rstd = tensor_data(out[2]);
    if (!absent) kernels->forward(&l);
    TOOK(LAYER_ROWS);
    save(n, 2, out[1]);
    save(n, 3, out[2]);
  }
  out[0] = set_history(failed() ? NULL : out[0], n);
}

Tensor *t_layer_norm(Tensor *x, Ints shape, Tensor *weight, Tensor *bias, double eps) {
  OP_ENTERED(t_layer_norm, "layer_norm", x, shape, weight, bias, eps);
  Tensor *out[3];
  t_native_layer_norm(x, shape, weight, bias, eps, out);
  return out[0];
}

/* ------------------------------------------------------------ rows of channels: kernels */

typedef struct Rows Rows;
typedef void RowsMap(const Rows *s);
typedef void RowsSums(const Rows *s, double *sums, double *products);
typedef struct {
  RowsMap *shift, *combine;
  RowsSums *plain, *squares, *dots;
} RowsKernels;

/* rows x length. Row r belongs to channel r % channels, whose numbers are in the arrays (of the
 * tensor's type). */
struct Rows {
  const RowsKernels *kernels;
  int64_t rows, length, channels;
  const void *x, *g;
  void *y;
  const void *centre, *a, *b, *c; /* y = a g + b (x - centre) + c */
};

#define ROWS_MAP(NAME, T, VALUE)                                                            \
  SIZE_##T static void NAME##_##T(const Rows *s) {                                          \
    const T *centre = s->centre, *a_ = s->a, *b_ = s->b, *c_ = s->c;                        \
    for (int64_t r = 0; s->length == 1 && r < s->rows && !poll_stops(2 * s->channels);      \
         r += s->channels) {                                                                \
      const T *x = (const T *)s->x + r, *g = s->g ? (const T *)s->g + r : x;                \
      T *y = (T *)s->y + r;                                                                 \
      (void)g, (void)a_;                                                                    \
      VECTOR_LOOP for (int64_t i = 0; i < s->channels; i++) {                               \
        T m = centre[i], a = a_ ? a_[i] : 0, b = b_[i], c = c_[i];                          \
        (void)a;                                                                            \
        y[i] = VALUE;                                                                       \
      }                                                                                     \
    }                                                                                       \
    for (int64_t r = 0; s->length != 1 && r < s->rows && !poll_stops(2 * s->length); r++) { \
      const T *x = (const T *)s->x + r * s->length,                                         \
              *g = s->g ? (const T *)s->g + r * s->length : x;                              \
      T *y = (T *)s->y + r * s->length;                                                     \
      int64_t k = r % s->channels;                                                          \
      const T m = centre[k], a = a_ ? a_[k] : 0, b = b_[k], c = c_[k];                      \
      (void)g, (void)a;                                                                     \
      VECTOR_LOOP for (int64_t i = 0; i < s->length; i++) y[i] = VALUE;                     \
    }                                                                                       \
  }
#define MAP_KERNELS(T)                   \
  ROWS_MAP(shift, T, (x[i] - m) * b + c) \
  ROWS_MAP(combine, T, (a * g[i] + b * (x[i] - m) + c))

/* Sums A (and B) for each channel k: by whole rows, or across the channels if rows have one
 * element. */
#define CHANNEL_SUMS(NAME, ROW, T, A, B)                                                      \
  SIZE_##T static void NAME##_##T(const Rows *s, double *sums, double *products) {            \
    const T *c = s->centre;                                                                   \
    (void)products, (void)c;                                                                  \
    if (s->length == 1) {                                                                     \
      for (int64_t r = 0; r < s->rows; r += s->channels) {                                    \
        const T *x = (const T *)s->x + r, *g = s->g ? (const T *)s->g + r : x;                \
        (void)g;                                                                              \
        VECTOR_LOOP for (int64_t k = 0; k < s->channels; k++) sums[k] += A;                   \
        if (products) VECTOR_LOOP for (int64_t k = 0; k < s->channels; k++) products[k] += B; \
      }                                                                                       \
      return;                                                                                 \
    }                                                                                         \
    for (int64_t r = 0, k = 0; r < s->rows && !poll_stops(2 * s->length);                     \
         r++, k = k + 1 == s->channels ? 0 : k + 1) {                                         \
      const T *x = (const T *)s->x + r * s->length,                                           \
              *g = s->g ? (const T *)s->g + r * s->length : x;                                \
      double two[2];                                                                          \
      ROW##_##T(g, x, x, c ? c[k] : 0, s->length, two);                                       \
      sums[k] += two[0];                                                                      \
      if (products) products[k] += two[1];                                                    \
    }                                                                                         \
  }
#define ROWS_SUMS(T)                                                                       \
  CHANNEL_SUMS(rows_plain, plain, T, (double)x[k], 0)                                      \
  CHANNEL_SUMS(rows_squares, squares, T, (double)(x[k] - c[k]) * (double)(x[k] - c[k]), 0) \
  CHANNEL_SUMS(rows_dots, dots, T, (double)g[k], (double)g[k] * (double)(x[k] - c[k]))
MAP_KERNELS(float)
MAP_KERNELS(double)
ROWS_SUMS(float)
ROWS_SUMS(double)

#define ROWS_KERNELS(T) \
  (&(const RowsKernels){shift_##T, combine_##T, rows_plain_##T, rows_squares_##T, rows_dots_##T})
static const RowsKernels *const rows_kernels[DT_COUNT] = {[DT_F32] = ROWS_KERNELS(float),
                                                          [DT_F64] = ROWS_KERNELS(double)};

ONCE static double *zero_doubles(int64_t n) {
  double *v = scratch_array(n ? n : 1, sizeof *v);
  if (v) memset(v, 0, (size_t)n * sizeof *v);
  return v;
}

/* The k-th number of a vector, or `otherwise` if there is none. */
ONCE static double number_at(const Tensor *t, int64_t k, double otherwise) {
  return t ? tensor_get_f(t, t->ndim ? k * t->strides[0] : 0) : otherwise;
}

/* ------------------------------------------------------------ batch_norm */

/* x as rows of channels. Without kernels for the type, an error names `kernel`. */
static Rows channel_rows(Tensor *x, const char *kernel) {
  Rows s = {.kernels = KERNEL_OF(rows_kernels, tensor_dtype(x), kernel),
            .rows = x->sizes[0] * x->sizes[1],
            .length = 1,
            .channels = x->sizes[1],
            .x = tensor_data(x)};
  for (int i = 2; i < x->ndim; i++) s.length *= x->sizes[i];
  if (x->numel == 0) s.rows = 0;
  return s;
}

ONCE static Ints batch_dims(const Tensor *x) {
  int64_t *dims = scratch_array(x->ndim, sizeof *dims);
  for (int i = 0; dims && i < x->ndim; i++) dims[i > 1 ? i - 1 : 0] = i == 1 ? 0 : i;
  if (dims) dims[0] = 0;
  return (Ints){dims ? x->ndim - 1 : 0, dims};
}

/* (C) as (C, 1, ...), to be broadcast over x. */
ONCE static Tensor *as_channels(Tensor *v, const Tensor *x) {
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < x->ndim - 1; i++) sizes[i] = i ? 1 : x->sizes[1];
  return v ? t_reshape(v, x->ndim - 1, sizes) : NULL;
}

enum { BN_X, BN_WEIGHT, BN_RUNNING_MEAN, BN_RUNNING_VAR, BN_MEAN, BN_RSTD, BN_SAVES };

/* rstd: 1 / deviation, with unit, the normalised x, both recorded. */
ONCE static void batch_tape(Tensor *g, Tensor *x, Tensor *weight, Tensor *unit, Tensor *rstd,
                            bool training, Bools mask, Tensor **out) {
  Ints dims = batch_dims(x);
  Tensor *gw = weight ? t_mul(g, as_channels(weight, x)) : g;
  if (mask.v[OF_INPUT]) out[OF_INPUT] = training ? tape_dx(gw, unit, rstd, dims) : t_mul(gw, rstd);
  if (mask.v[OF_WEIGHT]) out[OF_WEIGHT] = t_sum(t_mul(g, unit), dims, false, DT_NONE);
  if (mask.v[OF_BIAS]) out[OF_BIAS] = t_sum(g, dims, false, DT_NONE);
}

/* x normalised in evaluation, and 1 / deviation in rstd; recorded. */
ONCE static Tensor *normalise_fixed(Tensor *x, Tensor *mean, Tensor *var, double eps,
                                    Tensor **rstd) {
  *rstd = as_channels(t_rsqrt(t_add_f(var, eps)), x);
  return t_mul(t_sub(x, as_channels(mean, x)), *rstd);
}

/* dx = rstd w (g - mean g - x^ mean(g x^)), dw = sum g x^, db = sum g; in evaluation dx = rstd w
 * g. `mean` and `rstd` are the running mean and variance then. */
ONCE static void batch_plain(Tensor *g, Tensor *x, Tensor *weight, Tensor *mean, Tensor *rstd,
                             bool training, double eps, Bools mask, Tensor **out) {
  x = t_contiguous(x);
  g = t_contiguous(g);
  if (blocked(x, g, mean) || !rstd) return;
  DType d = tensor_dtype(x);
  mean = t_contiguous(elementwise_cast(mean, d));
  Rows s = channel_rows(x, "batch_norm_backward_cpu");
  int64_t count = s.channels ? x->numel / s.channels : 0;
  double *db = zero_doubles(s.channels), *dw = zero_doubles(s.channels), *numbers[3];
  for (int i = 0; i < 3; i++) numbers[i] = zero_doubles(s.channels);
  if (failed()) return;
  s.g = tensor_data(g), s.centre = tensor_data(mean);
  if (training || mask.v[OF_WEIGHT] || mask.v[OF_BIAS]) s.kernels->dots(&s, db, dw);
  for (int64_t k = 0; k < s.channels; k++) {
    double r = number_at(rstd, k, 1);
    if (!training) r = 1 / sqrt(r + eps);
    double scale = r * number_at(weight, k, 1);
    numbers[0][k] = scale;
    numbers[1][k] = training ? -scale * r * r * dw[k] / (double)count : 0;
    numbers[2][k] = training ? -scale * db[k] / (double)count : 0;
    dw[k] *= r;
  }
  if (mask.v[OF_INPUT]) {
    Tensor *t[3], *y;
    for (int i = 0; i < 3; i++) t[i] = from_doubles(numbers[i], 1, &s.channels, d);
    y = out[OF_INPUT] = tensor_empty(x->ndim, x->sizes, d);
    if (failed()) return;
    s.y = tensor_data(y), s.a = tensor_data(t[0]), s.b = tensor_data(t[1]), s.c = tensor_data(t[2]);
    s.kernels->combine(&s);
  }
  if (mask.v[OF_WEIGHT]) out[OF_WEIGHT] = from_doubles(dw, 1, &s.channels, d);
  if (mask.v[OF_BIAS]) out[OF_BIAS] = from_doubles(db, 1, &s.channels, d);
}

ONCE static bool check_batch(Tensor *g, Tensor *x, Tensor *weight, Tensor *mean, Tensor *rstd,
                             Bools mask) {
  if (!check_mask(mask)) return false;
  if (x->ndim < 2) fail(ERR_RUNTIME, "expected an input of two dimensions or more");
  else if (!tensor_same_shape(g, x))
    fail(ERR_RUNTIME, "expected grad_out to have the shape %s of input, but got %s", shape_text(x),
         shape_text(g));
  else if (!mean || !rstd || mean->numel != x->sizes[1] || rstd->numel != x->sizes[1])
    fail(ERR_RUNTIME, "expected statistics of %lld channels", (Shown)x->sizes[1]);
  else if (!KERNEL_OF(rows_kernels, tensor_dtype(x), "batch_norm_backward_cpu")) return false;
  return check_size(x, g, "grad_out", x->numel) && check_size(x, weight, "weight", x->sizes[1]);
}

void t_native_batch_norm_backward(Tensor *g, Tensor *x, Tensor *weight, Tensor *running_mean,
                                  Tensor *running_var, Tensor *mean, Tensor *rstd, bool training,
                                  double eps, Bools mask, Tensor *out[3]) {
  OP_ENTERED(t_native_batch_norm_backward, "native_batch_norm_backward", g, x, weight, running_mean,
             running_var, mean, rstd, training, eps, mask, out);
  IN_FLOAT_MIXED_OUT(3, out,
                     t_native_batch_norm_backward(g, x, weight, running_mean, running_var, mean,
                                                  rstd, training, eps, mask, out),
                     x, g, weight, running_mean, running_var, mean, rstd)
  out[0] = out[1] = out[2] = NULL;
  if (blocked(g, x)) return;
  if (!training) mean = running_mean, rstd = running_var;
  if (!check_batch(g, x, weight, mean, rstd, mask)) return;
  if (!is_tracked(g, x, weight) && !tensor_absent(g)) {
    batch_plain(g, x, weight, mean, rstd, training, eps, mask, out);
    return;
  }
  Tensor *scale = as_channels(rstd, x), *unit;
  if (training) unit = normalise_by(x, batch_dims(x), as_channels(mean, x), &scale);
  else unit = normalise_fixed(x, mean, rstd, eps, &scale);
  batch_tape(g, x, weight, unit, scale, training, mask, out);
}

GRAD(NativeBatchNormBackward0,
     "input weight running_mean running_var result1 result2 | training:bool eps:float")
{
  Tensor *x = saved_tensor(n, BN_X), *weight = saved_tensor(n, BN_WEIGHT), *rstd, *unit;
  if (!g[0] || blocked(x)) return;
  const bool training = n->numbers[0].i;
  const double eps = n->numbers[1].f;
  const Bools mask = WANTED(n);
  if (gradient_is_recorded() || (tensor_absent(g[0]) && !by_ops) || x->form) {
    if (training) unit = normalise_over(x, batch_dims(x), eps, &rstd);
    else
      unit = normalise_fixed(x, saved_tensor(n, BN_RUNNING_MEAN), saved_tensor(n, BN_RUNNING_VAR),
                             eps, &rstd);
    batch_tape(g[0], x, weight, unit, rstd, training, mask, gi);
    return;
  }
  t_native_batch_norm_backward(g[0], x, weight, saved_tensor(n, BN_RUNNING_MEAN),
                               saved_tensor(n, BN_RUNNING_VAR), saved_tensor(n, BN_MEAN),
                               saved_tensor(n, BN_RSTD), training, eps, mask, gi);
}

ONCE static bool check_channels(Tensor *x, Tensor *v, const char *name) {
  if (!v || failed()) return !failed();
  int64_t channels = x->ndim > 1 ? x->sizes[1] : 0;
  if (v->numel != channels)
    fail(ERR_RUNTIME, "%s should contain %lld elements not %lld", name, (Shown)channels,
         (Shown)v->numel);
  else if (v->ndim != 1)
    fail(ERR_RUNTIME, "TensorAccessor expected 1 dims but tensor has %d", v->ndim);
  return check_parameter(x, v);
}

/* Moves running statistics towards those of the batch; like PyTorch, without a new version. */
ONCE static void move_running(Tensor *t, const double *batch, double momentum, double correction) {
  Tensor *half = t ? narrow_form(t) : NULL;
  if (half) t = half;
  if (blocked(t) || !tensor_write_begin(t, false)) return;
  DType d = tensor_dtype(t);
  for (int64_t k = 0; k < t->numel; k++) {
    char *at = tensor_data(t) + k * (t->ndim ? t->strides[0] : 0) * dtype_bytes(d);
    element_store_f(at, d,
                    (1 - momentum) * element_load_f(at, d) + momentum * (batch[k] * correction));
  }
}

/* Mean and 1/sqrt(var + eps) of each channel, of the batch or of the running statistics. */
ONCE static void batch_statistics(Rows *s, DType d, Tensor *running_mean, Tensor *running_var,
                                  bool training, double momentum, double eps, Tensor *stats[2]) {
  if (form_made) {
    for (int i = 0; i < 2; i++) stats[i] = tensor_empty(1, &s->channels, d);
    return;
  }
  double *mean = zero_doubles(s->channels), *var = zero_doubles(s->channels);
  double count = (double)(s->channels ? s->rows / s->channels * s->length : 0);
  if (failed()) return;
  if (training) s->kernels->plain(s, mean, NULL);
  for (int64_t k = 0; k < s->channels; k++)
    mean[k] = training ? mean[k] / count : number_at(running_mean, k, 0);
  stats[0] = from_doubles(mean, 1, &s->channels, d);
  if (failed()) return;
  s->centre = tensor_data(stats[0]);
  if (training) s->kernels->squares(s, var, NULL);
  for (int64_t k = 0; k < s->channels; k++)
    var[k] = training ? var[k] / count : number_at(running_var, k, 1);
  if (training && s->rows) {
    move_running(running_mean, mean, momentum, 1);
    move_running(running_var, var, momentum, count / (count - 1));
  }
  for (int64_t k = 0; k < s->channels; k++) var[k] = 1 / sqrt(var[k] + eps);
  stats[1] = from_doubles(var, 1, &s->channels, d);
}

ONCE static Tensor *batch_values(Rows *s, Tensor *x, Tensor *weight, Tensor *bias, Tensor *rstd) {
  DType d = tensor_dtype(x);
  if (tensor_absent(x)) return tensor_empty(x->ndim, x->sizes, d);
  double *scale = zero_doubles(s->channels), *offset = zero_doubles(s->channels);
  for (int64_t k = 0; !failed() && k < s->channels; k++) {
    scale[k] = number_at(rstd, k, 1) * number_at(weight, k, 1);
    offset[k] = number_at(bias, k, 0);
  }
  Tensor *b = from_doubles(scale, 1, &s->channels, d),
         *c = from_doubles(offset, 1, &s->channels, d);
  Tensor *y = failed() ? NULL : tensor_empty(x->ndim, x->sizes, d);
  if (!y) return NULL;
  s->y = tensor_data(y), s->b = tensor_data(b), s->c = tensor_data(c);
  s->kernels->shift(s);
  return y;
}

static const char *const batch_kernel = "batch_norm", *const group_kernel = "GroupNormKernelImpl";

ONCE static bool check_batch_norm(Tensor *x, Tensor *weight, Tensor *bias, Tensor *mean,
                                  Tensor *var, bool training) {
  static const char *const op = "native_batch_norm";
  if (x->ndim < 2)
    return check_channels(x, mean, "running_mean") && check_channels(x, var, "running_var") &&
           check_channels(x, weight, "weight") && check_channels(x, bias, "bias") &&
           tensor_size(x, 1) >= 0;
  if (!training && (!mean || !var))
    fail(ERR_RUNTIME, "%s must be defined in evaluation mode",
         mean ? "running_var" : "running_mean");
  if (!mean != !var)
    fail(ERR_VALUE, "running_mean and running_var must either both be None or neither be None");
  if (!KERNEL_OF(rows_kernels, tensor_dtype(x), batch_kernel)) return false;
  return nn_check_constant(op, "running_mean", mean) && nn_check_constant(op, "running_var", var) &&
         check_channels(x, mean, "running_mean") && check_channels(x, var, "running_var") &&
         check_channels(x, weight, "weight") && check_channels(x, bias, "bias");
}

void t_native_batch_norm(Tensor *x, Tensor *weight, Tensor *bias, Tensor *running_mean,
                         Tensor *running_var, bool training, double momentum, double eps,
                         Tensor *out[3]) {
  OP_ENTERED(t_native_batch_norm, "native_batch_norm", x, weight, bias, running_mean, running_var,
             training, momentum, eps, out);
  IN_FLOAT_MIXED_OUT(
      3, out,
      t_native_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps, out),
      x, weight, bias, running_mean, running_var)
  out[0] = out[1] = out[2] = NULL;
  if (blocked(x) || !check_batch_norm(x, weight, bias, running_mean, running_var, training)) return;
  Tensor *inputs[3] = {x, weight, bias};
  Node *n = node_new_list(&NativeBatchNormBackward0, BN_SAVES, 2, 3, inputs);
  save(n, BN_X, x);
  save(n, BN_WEIGHT, weight);
  num_i(n, 0, training);
  num_f(n, 1, eps);
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    Tensor *plain = t_contiguous(x);
    if (!failed()) {
      Rows s = channel_rows(plain, batch_kernel);
      batch_statistics(&s, tensor_dtype(x), running_mean, running_var, training, momentum, eps,
                       out + 1);
      if (!failed()) y = batch_values(&s, plain, weight, bias, out[2]);
    }
  }
  for (int i = 1; i < 3 && !training && !failed(); i++) out[i] = tensor_none_of(tensor_dtype(x));
  save(n, BN_RUNNING_MEAN, running_mean);
  save(n, BN_RUNNING_VAR, running_var);
  save(n, BN_MEAN, out[1]);
  save(n, BN_RSTD, out[2]);
  out[0] = set_history(failed() ? NULL : y, n);
}

/* native_batch_norm in training. out[3] is empty: other devices keep something there. */
void t_batch_norm_with_update(Tensor *x, Tensor *weight, Tensor *bias, Tensor *running_mean,
                              Tensor *running_var, double momentum, double eps, Tensor *out[4]) {
  OP_ENTERED(t_batch_norm_with_update, "_batch_norm_with_update", x, weight, bias, running_mean,
             running_var, momentum, eps, out);
  t_native_batch_norm(x, weight, bias, running_mean, running_var, true, momentum, eps, out);
  out[0] = node_rename_with(out[0], "BatchNormWithUpdateBackward0",
                            "input weight running_mean running_var result1 result2 | - eps:float");
  out[3] = tensor_none_of(DT_U8);
}

Tensor *t_batch_norm(Tensor *x, Tensor *weight, Tensor *bias, Tensor *running_mean,
                     Tensor *running_var, bool training, double momentum, double eps) {
  OP_ENTERED(t_batch_norm, "batch_norm", x, weight, bias, running_mean, running_var, training,
             momentum, eps);
  Tensor *out[3];
  if (!failed() && x && x->numel == 0) { /* nothing to normalise, but a graph */
    Tensor *y = t_clone(x);
    if (weight) y = t_mul(y, t_select(weight, 0, 0));
    return bias ? t_add(y, t_select(bias, 0, 0)) : y;
  }
  t_native_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps, out);
  return out[0];
}

/* Refuses a shape with one value per channel, which is size 0 times sizes 2, ... */
ONCE static bool more_than_one(int ndim, const int64_t *sizes, const char *format) {
  int64_t count = ndim ? sizes[0] : 1;
  for (int i = 2; i < ndim; i++) count *= sizes[i];
  if (count == 1)
    fail(ERR_VALUE, "Expected more than 1 value per channel when training, got input size %s%s%s",
         format, sizes_text(ndim, sizes), *format ? ")" : "");
  return !failed();
}

/* batch_norm with the checks that nn.functional adds. */
Tensor *t_functional_batch_norm(Tensor *x, Tensor *running_mean, Tensor *running_var,
                                Tensor *weight, Tensor *bias, bool training, double momentum,
                                double eps) {
  OP_ENTERED(t_functional_batch_norm, "batch_norm", x, running_mean, running_var, weight, bias,
             training, momentum, eps);
  if (blocked(x)) return NULL;
  if (training && x->ndim == 0) return fail(ERR_INDEX, "tuple index out of range");
  if (training && !more_than_one(x->ndim, x->sizes, "torch.Size(")) return NULL;
  if (training && eps <= 0)
    return fail(ERR_VALUE, "batch_norm eps must be positive during training, but got %s",
                number_text(eps));
  if (eps < 0)
    return fail(ERR_VALUE, "batch_norm eps must be non-negative, but got %s", number_text(eps));
  return t_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps);
}

/* ------------------------------------------------------------ group_norm */

/* x as (samples, groups, elements), to be normalised over the last. */
ONCE static Tensor *by_group(Tensor *x, int64_t groups) {
  const int64_t split[3] = {x->sizes[0], groups, -1};
  return t_reshape(x, 3, split);
}

/* unit, rstd: from normalise_over or normalise_by. */
ONCE static void group_tape(Tensor *g, Tensor *x, Tensor *weight, int64_t groups, Tensor *unit,
                            Tensor *rstd, Bools mask, Tensor **out) {
  int64_t dim = 2;
  Ints over = {1, &dim}, dims = batch_dims(x);
  Tensor *gw = weight ? t_mul(g, as_channels(weight, x)) : g;
  if (mask.v[OF_INPUT])
    out[OF_INPUT] = t_reshape(tape_dx(by_group(gw, groups), unit, rstd, over), x->ndim, x->sizes);
  if (mask.v[OF_WEIGHT])
    out[OF_WEIGHT] = t_sum(t_mul(g, t_reshape(unit, x->ndim, x->sizes)), dims, false, DT_NONE);
  if (mask.v[OF_BIAS]) out[OF_BIAS] = t_sum(g, dims, false, DT_NONE);
}

/* With gw = g w in a group: dx = rstd (gw - mean gw - x^ mean(gw x^)). */
ONCE static void group_numbers(const Rows *s, int64_t per_group, Tensor *weight, int64_t channels,
                               const double *rstd, const double *sums, const double *products,
                               double *const numbers[3]) {
  for (int64_t r = 0; r < s->rows; r += per_group) {
    double low = 0, high = 0, k = rstd[r / per_group], count = (double)(per_group * s->length);
    for (int64_t i = r; i < r + per_group; i++) {
      low += sums[i] * number_at(weight, i % channels, 1);
      high += products[i] * number_at(weight, i % channels, 1);
    }
    for (int64_t i = r; i < r + per_group; i++) {
      numbers[0][i] = k * number_at(weight, i % channels, 1);
      numbers[1][i] = -k * k * k * high / count;
      numbers[2][i] = -k * low / count;
    }
  }
}

/* Statistics of groups: centre[r] and rstd[group], from rows that are channels of their own. */
ONCE static bool group_statistics(Rows *s, DType d, int64_t per_group, double eps, Tensor **centre,
                                  double **rstd) {
  double *mean = zero_doubles(s->rows), *var = zero_doubles(s->rows),
         count = (double)(per_group * s->length);
  *rstd = zero_doubles(s->rows);
  if (failed()) return false;
  s->kernels->plain(s, mean, NULL);
  for (int64_t r = 0; r < s->rows; r += per_group) {
    double sum = 0;
    for (int64_t i = r; i < r + per_group; i++) sum += mean[i];
    for (int64_t i = r; i < r + per_group; i++) mean[i] = sum / count;
  }
  *centre = from_doubles(mean, 1, &s->rows, d);
  if (failed()) return false;
  s->centre = tensor_data(*centre);
  s->kernels->squares(s, var, NULL);
  for (int64_t r = 0; r < s->rows; r += per_group) {
    double sum = 0;
    for (int64_t i = r; i < r + per_group; i++) sum += var[i];
    (*rstd)[r / per_group] = 1 / sqrt(sum / count + eps);
  }
  return true;
}

/* The rows of x, where every (sample, channel) row is a channel of its own. */
static Rows group_rows(Tensor *x, const char *kernel) {
  Rows s = channel_rows(x, kernel);
  s.channels = s.rows ? s.rows : 1;
  return s;
}

ONCE static Tensor *rows_run(Rows *s, RowsMap *map, Tensor *x, double *const numbers[3]) {
  DType d = tensor_dtype(x);
  Tensor *t[3], *y = failed() ? NULL : tensor_empty(x->ndim, x->sizes, d);
  for (int i = 0; i < 3; i++) t[i] = from_doubles(numbers[i], 1, &s->rows, d);
  if (failed()) return NULL;
  s->y = tensor_data(y), s->a = tensor_data(t[0]), s->b = tensor_data(t[1]),
  s->c = tensor_data(t[2]);
  map(s);
  return y;
}

ONCE static void group_plain(Tensor *g, Tensor *x, Tensor *centres, Tensor *kept, Tensor *weight,
                             int64_t groups, Bools mask, Tensor **out) {
  x = t_contiguous(x);
  g = t_contiguous(g), centres = t_contiguous(centres), kept = t_contiguous(kept);
  if (blocked(x, g, centres) || !kept) return;
  DType d = tensor_dtype(x);
  Rows s = group_rows(x, "GroupNormBackwardKernelImpl");
  int64_t channels = x->sizes[1], per_group = channels / groups;
  double *rstd, *sums = zero_doubles(s.rows), *products = zero_doubles(s.rows), *numbers[3];
  double *dw = zero_doubles(channels), *db = zero_doubles(channels);
  for (int i = 0; i < 3; i++) numbers[i] = zero_doubles(s.rows);
  rstd = zero_doubles(s.rows);
  if (failed()) return;
  for (int64_t k = 0; k < s.rows / per_group; k++) rstd[k] = tensor_get_f(kept, k);
  for (int64_t r = 0; r < s.rows; r++) numbers[0][r] = tensor_get_f(centres, r / per_group);
  Tensor *centre = from_doubles(numbers[0], 1, &s.rows, d);
  if (failed()) return;
  s.centre = tensor_data(centre);
  s.g = tensor_data(g);
  s.kernels->dots(&s, sums, products);
  group_numbers(&s, per_group, weight, channels, rstd, sums, products, numbers);
  if (mask.v[OF_INPUT]) out[OF_INPUT] = rows_run(&s, s.kernels->combine, x, numbers);
  for (int64_t r = 0; r < s.rows; r++) {
    dw[r % channels] += products[r] * rstd[r / per_group];
    db[r % channels] += sums[r];
  }
  if (mask.v[OF_WEIGHT]) out[OF_WEIGHT] = from_doubles(dw, 1, &channels, d);
  if (mask.v[OF_BIAS]) out[OF_BIAS] = from_doubles(db, 1, &channels, d);
}

ONCE static bool check_group(Tensor *g, Tensor *x, Tensor *mean, Tensor *rstd, Tensor *weight,
                             const int64_t size[4], Bools mask) {
  if (!check_mask(mask)) return false;
  int64_t all = 0;
  if (size[0] < 0 || size[1] < 0 || size[2] < 0 || (all = sizes_numel(3, size)) != x->numel)
    fail(ERR_RUNTIME, "Expected input to have %lld elements", (Shown)all);
  else if (size[3] <= 0 || size[1] % size[3])
    fail(ERR_RUNTIME,
         "Expect number of channels %lld to be evenly-divisible by number of groups "
         "%lld",
         (Shown)size[1], (Shown)size[3]);
  else if (!KERNEL_OF(rows_kernels, tensor_dtype(x), "GroupNormBackwardKernelImpl")) return false;
  return !failed() && check_size(x, g, "grad_out", x->numel) &&
         check_size(x, mean, "mean", size[0] * size[3]) &&
         check_size(x, rstd, "rstd", size[0] * size[3]) && check_size(x, weight, "weight", size[1]);
}

/* size: the numbers of samples, of channels, of elements of a channel, and of groups. */
void t_native_group_norm_backward(Tensor *g, Tensor *x, Tensor *mean, Tensor *rstd, Tensor *weight,
                                  const int64_t size[4], Bools mask, Tensor *out[3]) {
  OP_ENTERED_AS(t_native_group_norm_backward(g, x, mean, rstd, weight, size, mask, out),
                "native_group_norm_backward", g, x, mean, rstd, weight, size[0], size[1], size[2],
                size[3], mask, out);
  IN_FLOAT_MIXED_OUT(3, out,
                     t_native_group_norm_backward(g, x, mean, rstd, weight, size, mask, out), x, g,
                     mean, rstd, weight)
  out[0] = out[1] = out[2] = NULL;
  if (blocked(g, x, mean) || !rstd || !check_group(g, x, mean, rstd, weight, size, mask)) return;
  const Tensor *shape = x;
  const int64_t samples = size[0], groups = size[3];
  if (x->ndim < 2 || x->sizes[0] != samples || x->sizes[1] != size[1] || !tensor_same_shape(g, x))
    x = t_reshape(x, 3, size), g = t_reshape(g, 3, size);
  if (blocked(x, g)) return;
  if (!is_tracked(g, x, weight) && !tensor_absent(g)) {
    group_plain(g, x, mean, rstd, weight, groups, mask, out);
  } else if (x->numel) {
    const int64_t kept[3] = {samples, groups, 1}, dim = 2;
    rstd = t_reshape(rstd, 3, kept);
    Tensor *unit = normalise_by(by_group(x, groups), (Ints){1, &dim}, t_reshape(mean, 3, kept),
                                &rstd);
    group_tape(g, x, weight, groups, unit, rstd, mask, out);
  }
  if (out[OF_INPUT] && !tensor_same_shape(out[OF_INPUT], shape))
    out[OF_INPUT] = t_reshape(out[OF_INPUT], shape->ndim, shape->sizes);
}

/* Numbers of a node: 0 groups, 1 eps. Rows are (sample, channel); groups of rows share
 * statistics. */
GRAD(NativeGroupNormBackward0,
     "input weight result1 result2 | group:int eps:float N:int C:int HxW:int")
{
  Tensor *x = saved_tensor(n, 0), *weight = saved_tensor(n, 1), *rstd;
  if (!g[0] || blocked(x)) return;
  const int64_t groups = n->numbers[0].i, dim = 2;
  const Bools mask = WANTED(n);
  if (gradient_is_recorded() || (tensor_absent(g[0]) && !by_ops)) {
    if (!x->numel) return;
    Tensor *unit = normalise_over(by_group(x, groups), (Ints){1, &dim}, n->numbers[1].f, &rstd);
    group_tape(g[0], x, weight, groups, unit, rstd, mask, gi);
    return;
  }
  const int64_t size[4] = {n->numbers[2].i, n->numbers[3].i, n->numbers[4].i, groups};
  t_native_group_norm_backward(g[0], x, saved_tensor(n, 2), saved_tensor(n, 3), weight, size, mask,
                               gi);
}

ONCE static bool check_group_norm(Tensor *x, int64_t groups, Tensor *weight, Tensor *bias) {
  Tensor *given[2] = {weight, bias};
  static const char *const names[2] = {"weight", "bias"};
  if (groups <= 0)
    fail(ERR_RUNTIME, "Expected num groups to be greater than 0, got %lld", (Shown)groups);
  else if (x->ndim < 2)
    fail(ERR_RUNTIME, "Expected at least 2 dimensions for input tensor but received %d", x->ndim);
  else if (x->sizes[1] % groups)
    fail(ERR_RUNTIME,
         "Expected number of channels in input to be divisible by num_groups, but got input of "
         "shape %s and num_groups=%lld",
         shape_text(x), (Shown)groups);
  for (int i = 0; i < 2 && !failed(); i++)
    if (given[i] && (given[i]->ndim != 1 || given[i]->numel != x->sizes[1]))
      fail(ERR_RUNTIME,
           "Expected %s to be a vector of size equal to the number of channels in input, but got "
           "%s of shape %s and input of shape %s",
           names[i], names[i], shape_text(given[i]), shape_text(x));
  if (!KERNEL_OF(rows_kernels, tensor_dtype(x), group_kernel)) return false;
  return check_parameter(x, weight) && check_parameter(x, bias);
}

ONCE static Tensor *group_values(Tensor *kept[2], Tensor *x, int64_t groups, Tensor *weight,
                                 Tensor *bias, double eps) {
  x = t_contiguous(x);
  if (failed()) return NULL;
  Rows s = group_rows(x, group_kernel);
  int64_t channels = x->sizes[1], per_group = channels / groups;
  int64_t shape[2] = {x->sizes[0], groups}; /* kept: the means and 1 / deviations of groups */
  if (tensor_absent(x)) {
    for (int i = 0; i < 2; i++) kept[i] = tensor_empty(2, shape, tensor_dtype(x));
    return tensor_empty(x->ndim, x->sizes, tensor_dtype(x));
  }
  double *rstd, *numbers[3];
  Tensor *centre;
  for (int i = 0; i < 3; i++) numbers[i] = zero_doubles(s.rows);
  if (failed() || !group_statistics(&s, tensor_dtype(x), per_group, eps, &centre, &rstd))
    return NULL;
  for (int64_t r = 0; r < s.rows; r += per_group)
    numbers[0][r / per_group] = number_at(centre, r, 0);
  kept[0] = from_doubles(numbers[0], 2, shape, tensor_dtype(x));
  kept[1] = from_doubles(rstd, 2, shape, tensor_dtype(x));
  for (int64_t r = 0; r < s.rows; r++) {
    numbers[1][r] = rstd[r / per_group] * number_at(weight, r % channels, 1);
    numbers[2][r] = number_at(bias, r % channels, 0);
  }
  return rows_run(&s, s.kernels->shift, x, numbers);
}

Tensor *t_group_norm(Tensor *x, int64_t groups, Tensor *weight, Tensor *bias, double eps,
                     bool functional) {
  OP_ENTERED(t_group_norm, "group_norm", x, groups, weight, bias, eps, functional);
  IN_FLOAT_MIXED(t_group_norm(x, groups, weight, bias, eps, functional), x, weight, bias);
  if (blocked(x)) return NULL;
  if (functional && x->ndim >= 2) {
    int64_t sizes[MAX_DIM];
    if (groups == 0) return fail(ERR_ZERO_DIVISION, "integer division or modulo by zero");
    memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
    sizes[0] = x->sizes[0] * x->sizes[1] / groups;
    sizes[1] = groups;
    if (!more_than_one(x->ndim, sizes, "")) return NULL;
  }
  if (!functional && (tensor_size(x, 0) < 0 || tensor_size(x, 1) < 0)) return NULL;
  if (!check_group_norm(x, groups, weight, bias)) return NULL;
  Tensor *inputs[3] = {x, weight, bias};
  Node *n = node_new_list(&NativeGroupNormBackward0, 4, 5, 3, inputs);
  save(n, 0, x);
  save(n, 1, weight);
  num_i(n, 0, groups);
  num_f(n, 1, eps);
  for (int i = 0; i < 2; i++) num_i(n, 2 + i, x->sizes[i]);
  num_i(n, 4, sizes_numel(x->ndim - 2, x->sizes + 2));
  Tensor *kept[3] = {NULL};
  kept[0] = WITHOUT_GRAD(group_values(kept + 1, x, groups, weight, bias, eps));
  set_histories(kept, n, 3);
  for (int i = 1; i < 3; i++) save_output(n, i + 1, kept[i]);
  return kept[0];
}

/* ------------------------------------------------------------ rms_norm */

/* x / sqrt(mean x^2 + eps), times the weight; eps NULL: the dtype's. */
Tensor *t_rms_norm(Tensor *x, Ints shape, Tensor *weight, const double *eps) {
  OP_ENTERED(t_rms_norm, "rms_norm", x, shape, weight, eps);
  if (!failed() && x && dtype_is_half(tensor_dtype(x))) /* as separate steps, like PyTorch */
    return t_to(t_rms_norm(t_to(x, DT_F32), shape, weight ? t_to(weight, DT_F32) : NULL, eps),
                tensor_dtype(x));
  if (blocked(x)) return NULL;
  if (x->ndim < shape.n && (!weight || sizes_equal(weight->ndim, weight->sizes, shape.n, shape.v)))
    return fail(ERR_VALUE, "Input tensor must have at least %d dimensions, but got %d", shape.n,
                x->ndim);
  if (!check_normalized(x, shape, "", weight, NULL)) return NULL;
  x = t_contiguous(x);
  if (blocked(x)) return NULL;
  DType d = tensor_dtype(x);
  if (!dtype_is_complex(d) && !dtype_check_float_kernel("rms_norm", d)) return NULL;
  double small = eps ? *eps : dtype_real(d) == DT_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
  Tensor *mean = t_mean(t_pow(x, tensor_wrapped_i(2)), last_dims(x, shape.n), true, DT_NONE);
  Tensor *y = t_mul(x, t_rsqrt(t_add_f(mean, small)));
  return weight ? t_to(t_mul(y, weight), d) : y;
}

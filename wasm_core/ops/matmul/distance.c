/* Distances between rows (cdist, pdist) and between vectors side by side (pairwise_distance,
 * cosine_similarity).
 *
 * cdist and pdist are one loop forward and one back, for every p; terms are added up in double,
 * in the order of the columns. A gradient that is to be differentiated in turn, which PyTorch
 * does not do, is composed of other ops. */
#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/poll.h"
#include "kernels/simd.h"
#include "matmul_rows.h"
#include "ops/create/create.h"
#include "ops/elementwise/elementwise.h"
#include "ops/op.h"

/* ------------------------------------------------------------ kernels */

/* Adds the terms of rows a and b to four sums in `part`, as long as there are four terms. */
#define ADD_TERMS(TERM)                                             \
  for (; i + 4 <= n; i += 4) UNROLLED for (int k = 0; k < 4; k++) { \
      double d = fabs((double)a[i + k] - (double)b[i + k]);         \
      part[k] += TERM;                                              \
    }
#define DISTANCE_KERNELS(suffix, T)                                                              \
  static double distance_##suffix(const T *a, const T *b, int64_t n, double p) {                 \
    double part[4] = {0}, sum;                                                                   \
    int64_t i = 0;                                                                               \
    if (p == 2) ADD_TERMS(d * d)                                                                 \
    if (p == 1) ADD_TERMS(d)                                                                     \
    for (sum = (part[0] + part[1]) + (part[2] + part[3]); i < n; i++) {                          \
      double d = fabs((double)a[i] - (double)b[i]);                                              \
      if (p == 2) sum += d * d;                                                                  \
      else if (p == 1) sum += d;                                                                 \
      else if (p == 0) sum += d != 0;                                                            \
      else if (p == INFINITY) sum = d > sum || d != d ? d : sum;                                 \
      else sum += pow(d, p);                                                                     \
    }                                                                                            \
    return p == 2 ? sqrt(sum) : p == 1 || p == 0 || p == INFINITY ? sum : pow(sum, 1 / p);       \
  }                                                                                              \
  /* out += g times the derivative of the distance y by a. */                                    \
  static void pull_##suffix(const T *a, const T *b, int64_t n, double p, double y, double g,     \
                            T *out) {                                                            \
    if (p == 0 || y == 0 || g == 0) return;                                                      \
    double scale = p == INFINITY || p == 1 ? g : p == 2 ? g / y : g / pow(y, p - 1);             \
    for (int64_t i = 0; i < n; i++) {                                                            \
      double d = (double)a[i] - (double)b[i], sign = (double)((d > 0) - (d < 0)), far = fabs(d), \
             pull;                                                                               \
      if (p == 2) pull = d * scale;                                                              \
      else if (p == 1) pull = sign * scale;                                                      \
      else if (p == INFINITY) pull = (double)(T)far == y ? sign * scale : 0;                     \
      else pull = far == 0 ? 0 : sign * pow(far, p - 1) * scale;                                 \
      out[i] = (T)((double)out[i] + pull);                                                       \
    }                                                                                            \
  }
DISTANCE_KERNELS(f32, float)
DISTANCE_KERNELS(f64, double)

/* The distance of two rows by dtype; addresses are of bytes. */
static void store_distance(DType d, const char *a, const char *b, int64_t n, double p, char *y) {
  if (d == DT_F32)
    *(float *)(void *)y = (float)distance_f32((const float *)(const void *)a,
                                              (const float *)(const void *)b, n, p);
  else
    *(double *)(void *)y = distance_f64((const double *)(const void *)a,
                                        (const double *)(const void *)b, n, p);
}

static void add_pull(DType d, const char *a, const char *b, int64_t n, double p, double y, double g,
                     char *out) {
  if (d == DT_F32)
    pull_f32((const float *)(const void *)a, (const float *)(const void *)b, n, p, y, g,
             (float *)(void *)out);
  else
    pull_f64((const double *)(const void *)a, (const double *)(const void *)b, n, p, y, g,
             (double *)(void *)out);
}

static double load(DType d, const char *at) { return element_load_f(at, d); }

/* ------------------------------------------------------------ cdist */

/* Two batches of rows, broadcast to one another and contiguous. */
typedef struct {
  Tensor *a, *b;
  int n_batch;
  int64_t batch[MAX_DIM], count, rows_a, rows_b, cols;
} Pair;

static bool pair_of(Pair *p, Tensor *a, Tensor *b) {
  p->n_batch = a->ndim - 2;
  memcpy(p->batch, a->sizes, (size_t)p->n_batch * sizeof *p->batch);
  if (!sizes_broadcast(&p->n_batch, p->batch, b->ndim - 2, b->sizes)) return false;
  p->count = sizes_numel(p->n_batch, p->batch);
  p->rows_a = a->sizes[a->ndim - 2];
  p->rows_b = b->sizes[b->ndim - 2];
  p->cols = a->sizes[a->ndim - 1];
  int64_t sizes[MAX_DIM];
  memcpy(sizes, p->batch, (size_t)p->n_batch * sizeof *sizes);
  sizes[p->n_batch] = p->rows_a;
  sizes[p->n_batch + 1] = p->cols;
  p->a = t_contiguous(t_expand(a, p->n_batch + 2, sizes));
  sizes[p->n_batch] = p->rows_b;
  p->b = t_contiguous(t_expand(b, p->n_batch + 2, sizes));
  return !blocked(p->a, p->b);
}

static Tensor *cdist_values(Tensor *a, Tensor *b, double p) {
  Pair pair;
  if (!pair_of(&pair, a, b)) return NULL;
  DType d = tensor_dtype(a);
  int64_t sizes[MAX_DIM], width = dtype_bytes(d), row = pair.cols * width;
  memcpy(sizes, pair.batch, (size_t)pair.n_batch * sizeof *sizes);
  sizes[pair.n_batch] = pair.rows_a;
  sizes[pair.n_batch + 1] = pair.rows_b;
  Tensor *y = tensor_empty(pair.n_batch + 2, sizes, d);
  if (!y || tensor_absent(y)) return y;
  char *out = tensor_data(y);
  const char *x1 = tensor_data(pair.a), *x2 = tensor_data(pair.b);
  for (int64_t k = 0; k < pair.count; k++, x2 += pair.rows_b * row)
    for (int64_t i = 0; i < pair.rows_a; i++, x1 += row) {
      if (poll_stops(pair.rows_b * (8 + pair.cols * (p == 2 ? 2 : 16)))) return NULL;
      for (int64_t j = 0; j < pair.rows_b; j++, out += width)
        store_distance(d, x1, x2 + j * row, pair.cols, p, out);
    }
  return y;
}

/* The gradient by a. For b the caller exchanges a and b, and transposes `y` and `g`. */
static Tensor *cdist_gradient(Tensor *g, Tensor *a, Tensor *b, Tensor *y, double p) {
  Pair pair;
  g = t_contiguous(g);
  y = t_contiguous(y);
  if (blocked(g, y) || blocked(a, b) || !pair_of(&pair, a, b)) return NULL;
  if (!tensor_same_shape(g, y) || g->dtype != y->dtype)
    return fail(ERR_RUNTIME, "the gradient of cdist has shape %s", shape_text(g));
  DType d = tensor_dtype(a);
  Tensor *out = tensor_zeros(pair.a->ndim, pair.a->sizes, d);
  if (!out || tensor_absent(out)) return out;
  int64_t width = dtype_bytes(d), row = pair.cols * width;
  const char *x1 = tensor_data(pair.a), *x2 = tensor_data(pair.b), *gs = tensor_data(g),
             *ys = tensor_data(y);
  char *to = tensor_data(out);
  for (int64_t k = 0; k < pair.count; k++, x2 += pair.rows_b * row)
    for (int64_t i = 0; i < pair.rows_a; i++, x1 += row, to += row) {
      if (poll_stops(pair.rows_b * (8 + pair.cols * (p == 2 ? 2 : 16)))) return NULL;
      for (int64_t j = 0; j < pair.rows_b; j++, gs += width, ys += width)
        add_pull(d, x1, x2 + j * row, pair.cols, p, load(d, ys), load(d, gs), to);
    }
  return out;
}

/* Whether a gradient made of these must have a gradient or a tangent in turn. */
static bool needs_second_order(const Tensor *g, const Tensor *a, const Tensor *b) {
  return tensor_tracked(g) || tensor_tracked(a) || tensor_tracked(b);
}

/* The gradient by the differences d, whose lengths along the last dimension are y. */
static Tensor *composed_pull(Tensor *g, Tensor *d, Tensor *y, double p) {
  Tensor *pull = norm_gradient(t_unsqueeze(g, -1), d, t_unsqueeze(y, -1), p, ONE_DIM(-1));
  return pull ? pull : t_zeros_like(d);
}

/* The tangents of the lengths y of the differences d, from t, the tangents of d. */
static Tensor *composed_change(Tensor *t, Tensor *d, Tensor *y, double p) {
  return t_sum(t_mul(composed_pull(t_ones_like(y), d, y, p), t), ONE_DIM(-1), false, DT_NONE);
}

/* y_ij = |a_i - b_j|_p:  a_i' = sum_j g_ij |a_i - b_j|^(p-1) sign(a_i - b_j) / y_ij^(p-1), and
 * for b likewise. */
GRAD_AND_TANGENT(CdistBackward0, "x1 x2 result | p:float") {
  Tensor *a = saved_tensor(n, 0), *b = saved_tensor(n, 1), *y = saved_tensor(n, 2);
  double p = n->numbers[0].f;
  if (blocked(a, b) || !y) return;
  if (needs_second_order(g[0], a, b)) {
    Tensor *pull = composed_pull(g[0], t_sub(t_unsqueeze(a, -2), t_unsqueeze(b, -3)), y, p);
    if (needs(n, 0)) gi[0] = t_sum(pull, ONE_DIM(-2), false, DT_NONE);
    if (needs(n, 1)) gi[1] = t_neg(t_sum(pull, ONE_DIM(-3), false, DT_NONE));
    return;
  }
  WITHOUT_GRAD_BLOCK {
    if (needs(n, 0)) gi[0] = cdist_gradient(g[0], a, b, y, p);
    if (needs(n, 1)) gi[1] = cdist_gradient(t_t(g[0]), b, a, t_t(y), p);
  }
}
TANGENT(CdistBackward0) {
  Tensor *of_a = t[0] ? t_unsqueeze(t[0], -2) : NULL, *of_b = t[1] ? t_unsqueeze(t[1], -3) : NULL;
  Tensor *d = t_sub(t_unsqueeze(saved_tensor(n, 0), -2), t_unsqueeze(saved_tensor(n, 1), -3));
  return composed_change(norm_difference_tangent(of_a, of_b), d, saved_tensor(n, 2),
                         n->numbers[0].f);
}

static bool check_cdist(const Tensor *a, const Tensor *b, double p) {
  const Tensor *each[2] = {a, b};
  for (int i = 0; i < 2; i++)
    if (each[i]->ndim < 2)
      return fail(ERR_RUNTIME, "cdist only supports at least 2D tensors, X%d got: %dD", i + 1,
                  each[i]->ndim),
             false;
  int64_t ca = a->sizes[a->ndim - 1], cb = b->sizes[b->ndim - 1];
  if (ca != cb)
    return fail(ERR_RUNTIME, "X1 and X2 must have the same number of columns. X1: %lld X2: %lld",
                (Shown)ca, (Shown)cb),
           false;
  for (int i = 0; i < 2; i++)
    if (!dtype_is_float(tensor_dtype(each[i]))) {
      fail(ERR_RUNTIME, "cdist only supports floating-point dtypes, X%d got: %s", i + 1,
           dtype_info[each[i]->dtype].legacy);
      return false;
    }
  if (!(p >= 0)) return fail(ERR_RUNTIME, "cdist only supports non-negative p values"), false;
  if (a->dtype == b->dtype) return !refuses_half(a, "cdist");
  fail(ERR_RUNTIME, "expected scalar type %s but found %s", legacy(a), legacy(b));
  return false;
}

/* `mode` chooses among ways of computing in PyTorch; all of them get the one that loses no
 * digits. */
Tensor *t_cdist(Tensor *a, Tensor *b, double p, const char *mode) {
  OP_ENTERED(t_cdist, "cdist", a, b, p, mode);
  static const char *const modes[] = {"use_mm_for_euclid_dist_if_necessary",
                                      "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"};
  bool known = false;
  if (blocked(a, b) || !mode) return NULL;
  for (int i = 0; i < 3; i++) known = known || strcmp(mode, modes[i]) == 0;
  if (!known) return fail(ERR_VALUE, "%s is not a valid value for compute_mode", mode);
  if (!check_cdist(a, b, p)) return NULL;
  Node *n = node_new(&CdistBackward0, 3, 1, a, b, NULL);
  save(n, 0, a);
  save(n, 1, b);
  num_f(n, 0, p);
  Tensor *y = WITHOUT_GRAD(cdist_values(a, b, p));
  y = set_history(y, n);
  save_output(n, 2, y);
  return y;
}

/* ------------------------------------------------------------ pdist */

/* The gradient of both rows of each pair. */
static Tensor *pdist_gradient(Tensor *g, Tensor *x, Tensor *y, double p) {
  DType d = tensor_dtype(x);
  g = t_contiguous(g);
  x = t_contiguous(x);
  if (blocked(g, x) || !tensor_same_shape(g, y) || g->dtype != d)
    return fail(ERR_RUNTIME, "the gradient of pdist has the wrong shape");
  Tensor *out = tensor_zeros(2, x->sizes, d);
  if (!out || tensor_absent(out)) return out;
  int64_t cols = x->sizes[1], width = dtype_bytes(d), row = cols * width;
  const char *rows = tensor_data(x), *gs = tensor_data(g), *ys = tensor_data(y);
  char *to = tensor_data(out);
  for (int64_t i = 0; i < x->sizes[0]; i++) {
    if (poll_stops((x->sizes[0] - i) * (8 + cols * (p == 2 ? 4 : 32)))) return NULL;
    for (int64_t j = i + 1; j < x->sizes[0]; j++, gs += width, ys += width) {
      double distance = load(d, ys), slope = load(d, gs);
      add_pull(d, rows + i * row, rows + j * row, cols, p, distance, slope, to + i * row);
      add_pull(d, rows + j * row, rows + i * row, cols, p, distance, slope, to + j * row);
    }
  }
  return out;
}

/* The differences of the rows of x, pair by pair. */
static Tensor *pairs_apart(Tensor *x, Tensor **first, Tensor **second) {
  Tensor *pairs = blocked(x) ? NULL
                             : t_triangle_indices(x->sizes[0], x->sizes[0], 1, DT_I64, false);
  *first = t_select(pairs, 0, 0);
  *second = t_select(pairs, 0, 1);
  return t_sub(t_index_select(x, 0, *first), t_index_select(x, 0, *second));
}

static Tensor *pdist_composed(Tensor *g, Tensor *x, Tensor *y, double p) {
  Tensor *first, *second, *d = pairs_apart(x, &first, &second);
  Tensor *pull = composed_pull(g, d, y, p);
  return t_index_add(t_index_add(t_zeros_like(x), 0, first, pull, 1), 0, second, pull, -1);
}

/* The gradient of cdist, for the pairs of rows of one matrix. */
GRAD_AND_TANGENT(PdistBackward0, "self result | p:float") {
  Tensor *x = saved_tensor(n, 0), *y = saved_tensor(n, 1);
  if (blocked(x, y)) return;
  double p = n->numbers[0].f;
  if (needs_second_order(g[0], x, x)) {
    gi[0] = pdist_composed(g[0], x, y, p);
    return;
  }
  gi[0] = WITHOUT_GRAD(pdist_gradient(g[0], x, y, p));
}
TANGENT(PdistBackward0) {
  Tensor *first, *second, *d = pairs_apart(saved_tensor(n, 0), &first, &second);
  return composed_change(pairs_apart(t[0], &first, &second), d, saved_tensor(n, 1),
                         n->numbers[0].f);
}

Tensor *t_pdist(Tensor *x, double p) {
  OP_ENTERED(t_pdist, "pdist", x, p);
  if (blocked(x)) return NULL;
  if (x->ndim != 2) return fail(ERR_RUNTIME, "pdist only supports 2D tensors, got: %dD", x->ndim);
  if (!dtype_is_float(tensor_dtype(x)))
    return fail(ERR_RUNTIME, "pdist only supports floating-point dtypes");
  if (x->sizes[0] > 1 && refuses_half(x, "pdist")) return NULL;
  if (!(p >= 0)) return fail(ERR_RUNTIME, "pdist only supports non-negative p values");
  DType d = tensor_dtype(x);
  int64_t n_rows = x->sizes[0], cols = x->sizes[1], width = dtype_bytes(d),
          count = n_rows > 1 ? n_rows * (n_rows - 1) / 2 : 0;
  Node *n = node_new(&PdistBackward0, 2, 1, x, NULL);
  save(n, 0, x);
  num_f(n, 0, p);
  Tensor *rows = WITHOUT_GRAD(t_contiguous(x)), *y = tensor_empty(1, &count, d);
  if (blocked(rows, y)) return set_history(NULL, n);
  const char *at = tensor_data(rows);
  char *out = tensor_data(y);
  for (int64_t i = 0; i < n_rows && !tensor_absent(y); i++) {
    if (poll_stops((n_rows - i) * (8 + cols * (p == 2 ? 2 : 16)))) break;
    for (int64_t j = i + 1; j < n_rows; j++, out += width)
      store_distance(d, at + i * cols * width, at + j * cols * width, cols, p, out);
  }
  y = set_history(y, n);
  save_output(n, 1, y);
  return y;
}

/* ------------------------------------------------------------ vectors side by side */

/* |a - b + eps|_p along the last dimension. */
Tensor *t_pairwise_distance(Tensor *a, Tensor *b, double p, double eps, bool keepdim) {
  OP_ENTERED(t_pairwise_distance, "pairwise_distance", a, b, p, eps, keepdim);
  if (blocked(a, b)) return NULL;
  Tensor *d = t_add_f(t_sub(a, b), eps);
  return node_rename_with(t_vector_norm(d, p, ONE_DIM(-1), keepdim, DT_NONE), "NormBackward1",
                          "self result | p:scalar dim:dims keepdim:bool");
}

/* The cosine of the angle: the product of the vectors scaled to length one. */
Tensor *t_cosine_similarity(Tensor *a, Tensor *b, int64_t dim, double eps) {
  OP_ENTERED(t_cosine_similarity, "cosine_similarity", a, b, dim, eps);
  if (blocked(a, b)) return NULL;
  /* both are expanded, so neither counts as 0-dim in the promotion */
  DType d = dtype_promote(tensor_dtype(a), tensor_dtype(b));
  if (!dtype_is_float(d))
    return fail(ERR_RUNTIME, "expected common dtype to be floating point, yet common dtype is %s",
                dtype_info[d].legacy);
  int64_t sizes[MAX_DIM];
  int ndim = a->ndim;
  memcpy(sizes, a->sizes, (size_t)ndim * sizeof *sizes);
  if (!sizes_broadcast(&ndim, sizes, b->ndim, b->sizes)) return NULL;
  Tensor *each[2] = {t_to(a, d), t_to(b, d)};
  bool alike = tensor_same_shape(a, b);
  for (int i = 0; i < 2 && !failed(); i++) {
    if (!alike) each[i] = t_expand(each[i], ndim, sizes);
    each[i] = t_div(each[i],
                    t_held_above(t_vector_norm(each[i], 2, ONE_DIM(dim), true, DT_NONE), eps));
  }
  return t_sum(t_mul(each[0], each[1]), ONE_DIM(dim), false, DT_NONE);
}

/* Decompositions of matrices (LU, Cholesky, QR, singular values) and what is solved with them.
 *
 * Kernels work in place on columns: tensors whose last two dims have strides (1, rows), batch after batch, which is
 * also how PyTorch lays out its results. All compute in double; but LU, which tells a singular matrix by
 * a zero, rounds each step to the input's type. Gradients are composed of ops, so they can be differentiated again. */
#include "decompose.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "create.h"
#include "elementwise.h"
#include "join.h"
#include "memory.h"
#include "op.h"
#include "view.h"

typedef long long Shown;

/* ------------------------------------------------------------ matrices */

static int64_t rows_of(const Tensor *x) { return x->sizes[x->ndim - 2]; }
static int64_t cols_of(const Tensor *x) { return x->sizes[x->ndim - 1]; }

static int64_t batch_of(const Tensor *x) {
  int64_t n = 1;
  for (int i = 0; i + 2 < x->ndim; i++) n *= x->sizes[i];
  return n;
}

/* Columns of m x n for each matrix of `like`, uninitialised. */
static Tensor *empty_columns(const Tensor *like, int64_t m, int64_t n, DType d) {
  int64_t sizes[MAX_DIM], strides[MAX_DIM], step = m * n > 0 ? m * n : 1;
  int nd = like->ndim;
  memcpy(sizes, like->sizes, (size_t)nd * sizeof *sizes);
  sizes[nd - 2] = m;
  sizes[nd - 1] = n;
  strides[nd - 2] = 1;
  strides[nd - 1] = m > 0 ? m : 1;
  for (int i = nd - 3; i >= 0; step *= sizes[i--]) strides[i] = step;
  return tensor_empty_strided(nd, sizes, strides, d);
}

/* A copy of x in columns. */
static Tensor *columns(Tensor *x, DType d) {
  Tensor *y = blocked(x, x) ? NULL : empty_columns(x, rows_of(x), cols_of(x), d);
  return y && tensor_copy_data(y, x) ? y : NULL;
}

/* The same matrices transposed, without history. */
static Tensor *flipped(Tensor *x) {
  if (blocked(x, x)) return NULL;
  Tensor *y = tensor_alias(x, x->ndim, x->sizes, x->strides, x->offset);
  if (!y) return NULL;
  int k = y->ndim - 2;
  y->sizes[k] = x->sizes[k + 1];
  y->sizes[k + 1] = x->sizes[k];
  y->strides[k] = x->strides[k + 1];
  y->strides[k + 1] = x->strides[k];
  return y;
}

/* A vector of n for each matrix of `like`; n == -1: a number. */
static Tensor *empty_vectors(const Tensor *like, int64_t n, DType d) {
  int64_t sizes[MAX_DIM];
  int nd = like->ndim - 2;
  memcpy(sizes, like->sizes, (size_t)nd * sizeof *sizes);
  if (n >= 0) sizes[nd++] = n;
  return tensor_empty(nd, sizes, d);
}

static bool check_matrix(const Tensor *x, const char *op, const char *name) {
  if (x->ndim >= 2) return true;
  fail(ERR_RUNTIME, "%s: The input tensor %s must have at least 2 dimensions.", op, name);
  return false;
}

static bool check_square(const Tensor *x, const char *op, const char *name) {
  if (!check_matrix(x, op, name)) return false;
  if (rows_of(x) == cols_of(x)) return true;
  fail(ERR_RUNTIME, "%s: A must be batches of square matrices, but they are %lld by %lld matrices", op, (Shown)rows_of(x), (Shown)cols_of(x));
  return false;
}

static bool check_float(const Tensor *x, const char *op) {
  if (dtype_is_float((DType)x->dtype)) return true;
  fail(ERR_RUNTIME, "%s: Expected a floating point or complex tensor as input. Got %s", op, dtype_info[x->dtype].legacy);
  return false;
}

static bool refuse_unless_float(const Tensor *x, const char *kernel) {
  if (dtype_is_float((DType)x->dtype)) return true;
  fail(ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, dtype_info[x->dtype].legacy);
  return false;
}

/* What the info of a failed factorization says; `element` is the place it names. */
static const char *const singular_inverse =
    "%s: %sThe diagonal element %d is zero, the inversion could not be completed because the input matrix is singular.";
static const char *const singular_solve = "%s: %sThe solver failed because the input matrix is singular.";
static const char *const not_positive =
    "%s: %sThe factorization could not be completed because the input is not positive-definite (the leading minor of order %d is not "
    "positive-definite).";

static bool check_info(const Tensor *info, const char *op, const char *message) {
  if (failed() || !info) return false;
  const int32_t *v = (const int32_t *)(const void *)tensor_data(info);
  for (int64_t i = 0; i < info->numel; i++) {
    if (v[i] == 0) continue;
    char where[48] = "";
    if (info->ndim > 0) snprintf(where, sizeof where, "(Batch element %lld): ", (Shown)i);
    fail(ERR_LINALG, message, op, where, (int)v[i]);
    return false;
  }
  return true;
}

static void add_scaled(double *y, double k, const double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] += k * x[i];
}

static void exchange(double *x, double *y) {
  double held = *x;
  *x = *y;
  *y = held;
}

/* ------------------------------------------------------------ LU and triangular solving */

static double *doubles(Tensor *x) { return (double *)(void *)tensor_data(x); }

typedef struct {
  Tensor *lu;      /* unit lower L below the diagonal, U on and above it; in double */
  int32_t *pivots; /* of each matrix and column: the row it was exchanged with */
  Tensor *info;    /* 1 + the first column without a pivot, 0 if none */
} Factors;

static double rounded(double x, bool to_float) { return to_float ? (double)(float)x : x; }

/* Gaussian elimination of one matrix with the largest element of a column as its pivot; the info. */
static int32_t eliminate(double *v, int32_t *pivots, int64_t n, bool to_float) {
  int32_t info = 0;
  for (int64_t k = 0; k < n; k++) {
    double *column = v + k * n;
    int64_t best = k;
    for (int64_t i = k + 1; i < n; i++)
      if (fabs(column[i]) > fabs(column[best])) best = i;
    pivots[k] = (int32_t)best;
    for (int64_t j = 0; j < n; j++) exchange(v + k + j * n, v + best + j * n);
    if (column[k] == 0) {
      if (info == 0) info = (int32_t)k + 1;
      continue;
    }
    double inverse = rounded(1 / column[k], to_float);
    for (int64_t i = k + 1; i < n; i++) column[i] = rounded(column[i] * inverse, to_float);
    for (int64_t j = k + 1; j < n; j++) {
      double *other = v + j * n, times = other[k];
      for (int64_t i = k + 1; i < n; i++) other[i] = rounded(other[i] - rounded(times * column[i], to_float), to_float);
    }
  }
  return info;
}

static Factors factor(Tensor *a) {
  Factors f = {NULL, NULL, NULL};
  if (blocked(a, a)) return f;
  int64_t n = rows_of(a), batch = batch_of(a);
  f.lu = columns(a, DT_F64);
  f.pivots = scratch_array(n * batch + 1, sizeof *f.pivots);
  f.info = empty_vectors(a, -1, DT_I32);
  for (int64_t b = 0; b < batch && !failed(); b++)
    ((int32_t *)(void *)tensor_data(f.info))[b] = eliminate(doubles(f.lu) + b * n * n, f.pivots + b * n, n, a->dtype == DT_F32);
  return f;
}

/* Keeps the factors of a matrix of type d in the slots of LU and pivots, which count from 1 there. */
static void save_factors(Node *n, int slot, Factors f, DType d) {
  Tensor *pivots = n && f.lu ? empty_vectors(f.lu, rows_of(f.lu), DT_I32) : NULL;
  if (!pivots) return;
  for (int64_t i = 0; i < pivots->numel; i++) ((int32_t *)(void *)tensor_data(pivots))[i] = f.pivots[i] + 1;
  save(n, slot, columns(f.lu, d));
  save(n, slot + 1, pivots);
}

/* Solves A x = b in place, A triangular; both in double. */
static Tensor *substitute(Tensor *a, Tensor *x, bool upper, bool unit) {
  if (blocked(a, x)) return NULL;
  int64_t n = rows_of(a), count = cols_of(x);
  const double *v = doubles(a);
  double *y = doubles(x);
  for (int64_t c = 0, all = count * batch_of(a); c < all; c++, y += n)
    for (int64_t step = 0; step < n; step++) {
      int64_t j = upper ? n - 1 - step : step, first = upper ? 0 : j + 1;
      const double *column = v + (c / count * n + j) * n;
      if (!unit) y[j] /= column[j];
      add_scaled(y + first, -y[j], column + first, upper ? j : n - first);
    }
  return x;
}

/* Solves A x = b in place, in double, with A's factors; the result in type d. */
static Tensor *solve_factored(Factors f, Tensor *x, DType d) {
  if (blocked(f.lu, x)) return NULL;
  int64_t n = rows_of(x), count = cols_of(x);
  double *y = doubles(x);
  for (int64_t c = 0, all = count * batch_of(x); c < all; c++, y += n)
    for (int64_t k = 0; k < n; k++) exchange(y + k, y + f.pivots[c / count * n + k]);
  return columns(substitute(f.lu, substitute(f.lu, x, false, true), true, false), d);
}

/* Ones on the diagonal of square columns of doubles, zeros beside it. */
static Tensor *identity_columns(const Tensor *like, int64_t n) {
  Tensor *y = empty_columns(like, n, n, DT_F64);
  if (!y) return NULL;
  memset(tensor_data(y), 0, (size_t)y->numel * sizeof(double));
  for (int64_t i = 0; i < y->numel; i += i % (n * n) == n * n - 1 ? 1 : n + 1) doubles(y)[i] = 1;
  return y;
}

/* ------------------------------------------------------------ inverse */

/* y = A^-1:  A' = -y^T g y^T. */
GRAD(LinalgInvExBackward0, "inverse") {
  Tensor *flip = t_t(saved(n, 0));
  gi[0] = t_neg(t_matmul(flip, t_matmul(g[0], flip)));
}

static void invert(Tensor *a, const char *op, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(a, a) || !check_square(a, "linalg.inv", "A") || !check_float(a, "linalg.inv")) return;
  Node *n = node_new(&LinalgInvExBackward0, 1, 0, a, NULL);
  Factors f = factor(a);
  out[0] = set_history(solve_factored(f, identity_columns(a, rows_of(a)), (DType)a->dtype), n);
  out[1] = f.info;
  save_output(n, 0, out[0]);
  if (op) check_info(f.info, op, singular_inverse);
}

void t_inv_ex(Tensor *a, bool check, Tensor *out[2]) { invert(a, check ? "linalg.inv_ex" : NULL, out); }

Tensor *t_inverse(Tensor *a) {
  Tensor *out[2];
  invert(a, "linalg.inv", out);
  return failed() ? NULL : out[0];
}

/* ------------------------------------------------------------ determinants */

/* det, its sign and log |det| of each matrix; n keeps its factors in two slots. */
static bool determinants(Tensor *a, Node *node, int slot, Tensor *out[3]) {
  /* Of the transpose if that is how A lies, as in PyTorch: which product rounds to zero depends on it. */
  Factors f = factor(tensor_is_contiguous(a) ? flipped(a) : a);
  save_factors(node, slot, f, (DType)a->dtype);
  for (int i = 0; i < 3; i++) out[i] = empty_vectors(a, -1, (DType)a->dtype);
  if (failed()) return false;
  int64_t n = rows_of(a), batch = batch_of(a), at = 0;
  for (int64_t b = 0; b < batch; b++) {
    double each[3] = {1, 1, 0};
    for (int64_t k = 0; k < n; k++, at++) {
      double d = doubles(f.lu)[at * n + k];
      if (f.pivots[at] != k) d = -d;
      each[0] = rounded(each[0] * d, a->dtype == DT_F32);
      each[1] *= isnan(d) ? d : (d > 0) - (d < 0);
      each[2] += log(fabs(d));
    }
    for (int i = 0; i < 3; i++) element_store_f(tensor_data(out[i]) + b * dtype_bytes((DType)a->dtype), (DType)a->dtype, each[i]);
  }
  return true;
}

/* Matrices with v on their diagonal, as many as rows of A. */
static Tensor *diagonal_of(Tensor *v, Tensor *a) {
  if (blocked(v, a)) return NULL;
  int64_t sizes[MAX_DIM];
  memcpy(sizes, a->sizes, (size_t)(a->ndim - 1) * sizeof *sizes);
  return t_diag_embed(t_expand(t_unsqueeze(v, -1), a->ndim - 1, sizes), 0, -2, -1);
}

static Tensor *eye_mask(int64_t n) { return t_eye(n, n, DT_BOOL); }
static Tensor *scale_columns(Tensor *m, Tensor *v) { return t_mul(m, t_unsqueeze(v, -2)); }
static Tensor *scale_rows(Tensor *v, Tensor *m) { return t_mul(t_unsqueeze(v, -1), m); }

/* The gradient of det where it may be 0: with A = U S V^T, det U det V U diag(products of the other S) V^T. */
static Tensor *singular_det_gradient(Tensor *a, Tensor *g) {
  Tensor *usv[3];
  t_linalg_svd(a, false, NULL, usv);
  if (failed()) return NULL;
  int64_t sizes[MAX_DIM];
  memcpy(sizes, a->sizes, (size_t)a->ndim * sizeof *sizes);
  Tensor *others = t_masked_fill(t_expand(t_unsqueeze(usv[1], -2), a->ndim, sizes), eye_mask(rows_of(a)), tensor_wrapped_f(1));
  Tensor *sign = t_mul(t_det(usv[0]), t_det(usv[2]));
  Tensor *weights = t_mul(t_unsqueeze(t_mul(g, sign), -1), t_prod_dim(others, -1, false, DT_NONE));
  return t_matmul(scale_columns(usv[0], weights), usv[2]);
}

/* det' = g det A^-T. Without create_graph PyTorch gives zero where det is zero. */
GRAD(LinalgDetBackward0, "A result LU pivots") {
  Tensor *a = saved(n, 0), *y = saved(n, 1);
  if (blocked(a, y)) return;
  bool singular = false;
  for (int64_t i = 0; i < y->numel; i++) singular |= tensor_get_f(y, i) == 0;
  if (singular && grad_mode) {
    gi[0] = singular_det_gradient(a, g[0]);
    return;
  }
  if (singular) a = t_where(t_unsqueeze(t_unsqueeze(t_eq(y, tensor_wrapped_f(0)), -1), -1), t_eye(rows_of(a), rows_of(a), (DType)a->dtype), a);
  gi[0] = t_solve(t_t(a), diagonal_of(t_mul(g[0], y), a), true);
}

Tensor *t_det(Tensor *a) {
  Tensor *r[3];
  if (blocked(a, a) || !check_square(a, "linalg.det", "A") || !check_float(a, "linalg.det")) return NULL;
  Node *n = node_new(&LinalgDetBackward0, 4, 0, a, NULL);
  save(n, 0, a);
  Tensor *y = set_history(determinants(a, n, 2, r) ? r[0] : NULL, n);
  if (y) save_output(n, 1, y);
  return y;
}

/* log |det A|:  A' = g A^-T. The sign is constant. */
GRAD(LinalgSlogdetBackward0, "A LU pivots sign") {
  Tensor *a = saved(n, 0), *out[2];
  if (!g[1] || blocked(a, a)) return;
  if (grad_mode) {
    gi[0] = t_solve(t_t(a), diagonal_of(g[1], a), true);
    return;
  }
  t_solve_ex(t_t(a), diagonal_of(g[1], a), true, false, out);
  gi[0] = out[0];
}

void t_slogdet(Tensor *a, const char *op, Tensor *out[2]) {
  Tensor *r[3];
  out[0] = out[1] = NULL;
  if (blocked(a, a) || !check_square(a, op, "A") || !check_float(a, op)) return;
  Node *n = node_new(&LinalgSlogdetBackward0, 4, 0, a, NULL);
  save(n, 0, a);
  if (determinants(a, n, 1, r)) out[0] = r[1], out[1] = r[2];
  set_histories(out, n, 2);
  save_output(n, 3, out[0]);
}

Tensor *t_logdet(Tensor *a) {
  Tensor *r[2];
  t_slogdet(a, "logdet", r);
  return t_where(t_eq(r[0], tensor_wrapped_f(-1)), tensor_wrapped_f(NAN), r[1]);
}

/* ------------------------------------------------------------ solve */

/* A as (batch, n, n) and B as (batch, m, k) with their batches broadcast, unrecorded. */
static bool broadcast_pair(Tensor **a, Tensor **b) {
  int64_t sizes[MAX_DIM];
  int nd = (*a)->ndim - 2;
  memcpy(sizes, (*a)->sizes, (size_t)nd * sizeof *sizes);
  if (!sizes_broadcast(&nd, sizes, (*b)->ndim - 2, (*b)->sizes)) return false;
  bool was = grad_mode;
  grad_mode = false;
  Tensor **each[2] = {a, b};
  for (int i = 0; i < 2; i++) {
    sizes[nd] = rows_of(*each[i]);
    sizes[nd + 1] = cols_of(*each[i]);
    *each[i] = t_expand(*each[i], nd + 2, sizes);
    if (failed()) break;
  }
  grad_mode = was;
  return !failed();
}

static bool is_vector_case(const Tensor *a, const Tensor *b) {
  return b->ndim == 1 || (a->ndim - 1 == b->ndim && sizes_equal(a->ndim - 1, a->sizes, b->ndim, b->sizes));
}

static bool check_fit(const Tensor *a, const Tensor *b, bool left, const char *op) {
  if ((left ? rows_of(b) : cols_of(b)) == rows_of(a)) return true;
  fail(ERR_RUNTIME, "%s: Incompatible shapes of A and B for the equation %s = B (%lldx%lld and %lldx%lld)", op, left ? "AX" : "XA",
       (Shown)rows_of(a), (Shown)cols_of(a), (Shown)rows_of(b), (Shown)cols_of(b));
  return false;
}

/* A X = B:  B' = A^-T g,  A' = -B' X^T.  X A = B:  B' = g A^-T,  A' = -X^T B'. */
GRAD(LinalgSolveExBackward0, "A result LU pivots | left:b") {
  Tensor *a = saved(n, 0), *x = saved(n, 1);
  if (!g[0] || blocked(a, x)) return;
  bool left = n->numbers[0].i, vector = is_vector_case(a, x);
  Tensor *db = t_solve(t_t(a), g[0], left);
  gi[1] = db;
  if (!needs(n, 0)) return;
  if (vector) gi[0] = t_neg(t_matmul(t_unsqueeze(db, -1), t_unsqueeze(x, -2)));
  else gi[0] = t_neg(left ? t_matmul(db, t_t(x)) : t_matmul(t_t(x), db));
}

static bool check_solve(const Tensor *a, const Tensor *b, bool left, bool vector) {
  const char *op = "linalg.solve";
  if (!check_square(a, op, "A") || !check_float(a, op)) return false;
  if (a->dtype != b->dtype) {
    fail(ERR_RUNTIME, "%s: Expected A and B to have the same dtype, but found A of type %s and B of type %s instead", op,
         dtype_info[a->dtype].legacy, dtype_info[b->dtype].legacy);
    return false;
  }
  if (vector && !left) {
    fail(ERR_RUNTIME, "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve "
                      "is equivalent to B / A.squeeze(-1)");
    return false;
  }
  return true;
}

/* op: of the message for singular matrices; NULL: none. */
static void solve(Tensor *a, Tensor *b, bool left, const char *op, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(a, b)) return;
  bool vector = is_vector_case(a, b);
  if (!check_solve(a, b, left, vector)) return;
  Node *n = node_new(&LinalgSolveExBackward0, 4, 1, a, b, NULL);
  save(n, 0, a);
  num_i(n, 0, left);
  bool was = grad_mode;
  grad_mode = false;
  if (vector) b = t_unsqueeze(b, -1);
  Tensor *x = NULL;
  Factors f = {NULL, NULL, NULL};
  if (b && check_matrix(b, "linalg.solve", "B") && check_fit(a, b, left, "linalg.solve") && broadcast_pair(&a, &b)) {
    f = factor(left ? a : flipped(a));
    save_factors(n, 2, f, (DType)a->dtype);
    x = solve_factored(f, columns(left ? b : flipped(b), DT_F64), (DType)a->dtype);
    if (!left) x = flipped(x);
    if (vector && x) x = tensor_alias(x, x->ndim - 1, x->sizes, x->strides, x->offset);
  }
  grad_mode = was;
  out[0] = x = set_history(x, n);
  out[1] = f.info;
  if (x) save_output(n, 1, x);
  if (op) check_info(f.info, op, singular_solve);
}

void t_solve_ex(Tensor *a, Tensor *b, bool left, bool check, Tensor *out[2]) {
  solve(a, b, left, check ? "torch.linalg.solve_ex" : NULL, out);
}

Tensor *t_solve(Tensor *a, Tensor *b, bool left) {
  Tensor *out[2];
  solve(a, b, left, "torch.linalg.solve", out);
  return failed() ? NULL : out[0];
}

/* As solve, for the triangle of A that counts. */
GRAD(LinalgSolveTriangularBackward0, "self result | upper:b left:b unitriangular:b") {
  Tensor *a = saved(n, 0), *x = saved(n, 1);
  bool upper = n->numbers[0].i, left = n->numbers[1].i, unit = n->numbers[2].i;
  Tensor *db = t_solve_triangular(t_t(a), g[0], !upper, left, unit);
  gi[1] = db;
  if (!needs(n, 0)) return;
  Tensor *da = t_neg(left ? t_matmul(db, t_t(x)) : t_matmul(t_t(x), db));
  gi[0] = upper ? t_triu(da, unit) : t_tril(da, -(int)unit);
}

Tensor *t_solve_triangular(Tensor *a, Tensor *b, bool upper, bool left, bool unitriangular) {
  const char *op = "linalg.solve_triangular";
  if (blocked(a, b)) return NULL;
  if (a->dtype != b->dtype) {
    DType d = dtype_promote((DType)a->dtype, (DType)b->dtype);
    a = t_to(a, d);
    b = t_to(b, d);
  }
  if (blocked(a, b) || !check_matrix(a, op, "A") || !check_matrix(b, op, "B") || !check_square(a, op, "A") || !check_fit(a, b, left, op) ||
      !refuse_unless_float(a, "triangular_solve_cpu"))
    return NULL;
  Node *n = node_new(&LinalgSolveTriangularBackward0, 2, 3, a, b, NULL);
  save(n, 0, a);
  num_i(n, 0, upper);
  num_i(n, 1, left);
  num_i(n, 2, unitriangular);
  Tensor *x = NULL;
  if (broadcast_pair(&a, &b)) {
    x = substitute(columns(left ? a : flipped(a), DT_F64), columns(left ? b : flipped(b), DT_F64), upper == left, unitriangular);
    x = columns(left ? x : flipped(x), (DType)a->dtype);
  }
  x = set_history(x, n);
  if (x) save_output(n, 1, x);
  return x;
}

/* ------------------------------------------------------------ Cholesky */

/* A = L L^T. With P = tril(L^T g):  A' = L^-T (P + tril(P, -1)^T) L^-1 / 2. */
GRAD(LinalgCholeskyExBackward0, "L | upper:b") {
  Tensor *l = saved(n, 0), *dl = g[0];
  if (!dl) return;
  if (n->numbers[0].i) {
    l = t_t(l);
    dl = t_t(dl);
  }
  Tensor *p = t_tril(t_matmul(t_t(l), dl), 0);
  p = t_add(p, t_t(t_tril(p, -1)));
  gi[0] = t_mul_f(t_solve_triangular(l, t_solve_triangular(t_t(l), p, true, true, false), false, false, false), 0.5);
}
static const NodeType CholeskyBackward0 = {"CholeskyBackward0", grad_LinalgCholeskyExBackward0, "result | upper:b"};

/* In double: the factor L in place of the lower triangle, zeros above it, and the info: the order of the first bad minor. */
static Tensor *factor_positive(Tensor *a) {
  Tensor *info = blocked(a, a) ? NULL : empty_vectors(a, -1, DT_I32);
  if (!info) return NULL;
  int64_t n = rows_of(a), batch = batch_of(a);
  int32_t *bad = (int32_t *)(void *)tensor_data(info);
  double *v = doubles(a);
  for (int64_t b = 0; b < batch; b++, v += n * n) {
    bad[b] = 0;
    for (int64_t j = 0; j < n; j++) {
      double *column = v + j * n;
      memset(column, 0, (size_t)j * sizeof *column);
      for (int64_t k = 0; k < j && !bad[b]; k++) add_scaled(column + j, -v[j + k * n], v + k * n + j, n - j);
      if (!bad[b] && !(column[j] > 0)) bad[b] = (int32_t)j + 1;
      double root = sqrt(column[j]);
      for (int64_t i = j; i < n && !bad[b]; i++) column[i] = i == j ? root : column[i] / root;
    }
  }
  return info;
}

/* op: of the messages about the factorization; NULL: none. */
static void cholesky(const NodeType *type, Tensor *a, bool upper, const char *op, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(a, a)) return;
  Node *n = node_new(type, 1, 1, a, NULL);
  num_i(n, 0, upper);
  Tensor *l = columns(upper ? flipped(a) : a, DT_F64);
  out[1] = factor_positive(l);
  out[0] = set_history(columns(upper ? flipped(l) : l, (DType)a->dtype), n);
  if (out[0]) save_output(n, 0, out[0]);
  if (op) check_info(out[1], op, not_positive);
}

static bool check_cholesky(const Tensor *a) { return check_square(a, "linalg.cholesky", "A") && check_float(a, "linalg.cholesky"); }

void t_cholesky_ex(Tensor *a, bool upper, bool check, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(a, a) || !check_cholesky(a)) return;
  cholesky(&LinalgCholeskyExBackward0, a, upper, check ? "linalg.cholesky_ex" : NULL, out);
}

Tensor *t_linalg_cholesky(Tensor *a, bool upper) {
  Tensor *out[2];
  if (blocked(a, a) || !check_cholesky(a)) return NULL;
  cholesky(&LinalgCholeskyExBackward0, a, upper, "linalg.cholesky", out);
  return failed() ? NULL : out[0];
}

Tensor *t_cholesky(Tensor *a, bool upper) {
  Tensor *out[2];
  if (blocked(a, a) || !check_square(a, "cholesky", "A") || !refuse_unless_float(a, "cholesky_cpu")) return NULL;
  cholesky(&CholeskyBackward0, a, upper, "cholesky", out);
  return failed() ? NULL : out[0];
}

/* Gives `count` results their node, which saves them in order. */
static void finish(Node *n, int count, Tensor **out) {
  set_histories(out, n, count);
  for (int i = 0; i < count && !failed(); i++) save_output(n, i, out[i]);
}

/* ------------------------------------------------------------ QR */

static double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* Makes x[0 .. n) the vector v, v[0] == 1, with (1 - tau v v^T) x = (beta, 0, ...); tau, and beta through `beta`.
 * Signs as LAPACK's: nothing is reflected if x has zeros below its head. */
static double reflector(double *x, int64_t n, double *beta) {
  double below = n > 1 ? sqrt(dot(x + 1, x + 1, n - 1)) : 0, head = x[0];
  x[0] = 1;
  *beta = head;
  if (below == 0) return 0;
  *beta = -copysign(hypot(head, below), head);
  for (int64_t i = 1; i < n; i++) x[i] /= head - *beta;
  return (*beta - head) / *beta;
}

static void reflect(double *y, const double *v, double tau, int64_t n) { add_scaled(y, -tau * dot(v, y, n), v, n); }

/* w (m x n) becomes R above its diagonal; q (m x width) the first columns of Q, unless NULL. */
static void qr_one(double *w, int64_t m, int64_t n, double *q, int64_t width, double *taus, double *betas) {
  int64_t k = m < n ? m : n;
  for (int64_t j = 0; j < k; j++) {
    double *v = w + j * m + j;
    taus[j] = reflector(v, m - j, &betas[j]);
    for (int64_t c = j + 1; c < n; c++) reflect(w + c * m + j, v, taus[j], m - j);
  }
  if (q) memset(q, 0, (size_t)(m * width) * sizeof *q);
  for (int64_t c = 0; q && c < width; c++) {
    q[c * m + c] = 1;
    for (int64_t j = k - 1; j >= 0; j--) reflect(q + c * m + j, w + j * m + j, taus[j], m - j);
  }
  for (int64_t j = 0; j < k; j++) {
    w[j * m + j] = betas[j];
    memset(w + j * m + j + 1, 0, (size_t)(m - j - 1) * sizeof *w);
  }
}

/* The first m rows of x in columns of the given type. */
static Tensor *top_rows(Tensor *x, int64_t m, DType d) {
  bool was = grad_mode;
  grad_mode = false;
  Tensor *y = columns(t_narrow(x, -2, 0, m), d);
  grad_mode = was;
  return y;
}

static const char *const qr_modes[] = {"reduced", "complete", "r"};

/* A = Q R, A tall or square, M = R R'^T - Q'^T Q:  A' = (Q' + Q (tril(M) + tril(M, -1)^T)) R^-T.  A wide is
 * (X, Y) = Q (U, V): X' as above with U and Q' + Y V'^T for Q', and Y' = Q V'. */
GRAD(LinalgQrBackward0, "Q R | mode:treduced,complete,r") {
  Tensor *q = saved(n, 0), *r = saved(n, 1), *dq = g[0], *dr = g[1], *wide = NULL;
  if (blocked(q, r) || (!dq && !dr)) return;
  int64_t rows = rows_of(r), cols = cols_of(r);
  if (n->numbers[0].i == 2) {
    fail(ERR_RUNTIME, "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
                      "mode='reduced') if you are going to differentiate through linalg.qr.");
    return;
  }
  if (n->numbers[0].i == 1 && rows > cols) {
    fail(ERR_RUNTIME, "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
    return;
  }
  if (!dq) dq = t_zeros_like(q);
  if (!dr) dr = t_zeros_like(r);
  if (cols > rows) {
    Tensor *dv = t_narrow(dr, -1, rows, cols - rows), *v = t_narrow(r, -1, rows, cols - rows);
    wide = t_matmul(q, dv);
    dq = t_add(dq, t_matmul(t_matmul(q, v), t_t(dv)));
    dr = t_narrow(dr, -1, 0, rows);
    r = t_narrow(r, -1, 0, rows);
  }
  Tensor *m = t_sub(t_matmul(r, t_t(dr)), t_matmul(t_t(dq), q));
  Tensor *x = t_add(dq, t_matmul(q, t_add(t_tril(m, 0), t_t(t_tril(m, -1)))));
  gi[0] = t_solve_triangular(t_t(r), x, false, false, false);
  if (wide) gi[0] = t_cat((Tensors){2, (Tensor *[]){gi[0], wide}}, -1);
}

/* Q (columns of `width`; NULL for mode r) and R of a batch. */
static void qr_values(Tensor *a, char mode, Tensor *out[2]) {
  int64_t m = rows_of(a), n = cols_of(a), k = m < n ? m : n, width = mode == 'c' ? m : k;
  Tensor *w = columns(a, DT_F64), *q = mode == 'r' ? NULL : empty_columns(a, m, width, DT_F64);
  double *taus = scratch_array(2 * k + 1, sizeof *taus);
  if (failed()) return;
  double *pw = doubles(w), *pq = q ? doubles(q) : NULL;
  for (int64_t b = 0, batch = batch_of(a); b < batch; b++) qr_one(pw + b * m * n, m, n, pq ? pq + b * m * width : NULL, width, taus, taus + k);
  out[0] = q ? columns(q, (DType)a->dtype) : tensor_empty(1, (int64_t[]){0}, (DType)a->dtype);
  out[1] = top_rows(w, mode == 'c' ? m : k, (DType)a->dtype);
}

void t_qr(Tensor *a, const char *mode, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(a, a) || !mode || !check_matrix(a, "linalg.qr", "A") || !check_float(a, "linalg.qr")) return;
  int which = 0;
  while (which < 3 && strcmp(mode, qr_modes[which]) != 0) which++;
  if (which == 3) {
    fail(ERR_RUNTIME, "qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or 'complete'", mode);
    return;
  }
  Node *n = node_new(&LinalgQrBackward0, 2, 1, a, NULL);
  num_i(n, 0, which);
  qr_values(a, "fcr"[which], out);
  finish(n, 2, out);
}

/* ------------------------------------------------------------ singular values */

enum { MAX_SWEEPS = 60 };

/* (x, y) turned by the angle of cosine c and sine s. */
static void turn(double *x, double *y, double c, double s, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    double held = c * x[i] - s * y[i];
    y[i] = s * x[i] + c * y[i];
    x[i] = held;
  }
}

/* Tangent of the angle that makes the form (a, b; b, d) diagonal. */
static double diagonalizing(double a, double b, double d) {
  double zeta = (d - a) / (2 * b);
  return copysign(1, zeta) / (fabs(zeta) + sqrt(1 + zeta * zeta));
}

/* Turns pairs of w's columns (m x n, m >= n) until all are orthogonal, and v's (n x n) with them. */
static void orthogonalize(double *w, double *v, int64_t m, int64_t n) {
  bool turned = true;
  for (int sweep = 0; turned && sweep < MAX_SWEEPS; sweep++) {
    turned = false;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        double *x = w + p * m, *y = w + q * m;
        double a = dot(x, x, m), d = dot(y, y, m), b = dot(x, y, m);
        if (!(fabs(b) > 1e-15 * sqrt(a) * sqrt(d))) continue;
        turned = true;
        double t = diagonalizing(a, b, d), c = 1 / sqrt(1 + t * t);
        turn(x, y, c, c * t, m);
        turn(v + p * n, v + q * n, c, c * t, n);
      }
  }
}

/* Fills columns [from, to) of u (m rows) so that all columns before `to` are orthonormal. */
static void complete_basis(double *u, int64_t m, int64_t from, int64_t to) {
  int64_t unit = 0;
  for (int64_t c = from; c < to && unit < m; unit++) {
    double *x = u + c * m;
    memset(x, 0, (size_t)m * sizeof *x);
    x[unit] = 1;
    for (int64_t k = 0; k < 2 * c; k++) add_scaled(x, -dot(u + k % c * m, x, m), u + k % c * m, m);
    double length = sqrt(dot(x, x, m));
    if (length * length * 4 * (double)m < 1) continue;
    for (int64_t i = 0; i < m; i++) x[i] /= length;
    c++;
  }
}

static void sort_columns(double *s, double *w, int64_t m, double *v, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; j++)
      if (s[j] > s[best]) best = j;
    if (best == i) continue;
    exchange(s + i, s + best);
    turn(w + i * m, w + best * m, 0, 1, m);
    turn(v + i * n, v + best * n, 0, 1, n);
  }
}

/* w (m x n, m >= n) = u s v^T: singular values in descending order; u is m x width. */
static void svd_one(double *w, double *s, double *u, double *v, int64_t m, int64_t n, int64_t width) {
  orthogonalize(w, v, m, n);
  for (int64_t j = 0; j < n; j++) s[j] = sqrt(dot(w + j * m, w + j * m, m));
  sort_columns(s, w, m, v, n);
  int64_t rank = 0;
  for (; rank < n && s[rank] > 0; rank++)
    for (int64_t i = 0; i < m; i++) u[rank * m + i] = w[rank * m + i] / s[rank];
  complete_basis(u, m, rank, width);
}

/* A = U S V^T, skew X = X - X^T, E = S_j^2 - S_i^2:
 * A' = U (skew(U^T U') / E S + S skew(V^T V') / E + diag(S')) V^T + (1 - U U^T) U' S^-1 V^T + U S^-1 V'^T (1 - V V^T). */
GRAD(LinalgSvdBackward0, "U S Vh | full_matrices:b S_sym_argsize_minus_1:i") {
  Tensor *u = saved(n, 0), *s = saved(n, 1), *vh = saved(n, 2), *du = g[0], *ds = g[1], *dvh = g[2], *y;
  if (blocked(u, s) || !vh || (!du && !ds && !dvh)) return;
  int64_t k = s->sizes[s->ndim - 1], m = rows_of(u), cols = cols_of(vh);
  if (cols_of(u) > k) {
    u = t_narrow(u, -1, 0, k);
    du = du ? t_narrow(du, -1, 0, k) : NULL;
  }
  if (rows_of(vh) > k) {
    vh = t_narrow(vh, -2, 0, k);
    dvh = dvh ? t_narrow(dvh, -2, 0, k) : NULL;
  }
  if (!du && !dvh) {
    gi[0] = t_matmul(scale_columns(u, ds), vh);
    return;
  }
  bool tall = du && m > k, wide = dvh && cols > k;
  if (!du) du = t_zeros_like(u);
  if (!dvh) dvh = t_zeros_like(vh);
  Tensor *square = t_square(s);
  Tensor *e = t_masked_fill(t_sub(t_unsqueeze(square, -2), t_unsqueeze(square, -1)), eye_mask(k), tensor_wrapped_f(1));
  Tensor *left = t_matmul(t_t(u), du), *right = t_matmul(vh, t_t(dvh)), *inverse = t_reciprocal(s);
  y = t_add(scale_columns(t_div(t_sub(left, t_t(left)), e), s), scale_rows(s, t_div(t_sub(right, t_t(right)), e)));
  if (ds) y = t_add(y, t_diag_embed(ds, 0, -2, -1));
  y = t_matmul(t_matmul(u, y), vh);
  if (tall) y = t_add(y, t_matmul(scale_columns(t_sub(du, t_matmul(u, left)), inverse), vh));
  if (wide) y = t_add(y, t_matmul(u, scale_rows(inverse, t_sub(dvh, t_matmul(t_t(right), vh)))));
  gi[0] = y;
}

static const char *const not_finite = "%s: %sThe algorithm failed to converge because the input matrix contained non-finite values.";

static bool check_finite(Tensor *x) {
  Tensor *info = blocked(x, x) ? NULL : empty_vectors(x, -1, DT_I32);
  int64_t each = x ? rows_of(x) * cols_of(x) : 0;
  for (int64_t b = 0; info && b < info->numel; b++) {
    int32_t bad = 0;
    for (int64_t i = 0; i < each; i++) bad |= !isfinite(doubles(x)[b * each + i]);
    ((int32_t *)(void *)tensor_data(info))[b] = bad;
  }
  return check_info(info, "linalg.svd", not_finite);
}

/* U, S, V (not its transpose) of a batch, in double. */
static void svd_values(Tensor *a, bool full, Tensor *out[3]) {
  int64_t m = rows_of(a), n = cols_of(a);
  if (m < n) {
    Tensor *turned[3] = {NULL, NULL, NULL};
    svd_values(flipped(a), full, turned);
    for (int i = 0; i < 3; i++) out[i] = turned[2 - i];
    return;
  }
  int64_t width = full ? m : n;
  Tensor *w = columns(a, DT_F64);
  if (!check_finite(w)) return;
  out[0] = empty_columns(a, m, width, DT_F64);
  out[1] = empty_vectors(a, n, DT_F64);
  out[2] = identity_columns(a, n);
  if (failed()) return;
  double *p[3], *pw = doubles(w);
  for (int i = 0; i < 3; i++) p[i] = doubles(out[i]);
  for (int64_t b = 0, batch = batch_of(a); b < batch; b++)
    svd_one(pw + b * m * n, p[1] + b * n, p[0] + b * m * width, p[2] + b * n * n, m, n, width);
}

void t_linalg_svd(Tensor *a, bool full, const char *driver, Tensor *out[3]) {
  out[0] = out[1] = out[2] = NULL;
  if (blocked(a, a) || !check_matrix(a, "linalg.svd", "A") || !check_float(a, "linalg.svd")) return;
  if (driver) {
    fail(ERR_RUNTIME, "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
    return;
  }
  Node *n = node_new(&LinalgSvdBackward0, 3, 2, a, NULL);
  num_i(n, 1, rows_of(a) < cols_of(a) ? rows_of(a) : cols_of(a));
  num_i(n, 0, full);
  DType d = (DType)a->dtype;
  svd_values(a, full, out);
  if (!failed()) {
    out[0] = columns(out[0], d);
    out[1] = d == DT_F64 ? out[1] : t_to(out[1], d);
    out[2] = columns(flipped(out[2]), d);
  }
  finish(n, 3, out);
}

Tensor *t_svdvals(Tensor *a, const char *driver) {
  Tensor *out[3];
  t_linalg_svd(a, false, driver, out);
  return out[1];
}

/* ------------------------------------------------------------ pseudo-inverse */

/* Magnitudes up to this count as zero: max(atol, rtol max s), for each matrix, with a last dim of size 1. */
static Tensor *threshold(Tensor *a, Tensor *s, Tensor *atol, Tensor *rtol) {
  DType d = (DType)a->dtype;
  int64_t most = rows_of(a) > cols_of(a) ? rows_of(a) : cols_of(a);
  double standard = (d == DT_F32 ? 0x1p-23 : 0x1p-52) * (double)most;
  if (!rtol && !atol) rtol = tensor_number(standard, d);
  else if (!rtol) rtol = t_where(t_gt(atol, tensor_wrapped_f(0)), tensor_number(0, d), tensor_number(standard, d));
  Tensor *tolerance = t_mul(t_unsqueeze(rtol, -1), t_amax(s, ONE_DIM(-1), true));
  return atol ? t_maximum(t_unsqueeze(atol, -1), tolerance) : tolerance;
}

/* A itself, or the symmetric matrix that its lower triangle stands for: the magnitudes of its eigenvalues are its
 * singular values. */
static Tensor *whole(Tensor *a, bool hermitian) {
  if (!hermitian) return a;
  return check_square(a, "linalg.eigh", "A") ? t_add(t_tril(a, 0), t_t(t_tril(a, -1))) : NULL;
}

/* P = A^+:  A' = -P^T g P^T + (g^T P - A P g^T P) P^T + P^T (P g^T - P g^T P A), with P^T outside of both. */
GRAD(LinalgPinvBackward0, "self result") {
  Tensor *a = saved(n, 0), *p = saved(n, 1), *gt = t_t(g[0]), *pt = t_t(p);
  Tensor *gp = t_matmul(gt, p), *pg = t_matmul(p, gt);
  Tensor *y = t_neg(t_matmul(pt, t_matmul(g[0], pt)));
  y = t_add(y, t_matmul(t_sub(gp, t_matmul(a, t_matmul(p, gp))), pt));
  gi[0] = t_add(y, t_matmul(pt, t_sub(pg, t_matmul(pg, t_matmul(p, a)))));
}

static Tensor *pinv_values(Tensor *a, Tensor *atol, Tensor *rtol) {
  Tensor *r[3];
  t_linalg_svd(a, false, NULL, r);
  if (failed()) return NULL;
  Tensor *inverse = t_where(t_gt(r[1], threshold(a, r[1], atol, rtol)), t_reciprocal(r[1]), tensor_number(0, (DType)a->dtype));
  return t_matmul(scale_columns(t_t(r[2]), inverse), t_t(r[0]));
}

Tensor *t_pinv(Tensor *a, Tensor *atol, Tensor *rtol, bool hermitian) {
  if (blocked(a, a)) return NULL;
  if (a->ndim < 2 || !dtype_is_float((DType)a->dtype)) {
    return fail(ERR_RUNTIME, "linalg.pinv(%s{%s}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types",
                dtype_info[a->dtype].legacy, shape_text(a));
  }
  Node *n = node_new(&LinalgPinvBackward0, 2, 0, a, NULL);
  save(n, 0, a);
  bool was = grad_mode;
  grad_mode = false;
  Tensor *y = a->numel == 0 ? tensor_zeros(a->ndim, flipped(a)->sizes, (DType)a->dtype) : pinv_values(whole(a, hermitian), atol, rtol);
  grad_mode = was;
  y = set_history(y, n);
  if (y) save_output(n, 1, y);
  return y;
}

/* ------------------------------------------------------------ norms */

static bool check_norm_dims(const Tensor *a, Ints dims, int64_t pair[2]) {
  if (dims.n >= 0 && dims.n != 2) {
    char list[512] = "";
    for (int i = 0; i < dims.n; i++) snprintf(list + strlen(list), sizeof list - strlen(list), " %lld", (Shown)dims.v[i]);
    fail(ERR_RUNTIME, "linalg.matrix_norm: dim must be a 2-tuple. Got%s", list);
    return false;
  }
  for (int i = 0; i < 2; i++)
    if ((pair[i] = dim_wrap(dims.n < 0 ? i - 2 : dims.v[i], a->ndim)) < 0) return false;
  if (pair[0] != pair[1]) return true;
  fail(ERR_RUNTIME, "linalg.matrix_norm: dims must be different. Got (%lld, %lld)", (Shown)dims.v[0], (Shown)dims.v[1]);
  return false;
}

static bool check_norm_type(const Tensor *a, DType dtype) {
  const char *op = "linalg.matrix_norm";
  if (!check_float(a, op)) return false;
  if (dtype == DT_NONE) return true;
  if (!dtype_is_float(dtype)) return fail(ERR_RUNTIME, "%s: dtype should be floating point or complex, but got %s", op, dtype_info[dtype].legacy), false;
  if (dtype_promote((DType)a->dtype, dtype) == dtype) return true;
  fail(ERR_RUNTIME, "%s: the dtype of the input (%s) should be convertible without narrowing to the specified dtype (%s)", op,
       dtype_info[a->dtype].legacy, dtype_info[dtype].legacy);
  return false;
}

/* Singular values along a last dim, the pair of dims gone. */
static Tensor *values_along(Tensor *a, const int64_t pair[2]) {
  int64_t order[MAX_DIM];
  int n = 0;
  for (int i = 0; i < a->ndim; i++)
    if (i != pair[0] && i != pair[1]) order[n++] = i;
  order[n++] = pair[0];
  order[n++] = pair[1];
  return t_svdvals(t_permute(a, (Ints){n, order}), NULL);
}

/* The largest number along dim, 0 of none; or the least. */
static Tensor *extreme(Tensor *x, int64_t dim, bool keepdim, bool least) {
  if (blocked(x, x)) return NULL;
  if (least) return t_amin(x, ONE_DIM(dim), keepdim);
  return x->sizes[dim] ? t_amax(x, ONE_DIM(dim), keepdim) : t_sum(x, ONE_DIM(dim), keepdim, DT_NONE);
}

Tensor *t_matrix_norm(Tensor *a, const char *name, double p, Ints dims, bool keepdim, DType dtype) {
  int64_t pair[2];
  if (blocked(a, a) || !check_matrix(a, "linalg.matrix_norm", "A")) return NULL;
  bool nuclear = name && strcmp(name, "nuc") == 0;
  if (name && !nuclear && strcmp(name, "fro") != 0) return fail(ERR_RUNTIME, "linalg.matrix_norm: Order %s not supported.", name);
  double size = fabs(p);
  if (!name && size != 1 && size != 2 && !isinf(p)) return fail(ERR_RUNTIME, "linalg.matrix_norm: Order %g not supported.", p);
  if (!check_norm_type(a, dtype) || !check_norm_dims(a, dims, pair)) return NULL;
  if (name && !nuclear) return t_vector_norm(a, 2, (Ints){2, pair}, keepdim, dtype);
  if (dtype != DT_NONE) a = t_to(a, dtype);
  if (blocked(a, a)) return NULL;
  if (!name && size != 2) {
    int64_t summed = pair[isinf(p)], other = pair[!isinf(p)];
    Tensor *sums = t_vector_norm(a, 1, ONE_DIM(summed), keepdim, DT_NONE);
    if (!keepdim && other > summed) other--;
    return extreme(sums, other, keepdim, p < 0);
  }
  Tensor *s = values_along(a, pair), *y;
  if (nuclear) y = t_sum(s, ONE_DIM(-1), false, DT_NONE);
  else y = extreme(s, a->ndim - 2, false, p < 0);
  if (!keepdim) return y;
  bool swap = pair[0] > pair[1];
  return t_unsqueeze(t_unsqueeze(y, pair[swap]), pair[!swap]);
}

/* The norm of a matrix or of a vector, as the order and the dims say. */
Tensor *t_linalg_norm(Tensor *a, const char *name, const double *p, Ints dims, bool keepdim, DType dtype) {
  if (blocked(a, a)) return NULL;
  if (dims.n >= 0 && dims.n != 1 && dims.n != 2 && (p || name))
    return fail(ERR_RUNTIME, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %s", sizes_text(dims.n, dims.v));
  if (dims.n < 0 && (p || name) && a->ndim != 1 && a->ndim != 2)
    return fail(ERR_RUNTIME, "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.", a->ndim);
  if (name || (p && (dims.n == 2 || (dims.n < 0 && a->ndim == 2)))) return t_matrix_norm(a, name, p ? *p : 0, dims, keepdim, dtype);
  return t_vector_norm(a, p ? *p : 2, dims, keepdim, dtype);
}

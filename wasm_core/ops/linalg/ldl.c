/* Symmetric matrices that need not be definite: A = L D L^T with the rows and columns of A
 * exchanged, L unit lower triangular and D of blocks of one and two (Bunch and Kaufman, 1977).
 *
 * Factors and pivots are as LAPACK's sytrf leaves them of a lower triangle: D on the diagonal, and
 * where a block is of two its lower corner below it; L elsewhere below; for a block of one the row
 * that was exchanged with its own, for one of two twice minus the row that was with its second.
 * Kernels work on columns, in double. One for Hermitian matrices has other products beside these,
 * and blocks whose corners are conjugate; the checks and the order of steps are the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ground/memory.h"
#include "linalg_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/columns.h"
#include "ops/op.h"

/* ------------------------------------------------------------ factoring */

/* A matrix of n x n, of which the lower triangle counts. */
typedef struct {
  double *v;
  int64_t n;
} Lower;
static inline double *at(const Lower *a, int64_t row, int64_t column) {
  return a->v + column * a->n + row;
}

/* Exchanges rows and columns i < j of what is left from column i on. */
static void exchange_both(const Lower *a, int64_t i, int64_t j) {
  for (int64_t k = j + 1; k < a->n; k++) exchange(at(a, k, i), at(a, k, j));
  for (int64_t k = i + 1; k < j; k++) exchange(at(a, k, i), at(a, j, k));
  exchange(at(a, i, i), at(a, j, j));
}

/* The greater of two sizes; NaN if either is. */
static inline double greater(double a, double b) { return b > a || b != b ? b : a; }

/* The greatest number below the diagonal in column k, and its row. */
static double greatest_below(const Lower *a, int64_t k, int64_t *row) {
  double most = fabs(*at(a, k + 1, k));
  *row = k + 1;
  for (int64_t i = k + 2; i < a->n; i++)
    if (fabs(*at(a, i, k)) > most) most = fabs(*at(a, *row = i, k));
  return most;
}

/* The greatest number beside the diagonal in a row of what is left from column k on. */
static double greatest_beside(const Lower *a, int64_t k, int64_t row) {
  double most = 0;
  for (int64_t j = k; j < row; j++) most = greater(most, fabs(*at(a, row, j)));
  for (int64_t i = row + 1; i < a->n; i++) most = greater(most, fabs(*at(a, i, row)));
  return most;
}

/* Takes the pivot at k out of the rest, and leaves the column of L. */
static void take_one(const Lower *a, int64_t k) {
  double *x = at(a, k, k);
  int64_t below = a->n - k - 1;
  for (int64_t j = 1; j <= below; j++)
    add_scaled(at(a, k + j, k + j), -x[j] / x[0], x + j, below - j + 1);
  for (int64_t j = 1; j <= below; j++) x[j] /= x[0];
}

/* The same with the block at k and k + 1. */
static void take_two(const Lower *a, int64_t k) {
  double corner = *at(a, k + 1, k), second = *at(a, k + 1, k + 1) / corner;
  double first = *at(a, k, k) / corner, scale = 1 / (second * first - 1) / corner;
  for (int64_t j = k + 2; j < a->n; j++) {
    double p = *at(a, j, k), q = *at(a, j, k + 1);
    double u = scale * (second * p - q), v = scale * (first * q - p);
    for (int64_t i = j; i < a->n; i++) *at(a, i, j) -= *at(a, i, k) * u + *at(a, i, k + 1) * v;
    *at(a, j, k) = u;
    *at(a, j, k + 1) = v;
  }
}

/* Factors in place; 0, or the number of the first pivot that is 0. */
static int32_t factor_one(const Lower *a, int32_t *pivots) {
  const double alpha = (1 + sqrt(17)) / 8;
  int32_t info = 0;
  for (int64_t k = 0; k < a->n;) {
    int64_t row = k, pivot = k, span = 1;
    double own = fabs(*at(a, k, k)), below = k + 1 < a->n ? greatest_below(a, k, &row) : 0;
    bool nothing = (own == 0 && below == 0) || own != own;
    if (nothing) info = info ? info : (int32_t)k + 1;
    else if (!(own >= alpha * below)) {
      double beside = greatest_beside(a, k, row);
      if (own >= alpha * below * (below / beside)) pivot = k;
      else {
        pivot = row;
        span = fabs(*at(a, row, row)) >= alpha * beside ? 1 : 2;
      }
    }
    int64_t last = k + span - 1;
    if (pivot != last) {
      exchange_both(a, last, pivot);
      if (span == 2) exchange(at(a, k + 1, k), at(a, pivot, k));
    }
    if (span == 2) take_two(a, k);
    else if (!nothing) take_one(a, k);
    pivots[last] = (int32_t)(span == 2 ? -pivot - 1 : pivot + 1);
    pivots[k] = pivots[last];
    k += span;
  }
  return info;
}

NO_DERIVATIVE(linalg_ldl_factor_ex)

/* Out: LD, pivots, info. */
static void factored(Tensor *a, Tensor *out[3]) {
  static const char *const op = "torch.linalg.ldl_factor_ex";
  out[0] = out[1] = out[2] = NULL;
  if (blocked(a) || !check_square(a, op, "A") || !check_float(a, op) ||
      !check_wide_kernel("ldl_factor_kernel_cpu", tensor_dtype(a)))
    return;
  Node *n = node_new(&node_linalg_ldl_factor_ex, 0, 0, a, NULL);
  int64_t size = rows_of(a);
  Tensor *w = columns(a, DT_F64);
  out[1] = empty_vectors(a, size, DT_I32);
  out[2] = empty_vectors(a, -1, DT_I32);
  if (!failed()) {
    for (int64_t b = 0, batch = batch_of(a); b < batch; b++) {
      Lower one = {doubles(w) + b * size * size, size};
      for (int64_t k = 1; k < size; k++) memset(at(&one, 0, k), 0, (size_t)k * sizeof(double));
      ints(out[2])[b] = factor_one(&one, ints(out[1]) + b * size);
    }
    out[0] = columns(w, tensor_dtype(a));
  }
  out[0] = set_history(out[0], n);
}

static void check_diagonal(const Tensor *info, const char *op) {
  check_pivots(info, op, 'D', "ldl_solve", "linalg.ldl_factor_ex(A)");
}

void t_ldl_factor_ex(Tensor *a, bool check, Tensor *out[3]) {
  OP_ENTERED("ldl_factor_ex", a, check, out);
  factored(a, out);
  if (check) check_diagonal(out[2], "ldl_factor_ex");
}

/* Out: LD, pivots. */
void t_ldl_factor(Tensor *a, Tensor *out[2]) {
  OP_ENTERED("ldl_factor", a, out);
  Tensor *all[3];
  factored(a, all);
  check_diagonal(all[2], "ldl_factor");
  out[0] = all[0];
  out[1] = all[1];
}

/* ------------------------------------------------------------ solving */

/* Whether the pivots of a matrix are those of blocks within it. */
static bool pivots_fit(const int32_t *pivots, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    int64_t row = labs((long)pivots[k]);
    if (row < 1 || row > n) return false;
    if (pivots[k] < 0 && (++k == n || pivots[k] >= 0)) return false;
  }
  return true;
}

/* The sum of the products below row k of column `column` of L with x, for blocks that end at k. */
static double below(const Lower *ld, int64_t k, int64_t column, const double *x) {
  double sum = 0;
  for (int64_t i = k + 1; i < ld->n; i++) sum += *at(ld, i, column) * x[i];
  return sum;
}

/* x becomes A^-1 x. */
static void solve_one(const Lower *ld, const int32_t *pivots, double *x) {
  int64_t n = ld->n, k = 0;
  while (k < n) { /* (L D)^-1 x */
    if (pivots[k] > 0) {
      exchange(x + k, x + pivots[k] - 1);
      add_scaled(x + k + 1, -x[k], at(ld, k, k) + 1, n - k - 1);
      x[k] /= *at(ld, k, k);
      k++;
      continue;
    }
    exchange(x + k + 1, x - pivots[k] - 1);
    for (int64_t i = k + 2; i < n; i++) x[i] -= *at(ld, i, k) * x[k] + *at(ld, i, k + 1) * x[k + 1];
    double corner = *at(ld, k + 1, k), first = *at(ld, k, k) / corner;
    double second = *at(ld, k + 1, k + 1) / corner, p = x[k] / corner, q = x[k + 1] / corner;
    x[k] = (second * p - q) / (first * second - 1);
    x[k + 1] = (first * q - p) / (first * second - 1);
    k += 2;
  }
  while (--k >= 0) { /* L^-T x */
    int64_t last = k;
    x[k] -= below(ld, last, k, x);
    if (pivots[k] < 0) {
      k--;
      x[k] -= below(ld, last, k, x);
    }
    exchange(x + last, x + labs((long)pivots[last]) - 1);
  }
}

static bool check_ldl_solve(const Tensor *ld, const Tensor *pivots, const Tensor *b) {
  static const char *const op = "torch.linalg.ldl_solve";
  if (!check_square(ld, op, "A") || !check_float(ld, op) || tensor_size(b, -2) < 0 ||
      !check_systems(b, ld, op))
    return false;
  if (!sizes_equal(ld->ndim - 1, ld->sizes, pivots->ndim, pivots->sizes))
    fail(ERR_RUNTIME,
         "%s: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape %s "
         "instead",
         op, shape_text(pivots));
  else if (dtype_kind(tensor_dtype(pivots)) != KIND_INT)
    fail(ERR_RUNTIME, "%s: Expected pivots to be integers. Got %s", op, legacy(pivots));
  return !failed() && check_wide_kernel("ldl_solve_kernel_cpu", tensor_dtype(ld));
}

/* x with the batch of `sizes`, of which the last two are its own. */
static Tensor *of_batch(Tensor *x, int ndim, const int64_t *batch, int own) {
  int64_t sizes[MAX_DIM];
  if (blocked(x)) return NULL;
  memcpy(sizes, batch, (size_t)(ndim - 2) * sizeof *sizes);
  memcpy(sizes + ndim - 2, x->sizes + x->ndim - own, (size_t)own * sizeof *sizes);
  return t_expand(x, ndim - 2 + own, sizes);
}

NO_DERIVATIVE(linalg_ldl_solve)

Tensor *t_ldl_solve(Tensor *ld, Tensor *pivots, Tensor *b) {
  OP_ENTERED("ldl_solve", ld, pivots, b);
  if (blocked(ld, pivots, b) || !check_ldl_solve(ld, pivots, b)) return NULL;
  int64_t sizes[MAX_DIM], n = rows_of(ld), width = cols_of(b);
  int ndim = ld->ndim - 2;
  memcpy(sizes, ld->sizes, (size_t)ndim * sizeof *sizes);
  if (!sizes_broadcast(&ndim, sizes, b->ndim - 2, b->sizes)) return NULL;
  ndim += 2;
  Node *node = node_new(&node_linalg_ldl_solve, 0, 0, ld, b, NULL);
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    Tensor *factors = columns(of_batch(ld, ndim, sizes, 2), DT_F64);
    Tensor *x = columns(of_batch(b, ndim, sizes, 2), DT_F64);
    Tensor *rows = t_contiguous(t_to(of_batch(pivots, ndim, sizes, 1), DT_I32));
    for (int64_t k = 0, batch = failed() ? 0 : batch_of(x); k < batch && !failed(); k++) {
      Lower one = {doubles(factors) + k * n * n, n};
      if (!pivots_fit(ints(rows) + k * n, n))
        fail(ERR_RUNTIME, "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did "
                          "you properly pass the result of ldl_factor?");
      for (int64_t c = 0; c < width && !failed(); c++)
        solve_one(&one, ints(rows) + k * n, doubles(x) + (k * width + c) * n);
    }
    y = failed() ? NULL : columns(x, tensor_dtype(b));
  }
  return set_history(y, node);
}

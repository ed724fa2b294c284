/* Symmetric and Hermitian matrices that need not be definite: factored into L D L^T, and systems
 * solved with the factors.
 *
 * The kernels (kernels/factors.h) work in double on columns, as LAPACK's sytrf and hetrf do on the
 * lower triangle. A real matrix is symmetric whatever the caller says of it. */
#include <stdlib.h>
#include <string.h>

#include "linalg_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/columns.h"
#include "ops/op.h"

/* ------------------------------------------------------------ factoring */

NO_DERIVATIVE(linalg_ldl_factor_ex)

/* Out: LD, pivots, info. */
static void factor_ldl(Tensor *a, bool hermitian, Tensor *out[3]) {
  static const char *const op = "torch.linalg.ldl_factor_ex";
  out[0] = out[1] = out[2] = NULL;
  if (blocked(a) || !linalg_check_square(a, op, "A") || !linalg_check_float(a, op) ||
      !linalg_check_factor_kernel("ldl_factor_kernel_cpu", a))
    return;
  Node *n = node_new(&node_linalg_ldl_factor_ex, 0, 0, a, NULL);
  int64_t size = rows_of(a);
  Tensor *w = linalg_columns(a, wide_type(tensor_dtype(a)));
  out[1] = linalg_empty_vectors(a, size, DT_I32);
  out[2] = linalg_empty_vectors(a, -1, DT_I32);
  if (!failed()) {
    for (int64_t b = 0, batch = linalg_batch_of(a); b < batch; b++) {
      int64_t first = b * size * size, number = dtype_bytes(tensor_dtype(w));
      for (int64_t k = 1; k < size; k++)
        memset(number_at(w, first + k * size), 0, (size_t)(k * number));
      ints(out[2])[b] = factorizations_of(w)->ldl(number_at(w, first), ints(out[1]) + b * size,
                                                  size, hermitian);
    }
    out[0] = linalg_columns(w, tensor_dtype(a));
  }
  out[0] = set_history(out[0], n);
}

static void check_diagonal(const Tensor *info, const char *op) {
  linalg_check_pivots(info, op, 'D', "ldl_solve", "linalg.ldl_factor_ex(A)");
}

void t_ldl_factor_ex(Tensor *a, bool hermitian, bool check, Tensor *out[3]) {
  OP_ENTERED(t_ldl_factor_ex, "ldl_factor_ex", a, hermitian, check, out);
  factor_ldl(a, hermitian, out);
  if (check) check_diagonal(out[2], "ldl_factor_ex");
}

/* Out: LD, pivots. */
void t_ldl_factor(Tensor *a, bool hermitian, Tensor *out[2]) {
  OP_ENTERED(t_ldl_factor, "ldl_factor", a, hermitian, out);
  Tensor *all[3];
  factor_ldl(a, hermitian, all);
  check_diagonal(all[2], "ldl_factor");
  out[0] = all[0];
  out[1] = all[1];
}

/* ------------------------------------------------------------ solving */

/* Whether the pivots describe blocks of one and two within the matrix. */
static bool pivots_fit(const int32_t *pivots, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    int64_t row = labs((long)pivots[k]);
    if (row < 1 || row > n) return false;
    if (pivots[k] < 0 && (++k == n || pivots[k] >= 0)) return false;
  }
  return true;
}

static bool check_ldl_solve(const Tensor *ld, const Tensor *pivots, const Tensor *b) {
  static const char *const op = "torch.linalg.ldl_solve";
  if (!linalg_check_square(ld, op, "A") || !linalg_check_float(ld, op) || tensor_size(b, -2) < 0 ||
      !linalg_check_systems(b, ld, op))
    return false;
  if (!sizes_equal(ld->ndim - 1, ld->sizes, pivots->ndim, pivots->sizes))
    fail(ERR_RUNTIME,
         "%s: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape %s "
         "instead",
         op, shape_text(pivots));
  else if (dtype_kind(tensor_dtype(pivots)) != KIND_INT)
    fail(ERR_RUNTIME, "%s: Expected pivots to be integers. Got %s", op, legacy(pivots));
  return !failed() && linalg_check_factor_kernel("ldl_solve_kernel_cpu", ld);
}

/* x expanded to a batch; its last `own` dims stay. */
static Tensor *expand_batch(Tensor *x, int ndim, const int64_t *batch, int own) {
  int64_t sizes[MAX_DIM];
  if (blocked(x)) return NULL;
  memcpy(sizes, batch, (size_t)(ndim - 2) * sizeof *sizes);
  memcpy(sizes + ndim - 2, x->sizes + x->ndim - own, (size_t)own * sizeof *sizes);
  return t_expand(x, ndim - 2 + own, sizes);
}

NO_DERIVATIVE(linalg_ldl_solve)

Tensor *t_ldl_solve(Tensor *ld, Tensor *pivots, Tensor *b, bool hermitian) {
  OP_ENTERED(t_ldl_solve, "ldl_solve", ld, pivots, b, hermitian);
  if (blocked(ld, pivots, b) || !check_ldl_solve(ld, pivots, b)) return NULL;
  int64_t sizes[MAX_DIM], n = rows_of(ld), width = cols_of(b);
  int ndim = ld->ndim - 2;
  memcpy(sizes, ld->sizes, (size_t)ndim * sizeof *sizes);
  if (!sizes_broadcast(&ndim, sizes, b->ndim - 2, b->sizes)) return NULL;
  ndim += 2;
  Node *node = node_new(&node_linalg_ldl_solve, 0, 0, ld, b, NULL);
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    DType wide = wide_type(tensor_dtype(ld));
    Tensor *factors = linalg_columns(expand_batch(ld, ndim, sizes, 2), wide);
    Tensor *x = linalg_columns(expand_batch(b, ndim, sizes, 2), wide);
    Tensor *rows = t_contiguous(t_to(expand_batch(pivots, ndim, sizes, 1), DT_I32));
    for (int64_t k = 0, batch = failed() ? 0 : linalg_batch_of(x); k < batch && !failed(); k++) {
      if (!pivots_fit(ints(rows) + k * n, n))
        fail(ERR_RUNTIME, "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did "
                          "you properly pass the result of ldl_factor?");
      for (int64_t c = 0; c < width && !failed(); c++)
        factorizations_of(x)->ldl_solve(number_at(factors, k * n * n), ints(rows) + k * n,
                                        number_at(x, (k * width + c) * n), n, hermitian);
    }
    y = failed() ? NULL : linalg_columns(x, tensor_dtype(b));
  }
  return set_history(y, node);
}

/* LU for the host: checks, unpacking into P, L and U, and systems solved with existing factors.
 *
 * The factorization itself, its gradient and P are in lu_cholesky.c; the rest is composed of
 * ops. */
#include "linalg_rows.h"
#include "ops/create/create.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/columns.h"
#include "ops/linalg/lu_cholesky.h"
#include "ops/linalg/matrices.h"
#include "ops/op.h"
#include "ops/view/diagonal.h"

/* ------------------------------------------------------------ factoring */

/* LU, pivots and info of A; `op` is for the message about its dimensions. */
static void factor_lu(Tensor *a, bool pivot, const char *op, Tensor *out[3]) {
  out[0] = out[1] = out[2] = NULL;
  if (blocked(a) || refuses_half(a, "lu_cpu")) return;
  if (a->ndim < 2)
    fail(ERR_RUNTIME, "%s: Expected tensor with 2 or more dimensions. Got size: %s instead", op,
         shape_text(a));
  else if (!pivot)
    fail(ERR_RUNTIME, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  else t_lu_factor(a, out);
}

static void check_diagonal(const Tensor *info, const char *op) {
  linalg_check_pivots(info, op, 'U', "lu_solve",
                      "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)");
}

/* Out: LU, pivots, info. */
void t_linalg_lu_factor_ex(Tensor *a, bool pivot, bool check, Tensor *out[3]) {
  OP_ENTERED(t_linalg_lu_factor_ex, "lu_factor_ex", a, pivot, check, out);
  factor_lu(a, pivot, "torch.lu_factor", out);
  if (check) check_diagonal(out[2], "lu_factor_ex");
}

/* Out: LU, pivots. */
void t_linalg_lu_factor(Tensor *a, bool pivot, Tensor *out[2]) {
  OP_ENTERED(t_linalg_lu_factor, "lu_factor", a, pivot, out);
  Tensor *all[3];
  factor_lu(a, pivot, "torch.lu_factor", all);
  check_diagonal(all[2], "lu_factor");
  out[0] = all[0];
  out[1] = all[1];
}

void t_lu_with_info(Tensor *a, bool pivot, Tensor *out[3]) {
  OP_ENTERED(t_lu_with_info, "_lu_with_info", a, pivot, out);
  WARN_ONCE("torch.lu is deprecated in favor of torch.linalg.lu_factor / "
            "torch.linalg.lu_factor_ex and will be removed in a future PyTorch release.\nLU, "
            "pivots = torch.lu(A, compute_pivots)\nshould be replaced with\nLU, pivots = "
            "torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = torch.lu(A, "
            "compute_pivots, get_infos=True)\nshould be replaced with\nLU, pivots, info = "
            "torch.linalg.lu_factor_ex(A, compute_pivots)");
  t_linalg_lu_factor_ex(a, pivot, false, out);
}

/* ------------------------------------------------------------ P, L, U */

/* The first n along a dimension. */
static Tensor *first_of(Tensor *x, int dim, int64_t n) {
  return x->sizes[dim] == n ? x : t_slice(x, dim, 0, n, 1);
}

/* Finds the first pivot outside of 1 to n: -1 if it is less, 1 if greater; 0: there is none. */
static int stray_pivot(Tensor *pivots, int64_t n) {
  pivots = t_contiguous(pivots);
  if (pivots && tensor_absent(pivots)) return 0;
  for (int64_t i = 0; pivots && i < pivots->numel; i++) {
    int64_t row = tensor_get_i(pivots, i);
    if (row < 1 || row > n) return row < 1 ? -1 : 1;
  }
  return 0;
}

static Tensor *permutation_of(Tensor *lu, Tensor *pivots) {
  if (stray_pivot(pivots, rows_of(lu)))
    return fail(ERR_RUNTIME, "pivots passed to lu_unpack must be between 1 and LU.size(-2) "
                             "inclusive.Did you properly pass the result of lu_factor?");
  return t_contiguous(t_lu_permutation(lu, pivots));
}

/* Out: P, L, U; empty if not wanted. */
void t_lu_unpack(Tensor *lu, Tensor *pivots, bool data, bool permutation, Tensor *out[3]) {
  OP_ENTERED(t_lu_unpack, "lu_unpack", lu, pivots, data, permutation, out);
  out[0] = out[1] = out[2] = NULL;
  if (blocked(lu, pivots)) return;
  if (lu->ndim < 2) {
    fail(ERR_RUNTIME,
         "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: %s instead",
         shape_text(lu));
    return;
  }
  if (permutation && pivots->dtype != DT_I32) {
    fail(ERR_RUNTIME, "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
                      "torch.int32 dtype.\nNote: this function is intended to be used with the "
                      "output produced by torch.linalg.lu_factor");
    return;
  }
  DType d = tensor_dtype(lu);
  int64_t rows = rows_of(lu), least = least_dim(lu);
  for (int i = 0; i < 3; i++)
    if (!(i == 0 ? permutation : data)) out[i] = tensor_none_of(d);
  int32_t before = pool_mark();
  if (permutation) out[0] = linalg_keep(before, permutation_of(lu, pivots));
  if (data) {
    int32_t mark = pool_mark();
    Tensor *ones = t_eye(rows, least, d);
    Tensor *low = t_tril(t_contiguous(first_of(lu, lu->ndim - 1, least)), -1);
    out[1] = linalg_keep(mark, t_add(low, ones));
    mark = pool_mark();
    out[2] = linalg_keep(mark, t_triu(t_contiguous(first_of(lu, lu->ndim - 2, least)), 0));
  }
}

void t_linalg_lu(Tensor *a, bool pivot, Tensor *out[3]) {
  OP_ENTERED(t_linalg_lu, "lu", a, pivot, out);
  Tensor *all[3];
  factor_lu(a, pivot, "linalg.lu", all);
  t_lu_unpack(all[0], all[1], true, true, out);
}

/* ------------------------------------------------------------ solving */

static bool check_lu_solve(const Tensor *lu, Tensor *pivots, const Tensor *b, bool left) {
  if (!linalg_check_float(lu, "torch.linalg.lu_solve")) return false;
  if (lu->dtype != b->dtype) {
    fail(ERR_RUNTIME,
         "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type %s and B "
         "of type %s instead",
         legacy(lu), legacy(b));
    return false;
  }
  if (pivots->dtype != DT_I32) {
    fail(ERR_RUNTIME, "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32");
    return false;
  }
  if (!linalg_check_square(lu, "torch.linalg.lu_solve", "A") ||
      !linalg_check_matrix(b, "linalg.lu_solve", "B") || refuses_half(lu, "linalg.lu_solve_cpu"))
    return false;
  int64_t n = cols_of(lu);
  if ((left ? rows_of(b) : cols_of(b)) != n)
    fail(ERR_RUNTIME,
         "linalg.lu_solve: Incompatible shapes of A and B for the equation %s = B (%lldx%lld and "
         "%lldx%lld)",
         left ? "AX" : "XA", (Shown)n, (Shown)n, (Shown)rows_of(b), (Shown)cols_of(b));
  else if (tensor_size(pivots, -1) != n)
    fail(ERR_RUNTIME, "linalg.lu_solve: Number of pivots per batch should be same as the dimension "
                      "of the matrix");
  if (failed()) return false;
  int stray = stray_pivot(pivots, n);
  if (stray)
    fail(ERR_RUNTIME,
         "Pivots given to lu_solve must all be %s. Did you properly pass the result of lu_factor?",
         stray < 0 ? "greater or equal to 1" : "smaller or equal to LU.size(-2)");
  return !failed();
}

/* X A = B is A^H X^H = B^H. */
Tensor *t_linalg_lu_solve(Tensor *lu, Tensor *pivots, Tensor *b, bool left, bool adjoint) {
  OP_ENTERED(t_linalg_lu_solve, "linalg_lu_solve", lu, pivots, b, left, adjoint);
  if (blocked(lu, pivots, b) || !check_lu_solve(lu, pivots, b, left)) return NULL;
  Tensor *p = t_lu_permutation(lu, pivots), *x = left ? b : matrix_adjoint(b);
  if (left != adjoint) {
    x = t_solve_triangular(lu, t_matmul(matrix_transpose(p), x), false, true, true);
    x = t_solve_triangular(lu, x, true, true, false);
  } else {
    Tensor *other = matrix_adjoint(lu);
    x = t_solve_triangular(other, x, false, true, false);
    x = t_matmul(p, t_solve_triangular(other, x, true, true, true));
  }
  return left ? x : matrix_adjoint(x);
}

Tensor *t_lu_solve(Tensor *b, Tensor *lu, Tensor *pivots) {
  OP_ENTERED(t_lu_solve, "lu_solve", b, lu, pivots);
  WARN_ONCE("torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed "
            "in a future PyTorch release.\nNote that torch.linalg.lu_solve has its arguments "
            "reversed.\nX = torch.lu_solve(B, LU, pivots)\nshould be replaced with\nX = "
            "torch.linalg.lu_solve(LU, pivots, B)");
  return t_linalg_lu_solve(lu, pivots, b, true, false);
}

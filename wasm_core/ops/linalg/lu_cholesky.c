/* LU and Cholesky: inverses, determinants, and systems solved with them.
 *
 * Kernels (kernels/factors.h) work in place on columns. All compute in double. But LU, where a zero
 * shows a singular matrix, rounds each step to the input's type. Gradients are composed of ops, so
 * they can be differentiated again. Gradients of analytic functions read `saved_tensor`, so that
 * their real formulas hold for complex matrices; others read `saved_plain` and conjugate
 * themselves. */
#include "ops/linalg/lu_cholesky.h"

#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "kernels/complex.h"
#include "linalg_rows.h"
#include "ops/create/create.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/columns.h"
#include "ops/op.h"
#include "ops/view/diagonal.h"
#include "ops/view/view.h"

/* ------------------------------------------------------------ LU and triangular solving */

/* Messages for the info of a failed factorization. */
static const char *const singular_inverse =
    "%s: %sThe diagonal element %d is zero, the inversion could not be completed because the input "
    "matrix is singular.";
static const char *const singular_solve =
    "%s: %sThe solver failed because the input matrix is singular.";
static const char *const not_positive =
    "%s: %sThe factorization could not be completed because the input is not positive-definite "
    "(the leading minor of order %d is not positive-definite).";

typedef struct {
  Tensor *lu; /* unit lower L below the diagonal, U on and above it; in the wide type */
  /* for each matrix and column, up to the number of rows: the row exchanged with row k */
  int32_t *pivots;
  Tensor *info; /* 1 + the first column without a pivot, 0 if none */
} Factors;

/* A real matrix whose elimination meets an exact zero is eliminated once more with fused products
 * and true quotients, like LAPACK's. If rounding made the zero, as in A - w with an eigenvalue w,
 * they leave a pivot of the size of the rounding, and inverse iteration goes on. LAPACK's complex
 * products are not fused. */
static Factors factor(Tensor *a) {
  Factors f = {NULL, NULL, NULL};
  if (blocked(a)) return f;
  int64_t m = rows_of(a), n = cols_of(a), batch = linalg_batch_of(a), least = least_dim(a);
  DType d = tensor_dtype(a), wide = wide_type(d);
  const Factorizations *of = factorizations_of(a);
  Tensor *again = NULL;
  f.lu = linalg_columns(a, wide);
  f.pivots = scratch_array(least * batch + 1, sizeof *f.pivots);
  f.info = linalg_empty_vectors(a, -1, DT_I32);
  for (int64_t b = 0; b < batch && !failed(); b++) {
    void *lu = number_at(f.lu, b * m * n);
    int32_t *pivots = f.pivots + b * least, *info = ints(f.info) + b;
    *info = of->eliminate(lu, pivots, m, n, rounds_to_float(d), false);
    if (!*info || wide != DT_F64) continue;
    if (!(again = again ? again : linalg_columns(a, wide))) continue;
    memcpy(lu, number_at(again, b * m * n), (size_t)(m * n * dtype_bytes(wide)));
    *info = of->eliminate(lu, pivots, m, n, rounds_to_float(d), true);
  }
  return f;
}

/* The pivots as a tensor, counted from 1. */
static Tensor *counted_pivots(Factors f) {
  Tensor *pivots = f.lu ? linalg_empty_vectors(f.lu, least_dim(f.lu), DT_I32) : NULL;
  if (pivots && tensor_absent(pivots)) return pivots;
  for (int64_t i = 0; pivots && i < pivots->numel; i++) ints(pivots)[i] = f.pivots[i] + 1;
  return pivots;
}

/* Saves the factors in type d: LU in `slot`, pivots in the next. */
static void save_factors(Node *n, int slot, Factors f, DType d) {
  if (!n || !f.lu) return;
  save(n, slot, linalg_columns(f.lu, d));
  save(n, slot + 1, counted_pivots(f));
}

/* Solves A x = b in place, A triangular; both in the wide type. */
static Tensor *substitute(Tensor *a, Tensor *x, bool upper, bool unit) {
  if (blocked(a, x)) return NULL;
  int64_t n = rows_of(a), count = cols_of(x);
  for (int64_t c = 0, all = count * linalg_batch_of(a); c < all; c++)
    factorizations_of(a)->substitute(number_at(a, c / count * n * n), number_at(x, c * n), n, upper,
                                     unit);
  return x;
}

/* Solves A x = b in place, in the wide type, with A's factors; the result in type d. */
static Tensor *solve_factored(Factors f, Tensor *x, DType d) {
  if (blocked(f.lu, x)) return NULL;
  int64_t n = rows_of(x), count = cols_of(x);
  for (int64_t c = 0, all = count * linalg_batch_of(x); c < all; c++)
    factorizations_of(x)->exchange_rows(number_at(x, c * n), f.pivots + c / count * n, n);
  return linalg_columns(substitute(f.lu, substitute(f.lu, x, false, true), true, false), d);
}

/* ------------------------------------------------------------ the factors themselves */

static void exchange(double *x, double *y) {
  double held = *x;
  *x = *y;
  *y = held;
}

/* P of A = P L U: an identity matrix with its rows exchanged by the pivots. Pivots out of range
 * exchange nothing. */
Tensor *t_lu_permutation(Tensor *lu, Tensor *pivots) {
  if (blocked(lu, pivots) || !linalg_check_matrix(lu, "lu_unpack", "LU_data")) return NULL;
  int64_t m = rows_of(lu), batch = linalg_batch_of(lu), count = batch ? pivots->numel / batch : 0;
  Tensor *p = linalg_identity_columns(lu, m, DT_F64);
  pivots = t_contiguous(t_to(pivots, DT_I32));
  if (blocked(p, pivots)) return NULL;
  double *v = doubles(p);
  for (int64_t b = 0; b < batch; b++, v += m * m)
    for (int64_t k = count - 1; k >= 0; k--) {
      int64_t to = ints(pivots)[b * count + k] - 1;
      for (int64_t j = 0; k < m && to >= 0 && to < m && j < m; j++)
        exchange(v + k + j * m, v + to + j * m);
    }
  return t_to(p, tensor_dtype(lu));
}

static Tensor *block(Tensor *x, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  return t_narrow(t_narrow(x, -2, row, rows), -1, col, cols);
}

static Tensor *join_blocks(Tensor *a, Tensor *b, int64_t dim) {
  return t_cat((Tensors){2, (Tensor *[]){a, b}}, dim);
}

/* With B = P^T A in blocks of k, the lesser of its dims, B = [L1; L2] [U1 U2] and
 * M = tril(L1^T L1' - U2' U2^T, -1) + triu(U1' U1^T - L2^T L2'):  B' = [L1^-T [M U2']; L2']
 * [U1^-T 0; 0 1]. */
GRAD(LinalgLuFactorExBackward0, "LU pivots | pivot:bool")
{
  Tensor *lu = saved_tensor(n, 0), *dlu = g[0], *pivots = saved_tensor(n, 1);
  if (!dlu || blocked(lu, pivots)) return;
  int64_t k = least_dim(lu), m = rows_of(lu) - k, c = cols_of(lu) - k;
  Tensor *first = block(lu, 0, 0, k, k), *dfirst = block(dlu, 0, 0, k, k);
  Tensor *lower = t_add(t_tril(first, -1), t_eye(k, k, tensor_dtype(lu))),
         *upper = t_triu(first, 0);
  Tensor *low = t_matmul(t_t(lower), t_tril(dfirst, -1)),
         *high = t_matmul(t_triu(dfirst, 0), t_t(upper));
  if (c > 0) low = t_sub(low, t_matmul(block(dlu, 0, k, k, c), t_t(block(lu, 0, k, k, c))));
  if (m > 0) high = t_sub(high, t_matmul(t_t(block(lu, k, 0, m, k)), block(dlu, k, 0, m, k)));
  Tensor *top = t_add(t_tril(low, -1), t_triu(high, 0));
  if (c > 0) top = join_blocks(top, block(dlu, 0, k, k, c), -1);
  top = t_solve_triangular(t_t(lower), top, true, true, true);
  if (m > 0) top = join_blocks(top, block(dlu, k, 0, m, k), -2);
  Tensor *left = t_solve_triangular(t_t(upper), block(top, 0, 0, m + k, k), false, false, false);
  if (c > 0) left = join_blocks(left, block(top, 0, k, k, c), -1);
  gi[0] = t_matmul(t_lu_permutation(lu, pivots), left);
}

void t_lu_factor(Tensor *a, Tensor *out[3]) {
  OP_ENTERED(t_lu_factor, "lu_factor_ex", a, out);
  out[0] = out[1] = out[2] = NULL;
  if (blocked(a) || !linalg_check_matrix(a, "lu_factor", "A") ||
      !linalg_check_factor_kernel("lu_cpu", a))
    return;
  Node *n = node_new(&LinalgLuFactorExBackward0, 2, 1, a, NULL);
  num_i(n, 0, true);
  Factors f = factor(a);
  out[0] = set_history(linalg_columns(f.lu, tensor_dtype(a)), n);
  out[1] = counted_pivots(f);
  out[2] = f.info;
  if (out[0]) save_output(n, 0, out[0]);
  save(n, 1, out[1]);
}

/* ------------------------------------------------------------ inverse */

/* y = A^-1:  A' = -y^T g y^T. */
GRAD(LinalgInvExBackward0, "inverse")
{
  Tensor *flip = t_t(saved_tensor(n, 0));
  gi[0] = t_neg(t_matmul(flip, t_matmul(g[0], flip)));
}

static void invert(Tensor *a, const char *op, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(a) || !linalg_check_square(a, "linalg.inv", "A") ||
      !linalg_check_precise(a, "linalg.inv"))
    return;
  Node *n = node_new(&LinalgInvExBackward0, 1, 0, a, NULL);
  Factors f = factor(a);
  out[0] = set_history(
      solve_factored(f, linalg_identity_columns(a, rows_of(a), wide_type(tensor_dtype(a))),
                     tensor_dtype(a)),
      n);
  out[1] = f.info;
  save_output(n, 0, out[0]);
  if (op) linalg_check_info(f.info, op, singular_inverse);
}

void t_inv_ex(Tensor *a, bool check, Tensor *out[2]) {
  OP_ENTERED(t_inv_ex, "inv_ex", a, check, out);
  invert(a, check ? "linalg.inv_ex" : NULL, out);
}

Tensor *t_inverse(Tensor *a) {
  OP_ENTERED(t_inverse, "inverse", a);
  Tensor *out[2];
  invert(a, "linalg.inv", out);
  return failed() ? NULL : out[0];
}

/* ------------------------------------------------------------ determinants */

/* det, its sign and log |det| of each matrix; the node saves the factors in two slots. */
static bool determinants(Tensor *a, Node *node, int slot, Tensor *out[3]) {
  /* Like PyTorch, transposes a contiguous real A: this decides which product rounds to zero. */
  Factors f = factor(tensor_is_contiguous(a) && !dtype_is_complex(tensor_dtype(a))
                         ? linalg_transposed_alias(a)
                         : a);
  save_factors(node, slot, f, tensor_dtype(a));
  DType d = tensor_dtype(a), wide = wide_type(d), real = dtype_real(d);
  for (int i = 0; i < 3; i++) out[i] = linalg_empty_vectors(a, -1, i == 2 ? DT_F64 : wide);
  if (failed()) return false;
  int64_t n = rows_of(a), batch = linalg_batch_of(a);
  for (int64_t b = 0; b < batch; b++)
    factorizations_of(a)->determinant(number_at(f.lu, b * n * n), f.pivots + b * n, n,
                                      rounds_to_float(d), number_at(out[0], b),
                                      number_at(out[1], b), number_at(out[2], b));
  for (int i = 0; i < 3; i++) out[i] = elementwise_cast(out[i], i == 2 ? real : d);
  return !failed();
}

/* Solves A^H Y = B, or Y A^H = B if not left, in a gradient whose node saved the factors of A (of
 * A^T if not left) in slot 2. If elimination of A^H meets a zero that A's did not meet, a gradient
 * that is not differentiated again uses these factors. */
static Tensor *solve_adjoint(Node *n, Tensor *a, Tensor *b, bool left) {
  Tensor *out[2];
  char where[48];
  if (grad_mode) return t_solve(t_t(a), b, left);
  t_solve_ex(t_t(a), b, left, false, out);
  if (failed() || !linalg_first_info(out[1], where)) return out[0];
  bool vector = is_vector_case(a, b);
  if (vector) b = t_unsqueeze(b, -1);
  Tensor *y = t_linalg_lu_solve(left ? saved_plain(n, 2) : saved_tensor(n, 2), saved_tensor(n, 3),
                                b, left, left);
  return vector ? t_squeeze_dim(y, -1) : y;
}

/* Diagonal matrices of A's size, with v repeated on the diagonal. */
static Tensor *diagonal_of(Tensor *v, Tensor *a) {
  if (blocked(v, a)) return NULL;
  int64_t sizes[MAX_DIM];
  memcpy(sizes, a->sizes, (size_t)(a->ndim - 1) * sizeof *sizes);
  return t_diag_embed(t_expand(t_unsqueeze(v, -1), a->ndim - 1, sizes), 0, -2, -1);
}

/* The gradient of det where it may be 0: with A = U S V^H, det U det V^H times the conjugate of
 * U diag(products of the other S) V^H. */
static Tensor *singular_det_gradient(Tensor *a, Tensor *g) {
  Tensor *usv[3];
  t_linalg_svd(a, false, NULL, usv);
  if (failed()) return NULL;
  int64_t sizes[MAX_DIM];
  memcpy(sizes, a->sizes, (size_t)a->ndim * sizeof *sizes);
  Tensor *others = t_masked_fill(t_expand(t_unsqueeze(usv[1], -2), a->ndim, sizes),
                                 linalg_eye_mask(rows_of(a)), tensor_wrapped_f(1));
  Tensor *sign = t_mul(t_det(usv[0]), t_det(usv[2]));
  Tensor *weights = t_mul(t_unsqueeze(t_mul(g, sign), -1), t_prod_dim(others, -1, false, DT_NONE));
  return t_matmul(linalg_scale_columns(t_conj(usv[0]), weights), t_conj(usv[2]));
}

enum { MOST_COFACTORS = 6 };
static Tensor *minor_determinants(Tensor *a);

/* At (i, j), the matrix A without row i and column j. */
static Tensor *minors_of(Tensor *a) {
  const int64_t n = rows_of(a), count = n * (n - 1);
  Tensor *rest = tensor_empty(1, &count, DT_I64);
  if (blocked(a, rest)) return NULL;
  int64_t *at = (int64_t *)(void *)tensor_data(rest), sizes[MAX_DIM + 2];
  for (int64_t i = 0; i < count; i++) at[i] = i % (n - 1) + (i % (n - 1) >= i / (n - 1));
  const int outer = a->ndim - 2;
  memcpy(sizes, a->sizes, (size_t)outer * sizeof *sizes);
  for (int d = 0; d < 4; d++) sizes[outer + d] = d % 2 ? n - 1 : n;
  Tensor *picked = t_index_select(t_index_select(a, -2, rest), -1, rest);
  return t_transpose(t_reshape(picked, outer + 4, sizes), -3, -2);
}

/* The gradient of det by cofactors. They are polynomials, so derivatives of any order exist, unlike
 * those of singular vectors. */
static Tensor *cofactor_gradient(Tensor *a, Tensor *g) {
  Tensor *wide = t_unsqueeze(t_unsqueeze(g, -1), -1);
  if (rows_of(a) == 1) return wide;
  const int64_t n = rows_of(a), sizes[] = {n, n};
  Tensor *sign = tensor_empty(2, sizes, dtype_real(tensor_dtype(a)));
  for (int64_t i = 0; sign && i < n * n; i++) tensor_set_f(sign, i, (i / n + i % n) % 2 ? -1 : 1);
  return t_mul(wide, t_conj(t_mul(minor_determinants(minors_of(a)), sign)));
}

/* det' = g det A^-T. `exact`: the gradient is right where det is zero too; PyTorch gives zero there
 * without create_graph. */
static void det_gradient(Node *n, Tensor *g, Tensor **gi, bool exact) {
  Tensor *a = saved_tensor(n, 0), *y = saved_tensor(n, 1);
  if (blocked(a, y)) return;
  bool singular = false;
  for (int64_t i = 0; i < y->numel && !tensor_absent(y); i++) singular |= tensor_get_c(y, i) == 0;
  if (singular && exact) {
    const bool few = rows_of(a) <= MOST_COFACTORS && a->ndim + 2 <= MAX_DIM;
    gi[0] = few ? cofactor_gradient(a, g) : singular_det_gradient(a, g);
    return;
  }
  if (singular)
    a = t_where(t_unsqueeze(t_unsqueeze(t_eq(y, tensor_wrapped_f(0)), -1), -1),
                t_eye(rows_of(a), rows_of(a), tensor_dtype(a)), a);
  gi[0] = solve_adjoint(n, a, diagonal_of(t_mul(g, y), a), true);
}
GRAD(LinalgDetBackward0, "A result LU pivots")
{ det_gradient(n, g[0], gi, grad_mode); }
GRAD(CofactorBackward0, "A result LU pivots")
{ det_gradient(n, g[0], gi, true); }

static Tensor *det_by(const NodeType *type, Tensor *a) {
  Tensor *r[3];
  Node *n = node_new(type, 4, 0, a, NULL);
  save(n, 0, a);
  Tensor *y = set_history(determinants(a, n, 2, r) ? r[0] : NULL, n);
  if (y) save_output(n, 1, y);
  return y;
}
static Tensor *minor_determinants(Tensor *a) {
  return blocked(a) ? NULL : det_by(&CofactorBackward0, a);
}

Tensor *t_det(Tensor *a) {
  OP_ENTERED(t_det, "det", a);
  if (blocked(a) || !linalg_check_square(a, "linalg.det", "A") ||
      !linalg_check_float(a, "linalg.det") || !linalg_check_factor_kernel("lu_cpu", a))
    return NULL;
  return det_by(&LinalgDetBackward0, a);
}

/* log |det A|:  A' = g A^-T. The sign is constant if it is real; if complex, with g_s of it,
 * A' = (g + i Im(conj(sign) g_s)) A^-T. */
GRAD(LinalgSlogdetBackward0, "A LU pivots sign")
{
  Tensor *a = saved_tensor(n, 0), *sign = saved_tensor(n, 3), *each = g[1], *out[2];
  if (blocked(a, sign)) return;
  if (g[0] && dtype_is_complex(tensor_dtype(sign))) {
    Tensor *turn = t_mul(t_imag(t_mul(sign, g[0])), tensor_wrapped_c(complex_of(0.0, 1.0)));
    each = each ? t_add(each, turn) : turn;
  }
  if (!each) return;
  each = t_to(each, tensor_dtype(a));
  if (grad_mode) {
    gi[0] = t_solve(t_t(a), diagonal_of(each, a), true);
    return;
  }
  t_solve_ex(t_t(a), diagonal_of(each, a), true, false, out);
  gi[0] = out[0];
}

/* Out: sign, log |det|. */
void t_slogdet(Tensor *a, const char *op, Tensor *out[2]) {
  OP_ENTERED(t_slogdet, "slogdet", a, op, out);
  Tensor *r[3];
  out[0] = out[1] = NULL;
  if (blocked(a) || !linalg_check_square(a, op, "A") || !linalg_check_precise(a, op)) return;
  Node *n = node_new(&LinalgSlogdetBackward0, 4, 0, a, NULL);
  save(n, 0, a);
  if (determinants(a, n, 1, r)) out[0] = r[1], out[1] = r[2];
  set_histories(out, n, 2);
  save_output(n, 3, out[0]);
}

Tensor *t_logdet(Tensor *a) {
  OP_ENTERED(t_logdet, "logdet", a);
  Tensor *r[2];
  t_slogdet(a, "logdet", r);
  if (r[0] && dtype_is_complex(tensor_dtype(r[0]))) return t_add(t_log(r[0]), r[1]);
  return t_where(t_eq(r[0], tensor_wrapped_f(-1)), tensor_wrapped_f(NAN), r[1]);
}

/* ------------------------------------------------------------ solve */

/* A as (batch, n, n) and B as (batch, m, k) with their batches broadcast, unrecorded. */
static bool broadcast_pair(Tensor **a, Tensor **b) {
  int64_t sizes[MAX_DIM];
  int nd = (*a)->ndim - 2;
  memcpy(sizes, (*a)->sizes, (size_t)nd * sizeof *sizes);
  if (!sizes_broadcast(&nd, sizes, (*b)->ndim - 2, (*b)->sizes)) return false;
  WITHOUT_GRAD_BLOCK {
    Tensor **each[2] = {a, b};
    for (int i = 0; i < 2; i++) {
      sizes[nd] = rows_of(*each[i]);
      sizes[nd + 1] = cols_of(*each[i]);
      *each[i] = t_expand(*each[i], nd + 2, sizes);
      if (failed()) break;
    }
  }
  return !failed();
}

static bool check_fit(const Tensor *a, const Tensor *b, bool left, const char *op) {
  if ((left ? rows_of(b) : cols_of(b)) == rows_of(a)) return true;
  fail(ERR_RUNTIME,
       "%s: Incompatible shapes of A and B for the equation %s = B (%lldx%lld and %lldx%lld)", op,
       left ? "AX" : "XA", (Shown)rows_of(a), (Shown)cols_of(a), (Shown)rows_of(b),
       (Shown)cols_of(b));
  return false;
}

/* A X = B:  B' = A^-T g,  A' = -B' X^T.  X A = B:  B' = g A^-T,  A' = -X^T B'. */
GRAD(LinalgSolveExBackward0, "A result LU pivots | left:bool")
{
  Tensor *a = saved_tensor(n, 0), *x = saved_tensor(n, 1);
  if (!g[0] || blocked(a, x)) return;
  bool left = n->numbers[0].i, vector = is_vector_case(a, x);
  Tensor *db = solve_adjoint(n, a, g[0], left);
  gi[1] = db;
  if (!needs(n, 0)) return;
  if (vector) gi[0] = t_neg(t_matmul(t_unsqueeze(db, -1), t_unsqueeze(x, -2)));
  else gi[0] = t_neg(left ? t_matmul(db, t_t(x)) : t_matmul(t_t(x), db));
}

static bool check_solve(const Tensor *a, const Tensor *b, bool left, bool vector) {
  const char *op = "linalg.solve";
  if (!linalg_check_square(a, op, "A") || !linalg_check_float(a, op) ||
      !linalg_check_factor_kernel("lu_cpu", a))
    return false;
  if (a->dtype != b->dtype) {
    fail(ERR_RUNTIME,
         "%s: Expected A and B to have the same dtype, but found A of type %s and B of type %s "
         "instead",
         op, legacy(a), legacy(b));
    return false;
  }
  if (vector && !left) {
    fail(ERR_RUNTIME,
         "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. "
         "In this case linalg.solve is equivalent to B / A.squeeze(-1)");
    return false;
  }
  return true;
}

/* op: for the message about singular matrices; NULL: no message. */
static void solve(Tensor *a, Tensor *b, bool left, const char *op, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(a, b)) return;
  bool vector = is_vector_case(a, b);
  if (!check_solve(a, b, left, vector)) return;
  Node *n = node_new(&LinalgSolveExBackward0, 4, 1, a, b, NULL);
  save(n, 0, a);
  num_i(n, 0, left);
  Tensor *x = NULL;
  Factors f = {NULL, NULL, NULL};
  WITHOUT_GRAD_BLOCK {
    if (vector) b = t_unsqueeze(b, -1);
    if (b && linalg_check_matrix(b, "linalg.solve", "B") && check_fit(a, b, left, "linalg.solve") &&
        broadcast_pair(&a, &b)) {
      f = factor(left ? a : linalg_transposed_alias(a));
      save_factors(n, 2, f, tensor_dtype(a));
      x = solve_factored(
          f, linalg_columns(left ? b : linalg_transposed_alias(b), wide_type(tensor_dtype(a))),
          tensor_dtype(a));
      if (!left) x = linalg_transposed_alias(x);
      if (vector && x) x = tensor_alias(x, x->ndim - 1, x->sizes, x->strides, x->offset);
    }
  }
  out[0] = x = set_history(x, n);
  out[1] = f.info;
  if (x) save_output(n, 1, x);
  if (op) linalg_check_info(f.info, op, singular_solve);
}

/* Out: result, info. */
void t_solve_ex(Tensor *a, Tensor *b, bool left, bool check, Tensor *out[2]) {
  OP_ENTERED(t_solve_ex, "solve_ex", a, b, left, check, out);
  solve(a, b, left, check ? "torch.linalg.solve_ex" : NULL, out);
}

Tensor *t_solve(Tensor *a, Tensor *b, bool left) {
  OP_ENTERED(t_solve, "solve", a, b, left);
  Tensor *out[2];
  solve(a, b, left, "torch.linalg.solve", out);
  return failed() ? NULL : out[0];
}

/* The gradient of solve, for the triangle of A that is read. */
GRAD(LinalgSolveTriangularBackward0, "self result | upper:bool left:bool unitriangular:bool")
{
  Tensor *a = saved_tensor(n, 0), *x = saved_tensor(n, 1);
  bool upper = n->numbers[0].i, left = n->numbers[1].i, unit = n->numbers[2].i;
  Tensor *db = t_solve_triangular(t_t(a), g[0], !upper, left, unit);
  gi[1] = db;
  if (!needs(n, 0)) return;
  Tensor *da = t_neg(left ? t_matmul(db, t_t(x)) : t_matmul(t_t(x), db));
  gi[0] = upper ? t_triu(da, unit) : t_tril(da, -(int)unit);
}

Tensor *t_solve_triangular(Tensor *a, Tensor *b, bool upper, bool left, bool unitriangular) {
  OP_ENTERED(t_solve_triangular, "solve_triangular", a, b, upper, left, unitriangular);
  const char *op = "linalg.solve_triangular";
  if (blocked(a, b)) return NULL;
  if (a->dtype != b->dtype) {
    DType d = dtype_promote(tensor_dtype(a), tensor_dtype(b));
    a = t_to(a, d);
    b = t_to(b, d);
  }
  if (blocked(a, b) || !linalg_check_matrix(a, op, "A") || !linalg_check_matrix(b, op, "B") ||
      !linalg_check_square(a, op, "A") || !check_fit(a, b, left, op) ||
      !linalg_check_factor_kernel("triangular_solve_cpu", a))
    return NULL;
  Node *n = node_new(&LinalgSolveTriangularBackward0, 2, 3, a, b, NULL);
  save(n, 0, a);
  num_i(n, 0, upper);
  num_i(n, 1, left);
  num_i(n, 2, unitriangular);
  Tensor *x = NULL;
  if (broadcast_pair(&a, &b)) {
    DType wide = wide_type(tensor_dtype(a));
    x = substitute(linalg_columns(left ? a : linalg_transposed_alias(a), wide),
                   linalg_columns(left ? b : linalg_transposed_alias(b), wide), upper == left,
                   unitriangular);
    x = linalg_columns(left ? x : linalg_transposed_alias(x), tensor_dtype(a));
  }
  x = set_history(x, n);
  if (x) save_output(n, 1, x);
  return x;
}

/* ------------------------------------------------------------ Cholesky */

/* A = L L^H. With P = tril(L^H g):  A' = L^-H (P + tril(P, -1)^H) L^-1 / 2. */
GRAD(LinalgCholeskyExBackward0, "L | upper:bool")
{
  Tensor *l = saved_plain(n, 0), *dl = g[0];
  if (!dl) return;
  if (n->numbers[0].i) {
    l = linalg_adjoint_of(l);
    dl = linalg_adjoint_of(dl);
  }
  Tensor *p = t_tril(t_matmul(linalg_adjoint_of(l), dl), 0);
  p = t_add(p, linalg_adjoint_of(t_tril(p, -1)));
  p = t_solve_triangular(linalg_adjoint_of(l), p, true, true, false);
  gi[0] = t_mul_f(t_solve_triangular(l, p, false, false, false), 0.5);
}
static const NodeType CholeskyBackward0 = {
    "CholeskyBackward0", grad_LinalgCholeskyExBackward0, "result | upper:bool", false, NULL, NULL};

/* In the wide type: the factor L in place of the lower triangle, with zeros above it, and the
 * info. */
static Tensor *factor_positive(Tensor *a) {
  Tensor *info = blocked(a) ? NULL : linalg_empty_vectors(a, -1, DT_I32);
  if (!info) return NULL;
  int64_t n = rows_of(a), batch = linalg_batch_of(a);
  for (int64_t b = 0; b < batch; b++)
    ints(info)[b] = factorizations_of(a)->cholesky(number_at(a, b * n * n), n);
  return info;
}

/* op: for messages about the factorization; NULL: no messages. */
static void cholesky(const NodeType *type, Tensor *a, bool upper, const char *op, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(a)) return;
  Node *n = node_new(type, 1, 1, a, NULL);
  num_i(n, 0, upper);
  /* if upper, factors conj(A) = U^T conj(U), and L is U^T */
  Tensor *l = linalg_columns(upper ? linalg_transposed_alias(a) : a, wide_type(tensor_dtype(a)));
  out[1] = factor_positive(l);
  out[0] = set_history(linalg_columns(upper ? linalg_transposed_alias(l) : l, tensor_dtype(a)), n);
  if (out[0]) save_output(n, 0, out[0]);
  if (op) linalg_check_info(out[1], op, not_positive);
}

static bool check_cholesky(const Tensor *a) {
  return linalg_check_square(a, "linalg.cholesky", "A") &&
         linalg_check_float(a, "linalg.cholesky") && linalg_check_factor_kernel("cholesky_cpu", a);
}

/* Out: factor, info. */
void t_cholesky_ex(Tensor *a, bool upper, bool check, Tensor *out[2]) {
  OP_ENTERED(t_cholesky_ex, "cholesky_ex", a, upper, check, out);
  out[0] = out[1] = NULL;
  if (blocked(a) || !check_cholesky(a)) return;
  cholesky(&LinalgCholeskyExBackward0, a, upper, check ? "linalg.cholesky_ex" : NULL, out);
}

Tensor *t_linalg_cholesky(Tensor *a, bool upper) {
  OP_ENTERED(t_linalg_cholesky, "cholesky", a, upper);
  Tensor *out[2];
  if (blocked(a) || !check_cholesky(a)) return NULL;
  cholesky(&LinalgCholeskyExBackward0, a, upper, "linalg.cholesky", out);
  return failed() ? NULL : out[0];
}

/* torch.cholesky */
Tensor *t_cholesky(Tensor *a, bool upper) {
  OP_ENTERED(t_cholesky, "cholesky", a, upper);
  Tensor *out[2];
  if (blocked(a) || !linalg_check_square(a, "cholesky", "A") ||
      !linalg_check_factor_kernel("cholesky_cpu", a))
    return NULL;
  cholesky(&CholeskyBackward0, a, upper, "cholesky", out);
  return failed() ? NULL : out[0];
}

/* ------------------------------------------------------------ solving with a Cholesky factor */

/* A = L L^H:  B' = A^-1 g,  L' = -(B' X^H + X B'^H) L; or A = U^H U:  U' = -U (...). All
 * elements of a factor have a gradient, as in PyTorch, though one triangle is read. */
GRAD(CholeskySolveBackward0, "input2 result self | upper:bool")
{
  Tensor *factor = saved_plain(n, 0), *x = saved_plain(n, 1);
  bool upper = n->numbers[0].i;
  Tensor *db = gi[0] = t_cholesky_solve(g[0], factor, upper);
  if (!needs(n, 1)) return;
  Tensor *half = t_matmul(db, linalg_adjoint_of(x)),
         *both = t_neg(t_add(half, linalg_adjoint_of(half)));
  gi[1] = upper ? t_matmul(factor, both) : t_matmul(both, factor);
}

static bool check_cholesky_solve(const Tensor *b, const Tensor *a) {
  const char *const text = "%s should have at least 2 dimensions, but has %d dimensions instead";
  if (b->ndim < 2) fail(ERR_RUNTIME, text, "b", b->ndim);
  else if (a->ndim < 2) fail(ERR_RUNTIME, text, "u", a->ndim);
  return !failed() && linalg_check_systems(b, a, "cholesky_solve") &&
         linalg_check_factor_kernel("cholesky_solve_cpu", a);
}

Tensor *t_cholesky_solve(Tensor *b, Tensor *factor, bool upper) {
  OP_ENTERED(t_cholesky_solve, "cholesky_solve", b, factor, upper);
  if (blocked(b, factor) || !check_cholesky_solve(b, factor)) return NULL;
  Node *n = node_new(&CholeskySolveBackward0, 3, 1, b, factor, NULL);
  save(n, 0, factor);
  save(n, 2, b);
  num_i(n, 0, upper);
  Tensor *x = NULL;
  if (broadcast_pair(&factor, &b)) {
    DType wide = wide_type(tensor_dtype(b));
    Tensor *other = linalg_adjoint_alias(factor), *lower = upper ? other : factor;
    x = substitute(linalg_columns(lower, wide), linalg_columns(b, wide), false, false);
    x = linalg_columns(substitute(linalg_columns(upper ? factor : other, wide), x, true, false),
                       tensor_dtype(b));
  }
  x = set_history(x, n);
  if (x) save_output(n, 1, x);
  return x;
}

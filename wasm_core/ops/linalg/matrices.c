/* Functions of matrices composed of their decompositions: least squares, rank and condition, the
 * exponential, reflections, tensors as maps, approximations of low rank, aliases of older names.
 *
 * Loops release the tensors of each step. */
#include "ops/linalg/matrices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "linalg_rows.h"
#include "ops/create/create.h"
#include "ops/create/random.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/columns.h"
#include "ops/linalg/lu_cholesky.h"
#include "ops/op.h"
#include "ops/view/diagonal.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"
#include "tape/forward.h"

Tensor *linalg_keep(int32_t mark, Tensor *y) {
  forward_settle();
  pool_release(mark, y);
  return y;
}

/* ------------------------------------------------------------ rank */

static bool has_eps(const Tensor *a) {
  DType d = dtype_real(tensor_dtype(a));
  if (d == DT_F32 || d == DT_F64) return true;
  fail(ERR_RUNTIME, "This function doesn't handle types other than float and double");
  return false;
}

/* tolerances may be NULL */
Tensor *t_matrix_rank(Tensor *a, Tensor *atol, Tensor *rtol, bool hermitian) {
  OP_ENTERED(t_matrix_rank, "matrix_rank", a, atol, rtol, hermitian);
  if (blocked(a)) return NULL;
  if (a->ndim < 2)
    return fail(
        ERR_RUNTIME,
        "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.");
  if (!rtol && !has_eps(a)) return NULL;
  a = t_detach(a);
  Tensor *values = hermitian ? t_abs(t_eigvalsh(a, "L")) : t_svdvals(a, NULL);
  if (blocked(values)) return NULL;
  if (!values->sizes[values->ndim - 1])
    return tensor_zeros(values->ndim - 1, values->sizes, DT_I64);
  return t_sum(t_gt(values, linalg_rank_threshold(a, values, atol, rtol)), ONE_DIM(-1), false,
               DT_NONE);
}

/* ------------------------------------------------------------ least squares */

static bool check_lstsq(const Tensor *a, const Tensor *b, bool vector) {
  int last = vector ? -1 : -2;
  if (!b->ndim) fail(ERR_RUNTIME, "torch.linalg.lstsq: other must have at least 1 dimension.");
  else if (a->dtype != b->dtype)
    fail(ERR_RUNTIME,
         "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's "
         "dtype %s and other's dtype %s",
         legacy(a), legacy(b));
  else if (a->ndim < b->ndim || a->ndim > b->ndim + 1)
    fail(ERR_RUNTIME, "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and "
                      "(input.dim() - other.dim()) <= 1");
  else if (b->sizes[b->ndim + last] != rows_of(a))
    fail(ERR_RUNTIME, "torch.linalg.lstsq: input.size(-2) should match other.size(%d)", last);
  return !failed();
}

static bool all_are(const Tensor *x, int64_t value) {
  for (int64_t i = 0; i < x->numel; i++)
    if (tensor_get_i(x, i) != value) return false;
  return true;
}

/* Solves by the pseudo-inverse, whatever the driver. The driver decides the other results:
 * residuals for all but "gelsy", if A is tall and of full rank; the rank for all but "gels";
 * singular values for "gelsd" and "gelss". Out: solution, residuals, rank, singular values; rcond
 * and driver may be NULL. */
void t_lstsq(Tensor *a, Tensor *b, const double *rcond, const char *driver, Tensor *out[4]) {
  OP_ENTERED(t_lstsq, "lstsq", a, b, rcond, driver, out);
  memset(out, 0, 4 * sizeof *out);
  if (blocked(a, b)) return;
  if (!driver || !*driver) driver = "gelsy";
  bool values = strcmp(driver, "gelsd") == 0 || strcmp(driver, "gelss") == 0;
  bool gels = strcmp(driver, "gels") == 0, gelsy = strcmp(driver, "gelsy") == 0;
  if (!values && !gels && !gelsy) {
    fail(ERR_RUNTIME,
         "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
    return;
  }
  if (a->ndim < 2) {
    fail(ERR_RUNTIME, "torch.linalg.lstsq: input must have at least 2 dimensions.");
    return;
  }
  bool vector = is_vector_case(a, b);
  if (!check_lstsq(a, b, vector) || (!rcond && !has_eps(a)) ||
      !linalg_check_factor_kernel("linalg_lstsq_cpu", a))
    return;
  int64_t m = rows_of(a), n = cols_of(a);
  double share = rcond ? *rcond : linalg_standard_rtol(a);
  Tensor *columns = vector ? t_unsqueeze(b, -1) : b, *least = tensor_wrapped_f(share);
  int32_t mark = pool_mark();
  Tensor *x = linalg_keep(mark, t_matmul(t_pinv(a, NULL, least, false), columns));
  mark = pool_mark();
  Tensor *rank = linalg_keep(mark, t_matrix_rank(a, NULL, least, false));
  if (blocked(x, rank)) return;
  bool residuals = !gelsy && m > n && all_are(rank, n);
  DType real = dtype_real(tensor_dtype(a));
  Tensor *off = residuals ? t_sub(t_matmul(a, x), columns) : NULL;
  if (off && real != off->dtype) off = t_abs(off);
  out[1] = residuals ? t_sum(t_square(off), ONE_DIM(-2), false, DT_NONE) : tensor_none_of(real);
  out[0] = vector ? t_squeeze_dim(x, -1) : x;
  out[2] = gels ? tensor_none_of(DT_I64) : rank;
  out[3] = values ? t_svdvals(t_detach(a), NULL) : tensor_none_of(real);
}

/* ------------------------------------------------------------ condition */

/* The largest singular value divided by the least, or the least by the largest. */
static Tensor *cond_by_values(Tensor *a, bool least_first) {
  if (blocked(a)) return NULL;
  if (a->ndim < 2)
    return fail(ERR_RUNTIME, "linalg.cond: The input tensor must have at least 2 dimensions.");
  Tensor *s = t_svdvals(a, NULL);
  if (blocked(s)) return NULL;
  int last = s->ndim - 1;
  if (!s->sizes[last]) return t_sum(s, ONE_DIM(-1), false, DT_NONE);
  Tensor *largest = t_select(s, last, 0), *least = t_select(s, last, -1);
  return least_first ? t_div(least, largest) : t_div(largest, least);
}

/* The norm of the matrix times that of its inverse; infinite without an inverse. The order is
 * `name`, or *p; both NULL: 2. */
Tensor *t_cond(Tensor *a, const char *name, const double *p) {
  OP_ENTERED(t_cond, "cond", a, name, p);
  if (!name && (!p || fabs(*p) == 2)) return cond_by_values(a, p && *p < 0);
  if (blocked(a)) return NULL;
  bool nuclear = name && strcmp(name, "nuc") == 0;
  char number[32], op[64];
  snprintf(number, sizeof number, "%g", p ? *p : 0);
  const char *order = name ? name : number;
  if (name ? !nuclear && strcmp(name, "fro") != 0 : fabs(*p) != 1 && !isinf(*p))
    return fail(ERR_RUNTIME, "linalg.cond got an invalid norm type: %s", order);
  snprintf(op, sizeof op, "linalg.cond(ord=%s)", order);
  if (!linalg_check_square(a, op, "A")) return NULL;
  if (nuclear) { /* the norm itself refuses matrices that are not finite */
    Tensor *s = t_svdvals(a, NULL);
    Tensor *norm = t_sum(s, ONE_DIM(-1), false, DT_NONE);
    return t_mul(norm, t_sum(t_reciprocal(s), ONE_DIM(-1), false, DT_NONE));
  }
  Tensor *inverse[2];
  t_inv_ex(a, false, inverse);
  Tensor *singular = t_unsqueeze(t_unsqueeze(t_gt(inverse[1], tensor_wrapped_i(0)), -1), -1);
  Tensor *filled = t_masked_fill(inverse[0], singular, tensor_wrapped_f(INFINITY));
  Ints dims = {2, (const int64_t[]){-2, -1}};
  double k = p ? *p : 0;
  Tensor *y = t_mul(t_matrix_norm(a, name, k, dims, false, DT_NONE),
                    t_matrix_norm(filled, name, k, dims, false, DT_NONE));
  return t_nan_to_num(y, INFINITY, true, INFINITY, true, -INFINITY);
}

/* ------------------------------------------------------------ exponential */

enum { EXP_TERMS = 18 }; /* terms of the series for a norm of one half: enough for float64 */

/* The number of halvings that bring the norm down to one half. Limited by the exponents of the
 * type, since larger matrices end in infinity. */
static int halvings_for(double norm, DType d) {
  double n = norm > 0 ? ceil(log2(norm)) + 1 : 0, most = rounds_to_float(d) ? 127 : 1023;
  return (int)(n < 0 ? 0 : n > most ? most : n);
}

/* The divisor of each matrix, and its number of halvings. The norm is the largest sum of magnitudes
 * in a column. NaN if it is not finite. */
static Tensor *scales_of(Tensor *a, int64_t *halvings) {
  int32_t mark = pool_mark();
  Tensor *sums = t_sum(t_abs(t_detach(a)), ONE_DIM(-2), true, DT_NONE);
  Tensor *scales = linalg_keep(mark, t_amax(sums, ONE_DIM(-1), true));
  for (int64_t i = 0; scales && i < scales->numel; i++) {
    double norm = tensor_absent(scales) ? 0 : tensor_get_f(scales, i);
    halvings[i] = isfinite(norm) ? halvings_for(norm, tensor_dtype(a)) : 0;
    tensor_set_f(scales, i, isfinite(norm) ? ldexp(1, (int)halvings[i]) : NAN);
  }
  return scales;
}

/* Squares the matrices that were halved more than k times; leaves the others. */
static Tensor *square_halved(Tensor *y, const Tensor *scales, const int64_t *halvings, int k) {
  Tensor *square = t_matmul(y, y);
  int64_t n = scales->numel, same = 0;
  while (same < n && halvings[same] > k) same++;
  if (same == n) return square;
  Tensor *which = tensor_empty(scales->ndim, scales->sizes, DT_BOOL);
  for (int64_t i = 0; which && i < n; i++) tensor_set_i(which, i, halvings[i] > k);
  return t_where(which, square, y);
}

/* Sums the series for each matrix after its halvings, then squares it as often. */
Tensor *t_matrix_exp(Tensor *a) {
  OP_ENTERED(t_matrix_exp, "matrix_exp", a);
  if (blocked(a) || !linalg_check_square(a, "linalg.matrix_exp", "A") ||
      !linalg_check_float(a, "linalg.matrix_exp"))
    return NULL;
  if (!a->numel) return t_clone(a);
  if (cols_of(a) == 1) return t_exp(a);
  int64_t count = a->numel / cols_of(a) / cols_of(a), most = 0;
  int64_t *halvings = scratch_array(count, sizeof *halvings);
  Tensor *scales = halvings ? scales_of(a, halvings) : NULL;
  if (!scales) return NULL;
  for (int64_t i = 0; i < count; i++) most = halvings[i] > most ? halvings[i] : most;
  Tensor *scaled = t_div(a, scales), *identity = t_eye(cols_of(a), cols_of(a), tensor_dtype(a));
  int32_t mark = pool_mark();
  Tensor *y = t_add(identity, t_div(scaled, tensor_wrapped_f(EXP_TERMS)));
  for (int k = EXP_TERMS - 1; k > 0; k--) {
    y = linalg_keep(mark, t_matmul(scaled, y));
    y = linalg_keep(mark, t_div(y, tensor_wrapped_f(k)));
    y = linalg_keep(mark, t_add(identity, y));
  }
  for (int k = 0; k < most; k++) y = linalg_keep(mark, square_halved(y, scales, halvings, k));
  return y;
}

/* ------------------------------------------------------------ reflections */

static bool check_householder(const Tensor *a, const Tensor *tau) {
  const char *op = "torch.linalg.householder_product";
  if (a->ndim < 2) fail(ERR_RUNTIME, "%s: input must have at least 2 dimensions.", op);
  else if (rows_of(a) < cols_of(a))
    fail(ERR_RUNTIME, "%s: input.shape[-2] must be greater than or equal to input.shape[-1]", op);
  else if (tensor_size(tau, -1) > cols_of(a))
    fail(ERR_RUNTIME, "%s: input.shape[-1] must be greater than or equal to tau.shape[-1]", op);
  else if (a->ndim != tau->ndim + 1)
    fail(ERR_RUNTIME,
         "%s: Expected tau to have one dimension less than input, but got tau.ndim equal to %d and "
         "input.ndim is equal to %d",
         op, tau->ndim, a->ndim);
  else if (!sizes_equal(a->ndim - 2, a->sizes, tau->ndim - 1, tau->sizes))
    fail(ERR_RUNTIME,
         "%s: Expected batch dimensions of tau to be equal to input.shape[:-2], but got %s", op,
         sizes_text(tau->ndim - 1, tau->sizes));
  else if (a->dtype != tau->dtype)
    fail(ERR_RUNTIME, "%s: tau dtype %s does not match input dtype %s", op, legacy(tau), legacy(a));
  return !failed() && linalg_check_factor_kernel("orgqr_cpu", a);
}

/* The vectors of reflections 1 - tau v v^H: each v is 1, then the numbers below the diagonal. */
static Tensor *reflecting(Tensor *a) {
  int32_t mark = pool_mark();
  Tensor *ones = t_eye(rows_of(a), cols_of(a), tensor_dtype(a));
  return linalg_keep(mark, t_add(t_tril(a, -1), ones));
}

/* Applies the reflections, or their conjugate transposes, to y. */
static Tensor *apply_reflections(Tensor *vectors, Tensor *tau, Tensor *y, bool transpose) {
  if (blocked(vectors, tau, y)) return NULL;
  int32_t mark = pool_mark();
  int last = vectors->ndim - 1;
  int64_t n = tau->sizes[tau->ndim - 1];
  for (int64_t i = 0; i < n && !failed(); i++) {
    int64_t k = transpose ? i : n - 1 - i;
    Tensor *v = cols_of(vectors) == 1 ? vectors : t_slice(vectors, last, k, k + 1, 1);
    Tensor *weight = t_unsqueeze(t_unsqueeze(t_select(tau, tau->ndim - 1, k), -1), -1);
    if (transpose) weight = t_conj(weight);
    y = linalg_keep(mark, t_sub(y, t_matmul(t_mul(weight, v), t_matmul(matrix_adjoint(v), y))));
  }
  return y;
}

/* The first columns of the product of the reflections. */
Tensor *t_householder_product(Tensor *a, Tensor *tau) {
  OP_ENTERED(t_householder_product, "householder_product", a, tau);
  if (blocked(a, tau) || !check_householder(a, tau)) return NULL;
  Tensor *vectors = reflecting(a);
  /* the upper triangle of the vectors is the identity, as part of the graph */
  return apply_reflections(vectors, tau, t_triu(vectors, 0), false);
}

static bool check_ormqr(const Tensor *a, const Tensor *tau, const Tensor *y, bool left) {
  int side = left ? -2 : -1;
  if (a->ndim < 2) fail(ERR_RUNTIME, "torch.ormqr: input must have at least 2 dimensions.");
  else if (y->ndim < 2) fail(ERR_RUNTIME, "torch.ormqr: other must have at least 2 dimensions.");
  if (failed()) return false;
  int64_t size = left ? rows_of(y) : cols_of(y), n = size < cols_of(a) ? size : cols_of(a);
  if (size != rows_of(a))
    fail(ERR_RUNTIME, "torch.ormqr: other.shape[%d] must be equal to input.shape[-2]", side);
  else if (tensor_size(tau, -1) != n)
    fail(ERR_RUNTIME,
         "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[%d], input.shape[-1])", side);
  else if (a->ndim != tau->ndim + 1)
    fail(ERR_RUNTIME,
         "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal "
         "to %d and input.ndim is equal to %d",
         tau->ndim, a->ndim);
  else if (a->ndim != y->ndim)
    fail(ERR_RUNTIME,
         "torch.ormqr: Expected other to have the same number of dimensions as input, but got "
         "other.ndim equal to %d and input.ndim is equal to %d",
         y->ndim, a->ndim);
  else if (!sizes_equal(a->ndim - 2, a->sizes, tau->ndim - 1, tau->sizes))
    fail(ERR_RUNTIME,
         "torch.ormqr: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
         "%s",
         sizes_text(tau->ndim - 1, tau->sizes));
  else if (!sizes_equal(a->ndim - 2, a->sizes, y->ndim - 2, y->sizes))
    fail(ERR_RUNTIME,
         "torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
         "%s",
         sizes_text(y->ndim - 2, y->sizes));
  for (int i = 0; i < 2 && !failed(); i++) {
    const Tensor *t = i ? y : tau;
    if (t->dtype != a->dtype)
      fail(ERR_RUNTIME,
           "torch.ormqr: Expected input and %s to have the same dtype, but input has dtype%s and "
           "%s has dtype %s",
           i ? "other" : "tau", legacy(a), i ? "other" : "tau", legacy(t));
  }
  return !failed() && linalg_check_factor_kernel("ormqr_cpu", a);
}

/* Multiplies y by the product of all reflections, or by its transpose; from the right if not
 * `left`, by way of transposes. */
Tensor *t_ormqr(Tensor *a, Tensor *tau, Tensor *y, bool left, bool transpose) {
  OP_ENTERED(t_ormqr, "ormqr", a, tau, y, left, transpose);
  if (blocked(a, tau, y) || !check_ormqr(a, tau, y, left)) return NULL;
  if (!tau->numel) return t_clone(y);
  Tensor *vectors = reflecting(a);
  if (left) return apply_reflections(vectors, tau, y, transpose);
  return matrix_adjoint(apply_reflections(vectors, tau, matrix_adjoint(y), !transpose));
}

/* ------------------------------------------------------------ powers of numbers */

/* columns NULL: as many as rows */
Tensor *t_linalg_vander(Tensor *x, const int64_t *columns) {
  OP_ENTERED(t_linalg_vander, "vander", x, columns);
  if (blocked(x)) return NULL;
  if (x->dtype == DT_BOOL || dtype_is_half(tensor_dtype(x)))
    return fail(ERR_RUNTIME,
                "linalg.vander supports floating point, complex, and integer tensors, but got %s",
                legacy(x));
  int64_t n = columns ? *columns : x->ndim ? x->sizes[x->ndim - 1] : 1, sizes[MAX_DIM];
  if (n <= 1) return fail(ERR_RUNTIME, "N must be greater than 1.");
  if (!x->ndim) x = t_unsqueeze(x, 0);
  if (blocked(x)) return NULL;
  int nd = x->ndim;
  Tensor *column = t_unsqueeze(x, -1);
  memcpy(sizes, x->sizes, (size_t)nd * sizeof *sizes);
  if (blocked(column)) return NULL;
  sizes[nd] = n - 1;
  Tensor *powers = t_cumprod(t_expand(column, nd + 1, sizes), -1, DT_NONE);
  Tensor *ones = t_ones_like(n == 2 ? powers : t_slice(powers, nd, 0, 1, 1));
  return t_cat((Tensors){2, (Tensor *[]){ones, powers}}, -1);
}

/* ------------------------------------------------------------ tensors as maps of tensors */

static int64_t product(const Tensor *a, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; i++) n *= a->sizes[i];
  return n;
}

/* Checks that the dimensions from a place on have as many elements as those before it. `names` is
 * the place in the message. */
static bool check_map(int64_t right, int64_t left, const char *names) {
  if (left == right) return true;
  fail(ERR_RUNTIME,
       "Expected self to satisfy the requirement prod(self.shape[%s:]) == prod(self.shape[:%s]), "
       "but got %lld != %lld",
       names, names, (Shown)right, (Shown)left);
  return false;
}

Tensor *t_tensorinv(Tensor *a, int64_t ind) {
  OP_ENTERED(t_tensorinv, "tensorinv", a, ind);
  if (blocked(a)) return NULL;
  if (ind <= 0)
    return fail(ERR_RUNTIME, "Expected a strictly positive integer for 'ind', but got %lld",
                (Shown)ind);
  int nd = a->ndim;
  if (ind > nd)
    return fail(ERR_RUNTIME, "ArrayRef: invalid slice, N = %lld; size = %d", (Shown)ind, nd);
  int split = (int)ind;
  int64_t n = product(a, 0, split), sizes[MAX_DIM];
  if (!check_map(product(a, split, nd), n, "ind")) return NULL;
  for (int i = 0; i < nd; i++) sizes[i] = a->sizes[(split + i) % nd];
  return t_reshape(t_inverse(t_reshape(a, 2, (int64_t[]){n, n})), nd, sizes);
}

/* a with some dimensions moved to its end, in the order listed. */
static Tensor *moved_last(Tensor *a, Ints dims) {
  int64_t to[MAX_DIM];
  for (int i = 0; i < dims.n && i < MAX_DIM; i++) to[i] = a->ndim - dims.n + i;
  return t_movedim(a, dims, (Ints){dims.n, to});
}

/* dims.n == -1: none is moved */
Tensor *t_tensorsolve(Tensor *a, Tensor *b, Ints dims) {
  OP_ENTERED(t_tensorsolve, "tensorsolve", a, b, dims);
  if (blocked(a, b)) return NULL;
  if (dims.n >= 0) a = moved_last(a, dims);
  if (blocked(a)) return NULL;
  int nd = a->ndim, split = b->ndim < nd ? b->ndim : nd;
  int64_t n = product(a, split, nd);
  if (!check_map(n, b->numel, "other.ndim")) return NULL;
  Tensor *x = t_solve(t_reshape(a, 2, (int64_t[]){n, n}), t_flatten(b, 0, -1), true);
  return t_reshape(x, nd - split, a->sizes + split);
}

/* ------------------------------------------------------------ older names */

/* Square matrices of zeros in the place of vectors. */
static Tensor *zero_vectors(const Tensor *a, int64_t n) {
  int64_t sizes[MAX_DIM];
  memcpy(sizes, a->sizes, (size_t)a->ndim * sizeof *sizes);
  sizes[a->ndim - 2] = sizes[a->ndim - 1] = n;
  return tensor_zeros(a->ndim, sizes, tensor_dtype(a));
}

/* Out: U, S, V. */
void t_svd(Tensor *a, bool some, bool vectors, Tensor *out[3]) {
  OP_ENTERED(t_svd, "svd", a, some, vectors, out);
  out[0] = out[1] = out[2] = NULL;
  if (blocked(a) || !linalg_check_matrix(a, "linalg.svd", "A")) return;
  if (vectors) {
    t_linalg_svd(a, !some, NULL, out);
    out[2] = matrix_adjoint(out[2]);
  } else {
    out[0] = zero_vectors(a, rows_of(a));
    out[1] = t_svdvals(a, NULL);
    out[2] = zero_vectors(a, cols_of(a));
  }
}

Tensor *t_cholesky_inverse(Tensor *factor, bool upper) {
  OP_ENTERED(t_cholesky_inverse, "cholesky_inverse", factor, upper);
  if (blocked(factor) || !linalg_check_square(factor, "cholesky_inverse", "A") ||
      !linalg_check_factor_kernel("cholesky_inverse_out_cpu", factor))
    return NULL;
  return t_cholesky_solve(t_eye(cols_of(factor), cols_of(factor), tensor_dtype(factor)), factor,
                          upper);
}

static bool check_triangular_solve(const Tensor *b, const Tensor *a) {
  const char *const few = "torch.triangular_solve: Expected %s to have at least 2 dimensions, but "
                          "it has %d dimensions instead";
  if (b->ndim < 2) fail(ERR_RUNTIME, few, "b", b->ndim);
  else if (a->ndim < 2) fail(ERR_RUNTIME, few, "A", a->ndim);
  return !failed() && linalg_check_systems(b, a, "triangular_solve");
}

void t_triangular_solve(Tensor *b, Tensor *a, bool upper, bool transpose, bool unitriangular,
                        Tensor *out[2]) {
  OP_ENTERED(t_triangular_solve, "triangular_solve", b, a, upper, transpose, unitriangular, out);
  int64_t sizes[MAX_DIM];
  out[0] = out[1] = NULL;
  if (blocked(b, a)) return;
  WARN_ONCE(
      "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be "
      "removed in a future PyTorch release.\ntorch.linalg.solve_triangular has its arguments "
      "reversed and does not return a copy of one of the inputs.\nX = torch.triangular_solve(B, "
      "A).solution\nshould be replaced with\nX = torch.linalg.solve_triangular(A, B).");
  if (!check_triangular_solve(b, a)) return;
  Tensor *x = t_solve_triangular(transpose ? matrix_transpose(a) : a, b, upper != transpose, true,
                                 unitriangular);
  if (blocked(x)) return;
  memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
  sizes[x->ndim - 1] = rows_of(a);
  out[0] = x;
  out[1] = t_clone(t_expand(a, x->ndim, sizes));
}

/* dims.n == -1: the last two */
Tensor *t_nuclear_norm(Tensor *x, Ints dims, bool keepdim) {
  OP_ENTERED(t_nuclear_norm, "nuclear_norm", x, dims, keepdim);
  if (blocked(x)) return NULL;
  WARN_ONCE("at::nuclear_norm is deprecated and it is just left for JIT compatibility. It will be "
            "removed in a future PyTorch release. Please use `linalg.matrix_norm(A, 'nuc', dim, "
            "keepdim)` instead");
  if (dims.n < 0) dims = (Ints){2, (const int64_t[]){-2, -1}};
  return t_matrix_norm(x, "nuc", 0, dims, keepdim, DT_NONE);
}

Tensor *t_frobenius_norm(Tensor *x, Ints dims, bool keepdim) {
  OP_ENTERED(t_frobenius_norm, "frobenius_norm", x, dims, keepdim);
  if (blocked(x)) return NULL;
  WARN_ONCE("at::frobenius_norm is deprecated and it is just left for JIT compatibility. It will "
            "be removed in a future PyTorch release. Please use `linalg.vector_norm(A, 2., dim, "
            "keepdim)` instead");
  return t_vector_norm(x, 2, dims, keepdim, DT_NONE);
}

/* ------------------------------------------------------------ low rank */

static bool check_rows(const Tensor *a) {
  if (a->ndim > 1) return true;
  fail(ERR_VALUE, "not enough values to unpack (expected 2, got %d)", a->ndim);
  return false;
}

static Tensor *basis_of(Tensor *x) {
  Tensor *qr[2];
  t_qr(x, "reduced", qr);
  return qr[0];
}

/* The SVD by random projections (Halko and others, 2009). A wide matrix is transposed first. m may
 * be NULL. */
void t_svd_lowrank(Tensor *a, int64_t q, int64_t niter, Tensor *m, Tensor *out[3]) {
  OP_ENTERED(t_svd_lowrank, "svd_lowrank", a, q, niter, m, out);
  out[0] = out[1] = out[2] = NULL;
  if (!failed() && m) a = t_sub(a, m);
  if (blocked(a) || !check_rows(a)) return;
  bool wide = rows_of(a) < cols_of(a);
  if (wide) a = matrix_adjoint(a);
  if (blocked(a)) return;
  Ints drawn = {2, (const int64_t[]){cols_of(a), q}};
  int32_t mark = pool_mark();
  DType d = dtype_is_inexact(tensor_dtype(a)) ? tensor_dtype(a) : DT_F32;
  Tensor *directions = random_normal(t_empty(drawn, d, "contiguous_format"), 0, 1, 0);
  Tensor *basis = linalg_keep(mark, basis_of(t_matmul(a, directions)));
  for (int64_t k = 0; k < niter && !failed(); k++) {
    basis = linalg_keep(mark, basis_of(t_matmul(matrix_adjoint(a), basis)));
    basis = linalg_keep(mark, basis_of(t_matmul(a, basis)));
  }
  Tensor *usv[3];
  t_linalg_svd(t_matmul(matrix_adjoint(basis), a), false, NULL, usv);
  out[wide ? 2 : 0] = t_matmul(basis, usv[0]);
  out[1] = usv[1];
  out[wide ? 0 : 2] = matrix_adjoint(usv[2]);
}

/* svd_lowrank of the rows minus their mean; q NULL: up to 6. */
void t_pca_lowrank(Tensor *a, const int64_t *q, bool center, int64_t niter, Tensor *out[3]) {
  OP_ENTERED(t_pca_lowrank, "pca_lowrank", a, q, center, niter, out);
  out[0] = out[1] = out[2] = NULL;
  if (blocked(a) || !check_rows(a)) return;
  int64_t most = least_dim(a);
  int64_t count = q ? *q : most;
  if (!q && most > 6) count = 6;
  if (count < 0 || count > most)
    fail(ERR_VALUE, "q(=%lld) must be non-negative integer and not greater than min(m, n)=%lld",
         (Shown)count, (Shown)most);
  else if (niter < 0) fail(ERR_VALUE, "niter(=%lld) must be non-negative integer", (Shown)niter);
  else
    t_svd_lowrank(center ? t_sub(a, t_mean(a, ONE_DIM(-2), true, DT_NONE)) : a, count, niter, NULL,
                  out);
}

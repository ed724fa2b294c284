/* QR, singular values and eigenvalues; pseudo-inverses and norms of matrices.
 *
 * Kernels (kernels/factors.h) work in place on columns, in double. Gradients are composed of ops,
 * so they can be differentiated again. Few of these functions are analytic: their gradients read
 * `saved_plain`, and H is the conjugate transpose in them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "linalg_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/columns.h"
#include "ops/linalg/lu_cholesky.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "ops/view/diagonal.h"
#include "ops/view/view.h"

/* Gives the `count` results their node, which saves them in order. */
static void finish(Node *n, int count, Tensor **out) {
  set_histories(out, n, count);
  for (int i = 0; i < count && !failed(); i++) save_output(n, i, out[i]);
}

/* ------------------------------------------------------------ QR */

/* The first m rows of x in columns of the given type. */
static Tensor *top_rows(Tensor *x, int64_t m, DType d) {
  return WITHOUT_GRAD(linalg_columns(t_narrow(x, -2, 0, m), d));
}

static const char *const qr_modes[] = {"reduced", "complete", "r"};

/* A = Q R, A tall or square, M = R R'^H - Q'^H Q:  A' = (Q' + Q (tril(M) + tril(M, -1)^H)) R^-H,
 * with a real diagonal. A wide is (X, Y) = Q (U, V): X' as above with U and Q' + Y V'^H for Q', and
 * Y' = Q V'. */
GRAD(LinalgQrBackward0, "Q R | mode:text=reduced,complete,r")
{
  Tensor *q = saved_plain(n, 0), *r = saved_plain(n, 1), *dq = g[0], *dr = g[1], *wide = NULL;
  if (blocked(q, r) || (!dq && !dr)) return;
  int64_t rows = rows_of(r), cols = cols_of(r);
  if (n->numbers[0].i == 2) {
    fail(ERR_RUNTIME,
         "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
         "use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr.");
    return;
  }
  if (n->numbers[0].i == 1 && rows > cols) {
    fail(ERR_RUNTIME,
         "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
    return;
  }
  if (!dq) dq = t_zeros_like(q);
  if (!dr) dr = t_zeros_like(r);
  if (cols > rows) {
    Tensor *dv = t_narrow(dr, -1, rows, cols - rows), *v = t_narrow(r, -1, rows, cols - rows);
    wide = t_matmul(q, dv);
    dq = t_add(dq, t_matmul(t_matmul(q, v), linalg_adjoint_of(dv)));
    dr = t_narrow(dr, -1, 0, rows);
    r = t_narrow(r, -1, 0, rows);
  }
  Tensor *m = t_sub(t_matmul(r, linalg_adjoint_of(dr)), t_matmul(linalg_adjoint_of(dq), q));
  Tensor *x = t_add(dq, t_matmul(q, linalg_hermitian_of(m)));
  gi[0] = t_solve_triangular(linalg_adjoint_of(r), x, false, false, false);
  if (wide) gi[0] = t_cat((Tensors){2, (Tensor *[]){gi[0], wide}}, -1);
}

/* Q (columns of `width`; NULL for mode r) and R of a batch. */
static void qr_values(Tensor *a, char mode, Tensor *out[2]) {
  int64_t m = rows_of(a), n = cols_of(a), k = m < n ? m : n, width = mode == 'c' ? m : k;
  DType wide = wide_type(tensor_dtype(a));
  Tensor *w = linalg_columns(a, wide),
         *q = mode == 'r' ? NULL : linalg_empty_columns(a, m, width, wide);
  void *taus = scratch_array(k + 1, (size_t)dtype_bytes(wide));
  if (failed()) return;
  for (int64_t b = 0, batch = linalg_batch_of(a); b < batch; b++)
    factorizations_of(a)->qr(number_at(w, b * m * n), m, n, q ? number_at(q, b * m * width) : NULL,
                             width, taus);
  out[0] = q ? linalg_columns(q, tensor_dtype(a)) : tensor_none_of(tensor_dtype(a));
  out[1] = top_rows(w, mode == 'c' ? m : k, tensor_dtype(a));
}

void t_qr(Tensor *a, const char *mode, Tensor *out[2]) {
  OP_ENTERED(t_qr, "qr", a, mode, out);
  out[0] = out[1] = NULL;
  if (blocked(a) || !mode || !linalg_check_matrix(a, "linalg.qr", "A") ||
      !linalg_check_float(a, "linalg.qr") || !linalg_check_factor_kernel("geqrf_cpu", a))
    return;
  int which = 0;
  while (which < 3 && strcmp(mode, qr_modes[which]) != 0) which++;
  if (which == 3) {
    fail(ERR_RUNTIME,
         "qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or "
         "'complete'",
         mode);
    return;
  }
  Node *n = node_new(&LinalgQrBackward0, 2, 1, a, NULL);
  num_i(n, 0, which);
  qr_values(a, "fcr"[which], out);
  finish(n, 2, out);
}

GRAD(GeqrfBackward0, "")
{
  if (g[0] || g[1]) fail(ERR_NOT_IMPLEMENTED, "the derivative for 'geqrf' is not implemented.");
}

/* QR in LAPACK's form. Out: R, with the vectors of the reflections without their heads below it;
 * the factors of the reflections. */
void t_geqrf(Tensor *a, Tensor *out[2]) {
  OP_ENTERED(t_geqrf, "geqrf", a, out);
  out[0] = out[1] = NULL;
  if (blocked(a)) return;
  if (a->ndim < 2) fail(ERR_RUNTIME, "torch.geqrf: input must have at least 2 dimensions.");
  else linalg_check_factor_kernel("geqrf_cpu", a);
  if (failed()) return;
  int64_t m = rows_of(a), n = cols_of(a), k = least_dim(a);
  Node *node = node_new(&GeqrfBackward0, 0, 0, a, NULL);
  DType wide = wide_type(tensor_dtype(a));
  Tensor *w = linalg_columns(a, wide), *tau = linalg_empty_vectors(a, k, wide);
  for (int64_t b = 0, batch = failed() ? 0 : linalg_batch_of(a); b < batch; b++)
    factorizations_of(a)->geqrf(number_at(w, b * m * n), m, n, number_at(tau, b * k));
  out[0] = WITHOUT_GRAD(linalg_columns(w, tensor_dtype(a)));
  out[1] = elementwise_cast(tau, tensor_dtype(a));
  set_histories(out, node, 2);
}

/* ------------------------------------------------------------ singular values */

/* Fails with PyTorch's text if a loss depends on the phases of vectors, which shows in the
 * imaginary parts of `turns`. */
static bool check_phases(Tensor *turns, const char *text, const char *op) {
  Tensor *imaginary = t_imag(t_detach(turns));
  if (imaginary && tensor_absent(imaginary)) return true;
  for (int64_t i = 0; imaginary && i < imaginary->numel; i++) {
    double v = fabs(tensor_get_f(t_contiguous(imaginary), i));
    if (!(v <= 1e-2)) return fail(ERR_RUNTIME, text, op), false;
  }
  return !failed();
}

/* A = U S V^H, skew X = X - X^H, E = S_j^2 - S_i^2:
 *   A' = U (skew(U^H U') / E S + S skew(V^H V') / E + diag(S')) V^H
 *        + (1 - U U^H) U' S^-1 V^H + U S^-1 V'^H (1 - V V^H),
 * where the diagonal of skew(U^H U') is divided by 2 S, once. */
GRAD(LinalgSvdBackward0, "U S Vh | full_matrices:bool S_sym_argsize_minus_1:int")
{
  Tensor *u = saved_plain(n, 0), *s = saved_plain(n, 1), *vh = saved_plain(n, 2), *du = g[0],
         *ds = g[1], *dvh = g[2], *y;
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
    gi[0] = t_matmul(linalg_scale_columns(u, ds), vh);
    return;
  }
  bool tall = du && m > k, wide = dvh && cols > k, complex = dtype_is_complex(tensor_dtype(u));
  if (!du) du = t_zeros_like(u);
  if (!dvh) dvh = t_zeros_like(vh);
  Tensor *square = t_square(s);
  Tensor *e = t_masked_fill(t_sub(t_unsqueeze(square, -2), t_unsqueeze(square, -1)),
                            linalg_eye_mask(k), tensor_wrapped_f(1));
  Tensor *left = t_matmul(linalg_adjoint_of(u), du), *right = t_matmul(vh, linalg_adjoint_of(dvh)),
         *inverse = t_reciprocal(s);
  Tensor *skew_left = t_sub(left, linalg_adjoint_of(left)),
         *skew_right = t_sub(right, linalg_adjoint_of(right));
  if (complex) {
    Tensor *phases = t_diagonal(skew_left, 0, -2, -1);
    if (!check_phases(t_add(phases, t_diagonal(skew_right, 0, -2, -1)),
                      "%s: The singular vectors in the complex case are specified up to "
                      "multiplication by e^{i phi}. The specified loss function depends on this "
                      "phase term, making it ill-defined.",
                      "svd_backward"))
      return;
    Tensor *turns = t_mul_f(t_mul(phases, inverse), .5), *diagonal = linalg_eye_mask(k);
    skew_left = t_masked_fill(skew_left, diagonal, tensor_wrapped_f(0));
    skew_right = t_masked_fill(skew_right, diagonal, tensor_wrapped_f(0));
    ds = ds ? t_add(ds, turns) : turns;
  }
  y = t_add(linalg_scale_columns(t_div(skew_left, e), s),
            linalg_scale_rows(s, t_div(skew_right, e)));
  if (ds) y = t_add(y, t_diag_embed(ds, 0, -2, -1));
  y = t_matmul(t_matmul(u, y), vh);
  if (tall) y = t_add(y, t_matmul(linalg_scale_columns(t_sub(du, t_matmul(u, left)), inverse), vh));
  if (wide)
    y = t_add(y, t_matmul(u, linalg_scale_rows(
                                 inverse, t_sub(dvh, t_matmul(linalg_adjoint_of(right), vh)))));
  gi[0] = y;
}

static const char *const not_finite =
    "%s: %sThe algorithm failed to converge because the input matrix contained non-finite values.";

/* 1 for each matrix in columns with numbers that are not finite. */
static Tensor *not_finite_info(Tensor *x) {
  Tensor *info = blocked(x) ? NULL : linalg_empty_vectors(x, -1, DT_I32);
  if (info && tensor_absent(info)) return info;
  int64_t each = x ? rows_of(x) * cols_of(x) * dtype_bytes(tensor_dtype(x)) / 8 : 0;
  for (int64_t b = 0; info && b < info->numel; b++) {
    int32_t bad = 0;
    for (int64_t i = 0; i < each; i++) bad |= !isfinite(doubles(x)[b * each + i]);
    ints(info)[b] = bad;
  }
  return info;
}

/* U, S, V (not its transpose) of a batch, in the wide type. */
static void svd_values(Tensor *a, bool full, Tensor *out[3]) {
  int64_t m = rows_of(a), n = cols_of(a);
  if (m < n) {
    Tensor *turned[3] = {NULL, NULL, NULL};
    svd_values(linalg_adjoint_alias(a), full, turned);
    for (int i = 0; i < 3; i++) out[i] = turned[2 - i];
    return;
  }
  int64_t width = full ? m : n;
  DType type = wide_type(tensor_dtype(a));
  Tensor *w = linalg_columns(a, type);
  if (!linalg_check_info(not_finite_info(w), "linalg.svd", not_finite)) return;
  out[0] = linalg_empty_columns(a, m, width, type);
  out[1] = linalg_empty_vectors(a, n, DT_F64);
  out[2] = linalg_identity_columns(a, n, type);
  if (failed()) return;
  for (int64_t b = 0, batch = linalg_batch_of(a); b < batch; b++)
    factorizations_of(a)->svd(number_at(w, b * m * n), number_at(out[1], b * n),
                              number_at(out[0], b * m * width), number_at(out[2], b * n * n), m, n,
                              width);
}

void t_linalg_svd(Tensor *a, bool full, const char *driver, Tensor *out[3]) {
  OP_ENTERED(t_linalg_svd, "svd", a, full, driver, out);
  out[0] = out[1] = out[2] = NULL;
  if (blocked(a) || !linalg_check_matrix(a, "linalg.svd", "A") ||
      !linalg_check_float(a, "linalg.svd") || !linalg_check_factor_kernel("linalg_svd_cpu", a))
    return;
  if (driver) {
    fail(ERR_RUNTIME, "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA "
                      "inputs with cuSOLVER backend.");
    return;
  }
  Node *n = node_new(&LinalgSvdBackward0, 3, 2, a, NULL);
  num_i(n, 1, least_dim(a));
  num_i(n, 0, full);
  DType d = tensor_dtype(a);
  svd_values(a, full, out);
  if (!failed()) {
    out[0] = linalg_columns(out[0], d);
    out[1] = t_to(out[1], dtype_real(d));
    out[2] = linalg_columns(linalg_adjoint_alias(out[2]), d);
  }
  finish(n, 3, out);
}

Tensor *t_svdvals(Tensor *a, const char *driver) {
  OP_ENTERED(t_svdvals, "svdvals", a, driver);
  Tensor *out[3];
  t_linalg_svd(a, false, driver, out);
  return out[1];
}

/* ------------------------------------------------------------ eigenvalues of symmetric matrices */

static const char *const phases_of_eigenvectors =
    "%s: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The "
    "specified loss function depends on this quantity, so it is ill-defined.";

/* A = V diag(L) V^H, E = L_j - L_i:  A' = V (diag(L') + sym(V^H V' / E)) V^H, Hermitian as A is. */
GRAD(LinalgEighBackward0, "eigenvalues eigenvectors")
{
  Tensor *values = saved_plain(n, 0), *v = saved_plain(n, 1), *left = NULL;
  if (blocked(values, v)) return;
  if (g[0]) left = linalg_scale_columns(v, g[0]);
  if (g[1]) {
    Tensor *e = t_sub(t_unsqueeze(values, -2), t_unsqueeze(values, -1)),
           *diagonal = linalg_eye_mask(cols_of(v)), *x = t_matmul(linalg_adjoint_of(v), g[1]);
    if (x && dtype_is_complex(tensor_dtype(x)) &&
        !check_phases(t_diagonal(x, 0, -2, -1), phases_of_eigenvectors, "linalg_eigh_backward"))
      return;
    x = t_div(x, t_masked_fill(e, diagonal, tensor_wrapped_f(1)));
    x = t_matmul(v, t_masked_fill(t_mul_f(t_add(x, linalg_adjoint_of(x)), .5), diagonal,
                                  tensor_wrapped_f(0)));
    left = left ? t_add(left, x) : x;
  }
  if (left) gi[0] = t_matmul(left, linalg_adjoint_of(v));
}

/* Values and vectors; vectors only if they are wanted, now or in a gradient. */
static void eigh(Tensor *a, const char *uplo, bool vectors, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(a) || !uplo || !linalg_check_square(a, "linalg.eigh", "A")) return;
  bool upper = strcmp(uplo, "U") == 0 || strcmp(uplo, "u") == 0;
  if (!upper && strcmp(uplo, "L") != 0 && strcmp(uplo, "l") != 0) {
    fail(ERR_RUNTIME, "Expected UPLO argument to be 'L' or 'U', but got %s", uplo);
    return;
  }
  DType d = tensor_dtype(a);
  if (!linalg_check_factor_kernel("linalg_eigh_cpu", a)) return;
  Node *node = node_new(&LinalgEighBackward0, 2, 0, a, NULL);
  vectors = vectors || node;
  int64_t n = rows_of(a);
  DType wide = wide_type(d);
  Tensor *w = linalg_columns(a, wide), *values = linalg_empty_vectors(a, n, DT_F64);
  double *beside = scratch_array(n, sizeof *beside);
  int64_t room_n = tensor_absent(a) ? 0 : 2 * n + (vectors ? n * n : 0);
  void *room = scratch_array(room_n, (size_t)dtype_bytes(wide));
  for (int64_t b = 0, batch = failed() ? 0 : linalg_batch_of(a); b < batch; b++)
    factorizations_of(a)->eigh(number_at(w, b * n * n), number_at(values, b * n), n, upper, vectors,
                               beside, room);
  if (!failed()) {
    out[0] = t_to(values, dtype_real(d));
    out[1] = vectors ? linalg_columns(w, d) : NULL;
  }
  finish(node, vectors ? 2 : 1, out);
}

/* Out: eigenvalues, eigenvectors. */
void t_eigh(Tensor *a, const char *uplo, Tensor *out[2]) {
  OP_ENTERED(t_eigh, "eigh", a, uplo, out);
  eigh(a, uplo, true, out);
}

Tensor *t_eigvalsh(Tensor *a, const char *uplo) {
  OP_ENTERED(t_eigvalsh, "eigvalsh", a, uplo);
  Tensor *out[2];
  eigh(a, uplo, false, out);
  return out[0];
}

/* ------------------------------------------------------------ eigenvalues of any matrix */

/* A V = V diag(L), E = L_j - L_i, M = V^H V', D the diagonal of Re(M):
 *   A' = V^-H (diag(L') + (M - V^H V D) / conj(E)) V^H,
 * where of V' the part counts that keeps columns at length 1 and has no phase. */
GRAD(LinalgEigBackward0, "eigenvalues eigenvectors")
{
  Tensor *values = saved_plain(n, 0), *v = saved_plain(n, 1), *middle = NULL;
  if (blocked(values, v) || (!g[0] && !g[1])) return;
  Tensor *vh = linalg_adjoint_of(v);
  if (g[1]) {
    Tensor *m = t_matmul(vh, g[1]), *along = t_diagonal(m, 0, -2, -1);
    if (!check_phases(along, phases_of_eigenvectors, "linalg_eig_backward")) return;
    Tensor *e = t_conj(t_sub(t_unsqueeze(values, -2), t_unsqueeze(values, -1))),
           *diagonal = linalg_eye_mask(cols_of(v));
    m = t_sub(m, t_matmul(vh, linalg_scale_columns(v, t_real(along))));
    m = t_div(m, t_masked_fill(e, diagonal, tensor_wrapped_f(1)));
    middle = t_masked_fill(m, diagonal, tensor_wrapped_f(0));
  }
  if (g[0]) {
    Tensor *scaled = t_diag_embed(g[0], 0, -2, -1);
    middle = middle ? t_add(middle, scaled) : scaled;
  }
  gi[0] = t_solve(vh, t_matmul(middle, vh), true);
}

static bool check_eig(const Tensor *a, const char *op) {
  if (!linalg_check_square(a, op, "A")) return false;
  if (!dtype_is_inexact(tensor_dtype(a)))
    fail(ERR_RUNTIME, "Unknown Complex ScalarType for %s", legacy(a));
  return !failed() && linalg_check_factor_kernel("linalg_eig_out_cpu", a);
}

/* Values and vectors; vectors only if they are wanted, now or in a gradient. */
static void eig(Tensor *a, const char *op, bool vectors, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(a) || !check_eig(a, op)) return;
  Node *node = node_new(&LinalgEigBackward0, 2, 0, a, NULL);
  vectors = vectors || node;
  DType wide = wide_type(tensor_dtype(a)), d = dtype_complex(dtype_real(tensor_dtype(a)));
  int64_t n = rows_of(a);
  Tensor *w = linalg_columns(a, wide), *bad = not_finite_info(w);
  for (int64_t i = 0; bad && i < bad->numel && !tensor_absent(bad); i++)
    if (ints(bad)[i])
      fail(ERR_RUNTIME, "torch.%s: input tensor should not contain infs or NaNs.", op);
  Tensor *values = linalg_empty_vectors(a, n, DT_C128),
         *v = vectors ? linalg_empty_columns(a, n, n, DT_C128) : NULL;
  int64_t room_n = tensor_absent(a) ? 0 : n * n + 3 * n;
  void *room = scratch_array(room_n, (size_t)dtype_bytes(wide));
  double *scales = scratch_array(n, sizeof *scales);
  Tensor *info = linalg_empty_vectors(a, -1, DT_I32);
  for (int64_t b = 0, batch = failed() ? 0 : linalg_batch_of(a); b < batch; b++)
    ints(info)[b] = !factorizations_of(a)->eig(number_at(w, b * n * n), number_at(values, b * n),
                                               v ? number_at(v, b * n * n) : NULL, n, room, scales);
  if (linalg_check_info(info, op,
                        "%s: %sThe algorithm failed to converge because the input matrix is "
                        "ill-conditioned or has too many repeated eigenvalues (error code: %d).")) {
    out[0] = t_to(values, d);
    out[1] = vectors ? linalg_columns(v, d) : NULL;
  }
  finish(node, vectors ? 2 : 1, out);
}

/* Out: eigenvalues, eigenvectors. */
void t_eig(Tensor *a, Tensor *out[2]) {
  OP_ENTERED(t_eig, "eig", a, out);
  eig(a, "linalg.eig", true, out);
}

Tensor *t_eigvals(Tensor *a) {
  OP_ENTERED(t_eigvals, "eigvals", a);
  Tensor *out[2];
  eig(a, "linalg.eigvals", false, out);
  return out[0];
}

/* ------------------------------------------------------------ pseudo-inverse */

double linalg_standard_rtol(const Tensor *a) {
  int64_t most = rows_of(a) > cols_of(a) ? rows_of(a) : cols_of(a);
  return (rounds_to_float(tensor_dtype(a)) ? 0x1p-23 : 0x1p-52) * (double)most;
}

/* A tolerance with a last dim, on the device of s. */
static Tensor *tolerance_for(Tensor *t, const Tensor *s) {
  Tensor *y = t_unsqueeze(t, -1);
  return y && tensor_absent(s) ? t_to_device(y, tensor_dtype(y), s->form, FORMAT_PRESERVE) : y;
}

/* Magnitudes up to this count as zero: max(atol, rtol max s), for each matrix, with a last dim
 * of size 1. */
Tensor *linalg_rank_threshold(Tensor *a, Tensor *s, Tensor *atol, Tensor *rtol) {
  DType d = dtype_real(tensor_dtype(a));
  double standard = linalg_standard_rtol(a);
  if (!rtol && !atol) rtol = tensor_number(standard, d);
  else if (!rtol)
    rtol = t_where(t_gt(atol, tensor_wrapped_f(0)), tensor_number(0, d),
                   tensor_number(standard, d));
  Tensor *tolerance = t_mul(tolerance_for(rtol, s), t_amax(s, ONE_DIM(-1), true));
  return atol ? t_maximum(tolerance_for(atol, s), tolerance) : tolerance;
}

/* A itself, or the Hermitian matrix that its lower triangle stands for: the magnitudes of its
 * eigenvalues are its singular values. */
static Tensor *whole(Tensor *a, bool hermitian) {
  if (!hermitian) return a;
  return linalg_check_square(a, "linalg.eigh", "A") ? linalg_hermitian_of(a) : NULL;
}

/* P = A^+:  A' = -P^H g P^H + (g^H P - A P g^H P) P^H + P^H (P g^H - P g^H P A), with P^H
 * outside of both. */
GRAD(LinalgPinvBackward0, "self result")
{
  Tensor *a = saved_plain(n, 0), *p = saved_plain(n, 1), *gt = linalg_adjoint_of(g[0]),
         *pt = linalg_adjoint_of(p);
  Tensor *gp = t_matmul(gt, p), *pg = t_matmul(p, gt);
  Tensor *y = t_neg(t_matmul(pt, t_matmul(g[0], pt)));
  y = t_add(y, t_matmul(t_sub(gp, t_matmul(a, t_matmul(p, gp))), pt));
  gi[0] = t_add(y, t_matmul(pt, t_sub(pg, t_matmul(pg, t_matmul(p, a)))));
}

static Tensor *pinv_values(Tensor *a, Tensor *atol, Tensor *rtol) {
  Tensor *r[3];
  t_linalg_svd(a, false, NULL, r);
  if (failed()) return NULL;
  Tensor *inverse = t_where(t_gt(r[1], linalg_rank_threshold(a, r[1], atol, rtol)),
                            t_reciprocal(r[1]), tensor_number(0, tensor_dtype(r[1])));
  return t_matmul(linalg_scale_columns(linalg_adjoint_of(r[2]), inverse), linalg_adjoint_of(r[0]));
}

Tensor *t_pinv(Tensor *a, Tensor *atol, Tensor *rtol, bool hermitian) {
  OP_ENTERED(t_pinv, "pinv", a, atol, rtol, hermitian);
  if (blocked(a)) return NULL;
  if (a->ndim < 2 || a->dtype == DT_C32 || !dtype_is_inexact(tensor_dtype(a)) ||
      dtype_is_half(tensor_dtype(a))) {
    return fail(ERR_RUNTIME,
                "linalg.pinv(%s{%s}): expected a tensor with 2 or more dimensions of float, "
                "double, cfloat or cdouble types",
                legacy(a), shape_text(a));
  }
  Node *n = node_new(&LinalgPinvBackward0, 2, 0, a, NULL);
  save(n, 0, a);
  Tensor *y = WITHOUT_GRAD(
      a->numel == 0 ? tensor_zeros(a->ndim, linalg_transposed_alias(a)->sizes, tensor_dtype(a))
                    : pinv_values(whole(a, hermitian), atol, rtol));
  y = set_history(y, n);
  if (y) save_output(n, 1, y);
  return y;
}

/* ------------------------------------------------------------ norms */

static bool check_norm_dims(const Tensor *a, Ints dims, int64_t pair[2]) {
  if (dims.n >= 0 && dims.n != 2) {
    char list[512] = "";
    for (int i = 0; i < dims.n; i++)
      snprintf(list + strlen(list), sizeof list - strlen(list), " %lld", (Shown)dims.v[i]);
    fail(ERR_RUNTIME, "linalg.matrix_norm: dim must be a 2-tuple. Got%s", list);
    return false;
  }
  for (int i = 0; i < 2; i++)
    if ((pair[i] = dim_wrap(dims.n < 0 ? i - 2 : dims.v[i], a->ndim)) < 0) return false;
  if (pair[0] != pair[1]) return true;
  fail(ERR_RUNTIME, "linalg.matrix_norm: dims must be different. Got (%lld, %lld)",
       (Shown)dims.v[0], (Shown)dims.v[1]);
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

/* The largest number along dim, 0 if there is none; or the least. */
static Tensor *extreme(Tensor *x, int64_t dim, bool keepdim, bool least) {
  if (blocked(x)) return NULL;
  if (least) return t_amin(x, ONE_DIM(dim), keepdim);
  return x->sizes[dim] ? t_amax(x, ONE_DIM(dim), keepdim)
                       : t_sum(x, ONE_DIM(dim), keepdim, DT_NONE);
}

/* Orders 1 and inf: the largest sum of a column or row, or with a negative order the least. */
static Tensor *norm_by_sums(Tensor *a, double p, const int64_t pair[2], bool keepdim) {
  int64_t summed = pair[isinf(p)], other = pair[!isinf(p)];
  Tensor *sums = t_vector_norm(a, 1, ONE_DIM(summed), keepdim, DT_NONE);
  if (!keepdim && other > summed) other--;
  return extreme(sums, other, keepdim, p < 0);
}

/* The nuclear norm, and orders 2 and -2: the sum, the largest or the least of the singular
 * values. */
static Tensor *norm_by_values(Tensor *a, bool nuclear, double p, const int64_t pair[2],
                              bool keepdim) {
  Tensor *s = values_along(a, pair);
  Tensor *y = nuclear ? t_sum(s, ONE_DIM(-1), false, DT_NONE)
                      : extreme(s, a->ndim - 2, false, p < 0);
  if (!keepdim) return y;
  bool swap = pair[0] > pair[1];
  return t_unsqueeze(t_unsqueeze(y, pair[swap]), pair[!swap]);
}

/* The norm by name, "fro" or "nuc"; without a name by the order p. */
Tensor *t_matrix_norm(Tensor *a, const char *name, double p, Ints dims, bool keepdim, DType dtype) {
  OP_ENTERED(t_matrix_norm, "matrix_norm", a, name, p, dims, keepdim, dtype);
  int64_t pair[2];
  if (blocked(a) || !linalg_check_matrix(a, "linalg.matrix_norm", "A")) return NULL;
  bool nuclear = name && strcmp(name, "nuc") == 0;
  if (name && !nuclear && strcmp(name, "fro") != 0)
    return fail(ERR_RUNTIME, "linalg.matrix_norm: Order %s not supported.", name);
  bool by_sums = !name && (fabs(p) == 1 || isinf(p));
  if (!name && !by_sums && fabs(p) != 2)
    return fail(ERR_RUNTIME, "linalg.matrix_norm: Order %g not supported.", p);
  if (!linalg_check_norm_type(a, dtype, "linalg.matrix_norm") || !check_norm_dims(a, dims, pair))
    return NULL;
  if (name && !nuclear) return t_vector_norm(a, 2, (Ints){2, pair}, keepdim, dtype);
  if (dtype != DT_NONE) a = t_to(a, dtype);
  if (blocked(a)) return NULL;
  return by_sums ? norm_by_sums(a, p, pair, keepdim) : norm_by_values(a, nuclear, p, pair, keepdim);
}

/* The norm of a matrix or of a vector, by the order and the dims; p may be NULL. */
Tensor *t_linalg_norm(Tensor *a, const char *name, const double *p, Ints dims, bool keepdim,
                      DType dtype) {
  OP_ENTERED(t_linalg_norm, "norm", a, name, p, dims, keepdim, dtype);
  if (blocked(a)) return NULL;
  bool ordered = p || name, all = dims.n < 0;
  if (!all && dims.n != 1 && dims.n != 2)
    return fail(ERR_RUNTIME,
                "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %s",
                sizes_text(dims.n, dims.v));
  if (ordered && all && a->ndim != 1 && a->ndim != 2)
    return fail(
        ERR_RUNTIME,
        "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.",
        a->ndim);
  bool matrix = name || (p && (all ? a->ndim : dims.n) == 2);
  if (matrix) return t_matrix_norm(a, name, p ? *p : 0, dims, keepdim, dtype);
  return t_vector_norm(a, p ? *p : 2, dims, keepdim, dtype);
}

/* QR, singular values and the eigenvalues of symmetric matrices; pseudo-inverses and norms of
 * matrices.
 *
 * Kernels work in place on columns, in double. Gradients are composed of ops, so they can be
 * differentiated again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "linalg_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/columns.h"
#include "ops/linalg/lu_cholesky.h"
#include "ops/op.h"
#include "ops/view/diagonal.h"
#include "ops/view/view.h"

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

/* Makes x[0 .. n) the vector v, v[0] == 1, with (1 - tau v v^T) x = (beta, 0, ...); tau, and
 * beta through `beta`. Signs as LAPACK's: nothing is reflected if x has zeros below its head. */
static double reflector(double *x, int64_t n, double *beta) {
  double below = n > 1 ? sqrt(dot(x + 1, x + 1, n - 1)) : 0, head = x[0];
  x[0] = 1;
  *beta = head;
  if (below == 0) return 0;
  *beta = -copysign(hypot(head, below), head);
  for (int64_t i = 1; i < n; i++) x[i] /= head - *beta;
  return (*beta - head) / *beta;
}

static void reflect(double *y, const double *v, double tau, int64_t n) {
  add_scaled(y, -tau * dot(v, y, n), v, n);
}

/* w (m x n) becomes R above its diagonal, whose own elements are `betas`, and vectors from it on. */
static void reflect_all(double *w, int64_t m, int64_t n, double *taus, double *betas) {
  for (int64_t j = 0; j < (m < n ? m : n); j++) {
    double *v = w + j * m + j;
    taus[j] = reflector(v, m - j, &betas[j]);
    for (int64_t c = j + 1; c < n; c++) reflect(w + c * m + j, v, taus[j], m - j);
  }
}

/* w (m x n) becomes R above its diagonal; q (m x width) the first columns of Q, unless NULL. */
static void qr_one(double *w, int64_t m, int64_t n, double *q, int64_t width, double *taus,
                   double *betas) {
  int64_t k = m < n ? m : n;
  reflect_all(w, m, n, taus, betas);
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
  return WITHOUT_GRAD(columns(t_narrow(x, -2, 0, m), d));
}

static const char *const qr_modes[] = {"reduced", "complete", "r"};

/* A = Q R, A tall or square, M = R R'^T - Q'^T Q:  A' = (Q' + Q (tril(M) + tril(M, -1)^T)) R^-T.
 *  A wide is (X, Y) = Q (U, V): X' as above with U and Q' + Y V'^T for Q', and Y' = Q V'. */
GRAD(LinalgQrBackward0, "Q R | mode:treduced,complete,r")
{
  Tensor *q = saved(n, 0), *r = saved(n, 1), *dq = g[0], *dr = g[1], *wide = NULL;
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
  for (int64_t b = 0, batch = batch_of(a); b < batch; b++)
    qr_one(pw + b * m * n, m, n, pq ? pq + b * m * width : NULL, width, taus, taus + k);
  out[0] = q ? columns(q, (DType)a->dtype) : tensor_none_of((DType)a->dtype);
  out[1] = top_rows(w, mode == 'c' ? m : k, (DType)a->dtype);
}

void t_qr(Tensor *a, const char *mode, Tensor *out[2]) {
  OP_ENTERED("qr", a, mode, out);
  out[0] = out[1] = NULL;
  if (blocked(a) || !mode || !check_matrix(a, "linalg.qr", "A") || !check_float(a, "linalg.qr") ||
      refuses_half(a, "geqrf_cpu"))
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

/* QR as LAPACK leaves it. Out: R, and below it the vectors of the reflections less their heads;
 * what they are scaled by. */
void t_geqrf(Tensor *a, Tensor *out[2]) {
  OP_ENTERED("geqrf", a, out);
  out[0] = out[1] = NULL;
  if (blocked(a)) return;
  if (a->ndim < 2) fail(ERR_RUNTIME, "torch.geqrf: input must have at least 2 dimensions.");
  else if (check_float_kernel("geqrf_cpu", tensor_dtype(a))) check_no_half("geqrf_cpu", a);
  if (failed()) return;
  int64_t m = rows_of(a), n = cols_of(a), k = least_dim(a);
  Node *node = node_new(&GeqrfBackward0, 0, 0, a, NULL);
  Tensor *w = columns(a, DT_F64), *tau = empty_vectors(a, k, DT_F64);
  double *betas = scratch_array(k + 1, sizeof *betas);
  for (int64_t b = 0, batch = failed() ? 0 : batch_of(a); b < batch; b++) {
    reflect_all(doubles(w) + b * m * n, m, n, doubles(tau) + b * k, betas);
    for (int64_t j = 0; j < k; j++) doubles(w)[b * m * n + j * m + j] = betas[j];
  }
  out[0] = WITHOUT_GRAD(columns(w, tensor_dtype(a)));
  out[1] = cast_plain(tau, tensor_dtype(a));
  set_histories(out, node, 2);
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

/* Turns pairs of w's columns (m x n, m >= n) until all are orthogonal, and v's (n x n) with
 * them. */
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
static void svd_one(double *w, double *s, double *u, double *v, int64_t m, int64_t n,
                    int64_t width) {
  orthogonalize(w, v, m, n);
  for (int64_t j = 0; j < n; j++) s[j] = sqrt(dot(w + j * m, w + j * m, m));
  sort_columns(s, w, m, v, n);
  int64_t rank = 0;
  for (; rank < n && s[rank] > 0; rank++)
    for (int64_t i = 0; i < m; i++) u[rank * m + i] = w[rank * m + i] / s[rank];
  complete_basis(u, m, rank, width);
}

/* A = U S V^T, skew X = X - X^T, E = S_j^2 - S_i^2:
 * A' = U (skew(U^T U') / E S + S skew(V^T V') / E + diag(S')) V^T + (1 - U U^T) U' S^-1 V^T + U
 * S^-1 V'^T (1 - V V^T). */
GRAD(LinalgSvdBackward0, "U S Vh | full_matrices:b S_sym_argsize_minus_1:i")
{
  Tensor *u = saved(n, 0), *s = saved(n, 1), *vh = saved(n, 2), *du = g[0], *ds = g[1], *dvh = g[2],
         *y;
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
  Tensor *e = t_masked_fill(t_sub(t_unsqueeze(square, -2), t_unsqueeze(square, -1)), eye_mask(k),
                            tensor_wrapped_f(1));
  Tensor *left = t_matmul(t_t(u), du), *right = t_matmul(vh, t_t(dvh)), *inverse = t_reciprocal(s);
  y = t_add(scale_columns(t_div(t_sub(left, t_t(left)), e), s),
            scale_rows(s, t_div(t_sub(right, t_t(right)), e)));
  if (ds) y = t_add(y, t_diag_embed(ds, 0, -2, -1));
  y = t_matmul(t_matmul(u, y), vh);
  if (tall) y = t_add(y, t_matmul(scale_columns(t_sub(du, t_matmul(u, left)), inverse), vh));
  if (wide) y = t_add(y, t_matmul(u, scale_rows(inverse, t_sub(dvh, t_matmul(t_t(right), vh)))));
  gi[0] = y;
}

static const char *const not_finite =
    "%s: %sThe algorithm failed to converge because the input matrix contained non-finite values.";

static bool check_finite(Tensor *x) {
  Tensor *info = blocked(x) ? NULL : empty_vectors(x, -1, DT_I32);
  int64_t each = x ? rows_of(x) * cols_of(x) : 0;
  for (int64_t b = 0; info && b < info->numel; b++) {
    int32_t bad = 0;
    for (int64_t i = 0; i < each; i++) bad |= !isfinite(doubles(x)[b * each + i]);
    ints(info)[b] = bad;
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
  OP_ENTERED("svd", a, full, driver, out);
  out[0] = out[1] = out[2] = NULL;
  if (blocked(a) || !check_matrix(a, "linalg.svd", "A") || !check_float(a, "linalg.svd") ||
      refuses_half(a, "linalg_svd_cpu"))
    return;
  if (driver) {
    fail(ERR_RUNTIME, "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA "
                      "inputs with cuSOLVER backend.");
    return;
  }
  Node *n = node_new(&LinalgSvdBackward0, 3, 2, a, NULL);
  num_i(n, 1, least_dim(a));
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
  OP_ENTERED("svdvals", a, driver);
  Tensor *out[3];
  t_linalg_svd(a, false, driver, out);
  return out[1];
}

/* ------------------------------------------------------------ eigenvalues of symmetric matrices */

/* w (n x n) = Q T Q^T, T with the diagonal d and e beside it; the reflectors stay below w's
 * diagonal. `room` has n. */
static void tridiagonalize(double *w, int64_t n, double *d, double *e, double *taus, double *room) {
  for (int64_t k = 0; k < n; k++) {
    d[k] = w[k * n + k];
    int64_t m = n - k - 1;
    if (!m) break;
    double *v = w + k * n + k + 1, *rest = w + (k + 1) * n + k + 1,
           tau = taus[k] = reflector(v, m, &e[k]);
    for (int64_t j = 0; j < m; j++) room[j] = tau * dot(rest + j * n, v, m);
    add_scaled(room, -tau / 2 * dot(room, v, m), v, m);
    for (int64_t j = 0; j < m; j++) {
      add_scaled(rest + j * n, -room[j], v, m);
      add_scaled(rest + j * n, -v[j], room, m);
    }
  }
}

/* One step of the implicit QR iteration on rows lo to hi of T, with the columns of q turned
 * along. */
static void chase(double *d, double *e, int64_t lo, int64_t hi, double *q, int64_t n) {
  double half = (d[hi - 1] - d[hi]) / 2, last = e[hi - 1];
  double x = d[lo] - (d[hi] - last * (last / (half + copysign(hypot(half, last), half)))),
         z = e[lo];
  for (int64_t k = lo; k < hi; k++) {
    double r = hypot(x, z), c = r > 0 ? x / r : 1, s = r > 0 ? z / r : 0, a = d[k], b = e[k],
           f = d[k + 1];
    if (k > lo) e[k - 1] = r;
    d[k] = c * c * a + 2 * c * s * b + s * s * f;
    d[k + 1] = s * s * a - 2 * c * s * b + c * c * f;
    x = e[k] = (c * c - s * s) * b + c * s * (f - a);
    if (k + 1 < hi) {
      z = s * e[k + 1];
      e[k + 1] *= c;
    }
    if (q) turn(q + k * n, q + (k + 1) * n, c, -s, n);
  }
}

/* d becomes the eigenvalues of T. False if they do not settle. */
static bool diagonalize(double *d, double *e, double *q, int64_t n) {
  int64_t steps = MAX_SWEEPS * n;
  for (int64_t hi = n - 1; hi > 0;) {
    int64_t lo = hi;
    while (lo > 0 && fabs(e[lo - 1]) > 0x1p-53 * (fabs(d[lo - 1]) + fabs(d[lo]))) lo--;
    if (lo == hi) hi--;
    else if (!steps--) return false;
    else chase(d, e, lo, hi, q, n);
  }
  return true;
}

/* w (n x n, columns), of which the triangle is read, becomes its vectors, in the order of the
 * values, the least first. */
static void eigh_one(double *w, double *values, int64_t n, bool upper, bool vectors, double *room) {
  double *e = room, *taus = room + n, *spare = room + 2 * n, *q = vectors ? room + 3 * n : NULL;
  bool sound = true;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = j; i < n; i++) {
      double *low = w + j * n + i, *high = w + i * n + j;
      *low = *high = upper ? *high : *low;
      sound = sound && isfinite(*low);
    }
  if (sound) tridiagonalize(w, n, values, e, taus, spare);
  for (int64_t c = 0; q && c < n; c++) {
    memset(q + c * n, 0, (size_t)n * sizeof *q);
    q[c * n + c] = 1;
    for (int64_t k = c - 1; sound && k >= 0; k--)
      reflect(q + c * n + k + 1, w + k * n + k + 1, taus[k], n - k - 1);
  }
  sound = sound && diagonalize(values, e, q, n);
  for (int64_t i = 0; i < n; i++) values[i] = sound ? -values[i] : (double)NAN;
  if (sound) sort_columns(values, w, 0, q ? q : w, n);
  for (int64_t i = 0; i < n; i++) values[i] = -values[i];
  for (int64_t i = 0; q && i < n * n; i++) w[i] = sound ? q[i] : (double)NAN;
}

/* A = V diag(L) V^T, E = L_j - L_i:  A' = V (diag(L') + sym(V^T V' / E)) V^T, symmetric as A is. */
GRAD(LinalgEighBackward0, "eigenvalues eigenvectors")
{
  Tensor *values = saved(n, 0), *v = saved(n, 1), *left = NULL;
  if (blocked(values, v)) return;
  if (g[0]) left = scale_columns(v, g[0]);
  if (g[1]) {
    Tensor *e = t_sub(t_unsqueeze(values, -2), t_unsqueeze(values, -1)),
           *diagonal = eye_mask(cols_of(v));
    Tensor *x = t_div(t_matmul(t_t(v), g[1]), t_masked_fill(e, diagonal, tensor_wrapped_f(1)));
    x = t_matmul(v, t_masked_fill(t_mul_f(t_add(x, t_t(x)), .5), diagonal, tensor_wrapped_f(0)));
    left = left ? t_add(left, x) : x;
  }
  if (left) gi[0] = t_matmul(left, t_t(v));
}

/* Values and vectors, which are left out if nobody asks for them, now or in a gradient. */
static void eigh(Tensor *a, const char *uplo, bool vectors, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(a) || !uplo || !check_square(a, "linalg.eigh", "A")) return;
  bool upper = strcmp(uplo, "U") == 0 || strcmp(uplo, "u") == 0;
  if (!upper && strcmp(uplo, "L") != 0 && strcmp(uplo, "l") != 0) {
    fail(ERR_RUNTIME, "Expected UPLO argument to be 'L' or 'U', but got %s", uplo);
    return;
  }
  DType d = (DType)a->dtype;
  if (!check_wide_kernel("linalg_eigh_cpu", d)) return;
  Node *node = node_new(&LinalgEighBackward0, 2, 0, a, NULL);
  vectors = vectors || node;
  int64_t n = rows_of(a);
  Tensor *w = columns(a, DT_F64), *values = empty_vectors(a, n, DT_F64);
  double *room = scratch_array(3 * n + (vectors ? n * n : 0), sizeof *room);
  for (int64_t b = 0, batch = failed() ? 0 : batch_of(a); b < batch; b++)
    eigh_one(doubles(w) + b * n * n, doubles(values) + b * n, n, upper, vectors, room);
  if (!failed()) {
    out[0] = d == DT_F64 ? values : t_to(values, d);
    out[1] = vectors ? columns(w, d) : NULL;
  }
  finish(node, vectors ? 2 : 1, out);
}

/* Out: eigenvalues, eigenvectors. */
void t_eigh(Tensor *a, const char *uplo, Tensor *out[2]) { eigh(a, uplo, true, out); }

Tensor *t_eigvalsh(Tensor *a, const char *uplo) {
  OP_ENTERED("eigvalsh", a, uplo);
  Tensor *out[2];
  eigh(a, uplo, false, out);
  return out[0];
}

/* ------------------------------------------------------------ pseudo-inverse */

double standard_rtol(const Tensor *a) {
  int64_t most = rows_of(a) > cols_of(a) ? rows_of(a) : cols_of(a);
  return (a->dtype == DT_F32 ? 0x1p-23 : 0x1p-52) * (double)most;
}

/* Magnitudes up to this count as zero: max(atol, rtol max s), for each matrix, with a last dim
 * of size 1. */
Tensor *rank_threshold(Tensor *a, Tensor *s, Tensor *atol, Tensor *rtol) {
  DType d = (DType)a->dtype;
  double standard = standard_rtol(a);
  if (!rtol && !atol) rtol = tensor_number(standard, d);
  else if (!rtol)
    rtol = t_where(t_gt(atol, tensor_wrapped_f(0)), tensor_number(0, d),
                   tensor_number(standard, d));
  Tensor *tolerance = t_mul(t_unsqueeze(rtol, -1), t_amax(s, ONE_DIM(-1), true));
  return atol ? t_maximum(t_unsqueeze(atol, -1), tolerance) : tolerance;
}

/* A itself, or the symmetric matrix that its lower triangle stands for: the magnitudes of its
 * eigenvalues are its singular values. */
static Tensor *whole(Tensor *a, bool hermitian) {
  if (!hermitian) return a;
  return check_square(a, "linalg.eigh", "A") ? t_add(t_tril(a, 0), t_t(t_tril(a, -1))) : NULL;
}

/* P = A^+:  A' = -P^T g P^T + (g^T P - A P g^T P) P^T + P^T (P g^T - P g^T P A), with P^T
 * outside of both. */
GRAD(LinalgPinvBackward0, "self result")
{
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
  Tensor *inverse = t_where(t_gt(r[1], rank_threshold(a, r[1], atol, rtol)), t_reciprocal(r[1]),
                            tensor_number(0, (DType)a->dtype));
  return t_matmul(scale_columns(t_t(r[2]), inverse), t_t(r[0]));
}

Tensor *t_pinv(Tensor *a, Tensor *atol, Tensor *rtol, bool hermitian) {
  OP_ENTERED("pinv", a, atol, rtol, hermitian);
  if (blocked(a)) return NULL;
  if (a->ndim < 2 || !dtype_is_float((DType)a->dtype) || dtype_is_half((DType)a->dtype)) {
    return fail(ERR_RUNTIME,
                "linalg.pinv(%s{%s}): expected a tensor with 2 or more dimensions of float, "
                "double, cfloat or cdouble types",
                legacy(a), shape_text(a));
  }
  Node *n = node_new(&LinalgPinvBackward0, 2, 0, a, NULL);
  save(n, 0, a);
  Tensor *y = WITHOUT_GRAD(a->numel == 0 ? tensor_zeros(a->ndim, flipped(a)->sizes, (DType)a->dtype)
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

/* The largest number along dim, 0 of none; or the least. */
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

/* The nuclear norm, and orders 2 and -2: of the singular values the sum, the largest, the least. */
static Tensor *norm_by_values(Tensor *a, bool nuclear, double p, const int64_t pair[2],
                              bool keepdim) {
  Tensor *s = values_along(a, pair);
  Tensor *y = nuclear ? t_sum(s, ONE_DIM(-1), false, DT_NONE)
                      : extreme(s, a->ndim - 2, false, p < 0);
  if (!keepdim) return y;
  bool swap = pair[0] > pair[1];
  return t_unsqueeze(t_unsqueeze(y, pair[swap]), pair[!swap]);
}

/* By name, "fro" or "nuc", or without one by the order p. */
Tensor *t_matrix_norm(Tensor *a, const char *name, double p, Ints dims, bool keepdim, DType dtype) {
  OP_ENTERED("matrix_norm", a, name, p, dims, keepdim, dtype);
  int64_t pair[2];
  if (blocked(a) || !check_matrix(a, "linalg.matrix_norm", "A")) return NULL;
  bool nuclear = name && strcmp(name, "nuc") == 0;
  if (name && !nuclear && strcmp(name, "fro") != 0)
    return fail(ERR_RUNTIME, "linalg.matrix_norm: Order %s not supported.", name);
  bool by_sums = !name && (fabs(p) == 1 || isinf(p));
  if (!name && !by_sums && fabs(p) != 2)
    return fail(ERR_RUNTIME, "linalg.matrix_norm: Order %g not supported.", p);
  if (!check_norm_type(a, dtype, "linalg.matrix_norm") || !check_norm_dims(a, dims, pair))
    return NULL;
  if (name && !nuclear) return t_vector_norm(a, 2, (Ints){2, pair}, keepdim, dtype);
  if (dtype != DT_NONE) a = t_to(a, dtype);
  if (blocked(a)) return NULL;
  return by_sums ? norm_by_sums(a, p, pair, keepdim) : norm_by_values(a, nuclear, p, pair, keepdim);
}

/* The norm of a matrix or of a vector, as the order and the dims say; p may be NULL. */
Tensor *t_linalg_norm(Tensor *a, const char *name, const double *p, Ints dims, bool keepdim,
                      DType dtype) {
  OP_ENTERED("norm", a, name, p, dims, keepdim, dtype);
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

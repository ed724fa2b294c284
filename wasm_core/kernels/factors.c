/* Decompositions of single matrices in columns.
 *
 * The file includes itself once per type. The body, behind the #else, uses NUMBER and operations
 * that have the same names for both types. */
#ifndef FACTORS_BODY

#include "kernels/factors.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ground/poll.h"
#include "kernels/complex_maths.h"

enum { MAX_SWEEPS = 60 };

#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)
#define NAME(stem) CAT(stem, SUFFIX)

/* Tangent of the angle that makes the form (a, b; b, d) diagonal. */
static double diagonalizing(double a, double b, double d) {
  double zeta = (d - a) / (2 * b);
  return copysign(1, zeta) / (fabs(zeta) + sqrt(1 + zeta * zeta));
}

static double round_if_float(double x, bool to_float) { return to_float ? (double)(float)x : x; }

/* The greater of two sizes; NaN if either is. */
static double greater(double a, double b) { return b > a || b != b ? b : a; }

static double sign_of(double d) { return isnan(d) ? d : (d > 0) - (d < 0); }

static double magnitude_c128(complex_f64 z) { return hypot(real_part(z), imaginary_part(z)); }
/* |re| + |im|: the magnitude within a factor of two. */
static double size_c128(complex_f64 z) { return fabs(real_part(z)) + fabs(imaginary_part(z)); }
static complex_f64 rounded_c128(complex_f64 z, bool to_float) {
  return complex_of(round_if_float(real_part(z), to_float),
                    round_if_float(imaginary_part(z), to_float));
}

/* ------------------------------------------------------------ eigenvalues, of either type */

/* The active rows and columns, lo to hi, of a matrix that is triangular before and behind them. */
typedef struct {
  int64_t lo, hi;
} Active;

static double larger(double a, double b) { return a > b ? a : b; }
static double lesser(double a, double b) { return a < b ? a : b; }

/* Scales x to length 1 and, unless it is real already, turns it so that its largest number is
 * real. */
static void normalize(complex_f64 *x, int64_t n, bool is_real) {
  double most = 0, sum = 0;
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) most = larger(most, size_c128(x[i]));
  for (int64_t i = 0; i < n; i++) {
    x[i] = x[i] / most;
    sum += real_part(x[i]) * real_part(x[i]) + imaginary_part(x[i]) * imaginary_part(x[i]);
  }
  for (int64_t i = 0; i < n; i++) {
    x[i] = x[i] / sqrt(sum);
    if (magnitude_c128(x[i]) > magnitude_c128(x[at])) at = i;
  }
  if (is_real) return;
  double size = magnitude_c128(x[at]);
  complex_f64 turn = complex_conj_f64(x[at]) / size;
  for (int64_t i = 0; i < n; i++) x[i] = complex_mul_f64(x[i], turn);
  x[at] = size;
}

/* Turns a vector of the balanced matrix into one of the original: undoes isolate and equalize
 * below. */
static void restore_rows(complex_f64 *x, int64_t n, Active part, const double *scales) {
  for (int64_t i = part.lo; i <= part.hi; i++) x[i] = x[i] * scales[i];
  for (int64_t step = 0; step < n; step++) {
    int64_t i = step < part.lo ? part.lo - 1 - step : step;
    if (i >= part.lo && i <= part.hi) continue;
    int64_t with = (int64_t)scales[i];
    complex_f64 held = x[i];
    x[i] = x[with];
    x[with] = held;
  }
}

#define FACTORS_BODY

#define NUMBER double
#define SUFFIX f64
#define MUL(a, b) ((a) * (b))
#define LESS_PRODUCT(y, a, b) fma(-(a), b, y)
#define DIV(a, b) ((a) / (b))
#define CONJ(a) (a)
#define REAL(a) (a)
#define IMAG(a) 0.0
#define MAGNITUDE(a) fabs(a)
#define SIZE(a) fabs(a)
#define ROUNDED(a, to_float) round_if_float(a, to_float)
#define SIGN(a) sign_of(a)
#define IS_COMPLEX 0
#include "kernels/factors.c"
#undef NUMBER
#undef SUFFIX
#undef MUL
#undef LESS_PRODUCT
#undef DIV
#undef CONJ
#undef REAL
#undef IMAG
#undef MAGNITUDE
#undef SIZE
#undef ROUNDED
#undef SIGN
#undef IS_COMPLEX

#define NUMBER complex_f64
#define SUFFIX c128
#define MUL(a, b) complex_mul_f64(a, b)
#define LESS_PRODUCT(y, a, b) ((y) - complex_mul_f64(a, b))
#define DIV(a, b) complex_div_f64(a, b)
#define CONJ(a) complex_conj_f64(a)
#define REAL(a) real_part(a)
#define IMAG(a) imaginary_part(a)
#define MAGNITUDE(a) magnitude_c128(a)
#define SIZE(a) size_c128(a)
#define ROUNDED(a, to_float) rounded_c128(a, to_float)
#define SIGN(a) complex_sgn(a)
#define IS_COMPLEX 1
#include "kernels/factors.c"

#else /* FACTORS_BODY */

static void NAME(add_scaled)(NUMBER *y, NUMBER k, const NUMBER *x, int64_t n) {
  if (poll_stops(2 * n)) return;
  for (int64_t i = 0; i < n; i++) y[i] += MUL(k, x[i]);
}

static NUMBER NAME(dot)(const NUMBER *a, const NUMBER *b, int64_t n) {
  if (poll_stops(2 * n)) return 0;
  NUMBER sum = 0;
  for (int64_t i = 0; i < n; i++) sum += MUL(CONJ(a[i]), b[i]);
  return sum;
}

static double NAME(length)(const NUMBER *x, int64_t n) { return sqrt(REAL(NAME(dot)(x, x, n))); }

static void NAME(exchange)(NUMBER *x, NUMBER *y) {
  NUMBER held = *x;
  *x = *y;
  *y = held;
}

/* Turns (x, y) by the angle with cosine c and sine s. */
static void NAME(turn)(NUMBER *x, NUMBER *y, double c, double s, int64_t n) {
  if (poll_stops(4 * n)) return;
  for (int64_t i = 0; i < n; i++) {
    NUMBER held = c * x[i] - s * y[i];
    y[i] = s * x[i] + c * y[i];
    x[i] = held;
  }
}

/* ------------------------------------------------------------ LU and triangular solving */

/* Subtracts `times` a column of L from a column, from row `from` on. */
static void NAME(reduce)(NUMBER *y, NUMBER times, const NUMBER *x, int64_t from, int64_t m,
                         bool to_float) {
  for (int64_t i = from; i < m; i++)
    y[i] = ROUNDED(y[i] - ROUNDED(MUL(times, x[i]), to_float), to_float);
}

static void NAME(reduce_fused)(NUMBER *y, NUMBER times, const NUMBER *x, int64_t from, int64_t m,
                               bool to_float) {
  for (int64_t i = from; i < m; i++) y[i] = ROUNDED(LESS_PRODUCT(y[i], times, x[i]), to_float);
}

static int32_t NAME(eliminate)(void *a, int32_t *pivots, int64_t m, int64_t n, bool to_float,
                               bool fused) {
  NUMBER *v = a;
  int32_t info = 0;
  for (int64_t k = 0; k < n && k < m; k++) {
    NUMBER *column = v + k * m;
    int64_t best = k;
    for (int64_t i = k + 1; i < m; i++)
      if (SIZE(column[i]) > SIZE(column[best])) best = i;
    pivots[k] = (int32_t)best;
    for (int64_t j = 0; j < n; j++) NAME(exchange)(v + k + j * m, v + best + j * m);
    if (column[k] == 0) {
      if (info == 0) info = (int32_t)k + 1;
      continue;
    }
    NUMBER inverse = ROUNDED(DIV((NUMBER)1, column[k]), to_float);
    for (int64_t i = k + 1; i < m; i++)
      column[i] = ROUNDED(fused ? DIV(column[i], column[k]) : MUL(column[i], inverse), to_float);
    if (poll_stops((m - k) * (n - k))) return info;
    for (int64_t j = k + 1; j < n; j++)
      (fused ? NAME(reduce_fused) : NAME(reduce))(v + j * m, v[k + j * m], column, k + 1, m,
                                                  to_float);
  }
  return info;
}

static void NAME(exchange_rows)(void *y, const int32_t *pivots, int64_t n) {
  for (int64_t k = 0; k < n; k++) NAME(exchange)((NUMBER *)y + k, (NUMBER *)y + pivots[k]);
}

static void NAME(determinant)(const void *lu, const int32_t *pivots, int64_t n, bool to_float,
                              void *det, void *sign, double *log_abs) {
  NUMBER product = 1, signs = 1;
  *log_abs = 0;
  for (int64_t k = 0; k < n; k++) {
    NUMBER d = ((const NUMBER *)lu)[k * n + k];
    if (pivots[k] != k) d = -d;
    product = ROUNDED(MUL(product, d), to_float);
    signs = MUL(signs, SIGN(d));
    *log_abs += log(MAGNITUDE(d));
  }
  *(NUMBER *)det = product;
  *(NUMBER *)sign = signs;
}

static void NAME(substitute)(const void *a, void *b, int64_t n, bool upper, bool unit) {
  NUMBER *y = b;
  for (int64_t step = 0; step < n; step++) {
    int64_t j = upper ? n - 1 - step : step, first = upper ? 0 : j + 1;
    const NUMBER *column = (const NUMBER *)a + j * n;
    if (!unit) y[j] = DIV(y[j], column[j]);
    NAME(add_scaled)(y + first, -y[j], column + first, upper ? j : n - first);
  }
}

/* ------------------------------------------------------------ Cholesky */

static int32_t NAME(cholesky)(void *a, int64_t n) {
  NUMBER *v = a;
  int32_t bad = 0;
  for (int64_t j = 0; j < n; j++) {
    NUMBER *column = v + j * n;
    memset(column, 0, (size_t)j * sizeof *column);
    for (int64_t k = 0; k < j && !bad; k++)
      NAME(add_scaled)(column + j, -CONJ(v[j + k * n]), v + k * n + j, n - j);
    if (!bad && !(REAL(column[j]) > 0)) bad = (int32_t)j + 1;
    double root = sqrt(REAL(column[j]));
    for (int64_t i = j; i < n && !bad; i++) column[i] = i == j ? root : column[i] / root;
  }
  return bad;
}

/* ------------------------------------------------------------ symmetric and Hermitian */

#define AT(i, j) a[(j) * n + (i)]
#define TURNED(z) (hermitian ? CONJ(z) : (z))
#define ON_DIAGONAL(z) (hermitian ? (NUMBER)REAL(z) : (z))

/* Exchanges rows and columns i < j of the remaining matrix, from column i on. */
static void NAME(exchange_both)(NUMBER *a, int64_t n, int64_t i, int64_t j, bool hermitian) {
  for (int64_t k = j + 1; k < n; k++) NAME(exchange)(&AT(k, i), &AT(k, j));
  for (int64_t k = i + 1; k < j; k++) {
    NUMBER held = TURNED(AT(k, i));
    AT(k, i) = TURNED(AT(j, k));
    AT(j, k) = held;
  }
  AT(j, i) = TURNED(AT(j, i));
  NAME(exchange)(&AT(i, i), &AT(j, j));
}

/* The size of the greatest number below the diagonal in column k, and its row. */
static double NAME(greatest_below)(const NUMBER *a, int64_t n, int64_t k, int64_t *row) {
  double most = SIZE(AT(k + 1, k));
  *row = k + 1;
  for (int64_t i = k + 2; i < n; i++)
    if (SIZE(AT(i, k)) > most) most = SIZE(AT(*row = i, k));
  return most;
}

/* The size of the greatest number beside the diagonal in a row of the remaining matrix, from column
 * k on. */
static double NAME(greatest_beside)(const NUMBER *a, int64_t n, int64_t k, int64_t row) {
  double most = 0;
  for (int64_t j = k; j < row; j++) most = greater(most, SIZE(AT(row, j)));
  for (int64_t i = row + 1; i < n; i++) most = greater(most, SIZE(AT(i, row)));
  return most;
}

/* Eliminates with the pivot at k, and leaves the column of L. */
static void NAME(take_one)(NUMBER *a, int64_t n, int64_t k, bool hermitian) {
  NUMBER *x = &AT(k, k);
  int64_t below = n - k - 1;
  for (int64_t j = 1; j <= below; j++) {
    NUMBER *diagonal = &AT(k + j, k + j);
    NAME(add_scaled)(diagonal, DIV(-TURNED(x[j]), x[0]), x + j, below - j + 1);
    *diagonal = ON_DIAGONAL(*diagonal);
  }
  for (int64_t j = 1; j <= below; j++) x[j] = DIV(x[j], x[0]);
}

/* Eliminates with the block of two at k and k + 1, and leaves its columns of L. */
static void NAME(take_two)(NUMBER *a, int64_t n, int64_t k, bool hermitian) {
  NUMBER corner = AT(k + 1, k), across = TURNED(corner);
  NUMBER second = DIV(AT(k + 1, k + 1), corner), first = DIV(AT(k, k), across);
  NUMBER over = DIV((NUMBER)1, MUL(second, first) - 1);
  for (int64_t j = k + 2; j < n; j++) {
    NUMBER p = AT(j, k), q = AT(j, k + 1);
    NUMBER u = MUL(DIV(over, across), MUL(second, p) - q);
    NUMBER v = MUL(DIV(over, corner), MUL(first, q) - p);
    for (int64_t i = j; i < n; i++)
      AT(i, j) -= MUL(AT(i, k), TURNED(u)) + MUL(AT(i, k + 1), TURNED(v));
    AT(j, j) = ON_DIAGONAL(AT(j, j));
    AT(j, k) = u;
    AT(j, k + 1) = v;
  }
}

static int32_t NAME(ldl)(void *matrix, int32_t *pivots, int64_t n, bool hermitian) {
  const double alpha = (1 + sqrt(17)) / 8;
  NUMBER *a = matrix;
  int32_t info = 0;
  for (int64_t k = 0; k < n; k++) AT(k, k) = ON_DIAGONAL(AT(k, k));
  for (int64_t k = 0; k < n;) {
    int64_t row = k, pivot = k, span = 1;
    if (poll_stops(2 * (n - k) * (n - k))) return info;
    double own = SIZE(AT(k, k)), below = k + 1 < n ? NAME(greatest_below)(a, n, k, &row) : 0;
    bool nothing = (own == 0 && below == 0) || own != own;
    if (nothing) info = info ? info : (int32_t)k + 1;
    else if (!(own >= alpha * below)) {
      double beside = NAME(greatest_beside)(a, n, k, row);
      if (own >= alpha * below * (below / beside)) pivot = k;
      else {
        pivot = row;
        span = SIZE(AT(row, row)) >= alpha * beside ? 1 : 2;
      }
    }
    int64_t last = k + span - 1;
    if (pivot != last) {
      NAME(exchange_both)(a, n, last, pivot, hermitian);
      if (span == 2) NAME(exchange)(&AT(k + 1, k), &AT(pivot, k));
    }
    if (span == 2) NAME(take_two)(a, n, k, hermitian);
    else if (!nothing) NAME(take_one)(a, n, k, hermitian);
    pivots[last] = (int32_t)(span == 2 ? -pivot - 1 : pivot + 1);
    pivots[k] = pivots[last];
    k += span;
  }
  return info;
}

/* The sum of the products of x with column `column` of L^T, below row k, where a block ends. */
static NUMBER NAME(below)(const NUMBER *a, int64_t n, int64_t k, int64_t column, const NUMBER *x,
                          bool hermitian) {
  NUMBER sum = 0;
  for (int64_t i = k + 1; i < n; i++) sum += MUL(TURNED(AT(i, column)), x[i]);
  return sum;
}

static void NAME(ldl_solve)(const void *ld, const int32_t *pivots, void *y, int64_t n,
                            bool hermitian) {
  const NUMBER *a = ld;
  NUMBER *x = y;
  int64_t k = 0;
  while (k < n) { /* (L D)^-1 x */
    if (pivots[k] > 0) {
      NAME(exchange)(x + k, x + pivots[k] - 1);
      NAME(add_scaled)(x + k + 1, -x[k], &AT(k, k) + 1, n - k - 1);
      x[k] = DIV(x[k], ON_DIAGONAL(AT(k, k)));
      k++;
      continue;
    }
    NAME(exchange)(x + k + 1, x - pivots[k] - 1);
    for (int64_t i = k + 2; i < n; i++) x[i] -= MUL(AT(i, k), x[k]) + MUL(AT(i, k + 1), x[k + 1]);
    NUMBER corner = AT(k + 1, k), across = TURNED(corner);
    NUMBER second = DIV(AT(k + 1, k + 1), corner), first = DIV(AT(k, k), across);
    NUMBER p = DIV(x[k], across), q = DIV(x[k + 1], corner);
    x[k] = DIV(MUL(second, p) - q, MUL(first, second) - 1);
    x[k + 1] = DIV(MUL(first, q) - p, MUL(first, second) - 1);
    k += 2;
  }
  while (--k >= 0) { /* L^-T x */
    int64_t last = k;
    x[k] -= NAME(below)(a, n, last, k, x, hermitian);
    if (pivots[k] < 0) {
      k--;
      x[k] -= NAME(below)(a, n, last, k, x, hermitian);
    }
    NAME(exchange)(x + last, x + labs((long)pivots[last]) - 1);
  }
}

#undef AT
#undef TURNED
#undef ON_DIAGONAL

/* ------------------------------------------------------------ QR */

/* Makes x[0 .. n) the vector v, v[0] == 1, with (1 - tau v v^T)^T x = (beta, 0, ...), beta real;
 * tau, and beta through `beta`. Signs as LAPACK's: nothing is reflected if that is what x is. */
static NUMBER NAME(reflector)(NUMBER *x, int64_t n, double *beta) {
  double below = n > 1 ? NAME(length)(x + 1, n - 1) : 0;
  NUMBER head = x[0];
  x[0] = 1;
  *beta = REAL(head);
  if (below == 0 && IMAG(head) == 0) return 0;
  *beta = -copysign(hypot(MAGNITUDE(head), below), REAL(head));
  for (int64_t i = 1; i < n; i++) x[i] = DIV(x[i], head - *beta);
  return (*beta - head) / *beta;
}

static void NAME(reflect)(NUMBER *y, const NUMBER *v, NUMBER tau, int64_t n) {
  NAME(add_scaled)(y, MUL(-tau, NAME(dot)(v, y, n)), v, n);
}

static void NAME(geqrf)(void *a, int64_t m, int64_t n, void *scales) {
  NUMBER *w = a, *taus = scales;
  for (int64_t j = 0; j < (m < n ? m : n); j++) {
    NUMBER *v = w + j * m + j;
    double beta;
    taus[j] = NAME(reflector)(v, m - j, &beta);
    for (int64_t c = j + 1; c < n; c++) NAME(reflect)(w + c * m + j, v, CONJ(taus[j]), m - j);
    *v = beta;
  }
}

static void NAME(qr)(void *a, int64_t m, int64_t n, void *first, int64_t width, void *scales) {
  NUMBER *w = a, *q = first, *taus = scales;
  int64_t k = m < n ? m : n;
  NAME(geqrf)(a, m, n, scales);
  if (q) memset(q, 0, (size_t)(m * width) * sizeof *q);
  for (int64_t c = 0; q && c < width; c++) q[c * m + c] = 1;
  for (int64_t j = k - 1; j >= 0; j--) {
    NUMBER *v = w + j * m + j, beta = *v;
    *v = 1;
    for (int64_t c = 0; q && c < width; c++) NAME(reflect)(q + c * m + j, v, taus[j], m - j);
    *v = beta;
    memset(v + 1, 0, (size_t)(m - j - 1) * sizeof *v);
  }
}

/* ------------------------------------------------------------ singular values */

/* Turns pairs of w's columns (m x n, m >= n) until all are orthogonal, and v's (n x n) with
 * them. */
static void NAME(orthogonalize)(NUMBER *w, NUMBER *v, int64_t m, int64_t n) {
  bool turned = true;
  for (int sweep = 0; turned && sweep < MAX_SWEEPS; sweep++) {
    turned = false;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        NUMBER *x = w + p * m, *y = w + q * m, product = NAME(dot)(x, y, m);
        double a = REAL(NAME(dot)(x, x, m)), d = REAL(NAME(dot)(y, y, m)), b = REAL(product);
        if (!(MAGNITUDE(product) > 1e-15 * sqrt(a) * sqrt(d))) continue;
        turned = true;
#if IS_COMPLEX
        b = MAGNITUDE(product);
        NUMBER phase = CONJ(product) / b; /* with which the product is real */
        for (int64_t i = 0; i < m; i++) y[i] = MUL(y[i], phase);
        for (int64_t i = 0; i < n; i++) v[q * n + i] = MUL(v[q * n + i], phase);
#endif
        double t = diagonalizing(a, b, d), c = 1 / sqrt(1 + t * t);
        NAME(turn)(x, y, c, c * t, m);
        NAME(turn)(v + p * n, v + q * n, c, c * t, n);
      }
  }
}

/* Fills columns [from, to) of u (m rows) so that all columns before `to` are orthonormal. */
static void NAME(complete_basis)(NUMBER *u, int64_t m, int64_t from, int64_t to) {
  int64_t unit = 0;
  for (int64_t c = from; c < to && unit < m; unit++) {
    NUMBER *x = u + c * m;
    memset(x, 0, (size_t)m * sizeof *x);
    x[unit] = 1;
    for (int64_t k = 0; k < 2 * c; k++)
      NAME(add_scaled)(x, -NAME(dot)(u + k % c * m, x, m), u + k % c * m, m);
    double length = NAME(length)(x, m);
    if (length * length * 4 * (double)m < 1) continue;
    for (int64_t i = 0; i < m; i++) x[i] = x[i] / length;
    c++;
  }
}

static void NAME(sort_columns)(double *s, NUMBER *w, int64_t m, NUMBER *v, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; j++)
      if (s[j] > s[best]) best = j;
    if (best == i) continue;
    double held = s[i];
    s[i] = s[best];
    s[best] = held;
    NAME(turn)(w + i * m, w + best * m, 0, 1, m);
    NAME(turn)(v + i * n, v + best * n, 0, 1, n);
  }
}

static void NAME(svd)(void *a, double *s, void *left, void *right, int64_t m, int64_t n,
                      int64_t width) {
  NUMBER *w = a, *u = left, *v = right;
  NAME(orthogonalize)(w, v, m, n);
  for (int64_t j = 0; j < n; j++) s[j] = NAME(length)(w + j * m, m);
  NAME(sort_columns)(s, w, m, v, n);
  int64_t rank = 0;
  for (; rank < n && s[rank] > 0; rank++)
    for (int64_t i = 0; i < m; i++) u[rank * m + i] = w[rank * m + i] / s[rank];
  NAME(complete_basis)(u, m, rank, width);
}

/* ------------------------------------------------------------ eigenvalues of what is symmetric */

/* w (n x n) = Q T Q^T, T real with the diagonal d and e beside it; the reflectors stay below w's
 * diagonal. `room` has n. */
static void NAME(tridiagonalize)(NUMBER *w, int64_t n, double *d, double *e, NUMBER *taus,
                                 NUMBER *room) {
  for (int64_t k = 0; k < n; k++) {
    d[k] = REAL(w[k * n + k]);
    int64_t m = n - k - 1;
    if (!m) break;
    NUMBER *v = w + k * n + k + 1, *rest = w + (k + 1) * n + k + 1,
           tau = taus[k] = NAME(reflector)(v, m, &e[k]);
    for (int64_t j = 0; j < m; j++) room[j] = MUL(tau, NAME(dot)(rest + j * n, v, m));
    NAME(add_scaled)(room, MUL(-CONJ(tau) / 2, NAME(dot)(v, room, m)), v, m);
    for (int64_t j = 0; j < m; j++) {
      NAME(add_scaled)(rest + j * n, -CONJ(room[j]), v, m);
      NAME(add_scaled)(rest + j * n, -CONJ(v[j]), room, m);
    }
  }
}

/* One step of the implicit QR iteration on rows lo to hi of T, with the columns of q turned
 * along. */
static void NAME(chase)(double *d, double *e, int64_t lo, int64_t hi, NUMBER *q, int64_t n) {
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
    if (q) NAME(turn)(q + k * n, q + (k + 1) * n, c, -s, n);
  }
}

/* d becomes the eigenvalues of T. False if they do not settle. */
static bool NAME(diagonalize)(double *d, double *e, NUMBER *q, int64_t n) {
  int64_t steps = MAX_SWEEPS * n;
  for (int64_t hi = n - 1; hi > 0;) {
    int64_t lo = hi;
    while (lo > 0 && fabs(e[lo - 1]) > 0x1p-53 * (fabs(d[lo - 1]) + fabs(d[lo]))) lo--;
    if (lo == hi) hi--;
    else if (!steps-- || poll_stops(16 * (hi - lo))) return false;
    else NAME(chase)(d, e, lo, hi, q, n);
  }
  return true;
}

static void NAME(eigh)(void *a, double *values, int64_t n, bool upper, bool vectors, double *e,
                       void *room) {
  NUMBER *w = a, *taus = room, *spare = taus + n, *q = vectors ? spare + n : NULL;
  bool sound = true;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = j; i < n; i++) {
      NUMBER *low = w + j * n + i, *high = w + i * n + j, held = upper ? CONJ(*high) : *low;
      *low = i == j ? REAL(held) : held;
      *high = CONJ(*low);
      sound = sound && isfinite(REAL(held)) && isfinite(IMAG(held));
    }
  if (sound) NAME(tridiagonalize)(w, n, values, e, taus, spare);
  for (int64_t c = 0; q && c < n; c++) {
    memset(q + c * n, 0, (size_t)n * sizeof *q);
    q[c * n + c] = 1;
    for (int64_t k = c - 1; sound && k >= 0; k--)
      NAME(reflect)(q + c * n + k + 1, w + k * n + k + 1, taus[k], n - k - 1);
  }
  sound = sound && NAME(diagonalize)(values, e, q, n);
  for (int64_t i = 0; i < n; i++) values[i] = sound ? -values[i] : (double)NAN;
  if (sound) NAME(sort_columns)(values, w, 0, q ? q : w, n);
  for (int64_t i = 0; i < n; i++) values[i] = -values[i];
  for (int64_t i = 0; q && i < n * n; i++) w[i] = sound ? q[i] : (double)NAN;
}

/* ------------------------------------------------------------ eigenvalues of any matrix */

static void NAME(swap_both)(NUMBER *a, int64_t n, int64_t i, int64_t j) {
  if (i == j) return;
  for (int64_t k = 0; k < n; k++) NAME(exchange)(a + i * n + k, a + j * n + k);
  for (int64_t k = 0; k < n; k++) NAME(exchange)(a + k * n + i, a + k * n + j);
}

/* Whether row i (or column i) has only zeros beside its diagonal, from lo to hi. */
static bool NAME(is_alone)(const NUMBER *a, int64_t n, int64_t i, Active part, bool column) {
  for (int64_t k = part.lo; k <= part.hi; k++)
    if (k != i && a[column ? i * n + k : k * n + i] != 0) return false;
  return true;
}

/* Exchanges rows and columns so that the matrix is triangular before and behind the active part.
 * scales[i] is the row with which row i was exchanged. */
static Active NAME(isolate)(NUMBER *a, int64_t n, double *scales) {
  Active part = {0, n - 1};
  for (int64_t i = part.hi; i >= 0 && part.hi > 0; i--) {
    if (!NAME(is_alone)(a, n, i, part, false)) continue;
    scales[part.hi] = (double)i;
    NAME(swap_both)(a, n, i, part.hi);
    i = part.hi--;
  }
  for (int64_t i = part.lo; i <= part.hi && part.lo < part.hi; i++) {
    if (!NAME(is_alone)(a, n, i, part, true)) continue;
    scales[part.lo] = (double)i;
    NAME(swap_both)(a, n, i, part.lo);
    i = part.lo++;
  }
  return part;
}

/* Scales rows and columns of the active part by powers of two until their norms are alike (Parlett
 * and Reinsch, 1969). */
static void NAME(equalize)(NUMBER *a, int64_t n, Active part, double *scales) {
  for (int64_t i = part.lo; i <= part.hi; i++) scales[i] = 1;
  for (bool again = true; again;) {
    again = false;
    for (int64_t i = part.lo; i <= part.hi; i++) {
      double c = 0, r = 0, f = 1;
      for (int64_t k = part.lo; k <= part.hi; k++) {
        c = hypot(c, MAGNITUDE(a[i * n + k]));
        r = hypot(r, MAGNITUDE(a[k * n + i]));
      }
      double sum = c + r;
      if (c == 0 || r == 0 || !isfinite(sum)) continue;
      for (; c < r / 2 && f < 0x1p400 && c < 0x1p900; f *= 2, c *= 2, r /= 2) continue;
      for (; c / 2 >= r && f > 0x1p-400 && r < 0x1p900; f /= 2, c /= 2, r *= 2) continue;
      if (f == 1 || c + r >= .95 * sum) continue;
      scales[i] *= f;
      again = true;
      for (int64_t k = 0; k < n; k++) a[k * n + i] = a[k * n + i] / f;
      for (int64_t k = 0; k < n; k++) a[i * n + k] = a[i * n + k] * f;
    }
  }
}

/* Reflects rows from `at` on, of columns from `from` to `to`; or columns, of rows below `to`. v has
 * `count` numbers. */
static void NAME(reflect_rows)(NUMBER *a, int64_t n, int64_t at, int64_t from, int64_t to,
                               const NUMBER *v, NUMBER tau, int64_t count) {
  for (int64_t c = from; c < to; c++) NAME(reflect)(a + c * n + at, v, CONJ(tau), count);
}
static void NAME(reflect_columns)(NUMBER *a, int64_t n, int64_t at, int64_t to, const NUMBER *v,
                                  NUMBER tau, int64_t count) {
  if (poll_stops(4 * to * count)) return;
  for (int64_t i = 0; i < to; i++) {
    NUMBER sum = 0;
    for (int64_t k = 0; k < count; k++) sum += MUL(a[(at + k) * n + i], v[k]);
    sum = MUL(sum, tau);
    for (int64_t k = 0; k < count; k++) a[(at + k) * n + i] -= MUL(sum, CONJ(v[k]));
  }
}

/* Makes the active part zero below its subdiagonal. Applies the same reflections to z, unless
 * NULL. */
static void NAME(hessenberg)(NUMBER *a, int64_t n, Active part, NUMBER *z, NUMBER *v) {
  for (int64_t k = part.lo; k + 1 < part.hi; k++) {
    int64_t count = part.hi - k;
    double beta;
    memcpy(v, a + k * n + k + 1, (size_t)count * sizeof *v);
    NUMBER tau = NAME(reflector)(v, count, &beta);
    memset(a + k * n + k + 1, 0, (size_t)count * sizeof *a);
    a[k * n + k + 1] = beta;
    NAME(reflect_rows)(a, n, k + 1, k + 1, n, v, tau, count);
    NAME(reflect_columns)(a, n, k + 1, part.hi + 1, v, tau, count);
    if (z) NAME(reflect_columns)(z, n, k + 1, n, v, tau, count);
  }
}

#define AT(i, j) h[(j) * n + (i)]

/* Whether the number below the diagonal in column k - 1 is negligible (Ahues and Tisseur, 1997). */
static bool NAME(is_split)(const NUMBER *h, int64_t n, int64_t k) {
  double below = SIZE(AT(k, k - 1)), tiny = DBL_MIN / DBL_EPSILON * (double)n;
  if (below <= tiny) return true;
  double around = SIZE(AT(k - 1, k - 1)) + SIZE(AT(k, k));
  if (around == 0 && k > 1) around += SIZE(AT(k - 1, k - 2));
  if (around == 0 && k + 1 < n) around += SIZE(AT(k + 1, k));
  if (below > DBL_EPSILON * around) return false;
  double above = SIZE(AT(k - 1, k)), d = SIZE(AT(k, k)), gap = SIZE(AT(k - 1, k - 1) - AT(k, k));
  double ab = larger(below, above), ba = lesser(below, above), aa = larger(d, gap),
         bb = lesser(d, gap), s = aa + ab;
  return ba * (ab / s) <= larger(tiny, DBL_EPSILON * (bb * (aa / s)));
}

#if IS_COMPLEX

enum { SHIFTS_c128 = 1 };

/* The row where a QR step on rows lo to hi begins; v is the first column of H - shift there. The
 * shift is the eigenvalue of the last two rows that is nearer to the last diagonal number. */
static int64_t NAME(begin)(const NUMBER *h, int64_t n, int64_t lo, int64_t hi, int tries,
                           NUMBER v[3]) {
  NUMBER shift = AT(hi, hi);
  if (tries % 10 == 0) {
    shift = shift + .75 * SIZE(AT(hi, hi - 1));
  } else {
    NUMBER u = MUL(complex_sqrt(AT(hi - 1, hi)), complex_sqrt(AT(hi, hi - 1)));
    NUMBER x = (AT(hi - 1, hi - 1) - shift) * .5;
    double s = larger(SIZE(u), SIZE(x));
    if (SIZE(u) > 0) {
      NUMBER y = s * complex_sqrt(MUL(x / s, x / s) + MUL(u / s, u / s));
      if (REAL(x) * REAL(y) + IMAG(x) * IMAG(y) < 0) y = -y;
      shift = shift - MUL(u, DIV(u, x + y));
    }
  }
  for (int64_t m = hi - 1;; m--) {
    NUMBER first = AT(m, m) - shift, second = AT(m + 1, m);
    double s = SIZE(first) + SIZE(second);
    v[0] = s > 0 ? first / s : first;
    v[1] = s > 0 ? second / s : second;
    if (m == lo || SIZE(AT(m, m - 1)) * SIZE(v[1]) <=
                       DBL_EPSILON * SIZE(v[0]) * (SIZE(AT(m, m)) + SIZE(AT(m + 1, m + 1))))
      return m;
  }
}

#else

enum { SHIFTS_f64 = 2 };

/* The real case, with two shifts: v is the first column of (H - shift) (H - other). The shifts are
 * the eigenvalues of the last two rows; if these are real, the nearer to the last number serves for
 * both. */
static int64_t NAME(begin)(const NUMBER *h, int64_t n, int64_t lo, int64_t hi, int tries,
                           NUMBER v[3]) {
  double a = AT(hi - 1, hi - 1), b = AT(hi - 1, hi), c = AT(hi, hi - 1), d = AT(hi, hi);
  if (tries % 10 == 0) {
    double s = fabs(c) + fabs(AT(hi - 1, hi - 2));
    a = d = .75 * s + d;
    b = -.4375 * s;
    c = s;
  }
  double re[2] = {0, 0}, im = 0, s = fabs(a) + fabs(b) + fabs(c) + fabs(d);
  if (s > 0) {
    a /= s, b /= s, c /= s, d /= s;
    double mean = (a + d) / 2, det = (a - mean) * (d - mean) - b * c, root = sqrt(fabs(det));
    if (det >= 0) {
      re[0] = re[1] = mean * s;
      im = root * s;
    } else {
      bool upper = fabs(mean + root - d) <= fabs(mean - root - d);
      re[0] = re[1] = (upper ? mean + root : mean - root) * s;
    }
  }
  for (int64_t m = hi - 2;; m--) {
    double first = AT(m, m), scale = fabs(first - re[1]) + fabs(im) + fabs(AT(m + 1, m)),
           below = AT(m + 1, m) / scale;
    v[0] = below * AT(m, m + 1) + (first - re[0]) * ((first - re[1]) / scale) + im * (im / scale);
    v[1] = below * (first + AT(m + 1, m + 1) - re[0] - re[1]);
    v[2] = below * AT(m + 2, m + 1);
    double sum = fabs(v[0]) + fabs(v[1]) + fabs(v[2]);
    for (int i = 0; i < 3 && sum > 0; i++) v[i] /= sum;
    if (m == lo || fabs(AT(m, m - 1)) * (fabs(v[1]) + fabs(v[2])) <=
                       DBL_EPSILON * fabs(v[0]) *
                           (fabs(AT(m - 1, m - 1)) + fabs(first) + fabs(AT(m + 1, m + 1))))
      return m;
  }
}

/* Makes the block of two at k triangular if its eigenvalues are real. */
static void NAME(split_pair)(NUMBER *h, int64_t n, int64_t k, NUMBER *z) {
  double a = AT(k, k), b = AT(k, k + 1), c = AT(k + 1, k), d = AT(k + 1, k + 1);
  double p = (a - d) / 2, scale = larger(fabs(p), larger(fabs(b), fabs(c)));
  if (c == 0) return;
  double square = p / scale * p + b / scale * c;
  if (square < 0) return;
  double root = p + copysign(sqrt(scale) * sqrt(square), p), length = hypot(c, root),
         cosine = root / length, sine = c / length;
  for (int64_t j = k; j < n; j++) {
    double held = cosine * AT(k, j) + sine * AT(k + 1, j);
    AT(k + 1, j) = cosine * AT(k + 1, j) - sine * AT(k, j);
    AT(k, j) = held;
  }
  NAME(turn)(h + k * n, h + (k + 1) * n, cosine, -sine, k + 2);
  if (z) NAME(turn)(z + k * n, z + (k + 1) * n, cosine, -sine, n);
  AT(k, k) = d + root;
  AT(k + 1, k + 1) = root == 0 ? d : d - b / root * c;
  AT(k + 1, k) = 0;
}

#endif

/* One step of the implicit QR iteration on rows lo to hi. The remaining columns, and z, are turned
 * along. */
static void NAME(sweep)(NUMBER *h, int64_t n, int64_t lo, int64_t hi, int tries, NUMBER *z) {
  NUMBER v[3] = {0, 0, 0};
  int64_t first = NAME(begin)(h, n, lo, hi, tries, v);
  for (int64_t k = first; k < hi; k++) {
    int64_t left = hi - k + 1, count = left > NAME(SHIFTS) ? NAME(SHIFTS) + 1 : left;
    int64_t end = left > count ? k + count + 1 : hi + 1;
    double beta;
    if (k > first) memcpy(v, &AT(k, k - 1), (size_t)count * sizeof *v);
    NUMBER tau = NAME(reflector)(v, count, &beta);
    if (k > first) {
      memset(&AT(k, k - 1), 0, (size_t)count * sizeof *h);
      AT(k, k - 1) = beta;
    } else if (k > lo) {
      AT(k, k - 1) = MUL(AT(k, k - 1), 1 - CONJ(tau)); /* others there are negligible */
    }
    NAME(reflect_rows)(h, n, k, k, n, v, tau, count);
    NAME(reflect_columns)(h, n, k, end, v, tau, count);
    if (z) NAME(reflect_columns)(z, n, k, n, v, tau, count);
  }
}

/* Makes H triangular; a real H keeps blocks of two, one for each pair of complex eigenvalues. */
static bool NAME(schur)(NUMBER *h, int64_t n, Active part, NUMBER *z) {
  int64_t steps = 30 * (part.hi - part.lo + 10);
  for (int64_t hi = part.hi; hi >= part.lo;) {
    for (int tries = 1;; tries++) {
      int64_t lo = hi;
      while (lo > part.lo && !NAME(is_split)(h, n, lo)) lo--;
      if (lo > part.lo) AT(lo, lo - 1) = 0;
      if (hi - lo < NAME(SHIFTS)) {
#if !IS_COMPLEX
        if (lo < hi) NAME(split_pair)(h, n, lo, z);
#endif
        hi = lo - 1;
        break;
      }
      if (!steps-- || poll_stops(hi - lo)) return false;
      NAME(sweep)(h, n, lo, hi, tries, z);
    }
  }
  return true;
}

/* Reads the eigenvalues from the diagonal. */
static void NAME(diagonal_values)(const NUMBER *h, int64_t n, complex_f64 *values) {
  for (int64_t k = 0; k < n; k++) {
    values[k] = AT(k, k);
#if !IS_COMPLEX
    if (k + 1 == n || AT(k + 1, k) == 0) continue;
    double mean = (AT(k, k) + AT(k + 1, k + 1)) / 2, p = (AT(k, k) - AT(k + 1, k + 1)) / 2;
    double b = AT(k, k + 1), c = AT(k + 1, k), scale = larger(fabs(p), larger(fabs(b), fabs(c)));
    double im = sqrt(scale) * sqrt(-(p / scale * p + b / scale * c));
    values[k] = complex_of(mean, im);
    values[++k] = complex_of(mean, -im);
#endif
  }
}
#undef AT

/* The eigenvector x of T for values[k]. T is upper triangular but for blocks of two, one for each
 * pair of complex eigenvalues. */
static void NAME(triangular_vector)(const NUMBER *t, const complex_f64 *values, int64_t n,
                                    int64_t k, complex_f64 *x) {
  const complex_f64 value = values[k];
  const double least = larger(DBL_EPSILON * size_c128(value), DBL_MIN / DBL_EPSILON);
  bool pair = k + 1 < n && t[k * n + k + 1] != 0;
  memset(x, 0, (size_t)n * sizeof *x);
  x[k] = pair ? t[(k + 1) * n + k] : 1;
  if (pair) x[k + 1] = value - t[k * n + k];
  for (int64_t last = k + pair, j = k; j >= 0;) {
    if (j < k) { /* solve for x[j], or for x[j - 1] and x[j] */
      pair = j > 0 && t[(j - 1) * n + j] != 0;
      complex_f64 d = t[j * n + j] - value;
      if (!pair) {
        x[j] = complex_div_f64(x[j], size_c128(d) < least ? (complex_f64)least : d);
      } else {
        complex_f64 a = t[(j - 1) * n + j - 1] - value, b = t[j * n + j - 1],
                    c = t[(j - 1) * n + j], first = x[j - 1], second = x[j];
        complex_f64 det = complex_mul_f64(a, d) - complex_mul_f64(b, c);
        if (size_c128(det) < least * least) det = least * least;
        x[j - 1] = complex_div_f64(complex_mul_f64(d, first) - complex_mul_f64(b, second), det);
        x[j] = complex_div_f64(complex_mul_f64(a, second) - complex_mul_f64(c, first), det);
      }
      last = j;
      j -= pair;
    }
    double most = larger(size_c128(x[j]), size_c128(x[last]));
    for (int64_t i = 0; most > 1e100 && i < n; i++) x[i] = x[i] / most;
    for (int64_t c = j; c <= last; c++)
      for (int64_t i = 0; i < j; i++) x[i] -= complex_mul_f64(t[c * n + i], x[c]);
    j--;
  }
}

static void NAME(vectors_of)(const NUMBER *t, const NUMBER *z, const complex_f64 *values,
                             complex_f64 *vectors, int64_t n, Active part, const double *scales,
                             complex_f64 *x) {
  for (int64_t k = 0; k < n; k++) {
    complex_f64 *y = vectors + k * n;
    if (poll_stops(8 * n * n)) return;
    NAME(triangular_vector)(t, values, n, k, x);
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < n; i++) y[i] += complex_mul_f64(z[j * n + i], x[j]);
    restore_rows(y, n, part, scales);
    normalize(y, n, !IS_COMPLEX && imaginary_part(values[k]) == 0);
    if (IS_COMPLEX || imaginary_part(values[k]) == 0) continue;
    for (int64_t i = 0; i < n; i++) y[n + i] = complex_conj_f64(y[i]); /* the other of the pair */
    k++;
  }
}

/* `room` holds Z, a reflector, and a vector of complex numbers. */
static bool NAME(eig)(void *a, complex_f64 *values, complex_f64 *vectors, int64_t n, void *room,
                      double *scales) {
  NUMBER *h = a, *z = vectors ? room : NULL, *rest = (NUMBER *)room + n * n;
  double most = 0;
  for (int64_t i = 0; i < n * n; i++) most = larger(most, SIZE(h[i]));
  const int power = most > 0x1p400 || (most > 0 && most < 0x1p-400) ? ilogb(most) : 0;
  for (int64_t i = 0; power && i < n * n; i++) /* in two steps, for 2^-power may not be a number */
    h[i] = h[i] * ldexp(1, -power / 2) * ldexp(1, power / 2 - power);
  Active part = NAME(isolate)(h, n, scales);
  NAME(equalize)(h, n, part, scales);
  if (z) memset(z, 0, (size_t)(n * n) * sizeof *z);
  for (int64_t i = 0; z && i < n; i++) z[i * n + i] = 1;
  NAME(hessenberg)(h, n, part, z, rest);
  if (!NAME(schur)(h, n, part, z)) return false;
  NAME(diagonal_values)(h, n, values);
  if (z)
    NAME(vectors_of)(h, z, values, vectors, n, part, scales, (complex_f64 *)(void *)(rest + n));
  for (int64_t i = 0; power && i < n; i++)
    values[i] = values[i] * ldexp(1, power / 2) * ldexp(1, power - power / 2);
  return true;
}

const Factorizations NAME(factorizations) = {
    NAME(eliminate), NAME(exchange_rows), NAME(determinant), NAME(substitute),
    NAME(cholesky),  NAME(ldl),           NAME(ldl_solve),   NAME(geqrf),
    NAME(qr),        NAME(svd),           NAME(eigh),        NAME(eig)};

#endif

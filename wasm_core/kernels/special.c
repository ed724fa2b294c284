/* Special functions of a real argument, in double; see special.h.
 *
 * Each has a series for small arguments and an expansion for large ones, or solves for the
 * inverse by Newton's method from a rough start. All sums stop by their terms' size, with a
 * bound on their number. */
#include "kernels/special.h"

#include <math.h>
#include <stdbool.h>

#include "kernels/maths.h"

static const double epsilon = 2.220446049250313e-16;

/* ------------------------------------------------------------ gamma and relatives */

/* Bernoulli numbers B2, B4, ..., B24. */
static const double bernoulli[] = {1. / 6,       -1. / 30,       1. / 42,       -1. / 30,
                                   5. / 66,      -691. / 2730,   7. / 6,        -3617. / 510,
                                   43867. / 798, -174611. / 330, 854513. / 138, -236364091. / 2730};
enum { N_BERNOULLI = sizeof bernoulli / sizeof *bernoulli };

double m_digamma(double x) {
  if (x == 0) return copysign(INFINITY, -x);
  if (x == -INFINITY || isnan(x)) return NAN;
  double reflected = 0;
  if (x < 0) { /* psi(x) = psi(1 - x) - pi / tan(pi x) */
    if (x == floor(x)) return NAN;
    double whole;
    reflected = -MATHS_PI / tan(MATHS_PI * modf(x, &whole));
    x = 1 - x;
  }
  double below = 0;
  for (; x < 10; x++) below += 1 / x;
  double power = 1 / (x * x), square = power, sum = 0;
  for (int k = 0; k < 8; k++, power *= square) sum += bernoulli[k] / (2 * (k + 1)) * power;
  return reflected + (log(x) - 0.5 / x - sum) - below;
}

/* Euler and Maclaurin for q > 0: ten terms, the integral of the rest, corrections. */
static double zeta_positive(double s, double q) {
  double sum = 0, at = q;
  for (int k = 0; k < 10 || at <= 9; k++, at++) {
    double term = pow(at, -s);
    sum += term;
    if (term < epsilon * sum) return sum;
  }
  double power = pow(at, -s);
  sum += power * at / (s - 1) + power / 2;
  double factor = s * power / at;
  for (int k = 0; k < N_BERNOULLI; k++) {
    double order = 2 * (k + 1); /* B(2k+2) / (2k+2)! s (s+1) ... (s+2k) at^(-s-2k-1) */
    double factorial = tgamma(order + 1), term = bernoulli[k] / factorial * factor;
    sum += term;
    if (fabs(term) < epsilon * fabs(sum)) break;
    factor *= (s + order - 1) * (s + order) / (at * at);
  }
  return sum;
}

/* The terms below 0 of q = f - n are those of (-1)^s (j - f)^-s, j = 1 ... n, a difference of
 * two sums above it. */
double m_zeta(double s, double q) {
  if (s == 1) return INFINITY;
  if (s < 1) return NAN;
  if (q <= 0 && q == floor(q)) return INFINITY;
  if (isnan(s) || isnan(q) || (q < 0 && s != floor(s))) return NAN;
  if (q > 0) return zeta_positive(s, q);
  if (isinf(s)) return s; /* one of the terms is below 1 */
  double n = -floor(q), f = q + n, below = zeta_positive(s, 1 - f) - zeta_positive(s, n + 1 - f);
  return zeta_positive(s, f) + (fmod(s, 2) == 0 ? below : -below);
}

double m_polygamma_of(double n, double x) {
  if (n == 0) return m_digamma(x);
  double sign = fmod(n, 2) == 0 ? -1 : 1;
  return sign * tgamma(n + 1) * m_zeta(n + 1, x);
}

/* x^a exp(-x) / gamma(a). */
static double gamma_density(double a, double x) {
  if (a < 100) return exp(a * log(x) - x - lgamma(a));
  /* Near x = a the terms of the exponent cancel: collect them around it. */
  double u = (x - a) / a;
  double stirling = 1 / (12 * a) - 1 / (360 * a * a * a) + 1 / (1260 * a * a * a * a * a);
  return sqrt(a / (2 * MATHS_PI)) * exp(a * (log1p(u) - u) - stirling);
}

static double igamma_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (int k = 1; k < 20000; k++) {
    term *= x / (a + k);
    sum += term;
    if (term < epsilon * sum) break;
  }
  return sum * gamma_density(a, x);
}

/* Lentz's method for the continued fraction of the upper function. */
static double igammac_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int k = 1; k < 20000; k++) {
    double an = -k * (k - a);
    b += 2;
    d = an * d + b;
    c = b + an / c;
    if (fabs(d) < 1e-300) d = 1e-300;
    if (fabs(c) < 1e-300) c = 1e-300;
    d = 1 / d;
    h *= d * c;
    if (fabs(d * c - 1) < epsilon) break;
  }
  return h * gamma_density(a, x);
}

static bool igamma_easy(double a, double x, double *lower) {
  if (x < 0 || a < 0) *lower = NAN;
  else if (a == 0) *lower = x > 0 ? 1 : NAN;
  else if (x == 0) *lower = 0;
  else if (isinf(a)) *lower = isinf(x) ? NAN : 0;
  else if (isinf(x)) *lower = 1;
  else if (isnan(a) || isnan(x)) *lower = NAN;
  else return false;
  return true;
}

double m_igamma(double a, double x) {
  double y;
  if (igamma_easy(a, x, &y)) return y;
  return x < a + 1 ? igamma_series(a, x) : 1 - igammac_fraction(a, x);
}

double m_igammac(double a, double x) {
  double y;
  if (igamma_easy(a, x, &y)) return 1 - y;
  return x < a + 1 ? 1 - igamma_series(a, x) : igammac_fraction(a, x);
}

/* ------------------------------------------------------------ error function and relatives */

double m_erfcx(double x) {
  if (isnan(x)) return x;
  if (x < 8) return x < -27 ? INFINITY : exp(x * x) * erfc(x);
  if (x > 1e8) return 1 / (x * MATHS_SQRT_PI);
  double tail = x; /* 1/sqrt(pi) / (x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))) */
  for (int k = 60; k > 0; k--) tail = x + k / 2. / tail;
  return 1 / (tail * MATHS_SQRT_PI);
}

/* Solves erfc(x) = c for c in (0, 1], from the leading terms of its logarithm, by Newton's
 * method on the logarithm. */
static double erfc_inverse(double c) {
  double l = -log(c * MATHS_SQRT_PI);
  double x = c > 0.25 ? (1 - c) * MATHS_SQRT_PI / 2 : sqrt(l - 0.5 * log(l > 1 ? l : 1));
  for (int k = 0; k < 60; k++) {
    /* log erfc(x) = log(scaled) - x^2; its derivative is -2 / (sqrt(pi) scaled) */
    double scaled = m_erfcx(x);
    double step = (log(scaled) - x * x - log(c)) * scaled * MATHS_SQRT_PI / 2;
    x += step;
    if (fabs(step) <= 2 * epsilon * fabs(x)) break;
  }
  return x;
}

double m_erfinv(double y) {
  double size = fabs(y);
  if (!(size <= 1)) return NAN;
  if (size == 1) return copysign(INFINITY, y);
  if (size > 0.5) return copysign(erfc_inverse(1 - size), y);
  double x = y * MATHS_SQRT_PI / 2;
  for (int k = 0; k < 40; k++) {
    double step = (erf(x) - y) * exp(x * x) * MATHS_SQRT_PI / 2;
    x -= step / (1 + x * step); /* Halley: the second derivative is -2 x times the first */
    if (fabs(step) <= epsilon * fabs(x)) break;
  }
  return x;
}

double m_ndtri(double p) {
  if (p == 0) return -INFINITY;
  if (p == 1) return INFINITY;
  if (!(p > 0 && p < 1)) return NAN;
  return p < 0.25 ? -erfc_inverse(2 * p) / MATHS_SQRT_HALF : m_erfinv(2 * p - 1) / MATHS_SQRT_HALF;
}

double m_log_ndtr(double x) {
  double t = x * MATHS_SQRT_HALF;
  return x < -1 ? log(m_erfcx(-t) / 2) - t * t : log1p(-erfc(t) / 2);
}

/* ------------------------------------------------------------ Bessel functions */

/* Sum of (x^2/4)^k / (k! (k + order)!): every term positive. */
static double bessel_series(double x, int order) {
  double square = x * x / 4, term = 1, sum = 1;
  for (int k = 1; k < 200; k++) {
    term *= square / ((double)k * (k + order));
    sum += term;
    if (term < epsilon * sum) break;
  }
  return sum;
}

/* The asymptotic sum, without exp(x) / sqrt(2 pi x), for x > 30. */
static double bessel_tail(double x, int order) {
  double mu = 4. * order * order, term = 1, sum = 1;
  for (int k = 1; k < 40; k++) {
    double odd = 2 * k - 1;
    term *= -(mu - odd * odd) / (k * 8 * x);
    sum += term;
    if (fabs(term) < epsilon * fabs(sum)) break;
  }
  return sum / sqrt(2 * MATHS_PI * x);
}

double m_i0e(double x) {
  double size = fabs(x);
  return size < 30          ? exp(-size) * bessel_series(size, 0)
         : size == INFINITY ? 0
                            : bessel_tail(size, 0);
}
double m_i1e(double x) {
  double size = fabs(x);
  double y = size < 30          ? exp(-size) * size / 2 * bessel_series(size, 1)
             : size == INFINITY ? 0
                                : bessel_tail(size, 1);
  return copysign(y, x);
}
double m_i0(double x) {
  double size = fabs(x);
  return size < 30 ? bessel_series(size, 0) : exp(size / 2) * bessel_tail(size, 0) * exp(size / 2);
}
double m_i1(double x) {
  double size = fabs(x);
  double y = size < 30 ? size / 2 * bessel_series(size, 1)
                       : exp(size / 2) * bessel_tail(size, 1) * exp(size / 2);
  return copysign(y, x);
}

/* ------------------------------------------------------------ small compositions */

double m_sinc(double x) { return x == 0 ? 1 : sin(MATHS_PI * x) / (MATHS_PI * x); }
double m_entr(double x) { return isnan(x) ? x : x > 0 ? -x * log(x) : x == 0 ? 0 : -INFINITY; }
double m_xlogy(double x, double y) { return isnan(y) ? NAN : x == 0 ? 0 : x * log(y); }
double m_xlog1py(double x, double y) { return isnan(y) ? NAN : x == 0 ? 0 : x * log1p(y); }

double m_logaddexp(double a, double b) {
  if (isinf(a) && a == b) return a;
  return isnan(a) || isnan(b) ? NAN : fmax(a, b) + log1p(exp(-fabs(a - b)));
}
double m_logaddexp2(double a, double b) {
  if (isinf(a) && a == b) return a;
  return isnan(a) || isnan(b) ? NAN : fmax(a, b) + log1p(exp2(-fabs(a - b))) / MATHS_LN2;
}

/* ------------------------------------------------------------ integers */

int64_t m_gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  while (y) {
    uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return (int64_t)x;
}

int64_t m_lcm(int64_t a, int64_t b) {
  int64_t common = m_gcd(a, b);
  if (!common) return 0;
  int64_t y = (int64_t)((uint64_t)(a / common) * (uint64_t)b);
  return y < 0 ? (int64_t)(0 - (uint64_t)y) : y;
}

/* Wraps around; a negative power is 0 unless the base is 1 or -1. */
int64_t m_int_pow(int64_t base, int64_t exponent) {
  bool odd = exponent % 2 != 0;
  if (exponent < 0) return base == 1 ? 1 : base != -1 ? 0 : odd ? -1 : 1;
  uint64_t result = 1, x = (uint64_t)base;
  for (; exponent; exponent /= 2, x *= x)
    if (exponent % 2) result *= x;
  return (int64_t)result;
}

/* The gamma function's logarithm and functions made of it, in double; see special.h. */
#include <math.h>
#include <stdbool.h>

#include "kernels/maths.h"
#include "kernels/special.h"
#include "kernels/twofold.h"

static const double epsilon = 2.220446049250313e-16;

/* ------------------------------------------------------------ beside zeros */

/* 1 / gamma(1 + t), by powers of t. */
static const Twofold inverse_terms[] = {
    {1.0, 0.0},
    {0.5772156649015329, -4.942915152430645e-18},
    {-0.6558780715202539, 2.137185197068536e-17},
    {-0.04200263503409524, 1.4920306285650505e-18},
    {0.16653861138229148, 1.0189144546842026e-17},
    {-0.04219773455554433, -3.3579992682480134e-18},
    {-0.009621971527876973, -5.300031368830263e-19},
    {0.0072189432466631, -3.6006537063394283e-19},
    {-0.0011651675918590652, 5.659947853880981e-20},
    {-0.00021524167411495098, 2.3758686180729364e-21},
    {0.0001280502823881162, -9.359124499198967e-21},
    {-2.013485478078824e-05, 3.0488773972037385e-23},
    {-1.2504934821426706e-06, -2.66214092271898e-23},
    {1.133027231981696e-06, -4.622235212104869e-23},
    {-2.056338416977607e-07, -3.0061601618645134e-24},
    {6.116095104481416e-09, -2.693458298171306e-25},
    {5.002007644469223e-09, -1.538123614056751e-26},
    {-1.18127457048702e-09, -1.0052356155716208e-25},
    {1.0434267116911005e-10, -2.9298419956825035e-27},
    {7.782263439905071e-12, 4.397255556595848e-28},
    {-3.696805618642206e-12, 2.7050034921703885e-28},
    {5.100370287454476e-13, 2.253001461085878e-29},
    {-2.0583260535665066e-14, -1.4747481491954336e-30},
    {-5.348122539423018e-15, -1.6208384686356568e-31},
    {1.2267786282382608e-15, -5.072915146023867e-32},
    {-1.1812593016974588e-16, 6.422257838149681e-33},
    {1.1866922547516004e-18, -4.2037265494226014e-35},
    {1.4123806553180319e-18, -7.576946701116294e-35},
    {-2.29874568443537e-19, 1.3335481917069145e-36},
    {1.7144063219273374e-20, 5.230715150426935e-38},
    {1.337351730493693e-22, 2.6434059649079228e-39},
    {-2.0542335517666728e-22, 3.6856892424568953e-39},
};
enum { INVERSE_TERMS = sizeof inverse_terms / sizeof *inverse_terms };
/* The numbers of terms that suffice for |t| up to 0.5: doubles, and sums of two doubles. */
enum { PLAIN_TERMS = 21, FINE_TERMS = 3 };
/* The x above which a zero and its pole are apart. */
static const double far_left = -20;

/* 1 / gamma(1 + t) for |t| up to 1, and its slope. */
static Twofold inverse_gamma(double t, Twofold *slope) {
  Twofold y = {0, 0}, d = {0, 0}, at = {t, 0};
  for (int k = INVERSE_TERMS - 1; k >= 0; k--) {
    d = twofold_add(twofold_mul(d, at), y);
    y = twofold_add(twofold_mul(y, at), inverse_terms[k]);
  }
  *slope = d;
  return y;
}

/* 1 / gamma(1 + t) for |t| up to 0.5, with an error far below the rounding of a double. */
static Twofold inverse_gamma_quick(double t) {
  double rest = 0;
  for (int k = PLAIN_TERMS - 1; k >= FINE_TERMS; k--) rest = rest * t + inverse_terms[k].high;
  Twofold y = {rest, 0};
  for (int k = FINE_TERMS - 1; k >= 0; k--)
    y = twofold_add(twofold_mul(y, (Twofold){t, 0}), inverse_terms[k]);
  return y;
}

/* For x = t - m, -m the nearest whole number, below 1: |gamma(x)| = 1 / p, p = |t| (1 - t) ... (m -
 * t) / gamma(1 + t); of x > 0.5 it is the last factor alone. */
static Twofold inverse_of(double x, Twofold last) {
  double m = -rint(x), t = x + m;
  Twofold p = m < 0 ? last : twofold_mul(last, (Twofold){fabs(t), 0});
  for (double j = 1; j <= m; j++) p = twofold_mul(p, twofold_sum(j, -t));
  return p;
}

/* Stirling's series for large x. */
static double log_gamma_large(double x) {
  double z = 1 / x, square = z * z;
  Twofold y = twofold_product(x - 0.5, log(x) - 1);
  double rest = (1. / 1188 * square - 1. / 1680) * square + 1. / 1260;
  rest = z * ((rest * square - 1. / 360) * square + 1. / 12);
  return y.high + (y.low + (0.41893853320467274178 + rest));
}

/* The C library's lgamma is off by 3 units in the last place below 1, and has no right digit beside
 * its zeros. */
double m_lgamma(double x) {
  if (x >= 16 && x < 1e15) return log_gamma_large(x);
  if (!(x > far_left && x < 1) || fabs(x) < 1e-6 || x == floor(x)) return lgamma(x);
  double t = x - rint(x);
  Twofold slope, p = inverse_of(x, inverse_gamma_quick(t));
  double y = -(log(p.high) + p.low / p.high);
  if (fabs(y) > 0.5) return y;
  if (fabs(y) < 0.01) p = inverse_of(x, inverse_gamma(t, &slope));
  return -log1p((p.high - 1) + p.low);
}

/* x = t - m: psi(x) = psi(1 + t) - 1 / t + 1 / (1 - t) + ... + 1 / (m - t), and for m = -1 psi(1 +
 * t). */
static double digamma_small(double x) {
  double m = -rint(x), t = x + m;
  if (x > 0) t = x - 1;
  Twofold slope, y = inverse_gamma(t, &slope), one = {1, 0};
  y = twofold_negative(twofold_div(slope, y));
  if (x < 0) y = twofold_add(y, twofold_div(one, (Twofold){-t, 0}));
  for (double j = 1; j <= m; j++) y = twofold_add(y, twofold_div(one, twofold_sum(j, -t)));
  return y.high + y.low;
}

/* ------------------------------------------------------------ digamma */

/* Bernoulli numbers B2, B4, ..., B24. */
static const double bernoulli[] = {1. / 6,       -1. / 30,       1. / 42,       -1. / 30,
                                   5. / 66,      -691. / 2730,   7. / 6,        -3617. / 510,
                                   43867. / 798, -174611. / 330, 854513. / 138, -236364091. / 2730};
enum { N_BERNOULLI = sizeof bernoulli / sizeof *bernoulli };

static double digamma_of(double x) {
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

double m_digamma(double x) {
  double y = digamma_of(x);
  return x > far_left && x < 2 && fabs(y) < 0.75 ? digamma_small(x) : y;
}

/* ------------------------------------------------------------ zeta and polygamma */

/* Adds at^-s. A small whole power is made of products, whose errors are taken along: near a zero of
 * the sum the terms cancel. */
static Twofold with_power(Twofold sum, double at, double s) {
  Twofold term = {pow(at, -s), 0}, power = {1, 0};
  if (s <= 8 && s == floor(s) && fabs(at) > 1e-8 && fabs(at) < 1e8) {
    for (int k = 0; k < s; k++) power = twofold_mul(power, (Twofold){at, 0});
    term = twofold_div((Twofold){1, 0}, power);
  }
  if (isinf(term.high)) return term;
  Twofold high = twofold_sum(sum.high, term.high);
  return (Twofold){high.high, sum.low + term.low + high.low};
}

/* sum and the terms from q > 0 on, by Euler and Maclaurin: ten terms, the integral of the rest,
 * corrections. */
static double zeta_from(double s, double q, Twofold sum) {
  double at = q;
  if (isinf(sum.high)) return sum.high;
  for (int k = 0; k < 10 || at <= 9; at = q + ++k) {
    Twofold before = sum;
    sum = with_power(sum, at, s);
    if (sum.high == before.high || isinf(sum.high)) return sum.high + sum.low;
  }
  double power = pow(at, -s), rest = power * at / (s - 1) + power / 2, factor = s * power / at;
  for (int k = 0; k < N_BERNOULLI; k++) {
    double order = 2 * (k + 1); /* B(2k+2) / (2k+2)! s (s+1) ... (s+2k) at^(-s-2k-1) */
    double factorial = tgamma(order + 1), term = bernoulli[k] / factorial * factor;
    rest += term;
    if (fabs(term) < epsilon / 8 * fabs(rest)) break;
    factor *= (s + order - 1) * (s + order) / (at * at);
  }
  return sum.high + (sum.low + rest);
}
static double zeta_positive(double s, double q) { return zeta_from(s, q, (Twofold){0, 0}); }

/* The terms below 0 are added one by one if they are few. Else those of q = f - n are (-1)^s (j -
 * f)^-s, j = 1 ... n, a difference of two sums above it. */
double m_zeta(double s, double q) {
  if (s == 1) return INFINITY;
  if (s < 1) return NAN;
  if (q <= 0 && q == floor(q)) return INFINITY;
  if (isnan(s) || isnan(q) || (q < 0 && s != floor(s))) return NAN;
  if (q == INFINITY) return 0;
  if (q > 0) return zeta_positive(s, q);
  if (isinf(s)) return s; /* one of the terms is below 1 */
  double n = -floor(q), f = q + n;
  if (n <= 100) {
    Twofold sum = {0, 0};
    for (int k = 0; k < n && !isinf(sum.high); k++) sum = with_power(sum, q + k, s);
    return zeta_from(s, f, sum);
  }
  double rest = -q - (n - 1); /* 1 - f, which rounds */
  double below = zeta_positive(s, rest) - zeta_positive(s, n + rest);
  return zeta_positive(s, f) + (fmod(s, 2) == 0 ? below : -below);
}

double m_polygamma_of(double n, double x) {
  if (n == 0) return m_digamma(x);
  double sign = fmod(n, 2) == 0 ? -1 : 1;
  return sign * tgamma(n + 1) * m_zeta(n + 1, x);
}

/* ------------------------------------------------------------ incomplete gamma */

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

/* Families of functions, in which the derivative of each is made of the next one; see special.h.
 * Derivatives of special functions are made of them, and so are right to any order even at places
 * where a formula in elementary functions would be 0 / 0, inf - inf or 0 * inf. */
#include <math.h>
#include <stdbool.h>

#include "kernels/maths.h"
#include "kernels/special.h"

static const double epsilon = 2.220446049250313e-16;

/* ------------------------------------------------------------ modified Bessel functions */

/* The sum over k of (x^2/4)^k / (k! (k + n)!), over 2^n: every term positive. */
static double i_series(int n, double x) {
  double square = x * x / 4, term = ldexp(1 / tgamma(n + 1.), -n), sum = term;
  for (int k = 1; k < 200; k++) {
    term *= square / ((double)k * (k + n));
    sum += term;
    if (term < epsilon * sum) break;
  }
  return sum;
}

/* The expansion for large x without exp(x) / sqrt(2 pi x); its terms fall until k is near 2 x. */
static double i_tail(int n, double x) {
  double mu = 4. * n * n, term = 1, sum = 1;
  for (int k = 1; k < 40; k++) {
    double odd = 2 * k - 1;
    term *= -(mu - odd * odd) / (k * 8 * x);
    sum += term;
    if (fabs(term) < epsilon * fabs(sum)) break;
  }
  return sum;
}

double m_bessel_ie_over(double order, double x) {
  int n = (int)order;
  double size = fabs(x);
  if (n == 1 && x != 0) return m_i1e(x) / x;
  if (size < 30) return exp(-size) * i_series(n, size);
  return isinf(x) ? 0 : i_tail(n, size) / sqrt(2 * MATHS_PI * size) / pow(size, n);
}

double m_bessel_i_over(double order, double x) {
  int n = (int)order;
  double size = fabs(x);
  if (n == 1 && x != 0 && !isinf(x)) return m_i1(x) / x;
  if (size < 30) return i_series(n, size);
  if (isinf(x)) return INFINITY;
  return exp(size / 2) * m_bessel_ie_over(n, size) * exp(size / 2);
}

/* ------------------------------------------------------------ spherical Bessel functions */

/* Whether the series is used, whose terms alternate: |z| is below n or 1. Elsewhere the recurrence
 * from sin(z) / z is stable: with f(n) for j(n) / z^n, f(n+1) = ((2n + 1) f(n) - f(n-1)) / z^2. */
static bool j_near(int n, double size) { return size < (n > 1 ? n : 1); }

double m_spherical_j_over(double order, double x) {
  int n = (int)order;
  if (j_near(n, fabs(x))) {
    double term = 1, sum;
    for (int k = 1; k <= n; k++) term /= 2 * k + 1;
    sum = term;
    for (int k = 1; k < 60 && fabs(term) > epsilon / 4 * fabs(sum); k++) {
      term *= -x / 2 * x / (k * (2. * (k + n) + 1));
      sum += term;
    }
    return sum;
  }
  double before = sin(x) / x, here = (before - cos(x)) / x / x;
  for (int k = 1; k < n; k++) {
    double next = ((2 * k + 1) * here - before) / x / x;
    before = here;
    here = next;
  }
  return n ? here : before;
}

static complex_f64 z_of(double re, double im) { return complex_of_f64(re, im); }
static complex_f64 times_real(complex_f64 z, double k) {
  return z_of(real_part(z) * k, imaginary_part(z) * k);
}
static complex_f64 minus(complex_f64 a, complex_f64 b) {
  return z_of(real_part(a) - real_part(b), imaginary_part(a) - imaginary_part(b));
}

complex_f64 complex_spherical_j_over(double order, complex_f64 z) {
  int n = (int)order;
  const complex_f64 square = complex_mul_f64(z, z);
  if (j_near(n, complex_abs(z))) {
    complex_f64 term = z_of(1, 0), sum;
    for (int k = 1; k <= n; k++) term = times_real(term, 1. / (2 * k + 1));
    sum = term;
    for (int k = 1; k < 60 && complex_abs(term) > epsilon / 4 * complex_abs(sum); k++) {
      term = times_real(complex_mul_f64(term, square), -0.5 / (k * (2. * (k + n) + 1)));
      sum = minus(sum, times_real(term, -1));
    }
    return sum;
  }
  complex_f64 before = complex_div_f64(complex_sin(z), z),
              here = complex_div_f64(minus(before, complex_cos(z)), square);
  for (int k = 1; k < n; k++) {
    complex_f64 next = complex_div_f64(minus(times_real(here, 2 * k + 1), before), square);
    before = here;
    here = next;
  }
  return n ? here : before;
}

/* ------------------------------------------------------------ the normal distribution */

/* Hermite's polynomials by H(n+1) = 2 x H(n) - 2 n H(n-1). */
double m_gaussian_slope(double order, double x) {
  int n = (int)order;
  double density = exp(-(x * x)), before = 0, here = 1;
  if (density == 0) return 0;
  for (int k = 0; k < n; k++) {
    double next = 2 * x * here - 2 * k * before;
    before = here;
    here = next;
  }
  return n % 2 ? -here * density : here * density;
}

/* The integrals f(n) obey 2 (n + 1) f(n+1) = f(n-1) - 2 x f(n). The recurrence loses digits upward
 * for x above 1; downward it is a continued fraction for f(n) / f(n-1). */
double m_erfcx_integral(double order, double x) {
  int n = (int)order;
  if (n == 0) return m_erfcx(x);
  double before = 2 / MATHS_SQRT_PI, here = m_erfcx(x);
  if (!(x > 0.5)) {
    for (int k = 0; k < n; k++) {
      double next = (before - 2 * x * here) / (2 * (k + 1));
      before = here;
      here = next;
    }
    return here;
  }
  double ratio = 0, product = before;
  double ratios[16];
  if (n >= 16) return NAN;
  for (int k = n + (x < 2 ? 400 : 100); k >= 0; k--) {
    ratio = 1 / (2 * x + 2 * (k + 1) * ratio);
    if (k <= n) ratios[k] = ratio;
  }
  for (int k = 0; k <= n; k++) product *= ratios[k];
  return product;
}

/* ------------------------------------------------------------ others */

/* The sign of the gamma function; 0 at its poles, where its reciprocal is 0. */
static double gamma_sign(double a) {
  if (a > 0) return 1;
  return a == floor(a) ? 0 : fmod(floor(a), 2) == 0 ? 1 : -1;
}

double m_gamma_density(double a, double x) {
  if (isnan(a) || isnan(x)) return NAN;
  double sign = gamma_sign(a);
  if (x < 0) return NAN;
  if (sign == 0 || x == INFINITY) return 0;
  if (x == 0) return a == 1 ? 1 : a > 1 ? 0 : sign * INFINITY;
  return sign * exp(((a - 1) * log(x) - x) - lgamma(a));
}

double m_cosine_to(double a, double b) {
  if (isinf(a) && isfinite(b)) return copysign(1, a);
  return a / hypot(a, b);
}

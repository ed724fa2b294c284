/* Small compositions in double, and functions of integers; see special.h. */
#include "kernels/special.h"

#include <math.h>
#include <stdbool.h>

#include "kernels/maths.h"
#include "kernels/twofold.h"

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
  if (isnan(a) || isnan(b)) return NAN;
  /* 1 / log 2 is a sum of two numbers: the result may be much smaller than the terms of this sum */
  double soft = log1p(exp2(-fabs(a - b)));
  Twofold y = twofold_product(soft, 1.4426950408889634);
  return (fmax(a, b) + y.high) + (y.low + soft * 2.0355273740931033e-17);
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

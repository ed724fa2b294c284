/* Functions of doubles where those of the C library are wrong or less accurate.
 *
 * Polynomials are near-minimax fits in z = x^2. */
#ifndef PG_MATHS64_H
#define PG_MATHS64_H

#include <math.h>

/* The C library's acosh gives numbers for x below about -1e4. */
static inline double acosh_f64(double x) { return x < 1 ? NAN : acosh(x); }

/* A polynomial serves |x| < 0.8, 1 - 2 / (exp(2 |x|) + 1) the rest. */
static inline double tanh_f64(double x) {
  static const double terms[] = {
      -0.3333333333333333,     0.13333333333333322,    -0.05396825396824077,
      0.02186948853554069,     -0.008863235514890204,  0.003592127815210896,
      -0.001455832250118461,   0.0005900132371072243,  -0.00023906201561683455,
      9.668583624259112e-05,   -3.870467257616122e-05, 1.4871539264016072e-05,
      -5.0653434412442165e-06, 1.30208810429683e-06,   -1.793957915239282e-07};
  double size = fabs(x), z = x * x, y = 0;
  if (size >= 0.8) return copysign(size > 22 ? 1 : 1 - 2 / (exp(2 * size) + 1), x);
  for (int k = sizeof terms / sizeof *terms - 1; k >= 0; k--) y = y * z + terms[k];
  return x + x * (z * y);
}

/* A polynomial serves |x| < 1. */
static inline double sinh_f64(double x) {
  double z = x * x;
  if (!(fabs(x) < 1)) return sinh(x);
  double high = (7.746183786252816e-13 * z + 1.605767946801234e-10) * z + 2.5052117697660347e-08;
  double low = ((high * z + 2.755731919137273e-06) * z + 0.0001984126984132422) * z +
               0.008333333333333299;
  return x + x * z * (low * z + 0.16666666666666666);
}

#endif

/* Maths functions for float loops that compute in double, without branches or calls, so that the
 * loops become vectors.
 *
 * Arguments are floats; relative errors are below 2^-30, so that results narrowed to float are
 * within 0.51 units in the last place. The polynomials are near-minimax fits. */
#ifndef PG_WIDE_MATHS_H
#define PG_WIDE_MATHS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t f64_to_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline double bits_to_f64(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Adding this rounds to an integer in the low bits. */
#define WIDE_TO_INTEGER 6755399441055744.0
#define WIDE_ONE ((uint64_t)1023 << 52)
/* Below this, odd functions are two terms of their series; above, a sum with 1 loses nothing. */
#define WIDE_TINY 3.8e-6

/* x = k pi / 2 + r, for |x| up to 2^20: sin r / cos r, or -cos r / sin r for odd k. */
static inline double wide_tan(double x) {
  double shifted = x * 0.63661977236758134 + WIDE_TO_INTEGER, whole = shifted - WIDE_TO_INTEGER;
  double r = (x - whole * 1.5707963267341256141665) - whole * 6.0771005065061926e-11, z = r * r;
  double s = ((2.72498646546429805e-6 * z - 0.000198400862637500794) * z + 0.00833333187383707149) *
                 z -
             0.16666666663853044;
  double c = ((0.0000244637211630666188 * z - 0.0013887588637809915) * z + 0.0416666506349306566) *
                 z -
             0.499999999690946538;
  double sine = r * (s * z + 1), cosine = c * z + 1;
  int odd = (f64_to_bits(shifted) & 1) != 0;
  return (odd ? -cosine : sine) / (odd ? sine : cosine);
}

#define WIDE_HALF_PI 1.5707963267948966

/* A polynomial where |x| <= 1; beyond, pi / 2 minus the atan of 1 / x. */
static inline double wide_atan(double x) {
  int far = fabs(x) > 1;
  double t = far ? 1 / x : x, z = t * t, square = z * z, fourth = square * square;
  double low = (0.199999981540860668 * z - 0.333333333269441399) +
               (0.11109392308277886 * z - 0.142856248914797587) * square;
  double middle = (0.075866528324793072 * z - 0.0907355311868567479) +
                  (0.0472947985706760202 * z - 0.0624631519111273903) * square;
  double high = (0.0140729233053123284 * z - 0.0299131118889102842) +
                (0.000593043752936518052 * z - 0.00422165797529641574) * square;
  double part = t * (1 + z * (low + fourth * (middle + fourth * high)));
  return far ? copysign(WIDE_HALF_PI, x) - part : part;
}

/* atan2(a, b) starts from the atan of the lesser by the larger; equal operands give 0 or 1. */
static inline double wide_incline(double a, double b) {
  double rise = fabs(a), run = fabs(b), least = rise < run ? rise : run,
         most = rise < run ? run : rise;
  return least == most ? most > 0 ? 1 : 0 : least / most;
}
static inline double wide_angle(double a, double b, double part) {
  double angle = fabs(a) > fabs(b) ? WIDE_HALF_PI - part : part;
  angle = copysign(1, b) < 0 ? 2 * WIDE_HALF_PI - angle : angle;
  return ((a == a) & (b == b)) ? copysign(angle, a) : NAN;
}

/* x = 2^e m and sqrt(1/2) <= m < sqrt(2): log by s = (m - 1) / (m + 1). */
static inline double wide_log(double x) {
  uint64_t bits = f64_to_bits(x),
           exponent = (bits - f64_to_bits(0.70710678118654752) + WIDE_ONE) >> 52;
  double e = bits_to_f64(exponent | f64_to_bits(4503599627370496.0)) - (4503599627370496.0 + 1023);
  double m = bits_to_f64(bits - (exponent << 52) + WIDE_ONE), s = (m - 1) / (m + 1), z = s * s;
  double p = ((0.233305819382803763 * z + 0.285508165997095678) * z + 0.400001218769720306) * z +
             0.666666665544516462;
  double y = e * 0.69314718055994531 + s * (p * z + 2);
  y = x == INFINITY ? x : y;
  y = x == 0 ? -INFINITY : y;
  return x >= 0 ? y : NAN;
}

#endif

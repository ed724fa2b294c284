/* The common maths functions in float, without branches, so that loops over them are vectorised.
 *
 * Each is within 3.5 units in the last place of the true value, and right
 * at infinities, NaN, zeros and subnormal numbers. The polynomials are minimax fits on the ranges named. */
#ifndef PG_MATHS32_H
#define PG_MATHS32_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float bits_to_f32(int32_t i) {
  float f;
  memcpy(&f, &i, sizeof f);
  return f;
}
static inline int32_t f32_to_bits(float f) {
  int32_t i;
  memcpy(&i, &f, sizeof i);
  return i;
}

/* copysignf, which compilers do lane by lane. */
static inline float copysign_f32(float size, float sign) {
  return bits_to_f32((f32_to_bits(size) & 0x7fffffff) | (f32_to_bits(sign) & INT32_MIN));
}

/* Limits are written `x > 89 ? 89.5f : x`, not with one number twice: compilers make a minimum of that, which minds
 * signs of zero and NaN and costs eight instructions where x86 runs WebAssembly. */

/* max(x, 0), where -0 and NaN stay: no float is between 0 and the number here. */
static inline float relu_f32(float x) { return x <= -1.40129846e-45f ? 0 : x; }

/* x = n log 2 + r with |r| <= log(2) / 2: exp(r), and n, which stands in the low bits of a float too large for others. */
static inline float exp_parts_f32(float x, int32_t *n) {
  float shifted = x * 1.44269504f + 12582912.0f, whole = shifted - 12582912.0f;
  float r = (x - whole * 0.693145752f) - whole * 1.42860677e-6f;
  float square = r * r;
  float p = (0.166665182f * r + 0.5f) + square * ((0.00836895406f * r + 0.0416662060f) + square * 0.00139505998f);
  *n = f32_to_bits(shifted) - 0x4b400000;
  return p * square + r + 1;
}

/* 2^n exp(r); the power in two factors, for subnormal results. */
static inline float exp_f32(float x) {
  int32_t n;
  float v = x > 89 ? 89.5f : x;
  v = v < -104 ? -104.5f : v;
  float p = exp_parts_f32(v, &n);
  int32_t half = n >> 1;
  return p * bits_to_f32((half + 127) * 8388608) * bits_to_f32((n - half + 127) * 8388608);
}

/* exp(x) for |x| <= 87, where no result is subnormal or infinite. */
static inline float exp_near_f32(float x) {
  int32_t n;
  float p = exp_parts_f32(x, &n);
  return bits_to_f32(f32_to_bits(p) + n * 8388608);
}

/* |x| <= 1/2 by a polynomial, where exp(x) - 1 would cancel. */
static inline float expm1_f32(float x) {
  float square = x * x;
  float p = (0.166666687f * x + 0.500000060f) +
            square * ((0.00833307300f * x + 0.0416653156f) + square * (0.000199928952f * x + 0.00139974570f));
  float small = x + square * p, large = exp_f32(x) - 1;
  return fabsf(x) <= 0.5f ? small : large;
}

/* e log 2 + log(m), where x = 2^e m and sqrt(1/2) <= m < sqrt(2). */
static inline float log_f32(float x) {
  float tiny = x < 1.17549435e-38f ? 8388608.0f : 1;
  uint32_t i = (uint32_t)f32_to_bits(x * tiny);
  int32_t e = (int32_t)(i - 0x3f3504f3) >> 23;
  float f = bits_to_f32((int32_t)(i - (uint32_t)e * 8388608)) - 1, exponent = (float)e - (tiny == 1 ? 0 : 23);
  float square = f * f, fourth = square * square;
  float low = (0.333333164f - 0.250008106f * f) + square * (0.200022861f - 0.166245535f * f);
  float high = (0.141811967f - 0.131287679f * f) + square * (0.128816217f - 0.0785954595f * f);
  float p = low + fourth * high;
  float y = (f - (0.5f * square - square * f * p) + exponent * 1.42860677e-6f) + exponent * 0.693145752f;
  y = x == INFINITY ? x : y;
  y = x == 0 ? -INFINITY : y;
  return x >= 0 ? y : NAN;
}

/* log(1 + x) with what rounding 1 + x lost. */
static inline float log1p_f32(float x) {
  float u = 1 + x, lost = u > 1.5f ? 1 - (u - x) : x - (u - 1);
  float y = log_f32(u);
  return u == 0 || u == INFINITY ? y : y + lost / u;
}

/* |x| <= 5/8 by a polynomial; 1 - 2 / (exp(2 |x|) + 1) beyond. */
static inline float tanh_f32(float x) {
  float z = x * x, square = z * z;
  float p = (0.133313283f * z - 0.333332777f) + square * ((0.0206019990f * z - 0.0537292287f) - square * 0.00566078024f);
  float size = fabsf(x), small = size + size * z * p;
  float large = 1 - 2 / (exp_near_f32(size > 10 ? 21 : 2 * size) + 1);
  return copysign_f32(size > 0.625f ? large : small, x);
}

/* Exact, and quick while the quotient is below 2^28: then it, its product with b, and the rest fit a double. */
static inline float fmod_f32(float a, float b) {
  double whole = trunc((double)a / (double)b);
  if (!(fabs(whole) < 268435456.0) || isinf(b)) return fmodf(a, b);
  double rest = (double)a - whole * (double)b;
  if ((a < 0) != (rest < 0) && rest != 0) rest += a < 0 ? -fabs((double)b) : fabs((double)b);
  return rest == 0 ? copysignf(0, a) : (float)rest;
}

#endif

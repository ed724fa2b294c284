/* The common maths functions in float, without branches, so that loops over them are vectorised.
 *
 * Each is within 2 units in the last place of the true value, and right
 * at infinities, NaN, zeros and subnormal numbers. The polynomials are minimax fits on the
 * ranges named. */
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

/* Limits are written `x > 89 ? 89.5f : x`, not with one number twice: compilers make a minimum of
 * that, which must respect signs of zero and NaN and costs eight instructions where x86 runs
 * WebAssembly. */

/* max(x, 0), where -0 and NaN stay: no float is between 0 and the number here. */
static inline float relu_f32(float x) { return x <= -1.40129846e-45f ? 0 : x; }

/* exp(r) for |r| <= log(2) / 2. */
static inline float exp_rest_f32(float r) {
  float square = r * r;
  float p = (0.166665182f * r + 0.5f) +
            square * ((0.00836895406f * r + 0.0416662060f) + square * 0.00139505998f);
  return p * square + r + 1;
}

/* x = n log 2 + r: exp(r), and n, which stands in the low bits of a float too large for others. */
static inline float exp_parts_f32(float x, int32_t *n) {
  float shifted = x * 1.44269504f + 12582912.0f, whole = shifted - 12582912.0f;
  *n = f32_to_bits(shifted) - 0x4b400000;
  return exp_rest_f32((x - whole * 0.693145752f) - whole * 1.42860677e-6f);
}

/* 2^n p; the power in two factors, for subnormal results. */
static inline float times_power_f32(float p, int32_t n) {
  int32_t half = n >> 1;
  return p * bits_to_f32((half + 127) * 8388608) * bits_to_f32((n - half + 127) * 8388608);
}

static inline float exp_f32(float x) {
  int32_t n;
  float v = x > 89 ? 89.5f : x;
  v = v < -104 ? -104.5f : v;
  float p = exp_parts_f32(v, &n);
  return times_power_f32(p, n);
}

static inline float exp2_f32(float x) {
  float v = x > 128 ? 128.5f : x;
  v = v < -150 ? -150.5f : v;
  float shifted = v + 12582912.0f, whole = shifted - 12582912.0f;
  return times_power_f32(exp_rest_f32((v - whole) * 0.693147181f),
                         f32_to_bits(shifted) - 0x4b400000);
}

/* exp(x) for |x| <= 87, where no result is subnormal or infinite. */
static inline float exp_near_f32(float x) {
  int32_t n;
  float p = exp_parts_f32(x, &n);
  return bits_to_f32(f32_to_bits(p) + n * 8388608);
}

/* 2^n (1 + r + q) - 1 in halves, so that 2^n does not overflow; what adding 2^n r to 2^n - 1
 * loses is added to the rest. */
static inline float expm1_f32(float x) {
  float v = x > 88.75f ? 88.8f : x;
  v = v < -20 ? -20.5f : v;
  float shifted = v * 1.44269504f + 12582912.0f, whole = shifted - 12582912.0f;
  float high = v - whole * 0.693145752f, low = whole * 1.42860677e-6f, r = high - low,
        lost = (high - r) - low, square = r * r;
  float q = ((0.000199079295f * r + 0.00139338837f) * square +
             (0.00833328534f * r + 0.041666463f)) *
                square +
            (0.166666672f * r + 0.5f);
  float power = bits_to_f32((f32_to_bits(shifted) - 0x4b400000 + 126) * 8388608), part = power * r,
        whole_part = power - 0.5f;
  float sum = whole_part + part, rest = part - (sum - whole_part);
  return fabsf(x) < 1e-18f ? x : 2 * (sum + (rest + power * (square * q + lost)));
}

/* (log(1 + f) - f + f^2 / 2) / f^3 */
static inline float log_rest_f32(float f, float square) {
  float low = (0.333333164f - 0.250008106f * f) + square * (0.200022861f - 0.166245535f * f);
  float high = (0.141811967f - 0.131287679f * f) + square * (0.128816217f - 0.0785954595f * f);
  return low + square * square * high;
}

/* log(2^e (1 + f)) + lost. */
static inline float log_parts_f32(float e, float f, float lost) {
  float square = f * f, p = log_rest_f32(f, square);
  return (f - (0.5f * square - (square * f * p + (e * 1.42860677e-6f + lost)))) + e * 0.693145752f;
}

/* x = 2^e m and sqrt(1/2) <= m < sqrt(2). */
static inline float log_f32(float x) {
  float tiny = x < 1.17549435e-38f ? 8388608.0f : 1;
  uint32_t i = (uint32_t)f32_to_bits(x * tiny);
  int32_t e = (int32_t)(i - 0x3f3504f3) >> 23;
  float f = bits_to_f32((int32_t)(i - (uint32_t)e * 8388608)) - 1,
        exponent = (float)e - (tiny == 1 ? 0 : 23);
  float y = log_parts_f32(exponent, f, 0);
  y = x == INFINITY ? x : y;
  y = x == 0 ? -INFINITY : y;
  return x >= 0 ? y : NAN;
}

/* A logarithm of another base: log(x) = e unit + log(m) scale. Factors come as high and low parts;
 * products of the high parts are exact. */
static inline float log_scaled_f32(float x, float unit, float unit_low, float scale,
                                   float scale_low) {
  float tiny = x < 1.17549435e-38f ? 8388608.0f : 1;
  uint32_t i = (uint32_t)f32_to_bits(x * tiny);
  int32_t e = (int32_t)(i - 0x3f3504f3) >> 23;
  float f = bits_to_f32((int32_t)(i - (uint32_t)e * 8388608)) - 1,
        exponent = (float)e - (tiny == 1 ? 0 : 23);
  float square = f * f, half = 0.5f * square, high = bits_to_f32(f32_to_bits(f - half) & -4096);
  float low = ((f - high) - half) + square * f * log_rest_f32(f, square), whole = exponent * unit,
        part = high * scale;
  float sum = whole + part, lost = part - (sum - whole);
  float y = sum + (lost + ((low * scale + (low + high) * scale_low) + exponent * unit_low));
  y = x == INFINITY ? x : y;
  y = x == 0 ? -INFINITY : y;
  return x >= 0 ? y : NAN;
}
static inline float log2_f32(float x) {
  return log_scaled_f32(x, 1, 0, 1.44287109f, -0.000176052854f);
}
static inline float log10_f32(float x) {
  return log_scaled_f32(x, 0.301025391f, 4.60503907e-06f, 0.434326172f, -3.16899714e-05f);
}

/* log(u + lost) for normal u. */
static inline float log_sum_f32(float u, float lost) {
  uint32_t i = (uint32_t)f32_to_bits(u);
  int32_t e = (int32_t)(i - 0x3f3504f3) >> 23;
  return log_parts_f32((float)e, bits_to_f32((int32_t)(i - (uint32_t)e * 8388608)) - 1, lost / u);
}

/* log(1 + x) with what rounding 1 + x lost. */
static inline float log1p_f32(float x) {
  float u = 1 + x, lost = u > 2 ? 1 - (u - x) : x - (u - 1);
  float y = log_sum_f32(u, lost);
  y = u == INFINITY ? u : y;
  y = u == 0 ? -INFINITY : y;
  return u >= 0 ? x == 0 ? x : y : NAN;
}

/* |x| <= 5/8 by a polynomial; 1 - 2 / (exp(2 |x|) + 1) beyond. */
static inline float tanh_f32(float x) {
  float z = x * x, square = z * z;
  float p = (0.133313283f * z - 0.333332777f) +
            square * ((0.0206019990f * z - 0.0537292287f) - square * 0.00566078024f);
  float size = fabsf(x), small = size + size * z * p;
  float large = 1 - 2 / (exp_near_f32(size > 10 ? 21 : 2 * size) + 1);
  return copysign_f32(size > 0.625f ? large : small, x);
}

#endif

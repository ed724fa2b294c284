/* Maths without branches or calls, so that a loop over it becomes vectors: for loops of float.
 *
 * Every step is strict arithmetic, the same bits on every host. */
#ifndef PG_LANES_H
#define PG_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* exp(x) = 2^k exp(r), |r| <= ln 2 / 2, within 1.5 units in the last place. What is below 2^-125 is 0. */
static inline float exp_lane(float x) {
  const float to_integer = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
  float shifted = x * 1.44269504f + to_integer, whole = shifted - to_integer;
  float r = (x - whole * 0.693145752f) - whole * 1.42860677e-6f;
  float p = 1.38146128e-3f * r + 8.36871099e-3f;
  p = p * r + 4.16683890e-2f;
  p = p * r + 1.66665211e-1f;
  p = p * r + 4.99999940e-1f;
  p = p * (r * r) + r + 1.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + 0x3f000000u; /* k + 126 in the exponent: what else was in the bits is shifted out */
  float half;
  memcpy(&half, &bits, sizeof half);
  float y = p * half * 2.0f;
  y = x < -86.98f ? 0.0f : y;
  return x > 88.73f ? INFINITY : y;
}

/* The same for x <= 0, where the power is one factor and nothing overflows. */
static inline float exp_lane_down(float x) {
  const float to_integer = 12582912.0f;
  float shifted = x * 1.44269504f + to_integer, whole = shifted - to_integer;
  float r = (x - whole * 0.693145752f) - whole * 1.42860677e-6f;
  float p = 1.38146128e-3f * r + 8.36871099e-3f;
  p = p * r + 4.16683890e-2f;
  p = p * r + 1.66665211e-1f;
  p = p * r + 4.99999940e-1f;
  p = p * (r * r) + r + 1.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + 0x3f800000u; /* k + 127 in the exponent */
  float power;
  memcpy(&power, &bits, sizeof power);
  return x < -86.98f ? 0.0f : p * power;
}

#endif

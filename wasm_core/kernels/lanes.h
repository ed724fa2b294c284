/* The exponential of numbers up to 0, without branches or calls, so that a loop over it becomes
 * vectors.
 *
 * Every step is strict arithmetic, the same bits on every host. */
#ifndef PG_LANES_H
#define PG_LANES_H

#include "kernels/maths32.h"

/* The argument below which exp_down is 0. Declared, not defined, here: an unknown limit compiles to
 * one instruction that keeps NaN. */
extern const float exp_down_limit;

/* exp(x) = 2^k exp(r), |r| <= log(2) / 2, within 1 unit in the last place; subnormal results are
 * 0. */
static inline float exp_down(float x) {
  /* adding it rounds to an integer; in the low bits stands the exponent of 2^k */
  const float to_integer = 12582912.0f + 127;
  float v = x < exp_down_limit ? exp_down_limit : x, shifted = v * 1.44269504f + to_integer,
        whole = shifted - to_integer;
  float r = (v - whole * 0.693145752f) - whole * 1.42860677e-6f, square = r * r;
  float q = (0.00138145597f * r + 0.00836873558f) * square + (0.0416683899f * r + 0.166665205f);
  return ((square * (q * r + 0.499999934f) + r) + 1) *
         bits_to_f32((int32_t)((uint32_t)f32_to_bits(shifted) << 23));
}

#endif

/* 16-bit numbers, IEEE 754 binary16 and bfloat16, and their conversions to and from float.
 *
 * Both are structures, so that no C operator takes their bits for a number. Conversion to float is
 * exact. Conversion from float rounds to nearest, ties to even, and makes every NaN quiet. The code
 * has no branches, so that loops vectorise. */
#ifndef PG_HALF_H
#define PG_HALF_H

#include <stdint.h>
#include <string.h>

typedef struct {
  uint16_t bits;
} Half;
typedef struct {
  uint16_t bits;
} BHalf;

static inline uint32_t float_bits(float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}
static inline float float_of_bits(uint32_t bits) {
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* The exponent and fraction bits, shifted into a float, give the number times 2^-112, for subnormal
 * numbers too. */
static inline float float_of_half(Half h) {
  uint32_t sign = (uint32_t)(h.bits & 0x8000) << 16, rest = (uint32_t)(h.bits & 0x7fff) << 13;
  uint32_t finite = float_bits(float_of_bits(rest) * 0x1p112f);
  return float_of_bits(sign | (rest >= 0x0f800000 ? rest | 0x7f800000 : finite));
}

/* Adding 0.5 leaves the bits of a subnormal result in the fraction, rounded. */
static inline Half half_of_float(float v) {
  uint32_t bits = float_bits(v), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  uint32_t normal = (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13;
  uint32_t small = float_bits(float_of_bits(size) + 0.5f) - 0x3f000000;
  uint32_t finite = size < 0x38800000 ? small : normal;
  uint32_t large = size > 0x7f800000 ? 0x7e00 : 0x7c00;
  return (Half){(uint16_t)(sign | (size >= 0x477ff000 ? large : finite))};
}

static inline float float_of_bhalf(BHalf h) { return float_of_bits((uint32_t)h.bits << 16); }

static inline BHalf bhalf_of_float(float v) {
  uint32_t bits = float_bits(v), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (BHalf){(uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded)};
}

#endif

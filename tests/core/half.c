/* Half types: every one of them to float and back, and rounding to nearest even against the
 * nearest pair of them. */
#include "check.h"

#include "ground/half.h"

static double value_of_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

static void every_half_is_exact_as_a_float(void) {
  for (uint32_t i = 0; i < 65536; i++) {
    Half h = {(uint16_t)i};
    float f = float_of_half(h);
    if ((i & 0x7fff) > 0x7c00) CHECK(f != f);
    else if ((i & 0x7fff) == 0x7c00) CHECK(isinf(f) && !!signbit(f) == (int)(i >> 15));
    else CHECK((double)f == value_of_half((uint16_t)i) && !!signbit(f) == (int)(i >> 15));
    uint16_t nan = (uint16_t)(0x7e00 | (i & 0x8000));
    CHECK(half_of_float(f).bits == ((i & 0x7fff) > 0x7c00 ? nan : i));
  }
}

static void every_bfloat16_is_exact_as_a_float(void) {
  for (uint32_t i = 0; i < 65536; i++) {
    float f = float_of_bhalf((BHalf){(uint16_t)i});
    CHECK(float_bits(f) == i << 16);
    CHECK(bhalf_of_float(f).bits == ((i & 0x7fff) > 0x7f80 ? 0x7fc0 : i));
  }
}

/* Between two neighbours the nearer is taken, half way the one whose last bit is 0. */
static void floats_round_to_nearest_even(void) {
  for (uint16_t i = 0; i < 0x7bff; i++) {
    double low = value_of_half(i), high = value_of_half((uint16_t)(i + 1)),
           middle = (low + high) / 2;
    uint16_t even = i & 1 ? (uint16_t)(i + 1) : i;
    CHECK(half_of_float((float)middle).bits == even);
    CHECK(half_of_float(nextafterf((float)middle, 0)).bits == i);
    CHECK(half_of_float(nextafterf((float)middle, 1e9f)).bits == i + 1);
    CHECK(half_of_float((float)-middle).bits == (even | 0x8000));
  }
  CHECK(half_of_float(65519.996f).bits == 0x7bff && half_of_float(65520).bits == 0x7c00);
  CHECK(half_of_float(1e-9f).bits == 0 && half_of_float(-1e30f).bits == 0xfc00);
  CHECK(bhalf_of_float(1.00390625f).bits == 0x3f80 && bhalf_of_float(1.01171875f).bits == 0x3f82);
  CHECK(bhalf_of_float(3.4e38f).bits == 0x7f80 && bhalf_of_float(3.38e38f).bits == 0x7f7e);
}

int main(void) {
  RUN(every_half_is_exact_as_a_float);
  RUN(every_bfloat16_is_exact_as_a_float);
  RUN(floats_round_to_nearest_even);
  return finish();
}

/* The random stream against numbers that PyTorch 2.13 gave for the same seed, to the bit. */
#include "kernels/rng.h"

#include "check.h"

static Rng r;

#define CHECK_NUMBERS(got, ...)                                                       \
  do {                                                                                \
    const double expected[] = {__VA_ARGS__};                                          \
    for (int i = 0; i < COUNT(expected); i++) CHECK((double)(got)[i] == expected[i]); \
  } while (0)

static void uniform_numbers(void) {
  float a[4];
  double b[3];
  rng_seed(&r, 0);
  rng_uniform_f32(&r, a, 4, 0, 1);
  CHECK_NUMBERS(a, 0x1.fc2abp-2, 0x1.89545ep-1, 0x1.6a675p-4, 0x1.0e66p-3);
  rng_seed(&r, 0);
  rng_uniform_f64(&r, b, 3, 0, 1);
  CHECK_NUMBERS(b, 0x1.f0aac97c4aa2fp-1, 0x1.6a675d821ccc0p-1, 0x1.d6687b744a5f6p-2);
}

static void normal_numbers_one_by_one(void) {
  float a[3];
  double b[3];
  rng_seed(&r, 0);
  rng_normal_f32(&r, a, 3, 0, 1);
  CHECK_NUMBERS(a, 0x1.8a7eb8p+0, -0x1.2c78ap-2, -0x1.16e292p+1);
  rng_seed(&r, 0);
  rng_normal_f64(&r, b, 3, 0, 1);
  CHECK_NUMBERS(b, 0x1.8a7eb8902be3ap+0, -0x1.2c78a087c6feap-2, -0x1.16e2920a70ee5p+1);
}

/* From 16 on torch fills in blocks, with other numbers, and with vector functions of its own:
 * close, not equal. */
static void normal_numbers_in_blocks(void) {
  static const int at[] = {0, 8, 16};
  static const double expected[] = {-0x1.20370ap+0, 0x1.df54aap-2, 0x1.dd186p-1};
  float a[17];
  rng_seed(&r, 0);
  rng_normal_f32(&r, a, 17, 0, 1);
  for (int i = 0; i < 3; i++)
    CHECK(fabs((double)a[at[i]] - expected[i]) <= 4e-7 * fabs(expected[i]));
}

static void integers_permutations_and_coins(void) {
  int64_t a[8];
  float coins[8];
  rng_seed(&r, 0);
  rng_randint_i64(&r, a, 8, 0, 10);
  CHECK_NUMBERS(a, 4, 9, 3, 0, 3, 9, 7, 3);
  rng_seed(&r, 0);
  rng_randperm_i64(&r, a, 8);
  CHECK_NUMBERS(a, 4, 0, 7, 3, 2, 5, 1, 6);
  rng_seed(&r, 0);
  rng_bernoulli_f32(&r, coins, 8, 0.3);
  CHECK_NUMBERS(coins, 0, 0, 0, 0, 0, 0, 1, 0);
}

static void the_state_is_renewed_in_stride(void) {
  float a[1000], next;
  rng_seed(&r, UINT64_C(12345678901)); /* of which the low 32 bits count */
  rng_uniform_f32(&r, a, 1000, 0, 1);
  rng_uniform_f32(&r, &next, 1, 0, 1);
  CHECK((double)next == 0x1.78adbp-2);
}

static void a_state_is_torchs_byte_for_byte_and_continues(void) {
  static uint8_t state[RNG_STATE_BYTES];
  float a[5];
  rng_seed(&r, 7);
  rng_normal_f32(&r, a, 5, 0, 1);
  rng_state_export(&r, state);
  int64_t sum = 0;
  for (int i = 0; i < RNG_STATE_BYTES; i++) sum += (int64_t)state[i] * (i % 251 + 1);
  CHECK(sum == 40700868);
  static Rng other;
  rng_seed(&other, 1);
  CHECK(rng_state_import(&other, state));
  for (int i = 0; i < 2000; i++) CHECK(rng_u32(&other) == rng_u32(&r));
}

static void a_state_that_is_none_is_refused(void) {
  static uint8_t state[RNG_STATE_BYTES];
  rng_seed(&r, 3);
  uint32_t next = r.words[r.next];
  memset(state, 0xff, sizeof state);
  CHECK(!rng_state_import(&r, state));
  CHECK(r.words[r.next] == next);
}

int main(void) {
  RUN(uniform_numbers);
  RUN(normal_numbers_one_by_one);
  RUN(normal_numbers_in_blocks);
  RUN(integers_permutations_and_coins);
  RUN(the_state_is_renewed_in_stride);
  RUN(a_state_is_torchs_byte_for_byte_and_continues);
  RUN(a_state_that_is_none_is_refused);
  return finish();
}

/* PyTorch's CPU random stream: mt19937 and the transforms that torch's fills apply to it.
 *
 * After rng_seed(r, s) every fill below writes the numbers torch 2.13 writes after
 * manual_seed(s), and leaves the generator where torch leaves it, so calls mix freely. rng.c
 * says which results are torch's to the bit. Wasm and native builds compute the same bits
 * throughout.
 *
 * The module knows nothing of tensors: `out` is contiguous and owned by the caller, n >= 0 (n == 0
 * draws nothing), arguments are checked already (std >= 0, 0 <= p <= 1, low < high, ...), and
 * nothing is allocated.
 *
 * Strided outputs: torch draws for one element after the other in the order of memory (the
 * dimension of the smallest stride innermost, whatever the order of the sizes). So fill a
 * contiguous scratch, and scatter it in that order. Only normal_ differs: a tensor that
 * is_contiguous() and has n >= 16 takes the blocked fill; any other one (transposed,
 * channels-last, sliced) takes rng_normal_serial_*, however large. rng_normal_* itself decides
 * by n alone. torch.bernoulli(p) fills a new contiguous output, so it reads p in logical order.
 *
 * What torch builds on these: dropout draws bernoulli_(1 - p) in the layout of its input; rand,
 * randn and randint fill a new tensor; normal(mean, std) with a tensor argument is normal_(0, 1)
 * * std + mean (normal_(0, std) + mean where std is a number); complex normal_ fills 2n reals
 * with std / sqrt(2). float16 and bfloat16 round the float32 results, except that normal_ draws
 * no uniforms for an incomplete last block before it draws the last 16, and that random_() ends
 * at 2^11 and 2^8. */
#ifndef PG_RNG_H
#define PG_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RNG_STATE_WORDS = 624, RNG_STATE_BYTES = 5056 };

/* Seed of a torch.Generator() that nobody seeded. */
#define RNG_DEFAULT_SEED UINT64_C(67280421310721)

typedef struct Rng {
  uint32_t words[RNG_STATE_WORDS]; /* mt19937 state, not yet tempered */
  uint32_t next;                   /* index of the word to draw next */
  int32_t left;                    /* draws until the state is renewed; next + left <= 625 */
  uint64_t seed;                   /* the argument of rng_seed */
  double spare_f64;                /* second sample of the last serial normal, if has_spare_f64 */
  float spare_f32;                 /* only carried: torch's CPU kernels do not use it */
  bool has_spare_f64, has_spare_f32;
} Rng;

/* manual_seed: only the low 32 bits of the seed reach the state, as in torch. */
void rng_seed(Rng *r, uint64_t seed);
uint32_t rng_u32(Rng *r);
uint64_t rng_u64(Rng *r); /* the first 32-bit draw is the high half */

/* The bytes of torch.get_rng_state(), little-endian. Import returns false, and changes nothing,
 * where torch says "Invalid mt19937 state" or where next and left would lead past the state. */
void rng_state_export(const Rng *r, uint8_t bytes[RNG_STATE_BYTES]);
bool rng_state_import(Rng *r, const uint8_t bytes[RNG_STATE_BYTES]);

/* uniform_(from, to): [from, to). */
void rng_uniform_f32(Rng *r, float *out, int64_t n, double from, double to);
void rng_uniform_f64(Rng *r, double *out, int64_t n, double from, double to);

/* normal_(mean, std) of a contiguous tensor, and of all others. */
void rng_normal_f32(Rng *r, float *out, int64_t n, double mean, double std);
void rng_normal_f64(Rng *r, double *out, int64_t n, double mean, double std);
void rng_normal_serial_f32(Rng *r, float *out, int64_t n, double mean, double std);
void rng_normal_serial_f64(Rng *r, double *out, int64_t n, double mean, double std);

/* exponential_(lambda), cauchy_(median, sigma), log_normal_(mean, std). */
void rng_exponential_f32(Rng *r, float *out, int64_t n, double lambda);
void rng_exponential_f64(Rng *r, double *out, int64_t n, double lambda);
void rng_cauchy_f32(Rng *r, float *out, int64_t n, double median, double sigma);
void rng_cauchy_f64(Rng *r, double *out, int64_t n, double median, double sigma);
void rng_log_normal_f32(Rng *r, float *out, int64_t n, double mean, double std);
void rng_log_normal_f64(Rng *r, double *out, int64_t n, double mean, double std);

/* The dtypes of the discrete fills: X(suffix, C type, whether random_() draws 64 bits, how many
 * numbers random_() has). */
#define RNG_DTYPES(X)                           \
  X(f32, float, false, (UINT64_C(1) << 24) + 1) \
  X(f64, double, true, (UINT64_C(1) << 53) + 1) \
  X(i64, int64_t, true, UINT64_C(1) << 63)      \
  X(i32, int32_t, false, UINT64_C(1) << 31)     \
  X(i16, int16_t, false, UINT64_C(1) << 15)     \
  X(i8, int8_t, false, UINT64_C(1) << 7)        \
  X(u8, uint8_t, false, UINT64_C(1) << 8)       \
  X(bool, bool, false, 2)

/* For each dtype T of the table:
 *   rng_random_T        random_(): [0, max] of an integer, [0, 2^24] or [0, 2^53] of a float.
 *   rng_randint_T       random_(low, high) and randint: [low, high). Floats: see
 *   rng_randint_bounds_*.
 *   rng_random_from_T   random_(low, None): from low to the maximum of random_(), both included;
 *   with
 *                       low == INT64_MIN all of int64 (torch: int64 and floats only).
 *   rng_bernoulli_T     bernoulli_(p).
 *   rng_geometric_T     geometric_(p), 0 < p < 1 (torch: not bool). */
#define RNG_DECLARE(T, C, WIDE, COUNT)                                        \
  void rng_random_##T(Rng *r, C *out, int64_t n);                             \
  void rng_randint_##T(Rng *r, C *out, int64_t n, int64_t low, int64_t high); \
  void rng_random_from_##T(Rng *r, C *out, int64_t n, int64_t low);           \
  void rng_bernoulli_##T(Rng *r, C *out, int64_t n, double p);                \
  void rng_geometric_##T(Rng *r, C *out, int64_t n, double p);
RNG_DTYPES(RNG_DECLARE)
#undef RNG_DECLARE

/* random_ on floats first moves both bounds inwards to integers that the dtype holds; call this
 * before rng_randint_f32/_f64 (rng_random_from_* does it alone). False: nothing is left, torch
 * raises. */
bool rng_randint_bounds_f32(int64_t *low, int64_t *high);
bool rng_randint_bounds_f64(int64_t *low, int64_t *high);

/* bernoulli(p) and bernoulli_(tensor p) in single draws: the dtype of p decides them, not that
 * of the output. */
bool rng_bernoulli_one_f32(Rng *r, float p);
bool rng_bernoulli_one_f64(Rng *r, double p);

/* randperm(n); other dtypes are a cast of this. */
void rng_randperm_i64(Rng *r, int64_t *out, int64_t n);

/* multinomial, one row of m >= 1 weights at a time, top row first: k indices come out, `scratch`
 * has m elements. _unique_ is sampling without replacement (k <= m); with k == 1 torch goes that
 * way in either case, checks included, and so does rng_multinomial_*. torch leaves the order of
 * equal keys open, zero weights among them; here the lower index comes first. Without
 * replacement torch checks all rows before the first draw, with replacement each row before its
 * draws. */
typedef enum RngWeights {
  RNG_WEIGHTS_OK,
  RNG_WEIGHTS_NEGATIVE, /* an entry < 0 or NaN */
  RNG_WEIGHTS_INFINITE, /* an infinite entry */
  RNG_WEIGHTS_ZERO_SUM  /* nothing to sample */
} RngWeights;
RngWeights rng_weights_check_f32(const float *p, int64_t m);
RngWeights rng_weights_check_f64(const double *p, int64_t m);
void rng_multinomial_f32(Rng *r, int64_t *out, int64_t k, const float *p, double *scratch,
                         int64_t m);
void rng_multinomial_f64(Rng *r, int64_t *out, int64_t k, const double *p, double *scratch,
                         int64_t m);
void rng_multinomial_unique_f32(Rng *r, int64_t *out, int64_t k, const float *p, double *scratch,
                                int64_t m);
void rng_multinomial_unique_f64(Rng *r, int64_t *out, int64_t k, const double *p, double *scratch,
                                int64_t m);

#endif

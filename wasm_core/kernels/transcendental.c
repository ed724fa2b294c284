/* The hot loops of float: exp, sigmoid and its kin, tanh, erf, gelu, sin, cos, relu, mish, rows of
 * softmax.
 *
 * A processor looks ahead some hundred instructions, which is less than the chain of one
 * exponential, so a chain is cut into passes over blocks that stay in the first-level cache. Each
 * element's bits follow from that element alone: where a whole block allows a shorter way, that way
 * gives the bits that each of its elements has in any other block. Errors in units in the last
 * place, proven by tests/test_accuracy.py: functions computed in double 0.51, sin and cos 0.6, exp
 * and tanh 1, erf 1.1, sinh and cosh 1.2, sigmoid 2, silu 2.4, gelu 3.5 (near -2 PyTorch's has 38,
 * and beyond -6 no digit). */
#include "kernels/transcendental.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ground/inline.h"
#include "ground/paths.h"
#include "kernels/lanes.h"
#include "kernels/loops.h"
#include "kernels/simd.h"
#include "kernels/wide_maths.h"

/* Blocks are multiples of LANES, so that no loop has a second body for a rest. */
#define EACH(n) FLAT_FOR_float for (size_t i = 0; i < ((n) & ~(size_t)(LANES - 1)); i++)
/* Four vectors at `l` of moving pointers: engines compute each address anew unless the offset is a
 * constant. */
#define FOUR_VECTORS UNROLLED for (size_t l = 0; l < LANES; l += 4)

enum { PART = LOOP_PART };

const float exp_down_limit = -88;

/* Narrows s->wide to y, four numbers at a time; n is rounded up. */
static NOINLINE void narrow(float *y, size_t n, const LoopScratch *s) {
  typedef float f32x2 __attribute__((vector_size(8)));
  const f32x2 none = {0, 0};
  for (size_t i = 0; i < n; i += 4) {
    f32x4 low = SIMD_SHUFFLE(__builtin_convertvector(f64x2_load(s->wide + i), f32x2), none, 0, 1, 2,
                             3);
    f32x4 high = SIMD_SHUFFLE(__builtin_convertvector(f64x2_load(s->wide + i + 2), f32x2), none, 0,
                              1, 2, 3);
    f32x4_store(y + i, SIMD_SHUFFLE(low, high, 0, 1, 4, 5));
  }
}

/* The size of the block that begins at `at`. */
static size_t part_size(size_t at, size_t n) { return n - at < PART ? n - at : PART; }

static inline float magnitude(float x) { return bits_to_f32(f32_to_bits(x) & INT32_MAX); }
static inline f32x4 f32x4_magnitude(f32x4 x) { return (f32x4)((i32x4)x & INT32_MAX); }
/* chosen ? a : b in each lane, with the sign of x. */
static inline f32x4 choose_signed(i32x4 chosen, f32x4 a, f32x4 b, f32x4 x) {
  i32x4 bits = ((i32x4)a & chosen) | ((i32x4)b & ~chosen);
  return (f32x4)((bits & INT32_MAX) | ((i32x4)x & INT32_MIN));
}

/* 2^k for a float that ends in the bits of 127 + k; the shift drops its other bits. */
static inline float power_of(float shifted) {
  return bits_to_f32((int32_t)((uint32_t)f32_to_bits(shifted) << 23));
}

/* Adding this rounds to an integer, which stands in the low bits as the exponent of a float, plus
 * `bias`. */
#define TO_INTEGER(bias) (12582912.0f + 127 + (bias))

/* exp(r) - 1 for |r| <= log(2) / 2. */
static inline float expm1_of_rest(float r) {
  float square = r * r,
        q = (0.00138145597f * r + 0.00836873558f) * square + (0.0416683899f * r + 0.166665205f);
  return square * (q * r + 0.499999934f) + r;
}
static inline float expm1_part(const LoopScratch *s, size_t i) {
  return expm1_of_rest(s->part[0][i]);
}

/* x = k log 2 + r: part[0] = r, and part[1] ends in the bits of k. NaN stays. limit: low, high,
 * TO_INTEGER, and a factor for x within them. The limits are not constants: so each comparison is
 * one instruction, without care for zeros or NaN. */
static NOINLINE void reduce(const float *x, size_t n, const float *limit, LoopScratch *s) {
  const float low = limit[0], high = limit[1], to_integer = limit[2], factor = limit[3];
  EACH(n) {
    float v = x[i] < low ? low : x[i];
    v = (high < v ? high : v) * factor;
    float shifted = v * 1.44269504f + to_integer, whole = shifted - to_integer;
    s->part[0][i] = (v - whole * 0.693145752f) - whole * 1.42860677e-6f;
    s->part[1][i] = shifted;
  }
}

/* x with its sign turned where `whole`, which ends in the bits of an integer, is odd. */
static inline double flip_if_odd(double x, double whole) {
  uint64_t bits, odd;
  memcpy(&bits, &x, sizeof bits);
  memcpy(&odd, &whole, sizeof odd);
  bits += odd << 63;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The largest of `most` and the bits of magnitudes, by lanes; NaN is larger than all. */
static inline i32x4 larger_size(i32x4 most, f32x4 v) {
  i32x4 size = (i32x4)f32x4_magnitude(v), more = size > most;
  return (size & more) | (most & ~more);
}

static inline bool is_within(i32x4 most, float limit) {
  i32x4 beyond = most > f32_to_bits(limit);
  return !(beyond[0] | beyond[1] | beyond[2] | beyond[3]);
}

/* Whether all are within [-limit, limit]. */
static bool all_within(const float *x, size_t n, float limit) {
  i32x4 most = {0};
  for (const float *end = x + n; x < end; x += LANES)
    FOUR_VECTORS most = larger_size(most, f32x4_load(x + l));
  return is_within(most, limit);
}

/* --- relu: max(x, 0), where -0 and NaN stay; several vectors at a time, as there is so little
 * to do --- */

void value_relu_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  const f32x4 below = f32x4_splat(-1.40129846e-45f);
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  (void)k, (void)s;
  for (size_t i = 0; i < (n & ~(size_t)(LANES - 1)); i += LANES)
    UNROLLED for (size_t l = 0; l < LANES; l += 4) {
      f32x4 v = f32x4_load(x + i + l);
      f32x4_store(y + i + l, (f32x4)((i32x4)v & ~(v <= below)));
    }
}

/* --- hardtanh, clamp: NaN stays, be it the value or a bound --- */

/* k: the bounds. */
void value_hardtanh_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  const f32x4 low = f32x4_splat((float)k[0]), high = f32x4_splat((float)k[1]);
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1], *end = x + n;
  (void)s;
  if (isnan(k[0]) || isnan(k[1])) {
    EACH(n) y[i] = isnan(k[0]) ? low[0] : high[0];
    return;
  }
  for (; x < end; x += LANES, y += LANES)
    FOUR_VECTORS f32x4_store(y + l, f32x4_smaller(f32x4_larger(f32x4_load(x + l), low), high));
}

/* --- fmod: in double a quotient below 2^28, its product with b and the rest are exact --- */

#define QUOTIENT_FAR 268435456.0

/* Writes the remainders to s->wide; true if all quotients are near. */
static NOINLINE bool divide_near(const float *a, const float *b, size_t n, LoopScratch *s) {
  const double far = QUOTIENT_FAR;
  int64_t limit, below = -1;
  memcpy(&limit, &far, sizeof limit);
  VECTOR_LOOP for (size_t i = 0; i < n; i++) {
    double x = (double)a[i], whole = trunc(x / (double)b[i]), rest = x - whole * (double)b[i];
    int64_t bits;
    memcpy(&bits, &whole, sizeof bits);
    below &= (bits & INT64_MAX) - limit;
    s->wide[i] = whole == 0 ? x : rest;
  }
  return below < 0;
}

const float *value_fmod_part_f32(const float *a, const float *b, size_t n, size_t *m,
                                 LoopScratch *s) {
  size_t size = *m = part_size(0, n);
  bool near = divide_near(a, b, size, s);
  narrow(s->part[0], size, s);
  EACH(size) s->part[0][i] = copysign_f32(s->part[0][i], a[i]);
  for (size_t i = 0; !near && i < size; i++)
    if (!(fabs((double)a[i] / (double)b[i]) < QUOTIENT_FAR)) s->part[0][i] = fmodf(a[i], b[i]);
  return s->part[0];
}

/* --- exp: the power in two factors, for subnormal and infinite results --- */

void value_exp_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  static const float limit[4] = {-104.5f, 89.5f, TO_INTEGER(0), 1};
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  (void)k;
  for (size_t at = 0, m; at < n; at += m) {
    m = part_size(at, n);
    reduce(x + at, m, limit, s);
    EACH(m) {
      int32_t whole = f32_to_bits(s->part[1][i]) - f32_to_bits(limit[2]), half = whole >> 1;
      y[at + i] = (expm1_part(s, i) + 1) * bits_to_f32((half + 127) * 8388608) *
                  bits_to_f32((whole - half + 127) * 8388608);
    }
  }
}

/* --- sigmoid: 1 / (1 + e), e = exp(-z), and functions made of it --- */

/* SCALE multiplies the sum, so that subnormal results come from a division. Beyond the limits
 * sigmoid is 1 or 0. */
enum { BELOW = 30 };
#define SCALE 9.31322575e-10f
static const volatile float logistic_limit[2] = {-108.8f, 40};

/* Fills part[0] with z + k log 2, and part[1] with k - BELOW in the low bits as the exponent of a
 * float. */
static inline void reduce_logistic(LoopScratch *s, float z, size_t i, float low, float high) {
  const float to_integer = TO_INTEGER(-BELOW);
  float v = z < low ? low : z;
  v = high < v ? high : v;
  float shifted = to_integer - v * 1.44269504f, whole = shifted - to_integer;
  s->part[0][i] = (v + whole * 0.693145752f) + whole * 1.42860677e-6f;
  s->part[1][i] = shifted;
}

/* Since tanh(r / 2) = q / p for |r| <= log(2) / 2, e = 2^k n / m with n = p - q, m = p + q needs no
 * division of its own. p is such that m and n stay just below a power of 2, where rounding is
 * finest; n is computed from m, so that both lose the same. */
static inline float sigmoid_part(const LoopScratch *s, size_t i) {
  float r = s->part[0][i], square = r * r, p = 106.5f + 10.65f * square,
        q = r * (53.25f + 0.8875f * square), m = p + q;
  float scaled = m * SCALE;
  return scaled / (scaled + (m - (q + q)) * power_of(s->part[1][i]));
}

/* v / (1 + e); for v < cut 0, or NaN for infinity. Keeps the numerator and the quotient from being
 * subnormal. */
static inline float ratio_part(const LoopScratch *s, size_t i, float v, float cut) {
  float power = power_of(s->part[1][i]),
        sum = power + (power * expm1_of_rest(-s->part[0][i]) + SCALE), one = v < cut ? 0 : SCALE;
  bool far = magnitude(v) > 1e-18f;
  return one * (far ? v : 1) / sum * (far ? 1 : v);
}

/* A loop over blocks: reduces z, an expression of x as v, then computes VALUE. */
#define LOGISTIC(name, operand, Z, VALUE)                                \
  void name(char *const *p, size_t n, const double *k, LoopScratch *s) { \
    const float low = logistic_limit[0], high = logistic_limit[1];       \
    float *y = (float *)(void *)p[0];                                    \
    const float *x = (const float *)(const void *)p[operand],            \
                *g = (const float *)(const void *)p[1];                  \
    (void)k, (void)g;                                                    \
    for (size_t at = 0, m; at < n; at += m, x += m, y += m, g += m) {    \
      m = part_size(at, n);                                              \
      EACH(m) {                                                          \
        float v = x[i];                                                  \
        reduce_logistic(s, Z, i, low, high);                             \
      }                                                                  \
      EACH(m) {                                                          \
        float v = x[i];                                                  \
        (void)v;                                                         \
        y[i] = VALUE;                                                    \
      }                                                                  \
    }                                                                    \
  }

/* The argument of the sigmoid in gelu by tanh, since x (1 + tanh t) / 2 = x sigmoid(2 t); and x
 * times its derivative. */
#define GELU_Z(v) ((v) * (1.59576912f + 0.0713548163f * ((v) * (v))))
#define GELU_Z_SLOPE(v) ((v) * (1.59576912f + 0.214064449f * ((v) * (v))))
/* (x sigmoid(z))' = s + s (1 - s) x z' */
static inline float slope(float s, float rest) { return s + s * ((1 - s) * rest); }

static LOGISTIC(sigmoid_far, 1, v, sigmoid_part(s, i))
LOGISTIC(value_silu_f32, 1, v, ratio_part(s, i, v, -108.8f))
LOGISTIC(value_gelu_tanh_f32, 1, GELU_Z(v), ratio_part(s, i, v, -11.5f))
LOGISTIC(grad_silu_f32, 2, v, g[i] * slope(sigmoid_part(s, i), v))
LOGISTIC(grad_gelu_tanh_f32, 2, GELU_Z(v), g[i] * slope(sigmoid_part(s, i), GELU_Z_SLOPE(v)))
/* sigmoid needs neither limits nor a scale if no |x| of a block is above SIGMOID_NEAR; the bits
 * are the same. */
#define SIGMOID_NEAR 80

/* part[0] = x + k log 2, part[1] its square, part[2] = k as the number to add to a float's bits to
 * multiply it by 2^k. */
static NOINLINE bool reduce_sigmoid(const float *x, size_t n, LoopScratch *s) {
  const float to_integer = 12582912.0f, *end = x + n;
  float *rest = s->part[0];
  i32x4 most = {0};
  for (; x < end; x += LANES, rest += LANES) FOUR_VECTORS {
      f32x4 v = f32x4_load(x + l), shifted = to_integer - v * 1.44269504f,
            whole = shifted - to_integer;
      f32x4 r = (v + whole * 0.693145752f) + whole * 1.42860677e-6f;
      most = larger_size(most, v);
      f32x4_store(rest + l, r);
      f32x4_store(rest + PART + l, r * r);
      f32x4_store(rest + 2 * PART + l, (f32x4)((i32x4)shifted << 23));
    }
  return is_within(most, SIGMOID_NEAR);
}

/* sigmoid_part without a scale, after reduce_sigmoid. */
static NOINLINE void sigmoid_near(float *y, size_t n, const LoopScratch *s) {
  const float *rest = s->part[0], *end = rest + n;
  for (; rest < end; y += LANES, rest += LANES) FOUR_VECTORS {
      f32x4 square = f32x4_load(rest + PART + l), p = 106.5f + 10.65f * square;
      f32x4 q = f32x4_load(rest + l) * (53.25f + 0.8875f * square), m = p + q;
      f32x4_store(y + l,
                  m / (m + (f32x4)((i32x4)(m - (q + q)) + (i32x4)f32x4_load(rest + 2 * PART + l))));
    }
}

void value_sigmoid_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  for (size_t at = 0, m; at < n; at += m, x += m, y += m) {
    m = part_size(at, n);
    if (reduce_sigmoid(x, m, s)) {
      sigmoid_near(y, m, s);
      TOOK(SIGMOID_NEAR);
    } else sigmoid_far((char *const[]){(char *)y, (char *)(uintptr_t)x}, m, k, s);
  }
}

/* --- softplus, log sigmoid: max(z, 0) + log(1 + e), e = exp(-|z|), corrected for the rounding of e
 * and of the sum --- */

/* part[0] = log(1 + exp(-|factor x|)) */
static NOINLINE void soft_part(const float *x, size_t n, float factor, LoopScratch *s) {
  static const float limit[4] = {-104.5f, 0, 12582912.0f, 1};
  EACH(n) s->part[2][i] = -magnitude(x[i] * factor);
  reduce(s->part[2], n, limit, s);
  EACH(n) {
    int32_t whole = f32_to_bits(s->part[1][i]) - 0x4b400000, half = whole >> 1;
    float some = bits_to_f32((half + 127) * 8388608),
          rest = bits_to_f32((whole - half + 127) * 8388608);
    float more = expm1_part(s, i), sum = 1 + more, e = sum * some * rest, u = 1 + e;
    s->part[0][i] = u;
    s->part[1][i] = (e - (u - 1)) + (more - (sum - 1)) * some * rest;
  }
  EACH(n) s->part[0][i] = log_sum_f32(s->part[0][i], s->part[1][i]);
}

/* k: beta, and the threshold of beta x above which the result is x. */
void value_softplus_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  const float factor = (float)k[0], threshold = (float)k[1];
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  for (size_t at = 0, m; at < n; at += m, x += m, y += m) {
    m = part_size(at, n);
    soft_part(x, m, factor, s);
    EACH(m) {
      float v = x[i], z = v * factor, soft = (relu_f32(z) + s->part[0][i]) / factor;
      y[i] = z > threshold ? v : soft;
    }
  }
}

void value_logsigmoid_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  (void)k;
  for (size_t at = 0, m; at < n; at += m, x += m, y += m) {
    m = part_size(at, n);
    soft_part(x, m, 1, s);
    EACH(m) y[i] = -relu_f32(-x[i]) - s->part[0][i];
  }
}

/* --- mish: x n / (n + 1), n = e + e^2 / 2, e = exp(x), corrected for its rounding --- */

void value_mish_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  static const float limit[4] = {-104.5f, 20, 12582912.0f, 1};
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  (void)k;
  for (size_t at = 0, m; at < n; at += m, x += m, y += m) {
    m = part_size(at, n);
    reduce(x, m, limit, s);
    EACH(m) {
      int32_t whole = f32_to_bits(s->part[1][i]) - 0x4b400000, half = whole >> 1;
      float some = bits_to_f32((half + 127) * 8388608),
            rest = bits_to_f32((whole - half + 127) * 8388608);
      float more = expm1_part(s, i), sum = 1 + more, e = sum * some * rest;
      float lost = (more - (sum - 1)) * some * rest;
      float both = e + (0.5f * e * e + lost * (1 + e)), above = both + 1, share = both / above;
      share -= share * ((both - (above - 1)) / above);
      y[i] = x[i] * (both < 0.5f ? both - both * share : share);
    }
  }
}

/* --- tanh: a polynomial up to 0.9, 1 - 2 / (exp(2 |x|) + 1) beyond --- */

void value_tanh_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  static const volatile float limit = 21;
  const float high_limit = limit, to_integer = TO_INTEGER(0);
  const float *x = (const float *)(const void *)p[1];
  float *y = (float *)(void *)p[0];
  (void)k;
  for (size_t at = 0, m; at < n; at += m, x += m, y += m) {
    m = part_size(at, n);
    EACH(m) {
      float v = magnitude(x[i]) * 2;
      v = high_limit < v ? high_limit : v;
      float shifted = v * 1.44269504f + to_integer, whole = shifted - to_integer;
      s->part[0][i] = (v - whole * 0.693145752f) - whole * 1.42860677e-6f;
      s->part[1][i] = shifted;
    }
    EACH(m) {
      float power = power_of(s->part[1][i]);
      s->part[0][i] = 1 - 2 / ((power + 1) + power * expm1_part(s, i));
    }
    for (size_t i = 0; i < m; i += LANES) FOUR_VECTORS {
        f32x4 v = f32x4_load(x + i + l), t = f32x4_magnitude(v), z = t * t, square = z * z;
        f32x4 high = ((0.00252761273f * z - 0.0082083717f) - 0.000434485526f * square) * square +
                     (0.0216355864f * z - 0.0539223589f);
        f32x4 small = t + t * z * ((high * z + 0.133329004f) * z - 0.333333194f);
        f32x4_store(y + i + l, choose_signed(t > 0.9f, f32x4_load(s->part[0] + i + l), small, v));
      }
  }
}

/* --- erf: a polynomial up to ERF_NEAR, 1 - exp(a polynomial that is log erfc) up to 4, where it
 * is 1 --- */

#define ERF_NEAR 1.01f

void value_erf_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  static const float limit[4] = {-18, 0, TO_INTEGER(0), 1};
  const float *x = (const float *)(const void *)p[1];
  float *y = (float *)(void *)p[0];
  (void)k;
  for (size_t at = 0, m; at < n; at += m, x += m, y += m) {
    m = part_size(at, n);
    EACH(m) {
      float v = magnitude(x[i]), u = v > 4 ? 4.00000048f : v, square = u * u;
      float high = (0.000211143953f * u - 0.00319129229f) * u + 0.0228131972f;
      s->part[2][i] = ((high * u - 0.105140544f) * square + (-0.635811746f * u - 1.12848628f)) * u;
    }
    reduce(s->part[2], m, limit, s);
    EACH(m) {
      float power = power_of(s->part[1][i]);
      s->part[0][i] = (1 - power) - power * expm1_part(s, i);
    }
    for (size_t i = 0; i < m; i += LANES) FOUR_VECTORS {
        f32x4 v = f32x4_load(x + i + l), z = v * v - 0.5f;
        f32x4 high = (7.85052252e-5f * z - 0.000565581373f) * (z * z) +
                     (0.00348018087f * z - 0.018283302f);
        f32x4 small = v + v * (((high * z + 0.0794100091f) * z - 0.281072199f) * z - 0.0345312618f);
        f32x4_store(y + i + l, choose_signed(f32x4_magnitude(v) > ERF_NEAR,
                                             f32x4_load(s->part[0] + i + l), small, v));
      }
  }
}

/* --- gelu: x Phi(x) --- */

/* For |x| < 2: Phi(x) = (x + 2) / 4 + x r with r a polynomial in w = 4 - x^2: near -2 both terms
 * are small, like Phi. `gelu` holds for each vector of x: w, its square, (x + 2) / 4 and the upper
 * half of r. */

/* Whether all |x| are below 2: a test of one bit of each. Tests two at a time in the integer
 * units, which are idle here. */
static NOINLINE bool gelu_begin(const float *x, size_t n, LoopScratch *s) {
  uint64_t bits = 0, pairs[2];
  float *to = s->gelu;
  for (const float *end = x + n; x < end; x += LANES, to += 4 * LANES) FOUR_VECTORS {
      memcpy(pairs, x + l, sizeof pairs);
      bits |= pairs[0] | pairs[1];
      f32x4 v = f32x4_load(x + l), above = v + 2, w = above * (2 - v), square = w * w;
      f32x4_store(to + 4 * l, w);
      f32x4_store(to + 4 * l + 4, square);
      f32x4_store(to + 4 * l + 8, 0.25f * above);
      f32x4_store(to + 4 * l + 12,
                  (w + 4.69577122f) * (1.53183333e-08f * square + 1.95068469e-06f) +
                      1.42783138e-05f);
    }
  return !(bits & 0x4000000040000000);
}

static NOINLINE void gelu_near(float *y, const float *x, size_t n, const LoopScratch *s) {
  const float *from = s->gelu;
  for (const float *end = x + n; x < end; x += LANES, y += LANES, from += 4 * LANES) FOUR_VECTORS {
      f32x4 v = f32x4_load(x + l), w = f32x4_load(from + 4 * l),
            square = f32x4_load(from + 4 * l + 4);
      f32x4 high = (0.00264008436f + 0.000268993608f * w) + square * f32x4_load(from + 4 * l + 12);
      f32x4_store(y + l, v * (f32x4_load(from + 4 * l + 8) +
                              v * ((0.0230792519f * w - 0.0113750659f) + square * high)));
    }
}

/* The t from which on Phi(-t) is 0. */
#define GELU_FAR 14.4f
static inline float clamp_to_far(float t) {
  int32_t bits = f32_to_bits(t), most = f32_to_bits(GELU_FAR);
  return bits_to_f32(bits < most ? bits : most);
}

/* Reduces exp(-x^2 / 2) to r and k as `reduce` does. Squares a head, whose square is exact, apart
 * from the rest. */
static NOINLINE void reduce_gauss(const float *x, size_t n, LoopScratch *s) {
  const float to_integer = TO_INTEGER(24);
  EACH(n) {
    float t = clamp_to_far(magnitude(x[i])), head = bits_to_f32(f32_to_bits(t) & -4096),
          rest = (t - head) * (t + head);
    float square = head * head, shifted = square * -0.721347520f + to_integer,
          whole = shifted - to_integer;
    s->part[0][i] = -0.5f * ((square + whole * 1.38629150f) + (whole * 2.85721354e-6f + rest));
    s->part[1][i] = shifted;
  }
}

/* Phi(-t) exp(t^2 / 2), the numerator and the denominator. */
static inline float tail_above(float t, float square) {
  return ((0.004093311f * square + (0.0404784581f * t + 0.182776253f)) * square) +
         (0.437675836f * t + 0.500000003f);
}
static inline float tail_below(float t, float square) {
  float high = (0.0102602841f * t + 0.101471108f) * square + (0.468259117f * t + 1.20059756f);
  return high * square + (1.67323664f * t + 1);
}

/* gelu for |x| >= 2: the power times a polynomial in 1 / |x| that is |x| Phi(-|x|) exp(x^2 / 2). */
static NOINLINE void gelu_far(float *y, const float *x, size_t n, LoopScratch *s) {
  reduce_gauss(x, n, s);
  EACH(n) {
    float v = x[i], u = 1 / clamp_to_far(magnitude(v)), square = u * u;
    float high = (0.655124009f * u - 3.05534434f) * square + (5.50501442f * u - 5.09542418f);
    float low = (2.38783097f * u - 0.167426899f) * u - 0.384836167f;
    float above = ((high * square * u + low) * u - 0.000651969109f) * u + 0.398954898f;
    y[i] = relu_f32(v) -
           (above + above * expm1_part(s, i)) * power_of(s->part[1][i]) * 5.96046448e-8f;
  }
}

/* Collects the elements with |x| >= 2, which are few, to be computed apart. */
static size_t gelu_pick_far(const float *x, size_t n, LoopScratch *s) {
  size_t far = 0;
  for (size_t i = 0; i < n; i += 64) {
    uint64_t found = 0;
    for (size_t l = 0; l < 64 && i + l < n; l += 4)
      found |= (uint64_t)i32x4_signs((i32x4)f32x4_load(x + i + l) << 1) << l;
    for (; found; found &= found - 1) {
      s->places[far] = (uint16_t)(i + (size_t)__builtin_ctzll(found));
      s->part[2][far] = x[s->places[far]];
      far++;
    }
  }
  return far;
}

void value_gelu_erf_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  (void)k;
  for (size_t at = 0, m; at < n; at += m, x += m, y += m) {
    m = part_size(at, n);
    size_t far = gelu_begin(x, m, s) ? 0 : gelu_pick_far(x, m, s);
    gelu_near(y, x, m, s);
    if (far) gelu_far(s->part[2], s->part[2], (far + LANES - 1) & ~(size_t)(LANES - 1), s);
    else TOOK(GELU_NEAR);
    for (size_t i = 0; i < far; i++) y[s->places[i]] = s->part[2][i];
  }
}

/* Phi(x) + x phi(x) - 1/2 is odd: y = g times the slope, by a polynomial in x^2 about 8, where |x|
 * <= GELU_SLOPE_NEAR. */
#define GELU_SLOPE_NEAR 4
static NOINLINE void gelu_slope_near(float *y, const float *g, const float *x, size_t n) {
  for (const float *end = x + n; x < end; x += LANES, g += LANES, y += LANES) FOUR_VECTORS {
      f32x4 v = f32x4_load(x + l), u = v * v - 8, square = u * u, fourth = square * square;
      f32x4 low = (0.183256656f - 0.0141935972f * u) +
                  square * (0.00178734201f - 0.000224249205f * u);
      f32x4 middle = (2.45241245e-05f - 2.2818117e-06f * u) +
                     square * (1.82472618e-07f - 1.27672672e-08f * u);
      f32x4 high = (7.74768805e-10f - 3.99592477e-11f * u) +
                   square * (2.10263252e-12f - 1.28783309e-13f * u) + fourth * 4.61981214e-15f;
      f32x4_store(y + l,
                  f32x4_load(g + l) * (0.5f + v * (low + fourth * (middle + fourth * high))));
    }
}

static void gelu_slope_far(float *y, const float *g, const float *x, size_t n, LoopScratch *s) {
  reduce_gauss(x, n, s);
  EACH(n) s->part[0][i] = (expm1_part(s, i) + 1) * power_of(s->part[1][i]) * 5.96046448e-8f;
  EACH(n) {
    float v = x[i], t = clamp_to_far(magnitude(v)), square = t * t, e = s->part[0][i];
    float q = e * tail_above(t, square) / tail_below(t, square);
    y[i] = g[i] * ((v < 0 ? q : 1 - q) + v * (e * 0.398942280f));
  }
}

/* gx = g (Phi(x) + x phi(x)). */
void grad_gelu_erf_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  float *y = (float *)(void *)p[0];
  const float *g = (const float *)(const void *)p[1], *x = (const float *)(const void *)p[2];
  (void)k;
  for (size_t at = 0, m; at < n; at += m, x += m, y += m, g += m) {
    m = part_size(at, n);
    if (all_within(x, m, GELU_SLOPE_NEAR)) {
      gelu_slope_near(y, g, x, m);
      TOOK(GELU_SLOPE_NEAR);
      continue;
    }
    gelu_slope_near(s->part[2], g, x, m);
    gelu_slope_far(s->part[1], g, x, m, s);
    EACH(m) y[i] = magnitude(x[i]) <= GELU_SLOPE_NEAR ? s->part[2][i] : s->part[1][i];
  }
}

/* --- sin, cos: (-1)^k sin(x - (k - half) pi), in double, where nothing is lost up to WAVE_FAR
 * --- */

#define WAVE_FAR 1048576.0f

static NOINLINE void wave(float *y, const float *x, size_t n, double half, LoopScratch *s) {
  const double to_integer = 6755399441055744.0;
  VECTOR_LOOP for (size_t i = 0; i < n; i++) {
    double v = (double)x[i], shifted = (v * 0.31830988618379067 + half) + to_integer,
           whole = (shifted - to_integer) - half;
    double r = (v - whole * 3.141592653468251228333) - whole * 1.2154201013012385203e-10, z = r * r;
    double q = ((-2.3909484881421009e-8 * z + 2.7526633205780076e-6) * z - 0.00019840894402839792) *
                   z +
               0.0083333313259610812;
    s->wide[i] = flip_if_odd(r * ((q * z - 0.16666666631792487) * z + 1), shifted);
  }
  narrow(y, n, s);
}

/* y = sin or cos of x; for a gradient, factor g times that. */
static void waves(char *const *p, size_t n, double half, const float *x, float factor,
                  LoopScratch *s) {
  float *y = (float *)(void *)p[0];
  const float *g = (const float *)(const void *)p[1];
  bool times_g = x != g;
  for (size_t at = 0, m; at < n; at += m, x += m, y += m, g += m) {
    m = part_size(at, n);
    bool near = all_within(x, m, WAVE_FAR);
    if (!near) memcpy(s->part[1], x, m * sizeof *x);
    wave(times_g ? s->part[0] : y, x, m, half, s);
    for (size_t i = 0; !near && i < m; i++)
      if (!(magnitude(s->part[1][i]) <= WAVE_FAR))
        (times_g ? s->part[0] : y)[i] = half == 0 ? sinf(s->part[1][i]) : cosf(s->part[1][i]);
    if (times_g) EACH(m) y[i] = g[i] * (s->part[0][i] * factor);
  }
}

#define WAVE(name, half, operand, factor)                                  \
  void name(char *const *p, size_t n, const double *k, LoopScratch *s) {   \
    (void)k;                                                               \
    waves(p, n, half, (const float *)(const void *)p[operand], factor, s); \
  }
WAVE(value_sin_f32, 0, 1, 1)
WAVE(value_cos_f32, 0.5, 1, 1)
WAVE(grad_sin_f32, 0.5, 2, 1)
WAVE(grad_cos_f32, 0, 2, -1)

/* --- sinh, cosh: with x = k log 2 + r both are (2^k e^r -+ 2^-k e^-r) / 2, e^r by its even part
 * and r and the rest of the odd one --- */

/* 2^k or, where that is subnormal, 0. */
static inline float power_or_none(int32_t k) {
  return bits_to_f32((k < -127 ? 0 : k + 127) * 8388608);
}

/* VALUE of f, the function of |x|. Includes the rounding errors of r and of BY_EVEN. */
#define HYPERBOLIC(fn, operand, BY_EVEN, BY_ODD, LOST, VALUE)                                     \
  void fn(char *const *p, size_t n, const double *k, LoopScratch *s) {                            \
    static const volatile float limit = 89.5f;                                                    \
    const float high_limit = limit, to_integer = TO_INTEGER(0);                                   \
    float *y = (float *)(void *)p[0];                                                             \
    const float *x = (const float *)(const void *)p[operand],                                     \
                *g = (const float *)(const void *)p[1];                                           \
    (void)k, (void)g;                                                                             \
    for (size_t m; n; n -= m, x += m, y += m, g += m) {                                           \
      m = part_size(0, n);                                                                        \
      EACH(m) {                                                                                   \
        float v = magnitude(x[i]);                                                                \
        v = high_limit < v ? high_limit : v;                                                      \
        float shifted = v * 1.44269504f + to_integer, whole = shifted - to_integer;               \
        float head = v - whole * 0.693145752f, tail = whole * 1.42860677e-6f, r = head - tail;    \
        s->part[0][i] = r;                                                                        \
        s->part[1][i] = shifted;                                                                  \
        s->part[2][i] = (head - r) - tail;                                                        \
      }                                                                                           \
      EACH(m) {                                                                                   \
        int32_t whole = f32_to_bits(s->part[1][i]) - f32_to_bits(to_integer);                     \
        float r = s->part[0][i], square = r * r, up = power_or_none(whole - 2),                   \
              down = power_or_none(-whole - 2);                                                   \
        float odd = s->part[2][i] +                                                               \
                    r * square * (0.166666667f + square * (0.00833333333f + square * 0.000199f)); \
        float even = square * (0.5f + square * (0.0416666667f + square * 0.00139f));              \
        float sum = up + down, difference = up - down;                                            \
        float f = 2 * (BY_EVEN + (BY_ODD * r + (BY_EVEN * even + (BY_ODD * odd + (LOST)))));      \
        y[i] = VALUE;                                                                             \
      }                                                                                           \
    }                                                                                             \
  }
#define SUM_LOST down - (sum - up)
#define DIFFERENCE_LOST (up - difference) - down
HYPERBOLIC(value_sinh_f32, 1, difference, sum, DIFFERENCE_LOST,
           magnitude(x[i]) < 1e-4f ? x[i] : copysign_f32(f, x[i]))
HYPERBOLIC(value_cosh_f32, 1, sum, difference, SUM_LOST, f)
HYPERBOLIC(grad_sinh_f32, 2, sum, difference, SUM_LOST, g[i] * f)
HYPERBOLIC(grad_cosh_f32, 2, difference, sum, DIFFERENCE_LOST, g[i] * copysign_f32(f, x[i]))

/* --- functions computed in double: loops over blocks for values, and for gradients g times a slope
 * --- */

#ifdef __clang__
#define PAIRS _Pragma("clang loop vectorize(assume_safety) vectorize_width(2) interleave_count(1)")
#else
#define PAIRS VECTOR_LOOP
#endif

/* A loop over blocks: ARGUMENT of the operands a and b, then its function as a separate pass, then
 * RESULT of that function's value v and of the operands. */
#define WIDE_HEAD(fn, operands)                                        \
  void fn(char *const *p, size_t n, const double *k, LoopScratch *s) { \
    float *y = (float *)(void *)p[0];                                  \
    const float *first = (const float *)(const void *)p[1],            \
                *second = (const float *)(const void *)p[operands];    \
    (void)k, (void)second;                                             \
    for (size_t m; n; n -= m, y += m, first += m, second += m) {       \
      m = part_size(0, n);
#define WIDE_LOOP_OF(VALUE)                                             \
  PAIRS for (size_t i = 0; i < m; i++) {                                \
    double a = (double)first[i], b = (double)second[i], v = s->wide[i]; \
    (void)a, (void)b, (void)v;                                          \
    s->wide[i] = VALUE;                                                 \
  }
#define WIDE_TAIL  \
  narrow(y, m, s); \
  }                \
  }
#define WIDE_VALUE(name, operands, ARGUMENT, pass, RESULT) \
  WIDE_HEAD(value_##name##_f32, operands)                  \
  WIDE_LOOP_OF(ARGUMENT) pass(m, s);                       \
  WIDE_LOOP_OF(RESULT) WIDE_TAIL
/* g times the slope at b, the operand that the gradient keeps. */
#define WIDE_GRAD(name, SLOPE)    \
  WIDE_HEAD(grad_##name##_f32, 2) \
  WIDE_LOOP_OF(a *(SLOPE)) WIDE_TAIL
#define WIDE_PASS(name)                                                        \
  static NOINLINE void name##_pass(size_t n, LoopScratch *s) {                 \
    PAIRS for (size_t i = 0; i < n; i++) s->wide[i] = wide_##name(s->wide[i]); \
  }
WIDE_PASS(atan)
WIDE_PASS(log)
WIDE_VALUE(atan, 1, a, atan_pass, v)
WIDE_VALUE(asin, 1, a / sqrt((1 - a) * (1 + a)), atan_pass, v)
WIDE_VALUE(acos, 1, sqrt((1 - a) / (1 + a)), atan_pass, 2 * v)
WIDE_VALUE(atan2, 2, wide_incline(a, b), atan_pass, wide_angle(a, b, v))
WIDE_VALUE(asinh, 1, fabs(a) + sqrt(a * a + 1), log_pass,
           fabs(a) < WIDE_TINY ? a * (1 - a * a * (1.0 / 6)) : copysign(v, a))
WIDE_VALUE(acosh, 1, a >= 1 ? a + sqrt((a - 1) * (a + 1)) : NAN, log_pass, v)
WIDE_VALUE(atanh, 1, (1 + a) / (1 - a), log_pass,
           fabs(a) < WIDE_TINY ? a + a * (a * a) * (1.0 / 3) : 0.5 * v)
WIDE_GRAD(asin, 1 / sqrt(1 - b * b))
WIDE_GRAD(acos, -1 / sqrt(1 - b * b))
WIDE_GRAD(atan, 1 / (b * b + 1))
WIDE_GRAD(asinh, 1 / sqrt(b * b + 1))
WIDE_GRAD(acosh, 1 / sqrt(b * b - 1))
WIDE_GRAD(atanh, 1 / (1 - b * b))
WIDE_GRAD(tan, 1 + b * b)
static WIDE_HEAD(tan_near, 1)
WIDE_LOOP_OF(wide_tan(a))
WIDE_TAIL

void value_tan_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  for (size_t m; n; n -= m, x += m, y += m) {
    m = part_size(0, n);
    bool near = all_within(x, m, WAVE_FAR);
    if (!near) memcpy(s->part[1], x, m * sizeof *x);
    tan_near((char *const[]){(char *)y, (char *)(uintptr_t)x}, m, k, s);
    for (size_t i = 0; !near && i < m; i++)
      if (!(magnitude(s->part[1][i]) <= WAVE_FAR)) y[i] = tanf(s->part[1][i]);
  }
}

/* --- rows of softmax and its kin: exp(x - shift), no x above shift --- */

/* a < b ? b : a by lanes, as one instruction. */
static inline f32x4 larger(f32x4 a, f32x4 b) {
  i32x4 less = a < b;
  return (f32x4)(((i32x4)b & less) | ((i32x4)a & ~less));
}

static inline void reduce_vector(f32x4 x, f32x4 low, f32x4 shift, float *rest, float *power) {
  f32x4 v = larger(x - shift, low), shifted = v * 1.44269504f + TO_INTEGER(0),
        whole = shifted - TO_INTEGER(0);
  f32x4_store(rest, (v - whole * 0.693145752f) - whole * 1.42860677e-6f);
  f32x4_store(power, shifted);
}

/* limits[0]: exp_down_limit; limits[1]: the shift. Compares the difference with the limit, because
 * the shift plus the limit rounds to the shift if that is large. The pointers move because
 * Cranelift computes each address anew unless the offset is a constant. The loop also takes the
 * maximum of the next row, but for its last n % 4 elements: else it would only wait for memory. */
static NOINLINE f32x4 reduce_down(const float *x, size_t n, const float *next, f32x4 most,
                                  LoopScratch *s) {
  const f32x4 low = s->limits[0], shift = s->limits[1];
  float *rest = s->part[0], *power = s->part[1];
  const float *end = x + (n & ~(size_t)15);
  for (; x < end; x += 16, rest += 16, power += 16, next += 16)
    UNROLLED for (int l = 0; l < 16; l += 4) {
      reduce_vector(f32x4_load(x + l), low, shift, rest + l, power + l);
      most = larger(most, f32x4_load(next + l));
    }
  for (end = x + (n & 12); x < end; x += 4, rest += 4, power += 4, next += 4) {
    reduce_vector(f32x4_load(x), low, shift, rest, power);
    most = larger(most, f32x4_load(next));
  }
  f32x4 last = shift;
  for (size_t l = 0; l < (n & 3); l++) last[l] = x[l];
  if (n & 3) reduce_vector(last, low, shift, rest, power);
  return most;
}

/* exp of four elements of the parts, with the arithmetic of exp_down. */
static inline f32x4 exp_vector(const float *rest, const float *power) {
  f32x4 r = f32x4_load(rest), square = r * r;
  f32x4 q = (0.00138145597f * r + 0.00836873558f) * square + (0.0416683899f * r + 0.166665205f);
  return ((square * (q * r + 0.499999934f) + r) + 1) * (f32x4)((i32x4)f32x4_load(power) << 23);
}

static inline float sum_of_lanes(f32x4 v) { return (v[0] + v[1]) + (v[2] + v[3]); }

static inline float most_of_lanes(f32x4 v) {
  float low = v[0] < v[1] ? v[1] : v[0], high = v[2] < v[3] ? v[3] : v[2];
  return low < high ? high : low;
}

float value_exp_row_f32(float *y, const float *x, size_t n, float shift, LoopScratch *s,
                        const float *next) {
  s->limits[0] = f32x4_splat(exp_down_limit), s->limits[1] = f32x4_splat(shift);
  f32x4 most = f32x4_splat(-INFINITY);
  float total = 0;
  for (size_t at = 0, m; at < n; at += m) {
    m = part_size(at, n);
    most = reduce_down(x + at, m, next + at, most, s);
    f32x4 sum = {0};
    float *to = y ? y + at : s->part[2];
    const float *rest = s->part[0], *power = s->part[1], *end = rest + (m & ~(size_t)7);
    for (; rest < end; rest += 8, power += 8, to += 8) UNROLLED for (int l = 0; l < 8; l += 4) {
        f32x4 e = exp_vector(rest + l, power + l);
        sum += e;
        f32x4_store(to + l, e);
      }
    for (size_t l = m & 7; l; l -= l < 4 ? l : 4, rest += 4, power += 4, to += 4) {
      f32x4 e = exp_vector(rest, power);
      for (size_t k = 0; k < 4; k++)
        if (k < l) to[k] = e[k];
        else e[k] = 0;
      sum += e;
    }
    total += sum_of_lanes(sum);
  }
  float next_most = most_of_lanes(most);
  for (size_t i = n & ~(size_t)3; i < n; i++) next_most = next_most < next[i] ? next[i] : next_most;
  s->next_most = next_most;
  return total;
}

void value_subtract_exp_row_f32(float *y, const float *g, const float *x, size_t n, float factor,
                                LoopScratch *s) {
  s->limits[0] = f32x4_splat(exp_down_limit), s->limits[1] = f32x4_splat(0);
  for (size_t at = 0, m; at < n; at += m) {
    m = part_size(at, n);
    reduce_down(x + at, m, x + at, s->limits[1], s);
    const float *rest = s->part[0], *power = s->part[1], *end = rest + (m & ~(size_t)7);
    for (; rest < end; rest += 8, power += 8, g += 8, y += 8)
      UNROLLED for (int l = 0; l < 8; l += 4)
          f32x4_store(y + l, f32x4_load(g + l) - exp_vector(rest + l, power + l) * factor);
    for (size_t l = m & 7; l; l -= l < 4 ? l : 4, rest += 4, power += 4, g += 4, y += 4) {
      f32x4 e = exp_vector(rest, power) * factor;
      for (size_t k = 0; k < 4 && k < l; k++) y[k] = g[k] - e[k];
    }
  }
}

/* NaN may be passed over or stay. */
float value_max_row_f32(const float *x, size_t n) {
  f32x4 most[4];
  float result = -INFINITY;
  const float *end = x + (n & ~(size_t)15);
  UNROLLED for (size_t l = 0; l < 4; l++) most[l] = f32x4_splat(result);
  for (; x < end; x += 16)
    UNROLLED for (size_t l = 0; l < 4; l++) most[l] = larger(most[l], f32x4_load(x + 4 * l));
  most[0] = larger(larger(most[0], most[1]), larger(most[2], most[3]));
  result = most_of_lanes(most[0]);
  for (end = x + (n & 15); x < end; x++) result = result < *x ? *x : result;
  return result;
}

/* The loops of float that people wait for: exp, sigmoid, tanh, erf, gelu and its gradient, relu, rows of softmax.
 *
 * A processor looks ahead some hundred instructions, which is less than the chain of one exponential, so a chain
 * is cut into passes over blocks that stay in the first-level cache. Each element's bits follow from that element
 * alone: where a whole block allows a shorter way, the shorter way is what each of its elements would take among
 * others too. Stated errors, in units in the last place, proven by tests/test_accuracy.py: exp 1,
 * tanh 1.1, erf and sigmoid 1.5, gelu 6 (near -2 PyTorch's has 38, and beyond -6 no digit). */
#include "transcendental.h"

#include <stdint.h>
#include <string.h>

#include "elementwise.h"
#include "lanes.h"
#include "paths.h"
#include "simd.h"

#define NOINLINE __attribute__((noinline))
#define EACH(n) FLAT_FOR_float for (size_t i = 0; i < (n); i++)

enum { PART = 256 };

const float exp_down_limit = -88;

static _Alignas(16) float part[3][PART];

/* The elements of a block that begins at `at`; a multiple of LANES. */
static size_t part_size(size_t at, size_t n) { return n - at < PART ? n - at : PART; }

static inline float magnitude(float x) { return bits_to_f32(f32_to_bits(x) & INT32_MAX); }

/* 2^k for a float that ends in the bits of 127 + k: what else was in the bits is shifted out. */
static inline float power_of(float shifted) { return bits_to_f32((int32_t)((uint32_t)f32_to_bits(shifted) << 23)); }

/* Adding it rounds to an integer in the low bits, where it stands as the exponent of a float, plus `bias`. */
#define TO_INTEGER(bias) (12582912.0f + 127 + (bias))

/* exp(r) - 1 for |r| <= log(2) / 2. */
static inline float expm1_of_rest(float r) {
  float square = r * r, q = (0.00138145597f * r + 0.00836873558f) * square + (0.0416683899f * r + 0.166665205f);
  return square * (q * r + 0.499999934f) + r;
}
static inline float expm1_part(size_t i) { return expm1_of_rest(part[0][i]); }

/* x = k log 2 + r: part[0] = r, and part[1] ends in the bits of k. NaN stays. The limits are no constants, so that
 * they become one instruction that minds neither zeros nor NaN. limit: low, high, TO_INTEGER, and a factor for x within them. */
static NOINLINE void reduce(const float *x, size_t n, const float *limit) {
  const float low = limit[0], high = limit[1], to_integer = limit[2], factor = limit[3];
  EACH(n) {
    float v = x[i] < low ? low : x[i];
    v = (high < v ? high : v) * factor;
    float shifted = v * 1.44269504f + to_integer, whole = shifted - to_integer;
    part[0][i] = (v - whole * 0.693145752f) - whole * 1.42860677e-6f;
    part[1][i] = shifted;
  }
}

/* Whether all of a block are within [-limit, limit]. */
static NOINLINE bool all_within(const float *x, size_t n, float limit) {
  int32_t most = 0;
  EACH(n) {
    int32_t size = f32_to_bits(x[i]) & INT32_MAX;
    most = size > most ? size : most;
  }
  return most <= f32_to_bits(limit);
}

/* --- relu: max(x, 0), where -0 and NaN stay; several vectors at a time, as there is so little to do --- */

void value_relu_f32(char *const *p, size_t n, const double *k) {
  const f32x4 below = f32x4_splat(-1.40129846e-45f);
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  (void)k;
  for (size_t i = 0; i < (n & ~(size_t)(LANES - 1)); i += LANES)
    UNROLLED for (size_t l = 0; l < LANES; l += 4) {
      f32x4 v = f32x4_load(x + i + l);
      f32x4_store(y + i + l, (f32x4)((i32x4)v & ~(v <= below)));
    }
}

/* --- exp: the power in two factors, for subnormal and infinite results --- */

void value_exp_f32(char *const *p, size_t n, const double *k) {
  static const float limit[4] = {-104.5f, 89.5f, TO_INTEGER(0), 1};
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  (void)k;
  for (size_t at = 0, m; at < n; at += m) {
    m = part_size(at, n);
    reduce(x + at, m, limit);
    EACH(m) {
      int32_t whole = f32_to_bits(part[1][i]) - f32_to_bits(limit[2]), half = whole >> 1;
      y[at + i] = (expm1_part(i) + 1) * bits_to_f32((half + 127) * 8388608) * bits_to_f32((whole - half + 127) * 8388608);
    }
  }
}

/* --- sigmoid: 1 / (1 + exp(-x)), above and below 2^-24, so that what is subnormal comes from the division --- */

void value_sigmoid_f32(char *const *p, size_t n, const double *k) {
  static const float limit[4] = {-104.5f, 70, TO_INTEGER(-24), -1};
  const float one = 5.96046448e-8f;
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  (void)k;
  for (size_t at = 0, m; at < n; at += m) {
    m = part_size(at, n);
    reduce(x + at, m, limit);
    EACH(m) {
      float power = power_of(part[1][i]);
      y[at + i] = one / (power + (power * expm1_part(i) + one));
    }
  }
}

/* --- tanh: a polynomial up to 0.68, 1 - 2 / (exp(2 |x|) + 1) beyond --- */

void value_tanh_f32(char *const *p, size_t n, const double *k) {
  static const float limit[4] = {0, 10.5f, TO_INTEGER(0), 2};
  const float *x = (const float *)(const void *)p[1];
  float *y = (float *)(void *)p[0];
  (void)k;
  for (size_t at = 0, m; at < n; at += m, x += m, y += m) {
    m = part_size(at, n);
    EACH(m) part[2][i] = magnitude(x[i]);
    reduce(part[2], m, limit);
    EACH(m) {
      float power = power_of(part[1][i]), above = (power + 1) + power * expm1_part(i);
      float v = magnitude(x[i]), z = v * v, square = z * z;
      float q = (0.133330252f * z - 0.333333259f) + square * ((0.0215915493f * z - 0.0539254054f) + square * (0.00192808331f * z - 0.00792572685f));
      y[i] = copysign_f32(v > 0.68f ? 1 - 2 / above : v + v * z * q, x[i]);
    }
  }
}

/* --- erf: a polynomial up to 1, 1 - exp(a polynomial that is log erfc) up to 4, where it is 1 --- */

void value_erf_f32(char *const *p, size_t n, const double *k) {
  static const float limit[4] = {-18, 0, TO_INTEGER(0), 1};
  const float *x = (const float *)(const void *)p[1];
  float *y = (float *)(void *)p[0];
  (void)k;
  for (size_t at = 0, m; at < n; at += m, x += m, y += m) {
    m = part_size(at, n);
    EACH(m) {
      float v = magnitude(x[i]), u = v > 4 ? 4.00000048f : v, square = u * u;
      float high = (0.000185574191f * u - 0.00293960903f) * u + 0.0218053251f;
      part[2][i] = ((high * u - 0.103037382f) * square + (-0.638225662f * u - 1.12704005f)) * u - 0.000353717325f;
    }
    reduce(part[2], m, limit);
    EACH(m) part[0][i] = 1 - (expm1_part(i) + 1) * power_of(part[1][i]);
    EACH(m) {
      float v = x[i], z = v * v, square = z * z;
      float low = (-0.0268635839f * z + 0.112837498f) * square + (-0.376126363f * z + 0.128379167f);
      float high = (-8.44764909e-6f * z + 0.000108080215f) * square + (-0.000841651467f * z + 0.00521609446f);
      float small = v + v * (high * (square * square) + low);
      y[i] = magnitude(v) > 1.0f ? copysign_f32(part[0][i], v) : small;
    }
  }
}

/* --- gelu: x Phi(x); with q = Phi(-|x|), max(x, 0) - |x| q --- */

/* q by a polynomial about |x| = 2 if |x| <= 2. */
static NOINLINE void gelu_near(float *y, const float *x, size_t n) {
  EACH(n) {
    float v = x[i], t = magnitude(v), u = 2 - t, square = u * u, fourth = square * square;
    float low = (0.0269506801f * u + 0.0539958114f) * square + (0.0539907714f * u + 0.0227501332f);
    float high = (-0.000854331677f * u - 0.000555083161f) * square + (-0.00277047558f * u + 0.00470320647f);
    float q = ((-6.96929715e-5f * u + 0.000514242803f) * fourth + high) * fourth + low;
    y[i] = relu_f32(v) - t * q;
  }
}

/* Where Phi(-t) is 0. */
#define GELU_FAR 14.4f
static inline float up_to_far(float t) {
  int32_t bits = f32_to_bits(t), most = f32_to_bits(GELU_FAR);
  return bits_to_f32(bits < most ? bits : most);
}

/* part[0] = 2^24 exp(-x^2 / 2). The square is taken of a head whose square is exact and of the rest. */
static NOINLINE void gauss(const float *x, size_t n) {
  const float to_integer = TO_INTEGER(24);
  EACH(n) {
    float t = up_to_far(magnitude(x[i])), head = bits_to_f32(f32_to_bits(t) & -4096), rest = (t - head) * (t + head);
    float square = head * head, shifted = square * -0.721347520f + to_integer, whole = shifted - to_integer;
    part[0][i] = -0.5f * ((square + whole * 1.38629150f) + (whole * 2.85721354e-6f + rest));
    part[1][i] = shifted;
  }
  EACH(n) part[0][i] = (expm1_part(i) + 1) * power_of(part[1][i]);
}

/* Phi(-t) exp(t^2 / 2), the numerator and the denominator. */
static inline float tail_above(float t, float square) {
  return ((0.004093311f * square + (0.0404784581f * t + 0.182776253f)) * square) + (0.437675836f * t + 0.500000003f);
}
static inline float tail_below(float t, float square) {
  float high = (0.0102602841f * t + 0.101471108f) * square + (0.468259117f * t + 1.20059756f);
  return high * square + (1.67323664f * t + 1);
}

static void gelu_far(float *y, const float *x, size_t n) {
  gauss(x, n);
  EACH(n) {
    float v = x[i], t = up_to_far(magnitude(v)), square = t * t;
    float tail = t * part[0][i] * tail_above(t, square) / tail_below(t, square);
    y[i] = relu_f32(v) - tail * 5.96046448e-8f;
  }
}

/* Blocks all of whose elements are within [-2, 2] need no exponential; in others each element takes its own way. */
void value_gelu_erf_f32(char *const *p, size_t n, const double *k) {
  float *y = (float *)(void *)p[0];
  const float *x = (const float *)(const void *)p[1];
  (void)k;
  for (size_t at = 0, m; at < n; at += m, x += m, y += m) {
    m = part_size(at, n);
    if (all_within(x, m, 2)) {
      gelu_near(y, x, m);
      TOOK(GELU_NEAR);
      continue;
    }
    gelu_near(part[2], x, m);
    gelu_far(part[0], x, m);
    EACH(m) y[i] = magnitude(x[i]) <= 2 ? part[2][i] : part[0][i];
  }
}

/* gx = g (Phi(x) + x phi(x)). */
void grad_gelu_erf_f32(char *const *p, size_t n, const double *k) {
  float *y = (float *)(void *)p[0];
  const float *g = (const float *)(const void *)p[1], *x = (const float *)(const void *)p[2];
  (void)k;
  for (size_t at = 0, m; at < n; at += m, x += m, y += m, g += m) {
    m = part_size(at, n);
    gauss(x, m);
    EACH(m) {
      float v = x[i], t = up_to_far(magnitude(v)), square = t * t, e = part[0][i] * 5.96046448e-8f;
      float q = e * tail_above(t, square) / tail_below(t, square);
      y[i] = g[i] * ((v < 0 ? q : 1 - q) + v * (e * 0.398942280f));
    }
  }
}

/* --- rows of softmax and its kin: exp(x - shift), no x above shift --- */

/* a < b ? b : a by lanes, as one instruction. */
static inline f32x4 larger(f32x4 a, f32x4 b) {
  i32x4 less = a < b;
  return (f32x4)(((i32x4)b & less) | ((i32x4)a & ~less));
}

static inline void reduce_vector(f32x4 x, f32x4 low, f32x4 shift, float *rest, float *power) {
  f32x4 v = larger(x, low) - shift, shifted = v * 1.44269504f + TO_INTEGER(0), whole = shifted - TO_INTEGER(0);
  f32x4_store(rest, (v - whole * 0.693145752f) - whole * 1.42860677e-6f);
  f32x4_store(power, shifted);
}

/* limits[0]: the shift and exp_down_limit, which moves with it, so that it is compared with what is loaded; limits[1]:
 * the shift. Cranelift adds up each address anew, but for a constant: so the pointers move. Of the row that is next the
 * maximum is taken on the way, by lanes but for the rest of four, where there is little to do but to wait for memory. */
static NOINLINE f32x4 reduce_down(const float *x, size_t n, const f32x4 *limits, const float *next, f32x4 most) {
  const f32x4 low = limits[0], shift = limits[1];
  float *rest = part[0], *power = part[1];
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

/* exp of four elements of the parts, as exp_down has it. */
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

float exp_row_f32(float *y, const float *x, size_t n, float shift, const float *next, float *next_most) {
  const f32x4 limits[2] = {f32x4_splat(shift + exp_down_limit), f32x4_splat(shift)};
  f32x4 most = f32x4_splat(-INFINITY);
  float total = 0;
  for (size_t at = 0, m; at < n; at += m) {
    m = part_size(at, n);
    most = reduce_down(x + at, m, limits, next + at, most);
    f32x4 sum = {0};
    float *to = y ? y + at : part[2];
    const float *rest = part[0], *power = part[1], *end = rest + (m & ~(size_t)7);
    for (; rest < end; rest += 8, power += 8, to += 8)
      UNROLLED for (int l = 0; l < 8; l += 4) {
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
  *next_most = most_of_lanes(most);
  for (size_t i = n & ~(size_t)3; i < n; i++) *next_most = *next_most < next[i] ? next[i] : *next_most;
  return total;
}

void subtract_exp_row_f32(float *y, const float *g, const float *x, size_t n, float factor) {
  const f32x4 limits[2] = {f32x4_splat(exp_down_limit), f32x4_splat(0)};
  for (size_t at = 0, m; at < n; at += m) {
    m = part_size(at, n);
    reduce_down(x + at, m, limits, x + at, limits[1]);
    const float *rest = part[0], *power = part[1], *end = rest + (m & ~(size_t)7);
    for (; rest < end; rest += 8, power += 8, g += 8, y += 8)
      UNROLLED for (int l = 0; l < 8; l += 4) f32x4_store(y + l, f32x4_load(g + l) - exp_vector(rest + l, power + l) * factor);
    for (size_t l = m & 7; l; l -= l < 4 ? l : 4, rest += 4, power += 4, g += 4, y += 4) {
      f32x4 e = exp_vector(rest, power) * factor;
      for (size_t k = 0; k < 4 && k < l; k++) y[k] = g[k] - e[k];
    }
  }
}

/* NaN is passed over, or stays. */
float max_row_f32(const float *x, size_t n) {
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

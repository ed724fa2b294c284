/* mt19937 and torch's fills, from the words upwards.
 *
 * Equal to torch 2.13 on x86-64 (AVX2, FMA) to the bit: the state, uniform, bernoulli, geometric,
 * random_, randint, randperm, multinomial, exponential, and blocked normal in float32. float32
 * results that torch rounds from double (serial normal, cauchy, log_normal) are equal but for
 * one in some 2^30. In float64, log, sin, cos, tan and exp are correctly rounded here; torch
 * asks the host's libm, so of its normal, cauchy and log_normal values 2 in 1000 are off (normal
 * with mean 0: 3 ulp at worst seen).
 *
 * torch's compiler fuses some multiplications and additions; this file spells those out and is
 * built without contraction, so all builds agree. Only fma, sqrt and ceil come from libm, and all
 * three are exact by definition. A torch that draws from MKL (bernoulli_(p) on Intel CPUs) has
 * another stream. */
#include "kernels/rng.h"

#include <math.h>

#include "ground/inline.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* ---- the generator ---- */

enum { MT_SHIFT = 397, CHUNK = 256 };

void rng_seed(Rng *r, uint64_t seed) {
  *r = (Rng){.left = 1, .seed = seed};
  r->words[0] = (uint32_t)seed;
  for (uint32_t i = 1; i < RNG_STATE_WORDS; i++) {
    uint32_t before = r->words[i - 1];
    r->words[i] = UINT32_C(1812433253) * (before ^ (before >> 30)) + i;
  }
}

static inline uint32_t twist(uint32_t high, uint32_t low, uint32_t far) {
  uint32_t mixed = (high & UINT32_C(0x80000000)) | (low & UINT32_C(0x7fffffff));
  return far ^ (mixed >> 1) ^ (UINT32_C(0x9908b0df) & (0 - (low & 1)));
}

/* Renews the state in place: each word from its right neighbour and the word MT_SHIFT further
 * on. */
static void renew(Rng *r) {
  enum { N = RNG_STATE_WORDS, BACK = RNG_STATE_WORDS - MT_SHIFT };
  uint32_t *w = r->words;
  for (int i = 0; i < BACK; i++) w[i] = twist(w[i], w[i + 1], w[i + MT_SHIFT]);
  for (int i = BACK; i < N - 1; i++) w[i] = twist(w[i], w[i + 1], w[i - BACK]);
  w[N - 1] = twist(w[N - 1], w[0], w[MT_SHIFT - 1]);
  r->next = 0;
  r->left = N + 1;
}

static inline uint32_t temper(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & UINT32_C(0x9d2c5680);
  y ^= (y << 15) & UINT32_C(0xefc60000);
  return y ^ (y >> 18);
}

uint32_t rng_u32(Rng *r) {
  if (r->left == 1) renew(r);
  r->left--;
  return temper(r->words[r->next++]);
}

uint64_t rng_u64(Rng *r) {
  uint64_t high = rng_u32(r);
  return high << 32 | rng_u32(r);
}

/* The next min(n, CHUNK) 32-bit draws; returns how many. */
static NOINLINE int64_t draw32(Rng *r, uint32_t out[CHUNK], int64_t n) {
  int m = n < CHUNK ? (int)n : CHUNK;
  for (int done = 0; done < m;) {
    if (r->left == 1) renew(r);
    int run = m - done < r->left - 1 ? m - done : r->left - 1;
    const uint32_t *from = r->words + r->next;
    for (int i = 0; i < run; i++) out[done + i] = temper(from[i]);
    r->next += (uint32_t)run;
    r->left -= run;
    done += run;
  }
  return m;
}

/* The next 64-bit draws, at most n and CHUNK / 2; returns how many. */
static NOINLINE int64_t draw64(Rng *r, uint64_t out[CHUNK], int64_t n) {
  uint32_t words[CHUNK];
  int64_t m = draw32(r, words, n < CHUNK / 2 ? 2 * n : CHUNK) / 2;
  for (int64_t i = 0; i < m; i++) out[i] = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
  return m;
}

/* ---- the state as bytes ----
 * Seed, left, seeded, next, the words in 64 bits each, normal x, y, rho and valid, float sample and
 * valid. x and rho are unused, and zero. */

enum {
  AT_SEED = 0,
  AT_LEFT = 8,
  AT_SEEDED = 12,
  AT_NEXT = 16,
  AT_WORDS = 24,
  AT_F64 = 5024,
  AT_HAS_F64 = 5040,
  AT_F32 = 5048,
  AT_HAS_F32 = 5052
};

typedef union {
  double value;
  uint64_t bits;
} Bits64;
typedef union {
  float value;
  uint32_t bits;
} Bits32;

static NOINLINE void put(uint8_t *at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value |= (uint64_t)at[i] << (8 * i);
  return value;
}

void rng_state_export(const Rng *r, uint8_t bytes[RNG_STATE_BYTES]) {
  for (int i = 0; i < RNG_STATE_BYTES; i++) bytes[i] = 0;
  put(bytes + AT_SEED, r->seed, 8);
  put(bytes + AT_LEFT, (uint32_t)r->left, 4);
  put(bytes + AT_SEEDED, 1, 4);
  put(bytes + AT_NEXT, r->next, 8);
  for (int i = 0; i < RNG_STATE_WORDS; i++) put(bytes + AT_WORDS + 8 * i, r->words[i], 8);
  if (r->has_spare_f64) {
    put(bytes + AT_F64, (Bits64){.value = r->spare_f64}.bits, 8);
    put(bytes + AT_HAS_F64, 1, 4);
  }
  if (r->has_spare_f32) {
    put(bytes + AT_F32, (Bits32){.value = r->spare_f32}.bits, 4);
    put(bytes + AT_HAS_F32, 1, 1);
  }
}

bool rng_state_import(Rng *r, const uint8_t bytes[RNG_STATE_BYTES]) {
  uint32_t left = (uint32_t)get(bytes + AT_LEFT, 4);
  uint32_t next = (uint32_t)get(bytes + AT_NEXT, 8);
  bool counts = left >= 1 && left <= RNG_STATE_WORDS && next <= RNG_STATE_WORDS &&
                next + left <= RNG_STATE_WORDS + 1;
  if (!counts || get(bytes + AT_SEEDED, 4) == 0) return false;
  *r = (Rng){.next = next, .left = (int32_t)left, .seed = get(bytes + AT_SEED, 8)};
  for (int i = 0; i < RNG_STATE_WORDS; i++)
    r->words[i] = (uint32_t)get(bytes + AT_WORDS + 8 * i, 8);
  r->has_spare_f64 = get(bytes + AT_HAS_F64, 4) != 0;
  r->has_spare_f32 = bytes[AT_HAS_F32] != 0;
  r->spare_f64 = r->has_spare_f64 ? (Bits64){.bits = get(bytes + AT_F64, 8)}.value : 0;
  r->spare_f32 = r->has_spare_f32 ? (Bits32){.bits = (uint32_t)get(bytes + AT_F32, 4)}.value : 0;
  return true;
}

/* ---- uniform ---- */

/* The low 24 (53) bits of a draw, as a number in [0, 1). */
static inline float unit32(uint32_t word) {
  return (float)(int32_t)(word & UINT32_C(0xffffff)) * 0x1p-24f;
}

static inline double unit64(uint64_t word) {
  return (double)(int64_t)(word & UINT64_C(0x1fffffffffffff)) * 0x1p-53;
}

/* a * b + c rounded once. The sum in double is rounded to odd, which leaves the second rounding, to
 * float, nothing to get wrong. */
static inline float fused32(float a, float b, float c) {
  double product = (double)a * (double)b, sum = product + (double)c;
  double back = sum - product, lost = (product - (sum - back)) + ((double)c - back);
  Bits64 odd = {.value = sum};
  if ((lost > 0 || lost < 0) && (odd.bits & 1) == 0)
    odd.bits += (lost > 0) == (sum > 0) ? 1 : UINT64_MAX;
  return (float)odd.value;
}

/* Rounding may carry a value up to `to`, which is outside: torch puts `from` in its place. */
void rng_uniform_f32(Rng *r, float *out, int64_t n, double from, double to) {
  const float low = (float)from, high = (float)to, width = high - low;
  uint32_t w[CHUNK];
  for (int64_t m; n > 0; n -= m, out += m) {
    m = draw32(r, w, n);
    for (int64_t i = 0; i < m; i++) {
      float value = low == 0 ? unit32(w[i]) * width : fused32(unit32(w[i]), width, low);
      out[i] = value == high ? low : value;
    }
  }
}

void rng_uniform_f64(Rng *r, double *out, int64_t n, double from, double to) {
  const double width = to - from;
  uint64_t w[CHUNK];
  for (int64_t m; n > 0; n -= m, out += m) {
    m = draw64(r, w, n);
    for (int64_t i = 0; i < m; i++) {
      double value = from == 0 ? unit64(w[i]) * width + from : fma(unit64(w[i]), width, from);
      out[i] = value == to ? from : value;
    }
  }
}

/* ---- functions of doubles ----
 * Sums hi + lo of two doubles carry some 105 bits, enough to round log, sin, cos, tan and exp
 * correctly but for about one argument in 10^8. Each reduces its argument until a short Taylor
 * series will do: its first terms in double-double, the rest in double. */

typedef struct {
  double hi, lo;
} Dd;

/* a + b exactly, where |a| >= |b| or a is 0. */
static inline Dd dd_ordered(double a, double b) {
  double sum = a + b;
  return (Dd){sum, b - (sum - a)};
}

static inline Dd dd_sum(double a, double b) {
  double sum = a + b, back = sum - a;
  return (Dd){sum, (a - (sum - back)) + (b - back)};
}

/* a * b exactly: the halves of 26 bits multiply without rounding. |a|, |b| < 2^990. */
static inline Dd dd_product(double a, double b) {
  double at = a * 0x1.0000002p27, bt = b * 0x1.0000002p27;
  double ah = at - (at - a), bh = bt - (bt - b), al = a - ah, bl = b - bh;
  double product = a * b;
  return (Dd){product, ((ah * bh - product) + ah * bl + al * bh) + al * bl};
}

static inline Dd dd_add(Dd a, Dd b) {
  Dd high = dd_sum(a.hi, b.hi), low = dd_sum(a.lo, b.lo);
  high = dd_ordered(high.hi, high.lo + low.hi);
  return dd_ordered(high.hi, high.lo + low.lo);
}

/* a + b, where |a| >= 2 |b| or a is 0; cheaper than dd_add. */
static inline Dd dd_plus(Dd a, Dd b) {
  Dd high = dd_ordered(a.hi, b.hi);
  return dd_ordered(high.hi, high.lo + (a.lo + b.lo));
}

static inline Dd dd_mul(Dd a, Dd b) {
  Dd product = dd_product(a.hi, b.hi);
  return dd_ordered(product.hi, product.lo + (a.hi * b.lo + a.lo * b.hi));
}

static inline Dd dd_negate(Dd a) { return (Dd){-a.hi, -a.lo}; }

/* a * b + c with one rounding, but for sums within 2^-50 of their last place of a tie. */
static inline double fused64(double a, double b, double c) {
  Dd product = dd_product(a, b), sum = dd_sum(product.hi, c);
  return sum.hi + (sum.lo + product.lo);
}

/* c[0] + x (c[1] + x (c[2] + ...)) of n coefficients, in double. */
static inline double horner(double x, const double *c, int n) {
  double sum = c[n - 1];
  for (int i = n - 2; i >= 0; i--) sum = sum * x + c[i];
  return sum;
}

enum { LOG_STEP = 32, LOG_FIRST = 23, TRIG_STEP = 16 };
/* -log(k / 32), k = 23 .. 45. */
static const Dd log_table[] = {
    {0x1.522ae0738a3d8p-2, -0x1.8f7e9b38a6979p-57},
    {0x1.269621134db92p-2, 0x1.e0efadd9db02bp-56},
    {0x1.f991c6cb3b379p-3, 0x1.f665066f980a2p-57},
    {0x1.a93ed3c8ad9e3p-3, 0x1.bcafa9de97203p-57},
    {0x1.5bf406b543db2p-3, -0x1.1f5b44c0df7e7p-61},
    {0x1.1178e8227e47cp-3, -0x1.0e63a5f01c691p-58},
    {0x1.9335e5d594989p-4, -0x1.478a85704ccb7p-58},
    {0x1.08598b59e3a07p-4, -0x1.dd7009902bf32p-58},
    {0x1.0415d89e74444p-5, 0x1.c05cf1d753622p-59},
    {0.0, 0.0},
    {-0x1.f829b0e7833p-6, -0x1.33e3f04f1ef23p-60},
    {-0x1.f0a30c01162a6p-5, -0x1.85f325c5bbacdp-59},
    {-0x1.6f0d28ae56b4cp-4, 0x1.906d99184b992p-58},
    {-0x1.e27076e2af2e6p-4, 0x1.61578001e0162p-60},
    {-0x1.29552f81ff523p-3, -0x1.301771c407dbfp-57},
    {-0x1.5ff3070a793d4p-3, 0x1.bc60efafc6f6ep-58},
    {-0x1.9525a9cf456b4p-3, -0x1.d904c1d4e2e26p-57},
    {-0x1.c8ff7c79a9a22p-3, 0x1.4f689f8434012p-57},
    {-0x1.fb9186d5e3e2bp-3, 0x1.caaae64f21acbp-57},
    {-0x1.1675cababa60ep-2, -0x1.ce63eab883717p-61},
    {-0x1.2e8e2bae11d31p-2, 0x1.8f4cdb95ebdf9p-56},
    {-0x1.4618bc21c5ec2p-2, -0x1.f42decdeccf1dp-56},
    {-0x1.5d1bdbf5809cap-2, -0x1.4236383dc7fe1p-56},
};

/* sin and cos of k / 16, k = 0 .. 13. */
static const Dd trig_table[][2] = {
    {{0.0, 0.0}, {0x1.0p+0, 0.0}},
    {{0x1.ffaaaeeed4edbp-5, -0x1.2d16d32684b69p-59}, {0x1.ff0015549f4d3p-1, 0x1.328387b99426fp-55}},
    {{0x1.feaaeee86ee36p-4, -0x1.afcb2bcc6f03bp-59}, {0x1.fc015527d5bd3p-1, 0x1.b68f35094efb8p-55}},
    {{0x1.7dc102fbaf2b5p-3, 0x1.5ab50e23c97c3p-59}, {0x1.f706bdf9ece1cp-1, -0x1.698c80c36dcb4p-55}},
    {{0x1.faaeed4f31577p-3, -0x1.15d88508e32b8p-57}, {0x1.f01549f7deea1p-1, 0x1.d3c1e99e5cafdp-55}},
    {{0x1.3ad129769d3d8p-2, 0x1.03d550487839ap-63}, {0x1.e733ea0193d4p-1, -0x1.6428b3546ce13p-55}},
    {{0x1.7710255764214p-2, -0x1.6ead7314bb6cep-57}, {0x1.dc6b7eb995912p-1, 0x1.4b364776dcd35p-58}},
    {{0x1.b1d8305321617p-2, -0x1.ae242cb99f519p-56}, {0x1.cfc6cfa52ad9fp-1, 0x1.8b5b5508f2a0dp-55}},
    {{0x1.eaee8744b05fp-2, -0x1.789b43c9b027dp-58}, {0x1.c1528065b7d5p-1, -0x1.892111312e828p-55}},
    {{0x1.110d0c4b69c3bp-1, 0x1.d918998809981p-55}, {0x1.b11d04162a4c6p-1, 0x1.1dd561efbc0c2p-56}},
    {{0x1.2b91dea88421ep-1, -0x1.fa371db216abp-55}, {0x1.9f368ed912f85p-1, -0x1.1d200c5791606p-55}},
    {{0x1.44eb381cf386bp-1, -0x1.3ed6c1e6a5505p-55}, {0x1.8bb105a5dc9p-1, 0x1.863e03e9474c1p-55}},
    {{0x1.5cffc16bf8f0dp-1, 0x1.96cb370eb578ap-55}, {0x1.769fec655211fp-1, -0x1.827d5cf8c68c5p-57}},
    {{0x1.73b7680dea578p-1, -0x1.2248306dc12a2p-56}, {0x1.6018526f563dfp-1, 0x1.46ca5e0e432dp-55}},
};

/* log 2 and pi / 2 in parts, the first ones short, so that small multiples of them are exact. */
#define LN2_HI 0x1.62e42fefa38p-1
#define LN2_LO 0x1.ef35793c7673p-45
#define HALF_PI_HI 0x1.921fb54442d18p+0
#define HALF_PI_MID 0x1.1a62633145cp-54
#define HALF_PI_LO 0x1.b839a252049c1p-104
#define PI 0x1.921fb54442d18p+1

static const Dd third = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
static const Dd fifth = {0x1.999999999999ap-3, -0x1.999999999999ap-57};
static const Dd sixth = {0x1.5555555555555p-3, 0x1.5555555555555p-57};

/* A normal x > 0 as m 2^k with m in [sqrt(1/2), sqrt(2)), the bound cut to 20 bits. */
static inline double split(double x, int *k) {
  Bits64 m = {.value = x};
  *k = (int)(m.bits >> 52) - 1023;
  m.bits = (m.bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1023) << 52;
  if (m.value >= 0x1.6a09ep0) {
    ++*k;
    return m.value * 0.5;
  }
  return m.value;
}

/* log x of a normal x > 0, or of 0. log x = k log 2 - log c + log(1 + f), with m c = 1 + f. */
static double log_of(double x) {
  static const double tail[] = {-1.0 / 6,  1.0 / 7,  -1.0 / 8,  1.0 / 9,  -1.0 / 10, 1.0 / 11,
                                -1.0 / 12, 1.0 / 13, -1.0 / 14, 1.0 / 15, -1.0 / 16};
  if (x == 0) return -INFINITY;
  int k;
  double m = split(x, &k);
  int c = (int)(LOG_STEP / m + 0.5);
  Dd product = dd_product(m, c);
  Dd f = dd_ordered((product.hi - LOG_STEP) / LOG_STEP, product.lo / LOG_STEP);
  const Dd head[] = {{1, 0}, {-0.5, 0}, third, {-0.25, 0}, fifth};
  Dd sum = {horner(f.hi, tail, 11), 0};
  for (int i = 4; i >= 0; i--) sum = dd_plus(head[i], dd_mul(sum, f));
  sum = dd_plus(log_table[c - LOG_FIRST], dd_mul(sum, f));
  return dd_plus(dd_ordered(k * LN2_HI, k * LN2_LO), sum).hi;
}

/* sin and cos of x in [0, 2 pi]: x = q pi / 2 + k / 16 + d, the last two by the addition
 * theorem. */
static void sincos_of(double x, Dd *sine, Dd *cosine) {
  static const double sin_tail[] = {1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
                                    1.0 / 6227020800};
  static const double cos_tail[] = {-1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600,
                                    -1.0 / 87178291200};
  int q = (int)(x * 0x1.45f306dc9c883p-1 + 0.5);
  Dd rest = dd_add(dd_sum(x, -q * HALF_PI_HI), dd_sum(-q * HALF_PI_MID, -q * HALF_PI_LO));
  bool below = rest.hi < 0;
  rest = below ? dd_negate(rest) : rest;
  int k = (int)(rest.hi * TRIG_STEP + 0.5);
  Dd d = dd_add(rest, (Dd){-(double)k / TRIG_STEP, 0}), d2 = dd_mul(d, d);

  Dd s = dd_plus(dd_negate(sixth), (Dd){d2.hi * horner(d2.hi, sin_tail, 5), 0});
  s = dd_plus(d, dd_mul(dd_mul(d, d2), s));
  Dd c = dd_plus((Dd){sixth.hi / 4, sixth.lo / 4}, (Dd){d2.hi * horner(d2.hi, cos_tail, 5), 0});
  c = dd_plus((Dd){-0.5, 0}, dd_mul(d2, c));
  c = dd_plus((Dd){1, 0}, dd_mul(d2, c));

  Dd ks = trig_table[k][0], kc = trig_table[k][1];
  Dd sum_s = dd_plus(dd_mul(ks, c), dd_mul(kc, s));
  Dd sum_c = dd_plus(dd_mul(kc, c), dd_negate(dd_mul(ks, s)));
  sum_s = below ? dd_negate(sum_s) : sum_s;
  *sine = q & 1 ? sum_c : sum_s;
  *cosine = q & 1 ? sum_s : sum_c;
  *sine = q & 2 ? dd_negate(*sine) : *sine;
  *cosine = (q + 1) & 2 ? dd_negate(*cosine) : *cosine;
}

/* tan of x in [-pi / 2, pi / 2]. */
static double tan_of(double x) {
  Dd s, c;
  sincos_of(x < 0 ? -x : x, &s, &c);
  double ratio = s.hi / c.hi;
  Dd back = dd_add(s, dd_negate(dd_mul(c, (Dd){ratio, 0})));
  double value = ratio + back.hi / c.hi;
  return x < 0 ? -value : value;
}

/* exp x. x = k log 2 + 64 t; exp(t) - 1 squared up six times by e -> 2 e + e e. */
static double exp_of(double x) {
  static const double tail[] = {1.0 / 24,    1.0 / 120,    1.0 / 720,    1.0 / 5040,
                                1.0 / 40320, 1.0 / 362880, 1.0 / 3628800};
  if (!(x < 710 && x > -746)) return x != x ? x : x > 0 ? INFINITY : 0;
  int k = (int)(x * 0x1.71547652b82fep+0 + (x < 0 ? -0.5 : 0.5));
  Dd t = dd_add(dd_sum(x, -k * LN2_HI), (Dd){-k * LN2_LO, 0});
  t = (Dd){t.hi / 64, t.lo / 64};
  Dd e = dd_plus(sixth, (Dd){t.hi * horner(t.hi, tail, 7), 0});
  e = dd_plus((Dd){0.5, 0}, dd_mul(t, e));
  e = dd_plus(t, dd_mul(t, dd_mul(t, e)));
  for (int i = 0; i < 6; i++) e = dd_plus((Dd){2 * e.hi, 2 * e.lo}, dd_mul(e, e));
  e = dd_plus((Dd){1, 0}, e);
  /* Two factors, for 2^k itself may be out of range where the result is not. */
  Bits64 scale = {.bits = (uint64_t)(1023 + k / 2) << 52};
  Bits64 rest = {.bits = (uint64_t)(1023 + k - k / 2) << 52};
  return e.hi * scale.value * rest.value;
}

/* log(1 - u), u in [0, 1), as glibc's log1p rounds it on a CPU with FMA: the classical reduction to
 * k log 2 + log(1 + f), with the seven coefficients of fdlibm. */
static double log1p_minus(double u) {
  if (u < 0x1p-29) return -u - 0.5 * u * u;
  double f = -u, lost = 0;
  int k = 0;
  if (u >= 0x1.2bec4p-2) {
    double v = 1 - u;
    lost = ((1 - v) - u) / v;
    f = split(v, &k) - 1;
  }
  double half = 0.5 * f * f, s = f / (2 + f), z = s * s, z2 = z * z, z4 = z2 * z2;
  double p23 = fused64(z, 0x1.2492494229359p-2, 0x1.999999997fa04p-2);
  double p45 = fused64(z, 0x1.7466496cb03dep-3, 0x1.c71c51d8e78afp-3);
  double p67 = fused64(z, 0x1.2f112df3e5244p-3, 0x1.39a09d078c69fp-3);
  double p = fused64(z4 * z2, p67, fused64(z4, p45, fused64(z, 0x1.5555555555593p-1, z2 * p23)));
  double high = k * 0x1.62e42feep-1, low = fused64(k, 0x1.a39ef35793c76p-33, lost);
  if (k == 0) return f - (half - s * (half + p));
  return high - ((half - (s * (half + p) + low)) - f);
}

/* ---- normal, one sample after the other ---- */

/* Box and Muller: two uniforms make two samples, of which the second waits in the generator. */
static double next_normal(Rng *r) {
  if (r->has_spare_f64) {
    r->has_spare_f64 = false;
    return r->spare_f64;
  }
  double turn = unit64(rng_u64(r)), u = unit64(rng_u64(r));
  double radius = sqrt(-2.0 * log1p_minus(u));
  Dd sine, cosine;
  sincos_of(2 * PI * turn, &sine, &cosine);
  r->spare_f64 = radius * sine.hi;
  r->has_spare_f64 = true;
  return radius * cosine.hi;
}

/* ---- normal, in blocks of 16: uniform j < 8 makes a radius, and j + 8 its angle ---- */

enum { BLOCK = 16, PAIRS = 8, LANES = 4 };

typedef float F4 __attribute__((vector_size(16)));
typedef uint32_t U4 __attribute__((vector_size(16)));
typedef int32_t I4 __attribute__((vector_size(16)));
typedef double D2 __attribute__((vector_size(16)));
typedef F4 F4Loose __attribute__((aligned(4), may_alias)); /* in an array of floats */
typedef struct {
  D2 low, high;
} Wide; /* four floats held as doubles */

static inline Wide widen(F4 x) {
  return (Wide){{(double)x[0], (double)x[1]}, {(double)x[2], (double)x[3]}};
}

static inline F4 narrow(Wide x) {
  return (F4){(float)x.low[0], (float)x.low[1], (float)x.high[0], (float)x.high[1]};
}

static inline Wide wide_splat(float x) {
  return (Wide){{(double)x, (double)x}, {(double)x, (double)x}};
}

/* To the precision of a float; in wasm cheaper than going there and back. */
static inline D2 round2(D2 x) {
  D2 shifted = x * 0x1.00000008p29;
  return shifted - (shifted - x);
}

/* a * b + c as torch's fused instruction rounds it. The sum rounds twice here, ties not to even;
 * that this changes no result was checked for all 2^24 uniforms: there are no other arguments. */
static inline Wide multiply_add(Wide a, Wide b, Wide c) {
  return (Wide){round2(a.low * b.low + c.low), round2(a.high * b.high + c.high)};
}

static inline Wide product(Wide a, Wide b) {
  return (Wide){round2(a.low * b.low), round2(a.high * b.high)};
}

/* c[0] x^(n - 1) + ... + c[n - 1]. */
static inline Wide fused_horner(Wide x, const float *c, int n) {
  Wide sum = wide_splat(c[0]);
  for (int i = 1; i < n; i++) sum = multiply_add(sum, x, wide_splat(c[i]));
  return sum;
}

static inline F4 select4(I4 mask, F4 yes, F4 no) {
  return (F4)(((I4)yes & mask) | ((I4)no & ~mask));
}

static inline F4 sqrt4(F4 x) { return (F4){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])}; }

/* log of u in [2^-24, 1]. The coefficients are Cephes' for logf, which torch uses: the last bit
 * hangs on them as on the order of the operations. */
static inline F4 log4(F4 u) {
  static const float c[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                            -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                            2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  F4 m = (F4)(((I4)u & 0x7fffff) | 0x3f000000);
  I4 low = m < 0.70710678f;
  F4 k = __builtin_convertvector(((I4)u >> 23) - 126 + low, F4);
  F4 x = m - 1.0f + (F4)((I4)m & low), x2 = x * x;
  Wide wx = widen(x), wp = product(fused_horner(wx, c, 9), wx);
  F4 p = narrow(multiply_add(wp, product(wx, wx), widen(k * -2.12194440e-4f))) - 0.5f * x2;
  return (x + p) + k * 0.693359375f;
}

/* sin and cos of x in [0, 2 pi), Cephes' coefficients again: x less an even number of eighths of a
 * turn, a polynomial for either function, exchanged and negated as the octant asks. */
static inline void sincos4(F4 x, F4 *sine, F4 *cosine) {
  static const float cos_c[] = {2.443315711809948e-5f, -1.388731625493765e-3f,
                                4.166664568298827e-2f};
  static const float sin_c[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
  I4 octant = (__builtin_convertvector(x * 1.27323954473516f, I4) + 1) & ~1;
  F4 k = __builtin_convertvector(octant, F4);
  x = x + k * -0.78515625f;
  x = x + k * -2.4187564849853515625e-4f;
  Wide wx = multiply_add(widen(k), wide_splat(-3.77489497744594108e-8f), widen(x)),
       x2 = product(wx, wx);
  Wide wc = product(fused_horner(x2, cos_c, 3), x2), ws = product(fused_horner(x2, sin_c, 3), x2);
  F4 c = narrow(multiply_add(wc, x2, (Wide){x2.low * -0.5, x2.high * -0.5})) + 1.0f;
  F4 s = narrow(multiply_add(ws, wx, wx));

  I4 straight = (octant & 2) == 0;
  U4 sine_sign = ((U4)octant & 4) << 29, cosine_sign = (((U4)octant + 2) & 4) << 29;
  *sine = (F4)((U4)select4(straight, s, c) ^ sine_sign);
  *cosine = (F4)((U4)select4(straight, c, s) ^ cosine_sign);
}

static void normal_block_f32(float *block, float mean, float std) {
  for (int j = 0; j < PAIRS; j += LANES) {
    F4Loose *first = (F4Loose *)(block + j), *second = (F4Loose *)(block + PAIRS + j);
    F4 radius = sqrt4(-2.0f * log4(1.0f - *first)), sine, cosine;
    sincos4((float)(2 * PI) * *second, &sine, &cosine);
    *first = radius * cosine;
    *second = radius * sine;
  }
  for (int j = 0; j < BLOCK; j++) {
    block[j] = mean == 0 ? block[j] * std + mean : fused32(block[j], std, mean);
  }
}

static void normal_block_f64(double *block, double mean, double std) {
  for (int j = 0; j < PAIRS; j++) {
    double radius = sqrt(-2 * log_of(1 - block[j]));
    Dd sine, cosine;
    sincos_of(2 * PI * block[PAIRS + j], &sine, &cosine);
    block[j] = radius * cosine.hi;
    block[PAIRS + j] = radius * sine.hi;
  }
  for (int j = 0; j < BLOCK; j++)
    block[j] = mean == 0 ? block[j] * std + mean : fma(block[j], std, mean);
}

/* All uniforms come first, then the blocks; the last 16 are drawn again if they are not a block. */
#define NORMAL_FILLS(T, C)                                                                      \
  void rng_normal_serial_##T(Rng *r, C *out, int64_t n, double mean, double std) {              \
    for (int64_t i = 0; i < n; i++) {                                                           \
      double z = next_normal(r);                                                                \
      out[i] = (C)(mean == 0 ? z * std + mean : fma(z, std, mean));                             \
    }                                                                                           \
  }                                                                                             \
  void rng_normal_##T(Rng *r, C *out, int64_t n, double mean, double std) {                     \
    if (n < BLOCK) {                                                                            \
      rng_normal_serial_##T(r, out, n, mean, std);                                              \
      return;                                                                                   \
    }                                                                                           \
    rng_uniform_##T(r, out, n, 0, 1);                                                           \
    for (int64_t i = 0; i + BLOCK <= n; i += BLOCK) normal_block_##T(out + i, (C)mean, (C)std); \
    if (n % BLOCK != 0) {                                                                       \
      rng_uniform_##T(r, out + n - BLOCK, BLOCK, 0, 1);                                         \
      normal_block_##T(out + n - BLOCK, (C)mean, (C)std);                                       \
    }                                                                                           \
  }
NORMAL_FILLS(f32, float)
NORMAL_FILLS(f64, double)

/* ---- other continuous distributions, always computed in double ---- */

static double next_exponential(double u, double lambda) { return -1.0 / lambda * log1p_minus(u); }

static double next_cauchy(double u, double median, double sigma) {
  return fma(sigma, tan_of(PI * (u - 0.5)), median);
}

#define CONTINUOUS_FILLS(T, C)                                                                  \
  void rng_exponential_##T(Rng *r, C *out, int64_t n, double lambda) {                          \
    for (int64_t i = 0; i < n; i++) out[i] = (C)next_exponential(unit64(rng_u64(r)), lambda);   \
  }                                                                                             \
  void rng_cauchy_##T(Rng *r, C *out, int64_t n, double median, double sigma) {                 \
    for (int64_t i = 0; i < n; i++) out[i] = (C)next_cauchy(unit64(rng_u64(r)), median, sigma); \
  }                                                                                             \
  void rng_log_normal_##T(Rng *r, C *out, int64_t n, double mean, double std) {                 \
    for (int64_t i = 0; i < n; i++) out[i] = (C)exp_of(fma(next_normal(r), std, mean));         \
  }
CONTINUOUS_FILLS(f32, float)
CONTINUOUS_FILLS(f64, double)

/* ---- discrete distributions ---- */

/* The next min(n, CHUNK) values of base + draw % range; range 0 stands for 2^64. Returns how
 * many. */
static NOINLINE int64_t draw_range(Rng *r, int64_t out[CHUNK], int64_t n, int64_t base,
                                   uint64_t range, bool wide) {
  if (!wide) {
    /* draw * inverse is draw / range in units of 2^-64: the fraction times range is the
     * remainder, exactly for 32 bits. */
    const uint64_t inverse = UINT64_MAX / range + 1;
    uint32_t w[CHUNK];
    int64_t m = draw32(r, w, n);
    for (int64_t i = 0; i < m; i++) {
      uint64_t left = inverse * w[i];
      out[i] = (int64_t)((((left >> 32) * range + ((left & UINT32_MAX) * range >> 32)) >> 32) +
                         (uint64_t)base);
    }
    return m;
  }
  uint64_t w[CHUNK];
  int64_t m = draw64(r, w, n);
  if ((range & (range - 1)) == 0)
    for (int64_t i = 0; i < m; i++) out[i] = (int64_t)((w[i] & (range - 1)) + (uint64_t)base);
  else
    for (int64_t i = 0; i < m; i++) out[i] = (int64_t)(w[i] % range + (uint64_t)base);
  return m;
}

/* random_ with a bound draws 64 bits as soon as the remainder of 32 would be visibly uneven. */
static inline bool range_is_wide(uint64_t range) {
  return range == 0 || range >= UINT64_C(1) << 28;
}

/* v rounded to the precision of a float with `digits` bits and back; INT64_MIN where it
 * overflows. */
static int64_t round_to_digits(int64_t v, int digits) {
  double value = digits == 24 ? (double)(float)v : (double)v;
  return value < 0x1p63 ? (int64_t)value : INT64_MIN;
}

/* The distance between `digits`-bit floats at |v|. */
static int64_t spacing(int64_t v, int digits) {
  uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
  int log2 = 63 - __builtin_clzll(size | 1);
  return (int64_t)1 << (log2 - digits + 1);
}

/* The bound itself if a float holds it, or else the next such float inside. */
static int64_t low_bound(int64_t low, int digits) {
  int64_t above = (int64_t)((uint64_t)low + 1), up = round_to_digits(above, digits);
  return up < low ? up + spacing(above, digits) : low;
}

static int64_t high_bound(int64_t high, int digits) {
  int64_t below = (int64_t)((uint64_t)high - 1), down = round_to_digits(below, digits);
  return down >= high ? down - spacing(below, digits) : high;
}

static bool randint_bounds(int64_t *low, int64_t *high, int digits) {
  *low = low_bound(*low, digits);
  *high = high_bound(*high, digits);
  return *low < *high;
}

bool rng_randint_bounds_f32(int64_t *low, int64_t *high) { return randint_bounds(low, high, 24); }

bool rng_randint_bounds_f64(int64_t *low, int64_t *high) { return randint_bounds(low, high, 53); }

static inline int64_t from_bound(int64_t low, uint64_t count) {
  bool is_f32 = count == (UINT64_C(1) << 24) + 1, is_f64 = count == (UINT64_C(1) << 53) + 1;
  return is_f32 ? low_bound(low, 24) : is_f64 ? low_bound(low, 53) : low;
}

/* u < p for u = k / 2^53 exactly when k < p 2^53. */
static inline uint64_t bernoulli_limit(double p) { return (uint64_t)ceil(p * 0x1p53); }

bool rng_bernoulli_one_f32(Rng *r, float p) { return unit32(rng_u32(r)) < p; }

bool rng_bernoulli_one_f64(Rng *r, double p) { return unit64(rng_u64(r)) < p; }

/* Converts like x86: INT64_MIN where the number of trials is out of range. */
static inline int64_t trials_as_int(double trials) {
  return trials < 0x1p63 ? (int64_t)trials : INT64_MIN;
}

#define TRIALS(C, x) (C) _Generic((C)0, float: (x), double: (x), default: trials_as_int(x))

#define DISCRETE_FILLS(T, C, WIDE_DRAW, COUNT)                                                   \
  static void range_##T(Rng *r, C *out, int64_t n, int64_t base, uint64_t range, bool wide) {    \
    int64_t v[CHUNK];                                                                            \
    for (int64_t m; n > 0; n -= m, out += m) {                                                   \
      m = draw_range(r, v, n, base, range, wide);                                                \
      for (int64_t i = 0; i < m; i++) out[i] = (C)v[i];                                          \
    }                                                                                            \
  }                                                                                              \
  void rng_random_##T(Rng *r, C *out, int64_t n) { range_##T(r, out, n, 0, COUNT, WIDE_DRAW); }  \
  void rng_randint_##T(Rng *r, C *out, int64_t n, int64_t low, int64_t high) {                   \
    uint64_t range = (uint64_t)high - (uint64_t)low;                                             \
    range_##T(r, out, n, low, range, range_is_wide(range));                                      \
  }                                                                                              \
  void rng_random_from_##T(Rng *r, C *out, int64_t n, int64_t low) {                             \
    int64_t base = low == INT64_MIN ? low : from_bound(low, COUNT);                              \
    uint64_t range = low == INT64_MIN ? 0 : (uint64_t)(COUNT) - (uint64_t)base;                  \
    range_##T(r, out, n, low == INT64_MIN ? 0 : base, range, range_is_wide(range));              \
  }                                                                                              \
  void rng_bernoulli_##T(Rng *r, C *out, int64_t n, double p) {                                  \
    const uint64_t limit = bernoulli_limit(p);                                                   \
    uint64_t w[CHUNK];                                                                           \
    for (int64_t m; n > 0; n -= m, out += m) {                                                   \
      m = draw64(r, w, n);                                                                       \
      for (int64_t i = 0; i < m; i++) out[i] = (C)((w[i] & UINT64_C(0x1fffffffffffff)) < limit); \
    }                                                                                            \
  }                                                                                              \
  void rng_geometric_##T(Rng *r, C *out, int64_t n, double p) {                                  \
    const double miss = log1p_minus(p);                                                          \
    for (int64_t i = 0; i < n; i++) out[i] = TRIALS(C, ceil(log_of(unit64(rng_u64(r))) / miss)); \
  }
RNG_DTYPES(DISCRETE_FILLS)

/* ---- permutations and multinomial ---- */

/* Fisher and Yates. Where 32 bits would be uneven torch shuffles from the inside out, with 64. */
void rng_randperm_i64(Rng *r, int64_t *out, int64_t n) {
  if (n >= (int64_t)(UINT32_MAX / 20)) {
    for (int64_t i = 0; i < n; i++) {
      int64_t at = (int64_t)(rng_u64(r) % ((uint64_t)i + 1));
      out[i] = i;
      out[i] = out[at];
      out[at] = i;
    }
    return;
  }
  for (int64_t i = 0; i < n; i++) out[i] = i;
  for (int64_t i = 0; i + 1 < n; i++) {
    int64_t at = i + (int64_t)(rng_u32(r) % (uint32_t)(n - i)), kept = out[i];
    out[i] = out[at];
    out[at] = kept;
  }
}

/* Inverts the running sum by bisection. */
static void pick_by_sum(Rng *r, int64_t *out, int64_t k, const double *sum, int64_t m) {
  for (int64_t i = 0; i < k; i++) {
    double u = unit64(rng_u64(r));
    int64_t first = 0, last = m;
    while (first < last) {
      int64_t middle = first + (last - first) / 2;
      bool below = sum[middle] < u;
      first = below ? middle + 1 : first;
      last = below ? last : middle;
    }
    out[i] = first;
  }
}

/* Greater keys first, NaN (0 / 0) before all, the lower index of two equal ones. */
static inline bool comes_before(const double *key, int64_t a, int64_t b) {
  bool nan_a = key[a] != key[a], nan_b = key[b] != key[b];
  if (nan_a != nan_b) return nan_a;
  return key[a] > key[b] || (!(key[a] < key[b]) && a < b);
}

static inline void swap(int64_t *a, int64_t *b) {
  int64_t kept = *a;
  *a = *b;
  *b = kept;
}

/* Restores the heap below `at`: on top is the index that comes last. */
static void sift(int64_t *heap, int64_t k, int64_t at, const double *key) {
  for (int64_t child; (child = 2 * at + 1) < k; at = child) {
    if (child + 1 < k && comes_before(key, heap[child], heap[child + 1])) child++;
    if (!comes_before(key, heap[at], heap[child])) return;
    swap(heap + at, heap + child);
  }
}

/* The indices of the k greatest keys, the greatest first. */
static void pick_greatest(int64_t *out, int64_t k, const double *key, int64_t m) {
  for (int64_t i = 0; i < k; i++) out[i] = i;
  for (int64_t i = k / 2 - 1; i >= 0; i--) sift(out, k, i, key);
  for (int64_t i = k; i < m; i++) {
    if (comes_before(key, i, out[0])) {
      out[0] = i;
      sift(out, k, 0, key);
    }
  }
  for (int64_t size = k - 1; size > 0; size--) {
    swap(out, out + size);
    sift(out, size, 0, key);
  }
}

/* Sums and quotients round to the dtype of the weights; `scratch` holds them as doubles. The
 * last sum is 1 whatever rounding did. Without replacement the k greatest p / q win, with q
 * exponential. */
#define MULTINOMIAL(T, C)                                                                       \
  RngWeights rng_weights_check_##T(const C *p, int64_t m) {                                     \
    bool any = false;                                                                           \
    for (int64_t i = 0; i < m; i++) {                                                           \
      if (!(p[i] >= 0)) return RNG_WEIGHTS_NEGATIVE;                                            \
      if (!(p[i] < (C)INFINITY)) return RNG_WEIGHTS_INFINITE;                                   \
      any |= p[i] > 0;                                                                          \
    }                                                                                           \
    return any ? RNG_WEIGHTS_OK : RNG_WEIGHTS_ZERO_SUM;                                         \
  }                                                                                             \
  void rng_multinomial_unique_##T(Rng *r, int64_t *out, int64_t k, const C *p, double *scratch, \
                                  int64_t m) {                                                  \
    for (int64_t i = 0; i < m; i++)                                                             \
      scratch[i] = (double)(p[i] / (C)next_exponential(unit64(rng_u64(r)), 1));                 \
    pick_greatest(out, k, scratch, m);                                                          \
  }                                                                                             \
  void rng_multinomial_##T(Rng *r, int64_t *out, int64_t k, const C *p, double *scratch,        \
                           int64_t m) {                                                         \
    if (k == 1) {                                                                               \
      rng_multinomial_unique_##T(r, out, k, p, scratch, m);                                     \
      return;                                                                                   \
    }                                                                                           \
    C sum = 0;                                                                                  \
    for (int64_t i = 0; i < m; i++) {                                                           \
      sum += p[i];                                                                              \
      scratch[i] = (double)sum;                                                                 \
    }                                                                                           \
    for (int64_t i = 0; i < m; i++) scratch[i] = (double)((C)scratch[i] / sum);                 \
    scratch[m - 1] = 1;                                                                         \
    pick_by_sum(r, out, k, scratch, m);                                                         \
  }
MULTINOMIAL(f32, float)
MULTINOMIAL(f64, double)

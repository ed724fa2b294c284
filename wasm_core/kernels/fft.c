/* Fourier transforms by Stockham's passes: no reordering, and all loads contiguous.
 *
 * A transform works on planes, real parts apart from imaginary ones, in which the lines done at
 * once are columns: element (j, line) at j * lines + line. A pass of radix r takes x[r][m][s] to
 * y[m][r][s], where s begins as the number of lines and grows by r each time, so vectors lie along
 * lines and finished digits alike. Only a first pass of one line goes along m instead.
 *
 * A backward transform is the forward one with the planes exchanged. Real lines of even length are
 * complex ones of half the length; those of odd length leave out the passes' branches that mirror
 * others.
 *
 * The file includes itself once per real type: what stands behind the #else is the body, in terms
 * of REAL, VEC and LANES. */
#ifndef BODY

#include "kernels/fft.h"

#include <math.h>

#include "ground/inline.h"
#include "ground/poll.h"
#include "kernels/simd.h"

/* Goes before a loop over the elements of a butterfly, whose count is mostly a constant. */
#ifdef __clang__
#define EACH _Pragma("clang loop unroll(full)")
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define EACH
#endif

enum {
  PRIME_MAX = 61,           /* the largest factor whose butterfly is summed */
  PASSES_MAX = 62,          /* factors of an int64_t */
  PLANES_BYTES = 64 << 10,  /* planes of several lines, which L1 about holds */
  COLUMN_BYTES = 64,        /* in adjacent lines done at once: whole cache lines */
  COLUMNS_MAX = 160 << 10,  /* the most bytes that their planes may take */
  BRANCHES_MAX = 512 << 10, /* the most for branches, slow one line at a time */
  PAD = 4                   /* reals after an array that vectors may read */
};

#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)
#define NAME(stem) CAT(stem, SUFFIX)

INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
INLINE int64_t abs64(int64_t a) { return a < 0 ? -a : a; }
INLINE ptrdiff_t min_index(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

/* The header of a plan. Places count reals from the end of the tables of roots. */
typedef struct Plan {
  int64_t n;      /* the caller's length */
  int64_t length; /* the complex transform's: n, or n / 2 for reals of even length */
  int64_t padded; /* the length of the convolution that computes it, or 0 */
  int64_t turns;  /* roots of the passes */
  int64_t chirp;  /* exp(-pi i j^2 / length), of a convolution */
  int64_t kernel; /* the spectrum of the sequence that it is convolved with */
  int64_t halves; /* exp(-2 pi i k / n), with which the halves of a real line are joined */
  int64_t reals;  /* the number of reals in the plan */
  int64_t tabled; /* bytes of the tables */
  int32_t kind, n_passes;
  uint8_t radix[PASSES_MAX];
} Plan;

/* ---- lengths ------------------------------------------------------------- */

/* The order of passes: fours, odd primes from the largest, a two. The number of passes, or -1 if a
 * prime is too large. */
static int factor(int64_t n, uint8_t radix[PASSES_MAX]) {
  int count = 0;
  for (; n % 4 == 0; n /= 4) radix[count++] = 4;
  bool even = n % 2 == 0;
  if (even) n /= 2;
  int first = count;
  for (int prime = 3; prime <= PRIME_MAX; prime += 2)
    for (; n % prime == 0; n /= prime) radix[count++] = (uint8_t)prime;
  for (int last = count - 1; first < last; first++, last--) {
    uint8_t larger = radix[last];
    radix[last] = radix[first], radix[first] = larger;
  }
  if (even) radix[count++] = 2;
  return n == 1 ? count : -1;
}

/* An estimate of the cost of the passes of a length. */
static int64_t passes_cost(int64_t n, const uint8_t *radix, int count) {
  int64_t each = 0;
  for (int i = 0; i < count; i++) each += radix[i] <= 5 ? 10 : 8 + 2 * radix[i];
  return n * each;
}

/* The length of a convolution that computes a transform of n. */
static int64_t padded_length(int64_t n) {
  static const int64_t heads[] = {1, 3, 5, 9, 15, 25};
  int64_t best = INT64_MAX;
  for (int i = 0; i < 6; i++) {
    int64_t length = heads[i];
    while (length < 2 * n - 1) length *= 2;
    best = min64(best, length);
  }
  return best;
}

/* The length of a convolution to use instead of passes over n, or 0. */
static int64_t convolution_length(int64_t n) {
  uint8_t radix[PASSES_MAX];
  int64_t padded = padded_length(n), cost = INT64_MAX;
  int count = factor(n, radix);
  if (count >= 0) cost = passes_cost(n, radix, count);
  count = factor(padded, radix);
  return 2 * passes_cost(padded, radix, count) + 24 * n < cost ? padded : 0;
}

/* The number of reals for the roots of all passes: those of a prime first, then powers for each p <
 * m. */
static int64_t turns_of(int64_t n, const uint8_t *radix, int count) {
  int64_t reals = 0;
  for (int i = 0; i < count; i++) {
    n /= radix[i];
    reals += (radix[i] % 2 == 1 ? 2 * radix[i] : 0) + 2 * (radix[i] - 1) * n;
  }
  return reals;
}

/* Roots of unity of one order, each the product of two: a whole number of strides, and the rest. */
typedef struct Roots {
  int64_t order;
  int shift;
  double (*at)[2];
} Roots;

static int shift_of(int64_t order) {
  int shift = 0;
  while ((int64_t)1 << (2 * shift) < order) shift++;
  return shift;
}

static int64_t roots_count(int64_t order) {
  int shift = shift_of(order);
  return ((int64_t)1 << shift) + (order >> shift) + 1;
}

static bool is_halved(int64_t kind, int64_t n) { return kind != FFT_COMPLEX && n % 2 == 0; }

static Plan lay_out(FftKind kind, int64_t n) {
  Plan p = {.n = n, .kind = (int32_t)kind, .length = is_halved(kind, n) ? n / 2 : n};
  p.padded = convolution_length(p.length);
  int64_t turned = p.padded ? p.padded : p.length;
  p.n_passes = factor(turned, p.radix);
  p.chirp = p.turns + turns_of(turned, p.radix, p.n_passes) + PAD;
  p.kernel = p.chirp + (p.padded ? 2 * p.length + PAD : 0);
  p.halves = p.kernel + (p.padded ? 2 * p.padded + PAD : 0);
  p.reals = p.halves + (is_halved(kind, n) ? 2 * (p.length + 1) + PAD : 0);
  p.tabled = roots_count(max64(turned, 2 * p.length)) * (int64_t)sizeof(double[2]);
  return p;
}

/* Whether real lines are transformed by branches; see "real lines of odd length". */
static bool is_branched(const Plan *p) {
  return p->kind != FFT_COMPLEX && p->n % 2 == 1 && !p->padded;
}

/* The number of planes in which a plan works, and their rows. */
static int64_t planes_of(const Plan *p) { return is_branched(p) ? 10 : 4; }
static int64_t rows_of(const Plan *p) {
  return is_branched(p) ? p->length / 2 + 1 : max64(p->padded, p->length + 1);
}

/* Lines done at once, of `count` whose elements take `bytes`; those side by side in memory are done
 * a cache line at a time. Few lines are done one by one: they do not fill vectors. */
static int64_t lines_at_once(const Plan *p, int64_t count, int64_t lanes, int64_t bytes,
                             bool side_by_side) {
  int64_t row = rows_of(p) * planes_of(p) * bytes, most = PLANES_BYTES / row,
          wide = COLUMN_BYTES / (2 * bytes);
  if (side_by_side && most < wide && row * wide <= COLUMNS_MAX) most = wide;
  if (is_branched(p) && most < lanes && row * lanes <= BRANCHES_MAX) most = lanes;
  most = min64(most, count);
  return most < lanes ? 1 : most;
}

static size_t work_bytes(FftKind kind, int64_t n, int64_t lines, int64_t lanes, int64_t bytes) {
  Plan p = lay_out(kind, n);
  int64_t at_once = max64(lines_at_once(&p, lines, lanes, bytes, false),
                          lines_at_once(&p, lines, lanes, bytes, true));
  return (size_t)((rows_of(&p) * at_once + PAD) * planes_of(&p) * bytes);
}

/* ---- roots of unity ------------------------------------------------------ */

/* exp(-2 pi i k / order) for 0 <= k < order, of an angle of at most an eighth of a turn. */
static void root_exactly(int64_t k, int64_t order, double root[2]) {
  int64_t eighth = 8 * k / order, rest = 8 * k - eighth * order;
  if (eighth & 1) rest = order - rest;
  double angle = 0.78539816339744830962 * ((double)rest / (double)order);
  double c = cos(angle), s = sin(angle);
  bool turned = ((eighth + 1) & 2) != 0;
  double re = turned ? s : c, im = turned ? c : s;
  root[0] = eighth >= 2 && eighth < 6 ? -re : re;
  root[1] = eighth >= 4 ? im : -im;
}

static Roots roots_of(int64_t order, double (*at)[2]) {
  Roots r = {order, shift_of(order), at};
  int64_t fine = (int64_t)1 << r.shift;
  for (int64_t k = 0; k < fine && k < order; k++) root_exactly(k, order, at[k]);
  for (int64_t k = 0; k << r.shift < order; k++) root_exactly(k << r.shift, order, at[fine + k]);
  return r;
}

INLINE void root_at(const Roots *r, int64_t k, double *re, double *im) {
  int64_t fine = (int64_t)1 << r->shift;
  const double *a = r->at[fine + (k >> r->shift)], *b = r->at[k & (fine - 1)];
  *re = a[0] * b[0] - a[1] * b[1];
  *im = a[0] * b[1] + a[1] * b[0];
}

#define UNZIP CAT(VEC, unzip)
#define ZIP CAT(VEC, zip)
#define REVERSED CAT(VEC, reversed)
#define PLANES NAME(planes)
#define SPAN NAME(span)

#define BODY "kernels/fft.c"
#include "kernels/both_reals.h"

#else

typedef struct {
  REAL *re, *im;
} PLANES;

INLINE PLANES NAME(exchanged)(PLANES p) { return (PLANES){p.im, p.re}; }

/* ---- passes -------------------------------------------------------------- */

/* The transform of r vectors of complex numbers in place. Odd lengths take the cosines and sines of
 * their roots, and sum over pairs of elements, which have the same ones but for a sign. */
INLINE void NAME(butterfly)(int r, VEC *re, VEC *im, const REAL *roots) {
  if (r == 2) {
    VEC a = re[1], b = im[1];
    re[1] = re[0] - a, im[1] = im[0] - b;
    re[0] = re[0] + a, im[0] = im[0] + b;
    return;
  }
  if (r == 4) {
    VEC ar = re[0] + re[2], ai = im[0] + im[2], br = re[0] - re[2], bi = im[0] - im[2];
    VEC cr = re[1] + re[3], ci = im[1] + im[3], dr = re[1] - re[3], di = im[1] - im[3];
    re[0] = ar + cr, im[0] = ai + ci;
    re[2] = ar - cr, im[2] = ai - ci;
    re[1] = br + di, im[1] = bi - dr;
    re[3] = br - di, im[3] = bi + dr;
    return;
  }
  VEC ar[PRIME_MAX / 2 + 1], ai[PRIME_MAX / 2 + 1], br[PRIME_MAX / 2 + 1], bi[PRIME_MAX / 2 + 1];
  VEC zr = re[0], zi = im[0];
  EACH for (int j = 1; j <= r / 2; j++) {
    ar[j] = re[j] + re[r - j], ai[j] = im[j] + im[r - j];
    br[j] = re[j] - re[r - j], bi[j] = im[j] - im[r - j];
    re[0] += ar[j], im[0] += ai[j];
  }
  EACH for (int k = 1; k <= r / 2; k++) {
    VEC cr = zr, ci = zi, sr = SPLAT(0), si = SPLAT(0);
    EACH for (int j = 1, at = k; j <= r / 2; j++, at = at + k >= r ? at + k - r : at + k) {
      VEC c = SPLAT(roots[at]), s = SPLAT(roots[r + at]);
      cr += c * ar[j], ci += c * ai[j];
      sr = j == 1 ? s * br[j] : sr + s * br[j];
      si = j == 1 ? s * bi[j] : si + s * bi[j];
    }
    re[k] = cr - si, im[k] = ci + sr;
    re[r - k] = cr + si, im[r - k] = ci - sr;
  }
}

/* One vector of a pass: r loads `apart`, the butterfly, and the turns by c + i s. */
#define STEP_OF_PASS(from, apart, C, S)                                     \
  EACH for (int k = 0; k < r; k++) {                                        \
    re[k] = LOAD(x.re + (from) + k * (apart));                              \
    im[k] = LOAD(x.im + (from) + k * (apart));                              \
  }                                                                         \
  NAME(butterfly)(r, re, im, roots);                                        \
  if (m > 1) {                                                              \
    EACH for (int k = 1; k < r; k++) {                                      \
      VEC cosine = (C), sine = (S), turned = re[k] * cosine - im[k] * sine; \
      im[k] = re[k] * sine + im[k] * cosine;                                \
      re[k] = turned;                                                       \
    }                                                                       \
  }

/* Passes with vectors along s, which must hold at least one. The last vector overlaps the one
 * before it. */
INLINE void NAME(pass_across)(int r, PLANES x, PLANES y, ptrdiff_t m, ptrdiff_t s,
                              const REAL *roots, const REAL *turns) {
  VEC re[PRIME_MAX], im[PRIME_MAX];
  const REAL *sines = turns + (r - 1) * m;
  for (ptrdiff_t p = 0; p < m; p++)
    for (ptrdiff_t q = 0; q < s; q += LANES) {
      ptrdiff_t at = min_index(q, s - LANES);
      STEP_OF_PASS(p * s + at, m * s, SPLAT(turns[(k - 1) * m + p]), SPLAT(sines[(k - 1) * m + p]))
      EACH for (int k = 0; k < r; k++) {
        STORE(y.re + (r * p + k) * s + at, re[k]);
        STORE(y.im + (r * p + k) * s + at, im[k]);
      }
    }
}

/* Four vectors as columns of rows of four. */
INLINE void NAME(store_turned)(const VEC v[4], REAL *to) {
  EACH for (int k = 0; k < 4; k += LANES) {
    VEC square[LANES];
    EACH for (int l = 0; l < LANES; l++) square[l] = v[k + l];
    TRANSPOSE(square);
    EACH for (int l = 0; l < LANES; l++) STORE(to + 4 * l + k, square[l]);
  }
}

INLINE VEC NAME(gathered)(const REAL *from, const ptrdiff_t at[LANES]) {
  VEC v = SPLAT(from[at[0]]);
  EACH for (int l = 1; l < LANES; l++) v[l] = from[at[l]];
  return v;
}

/* Vectors along m and a short s together. */
INLINE void NAME(pass_along)(int r, PLANES x, PLANES y, ptrdiff_t m, ptrdiff_t s, const REAL *roots,
                             const REAL *turns) {
  VEC re[PRIME_MAX], im[PRIME_MAX];
  const REAL *sines = turns + (r - 1) * m;
  ptrdiff_t count = m * s, lanes = min_index(count, LANES);
  for (ptrdiff_t j = 0; j < count; j += LANES) {
    ptrdiff_t at = min_index(j, count - lanes), digit[LANES], place[LANES];
    if (s == 1) {
      STEP_OF_PASS(at, count, LOAD(turns + (k - 1) * m + at), LOAD(sines + (k - 1) * m + at))
      if (r == 4 && lanes == LANES) {
        NAME(store_turned)(re, y.re + 4 * at);
        NAME(store_turned)(im, y.im + 4 * at);
        continue;
      }
    }
    EACH for (int l = 0; l < LANES; l++) {
      digit[l] = s == 1 ? at + l : (at + l) / s;
      place[l] = digit[l] * (r - 1) * s + at + l;
      if (l >= lanes) digit[l] = 0;
    }
    if (s > 1) {
      STEP_OF_PASS(at, count, NAME(gathered)(turns + (k - 1) * m, digit),
                   NAME(gathered)(sines + (k - 1) * m, digit))
    }
    EACH for (int k = 0; k < r; k++) {
      EACH for (int l = 0; l < LANES; l++) if (l < lanes)
          y.re[place[l] + k * s] = re[k][l],
                              y.im[place[l] + k * s] = im[k][l];
    }
  }
}

#define PASS_OF(name, radix)                                                                  \
  static NOINLINE void NAME(pass_##name)(int r, PLANES x, PLANES y, ptrdiff_t m, ptrdiff_t s, \
                                         const REAL *roots, const REAL *turns) {              \
    (void)r;                                                                                  \
    if (s >= LANES) NAME(pass_across)(radix, x, y, m, s, roots, turns);                       \
    else NAME(pass_along)(radix, x, y, m, s, roots, turns);                                   \
  }
PASS_OF(2, 2)
PASS_OF(3, 3)
PASS_OF(4, 4)
PASS_OF(5, 5)
PASS_OF(odd, r)

/* The roots of the pass after one of radix r. */
static const REAL *NAME(turns_after)(const REAL *turns, int r, ptrdiff_t m) {
  return turns + (r % 2 == 1 ? 2 * r : 0) + 2 * (r - 1) * m;
}

/* All passes from `first` on, with their roots, over lines of that length. The result is in *x, and
 * *y is free. */
static void NAME(passes_from)(const Plan *plan, int first, const REAL *turns, ptrdiff_t length,
                              PLANES *x, PLANES *y, ptrdiff_t lines) {
  ptrdiff_t m = length, s = lines;
  for (int i = first; i < plan->n_passes; i++) {
    int r = plan->radix[i];
    if (poll_stops((int64_t)length * lines * 4)) return;
    const REAL *roots = turns, *own = r % 2 == 1 ? turns + 2 * r : turns;
    m /= r;
    switch (r) {
      case 2: NAME(pass_2)(r, *x, *y, m, s, roots, own); break;
      case 3: NAME(pass_3)(r, *x, *y, m, s, roots, own); break;
      case 4: NAME(pass_4)(r, *x, *y, m, s, roots, own); break;
      case 5: NAME(pass_5)(r, *x, *y, m, s, roots, own); break;
      default: NAME(pass_odd)(r, *x, *y, m, s, roots, own);
    }
    turns = NAME(turns_after)(turns, r, m);
    s *= r;
    PLANES done = *y;
    *y = *x, *x = done;
  }
}

static void NAME(passes)(const Plan *plan, const REAL *turns, PLANES *x, PLANES *y,
                         ptrdiff_t lines) {
  ptrdiff_t length = (ptrdiff_t)(plan->padded ? plan->padded : plan->length);
  NAME(passes_from)(plan, 0, turns, length, x, y, lines);
}

/* Rows of x times a complex number each, in place. */
static void NAME(multiply_rows)(PLANES x, const REAL *by, ptrdiff_t rows, ptrdiff_t lines) {
  const REAL *sines = by + rows;
  ptrdiff_t count = rows * lines, row = 0, left = lines;
  if (lines > 1) {
    for (; row < rows; row++) {
      VEC c = SPLAT(by[row]), s = SPLAT(sines[row]);
      REAL *re = x.re + row * lines, *im = x.im + row * lines;
      for (left = 0; left + LANES <= lines; left += LANES) {
        VEC a = LOAD(re + left), b = LOAD(im + left);
        STORE(re + left, a * c - b * s);
        STORE(im + left, a * s + b * c);
      }
      for (; left < lines; left++) {
        REAL a = re[left], b = im[left];
        re[left] = a * by[row] - b * sines[row];
        im[left] = a * sines[row] + b * by[row];
      }
    }
    return;
  }
  for (; row + LANES <= count; row += LANES) {
    VEC a = LOAD(x.re + row), b = LOAD(x.im + row), c = LOAD(by + row), s = LOAD(sines + row);
    STORE(x.re + row, a * c - b * s);
    STORE(x.im + row, a * s + b * c);
  }
  for (; row < count; row++) {
    REAL a = x.re[row], b = x.im[row];
    x.re[row] = a * by[row] - b * sines[row];
    x.im[row] = a * sines[row] + b * by[row];
  }
}

/* The transform of the plan, forward; the result is in *x, and *y is free. */
static void NAME(transform)(const Plan *plan, const REAL *reals, PLANES *x, PLANES *y,
                            ptrdiff_t lines) {
  const REAL *turns = reals + plan->turns, *chirp = reals + plan->chirp;
  ptrdiff_t n = (ptrdiff_t)plan->length, padded = (ptrdiff_t)plan->padded;
  if (!padded) {
    NAME(passes)(plan, turns, x, y, lines);
    return;
  }
  NAME(multiply_rows)(*x, chirp, n, lines);
  size_t rest = (size_t)((padded - n) * lines) * sizeof(REAL);
  memset(x->re + n * lines, 0, rest);
  memset(x->im + n * lines, 0, rest);
  NAME(passes)(plan, turns, x, y, lines);
  NAME(multiply_rows)(*x, reals + plan->kernel, padded, lines);
  *x = NAME(exchanged)(*x), *y = NAME(exchanged)(*y);
  NAME(passes)(plan, turns, x, y, lines);
  *x = NAME(exchanged)(*x), *y = NAME(exchanged)(*y);
  NAME(multiply_rows)(*x, chirp, n, lines);
}

/* ---- real lines of even length ------------------------------------------- */

/* Forward: makes twice element k of a line's spectrum of a = Z[k] and b = Z[half - k], where Z is
 * the transform of the line's even elements as real and odd ones as imaginary parts. Back: the
 * inverse, without a factor. */
INLINE void NAME(join)(bool back, VEC ar, VEC ai, VEC br, VEC bi, VEC c, VEC s, VEC *re, VEC *im) {
  VEC er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
  if (back) {
    *re = er - (c * di - s * dr);
    *im = ei + (c * dr + s * di);
  } else {
    *re = er + (c * di + s * dr);
    *im = ei + (s * di - c * dr);
  }
}

/* The first `rows` rows of y from x, which has half + 1. */
INLINE void NAME(join_rows)(bool back, PLANES x, PLANES y, const REAL *by, ptrdiff_t half,
                            ptrdiff_t lines) {
  ptrdiff_t rows = back ? half : half + 1;
  const REAL *sines = by + half + 1;
  VEC re, im;
  if (lines == 1 && rows >= LANES) {
    for (ptrdiff_t k = 0; k < rows; k += LANES) {
      ptrdiff_t at = min_index(k, rows - LANES), other = half - at - LANES + 1;
      NAME(join)(back, LOAD(x.re + at), LOAD(x.im + at), REVERSED(LOAD(x.re + other)),
                 REVERSED(LOAD(x.im + other)), LOAD(by + at), LOAD(sines + at), &re, &im);
      STORE(y.re + at, re);
      STORE(y.im + at, im);
    }
    return;
  }
  for (ptrdiff_t k = 0; k < rows; k++)
    for (ptrdiff_t q = 0; q < lines; q += LANES) {
      ptrdiff_t in_row = lines == 1 ? 0 : min_index(q, lines - LANES);
      ptrdiff_t at = k * lines + in_row, other = (half - k) * lines + in_row;
      NAME(join)(back, LOAD(x.re + at), LOAD(x.im + at), LOAD(x.re + other), LOAD(x.im + other),
                 SPLAT(by[k]), SPLAT(sines[k]), &re, &im);
      if (lines == 1) {
        y.re[at] = re[0], y.im[at] = im[0];
      } else {
        STORE(y.re + at, re);
        STORE(y.im + at, im);
      }
    }
}

static void NAME(split_halves)(PLANES x, PLANES y, const REAL *by, ptrdiff_t half,
                               ptrdiff_t lines) {
  NAME(join_rows)(false, x, y, by, half, lines);
}

static void NAME(join_halves)(PLANES x, PLANES y, const REAL *by, ptrdiff_t half, ptrdiff_t lines) {
  NAME(join_rows)(true, x, y, by, half, lines);
}

/* ---- real lines of odd length -------------------------------------------- */

/* A pass over reals gives one real branch and pairs of complex branches, of which one is the other
 * conjugated and reversed. So only half of the complex branches are computed, and the real one is
 * passed on in the same way. */

/* The working memory: the spectrum, reals, and fewer of them at the next level; see places_of. */
typedef struct {
  PLANES spectrum, x, y;
  REAL *reals, *fewer;
} NAME(halves);

INLINE void NAME(put)(REAL *to, VEC v, ptrdiff_t lanes) {
  if (lanes == LANES) STORE(to, v);
  else
    for (ptrdiff_t l = 0; l < lanes; l++) to[l] = v[l];
}

/* Reals [r][m][lines] to those of branch 0, [m][lines], and half of the other branches,
 * [m][r / 2][lines]. */
static NOINLINE void NAME(branch)(int r, const REAL *from, REAL *fewer, PLANES to, ptrdiff_t m,
                                  ptrdiff_t lines, const REAL *roots, const REAL *turns) {
  VEC a[PRIME_MAX / 2 + 1], b[PRIME_MAX / 2 + 1];
  const REAL *sines = turns + (r - 1) * m;
  ptrdiff_t half = r / 2, along = lines == 1, count = along ? m : lines;
  ptrdiff_t lanes = min_index(count, LANES);
  for (ptrdiff_t d = 0; d < (along ? 1 : m); d++)
    for (ptrdiff_t q = 0; q < count; q += LANES) {
      ptrdiff_t at = min_index(q, count - lanes);
      const REAL *x = from + d * lines + at;
      VEC zero = LOAD(x), sum = zero;
      for (ptrdiff_t j = 1; j <= half; j++) {
        VEC u = LOAD(x + j * m * lines), v = LOAD(x + (r - j) * m * lines);
        a[j] = u + v, b[j] = u - v;
        sum += a[j];
      }
      NAME(put)(fewer + d * lines + at, sum, lanes);
      for (ptrdiff_t k = 1; k <= half; k++) {
        VEC re = zero + SPLAT(roots[k]) * a[1], im = SPLAT(roots[r + k]) * b[1];
        for (ptrdiff_t j = 2, root = 2 * k; j <= half; j++, root += k) {
          if (root >= r) root -= r;
          re += SPLAT(roots[root]) * a[j], im += SPLAT(roots[r + root]) * b[j];
        }
        ptrdiff_t turn = (k - 1) * m + (along ? at : d);
        VEC c = along ? LOAD(turns + turn) : SPLAT(turns[turn]);
        VEC s = along ? LOAD(sines + turn) : SPLAT(sines[turn]);
        VEC turned_re = re * c - im * s, turned_im = re * s + im * c;
        ptrdiff_t place = (along ? at : d) * half + k - 1;
        for (ptrdiff_t l = 0; along && l < lanes; l++) {
          to.re[place + l * half] = turned_re[l];
          to.im[place + l * half] = turned_im[l];
        }
        if (along) continue;
        STORE(to.re + place * lines + at, turned_re);
        STORE(to.im + place * lines + at, turned_im);
      }
    }
}

/* The inverse of `branch`. */
static NOINLINE void NAME(unbranch)(int r, PLANES from, const REAL *fewer, REAL *to, ptrdiff_t m,
                                    ptrdiff_t lines, const REAL *roots, const REAL *turns) {
  VEC re[PRIME_MAX / 2 + 1], im[PRIME_MAX / 2 + 1];
  const REAL *sines = turns + (r - 1) * m;
  ptrdiff_t half = r / 2, along = lines == 1, count = along ? m : lines;
  ptrdiff_t lanes = min_index(count, LANES);
  for (ptrdiff_t d = 0; d < (along ? 1 : m); d++)
    for (ptrdiff_t q = 0; q < count; q += LANES) {
      ptrdiff_t at = min_index(q, count - lanes);
      REAL *x = to + d * lines + at;
      VEC zero = LOAD(fewer + d * lines + at), sum = zero;
      for (ptrdiff_t k = 1; k <= half; k++) {
        ptrdiff_t turn = (k - 1) * m + (along ? at : d), place = (along ? at : d) * half + k - 1;
        VEC c = along ? LOAD(turns + turn) : SPLAT(turns[turn]);
        VEC s = along ? LOAD(sines + turn) : SPLAT(sines[turn]), u = SPLAT(0), v = SPLAT(0);
        if (along) {
          for (ptrdiff_t l = 0; l < lanes; l++)
            u[l] = from.re[place + l * half], v[l] = from.im[place + l * half];
        } else {
          u = LOAD(from.re + place * lines + at), v = LOAD(from.im + place * lines + at);
        }
        re[k] = SPLAT(2) * (u * c + v * s), im[k] = SPLAT(2) * (v * c - u * s);
        sum += re[k];
      }
      NAME(put)(x, sum, lanes);
      for (ptrdiff_t j = 1; j <= half; j++) {
        VEC even = zero + SPLAT(roots[j]) * re[1], odd = SPLAT(roots[r + j]) * im[1];
        for (ptrdiff_t k = 2, root = 2 * j; k <= half; k++, root += j) {
          if (root >= r) root -= r;
          even += SPLAT(roots[root]) * re[k], odd += SPLAT(roots[r + root]) * im[k];
        }
        NAME(put)(x + j * m * lines, even + odd, lanes);
        NAME(put)(x + (r - j) * m * lines, even - odd, lanes);
      }
    }
}

/* Moves elements of branches to their places in a spectrum, where this level has every `apart`-th
 * element; or back. */
static void NAME(place_branches)(bool back, int r, PLANES z, PLANES spectrum, ptrdiff_t m,
                                 ptrdiff_t apart, ptrdiff_t lines) {
  ptrdiff_t half = r / 2, n = r * m;
  for (ptrdiff_t l = 0; l < m; l++)
    for (ptrdiff_t k = 1; k <= half; k++) {
      ptrdiff_t j = r * l + k, row = (j <= n / 2 ? j : n - j) * apart * lines;
      REAL *re = z.re + (l * half + k - 1) * lines, *im = z.im + (l * half + k - 1) * lines;
      REAL sign = j <= n / 2 ? 1 : -1;
      for (ptrdiff_t q = 0; q < lines; q++)
        if (back) re[q] = spectrum.re[row + q], im[q] = sign * spectrum.im[row + q];
        else spectrum.re[row + q] = re[q], spectrum.im[row + q] = sign * im[q];
    }
}

/* Transforms w.reals into w.spectrum. */
static void NAME(branch_all)(const Plan *p, const REAL *turns, NAME(halves) w, ptrdiff_t lines) {
  ptrdiff_t m = (ptrdiff_t)p->length, apart = 1;
  for (int i = 0; i < p->n_passes; i++) {
    int r = p->radix[i];
    PLANES x = w.x, y = w.y;
    m /= r;
    NAME(branch)(r, w.reals, w.fewer, x, m, lines, turns, turns + 2 * r);
    turns = NAME(turns_after)(turns, r, m);
    NAME(passes_from)(p, i + 1, turns, m, &x, &y, lines * (r / 2));
    NAME(place_branches)(false, r, x, w.spectrum, m, apart, lines);
    apart *= r;
    REAL *done = w.reals;
    w.reals = w.fewer, w.fewer = done;
  }
  memcpy(w.spectrum.re, w.reals, (size_t)lines * sizeof(REAL));
  memset(w.spectrum.im, 0, (size_t)lines * sizeof(REAL));
}

/* The inverse of `branch_all`; returns where the reals are. */
static REAL *NAME(unbranch_all)(const Plan *p, const REAL *turns, NAME(halves) w, ptrdiff_t lines) {
  const REAL *at[PASSES_MAX + 1] = {turns};
  ptrdiff_t m = (ptrdiff_t)p->length, length = 1, apart = m;
  for (int i = 0; i < p->n_passes; i++) {
    m /= p->radix[i];
    at[i + 1] = NAME(turns_after)(at[i], p->radix[i], m);
  }
  memcpy(w.fewer, w.spectrum.re, (size_t)lines * sizeof(REAL));
  for (int i = p->n_passes - 1; i >= 0; i--) {
    int r = p->radix[i];
    PLANES x = NAME(exchanged)(w.x), y = NAME(exchanged)(w.y);
    apart /= r;
    NAME(place_branches)(true, r, w.x, w.spectrum, length, apart, lines);
    NAME(passes_from)(p, i + 1, at[i + 1], length, &x, &y, lines * (r / 2));
    NAME(unbranch)(r, NAME(exchanged)(x), w.fewer, w.reals, length, lines, at[i], at[i] + 2 * r);
    length *= r;
    REAL *done = w.reals;
    w.reals = w.fewer, w.fewer = done;
  }
  return w.fewer;
}

/* ---- lines in memory ----------------------------------------------------- */

/* Distances in reals: from a real part to its imaginary part, between elements, between lines. */
typedef struct {
  ptrdiff_t im, step, line;
} SPAN;

/* Copies the first `rows` elements of lines into planes; lines of reals need one plane only. */
static void NAME(gather)(const REAL *from, SPAN f, PLANES to, ptrdiff_t rows, ptrdiff_t lines) {
  VEC a, b;
  if (lines >= LANES && f.im == 1 && f.line == 2) {
    for (ptrdiff_t j = 0; j < rows; j++, from += f.step)
      for (ptrdiff_t q = 0; q < lines; q += LANES) {
        ptrdiff_t at = min_index(q, lines - LANES);
        UNZIP(LOAD(from + 2 * at), LOAD(from + 2 * at + LANES), &a, &b);
        STORE(to.re + j * lines + at, a);
        STORE(to.im + j * lines + at, b);
      }
    return;
  }
  if (lines >= LANES && f.line == 1) {
    for (ptrdiff_t j = 0; j < rows; j++, from += f.step)
      for (ptrdiff_t q = 0; q < lines; q += LANES) {
        ptrdiff_t at = min_index(q, lines - LANES);
        STORE(to.re + j * lines + at, LOAD(from + at));
        STORE(to.im + j * lines + at, LOAD(from + f.im + at));
      }
    return;
  }
  ptrdiff_t row = 0;
  bool dense = f.im == 1 && f.step == 2;
  if (dense && lines == 1) {
    for (; row + LANES <= rows; row += LANES) {
      UNZIP(LOAD(from + 2 * row), LOAD(from + 2 * row + LANES), &a, &b);
      STORE(to.re + row, a);
      STORE(to.im + row, b);
    }
  } else if (dense && lines >= LANES) {
    row = rows / (LANES / 2) * (LANES / 2);
    for (ptrdiff_t q = 0; q < lines; q += LANES) {
      ptrdiff_t first = min_index(q, lines - LANES);
      for (ptrdiff_t j = 0; j < row; j += LANES / 2) {
        VEC square[LANES];
        EACH for (int l = 0; l < LANES; l++) square[l] = LOAD(from + (first + l) * f.line + 2 * j);
        TRANSPOSE(square);
        EACH for (int l = 0; l < LANES; l += 2) {
          STORE(to.re + (j + l / 2) * lines + first, square[l]);
          STORE(to.im + (j + l / 2) * lines + first, square[l + 1]);
        }
      }
    }
  }
  if (f.im == 0 && f.step == 1 && lines >= LANES) {
    row = rows / LANES * LANES;
    for (ptrdiff_t q = 0; q < lines; q += LANES) {
      ptrdiff_t first = min_index(q, lines - LANES);
      for (ptrdiff_t j = 0; j < row; j += LANES) {
        VEC square[LANES];
        EACH for (int l = 0; l < LANES; l++) square[l] = LOAD(from + (first + l) * f.line + j);
        TRANSPOSE(square);
        EACH for (int l = 0; l < LANES; l++) STORE(to.re + (j + l) * lines + first, square[l]);
      }
    }
  }
  for (; row < rows; row++)
    for (ptrdiff_t q = 0; q < lines; q++) {
      const REAL *at = from + row * f.step + q * f.line;
      to.re[row * lines + q] = at[0];
      to.im[row * lines + q] = at[f.im];
    }
}

/* Copies planes back into lines, times `scale`. With im == 0, real parts overwrite imaginary
 * ones. */
static void NAME(scatter)(PLANES from, ptrdiff_t rows, ptrdiff_t lines, REAL scale, REAL *to,
                          SPAN t) {
  VEC by = SPLAT(scale), a, b;
  if (lines >= LANES && t.im == 1 && t.line == 2) {
    for (ptrdiff_t j = 0; j < rows; j++, to += t.step)
      for (ptrdiff_t q = 0; q < lines; q += LANES) {
        ptrdiff_t at = min_index(q, lines - LANES);
        ZIP(by * LOAD(from.re + j * lines + at), by * LOAD(from.im + j * lines + at), &a, &b);
        STORE(to + 2 * at, a);
        STORE(to + 2 * at + LANES, b);
      }
    return;
  }
  if (lines >= LANES && t.line == 1) {
    for (ptrdiff_t j = 0; j < rows; j++, to += t.step)
      for (ptrdiff_t q = 0; q < lines; q += LANES) {
        ptrdiff_t at = min_index(q, lines - LANES);
        STORE(to + t.im + at, by * LOAD(from.im + j * lines + at));
        STORE(to + at, by * LOAD(from.re + j * lines + at));
      }
    return;
  }
  ptrdiff_t row = 0;
  bool dense = t.im == 1 && t.step == 2;
  if (dense && lines == 1) {
    for (; row + LANES <= rows; row += LANES) {
      ZIP(by * LOAD(from.re + row), by * LOAD(from.im + row), &a, &b);
      STORE(to + 2 * row, a);
      STORE(to + 2 * row + LANES, b);
    }
  } else if (dense && lines >= LANES) {
    row = rows / (LANES / 2) * (LANES / 2);
    for (ptrdiff_t q = 0; q < lines; q += LANES) {
      ptrdiff_t first = min_index(q, lines - LANES);
      for (ptrdiff_t j = 0; j < row; j += LANES / 2) {
        VEC square[LANES];
        EACH for (int l = 0; l < LANES; l += 2) {
          square[l] = by * LOAD(from.re + (j + l / 2) * lines + first);
          square[l + 1] = by * LOAD(from.im + (j + l / 2) * lines + first);
        }
        TRANSPOSE(square);
        EACH for (int l = 0; l < LANES; l++) STORE(to + (first + l) * t.line + 2 * j, square[l]);
      }
    }
  }
  if (t.im == 0 && t.step == 1 && lines >= LANES) {
    row = rows / LANES * LANES;
    for (ptrdiff_t q = 0; q < lines; q += LANES) {
      ptrdiff_t first = min_index(q, lines - LANES);
      for (ptrdiff_t j = 0; j < row; j += LANES) {
        VEC square[LANES];
        EACH for (int l = 0; l < LANES; l++)
            square[l] = by * LOAD(from.re + (j + l) * lines + first);
        TRANSPOSE(square);
        EACH for (int l = 0; l < LANES; l++) STORE(to + (first + l) * t.line + j, square[l]);
      }
    }
  }
  for (; row < rows; row++)
    for (ptrdiff_t q = 0; q < lines; q++) {
      REAL *at = to + row * t.step + q * t.line;
      at[t.im] = scale * from.im[row * lines + q];
      at[0] = scale * from.re[row * lines + q];
    }
}

/* ---- calls --------------------------------------------------------------- */

size_t CAT(NAME(fft), plan_bytes)(FftKind kind, int64_t n) {
  Plan p = lay_out(kind, n);
  return sizeof p + (size_t)p.tabled + (size_t)p.reals * sizeof(REAL);
}

size_t CAT(NAME(fft), work_bytes)(FftKind kind, int64_t n, int64_t lines) {
  return work_bytes(kind, n, lines, LANES, (int64_t)sizeof(REAL));
}

INLINE const REAL *NAME(reals_of)(const Plan *p) {
  return (const REAL *)((const char *)(p + 1) + p->tabled);
}

INLINE void NAME(put_root)(const Roots *r, int64_t k, REAL *re, REAL *im) {
  double c, s;
  root_at(r, k, &c, &s);
  *re = (REAL)c, *im = (REAL)s;
}

static void NAME(plan_passes)(const Plan *p, const Roots *roots, REAL *turns) {
  int64_t m = roots->order;
  for (int i = 0; i < p->n_passes; i++) {
    int64_t r = p->radix[i], order = m, each = roots->order / order;
    m /= r;
    for (int64_t k = 0; r % 2 == 1 && k < r; k++)
      NAME(put_root)(roots, k * (roots->order / r), turns + k, turns + r + k);
    if (r % 2 == 1) turns += 2 * r;
    for (int64_t k = 1; k < r; k++)
      for (int64_t d = 0; d < m; d++) {
        REAL *at = turns + (k - 1) * m + d;
        NAME(put_root)(roots, d * k * each, at, at + (r - 1) * m);
      }
    turns += 2 * (r - 1) * m;
  }
}

/* Computes the chirp, and the spectrum of its conjugate around zero, divided by its length for the
 * inverse transform. */
static void NAME(plan_chirp)(const Plan *p, const Roots *roots, REAL *reals, REAL *work) {
  int64_t n = p->length, padded = p->padded, square = 0;
  REAL *chirp = reals + p->chirp, *kernel = reals + p->kernel;
  PLANES x = {work, work + padded + PAD}, y = {x.im + padded + PAD, x.im + 2 * padded + 2 * PAD};
  memset(work, 0, (size_t)(2 * padded + 2 * PAD) * sizeof(REAL));
  for (int64_t j = 0; j < n; j++) {
    NAME(put_root)(roots, square, chirp + j, chirp + n + j);
    x.re[j] = chirp[j], x.im[j] = -chirp[n + j];
    if (j > 0) x.re[padded - j] = x.re[j], x.im[padded - j] = x.im[j];
    square = (square + 2 * j + 1) % (2 * n);
  }
  NAME(passes)(p, reals + p->turns, &x, &y, 1);
  for (int64_t k = 0; k < padded; k++) {
    kernel[k] = x.re[k] / (REAL)padded;
    kernel[padded + k] = x.im[k] / (REAL)padded;
  }
}

void CAT(NAME(fft), plan)(FftKind kind, int64_t n, void *plan, void *work) {
  Plan *p = plan;
  *p = lay_out(kind, n);
  double (*tables)[2] = (double (*)[2])(void *)(p + 1);
  REAL *reals = (REAL *)(void *)((char *)(p + 1) + p->tabled);
  memset(reals, 0, (size_t)p->reals * sizeof(REAL));
  Roots roots = roots_of(p->padded ? p->padded : p->length, tables);
  NAME(plan_passes)(p, &roots, reals + p->turns);
  if (!p->padded && !is_halved(kind, n)) return;
  roots = roots_of(2 * p->length, tables);
  if (p->padded) NAME(plan_chirp)(p, &roots, reals, work);
  for (int64_t k = 0; is_halved(kind, n) && k <= p->length; k++)
    NAME(put_root)(&roots, k, reals + p->halves + k, reals + p->halves + p->length + 1 + k);
}

/* The planes of a plan in the caller's memory. */
static NAME(halves) NAME(planes_in)(const Plan *p, REAL *work, ptrdiff_t lines) {
  ptrdiff_t plane = (ptrdiff_t)rows_of(p) * lines + PAD;
  NAME(halves) w = {.x = {work, work + plane}, .y = {work + 2 * plane, work + 3 * plane}};
  if (!is_branched(p)) return w;
  w.spectrum = (PLANES){work + 4 * plane, work + 5 * plane};
  w.reals = work + 6 * plane;
  w.fewer = work + 8 * plane;
  return w;
}

/* Reals to the first half of their spectrum. */
static PLANES NAME(to_half)(const Plan *p, const REAL *reals, const REAL *in, FftLines at,
                            NAME(halves) w, ptrdiff_t lines) {
  ptrdiff_t n = (ptrdiff_t)p->length, step = (ptrdiff_t)at.in_step, line = (ptrdiff_t)at.in_line;
  size_t row = (size_t)lines * sizeof(REAL);
  PLANES x = w.x, y = w.y;
  if (is_branched(p)) {
    NAME(gather)(in, (SPAN){0, step, line}, (PLANES){w.reals, w.reals}, n, lines);
    NAME(branch_all)(p, reals + p->turns, w, lines);
    return w.spectrum;
  }
  if (!is_halved(p->kind, p->n)) {
    NAME(gather)(in, (SPAN){0, step, line}, x, n, lines);
    memset(x.im, 0, (size_t)n * row);
    NAME(transform)(p, reals, &x, &y, lines);
    return x;
  }
  NAME(gather)(in, (SPAN){step, 2 * step, line}, x, n, lines);
  NAME(transform)(p, reals, &x, &y, lines);
  memcpy(x.re + n * lines, x.re, row);
  memcpy(x.im + n * lines, x.im, row);
  NAME(split_halves)(x, y, reals + p->halves, n, lines);
  return y;
}

/* Half a spectrum to reals, the even ones in the real parts if their number is even. */
static PLANES NAME(from_half)(const Plan *p, const REAL *reals, const REAL *in, FftLines at,
                              NAME(halves) w, ptrdiff_t lines) {
  ptrdiff_t n = (ptrdiff_t)p->length;
  SPAN f = {1, 2 * (ptrdiff_t)at.in_step, 2 * (ptrdiff_t)at.in_line};
  size_t row = (size_t)lines * sizeof(REAL);
  PLANES x = w.x, y = w.y;
  if (is_branched(p)) {
    NAME(gather)(in, f, w.spectrum, n / 2 + 1, lines);
    REAL *done = NAME(unbranch_all)(p, reals + p->turns, w, lines);
    return (PLANES){done, done};
  }
  if (is_halved(p->kind, p->n)) {
    NAME(gather)(in, f, x, n + 1, lines);
    memset(x.im, 0, row);
    memset(x.im + n * lines, 0, row);
    NAME(join_halves)(x, y, reals + p->halves, n, lines);
    PLANES free = x;
    x = NAME(exchanged)(y), y = NAME(exchanged)(free);
  } else {
    NAME(gather)(in, f, x, n / 2 + 1, lines);
    memset(x.im, 0, row);
    for (ptrdiff_t k = 1; k <= n / 2; k++) {
      memcpy(x.re + (n - k) * lines, x.re + k * lines, row);
      for (ptrdiff_t q = 0; q < lines; q++) x.im[(n - k) * lines + q] = -x.im[k * lines + q];
    }
    x = NAME(exchanged)(x), y = NAME(exchanged)(y);
  }
  NAME(transform)(p, reals, &x, &y, lines);
  return NAME(exchanged)(x);
}

void NAME(fft)(const void *plan, bool backward, const REAL *in, REAL *out, FftLines at, REAL scale,
               void *work) {
  const Plan *p = plan;
  const REAL *reals = NAME(reals_of)(p);
  int64_t wide = sizeof(REAL), lines = 1, rows = p->length;
  bool side_by_side = abs64(at.in_line) < abs64(at.in_step);
  int64_t at_once = lines_at_once(p, at.count, LANES, wide, side_by_side);
  SPAN f = {1, 2 * (ptrdiff_t)at.in_step, 2 * (ptrdiff_t)at.in_line};
  SPAN t = {1, 2 * (ptrdiff_t)at.out_step, 2 * (ptrdiff_t)at.out_line};
  if (p->kind == FFT_TO_HALF) {
    f.line /= 2, rows = p->n / 2 + 1;
    if (is_halved(p->kind, p->n)) scale /= 2;
  } else if (p->kind == FFT_FROM_HALF) {
    ptrdiff_t step = t.step / 2, line = t.line / 2;
    bool halved = is_halved(p->kind, p->n);
    t = halved ? (SPAN){step, 2 * step, line} : (SPAN){0, step, line};
  }
  for (int64_t first = 0; first < at.count; first += lines) {
    lines = at.count - first < LANES ? 1 : min64(at_once, at.count - first);
    ptrdiff_t columns = (ptrdiff_t)lines;
    NAME(halves) w = NAME(planes_in)(p, work, columns);
    PLANES x = w.x, y = w.y;
    const REAL *from = in + first * f.line;
    if (p->kind == FFT_TO_HALF) {
      x = NAME(to_half)(p, reals, from, at, w, columns);
    } else if (p->kind == FFT_FROM_HALF) {
      x = NAME(from_half)(p, reals, from, at, w, columns);
    } else {
      NAME(gather)(from, f, backward ? NAME(exchanged)(x) : x, (ptrdiff_t)rows, columns);
      NAME(transform)(p, reals, &x, &y, columns);
      if (backward) x = NAME(exchanged)(x);
    }
    NAME(scatter)(x, (ptrdiff_t)rows, columns, scale, out + first * t.line, t);
  }
}

#endif

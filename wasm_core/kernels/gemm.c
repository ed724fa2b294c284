/* Matrix products: packed tiles for large ones, and paths of their own for
 * matrix times vector and for tiny matrices.
 *
 * Invariant: every path adds up an element in the one order that k decides.
 * k is cut into blocks of depth_block(k) steps; a block is summed from +0 in
 * ascending order in one accumulator; the first block writes
 * alpha * sum + beta * c, each later one c + alpha * sum.
 *
 * The file includes itself once per real type. The body, behind the #else, uses
 * REAL, VEC and LANES. */
#ifndef BODY

#include "kernels/gemm.h"

#include "ground/inline.h"
#include "ground/paths.h"
#include "ground/poll.h"
#include "kernels/simd.h"

enum {
  TILE_ROWS = 4,            /* by two vectors: eight sums, six operands and a */
                            /* product fit into sixteen registers */
  DEPTH_MAX = 256,          /* a strip of A and a panel of B then fill 24 KB of L1 */
  PANELS_BYTES = 256 << 10, /* the packed block of B: half of a small L2 */
  DIRECT_ROWS = 8,          /* for so few rows, packing B costs more than it saves */
  DIRECT_STRIDE = 2048,     /* bytes from row to row up to which B is read in place */
  TINY_DEPTH = 32,          /* k and */
  TINY_WORK = 2048,         /* m * n * k up to which nothing is worth packing, */
  TINY_VECTOR = 32,         /* the latter where m or n is 1, */
  SHALLOW = 4,              /* and the k up to which it never is */
  VECTOR_BYTES = 8192,      /* sums of a matrix-vector product kept in L1 */
  DOT_BLOCK = 256,
  CACHE_LINE = 64
};

#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)
#define NAME(stem) CAT(stem, SUFFIX)

#ifdef __clang__
#define KEEP_ROLLED _Pragma("clang loop unroll(disable)")
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define KEEP_ROLLED _Pragma("GCC unroll 1")
#define UNROLL _Pragma("GCC unroll 8")
#endif

INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
INLINE int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

/* The depth of each block of the inner dimension but the last: equal shares, in multiples of
 * four. */
static int64_t depth_block(int64_t k) {
  int64_t blocks = (k + DEPTH_MAX - 1) / DEPTH_MAX;
  return blocks == 0 ? 0 : round_up((k + blocks - 1) / blocks, 4);
}

/* Whether the product is computed without packing and without scratch. */
static int is_tiny(int64_t m, int64_t n, int64_t k) {
  int64_t work = m == 1 || n == 1 ? TINY_VECTOR : TINY_WORK;
  if (m > 1 && n > 1 && k <= SHALLOW) return 1;
  return k <= TINY_DEPTH && m <= work && n <= work && m * n * k <= work;
}

/* Whether B, with rows b_rs_bytes apart, is read in place rather than packed: m / 4 strips read it.
 * Long strides lose, for they fall on few sets of the cache. */
static int reads_in_place(int64_t m, int64_t k, int64_t b_rs_bytes) {
  return m <= DIRECT_ROWS || (b_rs_bytes <= DIRECT_STRIDE && b_rs_bytes * k <= PANELS_BYTES);
}

/* Estimated quarter cycles of the packed product with the operands in this
 * order: tiles with their padding, splatting A, copying B, scattered writes. */
static int64_t tiled_cost(int64_t m, int64_t n, int64_t k, int64_t lanes, int64_t c_rs,
                          int64_t c_cs) {
  int64_t tiles = round_up(m, TILE_ROWS) * round_up(n, 2 * lanes),
          scattered = c_rs == 1 ? m * n / 2 : 5 * m * n;
  return tiles * k * 2 / lanes + 3 * m * k + n * k + (c_cs == 1 ? 0 : scattered);
}

#define TILE_COLS (2 * LANES)
#define STEP (TILE_ROWS * LANES) /* reals in one inner step of a strip */
#define OPERAND NAME(operand)
#define TARGET NAME(target)

#define BODY "kernels/gemm.c"
#include "kernels/both_reals.h"

/* Sums modulo two to the width of the type do not depend on their order, so
 * the loop goes over rows of B, where memory is mostly contiguous. */
#define GEMM_DEFINE(suffix, type, wide)                                                           \
  INLINE void add_to_##suffix(type *c, wide x, type b) {                                          \
    wide y = (wide)b, old = (wide) * c;                                                           \
    *c = (type)(old + x * y);                                                                     \
  }                                                                                               \
  static void add_row_##suffix(int64_t n, wide x, const type *b, int64_t b_cs, type *restrict c,  \
                               int64_t c_cs) {                                                    \
    if (b_cs == 1 && c_cs == 1)                                                                   \
      for (ptrdiff_t j = 0; j < (ptrdiff_t)n; j++) add_to_##suffix(c + j, x, b[j]);               \
    else                                                                                          \
      for (int64_t j = 0; j < n; j++) add_to_##suffix(c + j * c_cs, x, b[j * b_cs]);              \
  }                                                                                               \
  void gemm_##suffix(int64_t m, int64_t n, int64_t k, type alpha, const type *a, int64_t a_rs,    \
                     int64_t a_cs, const type *b, int64_t b_rs, int64_t b_cs, type beta, type *c, \
                     int64_t c_rs, int64_t c_cs) {                                                \
    for (int64_t i = 0; i < m; i++) {                                                             \
      for (int64_t j = 0; j < n; j++) {                                                           \
        type old = beta == 0 ? (type)0 : c[i * c_rs + j * c_cs];                                  \
        c[i * c_rs + j * c_cs] = 0;                                                               \
        add_to_##suffix(c + i * c_rs + j * c_cs, (wide)beta, old);                                \
      }                                                                                           \
      for (int64_t p = 0; alpha != 0 && p < k; p++) {                                             \
        type x = 0;                                                                               \
        add_to_##suffix(&x, (wide)alpha, a[i * a_rs + p * a_cs]);                                 \
        add_row_##suffix(n, (wide)x, b + p * b_rs, b_cs, c + i * c_rs, c_cs);                     \
      }                                                                                           \
    }                                                                                             \
  }
GEMM_INTEGERS(GEMM_DEFINE)

#else

typedef struct {
  const REAL *at;
  int64_t rs, cs;
} OPERAND;

/* The destination of a product: at = alpha * product + beta * at. */
typedef struct {
  REAL *at;
  int64_t rs, cs;
  REAL alpha, beta;
} TARGET;

INLINE OPERAND NAME(operand_at)(OPERAND x, int64_t i, int64_t j) {
  return (OPERAND){x.at + i * x.rs + j * x.cs, x.rs, x.cs};
}

INLINE TARGET NAME(target_at)(TARGET c, int64_t i, int64_t j) {
  return (TARGET){c.at + i * c.rs + j * c.cs, c.rs, c.cs, c.alpha, c.beta};
}

INLINE void NAME(merge)(REAL *c, REAL sum, REAL alpha, REAL beta) {
  *c = beta != 0 ? alpha * sum + beta * *c : alpha * sum;
}

INLINE void NAME(merge_vector)(REAL *c, VEC sum, REAL alpha, REAL beta) {
  VEC out = SPLAT(alpha) * sum;
  if (beta != 0) out += SPLAT(beta) * LOAD(c);
  STORE(c, out);
}

/* C = beta * C: a product with k == 0. */
static void NAME(scale)(int64_t m, int64_t n, TARGET c) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      REAL *at = c.at + i * c.rs + j * c.cs;
      *at = c.beta != 0 ? c.beta * *at : 0;
    }
}

/* ---- large products: packed tiles ---------------------------------------- */

INLINE void NAME(add_step)(const REAL *strip, const REAL *panel, VEC sum[TILE_ROWS][2]) {
  VEC left = LOAD(panel), right = LOAD(panel + LANES);
  UNROLL
  for (int i = 0; i < TILE_ROWS; i++) {
    VEC x = LOAD(strip + i * LANES);
    sum[i][0] += x * left;
    sum[i][1] += x * right;
  }
}

/* sum[TILE_ROWS][TILE_COLS] += strip * panel, for k > 0.
 * strip[k][TILE_ROWS][LANES] holds each element of A splatted over the lanes,
 * for a load is cheaper than a broadcast; panel[k] is a row of B, `ld` apart.
 * Engines hoist the loads of a basic block above its arithmetic, and those of
 * two steps do not fit the registers: a way out stands between. */
INLINE void NAME(sum_tile)(ptrdiff_t k, const REAL *strip, const REAL *panel, ptrdiff_t ld,
                           VEC sum[TILE_ROWS][2]) {
  const REAL *end = strip + k * STEP;
  for (;; strip += 2 * STEP, panel += 2 * ld) {
    NAME(add_step)(strip, panel, sum);
    if (strip + STEP == end) return;
    NAME(add_step)(strip + STEP, panel + ld, sum);
    if (strip + 2 * STEP == end) return;
  }
}

/* Sums whole tiles side by side, whose panels are `panel_step` apart, and merges them into c, whose
 * rows or columns are contiguous. The target is passed by pointer so that it holds no registers
 * across the sums. */
static NOINLINE void NAME(multiply_tiles)(ptrdiff_t tiles, ptrdiff_t k, const REAL *strip,
                                          const REAL *panel, ptrdiff_t panel_step, ptrdiff_t ld,
                                          const TARGET *to) {
  REAL *c = to->at;
  for (; tiles > 0; tiles--, panel += panel_step, c += TILE_COLS * (ptrdiff_t)to->cs) {
    VEC sum[TILE_ROWS][2] = {{{0}}};
    NAME(sum_tile)(k, strip, panel, ld, sum);
    ptrdiff_t rs = (ptrdiff_t)to->rs, cs = (ptrdiff_t)to->cs;
    REAL alpha = to->alpha, beta = to->beta;
    UNROLL
    for (int v = 0; v < 2; v++) {
      if (cs == 1) {
        UNROLL
        for (int i = 0; i < TILE_ROWS; i++)
          NAME(merge_vector)(c + i * rs + v * LANES, sum[i][v], alpha, beta);
        continue;
      }
      UNROLL
      for (int i = 0; i < TILE_ROWS; i += LANES) {
        VEC square[LANES];
        UNROLL
        for (int l = 0; l < LANES; l++) square[l] = sum[i + l][v];
        TRANSPOSE(square);
        UNROLL
        for (int l = 0; l < LANES; l++)
          NAME(merge_vector)(c + (v * LANES + l) * cs + i, square[l], alpha, beta);
      }
    }
  }
}

/* Sums and merges one tile that is cut off, or that c holds without contiguous rows or columns. */
static NOINLINE void NAME(multiply_odd_tile)(int64_t rows, int64_t cols, ptrdiff_t k,
                                             const REAL *strip, const REAL *panel, ptrdiff_t ld,
                                             TARGET c) {
  VEC sum[TILE_ROWS][2] = {{{0}}};
  REAL tile[TILE_ROWS * TILE_COLS];
  NAME(sum_tile)(k, strip, panel, ld, sum);
  UNROLL
  for (int i = 0; i < TILE_ROWS; i++) {
    STORE(tile + i * TILE_COLS, sum[i][0]);
    STORE(tile + i * TILE_COLS + LANES, sum[i][1]);
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++)
      NAME(merge)(c.at + i * c.rs + j * c.cs, tile[i * TILE_COLS + j], c.alpha, c.beta);
}

/* strip[k][TILE_ROWS][LANES] from up to TILE_ROWS rows of A, zeros below them. */
static NOINLINE void NAME(pack_strip)(REAL *strip, int64_t rows, ptrdiff_t k, OPERAND a) {
  ptrdiff_t rs = (ptrdiff_t)a.rs, cs = (ptrdiff_t)a.cs, p = 0;
  if (rows >= TILE_ROWS && cs == 1) {
    KEEP_ROLLED
    for (; p + LANES <= k; p += LANES) UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
      VEC x = LOAD(a.at + i * rs + p);
      UNROLL
      for (int l = 0; l < LANES; l++) STORE(strip + (p + l) * STEP + i * LANES, SPLAT(x[l]));
    }
  } else if (rows >= TILE_ROWS && rs == 1) {
    KEEP_ROLLED
    for (; p < k; p++) UNROLL
    for (int i = 0; i < TILE_ROWS; i += LANES) {
      VEC x = LOAD(a.at + i + p * cs);
      UNROLL
      for (int l = 0; l < LANES; l++) STORE(strip + p * STEP + (i + l) * LANES, SPLAT(x[l]));
    }
  }
  for (; p < k; p++)
    for (int i = 0; i < TILE_ROWS; i++)
      STORE(strip + p * STEP + i * LANES, SPLAT(i < rows ? a.at[i * rs + p * cs] : 0));
}

/* LANES columns of a panel from up to LANES columns of B, zeros beside them. */
static void NAME(pack_columns)(REAL *to, int64_t cols, ptrdiff_t k, OPERAND b) {
  ptrdiff_t rs = (ptrdiff_t)b.rs, cs = (ptrdiff_t)b.cs, p = 0;
  if (cols >= LANES && cs == 1) {
    for (; p < k; p++) STORE(to + p * TILE_COLS, LOAD(b.at + p * rs));
  } else if (cols >= LANES && rs == 1) {
    KEEP_ROLLED
    for (; p + LANES <= k; p += LANES) {
      VEC square[LANES];
      UNROLL
      for (int l = 0; l < LANES; l++) square[l] = LOAD(b.at + l * cs + p);
      TRANSPOSE(square);
      UNROLL
      for (int l = 0; l < LANES; l++) STORE(to + (p + l) * TILE_COLS, square[l]);
    }
  }
  for (; p < k; p++)
    for (int j = 0; j < LANES; j++) to[p * TILE_COLS + j] = j < cols ? b.at[p * rs + j * cs] : 0;
}

/* panel[k][TILE_COLS] from up to TILE_COLS columns of B, zeros beside them. */
static NOINLINE void NAME(pack_panel)(REAL *panel, int64_t cols, ptrdiff_t k, OPERAND b) {
  if (cols < TILE_COLS || b.cs != 1) {
    NAME(pack_columns)(panel, cols, k, b);
    if (cols > LANES) b = NAME(operand_at)(b, 0, LANES);
    NAME(pack_columns)(panel + LANES, cols - LANES, k, b);
    return;
  }
  for (ptrdiff_t p = 0; p < k; p++) {
    VEC left = LOAD(b.at + p * (ptrdiff_t)b.rs), right = LOAD(b.at + p * (ptrdiff_t)b.rs + LANES);
    STORE(panel + p * TILE_COLS, left);
    STORE(panel + p * TILE_COLS + LANES, right);
  }
}

/* One block: k within a strip, n within the panels. The strip is splatted once
 * and stays in L1 while the panels pass by from L2. */
static void NAME(multiply_block)(int64_t m, int64_t n, ptrdiff_t k, OPERAND a, OPERAND b, TARGET c,
                                 REAL *strip, REAL *panels) {
  int in_place = b.cs == 1 && reads_in_place(m, k, b.rs * (int64_t)sizeof(REAL));
  int64_t n_in_place = in_place ? n / TILE_COLS * TILE_COLS : 0;
  for (int64_t j = n_in_place; j < n; j += TILE_COLS)
    NAME(pack_panel)(panels + j * k, n - j, k, NAME(operand_at)(b, 0, j));
  int64_t whole = c.cs == 1 || c.rs == 1 ? n / TILE_COLS * TILE_COLS : 0;
  for (int64_t i = 0; i < m; i += TILE_ROWS) {
    int64_t rows = min64(m - i, TILE_ROWS), j = 0;
    if (poll_stops(rows * n * k >> 2)) return;
    TARGET to = NAME(target_at)(c, i, 0);
    NAME(pack_strip)(strip, rows, k, NAME(operand_at)(a, i, 0));
    if (rows == TILE_ROWS) {
      ptrdiff_t tiles = (ptrdiff_t)(whole / TILE_COLS);
      if (in_place) NAME(multiply_tiles)(tiles, k, strip, b.at, TILE_COLS, (ptrdiff_t)b.rs, &to);
      else NAME(multiply_tiles)(tiles, k, strip, panels, TILE_COLS * k, TILE_COLS, &to);
      j = whole;
    }
    for (; j < n; j += TILE_COLS) {
      const REAL *panel = j < n_in_place ? b.at + j : panels + j * k;
      ptrdiff_t ld = j < n_in_place ? (ptrdiff_t)b.rs : TILE_COLS;
      NAME(multiply_odd_tile)(rows, min64(n - j, TILE_COLS), k, strip, panel, ld,
                              NAME(target_at)(to, 0, j));
    }
  }
}

#define BLOCK_COLS (PANELS_BYTES / (int64_t)sizeof(REAL) / DEPTH_MAX)

/* The whole product, block after block of columns and of depth. */
static void NAME(multiply_tiled)(int64_t m, int64_t n, int64_t k, OPERAND a, OPERAND b, TARGET c,
                                 REAL *scratch) {
  int64_t depth = depth_block(k);
  for (int64_t j = 0; j < n; j += BLOCK_COLS)
    for (int64_t p = 0; p < k; p += depth) {
      TARGET to = NAME(target_at)(c, 0, j);
      if (poll_stops(0)) return;
      if (p > 0) to.beta = 1;
      NAME(multiply_block)(m, min64(n - j, BLOCK_COLS), (ptrdiff_t)min64(k - p, depth),
                           NAME(operand_at)(a, 0, p), NAME(operand_at)(b, p, j), to, scratch,
                           scratch + depth * STEP);
    }
}

/* ---- matrix times vector ------------------------------------------------- */

/* Returns `at` itself if contiguous, else its n elements gathered into `room`. */
static const REAL *NAME(contiguous)(REAL *room, ptrdiff_t n, const REAL *at, int64_t stride) {
  if (stride == 1) return at;
  for (ptrdiff_t i = 0; i < n; i++, at += (ptrdiff_t)stride) room[i] = *at;
  return room;
}

#define GROUP 8 /* rows summed at once: as many as the registers hold */

/* sums[GROUP] = up to GROUP rows, contiguous along k, times x. Lanes are rows:
 * squares of products are transposed on the way, so the order stays that of k. */
static NOINLINE void NAME(sum_rows)(REAL *sums, ptrdiff_t rows, ptrdiff_t k, const REAL *a,
                                    ptrdiff_t rs, const REAL *x) {
  const REAL *row[GROUP];
  VEC sum[GROUP / LANES] = {{0}};
  UNROLL
  for (int i = 0; i < GROUP; i++) row[i] = a + (i < rows ? i : rows - 1) * rs;
  ptrdiff_t p = 0;
  KEEP_ROLLED
  for (; p + LANES <= k; p += LANES) {
    VEC steps = LOAD(x + p);
    UNROLL
    for (int g = 0; g < GROUP / LANES; g++) {
      VEC square[LANES];
      UNROLL
      for (int l = 0; l < LANES; l++) square[l] = LOAD(row[g * LANES + l] + p) * steps;
      TRANSPOSE(square);
      UNROLL
      for (int l = 0; l < LANES; l++) sum[g] += square[l];
    }
  }
  UNROLL
  for (int g = 0; g < GROUP / LANES; g++) STORE(sums + g * LANES, sum[g]);
  for (; p < k; p++)
    for (int i = 0; i < GROUP; i++) sums[i] += row[i][p] * x[p];
}

/* sums[rows] += the columns of a matrix, contiguous along them, times x. */
static NOINLINE void NAME(sum_columns)(REAL *sums, ptrdiff_t rows, ptrdiff_t k, const REAL *a,
                                       ptrdiff_t cs, const REAL *x) {
  ptrdiff_t p = 0, i;
  for (; p + 4 <= k; p += 4, a += 4 * cs) {
    const REAL *a1 = a + cs, *a2 = a1 + cs, *a3 = a2 + cs;
    REAL x0 = x[p], x1 = x[p + 1], x2 = x[p + 2], x3 = x[p + 3];
    for (i = 0; i + LANES <= rows; i += LANES) {
      VEC sum = LOAD(sums + i) + SPLAT(x0) * LOAD(a + i) + SPLAT(x1) * LOAD(a1 + i);
      STORE(sums + i, sum + SPLAT(x2) * LOAD(a2 + i) + SPLAT(x3) * LOAD(a3 + i));
    }
    for (; i < rows; i++) sums[i] = sums[i] + x0 * a[i] + x1 * a1[i] + x2 * a2[i] + x3 * a3[i];
  }
  for (; p < k; p++, a += cs)
    for (i = 0; i < rows; i++) sums[i] += x[p] * a[i];
}

#define SLAB_ROWS ((int64_t)VECTOR_BYTES / (int64_t)sizeof(REAL))

/* sums[rows] = A x over one block of k, x contiguous; rows is at most SLAB_ROWS. */
static void NAME(sum_slab)(REAL *sums, ptrdiff_t rows, ptrdiff_t k, OPERAND a, const REAL *x) {
  ptrdiff_t rs = (ptrdiff_t)a.rs, cs = (ptrdiff_t)a.cs;
  if (cs == 1) {
    for (ptrdiff_t i = 0; i < rows; i += GROUP)
      NAME(sum_rows)(sums + i, rows - i, k, a.at + i * rs, rs, x);
    return;
  }
  for (ptrdiff_t i = 0; i < rows; i++) sums[i] = 0;
  if (rs == 1) {
    NAME(sum_columns)(sums, rows, k, a.at, cs, x);
    return;
  }
  for (ptrdiff_t i = 0; i < rows; i++)
    for (ptrdiff_t p = 0; p < k; p++) sums[i] += x[p] * a.at[i * rs + p * cs];
}

/* y (m elements, y.rs apart) = A x. */
static void NAME(multiply_vector)(int64_t m, int64_t k, OPERAND a, const REAL *x, int64_t xs,
                                  TARGET y, REAL *scratch) {
  int64_t depth = depth_block(k);
  REAL *sums = scratch + depth;
  for (int64_t p = 0; p < k; p += depth) {
    ptrdiff_t steps = (ptrdiff_t)min64(k - p, depth);
    const REAL *block = NAME(contiguous)(scratch, steps, x + p * xs, xs);
    REAL beta = p > 0 ? 1 : y.beta;
    for (int64_t i = 0; i < m; i += SLAB_ROWS) {
      ptrdiff_t rows = (ptrdiff_t)min64(m - i, SLAB_ROWS);
      if (poll_stops(rows * steps >> 1)) return;
      NAME(sum_slab)(sums, rows, steps, NAME(operand_at)(a, i, p), block);
      for (ptrdiff_t r = 0; r < rows; r++)
        NAME(merge)(y.at + (i + r) * y.rs, sums[r], y.alpha, beta);
    }
  }
}

/* ---- tiny products ------------------------------------------------------- */

/* A tile of up to TILE_ROWS rows and `vectors` (1 or 2) times LANES columns, A
 * broadcast as it lies. Rows that are missing repeat the last and are dropped;
 * so are columns, for which B must be readable. */
INLINE void NAME(multiply_tiny_tile)(int vectors, ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t k,
                                     OPERAND a, const REAL *b, ptrdiff_t b_rs, TARGET c) {
  const REAL *row[TILE_ROWS];
  VEC sum[TILE_ROWS][2] = {{{0}}};
  ptrdiff_t a_cs = (ptrdiff_t)a.cs, c_rs = (ptrdiff_t)c.rs, c_cs = (ptrdiff_t)c.cs;
  UNROLL
  for (int i = 0; i < TILE_ROWS; i++) row[i] = a.at + (i < rows ? i : rows - 1) * (ptrdiff_t)a.rs;
  KEEP_ROLLED
  for (ptrdiff_t p = 0; p < k; p++, b += b_rs) {
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
      VEC x = SPLAT(row[i][p * a_cs]);
      UNROLL
      for (int v = 0; v < vectors; v++) sum[i][v] += x * LOAD(b + v * LANES);
    }
  }
  if (c_cs == 1 && cols >= vectors * LANES) {
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++)
      if (i < rows)
        for (int v = 0; v < vectors; v++)
          NAME(merge_vector)(c.at + i * c_rs + v * LANES, sum[i][v], c.alpha, c.beta);
    return;
  }
  REAL tile[TILE_ROWS * TILE_COLS];
  UNROLL
  for (int i = 0; i < TILE_ROWS; i++) UNROLL
  for (int v = 0; v < vectors; v++) STORE(tile + i * TILE_COLS + v * LANES, sum[i][v]);
  for (ptrdiff_t i = 0; i < rows; i++)
    for (ptrdiff_t j = 0; j < cols; j++)
      NAME(merge)(c.at + i * c_rs + j * c_cs, tile[i * TILE_COLS + j], c.alpha, c.beta);
}

/* A product that is_tiny. Only a B that is not made of whole vectors is copied. */
static void NAME(multiply_tiny)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, OPERAND a, OPERAND b,
                                TARGET c) {
  REAL panel[TINY_DEPTH * TILE_COLS];
  for (ptrdiff_t j = 0; j < n; j += TILE_COLS) {
    ptrdiff_t cols = n - j < TILE_COLS ? n - j : TILE_COLS;
    OPERAND columns = NAME(operand_at)(b, 0, j);
    if (b.cs != 1 || cols % LANES != 0) {
      NAME(pack_panel)(panel, cols, k, columns);
      columns = (OPERAND){panel, TILE_COLS, 1};
    }
    for (ptrdiff_t i = 0; i < m; i += TILE_ROWS) {
      ptrdiff_t rows = m - i < TILE_ROWS ? m - i : TILE_ROWS;
      OPERAND left = NAME(operand_at)(a, i, 0);
      TARGET to = NAME(target_at)(c, i, j);
      if (cols > LANES)
        NAME(multiply_tiny_tile)(2, rows, cols, k, left, columns.at, (ptrdiff_t)columns.rs, to);
      else NAME(multiply_tiny_tile)(1, rows, cols, k, left, columns.at, (ptrdiff_t)columns.rs, to);
    }
  }
}

/* ---- public -------------------------------------------------------------- */

size_t CAT(NAME(gemm), scratch_bytes)(int64_t m, int64_t n, int64_t k) {
  if (m <= 0 || n <= 0 || k <= 0 || is_tiny(m, n, k)) return 0;
  int64_t depth = depth_block(k);
  int64_t cols = m == 1 || n == 1 ? 0 : min64(round_up(max64(m, n), TILE_COLS), BLOCK_COLS);
  int64_t packed = depth * (STEP + cols), vector = depth + SLAB_ROWS;
  int64_t reals = m == 1 || n == 1 ? vector : packed;
  return (size_t)reals * sizeof(REAL) + CACHE_LINE;
}

void NAME(gemm)(int64_t m, int64_t n, int64_t k, REAL alpha, const REAL *a, int64_t a_rs,
                int64_t a_cs, const REAL *b, int64_t b_rs, int64_t b_cs, REAL beta, REAL *c,
                int64_t c_rs, int64_t c_cs, void *scratch) {
  OPERAND x = {a, a_rs, a_cs}, y = {b, b_rs, b_cs};
  TARGET to = {c, c_rs, c_cs, alpha, beta};
  if (m <= 0 || n <= 0) return;
  if (k <= 0 || alpha == 0) {
    NAME(scale)(m, n, to);
    return;
  }
  if (is_tiny(m, n, k)) {
    TOOK(GEMM_TINY);
    if (poll_stops(m * n * k >> 2)) return;
    NAME(multiply_tiny)((ptrdiff_t)m, (ptrdiff_t)n, (ptrdiff_t)k, x, y, to);
    return;
  }
  OPERAND x_turned = {a, a_cs, a_rs}, y_turned = {b, b_cs, b_rs};
  TARGET to_turned = {c, c_cs, c_rs, alpha, beta};
  uintptr_t line = ((uintptr_t)scratch + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
  REAL *room = (REAL *)line;
  if (m == 1 || n == 1) TOOK(GEMM_VECTOR);
  else TOOK(GEMM_PACKED);
  if (n == 1) NAME(multiply_vector)(m, k, x, b, b_rs, to, room);
  else if (m == 1) NAME(multiply_vector)(n, k, y_turned, a, a_cs, to_turned, room);
  else if (tiled_cost(m, n, k, LANES, c_rs, c_cs) <= tiled_cost(n, m, k, LANES, c_cs, c_rs))
    NAME(multiply_tiled)(m, n, k, x, y, to, room);
  else NAME(multiply_tiled)(n, m, k, y_turned, x_turned, to_turned, room);
}

/* ---- dot product --------------------------------------------------------- */

/* Sum over n <= DOT_BLOCK contiguous elements, in four vectors of partial sums. */
static REAL NAME(dot_block)(ptrdiff_t n, const REAL *x, const REAL *y) {
  VEC sum[4] = {{0}};
  REAL total = 0;
  ptrdiff_t i = 0;
  KEEP_ROLLED
  for (; i + 4 * LANES <= n; i += 4 * LANES) UNROLL
  for (int v = 0; v < 4; v++) sum[v] += LOAD(x + i + v * LANES) * LOAD(y + i + v * LANES);
  for (; i < n; i++) total += x[i] * y[i];
  REAL lanes[LANES];
  STORE(lanes, (sum[0] + sum[1]) + (sum[2] + sum[3]));
  UNROLL
  for (int half = LANES / 2; half > 0; half /= 2) UNROLL
  for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];
  return lanes[0] + total;
}

REAL NAME(gemm_dot)(int64_t n, const REAL *x, int64_t xs, const REAL *y, int64_t ys) {
  REAL x_room[DOT_BLOCK], y_room[DOT_BLOCK];
  REAL level[64]; /* level[b]: the sum of 2^b blocks, where bit b of `blocks` is set */
  uint64_t blocks = 0;
  REAL total = 0;
  for (int64_t i = 0; i < n; i += DOT_BLOCK, blocks++) {
    ptrdiff_t len = (ptrdiff_t)min64(n - i, DOT_BLOCK);
    if (poll_stops(len >> 1)) return 0;
    REAL sum = NAME(dot_block)(len, NAME(contiguous)(x_room, len, x + i * xs, xs),
                               NAME(contiguous)(y_room, len, y + i * ys, ys));
    int bit = 0;
    for (; blocks >> bit & 1; bit++) sum = level[bit] + sum;
    level[bit] = sum;
  }
  for (int bit = 0; blocks >> bit != 0; bit++)
    if (blocks >> bit & 1) total = level[bit] + total;
  return total;
}

#endif

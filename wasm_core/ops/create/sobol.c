/* Sobol sequences: points that fill a cube more evenly than random ones (I. M. Sobol', 1967), by
 * the recurrence of I. A. Antonov and V. M. Saleev, 1979, and scrambled as by A. B. Owen, 1998.
 *
 * A sequence is given by its direction numbers, BITS of them a dimension (the state), and by the
 * point it has come to (quasi), both int64. The host provides the initial numbers. */
#include "create_rows.h"
#include "ground/memory.h"
#include "ops/op.h"
#include "ops/view/copy.h"

enum { BITS = 30 };

static bool check_state(const Tensor *state, int64_t dimension) {
  if (state->dtype != DT_I64) fail(ERR_RUNTIME, "sobolstate needs to be of type Long");
  else if (dimension < 0 || state->ndim != 2 || state->sizes[0] < dimension ||
           state->sizes[1] != BITS)
    fail(ERR_RUNTIME, "pygrad: sobolstate must have %d columns, and a row for each dimension",
         BITS);
  return !failed();
}

static bool check_point(const Tensor *quasi, int64_t dimension) {
  if (quasi->dtype != DT_I64) fail(ERR_RUNTIME, "quasi needs to be of type Long");
  else if (quasi->ndim != 1 || quasi->sizes[0] < dimension)
    fail(ERR_RUNTIME, "pygrad: quasi must have a number for each dimension");
  return !failed();
}

/* Checks that n points follow number `at`. There are 2^BITS points. */
static bool check_points(int64_t at, int64_t n) {
  const int64_t all = INT64_C(1) << BITS;
  if (at >= 0 && at < all && n < all - at) return true;
  fail(ERR_RUNTIME, "pygrad: a Sobol sequence has no more than 2^%d points", BITS);
  return false;
}

static Tensor *plain(Tensor *x) { return WITHOUT_GRAD(t_contiguous(x)); }
static Tensor *copy(Tensor *x) { return WITHOUT_GRAD(t_clone_format(x, FORMAT_CONTIGUOUS)); }
static int64_t *integers(const Tensor *t) { return (int64_t *)(void *)tensor_data(t); }

/* Writes values computed apart to x. */
static Tensor *write_values(Tensor *x, Tensor *values) {
  if (blocked(x, values) || !tensor_copy_data(x, values)) return NULL;
  tensor_bump_version(x);
  return x;
}

/* ------------------------------------------------------------ points */

/* Steps to point number at + 1: applies the direction numbers of the lowest clear bit of `at`. */
static void step(int64_t *quasi, const int64_t *state, int64_t dimension, int64_t at) {
  int bit = __builtin_ctzll(~(uint64_t)at);
  for (int64_t d = 0; d < dimension; d++) quasi[d] ^= state[d * BITS + bit];
}

/* n points after number `at`, (n, dimension) in [0, 1), and the last of them as integers. */
bool t_sobol_engine_draw(Tensor *quasi, int64_t n, Tensor *state, int64_t dimension, int64_t at,
                         DType dtype, Tensor **out) {
  OP_ENTERED_AS(t_sobol_engine_draw(quasi, n, state, dimension, at, dtype, out),
                "_sobol_engine_draw", quasi, n, state, dimension, at);
  if (blocked(quasi, state) || !check_state(state, dimension) || !check_point(quasi, dimension))
    return false;
  if (dtype == DT_NONE) dtype = DT_F32;
  Tensor *points = tensor_empty(2, (int64_t[]){n, dimension}, dtype);
  if (!points || !dtype_check_float_kernel("_sobol_engine_draw", dtype) || !check_points(at, n))
    return false;
  Tensor *now = copy(quasi), *directions = plain(state);
  if (!now || !directions) return false;
  out[0] = points;
  out[1] = now;
  if (tensor_absent(now)) return true;
  int64_t *q = integers(now);
  DISPATCH_FLOAT(dtype, {
    T *o = (T *)(void *)tensor_data(points);
    for (int64_t i = 0; i < n; i++, o += dimension) {
      step(q, integers(directions), dimension, at + i);
      for (int64_t d = 0; d < dimension; d++) o[d] = (T)q[d] * (T)(1.0 / (1 << BITS));
    }
  })
  return true;
}

Tensor *t_sobol_engine_ff_(Tensor *quasi, int64_t n, Tensor *state, int64_t dimension, int64_t at) {
  OP_ENTERED(t_sobol_engine_ff_, "_sobol_engine_ff_", quasi, n, state, dimension, at);
  if (blocked(quasi, state) || !check_state(state, dimension) || !check_point(quasi, dimension))
    return NULL;
  if (n <= 0) return quasi;
  if (!check_points(at, n) || !history_check_inplace(quasi)) return NULL;
  Tensor *now = copy(quasi), *directions = plain(state);
  if (!now || !directions) return NULL;
  if (tensor_absent(now)) return write_values(quasi, now);
  /* Point k combines the direction numbers of the bits of its Gray code. */
  int64_t codes = (at ^ at >> 1) ^ ((at + n) ^ (at + n) >> 1);
  const int64_t *v = integers(directions);
  for (int bit = 0; bit < BITS; bit++)
    for (int64_t d = 0; codes >> bit & 1 && d < dimension; d++)
      integers(now)[d] ^= v[d * BITS + bit];
  return write_values(quasi, now);
}

/* ------------------------------------------------------------ states */

/* Initial direction numbers as the host packs them, for each dimension but the first. `gaps`: a
 * byte each, half the difference of its polynomial from the one before. `bits`: its first numbers,
 * lowest bit first. Number k is odd and below 2^(k + 1), so it takes k bits. */
typedef struct {
  const uint8_t *gaps, *bits;
  int64_t n, n_bits, at;
} Packed;

enum { DIMENSIONS = 21201 };

static int64_t unpack_number(Packed *p, int n) {
  int64_t v = 0;
  for (int k = 0; k < n; k++, p->at++)
    if (p->at < p->n_bits) v |= (int64_t)(p->bits[p->at / 8] >> p->at % 8 & 1) << k;
  return 2 * v + 1;
}

/* m_j = 2^degree m_(j - degree) ^ the sum of 2^k c_k m_(j - k), c the polynomial's coefficients. */
static void directions(int64_t *row, Packed *p, uint32_t polynomial) {
  int degree = 31 - __builtin_clz(polynomial);
  for (int j = 0; j < degree && j < BITS; j++) row[j] = unpack_number(p, j);
  for (int j = degree; j < BITS; j++) {
    row[j] = row[j - degree];
    for (int k = 1; k <= degree; k++)
      if (polynomial >> (degree - k) & 1) row[j] ^= row[j - k] << k;
  }
}

Tensor *t_sobol_engine_initialize_state_(Tensor *state, int64_t dimension, Tensor *numbers) {
  OP_ENTERED(t_sobol_engine_initialize_state_, "_sobol_engine_initialize_state_", state, dimension,
             numbers);
  if (blocked(state, numbers) || !check_state(state, dimension)) return NULL;
  if (numbers->dtype != DT_U8 || numbers->ndim != 1 || numbers->numel < DIMENSIONS)
    return fail(ERR_RUNTIME, "pygrad: these are no direction numbers");
  if (dimension > DIMENSIONS)
    return fail(ERR_RUNTIME, "pygrad: there are direction numbers of %d dimensions", DIMENSIONS);
  Tensor *now = copy(state), *bytes = plain(numbers);
  if (!now || !bytes || !history_check_inplace(state)) return NULL;
  if (tensor_absent(now)) return write_values(state, now);
  Packed p = {.gaps = (const uint8_t *)tensor_data(bytes), .n = DIMENSIONS - 1};
  p.bits = p.gaps + p.n;
  p.n_bits = 8 * (numbers->numel - p.n);
  uint32_t polynomial = 1;
  int64_t *v = integers(now);
  for (int64_t d = 0; d < dimension; d++) {
    if (d) polynomial = (polynomial + 2 * p.gaps[d - 1]) & 0xfffff;
    if (d) directions(v + d * BITS, &p, polynomial);
    else
      for (int j = 0; j < BITS; j++) v[j] = 1;
  }
  for (int64_t i = 0; i < now->numel; i++)
    v[i] = (int64_t)((uint64_t)v[i] << (BITS - 1 - i % BITS));
  return write_values(state, now);
}

/* Multiplies all numbers, as vectors of bits, by one lower triangular matrix for each dimension.
 * The diagonals count as ones. */
Tensor *t_sobol_engine_scramble_(Tensor *state, Tensor *matrices, int64_t dimension) {
  OP_ENTERED(t_sobol_engine_scramble_, "_sobol_engine_scramble_", state, matrices, dimension);
  if (blocked(state, matrices) || !check_state(state, dimension)) return NULL;
  if (matrices->dtype != DT_I64)
    return fail(ERR_RUNTIME, "expected scalar type Long but found %s", legacy(matrices));
  if (matrices->ndim != 3 || matrices->sizes[0] < dimension || matrices->sizes[1] != BITS ||
      matrices->sizes[2] != BITS)
    return fail(ERR_RUNTIME, "pygrad: ltm must be of size (dimension, %d, %d)", BITS, BITS);
  Tensor *now = copy(state), *rows = plain(matrices);
  if (!now || !rows || !history_check_inplace(state)) return NULL;
  if (tensor_absent(now)) return write_values(state, now);
  for (int64_t d = 0; d < dimension; d++) {
    const int64_t *m = integers(rows) + d * BITS * BITS;
    uint64_t row[BITS];
    for (int i = 0; i < BITS; i++) {
      row[i] = 0;
      for (int j = 0; j < BITS; j++)
        row[i] += (uint64_t)(i == j ? 1 : m[i * BITS + j]) << (BITS - 1 - j);
      row[i] &= (UINT64_C(1) << BITS) - 1;
    }
    int64_t *v = integers(now) + d * BITS;
    for (int j = 0; j < BITS; j++) {
      int64_t scrambled = 0;
      for (int i = 0; i < BITS; i++)
        scrambled = 2 * scrambled + __builtin_parityll(row[i] & (uint64_t)v[j]);
      v[j] = scrambled;
    }
  }
  return write_values(state, now);
}

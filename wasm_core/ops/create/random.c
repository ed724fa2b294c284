/* Generators, and the fills of rng.h spread over tensors of any layout, dtype and history.
 *
 * Elements are drawn in the order of memory, as rng.h asks, run after run; a fill checks its
 * arguments before the first draw. The streams themselves are in rng.c. */
#include "ops/create/random.h"
#include "create_rows.h"
#include "ground/poll.h"
#include "ops/view/view.h"
#include "tape/levels.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "kernels/maths.h"
#include "ops/create/create.h"
#include "ops/elementwise/elementwise.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "tensor/iter.h"

/* ------------------------------------------------------------ generators */

static Rng default_rng;
static Rng **others; /* id - 1 -> generator, NULL where one was freed */
static int32_t n_others;

Rng *random_generator(int32_t id) {
  if (failed()) return NULL;
  if (id == 0) {
    if (default_rng.left == 0) rng_seed(&default_rng, RNG_DEFAULT_SEED); /* nobody has yet */
    return &default_rng;
  }
  if (id > 0 && id <= n_others && others[id - 1]) return others[id - 1];
  return fail(ERR_RUNTIME, "pygrad: there is no generator %d (was it freed?)", (int)id);
}

/* The index of a free slot, where the table grows if it must; -1 on OOM. */
static int32_t free_slot(void) {
  for (int32_t i = 0; i < n_others; i++)
    if (!others[i]) return i;
  int32_t n = n_others, grown_n = n ? 2 * n : 8;
  Rng **grown = mem_alloc_zero((size_t)grown_n * sizeof *grown);
  if (!grown) return -1;
  if (n) memcpy(grown, others, (size_t)n * sizeof *grown);
  if (n) mem_free(others, (size_t)n * sizeof *grown);
  others = grown;
  n_others = grown_n;
  return n;
}

Rng *random_source(int32_t id) { return vmap_may_draw() ? random_generator(id) : NULL; }

int32_t random_generator_new(void) {
  int32_t slot = failed() ? -1 : free_slot();
  Rng *r = slot >= 0 ? mem_alloc(sizeof *r) : NULL;
  if (!r) return 0;
  rng_seed(r, RNG_DEFAULT_SEED);
  others[slot] = r;
  return slot + 1;
}

void random_generator_free(int32_t id) {
  Rng *r = random_generator(id);
  if (!r || id == 0) return;
  mem_free(r, sizeof *r);
  others[id - 1] = NULL;
}

void random_seed(int32_t id, int64_t seed) {
  Rng *r = random_generator(id);
  if (r) rng_seed(r, (uint64_t)seed);
}

int64_t random_initial_seed(int32_t id) {
  const Rng *r = random_generator(id);
  return r ? (int64_t)r->seed : 0;
}

Tensor *random_state(int32_t id) {
  const Rng *r = random_generator(id);
  Tensor *state = r ? tensor_empty(1, (const int64_t[]){RNG_STATE_BYTES}, DT_U8) : NULL;
  if (state && !tensor_absent(state)) rng_state_export(r, (uint8_t *)tensor_data(state));
  return state;
}

void random_set_state(int32_t id, Tensor *state) {
  Rng *r = random_generator(id);
  if (!r || !state) return;
  if (state->dtype != DT_U8) fail(ERR_TYPE, "RNG state must be a torch.ByteTensor");
  else if (!tensor_is_contiguous(state)) fail(ERR_RUNTIME, "RNG state must be contiguous");
  else if (state->numel != RNG_STATE_BYTES)
    fail(
        ERR_RUNTIME,
        "Expected a CPUGeneratorImplState of size %d but found the input RNG state size to be %lld",
        RNG_STATE_BYTES, (Shown)state->numel);
  else if ((state = tensor_settled(state)) &&
           !rng_state_import(r, (const uint8_t *)tensor_data(state)))
    fail(ERR_RUNTIME, "Invalid mt19937 state");
}

/* ------------------------------------------------------------ filling in memory order */

typedef struct Draw Draw;
typedef void Fill(const Draw *d, void *out, int64_t n); /* n contiguous elements */
struct Draw {
  Rng *rng;
  double a, b;       /* the numbers of a continuous distribution, or p */
  int64_t low, high; /* the bounds of integers */
  Fill *fill;
  int64_t width;
};

#define NO_NUMBER
#define ONE_NUMBER , d->a
#define TWO_NUMBERS , d->a, d->b
#define ONE_BOUND , d->low
#define TWO_BOUNDS , d->low, d->high
#define FILL(name, T, C, ...)                                   \
  static void name##_##T(const Draw *d, void *out, int64_t n) { \
    rng_##name##_##T(d->rng, (C *)out, n __VA_ARGS__);          \
  }
#define FLOAT_FILLS(name, ...)         \
  FILL(name, f32, float, __VA_ARGS__)  \
  FILL(name, f64, double, __VA_ARGS__) \
  static Fill *const name##_fills[DT_COUNT] = {[DT_F32] = name##_f32, [DT_F64] = name##_f64};
#define ALL_FILLS(name, ...)                                                                 \
  FILL(name, f32, float, __VA_ARGS__)                                                        \
  FILL(name, f64, double, __VA_ARGS__)                                                       \
  FILL(name, i64, int64_t, __VA_ARGS__)                                                      \
  FILL(name, i32, int32_t, __VA_ARGS__)                                                      \
  FILL(name, i16, int16_t, __VA_ARGS__)                                                      \
  FILL(name, i8, int8_t, __VA_ARGS__)                                                        \
  FILL(name, u8, uint8_t, __VA_ARGS__)                                                       \
  FILL(name, bool, bool, __VA_ARGS__)                                                        \
  static Fill *const name##_fills[DT_COUNT] = {[DT_F32] = name##_f32, [DT_F64] = name##_f64, \
                                               [DT_I64] = name##_i64, [DT_I32] = name##_i32, \
                                               [DT_I16] = name##_i16, [DT_I8] = name##_i8,   \
                                               [DT_U8] = name##_u8,   [DT_BOOL] = name##_bool};

/* Half types are drawn as float. Only random_() draws integers of as many bits as the type
 * holds. */
#define HALF_FILL(s, DIGITS)                                                                  \
  static void random_##s(const Draw *d, void *out, int64_t n) {                               \
    float *o = out;                                                                           \
    for (int64_t i = 0; i < n; i++) o[i] = (float)(rng_u32(d->rng) % ((1u << (DIGITS)) + 1)); \
  }
HALF_FILL(f16, 11)
HALF_FILL(bf16, 8)
/* Fills whole blocks, then the last 16 elements as a block if a rest is left. */
static void normal_half(const Draw *d, void *out, int64_t n) {
  enum { BLOCK = 16 };
  float *o = out;
  int64_t whole = n < BLOCK ? n : n / BLOCK * BLOCK;
  rng_normal_f32(d->rng, o, whole, d->a, d->b);
  if (whole < n) rng_normal_f32(d->rng, o + n - BLOCK, BLOCK, d->a, d->b);
}

FLOAT_FILLS(uniform, TWO_NUMBERS)
FLOAT_FILLS(normal, TWO_NUMBERS)
FLOAT_FILLS(normal_serial, TWO_NUMBERS)
FLOAT_FILLS(exponential, ONE_NUMBER)
FLOAT_FILLS(cauchy, TWO_NUMBERS)
FLOAT_FILLS(log_normal, TWO_NUMBERS)
ALL_FILLS(bernoulli, ONE_NUMBER)
ALL_FILLS(geometric, ONE_NUMBER)
ALL_FILLS(random, NO_NUMBER)
ALL_FILLS(random_from, ONE_BOUND)
ALL_FILLS(randint, TWO_BOUNDS)

enum { RUN = 256 };

/* Elements that lie apart are drawn to a block on the stack first. */
static void fill_loop(char **p, const int64_t *st, int64_t n, const void *ctx) {
  const Draw *d = ctx;
  if (st[0] == d->width) {
    d->fill(d, p[0], n);
    return;
  }
  _Alignas(16) char block[RUN * 8];
  char *out = p[0];
  for (int64_t done = 0; done < n; done += RUN) {
    int64_t m = n - done < RUN ? n - done : RUN;
    d->fill(d, block, m);
    for (int64_t i = 0; i < m; i++, out += st[0])
      memcpy(out, block + i * d->width, (size_t)d->width);
  }
}

static Fill *half_fill(Fill *const *fills, DType d) {
  if (fills == random_fills) return d == DT_F16 ? random_f16 : random_bf16;
  return fills == normal_fills ? normal_half : fills[DT_F32];
}

/* Fills x from a distribution's table; `kernel` is what PyTorch's error names for a dtype
 * without an entry. */
static Tensor *fill(Tensor *x, Fill *const *fills, const char *kernel, int32_t gen, Draw d) {
  if (blocked(x) || !copy_check_overlap(x)) return NULL;
  const bool half = dtype_is_half(tensor_dtype(x));
  Tensor *y = half ? tensor_empty_like(x, DT_F32) : x;
  d.fill = half ? half_fill(fills, tensor_dtype(x)) : fills[x->dtype];
  d.width = y ? dtype_bytes(tensor_dtype(y)) : 0;
  if (!d.fill) return dtype_no_kernel(kernel, tensor_dtype(x));
  if (tensor_absent(x)) return x;
  d.rng = random_source(gen);
  if (!y || !d.rng || !tensor_write_begin(x, true)) return NULL;
  iter_over(1, &y, fill_loop, &d);
  return y == x || tensor_copy_data(x, y) ? x : NULL;
}

/* ------------------------------------------------------------ continuous distributions */

static bool check_uniform(const Tensor *x, double from, double to) {
  bool is_float = x->dtype == DT_F32;
  const double max = is_float ? (double)FLT_MAX : DBL_MAX;
  const char *name = is_float ? "float" : "double";
  if (!(from >= -max && from <= max))
    return fail(ERR_RUNTIME, "from is out of bounds for %s", name), false;
  if (!(to >= -max && to <= max))
    return fail(ERR_RUNTIME, "to is out of bounds for %s", name), false;
  if (!(from <= to))
    return fail(ERR_RUNTIME,
                "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from,
                to),
           false;
  if (to - from <= max) return true;
  fail(ERR_RUNTIME,
       "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and from=%g "
       "which result in to-from to exceed the limit",
       legacy(x), to, from);
  return false;
}

/* Complex numbers draw their parts, one number after the other. */
static Tensor *parts_of(Tensor *x) {
  return x && dtype_is_complex(tensor_dtype(x)) ? WITHOUT_GRAD(t_view_as_real(x)) : NULL;
}

static Tensor *fill_uniform(Tensor *x, double from, double to, int32_t gen) {
  Tensor *parts = parts_of(x);
  if (parts) return fill_uniform(parts, from, to, gen) ? x : NULL;
  if (blocked(x) || (dtype_is_float(tensor_dtype(x)) && !check_uniform(x, from, to))) return NULL;
  return fill(x, uniform_fills, "check_uniform_bounds", gen, (Draw){.a = from, .b = to});
}

Tensor *random_uniform(Tensor *x, double from, double to, int32_t gen) {
  OP_ENTERED(random_uniform, "uniform_", x, from, to, gen);
  return fill_uniform(x, from, to, gen);
}

/* in_blocks: with the fill of contiguous tensors. */
static Tensor *fill_normal(Tensor *x, bool in_blocks, double mean, double std, int32_t gen) {
  if (blocked(x)) return NULL;
  if (!(std >= 0)) return fail(ERR_RUNTIME, "normal expects std >= 0.0, but found std %g", std);
  Tensor *parts = parts_of(x); /* each with half the variance */
  if (parts) return fill_normal(parts, in_blocks, mean, std / sqrt(2), gen) ? x : NULL;
  return fill(x, in_blocks ? normal_fills : normal_serial_fills, "normal_kernel_cpu", gen,
              (Draw){.a = mean, .b = std});
}

Tensor *random_normal(Tensor *x, double mean, double std, int32_t gen) {
  OP_ENTERED(random_normal, "normal_", x, mean, std, gen);
  return blocked(x) ? NULL : fill_normal(x, tensor_is_contiguous(x), mean, std, gen);
}

static bool check_continuous(const Tensor *x, const char *distribution, const char *type) {
  if (dtype_is_float(tensor_dtype(x))) return true;
  fail(ERR_RUNTIME,
       "%s distribution is a continuous probability distribution. dtype must be a floating point "
       "but you specified %s",
       distribution, type);
  return false;
}

static Tensor *random_exponential(Tensor *x, double lambda, int32_t gen) {
  OP_ENTERED(random_exponential, "exponential_", x, lambda, gen);
  if (blocked(x)) return NULL;
  if (!(lambda > 0))
    return fail(ERR_RUNTIME, "exponential_ expects lambda > 0.0, but found lambda=%g", lambda);
  if (!check_continuous(x, "Exponential", legacy(x))) return NULL;
  return fill(x, exponential_fills, "exponential_cpu", gen, (Draw){.a = lambda});
}

/* The integers that a type holds without a gap. */
static const struct {
  int64_t min, max;
} native[DT_COUNT] = {[DT_U8] = {0, UINT8_MAX},
                      [DT_I8] = {INT8_MIN, INT8_MAX},
                      [DT_I16] = {INT16_MIN, INT16_MAX},
                      [DT_I32] = {INT32_MIN, INT32_MAX},
                      [DT_I64] = {INT64_MIN, INT64_MAX},
                      [DT_U16] = {0, UINT16_MAX},
                      [DT_U32] = {0, UINT32_MAX},
                      [DT_U64] = {0, INT64_MAX},
                      [DT_F16] = {-(INT64_C(1) << 11), INT64_C(1) << 11},
                      [DT_BF16] = {-(INT64_C(1) << 8), INT64_C(1) << 8},
                      [DT_F32] = {-(INT64_C(1) << 24), INT64_C(1) << 24},
                      [DT_F64] = {-(INT64_C(1) << 53), INT64_C(1) << 53},
                      [DT_BOOL] = {0, 1}};

static Tensor *random_cauchy(Tensor *x, double median, double sigma, int32_t gen) {
  OP_ENTERED(random_cauchy, "cauchy_", x, median, sigma, gen);
  if (blocked(x)) return NULL;
  if (!(sigma > 0))
    return fail(ERR_RUNTIME, "cauchy_ expects sigma > 0.0, but found sigma=%g", sigma);
  if (!check_continuous(x, "Cauchy", dtype_c_name(tensor_dtype(x)))) return NULL;
  return fill(x, cauchy_fills, "cauchy_cpu", gen, (Draw){.a = median, .b = sigma});
}

static Tensor *random_log_normal(Tensor *x, double mean, double std, int32_t gen) {
  OP_ENTERED(random_log_normal, "log_normal_", x, mean, std, gen);
  if (blocked(x)) return NULL;
  if (!(std > 0)) return fail(ERR_RUNTIME, "log_normal_ expects std > 0.0, but found std=%g", std);
  return fill(x, log_normal_fills, "log_normal_cpu", gen, (Draw){.a = mean, .b = std});
}

/* ------------------------------------------------------------ discrete distributions */

static Tensor *random_geometric(Tensor *x, double p, int32_t gen) {
  OP_ENTERED(random_geometric, "geometric_", x, p, gen);
  if (blocked(x)) return NULL;
  if (!(p > 0 && p < 1))
    return fail(ERR_RUNTIME, "geometric_ expects p to be in (0, 1), but got p=%g", p);
  if (x->dtype == DT_BOOL) return dtype_no_kernel("geometric_cpu", DT_BOOL);
  return fill(x, geometric_fills, "geometric_cpu", gen, (Draw){.a = p});
}

Tensor *random_bernoulli(Tensor *x, double p, int32_t gen) {
  OP_ENTERED(random_bernoulli, "bernoulli_", x, p, gen);
  if (blocked(x)) return NULL;
  if (!(p >= 0 && p <= 1))
    return fail(ERR_RUNTIME, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
  return fill(x, bernoulli_fills, "bernoulli_scalar_cpu_", gen, (Draw){.a = p});
}

static int type_digits(DType d) {
  return d == DT_F32 ? 24 : d == DT_F16 ? 11 : d == DT_BF16 ? 8 : 53;
}

/* A bound that an integer type lacks is an error; one past what a float holds exactly, a
 * warning. */
static bool check_bound(const Tensor *x, int64_t bound, const char *which) {
  if (bound >= native[x->dtype].min && bound <= native[x->dtype].max) return true;
  const char *name = dtype_c_name(tensor_dtype(x));
  if (!dtype_is_float(tensor_dtype(x)))
    return fail(ERR_RUNTIME, "%s is out of bounds for %s", which, name), false;
  int digits = type_digits(tensor_dtype(x));
  warn_user("%s is out of bounds [-(2^%d), 2^%d]. Due to precision limitations %s can support "
            "discrete uniform distribution only within this range. This warning will become an "
            "error in version 1.7 release, please fix the code in advance",
            which, digits, digits, name);
  return true;
}

/* Moves the bounds to numbers that x's dtype holds. */
static bool round_bounds(const Tensor *x, int64_t *low, int64_t *high) {
  return x->dtype == DT_F64 ? rng_randint_bounds_f64(low, high) : rng_randint_bounds_f32(low, high);
}

/* Unsigned types without fills of their own: drawn as int64, then cast. */
static bool drawn_wide(DType d) { return d == DT_U16 || d == DT_U32 || d == DT_U64; }

static Tensor *fill_from_wide(Tensor *x, int64_t low, int64_t high, int32_t gen) {
  static const char kernel[] = "random_from_to_kernel_cpu";
  if (!copy_check_overlap(x) || !tensor_write_begin(x, true)) return NULL;
  if (tensor_absent(x)) return x;
  Tensor *wide = tensor_empty_like(x, DT_I64);
  wide = fill(wide, randint_fills, kernel, gen, (Draw){.low = low, .high = high});
  return wide && tensor_copy_data(x, wide) ? x : NULL;
}

/* in [low, high) */
Tensor *random_integers(Tensor *x, int64_t low, int64_t high, int32_t gen) {
  OP_ENTERED(random_integers, "random_", x, low, high, gen);
  if (blocked(x)) return NULL;
  if (low >= high)
    return fail(ERR_RUNTIME,
                "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                (Shown)low, (Shown)high);
  if (dtype_is_float(tensor_dtype(x)) && !round_bounds(x, &low, &high))
    return fail(ERR_RUNTIME,
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but "
                "got from=%lld >= to=%lld",
                (Shown)low, (Shown)high);
  if (!check_bound(x, low, "from") || !check_bound(x, high - 1, "to - 1")) return NULL;
  if (drawn_wide(tensor_dtype(x))) return fill_from_wide(x, low, high, gen);
  return fill(x, randint_fills, "random_from_to_kernel_cpu", gen, (Draw){.low = low, .high = high});
}

/* Draws from all integers that the dtype holds without a gap. */
static Tensor *random_words(Tensor *x, int32_t gen) {
  OP_ENTERED(random_words, "random_", x, gen);
  return fill(x, random_fills, "random_kernel_cpu", gen, (Draw){.a = 0});
}

/* Draws from low to the last number of the dtype. The least int64 stands for no bound at all. */
static Tensor *random_integers_from(Tensor *x, int64_t low, int32_t gen) {
  OP_ENTERED(random_integers_from, "random_", x, low, gen);
  if (blocked(x)) return NULL;
  DType d = tensor_dtype(x);
  if (low == INT64_MIN) {
    if (d != DT_I64 && !dtype_is_float(d))
      return fail(
          ERR_RUNTIME,
          "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
  } else {
    int64_t from = low, unused = INT64_MAX, last = native[d].max;
    if (dtype_is_float(d)) {
      round_bounds(x, &from, &unused);
      if (from >= last)
        return fail(ERR_RUNTIME,
                    "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' "
                    "casted to dtype, but got from=%lld > to_inc=%lld",
                    (Shown)from, (Shown)last);
    }
    if (!check_bound(x, from, "from")) return NULL;
    if (dtype_is_half(d) || d == DT_U16 || d == DT_U32)
      return random_integers(x, from, last + 1, gen);
  }
  return fill(x, random_from_fills, "random_from_to_kernel_cpu", gen, (Draw){.low = low});
}

/* the number in the tensor argument of randint_like */
int64_t random_high(Tensor *high) {
  if (blocked(high)) return 0;
  if (high->ndim) fail(ERR_RUNTIME, "high must be a scalar tensor and on CPU");
  return high->ndim ? 0 : tensor_get_i(high, 0);
}

static bool check_count(const Tensor *x, int64_t n) {
  if (x->dtype == DT_BOOL) return dtype_no_kernel("randperm", DT_BOOL), false;
  if (n == 0 || n - 1 <= native[x->dtype].max) return true;
  if (dtype_is_float(tensor_dtype(x)))
    fail(ERR_RUNTIME, "n cannot be greater than 2^%d+1 for %s type.", type_digits(tensor_dtype(x)),
         legacy(x));
  else
    fail(ERR_RUNTIME, "value cannot be converted to type %s_t without overflow",
         dtype_info[x->dtype].name);
  return false;
}

/* A permutation of 0 .. numel - 1. */
Tensor *random_permutation(Tensor *x, int32_t gen) {
  OP_ENTERED(random_permutation, "randperm", x, gen);
  Rng *r = blocked(x) ? NULL : random_source(gen);
  if (!r || !copy_check_overlap(x) || !check_count(x, x->numel)) return NULL;
  if (tensor_absent(x)) return x;
  bool direct = x->dtype == DT_I64 && tensor_is_contiguous(x);
  Tensor *y = direct ? x : tensor_empty(x->ndim, x->sizes, DT_I64);
  if (!y || !tensor_write_begin(y, true)) return NULL;
  rng_randperm_i64(r, (int64_t *)(void *)tensor_data(y), x->numel);
  return direct || tensor_copy_data(x, y) ? x : NULL;
}

/* ------------------------------------------------------------ a probability an element */

static void range_loop(char **p, const int64_t *st, int64_t n, const void *ctx) {
  const Tensor *x = ctx;
  const char *in = p[0];
  for (int64_t i = 0; i < n && !failed(); i++, in += st[0]) {
    double v = element_load_f(in, tensor_dtype(x));
    if (v >= 0 && v <= 1) continue;
    fail(ERR_RUNTIME,
         "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be "
         "improved?  If so, please report an enhancement request to PyTorch.)");
  }
}

typedef struct {
  Rng *rng;
  DType to, from;
} Coins;

static void coins_loop(char **p, const int64_t *st, int64_t n, const void *ctx) {
  const Coins *coins = ctx;
  Rng *r = coins->rng;
  char *out = p[0];
  const char *in = p[1];
  DISPATCH_ALL(coins->to, {
    for (int64_t i = 0; i < n; i++, out += st[0], in += st[1])
      *(T *)(void *)out = coins->from == DT_F32
                              ? rng_bernoulli_one_f32(r, *(const float *)(const void *)in)
                              : rng_bernoulli_one_f64(r, *(const double *)(const void *)in);
  })
}

/* Sets each x to 1 with the probability at its place in p, which broadcasts to x. */
static Tensor *random_bernoulli_each(Tensor *x, Tensor *p, int32_t gen) {
  OP_ENTERED(random_bernoulli_each, "bernoulli_", x, p, gen);
  if (blocked(x) || !p || !copy_check_overlap(x)) return NULL;
  Tensor *wide = NULL;
  WITHOUT_GRAD_BLOCK {
    wide = t_expand(p, x->ndim, x->sizes);
    Overlap overlap = wide ? tensor_overlap(x, wide) : OVERLAP_NONE;
    if (overlap == OVERLAP_PARTIAL || overlap == OVERLAP_PERHAPS) wide = t_clone(wide);
  }
  if (!wide) return NULL;
  if (!dtype_check_float_kernel("bernoulli_tensor_cpu_p_", tensor_dtype(p))) return NULL;
  if (dtype_is_half(tensor_dtype(x))) {
    Tensor *y = random_bernoulli_each(tensor_empty_like(x, DT_F32), p, gen);
    return y && tensor_write_begin(x, true) && tensor_copy_data(x, y) ? x : NULL;
  }
  if (dtype_is_half(tensor_dtype(p))) {
    p = elementwise_cast(p, DT_F32);
    wide = p ? WITHOUT_GRAD(t_expand(p, x->ndim, x->sizes)) : NULL;
    if (!wide) return NULL;
  }
  if (tensor_absent(x)) return x;
  Coins coins = {random_source(gen), tensor_dtype(x), tensor_dtype(p)};
  iter_over(1, &p, range_loop, p);
  if (!coins.rng || !tensor_write_begin(x, x->storage != wide->storage)) return NULL;
  iter_over(2, (Tensor *[]){x, wide}, coins_loop, &coins);
  return x;
}

/* ------------------------------------------------------------ factories */

/* Gives out these sizes. Its strides stay if it has the sizes already. */
static Tensor *resize_out(Tensor *out, int ndim, const int64_t *sizes) {
  if (failed() || sizes_numel(ndim, sizes) < 0) return NULL;
  if (sizes_equal(out->ndim, out->sizes, ndim, sizes)) return out;
  return tensor_resize(out, ndim, sizes) ? out : NULL;
}

/* The tensor that a factory fills: out=, resized without a warning, or a new one. Options begin at
 * argument k. */
Tensor *random_target(const Call *c, int k, Ints sizes, DType absent) {
  DType dtype = create_option_dtype(c, k, absent);
  if (failed()) return NULL;
  Tensor *out = c->out.tag == TAG_TENSOR ? c->out.t : NULL;
  return made(c, k, out ? resize_out(out, sizes.n, sizes.v) : t_empty(sizes, dtype, NULL));
}

/* A tensor like argument 0; memory_format follows the options. */
Tensor *random_like(Call *c, int k) {
  Tensor *x = arg_tensor(c, 0);
  if (blocked(x)) return NULL;
  return made(c, k, t_like(x, NULL, create_option_dtype(c, k, tensor_dtype(x)), arg_str(c, k + 5)));
}

/* ------------------------------------------------------------ ops in place */

/* Drawn values depend on nothing: every input gets a zero gradient. */
static void grad_zeros(Node *n, Tensor **g, Tensor **gi) {
  for (int i = 0; i < n->n_edges; i++)
    if (needs(n, i)) gi[i] = t_zeros_like(g[0]);
}
#define DRAWN_FROM(name, fields) \
  static const NodeType name = {#name, grad_zeros, fields, false, NULL, NULL};
#define DRAWN(name) DRAWN_FROM(name, "")
DRAWN(UniformBackward0)
DRAWN(NormalBackward0)
DRAWN_FROM(NormalBackward1, "| mean_sym_sizes:sizes0")
DRAWN_FROM(NormalBackward2, "| std_sym_sizes:sizes0")
DRAWN_FROM(NormalBackward3, "| mean_sym_sizes:ints std_sym_sizes:ints")
DRAWN(ExponentialBackward0)
DRAWN(CauchyBackward0)
DRAWN(LogNormalBackward0)
DRAWN(GeometricBackward0)
DRAWN(BernoulliBackward0)
DRAWN(BernoulliBackward1)
DRAWN(BernoulliBackward2)
DRAWN(RandomBackward0)
DRAWN(RandomBackward1)
DRAWN(RandomBackward2)

NO_DERIVATIVE(bernoulli)

/* The node of an in-place op on x, whose values may depend on p (or NULL). */
static Node *drawn_node(const NodeType *type, Tensor *x, Tensor *p) {
  return dtype_is_float(tensor_dtype(x)) ? node_new(type, 0, 0, x, p, NULL) : NULL;
}

static Tensor *record_fill(Tensor *x, Node *n, const Tensor *filled) {
  if (!filled) {
    node_drop(n);
    return NULL;
  }
  tensor_bump_version(x);
  record_rebase(x, n);
  return x;
}

/* An in-place op on x: its signature, what it records, and the fill. */
#define IN_PLACE(signature, Type, filled)                      \
  Tensor *signature {                                          \
    if (blocked(x) || !history_check_inplace(x)) return NULL;  \
    return record_fill(x, drawn_node(&Type, x, NULL), filled); \
  }
IN_PLACE(t_uniform_(Tensor *x, double from, double to, int32_t gen), UniformBackward0,
         random_uniform(x, from, to, gen))
IN_PLACE(t_normal_(Tensor *x, double mean, double std, int32_t gen), NormalBackward0,
         random_normal(x, mean, std, gen))
IN_PLACE(t_exponential_(Tensor *x, double lambda, int32_t gen), ExponentialBackward0,
         random_exponential(x, lambda, gen))
IN_PLACE(t_cauchy_(Tensor *x, double median, double sigma, int32_t gen), CauchyBackward0,
         random_cauchy(x, median, sigma, gen))
IN_PLACE(t_log_normal_(Tensor *x, double mean, double std, int32_t gen), LogNormalBackward0,
         random_log_normal(x, mean, std, gen))
IN_PLACE(t_geometric_(Tensor *x, double p, int32_t gen), GeometricBackward0,
         random_geometric(x, p, gen))
IN_PLACE(t_bernoulli_(Tensor *x, double p, int32_t gen), BernoulliBackward2,
         random_bernoulli(x, p, gen))
IN_PLACE(t_random_(Tensor *x, int32_t gen), RandomBackward2, random_words(x, gen))
IN_PLACE(t_random_to_(Tensor *x, int64_t high, int32_t gen), RandomBackward1,
         random_integers(x, 0, high, gen))
IN_PLACE(t_random_from_(Tensor *x, int64_t low, const int64_t *high, int32_t gen), RandomBackward0,
         high ? random_integers(x, low, *high, gen) : random_integers_from(x, low, gen))

/* p broadcasts to x */
Tensor *t_bernoulli_each_(Tensor *x, Tensor *p, int32_t gen) {
  if (blocked(x) || !p || !history_check_inplace_by(x, p)) return NULL;
  return record_fill(x, drawn_node(&BernoulliBackward1, x, p), random_bernoulli_each(x, p, gen));
}

/* ------------------------------------------------------------ ops */

static bool check_spread(Tensor *std) {
  Tensor *least = std->numel ? t_min(std) : NULL;
  if (failed()) return false;
  if (!least || tensor_absent(least) || tensor_get_f(least, 0) >= 0) return true;
  fail(ERR_RUNTIME, "normal expects all elements of std >= 0.0");
  return false;
}

/* z * std + mean with z of the standard normal distribution; a factor or summand that is NULL is
 * left out. A result for out= is drawn in out's layout, but apart from out, which may be an
 * operand. */
static Tensor *spread(Tensor *mean, Tensor *std, double std_number, int32_t gen,
                      const Tensor *out) {
  const Tensor *lead = mean && mean->ndim ? mean : std ? std : mean;
  int ndim = lead->ndim;
  int64_t sizes[MAX_DIM];
  memcpy(sizes, lead->sizes, (size_t)ndim * sizeof *sizes);
  if (mean && std && !sizes_broadcast(&ndim, sizes, std->ndim, std->sizes)) return NULL;
  if (std && !check_spread(std)) return NULL;
  bool as_out = out && sizes_equal(out->ndim, out->sizes, ndim, sizes);
  DType dtype = tensor_dtype(out ? out : mean ? mean : std);
  Tensor *z = as_out ? tensor_empty_like(out, dtype) : tensor_empty(ndim, sizes, dtype);
  z = fill_normal(z, !as_out || tensor_is_contiguous(out), 0, std ? 1 : std_number, gen);
  if (std) z = t_to(t_mul(z, std), dtype);
  return mean ? t_to(t_add(z, mean), dtype) : z;
}

static Tensor *spread_plain(Tensor *mean, Tensor *std, double std_number, int32_t gen,
                            const Tensor *out) {
  return WITHOUT_GRAD(spread(mean, std, std_number, gen, out));
}

Tensor *t_normal_mean(Tensor *mean, double std, int32_t gen, const Tensor *out) {
  OP_ENTERED(t_normal_mean, "normal", mean, std, gen, out);
  if (blocked(mean)) return NULL;
  Node *n = node_new(&NormalBackward1, 0, 0, mean, NULL);
  return set_history(spread_plain(mean, NULL, std, gen, out), n);
}

Tensor *t_normal_std(double mean, Tensor *std, int32_t gen, const Tensor *out) {
  OP_ENTERED(t_normal_std, "normal", mean, std, gen, out);
  if (blocked(std)) return NULL;
  Node *n = node_new(&NormalBackward2, 0, 0, std, NULL);
  return set_history(spread_plain(tensor_number(mean, tensor_dtype(std)), std, 0, gen, out), n);
}

Tensor *t_normal_both(Tensor *mean, Tensor *std, int32_t gen, const Tensor *out) {
  OP_ENTERED(t_normal_both, "normal", mean, std, gen, out);
  if (blocked(mean) || !std) return NULL;
  Node *n = node_new(&NormalBackward3, 0, 2 + mean->ndim + std->ndim, mean, std, NULL);
  if (n)
    num_list(n, 0, mean->ndim, mean->sizes), num_list(n, 1 + mean->ndim, std->ndim, std->sizes);
  return set_history(spread_plain(mean, std, 0, gen, out), n);
}

Tensor *t_bernoulli(Tensor *p, int32_t gen, Tensor *out) {
  OP_ENTERED(t_bernoulli, "bernoulli", p, gen, out);
  if (blocked(p)) return NULL;
  Node *n = node_new(&BernoulliBackward0, 0, 0, p, NULL);
  Tensor *y = out ? resize_out(out, p->ndim, p->sizes)
                  : tensor_empty(p->ndim, p->sizes, tensor_dtype(p));
  return set_history(random_bernoulli_each(y, p, gen), n);
}

Tensor *t_bernoulli_like(Tensor *x, double p, int32_t gen) {
  OP_ENTERED(t_bernoulli_like, "bernoulli", x, p, gen);
  if (blocked(x)) return NULL;
  Node *n = node_new(&node_bernoulli, 0, 0, x, NULL);
  return set_history(random_bernoulli(tensor_empty(x->ndim, x->sizes, tensor_dtype(x)), p, gen), n);
}

/* x in logical order, without history. */
static Tensor *plain(Tensor *x) { return WITHOUT_GRAD(t_contiguous(x)); }

/* ------------------------------------------------------------ multinomial */

static bool check_samples(const Tensor *w, int64_t k, bool replacement, const Tensor *out) {
  const char *why = NULL;
  if (!dtype_is_float(tensor_dtype(w)))
    return fail(ERR_RUNTIME, "multinomial only supports floating-point dtypes for input, got: %s",
                legacy(w)),
           false;
  if (out && out->dtype != DT_I64)
    return fail(ERR_RUNTIME, "multinomial expects Long tensor out, got: %s", legacy(out)), false;
  if (w->ndim != 1 && w->ndim != 2) why = "prob_dist must be 1 or 2 dim";
  else if (k <= 0) why = "cannot sample n_sample <= 0 samples";
  else if (!replacement && k > w->sizes[w->ndim - 1])
    why = "cannot sample n_sample > prob_dist.size(-1) samples without replacement";
  else if (k == 1 && w->numel == 0 && (w->ndim == 1 || w->sizes[0]))
    why = "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
          "identity.";
  if (why) fail(ERR_RUNTIME, "%s", why);
  return !why;
}

static bool check_weights(RngWeights found, bool unique) {
  static const char *const texts[][2] = {
      [RNG_WEIGHTS_NEGATIVE] =
          {"invalid multinomial distribution (encountering probability entry < 0)",
           "probability tensor contains either `inf`, `nan` or element < 0"},
      [RNG_WEIGHTS_INFINITE] =
          {"invalid multinomial distribution (encountering probability entry = infinity or NaN)",
           "probability tensor contains either `inf`, `nan` or element < 0"},
      [RNG_WEIGHTS_ZERO_SUM] = {"invalid multinomial distribution (sum of probabilities <= 0)",
                                "invalid multinomial distribution (sum of probabilities <= 0)"}};
  if (found != RNG_WEIGHTS_OK) fail(ERR_RUNTIME, "%s", texts[found][unique]);
  return found == RNG_WEIGHTS_OK;
}

typedef struct {
  RngWeights (*check)(const void *p, int64_t m);
  void (*draw)(Rng *r, int64_t *out, int64_t k, const void *p, double *scratch, int64_t m,
               bool unique);
} Sampler;

#define SAMPLER(T, C)                                                                              \
  static RngWeights check_##T(const void *p, int64_t m) {                                          \
    return rng_weights_check_##T((const C *)p, m);                                                 \
  }                                                                                                \
  static void draw_##T(Rng *r, int64_t *out, int64_t k, const void *p, double *scratch, int64_t m, \
                       bool once) {                                                                \
    if (once) rng_multinomial_unique_##T(r, out, k, (const C *)p, scratch, m);                     \
    else rng_multinomial_##T(r, out, k, (const C *)p, scratch, m);                                 \
  }                                                                                                \
  static const Sampler sampler_##T = {check_##T, draw_##T};
SAMPLER(f32, float)
SAMPLER(f64, double)
static const Sampler *const samplers[DT_COUNT] = {[DT_F32] = &sampler_f32, [DT_F64] = &sampler_f64};

/* Faults of single weights come before sums of zero, whatever the row. */
static bool check_rows(const Sampler *s, const char *p, int64_t rows, int64_t row_bytes,
                       int64_t m) {
  RngWeights worst = RNG_WEIGHTS_OK;
  for (int64_t i = 0; i < rows; i++) {
    RngWeights found = s->check(p + i * row_bytes, m);
    if (found != RNG_WEIGHTS_OK && (worst == RNG_WEIGHTS_OK || worst == RNG_WEIGHTS_ZERO_SUM))
      worst = found;
  }
  return check_weights(worst, true);
}

/* Without replacement the k greatest weights over exponential numbers win. The latter are drawn in
 * the order of memory of the weights; rng.c handles rows that follow each other. */
static Tensor *draw_unique(Tensor *w, Tensor *y, int64_t k, int32_t gen) {
  Tensor *sorted[2] = {NULL, NULL};
  Tensor *q = fill(tensor_empty_like(w, tensor_dtype(w)), exponential_fills, "exponential_cpu", gen,
                   (Draw){.a = 1});
  bool done = false;
  WITHOUT_GRAD_BLOCK {
    t_sort_stable(t_div(w, q), -1, true, sorted);
    done = tensor_copy_data(y, t_narrow(sorted[1], -1, 0, k));
  }
  return done ? y : NULL;
}

static Tensor *draw_rows(Tensor *w, Tensor *y, int64_t k, bool unique, int32_t gen) {
  Rng *r = random_source(gen);
  Tensor *plain_w = plain(w);
  const Sampler *s = KERNEL_OF(samplers, tensor_dtype(w), "multinomial");
  if (!r || !plain_w || !y || !s) return NULL;
  if (tensor_absent(y)) return y;
  int64_t m = w->sizes[w->ndim - 1], rows = w->ndim == 2 ? w->sizes[0] : 1;
  int64_t row_bytes = m * dtype_bytes(tensor_dtype(w));
  const char *p = tensor_data(plain_w);
  int64_t *out = (int64_t *)(void *)tensor_data(y);
  double *scratch = scratch_array(m ? m : 1, sizeof *scratch);
  if (!scratch || (unique && !check_rows(s, p, rows, row_bytes, m))) return NULL;
  if (unique && plain_w != w) return draw_unique(w, y, k, gen);
  for (int64_t i = 0; i < rows; i++, p += row_bytes, out += k) {
    if (!unique && !check_weights(s->check(p, m), false)) return NULL;
    s->draw(r, out, k, p, scratch, m, unique);
  }
  return y;
}

Tensor *t_multinomial(Tensor *weights, int64_t k, bool replacement, int32_t gen, Tensor *out) {
  OP_ENTERED(t_multinomial, "multinomial", weights, k, replacement, gen, out);
  IN_FLOAT(t_multinomial(weights, k, replacement, gen, out), weights);
  if (blocked(weights) || !check_samples(weights, k, replacement, out)) return NULL;
  int ndim = weights->ndim;
  int64_t sizes[2] = {weights->sizes[0], k};
  const int64_t *shape = ndim == 2 ? sizes : sizes + 1;
  if (out && !resize_out(out, ndim, shape)) return NULL;
  return draw_rows(weights, tensor_empty(ndim, shape, DT_I64), k, !replacement || k == 1, gen);
}

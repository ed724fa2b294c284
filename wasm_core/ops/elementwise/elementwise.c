/* Element-wise ops: promotion, destinations, the running of loops, and the rows of
 * ops/elementwise/elementwise.def.
 *
 * A row becomes a loop for each dtype, an op that records itself, and a gradient: one fused loop in
 * a first-order backward, op calls otherwise. Loops see contiguous blocks only: strided and
 * broadcast operands pass through buffers that stay in the first-level cache. */
#include "ops/elementwise/elementwise.h"

#include <string.h>

#include "elementwise_rows.h"
#include "ground/paths.h"
#include "ground/poll.h"
#include "kernels/simd.h"
#include "ops/view/copy.h"

/* ------------------------------------------------------------ promotion */

DType elementwise_float_dtype(DType d) { return dtype_is_inexact(d) ? d : dtype_default(); }

static DType wider(DType a, DType b) {
  return a == DT_NONE ? b : b == DT_NONE ? a : dtype_promote(a, b);
}

DType elementwise_default_complex(void) { return dtype_to_complex(dtype_default()); }

/* The default type of a host number's kind; a number contributes no more. */
static DType wrapped_dtype(const Tensor *t) {
  if (dtype_is_complex(tensor_dtype(t))) return elementwise_default_complex();
  return dtype_is_float(tensor_dtype(t)) ? dtype_default() : tensor_dtype(t);
}

static DType outrank(DType high, DType low) {
  if (high == DT_NONE) return low;
  if (low == DT_NONE || dtype_kind(high) >= dtype_kind(low)) return high;
  if (dtype_is_float(high)) return dtype_to_complex(high);
  if (dtype_is_complex(low)) return low; /* also bare types, which have no common type with it */
  return dtype_promote(high, low);
}

DType elementwise_result_dtype(int n, Tensor *const *t) {
  if (n == 2 && t[0] && t[1] && t[0]->dtype == t[1]->dtype &&
      !((t[0]->flags | t[1]->flags) & FLAG_WRAPPED))
    return tensor_dtype(t[0]);
  DType dimensioned = DT_NONE, zero_dim = DT_NONE, number = DT_NONE;
  for (int i = 0; i < n; i++) {
    if (!t[i]) continue;
    DType d = tensor_dtype(t[i]);
    if (is_wrapped(t[i])) number = wider(number, wrapped_dtype(t[i]));
    else if (t[i]->ndim == 0) zero_dim = wider(zero_dim, d);
    else dimensioned = wider(dimensioned, d);
  }
  return outrank(dimensioned, outrank(zero_dim, number));
}

/* The properties that a row of elementwise.def adds behind its formula; see there. */
typedef struct {
  const char *kernel;  /* the kernel named in dtype errors, if not "name_cpu" */
  const char *refusal; /* the whole message, if it names no kernel */
  /* Names of the nodes if a number is on the left or on the right (NULL: the plain name), and the
   * fields of the latter. */
  const char *left, *right, *of_right;
  bool wide;                     /* takes no half type */
  bool rounds;                   /* rounds its numbers to a half type */
  Tensor *(*complex)(Tensor *x); /* the op for complex numbers, if it is another function */
} Facts;

static NOINLINE DType refuse_dtype(DType d, const char *op, const Facts *facts) {
  if (facts && facts->refusal) fail(ERR_RUNTIME, "%s", facts->refusal);
  else if (facts && facts->kernel) dtype_no_kernel(facts->kernel, d);
  else fail(ERR_NOT_IMPLEMENTED, "\"%s_cpu\" not implemented for '%s'", op, dtype_info[d].legacy);
  return DT_NONE;
}

/* The dtype in which an op of this domain computes operands of common type d; DT_NONE with an
 * error. */
static DType domain_dtype(Domain domain, DType d, const char *op, const Facts *facts) {
  static const uint8_t taken[] = {/* the kinds, as bits */
                                  [FLOAT] = 14,
                                  [WIDE] = 14,
                                  [ANY] = 14,
                                  [TRUTH] = 14,
                                  [REAL] = 1 << KIND_FLOAT,
                                  [REAL_WIDE] = 1 << KIND_FLOAT,
                                  [NUMBER] = 1 << KIND_FLOAT | 1 << KIND_INT,
                                  [INTEGER] = 1 << KIND_INT,
                                  [INTEGRAL] = 1 << KIND_INT | 1 << KIND_BOOL};
  const int own = domain & (TAKES_COMPLEX - 1), kinds = taken[own] | (domain & TAKES_COMPLEX);
  const Kind kind = dtype_kind(d);
  if (!(kinds >> kind & 1) || (dtype_is_half(d) && facts && facts->wide))
    return refuse_dtype(d, op, facts);
  return own <= WIDE && kind < KIND_FLOAT ? dtype_default() : d;
}

Tensor *elementwise_cast(Tensor *x, DType dtype) {
  if (failed() || !x || x->dtype == dtype) return x;
  Tensor *y = WITH_FORM(is_wrapped(x) ? 0 : form_made, tensor_empty_like(x, dtype));
  if (!y) return NULL;
  if (x->numel == 1 && !tensor_absent(x) && !tensor_absent(y)) {
    const char *from = tensor_data(x);
    if (dtype_is_complex(tensor_dtype(x)))
      element_store_c(tensor_memory(y), dtype, tensor_get_c(x, 0));
    else if (dtype_is_float(tensor_dtype(x)))
      element_store_f(tensor_memory(y), dtype, element_load_f(from, tensor_dtype(x)));
    else element_store_i(tensor_memory(y), dtype, element_load_i(from, tensor_dtype(x)));
  } else if (!tensor_copy_data(y, x)) return NULL;
  if (is_wrapped(x)) y->flags |= FLAG_WRAPPED;
  return y;
}

/* ------------------------------------------------------------ results */

Tensor *destination;

INLINE bool lies_alike(const Tensor *a, const Tensor *b) {
  if (a->ndim != b->ndim) return false;
  for (int i = 0; i < a->ndim; i++)
    if (a->sizes[i] != b->sizes[i] || a->strides[i] != b->strides[i]) return false;
  return true;
}

/* The destination, if it may be written directly: no operand may overlap it, unless element by
 * element. */
static Tensor *take_destination(int n, Tensor *const *t, int ndim, const int64_t *sizes,
                                DType dtype) {
  Tensor *d = destination;
  destination = NULL;
  if (!d || d->dtype != dtype || d->flags & FLAGS_LAZY || (d->form & FORM_ABSENT) != form_made ||
      !sizes_equal(d->ndim, d->sizes, ndim, sizes))
    return NULL;
  if (!tensor_is_dense(d)) return NULL;
  for (int i = 0; i < n; i++)
    if (t[i]->storage == d->storage &&
        (t[i]->offset != d->offset || t[i]->dtype != dtype || !lies_alike(t[i], d)))
      return NULL;
  if (!tensor_write_begin(d, true)) return NULL;
  tensor_bump_version(d);
  return tensor_alias(d, ndim, d->sizes, d->strides, d->offset);
}

/* The stride of a broadcast operand in dimension i of a result of `ndim` dimensions; 0: none. */
static int64_t stride_at(const Tensor *t, int ndim, const int64_t *sizes, int i) {
  int k = i - (ndim - t->ndim);
  return k < 0 || (t->sizes[k] == 1 && sizes[i] != 1) ? 0 : t->strides[k];
}

/* Above zero if dimension j, now outside i, should lie inside it; below zero if not. The first
 * operand with different strides decides. */
static int swap_wanted(int n, Tensor *const *t, int ndim, const int64_t *sizes, int i, int j) {
  for (int k = 0; k < n; k++) {
    int64_t a = stride_at(t[k], ndim, sizes, i), b = stride_at(t[k], ndim, sizes, j);
    if (a == 0 || b == 0) continue;
    if (a != b) return a < b ? -1 : 1;
    if (sizes[i] > sizes[j]) return 1;
  }
  return 0;
}

/* A dense tensor with the operands' order of dimensions: PyTorch's insertion sort from the
 * innermost on, which passes over dimensions that no operand can compare. */
static Tensor *empty_in_order(int n, Tensor *const *t, int ndim, const int64_t *sizes,
                              DType dtype) {
  int order[MAX_DIM];
  int64_t strides[MAX_DIM], step = 1;
  for (int i = 0; i < ndim; i++) order[i] = ndim - 1 - i;
  for (int i = 1; i < ndim; i++)
    for (int outer = i, inner = i - 1, wanted; inner >= 0; inner--) {
      wanted = swap_wanted(n, t, ndim, sizes, order[inner], order[outer]);
      if (wanted < 0) break;
      if (wanted == 0) continue;
      int d = order[inner];
      order[inner] = order[outer];
      order[outer] = d;
      outer = inner;
    }
  for (int i = 0; i < ndim; i++) {
    strides[order[i]] = step;
    step *= sizes[order[i]] > 1 ? sizes[order[i]] : 1;
  }
  return tensor_empty_strided(ndim, sizes, strides, dtype);
}

Tensor *elementwise_result(int n, Tensor *const *t, DType dtype) {
  int64_t sizes[MAX_DIM];
  int ndim = t[0]->ndim;
  bool contiguous = true;
  memcpy(sizes, t[0]->sizes, (size_t)ndim * sizeof *sizes);
  for (int i = 1; i < n; i++)
    if (!sizes_broadcast(&ndim, sizes, t[i]->ndim, t[i]->sizes)) return NULL;
  if (destination) {
    Tensor *d = take_destination(n, t, ndim, sizes, dtype);
    if (d || failed()) return d;
  }
  for (int i = 0; i < n; i++)
    contiguous = contiguous && (t[i]->ndim < 2 || tensor_is_contiguous(t[i]));
  return contiguous || ndim < 2 ? tensor_empty(ndim, sizes, dtype)
                                : empty_in_order(n, t, ndim, sizes, dtype);
}

/* ------------------------------------------------------------ running */

enum { BLOCK = 1024, SHORT = 256 /* a row below this is run together with others */ };

/* An operand between memory and the loop. */
typedef struct {
  Loop *cast;        /* memory to buffer, or for the result buffer to memory */
  int64_t bytes;     /* of the loop's element */
  bool same;         /* memory holds the loop's type */
  const char *splat; /* the one element that fills the buffer at present */
  int64_t splat_n;
} Side;

typedef struct {
  Flat *loop;
  const double *k;
  int n;
  bool by_lanes; /* the loop takes only multiples of LANES */
  int64_t block; /* the number of elements in a buffer */
  Side side[ITER_MAX];
  char (*buffers)[BLOCK * 8]; /* one for each operand; contents stay from block to block */
} Blocks;

/* Runs a loop over whole lanes in stretches. */
static NOINLINE void run_stretches(Flat *loop, const double *k, int n_p, char *const *p,
                                   size_t bytes_out, size_t bytes, size_t n, LoopScratch *scratch) {
  char *q[ITER_MAX];
  const size_t stretch = (size_t)poll_stretch();
  for (size_t at = 0, m; at < n; at += m) {
    m = n - at < stretch ? n - at : stretch;
    if (poll_stops_elements((int64_t)m)) return;
    for (int i = 0; i < n_p; i++) q[i] = p[i] + at * (i ? bytes : bytes_out);
    loop(q, m, k, scratch);
  }
}

/* Runs a loop over n elements of contiguous memory, at n_p addresses. A rest shorter than LANES
 * goes through a padded copy. */
static void run_flat(Flat *loop, const double *k, bool by_lanes, int n_p, char *const *p,
                     size_t bytes_out, size_t bytes, size_t n) {
  size_t whole = by_lanes ? n & ~(size_t)(LANES - 1) : n, rest = n - whole;
  LoopScratch scratch;
  if (whole > POLL_LEAST && whole > (size_t)poll_stretch())
    run_stretches(loop, k, n_p, p, bytes_out, bytes, whole, &scratch);
  else if (whole) loop(p, whole, k, &scratch);
  if (!rest) return;
  char *q[ITER_MAX];
  _Alignas(16) char lanes[ITER_MAX][LANES * 8];
  q[0] = lanes[0];
  for (int i = 1; i < n_p; i++) {
    q[i] = lanes[i];
    /* leftovers read as subnormal numbers would be slow */
    UNROLLED for (int l = 0; l < LANES * 4; l += 16) memset(q[i] + l, 0, 16);
    memcpy(q[i], p[i] + whole * bytes, rest * bytes);
  }
  loop(q, LANES, k, &scratch);
  memcpy(p[0] + whole * bytes_out, q[0], rest * bytes_out);
}
static void run_block(const Blocks *b, char *const *p, size_t n) {
  run_flat(b->loop, b->k, b->by_lanes, b->n, p, (size_t)b->side[0].bytes,
           (size_t)b->side[b->n - 1].bytes, n);
}

/* Fills a buffer with an element of four bytes, n times rounded up. */
static void splat_4(char *buffer, const char *from, int64_t n) {
  const i32x4 v = i32x4_splat(*(const int32_t *)(const void *)from);
  TOOK(EACH_SPLAT);
  for (char *end = buffer + 4 * n; buffer < end; buffer += 64)
    UNROLLED for (int l = 0; l < 64; l += 16) memcpy(buffer + l, &v, sizeof v);
}

/* Copies m elements to a buffer; a broadcast element only once. */
static void gather(Side *s, char *buffer, char *from, int64_t stride, int64_t m) {
  if (stride == 0 && s->splat == from && s->splat_n >= m) return;
  _Alignas(8) char one[8];
  if (stride == 0 && s->bytes == 4 && m > 1) {
    if (!s->same) s->cast((char *[]){one, from}, (const int64_t[]){4, 0}, 1, NULL);
    splat_4(buffer, s->same ? from : one, m);
  } else s->cast((char *[]){buffer, from}, (const int64_t[]){s->bytes, stride}, m, NULL);
  s->splat = stride == 0 ? from : NULL;
  s->splat_n = m;
}

/* A Loop of iter.h over blocks. */
static void run_blocks(char **p, const int64_t *strides, int64_t n, const void *ctx) {
  Blocks *b = (Blocks *)(uintptr_t)ctx;
  bool buffered[ITER_MAX], any = false;
  for (int i = 0; i < b->n; i++) {
    buffered[i] = !b->side[i].same || (strides[i] != b->side[i].bytes && n > 1);
    any = any || buffered[i];
  }
  if (!any) {
    run_block(b, p, (size_t)n);
    return;
  }
  for (int64_t at = 0; at < n; at += b->block) {
    int64_t m = n - at < b->block ? n - at : b->block;
    if (poll_stops_elements(m)) return;
    char *q[ITER_MAX];
    for (int i = 0; i < b->n; i++) {
      q[i] = p[i] + at * strides[i];
      if (!buffered[i]) continue;
      if (i) gather(&b->side[i], b->buffers[i], q[i], strides[i], m);
      q[i] = b->buffers[i];
    }
    run_block(b, q, (size_t)m);
    if (!buffered[0]) continue;
    Side *s = &b->side[0];
    s->cast((char *[]){p[0] + at * strides[0], q[0]}, (const int64_t[]){strides[0], s->bytes}, m,
            NULL);
  }
}

/* Rows too short to be run one by one, as blocks. */
typedef struct {
  Blocks *blocks;
  int64_t n, strides[ITER_MAX]; /* of a row */
} Rows;

/* Fills each row with its one element. */
#define SPREAD_ROWS(T)                                                                    \
  static void spread_rows_##T(char *to, const char *from, int64_t outer, int64_t rows,    \
                              int64_t n) {                                                \
    for (int64_t r = 0; r < rows; r++) {                                                  \
      T v = *(const T *)(const void *)(from + r * outer), *row = (T *)(void *)to + r * n; \
      VECTOR_LOOP for (int64_t i = 0; i < n; i++) row[i] = v;                             \
    }                                                                                     \
  }
SPREAD_ROWS(int32_t)
SPREAD_ROWS(int64_t)

/* Copies `rows` rows of n elements to a buffer. A row that is broadcast to all rows is still there
 * from the block before. */
static void gather_rows(Side *s, char *buffer, char *from, int64_t outer, int64_t inner,
                        int64_t rows, int64_t n) {
  if (outer == 0 && s->splat == from && s->splat_n >= rows * n) return;
  if (inner == 0 && s->same && s->bytes == 4) spread_rows_int32_t(buffer, from, outer, rows, n);
  else if (inner == 0 && s->same && s->bytes == 8)
    spread_rows_int64_t(buffer, from, outer, rows, n);
  else
    for (int64_t r = 0; r < rows; r++)
      s->cast((char *[]){buffer + r * n * s->bytes, from + r * outer},
              (const int64_t[]){s->bytes, inner}, n, NULL);
  s->splat = outer == 0 ? from : NULL;
  s->splat_n = rows * n;
}

/* A Loop of iter.h over rows: like run_blocks, with whole rows in each block. */
static void run_rows(char **p, const int64_t *outer, int64_t n_rows, const void *ctx) {
  const Rows *rows = ctx;
  Blocks *b = rows->blocks;
  int64_t n = rows->n, most = b->block / n / LANES * LANES;
  if (!most) most = b->block / n;
  bool dense[ITER_MAX];
  for (int i = 0; i < b->n; i++)
    dense[i] = b->side[i].same && rows->strides[i] == b->side[i].bytes &&
               (outer[i] == n * rows->strides[i] || n_rows == 1);
  for (int64_t at = 0; at < n_rows; at += most) {
    int64_t m = n_rows - at < most ? n_rows - at : most;
    if (poll_stops_elements(m * n)) return;
    char *q[ITER_MAX];
    for (int i = 0; i < b->n; i++) {
      q[i] = p[i] + at * outer[i];
      if (dense[i]) continue;
      if (i) gather_rows(&b->side[i], b->buffers[i], q[i], outer[i], rows->strides[i], m, n);
      q[i] = b->buffers[i];
    }
    run_block(b, q, (size_t)(m * n));
    Side *s = &b->side[0];
    for (int64_t r = 0; r < m && !dense[0]; r++)
      s->cast((char *[]){p[0] + (at + r) * outer[0], q[0] + r * n * s->bytes},
              (const int64_t[]){rows->strides[0], s->bytes}, n, NULL);
  }
}

/* Runs operands that have to be walked; short innermost rows go several at a time. */
static void run_walked(Blocks *b, Iter *it) {
  int last = it->ndim - 1;
  if (last < 1 || it->sizes[last] >= SHORT) {
    iter_run(it, run_blocks, b);
    TOOK(EACH_WALKED);
    return;
  }
  Rows rows = {.blocks = b, .n = it->sizes[last]};
  for (int i = 0; i < b->n; i++) rows.strides[i] = it->strides[i][last];
  it->ndim = last;
  if (rows.n) iter_run(it, run_rows, &rows);
  TOOK(EACH_ROWS);
}

/* Whether all places are one element: a single one, or a broadcast one like the gradient of a
 * sum. */
static bool is_one(const Tensor *t) {
  if (t->numel == 1) return true;
  for (int i = 0; i < t->ndim; i++)
    if (t->strides[i] && t->sizes[i] != 1) return false;
  return true;
}

/* Runs the common case, which needs no sorting: all contiguous, with the result's shape or a single
 * element. */
static bool run_simple(Blocks *b, Tensor *const *t) {
  char *p[ITER_MAX];
  int64_t strides[ITER_MAX];
  for (int i = 0; i < b->n; i++) {
    bool one = i && is_one(t[i]);
    if (!one && (!tensor_same_shape(t[0], t[i]) || !tensor_is_contiguous(t[i]))) return false;
    p[i] = tensor_data(t[i]);
    strides[i] = one ? 0 : dtype_bytes(tensor_dtype(t[i]));
  }
  if (t[0]->numel) run_blocks(p, strides, t[0]->numel, b);
  TOOK(EACH_SIMPLE);
  return true;
}

static bool by_lanes(DType inner) { return inner == DT_F32 || inner == DT_U8 || inner == DT_BOOL; }

static bool overlaps_destination(const Tensor *t) {
  return destination && t->storage == destination->storage &&
         !copy_check_apart(destination, t, true);
}

/* The form of a result of these operands. Rows may call this before any door. */
static NOINLINE int32_t form_among(int n, Tensor *const *in) {
  for (int i = 0; i < n; i++)
    if (tensor_absent(in[i])) return in[i]->form & FORM_ABSENT;
  return form_made;
}

/* When the write to a whole storage begins, its bytes may be left to the snapshots that share them.
 * So operands that are the destination are read through snapshots of their own. */
Tensor *elementwise_run_typed(Flat *loop, int n, Tensor *const *in, DType inner, DType outer,
                              DType out, const double *k) {
  static const double no_numbers[3];
  Tensor *t[ITER_MAX];
  for (int i = 0; i < n; i++) {
    if (blocked(in[i], in[i]) || overlaps_destination(in[i])) return NULL;
    bool shared = destination && in[i]->storage == destination->storage &&
                  in[i]->storage->bytes->refs > 1 && tensor_covers_storage(destination);
    t[i + 1] = shared ? tensor_snapshot(in[i]) : in[i];
  }
  if (failed()) return NULL;
  t[0] = unusual_tensors ? WITH_FORM(form_among(n, in), elementwise_result(n, t + 1, out))
                         : elementwise_result(n, t + 1, out);
  if (!t[0] || tensor_absent(t[0])) return t[0];
  _Alignas(16) char buffers[ITER_MAX][BLOCK * 8];
  Blocks b; /* only the sides in use are initialised */
  b.loop = loop;
  b.k = k ? k : no_numbers;
  b.n = n + 1;
  b.by_lanes = by_lanes(inner);
  b.block = BLOCK;
  b.buffers = buffers;
  for (int i = 0; i <= n; i++) {
    DType memory = tensor_dtype(t[i]), type = i ? inner : outer;
    if (type == DT_NONE) type = memory;
    b.side[i] = (Side){i ? cast_loop(type, memory) : cast_loop(memory, type), dtype_bytes(type),
                       type == memory, NULL, 0};
    if (dtype_bytes(type) > 8) b.block = BLOCK / 2;
  }
  if (run_simple(&b, t)) return t[0];
  Iter it;
  iter_build(&it, n + 1, t);
  run_walked(&b, &it);
  return t[0];
}

/* Runs the simplest case: operands of the loop's type, equally laid out and contiguous, and no
 * destination. */
static Tensor *run_plain(Flat *loop, int n, Tensor *const *in, DType d, DType out,
                         const double *k) {
  static const double no_numbers[3];
  char *p[ITER_MAX];
  if (destination) return NULL;
  for (int i = 0; i < n; i++) {
    if (!in[i] || in[i]->dtype != d ||
        !(i ? lies_alike(in[0], in[i]) : tensor_is_contiguous(in[0])))
      return NULL;
    p[i + 1] = tensor_memory(in[i]);
  }
  Tensor *y = tensor_empty(in[0]->ndim, in[0]->sizes, out);
  if (!y) return NULL;
  p[0] = tensor_memory(y);
  TOOK(EACH_PLAIN);
  run_flat(loop, k ? k : no_numbers, by_lanes(d), n + 1, p, (size_t)dtype_bytes(out),
           (size_t)dtype_bytes(d), (size_t)y->numel);
  return y;
}

/* The loop of a type, NULL if there is none. */
INLINE Flat *loop_of(const Loops *loops, DType type) {
#define PLACE(type) (1 + offsetof(Loops, type) / sizeof(Flat *))
  static const uint8_t places[DT_COUNT] = {
      [DT_F32] = PLACE(f32), [DT_F64] = PLACE(f64), [DT_I64] = PLACE(i64),  [DT_U8] = PLACE(u8),
      [DT_BOOL] = PLACE(b8), [DT_C64] = PLACE(c64), [DT_C128] = PLACE(c128)};
#undef PLACE
  return places[type] ? ((Flat *const *)&loops->f32)[places[type] - 1] : NULL;
}
/* The type in which a table computes elements of type d. */
static DType loop_dtype(const Loops *loops, DType d) {
  if (loop_of(loops, d)) return d;
  if (dtype_is_complex(d)) return DT_C128;
  return !dtype_is_float(d) ? DT_I64 : d != DT_F64 && loops->f32 ? DT_F32 : DT_F64;
}

/* Casts operands that the loop could not cast: numbers that must first wrap around or lose digits
 * as a d. */
static void fit_operands(int n, Tensor *const *in, DType d, Tensor **t) {
  for (int i = 0; i < n; i++) {
    bool widens = in[i] && (dtype_is_inexact(d) || dtype_promote(tensor_dtype(in[i]), d) == d);
    t[i] = widens ? in[i] : elementwise_cast(in[i], d);
  }
}

/* The loop of type, for elements of type d; NULL, with a refusal, if there is none. */
static Flat *find_loop(const Loops *loops, DType type, DType d) {
  Flat *loop = loop_of(loops, type);
  return loop || dtype_no_kernel("elementwise_cpu", d) ? loop : NULL;
}

/* Whether all operands are strided, or the error. Gradients may run loops on tensors that no op has
 * checked. */
static bool check_strided(int n, Tensor *const *in) {
  for (int i = 0; i < n; i++)
    if (!tensor_is_strided(in[i])) return door_refuse_layout("elementwise", in[i]) != NULL;
  return true;
}

Tensor *elementwise_run(const Loops *loops, const Tensors *in, DType d, const double *k) {
  Tensor *t[ITER_MAX];
  const bool usual = __builtin_expect(unusual_tensors == 0, 1);
  if (failed() || (!usual && !check_strided(in->n, in->v))) return NULL;
  Flat *loop = loop_of(loops, d);
  Tensor *plain = usual && loop ? run_plain(loop, in->n, in->v, d, d, k) : NULL;
  if (plain || failed()) return plain;
  DType type = loop_dtype(loops, d);
  if (!loop) loop = find_loop(loops, type, d);
  fit_operands(in->n, in->v, d, t);
  return elementwise_run_typed(loop, in->n, t, type, type, d, k);
}

Tensor *elementwise_run_bool(const Loops *loops, int n, Tensor *const *in, DType d) {
  Tensor *t[ITER_MAX];
  if (failed()) return NULL;
  fit_operands(n, in, d, t);
  DType type = loop_dtype(loops, d);
  Flat *loop = find_loop(loops, type, d);
  return loop ? elementwise_run_typed(loop, n, t, type, DT_BOOL, DT_BOOL, NULL) : NULL;
}

Tensor *elementwise_run_raw(Flat *loop, int n, Tensor *const *in, DType out) {
  return elementwise_run_typed(loop, n, in, DT_NONE, DT_NONE, out, NULL);
}

/* ------------------------------------------------------------ unary ops */

typedef struct {
  const char *name;
  Domain domain;
  int keep;
  const Loops *value, *grad;
  const NodeType *node;
  Facts facts;
} Unary;

/* The host numbers of a loop, rounded to d if the row says so. */
static const double *loop_params(const Unary *u, DType d, const double *p, double *as_half) {
  if (!p || !u->facts.rounds || !dtype_is_half(d)) return p;
  for (int i = 0; i < 3; i++) {
    _Alignas(8) char element[8];
    element_store_f(element, d, p[i]);
    as_half[i] = element_load_f(element, d);
  }
  return as_half;
}

/* The node saves first what the gradient here needs (PyTorch saves some results beyond that), then
 * host numbers. */
static NOINLINE Tensor *unary(const Unary *u, Tensor *x, int n_params, const double *p) {
  Floats params = {n_params, p};
  OP_ENTERED_AS(unary(u, x, params.n, params.v), u->name, x, params);
  if (blocked(x)) return NULL;
  if (u->facts.complex && dtype_is_complex(tensor_dtype(x))) return u->facts.complex(x);
  DType d = domain_dtype(u->domain, tensor_dtype(x), u->name, &u->facts);
  if (d == DT_NONE) return NULL;
  for (int i = 0; i < n_params; i++)
    if (!element_number_fits_f(p[i], d)) return NULL;
  Node *n = node_new(u->node, u->keep == KEEP_XY || u->keep & ROOM ? 2 : 1, n_params, x, NULL);
  for (int i = 0; i < n_params; i++) num_f(n, i, p[i]);
  if (u->keep & KEEP_X) save(n, 0, x);
  double as_half[3];
  Tensor *y = set_history(
      elementwise_run(u->value, &(Tensors){1, &x}, d, loop_params(u, d, p, as_half)), n);
  if (n && u->keep & KEEP_Y) save_output(n, u->keep == KEEP_XY, y);
  return y;
}

/* y with x in its history: y' = g, x' = 0. */
GRAD(TieBackward0, "")
{
  if (needs(n, 0)) gi[0] = g[0];
  if (needs(n, 1)) gi[1] = t_zeros_like(g[0]);
}
static Tensor *tie(Tensor *y, Tensor *x) {
  if (blocked(y, x)) return NULL;
  Node *n = node_new(&TieBackward0, 0, 0, y, x, NULL);
  return n ? set_history(tensor_alias(y, y->ndim, y->sizes, y->strides, y->offset), n) : y;
}

static Tensor *t_polygamma_of(Tensor *n, Tensor *x) {
  return blocked(n, x) ? NULL : t_polygamma_at(x, tensor_get_f(n, 0), 0, 0);
}

/* The first-order gradient as one loop over g and the saved tensor. */
static NOINLINE Tensor *unary_grad(const Unary *u, Tensor *g, Tensor *kept, const double *p) {
  Tensor *in[2] = {g, kept ? kept : g};
  if (blocked(in[0], in[1])) return NULL;
  DType d = tensor_dtype(g);
  TOOK(GRADIENT_FUSED);
  double as_half[3];
  return dtype_is_float(d)
             ? elementwise_run(u->grad, &(Tensors){2, in}, d, loop_params(u, d, p, as_half))
             : NULL;
}

static bool is_complex(const Tensor *t) { return t && dtype_is_complex(tensor_dtype(t)); }
static Tensor *near(Tensor *x) {
  if (is_complex(x)) return x;
  return t_where(t_lt(t_abs(x), tensor_wrapped_f(1e70)), x, tensor_wrapped_f(0));
}

static const double *node_params(const Node *n, double *p) {
  for (int i = 0; i < 3; i++) p[i] = i < n->n_numbers ? n->numbers[i].f : 0;
  return p;
}

#define FIELDS_NOTHING ""
#define FIELDS_KEEP_X "self"
#define FIELDS_KEEP_Y "result"
#define FIELDS_KEEP_XY "self result"
#define FIELDS_KEEP_X_NONE "self | approximate:text=none"
#define FIELDS_KEEP_X_TANH "self | approximate:text=tanh"
#define FIELDS_KEEP_X_EPS "self | eps:text=-"
#define FIELDS_KEEP_X_BUFFER "self buffer"
#define FIELDS_P_KEEP_X(schema) "self | " schema
#define FIELDS_P_KEEP_X_ALONE(schema) "self"
#define FIELDS_P_KEEP_X_FIRST(schema) "self | threshold:scalar"
/* Field names by the tensors that either gradient needs. */
#define FIELDS2_Y(k) \
  ((k) & KEEP_A ? (k) & KEEP_B ? "self other result" : "self - result" : "- other result")
#define FIELDS2(k)                                               \
  ((k) & CALLED_WEIGHT ? "self weight"                           \
   : (k) & KEEP_Y      ? FIELDS2_Y(k)                            \
   : (k) & KEEP_B      ? (k) & KEEP_A ? "self other" : "- other" \
   : (k) & KEEP_A      ? "self"                                  \
                       : "")

/* The loop of a gradient, over g and the one saved tensor, named x and y. */
#define GRAD1(fn, A, WRAP, V)                                   \
  FLAT_HEAD(fn, A, A, WRAP) FLAT_IN(1) FLAT_IN(2) FLAT_FOR(A) { \
    T g = i1_[i], x = i2_[i], y = x;                            \
    (void)g, (void)x, (void)y;                                  \
    o_[i] = (A)(V);                                             \
  }                                                             \
  }
/* The words behind a derivative: each as an initialiser of Facts (OP_) and of the node type
 * (NODE_). */
#define OP_ .kernel = NULL
#define OP_KERNEL(name) .kernel = name
#define OP_NO_HALF .wide = true
#define OP_NO_HALF_WITH_NUMBER(left_name, right_name, kept) \
  .wide = true, .left = left_name, .right = right_name, .of_right = kept
#define OP_COMPLEX(function) .complex = function
#define OP_ROUNDS .rounds = true
#define OP_REFUSAL(message) .refusal = message
#define OP_IN_PLACE(name) .kernel = NULL
#define OP_KERNEL_IN_PLACE(kernel_name, name) .kernel = kernel_name
#define OP_WITH_NUMBER(left_name, right_name, kept) \
  .left = left_name, .right = right_name, .of_right = kept
#define NODE_ NULL
#define NODE_KERNEL(name) NULL
#define NODE_NO_HALF NULL
#define NODE_NO_HALF_WITH_NUMBER(left, right, kept) NULL
#define NODE_COMPLEX(function) NULL
#define NODE_ROUNDS NULL
#define NODE_REFUSAL(message) NULL
#define NODE_IN_PLACE(name) name
#define NODE_KERNEL_IN_PLACE(kernel, name) name

#define UNARY_ROW(name, Node_, domain, VALUE, keep, fields_, GRADIENT, ...)           \
  LOOPS(domain, 1, value_##name, VALUE)                                               \
  LOOPS_WITH(GRAD1, GRAD_##domain, grad_##name, GRADIENT)                             \
  static void vjp_##name(Node *n, Tensor **g, Tensor **gi);                           \
  static const NodeType node_##name = {#Node_ "Backward0", vjp_##name, fields_, true, \
                                       NODE_##__VA_ARGS__, NULL};                     \
  static const Unary unary_##name = {                                                 \
      #name, domain, keep, value_##name, grad_##name, &node_##name, {OP_##__VA_ARGS__}};

LOOPS_BEGIN
#define FORMULA_SCALAR
#include "ops/elementwise/formula.h"
#define UNARY(words, name, Node_, domain, value, keep, ...)               \
  UNARY_ROW(name, Node_, domain, value, keep, FIELDS_##keep, __VA_ARGS__) \
  Tensor *t_##name(Tensor *x) { return unary(&unary_##name, x, 0, NULL); }
#define UNARY_P(words, name, Node_, schema, domain, value, keep, ...)               \
  UNARY_ROW(name, Node_, domain, value, keep, FIELDS_P_##keep(schema), __VA_ARGS__) \
  Tensor *t_##name(Tensor *x, double p0, double p1, double p2) {                    \
    return unary(&unary_##name, x, 3, (const double[]){p0, p1, p2});                \
  }
#define UNARY_P_AS(words, host, ...) UNARY_P(words, __VA_ARGS__)
#include "ops/elementwise/elementwise.def"
LOOPS_END

/* A gradient g f'(x) as a node of its own, which PyTorch has for some activations. x is what f
 * saved. The node's gradients are h f'(x) for h at the node, and h g times the curve f''(x), zero
 * if there is none. */
typedef struct {
  NodeType type;
  const Unary *unary;
  Tensor *(*curve)(Tensor *g, Tensor *x, const double *p);
  Tensor *(*again)(Tensor *g, Tensor *x, const double *p); /* the op itself */
  int n_numbers;
} Second;

static Tensor *second(const Second *k, Tensor *g, Tensor *x, const double *p) {
  if (blocked(g, x)) return NULL;
  DType d = elementwise_result_dtype(2, (Tensor *[2]){g, x});
  if (!dtype_is_float(d)) return dtype_no_kernel(k->unary->name, d), NULL;
  Node *n = node_new(&k->type, 2, k->n_numbers, g, x, NULL);
  for (int i = 0; i < k->n_numbers; i++) num_f(n, i, p[i]);
  if (k->curve) save(n, 0, g);
  save(n, 1, x);
  return set_history(unary_grad(k->unary, elementwise_cast(g, d), x, p), n);
}

static const double no_params[3];

static void vjp_second(Node *n, Tensor **g, Tensor **gi) {
  const Second *k = (const Second *)(const void *)n->type;
  double p[3];
  Tensor *first = k->curve ? saved_tensor(n, 0) : NULL, *x = saved_tensor(n, 1);
  node_params(n, p);
  if (needs(n, 0)) gi[0] = grad_mode ? k->again(g[0], x, p) : unary_grad(k->unary, g[0], x, p);
  if (needs(n, 1)) gi[1] = k->curve ? k->curve(t_mul(g[0], first), x, p) : t_zeros_like(g[0]);
}

#define FORMULA_TAPE
#include "ops/elementwise/formula.h"
/* Declares the node of an activation's gradient; AGAIN calls the op that makes it. */
#define SECOND_OF(name, Name, fields, n, CURVE, AGAIN)                                         \
  static Tensor *again_##name(Tensor *g, Tensor *x, __attribute__((unused)) const double *p) { \
    return AGAIN;                                                                              \
  }                                                                                            \
  static const Second second_##name = {                                                        \
      {Name "BackwardBackward0", vjp_second, fields, true, NULL, NULL},                        \
      &unary_##name,                                                                           \
      CURVE,                                                                                   \
      again_##name,                                                                            \
      n};
#define FLAT_SECOND(name, Name, fields, n, AGAIN) SECOND_OF(name, Name, fields, n, NULL, AGAIN)
#define SECOND(name, Name, fields, n, AGAIN, CURVE)                                            \
  static Tensor *curve_##name(Tensor *g, Tensor *x, __attribute__((unused)) const double *p) { \
    return CURVE;                                                                              \
  }                                                                                            \
  SECOND_OF(name, Name, fields, n, curve_##name, AGAIN)
FLAT_SECOND(leaky_relu, "LeakyRelu", "- self | negative_slope:scalar", 1,
            t_leaky_relu_backward(g, x, p[0], false))
FLAT_SECOND(hardtanh, "Hardtanh", "- self | min_val:scalar max_val:scalar", 2,
            t_hardtanh_backward(g, x, p[0], p[1]))
FLAT_SECOND(hardshrink, "Hardshrink", "- self | lambd:scalar", 1, t_hardshrink_backward(g, x, p[0]))
FLAT_SECOND(softshrink, "Softshrink", "- self | lambd:scalar", 1, t_softshrink_backward(g, x, p[0]))
FLAT_SECOND(threshold, "Threshold", "- self | threshold:scalar", 1,
            t_threshold_backward(g, x, p[0]))
SECOND(tanh, "Tanh", "grad_output output", 0, t_tanh_backward(g, x), MUL(g, MUL(C(-2), x)))
SECOND(sigmoid, "Sigmoid", "grad_output output", 0, t_sigmoid_backward(g, x),
       MUL(g, SUB(C(1), MUL(C(2), x))))
SECOND(logsigmoid, "LogSigmoid", "grad_output self", 0, t_log_sigmoid_backward(g, x, x),
       NEG(MUL(g, MUL(SIGMOID(x), SIGMOID(NEG(x))))))
SECOND(hardswish, "Hardswish", "grad_output self", 0, t_hardswish_backward(g, x),
       WHERE(AND(GT(x, C(-3)), LT(x, C(3))), DIV(g, C(3)), C(0)))
SECOND(elu, "Elu",
       "grad_output self_or_result | alpha:float scale:scalar input_scale:scalar is_result:false",
       3, t_elu_backward(g, p[0], p[1], p[2], false, x),
       WHERE(LT(x, C(0)),
             MUL(MUL(g, H(p[0] * p[1] * p[2] * p[2])), EXP(MUL(WHERE(LT(x, C(0)), x, C(0)), P2))),
             C(0)))
SECOND(softplus, "Softplus", "grad_output self | beta:scalar threshold:scalar", 2,
       t_softplus_backward(g, x, p[0], p[1]),
       WHERE(GE(MUL(x, P0), P1), C(0),
             MUL(MUL(g, P0), MUL(SIGMOID(MUL(x, P0)), SIGMOID(MUL(x, H(-p[0])))))))
/* (2 - x^2) exp(-x^2/2): the Gaussian at x / sqrt(2) minus half of its second derivative. */
SECOND(gelu_erf, "Gelu", "grad_output self | approximate:text=none", 0,
       t_gelu_backward(g, x, "none"),
       MUL(MUL(g, C(1 / MATHS_SQRT_2PI)),
           SUB(FAMILY(gaussian_slope, 0, MUL(x, C(MATHS_SQRT_HALF))),
               MUL(C(0.5), FAMILY(gaussian_slope, 2, MUL(x, C(MATHS_SQRT_HALF)))))))
/* With u' = c (1 + 3 k x^2), u'' = 6 c k x and t = tanh u: (1 - t^2) (u' + x/2 (u'' - 2 t
 * u'^2)). */
static Tensor *gelu_tanh_curve(Tensor *g, Tensor *x, Tensor *t, Tensor *du) {
  return MUL(
      MUL(g, SUB(C(1), SQ(t))),
      ADD(du, MUL(MUL(C(0.5), x), SUB(MUL(C(6 * GELU_C * GELU_K), x), MUL(MUL(C(2), t), SQ(du))))));
}
SECOND(gelu_tanh, "Gelu", "grad_output self | approximate:text=tanh", 0,
       t_gelu_backward(g, x, "tanh"),
       gelu_tanh_curve(g, x, GELU_TANH, MUL(C(GELU_C), ADD(C(1), MUL(C(3 * GELU_K), MUL(x, x))))))

#define UNARY_VJP(name, GRADIENT, ...)                                                     \
  static Tensor *tape_##name(Tensor *g, Tensor *x, Tensor *y, const double *p) {           \
    const double p0_ = p[0], p1_ = p[1], p2_ = p[2];                                       \
    (void)x, (void)y, (void)p0_, (void)p1_, (void)p2_;                                     \
    return GRADIENT;                                                                       \
  }                                                                                        \
  static void vjp_##name(Node *n, Tensor **g, Tensor **gi) {                               \
    double p[3];                                                                           \
    Tensor *s = saved_tensor(n, 0);                                                        \
    node_params(n, p);                                                                     \
    const bool same = sizeof #GRADIENT == sizeof "g"; /* passed on, nothing is computed */ \
    gi[0] = grad_mode || same || is_complex(g[0]) || !tensor_is_strided(g[0])              \
                ? tape_##name(g[0], s, s, p)                                               \
                : unary_grad(&unary_##name, g[0], s, p);                                   \
  }
#define UNARY(words, name, Node_, domain, value, keep, ...) UNARY_VJP(name, __VA_ARGS__)
#define UNARY_P(words, name, Node_, schema, domain, value, keep, ...) UNARY_VJP(name, __VA_ARGS__)
#define UNARY_P_AS(words, host, ...) UNARY_P(words, __VA_ARGS__)
#include "ops/elementwise/elementwise.def"

/* PyTorch's ops of these gradients. The numbers are those of the function. */
Tensor *t_threshold_backward(Tensor *g, Tensor *x, double threshold) {
  OP_ENTERED(t_threshold_backward, "threshold_backward", g, x, threshold);
  if (blocked(g, x)) return NULL;
  const DType d = elementwise_result_dtype(2, (Tensor *[2]){g, x});
  if (dtype_kind(d) == KIND_INT) return WHERE(LE(x, C(threshold)), t_zeros_like(g), g);
  return second(&second_threshold, g, x, (const double[3]){threshold});
}

Tensor *t_leaky_relu_backward(Tensor *g, Tensor *x, double slope, bool is_result) {
  OP_ENTERED(t_leaky_relu_backward, "leaky_relu_backward", g, x, slope, is_result);
  return second(&second_leaky_relu, g, x, (const double[3]){slope});
}

Tensor *t_hardtanh_backward(Tensor *g, Tensor *x, double min, double max) {
  OP_ENTERED(t_hardtanh_backward, "hardtanh_backward", g, x, min, max);
  return second(&second_hardtanh, g, x, (const double[3]){min, max});
}

Tensor *t_hardshrink_backward(Tensor *g, Tensor *x, double lambda) {
  OP_ENTERED(t_hardshrink_backward, "hardshrink_backward", g, x, lambda);
  return second(&second_hardshrink, g, x, (const double[3]){lambda});
}

Tensor *t_softshrink_backward(Tensor *g, Tensor *x, double lambda) {
  OP_ENTERED(t_softshrink_backward, "softshrink_backward", g, x, lambda);
  return second(&second_softshrink, g, x, (const double[3]){lambda});
}

Tensor *t_tanh_backward(Tensor *g, Tensor *y) {
  OP_ENTERED(t_tanh_backward, "tanh_backward", g, y);
  if (is_complex(g) || is_complex(y)) return tape_tanh(g, NULL, conjugate(y), no_params);
  return second(&second_tanh, g, y, no_params);
}

Tensor *t_sigmoid_backward(Tensor *g, Tensor *y) {
  OP_ENTERED(t_sigmoid_backward, "sigmoid_backward", g, y);
  if (is_complex(g) || is_complex(y)) return tape_sigmoid(g, NULL, conjugate(y), no_params);
  return second(&second_sigmoid, g, y, no_params);
}

/* `buffer` is not read: it is a function of x. */
Tensor *t_log_sigmoid_backward(Tensor *g, Tensor *x, Tensor *buffer) {
  OP_ENTERED(t_log_sigmoid_backward, "log_sigmoid_backward", g, x, buffer);
  return second(&second_logsigmoid, g, x, no_params);
}

Tensor *t_hardswish_backward(Tensor *g, Tensor *x) {
  OP_ENTERED(t_hardswish_backward, "hardswish_backward", g, x);
  return second(&second_hardswish, g, x, no_params);
}

/* The gradient of elu by its result y, g input_scale (y + alpha scale) where y <= 0, g scale
 * elsewhere. For h at the node: g' = the same of h, y' = h g input_scale where y <= 0. */
static Tensor *elu_backward_of_result(Tensor *g, const double p[3], Tensor *y);
GRAD(EluBackwardBackward0,
     "grad_output self_or_result | alpha:float scale:scalar input_scale:scalar is_result:bool")
{
  double p[3];
  Tensor *first = saved_tensor(n, 0), *y = saved_tensor(n, 1);
  node_params(n, p);
  if (needs(n, 0)) gi[0] = elu_backward_of_result(g[0], p, y);
  if (needs(n, 1)) gi[1] = WHERE(LE(y, C(0)), MUL(MUL(g[0], first), C(p[2])), t_zeros_like(g[0]));
}

static Tensor *elu_backward_of_result(Tensor *g, const double p[3], Tensor *y) {
  if (blocked(g, y) || !dtype_check_float_kernel("elu_backward_cpu", tensor_dtype(y))) return NULL;
  if (p[0] < 0)
    return fail(ERR_RUNTIME,
                "In-place elu backward calculation is triggered with a negative slope which is not "
                "supported. This is caused by calling in-place forward function with a negative "
                "slope, please call out-of-place version instead.");
  Node *n = node_new(&EluBackwardBackward0, 2, 4, g, y, NULL);
  for (int i = 0; i < 3; i++) num_f(n, i, p[i]);
  num_i(n, 3, true);
  save(n, 0, g);
  save(n, 1, y);
  return set_history(
      WITHOUT_GRAD(MUL(g, WHERE(LE(y, C(0)), MUL(ADD(y, C(p[0] * p[1])), C(p[2])), C(p[1])))), n);
}

/* x: the argument of elu, or, if is_result, its result. */
Tensor *t_elu_backward(Tensor *g, double alpha, double scale, double input_scale, bool is_result,
                       Tensor *x) {
  OP_ENTERED(t_elu_backward, "elu_backward", g, alpha, scale, input_scale, is_result, x);
  const double p[3] = {alpha, scale, input_scale};
  return is_result ? elu_backward_of_result(g, p, x) : second(&second_elu, g, x, p);
}

Tensor *t_softplus_backward(Tensor *g, Tensor *x, double beta, double threshold) {
  OP_ENTERED(t_softplus_backward, "softplus_backward", g, x, beta, threshold);
  return second(&second_softplus, g, x, (const double[3]){beta, threshold});
}

Tensor *t_gelu_backward(Tensor *g, Tensor *x, const char *approximate) {
  OP_ENTERED(t_gelu_backward, "gelu_backward", g, x, approximate);
  if (!approximate || failed()) return NULL;
  if (strcmp(approximate, "none") == 0) return second(&second_gelu_erf, g, x, no_params);
  if (strcmp(approximate, "tanh") == 0) return second(&second_gelu_tanh, g, x, no_params);
  return fail(ERR_RUNTIME, "approximate argument must be either none or tanh.");
}

/* ------------------------------------------------------------ binary ops */

typedef struct {
  const char *name;
  Domain domain;
  int keep_a, keep_b; /* the saved tensors that the gradient of a, of b, needs */
  const Loops *value, *grad_a, *grad_b;
  const NodeType *node;
  Facts facts;
} Binary;
static const Binary binary_mul, binary_div, binary_ldexp_of;

/* Loops of bools, whose bytes may be any and count as 0 and 1. */
#define TRUTH_LOOP(fn, VALUE)                                                       \
  static void fn(char *const *p, size_t n, __attribute__((unused)) const double *k, \
                 __attribute__((unused)) LoopScratch *s) {                          \
    uint8_t *o = (uint8_t *)p[0];                                                   \
    const uint8_t *x = (const uint8_t *)p[1], *y = (const uint8_t *)p[2];           \
    for (size_t i = 0; i < n; i += LANES) {                                         \
      u8x16 a = u8x16_load(x + i), b = u8x16_load(y + i);                           \
      u8x16_store(o + i, VALUE);                                                    \
    }                                                                               \
  }
TRUTH_LOOP(value_bitwise_and_b8, u8x16_truth(u8x16_smaller(a, b)))
TRUTH_LOOP(value_bitwise_or_b8, u8x16_truth(a | b))
TRUTH_LOOP(value_bitwise_xor_b8, u8x16_truth(a) ^ u8x16_truth(b))

static Tensor *named_for_numbers(Tensor *y, const Facts *facts, const Tensor *a, const Tensor *b) {
  const char *name = is_wrapped(a) ? facts->left : is_wrapped(b) ? facts->right : NULL;
  if (!name) return y;
  return node_rename_with(y, name, is_wrapped(a) ? "self# other" : facts->of_right);
}

typedef struct {
  const Loops *loops;
  DType d;
} PairCall;
static Tensor *pair_values(const void *with, Tensor *a, Tensor *b) {
  const PairCall *k = with;
  return elementwise_run(k->loops, &(Tensors){2, (Tensor *[2]){a, b}}, k->d, NULL);
}

Tensor *elementwise_paired(bool quotient, Tensor *a, Tensor *b, Pairing *pairing) {
  if (blocked(a, b)) return NULL;
  const Binary *op = quotient ? &binary_div : &binary_mul;
  PairCall k = {op->value,
                domain_dtype(op->domain, elementwise_result_dtype(2, (Tensor *[2]){a, b}), op->name,
                             &op->facts)};
  if (k.d == DT_NONE) return NULL;
  Node *n = node_new(op->node, 3, 0, a, b, NULL);
  int keep = (needs(n, 0) ? op->keep_a : 0) | (needs(n, 1) ? op->keep_b : 0);
  if (keep & KEEP_A) save(n, 0, a);
  if (keep & KEEP_B) save(n, 1, b);
  Tensor *y = set_history(pairing(a, b, pair_values, &k), n);
  return n ? named_for_numbers(y, &op->facts, a, b) : y;
}

static bool has_factor(const Binary *op) {
  return op == &binary_mul || op == &binary_div || op == &binary_ldexp_of;
}

static NOINLINE Tensor *binary(const Binary *op, Tensor *a, Tensor *b) {
  OP_ENTERED_AS(binary(op, a, b), op->name, a, b);
  if (blocked(a, b)) return NULL;
  DType d = domain_dtype(op->domain, elementwise_result_dtype(2, (Tensor *[2]){a, b}), op->name,
                         &op->facts);
  if (d == DT_NONE) return NULL;
  Node *n = node_new(op->node, 3, 0, a, b, NULL);
  int keep = (needs(n, 0) ? op->keep_a : 0) | (needs(n, 1) ? op->keep_b : 0) |
             ((op->keep_a | op->keep_b) & KEEP_Y);
  if (keep & KEEP_A) save(n, 0, a);
  if (keep & KEEP_B) save(n, 1, b);
  Operands pair = operands(d, a, b, has_factor(op));
  Tensor *y = set_history(elementwise_run(op->value, &(Tensors){2, pair.in}, d, NULL), n);
  if (keep & KEEP_Y) save_output(n, 2, y);
  return n ? named_for_numbers(y, &op->facts, a, b) : y;
}

/* The first-order gradient of one operand as one loop over g and the saved tensors. g stands in for
 * missing ones. */
static NOINLINE Tensor *binary_grad(const Loops *loops, Tensor *g, Tensor *a, Tensor *b,
                                    Tensor *y) {
  if (blocked(g) || !dtype_is_float(tensor_dtype(g))) return NULL;
  Tensor *in[4] = {g, a ? a : g, b ? b : g, y ? y : g};
  TOOK(GRADIENT_FUSED);
  return elementwise_run(loops, &(Tensors){4, in}, tensor_dtype(g), NULL);
}

/* Casts an integer operand to the gradient's type, so that functions of it do not get the default
 * type. */
static Tensor *floating(Tensor *t, Tensor *g) {
  return t && g && !dtype_is_inexact(tensor_dtype(t)) && !is_wrapped(t)
             ? elementwise_cast(t, tensor_dtype(g))
             : t;
}

static Tensor *refuse_derivative(const char *name) {
  return fail(ERR_NOT_IMPLEMENTED, "the derivative for '%s' is not implemented.", name);
}

#define GRAD2(fn, A, WRAP, V)                                                         \
  FLAT_HEAD(fn, A, A, WRAP) FLAT_IN(1) FLAT_IN(2) FLAT_IN(3) FLAT_IN(4) FLAT_FOR(A) { \
    T g = i1_[i], a = i2_[i], b = i3_[i], y = i4_[i];                                 \
    (void)g, (void)a, (void)b, (void)y;                                               \
    o_[i] = (A)(V);                                                                   \
  }                                                                                   \
  }

LOOPS_BEGIN
#define FORMULA_SCALAR
#include "ops/elementwise/formula.h"
#define BINARY(words, name, Node_, schema, domain, VALUE, keep_a, keep_b, ...) \
  BINARY_ROW(name, Node_, domain, VALUE, keep_a, keep_b, __VA_ARGS__)
#define BINARY_AS(words, host, ...) BINARY(words, __VA_ARGS__)
#define BINARY_ROW(name, Node_, domain, VALUE, keep_a, keep_b, ga, gb, ...)              \
  LOOPS(domain, 2, value_##name, VALUE)                                                  \
  LOOPS_WITH(GRAD2, GRAD_##domain, grad_a_##name, ga)                                    \
  LOOPS_WITH(GRAD2, GRAD_##domain, grad_b_##name, gb)                                    \
  static void vjp_##name(Node *n, Tensor **g, Tensor **gi);                              \
  static const NodeType node_##name = {                                                  \
      #Node_ "Backward0", vjp_##name, FIELDS2((keep_a) | (keep_b)), true, NULL, NULL};   \
  static const Binary binary_##name = {#name,         domain,       keep_a,              \
                                       keep_b,        value_##name, grad_a_##name,       \
                                       grad_b_##name, &node_##name, {OP_##__VA_ARGS__}}; \
  Tensor *t_##name(Tensor *a, Tensor *b) { return binary(&binary_##name, a, b); }
#include "ops/elementwise/elementwise.def"
LOOPS_END

#define FORMULA_TAPE
#include "ops/elementwise/formula.h"
#define BINARY(words, name, Node_, schema, domain, VALUE, keep_a, keep_b, ...) \
  BINARY_VJP(name, keep_a, __VA_ARGS__)
#define BINARY_AS(words, host, ...) BINARY(words, __VA_ARGS__)
#define BINARY_VJP(name, keep_a, ga, gb, ...)                                                      \
  static void vjp_##name(Node *n, Tensor **g_, Tensor **gi) {                                      \
    Tensor *g = g_[0], *a = floating(saved_tensor(n, 0), g), *b = floating(saved_tensor(n, 1), g), \
           *y = saved_tensor(n, 2);                                                                \
    const bool ops = grad_mode || is_complex(g) || is_complex(a) || is_complex(b) ||               \
                     !tensor_is_strided(g) || !tensor_is_strided(a) || !tensor_is_strided(b);      \
    (void)a, (void)b, (void)y;                                                                     \
    if (needs(n, 0))                                                                               \
      gi[0] = ops || keep_a == REFUSED ? ga : binary_grad(grad_a_##name, g, a, b, y);              \
    if (needs(n, 1)) gi[1] = ops ? gb : binary_grad(grad_b_##name, g, a, b, y);                    \
  }
#include "ops/elementwise/elementwise.def"

/* ------------------------------------------------------------ comparisons, predicates */

static void grad_compare(Node *n, Tensor **g, Tensor **gi) {
  for (int k = 0; k < n->n_edges; k++) gi[k] = t_zeros_like(g[0]);
}
#define IN_PLACE(name, Name)                                                                     \
  const InPlaceNodes name##_in_place = {{Name "Backward0", grad_compare, "", false, NULL, NULL}, \
                                        {Name "Backward1", grad_compare, "", false, NULL, NULL}};
IN_PLACE(eq, "Eq")
IN_PLACE(ne, "Ne")
IN_PLACE(lt, "Lt")
IN_PLACE(le, "Le")
IN_PLACE(gt, "Gt")
IN_PLACE(ge, "Ge")

static NOINLINE Tensor *predicate(const char *name, Domain domain, const Loops *loops, Tensor *x) {
  OP_ENTERED_AS(predicate(name, domain, loops, x), name, x);
  if (blocked(x)) return NULL;
  DType d = domain_dtype(domain, tensor_dtype(x), name, NULL);
  return d == DT_NONE ? NULL : elementwise_run_bool(loops, 1, &x, d);
}

static NOINLINE Tensor *compare(const char *name, Domain domain, const Loops *loops, Tensor *a,
                                Tensor *b) {
  OP_ENTERED_AS(compare(name, domain, loops, a, b), name, a, b);
  if (blocked(a, b)) return NULL;
  DType d = domain_dtype(domain, elementwise_result_dtype(2, (Tensor *[2]){a, b}), name, NULL);
  return d == DT_NONE ? NULL : elementwise_run_bool(loops, 2, operands(d, a, b, false).in, d);
}

LOOPS_BEGIN
#define BOOL2(fn, A, WRAP, V) FLAT2(fn, bool, A, WRAP, V)
#define COMPARE(words, name, schema, domain, value) \
  LOOPS_WITH(BOOL2, domain, value_##name, value)    \
  Tensor *t_##name(Tensor *a, Tensor *b) { return compare(#name, domain, value_##name, a, b); }
#define BOOL1(fn, A, WRAP, V) FLAT1(fn, bool, A, WRAP, V)
#define PREDICATE(words, name, domain, value)    \
  LOOPS_WITH(BOOL1, domain, value_##name, value) \
  Tensor *t_##name(Tensor *x) { return predicate(#name, domain, value_##name, x); }
#include "ops/elementwise/elementwise.def"
LOOPS_END

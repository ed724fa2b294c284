/* The two walks of indexing: reading from and writing to places; see index.h.
 *
 * Three operands are walked together: the offsets, the other side, and the indexed tensor with
 * stride 0 wherever the offsets decide. Offsets are operand 0, so that the iteration keeps their
 * order. */
#include <string.h>

#include "call/door.h"
#include "ground/memory.h"
#include "ground/paths.h"
#include "ground/poll.h"
#include "kernels/complex.h"
#include "kernels/simd.h"
#include "ops/index/index.h"
#include "ops/view/copy.h"
#include "ops/view/view.h"
#include "tensor/iter.h"

/* ------------------------------------------------------------ offsets */

typedef struct {
  int64_t size, stride;
  bool wrap;
  OutOfBounds *bad;
} Bounds;

#define OFFSETS_LOOP(FN, T)                                                 \
  static void FN(char **p, const int64_t *st, int64_t n, const void *ctx) { \
    const Bounds *b = ctx;                                                  \
    char *at = p[0];                                                        \
    const char *index = p[1];                                               \
    for (int64_t i = 0; i < n; i++, at += st[0], index += st[1]) {          \
      int64_t v = *(const T *)(const void *)index, k = v;                   \
      if (k < 0 && b->wrap) k += b->size;                                   \
      if (k < 0 || k >= b->size) {                                          \
        if (!b->bad->found) *b->bad = (OutOfBounds){v, true};               \
        return;                                                             \
      }                                                                     \
      *(int64_t *)(void *)at += k * b->stride;                              \
    }                                                                       \
  }
OFFSETS_LOOP(offsets_i64, int64_t)
OFFSETS_LOOP(offsets_i32, int32_t)

void places_add(Tensor *at, Tensor *index, int64_t size, int64_t stride, bool wrap,
                OutOfBounds *bad) {
  if (blocked(at, index)) return;
  Bounds b = {size, stride, wrap, bad};
  iter_over(2, (Tensor *[]){at, index}, index->dtype == DT_I32 ? offsets_i32 : offsets_i64, &b);
}

Places places_slices(Tensor *x, int64_t dim, Tensor *index, bool wrap, OutOfBounds *bad) {
  Places none = {NULL, NULL};
  if (blocked(x, index)) return none;
  Tensor *offsets = tensor_zeros(1, &index->numel, DT_I64);
  places_add(offsets, index, x->ndim ? x->sizes[dim] : 1, x->ndim ? x->strides[dim] : 0, wrap, bad);
  if (!offsets || bad->found) return none;
  int64_t sizes[MAX_DIM], strides[MAX_DIM], at[MAX_DIM] = {0};
  memcpy(sizes, x->sizes, x->ndim * sizeof *sizes);
  memcpy(strides, x->strides, x->ndim * sizeof *strides);
  if (x->ndim) {
    sizes[dim] = index->numel;
    strides[dim] = 0;
    at[dim] = 1;
  }
  return (Places){tensor_alias(offsets, x->ndim, sizes, at, 0),
                  tensor_alias(x, x->ndim, sizes, strides, x->offset)};
}

/* x with the shape of an index of its rank; along dim the index decides. */
static Tensor *elements_view(Tensor *x, int64_t dim, const Tensor *index) {
  int64_t strides[MAX_DIM] = {0};
  for (int d = 0; d < x->ndim && d < index->ndim; d++) strides[d] = d == dim ? 0 : x->strides[d];
  return tensor_alias(x, index->ndim, index->sizes, strides, x->offset);
}

Places places_elements(Tensor *x, int64_t dim, Tensor *index, OutOfBounds *bad) {
  Places none = {NULL, NULL};
  if (blocked(x, index)) return none;
  Tensor *at = tensor_zeros(index->ndim, index->sizes, DT_I64);
  places_add(at, index, x->ndim ? x->sizes[dim] : 1, x->ndim ? x->strides[dim] : 0, false, bad);
  return at && !bad->found ? (Places){at, elements_view(x, dim, index)} : none;
}

/* ------------------------------------------------------------ the walks */

/* Operands: offsets, destination or value, indexed tensor. Where the offset does not vary the loop
 * is over a slice; two contiguous slices are the fast case. */
#define READ_LOOP(FN, T)                                                    \
  static void FN(char **p, const int64_t *st, int64_t n, const void *ctx) { \
    (void)ctx;                                                              \
    const int64_t *at = (const int64_t *)(const void *)p[0];                \
    char *out = p[1];                                                       \
    const char *in = p[2];                                                  \
    if (st[0] == 0) {                                                       \
      in += *at * (int64_t)sizeof(T);                                       \
      for (int64_t i = 0; i < n; i++, out += st[1], in += st[2])            \
        *(T *)(void *)out = *(const T *)(const void *)in;                   \
      return;                                                               \
    }                                                                       \
    for (int64_t i = 0; i < n; i++, out += st[1], in += st[2]) {            \
      *(T *)(void *)out = ((const T *)(const void *)in)[*at];               \
      at = (const int64_t *)(const void *)((const char *)at + st[0]);       \
    }                                                                       \
  }

#define WRITE_LOOP(FN, T, VALUE)                                               \
  static void FN(char **p, const int64_t *st, int64_t n, const void *ctx) {    \
    (void)ctx;                                                                 \
    const int64_t *at = (const int64_t *)(const void *)p[0];                   \
    const char *in = p[1];                                                     \
    char *out = p[2];                                                          \
    if (st[0] == 0) {                                                          \
      out += *at * (int64_t)sizeof(T);                                         \
      if (st[1] == sizeof(T) && st[2] == sizeof(T)) {                          \
        T *o = (T *)(void *)out;                                               \
        const T *v = (const T *)(const void *)in;                              \
        VECTOR_LOOP for (int64_t i = 0; i < n; i++) {                          \
          T a = o[i], b = v[i];                                                \
          (void)a;                                                             \
          o[i] = (T)(VALUE);                                                   \
        }                                                                      \
        return;                                                                \
      }                                                                        \
      for (int64_t i = 0; i < n; i++, out += st[2], in += st[1]) {             \
        T a = *(const T *)(const void *)out, b = *(const T *)(const void *)in; \
        (void)a;                                                               \
        *(T *)(void *)out = (T)(VALUE);                                        \
      }                                                                        \
      return;                                                                  \
    }                                                                          \
    for (int64_t i = 0; i < n; i++, out += st[2], in += st[1]) {               \
      T *o = (T *)(void *)out + *at;                                           \
      T a = *o, b = *(const T *)(const void *)in;                              \
      (void)a;                                                                 \
      *o = (T)(VALUE);                                                         \
      at = (const int64_t *)(const void *)((const char *)at + st[0]);          \
    }                                                                          \
  }

/* A write loop of little code, for rare cases. */
#define SMALL_WRITE_LOOP(FN, T, VALUE)                                        \
  static void FN(char **p, const int64_t *st, int64_t n, const void *ctx) {   \
    (void)ctx;                                                                \
    const char *at = p[0], *in = p[1];                                        \
    char *out = p[2];                                                         \
    for (int64_t i = 0; i < n; i++, at += st[0], in += st[1], out += st[2]) { \
      T *o = (T *)(void *)out + *(const int64_t *)(const void *)at;           \
      T a = ELEMENT(o), b = ELEMENT((const T *)(const void *)in);             \
      *o = (T)(VALUE);                                                        \
    }                                                                         \
  }

/* For types that C cannot cast to. */
#define MOVE_WRITE_LOOP(FN, T)                                                               \
  static void FN(char **p, const int64_t *st, int64_t n, const void *ctx) {                  \
    (void)ctx;                                                                               \
    const char *at = p[0], *in = p[1];                                                       \
    char *out = p[2];                                                                        \
    for (int64_t i = 0; i < n; i++, at += st[0], in += st[1], out += st[2])                  \
      ((T *)(void *)out)[*(const int64_t *)(const void *)at] = *(const T *)(const void *)in; \
  }

READ_LOOP(read_1, uint8_t)
READ_LOOP(read_2, uint16_t)
READ_LOOP(read_4, uint32_t)
READ_LOOP(read_8, uint64_t)
READ_LOOP(read_16, Wide16)
WRITE_LOOP(set_1, uint8_t, b)
WRITE_LOOP(set_2, uint16_t, b)
WRITE_LOOP(set_4, uint32_t, b)
WRITE_LOOP(set_8, uint64_t, b)
MOVE_WRITE_LOOP(set_16, Wide16)

#define ADD_LOOP_KIND_INT SMALL_WRITE_LOOP
#define ADD_LOOP_KIND_BOOL SMALL_WRITE_LOOP
#define ADD_LOOP_KIND_FLOAT WRITE_LOOP
/* Integers wrap around, so they are added and multiplied as unsigned. */
#define ADD_KIND_INT ((uint64_t)a + (uint64_t)b)
#define ADD_KIND_FLOAT (a + b)
#define ADD_KIND_BOOL (a | b)
#define MUL_KIND_INT ((uint64_t)a * (uint64_t)b)
#define MUL_KIND_FLOAT (a * b)
#define MUL_KIND_BOOL (a & b)
/* NaN wins on either side. */
#define LARGER (a != a ? a : b > a || b != b ? b : a)
#define SMALLER (a != a ? a : b < a || b != b ? b : a)
#define REAL_LOOPS(T, short_name, kind)                 \
  ADD_LOOP_##kind(add_##short_name, T, ADD_##kind)      \
      SMALL_WRITE_LOOP(mul_##short_name, T, MUL_##kind) \
          SMALL_WRITE_LOOP(max_##short_name, T, LARGER) \
              SMALL_WRITE_LOOP(min_##short_name, T, SMALLER)
#define LOOPS_KIND_INT(T, s) REAL_LOOPS(T, s, KIND_INT)
#define LOOPS_KIND_BOOL(T, s) REAL_LOOPS(T, s, KIND_BOOL)
#define LOOPS_KIND_FLOAT(T, s) REAL_LOOPS(T, s, KIND_FLOAT)
/* Rounds after each element, like PyTorch. */
#define HALF_LOOP(FN, T, s, VALUE)                                            \
  static void FN(char **p, const int64_t *st, int64_t n, const void *ctx) {   \
    (void)ctx;                                                                \
    const char *at = p[0], *in = p[1];                                        \
    char *out = p[2];                                                         \
    for (int64_t i = 0; i < n; i++, at += st[0], in += st[1], out += st[2]) { \
      T *o = (T *)(void *)out + *(const int64_t *)(const void *)at;           \
      float a = f32_of_##s(*o), b = f32_of_##s(*(const T *)(const void *)in); \
      *o = s##_of_f32(VALUE);                                                 \
    }                                                                         \
  }
#define f32_of_f16 float_of_half
#define f32_of_bf16 float_of_bhalf
#define f16_of_f32 half_of_float
#define bf16_of_f32 bhalf_of_float
#define LOOPS_KIND_HALF(T, s)        \
  HALF_LOOP(add_##s, T, s, (a + b))  \
  HALF_LOOP(mul_##s, T, s, (a * b))  \
  HALF_LOOP(max_##s, T, s, (LARGER)) \
  HALF_LOOP(min_##s, T, s, (SMALLER))
#define LOOPS_KIND_COMPLEX_HALF(T, s)
#define LOOPS_KIND_COMPLEX(T, s)      \
  SMALL_WRITE_LOOP(add_##s, T, a + b) \
  SMALL_WRITE_LOOP(mul_##s, T, complex_mul_f64((complex_f64)a, (complex_f64)b))
#define ROW(code, name, T, short_name, text, kind, legacy) LOOPS_##kind(T, short_name)
DTYPE_ROWS(ROW)
#undef ROW

static Loop *const read_loops[17] = {
    [1] = read_1, [2] = read_2, [4] = read_4, [8] = read_8, [16] = read_16};
static Loop *const set_loops[17] = {
    [1] = set_1, [2] = set_2, [4] = set_4, [8] = set_8, [16] = set_16};
static Loop *const write_loops[DT_COUNT][PUT_MIN + 1] = {
#define REAL_WRITES(name, s) \
  [name] = {[PUT_ADD] = add_##s, [PUT_MUL] = mul_##s, [PUT_MAX] = max_##s, [PUT_MIN] = min_##s},
#define WRITES_KIND_INT REAL_WRITES
#define WRITES_KIND_BOOL REAL_WRITES
#define WRITES_KIND_FLOAT REAL_WRITES
#define WRITES_KIND_HALF REAL_WRITES
#define WRITES_KIND_COMPLEX_HALF(name, s)
#define WRITES_KIND_COMPLEX(name, s) [name] = {[PUT_ADD] = add_##s, [PUT_MUL] = mul_##s},
#define ROW(code, name, T, short_name, text, kind, legacy) WRITES_##kind(name, short_name)
    DTYPE_ROWS(ROW)
#undef ROW
};

/* The commonest walk: rows that are contiguous on both sides, in the order of the offsets. */
static bool read_rows(const Iter *it, int64_t size) {
  if (it->ndim != 2 || it->strides[0][1] != 0 || it->strides[2][0] != 0) return false;
  if (it->strides[1][1] != size || it->strides[2][1] != size) return false;
  const char *at = it->data[0];
  char *out = it->data[1];
  int64_t n_bytes = it->sizes[1] * size;
  for (int64_t i = 0; i < it->sizes[0]; i++, at += it->strides[0][0], out += it->strides[1][0])
    bytes_copy(out, it->data[2] + *(const int64_t *)(const void *)at * size, (size_t)n_bytes);
  TOOK(GATHER_ROWS);
  return true;
}

static bool rows_contiguous(const Tensor *x) {
  int64_t step = 1;
  for (int i = x->ndim - 1; i > 0; step *= x->sizes[i--])
    if (x->sizes[i] != 1 && x->strides[i] != step) return false;
  return x->ndim > 0;
}

static inline void copy_line(char *to, const char *from) {
  f32x4 v[4];
  UNROLLED for (int k = 0; k < 4; k++) memcpy(&v[k], from + 16 * k, 16);
  UNROLLED for (int k = 0; k < 4; k++) memcpy(to + 16 * k, &v[k], 16);
}

/* Four rows at a time, so that their memory accesses overlap. */
static void copy_four_rows(char *to, const char *a, const char *b, const char *c, const char *d,
                           size_t size) {
  char *to_b = to + size, *to_c = to_b + size, *to_d = to_c + size;
  size_t rest = size & 63;
  for (const char *end = a + (size - rest); a < end;
       a += 64, b += 64, c += 64, d += 64, to += 64, to_b += 64, to_c += 64, to_d += 64) {
    copy_line(to, a);
    copy_line(to_b, b);
    copy_line(to_c, c);
    copy_line(to_d, d);
  }
  if (!rest) return;
  bytes_copy(to, a, rest);
  bytes_copy(to_b, b, rest);
  bytes_copy(to_c, c, rest);
  bytes_copy(to_d, d, rest);
}

bool places_read_rows(const Tensor *x, const Tensor *index, Tensor *out, OutOfBounds *bad) {
  if (blocked(x, index, out) || index->dtype != DT_I64 || !tensor_is_contiguous(index) ||
      !rows_contiguous(x))
    return false;
  if (tensor_absent(out)) return true;
  const int64_t *at = (const int64_t *)(const void *)tensor_data(index);
  const int64_t n = index->numel, rows = x->sizes[0], bytes = dtype_bytes(tensor_dtype(x));
  const size_t size = n ? (size_t)(out->numel / n * bytes) : 0,
               step = (size_t)(x->strides[0] * bytes);
  const char *from = tensor_data(x);
  char *to = tensor_data(out);
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, to += 4 * size) {
    const uint64_t a = (uint64_t)at[i], b = (uint64_t)at[i + 1], c = (uint64_t)at[i + 2],
                   d = (uint64_t)at[i + 3], end = (uint64_t)rows;
    if (poll_stops((int64_t)size / 2)) return true;
    if (a >= end || b >= end || c >= end || d >= end) break;
    copy_four_rows(to, from + (size_t)a * step, from + (size_t)b * step, from + (size_t)c * step,
                   from + (size_t)d * step, size);
  }
  for (; i < n; i++, to += size) {
    const int64_t k = at[i];
    if (k < 0 || k >= rows) {
      *bad = (OutOfBounds){k, true};
      return true;
    }
    bytes_copy(to, from + (size_t)k * step, size);
  }
  TOOK(GATHER_ROWS);
  return true;
}

bool places_read(Places p, Tensor *out) {
  if (failed() || !p.at || !p.view || !out) return false;
  Iter it;
  int64_t size = dtype_bytes(tensor_dtype(out));
  iter_build(&it, 3, (Tensor *[]){p.at, out, p.view});
  if (!read_rows(&it, size)) iter_run(&it, read_loops[size], NULL);
  return true;
}

/* Operands: destination, index, indexed tensor. */
#define PICK_LOOP(FN, T)                                                        \
  static void FN(char **p, const int64_t *st, int64_t n, const void *ctx) {     \
    const Bounds *b = ctx;                                                      \
    const ptrdiff_t out_step = (ptrdiff_t)st[0], index_step = (ptrdiff_t)st[1], \
                    in_step = (ptrdiff_t)st[2];                                 \
    const size_t stride = (size_t)b->stride;                                    \
    const uint64_t size = (uint64_t)b->size;                                    \
    char *out = p[0];                                                           \
    const char *index = p[1], *in = p[2];                                       \
    for (ptrdiff_t i = (ptrdiff_t)n; i;                                         \
         i--, out += out_step, index += index_step, in += in_step) {            \
      const int64_t k = *(const int64_t *)(const void *)index;                  \
      if ((uint64_t)k >= size) {                                                \
        if (!b->bad->found) *b->bad = (OutOfBounds){k, true};                   \
        return;                                                                 \
      }                                                                         \
      *(T *)(void *)out = ((const T *)(const void *)in)[(size_t)k * stride];    \
    }                                                                           \
  }
PICK_LOOP(pick_4, uint32_t)
PICK_LOOP(pick_8, uint64_t)

bool places_read_elements(Tensor *x, int64_t dim, Tensor *index, Tensor *out, OutOfBounds *bad) {
  const int64_t bytes = out ? dtype_bytes(tensor_dtype(out)) : 0;
  if (blocked(x, index, out) || index->dtype != DT_I64 || (bytes != 4 && bytes != 8)) return false;
  Bounds b = {x->ndim ? x->sizes[dim] : 1, x->ndim ? x->strides[dim] : 0, false, bad};
  Tensor *view = elements_view(x, dim, index);
  if (view) iter_over(3, (Tensor *[]){out, index, view}, bytes == 4 ? pick_4 : pick_8, &b);
  TOOK(GATHER_ELEMENTS);
  return true;
}

bool places_write(Tensor *x, Places p, Put put, Tensor *value) {
  if (failed() || !p.at || !p.view || !value || !tensor_write_begin(x, false)) return false;
  DType d = tensor_dtype(x);
  Loop *loop = put == PUT_SET ? set_loops[dtype_bytes(d)] : write_loops[d][put];
  if (!loop) return dtype_no_kernel("scatter_gather_tensor_cpu", d);
  iter_over(3, (Tensor *[]){p.at, value, p.view}, loop, NULL);
  return true;
}

/* ------------------------------------------------------------ masks */

Tensor *index_mask_plain(Tensor *mask) {
  if (blocked(mask)) return NULL;
  if (mask->dtype == DT_BOOL && tensor_is_contiguous(mask)) return tensor_settled(mask);
  Tensor *m = WITH_FORM(mask->form & FORM_ABSENT, tensor_empty(mask->ndim, mask->sizes, DT_BOOL));
  return tensor_copy_data(m, mask) ? m : NULL;
}

int64_t index_mask_count(const Tensor *mask) {
  if (tensor_absent(mask) && !door_needs_elements("nonzero")) return 0;
  const uint8_t *m = (const uint8_t *)tensor_data(mask), *end = m + mask->numel;
  int64_t count = 0;
  while (end - m >= 16) {
    u8x16 sums = {0};
    for (int k = 0; k < UINT8_MAX && end - m >= 16; k++, m += 16)
      sums += u8x16_truth(u8x16_load(m));
    for (int l = 0; l < 16; l++) count += sums[l];
  }
  for (; m < end; m++) count += *m != 0;
  return count;
}

enum { PIECE = 512 };

/* Branch-free within a row: the offset of a false element is overwritten by the next, until all n
 * are found. */
void index_mask_offsets(const Tensor *mask, const int64_t *strides, int64_t n, int64_t *out) {
  uint8_t truth[PIECE];
  int last = mask->ndim - 1;
  int64_t index[MAX_DIM] = {0}, offset = 0, *const end = out + n;
  int64_t width = last < 0 ? 1 : mask->sizes[last], step = last < 0 ? 0 : strides[last];
  for (const char *row = tensor_data(mask); out < end; row += width) {
    int64_t at = offset;
    for (int64_t from = 0; from < width && out < end; from += PIECE) {
      const uint8_t *t = truth, *rest = t + (width - from < PIECE ? width - from : PIECE);
      copy_truths((char *)truth, row + from, (size_t)(rest - t));
      for (; t < rest && out < end; t++, at += step) {
        *out = at;
        out += *t;
      }
    }
    for (int d = last - 1; d >= 0; d--) {
      offset += strides[d];
      if (++index[d] < mask->sizes[d]) break;
      offset -= strides[d] * mask->sizes[d];
      index[d] = 0;
    }
  }
}

/* ------------------------------------------------------------ small things */

Tensor *index_clone(Tensor *x) {
  if (blocked(x)) return NULL;
  Tensor *y = tensor_empty_like(x, tensor_dtype(x));
  return tensor_copy_data(y, x) ? y : NULL;
}

Tensor *index_clone_contiguous(Tensor *x) {
  if (blocked(x)) return NULL;
  Tensor *y = tensor_empty(x->ndim, x->sizes, tensor_dtype(x));
  return tensor_copy_data(y, x) ? y : NULL;
}

Tensor *index_zeros(Node *n, int k, DType d) {
  Ints sizes = num_list_at(n, k);
  return failed() ? NULL : tensor_zeros(sizes.n, sizes.v, d);
}

Tensor *t_new_zeros(Tensor *like, Ints sizes) {
  OP_ENTERED(t_new_zeros, "new_zeros", like, sizes);
  return blocked(like) ? NULL : tensor_zeros(sizes.n, sizes.v, tensor_dtype(like));
}

Tensor *index_number(Tensor *number, DType d) {
  if (blocked(number) || !element_number_fits(number, d)) return NULL;
  Tensor *v = tensor_empty(0, NULL, d);
  return tensor_copy_data(v, number) ? v : NULL;
}

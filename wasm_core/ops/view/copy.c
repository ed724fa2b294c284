/* Copies and casts: moving elements between tensors of any layout and dtype.
 *
 * Every copy ends in tensor_copy_data: one memmove where both sides are laid out alike, a blocked
 * transpose where they run across each other, strided loops otherwise. A float becomes an integer
 * the way x86 does it, on every host. */
#include "ops/view/copy.h"

#include <float.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/paths.h"
#include "kernels/simd.h"
#include "ops/op.h"
#include "tensor/iter.h"
#include "view_rows.h"

/* ------------------------------------------------------------ transposing copies */

enum { TILE = 16, BAND = 8 };

/* out[i * rows_apart + j] = in[i + j * cols_apart], i below n_rows, j below n_cols; strides in
 * elements. Tiles keep both the lines read and the lines written in the first cache. */
#define TRANSPOSE(FN, T)                                                                          \
  static void FN(char *out_, const char *in_, int64_t n_rows, int64_t n_cols, int64_t rows_apart, \
                 int64_t cols_apart) {                                                            \
    T *out = (T *)(void *)out_;                                                                   \
    const T *in = (const T *)(const void *)in_;                                                   \
    for (int64_t i0 = 0; i0 < n_rows; i0 += TILE) {                                               \
      int64_t i1 = i0 + TILE < n_rows ? i0 + TILE : n_rows;                                       \
      for (int64_t j0 = 0; j0 < n_cols; j0 += TILE) {                                             \
        int64_t j1 = j0 + TILE < n_cols ? j0 + TILE : n_cols;                                     \
        for (int64_t i = i0; i < i1; i++)                                                         \
          for (int64_t j = j0; j < j1; j++)                                                       \
            out[i * rows_apart + j] = ELEMENT(in + i + j * cols_apart);                           \
      }                                                                                           \
    }                                                                                             \
  }
/* TRANSPOSE by squares of vectors, a band of rows at a time: with rows a power of two apart, more
 * lines than a band has would fall on one set of the cache. The rests at both edges go the slow
 * way. */
#define TRANSPOSE_VECTORS(FN, T, V, LANES, SLOWLY)                                                \
  static void FN(char *out_, const char *in_, int64_t n_rows, int64_t n_cols, int64_t rows_apart, \
                 int64_t cols_apart) {                                                            \
    T *out = (T *)(void *)out_;                                                                   \
    const T *in = (const T *)(const void *)in_;                                                   \
    int64_t rows = n_rows & -LANES, cols = n_cols & -LANES;                                       \
    for (int64_t i0 = 0; i0 < rows; i0 += BAND)                                                   \
      for (int64_t j = 0; j < cols; j += LANES)                                                   \
        for (int64_t i = i0; i < i0 + BAND && i < rows; i += LANES) {                             \
          V square[LANES];                                                                        \
          UNROLLED for (int l = 0; l < LANES; l++)                                                \
              square[l] = V##_load(in + i + (j + l) * cols_apart);                                \
          V##_transpose(square);                                                                  \
          UNROLLED for (int l = 0; l < LANES; l++)                                                \
              V##_store(out + (i + l) * rows_apart + j, square[l]);                               \
        }                                                                                         \
    TOOK(TRANSPOSE_VECTORS);                                                                      \
    SLOWLY((char *)(out + cols), (const char *)(in + cols * cols_apart), rows, n_cols - cols,     \
           rows_apart, cols_apart);                                                               \
    SLOWLY((char *)(out + rows * rows_apart), (const char *)(in + rows), n_rows - rows, n_cols,   \
           rows_apart, cols_apart);                                                               \
  }
TRANSPOSE(transpose_1, uint8_t)
TRANSPOSE(transpose_b8, bool)
TRANSPOSE(transpose_2, uint16_t)
TRANSPOSE(transpose_16, Wide16)
TRANSPOSE(transpose_slowly_4, uint32_t)
TRANSPOSE(transpose_slowly_8, uint64_t)
TRANSPOSE_VECTORS(transpose_4, float, f32x4, 4, transpose_slowly_4)
TRANSPOSE_VECTORS(transpose_8, double, f64x2, 2, transpose_slowly_8)

typedef void Transpose(char *out, const char *in, int64_t n_rows, int64_t n_cols,
                       int64_t rows_apart, int64_t cols_apart);
static Transpose *const transposes[17] = {[1] = transpose_1,
                                          [2] = transpose_2,
                                          [4] = transpose_4,
                                          [8] = transpose_8,
                                          [16] = transpose_16};

/* The dimension along which the source is dense, if the destination is dense along the innermost
 * one instead; -1 if the copy does not cross. */
static int crossing_dim(const Iter *it, int64_t width) {
  int last = it->ndim - 1;
  if (last < 1 || it->strides[0][last] != width || it->sizes[last] < 4) return -1;
  if (it->strides[1][last] == width || it->strides[1][last] == 0) return -1;
  for (int d = last - 1; d >= 0; d--)
    if (it->strides[1][d] == width && it->sizes[d] >= 4) return d;
  return -1;
}

typedef struct {
  Transpose *run;
  int64_t n_rows, rows_apart, width;
} Crossing;

/* A Loop over the innermost dimension that handles the crossing one as well. */
static void crossing_loop(char **p, const int64_t *st, int64_t n, const void *ctx) {
  const Crossing *c = ctx;
  c->run(p[0], p[1], c->n_rows, n, c->rows_apart, st[1] / c->width);
}

static void remove_dim(Iter *it, int d) {
  it->ndim--;
  for (int i = d; i < it->ndim; i++) {
    it->sizes[i] = it->sizes[i + 1];
    for (int k = 0; k < it->n_operands; k++) it->strides[k][i] = it->strides[k][i + 1];
  }
}

static bool copy_crossing(Iter *it, DType dtype) {
  const int64_t width = dtype_bytes(dtype);
  int d = crossing_dim(it, width);
  if (d < 0 || it->strides[0][d] % width || it->strides[1][it->ndim - 1] % width) return false;
  Crossing c = {dtype == DT_BOOL ? transpose_b8 : transposes[width], it->sizes[d],
                it->strides[0][d] / width, width};
  remove_dim(it, d);
  iter_run(it, crossing_loop, &c);
  return true;
}

/* ------------------------------------------------------------ copying data */

static bool same_strides(const Tensor *a, const Tensor *b) {
  for (int i = 0; i < a->ndim; i++)
    if (a->sizes[i] != 1 && a->strides[i] != b->strides[i]) return false;
  return true;
}

/* The range of storage elements that t spans: [*from, *to). */
static void reach(const Tensor *t, int64_t *from, int64_t *to) {
  *from = *to = t->offset;
  for (int i = 0; i < t->ndim; i++)
    *(t->strides[i] < 0 ? from : to) += (t->sizes[i] - 1) * t->strides[i];
  *to += 1;
}

Overlap tensor_overlap(const Tensor *a, const Tensor *b) {
  if (a->storage != b->storage || !a->numel || !b->numel) return OVERLAP_NONE;
  int64_t a0, a1, b0, b1, wa = dtype_bytes(tensor_dtype(a)), wb = dtype_bytes(tensor_dtype(b));
  reach(a, &a0, &a1);
  reach(b, &b0, &b1);
  if (a1 * wa <= b0 * wb || b1 * wb <= a0 * wa) return OVERLAP_NONE;
  if (a->dtype == b->dtype && a->offset == b->offset && tensor_same_shape(a, b) &&
      same_strides(a, b))
    return OVERLAP_FULL;
  return tensor_is_dense(a) && tensor_is_dense(b) ? OVERLAP_PARTIAL : OVERLAP_PERHAPS;
}

/* An alias of t that shows its bytes as they are: without the lazy conjugate or negative. */
static Tensor *without_lazy(Tensor *t) {
  if (failed() || !t || !(t->flags & FLAGS_LAZY)) return t;
  Tensor *bare = tensor_alias(t, t->ndim, t->sizes, t->strides, t->offset);
  tensor_set_lazy(bare, 0);
  return bare;
}

static bool copy_bytes(Tensor *dst, Tensor *src);

/* A copy of src that no write to another tensor can reach. */
static Tensor *private_copy(Tensor *src) {
  Tensor *copy = tensor_empty_like(src, tensor_dtype(src));
  tensor_set_lazy(copy, src->flags & FLAGS_LAZY);
  return copy && copy_bytes(copy, src) ? copy : NULL;
}

Tensor *tensor_settled(Tensor *t) {
  if (blocked(t)) return NULL;
  return t->flags & FLAGS_LAZY ? tensor_computed(t) : t->storage->exports ? private_copy(t) : t;
}

void copy_truths(char *to_, const char *from_, size_t n) {
  uint8_t *to = (uint8_t *)to_;
  const uint8_t *from = (const uint8_t *)from_;
  for (; n >= 64; n -= 64, to += 64, from += 64)
    UNROLLED for (size_t k = 0; k < 64; k += 16)
        u8x16_store(to + k, u8x16_truth(u8x16_load(from + k)));
  for (; n >= 16; n -= 16, to += 16, from += 16) u8x16_store(to, u8x16_truth(u8x16_load(from)));
  for (; n; n--) *to++ = *from++ != 0;
}

/* Conjugates or negates in place: by sign bits, except for integers. */
typedef struct {
  int64_t part;   /* the bytes of a number, or of a part of a complex one */
  bool conj, neg; /* the changes to make */
  bool complex, integer;
} Turn;
static void turn_part(char *at, int64_t bytes, bool integer) {
  if (!integer) at[bytes - 1] ^= (char)0x80;
  else
    for (int64_t i = 0, carry = 1; i < bytes; i++) {
      carry += (uint8_t)~at[i];
      at[i] = (char)carry;
      carry >>= 8;
    }
}
static void turn_loop(char **p, const int64_t *st, int64_t n, const void *ctx) {
  const Turn *t = ctx;
  for (char *at = p[0]; n; n--, at += st[0]) {
    if (t->neg) turn_part(at, t->part, t->integer);
    if (t->complex && t->neg != t->conj) turn_part(at + t->part, t->part, false);
  }
}

/* dst has src's bytes: applies the changes by which their lazy flags differ. */
static void turn_copied(Tensor *dst, const Tensor *src) {
  int turns = tensor_absent(dst) ? 0 : (dst->flags ^ src->flags) & FLAGS_LAZY;
  bool complex = dtype_is_complex(tensor_dtype(dst));
  if (!complex) turns &= FLAG_NEG;
  if (!turns || dst->dtype == DT_BOOL) return;
  Turn t = {dtype_bytes(tensor_dtype(dst)) / (complex ? 2 : 1), turns & FLAG_CONJ, turns & FLAG_NEG,
            complex, !dtype_is_inexact(tensor_dtype(dst))};
  if ((dst = without_lazy(dst))) iter_over(1, &dst, turn_loop, &t);
}

static bool copy_bytes(Tensor *dst, Tensor *src) {
  dst = without_lazy(dst);
  src = without_lazy(src);
  if (blocked(dst, src)) return false;
  if (tensor_absent(dst)) return true;
  if (tensor_absent(src)) {
    fail(ERR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
    return false;
  }
  if (dst->numel == 0) return true;
  Overlap overlap = tensor_overlap(dst, src);
  if (overlap == OVERLAP_FULL) return true;
  if (overlap != OVERLAP_NONE) src = private_copy(src);
  if (!src || !tensor_write_begin(dst, src->storage != dst->storage)) return false;
  DType to = tensor_dtype(dst), from = tensor_dtype(src);
  bool alike = to == from && tensor_same_shape(dst, src) && same_strides(dst, src);
  if (alike && tensor_is_dense(dst)) {
    if (to == DT_BOOL) copy_truths(tensor_data(dst), tensor_data(src), (size_t)dst->numel);
    else bytes_copy(tensor_data(dst), tensor_data(src), (size_t)(dst->numel * dtype_bytes(to)));
    return true;
  }
  Iter it;
  iter_build(&it, 2, (Tensor *[]){dst, src});
  if (to != from || !copy_crossing(&it, to)) iter_run(&it, cast_loop(to, from), NULL);
  return true;
}

/* Copies between tensors with different lazy flags. A lazy source of another dtype is computed
 * first: the integer of a negative is not always the negative of the integer. */
static bool copy_turned(Tensor *dst, Tensor *src) {
  if (src->flags & FLAGS_LAZY && dst->dtype != src->dtype)
    return tensor_copy_data(dst, tensor_computed(src));
  if (tensor_overlap(dst, src) != OVERLAP_NONE) src = private_copy(src);
  if (!copy_bytes(dst, src)) return false;
  turn_copied(dst, src);
  return true;
}

bool tensor_copy_data(Tensor *dst, Tensor *src) {
  bool turned = dst && src && !failed() && (dst->flags ^ src->flags) & FLAGS_LAZY;
  return turned ? copy_turned(dst, src) : copy_bytes(dst, src);
}

Tensor *tensor_computed(Tensor *x) {
  Tensor *y = blocked(x) ? NULL
                         : WITH_FORM(x->form & FORM_ABSENT, tensor_empty_like(x, tensor_dtype(x)));
  return tensor_copy_data(y, x) ? y : NULL;
}

/* ------------------------------------------------------------ memory formats */

static const struct {
  const char *name;
  MemoryFormat format;
} format_names[] = {{"contiguous_format", FORMAT_CONTIGUOUS},
                    {"preserve_format", FORMAT_PRESERVE},
                    {"channels_last", FORMAT_CHANNELS_LAST},
                    {"channels_last_3d", FORMAT_CHANNELS_LAST_3D}};

MemoryFormat copy_format_named(const char *name, MemoryFormat absent) {
  if (!name) return absent;
  if (strncmp(name, "torch.", 6) == 0) name += 6;
  for (size_t i = 0; i < sizeof format_names / sizeof *format_names; i++)
    if (strcmp(name, format_names[i].name) == 0) return format_names[i].format;
  fail(ERR_TYPE, "memory_format must be a torch.memory_format, not '%s'", name);
  return absent;
}

bool copy_format_strides(int ndim, const int64_t *sizes, MemoryFormat format, int64_t *strides) {
  if (format == FORMAT_CONTIGUOUS || format == FORMAT_PRESERVE) {
    sizes_contiguous_strides(ndim, sizes, strides);
    return true;
  }
  int rank = format == FORMAT_CHANNELS_LAST ? 4 : 5;
  if (ndim != rank) {
    fail(ERR_RUNTIME, "required rank %d tensor to use channels_last%s format", rank,
         rank == 4 ? "" : "_3d");
    return false;
  }
  int64_t step = sizes[1] > 1 ? sizes[1] : 1;
  strides[1] = 1;
  for (int i = ndim - 1; i >= 2; i--) {
    strides[i] = step;
    step *= sizes[i] > 1 ? sizes[i] : 1;
  }
  strides[0] = step;
  return true;
}

Tensor *tensor_empty_format(int ndim, const int64_t *sizes, DType dtype, MemoryFormat format) {
  int64_t strides[MAX_DIM];
  if (failed()) return NULL;
  if (format == FORMAT_CONTIGUOUS || format == FORMAT_PRESERVE)
    return tensor_empty(ndim, sizes, dtype);
  if (!copy_format_strides(ndim, sizes, format, strides)) return NULL;
  return tensor_empty_strided(ndim, sizes, strides, dtype);
}

Tensor *tensor_empty_like_format(const Tensor *like, DType dtype, MemoryFormat format) {
  if (blocked(like)) return NULL;
  if (format == FORMAT_PRESERVE) return tensor_empty_like(like, dtype);
  return tensor_empty_format(like->ndim, like->sizes, dtype, format);
}

bool tensor_has_format(const Tensor *t, MemoryFormat format) {
  int64_t strides[MAX_DIM];
  if (format == FORMAT_PRESERVE) return true;
  if (format == FORMAT_CONTIGUOUS) return tensor_is_contiguous(t);
  if (t->ndim != (format == FORMAT_CHANNELS_LAST ? 4 : 5)) return false;
  copy_format_strides(t->ndim, t->sizes, format, strides);
  for (int i = 0; i < t->ndim; i++)
    if (t->sizes[i] != 1 && t->strides[i] != strides[i]) return false;
  return true;
}

/* ------------------------------------------------------------ casts, clones */

GRAD_SPARSE(ToCopyBackward0, "") {
  DType dtype = (DType)n->numbers[0].i;
  int32_t form = (int32_t)n->numbers[1].i;
  bool there = !g[0] || (g[0]->form & FORM_ABSENT) == form;
  gi[0] = there ? t_to(g[0], dtype) : t_to_device(g[0], dtype, form, FORMAT_PRESERVE);
}

Tensor *t_to_device(Tensor *x, DType dtype, int32_t form, MemoryFormat format) {
  VIEW_ENTERED_AS(t_to_device(x, dtype, form, format), "_to_copy", x, dtype);
  if (blocked(x)) return NULL;
  Node *n = dtype_is_inexact(dtype) ? node_new(&ToCopyBackward0, 0, 2, x, NULL) : NULL;
  num_i(n, 0, x->dtype);
  num_i(n, 1, x->form & FORM_ABSENT);
  Tensor *y = WITH_FORM(form, tensor_empty_like_format(x, dtype, format));
  return set_history(tensor_copy_data(y, x) ? y : NULL, n);
}

Tensor *t_to(Tensor *x, DType dtype) {
  ANY_ENTERED(t_to, "to", x, dtype);
  return blocked(x) || x->dtype == dtype
             ? x
             : t_to_device(x, dtype, x->form & FORM_ABSENT, FORMAT_PRESERVE);
}

GRAD_SPARSE(CloneBackward0, "") { gi[0] = g[0]; }

Tensor *t_clone_format(Tensor *x, MemoryFormat format) {
  VIEW_ENTERED(t_clone_format, "clone", x, format);
  if (blocked(x)) return NULL;
  Node *n = node_new(&CloneBackward0, 0, 0, x, NULL);
  Tensor *y = tensor_empty_like_format(x, tensor_dtype(x), format);
  return set_history(tensor_copy_data(y, x) ? y : NULL, n);
}

Tensor *t_clone(Tensor *x) { return t_clone_format(x, FORMAT_PRESERVE); }

Tensor *t_contiguous(Tensor *x) {
  VIEW_ENTERED(t_contiguous, "contiguous", x);
  return blocked(x) || tensor_is_contiguous(x) ? x : t_clone_format(x, FORMAT_CONTIGUOUS);
}

/* ------------------------------------------------------------ writing in place */

bool copy_check_overlap(const Tensor *t) {
  if (!tensor_is_strided(t) || tensor_is_dense(t)) return true;
  for (int i = 0; i < t->ndim; i++)
    if (t->strides[i] == 0 && t->sizes[i] > 1) {
      fail(ERR_RUNTIME,
           "unsupported operation: more than one element of the written-to tensor refers to a "
           "single memory location. Please clone() the tensor before performing the operation.");
      return false;
    }
  return true;
}

bool copy_check_apart(const Tensor *dst, const Tensor *src, bool may_be_same) {
  Overlap overlap = tensor_overlap(dst, src);
  if (overlap != OVERLAP_PARTIAL && (overlap != OVERLAP_FULL || may_be_same)) return true;
  fail(ERR_RUNTIME,
       "unsupported operation: some elements of the input tensor and the written-to tensor refer "
       "to a single memory location. Please clone() the tensor before performing the operation.");
  return false;
}

static void grad_copy(Node *n, Tensor **g, Tensor **gi) {
  if (needs(n, 0)) gi[0] = t_zeros_like(g[0]);
  gi[1] = g[0];
}
static const NodeType CopyBackwards = {
    "torch::autograd::CopyBackwards", grad_copy, "", false, NULL, NULL};

static bool check_expands(const Tensor *dst, const Tensor *src) {
  if (sizes_expandable(src->ndim, src->sizes, dst->ndim, dst->sizes)) return true;
  int64_t both[MAX_DIM];
  int ndim = dst->ndim;
  memcpy(both, dst->sizes, (size_t)ndim * sizeof *both);
  if (sizes_broadcast(&ndim, both, src->ndim, src->sizes))
    fail(ERR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s", shape_text(dst),
         sizes_text(ndim, both));
  return false;
}

Tensor *t_copy_(Tensor *dst, Tensor *src, bool record) {
  VIEW_ENTERED_AS(t_copy_(dst, src, record), "copy_", dst, src, (bool){false}, record);
  if (blocked(dst, src) || (record && !history_check_inplace_by(dst, src))) return NULL;
  if (!check_expands(dst, src) || !copy_check_overlap(dst) || !copy_check_apart(dst, src, true))
    return NULL;
  Node *n = record && dtype_is_inexact(tensor_dtype(dst))
                ? node_new(&CopyBackwards, 0, 0, dst, src, NULL)
                : NULL;
  if (!tensor_copy_data(dst, src)) {
    node_drop(n);
    return NULL;
  }
  tensor_bump_version(dst);
  if (record) record_rebase(dst, n);
  return dst;
}

/* PyTorch numbers these nodes by the kind of value (a number, a tensor) and by whether the fill is
 * in place. The engine sums the value's gradient, like that of every broadcast operand. */
static void grad_fill(Node *n, Tensor **g, Tensor **gi) {
  if (needs(n, 0)) gi[0] = t_zeros_like(g[0]);
  if (n->n_edges > 1) gi[1] = g[0];
}
static const NodeType fill_types[4] = {{"FillBackward0", grad_fill, "", false, NULL, NULL},
                                       {"FillBackward1", grad_fill, "", false, NULL, NULL},
                                       {"FillBackward2", grad_fill, "", false, NULL, NULL},
                                       {"FillBackward3", grad_fill, "", false, NULL, NULL}};
GRAD(ZeroBackward0, "")
{ gi[0] = t_zeros_like(g[0]); }

static void fill_loop(char **p, const int64_t *strides, int64_t n, const void *ctx) {
  const Tensor *one = ctx;
  cast_loop(tensor_dtype(one), tensor_dtype(one))((char *[]){p[0], tensor_data(one)},
                                                  (const int64_t[]){strides[0], 0}, n, NULL);
}

bool tensor_fill_data(Tensor *x, Tensor *value) {
  if (blocked(x, value) || !x->numel) return !failed();
  if (tensor_absent(x)) return true;
  Tensor *one = tensor_empty(0, NULL, tensor_dtype(x));
  tensor_set_lazy(one, x->flags & FLAGS_LAZY); /* so its bytes are those to write */
  if (!tensor_copy_data(one, value) || !tensor_write_begin(x, true)) return false;
  x = without_lazy(x), one = without_lazy(one);
  if (x && one) iter_over(1, &x, fill_loop, one);
  return !failed();
}

static Tensor *fill_inplace(Tensor *x, Tensor *value, Node *n) {
  if (!tensor_fill_data(x, value)) {
    node_drop(n);
    return NULL;
  }
  tensor_bump_version(x);
  record_rebase(x, n);
  return x;
}

static bool check_fill(Tensor *x, Tensor *value) {
  if (blocked(x, value)) return false;
  if (value->ndim == 0) return !is_wrapped(value) || element_number_fits(value, tensor_dtype(x));
  fail(ERR_RUNTIME,
       "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.",
       value->ndim);
  return false;
}

static Node *fill_node(Tensor *x, Tensor *value, bool inplace) {
  if (!dtype_is_inexact(tensor_dtype(x))) return NULL;
  if (is_wrapped(value)) return node_new(&fill_types[inplace ? 2 : 0], 0, 0, x, NULL);
  return node_new(&fill_types[inplace ? 3 : 1], 0, 0, x, value, NULL);
}

Tensor *t_fill_(Tensor *x, Tensor *value) {
  VIEW_ENTERED(t_fill_, "fill_", x, value);
  if (!check_fill(x, value) || !history_check_inplace_by(x, value) ||
      !((is_wrapped(value) && !(x->flags & FLAGS_LAZY)) || copy_check_overlap(x)))
    return NULL; /* elements that share memory may take one number, unless they are lazy */
  return fill_inplace(x, value, fill_node(x, value, true));
}

Tensor *t_fill(Tensor *x, Tensor *value) {
  VIEW_ENTERED(t_fill, "fill", x, value);
  if (!check_fill(x, value)) return NULL;
  Node *n = fill_node(x, value, false);
  Tensor *y = tensor_empty_like(x, tensor_dtype(x));
  return set_history(tensor_fill_data(y, value) ? y : NULL, n);
}

Tensor *t_zero_(Tensor *x) {
  VIEW_ENTERED(t_zero_, "zero_", x);
  if (blocked(x) || !history_check_inplace(x)) return NULL;
  if (x->flags & FLAGS_LAZY && !copy_check_overlap(x)) return NULL;
  return fill_inplace(x, tensor_number(0, tensor_dtype(x)),
                      node_new(&ZeroBackward0, 0, 0, x, NULL));
}

/* ------------------------------------------------------------ constants of a shape */

Tensor *t_full_like(Tensor *x, double v) {
  VIEW_ENTERED(t_full_like, "full_like", x, v);
  if (blocked(x)) return NULL;
  Tensor *y = tensor_empty_like(x, tensor_dtype(x));
  return tensor_fill_data(y, tensor_number(v, tensor_dtype(x))) ? y : NULL;
}

Tensor *t_zeros_like(Tensor *x) {
  VIEW_ENTERED(t_zeros_like, "zeros_like", x);
  if (blocked(x)) return NULL;
  Tensor *y = tensor_empty_like(x, tensor_dtype(x));
  if (y && !tensor_absent(y))
    memset(tensor_data(y), 0, (size_t)(y->numel * dtype_bytes(tensor_dtype(y))));
  return y;
}

Tensor *t_ones_like(Tensor *x) { return t_full_like(x, 1); }

/* Convolutions and their transposes, unfold and fold.
 *
 * Three bilinear maps do all: forward (x, w -> y), data (g, w -> x) and weights (x, g -> w), each the gradient of
 * the others, so derivatives of any order stay within them. Each is a matrix product with patches: patches
 * of one sample and group are unrolled a strip of output positions at a time, so that a strip stays in cache.
 * One or two spatial dimensions are three whose first ones have size 1. */
#include <string.h>

#include "elementwise.h"
#include "gemm.h"
#include "memory.h"
#include "nn.h"
#include "view.h"

/* What a node keeps as numbers: nothing but int64_t. The names are those of the convolution that maps x to y,
 * also where it runs backwards. */
typedef struct {
  int64_t nd, groups, transposed, unbatched, samples, in_channels, out_channels;
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
  int64_t output_padding[3], bias; /* to be shown: the bias has so many elements */
} Conv;
enum { CONV_NUMBERS = sizeof(Conv) / sizeof(int64_t) };

static int64_t volume(const int64_t v[3]) { return v[0] * v[1] * v[2]; }
static int64_t patch_size(const Conv *c) { return c->in_channels / c->groups * volume(c->kernel); }

/* The output positions o in [0, n) of dimension d whose input o * stride - padding + k * dilation exists. */
static void reach(const Conv *c, int d, int64_t k, int64_t *first, int64_t *end) {
  int64_t at = k * c->dilation[d] - c->padding[d], s = c->stride[d];
  int64_t low = at >= 0 ? 0 : (-at + s - 1) / s, high = c->in[d] - at <= 0 ? 0 : (c->in[d] - at + s - 1) / s;
  *first = low < c->out[d] ? low : c->out[d];
  *end = high < c->out[d] ? high : c->out[d];
  if (*end < *first) *end = *first;
}

/* ------------------------------------------------------------ patches */

/* Walks one row of the patch matrix (a channel and a kernel offset) over output positions, line by line. The first
 * positions of a line may lie before the image or its line outside of it, and the last ones behind it. */
typedef struct {
  const Conv *c;
  int64_t offset[3], first, end; /* the reach of the last dimension */
  int64_t left, column, place[2], source[2]; /* positions to go; where the next one is, and the input line it reads */
} Walk;

typedef struct {
  int64_t length, skip, copy, source; /* zeros, then elements from `source` on, then zeros */
} Segment;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static void walk_place(Walk *w, int d, int64_t o) {
  w->place[d] = o;
  w->source[d] = o * w->c->stride[d] - w->c->padding[d] + w->offset[d];
}

static Walk walk_row(const Conv *c, int64_t row, int64_t from, int64_t count) {
  int64_t k[3] = {row / (c->kernel[1] * c->kernel[2]) % c->kernel[0], row / c->kernel[2] % c->kernel[1], row % c->kernel[2]};
  int64_t line = from / c->out[2];
  Walk w = {.c = c, .left = count, .column = from % c->out[2]};
  for (int d = 0; d < 3; d++) w.offset[d] = k[d] * c->dilation[d];
  reach(c, 2, k[2], &w.first, &w.end);
  walk_place(&w, 0, line / c->out[1]);
  walk_place(&w, 1, line % c->out[1]);
  return w;
}

static inline Segment walk_next(Walk *w) {
  const Conv *c = w->c;
  int64_t column = w->column, length = least(c->out[2] - column, w->left);
  int64_t first = w->first > column ? w->first - column : 0, end = least(w->end - column, length);
  bool inside = w->source[0] >= 0 && w->source[0] < c->in[0] && w->source[1] >= 0 && w->source[1] < c->in[1] && first < end;
  Segment s = {length, length, 0, 0};
  if (inside) {
    int64_t x = (column + first) * c->stride[2] - c->padding[2] + w->offset[2];
    s = (Segment){length, first, end - first, (w->source[0] * c->in[1] + w->source[1]) * c->in[2] + x};
  }
  w->left -= length;
  w->column = 0;
  if (w->place[1] + 1 < c->out[1]) {
    w->place[1]++;
    w->source[1] += c->stride[1];
  } else {
    walk_place(w, 1, 0);
    walk_place(w, 0, w->place[0] + 1);
  }
  return s;
}

/* Whether lines of output and input are equally long and in step, so that a row of the patch matrix is the image
 * shifted, but for what lies outside of it. */
static bool in_step(const Conv *c) {
  return c->in[2] == c->out[2] && c->stride[1] == 1 && c->stride[2] == 1 && c->out[0] == 1 && c->in[0] == 1 && c->padding[0] == 0;
}

/* unroll: patches (patch_size x count, `step` apart) of an image of in_channels / groups channels.
 * roll: adds patches back to where they came from. */
#define SIZE_float
#define SIZE_double SMALL
#define SIZE_int64_t SMALL
#define PATCHES(T)                                                                                                   \
  SIZE_##T static void copy_##T(T *to, const T *from, int64_t n) {                                                   \
    int64_t i = 0;                                                                                                   \
    for (; i + 16 / (int64_t)sizeof(T) <= n; i += 16 / (int64_t)sizeof(T)) memcpy(to + i, from + i, 16);             \
    for (; i < n; i++) to[i] = from[i];                                                                              \
  }                                                                                                                  \
  SIZE_##T static void clear_##T(T *to, int64_t n) {                                                                 \
    for (int64_t i = 0; i < n; i++) to[i] = 0;                                                                       \
  }                                                                                                                  \
  SIZE_##T static void shift_##T(const Conv *c, const T *channel, int64_t r, int64_t from, int64_t count, T *to) {   \
    Walk w = walk_row(c, r, from, count);                                                                            \
    int64_t lines = w.offset[1] - c->padding[1], shift = lines * c->in[2] + w.offset[2] - c->padding[2];             \
    int64_t first = most(-lines * c->in[2], from), end = least((c->in[1] - lines) * c->in[2], from + count);         \
    int64_t low = most(first, -shift), high = least(end, volume(c->in) - shift);                                     \
    if (high < low) low = high = from;                                                                               \
    clear_##T(to, low - from);                                                                                       \
    copy_##T(to + (low - from), channel + low + shift, high - low);                                                  \
    clear_##T(to + (high - from), from + count - high);                                                              \
    for (int64_t at = -w.column; w.first > 0 && at < count; at += c->out[2])                                         \
      for (int64_t i = most(at, 0); i < least(at + w.first, count); i++) to[i] = 0;                                  \
    for (int64_t at = -w.column; w.end < c->out[2] && at < count; at += c->out[2])                                   \
      for (int64_t i = most(at + w.end, 0); i < least(at + c->out[2], count); i++) to[i] = 0;                        \
  }                                                                                                                  \
  SIZE_##T static void unroll_##T(const Conv *c, const void *image, int64_t from, int64_t count, void *patches, int64_t step) { \
    int64_t rows = patch_size(c), spots = volume(c->kernel), s = c->stride[2];                                       \
    bool whole = in_step(c);                                                                                         \
    for (int64_t r = 0; r < rows; r++) {                                                                             \
      const T *channel = (const T *)image + r / spots * volume(c->in);                                               \
      T *to = (T *)patches + r * step;                                                                               \
      if (whole) {                                                                                                   \
        shift_##T(c, channel, r, from, count, to);                                                                   \
        continue;                                                                                                    \
      }                                                                                                              \
      for (Walk w = walk_row(c, r, from, count); w.left > 0;) {                                                      \
        Segment g = walk_next(&w);                                                                                   \
        const T *read = channel + g.source;                                                                          \
        clear_##T(to, g.skip);                                                                                       \
        if (s == 1) copy_##T(to + g.skip, read, g.copy);                                                             \
        else for (int64_t i = 0; i < g.copy; i++) to[g.skip + i] = read[i * s];                                      \
        clear_##T(to + g.skip + g.copy, g.length - g.skip - g.copy);                                                 \
        to += g.length;                                                                                              \
      }                                                                                                              \
    }                                                                                                                \
  }                                                                                                                  \
  SIZE_##T static void roll_##T(const Conv *c, void *image, int64_t from, int64_t count, const void *patches, int64_t step) { \
    int64_t rows = patch_size(c), spots = volume(c->kernel), s = c->stride[2];                                       \
    for (int64_t r = 0; r < rows; r++) {                                                                             \
      T *channel = (T *)image + r / spots * volume(c->in);                                                           \
      const T *read = (const T *)patches + r * step;                                                                 \
      for (Walk w = walk_row(c, r, from, count); w.left > 0;) {                                                   \
        Segment g = walk_next(&w);                                                                                   \
        T *to = channel + g.source;                                                                                  \
        if (s == 1) VECTOR_LOOP for (int64_t i = 0; i < g.copy; i++) to[i] = (T)(to[i] + read[g.skip + i]);          \
        else for (int64_t i = 0; i < g.copy; i++) to[i * s] = (T)(to[i * s] + read[g.skip + i]);                     \
        read += g.length;                                                                                            \
      }                                                                                                              \
    }                                                                                                                \
  }                                                                                                                  \
  SIZE_##T static void fill_rows_##T(void *to, const void *values, int64_t rows, int64_t length) {                            \
    for (int64_t r = 0; r < rows; r++)                                                                               \
      for (int64_t i = 0; i < length; i++) ((T *)to)[r * length + i] = values ? ((const T *)values)[r] : 0;          \
  }

/* A matrix and its strides. */
typedef struct {
  void *at;
  int64_t rs, cs;
} Matrix;

#define PRODUCT_FLOAT(T, short_name)                                                                                 \
  static void product_##T(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, bool add, Matrix c, void *scratch) {  \
    gemm_##short_name(m, n, k, 1, a.at, a.rs, a.cs, b.at, b.rs, b.cs, add, c.at, c.rs, c.cs, scratch);               \
  }
static void product_int64_t(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, bool add, Matrix c, void *scratch) {
  (void)scratch;
  gemm_i64(m, n, k, 1, a.at, a.rs, a.cs, b.at, b.rs, b.cs, add, c.at, c.rs, c.cs);
}
PRODUCT_FLOAT(float, f32)
PRODUCT_FLOAT(double, f64)
PATCHES(float)
PATCHES(double)
PATCHES(int64_t)

typedef struct {
  void (*unroll)(const Conv *c, const void *image, int64_t from, int64_t count, void *patches, int64_t step);
  void (*roll)(const Conv *c, void *image, int64_t from, int64_t count, const void *patches, int64_t step);
  void (*product)(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, bool add, Matrix c, void *scratch);
  void (*fill_rows)(void *to, const void *values, int64_t rows, int64_t length);
} Kernels;
#define KERNELS(T) {unroll_##T, roll_##T, product_##T, fill_rows_##T}
static const Kernels kernels[DT_COUNT] = {[DT_F32] = KERNELS(float), [DT_F64] = KERNELS(double), [DT_I64] = KERNELS(int64_t)};

/* ------------------------------------------------------------ the three maps */

enum { STRIP_BYTES = 256 << 10, LINE_BYTES = 2048 }; /* of the patches, and of one of their rows */

/* A sample and group, and what its matrices are made of. */
typedef struct {
  const Conv *c;
  const Kernels *k;
  int64_t bytes, rows, positions, strip, in_step, out_step, weight_step;
  bool direct; /* patches are the image itself */
  char *patches;
  void *scratch;
} Plan;

static bool plan_make(Plan *p, const Conv *c, DType d) {
  *p = (Plan){.c = c, .k = &kernels[d], .bytes = dtype_bytes(d), .rows = patch_size(c), .positions = volume(c->out)};
  int64_t fit = p->rows ? STRIP_BYTES / (p->rows * p->bytes) : 0, line = LINE_BYTES / p->bytes;
  p->strip = (fit < line ? fit : line) / 8 * 8;
  if (p->strip < 32) p->strip = 32;
  if (p->strip > p->positions) p->strip = p->positions;
  p->in_step = c->in_channels / c->groups * volume(c->in) * p->bytes;
  p->out_step = c->out_channels / c->groups * p->positions * p->bytes;
  p->weight_step = c->out_channels / c->groups * p->rows * p->bytes;
  p->direct = volume(c->kernel) == 1;
  for (int i = 0; i < 3; i++) p->direct = p->direct && c->stride[i] == 1 && c->padding[i] == 0;
  if (!p->direct) p->patches = scratch_array(p->rows * p->strip, (size_t)p->bytes);
  p->scratch = scratch_alloc(GEMM_SCRATCH_MAX_BYTES);
  return !failed();
}

static Matrix patches_of(const Plan *p, char *image, int64_t from, int64_t count) {
  if (p->direct) return (Matrix){image + from * p->bytes, p->positions, 1};
  p->k->unroll(p->c, image, from, count, p->patches, count);
  return (Matrix){p->patches, count, 1};
}

typedef void StripMap(const Plan *p, char *x, char *w, char *y, int64_t from, int64_t count, bool add);

/* y = w patches(x) */
static void strip_forward(const Plan *p, char *x, char *w, char *y, int64_t from, int64_t count, bool add) {
  p->k->product(p->c->out_channels / p->c->groups, count, p->rows, (Matrix){w, p->rows, 1}, patches_of(p, x, from, count), add,
                (Matrix){y + from * p->bytes, p->positions, 1}, p->scratch);
}

/* patches(x) += w^T y */
static void strip_data(const Plan *p, char *x, char *w, char *y, int64_t from, int64_t count, bool add) {
  Matrix to = {p->patches, count, 1};
  if (p->direct) to = (Matrix){x + from * p->bytes, p->positions, 1};
  p->k->product(p->rows, count, p->c->out_channels / p->c->groups, (Matrix){w, 1, p->rows},
                (Matrix){y + from * p->bytes, p->positions, 1}, p->direct && add, to, p->scratch);
  if (!p->direct) p->k->roll(p->c, x, from, count, p->patches, count);
}

/* w += y patches(x)^T */
static void strip_weights(const Plan *p, char *x, char *w, char *y, int64_t from, int64_t count, bool add) {
  Matrix b = patches_of(p, x, from, count);
  p->k->product(p->c->out_channels / p->c->groups, p->rows, count, (Matrix){y + from * p->bytes, p->positions, 1},
                (Matrix){b.at, b.cs, b.rs}, add, (Matrix){w, p->rows, 1}, p->scratch);
}

static void each_strip(const Conv *c, DType d, StripMap *map, char *x, char *w, char *y, bool add) {
  Plan p;
  size_t mark = scratch_mark();
  if (plan_make(&p, c, d))
    for (int64_t i = 0; i < c->samples * c->groups; i++)
      for (int64_t from = 0; from < p.positions; from += p.strip)
        map(&p, x + i * p.in_step, w + i % c->groups * p.weight_step, y + i * p.out_step, from,
            p.positions - from < p.strip ? p.positions - from : p.strip, add);
  scratch_release(mark);
}

/* Sizes (first, second, last nd of three). */
static Tensor *shaped(const Conv *c, int64_t first, int64_t second, const int64_t space[3], DType d) {
  int64_t sizes[5] = {first, second};
  for (int i = 0; i < c->nd; i++) sizes[2 + i] = space[3 - c->nd + i];
  return tensor_empty((int)c->nd + 2, sizes, d);
}

static bool plain_operands(Tensor **a, Tensor **b, Tensor **bias) {
  if (failed() || !*a || !*b) return false;
  bool was = grad_mode;
  grad_mode = false;
  *a = t_contiguous(*a);
  *b = t_contiguous(*b);
  if (*bias) *bias = t_contiguous(*bias);
  grad_mode = was;
  return !failed();
}

static Tensor *plain_forward(const Conv *c, Tensor *x, Tensor *w, Tensor *bias) {
  if (!plain_operands(&x, &w, &bias)) return NULL;
  DType d = (DType)x->dtype;
  Tensor *y = shaped(c, c->samples, c->out_channels, c->out, d);
  if (!y) return NULL;
  char *to = tensor_data(y);
  int64_t length = volume(c->out);
  for (int64_t i = 0; (bias || patch_size(c) == 0) && i < c->samples; i++)
    kernels[d].fill_rows(to + i * c->out_channels * length * dtype_bytes(d), bias ? tensor_data(bias) : NULL, c->out_channels, length);
  if (patch_size(c)) each_strip(c, d, strip_forward, tensor_data(x), tensor_data(w), to, bias);
  return failed() ? NULL : y;
}

static Tensor *plain_data(const Conv *c, Tensor *g, Tensor *w, Tensor *bias) {
  if (!plain_operands(&g, &w, &bias)) return NULL;
  DType d = (DType)g->dtype;
  Tensor *x = shaped(c, c->samples, c->in_channels, c->in, d);
  if (!x) return NULL;
  char *to = tensor_data(x);
  int64_t length = volume(c->in);
  for (int64_t i = 0; i < c->samples; i++)
    kernels[d].fill_rows(to + i * c->in_channels * length * dtype_bytes(d), bias ? tensor_data(bias) : NULL, c->in_channels, length);
  each_strip(c, d, strip_data, to, tensor_data(w), tensor_data(g), true);
  return failed() ? NULL : x;
}

static Tensor *plain_weights(const Conv *c, Tensor *x, Tensor *g) {
  Tensor *none = NULL;
  if (!plain_operands(&x, &g, &none)) return NULL;
  DType d = (DType)x->dtype;
  Tensor *w = shaped(c, c->out_channels, c->in_channels / c->groups, c->kernel, d);
  if (!w) return NULL;
  memset(tensor_data(w), 0, (size_t)(w->numel * dtype_bytes(d)));
  each_strip(c, d, strip_weights, tensor_data(x), tensor_data(w), tensor_data(g), true);
  return failed() ? NULL : w;
}

/* ------------------------------------------------------------ recording */

static Tensor *convolve(const Conv *c, Tensor *input, Tensor *w, Tensor *bias);
static Tensor *weights(const Conv *c, Tensor *x, Tensor *g);

static void note_conv(Node *n, const Conv *c) {
  if (n) memcpy(n->numbers, c, sizeof *c);
}
static Conv noted_conv(const Node *n) {
  Conv c;
  memcpy(&c, n->numbers, sizeof c);
  return c;
}

static Ints all_but_channels(const Conv *c) {
  int64_t *dims = scratch_alloc(4 * sizeof *dims);
  for (int i = 0; dims && i < 4; i++) dims[i] = i ? i + 1 : 0;
  return (Ints){dims ? (int32_t)c->nd + 1 : 0, dims};
}

/* y = w * x + b: dx = the transposed convolution of g, dw = the correlation of x and g, db = sum g. */
GRAD(ConvolutionBackward0, "input weight | -:i groups:i transposed:b -:9 -:4 stride:d padding:d dilation:d output_padding:d "
                           "bias_sym_sizes_opt:1") {
  Conv c = noted_conv(n), other = c;
  Tensor *input = saved(n, 0), *w = saved(n, 1);
  other.transposed = !c.transposed;
  if (needs(n, 0)) gi[0] = convolve(&other, g[0], w, NULL);
  if (needs(n, 1)) gi[1] = c.transposed ? weights(&c, g[0], input) : weights(&c, input, g[0]);
  if (needs(n, 2)) gi[2] = t_sum(g[0], all_but_channels(&c), false, DT_NONE);
}

/* The map that c names, of its x or, transposed, of its y. */
static Tensor *convolve(const Conv *c, Tensor *input, Tensor *w, Tensor *bias) {
  if (blocked(input, w)) return NULL;
  Tensor *inputs[3] = {input, w, bias};
  Node *n = node_new_list(&ConvolutionBackward0, 2, CONV_NUMBERS, 3, inputs);
  note_conv(n, c);
  num_i(n, CONV_NUMBERS - 1, bias ? bias->numel : 0);
  save(n, 0, input);
  save(n, 1, w);
  return set_history((c->transposed ? plain_data : plain_forward)(c, input, w, bias), n);
}

/* dw = weights(x, g): for h at it, dx = data(g, h), dg = forward(x, h). */
GRAD(ConvolutionBackwardBackward0, "input grad_output") {
  Conv forward = noted_conv(n), data;
  forward.transposed = 0;
  data = forward;
  data.transposed = 1;
  if (needs(n, 0)) gi[0] = convolve(&data, saved(n, 1), g[0], NULL);
  if (needs(n, 1)) gi[1] = convolve(&forward, saved(n, 0), g[0], NULL);
}

static Tensor *weights(const Conv *c, Tensor *x, Tensor *g) {
  if (blocked(x, g)) return NULL;
  Node *n = node_new(&ConvolutionBackwardBackward0, 2, CONV_NUMBERS, x, g, NULL);
  note_conv(n, c);
  if (needs(n, 1)) save(n, 0, x);
  if (needs(n, 0)) save(n, 1, g);
  return set_history(plain_weights(c, x, g), n);
}

/* ------------------------------------------------------------ arguments */

const char *c_type_name(DType d) {
  static const char *const names[DT_COUNT] = {[DT_U8] = "unsigned char", [DT_I8] = "signed char", [DT_I16] = "short int",
                                              [DT_I32] = "int",          [DT_I64] = "long int",   [DT_F32] = "float",
                                              [DT_F64] = "double",       [DT_BOOL] = "bool"};
  return names[d];
}

/* A list of one or nd numbers as the last nd of three; the others are `rest`. */
static bool spread(Ints v, int64_t nd, int64_t rest, const char *name, int64_t out[3]) {
  if (v.n != 1 && v.n != nd) {
    fail(ERR_RUNTIME, "expected %s to be a single integer value or a list of %d values to match the convolution dimensions, but got "
                      "%s=%s", name, (int)nd, name, sizes_text(v.n, v.v));
    return false;
  }
  for (int i = 0; i < 3; i++) out[i] = i < 3 - nd ? rest : v.v[v.n == 1 ? 0 : i - (3 - nd)];
  return true;
}

static bool check_ranges(const Conv *c) {
  for (int i = 0; i < 3; i++) {
    if (c->padding[i] < 0) fail(ERR_RUNTIME, "negative padding is not supported");
    if (c->stride[i] <= 0) fail(ERR_RUNTIME, "non-positive stride is not supported");
    if (c->dilation[i] <= 0) fail(ERR_RUNTIME, "non-positive dilation is not supported");
  }
  if (c->groups <= 0) fail(ERR_RUNTIME, "non-positive groups is not supported");
  return !failed();
}

static bool check_types(Tensor *x, Tensor *w, Tensor *bias) {
  if (x->dtype != w->dtype)
    fail(ERR_RUNTIME, "Input type (torch.%sTensor) and weight type (torch.%sTensor) should be the same or input should be a MKLDNN tensor "
                      "and weight is a dense tensor", dtype_info[x->dtype].legacy, dtype_info[w->dtype].legacy);
  else if (bias && bias->dtype != x->dtype)
    fail(ERR_RUNTIME, "Input type (%s) and bias type (%s) should be the same", c_type_name((DType)x->dtype), c_type_name((DType)bias->dtype));
  else if (x->dtype == DT_BOOL)
    fail(ERR_NOT_IMPLEMENTED, "\"slow_conv2d_cpu\" not implemented for '%s'", dtype_info[x->dtype].legacy);
  return !failed();
}

/* Of the integers only int64 has these kernels in PyTorch. */
static bool check_whole(const Tensor *x, const char *kernel) {
  if (dtype_is_float((DType)x->dtype) || x->dtype == DT_I64) return true;
  fail(ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, dtype_info[x->dtype].legacy);
  return false;
}

static bool check_bias(Tensor *w, Tensor *bias, int64_t channels, bool transposed) {
  if (!bias || (bias->ndim == 1 && bias->numel == channels)) return true;
  fail(ERR_RUNTIME, "Given %sweight of size %s, expected bias to be 1-dimensional with %lld elements, but got bias of size %s instead",
       transposed ? "transposed=1, " : "", shape_text(w), (long long)channels, shape_text(bias));
  return false;
}

static bool check_forward(const Conv *c, Tensor *x, Tensor *w, Tensor *bias) {
  int64_t g = c->groups;
  if (w->sizes[0] < g)
    fail(ERR_RUNTIME, "Given groups=%lld, expected weight to be at least %lld at dimension 0, but got weight of size %s instead",
         (long long)g, (long long)g, shape_text(w));
  else if (w->sizes[0] % g)
    fail(ERR_RUNTIME, "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got weight of size [%s] instead",
         (long long)g, (long long)g, shape_text(w));
  else if (x->sizes[1] != w->sizes[1] * g)
    fail(ERR_RUNTIME, "Given groups=%lld, weight of size %s, expected input%s to have %lld channels, but got %lld channels instead",
         (long long)g, shape_text(w), shape_text(x), (long long)(w->sizes[1] * g), (long long)x->sizes[1]);
  return !failed() && check_bias(w, bias, w->sizes[0], false);
}

/* "4 x 4", of the last nd of three. */
static const char *times_text(int64_t nd, const int64_t v[3]) {
  static char texts[2][128];
  static int turn;
  char *text = texts[turn ^= 1];
  size_t used = 0;
  text[0] = 0;
  for (int64_t i = 3 - nd; i < 3; i++) {
    char digits[24];
    int64_t value = v[i];
    int at = 23;
    digits[at] = 0;
    bool minus = value < 0;
    do digits[--at] = (char)('0' + (minus ? -(value % 10) : value % 10));
    while (value /= 10);
    if (minus) digits[--at] = '-';
    if (i > 3 - nd) memcpy(text + used, " x ", 4), used += 3;
    memcpy(text + used, digits + at, (size_t)(24 - at));
    used += (size_t)(23 - at);
  }
  return text;
}

static bool fit_forward(Conv *c) {
  int64_t padded[3];
  bool small = false;
  for (int i = 0; i < 3; i++) {
    int64_t span = c->dilation[i] * (c->kernel[i] - 1) + 1;
    padded[i] = c->in[i] + 2 * c->padding[i];
    small = small || padded[i] < span;
    c->out[i] = (padded[i] - span) / c->stride[i] + 1;
  }
  if (small) {
    int64_t span[3];
    for (int i = 0; i < 3; i++) span[i] = c->dilation[i] * (c->kernel[i] - 1) + 1;
    fail(ERR_RUNTIME, "Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel size can't be greater than actual "
                      "input size", times_text(c->nd, padded), times_text(c->nd, span));
  }
  return !failed();
}

/* Input without a batch gets one for the while. */
static Tensor *batched(Tensor *x, int64_t nd, const char *op) {
  if (x->ndim == nd + 2) return x;
  if (x->ndim == nd + 1) return t_unsqueeze(x, 0);
  return fail(ERR_RUNTIME, "Expected %dD (unbatched) or %dD (batched) input to %s%dd, but got input of size: %s", (int)nd + 1, (int)nd + 2,
              op, (int)nd, shape_text(x));
}

/* Sizes of the tensors on both sides: `in` those of x, or of the output of a transposed convolution. */
static bool conv_make(Conv *c, Tensor *w, int64_t nd, Ints stride, Ints padding, Ints dilation, int64_t groups) {
  *c = (Conv){.groups = groups, .nd = nd};
  if (w->ndim != nd + 2) { /* torch counts dimensions by the weight */
    int64_t two[3];
    for (int i = 0; i < nd; i++) two[i] = stride.v[stride.n == 1 ? 0 : i];
    fail(ERR_RUNTIME, "expected stride to be a single integer value or a list of %d values to match the convolution dimensions, but got "
                      "stride=%s", w->ndim - 2, sizes_text((int)nd, two));
    return false;
  }
  for (int i = 0; i < 3; i++) c->kernel[i] = i < 3 - nd ? 1 : w->sizes[2 + i - (3 - nd)];
  return spread(stride, nd, 1, "stride", c->stride) && spread(padding, nd, 0, "padding", c->padding) &&
         spread(dilation, nd, 1, "dilation", c->dilation) && check_ranges(c);
}

/* Convolves what check_types passed; small integers wrap around as they would by themselves. */
static Tensor *convolve_any(const Conv *c, Tensor *x, Tensor *w, Tensor *bias) {
  DType d = (DType)x->dtype;
  if (dtype_is_float(d)) return convolve(c, x, w, bias);
  return t_to(convolve(c, t_to(x, DT_I64), t_to(w, DT_I64), bias ? t_to(bias, DT_I64) : NULL), d);
}

static Tensor *unbatched(Tensor *y, bool was_batched) { return was_batched ? y : t_squeeze_dim(y, 0); }

Tensor *t_conv(Tensor *input, Tensor *w, Tensor *bias, int nd, Ints stride, Ints padding, Ints dilation, int64_t groups) {
  if (blocked(input, w)) return NULL;
  Conv c;
  Tensor *x = batched(input, nd, "conv");
  if (!x || !conv_make(&c, w, nd, stride, padding, dilation, groups) || !check_forward(&c, x, w, bias)) return NULL;
  c.samples = x->sizes[0], c.in_channels = x->sizes[1], c.out_channels = w->sizes[0];
  for (int i = 0; i < 3; i++) c.in[i] = i < 3 - nd ? 1 : x->sizes[2 + i - (3 - nd)];
  if (!fit_forward(&c) || !check_types(x, w, bias)) return NULL;
  if (c.dilation[0] * c.dilation[1] * c.dilation[2] > 1 && !check_whole(x, "slow_conv_dilated<>")) return NULL;
  return unbatched(convolve_any(&c, x, w, bias), x == input);
}

/* Padding by name. "same" may need one zero more at the end than at the start; those are put there first. */
Tensor *t_conv_named(Tensor *x, Tensor *w, Tensor *bias, int nd, Ints stride, const char *padding, Ints dilation, int64_t groups) {
  if (blocked(x, w)) return NULL;
  int64_t sides[3] = {0}, more[6] = {0};
  bool same = strcmp(padding, "same") == 0, uneven = false;
  if (!same && strcmp(padding, "valid") != 0) return fail(ERR_RUNTIME, "Invalid padding string: '%s'", padding);
  for (int i = 0; same && i < stride.n; i++)
    if (stride.v[i] != 1) return fail(ERR_RUNTIME, "padding='same' is not supported for strided convolutions");
  for (int i = 0; same && i < nd && i + 2 < w->ndim; i++) {
    int64_t total = dilation.v[dilation.n == 1 ? 0 : i] * (w->sizes[2 + i] - 1);
    sides[i] = total / 2;
    more[2 * (nd - 1 - i) + 1] = total % 2;
    uneven = uneven || total % 2;
  }
  if (uneven) x = t_constant_pad(x, (Ints){2 * nd, more}, tensor_wrapped_f(0));
  return t_conv(x, w, bias, nd, stride, (Ints){nd, sides}, dilation, groups);
}

/* ------------------------------------------------------------ transposed */

static bool check_transposed(const Conv *c, Tensor *x, Tensor *w, Tensor *bias, const int64_t output_padding[3]) {
  bool too_much = false;
  for (int i = 0; i < 3; i++) {
    if (output_padding[i] < 0) fail(ERR_RUNTIME, "negative output_padding is not supported");
    too_much = too_much || (output_padding[i] >= c->stride[i] && output_padding[i] >= c->dilation[i]);
  }
  if (x->sizes[1] != w->sizes[0])
    fail(ERR_RUNTIME, "Given transposed=1, weight of size %s, expected input%s to have %lld channels, but got %lld channels instead",
         shape_text(w), shape_text(x), (long long)w->sizes[0], (long long)x->sizes[1]);
  else if (x->sizes[1] % c->groups)
    fail(ERR_RUNTIME, "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got weight of size [%s] instead",
         (long long)c->groups, (long long)c->groups, shape_text(w));
  if (failed() || !check_bias(w, bias, w->sizes[1] * c->groups, true)) return false;
  if (too_much)
    fail(ERR_RUNTIME, "output padding must be smaller than either stride or dilation, but got output_padding_height: %lld "
                      "output_padding_width: %lld stride_height: %lld stride_width: %lld dilation_height: %lld dilation_width: %lld",
         (long long)output_padding[1], (long long)output_padding[2], (long long)c->stride[1], (long long)c->stride[2],
         (long long)c->dilation[1], (long long)c->dilation[2]);
  return !failed();
}

Tensor *t_conv_transpose(Tensor *input, Tensor *w, Tensor *bias, int nd, Ints stride, Ints padding, Ints output_padding, int64_t groups,
                         Ints dilation) {
  if (blocked(input, w)) return NULL;
  Conv c;
  int64_t *extra = c.output_padding;
  Tensor *x = batched(input, nd, "conv_transpose");
  if (!x || !conv_make(&c, w, nd, stride, padding, dilation, groups) || !spread(output_padding, nd, 0, "output_padding", extra) ||
      !check_transposed(&c, x, w, bias, extra) || !check_types(x, w, bias) ||
      !check_whole(x, nd == 3 ? "slow_conv_transpose3d_out_cpu" : "slow_conv_transpose2d_out_cpu"))
    return NULL;
  bool small = false;
  c.transposed = 1;
  c.samples = x->sizes[0], c.out_channels = x->sizes[1], c.in_channels = w->sizes[1] * groups;
  for (int i = 0; i < 3; i++) {
    c.out[i] = i < 3 - nd ? 1 : x->sizes[2 + i - (3 - nd)];
    c.in[i] = (c.out[i] - 1) * c.stride[i] - 2 * c.padding[i] + c.dilation[i] * (c.kernel[i] - 1) + extra[i] + 1;
    small = small || c.in[i] <= 0;
  }
  if (small)
    return fail(ERR_RUNTIME, "Given input size per channel: (%s). Calculated output size per channel: (%s). Output size is too small",
                times_text(nd, c.out), times_text(nd, c.in));
  return unbatched(convolve_any(&c, x, w, bias), x == input);
}

/* ------------------------------------------------------------ unfold, fold */

static Tensor *unfold_op(const Conv *c, Tensor *x);
static Tensor *fold_op(const Conv *c, Tensor *patches);
#define WINDOW_FIELDS "kernel_size:d -:3 stride:d padding:d dilation:d"
GRAD(Im2ColBackward0, "| -:8 self_sym_argsize_minus_2:i self_sym_argsize_minus_1:i " WINDOW_FIELDS) { Conv c = noted_conv(n); gi[0] = fold_op(&c, g[0]); }
GRAD(Col2ImBackward0, "| -:9 -:1 " WINDOW_FIELDS) { Conv c = noted_conv(n); gi[0] = unfold_op(&c, g[0]); }

static Tensor *unfold_op(const Conv *c, Tensor *x) {
  if (failed() || !x) return NULL;
  Node *n = node_new(&Im2ColBackward0, 0, CONV_NUMBERS, x, NULL);
  note_conv(n, c);
  int64_t sizes[3] = {c->samples, patch_size(c), volume(c->out)}, bytes = dtype_bytes((DType)x->dtype);
  x = t_contiguous(t_detach(x));
  Tensor *y = failed() ? NULL : tensor_empty(c->unbatched ? 2 : 3, sizes + c->unbatched, (DType)x->dtype);
  for (int64_t i = 0; y && i < c->samples; i++)
    kernels[x->dtype].unroll(c, tensor_data(x) + i * c->in_channels * volume(c->in) * bytes, 0, sizes[2],
                             tensor_data(y) + i * sizes[1] * sizes[2] * bytes, sizes[2]);
  return set_history(y, n);
}

static Tensor *fold_op(const Conv *c, Tensor *patches) {
  if (failed() || !patches) return NULL;
  Node *n = node_new(&Col2ImBackward0, 0, CONV_NUMBERS, patches, NULL);
  note_conv(n, c);
  int64_t sizes[4] = {c->samples, c->in_channels, c->in[1], c->in[2]}, bytes = dtype_bytes((DType)patches->dtype);
  patches = t_contiguous(t_detach(patches));
  Tensor *x = failed() ? NULL : tensor_zeros(c->unbatched ? 3 : 4, sizes + c->unbatched, (DType)patches->dtype);
  for (int64_t i = 0; x && i < c->samples; i++)
    kernels[x->dtype].roll(c, tensor_data(x) + i * c->in_channels * volume(c->in) * bytes, 0, volume(c->out),
                           tensor_data(patches) + i * patch_size(c) * volume(c->out) * bytes, volume(c->out));
  return set_history(x, n);
}

static bool pair(Ints v, const char *name, int64_t out[3], int64_t rest) {
  out[0] = rest;
  if (v.n != 1 && v.n != 2) fail(ERR_RUNTIME, "It is expected %s equals to 2, but got size %d", name, v.n);
  for (int i = 0; i < 2 && !failed(); i++) out[1 + i] = v.v[v.n == 1 ? 0 : i];
  return !failed();
}

static bool above_zero(const int64_t v[3], const char *what, const char *name) {
  if (v[1] > 0 && v[2] > 0) return true;
  fail(ERR_RUNTIME, "%s should be greater than zero, but got %s_height: %lld %s_width: %lld", what, name, (long long)v[1], name, (long long)v[2]);
  return false;
}

static bool window_make(Conv *c, Ints kernel, Ints dilation, Ints padding, Ints stride) {
  *c = (Conv){.groups = 1, .nd = 2};
  c->in[0] = c->out[0] = 1;
  if (!pair(kernel, "kernel_size", c->kernel, 1) || !pair(dilation, "dilation", c->dilation, 1) || !pair(padding, "padding", c->padding, 0) ||
      !pair(stride, "stride", c->stride, 1))
    return false;
  if (!above_zero(c->kernel, "kernel size", "kernel") || !above_zero(c->dilation, "dilation", "dilation") ||
      !above_zero(c->stride, "stride", "stride"))
    return false;
  if (c->padding[1] < 0 || c->padding[2] < 0)
    fail(ERR_RUNTIME, "padding should be non-negative, but got pad_height: %lld pad_width: %lld", (long long)c->padding[1], (long long)c->padding[2]);
  return !failed();
}

static void window_count(Conv *c) {
  for (int i = 1; i < 3; i++) {
    int64_t free = c->in[i] + 2 * c->padding[i] - c->dilation[i] * (c->kernel[i] - 1) - 1;
    c->out[i] = free < 0 ? -((-free + c->stride[i] - 1) / c->stride[i]) + 1 : free / c->stride[i] + 1;
  }
}

static bool check_window_dtype(const Tensor *x, const char *op) {
  if (dtype_is_float((DType)x->dtype) || x->dtype == DT_BOOL) return true;
  fail(ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", op, dtype_info[x->dtype].legacy);
  return false;
}

/* Truth values go through floats: a sum of them is true unless all are false. */
static Tensor *windows(Tensor *op(const Conv *c, Tensor *x), const Conv *c, Tensor *x) {
  return x->dtype == DT_BOOL ? t_to(op(c, t_to(x, DT_F32)), DT_BOOL) : op(c, x);
}

Tensor *t_unfold_patches(Tensor *x, Ints kernel, Ints dilation, Ints padding, Ints stride) {
  if (failed() || !x) return NULL;
  Conv c;
  if (!window_make(&c, kernel, dilation, padding, stride) || tensor_size(x, 1) < 0 || tensor_size(x, 2) < 0) return NULL;
  if (x->ndim != 3 && x->ndim != 4)
    return fail(ERR_RUNTIME, "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but "
                             "got: %s", shape_text(x));
  const int64_t *sizes = x->sizes + (x->ndim - 3);
  c.unbatched = x->ndim == 3;
  c.samples = c.unbatched ? 1 : x->sizes[0], c.in_channels = sizes[0], c.in[1] = sizes[1], c.in[2] = sizes[2];
  window_count(&c);
  if (c.out[1] < 1 || c.out[2] < 1)
    return fail(ERR_RUNTIME, "Given input with spatial size (%lld, %lld), kernel_size=(%lld, %lld), dilation=(%lld, %lld), padding=(%lld, "
                             "%lld), calculated shape of the array of sliding blocks as (%lld, %lld), but its components must be at least one.",
                (long long)c.in[1], (long long)c.in[2], (long long)c.kernel[1], (long long)c.kernel[2], (long long)c.dilation[1],
                (long long)c.dilation[2], (long long)c.padding[1], (long long)c.padding[2], (long long)c.out[1], (long long)c.out[2]);
  return check_window_dtype(x, "im2col_out_cpu") ? windows(unfold_op, &c, x) : NULL;
}

Tensor *t_fold_patches(Tensor *x, Ints output_size, Ints kernel, Ints dilation, Ints padding, Ints stride) {
  if (failed() || !x) return NULL;
  Conv c;
  if (!window_make(&c, kernel, dilation, padding, stride) || !pair(output_size, "output_size", c.in, 1)) return NULL;
  if (x->ndim != 2 && x->ndim != 3)
    return fail(ERR_RUNTIME, "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, "
                             "but got: %s", shape_text(x));
  int64_t spots = volume(c.kernel), rows = x->sizes[x->ndim - 2], count = x->sizes[x->ndim - 1];
  if (rows % spots)
    return fail(ERR_RUNTIME, "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=%lld "
                             "and kernel_size=(%lld, %lld).", (long long)rows, (long long)c.kernel[1], (long long)c.kernel[2]);
  c.unbatched = x->ndim == 2;
  c.samples = c.unbatched ? 1 : x->sizes[0], c.in_channels = rows / spots;
  window_count(&c);
  if (c.out[1] * c.out[2] != count || c.out[1] < 1)
    return fail(ERR_RUNTIME, "Given output_size=(%lld, %lld), kernel_size=(%lld, %lld), dilation=(%lld, %lld), padding=(%lld, %lld), "
                             "stride=(%lld, %lld), expected size of input's dimension 2 to match the calculated number of sliding blocks "
                             "%lld * %lld = %lld, but got input.size(2)=%lld.",
                (long long)c.in[1], (long long)c.in[2], (long long)c.kernel[1], (long long)c.kernel[2], (long long)c.dilation[1],
                (long long)c.dilation[2], (long long)c.padding[1], (long long)c.padding[2], (long long)c.stride[1], (long long)c.stride[2],
                (long long)c.out[1], (long long)c.out[2], (long long)(c.out[1] * c.out[2]), (long long)count);
  return check_window_dtype(x, "col2im_out_cpu") ? windows(fold_op, &c, x) : NULL;
}

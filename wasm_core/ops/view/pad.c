/* Padding, and the shuffles that trade channels for space.
 *
 * A constant pad copies a box; the other pads read element map[i] of a line for its element i,
 * so one gather (and its transpose, which adds) serves them. Shuffles are permutations, each the
 * other's gradient. */
#include <string.h>

#include "ground/memory.h"
#include "ground/poll.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/nn.h"
#include "view_rows.h"

/* ------------------------------------------------------------ constant */

/* The padding of dim d of ndim, before or after it (`side`). Pads are listed from the last dim
 * on. */
static int64_t pad_of(Ints pad, int ndim, int d, int side) {
  int at = 2 * (ndim - 1 - d) + side;
  return at < pad.n ? pad.v[at] : 0;
}

/* The part of t that is on both sides of a pad. `inside`: t is the padded tensor. */
static Tensor *common_box(Tensor *t, const int64_t *sizes, Ints pad, bool inside) {
  int64_t offset = t->offset, shared[MAX_DIM];
  for (int d = 0; d < t->ndim; d++) {
    int64_t before = pad_of(pad, t->ndim, d, 0), after = pad_of(pad, t->ndim, d, 1);
    int64_t cut = (before < 0 ? before : 0) + (after < 0 ? after : 0);
    shared[d] = sizes[d] + cut > 0 ? sizes[d] + cut : 0;
    offset += (inside ? (before > 0 ? before : 0) : (before < 0 ? -before : 0)) * t->strides[d];
  }
  return tensor_alias(t, t->ndim, shared, t->strides, offset);
}

GRAD(ConstantPadNdBackward0, "| pad:rest")
{
  Ints pad = {n->n_numbers, scratch_array(n->n_numbers, sizeof(int64_t))};
  if (failed()) return;
  for (int i = 0; i < pad.n; i++) ((int64_t *)(uintptr_t)pad.v)[i] = -n->numbers[i].i;
  gi[0] = t_constant_pad(g[0], pad, tensor_wrapped_f(0));
}

/* False if the size would be negative or cannot be counted. */
static bool padded_size(int64_t n, int64_t before, int64_t after, int64_t *size) {
  return !__builtin_add_overflow(n, before, size) && !__builtin_add_overflow(*size, after, size) &&
         *size >= 0;
}

static Tensor *pad_with(Tensor *x, Ints pad, Tensor *value) {
  int64_t sizes[MAX_DIM];
  for (int d = 0; d < x->ndim; d++) {
    if (!padded_size(x->sizes[d], pad_of(pad, x->ndim, d, 0), pad_of(pad, x->ndim, d, 1),
                     &sizes[d]))
      return fail(ERR_RUNTIME,
                  "The input size %lld, plus negative padding %lld and %lld resulted in a negative "
                  "output size, which is invalid. Check dimension %d of your input.",
                  (Shown)x->sizes[d], (Shown)pad_of(pad, x->ndim, d, 0),
                  (Shown)pad_of(pad, x->ndim, d, 1), d);
  }
  DType type = tensor_dtype(x);
  bool grows = false;
  for (int i = 0; i < pad.n; i++) grows = grows || pad.v[i] > 0;
  if (!grows) return t_clone(common_box(x, x->sizes, pad, false));
  Tensor *y = tensor_empty(x->ndim, sizes, type);
  Tensor *fill = elementwise_cast(value, type);
  if (!y || !fill || !t_fill_(y, fill)) return NULL;
  Tensor *to = common_box(y, x->sizes, pad, true), *from = common_box(x, x->sizes, pad, false);
  return failed() || !tensor_copy_data(to, from) ? NULL : y;
}

Tensor *t_constant_pad(Tensor *x, Ints pad, Tensor *value) {
  OP_ENTERED(t_constant_pad, "constant_pad_nd", x, pad, value);
  if (blocked(x, value)) return NULL;
  if (pad.n % 2) return fail(ERR_RUNTIME, "Padding length must be divisible by 2");
  if (pad.n > 2 * x->ndim)
    return fail(ERR_RUNTIME,
                "Padding length should be less than or equal to two times the input dimension but "
                "got padding length %d and input of dimension %d",
                pad.n, x->ndim);
  Node *n = node_new(&ConstantPadNdBackward0, 0, pad.n, x, NULL);
  for (int i = 0; n && i < pad.n; i++) num_i(n, i, pad.v[i]);
  Tensor *y = WITHOUT_GRAD(pad_with(x, pad, value));
  return set_history(y, n);
}

/* ------------------------------------------------------------ reflect, replicate, circular */

typedef enum { REFLECT, REPLICATE, CIRCULAR } PadMode;

/* The numbers of a node: nothing but int64_t. */
typedef struct {
  int64_t pad[6], mode, nd, in[3], before[3], out[3];
} Lines;
enum { LINES_NUMBERS = sizeof(Lines) / sizeof(int64_t) };

static int64_t source_of(const Lines *l, int d, int64_t o) {
  int64_t i = o - l->before[d], n = l->in[d], after = l->out[d] - n - l->before[d];
  if (l->mode == REPLICATE) return i < 0 ? 0 : i >= n ? n - 1 : i;
  if (l->mode == CIRCULAR) { /* elements cut off by a negative pad do not come round */
    int64_t first = l->before[d] < 0 ? -l->before[d] : 0,
            left = n - first + (after < 0 ? after : 0);
    return first + ((i - first) % left + left) % left;
  }
  return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
}

typedef struct {
  int64_t *of[3];
} Maps;

static bool maps_make(Maps *m, const Lines *l) {
  for (int d = 0; d < 3; d++) {
    m->of[d] = scratch_array(l->out[d] + 1, sizeof(int64_t));
    for (int64_t o = 0; m->of[d] && o < l->out[d]; o++) m->of[d][o] = source_of(l, d, o);
  }
  return !failed();
}

/* A statement for each element `to` of the padded plane, which reads element `from` of the
 * plane. */
#define EACH_ELEMENT(l, m, ...)                                                 \
  for (int64_t a = 0, to = 0; a < (l)->out[0]; a++)                             \
    for (int64_t b = 0; b < (l)->out[1]; b++) {                                 \
      int64_t line = ((m)->of[0][a] * (l)->in[1] + (m)->of[1][b]) * (l)->in[2]; \
      for (int64_t c = 0; c < (l)->out[2]; c++, to++) {                         \
        int64_t from = line + (m)->of[2][c];                                    \
        __VA_ARGS__                                                             \
      }                                                                         \
    }
static int64_t volume(const int64_t v[3]) { return v[0] * v[1] * v[2]; }

static Tensor *with_planes(const Lines *l, Tensor *like, const int64_t space[3]) {
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < like->ndim; i++)
    sizes[i] = i < like->ndim - l->nd ? like->sizes[i] : space[3 - (like->ndim - i)];
  return tensor_zeros(like->ndim, sizes, tensor_dtype(like));
}

static Tensor *gather_lines(const Lines *l, Tensor *x);
static Tensor *add_back(const Lines *l, Tensor *g, Tensor *x);

static Lines noted_lines(const Node *n) {
  Lines l;
  memcpy(&l, n->numbers, sizeof l);
  return l;
}
#define LINES_NODES(NAME, FIELDS)                                   \
  GRAD(NAME##Backward0, "self | " FIELDS)                           \
  {                                                                 \
    Lines l = noted_lines(n);                                       \
    gi[0] = add_back(&l, g[0], by_ops ? saved_tensor(n, 0) : NULL); \
  }                                                                 \
  GRAD(NAME##BackwardBackward0, "")                                 \
  {                                                                 \
    Lines l = noted_lines(n);                                       \
    gi[0] = gather_lines(&l, g[0]);                                 \
  }
LINES_NODES(ReflectionPad1D, "padding:ints2")
LINES_NODES(ReflectionPad2D, "padding:ints4")
LINES_NODES(ReflectionPad3D, "padding:ints6")
LINES_NODES(ReplicationPad1D, "padding:ints2")
LINES_NODES(ReplicationPad2D, "padding:ints4")
LINES_NODES(ReplicationPad3D, "padding:ints6")
LINES_NODES(CircularPad, "")
static const NodeType *const nodes[3][3] = {
    {&ReflectionPad1DBackward0, &ReflectionPad2DBackward0, &ReflectionPad3DBackward0},
    {&ReplicationPad1DBackward0, &ReplicationPad2DBackward0, &ReplicationPad3DBackward0},
    {&CircularPadBackward0, &CircularPadBackward0, &CircularPadBackward0}};
static const NodeType *const back_nodes[3][3] = {
    {&ReflectionPad1DBackwardBackward0, &ReflectionPad2DBackwardBackward0,
     &ReflectionPad3DBackwardBackward0},
    {&ReplicationPad1DBackwardBackward0, &ReplicationPad2DBackwardBackward0,
     &ReplicationPad3DBackwardBackward0},
    {&CircularPadBackwardBackward0, &CircularPadBackwardBackward0, &CircularPadBackwardBackward0}};

static Node *lines_node(const NodeType *type, const Lines *l, Tensor *x) {
  Node *n = node_new(type, 1, LINES_NUMBERS, x, NULL);
  if (n) memcpy(n->numbers, l, sizeof *l);
  return n;
}

static Tensor *gather_lines(const Lines *l, Tensor *x) {
  if (blocked(x)) return NULL;
  Node *n = lines_node(nodes[l->mode][l->nd - 1], l, x);
  save(n, 0, x);
  Maps m;
  x = t_contiguous(t_detach(x));
  Tensor *y = failed() || !maps_make(&m, l) ? NULL : with_planes(l, x, l->out);
  if (!y || y->numel == 0 || tensor_absent(y)) return set_history(y, n);
  int64_t planes = y->numel / volume(l->out);
  char *y_at = tensor_data(y), *x_at = tensor_data(x);
  DISPATCH_WIDTH(tensor_dtype(x), {
    const T *read = (const T *)(const void *)x_at;
    T *write = (T *)(void *)y_at;
    for (int64_t i = 0; i < planes; i++, read += volume(l->in), write += volume(l->out)) {
      if (poll_stops(4 * volume(l->out))) break;
      EACH_ELEMENT(l, &m, write[to] = read[from];)
    }
  })
  return set_history(y, n);
}

static Tensor *add_lines(const Lines *l, Tensor *g) {
  IN_FLOAT(add_lines(l, g), g);
  if (blocked(g)) return NULL;
  Node *n = lines_node(back_nodes[l->mode][l->nd - 1], l, g);
  Maps m;
  g = t_contiguous(t_detach(g));
  Tensor *x = failed() || !maps_make(&m, l) ? NULL : with_planes(l, g, l->in);
  if (!x || g->numel == 0 || tensor_absent(x)) return set_history(x, n);
  int64_t planes = g->numel / volume(l->out);
  char *g_at = tensor_data(g), *x_at = tensor_data(x);
  DISPATCH_INEXACT(tensor_dtype(g), {
    const T *read = (const T *)(const void *)g_at;
    T *write = (T *)(void *)x_at;
    for (int64_t i = 0; i < planes; i++, read += volume(l->out), write += volume(l->in)) {
      if (poll_stops(4 * volume(l->out))) break;
      EACH_ELEMENT(l, &m, write[from] += read[to];)
    }
  })
  return set_history(x, n);
}

/* The gradient as PyTorch's op. x, the argument of the padding, is shown to the host alone. */
static Tensor *add_back(const Lines *l, Tensor *g, Tensor *x) {
  static const char *const names[2][3] = {
      {"reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward"},
      {"replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward"}};
  if (l->mode == CIRCULAR) return add_lines(l, g);
  Ints pad = {2 * (int)l->nd, l->pad};
  OP_ENTERED_AS(add_back(l, g, x), names[l->mode][l->nd - 1], g, x, pad);
  return add_lines(l, g);
}

static bool check_amounts(const Lines *l, const Tensor *x, Ints pad) {
  for (int i = 0; i < l->nd; i++) {
    int d = x->ndim - 1 - i;
    int64_t n = x->sizes[d], before = pad.v[2 * i], after = pad.v[2 * i + 1], size;
    if (l->mode == REFLECT && (before >= n || after >= n))
      fail(ERR_RUNTIME,
           "Argument #%d: Padding size should be less than the corresponding input dimension, but "
           "got: padding (%lld, %lld) at dimension %d of input %s",
           4 + 2 * i, (Shown)before, (Shown)after, d, shape_text(x));
    else if (l->mode == CIRCULAR && (before > n || after > n))
      fail(ERR_RUNTIME, "Padding value causes wrapping around more than once.");
    else if (l->mode == CIRCULAR && n + (before < 0 ? before : 0) + (after < 0 ? after : 0) <= 0)
      fail(ERR_RUNTIME, "Negative padding value is resulting in an empty dimension");
    else if (n == 0 || !padded_size(n, before, after, &size) || size < 1)
      fail(ERR_RUNTIME, "input (size: %lld) is too small for padding (%lld, %lld) at dimension %d",
           (Shown)n, (Shown)before, (Shown)after, d);
  }
  return !failed();
}

/* Reads the mode and the sizes before and after, with checks in PyTorch's order. */
static bool lines_make(Lines *l, const Tensor *x, Ints pad, const char *mode) {
  static const char *const names[] = {"reflect", "replicate", "circular"};
  *l = (Lines){.mode = 3, .nd = pad.n / 2};
  for (int i = 0; i < 3; i++)
    if (strcmp(mode, names[i]) == 0) l->mode = i;
  if (l->mode == 3) return fail(ERR_NOT_IMPLEMENTED, "Unrecognised padding mode %s", mode), false;
  if (pad.n < 2 || pad.n > 6 || (x->ndim != l->nd + 1 && x->ndim != l->nd + 2))
    return fail(ERR_NOT_IMPLEMENTED,
                "Padding size %d is not supported for %dD input tensor.\nSupported combinations "
                "for non-constant padding:\n  - 2D or 3D input: padding size = 2 (pads last "
                "dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n  - 4D "
                "or 5D input: padding size = 6 (pads last 3 dimensions)",
                pad.n, x->ndim),
           false;
  if (!check_amounts(l, x, pad)) return false;
  memcpy(l->pad, pad.v, (size_t)pad.n * sizeof *l->pad);
  for (int i = 0; i < 3; i++) {
    bool padded_dim = i >= 3 - l->nd;
    l->in[i] = padded_dim ? x->sizes[x->ndim - 3 + i] : 1;
    l->before[i] = padded_dim ? pad.v[2 * (2 - i)] : 0;
    l->out[i] = padded_dim ? l->in[i] + l->before[i] + pad.v[2 * (2 - i) + 1] : 1;
  }
  return true;
}

/* PyTorch's names of the ops, by the number of dimensions. */
static Tensor *pad_lines(const Lines *l, Tensor *x, Ints pad) {
  static const char *const names[][4] = {
      [REFLECT] = {"", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d"},
      [REPLICATE] = {"", "replication_pad1d", "replication_pad2d", "replication_pad3d"},
      [CIRCULAR] = {"", "_pad_circular", "_pad_circular", "_pad_circular"}};
  OP_ENTERED_AS(pad_lines(l, x, pad), names[l->mode][l->nd], x, pad);
  return gather_lines(l, x);
}

Tensor *t_pad(Tensor *x, Ints pad, const char *mode, Tensor *value) {
  OP_ENTERED(t_pad, "pad", x, pad, mode, value);
  Lines l;
  if (blocked(x) || !mode) return NULL;
  if (strcmp(mode, "constant") == 0)
    return t_constant_pad(x, pad, value ? value : tensor_wrapped_f(0));
  if (pad.n % 2) return fail(ERR_RUNTIME, "Padding length must be divisible by 2");
  if (pad.n > 2 * x->ndim)
    return fail(ERR_RUNTIME,
                "Padding length should be less than or equal to two times the input dimension but "
                "got padding length %d and input of dimension %d",
                pad.n, x->ndim);
  if (value && tensor_get_f(value, 0) != 0)
    return fail(ERR_RUNTIME, "Padding mode \"%s\" doesn't take in value argument", mode);
  if (!lines_make(&l, x, pad, mode)) return NULL;
  if (x->dtype == DT_BOOL && l.mode != CIRCULAR)
    return fail(ERR_NOT_IMPLEMENTED, "\"%s_pad%dd\" not implemented for 'Bool'",
                l.mode == REFLECT ? "reflection" : "replication", (int)l.nd);
  return pad_lines(&l, x, pad);
}

Tensor *t_pad_backward(Tensor *g, Tensor *x, Ints pad, const char *mode) {
  Lines l;
  if (blocked(g, x) || !lines_make(&l, x, pad, mode)) return NULL;
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < x->ndim; i++)
    sizes[i] = i < x->ndim - l.nd ? x->sizes[i] : l.out[3 - (x->ndim - i)];
  if (!sizes_equal(g->ndim, g->sizes, x->ndim, sizes))
    return fail(ERR_RUNTIME, "The gradient of the padded tensor has shape %s instead of %s",
                shape_text(g), sizes_text(x->ndim, sizes));
  if (!dtype_is_inexact(tensor_dtype(g)))
    return dtype_no_kernel(l.mode == REFLECT ? "reflection_pad_backward_cpu"
                                             : "replication_pad_backward_cpu",
                           tensor_dtype(g));
  return add_back(&l, g, x);
}

/* ------------------------------------------------------------ shuffles */

/* x as (lead..., sizes of `split`), permuted by `order` (of the split dims), as (lead...,
 * `merged`). Not recorded. */
static Tensor *permute_split(Tensor *x, int lead, int n_split, const int64_t *split,
                             const int64_t *order, int n_merged, const int64_t *merged) {
  int64_t sizes[MAX_DIM], dims[MAX_DIM];
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    for (int i = 0; i < lead; i++) sizes[i] = x->sizes[i], dims[i] = i;
    memcpy(sizes + lead, split, (size_t)n_split * sizeof *sizes);
    for (int i = 0; i < n_split; i++) dims[lead + i] = lead + order[i];
    y = t_permute(t_reshape(t_detach(x), lead + n_split, sizes), (Ints){lead + n_split, dims});
    memcpy(sizes + lead, merged, (size_t)n_merged * sizeof *sizes);
    y = t_reshape(t_contiguous(y), lead + n_merged, sizes);
    if (y)
      y = y->storage == x->storage ? t_clone(y) : tensor_alias(y, y->ndim, y->sizes, y->strides, 0);
  }
  return y;
}

GRAD(PixelShuffleBackward0, "| upscale_factor:int")
{ gi[0] = t_pixel_unshuffle(g[0], n->numbers[0].i); }
GRAD(PixelUnshuffleBackward0, "| downscale_factor:int")
{ gi[0] = t_pixel_shuffle(g[0], n->numbers[0].i); }
GRAD(ChannelShuffleBackward0, "| groups:int")
{
  if (g[0]) gi[0] = t_channel_shuffle(g[0], g[0]->sizes[1] / n->numbers[0].i);
}

/* A factor as small as 2^15 keeps its square from overflowing. */
static bool check_factor(const Tensor *x, const char *op, const char *name, int64_t factor) {
  if (x->ndim < 3)
    fail(ERR_RUNTIME,
         "%s expects input to have at least 3 dimensions, but got input with %d dimension(s)", op,
         x->ndim);
  else if (factor <= 0)
    fail(ERR_RUNTIME, "%s expects a positive %s, but got %lld", op, name, (Shown)factor);
  return !failed();
}

Tensor *t_pixel_shuffle(Tensor *x, int64_t r) {
  OP_ENTERED(t_pixel_shuffle, "pixel_shuffle", x, r);
  if (blocked(x) || !check_factor(x, "pixel_shuffle", "upscale_factor", r)) return NULL;
  int lead = x->ndim - 3;
  int64_t c = x->sizes[lead], h = x->sizes[lead + 1], w = x->sizes[lead + 2];
  if (r > 1 << 15 || c % (r * r))
    return fail(ERR_RUNTIME,
                "pixel_shuffle expects its input's 'channel' dimension to be divisible by the "
                "square of upscale_factor, but input.size(-3)=%lld is not divisible by %lld",
                (Shown)c, (Shown)(r * r));
  Node *n = node_new(&PixelShuffleBackward0, 0, 1, x, NULL);
  num_i(n, 0, r);
  const int64_t split[5] = {c / (r * r), r, r, h, w}, order[5] = {0, 3, 1, 4, 2},
                merged[3] = {c / (r * r), h * r, w * r};
  return set_history(permute_split(x, lead, 5, split, order, 3, merged), n);
}

Tensor *t_pixel_unshuffle(Tensor *x, int64_t r) {
  OP_ENTERED(t_pixel_unshuffle, "pixel_unshuffle", x, r);
  if (blocked(x) || !check_factor(x, "pixel_unshuffle", "downscale_factor", r)) return NULL;
  int lead = x->ndim - 3;
  int64_t c = x->sizes[lead], h = x->sizes[lead + 1], w = x->sizes[lead + 2];
  if (h % r)
    return fail(ERR_RUNTIME,
                "pixel_unshuffle expects height to be divisible by downscale_factor, but "
                "input.size(-2)=%lld is not divisible by %lld",
                (Shown)h, (Shown)r);
  if (w % r)
    return fail(ERR_RUNTIME,
                "pixel_unshuffle expects width to be divisible by downscale_factor, but "
                "input.size(-1)=%lld is not divisible by %lld",
                (Shown)w, (Shown)r);
  Node *n = node_new(&PixelUnshuffleBackward0, 0, 1, x, NULL);
  num_i(n, 0, r);
  const int64_t split[5] = {c, h / r, r, w / r, r}, order[5] = {0, 2, 4, 1, 3},
                merged[3] = {c * r * r, h / r, w / r};
  return set_history(permute_split(x, lead, 5, split, order, 3, merged), n);
}

Tensor *t_channel_shuffle(Tensor *x, int64_t groups) {
  OP_ENTERED(t_channel_shuffle, "channel_shuffle", x, groups);
  if (blocked(x)) return NULL;
  if (x->ndim <= 2)
    return fail(ERR_RUNTIME,
                "channel_shuffle expects input with > 2 dims, but got input with sizes %s",
                shape_text(x));
  if (groups <= 0)
    return fail(ERR_RUNTIME,
                "Number of groups to divide channels in must be positive. Value of groups:%lld",
                (Shown)groups);
  int64_t c = x->sizes[1], rest = 1;
  if (c % groups)
    return fail(
        ERR_RUNTIME,
        "Number of channels must be divisible by groups. Got %lld channels and %lld groups.",
        (Shown)c, (Shown)groups);
  for (int i = 2; i < x->ndim; i++) rest *= x->sizes[i];
  Node *n = node_new(&ChannelShuffleBackward0, 0, 1, x, NULL);
  num_i(n, 0, groups);
  const int64_t split[3] = {groups, c / groups, rest}, order[3] = {1, 0, 2};
  return set_history(permute_split(x, 1, 3, split, order, x->ndim - 1, x->sizes + 1), n);
}

/* Resizing: nearest, linear, cubic, of one to three spatial dimensions.
 *
 * Along one dimension an output element is a weighted sum of a few input elements, its taps, which
 * are computed once for each call. A resize is that sum along the last dimension, then along the
 * one before it, and so on; its gradient runs the transposed sums in the same way. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/number.h"
#include "ground/poll.h"
#include "nn_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/nn.h"

typedef enum { NEAREST, NEAREST_EXACT, LINEAR, CUBIC } Mode;

/* The numbers of a node: words of 8 bytes. */
typedef struct {
  int64_t nd, mode, align_corners, antialias, in[3], out[3];
  double scale[3]; /* given by the caller, or 0 */
} Resize;
enum { RESIZE_NUMBERS = sizeof(Resize) / sizeof(int64_t) };

/* ------------------------------------------------------------ taps */

typedef struct {
  int64_t n, in, out; /* taps of an output element, sizes */
  int64_t *from;
  double *weight;
} Taps;

/* The distance in the input of neighbouring output elements, rounded to the type of the
 * elements. */
static double ratio(const Resize *r, int d, bool is_f32) {
  double n = (double)r->in[d], m = (double)r->out[d];
  if (r->align_corners)
    return m > 1 ? is_f32 ? (double)((float)(n - 1) / (float)(m - 1)) : (n - 1) / (m - 1) : 0;
  if (r->scale[d] > 0) return is_f32 ? (double)(float)(1 / r->scale[d]) : 1 / r->scale[d];
  return is_f32 ? (double)((float)n / (float)m) : n / m;
}

static double source_of(const Resize *r, double step, int64_t o, bool is_f32) {
  if (r->align_corners) return is_f32 ? (double)((float)step * (float)o) : step * (double)o;
  double at = is_f32 ? (double)((float)step * ((float)o + 0.5f) - 0.5f)
                     : step * ((double)o + 0.5) - 0.5;
  return at < 0 && r->mode == LINEAR ? 0 : at;
}

static int64_t nearest_of(const Resize *r, int d, double step, int64_t o, bool is_f32) {
  double shifted = r->mode == NEAREST_EXACT ? (double)o + 0.5 : (double)o;
  if (r->mode == NEAREST && r->out[d] == r->in[d]) return o;
  if (r->mode == NEAREST && r->out[d] == 2 * r->in[d]) return o / 2;
  int64_t i = (int64_t)(is_f32 ? floor((double)((float)shifted * (float)step))
                               : floor(shifted * step));
  return i < r->in[d] - 1 ? i : r->in[d] - 1;
}

/* The cubic convolution kernel with parameter a, at distance x. */
static double cubic(double x, double a) {
  x = fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static void smooth_taps(const Resize *r, int d, double step, int64_t o, bool is_f32, Taps *t) {
  int64_t n = r->in[d], *from = t->from + o * t->n;
  double at = source_of(r, step, o, is_f32), whole = floor(at), *weight = t->weight + o * t->n;
  if (r->mode == LINEAR) {
    if (whole > (double)(n - 1)) whole = (double)(n - 1);
    double rest = at - whole < 1 ? at - whole : 1;
    if (r->out[d] == n) whole = (double)o, rest = 0;
    from[0] = (int64_t)whole;
    from[1] = from[0] + (from[0] < n - 1);
    weight[0] = 1 - rest;
    weight[1] = rest;
    return;
  }
  for (int i = 0; i < 4; i++) {
    int64_t k = (int64_t)whole - 1 + i;
    from[i] = k < 0 ? 0 : k > n - 1 ? n - 1 : k;
    weight[i] = cubic(at - whole + 1 - i, -0.75);
  }
}

/* With antialias the kernel is as wide as an output element, and its weights add up to 1. */
static void wide_taps(const Resize *r, int d, double step, int64_t o, Taps *t) {
  double half = r->mode == LINEAR ? 1 : 2, wide = step >= 1 ? step : 1,
         centre = step * ((double)o + 0.5), total = 0;
  int64_t first = (int64_t)(centre - half * wide + 0.5),
          end = (int64_t)(centre + half * wide + 0.5);
  if (first < 0) first = 0;
  if (end > r->in[d]) end = r->in[d];
  for (int64_t i = 0; i < t->n; i++) {
    double x = ((double)(first + i) - centre + 0.5) / wide, w = 0;
    if (first + i < end) w = r->mode == LINEAR ? (fabs(x) < 1 ? 1 - fabs(x) : 0) : cubic(x, -0.5);
    t->from[o * t->n + i] = first + i < r->in[d] ? first + i : r->in[d] - 1;
    t->weight[o * t->n + i] = w;
    total += w;
  }
  for (int64_t i = 0; i < t->n && total != 0; i++) t->weight[o * t->n + i] /= total;
}

static bool taps_make(Taps *t, const Resize *r, int d, bool is_f32) {
  double step = ratio(r, d, is_f32), half = r->mode == LINEAR ? 1 : 2;
  *t = (Taps){.n = r->mode <= NEAREST_EXACT ? 1
                   : r->mode == LINEAR      ? 2
                                            : 4,
              .in = r->in[d],
              .out = r->out[d]};
  if (r->antialias) t->n = (int64_t)ceil(half * (step >= 1 ? step : 1)) * 2 + 1;
  t->from = scratch_array(t->n * t->out + 1, sizeof *t->from);
  t->weight = scratch_array(t->n * t->out + 1, sizeof *t->weight);
  if (failed()) return false;
  for (int64_t o = 0; o < t->out; o++) {
    if (r->antialias) wide_taps(r, d, step, o, t);
    else if (t->n > 1) smooth_taps(r, d, step, o, is_f32, t);
    else t->from[o] = nearest_of(r, d, step, o, is_f32), t->weight[o] = 1;
  }
  return true;
}

/* ------------------------------------------------------------ sums along a dimension */

/* Polls before one of the `outer` parts. */
static bool goes_on(const Taps *t, int64_t inner) {
  return !poll_stops(t->out * t->n * (inner + 1));
}

/* x is (outer, t->in, inner), y is (outer, t->out, inner). `pick` has one tap of weight 1. */
#define SIZE_float
#define SIZE_double SMALL
#define RESIZE_LOOPS(T)                                                                           \
  SIZE_##T static void lines_##T(const Taps *t, int64_t outer, const T *x, T *y) {                \
    for (int64_t k = 0; k < outer && goes_on(t, 1); k++, x += t->in, y += t->out)                 \
      for (int64_t o = 0; o < t->out; o++) {                                                      \
        const int64_t *from = t->from + o * t->n;                                                 \
        const double *w = t->weight + o * t->n;                                                   \
        T sum = (T)w[0] * x[from[0]];                                                             \
        for (int64_t j = 1; j < t->n; j++) sum += (T)w[j] * x[from[j]];                           \
        y[o] = sum;                                                                               \
      }                                                                                           \
  }                                                                                               \
  SIZE_##T static void lines_back_##T(const Taps *t, int64_t outer, const T *g, T *x) {           \
    for (int64_t k = 0; k < outer && goes_on(t, 1); k++, x += t->in, g += t->out)                 \
      for (int64_t o = 0; o < t->out; o++)                                                        \
        for (int64_t j = 0; j < t->n; j++)                                                        \
          x[t->from[o * t->n + j]] += (T)t->weight[o * t->n + j] * g[o];                          \
  }                                                                                               \
  SIZE_##T static void apply_##T(const Taps *t, int64_t outer, int64_t inner, const T *x, T *y) { \
    if (inner == 1) {                                                                             \
      lines_##T(t, outer, x, y);                                                                  \
      return;                                                                                     \
    }                                                                                             \
    for (int64_t k = 0; k < outer && goes_on(t, inner); k++, x += t->in * inner)                  \
      for (int64_t o = 0; o < t->out; o++, y += inner)                                            \
        for (int64_t j = 0; j < t->n; j++) {                                                      \
          const T w = (T)t->weight[o * t->n + j], *from = x + t->from[o * t->n + j] * inner;      \
          if (j == 0) VECTOR_LOOP for (int64_t i = 0; i < inner; i++) y[i] = w * from[i];         \
          else VECTOR_LOOP for (int64_t i = 0; i < inner; i++) y[i] += w * from[i];               \
        }                                                                                         \
  }                                                                                               \
  SIZE_##T static void transpose_##T(const Taps *t, int64_t outer, int64_t inner, const T *g,     \
                                     T *x) {                                                      \
    if (inner == 1) {                                                                             \
      lines_back_##T(t, outer, g, x);                                                             \
      return;                                                                                     \
    }                                                                                             \
    for (int64_t k = 0; k < outer && goes_on(t, inner); k++, x += t->in * inner)                  \
      for (int64_t o = 0; o < t->out; o++, g += inner)                                            \
        for (int64_t j = 0; j < t->n; j++) {                                                      \
          const T w = (T)t->weight[o * t->n + j];                                                 \
          T *to = x + t->from[o * t->n + j] * inner;                                              \
          VECTOR_LOOP for (int64_t i = 0; i < inner; i++) to[i] += w * g[i];                      \
        }                                                                                         \
  }
RESIZE_LOOPS(float)
RESIZE_LOOPS(double)

static void pick(const Taps *t, int64_t outer, int64_t bytes, const char *x, char *y) {
  for (int64_t k = 0; k < outer && goes_on(t, bytes); k++, x += t->in * bytes)
    for (int64_t o = 0; o < t->out; o++, y += bytes)
      memcpy(y, x + t->from[o] * bytes, (size_t)bytes);
}

/* Merges the weights of taps that fall on one element, at an edge. */
static void merge(Taps *t) {
  for (int64_t o = 0; o < t->out; o++) {
    const int64_t *from = t->from + o * t->n;
    double *w = t->weight + o * t->n;
    for (int64_t j = t->n - 1; j > 0; j--)
      if (from[j] == from[j - 1]) w[j - 1] += w[j], w[j] = 0;
  }
}

/* Rounds the weights for bytes to integers of 16 bits over a power of two, the largest that the
 * largest weight allows. */
static void quantise(Taps *t) {
  double most = 0, scale = 2;
  merge(t);
  for (int64_t i = 0; i < t->out * t->n; i++) most = t->weight[i] > most ? t->weight[i] : most;
  while (scale < 1 << 22 && trunc(0.5 + most * scale) < 1 << 15) scale *= 2;
  scale /= 2;
  for (int64_t i = 0; i < t->out * t->n; i++) t->weight[i] = round(t->weight[i] * scale) / scale;
}

/* Resizes dimension d (of three) of x, or brings a gradient back. */
static Tensor *resize_dim(const Resize *r, Tensor *x, int d, bool back, bool bytes) {
  int dim = x->ndim - 3 + d;
  int64_t sizes[MAX_DIM], outer = 1, inner = 1;
  bool is_f32 = x->dtype != DT_F64;
  Taps t;
  if (!taps_make(&t, r, d, is_f32 && !bytes)) return NULL;
  if (bytes) quantise(&t);
  for (int i = 0; i < x->ndim; i++) {
    sizes[i] = i == dim ? (back ? t.in : t.out) : x->sizes[i];
    if (i != dim) *(i < dim ? &outer : &inner) *= x->sizes[i];
  }
  Tensor *y = back ? tensor_zeros(x->ndim, sizes, tensor_dtype(x))
                   : tensor_empty(x->ndim, sizes, tensor_dtype(x));
  if (!y || tensor_absent(y)) return y;
  char *from = tensor_data(x), *to = tensor_data(y);
  if (!back && t.n == 1) pick(&t, outer, inner * dtype_bytes(tensor_dtype(x)), from, to);
  else if (x->dtype == DT_F32)
    (back ? transpose_float : apply_float)(&t, outer, inner, (const float *)(const void *)from,
                                           (float *)(void *)to);
  else
    (back ? transpose_double : apply_double)(&t, outer, inner, (const double *)(const void *)from,
                                             (double *)(void *)to);
  return y;
}

static Tensor *resize_each_dim(const Resize *r, Tensor *x, bool back) {
  x = t_contiguous(t_detach(x));
  for (int i = 0; i < r->nd && x && !failed(); i++)
    x = resize_dim(r, x, back ? 3 - (int)r->nd + i : 2 - i, back, false);
  return failed() ? NULL : x;
}

/* ------------------------------------------------------------ recording */

static Tensor *resize(const Resize *r, Tensor *x, bool back);

static Resize noted_resize(const Node *n) {
  Resize r;
  memcpy(&r, n->numbers, sizeof r);
  return r;
}
#define RESIZE_NODES(NAME, ALIGN, SCALES)                                                      \
  GRAD(NAME##Backward0,                                                                        \
       "| -:ints2 " ALIGN ":bool -:ints4 output_size:window " SCALES " self_sym_sizes:sizes0") \
  {                                                                                            \
    Resize r = noted_resize(n);                                                                \
    gi[0] = resize(&r, g[0], true);                                                            \
  }                                                                                            \
  GRAD(NAME##BackwardBackward0, "")                                                            \
  {                                                                                            \
    Resize r = noted_resize(n);                                                                \
    gi[0] = resize(&r, g[0], false);                                                           \
  }
#define SCALES_1 "-:ints2 scales:float?"
#define SCALES_2 "-:ints1 scales_h:float? scales_w:float?"
#define SCALES_3 "scales_d:float? scales_h:float? scales_w:float?"
RESIZE_NODES(UpsampleNearest1D, "-", SCALES_1)
RESIZE_NODES(UpsampleNearest2D, "-", SCALES_2)
RESIZE_NODES(UpsampleNearest3D, "-", SCALES_3)
RESIZE_NODES(UpsampleNearestExact1D, "-", SCALES_1)
RESIZE_NODES(UpsampleNearestExact2D, "-", SCALES_2)
RESIZE_NODES(UpsampleNearestExact3D, "-", SCALES_3)
RESIZE_NODES(UpsampleLinear1D, "align_corners", SCALES_1)
RESIZE_NODES(UpsampleBilinear2D, "align_corners", SCALES_2)
RESIZE_NODES(UpsampleTrilinear3D, "align_corners", SCALES_3)
RESIZE_NODES(UpsampleBicubic2D, "align_corners", SCALES_2)
RESIZE_NODES(UpsampleBilinear2DAa, "align_corners", SCALES_2)
RESIZE_NODES(UpsampleBicubic2DAa, "align_corners", SCALES_2)
#define TYPES(NAME) {&NAME##Backward0, &NAME##BackwardBackward0}
static const NodeType *const types[4][3][2] = {
    {TYPES(UpsampleNearest1D), TYPES(UpsampleNearest2D), TYPES(UpsampleNearest3D)},
    {TYPES(UpsampleNearestExact1D), TYPES(UpsampleNearestExact2D), TYPES(UpsampleNearestExact3D)},
    {TYPES(UpsampleLinear1D), TYPES(UpsampleBilinear2D), TYPES(UpsampleTrilinear3D)},
    {TYPES(UpsampleBicubic2D), TYPES(UpsampleBicubic2D), TYPES(UpsampleBicubic2D)}};
static const NodeType *const wide_types[2][2] = {TYPES(UpsampleBilinear2DAa),
                                                 TYPES(UpsampleBicubic2DAa)};

static Tensor *resize(const Resize *r, Tensor *x, bool back) {
  IN_FLOAT(resize(r, x, back), x);
  if (blocked(x)) return NULL;
  Node *n = node_new(r->antialias ? wide_types[r->mode == CUBIC][back]
                                  : types[r->mode][r->nd - 1][back],
                     0, RESIZE_NUMBERS, x, NULL);
  if (n) memcpy(n->numbers, r, sizeof *r);
  return set_history(resize_each_dim(r, x, back), n);
}

/* ------------------------------------------------------------ arguments */

static bool check_align(const char *mode, bool given) {
  bool nearest = strncmp(mode, "nearest", 7) == 0 || strcmp(mode, "area") == 0;
  if (nearest && given)
    fail(ERR_VALUE, "align_corners option can only be set with the interpolating modes: linear | "
                    "bilinear | bicubic | trilinear");
  return !failed();
}

/* A list argument as Python shows it. */
const char *nn_list_text(const Value *v) {
  static char text[512];
  int at = 1;
  for (int i = 0; i < v->n && at < 460; i++) {
    const char *item = v->tag == TAG_INTS ? sizes_text(1, (const int64_t *)v->p + i) + 1
                                          : number_text(((const double *)v->p)[i]);
    at += snprintf(text + at, 40, i ? ", %.*s" : "%.*s", (int)strcspn(item, "]"), item);
  }
  text[0] = v->from_list ? '[' : '(';
  snprintf(text + at, 8, v->from_list ? "]" : v->n == 1 ? ",)" : ")");
  return text;
}

const char *nn_tuple_text(int n, const int64_t *sizes) {
  return textf("%s", nn_list_text(&(Value){.tag = TAG_INTS, .n = n, .p = sizes}));
}

static bool check_count(const Tensor *x, const Value *list, const char *what, const char *given,
                        const char *format) {
  if (list->n == x->ndim - 2) return true;
  fail(ERR_VALUE,
       "Input and %s must have the same number of spatial dimensions, but got input with spatial "
       "dimensions of %s and %s%s. Please provide input tensor in (N, C, d1, d2, ...,dK) format "
       "and %s.",
       what, sizes_text(x->ndim > 2 ? x->ndim - 2 : 0, x->sizes + 2), given, nn_list_text(list),
       format);
  return false;
}

/* Checks that size or scale_factor is given, whole or for each spatial dimension. */
static bool check_size_or_scale(const Call *c, const Tensor *x) {
  bool size = arg_given(c, 1), scale = arg_given(c, 2);
  if (size && scale) fail(ERR_VALUE, "only one of size or scale_factor should be defined");
  else if (!size && !scale) fail(ERR_VALUE, "either size or scale_factor should be defined");
  else if (size && arg_given(c, 5) && arg_bool(c, 5))
    fail(ERR_VALUE, "recompute_scale_factor is not meaningful with an explicit size.");
  if (failed()) return false;
  if (c->v[1].tag == TAG_INTS)
    return check_count(x, &c->v[1], "output", "output size of ",
                       "output size in (o1, o2, ...,oK) format");
  if (c->v[2].tag != TAG_FLOATS && c->v[2].tag != TAG_INTS) return true;
  return check_count(x, &c->v[2], "scale_factor", "scale_factor of shape ",
                     "scale_factor in (s1, s2, ...,sK) format");
}

/* Reads the output sizes, from size or scale_factor, into `wanted`; r->scale gets the factors that
 * the ratio is to use. */
static bool resize_sizes(const Call *c, const Tensor *x, const char *mode, Resize *r,
                         int64_t wanted[3]) {
  int nd = x->ndim - 2;
  if (!check_size_or_scale(c, x)) return false;
  if (nd < 1 || nd > 3) return true;
  if (arg_given(c, 1)) {
    Ints size = arg_ints(c, 1);
    for (int i = 0; i < nd; i++) wanted[i] = size.v[size.n == 1 ? 0 : i];
    return true;
  }
  bool list = c->v[2].tag == TAG_FLOATS || c->v[2].tag == TAG_INTS;
  bool recompute = (arg_given(c, 5) && arg_bool(c, 5)) || strcmp(mode, "area") == 0;
  Floats scale = list ? arg_floats(c, 2) : (Floats){1, NULL};
  for (int i = 0; i < nd; i++) {
    double s = list ? scale.v[i] : arg_float(c, 2);
    wanted[i] = (int64_t)floor((double)x->sizes[2 + i] * s);
    r->scale[3 - nd + i] = recompute ? 0 : s;
  }
  return true;
}

static Tensor *resample_area(Tensor *x, int nd, const int64_t *wanted) {
  Ints size = {nd, wanted};
  return nd == 1 ? t_adaptive_avg_pool1d(x, size) : t_adaptive_avg_pool(x, nd, size);
}

/* PyTorch's refusal of a mode for a rank. */
static Tensor *refuse_mode(const Tensor *x, const char *mode) {
  static const char *const linear[] = {"linear", "bilinear", "trilinear"};
  for (int i = 0; i < 3; i++)
    if (strcmp(mode, linear[i]) == 0 && x->ndim >= 3 && x->ndim <= 5)
      return fail(ERR_NOT_IMPLEMENTED, "Got %dD input, but %s mode needs %dD input", x->ndim, mode,
                  3 + i);
  return fail(
      ERR_NOT_IMPLEMENTED,
      "Input Error: Only 3D, 4D and 5D input Tensors supported (got %dD) for the modes: nearest | "
      "linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got %s)",
      x->ndim, mode);
}

static bool known_mode(Resize *r, const char *mode) {
  static const struct {
    const char *name;
    Mode mode;
    int nd;
  } modes[] = {{"nearest", NEAREST, 0},  {"nearest-exact", NEAREST_EXACT, 0},
               {"linear", LINEAR, 1},    {"bilinear", LINEAR, 2},
               {"trilinear", LINEAR, 3}, {"bicubic", CUBIC, 2}};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(modes[i].name, mode) == 0 && (!modes[i].nd || modes[i].nd == r->nd)) {
      r->mode = modes[i].mode;
      return true;
    }
  return false;
}

static bool check_resize(const Resize *r, const Tensor *x, const char *mode) {
  for (int i = 3 - (int)r->nd; i < 3; i++)
    if (r->in[i] <= 0 || r->out[i] <= 0) {
      fail(ERR_RUNTIME,
           "Input and output sizes should be greater than 0, but got input (H: %lld, W: %lld) "
           "output (H: %lld, W: %lld)",
           (Shown)r->in[1], (Shown)r->in[2], (Shown)r->out[1], (Shown)r->out[2]);
      return false;
    }
  if (x->sizes[1] == 0)
    fail(ERR_RUNTIME, "Non-empty %dD data tensor expected but got a tensor with sizes %s", x->ndim,
         shape_text(x));
  else if (r->antialias && x->dtype != DT_F32 && x->dtype != DT_F64 && x->dtype != DT_U8)
    dtype_no_kernel("compute_index_ranges_weights", tensor_dtype(x));
  else if (!dtype_is_float(tensor_dtype(x)) &&
           !((r->mode <= NEAREST_EXACT || r->nd == 2) && x->dtype == DT_U8))
    fail(ERR_NOT_IMPLEMENTED, "\"upsample_%s%s\" not implemented for '%s'", mode,
         r->nd == 2 ? "2d_channels_last" : "", dtype_info[x->dtype].legacy);
  return !failed();
}

/* Resizes bytes, which are rounded to bytes after each dimension. */
static Tensor *resized_bytes(const Resize *r, Tensor *x) {
  x = t_contiguous(t_to(x, DT_F32));
  for (int d = 2; d > 0 && x && !failed(); d--)
    x = t_clamp(t_floor(t_add_f(resize_dim(r, x, d, false, true), 0.5)), tensor_wrapped_i(0),
                tensor_wrapped_i(255));
  return t_to(x, DT_U8);
}

/* Arguments: input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias. */
Tensor *t_interpolate(Call *c) {
  OP_ENTERED(t_interpolate, "interpolate", c);
  Tensor *x = arg_tensor(c, 0);
  const char *mode = arg_str(c, 3);
  if (blocked(x) || !mode || !check_align(mode, arg_given(c, 4))) return NULL;
  Resize r = {.nd = x->ndim - 2,
              .align_corners = arg_given(c, 4) && arg_bool(c, 4),
              .antialias = c->n_args > 6 && arg_bool(c, 6)};
  int64_t wanted[3] = {1, 1, 1};
  if (!resize_sizes(c, x, mode, &r, wanted)) return NULL;
  bool smooth = strcmp(mode, "bilinear") == 0 || strcmp(mode, "bicubic") == 0 ||
                strcmp(mode, "lanczos") == 0;
  if (r.antialias && !(smooth && x->ndim == 4))
    return fail(ERR_VALUE, "Anti-alias option is restricted to bilinear, bicubic, and lanczos "
                           "modes and requires a 4-D tensor as input");
  if (r.nd < 1 || r.nd > 3) return refuse_mode(x, mode);
  if (strcmp(mode, "area") == 0) return resample_area(x, (int)r.nd, wanted);
  if (strcmp(mode, "lanczos") == 0 && x->ndim == 4)
    return fail(ERR_NOT_IMPLEMENTED, "interpolate: mode='lanczos'");
  if (!known_mode(&r, mode)) return refuse_mode(x, mode);
  for (int i = 0; i < 3; i++) {
    r.in[i] = i < 3 - r.nd ? 1 : x->sizes[2 + i - (3 - r.nd)];
    r.out[i] = i < 3 - r.nd ? 1 : wanted[i - (3 - r.nd)];
  }
  if (!check_resize(&r, x, mode)) return NULL;
  if (x->dtype != DT_U8 || r.mode <= NEAREST_EXACT) return resize(&r, x, false);
  return resized_bytes(&r, x);
}

Tensor *t_upsample(Call *c) {
  OP_ENTERED(t_upsample, "upsample", c);
  warn_user("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.");
  return t_interpolate(c);
}

/* upsample_nearest, upsample_bilinear: the name gives the mode; the options are size and
 * scale_factor alone. */
Tensor *t_upsample_by(Call *c, const char *name, const char *mode) {
  bool bilinear = strcmp(mode, "bilinear") == 0;
  warn_user("`nn.functional.%s` is deprecated. Use `nn.functional.interpolate` instead.", name);
  Call given = *c;
  given.n_args = 5;
  given.v[3] = (Value){.tag = TAG_STR, .s = mode};
  given.v[4] = (Value){.tag = bilinear ? TAG_BOOL : TAG_NONE, .i = bilinear};
  return t_interpolate(&given);
}

/* Resizes with antialias to a size, or to the size that factors give; the ratio then uses the
 * factors. */
static Tensor *resized_wide(Mode mode, const char *name, Tensor *x, Ints size, Floats scale,
                            bool align) {
  if (blocked(x)) return NULL;
  if (scale.n >= 0 && scale.n != 2)
    return fail(ERR_RUNTIME,
                "Expected static_cast<int64_t>(scale_factors->size()) == spatial_dimensions to be "
                "true, but got false.  (Could this error message be improved?  If so, please "
                "report an enhancement request to PyTorch.)");
  if (size.n >= 0 && size.n != 2)
    return fail(ERR_RUNTIME, "It is expected output_size equals to 2, but got size %d", size.n);
  if (x->ndim != 4)
    return fail(ERR_RUNTIME, "It is expected input_size equals to 4, but got size %d", x->ndim);
  Resize r = {.nd = 2,
              .mode = mode,
              .align_corners = align,
              .antialias = true,
              .in = {1, x->sizes[2], x->sizes[3]},
              .out = {1}};
  for (int d = 1; d < 3; d++) {
    r.scale[d] = scale.n == 2 ? scale.v[d - 1] : 0;
    r.out[d] = size.n < 0 ? (int64_t)((double)r.in[d] * r.scale[d]) : size.v[d - 1];
  }
  if (!check_resize(&r, x, name)) return NULL;
  return x->dtype == DT_U8 ? resized_bytes(&r, x) : resize(&r, x, false);
}

Tensor *t_upsample_bilinear2d_aa(Tensor *x, Ints size, Floats scale, bool align) {
  OP_ENTERED(t_upsample_bilinear2d_aa, "_upsample_bilinear2d_aa", x, size, scale, align);
  return resized_wide(LINEAR, "bilinear", x, size, scale, align);
}

Tensor *t_upsample_bicubic2d_aa(Tensor *x, Ints size, Floats scale, bool align) {
  OP_ENTERED(t_upsample_bicubic2d_aa, "_upsample_bicubic2d_aa", x, size, scale, align);
  return resized_wide(CUBIC, "bicubic", x, size, scale, align);
}

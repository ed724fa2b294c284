/* Pooling: the maximum or the average over windows that slide, or over windows fitted to an
 * output size.
 *
 * The last one to three dimensions of a contiguous input are its planes; two are the usual case,
 * and one is pooled as a plane of height 1. Every pooling is a map of planes that is linear once
 * its windows (or its maxima) are chosen, and its gradient is the transpose of that map. */
#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/poll.h"
#include "nn_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/nn.h"
#include "ops/view/view.h"

/* The numbers of a node: nothing but int64_t. */
typedef struct {
  /* strided: strides were given; divisor INT64_MAX: the window's size */
  int64_t nd, strided, adaptive, ceil_mode, count_include_pad, divisor;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
} Pool;
enum { POOL_NUMBERS = sizeof(Pool) / sizeof(int64_t) };

static int64_t volume(const int64_t v[3]) { return v[0] * v[1] * v[2]; }

static void note_pool(Node *n, const Pool *p) {
  if (n) memcpy(n->numbers, p, sizeof *p);
}
static Pool noted_pool(const Node *n) {
  Pool p;
  memcpy(&p, n->numbers, sizeof p);
  return p;
}

/* ------------------------------------------------------------ windows */

/* For each output position of a dimension: the input elements start, start + step, ... < end, and
 * the size of the window with the padding. */
typedef struct {
  int64_t start, end, span;
} Window;
typedef struct {
  Window *of[3];
  int64_t step[3], in_size, out_size;
  int64_t work; /* of a plane: that of the elements in all windows */
} Windows;

static Window window_at(const Pool *p, int d, int64_t o) {
  int64_t n = p->in[d];
  if (p->adaptive) {
    Window w = {o * n / p->out[d], ((o + 1) * n + p->out[d] - 1) / p->out[d], 0};
    w.span = w.end - w.start;
    return w;
  }
  int64_t start = o * p->stride[d] - p->padding[d],
          end = start + p->dilation[d] * (p->kernel[d] - 1) + 1;
  int64_t padded = end < n + p->padding[d] ? end : n + p->padding[d];
  Window w = {start, end < n ? end : n, padded - start};
  while (w.start < 0) w.start += p->dilation[d];
  return w;
}

enum { ELEMENT_WORK = 4 };

static bool windows_make(Windows *w, const Pool *p) {
  w->in_size = w->out_size = 1;
  w->work = ELEMENT_WORK;
  for (int d = 0; d < 3; d++) {
    int64_t elements = 0;
    w->of[d] = scratch_array(p->out[d] + 1, sizeof(Window));
    if (failed()) return false;
    for (int64_t o = 0; o < p->out[d]; o++) {
      w->of[d][o] = window_at(p, d, o);
      elements += w->of[d][o].span;
    }
    w->work *= elements;
    w->step[d] = p->adaptive ? 1 : p->dilation[d];
    w->in_size *= p->in[d];
    w->out_size *= p->out[d];
  }
  return true;
}

/* A statement for each output position, with its windows a, b, c and its index `at`. */
#define EACH_OUTPUT(p, w, ...)                                                   \
  for (int64_t i_ = 0, at = 0; i_ < (p)->out[0]; i_++)                           \
    for (int64_t j_ = 0; j_ < (p)->out[1]; j_++)                                 \
      for (int64_t k_ = 0; k_ < (p)->out[2]; k_++, at++) {                       \
        const Window a = (w)->of[0][i_], b = (w)->of[1][j_], c = (w)->of[2][k_]; \
        __VA_ARGS__                                                              \
      }
/* A statement for each input element `from` of the window. */
#define EACH_INPUT(p, w, ...)                                                          \
  for (int64_t x_ = a.start; x_ < a.end; x_ += (w)->step[0])                           \
    for (int64_t y_ = b.start; y_ < b.end; y_ += (w)->step[1]) {                       \
      int64_t line = (x_ * (p)->in[1] + y_) * (p)->in[2];                              \
      for (int64_t from = line + c.start; from < line + c.end; from += (w)->step[2]) { \
        __VA_ARGS__                                                                    \
      }                                                                                \
    }

/* Whether every window is two by two elements, and no two overlap. */
static bool is_halving(const Pool *p) {
  return !p->adaptive && p->in[0] == 1 && p->kernel[0] == 1 && p->kernel[1] == 2 &&
         p->kernel[2] == 2 && p->stride[1] == 2 && p->stride[2] == 2 && p->padding[1] == 0 &&
         p->padding[2] == 0 && p->dilation[1] == 1 && p->dilation[2] == 1 &&
         2 * p->out[1] <= p->in[1] && 2 * p->out[2] <= p->in[2];
}

static int64_t divisor_of(const Pool *p, Window a, Window b, Window c) {
  if (p->divisor != INT64_MAX) return p->divisor;
  if (p->count_include_pad) return a.span * b.span * c.span;
  int64_t n = (a.end - a.start) * (b.end - b.start) * (c.end - c.start);
  return n > 0 ? n : 1;
}

/* A: the type in which a window is summed. NaN is the greatest of all; the first of equal elements
 * counts. A dilated window may miss the input altogether: its index, like PyTorch's, is then past
 * the end, and gets no gradient. */
/* The float kernels are compiled for speed, those of 64-bit types for size. */
#define LOWEST_float -INFINITY
#define LOWEST_double -(double)INFINITY
#define LOWEST_int64_t INT64_MIN
#define SIZE_float
#define SIZE_double SMALL
#define SIZE_int64_t SMALL
#define POOL_KERNELS(T, A)                                                                   \
  SIZE_##T static void max_halves_##T(const Pool *p, const T *x, T *y, int64_t *index) {     \
    for (int64_t i = 0; i < p->out[1]; i++) {                                                \
      const int64_t line = 2 * i * p->in[2];                                                 \
      const T *r = x + line, *s = r + p->in[2];                                              \
      for (int64_t j = 0; j < p->out[2]; j++, r += 2, s += 2) {                              \
        T best = r[0];                                                                       \
        int64_t at = line + 2 * j, k = at;                                                   \
        if (r[1] > best || r[1] != r[1]) best = r[1], k = at + 1;                            \
        if (s[0] > best || s[0] != s[0]) best = s[0], k = at + p->in[2];                     \
        if (s[1] > best || s[1] != s[1]) best = s[1], k = at + p->in[2] + 1;                 \
        *y++ = best;                                                                         \
        *index++ = k;                                                                        \
      }                                                                                      \
    }                                                                                        \
  }                                                                                          \
  SIZE_##T static void max_plane_##T(const Pool *p, const Windows *w, const T *x, T *y,      \
                                     int64_t *index){EACH_OUTPUT(                            \
      p, w,                                                                                  \
      {                                                                                      \
        int64_t best = (a.start * p->in[1] + b.start) * p->in[2] + c.start;                  \
        bool inside = a.start < a.end && b.start < b.end && c.start < c.end;                 \
        T high = inside ? x[best] : LOWEST_##T;                                              \
        EACH_INPUT(p, w, {                                                                   \
          if (x[from] > high || x[from] != x[from]) high = x[from], best = from;             \
        })                                                                                   \
        y[at] = high;                                                                        \
        index[at] = best;                                                                    \
      })} SIZE_##T static void pool_max_##T(const Pool *p, const Windows *w, int64_t planes, \
                                            const char *x, char *y, int64_t *index) {        \
    bool halving = is_halving(p);                                                            \
    for (int64_t i = 0; i < planes; i++) {                                                   \
      if (poll_stops(w->work)) return;                                                       \
      const T *from = (const T *)(const void *)x + i * w->in_size;                           \
      T *to = (T *)(void *)y + i * w->out_size;                                              \
      if (halving) max_halves_##T(p, from, to, index + i * w->out_size);                     \
      else max_plane_##T(p, w, from, to, index + i * w->out_size);                           \
    }                                                                                        \
  }                                                                                          \
  SIZE_##T static void pool_average_##T(const Pool *p, const Windows *w, int64_t planes,     \
                                        const char *x0_, char *y0_) {                        \
    for (int64_t i = 0; i < planes; i++) {                                                   \
      if (poll_stops(w->work)) return;                                                       \
      const T *x = (const T *)(const void *)x0_ + i * w->in_size;                            \
      T *y = (T *)(void *)y0_ + i * w->out_size;                                             \
      EACH_OUTPUT(p, w, {                                                                    \
        A sum = 0;                                                                           \
        EACH_INPUT(p, w, { sum += (A)x[from]; })                                             \
        y[at] = (T)(sum / (A)divisor_of(p, a, b, c));                                        \
      })                                                                                     \
    }                                                                                        \
  }                                                                                          \
  SIZE_##T static void pool_spread_##T(const Pool *p, const Windows *w, int64_t planes,      \
                                       const char *g0_, char *x0_) {                         \
    for (int64_t i = 0; i < planes; i++) {                                                   \
      if (poll_stops(w->work)) return;                                                       \
      const T *g = (const T *)(const void *)g0_ + i * w->out_size;                           \
      T *x = (T *)(void *)x0_ + i * w->in_size;                                              \
      EACH_OUTPUT(p, w, {                                                                    \
        T share = (T)(g[at] / (T)divisor_of(p, a, b, c));                                    \
        EACH_INPUT(p, w, { x[from] = (T)(x[from] + share); })                                \
      })                                                                                     \
    }                                                                                        \
  }                                                                                          \
  SIZE_##T static void pool_return_##T(const Windows *w, int64_t planes, const char *g0_,    \
                                       const int64_t *index, char *x0_) {                    \
    for (int64_t i = 0; i < planes; i++) {                                                   \
      const T *g = (const T *)(const void *)g0_ + i * w->out_size;                           \
      T *x = (T *)(void *)x0_ + i * w->in_size;                                              \
      for (int64_t k = 0; k < w->out_size; k++, index++)                                     \
        if ((uint64_t)*index < (uint64_t)w->in_size) x[*index] = (T)(x[*index] + g[k]);      \
    }                                                                                        \
  }
POOL_KERNELS(float, double)
POOL_KERNELS(double, double)
POOL_KERNELS(int64_t, int64_t)

typedef struct {
  void (*max)(const Pool *p, const Windows *w, int64_t planes, const char *x, char *y,
              int64_t *index);
  void (*average)(const Pool *p, const Windows *w, int64_t planes, const char *x, char *y);
  void (*spread)(const Pool *p, const Windows *w, int64_t planes, const char *g, char *x);
  void (*back)(const Windows *w, int64_t planes, const char *g, const int64_t *index, char *x);
} Kernels;
#define KERNELS(T) {pool_max_##T, pool_average_##T, pool_spread_##T, pool_return_##T}
static const Kernels kernels[DT_COUNT] = {
    [DT_F32] = KERNELS(float), [DT_F64] = KERNELS(double), [DT_I64] = KERNELS(int64_t)};

/* A tensor with the leading dims of x and these planes. */
static Tensor *planes_like(const Pool *p, const Tensor *x, const int64_t space[3], DType d,
                           bool zero) {
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < x->ndim; i++)
    sizes[i] = i < x->ndim - p->nd ? x->sizes[i] : space[3 - (x->ndim - i)];
  return zero ? tensor_zeros(x->ndim, sizes, d) : tensor_empty(x->ndim, sizes, d);
}

static int64_t plane_count(const Pool *p, const Tensor *x) {
  int64_t n = 1;
  for (int i = 0; i < x->ndim - p->nd; i++) n *= x->sizes[i];
  return n;
}

/* ------------------------------------------------------------ averages */

static Tensor *average(const Pool *p, Tensor *x);
static Tensor *average_back(const Pool *p, Tensor *g, Tensor *x);
/* The argument of the pooling, which only the host is shown. */
#define POOLED(n) (by_ops ? saved_tensor(n, 0) : NULL)
#define AVERAGE_NODES(NAME, FIELDS)            \
  GRAD(NAME##Backward0, "self" FIELDS)         \
  {                                            \
    Pool p = noted_pool(n);                    \
    gi[0] = average_back(&p, g[0], POOLED(n)); \
  }                                            \
  GRAD(NAME##BackwardBackward0, "")            \
  {                                            \
    Pool p = noted_pool(n);                    \
    gi[0] = average(&p, g[0]);                 \
  }
#define WINDOW_FIELDS "kernel_size:window stride:window? padding:window"
#define AVERAGE_FIELDS \
  " | -:ints3 ceil_mode:bool count_include_pad:bool divisor_override:int? -:ints6 " WINDOW_FIELDS
AVERAGE_NODES(AvgPool2D, AVERAGE_FIELDS)
AVERAGE_NODES(AvgPool3D, AVERAGE_FIELDS)
AVERAGE_NODES(AdaptiveAvgPool2D, "")
AVERAGE_NODES(AdaptiveAvgPool3D, "")
static const NodeType *const average_nodes[2][2] = {
    {&AvgPool2DBackward0, &AvgPool3DBackward0},
    {&AdaptiveAvgPool2DBackward0, &AdaptiveAvgPool3DBackward0}};
static const NodeType *const average_back_nodes[2][2] = {
    {&AvgPool2DBackwardBackward0, &AvgPool3DBackwardBackward0},
    {&AdaptiveAvgPool2DBackwardBackward0, &AdaptiveAvgPool3DBackwardBackward0}};

static Tensor *average(const Pool *p, Tensor *x) {
  IN_FLOAT(average(p, x), x);
  if (blocked(x)) return NULL;
  Node *n = node_new(average_nodes[p->adaptive][p->nd - 2], 1, POOL_NUMBERS, x, NULL);
  save(n, 0, x);
  note_pool(n, p);
  Windows w;
  x = t_contiguous(t_detach(x));
  Tensor *y = failed() ? NULL : planes_like(p, x, p->out, tensor_dtype(x), false);
  if (y && !tensor_absent(y) && windows_make(&w, p))
    kernels[x->dtype].average(p, &w, plane_count(p, x), tensor_data(x), tensor_data(y));
  return set_history(failed() ? NULL : y, n);
}

/* The lists of a pooling's arguments. */
typedef struct {
  Ints kernel, stride, padding, dilation;
} PoolLists;
static PoolLists lists_of(const Pool *p) {
  const int first = 3 - (int)p->nd, nd = (int)p->nd;
  return (PoolLists){{nd, p->kernel + first},
                     {p->strided ? nd : 0, p->stride + first},
                     {nd, p->padding + first},
                     {nd, p->dilation + first}};
}

static Tensor *spread_back(const Pool *p, Tensor *g);
/* The gradient as PyTorch's op. x: see POOLED. */
static Tensor *average_back(const Pool *p, Tensor *g, Tensor *x) {
  static const char *const names[2][2] = {
      {"avg_pool2d_backward", "avg_pool3d_backward"},
      {"_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward"}};
  const char *name = names[p->adaptive][p->nd - 2];
  if (p->adaptive) {
    OP_ENTERED_AS(average_back(p, g, x), name, g, x);
    return spread_back(p, g);
  }
  PoolLists l = lists_of(p);
  const bool ceil_mode = p->ceil_mode, count_pad = p->count_include_pad;
  const int64_t *divisor = p->divisor == INT64_MAX ? NULL : &p->divisor;
  OP_ENTERED_AS(average_back(p, g, x), name, g, x, l.kernel, l.stride, l.padding, ceil_mode,
                count_pad, divisor);
  return spread_back(p, g);
}

static Tensor *spread_back(const Pool *p, Tensor *g) {
  IN_FLOAT(spread_back(p, g), g);
  if (blocked(g)) return NULL;
  Node *n = node_new(average_back_nodes[p->adaptive][p->nd - 2], 0, POOL_NUMBERS, g, NULL);
  note_pool(n, p);
  Windows w;
  g = t_contiguous(t_detach(g));
  Tensor *x = failed() ? NULL : planes_like(p, g, p->in, tensor_dtype(g), true);
  if (x && !tensor_absent(x) && windows_make(&w, p))
    kernels[g->dtype].spread(p, &w, plane_count(p, g), tensor_data(g), tensor_data(x));
  return set_history(failed() ? NULL : x, n);
}

/* ------------------------------------------------------------ maxima */

static Tensor *maxima_back(const Pool *p, Tensor *g, Tensor *x, Tensor *index);

/* The gradient goes to the maxima; the gradient of that picks them. */
#define MAXIMA_NODES(NAME, FIELDS)                                \
  GRAD(NAME##Backward0, "self result1" FIELDS)                    \
  {                                                               \
    Pool p = noted_pool(n);                                       \
    gi[0] = maxima_back(&p, g[0], POOLED(n), saved_tensor(n, 1)); \
  }                                                               \
  GRAD(NAME##BackwardBackward0, "indices")                        \
  {                                                               \
    Pool p = noted_pool(n);                                       \
    gi[0] = maxima_pick(&p, g[0], saved_tensor(n, 0));            \
  }

static Tensor *maxima_pick(const Pool *p, Tensor *h, Tensor *index) {
  if (blocked(h, index)) return NULL;
  int64_t sizes[MAX_DIM];
  int lead = index->ndim - (int)p->nd;
  memcpy(sizes, index->sizes, (size_t)lead * sizeof *sizes);
  sizes[lead] = -1;
  if (index->numel == 0) return tensor_zeros(index->ndim, index->sizes, tensor_dtype(h));
  int64_t last = volume(p->in) - 1;
  Tensor *within = t_le(index, tensor_wrapped_i(last)),
         *safe = t_clamp_max(index, tensor_wrapped_i(last));
  Tensor *picked = t_reshape(
      t_gather(t_reshape(h, lead + 1, sizes), lead, t_reshape(safe, lead + 1, sizes)), index->ndim,
      index->sizes);
  return volume(p->dilation) == 1 || p->adaptive ? picked : t_mul(picked, within);
}
#define MAXIMA_FIELDS " | -:ints3 ceil_mode:bool -:ints8 " WINDOW_FIELDS " dilation:window"
MAXIMA_NODES(MaxPool2DWithIndices, MAXIMA_FIELDS)
MAXIMA_NODES(MaxPool3DWithIndices, MAXIMA_FIELDS)
MAXIMA_NODES(AdaptiveMaxPool2D, "")
MAXIMA_NODES(AdaptiveMaxPool3D, "")
static const NodeType *const maxima_nodes[2][2] = {
    {&MaxPool2DWithIndicesBackward0, &MaxPool3DWithIndicesBackward0},
    {&AdaptiveMaxPool2DBackward0, &AdaptiveMaxPool3DBackward0}};
static const NodeType *const maxima_back_nodes[2][2] = {
    {&MaxPool2DWithIndicesBackwardBackward0, &MaxPool3DWithIndicesBackwardBackward0},
    {&AdaptiveMaxPool2DBackwardBackward0, &AdaptiveMaxPool3DBackwardBackward0}};

static void maxima(const Pool *p, Tensor *x, Tensor *out[2]) {
  IN_FLOAT_OUT(2, out, maxima(p, x, out), x)
  if (blocked(x)) return;
  Node *n = node_new(maxima_nodes[p->adaptive][p->nd - 2], 2, POOL_NUMBERS, x, NULL);
  note_pool(n, p);
  save(n, 0, x);
  Windows w;
  x = t_contiguous(t_detach(x));
  if (!failed()) {
    out[0] = planes_like(p, x, p->out, tensor_dtype(x), false);
    out[1] = planes_like(p, x, p->out, DT_I64, false);
  }
  if (!failed() && !tensor_absent(out[0]) && windows_make(&w, p))
    kernels[x->dtype].max(p, &w, plane_count(p, x), tensor_data(x), tensor_data(out[0]),
                          (int64_t *)(void *)tensor_data(out[1]));
  save(n, 1, out[1]);
  out[0] = set_history(failed() ? NULL : out[0], n);
}

static Tensor *return_back(const Pool *p, Tensor *g, Tensor *index);
/* The gradient as PyTorch's op. x: see POOLED. */
static Tensor *maxima_back(const Pool *p, Tensor *g, Tensor *x, Tensor *index) {
  static const char *const names[2][2] = {
      {"max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward"},
      {"adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward"}};
  const char *name = names[p->adaptive][p->nd - 2];
  if (p->adaptive) {
    OP_ENTERED_AS(maxima_back(p, g, x, index), name, g, x, index);
    return return_back(p, g, index);
  }
  PoolLists l = lists_of(p);
  const bool ceil_mode = p->ceil_mode;
  OP_ENTERED_AS(maxima_back(p, g, x, index), name, g, x, l.kernel, l.stride, l.padding, l.dilation,
                ceil_mode, index);
  return return_back(p, g, index);
}

static Tensor *return_back(const Pool *p, Tensor *g, Tensor *index) {
  IN_FLOAT(return_back(p, g, index), g);
  if (blocked(g, index)) return NULL;
  Node *n = node_new(maxima_back_nodes[p->adaptive][p->nd - 2], 1, POOL_NUMBERS, g, NULL);
  note_pool(n, p);
  save(n, 0, index);
  Windows w;
  g = t_contiguous(t_detach(g));
  index = t_contiguous(index);
  Tensor *x = failed() ? NULL : planes_like(p, g, p->in, tensor_dtype(g), true);
  if (x && !tensor_absent(x) && windows_make(&w, p))
    kernels[g->dtype].back(&w, plane_count(p, g), tensor_data(g),
                           (const int64_t *)(const void *)tensor_data(index), tensor_data(x));
  return set_history(failed() ? NULL : x, n);
}

/* ------------------------------------------------------------ arguments */

static const char *const number_words[] = {"", "one int", "two ints", "three ints"};

static bool spread(Ints v, int64_t nd, int64_t rest, const char *op, const char *what,
                   const char *either, int64_t out[3]) {
  if (v.n != 1 && v.n != nd) {
    fail(ERR_RUNTIME, "%s: %s must %s a single int, or a tuple of %s", op, what, either,
         number_words[nd]);
    return false;
  }
  for (int i = 0; i < 3; i++) out[i] = i < 3 - nd ? rest : v.v[v.n == 1 ? 0 : i - (3 - nd)];
  return true;
}

static bool pool_lists(Pool *p, const char *op, Ints kernel, Ints stride, Ints padding,
                       Ints dilation) {
  if (!spread(kernel, p->nd, 1, op, "kernel_size", "either be", p->kernel)) return false;
  p->strided = stride.n > 0;
  if (stride.n <= 0) memcpy(p->stride, p->kernel, sizeof p->stride);
  else if (!spread(stride, p->nd, 1, op, "stride", "either be omitted,", p->stride)) return false;
  return spread(padding, p->nd, 0, op, "padding", "either be", p->padding) &&
         spread(dilation, p->nd, 1, op, "dilation", "be either", p->dilation);
}

static bool check_space(const Pool *p, const Tensor *x) {
  if (x->ndim != p->nd + 1 && x->ndim != p->nd + 2) {
    fail(ERR_RUNTIME, "non-empty %dD or %dD (batch mode) tensor expected for input", (int)p->nd + 1,
         (int)p->nd + 2);
    return false;
  }
  for (int i = x->ndim == p->nd + 2; i < x->ndim; i++)
    if (x->sizes[i] == 0)
      fail(ERR_RUNTIME,
           "Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for input, but "
           "got:%s",
           (int)p->nd + 1, (int)p->nd + 2, shape_text(x));
  return !failed();
}

/* The distance from the first to the last element of a window, plus 1; limited to a number greater
 * than any input. */
static int64_t extent(const Pool *p, int d) {
  int64_t n;
  return __builtin_mul_overflow(p->dilation[d], p->kernel[d] - 1, &n) || n > INT64_MAX / 4
             ? INT64_MAX / 4
             : n + 1;
}

static bool check_windows(const Pool *p) {
  for (int i = 0; i < 3; i++) {
    if (p->stride[i] == 0) fail(ERR_RUNTIME, "stride should not be zero");
    else if (p->kernel[i] <= 0)
      fail(ERR_RUNTIME, "kernel size should be greater than zero, but got kH: %lld kW: %lld",
           (Shown)p->kernel[1], (Shown)p->kernel[2]);
    else if (p->stride[i] < 0)
      fail(ERR_RUNTIME, "stride should be greater than zero, but got dH: %lld dW: %lld",
           (Shown)p->stride[1], (Shown)p->stride[2]);
    else if (p->dilation[i] <= 0)
      fail(ERR_RUNTIME,
           "dilation should be greater than zero, but got dilationH: %lld dilationW: %lld",
           (Shown)p->dilation[1], (Shown)p->dilation[2]);
    else if (p->padding[i] < 0)
      fail(ERR_RUNTIME, "pad must be non-negative, but got pad: %lld", (Shown)p->padding[i]);
    else if (p->padding[i] > extent(p, i) / 2)
      fail(ERR_RUNTIME,
           "pad should be at most half of effective kernel size, but got pad=%lld, "
           "kernel_size=%lld and dilation=%lld",
           (Shown)p->padding[i], (Shown)p->kernel[i], (Shown)p->dilation[i]);
  }
  return !failed();
}

static int64_t output_size(const Pool *p, int d) {
  int64_t s = p->stride[d], room = p->in[d] + 2 * p->padding[d] - extent(p, d),
          n = room / s + (p->ceil_mode ? room % s > 0 : -(room % s < 0)) + 1;
  /* the last window starts inside */
  return p->ceil_mode && (n - 1) * s >= p->in[d] + p->padding[d] ? n - 1 : n;
}

/* Sizes of input and output. */
static bool pool_fit(Pool *p, const Tensor *x) {
  bool small = false;
  for (int i = 0; i < 3; i++) {
    p->in[i] = i < 3 - p->nd ? 1 : x->sizes[x->ndim - 3 + i];
    p->out[i] = output_size(p, i);
    small = small || p->out[i] < 1;
  }
  if (!small) return true;
  const int64_t *in = p->in + 3 - p->nd, *out = p->out + 3 - p->nd;
  int64_t channels = x->sizes[x->ndim - p->nd - 1];
  if (p->nd == 2)
    fail(ERR_RUNTIME,
         "Given input size: (%lldx%lldx%lld). Calculated output size: (%lldx%lldx%lld). Output "
         "size is too small",
         (Shown)channels, (Shown)in[0], (Shown)in[1], (Shown)channels, (Shown)out[0],
         (Shown)out[1]);
  else
    fail(ERR_RUNTIME,
         "Given input size: (%lldx%lldx%lldx%lld). Calculated output size: (%lldx%lldx%lldx%lld). "
         "Output size is too small",
         (Shown)channels, (Shown)in[0], (Shown)in[1], (Shown)in[2], (Shown)channels, (Shown)out[0],
         (Shown)out[1], (Shown)out[2]);
  return false;
}

static bool check_dtype(const char *op, const Tensor *x, bool integers) {
  return dtype_is_float(tensor_dtype(x)) || (integers && x->dtype != DT_BOOL) ||
         dtype_no_kernel(op, tensor_dtype(x));
}

static const int64_t one_number = 1;
#define ONES ((Ints){1, &one_number})

void t_max_pool(Tensor *x, int nd, Ints kernel, Ints stride, Ints padding, Ints dilation,
                bool ceil_mode, Tensor *out[2]) {
  const char *op = nd == 2 ? "max_pool2d" : "max_pool3d";
  OP_ENTERED_AS(t_max_pool(x, nd, kernel, stride, padding, dilation, ceil_mode, out), op, x, kernel,
                stride, padding, dilation, ceil_mode, out);
  out[0] = out[1] = NULL;
  if (blocked(x)) return;
  Pool p = {.nd = nd, .ceil_mode = ceil_mode};
  if (!pool_lists(&p, op, kernel, stride, padding, dilation) || !check_windows(&p) ||
      !check_space(&p, x) || !pool_fit(&p, x) || !check_dtype(op, x, true))
    return;
  DType d = tensor_dtype(x);
  maxima(&p, dtype_is_float(d) ? x : t_to(x, DT_I64), out);
  if (!dtype_is_float(d)) out[0] = t_to(out[0], d);
}

Tensor *t_avg_pool(Tensor *x, int nd, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                   bool count_include_pad, const int64_t *divisor) {
  const char *op = nd == 2 ? "avg_pool2d" : "avg_pool3d";
  OP_ENTERED_AS(t_avg_pool(x, nd, kernel, stride, padding, ceil_mode, count_include_pad, divisor),
                op, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor);
  if (blocked(x)) return NULL;
  Pool p = {.nd = nd,
            .ceil_mode = ceil_mode,
            .count_include_pad = count_include_pad,
            .divisor = divisor ? *divisor : INT64_MAX};
  if (!pool_lists(&p, op, kernel, stride, padding, ONES)) return NULL;
  if (divisor && *divisor == 0) return fail(ERR_RUNTIME, "divisor must be not zero");
  if (nd == 3 && x->ndim < 4)
    return fail(ERR_RUNTIME, "non-empty 4D or 5D (batch mode) tensor expected for input");
  if (x->ndim < nd + 1) return tensor_size(x, -nd - 1) < 0 ? NULL : x;
  if (!check_windows(&p) || !check_space(&p, x) || !pool_fit(&p, x)) return NULL;
  if (nd == 3 && refuses_half(x, "avg_pool3d_out_frame")) return NULL;
  if (x->dtype != DT_I64 && !check_dtype(op, x, false)) return NULL;
  return average(&p, x);
}

Ints pooling_adaptive_size(Call *c, int k, int nd) {
  const Tensor *x = arg_tensor(c, 0);
  Ints size = arg_ints(c, k);
  if (c->v[k].tag != TAG_INTS) size.n = nd;
  else if (x && x->ndim <= size.n)
    fail(ERR_VALUE, "Input dimension should be at least %d", size.n + 1);
  return size;
}

static bool adaptive_make(Pool *p, const Tensor *x, Ints size, const char *op, const char *but) {
  if (x->ndim != p->nd + 1 && x->ndim != p->nd + 2) {
    fail(ERR_RUNTIME, "%s(): Expected %dD or %dD tensor, but got%s %s", op, (int)p->nd + 1,
         (int)p->nd + 2, but, shape_text(x));
    return false;
  }
  if (size.n != p->nd) {
    fail(ERR_RUNTIME, "%s: output_size must be %d", op, (int)p->nd);
    return false;
  }
  for (int i = 0; i < 3; i++) {
    p->in[i] = i < 3 - p->nd ? 1 : x->sizes[x->ndim - 3 + i];
    p->out[i] = i < 3 - p->nd ? 1 : size.v[i - (3 - p->nd)];
    if (p->out[i] == INT64_MIN) p->out[i] = p->in[i]; /* None: the input's size */
    if (p->out[i] < 0)
      fail(ERR_RUNTIME,
           "%s: elements of output_size must be greater than or equal to 0 but received {%lld, "
           "%lld}",
           op, (Shown)size.v[0], (Shown)size.v[size.n - 1]);
    else if (p->in[i] == 0)
      fail(ERR_RUNTIME,
           "%s(): Expected input to have non-zero size for non-batch dimensions, but input has "
           "sizes %s with dimension %d being empty",
           op, shape_text(x), x->ndim - 3 + i);
  }
  return !failed();
}

Tensor *t_adaptive_avg_pool(Tensor *x, int nd, Ints size) {
  const char *op = nd == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d";
  OP_ENTERED_AS(t_adaptive_avg_pool(x, nd, size), op, x, size);
  if (blocked(x)) return NULL;
  Pool p = {.nd = nd, .adaptive = 1, .divisor = INT64_MAX};
  bool whole = size.n == nd;
  for (int i = 0; i < size.n; i++) whole = whole && size.v[i] == 1;
  if (whole) return t_mean(x, (Ints){nd, (const int64_t[]){-1, -2, -3}}, true, DT_NONE);
  if (!adaptive_make(&p, x, size, op, "")) return NULL;
  return check_dtype(nd == 2 ? op : "adaptive_avg_pool3d_cpu", x, false) ? average(&p, x) : NULL;
}

void t_adaptive_max_pool(Tensor *x, int nd, Ints size, Tensor *out[2]) {
  const char *op = nd == 2 ? "adaptive_max_pool2d" : "adaptive_max_pool3d";
  OP_ENTERED_AS(t_adaptive_max_pool(x, nd, size, out), op, x, size, out);
  out[0] = out[1] = NULL;
  if (blocked(x)) return;
  Pool p = {.nd = nd, .adaptive = 1, .divisor = INT64_MAX};
  if (adaptive_make(&p, x, size, op, ":") && check_dtype(op, x, false)) maxima(&p, x, out);
}

/* ------------------------------------------------------------ gradients */

/* Whether t has the leading dimensions of x and the planes of the output, and a type of these
 * kernels. */
static bool check_pooled(const Pool *p, const char *op, const char *what, const Tensor *t,
                         const Tensor *x) {
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < x->ndim; i++)
    sizes[i] = i < x->ndim - p->nd ? x->sizes[i] : p->out[3 - (x->ndim - i)];
  if (!sizes_equal(t->ndim, t->sizes, x->ndim, sizes))
    fail(ERR_RUNTIME, "%s: %s has shape %s instead of %s", op, what, shape_text(t),
         sizes_text(x->ndim, sizes));
  return !failed();
}

static bool check_pool_gradient(const Pool *p, const char *op, const Tensor *g, const Tensor *x) {
  if (!check_pooled(p, op, "the gradient", g, x)) return false;
  if (g->dtype != x->dtype)
    fail(ERR_RUNTIME, "expected dtype %s for `grad_output` but got dtype %s", legacy(x), legacy(g));
  return !failed() && check_dtype(op, g, false);
}

Tensor *t_avg_pool_backward(Tensor *g, Tensor *x, int nd, Ints kernel, Ints stride, Ints padding,
                            bool ceil_mode, bool count_include_pad, const int64_t *divisor) {
  const char *op = nd == 2 ? "avg_pool2d_backward" : "avg_pool3d_backward";
  if (blocked(g, x)) return NULL;
  Pool p = {.nd = nd,
            .ceil_mode = ceil_mode,
            .count_include_pad = count_include_pad,
            .divisor = divisor ? *divisor : INT64_MAX};
  if (divisor && *divisor == 0) return fail(ERR_RUNTIME, "divisor must be not zero");
  return pool_lists(&p, op, kernel, stride, padding, ONES) && check_windows(&p) &&
                 check_space(&p, x) && pool_fit(&p, x) && check_pool_gradient(&p, op, g, x)
             ? average_back(&p, g, x)
             : NULL;
}

Tensor *t_max_pool_backward(Tensor *g, Tensor *x, int nd, const Ints lists[4], bool ceil_mode,
                            Tensor *index) {
  const char *op = nd == 2 ? "max_pool2d_with_indices_backward"
                           : "max_pool3d_with_indices_backward";
  if (blocked(g, x, index)) return NULL;
  Pool p = {.nd = nd, .ceil_mode = ceil_mode};
  if (index->dtype != DT_I64)
    return fail(ERR_RUNTIME, "expected scalar type Long but found %s", legacy(index));
  return pool_lists(&p, op, lists[0], lists[1], lists[2], lists[3]) && check_windows(&p) &&
                 check_space(&p, x) && pool_fit(&p, x) && check_pool_gradient(&p, op, g, x) &&
                 check_pooled(&p, op, "indices", index, x)
             ? maxima_back(&p, g, x, index)
             : NULL;
}

/* index NULL: an average. */
Tensor *t_adaptive_pool_backward(Tensor *g, Tensor *x, int nd, Tensor *index) {
  const char *op = nd == 2 ? "adaptive_pool2d_backward" : "adaptive_pool3d_backward";
  if (blocked(g, x)) return NULL;
  Pool p = {.nd = nd, .adaptive = 1, .divisor = INT64_MAX};
  if (g->ndim != x->ndim)
    return fail(ERR_RUNTIME, "%s: the gradient has %d dimensions, and the input %d", op, g->ndim,
                x->ndim);
  if (x->ndim < nd || !adaptive_make(&p, x, (Ints){nd, g->sizes + g->ndim - nd}, op, "") ||
      !check_pool_gradient(&p, op, g, x))
    return NULL;
  if (!index) return average_back(&p, g, x);
  if (index->dtype != DT_I64)
    return fail(ERR_RUNTIME, "expected scalar type Long but found %s", legacy(index));
  return check_pooled(&p, op, "indices", index, x) ? maxima_back(&p, g, x, index) : NULL;
}

/* ------------------------------------------------------------ lines */

/* A line is a plane of height 1. */
static Tensor *as_plane(Tensor *x) { return t_unsqueeze(x, -2); }
static Tensor *as_line(Tensor *y) { return t_squeeze_dim(y, -2); }
static Ints flat(Ints v, int64_t first, int64_t *two) {
  if (v.n <= 0) return v;
  two[0] = first;
  two[1] = v.v[0];
  return (Ints){2, two};
}

static bool check_line(const Tensor *x, const char *op) {
  if (x->ndim == 2 || x->ndim == 3) return true;
  fail(ERR_RUNTIME,
       "Expected 2 to 3 dimensions, but got %d-dimensional tensor for argument #1 'self' (while "
       "checking arguments for %s)",
       x->ndim, op);
  return false;
}

static bool check_single(Ints v, const char *op, const char *name) {
  if (v.n <= 1) return true;
  fail(ERR_RUNTIME, "%s() argument '%s' should contain one int (got %d)", op, name, v.n);
  return false;
}

static bool check_max_line(const Tensor *x, const Ints v[4]) {
  static const char *const names[] = {"kernel_size", "stride", "padding", "dilation"};
  if (x->ndim != 2 && x->ndim != 3) {
    fail(ERR_RUNTIME,
         "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
         "input, but got:%s",
         shape_text(x));
    return false;
  }
  for (int i = 0; i < 4; i++)
    if (v[i].n > 1)
      fail(
          ERR_RUNTIME,
          "max_pool1d() %s must be an int, list of ints or tuple of ints of size 1 but got size %d",
          names[i], v[i].n);
  for (int i = 0; i < 4 && !failed(); i++)
    if (i != 2 && v[i].n > 0 && v[i].v[0] <= 0)
      fail(ERR_RUNTIME, "max_pool1d() %s must be greater than zero, but got %lld", names[i],
           (Shown)v[i].v[0]);
  if (failed()) return false;
  int64_t k = v[0].v[0], pad = v[2].v[0];
  if (pad < 0)
    fail(ERR_RUNTIME, "max_pool1d() padding must be non-negative, but got %lld", (Shown)pad);
  else if (pad > k / 2)
    fail(ERR_RUNTIME,
         "max_pool1d() padding should be at most half of kernel size, but got padding=%lld and "
         "kernel_size=%lld",
         (Shown)pad, (Shown)k);
  return !failed();
}

void t_max_pool1d(Tensor *x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode,
                  bool indices, Tensor *out[2]) {
  OP_ENTERED(t_max_pool1d, "max_pool1d", x, kernel, stride, padding, dilation, ceil_mode, indices,
             out);
  out[0] = out[1] = NULL;
  const Ints lists[4] = {kernel, stride, padding, dilation};
  int64_t two[4][2];
  if (blocked(x) || !check_max_line(x, lists)) return;
  Pool p = {.nd = 1,
            .ceil_mode = ceil_mode,
            .kernel = {1, 1, kernel.v[0]},
            .padding = {0, 0, padding.v[0]},
            .dilation = {1, 1, dilation.v[0]}};
  p.in[2] = x->sizes[x->ndim - 1];
  p.stride[2] = stride.n > 0 ? stride.v[0] : kernel.v[0];
  if (output_size(&p, 2) <= 0) {
    fail(ERR_RUNTIME, "max_pool1d() Invalid computed output size: %lld", (Shown)output_size(&p, 2));
    return;
  }
  bool alone = !indices && !tensor_tracked(x); /* a kernel of its own, which makes no view */
  if (alone && !check_dtype("max_pool1d_impl", x, false)) return;
  t_max_pool(as_plane(x), 2, flat(kernel, 1, two[0]),
             flat(stride.n > 0 ? stride : kernel, 1, two[1]), flat(padding, 0, two[2]),
             flat(dilation, 1, two[3]), ceil_mode, out);
  for (int i = 0; i < 2; i++) out[i] = as_line(out[i]);
  if (alone && out[0] && !(out[0]->form & FORM_HOSTED))
    out[0] = tensor_alias(out[0], out[0]->ndim, out[0]->sizes, out[0]->strides, out[0]->offset);
}

Tensor *t_avg_pool1d(Tensor *x, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                     bool count_include_pad) {
  OP_ENTERED(t_avg_pool1d, "avg_pool1d", x, kernel, stride, padding, ceil_mode, count_include_pad);
  int64_t two[3][2];
  if (blocked(x) || !check_line(x, "avg_pool1d") ||
      !check_single(kernel, "avg_pool1d", "kernel_size") ||
      !check_single(stride, "avg_pool1d", "stride") ||
      !check_single(padding, "avg_pool1d", "padding"))
    return NULL;
  return as_line(t_avg_pool(as_plane(x), 2, flat(kernel, 1, two[0]),
                            flat(stride.n > 0 ? stride : kernel, 1, two[1]),
                            flat(padding, 0, two[2]), ceil_mode, count_include_pad, NULL));
}

Tensor *t_adaptive_avg_pool1d(Tensor *x, Ints size) {
  OP_ENTERED(t_adaptive_avg_pool1d, "adaptive_avg_pool1d", x, size);
  int64_t two[2];
  if (blocked(x) || !check_line(x, "adaptive_avg_pool1d") ||
      !check_single(size, "adaptive_avg_pool1d", "output_size"))
    return NULL;
  return as_line(t_adaptive_avg_pool(as_plane(x), 2, flat(size, 1, two)));
}

void t_adaptive_max_pool1d(Tensor *x, Ints size, Tensor *out[2]) {
  OP_ENTERED(t_adaptive_max_pool1d, "adaptive_max_pool1d", x, size, out);
  int64_t two[2];
  out[0] = out[1] = NULL;
  if (blocked(x) || !check_line(x, "adaptive_max_pool1d") ||
      !check_single(size, "adaptive_max_pool1d", "output_size"))
    return;
  t_adaptive_max_pool(as_plane(x), 2, flat(size, 1, two), out);
  for (int i = 0; i < 2; i++) out[i] = as_line(out[i]);
}

/* ------------------------------------------------------------ powers */

/* (sum over the window of x^p)^(1/p); for p infinite the largest or the smallest magnitude. */
Tensor *t_lp_pool(Tensor *x, int nd, double p, Ints kernel, Ints stride, bool ceil_mode) {
  const int64_t zero = 0;
  Ints none = {1, &zero};
  if (blocked(x)) return NULL;
  if (isinf(p)) {
    Tensor *out[2], *size = p > 0 ? t_abs(x) : t_neg(t_abs(x));
    if (nd == 1) t_max_pool1d(size, kernel, stride, none, ONES, ceil_mode, false, out);
    else t_max_pool(size, nd, kernel, stride, none, ONES, ceil_mode, out);
    return p > 0 ? out[0] : t_neg(out[0]);
  }
  double count = 1;
  for (int i = 0; i < nd; i++) count *= (double)kernel.v[kernel.n == 1 ? 0 : i];
  Tensor *powers = t_pow(x, tensor_wrapped_f(p));
  Tensor *y = nd == 1 ? t_avg_pool1d(powers, kernel, stride, none, ceil_mode, true)
                      : t_avg_pool(powers, nd, kernel, stride, none, ceil_mode, true, NULL);
  return t_pow(t_mul_f(t_mul(t_sign(y), t_relu(t_abs(y))), count), tensor_wrapped_f(1 / p));
}

/* Discrete Fourier transforms: three primitives, and the functions of torch.fft composed of them.
 *
 * The primitives transform the dimensions that are listed, the last of them as its kind says and
 * the others as complex ones. Results are laid out like PyTorch's: batch dimensions in the input's
 * order, transformed ones innermost. */
#include <math.h>
#include <string.h>

#include "fft_rows.h"
#include "ground/memory.h"
#include "ground/poll.h"
#include "kernels/fft.h"
#include "ops/fft/fft.h"
#include "ops/nn/nn.h"
#include "ops/op.h"
#include "ops/view/view.h"

/* ------------------------------------------------------------ one dimension */

typedef struct {
  size_t (*plan_bytes)(FftKind kind, int64_t n);
  size_t (*work_bytes)(FftKind kind, int64_t n, int64_t lines);
  void (*plan)(FftKind kind, int64_t n, void *plan, void *work);
  void (*run)(const void *plan, bool backward, const char *in, char *out, FftLines lines,
              double scale, void *work);
  /* Fills the second half of a real line's spectrum with the conjugates of the first. */
  void (*mirror)(char *line, int64_t n, int64_t step);
} Kernels;

#define KERNELS_OF(name, T)                                                                    \
  static void run_##name(const void *plan, bool backward, const char *in, char *out,           \
                         FftLines lines, double scale, void *work) {                           \
    fft_##name(plan, backward, (const T *)(const void *)in, (T *)(void *)out, lines, (T)scale, \
               work);                                                                          \
  }                                                                                            \
  static void mirror_##name(char *line, int64_t n, int64_t step) {                             \
    T *at = (T *)(void *)line;                                                                 \
    for (int64_t k = n / 2 + 1; k < n; k++) {                                                  \
      at[2 * k * step] = at[2 * (n - k) * step];                                               \
      at[2 * k * step + 1] = -at[2 * (n - k) * step + 1];                                      \
    }                                                                                          \
  }                                                                                            \
  static const Kernels of_##name = {fft_##name##_plan_bytes, fft_##name##_work_bytes,          \
                                    fft_##name##_plan, run_##name, mirror_##name};
KERNELS_OF(f32, float)
KERNELS_OF(f64, double)

static const Kernels *const kernels[DT_COUNT] = {
    [DT_F32] = &of_f32, [DT_F64] = &of_f64, [DT_C64] = &of_f32, [DT_C128] = &of_f64};

/* All dimensions of two tensors but one; adjacent ones in both are merged. */
typedef struct {
  int n;
  int64_t sizes[MAX_DIM], in[MAX_DIM], out[MAX_DIM]; /* the innermost last */
} Lines;

static Lines lines_of(const Tensor *in, const Tensor *out, int dim) {
  Lines l = {0};
  int order[MAX_DIM], count = 0;
  for (int d = 0; d < out->ndim; d++) {
    if (d == dim || out->sizes[d] == 1) continue;
    int at = count++;
    for (; at > 0 && out->strides[order[at - 1]] < out->strides[d]; at--) order[at] = order[at - 1];
    order[at] = d;
  }
  for (int i = 0; i < count; i++) {
    int d = order[i], last = l.n - 1;
    bool joins = last >= 0 && l.in[last] == in->strides[d] * in->sizes[d] &&
                 l.out[last] == out->strides[d] * out->sizes[d];
    if (!joins) last = l.n++, l.sizes[last] = 1;
    l.sizes[last] *= out->sizes[d];
    l.in[last] = in->strides[d], l.out[last] = out->strides[d];
  }
  if (l.n == 0) l.sizes[l.n++] = 1;
  return l;
}

/* A function of lines that are equally far apart. */
typedef void Group(const void *context, const char *in, char *out, FftLines lines);

/* Calls `group` on all lines along a dimension. The other dimensions of both tensors have the same
 * sizes. */
static void each_group(const Lines *l, Tensor *in, Tensor *out, int dim, Group *group,
                       const void *context) {
  int inner = l->n - 1, d = inner;
  FftLines lines = {l->sizes[inner], in->strides[dim], l->in[inner], out->strides[dim],
                    l->out[inner]};
  int64_t at[MAX_DIM] = {0}, in_bytes = dtype_bytes(tensor_dtype(in)),
          out_bytes = dtype_bytes(tensor_dtype(out));
  if (tensor_absent(out)) return;
  const int64_t length = in->sizes[dim] > out->sizes[dim] ? in->sizes[dim] : out->sizes[dim];
  const char *from = tensor_data(in);
  char *to = tensor_data(out);
  while (d >= 0) {
    if (poll_stops(32 * lines.count * length)) return;
    group(context, from, to, lines);
    for (d = inner - 1; d >= 0; d--) {
      from += l->in[d] * in_bytes, to += l->out[d] * out_bytes;
      if (++at[d] < l->sizes[d]) break;
      from -= l->sizes[d] * l->in[d] * in_bytes, to -= l->sizes[d] * l->out[d] * out_bytes;
      at[d] = 0;
    }
  }
}

typedef struct {
  const Kernels *by;
  bool backward;
  double scale;
  void *plan, *work;
} Transform;

static void transform_group(const void *context, const char *in, char *out, FftLines lines) {
  const Transform *t = context;
  t->by->run(t->plan, t->backward, in, out, lines, t->scale, t->work);
}

/* Transforms one dimension of `in` into `out`. The other dimensions have the same sizes; n is the
 * length of the longer lines. False with the error set. */
static bool transform_dim(FftKind kind, bool backward, Tensor *in, Tensor *out, int dim, int64_t n,
                          double scale) {
  const Kernels *by = blocked(in, out) ? NULL : KERNEL_OF(kernels, tensor_dtype(in), "fft");
  if (!by || out->numel == 0 || tensor_absent(out)) return !failed();
  Lines l = lines_of(in, out, dim);
  size_t mark = scratch_mark();
  Transform t = {by, backward, scale, scratch_alloc(by->plan_bytes(kind, n)),
                 scratch_alloc(by->work_bytes(kind, n, l.sizes[l.n - 1]))};
  if (t.plan && t.work) {
    by->plan(kind, n, t.plan, t.work);
    each_group(&l, in, out, dim, transform_group, &t);
  }
  scratch_release(mark);
  return !failed();
}

/* ------------------------------------------------------------ several dimensions */

/* The factor of a transform with this number of elements. */
static double scale_of(int64_t normalization, double elements) {
  return normalization == NORM_BY_N        ? 1 / elements
         : normalization == NORM_BY_ROOT_N ? 1 / sqrt(elements)
                                           : 1;
}

/* Dimensions from the longest stride to the shortest; equal ones as they stand. */
static void sort_by_strides(const Tensor *x, int n, int64_t *dims) {
  for (int i = 1; i < n; i++)
    for (int k = i; k > 0 && x->strides[dims[k - 1]] < x->strides[dims[k]]; k--) {
      int64_t d = dims[k];
      dims[k] = dims[k - 1], dims[k - 1] = d;
    }
}

/* An empty result: batch dimensions in x's order, then `dims` as listed. */
static Tensor *result_for(const Tensor *x, const int64_t *sizes, Ints dims, DType dtype) {
  int64_t order[MAX_DIM], strides[MAX_DIM], step = 1;
  bool listed[MAX_DIM] = {false};
  int n = 0;
  for (int i = 0; i < dims.n; i++) listed[dims.v[i]] = true;
  for (int d = 0; d < x->ndim; d++)
    if (!listed[d]) order[n++] = d;
  sort_by_strides(x, n, order);
  for (int i = 0; i < dims.n; i++) order[n++] = dims.v[i];
  for (int i = n - 1; i >= 0; i--) {
    strides[order[i]] = step;
    step *= sizes[order[i]] > 0 ? sizes[order[i]] : 1;
  }
  return tensor_empty_strided(x->ndim, sizes, strides, dtype);
}

/* Complex transforms of `dims` of in into out, which may be in. */
static bool transform_dims(Tensor *in, Tensor *out, Ints dims, double scale, bool forward) {
  for (int i = dims.n - 1; i >= 0 && !failed(); i--) {
    int d = (int)dims.v[i];
    transform_dim(FFT_COMPLEX, !forward, in, out, d, out->sizes[d], i == 0 ? scale : 1);
    in = out;
  }
  return !failed();
}

static double elements_of(const int64_t *sizes, Ints dims) {
  double n = 1;
  for (int i = 0; i < dims.n; i++) n *= (double)sizes[dims.v[i]];
  return n;
}

/* A copy of a list of dimensions, wrapped; NULL if x lacks one. */
static int64_t *own_dims(const Tensor *x, Ints dims) {
  int64_t *own = scratch_array(dims.n ? dims.n : 1, sizeof *own);
  for (int i = 0; own && i < dims.n; i++)
    if ((own[i] = dim_wrap(dims.v[i], x->ndim)) < 0) return NULL;
  return own;
}

static Tensor *c2c_data(Tensor *x, Ints dims, int64_t normalization, bool forward) {
  x = t_resolve_conj(x);
  int64_t *own = blocked(x) ? NULL : own_dims(x, dims);
  if (!own) return NULL;
  sort_by_strides(x, dims.n, own);
  dims.v = own;
  Tensor *y = result_for(x, x->sizes, dims, tensor_dtype(x));
  double scale = scale_of(normalization, elements_of(x->sizes, dims));
  return y && transform_dims(x, y, dims, scale, forward) ? y : NULL;
}

typedef struct {
  const Kernels *by;
  int64_t n, bytes; /* of a line, of an element */
} Mirror;

static void mirror_group(const void *context, const char *in, char *out, FftLines lines) {
  const Mirror *m = context;
  (void)in;
  for (int64_t i = 0; i < lines.count; i++)
    m->by->mirror(out + i * lines.out_line * m->bytes, m->n, lines.out_step);
}

static void mirror(Tensor *y, int dim) {
  Lines l = lines_of(y, y, dim);
  Mirror m = {kernels[y->dtype], y->sizes[dim], dtype_bytes(tensor_dtype(y))};
  if (y->numel > 0) each_group(&l, y, y, dim, mirror_group, &m);
}

static Tensor *r2c_data(Tensor *x, Ints dims, int64_t normalization, bool onesided) {
  int64_t *own = own_dims(x, dims), sizes[MAX_DIM];
  if (!own) return NULL;
  sort_by_strides(x, dims.n - 1, own);
  dims.v = own;
  int64_t last = own[dims.n - 1], n = x->sizes[last], half = n / 2 + 1;
  memcpy(sizes, x->sizes, x->ndim * sizeof *sizes);
  if (onesided) sizes[last] = half;
  Tensor *y = result_for(x, sizes, dims, dtype_complex(tensor_dtype(x)));
  Tensor *part = t_narrow(y, last, 0, half);
  Ints others = {dims.n - 1, own};
  double scale = scale_of(normalization, elements_of(x->sizes, dims));
  bool done = transform_dim(FFT_TO_HALF, false, x, part, (int)last, n, others.n ? 1 : scale) &&
              transform_dims(part, part, others, scale, true);
  if (done && !onesided) mirror(y, (int)last);
  return failed() ? NULL : y;
}

static Tensor *c2r_data(Tensor *x, Ints dims, int64_t normalization, int64_t length) {
  int64_t *own = own_dims(x, dims), sizes[MAX_DIM];
  if (!own) return NULL;
  dims.v = own;
  int64_t last = own[dims.n - 1];
  Ints others = {dims.n - 1, own};
  double elements = elements_of(x->sizes, others) * (double)length;
  x = others.n ? c2c_data(x, others, NORM_NONE, false) : t_resolve_conj(x);
  if (blocked(x)) return NULL;
  memcpy(sizes, x->sizes, x->ndim * sizeof *sizes);
  sizes[last] = length;
  Tensor *y = result_for(x, sizes, ONE_DIM(last), dtype_real(tensor_dtype(x)));
  double scale = scale_of(normalization, elements);
  return transform_dim(FFT_FROM_HALF, true, x, y, (int)last, length, scale) ? y : NULL;
}

/* ------------------------------------------------------------ primitives */

/* Numbers: dims, then forward, normalization. */
GRAD(FftC2CBackward0, "| dim:ints forward:bool normalization:int")
{
  Ints dims = num_list_at(n, 0);
  const Number *rest = n->numbers + 1 + dims.n;
  gi[0] = t_fft_c2c(g[0], dims, rest[1].i, !rest[0].i);
}

Tensor *t_fft_c2c(Tensor *x, Ints dims, int64_t normalization, bool forward) {
  OP_ENTERED(t_fft_c2c, "_fft_c2c", x, dims, normalization, forward);
  if (blocked(x)) return NULL;
  Node *n = node_new(&FftC2CBackward0, 0, 3 + dims.n, x, NULL);
  num_list(n, 0, dims.n, dims.v);
  num_i(n, 1 + dims.n, forward);
  num_i(n, 2 + dims.n, normalization);
  return set_history(WITHOUT_GRAD(c2c_data(x, dims, normalization, forward)), n);
}

/* Adds zeros behind a dimension, up to a length. */
static Tensor *pad_to_length(Tensor *x, int64_t dim, int64_t length) {
  int64_t pads[2 * MAX_DIM] = {0};
  if (blocked(x) || x->sizes[dim] >= length) return x;
  int at = 2 * (x->ndim - 1 - (int)dim) + 1;
  pads[at] = length - x->sizes[dim];
  return t_constant_pad(x, (Ints){at + 1, pads}, tensor_wrapped_f(0));
}

/* Numbers: dims, then normalization, onesided. */
GRAD(FftR2CBackward0, "self | dim:ints normalization:int onesided:bool")
{
  Ints dims = num_list_at(n, 0);
  const Number *rest = n->numbers + 1 + dims.n;
  Tensor *x = saved_tensor(n, 0);
  if (blocked(x)) return;
  int64_t last = dims.v[dims.n - 1];
  Tensor *whole = rest[1].i ? pad_to_length(g[0], last, x->sizes[last]) : g[0];
  gi[0] = t_real(t_fft_c2c(whole, dims, rest[0].i, false));
}

Tensor *t_fft_r2c(Tensor *x, Ints dims, int64_t normalization, bool onesided) {
  OP_ENTERED(t_fft_r2c, "_fft_r2c", x, dims, normalization, onesided);
  if (blocked(x)) return NULL;
  if (dtype_is_complex(tensor_dtype(x)))
    return fail(ERR_RUNTIME, "Only supports floating-point dtypes, but found: %s", legacy(x));
  Node *n = node_new(&FftR2CBackward0, 1, 3 + dims.n, x, NULL);
  save(n, 0, x);
  num_list(n, 0, dims.n, dims.v);
  num_i(n, 1 + dims.n, normalization);
  num_i(n, 2 + dims.n, onesided);
  return set_history(WITHOUT_GRAD(r2c_data(x, dims, normalization, onesided)), n);
}

/* Doubles the elements, which stand for two each, except those that are their own mirror image. */
static Tensor *double_mirrored(Tensor *half, int64_t dim, int64_t n) {
  if (blocked(half)) return NULL;
  int64_t sizes[MAX_DIM], rows = half->sizes[dim];
  for (int d = 0; d < half->ndim; d++) sizes[d] = d == dim ? rows : 1;
  Tensor *times = tensor_full(half->ndim, sizes, dtype_real(tensor_dtype(half)), 2);
  if (blocked(times)) return NULL;
  tensor_set_f(times, 0, 1);
  if (n % 2 == 0) tensor_set_f(times, rows - 1, 1);
  return t_mul(half, times);
}

/* Numbers: dims, then normalization. */
GRAD(FftC2RBackward0, "| dim:ints normalization:int")
{
  Ints dims = num_list_at(n, 0);
  int64_t last = dims.v[dims.n - 1];
  Tensor *half = t_fft_r2c(g[0], dims, n->numbers[1 + dims.n].i, true);
  gi[0] = double_mirrored(half, last, blocked(g[0]) ? 0 : g[0]->sizes[last]);
}

Tensor *t_fft_c2r(Tensor *x, Ints dims, int64_t normalization, int64_t length) {
  OP_ENTERED(t_fft_c2r, "_fft_c2r", x, dims, normalization, length);
  if (blocked(x)) return NULL;
  Node *n = node_new(&FftC2RBackward0, 0, 2 + dims.n, x, NULL);
  num_list(n, 0, dims.n, dims.v);
  num_i(n, 1 + dims.n, normalization);
  return set_history(WITHOUT_GRAD(c2r_data(x, dims, normalization, length)), n);
}

/* ------------------------------------------------------------ arguments */

/* The scaling of one direction by the mode's name; -1 with the error set. */
static int64_t normalization(const char *norm, bool forward) {
  if (!norm || strcmp(norm, "backward") == 0) return forward ? NORM_NONE : NORM_BY_N;
  if (strcmp(norm, "forward") == 0) return forward ? NORM_BY_N : NORM_NONE;
  if (strcmp(norm, "ortho") == 0) return NORM_BY_ROOT_N;
  fail(ERR_RUNTIME, "Invalid normalization mode: \"%s\"", norm);
  return -1;
}

/* x in a type that can be transformed; integers become the default one. */
static Tensor *promote_input(Tensor *x, bool complex) {
  if (blocked(x)) return NULL;
  DType d = tensor_dtype(x);
  if (!dtype_is_complex(d)) {
    d = elementwise_float_dtype(d);
    if (!kernels[d]) return fail(ERR_RUNTIME, "Unsupported dtype %s", dtype_info[d].legacy);
    if (complex) d = dtype_complex(d);
  }
  return t_to(x, d);
}

static bool check_length(int64_t n) {
  if (n >= 1) return true;
  fail(ERR_RUNTIME, "Invalid number of data points (%lld) specified", (Shown)n);
  return false;
}

/* Checks out=. Messages name the function, or the primitive that writes there. */
static bool check_out(const Call *c, const Tensor *x, const char *name, const char *primitive) {
  if (blocked(x) || c->out.tag != TAG_TENSOR) return !failed();
  bool complex = primitive[strlen(primitive) - 1] == 'c';
  const Tensor *out = c->out.t;
  if (!(complex ? dtype_is_complex : dtype_is_float)(tensor_dtype(out)))
    fail(ERR_RUNTIME, "%s expects a %s output tensor, but got %s", name,
         complex ? "complex" : "floating point", legacy(out));
  else if (recording && (tensor_requires_grad(x) || tensor_requires_grad(out)))
    fail(ERR_RUNTIME,
         "%s(): functions with out=... arguments don't support automatic differentiation, but one "
         "of the arguments requires grad.",
         primitive);
  return !failed();
}

/* x cut or filled with zeros to the sizes given for some dimensions. */
static Tensor *pad_or_cut(Tensor *x, Ints dims, const int64_t *sizes) {
  int64_t pads[2 * MAX_DIM] = {0};
  bool longer = false;
  for (int i = 0; i < dims.n && !blocked(x); i++) {
    int64_t d = dims.v[i], more = sizes[i] - x->sizes[d];
    if (more > 0) pads[2 * (x->ndim - 1 - d) + 1] = more, longer = true;
    else if (more < 0) x = t_slice(x, d, 0, sizes[i], 1);
  }
  if (blocked(x) || !longer) return x;
  return t_constant_pad(x, (Ints){2 * x->ndim, pads}, tensor_wrapped_f(0));
}

static int64_t wrapped_dim(const Tensor *x, int64_t dim) {
  return tensor_size(x, dim) < 0 ? -1 : dim_wrap(dim, x->ndim);
}

/* ------------------------------------------------------------ one dimension of torch.fft */

/* The arguments after the input: n, dim, norm. */
typedef struct {
  int64_t dim, n, normalization;
  bool given; /* n is given */
} Along;

/* False with the error set. */
static bool read_dimensions(const Call *c, const Tensor *x, bool forward, bool halved, Along *a) {
  if (blocked(x)) return false;
  a->dim = wrapped_dim(x, arg_int(c, 2));
  if (failed()) return false;
  a->given = arg_given(c, 1);
  int64_t size = x->sizes[a->dim];
  a->n = a->given ? arg_int(c, 1) : halved ? 2 * (size - 1) : size;
  if (!check_length(a->n)) return false;
  a->normalization = normalization(arg_str(c, 3), forward);
  return !failed();
}

static Tensor *cut(const Along *a, Tensor *x, int64_t n) {
  return a->given ? pad_or_cut(x, ONE_DIM(a->dim), &n) : x;
}

/* The conjugate as a view. out= must have its type. */
static Tensor *conj_result(const Call *c, Tensor *y) {
  if (!blocked(y) && c->out.tag == TAG_TENSOR && c->out.t->dtype != y->dtype)
    return fail(ERR_RUNTIME, "Found dtype %s but expected %s", legacy(c->out.t), legacy(y));
  return t_conj(y);
}

static Tensor *real_line(const Call *c, const char *name, Tensor *x, bool forward, bool onesided) {
  Along a;
  if (blocked(x)) return NULL;
  if (dtype_is_complex(tensor_dtype(x)))
    return fail(ERR_RUNTIME, "%s expects a real input tensor, but got %s", name, legacy(x));
  if (!check_out(c, x, name, "_fft_r2c")) return NULL;
  x = promote_input(x, false);
  if (!read_dimensions(c, x, forward, false, &a)) return NULL;
  Tensor *y = t_fft_r2c(cut(&a, x, a.n), ONE_DIM(a.dim), a.normalization, onesided);
  return forward ? y : conj_result(c, y);
}

static Tensor *complex_line(const Call *c, const char *name, Tensor *x, bool forward) {
  Along a;
  if (!check_out(c, x, name, "_fft_c2c") || !read_dimensions(c, x, forward, false, &a)) return NULL;
  return t_fft_c2c(cut(&a, x, a.n), ONE_DIM(a.dim), a.normalization, forward);
}

Tensor *t_fft(const Call *c, Tensor *x, bool forward) {
  OP_ENTERED_AS(t_fft(c, x, forward), forward ? "fft_fft" : "fft_ifft", x, c);
  const char *name = forward ? "fft" : "ifft";
  if (blocked(x)) return NULL;
  return dtype_is_complex(tensor_dtype(x)) ? complex_line(c, name, x, forward)
                                           : real_line(c, name, x, forward, false);
}

Tensor *t_fft_to_half(const Call *c, Tensor *x, bool forward) {
  OP_ENTERED_AS(t_fft_to_half(c, x, forward), forward ? "fft_rfft" : "fft_ihfft", x, c);
  return real_line(c, forward ? "rfft" : "ihfft", x, forward, true);
}

Tensor *t_fft_from_half(const Call *c, Tensor *x, bool forward) {
  OP_ENTERED_AS(t_fft_from_half(c, x, forward), forward ? "fft_hfft" : "fft_irfft", x, c);
  Along a;
  if (!check_out(c, x, forward ? "hfft" : "irfft", "_fft_c2r")) return NULL;
  x = promote_input(x, true);
  if (!read_dimensions(c, x, forward, true, &a)) return NULL;
  x = cut(&a, x, a.n / 2 + 1);
  return t_fft_c2r(forward ? t_conj(x) : x, ONE_DIM(a.dim), a.normalization, a.n);
}

/* ------------------------------------------------------------ several dimensions of torch.fft */

/* Dimensions and their wanted sizes. */
typedef struct {
  int n;
  int64_t dims[MAX_DIM], sizes[MAX_DIM];
} Shape;

static bool read_dims(const Tensor *x, Ints dims, Shape *s) {
  uint64_t seen = 0;
  for (int i = 0; i < dims.n && i < MAX_DIM; i++)
    if ((s->dims[i] = wrapped_dim(x, dims.v[i])) < 0) return false;
  for (int i = 0; i < dims.n; i++) {
    uint64_t bit = (uint64_t)1 << (i < MAX_DIM ? s->dims[i] : 0);
    if (seen & bit) return fail(ERR_RUNTIME, "FFT dims must be unique"), false;
    seen |= bit;
  }
  s->n = dims.n;
  return true;
}

/* Reads the arguments after the input: s, dim, norm. */
static bool read_shape(const Call *c, const Tensor *x, Shape *s) {
  if (blocked(x)) return false;
  Ints sizes = arg_ints(c, 1), dims = arg_ints(c, 2);
  if (dims.n >= 0 && !read_dims(x, dims, s)) return false;
  if (sizes.n >= 0 && dims.n >= 0 && sizes.n != dims.n)
    return fail(ERR_RUNTIME, "When given, dim and shape arguments must have the same length"),
           false;
  if (sizes.n > x->ndim)
    return fail(ERR_RUNTIME, "Got shape with %d values but input tensor only has %d dimensions.",
                sizes.n, x->ndim),
           false;
  if (dims.n < 0) {
    s->n = sizes.n >= 0 ? sizes.n : x->ndim;
    for (int i = 0; i < s->n; i++) s->dims[i] = x->ndim - s->n + i;
  }
  for (int i = 0; i < s->n; i++) {
    bool given = sizes.n >= 0 && sizes.v[i] != -1;
    s->sizes[i] = given ? sizes.v[i] : x->sizes[s->dims[i]];
    if (!check_length(s->sizes[i])) return false;
  }
  return !failed();
}

static bool check_any(const Shape *s, const char *name) {
  if (s->n == 0) fail(ERR_RUNTIME, "%s must transform at least one axis", name);
  return !failed();
}

/* read_shape for half a spectrum: the last size becomes that of the half, *length that of the
 * whole. */
static bool read_half_shape(const Call *c, const Tensor *x, const char *name, Shape *s,
                            int64_t *length) {
  if (!read_shape(c, x, s) || !check_any(s, name)) return false;
  Ints sizes = arg_ints(c, 1);
  int last = s->n - 1;
  bool given = sizes.n > 0 && sizes.v[last] != -1;
  *length = given ? s->sizes[last] : 2 * (x->sizes[s->dims[last]] - 1);
  s->sizes[last] = *length / 2 + 1;
  return check_length(*length);
}

static Ints dims_of(const Shape *s) { return (Ints){s->n, s->dims}; }
static Ints dims_but_last(const Shape *s) { return (Ints){s->n - 1, s->dims}; }
static Ints last_dim(const Shape *s) { return (Ints){1, s->dims + s->n - 1}; }

Tensor *t_fftn(const Call *c, Tensor *x, bool forward) {
  OP_ENTERED_AS(t_fftn(c, x, forward), forward ? "fft_fftn" : "fft_ifftn", x, c);
  Shape s;
  if (!read_shape(c, x, &s)) return NULL;
  x = pad_or_cut(promote_input(x, true), dims_of(&s), s.sizes);
  int64_t norm = normalization(arg_str(c, 3), forward);
  if (failed() || !check_out(c, x, "fftn", "_fft_c2c")) return NULL;
  return s.n ? t_fft_c2c(x, dims_of(&s), norm, forward) : t_clone(x);
}

static Tensor *real_for(const Tensor *x, const char *name) {
  return dtype_is_complex(tensor_dtype(x))
             ? fail(ERR_RUNTIME, "%s expects a real-valued input tensor, but got %s", name,
                    legacy(x))
             : NULL;
}

Tensor *t_rfftn(const Call *c, Tensor *x) {
  OP_ENTERED_AS(t_rfftn(c, x), "fft_rfftn", x, c);
  Shape s;
  if (blocked(x) || real_for(x, "rfftn") || failed()) return NULL;
  x = promote_input(x, false);
  if (!read_shape(c, x, &s) || !check_any(&s, "rfftn")) return NULL;
  x = pad_or_cut(x, dims_of(&s), s.sizes);
  int64_t norm = normalization(arg_str(c, 3), true);
  if (failed() || !check_out(c, x, "rfftn", "_fft_r2c")) return NULL;
  return t_fft_r2c(x, dims_of(&s), norm, true);
}

Tensor *t_fftn_from_half(const Call *c, Tensor *x, bool forward) {
  OP_ENTERED_AS(t_fftn_from_half(c, x, forward), forward ? "fft_hfftn" : "fft_irfftn", x, c);
  const char *name = forward ? "hfftn" : "irfftn";
  Shape s;
  int64_t length;
  if (!read_half_shape(c, x, name, &s, &length)) return NULL;
  x = pad_or_cut(promote_input(x, true), dims_of(&s), s.sizes);
  int64_t norm = normalization(arg_str(c, 3), forward);
  if (failed() || !check_out(c, x, name, "_fft_c2r")) return NULL;
  if (!forward) return t_fft_c2r(x, dims_of(&s), norm, length);
  if (s.n > 1) x = t_fft_c2c(x, dims_but_last(&s), norm, true);
  return t_fft_c2r(t_conj(x), last_dim(&s), norm, length);
}

Tensor *t_ihfftn(const Call *c, Tensor *x) {
  OP_ENTERED_AS(t_ihfftn(c, x), "fft_ihfftn", x, c);
  Shape s;
  bool complex = !blocked(x) && dtype_is_complex(tensor_dtype(x)); /* refused by the primitive */
  x = complex ? x : promote_input(x, false);
  if (!read_shape(c, x, &s) || !check_any(&s, "ihfftn")) return NULL;
  x = pad_or_cut(x, dims_of(&s), s.sizes);
  int64_t norm = normalization(arg_str(c, 3), false);
  if (failed() || (!complex && !check_out(c, x, "ihfftn", "_fft_c2c"))) return NULL;
  Tensor *y = t_fft_r2c(x, last_dim(&s), norm, true);
  if (s.n == 1) return conj_result(c, y);
  return t_fft_c2c(t_conj_physical(y), dims_but_last(&s), norm, false);
}

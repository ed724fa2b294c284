/* Convolutions and their transposes as ops, unfold and fold.
 *
 * The three maps of conv_maps.h do all. Each is the gradient of the others, so derivatives of
 * any order stay within them. One or two spatial dimensions are three whose first ones have size
 * 1. */
#include <string.h>

#include "ground/memory.h"
#include "nn_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/conv_maps.h"
#include "ops/nn/nn.h"
#include "ops/view/view.h"
#include "tape/forward.h"

enum { CONV_NUMBERS = sizeof(Conv) / sizeof(int64_t) };

/* ------------------------------------------------------------ the three maps */

/* Sizes (first, second, last nd of three). */
static Tensor *empty_of_sizes(const Conv *c, int64_t first, int64_t second, const int64_t space[3],
                              DType d) {
  int64_t sizes[5] = {first, second};
  for (int i = 0; i < c->nd; i++) sizes[2 + i] = space[3 - c->nd + i];
  return tensor_empty((int)c->nd + 2, sizes, d);
}

static bool plain_operands(Tensor **a, Tensor **b, Tensor **bias) {
  if (failed() || !*a || !*b) return false;
  WITHOUT_GRAD_BLOCK {
    *a = t_contiguous(*a);
    *b = t_contiguous(*b);
    if (*bias) *bias = t_contiguous(*bias);
  }
  return !failed();
}

static Tensor *plain_forward(const Conv *c, Tensor *x, Tensor *w, Tensor *bias) {
  if (!plain_operands(&x, &w, &bias)) return NULL;
  Tensor *y = empty_of_sizes(c, c->samples, c->out_channels, c->out, tensor_dtype(x));
  const char *b = bias ? tensor_data(bias) : NULL;
  if (y && tensor_absent(y)) return y;
  return y && conv_forward(c, tensor_dtype(x), tensor_data(x), tensor_data(w), b, tensor_data(y))
             ? y
             : NULL;
}

static Tensor *plain_data(const Conv *c, Tensor *g, Tensor *w, Tensor *bias) {
  if (!plain_operands(&g, &w, &bias)) return NULL;
  Tensor *x = empty_of_sizes(c, c->samples, c->in_channels, c->in, tensor_dtype(g));
  const char *b = bias ? tensor_data(bias) : NULL;
  if (x && tensor_absent(x)) return x;
  return x && conv_data(c, tensor_dtype(g), tensor_data(g), tensor_data(w), b, tensor_data(x))
             ? x
             : NULL;
}

static Tensor *plain_weights(const Conv *c, Tensor *x, Tensor *g) {
  Tensor *none = NULL;
  if (!plain_operands(&x, &g, &none)) return NULL;
  Tensor *w = empty_of_sizes(c, c->out_channels, c->in_channels / c->groups, c->kernel,
                             tensor_dtype(x));
  if (w && tensor_absent(w)) return w;
  return w && conv_weights(c, tensor_dtype(x), tensor_data(x), tensor_data(g), tensor_data(w))
             ? w
             : NULL;
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

/* y = w * x + b: dx = the transposed convolution of g, dw = the correlation of x and g, db = sum
 * g. mask: which of them are wanted. */
static void convolution_gradients(const Conv *c, Tensor *g, Tensor *input, Tensor *w, Bools mask,
                                  Tensor **out) {
  Conv other = *c;
  other.transposed = !c->transposed;
  if (mask.v[0]) out[0] = convolve(&other, g, w, NULL);
  if (mask.v[1]) out[1] = c->transposed ? weights(c, g, input) : weights(c, input, g);
  if (mask.v[2]) out[2] = t_sum(g, all_but_channels(c), false, DT_NONE);
}

/* The same as PyTorch's op. */
static void convolution_backward(const Conv *c, Tensor *g, Tensor *input, Tensor *w, Bools mask,
                                 Tensor **out) {
  const int first = 3 - (int)c->nd, nd = (int)c->nd;
  Ints stride = {nd, c->stride + first}, padding = {nd, c->padding + first},
       dilation = {nd, c->dilation + first}, more = {nd, c->output_padding + first},
       bias_sizes = {1, &c->bias};
  const bool transposed = c->transposed;
  const int64_t groups = c->groups;
  OP_ENTERED_AS(convolution_backward(c, g, input, w, mask, out), "convolution_backward", g, input,
                w, bias_sizes, stride, padding, dilation, transposed, more, groups, mask, out);
  convolution_gradients(c, g, input, w, mask, out);
}

GRAD_AND_TANGENT(ConvolutionBackward0, "input weight | -:int groups:int transposed:bool -:ints9 "
                                       "-:ints4 stride:window padding:window dilation:window "
                                       "output_padding:window bias_sym_sizes_opt:ints1") {
  Conv c = noted_conv(n);
  const int64_t wanted[3] = {needs(n, 0), needs(n, 1), needs(n, 2)};
  (gradient_is_recorded() ? convolution_gradients : convolution_backward)(
      &c, g[0], saved_tensor(n, 0), saved_tensor(n, 1), (Bools){3, wanted}, gi);
}
/* The transpose of the gradient would multiply zeros by infinities. */
TANGENT(ConvolutionBackward0) {
  Conv c = noted_conv(n);
  Tensor *of_input = t[0] ? convolve(&c, t[0], saved_tensor(n, 1), t[2]) : NULL;
  Tensor *of_weight = t[1] ? convolve(&c, saved_tensor(n, 0), t[1], t[0] ? NULL : t[2]) : NULL;
  if (of_input && of_weight) return t_add(of_input, of_weight);
  if (of_input || of_weight) return of_input ? of_input : of_weight;
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < y->ndim; i++) sizes[i] = i == 1 ? y->sizes[1] : 1;
  return t_expand(t_reshape(t[2], y->ndim, sizes), y->ndim, y->sizes);
}

/* The map of c: of its x or, transposed, of its y. */
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

/* dw = weights(x, g). For h at dw: dx = data(g, h), dg = forward(x, h). */
GRAD(ConvolutionBackwardBackward0, "input grad_output")
{
  Conv forward = noted_conv(n), data;
  forward.transposed = 0;
  data = forward;
  data.transposed = 1;
  if (needs(n, 0)) gi[0] = convolve(&data, saved_tensor(n, 1), g[0], NULL);
  if (needs(n, 1)) gi[1] = convolve(&forward, saved_tensor(n, 0), g[0], NULL);
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

/* Spreads a list of one or nd numbers over the last nd of three; the others get `rest`. */
static bool spread(Ints v, int64_t nd, int64_t rest, const char *name, int64_t out[3]) {
  if (v.n != 1 && v.n != nd) {
    fail(ERR_RUNTIME,
         "expected %s to be a single integer value or a list of %d values to match the convolution "
         "dimensions, but got %s=%s",
         name, (int)nd, name, sizes_text(v.n, v.v));
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
    if ((c->padding[i] | c->stride[i] | c->dilation[i]) > INT32_MAX)
      fail(ERR_RUNTIME, "stride, padding and dilation must be less than 2147483648");
  }
  if (c->groups <= 0) fail(ERR_RUNTIME, "non-positive groups is not supported");
  return !failed();
}

static bool check_bias_type(const Tensor *x, const Tensor *bias) {
  if (bias && bias->dtype != x->dtype)
    fail(ERR_RUNTIME, "Input type (%s) and bias type (%s) should be the same",
         dtype_c_name(tensor_dtype(x)), dtype_c_name(tensor_dtype(bias)));
  return !failed();
}

static bool check_types(Tensor *x, Tensor *w) {
  if (x->dtype == DT_F32 && w->dtype != DT_F32)
    fail(ERR_RUNTIME,
         "Input type (torch.%sTensor) and weight type (torch.%sTensor) should be the same or input "
         "should be a MKLDNN tensor and weight is a dense tensor",
         legacy(x), legacy(w));
  else if (x->dtype != w->dtype)
    fail(ERR_RUNTIME, "expected scalar type %s but found %s", legacy(x), legacy(w));
  else if (x->dtype == DT_BOOL) dtype_no_kernel("slow_conv2d_cpu", tensor_dtype(x));
  return !failed();
}

/* Among integers, only int64 has these kernels in PyTorch. */
static bool check_whole(const Tensor *x, const char *kernel) {
  return dtype_is_inexact(tensor_dtype(x)) || x->dtype == DT_I64 ||
         dtype_no_kernel(kernel, tensor_dtype(x));
}

static bool check_bias(Tensor *w, Tensor *bias, int64_t channels, bool transposed) {
  if (!bias || (bias->ndim == 1 && bias->numel == channels)) return true;
  fail(ERR_RUNTIME,
       "Given %sweight of size %s, expected bias to be 1-dimensional with %lld elements, but got "
       "bias of size %s instead",
       transposed ? "transposed=1, " : "", shape_text(w), (Shown)channels, shape_text(bias));
  return false;
}

static bool check_forward(const Conv *c, Tensor *x, Tensor *w, Tensor *bias) {
  int64_t g = c->groups;
  if (w->sizes[0] < g)
    fail(ERR_RUNTIME,
         "Given groups=%lld, expected weight to be at least %lld at dimension 0, but got weight of "
         "size %s instead",
         (Shown)g, (Shown)g, shape_text(w));
  else if (w->sizes[0] % g)
    fail(ERR_RUNTIME,
         "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got "
         "weight of size [%s] instead",
         (Shown)g, (Shown)g, shape_text(w));
  else if (x->sizes[1] != w->sizes[1] * g)
    fail(ERR_RUNTIME,
         "Given groups=%lld, weight of size %s, expected input%s to have %lld channels, but got "
         "%lld channels instead",
         (Shown)g, shape_text(w), shape_text(x), (Shown)(w->sizes[1] * g), (Shown)x->sizes[1]);
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

/* Whether the bytes of every box can be counted. Its cells are among those of the padded `in`. */
static bool countable(const Conv *c) {
  int64_t sizes[5] = {c->in_channels + c->out_channels + 1, 64};
  for (int i = 0; i < 3; i++) sizes[2 + i] = c->in[i] + 2 * c->padding[i];
  return !failed() && sizes_numel(5, sizes) >= 0;
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
    fail(ERR_RUNTIME,
         "Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel size can't be "
         "greater than actual input size",
         times_text(c->nd, padded), times_text(c->nd, span));
  }
  return countable(c);
}

/* The input with a batch dimension, which is added if it is missing. */
static Tensor *add_batch_dim(Tensor *x, int64_t nd, const char *op) {
  if (x->ndim == nd + 2) return x;
  if (x->ndim == nd + 1) return t_unsqueeze(x, 0);
  return fail(ERR_RUNTIME,
              "Expected %dD (unbatched) or %dD (batched) input to %s%dd, but got input of size: %s",
              (int)nd + 1, (int)nd + 2, op, (int)nd, shape_text(x));
}

/* Sets up c but for the sizes on both sides: `in` is x's, or that of the output of a transposed
 * convolution. */
static bool conv_make(Conv *c, Tensor *w, int64_t nd, Ints stride, Ints padding, Ints dilation,
                      int64_t groups) {
  *c = (Conv){.groups = groups, .nd = nd};
  if (w->ndim != nd + 2) { /* torch counts dimensions by the weight */
    int64_t two[3];
    for (int i = 0; i < nd; i++) two[i] = stride.v[stride.n == 1 ? 0 : i];
    fail(ERR_RUNTIME,
         "expected stride to be a single integer value or a list of %d values to match the "
         "convolution dimensions, but got stride=%s",
         w->ndim - 2, sizes_text((int)nd, two));
    return false;
  }
  for (int i = 0; i < 3; i++) c->kernel[i] = i < 3 - nd ? 1 : w->sizes[2 + i - (3 - nd)];
  return spread(stride, nd, 1, "stride", c->stride) &&
         spread(padding, nd, 0, "padding", c->padding) &&
         spread(dilation, nd, 1, "dilation", c->dilation) && check_ranges(c);
}

/* Convolves the types that check_types allows. Small integers wrap around in their own type. */
static Tensor *convolve_any(const Conv *c, Tensor *x, Tensor *w, Tensor *bias) {
  IN_FLOAT(convolve_any(c, x, w, bias), x, w, bias);
  DType d = tensor_dtype(x);
  if (dtype_is_complex(d)) { /* by parts */
    Tensor *re = t_real(x), *im = t_imag(x), *w_re = t_real(w), *w_im = t_imag(w);
    Tensor *b_re = bias ? t_real(bias) : NULL, *b_im = bias ? t_imag(bias) : NULL;
    if (failed()) return NULL;
    return t_complex(t_sub(convolve(c, re, w_re, b_re), convolve(c, im, w_im, NULL)),
                     t_add(convolve(c, re, w_im, b_im), convolve(c, im, w_re, NULL)));
  }
  if (dtype_is_float(d)) return convolve(c, x, w, bias);
  return t_to(convolve(c, t_to(x, DT_I64), t_to(w, DT_I64), bias ? t_to(bias, DT_I64) : NULL), d);
}

static Tensor *drop_batch_dim(Tensor *y, bool was_batched) {
  return was_batched ? y : t_squeeze_dim(y, 0);
}

/* Sets up c for a batch x. */
static bool conv_fit(Conv *c, Tensor *x, Tensor *w, Tensor *bias, int nd, Ints stride, Ints padding,
                     Ints dilation, int64_t groups) {
  if (!x || !conv_make(c, w, nd, stride, padding, dilation, groups) ||
      !check_forward(c, x, w, bias))
    return false;
  c->samples = x->sizes[0], c->in_channels = x->sizes[1], c->out_channels = w->sizes[0];
  for (int i = 0; i < 3; i++) c->in[i] = i < 3 - nd ? 1 : x->sizes[2 + i - (3 - nd)];
  return fit_forward(c) && check_bias_type(x, bias) && check_types(x, w);
}

Tensor *t_conv(Tensor *input, Tensor *w, Tensor *bias, int nd, Ints stride, Ints padding,
               Ints dilation, int64_t groups) {
  OP_ENTERED(t_conv, "convolution", input, w, bias, nd, stride, padding, dilation, groups);
  if (blocked(input, w)) return NULL;
  Conv c;
  Tensor *x = add_batch_dim(input, nd, "conv");
  if (!conv_fit(&c, x, w, bias, nd, stride, padding, dilation, groups)) return NULL;
  if (c.dilation[0] * c.dilation[1] * c.dilation[2] > 1 && !check_whole(x, "slow_conv_dilated<>"))
    return NULL;
  return drop_batch_dim(convolve_any(&c, x, w, bias), x == input);
}

/* Padding by name. "same" may need one zero more at the end than at the start; those are put
 * there first. */
Tensor *t_conv_named(Tensor *x, Tensor *w, Tensor *bias, int nd, Ints stride, const char *padding,
                     Ints dilation, int64_t groups) {
  if (blocked(x, w)) return NULL;
  int64_t sides[3] = {0}, more[6] = {0};
  bool same = strcmp(padding, "same") == 0, uneven = false;
  if (!same && strcmp(padding, "valid") != 0)
    return fail(ERR_RUNTIME, "Invalid padding string: '%s'", padding);
  for (int i = 0; same && i < stride.n; i++)
    if (stride.v[i] != 1)
      return fail(ERR_RUNTIME, "padding='same' is not supported for strided convolutions");
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

static bool check_transposed(const Conv *c, Tensor *x, Tensor *w, Tensor *bias,
                             const int64_t output_padding[3]) {
  bool too_much = false;
  for (int i = 0; i < 3; i++) {
    if (output_padding[i] < 0) fail(ERR_RUNTIME, "negative output_padding is not supported");
    too_much = too_much ||
               (output_padding[i] >= c->stride[i] && output_padding[i] >= c->dilation[i]);
  }
  if (x->sizes[1] != w->sizes[0])
    fail(ERR_RUNTIME,
         "Given transposed=1, weight of size %s, expected input%s to have %lld channels, but got "
         "%lld channels instead",
         shape_text(w), shape_text(x), (Shown)w->sizes[0], (Shown)x->sizes[1]);
  else if (x->sizes[1] % c->groups)
    fail(ERR_RUNTIME,
         "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got "
         "weight of size [%s] instead",
         (Shown)c->groups, (Shown)c->groups, shape_text(w));
  if (failed() || !check_bias(w, bias, w->sizes[1] * c->groups, true)) return false;
  if (too_much)
    fail(ERR_RUNTIME,
         "output padding must be smaller than either stride or dilation, but got "
         "output_padding_height: %lld output_padding_width: %lld stride_height: %lld stride_width: "
         "%lld dilation_height: %lld dilation_width: %lld",
         (Shown)output_padding[1], (Shown)output_padding[2], (Shown)c->stride[1],
         (Shown)c->stride[2], (Shown)c->dilation[1], (Shown)c->dilation[2]);
  return !failed();
}

/* Sets up c for a batch x. */
static bool transposed_fit(Conv *c, Tensor *x, Tensor *w, Tensor *bias, int nd, Ints stride,
                           Ints padding, Ints output_padding, int64_t groups, Ints dilation) {
  int64_t *extra = c->output_padding;
  if (!x || !conv_make(c, w, nd, stride, padding, dilation, groups) ||
      !spread(output_padding, nd, 0, "output_padding", extra) ||
      !check_transposed(c, x, w, bias, extra) || !check_types(x, w) || !check_bias_type(x, bias) ||
      !check_whole(x, nd == 3 ? "slow_conv_transpose3d_out_cpu" : "slow_conv_transpose2d_out_cpu"))
    return false;
  bool small = false;
  c->transposed = 1;
  c->samples = x->sizes[0], c->out_channels = x->sizes[1], c->in_channels = w->sizes[1] * groups;
  for (int i = 0; i < 3; i++) {
    c->out[i] = i < 3 - nd ? 1 : x->sizes[2 + i - (3 - nd)];
    c->in[i] = (c->out[i] - 1) * c->stride[i] - 2 * c->padding[i] +
               c->dilation[i] * (c->kernel[i] - 1) + extra[i] + 1;
    small = small || c->in[i] <= 0;
  }
  if (small)
    fail(ERR_RUNTIME,
         "Given input size per channel: (%s). Calculated output size per channel: (%s). "
         "Output size is too small",
         times_text(nd, c->out), times_text(nd, c->in));
  return !failed() && countable(c);
}

Tensor *t_conv_transpose(Tensor *input, Tensor *w, Tensor *bias, int nd, Ints stride, Ints padding,
                         Ints output_padding, int64_t groups, Ints dilation) {
  OP_ENTERED(t_conv_transpose, "convolution", input, w, bias, nd, stride, padding, output_padding,
             groups, dilation);
  if (blocked(input, w)) return NULL;
  Conv c;
  Tensor *x = add_batch_dim(input, nd, "conv_transpose");
  return transposed_fit(&c, x, w, bias, nd, stride, padding, output_padding, groups, dilation)
             ? drop_batch_dim(convolve_any(&c, x, w, bias), x == input)
             : NULL;
}

/* ------------------------------------------------------------ of any number of dimensions */

static bool check_same_dims(const Tensor *x, const Tensor *w) {
  if (w->ndim < 3) fail(ERR_RUNTIME, "weight should have at least three dimensions");
  else if (x->ndim != w->ndim)
    fail(ERR_RUNTIME,
         "Expected %d-dimensional input for %d-dimensional weight %s, but got %d-dimensional input "
         "of size %s instead",
         w->ndim, w->ndim, shape_text(w), x->ndim, shape_text(x));
  else if (w->ndim > 5) fail(ERR_RUNTIME, "unsupported ConvNd parameters");
  return !failed();
}

/* Has no door of its own: the functions below it enter as "convolution". */
Tensor *t_conv_of_weight(Tensor *x, Tensor *w, Tensor *bias, Ints stride, Ints padding,
                         Ints dilation, bool transposed, Ints output_padding, int64_t groups) {
  if (blocked(x, w) || !check_same_dims(x, w)) return NULL;
  const int nd = w->ndim - 2;
  int64_t unused[3];
  if (!spread(output_padding, nd, 0, "output_padding", unused)) return NULL;
  return transposed
             ? t_conv_transpose(x, w, bias, nd, stride, padding, output_padding, groups, dilation)
             : t_conv(x, w, bias, nd, stride, padding, dilation, groups);
}

/* Whether g has the shape of the result of c, and the type of x. */
static bool check_convolved(const Conv *c, const Tensor *g, const Tensor *x) {
  const int64_t *space = (c->transposed ? c->in : c->out) + 3 - c->nd;
  int64_t sizes[5] = {c->samples, c->transposed ? c->in_channels : c->out_channels};
  for (int i = 0; i < c->nd; i++) sizes[2 + i] = space[i];
  if (!sizes_equal(g->ndim, g->sizes, (int)c->nd + 2, sizes))
    fail(ERR_RUNTIME, "convolution_backward: the gradient has shape %s instead of %s",
         shape_text(g), sizes_text((int)c->nd + 2, sizes));
  else if (g->dtype != x->dtype)
    fail(ERR_RUNTIME, "expected scalar type %s but found %s", legacy(x), legacy(g));
  else dtype_check_float_kernel("convolution_backward", tensor_dtype(x));
  return !failed();
}

/* bias_sizes.n < 0: there is no bias. */
void t_convolution_gradients(Tensor *g, Tensor *x, Tensor *w, Ints bias_sizes, Ints stride,
                             Ints padding, Ints dilation, bool transposed, Ints output_padding,
                             int64_t groups, Bools mask, Tensor *out[3]) {
  for (int i = 0; i < 3; i++) out[i] = NULL;
  IN_FLOAT_OUT(3, out,
               t_convolution_gradients(g, x, w, bias_sizes, stride, padding, dilation, transposed,
                                       output_padding, groups, mask, out),
               g, x, w)
  if (blocked(g, x, w) || !check_same_dims(x, w)) return;
  const int nd = w->ndim - 2;
  Conv c;
  if (mask.n != 3) fail(ERR_RUNTIME, "expected output_mask to have 3 elements, but got %d", mask.n);
  if (failed() || !(transposed ? transposed_fit(&c, x, w, NULL, nd, stride, padding, output_padding,
                                                groups, dilation)
                               : conv_fit(&c, x, w, NULL, nd, stride, padding, dilation, groups)))
    return;
  c.bias = bias_sizes.n > 0 ? bias_sizes.v[0] : 0;
  if (check_convolved(&c, g, x)) convolution_backward(&c, g, x, w, mask, out);
}

/* Permute time, batch, channels to batch, channels, time, and back; and a kernel (width, in, out)
 * to (out, in, width). */
static Tensor *time_last(Tensor *x) { return t_permute(x, (Ints){3, (int64_t[]){1, 2, 0}}); }
static Tensor *time_first(Tensor *x) { return t_permute(x, (Ints){3, (int64_t[]){2, 0, 1}}); }
static Tensor *turned_over(Tensor *w) { return t_permute(w, (Ints){3, (int64_t[]){2, 1, 0}}); }

static const int64_t step_of_one = 1, no_step = 0;
#define STEP ((Ints){1, &step_of_one})

static Tensor *conv_time(Tensor *x, Tensor *w, Tensor *bias, int64_t pad) {
  return t_conv(x, w, bias, 1, STEP, (Ints){1, &pad}, STEP, 1);
}

/* x' is the transposed convolution of g. w' sums over time and batch: it is the convolution of x,
 * with channels as samples, by g. */
GRAD(ConvTbcBackward0, "self weight bias | pad:int")
{
  Tensor *x = saved_tensor(n, 0), *w = saved_tensor(n, 1);
  int64_t pad = n->numbers[0].i;
  if (needs(n, 0))
    gi[0] = time_first(t_conv_transpose(time_last(g[0]), turned_over(w), NULL, 1, STEP,
                                        (Ints){1, &pad}, (Ints){1, &no_step}, 1, STEP));
  if (needs(n, 1)) gi[1] = time_first(conv_time(turned_over(x), turned_over(g[0]), NULL, pad));
  if (needs(n, 2)) gi[2] = t_sum(g[0], (Ints){2, (int64_t[]){0, 1}}, false, DT_NONE);
}

/* A convolution along time, the first of the dimensions time, batch, channels. */
Tensor *t_conv_tbc(Tensor *x, Tensor *w, Tensor *bias, int64_t pad) {
  OP_ENTERED(t_conv_tbc, "conv_tbc", x, w, bias, pad);
  if (blocked(x, w) || !bias) return NULL;
  const char *wrong = NULL;
  if (x->ndim != 3) wrong = "Input must have 3 dims: time, batch, in_channel";
  else if (w->ndim != 3)
    wrong = "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.";
  else if (bias->ndim != 1) wrong = "Bias must be 1-D";
  else if (x->sizes[2] != w->sizes[1])
    wrong = "Input dim 2 (input channels) is not == dim 1 in the weight tensor";
  else if (bias->sizes[0] != w->sizes[2])
    wrong = "Bias size must equal dim 2 in the weight tensor (output channels).";
  if (wrong) return fail(ERR_RUNTIME, "%s", wrong);
  Node *n = node_new(&ConvTbcBackward0, 3, 1, x, w, bias, NULL);
  save(n, 0, x);
  save(n, 1, w);
  save(n, 2, bias);
  num_i(n, 0, pad);
  Tensor *y = WITHOUT_GRAD(conv_time(time_last(x), turned_over(w), bias, pad));
  return set_history(WITHOUT_GRAD(t_contiguous(time_first(y))), n);
}

/* ------------------------------------------------------------ unfold, fold */

static Tensor *unfold_op(const Conv *c, Tensor *x);
static Tensor *fold_op(const Conv *c, Tensor *windows);
/* Two dimensions of three. */
#define PAIR(v) ((Ints){2, (v) + 1})
#define WINDOW_FIELDS "kernel_size:window -:ints3 stride:window padding:window dilation:window"
GRAD(Im2ColBackward0,
     "| -:ints8 self_sym_argsize_minus_2:int self_sym_argsize_minus_1:int " WINDOW_FIELDS)
{
  Conv c = noted_conv(n);
  gi[0] = gradient_is_asked() ? t_fold_patches(g[0], PAIR(c.in), PAIR(c.kernel), PAIR(c.dilation),
                                               PAIR(c.padding), PAIR(c.stride))
                              : fold_op(&c, g[0]);
}
GRAD(Col2ImBackward0, "| -:ints9 -:ints1 " WINDOW_FIELDS)
{
  Conv c = noted_conv(n);
  gi[0] = gradient_is_asked() ? t_unfold_patches(g[0], PAIR(c.kernel), PAIR(c.dilation),
                                                 PAIR(c.padding), PAIR(c.stride))
                              : unfold_op(&c, g[0]);
}

static Tensor *unfold_op(const Conv *c, Tensor *x) {
  IN_FLOAT(unfold_op(c, x), x);
  if (blocked(x)) return NULL;
  Node *n = node_new(&Im2ColBackward0, 0, CONV_NUMBERS, x, NULL);
  note_conv(n, c);
  int64_t sizes[3] = {c->samples, patch_size(c), volume(c->out)};
  x = t_contiguous(t_detach(x));
  Tensor *y = failed() ? NULL
                       : tensor_empty(c->unbatched ? 2 : 3, sizes + c->unbatched, tensor_dtype(x));
  if (y && !tensor_absent(y))
    conv_patches(c, tensor_dtype(x), tensor_data(x), tensor_data(y), false);
  return set_history(y, n);
}

static Tensor *fold_op(const Conv *c, Tensor *windows) {
  IN_FLOAT(fold_op(c, windows), windows);
  if (blocked(windows)) return NULL;
  Node *n = node_new(&Col2ImBackward0, 0, CONV_NUMBERS, windows, NULL);
  note_conv(n, c);
  int64_t sizes[4] = {c->samples, c->in_channels, c->in[1], c->in[2]};
  windows = t_contiguous(t_detach(windows));
  Tensor *x = failed()
                  ? NULL
                  : tensor_zeros(c->unbatched ? 3 : 4, sizes + c->unbatched, tensor_dtype(windows));
  if (x && !tensor_absent(x))
    conv_patches(c, tensor_dtype(x), tensor_data(x), tensor_data(windows), true);
  return set_history(x, n);
}

static bool pair(Ints v, const char *name, int64_t out[3], int64_t rest) {
  out[0] = rest;
  if (v.n != 1 && v.n != 2)
    fail(ERR_RUNTIME, "It is expected %s equals to 2, but got size %d", name, v.n);
  for (int i = 0; i < 2 && !failed(); i++) out[1 + i] = v.v[v.n == 1 ? 0 : i];
  return !failed();
}

static bool check_above_zero(const int64_t v[3], const char *what, const char *name) {
  if (v[1] > 0 && v[2] > 0) return true;
  fail(ERR_RUNTIME, "%s should be greater than zero, but got %s_height: %lld %s_width: %lld", what,
       name, (Shown)v[1], name, (Shown)v[2]);
  return false;
}

static bool window_make(Conv *c, Ints kernel, Ints dilation, Ints padding, Ints stride) {
  *c = (Conv){.groups = 1, .nd = 2};
  c->in[0] = c->out[0] = 1;
  if (!pair(kernel, "kernel_size", c->kernel, 1) || !pair(dilation, "dilation", c->dilation, 1) ||
      !pair(padding, "padding", c->padding, 0) || !pair(stride, "stride", c->stride, 1))
    return false;
  if (!check_above_zero(c->kernel, "kernel size", "kernel") ||
      !check_above_zero(c->dilation, "dilation", "dilation") ||
      !check_above_zero(c->stride, "stride", "stride"))
    return false;
  if (c->padding[1] < 0 || c->padding[2] < 0)
    fail(ERR_RUNTIME, "padding should be non-negative, but got pad_height: %lld pad_width: %lld",
         (Shown)c->padding[1], (Shown)c->padding[2]);
  return !failed();
}

static void window_count(Conv *c) {
  for (int i = 1; i < 3; i++) {
    int64_t free = c->in[i] + 2 * c->padding[i] - c->dilation[i] * (c->kernel[i] - 1) - 1;
    c->out[i] = free < 0 ? -((-free + c->stride[i] - 1) / c->stride[i]) + 1
                         : free / c->stride[i] + 1;
  }
}

static bool check_window_dtype(const Tensor *x, const char *op) {
  return dtype_is_inexact(tensor_dtype(x)) || x->dtype == DT_BOOL ||
         dtype_no_kernel(op, tensor_dtype(x));
}

/* Bools go through floats: a sum of them is true unless all are false. Complex numbers go by
 * parts. */
static Tensor *run_window_op(Tensor *op(const Conv *c, Tensor *x), const Conv *c, Tensor *x) {
  if (dtype_is_complex(tensor_dtype(x))) return t_complex(op(c, t_real(x)), op(c, t_imag(x)));
  return x->dtype == DT_BOOL ? t_to(op(c, t_to(x, DT_F32)), DT_BOOL) : op(c, x);
}

/* Whether one of the last n dimensions has no elements. */
static bool empty_below_batch(const Tensor *x, int n) {
  bool empty = false;
  for (int i = x->ndim - n; i < x->ndim; i++) empty = empty || x->sizes[i] == 0;
  return empty;
}

Tensor *t_unfold_patches(Tensor *x, Ints kernel, Ints dilation, Ints padding, Ints stride) {
  OP_ENTERED(t_unfold_patches, "im2col", x, kernel, dilation, padding, stride);
  if (blocked(x)) return NULL;
  Conv c;
  if (!window_make(&c, kernel, dilation, padding, stride) || tensor_size(x, 1) < 0 ||
      tensor_size(x, 2) < 0)
    return NULL;
  if ((x->ndim != 3 && x->ndim != 4) || empty_below_batch(x, 3))
    return fail(ERR_RUNTIME,
                "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other "
                "non-zero dimensions for input, but got: %s",
                shape_text(x));
  const int64_t *sizes = x->sizes + (x->ndim - 3);
  c.unbatched = x->ndim == 3;
  c.samples = c.unbatched ? 1 : x->sizes[0], c.in_channels = sizes[0], c.in[1] = sizes[1],
  c.in[2] = sizes[2];
  window_count(&c);
  if (c.out[1] < 1 || c.out[2] < 1)
    return fail(ERR_RUNTIME,
                "Given input with spatial size (%lld, %lld), kernel_size=(%lld, %lld), "
                "dilation=(%lld, %lld), padding=(%lld, %lld), calculated shape of the array of "
                "sliding blocks as (%lld, %lld), but its components must be at least one.",
                (Shown)c.in[1], (Shown)c.in[2], (Shown)c.kernel[1], (Shown)c.kernel[2],
                (Shown)c.dilation[1], (Shown)c.dilation[2], (Shown)c.padding[1],
                (Shown)c.padding[2], (Shown)c.out[1], (Shown)c.out[2]);
  if (sizes_numel(5, (int64_t[]){c.in_channels, c.kernel[1], c.kernel[2], c.out[1], c.out[2]}) < 0)
    return NULL;
  return check_window_dtype(x, "im2col_out_cpu") ? run_window_op(unfold_op, &c, x) : NULL;
}

Tensor *t_fold_patches(Tensor *x, Ints output_size, Ints kernel, Ints dilation, Ints padding,
                       Ints stride) {
  OP_ENTERED(t_fold_patches, "col2im", x, output_size, kernel, dilation, padding, stride);
  if (blocked(x)) return NULL;
  Conv c;
  if (!window_make(&c, kernel, dilation, padding, stride) ||
      !pair(output_size, "output_size", c.in, 1))
    return NULL;
  if ((x->ndim != 2 && x->ndim != 3) || empty_below_batch(x, 2))
    return fail(ERR_RUNTIME,
                "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
                "non-zero dimensions for input, but got: %s",
                shape_text(x));
  int64_t spots = volume(c.kernel), rows = x->sizes[x->ndim - 2], count = x->sizes[x->ndim - 1];
  /* spots may have overflowed if a side is longer */
  if (c.kernel[1] > rows || c.kernel[2] > rows || rows % spots)
    return fail(ERR_RUNTIME,
                "Expected size of input's dimension 1 to be divisible by the product of "
                "kernel_size, but got input.size(1)=%lld and kernel_size=(%lld, %lld).",
                (Shown)rows, (Shown)c.kernel[1], (Shown)c.kernel[2]);
  c.unbatched = x->ndim == 2;
  c.samples = c.unbatched ? 1 : x->sizes[0], c.in_channels = rows / spots;
  window_count(&c);
  if (c.out[1] * c.out[2] != count || c.out[1] < 1)
    return fail(
        ERR_RUNTIME,
        "Given output_size=(%lld, %lld), kernel_size=(%lld, %lld), dilation=(%lld, %lld), "
        "padding=(%lld, %lld), stride=(%lld, %lld), expected size of input's dimension 2 to match "
        "the calculated number of sliding blocks %lld * %lld = %lld, but got input.size(2)=%lld.",
        (Shown)c.in[1], (Shown)c.in[2], (Shown)c.kernel[1], (Shown)c.kernel[2],
        (Shown)c.dilation[1], (Shown)c.dilation[2], (Shown)c.padding[1], (Shown)c.padding[2],
        (Shown)c.stride[1], (Shown)c.stride[2], (Shown)c.out[1], (Shown)c.out[2],
        (Shown)(c.out[1] * c.out[2]), (Shown)count);
  return check_window_dtype(x, "col2im_out_cpu") ? run_window_op(fold_op, &c, x) : NULL;
}

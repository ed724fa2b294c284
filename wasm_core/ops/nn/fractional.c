/* Pooling by windows at random steps, which leaves a fraction of the places (Graham, 2014). */
#include "nn_rows.h"
#include "ops/create/create.h"
#include "ops/create/random.h"
#include "ops/nn/nn.h"
#include "ops/op.h"
#include "ops/view/view.h"

enum { MOST = 3 }; /* spatial dimensions */

/* Argument k for each dimension; a bare number stands for all. */
static bool each_dim(const Call *c, int nd, int k, const char *name, int64_t out[MOST]) {
  Ints given = arg_ints(c, k);
  if (c->v[k].tag == TAG_INTS && given.n != 1 && given.n != nd) {
    fail(ERR_RUNTIME, "fractional_max_pool%dd: %s must either be a single Int or tuple of %sInts",
         nd, name, nd == 3 ? "three " : "");
    return false;
  }
  for (int d = 0; d < nd && !failed(); d++) out[d] = given.v[given.n == nd ? d : 0];
  return !failed();
}

/* Reads the numbers of windows from argument 2, output_size, or 3, output_ratio. */
static bool windows_wanted(const Call *c, int nd, const Tensor *x, int64_t wanted[MOST]) {
  if (arg_given(c, 2)) return each_dim(c, nd, 2, "output_size", wanted);
  bool list = c->v[3].tag == TAG_FLOATS || c->v[3].tag == TAG_INTS;
  Floats ratio = list ? arg_floats(c, 3) : (Floats){0, NULL};
  if (!arg_given(c, 3))
    fail(ERR_VALUE,
         "fractional_max_pool%dd requires specifying either an output_size or an output_ratio", nd);
  else if (list && nd == 2 && ratio.n != 2)
    fail(ERR_VALUE,
         "fractional_max_pool2d requires output_ratio to either be a single Int or tuple of Ints.");
  else if (list && ratio.n < nd) fail(ERR_INDEX, "tuple index out of range");
  for (int d = 0; d < nd && !failed(); d++) {
    int64_t size = tensor_size(x, d - nd);
    wanted[d] = (int64_t)((double)size * (list ? ratio.v[d] : arg_float(c, 3)));
  }
  return !failed();
}

static bool check_samples(const Tensor *samples, int nd, const Tensor *x, int64_t batch) {
  if (samples->dtype != x->dtype)
    fail(ERR_RUNTIME, "Expect _random_samples to have the same dtype as input");
  else if (samples->ndim != 3)
    fail(ERR_RUNTIME, "Expect _random_samples to have 3 dimensions, got %d", samples->ndim);
  else if (samples->sizes[0] < batch)
    fail(ERR_RUNTIME, "Expect _random_samples.size(0) no less then input batch size.");
  else if (samples->sizes[1] != x->sizes[x->ndim - nd - 1])
    fail(ERR_RUNTIME, "Expect _random_samples.size(1) equals to input channel size.");
  else if (samples->sizes[2] != nd)
    fail(ERR_RUNTIME, "Expect _random_samples.size(2) equals to %d; got %lld.", nd,
         (Shown)samples->sizes[2]);
  return !failed();
}

/* The functions named in errors, by the number of dimensions. */
static const char *const refusing[] = {[2] = "fractional_max_pool2d()",
                                       [3] = "fractional_max_pool3d_out()"};

static bool check_rank(const Tensor *x, int nd) {
  if (x->ndim == nd + 1 || x->ndim == nd + 2) return true;
  fail(ERR_RUNTIME, "%s: Expected %dD or %dD tensor, but got: %s", refusing[nd], nd + 1, nd + 2,
       shape_text(x));
  return false;
}

/* (N, C, nd) numbers from 0 to 1. */
static Tensor *drawn_samples(const Tensor *x, int nd) {
  int64_t batch = x->ndim == nd + 1 ? 1 : tensor_size(x, 0), planes[] = {batch, 0, nd};
  if (failed() || (planes[1] = tensor_size(x, -nd - 1)) < 0) return NULL;
  return random_uniform(tensor_empty(3, planes, tensor_dtype(x)), 0, 1, 0);
}

static bool check_windows(const Tensor *x, int nd, const int64_t *kernel, const int64_t *wanted) {
  static const struct {
    const char *name;
    int dim; /* from the last */
  } sides[][MOST] = {[2] = {{"height", 2}, {"width", 1}},
                     [3] = {{"time", 3}, {"width", 1}, {"height", 2}}};
  const char *loop = nd == 2 ? "fractional_max_pool2d_out_frame"
                             : "fractional_max_pool3d_out_frame";
  for (int d = x->ndim - nd - 1; d < x->ndim; d++)
    if (x->sizes[d] == 0)
      fail(ERR_RUNTIME,
           "%s: Expected input to have non-zero size for non-batch dimensions, but got%s with "
           "dimension %d being empty.",
           refusing[nd], shape_text(x), d);
  for (int i = 0; i < nd; i++) {
    int d = nd - sides[nd][i].dim;
    const char *side = sides[nd][i].name;
    int64_t size = x->sizes[x->ndim - nd + d];
    if (wanted[d] + kernel[d] - 1 > size - (nd == 3)) /* PyTorch is stricter with volumes */
      fail(ERR_RUNTIME, "%s: pool %s %lld too large relative to input %s %lld", refusing[nd], side,
           (Shown)kernel[d], side, (Shown)size);
  }
  return !failed() && dtype_check_float_kernel(loop, tensor_dtype(x));
}

static Tensor *range_of(int64_t n, DType dtype) {
  return t_arange(NULL, tensor_wrapped_i(n), NULL, dtype);
}

/* The elements of the windows along a dimension: (N, C) samples to (N, C, wanted, kernel)
 * places. */
static Tensor *window_places(Tensor *sample, int64_t size, int64_t kernel, int64_t wanted) {
  if (blocked(sample)) return NULL;
  int64_t sizes[] = {sample->sizes[0], sample->sizes[1], wanted < 1 ? wanted : 1};
  Tensor *begin = t_full((Ints){3, sizes}, tensor_wrapped_i(size - kernel), DT_I64);
  if (wanted > 1) {
    Tensor *step = tensor_number((double)(size - kernel) / (double)(wanted - 1),
                                 tensor_dtype(sample));
    Tensor *steps = t_add(range_of(wanted - 1, tensor_dtype(sample)), t_unsqueeze(sample, -1));
    Tensor *first = t_unsqueeze(t_to(t_mul(sample, step), DT_I64), -1);
    Tensor *random = t_sub(t_to(t_mul(steps, step), DT_I64), first);
    begin = t_cat((Tensors){2, (Tensor *[]){random, begin}}, -1);
  }
  return t_add(t_unsqueeze(begin, -1), range_of(kernel, DT_I64));
}

/* The places of all windows among the elements of a plane: (N, C, the windows of each dimension,
 * elements of a window). Planes of two dimensions have their samples in the order x, y. */
static Tensor *all_places(Tensor *samples, int nd, const Tensor *x, const int64_t *kernel,
                          const int64_t *wanted) {
  int32_t mark = pool_mark();
  int64_t step = 1, sizes[2 + 2 * MOST];
  Tensor *places = NULL;
  WITHOUT_GRAD_BLOCK for (int d = nd - 1; d >= 0 && !blocked(samples); d--) {
    int64_t size = x->sizes[x->ndim - nd + d];
    Tensor *sample = t_select(samples, -1, nd == 2 ? 1 - d : d);
    Tensor *along = window_places(sample, size, kernel[d], wanted[d]);
    for (int i = 0; i < 2 + 2 * nd; i++)
      sizes[i] = i < 2             ? samples->sizes[i]
                 : i == 2 + d      ? wanted[d]
                 : i == 2 + nd + d ? kernel[d]
                                   : 1;
    along = t_mul(t_reshape(along, 2 + 2 * nd, sizes), tensor_wrapped_i(step));
    places = places ? t_add(places, along) : along;
    step *= size;
  }
  places = t_flatten(places, 2 + nd, -1);
  pool_release(mark, places);
  return places;
}

/* g at the places of the maxima, zeros elsewhere. */
static Tensor *fractional_gradient(Node *n, Tensor *g, int nd) {
  Tensor *x = saved_tensor(n, 0), *places = saved_tensor(n, 1);
  if (blocked(g, x, places)) return NULL;
  Tensor *zeros = tensor_zeros(x->ndim, x->sizes, tensor_dtype(g));
  if (!x->numel) return zeros;
  Tensor *spread = t_scatter_add(t_flatten(zeros, -nd, -1), -1, t_flatten(places, -nd, -1),
                                 t_flatten(g, -nd, -1));
  return t_reshape(spread, x->ndim, x->sizes);
}
GRAD(FractionalMaxPool2DBackward0, "self result1 | kernel_size:ints2 output_size:ints2")
{ gi[0] = fractional_gradient(n, g[0], 2); }
GRAD(FractionalMaxPool3DBackward0, "self result1 | kernel_size:ints3 output_size:ints3")
{ gi[0] = fractional_gradient(n, g[0], 3); }

/* The maxima and their places, for a batch or for a single input that was made one. */
static void maxima(Tensor *x, Tensor *windows, int nd, Tensor *out[2]) {
  int64_t planes[] = {windows->sizes[0], windows->sizes[1], 1};
  for (int d = x->ndim - nd; d < x->ndim; d++) planes[2] *= x->sizes[d];
  Tensor *taken = t_gather(t_reshape(x, 3, planes), -1, t_flatten(windows, 2, -1)), *best[2];
  if (blocked(taken)) return;
  t_max_dim(t_reshape(taken, windows->ndim, windows->sizes), -1, false, best);
  out[0] = best[0];
  out[1] = t_squeeze_dim(t_gather(windows, -1, t_unsqueeze(best[1], -1)), -1);
  for (int k = 0; k < 2; k++) {
    Tensor *y = x->ndim == nd + 1 ? t_select(out[k], 0, 0) : out[k];
    out[k] = blocked(y)              ? NULL
             : y->form & FORM_HOSTED ? y
                                     : tensor_alias(y, y->ndim, y->sizes, y->strides, y->offset);
  }
}

/* Arguments: input, kernel_size, output_size, output_ratio, return_indices, _random_samples. */
static void fractional(Call *c, int nd, const char *op, Tensor *out[2]) {
  Tensor *x = arg_tensor(c, 0), *samples = arg_tensor(c, 5);
  int64_t kernel[MOST], wanted[MOST];
  out[0] = out[1] = NULL;
  if (blocked(x) || !each_dim(c, nd, 1, "kernel_size", kernel) || !windows_wanted(c, nd, x, wanted))
    return;
  if (!samples) samples = drawn_samples(x, nd);
  if (blocked(samples) || !nn_check_constant(op, "random_samples", samples) || !check_rank(x, nd))
    return;
  int64_t batch = x->ndim == nd + 2 ? x->sizes[0] : 1;
  if (!check_samples(samples, nd, x, batch) || !check_windows(x, nd, kernel, wanted)) return;
  Tensor *windows = all_places(t_slice(samples, 0, 0, batch, 1), nd, x, kernel, wanted);
  if (blocked(windows)) return;
  Node *n = node_new(nd == 2 ? &FractionalMaxPool2DBackward0 : &FractionalMaxPool3DBackward0, 2,
                     2 * nd, x, NULL);
  save(n, 0, x);
  for (int d = 0; d < nd; d++) {
    num_i(n, d, kernel[d]);
    num_i(n, nd + d, wanted[d]);
  }
  WITHOUT_GRAD(maxima(x, windows, nd, out));
  if (out[1]) save(n, 1, out[1]);
  out[0] = set_history(out[0], n);
}

void t_fractional_max_pool2d(Call *c, Tensor *out[2]) {
  OP_ENTERED(t_fractional_max_pool2d, "fractional_max_pool2d", c, out);
  fractional(c, 2, "fractional_max_pool2d", out);
}

void t_fractional_max_pool3d(Call *c, Tensor *out[2]) {
  OP_ENTERED(t_fractional_max_pool3d, "fractional_max_pool3d", c, out);
  fractional(c, 3, "fractional_max_pool3d", out);
}

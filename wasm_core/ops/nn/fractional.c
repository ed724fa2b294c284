/* Pooling by windows at random steps, of which a fraction of the places is left (Graham, 2014). */
#include "nn_rows.h"
#include "ops/create/create.h"
#include "ops/create/random.h"
#include "ops/nn/nn.h"
#include "ops/op.h"
#include "ops/view/view.h"

/* Two numbers of argument k, of which a bare one stands for both. */
static bool pair(const Call *c, int k, const char *name, int64_t out[2]) {
  Ints given = arg_ints(c, k);
  if (c->v[k].tag == TAG_INTS && given.n != 1 && given.n != 2) {
    fail(ERR_RUNTIME, "fractional_max_pool2d: %s must either be a single Int or tuple of Ints",
         name);
    return false;
  }
  for (int d = 0; d < 2 && !failed(); d++) out[d] = given.v[given.n == 2 ? d : 0];
  return !failed();
}

/* The number of windows by argument 2, output_size, or 3, output_ratio. */
static bool windows_wanted(const Call *c, const Tensor *x, int64_t wanted[2]) {
  if (arg_given(c, 2)) return pair(c, 2, "output_size", wanted);
  bool list = c->v[3].tag == TAG_FLOATS || c->v[3].tag == TAG_INTS;
  Floats ratio = list ? arg_floats(c, 3) : (Floats){0, NULL};
  if (!arg_given(c, 3))
    fail(ERR_VALUE,
         "fractional_max_pool2d requires specifying either an output_size or an output_ratio");
  else if (list && ratio.n != 2)
    fail(ERR_VALUE,
         "fractional_max_pool2d requires output_ratio to either be a single Int or tuple of Ints.");
  for (int d = 0; d < 2 && !failed(); d++) {
    int64_t size = tensor_size(x, d - 2);
    wanted[d] = (int64_t)((double)size * (list ? ratio.v[d] : arg_float(c, 3)));
  }
  return !failed();
}

static bool check_samples(const Tensor *samples, const Tensor *x, int64_t batch) {
  if (samples->dtype != x->dtype)
    fail(ERR_RUNTIME, "Expect _random_samples to have the same dtype as input");
  else if (samples->ndim != 3)
    fail(ERR_RUNTIME, "Expect _random_samples to have 3 dimensions, got %d", samples->ndim);
  else if (samples->sizes[0] < batch)
    fail(ERR_RUNTIME, "Expect _random_samples.size(0) no less then input batch size.");
  else if (samples->sizes[1] != x->sizes[x->ndim - 3])
    fail(ERR_RUNTIME, "Expect _random_samples.size(1) equals to input channel size.");
  else if (samples->sizes[2] != 2)
    fail(ERR_RUNTIME, "Expect _random_samples.size(2) equals to 2; got %lld.",
         (Shown)samples->sizes[2]);
  return !failed();
}

static bool check_rank(const Tensor *x) {
  if (x->ndim == 3 || x->ndim == 4) return true;
  fail(ERR_RUNTIME, "fractional_max_pool2d(): Expected 3D or 4D tensor, but got: %s",
       shape_text(x));
  return false;
}

/* (N, C, 2) numbers from 0 to 1. */
static Tensor *drawn_samples(const Tensor *x) {
  int64_t batch = x->ndim == 3 ? 1 : tensor_size(x, 0), planes[] = {batch, 0, 2};
  if (failed() || (planes[1] = tensor_size(x, -3)) < 0) return NULL;
  return random_uniform(tensor_empty(3, planes, tensor_dtype(x)), 0, 1, 0);
}

static bool check_windows(const Tensor *x, const int64_t kernel[2], const int64_t wanted[2]) {
  static const char *const sides[] = {"height", "width"};
  if (!check_float_kernel("fractional_max_pool2d_out_frame", tensor_dtype(x))) return false;
  for (int d = x->ndim - 3; d < x->ndim; d++)
    if (x->sizes[d] == 0)
      fail(ERR_RUNTIME,
           "fractional_max_pool2d(): Expected input to have non-zero size for non-batch "
           "dimensions, but got%s with dimension %d being empty.",
           shape_text(x), d);
  for (int d = 0; d < 2; d++) {
    int64_t size = x->sizes[x->ndim - 2 + d];
    if (wanted[d] + kernel[d] - 1 > size)
      fail(ERR_RUNTIME, "fractional_max_pool2d(): pool %s %lld too large relative to input %s %lld",
           sides[d], (Shown)kernel[d], sides[d], (Shown)size);
  }
  return !failed();
}

static Tensor *counted(int64_t n, DType dtype) {
  return t_arange(NULL, tensor_wrapped_i(n), NULL, dtype);
}

/* Where the windows lie along a dimension: (N, C) samples to (N, C, wanted, kernel) places. */
static Tensor *window_places(Tensor *sample, int64_t size, int64_t kernel, int64_t wanted) {
  if (blocked(sample)) return NULL;
  int64_t sizes[] = {sample->sizes[0], sample->sizes[1], wanted < 1 ? wanted : 1};
  Tensor *begin = t_full((Ints){3, sizes}, tensor_wrapped_i(size - kernel), DT_I64);
  if (wanted > 1) {
    double step = (double)(size - kernel) / (double)(wanted - 1);
    Tensor *steps = t_add(counted(wanted - 1, tensor_dtype(sample)), t_unsqueeze(sample, -1));
    Tensor *first = t_unsqueeze(t_to(t_mul_f(sample, step), DT_I64), -1);
    Tensor *random = t_sub(t_to(t_mul_f(steps, step), DT_I64), first);
    begin = t_cat((Tensors){2, (Tensor *[]){random, begin}}, -1);
  }
  return t_add(t_unsqueeze(begin, -1), counted(kernel, DT_I64));
}

/* The places of all windows, (N, C, rows, columns, kernel's), among the elements of a plane. */
static Tensor *all_places(Tensor *samples, const Tensor *x, const int64_t kernel[2],
                          const int64_t wanted[2]) {
  int64_t height = x->sizes[x->ndim - 2], width = x->sizes[x->ndim - 1];
  int32_t mark = pool_mark();
  Tensor *places = NULL;
  WITHOUT_GRAD_BLOCK {
    Tensor *rows = window_places(t_select(samples, -1, 1), height, kernel[0], wanted[0]);
    Tensor *columns = window_places(t_select(samples, -1, 0), width, kernel[1], wanted[1]);
    rows = t_mul(t_unsqueeze(t_unsqueeze(rows, 3), 5), tensor_wrapped_i(width));
    places = t_flatten(t_add(rows, t_unsqueeze(t_unsqueeze(columns, 2), 4)), -2, -1);
  }
  pool_release(mark, places);
  return places;
}

/* Arguments: input, kernel_size, output_size, output_ratio, return_indices, _random_samples. */
void t_fractional_max_pool2d(Call *c, Tensor *out[2]) {
  OP_ENTERED("fractional_max_pool2d", c, out);
  Tensor *x = arg_tensor(c, 0), *samples = arg_tensor(c, 5);
  int64_t kernel[2], wanted[2];
  out[0] = out[1] = NULL;
  if (blocked(x) || !pair(c, 1, "kernel_size", kernel) || !windows_wanted(c, x, wanted)) return;
  if (!samples) samples = drawn_samples(x);
  if (blocked(samples) || !check_constant("fractional_max_pool2d", "random_samples", samples))
    return;
  if (!check_rank(x)) return;
  int64_t planes[] = {x->ndim == 4 ? x->sizes[0] : 1, x->sizes[x->ndim - 3], 0};
  if (!check_samples(samples, x, planes[0])) return;
  if (!check_windows(x, kernel, wanted)) return;
  Tensor *windows = all_places(t_slice(samples, 0, 0, planes[0], 1), x, kernel, wanted);
  planes[2] = x->sizes[x->ndim - 2] * x->sizes[x->ndim - 1];
  Tensor *taken = t_gather(t_reshape(x, 3, planes), -1, t_flatten(windows, 2, -1));
  if (blocked(windows, taken)) return;
  Tensor *best[2];
  t_max_dim(t_reshape(taken, windows->ndim, windows->sizes), -1, false, best);
  out[0] = best[0];
  out[1] = t_squeeze_dim(t_gather(windows, -1, t_unsqueeze(best[1], -1)), -1);
  for (int k = 0; k < 2 && x->ndim == 3; k++) out[k] = t_select(out[k], 0, 0);
}

/* Normalisations that PyTorch composes of other ops: instance_norm, local_response_norm. */
#include <string.h>

#include "nn_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/nn.h"

/* (C) repeated for each sample. */
static Tensor *repeat_per_sample(Tensor *v, int64_t samples) {
  if (blocked(v)) return NULL;
  return t_reshape(t_expand(t_reshape(v, 2, (const int64_t[]){1, v->numel}), 2,
                            (const int64_t[]){samples, v->numel}),
                   1, (const int64_t[]){samples * v->numel});
}

/* Sets running statistics to the mean of their copies, each of which one sample moved. */
static void average_running(Tensor *running, Tensor *copies, int64_t samples) {
  if (blocked(running)) return;
  Tensor *mean = t_mean(t_reshape(copies, 2, (const int64_t[]){samples, running->numel}),
                        ONE_DIM(0), false, DT_NONE);
  if (mean && tensor_write_begin(running, false)) tensor_copy_data(running, mean);
}

Tensor *t_instance_norm(Tensor *x, Tensor *weight, Tensor *bias, Tensor *running_mean,
                        Tensor *running_var, bool use_input_stats, double momentum, double eps,
                        bool functional) {
  OP_ENTERED(t_instance_norm, "instance_norm", x, weight, bias, running_mean, running_var,
             use_input_stats, momentum, eps, functional);
  if (blocked(x)) return NULL;
  int64_t count = 1;
  for (int i = 2; i < x->ndim; i++) count *= x->sizes[i];
  if (functional && use_input_stats && count == 1)
    return fail(ERR_VALUE,
                "Expected more than 1 spatial element when training, got input size torch.Size(%s)",
                shape_text(x));
  if (!use_input_stats && !(running_mean && running_var))
    return fail(
        ERR_RUNTIME,
        "Expected running_mean and running_var to be defined when use_input_stats is false");
  if (tensor_size(x, 0) < 0 || tensor_size(x, 1) < 0) return NULL;
  int64_t samples = x->sizes[0], sizes[MAX_DIM];
  memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
  sizes[0] = 1;
  sizes[1] *= samples;
  Tensor *mean = NULL, *var = NULL;
  WITHOUT_GRAD_BLOCK {
    mean = running_mean ? t_clone(repeat_per_sample(running_mean, samples)) : NULL;
    var = running_var ? t_clone(repeat_per_sample(running_var, samples)) : NULL;
  }
  Tensor *y = t_batch_norm(t_reshape(x, x->ndim, sizes), repeat_per_sample(weight, samples),
                           repeat_per_sample(bias, samples), mean, var, use_input_stats, momentum,
                           eps);
  WITHOUT_GRAD_BLOCK {
    average_running(use_input_stats ? running_mean : NULL, mean, samples);
    average_running(use_input_stats ? running_var : NULL, var, samples);
  }
  return t_reshape(y, x->ndim, x->sizes);
}

/* x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta */
Tensor *t_local_response_norm(Tensor *x, int64_t size, double alpha, double beta, double k) {
  OP_ENTERED(t_local_response_norm, "local_response_norm", x, size, alpha, beta, k);
  if (blocked(x)) return NULL;
  if (x->ndim < 3)
    return fail(
        ERR_VALUE,
        "Expected 3D or higher dimensionality                          input (got %d dimensions)",
        x->ndim);
  if (x->numel == 0) return x;
  const int64_t around[4] = {0, 0, size / 2, (size - 1) / 2},
                flat[4] = {x->sizes[0], 1, x->sizes[1], -1};
  const int64_t window[2] = {size, 1}, one = 1, zero = 0;
  Tensor *squares = t_reshape(t_mul(x, x), 4, flat);
  squares = t_constant_pad(squares, (Ints){4, around}, tensor_wrapped_f(0));
  squares = t_avg_pool(squares, 2, (Ints){2, window}, (Ints){1, &one}, (Ints){1, &zero}, false,
                       true, NULL);
  Tensor *power = t_pow(t_add_f(t_mul_f(t_reshape(squares, x->ndim, x->sizes), alpha), k),
                        tensor_wrapped_f(beta));
  return t_div(x, power);
}

/* group_norm as in PyTorch's dispatcher, which also returns the statistics. shape: samples,
 * channels, places; out: normalized, means, one over the deviations. */
void t_native_group_norm(Tensor *x, Tensor *weight, Tensor *bias, const int64_t shape[3],
                         int64_t groups, double eps, Tensor *out[3]) {
  OP_ENTERED(t_native_group_norm, "native_group_norm", x, weight, bias, shape, groups, eps, out);
  Tensor *spread[2] = {NULL, NULL};
  out[0] = t_group_norm(x, groups, weight, bias, eps, false);
  if (blocked(out[0])) return;
  Tensor *parts = t_reshape(x, 3,
                            (const int64_t[]){shape[0], groups, shape[1] / groups * shape[2]});
  t_spread(SPREAD_VAR_MEAN, parts, ONE_DIM(-1), 0, false, spread);
  out[1] = spread[1];
  out[2] = t_rsqrt(t_add(spread[0], tensor_wrapped_f(eps)));
}

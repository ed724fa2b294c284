/* Activations with options, checks or structure of their own. Plain ones are rows of
 * ops/elementwise/elementwise.def. */
#include <string.h>

#include "elementwise_rows.h"
#include "ops/create/random.h"
#include "ops/elementwise/elementwise.h"
#include "tape/levels.h"

/* approximate: "none" or "tanh" */
Tensor *t_gelu(Tensor *x, const char *approximate) {
  OP_ENTERED(t_gelu, "gelu", x, approximate);
  if (blocked(x)) return NULL;
  if (strcmp(approximate, "none") == 0) return t_gelu_erf(x);
  if (strcmp(approximate, "tanh") == 0) return t_gelu_tanh(x);
  return fail(ERR_RUNTIME, "approximate argument must be either none or tanh.");
}

Tensor *t_selu(Tensor *x) {
  OP_ENTERED(t_selu, "selu", x);
  return t_elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
}

Tensor *t_celu_checked(Tensor *x, double alpha) {
  if (alpha == 0) return fail(ERR_RUNTIME, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return t_celu(x, alpha, 0, 0);
}

Tensor *t_hardtanh_checked(Tensor *x, double min, double max) {
  if (blocked(x)) return NULL;
  if (min > max) return fail(ERR_VALUE, "min_val cannot be greater than max_val");
  if (dtype_kind(tensor_dtype(x)) == KIND_INT) {
    if (!element_number_fits_f(min, DT_I64) || !element_number_fits_f(max, DT_I64)) return NULL;
    min = trunc(min);
    max = trunc(max);
  }
  if (x->dtype == DT_U8 && (min < 0 || max < 0))
    return fail(ERR_RUNTIME, "cannot do hardtanh on an unsigned type with negative limits");
  return t_hardtanh(x, min, max, 0);
}

Tensor *t_softshrink_checked(Tensor *x, double lambda) {
  if (blocked(x)) return NULL;
  double most = x->dtype == DT_F32 ? 3.40282346638528859812e38 : 1.79769313486231570815e308;
  if (dtype_is_float(tensor_dtype(x)) && !(lambda >= 0 && lambda <= most))
    return fail(ERR_RUNTIME, "lambda must be in range [0, %g] for input dtype %s, but found %g",
                most, legacy(x), lambda);
  return t_softshrink(x, lambda, 0, 0);
}

/* x / (1 + |x|) */
Tensor *t_softsign(Tensor *x) {
  OP_ENTERED(t_softsign, "softsign", x);
  return failed() || !x ? NULL : t_div(x, t_add(t_abs(x), tensor_wrapped_i(1)));
}

/* PyTorch's kernel gives the node exp(-|x|) too. */
Tensor *t_log_sigmoid(Tensor *x) {
  Tensor *y = t_logsigmoid(x);
  if (!y || !y->grad_fn) return y;
  WITHOUT_GRAD(save(y->grad_fn, 1, t_exp(t_neg(t_abs(x)))));
  return y;
}

/* x - tanh(x) */
Tensor *t_tanhshrink(Tensor *x) {
  OP_ENTERED(t_tanhshrink, "tanhshrink", x);
  return failed() || !x ? NULL : t_sub(x, t_tanh(x));
}

/* x' = g where x > 0, r g elsewhere: r is noise in training, else the mean of its bounds. */
GRAD_OF(RreluWithNoiseBackward0, "self noise | lower:float upper:float training:bool", false,
        "RreluWithNoiseBackward1") {
  Tensor *x = saved_tensor(n, 0), *noise = saved_tensor(n, 1);
  double slope = (n->numbers[0].f + n->numbers[1].f) / 2;
  gi[0] = n->numbers[2].i ? t_mul(g[0], noise)
                          : t_where(t_gt(x, tensor_wrapped_f(0)), g[0], t_mul_f(g[0], slope));
}

/* A factor for each element: 1 where x > 0, else uniform noise, drawn element by element like
 * PyTorch's. */
static Tensor *rrelu_noise(Tensor *x, double lower, double upper) {
  Tensor *noise = tensor_empty(x->ndim, x->sizes, tensor_dtype(x));
  Rng *rng = vmap_may_draw() ? random_generator(0) : NULL;
  x = t_contiguous(x);
  if (blocked(x, noise) || !rng) return NULL;
  if (tensor_absent(noise)) return noise;
  char *at = tensor_data(noise);
  for (int64_t i = 0; i < x->numel; i++, at += dtype_bytes(tensor_dtype(x))) {
    double r = 1;
    if (tensor_get_f(x, i) <= 0) rng_uniform_f64(rng, &r, 1, lower, upper);
    element_store_f(at, tensor_dtype(x), r);
  }
  return noise;
}

Tensor *t_rrelu(Tensor *x, double lower, double upper, bool training) {
  OP_ENTERED(t_rrelu, "rrelu", x, lower, upper, training);
  if (blocked(x)) return NULL;
  if (lower > upper)
    return fail(ERR_RUNTIME, "Lower bound should be less than or equal to the upper bound");
  if (training && x->dtype == DT_F16 && refuses_half(x, "rrelu_with_noise_out_cpu")) return NULL;
  if (!dtype_check_float_kernel(training ? "rrelu_with_noise_out_cpu" : "leaky_relu_cpu",
                                tensor_dtype(x)))
    return NULL;
  Node *n = node_new(&RreluWithNoiseBackward0, 2, 3, x, NULL);
  num_f(n, 0, lower);
  num_f(n, 1, upper);
  num_i(n, 2, training);
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    x = t_contiguous(x);
    Tensor *noise = training ? rrelu_noise(x, lower, upper) : n ? t_zeros_like(x) : NULL;
    save(n, 0, x);
    save(n, 1, noise);
    y = training ? t_mul(x, noise) : t_leaky_relu(x, (lower + upper) / 2, 0, 0);
  }
  return set_history(y, n);
}

/* y = x > 0 ? x : w x with a weight for each channel, which is dimension 1. */
Tensor *t_prelu(Tensor *x, Tensor *w) {
  OP_ENTERED(t_prelu, "prelu", x, w);
  if (blocked(x, w)) return NULL;
  if (x->dtype != w->dtype)
    return fail(ERR_RUNTIME, "prelu: Type promoting not supported. Got %s and %s", legacy(x),
                legacy(w));
  if (w->ndim > 1)
    return fail(ERR_RUNTIME,
                "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = %d",
                w->ndim);
  if (w->numel != 1) {
    if (x->ndim == 0) return fail(ERR_RUNTIME, "Not allow zero-dim input tensor.");
    int64_t channels = x->ndim > 1 ? x->sizes[1] : 1;
    if (w->numel != channels)
      return fail(ERR_RUNTIME,
                  "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                  "%lld and channel size = %lld.",
                  (Shown)w->numel, (Shown)channels);
  }
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < x->ndim; i++) sizes[i] = i == 1 ? w->numel : 1;
  bool as_it_is = w->ndim == 0 || (x->ndim == 1 && w->numel == 1);
  return t_prelu_kernel(x, as_it_is ? w : t_view(w, x->ndim, sizes));
}

/* y = a s(b), x = [a, b] along dim, s the sigmoid:  a' = g s(b),  b' = g a s(b) (1 - s(b)). */
GRAD(GluBackward0, "self | dim:int")
{
  Tensor *x = saved_tensor(n, 0);
  int64_t dim = n->numbers[0].i, half = x ? x->sizes[dim] / 2 : 0;
  Tensor *a = t_narrow(x, dim, 0, half), *s = t_sigmoid(t_narrow(x, dim, half, half));
  Tensor *da = t_mul(g[0], s);
  Tensor *parts[2] = {da, t_mul(t_mul(da, a), t_sub(tensor_wrapped_f(1), s))};
  gi[0] = t_cat((Tensors){2, parts}, dim);
}

LOOPS_BEGIN
LOOPS(REAL, 2, gate, a *m_sigmoid(b))
LOOPS_END

Tensor *t_glu(Tensor *x, int64_t dim) {
  OP_ENTERED(t_glu, "glu", x, dim);
  if (blocked(x)) return NULL;
  if (x->ndim == 0)
    return fail(ERR_RUNTIME, "glu does not support scalars because halving size must be even");
  dim = dim_wrap(dim, x->ndim);
  if (dim < 0) return NULL;
  if (x->sizes[dim] % 2)
    return fail(ERR_RUNTIME, "Halving dimension must be even, but dimension %lld is size %lld",
                (Shown)dim, (Shown)x->sizes[dim]);
  if (!dtype_check_float_kernel("glu_cpu", tensor_dtype(x))) return NULL;
  Node *n = node_new(&GluBackward0, 1, 1, x, NULL);
  save(n, 0, x);
  num_i(n, 0, dim);
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    int64_t half = x->sizes[dim] / 2;
    Tensor *in[2] = {t_narrow(x, dim, 0, half), t_narrow(x, dim, half, half)};
    y = elementwise_run(gate, &(Tensors){2, in}, tensor_dtype(x), NULL);
  }
  return set_history(y, n);
}

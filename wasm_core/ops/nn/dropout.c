/* Dropout of elements and of whole channels, with and without keeping mean and variance (alpha).
 *
 * The noise is a constant tensor: each op is a product with it (and a sum, for alpha), which
 * records itself. The numbers drawn are PyTorch's: bernoulli(1 - p) in the layout of the noise. */
#include <math.h>

#include "ground/number.h"
#include "nn_rows.h"
#include "ops/create/random.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/nn.h"
#include "ops/view/view.h"
#include "tape/forward.h"

enum { PLAIN = 0, CHANNELS = DROP_CHANNELS, ALPHA = DROP_ALPHA };

/* Bernoulli noise of x's layout; for channels, of sizes (N, C, 1, ...). */
static Tensor *noise_for(Tensor *x, int kind, double p) {
  int64_t sizes[MAX_DIM];
  if (!(kind & CHANNELS)) return random_bernoulli(tensor_empty_like(x, tensor_dtype(x)), 1 - p, 0);
  if (x->ndim < 2)
    return fail(ERR_RUNTIME, "Feature dropout requires at least 2 dimensions in the input");
  for (int i = 0; i < x->ndim; i++) sizes[i] = i < 2 ? x->sizes[i] : 1;
  return random_bernoulli(tensor_empty(x->ndim, sizes, tensor_dtype(x)), 1 - p, 0);
}

/* x where the noise is 1, alpha' where it is 0, scaled and shifted to x's mean and variance. */
static Tensor *alpha_parts(Tensor *noise, double p, Tensor **offset) {
  const double alpha = 1.7580993408473766, a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
  *offset = t_add_f(t_mul_f(t_add_f(noise, -1), alpha * a), alpha * a * p);
  return t_mul_f(noise, a);
}

static Tensor *drop(Tensor *x, double p, bool training, int kind) {
  if (blocked(x)) return NULL;
  if (p < 0 || p > 1)
    return fail(ERR_RUNTIME, "dropout probability has to be between 0 and 1, but got %s",
                number_text(p));
  if (p == 0 || !training || x->numel == 0) return x;
  if (p == 1) return t_mul(x, tensor_number(0, tensor_dtype(x)));
  if (!dtype_is_inexact(tensor_dtype(x)))
    return fail(ERR_RUNTIME, "result type Float can't be cast to the desired output type %s",
                legacy(x));
  Tensor *noise = noise_for(x, kind, p), *offset;
  if (kind & ALPHA) {
    noise = alpha_parts(noise, p, &offset);
    return t_add(t_mul(x, noise), offset);
  }
  return t_mul(x, t_div(noise, tensor_wrapped_f(1 - p)));
}

Tensor *t_dropout(Tensor *x, double p, bool training) {
  OP_ENTERED(t_dropout, "dropout", x, p, training);
  return drop(x, p, training, PLAIN);
}
Tensor *t_feature_dropout(Tensor *x, double p, bool training) {
  OP_ENTERED(t_feature_dropout, "feature_dropout", x, p, training);
  return drop(x, p, training, CHANNELS);
}
Tensor *t_alpha_dropout(Tensor *x, double p, bool training) {
  OP_ENTERED(t_alpha_dropout, "alpha_dropout", x, p, training);
  return drop(x, p, training, ALPHA);
}
Tensor *t_feature_alpha_dropout(Tensor *x, double p, bool training) {
  OP_ENTERED(t_feature_alpha_dropout, "feature_alpha_dropout", x, p, training);
  return drop(x, p, training, ALPHA | CHANNELS);
}

/* The check of nn.functional. */
static bool check_probability(double p) {
  if (p >= 0 && p <= 1) return true;
  fail(ERR_VALUE, "dropout probability has to be between 0 and 1, but got %s", number_text(p));
  return false;
}

Tensor *t_functional_dropout(Tensor *x, double p, bool training, int kind) {
  OP_ENTERED(t_functional_dropout, "dropout", x, p, training, kind);
  return check_probability(p) ? drop(x, p, training, kind) : NULL;
}

Tensor *t_dropout1d(Tensor *x, double p, bool training) {
  OP_ENTERED(t_dropout1d, "dropout1d", x, p, training);
  if (blocked(x) || !check_probability(p)) return NULL;
  if (x->ndim != 2 && x->ndim != 3)
    return fail(ERR_RUNTIME,
                "dropout1d: Expected 2D or 3D input, but received a %dD input. Note that dropout1d "
                "exists to provide channel-wise dropout on inputs with 1 spatial dimension, a "
                "channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs).",
                x->ndim);
  return x->ndim == 3 ? drop(x, p, training, CHANNELS)
                      : t_squeeze_dim(drop(t_unsqueeze(x, 0), p, training, CHANNELS), 0);
}

static void warn_rank(const Tensor *x, int nd) {
  warn_user("dropout%dd: Received a %d-D input to dropout%dd, which is deprecated and will result "
            "in an error in a future release. To retain the behavior and silence this warning, "
            "please use dropout instead. Note that dropout%dd exists to provide channel-wise "
            "dropout on inputs with %d spatial dimensions, a channel dimension, and an optional "
            "batch dimension (i.e. %s inputs).",
            nd, x->ndim, nd, nd, nd, nd == 2 ? "3D or 4D" : "4D or 5D");
}

Tensor *t_dropout2d(Tensor *x, double p, bool training) {
  OP_ENTERED(t_dropout2d, "dropout2d", x, p, training);
  if (blocked(x) || !check_probability(p)) return NULL;
  if (x->ndim != 3 && x->ndim != 4) warn_rank(x, 2);
  if (x->ndim == 3)
    warn_user("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D "
              "dropout behavior is desired - input is interpreted as shape (N, C, L), where C is "
              "the channel dim. This behavior will change in a future release to interpret the "
              "input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
              "channel-wise dropout behavior, please switch to using dropout1d instead.");
  return drop(x, p, training, CHANNELS);
}

Tensor *t_dropout3d(Tensor *x, double p, bool training) {
  OP_ENTERED(t_dropout3d, "dropout3d", x, p, training);
  if (blocked(x) || !check_probability(p)) return NULL;
  if (x->ndim != 4 && x->ndim != 5) warn_rank(x, 3);
  return x->ndim == 5 ? drop(x, p, training, CHANNELS)
                      : t_squeeze_dim(drop(t_unsqueeze(x, 0), p, training, CHANNELS), 0);
}

/* ------------------------------------------------------------ native_dropout */

static Tensor *scaled_where(Tensor *g, Tensor *mask, double scale) {
  return t_mul_f(t_mul(g, mask), scale);
}

Tensor *t_native_dropout_backward(Tensor *g, Tensor *mask, double scale) {
  OP_ENTERED(t_native_dropout_backward, "native_dropout_backward", g, mask, scale);
  return blocked(g, mask) ? NULL : scaled_where(g, mask, scale);
}

/* y = x mask / (1 - p), and so is the gradient. */
GRAD(NativeDropoutBackward0, "result1 | p:float -:int")
{
  const double p = n->numbers[1].i ? n->numbers[0].f : 0, scale = p == 1 ? 0 : 1 / (1 - p);
  if (g[0])
    gi[0] = (gradient_is_recorded() ? scaled_where
                                    : t_native_dropout_backward)(g[0], saved_tensor(n, 0), scale);
}

/* The result and the mask; training NULL counts as true. */
void t_native_dropout(Tensor *x, double p, const bool *training, Tensor *out[2]) {
  OP_ENTERED(t_native_dropout, "native_dropout", x, p, training, out);
  out[0] = out[1] = NULL;
  if (blocked(x)) return;
  bool on = !training || *training;
  if (p < 0 || p > 1) {
    fail(ERR_RUNTIME, "dropout probability has to be between 0 and 1, but got %s", number_text(p));
    return;
  }
  if (x->numel == 0) {
    out[0] = x;
    out[1] = tensor_empty_like(x, tensor_dtype(x));
    return;
  }
  if (on && !dtype_is_float(tensor_dtype(x))) {
    fail(ERR_RUNTIME, "result type Float can't be cast to the desired output type %s", legacy(x));
    return;
  }
  Node *n = node_new(&NativeDropoutBackward0, 1, 2, x, NULL);
  num_f(n, 0, p);
  num_i(n, 1, on);
  WITHOUT_GRAD_BLOCK {
    if (!on) {
      out[1] = t_to(t_ones_like(t_detach(x)), DT_BOOL);
      out[0] = t_clone(x);
    } else {
      Tensor *noise = noise_for(x, PLAIN, p);
      out[1] = t_to(noise, DT_BOOL);
      out[0] = t_mul(x, t_mul_f(noise, p == 1 ? 0 : 1 / (1 - p)));
    }
  }
  save(n, 0, out[1]);
  out[0] = set_history(failed() ? NULL : out[0], n);
}

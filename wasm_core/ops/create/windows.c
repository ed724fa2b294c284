/* The windows of spectral analysis: of torch.signal.windows, and by older names of torch.
 *
 * Argument 0 of the call is the length; the options begin at argument `options`. A window that is
 * not symmetric has the steps of a window with one element more. */
#include <math.h>
#include <string.h>

#include "create_rows.h"
#include "ground/number.h"
#include "kernels/maths.h"
#include "ops/create/create.h"
#include "ops/op.h"
#include "ops/view/copy.h"

/* How to make a window: from the options of a call, or unrecorded. */
typedef struct {
  const Call *c;
  int options; /* the first option */
  int64_t n;   /* its length */
  bool recorded;
  DType dtype, half; /* half: the type to which the window is rounded, or DT_NONE */
} Window;

/* Sets up w. False with the error set for options that windows do not take. */
static bool begin_as(Window *w, const Call *c, int options, const char *name, DType dtype) {
  *w = (Window){c, options, arg_int(c, 0), true, dtype, DT_NONE};
  const char *layout = arg_str(c, options + 1);
  if (failed()) return false;
  if (w->n < 0)
    fail(ERR_VALUE, "%s requires non-negative window length, got M=%lld", name, (Shown)w->n);
  else if (layout && strcmp(layout, "torch.strided") && strcmp(layout, "strided"))
    fail(ERR_VALUE, "%s is implemented for strided tensors only, got: %s", name, layout);
  else if (!dtype_is_float(w->dtype) || dtype_is_half(w->dtype))
    fail(ERR_VALUE, "%s expects float32 or float64 dtypes, got: torch.%s", name,
         dtype_info[w->dtype].name);
  return !failed();
}

static bool begin(Window *w, const Call *c, int options, const char *name) {
  DType d = arg_dtype(c, options);
  return begin_as(w, c, options, name, d == DT_NONE ? dtype_default() : d);
}

/* An input of the window's formula, which requires grad if the window is to. */
static Tensor *source(const Window *w, Tensor *t) {
  return w->recorded ? made(w->c, w->options, t) : t;
}
/* t on the window's device. */
static Tensor *move_to_device(const Window *w, Tensor *t) {
  int32_t form = create_device_form(w->c, w->options + 2, form_default);
  return t && form > 0 ? t_to_device(t, tensor_dtype(t), form, FORMAT_PRESERVE) : t;
}
static Tensor *ones(const Window *w) { return source(w, t_ones((Ints){1, &w->n}, w->dtype)); }

/* One number for each element of the window, `step` apart. */
static Tensor *line(const Window *w, double start, double step) {
  Tensor *first = tensor_wrapped_f(start * step),
         *last = tensor_wrapped_f((start + (double)w->n - 1) * step);
  return source(w, t_linspace(first, last, w->n, w->dtype));
}

/* Steps over one period; one longer than the window if that is not symmetric. */
static double period(const Window *w, bool symmetric) {
  return (double)(symmetric ? w->n - 1 : w->n);
}
static double middle(const Window *w, bool symmetric) {
  return period(w, symmetric || w->n == 1) / 2;
}

/* ------------------------------------------------------------ by their formulas */

/* 1 - |2 k / (n - 1) - 1| */
static Tensor *triangle(const Window *w, bool symmetric) {
  if (w->n <= 1) return ones(w);
  double step = 2 / period(w, symmetric);
  Tensor *last = tensor_wrapped_f(-1 + (double)(w->n - 1) * step);
  Tensor *x = source(w, t_linspace(tensor_wrapped_i(-1), last, w->n, w->dtype));
  return t_rsub(t_abs(x), tensor_wrapped_i(1), NULL);
}

/* I0(beta sqrt(1 - (2 k / (n - 1) - 1)^2)) / I0(beta). Beta is rounded first, or roots of
 * negative numbers follow. */
static Tensor *bell(const Window *w, double beta, bool symmetric) {
  if (w->n <= 1) return ones(w);
  Tensor *top = tensor_number(beta, w->dtype), *bottom = t_neg(top);
  Tensor *step = t_div(t_mul(top, tensor_wrapped_f(2)),
                       tensor_wrapped_i((int64_t)period(w, symmetric)));
  Tensor *end = t_minimum(top, t_add(bottom, t_mul(step, tensor_wrapped_i(w->n - 1))));
  Tensor *x = source(w, t_linspace(bottom, end, w->n, w->dtype));
  return t_div(t_i0(t_sqrt(t_sub(t_mul(top, top), t_square(x)))), t_i0(top));
}

/* a[0] - a[1] cos(x) + a[2] cos(2 x) - ..., over one period. */
static Tensor *cosines(const Window *w, Floats a, bool symmetric) {
  if (w->n <= 1) return ones(w);
  if (a.n < 1) return fail(ERR_VALUE, "Coefficients cannot be empty");
  int64_t n = a.n;
  Tensor *x = line(w, 0, 2 * MATHS_PI / period(w, symmetric)),
         *weights = tensor_empty(1, &n, w->dtype);
  if (blocked(x, weights)) return NULL;
  for (int i = 0; i < a.n; i++) tensor_set_f(weights, i, i % 2 ? -a.v[i] : a.v[i]);
  Tensor *multiples = move_to_device(w, t_arange(NULL, tensor_wrapped_i(n), NULL, w->dtype));
  Tensor *waves = t_cos(t_mul(t_unsqueeze(multiples, 1), x));
  return t_sum(t_mul(t_unsqueeze(source(w, weights), 1), waves), ONE_DIM(0), false, DT_NONE);
}

/* ------------------------------------------------------------ torch.signal.windows */

Tensor *t_bartlett(const Call *c, bool symmetric, int options) {
  OP_ENTERED(t_bartlett, "bartlett", c, symmetric, options);
  Window w;
  return begin(&w, c, options, "bartlett") ? triangle(&w, symmetric) : NULL;
}

Tensor *t_cosine(const Call *c, bool symmetric, int options) {
  OP_ENTERED(t_cosine, "cosine", c, symmetric, options);
  Window w;
  if (!begin(&w, c, options, "cosine")) return NULL;
  return w.n ? t_sin(line(&w, 0.5, MATHS_PI / (double)(symmetric || w.n == 1 ? w.n : w.n + 1)))
             : ones(&w);
}

/* centre NULL: the middle */
Tensor *t_exponential(const Call *c, const double *centre, double tau, bool symmetric,
                      int options) {
  OP_ENTERED(t_exponential, "exponential", c, centre, tau, symmetric, options);
  Window w;
  if (!begin(&w, c, options, "exponential")) return NULL;
  if (tau <= 0) return fail(ERR_VALUE, "Tau must be positive, got: %s instead.", number_text(tau));
  if (symmetric && centre) return fail(ERR_VALUE, "Center must be None for symmetric windows");
  if (w.n == 0) return ones(&w);
  return t_exp(t_neg(t_abs(line(&w, -(centre ? *centre : middle(&w, symmetric)), 1 / tau))));
}

Tensor *t_gaussian(const Call *c, double deviation, bool symmetric, int options) {
  OP_ENTERED(t_gaussian, "gaussian", c, deviation, symmetric, options);
  Window w;
  if (!begin(&w, c, options, "gaussian")) return NULL;
  if (deviation <= 0)
    return fail(ERR_VALUE, "Standard deviation must be positive, got: %s instead.",
                number_text(deviation));
  if (w.n == 0) return ones(&w);
  return t_exp(t_neg(t_square(line(&w, -middle(&w, symmetric), 1 / (deviation * sqrt(2))))));
}

Tensor *t_kaiser(const Call *c, double beta, bool symmetric, int options) {
  OP_ENTERED(t_kaiser, "kaiser", c, beta, symmetric, options);
  Window w;
  if (!begin(&w, c, options, "kaiser")) return NULL;
  if (beta < 0)
    return fail(ERR_VALUE, "beta must be non-negative, got: %s instead.", number_text(beta));
  return bell(&w, beta, symmetric);
}

/* name: for messages */
Tensor *t_general_cosine(const Call *c, const char *name, Floats weights, bool symmetric,
                         int options) {
  OP_ENTERED(t_general_cosine, "general_cosine", c, name, weights, symmetric, options);
  Window w;
  return begin(&w, c, options, name) ? cosines(&w, weights, symmetric) : NULL;
}

/* ------------------------------------------------------------ torch */

static bool begin_older(Window *w, const Call *c, int options, const char *name,
                        const char *window) {
  if (failed()) return false;
  if (arg_int(c, 0) < 0)
    return fail(ERR_RUNTIME, "%s requires non-negative window_length, got window_length=%lld", name,
                (Shown)arg_int(c, 0)),
           false;
  DType d = arg_dtype(c, options);
  if (d == DT_NONE) d = dtype_default();
  if (!failed() && !dtype_is_float(d))
    return fail(ERR_RUNTIME, "%s expects floating point dtypes, got: %s", name, dtype_c_name(d)),
           false;
  const bool half = dtype_is_half(d);
  if (!begin_as(w, c, options, window, half ? DT_F32 : d)) return false;
  w->recorded = false;
  w->half = half ? d : DT_NONE;
  return true;
}

static Tensor *round_window(const Window *w, Tensor *y) {
  return y && w->half != DT_NONE ? t_to(y, w->half) : y;
}

/* The functions of torch, whose windows are leaves. `window` is the other name for messages. */
Tensor *t_bartlett_window(const Call *c, bool periodic, int options) {
  OP_ENTERED(t_bartlett_window, "bartlett_window", c, periodic, options);
  Window w;
  if (!begin_older(&w, c, options, "bartlett_window", "bartlett")) return NULL;
  return made(c, options, round_window(&w, triangle(&w, !periodic)));
}

Tensor *t_kaiser_window(const Call *c, double beta, bool periodic, int options) {
  OP_ENTERED(t_kaiser_window, "kaiser_window", c, beta, periodic, options);
  Window w;
  if (!begin_older(&w, c, options, "kaiser_window", "kaiser")) return NULL;
  if (beta < 0)
    return fail(ERR_VALUE, "beta must be non-negative, got: %s instead.", number_text(beta));
  return made(c, options, round_window(&w, bell(&w, beta, !periodic)));
}

Tensor *t_cosines_window(const Call *c, const char *name, const char *window, Floats weights,
                         bool periodic, int options) {
  Window w;
  if (!begin_older(&w, c, options, name, window)) return NULL;
  return made(c, options, round_window(&w, cosines(&w, weights, !periodic)));
}

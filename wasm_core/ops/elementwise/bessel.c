/* Bessel functions, modified ones, the spherical one of order 0 and Airy's, in double. None has a
 * gradient.
 *
 * K is the integral over t of exp(-x cosh t) cosh(order t), by the trapezoidal rule, which for this
 * integrand is as good as a double; far out it is Hankel's series. */
#include <math.h>
#include <string.h>

#include "elementwise_rows.h"
#include "ops/create/create.h"
#include "ops/elementwise/elementwise.h"

static const double step = 0.125, euler = 0.57721566490153286;
enum { STEPS = 200, TERMS = 24 };
/* Below the first the limit, beyond the other the series is as good as a double. */
static const double tiny = 1e-9, far_out = 25;

/* exp(x) K for large x: sqrt(pi / 2x) times the sum of terms that go with 1 / x^k. */
static Tensor *hankel(int order, Tensor *x) {
  int32_t mark = pool_mark();
  Tensor *term = t_ones_like(x), *sum = term;
  for (int k = 0; k < TERMS; k++) {
    int odd = 2 * k + 1;
    term = t_div(t_div(t_mul(term, tensor_wrapped_i(4 * order * order - odd * odd)),
                       tensor_wrapped_i(8 * (k + 1))),
                 x);
    sum = t_add(sum, term);
  }
  Tensor *y = t_mul(t_sqrt(t_mul(t_reciprocal(x), tensor_wrapped_f(MATHS_PI / 2))), sum);
  pool_release(mark, y);
  return y;
}

/* exp(x) K for x neither tiny nor far out: one row of the trapezoidal rule for each element. */
static Tensor *integral(int order, Tensor *x) {
  int32_t mark = pool_mark();
  Tensor *t = t_mul(t_arange(NULL, tensor_wrapped_i(STEPS), NULL, DT_F64), tensor_wrapped_f(step));
  Tensor *weight = t_mul(t_cosh(t_mul(t, tensor_wrapped_i(order))), tensor_wrapped_f(step));
  if (weight && !tensor_absent(weight)) ((double *)(void *)tensor_data(weight))[0] /= 2;
  Tensor *decay = t_mul(t_mul(t_unsqueeze(x, -1), tensor_wrapped_i(-2)),
                        t_square(t_sinh(t_div(t, tensor_wrapped_i(2)))));
  Tensor *y = t_sum(t_mul(weight, t_exp(decay)), ONE_DIM(-1), false, DT_NONE);
  pool_release(mark, y);
  return y;
}

/* exp(x) K for x close to 0. */
static Tensor *limit(int order, Tensor *x) {
  Tensor *y = order ? t_mul(t_reciprocal(x), tensor_wrapped_i(1))
                    : t_sub(t_neg(t_log(t_div(x, tensor_wrapped_i(2)))), tensor_wrapped_f(euler));
  return t_mul(y, t_exp(x));
}

/* The elements of x in double in the order in which they lie, without history; NULL on failure. */
typedef struct {
  Tensor *x, *dense;
  DType kind; /* of the result */
} Line;

static Line line_of(Tensor *x) {
  Line l = {NULL, NULL, DT_F64};
  if (blocked(x)) return l;
  l.kind = float_dtype((DType)x->dtype);
  l.dense = t_to(t_detach(x), DT_F64);
  if (l.dense && !tensor_is_dense(l.dense)) l.dense = t_clone(l.dense);
  if (l.dense)
    l.x = tensor_alias(l.dense, 1, &l.dense->numel, (const int64_t[]){1}, l.dense->offset);
  return l;
}

/* The values y for a line, which lie as its elements do. */
static Tensor *laid(Line l, Tensor *y) {
  if (blocked(y)) return NULL;
  return t_to(tensor_alias(y, l.dense->ndim, l.dense->sizes, l.dense->strides, y->offset), l.kind);
}

static Tensor *filled_where(Tensor *y, Tensor *mask, double v) {
  return t_masked_fill(y, mask, tensor_wrapped_f(v));
}

/* K, or exp(x) K if `scaled`, of a few elements. */
static Tensor *decay(int order, bool scaled, Tensor *x) {
  Tensor *low = tensor_wrapped_f(tiny), *high = tensor_wrapped_f(far_out);
  Tensor *zero = tensor_wrapped_i(0), *y = integral(order, t_clamp(x, low, high));
  y = t_where(t_gt(x, high), hankel(order, t_clamp(x, high, NULL)), y);
  y = t_where(t_lt(x, low), limit(order, x), y);
  y = filled_where(filled_where(y, t_lt(x, zero), NAN), t_eq(x, zero), INFINITY);
  return scaled ? y : t_mul(y, t_exp(t_neg(x)));
}

/* So many elements at a time, as each takes STEPS numbers. */
enum { PART = 512 };

/* scaled: by exp(x) */
Tensor *t_modified_bessel_k(int order, bool scaled, Tensor *t) {
  static const char *const names[2][2] = {
      {"modified_bessel_k0", "modified_bessel_k1"},
      {"scaled_modified_bessel_k0", "scaled_modified_bessel_k1"}};
  static const char *const kernels[2][2] = {
      {"modified_bessel_k0_cpu", "modified_bessel_k1_cpu"},
      {"scaled_modified_bessel_k0_cpu", "scaled_modified_bessel_k1_cpu"}};
  OP_ENTERED_AS(t_modified_bessel_k(order, scaled, t), names[scaled][order], t);
  if (refuses_half(t, kernels[scaled][order])) return NULL;
  Line l = line_of(t);
  Tensor *y = l.x ? tensor_empty(1, l.x->sizes, DT_F64) : NULL;
  for (int64_t at = 0; y && at < y->numel && !tensor_absent(y); at += PART) {
    int32_t mark = pool_mark();
    Tensor *part = decay(order, scaled, t_slice(l.x, 0, at, at + PART, 1));
    if (part) memcpy(tensor_data(y) + at * 8, tensor_data(part), (size_t)part->numel * 8);
    pool_release(mark, NULL);
  }
  return laid(l, y);
}

Tensor *t_modified_bessel_i(int order, Tensor *t) {
  OP_ENTERED_AS(t_modified_bessel_i(order, t), order ? "modified_bessel_i1" : "modified_bessel_i0",
                t);
  if (refuses_half(t, order ? "modified_bessel_i1_cpu" : "modified_bessel_i0_cpu")) return NULL;
  Line l = line_of(t);
  return laid(l, order ? t_i1(l.x) : t_i0(l.x));
}

Tensor *t_spherical_bessel_j0(Tensor *t) {
  OP_ENTERED(t_spherical_bessel_j0, "spherical_bessel_j0", t);
  if (refuses_half(t, "spherical_bessel_j0_cpu")) return NULL;
  Line l = line_of(t);
  Tensor *y = t_div(t_sin(l.x), l.x);
  y = filled_where(y, t_eq(l.x, tensor_wrapped_i(0)), 1);
  return laid(l, filled_where(y, t_isinf(l.x), 0));
}

/* ------------------------------------------------------------ of one loop each */

LOOPS_BEGIN
LOOPS(WIDE, 1, bessel_j0, m_bessel_j0(x))
LOOPS(WIDE, 1, bessel_j1, m_bessel_j1(x))
LOOPS(WIDE, 1, bessel_y0, m_bessel_y0(x))
LOOPS(WIDE, 1, bessel_y1, m_bessel_y1(x))
LOOPS(WIDE, 1, airy_ai, m_airy_ai(x))
LOOPS_END

static Tensor *without_history(const Loops *loops, const char *kernel, Tensor *x) {
  if (blocked(x)) return NULL;
  DType d = tensor_dtype(x);
  if (dtype_is_half(d) || dtype_is_complex(d)) return no_kernel(kernel, d);
  return run(loops, &(Tensors){1, &x}, float_dtype(tensor_dtype(x)), (const double[]){0, 0, 0});
}

Tensor *t_bessel_j0(Tensor *x) {
  OP_ENTERED(t_bessel_j0, "bessel_j0", x);
  return without_history(bessel_j0, "bessel_j0_cpu", x);
}

Tensor *t_bessel_j1(Tensor *x) {
  OP_ENTERED(t_bessel_j1, "bessel_j1", x);
  return without_history(bessel_j1, "bessel_j1_cpu", x);
}

Tensor *t_bessel_y0(Tensor *x) {
  OP_ENTERED(t_bessel_y0, "bessel_y0", x);
  return without_history(bessel_y0, "bessel_y0_cpu", x);
}

Tensor *t_bessel_y1(Tensor *x) {
  OP_ENTERED(t_bessel_y1, "bessel_y1", x);
  return without_history(bessel_y1, "bessel_y1_cpu", x);
}

Tensor *t_airy_ai(Tensor *x) {
  OP_ENTERED(t_airy_ai, "airy_ai", x);
  return without_history(airy_ai, "airy_ai_cpu", x);
}

/* Bessel functions, modified ones, the spherical one of order 0 and Airy's, in double. No
 * gradients. */
#include <math.h>

#include "elementwise_rows.h"
#include "ops/elementwise/elementwise.h"

LOOPS_BEGIN
LOOPS(WIDE, 1, bessel_j0, m_bessel_j0(x))
LOOPS(WIDE, 1, bessel_j1, m_bessel_j1(x))
LOOPS(WIDE, 1, bessel_y0, m_bessel_y0(x))
LOOPS(WIDE, 1, bessel_y1, m_bessel_y1(x))
LOOPS(WIDE, 1, airy_ai, m_airy_ai(x))
LOOPS(WIDE, 1, modified_bessel_i0, m_i0(x))
LOOPS(WIDE, 1, modified_bessel_i1, m_i1(x))
LOOPS(WIDE, 1, modified_bessel_k0, m_k0(x))
LOOPS(WIDE, 1, modified_bessel_k1, m_k1(x))
LOOPS(WIDE, 1, scaled_modified_bessel_k0, m_k0e(x))
LOOPS(WIDE, 1, scaled_modified_bessel_k1, m_k1e(x))
LOOPS(WIDE, 1, spherical_bessel_j0, m_isinf(x) ? 0 : x == 0 ? 1 : sin(x) / x)
LOOPS_END

static Tensor *without_history(const Loops *loops, const char *name, Tensor *x) {
  if (blocked(x)) return NULL;
  DType d = tensor_dtype(x);
  if (dtype_is_half(d) || dtype_is_complex(d)) return dtype_no_kernel_of(name, d);
  return elementwise_run(loops, &(Tensors){1, &x}, elementwise_float_dtype(tensor_dtype(x)),
                         (const double[]){0, 0, 0});
}

Tensor *t_bessel_j0(Tensor *x) {
  OP_ENTERED(t_bessel_j0, "bessel_j0", x);
  return without_history(bessel_j0, "bessel_j0", x);
}

Tensor *t_bessel_j1(Tensor *x) {
  OP_ENTERED(t_bessel_j1, "bessel_j1", x);
  return without_history(bessel_j1, "bessel_j1", x);
}

Tensor *t_bessel_y0(Tensor *x) {
  OP_ENTERED(t_bessel_y0, "bessel_y0", x);
  return without_history(bessel_y0, "bessel_y0", x);
}

Tensor *t_bessel_y1(Tensor *x) {
  OP_ENTERED(t_bessel_y1, "bessel_y1", x);
  return without_history(bessel_y1, "bessel_y1", x);
}

Tensor *t_airy_ai(Tensor *x) {
  OP_ENTERED(t_airy_ai, "airy_ai", x);
  return without_history(airy_ai, "airy_ai", x);
}

Tensor *t_modified_bessel_i(int order, Tensor *x) {
  static const char *const names[] = {"modified_bessel_i0", "modified_bessel_i1"};
  OP_ENTERED_AS(t_modified_bessel_i(order, x), names[order], x);
  return without_history(order ? modified_bessel_i1 : modified_bessel_i0, names[order], x);
}

/* scaled: times exp(x) */
Tensor *t_modified_bessel_k(int order, bool scaled, Tensor *x) {
  static const Loops *const loops[2][2] = {{modified_bessel_k0, modified_bessel_k1},
                                           {scaled_modified_bessel_k0, scaled_modified_bessel_k1}};
  static const char *const names[2][2] = {
      {"modified_bessel_k0", "modified_bessel_k1"},
      {"scaled_modified_bessel_k0", "scaled_modified_bessel_k1"}};
  OP_ENTERED_AS(t_modified_bessel_k(order, scaled, x), names[scaled][order], x);
  return without_history(loops[scaled][order], names[scaled][order], x);
}

Tensor *t_spherical_bessel_j0(Tensor *x) {
  OP_ENTERED(t_spherical_bessel_j0, "spherical_bessel_j0", x);
  return without_history(spherical_bessel_j0, "spherical_bessel_j0", x);
}

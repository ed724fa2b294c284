/* Functions of complex numbers; see complex_maths.h.
 *
 * The branch cuts and the signs of zero are those of Kahan, "Branch Cuts for Complex Elementary
 * Functions" (1987), whose formulas for the inverse functions these are. */
#include "kernels/complex_maths.h"

#include <float.h>
#include <math.h>

#include "kernels/maths.h"

typedef complex_f64 Z;

static Z z_of(double re, double im) { return complex_of_f64(re, im); }
static Z conj_of(Z z) { return complex_conj_f64(z); }
static Z times_i(Z z) { return z_of(-imaginary_part(z), real_part(z)); }
static Z over_i(Z z) { return z_of(imaginary_part(z), -real_part(z)); }
static Z times_real(Z z, double k) { return z_of(real_part(z) * k, imaginary_part(z) * k); }

double complex_abs(Z z) { return hypot(real_part(z), imaginary_part(z)); }
double complex_angle(Z z) { return atan2(imaginary_part(z), real_part(z)); }

/* ------------------------------------------------------------ exponentials */

/* r (cos t + i sin t), where r times zero is zero. */
static Z polar(double r, double t) { return z_of(r * cos(t), t == 0 ? t : r * sin(t)); }

Z complex_exp(Z z) {
  double re = real_part(z), im = imaginary_part(z);
  if (im == 0) return z_of(exp(re), im);
  if (im - im != 0) /* no angle */
    return re == -INFINITY ? z_of(0, 0) : re == INFINITY ? z_of(re, NAN) : z_of(NAN, NAN);
  if (re > 709) { /* exp(re) alone may be too large */
    Z half = polar(exp(re / 2), im);
    return times_real(half, exp(re / 2));
  }
  return polar(exp(re), im);
}

Z complex_exp2(Z z) { return complex_exp(times_real(z, MATHS_LN2)); }

/* exp(re) cos(im) - 1 = expm1(re) cos(im) - 2 sin(im/2)^2 */
Z complex_expm1(Z z) {
  double re = real_part(z), im = imaginary_part(z), half = sin(im / 2);
  if (im == 0) return z_of(expm1(re), im);
  if (im - im != 0 || re > 700)
    return z_of(real_part(complex_exp(z)) - 1, imaginary_part(complex_exp(z)));
  return z_of(expm1(re) * cos(im) - 2 * half * half, exp(re) * sin(im));
}

/* log|z|; near the unit circle from |z|^2 - 1 = (x - 1)(x + 1) + y^2. */
static double log_abs(double x, double y) {
  x = fabs(x), y = fabs(y);
  if (x < y) {
    double swap = x;
    x = y, y = swap;
  }
  if (x > 0.5 && x < 2) return 0.5 * log1p((x - 1) * (x + 1) + y * y);
  return log(hypot(x, y));
}

Z complex_log(Z z) { return z_of(log_abs(real_part(z), imaginary_part(z)), complex_angle(z)); }
Z complex_log2(Z z) { return times_real(complex_log(z), 1 / MATHS_LN2); }
Z complex_log10(Z z) { return times_real(complex_log(z), 1 / MATHS_LN10); }

/* |1 + z|^2 - 1 = x (2 + x) + y^2 */
Z complex_log1p(Z z) {
  double x = real_part(z), y = imaginary_part(z);
  double re = fabs(x) < 0.5 && fabs(y) < 0.5 ? 0.5 * log1p(x * (2 + x) + y * y) : log_abs(1 + x, y);
  return z_of(re, atan2(y, 1 + x));
}

/* ------------------------------------------------------------ roots and powers */

Z complex_sqrt(Z z) {
  double x = real_part(z), y = imaginary_part(z);
  if (y - y != 0 && y == y) return z_of(INFINITY, y);
  if (x == 0 && y == 0) return z_of(0, y);
  if (x - x != 0) { /* infinite or NaN */
    double none = y != y ? y : 0;
    if (x == INFINITY) return z_of(x, y != y ? y : copysign(0, y));
    if (x == -INFINITY) return y != y ? z_of(y, INFINITY) : z_of(none, copysign(INFINITY, y));
    return z_of(NAN, NAN);
  }
  double scale = fabs(x) > 0x1p1020 || fabs(y) > 0x1p1020     ? 0x1p-4
                 : fabs(x) < 0x1p-1000 && fabs(y) < 0x1p-1000 ? 0x1p100
                                                              : 1;
  x *= scale, y *= scale;
  double t = sqrt((fabs(x) + hypot(x, y)) * 0.5), back = scale == 1 ? 1 : scale < 1 ? 4 : 0x1p-50;
  if (x >= 0) return z_of(t * back, y / (2 * t) * back);
  return z_of(fabs(y) / (2 * t) * back, copysign(t, y) * back);
}

Z complex_reciprocal(Z z) { return complex_div_f64(z_of(1, 0), z); }
Z complex_rsqrt(Z z) { return complex_reciprocal(complex_sqrt(z)); }

Z complex_pow(Z a, Z b) {
  double x = real_part(b), y = imaginary_part(b);
  if (x == 0 && y == 0) return z_of(1, 0);
  if (real_part(a) == 0 && imaginary_part(a) == 0 && y == 0 && x > 0) return z_of(0, 0);
  if (y == 0 && x == trunc(x) && fabs(x) <= 16) { /* products, which round less */
    Z power = z_of(1, 0);
    for (int i = 0; i < (int)fabs(x); i++) power = complex_mul_f64(power, a);
    return x < 0 ? complex_reciprocal(power) : power;
  }
  return complex_exp(complex_mul_f64(b, complex_log(a)));
}

/* The larger real part goes first. As in PyTorch, only a real part can count as infinite here. */
Z complex_logaddexp(Z a, Z b) {
  Z most = real_part(a) < real_part(b) ? b : a, least = real_part(a) < real_part(b) ? a : b;
  if (real_part(most) != real_part(most) || real_part(least) != real_part(least))
    return z_of(NAN, NAN);
  if (real_part(least) == real_part(most) && real_part(most) - real_part(most) != 0)
    return real_part(most) < 0 ? most : complex_log(complex_exp(least) + complex_exp(most));
  return most + complex_log1p(complex_exp(least - most));
}

Z complex_sigmoid(Z z) { return complex_reciprocal(z_of(1, 0) + complex_exp(-z)); }

Z complex_sinc(Z z) {
  if (real_part(z) == 0 && imaginary_part(z) == 0) return z_of(1, 0);
  Z angle = times_real(z, MATHS_PI);
  return complex_div_f64(complex_sin(angle), angle);
}

Z complex_sgn(Z z) {
  double size = complex_abs(z);
  return size == 0 ? z_of(0, 0) : z_of(real_part(z) / size, imaginary_part(z) / size);
}

/* ------------------------------------------------------------ circular and hyperbolic */

Z complex_sinh(Z z) {
  double x = real_part(z), y = imaginary_part(z);
  if (y == 0) return z_of(sinh(x), y);
  if (fabs(x) > 709) { /* exp(|x|) / 2, where sinh and cosh may be too large */
    Z e = complex_exp(z_of(fabs(x) - MATHS_LN2, y));
    return z_of(copysign(1, x) * real_part(e), imaginary_part(e));
  }
  return z_of(x == 0 ? x : sinh(x) * cos(y), cosh(x) * sin(y));
}
Z complex_cosh(Z z) {
  double x = real_part(z), y = imaginary_part(z);
  if (y == 0) return z_of(cosh(x), x * y);
  if (fabs(x) > 709) {
    Z e = complex_exp(z_of(fabs(x) - MATHS_LN2, y));
    return z_of(real_part(e), copysign(1, x) * imaginary_part(e));
  }
  return z_of(cosh(x) * cos(y), x == 0 ? x * y : sinh(x) * sin(y));
}

/* With t = tan y and s = sinh x: (cosh x (1 + t^2) s + i t) / (1 + (1 + t^2) s^2). */
Z complex_tanh(Z z) {
  double x = real_part(z), y = imaginary_part(z);
  if (fabs(x) > 20) {
    double fade = fabs(x) > 400 ? 0 : 4 * exp(-2 * fabs(x));
    return z_of(copysign(1, x), y - y != 0 ? 0 : sin(y) * cos(y) * fade);
  }
  double t = tan(y), beta = 1 + t * t, s = sinh(x), rho = sqrt(1 + s * s);
  if (t - t != 0) return y - y != 0 ? z_of(NAN, NAN) : z_of(rho / s, 1 / t);
  double n = 1 + beta * s * s;
  return z_of(beta * rho * s / n, t / n);
}

Z complex_sin(Z z) { return over_i(complex_sinh(times_i(z))); }
Z complex_cos(Z z) { return complex_cosh(times_i(z)); }
Z complex_tan(Z z) { return over_i(complex_tanh(times_i(z))); }

/* ------------------------------------------------------------ inverse functions */

/* sqrt(1 - z) and sqrt(1 + z), with the signs of zero that the cuts need. */
static Z root_below(Z z) { return complex_sqrt(z_of(1 - real_part(z), -imaginary_part(z))); }
static Z root_above(Z z) { return complex_sqrt(z_of(1 + real_part(z), imaginary_part(z))); }

/* Whether z^2 is much larger than 1, so that the result is made of log(2 |z|) and the angle of z.
 * The parts of other z are small enough for the roots. */
static bool is_huge(Z z) {
  return fabs(real_part(z)) > 0x1p510 || fabs(imaginary_part(z)) > 0x1p510;
}

Z complex_asin(Z z) {
  if (is_huge(z)) {
    double size = log_abs(real_part(z) / 2, imaginary_part(z) / 2) + 2 * MATHS_LN2;
    return z_of(atan2(real_part(z), fabs(imaginary_part(z))), copysign(size, imaginary_part(z)));
  }
  Z below = root_below(z), above = root_above(z);
  return z_of(atan2(real_part(z), real_part(complex_mul_f64(below, above))),
              asinh(imaginary_part(complex_mul_f64(conj_of(below), above))));
}

Z complex_acos(Z z) {
  if (is_huge(z)) {
    double size = log_abs(real_part(z) / 2, imaginary_part(z) / 2) + 2 * MATHS_LN2;
    return z_of(atan2(fabs(imaginary_part(z)), real_part(z)), copysign(size, -imaginary_part(z)));
  }
  Z below = root_below(z), above = root_above(z);
  return z_of(2 * atan2(real_part(below), real_part(above)),
              asinh(imaginary_part(complex_mul_f64(conj_of(above), below))));
}

Z complex_acosh(Z z) {
  Z acos = complex_acos(z); /* turned so that the real part is not negative */
  return imaginary_part(acos) > 0 || (imaginary_part(acos) == 0 && signbit(imaginary_part(z)))
             ? over_i(acos)
             : times_i(acos);
}

Z complex_asinh(Z z) { return over_i(complex_asin(times_i(z))); }

/* For x >= 0, by the sign of x: re = log1p(4 x / ((1 - x)^2 + y^2)) / 4, and im = atan2(2 y,
 * (1 - x)(1 + x) - y^2) / 2. */
Z complex_atanh(Z z) {
  double x = fabs(real_part(z)), y = imaginary_part(z), sign = copysign(1, real_part(z));
  if (is_huge(z)) return z_of(copysign(0, real_part(z)), copysign(MATHS_PI / 2, y));
  if (x != x || y != y) return z_of(NAN, NAN);
  double below = 1 - x, size = below * below + y * y;
  double re = size == 0 ? INFINITY : log1p(4 * x / size) / 4;
  double im = x == 1 && y == 0 ? copysign(MATHS_PI / 4, y)
                               : atan2(2 * y, below * (1 + x) - y * y) / 2;
  return z_of(sign * re, im);
}

Z complex_atan(Z z) { return over_i(complex_atanh(times_i(z))); }

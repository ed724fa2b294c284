/* The maths functions of element-wise loops, one place for all, by the type of their argument.
 *
 * A float argument takes the float version, all else the double one. What only exists in double
 * (special.c) is for loops that compute in double whatever the tensor's type. */
#ifndef PG_MATHS_H
#define PG_MATHS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/maths32.h"
#include "kernels/special.h"

#define MATHS1(name, x) _Generic((x), float: name##f, default: name)(x)
#define MATHS2(name, x, y) _Generic((x), float: name##f, default: name)(x, y)
#define m_exp(x) _Generic((x), float: exp_f32, default: exp)(x)
#define m_exp2(x) _Generic((x), float: exp2_f32, default: exp2)(x)
#define m_expm1(x) _Generic((x), float: expm1_f32, default: expm1)(x)
#define m_log(x) _Generic((x), float: log_f32, default: log)(x)
#define m_log2(x) _Generic((x), float: log2_f32, default: log2)(x)
#define m_log10(x) _Generic((x), float: log10_f32, default: log10)(x)
#define m_log1p(x) _Generic((x), float: log1p_f32, default: log1p)(x)
#define m_sqrt(x) MATHS1(sqrt, x)
#define m_sin(x) MATHS1(sin, x)
#define m_cos(x) MATHS1(cos, x)
#define m_tan(x) MATHS1(tan, x)
#define m_tanh(x) _Generic((x), float: tanh_f32, default: tanh)(x)
#define m_erf erf
#define m_pow(x, y) MATHS2(pow, x, y)
#define m_copysign(x, y) _Generic((x), float: copysign_f32, default: copysign)(x, y)
#define m_nextafter(x, y) MATHS2(nextafter, x, y)
#define m_asin asin
#define m_acos acos
#define m_atan atan
#define m_sinh sinh
#define m_cosh cosh
#define m_asinh asinh
#define m_acosh acosh
#define m_atanh atanh
#define m_erfc erfc
#define m_lgamma lgamma
#define m_atan2 atan2
#define m_hypot hypot

#define m_sigmoid(x) (1 / (1 + m_exp(-(x))))
static inline double m_softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }
#define m_rsqrt(x) (1 / m_sqrt(x))
#define m_sgn(x) ((T)(((x) > 0) - ((x) < 0)))
#define m_isfinite(x) ((T)((x) - (x) == 0))
#define m_isnan(x) ((x) != (x))

static inline double maths_relu_f64(double x) { return x < 0 ? 0 : x; }
static inline int64_t maths_relu_int(int64_t x) { return x < 0 ? 0 : x; }
#define m_relu(x) _Generic((x), float: relu_f32, double: maths_relu_f64, default: maths_relu_int)(x)

/* Rounding leaves integers alone. */
static inline int64_t maths_same(int64_t x) { return x; }
#define MATHS_ROUND(name, x) _Generic((x), float: name##f, double: name, default: maths_same)(x)
#define m_floor(x) MATHS_ROUND(floor, x)
#define m_ceil(x) MATHS_ROUND(ceil, x)
#define m_trunc(x) MATHS_ROUND(trunc, x)
#define m_rint(x) MATHS_ROUND(nearbyint, x)

static inline bool maths_sign_f32(float x) { return signbit(x); }
static inline bool maths_sign_f64(double x) { return signbit(x); }
static inline bool maths_sign_int(int64_t x) { return x < 0; }
static inline int64_t maths_abs_int(int64_t x) { return x < 0 ? (int64_t)(0 - (uint64_t)x) : x; }
#define m_abs(x) _Generic((x), float: fabsf, double: fabs, default: maths_abs_int)(x)
#define m_signbit(x) \
  _Generic((x), float: maths_sign_f32, double: maths_sign_f64, default: maths_sign_int)(x)

#define MATHS_PI 3.14159265358979323846
#define MATHS_LN2 0.69314718055994530942
#define MATHS_LN10 2.30258509299404568402
#define MATHS_SQRT_HALF 0.70710678118654752440
#define MATHS_SQRT_PI 1.77245385090551602730
#define MATHS_SQRT_2PI 2.50662827463100050242

#endif

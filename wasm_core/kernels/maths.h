/* The maths functions of element-wise loops, one place for all, by the type of their argument.
 *
 * A float argument takes the float version, a complex one that of complex_maths.h, all else the
 * double one. Functions that exist in double only (special.c) serve loops that compute in double
 * for every tensor type. */
#ifndef PG_MATHS_H
#define PG_MATHS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/complex_maths.h"
#include "kernels/maths32.h"
#include "kernels/maths64.h"
#include "kernels/special.h"

#define MATHS1(name, x) _Generic((x), float: name##f, default: name)(x)
#define MATHS2(name, x, y) _Generic((x), float: name##f, default: name)(x, y)
/* Chooses among the functions for floats, doubles and complex numbers. */
#define MATHS_OF(x, of_float, of_double, of_complex) \
  _Generic((x), float: of_float, complex_f64: of_complex, default: of_double)(x)
#define m_exp(x) MATHS_OF(x, exp_f32, exp, complex_exp)
#define m_exp2(x) MATHS_OF(x, exp2_f32, exp2, complex_exp2)
#define m_expm1(x) MATHS_OF(x, expm1_f32, expm1, complex_expm1)
#define m_log(x) MATHS_OF(x, log_f32, log, complex_log)
#define m_log2(x) MATHS_OF(x, log2_f32, log2, complex_log2)
#define m_log10(x) MATHS_OF(x, log10_f32, log10, complex_log10)
#define m_log1p(x) MATHS_OF(x, log1p_f32, log1p, complex_log1p)
#define m_sqrt(x) MATHS_OF(x, sqrtf, sqrt, complex_sqrt)
#define m_sin(x) MATHS_OF(x, sinf, sin, complex_sin)
#define m_cos(x) MATHS_OF(x, cosf, cos, complex_cos)
#define m_tan(x) MATHS_OF(x, tanf, tan, complex_tan)
#define m_tanh(x) MATHS_OF(x, tanh_f32, tanh_f64, complex_tanh)
#define m_erf erf
#define m_pow(x, y) _Generic((x), float: powf, complex_f64: complex_pow, default: pow)(x, y)
#define m_copysign(x, y) _Generic((x), float: copysign_f32, default: copysign)(x, y)
#define m_nextafter(x, y) MATHS2(nextafter, x, y)
#define m_asin(x) MATHS_OF(x, asin, asin, complex_asin)
#define m_acos(x) MATHS_OF(x, acos, acos, complex_acos)
#define m_atan(x) MATHS_OF(x, atan, atan, complex_atan)
#define m_sinh(x) MATHS_OF(x, sinh_f64, sinh_f64, complex_sinh)
#define m_cosh(x) MATHS_OF(x, cosh, cosh, complex_cosh)
#define m_asinh(x) MATHS_OF(x, asinh, asinh, complex_asinh)
#define m_acosh(x) MATHS_OF(x, acosh_f64, acosh_f64, complex_acosh)
#define m_atanh(x) MATHS_OF(x, atanh, atanh, complex_atanh)
#define m_atan2 atan2
#define m_hypot hypot

/* Products and quotients, for which C's operators of complex numbers will not do. */
static inline float maths_mul_f32(float x, float y) { return x * y; }
static inline double maths_mul_f64(double x, double y) { return x * y; }
static inline uint64_t maths_mul_int(uint64_t x, uint64_t y) { return x * y; }
static inline float maths_div_f32(float x, float y) { return x / y; }
static inline double maths_div_f64(double x, double y) { return x / y; }
#define m_mul(x, y)                 \
  _Generic((x),                     \
      float: maths_mul_f32,         \
      double: maths_mul_f64,        \
      complex_f32: complex_mul_f32, \
      complex_f64: complex_mul_f64, \
      default: maths_mul_int)(x, y)
#define m_div(x, y)                 \
  _Generic((x),                     \
      float: maths_div_f32,         \
      complex_f32: complex_div_f32, \
      complex_f64: complex_div_f64, \
      default: maths_div_f64)(x, y)

static inline float maths_sigmoid_f32(float x) { return 1 / (1 + exp_f32(-x)); }
static inline double maths_sigmoid_f64(double x) { return 1 / (1 + exp(-x)); }
#define m_sigmoid(x) MATHS_OF(x, maths_sigmoid_f32, maths_sigmoid_f64, complex_sigmoid)
static inline double m_softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }
static inline float maths_rsqrt_f32(float x) { return 1 / sqrtf(x); }
static inline double maths_rsqrt_f64(double x) { return 1 / sqrt(x); }
#define m_rsqrt(x) MATHS_OF(x, maths_rsqrt_f32, maths_rsqrt_f64, complex_rsqrt)
#define m_sgn(x) ((T)(((x) > 0) - ((x) < 0)))
#define m_isfinite(x) ((T)((x) - (x) == 0))
#define m_isnan(x) ((x) != (x))
/* A complex number is infinite if either part is. Integers are finite and real. */
static inline bool maths_isinf(double x) { return (x - x != 0) & (x == x); }
static inline bool maths_isinf_complex(complex_f64 z) {
  return maths_isinf(real_part(z)) || maths_isinf(imaginary_part(z));
}
static inline bool maths_isreal(complex_f64 z) { return imaginary_part(z) == 0; }
static inline bool maths_no_int(int64_t x) { return (void)x, false; }
static inline bool maths_any_int(int64_t x) { return (void)x, true; }
static inline bool maths_any_real(double x) { return (void)x, true; }
#define m_isinf(x)                      \
  _Generic((x),                         \
      float: maths_isinf,               \
      double: maths_isinf,              \
      complex_f64: maths_isinf_complex, \
      default: maths_no_int)(x)
#define m_isreal(x)              \
  _Generic((x),                  \
      float: maths_any_real,     \
      double: maths_any_real,    \
      complex_f64: maths_isreal, \
      default: maths_any_int)(x)

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

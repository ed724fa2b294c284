/* Arithmetic of complex numbers in loops.
 *
 * Products and quotients are functions: the plain formula for a product, as PyTorch has it, where
 * C's own would look for infinities; a quotient by Smith's method (Algorithm 116, CACM 5, 1962),
 * whose squares do not overflow. */
#ifndef PG_KERNELS_COMPLEX_H
#define PG_KERNELS_COMPLEX_H

#include "ground/dtype.h"

#define real_part(z) __real__(z)
#define imaginary_part(z) __imag__(z)

#define COMPLEX_ARITHMETIC(suffix, T, R, magnitude)                                             \
  static inline T complex_of_##suffix(R re, R im) { return __builtin_complex(re, im); }         \
  static inline T complex_conj_##suffix(T z) {                                                  \
    return __builtin_complex(real_part(z), -imaginary_part(z));                                 \
  }                                                                                             \
  static inline T complex_mul_##suffix(T a, T b) {                                              \
    const R ar = real_part(a), ai = imaginary_part(a);                                          \
    const R br = real_part(b), bi = imaginary_part(b);                                          \
    return __builtin_complex(ar * br - ai * bi, ar * bi + ai * br);                             \
  }                                                                                             \
  static inline T complex_div_##suffix(T a, T b) {                                              \
    const R ar = real_part(a), ai = imaginary_part(a);                                          \
    const R br = real_part(b), bi = imaginary_part(b);                                          \
    if (!(magnitude(br) < magnitude(bi))) {                                                     \
      if (br == 0 && bi == 0) return __builtin_complex(ar / magnitude(br), ai / magnitude(bi)); \
      const R ratio = bi / br, scale = 1 / (br + bi * ratio);                                   \
      return __builtin_complex((ar + ai * ratio) * scale, (ai - ar * ratio) * scale);           \
    }                                                                                           \
    const R ratio = br / bi, scale = 1 / (bi + br * ratio);                                     \
    return __builtin_complex((ar * ratio + ai) * scale, (ai * ratio - ar) * scale);             \
  }
COMPLEX_ARITHMETIC(f32, complex_f32, float, __builtin_fabsf)
COMPLEX_ARITHMETIC(f64, complex_f64, double, __builtin_fabs)
#define complex_of(re, im) _Generic((re), float: complex_of_f32, default: complex_of_f64)(re, im)

#endif

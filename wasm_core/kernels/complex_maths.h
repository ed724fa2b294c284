/* Functions of complex numbers, in double; those of complex_f32 are computed so too. */
#ifndef PG_COMPLEX_MATHS_H
#define PG_COMPLEX_MATHS_H

#include "kernels/complex.h"

typedef complex_f64 ComplexFunction(complex_f64 z);
ComplexFunction complex_exp, complex_exp2, complex_expm1, complex_log, complex_log2, complex_log10,
    complex_log1p, complex_sqrt, complex_rsqrt, complex_reciprocal, complex_sin, complex_cos,
    complex_tan, complex_sinh, complex_cosh, complex_tanh, complex_asin, complex_acos, complex_atan,
    complex_asinh, complex_acosh, complex_atanh, complex_sigmoid, complex_sinc, complex_sgn;
complex_f64 complex_pow(complex_f64 a, complex_f64 b);
/* log(exp(a) + exp(b)) */
complex_f64 complex_logaddexp(complex_f64 a, complex_f64 b);
complex_f64 complex_spherical_j_over(double n, complex_f64 z); /* families.c */
double complex_abs(complex_f64 z);
double complex_angle(complex_f64 z);

#endif

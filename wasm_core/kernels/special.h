/* Special functions in double, accurate to a few units in the last place; `make accuracy` measures
 * it.
 *
 * Poles and arguments outside of the domain give what PyTorch gives: infinities or NaN. */
#ifndef PG_SPECIAL_H
#define PG_SPECIAL_H

#include <stdint.h>

double m_lgamma(double x); /* these four, m_igamma, m_igammac: gamma.c */
double m_digamma(double x);
double m_zeta(double s, double q);         /* sum over k >= 0 of (q + k)^-s */
double m_polygamma_of(double n, double x); /* the n-th derivative of digamma; n a whole number */
double m_erfc(double x);                   /* these six: error_function.c */
double m_erfinv(double y);
double m_erfcx(double x); /* exp(x^2) erfc(x) */
double m_ndtri(double p); /* inverse of the normal distribution */
double m_log_ndtr(double x);
double m_i0e(double x); /* exp(-|x|) I0(x); these eight: modified_bessel.c */
double m_i1e(double x);
double m_i0(double x);
double m_i1(double x);
double m_k0(double x);
double m_k1(double x);
double m_k0e(double x); /* exp(x) K0(x) */
double m_k1e(double x);
double m_bessel_j0(double x); /* these five: bessel.c */
double m_bessel_j1(double x);
double m_bessel_y0(double x);
double m_bessel_y1(double x);
double m_airy_ai(double x);
/* The families of families.c; n is a whole number. */
double m_bessel_i_over(double n, double x); /* I(n) / x^n, whose derivative is x I(n+1) / x^(n+1) */
double m_bessel_ie_over(double n, double x);   /* exp(-|x|) times the above */
double m_spherical_j_over(double n, double x); /* j(n) / x^n, its derivative -x j(n+1) / x^(n+1) */
double m_gaussian_slope(double n, double x);   /* the n-th derivative of exp(-x^2) */
double m_erfcx_integral(double n,
                        double x);          /* exp(x^2) times the n-th integral of erfc up from x */
double m_gamma_density(double a, double x); /* x^(a-1) exp(-x) / gamma(a) */
double m_cosine_to(double a, double b);     /* a / hypot(a, b): the cosine of the angle of (a, b) */
double m_sinc(double x);
double m_entr(double x);
double m_xlogy(double x, double y);
double m_xlog1py(double x, double y);
double m_igamma(double a, double x);  /* regularised, lower */
double m_igammac(double a, double x); /* regularised, upper */
double m_logaddexp(double a, double b);
double m_logaddexp2(double a, double b);
int64_t m_gcd(int64_t a, int64_t b);
int64_t m_lcm(int64_t a, int64_t b);
int64_t m_int_pow(int64_t base, int64_t exponent);

#endif

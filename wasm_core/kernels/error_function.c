/* The complementary error function and functions made of it, in double; see special.h.
 *
 * exp(x^2) erfc(x) is a polynomial for each half of 0 to 3, a continued fraction beyond. Squares in
 * exponents are taken of a head whose square is exact and of the rest. */
#include <math.h>
#include <stdbool.h>

#include "kernels/maths.h"
#include "kernels/special.h"
#include "kernels/twofold.h"

/* Row k: the coefficients of exp(x^2) erfc(x) for x from k / 2, by powers of 4 x - 2 k - 1. */
enum { PARTS = 6, TERMS = 15 };
static const double scaled_terms[PARTS][TERMS] = {
    {0.7703465477309968, -0.18580147330750357, 0.03653406715146833, -0.006219475256500871,
     0.0009473309967175951, -0.00013180360650103036, 1.6990153963934394e-05, -2.050240193159812e-06,
     2.334361484360231e-07, -2.5233464615741175e-08, 2.6025424930912117e-09,
     -2.5707122766063383e-10, 2.4421504217927796e-11, -2.302590112247247e-12,
     2.0390042474930348e-13},
    {0.5069376502931449, -0.09199317291394885, 0.014434883221956143, -0.0020286884686699707,
     0.00026090055674830685, -3.114966996112698e-05, 3.4885738931185562e-06, -3.693562169321858e-07,
     3.719539403243034e-08, -3.580145204643444e-09, 3.3068776867066163e-10, -2.9402385351525456e-11,
     2.5249276985413923e-12, -2.149725594007929e-13, 1.7336613294373468e-14},
    {0.3678229164523611, -0.052205468991152464, 0.006674723218537403, -0.0007846605374360513,
     8.598189160525897e-05, -8.868776985335674e-06, 8.674584703806646e-07, -8.09193680378784e-08,
     7.232218944423092e-09, -6.216436611027967e-10, 5.1541245734905376e-11, -4.134419908556481e-12,
     3.2792755526192155e-13, -2.4784641347778522e-14},
    {0.2849722347374364, -0.03274408637862129, 0.0034852268804429517, -0.00034781242564699874,
     3.2829371903672626e-05, -2.9501705555848023e-06, 2.537120413467957e-07, -2.096762029031305e-08,
     1.6709188565359516e-09, -1.2875250851783152e-10, 9.61829994919104e-12, -7.092040457956023e-13,
     5.0106405498923414e-14},
    {0.23108725873039188, -0.022121625702187286, 0.001999539213169141, -0.00017190719931942615,
     1.4136700602967933e-05, -1.116922346914956e-06, 8.509165573276882e-08, -6.26959861982695e-09,
     4.4789512428678205e-10, -3.1088564051129233e-11, 2.1007977700408503e-12,
     -1.4026852117686638e-13, 9.028572914325023e-15},
    {0.1936620962790687, -0.01580940939015871, 0.001234912061707679, -9.272402964060302e-05,
     6.717116739412168e-06, -4.7089363759975657e-07, 3.20268067630802e-08, -2.1178353212599243e-09,
     1.3641597543911722e-10, -8.572609719331956e-12, 5.26375688592752e-13, -3.197128029634624e-14,
     1.881610394184556e-15}};
/* The low parts of the first coefficients and of sqrt(pi), and 2 / sqrt(pi) in two parts. */
static const double two_by_root_pi = 1.1283791670955126, two_by_root_pi_low = 1.533545961316588e-17;
static const double scaled_low[PARTS] = {-1.1859420575011107e-17, -5.3359969038610505e-17,
                                         3.6098591219979323e-19,  8.568097686318156e-18,
                                         -5.7433552569479915e-18, -1.2015096841558175e-17},
                    sqrt_pi_low = -7.666586499825799e-17;

/* exp(x^2) erfc(x) for x >= 0, as a sum whose larger part comes first. */
static Twofold scaled_erfc(double x) {
  if (x >= 3) {
    if (x > 1e8) return (Twofold){1 / (x * MATHS_SQRT_PI), 0};
    double tail = x; /* 1/sqrt(pi) / (x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))) */
    for (int k = x < 6 ? 44 : 16; k > 1; k--) tail = x + k / 2. / tail;
    Twofold below = twofold_product(x, MATHS_SQRT_PI);
    below = twofold_sum(below.high, below.low + x * sqrt_pi_low + 0.5 / tail * MATHS_SQRT_PI);
    return twofold_div((Twofold){1, 0}, below);
  }
  int part = (int)(2 * x);
  const double *terms = scaled_terms[part];
  double t = 4 * x - (2 * part + 1), y = 0;
  for (int k = TERMS - 1; k > 0; k--) y = y * t + terms[k];
  Twofold sum = twofold_sum(terms[0], y * t);
  sum.low += scaled_low[part];
  return sum;
}

/* exp(factor x^2) without the power of 2. */
static Twofold gauss(double x, double factor, int *power) {
  static const double terms[] = {0.5,
                                 0.16666666666666666,
                                 0.041666666666666664,
                                 0.008333333333333333,
                                 0.001388888888888889,
                                 0.0001984126984126984,
                                 2.48015873015873e-05,
                                 2.7557319223985893e-06,
                                 2.755731922398589e-07,
                                 2.505210838544172e-08,
                                 2.08767569878681e-09,
                                 1.6059043836821613e-10};
  double head = (double)(float)x, exponent = head * head * factor, k = rint(exponent / MATHS_LN2);
  /* log 2 in two parts, so that the product with the first is exact */
  Twofold r = twofold_sum(exponent - k * 6.93147180369123816490e-01,
                          (x - head) * (x + head) * factor - k * 1.90821492927058770002e-10);
  double rest = 0;
  for (int j = sizeof terms / sizeof *terms - 1; j >= 0; j--) rest = rest * r.high + terms[j];
  Twofold sum = twofold_sum(1, r.high);
  *power = (int)k;
  return twofold_sum(sum.high, sum.low + (r.low * sum.high + r.high * r.high * rest));
}

/* exp(factor x^2) exp(t^2) erfc(t) for t >= 0. */
static double complement(double x, double factor, double t) {
  int power;
  Twofold y = twofold_mul(gauss(x, factor, &power), scaled_erfc(t));
  return scalbn(y.high + y.low, power);
}

double m_erfc(double x) {
  if (!(fabs(x) >= 0.5)) return 1 - erf(x);
  if (x > 0) return x > 28 ? 0 : complement(x, -1, x);
  return x < -7 ? 2 : 2 - complement(x, -1, -x);
}

double m_erfcx(double x) {
  if (x >= 0) {
    Twofold s = scaled_erfc(x);
    return s.high + s.low;
  }
  if (!(x > -27)) return x != x ? x : INFINITY;
  int power;
  Twofold e = gauss(x, 1, &power), s = scaled_erfc(-x);
  return scalbn(2 * e.high, power) + (scalbn(2 * e.low, power) - s.high);
}

/* Solves erfc(x) = c for c in (0, 1], from the leading terms of its logarithm, by Newton's
 * method on the logarithm, in the end by Halley's on the function. */
static double erfc_inverse(double c) {
  double l = -log(c * MATHS_SQRT_PI);
  double x = c > 0.25 ? (1 - c) * MATHS_SQRT_PI / 2 : sqrt(l - 0.5 * log(l > 1 ? l : 1));
  for (int k = 0; k < 60; k++) {
    /* log erfc(x) = log(scaled) - x^2; its derivative is -2 / (sqrt(pi) scaled) */
    double y = m_erfcx(x), step = (log(y) - x * x - log(c)) * y * MATHS_SQRT_PI / 2;
    x += step;
    if (fabs(step) <= 1e-6 * fabs(x)) break;
  }
  if (c < 1e-290) return x;
  double step = (m_erfc(x) - c) * exp(x * x) * MATHS_SQRT_PI / 2;
  return x + step / (1 - x * step);
}

/* erf(x) - y for |x| < 0.5, where erf is close to y: by the power series over x, of which the first
 * term is a sum of two numbers. */
static double erf_less(double x, double y) {
  static const double terms[] = {-0.3333333333333333,     0.1,
                                 -0.023809523809523808,   0.004629629629629629,
                                 -0.0007575757575757576,  0.00010683760683760684,
                                 -1.3227513227513228e-05, 1.4589169000933706e-06,
                                 -1.4503852223150468e-07, 1.3122532963802806e-08,
                                 -1.0892221037148573e-09, 8.35070279514724e-11,
                                 -5.9477940136376354e-12};
  double z = x * x, rest = 0;
  for (int k = sizeof terms / sizeof *terms - 1; k >= 0; k--) rest = (rest + terms[k]) * z;
  Twofold first = twofold_product(x, two_by_root_pi);
  return (first.high - y) + (first.low + (x * two_by_root_pi_low + first.high * rest));
}

double m_erfinv(double y) {
  double size = fabs(y);
  if (!(size <= 1)) return NAN;
  if (size == 1) return copysign(INFINITY, y);
  if (size > 0.5) return copysign(erfc_inverse(1 - size), y);
  double x = y * MATHS_SQRT_PI / 2;
  for (int k = 0; k < 40; k++) {
    double step = erf_less(x, y) * exp(x * x) * MATHS_SQRT_PI / 2;
    x -= step / (1 + x * step); /* Halley: the second derivative is -2 x times the first */
    if (fabs(step) <= 1e-6 * fabs(x)) break;
  }
  return x;
}

double m_ndtri(double p) {
  if (p == 0) return -INFINITY;
  if (p == 1) return INFINITY;
  if (!(p > 0 && p < 1)) return NAN;
  return p < 0.25 ? -erfc_inverse(2 * p) / MATHS_SQRT_HALF : m_erfinv(2 * p - 1) / MATHS_SQRT_HALF;
}

double m_log_ndtr(double x) {
  double t = fabs(x) * MATHS_SQRT_HALF;
  if (x < -1) return log(m_erfcx(t) / 2) - x * x / 2;
  return log1p(-(x > 39 ? 0 : x > 0 ? complement(x, -0.5, t) : m_erfc(-t)) / 2);
}

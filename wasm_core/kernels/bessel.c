/* Bessel functions of the first and second kind of orders 0 and 1, and Airy's Ai, in double; see
 * special.h. Numbers in brackets are of the Digital Library of Mathematical Functions,
 * dlmf.nist.gov.
 *
 * Errors are a few units in the last place of the modulus, sqrt(J^2 + Y^2); so beside a zero of a
 * function they are more of its own. */
#include <math.h>

#include "kernels/maths.h"
#include "kernels/special.h"

static const double epsilon = 2.220446049250313e-16, euler = 0.57721566490153286;
enum { MOST_TERMS = 60 };

/* J and Y of orders 0 and 1 at one x. */
typedef struct {
  double j[2], y[2];
} Bessel;

/* For x in (0, 25]: Miller's backward recurrence [3.6(iii)], from an order whose J is negligible
 * beside J0; the scale is found by J0 + 2 J2 + 2 J4 + ... = 1 [10.12.4], and Y by Neumann's series
 * [10.23.16, 10.23.17]. */
static Bessel bessel_near(double x) {
  int order = 0;
  for (double size = 1; size > 1e-20;) size *= x / 2 / ++order;
  double here = 1e-20, above = 0, sum = 0, y0 = 0, y1 = 0;
  for (int k = order; k > 0; k--) {
    int m = k / 2, even = k % 2 == 0;
    double term = m % 2 ? -here : here;
    if (even) {
      sum += 2 * here;
      y0 += term / m;
    } else if (m) y1 += k * term / ((double)m * (m + 1));
    double below = 2 * k * here / x - above;
    above = here;
    here = below;
  }
  sum += here;
  double j0 = here / sum, j1 = above / sum, l = log(x / 2) + euler;
  return (Bessel){{j0, j1},
                  {(l * j0 - 2 * (y0 / sum)) * (2 / MATHS_PI),
                   ((l - 1) * j1 - y1 / sum - j0 / x) * (2 / MATHS_PI)}};
}

/* J and Y of one order by Hankel's expansions for large x [10.17.3, 10.17.4], given the sine and
 * cosine of x - order pi / 2 - pi / 4. */
static void hankel(int order, double x, double sine, double cosine, double *j, double *y) {
  double sums[2] = {1, 0}, term = 1;
  for (int k = 1; k < MOST_TERMS && fabs(term) > epsilon / 4; k++) {
    double odd = 2 * k - 1;
    term *= (4 * order - odd * odd) / (8 * k * x);
    sums[k % 2] += k % 4 < 2 ? term : -term;
  }
  double size = sqrt(2 / (MATHS_PI * x));
  *j = size * (cosine * sums[0] - sine * sums[1]);
  *y = size * (sine * sums[0] + cosine * sums[1]);
}

static Bessel bessel_far(double x) {
  double sine = (sin(x) - cos(x)) * MATHS_SQRT_HALF, cosine = (sin(x) + cos(x)) * MATHS_SQRT_HALF;
  Bessel b;
  hankel(0, x, sine, cosine, &b.j[0], &b.y[0]);
  hankel(1, x, -cosine, sine, &b.j[1], &b.y[1]);
  return b;
}

static Bessel bessel(double x) { return x <= 25 ? bessel_near(x) : bessel_far(x); }

/* NaN at infinity, as in PyTorch. */
double m_bessel_j0(double x) { return x == 0 ? 1 : bessel(fabs(x)).j[0]; }
double m_bessel_j1(double x) { return x == 0 ? x : copysign(1, x) * bessel(fabs(x)).j[1]; }
double m_bessel_y0(double x) { return x > 0 ? bessel(x).y[0] : x == 0 ? -INFINITY : NAN; }
double m_bessel_y1(double x) { return x > 0 ? bessel(x).y[1] : x == 0 ? -INFINITY : NAN; }

/* ------------------------------------------------------------ Ai */

enum { FAR = 10 };
/* Ai and its derivative at the whole numbers from -FAR to FAR. */
static const double at_whole[][2] = {
    {0.04024123848644319, 0.99626504413279005},
    {-0.022133721547341403, -0.97566398092633155},
    {-0.052705050356386202, 0.93556093819830655},
    {0.18428083525050565, -0.77100816841012654},
    {-0.3291451736298231, 0.34593548728134288},
    {0.35076100902411433, 0.32719281855444315},
    {-0.070265532949289514, -0.79062857536858133},
    {-0.37881429367765806, 0.31458376921659881},
    {0.22740742820168558, 0.61825902074169103},
    {0.53556088329235207, -0.01016056711664521},
    {0.35502805388781722, -0.25881940379280682},
    {0.13529241631288141, -0.1591474412967932},
    {0.034924130423274378, -0.053090384433653631},
    {0.0065911393574607192, -0.011912976705951319},
    {0.00095156385120480184, -0.001958640950204179},
    {0.00010834442813607442, -0.00024741389086846248},
    {9.9476943602528888e-06, -2.4765200397034955e-05},
    {7.4921288639971666e-07, -2.0081508947387919e-06},
    {4.6922076160992316e-08, -1.3414392979067865e-07},
    {2.4711684308724899e-09, -7.4806413896589461e-09},
    {1.1047532552898686e-10, -3.5206336767389237e-10},
};

/* Taylor's series at a whole number, its coefficients by Ai'' = x Ai [9.2.1]. Above 0 it is taken
 * at the next number above, where all terms have one sign. */
static double airy_near(double x) {
  enum { TERMS = 36 };
  double whole = x > 0 ? ceil(x) : rint(x), h = x - whole;
  const double *from = at_whole[(int)whole + FAR];
  double before = 0, term = from[0], next = from[1] * h, sum = 0;
  for (int k = 0; k < TERMS; k++) {
    sum += term;
    double after = (whole * term + h * before) * h * h / ((k + 1) * (k + 2));
    before = term;
    term = next;
    next = after;
  }
  return sum;
}

/* The expansions for large x on either side [9.7.5, 9.7.9] in 1 / z, z = 2/3 |x|^(3/2). As z is the
 * exponent or the phase, its rounding error is taken into account: z + rest is exact. */
static double airy_far(double x) {
  double size = fabs(x), root = sqrt(size), root_rest = fma(-root, root, size) / (2 * root);
  double cube = size * root, cube_rest = fma(size, root, -cube) + size * root_rest;
  double z = cube * 2 / 3, rest = (fma(-3, z, 2 * cube) + 2 * cube_rest) / 3;
  double sums[2] = {1, 0}, term = 1, scale = 1 / (sqrt(MATHS_PI) * sqrt(root));
  if (x > 0 && !(z < 750)) return isfinite(x) ? 0 : NAN;
  for (int k = 1; k < MOST_TERMS && fabs(term) > epsilon / 4; k++) {
    term *= (6. * k - 5) * (6. * k - 3) * (6. * k - 1) / (216. * k * (2 * k - 1)) / z;
    sums[k % 2] += (x > 0 ? k % 2 == 0 : k % 4 < 2) ? term : -term;
  }
  if (x > 0) return exp(-z) * (1 - rest) * scale / 2 * (sums[0] + sums[1]);
  double s = sin(z) * cos(rest) + cos(z) * sin(rest), c = cos(z) * cos(rest) - sin(z) * sin(rest);
  return scale * MATHS_SQRT_HALF * ((c + s) * sums[0] + (s - c) * sums[1]);
}

/* NaN at infinity, as in PyTorch. */
double m_airy_ai(double x) { return fabs(x) <= FAR ? airy_near(x) : airy_far(x); }

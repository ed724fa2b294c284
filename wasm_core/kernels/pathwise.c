/* Pathwise derivatives of gamma and beta draws; see pathwise.h.
 *
 * Each splits the plane of parameter and value into a series where x is small, a saddle point
 * expansion (Rice) where parameters are large, and a rational fit elsewhere. */
#include "kernels/pathwise.h"

#include <math.h>

#include "kernels/maths.h"

/* c[0] + x (c[1] + x (...)) */
static double polynomial(const double *c, int n, double x) {
  double sum = c[n - 1];
  for (int k = n - 2; k >= 0; k--) sum = c[k] + x * sum;
  return sum;
}

/* digamma. Poles have the sign that the formulas below expect of them. Its terms are of type T as
 * PyTorch's are. Logarithms are rounded to the nearest, as PyTorch's library nearly always rounds
 * them: a difference of two values leaves little but that rounding. */
#define PSI(name, T)                                                                       \
  static T name(T x) {                                                                     \
    static const double series[] = {1. / 12,  -1. / 120,      1. / 252, -1. / 240,         \
                                    1. / 132, -691. / 32760., 1. / 12};                    \
    if (x <= 0 && x == m_floor(x)) return (T)INFINITY;                                     \
    double sum = 0;                                                                        \
    if (x < 0) { /* psi(x) = psi(1 - x) - pi / tan(pi x) */                                \
      sum = (double)(-(T)MATHS_PI / (T)tan((double)((T)MATHS_PI * x)));                    \
      x = 1 - x;                                                                           \
    }                                                                                      \
    for (; x < 10; x += 1) sum -= (double)(1 / x);                                         \
    double inverse = 1 / (double)(x * x), rest = inverse * polynomial(series, 7, inverse); \
    return (T)(sum + (double)(T)log((double)x) - (double)((T)0.5 / x) - rest);             \
  }
PSI(psi_float, float)
PSI(psi_double, double)

/* ------------------------------------------------------------ gamma */

/* F(x) = x^a sum over k of (-x)^k / (k! (a + k)), up to a factor. */
static double gamma_near_zero(double a, double x) {
  double term = 1, sum = 0, sum_by_a = 0;
  for (int k = 0; k <= 5; k++) {
    if (k) term *= -x / k;
    double at = a + k;
    sum += term / at;
    sum_by_a += term / (at * at);
  }
  double power = m_pow(x, a), density = m_pow(x, a - 1) * m_exp(-x);
  double by_a = (m_log(x) - psi_double(a)) * (power * sum) - power * sum_by_a;
  double found = -by_a / density;
  return found == found ? found : 0;
}

static double gamma_of_large(double a, double x) {
  if (0.9f * a <= x && x <= 1.1f * a) { /* the formula below is 0 / 0 at x == a */
    double scale = 1 + 24 * a * (1 + 12 * a), square = a * a;
    double sum = 1440 * square + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x);
    return scale * sum / (1244160 * square * square);
  }
  double root = m_sqrt(8 * a), apart = a - x, log_ratio = m_log(x / a);
  double tail = m_pow(x - a - a * log_ratio, -1.5);
  double both = root / apart + (x < a ? -tail : tail);
  double slope = log_ratio * both - m_sqrt(2 / a) * (a + x) / (apart * apart);
  double stirling = 1 + 1 / (12 * a) * (1 + 1 / (24 * a));
  return -stirling * (x * slope) / root;
}

/* Coefficients by the power of log(x / a); in a row those of log(a) in the numerator, then in the
 * denominator. */
static const double gamma_fit[3][8] = {
    {0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084},
    {0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915,
     -0.00058392623},
    {0.040121004, -0.0065914022, -0.0026286047, -0.0013441777, 0.017050642, -0.0021309326,
     0.00085092367, -1.5247877e-07}};

double pathwise_gamma(double a, double x) {
  if (x < 0.8f) return gamma_near_zero(a, x);
  if (a > 8) return gamma_of_large(a, x);
  double u = m_log(x / a), v = m_log(a), c[8];
  for (int i = 0; i < 8; i++) {
    double by_u[3] = {gamma_fit[0][i], gamma_fit[1][i], gamma_fit[2][i]};
    c[i] = polynomial(by_u, 3, u);
  }
  return m_exp(polynomial(c, 4, v) / polynomial(c + 4, 4, v));
}

/* ------------------------------------------------------------ Dirichlet, which is beta */

/* The series of x near 0, in the type T of the operands.
 *
 * The first function is the derivative by a: F(x) = x^a sum over k of (1 - b) ... (k - b) x^k / (k!
 * (a + k)), up to a factor. The second is that by b. */
#define BETA_NEAR_ZERO(T)                                                          \
  static T beta_near_zero_##T(T x, T a, T b) {                                     \
    T factor = psi_##T(a) - psi_##T(a + b) - (T)log((double)x), term = 1, sum = 0; \
    for (int i = 0; i <= 10; i++) {                                                \
      T k = (T)i;                                                                  \
      if (i) term *= (k - b) * x / k;                                              \
      sum += term / (a + k) * (factor + 1 / (a + k));                              \
    }                                                                              \
    T found = x * m_pow(1 - x, -b) * sum;                                          \
    return found == found ? found : 0;                                             \
  }                                                                                \
  static T beta_by_other_near_zero_##T(T x, T a, T b) {                            \
    T factor = psi_##T(a + b) - psi_##T(b), sum = factor / a;                      \
    T term = 1, product = 1, product_by_b = 0;                                     \
    for (int i = 1; i <= 8; i++) {                                                 \
      T k = (T)i;                                                                  \
      term *= -x / k;                                                              \
      product_by_b = product_by_b * (b - k) + product;                             \
      product *= b - k;                                                            \
      sum += term / (a + k) * (product_by_b + factor * product);                   \
    }                                                                              \
    T found = -m_pow(1 - x, 1 - b) * sum;                                          \
    return found == found ? found : 0;                                             \
  }
BETA_NEAR_ZERO(float)
BETA_NEAR_ZERO(double)

/* The first terms of Stirling's series. */
static double stirling(double a) { return 1 + 1 / (12 * a) + 1 / (288 * a * a); }

static double beta_of_large(double x, double a, double b) {
  double total = a + b, mean = a / total, deviation = m_sqrt(a * b / (total + 1)) / total;
  if (mean - 0.1 * deviation <= x && x <= mean + 0.1 * deviation) { /* 0 / 0 below, at the mean */
    double by_a[5] = {47 * x * (b * b) * (b * b), (43 + 20 * (16 + 27 * b) * x) * (b * b) * b,
                      3 * (59 + 180 * b - 90 * x) * (b * b),
                      (453 + 1620 * b * (1 - x) - 455 * x) * b, 8 * (1 - x) * (135 * b - 11)};
    double scale = (1 + 12 * a) * (1 + 12 * b) / (total * total);
    return scale / (1 - x) * polynomial(by_a, 5, a) /
           (12960 * a * a * a * b * b * (1 + 12 * total));
  }
  double away = a * (x - 1) + b * x;
  double first = (2 * (a * a) * (x - 1) + a * b * (x - 1) - x * (b * b)) /
                 (m_sqrt(2 * a / b) * m_pow(total, 1.5) * away * away);
  double log_a = m_log(a / (total * x)), log_b = m_log(b / (total * (1 - x)));
  double tail = m_pow(b * log_b + a * log_a, -1.5);
  double second = m_sqrt(8 * a * b / total) / away + (x < mean ? tail : -tail);
  return -x / m_sqrt(2 * a * b / total) * (stirling(a) * stirling(b) / stirling(total)) *
         (first + 0.5 * log_a * second);
}

/* Coefficients of the numerator and of the denominator, by the powers of u, a and b below. */
static const double beta_fit[2][3][3][4] = {
    {{{1.003668233, -0.01061107488, -0.0657888334, 0.01201642863},
      {0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033},
      {-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013}},
     {{0.221950385, -0.3187676331, 0.01799915743, 0.01074823814},
      {-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057},
      {0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05}},
     {{-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565},
      {0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181},
      {0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05}}},
    {{{1, -0.02924021934, -0.04438342661, 0.007285809825},
      {0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521},
      {-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149}},
     {{0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273},
      {0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956},
      {-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05}},
     {{0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05},
      {0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05},
      {-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06}}}};

static double fit(const double c[3][3][4], double u, double a, double b) {
  double by_u[3];
  for (int i = 0; i < 3; i++) {
    double by_a[3];
    for (int j = 0; j < 3; j++) by_a[j] = polynomial(c[i][j], 4, b);
    by_u[i] = polynomial(by_a, 3, a);
  }
  return polynomial(by_u, 3, u);
}

/* The operands are of type T, as are the terms that PyTorch computes in that type. */
#define PATHWISE_DIRICHLET(name, T)                                                            \
  T name(T x_, T alpha_, T total_) {                                                           \
    double x = (double)x_, alpha = (double)alpha_, total = (double)total_;                     \
    double beta = total - alpha, edge = total * x * (1 - x);                                   \
    if (x <= 0.5 && edge < 2.5) return beta_near_zero_##T(x_, alpha_, (T)beta);                \
    if (x >= 0.5 && edge < 0.75) return -beta_by_other_near_zero_##T(1 - x_, (T)beta, alpha_); \
    if (alpha > 6 && beta > 6) return (T)beta_of_large(x, alpha, beta);                        \
    double u = m_log(x), a = m_log(alpha) - u, b = m_log(total) - a;                           \
    double rough = x * (double)(psi_##T(total_) - psi_##T(alpha_)) / beta;                     \
    return (T)(fit(beta_fit[0], u, a, b) / fit(beta_fit[1], u, a, b) * rough);                 \
  }
PATHWISE_DIRICHLET(pathwise_dirichlet_f32, float)
PATHWISE_DIRICHLET(pathwise_dirichlet_f64, double)

/* Orthogonal polynomials of a degree, by their recurrences, in the type of the operands. No
 * gradients.
 *
 * Degrees lose their fraction. For a negative degree, NaN or infinity the value is 0. High degrees
 * are computed in double, and by a formula where there is one. */
#include <math.h>

#include "elementwise_rows.h"
#include "ops/elementwise/elementwise.h"

enum { HIGH = 1000 };

static bool at_end(double x) { return x == 1 || x == -1; }
static double sign_at(double x, int64_t n) { return x < 0 && n % 2 ? -1 : 1; }

/* Values from x and the degree alone, NAN without a formula. In [-1, 1] Chebyshev's polynomials are
 * ratios of sines and cosines (Abramowitz and Stegun 22.3.15 and 16), with limits at the ends. */
static double known_t(double x, int64_t n) {
  return at_end(x) ? sign_at(x, n) : cos((double)n * acos(x));
}
static double known_u(double x, int64_t n) {
  const double turn = acos(x), m = (double)n + 1;
  return at_end(x) ? sign_at(x, n) * m : sin(m * turn) / sin(turn);
}
static double known_v(double x, int64_t n) {
  const double half = acos(x) / 2, m = 2 * (double)n + 1;
  return at_end(x) ? sign_at(x, n) * (x < 0 ? m : 1) : cos(m * half) / cos(half);
}
static double known_w(double x, int64_t n) {
  const double half = acos(x) / 2, m = 2 * (double)n + 1;
  return at_end(x) ? sign_at(x, n) * (x > 0 ? m : 1) : sin(m * half) / sin(half);
}
static double known_l(double x, int64_t n) {
  (void)n;
  return x == 0 ? 1 : NAN;
}
static double known_p(double x, int64_t n) { return at_end(x) ? sign_at(x, n) : NAN; }
static double unknown(double x, int64_t n) {
  (void)x, (void)n;
  return NAN;
}

/* X(name, the value at degree 1, the value at degree k + 1 from p at k and q at k - 1, a formula
 * for any degree). K(n) is the integer n as a T. */
#define RECURRENCES(X)                                                          \
  X(CHEBYSHEV_T, x, 2 * x * p - q, known_t)                                     \
  X(CHEBYSHEV_U, 2 * x, 2 * x * p - q, known_u)                                 \
  X(CHEBYSHEV_V, 2 * x - 1, 2 * x * p - q, known_v)                             \
  X(CHEBYSHEV_W, 2 * x + 1, 2 * x * p - q, known_w)                             \
  X(HERMITE_H, 2 * x, 2 * x * p - K(2 * k) * q, unknown)                        \
  X(HERMITE_HE, x, (x * p) - K(k) * q, unknown)                                 \
  X(LAGUERRE_L, 1 - x, ((K(2 * k + 1) - x) * p - K(k) * q) / K(k + 1), known_l) \
  X(LEGENDRE_P, x, (K(2 * k + 1) * x * p - K(k) * q) / K(k + 1), known_p)

#define K(n) ((T)(n))
/* p at the degree; stops at a NaN */
#define STEPS(FIRST, NEXT)                         \
  T q = 1, p = FIRST;                              \
  for (int64_t k = 1; k < degree && p == p; k++) { \
    const T next = NEXT;                           \
    q = p;                                         \
    p = next;                                      \
  }
#define AT_HIGH(name, FIRST, NEXT, KNOWN)               \
  static double name##_high(double x, int64_t degree) { \
    typedef double T;                                   \
    const double known = KNOWN(x, degree);              \
    if (known == known) return known;                   \
    STEPS(FIRST, NEXT)                                  \
    return p;                                           \
  }
/* a: x, moved from [0, 1] to [-1, 1] if k_[0] is not 0; b: the degree. */
#define LOOP(name, A, FIRST, NEXT)                                                             \
  static SMALL void name##_##A(char *const *to, size_t n, const double *k_, LoopScratch *s_) { \
    typedef A T;                                                                               \
    T *out = (T *)(void *)to[0];                                                               \
    const T *a = (const T *)(const void *)to[1], *b = (const T *)(const void *)to[2];          \
    (void)s_;                                                                                  \
    for (size_t i = 0; i < n; i++) {                                                           \
      const T x = k_[0] != 0 ? 2 * a[i] - 1 : a[i];                                            \
      const int64_t degree = b[i] >= 1 && b[i] < (T)9007199254740992 ? (int64_t)b[i] : 0;      \
      if (degree > HIGH) {                                                                     \
        out[i] = (T)name##_high((double)x, degree);                                            \
        continue;                                                                              \
      }                                                                                        \
      STEPS(FIRST, NEXT)                                                                       \
      out[i] = degree ? p : b[i] > -1 && b[i] < 1 ? 1 : 0;                                     \
    }                                                                                          \
  }
#define LOOPS_OF(name, FIRST, NEXT, KNOWN) \
  AT_HIGH(name, FIRST, NEXT, KNOWN)        \
  LOOP(name, float, FIRST, NEXT) LOOP(name, double, FIRST, NEXT)
RECURRENCES(LOOPS_OF)

#define ROW(name, FIRST, NEXT, KNOWN) [name] = {.f32 = name##_float, .f64 = name##_double},
static const Loops polynomials[] = {RECURRENCES(ROW)};
#undef ROW

#define CHEBYSHEV_NAMES(kind) {"chebyshev_polynomial_" kind, "shifted_chebyshev_polynomial_" kind}
static const char *const names[][2] = {
    [CHEBYSHEV_T] = CHEBYSHEV_NAMES("t"),     [CHEBYSHEV_U] = CHEBYSHEV_NAMES("u"),
    [CHEBYSHEV_V] = CHEBYSHEV_NAMES("v"),     [CHEBYSHEV_W] = CHEBYSHEV_NAMES("w"),
    [HERMITE_H] = {"hermite_polynomial_h"},   [HERMITE_HE] = {"hermite_polynomial_he"},
    [LAGUERRE_L] = {"laguerre_polynomial_l"}, [LEGENDRE_P] = {"legendre_polynomial_p"}};

/* shifted: at 2 x - 1 */
Tensor *t_polynomial(Polynomial which, bool shifted, Tensor *x, Tensor *degree) {
  OP_ENTERED_AS(t_polynomial(which, shifted, x, degree), names[which][shifted], x, degree);
  if (blocked(x, degree)) return NULL;
  Tensor *in[2] = {x, degree};
  DType d = elementwise_float_dtype(elementwise_result_dtype(2, in));
  if (dtype_is_half(d)) return dtype_no_kernel_of(names[which][shifted], d);
  return elementwise_run(&polynomials[which], &(Tensors){2, in}, d,
                         (const double[]){shifted, 0, 0});
}

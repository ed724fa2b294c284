/* Arithmetic with options or with rules of its own: scaled sums, rounding division, powers,
 * bounds, selection.
 *
 * Host numbers that take part (alpha, bounds, values) are 0-dim operands of the loops, so
 * integers stay exact. Gradients carry their formula. */
#include <string.h>

#include "elementwise_rows.h"
#include "ground/memory.h"
#include "kernels/maths.h"
#include "ops/elementwise/elementwise.h"
#include "ops/view/copy.h"
#include "tape/forward.h"

static DType common_dtype(Tensor *a, Tensor *b) {
  return elementwise_result_dtype(2, (Tensor *[]){a, b});
}
static double number_f(const Tensor *t) { return tensor_get_f(t, 0); }
static Tensor *zero(void) { return tensor_wrapped_f(0); }

/* ------------------------------------------------------------ add, sub */

LOOPS_BEGIN
LOOPS(ANY_QUICK_COMPLEX, 2, add2, (W)a + (W)b)
LOOPS(ANY_QUICK_COMPLEX, 2, sub2, (W)a - (W)b)
LOOPS(ANY_COMPLEX, 3, add3, (W)a + m_mul((W)c, (W)b))
LOOPS(NUMBER_COMPLEX, 3, sub3, (W)a - m_mul((W)c, (W)b))
LOOPS_END

bool elementwise_check_alpha(DType d, const Tensor *alpha) {
  if (alpha->dtype == DT_BOOL && d != DT_BOOL)
    return fail(ERR_RUNTIME, "Boolean alpha only supported for Boolean results.");
  if (dtype_is_complex(tensor_dtype(alpha)) && !dtype_is_complex(d))
    return fail(ERR_RUNTIME, "For non-complex input tensors, argument alpha must not be a complex "
                             "number.");
  if (dtype_is_float(tensor_dtype(alpha)) && !dtype_is_inexact(d))
    return fail(ERR_RUNTIME,
                "For integral input tensors, argument alpha must not be a floating point number.");
  return element_number_fits(alpha, d);
}

static bool check_sub(const Tensor *a, const Tensor *b) {
  if (a->dtype == DT_BOOL && b->dtype == DT_BOOL)
    return fail(ERR_RUNTIME, "Subtraction, the `-` operator, with two bool tensors is not "
                             "supported. Use the `^` or `logical_xor()` operator instead.");
  if (a->dtype == DT_BOOL || b->dtype == DT_BOOL)
    return fail(ERR_RUNTIME,
                "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
                "trying to invert a mask, use the `~` or `logical_not()` operator instead.");
  return true;
}

/* y = a + alpha b:  a' = g,  b' = alpha g. */
static void scaled_vjp(Node *n, Tensor *g, Tensor **gi, double sign) {
  double alpha = sign * n->numbers[0].f;
  if (needs(n, 0)) gi[0] = g;
  if (needs(n, 1)) gi[1] = alpha == 1 ? g : alpha == -1 ? t_neg(g) : t_mul_f(g, alpha);
}
GRAD_SPARSE(AddBackward0, "| alpha:scalar") { scaled_vjp(n, g[0], gi, 1); }
GRAD_SPARSE(SubBackward0, "| alpha:scalar") { scaled_vjp(n, g[0], gi, -1); }

Node *elementwise_sum_node(Tensor *a, Tensor *b, double alpha, bool negated) {
  Node *n = node_new(negated ? &SubBackward0 : &AddBackward0, 0, 1, a, b, NULL);
  num_f(n, 0, alpha);
  return n;
}

/* y = b - alpha a, recorded as rsub(a, b); a number b has no edge. */
static void rsub_vjp(Node *n, Tensor *g, Tensor **gi) {
  double alpha = n->numbers[0].f;
  if (needs(n, 0)) gi[0] = alpha == 1 ? t_neg(g) : t_mul_f(g, -alpha);
  if (n->n_edges > 1 && needs(n, 1)) gi[1] = g;
}
GRAD(RsubBackward0, "| alpha:scalar")
{ rsub_vjp(n, g[0], gi); }
GRAD(RsubBackward1, "| alpha:scalar")
{ rsub_vjp(n, g[0], gi); }

typedef struct {
  const NodeType *node;
  const Loops *two, *three; /* without and with alpha */
  bool reversed;
} Scaled;

static Tensor *add_scaled(const Scaled *op, Tensor *a, Tensor *b, Tensor *alpha) {
  DType d = common_dtype(a, b);
  if (alpha && !elementwise_check_alpha(d, alpha)) return NULL;
  if (alpha && dtype_is_complex(tensor_dtype(alpha))) { /* a node's number is real */
    b = t_mul(b, alpha);
    alpha = NULL;
  }
  double f = alpha ? number_f(alpha) : 1;
  Node *n = !op->reversed   ? node_new(op->node, 0, 1, a, b, NULL)
            : is_wrapped(a) ? node_new(op->node, 0, 1, b, NULL)
                            : node_new(op->node, 0, 1, b, a, NULL);
  num_f(n, 0, f);
  Operands pair = operands(d, a, b, false);
  Tensor *in[3] = {pair.in[0], pair.in[1], alpha};
  return set_history(
      elementwise_run(f == 1 ? op->two : op->three, &(Tensors){f == 1 ? 2 : 3, in}, d, NULL), n);
}

/* a + alpha * b; alpha NULL: 1 */
Tensor *t_add_scaled(Tensor *a, Tensor *b, Tensor *alpha) {
  OP_ENTERED(t_add_scaled, "add", a, b, alpha);
  static const Scaled op = {&AddBackward0, add2, add3, false};
  return blocked(a, b) ? NULL : add_scaled(&op, a, b, alpha);
}

Tensor *t_sub_scaled(Tensor *a, Tensor *b, Tensor *alpha) {
  OP_ENTERED(t_sub_scaled, "sub", a, b, alpha);
  if (blocked(a, b) || !check_sub(a, b)) return NULL;
  static const Scaled op = {&SubBackward0, sub2, sub3, false};
  return add_scaled(&op, a, b, alpha);
}

Tensor *t_rsub(Tensor *a, Tensor *b, Tensor *alpha) {
  OP_ENTERED(t_rsub, "rsub", a, b, alpha);
  if (blocked(a, b) || !check_sub(a, b)) return NULL;
  static const Scaled of_tensor = {&RsubBackward0, sub2, sub3, true},
                      of_number = {&RsubBackward1, sub2, sub3, true};
  return add_scaled(is_wrapped(b) ? &of_number : &of_tensor, b, a, alpha);
}

Tensor *t_add(Tensor *a, Tensor *b) { return t_add_scaled(a, b, NULL); }
Tensor *t_sub(Tensor *a, Tensor *b) { return t_sub_scaled(a, b, NULL); }
Tensor *t_mul_f(Tensor *a, double b) {
  OP_ENTERED(t_mul_f, "mul", a, b);
  return blocked(a) ? NULL
                    : node_rename_with(t_mul(a, tensor_wrapped_f(b)), "MulBackward1", "- other#");
}
Tensor *t_div_f(Tensor *a, double b) {
  OP_ENTERED(t_div_f, "div", a, b);
  return blocked(a) ? NULL
                    : node_rename_with(t_div(a, tensor_wrapped_f(b)), "DivBackward1", "- other#");
}
Tensor *t_add_f(Tensor *a, double b) {
  OP_ENTERED(t_add_f, "add", a, b);
  return blocked(a) ? NULL : node_rename_with(t_add(a, tensor_wrapped_f(b)), "AddBackward1", "");
}

/* ------------------------------------------------------------ division */

/* Division and remainder that round down, like Python's, from mod = fmod(a, b); without branches,
 * for vectors. */
#define FLOOR_DIV(T)                                                               \
  static inline T floor_div_##T(T a, T b, T mod) {                                 \
    T div = (a - mod) / b - (((mod != 0) & ((b < 0) != (mod < 0))) ? (T)1 : (T)0); \
    T whole = m_floor(div), quotient = a / b;                                      \
    whole = div - whole > (T)0.5 ? whole + 1 : whole;                              \
    whole = div == 0 ? m_copysign((T)0, quotient) : whole;                         \
    return b == 0 ? quotient : whole;                                              \
  }                                                                                \
  static inline T remainder_##T(T b, T mod) {                                      \
    return ((mod != 0) & ((b < 0) != (mod < 0))) ? mod + b : mod;                  \
  }
FLOOR_DIV(float)
FLOOR_DIV(double)
static double round_down(double a, double b) { return floor_div_double(a, b, fmod(a, b)); }
static double modulus(double a, double b) { return remainder_double(b, fmod(a, b)); }

/* b is not 0 here; INT64_MIN / -1 wraps around. */
static int64_t int_div(int64_t a, int64_t b) {
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static int64_t int_mod(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
static int64_t int_floor_div(int64_t a, int64_t b) {
  return int_div(a, b) - (int_mod(a, b) != 0 && (a < 0) != (b < 0));
}
static int64_t int_floor_mod(int64_t a, int64_t b) {
  int64_t mod = int_mod(a, b);
  return mod != 0 && (a < 0) != (b < 0) ? mod + b : mod;
}
#define BY_TYPE(f32, f64, i64, a, b) _Generic((a), float: f32, double: f64, default: i64)(a, b)
static float trunc_div_float(float a, float b) { return truncf(a / b); }
static double trunc_div_double(double a, double b) { return trunc(a / b); }

LOOPS_BEGIN
LOOPS(NUMBER, 2, trunc_div, BY_TYPE(trunc_div_float, trunc_div_double, int_div, a, b))
/* The loop of float over blocks: `mod` is fmod(a, b). */
#define MODULO(fn, VALUE)                                                                         \
  static void fn##_f32(char *const *p, size_t n, const double *k, LoopScratch *s) {               \
    float *y = (float *)(void *)p[0];                                                             \
    const float *x1 = (const float *)(const void *)p[1], *x2 = (const float *)(const void *)p[2]; \
    (void)k;                                                                                      \
    for (size_t m; n; n -= m, y += m, x1 += m, x2 += m) {                                         \
      const float *mods = value_fmod_part_f32(x1, x2, n, &m, s);                                  \
      FLAT_FOR_float for (size_t i = 0; i < FLAT_COUNT_float(m); i++) {                           \
        float a = x1[i], b = x2[i], mod = mods[i];                                                \
        (void)a, (void)b;                                                                         \
        y[i] = VALUE;                                                                             \
      }                                                                                           \
    }                                                                                             \
  }
MODULO(floor_div, floor_div_float(a, b, mod))
MODULO(fmod_loops, mod)
MODULO(remainder_loops, remainder_float(b, mod))
LOOPS(NUMBER_OWN, 2, floor_div, BY_TYPE(round_down, round_down, int_floor_div, a, b))
LOOPS(NUMBER_OWN, 2, fmod_loops, BY_TYPE(fmod, fmod, int_mod, a, b))
LOOPS(NUMBER_OWN, 2, remainder_loops, BY_TYPE(modulus, modulus, int_floor_mod, a, b))
LOOPS_END

static bool has_zero(Tensor *b, DType d) {
  b = t_contiguous(elementwise_cast(b, d));
  if (!b) return false;
  for (int64_t i = 0; i < b->numel && !tensor_absent(b); i++)
    if (tensor_get_i(b, i) == 0) return true;
  return false;
}

/* Runs a division-like loop; integers are checked for division by zero first. */
static Tensor *divide(const Loops *loops, const char *name, Tensor *a, Tensor *b) {
  DType d = common_dtype(a, b);
  if (d == DT_BOOL) return fail(ERR_NOT_IMPLEMENTED, "\"%s_cpu\" not implemented for 'Bool'", name);
  Operands pair = operands(d, a, b, loops == floor_div || loops == trunc_div);
  if (!dtype_is_float(d)) {
    bool zero_found = false;
    WITHOUT_GRAD_BLOCK {
      pair.in[1] = tensor_settled(b);
      zero_found = pair.in[1] && has_zero(pair.in[1], d);
    }
    if (zero_found) return fail(ERR_RUNTIME, "ZeroDivisionError");
  }
  return elementwise_run(loops, &(Tensors){2, pair.in}, d, NULL);
}

/* y = round(a / b): a' = b' = 0. */
static void zero_vjp(Node *n, Tensor *g, Tensor **gi) {
  for (int i = 0; i < n->n_edges; i++)
    if (needs(n, i)) gi[i] = t_zeros_like(g);
}
GRAD_EACH(DivBackward2, "self other | rounding_mode:text=trunc,floor")
{ zero_vjp(n, g[0], gi); }

Tensor *t_div_mode(Tensor *a, Tensor *b, const char *mode) {
  OP_ENTERED(t_div_mode, "div", a, b, mode);
  if (blocked(a, b) || !mode)
    return node_rename_with(t_div(a, b), "DivBackward2", "self other | rounding_mode:text=-");
  bool down = strcmp(mode, "floor") == 0;
  if (!down && strcmp(mode, "trunc") != 0)
    return fail(ERR_RUNTIME,
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'",
                mode);
  DType d = elementwise_result_dtype(2, (Tensor *[]){a, b});
  if (dtype_is_complex(d)) return dtype_no_kernel(down ? "div_floor_cpu" : "div_trunc_cpu", d);
  Node *n = node_new(&DivBackward2, 2, 1, a, b, NULL);
  if (needs(n, 1)) save(n, 0, a);
  save(n, 1, b);
  num_i(n, 0, down);
  return set_history(divide(down ? floor_div : trunc_div, down ? "div_floor" : "div_trunc", a, b),
                     n);
}

/* y = a - trunc(a / b) b:  a' = g,  b' = -g trunc(a / b); the remainder rounds down instead. */
static void modulo_vjp(Node *n, Tensor *g, Tensor **gi, const char *mode) {
  if (needs(n, 0)) gi[0] = g;
  if (n->n_edges > 1 && needs(n, 1))
    gi[1] = t_neg(t_mul(g, t_div_mode(saved_tensor(n, 0), saved_tensor(n, 1), mode)));
}
GRAD(FmodBackward0, "")
{ modulo_vjp(n, g[0], gi, "trunc"); }
GRAD_EACH(FmodBackward1, "self other")
{ modulo_vjp(n, g[0], gi, "trunc"); }
GRAD(RemainderBackward0, "")
{ modulo_vjp(n, g[0], gi, "floor"); }
GRAD_EACH(RemainderBackward1, "self other")
{ modulo_vjp(n, g[0], gi, "floor"); }

static Tensor *modulo(const NodeType *by_number, const NodeType *by_tensor, const Loops *loops,
                      const char *name, Tensor *a, Tensor *b) {
  if (blocked(a, b)) return NULL;
  Tensor *edges[2] = {a, b};
  bool number = is_wrapped(b);
  Node *n = node_new_list(number ? by_number : by_tensor, 2, 0, number ? 1 : 2, edges);
  if (!number && needs(n, 1)) {
    save(n, 0, a);
    save(n, 1, b);
  }
  return set_history(divide(loops, name, a, b), n);
}
Tensor *t_fmod(Tensor *a, Tensor *b) {
  OP_ENTERED(t_fmod, "fmod", a, b);
  return modulo(&FmodBackward0, &FmodBackward1, fmod_loops, "fmod", a, b);
}
Tensor *t_remainder(Tensor *a, Tensor *b) {
  OP_ENTERED(t_remainder, "remainder", a, b);
  return modulo(&RemainderBackward0, &RemainderBackward1, remainder_loops, "remainder", a, b);
}

NO_DERIVATIVE(floor_divide)
NO_DERIVATIVE(floor_divide_)
NO_DERIVATIVE(remainder)
NO_DERIVATIVE(heaviside)
NO_DERIVATIVE(heaviside_)

/* no gradient, as in PyTorch */
Tensor *t_remainder_of_number(Tensor *a, Tensor *b) {
  OP_ENTERED(t_remainder_of_number, "remainder", a, b);
  if (blocked(a, b)) return NULL;
  Node *n = node_new(&node_remainder, 0, 0, b, NULL);
  return set_history(divide(remainder_loops, "remainder", a, b), n);
}

Tensor *t_floor_divide(Tensor *a, Tensor *b) {
  OP_ENTERED(t_floor_divide, "floor_divide", a, b);
  if (blocked(a, b)) return NULL;
  Node *n = node_new(inplace_self == a ? &node_floor_divide_ : &node_floor_divide, 0, 0, a, b,
                     NULL);
  return set_history(divide(floor_div, "div_floor", a, b), n);
}

/* ------------------------------------------------------------ pow */

LOOPS_BEGIN
LOOPS(SERIAL_COMPLEX, 2, pow_loops,
      _Generic(a, float: powf, double: pow, complex_f64: complex_pow, default: m_int_pow)(a, b))
LOOPS(FLOAT, 1, square_loop, (x * x))
LOOPS(FLOAT, 1, cube_loop, x * x * x)
LOOPS(FLOAT, 1, fourth_loop, (x * x) * (x * x))
LOOPS(FLOAT, 1, root_loop, m_sqrt(x))
LOOPS(FLOAT, 1, unroot_loop, m_rsqrt(x))
LOOPS(FLOAT, 1, inverse_loop, 1 / x)
LOOPS(FLOAT, 1, unsquare_loop, 1 / (x * x))
LOOPS_END

/* Exponents with a loop of their own. */
static const struct {
  double exponent;
  const Loops *loops;
} easy_powers[] = {{2, square_loop},   {3, cube_loop},     {4, fourth_loop},   {.5, root_loop},
                   {-.5, unroot_loop}, {-1, inverse_loop}, {-2, unsquare_loop}};

static Tensor *pow_values(Tensor *a, Tensor *b, DType d) {
  if (is_wrapped(b) && dtype_is_float(d))
    for (size_t i = 0; i < sizeof easy_powers / sizeof *easy_powers; i++)
      if (number_f(b) == easy_powers[i].exponent)
        return elementwise_run(easy_powers[i].loops, &(Tensors){1, &a}, d, NULL);
  Operands pair = operands(d, a, b, false);
  return elementwise_run(pow_loops, &(Tensors){2, pair.in}, d, NULL);
}

/* y = a^k: a' = g k a^(k-1), 0 for k = 0. */
GRAD_EACH(PowBackward0, "self | exponent:scalar")
{
  double k = n->numbers[0].f;
  gi[0] = k == 0 ? t_zeros_like(g[0])
                 : t_mul(g[0], t_mul_f(t_pow(saved_tensor(n, 0), tensor_wrapped_f(k - 1)), k));
}

/* The base, conjugated like saved values. A negative real base must lie on the same side of the
 * logarithm's cut. */
static Tensor *saved_base(Node *n, const Tensor *g) {
  Tensor *a = saved_tensor(n, 0);
  if (!a || !g || is_wrapped(a) || !dtype_is_complex(tensor_dtype(g))) return a;
  return dtype_is_complex(tensor_dtype(a)) ? a : t_conj(t_to(a, tensor_dtype(g)));
}

/* y = a^b: a' = g b a^(b-1), 0 where b = 0; b' = g y log a, 0 where a = 0 and b >= 0. */
static Tensor *logarithm(Tensor *a, Tensor *g) {
  if (blocked(a, g)) return NULL;
  if (is_wrapped(a) && !dtype_is_complex(tensor_dtype(a))) {
    double base = number_f(a);
    if (!dtype_is_complex(tensor_dtype(g))) return tensor_wrapped_f(log(base));
    return tensor_wrapped_c(complex_of(log(fabs(base)), base < 0 ? -MATHS_PI : 0.0));
  }
  return t_log(dtype_is_inexact(tensor_dtype(a)) ? a : elementwise_cast(a, tensor_dtype(g)));
}
static Tensor *pow_grad_exponent(Node *n, Tensor *g) {
  Tensor *a = saved_base(n, g), *b = saved_tensor(n, 1), *y = saved_tensor(n, 2);
  Tensor *flat = t_logical_and(t_eq(a, zero()), t_ge(t_real(b), zero()));
  return t_mul(g, t_where(flat, zero(), t_mul(y, logarithm(a, g))));
}
GRAD_EACH(PowBackward1, "self exponent result")
{
  if (needs(n, 0)) {
    Tensor *a = saved_base(n, g[0]), *b = saved_tensor(n, 1);
    Tensor *flat = t_eq(b, zero()), *safe = grad_mode ? t_where(flat, tensor_wrapped_i(1), b) : b;
    Tensor *d = t_mul(g[0], t_mul(b, t_pow(a, t_sub(safe, tensor_wrapped_i(1)))));
    gi[0] = t_where(flat, zero(), d);
  }
  if (needs(n, 1)) gi[1] = pow_grad_exponent(n, g[0]);
}
GRAD_EACH(PowBackward2, "self# exponent result")
{ gi[0] = pow_grad_exponent(n, g[0]); }

static Tensor *pow_number(Tensor *a, Tensor *b, DType d) {
  bool integer = !dtype_is_inexact(d);
  if (integer && tensor_get_i(b, 0) < 0)
    return fail(ERR_RUNTIME, "Integers to negative integer powers are not allowed.");
  if (integer && !element_number_fits(b, d)) return NULL;
  Node *n = node_new(&PowBackward0, 1, 1, a, NULL);
  save(n, 0, a);
  num_f(n, 0, number_f(b));
  return set_history(pow_values(a, b, d), n);
}

/* The operand of ops whose results PyTorch lays out as if the operand were contiguous. */
static Tensor *plain_contiguous(Tensor *x) { return WITHOUT_GRAD(t_contiguous(x)); }

Tensor *t_pow(Tensor *a, Tensor *b) {
  OP_ENTERED(t_pow, "pow", a, b);
  if (blocked(a, b)) return NULL;
  DType d = common_dtype(a, b);
  if (d == DT_BOOL && is_wrapped(b)) return tensor_get_i(b, 0) ? t_clone(a) : t_ones_like(a);
  if (d == DT_BOOL) return dtype_no_kernel("pow", DT_BOOL);
  if (is_wrapped(b) && !dtype_is_complex(tensor_dtype(b))) return pow_number(a, b, d);
  Node *n = is_wrapped(a) ? node_new(&PowBackward2, 3, 0, b, NULL)
                          : node_new(&PowBackward1, 3, 0, a, b, NULL);
  save(n, 0, a);
  save(n, 1, b);
  Tensor *y = set_history(pow_values(a, is_wrapped(a) ? plain_contiguous(b) : b, d), n);
  if (y && n && needs(n, n->n_edges - 1)) save_output(n, 2, y);
  return y;
}

Tensor *t_square(Tensor *x) {
  OP_ENTERED(t_square, "square", x);
  return blocked(x) ? NULL : t_pow(x, tensor_wrapped_i(2));
}

/* An operand of float_power, in double or complex double. */
static Tensor *wide_power(Tensor *x, DType d) {
  if (!is_wrapped(x)) return t_to(x, d);
  return d == DT_C128 ? tensor_wrapped_c(tensor_get_c(x, 0)) : tensor_wrapped_f(number_f(x));
}

/* Computes in double. In place, the base must be double already. */
Tensor *t_float_power(Tensor *a, Tensor *b, bool inplace) {
  OP_ENTERED(t_float_power, "float_power", a, b, inplace);
  if (blocked(a, b)) return NULL;
  bool complex = dtype_is_complex(tensor_dtype(a)) || dtype_is_complex(tensor_dtype(b));
  DType d = complex ? DT_C128 : DT_F64;
  if (inplace && a->dtype != d)
    return fail(ERR_RUNTIME,
                "the base given to float_power_ has dtype %s but the operation's result requires "
                "dtype %s",
                legacy(a), dtype_info[d].legacy);
  Tensor *base = wide_power(a, d), *exponent = wide_power(b, d);
  DType was = dtype_default();
  dtype_set_default(DT_F64);
  Tensor *y = t_pow(base, exponent);
  dtype_set_default(was);
  return y;
}

/* ------------------------------------------------------------ selection */

/* Selection by width alone. Operands are the condition and two values, or for fills the old value,
 * the mask and the new value. Compilers vectorise a choice between bytes badly, and a choice
 * between bits well. */
#define SELECT(fn, BITS, C, A, B)                                                      \
  static void fn##_##BITS(char *const *q, size_t n, const double *k, LoopScratch *s) { \
    uint##BITS##_t *o = (uint##BITS##_t *)(void *)q[0];                                \
    const uint8_t *c = (const uint8_t *)(const void *)q[C];                            \
    const uint##BITS##_t *a = (const uint##BITS##_t *)(const void *)q[A];              \
    const uint##BITS##_t *b = (const uint##BITS##_t *)(const void *)q[B];              \
    (void)k, (void)s;                                                                  \
    BYTES_LOOP for (size_t i = 0; i < n; i++)                                          \
        o[i] = b[i] ^ ((a[i] ^ b[i]) & (uint##BITS##_t) - (c[i] != 0));                \
  }
#define SELECT_WIDE(fn, C, A, B)                                                        \
  static void fn##_128(char *const *q, size_t n, const double *k, LoopScratch *s) {     \
    const uint8_t *c = (const uint8_t *)(const void *)q[C];                             \
    (void)k, (void)s;                                                                   \
    for (size_t i = 0; i < n; i++) memcpy(q[0] + 16 * i, q[c[i] ? A : B] + 16 * i, 16); \
  }
#define SELECTS(fn, C, A, B)    \
  SELECT(fn, 8, C, A, B)        \
  SELECT(fn, 16, C, A, B)       \
  SELECT(fn, 32, C, A, B)       \
  SELECT(fn, 64, C, A, B)       \
  SELECT_WIDE(fn, C, A, B)      \
  static Flat *const fn[17] = { \
      [1] = fn##_8, [2] = fn##_16, [4] = fn##_32, [8] = fn##_64, [16] = fn##_128};
LOOPS_BEGIN
SELECTS(select, 1, 2, 3)
SELECTS(fill, 2, 3, 1)
LOOPS_END

static Tensor *choose(Tensor *condition, Tensor *a, Tensor *b, DType d) {
  Tensor *in[3] = {condition, elementwise_cast(a, d), elementwise_cast(b, d)};
  return elementwise_run_raw(select[dtype_bytes(d)], 3, in, d);
}

/* y = c ? a : b:  a' = c ? g : 0,  b' = c ? 0 : g. */
GRAD_EACH(WhereBackward0, "condition")
{
  Tensor *c = saved_tensor(n, 0);
  if (needs(n, 0)) gi[0] = t_where(c, g[0], zero());
  if (needs(n, 1)) gi[1] = t_where(c, zero(), g[0]);
}

Tensor *t_where(Tensor *condition, Tensor *a, Tensor *b) {
  OP_ENTERED(t_where, "where", condition, a, b);
  if (blocked(a, b) || !condition) return NULL;
  if (condition->dtype != DT_BOOL && condition->dtype != DT_U8)
    return fail(ERR_RUNTIME,
                "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
                legacy(condition));
  DType d = common_dtype(a, b);
  if ((is_wrapped(a) && !element_number_fits(a, d)) ||
      (is_wrapped(b) && !element_number_fits(b, d)))
    return NULL;
  Node *n = node_new(&WhereBackward0, 1, 0, a, b, NULL);
  save(n, 0, condition);
  return set_history(choose(elementwise_cast(condition, DT_BOOL), a, b, d), n);
}

/* y = mask ? value : x:  x' = mask ? 0 : g,  value' = mask ? g : 0, to be summed. */
static void masked_fill_vjp(Node *n, Tensor *g, Tensor **gi) {
  Tensor *mask = saved_tensor(n, 0);
  if (needs(n, 0)) gi[0] = t_masked_fill(g, mask, zero());
  if (n->n_edges > 1 && needs(n, 1)) gi[1] = t_where(mask, g, zero());
}
GRAD_EACH(MaskedFillBackward0, "mask")
{ masked_fill_vjp(n, g[0], gi); }
GRAD_EACH(MaskedFillBackward1, "mask")
{ masked_fill_vjp(n, g[0], gi); }

Tensor *t_masked_fill(Tensor *x, Tensor *mask, Tensor *value) {
  OP_ENTERED(t_masked_fill, "masked_fill", x, mask, value);
  if (blocked(x, mask) || !value) return NULL;
  if (value->ndim)
    return fail(ERR_RUNTIME,
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d "
                "dimension(s).",
                value->ndim);
  if (mask->dtype != DT_BOOL)
    return fail(ERR_RUNTIME, "masked_fill_ only supports boolean masks, but got mask with dtype %s",
                dtype_c_name(tensor_dtype(mask)));
  DType d = tensor_dtype(x);
  if (!element_number_fits(value, d)) return NULL;
  Node *n = is_wrapped(value) ? node_new(&MaskedFillBackward0, 1, 0, x, NULL)
                              : node_new(&MaskedFillBackward1, 1, 0, x, value, NULL);
  save(n, 0, mask);
  Tensor *in[3] = {destination ? x : plain_contiguous(x), mask, elementwise_cast(value, d)};
  if (blocked(in[0], in[2])) return set_history(NULL, n);
  /* the value may be an element of the destination */
  if (destination && in[2]->storage == destination->storage) in[2] = tensor_snapshot(in[2]);
  return set_history(elementwise_run_raw(fill[dtype_bytes(d)], 3, in, d), n);
}

/* ------------------------------------------------------------ bounds */

/* NaN stays NaN, in a value or a bound. */
LOOPS_BEGIN
#define AT_LEAST(a, b) ((((a) < (b)) | ((b) != (b))) ? (b) : (a))
#define AT_MOST(a, b) ((((a) > (b)) | ((b) != (b))) ? (b) : (a))
LOOPS(ANY, 2, at_least, AT_LEAST(a, b))
LOOPS(ANY, 2, at_most, AT_MOST(a, b))
LOOPS(ANY, 3, between, AT_MOST(AT_LEAST(a, b), c))
static const Loops within[1] = {{.f32 = value_hardtanh_f32}};
LOOPS_END

/* y = min(max(x, lo), hi):  x' = g where lo <= x <= hi,  lo' = g where x < lo < hi,  hi' = g
 * where x > hi or lo > hi. */
static void clamp_vjp(Node *n, Tensor *g, Tensor **gi, int lo, int hi) {
  Tensor *x = saved_tensor(n, 0), *min = saved_tensor(n, 1), *max = saved_tensor(n, 2);
  Tensor *above = min ? t_ge(x, min) : NULL, *below = max ? t_le(x, max) : NULL;
  if (needs(n, 0))
    gi[0] = t_where(above && below ? t_logical_and(above, below)
                    : above        ? above
                                   : below,
                    g, zero());
  if (min && lo && needs(n, lo)) {
    Tensor *c = t_lt(x, min);
    gi[lo] = t_where(max ? t_logical_and(c, t_lt(min, max)) : c, g, zero());
  }
  if (max && hi && needs(n, hi)) {
    Tensor *c = t_gt(x, max);
    gi[hi] = t_where(min ? t_logical_or(c, t_lt(max, min)) : c, g, zero());
  }
}
GRAD_EACH(ClampBackward0, "self min max")
{ clamp_vjp(n, g[0], gi, 1, 2); }
GRAD_EACH(ClampBackward1, "self min# max#")
{ clamp_vjp(n, g[0], gi, 0, 0); }
GRAD_EACH(ClampMinBackward0, "self min#")
{ clamp_vjp(n, g[0], gi, 0, 0); }
GRAD_EACH(ClampMinBackward1, "self min")
{ clamp_vjp(n, g[0], gi, 1, 0); }
GRAD_EACH(ClampMaxBackward0, "self - max#")
{ clamp_vjp(n, g[0], gi, 0, 0); }
GRAD_EACH(ClampMaxBackward1, "self - max")
{ clamp_vjp(n, g[0], gi, 0, 1); }

static bool is_number(const Tensor *edge) { return edge && is_wrapped(edge); }

/* x between min and max, one of which may be NULL. `one_edge`: the node has an edge for the other
 * bound only. */
static Tensor *clamp_between(const NodeType *by_tensor, const NodeType *by_number, Tensor *x,
                             Tensor *min, Tensor *max, bool one_edge) {
  Tensor *in[3] = {x, min ? min : max, min && max ? max : NULL};
  DType d = elementwise_result_dtype(3, in);
  if (d == DT_BOOL && (is_number(min) || is_number(max)))
    return dtype_no_kernel(!max   ? "clamp_min_scalar_cpu"
                           : !min ? "clamp_max_scalar_cpu"
                                  : "clamp_scalar_cpu",
                           d);
  if ((is_number(min) && !element_number_fits(min, d)) ||
      (is_number(max) && !element_number_fits(max, d)))
    return NULL;
  bool numbers = (!min || is_wrapped(min)) && (!max || is_wrapped(max));
  Tensor *edges[3] = {x, one_edge && !min ? max : min, max};
  Node *n = node_new_list(numbers ? by_number : by_tensor, 3, 0,
                          numbers    ? 1
                          : one_edge ? 2
                                     : 3,
                          edges);
  save(n, 0, x);
  save(n, 1, min);
  save(n, 2, max);
  if (numbers && d == DT_F32) {
    const double bounds[] = {min ? number_f(min) : -INFINITY, max ? number_f(max) : INFINITY, 0};
    return set_history(elementwise_run(within, &(Tensors){1, &x}, d, bounds), n);
  }
  const Loops *loops = min && max ? between : min ? at_least : at_most;
  return set_history(elementwise_run(loops, &(Tensors){min && max ? 3 : 2, in}, d, NULL), n);
}

Tensor *t_clamp(Tensor *x, Tensor *min, Tensor *max) {
  OP_ENTERED(t_clamp, "clamp", x, min, max);
  if (blocked(x)) return NULL;
  if (!min && !max)
    return fail(ERR_RUNTIME, "torch.clamp: At least one of 'min' or 'max' must not be None");
  return clamp_between(&ClampBackward0, &ClampBackward1, x, min, max, false);
}
Tensor *t_clamp_min(Tensor *x, Tensor *min) {
  OP_ENTERED(t_clamp_min, "clamp_min", x, min);
  return blocked(x, min)
             ? NULL
             : clamp_between(&ClampMinBackward1, &ClampMinBackward0, x, min, NULL, true);
}
Tensor *t_clamp_max(Tensor *x, Tensor *max) {
  OP_ENTERED(t_clamp_max, "clamp_max", x, max);
  return blocked(x, max)
             ? NULL
             : clamp_between(&ClampMaxBackward1, &ClampMaxBackward0, x, NULL, max, true);
}

Tensor *t_held_above(Tensor *x, double bound) {
  Tensor *y = t_clone(x), *least = tensor_wrapped_f(bound), *t = forward_tangent(y);
  Tensor *held = WITHOUT_GRAD(t_clamp_min(y, least));
  if (t) t = forward_tangent(t_where(WITHOUT_GRAD(t_ge(y, least)), y, zero()));
  if (blocked(y, held) || !tensor_write_begin(y, true) || !tensor_copy_data(y, held)) return NULL;
  if (t) forward_write(y, t);
  return y;
}

/* ------------------------------------------------------------ weighted sums */

static inline bool near_zero_f32(float x) { return fabsf(x) < 0.5f; }
static inline bool near_zero_f64(double x) { return fabs(x) < 0.5; }
static inline bool near_zero_c128(complex_f64 z) { return complex_abs(z) < 0.5; }
#define NEAR_ZERO(x) \
  _Generic((x), float: near_zero_f32, complex_f64: near_zero_c128, default: near_zero_f64)(x)
LOOPS_BEGIN
/* Starts from the nearer end, so that weight 1 gives b exactly. */
LOOPS(REAL_COMPLEX, 3, lerp_loops, NEAR_ZERO(c) ? a + m_mul(c, b - a) : b - m_mul(b - a, (T)1 - c))
LOOPS(NUMBER_COMPLEX, 4, addcmul_loops, (W)a + m_mul(m_mul((W)d, (W)b), (W)c))
LOOPS(REAL_COMPLEX, 4, addcdiv_loops, a + m_div(m_mul(d, b), c))
LOOPS_END

static bool same_dtype(const Tensor *a, const Tensor *b, const char *name) {
  if (is_wrapped(b) || a->dtype == b->dtype) return true;
  return fail(ERR_RUNTIME, "expected dtype %s for `%s` but got dtype %s",
              dtype_c_name(tensor_dtype(a)), name, dtype_c_name(tensor_dtype(b)));
}

/* y = a + w (b - a):  a' = g (1 - w),  b' = g w,  w' = g (b - a). */
static void lerp_vjp(Node *n, Tensor *g, Tensor **gi) {
  Tensor *w = saved_tensor(n, 2);
  if (needs(n, 0))
    gi[0] = t_mul(g, w && is_wrapped(w) ? dtype_is_complex(tensor_dtype(w))
                                              ? tensor_wrapped_c(1 - tensor_get_c(w, 0))
                                              : tensor_wrapped_f(1 - number_f(w))
                                        : t_sub(tensor_wrapped_f(1), w));
  if (needs(n, 1)) gi[1] = t_mul(g, w);
  if (n->n_edges > 2 && needs(n, 2))
    gi[2] = t_mul(g, t_sub(saved_tensor(n, 1), saved_tensor(n, 0)));
}
GRAD_EACH(LerpBackward0, "- - weight#")
{ lerp_vjp(n, g[0], gi); }
GRAD_EACH(LerpBackward1, "self end weight")
{ lerp_vjp(n, g[0], gi); }

Tensor *t_lerp(Tensor *a, Tensor *b, Tensor *w) {
  OP_ENTERED(t_lerp, "lerp", a, b, w);
  if (blocked(a, b) || !w || !same_dtype(a, b, "end") || !same_dtype(a, w, "weight")) return NULL;
  DType d = tensor_dtype(a);
  bool number = is_wrapped(w);
  if (!dtype_is_inexact(d))
    return dtype_no_kernel(number ? "lerp_kernel_scalar" : "lerp_kernel_tensor", d);
  if (number && !element_number_fits(w, d)) return NULL;
  Tensor *in[3] = {a, b, w};
  Node *n = node_new_list(number ? &LerpBackward0 : &LerpBackward1, 3, 0, number ? 2 : 3, in);
  if (n && !number && needs(n, 2)) {
    save(n, 0, a);
    save(n, 1, b);
  }
  save(n, 2, w);
  return set_history(elementwise_run(lerp_loops, &(Tensors){3, in}, d, NULL), n);
}

/* y = a + k b c:  a' = g,  b' = g c k,  c' = g b k. */
GRAD_EACH(AddcmulBackward0, "tensor1 tensor2 value#")
{
  Tensor *b = saved_tensor(n, 0), *c = saved_tensor(n, 1), *k = saved_tensor(n, 2);
  if (needs(n, 0)) gi[0] = g[0];
  if (needs(n, 1)) gi[1] = t_mul(g[0], t_mul(c, k));
  if (needs(n, 2)) gi[2] = t_mul(g[0], t_mul(b, k));
}

/* y = a + k b / c:  a' = g,  b' = g k / c,  c' = -g k b / c^2. */
GRAD_EACH(AddcdivBackward0, "tensor1 tensor2 value#")
{
  Tensor *b = saved_tensor(n, 0), *c = saved_tensor(n, 1), *k = saved_tensor(n, 2);
  if (needs(n, 0)) gi[0] = g[0];
  if (needs(n, 1)) gi[1] = t_mul(g[0], t_div(k, c));
  if (needs(n, 2)) gi[2] = t_neg(t_mul(g[0], t_div(t_mul(k, b), t_mul(c, c))));
}

static Tensor *add_weighted(const NodeType *type, const Loops *loops, DType d, Tensor *a, Tensor *b,
                            Tensor *c, Tensor *k) {
  if (!element_number_fits(k, d)) return NULL;
  Tensor *in[4] = {a, b, c, elementwise_cast(k, d)};
  Node *n = node_new_list(type, 3, 0, 3, in);
  if (needs(n, 2)) save(n, 0, b);
  if (needs(n, 1) || type == &AddcdivBackward0) save(n, 1, c);
  save(n, 2, k);
  return set_history(elementwise_run(loops, &(Tensors){4, in}, d, NULL), n);
}

/* a + value * b * c */
Tensor *t_addcmul(Tensor *a, Tensor *b, Tensor *c, Tensor *value) {
  OP_ENTERED(t_addcmul, "addcmul", a, b, c, value);
  if (blocked(a, b) || blocked(c, value)) return NULL;
  DType d = elementwise_result_dtype(3, (Tensor *[]){a, b, c});
  if (d == DT_BOOL) return dtype_no_kernel("addcmul_cpu_out", DT_BOOL);
  return add_weighted(&AddcmulBackward0, addcmul_loops, d, a, b, c, value);
}

Tensor *t_addcdiv(Tensor *a, Tensor *b, Tensor *c, Tensor *value) {
  OP_ENTERED(t_addcdiv, "addcdiv", a, b, c, value);
  if (blocked(a, b) || blocked(c, value)) return NULL;
  if (!dtype_is_inexact(tensor_dtype(b)) && !dtype_is_inexact(tensor_dtype(c)))
    return fail(ERR_RUNTIME,
                "Integer division with addcdiv is no longer supported, and in a future  release "
                "addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv "
                "behavior can be implemented as (input + value * torch.trunc(tensor1 / "
                "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
                "tensor2) for float inputs. The future addcdiv behavior is just the latter "
                "implementation: (input + value * tensor1 / tensor2), for all dtypes.");
  return add_weighted(&AddcdivBackward0, addcdiv_loops,
                      elementwise_result_dtype(3, (Tensor *[]){a, b, c}), a, b, c, value);
}

/* ------------------------------------------------------------ other functions */

LOOPS_BEGIN
LOOPS(ANY, 2, heaviside_loops, a == 0 ? b : (T)(a > 0))
LOOPS(REAL, 1, round_up_scale, m_rint(x *HOST_NUMBER(p0_)) / HOST_NUMBER(p0_))
LOOPS(REAL, 1, round_down_scale, m_rint(x / HOST_NUMBER(p0_)) * HOST_NUMBER(p0_))
LOOPS_END

Tensor *t_heaviside(Tensor *x, Tensor *values) {
  OP_ENTERED(t_heaviside, "heaviside", x, values);
  if (blocked(x, values)) return NULL;
  if (x->dtype != values->dtype)
    return fail(ERR_RUNTIME, "heaviside is not yet implemented for tensors with different dtypes.");
  Tensor *in[2] = {x, values};
  Node *n = node_new(inplace_self == x ? &node_heaviside_ : &node_heaviside, 0, 0, x, values, NULL);
  return set_history(elementwise_run(heaviside_loops, &(Tensors){2, in}, tensor_dtype(x), NULL), n);
}

Tensor *t_ldexp(Tensor *x, Tensor *other) {
  OP_ENTERED(t_ldexp, "ldexp", x, other);
  if (blocked(x, other)) return NULL;
  if (dtype_is_float(tensor_dtype(x)) && other->dtype == DT_BOOL)
    return dtype_no_kernel("ldexp_cpu_exp", DT_BOOL);
  if (dtype_is_complex(tensor_dtype(x)) || dtype_is_complex(tensor_dtype(other)))
    return t_mul(x, t_pow(tensor_wrapped_f(2), other));
  return t_ldexp_of(x, other);
}

GRAD(RoundBackward1, "")
{ gi[0] = t_zeros_like(g[0]); }

Tensor *t_round(Tensor *x, int64_t decimals) {
  OP_ENTERED(t_round, "round", x, decimals);
  if (blocked(x)) return NULL;
  DType d = tensor_dtype(x);
  if (!dtype_check_float_kernel(decimals ? "round_cpu" : "round_vml_cpu", d)) return NULL;
  Node *n = node_new(&RoundBackward1, 0, 0, x, NULL);
  double scale[3] = {pow(10, decimals < 0 ? -(double)decimals : (double)decimals)};
  return set_history(elementwise_run(decimals < 0 ? round_down_scale : round_up_scale,
                                     &(Tensors){1, &x}, d, scale),
                     n);
}

/* x = mantissa 2^exponent, the mantissa in [1/2, 1):  x' = g 2^-exponent. */
static double mantissa_of(double x) {
  int e;
  return frexp(x, &e);
}
static double exponent_of(double x) {
  int e = 0;
  if (isfinite(x)) (void)frexp(x, &e);
  return e;
}
LOOPS_BEGIN
LOOPS(REAL_WIDE, 1, mantissa_loop, mantissa_of(x))
LOOPS(REAL_WIDE, 1, exponent_loop, exponent_of(x))
LOOPS_END
GRAD_EACH(FrexpBackward0, "exponent")
{ gi[0] = t_div(g[0], t_pow(tensor_wrapped_f(2), saved_tensor(n, 0))); }

/* Gives mantissa and exponent. */
void t_frexp(Tensor *x, Tensor **y) {
  OP_ENTERED(t_frexp, "frexp", x, y);
  y[0] = y[1] = NULL;
  if (blocked(x)) return;
  DType d = tensor_dtype(x);
  if (!dtype_is_float(d)) {
    fail(ERR_RUNTIME, "torch.frexp() only supports floating-point dtypes");
    return;
  }
  Node *n = node_new(&FrexpBackward0, 1, 0, x, NULL);
  Tensor *mantissa = elementwise_run(mantissa_loop, &(Tensors){1, &x}, d, NULL);
  y[1] = elementwise_cast(elementwise_run(exponent_loop, &(Tensors){1, &x}, d, NULL), DT_I32);
  save(n, 0, y[1]);
  y[0] = set_history_at(mantissa, n, 0);
}

Tensor *t_bitwise_not(Tensor *x) {
  OP_ENTERED(t_bitwise_not, "bitwise_not", x);
  if (blocked(x)) return NULL;
  if (x->dtype == DT_BOOL) return t_logical_not(x);
  if (dtype_is_float(tensor_dtype(x))) return dtype_no_kernel("bitwise_not_cpu", tensor_dtype(x));
  return t_invert(x);
}

Tensor *t_positive(Tensor *x) {
  ANY_ENTERED(t_positive, "positive", x);
  if (blocked(x)) return NULL;
  if (x->dtype == DT_BOOL)
    return fail(ERR_RUNTIME, "The `+` operator, on a bool tensor is not supported.");
  return x;
}

Tensor *t_logit(Tensor *x, bool bounded_, double eps) {
  OP_ENTERED(t_logit, "logit", x, bounded_, eps);
  return !bounded_ || eps < 0 ? t_logit_plain(x) : t_logit_within(x, eps, 0, 0);
}

Tensor *t_polygamma(int64_t order, Tensor *x) {
  OP_ENTERED(t_polygamma, "polygamma", order, x);
  if (blocked(x)) return NULL;
  if (order < 0) return fail(ERR_RUNTIME, "polygamma(n, x) does not support negative n.");
  return t_polygamma_at(x, (double)order, 0, 0);
}

/* log of the multivariate gamma function: sum of lgamma(x - k / 2), k < p, and p (p - 1) / 4 log
 * pi; x' = g times the sum of digamma(x - k / 2). */
static Tensor *sum_of_shifted(Tensor *f(Tensor *), Tensor *x, int64_t p) {
  Tensor *y = f(x);
  for (int64_t k = 1; k < p && !failed(); k++) y = t_add(y, f(t_add_f(x, -0.5 * (double)k)));
  return y;
}
GRAD_EACH(MvlgammaBackward0, "self | p:int")
{ gi[0] = t_mul(g[0], sum_of_shifted(t_digamma, saved_tensor(n, 0), n->numbers[0].i)); }

Tensor *t_mvlgamma(Tensor *x, int64_t p) {
  OP_ENTERED(t_mvlgamma, "mvlgamma", x, p);
  if (blocked(x)) return NULL;
  if (x->dtype == DT_BOOL)
    return fail(ERR_RUNTIME, "The input tensor may not be a boolean tensor.");
  if (p < 1) return fail(ERR_RUNTIME, "p has to be greater than or equal to 1");
  /* PyTorch takes this much memory: a huge p is an error */
  if (!scratch_array(p, (size_t)dtype_bytes(tensor_dtype(x)))) return NULL;
  Node *n = node_new(&MvlgammaBackward0, 1, 1, x, NULL);
  save(n, 0, x);
  num_i(n, 0, p);
  Tensor *y = WITHOUT_GRAD(t_add_f(sum_of_shifted(t_lgamma, t_contiguous(x), p),
                                   (double)(p * (p - 1)) / 4 * log(MATHS_PI)));
  return set_history(y, n);
}

/* Infinities become the largest finite numbers of the type unless other numbers are given. */
Tensor *t_nan_to_num(Tensor *x, double nan, bool has_posinf, double posinf, bool has_neginf,
                     double neginf) {
  OP_ENTERED(t_nan_to_num, "nan_to_num", x, nan, has_posinf, posinf, has_neginf, neginf);
  if (blocked(x)) return NULL;
  if (dtype_is_complex(tensor_dtype(x)))
    return t_complex(t_nan_to_num(t_real(x), nan, has_posinf, posinf, has_neginf, neginf),
                     t_nan_to_num(t_imag(x), nan, has_posinf, posinf, has_neginf, neginf));
  if (!dtype_is_float(tensor_dtype(x))) return t_clone(x);
  bool narrow = x->dtype != DT_F64;
  double most = x->dtype == DT_F16    ? 65504
                : x->dtype == DT_BF16 ? 3.38953138925153547590e38
                : narrow              ? 3.40282346638528859812e38
                                      : 1.79769313486231570815e308;
  double to[3] = {nan, has_posinf ? posinf : most, has_neginf ? neginf : -most};
  for (int i = 0; narrow && i < 3; i++) to[i] = (double)(float)to[i];
  return t_nan_to_num_with(x, to[0], to[1], to[2]);
}

/* ------------------------------------------------------------ closeness and equality */

static Tensor *close_values(Tensor *a, Tensor *b, double rtol, double atol, bool equal_nan) {
  Tensor *close = t_eq(a, b);
  if (equal_nan) close = t_logical_or(close, t_logical_and(t_isnan(a), t_isnan(b)));
  if (rtol == 0 && atol == 0) return close;
  Tensor *allowed = t_add_f(t_abs(t_mul_f(b, rtol)), atol), *actual = t_abs(t_sub(a, b));
  return t_logical_or(close, t_logical_and(t_isfinite(actual), t_le(actual, allowed)));
}

Tensor *t_isclose(Tensor *a, Tensor *b, double rtol, double atol, bool equal_nan) {
  OP_ENTERED(t_isclose, "isclose", a, b, rtol, atol, equal_nan);
  if (blocked(a, b)) return NULL;
  if (a->dtype != b->dtype) return fail(ERR_RUNTIME, "%s did not match %s", legacy(a), legacy(b));
  if (rtol < 0)
    return fail(ERR_RUNTIME, "rtol must be greater than or equal to zero, but got %g", rtol);
  if (atol < 0)
    return fail(ERR_RUNTIME, "atol must be greater than or equal to zero, but got %g", atol);
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    if (a->dtype == DT_BOOL || a->dtype == DT_U8) { /* no differences below 0 otherwise */
      a = elementwise_cast(a, DT_I64);
      b = elementwise_cast(b, DT_I64);
    }
    y = close_values(a, b, rtol, atol, equal_nan);
  }
  return y;
}

static bool all_true(Tensor *x) {
  x = t_contiguous(x);
  return x && tensor_readable(x) && memchr(tensor_data(x), 0, (size_t)x->numel) == NULL;
}

bool t_allclose(Tensor *a, Tensor *b, double rtol, double atol, bool equal_nan) {
  OP_ENTERED(t_allclose, "allclose", a, b, rtol, atol, equal_nan);
  return all_true(t_isclose(a, b, rtol, atol, equal_nan));
}

bool t_equal(Tensor *a, Tensor *b) {
  OP_ENTERED(t_equal, "equal", a, b);
  if (blocked(a, b) || !tensor_same_shape(a, b)) return false;
  return all_true(t_eq(a, b));
}

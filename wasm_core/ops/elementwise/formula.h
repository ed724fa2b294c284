/* The language of derivatives in ops/elementwise/elementwise.def, with two meanings.
 *
 * Include with FORMULA_SCALAR defined: the macros are C arithmetic on values of type T, which is
 * floating. With FORMULA_TAPE: they are op calls on tensors, so that the derivative can be
 * differentiated again. Constants are C(k); the host numbers of a UNARY_P row are P0, P1, P2, and
 * numbers computed from them H(p0_ + 1). ZEROS(g) is a zero without history; TIED(d, x) is d where
 * PyTorch's derivative has x in its history though it is locally constant in x; OF_KIND(r, c) is r
 * for real numbers and c for complex ones, where RIGHT_HALF(x) is x or -x, whichever has no
 * negative real part; NODE(d, name, numbers) is d as one op with a node of its own, second_<name>, for
 * real numbers; a derivative that PyTorch lacks is REFUSE(its name).
 *
 * A formula that is differentiated again must be finite in the branch that WHERE leaves out, as
 * must its derivatives: 0 times inf is NaN. So an operand there is itself a WHERE, or the formula
 * uses a FAMILY(name, n, x), whose derivative is the next member (kernels/families.c). SMOOTH(d, e)
 * is d in the fused loop; for real numbers on the tape it is e, the same number by such functions.
 * NEAR(x) is x, but 0 far out, where its factor is zero and its powers are infinite. */
#undef C
#undef P0
#undef P1
#undef P2
#undef ZEROS
#undef REFUSE
#undef TIED
#undef NODE
#undef OF_KIND
#undef SMOOTH
#undef FAMILY
#undef GAUSSIAN
#undef NEAR
#undef RHYPOT
#undef H
#undef ADD
#undef SUB
#undef MUL
#undef DIV
#undef NEG
#undef SQ
#undef WHERE
#undef EQ
#undef NE
#undef GT
#undef GE
#undef LT
#undef LE
#undef AND
#undef OR
#undef NOT
#undef FUNCTION
#undef FUNCTION2

#if defined(FORMULA_SCALAR)
#define C(k) ((T)(k))
#define P0 HOST_NUMBER(p0_)
#define P1 HOST_NUMBER(p1_)
#define P2 HOST_NUMBER(p2_)
#define ZEROS(g) ((T)0)
#define REFUSE(name) ((T)0)
#define TIED(d, x) (d)
#define NODE(d, name, ...) (d)
#define OF_KIND(r, c) (r)
#define SMOOTH(d, e) (d)
#define FAMILY(name, n, a) m_##name(n, a)
#define GAUSSIAN(a) EXP(NEG(SQ(a)))
#define NEAR(a) ((a) < (T)1e70 && (a) > (T) - 1e70 ? (a) : (T)0)
#define RHYPOT(a, b) (1 / m_hypot(a, b))
#define H(expression) HOST_NUMBER(expression)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define SQ(a) ((a) * (a))
#define WHERE(c, a, b) ((c) ? (a) : (b))
#define EQ(a, b) ((a) == (b))
#define NE(a, b) ((a) != (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
#define NOT(a) (!(a))
#define FUNCTION(name, a) m_##name(a)
#define FUNCTION2(name, a, b) m_##name(a, b)
#undef FORMULA_SCALAR
#elif defined(FORMULA_TAPE)
#define C(k) tensor_wrapped_f((double)(k))
#define P0 tensor_wrapped_f(p[0])
#define P1 tensor_wrapped_f(p[1])
#define P2 tensor_wrapped_f(p[2])
#define ZEROS(g) t_zeros_like(g)
#define REFUSE(name) refuse_derivative(name)
#define TIED(d, x) tie(d, x)
#define NODE(d, name, ...) (is_complex(g) ? (d) : again_##name(g, x, __VA_ARGS__))
#define OF_KIND(r, c) (is_complex(x) ? (c) : (r))
#define SMOOTH(d, e) (is_complex(g) ? (d) : (e))
#define FAMILY(name, n, a) t_##name(a, n, 0, 0)
#define GAUSSIAN(a) FAMILY(gaussian_slope, 0, a)
#define NEAR(a) near(a)
#define RHYPOT(a, b) t_rhypot(a, b)
#define H(expression) tensor_wrapped_f(expression)
#define ADD(a, b) t_add(a, b)
#define SUB(a, b) t_sub(a, b)
#define MUL(a, b) t_mul(a, b)
#define DIV(a, b) t_div(a, b)
#define NEG(a) t_neg(a)
#define SQ(a) t_pow(a, tensor_wrapped_f(2))
#define WHERE(c, a, b) t_where(c, a, b)
#define EQ(a, b) t_eq(a, b)
#define NE(a, b) t_ne(a, b)
#define GT(a, b) t_gt(a, b)
#define GE(a, b) t_ge(a, b)
#define LT(a, b) t_lt(a, b)
#define LE(a, b) t_le(a, b)
#define AND(a, b) t_logical_and(a, b)
#define OR(a, b) t_logical_or(a, b)
#define NOT(a) t_logical_not(a)
#define FUNCTION(name, a) t_##name(a)
#define FUNCTION2(name, a, b) t_##name(a, b)
#undef FORMULA_TAPE
#endif

#ifndef PG_FORMULA_FUNCTIONS
#define PG_FORMULA_FUNCTIONS
#define I tensor_wrapped_c(complex_of(0.0, 1.0))
#define RIGHT_HALF(x) t_where(t_signbit(t_real(x)), t_neg(x), x)
#define EXP(a) FUNCTION(exp, a)
#define LOG(a) FUNCTION(log, a)
#define LOG1P(a) FUNCTION(log1p, a)
#define SQRT(a) FUNCTION(sqrt, a)
#define RSQRT(a) FUNCTION(rsqrt, a)
#define SIN(a) FUNCTION(sin, a)
#define COS(a) FUNCTION(cos, a)
#define SINH(a) FUNCTION(sinh, a)
#define COSH(a) FUNCTION(cosh, a)
#define TANH(a) FUNCTION(tanh, a)
#define SIGMOID(a) FUNCTION(sigmoid, a)
#define SGN(a) FUNCTION(sgn, a)
#define ERF(a) FUNCTION(erf, a)
#define ERFCX(a) FUNCTION(erfcx, a)
#define ERFINV(a) FUNCTION(erfinv, a)
#define LOG_NDTR(a) FUNCTION(log_ndtr, a)
#define DIGAMMA(a) FUNCTION(digamma, a)
#define LGAMMA(a) FUNCTION(lgamma, a)
#define I0(a) FUNCTION(i0, a)
#define I0E(a) FUNCTION(i0e, a)
#define I1(a) FUNCTION(i1, a)
#define I1E(a) FUNCTION(i1e, a)
#define ERFC(a) FUNCTION(erfc, a)
#define ISFINITE(a) FUNCTION(isfinite, a)
#define ISNAN(a) FUNCTION(isnan, a)
#define COSINE_TO(a, b) FUNCTION2(cosine_to, a, b)
#define GAMMA_DENSITY(a, b) FUNCTION2(gamma_density, a, b)
#define POW(a, b) FUNCTION2(pow, a, b)
#define XLOGY(a, b) FUNCTION2(xlogy, a, b)
#define XLOG1PY(a, b) FUNCTION2(xlog1py, a, b)
#define POLYGAMMA(n, a) FUNCTION2(polygamma_of, n, a)
#define ZETA(a, b) FUNCTION2(zeta, a, b)
/* The constants of gelu's approximation; see its row. */
#define GELU_C 0.79788456080286535588
#define GELU_K 0.044715
#define GELU_TANH TANH(MUL(C(GELU_C), ADD(x, MUL(C(GELU_K), MUL(x, MUL(x, x))))))
#endif

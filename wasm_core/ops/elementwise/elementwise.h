/* Shared by element-wise ops: promotion, destinations, loops, and running loops.
 *
 * A loop sees contiguous arrays of its own type only. `elementwise_run` copies strided, broadcast
 * and differently typed operands to buffers a block at a time, so an op needs at most one loop each
 * for float, double and int64. */
#ifndef PG_ELEMENTWISE_H
#define PG_ELEMENTWISE_H

#include <stddef.h>

#include "kernels/loops.h"
#include "kernels/maths.h"
#include "kernels/simd.h"
#include "kernels/transcendental.h"
#include "ops/op.h"
#include "ops/run.h"
#include "tensor/iter.h"

enum {
  NOTHING = 0,
  KEEP_X = 1,
  KEEP_A = 1,
  KEEP_B = 2,
  KEEP_Y = 4,
  REFUSED = 8,
  CALLED_WEIGHT = 16,
  ROOM = 32,
  KEEP_XY = KEEP_X | KEEP_Y
};
/* Variants of KEEP_X whose nodes show numbers in other ways; see FIELDS_. */
enum {
  KEEP_X_NONE = KEEP_X,
  KEEP_X_TANH = KEEP_X,
  KEEP_X_EPS = KEEP_X,
  KEEP_X_ALONE = KEEP_X,
  KEEP_X_FIRST = KEEP_X,
  KEEP_X_BUFFER = KEEP_X | ROOM
};

/* The dtypes that an op takes, and its loops. FLOAT makes integers the default floating type; WIDE
 * too, and computes in double. REAL refuses integers; REAL_WIDE too, and computes in double. NUMBER
 * takes all but bool, ANY all. INTEGER and INTEGRAL refuse floating types, INTEGER also bool. TRUTH
 * takes all as true or false. Integers are computed in int64. OWN: the float loop is in
 * transcendental.c; for REAL_OWN and FLOAT_OWNS that of the gradient too. ..._COMPLEX takes complex
 * numbers too, with gradients composed of ops. */
enum { TAKES_COMPLEX = 1 << KIND_COMPLEX };
typedef enum {
  FLOAT,
  WIDE,
  REAL,
  REAL_WIDE,
  NUMBER,
  ANY,
  TRUTH,
  INTEGER,
  INTEGRAL,
  FLOAT_OWN = FLOAT,
  WIDE_OWN = WIDE,
  FLOAT_OWNS = FLOAT,
  REAL_OWN = REAL,
  REAL_VALUE_OWN = REAL,
  NUMBER_OWN = NUMBER,
  ANY_QUICK = ANY,
  FLOAT_COMPLEX = FLOAT | TAKES_COMPLEX,
  FLOAT_OWN_COMPLEX = FLOAT_COMPLEX,
  FLOAT_OWNS_COMPLEX = FLOAT_COMPLEX,
  WIDE_COMPLEX = WIDE | TAKES_COMPLEX,
  REAL_OWN_COMPLEX = REAL | TAKES_COMPLEX,
  REAL_WIDE_COMPLEX = REAL_WIDE | TAKES_COMPLEX,
  NUMBER_COMPLEX = NUMBER | TAKES_COMPLEX,
  ANY_COMPLEX = ANY | TAKES_COMPLEX,
  ANY_QUICK_COMPLEX = ANY_COMPLEX,
  TRUTH_COMPLEX = TRUTH | TAKES_COMPLEX
} Domain;

/* a float whose loops are not vectorised; one whose loops take four vectors at a time */
typedef float single, quick;
/* Computes n elements: p[0] is the result, which may be one of the operands p[1], ...; k are three
 * host numbers. For float and bytes n is a multiple of LANES. */
typedef void Flat(char *const *p, size_t n, const double *k, LoopScratch *s);

/* The loops of an op. A type without one is computed in double, int64 or complex_f64. */
typedef struct {
  /* u8, b8: for uint8 and bool where they are common; bools have any bytes */
  Flat *f32, *f64, *i64, *u8, *b8, *c64, *c128;
} Loops;

/* The tensor for the result of an in-place or out= call. The first element-wise op of a DIRECT row
 * takes it. */
extern Tensor *destination;
extern const InPlaceNodes eq_in_place, ne_in_place, lt_in_place, le_in_place, gt_in_place,
    ge_in_place;

/* A result for operands t[0..n): broadcast shape and PyTorch's layout; or the destination. */
Tensor *elementwise_result(int n, Tensor *const *t, DType dtype);
/* x as `dtype` without history. */
Tensor *elementwise_cast(Tensor *x, DType dtype);
/* The operands of an op on type d. Operands of an op on a half type are cast to it first, like
 * PyTorch's, since loops would else take them as float. `factor`: a number b that multiplies or
 * divides is not cast. */
typedef struct {
  Tensor *in[2];
} Operands;
static inline Operands operands(DType d, Tensor *a, Tensor *b, bool factor) {
  if (!dtype_is_half(d)) return (Operands){{a, b}};
  return (Operands){{elementwise_cast(a, d), factor && b->ndim == 0 ? b : elementwise_cast(b, d)}};
}
/* A product or a quotient of tensors that are not strided, recorded like another. `pairing` makes its
 * value of what f gives for pairs of strided values. */
typedef Tensor *EachPair(const void *with, Tensor *a, Tensor *b);
typedef Tensor *Pairing(Tensor *a, Tensor *b, EachPair *f, const void *with);
Tensor *elementwise_paired(bool quotient, Tensor *a, Tensor *b, Pairing *pairing);
/* Whether alpha may scale an operand of a sum of type d; PyTorch's errors. */
bool elementwise_check_alpha(DType d, const Tensor *alpha);
/* The node of a + alpha b, or of a - alpha b. */
Node *elementwise_sum_node(Tensor *a, Tensor *b, double alpha, bool negated);
/* Runs the loop of a table for type d over n operands, which it casts; the result has type d, or
 * bool. Nothing is recorded. */
Tensor *elementwise_run(const Loops *loops, const Tensors *in, DType d, const double *k);
Tensor *elementwise_run_bool(const Loops *loops, int n, Tensor *const *in, DType d);
/* Runs a loop on operands of type `inner` with a result of type `outer` (DT_NONE: as in memory),
 * with casts from and to memory. The result tensor has type `out`. */
Tensor *elementwise_run_typed(Flat *loop, int n, Tensor *const *in, DType inner, DType outer,
                              DType out, const double *k);
/* Complex variants of real ops (complex.c). */
Tensor *complex_abs_of(Tensor *x);
Tensor *complex_angle_of(Tensor *x);
Tensor *complex_sgn_of(Tensor *x);
/* Runs a loop over operands as they are, for a result of type `out`. */
Tensor *elementwise_run_raw(Flat *loop, int n, Tensor *const *in, DType out);

/* --- loops: FLATn(function, result type, operand type T, type W to wrap around in, value of x
 * or a, b, c, d) --- */
#define FLAT_HEAD(FN, R, A, WRAP)                                                 \
  static void FN(char *const *q_, size_t n_, const double *k_, LoopScratch *s_) { \
    const size_t n = FLAT_COUNT_##A(n_);                                          \
    typedef A T;                                                                  \
    typedef WRAP W;                                                               \
    R *o_ = (R *)(void *)q_[0];                                                   \
    const double p0_ = k_[0], p1_ = k_[1], p2_ = k_[2];                           \
    (void)sizeof(W), (void)sizeof(T), (void)p0_, (void)p1_, (void)p2_, (void)s_;
/* A host number as a T. */
#define HOST_NUMBER(p) _Generic((T)0, int64_t: int_from_double(p), default: (T)(p))
#define FLAT_IN(k) const T *i##k##_ = (const T *)(const void *)q_[k];
#define FLAT_FOR(A) FLAT_FOR_##A for (size_t i = 0; i < n; i++)
#define FLAT1(FN, R, A, WRAP, VALUE)                 \
  FLAT_HEAD(FN, R, A, WRAP) FLAT_IN(1) FLAT_FOR(A) { \
    T x = i1_[i];                                    \
    o_[i] = (R)(VALUE);                              \
  }                                                  \
  }
#define FLAT2(FN, R, A, WRAP, VALUE)                            \
  FLAT_HEAD(FN, R, A, WRAP) FLAT_IN(1) FLAT_IN(2) FLAT_FOR(A) { \
    T a = i1_[i], b = i2_[i];                                   \
    o_[i] = (R)(VALUE);                                         \
  }                                                             \
  }
#define FLAT3(FN, R, A, WRAP, VALUE)                                       \
  FLAT_HEAD(FN, R, A, WRAP) FLAT_IN(1) FLAT_IN(2) FLAT_IN(3) FLAT_FOR(A) { \
    T a = i1_[i], b = i2_[i], c = i3_[i];                                  \
    o_[i] = (R)(VALUE);                                                    \
  }                                                                        \
  }

#define FLAT4(FN, R, A, WRAP, VALUE)                                                  \
  FLAT_HEAD(FN, R, A, WRAP) FLAT_IN(1) FLAT_IN(2) FLAT_IN(3) FLAT_IN(4) FLAT_FOR(A) { \
    T a = i1_[i], b = i2_[i], c = i3_[i], d = i4_[i];                                 \
    o_[i] = (R)(VALUE);                                                               \
  }                                                                                   \
  }

/* The loops of a domain, and the table of them. M(function, T, W, value) makes one. */
#define LOOPS_FLOAT(M, fn, V) M(fn##_f32, float, float, V) SMALL M(fn##_f64, double, double, V)
#define LOOPS_FLOAT_OWN(M, fn, V) SMALL M(fn##_f64, double, double, V)
#define LOOPS_WIDE_OWN LOOPS_FLOAT_OWN
#define LOOPS_REAL_OWN LOOPS_FLOAT_OWN
#define LOOPS_REAL_VALUE_OWN LOOPS_FLOAT_OWN
#define LOOPS_FLOAT_OWNS LOOPS_FLOAT_OWN
#define LOOPS_NUMBER_OWN(M, fn, V) LOOPS_FLOAT_OWN(M, fn, V) LOOPS_INTEGER(M, fn, V)
#define LOOPS_WIDE(M, fn, V) SMALL M(fn##_f64, double, double, V)
#define LOOPS_REAL(M, fn, V) LOOPS_FLOAT(M, fn, V)
#define LOOPS_REAL_WIDE(M, fn, V) LOOPS_WIDE(M, fn, V)
#define LOOPS_INTEGER(M, fn, V) SMALL M(fn##_i64, int64_t, uint64_t, V)
#define LOOPS_INTEGRAL(M, fn, V) LOOPS_INTEGER(M, fn, V) M(fn##_u8, uint8_t, uint32_t, V)
#define LOOPS_NUMBER(M, fn, V) LOOPS_FLOAT(M, fn, V) LOOPS_INTEGER(M, fn, V)
/* Loops without vectors, for values with branches. */
#define LOOPS_SERIAL(M, fn, V)         \
  SMALL M(fn##_f32, single, single, V) \
  SMALL M(fn##_f64, double, double, V) LOOPS_INTEGER(M, fn, V)
#define LOOPS_ANY(M, fn, V) LOOPS_NUMBER(M, fn, V)
/* LOOPS_ANY with a faster float loop, for operations that cost less than their loop. */
#define LOOPS_ANY_QUICK(M, fn, V) \
  M(fn##_f32, quick, quick, V) SMALL M(fn##_f64, double, double, V) LOOPS_INTEGER(M, fn, V)
#define TABLE_ANY_QUICK TABLE_NUMBER
#define LOOPS_TRUTH(M, fn, V) LOOPS_ANY(M, fn, V) M(fn##_u8, uint8_t, uint32_t, V)
/* Complex loops: in double, and in float for operations of a few C operators. */
#define LOOPS_Z(M, fn, V) SMALL M(fn##_c128, complex_f64, complex_f64, V)
#define LOOPS_ZS(M, fn, V) LOOPS_Z(M, fn, V) SMALL M(fn##_c64, complex_f32, complex_f32, V)
#define LOOPS_FLOAT_COMPLEX(M, fn, V) LOOPS_FLOAT(M, fn, V) LOOPS_Z(M, fn, V)
#define LOOPS_FLOAT_OWN_COMPLEX(M, fn, V) LOOPS_FLOAT_OWN(M, fn, V) LOOPS_Z(M, fn, V)
#define LOOPS_FLOAT_OWNS_COMPLEX LOOPS_FLOAT_OWN_COMPLEX
#define LOOPS_REAL_OWN_COMPLEX LOOPS_FLOAT_OWN_COMPLEX
#define LOOPS_REAL_COMPLEX LOOPS_FLOAT_COMPLEX
#define LOOPS_SERIAL_COMPLEX(M, fn, V) LOOPS_SERIAL(M, fn, V) LOOPS_Z(M, fn, V)
#define LOOPS_WIDE_COMPLEX(M, fn, V) LOOPS_WIDE(M, fn, V) LOOPS_Z(M, fn, V)
#define LOOPS_REAL_WIDE_COMPLEX LOOPS_WIDE_COMPLEX
#define LOOPS_NUMBER_COMPLEX(M, fn, V) LOOPS_NUMBER(M, fn, V) LOOPS_ZS(M, fn, V)
#define LOOPS_ANY_COMPLEX(M, fn, V) LOOPS_ANY(M, fn, V) LOOPS_ZS(M, fn, V)
#define LOOPS_ANY_QUICK_COMPLEX(M, fn, V) LOOPS_ANY_QUICK(M, fn, V) LOOPS_ZS(M, fn, V)
#define LOOPS_TRUTH_COMPLEX(M, fn, V) LOOPS_TRUTH(M, fn, V) LOOPS_Z(M, fn, V)
#define TABLE_Z(fn) .c128 = fn##_c128
#define TABLE_ZS(fn) TABLE_Z(fn), .c64 = fn##_c64
#define TABLE_FLOAT_COMPLEX(fn) TABLE_FLOAT(fn), TABLE_Z(fn)
#define TABLE_FLOAT_OWN_COMPLEX TABLE_FLOAT_COMPLEX
#define TABLE_FLOAT_OWNS_COMPLEX TABLE_FLOAT_COMPLEX
#define TABLE_REAL_OWN_COMPLEX TABLE_FLOAT_COMPLEX
#define TABLE_REAL_COMPLEX TABLE_FLOAT_COMPLEX
#define TABLE_SERIAL_COMPLEX(fn) TABLE_SERIAL(fn), TABLE_Z(fn)
#define TABLE_WIDE_COMPLEX(fn) TABLE_WIDE(fn), TABLE_Z(fn)
#define TABLE_REAL_WIDE_COMPLEX TABLE_WIDE_COMPLEX
#define TABLE_NUMBER_COMPLEX(fn) TABLE_NUMBER(fn), TABLE_ZS(fn)
#define TABLE_ANY_COMPLEX TABLE_NUMBER_COMPLEX
#define TABLE_ANY_QUICK_COMPLEX TABLE_NUMBER_COMPLEX
#define TABLE_TRUTH_COMPLEX(fn) TABLE_TRUTH(fn), TABLE_Z(fn)
#define TABLE_FLOAT(fn) .f32 = fn##_f32, .f64 = fn##_f64
#define TABLE_FLOAT_OWN TABLE_FLOAT
#define TABLE_WIDE_OWN TABLE_FLOAT
#define TABLE_REAL_OWN TABLE_FLOAT
#define TABLE_REAL_VALUE_OWN TABLE_FLOAT
#define TABLE_FLOAT_OWNS TABLE_FLOAT
#define TABLE_NUMBER_OWN TABLE_NUMBER
#define TABLE_WIDE(fn) .f64 = fn##_f64
#define TABLE_REAL(fn) TABLE_FLOAT(fn)
#define TABLE_REAL_WIDE(fn) TABLE_WIDE(fn)
#define TABLE_INTEGER(fn) .i64 = fn##_i64
#define TABLE_INTEGRAL(fn) TABLE_INTEGER(fn), .u8 = fn##_u8, .b8 = fn##_b8
#define TABLE_NUMBER(fn) TABLE_FLOAT(fn), TABLE_INTEGER(fn)
#define TABLE_SERIAL(fn) TABLE_NUMBER(fn)
#define TABLE_ANY(fn) TABLE_NUMBER(fn)
#define TABLE_TRUTH(fn) TABLE_ANY(fn), .u8 = fn##_u8, .b8 = fn##_u8
/* The loops of a domain's gradient: integers have none. */
#define LOOPS_GRAD_FLOAT LOOPS_FLOAT
#define LOOPS_GRAD_REAL LOOPS_FLOAT
#define LOOPS_GRAD_FLOAT_OWN LOOPS_FLOAT
#define LOOPS_GRAD_REAL_OWN LOOPS_FLOAT_OWN
#define LOOPS_GRAD_REAL_VALUE_OWN LOOPS_FLOAT
#define LOOPS_GRAD_FLOAT_OWNS LOOPS_FLOAT_OWN
#define LOOPS_GRAD_NUMBER_OWN LOOPS_FLOAT
#define LOOPS_GRAD_NUMBER LOOPS_FLOAT
#define LOOPS_GRAD_ANY LOOPS_FLOAT
#define LOOPS_GRAD_ANY_QUICK LOOPS_FLOAT
#define LOOPS_GRAD_WIDE LOOPS_WIDE
#define LOOPS_GRAD_WIDE_OWN LOOPS_WIDE
#define LOOPS_GRAD_REAL_WIDE LOOPS_WIDE
#define LOOPS_GRAD_INTEGER(M, fn, V)
#define LOOPS_GRAD_INTEGRAL(M, fn, V)
#define TABLE_GRAD_FLOAT TABLE_FLOAT
#define TABLE_GRAD_REAL TABLE_FLOAT
#define TABLE_GRAD_FLOAT_OWN TABLE_FLOAT
#define TABLE_GRAD_REAL_OWN TABLE_FLOAT
#define TABLE_GRAD_REAL_VALUE_OWN TABLE_FLOAT
#define TABLE_GRAD_FLOAT_OWNS TABLE_FLOAT
#define TABLE_GRAD_NUMBER_OWN TABLE_FLOAT
#define TABLE_GRAD_NUMBER TABLE_FLOAT
#define TABLE_GRAD_ANY TABLE_FLOAT
#define TABLE_GRAD_ANY_QUICK TABLE_FLOAT
#define TABLE_GRAD_WIDE TABLE_WIDE
#define TABLE_GRAD_WIDE_OWN TABLE_WIDE
#define TABLE_GRAD_REAL_WIDE TABLE_WIDE
#define TABLE_GRAD_INTEGER(fn) 0
#define TABLE_GRAD_INTEGRAL(fn) 0
#define LOOPS_GRAD_FLOAT_COMPLEX LOOPS_GRAD_FLOAT
#define TABLE_GRAD_FLOAT_COMPLEX TABLE_GRAD_FLOAT
#define LOOPS_GRAD_FLOAT_OWN_COMPLEX LOOPS_GRAD_FLOAT_OWN
#define TABLE_GRAD_FLOAT_OWN_COMPLEX TABLE_GRAD_FLOAT_OWN
#define LOOPS_GRAD_FLOAT_OWNS_COMPLEX LOOPS_GRAD_FLOAT_OWNS
#define TABLE_GRAD_FLOAT_OWNS_COMPLEX TABLE_GRAD_FLOAT_OWNS
#define LOOPS_GRAD_WIDE_COMPLEX LOOPS_GRAD_WIDE
#define TABLE_GRAD_WIDE_COMPLEX TABLE_GRAD_WIDE
#define LOOPS_GRAD_REAL_OWN_COMPLEX LOOPS_GRAD_REAL_OWN
#define TABLE_GRAD_REAL_OWN_COMPLEX TABLE_GRAD_REAL_OWN
#define LOOPS_GRAD_REAL_WIDE_COMPLEX LOOPS_GRAD_REAL_WIDE
#define TABLE_GRAD_REAL_WIDE_COMPLEX TABLE_GRAD_REAL_WIDE
#define LOOPS_GRAD_NUMBER_COMPLEX LOOPS_GRAD_NUMBER
#define TABLE_GRAD_NUMBER_COMPLEX TABLE_GRAD_NUMBER
#define LOOPS_GRAD_ANY_COMPLEX LOOPS_GRAD_ANY
#define TABLE_GRAD_ANY_COMPLEX TABLE_GRAD_ANY
#define LOOPS_GRAD_ANY_QUICK_COMPLEX LOOPS_GRAD_ANY_QUICK
#define TABLE_GRAD_ANY_QUICK_COMPLEX TABLE_GRAD_ANY_QUICK
#define LOOPS_WITH(M, domain, fn, V) \
  LOOPS_##domain(M, fn, V) static const Loops fn[1] = {{TABLE_##domain(fn)}};
/* Operands and result of one type. */
#define SAME1(fn, A, WRAP, V) FLAT1(fn, A, A, WRAP, V)
#define SAME2(fn, A, WRAP, V) FLAT2(fn, A, A, WRAP, V)
#define SAME3(fn, A, WRAP, V) FLAT3(fn, A, A, WRAP, V)
#define SAME4(fn, A, WRAP, V) FLAT4(fn, A, A, WRAP, V)
#define LOOPS(domain, arity, fn, V) LOOPS_WITH(SAME##arity, domain, fn, V)

#if defined(__clang__)
#define LOOPS_BEGIN                                                                              \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wint-in-bool-context\"") \
      _Pragma("clang diagnostic ignored \"-Wtautological-compare\"")                             \
          _Pragma("clang diagnostic ignored \"-Wpass-failed\"")                                  \
              _Pragma("clang diagnostic ignored \"-Wunused-variable\"")
#define LOOPS_END _Pragma("clang diagnostic pop")
#else
#define LOOPS_BEGIN                                                                          \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wint-in-bool-context\"") \
      _Pragma("GCC diagnostic ignored \"-Wtype-limits\"")                                    \
          _Pragma("GCC diagnostic ignored \"-Wbool-compare\"")                               \
              _Pragma("GCC diagnostic ignored \"-Wunused-variable\"")
#define LOOPS_END _Pragma("GCC diagnostic pop")
#endif

#endif

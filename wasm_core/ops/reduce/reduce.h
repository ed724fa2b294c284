/* Shared by reductions: the choice of dimensions, and folds over them.
 *
 * A fold combines the elements of the reduced dimensions in an order that depends on their sizes
 * alone: blocks of FOLD_BLOCK elements, four lanes within a block (element i in lane i mod 4),
 * FOLD_GROUP elements at a time, eight to a lane and those pairwise, and blocks pairwise.
 * Adjacent reduced dimensions are one run; runs fold innermost first. So a transposed or strided
 * tensor gives the bits of its contiguous copy. Integers, where order does not matter, fold
 * plainly. */
#ifndef PG_REDUCE_H
#define PG_REDUCE_H

#include "ops/elementwise/elementwise.h"

typedef struct Reducer Reducer;

/* One strip of columns, each of which is folded over n rows. A single run is one column with step
 * 1. */
typedef struct {
  const Reducer *reducer;
  const void *x;
  int64_t n, step; /* rows, and elements from one to the next */
  int64_t width;   /* columns, adjacent in x */
  void *out;
  int64_t *index;    /* second results; may be NULL */
  int64_t out_step;  /* elements from one result to the next */
  const void *param; /* a number per column, of the result's type; NULL if the kernel has none */
  int64_t param_step;
} Strip;

typedef void Fold(const Strip *s);

struct Reducer {
  Fold *run;     /* width == 1, step == 1 */
  Fold *columns; /* width <= FOLD_COLUMNS */
  DType input, result;
  /* For folds by lanes: a block of up to FOLD_BLOCK elements, a strip of up to FOLD_BLOCK rows, and
   * the combination of two such results. */
  void (*block)(const void *x, int64_t n, const void *param, void *y);
  void (*strip)(const void *x, int64_t n, int64_t step, int64_t width, const void *param, void *y);
  void (*combine)(void *y, const void *later, int64_t width);
  /* For hot folds: FOLD_FULL full blocks at once, faster, with the same result. NULL: one by
   * one. */
  void (*full)(const void *x, void *y);
};

enum { FOLD_GROUP = 32, FOLD_BLOCK = 1024, FOLD_FULL = 8, FOLD_COLUMNS = 512, FOLD_LEVELS = 26 };

typedef uint64_t DimMask;

/* The dims as a mask; n == -1 or 0 means all. False with PyTorch's error. */
bool reduce_dims_mask(const Tensor *x, Ints dims, DimMask *mask);
DimMask reduce_dims_all(const Tensor *x);

/* Folds x over the masked dims into a contiguous tensor with those dims kept at size 1. `folds`
 * maps and folds x, by its dtype, which widens if there is no entry; `rest` folds the results
 * where the mask has a gap. `param` has the shape of the result; `index`, for masks without
 * gaps, gets the second results and has that shape too. */
Tensor *reduce_fold(const Reducer *folds, const Reducer *rest, Tensor *x, DimMask mask,
                    Tensor *param, Tensor *index);
/* The parts of x's complex numbers in a last dimension, unrecorded; and the inverse, in place, for
 * fresh contiguous parts. So a sum of complex numbers is a sum of real ones. */
Tensor *reduce_parts_of(Tensor *x);
Tensor *reduce_complex_of_parts(Tensor *y);
/* Drops the masked dims (all of size 1) from a fresh tensor. */
Tensor *reduce_drop_dims(Tensor *y, DimMask mask);
/* The elements folded into each result. */
int64_t reduce_fold_count(const Tensor *x, DimMask mask);
/* False, with PyTorch's error, if a gradient would have to pass an integer result. */
bool reduce_check_recorded(const Tensor *x, DType result);

/* Nodes of reductions keep {mask, keepdim, sizes of the input ...} from number `at`. */
enum { SHAPE_NUMBERS = 2 };
void reduce_note_shape(Node *n, int at, const Tensor *x, DimMask mask, bool keepdim);
/* A gradient or result of the reduction noted at `at`, with its reduced dims back (size 1), or
 * expanded. */
Tensor *reduce_restore_dims(Tensor *g, const Node *n, int at);
Tensor *reduce_expand_back(Tensor *g, const Node *n, int at);
DimMask reduce_noted_mask(const Node *n, int at);
Ints reduce_noted_dims(const Node *n, int at, int64_t *buffer); /* buffer: MAX_DIM */
/* The tangent of a reduction noted at `at`, whose result is y: sums the products of the gradient of
 * each result with t, the tangent of x. */
Tensor *reduce_sum_along(const Node *n, int at, Tensor *gradient, Tensor *t, const Tensor *y);

/* Ops whose values are elements picked along dim: the node, whose indices (slot 0) are saved later,
 * and the gradient, which sends g to the indices. */
Node *extrema_select_node(const NodeType *type, Tensor *x, int64_t dim, bool keepdim);
Tensor *extrema_select_gradient(Node *n, Tensor *g);
/* The gradient of one element picked from all (saved: x, y): shared evenly by those equal to it. */
Tensor *extrema_whole_gradient(Node *n, Tensor *g);

/* The folds of each kind by dtype. Results have the input's type unless noted. */
/* integers in int64 */
extern const Reducer sum_folds[DT_COUNT], nansum_folds[DT_COUNT], prod_folds[DT_COUNT];
extern const Reducer count_folds[DT_COUNT]; /* int64 */
extern const Reducer max_folds[DT_COUNT], min_folds[DT_COUNT];
extern const Reducer argmax_folds[DT_COUNT], argmin_folds[DT_COUNT]; /* with the index */
extern const Reducer squares_folds[DT_COUNT]; /* sums of the squares of floating types */
extern const Reducer total_folds[DT_COUNT];   /* sums of floating types in double */
extern const Reducer spread_folds[DT_COUNT];  /* squares about the parameter, in double */

/* --- kernels: MAP is an expression of `v`, a T, and `c`, the parameter, an A; OP(a, b) combines
 * As --- */
#define FOLD_ADD(a, b) ((a) + (b))
#define FOLD_MUL(a, b) ((a) * (b))
/* Extremes of numbers, in one instruction; NaNs are not kept. */
#define NUMBER_MAX(a, b) ((a) < (b) ? (b) : (a))
#define NUMBER_MIN(a, b) ((b) < (a) ? (b) : (a))
/* Extremes in which the first NaN wins and stays. */
#define FOLD_MAX(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define FOLD_MIN(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))

/* Vectors, but not several at a time: there are many of these loops, and the size of the binary is
 * limited. */
#if defined(__clang__)
#define SHORT_LOOP _Pragma("clang loop interleave(disable) unroll(disable)")
#define EACH_LANE _Pragma("clang loop unroll(full)")
#define LONG_LOOP _Pragma("clang loop interleave_count(4) unroll(disable)")
#else
#define SHORT_LOOP
#define EACH_LANE _Pragma("GCC unroll 32")
#define LONG_LOOP
#endif

void reduce_fold_blocks(const Strip *s);
void reduce_fold_strips(const Strip *s);

/* Kernels that fold by lanes, for floating types and LANE_REDUCER(NAME, input, result). SIZE: FAST,
 * or SMALL where columns are rare. */
#define FAST
#define LANE_KERNELS(SIZE, NAME, T, A, IDENTITY, MAP, OP) \
  STRIP_KERNELS(SIZE, NAME, T, A, IDENTITY, MAP, OP)      \
  BLOCK_KERNEL(NAME, NAME##_block, T, A, IDENTITY, OP)
#define BLOCK_KERNEL(NAME, BLOCK, T, A, IDENTITY, OP)                                          \
  static void BLOCK(const void *x_, int64_t n, const void *param, void *y) {                   \
    const T *restrict x = x_;                                                                  \
    A c = param ? *(const A *)param : (A)0, acc[4] = {IDENTITY, IDENTITY, IDENTITY, IDENTITY}; \
    int64_t i = 0;                                                                             \
    for (; i + FOLD_GROUP <= n; i += FOLD_GROUP) {                                             \
      A t[FOLD_GROUP];                                                                         \
      EACH_LANE for (int l = 0; l < FOLD_GROUP; l++) t[l] = NAME##_map(x[i + l], c);           \
      EACH_LANE for (int l = 0; l < 4; l++) {                                                  \
        A q[8];                                                                                \
        EACH_LANE for (int k = 0; k < 8; k++) q[k] = t[4 * k + l];                             \
        FOLD_EIGHT(A, OP, q)                                                                   \
        acc[l] = OP(acc[l], q[0]);                                                             \
      }                                                                                        \
    }                                                                                          \
    SHORT_LOOP for (; i + 4 <= n; i += 4) EACH_LANE for (int l = 0; l < 4; l++) {              \
      A t = NAME##_map(x[i + l], c);                                                           \
      acc[l] = OP(acc[l], t);                                                                  \
    }                                                                                          \
    EACH_LANE for (int l = 0; l < 3; l++) if (i + l < n) {                                     \
      A t = NAME##_map(x[i + l], c);                                                           \
      acc[l] = OP(acc[l], t);                                                                  \
    }                                                                                          \
    A low = OP(acc[0], acc[1]), high = OP(acc[2], acc[3]);                                     \
    *(A *)y = OP(low, high);                                                                   \
  }
/* q[0] = the eight values of q, combined pairwise. */
#define FOLD_EIGHT(A, OP, q)                                               \
  A low_ = OP(q[0], q[1]), high_ = OP(q[2], q[3]), low__ = OP(q[4], q[5]), \
    high__ = OP(q[6], q[7]);                                               \
  q[0] = OP(low_, high_), q[1] = OP(low__, high__), q[0] = OP(q[0], q[1]);
/* LANE_KERNELS without the block, for types with a block kernel of their own. */
#define STRIP_KERNELS(SIZE, NAME, T, A, IDENTITY, MAP, OP)                                \
  static inline A NAME##_map(T v, A c) {                                                  \
    (void)c;                                                                              \
    return (A)(MAP);                                                                      \
  }                                                                                       \
  SIZE static void NAME##_strip(const void *x, int64_t n, int64_t step, int64_t w,        \
                                const void *param, void *y_) {                            \
    A acc[4][FOLD_COLUMNS];                                                               \
    const A *restrict c = param;                                                          \
    SHORT_LOOP for (int64_t j = 0; j < w; j++)                                            \
        acc[0][j] = acc[1][j] = acc[2][j] = acc[3][j] = IDENTITY;                         \
    int64_t i = 0;                                                                        \
    for (; i + FOLD_GROUP <= n; i += FOLD_GROUP) SHORT_LOOP for (int l = 0; l < 4; l++) { \
        const T *restrict p = (const T *)x + (i + l) * step;                              \
        A *restrict a = acc[l];                                                           \
        const int64_t next = 4 * step;                                                    \
        SHORT_LOOP for (int64_t j = 0; j < w; j++) {                                      \
          A q[8];                                                                         \
          EACH_LANE for (int k = 0; k < 8; k++) q[k] = NAME##_map(p[j + k * next], c[j]); \
          FOLD_EIGHT(A, OP, q)                                                            \
          a[j] = OP(a[j], q[0]);                                                          \
        }                                                                                 \
      }                                                                                   \
    SHORT_LOOP for (; i < n; i++) {                                                       \
      const T *restrict p = (const T *)x + i * step;                                      \
      A *restrict a = acc[i & 3];                                                         \
      SHORT_LOOP for (int64_t j = 0; j < w; j++) {                                        \
        A t = NAME##_map(p[j], c[j]);                                                     \
        a[j] = OP(a[j], t);                                                               \
      }                                                                                   \
    }                                                                                     \
    A *restrict y = y_;                                                                   \
    SHORT_LOOP for (int64_t j = 0; j < w; j++) {                                          \
      A low = OP(acc[0][j], acc[1][j]), high = OP(acc[2][j], acc[3][j]);                  \
      y[j] = OP(low, high);                                                               \
    }                                                                                     \
  }                                                                                       \
  static void NAME##_combine(void *y_, const void *later_, int64_t w) {                   \
    A *restrict y = y_;                                                                   \
    const A *restrict later = later_;                                                     \
    SHORT_LOOP for (int64_t j = 0; j < w; j++) y[j] = OP(y[j], later[j]);                 \
  }
#define LANE_REDUCER(NAME, INPUT, RESULT)                          \
  {reduce_fold_blocks, reduce_fold_strips, INPUT,          RESULT, \
   NAME##_block,       NAME##_strip,       NAME##_combine, NULL}

/* Kernels that fold plainly, for types whose results do not depend on the order and
 * PLAIN_REDUCER(NAME, input, result). W is the type of the accumulator: narrower than the result A,
 * it makes better vectors. */
#define PLAIN_KERNELS(NAME, T, A, IDENTITY, MAP, OP) WIDE_KERNELS(NAME, T, A, A, IDENTITY, MAP, OP)
#define WIDE_KERNELS(NAME, T, W, A, IDENTITY, MAP, OP)                                      \
  static inline W NAME##_map(T v) { return (W)(MAP); }                                      \
  static void NAME##_run(const Strip *s) {                                                  \
    const T *restrict x = s->x;                                                             \
    W y = IDENTITY;                                                                         \
    LONG_LOOP for (int64_t i = 0; i < s->n; i++) {                                          \
      W t = NAME##_map(x[i]);                                                               \
      y = OP(y, t);                                                                         \
    }                                                                                       \
    *(A *)s->out = y;                                                                       \
  }                                                                                         \
  static void NAME##_columns(const Strip *s) {                                              \
    W acc[FOLD_COLUMNS];                                                                    \
    A *out = s->out;                                                                        \
    int64_t i = 0;                                                                          \
    SHORT_LOOP for (int64_t j = 0; j < s->width; j++) acc[j] = IDENTITY;                    \
    for (; i + 4 <= s->n; i += 4) {                                                         \
      const T *restrict p = (const T *)s->x + i * s->step, *restrict q = p + s->step,       \
                        *restrict r = q + s->step, *restrict z = r + s->step;               \
      SHORT_LOOP for (int64_t j = 0; j < s->width; j++) {                                   \
        W p_ = NAME##_map(p[j]), q_ = NAME##_map(q[j]), r_ = NAME##_map(r[j]),              \
          z_ = NAME##_map(z[j]), low = OP(p_, q_), high = OP(r_, z_), both = OP(low, high); \
        acc[j] = OP(acc[j], both);                                                          \
      }                                                                                     \
    }                                                                                       \
    for (; i < s->n; i++) {                                                                 \
      const T *restrict p = (const T *)s->x + i * s->step;                                  \
      SHORT_LOOP for (int64_t j = 0; j < s->width; j++) {                                   \
        W t = NAME##_map(p[j]);                                                             \
        acc[j] = OP(acc[j], t);                                                             \
      }                                                                                     \
    }                                                                                       \
    SHORT_LOOP for (int64_t j = 0; j < s->width; j++) out[j * s->out_step] = acc[j];        \
  }
#define PLAIN_REDUCER(NAME, INPUT, RESULT) \
  {NAME##_run, NAME##_columns, INPUT, RESULT, NULL, NULL, NULL, NULL}

/* Both floating types at once. */
#define FLOAT_KERNELS(NAME, IDENTITY, MAP, OP)                    \
  LANE_KERNELS(FAST, NAME##_f32, float, float, IDENTITY, MAP, OP) \
  LANE_KERNELS(FAST, NAME##_f64, double, double, IDENTITY, MAP, OP)
#define FLOAT_REDUCERS(NAME)                                                                       \
  [DT_F32] = LANE_REDUCER(NAME##_f32, DT_F32, DT_F32), [DT_F64] = LANE_REDUCER(NAME##_f64, DT_F64, \
                                                                               DT_F64)

#endif

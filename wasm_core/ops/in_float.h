/* Ops without loops of the half types: they compute in float, and round once, at the end.
 *
 *     Tensor *t_softmax(Tensor *x, int64_t dim) {
 *       OP_ENTERED(t_softmax, "softmax", x, dim);
 *       IN_FLOAT(t_softmax(x, dim), x);
 *
 * If the tensors named behind the call are of one half type, each variable gets a float copy that
 * stands in for its tensor in the graph. The call is made with these copies, and its float results
 * are narrowed. A narrowed tensor takes over the node that the call made: that node has saved the
 * half tensors themselves, and gets half gradients, which are widened before its formula sees them.
 * Integers, bools and numbers of the host stay as they are. Half types mixed with others are left
 * for the function to promote or refuse. */
#ifndef PG_IN_FLOAT_H
#define PG_IN_FLOAT_H

#include "call/door.h"

enum { IN_FLOAT_MAX = 9 };
typedef struct {
  DType half;                                   /* the type of the results */
  int n;                                        /* the length of these: */
  Tensor *was[IN_FLOAT_MAX], *is[IN_FLOAT_MAX]; /* tensors, and their writable stand-ins */
} InFloat;

INLINE bool is_half(const Tensor *t) { return t && dtype_is_half(tensor_dtype(t)); }
INLINE bool any_is_half(Tensors list) {
  bool any = false;
  for (int i = 0; i < list.n; i++) any |= is_half(list.v[i]);
  return any;
}
#define IS_HALF(x) (is_half(TENSOR_OF(x)) || any_is_half(LIST_OF(x)))
#define ELSE_IF() ||

/* Whether the kernel refuses t, which has elements of a half type; sets the error then. */
static inline bool refuses_half(const Tensor *t, const char *kernel) {
  return t && t->numel && dtype_is_half(tensor_dtype(t)) &&
         !dtype_no_kernel(kernel, tensor_dtype(t));
}

/* Replaces the tensors; false, with nothing done, if they are not of one half type. */
bool in_float(InFloat *f, int n, Place *places);
/* in_float for one tensor, which is cast to `dtype` first if that is given; *dtype is then
 * DT_NONE. */
bool in_float_as(InFloat *f, Tensor **x, DType *dtype);
bool in_float_mixed(InFloat *f, int n, Place *places);
bool in_float_made(InFloat *f, DType *dtype);
Tensor *in_float_narrow(InFloat *f, Tensor *y);
void in_float_narrow_all(InFloat *f, int n, Tensor **out);
/* in_float for gradients. */
Tensor **in_float_gradients(int n, Tensor **g);

#define IN_FLOAT_BEGIN(...)                                                \
  InFloat float_;                                                          \
  if (__builtin_expect(EACH_ARGUMENT(IS_HALF, ELSE_IF, __VA_ARGS__), 0) && \
      WITH_PLACES(p_, in_float(&float_, N_ARGUMENTS(__VA_ARGS__), p_), __VA_ARGS__))
#define IN_FLOAT(call, ...) IN_FLOAT_BEGIN(__VA_ARGS__) return in_float_narrow(&float_, call)
/* For a function that fills n results. */
#define IN_FLOAT_OUT(n, out, call, ...)   \
  IN_FLOAT_BEGIN(__VA_ARGS__) {           \
    call;                                 \
    in_float_narrow_all(&float_, n, out); \
    return;                               \
  }
/* The first tensor decides; the others may be float. */
#define IN_FLOAT_MIXED_BEGIN(x, ...)     \
  InFloat float_;                        \
  if (__builtin_expect(IS_HALF(x), 0) && \
      WITH_PLACES(p_, in_float_mixed(&float_, N_ARGUMENTS(x, __VA_ARGS__), p_), x, __VA_ARGS__))
#define IN_FLOAT_MIXED(call, ...) \
  IN_FLOAT_MIXED_BEGIN(__VA_ARGS__) return in_float_narrow(&float_, call)
#define IN_FLOAT_MIXED_OUT(n, out, call, ...) \
  IN_FLOAT_MIXED_BEGIN(__VA_ARGS__) {         \
    call;                                     \
    in_float_narrow_all(&float_, n, out);     \
    return;                                   \
  }
/* For a function that makes a tensor of a dtype. */
#define MADE_IN_FLOAT(dtype, call)                                                   \
  InFloat float_;                                                                    \
  if (__builtin_expect(dtype_is_half(dtype), 0) && in_float_made(&float_, &(dtype))) \
  return in_float_narrow(&float_, call)
/* For a function of x with a dtype for the result, to which x is cast first. */
#define IN_FLOAT_AS(dtype, call, x)                                                                \
  InFloat float_;                                                                                  \
  if (__builtin_expect((x) && dtype_is_half((dtype) == DT_NONE ? tensor_dtype(x) : (dtype)), 0)) { \
    Tensor *x_ = (x);                                                                              \
    DType dtype_ = (dtype);                                                                        \
    bool begun_ = in_float_as(&float_, &x_, &dtype_);                                              \
    (x) = x_, (dtype) = dtype_;                                                                    \
    if (begun_) return in_float_narrow(&float_, call);                                             \
  }

#endif

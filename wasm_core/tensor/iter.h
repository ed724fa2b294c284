/* Element-wise iteration: operands of broadcastable shapes, walked together in memory order.
 *
 * Dimensions are sorted by the strides of operand 0 (the output) and merged where all operands
 * allow it, so that contiguous operands of any rank become one inner loop. */
#ifndef PG_ITER_H
#define PG_ITER_H

#include "tensor/tensor.h"

enum { ITER_MAX = 6 };

/* Handles n elements; pointers and strides in bytes, one an operand. */
typedef void Loop(char **p, const int64_t *strides, int64_t n, const void *ctx);

typedef struct {
  int n_operands, ndim;
  char *data[ITER_MAX];
  int64_t sizes[MAX_DIM];
  int64_t strides[ITER_MAX][MAX_DIM]; /* in bytes; 0 where an operand is broadcast */
} Iter;

/* t[0] has the full shape; the others broadcast to it. Data pointers are read here. */
void iter_build(Iter *it, int n, Tensor *const *t);
void iter_run(Iter *it, Loop *loop, const void *ctx);
/* Both at once. */
void iterate(int n, Tensor *const *t, Loop *loop, const void *ctx);

/* WIDE_LOOP: four vectors at a time, where people wait for a loop of few operations; BYTES_LOOP:
 * a vector of the bytes that are among its operands. */
#if defined(__clang__)
#define VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#define WIDE_LOOP _Pragma("clang loop vectorize(assume_safety) interleave_count(4)")
#define BYTES_LOOP _Pragma("clang loop vectorize(assume_safety) vectorize_width(16)")
#else
#define VECTOR_LOOP _Pragma("GCC ivdep")
#define WIDE_LOOP VECTOR_LOOP
#define BYTES_LOOP VECTOR_LOOP
#endif

#endif

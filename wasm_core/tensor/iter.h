/* Element-wise iteration: operands of broadcastable shapes, walked together in memory order.
 *
 * Dimensions are sorted by the strides of operand 0 (the output) and merged where all operands
 * allow, so that contiguous operands of any rank take one inner loop. */
#ifndef PG_ITER_H
#define PG_ITER_H

#include "kernels/loops.h"
#include "tensor/tensor.h"

enum { ITER_MAX = 6 };

/* Handles n elements; a pointer and a stride in bytes for each operand. */
typedef void Loop(char **p, const int64_t *strides, int64_t n, const void *ctx);

typedef struct {
  int n_operands, ndim;
  char *data[ITER_MAX];
  int64_t sizes[MAX_DIM];
  int64_t strides[ITER_MAX][MAX_DIM]; /* in bytes; 0 where an operand is broadcast */
} Iter;

/* t[0] has the full shape; the others broadcast to it. Reads the data pointers. With an absent
 * operand the iteration is empty. */
void iter_build(Iter *it, int n, Tensor *const *t);
void iter_run(Iter *it, Loop *loop, const void *ctx);
/* iter_build and iter_run. */
void iter_over(int n, Tensor *const *t, Loop *loop, const void *ctx);

#endif

/* Ordering the lanes of a tensor, for the ops that need an order. */
#ifndef PG_SORT_H
#define PG_SORT_H

#include "ops/reduce/reduce.h"

/* An element as an unsigned key that orders as the element does: NaN greatest, -0 and 0 equal. */
typedef struct {
  uint64_t key;
  uint32_t index;
} Item;

/* Orders the n elements at x, `step` apart, stably, in one of two buffers of n items, and
 * returns which. */
Item *order_lane(const char *x, DType d, int64_t n, int64_t step, bool descending, Item *a,
                 Item *b);

/* Visits each lane of x along dim (0 for a scalar), with the offset of its first element in x
 * and in y, which has the sizes of x except along dim. */
typedef struct {
  const Tensor *x;
  Tensor *values, *indices;
  int64_t dim, n;            /* elements in a lane of x */
  int64_t x_step, y_step, m; /* strides in x, in the results; elements of their lanes */
  int64_t k;                 /* a further number of the op */
  bool flag;
  Item *a, *b; /* room for n items each */
} Lanes;
typedef void LaneLoop(const Lanes *s, int64_t x_at, int64_t y_at);
/* False without room for the items. */
bool order_each_lane(Lanes *s, LaneLoop *loop);

Tensor *t_sort_values(Tensor *x, int64_t dim);

#endif

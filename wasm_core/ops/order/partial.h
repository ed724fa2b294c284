/* The first items of an order, with equal items in PyTorch's places; see partial.c. */
#ifndef PG_PARTIAL_H
#define PG_PARTIAL_H

#include "ops/order/sort.h"

/* Stable, for short runs. */
void order_insertion_sort(Item *v, int64_t n);
/* Moves the least m of n to the front, in order if that is asked for or comes by itself; the rest
 * is lost. */
void order_first_items(Item *v, int64_t n, int64_t m, bool sorted);
/* Item k of the order, from 0. */
Item order_nth_item(Item *v, int64_t n, int64_t k);

#endif

/* Complex numbers and their parts, for other ops; see complex.c. */
#ifndef PG_COMPLEX_COMPLEX_H
#define PG_COMPLEX_COMPLEX_H

#include "tape/slices.h"

/* x seen as a view of lens `lens` (tape/slices.h) sees its base; recorded. */
Tensor *t_through(Tensor *x, int lens);
/* x, or if it is lazy its numbers, computed, with its place in the graph. */
Tensor *lazy_computed(Tensor *x);
/* Tells the door and the tape how lazy tensors are computed and made. */
void complex_begin(void);

#endif

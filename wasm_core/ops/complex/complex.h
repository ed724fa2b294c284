/* Complex numbers and their parts, for other ops; see complex.c. */
#ifndef PG_COMPLEX_COMPLEX_H
#define PG_COMPLEX_COMPLEX_H

#include "tape/slices.h"

/* x seen through the lens with which a view sees its base (tape/slices.h); recorded. */
Tensor *t_through(Tensor *x, int lens);
/* x itself, or a computed copy of a lazy x with its place in the graph. */
Tensor *complex_lazy_computed(Tensor *x);
/* Tells the door and the tape how to compute and make lazy tensors. */
void complex_begin(void);

#endif

/* What functions share that are composed of the decompositions. */
#ifndef PG_MATRICES_H
#define PG_MATRICES_H

#include "ops/op.h"

/* y, after letting go of all else that was made since the mark; first it gets its tangents. For
 * the steps of loops, and for what would be held to the end of the call. */
Tensor *alone(int32_t mark, Tensor *y);
/* Matrices transposed, in a history TransposeBackward0 as in PyTorch; t_t gives another. */
static inline Tensor *turned(Tensor *x) { return t_transpose(x, -2, -1); }
static inline Tensor *turned_adjoint(Tensor *x) { return t_conj(turned(x)); }

#endif

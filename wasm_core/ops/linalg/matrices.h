/* Shared by functions composed of the decompositions. */
#ifndef PG_MATRICES_H
#define PG_MATRICES_H

#include "ops/op.h"

/* Releases all tensors made since the mark but y, which gets its tangents first. For the steps of
 * loops, and for temporaries that would else live to the end of the call. */
Tensor *linalg_keep(int32_t mark, Tensor *y);
/* Transposed matrices with the node TransposeBackward0, like PyTorch's; t_t makes another node. */
static inline Tensor *matrix_transpose(Tensor *x) { return t_transpose(x, -2, -1); }
static inline Tensor *matrix_adjoint(Tensor *x) { return t_conj(matrix_transpose(x)); }

#endif

/* Triangles and diagonals that other families call. */
#ifndef PG_DIAGONAL_H
#define PG_DIAGONAL_H

#include "call/call.h"

Tensor *t_tril(Tensor *x, int64_t diagonal);
Tensor *t_triu(Tensor *x, int64_t diagonal);
Tensor *t_diag_embed(Tensor *x, int64_t offset, int64_t dim1, int64_t dim2);
Tensor *t_diagonal_copy(Tensor *x, int64_t offset, int64_t d0, int64_t d1);

#endif

/* Triangles and diagonals that rows of the table and other families call. */
#ifndef PG_DIAGONAL_H
#define PG_DIAGONAL_H

#include "call/call.h"

Tensor *t_tril(Tensor *x, int64_t diagonal);
Tensor *t_triu(Tensor *x, int64_t diagonal);
Tensor *t_trace(Tensor *x);
Tensor *t_diag_embed(Tensor *x, int64_t offset, int64_t dim1, int64_t dim2);
Tensor *t_diagonal_copy(Tensor *x, int64_t offset, int64_t d0, int64_t d1);
Tensor *t_diag(Tensor *x, int64_t offset);
Tensor *t_diagflat(Tensor *x, int64_t offset);
Tensor *t_fill_diagonal_(Tensor *x, Tensor *value, bool wrap);

#endif

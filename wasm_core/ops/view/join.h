/* Joins that rows of the table and other families call. */
#ifndef PG_JOIN_H
#define PG_JOIN_H

#include "call/call.h"

Tensor *t_stack_side(Tensors ts, int ndim, bool column, const char *name);
Tensor *t_block_diag(Tensors ts);
Tensor *t_cartesian_prod(Tensors ts);
Tensor *t_combinations(Tensor *x, int64_t r, bool again);

#endif

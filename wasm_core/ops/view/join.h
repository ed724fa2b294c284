/* Joins, repeats, turns, triangles and diagonals that rows of the table and other families call. */
#ifndef PG_JOIN_H
#define PG_JOIN_H

#include "call/call.h"

bool check_tensors(Tensors ts); /* TypeError if one is missing */

Tensor *t_stack_side(Tensors ts, int ndim, bool column, const char *name);
Tensor *t_block_diag(Tensors ts);
Tensor *t_flip_side(Tensor *x, int64_t dim); /* fliplr: 1, flipud: 0 */
Tensor *t_roll(Tensor *x, Ints shifts, Ints dims);
Tensor *t_rot90(Tensor *x, int64_t k, Ints dims);
Tensor *t_repeat(Tensor *x, Ints repeats);
Tensor *t_tile(Tensor *x, Ints dims);
Tensor *t_repeat_indices(Tensor *repeats, int64_t output_size); /* output_size -1: any */
/* dim NULL: flat */
Tensor *t_repeat_interleave(Tensor *x, Tensor *repeats, const int64_t *dim, int64_t output_size);
Tensor *t_repeat_interleave_int(Tensor *x, int64_t times, const int64_t *dim, int64_t output_size);
Tensor *t_tril(Tensor *x, int64_t diagonal);
Tensor *t_triu(Tensor *x, int64_t diagonal);
Tensor *t_trace(Tensor *x);
Tensor *t_diag_embed(Tensor *x, int64_t offset, int64_t dim1, int64_t dim2);
Tensor *t_diagonal_copy(Tensor *x, int64_t offset, int64_t d0, int64_t d1);
Tensor *t_diag(Tensor *x, int64_t offset);
Tensor *t_diagflat(Tensor *x, int64_t offset);
Tensor *t_fill_diagonal_(Tensor *x, Tensor *value, bool wrap);
Tensor *t_kron(Tensor *a, Tensor *b);
Tensor *t_cartesian_prod(Tensors ts);
Tensor *t_combinations(Tensor *x, int64_t r, bool again);

#endif

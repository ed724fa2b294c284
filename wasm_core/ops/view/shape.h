/* Ops made of views that rows of the table call. `op_` functions give their result to the call. */
#ifndef PG_SHAPE_H
#define PG_SHAPE_H

#include "call/call.h"

bool check_tensors(Tensors ts); /* TypeError if one is missing */

Tensor *t_reshape_ints(Tensor *x, Ints sizes);
Tensor *t_view_ints(Tensor *x, Ints sizes);
Tensor *t_expand_ints(Tensor *x, Ints sizes);
Tensor *t_reshape_as(Tensor *x, Tensor *like);
Tensor *t_expand_as(Tensor *x, Tensor *like);
Tensor *t_ravel(Tensor *x);
Tensor *t_unflatten(Tensor *x, int64_t dim, Ints sizes);
Tensor *t_reversed(Tensor *x); /* Tensor.T */
Tensor *t_matrix_transpose(Tensor *x, const char *name, const char *deprecated);
Tensor *t_matrix_H(Tensor *x);
Tensor *t_movedim(Tensor *x, Ints source, Ints destination);
Tensor *t_atleast(Tensor *x, int ndim);
Tensor *t_view_dtype(Tensor *x, DType d);
Tensor **t_unbind(Tensor *x, int64_t dim, int64_t *count); /* in scratch; NULL on failure */
Tensor **t_meshgrid(Tensors ts, const char *indexing);     /* ts.n of them, in scratch */

void op_atleast(Call *c, Tensors ts, int ndim);
void op_split(Call *c, Tensor *x, int64_t step, int64_t dim);
void op_split_sizes(Call *c, Tensor *x, Ints lengths, int64_t dim);
void op_chunk(Call *c, Tensor *x, int64_t chunks, int64_t dim);
void op_tensor_split(Call *c, Tensor *x, int64_t sections, int64_t dim);
void op_tensor_split_at(Call *c, Tensor *x, Ints at, int64_t dim);
void op_tensor_split_by(Call *c, Tensor *x, Tensor *where, int64_t dim);
void op_side_split(Call *c, Tensor *x, int64_t sections, char side); /* side: h, v or d */
void op_side_split_at(Call *c, Tensor *x, Ints at, char side);
void op_unbind(Call *c, Tensor *x, int64_t dim);
void op_broadcast_tensors(Call *c, Tensors ts);
/* `sizes`: those of all shapes, one after the other; `ranks`: how many each shape has */
void op_broadcast_shapes(Call *c, Ints sizes, Ints ranks);
void op_meshgrid(Call *c, Tensors ts, const char *indexing);

/* In place. `inplace` is x if it may be written, NULL with PyTorch's error otherwise. */
Tensor *inplace(Tensor *x);
Tensor *geometry_inplace(Tensor *x, Tensor *v);
Tensor *t_resize_(Tensor *x, Ints sizes, const char *format_name);
Tensor *t_resize_as_(Tensor *x, Tensor *like, const char *format_name);
Tensor *t_set_(Tensor *x, Tensor *source); /* NULL: empty */
Tensor *t_set_strided_(Tensor *x, Tensor *source, int64_t offset, Ints sizes, Ints strides);

#endif

/* Ops made of views, for other ops. `op_` functions give their result to the call. */
#ifndef PG_SHAPE_H
#define PG_SHAPE_H

#include "call/call.h"

bool check_tensors(Tensors ts); /* TypeError if one is missing */

Tensor *t_reshape_ints(Tensor *x, Ints sizes);
Tensor *t_movedim(Tensor *x, Ints source, Ints destination);
Tensor *t_atleast(Tensor *x, int ndim);
Tensor **t_unbind(Tensor *x, int64_t dim, int64_t *count); /* in scratch; NULL on failure */
Tensor **t_meshgrid(Tensors ts, const char *indexing);     /* ts.n of them, in scratch */

void op_chunk(Call *c, Tensor *x, int64_t chunks, int64_t dim);

/* In place. `inplace` is x if it may be written, NULL with PyTorch's error otherwise. */
Tensor *inplace(Tensor *x);
Tensor *geometry_inplace(Tensor *x, Tensor *v);
/* geometry_inplace for a fresh x; or v itself if x is the host's. */
Tensor *geometry_of(Tensor *x, Tensor *v);

#endif

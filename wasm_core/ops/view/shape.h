/* Ops made of views, for other ops. `op_` functions give their result to the call. */
#ifndef PG_SHAPE_H
#define PG_SHAPE_H

#include "call/call.h"

bool shape_check_tensors(Tensors ts); /* TypeError if one is missing */

Tensor *t_reshape_ints(Tensor *x, Ints sizes);
Tensor *t_movedim(Tensor *x, Ints source, Ints destination);
Tensor *t_atleast(Tensor *x, int ndim);
Tensor **t_unbind(Tensor *x, int64_t dim, int64_t *count); /* in scratch; NULL on failure */
Tensor **t_meshgrid(Tensors ts, const char *indexing);     /* ts.n of them, in scratch */

void op_chunk(Call *c, Tensor *x, int64_t chunks, int64_t dim);

/* In place. shape_inplace returns x if it may be written, else NULL with PyTorch's error;
 * shape_take gives it the geometry and the history of v. */
Tensor *shape_inplace(Tensor *x);
Tensor *shape_take(Tensor *x, Tensor *v);
/* shape_take for a fresh x; or v itself if x is the host's. */
Tensor *shape_take_fresh(Tensor *x, Tensor *v);

#endif

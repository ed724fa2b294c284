/* Shared by views and other families, beside the ops in op.h. */
#ifndef PG_VIEW_H
#define PG_VIEW_H

#include "call/call.h"

/* A list among a node's numbers: its length, then its elements ("name:l" in NodeType.fields). */
void num_list(Node *n, int at, int count, const int64_t *v);
Ints num_list_at(const Node *n, int at);

/* sizes with one -1 filled in for numel elements; PyTorch's error if they do not fit. */
bool view_infer_size(int ndim, const int64_t *sizes, int64_t numel, int64_t *out);
/* marked[d] for every dim listed; PyTorch's errors for bad and repeated ones. */
bool view_dims_mark(int ndim, Ints dims, bool *marked);
/* Whether two elements of t may share a place. */
bool view_shares_elements(const Tensor *t);

Tensor *t_alias(Tensor *x); /* a view of all of x */
Tensor *t_t2(Tensor *x);    /* Tensor.t: rank 2 at most, a view below it too */
/* for an x that was made for it */
Tensor *t_unsafe_view(Tensor *x, int ndim, const int64_t *sizes);
Tensor *t_squeeze_dim(Tensor *x, int64_t dim);
Tensor *t_as_strided_ints(Tensor *x, Ints sizes, Ints strides, int64_t offset); /* -1: x's */

/* Zeros of `sizes`, with g at the elements of the view. */
Tensor *t_select_backward(Tensor *g, Ints sizes, int64_t dim, int64_t index);
Tensor *t_slice_backward(Tensor *g, Ints sizes, int64_t dim, int64_t start, int64_t end,
                         int64_t step);
Tensor *t_diagonal_backward(Tensor *g, Ints sizes, int64_t offset, int64_t d0, int64_t d1);
Tensor *t_unfold_backward(Tensor *g, Ints sizes, int64_t dim, int64_t size, int64_t step);

#endif

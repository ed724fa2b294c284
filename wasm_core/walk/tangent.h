/* Tangents as memory: how they are laid out, and views and copies of them.
 *
 * A tangent has the memory layout of its tensor, so the tangent of a view is the same view of the
 * tangent. Inside vmap, the tangent of a tensor that is not batched may be batched: it holds one
 * tangent for each slice, and each slice has the layout of the tensor. Ops take no batched tensors,
 * so this file has all that reads or writes tangents. */
#ifndef PG_TANGENT_H
#define PG_TANGENT_H

#include "tape/batched.h"
#include "tape/graph.h"

/* Whether a tangent has the memory layout of t. Strides count where there is a second element, the
 * offset where there is a first, and the length of the storage where the tangent is not batched. */
bool tangent_lies_as(const Tensor *tangent, const Tensor *t);
/* Zeros with the memory layout of t, batched as `like` is. The host makes them if one of the two is
 * its tensor. */
Tensor *tangent_zeros_as(Tensor *t, DType dtype, Tensor *like);
/* A copy with the memory layout of t. */
Tensor *tangent_laid_out_as(Tensor *t, Tensor *tangent);
/* The view of t's tangent with v's geometry; v is a view of t. */
Tensor *tangent_same_view(Tensor *tangent, Tensor *t, const Tensor *v);
/* The present values of t, with its history: a clone that costs no bytes. The host clones its own
 * tensor. */
Tensor *tangent_frozen_copy(Tensor *t);
Tensor *tangent_cast(Tensor *tangent, DType dtype);
/* Copies `from`, or zeros for NULL, into a tangent with all of its levels. Returns `to`. */
Tensor *tangent_write(Tensor *to, Tensor *from);
/* t, or a copy with the levels of `like` that t lacks. */
Tensor *tangent_batched_as(Tensor *t, Tensor *like);
/* t's value with a dimension in front for each of these levels, of size 1 where t lacks it, and
 * raised to `rank` by dimensions of size 1 after them. A tensor that is not batched is returned as
 * it is: it broadcasts. */
Tensor *tangent_slices_aligned(Tensor *t, uint32_t bits, int rank);
/* All slices of t at these levels, whose dimensions stand in front. Levels that t lacks are
 * expanded to the given sizes. */
Tensor *tangent_slices_at(Tensor *t, uint32_t bits, const int64_t *sizes);
/* The sizes of the levels in a set. Each is a level of one of n tensors. */
void tangent_sizes_at(uint32_t bits, int n, Tensor *const *all, int64_t *sizes);

#endif

/* Tangents as memory: how they are laid out, and views and copies of them.
 *
 * A tangent lies in memory as its tensor does, so that the tangent of a view is the same view of
 * the tangent. The tangent of a tensor that is not batched may be batched: inside vmap it is what
 * the tensor's value is pushed to from each slice of a batch of tangents. Then each slice lies as
 * the tensor does. Ops take no batched tensors, so whatever reads or writes tangents is here. */
#ifndef PG_TANGENT_H
#define PG_TANGENT_H

#include "tape/batched.h"
#include "tape/graph.h"

/* Whether a tangent lies as t does. Strides count where there is a second element, the offset
 * where there is a first, and the length of the storage where the tangent is not batched. */
bool lies_as(const Tensor *tangent, const Tensor *t);
/* Zeros that lie as t does, batched as `like` is. */
Tensor *zeros_as(const Tensor *t, DType dtype, Tensor *like);
/* A copy that lies as t does. */
Tensor *laid_out_as(const Tensor *t, Tensor *tangent);
/* Of the tangent of t the view that v is of t. */
Tensor *same_view(Tensor *tangent, const Tensor *t, const Tensor *v);
/* The values that t has now, and its history: a clone that costs no bytes. */
Tensor *frozen(Tensor *t);
Tensor *tangent_cast(Tensor *tangent, DType dtype);
/* Copies into a tangent that has all levels of the other; zeros for NULL. Gives the first. */
Tensor *tangent_write(Tensor *to, Tensor *from);
/* t, or if it lacks levels of `like` a copy that has those too. */
Tensor *batched_as(Tensor *t, Tensor *like);
/* All slices at these levels: their dimensions stand in front, those that t lacks expanded to
 * the sizes given. */
Tensor *slices_at(Tensor *t, uint32_t bits, const int64_t *sizes);
/* The sizes of the levels of a set, of which each is a level of one of n tensors. */
void sizes_at(uint32_t bits, int n, Tensor *const *all, int64_t *sizes);

#endif

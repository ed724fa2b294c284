/* Batched tensors: the arguments that a function sees inside vmap.
 *
 * A batched tensor is an alias of the first slice of its value, so it has the sizes, strides and
 * dtype that the mapped function sees. Its Meta names the value and the levels it is batched at.
 * The batch dimensions stand in front of the value, in the order of their levels, whatever the
 * nesting. So a rule handles all levels at once, and values are never batched themselves. Values
 * have the histories. */
#ifndef PG_BATCHED_H
#define PG_BATCHED_H

#include "tape/levels.h"
#include "tensor/tensor.h"

static inline bool is_batched(const Tensor *t) { return t->flags & FLAG_BATCHED; }

/* The levels that t is batched at; 0: none. */
static inline uint32_t levels_of(const Tensor *t) {
  return t && is_batched(t) ? t->meta->levels : 0;
}

/* All slices of t, or t itself if it is not batched. */
static inline Tensor *all_slices(Tensor *t) { return levels_of(t) ? t->meta->value : t; }

/* A tensor that stands for the slices of a value at these levels; the value itself for none. */
Tensor *batched_tensor(Tensor *value, uint32_t bits);

/* Whether as_strided of each slice stays within the slice; `value` has n batch dimensions. Else
 * fails with PyTorch's error. */
bool batched_check_in_slice(const Tensor *value, int n, int ndim, const int64_t *sizes,
                            const int64_t *strides, int64_t offset);

#endif

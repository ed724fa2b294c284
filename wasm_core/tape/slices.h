/* Slices: views whose base was written to, and bases that were written to through a view. */
#ifndef PG_SLICES_H
#define PG_SLICES_H

#include "tape/graph.h"

/* The geometry of a view inside its base, as the numbers of a node of type AsStridedView or
 * CopySlices: base rank, sizes, strides, view rank, sizes, strides, offset of the view from the
 * base's first element, whether an inner node's first input is the view. */
typedef struct {
  int base_ndim, ndim;
  const int64_t *base_sizes, *base_strides, *sizes, *strides;
  int64_t offset;
  bool inner_first;
} Geometry;

int geometry_count(const Tensor *base, const Tensor *v);
void geometry_store(Number *at, const Tensor *base, const Tensor *v, bool inner_first);

/* A view takes its history from its base, as it is now. */
Node *renew_view(Tensor *t);
/* The hook that fills .grad of t follows it from its old node to its new history. */
void move_retain_hook(Tensor *t, Node *from);

#endif

/* Slices: views whose base was written to, and bases that were written to through a view. */
#ifndef PG_SLICES_H
#define PG_SLICES_H

#include "tape/graph.h"

/* What a view makes of its base's elements: those of FLAGS_LAZY that differ, and whether it shows
 * the parts of complex numbers or takes parts for one. */
enum { LENS_REAL = 1, LENS_COMPLEX = 2 };
static inline int lens_of(const Tensor *base, const Tensor *v) {
  bool of_complex = dtype_is_complex((DType)base->dtype),
       complex = dtype_is_complex((DType)v->dtype);
  return ((base->flags ^ v->flags) & FLAGS_LAZY) | (of_complex && !complex ? LENS_REAL : 0) |
         (complex && !of_complex ? LENS_COMPLEX : 0);
}
/* Where the first element of the base is, counted in those of a view. */
static inline int64_t lens_offset(int64_t offset, int lens) {
  return lens & LENS_REAL ? 2 * offset : lens & LENS_COMPLEX ? offset / 2 : offset;
}

/* The geometry of a view inside its base, as the numbers of a node of type AsStridedView or
 * CopySlices: base rank, sizes, strides, view rank, sizes, strides, offset of the view from the
 * base's first element, whether an inner node's first input is the view, the lens. */
typedef struct {
  int base_ndim, ndim;
  const int64_t *base_sizes, *base_strides, *sizes, *strides;
  int64_t offset;
  bool inner_first;
  int lens;
} Geometry;

int geometry_count(const Tensor *base, const Tensor *v);
void geometry_store(Number *at, const Tensor *base, const Tensor *v, bool inner_first);

/* Notes how v was made of self, with n if there is a node for that: for views of which that counts
 * when their base is written to. */
void view_note(Tensor *self, Tensor *v, const Node *n);
/* A view takes its history from its base, as it is now. */
Node *renew_view(Tensor *t);
/* The hook that fills .grad of t follows it from its old node to its new history. */
void move_retain_hook(Tensor *t, Node *from);

#endif

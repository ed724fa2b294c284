/* Slices: views of bases that were written to, and bases written to through a view. */
#ifndef PG_SLICES_H
#define PG_SLICES_H

#include "tape/graph.h"

/* A view's conversion of its base's elements: the bits of FLAGS_LAZY that differ, LENS_REAL for a
 * real view of complex numbers, LENS_COMPLEX for the reverse. */
enum { LENS_REAL = 1, LENS_COMPLEX = 2 };
static inline int lens_of(const Tensor *base, const Tensor *v) {
  bool of_complex = dtype_is_complex(tensor_dtype(base)),
       complex = dtype_is_complex(tensor_dtype(v));
  return ((base->flags ^ v->flags) & FLAGS_LAZY) | (of_complex && !complex ? LENS_REAL : 0) |
         (complex && !of_complex ? LENS_COMPLEX : 0);
}
/* Converts an offset in the base's elements to one in the view's. */
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

int history_geometry_count(const Tensor *base, const Tensor *v);
void history_geometry_store(Number *at, const Tensor *base, const Tensor *v, bool inner_first);

/* Stores in v the nodes that make it from its base, n being the last if there is one, for the time
 * when the base is written to. */
void history_note_view(Tensor *self, Tensor *v, const Node *n);
/* Gives a view a new history from its base's present one. */
Node *history_renew_view(Tensor *t);
/* Moves the hook that fills t's .grad from its old node to its new history. */
void history_move_retain_hook(Tensor *t, Node *from);

#endif

/* How a bound call is run: see run.c. */
#ifndef PG_RUN_H
#define PG_RUN_H

#include "call/call.h"
#include "tape/graph.h"

/* The nodes of a comparison done in place, which has no derivative. */
struct InPlaceNodes {
  NodeType with_number, with_tensor;
};

/* Runs the row, in place or into out= as the call says, as if nothing were batched. Failure is the
 * status. */
void call_plain(Call *c);
/* After an in-place call computed r, of self's shape: moves the values and the history. */
void inplace_finish(const Call *c, Tensor *self, Tensor *r);
/* Dropout that drops nothing gives back its input, which it does not touch: in place no rule
 * holds for it. */
bool drops_nothing(const Call *c);

#endif

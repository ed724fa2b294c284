/* Running a bound call; see run.c. */
#ifndef PG_RUN_H
#define PG_RUN_H

#include "call/call.h"
#include "tape/graph.h"

/* The nodes of an in-place comparison, which has no derivative. */
struct InPlaceNodes {
  NodeType with_number, with_tensor;
};

/* Runs the row plainly, in place or into out=, without regard to vmap. Errors are in the status. */
void run_call_plain(Call *c);
/* After an in-place call computed r, of self's shape: moves the values and the history. */
void run_inplace_finish(const Call *c, Tensor *self, Tensor *r);
/* Whether the call is dropout that drops nothing. It returns its input untouched, so rules of
 * in-place ops do not apply. */
bool run_drops_nothing(const Call *c);

#endif

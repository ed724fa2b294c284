/* Forward mode, for the host: levels, duals, what waits; see tape/forward.h. */
#ifndef PG_WALK_FORWARD_H
#define PG_WALK_FORWARD_H

#include "tape/forward.h"

int64_t forward_enter(void);      /* the new level; PyTorch's error if there is one */
int64_t forward_level(void);      /* the one that is entered, or -1 */
void forward_exit(int64_t level); /* forgets every tangent */
void forward_begin(bool allowed); /* at the start of a call: sets forward_on */
Tensor *forward_make_dual(Tensor *primal, Tensor *tangent, int64_t level);
Tensor *forward_primal(Tensor *t, int64_t level); /* a view of t without tangent */
/* Gives t, which a custom function made, a tangent. */
void forward_set(Tensor *t, Tensor *tangent);
/* The tangent, as forward_tangent gives it, whose version is noted; whether it was written to
 * since. */
Tensor *forward_noted(Tensor *t);
bool forward_was_written(const Tensor *t);

#endif

/* Forward mode for the host: levels and dual tensors; see tape/forward.h. */
#ifndef PG_WALK_FORWARD_H
#define PG_WALK_FORWARD_H

#include "tape/forward.h"

int64_t forward_enter(void);      /* the new level; PyTorch's error if one is entered */
int64_t forward_level(void);      /* the entered level, or -1 */
void forward_exit(int64_t level); /* drops every tangent */
void forward_begin(bool allowed); /* at the start of a call: sets forward_on */
Tensor *forward_make_dual(Tensor *primal, Tensor *tangent, int64_t level);
Tensor *forward_primal(Tensor *t, int64_t level); /* a view of t without tangent */
/* Sets the tangent of t, an output of a custom function. */
void forward_set(Tensor *t, Tensor *tangent);
/* forward_noted: forward_tangent, and records the tangent's version. forward_was_written: whether
 * the tangent was written to since. */
Tensor *forward_noted(Tensor *t);
bool forward_was_written(const Tensor *t);

#endif

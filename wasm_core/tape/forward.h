/* Forward mode: tangents that travel with values.
 *
 * No op has a forward formula of its own. A gradient is a linear function of what arrives, u ->
 * J^T u, made of differentiable ops; the gradient of <J^T u, t> by u is J t, the tangent of the
 * output. So an op whose input has a tangent makes its node even if nothing is recorded, and its
 * output waits for the node: its tangent is worked out when asked for, at the latest when the
 * call ends, because a node may be given saved outputs after its output.
 *
 * A tangent lies in memory as its tensor does, so that the tangent of a view is the same view of
 * the tangent. */
#ifndef PG_FORWARD_H
#define PG_FORWARD_H

#include "tape/graph.h"

/* Whether tangents travel: a level is entered and forward mode is not switched off. */
extern bool forward_on;

/* --- for the host --- */
int64_t forward_enter(void);      /* the new level; PyTorch's error if there is one */
int64_t forward_level(void);      /* the one that is entered, or -1 */
void forward_exit(int64_t level); /* forgets every tangent */
void forward_begin(bool allowed); /* at the start of a call: sets forward_on */
void forward_settle(void);        /* at its end: works out what waits */
Tensor *forward_make_dual(Tensor *primal, Tensor *tangent, int64_t level);
Tensor *forward_primal(Tensor *t, int64_t level); /* a view of t without tangent */
/* Gives t, which a custom function made, a tangent. */
void forward_set(Tensor *t, Tensor *tangent);
/* The tangent, as forward_tangent gives it, whose version is noted; whether it was written to
 * since. */
Tensor *forward_noted(Tensor *t);
bool forward_was_written(const Tensor *t);

/* --- for the engine; each does nothing while forward_on is false --- */
Tensor *forward_tangent(Tensor *t); /* borrowed; NULL: none */
void forward_drop(Tensor *t);       /* t has no tangent from now on */
/* Keeps the tangents of a node's inputs with it; false if there are none. */
bool forward_attach(Node *n, int count, Tensor *const *inputs);
void forward_detach(Node *n); /* the opposite; of a node that dies */
void forward_output(Tensor *y, Node *n, int output_nr);
/* whether the input has a tangent, or a gradient later */
bool forward_needs(const Node *n, int input);
/* whether n's gradient function is run for its output's tangent */
bool forward_produces(const Node *n);
bool forward_waits_for(const Tensor *y, const Node *n);
void forward_view(Tensor *self, Tensor *v);
void forward_share(Tensor *from, Tensor *to); /* to is a snapshot or an alias of from */
void forward_move(Tensor *to, Tensor *from);  /* to takes the form of from */
/* After an in-place op on self: its values are those of an output of n, or have the tangent
 * given (NULL: none). */
void forward_written_by(Tensor *self, Node *n, int output_nr);
void forward_write(Tensor *self, Tensor *tangent);
void forward_forget(Tensor *t); /* a tensor that dies */

#endif

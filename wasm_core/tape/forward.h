/* Forward mode: tangents that travel with values.
 *
 * An op that goes element by element has a diagonal derivative: its gradient function, given a
 * tangent, gives its tangent. Some ops have a TANGENT function. Every other gradient is a linear
 * function of what arrives, u -> J^T u, made of differentiable ops; the gradient of <J^T u, t> by
 * u is J t, the tangent of the output. So an op whose input has a tangent makes its node even if
 * nothing is recorded, and its output waits for the node: its tangent is worked out when asked
 * for, at the latest when the call ends, because a node may be given saved outputs after its
 * output.
 *
 * A tangent lies in memory as its tensor does, so that the tangent of a view is the same view of
 * the tangent. */
#ifndef PG_FORWARD_H
#define PG_FORWARD_H

#include <stddef.h>

#include "tape/graph.h"

/* Whether tangents travel: a level is entered and forward mode is not switched off. */
extern bool forward_on;

/* What forward mode does (walk/forward.c), which needs ops and walks back: set when a level is
 * first entered, so that it is there for whatever has a tangent. */
typedef struct {
  Tensor *(*tangent)(Tensor *t);
  bool (*attach)(Node *n, int count, Tensor *const *inputs);
  void (*detach)(Node *n);
  void (*output)(Tensor *y, Node *n, int output_nr);
  bool (*needs)(const Node *n, int input);
  bool (*waits_for)(const Tensor *y, const Node *n);
  void (*view)(Tensor *self, Tensor *v);
  void (*share)(Tensor *from, Tensor *to);
  void (*written_by)(Tensor *self, Node *n, int output_nr);
  void (*write)(Tensor *self, Tensor *tangent);
  void (*move)(Tensor *to, Tensor *from);
  void (*forget)(Tensor *t);
  void (*settle)(void);
} Forward;
extern const Forward *forward_mode;

extern const Node *forward_product; /* whose gradient function runs for its output's tangent */
static inline bool forward_produces(const Node *n) { return n == forward_product; }

/* --- for all that records; each does nothing while forward_on is false --- */
/* Borrowed; NULL: none. */
static inline Tensor *forward_tangent(Tensor *t) {
  return forward_on ? forward_mode->tangent(t) : NULL;
}
/* to is a snapshot or an alias of from */
static inline void forward_share(Tensor *from, Tensor *to) {
  if (forward_on) forward_mode->share(from, to);
}
/* to takes the form of from */
static inline void forward_move(Tensor *to, Tensor *from) {
  if (forward_on) forward_mode->move(to, from);
}
/* After an in-place op on self: its values have this tangent (NULL: none), or are those of an
 * output of n. */
static inline void forward_write(Tensor *self, Tensor *tangent) {
  if (forward_on) forward_mode->write(self, tangent);
}
/* Works out what waits. */
static inline void forward_settle(void) {
  if (forward_on) forward_mode->settle();
}
/* t has no tangent from now on. */
static inline void forward_drop(Tensor *t) {
  if (t->meta && t->meta->dual) forward_mode->forget(t);
}

#endif

/* Forward mode: tangents that travel with values.
 *
 * An element-wise op has a diagonal derivative: its gradient function, given the input's tangent,
 * returns the output's tangent. Some ops have a TANGENT function. Every other gradient function is
 * linear in the incoming gradient, u -> J^T u, and made of differentiable ops; the gradient of <J^T
 * u, t> by u is J t, the tangent of the output. So an op whose input has a tangent makes its node
 * even if nothing is recorded. The output's tangent is computed on demand, at the latest when the
 * call ends, because a node may get saved outputs after its output.
 */
#ifndef PG_FORWARD_H
#define PG_FORWARD_H

#include <stddef.h>

#include "tape/graph.h"

/* Whether tangents travel: a level is entered and forward mode is not switched off. */
extern bool forward_on;
/* Whether a gradient function's steps are themselves differentiated. */
static inline bool gradient_is_recorded(void) { return recording || forward_on; }
/* Whether the host may answer for a gradient function, which then is as few ops as possible. */
static inline bool gradient_is_asked(void) { return by_ops && !gradient_is_recorded(); }

/* The functions of forward mode (walk/forward.c), which need ops and backwards. The pointer is set
 * when a level is first entered, before any tensor has a tangent. */
typedef struct {
  Tensor *(*tangent)(Tensor *t);
  bool (*attach)(Node *n, int count, Tensor *const *inputs);
  void (*detach)(Node *n);
  void (*output)(Tensor *y, Node *n, int output_nr);
  bool (*needs)(const Node *n, int input);
  Node *(*awaited)(const Tensor *y);
  void (*view)(Tensor *self, Tensor *v);
  void (*share)(Tensor *from, Tensor *to);
  void (*written_by)(Tensor *self, Node *n, int output_nr);
  void (*write)(Tensor *self, Tensor *tangent);
  void (*move)(Tensor *to, Tensor *from);
  void (*forget)(Tensor *t);
  void (*settle)(void);
  void (*replace)(Tensor *to, Tensor *from);
  bool (*fed_by)(const Node *n, int count, Tensor *const *given);
} Forward;
extern const Forward *forward_mode;

extern const Node *forward_product; /* its gradient function runs to compute its output's tangent */
static inline bool forward_produces(const Node *n) { return n == forward_product; }

/* --- for code that records; each does nothing while forward_on is false --- */
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
/* The node of the output y whose tangent is not yet computed, borrowed; NULL if there is none. */
static inline Node *forward_awaited(const Tensor *y) {
  return forward_on ? forward_mode->awaited(y) : NULL;
}
/* Whether every tangent that enters n, which is awaited, is that of a given tensor. */
static inline bool forward_fed_by(const Node *n, int count, Tensor *const *given) {
  return forward_on && forward_mode->fed_by(n, count, given);
}
/* Puts `to` in the place of `from`, an output. */
static inline void forward_replace(Tensor *to, Tensor *from) {
  if (forward_on) forward_mode->replace(to, from);
}
/* After an in-place op on self: sets its tangent (NULL: none). */
static inline void forward_write(Tensor *self, Tensor *tangent) {
  if (forward_on) forward_mode->write(self, tangent);
}
/* Computes the tangents that outputs wait for. */
static inline void forward_settle(void) {
  if (forward_on) forward_mode->settle();
}
/* Removes the tangent of t. */
static inline void forward_drop(Tensor *t) {
  if (t->meta && t->meta->dual) forward_mode->forget(t);
}

#endif

/* What was saved of a result that another has taken the place of; see ops/dispatch.c. */
#ifndef PG_EXCHANGE_H
#define PG_EXCHANGE_H

#include "tape/graph.h"

/* n keeps z where it kept r, a result without a gradient: the indices of a maximum, say. */
void saves_exchanged(Node *n, const Tensor *r, Tensor *z);
/* n keeps z as its value of that number, whatever it kept; z has no gradient. */
void save_exchanged(Node *n, int number, Tensor *z);
/* n, which wrote to self, keeps `before` where it kept self, and self as its result. */
void saves_rewritten(Node *n, Tensor *self, Tensor *before);

#endif

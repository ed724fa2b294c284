/* Updates of a node's saved values after a result was replaced by another tensor; see
 * ops/dispatch.c. */
#ifndef PG_EXCHANGE_H
#define PG_EXCHANGE_H

#include "tape/graph.h"

/* Replaces r by z among n's saved values; r has no gradient, as the indices of a maximum. */
void saves_exchanged(Node *n, const Tensor *r, Tensor *z);
/* Sets n's saved value `number` to z, which has no gradient. */
void save_exchanged(Node *n, int number, Tensor *z);
/* n wrote to self: its saved input self becomes `before` (NULL: nothing), its saved results become
 * self. */
void saves_rewritten(Node *n, Tensor *self, Tensor *before);

#endif

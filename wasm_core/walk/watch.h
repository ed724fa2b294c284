/* Walks back that a function of the host watches. */
#ifndef PG_WATCH_H
#define PG_WATCH_H

#include "tape/graph.h"
#include "walk/walk.h"

/* Whether walks back are told to a function of the host, of words: (WALK_BEGINS) how many roots
 * and inputs there are, whether the graph is retained, is made, and leaves accumulate, and how
 * many rows there are, then the roots, their gradients, and the inputs, 0 where there is none;
 * (WALK_FOUND) what was found for the inputs, if that is returned; (WALK_ENDS) whether it
 * failed. */
enum { WALK_BEGINS, WALK_FOUND, WALK_ENDS };
extern int32_t host_watcher; /* its id, 0: none */
void host_walk_begins(const GraphWalk *w);
void host_walk_found(int n, Tensor *const *found);
void host_walk_ends(bool thrown);

#endif

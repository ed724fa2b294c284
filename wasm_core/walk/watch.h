/* Reports of walks to a watching function of the host. */
#ifndef PG_WATCH_H
#define PG_WATCH_H

#include "tape/graph.h"
#include "walk/walk.h"

/* Events and their words. WALK_BEGINS: the counts of roots and inputs, retain_graph, create_graph,
 * accumulate, the number of rows, then the roots, their gradients and the inputs, 0 for absent
 * ones. WALK_FOUND: the gradients of inputs, if they are returned. WALK_ENDS: whether it failed. */
enum { WALK_BEGINS, WALK_FOUND, WALK_ENDS };
extern int32_t host_watcher; /* the function's id, 0: none */
void watch_walk_begins(const GraphWalk *w);
void watch_walk_found(int n, Tensor *const *found);
void watch_walk_ends(bool thrown);

#endif

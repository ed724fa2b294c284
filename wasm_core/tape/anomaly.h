/* Anomaly mode: where in the host's program nodes were made, and not-a-numbers in gradients.
 *
 * While it is on, each node keeps the id of a trace that the host took when the node was made,
 * and the node whose backward made it; each version counter keeps the traces of its last
 * increments. A backward that fails tells the host of the node's trace and of those of the nodes
 * that induced it. Off, it costs one branch a node. The engine does not know what a trace looks
 * like: it asks the host for the text of a line only to write an error. */
#ifndef PG_ANOMALY_H
#define PG_ANOMALY_H

#include "tape/graph.h"

extern bool anomaly_mode, anomaly_check_nan; /* the second counts only while the first is on */
extern Node *node_running; /* whose gradient function runs, borrowed; NULL outside of backward */

typedef struct Origin {
  int32_t trace; /* the host's id, 0: none */
  Node *parent;  /* owned */
} Origin;

enum { TRAIL = 8 };
/* The last increments of a version, oldest first. */
typedef struct Trail {
  int32_t n;
  uint32_t value[TRAIL];
  int32_t trace[TRAIL];
} Trail;

void anomaly_set(bool on);
void anomaly_report(const Node *n); /* the running backward failed in this node */
/* Whether a gradient that n passes on has a nan; then the error is set. */
bool anomaly_has_nan(Node *n, Tensor *const *gi);
/* " It was saved at ..., and modified at ..." as far as it is known, else "". */
const char *anomaly_blame(const Node *n, const Version *v, uint32_t saved);

#endif

/* Anomaly mode: the places in the host's program where nodes were made, and NaNs in gradients.
 *
 * While it is on, each node keeps the id of the host's trace of its creation, and the node whose
 * backward made it. Each version counter keeps the traces of its last increments. A backward that
 * fails reports to the host the node's trace and the traces of the nodes that induced it. Off, it
 * costs one branch a node. Traces are opaque to the engine: it asks the host for the text of a line
 * only to write an error. */
#ifndef PG_ANOMALY_H
#define PG_ANOMALY_H

#include "tape/graph.h"

extern bool anomaly_mode, anomaly_check_nan; /* the second has an effect only with the first */
extern Node *node_running; /* its gradient function runs; borrowed, NULL outside of backward */

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
void anomaly_report(const Node *n); /* after the running backward failed in n */
/* Whether a gradient that n passes on has a NaN; sets the error if so. */
bool anomaly_has_nan(Node *n, Tensor *const *gi);
/* " It was saved by ... It was modified at ...": the known parts, or "". */
const char *anomaly_blame(const Node *n, const Version *v, uint32_t saved);

#endif

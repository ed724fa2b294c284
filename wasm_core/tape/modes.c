/* The tape's modes and other global variables; see graph.h, anomaly.h and forward.h. */
#include "tape/anomaly.h"
#include "tape/forward.h"
#include "tape/graph.h"

bool grad_mode = true, recording = true, any_layout = false, saved_check_mode = false,
     view_replay = false;
bool anomaly_mode, anomaly_check_nan = true;
bool forward_on;
bool by_ops;
Tensor *(*detached_by_host)(Tensor *t);
double (*number_by_host)(Tensor *t);
bool (*added_by_host)(Tensor *sum, Tensor *g);
const Forward *forward_mode;
Node *node_running;
const Node *forward_product;
Task *pruned_task;
Tensor *inplace_self;
Tensor *(*inplace_copy)(Tensor *t);

/* What ran, when and for how long, while a profile is on: calls of ops, ranges that the user names, and the nodes of
 * a backward. The host owns the clock and reads the events one by one. */
#ifndef PG_PROFILE_H
#define PG_PROFILE_H

#include "call.h"
#include "graph.h"

typedef enum { PROFILE_OP, PROFILE_RANGE, PROFILE_EVALUATION, PROFILE_NODE } ProfileKind;

extern bool profiling; /* asked before each of the functions below */
extern int32_t profiled_thread; /* whose calls are recorded; -1: nobody's */

/* The number of the new event, which is inside of the one that is open; -1 without memory. */
int32_t profile_op_begin(const Call *c);
int32_t profile_node_begin(ProfileKind kind, const Node *n, int n_grads, Tensor *const *grads);
void profile_end(int32_t event);
void profile_op_end(int32_t event, const Call *c);

void op_profile_start(bool shapes);
void op_profile_stop(void);
void op_profile_clear(void); /* lets the events go */
void op_profile_toggle(bool on); /* of the profile that runs; nothing without one */
void op_profile_begin_range(Call *c);
void op_profile_event(Call *c); /* numbers of event i: see profile.c; none past the end */
void op_profile_name(Call *c);
void op_profile_shape(Call *c); /* of an argument of event i, [] for what is no tensor; none past the last */

#endif

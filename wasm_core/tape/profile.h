/* What ran, when and for how long, while a profile is on: calls of ops, ranges that the user
 * names, and the nodes of a backward. The host owns the clock and reads the events one by one;
 * reports are made of lists of such (profile_report.c). */
#ifndef PG_PROFILE_H
#define PG_PROFILE_H

#include "call/call.h"
#include "call/door.h"
#include "tape/graph.h"

typedef enum {
  PROFILE_OP,
  PROFILE_RANGE,
  PROFILE_EVALUATION,
  PROFILE_NODE,
  PROFILE_ASYNC, /* what is done elsewhere meanwhile: nothing is inside of it */
} ProfileKind;

extern bool profiling; /* asked before each of the functions below; set by profile_listen */
extern int32_t profiled_thread; /* whose calls are recorded; -1: nobody's */

/* The number of the new event, which is inside of the one that is open; -1 without memory. */
int32_t profile_op_begin(const Call *c);
int32_t profile_node_begin(ProfileKind kind, const Node *n, int n_grads, Tensor *const *grads);
void profile_end(int32_t event);
extern const Watcher profile_watcher; /* records the ops that others are made of */
/* Whether what is called next is recorded. */
static inline void profile_listen(bool on) {
  profiling = on;
  listen(on ? &profile_watcher : NULL);
}
void profile_op_end(int32_t event, const Call *c);

void op_profile_start(bool shapes, bool memory, bool flops);
void op_profile_stop(void);
void op_profile_clear(void);     /* lets the events go */
void op_profile_toggle(bool on); /* of the profile that runs; nothing without one */
void op_profile_begin_range(Call *c);
void op_profile_begin_async(Call *c);
void op_profile_event(Call *c);    /* event i as an object of JSON; none past the end */
void op_profile_quantity(Call *c); /* microseconds or bytes in words */
void op_profile_table(Call *c);
void op_profile_trace(Call *c);

#endif

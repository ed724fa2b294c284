/* Events of a profile with their times: calls of ops, ranges that the user names, and nodes of a
 * backward. The host owns the clock and reads the events one by one; profile_report.c makes reports
 * from lists of them. */
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
  PROFILE_ASYNC, /* work done elsewhere meanwhile; no event is inside it */
} ProfileKind;

extern bool profiling;          /* tested before each call of the functions below */
extern int32_t profiled_thread; /* the thread whose calls are recorded; -1: none */

/* The number of the new event, a child of the open one; -1 without memory. */
int32_t profile_op_begin(const Call *c);
int32_t profile_node_begin(ProfileKind kind, const Node *n, int n_grads, Tensor *const *grads);
void profile_end(int32_t event);
extern const Watcher profile_watcher; /* records ops called by other ops */
/* Starts or stops recording. */
static inline void profile_listen(bool on) {
  profiling = on;
  listen(on ? &profile_watcher : NULL);
}
void profile_op_end(int32_t event, const Call *c);

void op_profile_start(bool shapes, bool memory, bool flops);
void op_profile_stop(void);
void op_profile_clear(void);     /* frees the events */
void op_profile_toggle(bool on); /* pauses or resumes the running profile */
void op_profile_begin_range(Call *c);
void op_profile_begin_async(Call *c);
void op_profile_event(Call *c);    /* event i as an object of JSON; none past the end */
void op_profile_quantity(Call *c); /* a text of microseconds or bytes */
void op_profile_table(Call *c);
void op_profile_trace(Call *c);

#endif

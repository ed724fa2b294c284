/* The effort of a call, estimated from its arguments before it runs. */
#ifndef PG_EFFORT_H
#define PG_EFFORT_H

#include "call/call.h"

/* The estimate for a call. A unit is a light operation on one element: a nanosecond or less. */
double call_effort(const Call *c);
/* Whether the sizes alone show that the estimate is at most SMALL_EFFORT. */
bool call_is_small(const Call *c);
#define SMALL_EFFORT 65536
/* By EffortKind: how polls weigh an element (ground/poll.h). An op of several steps counts each. */
extern const uint8_t effort_weights[];

#endif

/* The effort of a call, estimated from its arguments before it runs. */
#ifndef PG_EFFORT_H
#define PG_EFFORT_H

#include "call/call.h"

/* In units of a nanosecond or less: those of a light operation on one element. */
double call_effort(const Call *c);

#endif

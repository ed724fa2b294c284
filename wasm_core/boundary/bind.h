/* Binds a frame's arguments to a Call: overloads, keywords, and TypeErrors if nothing fits. */
#ifndef PG_BIND_H
#define PG_BIND_H

#include "boundary/pg.h"
#include "call/call.h"

/* Fills *call from the first overload that the arguments fit. False with the error set. */
bool bind(const PgFrame *frame, Call *call);
/* Binds the head and the arguments of pg_call2. */
bool bind_two(PgFrame *frame, Call *call, int64_t head, int64_t a, int64_t b);

#endif

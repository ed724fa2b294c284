/* Automatic mixed precision: some ops compute in a 16-bit type, some in float32, whatever the types
 * of their arguments. A row says so by AUTOCAST(policy).
 *
 * Arguments are cast where an op is entered, by a host or by C. The casts are recorded, so that
 * gradients come back in the types of the arguments. Within such an op nothing more is cast. Calls
 * in place and into out= cast nothing. */
#ifndef PG_AUTOCAST_H
#define PG_AUTOCAST_H

#include "call/call.h"

/* Casts the arguments of a call while autocast is on, and turns autocast off if nothing within the
 * call is to be cast. False on failure. */
bool autocast_prepare(Call *c);
/* Drops the kept casts of parameters. */
void autocast_forget(void);
void autocast_begin(void);

#endif

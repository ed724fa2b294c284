/* Automatic mixed precision: some ops compute in a type of 16 bits, some in float32, whatever they
 * are given. Which do is a field of their rows, AUTOCAST(policy).
 *
 * Arguments are cast where an op is entered, by a host or by C. The casts are recorded, so that
 * gradients come back in the types of the arguments. Within such an op nothing more is cast. In
 * place and into out= nothing is. */
#ifndef PG_AUTOCAST_H
#define PG_AUTOCAST_H

#include "call/call.h"

/* Casts the arguments of a call while autocast is on, and turns it off if the call is to cast
 * nothing more; false if that failed. */
bool autocast_prepare(Call *c);
/* Lets go of the casts of parameters, which are kept to be given again. */
void autocast_forget(void);
void autocast_begin(void);

#endif

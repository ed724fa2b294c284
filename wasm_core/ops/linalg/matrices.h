/* What functions share that are composed of the decompositions. */
#ifndef PG_MATRICES_H
#define PG_MATRICES_H

#include "call/call.h"

/* y, after letting go of all else that was made since the mark; first it gets its tangents. For
 * the steps of loops, and for what would be held to the end of the call. */
Tensor *alone(int32_t mark, Tensor *y);

#endif

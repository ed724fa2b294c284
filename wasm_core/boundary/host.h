/* The host's frame and modes, shared by the exports; see host.c. */
#ifndef PG_BOUNDARY_HOST_H
#define PG_BOUNDARY_HOST_H

#include <stdbool.h>

#include "boundary/pg.h"

extern PgFrame *frame;
/* Makes the frame and opens the way to the host (tape/host.h); false without memory. */
bool host_begin(void);
/* Sets the engine's variables from the modes of the calling thread (PG_MODE_ bits of the frame). */
void modes_enter(int32_t modes);
bool host_grad_enabled(void);
bool host_forward_enabled(void);
void host_forward_enable(bool on);

#endif

/* What the engine asks of its host: one import, and ids of host objects to let go of. */
#ifndef PG_HOST_H
#define PG_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor.h"

typedef enum {
  HOST_HOOK,      /* tensor hook: one gradient in, a replacement or none out */
  HOST_POST_HOOK, /* after accumulation: the leaf in, nothing out */
  HOST_NODE_PRE_HOOK, HOST_NODE_HOOK, HOST_FUNCTION, HOST_PACK, HOST_UNPACK, HOST_CAPTURE
} HostCall;

/* Calls the host's object `id` with n tensors; up to cap results come back in out (owned by the
 * pool, NULL: none), their number in *n_out. False with ERR_HOST set if the host raised. */
bool host_call(HostCall kind, int32_t id, int n, Tensor *const *in, int cap, Tensor **out, int *n_out);
/* Sets the engine's variables by the modes of the calling thread (PG_MODE_ bits of the frame). */
void modes_enter(int32_t modes);
bool host_grad_enabled(void);
/* The host's object is not needed any more; told to the host after the crossing. */
void host_drop(int32_t id);
int32_t host_dropped_take(void); /* the next one, or 0 */
bool host_pending(void);         /* dropped ids or warnings wait for the host */

#endif

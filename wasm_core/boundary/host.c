/* The host's side of the engine: the frame, the modes of the calling thread, callbacks into the
 * host and the list of dropped callbacks. */
#include "boundary/host.h"

#include "call/door.h"
#include "ground/memory.h"
#include "ground/poll.h"
#include "ops/dispatch.h"
#include "tape/host.h"
#include "transforms/vmap.h"
#include "walk/forward.h"

PgFrame *frame;

enum { DROPPED_CAP = 256 };

static void drop(int32_t id) {
  static int32_t *dropped, cap;
  if (frame->n_dropped == cap) {
    int32_t more = cap ? 2 * cap : DROPPED_CAP;
    int32_t *grown = mem_permanent((size_t)more * sizeof *grown);
    if (!grown) return; /* the host then keeps the object */
    for (int32_t i = 0; i < frame->n_dropped; i++) grown[i] = dropped[i];
    frame->dropped = dropped = grown;
    cap = more;
  }
  dropped[frame->n_dropped++] = id;
}

bool host_grad_enabled(void) { return frame->modes & PG_MODE_GRAD; }

bool host_forward_enabled(void) { return !(frame->modes & PG_MODE_NO_FORWARD); }
void host_forward_enable(bool on) {
  int32_t *modes = &frame->modes;
  *modes = on ? *modes & ~PG_MODE_NO_FORWARD : *modes | PG_MODE_NO_FORWARD;
}

/* Sets the modes that only crossings set and that rarely change. */
static void enter_lasting(int32_t modes) {
  static int32_t entered = -1; /* no modes */
  enum { OTHERS = PG_MODE_GRAD | PG_MODE_INFERENCE | PG_MODE_NO_FORWARD | PG_MODE_AUTOCAST };
  if (__builtin_expect(((modes ^ entered) & ~OTHERS) == 0, 1)) return;
  entered = modes;
  any_layout = modes & PG_MODE_ANY_LAYOUT;
  view_replay = modes & PG_MODE_VIEW_REPLAY;
  form_default = modes & PG_MODE_META ? FORM_META : 0;
  autocast_keeps = !(modes & PG_MODE_CAST_ANEW);
  vmap_levels = (uint32_t)modes >> PG_MODE_LEVELS;
}

void modes_enter(int32_t modes) {
  enter_lasting(modes);
  inference_mode = modes & PG_MODE_INFERENCE;
  recording = modes & PG_MODE_GRAD && !inference_mode;
  forward_begin(!inference_mode && !(modes & PG_MODE_NO_FORWARD));
  grad_mode = recording || forward_on;
  autocast_dtype = !(modes & PG_MODE_AUTOCAST) ? 0 : modes & PG_MODE_FLOAT16 ? DT_F16 : DT_BF16;
}

/* HostPort.enter: sets the frame for a callback, runs it, and restores frame and modes. */
static int32_t enter(int32_t kind, int32_t id, int n, const int64_t *in, int cap, int64_t *out) {
  int64_t outer_in = frame->host_in, outer_out = frame->host_out;
  int32_t outer_cap = frame->host_cap, outer_n_out = frame->host_n_out, outer = frame->modes;
  frame->host_in = (int64_t)(uintptr_t)in;
  frame->host_out = (int64_t)(uintptr_t)out;
  frame->host_cap = cap;
  frame->host_kind = kind;
  frame->host_id = id;
  frame->host_n = n;
  frame->host_first = n ? (int32_t)in[0] : 0;
  frame->host_n_out = -1; /* failed, unless the host sets it */
  bool was = grad_mode, recorded = recording, forward = forward_on;
  int32_t cast = autocast_dtype;
  Dispatch dispatch = dispatch_state();
  /* The callback's calls are recorded and cast as the engine's present ones. */
  frame->modes = (outer & ~(PG_MODE_GRAD | (cast ? 0 : PG_MODE_AUTOCAST))) |
                 (grad_mode && recording ? PG_MODE_GRAD : 0);
  /* runs below the tape, forward mode, autocast and vmap */
  if (kind == HOST_POLL) frame->modes = outer; /* as outside of the call */
  if (kind == HOST_DISPATCH)
    frame->modes = (frame->modes & ((1 << PG_MODE_LEVELS) - 1) & ~PG_MODE_AUTOCAST) |
                   PG_MODE_NO_FORWARD;
  int32_t status = pg_host(kind, id, n);
  frame->modes = outer;
  modes_enter(outer);
  forward_on = forward_on && forward;
  grad_mode = was;
  recording = recorded;
  autocast_dtype = cast;
  dispatch_restore(&dispatch);
  frame->host_in = outer_in;
  frame->host_out = outer_out;
  frame->host_cap = outer_cap;
  int32_t count = status < 0 ? -1 : frame->host_n_out;
  frame->host_n_out = outer_n_out;
  return count;
}

static bool poll(void) {
  int64_t nothing;
  return enter(HOST_POLL, 0, 0, NULL, 1, &nothing) >= 0;
}

bool host_begin(void) {
  /* allocated, because a static frame would put its zeros into the binary */
  frame = mem_permanent(sizeof *frame);
  if (!frame) return false;
  frame->modes = PG_MODE_GRAD;
  frame->work = INT32_MAX;
  poll_host = poll;
  host_port = (HostPort){.enter = enter,
                         .drop = drop,
                         .allows_forward = host_forward_enabled,
                         .data = frame->data,
                         .data_bytes = PG_DATA_BYTES,
                         .thread = &frame->thread,
                         .most_nested = &frame->most_nested,
                         .work = &frame->work,
                         .dual_levels = &frame->dual_levels};
  return true;
}

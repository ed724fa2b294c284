/* Callbacks into the host and the list of those that are no longer needed; see host.h. */
#include "host.h"

#include "graph.h"
#include "memory.h"
#include "pg.h"
#include "status.h"

enum { DROPPED_CAP = 256 };
static int32_t *dropped;
static int32_t n_dropped, cap_dropped;

void host_drop(int32_t id) {
  if (!id) return;
  if (n_dropped == cap_dropped) {
    int32_t cap = cap_dropped ? 2 * cap_dropped : DROPPED_CAP;
    int32_t *grown = mem_permanent((size_t)cap * sizeof *grown);
    if (!grown) return; /* the host keeps an object too many */
    for (int32_t i = 0; i < n_dropped; i++) grown[i] = dropped[i];
    dropped = grown;
    cap_dropped = cap;
  }
  dropped[n_dropped++] = id;
}

int32_t host_dropped_take(void) { return n_dropped ? dropped[--n_dropped] : 0; }
bool host_pending(void) { return n_dropped || warning_waiting(); }

bool host_grad_enabled(void) { return pg_frame()->modes & PG_MODE_GRAD; }

void modes_enter(int32_t modes) {
  inference_mode = modes & PG_MODE_INFERENCE;
  grad_mode = modes & PG_MODE_GRAD && !inference_mode;
  any_layout = modes & PG_MODE_ANY_LAYOUT;
}

bool host_call(HostCall kind, int32_t id, int n, Tensor *const *in, int cap, Tensor **out, int *n_out) {
  if (failed()) return false;
  PgFrame *f = pg_frame();
  for (int i = 0; i < n; i++) {
    tensor_retain(in[i]); /* the host's own reference */
    f->host_in[i] = (int64_t)(uintptr_t)in[i];
  }
  f->host_n_out = 0;
  int32_t outer = f->modes;
  bool was = grad_mode;
  /* The callback's calls are recorded as the engine's are now. */
  f->modes = (outer & ~PG_MODE_GRAD) | (grad_mode ? PG_MODE_GRAD : 0);
  int32_t status = pg_host((int32_t)kind, id, n);
  f->modes = outer;
  modes_enter(outer);
  grad_mode = was;
  if (status != 0) {
    fail(ERR_HOST, "a callback raised");
    return false;
  }
  *n_out = 0;
  for (int i = 0; i < f->host_n_out && i < cap; i++) {
    Tensor *t = (Tensor *)(uintptr_t)f->host_out[i];
    if (t && !tensor_is(t)) {
      fail(ERR_RUNTIME, "a callback returned a handle that is not a tensor's");
      return false;
    }
    tensor_retain(t);
    out[(*n_out)++] = t ? pool_push(t) : NULL;
  }
  return true;
}

int32_t host_trace(void) {
  PgFrame *f = pg_frame();
  f->host_n_out = 0;
  if (pg_host(HOST_TRACE, 0, 0) == 0) return f->host_n_out ? (int32_t)f->host_out[0] : 0;
  fail(ERR_HOST, "a callback raised");
  return 0;
}

void host_report(int32_t trace, const char *name, int depth) {
  PgFrame *f = pg_frame();
  f->host_in[0] = (int64_t)(uintptr_t)name;
  f->host_in[1] = depth;
  pg_host(HOST_REPORT, trace, 2);
}

const char *host_line(int32_t trace) {
  PgFrame *f = pg_frame();
  f->data[0] = 0;
  if (trace) pg_host(HOST_LINE, trace, 0);
  f->data[PG_DATA_BYTES - 1] = 0;
  return f->data;
}

int64_t host_clock(int32_t event) { return pg_host(HOST_CLOCK, event, 0) == 0 ? pg_frame()->host_out[0] : 0; }

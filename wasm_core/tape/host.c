/* Callbacks into the host and the list of those that are no longer needed; see host.h. */
#include "tape/host.h"

#include "boundary/pg.h"
#include "ground/memory.h"
#include "ground/status.h"
#include "tape/forward.h"
#include "transforms/vmap.h"
#include "walk/hooks.h"

enum { DROPPED_CAP = 256 };

void host_drop(int32_t id) {
  static int32_t *dropped, cap;
  PgFrame *f = pg_frame();
  if (id <= 0) {
    several_drop(id);
    return;
  }
  if (f->n_dropped == cap) {
    int32_t more = cap ? 2 * cap : DROPPED_CAP;
    int32_t *grown = mem_permanent((size_t)more * sizeof *grown);
    if (!grown) return; /* the host keeps an object too many */
    for (int32_t i = 0; i < f->n_dropped; i++) grown[i] = dropped[i];
    f->dropped = dropped = grown;
    cap = more;
  }
  dropped[f->n_dropped++] = id;
}

bool host_grad_enabled(void) { return pg_frame()->modes & PG_MODE_GRAD; }
int32_t host_thread(void) { return pg_frame()->thread; }

bool forward_enabled(void) { return !(pg_frame()->modes & PG_MODE_NO_FORWARD); }
void forward_enable(bool on) {
  int32_t *modes = &pg_frame()->modes;
  *modes = on ? *modes & ~PG_MODE_NO_FORWARD : *modes | PG_MODE_NO_FORWARD;
}

void modes_enter(int32_t modes) {
  inference_mode = modes & PG_MODE_INFERENCE;
  recording = modes & PG_MODE_GRAD && !inference_mode;
  forward_begin(!inference_mode && !(modes & PG_MODE_NO_FORWARD));
  grad_mode = recording || forward_on;
  any_layout = modes & PG_MODE_ANY_LAYOUT;
  vmap_levels = (uint32_t)modes >> PG_MODE_LEVELS;
}

/* Runs a callback on n words, for at most cap words: how many came, -1 if it raised. The lists
 * stand wherever there is room, one perhaps where the other does. */
static int32_t enter(int32_t kind, int32_t id, int n, const int64_t *in, int cap, int64_t *out) {
  PgFrame *f = pg_frame();
  int64_t outer_in = f->host_in, outer_out = f->host_out;
  int32_t outer_cap = f->host_cap, outer_n_out = f->host_n_out, outer = f->modes;
  f->host_in = (int64_t)(uintptr_t)in;
  f->host_out = (int64_t)(uintptr_t)out;
  f->host_cap = cap;
  f->host_kind = kind;
  f->host_id = id;
  f->host_n = n;
  f->host_first = n ? (int32_t)in[0] : 0;
  f->host_n_out = -1; /* failed, unless the host says otherwise */
  bool was = grad_mode, recorded = recording, forward = forward_on;
  /* The callback's calls are recorded as the engine's are now. */
  f->modes = (outer & ~PG_MODE_GRAD) | (grad_mode && recording ? PG_MODE_GRAD : 0);
  int32_t status = pg_host(kind, id, n);
  f->modes = outer;
  modes_enter(outer);
  forward_on = forward_on && forward;
  grad_mode = was;
  recording = recorded;
  f->host_in = outer_in;
  f->host_out = outer_out;
  f->host_cap = outer_cap;
  int32_t count = status < 0 ? -1 : f->host_n_out;
  f->host_n_out = outer_n_out;
  return count;
}

static void wrong_count(int32_t kind, int32_t id, int got, int wanted) {
  if ((kind & 255) == HOST_NODE_PRE_HOOK || (kind & 255) == HOST_NODE_HOOK)
    fail(ERR_RUNTIME,
         "hook '%s' has returned an incorrect number of values (got %d, but expected %d)",
         host_name(id), got - 1, wanted - 1);
  else fail(ERR_RUNTIME, "a callback returned %d values where at most %d are wanted", got, wanted);
}

static bool call_words(int32_t kind, int32_t id, int n, const int64_t *in, int cap, int64_t *out,
                       int *n_out) {
  static int32_t depth;
  if (failed()) return false;
  if (depth >= pg_frame()->most_nested) {
    fail(ERR_RECURSION, "pygrad: %d callbacks within each other", depth);
    return false;
  }
  depth++;
  *n_out = enter(kind, id, n, in, cap, out);
  depth--;
  if (*n_out < 0) fail(ERR_HOST, "a callback raised");
  else if (*n_out > cap) wrong_count(kind, id, *n_out, cap);
  return !failed();
}

/* The host gets a reference of its own to each tensor. */
static void hand_out(int n, Tensor *const *in, int64_t *words) {
  for (int i = 0; i < n; i++) {
    tensor_retain(in[i]);
    words[i] = (int64_t)(uintptr_t)in[i];
  }
}

const char *host_told(void) { return pg_frame()->data; }

/* What hosts return as 1 is no tensor, but of a type that they told. */
static bool take_in(int n, const int64_t *words, Tensor **out) {
  for (int i = 0; i < n && !failed(); i++) {
    if (words[i] == 1) fail(ERR_TYPE, "expected Variable, but hook returned '%s'", host_told());
    Tensor *t = failed() ? NULL : (Tensor *)(uintptr_t)words[i];
    if (t && !tensor_is(t)) {
      fail(ERR_RUNTIME, "a callback returned a handle that is not a tensor's");
      return false;
    }
    tensor_retain(t);
    out[i] = pool_push(t);
  }
  return !failed();
}

enum { FEW_WORDS = 16 };

bool host_call(HostCall kind, int32_t id, int n, Tensor *const *in, int cap, Tensor **out,
               int *n_out) {
  int64_t few[FEW_WORDS], *words = few;
  int most = n > cap ? n : cap;
  *n_out = 0;
  if (failed()) return false;
  if (most > FEW_WORDS && !(words = scratch_array(most, sizeof *words))) return false;
  hand_out(n, in, words);
  return call_words((int32_t)kind, id, n, words, cap, words, n_out) && take_in(*n_out, words, out);
}

bool host_function(int32_t id, int n, Tensor *const *in, int cap, int64_t *words, int *n_out) {
  if (failed()) return false;
  hand_out(n, in, words);
  return call_words(HOST_FUNCTION, id, n, words, cap, words, n_out);
}

bool host_node_hook(HostCall kind, int32_t id, int n_replaced, Tensor *const *in, int n_more,
                    Tensor *const *more, Tensor **out, bool *replaced) {
  int64_t *words = failed() ? NULL : scratch_array(n_replaced + n_more + 1, sizeof *words);
  int n_out;
  if (!words) return false;
  hand_out(n_replaced, in, words);
  hand_out(n_more, more, words + n_replaced);
  int32_t split = kind == HOST_NODE_HOOK ? n_replaced << 8 : 0;
  int cap = n_replaced + 1;
  if (!call_words((int32_t)kind | split, id, n_replaced + n_more, words, cap, words, &n_out))
    return false;
  *replaced = n_out > 0;
  if (n_out && n_out != cap) wrong_count((int32_t)kind, id, n_out, cap);
  return !n_out || take_in(n_replaced, words + 1, out);
}

bool host_apply(int32_t id, int n, Tensor *const *in, int *n_out, Tensor ***out) {
  int64_t *words = failed() ? NULL : scratch_array(n + 1, sizeof *words);
  *n_out = 0;
  if (!words) return false;
  hand_out(n, in, words);
  if (!call_words(HOST_APPLY, id, n, words, 1, words, n_out)) return false;
  int count = (int)words[0];
  *out = scratch_array(count + 1, sizeof **out);
  return *out && host_call(HOST_RETURNED, id, 0, NULL, count, *out, n_out);
}

/* ------------------------------------------------------------ walks that are watched */

int32_t host_watcher;

static void tell_watcher(int what, int n, const int64_t *words) {
  int n_out;
  call_words(HOST_WALK | what << 8, host_watcher, n, words, 0, NULL, &n_out);
}

void host_walk_begins(const GraphWalk *w) {
  enum { NUMBERS = 6 };
  int n = NUMBERS + 2 * w->n_roots + w->n_inputs;
  int64_t *words = failed() ? NULL : scratch_array(n, sizeof *words), *at = words + NUMBERS;
  if (!words) return;
  const int64_t numbers[NUMBERS] = {w->n_roots,      w->n_inputs,   w->retain_graph,
                                    w->create_graph, w->accumulate, w->n_rows};
  for (int i = 0; i < NUMBERS; i++) words[i] = numbers[i];
  for (int i = 0; i < w->n_roots; i++) hand_out(1, &w->roots[i].tensor, at++);
  for (int i = 0; i < w->n_roots; i++)
    hand_out(1, &(Tensor *){w->grads ? w->grads[i] : NULL}, at++);
  for (int i = 0; i < w->n_inputs; i++) hand_out(1, &w->inputs[i].tensor, at++);
  tell_watcher(WALK_BEGINS, n, words);
}

void host_walk_found(int n, Tensor *const *found) {
  int64_t *words = failed() ? NULL : scratch_array(n + 1, sizeof *words);
  if (!words) return;
  hand_out(n, found, words);
  tell_watcher(WALK_FOUND, n, words);
}

/* Also after a failure, which stays. */
void host_walk_ends(bool thrown) {
  Status was = status_now;
  status_clear();
  tell_watcher(WALK_ENDS, 1, &(int64_t){thrown});
  if (was) status_now = was;
}

int32_t host_pack(int32_t hooks, Tensor *t) {
  int64_t word;
  int n_out;
  if (failed()) return 0;
  hand_out(1, &t, &word);
  if (!call_words(HOST_PACK, hooks, 1, &word, 1, &word, &n_out)) return 0;
  if (n_out != 1) fail(ERR_RUNTIME, "a pack hook gave no id");
  return n_out == 1 ? (int32_t)word : 0;
}

Tensor *host_unpack(int32_t packed) {
  Tensor *t = NULL;
  int64_t word = 0;
  int n_out;
  if (failed() || !call_words(HOST_UNPACK, packed, 0, NULL, 1, &word, &n_out)) return NULL;
  if (word <= 1)
    return fail(
        ERR_TYPE,
        "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
        word ? host_told() : "NoneType");
  return take_in(1, &word, &t) ? t : NULL;
}

int32_t host_trace(void) {
  int64_t word = 0;
  int32_t n = enter(HOST_TRACE, 0, 0, NULL, 1, &word);
  if (n < 0) fail(ERR_HOST, "a callback raised");
  return n > 0 ? (int32_t)word : 0;
}

void host_report(int32_t trace, const char *heading) {
  int64_t word = (int64_t)(uintptr_t)heading;
  enter(HOST_REPORT, trace, 1, &word, 0, NULL);
}

static const char *ask_text(HostCall kind, int32_t id) {
  PgFrame *f = pg_frame();
  f->data[0] = 0;
  if (id) enter((int32_t)kind, id, 0, NULL, 0, NULL);
  f->data[PG_DATA_BYTES - 1] = 0;
  return f->data;
}

const char *host_line(int32_t trace) { return ask_text(HOST_LINE, trace); }
const char *host_name(int32_t hook) { return ask_text(HOST_NAME, hook); }

int64_t host_clock(int32_t event) {
  static int64_t nanoseconds; /* the last it told, if it fails now */
  if (enter(HOST_CLOCK, event, 0, NULL, 1, &nanoseconds) < 0) fail(ERR_HOST, "a callback raised");
  return nanoseconds;
}

void host_note_work(int64_t work) {
  pg_frame()->work = work > INT32_MAX ? INT32_MAX : (int32_t)work;
}
void host_note_levels(int32_t n) { pg_frame()->dual_levels = n; }

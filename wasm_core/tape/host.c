/* Callbacks into the host; see host.h. */
#include "tape/host.h"

#include "ground/memory.h"
#include "ground/status.h"

HostPort host_port;
const SeveralHooks *several_hooks;

void host_drop(int32_t id) {
  if (id > 0) host_port.drop(id);
  else if (id < 0) several_hooks->drop(id);
}

int32_t host_thread(void) { return *host_port.thread; }

static void wrong_count(int32_t kind, int32_t id, int got, int wanted) {
  if ((kind & 255) == HOST_NODE_PRE_HOOK || (kind & 255) == HOST_NODE_HOOK)
    fail(ERR_RUNTIME,
         "hook '%s' has returned an incorrect number of values (got %d, but expected %d)",
         host_name(id), got - 1, wanted - 1);
  else fail(ERR_RUNTIME, "a callback returned %d values where at most %d are wanted", got, wanted);
}

bool host_words(int32_t kind, int32_t id, int n, const int64_t *in, int cap, int64_t *out,
                int *n_out) {
  static int32_t depth;
  /* An answer for an op takes about four times as much of the host's stack as a hook. */
  const int32_t deeper = kind == HOST_DISPATCH ? 4 : 1;
  if (failed()) return false;
  if (depth + deeper > *host_port.most_nested) {
    fail(ERR_RECURSION, "pygrad: %d callbacks within each other", depth);
    return false;
  }
  depth += deeper;
  *n_out = host_port.enter(kind, id, n, in, cap, out);
  depth -= deeper;
  if (*n_out < 0) fail(ERR_HOST, "a callback raised");
  else if (*n_out > cap) wrong_count(kind, id, *n_out, cap);
  return !failed();
}

void host_hand_out(int n, Tensor *const *in, int64_t *words) {
  for (int i = 0; i < n; i++) {
    tensor_retain(in[i]);
    words[i] = (int64_t)(uintptr_t)in[i];
  }
}

const char *host_told(void) { return host_port.data; }

/* The word 1 is a result that is no tensor; host_told has its type. */
bool host_take_in(int n, const int64_t *words, Tensor **out) {
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
  host_hand_out(n, in, words);
  return host_words((int32_t)kind, id, n, words, cap, words, n_out) &&
         host_take_in(*n_out, words, out);
}

bool host_function(int32_t id, int n, Tensor *const *in, int cap, int64_t *words, int *n_out) {
  if (failed()) return false;
  host_hand_out(n, in, words);
  return host_words(HOST_FUNCTION, id, n, words, cap, words, n_out);
}

bool host_node_hook(HostCall kind, int32_t id, int n_replaced, Tensor *const *in, int n_more,
                    Tensor *const *more, Tensor **out, bool *replaced) {
  int64_t *words = failed() ? NULL : scratch_array(n_replaced + n_more + 1, sizeof *words);
  int n_out;
  if (!words) return false;
  host_hand_out(n_replaced, in, words);
  host_hand_out(n_more, more, words + n_replaced);
  int32_t split = kind == HOST_NODE_HOOK ? n_replaced << 8 : 0;
  int cap = n_replaced + 1;
  if (!host_words((int32_t)kind | split, id, n_replaced + n_more, words, cap, words, &n_out))
    return false;
  *replaced = n_out > 0;
  if (n_out && n_out != cap) wrong_count((int32_t)kind, id, n_out, cap);
  return !n_out || host_take_in(n_replaced, words + 1, out);
}

bool host_apply(int32_t id, int n, Tensor *const *in, int *n_out, Tensor ***out) {
  int64_t *words = failed() ? NULL : scratch_array(n + 1, sizeof *words);
  *n_out = 0;
  if (!words) return false;
  host_hand_out(n, in, words);
  if (!host_words(HOST_APPLY, id, n, words, 1, words, n_out)) return false;
  int count = (int)words[0];
  *out = scratch_array(count + 1, sizeof **out);
  return *out && host_call(HOST_RETURNED, id, 0, NULL, count, *out, n_out);
}

/* ------------------------------------------------------------ other callbacks */

int32_t host_pack(int32_t hooks, Tensor *t) {
  int64_t word;
  int n_out;
  if (failed()) return 0;
  host_hand_out(1, &t, &word);
  if (!host_words(HOST_PACK, hooks, 1, &word, 1, &word, &n_out)) return 0;
  if (n_out != 1) fail(ERR_RUNTIME, "a pack hook gave no id");
  return n_out == 1 ? (int32_t)word : 0;
}

Tensor *host_unpack(int32_t packed) {
  Tensor *t = NULL;
  int64_t word = 0;
  int n_out;
  if (failed() || !host_words(HOST_UNPACK, packed, 0, NULL, 1, &word, &n_out)) return NULL;
  if (word <= 1)
    return fail(
        ERR_TYPE,
        "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
        word ? host_told() : "NoneType");
  return host_take_in(1, &word, &t) ? t : NULL;
}

int32_t host_trace(void) {
  int64_t word = 0;
  int32_t n = host_port.enter(HOST_TRACE, 0, 0, NULL, 1, &word);
  if (n < 0) fail(ERR_HOST, "a callback raised");
  return n > 0 ? (int32_t)word : 0;
}

void host_report(int32_t trace, const char *heading) {
  int64_t word = (int64_t)(uintptr_t)heading;
  host_port.enter(HOST_REPORT, trace, 1, &word, 0, NULL);
}

static const char *ask_text(HostCall kind, int32_t id) {
  host_port.data[0] = 0;
  if (id) host_port.enter((int32_t)kind, id, 0, NULL, 0, NULL);
  host_port.data[host_port.data_bytes - 1] = 0;
  return host_port.data;
}

const char *host_line(int32_t trace) { return ask_text(HOST_LINE, trace); }
const char *host_name(int32_t hook) { return ask_text(HOST_NAME, hook); }

int64_t host_clock(int32_t event) {
  static int64_t nanoseconds; /* keeps the last time for a call that fails */
  if (host_port.enter(HOST_CLOCK, event, 0, NULL, 1, &nanoseconds) < 0)
    fail(ERR_HOST, "a callback raised");
  return nanoseconds;
}

void host_note_work(int64_t work) {
  *host_port.work = work > INT32_MAX ? INT32_MAX : (int32_t)work;
}
void host_note_levels(int32_t n) { *host_port.dual_levels = n; }

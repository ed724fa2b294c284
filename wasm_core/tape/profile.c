/* The events of a profile, in the order in which they began; see profile.h.
 *
 * Names come from rows, node types and callers' ranges. Memory is counted without the profile's
 * own. */
#include "tape/profile.h"

#include <string.h>

#include "ground/memory.h"
#include "ground/text.h"
#include "tape/host.h"

bool profiling;
int32_t profiled_thread = -1;
static int32_t owner = -1; /* the thread that started the profile */

typedef struct {
  char *name;                          /* owned for ranges; others belong to a row or a node type */
  int32_t length;                      /* of the name */
  int64_t start, end, sequence, bytes; /* nanoseconds; the node's number; bytes it left allocated */
  int64_t out_numel;                   /* elements of an op's result */
  int64_t shapes_at, n_shapes;         /* in `shapes`: rank, sizes; rank 0 if it is no tensor */
  int32_t parent;
  uint8_t kind;
  bool inplace;
} Event;

static Event *events;
static int64_t *shapes;
static int64_t n_events, cap_events, n_shapes, cap_shapes, n_name_bytes;
static int32_t open_event = -1;
static bool with_shapes, with_memory, with_flops;
static const char *row_begun; /* the op that the host called, until its function is entered */

/* Makes room for `needed` entries, with a factor of two. */
static bool grow(void **array, int64_t *cap, int64_t needed, size_t size) {
  if (needed <= *cap) return true;
  int64_t wanted = 2 * needed + 256;
  void *grown = mem_alloc((size_t)wanted * size);
  if (!grown) return false;
  if (*array) memcpy(grown, *array, (size_t)*cap * size);
  mem_free(*array, (size_t)*cap * size);
  *array = grown;
  *cap = wanted;
  return true;
}

static int64_t others_bytes(void) {
  return mem_live_bytes() - cap_events * (int64_t)sizeof *events -
         cap_shapes * (int64_t)sizeof *shapes - n_name_bytes;
}

static bool owns_name(ProfileKind kind) { return kind == PROFILE_RANGE || kind == PROFILE_ASYNC; }

/* Begins an event, and copies a range's name. NULL without memory. */
static Event *event_begin(ProfileKind kind, const char *name, size_t length) {
  void *grown = events;
  char *kept = (char *)(uintptr_t)name;
  if (!grow(&grown, &cap_events, n_events + 1, sizeof *events)) return NULL;
  events = grown;
  if (owns_name(kind)) {
    kept = mem_alloc(length + 1);
    if (!kept) return NULL;
    memcpy(kept, name, length + 1);
    n_name_bytes += (int64_t)length + 1;
  }
  Event *e = &events[n_events];
  *e = (Event){.name = kept,
               .length = (int32_t)length,
               .sequence = -1,
               .parent = open_event,
               .kind = (uint8_t)kind,
               .shapes_at = n_shapes,
               .bytes = others_bytes()};
  int32_t number = (int32_t)n_events++;
  if (kind != PROFILE_ASYNC) open_event = number;
  e->start = host_clock(number);
  e->end = e->start;
  return e;
}

/* Records the shape of one argument (NULL: no tensor). */
static void note_shape(Event *e, const Tensor *t) {
  void *grown = shapes;
  int rank = t ? t->ndim : 0;
  if (!with_shapes || !grow(&grown, &cap_shapes, n_shapes + 1 + rank, sizeof *shapes)) return;
  shapes = grown;
  shapes[n_shapes++] = rank;
  for (int i = 0; i < rank; i++) shapes[n_shapes++] = t->sizes[i];
  e->n_shapes++;
}

int32_t profile_op_begin(const Call *c) {
  Event *e = event_begin(PROFILE_OP, c->row->name, strlen(c->row->name));
  row_begun = c->row->name;
  if (e) e->inplace = c->inplace;
  for (int i = 0; e && i < c->n_args; i++)
    note_shape(e, c->v[i].tag == TAG_TENSOR ? c->v[i].t : NULL);
  return e ? open_event : -1;
}

int32_t profile_node_begin(ProfileKind kind, const Node *n, int n_grads, Tensor *const *grads) {
  Event *e = event_begin(kind, n->type->name, strlen(n->type->name));
  if (!e) return -1;
  e->sequence = (int64_t)n->sequence;
  for (int i = 0; i < n_grads; i++) note_shape(e, grads[i]);
  return open_event;
}

static int32_t enter(const char *op, int n, const Argument *v) {
  bool begun = row_begun && strcmp(row_begun, op) == 0;
  row_begun = NULL;
  begun = begun || (entered_again && open_event >= 0 && strcmp(events[open_event].name, op) == 0);
  entered_again = false;
  if (begun || failed()) return -1;
  Event *e = event_begin(PROFILE_OP, op, strlen(op));
  for (int i = 0; e && i < n; i++)
    note_shape(e, v[i].tag == TAG_TENSOR ? *(const Tensor *const *)v[i].at : NULL);
  return e ? open_event : -1;
}

const Watcher profile_watcher = {enter, profile_end};

void profile_end(int32_t event) {
  row_begun = NULL;
  if (event < 0 || event >= n_events) return;
  Event *e = &events[event];
  e->end = host_clock(-1);
  e->bytes = others_bytes() - e->bytes;
  if (e->kind != PROFILE_ASYNC) open_event = e->parent;
}

void profile_op_end(int32_t event, const Call *c) {
  profile_end(event);
  if (event < 0 || event >= n_events || c->result.tag != TAG_TENSOR) return;
  const Tensor *y = result_tensor(&c->result, 0);
  if (!y || failed()) return;
  if (y->grad_fn) events[event].sequence = (int64_t)y->grad_fn->sequence;
  events[event].out_numel = y->numel;
}

void op_profile_clear(void) {
  for (int64_t i = 0; i < n_events; i++)
    if (owns_name(events[i].kind)) mem_free(events[i].name, (size_t)events[i].length + 1);
  mem_free(events, (size_t)cap_events * sizeof *events);
  mem_free(shapes, (size_t)cap_shapes * sizeof *shapes);
  events = NULL;
  shapes = NULL;
  n_events = cap_events = n_shapes = cap_shapes = n_name_bytes = 0;
  open_event = -1;
}

void op_profile_start(bool shapes_too, bool memory_too, bool flops_too) {
  if (owner == host_thread()) fail(ERR_RUNTIME, "Profiler is already enabled on this thread");
  else if (owner >= 0)
    fail(ERR_RUNTIME, "pygrad: a profile runs on another thread, and there can be but one");
  if (failed()) return;
  op_profile_clear();
  with_shapes = shapes_too || flops_too;
  with_memory = memory_too;
  with_flops = flops_too;
  owner = host_thread();
  op_profile_toggle(true);
}

void op_profile_toggle(bool on) {
  profiled_thread = on ? owner : -1;
  profile_listen(profiled_thread == host_thread());
}

void op_profile_stop(void) {
  owner = -1;
  op_profile_toggle(false);
}

void op_profile_begin_range(Call *c) {
  const char *name = arg_str(c, 0);
  ret_int(c, profiling && name && event_begin(PROFILE_RANGE, name, strlen(name)) ? open_event : -1);
}

void op_profile_begin_async(Call *c) {
  const char *name = arg_str(c, 0);
  Tensors inputs = arg_tensors(c, 1);
  Event *e = profiling && name ? event_begin(PROFILE_ASYNC, name, strlen(name)) : NULL;
  for (int i = 0; e && i < inputs.n; i++) note_shape(e, inputs.v[i]);
  ret_int(c, e ? e - events : -1);
}

/* For each kind: PyTorch's number of the scope, and the prefix of the name. */
static const struct {
  int scope;
  const char *prefix;
} kinds[] = {
    {0, "aten::"}, {7, ""}, {0, "autograd::engine::evaluate_function: "}, {1, ""}, {0, ""}};

/* The shape of argument k of an event: its rank, then its sizes. */
static const int64_t *shape_at(const Event *e, int64_t k) {
  const int64_t *at = shapes + e->shapes_at;
  for (; k > 0; k--) at += 1 + *at;
  return at;
}

/* Each element of a result sums over the last n_sizes dimensions of an operand; 0: it is one
 * operation. */
static const struct {
  const char *name;
  uint8_t operand, n_sizes;
} counted[] = {
    {"mm", 0, 1},    {"matmul", 0, 1},  {"bmm", 0, 1},    {"mv", 0, 1},  {"linear", 0, 1},
    {"addmm", 1, 1}, {"baddbmm", 1, 1}, {"conv2d", 1, 3}, {"add", 0, 0}, {"mul", 0, 0},
};

/* Floating point operations, estimated by PyTorch's rule: two for each product of a matrix
 * product or convolution. */
static int64_t flops(const Event *e) {
  for (size_t k = 0; with_flops && e->kind == PROFILE_OP && k < sizeof counted / sizeof *counted;
       k++) {
    if (e->inplace || (size_t)e->length != strlen(counted[k].name) ||
        memcmp(e->name, counted[k].name, (size_t)e->length) != 0)
      continue;
    int n = counted[k].n_sizes;
    const int64_t *shape = shape_at(e, counted[k].operand);
    if (e->n_shapes <= counted[k].operand || *shape < n) return 0;
    int64_t count = n ? 2 * e->out_numel : e->out_numel;
    for (int i = 0; i < n; i++) count *= shape[*shape - i];
    return count;
  }
  return 0;
}

void op_profile_event(Call *c) {
  int64_t i = arg_int(c, 0);
  if (i < 0 || i >= n_events) return;
  const Event *e = &events[i];
  Shown start = e->start - events[0].start, end = e->end - events[0].start;
  Text t = {0};
  const char *name = textf("%s%.*s%s", kinds[e->kind].prefix, (int)e->length, e->name,
                           e->inplace ? "_" : "");
  if (!name) return;
  text_format(&t, "{\"name\": ");
  text_json(&t, name);
  text_format(&t,
              ", \"id\": %lld, \"parent\": %d, \"start_us\": %lld.%03d, \"end_us\": %lld.%03d, "
              "\"scope\": %d, \"is_user_annotation\": %s, \"is_async\": %s, \"sequence_nr\": %lld, "
              "\"cpu_memory_usage\": %lld, \"flops\": %lld, \"input_shapes\": [",
              (Shown)i + 1, (int)e->parent, start / 1000, (int)(start % 1000), end / 1000,
              (int)(end % 1000), kinds[e->kind].scope, e->kind == PROFILE_RANGE ? "true" : "false",
              e->kind == PROFILE_ASYNC ? "true" : "false", (Shown)e->sequence,
              (Shown)(with_memory ? e->bytes : 0), (Shown)flops(e));
  for (int64_t k = 0; k < e->n_shapes; k++) {
    const int64_t *shape = shape_at(e, k);
    text_format(&t, k ? ", [" : "[");
    for (int64_t d = 1; d <= *shape; d++)
      text_format(&t, d > 1 ? ", %lld" : "%lld", (Shown)shape[d]);
    text_repeat(&t, ']', 1);
  }
  text_format(&t, "]}");
  ret_text(c, &t);
}

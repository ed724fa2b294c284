/* The exports: frame in, bound call, result or failure out. */
#include "boundary/pg.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "boundary/bind.h"
#include "boundary/host.h"
#include "boundary/services.h"
#include "call/call.h"
#include "call/effort.h"
#include "call/schema.h"
#include "ground/memory.h"
#include "ground/poll.h"
#include "ops/autocast.h"
#include "ops/complex/complex.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/index/index.h"
#include "ops/run.h"
#include "ops/sparse/sparse.h"
#include "tape/profile.h"
#include "transforms/vmap.h"
#include "walk/forward.h"
#include "walk/jacobians.h"

/* The first call also connects the layers: upper layers install their functions in lower ones. */
PG_EXPORT(pg_frame) PgFrame *pg_frame(void) {
  if (frame || !host_begin()) return frame;
  tape_begin();
  table_begin();
  complex_begin();
  autocast_begin();
  sparse_begin();
  dispatch_begin();
  return frame;
}

PG_EXPORT(pg_room) void *pg_room(uint32_t n_bytes) {
  void *room = mem_permanent(n_bytes);
  status_clear();
  return room;
}

PG_EXPORT(pg_describe) const char *pg_describe(int32_t i) {
  static const char *const words[] = {
#define X(WORD, spelling, says) spelling,
      ROW_WORDS(X)
#undef X
  };
  static const char *const kinds[] = {
#define X(kind, says) "batch:" #kind,
      BATCH_KINDS(X)
#undef X
  };
  static const char *const efforts[] = {
#define X(kind, says) "effort:" #kind,
      EFFORTS(X)
#undef X
  };
  static const char *const written[] = {
#define X(as, says) "written:" #as,
      WRITTEN_FORMS(X)
#undef X
  };
  static const char *const times[] = {
#define X(when, says) "asked:" #when,
      ASKED_WHEN(X)
#undef X
  };
  static char text[2048];
  if (!pg_frame() || i < 0 || i >= n_op_rows) return NULL;
  const Row *r = &op_rows[i];
  size_t n = 0;
  for (int k = 0; k < (int)(sizeof words / sizeof *words); k++)
    if (row_has(r, 1u << k))
      n += (size_t)snprintf(text + n, sizeof text - n, n ? "|%s" : "%s", words[k]);
  if (r->batch)
    n += (size_t)snprintf(text + n, sizeof text - n, n ? "|%s" : "%s", kinds[r->batch - 1]);
  if (r->elementwise)
    n += (size_t)snprintf(text + n, sizeof text - n, n ? "|%s" : "%s", "elementwise");
  if (r->written)
    n += (size_t)snprintf(text + n, sizeof text - n, n ? "|%s" : "%s", written[r->written - 1]);
  if (r->asked)
    n += (size_t)snprintf(text + n, sizeof text - n, n ? "|%s" : "%s", times[r->asked - 1]);
  n += (size_t)snprintf(text + n, sizeof text - n, n ? "|%s" : "%s", efforts[r->effort]);
  if (r->aten) {
    n += (size_t)snprintf(text + n, sizeof text - n, "|aten:");
    for (const char *at = r->aten; *at && n < sizeof text; at++)
      text[n++] = *at == ' ' ? '~' : *at; /* a space ends the words */
  }
  n += (size_t)snprintf(text + n, sizeof text - n, " %s", r->schema);
  return n < sizeof text ? text : NULL;
}

PG_EXPORT(pg_intern) int32_t pg_intern(void) {
  return schema_intern_name(frame->data, (int)strlen(frame->data));
}
PG_EXPORT(pg_status_name) const char *pg_status_name(int32_t s) { return status_name((Status)s); }
PG_EXPORT(pg_warning) const char *pg_warning(void) { return warn_take(); }
PG_EXPORT(pg_live_count) int64_t pg_live_count(void) {
  return tensor_live_count() + node_live_count();
}

/* Constants and offsets for hosts, by name: X(name, value), TENSOR(field), and FRAME(field) as
 * frame_field. */
/* clang-format off */
#define LAYOUT(X, TENSOR, FRAME)                                                                 \
  X(abi, PG_ABI) X(data_bytes, PG_DATA_BYTES) X(max_release, PG_MAX_RELEASE)                     \
  TENSOR(dtype) TENSOR(ndim) TENSOR(flags) TENSOR(output_nr) TENSOR(storage) TENSOR(grad_fn)     \
  TENSOR(version) TENSOR(meta) TENSOR(sizes) TENSOR(strides) TENSOR(offset) TENSOR(numel)        \
  TENSOR(noted) TENSOR(form)                                                                     \
  X(meta_grad, OF(Meta, grad)) X(meta_base, OF(Meta, base)) X(storage_bytes, OF(Storage, bytes)) \
  X(storage_exports, OF(Storage, exports)) X(storage_pins, OF(Storage, pins))                    \
  X(storage_mapped, OF(Storage, mapped))                                                         \
  X(bytes_data, OF(Bytes, data)) X(bytes_size, OF(Bytes, n_bytes))                               \
  X(bytes_form, OF(Bytes, form)) X(version_value, OF(Version, value))                            \
  FRAME(slots) FRAME(keywords) FRAME(release) FRAME(result_tag) FRAME(result) FRAME(message)     \
  FRAME(host_in) FRAME(host_out) FRAME(host_n_out) FRAME(host_cap) FRAME(host_kind) FRAME(data)  \
  FRAME(modes) FRAME(work) FRAME(thread) FRAME(most_nested) FRAME(n_warnings) FRAME(n_dropped)   \
  FRAME(dropped) FRAME(dual_levels) FRAME(most_effort)                                           \
  X(call_inplace, PG_INPLACE) X(call_method, PG_METHOD) X(call_prepared, PG_PREPARED)            \
  X(call_long, PG_LONG)                                                                          \
  X(mode_grad, PG_MODE_GRAD) X(mode_inference, PG_MODE_INFERENCE)                                \
  X(mode_any_layout, PG_MODE_ANY_LAYOUT) X(mode_one_thread, PG_MODE_ONE_THREAD)                  \
  X(mode_no_forward, PG_MODE_NO_FORWARD) X(mode_autocast, PG_MODE_AUTOCAST)                      \
  X(mode_float16, PG_MODE_FLOAT16) X(mode_cast_anew, PG_MODE_CAST_ANEW) X(mode_meta, PG_MODE_META) \
  X(mode_dispatch, PG_MODE_DISPATCH) X(mode_view_replay, PG_MODE_VIEW_REPLAY) X(mode_levels, PG_MODE_LEVELS)                              \
  X(bit_pending, BIT_OF(PG_PENDING)) X(bit_described, BIT_OF(PG_DESCRIBED))                      \
  X(bit_view, BIT_OF(PG_VIEW)) X(bit_self, BIT_OF(PG_SELF)) X(bit_failed, BIT_OF(PG_FAILED))     \
  X(bit_too_long, BIT_OF(PG_TOO_LONG)) X(bit_head, BIT_OF(PG_HEAD))
/* clang-format on */
/* Enumerations for hosts, with the names of their members. */
#define LAYOUT_OF_TAG(NAME, name) ENTRY(tag_##name, TAG_##NAME)
#define LAYOUT_OF_FLAG(NAME, name, bit) ENTRY(flag_##name, bit)
#define LAYOUT_OF_FORM(NAME, name, bit) ENTRY(form_##name, bit)
#define LAYOUT_OF_CALL(NAME, name, number) ENTRY(host_##name, number)
#define LAYOUT_OF_ITEM(NAME, name, words) ENTRY(item_##name, ITEM_##NAME)
#define LAYOUT_OF_ANSWER(name, asked, walks) ENTRY(answer_##name, ANSWER_##name)
#define LAYOUT_OF_DTYPE(code, NAME, ctype, short_name, text, kind, legacy) ENTRY_TEXT(text, code)
#define ENUMERATIONS                   \
  TAGS(LAYOUT_OF_TAG)                  \
  TENSOR_FLAGS(LAYOUT_OF_FLAG)         \
  TENSOR_FORMS(LAYOUT_OF_FORM)         \
  HOST_CALLS(LAYOUT_OF_CALL)           \
  ITEM_KINDS(LAYOUT_OF_ITEM)           \
  FUNCTIONAL_ANSWERS(LAYOUT_OF_ANSWER) \
  DTYPE_ROWS(LAYOUT_OF_DTYPE)
#define BIT_OF(one) __builtin_ctzll(one)

#define OF(type, field) (int32_t)offsetof(type, field)
#define VALUE(name, value) value,
#define TENSOR_VALUE(field) OF(Tensor, field),
#define FRAME_VALUE(field) OF(PgFrame, field),
#define ENTRY(name, value) value,
#define ENTRY_TEXT(text, value) value,
static const int32_t layout[] = {LAYOUT(VALUE, TENSOR_VALUE, FRAME_VALUE) ENUMERATIONS};
#undef ENTRY
#undef ENTRY_TEXT

#define NAME(name, value) " " #name
#define TENSOR_NAME(field) " " #field
#define FRAME_NAME(field) " frame_" #field
PG_EXPORT(pg_layout_names) const char *pg_layout_names(void) {
#define ENTRY(name, value) " " #name
#define ENTRY_TEXT(text, value) " dtype_" text
  return &LAYOUT(NAME, TENSOR_NAME, FRAME_NAME) ENUMERATIONS[1];
#undef ENTRY
#undef ENTRY_TEXT
}

PG_EXPORT(pg_layout) int32_t pg_layout(int32_t k) {
  return k >= 0 && k < (int32_t)(sizeof layout / sizeof *layout) ? layout[k] : -1;
}

/* Releases a tensor or a node. Bit 0 of a tensor's handle also ends an export, which holds a
 * reference of its own. Bit 1 marks a storage, and ends a pin; with bit 0 the pin lasts for good.
 * Bit 2 marks a storage whose file the host has taken away. */
static void let_go(int64_t handle) {
  void *p = (void *)(uintptr_t)(handle & ~(int64_t)7);
  if (handle & 4) storage_unmap(p);
  else if (handle & 2) storage_unpin(p, handle & 1);
  else if (tensor_is(p)) {
    if (handle & 1) tensor_unexport(p);
    tensor_release(p);
  } else if (node_is(p)) node_release(p);
}

PG_EXPORT(pg_release) void pg_release(void) {
  int n = frame->n_release;
  if (n) let_go(frame->first_release);
  for (int i = 1; i < n; i++) let_go(frame->release[i - 1]);
  frame->n_release = 0;
}

/* Passes the results to the host, with a reference of its own to each tensor. */
static int64_t deliver(Call *c) {
  Result *r = &c->result;
  frame->result_tag = r->tag;
  frame->result_count = r->n;
  frame->result = r->value;
  if (r->tag == TAG_TENSOR) {
    Tensor *t = (Tensor *)(uintptr_t)r->value;
    tensor_retain(t);
    return (int64_t)(uintptr_t)t;
  }
  for (int i = 0; r->tag == TAG_TENSORS && i < r->n; i++) tensor_retain(result_tensor(r, i));
  return 0;
}

static int64_t report_failure(void) {
  int64_t code = -(int64_t)status_now;
  frame->message = status_message();
  status_clear();
  return code;
}

/* State saved around a call, during which a callback may make further calls. */
typedef struct {
  int32_t mark;
  size_t scratch;
  Tensor *destination, *inplace_self; /* those of the outer call */
  int32_t form;
} Crossing;

static Crossing begin(void) {
  Crossing x = {pool_mark(), scratch_mark(), destination, inplace_self, form_made};
  modes_enter(frame->modes);
  const bool profiled = profiled_thread == frame->thread;
  if (__builtin_expect(profiled | profiling, 0)) profile_listen(profiled);
  dispatch_cross(frame->modes & PG_MODE_DISPATCH);
  destination = NULL;
  inplace_self = NULL;
  form_made = 0;
  return x;
}

/* Tangents that wait are worked out, for which the host may be asked. */
static NOINLINE void settle(Call *c) {
  const void *aside = call_result_aside(c);
  forward_settle();
  call_result_back(c, aside);
}

static int64_t end(const Crossing *x, Call *c) {
  if (__builtin_expect(forward_on, 0)) settle(c);
  int64_t result = failed() ? report_failure() : deliver(c);
  destination = x->destination;
  inplace_self = x->inplace_self;
  form_made = x->form;
  pool_release(x->mark, NULL);
  scratch_release(x->scratch);
  if (__builtin_expect(bytes_any_kept(), 0)) bytes_release_kept();
  frame->n_warnings = warn_waiting();
  /* a host that answers ops must look up its objects for the results */
  bool pending = (frame->n_warnings | frame->n_dropped | dispatch_now.asked) != 0;
  return result >= 0 && pending ? result | PG_PENDING : result;
}

static void run_row(Call *call) {
  if (__builtin_expect(vmap_concerns == 0, 1) || !vmap_run(call)) run_call_plain(call);
}

static void run_profiled(Call *call) {
  int32_t event = profile_op_begin(call);
  run_row(call);
  profile_op_end(event, call);
}

/* Services, whose names begin with an underscore, are events of a profile only if marked EVENT;
 * other rows are unless marked SILENT. */
static void run_call(Call *call) {
  const Row *row = call->row;
  poll_weight = effort_weights[row->effort];
  bool recorded = profiling && (row->name[0] == '_' ? row_has(row, EVENT) : !row_has(row, SILENT));
  (recorded ? run_profiled : run_row)(call);
}

/* Runs a call, or returns false without running it if a host with threads should repeat it in the
 * mode PG_LONG. */
static bool run_if_short(Call *c, int mode) {
  const int32_t most = frame->most_effort;
  if (c->row->effort && most && !(mode & PG_LONG) && !(most >= SMALL_EFFORT && call_is_small(c)) &&
      call_effort(c) > most) {
    ret_none(c);
    return false;
  }
  run_call(c);
  return true;
}

PG_EXPORT(pg_call) int64_t pg_call(void) {
  if (frame->n_release) pg_release();
  Crossing x = begin();
  Call call;
  bool too_long = bind(frame, &call) && !run_if_short(&call, frame->mode);
  int64_t r = end(&x, &call);
  return too_long ? PG_TOO_LONG : r;
}

PG_EXPORT(pg_call_double) double pg_call_double(void) { return (double)pg_call(); }

PG_EXPORT(pg_call2) int64_t pg_call2(int64_t head, int64_t dead, int64_t a, int64_t b) {
  if (dead) let_go(dead);
  if (frame->n_release) pg_release();
  Crossing x = begin();
  Call call;
  bool too_long = bind_two(frame, &call, head, a, b) && !run_if_short(&call, (int)(head >> 48));
  int64_t r = end(&x, &call);
  if (too_long) {
    frame->result = head; /* the host's copy may be overwritten by the result */
    return PG_TOO_LONG;
  }
  if (r < 0) return -r | PG_FAILED;
  if (r == 0 || r >= PG_PENDING) return r | PG_DESCRIBED;
  if (r == a) {
    tensor_release((Tensor *)(uintptr_t)r);
    return PG_SELF;
  }
  const Meta *m = ((const Tensor *)(uintptr_t)r)->meta;
  return m && m->base ? r | PG_VIEW : r;
}

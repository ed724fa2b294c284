/* Arguments of a bound call, and its results. */
#include "call/call.h"

#include "call/door.h"

#include <stdio.h>
#include <string.h>

#include "ground/memory.h"

const Watcher *watcher, *listener;
bool watcher_answers, scalars_read;
bool entered_again;
const Answers *door_answers;
SparseBody *(*door_sparse_body)(const char *op);
bool (*autocast_arguments)(const char *op, int n, Place *places);
bool (*door_settle_lazy)(int n, Place *places);
int32_t autocast_dtype;
bool autocast_keeps;

/* ------------------------------------------------------------ the door */

/* Caches rows by the address of the name, since each door passes the same address every time. */
const Row *row_of_op(const char *op) {
  enum { KEPT = 256 };
  static struct {
    const char *op;
    const Row *row;
  } *kept;
  if (!kept && !(kept = mem_permanent(KEPT * sizeof *kept))) return NULL;
  const uint32_t at = (uint32_t)((uintptr_t)op * 2654435761u >> 24) % KEPT;
  if (kept[at].op == op) return kept[at].row;
  const Row *row = op_rows, *end = op_rows + n_op_rows;
  while (row < end && strcmp(row->name, op) != 0) row++;
  kept[at].op = op;
  return kept[at].row = row < end ? row : NULL;
}

/* The tensors of an argument; entries may be NULL. */
static Tensors tensors_at(Place *p) { return p->one ? (Tensors){1, &p->one} : p->list; }

static Tensors tensors_of(const Argument *v) {
  if (v->tag == TAG_TENSORS) return *(const Tensors *)v->at;
  return v->tag == TAG_TENSOR ? (Tensors){1, (Tensor **)(uintptr_t)v->at} : NO_LIST;
}

bool door_sets_form(int32_t *form, const Tensor *t) {
  if (!t || is_wrapped(t)) return false;
  *form = tensor_absent(t) ? t->form & FORM_ABSENT : 0;
  return *form;
}

static int32_t form_of_arguments(int n, const Argument *v) {
  int32_t form = form_made;
  for (int i = 0; i < n; i++) {
    Tensors t = tensors_of(&v[i]);
    for (int k = 0; k < t.n; k++)
      if (door_sets_form(&form, t.v[k])) return form;
  }
  return form;
}

void door_enter(DoorEntry *e, const char *op, int n, const Argument *v) {
  static const Watcher nobody = {NULL, NULL};
  e->form = form_made;
  e->entry = -1;
  int32_t form = form_of_arguments(n, v);
  if (e->by) e->entry = e->by->enter(op, n, v);
  else if (form != form_made) e->by = &nobody;
  e->answers = e->entry == ENTRY_ANSWERED ? door_answers : NULL;
  form_made = form;
}

void door_leave(const DoorEntry *e) {
  form_made = e->form;
  if (e->by->leave) e->by->leave(e->entry);
}

/* Refuses tensors of two devices, but for 0-dim tensors of the CPU. An op without a row is called
 * by an op that was checked. */
static bool check_devices(const char *op, int n, Place *places) {
  const Tensor *first = NULL;
  for (int i = 0; i < n; i++) {
    Tensors given = tensors_at(&places[i]);
    for (int k = 0; k < given.n; k++) {
      const Tensor *t = given.v[k];
      if (!t || (!t->ndim && !tensor_absent(t))) continue;
      if (!first) first = t;
      if (tensor_absent(first) == tensor_absent(t)) continue;
      const Row *row = row_of_op(op);
      if (!row || row->any_device) return true;
      fail(ERR_RUNTIME, "Tensor on device %s is not on the expected device %s!", device_name(t),
           device_name(first));
      return false;
    }
  }
  if (!first || !tensor_absent(first)) return true;
  const Row *row = row_of_op(op);
  return !row || !(row->needs_elements || row_has(row, DYNAMIC)) || door_needs_elements(op);
}

bool door_needs_elements(const char *op) {
  return fail(ERR_NOT_IMPLEMENTED,
              "aten::%s: attempted to run this operator with Meta tensors, but there was no fake "
              "impl or Meta kernel registered",
              op);
}

/* ------------------------------------------------------------ sparse arguments */

static const char *const layout_shown[] = {
#define X(NAME, name, shown) #shown,
    TENSOR_LAYOUTS(X)
#undef X
};

const char *layout_name(Layout l) { return layout_shown[l]; }
const char *layout_text(const Tensor *t) { return layout_name(tensor_layout(t)); }

void *door_refuse_layout(const char *op, const Tensor *t) {
  return fail(
      ERR_NOT_IMPLEMENTED,
      "Could not run 'aten::%s' with arguments from the '%s' backend. This could be because "
      "the operator doesn't exist for this backend, or was omitted during the "
      "selective/custom build process (if using custom build).",
      op,
      !is_sparse(t)                           ? "CPU"
      : tensor_layout(t) == LAYOUT_SPARSE_COO ? "SparseCPU"
                                              : "SparseCsrCPU");
}

static const Tensor *sparse_of(Tensors t) {
  for (int i = 0; i < t.n; i++)
    if (is_sparse(t.v[i])) return t.v[i];
  return NULL;
}

static const Tensor *sparse_argument(int n, const Argument *v) {
  const Tensor *found = NULL;
  for (int i = 0; i < n && !found; i++) found = sparse_of(tensors_of(&v[i]));
  return found;
}

/* The result of the SparseBody that has just run. */
static intptr_t sparse_result;
static bool runs_no_body(void) { return false; }
static Tensor *sparse_tensor(__attribute__((unused)) Tensor *body) {
  return (Tensor *)sparse_result;
}
static intptr_t sparse_number(__attribute__((unused)) intptr_t body) { return sparse_result; }
static const Answers sparse_answers = {runs_no_body, sparse_tensor, sparse_number};

void door_enter_strided(DoorEntry *e, const char *op, int n, const Argument *v) {
  const Tensor *t = unusual_tensors ? sparse_argument(n, v) : NULL;
  SparseBody *body = t ? door_sparse_body(op) : NULL;
  if (body) {
    e->by = NULL; /* the functions that `body` calls enter themselves */
    sparse_result = body(op, n, v);
    e->answers = &sparse_answers;
    return;
  }
  door_enter(e, op, n, v);
  if (t && !e->answers && !failed()) door_refuse_layout(op, t);
}

bool door_prepare(const char *op, int n, Place *places) {
  for (int i = 0; i < n && unusual_tensors && !failed(); i++) {
    const Tensor *t = sparse_of(tensors_at(&places[i]));
    if (t && door_sparse_body(op)) return true; /* which gets the arguments as they are */
    if (t) door_refuse_layout(op, t);
  }
  if (failed()) return false;
  if (autocast_dtype && !autocast_arguments(op, n, places)) return false;
  return unusual_tensors == 0 || (check_devices(op, n, places) && door_settle_lazy(n, places));
}

/* ------------------------------------------------------------ arguments */

bool arg_given(const Call *c, int k) {
  return k < c->n_args && c->v[k].tag != TAG_NONE && c->v[k].tag != TAG_MISSING;
}

/* A number of the host as a tensor; NULL if v is no number. */
static NOINLINE Tensor *wrapped_number(const Value *v) {
  scalars_read = scalars_read || v->tag != TAG_INT;
  switch (v->tag) {
    case TAG_INT: return tensor_wrapped_i(v->i);
    case TAG_BOOL: return tensor_wrapped_b(v->i != 0);
    case TAG_FLOAT: return tensor_wrapped_f(v->f);
    case TAG_COMPLEX: return tensor_wrapped_c(*(const complex_f64 *)v->p);
    default: return NULL;
  }
}

Tensor *arg_tensor(Call *c, int k) {
  const Value *v = &c->v[k];
  if (k >= c->n_args) return NULL;
  return v->tag == TAG_TENSOR ? v->t : wrapped_number(v);
}

complex_f64 arg_complex(const Call *c, int k) {
  const Value *v = &c->v[k];
  scalars_read = scalars_read || v->tag != TAG_INT;
  if (arg_given(c, k) && v->tag == TAG_COMPLEX) return *(const complex_f64 *)v->p;
  if (arg_given(c, k) && v->tag == TAG_TENSOR) return tensor_get_c(v->t, 0);
  return arg_float(c, k);
}

/* A complex number read as a real one. */
static double real_of(const Value *v) {
  complex_f64 z = *(const complex_f64 *)v->p;
  if (__imag__ z != 0)
    fail(ERR_RUNTIME, "value cannot be converted to type double without overflow");
  return __real__ z;
}

int64_t arg_int(const Call *c, int k) {
  if (!arg_given(c, k)) return 0;
  const Value *v = &c->v[k];
  if (v->tag == TAG_COMPLEX) return (int64_t)real_of(v);
  return v->tag == TAG_TENSOR ? tensor_get_i(v->t, 0) : v->tag == TAG_FLOAT ? (int64_t)v->f : v->i;
}

double arg_float(const Call *c, int k) {
  if (!arg_given(c, k)) return 0;
  const Value *v = &c->v[k];
  scalars_read = scalars_read || v->tag != TAG_INT;
  if (v->tag == TAG_COMPLEX) return real_of(v);
  return v->tag == TAG_TENSOR ? tensor_get_f(v->t, 0) : v->tag == TAG_FLOAT ? v->f : (double)v->i;
}

bool arg_bool(const Call *c, int k) { return arg_int(c, k) != 0; }
DType arg_dtype(const Call *c, int k) { return arg_given(c, k) ? (DType)c->v[k].i : DT_NONE; }
const char *arg_str(const Call *c, int k) {
  return arg_given(c, k) && c->v[k].tag == TAG_STR ? c->v[k].s : NULL;
}
int32_t arg_generator(const Call *c, int k) { return arg_given(c, k) ? (int32_t)c->v[k].i : 0; }

Ints arg_ints(const Call *c, int k) {
  if (!arg_given(c, k)) return (Ints){-1, NULL};
  const Value *v = &c->v[k];
  if (v->tag != TAG_INTS) { /* one int */
    int64_t *one = scratch_alloc(8 * sizeof *one);
    for (int i = 0; one && i < 8; i++) one[i] = arg_int(c, k);
    return (Ints){one ? 1 : 0, one};
  }
  return (Ints){v->n, v->p};
}

Bools arg_bools(const Call *c, int k) {
  const Value *v = &c->v[k];
  return v->tag == TAG_BOOLS ? (Bools){v->n, v->p} : (Bools){0, NULL};
}

Floats arg_floats(const Call *c, int k) {
  if (!arg_given(c, k)) return (Floats){-1, NULL};
  const Value *v = &c->v[k];
  if (v->tag == TAG_FLOATS) return (Floats){v->n, v->p};
  double *out = scratch_array(v->n ? v->n : 1, sizeof *out);
  for (int i = 0; out && i < v->n; i++) out[i] = (double)((const int64_t *)v->p)[i];
  return (Floats){out ? v->n : 0, out};
}

Tensors arg_tensors(Call *c, int k) {
  if (!arg_given(c, k)) return (Tensors){-1, NULL};
  const Value *v = &c->v[k];
  if (v->tag != TAG_TENSORS) return (Tensors){0, NULL};
  Tensor **out = scratch_array(v->n ? v->n : 1, sizeof *out);
  for (int i = 0; out && i < v->n; i++) out[i] = (Tensor *)(uintptr_t)((const int64_t *)v->p)[i];
  return (Tensors){out ? v->n : 0, out};
}

Tensor *value_next_listed(const Value *v, int *at) {
  static const uint8_t words_of_item[] = {1, 1, 2, 4, 2, 2}; /* see index_subscript.c */
  const int64_t *words = v->p;
  if (v->tag == TAG_TENSORS) {
    while (++*at < v->n)
      if (words[*at]) return (Tensor *)(uintptr_t)words[*at];
    return NULL;
  }
  int item = *at < 0 ? 0 : *at + 1; /* *at is a tensor, the last word of its item */
  while (item + 1 < v->n && words[item] != 4)
    item += words[item] >= 0 && words[item] < 6 ? words_of_item[words[item]] : 1;
  if (item + 1 >= v->n) return NULL;
  Tensor *t = (Tensor *)(uintptr_t)words[ *at = item + 1];
  return tensor_is(t) ? t : NULL;
}

/* The name in messages; ops that only a namespace offers have its prefix. */
const char *row_shown(const Row *row, bool inplace) {
  static char text[128];
  const char *space = row_has(row, TORCH | METHOD) ? ""
                      : row_has(row, LINALG)       ? "linalg_"
                      : row_has(row, SPECIAL)      ? "special_"
                      : row_has(row, FFT)          ? "fft_"
                                                   : "";
  snprintf(text, sizeof text, "%s%s%s", space, row->name, inplace ? "_" : "");
  return text;
}

/* ------------------------------------------------------------ results */

static int64_t double_bits(double v) {
  int64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return v != v ? 0x7ff8000000000000 : bits; /* one NaN for all hosts */
}

/* The host's own tensor, if an op returns the stand-in that the door made for a lazy one. */
static NOINLINE Tensor *as_given(Tensor *t) {
  while (t && t->meta && t->meta->stands_for && t->meta->stands_for->dtype == t->dtype)
    t = t->meta->stands_for;
  return t;
}

void ret_tensor(Call *c, Tensor *t) {
  if (__builtin_expect(unusual_tensors != 0, 0)) t = as_given(t);
  c->result = (Result){t ? TAG_TENSOR : TAG_NONE, 0, (int64_t)(uintptr_t)t};
}
void ret_int(Call *c, int64_t v) { c->result = (Result){TAG_INT, 0, v}; }
void ret_float(Call *c, double v) { c->result = (Result){TAG_FLOAT, 0, double_bits(v)}; }
void ret_bool(Call *c, bool v) { c->result = (Result){TAG_BOOL, 0, v}; }
void ret_dtype(Call *c, DType d) { c->result = (Result){TAG_DTYPE, 0, d}; }
void ret_none(Call *c) { c->result = (Result){.tag = TAG_NONE}; }

/* Lists and texts stay readable until the next call. */
static void *result_space(size_t n_bytes) {
  static char *space;
  static size_t cap;
  if (!space || n_bytes > cap) { /* an empty list needs an address too */
    size_t want = n_bytes + 4096;
    char *grown = mem_alloc(want);
    if (!grown) return NULL;
    mem_free(space, cap);
    space = grown;
    cap = want;
  }
  return space;
}

/* How much of that space a result takes. */
static size_t space_of(const Result *r) {
  return r->tag == TAG_STR ? (size_t)r->n + 1 : (size_t)r->n * sizeof(int64_t);
}

const void *call_result_aside(const Call *c) {
  const size_t n = space_of(&c->result);
  void *aside = n ? scratch_alloc(n) : NULL;
  return aside ? memcpy(aside, (const void *)(uintptr_t)c->result.value, n) : NULL;
}

void call_result_back(Call *c, const void *aside) {
  const size_t n = space_of(&c->result);
  void *out = aside && !failed() ? result_space(n) : NULL;
  if (out) c->result.value = (int64_t)(uintptr_t)memcpy(out, aside, n);
}

void ret_ints(Call *c, int n, const int64_t *v) {
  int64_t *out = result_space((size_t)n * sizeof *out);
  if (!out) return;
  memcpy(out, v, (size_t)n * sizeof *out);
  c->result = (Result){TAG_INTS, n, (int64_t)(uintptr_t)out};
}

void ret_tensors(Call *c, int n, Tensor *const *t) {
  if (failed()) return;
  int64_t *out = result_space((size_t)n * sizeof *out);
  for (int i = 0; out && i < n; i++) out[i] = (int64_t)(uintptr_t)as_given(t[i]);
  if (out) c->result = (Result){TAG_TENSORS, n, (int64_t)(uintptr_t)out};
}

void ret_str(Call *c, const char *s) {
  size_t n = strlen(s) + 1;
  char *out = result_space(n);
  if (!out) return;
  memcpy(out, s, n);
  c->result = (Result){TAG_STR, (int32_t)n - 1, (int64_t)(uintptr_t)out};
}

void ret_complex(Call *c, complex_f64 v) {
  complex_f64 *out = result_space(sizeof v);
  if (!out) return;
  *out = v;
  c->result = (Result){TAG_COMPLEX, 2, (int64_t)(uintptr_t)out};
}

void ret_item(Call *c, const Tensor *t) {
  if (failed() || !t) return;
  if (t->numel != 1) {
    fail(ERR_RUNTIME, "a Tensor with %lld elements cannot be converted to Scalar", (Shown)t->numel);
    return;
  }
  if (dtype_is_complex(tensor_dtype(t))) ret_complex(c, tensor_get_c(t, 0));
  else if (dtype_is_float(tensor_dtype(t))) ret_float(c, tensor_get_f(t, 0));
  else if (t->dtype == DT_BOOL) ret_bool(c, tensor_get_i(t, 0) != 0);
  else ret_int(c, tensor_get_i(t, 0));
}

void ret_text(Call *c, Text *t) {
  const char *text = text_end(t);
  if (text) ret_str(c, text);
}

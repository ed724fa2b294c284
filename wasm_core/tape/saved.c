/* Saved values: the tensors that a node keeps for its gradient, and their return.
 *
 * A value is a snapshot, or the host's id of its pack hook's result. The tensor's edge at the time
 * of saving is kept separately. An output is kept without its node, so that a node does not own
 * itself. "check" mode also keeps the versions, and the input itself, whose history the error for a
 * modified tensor names. */
#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "tape/anomaly.h"
#include "tape/exchange.h"
#include "tape/forward.h"
#include "tape/graph.h"
#include "tape/host.h"

static const char *const freed_text =
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward.";

void *saved_freed(void) { return fail(ERR_RUNTIME, "%s", freed_text); }

/* ------------------------------------------------------------ forms */

static int64_t *form_of(const Tensor *t) {
  int64_t *form = mem_alloc(form_bytes(t->ndim));
  if (!form) return NULL;
  form[FORM_DTYPE] = t->dtype;
  form[FORM_RANK] = t->ndim;
  memcpy(form + FORM_SIZES, t->sizes, t->ndim * sizeof *t->sizes);
  return form;
}

/* Gradient functions rely on the dtype and sizes of saved tensors. Only element-wise nodes and the
 * host's nodes take other ones. */
static bool form_fits(const Node *n, const int64_t *form, const Tensor *t) {
  if (n->type->each & NODE_EACH || n->kind == NODE_HOST) return true;
  int rank = (int)form[FORM_RANK];
  if (form[FORM_DTYPE] == t->dtype && sizes_equal(rank, form + FORM_SIZES, t->ndim, t->sizes))
    return true;
  fail(ERR_RUNTIME,
       "pygrad: a saved tensor unpack_hook gave a %s tensor of shape %s to %s, which saved a %s "
       "tensor of shape %s",
       dtype_info[t->dtype].legacy, shape_text(t), n->type->name,
       dtype_info[form[FORM_DTYPE]].legacy, sizes_text(rank, form + FORM_SIZES));
  return false;
}

/* ------------------------------------------------------------ default hooks */

enum { HOOKS_CAP = 512 }; /* nested scopes */
/* The pairs of hooks of one thread that has any. A backward changes a copy, which ends with the
 * backward. */
typedef struct Hooks {
  struct Hooks *next;
  int64_t task; /* the backward that the copy belongs to; below 0: no copy */
  int32_t thread, n;
  int32_t floor;  /* in a copy: the count of ids that the original owns */
  char *disabled; /* the error for pushing hooks now; NULL: allowed */
  int32_t ids[HOOKS_CAP];
} Hooks;
static Hooks *all_hooks;
const int64_t *saved_hooks_task;

static Hooks *own_hooks(void) {
  Hooks *h = all_hooks;
  while (h && h->thread != host_thread()) h = h->next;
  return h;
}

static void disable(Hooks *h, const char *text) {
  size_t size = text ? strlen(text) + 1 : 0;
  char *copy = size ? mem_alloc(size) : NULL;
  if (copy) memcpy(copy, text, size);
  h->disabled = copy;
}

/* The hooks to change now: the thread's, or in a backward its copy. */
static Hooks *make_hooks(void) {
  int64_t task = saved_hooks_task ? *saved_hooks_task : -1;
  Hooks *from = own_hooks(), *h = from;
  if ((from && (task < 0 || from->task == task)) || !(h = mem_alloc(sizeof *h))) return h;
  *h = from ? *from : (Hooks){.thread = host_thread()};
  disable(h, h->disabled);
  h->next = all_hooks;
  h->task = task;
  h->floor = h->n;
  return all_hooks = h;
}

static void pop(Hooks *h) {
  if (--h->n >= h->floor) host_drop(h->ids[h->n]);
  else h->floor = h->n;
}

static void drop_hooks(Hooks *h) {
  if (h->task >= 0 || h->n || h->disabled) return;
  Hooks **at = &all_hooks;
  while (*at != h) at = &(*at)->next;
  *at = h->next;
  mem_free(h, sizeof *h);
}

void saved_hooks_end(int64_t task) {
  for (Hooks **at = &all_hooks, *h; (h = *at);) {
    if (h->task != task) {
      at = &h->next;
      continue;
    }
    *at = h->next;
    while (h->n > h->floor) pop(h);
    if (h->disabled) mem_free(h->disabled, strlen(h->disabled) + 1);
    mem_free(h, sizeof *h);
  }
}

bool saved_hooks_push(int32_t id) {
  Hooks *h = make_hooks();
  if (!h) return false;
  if (id && h->disabled) fail(ERR_RUNTIME, "%s", h->disabled);
  else if (h->n == HOOKS_CAP)
    fail(ERR_RUNTIME, "pygrad: more than %d pairs of saved tensor hooks within each other",
         HOOKS_CAP);
  else h->ids[h->n++] = id;
  return !failed();
}

void saved_hooks_pop(void) {
  Hooks *h = own_hooks();
  if (!h || !h->n) {
    fail(ERR_RUNTIME, "there are no saved tensor hooks to take away");
    return;
  }
  h = make_hooks();
  if (!h) return;
  pop(h);
  drop_hooks(h);
}

const char *saved_hooks_disabled(void) {
  const Hooks *h = own_hooks();
  return h ? h->disabled : NULL;
}

bool saved_hooks_disable(const char *text) {
  Hooks *h = text || own_hooks() ? make_hooks() : NULL;
  if (!h) return !failed();
  char *old = h->disabled;
  if (text && h->n && h->ids[h->n - 1]) fail(ERR_RUNTIME, "%s", text);
  else disable(h, text);
  if (failed()) h->disabled = old;
  else if (old) mem_free(old, strlen(old) + 1);
  drop_hooks(h);
  return !failed();
}

/* ------------------------------------------------------------ saving */

static void keep_version(Saved *s, Tensor *t) {
  if (!t->version) tensor_share_version(t, t); /* makes the counter */
  if (!t->version) return;
  s->version = t->version;
  s->version->refs++;
  s->version_saved = s->version->value;
}

/* Passes t to a pair of hooks; the host keeps the packed object. */
static bool pack(Node *n, Saved *s, Tensor *t, int32_t hooks) {
  uint32_t version = tensor_version(t);
  s->form = form_of(t);
  s->packed = WITHOUT_GRAD(host_pack(hooks, t));
  n->guarded = true;
  if (!failed() && tensor_version(t) != version) {
    host_drop(s->packed);
    s->packed = 0;
    fail(ERR_RUNTIME, "A saved tensor pack hook is modifying its input in place. Tensors provided "
                      "as input to pack hook cannot be modified by in-place operations as this can "
                      "lead to unexpected side-effects. Please open an issue if you need to "
                      "perform in-place operations on the input to a pack hook.");
  }
  return !failed();
}

/* The pair of hooks for t; 0 for the host's numbers, which it did not pass as tensors. */
static int32_t hooks_for(const Node *n, const Tensor *t) {
  const Hooks *h = all_hooks && !is_wrapped(t) && !n->unrecorded ? own_hooks() : NULL;
  return h && h->n ? h->ids[h->n - 1] : 0;
}

static bool may_be_saved(const Tensor *t) {
  if (!(t->flags & FLAG_INFERENCE)) return true;
  fail(ERR_RUNTIME, "Inference tensors cannot be saved for backward. Please do not use Tensors "
                    "created in inference mode in computation tracked by autograd. To work around "
                    "this, you can make a clone to get a normal tensor and use it in autograd, or "
                    "use `torch.no_grad()` instead of `torch.inference_mode()`.");
  return false;
}

/* Tensors of FORM_HOSTED have no snapshots: keeps an input itself, an output detached. */
static bool keep_hosted(Node *n, Saved *s, Tensor *t) {
  Tensor *v = s->is_output ? detached_by_host(t) : t;
  if (!v) return failed() ? false : (s->set = false);
  tensor_retain(s->value = v);
  s->set = true;
  keep_version(s, t);
  if (!s->is_output) tensor_retain(s->original = t);
  n->guarded = true;
  return !failed();
}

static bool keep_value(Node *n, Saved *s, Tensor *t) {
  if (__builtin_expect(t->form & FORM_HOSTED, 0)) return keep_hosted(n, s, t);
  Tensor *v = tensor_snapshot(t);
  if (!v) return false;
  tensor_retain(s->value = v);
  s->set = true;
  if (!s->is_output) forward_share(t, v);
  if (!saved_check_mode) return true;
  keep_version(s, t);
  n->guarded = true;
  return !failed();
}

/* Keeps a snapshot of a packed tensor, for the tangents of the node's outputs. */
static Tensor *with_history(Node *n, const Saved *s, Tensor *v);
static void keep_for_tangents(Node *n, Saved *s, Tensor *t) {
  if (s->packed && n->tangents && !failed())
    tensor_retain(s->unpacked = with_history(n, s, tensor_snapshot(t)));
}

/* A tensor for a pack hook waits in `original` until all inputs are known: see saves_pack. */
void save(Node *n, int slot, Tensor *t) {
  if (!n || !t || failed() || !may_be_saved(t)) return;
  Saved *s = &n->saves[slot];
  Tensor *narrow = narrow_form(t);
  if (narrow) t = narrow, s->widened = true;
  int32_t hooks = hooks_for(n, t);
  if (hooks && t == inplace_self && !(t = inplace_copy(t))) return; /* the host may keep it */
  if (hooks) s->set = true;
  else if (!keep_value(n, s, t)) return;
  if (!s->original && (hooks || s->version)) tensor_retain(s->original = t);
  s->requires_grad = recording && tensor_requires_grad(t);
  if (s->requires_grad) {
    s->grad_fn = tensor_grad_fn(t);
    s->output_nr = t->output_nr;
    if (s->grad_fn) node_retain(s->grad_fn);
    else tensor_retain(s->leaf = t);
  }
  if (hooks && (n->n_outputs || n->kind == NODE_HOST)) saves_pack(n);
  else if (hooks) n->unpacked_inputs = true;
}

/* An output that will be narrowed is packed only after that. */
static void keep_output(Node *n, Saved *s, Tensor *y) {
  int32_t hooks = computes_in_float ? 0 : hooks_for(n, y);
  if (hooks) {
    s->set = pack(n, s, y, hooks);
    keep_for_tangents(n, s, y);
  } else keep_value(n, s, y);
}

void save_output(Node *n, int slot, Tensor *y) {
  if (!n || !y || failed() || (y->grad_fn != n && forward_awaited(y) != n) || !may_be_saved(y))
    return;
  Saved *s = &n->saves[slot];
  s->is_output = true; /* its tangent comes later */
  s->requires_grad = !n->unrecorded;
  s->output_nr = y->output_nr;
  keep_output(n, s, y);
}

void saves_narrowed(Node *n, Tensor *z) {
  for (int i = 0; i < n->n_saves && !failed(); i++) {
    Saved *s = &n->saves[i];
    if (!s->is_output || s->output_nr != z->output_nr || !s->value || s->value->dtype == z->dtype)
      continue;
    tensor_release(s->value);
    version_release(s->version);
    s->value = NULL;
    s->version = NULL;
    s->widened = true;
    keep_output(n, s, z);
    if (s->value) forward_share(z, s->value);
  }
}

/* Empties the slot but keeps the saved history. */
static void let_value_go(Saved *s) {
  tensor_release(s->value);
  tensor_release(s->original);
  version_release(s->version);
  s->value = s->original = NULL;
  s->version = NULL;
}

void saves_replaced(Node *n, Tensor *z) {
  for (int i = 0; i < n->n_saves && !failed(); i++) {
    Saved *s = &n->saves[i];
    if (!s->is_output || s->output_nr != z->output_nr || !s->value) continue;
    let_value_go(s);
    keep_output(n, s, z);
  }
}

void saves_exchanged(Node *n, const Tensor *r, Tensor *z) {
  for (int i = 0; i < n->n_saves && !failed(); i++) {
    Saved *s = &n->saves[i];
    if (s->is_output || !s->value || !tensor_same_memory(s->value, r)) continue;
    let_value_go(s);
    keep_value(n, s, z);
  }
}

void save_exchanged(Node *n, int number, Tensor *z) {
  Saved *s = &n->saves[number];
  let_value_go(s);
  s->is_output = false;
  keep_value(n, s, z);
}

void saves_rewritten(Node *n, Tensor *self, Tensor *before) {
  for (int i = 0; i < n->n_saves && !failed(); i++) {
    Saved *s = &n->saves[i];
    if (s->is_output) {
      let_value_go(s);
      keep_output(n, s, self);
    } else if (s->value == self) {
      let_value_go(s);
      if (before) keep_value(n, s, before);
      tensor_release(s->original); /* its history is self's */
      s->original = NULL;
    }
  }
}

/* ------------------------------------------------------------ order */

enum { NAMED = 16 };

/* Whether a saved value is an output. Also decided by name, since an output without a gradient is
 * saved like an input. */
static bool is_result(const Saved *s, const char *name) {
  return s->is_output ||
         (name && (strncmp(name, "result", 6) == 0 || strncmp(name, "indices", 7) == 0));
}

static bool precedes(const Saved *a, const char *x, const Saved *b, const char *y) {
  bool late = is_result(a, x), later = is_result(b, y);
  if (late != later) return later;
  size_t nx = x ? strcspn(x, " *#") : 0, ny = y ? strcspn(y, " *#") : 0;
  int order = strncmp(x ? x : "", y ? y : "", nx < ny ? nx : ny);
  return order ? order < 0 : nx < ny;
}

/* PyTorch's order of the slots: inputs by name, then outputs by name. A custom node's order is
 * unchanged. */
static int order_slots(const Node *n, int *order) {
  const char *names[NAMED] = {NULL}, *at = n->type->fields;
  int count = n->n_saves < NAMED ? n->n_saves : NAMED;
  for (int i = 0; i < count && *at && *at != '|'; i++) {
    names[i] = at;
    at += strcspn(at, " ");
    at += strspn(at, " ");
  }
  for (int i = 0; i < count; i++) {
    int k = i;
    for (; k > 0 && n->kind != NODE_HOST &&
           precedes(&n->saves[i], names[i], &n->saves[order[k - 1]], names[order[k - 1]]);
         k--)
      order[k] = order[k - 1];
    order[k] = i;
  }
  return count;
}

void saves_pack(Node *n) {
  int order[NAMED], count = order_slots(n, order);
  n->unpacked_inputs = false;
  for (int i = 0; i < n->n_saves && !failed(); i++) {
    Saved *s = &n->saves[i < count ? order[i] : i];
    if (!s->set || s->value || s->packed || !s->original) continue;
    Tensor *t = s->original;
    s->original = NULL;
    s->set = pack(n, s, t, hooks_for(n, t));
    keep_for_tangents(n, s, t);
    tensor_release(t);
  }
}

/* Whether a saved input is the operand that an in-place op writes to; PyTorch saves a copy of that
 * operand only. */
static bool is_self(const Node *n, int slot) {
  const char *name = n->type->fields;
  for (int i = 0; i < slot && *name; i++) name += strcspn(name, " "), name += *name == ' ';
  return strncmp(name, "self", 4) == 0 && (name[4] == ' ' || !name[4]);
}

void saves_written(Node *n, Tensor *self) {
  for (int i = 0; n && i < n->n_saves; i++) {
    Saved *s = &n->saves[i];
    if (!s->version) continue;
    if (s->is_output) {
      if (s->version == self->version) continue;
      version_release(s->version);
      s->version = NULL;
      keep_version(s, self);
      /* PyTorch saves a copy of the old self, which no version guards */
    } else if (s->version == self->version && is_self(n, i)) {
      version_release(s->version);
      tensor_release(s->original);
      s->version = NULL;
      s->original = NULL;
    }
  }
}

/* ------------------------------------------------------------ unpacking */

Tensor *(*conjugate)(Tensor *t);
Tensor *(*widened)(Tensor *y);
bool computes_in_float;

static bool fail_modified(const Node *n, const Saved *s) {
  const Node *producer = s->is_output ? n : s->original ? tensor_grad_fn(s->original) : s->grad_fn;
  char origin[160] = "";
  if (producer)
    snprintf(origin, sizeof origin, ", which is output %d of %s,",
             s->is_output ? (int)s->output_nr : 0, node_stem(producer));
  fail(ERR_RUNTIME,
       "one of the variables needed for gradient computation has been modified by an inplace "
       "operation: [torch.%sTensor %s]%s is at version %u; expected version %u instead. Hint: %s%s",
       dtype_info[s->value->dtype].legacy, shape_text(s->value), origin, s->version->value,
       s->version_saved,
       anomaly_mode
           ? "the backtrace further above shows the operation that failed to compute its gradient. "
             "The variable in question was changed in there or anywhere later. Good luck!"
           : "enable anomaly detection to find the operation that failed to compute its gradient, "
             "with torch.autograd.set_detect_anomaly(True, check_nan=False).",
       anomaly_mode ? anomaly_blame(n, s->version, s->version_saved) : "");
  return false;
}

/* Whether the value can be read, by the node's function (`running`) or by the host; sets the error
 * if not. */
static bool usable(const Node *n, const Saved *s, bool running) {
  if (!s->value && !s->packed) {
    saved_freed();
    return false;
  }
  Node *now = s->original ? tensor_grad_fn(s->original) : NULL;
  if (failed()) return false;
  if (running && s->original && s->grad_fn && !now) {
    fail(ERR_RUNTIME,
         "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This "
         "is not supported, please use out-of-place `.detach()` instead");
    return false;
  }
  return !s->version || s->version->value == s->version_saved || forward_produces(n) ||
         fail_modified(n, s);
}

static void adopt_version(Tensor *t, Version *v) {
  if (!t || !v) return;
  v->refs++;
  version_release(t->version);
  t->version = v;
}

static bool same_elements(const Tensor *a, const Tensor *b) {
  return tensor_same_memory(a, b) && tensor_memory(a) == tensor_memory(b) &&
         tensor_same_shape(a, b) && sizes_equal(a->ndim, a->strides, b->ndim, b->strides);
}

/* Whether t still has the elements of its snapshot v; versions do not count every write. */
static bool is_unwritten(Tensor *t, const Tensor *v) {
  if (is_sparse(t) && is_sparse(v)) {
    const Sparse *a = t->meta->sparse, *b = v->meta->sparse;
    return is_unwritten(a->values, b->values) && is_unwritten(a->indices, b->indices) &&
           (!a->plain || is_unwritten(a->plain, b->plain));
  }
  if (t == v || same_elements(t, v)) return true;
  const Tensor *now = t->storage->exports ? tensor_snapshot(t) : NULL;
  return now && same_elements(now, v);
}

/* A tensor with the elements of v and the saved history. A leaf is replaced by another leaf with
 * the same accumulator. */
static Tensor *with_history(Node *n, const Saved *s, Tensor *v) {
  Tensor *a = v->form & FORM_HOSTED ? detached_by_host(v)
                                    : tensor_alias(v, v->ndim, v->sizes, v->strides, v->offset);
  if (!a) return NULL;
  adopt_version(a, s->packed ? v->version : s->version);
  if (s->leaf) {
    Meta *m = tensor_meta(a);
    if (!m) return NULL;
    m->accumulator = tensor_accumulator(s->leaf);
    m->owns_accumulator = true;
    a->flags |= FLAG_REQUIRES_GRAD;
  } else if (s->requires_grad) {
    a->grad_fn = s->is_output ? n : s->grad_fn;
    node_retain(a->grad_fn);
    a->output_nr = s->output_nr;
  }
  forward_share(v, a);
  return a;
}

static Tensor *unpack(Node *n, Saved *s, bool running) {
  if (!usable(n, s, running)) return NULL;
  Tensor *v = s->packed ? host_unpack(s->packed) : s->value;
  if (failed() || !v || (running && s->packed && !form_fits(n, s->form, v))) return NULL;
  if (running && !(grad_mode && recording)) return v;
  if (!s->requires_grad) return s->packed && tensor_requires_grad(v) ? with_history(n, s, v) : v;
  Tensor *itself = s->original ? s->original : s->leaf;
  if (running && itself && !s->packed && same_elements(itself, v)) return itself;
  return with_history(n, s, v);
}

/* The saved tensor, unpacked; NULL: none was saved, or an error is set. */
INLINE Tensor *as_kept(Node *n, int slot) {
  if (failed() || slot >= n->n_saves || !n->saves[slot].set) return NULL;
  Saved *s = &n->saves[slot];
  /* unpacked before in this run */
  if (s->unpacked) return !s->form || form_fits(n, s->form, s->unpacked) ? s->unpacked : NULL;
  Tensor *v = unpack(n, s, true);
  if (v && s->packed && n->running) tensor_retain(s->unpacked = v); /* hooks run once a node run */
  return v;
}

INLINE Tensor *wide_form(const Node *n, int slot, Tensor *v) {
  return v && n->saves[slot].widened && dtype_is_half(tensor_dtype(v)) ? widened(v) : v;
}

Tensor *saved_plain(Node *n, int slot) { return wide_form(n, slot, as_kept(n, slot)); }

Tensor *saved_tensor(Node *n, int slot) {
  Tensor *v = wide_form(n, slot, as_kept(n, slot));
  return v && dtype_is_complex(tensor_dtype(v)) ? conjugate(v) : v;
}

bool saves_ready(Node *n) {
  int order[NAMED], count = order_slots(n, order);
  for (int i = 0; i < n->n_saves; i++) as_kept(n, i < count ? order[i] : i);
  return !failed();
}

void saves_done(Node *n) {
  for (int i = 0; i < n->n_saves; i++) {
    Tensor *t = n->saves[i].unpacked;
    n->saves[i].unpacked = NULL;
    tensor_release(t);
  }
}

/* A copy-on-write copy of the saved tensor: writes to it reach neither the graph nor the original.
 * In check mode, the input itself if it was not written to. Of a packed value, the unpack hook's
 * result. */
Tensor *saved_for_host(Node *n, int slot) {
  if (failed() || slot >= n->n_saves || !n->saves[slot].set) return NULL;
  Saved *s = &n->saves[slot];
  if (s->packed) return unpack(n, s, false);
  if (!usable(n, s, false)) return NULL;
  bool detached = s->original && s->grad_fn && !s->original->grad_fn;
  if (s->original && s->version && s->version->value == s->version_saved && !detached &&
      is_unwritten(s->original, s->value)) {
    tensor_retain(s->original); /* in case the slot is released */
    return pool_push(s->original);
  }
  Tensor *copy = s->value->form & FORM_HOSTED ? s->value : tensor_snapshot(s->value);
  if (copy && !detached) copy = with_history(n, s, copy);
  if (copy) forward_share(s->value, copy);
  return copy;
}

bool saved_register_hooks(Node *n, int slot, int32_t hooks) {
  Saved *s = &n->saves[slot];
  if (s->packed) {
    fail(ERR_RUNTIME, "Calling register_hooks on a saved tensor whose hooks have already been set. "
                      "Hint: only one pair of hooks is allowed at a time.");
  } else if (!s->set) {
    fail(ERR_RUNTIME, "Calling register_hooks on a saved tensor with value None is forbidden");
  } else if (!s->value) {
    fail(ERR_RUNTIME,
         "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate "
         "values of the graph are freed when you call .backward() or autograd.grad(). Specify "
         "retain_graph=True if you need to backward through the graph a second time or if you need "
         "to access saved variables after calling backward.");
  }
  Tensor *v = failed() ? NULL : tensor_snapshot(s->value);
  if (!v || !pack(n, s, v, hooks)) return false;
  Saved old = *s;
  s->value = s->original = NULL;
  s->version = NULL;
  version_release(old.version);
  tensor_release(old.value);
  tensor_release(old.original);
  return true;
}

/* Automatic mixed precision; see autocast.h. */
#include "ops/autocast.h"

#include <string.h>

#include "ground/memory.h"
#include "ops/op.h"

/* ------------------------------------------------------------ casts */

/* A parameter's cast, shared by a whole step: one node, whose gradient is one sum. Used only in the
 * grad mode in which it was made. */
typedef struct Kept {
  struct Kept *next;
  Tensor *of, *cast; /* owned */
  bool recorded;
} Kept;
static Kept *all_kept;

void autocast_forget(void) {
  for (Kept *k; (k = all_kept);) {
    all_kept = k->next;
    tensor_release(k->of);
    tensor_release(k->cast);
    mem_free(k, sizeof *k);
  }
}

static bool is_kept(const Tensor *t, DType to) {
  return autocast_keeps && to == (DType)autocast_dtype && t->dtype == DT_F32 &&
         t->flags & FLAG_REQUIRES_GRAD && !t->grad_fn && !tensor_is_view(t);
}

static Tensor *kept_cast(Tensor *t, DType to) {
  for (Kept *k = all_kept; k; k = k->next)
    if (k->of == t && k->cast->dtype == to && k->recorded == grad_mode) return k->cast;
  Tensor *cast = t_to(t, to);
  Kept *k = failed() ? NULL : mem_alloc(sizeof *k);
  if (!k) return NULL;
  *k = (Kept){all_kept, t, cast, grad_mode};
  tensor_retain(t);
  tensor_retain(cast);
  all_kept = k;
  return cast;
}

/* Host numbers, float64 and batched tensors are never cast. */
static bool may_be_cast(const Tensor *t) {
  return t && dtype_is_float(tensor_dtype(t)) && t->dtype != DT_F64 && !is_wrapped(t) &&
         !(t->flags & FLAG_BATCHED);
}

static Tensor *cast_to(Tensor *t, DType to) {
  if (!may_be_cast(t) || t->dtype == to) return t;
  return is_kept(t, to) ? kept_cast(t, to) : t_to(t, to);
}

/* ------------------------------------------------------------ policies */

/* The type for n tensors. DT_NONE, with PyTorch's error, for a 16-bit type other than
 * autocast's. */
static DType widest(DType d, int n, Tensor *const *t) {
  for (int i = 0; i < n && d != DT_NONE; i++) {
    if (!may_be_cast(t[i]) || t[i]->dtype == d) continue;
    if (d == DT_F32 || t[i]->dtype == DT_F32) d = DT_F32;
    else d = DT_NONE;
  }
  if (d == DT_NONE) fail(ERR_RUNTIME, "Unexpected floating ScalarType in at::autocast::prioritize");
  return d;
}

/* The tensors of an argument: a list, or one. */
static Tensor *const *tensors_of(const Place *p, int *n) {
  *n = p->one ? 1 : p->list.n;
  return p->one ? &p->one : p->list.v;
}

static DType type_for(AutocastPolicy policy, int n, const Place *p) {
  if (policy != AUTOCAST_promote) return policy == AUTOCAST_float ? DT_F32 : (DType)autocast_dtype;
  DType d = (DType)autocast_dtype;
  for (int i = 0; i < n && !failed(); i++) {
    int count;
    Tensor *const *t = tensors_of(p + i, &count);
    d = widest(d, count, t);
  }
  return d;
}

static bool cast_places(AutocastPolicy policy, int n, Place *p) {
  if (policy == AUTOCAST_whole) return true;
  DType to = type_for(policy, n, p);
  for (int i = 0; i < n && !failed(); i++) {
    p[i].one = cast_to(p[i].one, to);
    Tensor **all = p[i].list.n ? scratch_array(p[i].list.n, sizeof *all) : NULL;
    for (int k = 0; all && k < p[i].list.n; k++) all[k] = cast_to(p[i].list.v[k], to);
    if (all) p[i].list.v = all;
  }
  return !failed();
}

/* ------------------------------------------------------------ calls of a host */

static bool cast_arguments(Call *c) {
  Place places[MAX_ARGS] = {{NULL, {0, NULL}, NULL}};
  for (int i = 0; i < c->n_args; i++) {
    const Value *v = &c->v[i];
    if (v->tag == TAG_TENSOR) places[i].one = v->t;
    if (v->tag == TAG_TENSORS) places[i].list = arg_tensors(c, i);
  }
  if (failed() || !cast_places((AutocastPolicy)c->row->autocast, c->n_args, places)) return false;
  for (int i = 0; i < c->n_args; i++) {
    Value *v = &c->v[i];
    if (v->tag == TAG_TENSOR) v->t = places[i].one;
    if (v->tag != TAG_TENSORS) continue;
    int64_t *handles = scratch_array(v->n ? v->n : 1, sizeof *handles);
    if (!handles) return false;
    for (int k = 0; k < v->n; k++) handles[k] = (int64_t)(uintptr_t)places[i].list.v[k];
    v->p = handles;
  }
  return true;
}

bool autocast_prepare(Call *c) {
  bool writes = c->inplace || c->out.tag != TAG_MISSING, cast = c->row->autocast && !writes;
  if (cast && !cast_arguments(c)) return false;
  if (cast || writes) autocast_dtype = 0;
  return true;
}

/* ------------------------------------------------------------ entries from C */

/* The policy of the op that enters. Functions name ops by literals, so the cache goes by
 * address. */
static AutocastPolicy policy_of(const char *op) {
  enum { KNOWN = 512 };
  static struct {
    const char *op;
    uint8_t policy;
  } known[KNOWN];
  size_t at = (uintptr_t)op % KNOWN;
  if (known[at].op == op) return (AutocastPolicy)known[at].policy;
  AutocastPolicy policy = AUTOCAST_none;
  for (int i = 0; i < n_op_rows && !policy; i++)
    if (op_rows[i].autocast && strcmp(op_rows[i].name, op) == 0)
      policy = (AutocastPolicy)op_rows[i].autocast;
  known[at].op = op;
  known[at].policy = (uint8_t)policy;
  return policy;
}

/* A running op whose arguments were cast. The watcher below is told as usual. */
typedef struct Within {
  struct Within *outer;
  const Watcher *by;
  int32_t entry, dtype;
} Within;
static Within *within;

static int32_t enter(const char *op, int n, const Argument *v) {
  watcher = within->by;
  autocast_dtype = 0;
  if (within->by) within->entry = within->by->enter(op, n, v);
  return 0;
}

static void leave(int32_t entry) {
  (void)entry;
  Within *w = within;
  within = w->outer;
  autocast_dtype = w->dtype;
  if (w->by) w->by->leave(w->entry);
  mem_free(w, sizeof *w);
}
static const Watcher within_op = {enter, leave};

static bool cast_entered(const char *op, int n, Place *places) {
  AutocastPolicy policy = policy_of(op);
  if (!policy || failed() || !cast_places(policy, n, places)) return !failed();
  Within *w = mem_alloc(sizeof *w);
  if (!w) return false;
  *w = (Within){within, watcher, -1, autocast_dtype};
  within = w;
  watcher = &within_op;
  return true;
}

void autocast_begin(void) { autocast_arguments = cast_entered; }

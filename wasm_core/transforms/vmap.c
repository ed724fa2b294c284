/* How a call on batched tensors is run: by a rule at once (vmap_rules.c), or slice by slice.
 *
 * The loop is right for every row: it selects the slices, runs the row on each, and stacks what
 * comes out, all of it recorded, so that gradients flow. Rules only save time. See vmap.h for
 * what a batched tensor is. */
#include "transforms/vmap_private.h"

#include <stdio.h>
#include <string.h>

#include "call/schema.h"
#include "ground/memory.h"
#include "ops/create/random.h"
#include "ops/view/shape.h"
#include "tape/forward.h"

static Tensor *add_levels(Tensor *t, const void *bits) {
  *(uint32_t *)(uintptr_t)bits |= levels_of(t);
  return t;
}

static uint32_t levels_of_call(const Call *c) {
  uint32_t bits = 0;
  for (int k = 0; k < c->n_args; k++) value_map(c->v[k], add_levels, &bits);
  value_map(c->out, add_levels, &bits);
  return bits;
}

/* A batched tensor with a history, and all its slices by its own levels. */
typedef struct Spread Spread;
struct Spread {
  const Tensor *of;
  Tensor **slices;
  Spread *next;
};

typedef struct {
  const Batch *batch;
  int64_t at;   /* which slice, counted over all levels */
  Spread **all; /* NULL: what is written to */
} Slice;

/* One node's results, so that their gradients come together in one tensor: that of a selected
 * slice is as large as the whole. */
static Spread *spread(Tensor *t) {
  Tensor **v = scratch_array(1, sizeof *v);
  Spread *made = scratch_array(1, sizeof *made);
  int64_t n = 1;
  if (!v || !made) return NULL;
  v[0] = t->meta->value;
  for (uint32_t bits = t->meta->levels; bits; bits &= bits - 1) {
    int64_t size = v[0]->sizes[0];
    Tensor **parts = scratch_array(n * size, sizeof *parts);
    for (int64_t i = 0; parts && i < n; i++) {
      Tensor **some = t_unbind(v[i], 0, &size);
      if (!some) return NULL;
      memcpy(parts + i * size, some, (size_t)size * sizeof *some);
    }
    if (!(v = parts)) return NULL;
    n *= size;
  }
  *made = (Spread){t, v, NULL};
  return made;
}

static Tensor *spread_slice(const Slice *s, Tensor *t, int64_t at) {
  Spread **place = s->all;
  while (*place && (*place)->of != t) place = &(*place)->next;
  if (!*place && !(*place = spread(t))) return NULL;
  return (*place)->slices[at];
}

static Tensor *slice_of(Tensor *t, const void *context) {
  const Slice *s = context;
  uint32_t own = levels_of(t);
  if (!own) return t;
  /* The first slice may be enough, if it is a view. */
  bool select = !s->all || s->at == 0 || !tensor_tracked(t->meta->value);
  Tensor *v = t->meta->value;
  int64_t left = s->at, step = s->batch->total, at = 0;
  int k = 0;
  for (uint32_t bits = s->batch->levels; bits; bits &= bits - 1, k++) {
    step /= s->batch->sizes[k];
    if (own & bits & -bits) {
      if (select) v = t_select(v, 0, left / step);
      at = at * s->batch->sizes[k] + left / step;
    }
    left %= step;
  }
  return select ? v : spread_slice(s, t, at);
}

/* ------------------------------------------------------------ results */

static Tensor *result_at(Tensor *value, uint32_t bits) {
  if (value && levels_of(forward_tangent(value)))
    return fail(ERR_NOT_IMPLEMENTED, "vmap: the batched result of an op cannot have a tangent that "
                                     "is batched once more");
  return batched_tensor(value, bits);
}

/* Values become batched; that of an argument becomes the argument again. */
static Tensor *rewrap_value(const Call *c, Tensor *r, uint32_t bits) {
  for (int k = 0; r && k < c->n_args; k++) {
    Tensor *t = c->v[k].tag == TAG_TENSOR ? c->v[k].t : NULL;
    if (levels_of(t) == bits && t->meta->value == r) {
      int n = level_count(bits); /* an in-place view has changed the value's shape */
      tensor_set_geometry(t, r->ndim - n, r->sizes + n, r->strides + n, r->offset);
      return t;
    }
  }
  return result_at(r, bits);
}

static void give(Call *c, const Result *r, uint32_t bits) {
  if (failed()) return;
  if (r->tag == TAG_TENSOR) {
    ret_tensor(c, rewrap_value(c, result_tensor(r, 0), bits));
  } else if (r->tag == TAG_TENSORS) {
    Tensor **made = scratch_array(r->n + 1, sizeof *made);
    for (int i = 0; made && i < r->n; i++) made[i] = rewrap_value(c, result_tensor(r, i), bits);
    if (made) ret_tensors(c, r->n, made);
  } else {
    c->result = *r;
  }
}

/* ------------------------------------------------------------ slice by slice */

static int name_length(const Call *c) { return (int)strlen(c->row->name); }
static bool writes_itself(const Call *c) { return c->row->name[name_length(c) - 1] == '_'; }
static bool is_named(const Call *c, const char *name) { return strcmp(c->row->name, name) == 0; }

static void no_rule(const Call *c, const char *why) {
  fail(ERR_RUNTIME, "Batching rule not implemented for aten::%s%s", c->row->name, why);
}

/* Numbers drawn for one slice of a "same" level are drawn for all: the generator goes back. */
typedef struct {
  int32_t generator;
  uint32_t same;
  Tensor **before, *after; /* the states: before each first slice, after the last */
} Draws;

static int64_t first_alike(const Batch *b, uint32_t same, int64_t at) {
  int64_t first = 0, left = at, step = b->total;
  int k = 0;
  for (uint32_t bits = b->levels; bits; bits &= bits - 1, k++) {
    step /= b->sizes[k];
    if (!(same & bits & -bits)) first += left / step * step;
    left %= step;
  }
  return first;
}

static void seed_draw(Draws *d, const Batch *b, int64_t at) {
  int64_t first = first_alike(b, d->same, at);
  if (first == at) d->before[at] = random_state(d->generator);
  else random_set_state(d->generator, d->before[first]);
}

/* The results of all slices, by output: parts[output * total + slice]. */
typedef struct {
  int n;
  bool listed;
  Tensor **parts;
} Parts;

static bool collect(Parts *p, const Result *r, int64_t at, int64_t total) {
  int n = r->tag == TAG_TENSORS ? r->n : 1;
  if (at == 0) {
    *p = (Parts){n, r->tag == TAG_TENSORS, scratch_array((int64_t)n * total + 1, sizeof(Tensor *))};
  } else if (n != p->n) {
    fail(ERR_RUNTIME, "vmap: slices of the batch give %d and %d tensors", p->n, n);
  }
  for (int i = 0; !failed() && i < n; i++) p->parts[i * total + at] = result_tensor(r, i);
  return !failed();
}

static Tensor *stack_parts(const Batch *b, Tensor **parts) {
  if (!parts[0]) return NULL; /* the gradient of an unused input */
  Tensor *y = t_stack((Tensors){(int32_t)b->total, parts}, 0);
  if (!y || b->n == 1) return y;
  int64_t sizes[2 * MAX_DIM];
  memcpy(sizes, b->sizes, (size_t)b->n * sizeof *sizes);
  memcpy(sizes + b->n, y->sizes + 1, (size_t)(y->ndim - 1) * sizeof *sizes);
  return t_view(y, b->n + y->ndim - 1, sizes);
}

/* The batched arguments: how many, and which of them a slice's result is a view of. */
typedef struct {
  const Tensor *view;
  Tensor *of;
  int n;
} Origin;

static Tensor *find_origin(Tensor *t, const void *context) {
  Origin *o = (Origin *)(uintptr_t)context;
  if (levels_of(t)) {
    o->n++;
    if (t->storage == o->view->storage) o->of = t;
  }
  return t;
}

/* The view of all slices that goes with a view of the first, where there is one batched argument
 * (or others give their sizes, as to view_as): then nothing but its elements differ, and a view
 * does not depend on those. NULL if it is no view. */
static Tensor *view_of_all(const Call *c, const Batch *b, const Tensor *r) {
  Origin o = {r, NULL, 0};
  int64_t sizes[2 * MAX_DIM], strides[2 * MAX_DIM];
  for (int k = 0; r && k < c->n_args; k++) value_map(c->v[k], find_origin, &o);
  if (!o.of || (o.n > 1 && !row_has(c->row, LIKE)) || r->dtype != o.of->dtype ||
      b->n + r->ndim > MAX_DIM)
    return NULL;
  Tensor *full = batch_full(b, o.of);
  bool same = r->offset == o.of->offset &&
              sizes_equal(r->ndim, r->sizes, o.of->ndim, o.of->sizes) &&
              sizes_equal(r->ndim, r->strides, o.of->ndim, o.of->strides);
  if (!full || same) return full;
  memcpy(sizes, full->sizes, (size_t)b->n * sizeof *sizes);
  memcpy(strides, full->strides, (size_t)b->n * sizeof *strides);
  memcpy(sizes + b->n, r->sizes, r->ndim * sizeof *sizes);
  memcpy(strides + b->n, r->strides, r->ndim * sizeof *strides);
  return t_as_strided(full, b->n + r->ndim, sizes, strides, r->offset);
}

/* The call c for the i-th slice of its batched arguments. */
static void slice_call(const Call *c, const Batch *b, int64_t i, Spread **all, Call *inner) {
  Slice s = {b, i, all};
  *inner = *c;
  inner->inplace = false;
  inner->result = (Result){.tag = TAG_NONE};
  for (int k = 0; k < c->n_args; k++) {
    inner->v[k] = value_map(c->v[k], slice_of, &s);
    if (i + 1 < b->total && strcmp(row_arg_name(c->row, k), "retain_graph") == 0)
      inner->v[k].i = true;
  }
}

/* Leaves values in inner->result; a row that writes to its first argument writes to the slices. */
static void run_loop(const Call *c, const Batch *b, Draws *draws, Call *inner) {
  Parts p = {0, false, NULL};
  bool writes = writes_itself(c) || schema_of_row(c->row)->result == RESULT_NONE;
  bool apart = !c->inplace && !writes && !schema_of_row(c->row)->may_write;
  /* Not of what has a history of its own. */
  bool views = apart && c->row->name[0] != '_' && !is_named(c, "detach");
  Spread *all = NULL;
  if (b->total == 0) no_rule(c, "; the fallback path does not support vmap over dims of size 0");
  if (draws) draws->before = scratch_array(b->total + 1, sizeof *draws->before);
  for (int64_t i = 0; i < b->total && !failed(); i++) {
    slice_call(c, b, i, apart ? &all : NULL, inner);
    if (draws) seed_draw(draws, b, i);
    run_call_plain(inner);
    if (draws && first_alike(b, draws->same, i) == i) draws->after = random_state(draws->generator);
    if (failed() || writes) continue;
    if (inner->result.tag != TAG_TENSOR && inner->result.tag != TAG_TENSORS)
      no_rule(c, ". We could not generate a fallback.");
    else collect(&p, &inner->result, i, b->total);
    bool first = views && i == 0; /* whether its results are enough */
    for (int k = 0; first && k < p.n; k++)
      first = !failed() && view_of_all(c, b, p.parts[k * b->total]);
    if (first) break;
  }
  if (draws && draws->after) random_set_state(draws->generator, draws->after);
  if (failed()) return;
  if (writes) {
    inner->result = (Result){.tag = TAG_NONE};
    if (c->v[0].tag == TAG_TENSOR && writes_itself(c)) ret_tensor(inner, c->v[0].t->meta->value);
    return;
  }
  Tensor **made = scratch_array(p.n + 1, sizeof *made);
  for (int i = 0; made && i < p.n; i++) {
    Tensor **parts = p.parts + i * b->total;
    made[i] = views ? view_of_all(c, b, parts[0]) : NULL;
    if (!made[i]) made[i] = stack_parts(b, parts);
  }
  if (!made || failed()) return;
  if (p.listed) ret_tensors(inner, p.n, made);
  else ret_tensor(inner, made[0]);
}

/* ------------------------------------------------------------ what cannot be done */

/* For `return fail_unsupported(...)` from what says whether a call was refused. */
static bool fail_unsupported(const char *what, const char *op) {
  fail(ERR_RUNTIME,
       "%s%s. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this "
       "feature.",
       what, op);
  return true;
}

/* Refuses an op whose number of results depends on values. */
static bool dynamic_shape(const Call *c) {
  if (!row_has(c->row, DYNAMIC)) return false;
  const char *aten = is_named(c, "_where_nonzero") ? "where"
                     : is_named(c, "unique")       ? "_unique2"
                                                   : c->row->name;
  return fail_unsupported(
      "vmap: We do not support batching operators that can output dynamic shape. "
      "Attempted to vmap over aten::",
      aten);
}

static bool hidden_storage(const Call *c) {
  return row_has(c->row, ADDRESS) &&
         !fail(ERR_RUNTIME, "Cannot access data pointer of Tensor that doesn't have storage");
}

/* Refuses running statistics that all slices would write to. */
static bool shared_statistics(const Call *c) {
  bool writes = false, shared = false;
  if (!row_has(c->row, STATISTICS) || !levels_of(c->v[0].t)) return false;
  for (int k = 1; k < c->n_args; k++) {
    const char *name = row_arg_name(c->row, k);
    if (strcmp(name, "training") == 0 || strcmp(name, "use_input_stats") == 0)
      writes = arg_bool(c, k);
    else if (strncmp(name, "running_", 8) == 0 && c->v[k].tag == TAG_TENSOR)
      shared = shared || !levels_of(c->v[k].t);
  }
  return writes && shared &&
         !fail(ERR_RUNTIME,
               "Batch norm got a batched tensor as input while the running_mean or running_var, "
               "which will be updated in place, were not batched.\nIf you are using a module and "
               "do not need eval mode, please set `track_running_stats` to be False.If you are "
               "using a prebuilt module and do not need eval mode, please see the functorch "
               "website for resources on how to patch your module to work with vmap");
}

void vmap_refuses_item(__attribute__((unused)) const Call *c) { vmap_item_error(); }
void vmap_refuses_allclose(__attribute__((unused)) const Call *c) {
  fail_unsupported("vmap over torch.allclose isn't supported yet", "");
}
void vmap_refuses_mask(const Call *c) {
  if (levels_of(c->v[1].t))
    fail_unsupported(
        "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot "
        "support this because for each batch this would return a differently shaped Tensor",
        "");
}
void vmap_refuses_data(__attribute__((unused)) const Call *c) {
  fail(ERR_RUNTIME, "accessing `data` under vmap transform is not allowed");
}
void vmap_refuses_one_hot(const Call *c) {
  if (arg_int(c, 1) <= 0)
    fail(ERR_RUNTIME, "When vmap-ing torch.nn.functional.one_hot, please provide an explicit "
                      "positive num_classes argument.");
}
void vmap_refuses_geometry(const Call *c) {
  no_rule(c, "; the fallback path doesn't work on out= or view ops.");
}

static bool is_refused(const Call *c) {
  if (c->out.tag != TAG_MISSING)
    no_rule(c, ".out; the fallback path doesn't work on out= or view ops.");
  else if (c->row->refused) c->row->refused(c);
  return failed() || hidden_storage(c) || dynamic_shape(c) || shared_statistics(c);
}

/* The refusal in the words of broadcasting, for `return too_small(...)`. */
static bool too_small(const Call *c, const Batch *b) {
  const Tensor *self = c->v[0].t;
  int64_t sizes[2 * MAX_DIM];
  int n = b->n;
  memcpy(sizes, b->sizes, (size_t)n * sizeof *sizes);
  memcpy(sizes + n, self->sizes, self->ndim * sizeof *sizes);
  Tensor *aligned = is_batched(self) ? batch_align(b, c->v[0].t, 0) : c->v[0].t;
  if (aligned)
    fail(ERR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s",
         shape_text(aligned), sizes_text(n + self->ndim, sizes));
  return false;
}

/* Refuses a write of more slices than its target has, in one of PyTorch's four wordings. */
static bool check_target(const Call *c, const Batch *b) {
  if (c->v[0].tag == TAG_TENSOR && levels_of(c->v[0].t) == b->levels) return true;
  bool subscript = is_named(c, "_setitem"), own = subscript && value_first(&c->v[1]);
  char name[64], level[32] = "in a vmap";
  VmapTarget target = (VmapTarget)c->row->target;
  int n = name_length(c) - writes_itself(c);
  if (c->v[0].tag == TAG_TENSOR && target == TARGET_TOO_SMALL) return too_small(c, b);
  if (own) strcpy(name, "index_put_");
  else if (subscript || target == TARGET_ARITHMETIC) strcpy(name, "inplace arithmetic");
  else if (target == TARGET_BY_NAME) snprintf(name, sizeof name, "%.*s_", n, c->row->name);
  else {
    snprintf(name, sizeof name, "aten::%.*s_", n, c->row->name);
    snprintf(level, sizeof level, "at level %d", highest(b->levels));
  }
  fail(ERR_RUNTIME,
       "vmap: %s(self, *extra_args) is not possible because there exists a Tensor `other` in "
       "extra_args that has more elements than `self`. This happened due to `other` being vmapped "
       "over but `self` not being vmapped over %s. Please try to use out-of-place operators "
       "instead of %s. If said operator is being called inside the PyTorch framework, please file "
       "a bug report instead.",
       name, level, name);
  return false;
}

/* ------------------------------------------------------------ calls */

static bool is_random(const Row *row) {
  return (schema_of_row(row)->draws && row->name[0] != '_') || row->batch == BATCH_draws ||
         row->batch == BATCH_draws_each;
}

/* Services look at the tensor itself: rows of the host's own that give no tensor, those marked X,
 * and who gives a tensor that is not batched a tangent. A batch of gradients is no service: as many
 * backwards as there are. */
static bool is_service(const Call *c) {
  uint32_t bits = 0;
  if (is_named(c, "_grad")) {
    for (int k = 0; k < 2; k++) value_map(c->v[k], add_levels, &bits);
    return bits;
  }
  if (c->row->batch == BATCH_itself || (is_named(c, "_make_dual") && !levels_of(c->v[0].t)))
    return true;
  return row_has(c->row, INTERNAL) && !row_has(c->row, DIRECT) && !c->row->batch &&
         schema_of_row(c->row)->result != RESULT_TENSOR &&
         schema_of_row(c->row)->result != RESULT_LIST;
}

static bool writes_first(const Call *c) {
  return writes_itself(c) || c->inplace || is_named(c, "_setitem");
}

static Tensor *as_batched_dual(Tensor *t, __attribute__((unused)) const void *context) {
  return vmap_dual(t);
}

/* Arguments with batched tangents become batched where others are. What is written to does not,
 * nor what a graph is asked for. */
static void batch_duals(Call *c) {
  for (int k = writes_first(c); k < c->n_args; k++)
    c->v[k] = value_map(c->v[k], as_batched_dual, NULL);
}

static void run_slices(Call *c, uint32_t bits, Draws *draws) {
  Batch b = batch_at(bits);
  Call inner;
  if (writes_first(c) && !check_target(c, &b)) return;
  if (draws || !rule_run(c, &b, &inner)) run_loop(c, &b, draws, &inner);
  if (failed()) return;
  if (c->inplace && inner.result.tag == TAG_TENSOR) {
    Tensor *self = c->v[0].t->meta->value, *r = (Tensor *)(uintptr_t)inner.result.value;
    if (r != self && history_check_inplace(self) && history_check_rebase(self))
      run_inplace_finish(c, self, r);
    inner.result.value = (int64_t)(uintptr_t)self;
  }
  give(c, &inner.result, bits);
}

/* Draws differ between the slices of a "different" level, batched or not, and are alike for
 * those of a "same" one. */
static void run_random(Call *c, uint32_t bits) {
  Draws draws = {.same = levels_with(RANDOM_SAME)};
  uint32_t all = bits | levels_with(RANDOM_DIFFERENT);
  for (int k = 0; k < c->n_args; k++)
    if (c->v[k].tag == TAG_GENERATOR) draws.generator = arg_generator(c, k);
  bool given = schema_of_row(c->row)->draws, writes = writes_itself(c) || c->inplace;
  bool from_values = given && !writes && !row_has(c->row, LIKE);
  if (given && writes && is_named(c, "bernoulli_") && c->v[1].tag == TAG_TENSOR)
    from_values = levels_of(c->v[1].t);
  if (from_values && bits & draws.same)
    fail(ERR_RUNTIME, "Vmap does not currently support same randomness with a batched tensor "
                      "input. Please file an issue with functorch");
  else if (given && writes && !bits && all)
    fail(ERR_RUNTIME, "vmap: Cannot ask for different inplace randomness on an unbatched tensor. "
                      "This will appear like same randomness. If this is necessary for your usage, "
                      "please file an issue with functorch.");
  else if (given && writes && !vmap_may_draw()) return;
  else if (!all) run_call_plain(c);
  else run_slices(c, all, bits & draws.same ? &draws : NULL);
}

bool vmap_run(Call *c) {
  uint32_t bits = levels_of_call(c);
  bool random = levels_active() && is_random(c->row) && c->out.tag == TAG_MISSING;
  if (!bits && !random) return false;
  if (bits && is_service(c))
    return hidden_storage(c) || (c->row->refused == vmap_refuses_data && is_refused(c));
  if (bits && forward_on && !is_named(c, "_grad")) {
    batch_duals(c);
    bits = levels_of_call(c);
  }
  if (bits & ~levels_active()) {
    fail(ERR_RUNTIME,
         "Either your tensor may have escaped from inside a function being vmapped and this is a "
         "user error (see https://pytorch.org/functorch/stable/ux_limitations.html), or there is "
         "an internal functorch error in `gen_vmap_plumbing` Please file an issue if it looks like "
         "the latter");
    return true;
  }
  if (bits && is_refused(c)) return true;
  if (random) run_random(c, bits);
  else run_slices(c, bits, NULL);
  return true;
}

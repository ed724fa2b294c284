/* Forward mode; see tape/forward.h. Every tangent is in one of two lists: waiting or known. The end
 * of a call settles the first, the end of the level forgets both. */
#include "walk/forward.h"
#include "walk/walk.h"

#include <stdio.h>
#include <string.h>

#include "call/door.h"
#include "ground/memory.h"
#include "kernels/complex.h"
#include "ops/complex/complex.h"
#include "ops/dispatch.h"
#include "ops/op.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"
#include "tape/anomaly.h"
#include "tape/host.h"
#include "tape/profile.h"
#include "walk/tangent.h"

/* The tangent of a tensor. With neither tangent nor node, it marks a view without a tangent, though
 * its base may have one. */
struct Dual {
  Dual *prev, *next;
  Tensor *owner;   /* weak */
  Tensor *tangent; /* owned */
  Node *waits_for; /* owned: the node of the tensor, until the tangent is known */
  int32_t output_nr;
  bool recorded;    /* whether the op was recorded */
  uint32_t version; /* the tangent's when forward_noted was called */
};

struct Tangents {
  int32_t users, n; /* the number of outputs that wait, and of inputs */
  Tensor *at[];     /* owned, one for each input; NULL: none */
};

static bool level_entered;
static int input_wanted = -1; /* the input of forward_product to differentiate by; -1: all */
static Dual waiting = {.prev = &waiting, .next = &waiting},
            known = {.prev = &known, .next = &known};

void forward_begin(bool allowed) { forward_on = level_entered && allowed; }

/* The modes while ops run on tangents: no forward mode, and recording as the user has it. */
typedef struct {
  bool forward, grad, anomaly, profiling;
} Modes;
static Modes suspend_modes(void) {
  Modes was = {forward_on, grad_mode, anomaly_mode, profiling};
  forward_on = false;
  profile_listen(false);
  anomaly_set(false);
  grad_mode = recording;
  return was;
}
static void restore_modes(Modes was) {
  forward_on = was.forward;
  grad_mode = was.grad;
  anomaly_set(was.anomaly);
  profile_listen(was.profiling);
}

/* ------------------------------------------------------------ lists */

static void unlink_dual(Dual *d) {
  d->prev->next = d->next;
  d->next->prev = d->prev;
}

static void link_dual(Dual *list, Dual *d) {
  d->prev = list;
  d->next = list->next;
  d->next->prev = d->prev->next = d;
}

static Dual *dual_of(const Tensor *t) { return t->meta ? t->meta->dual : NULL; }

static Dual *dual_new(Tensor *t) {
  Meta *m = tensor_meta(t);
  if (!m || m->dual) return m ? m->dual : NULL;
  Dual *d = mem_alloc_zero(sizeof *d);
  if (!d) return NULL;
  d->owner = t;
  link_dual(&known, d);
  return m->dual = d;
}

static void detach(Node *n) {
  Tangents *t = n->tangents;
  if (!t) return;
  n->tangents = NULL;
  for (int i = 0; i < t->n; i++) tensor_release(t->at[i]);
  mem_free(t, sizeof *t + (size_t)t->n * sizeof *t->at);
}

static void stop_waiting(Dual *d) {
  Node *n = d->waits_for;
  if (!n) return;
  d->waits_for = NULL;
  unlink_dual(d);
  link_dual(&known, d);
  if (n->tangents && --n->tangents->users == 0) detach(n);
  node_release(n);
}

static void forget(Tensor *t) {
  Dual *d = dual_of(t);
  if (!d) return;
  t->meta->dual = NULL;
  stop_waiting(d);
  unlink_dual(d);
  Tensor *tangent = d->tangent;
  mem_free(d, sizeof *d);
  tensor_release(tangent);
}

static void keep_tangent(Dual *d, Tensor *tangent) {
  Tensor *old = d->tangent;
  tensor_retain(tangent);
  d->tangent = tangent;
  tensor_release(old);
}

/* ------------------------------------------------------------ levels */

int64_t forward_level(void) { return level_entered ? 0 : -1; }

void forward_exit(int64_t level) {
  if (level != forward_level())
    fail(ERR_RUNTIME, "Trying to exit a forward AD level that was not the last one that was "
                      "created. This is not supported.");
  else if (level < 0) fail(ERR_RUNTIME, "Dual level must be a positive number.");
  if (failed()) return;
  level_entered = forward_on = false;
  host_note_levels(0);
  while (waiting.next != &waiting) forget(waiting.next->owner);
  while (known.next != &known) forget(known.next->owner);
}

static void put_tangent(Tensor *t, Tensor *tangent) {
  if (tangent && !tangent_lies_as(tangent, t)) tangent = tangent_laid_out_as(t, tangent);
  Dual *d = tangent ? dual_new(t) : NULL;
  if (d) keep_tangent(d, tangent);
}

/* ------------------------------------------------------------ the product */

/* Pairs each gradient that depends on u with the tangent of its input; returns their number. */
static int pair(Node *n, Tensor **gi, Tensor **roots, Tensor **with) {
  int count = 0;
  for (int i = 0; i < n->n_edges; i++) {
    Tensor *t = n->tangents->at[i];
    if (!t || !gi[i]) continue;
    OutputMeta like = {.dtype = t->dtype,
                       .ndim = t->ndim,
                       .defined = true,
                       .form = t->form & FORM_ABSENT,
                       .far = t->sizes};
    if (t->ndim <= 4) memcpy(like.near, t->sizes, t->ndim * sizeof *t->sizes);
    Tensor *g = gradient_fit(n, i, gi[i], &like);
    if (!g || failed() || !tensor_requires_grad(g)) continue;
    roots[count] = g;
    with[count++] = t;
  }
  return count;
}

static bool any_recorded(const Tangents *t) {
  for (int i = 0; i < t->n; i++)
    if (t->at[i] && tensor_requires_grad(all_slices(t->at[i]))) return true;
  return false;
}

static bool any_hosted(const Tangents *t, const Tensor *y) {
  bool any = y->form & FORM_HOSTED;
  for (int i = 0; t && i < t->n; i++) any = any || (t->at[i] && t->at[i]->form & FORM_HOSTED);
  return any;
}

/* Whether the tangents of n's outputs have a history. */
static bool records(const Node *n) {
  return recording && (!n->unrecorded || any_recorded(n->tangents));
}

/* A tangent whose storage only the result has, since it may be written to in place. */
static Tensor *owned_tangent(Tensor *y, const Tangents *t) {
  bool known_elsewhere = y->storage->refs > 1;
  for (int i = 0; i < t->n; i++) known_elsewhere = known_elsewhere || y == t->at[i];
  return known_elsewhere ? tangent_frozen_copy(y) : y;
}

/* Rewords the error for a missing derivative as PyTorch words it for tangents. */
static void refuse_tangent(void) {
  static const char *const names[][2] = {
      {"_cdist_backward", "_cdist_forward"},
      {"_pdist_backward", "_pdist_forward"},
      {"aten::multi_margin_loss_backward", "multi_margin_loss"},
      {"aten::multilabel_margin_loss_backward", "multilabel_margin_loss_forward"},
      {"zeta", "special_zeta"},
      {"embedding_renorm", "embedding_renorm_"},
      {"set_", "set_"}};
  const char *text = status_message(), *at = strstr(text, "derivative for ");
  if (!at || at - text > 4) return;
  bool unknown = at == text; /* to PyTorch's table */
  char name[64];
  at += unknown ? 15 : 16;
  snprintf(name, sizeof name, "%.*s", (int)strcspn(at, unknown ? " " : "':"), at);
  at = name;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i][0]) == 0) at = names[i][1], unknown = false;
  status_clear();
  bool inplace = at[strlen(at) - 1] == '_';
  fail(ERR_NOT_IMPLEMENTED, "Trying to use forward AD with %s that does not support it%s%s", at,
       unknown ? "."
               : " because it has not been implemented yet.\nPlease file an issue to PyTorch at "
                 "https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so "
                 "that we can prioritize its implementation",
       unknown   ? ""
       : inplace ? "."
                 : " or submit a PR adding the implementation to derivatives.yaml");
}

/* Nodes whose tangent is, in PyTorch, a sum with a term for each input, zeros for one without
 * tangent. So it depends on all inputs, even if it is constant in them. */
static const char *const tied =
    " Mul Div Addbmm Addcdiv Addcmul Addmm Addmv Addr Baddbmm BinaryCrossEntropy Bmm CholeskySolve "
    "Convolution Dot Fmod1 Hardshrink Hardsigmoid Hardtanh Ldexp LeakyRelu Lerp1 LinalgCross "
    "LinalgSolveEx LinalgSolveTriangular Mm Mv NativeBatchNorm NativeGroupNorm NativeLayerNorm "
    "PreluKernel Relu Remainder1 RreluWithNoise Softshrink SpecialXlog1Py Threshold Vdot Xlogy ";

static void grad_tied(Node *n, Tensor **g, Tensor **gi) {
  (void)g;
  for (int i = 0; i < n->n_edges; i++) {
    if (!needs(n, i)) continue;
    const OutputMeta *m = &n->edges[i].node->outputs[n->edges[i].input_nr];
    gi[i] = WITH_FORM(m->form, tensor_zeros(m->ndim, output_sizes(m), output_dtype(m)));
  }
}
static const NodeType Tied = {"AddBackward0", grad_tied, "", false, NULL, NULL};

/* An input that is added stands by itself: the first of addmm and its like, the bias of
 * convolutions and norms. */
static bool is_tied(const Node *n) {
  char text[84];
  snprintf(text, sizeof text, " %s ", node_stem(n));
  bool adds = strncmp(text, " Add", 4) == 0 || strncmp(text, " Badd", 5) == 0,
       biased = text[1] == 'N' || strncmp(text, " Conv", 5) == 0;
  bool others = false;
  for (int i = 0; i < n->n_edges; i++)
    others |= n->tangents->at[i] && i != (adds ? 0 : biased ? 2 : -1);
  return others && strstr(tied, text);
}

/* The gradient of n's input `input` for g at output `output_nr`. */
static Tensor *gradient_of(Node *n, int input, int output_nr, Tensor *g) {
  int outputs = output_nr + 1 > n->n_outputs ? output_nr + 1 : n->n_outputs;
  Tensor **all = scratch_array(outputs + n->n_edges, sizeof *all);
  if (!all || blocked(g)) return NULL;
  memset(all, 0, (size_t)(outputs + n->n_edges) * sizeof *all);
  all[output_nr] = g;
  forward_product = n;
  input_wanted = input;
  node_apply(n, all, all + outputs);
  forward_product = NULL;
  return failed() ? NULL : all[outputs + input];
}

/* The part that output `output_nr` of n moves along `way`, 1 or i, if input `input` moves along t:
 * the real part of conj(J^T way) t. */
static Tensor *part_along(Node *n, int input, int output_nr, Tensor *y, complex_f64 way,
                          Tensor *t) {
  Tensor *g = t_add(t_zeros_like(y), dtype_is_complex(tensor_dtype(y))
                                         ? tensor_wrapped_c(way)
                                         : tensor_wrapped_f(__real__ way));
  return t_real(t_mul(t_conj(gradient_of(n, input, output_nr, g)), t));
}

/* J t of an element-wise op, which may sum its elements. J is diagonal, so it is its own transpose;
 * the gradient function of an analytic function conjugates it. The tangent masks what the gradient
 * masks. */
static Tensor *each_element(Node *n, int input, int output_nr, Tensor *y, Tensor *t) {
  bool is_complex = dtype_is_complex(tensor_dtype(y));
  if (n->type->each & NODE_PARTS) {
    Tensor *re = part_along(n, input, output_nr, y, complex_of(1.0, 0.0), t);
    return is_complex ? t_complex(re, part_along(n, input, output_nr, y, complex_of(0.0, 1.0), t))
                      : re;
  }
  bool sums = t->ndim > y->ndim;
  if (!sums && !tensor_same_shape(t, y)) t = t_expand(t, y->ndim, y->sizes);
  t = t_to(t, tensor_dtype(y));
  Tensor *jt = gradient_of(n, input, output_nr, is_complex ? t_conj_physical(t) : t);
  /* a mean of nothing is no number, nor is its slope */
  if (jt && sums) jt = t->numel ? t_sum_to(jt, y->ndim, y->sizes) : t_mul_f(y, 0);
  return jt && is_complex ? t_conj_physical(jt) : jt;
}

static Tensor *sum_over_inputs(Node *n, int output_nr, Tensor *y) {
  Tensor *sum = NULL;
  for (int i = 0; i < n->n_edges && !failed(); i++) {
    Tensor *t = n->tangents->at[i], *jt = t ? each_element(n, i, output_nr, y, t) : NULL;
    if (jt) sum = sum ? t_add(sum, jt) : jt;
  }
  if (sum && sum->dtype != y->dtype) sum = t_to(sum, tensor_dtype(y));
  if (failed()) refuse_tangent();
  return sum;
}

/* J t of an op that has a function for it. */
static Tensor *tangent_by_rule(Node *n, int output_nr, Tensor *y) {
  Tensor *jt = node_tangent(n, n->tangents->at, output_nr, y);
  return jt && jt->dtype != y->dtype ? t_to(jt, tensor_dtype(y)) : jt;
}

/* J t, of the shape and type of y, which is output `output_nr` of n; NULL: zero. Leaves
 * recording on. */
static Tensor *product(Node *n, int output_nr, Tensor *y) {
  int outputs = output_nr + 1 > n->n_outputs ? output_nr + 1 : n->n_outputs;
  int cells = outputs + 3 * n->n_edges;
  Tensor **g = scratch_array(cells, sizeof *g), *u = t_zeros_like(y), *jt = NULL;
  if (!g || !u) return NULL;
  memset(g, 0, (size_t)cells * sizeof *g);
  Tensor **gi = g + outputs, **roots = gi + n->n_edges, **with = roots + n->n_edges;
  bool record = records(n);
  g[output_nr] = u;
  u->flags |= FLAG_REQUIRES_GRAD;
  uint64_t since = node_sequence();
  grad_mode = recording = true;
  if (!saved_hooks_push(0)) return NULL; /* these saves are used once, here */
  forward_product = n;
  input_wanted = -1;
  bool ok = node_apply(n, g, gi);
  forward_product = NULL;
  saved_hooks_pop();
  int count = ok ? pair(n, gi, roots, with) : 0;
  if (!failed() && count) walk_product(count, roots, with, record, since, u, &jt);
  if (failed()) refuse_tangent();
  return jt;
}

static bool goes_by_element(const Node *n, const Tensor *y) {
  return n->type->each & NODE_EACH && !n->type->tangent && !is_sparse(y);
}

/* J t: by n's rule, element by element, or by transposing its gradient. NULL: zero. */
static Tensor *tangent_product(Node *n, int output_nr, Tensor *y) {
  bool recorded = recording, each = goes_by_element(n, y);
  if (each || n->type->tangent) {
    recording = records(n);
    /* by ops where a host answers them */
    grad_mode = recording || watcher_answers || any_hosted(n->tangents, y);
  }
  Tensor *jt = n->type->tangent ? tangent_by_rule(n, output_nr, y)
               : each           ? sum_over_inputs(n, output_nr, y)
                                : product(n, output_nr, y);
  grad_mode = recording = recorded;
  return jt;
}

/* ------------------------------------------------------------ batches of tangents */

/* The batch of the tangents of a node's inputs. */
typedef struct {
  uint32_t levels;
  int n; /* the number of levels */
  int64_t sizes[MAX_LEVELS + MAX_DIM], total;
} Slices;

static uint32_t levels_of_all(const Tangents *t) {
  uint32_t levels = 0;
  for (int i = 0; i < t->n; i++) levels |= levels_of(t->at[i]);
  return levels;
}

/* Fills s, with the sizes of y behind those of the batch. */
static void measure(Slices *s, uint32_t levels, const Tangents *t, const Tensor *y) {
  s->levels = levels;
  s->n = level_count(levels);
  s->total = 1;
  tangent_sizes_at(levels, t->n, t->at, s->sizes);
  for (int k = 0; k < s->n; k++) s->total *= s->sizes[k];
  memcpy(s->sizes + s->n, y->sizes, y->ndim * sizeof *s->sizes);
}

/* J t for all slices t at once. J is diagonal, so the gradient function broadcasts the saved
 * tensors. NULL: zero. */
static Tensor *all_at_once(Node *n, int output_nr, Tensor *y, const Slices *s) {
  Tensor *sum = NULL;
  grad_mode = true; /* by ops, since loops broadcast nothing */
  for (int i = 0; i < n->n_edges && !failed(); i++) {
    Tensor *t = tangent_cast(n->tangents->at[i], tensor_dtype(y));
    if (!t) continue;
    Tensor *v = t_expand(tangent_slices_aligned(t, s->levels, y->ndim), s->n + y->ndim, s->sizes);
    bool is_complex = dtype_is_complex(tensor_dtype(y));
    Tensor *jt = gradient_of(n, i, output_nr, is_complex ? t_conj_physical(v) : v);
    if (jt && is_complex) jt = t_conj_physical(jt);
    if (jt) sum = sum ? t_add(sum, jt) : jt;
  }
  if (failed()) refuse_tangent();
  return tangent_cast(sum, tensor_dtype(y));
}

static bool at_once(const Node *n, const Tensor *y) {
  if (!goes_by_element(n, y) || n->type->each & NODE_PARTS) return false;
  for (int i = 0; i < n->n_edges; i++)
    if (n->tangents->at[i] && n->tangents->at[i]->ndim > y->ndim) return false;
  return true;
}

/* J t for one slice t after the other, stacked. NULL: zero. */
static Tensor *one_by_one(Node *n, int output_nr, Tensor *y, const Slices *s) {
  Tangents *t = n->tangents;
  Tensor **all = scratch_array(t->n + 1, sizeof *all),
         ***each = scratch_array(t->n + 1, sizeof *each),
         **parts = scratch_array(s->total + 1, sizeof *parts);
  if (!all || !each || !parts) return NULL;
  int64_t count = 0;
  for (int i = 0; i < t->n; i++) {
    all[i] = t->at[i];
    each[i] = NULL;
    if (!levels_of(all[i])) continue;
    Tensor *v = tangent_slices_at(all[i], s->levels, s->sizes);
    each[i] = t_unbind(s->n > 1 ? t_flatten(v, 0, s->n - 1) : v, 0, &count);
  }
  bool any = false;
  for (int64_t k = 0; k < s->total && !failed(); k++) {
    for (int i = 0; i < t->n; i++)
      if (each[i]) t->at[i] = each[i][k];
    parts[k] = tangent_product(n, output_nr, y);
    any = any || parts[k];
  }
  memcpy(t->at, all, (size_t)t->n * sizeof *all);
  if (failed() || !any) return NULL;
  for (int64_t k = 0; k < s->total; k++)
    if (!parts[k]) parts[k] = t_zeros_like(y);
  Tensor *jt = t_stack((Tensors){(int32_t)s->total, parts}, 0);
  return s->n > 1 ? t_view(jt, s->n + y->ndim, s->sizes) : jt;
}

/* J t for batched tangents: a batched tensor whose storage nobody else has. */
static Tensor *batched_product(Node *n, int output_nr, Tensor *y, uint32_t levels) {
  Slices s;
  measure(&s, levels, n->tangents, y);
  grad_mode = recording = records(n);
  bool once = at_once(n, y);
  Tensor *jt = once ? all_at_once(n, output_nr, y, &s) : one_by_one(n, output_nr, y, &s);
  if (jt && once && jt->storage->refs > 1) jt = t_clone(jt);
  return batched_tensor(jt, levels);
}

/* NULL: zero. */
static Tensor *output_tangent(Node *n, int output_nr, Tensor *y) {
  if (!by_ops && any_hosted(n->tangents, y)) /* a step of an op that the host has answered */
    return fail(ERR_NOT_IMPLEMENTED,
                "pygrad: in forward mode, %s is a step that __torch_dispatch__ is not asked for, "
                "and a tensor whose class has it shows no elements",
                node_stem(n));
  bool recorded = recording;
  Modes was = suspend_modes();
  int32_t mark = pool_mark();
  size_t scratch = scratch_mark();
  uint32_t levels = levels_of_all(n->tangents);
  Tensor *jt = levels ? batched_product(n, output_nr, y, levels) : tangent_product(n, output_nr, y);
  grad_mode = recording = recorded;
  if (!failed() && jt && !levels) jt = owned_tangent(jt, n->tangents);
  if (jt && !failed() && recorded && !n->unrecorded && !tensor_requires_grad(all_slices(jt)) &&
      is_tied(n))
    set_history(all_slices(jt), node_beside(&Tied, n));
  scratch_release(scratch);
  pool_release(mark, jt);
  restore_modes(was);
  return jt;
}

static void share(Tensor *from, Tensor *to);

/* Computes a tangent that waited, and gives it to the outputs that the node saved. */
static void settle(Dual *d) {
  Node *n = d->waits_for;
  Tensor *y = d->owner;
  bool was_recording = recording;
  recording = d->recorded;
  tensor_retain(y);
  node_retain(n);
  if (!d->tangent && n->tangents && !failed()) {
    Tensor *jt = output_tangent(n, d->output_nr, y);
    Modes was = suspend_modes();
    if (!jt) jt = t_zeros_like(y);
    bool as_shown = jt && sizes_equal(jt->ndim, jt->strides, y->ndim, y->strides);
    put_tangent(y, as_shown || !jt ? jt : tangent_laid_out_as(y, jt)); /* of one element too */
    restore_modes(was);
  }
  stop_waiting(d);
  if (!n->tangents) saves_done(n);
  for (int i = 0; i < n->n_saves && !failed(); i++)
    if (n->saves[i].is_output && n->saves[i].value && n->saves[i].output_nr == d->output_nr)
      share(y, n->saves[i].value);
  recording = was_recording;
  node_release(n);
  tensor_release(y);
}

static void settle_all(void) {
  while (waiting.next != &waiting) settle(waiting.next);
}

/* ------------------------------------------------------------ asking */

static Tensor *tangent_of(Tensor *t) {
  if (!forward_on || !t || !t->meta) return NULL;
  Dual *d = dual_of(t);
  if (d && d->waits_for) settle(d);
  if (d) return d->tangent;
  Tensor *whole = tangent_of(t->meta->base); /* which has no base itself */
  if (!whole || failed()) return NULL;
  Modes was = suspend_modes();
  put_tangent(t, tangent_same_view(whole, t->meta->base, t));
  restore_modes(was);
  return dual_of(t) ? dual_of(t)->tangent : NULL;
}

Tensor *forward_noted(Tensor *t) {
  Tensor *tangent = tangent_of(t);
  if (tangent) dual_of(t)->version = tensor_version(tangent);
  return tangent;
}

bool forward_was_written(const Tensor *t) {
  return tensor_version(dual_of(t)->tangent) != dual_of(t)->version;
}

static bool attach(Node *n, int count, Tensor *const *inputs) {
  Tangents *all = NULL;
  size_t bytes = sizeof *all + (size_t)count * sizeof *all->at;
  for (int i = 0; i < count; i++) {
    Tensor *t = tangent_of(inputs[i]);
    if (!t) continue;
    if (!all) {
      all = mem_alloc_zero(bytes);
      if (!all) return false;
      all->n = count;
    }
    tensor_retain(all->at[i] = t);
  }
  n->tangents = all;
  return all != NULL;
}

static bool feeds(const Node *n, int input) {
  if (n == forward_product && input_wanted >= 0 && input != input_wanted) return false;
  return n->tangents->at[input] || (n != forward_product && n->edges[input].node);
}

static bool fed_by(const Node *n, int count, Tensor *const *given) {
  const Tangents *t = n->tangents;
  bool all = true;
  for (int i = 0; i < t->n; i++) {
    bool any = !t->at[i];
    for (int k = 0; !any && k < count; k++) any = tangent_of(given[k]) == t->at[i];
    all = all && any;
  }
  return all;
}

static Node *awaited_node(const Tensor *y) {
  const Dual *d = dual_of(y);
  return d ? d->waits_for : NULL;
}

/* Makes y wait for n. A view keeps the tangent that it got when it was made; its node is held for
 * the outputs that follow. */
static void output(Tensor *y, Node *n, int output_nr) {
  Dual *d = dual_new(y);
  if (!d) return;
  if (!tensor_is_view(y)) keep_tangent(d, NULL);
  stop_waiting(d);
  node_retain(n);
  n->tangents->users++;
  d->waits_for = n;
  d->output_nr = output_nr;
  d->recorded = recording;
  unlink_dual(d);
  link_dual(&waiting, d);
}

static void move(Tensor *to, Tensor *from);

/* Puts `to` in the place of `from`, whose tangent may still wait. */
static void replace(Tensor *to, Tensor *from) {
  Node *n = awaited_node(from);
  if (!n) {
    move(to, from);
    return;
  }
  output(to, n, dual_of(from)->output_nr);
  if (!dual_of(to)) return;
  dual_of(to)->recorded = dual_of(from)->recorded;
  forget(from);
}

/* ------------------------------------------------------------ views, copies */

static void view(Tensor *self, Tensor *v) {
  if (!forward_on) return;
  Tensor *whole = tangent_of(self);
  Modes was = suspend_modes();
  if (whole) put_tangent(v, tangent_same_view(whole, self, v));
  else if (dual_of(self)) dual_new(v);
  restore_modes(was);
}

static void share(Tensor *from, Tensor *to) {
  Tensor *t = tangent_of(from);
  if (!t || blocked(to)) return;
  Modes was = suspend_modes();
  bool recorded = recording;
  grad_mode = recording = true;
  Tensor *kept = tangent_frozen_copy(
      tangent_cast(t, tensor_dtype(to))); /* `to` may be a cast of `from`, */
  Dual *d = kept ? dual_new(to) : NULL;
  if (d && tensor_same_shape(kept, to)) put_tangent(to, kept);
  else if (d) keep_tangent(d, kept); /* or have another shape */
  grad_mode = recording = recorded;
  restore_modes(was);
}

static void move(Tensor *to, Tensor *from) {
  Tensor *t = tangent_of(from);
  Dual *d = t ? dual_new(to) : NULL;
  if (d) keep_tangent(d, t);
}

/* ------------------------------------------------------------ in place */

/* Gives a view its first tangent, as a view of a new tangent of its base, which other views share.
 * A view with its base's geometry shares the base's tangent itself. */
static void write_view(Tensor *self, Tensor *tangent) {
  Tensor *base = self->meta->base;
  if (self->dtype == base->dtype && tangent_lies_as(tangent, self) &&
      tangent_lies_as(tangent, base)) {
    put_tangent(base, tangent);
    put_tangent(self, tangent);
    return;
  }
  put_tangent(base, tangent_zeros_as(base, tensor_dtype(base), tangent));
  Tensor *part = dual_of(base) ? tangent_same_view(dual_of(base)->tangent, base, self) : NULL;
  put_tangent(self, tangent_write(part, tangent));
}

static bool shares_tangent(const Dual *d, const Tensor *tangent) {
  return d->tangent && d->tangent->storage == tangent->storage;
}

/* Gives the tangent of t, which is not batched, the levels of another tangent. Tangents that share
 * its storage get them too. */
static void add_levels(Tensor *t, Tensor *like) {
  Tensor *old = dual_of(t)->tangent, *root = tensor_is_view(old) ? old->meta->base : old;
  Tensor *grown = tangent_write(tangent_zeros_as(root, tensor_dtype(root), like), root);
  tensor_retain(old);
  for (Dual *d = known.next; d != &known; d = d->next) {
    Tensor *tangent = shares_tangent(d, old) ? tangent_same_view(grown, root, d->tangent) : NULL;
    if (tangent) keep_tangent(d, tangent);
  }
  tensor_release(old);
}

/* Gives the tangent of t, which is batched already, more levels. */
static void add_more_levels(Tensor *t, Tensor *like) {
  Dual *own = dual_of(t);
  for (Dual *d = known.next; d != &known; d = d->next)
    if (d != own && shares_tangent(d, own->tangent))
      fail(ERR_NOT_IMPLEMENTED, "vmap: the tangent of a view or its base cannot be batched at one "
                                "more level by a write in place");
  if (!failed()) put_tangent(t, tangent_batched_as(own->tangent, like));
}

static void write_tangent(Tensor *self, Tensor *tangent) {
  if (!forward_on || failed() || !dtype_is_inexact(tensor_dtype(self))) return;
  Tensor *old = tangent_of(self);
  if (!old && !tangent) return;
  if (old) settle_all(); /* waiting tangents may depend on the old one */
  Modes was = suspend_modes();
  tangent = tangent_cast(tangent, tensor_dtype(self));
  if (old && levels_of(tangent) & ~levels_of(old))
    levels_of(old) ? add_more_levels(self, tangent) : add_levels(self, tangent);
  if (old) tangent_write(dual_of(self)->tangent, tangent);
  else if (tangent && tensor_is_view(self) && !dual_of(self)) write_view(self, tangent);
  else put_tangent(self, tangent);
  restore_modes(was);
}

static void written_by(Tensor *self, Node *n, int output_nr) {
  Tensor *jt = failed() ? NULL : output_tangent(n, output_nr, self);
  detach(n);
  write_tangent(self, jt || failed() || tangent_of(self) ? jt : t_zeros_like(self));
}

/* ------------------------------------------------------------ duals */

static bool check_tangent(const Tensor *t, Tensor *tangent) {
  const Dual *own = dual_of(all_slices(tangent));
  if (own && own->tangent && forward_on)
    fail(ERR_RUNTIME, "Setting a forward grad that itself has a forward gradient at the same "
                      "level0 is not supported.");
  else if (!tensor_same_shape(t, tangent))
    fail(ERR_RUNTIME,
         "Trying to set a forward gradient that has a different size than that of the original "
         "Tensor, this is not supported. Tensor is of size %s while the given forward gradient is "
         "of size %s.",
         shape_text(t), shape_text(tangent));
  return !failed();
}

/* Casts the tangent of a complex tensor to complex, so that views read the two alike. */
static Tensor *as_complex_as(const Tensor *t, Tensor *tangent) {
  DType d = tensor_dtype(tangent);
  return dtype_is_complex(tensor_dtype(t)) && !dtype_is_complex(d)
             ? tangent_cast(tangent, dtype_complex(d))
             : tangent;
}

void forward_set(Tensor *t, Tensor *tangent) {
  if (!forward_on || !tangent || !check_tangent(t, tangent)) return;
  Modes was = suspend_modes();
  put_tangent(t, as_complex_as(t, tangent));
  restore_modes(was);
}

static bool check_float(const char *name, const Tensor *t) {
  if (t && !dtype_is_inexact(tensor_dtype(t)))
    fail(ERR_VALUE, "Expected %s to be floating point or complex, but got: torch.%s", name,
         dtype_info[t->dtype].name);
  return !failed();
}

Tensor *forward_make_dual(Tensor *primal, Tensor *tangent, int64_t level) {
  if (!check_float("primal", primal) || !check_float("tangent", tangent)) return NULL;
  if (level < 0)
    return fail(ERR_RUNTIME, "Trying to create a dual Tensor for forward AD but no level exists, "
                             "make sure to enter_dual_level() first.");
  if (level != 0) return fail(ERR_RUNTIME, "Invalid level given to _make_dual");
  if (!level_entered)
    return fail(ERR_RUNTIME, "Trying to access a forward AD level with an invalid index. This "
                             "index was either not created or is already deleted.");
  if (tangent_of(primal))
    return fail(ERR_RUNTIME, "Making a dual Tensor based on a Tensor that already has a forward "
                             "gradient at the same level 0 is not supported.");
  tangent_of(all_slices(tangent));
  if (failed() || !check_tangent(primal, tangent)) return NULL;
  Modes was = suspend_modes();
  Tensor *v = primal->form & FORM_HOSTED ? t_alias(primal)
                                         : t_view(primal, primal->ndim, primal->sizes);
  if (v) put_tangent(v, as_complex_as(v, tangent));
  restore_modes(was);
  return v;
}

static void grad_identity(Node *n, Tensor **g, Tensor **gi) {
  (void)n;
  gi[0] = g[0];
}
static const NodeType Identity = {"Identity", grad_identity, "", false, NULL, NULL};

Tensor *forward_primal(Tensor *t, int64_t level) {
  if (level < 0) return t;
  if (level != 0 && tangent_of(t)) return fail(ERR_RUNTIME, "Invalid level given to _fw_primal");
  Modes was = suspend_modes();
  Node *n = node_new(&Identity, 0, 0, t, NULL);
  Tensor *v = record_view(t, tensor_alias(t, t->ndim, t->sizes, t->strides, t->offset), n,
                          VIEW_PLAIN);
  restore_modes(was);
  if (v && level_entered) dual_new(v);
  return v;
}

int64_t forward_enter(void) {
  if (level_entered) fail(ERR_RUNTIME, "Nested forward mode AD is not supported at the moment");
  static const Forward functions = {tangent_of,   attach, detach,     output,     feeds,
                                    awaited_node, view,   share,      written_by, write_tangent,
                                    move,         forget, settle_all, replace,    fed_by};
  forward_mode = &functions;
  letting_go.of_dual = forget;
  level_entered = true;
  host_note_levels(1);
  return 0;
}

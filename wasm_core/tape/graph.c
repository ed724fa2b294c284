/* Recording: nodes, edges, saved values, histories; see graph.h. The walk back is walk.c. */
#include "tape/graph.h"

#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "ops/op.h"
#include "tape/anomaly.h"
#include "tape/forward.h"
#include "tape/host.h"
#include "walk/hooks.h"

bool grad_mode = true, recording = true, inference_mode = false, any_layout = false,
     saved_check_mode = false;

static uint64_t next_sequence;
static int64_t live_nodes;
int64_t node_live_count(void) { return live_nodes; }
uint64_t node_sequence(void) { return next_sequence; }

/* ------------------------------------------------------------ life of a node */

static size_t node_bytes(int n_edges, int n_saves, int n_numbers) {
  return sizeof(Node) + (size_t)n_edges * sizeof(Edge) + (size_t)n_saves * sizeof(Saved) +
         (size_t)n_numbers * sizeof(Number);
}

static bool countable(int n, const char *what) {
  if (n <= UINT16_MAX) return true;
  fail(ERR_NOT_IMPLEMENTED, "pygrad: a node of the graph has at most %d %s, not %d", UINT16_MAX,
       what, n);
  return false;
}

static Node *node_bare(const NodeType *type, int n_edges, int n_saves, int n_numbers) {
  if (!countable(n_edges, "inputs") || !countable(n_saves, "saved tensors") ||
      !countable(n_numbers, "numbers"))
    return NULL;
  Node *n = mem_alloc_zero(node_bytes(n_edges, n_saves, n_numbers));
  if (!n) return NULL;
  n->refs = 1;
  n->magic = NODE_MAGIC;
  n->type = type;
  n->sequence = next_sequence++;
  n->numbers = (Number *)(void *)(n + 1);
  n->edges = (Edge *)(void *)(n->numbers + n_numbers);
  n->saves = (Saved *)(void *)(n->edges + n_edges);
  n->n_edges = (uint16_t)n_edges;
  n->n_saves = (uint16_t)n_saves;
  n->n_numbers = (uint16_t)n_numbers;
  n->outputs = &n->output;
  live_nodes++;
  if (anomaly_mode) anomaly_birth(n);
  return n;
}

const char *node_short_name(const Node *n) {
  const char *last = strrchr(n->type->name, ':');
  return last ? last + 1 : n->type->name;
}

const char *node_stem(const Node *n) {
  static char text[80];
  const char *name = n->type->name, *end = NULL;
  for (const char *at = strstr(name, "Backward"); at; at = strstr(at + 1, "Backward")) end = at;
  bool last = end && end[8 + strspn(end + 8, "0123456789")] == 0;
  snprintf(text, sizeof text, "%.*s%s", (int)(last ? (size_t)(end - name) : strlen(name)), name,
           last && strcmp(end + 8, "0") != 0 ? end + 8 : "");
  return text;
}

void node_retain(Node *n) {
  if (n) n->refs++;
}

static void outputs_release(Node *n) {
  for (int i = 0; i < n->n_outputs; i++)
    if (n->outputs[i].ndim > 4) mem_free(n->outputs[i].far, n->outputs[i].ndim * sizeof(int64_t));
  if (n->outputs != &n->output) mem_free(n->outputs, n->n_outputs * sizeof(OutputMeta));
}

static Node *dead_nodes;
static bool burying;

static void bury(Node *n) {
  Tensor *variable = n->variable;
  if (variable && variable->meta && variable->meta->accumulator == n)
    variable->meta->accumulator = NULL;
  while (n->hooks) {
    NodeHook *h = n->hooks;
    n->hooks = h->next;
    if (h->retained && h->retained->meta) h->retained->meta->retains_grad = false;
    if (h->id) host_drop(h->id);
    mem_free(h, sizeof *h);
  }
  host_drop(n->metadata);
  outputs_release(n);
  anomaly_forget(n);
  forward_detach(n);
  for (int i = 0; i < n->n_saves; i++) saved_release(&n->saves[i]);
  if (n->kind == NODE_HOST && n->n_saves) { /* not in the node's block: node_make_saves */
    mem_free(n->saves, n->n_saves * sizeof *n->saves);
    n->n_saves = 0;
  }
  for (int i = 0; i < n->n_edges; i++) node_release(n->edges[i].node);
  node_release(n->inner);
  n->magic = 0;
  live_nodes--;
  mem_free(n, node_bytes(n->n_edges, n->n_saves, n->n_numbers));
  tensor_release(variable);
}

/* Graphs are as deep as the user made them, so the dead queue up instead of recursing. */
void node_release(Node *n) {
  if (!n) return;
  if (--n->refs > 0) {
    /* The host's object holds the last reference: the engine no longer holds the object. */
    if (n->kind == NODE_HOST && n->refs == 1) host_drop(n->host);
    return;
  }
  n->state = dead_nodes;
  dead_nodes = n;
  if (burying) return;
  burying = true;
  while (dead_nodes) {
    Node *d = dead_nodes;
    dead_nodes = d->state;
    bury(d);
  }
  burying = false;
}

Tensor *renamed(Tensor *y, const char *name) { return renamed_with(y, name, NULL); }

Tensor *renamed_with(Tensor *y, const char *name, const char *fields) {
  static NodeType types[32];
  Node *n = y ? y->grad_fn : NULL;
  for (size_t i = 0; n && i < sizeof types / sizeof *types; i++)
    if (!types[i].name || (strcmp(types[i].name, name) == 0 && types[i].grad == n->type->grad)) {
      types[i] = (NodeType){name, n->type->grad, fields ? fields : n->type->fields, n->type->each,
                            NULL};
      n->type = &types[i];
      break;
    }
  return y;
}

void node_drop(Node *n) { node_release(n); }

/* ------------------------------------------------------------ recording */

Node *node_new_list(const NodeType *type, int n_saves, int n_numbers, int n,
                    Tensor *const *inputs) {
  if (!grad_mode || failed()) return NULL;
  bool any = false;
  for (int i = 0; recording && i < n; i++)
    any = any || (inputs[i] && tensor_requires_grad(inputs[i]));
  if (!any && !forward_on) return NULL;
  Node *node = node_bare(type, n, n_saves, n_numbers);
  if (!node) return NULL;
  for (int i = 0; any && i < n; i++)
    if (inputs[i]) node->edges[i] = tensor_edge(inputs[i]);
  node->unrecorded = !any;
  if (!forward_on || forward_attach(node, n, inputs) || any) return node;
  node_drop(node);
  return NULL;
}

Node *node_new_for(const NodeType *type, int n_saves, int n_numbers, Tensor *const *inputs) {
  if (!grad_mode) return NULL;
  int n = 0;
  while (inputs[n]) n++;
  return node_new_list(type, n_saves, n_numbers, n, inputs);
}

Node *node_alone(const NodeType *type, int n_saves) { return node_bare(type, 0, n_saves, 0); }

Node *node_beside(const NodeType *type, const Node *n) {
  Node *made = node_bare(type, n->n_edges, 0, 0);
  for (int i = 0; made && i < n->n_edges; i++) {
    made->edges[i] = n->edges[i];
    node_retain(n->edges[i].node);
  }
  return made;
}

bool node_make_saves(Node *n, int n_saves) {
  if (!n_saves) return true;
  if (!countable(n_saves, "saved tensors")) return false;
  n->saves = mem_alloc_zero((size_t)n_saves * sizeof *n->saves);
  if (n->saves) n->n_saves = (uint16_t)n_saves;
  return n->saves != NULL;
}

static bool describe_output(Node *n, int k, const Tensor *y) {
  OutputMeta *m = &n->outputs[k];
  if (m->ndim > 4) mem_free(m->far, m->ndim * sizeof(int64_t));
  m->ndim = 0;
  m->dtype = y->dtype;
  m->defined = m->described = true;
  if (y->ndim > 4) {
    m->far = mem_alloc(y->ndim * sizeof(int64_t));
    if (!m->far) return false;
  }
  m->ndim = y->ndim;
  memcpy(y->ndim > 4 ? m->far : m->near, y->sizes, y->ndim * sizeof(int64_t));
  return true;
}

static bool grow_outputs(Node *n, int count) {
  if (count <= (n->n_outputs ? n->n_outputs : 1)) {
    if (n->n_outputs < count) n->n_outputs = (uint16_t)count;
    return true;
  }
  if (!countable(count, "outputs")) return false;
  OutputMeta *grown = mem_alloc_zero((size_t)count * sizeof *grown);
  if (!grown) return false;
  memcpy(grown, n->outputs, n->n_outputs * sizeof *grown);
  if (n->outputs != &n->output) mem_free(n->outputs, n->n_outputs * sizeof *grown);
  n->outputs = grown;
  n->n_outputs = (uint16_t)count;
  return true;
}

bool node_describe(Node *n, int k, const Tensor *y, bool defined) {
  if (!grow_outputs(n, k + 1)) return false;
  if (!y) return true;
  bool ok = describe_output(n, k, y);
  n->outputs[k].defined = defined;
  return ok;
}

/* Each output holds a reference of its own; the caller's is consumed by output 0. */
Tensor *set_history_at(Tensor *y, Node *n, int output_nr) {
  if (!n) return y;
  if (n->unpacked_inputs) saves_pack(n);
  bool fits = y && !failed() && dtype_is_float((DType)y->dtype) && grow_outputs(n, output_nr + 1);
  if (fits) fits = describe_output(n, output_nr, y);
  if (!fits) {
    if (output_nr == 0) node_drop(n);
    return failed() ? NULL : y;
  }
  if (n->tangents) forward_output(y, n, output_nr);
  if (n->unrecorded) {
    if (output_nr == 0) node_release(n);
    return y;
  }
  if (output_nr > 0) node_retain(n);
  node_release(y->grad_fn);
  y->grad_fn = n;
  y->output_nr = output_nr;
  return y;
}

Tensor *set_history(Tensor *y, Node *n) { return set_history_at(y, n, 0); }

void set_histories(Tensor **y, Node *n, int count) {
  if (failed()) node_drop(n);
  for (int i = 0; i < count; i++) y[i] = failed() ? NULL : set_history_at(y[i], n, i);
}

/* ------------------------------------------------------------ edges */

/* walk.c accumulates: this node has no inputs. */
static void grad_accumulate(Node *n, Tensor **g, Tensor **gi) {
  (void)n;
  (void)g;
  gi[0] = NULL;
}
const NodeType AccumulateGrad = {"torch::autograd::AccumulateGrad", grad_accumulate, "", false,
                                 NULL};

Node *tensor_accumulator(Tensor *t) {
  Meta *m = tensor_meta(t);
  if (!m) return NULL;
  if (m->accumulator) {
    node_retain(m->accumulator);
    return m->accumulator;
  }
  Node *n = node_bare(&AccumulateGrad, 0, 0, 0);
  if (!n) return NULL;
  n->kind = NODE_ACCUMULATE;
  next_sequence--;          /* it takes none */
  n->sequence = UINT64_MAX; /* gradients are accumulated as soon as they are complete */
  n->n_outputs = 1;
  if (!describe_output(n, 0, t)) {
    node_release(n);
    return NULL;
  }
  tensor_retain(t);
  n->outputs[0].dtype = (uint8_t)tensor_grad_dtype(t);
  n->variable = t;
  m->accumulator = n;
  return n;
}

Edge tensor_edge(Tensor *t) {
  Node *fn = tensor_grad_fn(t);
  if (fn) {
    node_retain(fn);
    return (Edge){fn, t->output_nr};
  }
  if (t->flags & FLAG_REQUIRES_GRAD) return (Edge){tensor_accumulator(t), 0};
  return (Edge){NULL, 0};
}

bool tensor_tracked(const Tensor *t) {
  return grad_mode && ((recording && tensor_requires_grad(t)) ||
                       (forward_on && t->meta && (t->meta->dual || t->meta->base)));
}

bool tensor_is_leaf(const Tensor *t) { return !t->grad_fn; }

bool tensor_is_view(const Tensor *t) { return t->meta && t->meta->base; }

/* ------------------------------------------------------------ views */

Tensor *make_view(Tensor *self, Tensor *v, Node *n, ViewOrigin origin) {
  if (!v || failed()) {
    node_drop(n);
    return NULL;
  }
  if (self->flags & FLAG_INFERENCE) { /* neither versions nor views are tracked */
    node_drop(n);
    return v;
  }
  Meta *m = tensor_meta(v), *from = self->meta;
  if (!m) {
    node_drop(n);
    return NULL;
  }
  tensor_share_version(v, self);
  bool of_view = from && from->base;
  m->base = of_view ? from->base : self;
  tensor_retain(m->base);
  m->view_version = tensor_version(v);
  if (!(grad_mode && recording)) origin = inference_mode ? VIEW_INFERENCE : VIEW_NO_GRAD;
  if (origin == VIEW_PLAIN && of_view) origin = from->view_origin;
  m->view_origin = (uint8_t)origin;
  if (forward_on && grad_mode) forward_view(self, v);
  return set_history(v, n);
}

Tensor *t_detach(Tensor *t) {
  if (failed() || !t) return NULL;
  Tensor *d = tensor_alias(t, t->ndim, t->sizes, t->strides, t->offset);
  if (d) tensor_share_version(d, t);
  return d;
}

/* The geometry of a view inside its base, as numbers of a node: base rank, sizes, strides, view
 * rank, sizes, strides, offset of the view from the base's first element, whether an inner
 * node's first input is the view. */
static int geometry_count(const Tensor *base, const Tensor *v) {
  return 4 + 2 * (base->ndim + v->ndim);
}

static void geometry_store(Number *at, const Tensor *base, const Tensor *v, bool inner_first) {
  const Tensor *each[2] = {base, v};
  for (int k = 0; k < 2; k++) {
    (at++)->i = each[k]->ndim;
    for (int i = 0; i < each[k]->ndim; i++) (at++)->i = each[k]->sizes[i];
    for (int i = 0; i < each[k]->ndim; i++) (at++)->i = each[k]->strides[i];
  }
  (at++)->i = v->offset - base->offset;
  at->i = inner_first;
}

typedef struct {
  int base_ndim, ndim;
  const int64_t *base_sizes, *base_strides, *sizes, *strides;
  int64_t offset;
  bool inner_first;
} Geometry;

static Geometry geometry_load(const Number *at) {
  Geometry geo;
  const int64_t *p = &at->i;
  geo.base_ndim = (int)p[0];
  geo.base_sizes = p + 1;
  geo.base_strides = geo.base_sizes + geo.base_ndim;
  p = geo.base_strides + geo.base_ndim;
  geo.ndim = (int)p[0];
  geo.sizes = p + 1;
  geo.strides = geo.sizes + geo.ndim;
  geo.offset = geo.strides[geo.ndim];
  geo.inner_first = geo.strides[geo.ndim + 1];
  return geo;
}

/* A tensor laid out as the base, zero everywhere. */
static Tensor *base_like(const Geometry *geo, DType dtype) {
  Tensor *z = tensor_empty_strided(geo->base_ndim, geo->base_sizes, geo->base_strides, dtype);
  if (z) memset(z->storage->bytes->data, 0, (size_t)z->storage->bytes->n_bytes);
  return z;
}

static Tensor *slice_of(const Geometry *geo, Tensor *base) {
  return t_as_strided(base, geo->ndim, geo->sizes, geo->strides, geo->offset);
}

/* y = view of base, whose base was since modified in place: the gradient of y added to zeros, as
 * y may be expanded. */
static void grad_as_strided_view(Node *n, Tensor **g, Tensor **gi) {
  Geometry geo = geometry_load(n->numbers);
  Ints sizes = {geo.ndim, geo.sizes}, strides = {geo.ndim, geo.strides};
  gi[0] = t_spread_strided(g[0], sizes, strides, geo.offset, (Ints){geo.base_ndim, geo.base_sizes},
                           (Ints){geo.base_ndim, geo.base_strides});
}
const NodeType AsStridedView = {"AsStridedBackward0", grad_as_strided_view, "", false, NULL};

/* The op `inner` was done in place on a slice of the base. The base's old value gets the
 * gradient outside the slice; inside it, whatever inner says of its inputs. If its first input
 * is the slice's own old value (inner_first), that part is written into the slice and saves an
 * addition. */
static void grad_copy_slices(Node *n, Tensor **g, Tensor **gi) {
  if (n->freed) {
    saved_freed();
    return;
  }
  Geometry geo = geometry_load(n->numbers);
  Tensor *result = g[0] ? base_like(&geo, (DType)g[0]->dtype) : NULL;
  t_copy_(result, g[0], true);
  Tensor *slice = slice_of(&geo, result), *inner_gi[64] = {NULL};
  Tensor *inner_g[1] = {t_clone(slice)};
  if (failed() || !node_apply(n->inner, inner_g, inner_gi)) return;
  if (geo.inner_first && inner_gi[0]) t_copy_(slice, inner_gi[0], true);
  else t_fill_(slice, tensor_wrapped_f(0));
  gi[0] = result;
  /* it has nothing for the base */
  if (geo.inner_first && !inner_gi[0] && n->inner->kind == NODE_HOST) gi[0] = NULL;
  int shift = geo.inner_first ? 0 : 1;
  for (int i = 1 - shift; i < n->inner->n_edges; i++) gi[i + shift] = inner_gi[i];
}
const NodeType CopySlices = {"torch::autograd::CopySlices", grad_copy_slices, "", false, NULL};

/* Hooks that fill .grad of a tensor follow it to its new history. */
static void move_retain_hook(Tensor *t, Node *from) {
  if (!from || !t->meta || !t->meta->retains_grad) return;
  for (NodeHook **at = &from->hooks; *at; at = &(*at)->next)
    if ((*at)->retained == t) {
      NodeHook *h = *at;
      *at = h->next;
      mem_free(h, sizeof *h);
      break;
    }
  t->meta->retains_grad = false;
  tensor_retain_grad(t);
}

static const char *const origin_texts[] = {
    [VIEW_MULTI_OUTPUT] =
        "This view is the output of a function that returns multiple views. Such functions do not "
        "allow "
        "the output views to be modified inplace. You should replace the inplace operation by an "
        "out-of-place one.",
    [VIEW_IN_CUSTOM] = "This view was created inside a custom Function (or because an input was "
                       "returned as-is) and the "
                       "autograd logic to handle view+inplace would override the custom backward "
                       "associated with the "
                       "custom Function, leading to incorrect gradients. This behavior is "
                       "forbidden. You can fix this by "
                       "cloning the output of the custom Function."};

/* The error for writing to a view that allows no history, or (`by_others`) for having written to
 * what it is a view of. */
static void refuse_view(const Tensor *t, bool by_others) {
  const Node *fn = t->grad_fn;
  int origin = t->meta->view_origin;
  bool inference = origin == VIEW_INFERENCE, ambiguous = inference || origin == VIEW_NO_GRAD;
  const char *what = by_others ? "its base or another view of its base has been" : "is being";
  char view[120] = "A view was", subject[400];
  if (fn)
    snprintf(view, sizeof view, "Output %d of %s is a view", (int)t->output_nr, node_stem(fn));
  if (ambiguous || !fn)
    snprintf(subject, sizeof subject, "%s%s created in %s mode and %s modified inplace %s.", view,
             fn ? " of a view which was" : "", inference ? "inference" : "no_grad", what,
             inference ? "in normal mode" : "with grad mode enabled");
  else snprintf(subject, sizeof subject, "%s and %s modified inplace.", view, what);
  if (ambiguous)
    fail(ERR_RUNTIME,
         "%s Given that this use case is ambiguous and error-prone, it is forbidden. You can "
         "clarify your code by moving both "
         "the view and the inplace either both inside the %s block (if you don't want the inplace "
         "to be tracked) or both "
         "outside (if you want the inplace to be tracked).",
         subject, inference ? "inference_mode" : "no_grad");
  else fail(ERR_RUNTIME, "%s %s", subject, origin_texts[origin]);
}

/* A view takes its history from its base, as it is now. */
static Node *renew_view(Tensor *t) {
  Meta *m = t->meta;
  Node *n = node_bare(&AsStridedView, 1, 0, geometry_count(m->base, t));
  if (!n) return t->grad_fn;
  n->edges[0] = tensor_edge(m->base);
  geometry_store(n->numbers, m->base, t, false);
  m->view_version = tensor_version(t);
  n->n_outputs = 1;
  describe_output(n, 0, t);
  Node *old = t->grad_fn;
  t->grad_fn = n;
  t->output_nr = 0;
  move_retain_hook(t, old);
  node_release(old);
  return n;
}

Node *tensor_grad_fn(Tensor *t) {
  const Meta *m = t->meta;
  if (!m || !m->base) return t->grad_fn;
  if (!t->grad_fn && !tensor_requires_grad(m->base)) return NULL;
  if (m->view_version == tensor_version(t)) return t->grad_fn;
  if (m->view_origin == VIEW_PLAIN) return renew_view(t);
  refuse_view(t, true);
  return NULL;
}

/* ------------------------------------------------------------ in place */

bool check_rebase(Tensor *t) {
  Meta *m = t->meta;
  if (failed()) return false;
  if (!m || !m->base || m->view_origin == VIEW_PLAIN) return true;
  refuse_view(t, false);
  return false;
}

bool check_inference_write(const Tensor *t) {
  if (t->flags & FLAG_INFERENCE && !inference_mode) {
    fail(ERR_RUNTIME, "Inplace update to inference tensor outside InferenceMode is not allowed.You "
                      "can make a clone to get "
                      "a normal tensor before doing inplace update.See "
                      "https://github.com/pytorch/rfcs/pull/17 for more "
                      "details.");
    return false;
  }
  return true;
}

bool check_inplace(Tensor *t) {
  if (failed() || !t || !check_inference_write(t)) return false;
  if (!grad_mode || !recording || !tensor_requires_grad(t)) return true;
  if (!check_rebase(t)) return false;
  if (tensor_is_view(t) && tensor_is_leaf(t->meta->base)) {
    fail(ERR_RUNTIME,
         "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    return false;
  }
  if (tensor_is_leaf(t)) {
    fail(ERR_RUNTIME, "a leaf Variable that requires grad is being used in an in-place operation.");
    return false;
  }
  return true;
}

bool check_inplace_by(Tensor *x, const Tensor *value) {
  return check_inplace(x) &&
         (!value || !grad_mode || !recording || !tensor_requires_grad(value) || check_rebase(x));
}

static void rebase_plain(Tensor *t, Node *n, int output_nr) {
  Node *old = t->grad_fn;
  t->grad_fn = n;
  t->output_nr = output_nr;
  node_describe(n, output_nr, t, true);
  move_retain_hook(t, old);
  node_release(old);
}

static void rebase_view(Tensor *t, Node *inner) {
  Tensor *base = t->meta->base;
  bool inner_first = inner->n_edges && inner->edges[0].node == t->grad_fn && t->grad_fn &&
                     inner->edges[0].input_nr == t->output_nr;
  int shift = inner_first ? 0 : 1; /* the base's edge stands for the slice's */
  Node *n = node_bare(&CopySlices, inner->n_edges + shift, 0, geometry_count(base, t));
  if (!n) {
    node_release(inner);
    return;
  }
  n->kind = NODE_COPY_SLICES;
  n->inner = inner;
  n->edges[0] = tensor_edge(base);
  geometry_store(n->numbers, base, t, inner_first);
  for (int i = 1 - shift; i < inner->n_edges; i++) {
    n->edges[i + shift] = inner->edges[i];
    node_retain(inner->edges[i].node);
  }
  rebase_plain(base, n, 0);
  /* whether or not its version tells: the node may have been made after the write */
  renew_view(t);
}

void rebase_output(Tensor *t, Node *n, int output_nr) {
  if (!n) return;
  if (failed()) {
    node_drop(n);
    return;
  }
  if (n->tangents) forward_written_by(t, n, output_nr);
  if (n->unrecorded) node_drop(n);
  else if (tensor_is_view(t)) rebase_view(t, n);
  else rebase_plain(t, n, output_nr);
}

void rebase_history(Tensor *t, Node *n) { rebase_output(t, n, 0); }

/* ------------------------------------------------------------ hooks */

NodeHook *node_add_hook(Node *n, HookPoint point, int32_t id, int32_t slot) {
  NodeHook *h = mem_alloc_zero(sizeof *h);
  if (!h) return NULL;
  *h = (NodeHook){NULL, id, slot, (uint8_t)point, NULL};
  NodeHook **at = &n->hooks, **same = NULL;
  for (; *at && (*at)->point <= point; at = &(*at)->next)
    if ((*at)->point == point && (*at)->slot == slot) same = &(*at)->next;
  if (same) at = same;
  h->next = *at;
  *at = h;
  return h;
}

bool node_remove_hook(Node *n, int32_t id) {
  for (NodeHook **at = &n->hooks; *at; at = &(*at)->next) {
    if ((*at)->id != id || !id) continue;
    NodeHook *h = *at;
    *at = h->next;
    hook_drop(h->id);
    mem_free(h, sizeof *h);
    return true;
  }
  return false;
}

bool tensor_retain_grad(Tensor *t) {
  if (!tensor_requires_grad(t)) {
    fail(ERR_RUNTIME, "can't retain_grad on Tensor that has requires_grad=False");
    return false;
  }
  Node *fn = tensor_is_leaf(t) ? NULL : tensor_grad_fn(t);
  Meta *m = tensor_meta(t);
  if (!fn || !m || m->retains_grad) return !failed();
  NodeHook *h = node_add_hook(fn, AT_RETAIN, 0, t->output_nr);
  if (!h) return false;
  h->retained = t;
  return m->retains_grad = true;
}

/* Recording: nodes for calls, and histories for their results; see graph.h. */
#include <string.h>

#include "ground/memory.h"
#include "tape/forward.h"
#include "tape/graph.h"
#include "tape/slices.h"

/* ------------------------------------------------------------ recording */

/* The node of a call if `any` input is recorded, or if forward mode needs one. */
INLINE Node *node_if(bool any, const NodeType *type, int n_saves, int n_numbers, int n,
                     Tensor *const *inputs) {
  if (!(any || forward_on) || failed()) return NULL;
  Node *node = node_bare(type, n, n_saves, n_numbers);
  if (!node) return NULL;
  for (int i = 0; any && i < n; i++)
    if (inputs[i]) node->edges[i] = tensor_edge(inputs[i]);
  node->unrecorded = !any;
  if (!forward_on || forward_mode->attach(node, n, inputs) || any) return node;
  node_drop(node);
  return NULL;
}

Node *node_new_list(const NodeType *type, int n_saves, int n_numbers, int n,
                    Tensor *const *inputs) {
  if (!grad_mode) return NULL;
  bool any = false;
  for (int i = 0; recording && !any && i < n; i++)
    any = inputs[i] && tensor_requires_grad(inputs[i]);
  return node_if(any, type, n_saves, n_numbers, n, inputs);
}

Node *node_new_for(const NodeType *type, int n_saves, int n_numbers, Tensor *const *inputs) {
  if (!grad_mode) return NULL;
  int n = 0;
  bool any = false;
  for (; inputs[n]; n++) any = any || tensor_requires_grad(inputs[n]);
  return node_if(any && recording, type, n_saves, n_numbers, n, inputs);
}

static bool grow_outputs(Node *n, int count) {
  if (count <= (n->n_outputs ? n->n_outputs : 1)) {
    if (n->n_outputs < count) n->n_outputs = (uint16_t)count;
    return true;
  }
  if (!node_may_have(count, "outputs")) return false;
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
  bool ok = node_describe_output(n, k, y);
  n->outputs[k].defined = defined;
  return ok;
}

/* Each output holds a reference of its own; the caller's is consumed by output 0. */
Tensor *set_history_at(Tensor *y, Node *n, int output_nr) {
  if (!n) return y;
  if (n->unpacked_inputs) saves_pack(n);
  bool fits = y && !failed() && dtype_is_inexact(tensor_dtype(y)) && grow_outputs(n, output_nr + 1);
  if (fits) fits = node_describe_output(n, output_nr, y);
  if (!fits) {
    if (output_nr == 0) node_drop(n);
    return failed() ? NULL : y;
  }
  if (n->tangents) forward_mode->output(y, n, output_nr);
  if (n->unrecorded) {
    if (!y->grad_fn) y->output_nr = output_nr; /* by which an output is found that was saved */
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

Node *node_of_view(const NodeType *type, int n_numbers, Tensor *x) {
  Node *n = node_new(type, 0, n_numbers, x, NULL);
  if (n || !view_replay || failed()) return n;
  n = node_bare(type, 1, 0, n_numbers);
  if (n) n->unrecorded = true;
  return n;
}

bool tensor_tracked(const Tensor *t) {
  return by_ops || (grad_mode && ((recording && tensor_requires_grad(t)) ||
                                  (forward_on && t->meta && (t->meta->dual || t->meta->base))));
}

/* ------------------------------------------------------------ views */

Tensor *record_view(Tensor *self, Tensor *v, Node *n, ViewOrigin origin) {
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
  if (__builtin_expect(view_replay || (from && from->made_by), 0)) history_note_view(self, v, n);
  if (forward_on && grad_mode) forward_mode->view(self, v);
  return set_history(v, n);
}

/* ------------------------------------------------------------ in place */

static void rebase_plain(Tensor *t, Node *n, int output_nr) {
  Node *old = t->grad_fn;
  t->grad_fn = n;
  t->output_nr = output_nr;
  node_describe(n, output_nr, t, true);
  history_move_retain_hook(t, old);
  node_release(old);
}

static void rebase_view(Tensor *t, Node *inner) {
  Tensor *base = t->meta->base;
  bool inner_first = inner->n_edges && inner->edges[0].node == t->grad_fn && t->grad_fn &&
                     inner->edges[0].input_nr == t->output_nr;
  int shift = inner_first ? 0 : 1; /* the base's edge replaces the slice's */
  Node *n = node_bare(&CopySlices, inner->n_edges + shift, 0, history_geometry_count(base, t));
  if (!n) {
    node_release(inner);
    return;
  }
  n->kind = NODE_COPY_SLICES;
  n->inner = inner;
  n->edges[0] = tensor_edge(base);
  history_geometry_store(n->numbers, base, t, inner_first);
  for (int i = 1 - shift; i < inner->n_edges; i++) {
    n->edges[i + shift] = inner->edges[i];
    node_retain(inner->edges[i].node);
  }
  rebase_plain(base, n, 0);
  /* even if the version is unchanged: the node may have been made after the write */
  history_renew_view(t);
}

void record_rebase_output(Tensor *t, Node *n, int output_nr) {
  if (!n) return;
  if (failed()) {
    node_drop(n);
    return;
  }
  if (n->tangents) forward_mode->written_by(t, n, output_nr);
  if (n->unrecorded) node_drop(n);
  else if (tensor_is_view(t)) rebase_view(t, n);
  else rebase_plain(t, n, output_nr);
}

void record_rebase(Tensor *t, Node *n) { record_rebase_output(t, n, 0); }

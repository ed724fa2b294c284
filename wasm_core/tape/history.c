/* Histories: the nodes of tensors, new nodes for views whose base was written to, and checks before
 * in-place writes; see graph.h. */
#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "tape/forward.h"
#include "tape/graph.h"
#include "tape/slices.h"

bool node_describe_output(Node *n, int k, const Tensor *y) {
  OutputMeta *m = &n->outputs[k];
  if (m->ndim > 4) mem_free(m->far, m->ndim * sizeof(int64_t));
  m->ndim = 0;
  m->dtype = y->dtype;
  m->defined = m->described = true;
  m->form = y->form & FORM_ABSENT;
  if (y->ndim > 4) {
    m->far = mem_alloc(y->ndim * sizeof(int64_t));
    if (!m->far) return false;
  }
  m->ndim = y->ndim;
  memcpy(y->ndim > 4 ? m->far : m->near, y->sizes, y->ndim * sizeof(int64_t));
  return true;
}

/* ------------------------------------------------------------ edges */

/* Types without a gradient function: walk/apply.c accumulates, or writes into slices. */
const NodeType AccumulateGrad = {"torch::autograd::AccumulateGrad", NULL, "", false, NULL, NULL};
const NodeType AsStridedView = {"AsStridedBackward0", NULL, "", false, NULL, NULL};
const NodeType CopySlices = {"torch::autograd::CopySlices", NULL, "", false, NULL, NULL};

Node *tensor_accumulator(Tensor *t) {
  Meta *m = tensor_meta(t);
  if (!m) return NULL;
  if (m->accumulator) {
    node_retain(m->accumulator);
    return m->accumulator;
  }
  Node *n = node_unnumbered(&AccumulateGrad);
  if (!n) return NULL;
  n->kind = NODE_ACCUMULATE;
  n->sequence = UINT64_MAX; /* gradients are accumulated as soon as they are complete */
  n->n_outputs = 1;
  if (!node_describe_output(n, 0, t)) {
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

/* ------------------------------------------------------------ views */

bool tensor_is_leaf(const Tensor *t) { return !t->grad_fn; }

bool tensor_is_view(const Tensor *t) { return t->meta && t->meta->base; }

Tensor *t_detach(Tensor *t) {
  if (failed() || !t) return NULL;
  Tensor *hosted = by_ops && t->form & FORM_HOSTED ? detached_by_host(t) : NULL;
  if (hosted || failed()) return failed() ? NULL : hosted;
  Tensor *d = tensor_alias(t, t->ndim, t->sizes, t->strides, t->offset);
  if (d) tensor_share_version(d, t);
  return d;
}

Tensor *t_detach_(Tensor *t) {
  if (tensor_is_view(t))
    return fail(ERR_RUNTIME,
                "Can't detach views in-place. Use detach() instead. If you are using "
                "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
                "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
                "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
                "function in torch/optim/optimizer.py as the solution.");
  if (t->meta && t->meta->retains_grad)
    for (NodeHook *h = t->grad_fn ? t->grad_fn->hooks : NULL; h; h = h->next)
      if (h->retained == t) h->retained = NULL;
  if (t->meta) t->meta->retains_grad = false;
  forward_drop(t);
  Node *old = t->grad_fn;
  t->grad_fn = NULL;
  t->output_nr = 0;
  t->flags = (uint8_t)(t->flags & ~FLAG_REQUIRES_GRAD);
  node_release(old);
  return t;
}

int history_geometry_count(const Tensor *base, const Tensor *v) {
  return 5 + 2 * (base->ndim + v->ndim);
}

void history_geometry_store(Number *at, const Tensor *base, const Tensor *v, bool inner_first) {
  const Tensor *each[2] = {base, v};
  for (int k = 0; k < 2; k++) {
    (at++)->i = each[k]->ndim;
    for (int i = 0; i < each[k]->ndim; i++) (at++)->i = each[k]->sizes[i];
    for (int i = 0; i < each[k]->ndim; i++) (at++)->i = each[k]->strides[i];
  }
  int lens = lens_of(base, v);
  (at++)->i = v->offset - lens_offset(base->offset, lens);
  (at++)->i = inner_first;
  at->i = lens;
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

void history_move_retain_hook(Tensor *t, Node *from) {
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
    [VIEW_MULTI_OUTPUT] = "This view is the output of a function that returns multiple views. Such "
                          "functions do not allow the output views to be modified inplace. You "
                          "should replace the inplace operation by an out-of-place one.",
    [VIEW_IN_CUSTOM] =
        "This view was created inside a custom Function (or because an input was returned as-is) "
        "and the autograd logic to handle view+inplace would override the custom backward "
        "associated with the custom Function, leading to incorrect gradients. This behavior is "
        "forbidden. You can fix this by cloning the output of the custom Function."};

/* The error for a write to a view that allows no new history, or (`by_others`) for an earlier write
 * to its base. */
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
         "clarify your code by moving both the view and the inplace either both inside the %s "
         "block (if you don't want the inplace to be tracked) or both outside (if you want the "
         "inplace to be tracked).",
         subject, inference ? "inference_mode" : "no_grad");
  else fail(ERR_RUNTIME, "%s %s", subject, origin_texts[origin]);
}

/* An as_strided node for v as a view of `from`; consumes the edge. */
static Node *node_strided(const Tensor *from, const Tensor *v, Edge to) {
  Node *n = node_bare(&AsStridedView, 1, 0, history_geometry_count(from, v));
  if (!n) {
    node_release(to.node);
    return NULL;
  }
  n->edges[0] = to;
  history_geometry_store(n->numbers, from, v, false);
  n->n_outputs = 1;
  node_describe_output(n, 0, v);
  n->kind = NODE_SLICE;
  return n;
}

/* A copy of n with another input; consumes the edge. */
static Node *node_like(const Node *n, Edge to) {
  Node *same = node_bare(n->type, 1, 0, n->n_numbers);
  if (!same) {
    node_release(to.node);
    return NULL;
  }
  memcpy(same->numbers, n->numbers, n->n_numbers * sizeof *n->numbers);
  same->edges[0] = to;
  same->kind = n->kind;
  same->in_float = n->in_float;
  same->n_outputs = 1;
  return same;
}

/* made_by is a chain of nodes outside any graph, from the view down to the node on its base. */
void history_note_view(Tensor *self, Tensor *v, const Node *n) {
  const Meta *from = self->meta;
  Node *before = from ? from->made_by : NULL;
  if (before) node_retain(before);
  else if (from && from->base) before = node_strided(from->base, self, (Edge){NULL, 0});
  bool known = view_replay && n && n->n_edges == 1 && !n->n_saves;
  Node *made = known ? node_like(n, (Edge){before, 0}) : node_strided(self, v, (Edge){before, 0});
  if (made) node_describe_output(made, 0, v);
  v->meta->made_by = made;
}

/* Copies the chain of nodes that made a view onto the base's present history. */
static Node *node_replayed(Node *last, Tensor *base) {
  int64_t count = 0;
  for (Node *n = last; n; n = n->edges[0].node) count++;
  Node **chain = scratch_array(count, sizeof *chain);
  if (!chain) return NULL;
  for (int64_t i = count; i-- > 0; last = last->edges[0].node) chain[i] = last;
  Edge to = tensor_edge(base);
  for (int64_t i = 0; i < count; i++) {
    Node *n = node_like(chain[i], to);
    const OutputMeta *m = &chain[i]->output;
    const Tensor like = {.dtype = m->dtype,
                         .ndim = m->ndim,
                         .form = m->form,
                         .sizes = (int64_t *)(uintptr_t)output_sizes(m)};
    if (!n) return NULL;
    node_describe_output(n, 0, &like);
    to = (Edge){n, 0};
  }
  return to.node;
}

Node *history_renew_view(Tensor *t) {
  Meta *m = t->meta;
  Node *n = m->made_by ? node_replayed(m->made_by, m->base)
                       : node_strided(m->base, t, tensor_edge(m->base));
  if (!n) return t->grad_fn;
  m->view_version = tensor_version(t);
  Node *old = t->grad_fn;
  t->grad_fn = n;
  t->output_nr = 0;
  history_move_retain_hook(t, old);
  node_release(old);
  return n;
}

Node *tensor_grad_fn(Tensor *t) {
  const Meta *m = t->meta;
  if (!m || !m->base) return t->grad_fn;
  if (!t->grad_fn && !tensor_requires_grad(m->base)) return NULL;
  if (m->view_version == tensor_version(t)) return t->grad_fn;
  if (m->view_origin == VIEW_PLAIN) return history_renew_view(t);
  refuse_view(t, true);
  return NULL;
}

/* ------------------------------------------------------------ in place */

bool history_check_rebase(Tensor *t) {
  Meta *m = t->meta;
  if (failed()) return false;
  if (!m || !m->base || m->view_origin == VIEW_PLAIN) return true;
  refuse_view(t, false);
  return false;
}

bool history_check_inference_write(const Tensor *t) {
  if (t->flags & FLAG_INFERENCE && !inference_mode) {
    fail(ERR_RUNTIME, "Inplace update to inference tensor outside InferenceMode is not allowed.You "
                      "can make a clone to get a normal tensor before doing inplace update.See "
                      "https://github.com/pytorch/rfcs/pull/17 for more details.");
    return false;
  }
  return true;
}

bool history_check_inplace(Tensor *t) {
  if (failed() || !t || !history_check_inference_write(t)) return false;
  if (!grad_mode || !recording || !tensor_requires_grad(t)) return true;
  if (!history_check_rebase(t)) return false;
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

bool history_check_inplace_by(Tensor *x, const Tensor *value) {
  return history_check_inplace(x) && (!value || !grad_mode || !recording ||
                                      !tensor_requires_grad(value) || history_check_rebase(x));
}

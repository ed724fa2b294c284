/* Autograd as a host sees it: backward and grad, attributes of tensors, nodes by address, hooks. */
#include <math.h>
#include <string.h>

#include "graph.h"
#include "host.h"
#include "op.h"
#include "ops_private.h"

/* ------------------------------------------------------------ backward, grad */

static Tensor *const *grads_or_null(const Tensors *grads) { return grads->n > 0 ? grads->v : NULL; }

void op_backward(Call *c) {
  Tensors roots = arg_tensors(c, 0), grads = arg_tensors(c, 1), inputs = arg_tensors(c, 4);
  engine_backward(roots.n, roots.v, grads_or_null(&grads), arg_bool(c, 2), arg_bool(c, 3), inputs.n > 0 ? inputs.n : 0, inputs.v,
                  true, true, NULL);
}

/* The common backward: one root of one element, into every leaf. */
void op_backward_of(Call *c) {
  Tensor *root = arg_tensor(c, 0);
  engine_backward(1, &root, NULL, arg_bool(c, 1), arg_bool(c, 2), 0, NULL, true, true, NULL);
}

void op_grad(Call *c) {
  Tensors outputs = arg_tensors(c, 0), inputs = arg_tensors(c, 1), grads = arg_tensors(c, 2);
  bool create_graph = arg_bool(c, 4), materialize = arg_bool(c, 6);
  Tensor **captured = scratch_alloc((size_t)(inputs.n + 1) * sizeof *captured);
  if (!captured || !engine_backward(outputs.n, outputs.v, grads_or_null(&grads), arg_bool(c, 3), create_graph, inputs.n, inputs.v,
                                    false, arg_bool(c, 5) || materialize, captured))
    return;
  for (int i = 0; i < inputs.n && materialize; i++)
    if (!captured[i] && (captured[i] = t_zeros_like(inputs.v[i])) &&
        create_graph)
      captured[i]->flags |= FLAG_REQUIRES_GRAD;
  ret_tensors(c, inputs.n, captured);
}

/* The gradient of the alias it returns is not passed on: what comes before gets an undefined one. */
GRAD(UndefinedGradBackward, "") {}

Tensor *op_undefined_grad(Tensor *t) {
  Node *n = node_new(&UndefinedGradBackward, 0, 0, t, NULL);
  return set_history(tensor_alias(t, t->ndim, t->sizes, t->strides, t->offset), n);
}

/* ------------------------------------------------------------ attributes */

Tensor *op_requires_grad_(Tensor *t, bool on) {
  if (!tensor_is_leaf(t) && !on)
    return fail(ERR_RUNTIME, "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                             "in a subgraph that doesn't require differentiation use var_no_grad = var.detach().");
  if (on && !dtype_is_float((DType)t->dtype))
    return fail(ERR_RUNTIME, "only Tensors of floating point dtype can require gradients");
  if (on && t->flags & FLAG_INFERENCE && !inference_mode)
    return fail(ERR_RUNTIME, "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (tensor_is_leaf(t)) t->flags = (uint8_t)(on ? t->flags | FLAG_REQUIRES_GRAD : t->flags & ~FLAG_REQUIRES_GRAD);
  return t;
}

Tensor *op_detach(Tensor *t) {
  return t_detach(t);
}

Tensor *op_detach_(Tensor *t) {
  if (tensor_is_view(t))
    return fail(ERR_RUNTIME, "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) "
                             "for training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and "
                             "hence detach_() cannot be called on these gradients. To fix this error, please refer to the "
                             "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.");
  if (t->meta && t->meta->retains_grad)
    for (NodeHook *h = t->grad_fn ? t->grad_fn->hooks : NULL; h; h = h->next)
      if (h->retained == t) h->retained = NULL;
  if (t->meta) t->meta->retains_grad = false;
  Node *old = t->grad_fn;
  t->grad_fn = NULL;
  t->output_nr = 0;
  t->flags = (uint8_t)(t->flags & ~FLAG_REQUIRES_GRAD);
  node_release(old);
  return t;
}

Tensor *op_data(Tensor *t) { return tensor_alias(t, t->ndim, t->sizes, t->strides, t->offset); }

/* t takes the storage and geometry of `from`; its version and history stay. */
Tensor *op_set_data(Tensor *t, Tensor *from) {
  if (tensor_requires_grad(t) && !dtype_is_float((DType)from->dtype))
    return fail(ERR_RUNTIME, "data set to a tensor that requires gradients must be floating point or complex dtype");
  if (!tensor_set_geometry(t, from->ndim, from->sizes, from->strides, from->offset)) return NULL;
  Tensor *keep = tensor_alias(from, from->ndim, from->sizes, from->strides, from->offset);
  if (!keep) return NULL;
  Storage *s = t->storage; /* the alias takes the old one with it when it goes */
  t->storage = keep->storage;
  keep->storage = s;
  t->dtype = from->dtype;
  t->flags = (uint8_t)((t->flags & ~FLAG_INFERENCE) | (from->flags & FLAG_INFERENCE));
  return NULL;
}

Tensor *op_set_grad(Tensor *t, Tensor *g) {
  if (g) {
    if (g == t) return fail(ERR_RUNTIME, "can't assign Variable as its own grad");
    if (g->dtype != t->dtype)
      return fail(ERR_RUNTIME, "attempting to assign a gradient with dtype '%s' to a tensor with grad_dtype '%s'. The gradient must "
                               "match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype "
                               "attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging "
                               "the dtypes of a tensor and its gradient may break downstream systems that assume they match.",
                  dtype_c_name((DType)g->dtype), dtype_info[t->dtype].legacy);
    if (!tensor_same_shape(g, t))
      return fail(ERR_RUNTIME, "attempting to assign a gradient of size '%s' to a tensor of size '%s'. Please ensure that the "
                               "gradient and the tensor are the same size", shape_text(g), shape_text(t));
  }
  Meta *m = tensor_meta(t);
  if (!m) return NULL;
  tensor_retain(g);
  Tensor *old = m->grad;
  m->grad = g;
  tensor_release(old);
  return NULL;
}

bool op_is_set_to(const Tensor *a, const Tensor *b) {
  return a->storage == b->storage && a->offset == b->offset && tensor_same_shape(a, b) &&
         (a->ndim == 0 || memcmp(a->strides, b->strides, a->ndim * sizeof(int64_t)) == 0);
}

/* ------------------------------------------------------------ nodes */

static Node *arg_node(const Call *c) {
  Node *n = (Node *)(uintptr_t)arg_int(c, 0);
  if (node_is(n)) return n;
  return fail(ERR_RUNTIME, "pygrad: not the address of a live node");
}

/* The host owns a reference to every node it is told of. */
static int64_t node_handle(Node *n) {
  node_retain(n);
  return (int64_t)(uintptr_t)n;
}

void op_node_of(Call *c) { ret_int(c, node_handle(tensor_grad_fn(arg_tensor(c, 0)))); }

void op_node_name(Call *c) {
  Node *n = arg_node(c);
  if (n) ret_str(c, n->type->name);
}

void op_node_sequence(Call *c) {
  Node *n = arg_node(c);
  if (n) ret_int(c, (int64_t)n->sequence);
}

void op_node_next(Call *c) {
  Node *n = arg_node(c);
  int64_t *out = n ? scratch_alloc((2 * (size_t)n->n_edges + 1) * sizeof *out) : NULL;
  if (!out) return;
  for (int i = 0; i < n->n_edges; i++) {
    out[2 * i] = node_handle(n->edges[i].node);
    out[2 * i + 1] = n->edges[i].input_nr;
  }
  ret_ints(c, 2 * n->n_edges, out);
}

Tensor *op_node_variable(Call *c) {
  Node *n = arg_node(c);
  return n ? n->variable : NULL;
}

/* The host's id of where it was made (0: not recorded), and the node whose backward made it. */
void op_node_trace(Call *c) {
  const Node *n = arg_node(c);
  if (!n) return;
  int64_t out[2] = {n->origin ? n->origin->trace : 0, n->origin && n->origin->parent ? node_handle(n->origin->parent) : 0};
  ret_ints(c, 2, out);
}

void op_node_fields(Call *c) {
  Node *n = arg_node(c);
  if (n) ret_str(c, n->type->fields);
}

/* A copy-on-write copy of what was saved: writing to it reaches neither the graph nor the original. */
void op_node_saved(Call *c) {
  Node *n = arg_node(c);
  Tensor *s = n ? saved(n, (int)arg_int(c, 1)) : NULL;
  Tensor *copy = tensor_snapshot(s);
  if (copy && s->grad_fn && grad_mode) {
    node_retain(s->grad_fn);
    copy->grad_fn = s->grad_fn;
    copy->output_nr = s->output_nr;
  }
  ret_tensor(c, copy);
}

/* ------------------------------------------------------------ hooks */

static void leaf_hook_add(Tensor *t, Hook **list, int32_t id) {
  Hook *h = mem_alloc(sizeof *h);
  if (!h) return;
  *h = (Hook){NULL, id, 0};
  while (*list) list = &(*list)->next;
  *list = h;
  (void)t;
}

void op_hook_add(Call *c) {
  Tensor *t = arg_tensor(c, 0);
  int32_t id = (int32_t)arg_int(c, 1);
  bool post = arg_bool(c, 2);
  if (!tensor_requires_grad(t)) {
    fail(ERR_RUNTIME, post ? "cannot register a hook on a tensor that doesn't require gradient"
                           : "cannot register a hook on a tensor that doesn't require gradient");
    return;
  }
  Node *fn = tensor_grad_fn(t);
  if (post && fn) {
    fail(ERR_RUNTIME, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    return;
  }
  if (fn) {
    node_add_hook(fn, AT_TENSOR, id, t->output_nr);
    return;
  }
  Meta *m = tensor_meta(t);
  if (m) leaf_hook_add(t, post ? &m->post_hooks : &m->hooks, id);
}

static bool leaf_hook_remove(Hook **list, int32_t id) {
  for (; *list; list = &(*list)->next) {
    if ((*list)->id != id) continue;
    Hook *h = *list;
    *list = h->next;
    host_drop(id);
    mem_free(h, sizeof *h);
    return true;
  }
  return false;
}

void op_hook_remove(Call *c) {
  Tensor *t = arg_tensor(c, 0);
  int32_t id = (int32_t)arg_int(c, 1);
  Meta *m = t->meta;
  if (m && (leaf_hook_remove(&m->hooks, id) || leaf_hook_remove(&m->post_hooks, id))) return;
  if (t->grad_fn) node_remove_hook(t->grad_fn, id);
}

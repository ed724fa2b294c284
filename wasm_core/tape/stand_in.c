/* Tensors that replace others in the graph: computed ones for lazy ones, float ones for half
 * ones. */
#include "tape/forward.h"
#include "tape/graph.h"

bool tensor_stand_in(Tensor *y, Tensor *x) {
  if (failed() || !y) return false;
  if (tensor_requires_grad(x) && !tensor_grad_fn(x)) { /* another leaf, with the same accumulator */
    Meta *m = tensor_meta(y);
    if (!m) return false;
    m->accumulator = tensor_accumulator(x);
    m->owns_accumulator = true;
    y->flags |= FLAG_REQUIRES_GRAD;
  } else if (!failed() && x->grad_fn) {
    node_retain(y->grad_fn = x->grad_fn);
    y->output_nr = x->output_nr;
  }
  y->flags |= x->flags & (FLAG_WRAPPED | FLAG_INFERENCE);
  forward_share(x, y);
  return !failed();
}

/* ------------------------------------------------------------ half types */

bool tensor_take_output(Tensor *z, Tensor *y) {
  if (failed() || !z || !y) return false;
  Tensor *tangent = forward_tangent(y); /* computed in float, before the node changes */
  Node *n = y->grad_fn;
  if (n) {
    node_retain(n);
    z->grad_fn = n;
    z->output_nr = y->output_nr;
    /* otherwise the node belongs to a stand-in's original, which narrows its gradients itself */
    if (n->outputs[z->output_nr].dtype == y->dtype) {
      n->in_float = true;
      if (!node_describe_output(n, z->output_nr, z)) return false;
    }
  }
  if (tangent) forward_write(z, tangent);
  if (n && n->in_float) saves_narrowed(n, z);
  z->flags |= y->flags & (FLAG_WRAPPED | FLAG_INFERENCE);
  return !failed();
}

/* Services of autograd: backward and grad, attributes of tensors, nodes by address, hooks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "ops/op.h"
#include "tape/anomaly.h"
#include "tape/forward.h"
#include "tape/graph.h"
#include "tape/host.h"
#include "tape/levels.h"
#include "walk/custom.h"
#include "walk/hooks.h"
#include "walk/services.h"
#include "walk/walk.h"

/* ------------------------------------------------------------ backward, grad */

static Node *live_node(int64_t address) {
  Node *n = (Node *)(uintptr_t)address;
  if (node_is(n)) return n;
  return fail(ERR_RUNTIME, "pygrad: not the address of a live node");
}

/* Roots or inputs. For each that is no tensor the host passes two words: a node and the number of
 * its output; 1 and 0 for an object that is no edge, 1 and 1 for an edge without a valid node.
 * `odd`: the type of the first such object among inputs or gradients. */
static const GraphEnd *ends(Tensors t, Ints words, bool roots, const char *odd) {
  GraphEnd *out = scratch_array((int64_t)t.n + 1, sizeof *out);
  for (int i = 0; out && i < t.n && !failed(); i++) {
    out[i] = (GraphEnd){t.v[i], {NULL, 0}};
    if (t.v[i]) continue;
    if (words.n < 2)
      return fail(ERR_TYPE, "pygrad: a root or input is neither a tensor nor an edge");
    int64_t node = words.v[0], nr = words.v[1];
    words = (Ints){words.n - 2, words.v + 2};
    if (node == 1 && !nr && roots) fail(ERR_ASSERTION, "Expected output to be a torch.Tensor");
    else if (node == 1 && !nr)
      fail(ERR_RUNTIME, "all inputs have to be Tensors or GradientEdges, but got %s", odd);
    else if (node == 1 && roots)
      fail(ERR_ATTRIBUTE, "'%s' object has no attribute '_input_metadata'", odd);
    else if (node == 1)
      fail(ERR_RUNTIME, "GradientEdge's first object must be an autograd.graph.Node but got %s",
           odd);
    else out[i].edge = (Edge){live_node(node), (int32_t)nr};
  }
  return failed() ? NULL : out;
}

/* Asks the host to run a custom node's function: returns [the task, the node, create_graph, a
 * gradient for each output]. */
static void ask(Call *c, Task *task, Node *n, Tensor *const *grads) {
  int count = n->n_outputs;
  int64_t *out = scratch_array(3 + (int64_t)count, sizeof *out);
  Tensor **g = scratch_array((int64_t)count + 1, sizeof *g);
  if (!out || !g || !custom_gradients(n, grads, g)) {
    task_abort(task);
    return;
  }
  out[0] = (int64_t)(uintptr_t)task;
  out[1] = (int64_t)(uintptr_t)n;
  out[2] = task_creates_graph(task);
  for (int i = 0; i < count; i++) {
    tensor_retain(g[i]); /* the host's reference */
    out[3 + i] = (int64_t)(uintptr_t)g[i];
  }
  ret_ints(c, 3 + count, out);
}

void task_go_on(Call *c, Task *task, Tensor **gi) {
  for (; task; gi = NULL) {
    Tensor **grads, **captured = NULL;
    bool ok = task_run(task, gi);
    Node *n = ok ? task_asks(task, &grads) : NULL;
    if (n) {
      ask(c, task, n, grads);
      return;
    }
    Course *course = ok ? task_course(task, NULL) : NULL;
    if (course) {
      task = course->next(c, course, task);
      continue;
    }
    int count = ok ? task_results(task, NULL) : 0;
    if (ok && count > 0 && (captured = scratch_array(count, sizeof *captured)) &&
        task_results(task, captured) >= 0)
      ret_tensors(c, count, captured);
    task_end(task);
    return;
  }
}

/* The common backward: one root, into every leaf, not recorded. */
void op_backward_of(Call *c) {
  if (vmap_refuses_backward()) return;
  GraphEnd root = {arg_tensor(c, 0), {NULL, 0}};
  Tensor *gradient = arg_tensor(c, 2);
  task_go_on(c,
             task_start(&(GraphWalk){.n_roots = 1,
                                     .roots = &root,
                                     .grads = gradient ? &gradient : NULL,
                                     .retain_graph = arg_bool(c, 1),
                                     .accumulate = true,
                                     .allow_unused = true}),
             NULL);
}

/* The size of a batch of gradients: their first dimension, which the roots lack; 0 with the error
 * set. */
static int batch_of(const GraphWalk *w, int n_roots) {
  int64_t *found = scratch_array((int64_t)n_roots + 1, sizeof *found);
  int n = 0;
  for (int i = 0; found && w->grads && i < n_roots; i++) {
    const Tensor *given = w->grads[i], *root = w->roots[i].tensor;
    if (!given) continue;
    const OutputMeta *m = root ? NULL : &w->roots[i].edge.node->outputs[w->roots[i].edge.input_nr];
    int ndim = root ? root->ndim : m->ndim;
    const int64_t *sizes = root ? root->sizes : output_sizes(m);
    if (!given->ndim || !sizes_equal(ndim, sizes, given->ndim - 1, given->sizes + 1)) {
      fail(ERR_RUNTIME,
           "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as "
           "the batch dimension. The sizes of the remaining dimensions are expected to match the "
           "shape of corresponding output, but a mismatch was detected: grad_output[%d] has a "
           "shape of torch.Size(%s) and output[%d] has a shape of torch.Size(%s). If you only want "
           "some tensors in `grad_output` to be considered batched, consider using vmap.",
           i, sizes_text(given->ndim > 2 ? given->ndim - 2 : 0, given->sizes + 2), i,
           sizes_text(ndim, sizes));
      return 0;
    }
    if (!walk_check_kind(i, root ? tensor_dtype(root) : output_dtype(m), given)) return 0;
    found[n++] = given->sizes[0];
  }
  for (int i = 1; i < n; i++)
    if (found[i] != found[0])
      fail(ERR_VALUE,
           "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes %s "
           "for the mapped dimension",
           sizes_text(n, found));
  if (!n) fail(ERR_VALUE, "vmap(vjp, in_dims=0, ...)(<inputs>): got no Tensors to map over.");
  return failed() ? 0 : (int)found[0];
}

static void warn_of_cycle(void) {
  WARN_ONCE("Using backward() with create_graph=True will create a reference cycle between the "
            "parameter and its gradient which can cause a memory leak. We recommend using "
            "autograd.grad when creating the graph to avoid this. If you have to use this "
            "function, make sure to reset the .grad fields of your parameters to None after use "
            "to break the cycle and avoid the leak.");
}

/* `grad`, or `backward`, which accumulates into inputs (1) or all leaves (2). The places: the
 * number of gradients (-1: none), then the words of `ends` for roots and inputs. `rows`: the number
 * of backwards, whose results are stacked, one for each element of the only root; -1: one for each
 * gradient of a batch. */
void op_grad(Call *c) {
  Tensors roots = arg_tensors(c, 0), inputs = arg_tensors(c, 1);
  Ints places = arg_ints(c, 3), of_roots = {places.n - 1, places.v + 1}, of_inputs = of_roots;
  const char *odd = arg_str(c, 4);
  int64_t given = places.v[0], accumulate = arg_int(c, 7);
  if (accumulate && vmap_refuses_backward()) return;
  GraphWalk w = {.n_roots = roots.n,
                 .n_inputs = inputs.n,
                 .grads = given > 0 ? arg_tensors(c, 2).v : NULL,
                 .retain_graph = arg_bool(c, 5),
                 .create_graph = arg_bool(c, 6),
                 .accumulate = accumulate,
                 .allow_unused = accumulate || arg_bool(c, 8),
                 .materialize = arg_bool(c, 9),
                 .n_rows = (int)arg_int(c, 10)};
  for (int i = 0; i < roots.n; i++)
    if (!roots.v[i]) of_inputs = (Ints){of_inputs.n - 2, of_inputs.v + 2};
  if (w.materialize && !w.allow_unused)
    fail(ERR_VALUE, "Expected allow_unused to be True or not passed when materialize_grads=True, "
                    "but got: allow_unused=False.");
  if (!inputs.n && accumulate != 2)
    fail(ERR_RUNTIME, "`inputs` argument to `%s()` cannot be empty.",
         accumulate ? "backward" : "grad");
  if (accumulate) w.inputs = ends(inputs, of_inputs, false, odd);
  w.roots = ends(roots, of_roots, true, odd);
  if (!accumulate) w.inputs = ends(inputs, of_inputs, false, odd);
  if (given >= 0 && odd) fail(ERR_TYPE, "gradients can be either Tensors or None, but got %s", odd);
  bool batched = w.n_rows < 0;
  if (given >= 0 && given != roots.n && !(w.n_rows > 0 && !given) && !failed()) {
    int pairs = given < roots.n ? (int)given : roots.n;
    if (batched) batch_of(&w, pairs);
    else walk_check_gradients(&w, pairs);
    if (!failed()) fail(ERR_RUNTIME, "got %d tensors and %d gradients", roots.n, (int)given);
  }
  if (accumulate && w.create_graph && !failed()) warn_of_cycle();
  if (batched && !failed()) w.n_rows = batch_of(&w, roots.n);
  if (batched && !w.n_rows && !failed()) ret_tensors(c, 0, NULL);
  else task_go_on(c, task_start(&w), NULL);
}

/* Continues a task with the results of its custom function; `odd`: the type of results passed as 1.
 * A task below 0: the host gives away a reference to each result. */
void op_backward_resume(Call *c) {
  int64_t word = arg_int(c, 0);
  Task *task = (Task *)(uintptr_t)(word < 0 ? -word : word);
  Ints given = arg_ints(c, 1);
  Tensor **grads;
  Node *n = task_asks(task, &grads);
  for (int i = 0; word < 0 && i < given.n; i++) pool_push((Tensor *)(uintptr_t)given.v[i]);
  Tensor **gi = custom_given(n, &given, arg_str(c, 2));
  if (gi) task_go_on(c, task, gi);
  else task_abort(task);
}

void op_backward_abort(const Call *c) { task_abort((Task *)(uintptr_t)arg_int(c, 0)); }

/* Stops the gradient of op_undefined_grad's alias: its input gets an undefined one. */
static void grad_undefined(Node *n, Tensor **g, Tensor **gi) {
  (void)n;
  (void)g;
  gi[0] = NULL;
}
static const NodeType UndefinedGradBackward = {
    "torch::autograd::UndefinedGradBackward", grad_undefined, "", false, NULL, NULL};

Tensor *op_undefined_grad(Tensor *t) {
  Node *n = node_new(&UndefinedGradBackward, 0, 0, t, NULL);
  return set_history(tensor_alias(t, t->ndim, t->sizes, t->strides, t->offset), n);
}

/* ------------------------------------------------------------ saved tensors */

void op_increment_version(Call *c) {
  Tensors t = arg_tensors(c, 0); /* n < 0: no list of tensors */
  if (t.n < 0) fail(ERR_RUNTIME, "increment_version expect a Iterable[Tensor] as input");
  for (int i = 0; i < t.n && !failed(); i++)
    if (!t.v[i])
      fail(ERR_RUNTIME, "increment_version expects each element of the iterable to be a tensor");
    else if (!(t.v[i]->flags & FLAG_INFERENCE)) tensor_bump_version(t.v[i]);
}

/* Sets the mode for mutated saved tensors; returns the former one. */
void op_set_saved_mode(Call *c) {
  const char *mode = arg_str(c, 0), *was = saved_check_mode ? "check" : "snapshot";
  bool check = strcmp(mode, "check") == 0;
  if (!check && strcmp(mode, "snapshot") != 0)
    fail(ERR_VALUE, "the mode of saved tensors is 'snapshot' or 'check', not '%s'", mode);
  if (failed()) return;
  saved_check_mode = check;
  ret_str(c, was);
}

/* ------------------------------------------------------------ attributes */

void op_retain_grad(Tensor *t) {
  if (!tensor_requires_grad(t) || !vmap_refuses("retain_grad", "")) tensor_retain_grad(t);
}

Tensor *op_requires_grad_(Tensor *t, bool on) {
  if (!tensor_is_leaf(t) && !on)
    return fail(ERR_RUNTIME, "you can only change requires_grad flags of leaf variables. If you "
                             "want to use a computed variable in a subgraph that doesn't require "
                             "differentiation use var_no_grad = var.detach().");
  if (on && !dtype_is_inexact(tensor_dtype(t)))
    return fail(ERR_RUNTIME, "only Tensors of floating point dtype can require gradients");
  if (on && t->flags & FLAG_INFERENCE && !inference_mode)
    return fail(
        ERR_RUNTIME,
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (tensor_is_leaf(t))
    t->flags = (uint8_t)(on ? t->flags | FLAG_REQUIRES_GRAD : t->flags & ~FLAG_REQUIRES_GRAD);
  return t;
}

Tensor *op_data(Tensor *t) { return tensor_alias(t, t->ndim, t->sizes, t->strides, t->offset); }

/* t takes the storage and geometry of `from` and keeps its version and history. A change of dtype
 * drops the accumulator: graphs with the old one give gradients of the old dtype. */
Tensor *op_set_data(Tensor *t, Tensor *from) {
  if (is_sparse(t) != is_sparse(from))
    return fail(ERR_RUNTIME, "Attempted to call `variable.set_data(tensor)`, but `variable` and "
                             "`tensor` have incompatible tensor type.");
  if (!tensor_take_parts(t, from)) return NULL;
  if (tensor_requires_grad(t) && !dtype_is_inexact(tensor_dtype(from)))
    return fail(
        ERR_RUNTIME,
        "data set to a tensor that requires gradients must be floating point or complex dtype");
  bool hidden = (t->storage->bytes->form | from->storage->bytes->form) & FORM_HOSTED;
  if ((t->form ^ from->form) & ~(hidden ? 0 : FORM_HOSTED))
    return fail(ERR_RUNTIME, "Attempted to call `variable.set_data(tensor)`, but `variable` and "
                             "`tensor` have incompatible tensor type.");
  if (!tensor_set_geometry(t, from->ndim, from->sizes, from->strides, from->offset)) return NULL;
  Tensor *keep = tensor_alias(from, from->ndim, from->sizes, from->strides, from->offset);
  if (!keep) return NULL;
  tensor_swap_storages(t, keep); /* the alias releases the old storage */
  if (t->dtype != from->dtype && t->meta && !t->meta->owns_accumulator) t->meta->accumulator = NULL;
  t->dtype = from->dtype;
  t->flags = (uint8_t)((t->flags & ~FLAG_INFERENCE) | (from->flags & FLAG_INFERENCE));
  return NULL;
}

Tensor *op_set_grad(Tensor *t, Tensor *g) {
  if (g) {
    if (g == t) return fail(ERR_RUNTIME, "can't assign Variable as its own grad");
    DType wanted = tensor_grad_dtype(t);
    if (g->dtype != wanted && wanted != DT_NONE)
      return fail(ERR_RUNTIME,
                  "attempting to assign a gradient with dtype '%s' to a tensor with grad_dtype "
                  "'%s'. The gradient must match the tensor's grad_dtype (defaults to the tensor's "
                  "dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or "
                  "None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a "
                  "tensor and its gradient may break downstream systems that assume they match.",
                  dtype_c_name(tensor_dtype(g)), dtype_info[wanted].legacy);
    if (tensor_absent(g) != tensor_absent(t))
      return fail(
          ERR_RUNTIME,
          "attempting to assign a gradient with device type '%s' to a tensor with device "
          "type '%s'. Please ensure that the gradient and the tensor are on the same device",
          tensor_absent(g) ? "meta" : "cpu", tensor_absent(t) ? "meta" : "cpu");
    if (!tensor_same_shape(g, t))
      return fail(ERR_RUNTIME,
                  "attempting to assign a gradient of size '%s' to a tensor of size '%s'. Please "
                  "ensure that the gradient and the tensor are the same size",
                  shape_text(g), shape_text(t));
  }
  Meta *m = tensor_meta(t);
  if (!m) return NULL;
  tensor_retain(g);
  Tensor *old = m->grad;
  m->grad = g;
  tensor_release(old);
  return NULL;
}

static bool check_leaf(Tensor *t, const char *done) {
  if (!tensor_grad_fn(t)) return true;
  fail(ERR_RUNTIME, "grad_dtype can only be %s on leaf tensors.", done);
  return false;
}

void op_grad_dtype(Call *c) {
  Tensor *t = arg_tensor(c, 0);
  if (!check_leaf(t, "accessed")) return;
  DType d = tensor_grad_dtype(t);
  if (d == DT_NONE) ret_none(c);
  else ret_dtype(c, d);
}

void op_set_grad_dtype(Call *c) {
  Tensor *t = arg_tensor(c, 0);
  DType d = arg_dtype(c, 1);
  Meta *m = check_leaf(t, "set") ? tensor_meta(t) : NULL;
  if (!m) return;
  if (m->grad && d != DT_NONE && m->grad->dtype != d) {
    fail(ERR_RUNTIME,
         "Cannot set grad_dtype to '%s' because there is already a gradient with dtype '%s'. "
         "Please clear the gradient (.grad = None) before changing grad_dtype, or ensure the new "
         "grad_dtype matches the existing gradient's dtype.",
         dtype_info[d].legacy, dtype_c_name(tensor_dtype(m->grad)));
    return;
  }
  m->grad_dtype = (uint8_t)(d + 1);
  if (m->accumulator) m->accumulator->outputs[0].dtype = (uint8_t)d;
}

void op_version(Call *c) {
  const Tensor *t = arg_tensor(c, 0);
  if (t->flags & FLAG_INFERENCE)
    fail(ERR_RUNTIME, "Inference tensors do not track version counter.");
  else ret_int(c, tensor_version(t));
}

void op_number_of_dim(Call *c, const int64_t *numbers) {
  const Tensor *t = arg_tensor(c, 0);
  int64_t dim = dim_wrap(arg_int(c, 1), t->ndim);
  if (failed()) return;
  if (!t->ndim)
    fail(ERR_INDEX, "Dimension specified as %lld but tensor has no dimensions",
         (Shown)arg_int(c, 1));
  else ret_int(c, numbers[dim]);
}

bool op_is_set_to(const Tensor *a, const Tensor *b) {
  return a->storage == b->storage && a->offset == b->offset && tensor_same_shape(a, b) &&
         sizes_equal(a->ndim, a->strides, b->ndim, b->strides);
}

/* ------------------------------------------------------------ nodes */

static Node *arg_node(const Call *c) { return live_node(arg_int(c, 0)); }

/* A node as a word, with a reference for the host. */
static int64_t node_handle(Node *n) {
  node_retain(n);
  return (int64_t)(uintptr_t)n;
}

void op_node_of(Call *c) { ret_int(c, node_handle(tensor_grad_fn(arg_tensor(c, 0)))); }

/* The last of the nodes that make a view of its base; 0 if unknown. */
void op_made_by(Call *c) {
  const Tensor *t = arg_tensor(c, 0);
  ret_int(c, node_handle(t->meta ? t->meta->made_by : NULL));
}

void op_node_name(Call *c) {
  Node *n = arg_node(c);
  if (n) ret_str(c, n->type->name);
}

void op_node_kind(Call *c) {
  const Node *n = arg_node(c);
  if (n) ret_int(c, (int64_t)(uintptr_t)n->type);
}

/* The sequence number of a node; for 0, the next node's. */
void op_node_sequence(Call *c) {
  Node *n = arg_int(c, 0) ? arg_node(c) : NULL;
  if (!failed()) ret_int(c, (int64_t)(n ? n->sequence : node_sequence()));
}

void op_node_set_sequence(Call *c) {
  Node *n = arg_node(c);
  if (n) n->sequence = (uint64_t)arg_int(c, 1);
}

void op_node_next(Call *c) {
  Node *n = arg_node(c);
  int64_t *out = n ? scratch_array(2 * (int64_t)n->n_edges + 1, sizeof *out) : NULL;
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

/* Whether the field at a colon is one int. */
static bool is_int(const char *field) {
  FieldKind kind = field_of(field).kind;
  return kind == FIELD_INT || kind == FIELD_OPTIONAL_INT || kind == FIELD_NATURAL ||
         kind == FIELD_DIM;
}

/* The named fields of a node for the host, each "name:kind place ". Kinds: t a tensor, * all
 * tensors from this slot on, # a number kept as a tensor, i an integer shown as unsigned, x any
 * other number. Made from NodeType.fields, see graph.h. */
void op_node_fields(Call *c) {
  enum { LONGEST = 12 }; /* ":k 123 " */
  const Node *n = arg_node(c);
  const char *at = n ? n->type->fields : "";
  bool schema = strchr(at, '('), numbers = false, wanted = false;
  size_t cap = (LONGEST + 1) * strlen(at) + 1;
  char *text = scratch_alloc(cap);
  int place = 0, end = 0;
  if (!text) return;
  for (text[0] = 0; *at; at += strspn(at, " ")) {
    if (*at == '|') {
      numbers = true;
      place = 0;
      at++;
      continue;
    }
    int length = (int)strcspn(at, " |*#:=,()");
    char mark = at[length], kind = numbers ? mark == ':' && is_int(at + length) ? 'i' : 'x'
                                   : mark == '*' || mark == '#' ? mark
                                                                : 't';
    if (!(numbers && schema) || wanted) {
      if (*at != '-')
        end += snprintf(text + end, cap - (size_t)end, "%.*s:%c%d ", length, at, kind, place);
      place++;
    }
    wanted = strncmp(at, "Scalar ", 7) == 0 || strncmp(at, "float ", 6) == 0;
    at += strcspn(at, " |");
  }
  ret_str(c, text);
}

void op_node_saved(Call *c) {
  Node *n = arg_node(c);
  if (n) ret_tensor(c, saved_for_host(n, (int)arg_int(c, 1)));
}

/* The saved tensor without history; None if it was freed. */
Tensor *op_node_saved_data(Call *c) {
  Node *n = arg_node(c);
  int slot = (int)arg_int(c, 1);
  Tensor *t = n && slot < n->n_saves && (n->saves[slot].packed || n->saves[slot].value)
                  ? saved_for_host(n, slot)
                  : NULL;
  return t && !tensor_is_leaf(t) ? t_detach(t) : t;
}

/* The id of a packed object, or 0. */
void op_node_packed(Call *c) {
  const Node *n = arg_node(c);
  int slot = (int)arg_int(c, 1);
  if (n) ret_int(c, slot < n->n_saves ? n->saves[slot].packed : 0);
}

void op_node_saved_hooks(Call *c) {
  Node *n = arg_node(c);
  int slot = (int)arg_int(c, 1);
  if (n && slot < n->n_saves) saved_register_hooks(n, slot, (int32_t)arg_int(c, 2));
}

static void ret_list(Call *c, int64_t count, const Number *v) {
  ret_ints(c, count && v->i != INT64_MAX ? (int)count : 0, &v->i);
}

/* The k-th text of a field of texts. */
static void ret_choice(Call *c, const char *at, int64_t k) {
  char text[16] = "";
  while (k-- > 0) at += strcspn(at, ",") + 1;
  size_t length = strcspn(at, ", ");
  if (*at == '-' || length >= sizeof text) return;
  memcpy(text, at, length);
  ret_str(c, text);
}

static void ret_scalar(Call *c, double v, ScalarKind kind) {
  if (kind == SCALAR_COMPLEX) ret_complex(c, v);
  else if (kind == SCALAR_BOOL) ret_bool(c, v != 0);
  else if (kind == SCALAR_BY_VALUE && v == (double)(int64_t)v) ret_int(c, (int64_t)v);
  else ret_float(c, v);
}

/* The k-th parameter after the first argument of a schema: a float, or a Scalar. */
static void ret_parameter(Call *c, const Node *n, const char *schema, int k) {
  double v = n->numbers[k].f;
  ScalarKind kind = node_kind(n, k);
  for (; k >= 0 && schema; k--) schema = strchr(schema + 1, ',');
  if (schema && strncmp(schema, ", float", 7) == 0) ret_float(c, v);
  else ret_scalar(c, v, kind);
}

static void ret_sizes(Call *c, const Node *n, int input, bool count) {
  const Edge *e = input < n->n_edges ? &n->edges[input] : NULL;
  const OutputMeta *m = e && e->node && e->node->outputs[e->input_nr].defined
                            ? &e->node->outputs[e->input_nr]
                            : NULL;
  if (m && count) ret_int(c, sizes_numel(m->ndim, output_sizes(m)));
  else if (m) ret_ints(c, m->ndim, output_sizes(m));
}

/* The last n of three numbers, n being the node's first number. */
static void ret_last(Call *c, const Node *n, const Number *three, bool given) {
  int64_t nd = n->numbers[0].i;
  ret_list(c, given ? nd : 0, three + 3 - nd);
}

/* Dimensions stored as bits: as a list, or as an int if there is just one, else None. */
static void ret_dims(Call *c, int64_t mask, bool list) {
  int64_t dims[64];
  int n = 0;
  for (int i = 0; i < 64; i++)
    if (mask >> i & 1) dims[n++] = i;
  if (list) ret_ints(c, n, dims);
  else if (n == 1) ret_int(c, dims[0]);
}

/* The k-th field after the | of a node's fields; NodeType in graph.h explains the kinds. */
static void ret_number(Call *c, const Node *n, int k) {
  int at = 0;
  const char *field = strchr(n->type->fields, '|');
  if (!field) return;
  if (strchr(field, '(')) {
    if (k < n->n_numbers) ret_parameter(c, n, field, k);
    return;
  }
  for (field = strchr(field, ':'); field && k > 0; field = strchr(field + 1, ':'), k--) {
    Field passed = field_of(field);
    at += field_width(n, &passed, at);
  }
  if (!field) return;
  const Field f = field_of(field);
  const int width = field_width(n, &f, at);
  if (at + width > n->n_numbers) return;
  const Number *v = n->numbers + at;
  switch (f.kind) {
    case FIELD_INT: ret_int(c, v->i); break;
    case FIELD_OPTIONAL_INT:
      if (v->i != INT64_MAX) ret_int(c, v->i);
      break;
    case FIELD_NATURAL:
      if (v->i >= 0) ret_int(c, v->i);
      break;
    case FIELD_FLOAT: ret_float(c, v->f); break;
    case FIELD_OPTIONAL_FLOAT:
      if (v->f != 0) ret_float(c, v->f);
      break;
    case FIELD_BOOL: ret_bool(c, v->i != 0); break;
    case FIELD_FALSE: ret_bool(c, false); break;
    case FIELD_SCALAR: ret_scalar(c, v->f, node_kind(n, at)); break;
    case FIELD_TEXT: ret_choice(c, f.texts, width ? v->i : 0); break;
    case FIELD_DIM:
    case FIELD_DIMS: ret_dims(c, v->i, f.kind == FIELD_DIMS); break;
    case FIELD_INTS:
      if (f.count) ret_list(c, width, v);
      else ret_ints(c, (int)v->i, &v[1].i);
      break;
    case FIELD_REST: ret_ints(c, width, &v->i); break;
    case FIELD_WINDOW:
    case FIELD_OPTIONAL_WINDOW: ret_last(c, n, v, f.kind == FIELD_WINDOW || n->numbers[1].i); break;
    case FIELD_SIZES:
    case FIELD_NUMEL: ret_sizes(c, n, f.count, f.kind == FIELD_NUMEL); break;
    case FIELD_NONE: break;
  }
}

/* A field of this kind and place: see op_node_fields. */
void op_node_field(Call *c) {
  Node *n = arg_node(c);
  int kind = (int)arg_int(c, 1), place = (int)arg_int(c, 2),
      count = n && kind == '*' && place < n->n_saves ? n->n_saves - place : 0;
  Tensor **list = scratch_array((int64_t)count + 1, sizeof *list);
  if (!n || !list) return;
  for (int i = 0; i < count; i++) list[i] = saved_for_host(n, place + i);
  if (kind == '*') ret_tensors(c, count, list);
  else if (kind == '#') ret_item(c, saved_for_host(n, place));
  else if (kind == 't') ret_tensor(c, saved_for_host(n, place));
  else ret_number(c, n, place);
}

void op_edge_of(Call *c) {
  Tensor *t = arg_tensor(c, 0);
  if (!tensor_requires_grad(t))
    fail(
        ERR_RUNTIME,
        "It is not possible to get the gradient edge for a Tensor that does not require gradients");
  if (failed()) return;
  Edge e = tensor_edge(t); /* the host owns the reference */
  ret_int(c, (int64_t)(uintptr_t)e.node);
}

/* The host's metadata object of a node, set to argument 1 if there was none. If there is none
 * still, also the trace of the node's creation (the host's id, 0: not recorded), and the node whose
 * backward made it. */
void op_node_metadata(Call *c) {
  Node *n = arg_node(c);
  if (!n) return;
  if (!n->metadata) n->metadata = (int32_t)arg_int(c, 1);
  struct Origin *from = n->metadata ? NULL : n->origin;
  int64_t out[3] = {n->metadata, from ? from->trace : 0,
                    from && from->parent ? node_handle(from->parent) : 0};
  ret_ints(c, 3, out);
}

/* The dtype (-1: any) and sizes of a gradient of the k-th output; None past the last. */
void op_node_output(Call *c) {
  Node *n = arg_node(c);
  int64_t k = arg_int(c, 1);
  const OutputMeta *m = n && k >= 0 && k < n->n_outputs ? &n->outputs[k] : NULL;
  int64_t *out = m ? scratch_array((int64_t)m->ndim + 1, sizeof *out) : NULL;
  if (!out) return;
  out[0] = m->defined ? m->dtype : -1;
  memcpy(out + 1, output_sizes(m), m->ndim * sizeof *out);
  ret_ints(c, m->ndim + 1, out);
}

/* Runs the gradient function without hooks. */
void op_node_call(Call *c) {
  Node *n = arg_node(c);
  Tensors g = arg_tensors(c, 1);
  int wanted = n ? n->n_outputs ? n->n_outputs : 1 : 0;
  if (n && g.n != wanted) fail(ERR_TYPE, "expected %d arguments, got %d instead", wanted, g.n);
  Tensor **gi = failed() ? NULL : scratch_array(n->n_edges + 1, sizeof *gi);
  if (!gi) return;
  memset(gi, 0, (size_t)(n->n_edges + 1) * sizeof *gi);
  if (node_apply(n, g.v, gi)) ret_tensors(c, n->n_edges, gi);
}

void op_node_hook_add(Call *c) {
  Node *n = arg_node(c);
  if (n) node_add_hook(n, arg_bool(c, 2) ? AT_PRE : AT_POST, (int32_t)arg_int(c, 1), 0);
}

/* The node, and its hooks with it, may already be freed. */
void op_node_hook_remove(Call *c) {
  Node *n = (Node *)(uintptr_t)arg_int(c, 0);
  if (node_is(n)) node_remove_hook(n, (int32_t)arg_int(c, 1));
}

void op_running_node(Call *c) { ret_int(c, node_handle(node_running)); }

void op_task_id(Call *c) {
  int64_t id = walk_id();
  if (id < 0 && arg_bool(c, 0))
    fail(ERR_ASSERTION, "expected this hook to be called inside a backward call");
  else ret_int(c, id);
}

void op_task_order(Call *c) {
  Node **nodes;
  int n = walk_order(&nodes);
  int64_t *out = failed() ? NULL : scratch_array((int64_t)n + 1, sizeof *out);
  for (int i = 0; out && i < n; i++) out[i] = node_handle(nodes[i]);
  if (out) ret_ints(c, n, out);
}

void op_will_run(Call *c) {
  const Node *n = arg_node(c);
  if (n) ret_bool(c, walk_will_run(n));
}

void op_hook_add(Call *c) {
  tensor_hook_add(arg_tensor(c, 0), (int32_t)arg_int(c, 1), arg_bool(c, 2));
}

/* The ids of the hooks on a tensor's gradient in order, without hooks on several tensors. */
void op_hooks_of(Call *c) {
  const Tensor *t = arg_tensor(c, 0);
  const NodeHook *first = t->grad_fn ? t->grad_fn->hooks : NULL;
  const Hook *of_leaf = t->meta && !t->grad_fn ? t->meta->hooks : NULL;
  int64_t most = 0, n = 0;
  for (const Hook *h = of_leaf; h; h = h->next) most++;
  for (const NodeHook *h = first; h; h = h->next) most++;
  int64_t *ids = scratch_array(most + 1, sizeof *ids);
  if (!ids) return;
  for (const Hook *h = of_leaf; h; h = h->next)
    if (h->id > 0) ids[n++] = h->id;
  for (const NodeHook *h = first; h; h = h->next)
    if (h->point == AT_TENSOR && h->slot == t->output_nr && h->id > 0) ids[n++] = h->id;
  ret_ints(c, (int)n, ids);
}

void op_hook_remove(Call *c) {
  Tensor *t = arg_tensor(c, 0);
  int32_t id = (int32_t)arg_int(c, 1);
  Meta *m = t->meta;
  if (m && (hook_leaf_remove(&m->hooks, id) || hook_leaf_remove(&m->post_hooks, id))) return;
  if (t->grad_fn) node_remove_hook(t->grad_fn, id);
}

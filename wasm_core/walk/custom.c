/* Custom functions: the engine's part of PyTorch's autograd.Function.
 *
 * The host calls _custom_begin with the arguments of forward, runs forward with recording off, and
 * calls _custom_finish with the outputs, which gives them their history and saves tensors. The node
 * holds the host's object (ctx) by id while the node has references besides that object's: see
 * node_release. In a backward the engine stops at the node (task_asks) and the host runs the
 * function; inside another node (CopySlices) the function is a nested callback. */
#include "walk/custom.h"
#include "walk/walk.h"

#include <string.h>

#include "ground/memory.h"
#include "ops/op.h"
#include "tape/host.h"
#include "walk/forward.h"
#include "walk/services.h"

/* The numbers of a custom node: the count of forward's arguments; whether missing gradients become
 * zeros (1: all, 2: those of differentiable outputs); a bit for each argument, set for tensors. */
enum { CUSTOM_ARGS, CUSTOM_MATERIALIZE, CUSTOM_TENSORS, MOST_NESTED = 64 };

static bool was_tensor(const Node *n, int arg) {
  return n->numbers[CUSTOM_TENSORS + arg / 64].i >> (arg & 63) & 1;
}

/* ------------------------------------------------------------ types */

typedef struct Named {
  NodeType type;
  struct Named *next;
  char name[];
} Named;
static Named *named;

static void grad_custom(Node *n, Tensor **g, Tensor **gi) {
  Tensor *in[MOST_NESTED];
  int64_t words[MOST_NESTED];
  Ints given = {0, words};
  if (n->n_outputs > MOST_NESTED || n->n_edges > MOST_NESTED) {
    fail(ERR_NOT_IMPLEMENTED,
         "pygrad: a custom function done in place on a view may have %d tensors", MOST_NESTED);
    return;
  }
  if (!custom_gradients(n, g, in) ||
      !host_function(n->host, n->n_outputs, in, MOST_NESTED, words, &given.n))
    return;
  Tensor **made = custom_given(n, &given, host_told());
  for (int i = 0; made && i < n->n_edges; i++) {
    tensor_retain(made[i]);
    gi[i] = pool_push(made[i]);
  }
}

const NodeType *custom_type(const char *name) {
  for (Named *t = named; t; t = t->next)
    if (strcmp(t->name, name) == 0) return &t->type;
  size_t length = strlen(name) + 1;
  Named *t = mem_permanent(sizeof *t + length);
  if (!t) return NULL;
  memcpy(t->name, name, length);
  t->type = (NodeType){t->name, grad_custom, "", false, NULL, NULL};
  t->next = named;
  named = t;
  return &t->type;
}

/* ------------------------------------------------------------ before forward */

Tensors custom_tensors_at(const int64_t *handles, int64_t n) {
  Tensors list = {(int32_t)n, scratch_array((int64_t)n + 1, sizeof *list.v)};
  for (int i = 0; list.v && i < n; i++) {
    list.v[i] = handles[i] == 1 ? NULL : (Tensor *)(uintptr_t)handles[i];
    if (list.v[i] && !tensor_is(list.v[i]))
      fail(ERR_RUNTIME, "pygrad: a handle is not that of a live tensor");
  }
  if (!list.v) list.n = 0;
  return list;
}

/* Takes the id of the host's object, and the node's type followed by forward's arguments. Returns
 * [the node, or 0 if nothing is recorded; whether an argument has a tangent; for each argument
 * whether it requires grad]. */
void op_custom_begin(Call *c) {
  Ints words = arg_ints(c, 1);
  const NodeType *type = (const NodeType *)(uintptr_t)words.v[0];
  Tensors in = custom_tensors_at(words.v + 1, words.n - 1);
  if (failed()) return;
  int64_t *out = scratch_array((int64_t)in.n + 2, sizeof *out);
  Tensor **tensors = scratch_array((int64_t)in.n + 1, sizeof *tensors);
  int count = 0;
  if (!out || !tensors) return;
  out[1] = 0;
  for (int i = 0; i < in.n; i++) {
    out[i + 2] = in.v[i] && tensor_requires_grad(in.v[i]);
    out[1] |= forward_tangent(in.v[i]) != NULL;
    if (in.v[i]) tensors[count++] = in.v[i];
  }
  bool forward = forward_on;
  forward_on = false; /* the host handles its tangents */
  Node *n = node_new_list(type, 0, CUSTOM_TENSORS + (in.n + 63) / 64, count, tensors);
  forward_on = forward;
  if (failed()) { /* an argument is a view that allows no new history */
    node_drop(n);
    return;
  }
  out[0] = (int64_t)(uintptr_t)n;
  if (n) {
    n->kind = NODE_HOST;
    n->host = (int32_t)arg_int(c, 0);
    num_i(n, CUSTOM_ARGS, in.n);
    for (int i = 0; i < in.n; i++)
      if (in.v[i]) n->numbers[CUSTOM_TENSORS + i / 64].i |= (int64_t)(1ull << (i & 63));
  }
  ret_ints(c, in.n + 2, out);
}

/* ------------------------------------------------------------ after forward */

typedef struct {
  Node *n; /* NULL: nothing is recorded */
  Tensors inputs, outputs, dirty, constant, saves;
  bool separate; /* setup_context was used */
  int n_differentiable;
} Finish;

static bool is_among(const Tensors *list, const Tensor *t) {
  for (int i = 0; i < list->n; i++)
    if (list->v[i] == t) return true;
  return false;
}

static void give_edge(Tensor *y, Node *n, int k) {
  node_retain(n);
  Node *old = y->grad_fn;
  y->grad_fn = n;
  y->output_nr = k;
  node_release(old);
  if (tensor_is_view(y)) y->meta->view_version = tensor_version(y);
}

/* An input returned unchanged becomes a view of itself. */
static Tensor *same_again(const Finish *f, Tensor *x) {
  if (f->separate && is_among(&f->saves, x))
    return fail(
        ERR_RUNTIME,
        "An input that has been returned as-is as output is being saved for backward. This is not "
        "supported if you override setup_context. You should return and save a view of the input "
        "instead, e.g. with x.view_as(x) or setup ctx inside the forward function itself.");
  Tensor *v = NULL;
  WITHOUT_GRAD_BLOCK {
    v = tensor_alias(x, x->ndim, x->sizes, x->strides, x->offset);
    v = record_view(x, v, NULL, VIEW_PLAIN);
  }
  return v;
}

static Tensor *constant_output(const Finish *f, Tensor *y, bool is_input, bool modified) {
  if (!tensor_requires_grad(y)) return is_input && !modified ? same_again(f, y) : y;
  if (is_input) return t_detach(y);
  return tensor_is_view(y) ? y : t_detach_(y);
}

/* Makes the node the history of an input that forward wrote to. */
static Tensor *modified_output(const Finish *f, Tensor *y, int k, bool is_input) {
  /* Reads y->grad_fn, a view's node before the write: tensor_grad_fn would renew it for a write to
   * the base. */
  if (!y->grad_fn && tensor_requires_grad(y))
    return fail(ERR_RUNTIME,
                "a leaf Variable that requires grad has been used in an in-place operation.");
  if (!is_input)
    warn_user("ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that "
              "have been mutated should be passed to ctx.mark_dirty().");
  if (tensor_is_view(y) && f->outputs.n > 1)
    return fail(ERR_RUNTIME,
                "If your Function modifies inplace an input that is a view of another Tensor, your "
                "Function cannot return more than one Tensor. This is not supported by the current "
                "autograd engine. You should either make sure the input is not a view (using "
                ".clone() for example) or make your Function only return one Tensor (potentially "
                "splitting it into two Functions: one doing the inplace that returns a single "
                "Tensor and a second one that does the other operations). You can ask on the forum "
                "https://discuss.pytorch.org/ if you need help to do this change.");
  if (!history_check_rebase(y)) return NULL;
  Tensor *base = tensor_is_view(y) ? y->meta->base : NULL;
  if (base && tensor_is_leaf(base) && tensor_requires_grad(base))
    return fail(
        ERR_RUNTIME,
        "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  node_retain(f->n);
  record_rebase_output(y, f->n, k);
  return y;
}

static Tensor *finish_output(Finish *f, Tensor *y, int k) {
  bool is_input = is_among(&f->inputs, y), modified = is_among(&f->dirty, y);
  bool differentiable = f->n && dtype_is_inexact(tensor_dtype(y)) && !is_among(&f->constant, y);
  if (f->n && !node_describe(f->n, k, y, differentiable)) return NULL;
  f->n_differentiable += differentiable;
  if (!differentiable) y = constant_output(f, y, is_input, modified);
  else if (modified) y = modified_output(f, y, k, is_input);
  else {
    if (is_input) y = same_again(f, y);
    if (y) give_edge(y, f->n, k);
  }
  if (y && !(is_input && modified) && tensor_is_view(y)) y->meta->view_origin = VIEW_IN_CUSTOM;
  return y;
}

static bool finish_outputs(Finish *f, Tensor **out) {
  for (int i = 0; i < f->dirty.n; i++) tensor_bump_version(f->dirty.v[i]);
  for (int i = 0; i < f->outputs.n; i++) {
    out[i] = f->outputs.v[i] ? finish_output(f, f->outputs.v[i], i) : NULL;
    if (f->n && !f->outputs.v[i]) node_describe(f->n, i, NULL, false);
    if (failed()) return false;
  }
  for (int i = 0; i < f->outputs.n && f->n_differentiable > 1; i++)
    if (out[i] && tensor_is_view(out[i])) out[i]->meta->view_origin = VIEW_MULTI_OUTPUT;
  for (int i = 0; i < f->dirty.n; i++)
    if (!is_among(&f->outputs, f->dirty.v[i])) {
      fail(ERR_RUNTIME,
           "Some elements marked as dirty during the forward method were not returned as output. "
           "The inputs that are modified inplace must all be outputs of the Function.");
      return false;
    }
  return true;
}

static void finish_saves(const Finish *f) {
  if (!f->n || f->saves.n <= 0 || !node_make_saves(f->n, f->saves.n)) return;
  for (int i = 0; i < f->saves.n; i++) {
    Tensor *t = f->saves.v[i];
    if (!t) continue;
    if (t->grad_fn == f->n) save_output(f->n, i, t);
    else save(f->n, i, t);
  }
}

/* Reads the host's words for a call: the counts of inputs, outputs, written inputs, constant
 * outputs and tensors to save; whether setup_context was used; which missing gradients become
 * zeros; then all of these tensors. `odd` is the type of an object in them that is no tensor. */
static void read_finish(Finish *f, const int64_t *words, const char *odd) {
  enum { SAVES = 4, LISTS, HEAD = LISTS + 2 };
  static const char *const refusals[LISTS] = {
      NULL, NULL, "mark_dirty can only accept variables, but argument ",
      "mark_non_differentiable only accepts variable arguments, but got ",
      "save_for_backward can only save variables, but argument %d is of type %s"};
  Tensors *lists[LISTS] = {&f->inputs, &f->outputs, &f->dirty, &f->constant, &f->saves};
  const int64_t *at = words + HEAD;
  for (int i = 0; i < LISTS && !failed(); at += words[i++]) {
    *lists[i] = custom_tensors_at(at, words[i]);
    for (int k = 0; refusals[i] && (i < SAVES || f->n) && k < words[i]; k++)
      if (at[k] == 1 || (!at[k] && i < SAVES)) {
        fail(i < SAVES ? ERR_RUNTIME : ERR_TYPE, refusals[i], k, odd);
        break;
      }
  }
  f->separate = words[LISTS] != 0;
  num_i(f->n, CUSTOM_MATERIALIZE, words[LISTS + 1]);
}

/* Returns the outputs with their history, NULL for tensors that stay the same. */
void op_custom_finish(Call *c) {
  Finish f = {.n = (Node *)(uintptr_t)arg_int(c, 0)};
  read_finish(&f, arg_ints(c, 1).v, arg_str(c, 2));
  Tensor **out = failed() ? NULL : scratch_array((int64_t)f.outputs.n + 1, sizeof *out);
  if (!out || !finish_outputs(&f, out)) return;
  finish_saves(&f);
  for (int i = 0; i < f.outputs.n; i++)
    if (out[i] == f.outputs.v[i]) out[i] = NULL;
  if (!failed()) ret_tensors(c, f.outputs.n, out);
}

/* ------------------------------------------------------------ backward */

/* Returns the saved tensors; with argument 1 releases them. */
void op_custom_saved(Call *c) {
  Node *n = (Node *)(uintptr_t)arg_int(c, 0);
  Tensor **out = scratch_array((int64_t)n->n_saves + 1, sizeof *out);
  if (!out) return;
  if (n->freed) {
    saved_freed();
    return;
  }
  for (int i = 0; i < n->n_saves; i++) out[i] = saved_for_host(n, i);
  ret_tensors(c, n->n_saves, out);
  if (arg_bool(c, 1) && !failed()) node_release_saved(n);
}

void op_custom_saves(Call *c) {
  const Node *n = (const Node *)(uintptr_t)arg_int(c, 0);
  if (n->freed && n->kind == NODE_HOST) saved_freed();
  else ret_int(c, n->n_saves);
}

bool custom_gradients(const Node *n, Tensor *const *grads, Tensor **out) {
  for (int i = 0; i < n->n_outputs; i++) {
    const OutputMeta *m = &n->outputs[i];
    out[i] = grads[i];
    int64_t zeros = n->numbers[CUSTOM_MATERIALIZE].i;
    if (!grads[i] && m->described && (zeros == 1 || (zeros && m->defined)))
      out[i] = WITH_FORM(m->form, tensor_zeros(m->ndim, output_sizes(m), output_dtype(m)));
  }
  return !failed();
}

static void *wrong_count(const Node *n, int given) {
  return fail(ERR_RUNTIME,
              "function %s returned an incorrect number of gradients (expected %d, got %d)",
              n->type->name, (int)n->numbers[CUSTOM_ARGS].i, given);
}

Tensor **custom_given(Node *n, const Ints *given, const char *odd) {
  int count = given->n, wanted = (int)n->numbers[CUSTOM_ARGS].i, at = 0;
  /* further results may be None */
  while (count > wanted && !given->v[count - 1]) count--;
  if (count != wanted) return wrong_count(n, given->n);
  Tensor **gi = scratch_array((int64_t)n->n_edges + 1, sizeof *gi);
  for (int i = 0; gi && i < count; i++) {
    Tensor *g = (Tensor *)(uintptr_t)given->v[i];
    if (!was_tensor(n, i)) {
      if (g)
        return fail(ERR_RUNTIME,
                    "function %s returned a gradient different than None at position %d, but the "
                    "corresponding forward input was not a Variable",
                    n->type->name, i + 1);
      continue;
    }
    if (g && !tensor_is(g)) return fail(ERR_RUNTIME, "expected Variable or None (got %s)", odd);
    gi[at++] = g;
  }
  return gi;
}

/* ------------------------------------------------------------ forward mode */

/* The arguments of jvp: the tangents of forward's arguments, with zeros for missing ones if asked
 * for. */
void op_custom_tangents(Call *c) {
  Ints words = arg_ints(c, 0);
  Tensors in = custom_tensors_at(words.v, words.n);
  Tensor **out = scratch_array((int64_t)in.n + 1, sizeof *out);
  for (int i = 0; out && i < in.n; i++) {
    out[i] = forward_noted(in.v[i]);
    if (!out[i] && in.v[i] && arg_bool(c, 1) && dtype_is_inexact(tensor_dtype(in.v[i])))
      out[i] = t_zeros_like(in.v[i]);
  }
  if (out && !failed()) ret_tensors(c, in.n, out);
}

static const Tensor *base_of(const Tensor *t) { return tensor_is_view(t) ? t->meta->base : t; }

/* The first input that shares the view's base. */
static Tensor *sharer(const Finish *f, const Tensor *view) {
  for (int i = 0; i < f->inputs.n; i++)
    if (f->inputs.v[i] && base_of(f->inputs.v[i]) == base_of(view)) return f->inputs.v[i];
  return NULL;
}

/* Gives output y the tangent that jvp returned for it, unless jvp had to write to an existing
 * tangent. */
static void *carry(const Finish *f, int place, Tensor *y, Tensor *grad) {
  Tensor *raw = f->outputs.v[place];
  bool dirty = is_among(&f->dirty, raw);
  Tensor *written = dirty && is_among(&f->inputs, raw) ? forward_tangent(raw) : NULL;
  if (!raw || is_among(&f->constant, raw) || !dtype_is_inexact(tensor_dtype(y)))
    return !grad ? NULL
                 : fail(ERR_RUNTIME,
                        "Function's jvp returned a gradient at position %d, but  the corresponding "
                        "forward output is not a differentiable Tensor.You should return None at "
                        "that position instead.",
                        place);
  if (written && !forward_was_written(raw))
    return fail(ERR_RUNTIME,
                "An inplace custom Function is not modifying the forward mode gradients inplace. "
                "If the forward is modifying an input inplace, then the jvp function must modify "
                "the corresponding gradient inplace.");
  if (written && grad != written)
    return fail(ERR_RUNTIME,
                "An inplace custom Function is not returning the forward mode gradients as-is. If "
                "the forward is modifying an input inplace, then the jvp function must modify the "
                "gradient inplace and return it as-is.");
  if (written) return NULL;
  if (!grad)
    return fail(ERR_RUNTIME,
                "Expected both tensor and its forward grad to be floating point or complex");
  Tensor *x = dirty || !tensor_is_view(y) ? NULL : sharer(f, y), *t = forward_tangent(x);
  if (t && !tensor_is_view(grad))
    return fail(ERR_RUNTIME, "A custom Function's forward is returning a view (or an input as-is) "
                             "but the jvp is not returning a view.");
  if (t && base_of(grad) != base_of(t))
    return fail(ERR_RUNTIME,
                "A custom Function is returning a view but the jvp is not returning a view of the "
                "%sgiven grad input.",
                tensor_is_view(t) ? "same base as the " : "");
  if (x && !t) forward_write(y, grad); /* which gives x a tangent too */
  else forward_set(y, grad);
  return NULL;
}

/* Gives the saved form of an output its tangent. */
static void share_with_saved(Tensor *y) {
  Node *n = y ? y->grad_fn : NULL;
  for (int i = 0; n && n->kind == NODE_HOST && i < n->n_saves && !failed(); i++)
    if (n->saves[i].is_output && n->saves[i].value && n->saves[i].output_nr == y->output_nr)
      forward_share(y, n->saves[i].value);
}

/* Takes the words of op_custom_finish, the outputs with their history, and jvp's results as
 * handles; gives the outputs their tangents. */
void op_custom_carry(Call *c) {
  Finish f = {0};
  Ints outputs = arg_ints(c, 1), grads = arg_ints(c, 2);
  read_finish(&f, arg_ints(c, 0).v, NULL);
  for (int i = 0; i < grads.n; i++)
    if (grads.v[i] == 1)
      fail(ERR_RUNTIME, "expected Variable or None (got %s) for grad output %d.", arg_str(c, 3), i);
  if (grads.n != outputs.n)
    fail(ERR_RUNTIME,
         "Function's jvp returned an invalid number of forward gradients (expected %d but got %d)",
         outputs.n, grads.n);
  Tensors results = custom_tensors_at(outputs.v, outputs.n);
  for (int i = 0; i < results.n && !failed(); i++) {
    carry(&f, i, results.v[i], (Tensor *)(uintptr_t)grads.v[i]);
    share_with_saved(results.v[i]);
  }
}

/* ------------------------------------------------------------ functions that cannot be
 * differentiated twice */

static void grad_error(Node *n, Tensor **g, Tensor **gi) {
  (void)g;
  (void)gi;
  const Tensor *message = n->n_saves ? n->saves[0].value : NULL;
  fail(ERR_RUNTIME, "%s",
       message
           ? tensor_data(message)
           : "trying to differentiate twice a function that was marked with @once_differentiable");
}
static const NodeType Error = {"torch::autograd::Error", grad_error, "-", false, NULL, NULL};

/* Aliases of the tensors whose backward is an error. Without a message (bytes up to a 0) their
 * history begins at new leaves, with one at the tensors themselves. */
void op_delayed_error(Call *c) {
  Tensors in = arg_tensors(c, 0);
  Tensor **out = scratch_array((int64_t)in.n + 1, sizeof *out);
  if (!out) return;
  Node *n = NULL;
  Tensor *message = arg_tensor(c, 1);
  for (int i = 0; i < in.n && !message; i++) {
    out[i] = t_detach(in.v[i]);
    if (out[i]) out[i]->flags |= FLAG_REQUIRES_GRAD;
  }
  n = node_new_list(&Error, message != NULL, 0, in.n, message ? in.v : out);
  if (n && message) tensor_retain(n->saves[0].value = message); /* saved without hooks */
  for (int i = 0; i < in.n; i++) {
    out[i] = t_detach(in.v[i]);
    if (!n || !out[i] || !node_describe(n, i, out[i], true)) continue;
    give_edge(out[i], n, i);
  }
  node_release(n);
  ret_tensors(c, in.n, out);
}

/* ------------------------------------------------------------ tensors saved outside a graph */

static const NodeType SavedTensor = {
    "torch::autograd::SavedTensor", grad_error, "self", false, NULL, NULL};

/* Makes a node that only keeps a tensor, with the present saved tensor hooks. */
void op_save_tensor(Call *c) {
  Node *n = node_alone(&SavedTensor, 1);
  save(n, 0, arg_tensor(c, 0));
  if (n) saves_pack(n);
  if (failed()) node_drop(n);
  else ret_int(c, (int64_t)(uintptr_t)n);
}

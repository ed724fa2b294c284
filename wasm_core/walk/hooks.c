/* Hooks at nodes, and the accumulation of gradients into leaves; see hooks.h. */
#include "walk/hooks.h"

#include <string.h>

#include "ground/memory.h"
#include "ops/elementwise/elementwise.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "tape/forward.h"
#include "tape/host.h"

/* ------------------------------------------------------------ leaves */

/* PyTorch's layout contract: a dense leaf has gradients with its own strides, other leaves have
 * contiguous ones. */
static bool obeys_layout(const Tensor *g, const Tensor *leaf) {
  if (!tensor_is_dense(leaf)) return tensor_is_contiguous(g);
  for (int i = 0; i < leaf->ndim; i++)
    if (leaf->sizes[i] != 1 && leaf->strides[i] != g->strides[i]) return false;
  return true;
}

static Tensor *copy_in_layout(Tensor *g, Tensor *leaf) {
  const DType d = tensor_dtype(g);
  Tensor *y = WITH_FORM(g->form & FORM_ABSENT,
                        tensor_is_dense(leaf)
                            ? tensor_empty_strided(leaf->ndim, leaf->sizes, leaf->strides, d)
                            : tensor_empty(leaf->ndim, leaf->sizes, d));
  if (recording || by_ops) return t_copy_(y, g, true);
  return y && tensor_copy_data(y, g) ? y : NULL;
}

static bool set_grad(Tensor *leaf, Tensor *g) {
  Meta *m = tensor_meta(leaf);
  if (!m || !g) return false;
  tensor_retain(g);
  tensor_release(m->grad);
  m->grad = g;
  return true;
}

/* A sparse gradient is kept itself if its parts have no other owner, else copied; of indices alone
 * whose memory has another owner, these are copied. */
static Tensor *keep_sparse(Tensor *g, int32_t refs) {
  Sparse own = *g->meta->sparse;
  bool sole = g->refs <= refs && own.layout == LAYOUT_SPARSE_COO && own.values->refs == 1 &&
              own.indices->refs == 1 && own.values->storage->refs == 1 &&
              tensor_is_contiguous(own.values) && tensor_is_contiguous(own.indices);
  if (!sole || recording || forward_on) return t_clone(g);
  if (own.indices->storage->refs == 1) return t_detach(g);
  own.indices = t_clone(own.indices);
  return own.indices ? tensor_sparse(g->ndim, g->sizes, own) : NULL;
}

/* Adds g to the leaf's gradient, one of them sparse. A sum of both layouts is dense, and replaces a
 * sparse gradient instead of being written into it. */
static bool accumulate_sparse(Tensor *leaf, Tensor *old, Tensor *g) {
  Tensor *sum = is_sparse(old) && !is_sparse(g) ? t_add(g, old) : t_add(old, g);
  if (recording || is_sparse(old) != is_sparse(sum)) return set_grad(leaf, sum);
  if (!is_sparse(old)) return sum && t_copy_(old, sum, false);
  if (!sum || !tensor_take_parts(old, sum)) return false;
  tensor_bump_version(old);
  return true;
}

/* A separate contiguous tensor, if possible a copy-on-write snapshot. */
static Tensor *separate_gradient(Tensor *g) {
  bool shared = !recording && !forward_on && !is_sparse(g) && tensor_is_contiguous(g) &&
                tensor_covers_storage(g);
  return shared ? tensor_snapshot(g) : t_clone_format(g, FORMAT_CONTIGUOUS);
}

bool hooks_retain_into(Tensor *t, Tensor *g) {
  Tensor *old = t->meta ? t->meta->grad : NULL;
  return set_grad(t, old ? t_add(old, g) : separate_gradient(g));
}

/* `refs` is the number of references to g held by the caller and the pool; with no others g may be
 * kept itself. */
static bool accumulate(Tensor *leaf, Tensor *g, int32_t refs) {
  if (!(leaf->flags & FLAG_REQUIRES_GRAD)) return true; /* no longer a leaf that requires grad */
  Tensor *old = leaf->meta ? leaf->meta->grad : NULL;
  if (__builtin_expect(by_ops, 0) && !recording) {
    bool kept = !old && (g->form & FORM_HOSTED || any_layout || obeys_layout(g, leaf));
    Tensor *mine = kept ? detached_by_host(g) : NULL;
    if (mine) return set_grad(leaf, mine);
    if (old && added_by_host(old, g)) return true;
  }
  if (failed()) return false;
  if (old && (is_sparse(old) || is_sparse(g))) return accumulate_sparse(leaf, old, g);
  if (is_sparse(g)) return set_grad(leaf, keep_sparse(g, refs));
  if (!old) {
    bool sole = g->refs - is_cached(g) <= refs && g->storage->refs == 1 &&
                g->storage->bytes->refs == 1;
    if (recording || !sole || tensor_requires_grad(g) || forward_on ||
        !(any_layout || obeys_layout(g, leaf)))
      return set_grad(leaf, copy_in_layout(g, leaf));
    return set_grad(leaf, g->noted || is_cached(g) ? t_detach(g) : g);
  }
  if (recording) return set_grad(leaf, t_add(old, g));
  if (old->dtype == g->dtype && tensor_is_dense(old) && tensor_same_shape(old, g) &&
      !(old->flags & FLAGS_LAZY)) {
    destination = old;
    Tensor *y = t_add(old, g);
    destination = NULL;
    return y != NULL;
  }
  Tensor *y = t_add(old, g);
  return y && t_copy_(old, y, false);
}

/* ------------------------------------------------------------ hooks */

/* Whether a hook's result may replace a gradient. */
static __attribute__((noinline)) bool check_replacement(int32_t hook, const Tensor *old,
                                                        const Tensor *made) {
  if (!made || failed()) return true;
  if (!old) fail(ERR_RUNTIME, "can't replace a None gradient with a non-None value");
  else if (made->dtype != old->dtype)
    fail(ERR_RUNTIME,
         "hook '%s' has changed the type of value (was torch.%sTensor got torch.%sTensor)",
         host_name(hook), dtype_info[old->dtype].legacy, dtype_info[made->dtype].legacy);
  else if (!tensor_same_shape(old, made))
    fail(ERR_RUNTIME, "hook '%s' has changed the size of value", host_name(hook));
  return !failed();
}

/* The result of a hook on t; t itself if it returns nothing. */
static Tensor *ask_hook(HostCall kind, int32_t id, Tensor *t) {
  Tensor *out = NULL;
  int n_out = 0;
  if (!host_call(kind, id, 1, &t, 1, &out, &n_out) || !check_replacement(id, t, out)) return NULL;
  return n_out ? out : t;
}

Tensor *hook_run(int32_t id, Tensor *g) {
  return id < 0 ? several_hooks->run(id, g) : ask_hook(HOST_HOOK, id, g);
}

static bool run_post_hook(int32_t id, Tensor *leaf) {
  Tensor *out = ask_hook(HOST_POST_HOOK, id, leaf);
  if (out && out != leaf)
    fail(ERR_RUNTIME, "Tensor post accumulate grad hooks should return None.");
  return !failed();
}

static int lists_running; /* the number of running lists of hooks */
/* hooks removed while lists run; the host keeps their functions, which may be on a list */
static Hook *removed;

void hook_drop(int32_t id) {
  Hook *h = lists_running ? mem_alloc(sizeof *h) : NULL;
  if (h) {
    *h = (Hook){removed, id, 0};
    removed = h;
  } else host_drop(id);
}

bool hooks_done(int n_due) {
  lists_running -= n_due > 0;
  while (removed && !lists_running) {
    Hook *h = removed;
    removed = h->next;
    host_drop(h->id);
    mem_free(h, sizeof *h);
  }
  return !failed();
}

int hooks_due(const Node *n, HookPoint point, Due **due) {
  int count = 0;
  for (const NodeHook *h = n->hooks; h; h = h->next) count += h->point == point;
  *due = count ? scratch_array(count, sizeof **due) : NULL;
  if (!*due) return 0;
  lists_running++;
  count = 0;
  for (const NodeHook *h = n->hooks; h; h = h->next)
    if (h->point == point) (*due)[count++] = (Due){h->id, h->slot};
  return count;
}

static int due_leaf_hooks(const Hook *first, Due **due) {
  int count = 0;
  for (const Hook *h = first; h; h = h->next) count++;
  *due = count ? scratch_array(count, sizeof **due) : NULL;
  if (!*due) return 0;
  lists_running++;
  count = 0;
  for (const Hook *h = first; h; h = h->next) (*due)[count++] = (Due){h->id, 0};
  return count;
}

Tensor *hooks_run_leaf(const Tensor *leaf, Tensor *g) {
  Due *due;
  int n = leaf->meta && leaf->meta->hooks ? due_leaf_hooks(leaf->meta->hooks, &due) : 0;
  for (int i = 0; i < n && !failed(); i++) g = hook_run(due[i].id, g);
  return hooks_done(n) ? g : NULL;
}

bool hooks_run_node(Node *n, HookPoint point, int n_v, Tensor **v, int n_more,
                    Tensor *const *more) {
  Due *due;
  bool replaced;
  int n_due = n->hooks ? hooks_due(n, point, &due) : 0;
  Tensor **out = n_due ? scratch_array(n_v + 1, sizeof *out) : NULL;
  for (int i = 0; i < n_due && out; i++) {
    if (!host_node_hook(point == AT_PRE ? HOST_NODE_PRE_HOOK : HOST_NODE_HOOK, due[i].id, n_v, v,
                        n_more, more, out, &replaced))
      break;
    for (int k = 0; k < n_v && replaced; k++) check_replacement(due[i].id, v[k], out[k]);
    if (failed()) break;
    if (replaced) memcpy(v, out, (size_t)n_v * sizeof *v);
  }
  return hooks_done(n_due);
}

bool hooks_exist(const Node *n, HookPoint point) {
  for (const NodeHook *h = n->hooks; h; h = h->next)
    if (h->point == point) return true;
  return false;
}

bool hooks_run_pre(Node *n, int n_grads, Tensor **grads) {
  if (!hooks_exist(n, AT_PRE)) return true;
  Tensor **v = scratch_array(n_grads, sizeof *v);
  if (!v) return false;
  memcpy(v, grads, (size_t)n_grads * sizeof *v);
  if (!hooks_run_node(n, AT_PRE, n_grads, v, 0, NULL)) return false;
  for (int i = 0; i < n_grads; i++) {
    if (v[i] == grads[i]) continue;
    tensor_retain(v[i]);
    tensor_release(grads[i]);
    grads[i] = v[i];
  }
  return true;
}

bool hooks_run_accumulator(Node *n, Tensor *held) {
  Tensor *leaf = n->variable;
  int32_t mark = pool_mark();
  Tensor *g = hooks_run_leaf(leaf, held);
  bool ok = !failed() && hooks_run_node(n, AT_PRE, 1, &g, 0, NULL);
  ok = ok && (!g || accumulate(leaf, g, g == held ? 1 : 1 + (pool_mark() > mark)));
  Due *due;
  int n_due = ok && leaf->meta && leaf->meta->post_hooks
                  ? due_leaf_hooks(leaf->meta->post_hooks, &due)
                  : 0;
  for (int i = 0; i < n_due && ok; i++) ok = run_post_hook(due[i].id, leaf);
  hooks_done(n_due);
  ok = ok && hooks_run_node(n, AT_POST, 0, NULL, 1, &g);
  pool_release(mark, NULL);
  return ok && !failed();
}

/* ------------------------------------------------------------ adding and removing */

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

/* ------------------------------------------------------------ hooks */

bool hook_leaf_add(Hook **list, int32_t id) {
  Hook *h = mem_alloc(sizeof *h);
  if (!h) return false;
  *h = (Hook){NULL, id, 0};
  while (*list) list = &(*list)->next;
  *list = h;
  return true;
}

bool hook_leaf_remove(Hook **list, int32_t id) {
  for (; *list; list = &(*list)->next) {
    if ((*list)->id != id) continue;
    Hook *h = *list;
    *list = h->next;
    hook_drop(id);
    mem_free(h, sizeof *h);
    return true;
  }
  return false;
}

bool tensor_hook_add(Tensor *t, int32_t id, bool post) {
  Node *fn = tensor_requires_grad(t) ? tensor_grad_fn(t) : NULL;
  if (!tensor_requires_grad(t))
    fail(ERR_RUNTIME, "cannot register a hook on a tensor that doesn't require gradient");
  else if (post && fn)
    fail(ERR_RUNTIME, "post accumulate grad hooks cannot be registered on non-leaf tensors");
  if (failed()) return false;
  if (fn) return node_add_hook(fn, AT_TENSOR, id, t->output_nr) != NULL;
  Meta *m = tensor_meta(t);
  return m && hook_leaf_add(post ? &m->post_hooks : &m->hooks, id);
}

/* The walk back: from roots to leaves, newest node first.
 *
 * A backward (Task) finds every node that its roots reach, counts how many gradients each waits for, and runs
 * those that wait for none in the order of their sequence numbers, so that gradients and hooks come in
 * PyTorch's order. What a node needs while the task runs is its State; a backward inside a hook stacks a State of its
 * own on the same node and takes it away before it returns. Nothing recurses on the graph. */
#include <string.h>

#include "anomaly.h"
#include "elementwise.h"
#include "graph.h"
#include "host.h"
#include "memory.h"
#include "op.h"
#include "profile.h"

typedef struct Task Task;

typedef struct State {
  Task *task;
  struct State *below; /* of an outer task, on the same node */
  struct State *next;  /* all states of the task, for the end */
  Node *node;          /* owned: hooks may drop the graph while it is walked */
  Tensor **grads;      /* one an output, owned */
  Tensor *grad;        /* the storage of grads when there is one output */
  int32_t waiting;     /* gradients still to come */
  int32_t next_edge;   /* of the search */
  int32_t n_grads;
  bool needed;         /* its gradients are wanted: it runs or is captured */
  bool runs;           /* leads to an input that was asked for; true if none was */
  bool captures;       /* some of its gradients were asked for */
} State;

typedef struct {
  Node *node;
  int32_t slot;
  Tensor *value; /* owned */
} Capture;

struct Task {
  State *states;
  State **heap; /* ready, the highest sequence number first */
  int32_t heap_n, heap_cap;
  bool pruned; /* inputs were named */
  bool retain_graph, accumulate;
  int n_captures;
  Capture *captures;
  uint64_t capture_bits; /* a filter: the capture_bit of each captured node */
};

/* ------------------------------------------------------------ states */

static State *state_of(Task *task, const Node *n) {
  State *s = n->state;
  return s && s->task == task ? s : NULL;
}

bool needs(const Node *n, int input) {
  if (!n) return false;
  const Node *to = n->edges[input].node;
  if (!to) return false;
  const State *s = n->state, *t = to->state;
  if (!s || !s->task->pruned) return true;
  return t && t->task == s->task && t->needed;
}

static uint64_t capture_bit(const Node *n) { return 1ull << (((uintptr_t)n >> 4) & 63); }

static State *state_new(Task *task, Node *n) {
  State *s = mem_alloc_zero(sizeof *s);
  if (!s) return NULL;
  s->task = task;
  s->below = n->state;
  s->node = n;
  s->n_grads = n->n_outputs ? n->n_outputs : 1;
  s->grads = &s->grad;
  if (s->n_grads > 1) {
    s->grads = mem_alloc_zero((size_t)s->n_grads * sizeof *s->grads);
    if (!s->grads) {
      mem_free(s, sizeof *s);
      return NULL;
    }
  }
  s->needed = s->runs = !task->pruned;
  if (task->capture_bits & capture_bit(n))
    for (int i = 0; i < task->n_captures; i++)
      if (task->captures[i].node == n) s->needed = s->captures = true;
  node_retain(n);
  n->state = s;
  s->next = task->states;
  task->states = s;
  return s;
}

static void state_drop(State *s) {
  for (int i = 0; i < s->n_grads; i++) tensor_release(s->grads[i]);
  if (s->grads != &s->grad) mem_free(s->grads, (size_t)s->n_grads * sizeof *s->grads);
  s->node->state = s->below;
  node_release(s->node);
  mem_free(s, sizeof *s);
}

/* ------------------------------------------------------------ the ready heap */

static bool before(const State *a, const State *b) { return a->node->sequence > b->node->sequence; }

static bool heap_push(Task *task, State *s) {
  if (task->heap_n == task->heap_cap) {
    int32_t cap = task->heap_cap ? 2 * task->heap_cap : 32;
    State **grown = mem_alloc((size_t)cap * sizeof *grown);
    if (!grown) return false;
    if (task->heap_n) memcpy(grown, task->heap, (size_t)task->heap_n * sizeof *grown);
    mem_free(task->heap, (size_t)task->heap_cap * sizeof *grown);
    task->heap = grown;
    task->heap_cap = cap;
  }
  int32_t at = task->heap_n++;
  for (; at > 0 && before(s, task->heap[(at - 1) / 2]); at = (at - 1) / 2) task->heap[at] = task->heap[(at - 1) / 2];
  task->heap[at] = s;
  return true;
}

static State *heap_pop(Task *task) {
  State *top = task->heap[0], *last = task->heap[--task->heap_n];
  int32_t at = 0;
  for (;;) {
    int32_t child = 2 * at + 1;
    if (child >= task->heap_n) break;
    if (child + 1 < task->heap_n && before(task->heap[child + 1], task->heap[child])) child++;
    if (!before(task->heap[child], last)) break;
    task->heap[at] = task->heap[child];
    at = child;
  }
  task->heap[at] = last;
  return top;
}

/* ------------------------------------------------------------ the search */

/* Visits everything below n, children before parents: counts arrivals, and passes `needed` up. */
static bool search(Task *task, Node *root) {
  if (state_of(task, root)) return true;
  State *s = state_new(task, root);
  State **stack = NULL;
  int32_t n = 0, cap = 0;
  while (s) {
    if (s->next_edge < s->node->n_edges) {
      Node *to = s->node->edges[s->next_edge].node;
      if (!to) {
        s->next_edge++;
        continue;
      }
      State *t = state_of(task, to);
      if (t) { /* finished: the graph has no cycles */
        t->waiting++;
        s->runs = s->runs || t->needed;
        s->needed = s->needed || t->needed;
        s->next_edge++;
        continue;
      }
      if (n == cap) {
        int32_t grown_cap = cap ? 2 * cap : 64;
        State **grown = mem_alloc((size_t)grown_cap * sizeof *grown);
        if (!grown) break;
        if (n) memcpy(grown, stack, (size_t)n * sizeof *grown);
        mem_free(stack, (size_t)cap * sizeof *stack);
        stack = grown;
        cap = grown_cap;
      }
      stack[n++] = s;
      s = state_new(task, to);
      continue;
    }
    if (n == 0) break;
    s = stack[--n]; /* sees the child finished, and counts it */
  }
  mem_free(stack, (size_t)cap * sizeof *stack);
  return !failed();
}

/* ------------------------------------------------------------ gradients */

static bool sole_owner(const Tensor *t) {
  return t->refs == 1 && t->storage->refs == 1 && t->storage->bytes->refs == 1 && !t->storage->exports;
}

/* a + b into a buffer that owns a. In place when nobody else can see a. */
static Tensor *accumulated(Tensor *a, Tensor *b) {
  if (!grad_mode && sole_owner(a) && a->dtype == b->dtype && tensor_same_shape(a, b) && tensor_is_dense(a)) {
    destination = a;
    Tensor *y = t_add(a, b);
    destination = NULL;
    return y ? a : NULL;
  }
  return t_add(a, b);
}

/* Takes what the pool owns: the state holds its own reference. */
static bool deliver(State *s, int slot, Tensor *g) {
  if (!g) return !failed();
  Tensor *old = s->grads[slot];
  if (!old) {
    tensor_retain(g);
    s->grads[slot] = g;
    return true;
  }
  Tensor *sum = accumulated(old, g);
  if (!sum) return false;
  if (sum != old) {
    tensor_retain(sum);
    s->grads[slot] = sum;
    tensor_release(old);
  }
  return true;
}

static Tensor *invalid_gradient(Node *n, int index, const Tensor *g, const OutputMeta *m) {
  return fail(ERR_RUNTIME,
              "Function %s returned an invalid gradient at index %d - got %s but expected shape compatible with %s",
              n->type->name, index, shape_text(g), sizes_text(m->ndim, output_sizes(m)));
}

Tensor *gradient_fit(Node *n, int index, Tensor *g, const OutputMeta *m) {
  if (!g || failed() || !m->defined) return g;
  const int64_t *sizes = output_sizes(m);
  if (!sizes_equal(g->ndim, g->sizes, m->ndim, sizes)) {
    if (!sizes_expandable(m->ndim, sizes, g->ndim, g->sizes)) return invalid_gradient(n, index, g, m);
    g = t_sum_to(g, m->ndim, sizes);
  }
  if (g && g->dtype != m->dtype && dtype_is_float((DType)m->dtype)) g = t_to(g, (DType)m->dtype);
  return g;
}

/* ------------------------------------------------------------ leaves */

/* PyTorch's layout contract: a dense leaf has gradients of its own strides, any other contiguous ones. */
static bool obeys_layout(const Tensor *g, const Tensor *leaf) {
  if (!tensor_is_dense(leaf)) return tensor_is_contiguous(g);
  for (int i = 0; i < leaf->ndim; i++)
    if (leaf->sizes[i] != 1 && leaf->strides[i] != g->strides[i]) return false;
  return tensor_is_dense(g);
}

static Tensor *copy_in_layout(Tensor *g, Tensor *leaf) {
  if (grad_mode) return t_clone(g);
  Tensor *y = tensor_is_dense(leaf) ? tensor_empty_strided(leaf->ndim, leaf->sizes, leaf->strides, (DType)g->dtype)
                                    : tensor_empty(leaf->ndim, leaf->sizes, (DType)g->dtype);
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

/* retain_grad: a later backward adds to what an earlier one left. */
static bool retain_into(Tensor *t, Tensor *g) {
  Tensor *old = t->meta ? t->meta->grad : NULL;
  return set_grad(t, old ? t_add(old, g) : grad_mode ? g : t_detach(g));
}

/* `g` may be stolen if only the caller's `refs` references and the pool's know it. */
static bool accumulate(Tensor *leaf, Tensor *g, int32_t refs) {
  Tensor *old = leaf->meta ? leaf->meta->grad : NULL;
  if (!old) {
    bool sole = g->refs <= refs && g->storage->refs == 1 && g->storage->bytes->refs == 1;
    return set_grad(leaf, !grad_mode && sole && !g->grad_fn && (any_layout || obeys_layout(g, leaf)) ? g : copy_in_layout(g, leaf));
  }
  if (grad_mode) return set_grad(leaf, t_add(old, g));
  if (old->dtype == g->dtype && tensor_is_dense(old) && tensor_same_shape(old, g)) {
    destination = old;
    Tensor *y = t_add(old, g);
    destination = NULL;
    return y != NULL;
  }
  Tensor *y = t_add(old, g);
  return y && t_copy_(old, y, false);
}

static Tensor *run_hook(HostCall kind, int32_t id, Tensor *g) {
  Tensor *out = NULL;
  int n_out = 0;
  if (!host_call(kind, id, 1, &g, 1, &out, &n_out)) return NULL;
  return n_out ? out : g;
}

static bool run_accumulator(Node *n, Tensor **held) {
  Tensor *leaf = n->variable;
  int32_t mark = pool_mark();
  Tensor *g = *held;
  for (Hook *h = leaf->meta ? leaf->meta->hooks : NULL; h && g;) {
    Hook *next = h->next; /* a hook may remove itself */
    g = run_hook(HOST_HOOK, h->id, g);
    h = next;
  }
  bool ok = g && !failed() && accumulate(leaf, g, g == *held ? 1 : 1 + (pool_mark() > mark));
  for (Hook *h = ok && leaf->meta ? leaf->meta->post_hooks : NULL; h && ok;) {
    Hook *next = h->next;
    int n_out = 0;
    ok = host_call(HOST_POST_HOOK, h->id, 1, &leaf, 0, NULL, &n_out);
    h = next;
  }
  pool_release(mark, NULL);
  return ok && !failed();
}

/* ------------------------------------------------------------ running nodes */

bool node_apply(Node *n, Tensor **g, Tensor **gi) {
  bool any = false;
  int n_in = n->n_outputs ? n->n_outputs : 1;
  for (int i = 0; i < n_in; i++) any = any || g[i];
  if (!any && n->kind != NODE_HOST) return true;
  int32_t event = profiling ? profile_node_begin(PROFILE_NODE, n, n_in, g) : -1;
  if (saves_unwritten(n)) n->type->grad(n, g, gi);
  profile_end(event);
  return !failed();
}

static bool capture(Task *task, Node *n, int slot, Tensor *g) {
  for (int i = 0; i < task->n_captures; i++) {
    Capture *c = &task->captures[i];
    if (c->node != n || c->slot != slot || !g) continue;
    tensor_retain(g);
    tensor_release(c->value);
    c->value = g;
  }
  return true;
}

/* Hooks on the outputs' gradients, in order; then what retain_grad and the caller asked for. */
static bool before_node(Task *task, State *s) {
  Node *n = s->node;
  for (NodeHook *h = n->hooks; h;) {
    NodeHook *next = h->next;
    Tensor *g = h->slot < s->n_grads ? s->grads[h->slot] : NULL;
    if (h->point == AT_TENSOR && g) {
      g = run_hook(HOST_HOOK, h->id, g);
      if (!g) return false;
      tensor_retain(g);
      tensor_release(s->grads[h->slot]);
      s->grads[h->slot] = g;
    } else if (h->point == AT_RETAIN && g && h->retained && !retain_into(h->retained, g)) {
      return false;
    }
    h = next;
  }
  if (s->captures)
    for (int i = 0; i < s->n_grads; i++) capture(task, n, i, s->grads[i]);
  return true;
}

/* The gradients of an in-graph leaf are captured or accumulated instead of passed on. */
static bool run_leaf(Task *task, State *s) {
  if (!task->accumulate || (task->pruned && !s->captures)) {
    Tensor *g = s->grads[0];
    for (Hook *h = s->node->variable->meta ? s->node->variable->meta->hooks : NULL; h && g;) {
      Hook *next = h->next;
      g = run_hook(HOST_HOOK, h->id, g);
      h = next;
    }
    return failed() ? false : capture(task, s->node, 0, g);
  }
  return !s->grads[0] || run_accumulator(s->node, &s->grads[0]);
}

static bool pass_on(Task *task, Node *n, Tensor **gi) {
  for (int i = 0; i < n->n_edges; i++) {
    Edge *e = &n->edges[i];
    State *t = e->node ? state_of(task, e->node) : NULL;
    if (!t || !t->needed) continue;
    Tensor *g = gradient_fit(n, i, gi[i], &e->node->outputs[e->input_nr]);
    if (failed() || !deliver(t, e->input_nr, g)) return false;
    if (--t->waiting == 0 && !heap_push(task, t)) return false;
  }
  return true;
}

enum { FEW_EDGES = 8 };

static bool run_state(Task *task, State *s) {
  Node *n = s->node;
  if (n->kind == NODE_ACCUMULATE) return run_leaf(task, s);
  int32_t mark = pool_mark();
  size_t scratch = scratch_mark();
  bool ok = before_node(task, s);
  if (ok && s->runs) {
    Tensor *few[FEW_EDGES] = {NULL};
    Tensor **gi = few;
    if (n->n_edges > FEW_EDGES) {
      gi = scratch_alloc(n->n_edges * sizeof *gi);
      if (gi) memset(gi, 0, n->n_edges * sizeof *gi);
    }
    ok = gi && node_apply(n, s->grads, gi);
    for (int i = 0; i < s->n_grads; i++) { /* spent: what is passed on unchanged may be stolen */
      pool_push(s->grads[i]);
      s->grads[i] = NULL;
    }
    bool nan = ok && anomaly_mode && anomaly_check_nan && anomaly_has_nan(n, gi);
    ok = ok && !nan && pass_on(task, n, gi);
    if ((ok || nan) && !task->retain_graph) node_release_saved(n);
  }
  pool_release(mark, NULL);
  scratch_release(scratch);
  return ok;
}

static bool run_profiled(Task *task, State *s) {
  int32_t evaluation = profile_node_begin(PROFILE_EVALUATION, s->node, 0, NULL);
  int32_t leaf = s->node->kind == NODE_ACCUMULATE ? profile_node_begin(PROFILE_NODE, s->node, 1, s->grads) : -1;
  bool ok = run_state(task, s);
  profile_end(leaf);
  profile_end(evaluation);
  return ok;
}

/* ------------------------------------------------------------ backward */

static bool root_gradient(int index, Tensor *root, Tensor *given, Tensor **out) {
  if (!tensor_requires_grad(root)) {
    fail(ERR_RUNTIME, "element %d of tensors does not require grad and does not have a grad_fn", index);
    return false;
  }
  if (given) {
    if (!tensor_same_shape(root, given)) {
      fail(ERR_RUNTIME, "Mismatch in shape: grad_output[%d] has a shape of torch.Size(%s) and output[%d] has a shape of torch.Size(%s).",
           index, shape_text(given), index, shape_text(root));
      return false;
    }
    *out = given;
    return true;
  }
  if (root->numel != 1) {
    fail(ERR_RUNTIME, "grad can be implicitly created only for scalar outputs");
    return false;
  }
  *out = tensor_full(root->ndim, root->sizes, (DType)root->dtype, 1);
  return *out != NULL;
}

static bool start(Task *task, int n, Tensor *const *roots, Tensor *const *grads) {
  for (int i = 0; i < n; i++) {
    Tensor *g = NULL;
    int32_t mark = pool_mark();
    if (!root_gradient(i, roots[i], grads ? grads[i] : NULL, &g)) return false;
    Edge e = tensor_edge(roots[i]);
    bool ok = e.node && search(task, e.node);
    if (ok) {
      State *s = state_of(task, e.node);
      g = gradient_fit(e.node, e.input_nr, g, &e.node->outputs[e.input_nr]);
      ok = g && deliver(s, e.input_nr, g);
    }
    node_release(e.node);
    pool_release(mark, NULL);
    if (!ok) return false;
  }
  return true;
}

/* Every root that waits for no other is ready at the start. */
static bool push_roots(Task *task, int n, Tensor *const *roots) {
  for (int i = 0; i < n; i++) {
    Edge e = tensor_edge(roots[i]);
    State *s = e.node ? state_of(task, e.node) : NULL;
    bool ok = s != NULL;
    if (ok && s->waiting == 0) {
      s->waiting = -1; /* once */
      ok = heap_push(task, s);
    }
    node_release(e.node);
    if (!ok) return false;
  }
  return true;
}

static void finish(Task *task) {
  while (task->states) {
    State *s = task->states;
    task->states = s->next;
    state_drop(s);
  }
  mem_free(task->heap, (size_t)task->heap_cap * sizeof *task->heap);
}

static bool walk(Task *task, int n_roots, Tensor *const *roots, Tensor *const *grads) {
  if (!start(task, n_roots, roots, grads) || !push_roots(task, n_roots, roots)) return false;
  Node *outer = node_running;
  bool ok = true;
  while (ok && task->heap_n) {
    State *s = heap_pop(task);
    node_running = s->node;
    ok = (profiling ? run_profiled : run_state)(task, s);
    if (!ok && anomaly_mode) anomaly_report(s->node);
  }
  node_running = outer;
  return ok;
}

static bool find_captures(Task *task, int n, Tensor *const *inputs) {
  for (int i = 0; i < n; i++) {
    if (!tensor_requires_grad(inputs[i])) {
      fail(ERR_RUNTIME, "One of the differentiated Tensors does not require grad");
      return false;
    }
    Edge e = tensor_edge(inputs[i]);
    if (!e.node) return false;
    task->captures[i] = (Capture){e.node, e.input_nr, NULL};
    task->n_captures++;
    task->capture_bits |= capture_bit(e.node);
    if (task->accumulate && e.node->kind != NODE_ACCUMULATE && !tensor_retain_grad(inputs[i])) return false;
  }
  return true;
}

static bool unused(const Task *task, bool allow, Tensor **captured) {
  for (int i = 0; i < task->n_captures; i++) {
    captured[i] = task->captures[i].value;
    if (captured[i]) {
      tensor_retain(captured[i]);
      pool_push(captured[i]);
    } else if (!allow) {
      fail(ERR_RUNTIME,
           "The differentiated Tensor at index %d appears to not have been used in the graph. Set allow_unused=True if this is "
           "the desired behavior.", i);
      return false;
    }
  }
  return true;
}

bool engine_backward(int n_roots, Tensor *const *roots, Tensor *const *grads, bool retain_graph, bool create_graph,
                     int n_inputs, Tensor *const *inputs, bool accumulate_, bool allow_unused, Tensor **captured) {
  if (failed()) return false;
  Task task = {.retain_graph = retain_graph, .accumulate = accumulate_, .pruned = n_inputs > 0};
  size_t scratch = scratch_mark();
  if (n_inputs) task.captures = scratch_alloc((size_t)n_inputs * sizeof *task.captures);
  bool was = grad_mode;
  bool ok = !failed() && find_captures(&task, n_inputs, inputs);
  grad_mode = create_graph && !inference_mode;
  ok = ok && walk(&task, n_roots, roots, grads);
  grad_mode = was;
  finish(&task);
  ok = ok && (!captured || unused(&task, allow_unused, captured));
  for (int i = 0; i < task.n_captures; i++) {
    tensor_release(task.captures[i].value);
    node_release(task.captures[i].node);
  }
  scratch_release(scratch);
  return ok;
}

/* The walk back: from roots to leaves, newest node first.
 *
 * A backward (Task) finds every node that its roots reach, counts the gradients that each waits
 * for, and runs the nodes that wait for none in the order of their sequence numbers, so that
 * gradients and hooks come in PyTorch's order. A State holds a node's data during a task; tasks may
 * nest, each with its own State of a node. Nothing recurses on the graph. At a custom node the walk
 * stops and returns: the host runs the node's function without a frame of the engine on the stack,
 * so that backwards may nest as deep as the host allows. */
#include <string.h>

#include "ground/memory.h"
#include "ground/poll.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/op.h"
#include "tape/anomaly.h"
#include "tape/forward.h"
#include "tape/graph.h"
#include "tape/host.h"
#include "tape/profile.h"
#include "walk/hooks.h"
#include "walk/walk.h"
#include "walk/watch.h"

typedef struct State {
  Visit visit;        /* the part that the tape sees */
  struct State *next; /* in the list of the task's states */
  Node *node;         /* owned: hooks may drop the graph while it is walked */
  Tensor **grads;     /* one for each output, owned */
  Tensor *grad;       /* the storage of grads when there is one output */
  int32_t waiting;    /* gradients still to come */
  int32_t arrivals;   /* initial value of `waiting`, for the next row */
  int32_t next_edge;  /* the position of the search */
  int32_t n_grads;
  bool runs;                 /* leads to a requested input; true if none was named */
  bool captures;             /* some of its gradients were requested */
  int32_t evaluation, event; /* 1 + the profile's events while the host runs its function */
} State;

typedef struct {
  Node *node;
  int32_t slot;
  Tensor *value; /* owned */
  Tensor *input; /* the input, owned; NULL for an edge */
} Capture;

/* State of a task that walks its graph several times, from different gradients. */
typedef struct {
  int32_t n, at; /* the number of walks, and the current one */
  int32_t n_roots;
  Edge *roots; /* owned */
  /* one for each root, owned, with a row for each walk (NULL: ones); NULL: unit vectors */
  Tensor **seeds;
  Tensor **found; /* the results of each walk, row by row, owned */
  bool retain_last;
} Rows;

struct Task {
  State *states;
  State **heap; /* ready states, the highest sequence number first */
  int32_t heap_n, heap_cap;
  State *asks; /* the custom node whose function the host must run next */
  Task *next_waiting;
  bool pruned; /* inputs were named */
  bool retain_graph, create_graph, accumulate, allow_unused, materialize;
  uint64_t since; /* older nodes are ignored */
  int32_t mark;   /* the pool's mark before the results of the host's function */
  int n_captures, n_roots, n_inputs;
  Capture *captures;
  int64_t work;          /* elements of gradients, plus some for each node */
  uint64_t capture_bits; /* a filter: the capture_bit of each captured node */
  int64_t id;
  Rows *rows;      /* NULL: one walk */
  Course *course;  /* continued after it; owned */
  Hook *callbacks; /* the host's functions to call at its end, in order */
  bool whole;      /* neither it nor an outer task was given inputs */
};

/* while the host runs a custom function: the task that asked for it */
static Task *running_task;
static Task *waiting; /* tasks waiting for custom functions, the last one first */
static int32_t depth; /* the number of nested tasks */
static int64_t n_tasks;

/* ------------------------------------------------------------ states */

static State *state_of(const Task *task, const Node *n) { return (State *)visit_of(task, n); }

static uint64_t capture_bit(const Node *n) { return 1ull << (((uintptr_t)n >> 4) & 63); }

static State *state_new(Task *task, Node *n) {
  State *s = mem_alloc_zero(sizeof *s);
  if (!s) return NULL;
  s->visit.task = task;
  s->visit.below = n->state;
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
  s->visit.needed = s->runs = !task->pruned;
  if (task->capture_bits & capture_bit(n))
    for (int i = 0; i < task->n_captures; i++)
      if (task->captures[i].node == n) s->visit.needed = s->captures = true;
  /* an input's own node runs too, as in PyTorch */
  s->runs = s->runs || (s->captures && task->accumulate);
  node_retain(n);
  n->state = s;
  s->next = task->states;
  task->states = s;
  return s;
}

static void state_drop(State *s) {
  for (int i = 0; i < s->n_grads; i++) tensor_release(s->grads[i]);
  if (s->grads != &s->grad) mem_free(s->grads, (size_t)s->n_grads * sizeof *s->grads);
  Visit *above = s->node->state;
  if (above == &s->visit) s->node->state = s->visit.below;
  else {
    while (above->below != &s->visit) above = above->below;
    above->below = s->visit.below;
  }
  node_release(s->node);
  mem_free(s, sizeof *s);
}

/* ------------------------------------------------------------ the ready heap */

static bool is_before(const State *a, const State *b) {
  return a->node->sequence > b->node->sequence;
}

__attribute__((noinline)) static bool heap_push(Task *task, State *s) {
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
  for (; at > 0 && is_before(s, task->heap[(at - 1) / 2]); at = (at - 1) / 2)
    task->heap[at] = task->heap[(at - 1) / 2];
  task->heap[at] = s;
  return true;
}

__attribute__((noinline)) static State *heap_pop(Task *task) {
  State *top = task->heap[0], *last = task->heap[--task->heap_n];
  int32_t at = 0;
  for (;;) {
    int32_t child = 2 * at + 1;
    if (child >= task->heap_n) break;
    if (child + 1 < task->heap_n && is_before(task->heap[child + 1], task->heap[child])) child++;
    if (!is_before(task->heap[child], last)) break;
    task->heap[at] = task->heap[child];
    at = child;
  }
  task->heap[at] = last;
  return top;
}

/* ------------------------------------------------------------ the search */

/* Visits all nodes below root, children before parents: counts arrivals, and passes `needed` up. */
static bool search(Task *task, Node *root) {
  if (state_of(task, root)) return true;
  State *s = state_new(task, root);
  State **stack = NULL;
  int32_t n = 0, cap = 0;
  while (s) {
    if (s->next_edge < s->node->n_edges) {
      Node *to = s->node->edges[s->next_edge].node;
      if (!to || to->sequence < task->since) {
        s->next_edge++;
        continue;
      }
      State *t = state_of(task, to);
      if (t) { /* finished, as the graph has no cycles */
        t->waiting++;
        s->runs = s->runs || t->visit.needed;
        s->visit.needed = s->visit.needed || t->visit.needed;
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
    s = stack[--n]; /* the loop finds the child finished and counts it */
  }
  mem_free(stack, (size_t)cap * sizeof *stack);
  return !failed();
}

/* ------------------------------------------------------------ gradients */

static bool sole_owner(const Tensor *t) {
  return t->refs == 1 && !(t->flags & FLAGS_LAZY) && !t->form && t->storage->refs == 1 &&
         t->storage->bytes->refs == 1 && !t->storage->exports;
}

/* a + b for a buffer that owns a; in place if a has no other owner. */
static Tensor *accumulate_into(Tensor *a, Tensor *b) {
  if (is_sparse(a) && !is_sparse(b)) return t_add(b, a);
  if (!grad_mode && !b->form && sole_owner(a) && a->dtype == b->dtype && tensor_same_shape(a, b) &&
      tensor_is_dense(a)) {
    destination = a;
    Tensor *y = t_add(a, b);
    destination = NULL;
    return y ? a : NULL;
  }
  return t_add(a, b);
}

/* Adds g, which the pool owns, to a gradient of s. */
static bool deliver(State *s, int slot, Tensor *g) {
  if (!g) return !failed();
  s->visit.task->work += 64 + g->numel;
  Tensor *old = s->grads[slot];
  if (!old) {
    tensor_retain(g);
    s->grads[slot] = g;
    return true;
  }
  Tensor *sum = accumulate_into(old, g);
  if (!sum) return false;
  if (sum != old) {
    tensor_retain(sum);
    s->grads[slot] = sum;
    tensor_release(old);
  }
  return true;
}

/* ------------------------------------------------------------ running nodes */

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

static bool has_hook(const Node *n, int32_t id) {
  const NodeHook *h = n->hooks;
  while (h && h->id != id) h = h->next;
  return h;
}

/* Runs the hooks on the outputs' gradients in order, then fills retained .grad and captures
 * gradients. */
static bool before_node(Task *task, State *s) {
  Node *n = s->node;
  Due *due;
  int n_due = n->hooks ? hooks_due(n, AT_TENSOR, &due) : 0;
  for (int i = 0; i < n_due && !failed(); i++) {
    for (int k = i;
         k < n_due && (i == 0 || due[i].slot != due[i - 1].slot) && due[k].slot == due[i].slot; k++)
      /* skips hooks removed before the first hook of their output ran */
      if (i && !has_hook(n, due[k].id)) due[k].id = 0;
    Tensor **at = due[i].id && due[i].slot < s->n_grads ? &s->grads[due[i].slot] : NULL;
    if (!at) continue;
    Tensor *g = hook_run(due[i].id, *at); /* hooks see an undefined gradient too: None */
    if (g == *at || failed()) continue;
    tensor_retain(g);
    tensor_release(*at);
    *at = g;
  }
  if (!hooks_done(n_due)) return false;
  for (NodeHook *h = n->hooks; h; h = h->next) { /* no callback runs in this loop */
    Tensor *g = h->point == AT_RETAIN && h->slot < s->n_grads ? s->grads[h->slot] : NULL;
    if (g && h->retained && !hooks_retain_into(h->retained, g)) return false;
  }
  if (s->captures)
    for (int i = 0; i < s->n_grads; i++) capture(task, n, i, s->grads[i]);
  return !failed();
}

/* Captures or accumulates the gradient of a leaf. */
static bool run_leaf(Task *task, State *s) {
  if (!task->accumulate || (task->pruned && !s->captures)) {
    Tensor *g = hooks_run_leaf(s->node->variable, s->grads[0]);
    return failed() ? false : capture(task, s->node, 0, g);
  }
  return hooks_run_accumulator(s->node, s->grads[0]);
}

/* Runs post-hooks, which see the gradients to pass on and may replace them. */
static bool run_posthooks(Task *task, Node *n, Tensor **gi, int n_grads, Tensor *const *grads) {
  if (!n->hooks || !hooks_exist(n, AT_POST)) return true;
  for (int i = 0; i < n->n_edges; i++) {
    const Edge *e = &n->edges[i];
    State *t = e->node ? state_of(task, e->node) : NULL;
    if (t && t->visit.needed) gi[i] = gradient_fit(n, i, gi[i], &e->node->outputs[e->input_nr]);
    /* hooks of a custom function see all results */
    else if (n->kind != NODE_HOST) gi[i] = NULL;
  }
  return !failed() && hooks_run_node(n, AT_POST, n->n_edges, gi, n_grads, grads);
}

static bool pass_on(Task *task, Node *n, Tensor **gi) {
  for (int i = 0; i < n->n_edges; i++) {
    Edge *e = &n->edges[i];
    State *t = e->node ? state_of(task, e->node) : NULL;
    if (!t || !t->visit.needed) continue;
    Tensor *g = gradient_fit(n, i, gi[i], &e->node->outputs[e->input_nr]);
    if (failed() || !deliver(t, e->input_nr, g)) return false;
    if (--t->waiting == 0 && !heap_push(task, t)) return false;
  }
  return true;
}

enum { FEW_EDGES = 8 };

/* The steps after a node's gradient function: post-hooks, checks, passing on. */
static bool finish_state(Task *task, State *s, Tensor **gi) {
  Node *n = s->node;
  bool ok = run_posthooks(task, n, gi, s->n_grads, s->grads);
  for (int i = 0; i < s->n_grads; i++) { /* so that an unchanged gradient may be reused */
    pool_push(s->grads[i]);
    s->grads[i] = NULL;
  }
  bool nan = ok && anomaly_mode && anomaly_check_nan && anomaly_has_nan(n, gi);
  ok = ok && !nan && pass_on(task, n, gi);
  if ((ok || nan) && !task->retain_graph) node_release_saved(n);
  return ok;
}

static bool run_function(Task *task, State *s) {
  Node *n = s->node;
  Tensor *few[FEW_EDGES] = {NULL};
  Tensor **gi = few;
  if (n->n_edges > FEW_EDGES) {
    gi = scratch_array(n->n_edges, sizeof *gi);
    if (!gi) return false;
    memset(gi, 0, n->n_edges * sizeof *gi);
  }
  return node_apply(n, s->grads, gi) && finish_state(task, s, gi);
}

static bool run_state(Task *task, State *s) {
  Node *n = s->node;
  int32_t mark = pool_mark();
  size_t scratch = scratch_mark();
  if (n->kind == NODE_ACCUMULATE) {
    bool done = run_leaf(task, s);
    tensor_release(s->grads[0]); /* so that another leaf with the same gradient may take it over */
    s->grads[0] = NULL;
    scratch_release(scratch);
    return done;
  }
  bool ok = before_node(task, s);
  if (ok && s->runs) ok = hooks_run_pre(n, s->n_grads, s->grads);
  if (ok && s->runs && n->kind == NODE_HOST) task->asks = s;
  else if (ok && s->runs) ok = run_function(task, s);
  pool_release(mark, NULL);
  scratch_release(scratch);
  return ok;
}

static bool run_profiled(Task *task, State *s) {
  int32_t evaluation = profile_node_begin(PROFILE_EVALUATION, s->node, 0, NULL);
  int32_t leaf = s->node->kind == NODE_ACCUMULATE
                     ? profile_node_begin(PROFILE_NODE, s->node, 1, s->grads)
                     : -1;
  bool ok = run_state(task, s);
  if (ok && task->asks) { /* both events stay open while the host runs the function */
    s->evaluation = 1 + evaluation;
    s->event = 1 + profile_node_begin(PROFILE_NODE, s->node, s->n_grads, s->grads);
    return true;
  }
  profile_end(leaf);
  profile_end(evaluation);
  return ok;
}

/* Continues after the host has run the function. */
static bool resume_state(Task *task, State *s, Tensor **gi) {
  if (s->event) profile_end(s->event - 1);
  bool ok = finish_state(task, s, gi);
  if (s->evaluation) profile_end(s->evaluation - 1);
  return ok;
}

/* ------------------------------------------------------------ backward */

bool walk_check_kind(int index, DType dtype, const Tensor *given) {
  if (given && dtype_is_complex(tensor_dtype(given)) != dtype_is_complex(dtype))
    fail(ERR_RUNTIME,
         "For complex Tensors, both grad_output and output are required to have the same dtype. "
         "Mismatch in dtype: grad_output[%d] has a dtype of torch.%s and output[%d] has a dtype of "
         "torch.%s.",
         index, dtype_info[given->dtype].name, index, dtype_info[dtype].name);
  else if (!given && dtype_is_complex(dtype))
    fail(ERR_RUNTIME,
         "grad can be implicitly created only for real scalar outputs but got torch.%s",
         dtype_info[dtype].name);
  return !failed();
}

static bool check_root(int index, int ndim, const int64_t *sizes, DType dtype,
                       const Tensor *given) {
  if (given && !sizes_equal(ndim, sizes, given->ndim, given->sizes))
    fail(ERR_RUNTIME,
         "Mismatch in shape: grad_output[%d] has a shape of torch.Size(%s) and output[%d] has a "
         "shape of torch.Size(%s).",
         index, shape_text(given), index, sizes_text(ndim, sizes));
  else if (!given && sizes_numel(ndim, sizes) != 1)
    fail(ERR_RUNTIME, "grad can be implicitly created only for scalar outputs");
  return !failed() && walk_check_kind(index, dtype, given);
}

/* The gradient that a root starts from; one for a single element. */
static Tensor *root_gradient(int index, const OutputMeta *m, Tensor *given) {
  if ((m->defined || !given) &&
      !check_root(index, m->ndim, output_sizes(m), output_dtype(m), given))
    return NULL;
  return given ? given
               : WITH_FORM(m->form, tensor_full(m->ndim, output_sizes(m), output_dtype(m), 1));
}

bool walk_check_gradients(const GraphWalk *w, int n) {
  for (int i = 0; i < n && !failed(); i++) {
    const Tensor *t = w->roots[i].tensor, *given = w->grads ? w->grads[i] : NULL;
    if (!t || (!given && !tensor_requires_grad(t))) continue;
    if (!w->n_rows) check_root(i, t->ndim, t->sizes, tensor_dtype(t), given);
    else if (!given && t->numel) walk_check_kind(i, tensor_dtype(t), NULL); /* of each element */
  }
  return !failed();
}

/* In PyTorch's order: the gradients of all roots, then the roots; inputs come later. */
static bool check_roots(const GraphWalk *w) {
  if (!walk_check_gradients(w, w->n_roots)) return false;
  for (int i = 0; i < w->n_roots; i++)
    if (w->roots[i].tensor && !tensor_requires_grad(w->roots[i].tensor))
      fail(ERR_RUNTIME, "element %d of tensors does not require grad and does not have a grad_fn",
           i);
  return !failed();
}

/* The edge of an end, owned. */
static Edge end_edge(const GraphEnd *end) {
  if (end->tensor) return tensor_edge(end->tensor);
  node_retain(end->edge.node);
  return end->edge;
}

/* Delivers the gradient that a root starts from. */
static bool seed(Task *task, Edge root, Tensor *g) {
  g = g ? gradient_fit(root.node, root.input_nr, g, &root.node->outputs[root.input_nr]) : NULL;
  return g && deliver(state_of(task, root.node), root.input_nr, g);
}

/* Makes a root ready that waits for no other gradient. */
static bool push_root(Task *task, Node *n) {
  State *s = n ? state_of(task, n) : NULL;
  if (!s || s->waiting) return s != NULL;
  s->waiting = -1; /* pushed only once */
  return heap_push(task, s);
}

static bool start_root(Task *task, const GraphWalk *w, int i) {
  int32_t mark = pool_mark();
  Edge e = end_edge(&w->roots[i]);
  bool ok = e.node && (uint32_t)e.input_nr < (e.node->n_outputs ? e.node->n_outputs : 1u);
  if (e.node && !ok) fail(ERR_INDEX, "tuple index out of range");
  if (ok && task->rows) {
    node_retain(e.node);
    task->rows->roots[task->rows->n_roots++] = e;
    ok = search(task, e.node);
  } else if (ok) {
    Tensor *given = w->grads ? w->grads[i] : NULL;
    if (!given && w->roots[i].tensor && w->roots[i].tensor->numel == 1)
      given = dispatch_ones_like(w->roots[i].tensor);
    Tensor *g = root_gradient(i, &e.node->outputs[e.input_nr], given);
    ok = g && search(task, e.node) && seed(task, e, g);
  }
  node_release(e.node);
  pool_release(mark, NULL);
  return ok;
}

static bool push_roots(Task *task, const GraphWalk *w) {
  bool ok = true;
  for (int i = 0; i < w->n_roots && ok; i++) {
    Edge e = end_edge(&w->roots[i]);
    ok = push_root(task, e.node);
    node_release(e.node);
  }
  return ok;
}

/* ------------------------------------------------------------ rows */

static bool rows_new(Task *task, const GraphWalk *w) {
  Rows *r = task->rows = mem_alloc_zero(sizeof *r);
  if (!r) return false;
  *r = (Rows){.n = w->n_rows, .retain_last = w->retain_graph};
  r->roots = mem_alloc_zero((size_t)w->n_roots * sizeof *r->roots);
  r->found = mem_alloc_zero((size_t)r->n * (size_t)w->n_inputs * sizeof *r->found);
  r->seeds = w->grads ? mem_alloc_zero((size_t)w->n_roots * sizeof *r->seeds) : NULL;
  for (int i = 0; r->seeds && i < w->n_roots; i++) tensor_retain(r->seeds[i] = w->grads[i]);
  return !failed();
}

static void rows_drop(Rows *r, int n_roots, int n_captures) {
  for (int i = 0; r->roots && i < r->n_roots; i++) node_release(r->roots[i].node);
  for (int i = 0; r->seeds && i < n_roots; i++) tensor_release(r->seeds[i]);
  for (int i = 0; r->found && i < r->n * n_captures; i++) tensor_release(r->found[i]);
  mem_free(r->roots, (size_t)n_roots * sizeof *r->roots);
  mem_free(r->seeds, (size_t)n_roots * sizeof *r->seeds);
  mem_free(r->found, (size_t)r->n * (size_t)n_captures * sizeof *r->found);
  mem_free(r, sizeof *r);
}

/* The gradient that a root starts from in the current row. */
static Tensor *row_gradient(const Rows *r, int root) {
  const OutputMeta *m = &r->roots[root].node->outputs[r->roots[root].input_nr];
  if (r->seeds)
    return root_gradient(root, m, r->seeds[root] ? t_select(r->seeds[root], 0, r->at) : NULL);
  Tensor *unit = WITH_FORM(m->form, tensor_zeros(m->ndim, output_sizes(m), output_dtype(m)));
  if (unit && r->at < unit->numel) tensor_set_f(unit, r->at, 1);
  return unit;
}

static bool begin_row(Task *task) {
  Rows *r = task->rows;
  task->retain_graph = r->retain_last || r->at + 1 < r->n;
  for (State *s = task->states; s; s = s->next) {
    if (r->at == 0) s->arrivals = s->waiting;
    s->waiting = s->arrivals;
    for (int i = 0; i < s->n_grads; i++) {
      tensor_release(s->grads[i]);
      s->grads[i] = NULL;
    }
  }
  int32_t mark = pool_mark();
  bool ok = true;
  for (int i = 0; i < r->n_roots && ok; i++) ok = seed(task, r->roots[i], row_gradient(r, i));
  pool_release(mark, NULL);
  for (int i = 0; i < r->n_roots && ok; i++) ok = push_root(task, r->roots[i].node);
  return ok;
}

/* Keeps the results of a walk and begins the next; false after the last, or on failure. */
static bool next_row(Task *task) {
  Rows *r = task->rows;
  if (!r || r->at == r->n) return false;
  for (int i = 0; i < task->n_captures; i++) {
    r->found[r->at * task->n_captures + i] = task->captures[i].value;
    task->captures[i].value = NULL;
  }
  if (++r->at == r->n) return false;
  task->id = n_tasks++;
  return begin_row(task);
}

/* The stacked gradients of an input, with zeros for walks that gave none; NULL if no walk gave
 * one. */
static Tensor *stack_gradients(const Task *task, int input) {
  const Rows *r = task->rows;
  Tensor **v = scratch_array(r->n, sizeof *v), *any = NULL;
  for (int i = 0; v && i < r->n; i++)
    if ((v[i] = r->found[i * task->n_captures + input])) {
      if (unusual_tensors) v[i] = t_to_dense(v[i], DT_NONE, true); /* a stack has one layout */
      any = v[i];
    }
  for (int i = 0; any && i < r->n; i++)
    if (!v[i]) v[i] = t_zeros_like(any);
  return any ? t_stack((Tensors){r->n, v}, 0) : NULL;
}

static bool find_captures(Task *task, const GraphWalk *w) {
  if (!w->n_inputs) return true;
  task->captures = mem_alloc_zero((size_t)w->n_inputs * sizeof *task->captures);
  if (!task->captures) return false;
  task->n_captures = w->n_inputs;
  for (int i = 0; i < w->n_inputs; i++) {
    Tensor *t = w->inputs[i].tensor;
    if (t && !tensor_requires_grad(t)) {
      fail(ERR_RUNTIME, task->accumulate
                            ? "can't retain_grad on Tensor that has requires_grad=False"
                            : "One of the differentiated Tensors does not require grad");
      return false;
    }
    Edge e = end_edge(&w->inputs[i]);
    if (failed()) return false;
    tensor_retain(t);
    task->captures[i] = (Capture){e.node, e.input_nr, NULL, t};
    task->capture_bits |= capture_bit(e.node);
    if (t && task->accumulate && e.node && e.node->kind != NODE_ACCUMULATE &&
        !tensor_retain_grad(t))
      return false;
  }
  return true;
}

/* ------------------------------------------------------------ tasks */

typedef struct {
  Task *task;
  Node *node;
  bool grad_mode, recording;
} Before;

/* Sets the tape's variables for the running walk. */
static void tell_tape(void) {
  pruned_task = running_task && running_task->pruned ? running_task : NULL;
  saved_hooks_task = depth && running_task ? &running_task->id : NULL;
}

static Before task_enter(Task *task) {
  Before was = {running_task, node_running, grad_mode, recording};
  running_task = task;
  recording = task->create_graph && !inference_mode;
  grad_mode = recording || forward_on || by_ops;
  depth++;
  tell_tape();
  return was;
}

/* While the host runs a custom function, the task and the node that asked count as running. */
static void task_leave(Before was) {
  bool nested = --depth > 0;
  running_task = nested ? was.task : waiting;
  node_running = nested ? was.node : waiting ? waiting->asks->node : NULL;
  grad_mode = was.grad_mode;
  recording = was.recording;
  tell_tape();
}

static void stop_waiting(Task *task) {
  Task **at = &waiting;
  while (*at && *at != task) at = &(*at)->next_waiting;
  if (*at) *at = task->next_waiting;
  task->asks = NULL;
}

/* Calls the queued callbacks, which may queue more. */
__attribute__((cold)) static bool run_callbacks(Task *task) {
  node_running = NULL;
  while (task->callbacks && !failed()) {
    int n_out;
    host_call(HOST_SEVERAL, task->callbacks->id, 0, NULL, 0, NULL, &n_out);
    hook_leaf_remove(&task->callbacks, task->callbacks->id);
  }
  return !failed();
}

static uint64_t product_since; /* `since` of the next task */

static bool start(Task *task, const GraphWalk *w) {
  if (w->n_rows && !rows_new(task, w)) return false;
  for (int i = 0; i < w->n_roots; i++)
    if (!start_root(task, w, i)) return false;
  return w->n_rows ? begin_row(task) : push_roots(task, w);
}

Task *task_start(const GraphWalk *w) {
  Task *task = failed() ? NULL : mem_alloc_zero(sizeof *task);
  if (!task) return NULL;
  *task = (Task){.retain_graph = w->retain_graph,
                 .create_graph = w->create_graph,
                 .accumulate = w->accumulate,
                 .allow_unused = w->allow_unused,
                 .materialize = w->materialize,
                 .pruned = w->n_inputs > 0,
                 .id = n_tasks++,
                 .since = product_since,
                 .n_roots = w->n_roots,
                 .n_inputs = w->n_inputs,
                 .whole = w->n_inputs == 0 && walk_is_whole()};
  product_since = 0;
  if (host_watcher && !task->since) watch_walk_begins(w);
  bool ok = check_roots(w) && find_captures(task, w);
  Before was = task_enter(task);
  ok = ok && start(task, w);
  task_leave(was);
  if (ok) return task;
  task_end(task);
  return NULL;
}

enum { NODE_WORK = 512 }; /* of a small node, for polls */

bool task_run(Task *task, Tensor **gi) {
  State *s = task->asks;
  Before was = task_enter(task);
  stop_waiting(task);
  bool ok = true;
  if (s) {
    node_running = s->node;
    ok = resume_state(task, s, gi);
    pool_release(task->mark, NULL);
  }
  while (ok && !task->asks && (task->heap_n || next_row(task)) && !poll_stops(NODE_WORK)) {
    s = heap_pop(task);
    node_running = s->node;
    ok = (profiling ? run_profiled : run_state)(task, s);
  }
  if (!ok && anomaly_mode) anomaly_report(s->node);
  ok = ok && (task->asks || run_callbacks(task));
  if (task->asks) {
    task->next_waiting = waiting;
    waiting = task;
  }
  task_leave(was);
  return ok && !failed();
}

Node *task_asks(Task *task, Tensor ***grads) {
  if (!task->asks) return NULL;
  task->mark = pool_mark();
  *grads = task->asks->grads;
  return task->asks->node;
}

bool task_creates_graph(const Task *task) { return task->create_graph; }

int task_results(Task *task, Tensor **captured) {
  for (int i = 0; captured && i < task->n_captures; i++) {
    const Capture *c = &task->captures[i];
    captured[i] = task->rows ? stack_gradients(task, i) : c->value;
    if (captured[i] && task->rows) continue;
    if (c->value) {
      tensor_retain(c->value);
      pool_push(c->value);
    } else if (task->materialize) {
      captured[i] =
          c->input
              ? t_zeros_like(c->input)
              : fail(ERR_RUNTIME,
                     "materialize_grads cannot be used when the given input is a GradientEdge");
      if (captured[i] && task->create_graph) captured[i]->flags |= FLAG_REQUIRES_GRAD;
    } else if (!task->allow_unused) {
      fail(ERR_RUNTIME,
           "The differentiated Tensor at index %d appears to not have been used in the graph. Set "
           "allow_unused=True if this is the desired behavior.",
           i);
    }
  }
  if (captured && host_watcher && !task->accumulate && !task->since)
    watch_walk_found(task->n_captures, captured);
  return failed() ? -1 : task->accumulate ? 0 : task->n_captures;
}

Course *task_course(Task *task, Course *other) {
  Course *course = task->course;
  task->course = other;
  return course;
}

void task_end(Task *task) {
  if (host_watcher && !task->since) watch_walk_ends(failed() || task->asks);
  stop_waiting(task);
  saved_hooks_end(task->id);
  if (task->course) task->course->drop(task->course);
  host_note_work(task->work);
  while (task->callbacks) hook_leaf_remove(&task->callbacks, task->callbacks->id);
  while (task->states) {
    State *s = task->states;
    task->states = s->next;
    state_drop(s);
  }
  mem_free(task->heap, (size_t)task->heap_cap * sizeof *task->heap);
  for (int i = 0; i < task->n_captures; i++) {
    tensor_release(task->captures[i].value);
    tensor_release(task->captures[i].input);
    node_release(task->captures[i].node);
  }
  if (task->rows) rows_drop(task->rows, task->n_roots, task->n_inputs);
  mem_free(task->captures, (size_t)task->n_captures * sizeof *task->captures);
  mem_free(task, sizeof *task);
}

void task_abort(Task *task) {
  State *s = task->asks;
  Before was = task_enter(task);
  if (anomaly_mode && s) anomaly_report(s->node);
  if (s && s->event) profile_end(s->event - 1);
  if (s && s->evaluation) profile_end(s->evaluation - 1);
  task_end(task);
  task_leave(was);
}

bool walk_captured(const GraphWalk *w, Tensor **captured) {
  Task *task = task_start(w);
  if (!task) return false;
  Tensor **grads, **gi = NULL;
  bool ok = task_run(task, NULL);
  for (Node *n; ok && (n = task_asks(task, &grads));) {
    gi = scratch_array(n->n_edges + 1, sizeof *gi);
    if (gi) memset(gi, 0, n->n_edges * sizeof *gi);
    ok = gi && node_apply(n, grads, gi) && task_run(task, gi);
  }
  ok = ok && task_results(task, captured) >= 0;
  task_end(task);
  return ok;
}

static GraphEnd *ends_of(int n, Tensor *const *t) {
  GraphEnd *ends = scratch_array(n ? n : 1, sizeof *ends);
  for (int i = 0; i < n && ends; i++) ends[i] = (GraphEnd){t[i], {NULL, 0}};
  return ends;
}

bool walk_backward(int n_roots, Tensor *const *roots, Tensor *const *grads, bool retain_graph,
                   bool create_graph, int n_inputs, Tensor *const *inputs, bool accumulate_,
                   bool allow_unused, Tensor **captured) {
  size_t scratch = scratch_mark();
  GraphWalk w = {n_roots,
                 ends_of(n_roots, roots),
                 grads,
                 n_inputs,
                 ends_of(n_inputs, inputs),
                 retain_graph,
                 create_graph,
                 accumulate_,
                 allow_unused,
                 false,
                 0};
  bool ok = walk_captured(&w, captured);
  scratch_release(scratch);
  return ok;
}

/* ------------------------------------------------------------ the backward that is running */

bool walk_is_whole(void) { return !running_task || running_task->whole; }
int64_t walk_id(void) { return running_task ? running_task->id : -1; }

bool walk_retains(void) { return !running_task || running_task->retain_graph; }

bool walk_queue(int32_t callback) {
  if (running_task) return hook_leaf_add(&running_task->callbacks, callback);
  fail(ERR_RUNTIME, "Final callbacks can only be installed during backward pass.");
  return false;
}

static State *next_state(const State *s, int edge) {
  return s->node->edges[edge].node ? state_of(s->visit.task, s->node->edges[edge].node) : NULL;
}

/* Uses next_edge, free after the search, to count arrivals. */
__attribute__((cold)) int walk_order(Node ***order) {
  int n = 0;
  Task plan = {0};
  State *all = running_task ? running_task->states : NULL, *t;
  if (!running_task)
    fail(ERR_RUNTIME,
         "_current_graph_task_execution_order should only be called during the backward pass");
  for (State *s = all; s; s = s->next, n++) s->next_edge = 0;
  *order = scratch_array(n + 1, sizeof **order);
  for (State *s = all; s; s = s->next)
    for (int i = 0; i < s->node->n_edges; i++)
      if ((t = next_state(s, i))) t->next_edge++;
  for (State *s = all; s; s = s->next)
    if (!s->next_edge) heap_push(&plan, s);
  for (n = 0; plan.heap_n && !failed();) {
    State *s = heap_pop(&plan);
    if (s->visit.needed) (*order)[n++] = s->node;
    for (int i = 0; i < s->node->n_edges; i++)
      if ((t = next_state(s, i)) && !--t->next_edge) heap_push(&plan, t);
  }
  mem_free(plan.heap, (size_t)plan.heap_cap * sizeof *plan.heap);
  return n;
}

bool walk_is_nested(void) { return depth > 1 || waiting; }

bool walk_will_run(const Node *n) {
  if (!running_task) {
    fail(ERR_RUNTIME, "_get_should_execute_nodes should only be called during the backward pass");
    return false;
  }
  const State *s = state_of(running_task, n);
  if (s && s->captures && !running_task->accumulate && n->kind == NODE_ACCUMULATE) {
    fail(ERR_RUNTIME, "A leaf node was passed to _will_engine_execute_node but we are currently "
                      "running autograd.grad(). This is currently not supported.");
    return false;
  }
  return s && s->visit.needed;
}

bool walk_product(int n, Tensor *const *roots, Tensor *const *with, bool create_graph,
                  uint64_t since, Tensor *u, Tensor **out) {
  product_since = since;
  return walk_backward(n, roots, with, false, create_graph, 1, &u, false, true, out);
}

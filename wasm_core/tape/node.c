/* Creation, names and release of nodes; see graph.h. */
#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "tape/anomaly.h"
#include "tape/forward.h"
#include "tape/graph.h"
#include "tape/host.h"

static uint64_t next_sequence;
static int64_t live_nodes;
int64_t node_live_count(void) { return live_nodes; }
uint64_t node_sequence(void) { return next_sequence; }

/* ------------------------------------------------------------ life of a node */

static size_t node_bytes(int n_edges, int n_saves, int n_numbers) {
  return sizeof(Node) + (size_t)n_edges * sizeof(Edge) + (size_t)n_saves * sizeof(Saved) +
         (size_t)n_numbers * sizeof(Number);
}

bool node_may_have(int n, const char *what) {
  if (n <= UINT16_MAX) return true;
  fail(ERR_NOT_IMPLEMENTED, "pygrad: a node of the graph has at most %d %s, not %d", UINT16_MAX,
       what, n);
  return false;
}

/* ------------------------------------------------------------ places of creation */

static void note_origin(Node *n) {
  n->origin = mem_alloc_zero(sizeof *n->origin);
  if (!n->origin) return;
  n->origin->trace = host_trace();
  n->origin->parent = node_running;
  node_retain(node_running);
}

static void forget_origin(Node *n) {
  host_drop(n->origin->trace);
  node_release(n->origin->parent);
  mem_free(n->origin, sizeof *n->origin);
}

/* ------------------------------------------------------------ creation */

Node *node_bare(const NodeType *type, int n_edges, int n_saves, int n_numbers) {
  if (!node_may_have(n_edges, "inputs") || !node_may_have(n_saves, "saved tensors") ||
      !node_may_have(n_numbers, "numbers"))
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
  if (anomaly_mode) note_origin(n);
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

Node *node_unnumbered(const NodeType *type) {
  Node *n = node_bare(type, 0, 0, 0);
  if (n) next_sequence--;
  return n;
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
  if (!node_may_have(n_saves, "saved tensors")) return false;
  n->saves = mem_alloc_zero((size_t)n_saves * sizeof *n->saves);
  if (n->saves) n->n_saves = (uint16_t)n_saves;
  return n->saves != NULL;
}

/* ------------------------------------------------------------ release */

static void form_release(int64_t *form) {
  if (form) mem_free(form, form_bytes(form[FORM_RANK]));
}

/* Releases the fields that only hooks and check mode set. */
static NOINLINE void guards_release(Saved *s) {
  Saved old = *s;
  s->original = s->unpacked = NULL;
  s->form = NULL;
  s->version = NULL;
  s->packed = 0;
  host_drop(old.packed);
  version_release(old.version);
  tensor_release(old.original);
  tensor_release(old.unpacked);
  form_release(old.form);
}

void saved_release(Saved *s) {
  Tensor *value = s->value, *leaf = s->leaf;
  Node *grad_fn = s->grad_fn;
  s->value = s->leaf = NULL;
  s->grad_fn = NULL;
  if (s->version || s->original || s->packed || s->unpacked || s->form) guards_release(s);
  if (value) tensor_release(value);
  if (leaf) tensor_release(leaf);
  if (grad_fn) node_release(grad_fn);
}

void node_release_saved(Node *n) {
  for (int i = 0; i < n->n_saves; i++) saved_release(&n->saves[i]);
  n->freed = n->freed || n->n_saves > 0 || n->kind == NODE_HOST || n->inner;
  /* another reference means that it also runs by itself */
  if (n->inner && n->inner->refs == 1) node_release_saved(n->inner);
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
  if (n->origin) forget_origin(n);
  if (n->tangents) forward_mode->detach(n);
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

/* Graphs may be deep, so dead nodes are queued instead of released recursively. */
void node_release(Node *n) {
  if (!n) return;
  if (--n->refs > 0) {
    /* Only the host's object still refers to the node: let the object go. */
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

void node_drop(Node *n) { node_release(n); }

/* ------------------------------------------------------------ other names */

/* Types that differ from another only in their names; never freed. */
typedef struct Renamed {
  NodeType type;
  struct Renamed *next;
} Renamed;

static const NodeType *renamed_type(const NodeType *of, const char *name, const char *fields) {
  static Renamed *all;
  Renamed *r = all;
  while (r && (r->type.grad != of->grad || r->type.each != of->each || strcmp(r->type.name, name) ||
               strcmp(r->type.fields, fields)))
    r = r->next;
  if (r) return &r->type;
  r = mem_permanent(sizeof *r);
  if (!r) return of;
  *r = (Renamed){{name, of->grad, fields, of->each, NULL, of->tangent}, all};
  all = r;
  return &r->type;
}

Tensor *node_rename_with(Tensor *y, const char *name, const char *fields) {
  Node *n = y ? y->grad_fn : NULL;
  if (n) n->type = renamed_type(n->type, name, fields ? fields : n->type->fields);
  return y;
}

Tensor *node_rename(Tensor *y, const char *name) { return node_rename_with(y, name, NULL); }

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

/* ------------------------------------------------------------ for the walk and for tensors */

bool needs(const Node *n, int input) {
  if (!n) return false;
  const Node *to = n->edges[input].node;
  if (!to || n->tangents) return n->tangents && forward_mode->needs(n, input);
  if (!pruned_task || !visit_of(pruned_task, n)) return true;
  const Visit *v = visit_of(pruned_task, to);
  return v && v->needed;
}

/* Removes the hook that fills t's .grad. */
static void forget_retained(Tensor *t) {
  for (NodeHook **at = t->grad_fn ? &t->grad_fn->hooks : NULL; at && *at; at = &(*at)->next)
    if ((*at)->retained == t) {
      NodeHook *h = *at;
      *at = h->next;
      mem_free(h, sizeof *h);
      return;
    }
}

void tape_begin(void) {
  letting_go.of_node = node_release;
  letting_go.of_retained = forget_retained;
  letting_go.of_object = host_drop;
}

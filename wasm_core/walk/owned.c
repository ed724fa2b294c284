/* The references that tensors and nodes own, for a host's garbage collector, which cannot see into
 * the engine.
 *
 * A record is an address, its count of references, the addresses of tensors and nodes that it owns
 * a reference to, minus the id of each object of the host that it keeps alive (for a hook on
 * several tensors, minus 2^32 times the number of hooks that share it as well), and 0. Other owners
 * are left out, so the objects that they own seem to have references from outside, and the host
 * takes them for alive. */
#include "ground/memory.h"
#include "ops/op.h"
#include "tape/anomaly.h"
#include "walk/hooks.h"
#include "walk/services.h"

typedef struct {
  int64_t *v;
  int64_t n, cap;
  bool full; /* a word found no room */
} Words;

static void put(Words *w, int64_t word) {
  if (w->n < w->cap) w->v[w->n++] = word;
  else w->full = true;
}

static void put_owned(Words *w, const void *p) {
  if (p) put(w, (int64_t)(uintptr_t)p);
}

static void put_object(Words *w, int32_t id) {
  int64_t object = id < 0 ? hooks_share(id) : id;
  if (object) put(w, -object);
}

static void put_tensor(Words *w, const Tensor *t) {
  const Meta *m = t->meta;
  put_owned(w, t->grad_fn);
  put_object(w, t->noted);
  if (!m) return;
  put_owned(w, m->grad);
  put_owned(w, m->base);
  if (m->owns_accumulator) put_owned(w, m->accumulator);
  for (const Hook *h = m->hooks; h; h = h->next) put_object(w, h->id);
  for (const Hook *h = m->post_hooks; h; h = h->next) put_object(w, h->id);
}

static void put_node(Words *w, const Node *n) {
  for (int i = 0; i < n->n_edges; i++) put_owned(w, n->edges[i].node);
  for (int i = 0; i < n->n_saves; i++) {
    const Saved *s = &n->saves[i];
    put_owned(w, s->grad_fn);
    const Tensor *const tensors[] = {s->value, s->leaf, s->original, s->unpacked};
    for (int k = 0; k < 4; k++) put_owned(w, tensors[k]);
    put_object(w, s->packed);
  }
  put_owned(w, n->variable);
  put_owned(w, n->inner);
  if (n->origin) put_owned(w, n->origin->parent);
  for (const NodeHook *h = n->hooks; h; h = h->next) put_object(w, h->id);
  put_object(w, n->metadata);
  if (n->refs > 1) put_object(w, n->host); /* see node_release */
}

/* A bit in the magic of a listed tensor or node; both have it at the same offset. */
#define LISTED 0x80000000u

/* Adds the record of an object that has none yet and owns something. */
static void put_record(Words *w, int64_t address) {
  Tensor *t = (Tensor *)(uintptr_t)address;
  int64_t before = w->n;
  if (t->magic & LISTED) return;
  put(w, address);
  put(w, t->refs);
  if (node_is(t)) put_node(w, (const Node *)(const void *)t);
  else put_tensor(w, t);
  if (w->n == before + 2) {
    w->n = before;
    return;
  }
  put(w, 0);
  if (!w->full) t->magic |= LISTED;
}

/* The records of all objects reached from these addresses; an empty list if they take more than
 * `most` words. */
void op_owned(Call *c) {
  Ints places = arg_ints(c, 0);
  int64_t most = arg_int(c, 1);
  Words w = {.v = scratch_array(most, sizeof(int64_t)), .cap = most};
  if (!w.v) return;
  for (int i = 0; i < places.n; i++) put_record(&w, places.v[i]);
  for (int64_t k = 0; k < w.n; k++) /* the records serve as the queue */
    for (k += 2; k < w.n && w.v[k]; k++)
      if (w.v[k] > 0) put_record(&w, w.v[k]);
  for (int64_t k = 0; k < w.n; k++) {
    ((Tensor *)(uintptr_t)w.v[k])->magic &= ~LISTED;
    while (k < w.n && w.v[k]) k++;
  }
  ret_ints(c, w.full ? 0 : (int)w.n, w.v);
}

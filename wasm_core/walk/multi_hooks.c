/* A hook of the host on several tensors: called once a backward, with all their gradients or with
 * the first.
 *
 * Each tensor has a hook of its own with an id below 0; the ids of one call are consecutive. The
 * host's function lives as long as one of its hooks. A round holds the gradients that a backward
 * has computed so far; rounds of failed backwards are dropped when the next begins. */
#include <string.h>

#include "ground/memory.h"
#include "ops/op.h"
#include "tape/host.h"
#include "walk/hooks.h"
#include "walk/services.h"
#include "walk/walk.h"

typedef struct Round {
  struct Round *next;
  int64_t task;
  int32_t left;    /* gradients still to come; mode "any": 1 until the first */
  Tensor *grads[]; /* owned */
} Round;

typedef struct Several {
  struct Several *next;
  int32_t id;       /* the id of the host's function */
  int32_t first, n; /* the hooks: first, first - 1, ... */
  int32_t left;     /* the number of hooks not yet removed */
  bool any;         /* mode "any": called with the first gradient */
  Round *rounds;
  struct {
    Tensor *leaf;
    Node *node;
  } on[]; /* the leaf or node of each hook, weak; both NULL: the hook is removed */
} Several;

static Several *all;

static Several *several_of(int32_t hook) {
  Several *s = all;
  while (s && (hook > s->first || hook <= s->first - s->n)) s = s->next;
  return s;
}

static void end_round(Several *s, Round **at) {
  Round *r = *at;
  *at = r->next;
  for (int i = 0; i < s->n; i++) tensor_release(r->grads[i]);
  mem_free(r, sizeof *r + (size_t)s->n * sizeof *r->grads);
}

static void end(Several *s) {
  Several **at = &all;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  while (s->rounds) end_round(s, &s->rounds);
  host_drop(s->id);
  mem_free(s, sizeof *s + (size_t)s->n * sizeof *s->on);
}

static void drop(int32_t hook) {
  Several *s = several_of(hook);
  if (!s) return;
  s->on[s->first - hook].leaf = NULL;
  s->on[s->first - hook].node = NULL;
  if (--s->left == 0) end(s);
}

int64_t hooks_share(int32_t hook) {
  const Several *s = several_of(hook);
  return s ? s->id + ((int64_t)s->left << 32) : 0;
}

/* The number of these gradients that the running backward computes. */
static int32_t count_expected(const Several *s) {
  int32_t count = 0;
  for (int i = 0; i < s->n; i++) {
    const Node *n = s->on[i].leaf ? s->on[i].leaf->meta->accumulator : s->on[i].node;
    count += n && walk_will_run(n);
  }
  return count;
}

/* The round of the running backward, made if needed. */
static Round **round_of(Several *s) {
  int64_t task = walk_id();
  Round **at = &s->rounds;
  while (*at && (*at)->task != task) at = &(*at)->next;
  if (*at) return at;
  while (s->rounds && !walk_is_nested()) end_round(s, &s->rounds);
  Round *r = mem_alloc_zero(sizeof *r + (size_t)s->n * sizeof *r->grads);
  if (!r) return NULL;
  r->task = task;
  r->left = s->any ? 1 : count_expected(s);
  r->next = s->rounds;
  s->rounds = r;
  return failed() ? NULL : &s->rounds;
}

/* Calls the host's function, which may remove the hook; ignores its result. */
static Tensor *tell(const Several *s, int n, Tensor *const *grads, Tensor *g) {
  int n_out;
  return host_call((HostCall)(HOST_SEVERAL | s->any << 8), s->id, n, grads, 0, NULL, &n_out) ? g
                                                                                             : NULL;
}

static Tensor *run_of_several(int32_t hook, Tensor *g) {
  Several *s = several_of(hook);
  Round **at = s ? round_of(s) : NULL, *r = at ? *at : NULL;
  if (!r || (s->any && !r->left)) return failed() ? NULL : g;
  if (s->any) {
    r->left = 0;
    return tell(s, 1, &g, g);
  }
  tensor_retain(g);
  tensor_release(r->grads[s->first - hook]);
  r->grads[s->first - hook] = g;
  if (--r->left > 0) return g;
  Tensor **grads = scratch_array(s->n, sizeof *grads);
  if (!grads) return NULL;
  for (int i = 0; i < s->n; i++) {
    tensor_retain(r->grads[i]);
    grads[i] = pool_push(r->grads[i]);
  }
  end_round(s, at);
  return tell(s, s->n, grads, g);
}

/* ------------------------------------------------------------ for the host */

void op_several_hooks_add(Call *c) {
  static const SeveralHooks hooks = {run_of_several, drop};
  static int32_t last;
  several_hooks = &hooks;
  Tensors tensors = arg_tensors(c, 0);
  const char *mode = arg_str(c, 2);
  bool any = strcmp(mode, "any") == 0;
  if (!any && strcmp(mode, "all") != 0)
    fail(ERR_VALUE, "Expects mode to be one of ('all', 'any') but got %s", mode);
  for (int i = 0; i < tensors.n && !any; i++)
    if (!tensor_requires_grad(tensors.v[i]))
      fail(ERR_ASSERTION, "Expected gradient function to be set");
  Several *s = failed() ? NULL : mem_alloc_zero(sizeof *s + (size_t)tensors.n * sizeof *s->on);
  if (!s) return;
  s->next = all;
  s->id = (int32_t)arg_int(c, 1);
  s->first = last - 1;
  s->n = tensors.n;
  s->any = any;
  last -= tensors.n;
  all = s;
  for (int i = 0; i < tensors.n; i++) {
    Tensor *t = tensors.v[i];
    if (!tensor_requires_grad(t) || !tensor_hook_add(t, s->first - i, false)) continue;
    s->left++;
    s->on[i].node = tensor_grad_fn(t);
    if (!s->on[i].node) s->on[i].leaf = t;
  }
  if (!s->left) end(s);
}

void op_several_hooks_remove(Call *c) {
  Several *s = all;
  while (s && s->id != (int32_t)arg_int(c, 0)) s = s->next;
  int32_t left = s ? s->left : 0;
  for (int i = 0; left > 0; i++) {
    Tensor *leaf = s->on[i].leaf;
    Node *n = s->on[i].node;
    if (!leaf && !n) continue;
    left--; /* removing the last hook frees s */
    if (leaf) hook_leaf_remove(&leaf->meta->hooks, s->first - i);
    else node_remove_hook(n, s->first - i);
  }
}

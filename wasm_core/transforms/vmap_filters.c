/* Convolutions whose weights are batched, done at once.
 *
 * The levels of a call are of three kinds. Where the input alone has one, its slices stand side by
 * side along N; where the weight or the bias alone has one, as more output channels; where both
 * have one, each slice becomes groups of its own. */
#include <string.h>

#include "ops/op.h"
#include "transforms/vmap_private.h"

enum { INPUT, WEIGHT, BIAS, GROUPS = 6 }; /* places of the arguments, in all convolutions */

typedef struct {
  uint32_t x, w, both; /* the levels of the input, of weight or bias, of both */
  int64_t n_x, n_w, n_both;
  int64_t groups, per_group; /* of one slice: output channels in a group */
  bool has_n, transposed;
} Filters;

/* The places, from `at` on, of the wanted ones among the dimensions that `own` levels are. */
static int put_places(uint32_t own, uint32_t wanted, int64_t at, int64_t *places) {
  int n = 0;
  for (; own; own &= own - 1, at++)
    if (wanted & own & -own) places[n++] = at;
  return n;
}

static Tensor *permute_dims(Tensor *t, int n, const int64_t *order) {
  return blocked(t) ? NULL : t_permute(t, (Ints){n, order});
}

/* (slices of the input alone * N, slices of both * C, ...) */
static Tensor *all_inputs(const Filters *f, Tensor *t) {
  int64_t order[MAX_DIM], sizes[MAX_DIM];
  const int levels = level_count(f->x), rest = levels + f->has_n;
  int n = put_places(f->x, f->x & ~f->both, 0, order);
  if (f->has_n) order[n++] = levels;
  n += put_places(f->x, f->both, 0, order + n);
  for (int i = rest; n < levels + t->ndim; i++) order[n++] = i;
  const Batch b = batch_at(f->x);
  Tensor *v = f->x ? batch_full(&b, t) : t;
  sizes[0] = f->n_x * (f->has_n ? t->sizes[0] : 1);
  sizes[1] = f->n_both * t->sizes[f->has_n];
  for (int i = 2; i < t->ndim + !f->has_n; i++) sizes[i] = t->sizes[i - !f->has_n];
  v = permute_dims(v, n, order);
  return v ? t_reshape(v, t->ndim + !f->has_n, sizes) : NULL;
}

/* Channels of a weight or a bias, `outer` of them in groups: all groups of one slice after those of
 * another, and in each of them the channels of one slice after those of another. `merged`
 * dimensions come of the outer and inner channels. */
static Tensor *all_channels(const Filters *f, Tensor *t, int64_t outer, int64_t inner, int merged) {
  int64_t order[MAX_DIM], sizes[MAX_DIM];
  const Batch b = batch_at(f->w);
  Tensor *v = batch_full(&b, t);
  if (blocked(v)) return NULL;
  const int split = merged == 1, rank = v->ndim + split;
  for (int i = 0; i < b.n; i++) sizes[i] = b.sizes[i];
  sizes[b.n] = outer;
  for (int i = b.n + 1; i < rank; i++) sizes[i] = i == b.n + 1 ? inner : v->sizes[i - split];
  if (split) v = t_reshape(v, rank, sizes);
  int n = put_places(f->w, f->both, 0, order);
  order[n++] = b.n;
  n += put_places(f->w, f->w & ~f->both, 0, order + n);
  for (int i = b.n + 1; n < rank; i++) order[n++] = i;
  v = permute_dims(v, rank, order);
  if (!v) return NULL;
  const int64_t first = f->n_both * outer, second = f->n_w * inner;
  int k = 0;
  if (split) sizes[k++] = first * second;
  else sizes[k++] = first, sizes[k++] = second;
  for (int i = b.n + 2; i < rank; i++) sizes[k++] = v->sizes[i];
  return t_reshape(v, k, sizes);
}

/* The slices of the result, by all levels again. */
static Tensor *all_results(const Filters *f, const Batch *b, Tensor *y) {
  int64_t order[MAX_DIM], sizes[MAX_DIM];
  const uint32_t kinds[] = {f->x & ~f->both, f->both, f->w & ~f->both};
  int64_t place[MAX_DIM]; /* of a level's dimension, by the level's number in the batch */
  int n = 0, at_n = -1, at_groups = 0, at_channels = 0;
  if (blocked(y)) return NULL;
  for (int kind = 0; kind < 3; kind++) {
    int64_t of[MAX_DIM];
    const int count = put_places(b->levels, kinds[kind], 0, of);
    for (int i = 0; i < count; i++) {
      place[of[i]] = n;
      sizes[n++] = b->sizes[of[i]];
    }
    if (kind == 0 && f->has_n) at_n = n, sizes[n++] = f->n_x ? y->sizes[0] / f->n_x : 0;
    if (kind == 1) at_groups = n, sizes[n++] = f->groups;
  }
  at_channels = n;
  sizes[n++] = f->per_group;
  for (int i = 2; i < y->ndim; i++) sizes[n++] = y->sizes[i];
  y = t_reshape(y, n, sizes);
  int k = 0;
  for (; k < b->n; k++) order[k] = place[k];
  if (f->has_n) order[k++] = at_n;
  order[k++] = at_groups;
  order[k++] = at_channels;
  for (int i = at_channels + 1; k < n; i++) order[k++] = i;
  y = permute_dims(y, n, order);
  if (!y) return NULL;
  const int channels = b->n + f->has_n;
  memcpy(sizes, y->sizes, (size_t)channels * sizeof *sizes);
  sizes[channels] = f->groups * f->per_group;
  for (int i = channels + 1; i < n - 1; i++) sizes[i] = y->sizes[i + 1];
  return t_reshape(y, n - 1, sizes);
}

bool rule_filters(const Call *c, const Batch *b, Call *inner) {
  const Value *v = c->v;
  if (v[INPUT].tag != TAG_TENSOR || v[WEIGHT].tag != TAG_TENSOR) return false;
  Tensor *x = v[INPUT].t, *w = v[WEIGHT].t, *bias = v[BIAS].tag == TAG_TENSOR ? v[BIAS].t : NULL;
  const int rank = c->row->folded_rank;
  Filters f = {
      .x = levels_of(x), .w = levels_of(w) | levels_of(bias), .groups = arg_int(c, GROUPS)};
  f.has_n = x->ndim == rank;
  f.transposed = strncmp(c->row->name, "conv_transpose", 14) == 0;
  /* The loop over slices refuses these calls, with the sizes of a slice. */
  if ((!f.has_n && x->ndim != rank - 1) || w->ndim != rank || f.groups <= 0 ||
      b->n + rank + 2 > MAX_DIM || b->total == 0)
    return false;
  const int64_t channels = x->sizes[f.has_n];
  if (w->sizes[0] % f.groups || channels != (f.transposed ? w->sizes[0] : w->sizes[1] * f.groups))
    return false;
  f.per_group = f.transposed ? w->sizes[1] : w->sizes[0] / f.groups;
  if (bias && (bias->ndim != 1 || bias->sizes[0] != f.groups * f.per_group)) return false;
  f.both = f.x & f.w;
  f.n_x = batch_at(f.x & ~f.both).total;
  f.n_w = batch_at(f.w & ~f.both).total;
  f.n_both = batch_at(f.both).total;
  copy_call(c, inner);
  inner->v[INPUT].t = all_inputs(&f, x);
  inner->v[WEIGHT].t = f.transposed ? all_channels(&f, w, w->sizes[0], f.per_group, 2)
                                    : all_channels(&f, w, f.groups, f.per_group, 1);
  if (bias) inner->v[BIAS].t = all_channels(&f, bias, f.groups, f.per_group, 1);
  inner->v[GROUPS] = (Value){.tag = TAG_INT, .i = f.groups * f.n_both};
  if (!failed()) run_call_plain(inner);
  if (!failed()) ret_tensor(inner, all_results(&f, b, result_tensor(&inner->result, 0)));
  return true;
}

/* Batched tensors, and the values that they are slices of; see vmap.h. */
#include <string.h>

#include "ground/memory.h"
#include "transforms/vmap_private.h"
#include "walk/forward.h"
#include "walk/tangent.h"

/* One dimension moved, the others in order. */
static Tensor *move_dim(Tensor *v, int from, int to) {
  int64_t order[MAX_DIM];
  int n = 0;
  if (from == to || !v) return v;
  for (int i = 0; i < v->ndim; i++)
    if (i != from) order[n++] = i;
  for (int i = n++; i > to; i--) order[i] = order[i - 1];
  order[to] = from;
  return t_permute(v, (Ints){n, order});
}

Tensor *vmap_add(Tensor *t, int64_t dim, int32_t level) {
  uint32_t bits = levels_of(t);
  int n = level_count(bits);
  if (blocked(t)) return NULL;
  Tensor *made = batched_tensor(move_dim(bits ? t->meta->value : t, n + (int)dim, n),
                                bits | bit_of(level));
  if (made) made->meta->batch_dim = (uint8_t)dim;
  return made;
}

int32_t vmap_dim(const Tensor *t, int32_t level) {
  return levels_of(t) & bit_of(level) ? t->meta->batch_dim : -1;
}

Tensor *vmap_remove(Tensor *t, int32_t level, int64_t size, int64_t dim) {
  if (blocked(t) || (dim = dim_wrap(dim, t->ndim + 1)) < 0) return NULL;
  uint32_t bits = levels_of(t), bit = bit_of(level);
  Tensor *v = bits ? t->meta->value : t;
  int rest = level_count(bits & ~bit);
  if (bits & bit)
    return batched_tensor(move_dim(v, level_count(bits & (bit - 1)), rest + (int)dim), bits & ~bit);
  int64_t sizes[MAX_DIM];
  v = t_unsqueeze(v, rest + dim);
  for (int i = 0; v && i < v->ndim; i++) sizes[i] = -1;
  sizes[rest + dim] = size;
  return v ? batched_tensor(t_expand(v, v->ndim, sizes), bits) : NULL;
}

/* ------------------------------------------------------------ tensors among the arguments */

Tensor *value_first(const Value *v) {
  int at = -1;
  return value_next(v, &at);
}

bool value_is_batched(const Value *v) {
  const Tensor *t;
  for (int at = -1; (t = value_next(v, &at));)
    if (is_batched(t)) return true;
  return false;
}

Value value_map(Value v, Change *change, const void *context) {
  int64_t *words = NULL;
  Tensor *t;
  for (int at = -1; (t = value_next(&v, &at));) {
    t = change(t, context);
    if (v.tag == TAG_TENSOR) {
      v.t = t;
      return v;
    }
    if (!words) {
      words = scratch_array(v.n, sizeof *words);
      if (!words) return v;
      memcpy(words, v.p, (size_t)v.n * sizeof *words);
    }
    words[at] = (int64_t)(uintptr_t)t;
  }
  if (words) v.p = words;
  return v;
}

int32_t vmap_level(const Tensor *t) { return highest(levels_of(t)); }

Tensor *vmap_dual(Tensor *t) {
  Tensor *tangent = levels_of(t) ? NULL : forward_tangent(t);
  uint32_t bits = levels_of(tangent);
  if (!bits) return t;
  Tensor *slices = all_slices(tangent);
  forward_on = false;
  Tensor *value = t_clone(tangent_slices_at(t, bits, slices->sizes));
  forward_on = true;
  forward_set(value, slices);
  return batched_tensor(value, bits);
}

bool vmap_item_error(void) {
  fail(ERR_RUNTIME,
       "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
       ".item() on a Tensor, please try to rewrite what you're doing with other operations. If "
       "error is occurring somewhere inside PyTorch internals, please file a bug report.");
  return false;
}

Batch batch_at(uint32_t bits) {
  Batch b = {.levels = bits, .total = 1};
  for (; bits; bits &= bits - 1) b.total *= b.sizes[b.n++] = level_size(highest(bits & -bits));
  return b;
}

/* ------------------------------------------------------------ values */

Tensor *batch_align(const Batch *b, Tensor *t, int rank) {
  return tangent_slices_aligned(t, b->levels, rank);
}

Tensor *batch_full(const Batch *b, Tensor *t) { return tangent_slices_at(t, b->levels, b->sizes); }

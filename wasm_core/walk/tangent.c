/* Tangents as memory; see tangent.h. */
#include "walk/tangent.h"

#include <string.h>

#include "ops/complex/complex.h"
#include "ops/dispatch.h"
#include "ops/op.h"
#include "tape/slices.h"

/* ------------------------------------------------------------ batches */

void tangent_sizes_at(uint32_t bits, int n, Tensor *const *all, int64_t *sizes) {
  for (int k = 0; bits; bits &= bits - 1, k++)
    for (int i = 0; i < n; i++) {
      uint32_t own = levels_of(all[i]), bit = bits & -bits;
      if (own & bit) sizes[k] = all_slices(all[i])->sizes[level_count(own & (bit - 1))];
    }
}

Tensor *tangent_slices_aligned(Tensor *t, uint32_t bits, int rank) {
  uint32_t own = levels_of(t);
  if (blocked(t) || !own) return t;
  Tensor *v = t->meta->value;
  if (own == bits && rank <= t->ndim) return v;
  int64_t sizes[2 * MAX_DIM];
  int n = 0, from = 0;
  for (; bits; bits &= bits - 1) sizes[n++] = own & bits & -bits ? v->sizes[from++] : 1;
  for (int k = t->ndim; k < rank; k++) sizes[n++] = 1;
  memcpy(sizes + n, t->sizes, t->ndim * sizeof *sizes);
  return t_view(v, n + t->ndim, sizes);
}

Tensor *tangent_slices_at(Tensor *t, uint32_t bits, const int64_t *sizes) {
  if (blocked(t)) return NULL;
  if (levels_of(t) == bits) return all_slices(t);
  int64_t full[2 * MAX_DIM];
  int n = level_count(bits);
  memcpy(full, sizes, (size_t)n * sizeof *full);
  memcpy(full + n, t->sizes, t->ndim * sizeof *full);
  return t_expand(tangent_slices_aligned(t, bits, t->ndim), n + t->ndim, full);
}

Tensor *tangent_batched_as(Tensor *t, Tensor *like) {
  uint32_t bits = levels_of(t) | levels_of(like);
  int64_t sizes[MAX_LEVELS];
  if (!t || bits == levels_of(t)) return t;
  tangent_sizes_at(bits, 2, (Tensor *[]){t, like}, sizes);
  return batched_tensor(t_clone(tangent_slices_at(t, bits, sizes)), bits);
}

/* ------------------------------------------------------------ layouts */

bool tangent_lies_as(const Tensor *tangent, const Tensor *t) {
  bool same = tensor_same_shape(tangent, t) && !((tangent->flags ^ t->flags) & FLAGS_LAZY) &&
              (tangent->offset == t->offset || !t->numel) &&
              (is_batched(tangent) ||
               tangent->storage->bytes->n_bytes / dtype_bytes(tensor_dtype(tangent)) ==
                   t->storage->bytes->n_bytes / dtype_bytes(tensor_dtype(t)));
  for (int i = 0; same && i < t->ndim; i++)
    same = t->sizes[i] < 2 || tangent->strides[i] == t->strides[i];
  return same;
}

/* A geometry behind the batch dimensions of a value. */
typedef struct {
  int ndim;
  int64_t sizes[2 * MAX_DIM], strides[2 * MAX_DIM];
} Whole;

static Whole whole_geometry(const Tensor *value, int n, const Tensor *slice) {
  Whole w = {.ndim = n + slice->ndim};
  memcpy(w.sizes, value->sizes, (size_t)n * sizeof *w.sizes);
  memcpy(w.strides, value->strides, (size_t)n * sizeof *w.strides);
  memcpy(w.sizes + n, slice->sizes, slice->ndim * sizeof *w.sizes);
  memcpy(w.strides + n, slice->strides, slice->ndim * sizeof *w.strides);
  return w;
}

Tensor *tangent_zeros_as(Tensor *t, DType dtype, Tensor *like) {
  Tensor *z = (t->form | like->form) & FORM_HOSTED ? dispatch_zeros_as(t, like) : NULL;
  if (z || failed()) return z;
  uint32_t bits = levels_of(like);
  int n = level_count(bits);
  int64_t sizes[MAX_DIM];
  if (bits) memcpy(sizes, all_slices(like)->sizes, (size_t)n * sizeof *sizes);
  sizes[n] = t->storage->bytes->n_bytes / dtype_bytes(tensor_dtype(t));
  if (bits) sizes[n] += sizes[n] % 2; /* for views that show parts as one number */
  z = WITH_FORM(t->storage->bytes->form & FORM_ABSENT, tensor_zeros(n + 1, sizes, dtype));
  if (!z) return NULL;
  const Whole w = whole_geometry(z, n, t);
  z = tensor_alias(z, w.ndim, w.sizes, w.strides, t->offset);
  if (z) tensor_set_lazy(z, t->flags & FLAGS_LAZY);
  return batched_tensor(z, bits);
}

Tensor *tangent_laid_out_as(Tensor *t, Tensor *tangent) {
  return tangent_write(tangent_zeros_as(t, tensor_dtype(tangent), tangent), tangent);
}

/* Whether each slice begins with a real part, as a view that shows pairs as complex numbers
 * needs. */
static bool slices_begin_evenly(const Tensor *value, int n) {
  bool even = true;
  for (int i = 0; i < n; i++) even = even && value->strides[i] % 2 == 0;
  return even;
}

Tensor *tangent_same_view(Tensor *tangent, Tensor *t, const Tensor *v) {
  int lens = tangent ? lens_of(t, v) : 0, n = level_count(levels_of(tangent));
  if (n && lens & LENS_COMPLEX && !slices_begin_evenly(all_slices(tangent), n))
    tangent = tangent_laid_out_as(t, tangent);
  Tensor *whole = all_slices(tangent), *value = t_through(whole, lens);
  if (!value) return NULL;
  if (n && !(lens & (LENS_REAL | LENS_COMPLEX)) &&
      !batched_check_in_slice(value, n, v->ndim, v->sizes, v->strides, v->offset))
    return NULL;
  Whole w = whole_geometry(whole, n, v);
  for (int i = 0; i < n; i++) w.strides[i] = lens_offset(w.strides[i], lens);
  return batched_tensor(t_as_strided(value, w.ndim, w.sizes, w.strides, v->offset),
                        levels_of(tangent));
}

/* ------------------------------------------------------------ copies */

GRAD(AliasBackward0, "")
{ gi[0] = g[0]; }

Tensor *tangent_frozen_copy(Tensor *t) {
  if (!t || failed()) return NULL;
  if (by_ops && t->form & FORM_HOSTED) return t_clone(t);
  Tensor *value = all_slices(t);
  Node *n = node_new(&AliasBackward0, 0, 0, value, NULL);
  return batched_tensor(set_history(tensor_snapshot(value), n), levels_of(t));
}

Tensor *tangent_cast(Tensor *tangent, DType dtype) {
  if (!tangent || tangent->dtype == (int)dtype) return tangent;
  return batched_tensor(t_to(all_slices(tangent), dtype), levels_of(tangent));
}

Tensor *tangent_write(Tensor *to, Tensor *from) {
  Tensor *value = all_slices(to);
  if (!value || failed()) return NULL;
  if (!from) t_fill_(value, tensor_wrapped_f(0));
  else t_copy_(value, tangent_slices_at(from, levels_of(to), value->sizes), true);
  return failed() ? NULL : to;
}

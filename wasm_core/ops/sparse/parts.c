/* Parts of COO tensors, and COO tensors joined: entries taken by their places. */
#include <string.h>

#include "ground/memory.h"
#include "ops/index/index.h"
#include "ops/sparse/sparse.h"
#include "sparse_rows.h"

/* The values, recorded. Coalesces a tensor that needs a gradient. */
static Tensor *own_values(Tensor **x) {
  if (tensor_requires_grad(*x) && grad_mode) *x = t_coalesce(*x);
  return *x ? t_sparse_values(*x) : NULL;
}

static bool check_coo(const char *op, const Tensor *x) {
  return is_coo(x) || door_refuse_layout(op, x) != NULL;
}

/* A COO tensor of other places, recorded by its values; the node gets the name of the op. */
static Tensor *coo_of_values(Tensor *indices, Tensor *values, int ndim, const int64_t *sizes,
                             bool coalesced, const char *name) {
  if (blocked(indices, values)) return NULL;
  Tensor *y = sparse_coo_of(indices, t_detach(values), ndim, sizes, coalesced);
  return node_rename(t_with_values(y, values), name);
}

static Tensor *list_of(int64_t n, const int64_t *v) {
  Tensor *t = tensor_empty(1, &n, DT_I64);
  if (t && n) memcpy(words_in(t), v, (size_t)n * sizeof *v);
  return t;
}

/* The indices of all sparse dimensions but `dim`. */
static Tensor *without_dim(Tensor *indices, int64_t dim) {
  int64_t rows[MAX_DIM], n = 0;
  for (int64_t d = 0; d < indices->sizes[0]; d++)
    if (d != dim) rows[n++] = d;
  Tensor *kept = list_of(n, rows);
  return WITHOUT_GRAD(t_index_select(indices, 0, kept));
}

/* The entries whose index of dim is in [start, end), by `step`. */
static Tensor *entries_within(Tensor *x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  Tensor *at = sparse_index_words(sparse_parts(x)->indices);
  int64_t n = at ? at->sizes[1] : 0, *found = scratch_array(n + 1, sizeof *found), count = 0;
  if (!at || !found) return NULL;
  const int64_t *v = words_of(at) + dim * n;
  for (int64_t i = 0; i < n; i++)
    if (v[i] >= start && v[i] < end && (v[i] - start) % step == 0) found[count++] = i;
  return list_of(count, found);
}

Tensor *t_sparse_select(Tensor *x, int64_t dim, int64_t index) {
  ANY_ENTERED(t_sparse_select, "select", x, dim, index);
  if (blocked(x) || !check_coo("select", x) || tensor_size(x, dim) < 0) return NULL;
  dim = dim_wrap(dim, x->ndim);
  int64_t size = x->sizes[dim], sizes[MAX_DIM];
  if (index < -size || index >= size)
    return fail(ERR_INDEX,
                "select(): index %lld out of range for tensor of size %s at dimension %lld",
                (Shown)index, shape_text(x), (Shown)dim);
  if (index < 0) index += size;
  for (int d = 0, k = 0; d < x->ndim; d++)
    if (d != dim) sizes[k++] = x->sizes[d];
  Tensor *values = own_values(&x);
  if (!values) return NULL;
  const Sparse *s = sparse_parts(x);
  if (dim >= s->sparse_dim)
    return coo_of_values(s->indices, t_select(values, dim - s->sparse_dim + 1, index), x->ndim - 1,
                         sizes, s->coalesced, "SelectBackward0");
  Tensor *which = entries_within(x, dim, index, index + 1, 1);
  values = t_index_select(values, 0, which);
  if (s->sparse_dim == 1) return t_sum(values, ONE_DIM(0), false, tensor_dtype(values));
  Tensor *indices = WITHOUT_GRAD(t_index_select(without_dim(s->indices, dim), 1, which));
  return coo_of_values(indices, values, x->ndim - 1, sizes, s->coalesced, "SelectBackward0");
}

Tensor *t_sparse_slice(Tensor *x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  ANY_ENTERED(t_sparse_slice, "slice", x, dim, start, end, step);
  if (blocked(x) || !check_coo("slice", x) || tensor_size(x, dim) < 0) return NULL;
  dim = dim_wrap(dim, x->ndim);
  int64_t size = x->sizes[dim], sizes[MAX_DIM];
  if (step <= 0) return fail(ERR_RUNTIME, "slice step must be positive");
  if (start < 0) start = start + size < 0 ? 0 : start + size;
  if (start > size) start = size;
  if (end < 0) end += size;
  if (end > size) end = size;
  if (end < start) end = start;
  if (start == 0 && end == size && step == 1) return x;
  memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
  sizes[dim] = (end - start + step - 1) / step;
  Tensor *values = own_values(&x);
  if (!values) return NULL;
  const Sparse *s = sparse_parts(x);
  if (dim >= s->sparse_dim)
    return coo_of_values(s->indices, t_slice(values, dim - s->sparse_dim + 1, start, end, step),
                         x->ndim, sizes, s->coalesced, "SliceBackward0");
  Tensor *which = entries_within(x, dim, start, end, step),
         *indices = WITHOUT_GRAD(t_index_select(sparse_index_words(s->indices), 1, which));
  if (!indices) return NULL;
  int64_t *v = words_in(indices) + dim * indices->sizes[1];
  for (int64_t i = 0; i < indices->sizes[1]; i++) v[i] = (v[i] - start) / step;
  return coo_of_values(indices, t_index_select(values, 0, which), x->ndim, sizes, s->coalesced,
                       "SliceBackward0");
}

Tensor *t_sparse_index_select(Tensor *x, int64_t dim, Tensor *index) {
  ANY_ENTERED(t_sparse_index_select, "index_select", x, dim, index);
  if (blocked(x, index)) return NULL;
  if (is_sparse(index)) return door_refuse_layout("index_select", index);
  if (!check_coo("index_select", x) || tensor_size(x, dim) < 0) return NULL;
  dim = dim_wrap(dim, x->ndim);
  if (index->ndim > 1)
    return fail(ERR_INDEX, "index_select() argument index must be 1-D or a scalar tensor, got %d-D",
                index->ndim);
  int64_t sizes[MAX_DIM], size = x->sizes[dim], total = 0;
  memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
  sizes[dim] = index->numel;
  Tensor *values = own_values(&x), *wanted = WITHOUT_GRAD(t_clone(sparse_index_words(index)));
  if (blocked(values, wanted)) return NULL;
  for (int64_t i = 0; i < wanted->numel; i++)
    if (words_of(wanted)[i] < 0) words_in(wanted)[i] += size;
  index = wanted;
  const Sparse *s = sparse_parts(x);
  if (dim >= s->sparse_dim)
    return coo_of_values(s->indices, t_index_select(values, dim - s->sparse_dim + 1, index),
                         x->ndim, sizes, s->coalesced, "IndexSelectBackward0");
  Tensor *at = sparse_index_words(s->indices), *order[2];
  if (!at) return NULL;
  WITHOUT_GRAD_BLOCK t_sort_stable(t_select(at, 0, dim), 0, false, order);
  int64_t *start = scratch_array_zero(size + 2, sizeof *start);
  if (failed() || !start) return NULL;
  const int64_t n = at->sizes[1], *w = words_of(wanted);
  if (!sparse_places_within(words_of(at) + dim * n, n, size)) return NULL;
  for (int64_t i = 0; i < n; i++) start[words_of(order[0])[i] + 1]++;
  for (int64_t i = 0; i < size; i++) start[i + 1] += start[i];
  for (int64_t j = 0; j < wanted->numel; j++) {
    if (w[j] < 0 || w[j] >= size)
      return fail(ERR_INDEX,
                  "index_select(): index contains %lld that is out of range for tensor of "
                  "size %s at dimension %lld",
                  (Shown)w[j], shape_text(x), (Shown)dim);
    total += start[w[j] + 1] - start[w[j]];
  }
  Tensor *which = tensor_empty(1, &total, DT_I64), *to = tensor_empty(1, &total, DT_I64);
  if (blocked(which, to)) return NULL;
  for (int64_t j = 0, k = 0; j < wanted->numel; j++)
    for (int64_t i = start[w[j]]; i < start[w[j] + 1]; i++, k++) {
      words_in(which)[k] = words_of(order[1])[i];
      words_in(to)[k] = j;
    }
  Tensor *indices = WITHOUT_GRAD(t_index_select(at, 1, which));
  if (!indices) return NULL;
  if (total) memcpy(words_in(indices) + dim * total, words_of(to), (size_t)total * sizeof(int64_t));
  return coo_of_values(indices, t_index_select(values, 0, which), x->ndim, sizes, false,
                       "IndexSelectBackward0");
}

Tensor *t_sparse_unsqueeze(Tensor *x, int64_t dim) {
  ANY_ENTERED(t_sparse_unsqueeze, "unsqueeze", x, dim);
  if (blocked(x) || !check_coo("unsqueeze", x) || (dim = dim_wrap(dim, x->ndim + 1)) < 0)
    return NULL;
  if (x->ndim == MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  int64_t sizes[MAX_DIM + 1];
  for (int d = 0; d <= x->ndim; d++) sizes[d] = d == dim ? 1 : x->sizes[d < dim ? d : d - 1];
  Tensor *values = own_values(&x);
  if (!values) return NULL;
  const Sparse *s = sparse_parts(x);
  if (dim > s->sparse_dim)
    return coo_of_values(s->indices, t_unsqueeze(values, dim - s->sparse_dim + 1), x->ndim + 1,
                         sizes, s->coalesced, "UnsqueezeBackward0");
  Tensor *at = sparse_index_words(s->indices);
  int64_t n = at ? at->sizes[1] : 0;
  Tensor *indices = tensor_zeros(2, (int64_t[]){s->sparse_dim + 1, n}, DT_I64);
  if (blocked(at, indices)) return NULL;
  memcpy(words_in(indices), words_of(at), (size_t)(dim * n) * sizeof(int64_t));
  memcpy(words_in(indices) + (dim + 1) * n, words_of(at) + dim * n,
         (size_t)((s->sparse_dim - dim) * n) * sizeof(int64_t));
  return coo_of_values(indices, values, x->ndim + 1, sizes, s->coalesced, "UnsqueezeBackward0");
}

/* x[index] with numbers, slices and new dimensions alone, one after the other. */
Tensor *t_sparse_getitem(Tensor *x, Ints index) {
  int64_t dim = 0;
  Tensor *y = x;
  for (int i = 0; i < index.n && y && !failed();) {
    const int64_t kind = index.v[i], *v = index.v + i + 1;
    if (kind == ITEM_INT) y = t_select(y, dim, v[0]);
    else if (kind == ITEM_NONE) y = t_unsqueeze(y, dim++);
    else if (kind == ITEM_SLICE)
      y = t_slice(y, dim++, v[0] == INT64_MIN ? 0 : v[0], v[1] == INT64_MIN ? INT64_MAX : v[1],
                  v[2] == INT64_MIN ? 1 : v[2]);
    else return door_refuse_layout("index.Tensor", x);
    i += kind == ITEM_SLICE ? 4 : kind == ITEM_NONE ? 1 : 2;
  }
  return y;
}

/* Repeats each entry along sparse dimensions, in order; expands dense dimensions. */
Tensor *t_sparse_broadcast_to(Tensor *x, Ints size) {
  ANY_ENTERED(t_sparse_broadcast_to, "_sparse_broadcast_to", x, size);
  if (blocked(x)) return NULL;
  if (!is_sparse(x) || !is_coo(x)) return door_refuse_layout("_sparse_broadcast_to", x);
  if (size.n < x->ndim)
    return fail(ERR_RUNTIME, "the requested broadcast shape has fewer dimensions than the input");
  if (size.n > MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  const int more = size.n - x->ndim, sparse = sparse_dims(x) + more;
  if (sizes_equal(x->ndim, x->sizes, size.n, size.v)) return x;
  int64_t times = 1, inner[MAX_DIM + 1];
  int last_kept = -1, first_new = more ? 0 : -1;
  bool repeated[MAX_DIM];
  for (int d = 0; d < size.n; d++) {
    int64_t own = d < more ? 1 : x->sizes[d - more];
    if (own != size.v[d] && own != 1)
      return fail(ERR_RUNTIME,
                  "The input's length %lld at dimension %d does not broadcast over the requested "
                  "shape of length %lld at dimension %d",
                  (Shown)own, d - more, (Shown)size.v[d], d);
    repeated[d] = d < sparse && (d < more || own != size.v[d]);
    if (repeated[d]) times *= size.v[d];
    if (repeated[d] && first_new < 0) first_new = d;
    if (d < sparse && !repeated[d]) last_kept = d;
  }
  bool in_order = !x->ndim || last_kept < first_new || first_new < 0;
  Tensor *values = own_values(&x);
  if (!values) return NULL;
  const Sparse *s = sparse_parts(x);
  Tensor *at = sparse_index_words(s->indices);
  const int64_t n = at ? at->sizes[1] : 0, all = n * times;
  Tensor *to = tensor_empty(2, (int64_t[]){sparse, all}, DT_I64),
         *which = tensor_empty(1, &all, DT_I64);
  if (blocked(at, to) || !which) return NULL;
  for (int64_t i = 0; i < all; i++) words_in(which)[i] = i / times;
  int64_t step = times;
  for (int d = 0; d < sparse; d++) {
    if (repeated[d]) step /= size.v[d] ? size.v[d] : 1;
    for (int64_t i = 0; i < all; i++)
      words_in(to)[d * all + i] = repeated[d] ? i % times / step % size.v[d]
                                              : words_of(at)[(d - more) * n + i / times];
  }
  inner[0] = n;
  memcpy(inner + 1, size.v + sparse, (size_t)(size.n - sparse) * sizeof *inner);
  values = t_index_select(t_expand(values, size.n - sparse + 1, inner), 0, which);
  return coo_of_values(to, values, size.n, size.v, s->coalesced && in_order,
                       "SparseBroadcastToBackward0");
}

Tensor *t_sparse_permute(Tensor *x, Ints dims) {
  ANY_ENTERED(t_sparse_permute, "permute", x, dims);
  if (blocked(x) || !check_coo("permute", x)) return NULL;
  if (dims.n != x->ndim)
    return fail(ERR_RUNTIME,
                "permute(sparse_coo): number of dimensions in the tensor input does not match the "
                "length of the desired ordering of dimensions i.e. input.dim() = %d is not equal "
                "to len(dims) = %d",
                x->ndim, dims.n);
  int64_t order[MAX_DIM], inner[MAX_DIM + 1] = {0}, sizes[MAX_DIM];
  uint64_t seen = 0;
  int sparse = sparse_dims(x);
  bool moved = false;
  for (int i = 0; i < dims.n; i++) {
    if ((order[i] = dim_wrap(dims.v[i], x->ndim)) < 0) return NULL;
    if (seen >> order[i] & 1)
      return fail(ERR_RUNTIME, "permute(): duplicate dims are not allowed.");
    seen |= (uint64_t)1 << order[i];
    if ((i < sparse) != (order[i] < sparse))
      return fail(ERR_RUNTIME,
                  "permute(sparse_coo): transpositions between sparse and dense dimensions are not "
                  "allowed.Only transpositions within sparse and dense dimensions are supported.");
    sizes[i] = x->sizes[order[i]];
    moved = moved || (i < sparse && order[i] != i);
    if (i >= sparse) inner[i - sparse + 1] = order[i] - sparse + 1;
  }
  Tensor *values = own_values(&x), *rows = list_of(sparse, order);
  if (blocked(values, rows)) return NULL;
  const Sparse *s = sparse_parts(x);
  values = t_permute(values, (Ints){x->ndim - sparse + 1, inner});
  Tensor *indices = WITHOUT_GRAD(t_index_select(s->indices, 0, rows));
  return coo_of_values(indices, values, x->ndim, sizes, s->coalesced && !moved, "PermuteBackward0");
}

static bool check_joined(Tensors ts, int64_t dim) {
  const Tensor *first = ts.v[0];
  for (int i = 0; i < ts.n; i++) {
    const Tensor *t = ts.v[i];
    if (!is_sparse(t) || !is_coo(t))
      return fail(ERR_RUNTIME,
                  "Concatenating sparse tensors, but a %s tensor was found at position "
                  "%d.",
                  is_sparse(t) ? layout_text(t) : "dense", i),
             false;
    bool fits = t->ndim == first->ndim && sparse_dims(t) == sparse_dims(first);
    for (int d = 0; fits && d < t->ndim; d++) fits = d == dim || t->sizes[d] == first->sizes[d];
    if (!fits)
      return fail(ERR_RUNTIME,
                  "All tensors must have the same shape: %s (except in the concatenating "
                  "dimension), "
                  "with %d sparse dimensions; but found shape: %s at position %d.",
                  shape_text(first), sparse_dims(first), shape_text(t), i),
             false;
  }
  return true;
}

/* Values joined along a dense dimension have zeros at the places of the others. */
static Tensor *pad_with_zeros(Tensor *values, int64_t dim, int64_t before, int64_t after) {
  Tensor *all[3] = {NULL, values, NULL};
  int64_t sizes[MAX_DIM + 1];
  if (blocked(values)) return NULL;
  memcpy(sizes, values->sizes, (size_t)values->ndim * sizeof *sizes);
  sizes[dim] = before;
  all[0] = tensor_zeros(values->ndim, sizes, tensor_dtype(values));
  sizes[dim] = after;
  all[2] = tensor_zeros(values->ndim, sizes, tensor_dtype(values));
  return blocked(all[0], all[2]) ? NULL : t_cat((Tensors){3, all}, dim);
}

Tensor *t_sparse_cat(Tensors ts, int64_t dim) {
  ANY_ENTERED(t_sparse_cat, "cat", ts, dim);
  if (failed() || (dim = dim_wrap(dim, ts.v[0]->ndim)) < 0 || !check_joined(ts, dim)) return NULL;
  Tensor **indices = scratch_array(ts.n, sizeof *indices),
         **values = scratch_array(ts.n, sizeof *values);
  if (!indices || !values) return NULL;
  int64_t sizes[MAX_DIM], total = 0, before = 0;
  for (int i = 0; i < ts.n; i++) total += ts.v[i]->sizes[dim];
  memcpy(sizes, ts.v[0]->sizes, (size_t)ts.v[0]->ndim * sizeof *sizes);
  sizes[dim] = total;
  for (int i = 0; i < ts.n && !failed(); i++) {
    Tensor *x = ts.v[i];
    int sparse = sparse_dims(x);
    int64_t size = x->sizes[dim];
    values[i] = own_values(&x);
    indices[i] = x ? WITHOUT_GRAD(t_clone(sparse_index_words(sparse_parts(x)->indices))) : NULL;
    if (blocked(indices[i], values[i])) return NULL;
    if (dim >= sparse)
      values[i] = pad_with_zeros(values[i], dim - sparse + 1, before, total - before - size);
    int64_t n = indices[i]->sizes[1], *v = words_in(indices[i]) + dim * n;
    for (int64_t k = 0; dim < sparse && k < n; k++) v[k] += before;
    before += size;
  }
  Tensor *at = failed() ? NULL : WITHOUT_GRAD(t_cat((Tensors){ts.n, indices}, 1));
  return coo_of_values(at, t_cat((Tensors){ts.n, values}, 0), ts.v[0]->ndim, sizes, false,
                       "CatBackward0");
}

Tensor *t_sparse_stack(Tensors ts, int64_t dim) {
  ANY_ENTERED(t_sparse_stack, "stack", ts, dim);
  Tensor **each = failed() ? NULL : scratch_array(ts.n, sizeof *each);
  if (!each || (dim = dim_wrap(dim, ts.v[0]->ndim + 1)) < 0) return NULL;
  for (int i = 0; i < ts.n && !failed(); i++) {
    if (!tensor_same_shape(ts.v[i], ts.v[0]))
      return fail(
          ERR_RUNTIME,
          "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry "
          "%d",
          shape_text(ts.v[0]), shape_text(ts.v[i]), i);
    each[i] = is_sparse(ts.v[i]) ? t_sparse_unsqueeze(ts.v[i], dim) : t_unsqueeze(ts.v[i], dim);
  }
  return failed() ? NULL : t_sparse_cat((Tensors){ts.n, each}, dim);
}

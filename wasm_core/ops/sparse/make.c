/* Sparse tensors of indices and values: checks, properties and changes in place. */
#include <string.h>

#include "ground/memory.h"
#include "ops/sparse/sparse.h"
#include "sparse_rows.h"

static bool invariants; /* whether new tensors are checked, unless a call says otherwise */

bool sparse_check_invariants(const bool *set) {
  if (set) invariants = *set;
  return invariants;
}

static bool checks(const Call *c, int k) { return arg_given(c, k) ? arg_bool(c, k) : invariants; }

/* ------------------------------------------------------------ COO */

/* Checks that places are within the sizes. Never skipped: ops rely on it. */
static bool check_coo_places(const Tensor *indices, const int64_t *sizes) {
  int64_t n = indices->sizes[1];
  for (int d = 0; d < indices->sizes[0]; d++)
    for (int64_t i = 0; i < n; i++) {
      int64_t at = words_of(indices)[d * n + i];
      if (at < 0)
        return fail(ERR_RUNTIME, "found negative index %lld for dim %d", (Shown)at, d), false;
      if (at >= sizes[d])
        return fail(ERR_RUNTIME,
                    "size is inconsistent with indices: for dim %d, size is %lld but found index "
                    "%lld",
                    d, (Shown)sizes[d], (Shown)at),
               false;
    }
  return true;
}

static bool in_order(const Tensor *x) {
  Tensor *places = sparse_places_of((Tensor *)(uintptr_t)x);
  for (int64_t i = 1; places && i < places->numel; i++)
    if (words_of(places)[i - 1] >= words_of(places)[i])
      return fail(ERR_RUNTIME,
                  "cannot set is_coalesced to true if indices correspond to uncoalesced "
                  "COO tensor"),
             false;
  return !failed();
}

static bool check_coo(const Tensor *indices, const Tensor *values, int ndim) {
  if (indices->ndim != 2)
    fail(ERR_RUNTIME, "indices must be sparse_dim x nnz, but got: %s", shape_text(indices));
  else if (!values->ndim)
    fail(ERR_RUNTIME, "values must have at least one dimension, its first is nnz");
  else if (indices->sizes[1] != values->sizes[0])
    fail(ERR_RUNTIME,
         "indices and values must have same nnz, but got nnz from indices: %lld, nnz from values: "
         "%lld",
         (Shown)indices->sizes[1], (Shown)values->sizes[0]);
  else if (ndim >= 0 && ndim != indices->sizes[0] + values->ndim - 1)
    fail(ERR_RUNTIME,
         "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = %d, sparse_dim = "
         "%lld, "
         "dense_dim = %d",
         ndim, (Shown)indices->sizes[0], values->ndim - 1);
  return !failed();
}

static bool check_dense_sizes(const Tensor *indices, const Tensor *values, const int64_t *sizes) {
  const int64_t *own = sizes + indices->sizes[0];
  if (memcmp(own, values->sizes + 1, (size_t)(values->ndim - 1) * sizeof *own) == 0) return true;
  return fail(ERR_RUNTIME, "values has incorrect size, expected %s, got %s",
              sizes_text(values->ndim - 1, own), shape_text(values)),
         false;
}

/* The gradient of the values is the gradient of the tensor, at its places. */
Tensor *t_sparse_coo(Tensor *indices, Tensor *values, int ndim, const int64_t *sizes,
                     bool coalesced) {
  ANY_ENTERED_AS(t_sparse_coo(indices, values, ndim, sizes, coalesced),
                 "_sparse_coo_tensor_with_dims_and_tensors", indices, values);
  if (blocked(indices, values) || !check_coo(indices, values, ndim)) return NULL;
  indices = sparse_index_words(indices);
  if (!indices || !check_coo_places(indices, sizes) || !check_dense_sizes(indices, values, sizes))
    return NULL;
  bool few = indices->sizes[1] < 2;
  Tensor *x = sparse_coo_of(t_detach(indices), t_detach(values), ndim, sizes, coalesced || few);
  return t_with_values(x, values);
}

/* The least sizes that hold all elements. */
static bool infer_sizes(const Tensor *indices, const Tensor *values, int64_t *sizes) {
  int64_t n = indices->sizes[1], sparse = indices->sizes[0];
  if (sparse + values->ndim - 1 > MAX_DIM)
    return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM), false;
  for (int64_t d = 0; d < sparse; d++) {
    sizes[d] = 0;
    for (int64_t i = 0; i < n; i++) {
      int64_t at = words_of(indices)[d * n + i];
      if (at < 0)
        return fail(ERR_RUNTIME, "found negative index %lld for dim %lld", (Shown)at, (Shown)d),
               false;
      if (at >= sizes[d]) sizes[d] = at + 1;
    }
  }
  memcpy(sizes + sparse, values->sizes + 1, (size_t)(values->ndim - 1) * sizeof *sizes);
  return true;
}

static Tensor *mark_requires_grad(Call *c, int k, Tensor *x) {
  if (!x || !arg_bool(c, k)) return x;
  if (!dtype_is_inexact(tensor_dtype(x)))
    return fail(ERR_RUNTIME,
                "Only Tensors of floating point and complex dtype can require gradients");
  x = t_detach(x);
  if (x) x->flags |= FLAG_REQUIRES_GRAD;
  return x;
}

/* indices, values, size, dtype, requires_grad, check_invariants, is_coalesced */
Tensor *op_sparse_coo(Call *c) {
  Tensor *indices = arg_tensor(c, 0), *values = arg_tensor(c, 1);
  Ints size = arg_ints(c, 2);
  if (blocked(indices, values)) return NULL;
  if (is_sparse(indices) || is_sparse(values))
    return fail(ERR_RUNTIME, "expected values to be a strided tensor, but got a %s one",
                layout_text(is_sparse(values) ? values : indices));
  if (!values->ndim) values = t_unsqueeze(values, 0); /* one element */
  if (arg_given(c, 3)) values = t_to(values, arg_dtype(c, 3));
  if (blocked(values) || !check_coo(indices, values, size.n)) return NULL;
  int64_t own[MAX_DIM];
  indices = sparse_index_words(indices);
  if (!indices || (size.n < 0 && !infer_sizes(indices, values, own))) return NULL;
  const int64_t *sizes = size.n < 0 ? own : size.v;
  int ndim = (int)indices->sizes[0] + values->ndim - 1;
  Tensor *x = t_sparse_coo(indices, values, ndim, sizes, arg_bool(c, 6));
  if (x && arg_bool(c, 6) && checks(c, 5) && !in_order(x)) return NULL;
  return mark_requires_grad(c, 4, x);
}

/* A COO tensor without elements: size, dtype, requires_grad */
Tensor *op_sparse_coo_empty(Call *c) {
  Ints size = arg_ints(c, 0);
  DType d = arg_given(c, 1) ? arg_dtype(c, 1) : dtype_default();
  return mark_requires_grad(c, 2, t_sparse_zeros(size.n, size.v, LAYOUT_SPARSE_COO, d));
}

/* ------------------------------------------------------------ compressed layouts */

typedef struct {
  const char *compressed, *plain, *compressed_dim, *plain_dim;
} Names;
static Names names_of(Layout l) {
  return by_columns(l) ? (Names){"ccol_indices", "row_indices", "ncols", "nrows"}
                       : (Names){"crow_indices", "col_indices", "nrows", "ncols"};
}

#define UNMET(...) return fail(ERR_RUNTIME, __VA_ARGS__), false

static bool check_parts(Layout l, const Tensor *from, const Tensor *other, const Tensor *values,
                        Ints size) {
  const Names k = names_of(l);
  const int batch = from->ndim - 1, blocks = in_blocks(l) ? 2 : 0;
  if (!from->ndim) UNMET("%s must have dimensionality >= 1 but got 0", k.compressed);
  if (other->ndim != from->ndim)
    UNMET("%s and %s dimensionalities must be equal but got %d and %d, respectively", k.compressed,
          k.plain, from->ndim, other->ndim);
  if (values->ndim < batch + 1 + blocks)
    UNMET(
        "values must have dimensionality > sum of batch and block dimensionalities (=%d + %d) but "
        "got %d",
        batch, blocks, values->ndim);
  for (int d = 0; d < batch; d++) {
    const int64_t *own = size.n > d ? size.v : from->sizes;
    if (from->sizes[d] != own[d] || other->sizes[d] != own[d] || values->sizes[d] != own[d])
      UNMET("all batch dimensions of %s (=%s), %s (=%s), and values (=%s) must be equal to tensor "
            "batch dimensions (=%s)",
            k.compressed, sizes_text(batch, from->sizes), k.plain, sizes_text(batch, other->sizes),
            sizes_text(batch, values->sizes), sizes_text(batch, own));
  }
  if (!from->sizes[batch] && size.n < 0)
    UNMET("%s must have at least one element along its last dimension", k.compressed);
  if (other->sizes[batch] != values->sizes[batch])
    UNMET("%s.shape[-1] must be equal to nnz (=%lld) as defined by values.shape[%d], but got %lld",
          k.plain, (Shown)values->sizes[batch], batch, (Shown)other->sizes[batch]);
  for (int d = 0; d < blocks; d++)
    if (values->sizes[batch + 1 + d] < 1) UNMET("blocksize must be positive");
  return true;
}

/* The sizes implied by the parts. `largest` is the largest plain index. */
static void parts_sizes(Layout l, const Tensor *from, const Tensor *values, int64_t largest,
                        int64_t *sizes, int *ndim) {
  const int batch = from->ndim - 1, blocks = in_blocks(l) ? 2 : 0;
  const int64_t *v = values->sizes + batch + 1, b0 = blocks ? v[0] : 1, b1 = blocks ? v[1] : 1;
  int64_t lines = from->sizes[batch] - 1, width = largest + 1;
  memcpy(sizes, from->sizes, (size_t)batch * sizeof *sizes);
  sizes[batch] = (by_columns(l) ? width : lines) * b0;
  sizes[batch + 1] = (by_columns(l) ? lines : width) * b1;
  *ndim = batch + 2 + values->ndim - batch - 1 - blocks;
  memcpy(sizes + batch + 2, v + blocks, (size_t)(*ndim - batch - 2) * sizeof *sizes);
}

/* Checks what ops rely on: lines begin at 0 and never decrease, and the plain index is within its
 * size. */
static bool check_numbers(Layout l, const Tensor *from, const Tensor *other, int64_t lines,
                          int64_t width) {
  const Names k = names_of(l);
  const int64_t n = other->sizes[other->ndim - 1], batches = from->numel / (lines + 1);
  for (int64_t b = 0; b < batches; b++) {
    const int64_t *c = words_of(from) + b * (lines + 1), *p = words_of(other) + b * n;
    if (c[0] != 0) UNMET("`%s[..., 0] == 0` is not satisfied.", k.compressed);
    if (c[lines] != n) UNMET("`%s[..., -1] == nnz` is not satisfied.", k.compressed);
    for (int64_t i = 0; i < lines; i++) {
      if (c[i + 1] < c[i] || c[i + 1] - c[i] > width)
        UNMET("`0 <= %s[..., 1:] - %s[..., :-1] <= %s` is not satisfied.", k.compressed,
              k.compressed, k.plain_dim);
      for (int64_t j = c[i]; j < c[i + 1]; j++) {
        if (p[j] < 0 || p[j] >= width)
          UNMET("`0 <= %s < %s` is not satisfied.", k.plain, k.plain_dim);
        if (j > c[i] && p[j] <= p[j - 1])
          UNMET(
              "`%s[..., %s[..., i - 1]:%s[..., i]] for all i = 1, ..., %s are sorted and distinct "
              "along the last dimension values` is not satisfied.",
              k.plain, k.compressed, k.compressed, k.compressed_dim);
      }
    }
  }
  return true;
}

static bool check_sizes(Layout l, Ints size, const int64_t *own, int ndim, const Tensor *from,
                        const Tensor *values) {
  const int batch = from->ndim - 1;
  const Names k = names_of(l);
  const int lines = by_columns(l) ? batch + 1 : batch, at = by_columns(l) ? batch : batch + 1;
  const int64_t *block = in_blocks(l) ? values->sizes + batch + 1 : NULL;
  if (size.n != ndim)
    UNMET("tensor dimensionality must be sum of batch, base, and dense dimensionalities (=%d + 2 + "
          "%d) but got %d",
          batch, ndim - batch - 2, (int)size.n);
  for (int d = batch; block && d < batch + 2; d++)
    if (size.v[d] % block[d - batch])
      UNMET("tensor shape[%d] (=%lld) must be divisible with blocksize[%d] (=%lld) as defined by "
            "values shape",
            d, (Shown)size.v[d], d - batch, (Shown)block[d - batch]);
  for (int d = 0; d < ndim; d++) {
    if (d == lines && size.v[d] != own[d])
      UNMET("%s.shape[-1] must be equal to the number of %s + 1 (=%lld), but got %lld",
            k.compressed,
            by_columns(l) ? block ? "column blocks" : "columns"
            : block       ? "row blocks"
                          : "rows",
            (Shown)(size.v[d] / (block ? block[d - batch] : 1) + 1), (Shown)from->sizes[batch]);
    if (d != lines && d != at && size.v[d] != own[d])
      UNMET("the sizes of the values, %s, do not fit the size %s", shape_text(values),
            sizes_text(size.n, size.v));
  }
  return true;
}

static bool is_index(const Tensor *t) { return t->dtype == DT_I64 || t->dtype == DT_I32; }

static const char *layout_of(const Tensor *t) { return is_sparse(t) ? layout_text(t) : "Strided"; }

/* Checks the parts and computes the sizes of the tensor. */
static bool check_compressed(Layout l, Tensor *from, Tensor *other, Tensor *values, Ints size,
                             int64_t *sizes, int *ndim) {
  if (blocked(from, other, values)) return false;
  const Names k = names_of(l);
  const Tensor *parts[] = {from, other, values};
  const char *const named[] = {k.compressed, k.plain, "values"};
  for (int i = 0; i < 3; i++)
    if (is_sparse(parts[i]))
      UNMET("expected %s to be a strided tensor but got %s tensor", named[i], layout_of(parts[i]));
  if (!check_parts(l, from, other, values, size)) return false;
  if (from->dtype != other->dtype)
    UNMET("%s and %s must have the same dtype, bot got %s and %s, respectively", k.compressed,
          k.plain, legacy(from), legacy(other));
  if (!is_index(from))
    UNMET("%s and %s dtype must be Int or Long, but got %s", k.compressed, k.plain, legacy(from));
  if (values->ndim + 2 > MAX_DIM) UNMET("tensors have at most %d dimensions", MAX_DIM);
  Tensor *c = sparse_index_words(from), *p = sparse_index_words(other);
  int64_t largest = -1;
  if (blocked(c, p)) return false;
  for (int64_t i = 0; i < p->numel; i++)
    if (words_of(p)[i] > largest) largest = words_of(p)[i];
  parts_sizes(l, from, values, largest, sizes, ndim);
  if (size.n >= 0) {
    if (!check_sizes(l, size, sizes, *ndim, from, values)) return false;
    memcpy(sizes, size.v, (size_t)size.n * sizeof *sizes);
  }
  const int batch = from->ndim - 1;
  const int64_t b = in_blocks(l) ? values->sizes[batch + 1 + !by_columns(l)] : 1;
  return check_numbers(l, c, p, from->sizes[batch] - 1, sizes[batch + !by_columns(l)] / b);
}

static Tensor *make_compressed(Layout l, Tensor *from, Tensor *other, Tensor *values, Ints size) {
  int64_t sizes[MAX_DIM + 2];
  int ndim;
  if (!check_compressed(l, from, other, values, size, sizes, &ndim)) return NULL;
  Sparse s = {.values = t_detach(values),
              .indices = t_detach(from),
              .plain = t_detach(other),
              .layout = (uint8_t)l,
              .sparse_dim = 2};
  Tensor *x = tensor_sparse(ndim, sizes, s);
  return t_with_values(x, values);
}

/* indices, values, size, is_coalesced, check_pinning: whether all are pinned or none. None is. */
void op_validate_coo(Call *c) {
  Tensor *indices = arg_tensor(c, 0), *values = arg_tensor(c, 1);
  Ints size = arg_ints(c, 2);
  if (blocked(indices, values)) return;
  if (is_sparse(indices))
    fail(ERR_RUNTIME, "expected indices to be a dense tensor, but got indices of layout %s",
         layout_of(indices));
  else if (is_sparse(values))
    fail(ERR_RUNTIME, "expected values to be a dense tensor, but got values of layout %s",
         layout_of(values));
  if (failed()) return;
  if (!values->ndim) values = t_unsqueeze(values, 0);
  if (!values || !check_coo(indices, values, size.n) || !check_dense_sizes(indices, values, size.v))
    return;
  if (indices->dtype != DT_I64)
    fail(ERR_RUNTIME, "expected scalar type Long but found %s", legacy(indices));
  if (failed() || !(indices = sparse_index_words(indices)) || !check_coo_places(indices, size.v))
    return;
  if (arg_given(c, 3) && arg_bool(c, 3))
    in_order(sparse_coo_of(indices, t_detach(values), size.n, size.v, true));
}

/* compressed, plain, values, size, check_pinning */
void op_validate_layout(Call *c, Layout l) {
  int64_t sizes[MAX_DIM + 2];
  int ndim;
  check_compressed(l, arg_tensor(c, 0), arg_tensor(c, 1), arg_tensor(c, 2), arg_ints(c, 3), sizes,
                   &ndim);
}

/* compressed, plain, values, size, layout, check_pinning */
void op_validate_compressed(Call *c) {
  Layout l;
  if (!layout_named(arg_str(c, 4), &l)) return;
  if (l <= LAYOUT_SPARSE_COO)
    fail(ERR_RUNTIME,
         "validate_sparse_compressed_tensor_args expected sparse compressed tensor layout but got "
         "%s",
         l == LAYOUT_STRIDED ? "Strided" : "Sparse");
  else op_validate_layout(c, l);
}

/* compressed, plain, values, size, layout, dtype, requires_grad */
Tensor *op_sparse_compressed(Call *c) {
  Layout l;
  Tensor *values = arg_tensor(c, 2);
  if (!layout_named(arg_str(c, 4), &l)) return NULL;
  if (l <= LAYOUT_SPARSE_COO)
    return fail(ERR_RUNTIME, "sparse_compressed_tensor: expected a compressed layout, but got %s",
                layout_name(l));
  if (arg_given(c, 5)) values = t_to(values, arg_dtype(c, 5));
  return mark_requires_grad(
      c, 6, make_compressed(l, arg_tensor(c, 0), arg_tensor(c, 1), values, arg_ints(c, 3)));
}

/* ------------------------------------------------------------ properties */

void op_layout(Call *c) {
  static const char *const names[] = {
#define X(NAME, name, shown) #name,
      TENSOR_LAYOUTS(X)
#undef X
  };
  ret_str(c, names[tensor_layout(arg_tensor(c, 0))]);
}

static bool is_of(Tensor *x, const char *op, bool fits, const char *what) {
  if (x && !fits)
    fail(ERR_RUNTIME, "%s expected %s tensor layout but got %s", op, what, layout_text(x));
  return x && !failed();
}

static bool is_of_coo(Tensor *x, const char *op) {
  return is_of(x, op, is_sparse(x) && is_coo(x), "sparse coordinate");
}

Tensor *t_indices(Tensor *x) {
  ANY_ENTERED(t_indices, "indices", x);
  if (!is_of_coo(x, "indices")) return NULL;
  if (!sparse_parts(x)->coalesced)
    return fail(ERR_RUNTIME,
                "Cannot get indices on an uncoalesced tensor, please call .coalesce() first");
  return t_detach(sparse_parts(x)->indices);
}

Tensor *t_raw_indices(Tensor *x) {
  ANY_ENTERED(t_raw_indices, "_indices", x);
  if (!is_sparse(x) || !is_coo(x)) return door_refuse_layout("_indices", x);
  return t_detach(sparse_parts(x)->indices);
}

Tensor *t_raw_values(Tensor *x) {
  ANY_ENTERED(t_raw_values, "_values", x);
  if (!is_sparse(x)) return door_refuse_layout("_values", x);
  return t_detach(sparse_parts(x)->values);
}

/* crow_indices and its kin. columns: of layouts with compressed columns; plain: the plain index
 * instead of the compressed one. */
Tensor *t_compressed_indices(Tensor *x, const char *op, bool columns, bool plain) {
  Layout l = tensor_layout(x);
  bool fits = l > LAYOUT_SPARSE_COO && by_columns(l) == columns;
  if (!is_of(x, op, fits, columns ? "sparse column compressed" : "sparse row compressed"))
    return NULL;
  return t_detach(plain ? sparse_parts(x)->plain : sparse_parts(x)->indices);
}

bool op_is_coalesced(Tensor *x) {
  return is_of_coo(x, "is_coalesced") && sparse_parts(x)->coalesced;
}

int64_t op_nnz(Tensor *x) {
  if (!is_sparse(x)) door_refuse_layout("_nnz", x);
  if (failed()) return 0;
  int64_t n = sparse_count_of(x);
  return n;
}

int64_t op_sparse_dim(Tensor *x) { return sparse_dims(x); }
int64_t op_dense_dim(Tensor *x) { return sparse_dense_dims(x); }
static bool coo_alone(Tensor *x, const char *op) {
  return is_sparse(x) && is_coo(x) ? true : door_refuse_layout(op, x) != NULL;
}
int64_t op_dim_i(Tensor *x) { return coo_alone(x, "_dimI") ? sparse_dims(x) : 0; }
int64_t op_dim_v(Tensor *x) { return coo_alone(x, "_dimV") ? sparse_dense_dims(x) : 0; }

/* ------------------------------------------------------------ in place */

Tensor *t_coalesced_(Tensor *x, bool coalesced) {
  ANY_ENTERED(t_coalesced_, "_coalesced_", x, coalesced);
  if (!is_of_coo(x, "_coalesced_")) return NULL;
  Sparse s = *sparse_parts(x);
  s.coalesced = coalesced;
  return tensor_set_parts(x, s) ? x : NULL;
}

static bool check_resize(Tensor *x, Ints size, int64_t sparse, int64_t dense) {
  if (!is_sparse(x) || !is_coo(x)) return door_refuse_layout("sparse_resize_", x), false;
  for (int i = 0; i < size.n; i++)
    if (size.v[i] < 0)
      UNMET("Trying to create tensor with negative dimension %lld: %s", (Shown)size.v[i],
            sizes_text(size.n, size.v));
  if (sparse < 0 || dense < 0 || sparse + dense != size.n)
    UNMET("'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = %d, sparse_dim = "
          "%lld, "
          "dense_dim = %lld",
          (int)size.n, (Shown)sparse, (Shown)dense);
  return history_check_inplace(x);
}

/* Changes the sizes of x, which keeps its elements. */
Tensor *t_sparse_resize_(Tensor *x, Ints size, int64_t sparse, int64_t dense) {
  ANY_ENTERED(t_sparse_resize_, "sparse_resize_", x, size, sparse, dense);
  if (blocked(x) || !check_resize(x, size, sparse, dense)) return NULL;
  Sparse s = *sparse_parts(x);
  bool empty = s.values->sizes[0] == 0;
  if (!empty && (sparse != s.sparse_dim || dense != sparse_dense_dims(x)))
    return fail(
        ERR_RUNTIME,
        "changing the number of %s dimensions (from %d to %lld) on a non-empty sparse tensor "
        "is not supported.",
        sparse != s.sparse_dim ? "sparse" : "dense",
        sparse != s.sparse_dim ? s.sparse_dim : sparse_dense_dims(x),
        (Shown)(sparse != s.sparse_dim ? sparse : dense));
  for (int d = 0; d < size.n && !empty; d++)
    if (size.v[d] < x->sizes[d])
      return fail(
          ERR_RUNTIME,
          "shrinking the size of %s dimensions (from %s to %s) on a non-empty sparse tensor "
          "is not supported.",
          d < sparse ? "sparse" : "dense", shape_text(x), sizes_text(size.n, size.v));
  Tensor *none = sparse_structure(
      (Form){LAYOUT_SPARSE_COO, size.n, size.v, (int)sparse, (int)dense, NULL},
      tensor_none_of(DT_I64), tensor_dtype(x));
  if (!none) return NULL;
  Sparse to = empty ? *sparse_parts(none) : s;
  if (!empty && memcmp(size.v + sparse, x->sizes + sparse, (size_t)dense * sizeof *size.v) != 0) {
    int64_t sizes[MAX_DIM + 1] = {s.values->sizes[0]};
    memcpy(sizes + 1, size.v + sparse, (size_t)dense * sizeof *sizes);
    to.values = tensor_zeros((int)dense + 1, sizes, tensor_dtype(x));
    Tensor *part = to.values;
    for (int d = 0; d < dense && part; d++)
      part = tensor_part(part, d + 1, 0, s.values->sizes[d + 1]);
    if (!part || !tensor_copy_data(part, s.values)) return NULL;
  }
  if (!tensor_set_geometry(x, size.n, size.v, none->strides, 0) || !tensor_set_parts(x, to))
    return NULL;
  tensor_bump_version(x);
  return x;
}

/* resize_as_ */
Tensor *t_sparse_resize_as_(Tensor *x, Tensor *like) {
  if (blocked(x, like)) return NULL;
  if (!is_sparse(x) || !is_coo(x)) return door_refuse_layout("resize_as_", x);
  if (!is_sparse(like) || !is_coo(like)) return door_refuse_layout("resize_as_", like);
  return t_sparse_resize_(x, (Ints){like->ndim, like->sizes}, sparse_dims(like),
                          sparse_dense_dims(like));
}

Tensor *t_sparse_resize_and_clear_(Tensor *x, Ints size, int64_t sparse, int64_t dense) {
  ANY_ENTERED(t_sparse_resize_and_clear_, "sparse_resize_and_clear_", x, size, sparse, dense);
  if (blocked(x) || !check_resize(x, size, sparse, dense)) return NULL;
  Tensor *none = sparse_structure(
      (Form){LAYOUT_SPARSE_COO, size.n, size.v, (int)sparse, (int)dense, NULL},
      tensor_none_of(DT_I64), tensor_dtype(x));
  if (!none || !tensor_set_geometry(x, size.n, size.v, none->strides, 0) ||
      !tensor_set_parts(x, *sparse_parts(none)))
    return NULL;
  tensor_bump_version(x);
  return x;
}

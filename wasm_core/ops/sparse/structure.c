/* Layouts of sparse tensors as lists of places, and back. */
#include <string.h>

#include "ground/memory.h"
#include "ops/sparse/sparse.h"
#include "sparse_rows.h"

Tensor *sparse_index_words(Tensor *t) {
  return WITHOUT_GRAD(t_contiguous(t_resolve_neg(t_to(t, DT_I64))));
}

bool layout_named(const char *name, Layout *found) {
  static const char *const names[] = {
#define X(NAME, name, shown) #name,
      TENSOR_LAYOUTS(X)
#undef X
  };
  if (strncmp(name, "torch.", 6) == 0) name += 6;
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
    if (strcmp(names[i], name) == 0) return *found = (Layout)i, true;
  return fail(ERR_RUNTIME, "unsupported layout: %s", name), false;
}

/* ------------------------------------------------------------ dimensions */

int sparse_dims(const Tensor *x) { return is_sparse(x) ? sparse_parts(x)->sparse_dim : 0; }

int sparse_batch_dims(const Tensor *x) {
  return is_sparse(x) && !is_coo(x) ? sparse_parts(x)->indices->ndim - 1 : 0;
}

int sparse_dense_dims(const Tensor *x) {
  return is_sparse(x) ? x->ndim - sparse_dims(x) - sparse_batch_dims(x) : x->ndim;
}

int64_t sparse_count_of(const Tensor *x) {
  return sparse_parts(x)->values->sizes[sparse_batch_dims(x)];
}

static int64_t product(int n, const int64_t *sizes) {
  int64_t all = 1;
  for (int i = 0; i < n; i++) all *= sizes[i];
  return all;
}

Form sparse_form_of(const Tensor *x) {
  Layout l = tensor_layout(x);
  const Tensor *v = is_sparse(x) ? sparse_parts(x)->values : NULL;
  return (Form){l,
                x->ndim,
                x->sizes,
                sparse_dims(x),
                is_sparse(x) ? sparse_dense_dims(x) : 0,
                v && in_blocks(l) ? v->sizes + sparse_batch_dims(x) + 1 : NULL};
}

/* ------------------------------------------------------------ places */

/* Checks indices again: an alias of them may have been written to since they were checked. */
bool sparse_places_within(const int64_t *at, int64_t n, int64_t size) {
  for (int64_t i = 0; i < n; i++)
    if (at[i] < 0 || at[i] >= size)
      return fail(ERR_INDEX,
                  "index %lld of a sparse tensor is out of range of a dimension of size %lld",
                  (Shown)at[i], (Shown)size),
             false;
  return true;
}

static Tensor *coo_places(const Tensor *x) {
  const Sparse *s = sparse_parts(x);
  Tensor *columns = sparse_index_words(s->indices),
         *y = tensor_zeros(1, &s->indices->sizes[1], DT_I64);
  if (!columns || !y) return NULL;
  for (int d = 0; d < s->sparse_dim; d++)
    if (!sparse_places_within(words_of(columns) + d * y->numel, y->numel, x->sizes[d])) return NULL;
  const int64_t *at = words_of(columns), n = y->numel;
  int64_t *out = words_in(y);
  for (int d = 0; d < s->sparse_dim; d++)
    for (int64_t i = 0; i < n; i++) out[i] = out[i] * x->sizes[d] + at[d * n + i];
  return y;
}

/* The places of a compressed tensor; the elements of a block are adjacent. */
static Tensor *compressed_places(const Tensor *x) {
  const Sparse *s = sparse_parts(x);
  const Form f = sparse_form_of(x);
  const int batch = sparse_batch_dims(x);
  const bool columns = by_columns(f.layout);
  int64_t b0 = f.block ? f.block[0] : 1, b1 = f.block ? f.block[1] : 1, n = sparse_count_of(x);
  int64_t rows = x->sizes[batch], cols = x->sizes[batch + 1], batches = product(batch, x->sizes);
  int64_t lines = s->indices->sizes[batch] - 1, total = batches * n * b0 * b1;
  Tensor *from = sparse_index_words(s->indices), *other = sparse_index_words(s->plain),
         *y = tensor_empty(1, &total, DT_I64);
  if (!from || !other || !y) return NULL;
  if (!sparse_places_within(words_of(other), batches * n, columns ? rows / b0 : cols / b1))
    return NULL;
  int64_t *out = words_in(y);
  for (int64_t b = 0; b < batches; b++) {
    const int64_t *c = words_of(from) + b * (lines + 1), *p = words_of(other) + b * n;
    int64_t line = 0;
    for (int64_t k = 0; k < n; k++) {
      while (line + 1 < lines && c[line + 1] <= k) line++;
      int64_t r = (columns ? p[k] : line) * b0, q = (columns ? line : p[k]) * b1;
      for (int64_t i = 0; i < b0; i++)
        for (int64_t j = 0; j < b1; j++) *out++ = (b * rows + r + i) * cols + q + j;
    }
  }
  return y;
}

Tensor *sparse_places_of(Tensor *x) { return is_coo(x) ? coo_places(x) : compressed_places(x); }

static Tensor *shaped_rows(Tensor *t, int64_t rows, int n, const int64_t *sizes) {
  int64_t to[MAX_DIM + 1] = {rows};
  memcpy(to + 1, sizes, (size_t)n * sizeof *to);
  return t_reshape(t, n + 1, to);
}

Tensor *sparse_as_rows(Tensor *t, int sparse) {
  return t ? shaped_rows(t, product(sparse, t->sizes), t->ndim - sparse, t->sizes + sparse) : NULL;
}

Tensor *sparse_value_rows(Tensor *x, Tensor *values) {
  int lead = x->ndim - sparse_dense_dims(x), dense = sparse_dense_dims(x);
  if (is_coo(x) || !values) return values;
  return shaped_rows(values, product(values->ndim - dense, values->sizes), dense, x->sizes + lead);
}

static Tensor *sort_places(Tensor *places, Tensor **order) {
  Tensor *both[2] = {NULL, NULL};
  WITHOUT_GRAD_BLOCK t_sort_stable(places, 0, false, both);
  *order = both[1];
  return both[0];
}

Tensor *sparse_find_places(Tensor *places, Tensor *wanted) {
  Tensor *order, *in_order = sort_places(places, &order);
  Tensor *y = in_order ? tensor_empty(1, &wanted->numel, DT_I64) : NULL;
  if (!y) return NULL;
  const int64_t *at = words_of(in_order), *from = words_of(order), n = places->numel;
  for (int64_t i = 0; i < wanted->numel; i++) {
    int64_t place = words_of(wanted)[i], low = 0, high = n;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (at[middle] < place) low = middle + 1;
      else high = middle;
    }
    words_in(y)[i] = low < n && at[low] == place ? from[low] : n;
  }
  return y;
}

/* ------------------------------------------------------------ making */

Tensor *sparse_coo_of(Tensor *indices, Tensor *values, int ndim, const int64_t *sizes,
                      bool coalesced) {
  if (blocked(indices, values)) return NULL;
  Sparse s = {.values = values,
              .indices = indices,
              .layout = LAYOUT_SPARSE_COO,
              .sparse_dim = (uint8_t)indices->sizes[0],
              .coalesced = coalesced};
  return tensor_sparse(ndim, sizes, s);
}

Tensor *sparse_with_parts(const Tensor *x, Tensor *values) {
  if (failed() || !values) return NULL;
  Sparse s = *sparse_parts(x);
  s.values = values;
  return tensor_sparse(x->ndim, x->sizes, s);
}

Tensor *sparse_with_index_type(Tensor *y, const Tensor *like) {
  if (is_coo(y) || is_coo(like)) return y;
  Sparse s = *sparse_parts(y);
  DType d = tensor_dtype(sparse_parts(like)->indices);
  if (s.indices->dtype == d) return y;
  s.indices = WITHOUT_GRAD(t_to(s.indices, d));
  s.plain = WITHOUT_GRAD(t_to(s.plain, d));
  return blocked(s.indices, s.plain) ? NULL : tensor_sparse(y->ndim, y->sizes, s);
}

static Tensor *coo_structure(Form f, Tensor *places, DType dtype) {
  int64_t n = places->numel, sizes[MAX_DIM + 1] = {n};
  Tensor *indices = tensor_empty(2, (int64_t[]){f.sparse, n}, DT_I64);
  memcpy(sizes + 1, f.sizes + f.sparse, (size_t)(f.ndim - f.sparse) * sizeof *sizes);
  Tensor *values = tensor_zeros(f.ndim - f.sparse + 1, sizes, dtype);
  if (blocked(indices, values)) return NULL;
  for (int64_t i = 0; i < n; i++) {
    int64_t place = words_of(places)[i];
    for (int d = f.sparse - 1; d >= 0; place /= f.sizes[d--])
      words_in(indices)[d * n + i] = place % f.sizes[d];
  }
  return sparse_coo_of(indices, values, f.ndim, f.sizes, true);
}

/* Numbers places by line (row or column) and place within the line, or their blocks in the same
 * way; sorted and distinct. NULL without memory. */
static int64_t *in_lines(Form f, Tensor *places, int64_t *n) {
  const int batch = f.ndim - f.dense - 2;
  const int64_t rows = f.sizes[batch], cols = f.sizes[batch + 1];
  int64_t b0 = f.block ? f.block[0] : 1, b1 = f.block ? f.block[1] : 1;
  Tensor *keys = tensor_empty(1, &places->numel, DT_I64), *order;
  for (int64_t i = 0; keys && i < places->numel; i++) {
    int64_t p = words_of(places)[i], b = p / (rows * cols), r = p / cols % rows / b0,
            c = p % cols / b1;
    words_in(keys)[i] = by_columns(f.layout) ? (b * (cols / b1) + c) * (rows / b0) + r
                                             : (b * (rows / b0) + r) * (cols / b1) + c;
  }
  keys = keys ? sort_places(keys, &order) : NULL;
  int64_t *out = keys ? scratch_array(keys->numel + 1, sizeof *out) : NULL;
  *n = 0;
  for (int64_t i = 0; out && i < keys->numel; i++)
    if (!*n || out[*n - 1] != words_of(keys)[i]) out[(*n)++] = words_of(keys)[i];
  return out;
}

static Tensor *compressed_structure(Form f, Tensor *places, DType dtype) {
  const int batch = f.ndim - f.dense - 2;
  const int64_t b0 = f.block ? f.block[0] : 1, b1 = f.block ? f.block[1] : 1;
  const int64_t rows = f.sizes[batch], cols = f.sizes[batch + 1], batches = product(batch, f.sizes);
  if (b0 < 1 || b1 < 1 || rows % b0 || cols % b1)
    return fail(ERR_RUNTIME,
                "tensor sparse size (%lld, %lld) must be divisible by given blocksize (%lld, %lld)",
                (Shown)rows, (Shown)cols, (Shown)b0, (Shown)b1);
  const int64_t lines = by_columns(f.layout) ? cols / b1 : rows / b0,
                width = by_columns(f.layout) ? rows / b0 : cols / b1;
  int64_t all, *keys = in_lines(f, places, &all);
  if (!keys) return NULL;
  int64_t n = batches ? all / batches : 0, sizes[MAX_DIM + 3];
  memcpy(sizes, f.sizes, (size_t)batch * sizeof *sizes);
  sizes[batch] = lines + 1;
  Tensor *from = tensor_zeros(batch + 1, sizes, DT_I64);
  sizes[batch] = n;
  Tensor *other = tensor_empty(batch + 1, sizes, DT_I64);
  int at = batch + 1;
  if (f.block) sizes[at++] = b0, sizes[at++] = b1;
  memcpy(sizes + at, f.sizes + batch + 2, (size_t)f.dense * sizeof *sizes);
  Tensor *values = tensor_zeros(at + f.dense, sizes, dtype);
  if (blocked(from, other, values)) return NULL;
  for (int64_t i = 0; i < all; i++) {
    int64_t line = keys[i] / width, b = line / lines;
    if (b * n > i || i >= (b + 1) * n)
      return fail(ERR_RUNTIME, "Expect the same number of specified elements per batch.");
    words_in(other)[i] = keys[i] % width;
    words_in(from)[b * (lines + 1) + line % lines + 1]++;
  }
  for (int64_t b = 0; b < batches; b++)
    for (int64_t k = 0; k < lines; k++)
      words_in(from)[b * (lines + 1) + k + 1] += words_in(from)[b * (lines + 1) + k];
  Sparse s = {.values = values,
              .indices = from,
              .plain = other,
              .layout = (uint8_t)f.layout,
              .sparse_dim = 2};
  return tensor_sparse(f.ndim, f.sizes, s);
}

Tensor *sparse_structure(Form f, Tensor *places, DType dtype) {
  if (blocked(places)) return NULL;
  return f.layout == LAYOUT_SPARSE_COO ? coo_structure(f, places, dtype)
                                       : compressed_structure(f, places, dtype);
}

/* ------------------------------------------------------------ values */

/* Adds rows at places. Bools are added as numbers. */
Tensor *sparse_add_rows(Tensor *rows, Tensor *places, Tensor *values) {
  if (blocked(rows, places, values)) return NULL;
  return WITHOUT_GRAD(
      rows->dtype == DT_BOOL
          ? t_to(t_index_add(t_to(rows, DT_I32), 0, places, t_to(values, DT_I32), 1), DT_BOOL)
          : t_index_add(rows, 0, places, t_to(values, tensor_dtype(rows)), 1));
}

Tensor *sparse_dense_value(Tensor *x, DType dtype) {
  GRAD_MODE_WAS;
  int lead = x->ndim - sparse_dense_dims(x);
  Tensor *y = tensor_zeros(x->ndim, x->sizes, dtype == DT_NONE ? tensor_dtype(x) : dtype);
  y = sparse_add_rows(sparse_as_rows(y, lead), sparse_places_of(x),
                      sparse_value_rows(x, sparse_parts(x)->values));
  return y ? t_reshape(y, x->ndim, x->sizes) : NULL;
}

/* Keeps the first row of each place, and adds the others to it in order. */
Tensor *sparse_coalesced_value(Tensor *x) {
  GRAD_MODE_WAS;
  Tensor *places = sparse_places_of(x), *order,
         *in_order = places ? sort_places(places, &order) : NULL;
  if (!in_order) return NULL;
  const int64_t n = places->numel, *at = words_of(in_order), *from = words_of(order);
  int64_t kept = 0, more = 0, k = -1;
  for (int64_t i = 0; i < n; i++) kept += !i || at[i] != at[i - 1];
  int64_t rest = n - kept;
  Tensor *first = tensor_empty(1, &kept, DT_I64), *own = tensor_empty(1, &kept, DT_I64),
         *added = tensor_empty(1, &rest, DT_I64), *to = tensor_empty(1, &rest, DT_I64);
  if (blocked(first, added, to) || !own) return NULL;
  for (int64_t i = 0; i < n; i++) {
    if (!i || at[i] != at[i - 1]) {
      words_in(own)[++k] = at[i];
      words_in(first)[k] = from[i];
    } else {
      words_in(added)[more] = from[i];
      words_in(to)[more++] = k;
    }
  }
  const Sparse *s = sparse_parts(x);
  Tensor *values = t_index_select(s->values, 0, first);
  if (rest) values = sparse_add_rows(values, to, t_index_select(s->values, 0, added));
  Tensor *y = sparse_structure(sparse_form_of(x), own, DT_BOOL);
  return y && values ? sparse_with_parts(y, values) : NULL;
}

/* ------------------------------------------------------------ indices, compressed and not */

static Tensor *integers(Tensor *t, const char *kernel) {
  DType d = tensor_dtype(t);
  return dtype_is_inexact(d) || d == DT_BOOL ? dtype_no_kernel(kernel, d) : sparse_index_words(t);
}

/* The beginning of each row in the sorted row indices, and the end of the last row: (size + 1). */
Tensor *t_convert_indices_from_coo_to_csr(Tensor *rows, int64_t size, bool in_int32) {
  OP_ENTERED(t_convert_indices_from_coo_to_csr, "_convert_indices_from_coo_to_csr", rows, size,
             in_int32);
  if (blocked(rows)) return NULL;
  if (rows->ndim > 1)
    return fail(ERR_RUNTIME, "Input is supposed to be a vector, but got %d dimensional tensor.",
                rows->ndim);
  if (size < 0)
    return fail(ERR_RUNTIME, "_convert_indices_from_coo_to_csr(): size must not be negative");
  int64_t total = size + 1, n = rows->numel, next = 0;
  Tensor *given = integers(rows, "convert_indices_from_coo_to_csr_cpu"),
         *y = tensor_empty(1, &total, DT_I64);
  if (!given || !y || !sparse_places_within(words_of(given), n, total)) return NULL;
  int64_t *out = words_in(y);
  for (int64_t k = 0; k < n; k++) {
    while (next <= words_of(given)[k]) out[next++] = k;
    next = words_of(given)[k] + 1;
  }
  while (next <= size) out[next++] = n;
  return in_int32 ? t_to(y, DT_I32) : y;
}

/* The row and column of each place, after the indices of its batch; the column first if transposed:
 * (batch dims + 2, places). */
Tensor *t_convert_indices_from_csr_to_coo(Tensor *ends, Tensor *columns, bool in_int32,
                                          bool transpose) {
  OP_ENTERED(t_convert_indices_from_csr_to_coo, "_convert_indices_from_csr_to_coo", ends, columns,
             in_int32, transpose);
  if (blocked(ends, columns)) return NULL;
  int batch = ends->ndim - 1;
  if (batch < 0 || columns->ndim != ends->ndim || ends->sizes[batch] < 1 ||
      memcmp(ends->sizes, columns->sizes, (size_t)batch * sizeof *ends->sizes) != 0)
    return fail(ERR_RUNTIME,
                "_convert_indices_from_csr_to_coo(): the two indices do not fit each other");
  int64_t lines = ends->sizes[batch] - 1, each = columns->sizes[batch], n = columns->numel;
  Tensor *from = integers(ends, "convert_indices_from_csr_to_coo_cpu"),
         *other = integers(columns, "convert_indices_from_csr_to_coo_cpu"),
         *y = tensor_zeros(2, (int64_t[]){batch + 2, n}, DT_I64);
  if (!from || !other || !y) return NULL;
  int64_t *out = words_in(y), *row = out + (batch + transpose) * n;
  memcpy(out + (batch + !transpose) * n, words_of(other), (size_t)n * sizeof *out);
  for (int64_t b = 0; b * each < n; b++) {
    const int64_t *end = words_of(from) + b * (lines + 1);
    for (int64_t line = 0; line < lines; line++)
      for (int64_t k = end[line] < 0 ? 0 : end[line]; k < end[line + 1] && k < each; k++)
        row[b * each + k] = line;
    for (int64_t k = 0; k < each; k++)
      for (int64_t d = batch - 1, rest = b; d >= 0; rest /= ends->sizes[d--])
        out[d * n + b * each + k] = rest % ends->sizes[d];
  }
  return in_int32 ? t_to(y, DT_I32) : y;
}

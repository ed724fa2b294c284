/* Products of sparse matrices other than mm: batches, products that are sparse, and products at the
 * places of a sparse matrix alone. All are composed of ops that record. */
#include "ops/sparse/sparse.h"
#include "sparse_rows.h"

#define UNMET(...) return fail(ERR_RUNTIME, __VA_ARGS__), false

/* ------------------------------------------------------------ bmm */

static bool check_batches(const Tensor *a, const Tensor *b) {
  if (!is_sparse(a) || !is_coo(a)) return door_refuse_layout("bmm", is_sparse(a) ? a : b) != NULL;
  if (is_sparse(b)) UNMET("bmm_sparse: Tensor 'mat2' must be dense");
  if (sparse_dense_dims(a))
    UNMET("bmm_sparse: Tensor 'self' must have 0 dense dims, but has %d", sparse_dense_dims(a));
  if (b->ndim != 3) UNMET("bmm_sparse: Tensor 'mat2' must have 3 dims, but has %d", b->ndim);
  if (a->ndim != 3) UNMET("bmm_sparse: Tensor 'self' must have 3 sparse dims, but has %d", a->ndim);
  if (a->sizes[0] != b->sizes[0]) UNMET("bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match");
  if (a->sizes[2] != b->sizes[1]) UNMET("bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match");
  return true;
}

/* The block-diagonal matrix of a batch's matrices. */
static Tensor *block_diagonal(Tensor *a) {
  const int64_t rows = a->sizes[1], cols = a->sizes[2];
  Tensor *values = t_sparse_values(a), *at = sparse_index_words(sparse_parts(a)->indices);
  if (blocked(values, at)) return NULL;
  const int64_t n = at->sizes[1], *w = words_of(at);
  Tensor *to = tensor_empty(2, (int64_t[]){2, n}, DT_I64);
  for (int64_t i = 0; to && i < n; i++) {
    words_in(to)[i] = w[i] * rows + w[n + i];
    words_in(to)[n + i] = w[i] * cols + w[2 * n + i];
  }
  return t_sparse_coo(to, values, 2, (int64_t[]){a->sizes[0] * rows, a->sizes[0] * cols}, true);
}

/* A batch of products, where a is a COO tensor. */
Tensor *t_sparse_bmm(Tensor *a, Tensor *b) {
  ANY_ENTERED(t_sparse_bmm, "bmm", a, b);
  if (blocked(a, b)) return NULL;
  if (!is_sparse(a)) return fail(ERR_RUNTIME, "bmm_sparse: Tensor 'mat2' must be dense");
  if (!check_batches(a, b)) return NULL;
  a = t_coalesce(a);
  Tensor *all = a ? block_diagonal(a) : NULL;
  Tensor *y = t_mm(all, t_reshape(b, 2, (int64_t[]){b->sizes[0] * b->sizes[1], b->sizes[2]}));
  y = y ? t_reshape(y, 3, (int64_t[]){a->sizes[0], a->sizes[1], b->sizes[2]}) : NULL;
  return node_rename(y, "BmmBackward0");
}

/* ------------------------------------------------------------ products that are sparse */

static bool check_matrices(const char *op, const Tensor *a, const Tensor *b) {
  if (!is_sparse(a) || !is_coo(a) || is_sparse(b))
    return fail(ERR_RUNTIME,
                "%s: expected the first matrix to be a COO tensor and the second to be strided, "
                "but got layouts %s and %s",
                op, is_sparse(a) ? layout_text(a) : "Strided",
                is_sparse(b) ? layout_text(b) : "Strided"),
           false;
  if (b->ndim != 2) UNMET("%s: Argument #3: matrices expected, got %dD tensor", op, b->ndim);
  if (sparse_dims(a) != 2 || sparse_dense_dims(a))
    UNMET("%s: Argument #2: matrices expected, got %dD tensor", op, a->ndim);
  if (a->sizes[1] != b->sizes[0])
    UNMET("%s: Argument #3: Expected dim 0 size %lld, got %lld", op, (Shown)a->sizes[1],
          (Shown)b->sizes[0]);
  return true;
}

/* The rows of x that have an element, in order. */
static Tensor *rows_used(Tensor *x) {
  Tensor *at = sparse_index_words(sparse_parts(x)->indices), *out[3];
  if (!at) return NULL;
  WITHOUT_GRAD_BLOCK t_unique(t_select(at, 0, 0), true, NULL, out);
  return failed() ? NULL : out[0];
}

/* a b as a COO tensor with dense rows, where a row of a has an element. */
Tensor *t_hspmm(Tensor *a, Tensor *b) {
  ANY_ENTERED(t_hspmm, "hspmm", a, b);
  if (blocked(a, b) || !check_matrices("hspmm", a, b)) return NULL;
  a = t_coalesce(a);
  Tensor *rows = a ? rows_used(a) : NULL, *y = t_mm_sparse(a, b);
  if (blocked(rows, y)) return NULL;
  return t_sparse_coo(t_unsqueeze(rows, 0), t_index_select(y, 0, rows), 2,
                      (int64_t[]){a->sizes[0], b->sizes[1]}, false);
}

static Tensor *scale_by(Tensor *x, Tensor *factor) {
  if (blocked(x, factor)) return NULL;
  bool one = !dtype_is_complex(tensor_dtype(factor)) && tensor_get_f(factor, 0) == 1;
  return one ? x : t_mul(x, factor);
}

/* beta self + alpha a b as a COO tensor: the elements of self, then those of all rows where a has
 * an element. self NULL: alpha a b. */
Tensor *t_sspaddmm(Tensor *self, Tensor *a, Tensor *b, Tensor *beta, Tensor *alpha) {
  ANY_ENTERED(t_sspaddmm, "sspaddmm", self, a, b, beta, alpha);
  if (blocked(a, b) || blocked(beta, alpha)) return NULL;
  if (!is_sparse(a))
    return fail(ERR_RUNTIME,
                "sspaddmm: expected 'mat1' to have sparse layout, got 'mat1' with layout Strided");
  if (!check_matrices("sspaddmm", a, b)) return NULL;
  if (self && (!is_sparse(self) || !is_coo(self)))
    return fail(ERR_RUNTIME, "sspaddmm: expected 'self' to be a COO tensor");
  const int64_t k = b->sizes[1];
  for (int d = 0; d < 2; d++) {
    int64_t wanted = d ? k : a->sizes[0];
    if (self && self->sizes[d] != wanted)
      return fail(ERR_RUNTIME, "sspaddmm: Argument #1: Expected dim %d size %lld, got %lld", d,
                  (Shown)wanted, (Shown)self->sizes[d]);
  }
  a = t_coalesce(a);
  if (self) self = t_coalesce(self);
  Tensor *rows = a ? rows_used(a) : NULL, *y = t_mm_sparse(a, b);
  if (blocked(rows, y) || (self && failed())) return NULL;
  const int64_t n = rows->numel, own = self ? sparse_count_of(self) : 0;
  Tensor *at = tensor_empty(2, (int64_t[]){2, own + n * k}, DT_I64);
  Tensor *before = self ? sparse_index_words(sparse_parts(self)->indices) : NULL;
  if (!at || failed()) return NULL;
  int64_t *to = words_in(at);
  for (int d = 0; d < 2; d++) {
    for (int64_t i = 0; i < own; i++) *to++ = words_of(before)[d * own + i];
    for (int64_t i = 0; i < n * k; i++) *to++ = d ? i % k : words_of(rows)[i / k];
  }
  Tensor *values = scale_by(t_flatten(t_index_select(y, 0, rows), 0, -1), alpha);
  if (self && values)
    values = t_cat((Tensors){2, (Tensor *[]){scale_by(t_sparse_values(self), beta), values}}, 0);
  return failed() ? NULL : t_sparse_coo(at, values, 2, (int64_t[]){a->sizes[0], k}, false);
}

/* ------------------------------------------------------------ at the places of a matrix */

static bool check_sampled(const Tensor *x, const Tensor *a, const Tensor *b) {
  static const char op[] = "sampled_addmm";
  if (!is_sparse(x) || tensor_layout(x) != LAYOUT_SPARSE_CSR)
    return door_refuse_layout("sparse_sampled_addmm", x) != NULL;
  if (is_sparse(a) || is_sparse(b)) UNMET("%s: Expected mat1 and mat2 to have strided layout", op);
  if (a->dtype != b->dtype)
    UNMET("%s: Expected mat1 and mat2 to have the same dtype, but got %s and %s", op, legacy(a),
          legacy(b));
  if (a->dtype != x->dtype)
    UNMET("%s: Expected self and mat1 to have the same dtype, but got %s and %s", op, legacy(x),
          legacy(a));
  if (a->ndim < 2) UNMET("%s: Expected mat1 to be a matrix, got %d-D tensor", op, a->ndim);
  if (b->ndim < 2) UNMET("%s: Expected mat2 to be a matrix, got %d-D tensor", op, b->ndim);
  if (!sizes_equal(a->ndim - 2, a->sizes, b->ndim - 2, b->sizes))
    UNMET("%s: Expected mat1 and mat2 to have the same batch size, but got %s and %s", op,
          sizes_text(a->ndim - 2, a->sizes), sizes_text(b->ndim - 2, b->sizes));
  if (!sizes_equal(a->ndim - 2, a->sizes, x->ndim - 2, x->sizes))
    UNMET("%s: Expected self and mat1 to have the same batch size, but got %s and %s", op,
          sizes_text(x->ndim - 2, x->sizes), sizes_text(a->ndim - 2, a->sizes));
  const int64_t *m = a->sizes + a->ndim - 2, *k = b->sizes + b->ndim - 2;
  if (m[1] != k[0])
    UNMET("%s: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", op,
          (Shown)m[0], (Shown)m[1], (Shown)k[0], (Shown)k[1]);
  for (int d = 0; d < 2; d++)
    if (x->sizes[x->ndim - 2 + d] != (d ? k[1] : m[0]))
      UNMET("%s: self.shape[%d] must match mat%d.shape[%d]", op, d - 2, d + 1, d - 2);
  return true;
}

/* The elements of a b at these places. Of matrices no others are computed. */
static Tensor *product_at(Tensor *a, Tensor *b, Tensor *places) {
  if (a->ndim > 2) return t_rows_at(t_matmul(a, b), a->ndim, places);
  const int64_t width = b->sizes[1];
  Tensor *rows = tensor_empty(1, &places->numel, DT_I64), *cols = t_clone(rows);
  for (int64_t i = 0; rows && cols && i < places->numel; i++) {
    words_in(rows)[i] = words_of(places)[i] / width;
    words_in(cols)[i] = words_of(places)[i] % width;
  }
  if (blocked(rows, cols)) return NULL;
  return t_sum(t_mul(t_index_select(a, 0, rows), t_index_select(t_t(b), 0, cols)), ONE_DIM(1),
               false, DT_NONE);
}

/* torch.sparse.sampled_addmm: beta self + alpha a b where self has an element. */
Tensor *t_sampled_addmm(Tensor *self, Tensor *a, Tensor *b, Tensor *beta, Tensor *alpha) {
  ANY_ENTERED(t_sampled_addmm, "sparse_sampled_addmm", self, a, b, beta, alpha);
  if (blocked(self, a, b) || blocked(beta, alpha) || !check_sampled(self, a, b)) return NULL;
  Tensor *places = sparse_places_of(self), *own = t_sparse_values(self);
  if (blocked(places, own)) return NULL;
  Tensor *found = product_at(a, b, places);
  if (!found) return NULL;
  found = scale_by(t_reshape(found, own->ndim, own->sizes), alpha);
  Tensor *y = t_with_values(self, t_add(scale_by(own, beta), found));
  return node_rename(y, "SparseSampledAddmmBackward0");
}

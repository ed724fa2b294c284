/* Shared by the files of sparse tensors.
 *
 * A sparse tensor stores some rows of a matrix. A row of a COO tensor holds its dense dimensions.
 * The place of a row is its number in the dense tensor of the same sizes. So every layout is a list
 * of places and a matrix of rows; only the code that makes or shows a layout knows more. */
#ifndef PG_SPARSE_H
#define PG_SPARSE_H

#include "ops/op.h"

static inline const Sparse *sparse_parts(const Tensor *x) { return x->meta->sparse; }
static inline bool is_coo(const Tensor *x) { return tensor_layout(x) == LAYOUT_SPARSE_COO; }
static inline bool by_columns(Layout l) { return l == LAYOUT_SPARSE_CSC || l == LAYOUT_SPARSE_BSC; }
static inline bool in_blocks(Layout l) { return l == LAYOUT_SPARSE_BSR || l == LAYOUT_SPARSE_BSC; }

/* --- structure.c; nothing here is recorded --- */
static inline const int64_t *words_of(const Tensor *t) {
  return (const int64_t *)(const void *)tensor_data(t);
}
static inline int64_t *words_in(Tensor *t) { return (int64_t *)(void *)tensor_data(t); }
Tensor *sparse_index_words(Tensor *t); /* as contiguous int64 */
int sparse_dims(const Tensor *x);
int sparse_dense_dims(const Tensor *x);
int sparse_batch_dims(const Tensor *x);   /* the leading dims of compressed layouts */
int64_t sparse_count_of(const Tensor *x); /* nnz of one batch */
bool sparse_places_within(const int64_t *at, int64_t n, int64_t size);
Tensor *sparse_places_of(Tensor *x); /* of x's rows, in their order */
/* A dense tensor with these sizes and dense dimensions as a matrix of rows. */
Tensor *sparse_as_rows(Tensor *t, int sparse);
Tensor *sparse_value_rows(Tensor *x, Tensor *values); /* values of x's shape, as rows */
/* The index in `places` of each wanted place, or the length of `places` if it is not there. */
Tensor *sparse_find_places(Tensor *places, Tensor *wanted);
/* A sparse tensor's structure. The places, which are sorted and distinct, and the values are
 * separate. `block` is for BSR and BSC. */
typedef struct {
  Layout layout;
  int ndim;
  const int64_t *sizes;
  int sparse, dense;
  const int64_t *block;
} Form;
Form sparse_form_of(const Tensor *x);
Tensor *sparse_structure(Form f, Tensor *places, DType dtype); /* the values are zeros */
Tensor *sparse_with_parts(const Tensor *x, Tensor *values);    /* x's places with other values */
/* A fresh y with compressed indices of the type of like's. */
Tensor *sparse_with_index_type(Tensor *y, const Tensor *like);
Tensor *sparse_coo_of(Tensor *indices, Tensor *values, int ndim, const int64_t *sizes,
                      bool coalesced);
Tensor *sparse_coalesced_value(Tensor *x);
Tensor *sparse_dense_value(Tensor *x, DType dtype);
Tensor *sparse_add_rows(Tensor *rows, Tensor *places, Tensor *values); /* in place */

/* --- convert.c --- */
/* The rows of x, dense or sparse, at these places; recorded. */
Tensor *t_rows_at(Tensor *x, int sparse, Tensor *places);
Tensor *t_with_values(Tensor *x, Tensor *values);
Tensor *t_sparse_values(Tensor *x); /* of a coalesced x */
Tensor *t_to_form(Tensor *x, Form f);

/* --- results.c --- */
Tensor *t_mm_sparse(Tensor *a, Tensor *b);

/* --- bodies.c --- */
void sparse_begin(void); /* tells the door what ops do with sparse arguments */

#endif

/* Matrices in columns: tensors whose last two dims have strides (1, rows), batch after batch.
 *
 * What lu_cholesky.c and qr_svd.c work on in place, and how PyTorch lays out its results. */
#ifndef PG_COLUMNS_H
#define PG_COLUMNS_H

#include "tensor/tensor.h"

static inline int64_t rows_of(const Tensor *x) { return x->sizes[x->ndim - 2]; }
static inline int64_t cols_of(const Tensor *x) { return x->sizes[x->ndim - 1]; }
static inline int64_t least_dim(const Tensor *x) {
  return rows_of(x) < cols_of(x) ? rows_of(x) : cols_of(x);
}

static inline void add_scaled(double *y, double k, const double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] += k * x[i];
}

static inline void exchange(double *x, double *y) {
  double held = *x;
  *x = *y;
  *y = held;
}

static inline double *doubles(Tensor *x) { return (double *)(void *)tensor_data(x); }
static inline int32_t *ints(const Tensor *x) { return (int32_t *)(void *)tensor_data(x); }

/* Whether b of the systems a x = b is a vector, or a batch of vectors. */
static inline bool is_vector_case(const Tensor *a, const Tensor *b) {
  return b->ndim == 1 || sizes_equal(a->ndim - 1, a->sizes, b->ndim, b->sizes);
}

int64_t batch_of(const Tensor *x);
/* Columns of m x n for each matrix of `like`, uninitialised; ones on the diagonal and zeros
 * beside it, in double. */
Tensor *empty_columns(const Tensor *like, int64_t m, int64_t n, DType d);
Tensor *identity_columns(const Tensor *like, int64_t n);
/* A vector of n for each matrix of `like`; n == -1: a number. */
Tensor *empty_vectors(const Tensor *like, int64_t n, DType d);
Tensor *columns(Tensor *x, DType d); /* a copy */
Tensor *flipped(Tensor *x);          /* the same matrices transposed, without history */

/* PyTorch's errors. */
bool check_matrix(const Tensor *x, const char *op, const char *name);
bool check_square(const Tensor *x, const char *op, const char *name);
bool check_float(const Tensor *x, const char *op);
bool check_no_half(const char *kernel, const Tensor *x);
bool check_precise(const Tensor *x, const char *op); /* and not of a half type */
/* op solves a x = b: of one type, a square, with as many rows as b. */
bool check_systems(const Tensor *b, const Tensor *a, const char *op);
/* dtype: of the norm, DT_NONE if it was left open */
bool check_norm_type(const Tensor *x, DType dtype, const char *op);
/* The first info that is not 0, and of which matrix it is, for a message; 0: there is none. */
int first_info(const Tensor *info, char where[48]);
/* `message` has places for the op, the batch element and what the first info that is not 0 says. */
bool check_info(const Tensor *info, const char *op, const char *message);

/* Composed of ops, so that they can be differentiated: ones on a diagonal, m diag(v), diag(v) m. */
Tensor *eye_mask(int64_t n);
Tensor *scale_columns(Tensor *m, Tensor *v);
Tensor *scale_rows(Tensor *v, Tensor *m);

#endif

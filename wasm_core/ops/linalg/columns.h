/* Matrices in columns: tensors whose last two dims have strides (1, rows), batch after batch.
 *
 * Decompositions work on such matrices in place, and PyTorch lays out their results so. */
#ifndef PG_COLUMNS_H
#define PG_COLUMNS_H

#include "kernels/factors.h"
#include "tensor/tensor.h"

static inline int64_t rows_of(const Tensor *x) { return x->sizes[x->ndim - 2]; }
static inline int64_t cols_of(const Tensor *x) { return x->sizes[x->ndim - 1]; }
static inline int64_t least_dim(const Tensor *x) {
  return rows_of(x) < cols_of(x) ? rows_of(x) : cols_of(x);
}

static inline double *doubles(Tensor *x) { return (double *)(void *)tensor_data(x); }
static inline int32_t *ints(const Tensor *x) { return (int32_t *)(void *)tensor_data(x); }

/* The type in which matrices of type d are decomposed, and the functions for it. */
static inline DType wide_type(DType d) { return dtype_is_complex(d) ? DT_C128 : DT_F64; }
static inline const Factorizations *factorizations_of(const Tensor *x) {
  return dtype_is_complex(tensor_dtype(x)) ? &factorizations_c128 : &factorizations_f64;
}
/* The address of number `count` of x, which has no gaps. */
static inline void *number_at(const Tensor *x, int64_t count) {
  return tensor_data(x) + count * dtype_bytes(tensor_dtype(x));
}
/* Whether matrices of type d are rounded to float after each step, where this matters. */
static inline bool rounds_to_float(DType d) { return d == DT_F32 || d == DT_C64; }

/* Whether b of the systems a x = b is a vector, or a batch of vectors. */
static inline bool is_vector_case(const Tensor *a, const Tensor *b) {
  return b->ndim == 1 || sizes_equal(a->ndim - 1, a->sizes, b->ndim, b->sizes);
}

/* The number of matrices to compute with; 0 for an absent tensor. */
int64_t linalg_batch_of(const Tensor *x);
/* Uninitialised columns of m x n for each matrix of `like`; and identity matrices. */
Tensor *linalg_empty_columns(const Tensor *like, int64_t m, int64_t n, DType d);
Tensor *linalg_identity_columns(const Tensor *like, int64_t n, DType d);
/* A vector of n numbers for each matrix of `like`; n == -1: one number. */
Tensor *linalg_empty_vectors(const Tensor *like, int64_t n, DType d);
Tensor *linalg_columns(Tensor *x, DType d); /* a copy */
/* The transposed matrices, without history; `linalg_adjoint_alias` conjugates them too. */
Tensor *linalg_transposed_alias(Tensor *x);
Tensor *linalg_adjoint_alias(Tensor *x);

/* PyTorch's errors. */
bool linalg_check_matrix(const Tensor *x, const char *op, const char *name);
bool linalg_check_square(const Tensor *x, const char *op, const char *name);
bool linalg_check_float(const Tensor *x, const char *op); /* or complex */
/* linalg_check_float, and at least 32 bits. */
bool linalg_check_precise(const Tensor *x, const char *op);
/* Refuses half types, for which no decomposition has a kernel. */
bool linalg_check_factor_kernel(const char *kernel, const Tensor *x);
/* Checks a x = b for the solver op: one type, a square matrix with as many rows as b. */
bool linalg_check_systems(const Tensor *b, const Tensor *a, const char *op);
/* dtype: of the norm, DT_NONE if it was left open */
bool linalg_check_norm_type(const Tensor *x, DType dtype, const char *op);
/* The first nonzero info, and in `where` its matrix, for a message; 0: there is none. */
int linalg_first_info(const Tensor *info, char where[48]);
/* Fails with `message` at the first nonzero info. It has places for the op, the batch element and
 * that info. */
bool linalg_check_info(const Tensor *info, const char *op, const char *message);
/* Fails if the factorization of `op` has a zero on its `diagonal`, by which `solver` would divide.
 * `others` are ops that factor such a matrix. */
bool linalg_check_pivots(const Tensor *info, const char *op, char diagonal, const char *solver,
                         const char *others);

/* Composed of ops, so that they can be differentiated: ones on a diagonal, m diag(v), diag(v) m,
 * the conjugate transpose (of real matrices the transpose), and the Hermitian matrix with m's lower
 * triangle and a real diagonal. */
Tensor *linalg_eye_mask(int64_t n);
Tensor *linalg_scale_columns(Tensor *m, Tensor *v);
Tensor *linalg_scale_rows(Tensor *v, Tensor *m);
Tensor *linalg_adjoint_of(Tensor *m);
Tensor *linalg_hermitian_of(Tensor *m);

#endif

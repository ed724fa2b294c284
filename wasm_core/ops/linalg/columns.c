/* Matrices in columns: making, copying, transposing and checking them. */
#include "ops/linalg/columns.h"

#include <stdio.h>
#include <string.h>

#include "ops/create/create.h"
#include "ops/elementwise/elementwise.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "ops/view/diagonal.h"
#include "ops/view/view.h"

int64_t linalg_batch_of(const Tensor *x) {
  int64_t n = tensor_absent(x) ? 0 : 1;
  for (int i = 0; i + 2 < x->ndim; i++) n *= x->sizes[i];
  return n;
}

Tensor *linalg_empty_columns(const Tensor *like, int64_t m, int64_t n, DType d) {
  int64_t sizes[MAX_DIM], strides[MAX_DIM], step = m * n > 0 ? m * n : 1;
  int nd = like->ndim;
  memcpy(sizes, like->sizes, (size_t)nd * sizeof *sizes);
  sizes[nd - 2] = m;
  sizes[nd - 1] = n;
  strides[nd - 2] = 1;
  strides[nd - 1] = m > 0 ? m : 1;
  for (int i = nd - 3; i >= 0; step *= sizes[i--]) strides[i] = step;
  return tensor_empty_strided(nd, sizes, strides, d);
}

Tensor *linalg_columns(Tensor *x, DType d) {
  Tensor *y = blocked(x) ? NULL : linalg_empty_columns(x, rows_of(x), cols_of(x), d);
  return y && tensor_copy_data(y, x) ? y : NULL;
}

Tensor *linalg_transposed_alias(Tensor *x) {
  if (blocked(x)) return NULL;
  Tensor *y = tensor_alias(x, x->ndim, x->sizes, x->strides, x->offset);
  if (!y) return NULL;
  int k = y->ndim - 2;
  y->sizes[k] = x->sizes[k + 1];
  y->sizes[k + 1] = x->sizes[k];
  y->strides[k] = x->strides[k + 1];
  y->strides[k + 1] = x->strides[k];
  return y;
}

Tensor *linalg_adjoint_alias(Tensor *x) {
  Tensor *y = linalg_transposed_alias(x);
  if (y && dtype_is_complex(tensor_dtype(y)))
    tensor_set_lazy(y, (y->flags & FLAGS_LAZY) ^ FLAG_CONJ);
  return y;
}

Tensor *linalg_empty_vectors(const Tensor *like, int64_t n, DType d) {
  int64_t sizes[MAX_DIM];
  int nd = like->ndim - 2;
  memcpy(sizes, like->sizes, (size_t)nd * sizeof *sizes);
  if (n >= 0) sizes[nd++] = n;
  return tensor_empty(nd, sizes, d);
}

bool linalg_check_matrix(const Tensor *x, const char *op, const char *name) {
  if (x->ndim >= 2) return true;
  fail(ERR_RUNTIME, "%s: The input tensor %s must have at least 2 dimensions.", op, name);
  return false;
}

bool linalg_check_square(const Tensor *x, const char *op, const char *name) {
  if (!linalg_check_matrix(x, op, name)) return false;
  if (rows_of(x) == cols_of(x)) return true;
  fail(ERR_RUNTIME, "%s: A must be batches of square matrices, but they are %lld by %lld matrices",
       op, (Shown)rows_of(x), (Shown)cols_of(x));
  return false;
}

bool linalg_check_systems(const Tensor *b, const Tensor *a, const char *op) {
  if (a->dtype != b->dtype)
    fail(
        ERR_RUNTIME,
        "Expected b and A to have the same dtype, but found b of type %s and A of type %s instead.",
        legacy(b), legacy(a));
  else if (rows_of(a) != cols_of(a))
    fail(ERR_RUNTIME, "A must be batches of square matrices, but they are %lld by %lld matrices",
         (Shown)rows_of(a), (Shown)cols_of(a));
  else if (rows_of(a) != rows_of(b))
    fail(
        ERR_RUNTIME,
        "Incompatible matrix sizes for %s: each A matrix is %lld by %lld but each b matrix is %lld "
        "by %lld",
        op, (Shown)rows_of(a), (Shown)rows_of(a), (Shown)rows_of(b), (Shown)cols_of(b));
  return !failed();
}

bool linalg_check_float(const Tensor *x, const char *op) {
  if (dtype_is_inexact(tensor_dtype(x))) return true;
  fail(ERR_RUNTIME, "%s: Expected a floating point or complex tensor as input. Got %s", op,
       legacy(x));
  return false;
}

static bool is_precise(const Tensor *x) {
  DType d = tensor_dtype(x);
  return d == DT_F32 || d == DT_F64 || d == DT_C64 || d == DT_C128;
}

bool linalg_check_precise(const Tensor *x, const char *op) {
  if (linalg_check_float(x, op) && !is_precise(x))
    fail(ERR_RUNTIME, "%s: Low precision dtypes not supported. Got %s", op, legacy(x));
  return !failed();
}

bool linalg_check_factor_kernel(const char *kernel, const Tensor *x) {
  return is_precise(x) || dtype_no_kernel(kernel, tensor_dtype(x));
}

Tensor *linalg_identity_columns(const Tensor *like, int64_t n, DType d) {
  Tensor *y = linalg_empty_columns(like, n, n, d);
  if (!y || tensor_absent(y)) return y;
  memset(tensor_data(y), 0, (size_t)(y->numel * dtype_bytes(d)));
  for (int64_t i = 0; i < y->numel; i += i % (n * n) == n * n - 1 ? 1 : n + 1)
    tensor_set_f(y, i, 1);
  return y;
}

int linalg_first_info(const Tensor *info, char where[48]) {
  if (blocked(info) || tensor_absent(info)) return 0;
  int64_t i = 0;
  while (i < info->numel && !ints(info)[i]) i++;
  if (i == info->numel) return 0;
  where[0] = 0;
  if (info->ndim > 0) snprintf(where, 48, "(Batch element %lld): ", (Shown)i);
  return ints(info)[i];
}

bool linalg_check_info(const Tensor *info, const char *op, const char *message) {
  char where[48];
  int says = linalg_first_info(info, where);
  if (says) fail(ERR_LINALG, message, op, where, says);
  return !failed();
}

bool linalg_check_pivots(const Tensor *info, const char *op, char diagonal, const char *solver,
                         const char *others) {
  char where[48];
  int place = linalg_first_info(info, where);
  if (place)
    fail(ERR_RUNTIME,
         "torch.linalg.%s: %s%c[%d,%d] is zero and using it on %s would result in a division by "
         "zero. If you still want to perform the factorization, consider calling %s",
         op, where, diagonal, place, place, solver, others);
  return !failed();
}

/* ------------------------------------------------------------ composed of ops, for gradients */

Tensor *linalg_eye_mask(int64_t n) { return t_eye(n, n, DT_BOOL); }
Tensor *linalg_scale_columns(Tensor *m, Tensor *v) { return t_mul(m, t_unsqueeze(v, -2)); }
Tensor *linalg_scale_rows(Tensor *v, Tensor *m) { return t_mul(t_unsqueeze(v, -1), m); }
Tensor *linalg_adjoint_of(Tensor *m) { return t_conj(t_t(m)); }
Tensor *linalg_hermitian_of(Tensor *m) {
  Tensor *y = t_add(t_tril(m, 0), linalg_adjoint_of(t_tril(m, -1)));
  if (blocked(y) || !dtype_is_complex(tensor_dtype(y))) return y;
  return t_where(linalg_eye_mask(cols_of(y)), t_real(y), y);
}

bool linalg_check_norm_type(const Tensor *x, DType dtype, const char *op) {
  if (!linalg_check_float(x, op)) return false;
  if (dtype == DT_NONE) return true;
  bool complex = dtype_is_complex(tensor_dtype(x));
  if (!dtype_is_inexact(dtype)) {
    fail(ERR_RUNTIME, "%s: dtype should be floating point or complex, but got %s", op,
         dtype_info[dtype].legacy);
  } else if (complex != dtype_is_complex(dtype)) {
    const char *kind = complex ? "complex" : "real";
    fail(ERR_RUNTIME, "%s: dtype should be %s for %s inputs, but got %s", op, kind, kind,
         dtype_info[dtype].legacy);
  } else if (dtype_promote(tensor_dtype(x), dtype) != dtype) {
    fail(ERR_RUNTIME,
         "%s: the dtype of the input (%s) should be convertible without narrowing to the specified "
         "dtype (%s)",
         op, legacy(x), dtype_info[dtype].legacy);
  }
  return !failed();
}

/* hash_tensor: the bits of elements, as double or int64, by exclusive or. */
#include <string.h>

#include "ops/reduce/reduce.h"
#include "reduce_rows.h"

static bool check_hashed(const Tensor *x, Ints dims, DimMask mask) {
  DType d = tensor_dtype(x);
  if (dtype_is_complex(d) || dtype_is_bare(d)) return dtype_no_kernel("xor_sum_cpu", d), false;
  if (x->numel == 0 && dims.n <= 0)
    fail(ERR_RUNTIME, "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. "
                      "Specify the reduction dim with the 'dim' argument.");
  for (int k = 0; k < x->ndim && !failed(); k++)
    if (mask >> k & 1 && x->sizes[k] == 0)
      fail(ERR_INDEX, "hash_tensor: Expected reduction dim %d to have non-zero size.", k);
  return !failed();
}

/* y has x's rank, with the masked dims at size 1. */
static void hash_into(const Tensor *x, DimMask mask, Tensor *y) {
  if (tensor_absent(y)) return;
  const uint64_t *from = (const uint64_t *)(const void *)tensor_data(x);
  uint64_t *to = (uint64_t *)(void *)tensor_data(y);
  int64_t index[MAX_DIM] = {0}, at = 0;
  for (int64_t i = 0; i < x->numel; i++) {
    to[at] ^= from[i];
    for (int k = x->ndim - 1; k >= 0; k--) {
      int64_t step = mask >> k & 1 ? 0 : y->strides[k];
      at += step;
      if (++index[k] < x->sizes[k]) break;
      at -= step * x->sizes[k];
      index[k] = 0;
    }
  }
}

Tensor *t_hash_tensor(Tensor *x, Ints dims, bool keepdim, int64_t mode) {
  OP_ENTERED(t_hash_tensor, "hash_tensor", x, dims, keepdim, mode);
  DimMask mask;
  if (blocked(x)) return NULL;
  if (mode != 0) return fail(ERR_RUNTIME, "Unknown hash_tensor mode: %lld", (Shown)mode);
  if (!reduce_dims_mask(x, dims, &mask) || !check_hashed(x, dims, mask)) return NULL;
  int64_t sizes[MAX_DIM];
  for (int k = 0; k < x->ndim; k++) sizes[k] = mask >> k & 1 ? 1 : x->sizes[k];
  DType wide = dtype_is_float(tensor_dtype(x)) ? DT_F64 : DT_I64;
  Tensor *from = t_contiguous(t_to(t_detach(x), wide)), *y = tensor_zeros(x->ndim, sizes, DT_U64);
  if (blocked(from, y)) return NULL;
  hash_into(from, mask, y);
  return keepdim ? y : reduce_drop_dims(y, mask);
}

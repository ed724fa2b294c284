/* Sums over dimensions and their kin: sum, sum_to_size, nansum, mean, nanmean, prod,
 * count_nonzero, any, all. */
#include "ops/reduce/reduce.h"
#include "reduce_rows.h"

/* ------------------------------------------------------------ sums and products */

static DType sum_dtype(const Tensor *x, DType dtype) {
  return dtype != DT_NONE ? dtype : dtype_is_inexact(tensor_dtype(x)) ? tensor_dtype(x) : DT_I64;
}

/* Folds x to a result of type dtype. Like PyTorch, casts the elements before they are combined;
 * integers may be cast after, since they wrap alike. */
static Tensor *fold_as(const Reducer *folds, const Reducer *rest, Tensor *x, DimMask mask,
                       bool keepdim, DType dtype) {
  if (dtype == DT_BOOL || dtype_is_inexact(dtype) || dtype_is_inexact(tensor_dtype(x)))
    x = elementwise_cast(x, dtype);
  if (blocked(x)) return NULL;
  bool by_parts = folds == sum_folds && dtype_is_complex(tensor_dtype(x));
  Tensor *y = by_parts ? reduce_complex_of_parts(
                             reduce_fold(folds, rest, reduce_parts_of(x), mask, NULL, NULL))
                       : elementwise_cast(reduce_fold(folds, rest, x, mask, NULL, NULL), dtype);
  return keepdim ? y : reduce_drop_dims(y, mask);
}

/* A recorded sum cannot become an integer. */
bool reduce_check_recorded(const Tensor *x, DType dtype) {
  if (!dtype_is_inexact(dtype) && grad_mode && recording && tensor_requires_grad(x))
    fail(ERR_RUNTIME, "Autograd not support dtype: %s", dtype_info[dtype].legacy);
  return !failed();
}

static Node *shape_node(const NodeType *type, int n_saves, Tensor *x, DimMask mask, bool keepdim,
                        DType dtype) {
  if (!reduce_check_recorded(x, dtype) || !dtype_is_inexact(dtype)) return NULL;
  Node *n = node_new(type, n_saves, SHAPE_NUMBERS + x->ndim, x, NULL);
  reduce_note_shape(n, 0, x, mask, keepdim);
  return n;
}

/* y = sum x: dx = g for each element. */
GRAD(SumBackward0, "| self_sym_sizes:sizes0")
{ gi[0] = reduce_expand_back(g[0], n, 0); }
GRAD(SumBackward1, "| dim:dims keepdim:bool self_sym_sizes:rest")
{ gi[0] = reduce_expand_back(g[0], n, 0); }

Tensor *t_sum(Tensor *x, Ints dims, bool keepdim, DType dtype) {
  OP_ENTERED(t_sum, "sum", x, dims, keepdim, dtype);
  IN_FLOAT_AS(dtype, t_sum(x, dims, keepdim, dtype), x);
  DimMask mask;
  if (blocked(x) || !reduce_dims_mask(x, dims, &mask)) return NULL;
  dtype = sum_dtype(x, dtype);
  Node *n = shape_node(dims.n < 0 ? &SumBackward0 : &SumBackward1, 0, x, mask, keepdim, dtype);
  return set_history(fold_as(sum_folds, sum_folds, x, mask, keepdim, dtype), n);
}

Tensor *t_sum_all(Tensor *x) { return t_sum(x, ALL_DIMS, false, DT_NONE); }

/* The dims that broadcasting `sizes` to x added or stretched. */
static bool broadcast_mask(const Tensor *x, int ndim, const int64_t *sizes, DimMask *mask) {
  int lead = x->ndim - ndim;
  *mask = lead > 0 ? ((DimMask)1 << lead) - 1 : 0;
  if (!sizes_expandable(ndim, sizes, x->ndim, x->sizes)) {
    fail(ERR_RUNTIME, "size {%s} is not expandable to size {%s}.", sizes_text(ndim, sizes),
         shape_text(x));
    return false;
  }
  for (int i = 0; i < ndim; i++)
    if (sizes[i] != x->sizes[lead + i]) *mask |= (DimMask)1 << (lead + i);
  return true;
}

Tensor *t_sum_to(Tensor *x, int ndim, const int64_t *sizes) {
  OP_ENTERED(t_sum_to, "sum_to_size", x, ndim, sizes);
  DimMask mask;
  int64_t dims[MAX_DIM], strides[MAX_DIM];
  if (blocked(x)) return NULL;
  if (sizes_equal(x->ndim, x->sizes, ndim, sizes)) return x;
  IN_FLOAT(t_sum_to(x, ndim, sizes), x);
  if (!broadcast_mask(x, ndim, sizes, &mask)) return NULL;
  if (tensor_tracked(x) || by_ops) {
    int count = 0;
    for (int i = 0; i < x->ndim; i++)
      if (mask >> i & 1) dims[count++] = i;
    if (ndim == 0) return t_sum_all(x);
    Tensor *y = t_sum(x, (Ints){count, dims}, true, DT_NONE);
    return x->ndim == ndim ? y : t_view(y, ndim, sizes);
  }
  Tensor *y = fold_as(sum_folds, sum_folds, x, mask, true, sum_dtype(x, DT_NONE));
  if (blocked(y)) return NULL;
  sizes_contiguous_strides(ndim, sizes, strides);
  return tensor_set_geometry(y, ndim, sizes, strides, 0) ? y : NULL;
}

/* y = sum of x but its NaNs. */
GRAD(NansumBackward0, "self | dim:dims keepdim:bool")
{ gi[0] = t_mul(reduce_expand_back(g[0], n, 0), t_eq(saved_tensor(n, 0), saved_tensor(n, 0))); }

Tensor *t_nansum(Tensor *x, Ints dims, bool keepdim, DType dtype) {
  OP_ENTERED(t_nansum, "nansum", x, dims, keepdim, dtype);
  IN_FLOAT_AS(dtype, t_nansum(x, dims, keepdim, dtype), x);
  DimMask mask;
  if (x && dtype_is_complex(tensor_dtype(x)))
    return fail(ERR_RUNTIME, "nansum on CPU does not support complex inputs");
  if (blocked(x) || !reduce_dims_mask(x, dims, &mask)) return NULL;
  dtype = sum_dtype(x, dtype);
  Node *n = shape_node(&NansumBackward0, 1, x, mask, keepdim, dtype);
  save(n, 0, x);
  return set_history(fold_as(nansum_folds, sum_folds, x, mask, keepdim, dtype), n);
}

/* ------------------------------------------------------------ means */

/* y = sum x / count: dx = g / count. */
static Tensor *mean_grad(Node *n, Tensor *g) {
  DimMask mask = reduce_noted_mask(n, 0);
  double count = 1;
  for (int i = SHAPE_NUMBERS; i < n->n_numbers; i++)
    if (mask >> (i - SHAPE_NUMBERS) & 1) count *= (double)n->numbers[i].i;
  if (count == 0) return t_div(reduce_expand_back(g, n, 0), tensor_wrapped_f(count));
  return reduce_expand_back(t_div(g, tensor_wrapped_f(count)), n, 0);
}
static Tensor *mean_tangent(Node *n, Tensor *t, Tensor *y) {
  int64_t dims[MAX_DIM];
  Tensor *mean = t_mean(t, reduce_noted_dims(n, 0, dims), true, tensor_dtype(y));
  return t_reshape(mean, y->ndim, y->sizes);
}
GRAD_AND_TANGENT(MeanBackward0, "| self_sym_numel:numel0 self_sym_sizes:sizes0") {
  gi[0] = mean_grad(n, g[0]);
}
TANGENT(MeanBackward0) { return mean_tangent(n, t[0], y); }
GRAD_AND_TANGENT(MeanBackward1,
                 "| dim:dims keepdim:bool self_sym_sizes:rest self_sym_numel:numel0") {
  gi[0] = mean_grad(n, g[0]);
}
TANGENT(MeanBackward1) { return mean_tangent(n, t[0], y); }

static void divide_by(Tensor *y, double count) {
  if (tensor_absent(y)) return;
  char *at = tensor_data(y);
  int64_t n = y->numel * (dtype_is_complex(tensor_dtype(y)) ? 2 : 1);
  DISPATCH_FLOAT(dtype_real(tensor_dtype(y)), {
    T *v = (T *)(void *)at;
    for (int64_t i = 0; i < n; i++) v[i] = v[i] / (T)count;
  })
}

Tensor *t_mean(Tensor *x, Ints dims, bool keepdim, DType dtype) {
  OP_ENTERED(t_mean, "mean", x, dims, keepdim, dtype);
  IN_FLOAT_AS(dtype, t_mean(x, dims, keepdim, dtype), x);
  DimMask mask;
  if (blocked(x)) return NULL;
  DType d = dtype != DT_NONE ? dtype : tensor_dtype(x);
  if (!dtype_is_inexact(d))
    return fail(ERR_RUNTIME,
                "mean(): could not infer output dtype. %s dtype must be either a floating point or "
                "complex dtype. Got: %s",
                dtype != DT_NONE ? "Optional" : "Input", dtype_info[d].legacy);
  if (!reduce_dims_mask(x, dims, &mask)) return NULL;
  Node *n = shape_node(dims.n < 0 ? &MeanBackward0 : &MeanBackward1, 0, x, mask, keepdim, d);
  Tensor *y = fold_as(sum_folds, sum_folds, x, mask, keepdim, d);
  if (y) divide_by(y, (double)reduce_fold_count(x, mask));
  return set_history(y, n);
}

Tensor *t_nanmean(Tensor *x, Ints dims, bool keepdim, DType dtype) {
  OP_ENTERED(t_nanmean, "nanmean", x, dims, keepdim, dtype);
  if (blocked(x)) return NULL;
  if (!dtype_is_inexact(tensor_dtype(x)))
    return fail(ERR_RUNTIME,
                "nanmean(): expected input to have floating point or complex dtype but got %s",
                legacy(x));
  Tensor *count = t_sum(t_eq(t_detach(x), t_detach(x)), dims, keepdim, DT_NONE);
  return t_div(t_nansum(x, dims, keepdim, dtype), count);
}

/* To no dims it is a plain sum, with the type of a sum. */
Tensor *t_sum_to_size(Tensor *x, Ints size) {
  OP_ENTERED(t_sum_to_size, "sum_to_size", x, size);
  Tensor *y = size.n == 0 ? t_sum_all(x) : t_sum_to(x, size.n, size.v);
  return y && size.n && size.n < x->ndim && !tensor_is_view(y) ? t_view(y, y->ndim, y->sizes) : y;
}

/* ------------------------------------------------------------ products */

/* Whether x has a zero. An absent x may have one. */
static bool has_zero(Tensor *x) {
  if (x && tensor_absent(x)) return true;
  Tensor *zeros = t_sum_all(t_eq(t_detach(x), tensor_wrapped_f(0)));
  return zeros && tensor_get_i(zeros, 0) != 0;
}

/* For each element, the product of all others along dim: those before it times those behind it. */
static Tensor *product_of_others(Tensor *x, int64_t dim) {
  int64_t n = x->sizes[dim];
  Tensor *one = t_ones_like(t_detach(t_narrow(x, dim, 0, 1)));
  Tensor *before[2] = {one, t_narrow(x, dim, 0, n - 1)};
  Tensor *behind[2] = {one, t_flip(t_narrow(x, dim, 1, n - 1), ONE_DIM(dim))};
  Tensor *left = t_cumprod(t_cat((Tensors){2, before}, dim), dim, DT_NONE);
  Tensor *right = t_cumprod(t_cat((Tensors){2, behind}, dim), dim, DT_NONE);
  return t_mul(left, t_flip(right, ONE_DIM(dim)));
}

/* y = prod x: dx = g y / x, and where a factor is zero, g times the product of the others. */
GRAD(ProdBackward0, "self result")
{
  Tensor *x = saved_tensor(n, 0);
  if (failed() || !g[0] || !x) return;
  if (x->ndim == 0) gi[0] = g[0];
  else if (!has_zero(x)) gi[0] = t_div(t_mul(g[0], saved_tensor(n, 1)), x);
  else gi[0] = t_view_as(t_mul(g[0], product_of_others(t_flatten(x, 0, -1), 0)), x);
}
GRAD(ProdBackward1, "self result | dim:int keepdim:bool")
{
  Tensor *x = saved_tensor(n, 0), *gy = g[0], *y = saved_tensor(n, 1);
  int64_t dim = n->numbers[0].i;
  if (blocked(gy) || x->ndim == 0) {
    gi[0] = gy;
    return;
  }
  if (!n->numbers[1].i) gy = t_unsqueeze(gy, dim), y = t_unsqueeze(y, dim);
  gi[0] = has_zero(x) ? t_mul(gy, product_of_others(x, dim)) : t_div(t_mul(gy, y), x);
}

static Tensor *prod(Tensor *x, const int64_t *dim, bool keepdim, DType dtype) {
  OP_ENTERED_AS(prod(x, dim, keepdim, dtype), "prod", x, dim, keepdim, dtype);
  DimMask mask;
  if (blocked(x) || !reduce_dims_mask(x, (Ints){dim ? 1 : -1, dim}, &mask)) return NULL;
  dtype = sum_dtype(x, dtype);
  if (!reduce_check_recorded(x, dtype)) return NULL;
  x = t_to(x,
           dtype_is_inexact(dtype) || dtype_is_inexact(tensor_dtype(x)) ? dtype : tensor_dtype(x));
  if (failed()) return NULL;
  IN_FLOAT(prod(x, dim, keepdim, DT_NONE), x);
  Node *n = !dtype_is_inexact(dtype)
                ? NULL
                : node_new(dim ? &ProdBackward1 : &ProdBackward0, 2, dim ? 2 : 0, x, NULL);
  if (dim) {
    num_i(n, 0, x ? dim_wrap(*dim, x->ndim) : 0);
    num_i(n, 1, keepdim);
  }
  save(n, 0, x);
  Tensor *y = set_history(fold_as(prod_folds, prod_folds, x, mask, keepdim, dtype), n);
  if (n) save_output(n, 1, y);
  return y;
}

Tensor *t_prod(Tensor *x, DType dtype) { return prod(x, NULL, false, dtype); }
Tensor *t_prod_dim(Tensor *x, int64_t dim, bool keepdim, DType dtype) {
  return prod(x, &dim, keepdim, dtype);
}

/* ------------------------------------------------------------ truth */

Tensor *t_count_nonzero(Tensor *x, Ints dims) {
  OP_ENTERED(t_count_nonzero, "count_nonzero", x, dims);
  IN_FLOAT(t_count_nonzero(x, dims), x);
  DimMask mask;
  if (blocked(x) || !reduce_dims_mask(x, dims, &mask)) return NULL;
  return reduce_drop_dims(reduce_fold(count_folds, sum_folds, x, mask, NULL, NULL), mask);
}

/* Whether any element, or every one, is not zero. An empty list of dims reduces
 * none here, unlike elsewhere. uint8 stays uint8. */
static Tensor *truth(Tensor *x, Ints dims, bool keepdim, bool every) {
  OP_ENTERED_AS(truth(x, dims, keepdim, every), every ? "all" : "any", x, dims, keepdim);
  IN_FLOAT(truth(x, dims, keepdim, every), x);
  DimMask mask;
  if (blocked(x) || !reduce_dims_mask(x, dims, &mask)) return NULL;
  if (dims.n == 0) mask = 0;
  int64_t least = every ? reduce_fold_count(x, mask) : 1;
  Tensor *count = reduce_fold(count_folds, sum_folds, x, mask, NULL, NULL);
  Tensor *y = count ? tensor_empty(count->ndim, count->sizes, x->dtype == DT_U8 ? DT_U8 : DT_BOOL)
                    : NULL;
  if (!y) return NULL;
  const int64_t *counts = (const int64_t *)(const void *)tensor_data(count);
  uint8_t *at = (uint8_t *)tensor_data(y);
  for (int64_t i = 0; i < y->numel && !tensor_absent(y); i++) at[i] = counts[i] >= least;
  return keepdim ? y : reduce_drop_dims(y, mask);
}

Tensor *t_any(Tensor *x, Ints dims, bool keepdim) { return truth(x, dims, keepdim, false); }
Tensor *t_all(Tensor *x, Ints dims, bool keepdim) { return truth(x, dims, keepdim, true); }

/* Tests all slices of a batched x. The answer is not batched, so vmap may ask for it. */
Tensor *t_is_all_true(Tensor *x) {
  OP_ENTERED(t_is_all_true, "_is_all_true", x);
  while (x && x->flags & FLAG_BATCHED) x = x->meta->value;
  return t_all(x, ALL_DIMS, false);
}

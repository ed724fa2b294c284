/* Greatest and least elements: amax, amin, aminmax, max, min, argmax, argmin.
 *
 * NaN counts as greater and as less than all else, the first one wins; among equals the first
 * index wins. */
#include <math.h>

#include "ops/reduce/reduce.h"
#include "reduce_rows.h"

/* ------------------------------------------------------------ values */

/* Folds to the type of x. */
static Tensor *fold_same(const Reducer *folds, Tensor *x, DimMask mask, Tensor *index) {
  return elementwise_cast(reduce_fold(folds, folds, x, mask, NULL, index), tensor_dtype(x));
}

static bool check_empty(const char *name, const Tensor *x, DimMask mask, bool all) {
  if (x->numel) return true;
  if (all) {
    fail(ERR_RUNTIME,
         "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
         "reduction dim with the 'dim' argument.",
         name);
    return false;
  }
  for (int i = 0; i < x->ndim; i++)
    if (mask >> i & 1 && x->sizes[i] == 0) {
      fail(ERR_INDEX, "%s(): Expected reduction dim %d to have non-zero size.", name, i);
      return false;
    }
  return true;
}

/* y = extreme of x: g is shared evenly by the elements equal to y. */
static Tensor *share_evenly(Node *n, Tensor *g, Tensor *x, Tensor *y) {
  int64_t dims[MAX_DIM];
  Tensor *mask = t_eq(x, reduce_restore_dims(y, n, 0));
  Tensor *count = t_sum(mask, reduce_noted_dims(n, 0, dims), true, DT_NONE);
  return t_mul(t_div(reduce_restore_dims(g, n, 0), count), mask);
}
GRAD(AmaxBackward0, "self result | dim:dims keepdim:bool")
{ gi[0] = share_evenly(n, g[0], saved_tensor(n, 0), saved_tensor(n, 1)); }
GRAD(AminBackward0, "self result | dim:dims keepdim:bool")
{ gi[0] = share_evenly(n, g[0], saved_tensor(n, 0), saved_tensor(n, 1)); }

static Tensor *extreme(const Reducer *folds, const NodeType *type, const char *name, Tensor *x,
                       Ints dims, bool keepdim) {
  DimMask mask;
  if (blocked(x) || !reduce_dims_mask(x, dims, &mask) || !check_empty(name, x, mask, dims.n <= 0))
    return NULL;
  Node *n = NULL;
  if (dtype_is_float(tensor_dtype(x))) n = node_new(type, 2, SHAPE_NUMBERS + x->ndim, x, NULL);
  reduce_note_shape(n, 0, x, mask, keepdim);
  save(n, 0, x);
  Tensor *y = fold_same(folds, x, mask, NULL);
  y = set_history(keepdim ? y : reduce_drop_dims(y, mask), n);
  if (n) save_output(n, 1, y);
  return y;
}

Tensor *t_amax(Tensor *x, Ints dims, bool keepdim) {
  OP_ENTERED(t_amax, "amax", x, dims, keepdim);
  IN_FLOAT(t_amax(x, dims, keepdim), x);
  return extreme(max_folds, &AmaxBackward0, "amax", x, dims, keepdim);
}
Tensor *t_amin(Tensor *x, Ints dims, bool keepdim) {
  OP_ENTERED(t_amin, "amin", x, dims, keepdim);
  IN_FLOAT(t_amin(x, dims, keepdim), x);
  return extreme(min_folds, &AminBackward0, "amin", x, dims, keepdim);
}

/* Smallest and greatest at once; one node with two outputs. */
GRAD(AminmaxBackward0, "self min max | dim:dim keepdim:bool")
{
  Tensor *x = saved_tensor(n, 0), *low = g[0] ? share_evenly(n, g[0], x, saved_tensor(n, 1)) : NULL;
  Tensor *high = g[1] ? share_evenly(n, g[1], x, saved_tensor(n, 2)) : NULL;
  gi[0] = low && high ? t_add(low, high) : low ? low : high;
}

void t_aminmax(Tensor *x, const int64_t *dim, bool keepdim, Tensor *out[2]) {
  OP_ENTERED(t_aminmax, "aminmax", x, dim, keepdim, out);
  IN_FLOAT_OUT(2, out, t_aminmax(x, dim, keepdim, out), x)
  DimMask mask;
  out[0] = out[1] = NULL;
  if (blocked(x) || !reduce_dims_mask(x, (Ints){dim ? 1 : -1, dim}, &mask)) return;
  if (!dim && x->numel == 0) {
    fail(ERR_RUNTIME, "aminmax(): cannot compute aminmax over an empty dimension as the operation "
                      "has no identity.");
    return;
  }
  if (x->numel == 0 && reduce_fold_count(x, mask) == 0) {
    fail(ERR_INDEX, "aminmax: Expected reduction dim %d to have non-zero size.",
         (int)dim_wrap(*dim, x->ndim));
    return;
  }
  Node *n = dtype_is_float(tensor_dtype(x))
                ? node_new(&AminmaxBackward0, 3, SHAPE_NUMBERS + x->ndim, x, NULL)
                : NULL;
  reduce_note_shape(n, 0, x, mask, keepdim);
  save(n, 0, x);
  const Reducer *folds[2] = {min_folds, max_folds};
  for (int i = 0; i < 2; i++) {
    out[i] = fold_same(folds[i], x, mask, NULL);
    if (!keepdim) out[i] = reduce_drop_dims(out[i], mask);
  }
  set_histories(out, n, 2);
  for (int i = 0; n && i < 2; i++) save_output(n, i + 1, out[i]);
}

/* ------------------------------------------------------------ values with their index */

/* y = x at index along dim: g goes there. */
Tensor *extrema_select_gradient(Node *n, Tensor *g) {
  Tensor *index = saved_tensor(n, 0);
  int64_t dim = n->numbers[0].i, sizes[MAX_DIM];
  int ndim = n->n_numbers - SHAPE_NUMBERS;
  for (int i = 0; i < ndim; i++) sizes[i] = n->numbers[SHAPE_NUMBERS + i].i;
  if (blocked(g, index) || ndim == 0) return g;
  if (!n->numbers[1].i) g = t_unsqueeze(g, dim), index = t_unsqueeze(index, dim);
  return g ? t_scatter(tensor_zeros(ndim, sizes, tensor_dtype(g)), dim, index, g) : NULL;
}

Node *extrema_select_node(const NodeType *type, Tensor *x, int64_t dim, bool keepdim) {
  if (failed() || !dtype_is_float(tensor_dtype(x))) return NULL;
  Node *n = node_new(type, 1, SHAPE_NUMBERS + x->ndim, x, NULL);
  reduce_note_shape(n, 0, x, (DimMask)dim, keepdim);
  return n;
}

GRAD(MaxBackward0, "indices | dim:int keepdim:bool self_sym_sizes:rest")
{ gi[0] = extrema_select_gradient(n, g[0]); }
GRAD(MinBackward0, "indices | dim:int keepdim:bool self_sym_sizes:rest")
{ gi[0] = extrema_select_gradient(n, g[0]); }

/* Values and indices with the masked dims at size 1. */
static bool fold_indexed(const Reducer *folds, Tensor *x, DimMask mask, Tensor *out[2]) {
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < x->ndim; i++) sizes[i] = mask >> i & 1 ? 1 : x->sizes[i];
  out[1] = tensor_empty(x->ndim, sizes, DT_I64);
  out[0] = out[1] ? fold_same(folds, x, mask, out[1]) : NULL;
  return out[0];
}

static void extreme_dim(const Reducer *folds, const NodeType *type, const char *name, Tensor *x,
                        int64_t dim, bool keepdim, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return;
  DimMask mask = ((DimMask)1 << dim) & reduce_dims_all(x);
  if (!check_empty(name, x, mask, false)) return;
  Node *n = extrema_select_node(type, x, dim, keepdim);
  fold_indexed(folds, x, mask, out);
  for (int i = 0; i < 2 && !keepdim; i++) out[i] = reduce_drop_dims(out[i], mask);
  save(n, 0, out[1]);
  set_history_at(out[0], n, 0);
}

void t_max_dim(Tensor *x, int64_t dim, bool keepdim, Tensor *out[2]) {
  OP_ENTERED(t_max_dim, "max", x, dim, keepdim, out);
  IN_FLOAT_OUT(2, out, t_max_dim(x, dim, keepdim, out), x)
  extreme_dim(argmax_folds, &MaxBackward0, "max", x, dim, keepdim, out);
}
void t_min_dim(Tensor *x, int64_t dim, bool keepdim, Tensor *out[2]) {
  OP_ENTERED(t_min_dim, "min", x, dim, keepdim, out);
  IN_FLOAT_OUT(2, out, t_min_dim(x, dim, keepdim, out), x)
  extreme_dim(argmin_folds, &MinBackward0, "min", x, dim, keepdim, out);
}

/* y = extreme of all: g is shared evenly by the elements equal to y, NaNs being equal here. */
Tensor *extrema_whole_gradient(Node *n, Tensor *g) {
  Tensor *x = saved_tensor(n, 0), *y = saved_tensor(n, 1);
  if (blocked(g, x, y)) return NULL;
  double value = tensor_absent(y) ? 0 : tensor_get_f(y, 0);
  Tensor *mask = value != value ? t_isnan(x) : t_eq(x, y);
  return t_mul(mask, t_div(g, t_sum_all(mask)));
}
GRAD(MaxBackward1, "self result")
{ gi[0] = extrema_whole_gradient(n, g[0]); }
GRAD(MinBackward1, "self result")
{ gi[0] = extrema_whole_gradient(n, g[0]); }

static Tensor *extreme_all(const Reducer *folds, const NodeType *type, const char *name,
                           Tensor *x) {
  OP_ENTERED_AS(extreme_all(folds, type, name, x), name, x);
  IN_FLOAT(extreme_all(folds, type, name, x), x);
  if (blocked(x) || !check_empty(name, x, 0, true)) return NULL;
  Node *n = dtype_is_float(tensor_dtype(x)) ? node_new(type, 2, 0, x, NULL) : NULL;
  save(n, 0, x);
  DimMask mask = reduce_dims_all(x);
  Tensor *y = set_history(reduce_drop_dims(fold_same(folds, x, mask, NULL), mask), n);
  if (n) save_output(n, 1, y);
  return y;
}

Tensor *t_max(Tensor *x) { return extreme_all(max_folds, &MaxBackward1, "max", x); }
Tensor *t_min(Tensor *x) { return extreme_all(min_folds, &MinBackward1, "min", x); }

/* ------------------------------------------------------------ indices alone */

static Tensor *arg_extreme(const Reducer *folds, const char *name, Tensor *x, const int64_t *dim,
                           bool keepdim) {
  DimMask mask;
  Tensor *out[2];
  if (blocked(x) || !reduce_dims_mask(x, (Ints){dim ? 1 : -1, dim}, &mask)) return NULL;
  if (x->dtype == DT_BOOL) return fail(ERR_RUNTIME, "%s(): does not support bool input", name);
  if (!dim && x->numel == 0)
    return fail(ERR_INDEX, "%s(): Expected reduction dim to be specified for input.numel() == 0.",
                name);
  if (!check_empty(name, x, mask, false) || !fold_indexed(folds, x, mask, out)) return NULL;
  return keepdim ? out[1] : reduce_drop_dims(out[1], mask);
}

/* dim NULL: of the flattened tensor */
Tensor *t_argmax(Tensor *x, const int64_t *dim, bool keepdim) {
  OP_ENTERED(t_argmax, "argmax", x, dim, keepdim);
  IN_FLOAT(t_argmax(x, dim, keepdim), x);
  return arg_extreme(argmax_folds, "argmax", x, dim, keepdim);
}
Tensor *t_argmin(Tensor *x, const int64_t *dim, bool keepdim) {
  OP_ENTERED(t_argmin, "argmin", x, dim, keepdim);
  IN_FLOAT(t_argmin(x, dim, keepdim), x);
  return arg_extreme(argmin_folds, "argmin", x, dim, keepdim);
}

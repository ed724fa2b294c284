/* Spread, and functions composed of sums: var, std, their pairs with the mean, cov, corrcoef,
 * trapezoid, diff.
 *
 * Variances take two passes, the mean and then the squares about it, both in double. */
#include <math.h>

#include "ground/memory.h"
#include "ops/reduce/reduce.h"
#include "reduce_rows.h"

/* ------------------------------------------------------------ moments */

static void divide(Tensor *y, double by, bool root) {
  if (tensor_absent(y)) return;
  double *v = (double *)(void *)tensor_data(y);
  for (int64_t i = 0; i < y->numel; i++) v[i] = root ? sqrt(v[i] / by) : v[i] / by;
}

/* Computes the variance or its root in out[0], and the mean in out[1], with the masked dims at size
 * 1. */
static bool moments(Tensor *x, DimMask mask, double correction, bool root, Tensor *out[2]) {
  if (dtype_is_complex(tensor_dtype(x))) { /* both parts vary about their own means */
    if (!moments(reduce_parts_of(x), mask, correction, false, out)) return false;
    WITHOUT_GRAD_BLOCK out[0] = t_sum(out[0], ONE_DIM(-1), false, DT_NONE);
    if (root && out[0]) WITHOUT_GRAD_BLOCK out[0] = t_sqrt(out[0]);
    out[1] = reduce_complex_of_parts(out[1]);
    return out[0] && out[1];
  }
  double count = (double)reduce_fold_count(x, mask), freedom = count > 0 ? count - correction : 0;
  Tensor *mean = reduce_fold(total_folds, sum_folds, x, mask, NULL, NULL);
  if (!mean) return false;
  divide(mean, count, false);
  Tensor *spread = reduce_fold(spread_folds, sum_folds, x, mask, mean, NULL);
  if (!spread) return false;
  divide(spread, freedom > 0 ? freedom : 0, root);
  out[0] = elementwise_cast(spread, tensor_dtype(x));
  out[1] = elementwise_cast(mean, tensor_dtype(x));
  return out[0] && out[1];
}

/* y = sum (x - mean)^2 / f: dx = 2 g (x - mean) / f. Numbers: the correction, then the shape. */
static Tensor *var_gradient(Node *n, Tensor *g, Tensor *x) {
  int64_t dims[MAX_DIM];
  g = reduce_restore_dims(g, n, 1);
  if (blocked(g, x)) return NULL;
  double freedom = (double)reduce_fold_count(x, reduce_noted_mask(n, 1)) - n->numbers[0].f;
  Ints over = reduce_noted_dims(n, 1, dims);
  Tensor *centred = t_sub(x, t_mean(x, over, true, DT_NONE));
  return t_mul(t_mul_f(g, 2 / freedom), centred);
}

/* y = sqrt v: dv = g / 2y, 0 where y is 0. */
static Tensor *std_gradient(Node *n, Tensor *g, Tensor *x, Tensor *y) {
  Tensor *dv = t_masked_fill(t_div(g, t_mul_f(y, 2)), t_eq(y, tensor_wrapped_f(0)),
                             tensor_wrapped_f(0));
  return var_gradient(n, dv, x);
}

/* Adds the gradient of the mean, the second result, to dx. */
static Tensor *with_mean(Node *n, Tensor *dx, Tensor *g) {
  Tensor *x = saved_tensor(n, 0);
  if (blocked(g, x)) return dx;
  Tensor *mean = t_div(reduce_expand_back(g, n, 1),
                       tensor_wrapped_f((double)reduce_fold_count(x, reduce_noted_mask(n, 1))));
  return dx ? t_add(dx, mean) : mean;
}

/* The tangent of the spread, or of the mean beside it, from t, the tangent of x. */
static Tensor *spread_tangent(Node *n, Tensor *t, bool root, bool of_mean, Tensor *y) {
  int64_t dims[MAX_DIM];
  if (of_mean)
    return t_reshape(t_mean(t, reduce_noted_dims(n, 1, dims), true, DT_NONE), y->ndim, y->sizes);
  Tensor *x = saved_plain(n, 0), *one = t_ones_like(reduce_restore_dims(y, n, 1));
  Tensor *var = reduce_sum_along(n, 1, var_gradient(n, one, x), t, y),
         *std = root ? saved_tensor(n, 1) : NULL;
  return root ? t_masked_fill(t_div(var, t_mul_f(std, 2)), t_eq(std, tensor_wrapped_f(0)),
                              tensor_wrapped_f(0))
              : var;
}

GRAD_AND_TANGENT(VarBackward0, "self | correction:scalar dim:dims keepdim:bool") {
  gi[0] = var_gradient(n, g[0], saved_plain(n, 0));
}
TANGENT(VarBackward0) { return spread_tangent(n, t[0], false, false, y); }
GRAD_AND_TANGENT(StdBackward0, "self result | correction:scalar dim:dims keepdim:bool") {
  gi[0] = std_gradient(n, g[0], saved_plain(n, 0), saved_tensor(n, 1));
}
TANGENT(StdBackward0) { return spread_tangent(n, t[0], true, false, y); }
GRAD_AND_TANGENT(VarMeanBackward0, "self | correction:scalar dim:dims keepdim:bool") {
  gi[0] = with_mean(n, var_gradient(n, g[0], saved_plain(n, 0)), g[1]);
}
TANGENT(VarMeanBackward0) { return spread_tangent(n, t[0], false, output_nr, y); }
GRAD_AND_TANGENT(StdMeanBackward0, "self result0 | correction:scalar dim:dims keepdim:bool") {
  gi[0] = with_mean(n, std_gradient(n, g[0], saved_plain(n, 0), saved_tensor(n, 1)), g[1]);
}
TANGENT(StdMeanBackward0) { return spread_tangent(n, t[0], true, output_nr, y); }

typedef struct {
  const char *name;
  const NodeType *node;
  bool root, pair;
} Spread;
static const Spread spreads[] = {[SPREAD_VAR] = {"var", &VarBackward0, false, false},
                                 [SPREAD_STD] = {"std", &StdBackward0, true, false},
                                 [SPREAD_VAR_MEAN] = {"var_mean", &VarMeanBackward0, false, true},
                                 [SPREAD_STD_MEAN] = {"std_mean", &StdMeanBackward0, true, true}};

void t_spread(SpreadKind kind, Tensor *x, Ints dims, double correction, bool keepdim,
              Tensor *out[2]) {
  IN_FLOAT_OUT(2, out, t_spread(kind, x, dims, correction, keepdim, out), x)
  const Spread *s = &spreads[kind];
  OP_ENTERED_AS(t_spread(kind, x, dims, correction, keepdim, out), s->name, x, dims, correction,
                keepdim, out);
  DimMask mask;
  out[0] = out[1] = NULL;
  if (blocked(x)) return;
  if (!dtype_is_inexact(tensor_dtype(x))) {
    fail(ERR_RUNTIME, "%s only support floating point and complex dtypes",
         s->pair ? s->name : "std and var");
    return;
  }
  if (!reduce_dims_mask(x, dims, &mask)) return;
  if ((x->numel ? (double)reduce_fold_count(x, mask) : 0) - correction <= 0)
    warn_user("%s(): degrees of freedom is <= 0. Correction should be strictly less than the "
              "reduction factor (input numel divided by output numel).",
              s->name);
  Node *n = node_new(s->node, 2, 1 + SHAPE_NUMBERS + x->ndim, x, NULL);
  num_f(n, 0, correction);
  reduce_note_shape(n, 1, x, mask, keepdim);
  save(n, 0, x);
  moments(x, mask, correction, s->root, out);
  for (int i = 0; i < 2 && !keepdim; i++) out[i] = reduce_drop_dims(out[i], mask);
  set_histories(out, n, s->pair ? 2 : 1);
  if (n && s->root) save_output(n, 1, out[0]);
}

/* ------------------------------------------------------------ covariance */

static bool check_weights(const Tensor *x, const Tensor *w, const char *name, bool whole) {
  int64_t observations = x->ndim ? x->sizes[x->ndim - 1] : 1;
  if (w->ndim > 1) {
    fail(ERR_RUNTIME,
         "cov(): expected %s to have one or fewer dimensions but got %s with %d dimensions", name,
         name, w->ndim);
  } else if (whole == dtype_is_float(tensor_dtype(w))) {
    fail(ERR_RUNTIME, "cov(): expected %s to have %s dtype but got %s with %s dtype", name,
         whole ? "integral" : "floating point", name, legacy(w));
  } else if (w->numel != observations) {
    fail(ERR_RUNTIME,
         "cov(): expected %s to have the same numel as there are observations in the input but got "
         "%lld != %lld",
         name, (Shown)w->numel, (Shown)observations);
  } else {
    Tensor *least = w->numel ? t_min(t_detach((Tensor *)(uintptr_t)w)) : NULL;
    if (least && !tensor_absent(least) && tensor_get_f(least, 0) < 0)
      fail(ERR_RUNTIME, "cov(): %s cannot be negative", name);
  }
  return !failed();
}

/* Rows are variables, columns observations; w is their weight or NULL. */
static Tensor *weighted_cov(Tensor *x, Tensor *w, Tensor *aweights, double correction) {
  Tensor *w_sum = w ? t_sum_all(w) : tensor_wrapped_i(x->sizes[1]);
  if (w && w_sum && !tensor_absent(w_sum) && tensor_get_f(w_sum, 0) == 0)
    return fail(ERR_ZERO_DIVISION, "cov(): weights sum to zero, can't be normalized");
  Tensor *mean = t_div(t_sum(w ? t_mul(x, w) : x, ONE_DIM(1), false, DT_NONE), w_sum);
  Tensor *taken = tensor_wrapped_i((int64_t)correction);
  if (w && aweights && correction != 0)
    taken = t_mul_f(t_div(t_sum_all(t_mul(w, aweights)), w_sum), correction);
  Tensor *norm = t_sub(w_sum, taken);
  if (blocked(norm)) return NULL;
  if (!tensor_absent(norm) && tensor_get_f(norm, 0) <= 0) {
    warn_user("cov(): degrees of freedom is <= 0. Correction should be strictly less than the "
              "number of observations.");
    norm = tensor_wrapped_f(0);
  }
  Tensor *centred = t_sub(x, t_unsqueeze(mean, 1));
  return t_div(t_mm(centred, t_conj(t_t(w ? t_mul(centred, w) : centred))), norm);
}

static bool check_observations(const Tensor *x, const char *op) {
  if (x->ndim > 2)
    fail(ERR_RUNTIME,
         "%s(): expected input to have two or fewer dimensions but got an input with %d dimensions",
         op, x->ndim);
  return !failed();
}

Tensor *t_cov(Tensor *x, double correction, Tensor *fweights, Tensor *aweights) {
  OP_ENTERED(t_cov, "cov", x, correction, fweights, aweights);
  if (blocked(x) || !check_observations(x, "cov")) return NULL;
  if (x->dtype == DT_BOOL) return fail(ERR_RUNTIME, "cov(): bool dtype is not supported for input");
  if (fweights && !check_weights(x, fweights, "fweights", true)) return NULL;
  if (aweights && !check_weights(x, aweights, "aweights", false)) return NULL;
  x = t_to(x, elementwise_float_dtype(tensor_dtype(x)));
  if (x && x->ndim < 2) x = t_view(x, 2, (const int64_t[]){1, -1});
  Tensor *w = fweights && aweights ? t_mul(fweights, aweights) : fweights ? fweights : aweights;
  return failed() ? NULL : t_squeeze(weighted_cov(x, w, aweights, correction), ALL_DIMS);
}

Tensor *t_corrcoef(Tensor *x) {
  OP_ENTERED(t_corrcoef, "corrcoef", x);
  if (blocked(x) || !check_observations(x, "corrcoef")) return NULL;
  Tensor *c = t_cov(x, 1, NULL, NULL);
  if (blocked(c)) return NULL;
  if (c->ndim == 0) return t_div(c, c);
  Tensor *scale = t_sqrt(t_real(t_diagonal(c, 0, 0, 1)));
  c = t_div(t_div(c, t_unsqueeze(scale, 1)), t_unsqueeze(scale, 0));
  Tensor *low = tensor_wrapped_i(-1), *high = tensor_wrapped_i(1);
  if (!c || !dtype_is_complex(tensor_dtype(c))) return t_clamp(c, low, high);
  return t_complex(t_clamp(t_real(c), low, high), t_clamp(t_imag(c), low, high));
}

/* ------------------------------------------------------------ differences and areas */

static Tensor *difference(Tensor *x, int64_t dim) {
  int64_t n = x->sizes[dim] - 1;
  Tensor *later = t_narrow(x, dim, 1, n), *earlier = t_narrow(x, dim, 0, n);
  return x->dtype == DT_BOOL ? t_ne(later, earlier) : t_sub(later, earlier);
}

Tensor *t_diff(Tensor *x, int64_t order, int64_t dim, Tensor *prepend, Tensor *append) {
  OP_ENTERED(t_diff, "diff", x, order, dim, prepend, append);
  if (blocked(x)) return NULL;
  if (x->ndim == 0) return fail(ERR_RUNTIME, "diff expects input to be at least one-dimensional");
  if (order < 0) return fail(ERR_RUNTIME, "order must be non-negative but got %lld", (Shown)order);
  if ((dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  Tensor *ends[2] = {prepend, append}, *parts[3];
  int count = 0;
  for (int i = 0; i < 2; i++)
    if (ends[i] && ends[i]->ndim != x->ndim)
      return fail(ERR_RUNTIME, "diff expects prepend or append to be the same dimension as input");
  if (prepend) parts[count++] = prepend;
  parts[count++] = x;
  if (append) parts[count++] = append;
  if (order == 0) return t_clone(x);
  if (count > 1) x = t_cat((Tensors){count, parts}, dim);
  if (x && order > x->sizes[dim]) order = x->sizes[dim];
  for (; order > 0 && x && x->sizes[dim] > 0; order--) x = difference(x, dim);
  return x;
}

/* The positions x of the samples of y along dim, as a view that broadcasts against y. A vector lies
 * along dim. */
static Tensor *positions(Tensor *x, const Tensor *y, int64_t dim, const char *name) {
  int64_t sizes[MAX_DIM];
  int missing = y->ndim - x->ndim;
  if (x->ndim == 1) {
    if (x->numel != y->sizes[dim])
      return fail(ERR_RUNTIME, "%s: There must be one `x` value for each sample point", name);
    for (int i = 0; i < y->ndim; i++) sizes[i] = i == dim ? x->numel : 1;
    return t_view(x, y->ndim, sizes);
  }
  if (missing <= 0) return x;
  for (int i = 0; i < y->ndim; i++) sizes[i] = i < missing ? 1 : x->sizes[i - missing];
  return t_view(x, y->ndim, sizes);
}

static Tensor *sum_dim(Tensor *x, int64_t dim) { return t_sum(x, ONE_DIM(dim), false, DT_NONE); }

/* The sum, or the running sums, of the areas between neighbours; x NULL: spacing dx. */
static Tensor *areas(Tensor *y, Tensor *x, double dx, int64_t dim, bool running) {
  int64_t given = dim;
  if (blocked(y) || (dim = dim_wrap(dim, y->ndim)) < 0) return NULL;
  const char *name = running ? "cumulative_trapezoid" : "trapezoid";
  if (y->dtype == DT_BOOL || (x && x->dtype == DT_BOOL))
    return fail(ERR_RUNTIME,
                x ? "%s: received a bool input for `x` or `y`, but bool is not supported"
                  : "%s: received a bool input for `y`, but bool is not supported",
                name);
  if (y->ndim == 0)
    return running ? fail(ERR_INDEX, "slice() cannot be applied to a 0-dim tensor.")
                   : fail(ERR_INDEX, "Dimension specified as %lld but tensor has no dimensions",
                          (Shown)given);
  int64_t n = y->sizes[dim], gaps = n > 0 ? n - 1 : 0;
  if (n == 0 && !running) {
    Tensor *like = sum_dim(t_detach(y), dim);
    return like ? t_to(t_zeros_like(like), tensor_dtype(y)) : NULL;
  }
  if (x) x = positions(x, y, dim, name);
  if (failed()) return NULL;
  Tensor *later = t_narrow(y, dim, n - gaps, gaps), *earlier = t_narrow(y, dim, 0, gaps);
  if (x) {
    int64_t of_x = x->sizes[dim], between = of_x > 0 ? of_x - 1 : 0;
    Tensor *width = t_sub(t_narrow(x, dim, of_x - between, between), t_narrow(x, dim, 0, between));
    Tensor *product = t_mul(t_add(later, earlier), width);
    return t_div_f(running ? t_cumsum(product, dim, DT_NONE) : sum_dim(product, dim), 2);
  }
  if (running)
    return t_cumsum(t_mul(tensor_wrapped_f(dx / 2), t_add(later, earlier)), dim, DT_NONE);
  Tensor *ends = t_mul(t_add(t_select(y, dim, 0), t_select(y, dim, -1)), tensor_wrapped_f(0.5));
  return t_mul_f(t_sub(sum_dim(y, dim), ends), dx);
}

/* x may be NULL */
Tensor *t_trapezoid(Tensor *y, Tensor *x, double dx, int64_t dim) {
  OP_ENTERED(t_trapezoid, "trapezoid", y, x, dx, dim);
  return areas(y, x, dx, dim, false);
}
Tensor *t_cumulative_trapezoid(Tensor *y, Tensor *x, double dx, int64_t dim) {
  OP_ENTERED(t_cumulative_trapezoid, "cumulative_trapezoid", y, x, dx, dim);
  return areas(y, x, dx, dim, true);
}

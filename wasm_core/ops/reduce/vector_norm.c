/* Vector norms: linalg.vector_norm, norm, dist, normalize. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/linalg/columns.h"
#include "ops/linalg/lu_cholesky.h"
#include "ops/reduce/reduce.h"
#include "reduce_rows.h"

/* ------------------------------------------------------------ values */

static void map_in_place(Tensor *y, double p) {
  if (tensor_absent(y)) return;
  char *at = tensor_data(y);
  DISPATCH_FLOAT(tensor_dtype(y), {
    T *v = (T *)(void *)at;
    for (int64_t i = 0; i < y->numel; i++)
      v[i] = (T)(p == 2 ? sqrt((double)v[i]) : pow((double)v[i], 1 / p));
  })
}

/* The norm with the masked dims at size 1, unrecorded. */
static Tensor *fold_norm(Tensor *x, DimMask mask, double p) {
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    if (x && dtype_is_complex(tensor_dtype(x))) x = t_abs(x);
    if (p == 2) {
      y = reduce_fold(squares_folds, sum_folds, x, mask, NULL, NULL);
    } else if (p == 0) {
      y = elementwise_cast(reduce_fold(count_folds, sum_folds, x, mask, NULL, NULL),
                           tensor_dtype(x));
    } else {
      Tensor *terms = t_abs(x);
      if (p != 1 && !isinf(p)) terms = t_pow(terms, tensor_wrapped_f(p));
      const Reducer *folds = p == INFINITY ? max_folds : p == -INFINITY ? min_folds : sum_folds;
      y = reduce_fold(folds, folds, terms, mask, NULL, NULL);
      if (y && p == INFINITY && reduce_fold_count(x, mask) == 0) y = t_zeros_like(y);
    }
  }
  if (y && p != 0 && p != 1 && !isinf(p)) map_in_place(y, p);
  return y;
}

/* ------------------------------------------------------------ gradient */

static Tensor *zero_where(Tensor *x, Tensor *mask) {
  return t_masked_fill(x, mask, tensor_wrapped_f(0));
}
/* a / b, and 0 where the mask says that b is 0. There it is a / 1, masked, so its derivatives are 0
 * too. */
static Tensor *quotient(Tensor *a, Tensor *b, Tensor *mask) {
  if (grad_mode) b = t_masked_fill(b, mask, tensor_wrapped_f(1));
  return zero_where(t_div(a, b), mask);
}
static Tensor *power_of(Tensor *x, double p) { return t_pow(x, tensor_wrapped_f(p)); }

/* y = |x|_p, all operands with the reduced dims at size 1: dx = g sgn(x) (|x| / y)^(p-1), 0 where y
 * is 0. For p infinite, g is shared evenly by the elements of that magnitude. */
Tensor *norm_gradient(Tensor *g, Tensor *x, Tensor *y, double p, Ints dims) {
  Tensor *zero = tensor_wrapped_f(0);
  if (p == 0) return NULL;
  if (p == 1) return t_mul(t_sgn(x), g);
  Tensor *none = t_eq(y, zero);
  if (p == 2) return t_mul(g, quotient(x, y, none));
  Tensor *magnitude = t_abs(x);
  if (isinf(p)) {
    Tensor *mask = t_to(t_add(t_to(t_eq(magnitude, y), DT_I64), t_to(t_isnan(magnitude), DT_I64)),
                        DT_BOOL);
    return t_mul(t_sgn(x), t_mul(t_div(g, t_sum(mask, dims, true, DT_NONE)), mask));
  }
  /* Elements where the power has no derivative but the gradient has one, which is 0. */
  const bool kinked = p < 1 || (p > 2 && p != floor(p));
  Tensor *flat = kinked ? t_eq(x, zero) : none;
  if (grad_mode) {
    magnitude = t_masked_fill(magnitude, flat, tensor_wrapped_f(1));
    y = t_masked_fill(y, none, tensor_wrapped_f(1));
  }
  Tensor *power = power_of(magnitude, p < 2 ? p - 1 : p - 2);
  if (p < 1 || (grad_mode && kinked)) power = zero_where(power, flat);
  Tensor *scaled = t_mul(p < 2 ? t_sgn(x) : x, power);
  if (p < 1) return t_mul(t_mul(scaled, g), power_of(y, 1 - p));
  return t_mul(scaled, quotient(g, power_of(y, p - 1), none));
}

GRAD_AND_TANGENT(LinalgVectorNormBackward0, "self result | ord:scalar dim:dims keepdim:bool") {
  int64_t dims[MAX_DIM];
  gi[0] = norm_gradient(reduce_restore_dims(g[0], n, 1), saved_plain(n, 0),
                        reduce_restore_dims(saved_tensor(n, 1), n, 1), n->numbers[0].f,
                        reduce_noted_dims(n, 1, dims));
}
TANGENT(LinalgVectorNormBackward0) {
  int64_t dims[MAX_DIM];
  Tensor *length = reduce_restore_dims(saved_tensor(n, 1), n, 1);
  Tensor *gradient = norm_gradient(t_ones_like(length), saved_plain(n, 0), length, n->numbers[0].f,
                                   reduce_noted_dims(n, 1, dims));
  return gradient ? reduce_sum_along(n, 1, gradient, t[0], y) : NULL;
}

Tensor *norm_difference_tangent(Tensor *of_a, Tensor *of_b) {
  return !of_b ? of_a : of_a ? t_sub(of_a, of_b) : t_neg(of_b);
}

/* y = |a - b|_p. */
GRAD_AND_TANGENT(DistBackward0, "self other result | p:scalar") {
  Tensor *d = norm_gradient(g[0], t_sub(saved_plain(n, 0), saved_plain(n, 1)), saved_tensor(n, 2),
                            n->numbers[0].f, ALL_DIMS);
  if (needs(n, 0)) gi[0] = d;
  if (needs(n, 1)) gi[1] = d ? t_neg(d) : NULL;
}
TANGENT(DistBackward0) {
  Tensor *length = saved_tensor(n, 2);
  Tensor *gradient = norm_gradient(t_ones_like(length), t_sub(saved_plain(n, 0), saved_plain(n, 1)),
                                   length, n->numbers[0].f, ALL_DIMS);
  return gradient ? t_sum_all(t_real(t_mul(t_conj(gradient), norm_difference_tangent(t[0], t[1]))))
                  : NULL;
}

/* ------------------------------------------------------------ ops */

static const char *order_text(double p) {
  static char text[32];
  snprintf(text, sizeof text, "%g", p);
  return text;
}

/* Refuses norms of no elements for orders without an identity. */
static bool check_norm(const Tensor *x, Ints dims, DimMask mask, double p, DType dtype) {
  if (!linalg_check_norm_type(x, dtype, "linalg.vector_norm")) return false;
  if (x->numel != 0 || !(p < 0 || p == INFINITY)) return true;
  if (dims.n <= 0)
    fail(ERR_RUNTIME,
         "linalg.vector_norm cannot compute the %s norm on an empty tensor because the operation "
         "does not have an identity",
         order_text(p));
  for (int i = 0; i < x->ndim && dims.n > 0; i++)
    if (mask >> i & 1 && x->sizes[i] == 0)
      fail(ERR_RUNTIME,
           "linalg.vector_norm cannot compute the %s norm on the dimension %dbecause this "
           "dimension is empty and the operation does not have an identity",
           order_text(p), i);
  return !failed();
}

Tensor *t_vector_norm(Tensor *x, double p, Ints dims, bool keepdim, DType dtype) {
  OP_ENTERED(t_vector_norm, "vector_norm", x, p, dims, keepdim, dtype);
  IN_FLOAT_AS(dtype, t_vector_norm(x, p, dims, keepdim, dtype), x);
  DimMask mask;
  if (blocked(x) || !reduce_dims_mask(x, dims, &mask) || !check_norm(x, dims, mask, p, dtype))
    return NULL;
  if (dtype != DT_NONE) x = t_to(x, dtype);
  if (failed()) return NULL;
  Node *n = node_new(&LinalgVectorNormBackward0, 2, 1 + SHAPE_NUMBERS + x->ndim, x, NULL);
  num_f(n, 0, p);
  reduce_note_shape(n, 1, x, mask, keepdim);
  save(n, 0, x);
  Tensor *y = fold_norm(x, mask, p);
  y = set_history(keepdim ? y : reduce_drop_dims(y, mask), n);
  if (n) save_output(n, 1, y);
  return y;
}

/* The norm over all dimensions but dim, which stays; dim -1: over all. In PyTorch's steps. */
Tensor *t_norm_except_dim(Tensor *v, int64_t pow, int64_t dim) {
  OP_ENTERED(t_norm_except_dim, "norm_except_dim", v, pow, dim);
  if (blocked(v)) return NULL;
  if (dim == -1) return t_vector_norm(v, (double)pow, ALL_DIMS, false, DT_NONE);
  bool first = dim == 0;
  if (!first && dim != v->ndim - 1)
    return t_transpose(t_norm_except_dim(t_transpose(v, 0, dim), pow, 0), 0, dim);
  if (tensor_size(v, dim) < 0) return NULL;
  int64_t sizes[MAX_DIM], n = v->sizes[dim], rows[] = {first ? n : -1, first ? -1 : n},
                          over = first;
  for (int i = 0; i < v->ndim; i++) sizes[i] = i == dim ? n : 1;
  Tensor *flat = t_view(t_contiguous(v), 2, rows);
  return t_view(t_vector_norm(flat, (double)pow, (Ints){1, &over}, false, DT_NONE), v->ndim, sizes);
}

/* torch.norm's orders by name: "fro". */
Tensor *t_norm_named(Tensor *x, const char *p, Ints dims, bool keepdim, DType dtype) {
  OP_ENTERED(t_norm_named, "norm", x, p, dims, keepdim, dtype);
  if (blocked(x) || !p) return NULL;
  if (strcmp(p, "fro") == 0 && dims.n <= 2) return t_vector_norm(x, 2, dims, keepdim, dtype);
  int64_t all[MAX_DIM];
  for (int i = 0; i < x->ndim; i++) all[i] = i;
  return t_matrix_norm(x, p, 0, dims.n > 0 ? dims : (Ints){x->ndim, all}, keepdim, dtype);
}

Tensor *t_dist(Tensor *a, Tensor *b, double p) {
  OP_ENTERED(t_dist, "dist", a, b, p);
  IN_FLOAT(t_dist(a, b, p), a, b);
  if (blocked(a, b)) return NULL;
  Node *n = node_new(&DistBackward0, 3, 1, a, b, NULL);
  num_f(n, 0, p);
  save(n, 0, a);
  save(n, 1, b);
  Tensor *d = t_sub(t_detach(a), t_detach(b)), *y = NULL;
  if (d && !dtype_is_inexact(tensor_dtype(d)))
    fail(ERR_RUNTIME,
         "norm(): input dtype should be either floating point or complex. Got %s instead.",
         legacy(d));
  else if (d) y = reduce_drop_dims(fold_norm(d, reduce_dims_all(d), p), reduce_dims_all(d));
  y = set_history(y, n);
  if (n) save_output(n, 2, y);
  return y;
}

Tensor *t_normalize(Tensor *x, double p, Ints dims, double eps) {
  OP_ENTERED(t_normalize, "normalize", x, p, dims, eps);
  Tensor *length = t_clamp_min(t_vector_norm(x, p, dims, true, DT_NONE), tensor_wrapped_f(eps));
  return length ? t_div(x, t_expand(length, x->ndim, x->sizes)) : NULL;
}

/* ------------------------------------------------------------ renorm */

/* Scales slices of x along dim whose norm exceeds `most`, a wrapped number, down to it. */
Tensor *t_renorm(Tensor *x, double p, int64_t dim, Tensor *most) {
  OP_ENTERED(t_renorm, "renorm", x, p, dim, most);
  if (blocked(x, most)) return NULL;
  if (p <= 0) return fail(ERR_RUNTIME, "renorm: non-positive-norm not supported");
  double bound = tensor_get_f(most, 0);
  if (bound < 0) return fail(ERR_RUNTIME, "renorm: expected maxnorm to be >= 0 but got %g", bound);
  if (x->ndim < 2)
    return fail(ERR_RUNTIME, "renorm: input needs at least 2 dimensions, got %d dimensions",
                x->ndim);
  if ((dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  int64_t others[MAX_DIM];
  int n = 0;
  for (int i = 0; i < x->ndim; i++)
    if (i != dim) others[n++] = i;
  Tensor *norm = t_vector_norm(x, p, (Ints){n, others}, true, DT_NONE);
  Tensor *shrunk = t_mul(t_reciprocal(t_add(norm, tensor_wrapped_f(1e-7))), most);
  return t_mul(x, t_where(t_gt(norm, most), shrunk, tensor_wrapped_f(1)));
}

/* torch.masked: reductions and normalizations of the elements that a mask keeps.
 *
 * Elements that are masked out become the op's identity, a number that changes nothing; then the
 * plain op runs. So all functions are composed of other ops, in PyTorch's order and types, and
 * enter at their doors. */
#include <math.h>
#include <string.h>

#include "ops/create/create.h"
#include "ops/reduce/masked.h"
#include "reduce_rows.h"

/* ------------------------------------------------------------ masks */

/* The mask as a bool of x's shape. */
static Tensor *mask_of(Tensor *x, Tensor *mask) {
  if (blocked(x, mask)) return NULL;
  if (!tensor_same_shape(x, mask)) {
    if (mask->ndim > x->ndim)
      return fail(ERR_INDEX, "_input_mask expected broadcastable mask (got mask dimensionality "
                             "higher than of the input)");
    mask = t_expand(t_clone(mask), x->ndim, x->sizes);
  }
  return t_to(mask, DT_BOOL);
}

/* The least or the greatest number of a type. */
static Tensor *extreme(const char *op, DType d, bool least) {
  if (dtype_is_float(d) || (dtype_is_complex(d) && strcmp(op, "logsumexp") == 0))
    return tensor_number(least ? -INFINITY : INFINITY, d);
  if (dtype_is_complex(d))
    return fail(ERR_TYPE, "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                          "'torch.iinfo'");
  if (d == DT_BOOL || dtype_is_bare(d))
    return fail(ERR_NOT_IMPLEMENTED, "identity of %s on torch.%s input", op, dtype_info[d].name);
  int64_t most = d == DT_U8 ? 255 : INT64_MAX >> (64 - 8 * dtype_bytes(d));
  Tensor *y = tensor_number(0, d);
  if (y) tensor_set_i(y, 0, !least ? most : d == DT_U8 ? 0 : -most - 1);
  return y;
}

/* x with `identity` where the mask is false; x itself without a mask. */
static Tensor *with_number(Tensor *x, Tensor *mask, double identity) {
  if (blocked(x) || !mask) return x;
  return t_where(mask_of(x, mask), x, tensor_number(identity, tensor_dtype(x)));
}
static Tensor *with_extreme(const char *op, Tensor *x, Tensor *mask, bool least) {
  if (blocked(x) || !mask) return x;
  mask = mask_of(x, mask);
  return t_where(mask, x, mask ? extreme(op, tensor_dtype(x), least) : NULL);
}

/* Dims in ascending order; all of them if none is named. */
typedef struct {
  int64_t v[MAX_DIM];
  int32_t n;
} Dims;
#define LISTED(dims) ((Ints){(dims).n, (dims).v})

/* Wraps and sorts the dims. Like PyTorch, reports a repeated dim only if it equals, as given, a
 * wrapped one before it; the op itself may find others. */
static bool canonical(const Tensor *x, Ints given, Dims *dims) {
  dims->n = 0;
  if (blocked(x)) return false;
  for (int i = 0; i < given.n && !failed(); i++) {
    int64_t d = dim_wrap(given.v[i], x->ndim);
    bool twice = dims->n == MAX_DIM;
    for (int k = 0; k < dims->n; k++) twice = twice || dims->v[k] == given.v[i];
    if (twice)
      fail(ERR_RUNTIME, "dim=%lld appears multiple times in the list of dims", (Shown)given.v[i]);
    if (failed()) return false;
    int at = dims->n++;
    for (; at > 0 && dims->v[at - 1] > d; at--) dims->v[at] = dims->v[at - 1];
    dims->v[at] = d;
  }
  for (int d = 0; d < x->ndim && given.n <= 0; d++) dims->v[dims->n++] = d;
  return true;
}

/* The type of the last cast: the one asked for, else the input's. */
static DType wanted_dtype(const Tensor *x, DType dtype) {
  return dtype != DT_NONE || !x ? dtype : tensor_dtype(x);
}
static Tensor *in_type(Tensor *y, DType dtype) { return blocked(y) ? NULL : t_to(y, dtype); }

/* The type of a sum: integers are summed in int64 unless a type is given. */
static DType summed_type(const Tensor *x, DType dtype) {
  if (dtype != DT_NONE || !x) return dtype;
  return dtype_is_inexact(tensor_dtype(x)) ? tensor_dtype(x) : DT_I64;
}

/* ------------------------------------------------------------ sums and products */

static Tensor *sum_of(Tensor *x, Ints dims, bool keepdim, DType dtype, Tensor *mask) {
  Dims over;
  if (!canonical(x, dims, &over)) return NULL;
  return t_sum(with_number(x, mask, 0), LISTED(over), keepdim, summed_type(x, dtype));
}

Tensor *t_masked_sum(Tensor *x, Ints dims, bool keepdim, DType dtype, Tensor *mask) {
  return t_laid_out_like(sum_of(x, dims, keepdim, dtype, mask), x);
}

Tensor *t_masked_prod(Tensor *x, Ints dims, bool keepdim, DType dtype, Tensor *mask) {
  Dims over;
  if (!canonical(x, dims, &over)) return NULL;
  Tensor *y = in_type(with_number(x, mask, 1), summed_type(x, dtype));
  for (int i = over.n - 1; i >= 0; i--) y = t_prod_dim(y, over.v[i], keepdim, DT_NONE);
  return y;
}

Tensor *t_masked_cumsum(Tensor *x, int64_t dim, DType dtype, Tensor *mask) {
  return t_cumsum(with_number(x, mask, 0), dim, wanted_dtype(x, dtype));
}

Tensor *t_masked_cumprod(Tensor *x, int64_t dim, DType dtype, Tensor *mask) {
  return t_cumprod(with_number(x, mask, 1), dim, wanted_dtype(x, dtype));
}

/* ------------------------------------------------------------ extrema */

Tensor *t_masked_amax(Tensor *x, Ints dims, bool keepdim, DType dtype, Tensor *mask) {
  Dims over;
  Tensor *y = with_extreme("amax", x, mask, true);
  return canonical(y, dims, &over)
             ? in_type(t_amax(y, LISTED(over), keepdim), wanted_dtype(x, dtype))
             : NULL;
}

Tensor *t_masked_amin(Tensor *x, Ints dims, bool keepdim, DType dtype, Tensor *mask) {
  Dims over;
  Tensor *y = with_extreme("amin", x, mask, false);
  return canonical(y, dims, &over)
             ? in_type(t_amin(y, LISTED(over), keepdim), wanted_dtype(x, dtype))
             : NULL;
}

/* Like PyTorch's, indices have the type of the input. */
Tensor *t_masked_argmax(Tensor *x, const int64_t *dim, bool keepdim, DType dtype, Tensor *mask) {
  Tensor *y = with_extreme("argmax", x, mask, true);
  return in_type(t_argmax(y, dim, keepdim), wanted_dtype(x, dtype));
}

Tensor *t_masked_argmin(Tensor *x, const int64_t *dim, bool keepdim, DType dtype, Tensor *mask) {
  Tensor *y = with_extreme("argmin", x, mask, false);
  return in_type(t_argmin(y, dim, keepdim), wanted_dtype(x, dtype));
}

Tensor *t_masked_median(Tensor *x, int64_t dim, bool keepdim, DType dtype, Tensor *mask) {
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  Tensor *y[2], *numbers = dtype_is_float(tensor_dtype(x)) ? x : t_to(x, DT_F32);
  t_median_dim(with_number(numbers, mask, NAN), dim, keepdim, true, y);
  if (numbers == x) return y[0];
  Tensor *unknown = t_any(t_isnan(y[0]), ALL_DIMS, false);
  if (unknown && !tensor_absent(unknown) && tensor_get_i(unknown, 0))
    return fail(ERR_VALUE,
                "masked median expects no fully masked out rows if dtype is not floating point");
  return in_type(y[0], wanted_dtype(x, dtype));
}

/* ------------------------------------------------------------ moments and norms */

/* The number of elements that the mask keeps. */
static Tensor *count_of(Tensor *x, Ints dims, bool keepdim, Tensor *mask) {
  if (blocked(x)) return NULL;
  if (!mask) mask = t_expand(tensor_number(1, DT_I64), x->ndim, x->sizes);
  return sum_of(mask, dims, keepdim, DT_NONE, NULL);
}

Tensor *t_masked_mean(Tensor *x, Ints dims, bool keepdim, DType dtype, Tensor *mask) {
  if (blocked(x)) return NULL;
  DType d = wanted_dtype(x, dtype);
  if (!dtype_is_inexact(d))
    return fail(ERR_VALUE,
                "mean(): Could not infer output dtype. %s dtype must be either a floating point or "
                "complex dtype. Got: torch.%s",
                dtype == DT_NONE ? "Input" : "Optional", dtype_info[d].name);
  if (mask && !(mask = mask_of(x, mask))) return NULL;
  return t_div(sum_of(x, dims, keepdim, d, mask), count_of(x, dims, keepdim, mask));
}

Tensor *t_masked_logsumexp(Tensor *x, Ints dims, bool keepdim, DType dtype, Tensor *mask) {
  Dims over;
  if (!canonical(x, dims, &over)) return NULL;
  Tensor *y = with_extreme("logsumexp", x, mask, true);
  return in_type(t_logsumexp(y, LISTED(over), keepdim), wanted_dtype(x, dtype));
}

Tensor *t_masked_logaddexp(Tensor *a, Tensor *b, DType dtype, Tensor *mask_a, Tensor *mask_b) {
  Tensor *left = with_extreme("logaddexp", a, mask_a, true);
  Tensor *right = with_extreme("logaddexp", b, mask_b, true);
  return in_type(t_logaddexp(left, right), wanted_dtype(a, dtype));
}

static Tensor *norm_of(Tensor *x, double ord, Ints dims, bool keepdim, DType dtype, Tensor *mask) {
  Dims over;
  if (blocked(x)) return NULL;
  bool least = ord == -INFINITY;
  if (mask && least && !dtype_is_float(tensor_dtype(x)))
    return fail(ERR_ASSERTION, "input must be floating point, got torch.%s",
                dtype_info[x->dtype].name);
  Tensor *y = with_number(x, mask, least ? INFINITY : 0);
  if (!canonical(y, dims, &over)) return NULL;
  return t_vector_norm(y, ord, LISTED(over), keepdim, wanted_dtype(x, dtype));
}

Tensor *t_masked_norm(Tensor *x, double ord, Ints dims, bool keepdim, DType dtype, Tensor *mask) {
  return norm_of(x, ord, dims, keepdim, dtype, mask);
}

/* The sum of squares about the mean, divided by the number of elements minus a correction. */
static Tensor *spread_of(Tensor *x, Ints dims, const Freedom *s, bool keepdim, DType dtype,
                         Tensor *mask) {
  if (blocked(x)) return NULL;
  if (s->unbiased && s->correction)
    return fail(ERR_ASSERTION, "Only one of unbiased and correction may be given");
  double correction = s->correction ? *s->correction : !s->unbiased || *s->unbiased ? 1 : 0;
  DType d = wanted_dtype(x, dtype);
  if (dtype == DT_NONE && !dtype_is_inexact(d)) d = DT_F32;
  DType computed = dtype_is_inexact(d) ? d : DT_F32, real = dtype_real(computed);
  if (mask && !(mask = mask_of(x, mask))) return NULL;
  Tensor *count = count_of(x, dims, true, mask);
  Tensor *centred = t_sub(x, t_div(sum_of(x, dims, true, d, mask), count));
  Tensor *total = sum_of(t_mul(centred, t_conj(centred)), dims, keepdim, computed, mask);
  if (blocked(total)) return NULL;
  if (!keepdim) count = t_reshape(count, total->ndim, total->sizes);
  if (correction != 0)
    count = t_maximum(t_sub(in_type(count, real), tensor_wrapped_f(correction)),
                      tensor_number(0, real));
  return in_type(t_div(total, count), d);
}

Tensor *t_masked_var(Tensor *x, Ints dims, Freedom s, bool keepdim, DType dtype, Tensor *mask) {
  return spread_of(x, dims, &s, keepdim, dtype, mask);
}

Tensor *t_masked_std(Tensor *x, Ints dims, Freedom s, bool keepdim, DType dtype, Tensor *mask) {
  return t_sqrt(spread_of(x, dims, &s, keepdim, dtype, mask));
}

/* ------------------------------------------------------------ normalizations */

Tensor *t_masked_softmax(Tensor *x, int64_t dim, DType dtype, Tensor *mask) {
  return t_softmax(with_extreme("amax", x, mask, true), dim, wanted_dtype(x, dtype));
}

Tensor *t_masked_log_softmax(Tensor *x, int64_t dim, DType dtype, Tensor *mask) {
  return t_log_softmax(with_extreme("amax", x, mask, true), dim, wanted_dtype(x, dtype));
}

Tensor *t_masked_softmin(Tensor *x, int64_t dim, DType dtype, Tensor *mask) {
  return t_softmax(t_neg(with_extreme("amin", x, mask, false)), dim, wanted_dtype(x, dtype));
}

Tensor *t_masked_normalize(Tensor *x, double ord, Ints dims, double eps, DType dtype,
                           Tensor *mask) {
  Tensor *y = with_number(x, mask, 0), *norm = norm_of(x, ord, dims, true, dtype, mask);
  if (blocked(y, norm)) return NULL;
  return t_div(y, t_maximum(norm, tensor_number(eps, tensor_dtype(norm))));
}

/* Searches and counts: unique, unique_consecutive, searchsorted, bucketize, quantile, bincount,
 * histc. */
#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/poll.h"
#include "ops/order/sort.h"
#include "ops/view/copy.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"
#include "order_rows.h"

/* ------------------------------------------------------------ unique */

GRAD(Unique2Backward0, "")
{ fail(ERR_NOT_IMPLEMENTED, "the derivative for '_unique2' is not implemented."); }
GRAD(UniqueDimBackward0, "")
{ fail(ERR_NOT_IMPLEMENTED, "the derivative for 'unique_dim' is not implemented."); }
GRAD(UniqueConsecutiveBackward0, "")
{ fail(ERR_NOT_IMPLEMENTED, "the derivative for 'unique_consecutive' is not implemented."); }

/* n slices of `width` elements, contiguous, one after the other. */
typedef struct {
  const char *at;
  DType dtype;
  int64_t n, width;
} Slices;

/* Below, equal, above: -1, 0, 1. A NaN equals nothing and stands above all numbers. */
static int compare_slices(const Slices *s, int64_t i, int64_t j) {
  const char *at = s->at;
  DISPATCH_ALL(s->dtype, {
    const T *a = (const T *)(const void *)at + i * s->width,
            *b = (const T *)(const void *)at + j * s->width;
    for (int64_t k = 0; k < s->width; k++) {
      T v = ELEMENT(a + k), w = ELEMENT(b + k);
      if (v < w) return -1;
      if (v > w) return 1;
      if (v != w) return v == v ? -1 : 1;
    }
  })
  return 0;
}

/* The stable order of the slices, merged from runs of one. */
static uint32_t *order_slices(const Slices *s) {
  uint32_t *a = scratch_array(2 * (s->n + 1), sizeof *a), *b = a + s->n;
  if (!a) return NULL;
  for (int64_t i = 0; i < s->n; i++) a[i] = (uint32_t)i;
  for (int64_t run = 1; run < s->n; run *= 2) {
    for (int64_t at = 0; at < s->n; at += 2 * run) {
      int64_t middle = at + run < s->n ? at + run : s->n,
              end = at + 2 * run < s->n ? at + 2 * run : s->n;
      int64_t i = at, j = middle;
      if (poll_stops(8 * (end - at))) return NULL;
      for (int64_t k = at; k < end; k++)
        b[k] = j == end || (i < middle && compare_slices(s, a[i], a[j]) <= 0) ? a[i++] : a[j++];
    }
    uint32_t *swap = a;
    a = b;
    b = swap;
  }
  return a;
}

/* Groups of equal neighbours in the order (NULL: as they lie): the first of each group, the
 * group of each slice, and the size of each group. Returns their number. */
static int64_t group(const Slices *s, const uint32_t *order, uint32_t *first, int64_t *inverse,
                     int64_t *counts) {
  int64_t groups = 0, before = 0;
  for (int64_t i = 0; i < s->n; i++) {
    int64_t at = order ? order[i] : i;
    if (i == 0 || compare_slices(s, before, at) != 0) {
      first[groups] = (uint32_t)at;
      counts[groups++] = 0;
    }
    counts[groups - 1]++;
    inverse[at] = groups - 1;
    before = at;
  }
  return groups;
}

/* `group` for single elements, ordered by their keys. Equal keys are equal elements, except
 * NaNs. */
static int64_t group_elements(const Slices *s, uint32_t *first, int64_t *inverse, int64_t *counts) {
  Item *items = scratch_array(2 * (s->n + 1), sizeof *items);
  if (!items) return 0;
  int64_t groups = 0;
  uint64_t nan = s->dtype == DT_F32 ? UINT32_MAX : UINT64_MAX;
  if (s->n) items = order_lane(s->at, s->dtype, s->n, 1, false, items, items + s->n);
  for (int64_t i = 0; i < s->n; i++) {
    if (i == 0 || items[i].key != items[i - 1].key ||
        (items[i].key == nan && dtype_is_float(s->dtype))) {
      first[groups] = items[i].index;
      counts[groups++] = 0;
    }
    counts[groups - 1]++;
    inverse[items[i].index] = groups - 1;
  }
  return groups;
}

static Tensor *take_slices(const Slices *s, const uint32_t *first, int64_t groups, int ndim,
                           int64_t *sizes) {
  sizes[0] = groups;
  Tensor *y = tensor_empty(ndim, sizes, s->dtype);
  if (!y) return NULL;
  int64_t bytes = s->width * dtype_bytes(s->dtype);
  char *to = tensor_data(y);
  for (int64_t i = 0; i < groups; i++)
    memcpy(to + i * bytes, s->at + first[i] * bytes, (size_t)bytes);
  return y;
}

/* out: the slices, the group of each, the sizes of the groups. x is contiguous, its slices along
 * dim 0; `like` gives the shape of the groups. */
static void unique_slices(Tensor *x, const Tensor *like, bool sorted, Tensor *out[3]) {
  int64_t sizes[MAX_DIM] = {0};
  Slices s = {.dtype = tensor_dtype(x), .n = x->sizes[0], .width = 1};
  for (int i = 1; i < x->ndim; i++) s.width *= sizes[i] = x->sizes[i];
  s.at = tensor_data(x);
  size_t mark = scratch_mark();
  bool by_key = sorted && x->ndim == 1;
  uint32_t *order = sorted && !by_key ? order_slices(&s) : NULL;
  uint32_t *first = scratch_array(s.n + 1, sizeof *first);
  int64_t *counts = scratch_array(s.n + 1, sizeof *counts);
  out[1] = tensor_empty(like->ndim, like->sizes, DT_I64);
  if (failed() || !out[1]) return;
  int64_t *inverse = (int64_t *)(void *)tensor_data(out[1]);
  int64_t groups = by_key ? group_elements(&s, first, inverse, counts)
                          : group(&s, order, first, inverse, counts);
  if (failed()) return;
  out[0] = take_slices(&s, first, groups, x->ndim, sizes);
  out[2] = tensor_empty(1, &groups, DT_I64);
  if (out[2]) memcpy(tensor_data(out[2]), counts, (size_t)groups * sizeof *counts);
  scratch_release(mark);
}

static bool check_unique_dim(const Tensor *x, int64_t dim) {
  if (x->ndim == 0) {
    fail(ERR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (Shown)dim);
    return false;
  }
  for (int i = 0; i < x->ndim; i++)
    if (i != dim && x->sizes[i] == 0 && x->numel == 0 && x->sizes[dim] != 0) {
      fail(ERR_RUNTIME,
           "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
      return false;
    }
  return true;
}

void t_unique(Tensor *x, bool sorted, const int64_t *along, Tensor *out[3]) {
  OP_ENTERED(t_unique, "unique", x, sorted, along, out);
  IN_FLOAT_OUT(3, out, t_unique(x, sorted, along, out), x)
  out[0] = out[1] = out[2] = NULL;
  if (blocked(x)) return;
  int64_t dim = 0;
  if (along && ((x->ndim && (dim = dim_wrap(*along, x->ndim)) < 0) || !check_unique_dim(x, dim)))
    return;
  const NodeType *type = !sorted ? &UniqueConsecutiveBackward0
                         : along ? &UniqueDimBackward0
                                 : &Unique2Backward0;
  Node *n = dtype_is_float(tensor_dtype(x)) ? node_new(type, 0, 0, x, NULL) : NULL;
  WITHOUT_GRAD_BLOCK {
    Tensor *front = t_contiguous(along ? t_transpose(x, 0, dim) : t_flatten(x, 0, -1));
    Tensor *like = along && front ? tensor_empty(1, front->sizes, DT_U8) : x;
    if (front && like) unique_slices(front, like, sorted, out);
    if (along && (out[0] = t_transpose(out[0], 0, dim)))
      out[0] = tensor_alias(out[0], out[0]->ndim, out[0]->sizes, out[0]->strides, 0);
  }
  set_history_at(out[0], n, 0);
}

/* ------------------------------------------------------------ places in an order */

/* The first place where v could stand (right: the last), by bisection; sorter may be NULL. */
#define PLACE(T)                                                                                \
  static int64_t place_##T(const T *edges, const int64_t *sorter, int64_t n, T v, bool right) { \
    int64_t low = 0, high = n;                                                                  \
    while (low < high) {                                                                        \
      int64_t middle = low + (high - low) / 2;                                                  \
      T at = edges[sorter ? sorter[middle] : middle];                                           \
      if (right ? at > v : at >= v) high = middle;                                              \
      else low = middle + 1;                                                                    \
    }                                                                                           \
    return low;                                                                                 \
  }
PLACE(int64_t)
PLACE(double)
PLACE(float)

/* The operands in one type that has a loop; NULL with the error. */
static bool search_types(Tensor **edges, Tensor **values, const char *name) {
  Tensor *both[2] = {*edges, *values};
  DType d = elementwise_result_dtype(2, both);
  if (d == DT_BOOL) {
    fail(ERR_NOT_IMPLEMENTED, "\"%s_out_cpu\" not implemented for 'Bool'", name);
    return false;
  }
  if (!dtype_is_float(d)) d = DT_I64;
  *edges = t_contiguous(elementwise_cast(*edges, d));
  *values = t_contiguous(elementwise_cast(*values, d));
  return *edges && *values;
}

static bool check_sorter(const Tensor *edges, const Tensor *sorter) {
  if (!tensor_same_shape(edges, sorter))
    fail(ERR_RUNTIME,
         "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
         "tensor %sand got sorter tensor %s",
         shape_text(edges), shape_text(sorter));
  else if (sorter->dtype != DT_I64)
    fail(ERR_RUNTIME,
         "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype %s",
         legacy(sorter));
  else if (sorter->numel) {
    Tensor *s = t_detach((Tensor *)(uintptr_t)sorter), *low = t_min(s), *high = t_max(s);
    if (low && high &&
        (tensor_get_i(low, 0) < 0 || tensor_get_i(high, 0) >= edges->sizes[edges->ndim - 1]))
      fail(ERR_RUNTIME, "torch.searchsorted(): sorter index out of range");
  }
  return !failed();
}

static bool check_search(const Tensor *edges, const Tensor *values, bool right, const char *side) {
  bool one = values->ndim == 0;
  if (side && strcmp(side, "left") != 0 && strcmp(side, "right") != 0)
    fail(ERR_RUNTIME, "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side);
  else if (side && strcmp(side, "left") == 0 && right)
    fail(ERR_RUNTIME, "torch.searchsorted(): side and right can't be set to opposites, got side of "
                      "left while right was True");
  else if (one && edges->ndim != 1)
    fail(ERR_RUNTIME,
         "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension "
         "is 1, but we got boundaries tensor dim(%d) and input value's dim(%d) numel(%lld)",
         edges->ndim, values->ndim, (Shown)values->numel);
  else if (edges->ndim == 0)
    fail(ERR_RUNTIME, "torch.searchsorted(): boundaries tensor should have positive dimension, but "
                      "got 0 dimension");
  else if (edges->ndim != 1 &&
           !sizes_equal(edges->ndim - 1, edges->sizes, values->ndim - 1, values->sizes))
    fail(ERR_RUNTIME,
         "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
         "dimensions of boundaries tensor and input value tensor must match, but we got boundaries "
         "tensor %s and input value tensor %s",
         shape_text(edges), shape_text(values));
  return !failed();
}

Tensor *t_searchsorted(Tensor *edges, Tensor *values, bool int32, bool right, const char *side,
                       Tensor *sorter) {
  OP_ENTERED(t_searchsorted, "searchsorted", edges, values, int32, right, side, sorter);
  IN_FLOAT(t_searchsorted(edges, values, int32, right, side, sorter), edges, values);
  if (blocked(edges, values) || !check_search(edges, values, right, side)) return NULL;
  if (sorter && (!(sorter = tensor_settled(sorter)) || !check_sorter(edges, sorter))) return NULL;
  right = right || (side && strcmp(side, "right") == 0);
  if (!search_types(&edges, &values, "searchsorted")) return NULL;
  if (sorter) sorter = t_contiguous(sorter);
  Tensor *y = tensor_empty(values->ndim, values->sizes, int32 ? DT_I32 : DT_I64);
  if (blocked(y)) return NULL;
  if (tensor_absent(y)) return y;
  int64_t n = edges->sizes[edges->ndim - 1],
          each = edges->ndim == 1 ? values->numel : values->sizes[values->ndim - 1];
  const char *edges_at = tensor_data(edges), *values_at = tensor_data(values);
  const int64_t *order = sorter ? (const int64_t *)(const void *)tensor_data(sorter) : NULL;
  for (int64_t i = 0; i < y->numel; i++) {
    int64_t row = edges->ndim == 1 ? 0 : i / each * n, at = 0;
    if (poll_stops_round(i, 32)) return NULL;
    const int64_t *row_order = order ? order + row : NULL;
#define PLACE_CASE(D, T)                                                  \
  case D:                                                                 \
    at = place_##T((const T *)(const void *)edges_at + row, row_order, n, \
                   ((const T *)(const void *)values_at)[i], right);       \
    break;
    switch (tensor_dtype(edges)) {
      PLACE_CASE(DT_F32, float)
      PLACE_CASE(DT_F64, double)
      PLACE_CASE(DT_I64, int64_t)
      default: break;
    }
    tensor_set_i(y, i, at);
  }
  return y;
}

Tensor *t_bucketize(Tensor *values, Tensor *edges, bool int32, bool right) {
  OP_ENTERED(t_bucketize, "bucketize", values, edges, int32, right);
  if (blocked(edges, values)) return NULL;
  if (edges->ndim != 1)
    return fail(ERR_RUNTIME, "boundaries tensor must be 1 dimension, but got dim(%d)", edges->ndim);
  return t_searchsorted(edges, values, int32, right, NULL, NULL);
}

/* ------------------------------------------------------------ counts by value */

NO_DERIVATIVE(bincount)

/* The number of bins for the values of x, at least `least`; -1 with the error. */
static int64_t bins_of(Tensor *x, Tensor *weights, int64_t least) {
  if (least < 0) return fail(ERR_RUNTIME, "minlength should be >= 0"), -1;
  if (x->dtype == DT_BOOL || dtype_is_float(tensor_dtype(x)))
    return dtype_no_kernel("bincount_cpu", tensor_dtype(x)), -1;
  Tensor *low = x->numel ? t_min(x) : NULL, *high = x->numel ? t_max(x) : NULL;
  if (x->ndim != 1 || (low && tensor_get_i(low, 0) < 0))
    return fail(ERR_RUNTIME, "bincount only supports 1-d non-negative integral inputs."), -1;
  if (weights && (weights->ndim != 1 || weights->numel != x->numel))
    return fail(ERR_RUNTIME, "weights should be 1-d and have the same length as input"), -1;
  if (high && tensor_get_i(high, 0) == INT64_MAX)
    return fail(ERR_RUNTIME, "maximum value of input overflowed, it should be < %lld but got %lld",
                (Shown)INT64_MAX, (Shown)INT64_MAX),
           -1;
  int64_t filled = high ? tensor_get_i(high, 0) + 1 : 0;
  return filled > least ? filled : least;
}

Tensor *t_bincount(Tensor *x, Tensor *weights, int64_t least) {
  OP_ENTERED(t_bincount, "bincount", x, weights, least);
  x = tensor_settled(x);
  int64_t bins = x ? bins_of(x, weights, least) : -1;
  if (bins < 0) return NULL;
  if (weights && !x->numel) weights = NULL;
  DType d = !weights ? DT_I64 : weights->dtype == DT_F32 ? DT_F32 : DT_F64;
  Node *n = weights ? node_new(&node_bincount, 0, 0, weights, NULL) : NULL;
  x = t_contiguous(elementwise_cast(x, DT_I64));
  if (weights) weights = t_contiguous(elementwise_cast(weights, d));
  Tensor *y = tensor_zeros(1, &bins, d);
  if (blocked(x, y)) return set_history(NULL, n);
  const int64_t *at = (const int64_t *)(const void *)tensor_data(x);
  const char *w = weights ? tensor_data(weights) : NULL;
  char *out = tensor_data(y);
  DISPATCH_ALL(d, {
    for (int64_t i = 0; i < x->numel; i++) {
      T *bin = (T *)(void *)out + at[i];
      *bin = (T)(*bin + (w ? ((const T *)(const void *)w)[i] : (T)1));
    }
  })
  return set_history(y, n);
}

/* The given range, or that of the elements; its ends differ. */
static bool histogram_range(Tensor *x, double *low, double *high) {
  if (tensor_absent(x)) return true;
  if (*low == *high && x->numel) {
    Tensor *out[2];
    t_aminmax(t_detach(x), NULL, false, out);
    if (failed() || !out[0]) return false;
    *low = tensor_get_f(out[0], 0);
    *high = tensor_get_f(out[1], 0);
  }
  if (*low == *high) *low -= 1, *high += 1;
  if (isfinite(*low) && isfinite(*high)) {
    if (*low < *high) return true;
    fail(ERR_RUNTIME, "torch.histc: max must be larger than min");
  } else {
    fail(ERR_RUNTIME, "torch.histc: range of [%g, %g] is not finite", *low, *high);
  }
  return false;
}

Tensor *t_histc(Tensor *x, int64_t bins, double low, double high) {
  OP_ENTERED(t_histc, "histc", x, bins, low, high);
  IN_FLOAT(t_histc(x, bins, low, high), x);
  if (blocked(x)) return NULL;
  if (x->dtype == DT_U8 && (low < 0 || high < 0 || low > 255 || high > 255))
    return fail(ERR_RUNTIME, "value cannot be converted to type uint8_t without overflow");
  if (!dtype_check_float_kernel("histogram_cpu", tensor_dtype(x))) return NULL;
  if (bins <= 0)
    return fail(ERR_RUNTIME, "torch.histogram(): bins must be > 0, but got %lld for dimension 0",
                (Shown)bins);
  if (!histogram_range(x, &low, &high)) return NULL;
  x = t_contiguous(x);
  Tensor *y = x ? tensor_zeros(1, &bins, tensor_dtype(x)) : NULL;
  if (!y || tensor_absent(y)) return y;
  const char *x_at = tensor_data(x);
  char *y_at = tensor_data(y);
  DISPATCH_FLOAT(tensor_dtype(x), {
    const T *v = (const T *)(const void *)x_at;
    T *count = (T *)(void *)y_at;
    T from = (T)low;
    T to = (T)high;
    for (int64_t i = 0; i < x->numel; i++) {
      T at = v[i];
      if (!(at >= from && at <= to)) continue;
      /* of a range beyond T: below 0 */
      int64_t bin = int_from_double((double)((at - from) / (to - from) * (T)bins));
      count[bin < 0 ? 0 : bin < bins ? bin : bins - 1] += 1;
    }
  })
  return y;
}

/* ------------------------------------------------------------ quantile */

typedef enum { LINEAR, LOWER, HIGHER, MIDPOINT, NEAREST, INTERPOLATIONS } Interpolation;

static Interpolation interpolation_named(const char *text) {
  static const char *const texts[] = {"linear", "lower", "higher", "midpoint", "nearest"};
  for (int i = 0; i < INTERPOLATIONS; i++)
    if (text && strcmp(text, texts[i]) == 0) return (Interpolation)i;
  fail(ERR_RUNTIME,
       "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but "
       "got %s",
       text);
  return INTERPOLATIONS;
}

static bool check_quantile(const Tensor *x, const Tensor *q) {
  if (x->numel == 0) fail(ERR_RUNTIME, "quantile() input tensor must be non-empty");
  else if (q->ndim > 1) fail(ERR_RUNTIME, "quantile() q must be a scalar or 1D tensor");
  else if (!dtype_is_float(tensor_dtype(x)) || dtype_is_half(tensor_dtype(x)))
    fail(ERR_RUNTIME, "quantile() input tensor must be either float or double dtype");
  else if (is_wrapped(q)) {
    double v = tensor_get_f(q, 0);
    if (!(v >= 0 && v <= 1))
      fail(ERR_RUNTIME, "quantile() q must be in the range [0, 1] but got %g", v);
  } else if (q->dtype != x->dtype)
    fail(ERR_RUNTIME, "quantile() q tensor must be same dtype as the input tensor");
  else
    for (int64_t i = 0; i < q->numel && !tensor_absent(q); i++) {
      double v = tensor_get_f(q, q->ndim ? i * q->strides[0] : 0);
      if (!(v >= 0 && v <= 1)) fail(ERR_RUNTIME, "quantile() q values must be in the range [0, 1]");
    }
  return !failed();
}

/* The ranks of q in lanes of n, as a last dim. A lane with a NaN takes its last element, which is
 * NaN; if NaNs are skipped, the lane ends before them instead. */
static Tensor *quantile_ranks(Tensor *sorted, Tensor *q, int64_t n, bool skip_nan) {
  Tensor *valid = t_eq(t_detach(sorted), t_detach(sorted));
  if (skip_nan) {
    Tensor *last = t_sub(t_sum(valid, ONE_DIM(-1), true, DT_NONE), tensor_wrapped_i(1));
    Tensor *ranks = t_mul(q, last);
    return t_masked_fill(ranks, t_lt(ranks, tensor_wrapped_f(0)), tensor_wrapped_f(0));
  }
  Tensor *whole = t_all(valid, ONE_DIM(-1), true);
  return t_where(whole, t_mul_f(q, (double)(n - 1)),
                 tensor_number((double)(n - 1), tensor_dtype(sorted)));
}

/* Values at fractional ranks of the sorted lanes. */
static Tensor *interpolate(Tensor *sorted, Tensor *ranks, Interpolation how) {
  Tensor *below = how == NEAREST  ? t_round_even(ranks)
                  : how == HIGHER ? t_ceil(ranks)
                                  : t_floor(ranks);
  Tensor *low = t_gather(sorted, -1, t_to(t_detach(below), DT_I64));
  if (how != LINEAR && how != MIDPOINT) return low;
  Tensor *high = t_gather(sorted, -1, t_to(t_detach(t_ceil(ranks)), DT_I64));
  Tensor *weight = how == MIDPOINT ? tensor_wrapped_f(0.5) : t_sub(ranks, below);
  return t_lerp(low, high, weight);
}

Tensor *t_quantile(Tensor *x, Tensor *q, const int64_t *dim, bool keepdim,
                   const char *interpolation, bool skip_nan) {
  OP_ENTERED(t_quantile, "quantile", x, q, dim, keepdim, interpolation, skip_nan);
  if (blocked(x, q) || !check_quantile(x, q)) return NULL;
  Interpolation how = interpolation_named(interpolation);
  int64_t wrapped = dim ? dim_wrap(*dim, x->ndim) : 0, sizes[MAX_DIM + 1];
  if (failed()) return NULL;
  /* Moves the lanes to the last dim, where the quantiles come out. */
  bool all = !dim || x->ndim == 0;
  for (int i = 0; i < x->ndim; i++) sizes[i] = i < x->ndim - 1 ? 1 : x->numel;
  Tensor *lanes = !all ? keepdim ? t_transpose(t_unsqueeze(x, -1), wrapped, -1)
                                 : t_movedim(x, ONE_DIM(wrapped), ONE_DIM(-1))
                  : keepdim && x->ndim
                      ? t_reshape(x, x->ndim + 1,
                                  (sizes[x->ndim - 1] = 1, sizes[x->ndim] = x->numel, sizes))
                      : t_flatten(x, 0, -1);
  Tensor *points = is_wrapped(q) ? tensor_number(tensor_get_f(q, 0), tensor_dtype(x)) : q;
  points = t_reshape(points, 1, (const int64_t[]){-1});
  Tensor *sorted = t_sort_values(lanes, -1);
  if (blocked(sorted)) return NULL;
  Tensor *y = interpolate(
      sorted, quantile_ranks(sorted, points, lanes->sizes[lanes->ndim - 1], skip_nan), how);
  if (q->ndim)
    y = shape_take_fresh(y, t_unsqueeze(y, 0)), y = shape_take_fresh(y, t_transpose(y, 0, -1));
  return shape_take_fresh(y, t_squeeze_dim(y, -1));
}

/* Returns the results that were asked for: one tensor, or a tuple. */
void ret_unique(Call *c, bool inverse, bool counts, Tensor *r[3]) {
  int n = 1;
  if (inverse) r[n++] = r[1];
  if (counts) r[n++] = r[2];
  if (n == 1) ret_tensor(c, r[0]);
  else ret_tensors(c, n, r);
}

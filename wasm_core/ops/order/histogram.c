/* histogram, histogramdd: the number, or the weight, of points in each bin of a grid.
 *
 * Every bin but the last includes its left edge and not its right one; the last includes both. No
 * gradients. */
#include <math.h>

#include "ops/create/create.h"
#include "ops/op.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"
#include "order_rows.h"

/* ------------------------------------------------------------ edges */

typedef struct {
  double low, high;
} Extent;

static double drop_nan_sign(double v) { return isnan(v) ? NAN : v; } /* without a sign */

static bool check_extent(Extent e, int d) {
  if (!isfinite(e.low) || !isfinite(e.high))
    return fail(ERR_RUNTIME, "torch.histogramdd: dimension %d's range [%g, %g] is not finite", d,
                drop_nan_sign(e.low), drop_nan_sign(e.high)),
           false;
  if (e.low <= e.high) return true;
  fail(ERR_RUNTIME,
       "torch.histogramdd: min should not exceed max, but got min %g max %g for dimension %d",
       e.low, e.high, d);
  return false;
}

/* The least and the largest of values. */
static Extent extent_of(Tensor *values) {
  if (blocked(values) || !values->numel) return (Extent){0, 1};
  Tensor *low = t_min(values), *high = t_max(values);
  return blocked(low, high) ? (Extent){0, 1}
                            : (Extent){tensor_get_f(low, 0), tensor_get_f(high, 0)};
}

static bool check_count(int64_t count, int d) {
  if (count > 0) return true;
  fail(ERR_RUNTIME, "torch.histogram(): bins must be > 0, but got %lld for dimension %d",
       (Shown)count, d);
  return false;
}

/* Even edges over the range given for dimension d, or over that of the points' column. */
static Tensor *even_edges(Tensor *points, int64_t count, Floats range, int d) {
  if (!check_count(count, d)) return NULL;
  Extent e = range.n < 0 ? extent_of(t_select(points, 1, d))
                         : (Extent){range.v[2 * d], range.v[2 * d + 1]};
  if (failed() || !check_extent(e, d)) return NULL;
  double room = e.low == e.high ? 0.5 : 0;
  return t_linspace(tensor_wrapped_f(e.low - room), tensor_wrapped_f(e.high + room), count + 1,
                    tensor_dtype(points));
}

static const char *lower(const Tensor *t) {
  static char names[2][16];
  static int turn;
  char *name = names[turn++ & 1];
  int n = 0;
  for (const char *s = legacy(t); *s && n < 15; s++)
    name[n++] = (char)(*s >= 'A' && *s <= 'Z' ? *s + ('a' - 'A') : *s);
  name[n] = 0;
  return name;
}

static Tensor *given_edges(const Tensor *points, Tensor *edges, int d) {
  if (edges->ndim != 1)
    return fail(ERR_RUNTIME,
                "torch.histogramdd: bins tensor should have one dimension, but got %d dimensions "
                "in the bins tensor for dimension %d",
                edges->ndim, d);
  if (edges->dtype != points->dtype)
    return fail(ERR_RUNTIME,
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but "
                "got input with dtype %s and bins for dimension %d with dtype %s",
                lower(points), d, lower(edges));
  if (!edges->numel)
    return fail(ERR_RUNTIME,
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements "
                "in the bins tensor for dimension %d",
                d);
  return check_count(edges->numel - 1, d) ? t_clone(t_detach(edges)) : NULL;
}

/* ------------------------------------------------------------ counting */

/* Adds one dimension to the places in the grid: the bins of a column. Clears `inside` for elements
 * in no bin. */
static void locate(Tensor *column, Tensor *edges, Tensor **place, Tensor **inside) {
  if (blocked(column, edges)) return;
  int64_t bins = edges->numel - 1;
  Tensor *bin = t_sub(t_searchsorted(edges, t_contiguous(column), false, true, NULL, NULL),
                      tensor_wrapped_i(1));
  bin = t_clamp(bin, tensor_wrapped_i(0), tensor_wrapped_i(bins - 1));
  *inside = t_bitwise_and(*inside, t_ge(column, t_select(edges, 0, 0)));
  *inside = t_bitwise_and(*inside, t_le(column, t_select(edges, 0, -1)));
  *place = t_add(t_mul(*place, tensor_wrapped_i(bins)), bin);
}

/* Divides counts by their sum and by the bins' volumes. */
static Tensor *density_of(Tensor *counts, int n, Tensor *const *edges) {
  int64_t sizes[MAX_DIM];
  counts = t_div(counts, t_sum_all(counts));
  for (int d = 0; d < n; d++) {
    for (int i = d; i < n; i++) sizes[i] = i == d ? -1 : 1;
    counts = t_div(counts, t_reshape(t_diff(edges[d], 1, -1, NULL, NULL), n - d, sizes + d));
  }
  return counts;
}

static Tensor *count_points(Tensor *points, int n, Tensor *const *edges, Tensor *weight,
                            bool density) {
  int64_t sizes[MAX_DIM], rows = points->sizes[0];
  for (int d = 0; d < n; d++) sizes[d] = edges[d]->numel - 1;
  int64_t cells = sizes_numel(n, sizes);
  if (cells < 0) return NULL;
  int32_t mark = pool_mark();
  Tensor *place = tensor_zeros(1, &rows, DT_I64), *inside = t_eq(place, tensor_wrapped_i(0));
  for (int d = 0; d < n; d++) {
    locate(t_select(points, 1, d), edges[d], &place, &inside);
    pool_keep(mark, 2, (Tensor *[]){place, inside});
  }
  if (!weight) weight = t_ones((Ints){1, &rows}, tensor_dtype(points));
  Tensor *found = tensor_zeros(1, &cells, tensor_dtype(points));
  found = t_index_add(found, 0, t_masked_select(place, inside), t_masked_select(weight, inside), 1);
  found = t_unsafe_view(found, n, sizes);
  return density ? density_of(found, n, edges) : found;
}

/* ------------------------------------------------------------ the ops */

static bool check_points(const Tensor *x, int n_bins, bool edges) {
  if (x->ndim < 2)
    return fail(ERR_RUNTIME, "torch.histogramdd: input tensor should have at least 2 dimensions"),
           false;
  int64_t n = x->sizes[x->ndim - 1];
  if (n_bins == n && n <= MAX_DIM) return true;
  if (n_bins == n)
    fail(ERR_RUNTIME, "tensors have at most %d dimensions, but got %lld", MAX_DIM, (Shown)n);
  else if (edges)
    fail(ERR_RUNTIME,
         "torch.histogramdd: expected %lld sequences of bin edges for a %lld-dimensional histogram "
         "but got %d",
         (Shown)n, (Shown)n, n_bins);
  else
    fail(ERR_RUNTIME,
         "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  return false;
}

static bool check_weight(const Tensor *x, const Tensor *weight) {
  if (!sizes_equal(weight->ndim, weight->sizes, x->ndim - 1, x->sizes))
    fail(ERR_RUNTIME,
         "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
         "input tensor excluding its innermost dimension, but got input with shape %s and weight "
         "with shape %s",
         shape_text(x), shape_text(weight));
  else if (weight->dtype != x->dtype)
    fail(ERR_RUNTIME,
         "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should "
         "have the same dtype, but got input(%s), and weight(%s)",
         lower(x), lower(weight));
  return !failed();
}

/* Writes the counts to out[0], and the edges of each dimension behind it. */
static bool histogram(Tensor *x, const Bins *bins, Floats range, Tensor *weight, bool density,
                      Tensor **out) {
  if (weight && !check_weight(x, weight)) return false;
  if (!dtype_check_wide_kernel("histogramdd", tensor_dtype(x))) return false;
  int n = (int)x->sizes[x->ndim - 1];
  if (range.n >= 0 && range.n != 2 * n)
    return fail(ERR_RUNTIME,
                "torch.histogramdd: for a %d-dimensional histogram range should have %d elements, "
                "but got %d",
                n, 2 * n, range.n),
           false;
  Tensor *points = t_reshape(t_detach(x), 2,
                             (const int64_t[]){sizes_numel(x->ndim - 1, x->sizes), n});
  for (int d = 0; d < n && !blocked(points); d++)
    out[1 + d] = bins[d].edges ? given_edges(points, bins[d].edges, d)
                               : even_edges(points, bins[d].count, range, d);
  if (blocked(points)) return false;
  out[0] = count_points(points, n, out + 1, weight ? t_flatten(t_detach(weight), 0, -1) : NULL,
                        density);
  return !failed();
}

void op_histogram(Call *c, Tensor *x, Bins bins, Floats range, Tensor *weight, bool density) {
  Tensor *out[2];
  if (blocked(x)) return;
  Tensor *column = t_reshape(x, 2, (const int64_t[]){-1, 1});
  Tensor *flat = weight ? t_flatten(weight, 0, -1) : NULL;
  if (!blocked(column) && histogram(column, &bins, range, flat, density, out))
    ret_tensors(c, 2, out);
}

static void grid(Call *c, Tensor *x, int n, const Bins *bins, Floats range, Tensor *weight,
                 bool density) {
  Tensor *out[1 + MAX_DIM];
  if (histogram(x, bins, range, weight, density, out)) ret_tensors(c, 1 + n, out);
}

/* histogramdd with one number of bins for all dimensions; _of has a number for each, _at has
 * edges. */
void op_histogramdd(Call *c, Tensor *x, int64_t bins, Floats range, Tensor *weight, bool density) {
  Bins each[MAX_DIM];
  if (blocked(x)) return;
  int n = (int)tensor_size(x, -1);
  if (n < 0 || !check_points(x, n, false)) return;
  for (int d = 0; d < n; d++) each[d] = (Bins){NULL, bins};
  grid(c, x, n, each, range, weight, density);
}

void op_histogramdd_of(Call *c, Tensor *x, Ints bins, Floats range, Tensor *weight, bool density) {
  Bins each[MAX_DIM];
  if (blocked(x) || !check_points(x, bins.n, false)) return;
  for (int d = 0; d < bins.n; d++) each[d] = (Bins){NULL, bins.v[d]};
  grid(c, x, bins.n, each, range, weight, density);
}

void op_histogramdd_at(Call *c, Tensor *x, Tensors edges, Floats range, Tensor *weight,
                       bool density) {
  Bins each[MAX_DIM];
  if (blocked(x) || !shape_check_tensors(edges) || !check_points(x, edges.n, true)) return;
  for (int d = 0; d < edges.n; d++) each[d] = (Bins){edges.v[d], 0};
  grid(c, x, edges.n, each, range, weight, density);
}

/* gradient: the slopes of sampled values by differences of neighbours.
 *
 * Inside, a slope is that of the parabola through three neighbours; at the ends that of the line
 * through two values, or of the parabola through three. */
#include "ground/memory.h"
#include "ops/op.h"
#include "ops/reduce/reduce.h"
#include "ops/view/shape.h"
#include "reduce_rows.h"

/* The gaps between neighbours along one dimension: all equal, or a tensor that broadcasts from that
 * dimension on. */
typedef struct {
  double each;
  Tensor *along; /* NULL: all equal */
} Gaps;

static Tensor *gap(const Gaps *g, int64_t start, int64_t n) {
  return g->along ? t_slice(g->along, 0, start, start + n, 1) : tensor_wrapped_f(g->each);
}

/* n triples of neighbours: their values f, and the gaps to the left and to the right of the middle
 * one. */
typedef struct {
  Tensor *f[3], *left, *right;
  Gaps gaps;
} Three;

static Three three_from(Tensor *x, int64_t dim, const Gaps *g, int64_t start, int64_t n) {
  Three t = {.gaps = *g};
  for (int k = 0; k < 3; k++) t.f[k] = t_narrow(x, dim, start + k, n);
  t.left = gap(g, start, n);
  t.right = gap(g, start + 1, n);
  return t;
}

/* The slope of the parabola through three neighbours at the first, second or third of them. */
static Tensor *parabola_slope(const Three *t, int at) {
  Tensor *first = t_div(t_sub(t->f[1], t->f[0]), t->left);
  Tensor *second = t_div(t_sub(t->f[2], t->f[1]), t->right);
  double each = t->gaps.each;
  Tensor *both = t->gaps.along ? t_add(t->left, t->right) : tensor_wrapped_f(each + each);
  Tensor *bend = t_div(t_sub(second, first), both);
  if (at == 0) return t_sub(first, t_mul(bend, t->left));
  return at == 1 ? t_add(first, t_mul(bend, t->left)) : t_add(second, t_mul(bend, t->right));
}

static Tensor *end_slope(Tensor *x, int64_t dim, const Gaps *g, bool last, int64_t edge_order) {
  int64_t n = x->sizes[dim], start = last ? n - edge_order - 1 : 0;
  if (edge_order == 2) {
    Three t = three_from(x, dim, g, start, 1);
    return parabola_slope(&t, last ? 2 : 0);
  }
  return t_div(t_sub(t_narrow(x, dim, start + 1, 1), t_narrow(x, dim, start, 1)), gap(g, start, 1));
}

static Tensor *inner_slopes(Tensor *x, int64_t dim, const Gaps *g) {
  int64_t n = x->sizes[dim] - 2;
  if (g->along) {
    Three t = three_from(x, dim, g, 0, n);
    return parabola_slope(&t, 1);
  }
  Tensor *rise = t_sub(t_narrow(x, dim, 2, n), t_narrow(x, dim, 0, n));
  return t_div(t_div(rise, tensor_wrapped_f(g->each)), tensor_wrapped_i(2));
}

static Tensor *slopes(Tensor *x, int64_t dim, const Gaps *g, int64_t edge_order) {
  Tensor *parts[3];
  parts[1] = inner_slopes(x, dim, g);
  parts[0] = end_slope(x, dim, g, false, edge_order);
  parts[2] = end_slope(x, dim, g, true, edge_order);
  return failed() ? NULL : t_cat((Tensors){3, parts}, dim);
}

/* The gaps between coordinates, as a tensor that broadcasts against x from dimension dim on. */
static Tensor *gaps_of(Tensor *places, const Tensor *x, int64_t dim) {
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < x->ndim - dim; i++) sizes[i] = i ? 1 : -1;
  return t_reshape_ints(t_diff(places, 1, -1, NULL, NULL), (Ints){(int32_t)(x->ndim - dim), sizes});
}

static bool check_count(const Spacing *s, int n, bool dims_given) {
  int count = s->each.n >= 0 ? s->each.n : s->places.n;
  if (count < 0 || count == n) return true;
  if (dims_given)
    fail(ERR_RUNTIME,
         "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
         "arguments to have the same length, but got a spacing argument of length %d and a dim "
         "argument of length %d.",
         count, n);
  else
    fail(ERR_RUNTIME,
         "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal "
         "to 'self.dim() = %d', since dim argument was not given, but got a list of length %d",
         n, count);
  return false;
}

static bool check_places(Tensors places) {
  if (places.n < 0 || !shape_check_tensors(places)) return !failed();
  for (int i = 0; i < places.n; i++)
    if (places.v[i]->ndim != 1)
      fail(ERR_RUNTIME,
           "torch.gradient expected each element of spacing to have one dimension, but got an "
           "element with %d dimensions!",
           places.v[i]->ndim);
  return !failed();
}

/* Wraps the dimensions; false with the error set for invalid, repeated or short ones. */
static bool wrap_dims(const Tensor *x, Ints dims, int64_t edge_order, int64_t *wrapped) {
  for (int i = 0; i < dims.n; i++)
    if ((wrapped[i] = dim_wrap(dims.v[i], x->ndim)) < 0) return false;
  DimMask mask;
  if (!reduce_dims_mask(x, (Ints){dims.n, wrapped}, &mask)) return false;
  for (int i = 0; i < dims.n && !failed(); i++)
    if (tensor_size(x, dims.v[i]) < edge_order + 1)
      fail(ERR_RUNTIME, "torch.gradient expected each dimension size to be at least edge_order+1");
  return !failed();
}

/* dims.n == -1: all */
void op_gradient(Call *c, Tensor *x, const Spacing *spacing, Ints dims, int64_t edge_order) {
  int64_t every[MAX_DIM];
  if (blocked(x)) return;
  if (x->dtype == DT_U8)
    return (void)fail(ERR_RUNTIME, "torch.gradient does not support uint8 input.");
  for (int i = 0; i < x->ndim; i++) every[i] = i;
  Ints of = dims.n < 0 ? (Ints){x->ndim, every} : dims;
  if (!check_count(spacing, of.n, dims.n >= 0)) return;
  if (edge_order != 1 && edge_order != 2)
    return (void)fail(ERR_RUNTIME, "torch.gradient only supports edge_order=1 and edge_order=2.");
  int64_t *wrapped = scratch_array(of.n + 1, sizeof *wrapped);
  Tensor **out = scratch_array(of.n + 1, sizeof *out);
  if (!wrapped || !out || !wrap_dims(x, of, edge_order, wrapped) || !check_places(spacing->places))
    return;
  for (int i = 0; i < of.n && !failed(); i++) {
    Gaps g = {spacing->each.n >= 0 ? spacing->each.v[i] : spacing->all, NULL};
    if (spacing->places.n >= 0) g.along = gaps_of(spacing->places.v[i], x, wrapped[i]);
    int32_t mark = pool_mark();
    out[i] = slopes(x, wrapped[i], &g, edge_order);
    pool_release(mark, out[i]);
  }
  ret_tensors(c, of.n, out);
}

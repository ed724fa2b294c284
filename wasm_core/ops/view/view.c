/* Views: the same storage under another geometry, and the gradients that undo it.
 *
 * A view computes sizes, strides and an offset, and record_view does the rest. The gradient of a
 * view that leaves elements out (select, slice, diagonal, unfold, as_strided) is a separate op,
 * which puts the incoming gradient into zeros. The gradient of that op is the view again. */
#include "ops/view/view.h"

#include <string.h>

#include "ground/memory.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "tensor/iter.h"
#include "view_rows.h"

/* ------------------------------------------------------------ recording geometry */

void num_list(Node *n, int at, int count, const int64_t *v) {
  num_i(n, at, count);
  for (int i = 0; i < count; i++) num_i(n, at + 1 + i, v[i]);
}

Ints num_list_at(const Node *n, int at) {
  return (Ints){(int32_t)n->numbers[at].i, (const int64_t *)(const void *)(n->numbers + at + 1)};
}

/* A node with x's sizes (a list), then some integers. */
static Node *view_node(const NodeType *type, Tensor *x, int n_rest, const int64_t *rest) {
  Node *n = node_of_view(type, 1 + x->ndim + n_rest, x);
  num_list(n, 0, x->ndim, x->sizes);
  for (int i = 0; i < n_rest; i++) num_i(n, 1 + x->ndim + i, rest[i]);
  return n;
}

/* Reads the numbers of view_node: the sizes, and the integers after them. */
static const int64_t *view_rest(const Node *n, Ints *sizes) {
  *sizes = num_list_at(n, 0);
  return sizes->v + sizes->n;
}

static Tensor *view_of(Tensor *x, int ndim, const int64_t *sizes, const int64_t *strides,
                       int64_t offset, Node *n) {
  Tensor *v = tensor_alias(x, ndim, sizes, strides, offset);
  if (v) return record_view(x, v, n, VIEW_PLAIN);
  node_drop(n);
  return NULL;
}

/* Sizes and strides under construction. */
typedef struct {
  int ndim;
  int64_t sizes[MAX_DIM + 1], strides[MAX_DIM + 1];
} Geometry;

static void geometry_of(const Tensor *x, Geometry *g) {
  g->ndim = x->ndim;
  memcpy(g->sizes, x->sizes, (size_t)x->ndim * sizeof *g->sizes);
  memcpy(g->strides, x->strides, (size_t)x->ndim * sizeof *g->strides);
}

static void remove_dim(Geometry *g, int64_t d) {
  g->ndim--;
  for (int64_t i = d; i < g->ndim; i++) {
    g->sizes[i] = g->sizes[i + 1];
    g->strides[i] = g->strides[i + 1];
  }
}

static void insert_dim(Geometry *g, int64_t d, int64_t size, int64_t stride) {
  for (int64_t i = g->ndim++; i > d; i--) {
    g->sizes[i] = g->sizes[i - 1];
    g->strides[i] = g->strides[i - 1];
  }
  g->sizes[d] = size;
  g->strides[d] = stride;
}

static Tensor *view_geometry(Tensor *x, const Geometry *g, int64_t offset, Node *n) {
  return view_of(x, g->ndim, g->sizes, g->strides, offset, n);
}

/* ------------------------------------------------------------ gradients of partial views */

#define ADD_LOOP(FN, T)                                                     \
  static void FN(char **p, const int64_t *st, int64_t n, const void *ctx) { \
    (void)ctx;                                                              \
    char *o = p[0];                                                         \
    const char *a = p[1];                                                   \
    for (int64_t i = 0; i < n; i++, o += st[0], a += st[1])                 \
      *(T *)(void *)o = (T)(*(T *)(void *)o + *(const T *)(const void *)a); \
  }
ADD_LOOP(add_f32, float)
ADD_LOOP(add_f64, double)
ADD_LOOP(add_i64, int64_t)
ADD_LOOP(add_c64, complex_f32)
ADD_LOOP(add_c128, complex_f64)

/* Adds src to dst, one element after the other: dst's elements may share memory. */
static bool accumulate(Tensor *dst, Tensor *src) {
  static Loop *const loops[DT_COUNT] = {[DT_F32] = add_f32,
                                        [DT_F64] = add_f64,
                                        [DT_I64] = add_i64,
                                        [DT_C64] = add_c64,
                                        [DT_C128] = add_c128};
  if (blocked(dst, src)) return false;
  if (src->flags & FLAGS_LAZY && !(src = t_resolve_neg(t_resolve_conj(src)))) return false;
  if (!loops[src->dtype] || dst->dtype != src->dtype) {
    fail(ERR_RUNTIME, "\"as_strided_backward\" not implemented for '%s'", legacy(src));
    return false;
  }
  iter_over(2, (Tensor *[]){dst, src}, loops[src->dtype], NULL);
  return true;
}

typedef Tensor *Part(Tensor *x, const int64_t *p);
static Tensor *part_select(Tensor *x, const int64_t *p) { return t_select(x, p[0], p[1]); }
static Tensor *part_slice(Tensor *x, const int64_t *p) {
  return t_slice(x, p[0], p[1], p[2], p[3]);
}
static Tensor *part_diagonal(Tensor *x, const int64_t *p) {
  return t_diagonal(x, p[0], p[1], p[2]);
}
static Tensor *part_unfold(Tensor *x, const int64_t *p) { return t_unfold(x, p[0], p[1], p[2]); }

/* Zeros of the given sizes with g in (or, where windows overlap, added to) one part of them. */
static Tensor *embed(Tensor *g, Ints sizes, Part *part, const int64_t *p, int n_p,
                     const NodeType *type, bool add) {
  IN_FLOAT(embed(g, sizes, part, p, n_p, type, add), g);
  if (blocked(g)) return NULL;
  Node *n = node_new(type, 0, n_p, g, NULL);
  for (int i = 0; i < n_p; i++) num_i(n, i, p[i]);
  Tensor *y = tensor_zeros(sizes.n, sizes.v, tensor_dtype(g));
  bool done = false;
  WITHOUT_GRAD_BLOCK {
    Tensor *at = y ? part(tensor_alias(y, y->ndim, y->sizes, y->strides, 0), p) : NULL;
    if (at && !tensor_same_shape(at, g)) done = !add && t_copy_(at, g, false);
    else done = add ? accumulate(at, g) : tensor_copy_data(at, g);
    if (!done && !failed())
      fail(ERR_RUNTIME, "The gradient of windows has shape %s, but they have shape %s",
           shape_text(g), shape_text(at));
  }
  return set_history(done ? y : NULL, n);
}

#define NUM(k) (n->numbers[k].i)
GRAD(SelectBackwardBackward0, "| dim:int index:int")
{ gi[0] = t_select(g[0], NUM(0), NUM(1)); }
GRAD(SliceBackwardBackward0, "| dim:int start:int end:int step:int")
{ gi[0] = t_slice(g[0], NUM(0), NUM(1), NUM(2), NUM(3)); }
GRAD(DiagonalBackwardBackward0, "| offset:int dim1:int dim2:int")
{ gi[0] = t_diagonal(g[0], NUM(0), NUM(1), NUM(2)); }
GRAD(UnfoldBackwardBackward0, "| dim:int size:int step:int")
{ gi[0] = t_unfold(g[0], NUM(0), NUM(1), NUM(2)); }

Tensor *t_select_backward(Tensor *g, Ints sizes, int64_t dim, int64_t index) {
  OP_ENTERED(t_select_backward, "select_backward", g, sizes, dim, index);
  return embed(g, sizes, part_select, (int64_t[]){dim, index}, 2, &SelectBackwardBackward0, false);
}

Tensor *t_slice_backward(Tensor *g, Ints sizes, int64_t dim, int64_t start, int64_t end,
                         int64_t step) {
  OP_ENTERED(t_slice_backward, "slice_backward", g, sizes, dim, start, end, step);
  return embed(g, sizes, part_slice, (int64_t[]){dim, start, end, step}, 4, &SliceBackwardBackward0,
               false);
}

Tensor *t_diagonal_backward(Tensor *g, Ints sizes, int64_t offset, int64_t d0, int64_t d1) {
  OP_ENTERED(t_diagonal_backward, "diagonal_backward", g, sizes, offset, d0, d1);
  return embed(g, sizes, part_diagonal, (int64_t[]){offset, d0, d1}, 3, &DiagonalBackwardBackward0,
               false);
}

Tensor *t_unfold_backward(Tensor *g, Ints sizes, int64_t dim, int64_t size, int64_t step) {
  OP_ENTERED(t_unfold_backward, "unfold_backward", g, sizes, dim, size, step);
  const DType d = g ? tensor_dtype(g) : DT_I64;
  if (!dtype_is_inexact(d) && d != DT_I64) /* windows that overlap are summed */
    return t_to(t_unfold_backward(t_to(g, DT_I64), sizes, dim, size, step), d);
  return embed(g, sizes, part_unfold, (int64_t[]){dim, size, step}, 3, &UnfoldBackwardBackward0,
               step < size);
}

/* ------------------------------------------------------------ parts: select, slice, narrow */

GRAD(SelectBackward0, "| self_sym_sizes:ints dim:int index:int")
{
  Ints sizes;
  const int64_t *p = view_rest(n, &sizes);
  gi[0] = t_select_backward(g[0], sizes, p[0], p[1]);
}

Tensor *t_select(Tensor *x, int64_t dim, int64_t index) {
  VIEW_ENTERED(t_select, "select", x, dim, index);
  if (blocked(x)) return NULL;
  if (x->ndim == 0) return fail(ERR_INDEX, "select() cannot be applied to a 0-dim tensor.");
  if ((dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  int64_t size = x->sizes[dim];
  if (index < -size || index >= size)
    return fail(ERR_INDEX,
                "select(): index %lld out of range for tensor of size %s at dimension %lld",
                (Shown)index, shape_text(x), (Shown)dim);
  if (index < 0) index += size;
  Node *n = view_node(&SelectBackward0, x, 2, (int64_t[]){dim, index});
  Geometry g;
  geometry_of(x, &g);
  remove_dim(&g, dim);
  return view_geometry(x, &g, x->offset + index * x->strides[dim], n);
}

GRAD(SliceBackward0, "| self_sym_sizes:ints dim:int start:int end:int step:int")
{
  Ints sizes;
  const int64_t *p = view_rest(n, &sizes);
  gi[0] = t_slice_backward(g[0], sizes, p[0], p[1], p[2], p[3]);
}

static int64_t clamp_index(int64_t i, int64_t low, int64_t size) {
  if (i < 0) i += size;
  return i < low ? low : i > size ? size : i;
}

Tensor *t_slice(Tensor *x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  VIEW_ENTERED(t_slice, "slice", x, dim, start, end, step);
  if (blocked(x)) return NULL;
  if (x->ndim == 0) return fail(ERR_INDEX, "slice() cannot be applied to a 0-dim tensor.");
  if ((dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  if (step <= 0) return fail(ERR_RUNTIME, "slice step must be positive");
  int64_t size = x->sizes[dim];
  start = clamp_index(start, 0, size);
  end = end == INT64_MAX ? size : clamp_index(end, start, size);
  Node *n = view_node(&SliceBackward0, x, 4, (int64_t[]){dim, start, end, step});
  Geometry g;
  geometry_of(x, &g);
  g.sizes[dim] = (end - start) / step + ((end - start) % step != 0);
  g.strides[dim] *= step;
  return view_geometry(x, &g, x->offset + start * x->strides[dim], n);
}

Tensor *t_narrow(Tensor *x, int64_t dim, int64_t start, int64_t length) {
  ANY_ENTERED(t_narrow, "narrow", x, dim, start, length);
  if (blocked(x)) return NULL;
  if (x->ndim == 0) return fail(ERR_RUNTIME, "narrow() cannot be applied to a 0-dim tensor.");
  if (length < 0) return fail(ERR_RUNTIME, "narrow(): length must be non-negative.");
  if ((dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  int64_t size = x->sizes[dim];
  if (start < -size || start > size)
    return fail(ERR_INDEX,
                "start out of range (expected to be in range of [%lld, %lld], but got %lld)",
                (Shown)-size, (Shown)size, (Shown)start);
  if (start < 0) start += size;
  if (length > size - start)
    return fail(ERR_RUNTIME, "start (%lld) + length (%lld) exceeds dimension size (%lld).",
                (Shown)start, (Shown)length, (Shown)size);
  return t_slice(x, dim, start, start + length, 1);
}

/* ------------------------------------------------------------ orders of dimensions */

GRAD(PermuteBackward0, "| dims:ints")
{
  Ints dims = num_list_at(n, 0);
  int64_t inverse[MAX_DIM];
  for (int i = 0; i < dims.n; i++) inverse[dims.v[i]] = i;
  gi[0] = t_permute(g[0], (Ints){dims.n, inverse});
}

Tensor *t_permute(Tensor *x, Ints dims) {
  VIEW_ENTERED(t_permute, "permute", x, dims);
  if (blocked(x)) return NULL;
  if (dims.n != x->ndim)
    return fail(ERR_RUNTIME,
                "permute(sparse_coo): number of dimensions in the tensor input does not match the "
                "length of the desired ordering of dimensions i.e. input.dim() = %d is not equal "
                "to len(dims) = %d",
                x->ndim, dims.n);
  int64_t order[MAX_DIM];
  uint64_t seen = 0;
  Geometry g;
  g.ndim = x->ndim;
  for (int i = 0; i < dims.n; i++) {
    if ((order[i] = dim_wrap(dims.v[i], x->ndim)) < 0) return NULL;
    if (seen >> order[i] & 1)
      return fail(ERR_RUNTIME, "permute(): duplicate dims are not allowed.");
    seen |= (uint64_t)1 << order[i];
    g.sizes[i] = x->sizes[order[i]];
    g.strides[i] = x->strides[order[i]];
  }
  Node *n = node_of_view(&PermuteBackward0, 1 + dims.n, x);
  num_list(n, 0, dims.n, order);
  return view_geometry(x, &g, x->offset, n);
}

static Tensor *exchange_dims(Tensor *x, int64_t d0, int64_t d1, Node *n) {
  Geometry g;
  geometry_of(x, &g);
  if (x->ndim) {
    g.sizes[d0] = x->sizes[d1];
    g.sizes[d1] = x->sizes[d0];
    g.strides[d0] = x->strides[d1];
    g.strides[d1] = x->strides[d0];
  }
  return view_geometry(x, &g, x->offset, n);
}

GRAD(TransposeBackward0, "| dim0:int dim1:int")
{ gi[0] = t_transpose(g[0], NUM(0), NUM(1)); }
GRAD(TBackward0, "")
{ gi[0] = t_t2(g[0]); }

Tensor *t_transpose(Tensor *x, int64_t d0, int64_t d1) {
  VIEW_ENTERED(t_transpose, "transpose", x, d0, d1);
  if (blocked(x) || (d0 = dim_wrap(d0, x->ndim)) < 0 || (d1 = dim_wrap(d1, x->ndim)) < 0)
    return NULL;
  Node *n = node_of_view(&TransposeBackward0, 2, x);
  num_i(n, 0, d0);
  num_i(n, 1, d1);
  return exchange_dims(x, d0, d1, n);
}

Tensor *t_t(Tensor *x) {
  VIEW_ENTERED(t_t, "t", x);
  if (blocked(x) || x->ndim < 2) return blocked(x) ? NULL : x;
  return x->ndim == 2 ? exchange_dims(x, 0, 1, node_of_view(&TBackward0, 0, x))
                      : t_transpose(x, -2, -1);
}

Tensor *t_t2(Tensor *x) {
  VIEW_ENTERED(t_t2, "t", x);
  if (blocked(x)) return NULL;
  if (x->ndim > 2)
    return fail(ERR_RUNTIME, "t() expects a tensor with <= 2 dimensions, but self is %dD", x->ndim);
  return exchange_dims(x, 0, x->ndim == 2, node_of_view(&TBackward0, 0, x));
}

/* ------------------------------------------------------------ expand */

GRAD(ExpandBackward0, "| self_sym_sizes:ints")
{
  Ints sizes = num_list_at(n, 0);
  gi[0] = t_sum_to(g[0], sizes.n, sizes.v);
}

/* Computes the size and stride of the target's dimension i; false with PyTorch's error. */
static bool expand_dim(const Tensor *x, int ndim, const int64_t *sizes, int i, Geometry *g) {
  int own = i - (ndim - x->ndim);
  int64_t want = sizes[i], have = own >= 0 ? x->sizes[own] : 1;
  if (want == -1) {
    want = have;
    if (own < 0) {
      fail(ERR_RUNTIME,
           "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing "
           "dimension %d",
           i);
      return false;
    }
  }
  if (have != 1 && want != have) {
    fail(ERR_RUNTIME,
         "The expanded size of the tensor (%lld) must match the existing size (%lld) at "
         "non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
         (Shown)want, (Shown)have, i, sizes_text(ndim, sizes), shape_text(x));
    return false;
  }
  if (want < 0) return fail(ERR_RUNTIME, "numel: integer multiplication overflow"), false;
  g->sizes[i] = want;
  if (want != have || x->ndim == 0) g->strides[i] = 0;
  else g->strides[i] = own >= 0 ? x->strides[own] : g->sizes[i + 1] * g->strides[i + 1];
  return true;
}

Tensor *t_expand(Tensor *x, int ndim, const int64_t *sizes) {
  VIEW_ENTERED(t_expand, "expand", x, ndim, sizes);
  if (blocked(x)) return NULL;
  if (ndim < x->ndim)
    return fail(ERR_RUNTIME,
                "expand(torch.%sTensor{%s}, size=%s): the number of sizes provided (%d) must be "
                "greater or equal to the number of dimensions in the tensor (%d)",
                legacy(x), shape_text(x), sizes_text(ndim, sizes), ndim, x->ndim);
  if (ndim > MAX_DIM)
    return fail(ERR_RUNTIME, "tensors have at most %d dimensions, but got %d", MAX_DIM, ndim);
  Geometry g;
  g.ndim = ndim;
  for (int i = ndim - 1; i >= 0; i--)
    if (!expand_dim(x, ndim, sizes, i, &g)) return NULL;
  return view_geometry(x, &g, x->offset, view_node(&ExpandBackward0, x, 0, NULL));
}

/* ------------------------------------------------------------ view, reshape */

GRAD(ViewBackward0, "| self_sym_sizes:ints")
{
  Ints sizes = num_list_at(n, 0);
  gi[0] = t_reshape(g[0], sizes.n, sizes.v);
}
static const NodeType UnsafeViewBackward0 = {
    "UnsafeViewBackward0", grad_ViewBackward0, "| self_sym_sizes:ints", false, NULL, NULL};
static const NodeType ReshapeAliasBackward0 = {
    "ReshapeAliasBackward0", grad_ViewBackward0, "| self_sym_sizes:ints", false, NULL, NULL};
GRAD(AliasBackward0, "")
{ gi[0] = g[0]; }

Tensor *t_alias(Tensor *x) {
  VIEW_ENTERED(t_alias, "alias", x);
  return blocked(x) ? NULL
                    : view_of(x, x->ndim, x->sizes, x->strides, x->offset,
                              node_of_view(&AliasBackward0, 0, x));
}

bool view_infer_size(int ndim, const int64_t *sizes, int64_t numel, int64_t *out) {
  int64_t known = 1;
  int unknown = -1;
  if (ndim > MAX_DIM)
    return fail(ERR_RUNTIME, "tensors have at most %d dimensions, but got %d", MAX_DIM, ndim),
           false;
  for (int i = 0; i < ndim; i++) {
    out[i] = sizes[i];
    if (sizes[i] == -1) {
      if (unknown >= 0) return fail(ERR_RUNTIME, "only one dimension can be inferred"), false;
      unknown = i;
    } else if (sizes[i] < 0) {
      return fail(ERR_RUNTIME, "invalid shape dimension %lld at index %d of shape %s",
                  (Shown)sizes[i], i, sizes_text(ndim, sizes)),
             false;
    } else if (__builtin_mul_overflow(known, sizes[i], &known)) {
      return fail(ERR_RUNTIME, "numel: integer multiplication overflow"), false;
    }
  }
  if (unknown < 0 ? known == numel : known > 0 ? numel % known == 0 : numel == 0) {
    if (unknown >= 0 && known == 0)
      return fail(ERR_RUNTIME,
                  "cannot reshape tensor of 0 elements into shape %s because the unspecified "
                  "dimension size -1 can be any value and is ambiguous",
                  sizes_text(ndim, sizes)),
             false;
    if (unknown >= 0) out[unknown] = numel / known;
    return true;
  }
  fail(ERR_RUNTIME, "shape '%s' is invalid for input of size %lld", sizes_text(ndim, sizes),
       (Shown)numel);
  return false;
}

/* Strides under which x's elements have the new sizes; false if a copy is needed. Runs of old
 * dimensions that are contiguous with each other are matched, from the last, with runs of new
 * ones. */
static bool viewed_strides(const Tensor *x, int ndim, const int64_t *sizes, int64_t *strides) {
  if (x->numel == 0) {
    if (sizes_equal(x->ndim, x->sizes, ndim, sizes))
      memcpy(strides, x->strides, (size_t)ndim * sizeof *strides);
    else sizes_contiguous_strides(ndim, sizes, strides);
    return true;
  }
  int to = ndim - 1;
  if (x->ndim == 0) {
    for (; to >= 0; to--) strides[to] = 1;
    return true;
  }
  int64_t base = x->strides[x->ndim - 1], run = 1, taken = 1;
  for (int from = x->ndim - 1; from >= 0; from--) {
    run *= x->sizes[from];
    if (from > 0 && (x->sizes[from - 1] == 1 || x->strides[from - 1] == run * base)) continue;
    for (; to >= 0 && (taken < run || sizes[to] == 1); to--) {
      strides[to] = taken * base;
      taken *= sizes[to];
    }
    if (taken != run) return false;
    if (from > 0) base = x->strides[from - 1];
    run = taken = 1;
  }
  return to == -1;
}

static Tensor *view_as_type(Tensor *x, int ndim, const int64_t *sizes, const NodeType *type,
                            bool *fits) {
  int64_t strides[MAX_DIM];
  *fits = viewed_strides(x, ndim, sizes, strides);
  return *fits ? view_of(x, ndim, sizes, strides, x->offset, view_node(type, x, 0, NULL)) : NULL;
}

Tensor *t_view(Tensor *x, int ndim, const int64_t *sizes) {
  VIEW_ENTERED(t_view, "view", x, ndim, sizes);
  int64_t shape[MAX_DIM];
  bool fits;
  if (blocked(x) || !view_infer_size(ndim, sizes, x->numel, shape)) return NULL;
  Tensor *y = view_as_type(x, ndim, shape, &ViewBackward0, &fits);
  if (!fits)
    fail(ERR_RUNTIME,
         "view size is not compatible with input tensor's size and stride (at least one dimension "
         "spans across two contiguous subspaces). Use .reshape(...) instead.");
  return y;
}

/* A view without a base, for a fresh x that nobody else sees. */
Tensor *t_unsafe_view(Tensor *x, int ndim, const int64_t *sizes) {
  VIEW_ENTERED(t_unsafe_view, "_unsafe_view", x, ndim, sizes);
  int64_t strides[MAX_DIM];
  if (blocked(x)) return NULL;
  if (!viewed_strides(x, ndim, sizes, strides)) {
    sizes_contiguous_strides(ndim, sizes, strides);
    x = t_clone_format(x, FORMAT_CONTIGUOUS);
    if (!x) return NULL;
  }
  Node *n = view_node(&UnsafeViewBackward0, x, 0, NULL);
  return set_history(tensor_alias(x, ndim, sizes, strides, x->offset), n);
}

Tensor *t_reshape(Tensor *x, int ndim, const int64_t *sizes) {
  VIEW_ENTERED(t_reshape, "reshape", x, ndim, sizes);
  int64_t shape[MAX_DIM];
  bool fits;
  if (blocked(x) || !view_infer_size(ndim, sizes, x->numel, shape)) return NULL;
  Tensor *y = view_as_type(
      x, ndim, shape, tensor_is_contiguous(x) ? &ViewBackward0 : &ReshapeAliasBackward0, &fits);
  return fits ? y : t_unsafe_view(t_clone_format(x, FORMAT_CONTIGUOUS), ndim, shape);
}

Tensor *t_view_as(Tensor *x, Tensor *like) {
  VIEW_ENTERED(t_view_as, "view_as", x, like);
  return blocked(x) || !like ? NULL : t_view(x, like->ndim, like->sizes);
}

Tensor *t_flatten(Tensor *x, int64_t from, int64_t to) {
  VIEW_ENTERED(t_flatten, "flatten", x, from, to);
  if (blocked(x) || (from = dim_wrap(from, x->ndim)) < 0 || (to = dim_wrap(to, x->ndim)) < 0)
    return NULL;
  if (from > to)
    return fail(ERR_RUNTIME, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (x->ndim == 0) return t_reshape(x, 1, (int64_t[]){1});
  if (from == to) return x;
  int64_t sizes[MAX_DIM];
  int n = 0;
  for (int i = 0; i < x->ndim; i++) {
    if (i > from && i <= to) sizes[n - 1] *= x->sizes[i];
    else sizes[n++] = x->sizes[i];
  }
  return t_reshape(x, n, sizes);
}

/* ------------------------------------------------------------ dimensions of size one */

static void unsqueeze_back(const Node *n, Tensor **g, Tensor **gi) {
  Ints sizes = num_list_at(n, 0);
  gi[0] = g[0]->ndim == sizes.n ? g[0] : t_reshape(g[0], sizes.n, sizes.v);
}
GRAD(SqueezeBackward0, "| self_sym_sizes:ints")
{ unsqueeze_back(n, g, gi); }
GRAD(SqueezeBackward1, "| self_sym_sizes:ints dim:int")
{ unsqueeze_back(n, g, gi); }
GRAD(SqueezeBackward2, "| self_sym_sizes:ints dim:ints")
{ unsqueeze_back(n, g, gi); }

/* x without the marked dimensions that have size one. */
static Tensor *squeeze_marked(Tensor *x, const bool *marked, Node *n) {
  Geometry g;
  g.ndim = 0;
  for (int i = 0; i < x->ndim; i++)
    if (!(marked[i] && x->sizes[i] == 1)) insert_dim(&g, g.ndim, x->sizes[i], x->strides[i]);
  return view_geometry(x, &g, x->offset, n);
}

Tensor *t_squeeze_dim(Tensor *x, int64_t dim) {
  VIEW_ENTERED(t_squeeze_dim, "squeeze", x, dim);
  bool marked[MAX_DIM] = {false};
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  marked[dim] = true;
  return squeeze_marked(x, marked, view_node(&SqueezeBackward1, x, 1, &dim));
}

Tensor *t_squeeze(Tensor *x, Ints dims) {
  VIEW_ENTERED(t_squeeze, "squeeze", x, dims);
  bool marked[MAX_DIM];
  if (blocked(x)) return NULL;
  for (int i = 0; i < x->ndim; i++) marked[i] = dims.n < 0;
  if (dims.n < 0) return squeeze_marked(x, marked, view_node(&SqueezeBackward0, x, 0, NULL));
  if (!view_dims_mark(x->ndim, dims, marked)) return NULL;
  int64_t rest[MAX_DIM + 1] = {dims.n};
  for (int i = 0; i < dims.n; i++) rest[i + 1] = dims.v[i];
  return squeeze_marked(x, marked, view_node(&SqueezeBackward2, x, 1 + dims.n, rest));
}

bool view_dims_mark(int ndim, Ints dims, bool *marked) {
  for (int i = 0; i < ndim; i++) marked[i] = false;
  for (int i = 0; i < dims.n; i++) {
    int64_t d = dim_wrap(dims.v[i], ndim);
    if (d < 0) return false;
    if (ndim && marked[d]) {
      fail(ERR_RUNTIME, "dim %lld appears multiple times in the list of dims", (Shown)d);
      return false;
    }
    if (ndim) marked[d] = true;
  }
  return true;
}

GRAD(UnsqueezeBackward0, "| dim:int")
{ gi[0] = t_squeeze_dim(g[0], NUM(0)); }

Tensor *t_unsqueeze(Tensor *x, int64_t dim) {
  VIEW_ENTERED(t_unsqueeze, "unsqueeze", x, dim);
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim + 1)) < 0) return NULL;
  if (x->ndim == MAX_DIM)
    return fail(ERR_RUNTIME, "tensors have at most %d dimensions, but got %d", MAX_DIM,
                MAX_DIM + 1);
  Node *n = node_of_view(&UnsqueezeBackward0, 1, x);
  num_i(n, 0, dim);
  Geometry g;
  geometry_of(x, &g);
  insert_dim(&g, dim, 1, dim < x->ndim ? x->sizes[dim] * x->strides[dim] : 1);
  return view_geometry(x, &g, x->offset, n);
}

/* ------------------------------------------------------------ diagonal, unfold */

GRAD(DiagonalBackward0, "| self_sym_sizes:ints offset:int dim1:int dim2:int")
{
  Ints sizes;
  const int64_t *p = view_rest(n, &sizes);
  gi[0] = t_diagonal_backward(g[0], sizes, p[0], p[1], p[2]);
}

Tensor *t_diagonal(Tensor *x, int64_t offset, int64_t dim0, int64_t dim1) {
  VIEW_ENTERED(t_diagonal, "diagonal", x, offset, dim0, dim1);
  if (blocked(x)) return NULL;
  int64_t d0 = dim_wrap(dim0, x->ndim), d1 = d0 < 0 ? -1 : dim_wrap(dim1, x->ndim);
  if (d1 < 0) return NULL;
  if (d0 == d1)
    return fail(ERR_RUNTIME, "diagonal dimensions cannot be identical %lld, %lld", (Shown)dim0,
                (Shown)dim1);
  Node *n = view_node(&DiagonalBackward0, x, 3, (int64_t[]){offset, d0, d1});
  int64_t rows = x->sizes[d0] + (offset < 0 ? offset : 0),
          cols = x->sizes[d1] - (offset > 0 ? offset : 0);
  int64_t length = rows < cols ? rows : cols, at = x->offset;
  if (length > 0) at += offset < 0 ? -offset * x->strides[d0] : offset * x->strides[d1];
  Geometry g;
  geometry_of(x, &g);
  int64_t stride = x->strides[d0] + x->strides[d1];
  remove_dim(&g, d0 > d1 ? d0 : d1);
  remove_dim(&g, d0 > d1 ? d1 : d0);
  insert_dim(&g, g.ndim, length > 0 ? length : 0, stride);
  return view_geometry(x, &g, at, n);
}

GRAD(UnfoldBackward0, "| self_sym_sizes:ints dimension:int size:int step:int")
{
  Ints sizes;
  const int64_t *p = view_rest(n, &sizes);
  gi[0] = t_unfold_backward(g[0], sizes, p[0], p[1], p[2]);
}

Tensor *t_unfold(Tensor *x, int64_t dim, int64_t size, int64_t step) {
  VIEW_ENTERED(t_unfold, "unfold", x, dim, size, step);
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  int64_t have = x->ndim ? x->sizes[dim] : 1, stride = x->ndim ? x->strides[dim] : 1;
  if (size < 0) return fail(ERR_RUNTIME, "size is %lld but must be >= 0", (Shown)size);
  if (size > have)
    return fail(ERR_RUNTIME, "maximum size for tensor at dimension %lld is %lld but size is %lld",
                (Shown)dim, (Shown)have, (Shown)size);
  if (step <= 0) return fail(ERR_RUNTIME, "step is %lld but must be > 0", (Shown)step);
  Node *n = view_node(&UnfoldBackward0, x, 3, (int64_t[]){dim, size, step});
  Geometry g;
  geometry_of(x, &g);
  if (x->ndim) {
    g.sizes[dim] = (have - size) / step + 1;
    g.strides[dim] = step * stride;
  }
  insert_dim(&g, g.ndim, size, stride);
  return view_geometry(x, &g, x->offset, n);
}

/* ------------------------------------------------------------ as_strided */

/* A layout: the places of a tensor's elements in its storage. A node's numbers hold it as two lists
 * and a number. */
typedef struct {
  Ints sizes, strides;
  int64_t offset;
} Strided;

static int layout_length(int ndim) { return 3 + 2 * ndim; }

static int layout_write(Node *n, int at, const Strided *l) {
  num_list(n, at, l->sizes.n, l->sizes.v);
  num_list(n, at + 1 + l->sizes.n, l->strides.n, l->strides.v);
  num_i(n, at + 2 + 2 * l->sizes.n, l->offset);
  return at + layout_length(l->sizes.n);
}

static int layout_read(const Node *n, int at, Strided *l) {
  l->sizes = num_list_at(n, at);
  l->strides = num_list_at(n, at + 1 + l->sizes.n);
  l->offset = NUM(at + 2 + 2 * l->sizes.n);
  return at + layout_length(l->sizes.n);
}

static Strided layout_of(const Tensor *t) {
  return (Strided){{t->ndim, t->sizes}, {t->ndim, t->strides}, t->offset};
}

/* One past the last element; the first ones of layouts with negative strides cannot occur. */
static int64_t layout_end(const Strided *l) {
  int64_t end = l->offset + 1;
  for (int i = 0; i < l->sizes.n; i++) {
    if (l->sizes.v[i] == 0) return l->offset;
    end += (l->sizes.v[i] - 1) * l->strides.v[i];
  }
  return end;
}

static Tensor *laid_out(Tensor *flat, const Strided *l, int64_t base) {
  return tensor_alias(flat, l->sizes.n, l->sizes.v, l->strides.v, l->offset - base);
}

/* Divides each element of the storage by the number of its occurrences in a layout, if that is
 * above one. */
static bool divide_by_counts(Tensor *flat, const Strided *counted, int64_t base) {
  Tensor *counts = tensor_zeros(1, flat->sizes, tensor_dtype(flat));
  Tensor *one = tensor_number(1, tensor_dtype(flat));
  if (!counts || !one) return false;
  if (tensor_absent(flat)) return true;
  int64_t strides[MAX_DIM] = {0};
  Tensor *ones = tensor_alias(one, counted->sizes.n, counted->sizes.v, strides, 0);
  if (!accumulate(laid_out(counts, counted, base), ones)) return false;
  DISPATCH_FLOAT(tensor_dtype(flat), {
    T *v = (T *)(void *)tensor_data(flat);
    const T *k = (const T *)(const void *)tensor_data(counts);
    for (int64_t i = 0; i < flat->numel; i++)
      if (k[i] > 1) v[i] = v[i] / k[i];
  })
  return true;
}

static Tensor *restride(Tensor *g, const Strided *from, const Strided *to, const Strided *counted,
                        bool share);

/* Numbers: the two layouts, whether the first is the counted one, and whether counting is
 * needed. */
GRAD(AsStridedBackwardBackward0, "| ")
{
  Strided from, to;
  int at = layout_read(n, layout_read(n, 0, &from), &to);
  gi[0] = restride(g[0], &to, &from, NUM(at) ? &from : &to, NUM(at + 1));
}

/* Adds g into a storage with layout `from`, then reads the storage with layout `to`. If elements of
 * the layout `counted` share memory (`share`), the sum is divided among them. The map is linear;
 * its adjoint exchanges `from` and `to`. */
static Tensor *restride(Tensor *g, const Strided *from, const Strided *to, const Strided *counted,
                        bool share) {
  IN_FLOAT(restride(g, from, to, counted, share), g);
  if (blocked(g)) return NULL;
  int at = layout_length(from->sizes.n) + layout_length(to->sizes.n);
  Node *n = node_new(&AsStridedBackwardBackward0, 0, at + 2, g, NULL);
  layout_write(n, layout_write(n, 0, from), to);
  num_i(n, at, counted == from);
  num_i(n, at + 1, share);
  int64_t base = from->offset < to->offset ? from->offset : to->offset;
  int64_t a = layout_end(from), b = layout_end(to), length = (a > b ? a : b) - base;
  Tensor *flat = tensor_zeros(1, &length, tensor_dtype(g)), *y = NULL;
  if (flat && accumulate(laid_out(flat, from, base), g) &&
      (!share || divide_by_counts(flat, counted, base))) {
    y = tensor_empty(to->sizes.n, to->sizes.v, tensor_dtype(g));
    if (!tensor_copy_data(y, laid_out(flat, to, base))) y = NULL;
  }
  return set_history(y, n);
}

/* Numbers: the layout of the view, that of self, whether elements of self share memory. */
GRAD(AsStridedBackward0,
     "| size:ints stride:ints -:int -:ints -:ints -:int -:int storage_offset:natural?")
{
  Strided out, in;
  int at = layout_read(n, layout_read(n, 0, &out), &in);
  gi[0] = restride(g[0], &out, &in, &in, NUM(at));
}

Tensor *t_spread_strided(Tensor *g, Ints sizes, Ints strides, int64_t offset, Ints base_sizes,
                         Ints base_strides) {
  Strided from = {sizes, strides, offset}, to = {base_sizes, base_strides, 0};
  return restride(g, &from, &to, &to, false);
}

bool view_shares_elements(const Tensor *t) {
  if (tensor_is_dense(t) || t->numel == 0) return false;
  /* Sorted by stride, each dimension must step over all that the smaller ones reach. */
  int order[MAX_DIM], n = 0;
  for (int i = 0; i < t->ndim; i++) {
    if (t->sizes[i] == 1) continue;
    int at = n++;
    for (; at > 0 && t->strides[order[at - 1]] > t->strides[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t reached = 0;
  for (int i = 0; i < n; i++) {
    if (t->strides[order[i]] <= reached) return true;
    reached += (t->sizes[order[i]] - 1) * t->strides[order[i]];
  }
  return false;
}

static bool check_strided(const Tensor *x, const Strided *l) {
  if (l->sizes.n != l->strides.n)
    return fail(ERR_RUNTIME, "mismatch in length of strides and shape"), false;
  for (int i = 0; i < l->strides.n; i++)
    if (l->strides.v[i] < 0)
      return fail(ERR_RUNTIME,
                  "as_strided: Negative strides are not supported at the moment, got strides: %s",
                  sizes_text(l->strides.n, l->strides.v)),
             false;
  int64_t need = storage_need(l->sizes.n, l->sizes.v, l->strides.v, l->offset, tensor_dtype(x));
  if (need <= x->storage->bytes->n_bytes) return need >= 0;
  fail(ERR_RUNTIME,
       "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %lld requiring a "
       "storage size of %lld are out of bounds for storage of size %lld",
       sizes_text(l->sizes.n, l->sizes.v), sizes_text(l->strides.n, l->strides.v), (Shown)l->offset,
       (Shown)dtype_bytes(tensor_dtype(x)), (Shown)need, (Shown)x->storage->bytes->n_bytes);
  return false;
}

Tensor *t_as_strided_ints(Tensor *x, Ints sizes, Ints strides, int64_t offset) {
  VIEW_ENTERED(t_as_strided_ints, "as_strided", x, sizes, strides, offset);
  if (blocked(x)) return NULL;
  Strided in = layout_of(x), out = {sizes, strides, offset == -1 ? x->offset : offset};
  if (!check_strided(x, &out)) return NULL;
  int at = layout_length(sizes.n) + layout_length(x->ndim);
  Node *n = node_of_view(&AsStridedBackward0, at + 2, x);
  num_i(n, at + 1, offset);
  layout_write(n, layout_write(n, 0, &out), &in);
  if (n) num_i(n, at, view_shares_elements(x));
  return view_of(x, sizes.n, sizes.v, strides.v, out.offset, n);
}

Tensor *t_as_strided_given(Tensor *x, Ints sizes, Ints strides, bool given, int64_t offset) {
  VIEW_ENTERED(t_as_strided_given, "as_strided", x, sizes, strides, given, offset);
  if (given && offset < 0)
    return fail(ERR_RUNTIME, "Tensor: invalid storage offset %lld", (Shown)offset);
  return t_as_strided_ints(x, sizes, strides, given ? offset : -1);
}

Tensor *t_as_strided(Tensor *x, int ndim, const int64_t *sizes, const int64_t *strides,
                     int64_t offset) {
  VIEW_ENTERED(t_as_strided, "as_strided", x, ndim, sizes, strides, offset);
  return t_as_strided_ints(x, (Ints){ndim, sizes}, (Ints){ndim, strides}, offset);
}

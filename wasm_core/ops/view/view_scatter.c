/* A copy of x with src where a view of it lies: select_scatter, slice_scatter, and so on.
 *
 * Each op writes to a view of a fresh copy. So the gradient of src is the same view of g, and that
 * of x is g with zeros there. */
#include "ops/index/index.h"
#include "ops/view/copy.h"
#include "ops/view/view.h"
#include "tape/forward.h"
#include "view_rows.h"

typedef Tensor *Window(Tensor *y, const void *p);

/* Writes src to the window of a fresh y, whose views nobody sees. */
static Tensor *write_window(Tensor *y, Tensor *src, Window *window, const void *p, Node *n) {
  Tensor *view = WITHOUT_GRAD(
      y ? window(tensor_alias(y, y->ndim, y->sizes, y->strides, y->offset), p) : NULL);
  if (view && !tensor_same_shape(view, src))
    view = fail(
        ERR_RUNTIME,
        "expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
        shape_text(src), shape_text(view));
  return set_history(tensor_copy_data(view, src) ? y : NULL, n);
}

/* Zeros of the window's shape, which is a list from number k on. */
static Tensor *window_zeros(Node *n, int k, const Tensor *g) {
  return blocked(g) ? NULL : index_zeros(n, k, tensor_dtype(g));
}

static Node *window_node(const NodeType *type, Tensor *x, Tensor *src, int n_p, const int64_t *p) {
  Node *n = node_new(type, 0, n_p + 1 + src->ndim, x, src, NULL);
  for (int i = 0; i < n_p; i++) num_i(n, i, p[i]);
  if (n) num_list(n, n_p, src->ndim, src->sizes);
  return n;
}

#define NUM(k) (n->numbers[k].i)

static Tensor *select_window(Tensor *y, const void *p) {
  const int64_t *k = p;
  return t_select(y, k[0], k[1]);
}

GRAD(SelectScatterBackward0, "| dim:int index:int -:ints")
{
  if (needs(n, 0)) gi[0] = t_select_scatter(g[0], window_zeros(n, 2, g[0]), NUM(0), NUM(1));
  if (needs(n, 1)) gi[1] = t_select(g[0], NUM(0), NUM(1));
}

Tensor *t_select_scatter(Tensor *x, Tensor *src, int64_t dim, int64_t index) {
  OP_ENTERED(t_select_scatter, "select_scatter", x, src, dim, index);
  if (blocked(x, src)) return NULL;
  int64_t p[2] = {dim, index};
  return write_window(index_clone(x), src, select_window, p,
                      window_node(&SelectScatterBackward0, x, src, 2, p));
}

static Tensor *slice_window(Tensor *y, const void *p) {
  const int64_t *k = p;
  return t_slice(y, k[0], k[1], k[2], k[3]);
}

GRAD(SliceScatterBackward0, "| dim:int start:int? end:int? step:int -:ints")
{
  if (needs(n, 0))
    gi[0] = t_slice_scatter(g[0], window_zeros(n, 4, g[0]), NUM(0), NUM(1), NUM(2), NUM(3));
  if (needs(n, 1)) gi[1] = t_slice(g[0], NUM(0), NUM(1), NUM(2), NUM(3));
}

Tensor *t_slice_scatter(Tensor *x, Tensor *src, int64_t dim, int64_t start, int64_t end,
                        int64_t step) {
  OP_ENTERED(t_slice_scatter, "slice_scatter", x, src, dim, start, end, step);
  if (blocked(x, src)) return NULL;
  int64_t p[4] = {dim, start, end, step};
  return write_window(index_clone(x), src, slice_window, p,
                      window_node(&SliceScatterBackward0, x, src, 4, p));
}

static Tensor *diagonal_window(Tensor *y, const void *p) {
  const int64_t *k = p;
  return t_diagonal(y, k[0], k[1], k[2]);
}

GRAD(DiagonalScatterBackward0, "| offset:int dim1:int dim2:int -:ints")
{
  if (needs(n, 0))
    gi[0] = t_diagonal_scatter(g[0], window_zeros(n, 3, g[0]), NUM(0), NUM(1), NUM(2));
  if (needs(n, 1)) gi[1] = t_diagonal(g[0], NUM(0), NUM(1), NUM(2));
}

Tensor *t_diagonal_scatter(Tensor *x, Tensor *src, int64_t offset, int64_t d0, int64_t d1) {
  OP_ENTERED(t_diagonal_scatter, "diagonal_scatter", x, src, offset, d0, d1);
  if (blocked(x, src)) return NULL;
  int64_t p[3] = {offset, d0, d1};
  return write_window(index_clone(x), src, diagonal_window, p,
                      window_node(&DiagonalScatterBackward0, x, src, 3, p));
}

/* ------------------------------------------------------------ as_strided */

typedef struct {
  Ints sizes, strides;
  int64_t offset;
} Strided;

static Tensor *strided_window(Tensor *y, const void *p) {
  const Strided *s = p;
  return t_as_strided_ints(y, s->sizes, s->strides, s->offset);
}

/* A copy of x's whole storage, with x's place in it: the window may lie beside x. */
static Tensor *clone_storage(Tensor *x) {
  if (view_shares_elements(x)) return index_clone(x);
  int64_t count = x->storage->bytes->n_bytes / dtype_bytes(tensor_dtype(x));
  Tensor *all = index_clone(tensor_alias(x, 1, &count, (int64_t[]){1}, 0));
  return tensor_alias(all, x->ndim, x->sizes, x->strides, x->offset);
}

static Strided saved_strides(Node *n) {
  Strided s = {.offset = NUM(0), .sizes = num_list_at(n, 1)};
  s.strides = num_list_at(n, 2 + s.sizes.n);
  return s;
}

/* PyTorch's gradient of x is g inside the window and zero outside, not the other way round as its
 * tangent implies. */
GRAD_AND_TANGENT(AsStridedScatterBackward0, "| storage_offset:natural? size:ints stride:ints") {
  Strided s = saved_strides(n);
  Tensor *all = t_contiguous(g[0]), *inside = t_as_strided_ints(all, s.sizes, s.strides, s.offset);
  if (needs(n, 0))
    gi[0] = t_as_strided_scatter(t_zeros_like(all), inside, s.sizes, s.strides, s.offset);
  if (needs(n, 1)) gi[1] = inside;
}
TANGENT(AsStridedScatterBackward0) {
  Strided s = saved_strides(n);
  Tensor *to = t[0] ? t[0] : t_fill_(clone_storage(y), tensor_wrapped_f(0));
  Tensor *src = t[1] ? t[1] : tensor_zeros(s.sizes.n, s.sizes.v, tensor_dtype(y));
  return t_as_strided_scatter(to, src, s.sizes, s.strides, s.offset);
}

Tensor *t_as_strided_scatter(Tensor *x, Tensor *src, Ints sizes, Ints strides, int64_t offset) {
  OP_ENTERED(t_as_strided_scatter, "as_strided_scatter", x, src, sizes, strides, offset);
  if (blocked(x, src)) return NULL;
  if (tensor_requires_grad(x) && !tensor_is_contiguous(x))
    return fail(ERR_RUNTIME,
                "as_strided_scatter is currently only supported for contiguous inputs");
  Node *n = node_new(&AsStridedScatterBackward0, 0, 3 + sizes.n + strides.n, x, src, NULL);
  if (n) {
    num_i(n, 0, offset);
    num_list(n, 1, sizes.n, sizes.v);
    num_list(n, 2 + sizes.n, strides.n, strides.v);
  }
  return write_window(clone_storage(x), src, strided_window, &(Strided){sizes, strides, offset}, n);
}

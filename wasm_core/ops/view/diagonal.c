/* Triangles and diagonals of matrices: tril, triu, trace, diag and kin. */
#include "ops/view/diagonal.h"

#include <string.h>

#include "ground/memory.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"
#include "view_rows.h"

#define NUM(k) (n->numbers[k].i)

/* ------------------------------------------------------------ triangles */

GRAD(TrilBackward0, "| diagonal:int")
{ gi[0] = t_tril(g[0], NUM(0)); }
GRAD(TriuBackward0, "| diagonal:int")
{ gi[0] = t_triu(g[0], NUM(0)); }

static int64_t clamp(int64_t v, int64_t low, int64_t high) {
  return v < low ? low : v > high ? high : v;
}

/* Zeros above (lower) or below the diagonal of each matrix of a contiguous y. */
static void clear_triangle(Tensor *y, int64_t diagonal, bool lower) {
  int64_t rows = y->sizes[y->ndim - 2], cols = y->sizes[y->ndim - 1],
          width = dtype_bytes(tensor_dtype(y));
  if (tensor_absent(y)) return;
  char *row = tensor_data(y);
  int64_t n = y->numel && cols ? y->numel / cols : 0;
  for (int64_t k = 0; k < n; k++, row += cols * width) {
    int64_t i = k % rows;
    int64_t from = lower ? clamp(i + diagonal, -1, cols - 1) + 1 : 0,
            to = lower ? cols : clamp(i + diagonal, 0, cols);
    memset(row + from * width, 0, (size_t)((to - from) * width));
  }
}

static Tensor *triangle(Tensor *x, int64_t diagonal, bool lower) {
  OP_ENTERED_AS(triangle(x, diagonal, lower), lower ? "tril" : "triu", x, diagonal);
  if (blocked(x)) return NULL;
  if (x->ndim < 2)
    return fail(ERR_RUNTIME, "%s: input tensor must have at least 2 dimensions",
                lower ? "tril" : "triu");
  Node *n = node_new(lower ? &TrilBackward0 : &TriuBackward0, 0, 1, x, NULL);
  num_i(n, 0, diagonal);
  Tensor *y = tensor_empty(x->ndim, x->sizes, tensor_dtype(x));
  if (!tensor_copy_data(y, x)) y = NULL;
  /* No diagonal lies further off than the larger side. */
  int64_t most = x->sizes[x->ndim - 2] + x->sizes[x->ndim - 1];
  if (y) clear_triangle(y, clamp(diagonal, -most, most), lower);
  return set_history(y, n);
}

Tensor *t_tril(Tensor *x, int64_t diagonal) { return triangle(x, diagonal, true); }
Tensor *t_triu(Tensor *x, int64_t diagonal) { return triangle(x, diagonal, false); }

/* ------------------------------------------------------------ diagonals */

GRAD(TraceBackward0, "| self_sym_sizes:ints")
{
  Ints sizes = num_list_at(n, 0);
  int64_t length = sizes.v[0] < sizes.v[1] ? sizes.v[0] : sizes.v[1];
  gi[0] = t_diagonal_backward(t_expand(g[0], 1, &length), sizes, 0, 0, 1);
}

Tensor *t_trace(Tensor *x) {
  OP_ENTERED(t_trace, "trace", x);
  if (blocked(x)) return NULL;
  if (x->ndim != 2)
    return fail(ERR_RUNTIME, "trace: expected a matrix, but got tensor with dim %d", x->ndim);
  if (x->dtype == DT_BOOL) return dtype_no_kernel("trace", DT_BOOL);
  Node *n = node_new(&TraceBackward0, 0, 3, x, NULL);
  num_list(n, 0, 2, x->sizes);
  Tensor *y = WITHOUT_GRAD(t_sum_all(t_diagonal(x, 0, 0, 1)));
  return set_history(y, n);
}

GRAD(DiagEmbedBackward0, "| offset:int dim1:int dim2:int")
{ gi[0] = t_diagonal(g[0], NUM(0), NUM(1), NUM(2)); }

Tensor *t_diag_embed(Tensor *x, int64_t offset, int64_t dim1, int64_t dim2) {
  OP_ENTERED(t_diag_embed, "diag_embed", x, offset, dim1, dim2);
  if (blocked(x)) return NULL;
  int ndim = x->ndim + 1;
  if (ndim > MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  int64_t d1 = dim_wrap(dim1, ndim), d2 = d1 < 0 ? -1 : dim_wrap(dim2, ndim), sizes[MAX_DIM];
  if (d2 < 0) return NULL;
  if (d1 == d2)
    return fail(ERR_RUNTIME, "diagonal dimensions cannot be identical %lld, %lld", (Shown)dim1,
                (Shown)dim2);
  int64_t side = x->sizes[x->ndim - 1] + (offset < 0 ? -offset : offset);
  for (int i = 0, from = 0; i < ndim; i++) sizes[i] = i == d1 || i == d2 ? side : x->sizes[from++];
  Node *n = node_new(&DiagEmbedBackward0, 0, 3, x, NULL);
  num_i(n, 0, offset);
  num_i(n, 1, d1);
  num_i(n, 2, d2);
  Tensor *y = WITHOUT_GRAD(t_diagonal_backward(x, (Ints){ndim, sizes}, offset, d1, d2));
  return set_history(y, n);
}

/* The copy of a diagonal, as PyTorch names it. */
GRAD(DiagonalBackward0_copy, "| self_sym_sizes:ints offset:int dim1:int dim2:int")
{
  Ints sizes = num_list_at(n, 0);
  gi[0] = t_diagonal_backward(g[0], sizes, NUM(1 + sizes.n), NUM(2 + sizes.n), NUM(3 + sizes.n));
}

Tensor *t_diagonal_copy(Tensor *x, int64_t offset, int64_t d0, int64_t d1) {
  OP_ENTERED(t_diagonal_copy, "diagonal_copy", x, offset, d0, d1);
  if (blocked(x)) return NULL;
  Node *n = node_new(&DiagonalBackward0_copy, 0, 4 + x->ndim, x, NULL);
  num_list(n, 0, x->ndim, x->sizes);
  num_i(n, 1 + x->ndim, offset);
  num_i(n, 2 + x->ndim, d0);
  num_i(n, 3 + x->ndim, d1);
  Tensor *y = WITHOUT_GRAD(t_clone_format(t_diagonal(x, offset, d0, d1), FORMAT_CONTIGUOUS));
  return set_history(y, n);
}

Tensor *t_diag(Tensor *x, int64_t offset) {
  OP_ENTERED(t_diag, "diag", x, offset);
  if (blocked(x)) return NULL;
  if (x->ndim == 1) return t_diag_embed(x, offset, 0, 1);
  if (x->ndim == 2) return t_diagonal_copy(x, offset, 0, 1);
  return fail(ERR_RUNTIME, "diag(): Supports 1D or 2D tensors. Got %dD", x->ndim);
}

Tensor *t_diagflat(Tensor *x, int64_t offset) {
  OP_ENTERED(t_diagflat, "diagflat", x, offset);
  return t_diag(t_reshape(t_contiguous(x), 1, (int64_t[]){-1}), offset);
}

static Tensor *fill_apart(Tensor *x, int64_t start, int64_t count, int64_t stride, Tensor *value) {
  return t_fill_(t_as_strided(x, 1, &count, &stride, x->offset + start), value);
}

Tensor *t_fill_diagonal_(Tensor *x, Tensor *value, bool wrap) {
  VIEW_ENTERED(t_fill_diagonal_, "fill_diagonal_", x, value, wrap);
  if (blocked(x) || blocked(value)) return NULL;
  if (x->ndim < 2) return fail(ERR_RUNTIME, "dimensions must larger than 1");
  int64_t stride = 0, rows = x->sizes[0], count = x->sizes[0];
  for (int i = 0; i < x->ndim; i++) {
    if (x->ndim > 2 && x->sizes[i] != rows)
      return fail(ERR_RUNTIME, "all dimensions of input must be of equal length");
    stride += x->strides[i];
    count = x->sizes[i] < count ? x->sizes[i] : count;
  }
  if (!fill_apart(x, 0, count, stride, value)) return NULL;
  int64_t cols = x->sizes[1], step = cols + 1;
  /* Wrapping: the diagonal starts again one row below where it left a tall matrix. */
  if (wrap && x->ndim == 2 && rows > cols + 1)
    for (int64_t from = step; from < rows; from += step)
      if (!fill_apart(x, from * x->strides[0], rows - from < cols ? rows - from : cols, stride,
                      value))
        return NULL;
  return x;
}

/* Joins: cat, stack and kin, block_diag, and lists of choices.
 *
 * They move elements and compute nothing, so each is made of tensor_copy_data between pieces of the
 * result and pieces of the operands, and each gradient is a move of the same kind. */

#include <string.h>

#include "ground/memory.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"
#include "view_rows.h"

#define NUM(k) (n->numbers[k].i)

/* ------------------------------------------------------------ cat */

/* PyTorch has always let empty vectors stand for "nothing" among tensors of any rank. */
static bool is_skipped(const Tensor *t) { return t->ndim == 1 && t->sizes[0] == 0; }

/* Numbers: dim, then the length of each input along it, -1 for a skipped one. */
GRAD(CatBackward0, "| dim:int")
{
  int64_t at = 0;
  for (int i = 0; i < n->n_edges; i++) {
    int64_t length = NUM(1 + i);
    if (needs(n, i))
      gi[i] = length < 0 ? tensor_none_of(tensor_dtype(g[0])) : t_narrow(g[0], NUM(0), at, length);
    if (length > 0) at += length;
  }
}

static bool check_cat_shapes(Tensors ts, const Tensor *first, int64_t dim) {
  for (int i = 0; i < ts.n; i++) {
    const Tensor *t = ts.v[i];
    if (is_skipped(t)) continue;
    if (t->ndim != first->ndim)
      return fail(ERR_RUNTIME, "Tensors must have same number of dimensions: got %d and %d",
                  first->ndim, t->ndim),
             false;
    for (int d = 0; d < t->ndim; d++)
      if (d != dim && t->sizes[d] != first->sizes[d])
        return fail(ERR_RUNTIME,
                    "Sizes of tensors must match except in dimension %lld. Expected size %lld but "
                    "got size %lld for tensor number %d in the list.",
                    (Shown)dim, (Shown)first->sizes[d], (Shown)t->sizes[d], i),
               false;
  }
  return true;
}

/* The format that all operands have. */
static MemoryFormat cat_format(Tensors ts, const Tensor *first) {
  MemoryFormat last = first->ndim == 4 ? FORMAT_CHANNELS_LAST : FORMAT_CHANNELS_LAST_3D;
  if (first->ndim != 4 && first->ndim != 5) return FORMAT_CONTIGUOUS;
  for (int i = 0; i < ts.n; i++)
    if (!is_skipped(ts.v[i]) &&
        (tensor_is_contiguous(ts.v[i]) || !tensor_has_format(ts.v[i], last)))
      return FORMAT_CONTIGUOUS;
  return last;
}

/* Joins contiguous operands of one type: each gives a run of bytes to each of the `outer` rows of
 * y. False, and nothing done, for other operands. */
static bool join_rows(Tensor *y, Tensors ts, int64_t outer) {
  if (tensor_absent(y)) return true;
  int64_t width = dtype_bytes(tensor_dtype(y)), row = outer ? y->numel / outer * width : 0, at = 0;
  for (int i = 0; i < ts.n; i++)
    if (ts.v[i]->dtype != y->dtype || !tensor_is_contiguous(ts.v[i])) return false;
  if (outer > 1 && row < 64 * ts.n) return false; /* short runs are better walked than copied */
  for (int i = 0; i < ts.n; i++) {
    int64_t run = outer ? ts.v[i]->numel / outer * width : 0;
    char *to = tensor_data(y) + at;
    const char *from = tensor_data(ts.v[i]);
    for (int64_t k = 0; run && k < outer; k++)
      bytes_copy(to + k * row, from + k * run, (size_t)run);
    at += run;
  }
  return true;
}

static Tensor *cat_data(Tensors ts, const Tensor *first, int64_t dim) {
  int64_t sizes[MAX_DIM], at = 0;
  memcpy(sizes, first->sizes, (size_t)first->ndim * sizeof *sizes);
  sizes[dim] = 0;
  for (int i = 0; i < ts.n; i++)
    if (!is_skipped(ts.v[i])) sizes[dim] += ts.v[i]->sizes[dim];
  MemoryFormat format = cat_format(ts, first);
  Tensor *y = tensor_empty_format(first->ndim, sizes, elementwise_result_dtype(ts.n, ts.v), format);
  if (y && format == FORMAT_CONTIGUOUS && join_rows(y, ts, sizes_numel((int)dim, sizes))) return y;
  for (int i = 0; i < ts.n; i++) {
    if (is_skipped(ts.v[i])) continue;
    if (!tensor_copy_data(tensor_part(y, dim, at, ts.v[i]->sizes[dim]), ts.v[i])) return NULL;
    at += ts.v[i]->sizes[dim];
  }
  return y;
}

/* A node has 16 bits for its inputs; longer lists are joined in rounds. */
enum { MOST_INPUTS = 32768 };

static Tensor *in_rounds(Tensors ts, int64_t dim, Tensor *join(Tensors, int64_t)) {
  int n = (ts.n + MOST_INPUTS - 1) / MOST_INPUTS;
  Tensor **rounds = scratch_array(n, sizeof *rounds);
  if (!rounds) return NULL;
  for (int k = 0; k < n; k++) {
    int from = k * MOST_INPUTS, left = ts.n - from;
    rounds[k] = join((Tensors){left < MOST_INPUTS ? left : MOST_INPUTS, ts.v + from}, dim);
  }
  return failed() ? NULL : t_cat((Tensors){n, rounds}, dim);
}

Tensor *t_cat(Tensors ts, int64_t dim) {
  OP_ENTERED(t_cat, "cat", ts, dim);
  if (!shape_check_tensors(ts)) return NULL;
  if (ts.n <= 0) return fail(ERR_VALUE, "torch.cat(): expected a non-empty list of Tensors");
  if (ts.n > MOST_INPUTS) return in_rounds(ts, dim, t_cat);
  Tensor *first = NULL;
  for (int i = 0; i < ts.n; i++) {
    if (ts.v[i]->ndim == 0)
      return fail(ERR_RUNTIME, "zero-dimensional tensor (at position %d) cannot be concatenated",
                  i);
    if (!first && !is_skipped(ts.v[i])) first = ts.v[i];
  }
  if (!first) {
    first = ts.v[0];
    dim = 0;
  }
  if ((dim = dim_wrap(dim, first->ndim)) < 0 || !check_cat_shapes(ts, first, dim)) return NULL;
  Node *n = node_new_list(&CatBackward0, 0, 1 + ts.n, ts.n, ts.v);
  num_i(n, 0, dim);
  for (int i = 0; n && i < ts.n; i++)
    num_i(n, 1 + i, is_skipped(ts.v[i]) ? -1 : ts.v[i]->sizes[dim]);
  return set_history(cat_data(ts, first, dim), n);
}

/* ------------------------------------------------------------ stack and kin */

GRAD(StackBackward0, "| dim:int")
{
  int64_t count = 0;
  Tensor **each = t_unbind(g[0], NUM(0), &count);
  for (int i = 0; each && i < n->n_edges; i++)
    if (needs(n, i)) gi[i] = each[i];
}

static Tensor *stack_data(Tensors ts, int64_t dim) {
  const Tensor *first = ts.v[0];
  int64_t sizes[MAX_DIM];
  for (int i = 0; i <= first->ndim; i++)
    sizes[i] = i == dim ? ts.n : first->sizes[i < dim ? i : i - 1];
  Tensor *y = tensor_empty(first->ndim + 1, sizes, elementwise_result_dtype(ts.n, ts.v));
  if (y && join_rows(y, ts, sizes_numel((int)dim, sizes))) return y;
  int64_t strides[MAX_DIM];
  for (int d = 0; y && d < first->ndim; d++) strides[d] = y->strides[d < dim ? d : d + 1];
  for (int i = 0; y && i < ts.n; i++) {
    Tensor *at = tensor_alias(y, first->ndim, first->sizes, strides, i * y->strides[dim]);
    if (!tensor_copy_data(at, ts.v[i])) return NULL;
  }
  return y;
}

Tensor *t_stack(Tensors ts, int64_t dim) {
  OP_ENTERED(t_stack, "stack", ts, dim);
  if (!shape_check_tensors(ts)) return NULL;
  if (ts.n <= 0) return fail(ERR_RUNTIME, "stack expects a non-empty TensorList");
  if (ts.v[0]->ndim == MAX_DIM)
    return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  if ((dim = dim_wrap(dim, ts.v[0]->ndim + 1)) < 0) return NULL;
  if (ts.n > MOST_INPUTS) return in_rounds(ts, dim, t_stack);
  for (int i = 1; i < ts.n; i++)
    if (!tensor_same_shape(ts.v[0], ts.v[i]))
      return fail(
          ERR_RUNTIME,
          "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %d",
          shape_text(ts.v[0]), shape_text(ts.v[i]), i);
  Node *n = node_new_list(&StackBackward0, 0, 1, ts.n, ts.v);
  num_i(n, 0, dim);
  return set_history(stack_data(ts, dim), n);
}

static Tensor *as_column(Tensor *x) {
  return x->ndim > 1 ? x : t_reshape(x, 2, (int64_t[]){x->numel, 1});
}

/* hstack, vstack, dstack: rank at least `ndim`, then cat. `column`: vectors become columns
 * first. */
Tensor *t_stack_side(Tensors ts, int ndim, bool column, const char *name) {
  if (!shape_check_tensors(ts)) return NULL;
  if (ts.n <= 0) return fail(ERR_RUNTIME, "%s expects a non-empty TensorList", name);
  Tensor **each = scratch_array(ts.n, sizeof *each);
  for (int i = 0; each && i < ts.n; i++)
    each[i] = column ? as_column(ts.v[i]) : t_atleast(ts.v[i], ndim);
  if (failed()) return NULL;
  int64_t dim = ndim == 3 ? 2 : ndim == 2 ? 0 : each[0]->ndim != 1;
  return t_cat((Tensors){ts.n, each}, dim);
}

/* ------------------------------------------------------------ block_diag */

/* Numbers: rows and columns of each input, and its rank. */
GRAD(BlockDiagBackward0, "| ")
{
  int64_t row = 0, col = 0;
  for (int i = 0; i < n->n_edges; i++) {
    int64_t rows = NUM(3 * i), cols = NUM(3 * i + 1), ndim = NUM(3 * i + 2);
    if (needs(n, i)) {
      Tensor *block = t_narrow(t_narrow(g[0], 0, row, rows), 1, col, cols);
      gi[i] = ndim == 2 ? block : t_reshape(block, (int)ndim, &cols);
    }
    row += rows;
    col += cols;
  }
}

Tensor *t_block_diag(Tensors ts) {
  OP_ENTERED(t_block_diag, "block_diag", ts);
  if (!shape_check_tensors(ts)) return NULL;
  if (ts.n <= 0) return tensor_empty(2, (int64_t[]){1, 0}, dtype_default());
  int64_t *shapes = scratch_array(3 * (int64_t)ts.n, sizeof *shapes), total[2] = {0, 0};
  for (int i = 0; shapes && i < ts.n; i++) {
    const Tensor *t = ts.v[i];
    if (t->ndim > 2)
      return fail(ERR_RUNTIME,
                  "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input %d has "
                  "%d dimensions",
                  i, t->ndim);
    total[0] += shapes[3 * i] = t->ndim == 2 ? t->sizes[0] : 1;
    total[1] += shapes[3 * i + 1] = t->ndim ? t->sizes[t->ndim - 1] : 1;
    shapes[3 * i + 2] = t->ndim;
  }
  if (!shapes) return NULL;
  Node *n = node_new_list(&BlockDiagBackward0, 0, 3 * ts.n, ts.n, ts.v);
  for (int i = 0; n && i < 3 * ts.n; i++) num_i(n, i, shapes[i]);
  Tensor *y = tensor_zeros(2, total, elementwise_result_dtype(ts.n, ts.v));
  int64_t row = 0, col = 0;
  for (int i = 0; y && i < ts.n; i++) {
    if (!tensor_copy_data(
            tensor_part(tensor_part(y, 0, row, shapes[3 * i]), 1, col, shapes[3 * i + 1]), ts.v[i]))
      y = NULL;
    row += shapes[3 * i];
    col += shapes[3 * i + 1];
  }
  return set_history(y, n);
}

/* ------------------------------------------------------------ choices */

static Tensor *not_a_vector(const Tensor *x) {
  return fail(ERR_RUNTIME, "Expect a 1D vector, but got shape %s", shape_text(x));
}

Tensor *t_cartesian_prod(Tensors ts) {
  OP_ENTERED(t_cartesian_prod, "cartesian_prod", ts);
  if (!shape_check_tensors(ts)) return NULL;
  for (int i = 0; i < ts.n; i++)
    if (ts.v[i]->ndim != 1) return not_a_vector(ts.v[i]);
  if (ts.n == 1) return ts.v[0];
  Tensor **grid = t_meshgrid(ts, "ij");
  for (int i = 0; grid && i < ts.n; i++) grid[i] = t_flatten(grid[i], 0, -1);
  return failed() ? NULL : t_stack((Tensors){ts.n, grid}, 1);
}

/* The number of ways to choose r of n; -1 on overflow. */
static int64_t choices(int64_t n, int64_t r) {
  int64_t result = 1;
  if (r > n) return 0;
  for (int64_t i = 1; i <= r; i++) {
    if (__builtin_mul_overflow(result, n - r + i, &result)) return -1;
    result /= i;
  }
  return result;
}

/* The rows of choices of r below n, ascending, in lexicographic order: (r, count). */
static Tensor *choice_indices(int64_t n, int64_t r, bool again) {
  int64_t count = n == 0 ? 0 : again ? choices(n + r - 1, r) : choices(n, r);
  if (count < 0) return fail(ERR_RUNTIME, "numel: integer multiplication overflow");
  Tensor *y = tensor_empty(2, (int64_t[]){r, count}, DT_I64);
  int64_t *now = scratch_array(r, sizeof *now);
  if (!y || !now || tensor_absent(y)) return now ? y : NULL;
  int64_t *out = (int64_t *)(void *)tensor_data(y);
  for (int64_t i = 0; i < r; i++) now[i] = again ? 0 : i;
  for (int64_t row = 0; row < count; row++) {
    for (int64_t i = 0; i < r; i++) out[i * count + row] = now[i];
    int64_t at = r - 1;
    while (at >= 0 && now[at] == (again ? n - 1 : n - r + at)) at--;
    if (at < 0) break;
    now[at]++;
    for (int64_t i = at + 1; i < r; i++) now[i] = now[i - 1] + !again;
  }
  return y;
}

Tensor *t_combinations(Tensor *x, int64_t r, bool again) {
  OP_ENTERED(t_combinations, "combinations", x, r, again);
  if (blocked(x)) return NULL;
  if (x->ndim != 1) return not_a_vector(x);
  if (r < 0) return fail(ERR_RUNTIME, "Expect a non-negative number, but got %lld", (Shown)r);
  if (r == 0) return tensor_none_of(tensor_dtype(x));
  if (r > INT16_MAX) return fail(ERR_NOT_IMPLEMENTED, "combinations: r is too large");
  Tensor *rows = choice_indices(x->numel, r, again), **each = scratch_array(r, sizeof *each);
  for (int64_t i = 0; rows && each && i < r; i++)
    each[i] = t_index_select(x, 0, t_select(rows, 0, i));
  return failed() ? NULL : t_stack((Tensors){(int32_t)r, each}, 1);
}

/* ------------------------------------------------------------ _chunk_cat */

NO_DERIVATIVE(_chunk_cat)

static bool check_chunk_cat(Tensors ts, int64_t *dim, int64_t chunks) {
  if (chunks < 1) return fail(ERR_RUNTIME, "_chunk_cat expects positive num_chunks"), false;
  if (ts.n < 1) return fail(ERR_RUNTIME, "_chunk_cat expects a non-empty input tensor list"), false;
  bool same_rank = true;
  for (int i = 0; i < ts.n && !failed(); i++) {
    same_rank = same_rank && ts.v[i]->ndim == ts.v[0]->ndim;
    if (!ts.v[i]->numel) fail(ERR_RUNTIME, "_chunk_cat expects non-empty tensor");
    else if (ts.v[i]->dtype != ts.v[0]->dtype)
      fail(ERR_RUNTIME, "_chunk_cat expects all input tensors with the same dtype");
  }
  if (same_rank && !failed()) {
    if (tensor_size(ts.v[0], *dim) >= 0) *dim = dim_wrap(*dim, ts.v[0]->ndim);
  } else if (*dim < 0)
    fail(ERR_RUNTIME,
         "_chunk_cat expects non-negative dim when input tensors have different ndims");
  for (int i = 0; i < ts.n && !failed(); i++)
    if (*dim >= ts.v[i]->ndim)
      fail(ERR_RUNTIME, "_chunk_cat expects dim < ndim for all input tensors");
    else if (!sizes_equal((int)*dim, ts.v[i]->sizes, (int)*dim, ts.v[0]->sizes))
      fail(ERR_RUNTIME, "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
  return !failed();
}

/* x in `chunks` chunks along dim, with zeros where the last is short: (..., chunks, all the
 * rest). */
static Tensor *in_chunks(Tensor *x, int64_t dim, int64_t chunks) {
  int64_t sizes[MAX_DIM + 1], rest = x->sizes[dim] % chunks;
  memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
  sizes[dim] = chunks - rest;
  if (rest)
    x = t_cat((Tensors){2, (Tensor *[]){x, tensor_zeros(x->ndim, sizes, tensor_dtype(x))}}, dim);
  sizes[dim] = chunks;
  sizes[dim + 1] = -1;
  return t_reshape(x, (int)dim + 2, sizes);
}

Tensor *t_chunk_cat(Tensors ts, int64_t dim, int64_t chunks) {
  OP_ENTERED(t_chunk_cat, "_chunk_cat", ts, dim, chunks);
  if (failed() || !check_chunk_cat(ts, &dim, chunks)) return NULL;
  Tensor **parts = scratch_array(ts.n, sizeof *parts), *y = NULL;
  Node *n = node_new_list(&node__chunk_cat, 0, 0, ts.n, ts.v);
  WITHOUT_GRAD_BLOCK {
    for (int i = 0; i < ts.n && !failed(); i++) parts[i] = in_chunks(ts.v[i], dim, chunks);
    y = failed() ? NULL : t_cat((Tensors){ts.n, parts}, dim + 1);
  }
  return set_history(y, n);
}

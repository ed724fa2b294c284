/* Ops that put tensors together or elements elsewhere: cat, stack, flip, roll, repeat,
 * triangles, diagonals.
 *
 * All of them move elements and compute nothing, so each is made of tensor_copy_data between
 * pieces of the result and pieces of the operands, and each gradient is a move of the same kind. */
#include "ops/view/join.h"

#include <string.h>

#include "ground/memory.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"

#define NUM(k) (n->numbers[k].i)

/* ------------------------------------------------------------ cat */

bool check_tensors(Tensors ts) {
  if (failed()) return false;
  for (int i = 0; i < ts.n; i++)
    if (!ts.v[i])
      return fail(ERR_TYPE, "expected Tensor as element %d in argument 0, but got NoneType", i),
             false;
  return true;
}

/* The part of y that starts at `start` along dim, without history. */
static Tensor *part(Tensor *y, int64_t dim, int64_t start, int64_t length) {
  int64_t sizes[MAX_DIM];
  if (blocked(y)) return NULL;
  memcpy(sizes, y->sizes, (size_t)y->ndim * sizeof *sizes);
  sizes[dim] = length;
  return tensor_alias(y, y->ndim, sizes, y->strides, y->offset + start * y->strides[dim]);
}

/* PyTorch has always let empty vectors stand for "nothing" among tensors of any rank. */
static bool skipped(const Tensor *t) { return t->ndim == 1 && t->sizes[0] == 0; }

/* Numbers: dim, then the length of each input along it, -1 for a skipped one. */
GRAD(CatBackward0, "| dim:i")
{
  int64_t none = 0, at = 0;
  for (int i = 0; i < n->n_edges; i++) {
    int64_t length = NUM(1 + i);
    if (needs(n, i))
      gi[i] = length < 0 ? tensor_zeros(1, &none, (DType)g[0]->dtype)
                         : t_narrow(g[0], NUM(0), at, length);
    if (length > 0) at += length;
  }
}

static bool check_cat_shapes(Tensors ts, const Tensor *first, int64_t dim) {
  for (int i = 0; i < ts.n; i++) {
    const Tensor *t = ts.v[i];
    if (skipped(t)) continue;
    if (t->ndim != first->ndim)
      return fail(ERR_RUNTIME, "Tensors must have same number of dimensions: got %d and %d",
                  first->ndim, t->ndim),
             false;
    for (int d = 0; d < t->ndim; d++)
      if (d != dim && t->sizes[d] != first->sizes[d])
        return fail(ERR_RUNTIME,
                    "Sizes of tensors must match except in dimension %lld. Expected size %lld but "
                    "got size %lld for tensor "
                    "number %d in the list.",
                    (long long)dim, (long long)first->sizes[d], (long long)t->sizes[d], i),
               false;
  }
  return true;
}

/* The format that all operands have. */
static MemoryFormat cat_format(Tensors ts, const Tensor *first) {
  MemoryFormat last = first->ndim == 4 ? FORMAT_CHANNELS_LAST : FORMAT_CHANNELS_LAST_3D;
  if (first->ndim != 4 && first->ndim != 5) return FORMAT_CONTIGUOUS;
  for (int i = 0; i < ts.n; i++)
    if (!skipped(ts.v[i]) && (tensor_is_contiguous(ts.v[i]) || !tensor_has_format(ts.v[i], last)))
      return FORMAT_CONTIGUOUS;
  return last;
}

/* Where everything is contiguous and of one type, each operand gives a run of bytes to each of
 * the `outer` rows of y. False: not so, nothing done. */
static bool join_rows(Tensor *y, Tensors ts, int64_t outer) {
  int64_t width = dtype_bytes((DType)y->dtype), row = outer ? y->numel / outer * width : 0, at = 0;
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
    if (!skipped(ts.v[i])) sizes[dim] += ts.v[i]->sizes[dim];
  MemoryFormat format = cat_format(ts, first);
  Tensor *y = tensor_empty_format(first->ndim, sizes, result_dtype(ts.n, ts.v), format);
  if (y && format == FORMAT_CONTIGUOUS && join_rows(y, ts, sizes_numel((int)dim, sizes))) return y;
  for (int i = 0; i < ts.n; i++) {
    if (skipped(ts.v[i])) continue;
    if (!tensor_copy_data(part(y, dim, at, ts.v[i]->sizes[dim]), ts.v[i])) return NULL;
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
  if (!check_tensors(ts)) return NULL;
  if (ts.n <= 0) return fail(ERR_VALUE, "torch.cat(): expected a non-empty list of Tensors");
  if (ts.n > MOST_INPUTS) return in_rounds(ts, dim, t_cat);
  Tensor *first = NULL;
  for (int i = 0; i < ts.n; i++) {
    if (ts.v[i]->ndim == 0)
      return fail(ERR_RUNTIME, "zero-dimensional tensor (at position %d) cannot be concatenated",
                  i);
    if (!first && !skipped(ts.v[i])) first = ts.v[i];
  }
  if (!first) {
    first = ts.v[0];
    dim = 0;
  }
  if ((dim = dim_wrap(dim, first->ndim)) < 0 || !check_cat_shapes(ts, first, dim)) return NULL;
  Node *n = node_new_list(&CatBackward0, 0, 1 + ts.n, ts.n, ts.v);
  num_i(n, 0, dim);
  for (int i = 0; n && i < ts.n; i++) num_i(n, 1 + i, skipped(ts.v[i]) ? -1 : ts.v[i]->sizes[dim]);
  return set_history(cat_data(ts, first, dim), n);
}

/* ------------------------------------------------------------ stack and kin */

GRAD(StackBackward0, "| dim:i")
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
  Tensor *y = tensor_empty(first->ndim + 1, sizes, result_dtype(ts.n, ts.v));
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
  if (!check_tensors(ts)) return NULL;
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
  if (!check_tensors(ts)) return NULL;
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
  if (!check_tensors(ts)) return NULL;
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
  Tensor *y = tensor_zeros(2, total, result_dtype(ts.n, ts.v));
  int64_t row = 0, col = 0;
  for (int i = 0; y && i < ts.n; i++) {
    if (!tensor_copy_data(part(part(y, 0, row, shapes[3 * i]), 1, col, shapes[3 * i + 1]), ts.v[i]))
      y = NULL;
    row += shapes[3 * i];
    col += shapes[3 * i + 1];
  }
  return set_history(y, n);
}

/* ------------------------------------------------------------ flip, roll, rot90 */

GRAD(FlipBackward0, "| dims:l")
{ gi[0] = t_flip(g[0], num_list_at(n, 0)); }

/* x read backwards along the marked dimensions. */
static Tensor *backwards(Tensor *x, const bool *marked) {
  int64_t strides[MAX_DIM], offset = x->offset;
  for (int i = 0; i < x->ndim; i++) {
    bool turn = marked[i] && x->sizes[i] > 0;
    strides[i] = turn ? -x->strides[i] : x->strides[i];
    offset += turn ? (x->sizes[i] - 1) * x->strides[i] : 0;
  }
  return tensor_alias(x, x->ndim, x->sizes, strides, offset);
}

Tensor *t_flip(Tensor *x, Ints dims) {
  bool marked[MAX_DIM];
  if (blocked(x) || !dims_mark(x->ndim, dims, marked)) return NULL;
  Node *n = node_new(&FlipBackward0, 0, 1 + dims.n, x, NULL);
  num_list(n, 0, dims.n, dims.v);
  Tensor *y = tensor_empty_like(x, (DType)x->dtype);
  return set_history(tensor_copy_data(y, backwards(x, marked)) ? y : NULL, n);
}

Tensor *t_flip_side(Tensor *x, int64_t dim) {
  if (blocked(x)) return NULL;
  if (x->ndim <= dim) return fail(ERR_RUNTIME, "Input must be >= %lld-d.", (long long)dim + 1);
  return t_flip(x, (Ints){1, &dim});
}

/* Numbers: shifts, then dims. */
GRAD(RollBackward0, "| shifts:l dims:l")
{
  Ints shifts = num_list_at(n, 0), dims = num_list_at(n, 1 + shifts.n);
  int64_t *back = scratch_array(shifts.n ? shifts.n : 1, sizeof *back);
  for (int i = 0; back && i < shifts.n; i++) back[i] = -shifts.v[i];
  if (back) gi[0] = t_roll(g[0], (Ints){shifts.n, back}, dims);
}

static Tensor *rolled(Tensor *x, int64_t shift, int64_t dim) {
  int64_t size = x->sizes[dim];
  Tensor *y = tensor_empty(x->ndim, x->sizes, (DType)x->dtype);
  if (size == 0) return y;
  int64_t at = shift % size < 0 ? shift % size + size : shift % size;
  bool done = tensor_copy_data(part(y, dim, at, size - at), part(x, dim, 0, size - at)) &&
              tensor_copy_data(part(y, dim, 0, at), part(x, dim, size - at, at));
  return done ? y : NULL;
}

static Tensor *roll_data(Tensor *x, Ints shifts, const int64_t *dims, int n_dims) {
  if (n_dims > 0) {
    Tensor *y = x;
    for (int i = 0; y && i < n_dims; i++) y = rolled(y, shifts.v[i], dims[i]);
    return y;
  }
  Tensor *copy = tensor_empty(x->ndim, x->sizes, (DType)x->dtype);
  if (!tensor_copy_data(copy, x)) return NULL;
  int64_t one = 1;
  Tensor *y = rolled(tensor_alias(copy, 1, &copy->numel, &one, 0), shifts.v[0], 0);
  return y && tensor_set_geometry(y, x->ndim, x->sizes, copy->strides, 0) ? y : NULL;
}

Tensor *t_roll(Tensor *x, Ints shifts, Ints dims) {
  int64_t at[MAX_DIM];
  int n_dims = dims.n > 0 ? dims.n : 0;
  if (blocked(x)) return NULL;
  if (shifts.n <= 0) return fail(ERR_RUNTIME, "`shifts` required");
  if (n_dims ? n_dims != shifts.n : shifts.n != 1)
    return fail(ERR_RUNTIME, "shifts and dimensions must align. shifts: %d, dims:%d", shifts.n,
                n_dims);
  if (n_dims > MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  for (int i = 0; i < n_dims; i++) {
    if (x->ndim == 0)
      return fail(ERR_INDEX, "Dimension specified as %lld but tensor has no dimensions",
                  (long long)dims.v[i]);
    if ((at[i] = dim_wrap(dims.v[i], x->ndim)) < 0) return NULL;
  }
  Node *n = node_new(&RollBackward0, 0, 2 + shifts.n + n_dims, x, NULL);
  num_list(n, 0, shifts.n, shifts.v);
  num_list(n, 1 + shifts.n, n_dims, dims.v);
  return set_history(roll_data(x, shifts, at, n_dims), n);
}

GRAD(Rot90Backward0, "| k:i dims:l")
{ gi[0] = t_rot90(g[0], -NUM(0), num_list_at(n, 1)); }

static Tensor *rot90_data(Tensor *x, int64_t k, int64_t d0, int64_t d1) {
  if (k == 0) return t_clone_format(x, FORMAT_CONTIGUOUS);
  if (k == 2) return t_flip(x, (Ints){2, (int64_t[]){d0, d1}});
  Tensor *y = t_flip(x, (Ints){1, k == 1 ? &d1 : &d0});
  Tensor *v = t_transpose(y, d0, d1);
  return v && tensor_set_geometry(y, v->ndim, v->sizes, v->strides, v->offset) ? y : NULL;
}

Tensor *t_rot90(Tensor *x, int64_t k, Ints dims) {
  if (blocked(x)) return NULL;
  if (dims.n != 2)
    return fail(ERR_RUNTIME, "expected total rotation dims == 2, but got dims = %d", dims.n);
  if (x->ndim < 2)
    return fail(ERR_RUNTIME, "expected total dims >= 2, but got total dims = %d", x->ndim);
  int64_t d0 = dim_wrap(dims.v[0], x->ndim), d1 = d0 < 0 ? -1 : dim_wrap(dims.v[1], x->ndim);
  if (d1 < 0) return NULL;
  if (d0 == d1)
    return fail(ERR_RUNTIME,
                "expected rotation dims to be different, but got dim0 = %lld and dim1 = %lld",
                (long long)dims.v[0], (long long)dims.v[1]);
  Node *n = node_new(&Rot90Backward0, 0, 4, x, NULL);
  num_i(n, 0, k);
  num_list(n, 1, 2, (int64_t[]){d0, d1});
  Tensor *y = WITHOUT_GRAD(rot90_data(x, ((k % 4) + 4) % 4, d0, d1));
  return set_history(y, n);
}

/* ------------------------------------------------------------ repeat */

/* Splits each dimension of the result into (times, size) and gives the positions of the times;
 * dimensions that are not repeated are not split. */
static int repeated_sizes(Ints repeats, Ints sizes, int64_t *split, int64_t *times, int *n_times) {
  int n = 0, extra = repeats.n - sizes.n;
  *n_times = 0;
  for (int i = 0; i < repeats.n; i++) {
    if (repeats.v[i] != 1 || i < extra) {
      times[(*n_times)++] = n;
      split[n++] = repeats.v[i];
    }
    if (i >= extra) split[n++] = sizes.v[i - extra];
  }
  return n;
}

/* Numbers: the sizes of self, the repeats. */
GRAD(RepeatBackward0, "| self_sym_sizes:l repeats:l")
{
  Ints sizes = num_list_at(n, 0), repeats = num_list_at(n, 1 + sizes.n);
  int64_t split[2 * MAX_DIM], times[MAX_DIM];
  int n_times, n_split = repeated_sizes(repeats, sizes, split, times, &n_times);
  Tensor *each = t_reshape(g[0], n_split, split);
  gi[0] = n_times ? t_sum(each, (Ints){n_times, times}, false, DT_NONE) : each;
}

static Tensor *repeat_data(Tensor *x, Ints repeats, const int64_t *total) {
  int64_t split[2 * MAX_DIM], times[MAX_DIM], strides[2 * MAX_DIM];
  int n_times, n = repeated_sizes(repeats, (Ints){x->ndim, x->sizes}, split, times, &n_times);
  Tensor *y = tensor_empty(repeats.n, total, (DType)x->dtype);
  if (n > MAX_DIM)
    return fail(ERR_NOT_IMPLEMENTED, "repeat: more than %d dimensions on the way", MAX_DIM);
  if (!y || y->numel == 0) return y;
  int own = 0, next = 0;
  for (int i = 0; i < n; i++) {
    bool is_times = next < n_times && times[next] == i;
    strides[i] = is_times ? 0 : x->strides[own];
    next += is_times;
    own += !is_times;
  }
  Tensor *from = tensor_alias(x, n, split, strides, x->offset);
  sizes_contiguous_strides(n, split, strides);
  return tensor_copy_data(tensor_alias(y, n, split, strides, 0), from) ? y : NULL;
}

Tensor *t_repeat(Tensor *x, Ints repeats) {
  int64_t total[MAX_DIM] = {0};
  if (blocked(x)) return NULL;
  if (repeats.n < x->ndim)
    return fail(ERR_RUNTIME, "Number of dimensions of repeat dims can not be smaller than number "
                             "of dimensions of tensor");
  if (repeats.n > MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  int extra = repeats.n - x->ndim;
  for (int i = 0; i < repeats.n; i++)
    if (__builtin_mul_overflow(repeats.v[i], i < extra ? 1 : x->sizes[i - extra], &total[i]))
      return fail(ERR_RUNTIME, "numel: integer multiplication overflow");
  if (sizes_numel(repeats.n, total) < 0) return NULL;
  for (int i = 0; i < repeats.n; i++) /* of a dimension without elements */
    if (repeats.v[i] < 0)
      return fail(ERR_RUNTIME, "Trying to create tensor with negative dimension %lld: %s",
                  (long long)repeats.v[i], sizes_text(repeats.n, repeats.v));
  Node *n = node_new(&RepeatBackward0, 0, 2 + x->ndim + repeats.n, x, NULL);
  num_list(n, 0, x->ndim, x->sizes);
  num_list(n, 1 + x->ndim, repeats.n, repeats.v);
  return set_history(repeat_data(x, repeats, total), n);
}

Tensor *t_tile(Tensor *x, Ints dims) {
  int64_t padded[MAX_DIM];
  if (blocked(x) || dims.n >= x->ndim) return t_repeat(x, dims);
  int extra = x->ndim - dims.n;
  for (int i = 0; i < x->ndim; i++) padded[i] = i < extra ? 1 : dims.v[i - extra];
  return t_repeat(x, (Ints){x->ndim, padded});
}

/* ------------------------------------------------------------ repeat_interleave */

static bool check_repeats(Tensor *repeats) {
  if (repeats->ndim != 1)
    return fail(ERR_RUNTIME, "repeat_interleave only accept 1D vector as repeat"), false;
  return repeats->dtype == DT_I64 || repeats->dtype == DT_I32 ||
         no_kernel("repeat_interleave_cpu", tensor_dtype(repeats));
}

Tensor *t_repeat_indices(Tensor *repeats, int64_t output_size) {
  int64_t total = 0, at = 0;
  if (blocked(repeats) || !check_repeats(repeats) || !(repeats = tensor_settled(repeats)))
    return NULL;
  for (int64_t i = 0; i < repeats->numel; i++) {
    int64_t times = tensor_get_i(repeats, i * repeats->strides[0]);
    if (times < 0) return fail(ERR_RUNTIME, "repeats can not be negative");
    if (__builtin_add_overflow(total, times, &total))
      return fail(ERR_RUNTIME, "repeat_interleave: the repeats are more than can be counted");
  }
  if (output_size >= 0 && output_size != total)
    return fail(ERR_RUNTIME, "allocated size does not match required size");
  Tensor *y = tensor_empty(1, &total, (DType)repeats->dtype);
  char *out = y ? tensor_data(y) : NULL;
  int64_t width = dtype_bytes((DType)repeats->dtype);
  for (int64_t i = 0; y && i < repeats->numel; i++)
    for (int64_t k = tensor_get_i(repeats, i * repeats->strides[0]); k > 0; k--)
      element_store_i(out + width * at++, (DType)y->dtype, i);
  return y;
}

Tensor *t_repeat_interleave(Tensor *x, Tensor *repeats, const int64_t *dim_, int64_t output_size) {
  if (blocked(x) || blocked(repeats)) return NULL;
  if (!dim_) x = t_flatten(x, 0, -1);
  int64_t dim = dim_ && x ? dim_wrap(*dim_, x->ndim) : 0;
  int64_t size = x && dim >= 0 ? tensor_size(x, dim) : -1;
  if (size < 0) return NULL;
  if (repeats->ndim > 1) return fail(ERR_RUNTIME, "repeats must be 0-dim or 1-dim tensor");
  if (repeats->numel == 1) repeats = t_expand(t_reshape(repeats, 1, (int64_t[]){1}), 1, &size);
  else if (repeats->sizes[0] != size)
    return fail(ERR_RUNTIME,
                "repeats must have the same size as input along dim, but got repeats.size(0) = "
                "%lld and input.size(%lld) = "
                "%lld",
                (long long)repeats->sizes[0], (long long)(dim_ ? *dim_ : 0), (long long)size);
  return t_index_select(x, dim, t_repeat_indices(repeats, output_size));
}

Tensor *t_repeat_interleave_int(Tensor *x, int64_t times, const int64_t *dim_,
                                int64_t output_size) {
  if (blocked(x)) return NULL;
  if (!dim_) x = t_flatten(x, 0, -1);
  if (times < 0) return fail(ERR_RUNTIME, "Repeats must be non-negative");
  int64_t dim = dim_ && x ? dim_wrap(*dim_, x->ndim) : 0, sizes[MAX_DIM];
  if (!x || dim < 0) return NULL;
  if (x->ndim == 0)
    return fail(ERR_INDEX,
                "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  int64_t total = x->sizes[dim] * times;
  if (output_size >= 0 && output_size != total)
    return fail(ERR_RUNTIME, "repeat_interleave: Invalid output_size, expected %lld but got %lld",
                (long long)total, (long long)output_size);
  if (x->ndim == MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  for (int i = 0; i <= x->ndim; i++)
    sizes[i] = i == dim + 1 ? times : x->sizes[i <= dim ? i : i - 1];
  Tensor *each = t_clone_format(t_expand(t_unsqueeze(x, dim + 1), x->ndim + 1, sizes),
                                FORMAT_CONTIGUOUS);
  return t_flatten(each, dim, dim + 1);
}

/* ------------------------------------------------------------ triangles */

GRAD(TrilBackward0, "| diagonal:i")
{ gi[0] = t_tril(g[0], NUM(0)); }
GRAD(TriuBackward0, "| diagonal:i")
{ gi[0] = t_triu(g[0], NUM(0)); }

static int64_t clamp(int64_t v, int64_t low, int64_t high) {
  return v < low ? low : v > high ? high : v;
}

/* Zeros above (lower) or below the diagonal of each matrix of a contiguous y. */
static void clear_triangle(Tensor *y, int64_t diagonal, bool lower) {
  int64_t rows = y->sizes[y->ndim - 2], cols = y->sizes[y->ndim - 1],
          width = dtype_bytes((DType)y->dtype);
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
  if (blocked(x)) return NULL;
  if (x->ndim < 2)
    return fail(ERR_RUNTIME, "%s: input tensor must have at least 2 dimensions",
                lower ? "tril" : "triu");
  Node *n = node_new(lower ? &TrilBackward0 : &TriuBackward0, 0, 1, x, NULL);
  num_i(n, 0, diagonal);
  Tensor *y = tensor_empty(x->ndim, x->sizes, (DType)x->dtype);
  if (!tensor_copy_data(y, x)) y = NULL;
  /* No diagonal lies further off than the larger side. */
  int64_t most = x->sizes[x->ndim - 2] + x->sizes[x->ndim - 1];
  if (y) clear_triangle(y, clamp(diagonal, -most, most), lower);
  return set_history(y, n);
}

Tensor *t_tril(Tensor *x, int64_t diagonal) { return triangle(x, diagonal, true); }
Tensor *t_triu(Tensor *x, int64_t diagonal) { return triangle(x, diagonal, false); }

/* ------------------------------------------------------------ diagonals */

GRAD(TraceBackward0, "| self_sym_sizes:l")
{
  Ints sizes = num_list_at(n, 0);
  int64_t length = sizes.v[0] < sizes.v[1] ? sizes.v[0] : sizes.v[1];
  gi[0] = t_diagonal_backward(t_expand(g[0], 1, &length), sizes, 0, 0, 1);
}

Tensor *t_trace(Tensor *x) {
  if (blocked(x)) return NULL;
  if (x->ndim != 2)
    return fail(ERR_RUNTIME, "trace: expected a matrix, but got tensor with dim %d", x->ndim);
  if (x->dtype == DT_BOOL) return no_kernel("trace", DT_BOOL);
  Node *n = node_new(&TraceBackward0, 0, 3, x, NULL);
  num_list(n, 0, 2, x->sizes);
  Tensor *y = WITHOUT_GRAD(t_sum_all(t_diagonal(x, 0, 0, 1)));
  return set_history(y, n);
}

GRAD(DiagEmbedBackward0, "| offset:i dim1:i dim2:i")
{ gi[0] = t_diagonal(g[0], NUM(0), NUM(1), NUM(2)); }

Tensor *t_diag_embed(Tensor *x, int64_t offset, int64_t dim1, int64_t dim2) {
  if (blocked(x)) return NULL;
  int ndim = x->ndim + 1;
  if (ndim > MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  int64_t d1 = dim_wrap(dim1, ndim), d2 = d1 < 0 ? -1 : dim_wrap(dim2, ndim), sizes[MAX_DIM];
  if (d2 < 0) return NULL;
  if (d1 == d2)
    return fail(ERR_RUNTIME, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1,
                (long long)dim2);
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
GRAD(DiagonalBackward0_copy, "| self_sym_sizes:l offset:i dim1:i dim2:i")
{
  Ints sizes = num_list_at(n, 0);
  gi[0] = t_diagonal_backward(g[0], sizes, NUM(1 + sizes.n), NUM(2 + sizes.n), NUM(3 + sizes.n));
}

Tensor *t_diagonal_copy(Tensor *x, int64_t offset, int64_t d0, int64_t d1) {
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
  if (blocked(x)) return NULL;
  if (x->ndim == 1) return t_diag_embed(x, offset, 0, 1);
  if (x->ndim == 2) return t_diagonal_copy(x, offset, 0, 1);
  return fail(ERR_RUNTIME, "diag(): Supports 1D or 2D tensors. Got %dD", x->ndim);
}

Tensor *t_diagflat(Tensor *x, int64_t offset) {
  return t_diag(t_reshape(t_contiguous(x), 1, (int64_t[]){-1}), offset);
}

static Tensor *fill_apart(Tensor *x, int64_t start, int64_t count, int64_t stride, Tensor *value) {
  return t_fill_(t_as_strided(x, 1, &count, &stride, x->offset + start), value);
}

Tensor *t_fill_diagonal_(Tensor *x, Tensor *value, bool wrap) {
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

/* ------------------------------------------------------------ products of sets */

Tensor *t_kron(Tensor *a, Tensor *b) {
  if (blocked(a) || blocked(b)) return NULL;
  int n = a->ndim > b->ndim ? a->ndim : b->ndim;
  int64_t sa[MAX_DIM], sb[MAX_DIM], total[MAX_DIM];
  if (2 * n > MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  for (int i = 0; i < n; i++) {
    int own_a = i - (n - a->ndim), own_b = i - (n - b->ndim);
    sa[2 * i] = own_a < 0 ? 1 : a->sizes[own_a];
    sb[2 * i + 1] = own_b < 0 ? 1 : b->sizes[own_b];
    sa[2 * i + 1] = sb[2 * i] = 1;
    total[i] = sa[2 * i] * sb[2 * i + 1];
  }
  Tensor *y = t_mul(t_reshape(a, 2 * n, sa), t_reshape(b, 2 * n, sb));
  return t_unsafe_view(y, n, total);
}

static Tensor *not_a_vector(const Tensor *x) {
  return fail(ERR_RUNTIME, "Expect a 1D vector, but got shape %s", shape_text(x));
}

Tensor *t_cartesian_prod(Tensors ts) {
  if (!check_tensors(ts)) return NULL;
  for (int i = 0; i < ts.n; i++)
    if (ts.v[i]->ndim != 1) return not_a_vector(ts.v[i]);
  if (ts.n == 1) return ts.v[0];
  Tensor **grid = t_meshgrid(ts, "ij");
  for (int i = 0; grid && i < ts.n; i++) grid[i] = t_flatten(grid[i], 0, -1);
  return failed() ? NULL : t_stack((Tensors){ts.n, grid}, 1);
}

/* How many ways to choose r of n; -1 on overflow. */
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
  if (!y || !now) return NULL;
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
  if (blocked(x)) return NULL;
  if (x->ndim != 1) return not_a_vector(x);
  if (r < 0) return fail(ERR_RUNTIME, "Expect a non-negative number, but got %lld", (long long)r);
  if (r == 0) return tensor_empty(1, (int64_t[]){0}, (DType)x->dtype);
  if (r > INT16_MAX) return fail(ERR_NOT_IMPLEMENTED, "combinations: r is too large");
  Tensor *rows = choice_indices(x->numel, r, again), **each = scratch_array(r, sizeof *each);
  for (int64_t i = 0; rows && each && i < r; i++)
    each[i] = t_index_select(x, 0, t_select(rows, 0, i));
  return failed() ? NULL : t_stack((Tensors){(int32_t)r, each}, 1);
}

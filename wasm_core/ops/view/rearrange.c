/* Ops that move elements: flip, roll, rot90, repeat, tile, repeat_interleave. */
#include "ground/memory.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"
#include "view_rows.h"

#define NUM(k) (n->numbers[k].i)

/* ------------------------------------------------------------ flip, roll, rot90 */

GRAD(FlipBackward0, "| dims:ints")
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
  OP_ENTERED(t_flip, "flip", x, dims);
  bool marked[MAX_DIM];
  if (blocked(x) || !view_dims_mark(x->ndim, dims, marked)) return NULL;
  Node *n = node_new(&FlipBackward0, 0, 1 + dims.n, x, NULL);
  num_list(n, 0, dims.n, dims.v);
  Tensor *y = tensor_empty_like(x, tensor_dtype(x));
  return set_history(tensor_copy_data(y, backwards(x, marked)) ? y : NULL, n);
}

/* fliplr: 1, flipud: 0 */
Tensor *t_flip_side(Tensor *x, int64_t dim) {
  OP_ENTERED(t_flip_side, "flip", x, dim);
  if (blocked(x)) return NULL;
  if (x->ndim <= dim) return fail(ERR_RUNTIME, "Input must be >= %lld-d.", (Shown)dim + 1);
  return t_flip(x, (Ints){1, &dim});
}

/* Numbers: shifts, then dims. */
GRAD(RollBackward0, "| shifts:ints dims:ints")
{
  Ints shifts = num_list_at(n, 0), dims = num_list_at(n, 1 + shifts.n);
  int64_t *back = scratch_array(shifts.n ? shifts.n : 1, sizeof *back);
  for (int i = 0; back && i < shifts.n; i++) back[i] = -shifts.v[i];
  if (back) gi[0] = t_roll(g[0], (Ints){shifts.n, back}, dims);
}

static Tensor *roll_dim(Tensor *x, int64_t shift, int64_t dim) {
  int64_t size = x->sizes[dim];
  Tensor *y = tensor_empty(x->ndim, x->sizes, tensor_dtype(x));
  if (size == 0) return y;
  int64_t at = shift % size < 0 ? shift % size + size : shift % size;
  bool done = tensor_copy_data(tensor_part(y, dim, at, size - at),
                               tensor_part(x, dim, 0, size - at)) &&
              tensor_copy_data(tensor_part(y, dim, 0, at), tensor_part(x, dim, size - at, at));
  return done ? y : NULL;
}

static Tensor *roll_data(Tensor *x, Ints shifts, const int64_t *dims, int n_dims) {
  if (n_dims > 0) {
    Tensor *y = x;
    for (int i = 0; y && i < n_dims; i++) y = roll_dim(y, shifts.v[i], dims[i]);
    return y;
  }
  Tensor *copy = tensor_empty(x->ndim, x->sizes, tensor_dtype(x));
  if (!tensor_copy_data(copy, x)) return NULL;
  int64_t one = 1;
  Tensor *y = roll_dim(tensor_alias(copy, 1, &copy->numel, &one, 0), shifts.v[0], 0);
  return y && tensor_set_geometry(y, x->ndim, x->sizes, copy->strides, 0) ? y : NULL;
}

Tensor *t_roll(Tensor *x, Ints shifts, Ints dims) {
  OP_ENTERED(t_roll, "roll", x, shifts, dims);
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
                  (Shown)dims.v[i]);
    if ((at[i] = dim_wrap(dims.v[i], x->ndim)) < 0) return NULL;
  }
  Node *n = node_new(&RollBackward0, 0, 2 + shifts.n + n_dims, x, NULL);
  num_list(n, 0, shifts.n, shifts.v);
  num_list(n, 1 + shifts.n, n_dims, dims.v);
  return set_history(roll_data(x, shifts, at, n_dims), n);
}

GRAD(Rot90Backward0, "| k:int dims:ints")
{ gi[0] = t_rot90(g[0], -NUM(0), num_list_at(n, 1)); }

static Tensor *rot90_data(Tensor *x, int64_t k, int64_t d0, int64_t d1) {
  if (k == 0) return t_clone_format(x, FORMAT_CONTIGUOUS);
  if (k == 2) return t_flip(x, (Ints){2, (int64_t[]){d0, d1}});
  Tensor *y = t_flip(x, (Ints){1, k == 1 ? &d1 : &d0});
  Tensor *v = t_transpose(y, d0, d1);
  return v && tensor_set_geometry(y, v->ndim, v->sizes, v->strides, v->offset) ? y : NULL;
}

Tensor *t_rot90(Tensor *x, int64_t k, Ints dims) {
  OP_ENTERED(t_rot90, "rot90", x, k, dims);
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
                (Shown)dims.v[0], (Shown)dims.v[1]);
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
GRAD(RepeatBackward0, "| self_sym_sizes:ints repeats:ints")
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
  Tensor *y = tensor_empty(repeats.n, total, tensor_dtype(x));
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
  OP_ENTERED(t_repeat, "repeat", x, repeats);
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
  for (int i = 0; i < repeats.n; i++) /* for dimensions without elements */
    if (repeats.v[i] < 0)
      return fail(ERR_RUNTIME, "Trying to create tensor with negative dimension %lld: %s",
                  (Shown)repeats.v[i], sizes_text(repeats.n, repeats.v));
  Node *n = node_new(&RepeatBackward0, 0, 2 + x->ndim + repeats.n, x, NULL);
  num_list(n, 0, x->ndim, x->sizes);
  num_list(n, 1 + x->ndim, repeats.n, repeats.v);
  return set_history(repeat_data(x, repeats, total), n);
}

Tensor *t_tile(Tensor *x, Ints dims) {
  OP_ENTERED(t_tile, "tile", x, dims);
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
         dtype_no_kernel("repeat_interleave_cpu", tensor_dtype(repeats));
}

/* output_size -1: any */
Tensor *t_repeat_indices(Tensor *repeats, int64_t output_size) {
  int64_t total = 0, at = 0;
  if (blocked(repeats) || !check_repeats(repeats) || !(repeats = tensor_settled(repeats)))
    return NULL;
  if (tensor_absent(repeats))
    return output_size >= 0
               ? tensor_empty(1, &output_size, tensor_dtype(repeats))
               : fail(ERR_RUNTIME, "cannot repeat_interleave a meta tensor without output_size");
  for (int64_t i = 0; i < repeats->numel; i++) {
    int64_t times = tensor_get_i(repeats, i * repeats->strides[0]);
    if (times < 0) return fail(ERR_RUNTIME, "repeats can not be negative");
    if (__builtin_add_overflow(total, times, &total))
      return fail(ERR_RUNTIME, "repeat_interleave: the repeats are more than can be counted");
  }
  if (output_size >= 0 && output_size != total)
    return fail(ERR_RUNTIME, "allocated size does not match required size");
  Tensor *y = tensor_empty(1, &total, tensor_dtype(repeats));
  char *out = y ? tensor_data(y) : NULL;
  int64_t width = dtype_bytes(tensor_dtype(repeats));
  for (int64_t i = 0; y && i < repeats->numel; i++)
    for (int64_t k = tensor_get_i(repeats, i * repeats->strides[0]); k > 0; k--)
      element_store_i(out + width * at++, tensor_dtype(y), i);
  return y;
}

/* dim NULL: flat */
Tensor *t_repeat_interleave(Tensor *x, Tensor *repeats, const int64_t *dim_, int64_t output_size) {
  OP_ENTERED(t_repeat_interleave, "repeat_interleave", x, repeats, dim_, output_size);
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
                "%lld and input.size(%lld) = %lld",
                (Shown)repeats->sizes[0], (Shown)(dim_ ? *dim_ : 0), (Shown)size);
  return t_index_select(x, dim, t_repeat_indices(repeats, output_size));
}

Tensor *t_repeat_interleave_int(Tensor *x, int64_t times, const int64_t *dim_,
                                int64_t output_size) {
  OP_ENTERED(t_repeat_interleave_int, "repeat_interleave", x, times, dim_, output_size);
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
                (Shown)total, (Shown)output_size);
  if (x->ndim == MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  for (int i = 0; i <= x->ndim; i++)
    sizes[i] = i == dim + 1 ? times : x->sizes[i <= dim ? i : i - 1];
  Tensor *each = t_clone_format(t_expand(t_unsqueeze(x, dim + 1), x->ndim + 1, sizes),
                                FORMAT_CONTIGUOUS);
  return t_flatten(each, dim, dim + 1);
}

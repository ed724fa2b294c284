/* Ops made of views: names, splits, broadcasts, and changes of geometry in place.
 *
 * Ops composed of the views of view.c record themselves there. Only ops that give several views at
 * once (split, unbind) have nodes of their own, whose gradients join the pieces. */
#include "ops/view/shape.h"

#include <string.h>

#include "ground/memory.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "ops/view/view.h"
#include "tape/forward.h"
#include "view_rows.h"

bool shape_check_tensors(Tensors ts) {
  if (failed()) return false;
  for (int i = 0; i < ts.n; i++)
    if (!ts.v[i])
      return fail(ERR_TYPE, "expected Tensor as element %d in argument 0, but got NoneType", i),
             false;
  return true;
}

/* ------------------------------------------------------------ one view */

Tensor *t_reshape_ints(Tensor *x, Ints sizes) { return t_reshape(x, sizes.n, sizes.v); }
Tensor *t_view_ints(Tensor *x, Ints sizes) { return t_view(x, sizes.n, sizes.v); }
Tensor *t_expand_ints(Tensor *x, Ints sizes) { return t_expand(x, sizes.n, sizes.v); }
Tensor *t_reshape_as(Tensor *x, Tensor *like) {
  VIEW_ENTERED(t_reshape_as, "reshape_as", x, like);
  return blocked(like) ? NULL : t_reshape(x, like->ndim, like->sizes);
}
Tensor *t_expand_as(Tensor *x, Tensor *like) {
  VIEW_ENTERED(t_expand_as, "expand_as", x, like);
  return blocked(like) ? NULL : t_expand(x, like->ndim, like->sizes);
}
Tensor *t_ravel(Tensor *x) { return t_reshape(t_contiguous(x), 1, (int64_t[]){-1}); }

static Tensor *indivisible(Ints sizes, int64_t dim, int64_t have) {
  return fail(ERR_RUNTIME,
              "unflatten: Provided sizes %s don't multiply up to the size of dim %lld (%lld) in "
              "the input tensor",
              sizes_text(sizes.n, sizes.v), (Shown)dim, (Shown)have);
}

Tensor *t_unflatten(Tensor *x, int64_t dim, Ints sizes) {
  VIEW_ENTERED(t_unflatten, "unflatten", x, dim, sizes);
  int64_t piece[MAX_DIM], whole[MAX_DIM], known = 1;
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  if (sizes.n <= 0) return fail(ERR_RUNTIME, "unflatten: sizes must be non-empty");
  if (x->ndim == 0)
    return fail(ERR_RUNTIME, "unflatten got an unexpected error:\nDimension specified as 0 but "
                             "tensor has no dimensions");
  if (x->ndim - 1 + sizes.n > MAX_DIM)
    return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  int inferred = 0;
  for (int i = 0; i < sizes.n; i++) {
    inferred += sizes.v[i] == -1;
    if (sizes.v[i] < -1)
      return fail(ERR_RUNTIME,
                  "unflatten got an unexpected error:\ninvalid shape dimension %lld at index %d of "
                  "shape %s",
                  (Shown)sizes.v[i], i, sizes_text(sizes.n, sizes.v));
    if (sizes.v[i] >= 0 && __builtin_mul_overflow(known, sizes.v[i], &known))
      return indivisible(sizes, dim, x->sizes[dim]);
  }
  if (inferred > 1)
    return fail(ERR_RUNTIME,
                "unflatten got an unexpected error:\nonly one dimension can be inferred");
  if (inferred ? known == 0 || x->sizes[dim] % known : known != x->sizes[dim])
    return indivisible(sizes, dim, x->sizes[dim]);
  if (!view_infer_size(sizes.n, sizes.v, x->sizes[dim], piece)) return NULL;
  memcpy(whole, x->sizes, (size_t)dim * sizeof *whole);
  memcpy(whole + dim, piece, (size_t)sizes.n * sizeof *whole);
  memcpy(whole + dim + sizes.n, x->sizes + dim + 1, (size_t)(x->ndim - dim - 1) * sizeof *whole);
  return t_view(x, x->ndim - 1 + sizes.n, whole);
}

/* Tensor.T */
Tensor *t_reversed(Tensor *x) {
  ANY_ENTERED(t_reversed, "numpy_T", x);
  int64_t dims[MAX_DIM];
  if (blocked(x)) return NULL;
  if (x->ndim != 2)
    WARN_ONCE(
        "%s",
        x->ndim == 0
            ? "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases."
            : "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
              "deprecated and it will throw an error in a future release. Consider `x.mT` to "
              "transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` "
              "to reverse the dimensions of a tensor.");
  for (int i = 0; i < x->ndim; i++) dims[i] = x->ndim - 1 - i;
  return t_permute(x, (Ints){x->ndim, dims});
}

/* mT and, with `conj`, mH and adjoint; messages use their names. */
Tensor *t_matrix_transpose(Tensor *x, bool conj, const char *name, const char *deprecated) {
  ANY_ENTERED(t_matrix_transpose, "transpose", x, conj, name, deprecated);
  if (blocked(x)) return NULL;
  if (x->ndim == 1)
    return fail(ERR_RUNTIME,
                "tensor.%s is only supported on matrices or batches of matrices. Got 1-D tensor.",
                name);
  if (x->ndim > 1) x = t_transpose(x, -2, -1);
  if (x && x->ndim > 1) return conj ? t_conj(x) : x;
  static const char *last;
  if (last != deprecated) warn_user("%s", last = deprecated);
  return conj ? t_conj(x) : x;
}

Tensor *t_matrix_H(Tensor *x) {
  ANY_ENTERED(t_matrix_H, "matrix_H", x);
  if (blocked(x)) return NULL;
  if (x->ndim == 2) return t_conj(t_transpose(x, -2, -1));
  if (x->ndim == 0)
    return t_matrix_transpose(x, true, "H",
                              "Tensor.H is deprecated on 0-D tensors. Consider using x.conj().");
  return fail(ERR_RUNTIME,
              "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.%s", x->ndim,
              x->ndim > 2 ? " For batches of matrices, consider using tensor.mH" : "");
}

static bool moved_dims(const Tensor *x, Ints from, int64_t *at, bool *taken, const char *which) {
  for (int i = 0; i < from.n; i++) {
    if ((at[i] = dim_wrap(from.v[i], x->ndim)) < 0) return false;
    if (taken[at[i]]) {
      fail(ERR_RUNTIME, "movedim: repeated dim in `%s` (%s)", which, sizes_text(from.n, from.v));
      return false;
    }
    taken[at[i]] = true;
  }
  return true;
}

Tensor *t_movedim(Tensor *x, Ints source, Ints destination) {
  ANY_ENTERED(t_movedim, "movedim", x, source, destination);
  if (blocked(x)) return NULL;
  if (source.n != destination.n)
    return fail(ERR_RUNTIME,
                "movedim: Invalid source or destination dims: source (%s dims) should contain the "
                "same number of dims as destination (%s dims)",
                sizes_text(source.n, source.v), sizes_text(destination.n, destination.v));
  int64_t from[MAX_DIM], to[MAX_DIM], order[MAX_DIM];
  bool left[MAX_DIM + 1] = {false}, filled[MAX_DIM + 1] = {false};
  if (source.n > MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  if (!moved_dims(x, source, from, left, "source") ||
      !moved_dims(x, destination, to, filled, "destination"))
    return NULL;
  if (x->ndim == 0) return t_alias(x);
  for (int i = 0; i < source.n; i++) order[to[i]] = from[i];
  int next = 0;
  for (int i = 0; i < x->ndim; i++) {
    if (filled[i]) continue;
    while (left[next]) next++;
    order[i] = next++;
  }
  return t_permute(x, (Ints){x->ndim, order});
}

Tensor *t_atleast(Tensor *x, int ndim) {
  if (blocked(x) || x->ndim >= ndim) return blocked(x) ? NULL : x;
  if (x->ndim == 0) return t_reshape(x, ndim, (int64_t[]){1, 1, 1});
  if (ndim == 2) return t_unsqueeze(x, 0);
  return t_unsqueeze(x->ndim == 1 ? t_unsqueeze(x, 0) : x, -1);
}

void op_atleast(Call *c, Tensors ts, int ndim) {
  Tensor **out = shape_check_tensors(ts) ? scratch_array(ts.n > 0 ? ts.n : 1, sizeof *out) : NULL;
  for (int i = 0; out && i < ts.n; i++) out[i] = t_atleast(ts.v[i], ndim);
  if (out) ret_tensors(c, ts.n > 0 ? ts.n : 0, out);
}

/* ------------------------------------------------------------ other types over the same bytes */

static bool check_retype(const Tensor *x, DType d, int64_t ratio) {
  const char *from = legacy(x), *to = dtype_info[d].legacy;
  bool wider = dtype_bytes(d) > dtype_bytes(tensor_dtype(x));
#define RETYPE_ERROR(what, got)                                                                   \
  return fail(ERR_RUNTIME,                                                                        \
              "self." what " to view %s as %s (different element sizes), but got %lld", from, to, \
              (Shown)(got)),                                                                      \
         false
#define RETYPE_DIVISIBLE(what, got)                                                                \
  if ((got) % ratio)                                                                               \
  return fail(ERR_RUNTIME,                                                                         \
              "self.%s must be divisible by %lld to view %s as %s (different element sizes), but " \
              "got %lld",                                                                          \
              what, (Shown)ratio, from, to, (Shown)(got)),                                         \
         false
  if (x->ndim == 0)
    return fail(ERR_RUNTIME, "self.dim() cannot be 0 to view %s as %s (different element sizes)",
                from, to),
           false;
  int last = x->ndim - 1;
  if (wider) {
    RETYPE_DIVISIBLE("size(-1)", x->sizes[last]);
    RETYPE_DIVISIBLE("storage_offset()", x->offset);
  }
  if (x->strides[last] != 1) RETYPE_ERROR("stride(-1) must be 1", x->strides[last]);
  for (int i = 0; wider && i < last; i++)
    if (x->strides[i] % ratio)
      return fail(ERR_RUNTIME,
                  "self.stride(%d) must be divisible by %lld to view %s as %s (different element "
                  "sizes), but got %lld",
                  i, (Shown)ratio, from, to, (Shown)x->strides[i]),
             false;
  return true;
}

Tensor *t_view_dtype(Tensor *x, DType d) {
  VIEW_ENTERED(t_view_dtype, "view", x, d);
  if (blocked(x)) return NULL;
  if (d != tensor_dtype(x) && x->flags & FLAGS_LAZY)
    return fail(ERR_RUNTIME,
                "torch.Tensor.view is not supported for %s when converting to a different dtype.",
                x->flags & FLAG_CONJ ? "conjugate view tensors" : "tensors with negative bit set");
  int64_t have = dtype_bytes(tensor_dtype(x)), want = dtype_bytes(d),
          ratio = have > want ? have / want : want / have;
  if (ratio != 1 && !check_retype(x, d, ratio)) return NULL;
  int64_t sizes[MAX_DIM], strides[MAX_DIM];
  for (int i = 0; i < x->ndim; i++) {
    bool last = i == x->ndim - 1;
    sizes[i] = !last ? x->sizes[i] : have > want ? x->sizes[i] * ratio : x->sizes[i] / ratio;
    strides[i] = last ? x->strides[i] : have > want ? x->strides[i] * ratio : x->strides[i] / ratio;
  }
  Tensor *v = tensor_alias(x, x->ndim, sizes, strides,
                           have > want ? x->offset * ratio : x->offset / ratio);
  if (!v) return NULL;
  if (d != tensor_dtype(x)) x->storage->retyped = true;
  v->dtype = (uint8_t)d;
  tensor_share_version(v, x);
  return v;
}

/* ------------------------------------------------------------ several views */

/* A node cannot have more outputs, or numbers for them; beyond that, each is a view by itself. */
static bool too_many_for_a_node(const Tensor *x, int64_t count) {
  return count > UINT16_MAX - 2 * MAX_DIM && tensor_tracked(x);
}

/* Consecutive views of x along dim, of the given lengths, all of them outputs of n. */
static Tensor **pieces(Tensor *x, int64_t dim, int count, const int64_t *lengths, Node *n) {
  Tensor **out = scratch_array(count ? count : 1, sizeof *out);
  int64_t sizes[MAX_DIM], at = 0;
  bool apart = too_many_for_a_node(x, count);
  if (!out || !count || apart) node_drop(n);
  if (!out) return NULL;
  if (apart) {
    for (int k = 0; k < count && !failed(); at += lengths[k++])
      out[k] = t_slice(x, dim, at, at + lengths[k], 1);
    return failed() ? NULL : out;
  }
  memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
  for (int k = 0; k < count; k++) {
    sizes[dim] = lengths[k];
    Tensor *v = tensor_alias(x, x->ndim, sizes, x->strides, x->offset + at * x->strides[dim]);
    out[k] = set_history_at(record_view(x, v, NULL, VIEW_MULTI_OUTPUT), n, k);
    if (!out[k]) return NULL;
    at += lengths[k];
  }
  return out;
}

/* Joins the gradients of pieces; zeros where a piece was not used. */
static Tensor *join_gradients(Node *n, Tensor **g, Ints sizes, int64_t dim,
                              const int64_t *lengths) {
  Tensor **all = scratch_array(n->n_outputs, sizeof *all);
  int64_t piece[MAX_DIM];
  if (!all) return NULL;
  memcpy(piece, sizes.v, (size_t)sizes.n * sizeof *piece);
  for (int k = 0; k < n->n_outputs; k++) {
    piece[dim] = lengths[k];
    all[k] = g[k] ? g[k] : tensor_zeros(sizes.n, piece, output_dtype(&n->outputs[k]));
  }
  return t_cat((Tensors){n->n_outputs, all}, dim);
}

/* The numbers of both nodes: sizes of self, dim, then the argument. */
static int64_t *even_lengths(int64_t size, int64_t step, int *count) {
  int64_t n = step == 0 || size == 0 ? 1 : 1 + (size - 1) / step,
          *lengths = scratch_array(n, sizeof *lengths);
  *count = lengths ? (int)n : 0;
  for (int k = 0; k < *count; k++) lengths[k] = k < *count - 1 ? step : size - step * (*count - 1);
  return lengths;
}

GRAD(SplitBackward0, "| self_sym_sizes:ints dim:int split_size:int")
{
  Ints sizes = num_list_at(n, 0);
  int64_t dim = n->numbers[sizes.n + 1].i, step = n->numbers[sizes.n + 2].i;
  int count;
  int64_t *lengths = even_lengths(sizes.v[dim], step, &count);
  if (lengths) gi[0] = join_gradients(n, g, sizes, dim, lengths);
}

GRAD(SplitWithSizesBackward0, "| self_sym_sizes:ints dim:int split_sizes:ints")
{
  Ints sizes = num_list_at(n, 0);
  gi[0] = join_gradients(n, g, sizes, n->numbers[sizes.n + 1].i, num_list_at(n, sizes.n + 2).v);
}

static Node *split_node(const NodeType *type, Tensor *x, int64_t dim, int n_rest,
                        const int64_t *rest) {
  Node *n = node_new(type, 0, 2 + x->ndim + n_rest, x, NULL);
  num_list(n, 0, x->ndim, x->sizes);
  num_i(n, 1 + x->ndim, dim);
  for (int i = 0; i < n_rest; i++) num_i(n, 2 + x->ndim + i, rest[i]);
  return n;
}

static void ret_pieces(Call *c, int count, Tensor **out) {
  if (out) ret_tensors(c, count, out);
}

void op_split(Call *c, Tensor *x, int64_t step, int64_t dim) {
  int count;
  if (blocked(x)) return;
  if (x->ndim == 0) return (void)fail(ERR_RUNTIME, "split expects at least a 1-dimensional tensor");
  if (step < 0)
    return (void)fail(ERR_RUNTIME,
                      "split expects split_size be non-negative, but got split_size=%lld",
                      (Shown)step);
  if ((dim = dim_wrap(dim, x->ndim)) < 0) return;
  if (step == 0 && x->sizes[dim])
    return (void)fail(
        ERR_RUNTIME,
        "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
        (Shown)x->sizes[dim]);
  int64_t *lengths = even_lengths(x->sizes[dim], step, &count);
  if (lengths)
    ret_pieces(c, count,
               pieces(x, dim, count, lengths, split_node(&SplitBackward0, x, dim, 1, &step)));
}

void op_split_sizes(Call *c, Tensor *x, Ints lengths, int64_t dim) {
  if (blocked(x)) return;
  if (x->ndim == 0) return (void)fail(ERR_RUNTIME, "split expects at least a 1-dimensional tensor");
  if ((dim = dim_wrap(dim, x->ndim)) < 0) return;
  int64_t *rest = scratch_array(lengths.n + 1, sizeof *rest), sum = 0;
  if (!rest) return;
  rest[0] = lengths.n;
  for (int i = 0; i < lengths.n; i++) {
    if (lengths.v[i] < 0)
      return (void)fail(ERR_RUNTIME,
                        "split_with_sizes expects split_sizes have only non-negative entries, but "
                        "got split_sizes=%s",
                        sizes_text(lengths.n, lengths.v));
    sum += rest[i + 1] = lengths.v[i];
  }
  if (sum != x->sizes[dim])
    return (void)fail(ERR_RUNTIME,
                      "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's "
                      "size at dimension %lld), but got split_sizes=%s",
                      (Shown)x->sizes[dim], (Shown)dim, sizes_text(lengths.n, lengths.v));
  bool apart = too_many_for_a_node(x, lengths.n);
  Node *n = apart ? NULL : split_node(&SplitWithSizesBackward0, x, dim, lengths.n + 1, rest);
  ret_pieces(c, lengths.n, pieces(x, dim, lengths.n, lengths.v, n));
}

void op_chunk(Call *c, Tensor *x, int64_t chunks, int64_t dim) {
  if (blocked(x)) return;
  if (x->ndim == 0) return (void)fail(ERR_RUNTIME, "chunk expects at least a 1-dimensional tensor");
  if (chunks <= 0)
    return (void)fail(ERR_RUNTIME, "chunk expects `chunks` to be greater than 0, got: %lld",
                      (Shown)chunks);
  if ((dim = dim_wrap(dim, x->ndim)) < 0) return;
  int64_t size = x->sizes[dim], step = size / chunks + (size % chunks != 0);
  if (size) {
    op_split(c, x, step, dim);
    return;
  }
  int64_t *none = scratch_array(chunks, sizeof *none);
  if (!none) return;
  memset(none, 0, (size_t)chunks * sizeof *none);
  op_split_sizes(c, x, (Ints){(int32_t)chunks, none}, dim);
}

/* ------------------------------------------------------------ tensor_split and kin: plain
 * slices */

static bool check_tensor_split(const Tensor *x) {
  if (blocked(x)) return false;
  if (x->ndim) return true;
  fail(ERR_RUNTIME,
       "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  return false;
}

void op_tensor_split(Call *c, Tensor *x, int64_t sections, int64_t dim) {
  if (!check_tensor_split(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return;
  if (sections <= 0)
    return (void)fail(ERR_RUNTIME, "number of sections must be larger than 0, got %lld",
                      (Shown)sections);
  Tensor **out = scratch_array(sections, sizeof *out);
  int64_t size = x->sizes[dim], least = size / sections, longer = size % sections, at = 0;
  for (int64_t k = 0; k < sections && !failed(); k++) {
    int64_t length = least + (k < longer);
    out[k] = t_slice(x, dim, at, at + length, 1);
    at += length;
  }
  if (!failed()) ret_tensors(c, (int)sections, out);
}

void op_tensor_split_at(Call *c, Tensor *x, Ints at, int64_t dim) {
  if (!check_tensor_split(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return;
  Tensor **out = scratch_array(at.n + 1, sizeof *out);
  int64_t from = 0;
  for (int k = 0; out && k <= at.n; k++) {
    int64_t to = k < at.n ? at.v[k] : INT64_MAX;
    out[k] = t_slice(x, dim, from, to, 1);
    from = to;
  }
  if (out) ret_tensors(c, at.n + 1, out);
}

void op_tensor_split_by(Call *c, Tensor *x, Tensor *where, int64_t dim) {
  if (!check_tensor_split(x) || blocked(where)) return;
  if (where->dtype != DT_I64)
    return (void)fail(
        ERR_RUNTIME,
        "tensor_split expected tensor_indices_or_sections to have dtype of long, but got %s",
        legacy(where));
  if (where->ndim > 1)
    return (void)fail(ERR_RUNTIME,
                      "tensor_split expected tensor_indices_or_sections to be a zero-dimensional "
                      "or one-dimensional tensor, but got a tensor with %d dims",
                      where->ndim);
  if (where->ndim == 0) {
    op_tensor_split(c, x, tensor_get_i(where, 0), dim);
    return;
  }
  Tensor *flat = tensor_settled(t_contiguous(where));
  if (flat && tensor_readable(flat))
    op_tensor_split_at(
        c, x, (Ints){(int32_t)flat->numel, (const int64_t *)(const void *)tensor_data(flat)}, dim);
}

/* The dimension that hsplit, vsplit or dsplit cuts, or -1 with the error set. */
static int64_t side_dim(const Tensor *x, char side) {
  int least = side == 'h' ? 1 : side == 'v' ? 2 : 3;
  if (blocked(x)) return -1;
  if (x->ndim >= least) return side == 'h' ? x->ndim > 1 : side == 'v' ? 0 : 2;
  fail(ERR_RUNTIME,
       "torch.%csplit requires a tensor with at least %d dimension, but got a tensor with %d "
       "dimensions!",
       side, least, x->ndim);
  return -1;
}

/* side: h, v or d */
void op_side_split(Call *c, Tensor *x, int64_t sections, char side) {
  int64_t dim = side_dim(x, side);
  if (dim < 0) return;
  if (sections <= 0 || x->sizes[dim] % sections)
    return (void)fail(ERR_RUNTIME,
                      "torch.%csplit attempted to split along dimension %lld, but the size of the "
                      "dimension %lld is not divisible by the split_size %lld!",
                      side, (Shown)dim, (Shown)x->sizes[dim], (Shown)sections);
  op_tensor_split(c, x, sections, dim);
}

void op_side_split_at(Call *c, Tensor *x, Ints at, char side) {
  int64_t dim = side_dim(x, side);
  if (dim >= 0) op_tensor_split_at(c, x, at, dim);
}

/* ------------------------------------------------------------ unbind */

/* Numbers: dim, then the sizes of a slice. */
GRAD(UnbindBackward0, "| dim:int")
{
  Ints sizes = num_list_at(n, 1);
  Tensor **all = scratch_array(n->n_outputs, sizeof *all);
  if (!all) return;
  for (int k = 0; k < n->n_outputs; k++)
    all[k] = g[k] ? g[k] : tensor_zeros(sizes.n, sizes.v, output_dtype(&n->outputs[k]));
  gi[0] = t_stack((Tensors){n->n_outputs, all}, n->numbers[0].i);
}

Tensor **t_unbind(Tensor *x, int64_t dim, int64_t *count) {
  if (blocked(x)) return NULL;
  if (x->ndim == 0) return fail(ERR_INDEX, "Dimension specified as 0 but tensor has no dimensions");
  if ((dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  *count = x->sizes[dim];
  Tensor **out = scratch_array(*count ? *count : 1, sizeof *out);
  int64_t sizes[MAX_DIM], strides[MAX_DIM];
  if (!out) return NULL;
  if (by_ops || !tensor_is_strided(x) || too_many_for_a_node(x, *count)) {
    for (int64_t k = 0; k < *count && !failed(); k++) out[k] = t_select(x, dim, k);
    return failed() ? NULL : out;
  }
  for (int i = 0; i < x->ndim - 1; i++) {
    sizes[i] = x->sizes[i < dim ? i : i + 1];
    strides[i] = x->strides[i < dim ? i : i + 1];
  }
  Node *n = *count ? node_new(&UnbindBackward0, 0, 1 + x->ndim, x, NULL) : NULL;
  num_i(n, 0, dim);
  num_list(n, 1, x->ndim - 1, sizes);
  for (int64_t k = 0; k < *count; k++) {
    Tensor *v = tensor_alias(x, x->ndim - 1, sizes, strides, x->offset + k * x->strides[dim]);
    out[k] = set_history_at(record_view(x, v, NULL, VIEW_MULTI_OUTPUT), n, (int)k);
    if (!out[k]) return NULL;
  }
  return out;
}

void op_unbind(Call *c, Tensor *x, int64_t dim) {
  int64_t count = 0;
  Tensor **out = t_unbind(x, dim, &count);
  if (out) ret_tensors(c, (int)count, out);
}

/* ------------------------------------------------------------ broadcasts, grids */

/* `sizes`: the sizes of all shapes, one after the other; `ranks`: the number of sizes of each
 * shape */
void op_broadcast_shapes(Call *c, Ints sizes, Ints ranks) {
  int64_t width = 0, end = 0;
  for (int i = 0; i < ranks.n; i++) {
    width = ranks.v[i] > width ? ranks.v[i] : width;
    end = ranks.v[i] < 0 || ranks.v[i] > sizes.n - end ? INT64_MAX : end + ranks.v[i];
    if (end == INT64_MAX) return (void)fail(ERR_RUNTIME, "pygrad: the ranks do not fit the sizes");
  }
  int64_t *out = scratch_array(width + 1, sizeof *out);
  if (!out) return;
  for (int64_t k = 0; k < width; k++) out[k] = 1;
  const int64_t *size = sizes.v;
  for (int i = 0; i < ranks.n; i++)
    for (int64_t k = width - ranks.v[i]; k < width; k++, size++) {
      if (out[k] != *size && out[k] != 1 && *size != 1)
        return (void)fail(ERR_RUNTIME,
                          "Shape mismatch: objects cannot be broadcast to a single shape");
      if (out[k] == 1) out[k] = *size;
    }
  ret_ints(c, (int)width, out);
}

void op_broadcast_tensors(Call *c, Tensors ts) {
  int64_t sizes[MAX_DIM];
  int ndim = 0;
  Tensor **out = shape_check_tensors(ts) ? scratch_array(ts.n > 0 ? ts.n : 1, sizeof *out) : NULL;
  for (int i = 0; !failed() && i < ts.n; i++)
    if (!sizes_broadcast(&ndim, sizes, ts.v[i]->ndim, ts.v[i]->sizes)) return;
  for (int i = 0; out && i < ts.n; i++)
    out[i] = sizes_equal(ndim, sizes, ts.v[i]->ndim, ts.v[i]->sizes)
                 ? ts.v[i]
                 : t_expand(ts.v[i], ndim, sizes);
  if (out) ret_tensors(c, ts.n > 0 ? ts.n : 0, out);
}

static bool check_grid(Tensors ts) {
  if (!shape_check_tensors(ts)) return false;
  if (ts.n <= 0) return fail(ERR_RUNTIME, "meshgrid expects a non-empty TensorList"), false;
  if (ts.n > MAX_DIM)
    return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM), false;
  for (int i = 0; i < ts.n; i++) {
    if (ts.v[i]->ndim > 1)
      return fail(ERR_RUNTIME,
                  "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: a tensor "
                  "of size %s",
                  shape_text(ts.v[i])),
             false;
    if (ts.v[i]->dtype != ts.v[0]->dtype)
      return fail(ERR_RUNTIME, "meshgrid expects all tensors to have the same dtype"), false;
  }
  return true;
}

Tensor **t_meshgrid(Tensors ts, const char *indexing) {
  if (!check_grid(ts)) return NULL;
  if (!indexing)
    WARN_ONCE("torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
              "argument.");
  bool xy = indexing && strcmp(indexing, "xy") == 0;
  if (indexing && !xy && strcmp(indexing, "ij") != 0)
    return fail(ERR_RUNTIME,
                "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %s",
                indexing);
  Tensor **out = scratch_array(ts.n, sizeof *out);
  int64_t sizes[MAX_DIM], shape[MAX_DIM];
  bool swap = xy && ts.n > 1;
  /* Under "xy" the first two inputs trade places, and so do the first two dimensions of every
   * grid. */
  for (int i = 0; i < ts.n; i++) {
    sizes[i] = ts.v[swap && i < 2 ? 1 - i : i]->numel;
    shape[i] = 1;
  }
  for (int i = 0; out && i < ts.n; i++) {
    int at = swap && i < 2 ? 1 - i : i;
    shape[at] = sizes[at];
    out[i] = t_expand(t_view(ts.v[i], ts.n, shape), ts.n, sizes);
    shape[at] = 1;
  }
  return failed() ? NULL : out;
}

void op_meshgrid(Call *c, Tensors ts, const char *indexing) {
  Tensor **out = t_meshgrid(ts, indexing);
  if (out) ret_tensors(c, ts.n, out);
}

/* ------------------------------------------------------------ geometry in place */

/* PyTorch numbers the nodes of in-place forms apart. */
static const struct {
  const char *from, *to;
} renames[] = {
    {"TransposeBackward0", "TransposeBackward1"}, {"TBackward0", "TBackward1"},
    {"SqueezeBackward0", "SqueezeBackward3"},     {"SqueezeBackward1", "SqueezeBackward4"},
    {"SqueezeBackward2", "SqueezeBackward5"},     {"UnsqueezeBackward0", "UnsqueezeBackward1"},
    {"AsStridedBackward0", "AsStridedBackward1"}};
enum { N_RENAMES = sizeof renames / sizeof *renames };

static void rename_inplace(Tensor *v) {
  for (int i = 0; i < N_RENAMES; i++)
    if (strcmp(v->grad_fn->type->name, renames[i].from) == 0) {
      node_rename(v, renames[i].to);
      return;
    }
}

/* Gives x the geometry and the history of v, a view of x just made. No byte changes, so a view
 * keeps its base, the base keeps its history, and code that retains x's gradient keeps that of its
 * old form. */
Tensor *shape_take(Tensor *x, Tensor *v) {
  if (blocked(x) || !v) return NULL;
  if (tensor_layout(v) != tensor_layout(x))
    return fail(ERR_RUNTIME,
                "torch.transpose_: in-place transposition is not supported for %s layout",
                layout_text(x));
  if (v->storage != x->storage && tensor_is_strided(x))
    return fail(
        ERR_NOT_IMPLEMENTED,
        "pygrad: the shape of a tensor whose class has __torch_dispatch__ changes by ops that "
        "it is asked for");
  if (!tensor_take_parts(x, v) || !tensor_set_geometry(x, v->ndim, v->sizes, v->strides, v->offset))
    return NULL;
  tensor_bump_version(x);
  if (forward_on) forward_move(x, v);
  if (!v->grad_fn) return x;
  rename_inplace(v);
  Node *n = v->grad_fn;
  node_retain(n);
  node_release(x->grad_fn);
  x->grad_fn = n;
  x->output_nr = 0;
  if (tensor_is_view(x)) x->meta->view_version = tensor_version(x);
  return x;
}

Tensor *shape_take_fresh(Tensor *x, Tensor *v) {
  return x && x->form & FORM_HOSTED ? v : shape_take(x, v);
}

Tensor *shape_inplace(Tensor *x) { return !blocked(x) && history_check_inplace(x) ? x : NULL; }

/* ------------------------------------------------------------ resizing, sharing */

static bool check_resize(Tensor *x) {
  if (blocked(x)) return false;
  if (tensor_requires_grad(x)) fail(ERR_RUNTIME, "cannot resize variables that require grad");
  else if (forward_tangent(x)) fail(ERR_RUNTIME, "cannot resize variables that has a forward grad");
  return !failed();
}

Tensor *t_resize_(Tensor *x, Ints sizes, const char *format_name) {
  VIEW_ENTERED(t_resize_, "resize_", x, sizes, format_name);
  MemoryFormat format = copy_format_named(format_name, FORMAT_CONTIGUOUS);
  if (!check_resize(x)) return NULL;
  if (sizes.n > MAX_DIM)
    return fail(ERR_RUNTIME, "tensors have at most %d dimensions, but got %d", MAX_DIM, sizes.n);
  if (format == FORMAT_PRESERVE)
    return fail(ERR_RUNTIME, "Unsupported memory format for resize_: Preserve");
  bool same = sizes_equal(x->ndim, x->sizes, sizes.n, sizes.v);
  if (same && !format_name) return x;
  if (!tensor_resize(x, sizes.n, sizes.v)) return NULL;
  int64_t strides[MAX_DIM];
  if (format != FORMAT_CONTIGUOUS) {
    if (!copy_format_strides(x->ndim, x->sizes, format, strides)) return NULL;
    tensor_set_geometry(x, x->ndim, x->sizes, strides, x->offset);
  }
  if (!same) tensor_bump_version(x);
  return x;
}

Tensor *t_resize_as_(Tensor *x, Tensor *like, const char *format_name) {
  VIEW_ENTERED(t_resize_as_, "resize_as_", x, like, format_name);
  if (blocked(like)) return NULL;
  MemoryFormat format = copy_format_named(format_name, FORMAT_CONTIGUOUS);
  Tensor *y = t_resize_(x, (Ints){like->ndim, like->sizes},
                        format == FORMAT_PRESERVE ? NULL : format_name);
  if (y && format == FORMAT_PRESERVE && tensor_is_dense(like))
    tensor_set_geometry(y, y->ndim, y->sizes, like->strides, y->offset);
  return y;
}

static void refuse_set(Node *n, Tensor **g, Tensor **gi) {
  (void)n, (void)g, (void)gi;
  fail(ERR_RUNTIME, "derivative for set_ is not implemented");
}
static const NodeType node_set = {
    "torch::autograd::NotImplemented", refuse_set, "", false, NULL, NULL};

/* Makes x another name for v's elements; nobody else has the alias v. */
static Tensor *adopt(Tensor *x, Tensor *source, Tensor *v) {
  if (blocked(x) || !v) return NULL;
  if (x->dtype != v->dtype)
    return fail(ERR_RUNTIME, "Could not set tensor of type %s to a tensor of type %s",
                dtype_c_name(tensor_dtype(v)), dtype_c_name(tensor_dtype(x)));
  if ((x->storage->bytes->form | v->storage->bytes->form) & FORM_HOSTED)
    return fail(ERR_NOT_IMPLEMENTED,
                "pygrad: a tensor whose elements its class has, by __torch_dispatch__, has no "
                "storage to set");
  if ((x->form ^ v->form) & ~FORM_HOSTED)
    return fail(ERR_RUNTIME,
                "Attempted to set the storage of a tensor on device \"%s\" to a storage on "
                "different device \"%s\".  This is no longer allowed; the devices must match.",
                device_name(x), device_name(v));
  Node *n = node_new_list(&node_set, 0, 0, 2, (Tensor *[]){x, source});
  if (!tensor_set_geometry(x, v->ndim, v->sizes, v->strides, v->offset)) {
    node_drop(n);
    return NULL;
  }
  tensor_swap_storages(x, v);
  tensor_bump_version(x);
  /* gradients of the old x go to the old accumulator */
  if (x->meta && !x->meta->owns_accumulator) x->meta->accumulator = NULL;
  if (n) record_rebase(x, n);
  return x;
}

/* source NULL: an empty tensor */
Tensor *t_set_(Tensor *x, Tensor *source) {
  VIEW_ENTERED(t_set_, "set_", x, source);
  if (blocked(x) || !history_check_inplace_by(x, source)) return NULL;
  if (!source) return adopt(x, NULL, tensor_none_of(tensor_dtype(x)));
  return adopt(x, source,
               tensor_alias(source, source->ndim, source->sizes, source->strides, source->offset));
}

Tensor *t_set_strided_(Tensor *x, Tensor *source, int64_t offset, Ints sizes, Ints strides) {
  VIEW_ENTERED(t_set_strided_, "set_", x, source, offset, sizes, strides);
  int64_t dense[MAX_DIM], need;
  if (blocked(x) || blocked(source) || !history_check_inplace(x)) return NULL;
  if (sizes.n > MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  if (strides.n <= 0) {
    sizes_contiguous_strides(sizes.n, sizes.v, dense);
    strides = (Ints){sizes.n, dense};
  }
  if (sizes.n != strides.n)
    return fail(ERR_RUNTIME, "unequal size length (%d) and stride length (%d)", sizes.n, strides.n);
  need = sizes_numel(sizes.n, sizes.v) < 0
             ? -1
             : storage_need(sizes.n, sizes.v, strides.v, offset, tensor_dtype(source));
  if (need < 0 || !storage_grow(source->storage, need)) return NULL;
  return adopt(x, NULL, tensor_alias(source, sizes.n, sizes.v, strides.v, offset));
}

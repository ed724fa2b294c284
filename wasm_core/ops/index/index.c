/* Advanced indexing: x[i, :, j] read and written through index tensors and masks.
 *
 * A Plan says where the indexed dims of x go in the result (PyTorch's and NumPy's rule: in their
 * place if adjacent, else to the front) and holds the offset of each place. Nothing is written
 * before every index has been checked. index_subscript.c has slices, numbers and None. */
#include "ops/index/index.h"

#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "index_rows.h"
#include "ops/view/copy.h"
#include "ops/view/view.h"
#include "tape/forward.h"

/* ------------------------------------------------------------ the plan */

/* One index and the dims of x that it takes: one for numbers, its rank for a mask. */
typedef struct {
  Tensor *index; /* int64 or int32; for a mask, the offsets of its true elements */
  int dim, span;
  bool mask;
} Entry;

typedef struct {
  int n_entries, index_ndim;
  Entry entries[MAX_DIM];
  int64_t index_sizes[MAX_DIM]; /* the broadcast shape of the entries */
  int ndim, first;              /* of the result; the first of its index dims */
  int64_t sizes[MAX_DIM];
  int64_t x_strides[MAX_DIM]; /* x's strides for the result's dims, 0 for the index dims */
  Places places;
} Plan;

static bool mask_fits(const Tensor *x, const Tensor *mask, int dim) {
  for (int i = 0; i < mask->ndim; i++) {
    if (mask->sizes[i] == x->sizes[dim + i]) continue;
    fail(ERR_INDEX,
         "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s "
         "at index %d",
         shape_text(mask), i, shape_text(x), dim + i);
    return false;
  }
  return true;
}

static Tensor *offsets_of_mask(Tensor *x, Tensor *mask, int dim) {
  Tensor *m = index_mask_plain(mask);
  if (!m) return NULL;
  int64_t count = index_mask_count(m);
  Tensor *offsets = tensor_empty(1, &count, DT_I64);
  if (offsets && !tensor_absent(offsets))
    index_mask_offsets(m, x->strides + dim, count, (int64_t *)(void *)tensor_data(offsets));
  return offsets;
}

/* Fills plan->entries. Every mask and every number takes its dims of x from the left. */
static bool take_entries(Plan *plan, Tensor *x, Tensors indices) {
  int dims = 0;
  for (int i = 0; i < indices.n; i++)
    dims += indices.v[i] && is_mask(indices.v[i]) ? indices.v[i]->ndim : 1;
  if (dims > x->ndim) {
    fail(ERR_INDEX, "too many indices for tensor of dimension %d (got %d)", x->ndim, dims);
    return false;
  }
  for (int i = 0, dim = 0; i < indices.n; i++) {
    Tensor *t = indices.v[i];
    bool mask = t && is_mask(t);
    int span = mask ? t->ndim : 1;
    if (mask && t->dtype == DT_U8)
      warn_user("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
                "instead.");
    if (mask && (!mask_fits(x, t, dim) || !(t = offsets_of_mask(x, t, dim)))) return false;
    if (t && !mask && !index_dtype(t)) {
      fail(ERR_INDEX, "tensors used as indices must be long, int, byte or bool tensors");
      return false;
    }
    if (t) plan->entries[plan->n_entries++] = (Entry){t, dim, span, mask};
    dim += span;
  }
  return true;
}

/* Broadcasts t's shape into (n, sizes); false, without an error, if it cannot be. */
static bool merge_shape(int *n, int64_t *sizes, const Tensor *t) {
  if (t->ndim > *n) {
    int grow = t->ndim - *n;
    memmove(sizes + grow, sizes, (size_t)*n * sizeof *sizes);
    for (int i = 0; i < grow; i++) sizes[i] = 1;
    *n = t->ndim;
  }
  for (int i = 1; i <= t->ndim; i++) {
    int64_t *a = &sizes[*n - i], b = t->sizes[t->ndim - i];
    if (*a == 1) *a = b;
    else if (b != 1 && b != *a) return false;
  }
  return true;
}

static bool broadcast_entries(Plan *plan) {
  for (int i = 0; i < plan->n_entries; i++)
    if (!merge_shape(&plan->index_ndim, plan->index_sizes, plan->entries[i].index)) {
      char text[1024] = "";
      size_t at = 0;
      for (int k = 0; k < plan->n_entries; k++)
        for (int m = 0; m < plan->entries[k].span && at < sizeof text; m++)
          at += (size_t)snprintf(text + at, sizeof text - at, at ? ", %s" : "%s",
                                 shape_text(plan->entries[k].index));
      fail(ERR_INDEX,
           "shape mismatch: indexing tensors could not be broadcast together with shapes %s", text);
      return false;
    }
  return true;
}

static void plan_dim(Plan *plan, int64_t size, int64_t stride) {
  int d = plan->ndim++;
  if (d >= MAX_DIM) return;
  plan->sizes[d] = size;
  plan->x_strides[d] = stride;
}

/* The result's dims in order: x's free dims before the index dims, these, the free dims after. */
static bool order_dims(Plan *plan, const Tensor *x) {
  bool taken[MAX_DIM] = {false}, adjacent = plan->n_entries > 0;
  for (int i = 0; i < plan->n_entries; i++) {
    const Entry *e = &plan->entries[i];
    if (i && e[-1].dim + e[-1].span != e->dim) adjacent = false;
    for (int k = 0; k < e->span; k++) taken[e->dim + k] = true;
  }
  plan->first = adjacent ? plan->entries[0].dim : 0;
  for (int d = 0; d < plan->first; d++) plan_dim(plan, x->sizes[d], x->strides[d]);
  for (int k = 0; k < plan->index_ndim; k++) plan_dim(plan, plan->index_sizes[k], 0);
  for (int d = plan->first; d < x->ndim; d++)
    if (!taken[d]) plan_dim(plan, x->sizes[d], x->strides[d]);
  if (plan->ndim <= MAX_DIM) return true;
  fail(ERR_RUNTIME, "tensors have at most %d dimensions, but got %d", MAX_DIM, plan->ndim);
  return false;
}

static Tensor *out_of_bounds(int64_t value, int column, int64_t size) {
  if (size == 0) return fail(ERR_INDEX, "index is out of bounds for dimension with size 0");
  return fail(ERR_INDEX, "index %lld is out of bounds for dimension %d with size %lld",
              (Shown)value, column, (Shown)size);
}

/* The offset of each place from x's first element. In its message, PyTorch numbers the indexed dims
 * alone. */
static Tensor *offsets_of(const Plan *plan, const Tensor *x) {
  Tensor *at = tensor_zeros(plan->index_ndim, plan->index_sizes, DT_I64);
  for (int i = 0, column = 0; i < plan->n_entries; column += plan->entries[i++].span) {
    const Entry *e = &plan->entries[i];
    OutOfBounds bad = {0, false};
    if (e->mask) places_add(at, e->index, INT64_MAX, 1, false, &bad);
    else places_add(at, e->index, x->sizes[e->dim], x->strides[e->dim], true, &bad);
    if (bad.found) return out_of_bounds(bad.value, column, x->sizes[e->dim]);
  }
  return at;
}

/* Computes the shapes. plan_places then computes the places, and reports indices out of bounds. */
static bool plan_shape(Plan *plan, Tensor *x, Tensors indices) {
  plan->n_entries = plan->index_ndim = plan->ndim = 0;
  if (blocked(x)) return false;
  return take_entries(plan, x, indices) && broadcast_entries(plan) && order_dims(plan, x);
}

static bool plan_places(Plan *plan, Tensor *x) {
  Tensor *offsets = offsets_of(plan, x);
  if (!offsets) return false;
  int64_t strides[MAX_DIM] = {0};
  if (plan->index_ndim)
    memcpy(strides + plan->first, offsets->strides, (size_t)plan->index_ndim * sizeof *strides);
  plan->places.at = tensor_alias(offsets, plan->ndim, plan->sizes, strides, 0);
  plan->places.view = tensor_alias(x, plan->ndim, plan->sizes, plan->x_strides, x->offset);
  return plan->places.view;
}

/* ------------------------------------------------------------ the layout of a result */

/* The stride of a broadcast index in its dim d. A dim of size one counts as part of the next,
 * and an int32 index is cast, which makes a broadcast one contiguous. */
static int64_t index_stride(const Plan *plan, const Tensor *t, int d) {
  int64_t inner = 1;
  while (d + 1 < plan->index_ndim && plan->index_sizes[d] == 1) inner = plan->index_sizes[++d];
  if (t->dtype == DT_I32 && !sizes_equal(t->ndim, t->sizes, plan->index_ndim, plan->index_sizes)) {
    for (int k = d + 1; k < plan->index_ndim; k++) inner *= plan->index_sizes[k];
    return inner;
  }
  int own = d - (plan->index_ndim - t->ndim);
  if (own < 0) return 0;
  return t->sizes[own] == 1 && plan->index_sizes[d] != 1 ? 0 : inner * t->strides[own];
}

/* The stride in dim d of an operand of the read: 0 is x, then the indices, reshaped to have x's
 * free dims with size one. 0 where it does not vary. */
static int64_t operand_stride(const Plan *plan, int operand, int d) {
  if (operand == 0) return plan->x_strides[d];
  const Tensor *t = plan->entries[operand - 1].index;
  int own = d - plan->first;
  if (own >= 0 && own < plan->index_ndim) return index_stride(plan, t, own);
  if (plan->sizes[d] != 1 || plan->index_ndim == 0) return 0;
  return own < 0 ? index_stride(plan, t, 0) * plan->index_sizes[0]
                 : index_stride(plan, t, plan->index_ndim - 1);
}

/* Whether dim a belongs outside dim b: 1 yes, -1 no, 0 undecided. */
static int compare_dims(const Plan *plan, int a, int b) {
  for (int k = 0; k <= plan->n_entries; k++) {
    int64_t sa = operand_stride(plan, k, a), sb = operand_stride(plan, k, b);
    if (sa == 0 || sb == 0) continue;
    if (sa != sb) return sa < sb ? -1 : 1;
    if (plan->sizes[a] > plan->sizes[b]) return 1;
  }
  return 0;
}

/* A result with the layout that PyTorch's sorting of dimensions gives. perm: dims from the
 * innermost on. */
static Tensor *empty_result(const Plan *plan, DType dtype) {
  int perm[MAX_DIM], n = plan->ndim;
  for (int i = 0; i < n; i++) perm[i] = n - 1 - i;
  for (int i = 1; i < n; i++)
    for (int moving = i, j = i - 1; j >= 0; j--) {
      int order = compare_dims(plan, perm[j], perm[moving]);
      if (order < 0) break;
      if (order == 0) continue;
      int dim = perm[j];
      perm[j] = perm[moving];
      perm[moving] = dim;
      moving = j;
    }
  int64_t strides[MAX_DIM], step = 1;
  for (int i = 0; i < n; i++) {
    strides[perm[i]] = step;
    step *= plan->sizes[perm[i]] > 1 ? plan->sizes[perm[i]] : 1;
  }
  return tensor_empty_strided(n, plan->sizes, strides, dtype);
}

/* ------------------------------------------------------------ reading and writing */

/* The indices that a node saved, NULL for whole dims. */
static Tensors saved_indices(Node *n, Tensor **space) {
  for (int i = 0; i < n->n_saves; i++) space[i] = saved_tensor(n, i);
  return (Tensors){n->n_saves, space};
}

static void save_indices(Node *n, Tensors indices) {
  for (int i = 0; i < indices.n; i++) save(n, i, indices.v[i]);
}

static bool too_many(Tensors indices) {
  if (indices.n <= MAX_DIM) return false;
  fail(ERR_INDEX, "too many indices for tensor of dimension %d", MAX_DIM);
  return true;
}

static Tensor *put_fresh(Tensor *y, Tensor *x, Tensors indices, Tensor *value, bool accumulate);

/* dx = 0, then dx[i] += g for each place in order. */
GRAD(IndexBackward0, "indices* | self_sym_sizes:ints")
{
  Tensor *space[MAX_DIM];
  if (blocked(g[0])) return;
  Tensors indices = saved_indices(n, space);
  if (gradient_is_asked()) {
    gi[0] = t_index_put(t_new_zeros(g[0], num_list_at(n, 0)), indices, g[0], true);
    return;
  }
  Tensor *zeros = index_zeros(n, 0, tensor_dtype(g[0]));
  gi[0] = put_fresh(zeros, zeros, indices, g[0], true);
}

Tensor *t_index(Tensor *x, Tensors indices) {
  OP_ENTERED(t_index, "index", x, indices);
  Plan plan;
  if (blocked(x) || too_many(indices) || !plan_shape(&plan, x, indices) || !plan_places(&plan, x))
    return NULL;
  Node *n = node_new(&IndexBackward0, indices.n, 1 + x->ndim, x, NULL);
  save_indices(n, indices);
  if (n) num_list(n, 0, x->ndim, x->sizes);
  Tensor *y = empty_result(&plan, tensor_dtype(x));
  return set_history(places_read(plan.places, y) ? y : NULL, n);
}

/* ------------------------------------------------------------ with a mask */

/* Clamps indices to the bounds, since those outside may be masked out. */
static bool clamp_indices(Tensor *x, Tensors indices, Tensor **out) {
  static const char *const op = "_unsafe_masked_index";
  if (too_many(indices)) return false;
  if (indices.n > x->ndim)
    fail(ERR_INDEX, "too many indices for tensor of dimension %d (got %d)", x->ndim, indices.n);
  for (int i = 0; i < indices.n && !failed(); i++) {
    Tensor *index = out[i] = indices.v[i];
    if (!index) fail(ERR_TYPE, "expected Tensor as element %d in argument 2, but got NoneType", i);
    else if (!index_dtype(index))
      fail(ERR_RUNTIME, "%s found unexpected index type %s", op, legacy(index));
    out[i] = t_clamp(index, tensor_wrapped_i(-x->sizes[i]), tensor_wrapped_i(x->sizes[i] - 1));
  }
  return !failed();
}

/* The result for an empty x, with all indices masked out. */
static Tensor *nothing_but(Tensor *x, Tensors indices, Tensor *fill) {
  int64_t sizes[MAX_DIM];
  Tensor *zeros[MAX_DIM];
  for (int i = 0; i < x->ndim; i++) sizes[i] = i < indices.n ? 1 : x->sizes[i];
  for (int i = 0; i < indices.n; i++) zeros[i] = indices.v[i] ? t_zeros_like(indices.v[i]) : NULL;
  Tensor *y = t_index(tensor_zeros(x->ndim, sizes, tensor_dtype(x)), (Tensors){indices.n, zeros});
  return y ? t_masked_fill(y, t_ones_like(t_to(y, DT_BOOL)), fill) : NULL;
}

static void save_masked(Node *n, Tensor *mask, Tensors indices) {
  if (mask) save(n, 0, mask);
  for (int i = 0; i < indices.n; i++) save(n, 1 + i, indices.v[i]);
}
static Tensors noted_indices(Node *n, Tensor **space) {
  for (int i = 1; i < n->n_saves; i++) space[i - 1] = saved_tensor(n, i);
  return (Tensors){n->n_saves - 1, space};
}

GRAD(UnsafeMaskedIndexBackward0, "mask indices* | self_sym_sizes:ints")
{
  Tensor *space[MAX_DIM];
  if (blocked(g[0])) return;
  Tensor *zeros = index_zeros(n, 0, tensor_dtype(g[0]));
  gi[0] = t_unsafe_masked_index_put_accumulate(zeros, saved_tensor(n, 0), noted_indices(n, space),
                                               g[0]);
}

/* x[indices] where the mask is true, `fill` elsewhere. */
Tensor *t_unsafe_masked_index(Tensor *x, Tensor *mask, Tensors indices, Tensor *fill) {
  OP_ENTERED(t_unsafe_masked_index, "_unsafe_masked_index", x, mask, indices, fill);
  Tensor *ends[MAX_DIM], *y = NULL;
  if (blocked(x, mask, fill) || !clamp_indices(x, indices, ends)) return NULL;
  if (!indices.n) return fail(ERR_INDEX, "at least one index must be provided");
  Node *n = node_new(&UnsafeMaskedIndexBackward0, 1 + indices.n, 1 + x->ndim, x, NULL);
  save_masked(n, mask, indices);
  if (n) num_list(n, 0, x->ndim, x->sizes);
  WITHOUT_GRAD_BLOCK {
    y = x->numel ? t_masked_fill(t_index(x, (Tensors){indices.n, ends}), t_logical_not(mask), fill)
                 : nothing_but(x, indices, fill);
  }
  return set_history(y, n);
}

GRAD(UnsafeMaskedIndexPutAccumulateBackward0, "mask indices*")
{
  Tensor *space[MAX_DIM];
  if (blocked(g[0])) return;
  gi[0] = g[0];
  if (needs(n, 1))
    gi[1] = t_unsafe_masked_index(g[0], saved_tensor(n, 0), noted_indices(n, space),
                                  tensor_wrapped_i(0));
}

/* x with values added at its indices where the mask is true. */
Tensor *t_unsafe_masked_index_put_accumulate(Tensor *x, Tensor *mask, Tensors indices,
                                             Tensor *values) {
  OP_ENTERED(t_unsafe_masked_index_put_accumulate, "_unsafe_masked_index_put_accumulate", x, mask,
             indices, values);
  Tensor *ends[MAX_DIM], *y = NULL;
  if (blocked(x, mask, values)) return NULL;
  if (!x->numel) return t_clone(x);
  if (!clamp_indices(x, indices, ends)) return NULL;
  Node *n = node_new(&UnsafeMaskedIndexPutAccumulateBackward0, 1 + indices.n, 0, x, values, NULL);
  save_masked(n, needs(n, 1) ? mask : NULL, indices);
  WITHOUT_GRAD_BLOCK {
    values = t_masked_fill(values, t_logical_not(mask), tensor_wrapped_i(0));
    y = t_index_put(x, (Tensors){indices.n, ends}, values, true);
  }
  return set_history(y, n);
}

/* ------------------------------------------------------------ writing */

/* y[i] = v: dy passes where nothing was put; v gets the gradient at its places. y[i] += v: all of
 * dy passes. */
GRAD_AND_TANGENT(IndexPutBackward0, "indices* | accumulate:bool") {
  Tensor *space[MAX_DIM];
  if (blocked(g[0])) return;
  Tensors indices = saved_indices(n, space);
  if (needs(n, 0))
    gi[0] = n->numbers[0].i ? g[0] : t_index_put(g[0], indices, index_zero(g[0]), false);
  if (needs(n, 1)) gi[1] = t_index(g[0], indices);
}
TANGENT(IndexPutBackward0) {
  Tensor *space[MAX_DIM];
  return t_index_put(t[0] ? t[0] : t_zeros_like(y), saved_indices(n, space),
                     t[1] ? t[1] : index_zero(y), n->numbers[0].i);
}

static Node *put_node(Tensor *x, Tensors indices, Tensor *value, bool accumulate) {
  Node *n = node_new(&IndexPutBackward0, indices.n, 1, x, value, NULL);
  save_indices(n, indices);
  num_i(n, 0, accumulate);
  return n;
}

/* Writing a single element through one mask alone takes any dtype, as masked_fill does. */
static bool fills_mask(Tensors indices, const Tensor *value) {
  const Tensor *mask = NULL;
  for (int i = 0; i < indices.n; i++) {
    if (!indices.v[i]) continue;
    if (mask || !is_mask(indices.v[i])) return false;
    mask = indices.v[i];
  }
  return mask && value->numel == 1;
}

/* The value in x's type, or the error if it may not be put there. */
static Tensor *put_value(const Plan *plan, const Tensor *x, Tensors indices, Tensor *value,
                         bool accumulate) {
  bool fills = !accumulate && fills_mask(indices, value);
  if (fills)
    for (int i = 0; i < indices.n; i++)
      if (indices.v[i] && indices.v[i]->dtype == DT_U8)
        return fail(ERR_RUNTIME,
                    "masked_fill_ only supports boolean masks, but got mask with dtype %s",
                    dtype_c_name(DT_U8));
  if (is_wrapped(value) || fills)
    return index_number(tensor_alias(value, 0, NULL, NULL, value->offset), tensor_dtype(x));
  if (!sizes_expandable(value->ndim, value->sizes, plan->ndim, plan->sizes))
    return fail(ERR_RUNTIME,
                "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result "
                "of shape %s",
                shape_text(value), sizes_text(plan->ndim, plan->sizes));
  if (value->dtype == x->dtype) return value;
  return fail(ERR_RUNTIME,
              "Index put requires the source and destination dtypes match, got %s for the "
              "destination and %s for the source.",
              legacy(x), legacy(value));
}

/* x[indices] (+)= value, without history. */
static bool put(Tensor *x, Tensors indices, Tensor *value, bool accumulate) {
  Plan plan;
  if (blocked(x, value)) return false;
  for (int i = 0; i < indices.n && tensor_absent(x); i++)
    if (indices.v[i] && is_mask(indices.v[i]) && tensor_absent(indices.v[i])) return true;
  if (!plan_shape(&plan, x, indices)) return false;
  value = put_value(&plan, x, indices, value, accumulate);
  return value && plan_places(&plan, x) &&
         places_write(x, plan.places, accumulate ? PUT_ADD : PUT_SET, value);
}

/* Puts into y, a fresh tensor with x's elements, and records that. */
static Tensor *put_fresh(Tensor *y, Tensor *x, Tensors indices, Tensor *value, bool accumulate) {
  if (blocked(x, value)) return NULL;
  Node *n = put_node(x, indices, value, accumulate);
  return set_history(put(y, indices, value, accumulate) ? y : NULL, n);
}

Tensor *t_index_put(Tensor *x, Tensors indices, Tensor *value, bool accumulate) {
  OP_ENTERED(t_index_put, "index_put", x, indices, value, accumulate);
  if (blocked(x) || blocked(value) || too_many(indices)) return NULL;
  if (indices.n > x->ndim)
    return fail(ERR_INDEX, "too many indices for tensor of dimension %d (got %d)", x->ndim,
                indices.n);
  return put_fresh(index_clone(x), x, indices, value, accumulate);
}

static void warn_expanded(const Tensor *x) {
  bool expanded = false;
  for (int d = 0; d < x->ndim; d++) expanded = expanded || (x->strides[d] == 0 && x->sizes[d] > 1);
  if (expanded)
    warn_user("Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor "
              "before performing this operation. This also applies to advanced indexing e.g. "
              "tensor[indices] = tensor");
}

Tensor *t_index_put_(Tensor *x, Tensors indices, Tensor *value, bool accumulate) {
  OP_ENTERED(t_index_put_, "index_put_", x, indices, value, accumulate);
  if (blocked(x) || blocked(value) || too_many(indices) || !history_check_inplace_by(x, value))
    return NULL;
  for (int i = 0; i < indices.n; i++)
    if (indices.v[i] && !copy_check_apart(x, indices.v[i], false)) return NULL;
  if (!accumulate && !copy_check_apart(x, value, false)) return NULL;
  warn_expanded(x);
  Tensor *from = value->storage == x->storage ? index_clone(value) : value;
  Node *n = dtype_is_inexact(tensor_dtype(x)) ? put_node(x, indices, value, accumulate) : NULL;
  if (!put(x, indices, from, accumulate)) {
    node_drop(n);
    return NULL;
  }
  tensor_bump_version(x);
  record_rebase(x, n);
  return x;
}

/* ------------------------------------------------------------ masks */

/* Writes rows of indices of the elements that are not zero, as many as y has room for; returns
 * their number, -1 on failure. index_mask_offsets with a stride of 1 in one dimension alone gives a
 * column. */
static int64_t nonzero_rows(Tensor *x, Tensor *mask, int64_t count, Tensor *y) {
  if (blocked(y)) return -1;
  if (tensor_absent(y)) return y->sizes[0];
  int64_t rows = count < y->sizes[0] ? count : y->sizes[0];
  bool straight = y->strides[0] == 1;
  int64_t *column = straight ? NULL : scratch_array(rows, sizeof *column);
  if (!straight && !column) return -1;
  for (int d = 0; d < x->ndim; d++) {
    int64_t only_d[MAX_DIM] = {0}, *out = (int64_t *)(void *)tensor_data(y) + d * y->strides[1];
    only_d[d] = 1;
    index_mask_offsets(mask, only_d, rows, straight ? out : column);
    for (int64_t i = 0; i < rows && !straight; i++) out[i * y->strides[0]] = column[i];
  }
  return rows;
}

/* One row of indices for each element that is not zero; laid out column by column, like
 * PyTorch's. */
Tensor *t_nonzero(Tensor *x) {
  OP_ENTERED(t_nonzero, "nonzero", x);
  Tensor *mask = index_mask_plain(x);
  if (!mask) return NULL;
  int64_t count = index_mask_count(mask);
  Tensor *y = tensor_empty_strided(2, (int64_t[]){count, x->ndim}, (int64_t[]){1, count}, DT_I64);
  return nonzero_rows(x, mask, count, y) < 0 ? NULL : y;
}

/* The first `size` rows of nonzero; `fill` if there are fewer. */
Tensor *t_nonzero_static(Tensor *x, int64_t size, int64_t fill) {
  OP_ENTERED(t_nonzero_static, "nonzero_static", x, size, fill);
  Tensor *mask = index_mask_plain(x);
  if (!mask) return NULL;
  if (size < 0) return fail(ERR_RUNTIME, "nonzero_static: 'size' must be an non-negative integer");
  Tensor *y = tensor_empty(2, (int64_t[]){size, x->ndim}, DT_I64);
  int64_t rows = nonzero_rows(x, mask, tensor_absent(mask) ? size : index_mask_count(mask), y);
  if (rows < 0) return NULL;
  int64_t *out = (int64_t *)(void *)tensor_data(y);
  for (int64_t i = rows * x->ndim; i < y->numel; i++) out[i] = fill;
  return y;
}

void t_nonzero_tuple(Tensor *x, int *n, Tensor **columns) {
  if (blocked(x)) return;
  bool number = x->ndim == 0;
  Tensor *rows = t_nonzero(number ? tensor_alias(x, 1, (int64_t[]){1}, (int64_t[]){1}, x->offset)
                                  : x);
  *n = number ? 1 : x->ndim;
  for (int d = 0; d < *n; d++) columns[d] = t_select(rows, 1, d);
}

static bool broadcast_both(const Tensor *a, const Tensor *b, int *ndim, int64_t *sizes) {
  *ndim = a->ndim;
  memcpy(sizes, a->sizes, a->ndim * sizeof *sizes);
  return sizes_broadcast(ndim, sizes, b->ndim, b->sizes);
}

/* dx = 0, with g's elements in order where the mask is true. */
GRAD(MaskedSelectBackward0, "mask self | -:ints")
{
  Tensor *zeros = blocked(g[0]) ? NULL : index_zeros(n, 0, tensor_dtype(g[0]));
  gi[0] = t_masked_scatter(zeros, saved_tensor(n, 0), g[0]);
}

Tensor *t_masked_select(Tensor *x, Tensor *mask) {
  OP_ENTERED(t_masked_select, "masked_select", x, mask);
  if (blocked(x) || blocked(mask)) return NULL;
  if (mask->dtype != DT_BOOL)
    return fail(ERR_RUNTIME, "masked_select: expected BoolTensor for mask");
  int64_t sizes[MAX_DIM];
  int ndim;
  if (!broadcast_both(mask, x, &ndim, sizes)) return NULL;
  Node *n = node_new(&MaskedSelectBackward0, 2, 1 + ndim, x, NULL);
  save(n, 0, mask);
  save(n, 1, x);
  if (n) num_list(n, 0, ndim, sizes);
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    Tensor *whole[1] = {t_expand(mask, ndim, sizes)};
    y = t_index(t_expand(x, ndim, sizes), (Tensors){1, whole});
  }
  return set_history(y, n);
}

/* The source's used elements get g, in order; the others 0. */
GRAD(MaskedScatterBackward0, "mask | source_sym_sizes:ints")
{
  Tensor *mask = saved_tensor(n, 0);
  if (blocked(g[0])) return;
  Ints sizes = num_list_at(n, 0);
  if (needs(n, 0)) gi[0] = t_masked_fill(g[0], mask, index_zero(g[0]));
  if (!needs(n, 1)) return;
  if (tensor_absent(g[0])) {
    gi[1] = tensor_empty(sizes.n, sizes.v, tensor_dtype(g[0]));
    return;
  }
  int64_t numel = sizes_numel(sizes.n, sizes.v);
  Tensor *used = t_masked_select(g[0], mask);
  if (used && used->numel < numel) {
    int64_t rest = numel - used->numel;
    used = t_cat((Tensors){2, (Tensor *[]){used, tensor_zeros(1, &rest, tensor_dtype(used))}}, 0);
  }
  gi[1] = t_reshape(used, sizes.n, sizes.v);
}

static bool masked_scatter_fits(const Tensor *x, const Tensor *mask, const Tensor *source) {
  if (x->dtype != source->dtype) {
    fail(ERR_RUNTIME,
         "masked_scatter: expected self and source to have same dtypes but got%s and %s", legacy(x),
         legacy(source));
    return false;
  }
  if (mask->dtype == DT_BOOL) return true;
  if (mask->dtype == DT_U8)
    warn_user("masked_scatter_ received a mask with dtype torch.uint8, this behavior is now "
              "deprecated,please use a mask with dtype torch.bool instead.");
  fail(ERR_RUNTIME, "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
       legacy(mask));
  return false;
}

Tensor *t_masked_scatter(Tensor *x, Tensor *mask, Tensor *source) {
  OP_ENTERED(t_masked_scatter, "masked_scatter", x, mask, source);
  if (blocked(x) || blocked(mask) || blocked(source) || !masked_scatter_fits(x, mask, source))
    return NULL;
  int64_t sizes[MAX_DIM];
  int ndim;
  if (!broadcast_both(mask, x, &ndim, sizes)) return NULL;
  Node *n = node_new(&MaskedScatterBackward0, 1, 1 + source->ndim, x, source, NULL);
  save(n, 0, mask);
  if (n) num_list(n, 0, source->ndim, source->sizes);
  Tensor *y = NULL;
  bool done = false;
  WITHOUT_GRAD_BLOCK {
    y = index_clone_contiguous(t_expand(x, ndim, sizes));
    Tensor *whole = index_mask_plain(t_expand(mask, ndim, sizes));
    Tensor *from = t_reshape(source, 1, (int64_t[]){-1});
    int64_t count = whole && !tensor_absent(whole) ? index_mask_count(whole) : 0;
    if (from && count > from->numel)
      fail(ERR_RUNTIME, "Number of elements of source < number of ones in mask");
    done = whole && (tensor_absent(whole) ||
                     put(y, (Tensors){1, &whole}, t_narrow(from, 0, 0, count), false));
  }
  return set_history(done ? y : NULL, n);
}

/* Calls on batched tensors done at once by a dimension of their own for batches: N of images and
 * sequences, into which the batch of vmap is folded.
 *
 * `N` of a call stands in front (or second, in sequences) and is left out by some calls; what
 * comes out has it again, and so is unfolded. */
#include <string.h>

#include "call/schema.h"
#include "ground/memory.h"
#include "ops/nn/nn.h"
#include "ops/op.h"
#include "ops/view/shape.h"
#include "transforms/vmap_private.h"

/* ------------------------------------------------------------ folding */

/* The batch's dimensions go from the front to `at`, or back. */
static Tensor *with_batch_at(const Batch *b, Tensor *v, int at, bool back) {
  int64_t front[MAX_DIM], inside[MAX_DIM];
  if (!at || b->n > MAX_DIM) return v;
  for (int i = 0; i < b->n; i++) front[i] = i, inside[i] = at + i;
  Ints first = {b->n, front}, there = {b->n, inside};
  return back ? t_movedim(v, there, first) : t_movedim(v, first, there);
}

/* t's slices side by side along N, which is dimension `at` of a slice, or is missing there. */
static Tensor *fold_batch(const Batch *b, Tensor *t, int at, bool has_n) {
  Tensor *v = with_batch_at(b, batch_full(b, t), at, false);
  if (blocked(v)) return NULL;
  int64_t sizes[2 * MAX_DIM];
  int rest = at + has_n, n = at + 1 + t->ndim - rest;
  memcpy(sizes, t->sizes, (size_t)at * sizeof *sizes);
  sizes[at] = b->total * (has_n ? t->sizes[at] : 1);
  memcpy(sizes + at + 1, t->sizes + rest, (size_t)(t->ndim - rest) * sizeof *sizes);
  return t_reshape(v, n, sizes);
}

static Tensor *unfold_batch(const Batch *b, Tensor *y, int at, bool has_n) {
  if (blocked(y)) return NULL;
  int64_t sizes[2 * MAX_DIM];
  int n = at;
  memcpy(sizes, y->sizes, (size_t)at * sizeof *sizes);
  for (int i = 0; i < b->n; i++) sizes[n++] = b->sizes[i];
  if (has_n) sizes[n++] = y->sizes[at] / b->total;
  for (int i = at + 1; i < y->ndim; i++) sizes[n++] = y->sizes[i];
  return with_batch_at(b, t_reshape(y, n, sizes), at, true);
}

/* Runs the call and unfolds its results, of which the first has N at `at`, others in front. */
static bool run_folded(const Batch *b, Call *inner, int at, bool has_n) {
  if (failed()) return true;
  run_call_plain(inner);
  if (failed()) return true;
  Result r = inner->result;
  if (r.tag == TAG_TENSOR) {
    ret_tensor(inner, unfold_batch(b, result_tensor(&r, 0), at, has_n));
  } else if (r.tag == TAG_TENSORS) {
    Tensor **made = scratch_array(r.n + 1, sizeof *made);
    for (int i = 0; made && i < r.n; i++)
      made[i] = unfold_batch(b, result_tensor(&r, i), i ? 0 : at, has_n);
    if (made) ret_tensors(inner, r.n, made);
  }
  return true;
}

/* ------------------------------------------------------------ images and the like */

static Value times_first(const Batch *b, Ints sizes) {
  int64_t *v = scratch_array(sizes.n + 1, sizeof *v);
  if (!v) return (Value){.tag = TAG_NONE};
  memcpy(v, sizes.v, (size_t)sizes.n * sizeof *v);
  v[0] *= b->total;
  return (Value){.tag = TAG_INTS, .n = sizes.n, .p = v};
}

/* affine_grid's sizes. */
static bool sizes_of_all(const Call *c, const Batch *b, Call *inner) {
  const Tensor *theta = c->v[0].t;
  Ints sizes = arg_ints(c, 1);
  const int64_t wanted[] = {sizes.n > 0 ? sizes.v[0] : 0, sizes.n - 2, sizes.n - 1};
  if (sizes.n < 1 || !sizes_equal(3, wanted, theta->ndim, theta->sizes)) return false;
  inner->v[1] = times_first(b, sizes);
  return true;
}

/* fractional_max_pool2d's samples always have N. */
static bool samples_of_all(const Call *c, const Batch *b, int64_t rows, Call *inner) {
  int k = c->n_args - 1;
  Tensor *t = c->v[k].tag == TAG_TENSOR ? c->v[k].t : NULL;
  if (!t) return true;
  if (t->ndim != 3 || t->sizes[0] != rows) return false;
  inner->v[k].t = fold_batch(b, t, 0, true);
  return true;
}

/* Folds the other arguments that mention N. False: the loop over slices reports the error. */
static bool folds_others(const Call *c, const Batch *b, bool has_n, Call *inner) {
  const Tensor *x = c->v[0].t;
  switch ((FoldKind)c->row->folding) {
    case FOLD_sizes: return sizes_of_all(c, b, inner);
    case FOLD_count: inner->v[3].i *= b->total; return arg_int(c, 3) == x->sizes[0];
    case FOLD_twins: return tensor_same_shape(x, c->v[1].t);
    case FOLD_padding: return arg_ints(c, 1).n / 2 < x->ndim;
    case FOLD_groups: {
      int64_t groups = arg_int(c, 1);
      return groups > 0 && x->sizes[1] % groups == 0 && x->numel != groups;
    }
    case FOLD_samples: return samples_of_all(c, b, has_n ? x->sizes[0] : 1, inner);
    default: return true;
  }
}

/* Whether argument k, which is not folded, means the same to all of N. */
static bool same_for_all(const Call *c, int k) {
  const Tensor *x = c->v[0].t, *t = c->v[k].tag == TAG_TENSOR ? c->v[k].t : NULL;
  if (c->row->folding == FOLD_samples && k == c->n_args - 1) return true; /* it is folded, too */
  if (value_is_batched(&c->v[k])) return false;
  if (!t || c->row->folding != FOLD_queries) return true;
  return x->ndim == 2 ? t->ndim <= 2 : t->ndim < x->ndim;
}

static bool images(const Call *c, const Batch *b, Call *inner) {
  const Tensor *x = c->v[0].tag == TAG_TENSOR ? c->v[0].t : NULL;
  int rank = c->row->folded_rank;
  if (!x || x->ndim < 2 || (rank && x->ndim != rank && x->ndim != rank - 1)) return false;
  bool has_n = rank ? x->ndim == rank : c->row->folding != FOLD_queries || x->ndim > 2;
  copy_call(c, inner);
  inner->inplace = false;
  for (int k = 0; k < c->row->folded; k++) {
    Tensor *t = c->v[k].tag == TAG_TENSOR ? c->v[k].t : NULL;
    if (!t || (rank && t->ndim != x->ndim) || t->ndim < (has_n ? 1 : x->ndim)) return false;
    if (has_n && t->sizes[0] != x->sizes[0]) return false;
    inner->v[k].t = fold_batch(b, t, 0, has_n);
  }
  for (int k = c->row->folded; k < c->n_args; k++)
    if (!same_for_all(c, k)) return false;
  return folds_others(c, b, has_n, inner) && run_folded(b, inner, 0, has_n);
}

/* ------------------------------------------------------------ attention by several heads */

/* Places in the list of tensors; see multihead.c. */
enum { QUERY, KEY, VALUE, PADDING = 9, MASK, STATIC_K = 14, STATIC_V };

static Tensor *tensor_of_list(const Value *list, int k) {
  return k < list->n ? (Tensor *)(uintptr_t)((const int64_t *)list->p)[k] : NULL;
}

/* Queries, keys and values are (L, N, E) or (L, E), masks have N or N * heads in front. */
static bool heads(const Call *c, const Batch *b, Call *inner) {
  const Value *list = &c->v[0];
  Tensor *query = list->tag == TAG_TENSORS ? tensor_of_list(list, QUERY) : NULL;
  if (!query || (query->ndim != 2 && query->ndim != 3)) return false;
  bool has_n = query->ndim == 3;
  int64_t rows = has_n ? query->sizes[1] : 1,
          *handles = scratch_array(list->n + 1, sizeof *handles);
  if (!handles || tensor_of_list(list, STATIC_K) || tensor_of_list(list, STATIC_V)) return false;
  copy_call(c, inner);
  inner->inplace = false;
  for (int k = 0; k < list->n; k++) {
    Tensor *t = tensor_of_list(list, k);
    if (t && k <= VALUE) {
      if (t->ndim != query->ndim || (has_n && t->sizes[1] != rows)) return false;
      t = fold_batch(b, t, 1, has_n);
    } else if (t && k == PADDING) {
      if (t->ndim != query->ndim - 1 || (has_n && t->sizes[0] != rows)) return false;
      t = fold_batch(b, t, 0, has_n);
    } else if (t && k == MASK && t->ndim == 3) {
      if (t->sizes[0] != rows * arg_int(c, 2)) return false;
      t = fold_batch(b, t, 0, true);
    } else if (t && is_batched(t)) {
      return false;
    }
    handles[k] = (int64_t)(uintptr_t)t;
  }
  inner->v[0].p = handles;
  return run_folded(b, inner, 1, has_n);
}

/* ------------------------------------------------------------ ctc_loss */

/* Lengths (N), given as a list or a tensor, for all slices; none if there are not `rows`. */
static Value all_lengths(const Batch *b, const Call *c, int k, int64_t rows) {
  const Value none = {.tag = TAG_NONE};
  if (c->v[k].tag == TAG_TENSOR) {
    Tensor *t = c->v[k].t;
    if (t->ndim > 1 || t->numel != rows) return none;
    return (Value){.tag = TAG_TENSOR, .t = fold_batch(b, t, 0, t->ndim == 1)};
  }
  Ints given = arg_ints(c, k);
  int64_t *v = scratch_array(b->total * rows + 1, sizeof *v);
  if (!v || given.n != rows) return none;
  for (int64_t i = 0; i < b->total * rows; i++) v[i] = given.v[i % rows];
  return (Value){.tag = TAG_INTS, .n = (int32_t)(b->total * rows), .p = v};
}

/* Whether targets in one row, one after the other, are as long as the list says. */
static bool in_one_row(const Call *c) {
  Ints given = arg_ints(c, 3);
  int64_t sum = 0;
  for (int i = 0; i < given.n; i++) sum += given.v[i];
  return sum == c->v[1].t->numel;
}

/* Each loss by the length of its target, or by one if that is empty. */
static Tensor *divide_by_length(Call *inner, Tensor *found) {
  Tensor *counts = inner->v[3].tag == TAG_TENSOR ? inner->v[3].t : NULL;
  if (blocked(found)) return NULL;
  if (!counts) {
    counts = tensor_empty(1, &(int64_t){inner->v[3].n}, DT_I64);
    if (counts) memcpy(tensor_data(counts), inner->v[3].p, (size_t)inner->v[3].n * sizeof(int64_t));
  }
  counts = t_to(t_clamp_min(counts, tensor_wrapped_i(1)), tensor_dtype(found));
  return t_div(found, counts);
}

/* The losses of all slices, reduced slice by slice. */
static bool ctc(const Call *c, const Batch *b, Call *inner) {
  const Value *x = &c->v[0], *targets = &c->v[1];
  if (x->tag != TAG_TENSOR || targets->tag != TAG_TENSOR) return false;
  bool has_n = x->t->ndim == 3, row = targets->t->ndim == 1;
  if ((!has_n && x->t->ndim != 2) || targets->t->ndim > 2) return false;
  int64_t rows = has_n ? x->t->sizes[1] : 1;
  if (targets->t->ndim == 2 && targets->t->sizes[0] != rows) return false;
  if (!targets->t->ndim || (row && has_n && (c->v[3].tag == TAG_TENSOR || !in_one_row(c))))
    return false;
  bool named = c->v[5].tag == TAG_STR;
  Reduction reduction = named ? arg_reduction(c, -1, -1, 5) : arg_numbered_reduction(c, 5);
  if (failed() || reduction == REDUCE_BAD) return true;
  copy_call(c, inner);
  inner->inplace = false;
  inner->v[0].t = fold_batch(b, x->t, 1, has_n);
  inner->v[1].t = fold_batch(b, targets->t, 0, !row || has_n);
  for (int k = 2; k < 4; k++)
    if ((inner->v[k] = all_lengths(b, c, k, rows)).tag == TAG_NONE) return false;
  inner->v[5] = named ? (Value){.tag = TAG_STR, .s = "none"} : (Value){.tag = TAG_INT, .i = 0};
  if (!failed()) run_call_plain(inner);
  if (failed()) return true;
  Tensor *found = (Tensor *)(uintptr_t)inner->result.value;
  if (reduction == REDUCE_MEAN) found = divide_by_length(inner, found);
  found = unfold_batch(b, found, 0, true);
  if (reduction == REDUCE_MEAN) found = t_mean(found, ONE_DIM(-1), false, DT_NONE);
  else if (reduction == REDUCE_SUM) found = t_sum(found, ONE_DIM(-1), false, DT_NONE);
  else if (!has_n) found = t_squeeze(found, ONE_DIM(-1));
  ret_tensor(inner, found);
  return true;
}

bool rule_folds(const Call *c, const Batch *b, Call *inner) {
  if (b->total == 0) return false;
  return c->row->folding == FOLD_losses  ? ctc(c, b, inner)
         : c->row->folding == FOLD_heads ? heads(c, b, inner)
         : c->row->folding == FOLD_filters &&
                 (value_is_batched(&c->v[1]) || value_is_batched(&c->v[2]))
             ? rule_filters(c, b, inner)
             : images(c, b, inner);
}

/* Calls on batched tensors done at once: what a row's kind says of its batch dimensions.
 *
 * A row says its kind: BATCH(...), see call/row.h and `rules` below. A rule
 * leaves the call on values in `inner` and runs it, or declines, and then the call is made slice
 * by slice. It must decline whatever it is not sure of: an argument that is wrong has to be
 * found wrong, too. */
#include <string.h>

#include "call/schema.h"
#include "ground/memory.h"
#include "ops/index/index.h"
#include "ops/linalg/lu_cholesky.h"
#include "ops/op.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"
#include "transforms/vmap_private.h"

typedef bool Rule(const Call *c, const Batch *b, Call *inner);

static bool starts(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool row_named(const Row *row, const char *name) { return strcmp(row->name, name) == 0; }

static bool run(Call *inner) {
  if (!failed()) run_call_plain(inner);
  return true;
}

/* The one tensor of the call, if it is the first that the row takes and no other is given; NULL
 * otherwise. */
static Tensor *only_tensor(const Call *c, int *at) {
  Tensor *only = NULL;
  for (int k = 0; k < c->n_args; k++) {
    if (!value_first(&c->v[k])) continue;
    if (only || c->v[k].tag != TAG_TENSOR) return NULL;
    only = c->v[ *at = k].t;
  }
  return only && is_batched(only) ? only : NULL;
}

static Value ints_value(int n, const int64_t *v) {
  int64_t *kept = scratch_array(n + 1, sizeof *kept);
  if (kept && n) memcpy(kept, v, (size_t)n * sizeof *kept);
  return (Value){.tag = TAG_INTS, .n = kept ? n : 0, .p = kept};
}

/* A list behind n numbers for the batch's dimensions; no list (TAG_NONE) if it is too long. */
static Value prepend_numbers(int n, const int64_t *lead, int rest_n, const int64_t *rest) {
  int64_t all[MAX_DIM];
  if (rest_n < 0 || n + rest_n > MAX_DIM) return (Value){.tag = TAG_NONE};
  memcpy(all, lead, (size_t)n * sizeof *all);
  if (rest_n) memcpy(all + n, rest, (size_t)rest_n * sizeof *all);
  return ints_value(n + rest_n, all);
}

/* ------------------------------------------------------------ element-wise */

/* Batched numbers (0-dim slices) must not count as tensors with dimensions in type promotion. */
static void promote(const Call *c, Call *inner) {
  Tensor *before[MAX_ARGS], *after[MAX_ARGS];
  int n = 0;
  for (int k = 0; k < c->n_args; k++)
    if (arg_given(c, k) &&
        (c->v[k].tag == TAG_TENSOR || c->v[k].tag == TAG_FLOAT || c->v[k].tag == TAG_INT)) {
      before[n] = arg_tensor((Call *)(uintptr_t)c, k);
      after[n++] = arg_tensor(inner, k);
    }
  if (failed() || !n) return;
  DType wanted = elementwise_result_dtype(n, before);
  if (wanted == elementwise_result_dtype(n, after)) return;
  for (int k = c->inplace; k < c->n_args; k++) {
    Value *v = &inner->v[k];
    if (v->tag == TAG_TENSOR && !is_wrapped(v->t) && v->t->dtype != DT_BOOL)
      v->t = t_to(v->t, wanted);
  }
}

static bool elementwise(const Call *c, const Batch *b, Call *inner) {
  int rank = 0;
  for (int k = 0; k < c->n_args; k++)
    if (c->v[k].tag == TAG_TENSOR && c->v[k].t->ndim > rank) rank = c->v[k].t->ndim;
  if (row_named(c->row, "masked_fill") && c->v[2].tag == TAG_TENSOR && is_batched(c->v[2].t))
    return false;
  copy_call(c, inner);
  int n = 0;
  for (int k = 0; k < c->n_args; k++) {
    if (c->v[k].tag != TAG_TENSOR) continue;
    inner->v[k].t = batch_align(b, c->v[k].t, rank);
    n++;
  }
  if (failed()) return true;
  if (n > 1) promote(c, inner);
  return run(inner);
}

/* ------------------------------------------------------------ dimensions by number */

static bool is_dim_name(const char *name) {
  return starts(name, "dim") || starts(name, "axis") || strcmp(name, "start_dim") == 0 ||
         strcmp(name, "end_dim") == 0 || strcmp(name, "source") == 0 ||
         strcmp(name, "destination") == 0;
}

/* Dimensions of a slice of this rank, as those of the whole. */
static Value wrap_and_shift(Value v, int rank, int by) {
  if (v.tag == TAG_INT) {
    v.i = dim_wrap(v.i, rank) + by;
    return v;
  }
  int64_t dims[MAX_DIM];
  if (v.n > MAX_DIM) return v;
  for (int i = 0; i < v.n; i++) dims[i] = dim_wrap(((const int64_t *)v.p)[i], rank) + by;
  return ints_value(v.n, dims);
}

static bool absent(const Value *v) {
  return v->tag == TAG_NONE || v->tag == TAG_MISSING || (v->tag == TAG_INTS && v->n == 0);
}

/* Shifts all arguments that number dimensions; false if one is absent or no number. */
static bool shift_dims(Call *inner, int rank, int by) {
  if (row_has(inner->row, ADDS_DIM)) rank++;
  for (int k = 0; k < inner->n_args; k++) {
    Value *v = &inner->v[k];
    if (!is_dim_name(row_arg_name(inner->row, k)) || v->tag == TAG_TENSOR) continue;
    if (absent(v) || (v->tag != TAG_INT && v->tag != TAG_INTS)) return false;
    *v = wrap_and_shift(*v, rank, by);
  }
  return true;
}

static bool run_by_dimension(const Call *c, const Batch *b, Call *inner) {
  int at = 0;
  Tensor *t = only_tensor(c, &at);
  if (!t || (t->ndim == 0 && !row_has(c->row, ADDS_DIM))) return false;
  copy_call(c, inner);
  inner->inplace = false;
  inner->v[at].t = batch_full(b, t);
  return shift_dims(inner, t->ndim, b->n) && run(inner);
}

static Tensor *full_of(Tensor *t, const void *batch) { return batch_full(batch, t); }

/* Tensors of one rank, each with all of the batch; `index` of the index_ family, which has one
 * dimension, stays. */
static bool same_rank(const Call *c, const Batch *b, Call *inner) {
  bool spare_index = c->row->batch == BATCH_indexed;
  int rank = -1;
  copy_call(c, inner);
  inner->inplace = false;
  for (int k = 0; k < c->n_args; k++) {
    const Value *v = &c->v[k];
    Tensor *first = value_first(v);
    if (!first) continue;
    if (rank < 0) rank = first->ndim;
    if (spare_index && strcmp(row_arg_name(c->row, k), "index") == 0) {
      if (is_batched(first) || first->ndim != 1) return false;
      continue;
    }
    for (int i = 0; i < (v->tag == TAG_TENSORS ? v->n : 1); i++) {
      Tensor *t = v->tag == TAG_TENSORS ? (Tensor *)(uintptr_t)((const int64_t *)v->p)[i] : first;
      if (!t || t->ndim != rank) return false;
    }
    inner->v[k] = value_map(*v, full_of, b);
  }
  return rank > 0 && shift_dims(inner, rank, b->n) && run(inner);
}

static bool permutes(const Call *c, const Batch *b, Call *inner) {
  int64_t first[32];
  Tensor *t = c->v[0].t;
  Ints given = arg_ints(c, 1);
  if (given.n != t->ndim || t->ndim == 0) return false;
  Value rest = wrap_and_shift(ints_value(given.n, given.v), t->ndim, b->n);
  for (int i = 0; i < b->n; i++) first[i] = i;
  copy_call(c, inner);
  inner->v[0].t = batch_full(b, t);
  inner->v[1] = prepend_numbers(b->n, first, rest.n, rest.p);
  return run(inner);
}

/* t, mT and their relatives. */
static bool transposes(const Call *c, const Batch *b, Call *inner) {
  Tensor *t = c->v[0].t;
  bool in_place = row_named(c->row, "t_"),
       reverses = in_place || row_named(c->row, "t") || row_named(c->row, "numpy_T"),
       conjugates = row_named(c->row, "mH") || row_named(c->row, "matrix_H") ||
                    row_named(c->row, "adjoint");
  if (t->ndim < 2 ? !reverses : t->ndim > 2 && (reverses || row_named(c->row, "matrix_H")))
    return false;
  copy_call(c, inner);
  Tensor *v = batch_full(b, t);
  ret_tensor(inner, t->ndim < 2  ? v
                    : in_place   ? shape_take(v, t_transpose(v, -2, -1))
                    : conjugates ? t_conj(t_transpose(v, -2, -1))
                                 : t_transpose(v, -2, -1));
  return true;
}

/* ------------------------------------------------------------ reductions */

static const Row *row_with_dim(const char *name) {
  for (int i = 0; i < n_op_rows; i++)
    if (row_named(&op_rows[i], name) && strcmp(row_arg_name(&op_rows[i], 1), "dim") == 0)
      return &op_rows[i];
  return NULL;
}

static int find_arg(const Row *row, const char *name) {
  for (int k = 0; k < MAX_ARGS; k++)
    if (strcmp(row_arg_name(row, k), name) == 0) return k;
  return -1;
}

static int arg_type(const Row *row, const char *name) {
  int k = find_arg(row, name);
  return k < 0 ? -1 : schema_of_row(row)->args[k].type;
}

/* All of each slice: a row that takes no dimension gives way to one that does. */
static const Row *with_dim(const Call *c) { return row_with_dim(c->row->name); }

static Value all_dims(const Tensor *t, int by) {
  int64_t dims[MAX_DIM];
  for (int i = 0; i < t->ndim; i++) dims[i] = by + i;
  return ints_value(t->ndim, dims);
}

/* Slices flattened: for rows that take one dimension, or none for all. */
static Tensor *flatten_slices(const Batch *b, Tensor *t) {
  return t_reshape(batch_full(b, t), b->n + 1, prepend_numbers(b->n, b->sizes, 1, &t->numel).p);
}

/* squeeze without a dimension must leave the batch alone. */
static bool squeezes(const Call *c, const Batch *b, Call *inner) {
  for (const Row *row = c->row; row < op_rows + n_op_rows; row++)
    if (arg_type(row, "dim") == ARG_INTS) {
      schema_rebind(c, row, inner);
      inner->v[0].t = batch_full(b, c->v[0].t);
      inner->v[1] = all_dims(c->v[0].t, b->n);
      return run(inner);
    }
  return false;
}

static bool reduces(const Call *c, const Batch *b, Call *inner) {
  int at = 0;
  Tensor *t = only_tensor(c, &at);
  if (!t || t->ndim == 0 || at != 0) return false;
  if (starts(c->row->name, "squeeze")) return squeezes(c, b, inner);
  int dim = find_arg(c->row, "dim");
  if (dim >= 0 && !absent(&c->v[dim])) return run_by_dimension(c, b, inner);
  copy_call(c, inner);
  if (dim < 0) {
    const Row *row = with_dim(c);
    if (!row) return false;
    schema_rebind(c, row, inner);
    dim = 1;
  }
  bool one = arg_type(inner->row, "dim") == ARG_INT;
  int keepdim = find_arg(inner->row, "keepdim");
  if (one && keepdim >= 0 && inner->v[keepdim].i) return false;
  inner->inplace = false;
  inner->v[0].t = one ? flatten_slices(b, t) : batch_full(b, t);
  inner->v[dim] = one ? (Value){.tag = TAG_INT, .i = b->n} : all_dims(t, b->n);
  run(inner);
  /* max, min, median of all: the values, whose gradients go to one element each, as PyTorch's do
   * here. */
  if (inner->result.tag == TAG_TENSORS && schema_of_row(inner->row)->result == RESULT_VALUES)
    ret_tensor(inner, (Tensor *)(uintptr_t)*(const int64_t *)(uintptr_t)inner->result.value);
  return true;
}

/* ------------------------------------------------------------ one dimension and the others */

/* Whether a dimension is given twice, which is an error that names it. */
static bool repeats(const Value *dims, int rank) {
  uint64_t seen = 0;
  if (dims->tag != TAG_INTS) return false;
  for (int i = 0; i < dims->n; i++) {
    int64_t d = ((const int64_t *)dims->p)[i];
    if (d < -rank || d >= rank) continue;
    uint64_t bit = (uint64_t)1 << (d < 0 ? d + rank : d);
    if (seen & bit) return true;
    seen |= bit;
  }
  return false;
}

/* gradient: all dimensions of a slice are listed, by the row that takes a list. */
static bool all_of_slice(const Call *c, const Batch *b, Call *inner) {
  Tensor *t = c->v[0].t;
  int dim = find_arg(c->row, "dim"), spacing = find_arg(c->row, "spacing");
  for (int k = 1; k < c->n_args; k++)
    if (value_is_batched(&c->v[k])) return false;
  if (!t->ndim || repeats(&c->v[dim], t->ndim)) return false;
  copy_call(c, inner);
  inner->v[0].t = batch_full(b, t);
  if (!absent(&c->v[dim])) return shift_dims(inner, t->ndim, b->n) && run(inner);
  if (find_arg(c->row, "s") >= 0 && !absent(&c->v[find_arg(c->row, "s")])) return false;
  bool spaced = spacing >= 0 && !absent(&c->v[spacing]);
  int tag = spaced ? c->v[spacing].tag : TAG_NONE;
  bool list = tag == TAG_FLOATS || tag == TAG_INTS || tag == TAG_TENSORS;
  if (list && c->v[spacing].n != t->ndim) return false;
  for (const Row *row = c->row; row < op_rows + n_op_rows && row_named(row, c->row->name); row++) {
    if (arg_type(row, "dim") != ARG_INTS || spaced != (find_arg(row, "spacing") >= 0)) continue;
    schema_rebind(c, row, inner);
    inner->v[0].t = batch_full(b, t);
    inner->v[find_arg(row, "dim")] = all_dims(t, b->n);
    return run(inner);
  }
  return false;
}

/* renorm: the dimension and the batch as one. */
static bool run_beside_dim(const Call *c, const Batch *b, Call *inner) {
  int at = 0, dim = find_arg(c->row, "dim");
  Tensor *t = only_tensor(c, &at);
  if (!t || t->ndim < 2 || b->total == 0) return false;
  int64_t d = dim_wrap(c->v[dim].i, t->ndim) + b->n;
  if (failed()) return true;
  copy_call(c, inner);
  inner->inplace = false;
  Tensor *v = t_movedim(batch_full(b, t), ONE_DIM(d), ONE_DIM(b->n));
  inner->v[at].t = t_flatten(v, 0, b->n);
  inner->v[dim].i = 0;
  run(inner);
  if (failed()) return true;
  Tensor *y = t_reshape(result_tensor(&inner->result, 0), v->ndim, v->sizes);
  ret_tensor(inner, t_movedim(y, ONE_DIM(b->n), ONE_DIM(d)));
  return true;
}

/* ------------------------------------------------------------ sizes */

/* Lists of sizes get the batch's in front; `one`: ones, for counts of repetitions. */
static bool run_with_sizes(const Call *c, const Batch *b, Call *inner, bool one) {
  int64_t ones[32];
  Tensor *t = c->v[0].t;
  Ints given = arg_ints(c, 1);
  bool may_be_fewer = !(row_named(c->row, "expand") || row_named(c->row, "broadcast_to") ||
                        row_named(c->row, "repeat"));
  if (!is_batched(t) || !(given.n >= t->ndim || may_be_fewer)) return false;
  for (int i = 0; i < b->n; i++) ones[i] = 1;
  copy_call(c, inner);
  inner->v[1] = prepend_numbers(b->n, one ? ones : b->sizes, given.n, given.v);
  if (inner->v[1].tag == TAG_NONE) return false;
  inner->v[0].t = batch_align(b, t, given.n);
  return run(inner);
}

static bool run_by_size(const Call *c, const Batch *b, Call *inner) {
  return run_with_sizes(c, b, inner, false);
}
static bool run_by_count(const Call *c, const Batch *b, Call *inner) {
  return run_with_sizes(c, b, inner, true);
}

/* view_as(self, other): `other` is asked for nothing but its sizes. */
static bool as_other(const Call *c, const Batch *b, Call *inner) {
  const Tensor *other = c->v[1].t;
  Tensor *t = c->v[0].t;
  const char *name = c->row->name;
  const char *plain = starts(name, "view")      ? "view"
                      : starts(name, "reshape") ? "reshape"
                                                : "expand";
  if (!is_batched(t)) return false;
  for (int i = 0; i < n_op_rows; i++)
    if (row_named(&op_rows[i], plain)) {
      Call with_sizes;
      schema_rebind(c, &op_rows[i], &with_sizes);
      with_sizes.v[1] = ints_value(other->ndim, other->sizes);
      return t->meta->levels == b->levels && run_with_sizes(&with_sizes, b, inner, false);
    }
  return false;
}

static bool rule_strided(const Call *c, const Batch *b, Call *inner) {
  Tensor *v = batch_full(b, c->v[0].t);
  Ints size = arg_ints(c, 1), stride = arg_ints(c, 2);
  if (!v || size.n != stride.n) return false;
  Value sizes = prepend_numbers(b->n, b->sizes, size.n, size.v),
        strides = prepend_numbers(b->n, v->strides, stride.n, stride.v);
  int64_t offset = arg_given(c, 3) ? arg_int(c, 3) : v->offset;
  copy_call(c, inner);
  if (sizes.tag == TAG_NONE) return false;
  if (batched_check_in_slice(v, b->n, size.n, size.v, stride.v, offset))
    ret_tensor(inner, t_as_strided(v, sizes.n, sizes.p, strides.p, offset));
  return true;
}

/* ------------------------------------------------------------ leading dimensions are no matter */

static bool leading(const Call *c, const Batch *b, Call *inner, int least) {
  bool first = true;
  copy_call(c, inner);
  inner->inplace = false;
  for (int k = 0; k < c->n_args; k++) {
    Tensor *t = value_first(&c->v[k]);
    if (!t) continue;
    if (first ? t->ndim < least || !is_batched(t) || c->v[k].tag != TAG_TENSOR : is_batched(t))
      return false;
    if (first) inner->v[k].t = batch_full(b, t);
    first = false;
  }
  return !first && run(inner);
}

static bool any_rank(const Call *c, const Batch *b, Call *inner) { return leading(c, b, inner, 0); }
static bool vectors(const Call *c, const Batch *b, Call *inner) { return leading(c, b, inner, 1); }
static bool matrices(const Call *c, const Batch *b, Call *inner) { return leading(c, b, inner, 2); }
static bool images(const Call *c, const Batch *b, Call *inner) { return leading(c, b, inner, 3); }

/* ------------------------------------------------------------ systems of equations */

static bool is_tolerance(const Row *row, int k) {
  const char *name = row_arg_name(row, k);
  return strcmp(name, "atol") == 0 || strcmp(name, "rtol") == 0 || strcmp(name, "tol") == 0 ||
         strcmp(name, "rcond") == 0;
}

/* How many dimensions of a tensor of a system lead those that count. */
static int leads(const Row *row, int k, const Tensor *first, const Tensor *t) {
  const char *name = row_arg_name(row, k);
  bool vector = strcmp(name, "pivots") == 0 || strcmp(name, "LU_pivots") == 0 ||
                strcmp(name, "tau") == 0 ||
                (strcmp(name, "input2") == 0 && row_named(row, "orgqr"));
  if (is_tolerance(row, k)) return t->ndim;
  /* right sides may be vectors */
  bool side = row_named(row, "solve") || row_named(row, "solve_ex") || row_named(row, "lstsq");
  if (side && k == 1) vector = sizes_equal(t->ndim, t->sizes, first->ndim - 1, first->sizes);
  return t->ndim - (vector ? 1 : 2);
}

/* Expands an omitted result, which is empty and has one dimension, to the batch. */
static Tensor *with_batch(const Batch *b, Tensor *t) {
  if (!t || t->ndim != 1 || t->numel) return t;
  Value sizes = prepend_numbers(b->n, b->sizes, 1, t->sizes);
  return t_expand(t, sizes.n, sizes.p);
}

static bool systems(const Call *c, const Batch *b, Call *inner) {
  const Tensor *first = NULL;
  copy_call(c, inner);
  inner->inplace = false;
  for (int k = 0; k < c->n_args; k++) {
    Tensor *t = c->v[k].tag == TAG_TENSOR ? c->v[k].t : NULL;
    if (!t) continue;
    if (!first) first = t;
    if (is_tolerance(c->row, k) && !t->ndim && !is_batched(t)) continue; /* as good as a number */
    int lead = leads(c->row, k, first, t);
    if (lead < 0 || lead != first->ndim - 2) return false;
    for (int i = 0; i < lead; i++)
      if (t->sizes[i] != first->sizes[i]) return false;
    inner->v[k].t = batch_full(b, t);
  }
  if (!run(inner) || failed() || inner->result.tag != TAG_TENSORS) return true;
  int n = inner->result.n;
  Tensor **made = scratch_array(n + 1, sizeof *made);
  for (int i = 0; made && i < n; i++) made[i] = with_batch(b, result_tensor(&inner->result, i));
  if (made) ret_tensors(inner, n, made);
  return true;
}

static int64_t product_of(const Tensor *t, int from, int to) {
  return sizes_numel(to - from, t->sizes + from);
}

/* A slice of t with its dimensions up to `split` as rows, the others as columns. */
static Tensor *as_matrix(const Batch *b, Tensor *t, int split) {
  const int64_t sides[] = {product_of(t, 0, split), product_of(t, split, t->ndim)};
  Value sizes = prepend_numbers(b->n, b->sizes, 2, sides);
  return t_reshape(batch_full(b, t), sizes.n, sizes.p);
}

/* tensorinv and tensorsolve: by the inverse and the solution of matrices. */
static bool as_matrices(const Call *c, const Batch *b, Call *inner) {
  Tensor *a = c->v[0].t, *other = c->v[1].tag == TAG_TENSOR ? c->v[1].t : NULL, *y;
  int64_t sizes[MAX_DIM], split = other ? other->ndim : arg_int(c, 1);
  int n = a->ndim, rest = other ? n - (int)split : n;
  if (split <= 0 || split > n || (other && !absent(&c->v[2]))) return false;
  int64_t side = product_of(a, 0, (int)split);
  if (!side || side != product_of(a, (int)split, n) || (other && other->numel != side))
    return false;
  copy_call(c, inner);
  for (int i = 0; i < rest; i++) sizes[i] = a->sizes[(split + i) % n];
  Tensor *rows = as_matrix(b, a, (int)split);
  if (other) y = t_solve(rows, as_matrix(b, other, (int)split), true);
  else y = t_inverse(rows);
  Value shape = prepend_numbers(b->n, b->sizes, rest, sizes);
  ret_tensor(inner, t_reshape(y, shape.n, shape.p));
  return true;
}

/* ------------------------------------------------------------ products of matrices */

typedef struct {
  Tensor *v; /* aligned */
  int rank;  /* of a slice */
  bool batched;
} Operand;

static Operand operand(const Batch *b, Tensor *t) {
  return (Operand){batch_align(b, t, t->ndim), t->ndim, is_batched(t)};
}

/* Dimensions of size 1 between those of the batch and the slice's, to raise its rank. */
static void raise(const Batch *b, Operand *x, int rank) {
  for (; x->batched && x->rank < rank; x->rank++) x->v = t_unsqueeze(x->v, b->n);
}

static Tensor *product(const Batch *b, Operand x, Operand y) {
  bool row = x.rank == 1, column = y.rank == 1;
  if (!y.batched && y.rank <= 2) return t_matmul(x.v, y.v);
  if (row) x = (Operand){t_unsqueeze(x.v, -2), 2, x.batched};
  if (column) y = (Operand){t_unsqueeze(y.v, -1), 2, y.batched};
  raise(b, &x, y.rank);
  raise(b, &y, x.rank);
  Tensor *z = t_matmul(x.v, y.v);
  if (row) z = z ? t_squeeze(z, ONE_DIM(z->ndim - 2)) : NULL;
  return z && column ? t_squeeze(z, ONE_DIM(z->ndim - 1)) : z;
}

/* X(op, ranks of its operands) */
#define PRODUCT_ROWS(X) X("mm", 2, 2) X("bmm", 3, 3) X("mv", 2, 1) X("dot", 1, 1) X("vdot", 1, 1)

static bool ranks_fit(const Row *row, const Tensor *x, const Tensor *y) {
#define ROW(name, rx, ry) \
  if (row_named(row, name)) return x->ndim == rx && y->ndim == ry;
  PRODUCT_ROWS(ROW)
#undef ROW
  return x->ndim && y->ndim;
}

/* The sizes that a slice's product would check. */
static bool sizes_fit(const Row *row, const Tensor *x, const Tensor *y) {
  if (x->sizes[x->ndim - 1] != y->sizes[y->ndim > 1 ? y->ndim - 2 : 0] || x->dtype != y->dtype)
    return false;
  return !row_named(row, "bmm") || x->sizes[0] == y->sizes[0];
}

static bool outer(const Batch *b, Tensor *x, Tensor *y, Call *inner) {
  if (x->ndim != 1 || y->ndim != 1) return false;
  ret_tensor(inner,
             t_mul(t_unsqueeze(batch_align(b, x, 1), -1), t_unsqueeze(batch_align(b, y, 1), -2)));
  return true;
}

static bool linear(const Call *c, const Batch *b, Call *inner) {
  Tensor *x = c->v[0].t, *w = c->v[1].t, *bias = c->v[2].tag == TAG_TENSOR ? c->v[2].t : NULL;
  if (leading(c, b, inner, 1)) return true;
  if (w->ndim != 2 || !x->ndim || x->sizes[x->ndim - 1] != w->sizes[1] || x->dtype != w->dtype ||
      (bias && bias->ndim != 1))
    return false;
  Operand columns = operand(b, w);
  columns.v = t_transpose(columns.v, -2, -1);
  Tensor *z = product(b, operand(b, x), columns);
  ret_tensor(inner, z && bias ? t_add(z, batch_align(b, bias, x->ndim)) : z);
  return true;
}

static bool multiplies(const Call *c, const Batch *b, Call *inner) {
  Tensor *x = c->v[0].t, *y = c->v[1].t;
  copy_call(c, inner);
  if (row_named(c->row, "outer") || row_named(c->row, "ger")) return outer(b, x, y, inner);
  if (row_named(c->row, "linear")) return linear(c, b, inner);
  /* by the product of the whole */
  bool checked = row_named(c->row, "matmul") && y->ndim <= 2 && !is_batched(y);
  if (!ranks_fit(c->row, x, y) || !(checked || sizes_fit(c->row, x, y))) return false;
  ret_tensor(inner, product(b, operand(b, x), operand(b, y)));
  return true;
}

/* ------------------------------------------------------------ subscripts */

enum { SLICE_WORDS = 4 /* the kind, start, stop and step */ };

/* The subscript with a full slice for each batch dimension in front. */
static Value index_behind_batch(const Batch *b, const Value *index) {
  int n = index->n + SLICE_WORDS * b->n;
  int64_t *words = scratch_array(n + 1, sizeof *words);
  if (!words) return *index;
  for (int i = 0; i < SLICE_WORDS * b->n; i++) words[i] = i % SLICE_WORDS ? INT64_MIN : ITEM_SLICE;
  memcpy(words + SLICE_WORDS * b->n, index->p, (size_t)index->n * sizeof *words);
  return (Value){.tag = TAG_INDEX, .n = n, .p = words};
}

static Tensor *count_tensors(Tensor *t, const void *context) {
  int *counts = (int *)(uintptr_t)context;
  counts[0]++;
  counts[1] += is_batched(t) && (t->dtype == DT_BOOL || t->dtype == DT_U8);
  counts[2] += is_batched(t);
  return t;
}

/* The subscript of one slice, for its rank and its errors. The index has no tensors. */
static Tensor *get_of_slice(Tensor *x, const Value *index) {
  return WITHOUT_GRAD(t_getitem(x, (Ints){index->n, index->p}));
}

/* x[index] of one batched index: a row of x, which is not, for each of its elements. */
static bool rows_of_table(const Call *c, const Batch *b, Call *inner) {
  const Tensor *index = value_first(&c->v[1]);
  if (index->meta->levels != b->levels) return false;
  int64_t words[2] = {ITEM_TENSOR, (int64_t)(uintptr_t)index->meta->value};
  ret_tensor(inner, t_getitem(c->v[0].t, (Ints){2, words}));
  return true;
}

static bool subscripts(const Call *c, const Batch *b, Call *inner) {
  int counts[3] = {0};
  bool writes = row_named(c->row, "_setitem");
  Tensor *x = c->v[0].t;
  value_map(c->v[1], count_tensors, counts);
  if (counts[1]) {
    fail(ERR_RUNTIME, "vmap: We do not support batching operators that can support dynamic shape. "
                      "Attempting to batch over indexing with a boolean mask.");
    return true;
  }
  copy_call(c, inner);
  if (counts[0] == 1 && counts[2] && !writes && !is_batched(x) && c->v[1].n == 2)
    return rows_of_table(c, b, inner);
  if (!is_batched(x) || counts[0] > 1 || counts[2] || (counts[0] && (writes || x->numel == 0)))
    return false;
  Tensor *one = counts[0] ? NULL : get_of_slice(x, &c->v[1]);
  if (failed()) return true;
  inner->v[0].t = batch_full(b, x);
  inner->v[1] = index_behind_batch(b, &c->v[1]);
  if (writes && c->v[2].tag == TAG_TENSOR) {
    if (c->v[2].t->ndim > one->ndim) return false;
    inner->v[2].t = batch_align(b, c->v[2].t, one->ndim);
  }
  return run(inner);
}

/* ------------------------------------------------------------ drawing numbers */

/* Every tensor with all of the batch, and so every size and dimension that is given. */
static bool draws(const Call *c, const Batch *b, Call *inner) {
  Tensor *first = c->v[0].tag == TAG_TENSOR ? c->v[0].t : NULL;
  copy_call(c, inner);
  inner->inplace = false;
  if (first && find_arg(c->row, "dim") > 0 &&
      (!first->ndim || !shift_dims(inner, first->ndim, b->n)))
    return false;
  for (int k = 0; k < c->n_args; k++) {
    Value *v = &inner->v[k];
    if (v->tag == TAG_TENSORS) return false;
    if (v->tag == TAG_TENSOR) v->t = batch_full(b, v->t);
    if (strcmp(row_arg_name(c->row, k), "size")) continue;
    Ints given = arg_ints(c, k);
    *v = prepend_numbers(b->n, b->sizes, given.n, given.v);
    if (v->tag == TAG_NONE) return false;
  }
  return run(inner);
}

/* ------------------------------------------------------------ kinds */

static Rule *rule_of(const Row *row) {
  static Rule *const rules[] = {[BATCH_elementwise] = elementwise,
                                [BATCH_dims] = run_by_dimension,
                                [BATCH_reduction] = reduces,
                                [BATCH_same_rank] = same_rank,
                                [BATCH_indexed] = same_rank,
                                [BATCH_sizes] = run_by_size,
                                [BATCH_counts] = run_by_count,
                                [BATCH_permute] = permutes,
                                [BATCH_transpose] = transposes,
                                [BATCH_like_other] = as_other,
                                [BATCH_strided] = rule_strided,
                                [BATCH_all_dims] = all_of_slice,
                                [BATCH_beside_dim] = run_beside_dim,
                                [BATCH_any_rank] = any_rank,
                                [BATCH_vectors] = vectors,
                                [BATCH_matrices] = matrices,
                                [BATCH_images] = images,
                                [BATCH_systems] = systems,
                                [BATCH_as_matrices] = as_matrices,
                                [BATCH_folds] = rule_folds,
                                [BATCH_product] = multiplies,
                                [BATCH_subscript] = subscripts,
                                [BATCH_draws] = draws,
                                [BATCH_draws_each] = NULL,
                                [BATCH_itself] = NULL};
  if (row->folding) return rule_folds;
  if (row->batch) return rules[row->batch];
  if (schema_of_row(row)->draws) return draws;
  return row_has(row, DIRECT) ? elementwise : NULL;
}

bool rule_run(const Call *c, const Batch *b, Call *inner) {
  Rule *rule = rule_of(c->row);
  return rule && rule(c, b, inner);
}

/* Elements by number in the flattened tensor (take, put), along a dimension (take_along_dim), and
 * relations between numbers and places: unravel_index, one_hot, isin. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/poll.h"
#include "index_rows.h"
#include "ops/index/index.h"
#include "ops/view/copy.h"
#include "ops/view/view.h"

/* ------------------------------------------------------------ take, put */

/* Places of x's elements by number; x is contiguous. */
static Places flat_places(Tensor *x, Tensor *index) {
  Places p = {NULL, NULL};
  OutOfBounds bad = {0, false};
  if (blocked(x, index)) return p;
  int64_t strides[MAX_DIM] = {0};
  p.at = tensor_zeros(index->ndim, index->sizes, DT_I64);
  places_add(p.at, index, x->numel, 1, true, &bad);
  if (bad.found)
    fail(ERR_INDEX, "out of range: tried to access index %lld on a tensor of %lld elements.",
         (Shown)bad.value, (Shown)x->numel);
  p.view = tensor_alias(x, index->ndim, index->sizes, strides, x->offset);
  return p;
}

static Tensor *plain_contiguous(Tensor *x) {
  return blocked(x) || tensor_is_contiguous(x) ? x : index_clone_contiguous(x);
}

/* dx = 0, then dx[index] += g for each index in order. */
GRAD(TakeBackward0, "index self | -:ints")
{
  Tensor *zeros = failed() || !g[0] ? NULL : index_zeros(n, 0, tensor_dtype(g[0]));
  gi[0] = t_put(zeros, saved_tensor(n, 0), g[0], true);
}

Tensor *t_take(Tensor *x, Tensor *index) {
  OP_ENTERED(t_take, "take", x, index);
  if (blocked(x, index)) return NULL;
  if (index->dtype != DT_I64)
    return fail(ERR_RUNTIME, "take(): Expected a long tensor for index, but got %s", legacy(index));
  if (x->numel == 0 && index->numel)
    return fail(ERR_INDEX, "take(): tried to take from an empty tensor");
  Node *n = node_new(&TakeBackward0, 2, 1 + x->ndim, x, NULL);
  save(n, 1, x);
  save(n, 0, index);
  if (n) num_list(n, 0, x->ndim, x->sizes);
  Tensor *y = tensor_empty(index->ndim, index->sizes, tensor_dtype(x));
  return set_history(places_read(flat_places(plain_contiguous(x), index), y) ? y : NULL, n);
}

/* y = x; y[index] = source: dx = g but 0 there (g if added), dsource = g[index]. */
GRAD_AND_TANGENT(PutBackward0, "index source | accumulate:bool -:ints") {
  Tensor *index = saved_tensor(n, 0);
  Ints sizes = num_list_at(n, 1);
  if (failed() || !g[0] || !index) return;
  if (needs(n, 0))
    gi[0] = n->numbers[0].i
                ? g[0]
                : t_put(g[0], index, tensor_zeros(index->ndim, index->sizes, tensor_dtype(g[0])),
                        false);
  if (needs(n, 1)) gi[1] = t_reshape(t_take(g[0], index), sizes.n, sizes.v);
}
TANGENT(PutBackward0) {
  Tensor *index = saved_tensor(n, 0);
  if (blocked(index)) return NULL;
  Tensor *source = t[1] ? t[1] : tensor_zeros(index->ndim, index->sizes, tensor_dtype(y));
  return t_put(t[0] ? t[0] : t_zeros_like(y), index, source, n->numbers[0].i);
}

static bool put_fits(const Tensor *x, const Tensor *index, const Tensor *source) {
  if (index->dtype != DT_I64)
    return REFUSE(ERR_RUNTIME, "put_(): Expected a long tensor for index, but got %s",
                  legacy(index));
  if (x->dtype != source->dtype)
    return REFUSE(ERR_RUNTIME,
                  "put_(): self and source expected to have the same dtype, but got self.dtype = "
                  "%s and source.dtype = %s",
                  legacy(x), legacy(source));
  if (index->numel != source->numel)
    return REFUSE(ERR_INDEX,
                  "put_(): Expected source and index to have the same number of elements, but got "
                  "source.numel() = %lld, index.numel() = %lld",
                  (Shown)source->numel, (Shown)index->numel);
  if (x->numel == 0 && index->numel)
    return REFUSE(ERR_INDEX, "put_(): Tried to put elements into an empty tensor");
  return true;
}

Tensor *t_put(Tensor *x, Tensor *index, Tensor *source, bool accumulate) {
  OP_ENTERED(t_put, "put", x, index, source, accumulate);
  if (blocked(x, index) || blocked(source) || !put_fits(x, index, source)) return NULL;
  Node *n = node_new(&PutBackward0, 2, 2 + source->ndim, x, source, NULL);
  if (needs(n, 1)) save(n, 1, source);
  save(n, 0, index);
  num_i(n, 0, accumulate);
  if (n) num_list(n, 1, source->ndim, source->sizes);
  Tensor *flat = index_clone_contiguous(x), *from = plain_contiguous(source);
  int64_t strides[MAX_DIM];
  sizes_contiguous_strides(index->ndim, index->sizes, strides);
  if (from) from = tensor_alias(from, index->ndim, index->sizes, strides, from->offset);
  bool done = places_write(flat, flat_places(flat, index), accumulate ? PUT_ADD : PUT_SET, from);
  Tensor *y = !done || tensor_is_contiguous(x) ? flat : tensor_empty_like(x, tensor_dtype(x));
  if (y != flat) done = tensor_copy_data(y, flat);
  return set_history(done ? y : NULL, n);
}

/* ------------------------------------------------------------ take_along_dim */

/* x (or index) expanded to the other's sizes in every dimension but dim. */
static Tensor *expand_beside(Tensor *x, Tensor *other, int64_t dim) {
  if (blocked(x, other)) return NULL;
  int64_t a[MAX_DIM], b[MAX_DIM];
  int ndim = x->ndim;
  memcpy(a, x->sizes, (size_t)ndim * sizeof *a);
  memcpy(b, other->sizes, (size_t)ndim * sizeof *b);
  a[dim] = b[dim] = 1;
  if (!sizes_broadcast(&ndim, a, ndim, b)) return NULL;
  a[dim] = x->sizes[dim];
  return tensor_same_shape(x, other) ? x : t_expand(x, ndim, a);
}

static const char take_along[] = "torch.take_along_dim(): ";

/* flat: over all of x */
Tensor *t_take_along_dim(Tensor *x, Tensor *index, int64_t dim, bool flat) {
  OP_ENTERED(t_take_along_dim, "take_along_dim", x, index, dim, flat);
  if (blocked(x, index)) return NULL;
  if (index->dtype != DT_I64)
    return fail(ERR_RUNTIME, "%sdtype of indices should be Long but got %s", take_along,
                legacy(index));
  if (flat)
    return t_gather(t_reshape(x, 1, (int64_t[]){-1}), 0, t_reshape(index, 1, (int64_t[]){-1}));
  if (x->ndim != index->ndim)
    return fail(ERR_RUNTIME,
                "%sinput and indices should have the same number of dimensions, but got %d "
                "dimensions for input, and %d dimensions for indices",
                take_along, x->ndim, index->ndim);
  if (x->ndim == 0)
    return fail(ERR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (Shown)dim);
  if ((dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  Tensor *from = expand_beside(x, index, dim), *to = expand_beside(index, x, dim);
  return t_gather(from, dim, t_remainder(to, tensor_wrapped_i(x->sizes[dim])));
}

/* ------------------------------------------------------------ unravel_index, one_hot */

static bool check_unravel(const Tensor *indices, Ints shape) {
  if (dtype_kind(tensor_dtype(indices)) != KIND_INT)
    return REFUSE(ERR_TYPE, "expected 'indices' to be integer dtype, but got torch.%s",
                  dtype_info[indices->dtype].name);
  for (int i = 0; i < shape.n; i++) {
    if (shape.v[i] >= 0) continue;
    const char *text = sizes_text(shape.n, shape.v) + 1; /* without its brackets */
    return REFUSE(ERR_VALUE, "'shape' cannot have negative values, but got (%.*s%s)",
                  (int)strcspn(text, "]"), text, shape.n == 1 ? "," : "");
  }
  return true;
}

/* out[i * step] = the index in a dimension of `size`, each of whose entries spans `below`
 * elements. */
static bool unravel(const Tensor *numbers, int64_t below, int64_t size, int64_t *out,
                    int64_t step) {
  const int64_t *in = (const int64_t *)(const void *)tensor_data(numbers);
  if (numbers->numel && (!below || !size)) return REFUSE(ERR_RUNTIME, "ZeroDivisionError");
  if (tensor_absent(numbers)) return true;
  for (int64_t i = 0; i < numbers->numel; i++) {
    int64_t q = in[i] / below - (in[i] % below < 0), r = q % size;
    out[i * step] = r < 0 ? r + size : r;
  }
  return true;
}

/* `all`, whose columns are interleaved, copied if necessary so that each column is laid out like
 * `like`. */
static Tensor *columns_like(Tensor *all, const Tensor *like, int64_t columns) {
  if (tensor_is_contiguous(like)) return all;
  int64_t strides[MAX_DIM + 1] = {0};
  for (int i = 0; i < like->ndim; i++) strides[i] = like->strides[i] * columns;
  strides[like->ndim] = 1;
  Tensor *placed = tensor_empty_strided(like->ndim + 1, all->sizes, strides, DT_I64);
  return placed && tensor_copy_data(placed, all) ? placed : NULL;
}

/* Converts element numbers to indices in `shape`; each dimension is a column of one tensor. */
void t_unravel_index(Tensor *indices, Ints shape, Tensor **columns) {
  OP_ENTERED(t_unravel_index, "unravel_index", indices, shape, columns);
  if (blocked(indices) || !check_unravel(indices, shape) || shape.n == 0) return;
  int64_t sizes[MAX_DIM + 1], below = 1;
  memcpy(sizes, indices->sizes, (size_t)indices->ndim * sizeof *sizes);
  sizes[indices->ndim] = shape.n;
  Tensor *all = tensor_empty(indices->ndim + 1, sizes, DT_I64),
         *flat = plain_contiguous(t_to(indices, DT_I64));
  Tensor *like = tensor_empty_like(indices, DT_I64);
  if (blocked(all, flat, like)) return;
  for (int64_t d = shape.n; d-- > 0;) {
    if (!unravel(flat, below, shape.v[d], (int64_t *)(void *)tensor_data(all) + d, shape.n)) return;
    if (d && __builtin_mul_overflow(below, shape.v[d], &below))
      return (void)fail(ERR_VALUE, "Overflow when unpacking long long");
  }
  all = columns_like(all, like, shape.n);
  for (int64_t d = 0; d < shape.n; d++) columns[d] = t_select(all, -1, d);
}

Tensor *t_one_hot(Tensor *x, int64_t classes) {
  OP_ENTERED(t_one_hot, "one_hot", x, classes);
  if (blocked(x)) return NULL;
  if (x->dtype != DT_I64)
    return fail(ERR_RUNTIME, "one_hot is only applicable to index tensor of type LongTensor.");
  if (x->numel == 0 && classes <= 0)
    return fail(ERR_RUNTIME, "Can not infer total number of classes from empty tensor.");
  Tensor *flat = tensor_settled(plain_contiguous(x));
  if (!flat) return NULL;
  const int64_t *v = (const int64_t *)(const void *)tensor_data(flat);
  int64_t largest = -1, smallest = 0, sizes[MAX_DIM + 1];
  const bool known = !tensor_absent(flat);
  if (!known && classes <= 0 && !door_needs_elements("one_hot")) return NULL;
  for (int64_t i = 0; i < x->numel && known; i++) {
    if (v[i] > largest) largest = v[i];
    if (v[i] < smallest) smallest = v[i];
  }
  if (smallest < 0) return fail(ERR_RUNTIME, "Class values must be non-negative.");
  if (classes == -1) classes = largest + 1;
  if (largest >= classes)
    return fail(ERR_RUNTIME, "Class values must be smaller than num_classes.");
  memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
  sizes[x->ndim] = classes;
  Tensor *y = tensor_zeros(x->ndim + 1, sizes, DT_I64);
  if (!y) return NULL;
  int64_t *out = (int64_t *)(void *)tensor_data(y);
  for (int64_t i = 0; i < x->numel && known; i++) out[i * classes + v[i]] = 1;
  return y;
}

/* ------------------------------------------------------------ isin */

static int compare_f64(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static int compare_i64(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

typedef int Compare(const void *, const void *);

static Compare *const compares[DT_COUNT] = {[DT_I64] = compare_i64, [DT_F64] = compare_f64};

/* Both sides are cast to int64 or float64, where every value of the smaller types is exact. */
Tensor *t_isin(Tensor *elements, Tensor *tests, bool invert) {
  OP_ENTERED(t_isin, "isin", elements, tests, invert);
  if (blocked(elements, tests)) return NULL;
  Tensor *both[2] = {elements, tests};
  for (int i = 0; i < 2; i++)
    if (both[i]->dtype == DT_BOOL)
      return fail(ERR_RUNTIME, "Unsupported input type encountered for isin(): Bool");
  DType common = elementwise_result_dtype(2, both), wide = dtype_is_float(common) ? DT_F64 : DT_I64;
  for (int i = 0; i < 2; i++)
    both[i] = plain_contiguous(t_to(t_to(t_detach(both[i]), common), wide));
  Tensor *y = tensor_empty(elements->ndim, elements->sizes, DT_BOOL), *sorted[2];
  t_sort(t_reshape(both[1], 1, (const int64_t[]){-1}), 0, false, sorted);
  if (blocked(y, both[0]) || !sorted[0] || tensor_absent(y)) return failed() ? NULL : y;
  Compare *compare = compares[wide];
  int64_t n = sorted[0]->numel; /* NaNs, which equal nothing, come last */
  while (n && wide == DT_F64 && isnan(tensor_get_f(sorted[0], n - 1))) n--;
  const char *in = tensor_data(both[0]);
  bool *out = (bool *)(void *)tensor_data(y);
  for (int64_t i = 0; i < y->numel && !poll_stops_round(i, 64); i++) {
    double v;
    memcpy(&v, in + 8 * i, sizeof v);
    bool nan = wide == DT_F64 && v != v;
    out[i] = (!nan && n && bsearch(in + 8 * i, tensor_data(sorted[0]), (size_t)n, 8, compare)) !=
             invert;
  }
  return y;
}

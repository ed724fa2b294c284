/* Reading and writing along one dimension: slices by a vector of indices (index_select, index_add,
 * ...), single elements by an index of x's rank (gather, scatter, ...).
 *
 * The two kinds differ only in the Target that an index names. The walks of index_places.c read and
 * write there, in the order of the indices. Results are contiguous; that of index_fill has x's
 * layout. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "index_rows.h"
#include "ops/index/index.h"
#include "ops/view/view.h"
#include "tape/forward.h"

/* ------------------------------------------------------------ targets */

typedef struct {
  bool elements;  /* else whole slices */
  bool wrap;      /* negative indices count from the end */
  bool slicewise; /* PyTorch does not add with its scatter kernel here */
  int64_t dim;
  Tensor *index;
} Target;

static Places places_of(Tensor *x, Target to, OutOfBounds *bad) {
  return to.elements ? places_elements(x, to.dim, to.index, bad)
                     : places_slices(x, to.dim, to.index, to.wrap, bad);
}

/* Whether PyTorch adds to these slices with its scatter kernel, whose error is another: the
 * outermost or innermost ones. */
static bool slice_by_elements(const Tensor *x, Target to, Put put) {
  return put == PUT_ADD && x->ndim > 1 && (to.dim == 0 || to.dim == x->ndim - 1);
}

static bool in_bounds(const Tensor *x, Target to, Put put, OutOfBounds bad) {
  if (bad.found && (to.elements || (slice_by_elements(x, to, put) && !to.slicewise)))
    fail(ERR_RUNTIME, "index %lld is out of bounds for dimension %lld with size %lld",
         (Shown)bad.value, (Shown)to.dim, (Shown)(x->ndim ? x->sizes[to.dim] : 1));
  if (bad.found) fail(ERR_INDEX, "index out of range in self");
  return !failed();
}

/* The part of src that pairs with index: for elements, its corner of index's sizes. */
static Tensor *part_named(Target to, Tensor *src) {
  if (!to.elements || src->ndim == 0) return src;
  int64_t strides[MAX_DIM] = {0};
  for (int d = 0; d < src->ndim && d < to.index->ndim; d++) strides[d] = src->strides[d];
  return tensor_alias(src, to.index->ndim, to.index->sizes, strides, src->offset);
}

/* y (a fresh copy) at the target (op)= src. */
static bool write_at(Tensor *y, Target to, Put put, Tensor *src) {
  if (blocked(y, to.index, src)) return false;
  if (to.index->numel == 0) return true;
  OutOfBounds bad = {0, false};
  Places p = places_of(y, to, &bad);
  return in_bounds(y, to, put, bad) && places_write(y, p, put, part_named(to, src));
}

static Target elements(int64_t dim, Tensor *index) {
  return (Target){.elements = true, .dim = dim, .index = index};
}

/* ------------------------------------------------------------ slices: index_select, index_add */

static bool select_fits(const Tensor *x, int64_t dim, const Tensor *index) {
  if (index->ndim > 1) return REFUSE(ERR_INDEX, "index_select(): Index is supposed to be a vector");
  if (!index_dtype(index))
    return REFUSE(ERR_RUNTIME, "index_select(): Expected dtype int32 or int64 for index");
  if (x->ndim == 0 && index->numel != 1)
    return REFUSE(ERR_RUNTIME,
                  "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
                  (Shown)index->numel);
  if (x->ndim && x->sizes[dim] == 0 && index->numel)
    return REFUSE(ERR_RUNTIME, "index_select(): self indexing axis dim should be positive");
  return true;
}

static Tensor *index_add_fresh(Tensor *y, Tensor *x, int64_t dim, Tensor *index, Tensor *source,
                               double alpha);

/* dx = 0, then dx[index] += g for each index in order. */
GRAD(IndexSelectBackward0, "index | self_sym_sizes:ints dim:int")
{
  if (failed() || !g[0]) return;
  const int64_t dim = n->numbers[n->n_numbers - 1].i;
  Tensor *index = saved_tensor(n, 0);
  if (gradient_is_asked()) {
    gi[0] = t_index_add(t_new_zeros(g[0], num_list_at(n, 0)), dim, index, g[0], 1);
    return;
  }
  Tensor *zeros = index_zeros(n, 0, tensor_dtype(g[0]));
  gi[0] = index_add_fresh(zeros, zeros, dim, index, g[0], 1);
}

/* An empty tensor of n rows like x's. */
static Tensor *empty_rows(const Tensor *x, int64_t n) {
  int64_t sizes[MAX_DIM];
  memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
  sizes[0] = n;
  return tensor_empty(x->ndim, sizes, tensor_dtype(x));
}

Tensor *t_index_select(Tensor *x, int64_t dim, Tensor *index) {
  OP_ENTERED(t_index_select, "index_select", x, dim, index);
  if (blocked(x, index) || (dim = dim_wrap(dim, x->ndim)) < 0 || !select_fits(x, dim, index))
    return NULL;
  Node *n = node_new(&IndexSelectBackward0, 1, 2 + x->ndim, x, NULL);
  save(n, 0, index);
  if (n) num_list(n, 0, x->ndim, x->sizes);
  num_i(n, 1 + x->ndim, dim);
  OutOfBounds bad = {0, false};
  Tensor *y = dim || x->ndim == 0 ? NULL : empty_rows(x, index->numel);
  bool done = y && places_read_rows(x, index, y, &bad);
  Places p = {NULL, NULL};
  if (!done) p = places_slices(x, dim, index, false, &bad);
  if (bad.found && (x->numel == 0 || (dim == 1 && x->ndim > 1)))
    fail(ERR_RUNTIME, "INDICES element is out of DATA bounds, id=%lld axis_dim=%lld",
         (Shown)bad.value, (Shown)x->sizes[dim]);
  if (bad.found) fail(ERR_INDEX, "index out of range in self");
  if (!done) y = p.view ? tensor_empty(p.view->ndim, p.view->sizes, tensor_dtype(x)) : NULL;
  return set_history(!failed() && (done || places_read(p, y)) ? y : NULL, n);
}

/* Checks the arguments of index_add and index_reduce. */
static bool source_fits(const char *op, const Tensor *x, int64_t dim, const Tensor *index,
                        const Tensor *source) {
  const char *dtype = legacy(index);
  if (index->ndim > 1)
    return REFUSE(
        ERR_INDEX,
        "%s(): Index is supposed to be a vector, but got dim: %d with type: %s and size: %s", op,
        index->ndim, dtype, shape_text(index));
  if (!index_dtype(index))
    return REFUSE(ERR_RUNTIME, "%s(): Expected dtype int32/int64 for index but got: %s", op, dtype);
  if (x->dtype != source->dtype)
    return REFUSE(ERR_RUNTIME, "%s(): self (%s) and source (%s) must have the same scalar type", op,
                  legacy(x), legacy(source));
  if (dim && dim >= source->ndim)
    return REFUSE(ERR_RUNTIME,
                  "%s(): Indexing dim %lld is out of bounds of the source tensor with dim %d", op,
                  (Shown)dim, source->ndim);
  int64_t count = source->ndim ? source->sizes[dim] : 1;
  if (!source->ndim && index->numel != 1)
    return REFUSE(ERR_INDEX, "Dimension specified as 0 but tensor has no dimensions");
  if (index->numel != count)
    return REFUSE(
        ERR_RUNTIME,
        "%s(): Number of indices (%lld) should be equal to source.size(dim): (%lld), for dim: %lld",
        op, (Shown)index->numel, (Shown)count, (Shown)dim);
  bool same = x->ndim == source->ndim;
  for (int d = 0; same && d < x->ndim; d++) same = d == dim || x->sizes[d] == source->sizes[d];
  if (!same)
    fail(ERR_RUNTIME,
         "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
         "self.shape = %s source.shape = %s",
         shape_text(x), shape_text(source));
  return same;
}

/* y = x; y[index] += alpha * source: dx = g, dsource = alpha * g[index]. */
GRAD(IndexAddBackward0, "index source | dim:int alpha:scalar source_dim:int")
{
  if (needs(n, 0)) gi[0] = g[0];
  if (!needs(n, 1)) return;
  Tensor *picked = t_index_select(g[0], n->numbers[0].i, saved_tensor(n, 0));
  gi[1] = n->numbers[1].f == 1 ? picked : t_mul_f(picked, n->numbers[1].f);
}

static Tensor *scale_source(Tensor *source, double alpha) {
  if (alpha == 1) return source;
  return WITHOUT_GRAD(t_mul(source, tensor_number(alpha, tensor_dtype(source))));
}

static Tensor *index_add_fresh(Tensor *y, Tensor *x, int64_t dim, Tensor *index, Tensor *source,
                               double alpha) {
  if (blocked(x, index, source) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  if (!source_fits("index_add_", x, dim, index, source)) return NULL;
  Node *n = node_new(&IndexAddBackward0, 2, 3, x, source, NULL);
  if (needs(n, 1)) save(n, 0, index), save(n, 1, source);
  num_i(n, 2, source->ndim);
  num_i(n, 0, dim);
  num_f(n, 1, alpha);
  Target to = {.slicewise = alpha != 1, .dim = dim, .index = index};
  return set_history(write_at(y, to, PUT_ADD, scale_source(source, alpha)) ? y : NULL, n);
}

Tensor *t_index_add(Tensor *x, int64_t dim, Tensor *index, Tensor *source, double alpha) {
  OP_ENTERED(t_index_add, "index_add", x, dim, index, source, alpha);
  return index_add_fresh(index_clone_contiguous(x), x, dim, index, source, alpha);
}

/* ------------------------------------------------------------ slices: index_copy, index_fill */

/* A slice's shape, as PyTorch words it here: "3 4". */
static const char *slice_text(const Tensor *x, int64_t dim, char *text) {
  int at = 0;
  text[0] = 0;
  for (int d = 0; d < x->ndim; d++)
    if (d != dim) at += sprintf(text + at, at ? " %lld" : "%lld", (Shown)x->sizes[d]);
  return text;
}

static bool copy_fits(const Tensor *x, int64_t dim, const Tensor *index, const Tensor *source) {
  if (index->ndim > 1)
    return REFUSE(ERR_INDEX, "index_copy_(): Index should have dimension 1 or 0 (got %d)",
                  index->ndim);
  if (source->ndim == 0 && index->numel != 1)
    return REFUSE(ERR_INDEX,
                  "index_copy_(): When source is scalar, index should have one element (got %lld)",
                  (Shown)index->numel);
  if (source->ndim != x->ndim && source->ndim && x->ndim)
    return REFUSE(
        ERR_INDEX,
        "index_copy_(): When source and destination are not scalars, their dimensionality must "
        "match. Source dimensionality (%d), destination dimensionality (%d)",
        source->ndim, x->ndim);
  if (index->dtype != DT_I64)
    return REFUSE(ERR_RUNTIME, "index_copy_(): Expected a long tensor for index, but got %s",
                  legacy(index));
  if (x->dtype != source->dtype)
    return REFUSE(ERR_RUNTIME,
                  "index_copy_(): self and source expected to have the same dtype, but got (self) "
                  "%s and (source) %s",
                  legacy(x), legacy(source));
  bool same = source->ndim == x->ndim || (x->ndim <= 1 && source->ndim <= 1);
  for (int d = 0; same && d < x->ndim && d < source->ndim; d++)
    same = d == dim || x->sizes[d] == source->sizes[d];
  char a[MAX_DIM * 21], b[MAX_DIM * 21];
  if (!same)
    return REFUSE(
        ERR_RUNTIME,
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice "
        "shape: %s at dimension %lld and source slice shape: %s at dimension 0.",
        slice_text(x, dim, a), (Shown)dim, slice_text(source, dim, b));
  int64_t count = source->ndim ? source->sizes[dim] : 1;
  if (source->ndim && index->numel != count)
    return REFUSE(
        ERR_INDEX,
        "index_copy_(): Number of indices (%lld) should be equal to source.size(dim) (%lld)",
        (Shown)index->numel, (Shown)count);
  return true;
}

/* y = x; y[index] = source: dx = g but 0 there, dsource = g[index]. */
GRAD_AND_TANGENT(IndexCopyBackward0, "index source | dim:int source_dim:int") {
  Tensor *index = saved_tensor(n, 0);
  int64_t dim = n->numbers[0].i;
  if (needs(n, 0)) gi[0] = t_index_fill(g[0], dim, index, index_zero(g[0]));
  if (needs(n, 1)) gi[1] = t_index_select(g[0], dim, index);
  if (gi[1] && n->numbers[1].i == 0) gi[1] = t_reshape(gi[1], 0, NULL);
}
TANGENT(IndexCopyBackward0) {
  Tensor *index = saved_tensor(n, 0), *to = t[0] ? t[0] : t_zeros_like(y);
  return t[1] ? t_index_copy(to, n->numbers[0].i, index, t[1])
              : t_index_fill(to, n->numbers[0].i, index, index_zero(y));
}

/* A scalar x acts as a vector of one element meanwhile. */
static Tensor *as_vector(Tensor *x) {
  return blocked(x) || x->ndim ? x : tensor_alias(x, 1, (int64_t[]){1}, (int64_t[]){1}, x->offset);
}

Tensor *t_index_copy(Tensor *x, int64_t dim, Tensor *index, Tensor *source) {
  OP_ENTERED(t_index_copy, "index_copy", x, dim, index, source);
  if (blocked(x, index, source) || (dim = dim_wrap(dim, x->ndim)) < 0 ||
      !copy_fits(x, dim, index, source))
    return NULL;
  Node *n = node_new(&IndexCopyBackward0, 2, 2, x, source, NULL);
  if (needs(n, 1)) save(n, 1, source);
  save(n, 0, index);
  num_i(n, 0, dim);
  num_i(n, 1, source->ndim);
  Tensor *y = index_clone_contiguous(x), *to = as_vector(y);
  OutOfBounds bad = {0, false};
  Places p = places_slices(to, dim, index, false, &bad);
  if (bad.found)
    fail(ERR_INDEX, "index_copy_(): index %lld is out of bounds for dimension %lld with size %lld",
         (Shown)bad.value, (Shown)dim, (Shown)to->sizes[dim]);
  return set_history(places_write(to, p, PUT_SET, as_vector(source)) ? y : NULL, n);
}

/* y = x; y[index] = value: dx = g but 0 there, dvalue = the sum of g there, each slice once. */
GRAD(IndexFillBackward0, "index | dim:int")
{ gi[0] = t_index_fill(g[0], n->numbers[0].i, saved_tensor(n, 0), index_zero(g[0])); }
GRAD(IndexFillBackward1, "index | dim:int")
{
  Tensor *index = saved_tensor(n, 0);
  int64_t dim = n->numbers[0].i;
  if (failed() || !g[0]) return;
  if (needs(n, 0)) gi[0] = t_index_fill(g[0], dim, index, index_zero(g[0]));
  if (!needs(n, 1)) return;
  Tensor *elsewhere = tensor_full(g[0]->ndim, g[0]->sizes, DT_BOOL, 1);
  elsewhere = t_index_fill(elsewhere, dim, index, tensor_number(0, DT_BOOL));
  gi[1] = t_sum_all(t_masked_fill(g[0], elsewhere, index_zero(g[0])));
}

Tensor *t_index_fill(Tensor *x, int64_t dim, Tensor *index, Tensor *value) {
  OP_ENTERED(t_index_fill, "index_fill", x, dim, index, value);
  if (blocked(x, index, value) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  if (value->ndim)
    return fail(ERR_RUNTIME,
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d "
                "dimension(s).",
                value->ndim);
  if (index->dtype != DT_I64)
    return fail(ERR_INDEX, "index_fill_(): Expected dtype int64 for index.");
  if (index->ndim > 1) return fail(ERR_RUNTIME, "Index has to be a vector/scalar");
  bool number = is_wrapped(value);
  Node *n = number ? node_new(&IndexFillBackward0, 1, 1, x, NULL)
                   : node_new(&IndexFillBackward1, 1, 1, x, value, NULL);
  save(n, 0, index);
  num_i(n, 0, dim);
  Tensor *y = index_clone(x), *to = as_vector(y);
  OutOfBounds bad = {0, false};
  Places p = places_slices(to, dim, index, true, &bad);
  if (bad.found)
    fail(ERR_INDEX, "index %lld is out of bounds for dimension %lld with size %lld",
         (Shown)bad.value, (Shown)dim, (Shown)to->sizes[dim]);
  return set_history(places_write(to, p, PUT_SET, index_number(value, tensor_dtype(x))) ? y : NULL,
                     n);
}

/* ------------------------------------------------------------ elements: gather */

static int rank(const Tensor *t) { return t->ndim ? t->ndim : 1; }
static int64_t size_at(const Tensor *t, int d) { return t->ndim ? t->sizes[d] : 1; }

static bool same_rank(const Tensor *index, const Tensor *t, const char *name) {
  return rank(index) == rank(t) ||
         REFUSE(ERR_RUNTIME, "Index tensor must have the same number of dimensions as %s tensor",
                name);
}

static bool gather_fits(const Tensor *x, int64_t dim, const Tensor *index) {
  if (index->numel == 0) return true;
  if (!index_dtype(index))
    return REFUSE(ERR_RUNTIME, "gather(): Expected dtype int32/int64 for index");
  if (!same_rank(index, x, "input")) return false;
  for (int d = 0; d < rank(x); d++)
    if (d != dim && size_at(index, d) > size_at(x, d))
      return REFUSE(ERR_RUNTIME,
                    "Size does not match at dimension %d expected index %s to be no larger than "
                    "self %s apart from dimension %lld",
                    d, shape_text(index), shape_text(x), (Shown)dim);
  return true;
}

static Tensor *scatter_add_fresh(Tensor *y, Tensor *x, int64_t dim, Tensor *index, Tensor *src);

/* The places of index's elements in x, as columns of COO indices. */
static Tensor *gathered_places(int ndim, int64_t dim, Tensor *index) {
  Tensor *from = WITHOUT_GRAD(t_contiguous(t_to(index, DT_I64)));
  Tensor *y = tensor_empty(2, (int64_t[]){ndim, index->numel}, DT_I64);
  if (blocked(from, y)) return NULL;
  const int64_t *v = (const int64_t *)(const void *)tensor_data(from);
  int64_t *out = (int64_t *)(void *)tensor_data(y);
  for (int64_t i = 0; i < index->numel; i++) {
    int64_t rest = i;
    for (int d = ndim - 1; d >= 0; rest /= size_at(index, d--))
      out[d * index->numel + i] = d == dim ? v[i] : rest % size_at(index, d);
  }
  return y;
}

static Tensor *gather_sparse_gradient(Node *n, Tensor *g, int64_t dim) {
  Tensor *index = saved_tensor(n, 0);
  Ints sizes = {(int32_t)n->numbers[0].i, &n->numbers[1].i};
  Tensor *places = blocked(index) ? NULL : gathered_places(sizes.n, dim, index);
  return places ? t_sparse_coo(places, t_reshape(g, 1, &g->numel), sizes.n, sizes.v, false) : NULL;
}

/* dx = 0, then dx[index] += g element by element; or a sparse tensor of these elements. */
GRAD_AND_TANGENT(GatherBackward0, "index self | -:ints dim:int sparse_grad:bool") {
  if (failed() || !g[0]) return;
  const Number *last = n->numbers + n->n_numbers - 1;
  if (last->i) gi[0] = gather_sparse_gradient(n, g[0], last[-1].i);
  if (last->i) return;
  Tensor *index = saved_tensor(n, 0);
  if (gradient_is_asked()) {
    gi[0] = t_scatter_add(t_new_zeros(g[0], num_list_at(n, 0)), last[-1].i, index, g[0]);
    return;
  }
  Tensor *zeros = index_zeros(n, 0, tensor_dtype(g[0]));
  gi[0] = scatter_add_fresh(zeros, zeros, last[-1].i, index, g[0]);
}
TANGENT(GatherBackward0) {
  return t_gather(t[0], n->numbers[n->n_numbers - 2].i, saved_tensor(n, 0));
}

Tensor *t_gather(Tensor *x, int64_t d, Tensor *at) { return t_gather_as(x, d, at, false); }

/* `sparse`: the gradient is sparse. */
Tensor *t_gather_as(Tensor *x, int64_t dim, Tensor *index, bool sparse) {
  OP_ENTERED_AS(t_gather_as(x, dim, index, sparse), "gather", x, dim, index, sparse);
  if (blocked(x, index) || (dim = dim_wrap(dim, x->ndim)) < 0 || !gather_fits(x, dim, index))
    return NULL;
  Node *n = node_new(&GatherBackward0, 2, 3 + x->ndim, x, NULL);
  save(n, 1, x);
  save(n, 0, index);
  if (n) num_list(n, 0, x->ndim, x->sizes);
  num_i(n, 1 + x->ndim, dim);
  num_i(n, 2 + x->ndim, sparse);
  Tensor *y = tensor_empty(index->ndim, index->sizes, tensor_dtype(x));
  if (index->numel == 0) return set_history(y, n);
  OutOfBounds bad = {0, false};
  bool done = places_read_elements(x, dim, index, y, &bad);
  Places p = {NULL, NULL};
  if (!done) p = places_elements(x, dim, index, &bad);
  return set_history(
      in_bounds(x, elements(dim, index), PUT_SET, bad) && (done || places_read(p, y)) ? y : NULL,
      n);
}

/* ------------------------------------------------------------ elements: scatter, scatter_add */

/* src NULL: the source is a number. */
static bool scatter_fits(const Tensor *x, int64_t dim, const Tensor *index, const Tensor *src) {
  if (!index_dtype(index) && index->numel)
    return REFUSE(ERR_RUNTIME, "scatter(): Expected dtype int32/int64 for index");
  if (src && x->dtype != src->dtype)
    return REFUSE(ERR_RUNTIME, "scatter(): Expected self.dtype to be equal to src.dtype");
  if (index->numel == 0) return true;
  if (!same_rank(index, x, "self") || (src && !same_rank(index, src, "src"))) return false;
  bool fits = true;
  for (int d = 0; d < rank(x); d++) {
    fits = fits && (d == dim || size_at(index, d) <= size_at(x, d));
    fits = fits && (!src || size_at(index, d) <= size_at(src, d));
  }
  if (fits) return true;
  if (src)
    fail(ERR_RUNTIME,
         "Expected index %s to be no larger than self %s apart from dimension %lld and to be no "
         "larger size than src %s",
         shape_text(index), shape_text(x), (Shown)dim, shape_text(src));
  else
    fail(ERR_RUNTIME, "Expected index %s to be no larger than self %s apart from dimension %lld",
         shape_text(index), shape_text(x), (Shown)dim);
  return false;
}

/* The corner of src that has index's sizes, as a view. */
static Tensor *corner(Tensor *src, const Tensor *index) {
  for (int d = 0; !blocked(src) && d < src->ndim; d++)
    if (src->sizes[d] != size_at(index, d)) src = t_narrow(src, d, 0, size_at(index, d));
  return src;
}

/* The gradient of a tensor of these sizes from the gradient of its corner: 0 elsewhere. */
static Tensor *pad_to_sizes(Tensor *part, Ints sizes) {
  int64_t pads[2 * MAX_DIM], one = 1;
  if (blocked(part)) return NULL;
  if (part->numel == 0) return tensor_zeros(sizes.n, sizes.v, tensor_dtype(part));
  if (part->ndim != sizes.n) part = t_reshape(part, sizes.n, &one);
  if (!part || sizes_equal(part->ndim, part->sizes, sizes.n, sizes.v)) return part;
  for (int i = 0, d = sizes.n - 1; d >= 0; i++, d--) {
    pads[2 * i] = 0;
    pads[2 * i + 1] = sizes.v[d] - part->sizes[d];
  }
  return t_constant_pad(part, (Ints){2 * sizes.n, pads}, tensor_wrapped_i(0));
}

/* A node of x and src; its numbers are src's sizes and dim. */
static Node *scatter_node(const NodeType *type, Tensor *x, Tensor *src, int64_t dim) {
  Node *n = node_new(type, 1, 2 + src->ndim, x, src, NULL);
  if (n) num_list(n, 0, src->ndim, src->sizes);
  num_i(n, 1 + src->ndim, dim);
  return n;
}
static int64_t scatter_dim(const Node *n) { return n->numbers[n->n_numbers - 1].i; }
static Tensor *source_gradient(Node *n, Tensor *g) {
  return pad_to_sizes(t_gather(g, scatter_dim(n), saved_tensor(n, 0)), num_list_at(n, 0));
}

/* y = x; y[index] = src: dx = g but 0 there, dsrc = g[index]. */
GRAD_AND_TANGENT(ScatterBackward0, "index | -:ints dim:int") {
  if (needs(n, 0))
    gi[0] = t_scatter_with(g[0], scatter_dim(n), saved_tensor(n, 0), tensor_wrapped_f(0), NULL);
  if (needs(n, 1)) gi[1] = source_gradient(n, g[0]);
}
TANGENT(ScatterBackward0) {
  return t_scatter_with(t[0] ? t[0] : t_zeros_like(y), scatter_dim(n), saved_tensor(n, 0),
                        t[1] ? t[1] : tensor_wrapped_f(0), NULL);
}
GRAD(ScatterBackward1, "index | dim:int")
{ gi[0] = t_scatter_with(g[0], n->numbers[0].i, saved_tensor(n, 0), tensor_wrapped_f(0), NULL); }
NO_DERIVATIVE(scatter)

static bool scatter_put(const char *reduce, bool number, Put *put) {
  *put = PUT_SET;
  if (!reduce) return true;
  if (strcmp(reduce, "add") != 0 && strcmp(reduce, "multiply") != 0)
    return REFUSE(ERR_RUNTIME, "reduce argument must be either add or multiply.");
  if (!number)
    WARN_ONCE(
        "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in "
        "a future PyTorch release. Use torch.scatter_reduce instead for more reduction options.");
  *put = reduce[0] == 'a' ? PUT_ADD : PUT_MUL;
  return true;
}

Tensor *t_scatter_with(Tensor *x, int64_t dim, Tensor *index, Tensor *src, const char *reduce) {
  OP_ENTERED(t_scatter_with, "scatter", x, dim, index, src, reduce);
  if (blocked(x, index, src) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  bool number = is_wrapped(src);
  Put put;
  if (!scatter_fits(x, dim, index, number ? NULL : src) || !scatter_put(reduce, number, &put))
    return NULL;
  const NodeType *type = reduce ? &node_scatter : number ? &ScatterBackward1 : &ScatterBackward0;
  Node *n = number ? node_new(type, 1, 1, x, NULL) : scatter_node(type, x, src, dim);
  if (!reduce) save(n, 0, index);
  if (number) num_i(n, 0, dim);
  Tensor *y = index_clone_contiguous(x), *from = number ? index_number(src, tensor_dtype(x)) : src;
  return set_history(write_at(y, elements(dim, index), put, from) ? y : NULL, n);
}

Tensor *t_scatter(Tensor *x, int64_t dim, Tensor *index, Tensor *src) {
  OP_ENTERED(t_scatter, "scatter", x, dim, index, src);
  return t_scatter_with(x, dim, index, src, NULL);
}

/* y = x; y[index] += src: dx = g, dsrc = g[index]. */
GRAD_AND_TANGENT(ScatterAddBackward0, "index | -:ints dim:int") {
  if (needs(n, 0)) gi[0] = g[0];
  if (needs(n, 1)) gi[1] = source_gradient(n, g[0]);
}
TANGENT(ScatterAddBackward0) {
  return t[1] ? t_scatter_add(t[0] ? t[0] : t_zeros_like(y), scatter_dim(n), saved_tensor(n, 0),
                              t[1])
              : t[0];
}

static Tensor *scatter_add_fresh(Tensor *y, Tensor *x, int64_t dim, Tensor *index, Tensor *src) {
  if (blocked(x, index, src) || (dim = dim_wrap(dim, x->ndim)) < 0 ||
      !scatter_fits(x, dim, index, src))
    return NULL;
  Node *n = scatter_node(&ScatterAddBackward0, x, src, dim);
  if (needs(n, 1)) save(n, 0, index);
  return set_history(write_at(y, elements(dim, index), PUT_ADD, src) ? y : NULL, n);
}

Tensor *t_scatter_add(Tensor *x, int64_t dim, Tensor *index, Tensor *src) {
  OP_ENTERED(t_scatter_add, "scatter_add", x, dim, index, src);
  return scatter_add_fresh(index_clone_contiguous(x), x, dim, index, src);
}

/* ------------------------------------------------------------ reductions: index_reduce,
 * scatter_reduce */

typedef enum {
  REDUCE_SUM,
  REDUCE_PROD,
  REDUCE_MEAN,
  REDUCE_AMAX,
  REDUCE_AMIN,
  REDUCTIONS
} Reduction;
static const char *const reduction_names[REDUCTIONS] = {"sum", "prod", "mean", "amax", "amin"};
static const Put reduction_puts[REDUCTIONS] = {PUT_ADD, PUT_MUL, PUT_ADD, PUT_MAX, PUT_MIN};

/* The start of a reduction that leaves self out. */
static Tensor *identity(Reduction r, DType d) {
  Tensor *t = tensor_number(r == REDUCE_PROD, d);
  if (!t || r < REDUCE_AMAX) return t;
  bool low = r == REDUCE_AMAX;
  int64_t high = d == DT_U8 || d == DT_BOOL ? (d == DT_U8 ? UINT8_MAX : 1)
                                            : INT64_MAX >> (64 - 8 * dtype_bytes(d));
  if (dtype_is_float(d)) tensor_set_f(t, 0, low ? -INFINITY : INFINITY);
  else tensor_set_i(t, 0, !low ? high : d == DT_U8 || d == DT_BOOL ? 0 : -high - 1);
  return t;
}

/* Divides y by the number of values in each element (including y's if it counts); integers round
 * down. */
static bool divide_by_counts(Tensor *y, Target to, bool include_self) {
  Tensor *counts = tensor_full(y->ndim, y->sizes, DT_I64, include_self);
  if (!write_at(counts, to, PUT_ADD, tensor_number(1, DT_I64))) return false;
  if (tensor_absent(y)) return true;
  const int64_t *c = (const int64_t *)(const void *)tensor_data(counts);
  const int64_t parts = dtype_is_complex(tensor_dtype(y)) ? 2 : 1;
  DISPATCH_NUMBER(dtype_real(tensor_dtype(y)), {
    T *v = (T *)(void *)tensor_data(y);
    for (int64_t i = 0; i < y->numel * parts; i++) {
      if (c[i / parts] < 2) continue;
      T k = (T)c[i / parts], q = (T)(v[i] / k);
      if (!dtype_is_inexact(tensor_dtype(y)) && (T)(q * k) != v[i] && v[i] < 0) q = (T)(q - 1);
      v[i] = q;
    }
  })
  return true;
}

static Tensor *reduce_plain(Tensor *x, Target to, Tensor *src, Reduction r, bool include_self) {
  Tensor *y = index_clone_contiguous(x);
  if (blocked(y, to.index, src)) return NULL;
  if (!include_self && !write_at(y, to, PUT_SET, identity(r, tensor_dtype(x)))) return NULL;
  if (!write_at(y, to, reduction_puts[r], src)) return NULL;
  return r != REDUCE_MEAN || divide_by_counts(y, to, include_self) ? y : NULL;
}

static Tensor *pick(Tensor *x, Target from) {
  return from.elements ? t_gather(x, from.dim, from.index)
                       : t_index_select(x, from.dim, from.index);
}
static Tensor *add_at(Tensor *x, Target to, Tensor *src) {
  return to.elements ? t_scatter_add(x, to.dim, to.index, src)
                     : t_index_add(x, to.dim, to.index, src, 1);
}
static Tensor *reduce_again(Tensor *x, Target to, Tensor *src, Reduction r, bool include_self) {
  return to.elements ? t_scatter_reduce(x, to.dim, to.index, src, reduction_names[r], include_self)
                     : t_index_reduce(x, to.dim, to.index, src, reduction_names[r], include_self);
}
static Tensor *is_zero(Tensor *x) { return t_eq(x, tensor_wrapped_f(0)); }
static Tensor *zeros_to_one(Tensor *x) { return t_masked_fill(x, is_zero(x), tensor_wrapped_f(1)); }

typedef struct {
  Tensor *g, *x, *src, *result;
  Target at;
  Reduction r;
  bool include_self;
} Reduced;

static void grad_twice_zero(Node *n, Tensor **g, Tensor **gi) {
  (void)n, (void)g, (void)gi;
  fail(ERR_RUNTIME, "scatter_reduce(): Double backward is unsupported for src when >1 zeros in src "
                    "are scattered to the same position in self");
}
static const NodeType TwiceZero = {"DelayedError", grad_twice_zero, "", false, NULL, NULL};

/* dx = g * (the product without x), and likewise for src. If a zero is the only one in its product,
 * the product of the others is found by taking it for 1. */
static void product_grads(const Reduced *d, Tensor **gi, bool want_src) {
  Tensor *x1 = zeros_to_one(d->x);
  gi[0] = t_div(t_mul(d->g, reduce_again(x1, d->at, d->src, d->r, d->include_self)), x1);
  if (!want_src) return;
  Tensor *zero = is_zero(d->src);
  Tensor *none = t_zeros_like(t_to(is_zero(d->x), DT_F64));
  Tensor *zeros = pick(add_at(none, d->at, t_to(zero, DT_F64)), d->at);
  Tensor *single = t_logical_and(zero, t_eq(zeros, tensor_wrapped_f(1)));
  Tensor *others = reduce_again(d->x, d->at, t_masked_fill(d->src, single, tensor_wrapped_f(1)),
                                d->r, d->include_self);
  Tensor *plain = t_div(pick(t_mul(d->g, d->result), d->at), zeros_to_one(d->src));
  gi[1] = t_where(single, pick(t_mul(d->g, others), d->at), plain);
  Tensor *several = grad_mode ? t_nonzero(t_gt(zeros, tensor_wrapped_f(1))) : NULL;
  if (several && several->numel && gi[1]) {
    Node *error = node_new(&TwiceZero, 0, 0, gi[1], NULL);
    gi[1] = set_history(index_clone(gi[1]), error);
  }
}

/* A copy of x with zeros where the index points. */
static Tensor *zero_at(Tensor *x, Target at) {
  return at.elements ? t_scatter_with(x, at.dim, at.index, tensor_wrapped_f(0), NULL)
                     : t_index_fill(x, at.dim, t_to(at.index, DT_I64), tensor_wrapped_f(0));
}

/* g is shared equally by all elements equal to the result; x takes part only if included. */
static void extremum_grads(const Reduced *d, Tensor **gi) {
  DType dtype = d->x ? tensor_dtype(d->x) : DT_F32;
  Tensor *x_is = t_to(t_eq(d->x, d->result), dtype);
  if (!d->include_self) x_is = zero_at(x_is, d->at);
  Tensor *src_is = t_to(t_eq(d->src, pick(d->result, d->at)), dtype);
  Tensor *share = t_div(d->g, add_at(x_is, d->at, src_is));
  gi[0] = t_mul(x_is, share);
  gi[1] = t_mul(src_is, pick(share, d->at));
}

static void mean_grads(const Reduced *d, Tensor **gi) {
  Tensor *counts = add_at(d->include_self ? t_ones_like(d->x) : t_zeros_like(d->x), d->at,
                          t_ones_like(d->src));
  gi[0] = t_div(d->g, zeros_to_one(counts));
  gi[1] = pick(gi[0], d->at);
}

static void reduce_grad(Node *n, Tensor *g, Tensor **gi, bool by_element) {
  Reduced d = {
      .g = g, .x = saved_tensor(n, 0), .src = saved_tensor(n, 2), .result = saved_tensor(n, 3)};
  d.at = (Target){.elements = by_element, .dim = n->numbers[0].i, .index = saved_tensor(n, 1)};
  d.r = (Reduction)n->numbers[1].i;
  d.include_self = n->numbers[2].i;
  Tensor *both[2] = {NULL, NULL}, *src = d.src;
  if (blocked(src, d.at.index)) return;
  if (by_element && d.at.index->numel == 0) { /* index of any rank */
    if (needs(n, 0)) gi[0] = g;
    if (needs(n, 1)) gi[1] = t_zeros_like(src);
    return;
  }
  if (by_element) d.src = corner(src, d.at.index);
  switch (d.r) {
    case REDUCE_PROD: product_grads(&d, both, needs(n, 1)); break;
    case REDUCE_MEAN: mean_grads(&d, both); break;
    case REDUCE_AMAX:
    case REDUCE_AMIN: extremum_grads(&d, both); break;
    default: both[0] = g, both[1] = pick(g, d.at);
  }
  if (!d.include_self) both[0] = zero_at(both[0], d.at);
  if (needs(n, 0)) gi[0] = both[0];
  if (needs(n, 1))
    gi[1] = by_element ? pad_to_sizes(both[1], (Ints){src->ndim, src->sizes}) : both[1];
}
/* --- tangents: only the parts of src that the index reaches count --- */

static Tensor *reached_part(Tensor *src, Target at) {
  return at.elements && src ? corner(src, at.index) : src;
}
static Tensor *sum_at(Target at, Tensor *x, Tensor *src) { return src ? add_at(x, at, src) : x; }
static Tensor *zero_unless(Tensor *mask, Tensor *x) {
  return x ? t_where(mask, x, tensor_wrapped_f(0)) : NULL;
}

/* The product of the nonzero factors, times the sum of their relative changes. With one zero, only
 * that factor's change counts. */
static Tensor *product_tangent(const Reduced *d, Tensor *of_x, Tensor *of_src) {
  Tensor *x = d->x, *zero_src = is_zero(d->src), *none = t_zeros_like(x);
  if (blocked(x, zero_src)) return NULL;
  if (!d->include_self)
    x = t_where(is_zero(zero_at(t_ones_like(x), d->at)), tensor_wrapped_f(1), x);
  Tensor *zero_x = is_zero(x), *zeros = add_at(t_to(zero_x, DT_F64), d->at, t_to(zero_src, DT_F64));
  Tensor *product = reduce_again(zeros_to_one(x), d->at, zeros_to_one(d->src), REDUCE_PROD, true);
  Tensor *many = of_x ? zero_unless(t_logical_not(zero_x), t_div(of_x, zeros_to_one(x))) : none;
  Tensor *alone = of_x ? zero_unless(zero_x, of_x) : none;
  if (of_src) {
    Tensor *change = t_div(of_src, zeros_to_one(d->src));
    many = add_at(many, d->at, zero_unless(t_logical_not(zero_src), change));
    alone = add_at(alone, d->at, zero_unless(zero_src, of_src));
  }
  Tensor *sum = t_where(t_eq(zeros, tensor_wrapped_f(0)), many,
                        zero_unless(t_eq(zeros, tensor_wrapped_f(1)), alone));
  return t_mul(product, sum);
}

static Tensor *extremum_tangent(const Reduced *d, Tensor *of_x, Tensor *of_src) {
  Tensor *x_is = t_eq(d->x, d->result), *src_is = t_eq(d->src, pick(d->result, d->at));
  if (blocked(x_is, src_is)) return NULL;
  DType dtype = tensor_dtype(d->x);
  if (!d->include_self) x_is = t_to(zero_at(t_to(x_is, dtype), d->at), DT_BOOL);
  Tensor *count = add_at(t_to(x_is, dtype), d->at, t_to(src_is, dtype));
  of_x = of_x ? zero_unless(x_is, of_x) : t_zeros_like(d->x);
  return t_div(sum_at(d->at, of_x, zero_unless(src_is, of_src)), count);
}

static Tensor *reduce_tangent(Node *n, Tensor *const *t, bool by_element) {
  Reduced d = {.x = saved_plain(n, 0), .result = saved_plain(n, 3)};
  d.at = (Target){.elements = by_element, .dim = n->numbers[0].i, .index = saved_tensor(n, 1)};
  d.include_self = n->numbers[2].i;
  if (blocked(d.x, d.at.index)) return NULL;
  d.src = reached_part(saved_plain(n, 2), d.at);
  Tensor *of_x = t[0], *of_src = reached_part(t[1], d.at);
  if (of_x && !d.include_self) of_x = zero_at(of_x, d.at);
  switch ((Reduction)n->numbers[1].i) {
    case REDUCE_PROD: return product_tangent(&d, of_x, of_src);
    case REDUCE_AMAX:
    case REDUCE_AMIN: return extremum_tangent(&d, of_x, of_src);
    default: break;
  }
  Tensor *sum = sum_at(d.at, of_x ? of_x : t_zeros_like(d.x), of_src);
  if ((Reduction)n->numbers[1].i != REDUCE_MEAN) return sum;
  Tensor *counts = add_at(d.include_self ? t_ones_like(d.x) : t_zeros_like(d.x), d.at,
                          t_ones_like(d.src));
  return t_div(sum, zeros_to_one(counts));
}

#define REDUCED_FIELDS " result | dim:int reduce:text=sum,prod,mean,amax,amin include_self:bool"
GRAD_AND_TANGENT(ScatterReduceBackward0, "self index src" REDUCED_FIELDS) {
  reduce_grad(n, g[0], gi, true);
}
TANGENT(ScatterReduceBackward0) { return reduce_tangent(n, t, true); }
GRAD_AND_TANGENT(IndexReduceBackward0, "self index source" REDUCED_FIELDS) {
  reduce_grad(n, g[0], gi, false);
}
TANGENT(IndexReduceBackward0) { return reduce_tangent(n, t, false); }

static Tensor *reduce_recorded(const NodeType *type, Tensor *x, Target to, Tensor *src, Reduction r,
                               bool include_self) {
  Node *n = node_new(type, 4, 3, x, src, NULL);
  save(n, 0, x);
  save(n, 1, to.index);
  save(n, 2, src);
  num_i(n, 0, to.dim);
  num_i(n, 1, r);
  num_i(n, 2, include_self);
  Tensor *y = set_history(reduce_plain(x, to, src, r, include_self), n);
  save_output(n, 3, y);
  return y;
}

static Reduction reduction_named(const char *name) {
  for (int r = 0; r < REDUCTIONS; r++)
    if (name && strcmp(name, reduction_names[r]) == 0) return (Reduction)r;
  return REDUCTIONS;
}

Tensor *t_scatter_reduce(Tensor *x, int64_t dim, Tensor *index, Tensor *src, const char *reduce,
                         bool include_self) {
  OP_ENTERED(t_scatter_reduce, "scatter_reduce", x, dim, index, src, reduce, include_self);
  IN_FLOAT(t_scatter_reduce(x, dim, index, src, reduce, include_self), x, src);
  if (blocked(x, index, src) || (dim = dim_wrap(dim, x->ndim)) < 0 ||
      !scatter_fits(x, dim, index, src))
    return NULL;
  Reduction r = reduction_named(reduce);
  if (r == REDUCTIONS)
    return fail(ERR_RUNTIME, "reduce argument must be either sum, prod, mean, amax or amin, got %s",
                reduce);
  if (r == REDUCE_MEAN && x->dtype == DT_BOOL)
    return dtype_no_kernel("scatter_gather_tensor_cpu_reduce_mean", DT_BOOL);
  return reduce_recorded(&ScatterReduceBackward0, x, elements(dim, index), src, r, include_self);
}

Tensor *t_index_reduce(Tensor *x, int64_t dim, Tensor *index, Tensor *source, const char *reduce,
                       bool include_self) {
  OP_ENTERED(t_index_reduce, "index_reduce", x, dim, index, source, reduce, include_self);
  IN_FLOAT(t_index_reduce(x, dim, index, source, reduce, include_self), x, source);
  if (blocked(x, index, source) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  Reduction r = reduction_named(reduce);
  if (r == REDUCTIONS || r == REDUCE_SUM)
    return fail(ERR_RUNTIME,
                "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got %s.",
                reduce);
  if (!source_fits("index_reduce_", x, dim, index, source)) return NULL;
  const char *kernel = !include_self      ? "index_reduce_func_exclude_input_init"
                       : r != REDUCE_MEAN ? NULL
                       : x->ndim > 1      ? "div_floor_cpu"
                                          : "index_func_";
  if (x->dtype == DT_BOOL && kernel) return dtype_no_kernel(kernel, DT_BOOL);
  WARN_ONCE("index_reduce() is in beta and the API may change at any time.");
  Target to = {.slicewise = true, .dim = dim, .index = index};
  return reduce_recorded(&IndexReduceBackward0, x, to, source, r, include_self);
}

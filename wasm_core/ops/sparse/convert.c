/* Conversions of sparse tensors: from indices and values, from dense tensors, and back.
 *
 * Gradients are PyTorch's: the gradient of a sparse tensor is taken at its places (`masked`). It is
 * sparse, or dense if the op after it gives a dense one. */
#include <string.h>

#include "ground/memory.h"
#include "ops/sparse/sparse.h"
#include "sparse_rows.h"

#define NUM(k) (n->numbers[k].i)

/* ------------------------------------------------------------ rows and values */

/* The rows, followed by a row of zeros. */
static Tensor *with_zeros(Tensor *rows) {
  int64_t sizes[MAX_DIM + 1];
  if (blocked(rows)) return NULL;
  memcpy(sizes, rows->sizes, (size_t)rows->ndim * sizeof *sizes);
  sizes[0] = 1;
  Tensor *both[2] = {rows, tensor_zeros(rows->ndim, sizes, tensor_dtype(rows))};
  return both[1] ? t_cat((Tensors){2, both}, 0) : NULL;
}

Tensor *t_rows_at(Tensor *x, int sparse, Tensor *places) {
  if (blocked(x, places)) return NULL;
  if (!is_sparse(x)) return t_index_select(sparse_as_rows(x, sparse), 0, places);
  if (x->ndim - sparse_dense_dims(x) != sparse)
    return t_rows_at(t_to_dense(x, DT_NONE, true), sparse, places);
  if (is_coo(x)) x = t_coalesce(x);
  if (!x) return NULL;
  Tensor *found = sparse_find_places(sparse_places_of(x), places);
  return t_index_select(with_zeros(sparse_value_rows(x, t_sparse_values(x))), 0, found);
}

/* y = x with other values. */
GRAD_SPARSE(SparseCooTensorWithDimsAndTensorsBackward0, "result") {
  gi[0] = t_sparse_values(t_sparse_mask(g[0], saved_plain(n, 0)));
}

static Tensor *value_shaped(Tensor *like, Tensor *rows) {
  const Tensor *v = sparse_parts(like)->values;
  return rows ? t_reshape(rows, v->ndim, v->sizes) : NULL;
}

Tensor *t_with_values(Tensor *x, Tensor *values) {
  if (blocked(x, values)) return NULL;
  Node *n = node_new(&SparseCooTensorWithDimsAndTensorsBackward0, 1, 0, values, NULL);
  Tensor *kept = t_detach(values);
  Tensor *y = set_history(kept ? sparse_with_parts(x, kept) : NULL, n);
  save_output(n, 0, y);
  return y;
}

/* The gradient of the values is the gradient of the tensor, at its places. */
GRAD(ValuesBackward0, "self")
{
  Tensor *x = saved_plain(n, 0);
  if (x && g[0]) gi[0] = t_with_values(x, g[0]);
}

Tensor *t_sparse_values(Tensor *x) {
  if (blocked(x)) return NULL;
  Node *n = node_new(&ValuesBackward0, 1, 0, x, NULL);
  save(n, 0, x);
  return set_history(t_detach(sparse_parts(x)->values), n);
}

/* values() */
Tensor *t_values(Tensor *x) {
  ANY_ENTERED(t_values, "values", x);
  if (blocked(x)) return NULL;
  if (!is_sparse(x))
    return fail(ERR_RUNTIME, "values expected sparse tensor layout but got %s", layout_text(x));
  if (is_coo(x) && !sparse_parts(x)->coalesced)
    return fail(ERR_RUNTIME,
                "Cannot get values on an uncoalesced tensor, please call .coalesce() first");
  return t_sparse_values(x);
}

/* ------------------------------------------------------------ coalescing */

GRAD_SPARSE(CoalesceBackward0, "") { gi[0] = g[0]; }

Tensor *t_coalesce(Tensor *x) {
  ANY_ENTERED(t_coalesce, "coalesce", x);
  if (blocked(x)) return NULL;
  if (!is_sparse(x) || !is_coo(x))
    return fail(ERR_RUNTIME, "coalesce expected sparse coordinate tensor layout but got %s",
                layout_text(x));
  if (sparse_parts(x)->coalesced) return x;
  Node *n = node_new(&CoalesceBackward0, 0, 0, x, NULL);
  return set_history(sparse_coalesced_value(x), n);
}

/* ------------------------------------------------------------ masks */

/* x at the places of the mask: y' = x' there. */
GRAD_SPARSE(SparseMaskBackward0, "mask | -:int") {
  Tensor *at = t_sparse_mask(g[0], saved_plain(n, 0));
  gi[0] = NUM(0) || !at ? at : t_to_dense(at, DT_NONE, true);
}

Tensor *t_sparse_mask(Tensor *x, Tensor *mask) {
  ANY_ENTERED(t_sparse_mask, "sparse_mask", x, mask);
  if (blocked(x, mask)) return NULL;
  if (!is_sparse(mask)) return door_refuse_layout("sparse_mask", mask);
  if (!tensor_same_shape(x, mask))
    return fail(ERR_RUNTIME,
                "sparse_mask(): operands have incompatible sizes; self has size %s but mask has "
                "size %s",
                shape_text(x), shape_text(mask));
  Node *n = node_new(&SparseMaskBackward0, 1, 1, x, NULL);
  save(n, 0, mask);
  num_i(n, 0, is_sparse(x));
  int lead = mask->ndim - sparse_dense_dims(mask);
  Tensor *rows = WITHOUT_GRAD(t_rows_at(x, lead, sparse_places_of(mask)));
  return set_history(rows ? sparse_with_parts(mask, value_shaped(mask, rows)) : NULL, n);
}

/* ------------------------------------------------------------ dense, and back */

/* The gradient at the tensor's places, or at all (not masked). */
GRAD_SPARSE(ToDenseBackward0, "self | -:int masked_grad:bool") {
  Tensor *x = saved_plain(n, 0);
  if (blocked(x, g[0])) return;
  Tensor *back = t_to(g[0], tensor_dtype(x));
  gi[0] = NUM(1) ? t_sparse_mask(back, is_coo(x) ? t_coalesce(x) : x)
                 : t_to_form(back, sparse_form_of(x));
}

Tensor *t_to_dense(Tensor *x, DType dtype, bool masked) {
  ANY_ENTERED(t_to_dense, "to_dense", x, dtype, masked);
  if (blocked(x)) return NULL;
  if (!is_sparse(x)) return dtype == DT_NONE ? x : t_to(x, dtype);
  Node *n = node_new(&ToDenseBackward0, 1, 2, x, NULL);
  save(n, 0, x);
  num_i(n, 0, 0);
  num_i(n, 1, masked);
  return set_history(sparse_dense_value(x, dtype), n);
}

/* The places of rows with an element that is not zero. */
static Tensor *places_beside_zero(Tensor *x, int sparse) {
  Tensor *rows = sparse_as_rows(x, sparse);
  if (!rows) return NULL;
  Tensor *any = rows->ndim > 1
                    ? t_any(t_flatten(t_ne(rows, tensor_wrapped_i(0)), 1, -1), ONE_DIM(1), false)
                    : t_ne(rows, tensor_wrapped_i(0));
  Tensor *found = t_nonzero(any);
  return found ? t_reshape(found, 1, &found->sizes[0]) : NULL;
}

static Tensor *value_in_form(Tensor *x, Form f) {
  GRAD_MODE_WAS;
  int lead = f.ndim - f.dense;
  const Tensor *from = x;
  if (is_sparse(x) && x->ndim - sparse_dense_dims(x) != lead) x = sparse_dense_value(x, DT_NONE);
  if (is_sparse(x) && is_coo(x)) x = t_coalesce(x);
  if (!x) return NULL;
  Tensor *places = is_sparse(x) ? sparse_places_of(x) : places_beside_zero(x, lead), *both[2];
  if (is_sparse(x) && places) { /* in the order of rows */
    t_sort_stable(places, 0, false, both);
    places = both[0];
  }
  Tensor *y = sparse_structure(f, places, tensor_dtype(x));
  Tensor *rows = y ? t_rows_at(x, lead, sparse_places_of(y)) : NULL;
  y = rows ? sparse_with_parts(y, value_shaped(y, rows)) : NULL;
  return y && is_sparse(x) && !is_coo(x) ? sparse_with_index_type(y, from) : y;
}

/* The gradient returns to the form of the tensor that was made sparse. */
#define TO_SPARSE_GRAD(NAME)                                                                     \
  GRAD_SPARSE(NAME, "self") {                                                                    \
    Tensor *x = saved_plain(n, 0);                                                               \
    if (blocked(x, g[0])) return;                                                                \
    gi[0] = is_sparse(x) ? t_to_form(g[0], sparse_form_of(x)) : t_to_dense(g[0], DT_NONE, true); \
  }
TO_SPARSE_GRAD(ToSparseBackward0)
TO_SPARSE_GRAD(ToSparseBackward1)
TO_SPARSE_GRAD(ToSparseCsrBackward0)
TO_SPARSE_GRAD(ToSparseCscBackward0)
TO_SPARSE_GRAD(ToSparseBsrBackward0)
TO_SPARSE_GRAD(ToSparseBscBackward0)

static bool same_block(const int64_t *a, const int64_t *b) {
  return a == b || (a && b && a[0] == b[0] && a[1] == b[1]);
}

static Tensor *in_form(const NodeType *type, Tensor *x, Form f) {
  const Form own = sparse_form_of(x);
  bool same = own.layout == f.layout && own.dense == f.dense && own.sparse == f.sparse &&
              same_block(own.block, f.block);
  if (same) return x;
  Node *n = node_new(type, 1, 0, x, NULL);
  save(n, 0, x);
  return set_history(value_in_form(x, f), n);
}

Tensor *t_to_form(Tensor *x, Form f) {
  if (blocked(x)) return NULL;
  if (f.layout == LAYOUT_STRIDED) return t_to_dense(x, DT_NONE, true);
  return in_form(&ToSparseBackward0, x, f);
}

/* to_sparse(sparse_dim) */
Tensor *t_to_sparse_dim(Tensor *x, int64_t sparse) {
  ANY_ENTERED(t_to_sparse_dim, "to_sparse", x, sparse);
  if (blocked(x)) return NULL;
  if (is_sparse(x) && (!is_coo(x) || sparse != sparse_dims(x)))
    return fail(
        ERR_RUNTIME,
        "to_sparse: conversion from %s to Sparse with sparse_dim argument !=self.sparse_dim() "
        "is not supported",
        layout_text(x));
  if (sparse < 0 || sparse > x->ndim || (x->ndim && !sparse))
    return fail(ERR_RUNTIME,
                "sparse_dim must be in [0, self.dim()] and not 0 of a tensor with dimensions, but "
                "got %lld and %d dimensions",
                (Shown)sparse, x->ndim);
  Form f = {LAYOUT_SPARSE_COO, x->ndim, x->sizes, (int)sparse, x->ndim - (int)sparse, NULL};
  return in_form(&ToSparseBackward0, x, f);
}

/* A block's two sizes; an int is both. */
Ints arg_block(const Call *c, int k) {
  Ints block = arg_ints(c, k);
  if (arg_given(c, k) && c->v[k].tag != TAG_INTS) block.n = 2;
  return block;
}

/* The node types of conversions, by target layout. */
static const NodeType *const to_types[] = {NULL,
                                           &ToSparseBackward1,
                                           &ToSparseCsrBackward0,
                                           &ToSparseCscBackward0,
                                           &ToSparseBsrBackward0,
                                           &ToSparseBscBackward0};

/* to_sparse(layout), and to_sparse_csr and so on (`op`); `dense` -1: not given. */
Tensor *t_to_layout(Tensor *x, Layout l, Ints block, int64_t dense, const char *op) {
  ANY_ENTERED_AS(t_to_layout(x, l, block, dense, op), op, x, block, dense);
  if (blocked(x)) return NULL;
  if (l == LAYOUT_STRIDED) return t_to_dense(x, DT_NONE, true);
  const char *from = layout_text(x);
  const bool coo = l == LAYOUT_SPARSE_COO, strided = !is_sparse(x);
  if (block.n >= 0 && !in_blocks(l) && (coo || block.n != 2 || strided))
    return fail(ERR_RUNTIME, "%s: conversion from %s to %s does not use blocksize argument", op,
                from, layout_name(l));
  if (in_blocks(l) && block.n != 2 && !(is_sparse(x) && tensor_layout(x) == l && block.n < 0))
    return fail(ERR_RUNTIME,
                block.n < 0
                    ? "%s: conversion from %s to %s requires blocksize argument"
                    : "%s: conversion from %s to %s: blocksize needs to be a tuple of size 2",
                op, from, layout_name(l));
  if (!strided && dense >= 0)
    return fail(ERR_RUNTIME,
                "%s: conversion from %s to %s does not use dense_dim argument, it is for strided "
                "tensors",
                op, from, layout_name(l));
  int own = strided ? dense < 0 ? 0 : (int)dense : sparse_dense_dims(x);
  if (!coo && x->ndim - own < 2)
    return fail(ERR_RUNTIME,
                strided
                    ? "%s: dense_dim argument must be in [0,%d] range, but got %d"
                    : "%s: needs two dimensions that are not dense: dense_dim must be in [0,%d], "
                      "is %d",
                op, x->ndim > 2 ? x->ndim - 2 : 0, own);
  if (coo && strided && (own > x->ndim || dense < -1))
    return fail(ERR_RUNTIME, "%s: dense_dim argument must be in [0,%d] range, but got %lld", op,
                x->ndim, (Shown)dense);
  if (!coo && !strided && is_coo(x) && sparse_dims(x) != 2)
    return fail(ERR_RUNTIME,
                "%scoo_%s: conversion from Sparse to %s for input tensors with sparse_dim()!=2 is "
                "not supported",
                strcmp(op, "to_sparse") == 0 ? "sparse_" : "", op, layout_name(l));
  Form f = {l,        x->ndim,
            x->sizes, coo ? x->ndim - own : 2,
            own,      !in_blocks(l) ? NULL : block.n == 2 ? block.v : sparse_form_of(x).block};
  return in_form(to_types[l], x, f);
}

Tensor *t_laid_out_like(Tensor *y, const Tensor *x) {
  const bool same = blocked(x, y) || is_sparse(y) || tensor_layout(x) != LAYOUT_SPARSE_COO;
  return same ? y : t_to_layout(y, LAYOUT_SPARSE_COO, (Ints){-1, NULL}, -1, "to_sparse");
}

/* to_sparse(layout, blocksize, dense_dim) */
Tensor *op_to_sparse(Call *c) {
  Layout l = LAYOUT_SPARSE_COO;
  if (arg_given(c, 1) && !layout_named(arg_str(c, 1), &l)) return NULL;
  return t_to_layout(arg_tensor(c, 0), l, arg_block(c, 2), arg_given(c, 3) ? arg_int(c, 3) : -1,
                     "to_sparse");
}

Tensor *t_sparse_filled(Tensor *x) {
  GRAD_MODE_WAS;
  int64_t n = 1;
  if (blocked(x)) return NULL;
  int lead = x->ndim - sparse_dense_dims(x);
  for (int d = 0; d < lead; d++) n *= x->sizes[d];
  Tensor *all = tensor_empty(1, &n, DT_I64);
  for (int64_t i = 0; all && i < n; i++) words_in(all)[i] = i;
  Tensor *y = sparse_structure(sparse_form_of(x), all, tensor_dtype(x));
  Tensor *rows = y ? t_rows_at(x, lead, sparse_places_of(y)) : NULL;
  return rows ? sparse_with_parts(y, t_clone(value_shaped(y, rows))) : NULL;
}

Tensor *t_sparse_elements(Tensor *x) {
  if (blocked(x)) return NULL;
  int64_t width = 1, n = sparse_parts(x)->values->numel;
  for (int d = x->ndim - sparse_dense_dims(x); d < x->ndim; d++) width *= x->sizes[d];
  Tensor *places = sparse_places_of(x), *y = tensor_empty(1, &n, DT_I64);
  if (!places || !y) return NULL;
  for (int64_t i = 0; i < n; i++) words_in(y)[i] = words_of(places)[i / width] * width + i % width;
  return y;
}

/* Ops with sparse arguments: element-wise ops, sums, copies, transposes, products and softmax. */
#include <string.h>

#include "ground/memory.h"
#include "kernels/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/sparse/sparse.h"
#include "sparse_rows.h"

#define NUM(k) (n->numbers[k].i)

/* ------------------------------------------------------------ element by element */

/* The values of *x, recorded. *x becomes a tensor that has each place once. */
static Tensor *own_values(Tensor **x) {
  if (blocked(*x)) return NULL;
  if (is_coo(*x)) *x = t_coalesce(*x);
  return t_sparse_values(*x);
}

/* f of the values, for a linear f: x may have a place twice. */
static Tensor *each_value(Tensor *x, Tensor *f(Tensor *), const NodeType *type) {
  Node *n = node_new(type, 0, 0, x, NULL);
  return set_history(WITHOUT_GRAD(sparse_with_parts(x, f(sparse_parts(x)->values))), n);
}

GRAD_SPARSE(NegBackward0, "") { gi[0] = t_neg(g[0]); }
GRAD_SPARSE(ConjPhysicalBackward0, "") { gi[0] = t_conj_physical(g[0]); }

Tensor *t_sparse_neg(Tensor *x) {
  ANY_ENTERED(t_sparse_neg, "neg", x);
  return blocked(x) ? NULL : each_value(x, t_neg, &NegBackward0);
}

/* The conjugate, computed at once. */
Tensor *t_sparse_conj(Tensor *x) {
  if (blocked(x) || !dtype_is_complex(tensor_dtype(x))) return failed() ? NULL : x;
  return each_value(x, t_conj_physical, &ConjPhysicalBackward0);
}

/* Powers with exponents that keep zeros. */
Tensor *t_sparse_pow(Tensor *x, Tensor *exponent) {
  if (blocked(x, exponent)) return NULL;
  if (is_sparse(exponent) || !is_wrapped(exponent) || dtype_is_complex(tensor_dtype(exponent)))
    return door_refuse_layout("pow", is_sparse(x) ? x : exponent);
  if (!(tensor_get_f(exponent, 0) > 0))
    return fail(ERR_RUNTIME,
                "pow of a sparse tensor needs an exponent above 0: others give numbers "
                "to the elements that it leaves out");
  Tensor *values = own_values(&x);
  return values ? node_rename(t_with_values(x, t_pow(values, exponent)), "PowBackward0") : NULL;
}

Tensor *t_sparse_nan_to_num(Tensor *x, double nan, bool has_posinf, double posinf, bool has_neginf,
                            double neginf) {
  Tensor *values = own_values(&x);
  if (!values) return NULL;
  values = t_nan_to_num(values, nan, has_posinf, posinf, has_neginf, neginf);
  return node_rename(t_with_values(x, values), "NanToNumBackward0");
}

/* mode: as in t_div_mode; NULL: floor_divide. A zero stays zero: PyTorch reports no x / 0 here. */
Tensor *t_sparse_rounded_quotient(Tensor *a, Tensor *b, const char *mode) {
  if (blocked(a, b)) return NULL;
  if (is_sparse(b) || b->ndim)
    return fail(ERR_RUNTIME,
                "Sparse %sdivision requires a scalar or zero-dim dense tensor divisor (got shape "
                "%s for divisor)",
                mode ? "" : "floor ", shape_text(b));
  Tensor *values = own_values(&a);
  if (!values) return NULL;
  return t_with_values(a, mode ? t_div_mode(values, b, mode) : t_floor_divide(values, b));
}

static Tensor *cat2(Tensor *a, Tensor *b, int64_t dim) {
  Tensor *both[2] = {a, b};
  return blocked(a, b) ? NULL : t_cat((Tensors){2, both}, dim);
}

static Tensor *expand_to(Tensor *t, const Tensor *like) {
  return t_expand(t, like->ndim, like->sizes);
}

static Tensor *to_coo(Tensor *x) {
  return t_to_layout(x, LAYOUT_SPARSE_COO, (Ints){-1, NULL}, -1, "to_sparse");
}

/* Compressed tensors without loops of their own go as COO; y gets the layout of the first
 * operand. */
static Tensor *as_first(Tensor *y, const Tensor *first) {
  if (!y || !is_coo(y) || is_coo(first)) return y;
  Form f = sparse_form_of(first);
  f.sizes = y->sizes; /* a product has sizes of its own */
  y = t_to_form(y, f);
  return y ? sparse_with_index_type(y, first) : NULL;
}

/* ------------------------------------------------------------ a + b */

static bool check_alike(const char *op, const Tensor *a, const Tensor *b) {
  if (!tensor_same_shape(a, b))
    fail(ERR_RUNTIME,
         "%s: expected 'self' and 'other' to have same size, but self has size %s while other has "
         "size %s%s",
         op, shape_text(a), shape_text(b),
         is_sparse(a) && is_sparse(b)
             ? ""
             : " (FYI: dense-sparse addition does not currently support broadcasting)");
  else if (is_sparse(a) && is_sparse(b) && sparse_dims(a) != sparse_dims(b) && sparse_count_of(a) &&
           sparse_count_of(b))
    fail(
        ERR_RUNTIME,
        "%s: expected 'self' and 'other' to have same density, but 'self' has %d sparse dimensions "
        "while 'other' has %d sparse dimensions",
        op, sparse_dims(a), sparse_dims(b));
  return !failed();
}

static bool same_indices(Tensor *a, Tensor *b) {
  Tensor *x = sparse_index_words(a), *y = sparse_index_words(b);
  return x && y && tensor_same_shape(x, y) &&
         (!x->numel || memcmp(words_of(x), words_of(y), (size_t)x->numel * sizeof(int64_t)) == 0);
}

static Tensor *add_sparse(Tensor *a, Tensor *b, DType d) {
  if (!is_coo(a) || !is_coo(b)) return as_first(add_sparse(to_coo(a), to_coo(b), d), a);
  const Sparse *x = sparse_parts(a), *y = sparse_parts(b);
  bool both = x->coalesced && y->coalesced;
  if (x->sparse_dim != y->sparse_dim) { /* one has no elements */
    const Sparse *s = sparse_count_of(b) ? y : x;
    return sparse_coo_of(t_clone(s->indices), t_clone(t_to(s->values, d)), a->ndim, a->sizes,
                         s->coalesced);
  }
  if (same_indices(x->indices, y->indices))
    return sparse_coo_of(t_clone(x->indices), t_add(t_to(x->values, d), t_to(y->values, d)),
                         a->ndim, a->sizes, both);
  Tensor *values = cat2(t_to(x->values, d), t_to(y->values, d), 0);
  Tensor *sum = sparse_coo_of(cat2(x->indices, y->indices, 1), values, a->ndim, a->sizes, false);
  return sum && both ? sparse_coalesced_value(sum) : sum;
}

static Tensor *add_dense(Tensor *a, Tensor *b, DType d) {
  int lead = b->ndim - sparse_dense_dims(b);
  Tensor *rows = sparse_as_rows(t_clone(t_to(a, d)), lead);
  Tensor *y = sparse_add_rows(rows, sparse_places_of(b),
                              sparse_value_rows(b, t_to(sparse_parts(b)->values, d)));
  return y ? t_reshape(y, a->ndim, a->sizes) : NULL;
}

static Tensor *sum_of(Tensor *a, Tensor *b, DType d) {
  GRAD_MODE_WAS;
  if (blocked(a, b)) return NULL;
  if (is_sparse(a) && !is_sparse(b))
    return fail(ERR_RUNTIME,
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  if (!check_alike("add", a, b)) return NULL;
  return is_sparse(a) ? add_sparse(a, b, d) : add_dense(a, b, d);
}

/* a + alpha b, or a - alpha b */
static Tensor *scaled_sum(Tensor *a, Tensor *b, Tensor *alpha, bool negated) {
  ANY_ENTERED_AS(scaled_sum(a, b, alpha, negated), negated ? "sub" : "add", a, b, alpha);
  if (blocked(a, b)) return NULL;
  DType d = elementwise_result_dtype(2, (Tensor *[]){a, b});
  if (alpha && !elementwise_check_alpha(d, alpha)) return NULL;
  if (is_sparse(a) && !is_sparse(b)) return sum_of(a, b, d);
  if (alpha && dtype_is_complex(tensor_dtype(alpha))) { /* a node's number is real */
    b = t_mul(b, alpha);
    alpha = NULL;
  }
  double f = alpha ? tensor_get_f(alpha, 0) : 1;
  Node *n = elementwise_sum_node(a, b, f, negated);
  Tensor *addend = b;
  WITHOUT_GRAD_BLOCK {
    if (f != 1 || negated) addend = t_to(addend, d); /* alpha fits d, not always the type of b */
    if (f != 1) addend = t_mul(addend, alpha);
    if (negated) addend = t_neg(addend);
  }
  return set_history(sum_of(a, addend, d), n);
}

Tensor *t_sparse_add(Tensor *a, Tensor *b, Tensor *alpha) { return scaled_sum(a, b, alpha, false); }
Tensor *t_sparse_sub(Tensor *a, Tensor *b, Tensor *alpha) { return scaled_sum(a, b, alpha, true); }

/* ------------------------------------------------------------ a * b, a / b */

static Tensor *pair(EachPair *f, const void *with, bool swapped, Tensor *own, Tensor *other) {
  if (blocked(own, other)) return NULL;
  return swapped ? f(with, other, own) : f(with, own, other);
}

/* The rows of a and b at the places they share. */
static Tensor *both_sparse(Tensor *a, Tensor *b, EachPair *f, const void *with) {
  const int sparse = sparse_dims(a);
  if (a->ndim != b->ndim || sparse != sparse_dims(b) ||
      !sizes_equal(a->ndim - sparse_dense_dims(a), a->sizes, b->ndim - sparse_dense_dims(b),
                   b->sizes))
    return fail(ERR_RUNTIME,
                "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal "
                "dimensionality, number of sparse dimensions, and shape of sparse dimensions");
  if (!is_coo(a) || !is_coo(b)) return as_first(both_sparse(to_coo(a), to_coo(b), f, with), a);
  b = t_coalesce(b); /* a may have a place twice: a product is linear in it */
  if (blocked(a, b)) return NULL;
  const Sparse *x = sparse_parts(a), *y = sparse_parts(b);
  Tensor *found = sparse_find_places(sparse_places_of(b), sparse_places_of(a));
  int64_t n = 0;
  if (!found) return NULL;
  for (int64_t i = 0; i < found->numel; i++) n += words_of(found)[i] < y->values->sizes[0];
  Tensor *from = tensor_empty(1, &n, DT_I64), *to = tensor_empty(1, &n, DT_I64);
  for (int64_t i = 0, k = 0; from && to && i < found->numel; i++) {
    if (words_of(found)[i] >= y->values->sizes[0]) continue;
    words_in(from)[k] = i;
    words_in(to)[k++] = words_of(found)[i];
  }
  Tensor *values = pair(f, with, false, t_index_select(x->values, 0, from),
                        t_index_select(y->values, 0, to));
  if (!values) return NULL;
  int64_t sizes[MAX_DIM]; /* dense dimensions are broadcast */
  memcpy(sizes, a->sizes, (size_t)sparse * sizeof *sizes);
  memcpy(sizes + sparse, values->sizes + 1, (size_t)(a->ndim - sparse) * sizeof *sizes);
  return sparse_coo_of(t_index_select(x->indices, 1, from), values, a->ndim, sizes, x->coalesced);
}

static Tensor *with_dense(Tensor *x, Tensor *dense, EachPair *f, const void *with, bool swapped) {
  if (is_coo(x) && dense->ndim) {
    int64_t sizes[MAX_DIM];
    int ndim = x->ndim;
    memcpy(sizes, x->sizes, (size_t)ndim * sizeof *sizes);
    if (!sizes_broadcast(&ndim, sizes, dense->ndim, dense->sizes)) return NULL;
    const bool more = ndim > x->ndim;
    const int sparse = sparse_dims(x);
    if (more || !sizes_equal(sparse, sizes, sparse, x->sizes)) x = t_coalesce(x);
    x = x ? t_sparse_broadcast_to(x, (Ints){ndim, sizes}) : NULL;
    if (more) x = t_coalesce(x);
    if (!x) return NULL;
  }
  if (dense->ndim && !sizes_expandable(dense->ndim, dense->sizes, x->ndim, x->sizes))
    return fail(
        ERR_RUNTIME,
        "mul: expected the sizes of the dense operand, %s, to be expandable to those of the "
        "sparse one, %s",
        shape_text(dense), shape_text(x));
  const Tensor *v = sparse_parts(x)->values;
  int lead = x->ndim - sparse_dense_dims(x);
  Tensor *other = dense->ndim ? t_rows_at(expand_to(dense, x), lead, sparse_places_of(x)) : dense;
  if (other && other->ndim) other = t_reshape(other, v->ndim, v->sizes);
  Tensor *y = sparse_with_parts(x, pair(f, with, swapped, sparse_parts(x)->values, other));
  return y;
}

/* f of the values at common places. */
static Tensor *pairs(Tensor *a, Tensor *b, EachPair *f, const void *with) {
  GRAD_MODE_WAS;
  if (blocked(a, b)) return NULL;
  const bool as_is = is_sparse(a) && is_sparse(b) && !a->ndim && !b->ndim && sparse_count_of(b) > 1;
  if (is_sparse(a) && is_sparse(b) && !b->ndim && !as_is) b = t_to_dense(b, DT_NONE, true);
  if (is_sparse(a) && is_sparse(b) && !a->ndim) a = t_to_dense(a, DT_NONE, true);
  if (blocked(a, b)) return NULL;
  if (is_sparse(a) && is_sparse(b)) return both_sparse(a, b, f, with);
  return is_sparse(a) ? with_dense(a, b, f, with, false) : with_dense(b, a, f, with, true);
}

Tensor *t_sparse_mul(Tensor *a, Tensor *b) {
  ANY_ENTERED(t_sparse_mul, "mul", a, b);
  return elementwise_paired(false, a, b, pairs);
}

static Tensor *quotient(Tensor *a, Tensor *b) {
  ANY_ENTERED(quotient, "div", a, b);
  if (blocked(a, b)) return NULL;
  if (is_sparse(b) || b->ndim)
    return fail(ERR_RUNTIME,
                "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape %s "
                "for divisor)",
                shape_text(b));
  return elementwise_paired(true, a, b, pairs);
}

Tensor *t_sparse_div(Tensor *a, Tensor *b, const char *mode) {
  return mode ? t_sparse_rounded_quotient(a, b, mode) : quotient(a, b);
}

/* ------------------------------------------------------------ sums */

/* y = x summed over dims: x' = y' wherever x has an element. */
GRAD_SPARSE(SparseSumBackward0, "self | dim:dims") {
  Tensor *x = saved_plain(n, 0), *back = g[0];
  if (blocked(x, back)) return;
  if (is_sparse(back)) back = t_to_dense(back, DT_NONE, true);
  for (int d = 0; d < x->ndim; d++)
    if (NUM(0) >> d & 1) back = t_unsqueeze(back, d);
  gi[0] = t_sparse_mask(back ? expand_to(back, x) : NULL, is_coo(x) ? t_coalesce(x) : x);
}

static Tensor *sum_value(Tensor *x, uint64_t mask) {
  GRAD_MODE_WAS;
  const Sparse *s = sparse_parts(x);
  int64_t inner[MAX_DIM], sizes[MAX_DIM], kept[MAX_DIM];
  int n_inner = 0, n_kept = 0, ndim = 0;
  for (int d = 0; d < x->ndim; d++) {
    bool gone = mask >> d & 1;
    if (!gone) sizes[ndim++] = x->sizes[d];
    if (gone && d >= s->sparse_dim) inner[n_inner++] = d - s->sparse_dim + 1;
    if (!gone && d < s->sparse_dim) kept[n_kept++] = d;
  }
  Tensor *values = n_inner ? t_sum(s->values, (Ints){n_inner, inner}, false, DT_NONE) : s->values;
  if (!n_kept) return t_sum(values, ONE_DIM(0), false, DT_NONE);
  if (n_kept == s->sparse_dim) return sparse_coo_of(s->indices, values, ndim, sizes, s->coalesced);
  Tensor *which = tensor_empty(1, (int64_t[]){n_kept}, DT_I64);
  if (!which) return NULL;
  memcpy(words_in(which), kept, (size_t)n_kept * sizeof *kept);
  Tensor *y = sparse_coo_of(t_index_select(s->indices, 0, which), values, ndim, sizes, false);
  return y ? sparse_coalesced_value(y) : NULL;
}

/* The sum over these dims; dense if no sparse one is left. */
Tensor *t_sparse_sum(Tensor *x, Ints dims, DType dtype) {
  ANY_ENTERED(t_sparse_sum, "_sparse_sum", x, dims, dtype);
  if (blocked(x)) return NULL;
  if (!is_sparse(x)) return door_refuse_layout("_sparse_sum", x);
  if (dtype != DT_NONE) x = t_to(x, dtype);
  uint64_t mask = 0;
  for (int i = 0; i < dims.n && !failed(); i++) {
    int64_t d = dim_wrap(dims.v[i], x->ndim);
    if (d >= 0 && mask >> d & 1)
      fail(ERR_RUNTIME, "dim %lld appears multiple times in the list of dims", (Shown)d);
    if (d >= 0) mask |= (uint64_t)1 << d;
  }
  if (blocked(x)) return NULL;
  if (!mask) return t_sum_all(t_sparse_values(is_coo(x) ? t_coalesce(x) : x));
  if (!is_coo(x)) return door_refuse_layout("_sparse_sum", x);
  Node *n = node_new(&SparseSumBackward0, 1, 1, x, NULL);
  save(n, 0, x);
  num_i(n, 0, (int64_t)mask);
  return set_history(sum_value(x, mask), n);
}

static Tensor *sum_over(Tensor *x, Ints dims, bool keepdim, DType dtype) {
  const Layout l = tensor_layout(x);
  if (l == LAYOUT_SPARSE_CSR && !keepdim)
    return fail(ERR_RUNTIME,
                "reduction operations on CSR tensors with keepdim=False is unsupported");
  if (l == LAYOUT_SPARSE_CSR) x = to_coo(x);
  uint64_t mask = 0;
  Tensor *y = t_sparse_sum(x, dims, dtype);
  for (int i = 0; y && keepdim && i < dims.n; i++)
    mask |= (uint64_t)1 << dim_wrap(dims.v[i], x->ndim);
  for (int d = 0; y && mask >> d; d++)
    if (mask >> d & 1) y = t_unsqueeze(y, d);
  return y && l == LAYOUT_SPARSE_CSR ? t_to_layout(y, l, (Ints){-1, NULL}, -1, "sum") : y;
}

/* Over all dimensions it is the sum of the values, recorded like any sum. */
GRAD(SumBackward0, "| self_sym_sizes:sizes0")
{ gi[0] = reduce_expand_back(g[0], n, 0); }

static Tensor *sum_values(Tensor *x, DType dtype) {
  return WITHOUT_GRAD(t_sum(sparse_parts(x)->values, ALL_DIMS, false, dtype));
}

Tensor *t_sparse_total(Tensor *x, Ints dims, bool keepdim, DType dtype) {
  DimMask mask;
  if (blocked(x) || !reduce_dims_mask(x, dims, &mask)) return NULL;
  if (dtype == DT_NONE) dtype = dtype_is_inexact(tensor_dtype(x)) ? tensor_dtype(x) : DT_I64;
  if (dims.n > 0) return sum_over(x, dims, keepdim, dtype);
  if (!reduce_check_recorded(x, dtype)) return NULL;
  Node *n = dtype_is_inexact(dtype) ? node_new(&SumBackward0, 0, SHAPE_NUMBERS + x->ndim, x, NULL)
                                    : NULL;
  reduce_note_shape(n, 0, x, mask, keepdim);
  return set_history(sum_values(x, dtype), n);
}

static bool all_dims(const Tensor *x, Ints dims) {
  uint64_t mask = 0;
  for (int i = 0; i < dims.n; i++) {
    int64_t d = dim_wrap(dims.v[i], x->ndim);
    if (d >= 0) mask |= (uint64_t)1 << d;
  }
  return dims.n <= 0 || mask == ((uint64_t)1 << x->ndim) - 1;
}

/* torch.norm: elements that are not stored do not count. */
Tensor *t_sparse_norm(Tensor *x, double p, Ints dims, bool keepdim, DType dtype) {
  ANY_ENTERED(t_sparse_norm, "norm", x, p, dims, keepdim, dtype);
  if (blocked(x)) return NULL;
  if (!is_coo(x)) return door_refuse_layout("norm", x);
  bool whole = all_dims(x, dims);
  if (failed()) return NULL;
  if (dtype != DT_NONE)
    return fail(ERR_RUNTIME, "norm_sparse currently does not support 'dtype' argument");
  if (keepdim) return fail(ERR_RUNTIME, "norm_sparse currently does not support keepdim=True");
  if (!whole)
    return fail(ERR_RUNTIME,
                "norm_sparse currently only supports full reductions, so 'dim' must either be "
                "empty or contain all dimensions of the input");
  x = t_coalesce(x);
  return node_rename(x ? t_vector_norm(t_sparse_values(x), p, ALL_DIMS, false, dtype) : NULL,
                     "NormBackward0");
}

/* torch.norm with an order's name. */
Tensor *t_sparse_norm_named(Tensor *x, const char *p, Ints dims, bool keepdim, DType dtype) {
  if (!p || strcmp(p, "fro") != 0) return door_refuse_layout("norm", x);
  if (dtype != DT_NONE) return fail(ERR_VALUE, "dtype argument is not supported in frobenius norm");
  return t_sparse_norm(x, 2, dims, keepdim, dtype);
}

/* Whether any of the values is not zero. */
Tensor *t_sparse_any(Tensor *x, Ints dims) {
  ANY_ENTERED(t_sparse_any, "any", x, dims);
  if (blocked(x)) return NULL;
  if (!is_coo(x) || dims.n >= 0) return door_refuse_layout("any", x);
  return WITHOUT_GRAD(t_any(sparse_parts(x)->values, ALL_DIMS, false));
}

Tensor *t_sparse_sum_to(Tensor *x, Ints sizes) {
  if (blocked(x) || sizes_equal(x->ndim, x->sizes, sizes.n, sizes.v)) return failed() ? NULL : x;
  return t_sum_to(t_to_dense(x, DT_NONE, true), sizes.n, sizes.v);
}

/* ------------------------------------------------------------ copies */

GRAD_SPARSE(CloneBackward0, "") { gi[0] = g[0]; }

/* A contiguous copy with memory of its own. */
static Tensor *own_copy(Tensor *t) { return t_clone(t_contiguous(t)); }

static Tensor *copy_as(const Tensor *x, DType dtype) {
  GRAD_MODE_WAS;
  Sparse s = *sparse_parts(x);
  s.values = s.values->dtype == dtype ? own_copy(s.values) : t_to(s.values, dtype);
  s.indices = own_copy(s.indices);
  s.plain = s.plain ? own_copy(s.plain) : NULL;
  return failed() ? NULL : tensor_sparse(x->ndim, x->sizes, s);
}

Tensor *t_sparse_clone(Tensor *x) {
  ANY_ENTERED(t_sparse_clone, "clone", x);
  if (blocked(x)) return NULL;
  return set_history(copy_as(x, tensor_dtype(x)), node_new(&CloneBackward0, 0, 0, x, NULL));
}

GRAD_SPARSE(ToCopyBackward0, "") { gi[0] = t_to(g[0], (DType)NUM(0)); }

Tensor *t_sparse_to(Tensor *x, DType dtype) {
  ANY_ENTERED(t_sparse_to, "_to_copy", x, dtype);
  if (blocked(x)) return NULL;
  Node *n = dtype_is_inexact(dtype) ? node_new(&ToCopyBackward0, 0, 1, x, NULL) : NULL;
  num_i(n, 0, x->dtype);
  return set_history(copy_as(x, dtype), n);
}

/* x.to(...). form: FORM_ABSENT's bits for the device; negative after an error. */
Tensor *t_sparse_to_options(Tensor *x, DType dtype, bool copy, int32_t form) {
  if (blocked(x) || form < 0) return NULL;
  if (form) return door_needs_elements("to"), NULL;
  if (copy) return t_sparse_to(x, dtype == DT_NONE ? tensor_dtype(x) : dtype);
  return dtype == DT_NONE ? x : t_to(x, dtype);
}

static Tensor *sparse_empty(Form f, DType dtype) {
  return sparse_structure(f, tensor_none_of(DT_I64), dtype);
}

Tensor *t_sparse_zeros(int ndim, const int64_t *sizes, Layout l, DType dtype) {
  static const int64_t ones[2] = {1, 1};
  if (l != LAYOUT_SPARSE_COO && ndim < 2)
    return fail(ERR_RUNTIME, "a %s tensor needs two dimensions at least, got size %s",
                layout_name(l), sizes_text(ndim, sizes));
  Form f = {l, ndim, sizes, l == LAYOUT_SPARSE_COO ? ndim : 2, 0, in_blocks(l) ? ones : NULL};
  return sparse_empty(f, dtype);
}

Tensor *t_sparse_zeros_like(Tensor *x, DType dtype) {
  if (blocked(x)) return NULL;
  return sparse_empty(sparse_form_of(x), dtype);
}

Tensor *t_sparse_zero_(Tensor *x) {
  if (blocked(x) || !history_check_inplace(x)) return NULL;
  Tensor *none = sparse_empty(sparse_form_of(x), tensor_dtype(x));
  if (!none || !tensor_set_parts(x, *sparse_parts(none))) return NULL;
  tensor_bump_version(x);
  record_rebase(x, NULL);
  return x;
}

/* y = a copy of src, written to x. */
GRAD_SPARSE(CopyBackwards, "") {
  if (needs(n, 0))
    gi[0] = is_sparse(g[0]) ? t_sparse_zeros_like(g[0], tensor_dtype(g[0])) : t_zeros_like(g[0]);
  gi[1] = g[0];
}

Tensor *t_sparse_copy_(Tensor *x, Tensor *src, bool record) {
  if (blocked(x, src)) return NULL;
  if (!is_sparse(x) || !is_sparse(src))
    return fail(ERR_RUNTIME,
                "copy_() between dense and sparse Tensors is not implemented! Found self type = "
                "torch.%s%sTensor and src type = torch.%s%sTensor",
                is_sparse(x) ? "sparse." : "", legacy(x), is_sparse(src) ? "sparse." : "",
                legacy(src));
  if (record && !history_check_inplace_by(x, src)) return NULL;
  if (tensor_layout(x) != tensor_layout(src) || !tensor_same_shape(x, src))
    return fail(
        ERR_RUNTIME,
        "copy_ between sparse tensors needs one layout and one size, but got %s %s and %s %s",
        layout_text(x), shape_text(x), layout_text(src), shape_text(src));
  Node *n = record ? node_new(&CopyBackwards, 0, 0, x, src, NULL) : NULL;
  Tensor *y = copy_as(src, tensor_dtype(x));
  if (!y || !tensor_set_parts(x, *sparse_parts(y))) {
    node_drop(n);
    return NULL;
  }
  tensor_bump_version(x);
  if (record) record_rebase(x, n);
  return x;
}

/* ------------------------------------------------------------ dimensions elsewhere */

GRAD_SPARSE(TransposeBackward0, "self_sym_argsize_0:- | dim0:i dim1:i") {
  gi[0] = t_transpose(g[0], NUM(0), NUM(1));
}
GRAD_SPARSE(TBackward0, "") { gi[0] = t_transpose(g[0], 0, 1); }

static Tensor *transpose_dims(Tensor *x, int64_t a, int64_t b) {
  GRAD_MODE_WAS;
  Sparse s = *sparse_parts(x);
  int64_t sizes[MAX_DIM];
  memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
  sizes[a] = x->sizes[b];
  sizes[b] = x->sizes[a];
  if (!is_coo(x)) {
    int batch = sparse_batch_dims(x);
    if ((a != batch || b != batch + 1) && (b != batch || a != batch + 1))
      return fail(ERR_RUNTIME,
                  "transpose(): only the compressed dimensions of %s tensors can be exchanged",
                  layout_text(x));
    static const uint8_t turned[] = {
        0, 0, LAYOUT_SPARSE_CSC, LAYOUT_SPARSE_CSR, LAYOUT_SPARSE_BSC, LAYOUT_SPARSE_BSR};
    s.layout = turned[s.layout];
    if (in_blocks((Layout)s.layout)) s.values = t_transpose(s.values, batch + 1, batch + 2);
    return tensor_sparse(x->ndim, sizes, s);
  }
  bool inner = a >= s.sparse_dim && b >= s.sparse_dim;
  if (!inner && (a >= s.sparse_dim || b >= s.sparse_dim))
    return fail(ERR_RUNTIME,
                "transpose: transposed dimensions must be sparse Got sparse_dim: %d, "
                "d0: %lld, d1: %lld",
                s.sparse_dim, (Shown)a, (Shown)b);
  if (inner) {
    s.values = t_transpose(s.values, a - s.sparse_dim + 1, b - s.sparse_dim + 1);
    return s.values ? tensor_sparse(x->ndim, sizes, s) : NULL;
  }
  Tensor *order = tensor_empty(1, (int64_t[]){s.sparse_dim}, DT_I64);
  if (!order) return NULL;
  for (int d = 0; d < s.sparse_dim; d++) words_in(order)[d] = d == a ? b : d == b ? a : d;
  s.indices = t_index_select(s.indices, 0, order);
  s.coalesced = s.coalesced && (a == b || s.values->sizes[0] == 0);
  return s.indices ? tensor_sparse(x->ndim, sizes, s) : NULL;
}

Tensor *t_sparse_transpose(Tensor *x, int64_t a, int64_t b) {
  ANY_ENTERED(t_sparse_transpose, "transpose", x, a, b);
  if (blocked(x) || (a = dim_wrap(a, x->ndim)) < 0 || (b = dim_wrap(b, x->ndim)) < 0) return NULL;
  if (a == b) return t_detach(x);
  Node *n = node_new(&TransposeBackward0, 0, 2, x, NULL);
  num_i(n, 0, a);
  num_i(n, 1, b);
  return set_history(transpose_dims(x, a, b), n);
}

Tensor *t_sparse_t(Tensor *x) {
  ANY_ENTERED(t_sparse_t, "t", x);
  if (blocked(x) || x->ndim < 2) return failed() ? NULL : x;
  if (is_coo(x) && x->ndim > 2)
    return fail(ERR_RUNTIME,
                "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got %d sparse "
                "and %d dense dimensions",
                sparse_dims(x), sparse_dense_dims(x));
  Node *n = node_new(&TBackward0, 0, 0, x, NULL);
  return set_history(transpose_dims(x, x->ndim - 2, x->ndim - 1), n);
}

/* ------------------------------------------------------------ products */

/* The row and column numbers of a matrix's elements. The matrix has no dense dimensions. */
static bool elements_of(Tensor *x, Tensor **rows, Tensor **cols, Tensor **values) {
  if (!is_coo(x)) x = to_coo(x);
  if (blocked(x)) return false;
  const Sparse *s = sparse_parts(x);
  if (x->ndim != 2 || s->sparse_dim != 2)
    return fail(ERR_RUNTIME,
                "mm: expected a matrix of two sparse dimensions, but got %d sparse and %d dense "
                "ones",
                s->sparse_dim, sparse_dense_dims(x)),
           false;
  Tensor *columns = sparse_index_words(s->indices);
  if (!columns || !sparse_places_within(words_of(columns), columns->sizes[1], x->sizes[0]) ||
      !sparse_places_within(words_of(columns) + columns->sizes[1], columns->sizes[1], x->sizes[1]))
    return false;
  *rows = t_select(columns, 0, 0);
  *cols = t_select(columns, 0, 1);
  *values = s->values;
  return *rows && *cols;
}

static Tensor *sparse_by_dense(Tensor *a, Tensor *b) {
  Tensor *rows, *cols, *v;
  if (!elements_of(a, &rows, &cols, &v)) return NULL;
  Tensor *y = tensor_zeros(2, (int64_t[]){a->sizes[0], b->sizes[1]}, tensor_dtype(b));
  return sparse_add_rows(y, rows, t_mul(t_index_select(b, 0, cols), t_unsqueeze(v, 1)));
}

/* Each element of a meets the elements of its row of b, which are adjacent. */
static Tensor *sparse_by_sparse(Tensor *a, Tensor *b) {
  Tensor *ar, *ac, *av, *br, *bc, *bv;
  b = t_coalesce(is_coo(b) ? b : to_coo(b));
  if (!b || !elements_of(a, &ar, &ac, &av) || !elements_of(b, &br, &bc, &bv)) return NULL;
  const int64_t n = ac->numel, m = br->numel, k = b->sizes[0];
  int64_t *start = scratch_array_zero(k + 2, sizeof *start), total = 0;
  if (!start) return NULL;
  const int64_t *r = words_of(br), *c = words_of(ac);
  for (int64_t i = 0; i < m; i++) start[r[i] + 1]++;
  for (int64_t i = 0; i < k; i++) start[i + 1] += start[i];
  for (int64_t i = 0; i < n; i++) total += start[c[i] + 1] - start[c[i]];
  Tensor *from = tensor_empty(1, &total, DT_I64), *to = tensor_empty(1, &total, DT_I64);
  if (blocked(from, to)) return NULL;
  for (int64_t i = 0, at = 0; i < n; i++)
    for (int64_t j = start[c[i]]; j < start[c[i] + 1]; j++, at++)
      words_in(from)[at] = i, words_in(to)[at] = j;
  Tensor *both[2] = {t_index_select(ar, 0, from), t_index_select(bc, 0, to)};
  Tensor *values = t_mul(t_index_select(av, 0, from), t_index_select(bv, 0, to));
  Tensor *y = blocked(both[0], both[1])
                  ? NULL
                  : sparse_coo_of(t_stack((Tensors){2, both}, 0), values, 2,
                                  (int64_t[]){a->sizes[0], b->sizes[1]}, false);
  return y ? sparse_coalesced_value(y) : NULL;
}

static bool check_product(const Tensor *a, const Tensor *b) {
  if (a->ndim != 2 || b->ndim != 2)
    fail(ERR_RUNTIME, "mm: Expected matrices, but got %dD and %dD tensors", a->ndim, b->ndim);
  else if (a->sizes[1] != b->sizes[0])
    fail(ERR_RUNTIME, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
         (Shown)a->sizes[0], (Shown)a->sizes[1], (Shown)b->sizes[0], (Shown)b->sizes[1]);
  else if (a->dtype != b->dtype && is_sparse(a) && is_sparse(b))
    fail(ERR_RUNTIME, "mat1 dtype %s does not match mat2 dtype %s", legacy(a), legacy(b));
  else if (a->dtype != b->dtype)
    fail(ERR_RUNTIME, "expected m1 and m2 to have the same dtype, but got: %s != %s",
         dtype_c_name(tensor_dtype(a)), dtype_c_name(tensor_dtype(b)));
  return !failed();
}

static Tensor *product_value(Tensor *a, Tensor *b) {
  GRAD_MODE_WAS;
  if (is_sparse(a) && is_sparse(b)) return as_first(sparse_by_sparse(a, b), a);
  if (is_sparse(a)) return sparse_by_dense(a, b);
  Tensor *y = sparse_by_dense(transpose_dims(b, 0, 1), t_t(a));
  return y ? t_contiguous(t_t(y)) : NULL;
}

static Tensor *adjoint(Tensor *x) { return x ? t_conj(t_t(x)) : NULL; }

/* y = a b:  a' = g b^H,  b' = a^H g; products of torch.sparse keep the gradient at the operands'
 * places only. */
static void product_gradient(Node *n, Tensor *g, Tensor **gi, bool masked) {
  Tensor *a = saved_plain(n, 0), *b = saved_plain(n, 1);
  if (blocked(g)) return;
  if (needs(n, 0)) gi[0] = t_mm(g, adjoint(b));
  if (needs(n, 1)) gi[1] = t_mm(adjoint(a), g);
  if (masked && gi[0] && is_sparse(a)) gi[0] = t_sparse_mask(gi[0], is_coo(a) ? t_coalesce(a) : a);
  if (masked && gi[1] && is_sparse(b)) gi[1] = t_sparse_mask(gi[1], is_coo(b) ? t_coalesce(b) : b);
}
GRAD_SPARSE(MmBackward0, "self mat2") { product_gradient(n, g[0], gi, false); }
GRAD_SPARSE(SparseAddmmBackward0, "mat1 mat2") { product_gradient(n, g[0], gi, true); }
GRAD_SPARSE(SparseSparseMatmulBackward0, "self other") { product_gradient(n, g[0], gi, true); }

static Tensor *product_of(const NodeType *type, Tensor *a, Tensor *b) {
  if (blocked(a, b) || !check_product(a, b)) return NULL;
  Node *n = node_new(type, 2, 0, a, b, NULL);
  save(n, 0, a);
  save(n, 1, b);
  return set_history(product_value(a, b), n);
}

Tensor *t_mm_sparse(Tensor *a, Tensor *b) {
  ANY_ENTERED(t_mm_sparse, "mm", a, b);
  return product_of(&MmBackward0, a, b);
}

static Tensor *masked_product(Tensor *a, Tensor *b) {
  bool both = is_sparse(a) && is_sparse(b);
  return product_of(both ? &SparseSparseMatmulBackward0 : &SparseAddmmBackward0, a, b);
}

/* The name for scatter_reduce of torch.sparse.mm's `reduce`; NULL: none. */
static const char *fold_named(const char *reduce) {
  static const char *const names[][2] = {{"sum", "sum"},   {"mean", "mean"}, {"amax", "amax"},
                                         {"amin", "amin"}, {"max", "amax"},  {"min", "amin"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(reduce, names[i][0]) == 0) return names[i][1];
  return NULL;
}

/* Reduces, for each row and column, the products of a's stored elements: their mean, maximum or
 * minimum; 0 where a has none. */
static Tensor *reduced_product(Tensor *a, Tensor *b, const char *reduce) {
  if (strcmp(reduce, "sum") == 0 && is_sparse(a)) return masked_product(a, b);
  const char *fold = fold_named(reduce);
  if (!fold)
    return fail(ERR_RUNTIME, "sparse_mm_reduce: reduce type of %s has not been enabled.", reduce);
  if (!is_sparse(a) || tensor_layout(a) != LAYOUT_SPARSE_CSR)
    return fail(ERR_RUNTIME, "sparse_mm_reduce: expect self to be SparseCsr, got %s",
                is_sparse(a) ? layout_text(a) : "Strided");
  if (is_sparse(b))
    return fail(ERR_RUNTIME,
                "Expected tensor to have Strided Layout, but got tensor with %s Layout (while "
                "checking arguments for sparse_mm_reduce)",
                layout_text(b));
  if (b->ndim != 2 || b->sizes[0] != a->sizes[1])
    return fail(ERR_RUNTIME,
                "Expected a tensor of dimension 2 and tensor.size[0] == %lld but got: dimension "
                "%d and tensor.size[0] = %lld",
                (Shown)a->sizes[1], b->ndim, (Shown)(b->ndim ? b->sizes[0] : 1));
  Tensor *rows, *cols, *own, *values = t_sparse_values(a);
  if (!values || !elements_of(a, &rows, &cols, &own)) return NULL;
  Tensor *each = t_mul(t_index_select(b, 0, cols), t_unsqueeze(values, 1));
  if (!each) return NULL;
  Tensor *y = tensor_zeros(2, (int64_t[]){a->sizes[0], b->sizes[1]}, tensor_dtype(each));
  y = t_scatter_reduce(y, 0, expand_to(t_unsqueeze(rows, 1), each), each, fold, false);
  return node_rename(y, "SparseMmReduceImplBackward0");
}

/* torch.sparse.mm */
Tensor *t_sparse_mm(Tensor *a, Tensor *b, const char *reduce) {
  ANY_ENTERED(t_sparse_mm, "_sparse_mm", a, b, reduce);
  if (blocked(a, b)) return NULL;
  if (reduce) return reduced_product(a, b, reduce);
  return is_sparse(a) || is_sparse(b) ? masked_product(a, b) : t_mm(a, b);
}

static Tensor *scale(Tensor *x, Tensor *factor) {
  if (!factor) return NULL;
  bool one = !dtype_is_complex(tensor_dtype(factor)) && tensor_get_f(factor, 0) == 1;
  return one ? x : t_mul(x, factor);
}

/* beta self + alpha a b */
Tensor *t_sparse_addmm(Tensor *self, Tensor *a, Tensor *b, Tensor *beta, Tensor *alpha) {
  ANY_ENTERED(t_sparse_addmm, "_sparse_addmm", self, a, b, beta, alpha);
  if (blocked(self, a, b) || blocked(alpha, beta)) return NULL;
  Tensor *y = is_sparse(a) || is_sparse(b) ? masked_product(a, b) : t_mm(a, b);
  return t_add(scale(self, beta), y ? scale(y, alpha) : NULL);
}

static Tensor *number(Factor f, DType d) {
  if (f.imag != 0) return tensor_wrapped_c(complex_of(f.f, f.imag));
  return dtype_is_inexact(d) ? tensor_wrapped_f(f.f) : tensor_wrapped_i(f.i);
}

Tensor *t_addmm_sparse(Tensor *self, Tensor *a, Tensor *b, Factor beta, Factor alpha) {
  ANY_ENTERED_AS(t_addmm_sparse(self, a, b, beta, alpha), "addmm", self, a, b);
  if (blocked(self, a, b)) return NULL;
  DType d = tensor_dtype(self);
  Tensor *y = is_sparse(a) || is_sparse(b) ? t_mm_sparse(a, b) : t_mm(a, b);
  if (y && !is_sparse(self)) self = t_expand(self, y->ndim, y->sizes);
  if (!dtype_is_complex(d) && (alpha.imag != 0 || beta.imag != 0))
    return fail(ERR_RUNTIME, "value cannot be converted to type double without overflow");
  return t_add(scale(self, number(beta, d)), y ? scale(y, number(alpha, d)) : NULL);
}

Tensor *t_sparse_mv(Tensor *a, Tensor *v) {
  if (blocked(a, v)) return NULL;
  if (a->ndim != 2 || v->ndim != 1)
    return fail(ERR_RUNTIME,
                "mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: %d "
                "Tensor Dim: %d",
                a->ndim, v->ndim);
  if (is_sparse(v)) return door_refuse_layout("mv", v);
  if (a->sizes[1] != v->sizes[0])
    return fail(ERR_RUNTIME, "mv: expected self.size(-1) == vec.size(-1)");
  Tensor *y = t_mm_sparse(a, t_unsqueeze(v, 1));
  return y ? t_squeeze(y, ONE_DIM(1)) : NULL;
}

Tensor *t_sparse_matmul(Tensor *a, Tensor *b) {
  if (blocked(a, b)) return NULL;
  if (a->ndim == 2 && b->ndim == 2) return t_mm_sparse(a, b);
  if (a->ndim == 2 && b->ndim == 1) return t_sparse_mv(a, b);
  return door_refuse_layout("matmul", is_sparse(a) ? a : b);
}

/* ------------------------------------------------------------ softmax */

/* The group in which each element is normalized: elements that differ along dim alone. */
static Tensor *groups_along(Tensor *x, int64_t dim, int64_t *n) {
  GRAD_MODE_WAS;
  Sparse s = *sparse_parts(x);
  s.indices = t_clone(sparse_index_words(s.indices));
  if (!s.indices) return NULL;
  const int64_t width = s.indices->sizes[1];
  memset(words_in(s.indices) + dim * width, 0, (size_t)width * sizeof(int64_t));
  Tensor *flat = tensor_sparse(x->ndim, x->sizes, s), *out[3];
  Tensor *places = flat ? sparse_places_of(flat) : NULL;
  if (!places) return NULL;
  t_unique(places, true, NULL, out);
  if (failed()) return NULL;
  *n = out[0]->numel;
  return sparse_find_places(out[0], places);
}

/* Softmax of the stored values; other elements count as -inf. */
static Tensor *softmax_values(Tensor *x, int64_t dim, bool logarithm) {
  const Sparse *s = sparse_parts(x);
  Tensor *v = t_sparse_values(x);
  if (dim >= s->sparse_dim) {
    int64_t inner = dim - s->sparse_dim + 1;
    return logarithm ? t_log_softmax(v, inner, DT_NONE) : t_softmax(v, inner, DT_NONE);
  }
  int64_t n = 0;
  Tensor *group = groups_along(x, dim, &n);
  if (blocked(v, group) || !v->numel) return v;
  Tensor *rows = t_reshape(v, 2, (int64_t[]){v->sizes[0], -1});
  if (!rows) return NULL;
  int64_t sizes[2] = {n, rows->sizes[1]};
  Tensor *top = tensor_full(2, sizes, tensor_dtype(v), -1.0 / 0.0);
  top = WITHOUT_GRAD(
      t_scatter_reduce(top, 0, expand_to(t_unsqueeze(group, 1), rows), rows, "amax", true));
  Tensor *shifted = t_sub(rows, t_index_select(top, 0, group)), *powers = t_exp(shifted);
  Tensor *sums = t_index_add(tensor_zeros(2, sizes, tensor_dtype(v)), 0, group, powers, 1);
  Tensor *whole = t_index_select(sums, 0, group);
  Tensor *y = logarithm ? t_sub(shifted, t_log(whole)) : t_div(powers, whole);
  return y ? t_reshape(y, v->ndim, v->sizes) : NULL;
}

/* torch.sparse.softmax, log_softmax */
Tensor *t_sparse_softmax(Tensor *x, int64_t dim, bool logarithm, DType dtype) {
  const char *op = logarithm ? "_sparse_log_softmax" : "_sparse_softmax";
  ANY_ENTERED_AS(t_sparse_softmax(x, dim, logarithm, dtype), op, x, dim, dtype);
  if (blocked(x)) return NULL;
  if (!is_sparse(x) || !is_coo(x)) return door_refuse_layout(op, x);
  if (dtype != DT_NONE) x = t_to(x, dtype);
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return NULL;
  if (!dtype_is_float(tensor_dtype(x)))
    return dtype_no_kernel(logarithm ? "log_softmax" : "softmax", tensor_dtype(x));
  x = t_coalesce(x);
  Tensor *y = x ? t_with_values(x, softmax_values(x, dim, logarithm)) : NULL;
  return node_rename(y, logarithm ? "SparseLogSoftmaxBackward0" : "SparseSoftmaxBackward0");
}

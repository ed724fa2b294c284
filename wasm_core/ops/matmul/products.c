/* Functions made of matrix products: outer, inner, tensordot, chains and powers of matrices,
 * bilinear forms, cross.
 *
 * The primitives that PyTorch shows as one node (addr, bilinear, cross) record one node. The others
 * are sequences of ops, which record themselves. */
#include <string.h>

#include "ground/memory.h"
#include "kernels/complex.h"
#include "matmul_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/lu_cholesky.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "ops/view/view.h"

static const char *c_type(const Tensor *t) { return dtype_c_name(tensor_dtype(t)); }

/* ------------------------------------------------------------ outer, addr */

static bool check_vector(const Tensor *t, const char *op, const char *name) {
  if (t->ndim == 1) return true;
  fail(ERR_RUNTIME, "%s: Expected 1-D argument %s, but got %d-D", op, name, t->ndim);
  return false;
}

Tensor *t_outer(Tensor *a, Tensor *b) {
  OP_ENTERED(t_outer, "outer", a, b);
  if (blocked(a, b) || !check_vector(a, "outer", "self") || !check_vector(b, "outer", "vec2"))
    return NULL;
  return t_mul(t_reshape(a, 2, (int64_t[]){a->sizes[0], 1}), b);
}

/* g times the conjugate of number k of a node; number k + 2 is the imaginary part. */
static Tensor *scale_by_number(Tensor *g, const Node *n, int k) {
  double re = n->numbers[k].f, im = n->numbers[k + 2].f;
  if (im != 0) return t_mul(g, tensor_wrapped_c(complex_of(re, -im)));
  return re == 1 ? g : t_mul_f(g, re);
}
static void keep_number(Node *n, int k, const Tensor *number) {
  complex_f64 z = n ? tensor_get_c(number, 0) : 0;
  num_f(n, k, real_part(z));
  num_f(n, k + 2, imaginary_part(z));
}

/* y = beta self + alpha a b^T:  self' = beta g,  a' = alpha g b,  b' = alpha g^T a. */
GRAD(AddrBackward0, "vec1 vec2 | alpha:scalar beta:scalar")
{
  if (needs(n, 0)) gi[0] = scale_by_number(g[0], n, 1);
  if (needs(n, 1)) gi[1] = scale_by_number(t_mv(g[0], saved_tensor(n, 1)), n, 0);
  if (needs(n, 2)) gi[2] = scale_by_number(t_mv(t_t(g[0]), saved_tensor(n, 0)), n, 0);
}

static bool check_addr_number(const Tensor *number, DType d, const char *name) {
  if (!dtype_is_float(d) && dtype_is_float(tensor_dtype(number)))
    return fail(ERR_RUNTIME,
                "For integral input tensors, argument %s must not be a floating point number.",
                name),
           false;
  if (d != DT_BOOL && number->dtype == DT_BOOL)
    return fail(ERR_RUNTIME, "Boolean %s only supported for Boolean results.", name), false;
  return true;
}

static Tensor *addr_values(Tensor *self, Tensor *a, Tensor *b, Tensor *beta, Tensor *alpha,
                           DType d) {
  if (d == DT_BOOL) {
    beta = tensor_wrapped_b(tensor_get_i(beta, 0) != 0);
    alpha = tensor_wrapped_b(tensor_get_i(alpha, 0) != 0);
  }
  Tensor *column = t_reshape(a, 2, (int64_t[]){a->sizes[0], 1});
  Tensor *y = t_to(t_mul(t_mul(column, alpha), b), d);
  if (blocked(beta, y)) return NULL;
  self = t_expand(self, 2, y->sizes);
  return tensor_get_f(beta, 0) == 0 ? y : t_add(t_mul(self, beta), y);
}

/* beta and alpha are wrapped numbers. */
Tensor *t_addr(Tensor *self, Tensor *a, Tensor *b, Tensor *beta, Tensor *alpha) {
  OP_ENTERED(t_addr, "addr", self, a, b, beta, alpha);
  if (blocked(a, b) || !self || blocked(beta, alpha)) return NULL;
  if (!check_vector(a, "addr", "vec1") || !check_vector(b, "addr", "vec2")) return NULL;
  DType d = elementwise_result_dtype(3, (Tensor *[]){self, a, b});
  if (!check_addr_number(beta, d, "beta") || !check_addr_number(alpha, d, "alpha")) return NULL;
  Node *n = node_new(&AddrBackward0, 2, 4, self, a, b, NULL);
  if (needs(n, 2)) save(n, 0, a);
  if (needs(n, 1)) save(n, 1, b);
  keep_number(n, 0, alpha);
  keep_number(n, 1, beta);
  Tensor *y = WITHOUT_GRAD(addr_values(self, a, b, beta, alpha, d));
  return set_history(y, n);
}

/* ------------------------------------------------------------ tensordot, inner */

/* One side of a contraction as a matrix: the order of its dims, and its size. */
typedef struct {
  int64_t order[MAX_DIM];
  int64_t kept; /* elements along the dims that are kept */
} Side;

static void side_of(Side *s, const Tensor *x, const bool *contracted, Ints dims, bool dims_last) {
  int n = 0, kept = x->ndim - dims.n;
  s->kept = 1;
  for (int i = 0; i < x->ndim; i++) {
    if (contracted[i]) continue;
    s->order[n++ + (dims_last ? 0 : dims.n)] = i;
    s->kept *= x->sizes[i];
  }
  for (int i = 0; i < dims.n; i++) s->order[i + (dims_last ? kept : 0)] = dims.v[i];
}

/* Matches the contracted sizes; a dimension of size one on one side is summed over on the other. */
static bool match_contracted(Tensor **a, Tensor **b, Ints da, Ints db, Ints shown_a, Ints shown_b,
                             int64_t *size) {
  *size = 1;
  for (int i = 0; i < da.n; i++) {
    int64_t sa = (*a)->sizes[da.v[i]], sb = (*b)->sizes[db.v[i]];
    if (sb == 1) *a = t_sum(*a, ONE_DIM(da.v[i]), true, tensor_dtype((*a)));
    else if (sa == 1) *b = t_sum(*b, ONE_DIM(db.v[i]), true, tensor_dtype((*b)));
    else if (sa == sb) *size *= sa;
    else
      fail(ERR_RUNTIME,
           "contracted dimensions need to match, but first has size %lld in dim %lld and second "
           "has size %lld in dim %lld",
           (Shown)sa, (Shown)shown_a.v[i], (Shown)sb, (Shown)shown_b.v[i]);
    if (failed()) return false;
  }
  return true;
}

static bool wrap_dims(const Tensor *x, Ints dims, bool *marked, int64_t *out) {
  memset(marked, 0, MAX_DIM * sizeof *marked);
  if (!view_dims_mark(x->ndim, dims, marked)) return false;
  for (int i = 0; i < dims.n; i++) out[i] = dim_wrap(dims.v[i], x->ndim);
  return true;
}

Tensor *t_tensordot(Tensor *a, Tensor *b, Ints dims_a, Ints dims_b) {
  OP_ENTERED(t_tensordot, "tensordot", a, b, dims_a, dims_b);
  if (blocked(a, b)) return NULL;
  if (dims_a.n != dims_b.n)
    return fail(ERR_RUNTIME, "both dimension lists should have same length");
  if (a->dtype != b->dtype) return fail(ERR_RUNTIME, "both inputs should have same dtype");
  int64_t wrapped_a[MAX_DIM], wrapped_b[MAX_DIM], sizes[2 * MAX_DIM], size;
  bool marked_a[MAX_DIM], marked_b[MAX_DIM];
  if (!wrap_dims(a, dims_a, marked_a, wrapped_a) || !wrap_dims(b, dims_b, marked_b, wrapped_b))
    return NULL;
  Ints da = {dims_a.n, wrapped_a}, db = {dims_b.n, wrapped_b};
  if (!match_contracted(&a, &b, da, db, dims_a, dims_b, &size)) return NULL;
  Side left, right;
  side_of(&left, a, marked_a, da, true);
  side_of(&right, b, marked_b, db, false);
  int n = 0;
  for (int i = 0; i < a->ndim; i++)
    if (!marked_a[i]) sizes[n++] = a->sizes[i];
  for (int i = 0; i < b->ndim; i++)
    if (!marked_b[i]) sizes[n++] = b->sizes[i];
  if (n > MAX_DIM)
    return fail(ERR_RUNTIME, "tensors have at most %d dimensions, but got %d", MAX_DIM, n);
  Tensor *x = t_permute(a, (Ints){a->ndim, left.order}),
         *y = t_permute(b, (Ints){b->ndim, right.order});
  if (left.kept == 1 && right.kept == 1)
    return t_reshape(t_dot(t_flatten(x, 0, -1), t_flatten(y, 0, -1)), n, sizes);
  x = t_reshape(x, 2, (int64_t[]){left.kept, size});
  y = t_reshape(y, 2, (int64_t[]){size, right.kept});
  return t_reshape(t_mm(x, y), n, sizes);
}

/* Contracts the last `count` dims of a with the first of b. */
Tensor *t_tensordot_count(Tensor *a, Tensor *b, int64_t count) {
  OP_ENTERED(t_tensordot_count, "tensordot", a, b, count);
  if (blocked(a, b)) return NULL;
  if (count < 0)
    return fail(ERR_RUNTIME, "tensordot expects dims >= 0, but got dims=%lld", (Shown)count);
  if (count > a->ndim || count > b->ndim)
    return fail(ERR_RUNTIME, "tensordot expects dims < ndim_a or ndim_b, but got dims=%lld",
                (Shown)count);
  int64_t da[MAX_DIM], db[MAX_DIM];
  for (int64_t i = 0; i < count; i++) {
    da[i] = i - count;
    db[i] = i;
  }
  return t_tensordot(a, b, (Ints){(int32_t)count, da}, (Ints){(int32_t)count, db});
}

Tensor *t_inner(Tensor *a, Tensor *b) {
  OP_ENTERED(t_inner, "inner", a, b);
  if (blocked(a, b)) return NULL;
  if (a->ndim == 0 || b->ndim == 0) return t_mul(a, b);
  if (a->sizes[a->ndim - 1] != b->sizes[b->ndim - 1])
    return fail(
        ERR_RUNTIME,
        "inner() the last dimension must match on both input tensors but got shapes %s and %s",
        shape_text(a), shape_text(b));
  return t_tensordot(a, b, ONE_DIM(-1), ONE_DIM(-1));
}

Tensor *t_vecdot(Tensor *a, Tensor *b, int64_t dim) {
  OP_ENTERED(t_vecdot, "vecdot", a, b, dim);
  if (blocked(a, b)) return NULL;
  if (!dtype_is_inexact(tensor_dtype(a)))
    return fail(ERR_RUNTIME,
                "linalg.vecdot: Expected a floating point or complex tensor as input. Got %s",
                legacy(a));
  if (a->dtype != b->dtype)
    return fail(ERR_RUNTIME,
                "linalg.vecdot: Expected x and y to have the same dtype, but found x of type %s "
                "and y of type %s instead",
                legacy(a), legacy(b));
  if (a->ndim == 1 && b->ndim == 1) return dim_wrap(dim, 1) < 0 ? NULL : t_vdot(a, b);
  return t_sum(t_mul(t_conj(a), b), ONE_DIM(dim), false, DT_NONE);
}

/* ------------------------------------------------------------ chains and powers */

/* Checks the matrices ts; `given` has the shapes for messages. */
static bool check_chain(Tensors ts, Tensors given) {
  for (int i = 1; i + 1 < ts.n; i++)
    if (ts.v[i]->ndim != 2)
      return fail(ERR_RUNTIME, "multi_dot(): tensor %d must be 2D but got %dD", i, ts.v[i]->ndim),
             false;
  for (int i = 1; i < ts.n; i++) {
    if (ts.v[i]->dtype != ts.v[0]->dtype) {
      fail(ERR_RUNTIME,
           "multi_dot(): all tensors must have be the same dtype but tensor 0 is %s and tensor %d "
           "%s",
           c_type(ts.v[0]), i, c_type(ts.v[i]));
      return false;
    }
    if (ts.v[i - 1]->sizes[1] != ts.v[i]->sizes[0]) {
      fail(ERR_RUNTIME, "multi_dot(): tensors %d and %d with shapes %s and %s cannot be multiplied",
           i - 1, i, shape_text(given.v[i - 1]), shape_text(given.v[i]));
      return false;
    }
  }
  return true;
}

/* split[i * n + j]: the matrix after which the product of i..j is best cut. Among equal costs the
 * first counts; but of three matrices the first two go first, like in PyTorch. */
static int32_t *best_splits(Tensors ts) {
  int n = ts.n;
  double *cost = scratch_array((int64_t)n * n, sizeof *cost);
  int32_t *split = scratch_array((int64_t)n * n, sizeof *split);
  if (!cost || !split) return NULL;
  for (int i = 0; i < n; i++) cost[i * n + i] = 0;
  for (int length = 1; length < n; length++)
    for (int i = 0; i + length < n; i++) {
      int j = i + length;
      cost[i * n + j] = -1;
      for (int k = i; k < j; k++) {
        double own = (double)ts.v[i]->sizes[0] * (double)ts.v[k]->sizes[1] *
                     (double)ts.v[j]->sizes[1];
        double all = cost[i * n + k] + cost[(k + 1) * n + j] + own;
        double *best = &cost[i * n + j];
        if (*best >= 0 && (n == 3 ? all > *best : all >= *best)) continue;
        *best = all;
        split[i * n + j] = k;
      }
    }
  return split;
}

/* Multiplies the matrices i..j, cut by `split`. Recurses at most as deep as the chain is long. */
static Tensor *chain(Tensors ts, const int32_t *split, int i, int j) {
  if (failed()) return NULL;
  if (i == j) return ts.v[i];
  int k = split[i * ts.n + j];
  return t_mm(chain(ts, split, i, k), chain(ts, split, k + 1, j));
}

Tensor *t_multi_dot(Tensors given) {
  OP_ENTERED(t_multi_dot, "multi_dot", given);
  if (failed()) return NULL;
  if (given.n < 2)
    return fail(ERR_RUNTIME, "multi_dot(): expected at least 2 tensors but got %d", given.n);
  if (given.n > 1024)
    return fail(ERR_RUNTIME, "multi_dot(): expected at most 1024 tensors but got %d", given.n);
  Tensors ts = {given.n, scratch_array(given.n, sizeof *ts.v)};
  if (!ts.v) return NULL;
  memcpy(ts.v, given.v, (size_t)given.n * sizeof *ts.v);
  Tensor *first = ts.v[0], *last = ts.v[ts.n - 1];
  if (first->ndim != 1 && first->ndim != 2)
    return fail(ERR_RUNTIME, "multi_dot(): the first tensor must be 1D or 2D but got %dD",
                first->ndim);
  if (last->ndim != 1 && last->ndim != 2)
    return fail(ERR_RUNTIME, "multi_dot(): the last tensor must be 1D or 2D but got %dD",
                last->ndim);
  int64_t sizes[2];
  int n = 0;
  if (first->ndim == 2) sizes[n++] = first->sizes[0];
  else ts.v[0] = t_unsqueeze(first, 0);
  if (last->ndim == 2) sizes[n++] = last->sizes[1];
  else ts.v[ts.n - 1] = t_unsqueeze(last, 1);
  if (failed() || !check_chain(ts, given)) return NULL;
  int32_t *split = best_splits(ts);
  return split ? t_view(chain(ts, split, 0, ts.n - 1), n, sizes) : NULL;
}

Tensor *t_chain_matmul(Tensors ts) {
  OP_ENTERED(t_chain_matmul, "chain_matmul", ts);
  if (failed()) return NULL;
  WARN_ONCE("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. "
            "Use torch.linalg.multi_dot instead, which accepts a list of two or more tensors "
            "rather than multiple parameters.");
  if (ts.n < 1) return fail(ERR_RUNTIME, "chain_matmul(): Expected one or more matrices");
  for (int i = 0; i < ts.n; i++)
    if (ts.v[i]->ndim != 2)
      return fail(ERR_RUNTIME, "Tensor dimension is %d, expected 2 instead.", ts.v[i]->ndim);
  return ts.n == 1 ? t_clone(ts.v[0]) : t_multi_dot(ts);
}

static bool check_square(const Tensor *x, const char *op) {
  if (x->ndim < 2)
    return fail(ERR_RUNTIME, "%s: The input tensor A must have at least 2 dimensions.", op), false;
  int64_t rows = x->sizes[x->ndim - 2], cols = x->sizes[x->ndim - 1];
  if (rows == cols) return true;
  fail(ERR_RUNTIME, "%s: A must be batches of square matrices, but they are %lld by %lld matrices",
       op, (Shown)rows, (Shown)cols);
  return false;
}

/* Identity matrices in place of x, which gets a zero gradient. */
static Tensor *identity_like(Tensor *x) {
  Tensor *y = t_clone(t_contiguous(x)), *eye = tensor_zeros(x->ndim, x->sizes, tensor_dtype(x));
  if (!y || !eye) return NULL;
  int64_t n = x->sizes[x->ndim - 1];
  for (int64_t at = 0, i = 0; at < eye->numel && !tensor_absent(eye);
       at += n, i = i + 1 == n ? 0 : i + 1)
    tensor_set_i(eye, at + i, 1);
  return t_copy_(y, eye, true);
}

/* x^n by repeated squaring, from the lowest bit of n on. */
static Tensor *power(Tensor *x, uint64_t n) {
  Tensor *square = NULL, *y = NULL;
  for (; n && !failed(); n /= 2) {
    square = square ? t_matmul(square, square) : x;
    if (n % 2) y = y ? t_matmul(y, square) : square;
  }
  return y;
}

Tensor *t_matrix_power(Tensor *x, int64_t n) {
  OP_ENTERED(t_matrix_power, "matrix_power", x, n);
  if (blocked(x) || !check_square(x, "linalg.matrix_power")) return NULL;
  if (n == 0) return identity_like(x);
  if (n == 1) return t_clone(x);
  if (n < 0) {
    x = t_inverse(x);
    n = -n;
  }
  return n == 3 ? t_matmul(t_matmul(x, x), x) : power(x, (uint64_t)n);
}

/* ------------------------------------------------------------ bilinear */

/* y[n,o] = sum_ij x1[n,i] w[o,i,j] x2[n,j]. With u[n,oi] = sum_j x2[n,j] w[oi,j] and z[n,oi] =
 * g[n,o] x1[n,i]: x1' = sum_o g u,  x2' = z w,  w' = z^T x2. All four are products of matrices. */
static Tensor *bilinear_inner(Tensor *x2, Tensor *w) {
  if (blocked(x2, w)) return NULL;
  int64_t outputs = w->sizes[0], inputs = w->sizes[1];
  Tensor *flat = t_reshape(w, 2, (int64_t[]){outputs * inputs, w->sizes[2]});
  return t_reshape(t_mm(x2, t_t(flat)), 3, (int64_t[]){x2->sizes[0], outputs, inputs});
}

static Tensor *bilinear_values(Tensor *x1, Tensor *w, Tensor *x2) {
  return t_squeeze_dim(t_bmm(bilinear_inner(x2, w), t_unsqueeze(x1, 2)), 2);
}

GRAD(TrilinearBackward0, "i1 i2 i3 | expand1:ints2 expand2:ints1 expand3:ints2 sumdim:ints2")
{
  Tensor *x1 = saved_tensor(n, 0), *w = saved_tensor(n, 1), *x2 = saved_tensor(n, 2), *z = NULL;
  if (failed()) return;
  if (needs(n, 0)) gi[0] = t_squeeze_dim(t_bmm(t_unsqueeze(g[0], 1), bilinear_inner(x2, w)), 1);
  if (needs(n, 1) || needs(n, 2))
    z = t_flatten(t_bmm(t_unsqueeze(g[0], 2), t_unsqueeze(x1, 1)), 1, 2);
  if (needs(n, 1))
    gi[1] = t_reshape(t_mm(t_t(z), x2), 3, (int64_t[]){g[0]->sizes[1], x1->sizes[1], x2->sizes[1]});
  if (needs(n, 2)) gi[2] = t_mm(z, t_flatten(w, 0, 1));
}

static bool check_bilinear(const Tensor *a, const Tensor *b, const Tensor *w, const Tensor *bias) {
  if (a->dtype != b->dtype || a->dtype != w->dtype) {
    fail(ERR_RUNTIME,
         "All tensors must have the same dtype, got input1: %s, input2: %s, weight: %s", c_type(a),
         c_type(b), c_type(w));
    return false;
  }
  if (a->ndim != b->ndim) {
    fail(ERR_RUNTIME, "bilinear(): input dimensions do not match: got %d and %d", a->ndim, b->ndim);
    return false;
  }
  for (int i = 0; i + 1 < a->ndim; i++)
    if (a->sizes[i] != b->sizes[i]) {
      fail(ERR_RUNTIME,
           "bilinear(): input batch dimensions do not match at dim %d: got %lld and %lld", i,
           (Shown)a->sizes[i], (Shown)b->sizes[i]);
      return false;
    }
  const Tensor *each[2] = {a, b};
  for (int i = 0; i < 2; i++)
    if (tensor_size(w, i + 1) < 0 || tensor_size(each[i], -1) < 0) {
      return false;
    } else if (each[i]->sizes[a->ndim - 1] != w->sizes[i + 1]) {
      fail(ERR_RUNTIME,
           "bilinear(): input%d size does not match weight size: got %lld but expected %lld", i + 1,
           (Shown)each[i]->sizes[a->ndim - 1], (Shown)w->sizes[i + 1]);
      return false;
    }
  if (!bias || (bias->ndim > 0 && bias->sizes[0] == w->sizes[0])) return true;
  fail(ERR_RUNTIME, "bilinear(): bias size does not match weight size: got %lld but expected %lld",
       (Shown)(bias->ndim ? bias->sizes[0] : 1), (Shown)w->sizes[0]);
  return false;
}

/* bias may be NULL */
Tensor *t_bilinear(Tensor *a, Tensor *b, Tensor *w, Tensor *bias) {
  OP_ENTERED(t_bilinear, "bilinear", a, b, w, bias);
  if (blocked(a, b) || !w || !check_bilinear(a, b, w, bias)) return NULL;
  int64_t sizes[MAX_DIM], rows = 1;
  for (int i = 0; i + 1 < a->ndim; i++) rows *= sizes[i] = a->sizes[i];
  sizes[a->ndim - 1] = w->sizes[0];
  Tensor *x1 = t_reshape(a, 2, (int64_t[]){rows, w->sizes[1]}),
         *x2 = t_reshape(b, 2, (int64_t[]){rows, w->sizes[2]});
  if (blocked(x1, x2)) return NULL;
  Node *n = node_new(&TrilinearBackward0, 3, 7, x1, w, x2, NULL);
  for (int i = 0; i < 7; i++) num_i(n, i, "1301223"[i] - '0');
  if (needs(n, 1) || needs(n, 2)) save(n, 0, x1);
  if (needs(n, 0) || needs(n, 2)) save(n, 1, w);
  if (needs(n, 0) || needs(n, 1)) save(n, 2, x2);
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    y = t_contiguous(bilinear_values(x1, w, x2));
    if (y && !(y->form & FORM_HOSTED))
      y = tensor_alias(y, y->ndim, y->sizes, y->strides, y->offset);
  }
  y = t_reshape(set_history(y, n), a->ndim, sizes);
  return bias ? t_add(y, bias) : y;
}

/* ------------------------------------------------------------ cross */

/* y = a x b along dim:  a' = b x g,  b' = g x a. */
GRAD(LinalgCrossBackward0, "other self | dim:int")
{
  if (needs(n, 0)) gi[0] = t_linalg_cross(saved_tensor(n, 0), g[0], n->numbers[0].i);
  if (needs(n, 1)) gi[1] = t_linalg_cross(g[0], saved_tensor(n, 1), n->numbers[0].i);
}

static Tensor *cross_values(Tensor *a, Tensor *b, int64_t dim) {
  Tensor *x[3], *y[3], *z[3];
  for (int i = 0; i < 3; i++) {
    x[i] = t_select(a, dim, i);
    y[i] = t_select(b, dim, i);
  }
  for (int i = 0; i < 3; i++) {
    int j = (i + 1) % 3, k = (i + 2) % 3;
    z[i] = t_sub(t_mul(x[j], y[k]), t_mul(x[k], y[j]));
  }
  return t_stack((Tensors){3, z}, dim);
}

Tensor *t_linalg_cross(Tensor *a, Tensor *b, int64_t dim) {
  OP_ENTERED(t_linalg_cross, "cross", a, b, dim);
  if (blocked(a, b)) return NULL;
  if (a->ndim != b->ndim)
    return fail(ERR_RUNTIME, "linalg.cross: inputs must have the same number of dimensions.");
  if (a->ndim == 0)
    return fail(ERR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (Shown)dim);
  int64_t d = dim_wrap(dim, a->ndim);
  if (d < 0) return NULL;
  if (a->sizes[d] != 3 || b->sizes[d] != 3)
    return fail(ERR_RUNTIME,
                "linalg.cross: inputs dimension %lld must have length 3. Got %lld and %lld",
                (Shown)dim, (Shown)a->sizes[d], (Shown)b->sizes[d]);
  if (a->dtype == DT_BOOL) return dtype_no_kernel("cross", DT_BOOL);
  if (a->dtype != b->dtype)
    return fail(ERR_RUNTIME, "expected scalar type %s but found %s", legacy(a), legacy(b));
  Node *n = node_new(&LinalgCrossBackward0, 2, 1, a, b, NULL);
  if (needs(n, 0)) save(n, 0, b);
  if (needs(n, 1)) save(n, 1, a);
  num_i(n, 0, d);
  Tensor *y = WITHOUT_GRAD(cross_values(a, b, d));
  return set_history(y, n);
}

/* dim NULL: the first dimension of size three, with a warning. */
Tensor *t_cross(Tensor *a, Tensor *b, const int64_t *dim) {
  OP_ENTERED(t_cross, "cross", a, b, dim);
  if (blocked(a, b)) return NULL;
  if (dim) return t_linalg_cross(a, b, *dim);
  WARN_ONCE("Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass "
            "the dim explicitly or simply use torch.linalg.cross.\nThe default value of dim will "
            "change to agree with that of linalg.cross in a future release.");
  for (int i = 0; i < a->ndim; i++)
    if (a->sizes[i] == 3) return t_linalg_cross(a, b, i);
  return fail(ERR_RUNTIME, "no dimension of size 3 in input");
}

/* ------------------------------------------------------------ kron */

Tensor *t_kron(Tensor *a, Tensor *b) {
  OP_ENTERED(t_kron, "kron", a, b);
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

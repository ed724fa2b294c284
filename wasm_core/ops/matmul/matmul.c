/* Products of matrices and vectors: mm, bmm, mv, dot, the add* forms, matmul and linear.
 *
 * Operands reach gemm with the strides they have: none that is transposed, sliced or expanded is
 * copied. The panels of gemm lie in scratch of one call. A gradient is a product again; without
 * create_graph it is one kernel call, which writes in the layout of the operand (as PyTorch
 * does), so that what reaches a transposed weight is contiguous. */
#include "kernels/complex.h"
#include "kernels/gemm.h"

#include <string.h>

#include "ground/memory.h"
#include "ground/paths.h"
#include "matmul_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/op.h"
#include "ops/view/view.h"

/* ------------------------------------------------------------ kernels */

/* A matrix, or `count` of them `step` apart; strides in elements. A vector is a column. `at` is
 * NULL for absent tensors. */
typedef struct {
  char *at;
  int64_t count, step, rows, cols, rs, cs;
} Matrices;

static Matrices matrices_of(const Tensor *t) {
  const int64_t *n = t->sizes + t->ndim, *s = t->strides + t->ndim;
  Matrices m = {.count = 1, .cols = 1, .cs = 1};
  if (!tensor_absent(t)) m.at = tensor_data(t);
  if (t->ndim == 1) {
    m.rows = n[-1], m.rs = s[-1];
  } else {
    m.rows = n[-2], m.cols = n[-1], m.rs = s[-2], m.cs = s[-1];
    if (t->ndim == 3) m.count = n[-3], m.step = s[-3];
  }
  return m;
}

static Matrices transpose_of(Matrices m) {
  return (Matrices){m.at, m.count, m.step, m.cols, m.rows, m.cs, m.rs};
}

/* c = alpha a b + beta c, matrix by matrix. */
typedef struct {
  const char *op; /* PyTorch's name of the kernel, for bool */
  DType d;
  Matrices a, b, c;
  Factor alpha, beta;
} Product;
typedef void Kernel(const Product *p, void *room);

/* PART is the member of a Factor that the type reads. */
#define KERNEL(suffix, T, PART, ...)                                                               \
  static void product_##suffix(const Product *p, __attribute__((unused)) void *room) {             \
    const Matrices *a = &p->a, *b = &p->b, *c = &p->c;                                             \
    const T *x = (const T *)(const void *)a->at, *y = (const T *)(const void *)b->at;              \
    T *z = (T *)(void *)c->at;                                                                     \
    for (int64_t i = 0; i < c->count; i++, x += a->step, y += b->step, z += c->step)               \
      gemm_##suffix(c->rows, c->cols, a->cols, (T)p->alpha.PART, x, a->rs, a->cs, y, b->rs, b->cs, \
                    (T)p->beta.PART, z, c->rs, c->cs __VA_ARGS__);                                 \
  }
KERNEL(f32, float, f, , room)
KERNEL(f64, double, f, , room)
#define ROW(suffix, T, wide) KERNEL(suffix, T, i, )
GEMM_INTEGERS(ROW)
#undef ROW

/* Complex products from real products of the parts, which are matrices of twice the strides: four,
 * or eight if alpha is complex. */
#define COMPLEX_KERNEL(suffix, parts, T, R, real_gemm)                                             \
  static void scale_##suffix(const Matrices *c, T *z, T beta) {                                    \
    for (int64_t i = 0; i < c->rows; i++)                                                          \
      for (int64_t j = 0; j < c->cols; j++) {                                                      \
        T *at = z + i * c->rs + j * c->cs;                                                         \
        *at = beta == 0 ? (T)0 : complex_mul_##parts(beta, *at);                                   \
      }                                                                                            \
  }                                                                                                \
  static void product_##suffix(const Product *p, void *room) {                                     \
    const Matrices *a = &p->a, *b = &p->b, *c = &p->c;                                             \
    const T *x = (const T *)(const void *)a->at, *y = (const T *)(const void *)b->at;              \
    const R re = (R)p->alpha.f, im = (R)p->alpha.imag;                                             \
    const R by[2][4] = {{re, -im, -im, -re}, {im, re, re, -im}};                                   \
    T *z = (T *)(void *)c->at, scale = complex_of((R)p->beta.f, (R)p->beta.imag);                  \
    for (int64_t i = 0; i < c->count; i++, x += a->step, y += b->step, z += c->step) {             \
      if (scale != 1) scale_##suffix(c, z, scale);                                                 \
      for (int part = 0; part < 8; part++) {                                                       \
        const R k = by[part / 4][part % 4];                                                        \
        if (k == 0) continue;                                                                      \
        real_gemm(c->rows, c->cols, a->cols, k, (const R *)x + part / 2 % 2, 2 * a->rs, 2 * a->cs, \
                  (const R *)y + part % 2, 2 * b->rs, 2 * b->cs, 1, (R *)z + part / 4, 2 * c->rs,  \
                  2 * c->cs, room);                                                                \
      }                                                                                            \
    }                                                                                              \
  }
COMPLEX_KERNEL(c64, f32, complex_f32, float, gemm_f32)
COMPLEX_KERNEL(c128, f64, complex_f64, double, gemm_f64)
static Kernel *const kernels[DT_COUNT] = {
    [DT_F32] = product_f32, [DT_F64] = product_f64, [DT_I64] = product_i64,
    [DT_I32] = product_i32, [DT_I16] = product_i16, [DT_I8] = product_i8,
    [DT_U8] = product_u8,   [DT_C64] = product_c64, [DT_C128] = product_c128};

/* The scratch bytes of a kernel; kernels of integers need none. */
typedef size_t Room(int64_t m, int64_t n, int64_t k);
static Room *const rooms[DT_COUNT] = {[DT_F32] = gemm_f32_scratch_bytes,
                                      [DT_F64] = gemm_f64_scratch_bytes,
                                      [DT_C64] = gemm_f32_scratch_bytes,
                                      [DT_C128] = gemm_f64_scratch_bytes};

/* Only complex matrices take complex factors. */
static bool check_factors(const Product *p) {
  if (dtype_is_complex(p->d) || (p->alpha.imag == 0 && p->beta.imag == 0)) return true;
  fail(ERR_RUNTIME, "value cannot be converted to type double without overflow");
  return false;
}

/* False with the error set. */
static bool multiply(const Product *p) {
  const Matrices *c = &p->c;
  DType d = p->d;
  if (failed() || !check_factors(p)) return false;
  if (c->count == 0 || c->rows == 0 || c->cols == 0) return true;
  if (!kernels[d]) {
    if (p->a.cols || p->beta.i) return dtype_no_kernel(p->op, d), false;
    if (!c->at) return true;
    memset(c->at, 0, (size_t)(c->count * c->rows * c->cols * dtype_bytes(d)));
    return true;
  }
  if (!c->at) return true;
  size_t mark = scratch_mark(), bytes = rooms[d] ? rooms[d](c->rows, c->cols, p->a.cols) : 0;
  void *room = bytes ? scratch_alloc(bytes) : NULL;
  if (failed()) return false;
  if (c->count > 1) TOOK(GEMM_BATCHED);
  kernels[d](p, room);
  if (room) scratch_release(mark);
  return true;
}

static const Factor one = {1, 1, 0}, nothing = {0, 0, 0};

Factor arg_factor(const Call *c, int k) {
  if (!arg_given(c, k) || c->v[k].tag != TAG_COMPLEX)
    return (Factor){arg_float(c, k), arg_int(c, k), 0};
  complex_f64 z = arg_complex(c, k);
  return (Factor){real_part(z), (int64_t)real_part(z), imaginary_part(z)};
}

static Factor conj_factor(Factor k) { return (Factor){k.f, k.i, -k.imag}; }

/* A node's first two numbers are its factors; the last two are their imaginary parts. */
static void keep_factors(Node *n, Factor alpha, Factor beta) {
  if (!n) return;
  num_f(n, 0, alpha.f);
  num_f(n, 1, beta.f);
  num_f(n, n->n_numbers - 2, alpha.imag);
  num_f(n, n->n_numbers - 1, beta.imag);
}
static Factor kept_factor(const Node *n, int k) {
  return (Factor){n->numbers[k].f, 1, n->numbers[n->n_numbers - 2 + k].f};
}

/* A product as a new tensor of rank 1, 2 or 3, column-major if asked. */
static Tensor *product(Product *p, int ndim, bool by_columns) {
  const Matrices *a = &p->a, *b = &p->b;
  int64_t sizes[3] = {a->count, a->rows, b->cols}, strides[2] = {1, a->rows};
  if (a->cols != b->rows ||
      a->count != b->count) /* a hook may have returned anything as a gradient */
    return fail(ERR_RUNTIME, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                (Shown)a->rows, (Shown)a->cols, (Shown)b->rows, (Shown)b->cols);
  Tensor *y = by_columns ? tensor_empty_strided(2, sizes + 1, strides, p->d)
                         : tensor_empty(ndim, sizes + (ndim < 3), p->d);
  if (!y) return NULL;
  p->c = matrices_of(y);
  return multiply(p) ? y : NULL;
}

#define SPREAD(bytes, T)                                                          \
  static void spread_##bytes(const Matrices *from, const Matrices *to) {          \
    const T *x = (const T *)(const void *)from->at;                               \
    T *y = (T *)(void *)to->at;                                                   \
    for (int64_t k = 0; k < to->count; k++, x += from->step, y += to->step)       \
      for (int64_t i = 0; i < to->rows; i++)                                      \
        if (from->cs == 1 && to->cs == 1)                                         \
          memcpy(y + i * to->rs, x + i * from->rs, (size_t)to->cols * sizeof(T)); \
        else                                                                      \
          for (int64_t j = 0; j < to->cols; j++)                                  \
            y[i * to->rs + j * to->cs] = x[i * from->rs + j * from->cs];          \
  }
SPREAD(1, uint8_t)
SPREAD(2, uint16_t)
SPREAD(4, uint32_t)
SPREAD(8, uint64_t)
SPREAD(16, Wide16)
static void (*const spreads[17])(const Matrices *, const Matrices *) = {
    [1] = spread_1, [2] = spread_2, [4] = spread_4, [8] = spread_8, [16] = spread_16};

static bool reads(Factor beta, DType d) {
  return dtype_is_inexact(d) ? beta.f != 0 || beta.imag != 0 : beta.i != 0;
}

/* y = x broadcast to y's shape; nothing is copied when beta is zero, for then it is never read. */
static bool spread(Tensor *y, Tensor *x, Factor beta) {
  if (blocked(y)) return false;
  if (!sizes_expandable(x->ndim, x->sizes, y->ndim, y->sizes))
    return t_expand(x, y->ndim, y->sizes), false;
  if (y->numel == 0 || tensor_absent(y) || !reads(beta, tensor_dtype(y))) return true;
  int64_t sizes[3] = {1, 1, 1}, strides[3] = {0, 0, 0};
  for (int i = 1; i <= x->ndim; i++) {
    sizes[3 - i] = x->sizes[x->ndim - i];
    strides[3 - i] = sizes[3 - i] == 1 ? 0 : x->strides[x->ndim - i];
  }
  Matrices to = matrices_of(y),
           from = {tensor_data(x), 1, strides[0], 1, 1, strides[1], strides[2]};
  if (y->ndim == 1) from.rs = strides[2];
  spreads[dtype_bytes(tensor_dtype(y))](&from, &to);
  return true;
}

/* ------------------------------------------------------------ gradients of products */

static Tensor *scale_by(Tensor *g, Factor k) {
  if (k.imag != 0) return t_mul(g, tensor_wrapped_c(complex_of(k.f, k.imag)));
  return k.f == 1 ? g : t_mul_f(g, k.f);
}

static Tensor *matrix_product(Tensor *a, Tensor *b) {
  if (blocked(a, b)) return NULL;
  return a->ndim == 3 ? t_bmm(a, b) : b->ndim == 1 ? t_mv(a, b) : t_mm(a, b);
}

/* g in the type of a saved operand, with its rank checked; a hook may have replaced it. */
static Tensor *checked_gradient(Tensor *g, const Tensor *operand, int ndim) {
  if (blocked(g, operand)) return NULL;
  if (g->ndim != ndim)
    return fail(ERR_RUNTIME, "the gradient of a product has shape %s", shape_text(g));
  return g->dtype == operand->dtype ? g : t_to(g, tensor_dtype(operand));
}

/* alpha g b^T, for g and b of rank 1 (an outer product), 2 or 3. */
static Tensor *left_gradient(Tensor *g, Tensor *b, const Factor *alpha, bool by_columns) {
  g = checked_gradient(g, b, b ? b->ndim : 0);
  if (blocked(g, b)) return NULL;
  if (!grad_mode) {
    int ndim = g->ndim == 1 ? 2 : g->ndim;
    if (b->flags & FLAG_CONJ && !(b = t_resolve_conj(b))) return NULL;
    Product p = {"mm", tensor_dtype(g), matrices_of(g), transpose_of(matrices_of(b)),
                 .alpha = *alpha};
    return product(&p, ndim, by_columns);
  }
  if (g->ndim == 1) return scale_by(t_outer(g, b), *alpha);
  Tensor *y = by_columns ? t_t(t_mm(b, t_t(g))) : matrix_product(g, t_t(b));
  return scale_by(y, *alpha);
}

/* alpha a^T g, for g of a's rank, or a vector beside a matrix. */
static Tensor *right_gradient(Tensor *a, Tensor *g, const Factor *alpha, bool by_columns) {
  g = checked_gradient(g, a, g && g->ndim == 1 ? 1 : a ? a->ndim : 0);
  if (blocked(a, g)) return NULL;
  if (!grad_mode) {
    if (a->flags & FLAG_CONJ && !(a = t_resolve_conj(a))) return NULL;
    Product p = {"mm", tensor_dtype(g), transpose_of(matrices_of(a)), matrices_of(g),
                 .alpha = *alpha};
    return product(&p, g->ndim, by_columns);
  }
  Tensor *y = by_columns ? t_t(t_mm(t_t(g), a)) : matrix_product(t_t(a), g);
  return scale_by(y, *alpha);
}

/* y = alpha a b:  a' = alpha g b^T,  b' = alpha a^T g. Edge `first` is a's. Numbers `flags` and
 * `flags` + 1 say which gradients are column-major. */
static void product_vjp(Node *n, Tensor *g, Tensor **gi, int first, const Factor *alpha,
                        int flags) {
  if (needs(n, first)) gi[first] = left_gradient(g, saved_tensor(n, 1), alpha, n->numbers[flags].i);
  if (needs(n, first + 1))
    gi[first + 1] = right_gradient(saved_tensor(n, 0), g, alpha, n->numbers[flags + 1].i);
}

GRAD(MmBackward0, "self mat2 | -:ints2 self_sym_sizes:ints2 self_sym_strides:ints2 "
                  "mat2_sym_sizes:ints2 mat2_sym_strides:ints2")
{ product_vjp(n, g[0], gi, 0, &one, 0); }
GRAD(BmmBackward0, "self mat2")
{ product_vjp(n, g[0], gi, 0, &one, 0); }
GRAD(MvBackward0, "self vec")
{ product_vjp(n, g[0], gi, 0, &one, 0); }

/* y = beta self + alpha a b:  self' = beta g, and the others as above. */
static void add_product_vjp(Node *n, Tensor *g, Tensor **gi) {
  if (needs(n, 0)) gi[0] = scale_by(g, conj_factor(kept_factor(n, 1)));
  const Factor alpha = conj_factor(kept_factor(n, 0));
  product_vjp(n, g, gi, 1, &alpha, 2);
}
GRAD(AddmmBackward0,
     "mat1 mat2 | alpha:scalar beta:scalar -:ints2 mat1_sym_sizes:ints2 mat1_sym_strides:ints2 "
     "mat2_sym_sizes:ints2 mat2_sym_strides:ints2")
{ add_product_vjp(n, g[0], gi); }
GRAD(AddmvBackward0, "mat vec | alpha:scalar beta:scalar")
{ add_product_vjp(n, g[0], gi); }
GRAD(BaddbmmBackward0, "batch1 batch2 | alpha:scalar beta:scalar")
{ add_product_vjp(n, g[0], gi); }

static bool column_major(const Tensor *t) {
  return t->ndim == 2 && t->strides[0] == 1 && t->strides[1] == t->sizes[0];
}

static void keep_geometry(Node *n, int at, const Tensor *t, bool strides) {
  for (int i = 0; n && i < 2; i++) {
    num_i(n, at + i, t->sizes[i]);
    num_i(n, at + 2 + i, strides ? t->strides[i] : INT64_MAX);
  }
}

/* Saves each operand if the other's gradient is wanted, and notes the geometry of both if the node
 * has room. */
static void keep_operands(Node *n, Tensor *a, Tensor *b, int first, int flags) {
  if (needs(n, first)) save(n, 1, b);
  if (needs(n, first + 1)) save(n, 0, a);
  num_i(n, flags, column_major(a) && b->ndim == 2);
  num_i(n, flags + 1, column_major(b));
  if (n->n_numbers < flags + 10) return;
  keep_geometry(n, flags + 2, a, needs(n, first));
  keep_geometry(n, flags + 6, b, needs(n, first + 1));
}

/* ------------------------------------------------------------ checks, in PyTorch's words */

static const char *c_type(const Tensor *t) { return dtype_c_name(tensor_dtype(t)); }

static bool check_multipliable(const Tensor *a, const Tensor *b) {
  if (a->sizes[1] == b->sizes[0]) return true;
  fail(ERR_RUNTIME, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
       (Shown)a->sizes[0], (Shown)a->sizes[1], (Shown)b->sizes[0], (Shown)b->sizes[1]);
  return false;
}

static bool check_mm(const Tensor *a, const Tensor *b) {
  if (a->ndim != 2) return fail(ERR_RUNTIME, "self must be a matrix"), false;
  if (b->ndim != 2) return fail(ERR_RUNTIME, "mat2 must be a matrix"), false;
  if (!check_multipliable(a, b)) return false;
  if (a->dtype == b->dtype) return true;
  fail(ERR_RUNTIME, "expected m1 and m2 to have the same dtype, but got: %s != %s", c_type(a),
       c_type(b));
  return false;
}

static bool check_addmm(const Tensor *self, const Tensor *a, const Tensor *b) {
  const Tensor *wrong = self->dtype != b->dtype ? self : a->dtype != b->dtype ? a : NULL;
  if (wrong) {
    fail(ERR_RUNTIME, "%s and mat2 must have the same dtype, but got %s and %s",
         wrong == self ? "self" : "mat1", legacy(wrong), legacy(b));
    return false;
  }
  if (a->ndim != 2)
    return fail(ERR_RUNTIME, "mat1 must be a matrix, got %d-D tensor", a->ndim), false;
  if (b->ndim != 2)
    return fail(ERR_RUNTIME, "mat2 must be a matrix, got %d-D tensor", b->ndim), false;
  return check_multipliable(a, b);
}

static bool check_batches(const Tensor *a, const Tensor *b) {
  if (a->ndim != 3) return fail(ERR_RUNTIME, "batch1 must be a 3D tensor"), false;
  if (b->ndim != 3) return fail(ERR_RUNTIME, "batch2 must be a 3D tensor"), false;
  if (a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1]) {
    fail(ERR_RUNTIME,
         "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: "
         "[%lld, %lld].",
         (Shown)a->sizes[0], (Shown)a->sizes[2], (Shown)b->sizes[0], (Shown)b->sizes[1]);
    return false;
  }
  if (a->dtype == b->dtype) return true;
  fail(ERR_RUNTIME, "expected scalar type %s but found %s", legacy(a), legacy(b));
  return false;
}

/* For mv, self is NULL and stands for a vector that fits, of vec's dtype. */
static bool check_mv(const Tensor *self, const Tensor *mat, const Tensor *vec) {
  if (mat->ndim != 2 || vec->ndim != 1 || (self && self->ndim > 1)) {
    fail(ERR_RUNTIME, "vector + matrix @ vector expected, got %d, %d, %d", self ? self->ndim : 1,
         mat->ndim, vec->ndim);
    return false;
  }
  int64_t n = self ? self->numel : mat->sizes[0];
  if (mat->sizes[1] != vec->sizes[0] || (n != mat->sizes[0] && n != 1)) {
    fail(ERR_RUNTIME, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)", (Shown)n,
         (Shown)mat->sizes[0], (Shown)mat->sizes[1], (Shown)vec->sizes[0]);
    return false;
  }
  const Tensor *first = self ? self : vec;
  if (mat->dtype == vec->dtype && first->dtype == vec->dtype) return true;
  fail(ERR_RUNTIME, "addmv input tensors must have the same dtype, but got %s, %s, and %s",
       legacy(first), legacy(mat), legacy(vec));
  return false;
}

static bool check_dot(const Tensor *a, const Tensor *b) {
  if (a->ndim != 1 || b->ndim != 1)
    return fail(ERR_RUNTIME, "1D tensors expected, but got %dD and %dD tensors", a->ndim, b->ndim),
           false;
  if (a->dtype != b->dtype)
    return fail(ERR_RUNTIME, "dot : expected both vectors to have same dtype, but found %s and %s",
                legacy(a), legacy(b)),
           false;
  if (a->numel == b->numel) return true;
  fail(ERR_RUNTIME,
       "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number of "
       "elements, but got %lld and %lld elements respectively",
       (Shown)a->numel, (Shown)b->numel, (Shown)a->numel, (Shown)b->numel);
  return false;
}

/* ------------------------------------------------------------ mm, bmm, mv, dot */

typedef struct {
  const NodeType *node;
  const char *op; /* as in Product */
  int ndim, n_numbers;
} Recorded;

static Tensor *recorded_product(const Recorded *how, Tensor *a, Tensor *b) {
  Node *n = node_new(how->node, 2, how->n_numbers, a, b, NULL);
  if (n) keep_operands(n, a, b, 0, 0);
  Product p = {how->op, tensor_dtype(a), matrices_of(a), matrices_of(b), .alpha = one};
  return set_history(product(&p, how->ndim, false), n);
}

Tensor *t_mm(Tensor *a, Tensor *b) {
  OP_ENTERED(t_mm, "mm", a, b);
  IN_FLOAT(t_mm(a, b), a, b);
  if (blocked(a, b) || !check_mm(a, b)) return NULL;
  static const Recorded how = {&MmBackward0, "addmm_impl_cpu_", 2, 10};
  return recorded_product(&how, a, b);
}

Tensor *t_bmm(Tensor *a, Tensor *b) {
  OP_ENTERED(t_bmm, "bmm", a, b);
  IN_FLOAT(t_bmm(a, b), a, b);
  if (blocked(a, b) || !check_batches(a, b)) return NULL;
  static const Recorded how = {&BmmBackward0, "bmm", 3, 2};
  return recorded_product(&how, a, b);
}

Tensor *t_mv(Tensor *a, Tensor *v) {
  OP_ENTERED(t_mv, "mv", a, v);
  IN_FLOAT(t_mv(a, v), a, v);
  if (blocked(a, v) || tensor_size(a, 0) < 0 || !check_mv(NULL, a, v)) return NULL;
  static const Recorded how = {&MvBackward0, "addmv_impl_cpu", 1, 2};
  return recorded_product(&how, a, v);
}

/* y = a . b:  a' = g b,  b' = g a. */
GRAD(DotBackward0, "self tensor")
{
  if (needs(n, 0)) gi[0] = t_mul(g[0], saved_tensor(n, 1));
  if (needs(n, 1)) gi[1] = t_mul(g[0], saved_tensor(n, 0));
}
/* y = conj(a) . b:  a' = conj(g) b,  b' = g a. */
GRAD(VdotBackward0, "self other")
{
  if (needs(n, 0)) gi[0] = t_mul(t_conj(g[0]), saved_plain(n, 1));
  if (needs(n, 1)) gi[1] = t_mul(g[0], saved_plain(n, 0));
}

static Tensor *dot_values(Tensor *a, Tensor *b) {
  if (blocked(a, b)) return NULL;
  DType d = tensor_dtype(a);
  if (!kernels[d]) return dtype_no_kernel("dot", d);
  Tensor *y = tensor_empty(0, NULL, d);
  if (!y || tensor_absent(y)) return y;
  char *out = tensor_data(y), *x = tensor_data(a), *z = tensor_data(b);
  int64_t n = a->numel, xs = a->strides[0], zs = b->strides[0];
  if (d == DT_F32)
    *(float *)(void *)out = gemm_dot_f32(n, (float *)(void *)x, xs, (float *)(void *)z, zs);
  else if (d == DT_F64)
    *(double *)(void *)out = gemm_dot_f64(n, (double *)(void *)x, xs, (double *)(void *)z, zs);
  else {
    const Product p = {
        "dot", d,      transpose_of(matrices_of(a)), matrices_of(b), {out, 1, 0, 1, 1, 1, 1},
        one,   nothing};
    multiply(&p);
  }
  return y;
}

static Tensor *recorded_dot(const NodeType *type, Tensor *a, Tensor *b) {
  OP_ENTERED_AS(recorded_dot(type, a, b), type == &DotBackward0 ? "dot" : "vdot", a, b);
  IN_FLOAT(recorded_dot(type, a, b), a, b);
  if (blocked(a, b) || !check_dot(a, b)) return NULL;
  Node *n = node_new(type, 2, 0, a, b, NULL);
  if (needs(n, 0)) save(n, 1, b);
  if (needs(n, 1)) save(n, 0, a);
  if (type == &VdotBackward0) a = WITHOUT_GRAD(t_conj_physical(a));
  return set_history(dot_values(a, b), n);
}
Tensor *t_dot(Tensor *a, Tensor *b) { return recorded_dot(&DotBackward0, a, b); }
Tensor *t_vdot(Tensor *a, Tensor *b) { return recorded_dot(&VdotBackward0, a, b); }

/* ------------------------------------------------------------ beta self + alpha a b */

static Tensor *add_product(const Recorded *how, Tensor *self, Tensor *a, Tensor *b, Factor beta,
                           Factor alpha) {
  Product p = {how->op,        tensor_dtype(a), matrices_of(a),
               matrices_of(b), .alpha = alpha,  .beta = beta};
  int64_t sizes[3] = {p.a.count, p.a.rows, p.b.cols};
  Node *n = node_new(how->node, 2, how->n_numbers, self, a, b, NULL);
  if (n) keep_operands(n, a, b, 1, 2);
  keep_factors(n, alpha, beta);
  Tensor *out = tensor_empty(how->ndim, sizes + (how->ndim < 3), p.d);
  if (!spread(out, self, beta)) return set_history(NULL, n);
  p.c = matrices_of(out);
  return set_history(multiply(&p) ? out : NULL, n);
}

/* beta self + alpha a b */
Tensor *t_addmm(Tensor *self, Tensor *a, Tensor *b, Factor beta, Factor alpha) {
  OP_ENTERED(t_addmm, "addmm", self, a, b, beta, alpha);
  IN_FLOAT(t_addmm(self, a, b, beta, alpha), self, a, b);
  if (blocked(a, b) || !self || !check_addmm(self, a, b)) return NULL;
  static const Recorded how = {&AddmmBackward0, "addmm_impl_cpu_", 2, 14};
  return add_product(&how, self, a, b, beta, alpha);
}

Tensor *t_addmv(Tensor *self, Tensor *mat, Tensor *vec, Factor beta, Factor alpha) {
  OP_ENTERED(t_addmv, "addmv", self, mat, vec, beta, alpha);
  IN_FLOAT(t_addmv(self, mat, vec, beta, alpha), self, mat, vec);
  if (blocked(mat, vec) || !self || !check_mv(self, mat, vec)) return NULL;
  static const Recorded how = {&AddmvBackward0, "addmv_impl_cpu", 1, 6};
  return add_product(&how, self, mat, vec, beta, alpha);
}

Tensor *t_baddbmm(Tensor *self, Tensor *a, Tensor *b, Factor beta, Factor alpha) {
  OP_ENTERED(t_baddbmm, "baddbmm", self, a, b, beta, alpha);
  IN_FLOAT(t_baddbmm(self, a, b, beta, alpha), self, a, b);
  if (blocked(a, b) || !self || tensor_size(a, 0) < 0 || tensor_size(a, 1) < 0 ||
      tensor_size(b, 2) < 0 || !check_batches(a, b))
    return NULL;
  if (self->dtype != a->dtype)
    return fail(ERR_RUNTIME, "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
                c_type(self), c_type(a), c_type(b));
  static const Recorded how = {&BaddbmmBackward0, "baddbmm", 3, 6};
  return add_product(&how, self, a, b, beta, alpha);
}

/* y = beta self + alpha sum_i a_i b_i:  self' = beta g,  a_i' = alpha g b_i^T,  b_i' = alpha
 * a_i^T g. */
GRAD(AddbmmBackward0, "batch1 batch2 | alpha:scalar beta:scalar batch1_sym_argsize_0:int -:ints2 "
                      "batch1_sym_argsize_1:int batch2_sym_argsize_2:int")
{
  if (needs(n, 0)) gi[0] = scale_by(g[0], conj_factor(kept_factor(n, 1)));
  Tensor *each = t_expand(g[0], 3, (int64_t[]){n->numbers[2].i, g[0]->sizes[0], g[0]->sizes[1]});
  const Factor alpha = conj_factor(kept_factor(n, 0));
  product_vjp(n, each, gi, 1, &alpha, 3);
}

static bool check_addbmm(const Tensor *self, const Tensor *a, const Tensor *b) {
  if (tensor_size(a, 1) < 0 || tensor_size(b, 2) < 0) return false;
  if (a->ndim != 3) return fail(ERR_RUNTIME, "batch1 must be a 3D tensor"), false;
  if (b->ndim != 3) return fail(ERR_RUNTIME, "batch2 must be a 3D tensor"), false;
  if (a->sizes[0] != b->sizes[0]) {
    fail(ERR_RUNTIME, "batch1 and batch2 must have same number of batches, got %lld and %lld",
         (Shown)a->sizes[0], (Shown)b->sizes[0]);
    return false;
  }
  if (a->sizes[2] != b->sizes[1]) {
    fail(ERR_RUNTIME, "Incompatible matrix sizes for bmm (%lldx%lld and %lldx%lld)",
         (Shown)a->sizes[1], (Shown)a->sizes[2], (Shown)b->sizes[1], (Shown)b->sizes[2]);
    return false;
  }
  const Tensor *wrong = self->dtype != b->dtype ? self : a->dtype != b->dtype ? a : NULL;
  if (!wrong) return true;
  fail(ERR_RUNTIME, "%s and mat2 must have the same dtype, but got %s and %s",
       wrong == self ? "self" : "mat1", legacy(wrong), legacy(b));
  return false;
}

/* Adds the products one after the other in the same place. Without a product, multiplies self by
 * beta. */
static bool add_batches(Product *p) {
  int64_t width = dtype_bytes(p->d), count = p->a.count;
  p->a.count = p->b.count = 1;
  if (count == 0) p->a.cols = 0;
  for (int64_t i = 0; i < count || i == 0; i++) {
    if (!multiply(p)) return false;
    if (!p->c.at) return true;
    p->a.at += p->a.step * width;
    p->b.at += p->b.step * width;
    p->beta = one;
  }
  return true;
}

Tensor *t_addbmm(Tensor *self, Tensor *a, Tensor *b, Factor beta, Factor alpha) {
  OP_ENTERED(t_addbmm, "addbmm", self, a, b, beta, alpha);
  IN_FLOAT(t_addbmm(self, a, b, beta, alpha), self, a, b);
  if (blocked(a, b) || !self || !check_addbmm(self, a, b)) return NULL;
  Node *n = node_new(&AddbmmBackward0, 2, 9, self, a, b, NULL);
  num_i(n, 5, a->sizes[1]);
  num_i(n, 6, b->sizes[2]);
  if (n) keep_operands(n, a, b, 1, 3);
  keep_factors(n, alpha, beta);
  num_i(n, 2, a->sizes[0]);
  Tensor *out = tensor_empty(2, (int64_t[]){a->sizes[1], b->sizes[2]}, tensor_dtype(a));
  if (!spread(out, self, beta)) return set_history(NULL, n);
  Product p = {"addmm_impl_cpu_",
               tensor_dtype(out),
               matrices_of(a),
               matrices_of(b),
               matrices_of(out),
               alpha,
               beta};
  return set_history(add_batches(&p) ? out : NULL, n);
}

/* ------------------------------------------------------------ matmul */

/* y = x without its first dimension, of size one, which is removed in place. */
GRAD(SqueezeBackward4, "| self_sym_sizes:sizes0 dim:int")
{ gi[0] = t_unsqueeze(g[0], n->numbers[0].i); }

/* A vector times a matrix: the one row of a product. */
static Tensor *vector_matrix(Tensor *v, Tensor *m) {
  Tensor *row = t_mm(t_unsqueeze(v, 0), m);
  if (!row || row->form & FORM_HOSTED) return row ? t_squeeze_dim(row, 0) : NULL;
  Node *n = node_new(&SqueezeBackward4, 0, 1, row, NULL);
  num_i(n, 0, 0);
  Tensor *y = set_history(tensor_alias(row, 1, row->sizes + 1, row->strides + 1, row->offset), n);
  if (y) tensor_bump_version(y);
  return y;
}

/* Whether all dimensions of t but the last merge into one; `turn`: with the last two swapped. */
static bool foldable(const Tensor *t, bool turn) {
  for (int i = 0; i + 2 < t->ndim && t->numel; i++) {
    int next = turn && i + 3 == t->ndim ? i + 2 : i + 1;
    if (t->strides[i] != t->strides[next] * t->sizes[next]) return false;
  }
  return true;
}

/* PyTorch's choice between one big product and a batch of small ones: `big` has a batch, `small`
 * none. One product needs no sum over the batch for the gradient of `small`, which is worth a
 * copy of `big`. */
static bool folds(const Tensor *big, const Tensor *small, bool big_first) {
  if (big->ndim < 3 || small->ndim > 2) return false;
  if (tensor_requires_grad(small)) return true;
  return (big_first || small->ndim != 2) && foldable(big, !big_first);
}

/* The batch of `big` as rows of one matrix, times a matrix or vector. */
static Tensor *fold(Tensor *big, Tensor *small) {
  if (blocked(big, small)) return NULL;
  int64_t sizes[MAX_DIM], rows = 1;
  int n = big->ndim - 1;
  for (int i = 0; i < n; i++) rows *= sizes[i] = big->sizes[i];
  if (small->ndim == 2) sizes[n++] = small->sizes[1];
  Tensor *flat = t_reshape(big, 2, (int64_t[]){rows, big->sizes[big->ndim - 1]});
  return t_unsafe_view(matrix_product(flat, small), n, sizes);
}

/* x as one batch of matrices; x itself if it has that shape and no step would be recorded. */
static Tensor *as_batch(Tensor *x, int n, const int64_t *batch, int64_t count, int64_t rows,
                        int64_t cols) {
  if (failed()) return NULL;
  bool taped = grad_mode && recording && tensor_requires_grad(x);
  if (!taped && x->ndim == 3 && n == 1 && x->sizes[0] == count) return x;
  int64_t sizes[MAX_DIM];
  memcpy(sizes, batch, (size_t)n * sizeof *sizes);
  sizes[n] = rows;
  sizes[n + 1] = cols;
  return t_reshape(t_expand(x, n + 2, sizes), 3, (int64_t[]){count, rows, cols});
}

/* A vector on the right as a batch of columns. It is broadcast before it gets its last dimension,
 * since as a matrix it would broadcast differently. */
static Tensor *as_columns(Tensor *v, int n, const int64_t *batch, int64_t count) {
  int64_t sizes[MAX_DIM];
  memcpy(sizes, batch, (size_t)n * sizeof *sizes);
  sizes[n] = v->sizes[0];
  return t_unsqueeze(t_reshape(t_expand(v, n + 1, sizes), 2, (int64_t[]){count, v->sizes[0]}), 2);
}

static Tensor *matmul_batches(Tensor *a, Tensor *b) {
  int64_t sizes[MAX_DIM], count = 1;
  int n = a->ndim > 2 ? a->ndim - 2 : 0, nb = b->ndim > 2 ? b->ndim - 2 : 0;
  memcpy(sizes, a->sizes, (size_t)n * sizeof *sizes);
  if (!sizes_broadcast(&n, sizes, nb, b->sizes)) return NULL;
  if (n > MAX_DIM - 2)
    return fail(ERR_RUNTIME, "tensors have at most %d dimensions, but got %d", MAX_DIM, n + 2);
  for (int i = 0; i < n; i++) count *= sizes[i];
  const int64_t *ea = a->sizes + a->ndim, *eb = b->sizes + b->ndim;
  int64_t rows = a->ndim > 1 ? ea[-2] : 1, cols = b->ndim > 1 ? eb[-1] : 1;
  Tensor *left = as_batch(a, n, sizes, count, rows, ea[-1]);
  Tensor *right = b->ndim == 1 ? as_columns(b, n, sizes, count)
                               : as_batch(b, n, sizes, count, eb[-2], cols);
  Tensor *y = t_bmm(left, right);
  if (!y || (n == 1 && a->ndim > 1 && b->ndim > 1 && !y->grad_fn)) return y;
  if (a->ndim > 1) sizes[n++] = rows;
  if (b->ndim > 1) sizes[n++] = cols;
  if (b->ndim == 1) y = t_squeeze_dim(y, -1);
  return t_unsafe_view(y, n, sizes);
}

/* If one of two batches is a single matrix and its gradient is wanted, takes it without its batch
 * dimension, so that the product folds. */
static bool unbatch(Tensor **a, Tensor **b) {
  if ((*a)->ndim != 3 || (*b)->ndim != 3 || (*a)->sizes[0] == (*b)->sizes[0]) return false;
  Tensor **lone = (*a)->sizes[0] == 1 ? a : (*b)->sizes[0] == 1 ? b : NULL;
  if (!lone || !tensor_requires_grad(*lone)) return false;
  *lone = t_squeeze_dim(*lone, 0);
  return true;
}

static Tensor *matmul_large(Tensor *a, Tensor *b) {
  if (a->ndim >= b->ndim) return folds(a, b, true) ? fold(a, b) : matmul_batches(a, b);
  if (!folds(b, a, false)) return matmul_batches(a, b);
  Tensor *y = fold(t_transpose(b, -2, -1), a->ndim == 2 ? t_t(a) : a);
  return a->ndim == 2 ? t_contiguous(t_transpose(y, -2, -1)) : y;
}

Tensor *t_matmul(Tensor *a, Tensor *b) {
  OP_ENTERED(t_matmul, "matmul", a, b);
  if (blocked(a, b)) return NULL;
  if (a->ndim == 2 && b->ndim == 2) return t_mm(a, b);
  if (a->ndim == 0 || b->ndim == 0)
    return fail(ERR_RUNTIME,
                "both arguments to matmul need to be at least 1D, but they are %dD and %dD",
                a->ndim, b->ndim);
  if (a->ndim == 1 && b->ndim == 1) return t_dot(a, b);
  if (a->ndim == 2 && b->ndim == 1) return t_mv(a, b);
  if (a->ndim == 1 && b->ndim == 2) return vector_matrix(a, b);
  if (unbatch(&a, &b) && blocked(a, b)) return NULL;
  return matmul_large(a, b);
}

/* ------------------------------------------------------------ linear */

/* x w^T + bias, unrecorded: all rows of x in one product, whatever its rank. NULL without an error
 * for unusual operands; the composed form then computes or fails. */
static Tensor *linear_plain(Tensor *x, Tensor *w, Tensor *bias) {
  if (w->ndim != 2 || x->ndim < 1 || x->ndim > MAX_DIM || x->dtype != w->dtype ||
      !dtype_is_float(tensor_dtype(x)))
    return NULL;
  if (x->sizes[x->ndim - 1] != w->sizes[1] || !foldable(x, false)) return NULL;
  if (bias && (bias->ndim != 1 || bias->sizes[0] != w->sizes[0] || bias->dtype != w->dtype))
    return NULL;
  int64_t sizes[MAX_DIM];
  int last = x->ndim - 1;
  memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
  sizes[last] = w->sizes[0];
  Tensor *y = tensor_empty(x->ndim, sizes, tensor_dtype(x));
  if (!y || tensor_absent(y)) return y;
  int64_t rows = w->sizes[0] ? y->numel / w->sizes[0] : 0;
  Matrices in = {tensor_data(x),  1, 0, rows, x->sizes[last], last ? x->strides[last - 1] : 0,
                 x->strides[last]};
  Matrices out = {tensor_data(y), 1, 0, rows, sizes[last], sizes[last], 1};
  TOOK(LINEAR_PLAIN);
  if (bias) {
    Matrices from = {tensor_data(bias), 1, 0, rows, sizes[last], 0, bias->strides[0]};
    spreads[dtype_bytes(tensor_dtype(y))](&from, &out);
  }
  const Product p = {
      "addmm_impl_cpu_",   tensor_dtype(x), in, transpose_of(matrices_of(w)), out, one,
      bias ? one : nothing};
  return multiply(&p) ? y : NULL;
}

/* y = w^T. A gradient without another owner is transposed in place, so that the leaf may keep
 * it. */
GRAD(TBackward0, "")
{
  Tensor *t = g[0];
  bool own = !grad_mode && t->refs == 1 && t->ndim == 2 && !t->meta && !t->grad_fn;
  if (!own) {
    gi[0] = t_t(t);
    return;
  }
  int64_t rows = t->sizes[0], row_stride = t->strides[0];
  t->sizes[0] = t->sizes[1], t->strides[0] = t->strides[1];
  t->sizes[1] = rows, t->strides[1] = row_stride;
  gi[0] = t;
}

/* w^T as an operand that counts as no view; cheaper than t_t2. */
static Tensor *turned_weight(Tensor *w) {
  if (w->ndim != 2 || by_ops) return t_t2(w);
  Tensor *t = tensor_alias(w, 2, (int64_t[]){w->sizes[1], w->sizes[0]},
                           (int64_t[]){w->strides[1], w->strides[0]}, w->offset);
  if (!t) return NULL;
  if (saved_check_mode) tensor_share_version(t, w);
  return set_history(t, node_new(&TBackward0, 0, 0, w, NULL));
}

static bool is_recorded(Tensor *x, Tensor *w, Tensor *bias) {
  return tensor_tracked(x) || tensor_tracked(w) || (bias && tensor_tracked(bias));
}

/* Whether a bias adds to rows, not to a batch. */
static bool is_row(const Tensor *bias, const Tensor *x) {
  return bias->ndim == 1 || (x->ndim == 1 && bias->ndim == 2 && bias->sizes[0] == 1);
}

static Tensor *add_bias(Tensor *y, Tensor *bias) {
  Tensor *z = t_add(y, bias);
  if (!z || tensor_same_shape(y, z)) return z;
  return fail(ERR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s",
              shape_text(y), shape_text(z));
}

Tensor *t_linear(Tensor *x, Tensor *w, Tensor *bias) {
  OP_ENTERED(t_linear, "linear", x, w, bias);
  if (blocked(x, w)) return NULL;
  if (!is_recorded(x, w, bias)) {
    IN_FLOAT(t_linear(x, w, bias), x, w, bias);
    Tensor *y = linear_plain(x, w, bias);
    if (y && bias && x->ndim > 2) return t_view(y, y->ndim, y->sizes);
    if (y || failed()) return y;
  }
  if (x->ndim == 0 || w->ndim == 0)
    return fail(ERR_RUNTIME,
                "both arguments to linear need to be at least 1D, but they are %dD and %dD",
                x->ndim, w->ndim);
  Tensor *wt = turned_weight(w);
  if (!bias || !wt) return t_matmul(x, wt);
  if (x->ndim == 2) return t_addmm(bias, x, wt, one, one);
  if (!tensor_is_contiguous(x) || !tensor_is_contiguous(bias) || !is_row(bias, x))
    return add_bias(t_matmul(x, wt), bias);
  int64_t sizes[MAX_DIM], rows = 1;
  int last = x->ndim - 1;
  for (int i = 0; i < last; i++) rows *= sizes[i] = x->sizes[i];
  sizes[last] = w->sizes[0];
  return t_view(t_addmm(bias, t_view(x, 2, (int64_t[]){rows, x->sizes[last]}), wt, one, one),
                last + 1, sizes);
}

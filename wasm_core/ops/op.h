/* The ops as C functions, for code composed of ops: gradients and composites. Functions that only
 * rows call are declared by declare.py.
 *
 * Every function checks its arguments, computes, records itself on the tape when grad_mode is on
 * and an argument needs a gradient, and returns tensors of the temporary pool (see tensor.h).
 * With an error set, or a NULL argument where a tensor is required, it returns NULL and does
 * nothing; so calls nest freely: t_mul(g, t_sub(one, t_mul(y, y))). */
#ifndef PG_OP_H
#define PG_OP_H

#include "call/call.h"
#include "call/door.h"
#include "ops/in_float.h"
#include "tape/graph.h"

/* --- checks of every op --- */
/* Whether there is nothing to do: an error is set, or one of up to three tensors is missing. */
#define blocked(...) BLOCKED_BY(__VA_ARGS__, blocked3, blocked2, blocked1, 0)(__VA_ARGS__)
#define BLOCKED_BY(a, b, c, name, ...) name
static inline bool blocked1(const Tensor *a) { return failed() || !a; }
static inline bool blocked2(const Tensor *a, const Tensor *b) { return failed() || !a || !b; }
static inline bool blocked3(const Tensor *a, const Tensor *b, const Tensor *c) {
  return failed() || !a || !b || !c;
}
/* "Float": the name of t's type in PyTorch's messages. */
static inline const char *legacy(const Tensor *t) { return dtype_info[t->dtype].legacy; }

/* --- element-wise ops: declared from the names in their rows, so that a change of a formula does
 * not touch this header --- */
#include "elementwise_functions.h"

/* --- arithmetic with options (arithmetic.c) --- */
Tensor *t_add(Tensor *a, Tensor *b);
Tensor *t_add_scaled(Tensor *a, Tensor *b, Tensor *alpha); /* a + alpha b; NULL: 1 */
Tensor *t_sub(Tensor *a, Tensor *b);
Tensor *t_rsub(Tensor *a, Tensor *b, Tensor *alpha); /* b - alpha * a */
/* "trunc", "floor", NULL: true division */
Tensor *t_div_mode(Tensor *a, Tensor *b, const char *mode);
Tensor *t_floor_divide(Tensor *a, Tensor *b);
Tensor *t_fmod(Tensor *a, Tensor *b);
Tensor *t_remainder(Tensor *a, Tensor *b);
Tensor *t_pow(Tensor *a, Tensor *b);
Tensor *t_square(Tensor *x);
Tensor *t_clamp_min(Tensor *x, Tensor *min);
Tensor *t_clamp_max(Tensor *x, Tensor *max);
/* A copy of x clamped to a number from below. Gradients pass the bound, tangents do not. */
Tensor *t_held_above(Tensor *x, double bound);
Tensor *t_mul_f(Tensor *a, double b); /* b as a host number: never changes a floating dtype */
Tensor *t_div_f(Tensor *a, double b);
Tensor *t_add_f(Tensor *a, double b);
Tensor *t_where(Tensor *condition, Tensor *a, Tensor *b);
Tensor *t_clamp(Tensor *x, Tensor *min, Tensor *max); /* either may be NULL */
Tensor *t_masked_fill(Tensor *x, Tensor *mask, Tensor *value);
Tensor *t_lerp(Tensor *a, Tensor *b, Tensor *weight);
Tensor *t_addcmul(Tensor *a, Tensor *b, Tensor *c, Tensor *value); /* a + value b c */
Tensor *t_nan_to_num(Tensor *x, double nan, bool has_posinf, double posinf, bool has_neginf,
                     double neginf);
bool t_allclose(Tensor *a, Tensor *b, double rtol, double atol, bool equal_nan);

/* --- orthogonal polynomials (polynomials.c) --- */
typedef enum {
  CHEBYSHEV_T,
  CHEBYSHEV_U,
  CHEBYSHEV_V,
  CHEBYSHEV_W,
  HERMITE_H,
  HERMITE_HE,
  LAGUERRE_L,
  LEGENDRE_P
} Polynomial;

/* --- activations with options (activation.c) --- */
Tensor *t_log_sigmoid(Tensor *x);

/* --- the types of results (elementwise.c) --- */
/* PyTorch's promotion; NULL entries are skipped. */
DType elementwise_result_dtype(int n, Tensor *const *t);
DType elementwise_float_dtype(DType d);  /* itself if floating or complex, else the default */
DType elementwise_default_complex(void); /* the complex type of the default floating one */

/* --- copies and casts (copy.c) --- */
Tensor *t_to(Tensor *x, DType dtype); /* x itself if it has the type already */
Tensor *t_clone(Tensor *x);           /* preserves dense strides */
Tensor *t_contiguous(Tensor *x);      /* x itself if contiguous already */
/* broadcasts and casts; history if record */
Tensor *t_copy_(Tensor *dst, Tensor *src, bool record);
Tensor *t_fill_(Tensor *x, Tensor *value);
bool tensor_copy_data(Tensor *dst, Tensor *src); /* no history, no version, same shape; casts */
Tensor *t_zeros_like(Tensor *x);
Tensor *t_ones_like(Tensor *x);
Tensor *t_full_like(Tensor *x, double v);

/* --- complex numbers and their parts (complex.c) --- */
Tensor *t_conj(Tensor *x); /* a lazy view; x itself if it is real */
Tensor *t_conj_physical(Tensor *x);
Tensor *t_resolve_conj(Tensor *x); /* x itself if it is not lazy */
Tensor *t_resolve_neg(Tensor *x);
Tensor *t_neg_view(Tensor *x);
Tensor *t_real(Tensor *x); /* a view; x itself if it is real */
Tensor *t_imag(Tensor *x);
Tensor *t_view_as_real(Tensor *x);
Tensor *t_view_as_complex(Tensor *x);
Tensor *t_complex(Tensor *real, Tensor *imag);

/* --- systems (lu.c) --- */
/* Solves A X = B, or X A = B if not left, with LU and pivots of A; adjoint: with A^H for A. */
Tensor *t_linalg_lu_solve(Tensor *lu, Tensor *pivots, Tensor *b, bool left, bool adjoint);

/* --- views (view.c) --- */
Tensor *t_select(Tensor *x, int64_t dim, int64_t index);
/* INT64_MAX: to the end */
Tensor *t_slice(Tensor *x, int64_t dim, int64_t start, int64_t end, int64_t step);
Tensor *t_narrow(Tensor *x, int64_t dim, int64_t start, int64_t length);
Tensor *t_permute(Tensor *x, Ints dims);
Tensor *t_transpose(Tensor *x, int64_t d0, int64_t d1);
Tensor *t_t(Tensor *x); /* matrix transpose of the last two dims (mT); x itself below rank 2 */
Tensor *t_expand(Tensor *x, int ndim, const int64_t *sizes); /* -1 keeps a size */
/* one -1 allowed; errors if not viewable */
Tensor *t_view(Tensor *x, int ndim, const int64_t *sizes);
Tensor *t_reshape(Tensor *x, int ndim, const int64_t *sizes);
Tensor *t_view_as(Tensor *x, Tensor *like);
Tensor *t_flatten(Tensor *x, int64_t from, int64_t to);
Tensor *t_squeeze(Tensor *x, Ints dims); /* n == -1: every dim of size 1 */
Tensor *t_unsqueeze(Tensor *x, int64_t dim);
/* -1: x's */
Tensor *t_as_strided(Tensor *x, int ndim, const int64_t *sizes, const int64_t *strides,
                     int64_t offset);
Tensor *t_diagonal(Tensor *x, int64_t offset, int64_t d0, int64_t d1);
/* Zeros laid out like a base, with g added at the view of the base that has this geometry. */
Tensor *t_spread_strided(Tensor *g, Ints sizes, Ints strides, int64_t offset, Ints base_sizes,
                         Ints base_strides);

/* --- sums, products, truth (sums.c); dims.n == -1 or 0: all --- */
#define ALL_DIMS ((Ints){-1, 0})
#define ONE_DIM(d) ((Ints){1, (const int64_t[]){d}})
/* The dims of a row's argument; absent dims become an empty list. */
static inline Ints listed_dims(Ints d) { return d.n < 0 ? (Ints){0, 0} : d; }
Tensor *t_sum(Tensor *x, Ints dims, bool keepdim, DType dtype);
Tensor *t_sum_all(Tensor *x);
Tensor *t_sum_to(Tensor *x, int ndim, const int64_t *sizes); /* undoes a broadcast */
Tensor *t_mean(Tensor *x, Ints dims, bool keepdim, DType dtype);
Tensor *t_prod(Tensor *x, DType dtype);
Tensor *t_prod_dim(Tensor *x, int64_t dim, bool keepdim, DType dtype);
Tensor *t_any(Tensor *x, Ints dims, bool keepdim); /* dims.n == 0 reduces none */
Tensor *t_all(Tensor *x, Ints dims, bool keepdim);
Tensor *t_count_nonzero(Tensor *x, Ints dims);

/* --- extrema (extrema.c) --- */
Tensor *t_amax(Tensor *x, Ints dims, bool keepdim);
Tensor *t_amin(Tensor *x, Ints dims, bool keepdim);
/* dim NULL: all; min, max */
void t_aminmax(Tensor *x, const int64_t *dim, bool keepdim, Tensor *out[2]);
Tensor *t_max(Tensor *x);
Tensor *t_min(Tensor *x);
void t_max_dim(Tensor *x, int64_t dim, bool keepdim, Tensor *out[2]); /* values, indices */
/* dim NULL: of the flattened tensor */
Tensor *t_argmax(Tensor *x, const int64_t *dim, bool keepdim);
Tensor *t_argmin(Tensor *x, const int64_t *dim, bool keepdim);

/* --- running sums, products and extrema (scan.c) --- */
Tensor *t_cumsum(Tensor *x, int64_t dim, DType dtype);
Tensor *t_cumprod(Tensor *x, int64_t dim, DType dtype);
void t_cummax(Tensor *x, int64_t dim, Tensor *out[2]); /* values, indices */

/* --- softmax (softmax.c) --- */
Tensor *t_logsumexp(Tensor *x, Ints dims, bool keepdim);
Tensor *t_softmax(Tensor *x, int64_t dim, DType dtype);
Tensor *t_log_softmax(Tensor *x, int64_t dim, DType dtype);

/* --- statistics (statistics.c) --- */
typedef enum { SPREAD_VAR, SPREAD_STD, SPREAD_VAR_MEAN, SPREAD_STD_MEAN } SpreadKind;
/* out: the variance or its root, and the mean */
void t_spread(SpreadKind kind, Tensor *x, Ints dims, double correction, bool keepdim,
              Tensor *out[2]);
Tensor *t_diff(Tensor *x, int64_t order, int64_t dim, Tensor *prepend, Tensor *append);

/* --- slopes (slopes.c) --- */
/* The distances of neighbours: one number for all dimensions, a number for each, or the coordinates
 * of each. A list that is not given has n == -1. */
typedef struct {
  double all;
  Floats each;
  Tensors places;
} Spacing;
#define SPACED_BY(number) (&(Spacing){number, {-1, NULL}, {-1, NULL}})
#define SPACED_EACH(numbers) (&(Spacing){1, numbers, {-1, NULL}})
#define SPACED_AT(tensors) (&(Spacing){1, {-1, NULL}, tensors})

/* --- norms (vector_norm.c) --- */
Tensor *t_vector_norm(Tensor *x, double p, Ints dims, bool keepdim, DType dtype);
Tensor *norm_gradient(Tensor *g, Tensor *x, Tensor *y, double p, Ints dims); /* NULL: zeros */
/* The tangent of a - b from those of a and b. One of them may be NULL, for zero. */
Tensor *norm_difference_tangent(Tensor *of_a, Tensor *of_b);

/* --- order (sort.c) --- */
void t_sort(Tensor *x, int64_t dim, bool descending, Tensor *out[2]); /* values, indices; stable */
void t_sort_stable(Tensor *x, int64_t dim, bool descending, Tensor *out[2]);
void t_median_dim(Tensor *x, int64_t dim, bool keepdim, bool skip_nan, Tensor *out[2]);

/* --- search, counts, quantiles (search.c) --- */
/* values, inverse, counts; or consecutive */
void t_unique(Tensor *x, bool sorted, const int64_t *along, Tensor *out[3]);
Tensor *t_searchsorted(Tensor *edges, Tensor *values, bool int32, bool right, const char *side,
                       Tensor *sorter);

/* --- histograms (histogram.c) --- */
/* The bins of one dimension: their edges, or how many there are. */
typedef struct {
  Tensor *edges;
  int64_t count;
} Bins;

/* --- matrix products (matmul.c) --- */
Tensor *t_mm(Tensor *a, Tensor *b);
Tensor *t_bmm(Tensor *a, Tensor *b);
Tensor *t_matmul(Tensor *a, Tensor *b);
Tensor *t_linear(Tensor *x, Tensor *w, Tensor *bias); /* bias may be NULL */
Tensor *t_addmm(Tensor *self, Tensor *a, Tensor *b, Factor beta, Factor alpha);
Tensor *t_mv(Tensor *a, Tensor *v);
Tensor *t_dot(Tensor *a, Tensor *b);
Tensor *t_vdot(Tensor *a, Tensor *b);
Factor arg_factor(const Call *c, int k);

/* --- made of matrix products (products.c) --- */
Tensor *t_outer(Tensor *a, Tensor *b);

/* --- distances (distance.c) --- */
Tensor *t_pairwise_distance(Tensor *a, Tensor *b, double p, double eps, bool keepdim);

/* --- places along a dim (index_dim.c) --- */
Tensor *t_index_select(Tensor *x, int64_t dim, Tensor *index);
Tensor *t_index_add(Tensor *x, int64_t dim, Tensor *index, Tensor *source, double alpha);
Tensor *t_gather(Tensor *x, int64_t dim, Tensor *index);
Tensor *t_scatter(Tensor *x, int64_t dim, Tensor *index, Tensor *src);
Tensor *t_scatter_add(Tensor *x, int64_t dim, Tensor *index, Tensor *src);
Tensor *t_scatter_reduce(Tensor *x, int64_t dim, Tensor *index, Tensor *src, const char *reduce,
                         bool include_self);
/* src a tensor, or a wrapped number; reduce NULL, "add" or "multiply" */
Tensor *t_scatter_with(Tensor *x, int64_t dim, Tensor *index, Tensor *src, const char *reduce);

/* --- places of many dims (index.c) --- */
Tensor *t_index(Tensor *x, Tensors indices); /* NULL: a whole dim; masks allowed */
Tensor *t_index_put(Tensor *x, Tensors indices, Tensor *value, bool accumulate);
Tensor *t_index_put_(Tensor *x, Tensors indices, Tensor *value, bool accumulate);
Tensor *t_nonzero(Tensor *x);
Tensor *t_masked_select(Tensor *x, Tensor *mask);
Tensor *t_masked_scatter(Tensor *x, Tensor *mask, Tensor *source);

/* --- subscripts (index_subscript.c) --- */
Tensor *t_getitem(Tensor *x, Ints index); /* index: see index_subscript.c */
Ints arg_index(const Call *c, int k);     /* the words of an Index argument */

/* --- embeddings (embedding.c) --- */
/* `sparse`: the gradient is */
Tensor *t_embedding(Tensor *weight, Tensor *indices, int64_t padding_idx, bool scale_grad_by_freq,
                    bool sparse);

/* --- factors of matrices (qr_svd.c) --- */
void t_linalg_svd(Tensor *a, bool full, const char *driver, Tensor *out[3]); /* U, S, Vh */

/* --- layouts (structure.c) --- */
bool layout_named(const char *name, Layout *found); /* fails if there is none */

/* --- sparse tensors, and conversions of layouts (convert.c) --- */
Tensor *t_coalesce(Tensor *x);
Tensor *t_sparse_mask(Tensor *x, Tensor *mask);
/* A strided y as a COO tensor if x is one; else y. */
Tensor *t_laid_out_like(Tensor *y, const Tensor *x);
Tensor *t_to_dense(Tensor *x, DType dtype, bool masked); /* x itself if it is dense */
Tensor *t_sparse_filled(Tensor *x);   /* x with every element stored, zeros included */
Tensor *t_sparse_elements(Tensor *x); /* the place of each value among x's elements */
/* `block` and `dense` are optional: n or dense is -1 then. op: for messages. */
Tensor *t_to_layout(Tensor *x, Layout layout, Ints block, int64_t dense, const char *op);
/* --- sparse tensors of indices and values (make.c) --- */
/* A COO tensor with a column of `indices` and a row of `values` for each element. */
Tensor *t_sparse_coo(Tensor *indices, Tensor *values, int ndim, const int64_t *sizes,
                     bool coalesced);
/* --- sparse zeros (results.c) --- */
Tensor *t_sparse_zeros_like(Tensor *x, DType dtype);
Tensor *t_sparse_zeros(int ndim, const int64_t *sizes, Layout layout, DType dtype);
/* --- repeated elements of sparse tensors (parts.c) --- */
Tensor *t_sparse_broadcast_to(Tensor *x, Ints size);

/* --- padding (pad.c) --- */
Tensor *t_constant_pad(Tensor *x, Ints pad, Tensor *value);

/* --- joining (join.c) --- */
Tensor *t_cat(Tensors ts, int64_t dim);
Tensor *t_stack(Tensors ts, int64_t dim);

/* --- elements elsewhere (rearrange.c) --- */
Tensor *t_flip(Tensor *x, Ints dims);
Tensor *t_repeat(Tensor *x, Ints repeats);
Tensor *t_roll(Tensor *x, Ints shifts, Ints dims);

#endif

/* The ops as C functions, for code composed of ops: gradients, composites, rows.
 *
 * Every function checks its arguments, computes, records itself on the tape when grad_mode is on
 * and an argument needs a gradient, and returns tensors of the temporary pool (see tensor.h).
 * With an error set, or a NULL argument where a tensor is required, it returns NULL and does
 * nothing; so calls nest freely: t_mul(g, t_sub(one, t_mul(y, y))). */
#ifndef PG_OP_H
#define PG_OP_H

#include "call/call.h"
#include "call/door.h"
#include "tape/graph.h"

/* --- for the checks of any op --- */
/* Whether nothing is to be done: an error is set, or one of up to three tensors is missing. */
#define blocked(...) BLOCKED_BY(__VA_ARGS__, blocked3, blocked2, blocked1, 0)(__VA_ARGS__)
#define BLOCKED_BY(a, b, c, name, ...) name
static inline bool blocked1(const Tensor *a) { return failed() || !a; }
static inline bool blocked2(const Tensor *a, const Tensor *b) { return failed() || !a || !b; }
static inline bool blocked3(const Tensor *a, const Tensor *b, const Tensor *c) {
  return failed() || !a || !b || !c;
}
/* "Float": what PyTorch's messages call the type of t. */
static inline const char *legacy(const Tensor *t) { return dtype_info[t->dtype].legacy; }

/* --- element-wise ops: made of the names in their rows, so that a change of a formula is none of
 * this header's --- */
#include "elementwise_functions.h"

/* --- arithmetic with options (arithmetic.c) --- */
Tensor *t_add_scaled(Tensor *a, Tensor *b, Tensor *alpha); /* a + alpha * b; alpha NULL: 1 */
Tensor *t_sub_scaled(Tensor *a, Tensor *b, Tensor *alpha);
Tensor *t_add(Tensor *a, Tensor *b);
Tensor *t_sub(Tensor *a, Tensor *b);
Tensor *t_rsub(Tensor *a, Tensor *b, Tensor *alpha); /* b - alpha * a */
/* "trunc", "floor", NULL: true division */
Tensor *t_div_mode(Tensor *a, Tensor *b, const char *mode);
Tensor *t_fmod(Tensor *a, Tensor *b);
Tensor *t_remainder(Tensor *a, Tensor *b);
Tensor *t_floor_divide(Tensor *a, Tensor *b);
Tensor *t_pow(Tensor *a, Tensor *b);
Tensor *t_square(Tensor *x);
Tensor *t_float_power(Tensor *a, Tensor *b, bool inplace);
Tensor *t_remainder_of_number(Tensor *a, Tensor *b); /* no gradient, as in PyTorch */
Tensor *t_clamp_min(Tensor *x, Tensor *min);
Tensor *t_clamp_max(Tensor *x, Tensor *max);
Tensor *t_mul_f(Tensor *a, double b); /* b as a host number: never changes a floating dtype */
Tensor *t_div_f(Tensor *a, double b);
Tensor *t_add_f(Tensor *a, double b);
Tensor *t_where(Tensor *condition, Tensor *a, Tensor *b);
Tensor *t_clamp(Tensor *x, Tensor *min, Tensor *max); /* either may be NULL */
Tensor *t_masked_fill(Tensor *x, Tensor *mask, Tensor *value);
Tensor *t_lerp(Tensor *a, Tensor *b, Tensor *weight);
Tensor *t_addcmul(Tensor *a, Tensor *b, Tensor *c, Tensor *value); /* a + value * b * c */
Tensor *t_addcdiv(Tensor *a, Tensor *b, Tensor *c, Tensor *value);
Tensor *t_ldexp(Tensor *x, Tensor *other);
Tensor *t_heaviside(Tensor *x, Tensor *values);
Tensor *t_round(Tensor *x, int64_t decimals);
void t_frexp(Tensor *x, Tensor **y); /* mantissa and exponent */
Tensor *t_bitwise_not(Tensor *x);
Tensor *t_positive(Tensor *x);
Tensor *t_logit(Tensor *x, bool bounded_, double eps);
Tensor *t_polygamma(int64_t order, Tensor *x);
Tensor *t_mvlgamma(Tensor *x, int64_t p);
Tensor *t_nan_to_num(Tensor *x, double nan, bool has_posinf, double posinf, bool has_neginf,
                     double neginf);
Tensor *t_isclose(Tensor *a, Tensor *b, double rtol, double atol, bool equal_nan);
bool t_allclose(Tensor *a, Tensor *b, double rtol, double atol, bool equal_nan);
bool t_equal(Tensor *a, Tensor *b);

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
/* shifted: of 2 x - 1 */
Tensor *t_polynomial(Polynomial which, bool shifted, Tensor *x, Tensor *degree);

/* --- Bessel functions (bessel.c) --- */
Tensor *t_modified_bessel_i(int order, Tensor *x);
Tensor *t_modified_bessel_k(int order, bool scaled, Tensor *x); /* scaled: by exp(x) */
Tensor *t_spherical_bessel_j0(Tensor *x);

/* --- activations with options (activation.c) --- */
Tensor *t_gelu(Tensor *x, const char *approximate); /* "none" or "tanh" */
Tensor *t_selu(Tensor *x);
Tensor *t_celu_checked(Tensor *x, double alpha);
Tensor *t_hardtanh_checked(Tensor *x, double min, double max);
Tensor *t_softshrink_checked(Tensor *x, double lambda);
Tensor *t_softsign(Tensor *x);
Tensor *t_tanhshrink(Tensor *x);
Tensor *t_log_sigmoid(Tensor *x);
Tensor *t_rrelu(Tensor *x, double lower, double upper, bool training);
Tensor *t_prelu(Tensor *x, Tensor *weight);
Tensor *t_glu(Tensor *x, int64_t dim);

/* --- the types of results (elementwise.c) --- */
DType result_dtype(int n, Tensor *const *t); /* PyTorch's promotion; NULL entries are skipped */
DType float_dtype(DType d);                  /* itself if floating, else the default */

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
Tensor *t_unfold(Tensor *x, int64_t dim, int64_t size, int64_t step);
/* Zeros laid out like a base, and g added where the base's view of this geometry lies. */
Tensor *t_spread_strided(Tensor *g, Ints sizes, Ints strides, int64_t offset, Ints base_sizes,
                         Ints base_strides);

/* --- copies of views, and parts that are no views (view_copy.c) --- */
Tensor *t_view_copy(Tensor *view); /* its elements in order, in memory of their own */
void ret_view_copies(Call *c);     /* of the views that are the call's result */
void ret_apart(Call *c); /* the views that are its result get histories and versions of their own */

/* --- sums, products, truth (sums.c); dims.n == -1 or 0: all --- */
#define ALL_DIMS ((Ints){-1, 0})
#define ONE_DIM(d) ((Ints){1, (const int64_t[]){d}})
/* As from a row with dims, given or not. */
static inline Ints listed_dims(Ints d) { return d.n < 0 ? (Ints){0, 0} : d; }
Tensor *t_sum(Tensor *x, Ints dims, bool keepdim, DType dtype);
Tensor *t_sum_all(Tensor *x);
Tensor *t_sum_to(Tensor *x, int ndim, const int64_t *sizes); /* undoes a broadcast */
Tensor *t_nansum(Tensor *x, Ints dims, bool keepdim, DType dtype);
Tensor *t_nanmean(Tensor *x, Ints dims, bool keepdim, DType dtype);
Tensor *t_mean(Tensor *x, Ints dims, bool keepdim, DType dtype);
Tensor *t_sum_to_size(Tensor *x, Ints size);
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
void t_min_dim(Tensor *x, int64_t dim, bool keepdim, Tensor *out[2]);
/* dim NULL: of the flattened tensor */
Tensor *t_argmax(Tensor *x, const int64_t *dim, bool keepdim);
Tensor *t_argmin(Tensor *x, const int64_t *dim, bool keepdim);

/* --- running sums, products and extrema (scan.c) --- */
Tensor *t_cumsum(Tensor *x, int64_t dim, DType dtype);
Tensor *t_cumprod(Tensor *x, int64_t dim, DType dtype);
void t_cummax(Tensor *x, int64_t dim, Tensor *out[2]); /* values, indices */
void t_cummin(Tensor *x, int64_t dim, Tensor *out[2]);
Tensor *t_logcumsumexp(Tensor *x, int64_t dim);

/* --- softmax (softmax.c) --- */
Tensor *t_logsumexp(Tensor *x, Ints dims, bool keepdim);
Tensor *t_softmax(Tensor *x, int64_t dim, DType dtype);
Tensor *t_log_softmax(Tensor *x, int64_t dim, DType dtype);
/* dim NULL: the old default, with a warning */
int64_t softmax_dim(const Tensor *x, const int64_t *dim, const char *name);

/* --- statistics (statistics.c) --- */
typedef enum { SPREAD_VAR, SPREAD_STD, SPREAD_VAR_MEAN, SPREAD_STD_MEAN } SpreadKind;
/* and the mean */
void t_spread(SpreadKind kind, Tensor *x, Ints dims, double correction, bool keepdim,
              Tensor *out[2]);
Tensor *t_cov(Tensor *x, double correction, Tensor *fweights, Tensor *aweights);
Tensor *t_corrcoef(Tensor *x);
Tensor *t_diff(Tensor *x, int64_t order, int64_t dim, Tensor *prepend, Tensor *append);
Tensor *t_trapezoid(Tensor *y, Tensor *x, double dx, int64_t dim); /* x may be NULL */
Tensor *t_cumulative_trapezoid(Tensor *y, Tensor *x, double dx, int64_t dim);

/* --- slopes (slopes.c) --- */
/* How far neighbours are apart: one number for all dimensions, a number for each, or the
 * coordinates of each. A list that is not given has n == -1. */
typedef struct {
  double all;
  Floats each;
  Tensors places;
} Spacing;
#define SPACED_BY(number) (&(Spacing){number, {-1, NULL}, {-1, NULL}})
#define SPACED_EACH(numbers) (&(Spacing){1, numbers, {-1, NULL}})
#define SPACED_AT(tensors) (&(Spacing){1, {-1, NULL}, tensors})
/* dims.n == -1: all */
void op_gradient(Call *c, Tensor *x, const Spacing *spacing, Ints dims, int64_t edge_order);

/* --- norms (vector_norm.c) --- */
Tensor *t_vector_norm(Tensor *x, double p, Ints dims, bool keepdim, DType dtype);
Tensor *norm_gradient(Tensor *g, Tensor *x, Tensor *y, double p, Ints dims); /* NULL: zeros */
Tensor *t_norm_named(Tensor *x, const char *p, Ints dims, bool keepdim, DType dtype); /* "fro" */
Tensor *t_dist(Tensor *a, Tensor *b, double p);
Tensor *t_normalize(Tensor *x, double p, Ints dims, double eps);
Tensor *t_renorm(Tensor *x, double p, int64_t dim, Tensor *most); /* most: a wrapped number */

/* --- order (sort.c) --- */
void t_sort(Tensor *x, int64_t dim, bool descending, Tensor *out[2]); /* values, indices; stable */
void t_sort_stable(Tensor *x, int64_t dim, bool descending, Tensor *out[2]);
Tensor *t_argsort(Tensor *x, int64_t dim, bool descending);
Tensor *t_msort(Tensor *x);
void t_topk(Tensor *x, int64_t k, int64_t dim, bool largest, Tensor *out[2]); /* in order */
void t_kthvalue(Tensor *x, int64_t k, int64_t dim, bool keepdim, Tensor *out[2]);
void t_mode(Tensor *x, int64_t dim, bool keepdim, Tensor *out[2]);
Tensor *t_median(Tensor *x, bool skip_nan);
void t_median_dim(Tensor *x, int64_t dim, bool keepdim, bool skip_nan, Tensor *out[2]);

/* --- search, counts, quantiles (search.c) --- */
/* values, inverse, counts; or consecutive */
void t_unique(Tensor *x, bool sorted, const int64_t *along, Tensor *out[3]);
Tensor *t_searchsorted(Tensor *edges, Tensor *values, bool int32, bool right, const char *side,
                       Tensor *sorter);
Tensor *t_bucketize(Tensor *values, Tensor *edges, bool int32, bool right);
Tensor *t_bincount(Tensor *x, Tensor *weights, int64_t least);
Tensor *t_histc(Tensor *x, int64_t bins, double low, double high);
Tensor *t_quantile(Tensor *x, Tensor *q, const int64_t *dim, bool keepdim,
                   const char *interpolation, bool skip_nan);
void ret_unique(Call *c, bool inverse, bool counts, Tensor *r[3]);

/* --- histograms (histogram.c) --- */
/* The bins of one dimension: their edges, or how many there are. */
typedef struct {
  Tensor *edges;
  int64_t count;
} Bins;
void op_histogram(Call *c, Tensor *x, Bins bins, Floats range, Tensor *weight, bool density);
/* As many bins in each dimension, as many as are listed, or with the edges that are listed. */
void op_histogramdd(Call *c, Tensor *x, int64_t bins, Floats range, Tensor *weight, bool density);
void op_histogramdd_of(Call *c, Tensor *x, Ints bins, Floats range, Tensor *weight, bool density);
void op_histogramdd_at(Call *c, Tensor *x, Tensors bins, Floats range, Tensor *weight,
                       bool density);

/* --- matrix products (matmul.c) --- */
Tensor *t_mm(Tensor *a, Tensor *b);
Tensor *t_bmm(Tensor *a, Tensor *b);
Tensor *t_matmul(Tensor *a, Tensor *b);
Tensor *t_linear(Tensor *x, Tensor *w, Tensor *bias); /* bias may be NULL */
Tensor *t_mv(Tensor *a, Tensor *v);
Tensor *t_dot(Tensor *a, Tensor *b);
Tensor *t_vdot(Tensor *a, Tensor *b);
/* A host number that scales a product: for floating types, and for integer ones. */
typedef struct {
  double f;
  int64_t i;
} Factor;
Factor arg_factor(const Call *c, int k);
/* beta self + alpha a b */
Tensor *t_addmm(Tensor *self, Tensor *a, Tensor *b, Factor beta, Factor alpha);
Tensor *t_addmv(Tensor *self, Tensor *mat, Tensor *vec, Factor beta, Factor alpha);
Tensor *t_baddbmm(Tensor *self, Tensor *a, Tensor *b, Factor beta, Factor alpha);
Tensor *t_addbmm(Tensor *self, Tensor *a, Tensor *b, Factor beta, Factor alpha);

/* --- made of matrix products (products.c) --- */
Tensor *t_kron(Tensor *a, Tensor *b);
Tensor *t_outer(Tensor *a, Tensor *b);
/* wrapped numbers */
Tensor *t_addr(Tensor *self, Tensor *a, Tensor *b, Tensor *beta, Tensor *alpha);
Tensor *t_inner(Tensor *a, Tensor *b);
Tensor *t_vecdot(Tensor *a, Tensor *b, int64_t dim);
Tensor *t_tensordot(Tensor *a, Tensor *b, Ints dims_a, Ints dims_b);
/* the last dims of a, the first of b */
Tensor *t_tensordot_count(Tensor *a, Tensor *b, int64_t count);
Tensor *t_multi_dot(Tensors ts);
Tensor *t_chain_matmul(Tensors ts);
Tensor *t_matrix_power(Tensor *x, int64_t n);
Tensor *t_bilinear(Tensor *a, Tensor *b, Tensor *w, Tensor *bias); /* bias may be NULL */
Tensor *t_linalg_cross(Tensor *a, Tensor *b, int64_t dim);
Tensor *t_cross(Tensor *a, Tensor *b, const int64_t *dim); /* dim NULL: the first of size three */

/* --- sums over named dims (einsum.c) --- */
Tensor *t_einsum(const char *equation, Tensors ts);

/* --- distances (distance.c) --- */
Tensor *t_cdist(Tensor *a, Tensor *b, double p, const char *mode);
Tensor *t_pdist(Tensor *x, double p);
Tensor *t_pairwise_distance(Tensor *a, Tensor *b, double p, double eps, bool keepdim);
Tensor *t_cosine_similarity(Tensor *a, Tensor *b, int64_t dim, double eps);

/* --- steps of optimizers (optim.c) --- */
void op_fused_sgd(Call *c);
void op_fused_adam(Call *c, bool decoupled);
void op_zero_grads(Call *c);
Tensor *op_grad_norm(Tensors ts, double p, bool finite);
Tensor *op_clip_grads(Tensors params, double max_norm, double p, bool finite, Tensor *total);

/* --- places along a dim (index_dim.c) --- */
Tensor *t_index_select(Tensor *x, int64_t dim, Tensor *index);
Tensor *t_index_add(Tensor *x, int64_t dim, Tensor *index, Tensor *source, double alpha);
Tensor *t_gather(Tensor *x, int64_t dim, Tensor *index);
Tensor *t_scatter(Tensor *x, int64_t dim, Tensor *index, Tensor *src);
Tensor *t_scatter_add(Tensor *x, int64_t dim, Tensor *index, Tensor *src);
Tensor *t_index_copy(Tensor *x, int64_t dim, Tensor *index, Tensor *source);
Tensor *t_index_fill(Tensor *x, int64_t dim, Tensor *index, Tensor *value);
Tensor *t_index_reduce(Tensor *x, int64_t dim, Tensor *index, Tensor *source, const char *reduce,
                       bool include_self);
Tensor *t_scatter_reduce(Tensor *x, int64_t dim, Tensor *index, Tensor *src, const char *reduce,
                         bool include_self);
/* src a tensor, or a wrapped number; reduce NULL, "add" or "multiply" */
Tensor *t_scatter_with(Tensor *x, int64_t dim, Tensor *index, Tensor *src, const char *reduce);

/* --- places of many dims (index.c) --- */
Tensor *t_index(Tensor *x, Tensors indices); /* NULL: a whole dim; masks allowed */
Tensor *t_index_put(Tensor *x, Tensors indices, Tensor *value, bool accumulate);
Tensor *t_index_put_(Tensor *x, Tensors indices, Tensor *value, bool accumulate);
Tensor *t_nonzero(Tensor *x);
Tensor *t_nonzero_static(Tensor *x, int64_t size, int64_t fill);
void t_nonzero_tuple(Tensor *x, int *n, Tensor **columns);
Tensor *t_masked_select(Tensor *x, Tensor *mask);
Tensor *t_masked_scatter(Tensor *x, Tensor *mask, Tensor *source);

/* --- subscripts (index_subscript.c) --- */
Tensor *t_getitem(Tensor *x, Ints index); /* index: see index_subscript.c */
bool t_setitem(Tensor *x, Ints index, Tensor *value);
Ints arg_index(const Call *c, int k); /* the words of an Index argument */

/* --- places in the flattened tensor (index_flat.c) --- */
Tensor *t_take(Tensor *x, Tensor *index);
Tensor *t_put(Tensor *x, Tensor *index, Tensor *source, bool accumulate);
/* flat: over all of x */
Tensor *t_take_along_dim(Tensor *x, Tensor *index, int64_t dim, bool flat);
void t_unravel_index(Tensor *indices, Ints shape, Tensor **columns);
Tensor *t_one_hot(Tensor *x, int64_t classes);
Tensor *t_isin(Tensor *elements, Tensor *tests, bool invert);

/* --- writing through views (view_scatter.c) --- */
Tensor *t_select_scatter(Tensor *x, Tensor *src, int64_t dim, int64_t index);
Tensor *t_slice_scatter(Tensor *x, Tensor *src, int64_t dim, int64_t start, int64_t end,
                        int64_t step);
Tensor *t_diagonal_scatter(Tensor *x, Tensor *src, int64_t offset, int64_t d0, int64_t d1);
Tensor *t_as_strided_scatter(Tensor *x, Tensor *src, Ints sizes, Ints strides, int64_t offset);

/* --- embeddings (embedding.c) --- */
Tensor *t_embedding(Tensor *weight, Tensor *indices, int64_t padding_idx, bool scale_grad_by_freq);
Tensor *t_embedding_renorm_(Tensor *weight, Tensor *indices, double max_norm, double norm_type);
void op_embedding(Call *c);          /* nn.functional.embedding */
Tensor *op_embedding_plain(Call *c); /* torch.embedding */
void op_embedding_bag(Call *c);

/* --- factors of matrices (qr_svd.c) --- */
void t_linalg_svd(Tensor *a, bool full, const char *driver, Tensor *out[3]); /* U, S, Vh */

/* --- joining (join.c) --- */
Tensor *t_cat(Tensors ts, int64_t dim);
Tensor *t_stack(Tensors ts, int64_t dim);

/* --- elements elsewhere (rearrange.c) --- */
Tensor *t_flip(Tensor *x, Ints dims);

#endif

/* Rows of a table by number: embedding, and embedding_bag, which reduces the rows of each bag.
 *
 * The gradient of the table is dense, and summed in the order of the indices; or it is sparse with
 * a row for each index. Row padding_idx gets none. */
#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/poll.h"
#include "index_rows.h"
#include "kernels/simd.h"
#include "ops/index/index.h"
#include "ops/view/copy.h"
#include "ops/view/view.h"
#include "tape/forward.h"
#include "tensor/iter.h"

#define NUM(k) (n->numbers[k].i)

/* ------------------------------------------------------------ embedding */

static bool indices_fit(const Tensor *indices, const char *op) {
  if (index_dtype(indices)) return true;
  fail(ERR_RUNTIME,
       "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
       "Int; but got torch.%sTensor instead (while checking arguments for %s)",
       legacy(indices), op);
  return false;
}

/* The indices as contiguous int64 numbers; not to be read if the indices are absent. */
static const int64_t *index_numbers(Tensor *indices) {
  Tensor *t = WITHOUT_GRAD(tensor_settled(t_contiguous(t_to(indices, DT_I64))));
  return t ? (const int64_t *)(const void *)tensor_data(t) : NULL;
}

static bool are_within_rows(const int64_t *v, int64_t n, int64_t rows) {
  for (int64_t i = 0; i < n; i++)
    if (v[i] < 0 || v[i] >= rows) return REFUSE(ERR_INDEX, "index out of range in self");
  return true;
}

/* Like index_numbers, with each index checked to be below `rows`; NULL with the error. */
static const int64_t *row_numbers(Tensor *indices, int64_t rows) {
  const int64_t *v = index_numbers(indices);
  if (tensor_absent(indices)) return v;
  return v && are_within_rows(v, indices->numel, rows) ? v : NULL;
}

/* How often each of `rows` numbers occurs; NULL without memory. */
static int64_t *count_rows(const int64_t *v, int64_t n, int64_t rows) {
  int64_t *counts = scratch_array(rows, sizeof *counts);
  if (!counts) return NULL;
  memset(counts, 0, (size_t)rows * sizeof *counts);
  for (int64_t i = 0; i < n; i++) counts[v[i]]++;
  return counts;
}

/* The factor for the gradient of each looked-up row: 0 for the padding, 1 / frequency if asked for.
 * NULL if all are 1. Has the shape of the indices and a last dimension of one. */
static Tensor *row_factors(Tensor *indices, int64_t rows, int64_t padding, bool by_frequency,
                           DType d) {
  if (tensor_absent(indices)) return NULL;
  const int64_t *v = row_numbers(indices, rows);
  bool padded = false;
  for (int64_t i = 0; v && i < indices->numel; i++) padded = padded || v[i] == padding;
  if (!v || (!by_frequency && !padded)) return NULL;
  int64_t sizes[MAX_DIM + 1], *counts = by_frequency ? count_rows(v, indices->numel, rows) : NULL;
  memcpy(sizes, indices->sizes, (size_t)indices->ndim * sizeof *sizes);
  sizes[indices->ndim] = 1;
  Tensor *f = tensor_empty(indices->ndim + 1, sizes, d);
  for (int64_t i = 0; f && i < f->numel; i++)
    tensor_set_f(f, i, v[i] == padding ? 0 : counts ? 1.0 / (double)counts[v[i]] : 1);
  return f;
}

typedef struct {
  Tensor *indices;
  int64_t rows, padding;
  bool by_frequency, sparse;
} Table;

static Tensor *embedding_dense_backward(Tensor *g, Table t);

/* A row of g for each index but the padding's. */
static Tensor *embedding_sparse_backward(Tensor *g, Table t) {
  if (t.by_frequency)
    return fail(ERR_RUNTIME,
                "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
  if (blocked(g, t.indices)) return NULL;
  int64_t width = g->sizes[g->ndim - 1], count = t.indices->numel;
  Tensor *rows = t_reshape(g, 2, (int64_t[]){count, width}),
         *at = t_reshape(t_to(t.indices, DT_I64), 1, &count);
  if (at && t.padding != -1) {
    Tensor *kept = t_nonzero(t_ne(at, tensor_wrapped_i(t.padding)));
    kept = kept ? t_reshape(kept, 1, &kept->sizes[0]) : NULL;
    at = t_index_select(at, 0, kept);
    rows = t_index_select(rows, 0, kept);
  }
  return at ? t_sparse_coo(t_unsqueeze(at, 0), rows, 2, (int64_t[]){t.rows, width}, false) : NULL;
}

static Tensor *table_gradient(Tensor *g, Table t) {
  return t.sparse ? embedding_sparse_backward(g, t) : embedding_dense_backward(g, t);
}

static void save_table(Node *n, Table t) {
  save(n, 0, t.indices);
  num_i(n, 0, t.rows);
  num_i(n, 1, t.padding);
  num_i(n, 2, t.by_frequency);
  num_i(n, n ? n->n_numbers - 1 : 0, t.sparse);
}
static Table saved_table(Node *n) {
  return (Table){saved_tensor(n, 0), NUM(0), NUM(1), NUM(2), NUM(n->n_numbers - 1)};
}

#define TABLE_FIELDS \
  "indices | weight_sym_argsize_0:int padding_idx:int scale_grad_by_freq:bool sparse:bool"
/* dweight = 0, then dweight[index] += factor * g for each index in order. A tangent takes no
 * factors. */
GRAD_AND_TANGENT(EmbeddingBackward0, TABLE_FIELDS) { gi[0] = table_gradient(g[0], saved_table(n)); }
TANGENT(EmbeddingBackward0) { return t_embedding(t[0], saved_tensor(n, 0), -1, false, false); }

/* The dense gradient is linear in g: its gradient looks up the rows to which g was added. */
GRAD(EmbeddingDenseBackwardBackward0, TABLE_FIELDS)
{
  Table t = saved_table(n);
  if (blocked(g[0], t.indices)) return;
  Tensor *factors = row_factors(t.indices, t.rows, t.padding, t.by_frequency, tensor_dtype(g[0]));
  gi[0] = t_embedding(g[0], t.indices, -1, false, false);
  if (factors) gi[0] = t_mul(gi[0], factors);
}

/* Vectors by hand: a compiler that saves size would do the rest of a loop element by element, under
 * masks. */
static void add_row_f32(float *out, const float *in, float factor, int64_t width) {
  int64_t j = 0;
  for (; j + 16 <= width; j += 16, out += 16, in += 16)
    UNROLLED for (int l = 0; l < 16; l += 4)
        f32x4_store(out + l, f32x4_load(out + l) + f32x4_load(in + l) * factor);
  for (; j < width; j++) *out++ += factor * *in++;
}

static void add_row(DType d, char *out, const char *in, double factor, int64_t width) {
  if (dtype_is_complex(d)) width *= 2, d = dtype_real(d);
  double *o = (double *)(void *)out;
  const double *v = (const double *)(const void *)in;
  if (d == DT_F32)
    add_row_f32((float *)(void *)out, (const float *)(const void *)in, (float)factor, width);
  else
    for (int64_t j = 0; j < width; j++) o[j] += factor * v[j];
}

static Tensor *embedding_dense_backward(Tensor *g, Table t) {
  OP_ENTERED_AS(embedding_dense_backward(g, t), "embedding_dense_backward", g, t.indices, t.rows,
                t.padding, t.by_frequency);
  IN_FLOAT(embedding_dense_backward(g, t), g);
  if (blocked(g, t.indices)) return NULL;
  Node *n = node_new(&EmbeddingDenseBackwardBackward0, 1, 4, g, NULL);
  save_table(n, t);
  DType d = tensor_dtype(g);
  int64_t width = g->sizes[g->ndim - 1];
  Tensor *y = tensor_zeros(2, (int64_t[]){t.rows, width}, d);
  Tensor *from = tensor_is_contiguous(g) ? g : index_clone_contiguous(g);
  const int64_t *v = row_numbers(t.indices, t.rows);
  Tensor *factors = row_factors(t.indices, t.rows, t.padding, t.by_frequency, d);
  if (blocked(y, from) || !v) return set_history(NULL, n);
  int64_t row_bytes = width * dtype_bytes(d);
  for (int64_t i = 0; i < t.indices->numel && !tensor_absent(y); i++) {
    double factor = factors ? tensor_get_f(factors, i) : 1;
    if (poll_stops(8 + width / 2)) break;
    if (v[i] != t.padding)
      add_row(d, tensor_data(y) + v[i] * row_bytes, tensor_data(from) + i * row_bytes, factor,
              width);
  }
  return set_history(y, n);
}

Tensor *t_embedding_gradient(Tensor *g, Tensor *indices, int64_t rows, int64_t padding,
                             bool by_frequency) {
  if (blocked(g, indices) || !indices_fit(indices, "embedding_backward")) return NULL;
  if (!dtype_is_float(tensor_dtype(g)))
    return dtype_no_kernel("embedding_backward", tensor_dtype(g));
  if (g->ndim != indices->ndim + 1 ||
      !sizes_equal(indices->ndim, g->sizes, indices->ndim, indices->sizes))
    return fail(ERR_RUNTIME,
                "embedding_dense_backward: a gradient of shape %s for indices of shape %s",
                shape_text(g), shape_text(indices));
  return embedding_dense_backward(g, (Table){indices, rows, padding, by_frequency, false});
}

Tensor *t_embedding(Tensor *weight, Tensor *indices, int64_t padding_idx, bool scale_grad_by_freq,
                    bool sparse) {
  OP_ENTERED_AS(t_embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse), "embedding",
                weight, indices, padding_idx, scale_grad_by_freq, sparse);
  if (blocked(weight, indices)) return NULL;
  if (weight->ndim != 2) return fail(ERR_RUNTIME, "'weight' must be 2-D");
  if (!indices_fit(indices, "embedding")) return NULL;
  Node *n = node_new(&EmbeddingBackward0, 1, 4, weight, NULL);
  save_table(n, (Table){indices, weight->sizes[0], padding_idx, scale_grad_by_freq, sparse});
  int64_t sizes[MAX_DIM + 1], width = weight->sizes[1];
  memcpy(sizes, indices->sizes, (size_t)indices->ndim * sizeof *sizes);
  sizes[indices->ndim] = width;
  OutOfBounds bad = {0, false};
  Tensor *y = tensor_empty(indices->ndim + 1, sizes, tensor_dtype(weight));
  if (places_read_rows(weight, indices, y, &bad))
    return set_history(bad.found ? fail(ERR_INDEX, "index out of range in self") : y, n);
  Tensor *flat = tensor_is_contiguous(indices) ? indices : index_clone_contiguous(indices);
  if (flat) flat = tensor_alias(flat, 1, &flat->numel, (int64_t[]){1}, flat->offset);
  Places p = places_slices(weight, 0, flat, false, &bad);
  if (bad.found) fail(ERR_INDEX, "index out of range in self");
  Tensor *rows =
      y ? tensor_alias(y, 2, (int64_t[]){indices->numel, width}, (int64_t[]){width, 1}, 0) : NULL;
  return set_history(places_read(p, rows) ? y : NULL, n);
}

/* ------------------------------------------------------------ max_norm */

static double row_norm(const Tensor *w, int64_t row, double p) {
  double sum = 0;
  for (int64_t j = 0; j < w->sizes[1]; j++) {
    double v = fabs(tensor_get_f(w, row * w->strides[0] + j * w->strides[1]));
    if (isinf(p))
      sum = p > 0 ? (v > sum || v != v ? v : sum) : (j == 0 || v < sum || v != v ? v : sum);
    else sum += p == 2 ? v * v : p == 1 ? v : p == 0 ? v != 0 : pow(v, p);
  }
  double norm = isinf(p) || p == 0 || p == 1 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
  return w->dtype == DT_F32 ? (double)(float)norm : norm;
}

static void scale_row(Tensor *w, int64_t row, double scale) {
  DType d = tensor_dtype(w);
  for (int64_t j = 0; j < w->sizes[1]; j++) {
    char *at = tensor_data(w) + (row * w->strides[0] + j * w->strides[1]) * dtype_bytes(d);
    if (d == DT_F32) *(float *)(void *)at *= (float)scale;
    else element_store_f(at, d, element_load_f(at, d) * scale);
  }
}

GRAD(EmbeddingRenormBackward0, "")
{ fail(ERR_NOT_IMPLEMENTED, "the derivative for 'embedding_renorm' is not implemented."); }

Tensor *t_embedding_renorm_(Tensor *weight, Tensor *indices, double max_norm, double norm_type) {
  OP_ENTERED(t_embedding_renorm_, "embedding_renorm_", weight, indices, max_norm, norm_type);
  if (blocked(weight, indices)) return NULL;
  if (weight->ndim != 2) return fail(ERR_RUNTIME, "'self' must be 2-D");
  if (!indices_fit(indices, "embedding_renorm_")) return NULL;
  if (!dtype_is_float(tensor_dtype(weight)))
    return fail(ERR_RUNTIME,
                "norm(): input dtype should be either floating point or complex. Got %s instead.",
                legacy(weight));
  if (!history_check_inplace(weight)) return NULL;
  const int64_t *v = row_numbers(indices, weight->sizes[0]);
  bool *seen = scratch_array(weight->sizes[0], sizeof *seen);
  if (!v || !seen) return NULL;
  memset(seen, 0, (size_t)weight->sizes[0]);
  if (!tensor_write_begin(weight, false)) return NULL;
  Node *n = node_new(&EmbeddingRenormBackward0, 0, 0, weight, NULL);
  for (int64_t i = 0; i < indices->numel && !tensor_absent(weight); i++) {
    if (seen[v[i]]) continue;
    if (poll_stops(16 * weight->sizes[1])) break;
    seen[v[i]] = true;
    double norm = row_norm(weight, v[i], norm_type);
    if (norm > max_norm) scale_row(weight, v[i], max_norm / (norm + 1e-7));
  }
  tensor_bump_version(weight);
  record_rebase(weight, n);
  return weight;
}

/* Renormalizes a layer's weight by max_norm and norm_type, arguments k and k + 1. */
static void renorm_unrecorded(Call *c, int k, Tensor *weight, Tensor *indices) {
  WITHOUT_GRAD_BLOCK {
    if (arg_given(c, k)) t_embedding_renorm_(weight, indices, arg_float(c, k), arg_float(c, k + 1));
  }
}

/* ------------------------------------------------------------ nn.functional.embedding */

static bool padding_within(const Tensor *weight, bool given, int64_t *padding) {
  if (!given) *padding = -1;
  int64_t rows = weight->ndim ? weight->sizes[0] : 0;
  if (given && !weight->ndim) return tensor_size(weight, 0) >= 0;
  bool within = !given || *padding == 0 || (*padding > 0 ? *padding < rows : *padding >= -rows);
  if (!within) fail(ERR_ASSERTION, "Padding_idx must be within num_embeddings");
  if (given && *padding < 0) *padding += rows;
  return within;
}

/* torch.embedding */
Tensor *op_embedding_plain(Call *c) {
  return t_embedding(arg_tensor(c, 0), arg_tensor(c, 1), arg_int(c, 2), arg_bool(c, 3),
                     arg_bool(c, 4));
}

/* nn.functional.embedding: input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq,
 * sparse */
void op_embedding(Call *c) {
  Tensor *indices = arg_tensor(c, 0), *weight = arg_tensor(c, 1);
  int64_t padding = arg_given(c, 2) ? arg_int(c, 2) : -1;
  if (blocked(indices, weight) || !padding_within(weight, arg_given(c, 2), &padding)) return;
  renorm_unrecorded(c, 3, weight, indices);
  ret_tensor(c, t_embedding(weight, indices, padding, arg_bool(c, 5), arg_bool(c, 6)));
}

/* ------------------------------------------------------------ embedding_bag */

typedef enum { BAG_SUM, BAG_MEAN, BAG_MAX, BAG_MODES } BagMode;
static const char *const bag_modes[BAG_MODES] = {"sum", "mean", "max"};

typedef struct {
  Tensor *weight, *indices, *weights, *offsets; /* weights: one for each index, or NULL */
  const int64_t *v;                             /* the indices */
  int64_t n, n_bags, padding;
  BagMode mode;
  bool by_frequency, sparse;
  bool one_by_one; /* a maximum, or with padding: PyTorch has a separate loop for these */
  Tensor *bag;     /* int64: the bag of each index */
  Tensor *factors; /* (n, 1): 0 for an index that does not count, 1 / size of its bag for a mean */
  Tensor *sizes;   /* int64: of each bag; zeros for a sum, as PyTorch's are */
} Bags;

/* Finds the bag of each index. The last bag reaches to the end, even with an extra last offset. */
static bool assign_bags(Bags *b, const int64_t *offsets) {
  DType d = tensor_dtype(b->weight);
  b->bag = tensor_zeros(1, &b->n, DT_I64);
  b->factors = tensor_zeros(2, (int64_t[]){b->n, 1}, d);
  b->sizes = tensor_zeros(1, &b->n_bags, DT_I64);
  if (!b->bag || !b->factors || !b->sizes) return false;
  if (tensor_absent(b->sizes)) return true;
  int64_t *sizes = (int64_t *)(void *)tensor_data(b->sizes);
  int64_t *bag = (int64_t *)(void *)tensor_data(b->bag);
  for (int64_t i = 0, at = 0; i < b->n; i++) {
    while (at + 1 < b->n_bags && offsets[at + 1] <= i) at++;
    bag[i] = at;
    if (b->mode != BAG_SUM && b->v[i] != b->padding) sizes[at]++;
  }
  for (int64_t i = 0; i < b->n; i++) {
    double f = b->v[i] == b->padding ? 0 : b->mode == BAG_MEAN ? 1.0 / (double)sizes[bag[i]] : 1;
    tensor_set_f(b->factors, i, f);
  }
  return true;
}

/* A row for each index: g of its bag, times its factor. */
static Tensor *bag_rows(Tensor *g, Tensor *bag, Tensor *factors) {
  return t_mul(t_index_select(g, 0, bag), factors);
}

static Tensor *as_column(Tensor *weights) {
  return blocked(weights) ? NULL : t_unsqueeze(weights, 1);
}

/* sum, mean: dweight[index] += factor * weight of the index * g of its bag; dweights = factor * (g
 * . row). max: dweight at the maximum of each bag and column += g. Saved: indices, bags, factors,
 * weight, weights, rows of the maxima (else the sizes of bags, like PyTorch), empty bags, offsets,
 * sizes of bags. */
GRAD(EmbeddingBagBackward0,
     "indices result1 - weight per_sample_weights result3 - offsets result2 | "
     "weight_sym_argsize_0:int padding_idx:int scale_grad_by_freq:bool mode:int sparse:bool")
{
  Table t = saved_table(n);
  if (blocked(g[0], t.indices)) return;
  if (NUM(3) == BAG_MAX) {
    Tensor *zeros = tensor_zeros(2, (int64_t[]){t.rows, g[0]->sizes[1]}, tensor_dtype(g[0]));
    gi[0] = t_scatter_add(zeros, 0, saved_tensor(n, 5),
                          t_masked_fill(g[0], saved_tensor(n, 6), tensor_wrapped_f(0)));
    return;
  }
  Tensor *rows = bag_rows(g[0], saved_tensor(n, 1), saved_tensor(n, 2)),
         *weights = saved_tensor(n, 4);
  if (forward_produces(n)) t.by_frequency = t.sparse = false; /* unknown to a tangent */
  if (needs(n, 0)) gi[0] = table_gradient(weights ? t_mul(rows, as_column(weights)) : rows, t);
  if (n->n_edges > 1 && needs(n, 1))
    gi[1] = t_sum(t_mul(rows, t_embedding(saved_tensor(n, 3), t.indices, -1, false, false)),
                  (Ints){1, (int64_t[]){1}}, false, DT_NONE);
}

static Tensor *sum_bags(const Bags *b) {
  DType d = tensor_dtype(b->weight);
  int64_t width = b->weight->sizes[1], row_bytes = width * dtype_bytes(d);
  Tensor *y = tensor_zeros(2, (int64_t[]){b->n_bags, width}, d);
  Tensor *w = tensor_is_contiguous(b->weight) ? b->weight : index_clone_contiguous(b->weight);
  if (blocked(y, w)) return NULL;
  if (tensor_absent(y)) return y;
  const int64_t *bag = (const int64_t *)(const void *)tensor_data(b->bag);
  for (int64_t i = 0; i < b->n; i++) {
    if (poll_stops(8 + width / 2)) return NULL;
    double f = tensor_get_f(b->factors, i);
    if (f == 0) continue;
    if (b->weights)
      f *= tensor_get_f(b->weights, i * (b->weights->ndim ? b->weights->strides[0] : 0));
    add_row(d, tensor_data(y) + bag[i] * row_bytes, tensor_data(w) + b->v[i] * row_bytes, f, width);
  }
  return y;
}

/* The maximum of each bag in each column, the first of equals. `from`: its row; `empty`: true
 * without one. */
static Tensor *max_bags(const Bags *b, Tensor **from, Tensor **empty) {
  DType d = tensor_dtype(b->weight);
  int64_t sizes[2] = {b->n_bags, b->weight->sizes[1]}, width = sizes[1];
  Tensor *y = tensor_zeros(2, sizes, d);
  *from = tensor_zeros(2, sizes, DT_I64);
  *empty = tensor_full(2, sizes, DT_BOOL, 1);
  if (blocked(y, *from) || !*empty) return NULL;
  if (tensor_absent(y)) return y;
  const int64_t *bag = (const int64_t *)(const void *)tensor_data(b->bag);
  int64_t *rows = (int64_t *)(void *)tensor_data(*from);
  bool *none = (bool *)(void *)tensor_data(*empty);
  for (int64_t i = 0; i < b->n; i++) {
    if (poll_stops(8 * width)) return NULL;
    if (tensor_get_f(b->factors, i) == 0) continue;
    for (int64_t j = 0; j < width; j++) {
      int64_t at = bag[i] * width + j;
      double v = tensor_get_f(b->weight,
                              b->v[i] * b->weight->strides[0] + j * b->weight->strides[1]);
      if (!none[at] && !(v > tensor_get_f(y, at))) continue;
      none[at] = false;
      rows[at] = b->v[i];
      tensor_set_f(y, at, v);
    }
  }
  return y;
}

static Tensor *embedding_bag(Bags *b) {
  IN_FLOAT(embedding_bag(b), b->weight, b->weights);
  Tensor *from = NULL, *empty = NULL;
  Node *n = node_new(&EmbeddingBagBackward0, 9, 5, b->weight, b->weights, NULL);
  Tensor *y = b->mode == BAG_MAX ? max_bags(b, &from, &empty) : sum_bags(b);
  save_table(n, (Table){b->indices, b->weight->sizes[0], b->padding, b->by_frequency, b->sparse});
  num_i(n, 3, b->mode);
  Tensor *rest[8] = {b->bag,
                     b->factors,
                     b->weights ? b->weight : NULL,
                     b->weights,
                     from ? from : b->sizes,
                     empty,
                     b->offsets,
                     b->sizes};
  for (int i = 0; i < 8; i++) save(n, i + 1, rest[i]);
  return set_history(y, n);
}

static const char bag_not_sum[] =
    "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
    "mode='sum' (got mode='%s'). Please open a feature request on GitHub.";

static bool bag_shapes_fit(const Tensor *indices, const Tensor *weight, const Tensor *offsets,
                           const Tensor *weights) {
  if (weights && !tensor_same_shape(weights, indices))
    fail(ERR_VALUE,
         "embedding_bag: If per_sample_weights (torch.Size(%s)) is not None, then it must have the "
         "same shape as the input (torch.Size(%s))",
         shape_text(weights), shape_text(indices));
  else if (weight->ndim != 2)
    fail(ERR_VALUE, "weight has to be a 2D Tensor, but got Tensor of dimension %d", weight->ndim);
  else if (indices->ndim == 2 && offsets)
    fail(ERR_VALUE,
         "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
         "fixed length sequences. However, found offsets of type <class 'torch.Tensor'>");
  else if (indices->ndim == 1 && !offsets)
    fail(ERR_VALUE, "offsets has to be a 1D Tensor but got None");
  else if (indices->ndim == 1 && offsets->ndim != 1)
    fail(ERR_VALUE, "offsets has to be a 1D Tensor");
  else if (indices->ndim != 1 && indices->ndim != 2)
    fail(ERR_VALUE, "input has to be 1D or 2D Tensor, but got Tensor of dimension %d",
         indices->ndim);
  return !failed();
}

static bool weights_fit(const Tensor *weight, const Tensor *weights) {
  if (weights && weights->dtype != weight->dtype)
    return REFUSE(ERR_RUNTIME,
                  "Expected tensor for argument #1 'weight' to have the same type as tensor for "
                  "argument #1 'per_sample_weights'; but type torch.%sTensor does not equal "
                  "torch.%sTensor (while checking arguments for embedding_bag)",
                  legacy(weight), legacy(weights));
  if (dtype_is_float(tensor_dtype(weight))) return true;
  bool modern = weight->dtype == DT_BOOL || dtype_is_complex(tensor_dtype(weight));
  fail(ERR_RUNTIME,
       "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, "
       "BFloat16, Float, Double; but got %s%s%s instead (while checking arguments for "
       "embedding_bag)",
       modern ? "CPU" : "torch.", legacy(weight), modern ? "Type" : "Tensor");
  return false;
}

static bool bag_mode_fits(const char *mode, bool by_frequency, bool sparse, bool weighted,
                          BagMode *out) {
  for (*out = BAG_SUM; *out < BAG_MODES && strcmp(mode, bag_modes[*out]) != 0;)
    *out = (BagMode)(*out + 1);
  if (*out == BAG_MODES) fail(ERR_VALUE, "mode has to be one of sum, mean or max");
  else if (*out == BAG_MAX && by_frequency)
    fail(ERR_VALUE, "max mode does not support scaling the gradient by the frequency");
  else if (*out == BAG_MAX && sparse) fail(ERR_VALUE, "max mode does not support sparse weights");
  else if (weighted && *out != BAG_SUM) fail(ERR_NOT_IMPLEMENTED, bag_not_sum, mode);
  return !failed();
}

static bool bag_values_fit(const Bags *b, const int64_t *offsets, int64_t n_offsets) {
  if (n_offsets && offsets[0] != 0)
    fail(ERR_RUNTIME,
         "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
         "position 0. However, got %lld\n[ torch.LongTensor{} ]",
         (Shown)offsets[0]);
  else if (n_offsets && offsets[n_offsets - 1] > b->n)
    fail(ERR_RUNTIME,
         "offsets[-1] can not be greater than input's length %lld but got offsets[-1] of %lld",
         (Shown)b->n, (Shown)offsets[n_offsets - 1]);
  int64_t rows = b->weight->sizes[0];
  for (int64_t i = 0; i < b->n && !failed(); i++)
    if (b->v[i] < 0 || b->v[i] >= rows) {
      if (b->one_by_one)
        fail(ERR_RUNTIME,
             "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be %lld",
             (Shown)b->v[i]);
      else
        fail(ERR_RUNTIME,
             "Index %lld of input takes value %lld which is not in the valid range [0, %lld)",
             (Shown)i, (Shown)b->v[i], (Shown)rows);
    }
  return !failed();
}

/* The offsets of bags with `width` indices each. */
static Tensor *even_offsets(int64_t n_bags, int64_t width) {
  Tensor *t = tensor_empty(1, &n_bags, DT_I64);
  for (int64_t i = 0; t && i < n_bags && !tensor_absent(t); i++)
    ((int64_t *)(void *)tensor_data(t))[i] = i * width;
  return t;
}

/* Drops the indices after the last bag. */
static bool leave_out(Bags *b, int64_t n) {
  if (n == b->n) return true;
  b->n = n;
  b->indices = t_narrow(b->indices, 0, 0, n);
  if (b->weights) b->weights = t_narrow(b->weights, 0, 0, n);
  return !failed();
}

/* Sets the offsets of b: as given, or one bag for each row of the input. `ends`: the last offset is
 * the end of the last bag; but PyTorch's separate loop goes on to the end of the input. */
static bool divide(Bags *b, Tensor *input, Tensor *offsets, bool ends) {
  int64_t n = offsets ? offsets->numel : input->sizes[0];
  if (ends && n == 0)
    return REFUSE(ERR_RUNTIME, "include_last_offset: number of offset should be at least 1");
  b->n_bags = ends ? n - 1 : n;
  b->offsets = offsets ? offsets : even_offsets(n, input->sizes[1]);
  const int64_t *starts = b->offsets ? index_numbers(b->offsets) : NULL;
  if (!b->v || !starts) return false;
  if (tensor_absent(b->offsets) || tensor_absent(b->indices)) return assign_bags(b, starts);
  if (!bag_values_fit(b, starts, n)) return false;
  const int64_t used = !b->n_bags ? 0 : ends && !b->one_by_one ? starts[n - 1] : b->n;
  return leave_out(b, used) && assign_bags(b, starts);
}

/* input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse,
 * per_sample_weights, include_last_offset, padding_idx */
void op_embedding_bag(Call *c) {
  OP_ENTERED(op_embedding_bag, "embedding_bag", c);
  Tensor *input = arg_tensor(c, 0), *weight = arg_tensor(c, 1), *offsets = arg_tensor(c, 2),
         *weights = arg_tensor(c, 8);
  if (input && weight && weight->dtype == DT_I64 && dtype_is_float(tensor_dtype(input))) {
    warn_user("Argument order of nn.functional.embedding_bag was changed. Usage "
              "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
              "`embedding_bag(input, weight, ...)`.");
    weight = arg_tensor(c, 0);
    input = arg_tensor(c, 1);
  }
  Bags b = {.weight = weight,
            .by_frequency = arg_bool(c, 5),
            .sparse = arg_bool(c, 7),
            .padding = arg_given(c, 10) ? arg_int(c, 10) : -1};
  if (blocked(input, weight) || !bag_shapes_fit(input, weight, offsets, weights)) return;
  if (!bag_mode_fits(arg_str(c, 6), b.by_frequency, arg_bool(c, 7), weights, &b.mode)) return;
  if (!weights_fit(weight, weights) || !indices_fit(input, "embedding_bag") ||
      (offsets && !indices_fit(offsets, "embedding_bag")))
    return;
  if (arg_given(c, 10) && (b.padding < -weight->sizes[0] || b.padding >= weight->sizes[0])) {
    fail(ERR_RUNTIME,
         "padding_idx must be within the number of embeddings, -%lld through %lld, but got %lld",
         (Shown)weight->sizes[0], (Shown)weight->sizes[0] - 1, (Shown)b.padding);
    return;
  }
  if (arg_given(c, 10) && b.padding < 0) b.padding += weight->sizes[0];
  b.one_by_one = b.mode == BAG_MAX || arg_given(c, 10);
  b.indices = t_reshape(input, 1, (int64_t[]){-1});
  b.weights = weights ? t_reshape(weights, 1, (int64_t[]){-1}) : NULL;
  renorm_unrecorded(c, 3, weight, b.indices);
  if (failed() || !b.indices) return;
  b.n = b.indices->numel;
  b.v = index_numbers(b.indices);
  if (!divide(&b, input, offsets, offsets && arg_bool(c, 9))) return;
  ret_tensor(c, embedding_bag(&b));
}

/* scaled_dot_product_attention, composed of matrix products and a softmax. */
#include <math.h>

#include "ops/elementwise/elementwise.h"
#include "ops/nn/nn.h"

static bool check_attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask) {
  if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2)
    fail(ERR_RUNTIME,
         "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: %d "
         "key.dim: %d and value.dim: %d instead.",
         q->ndim, k->ndim, v->ndim);
  else if (q->dtype != k->dtype || q->dtype != v->dtype)
    fail(ERR_RUNTIME,
         "Expected query, key, and value to have the same dtype, but got query.dtype: %s "
         "key.dtype: %s and value.dtype: %s instead.",
         dtype_c_name(tensor_dtype(q)), dtype_c_name(tensor_dtype(k)),
         dtype_c_name(tensor_dtype(v)));
  else if (mask && mask->dtype != DT_BOOL && mask->dtype != DT_F32 && mask->dtype != q->dtype)
    fail(ERR_RUNTIME,
         "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
         "attn_mask.dtype: %s and  query.dtype: %s instead.",
         dtype_c_name(tensor_dtype(mask)), dtype_c_name(tensor_dtype(q)));
  else if (!dtype_is_float(tensor_dtype(q)))
    fail(ERR_RUNTIME, "expected scalar type Float but found %s", legacy(q));
  return !failed();
}

static bool is_one_or(int64_t size, int64_t wanted) { return size == 1 || size == wanted; }

/* Whether PyTorch's fused kernel takes these operands; no other kernel allows a mask beside
 * is_causal. Empty operands always pass. */
static bool may_mask_causal(const Tensor *q, const Tensor *k, const Tensor *v, const Tensor *mask,
                            double dropout_p) {
  if (!q->numel || !k->numel) return true;
  if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4 || dropout_p > 0 || tensor_requires_grad(mask))
    return false;
  for (int d = 0; d < 4; d++)
    if (d != 2 && (q->sizes[d] != k->sizes[d] || q->sizes[d] != v->sizes[d])) return false;
  if (q->strides[3] != 1 || k->strides[3] != 1 || v->strides[3] != 1) return false;
  int m = mask->ndim;
  if ((m != 2 && m != 4) || !is_one_or(mask->sizes[m - 2], q->sizes[2]) ||
      !is_one_or(mask->sizes[m - 1], k->sizes[2]))
    return false;
  return m == 2 ||
         (is_one_or(mask->sizes[0], q->sizes[0]) && is_one_or(mask->sizes[1], q->sizes[1]));
}

/* Each head of x repeated n times. */
static Tensor *repeat_heads(Tensor *x, int64_t n) {
  if (blocked(x) || n == 1) return x;
  int64_t sizes[MAX_DIM];
  int d = x->ndim - 3;
  Tensor *wide = t_unsqueeze(x, d + 1);
  if (!wide) return NULL;
  for (int i = 0; i < wide->ndim; i++) sizes[i] = i == d + 1 ? n : wide->sizes[i];
  return t_flatten(t_expand(wide, wide->ndim, sizes), d, d + 1);
}

static bool share_heads(Tensor *q, Tensor **k, Tensor **v) {
  int64_t heads = q->ndim > 2 ? q->sizes[q->ndim - 3] : 1,
          of_k = (*k)->ndim > 2 ? (*k)->sizes[(*k)->ndim - 3] : 1;
  int64_t of_v = (*v)->ndim > 2 ? (*v)->sizes[(*v)->ndim - 3] : 1;
  if (q->ndim < 3 || of_k == 0 || of_v == 0 || heads % of_k || heads % of_v) {
    fail(ERR_RUNTIME, "Number of heads in key and value must divide the number of heads in ");
    return false;
  }
  *k = repeat_heads(*k, heads / of_k);
  *v = repeat_heads(*v, heads / of_v);
  return !failed();
}

/* true where position i of the queries must not see position j of the keys */
static Tensor *future(int64_t queries, int64_t keys) {
  Tensor *m = tensor_empty(2, (const int64_t[]){queries, keys}, DT_BOOL);
  bool *at = m ? (bool *)(void *)tensor_data(m) : NULL;
  for (int64_t i = 0; at && i < queries && !tensor_absent(m); i++)
    for (int64_t j = 0; j < keys; j++) at[i * keys + j] = j > i;
  return m;
}

/* The rows of queries that see no key, or NULL if there are none. */
static Tensor *blind_rows(Tensor *scores) {
  Tensor *rows = WITHOUT_GRAD(t_all(t_isneginf(t_detach(scores)), ONE_DIM(-1), true)),
         *any = t_any(rows, ALL_DIMS, false);
  return any && (tensor_absent(any) || tensor_get_i(any, 0)) ? rows : NULL;
}

/* The softmax of the scores. Queries that see no key get zero weights. */
static Tensor *attention_weights(Tensor *scores, bool masked) {
  Tensor *blind = masked && !failed() ? blind_rows(scores) : NULL, *zero = tensor_wrapped_f(0);
  Tensor *weights = t_softmax(blind ? t_masked_fill(scores, blind, zero) : scores, -1, DT_NONE);
  return blind ? t_masked_fill(weights, blind, zero) : weights;
}

/* softmax(scale q k^T + mask) v; scale NULL: 1 / sqrt of the last size of q. */
Tensor *t_scaled_dot_product_attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask,
                                       double dropout_p, bool is_causal, const double *scale,
                                       bool enable_gqa) {
  OP_ENTERED(t_scaled_dot_product_attention, "scaled_dot_product_attention", q, k, v, mask,
             dropout_p, is_causal, scale, enable_gqa);
  if (blocked(q, k) || !v || !check_attention(q, k, v, mask)) return NULL;
  if (dtype_is_half(tensor_dtype(q))) { /* as separate steps, like PyTorch */
    if (mask && mask->dtype != DT_BOOL) mask = t_to(mask, DT_F32);
    return t_to(t_scaled_dot_product_attention(t_to(q, DT_F32), t_to(k, DT_F32), t_to(v, DT_F32),
                                               mask, dropout_p, is_causal, scale, enable_gqa),
                tensor_dtype(q));
  }
  if (enable_gqa && !share_heads(q, &k, &v)) return NULL;
  if (mask && is_causal && !may_mask_causal(q, k, v, mask, dropout_p))
    return fail(
        ERR_RUNTIME,
        "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  double factor = scale ? *scale : 1 / sqrt((double)q->sizes[q->ndim - 1]);
  int64_t queries = q->sizes[q->ndim - 2], keys = k->sizes[k->ndim - 2];
  Tensor *hidden = tensor_wrapped_f(-(double)INFINITY),
         *scores = t_matmul(t_mul_f(q, factor), t_t(k));
  if (is_causal) scores = t_masked_fill(scores, future(queries, keys), hidden);
  if (mask && mask->dtype == DT_BOOL) scores = t_masked_fill(scores, t_logical_not(mask), hidden);
  else if (mask) scores = t_add(scores, mask);
  Tensor *weights = attention_weights(scores, mask);
  if (dropout_p > 0) weights = t_dropout(weights, dropout_p, true);
  return t_matmul(weights, v);
}

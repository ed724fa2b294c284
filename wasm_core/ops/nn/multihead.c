/* multi_head_attention_forward: attention by several heads as a function of its weights. */
#include <math.h>
#include <string.h>

#include "nn_rows.h"
#include "ops/create/create.h"
#include "ops/nn/nn.h"
#include "ops/op.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"

/* The tensors of the call, in the order of its first argument; NULL: None. */
typedef struct {
  Tensor *query, *key, *value, *in_weight, *in_bias, *bias_k, *bias_v, *out_weight, *out_bias;
  Tensor *padding, *mask, *q_weight, *k_weight, *v_weight, *static_k, *static_v;
} Given;
enum { N_GIVEN = sizeof(Given) / sizeof(Tensor *) };

typedef struct {
  int64_t width, heads;
  double dropout;
  bool zero_attention, need_weights, separate, averaged, causal;
} Options;

/* ------------------------------------------------------------ checks */

static bool check_ranks(const Given *g) {
  int rank = g->query->ndim;
  const char *kind = rank == 3 ? "batched (3-D)" : "unbatched (2-D)";
  const Tensor *padding = g->padding, *mask = g->mask;
  if (rank != 2 && rank != 3)
    fail(ERR_ASSERTION,
         "query should be unbatched 2D or batched 3D tensor but received %d-D query tensor", rank);
  else if (g->key->ndim != rank || g->value->ndim != rank)
    fail(ERR_ASSERTION,
         "For %s `query`, expected `key` and `value` to be %d-D but found %d-D and %d-D tensors "
         "respectively",
         kind, rank, g->key->ndim, g->value->ndim);
  else if (padding && padding->ndim != rank - 1)
    fail(ERR_ASSERTION,
         "For %s `query`, expected `key_padding_mask` to be `None` or %d-D but found %d-D tensor "
         "instead",
         kind, rank - 1, padding->ndim);
  else if (mask && mask->ndim != 2 && mask->ndim != 3)
    fail(ERR_ASSERTION,
         "For %s `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found %d-D tensor "
         "instead",
         kind, mask->ndim);
  return !failed();
}

static bool check_widths(const Given *g, const Options *o) {
  const Tensor *k = g->key, *v = g->value;
  int64_t width = g->query->sizes[2];
  if (width != o->width)
    fail(ERR_ASSERTION, "was expecting embedding dimension of %lld, but got %lld", (Shown)o->width,
         (Shown)width);
  else if (o->heads == 0) fail(ERR_ZERO_DIVISION, "integer division or modulo by zero");
  else if (width % o->heads)
    fail(ERR_ASSERTION, "embed_dim %lld not divisible by num_heads %lld", (Shown)width,
         (Shown)o->heads);
  else if (o->separate && (k->sizes[0] != v->sizes[0] || k->sizes[1] != v->sizes[1]))
    fail(ERR_ASSERTION,
         "key's sequence and batch dims torch.Size(%s) do not match value's torch.Size(%s)",
         sizes_text(2, k->sizes), sizes_text(2, v->sizes));
  else if (!o->separate && !tensor_same_shape(k, v))
    fail(ERR_ASSERTION, "key shape torch.Size(%s) does not match value shape torch.Size(%s)",
         shape_text(k), shape_text(v));
  return !failed();
}

static bool check_projection(const char *name, const Tensor *weight, int64_t width,
                             const Tensor *x) {
  const int64_t wanted[] = {width, x->sizes[2]};
  if (sizes_equal(2, wanted, weight->ndim, weight->sizes)) return true;
  fail(ERR_ASSERTION, "expecting %s weights shape of %s, but got torch.Size(%s)", name,
       nn_tuple_text(2, wanted), shape_text(weight));
  return false;
}

/* ------------------------------------------------------------ masks */

/* A mask as an addend: minus infinity where a bool mask is true. */
static Tensor *as_numbers(Tensor *mask, const char *name, const Tensor *like) {
  if (blocked(mask) || dtype_is_float(tensor_dtype(mask))) return mask;
  if (mask->dtype != DT_BOOL)
    return fail(ERR_ASSERTION, "only bool and floating types of %s are supported", name);
  Tensor *zeros = t_like(mask, tensor_wrapped_f(0), tensor_dtype(like), NULL);
  return t_masked_fill(zeros, mask, tensor_wrapped_f(-(double)INFINITY));
}

/* The mask of pairs, (N * heads or 1, L, S). */
static Tensor *mask_of_pairs(Tensor *mask, const Given *g, int64_t heads) {
  if (blocked(mask)) return NULL;
  const int64_t all[] = {g->query->sizes[1] * heads, g->query->sizes[0], g->key->sizes[0]};
  int n = mask->ndim;
  if (sizes_equal(n, all + 3 - n, n, mask->sizes)) return n == 3 ? mask : t_unsqueeze(mask, 0);
  return fail(ERR_RUNTIME, "The shape of the %dD attn_mask is torch.Size(%s), but should be %s.", n,
              shape_text(mask), nn_tuple_text(n, all + 3 - n));
}

/* Checks the mask of the sources, which does not cover the `added` positions. */
static bool check_padding(const Tensor *padding, int64_t batch, int64_t sources, int64_t added) {
  const int64_t wanted[] = {batch, sources},
                found[] = {padding->sizes[0], padding->sizes[1] + added};
  for (int d = 0; d < 2; d++)
    if (found[d] != wanted[d])
      fail(ERR_ASSERTION, "Expected key_padded_mask.shape[%d] to be %lld, but got %lld", d,
           (Shown)wanted[d], (Shown)found[d]);
  return !failed();
}

/* The addend of the scores, (N * heads or 1, L or 1, S). `added`: the positions at the end without
 * a mask. */
static Tensor *score_bias(Tensor *padding, Tensor *mask, int64_t heads, int64_t added) {
  if (failed()) return NULL;
  if (padding) {
    int64_t n = padding->sizes[0], sources = padding->sizes[1];
    const int64_t one[] = {n, 1, 1, sources}, each[] = {n, heads, 1, sources};
    const int64_t rows[] = {n * heads, 1, sources};
    padding = t_reshape(t_expand(t_reshape(padding, 4, one), 4, each), 3, rows);
    mask = mask ? t_add(mask, padding) : padding;
  }
  if (!mask || !added) return mask;
  const int64_t behind[] = {0, added};
  return t_pad(mask, (Ints){2, behind}, "constant", NULL);
}

/* ------------------------------------------------------------ projections */

/* Splits t in three along the first dim, as views of one node. */
static bool in_three(Tensor *t, Tensor *parts[3]) {
  Call call = {0};
  op_chunk(&call, t, 3, 0);
  if (!failed() && call.result.n != 3)
    fail(ERR_VALUE, "not enough values to unpack (expected 3, got %d)", (int)call.result.n);
  for (int k = 0; k < 3 && !failed(); k++) parts[k] = result_tensor(&call.result, k);
  return !failed();
}

static bool weights_of(const Given *g, const Options *o, Tensor *parts[3]) {
  static const char *const names[] = {"query", "key", "value"};
  if (!o->separate && !g->in_weight)
    fail(ERR_ASSERTION, "use_separate_proj_weight is False but in_proj_weight is None");
  if (failed()) return false;
  if (!o->separate) return in_three(g->in_weight, parts);
  Tensor *const given[] = {g->query, g->key, g->value};
  parts[0] = g->q_weight, parts[1] = g->k_weight, parts[2] = g->v_weight;
  for (int k = 0; k < 3; k++)
    if (!parts[k])
      fail(ERR_ASSERTION, "use_separate_proj_weight is True but %c_proj_weight is None",
           names[k][0]);
  for (int k = 0; k < 3 && !failed(); k++)
    check_projection(names[k], parts[k], g->query->sizes[2], given[k]);
  return !failed();
}

static bool project(const Given *g, Tensor *const weights[3], Tensor *projected[3]) {
  Tensor *const given[] = {g->query, g->key, g->value};
  Tensor *biases[3] = {NULL, NULL, NULL};
  if (g->in_bias && !in_three(g->in_bias, biases)) return false;
  for (int k = 0; k < 3; k++) projected[k] = t_linear(given[k], weights[k], biases[k]);
  return !failed();
}

/* A key or value with the learnt position behind the others. */
static Tensor *with_bias(Tensor *x, Tensor *bias, const char *name, const Tensor *fixed) {
  if (blocked(x) || !bias) return x;
  if (fixed) return fail(ERR_ASSERTION, "bias cannot be added to static %s.", name);
  const int64_t times[] = {1, x->sizes[1], 1};
  Tensor *parts[] = {x, t_repeat(bias, (Ints){3, times})};
  return t_cat((Tensors){2, parts}, 0);
}

/* (S, N, embed_dim) as (N * heads, S, features of a head); or `fixed` in its place. */
static Tensor *split_heads(Tensor *x, int64_t heads, const char *name, Tensor *fixed) {
  if (blocked(x)) return NULL;
  const int64_t sizes[] = {x->sizes[0], x->sizes[1] * heads, x->sizes[2] / heads};
  if (!fixed) return t_transpose(t_reshape(x, 3, sizes), 0, 1);
  for (int d = 0; d < 3; d += 2) {
    int64_t wanted = sizes[d ? 2 : 1], found = tensor_size(fixed, d);
    if (!failed() && found != wanted)
      fail(ERR_ASSERTION, "expecting static_%s.size(%d) of %lld, but got %lld", name, d,
           (Shown)wanted, (Shown)found);
  }
  return failed() ? NULL : fixed;
}

static Tensor *with_zeros(Tensor *x) {
  if (blocked(x)) return NULL;
  const int64_t sizes[] = {x->sizes[0], 1, x->sizes[2]};
  Tensor *parts[] = {x, t_zeros((Ints){3, sizes}, tensor_dtype(x))};
  return t_cat((Tensors){2, parts}, 1);
}

static bool check_added(const Given *g) {
  if (!g->bias_k == !g->bias_v) return true;
  fail(ERR_ASSERTION, "bias_%c is set but bias_%c is None", g->bias_k ? 'k' : 'v',
       g->bias_k ? 'v' : 'k');
  return false;
}

/* ------------------------------------------------------------ attention */

typedef struct {
  Tensor *q, *k, *v, *bias;
} Heads;

/* Outputs of all heads (N * heads, L, features of a head), and weights (N, heads, L, S). */
static Tensor *attend_shown(const Heads *h, const Options *o, Tensor **shown) {
  int64_t rows = h->q->sizes[0], features = h->q->sizes[2];
  if (!features) return fail(ERR_ZERO_DIVISION, "float division by zero");
  Tensor *scaled = t_mul_f(h->q, sqrt(1 / (double)features));
  Tensor *scores = t_matmul(scaled, t_transpose(h->k, 1, 2));
  Tensor *weights = t_softmax(h->bias ? t_add(h->bias, scores) : scores, -1, DT_NONE);
  if (o->dropout > 0) weights = t_functional_dropout(weights, o->dropout, true, 0);
  const int64_t sizes[] = {rows / o->heads, o->heads, h->q->sizes[1], h->k->sizes[1]};
  Tensor *output = t_matmul(weights, h->v);
  *shown = t_reshape(weights, 4, sizes);
  return output;
}

static Tensor *attend_unseen(const Heads *h, const Options *o, bool causal) {
  int64_t rows = h->q->sizes[0], length = h->q->sizes[1], features = h->q->sizes[2];
  int64_t batch = rows / o->heads, sources = h->k->sizes[1];
  const int64_t of_q[] = {batch, o->heads, length, features};
  const int64_t of_k[] = {batch, o->heads, sources, features};
  const int64_t of_bias[] = {batch, o->heads, length, sources};
  const int64_t scores[] = {rows, length, sources}, flat[] = {rows, length, features};
  Tensor *bias = h->bias ? t_reshape(t_expand(h->bias, 3, scores), 4, of_bias) : NULL;
  Tensor *q = t_reshape(h->q, 4, of_q), *k = t_reshape(h->k, 4, of_k);
  Tensor *v = t_reshape(h->v, 4, of_k);
  if (failed()) return NULL;
  Tensor *y = t_scaled_dot_product_attention(q, k, v, bias, o->dropout, causal, NULL, false);
  return t_reshape(y, 3, flat);
}

/* Adds a batch dimension of size one. */
static void batch_one(Given *g) {
  g->query = t_unsqueeze(g->query, 1);
  g->key = t_unsqueeze(g->key, 1);
  g->value = t_unsqueeze(g->value, 1);
  if (g->padding) g->padding = t_unsqueeze(g->padding, 0);
}

/* The heads' queries, keys and values, and the addend of the scores. */
static bool heads_of(const Given *g, const Options *o, Tensor *padding, Tensor *mask, Heads *h) {
  Tensor *weights[3], *projected[3];
  if (!weights_of(g, o, weights)) return false;
  mask = mask_of_pairs(mask, g, o->heads);
  if (failed() || !project(g, weights, projected) || !check_added(g)) return false;
  Tensor *k = with_bias(projected[1], g->bias_k, "key", g->static_k);
  Tensor *v = with_bias(projected[2], g->bias_v, "value", g->static_v);
  h->q = split_heads(projected[0], o->heads, "q", NULL);
  h->k = split_heads(k, o->heads, "k", g->static_k);
  h->v = split_heads(v, o->heads, "v", g->static_v);
  if (o->zero_attention) h->k = with_zeros(h->k), h->v = with_zeros(h->v);
  if (blocked(h->q, h->k, h->v)) return false;
  int64_t added = (g->bias_k != NULL) + o->zero_attention;
  if (padding && !check_padding(padding, g->query->sizes[1], h->k->sizes[1], added)) return false;
  h->bias = score_bias(padding, mask, o->heads, added);
  return !failed();
}

static bool masks_of(const Given *g, const Options *o, Tensor **padding, Tensor **mask,
                     bool *causal) {
  if (o->causal && !g->mask)
    fail(ERR_RUNTIME,
         "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
         "method `generate_square_subsequent_mask` to create this mask.");
  if (failed()) return false;
  if (g->padding && g->mask && g->padding->dtype != g->mask->dtype)
    warn_user("Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type "
              "for both instead.");
  *padding = g->padding ? as_numbers(g->padding, "key_padding_mask", g->query) : NULL;
  *causal = o->causal && !*padding && !o->need_weights; /* then the mask need not be read */
  *mask = g->mask && !*causal ? as_numbers(g->mask, "attn_mask", g->query) : NULL;
  return !failed();
}

/* The output, and the weights: (N, L, S), or (N, heads, L, S) of each head; NULL unless needed. */
static void attention(Given *g, const Options *o, Tensor *out[2]) {
  Tensor *padding, *mask, *y;
  bool causal, batched = g->query->ndim == 3;
  Heads h;
  if (!batched) batch_one(g);
  if (failed() || !masks_of(g, o, &padding, &mask, &causal) || !check_widths(g, o)) return;
  if (!heads_of(g, o, padding, mask, &h)) return;
  y = o->need_weights ? attend_shown(&h, o, &out[1]) : attend_unseen(&h, o, causal);
  y = t_reshape(t_transpose(y, 0, 1), 3, g->query->sizes);
  y = t_linear(y, g->out_weight, g->out_bias);
  if (out[1] && o->averaged) out[1] = t_mean(out[1], ONE_DIM(1), false, DT_NONE);
  out[0] = batched ? y : t_squeeze_dim(y, 1);
  if (out[1] && !batched) out[1] = t_squeeze_dim(out[1], 0);
}

/* Arguments: the tensors as in Given, embed_dim_to_check, num_heads, add_zero_attn, dropout_p,
 * training, need_weights, use_separate_proj_weight, average_attn_weights, is_causal. */
void op_multi_head_attention(Call *c) {
  Tensors t = arg_tensors(c, 0);
  Tensor *out[2] = {NULL, NULL};
  Given g = {0};
  if (t.n != N_GIVEN) return (void)fail(ERR_TYPE, "expected %d tensors or None", (int)N_GIVEN);
  memcpy(&g, t.v, sizeof g);
  if (!g.query || !g.key || !g.value || !g.out_weight)
    return (void)fail(ERR_TYPE, "query, key, value and out_proj_weight must be Tensors");
  Options o = {.width = arg_int(c, 1), .heads = arg_int(c, 2), .zero_attention = arg_bool(c, 3)};
  o.dropout = arg_bool(c, 5) ? arg_float(c, 4) : 0;
  o.need_weights = arg_bool(c, 6), o.separate = arg_bool(c, 7);
  o.averaged = arg_bool(c, 8), o.causal = arg_bool(c, 9);
  if (!check_ranks(&g)) return;
  attention(&g, &o, out);
  ret_tensors(c, o.need_weights ? 2 : 1, out);
}

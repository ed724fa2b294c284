/* gumbel_softmax: samples of a relaxed one-hot distribution (Jang and others, 2016). */
#include "nn_rows.h"
#include "ops/create/create.h"
#include "ops/create/random.h"
#include "ops/nn/nn.h"
#include "ops/op.h"

static Tensor *gumbel_noise(Tensor *like) {
  if (blocked(like)) return NULL;
  Tensor *drawn = tensor_empty(like->ndim, like->sizes, tensor_dtype(like));
  return t_neg(t_log(t_exponential_(drawn, 1, 0)));
}

static Tensor *one_hot(Tensor *soft, int64_t dim) {
  Tensor *best[2], *none = tensor_zeros(soft->ndim, soft->sizes, tensor_dtype(soft));
  t_max_dim(t_detach(soft), dim, true, best);
  return t_scatter_with(none, dim, best[1], tensor_wrapped_f(1), NULL);
}

/* Hard: one-hot vectors, with the gradient of the relaxed ones. */
Tensor *t_gumbel_softmax(Tensor *logits, double tau, bool hard, double eps, int64_t dim) {
  OP_ENTERED(t_gumbel_softmax, "gumbel_softmax", logits, tau, hard, eps, dim);
  if (blocked(logits)) return NULL;
  if (eps != 1e-10) warn_user("`eps` parameter is deprecated and has no effect.");
  int32_t mark = pool_mark();
  Tensor *soft = t_softmax(t_div_f(t_add(logits, gumbel_noise(logits)), tau), dim, DT_NONE);
  pool_release(mark, soft);
  if (!hard || failed()) return soft;
  return t_add(t_sub(one_hot(soft, dim), t_detach(soft)), soft);
}

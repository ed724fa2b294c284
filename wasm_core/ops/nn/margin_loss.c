/* Losses composed of other ops, like PyTorch's, and the two margin losses over classes, which have
 * kernels for values and gradients. */
#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/number.h"
#include "ground/poll.h"
#include "nn_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/nn.h"
#include "ops/view/copy.h"

static Tensor *number(double v) { return tensor_wrapped_f(v); }
static Tensor *hinge(Tensor *x) { return t_clamp_min(x, tensor_wrapped_i(0)); }

/* ------------------------------------------------------------ divergences and likelihoods */

Tensor *t_kl_div(Tensor *x, Tensor *target, Reduction r, bool log_target) {
  OP_ENTERED(t_kl_div, "kl_div", x, target, r, log_target);
  if (blocked(x, target) || r == REDUCE_BAD) return NULL;
  if (dtype_is_complex(tensor_dtype(x)) || dtype_is_complex(tensor_dtype(target)))
    return fail(ERR_RUNTIME, "kl_div: Complex inputs not supported.");
  if (!dtype_is_float(tensor_dtype(x)) || !dtype_is_float(tensor_dtype(target)))
    return fail(ERR_RUNTIME, "kl_div: Integral inputs not supported.");
  Tensor *loss = log_target ? t_mul(t_exp(target), t_sub(target, x))
                            : t_sub(t_xlogy(target, target), t_mul(target, x));
  if (r != REDUCE_BATCH_MEAN) return loss_reduced(loss, r);
  loss = t_sum_all(loss);
  return x->ndim ? t_div(loss, tensor_wrapped_i(x->sizes[0])) : loss;
}

/* exp x - t x, or x - t log(x + eps); `full` adds Stirling's t log t - t + log(2 pi t) / 2 where
 * t > 1. */
Tensor *t_poisson_nll_loss(Tensor *x, Tensor *target, bool log_input, bool full, double eps,
                           Reduction r) {
  OP_ENTERED(t_poisson_nll_loss, "poisson_nll_loss", x, target, log_input, full, eps, r);
  if (blocked(x, target) || r == REDUCE_BAD) return NULL;
  Tensor *loss = log_input ? t_sub(t_exp(x), t_mul(target, x))
                           : t_sub(x, t_mul(target, t_log(t_add_f(x, eps))));
  if (full) {
    Tensor *half_log = t_mul_f(t_log(t_mul_f(target, 2 * MATHS_PI)), 0.5);
    Tensor *stirling = t_add(t_sub(t_mul(target, t_log(target)), target), half_log);
    loss = t_add(loss,
                 t_masked_fill(stirling, t_le(target, tensor_wrapped_i(1)), tensor_wrapped_i(0)));
  }
  return loss_reduced(loss, r);
}

/* Whether var has one number for each row of x, or for its other dims but one. */
static Tensor *variance_for(Tensor *x, Tensor *var) {
  if (tensor_same_shape(x, var)) return var;
  if (x->ndim && sizes_equal(x->ndim - 1, x->sizes, var->ndim, var->sizes))
    return t_unsqueeze(var, -1);
  int64_t differing = 0;
  for (int i = 0; i < x->ndim && x->ndim == var->ndim; i++)
    differing += x->sizes[i] != var->sizes[i] ? var->sizes[i] : 0;
  return differing == 1 ? var : fail(ERR_VALUE, "var is of incorrect size");
}

static bool any_negative(Tensor *var) {
  Tensor *any = WITHOUT_GRAD(t_any(t_lt(var, tensor_wrapped_i(0)), ALL_DIMS, false));
  return any && tensor_get_i(any, 0) != 0;
}

Tensor *t_gaussian_nll_loss(Tensor *x, Tensor *target, Tensor *var, bool full, double eps,
                            Reduction r) {
  OP_ENTERED(t_gaussian_nll_loss, "gaussian_nll_loss", x, target, var, full, eps, r);
  if (blocked(x, target) || !var || r == REDUCE_BAD) return NULL;
  if (any_negative(var)) return fail(ERR_VALUE, "var has negative entry/entries");
  if (is_wrapped(var)) var = t_full_like(x, tensor_get_f(var, 0));
  var = variance_for(x, var);
  if (blocked(var)) return NULL;
  if (!dtype_is_float(tensor_dtype(var)))
    return fail(ERR_RUNTIME, "result type Float can't be cast to the desired output type %s",
                dtype_c_name(tensor_dtype(var)));
  Tensor *v = t_held_above(var, eps);
  Tensor *loss = t_mul_f(t_add(t_log(v), t_div(t_pow(t_sub(x, target), tensor_wrapped_i(2)), v)),
                         0.5);
  if (full) loss = t_add_f(loss, 0.5 * log(2 * MATHS_PI));
  return loss_reduced(loss, r);
}

Tensor *t_multilabel_soft_margin_loss(Tensor *x, Tensor *target, Tensor *weight, Reduction r) {
  OP_ENTERED(t_multilabel_soft_margin_loss, "multilabel_soft_margin_loss", x, target, weight, r);
  if (blocked(x, target) || r == REDUCE_BAD) return NULL;
  int64_t dim = x->ndim - 1;
  if (tensor_size(x, -1) < 0) return NULL;
  Tensor *yes = t_mul(target, t_log_sigmoid(x)),
         *no = t_mul(t_rsub(target, number(1), NULL), t_log_sigmoid(t_neg(x)));
  Tensor *loss = t_neg(t_add(yes, no));
  if (weight) loss = t_mul(loss, weight);
  loss = t_div(t_sum(loss, ONE_DIM(dim), false, DT_NONE), tensor_wrapped_i(x->sizes[dim]));
  return loss_reduced(loss, r);
}

/* ------------------------------------------------------------ embeddings and ranks */

Tensor *t_hinge_embedding_loss(Tensor *x, Tensor *target, double margin, Reduction r) {
  OP_ENTERED(t_hinge_embedding_loss, "hinge_embedding_loss", x, target, margin, r);
  if (blocked(x, target) || r == REDUCE_BAD) return NULL;
  Tensor *zero = t_zeros_like(x), *far = hinge(t_sub(t_full_like(x, margin), x));
  Tensor *apart = t_where(t_ne(target, tensor_wrapped_i(1)), far, zero);
  return loss_reduced(t_add(apart, t_where(t_ne(target, tensor_wrapped_i(-1)), x, zero)), r);
}

static bool check_cosine(Tensor *a, Tensor *b, Tensor *target) {
  if (target->ndim > 1)
    fail(ERR_RUNTIME, "0D or 1D target tensor expected, multi-target not supported");
  else if (a->ndim != target->ndim + 1)
    fail(ERR_RUNTIME,
         "%dD target tensor expects %dD input tensors, but found inputs with sizes %s and %s.",
         target->ndim, target->ndim + 1, shape_text(a), shape_text(b));
  return !failed();
}

Tensor *t_cosine_embedding_loss(Tensor *a, Tensor *b, Tensor *target, double margin, Reduction r) {
  OP_ENTERED(t_cosine_embedding_loss, "cosine_embedding_loss", a, b, target, margin, r);
  if (blocked(a, b) || !target || r == REDUCE_BAD || !check_cosine(a, b, target)) return NULL;
  Ints dim = ONE_DIM(target->ndim);
  Tensor *product = t_sum(t_mul(a, b), dim, false, DT_NONE);
  Tensor *size_a = t_add_f(t_sum(t_mul(a, a), dim, false, DT_NONE), 1e-12);
  Tensor *size_b = t_add_f(t_sum(t_mul(b, b), dim, false, DT_NONE), 1e-12);
  Tensor *cosine = t_div(product, t_sqrt(t_mul(size_a, size_b))), *zero = t_zeros_like(cosine);
  Tensor *same = t_where(t_eq(target, tensor_wrapped_i(1)), t_rsub(cosine, number(1), NULL), zero);
  Tensor *other = t_where(t_eq(target, tensor_wrapped_i(-1)), hinge(t_add_f(cosine, -margin)),
                          zero);
  return loss_reduced(t_add(same, other), r);
}

Tensor *t_margin_ranking_loss(Tensor *a, Tensor *b, Tensor *target, double margin, Reduction r) {
  OP_ENTERED(t_margin_ranking_loss, "margin_ranking_loss", a, b, target, margin, r);
  if (blocked(a, b) || !target || r == REDUCE_BAD) return NULL;
  if (a->ndim != b->ndim || a->ndim != target->ndim)
    return fail(ERR_RUNTIME,
                "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
                "input1: torch.Size(%s), input2: torch.Size(%s), target: torch.Size(%s) ",
                shape_text(a), shape_text(b), shape_text(target));
  return loss_reduced(hinge(t_add_f(t_mul(t_neg(target), t_sub(a, b)), margin)), r);
}

Tensor *t_triplet_margin_loss(Tensor *anchor, Tensor *positive, Tensor *negative, double margin,
                              double p, double eps, bool swap, Reduction r) {
  OP_ENTERED(t_triplet_margin_loss, "triplet_margin_loss", anchor, positive, negative, margin, p,
             eps, swap, r);
  if (blocked(anchor, positive) || !negative || r == REDUCE_BAD) return NULL;
  if (margin <= 0)
    return fail(ERR_VALUE, "margin must be greater than 0, got %s", number_text(margin));
  if (anchor->ndim != positive->ndim || anchor->ndim != negative->ndim)
    return fail(ERR_RUNTIME,
                "The anchor, positive, and negative tensors are expected to have the same number "
                "of dimensions, but got: anchor %dD, positive %dD, and negative %dD inputs",
                anchor->ndim, positive->ndim, negative->ndim);
  Tensor *near = t_pairwise_distance(anchor, positive, p, eps, false),
         *far = t_pairwise_distance(anchor, negative, p, eps, false);
  if (swap) far = t_minimum(far, t_pairwise_distance(positive, negative, p, eps, false));
  return loss_reduced(hinge(t_sub(t_add_f(near, margin), far)), r);
}

/* ------------------------------------------------------------ margins over classes */

/* Rows of `classes` scores. multi: the target has one class for each row; else a list of classes
 * that ends at the first -1. */
typedef struct {
  bool multi;
  double p, margin;
  int64_t rows, classes;
  const int64_t *target;
  const char *weight; /* of x's type, or NULL */
} Margins;

/* multi: sum over j != t of w[t] max(0, margin - x[t] + x[j])^p / classes; else the sum over t in
 * the list and j not in it of max(0, 1 - x[t] + x[j]) / classes. `value` gets a number for each
 * row, or `gx` g times the derivative. */
#define MARGIN_LOOPS(T)                                                                            \
  static T margin_pair_##T(const Margins *m, const T *x, T *gx, int64_t t, int64_t j, T g) {       \
    T z = (T)m->margin - x[t] + x[j], w = m->weight ? ((const T *)(const void *)m->weight)[t] : 1; \
    if (z <= 0) return 0;                                                                          \
    if (gx) {                                                                                      \
      T d = (m->p == 1 ? w : 2 * w * z) / (T)m->classes * g;                                       \
      gx[j] += d;                                                                                  \
      gx[t] -= d;                                                                                  \
    }                                                                                              \
    return w * (m->p == 1 ? z : z * z);                                                            \
  }                                                                                                \
  static void margins_##T(const Margins *m, const T *x, T *value, T *gx, const T *g,               \
                          int64_t g_step, T scale, unsigned char *listed) {                        \
    for (int64_t r = 0; r < m->rows && !poll_stops(m->classes * m->classes);                       \
         r++, x += m->classes) {                                                                   \
      const int64_t *t = m->target + (m->multi ? r : r * m->classes);                              \
      int64_t n = m->multi ? 1 : 0;                                                                \
      T sum = 0, incoming = g ? g[r * g_step] * scale : 0;                                         \
      while (!m->multi && n < m->classes && t[n] >= 0) n++;                                        \
      memset(listed, 0, (size_t)m->classes);                                                       \
      for (int64_t i = 0; i < n; i++) listed[t[i]] = 1;                                            \
      for (int64_t i = 0; i < n; i++)                                                              \
        for (int64_t j = 0; j < m->classes; j++)                                                   \
          if (!listed[j]) sum += margin_pair_##T(m, x, gx, t[i], j, incoming);                     \
      if (value) value[r] = sum / (T)m->classes;                                                   \
      if (gx) gx += m->classes;                                                                    \
    }                                                                                              \
  }
MARGIN_LOOPS(float)
MARGIN_LOOPS(double)

/* Whether all targets are classes, or -1 in a list, which ends it. */
static bool targets_within(Tensor *target, int64_t classes, bool multi) {
  target = t_contiguous(target);
  if (target && tensor_absent(target)) return true;
  for (int64_t i = 0; !failed() && i < target->numel; i++) {
    double t = tensor_get_f(target, i);
    if (t < (multi ? 0 : -1) || t >= (double)classes)
      fail(ERR_RUNTIME, "%s",
           multi ? "target out of range" : "argument #2 'target' is out of range");
  }
  return !failed();
}

/* Numbers of a node: 0 reduction, 1 multi, 2 p, 3 margin. Saved: x, target, weight. */
static bool margins_of(Margins *m, Tensor **x, Tensor **target, Tensor **weight,
                       unsigned char **listed) {
  *x = t_contiguous(*x);
  *target = tensor_settled(t_contiguous(*target));
  if (*weight) *weight = t_contiguous(elementwise_cast(*weight, tensor_dtype((*x))));
  if (failed()) return false;
  m->classes = (*x)->ndim ? (*x)->sizes[(*x)->ndim - 1] : 1;
  if (!targets_within(*target, m->classes, m->multi)) return false;
  m->rows = m->classes ? (*x)->numel / m->classes : 0;
  m->target = (const int64_t *)(const void *)tensor_data(*target);
  m->weight = *weight ? tensor_data(*weight) : NULL;
  *listed = scratch_array(m->classes, sizeof **listed);
  return !failed();
}

static void margins_run(const Margins *m, DType d, const char *x, char *value, char *gx,
                        const char *g, int64_t g_step, double scale, unsigned char *listed) {
  if (d == DT_F32)
    margins_float(m, (const float *)(const void *)x, (float *)(void *)value, (float *)(void *)gx,
                  (const float *)(const void *)g, g_step, (float)scale, listed);
  else
    margins_double(m, (const double *)(const void *)x, (double *)(void *)value,
                   (double *)(void *)gx, (const double *)(const void *)g, g_step, scale, listed);
}

/* The pairs with a term: `index` is (rows, n) of targets, 0 where there are fewer, and `factor`
 * (rows, n, classes) is the target's weight where x[j] counts against it, else 0. */
static bool margin_pairs(const Margins *m, DType d, int64_t n, Tensor **index, Tensor **factor,
                         unsigned char *listed) {
  *index = tensor_zeros(2, (const int64_t[]){m->rows, n}, DT_I64);
  *factor = tensor_zeros(3, (const int64_t[]){m->rows, n, m->classes}, d);
  if (failed() || tensor_absent(*index)) return !failed();
  int64_t *at = (int64_t *)(void *)tensor_data(*index);
  char *to = tensor_data(*factor);
  for (int64_t r = 0; r < m->rows && !poll_stops(m->classes * m->classes); r++) {
    const int64_t *t = m->target + r * n;
    memset(listed, 0, (size_t)m->classes);
    for (int64_t i = 0; i < n && t[i] >= 0; i++) listed[t[i]] = 1;
    for (int64_t i = 0; i < n && t[i] >= 0; i++) {
      at[r * n + i] = t[i];
      double weight = m->weight ? element_load_f(m->weight + t[i] * dtype_bytes(d), d) : 1;
      for (int64_t j = 0; j < m->classes; j++)
        if (!listed[j])
          element_store_f(to + ((r * n + i) * m->classes + j) * dtype_bytes(d), d, weight);
    }
  }
  return true;
}

/* The gradient by x, composed of other ops, for a gradient that is differentiated in turn, unlike
 * PyTorch's. */
static Tensor *margins_composed(const Margins *m, Tensor *x, Tensor *index, Tensor *factor,
                                Tensor *g, double scale) {
  Tensor *rows = t_reshape(x, 2, (const int64_t[]){m->rows, m->classes});
  Tensor *z = t_sub(t_add_f(t_unsqueeze(rows, 1), m->margin),
                    t_unsqueeze(t_gather(rows, 1, index), 2));
  Tensor *slope = t_mul(factor,
                        m->p == 1 ? t_logical_not(t_le(z, number(0))) : t_mul(hinge(z), number(2)));
  if (g->ndim) g = t_reshape(g, 3, (const int64_t[]){g->numel, 1, 1});
  slope = t_mul(slope, t_mul(g, number(scale / (double)m->classes)));
  Tensor *gx = t_scatter_add(t_sum(slope, ONE_DIM(1), false, DT_NONE), 1, index,
                             t_neg(t_sum(slope, ONE_DIM(2), false, DT_NONE)));
  return t_reshape(gx, x->ndim, x->sizes);
}

static Tensor *margins_gradient(Node *n, Tensor *g) {
  Margins m = {.multi = n->numbers[1].i, .p = n->numbers[2].f, .margin = n->numbers[3].f};
  Tensor *x = saved_tensor(n, 0), *rows = x, *target = saved_tensor(n, 1),
         *weight = m.multi ? saved_tensor(n, 2) : NULL;
  if (blocked(x, target) || !g) return NULL;
  unsigned char *listed;
  bool composed = tensor_tracked(g) || tensor_tracked(x), ready = false;
  double scale = 1;
  Tensor *gx = NULL, *index = NULL, *factor = NULL;
  WITHOUT_GRAD_BLOCK {
    ready = margins_of(&m, &rows, &target, &weight, &listed);
    if (n->numbers[0].i == REDUCE_MEAN) scale = 1 / (double)m.rows;
    if (ready && composed)
      ready = margin_pairs(&m, tensor_dtype(x), m.multi ? 1 : m.classes, &index, &factor, listed);
    else if (ready) {
      g = t_contiguous(g);
      gx = tensor_zeros(x->ndim, x->sizes, tensor_dtype(x));
      if (gx && g && !tensor_absent(gx))
        margins_run(&m, tensor_dtype(x), tensor_data(rows), NULL, tensor_data(gx), tensor_data(g),
                    n->numbers[0].i == REDUCE_NONE ? 1 : 0, scale, listed);
    }
  }
  return ready && composed ? margins_composed(&m, x, index, factor, g, scale) : gx;
}
GRAD(MultiMarginLossBackward0, "self target weight | reduction:int -:int p:scalar margin:scalar")
{ gi[0] = margins_gradient(n, g[0]); }
GRAD(MultilabelMarginLossBackward0, "self target is_target | reduction:int")
{ gi[0] = margins_gradient(n, g[0]); }

/* 1 for the classes that are targets of their row, else 0. */
static Tensor *listed_targets(const Margins *m, Tensor *x) {
  Tensor *y = tensor_zeros(x->ndim, x->sizes, tensor_dtype(x));
  char *at = y ? tensor_data(y) : NULL;
  int64_t width = dtype_bytes(tensor_dtype(x));
  for (int64_t r = 0; at && r < m->rows && !tensor_absent(y); r++)
    for (int64_t i = 0; i < m->classes; i++) {
      int64_t t = m->target[r * m->classes + i];
      if (t < 0) break;
      element_store_f(at + (r * m->classes + t) * width, tensor_dtype(x), 1);
    }
  return y;
}

static Tensor *margins_loss(Margins *m, Tensor *x, Tensor *target, Tensor *weight, Reduction r) {
  Node *n = node_new(m->multi ? &MultiMarginLossBackward0 : &MultilabelMarginLossBackward0, 3, 4, x,
                     NULL);
  save(n, 0, x);
  save(n, 1, target);
  save(n, 2, weight);
  num_i(n, 0, r);
  num_i(n, 1, m->multi);
  num_f(n, 2, m->p);
  num_f(n, 3, m->margin);
  unsigned char *listed;
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    if (margins_of(m, &x, &target, &weight, &listed))
      y = tensor_empty(x->ndim > 1                ? 1
                       : target->ndim && m->multi ? 1
                                                  : 0,
                       &m->rows, tensor_dtype(x));
    if (y && !tensor_absent(y))
      margins_run(m, tensor_dtype(x), tensor_data(x), tensor_data(y), NULL, NULL, 0, 1, listed);
    if (y && n && !m->multi) save(n, 2, listed_targets(m, x));
    y = loss_reduced(y, r);
  }
  return set_history(y, n);
}

static bool check_margin_types(const char *kernel, Tensor *x, Tensor *target) {
  if (!dtype_check_wide_kernel(kernel, tensor_dtype(x))) return false;
  if (target->dtype != DT_I64)
    fail(ERR_RUNTIME, "expected scalar type Long but found %s", legacy(target));
  return !failed();
}

Tensor *t_multi_margin_loss(Tensor *x, Tensor *target, double p, double margin, Tensor *weight,
                            Reduction r) {
  OP_ENTERED(t_multi_margin_loss, "multi_margin_loss", x, target, p, margin, weight, r);
  if (blocked(x, target) || r == REDUCE_BAD) return NULL;
  if (p != 1 && p != 2) return fail(ERR_VALUE, "only p == 1 and p == 2 supported");
  if (weight && weight->ndim != 1) return fail(ERR_VALUE, "weight must be one-dimensional");
  if (x->ndim > 2 || x->numel == 0)
    return fail(ERR_RUNTIME,
                "Expected non-empty vector or matrix with optional 0-dim batch size, but got: %s",
                shape_text(x));
  int64_t classes = x->ndim ? x->sizes[x->ndim - 1] : 1, rows = x->ndim == 2 ? x->sizes[0] : 1;
  if (target->ndim > 1 || target->numel != rows)
    return fail(
        ERR_RUNTIME,
        "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
        "samples (batch size). Expected target size [%lld], but got %s. Input has shape %s.",
        (Shown)rows, shape_text(target), shape_text(x));
  if (weight && weight->numel != classes)
    return fail(ERR_RUNTIME, "inconsistent weight size, expected %lld but got %s", (Shown)classes,
                shape_text(weight));
  if (!check_margin_types("multi_margin_loss_cpu_kernel", x, target) ||
      !nn_check_constant("multi_margin_loss", "weight", weight))
    return NULL;
  Margins m = {.multi = true, .p = p, .margin = margin};
  return margins_loss(&m, x, target, weight, r);
}

Tensor *t_multilabel_margin_loss(Tensor *x, Tensor *target, Reduction r) {
  OP_ENTERED(t_multilabel_margin_loss, "multilabel_margin_loss", x, target, r);
  if (blocked(x, target) || r == REDUCE_BAD) return NULL;
  if (x->ndim > 2 || x->numel == 0)
    return fail(ERR_RUNTIME,
                "Expected non-empty vector or matrix with optional 0-dim batch size, but got: %s",
                shape_text(x));
  if (!tensor_same_shape(x, target))
    return fail(ERR_RUNTIME, "inconsistent target size: %s for input of size: %s",
                shape_text(target), shape_text(x));
  int64_t classes = x->ndim ? x->sizes[x->ndim - 1] : 1;
  if (!targets_within(target, classes, false) ||
      !check_margin_types("multilabel_margin_loss_forward_out_frame", x, target))
    return NULL;
  Margins m = {.p = 1, .margin = 1};
  return margins_loss(&m, x, target, NULL, r);
}

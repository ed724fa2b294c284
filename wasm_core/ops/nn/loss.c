/* Losses with gradients of their own: nll_loss and cross_entropy, and those that compare two
 * tensors element by element (mse, smooth_l1, huber, binary_cross_entropy with and without
 * logits, soft_margin).
 *
 * Each saves its operands and computes one number for each element (or row) before it reduces, so
 * the reductions share one path. Losses that PyTorch composes of other ops are in margin_loss.c. */
#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "nn_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/nn.h"

/* ------------------------------------------------------------ reductions */

static Reduction legacy_reduction(const Call *c, int size_average, int reduce) {
  static const char *const names[] = {"none", "mean", "sum"};
  bool average = !arg_given(c, size_average) || arg_bool(c, size_average);
  bool reduced = !arg_given(c, reduce) || arg_bool(c, reduce);
  Reduction r = !reduced ? REDUCE_NONE : average ? REDUCE_MEAN : REDUCE_SUM;
  warn_user("size_average and reduce args will be deprecated, please use reduction='%s' instead.",
            names[r]);
  return r;
}

__attribute__((format(printf, 5, 0))) static Reduction
named_reduction(const Call *c, int size_average, int reduce, int reduction, const char *refusal) {
  const char *name = arg_str(c, reduction);
  if (size_average >= 0 && (arg_given(c, size_average) || arg_given(c, reduce)))
    return legacy_reduction(c, size_average, reduce);
  if (name && strcmp(name, "mean") == 0) return REDUCE_MEAN;
  if (name && strcmp(name, "sum") == 0) return REDUCE_SUM;
  if (name && strcmp(name, "none") == 0) return REDUCE_NONE;
  if (name && strcmp(name, "elementwise_mean") == 0) {
    warn_user("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.");
    return REDUCE_MEAN;
  }
  fail(ERR_VALUE, refusal, name ? name : "None");
  return REDUCE_BAD;
}

Reduction arg_reduction(const Call *c, int size_average, int reduce, int reduction) {
  return named_reduction(c, size_average, reduce, reduction,
                         "%s is not a valid value for reduction");
}

/* with a shorter error message */
Reduction arg_short_reduction(const Call *c, int size_average, int reduce, int reduction) {
  return named_reduction(c, size_average, reduce, reduction, "%s is not valid");
}

/* from kl_div's arguments 2 to 4 */
Reduction arg_kl_reduction(const Call *c) {
  const char *name = arg_str(c, 4);
  bool legacy = arg_given(c, 2) || arg_given(c, 3);
  if (!legacy && name && strcmp(name, "batchmean") == 0) return REDUCE_BATCH_MEAN;
  if (!legacy && name && strcmp(name, "mean") == 0)
    warn_user("reduction: 'mean' divides the total loss by both the batch size and the support "
              "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
              "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
              "major release.");
  return arg_reduction(c, 2, 3, 4);
}

Reduction arg_numbered_reduction(const Call *c, int k) {
  static const Reduction known[] = {REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM};
  int64_t given = arg_int(c, k);
  return given >= 0 && given < 3 ? known[given] : REDUCE_NONE;
}

Tensor *loss_reduced(Tensor *loss, Reduction r) {
  return r == REDUCE_MEAN   ? t_mean(loss, ALL_DIMS, false, DT_NONE)
         : r == REDUCE_NONE ? loss
                            : t_sum_all(loss);
}

bool nn_check_constant(const char *op, const char *argument, const Tensor *t) {
  if (!t || !grad_mode || !recording || !tensor_requires_grad(t)) return !failed();
  fail(ERR_RUNTIME,
       "The function '%s' is not differentiable with respect to argument '%s'. This input cannot "
       "have requires_grad True.",
       op, argument);
  return false;
}

/* Reduces without recording, for ops that record themselves. */
static Tensor *reduced_plain(Tensor *values, Reduction r) {
  return WITHOUT_GRAD(loss_reduced(values, r));
}

/* ------------------------------------------------------------ nll_loss */

/* x is (outer, classes, inner), targets are (outer, inner); all contiguous. */
typedef struct {
  int64_t outer, classes, inner, ignore_index;
  const int64_t *target;
  const char *weight; /* of x's type; may be NULL */
} Picks;

static bool check_nll(Tensor *x, Tensor *target, Tensor *weight) {
  if (!nn_check_constant("nll_loss_forward", "weight", weight)) return false;
  if (target->dtype != DT_I64 && target->dtype != DT_U8)
    fail(ERR_RUNTIME, "expected target dtype to be Long or Byte, but got %s", legacy(target));
  else if (!dtype_is_float(tensor_dtype(x)))
    dtype_no_kernel(x->ndim > 2 ? "nll_loss2d_out_frame" : "nll_loss_out_frame", tensor_dtype(x));
  else if (weight && weight->dtype != x->dtype)
    fail(ERR_RUNTIME, "expected scalar type %s but found %s", legacy(x), legacy(weight));
  return !failed();
}

static bool check_nll_flat(Tensor *x, Tensor *target, Tensor *weight) {
  int64_t classes = x->sizes[x->ndim - 1];
  if (target->ndim > 1)
    fail(ERR_RUNTIME, "0D or 1D target tensor expected, multi-target not supported");
  else if (x->ndim == 1 && target->numel != 1)
    fail(ERR_VALUE, "For 1D input, 1D target must have size 1, but got target size: %lld",
         (Shown)target->numel);
  else if (weight && (weight->ndim != 1 || weight->numel != classes))
    fail(ERR_RUNTIME,
         "weight tensor should be defined either for all %lld classes or no classes but got weight "
         "tensor of shape: %s",
         (Shown)classes, shape_text(weight));
  return !failed();
}

static bool check_nll_2d(Tensor *x, Tensor *target, Tensor *weight) {
  if (target->ndim != 3)
    fail(ERR_RUNTIME,
         "only batches of spatial targets supported (3D tensors) but got targets of dimension: %d",
         target->ndim);
  else if (x->sizes[0] != target->sizes[0] || x->sizes[2] != target->sizes[1] ||
           x->sizes[3] != target->sizes[2])
    fail(ERR_RUNTIME, "size mismatch (got input: %s , target: %s", shape_text(x),
         shape_text(target));
  else if (weight && weight->numel != x->sizes[1])
    fail(ERR_RUNTIME, "weight tensor should be defined either for all or no classes");
  return !failed();
}

static bool picks_of(Picks *p, int ndim, const int64_t *sizes, Tensor **target, Tensor **weight,
                     int64_t ignore_index) {
  *target = t_contiguous(elementwise_cast(*target, DT_I64));
  if (*weight) *weight = t_contiguous(*weight);
  if (failed()) return false;
  *p = (Picks){.outer = ndim == 1 ? 1 : sizes[0],
               .classes = sizes[ndim == 1 ? 0 : 1],
               .inner = 1,
               .ignore_index = ignore_index};
  for (int i = 2; i < ndim; i++) p->inner *= sizes[i];
  p->target = (const int64_t *)(const void *)tensor_data(*target);
  p->weight = *weight ? tensor_data(*weight) : NULL;
  return true;
}

/* values[i] = -weight[t] x[i, t]. Returns the sum of the weights, or -1 for a target out of
 * range. */
#define NLL_VALUES(T)                                                                             \
  static double nll_values_##T(const Picks *p, const T *x, T *values) {                           \
    const T *weight = (const T *)(const void *)p->weight;                                         \
    double total = 0;                                                                             \
    for (int64_t o = 0, at = 0; o < p->outer; o++)                                                \
      for (int64_t i = 0; i < p->inner; i++, at++) {                                              \
        int64_t t = p->target[at];                                                                \
        values[at] = 0;                                                                           \
        if (t == p->ignore_index) continue;                                                       \
        if (t < 0 || t >= p->classes) {                                                           \
          fail(ERR_INDEX, "Target %lld is out of bounds.", (Shown)t);                             \
          return -1;                                                                              \
        }                                                                                         \
        T w = weight ? weight[t] : 1;                                                             \
        values[at] = -w * x[(o * p->classes + t) * p->inner + i];                                 \
        total += (double)w;                                                                       \
      }                                                                                           \
    return total;                                                                                 \
  }                                                                                               \
  static void nll_gradient_##T(const Picks *p, const T *g, int64_t g_step, double scale, T *gx) { \
    const T *weight = (const T *)(const void *)p->weight;                                         \
    for (int64_t o = 0, at = 0; o < p->outer; o++)                                                \
      for (int64_t i = 0; i < p->inner; i++, at++) {                                              \
        int64_t t = p->target[at];                                                                \
        if (t == p->ignore_index || t < 0 || t >= p->classes) continue;                           \
        double w = weight ? (double)weight[t] : 1;                                                \
        gx[(o * p->classes + t) * p->inner + i] = (T)(-w * scale * (double)g[at * g_step]);       \
      }                                                                                           \
  }
NLL_VALUES(float)
NLL_VALUES(double)

/* The loss of the picks; *total gets the sum of the weights. Not recorded. */
static Tensor *nll_plain(const Picks *p, Tensor *x, Tensor *target, Reduction r, double *total) {
  x = t_contiguous(x);
  Tensor *values = failed() ? NULL
                            : tensor_empty(x->ndim > 1 ? target->ndim : 0, target->sizes,
                                           tensor_dtype(x));
  if (!values) return NULL;
  if (tensor_absent(values)) *total = 1;
  else if (x->dtype == DT_F32)
    *total = nll_values_float(p, (const float *)(const void *)tensor_data(x),
                              (float *)(void *)tensor_data(values));
  else
    *total = nll_values_double(p, (const double *)(const void *)tensor_data(x),
                               (double *)(void *)tensor_data(values));
  if (failed() || r == REDUCE_NONE) return failed() ? NULL : values;
  Tensor *sum = reduced_plain(values, REDUCE_SUM);
  if (!sum || r == REDUCE_SUM) return sum;
  if (!tensor_absent(sum)) tensor_set_f(sum, 0, tensor_get_f(sum, 0) / *total);
  return sum;
}

/* The numbers of a node of nll_loss: 0 reduction, 1 ignore_index, 2 total weight, 3 rank of x, 4...
 * its sizes. */
enum { NLL_NUMBERS = 8 };
typedef struct {
  Reduction r;
  int64_t ignore_index;
  double total;
  int ndim;
  int64_t sizes[4];
} NllShape;

static void nll_note(Node *n, const NllShape *s) {
  num_i(n, 0, s->r);
  num_i(n, 1, s->ignore_index);
  num_f(n, 2, s->total);
  num_i(n, 3, s->ndim);
  for (int i = 0; i < 4; i++) num_i(n, 4 + i, i < s->ndim ? s->sizes[i] : 0);
}

static NllShape nll_noted(const Node *n) {
  NllShape s = {.r = (Reduction)n->numbers[0].i,
                .ignore_index = n->numbers[1].i,
                .total = n->numbers[2].f,
                .ndim = (int)n->numbers[3].i};
  for (int i = 0; i < 4; i++) s.sizes[i] = n->numbers[4 + i].i;
  return s;
}

static Tensor *nll_primitive(Tensor *x, Tensor *target, Tensor *weight, int64_t ignore_index,
                             Reduction r);
static Tensor *nll_backward(Tensor *g, Tensor *target, Tensor *weight, const NllShape *s);
static Tensor *nll_forward(Tensor *x, Tensor *target, Tensor *weight, int64_t ignore_index,
                           Reduction r, double *total);

/* The gradient is linear in g, and its adjoint is the loss itself. */
GRAD(NllLossBackwardBackward0, "target weight | reduction:int ignore_index:int")
{
  NllShape s = nll_noted(n);
  gi[0] = nll_primitive(g[0], saved_tensor(n, 0), saved_tensor(n, 1), s.ignore_index, s.r);
}
GRAD(NllLoss2DBackwardBackward0, "target weight | reduction:int ignore_index:int")
{ grad_NllLossBackwardBackward0(n, g, gi); }

/* The gradient as PyTorch's op. x and total are shown to the host alone. */
static Tensor *nll_gradient(Tensor *g, Tensor *x, Tensor *target, Tensor *weight, Tensor *total,
                            const NllShape *s) {
  const Reduction r = s->r;
  const int64_t ignore_index = s->ignore_index;
  OP_ENTERED_AS(nll_gradient(g, x, target, weight, total, s),
                s->ndim < 4 ? "nll_loss_backward" : "nll_loss2d_backward", g, x, target, weight, r,
                ignore_index, total);
  return nll_backward(g, target, weight, s);
}

/* gx[i, t] = -weight[t] g[i], divided by the total weight for the mean. */
static Tensor *nll_backward(Tensor *g, Tensor *target, Tensor *weight, const NllShape *s) {
  if (blocked(g, target)) return NULL;
  Node *n = node_new(s->ndim < 4 ? &NllLossBackwardBackward0 : &NllLoss2DBackwardBackward0, 2,
                     NLL_NUMBERS, g, NULL);
  nll_note(n, s);
  save(n, 0, target);
  save(n, 1, weight);
  Picks p;
  if (!picks_of(&p, s->ndim, s->sizes, &target, &weight, s->ignore_index))
    return set_history(NULL, n);
  if (weight) weight = elementwise_cast(weight, tensor_dtype(g));
  g = t_contiguous(t_detach(g));
  Tensor *gx = failed() ? NULL : tensor_zeros(s->ndim, s->sizes, tensor_dtype(g));
  if (!gx || tensor_absent(gx)) return set_history(gx, n);
  if (weight) p.weight = tensor_data(weight);
  double scale = s->r == REDUCE_MEAN ? 1 / s->total : 1;
  int64_t step = s->r == REDUCE_NONE ? 1 : 0;
  const char *from = tensor_data(g);
  if (g->dtype == DT_F32)
    nll_gradient_float(&p, (const float *)(const void *)from, step, scale,
                       (float *)(void *)tensor_data(gx));
  else
    nll_gradient_double(&p, (const double *)(const void *)from, step, scale,
                        (double *)(void *)tensor_data(gx));
  return set_history(gx, n);
}

GRAD(NllLossBackward0, "target weight self total_weight | reduction:int ignore_index:int")
{
  NllShape s = nll_noted(n);
  gi[0] = nll_gradient(g[0], by_ops ? saved_tensor(n, 2) : NULL, saved_tensor(n, 0),
                       saved_tensor(n, 1), by_ops ? saved_tensor(n, 3) : NULL, &s);
}
GRAD(NllLoss2DBackward0, "target weight self total_weight | reduction:int ignore_index:int")
{ grad_NllLossBackward0(n, g, gi); }

static Tensor *nll_primitive(Tensor *x, Tensor *target, Tensor *weight, int64_t ignore_index,
                             Reduction r) {
  double total;
  return nll_forward(x, target, weight, ignore_index, r, &total);
}

static bool check_nll_all(Tensor *x, Tensor *target, Tensor *weight) {
  return (x->ndim == 4 ? check_nll_2d : check_nll_flat)(x, target, weight) &&
         check_nll(x, target, weight);
}

/* The row of the op, for an x of rank 1 or 2, or of rank 4. */
void t_nll_forward(Tensor *x, Tensor *target, Tensor *weight, Reduction r, int64_t ignore_index,
                   bool image, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  const char *op = image ? "nll_loss2d_forward" : "nll_loss_forward";
  OP_ENTERED_AS(t_nll_forward(x, target, weight, r, ignore_index, image, out), op, x, target,
                weight, r, ignore_index, out);
  if (blocked(x, target)) return;
  if (image ? x->ndim != 4 : x->ndim != 1 && x->ndim != 2)
    fail(ERR_RUNTIME,
         image ? "only batches of spatial inputs supported (4D tensors), but got input "
                 "of dimension: %d"
               : "input tensor should be 1D or 2D, but got %d dimensions",
         x->ndim);
  else if (!image && x->ndim == 2 && (target->ndim ? target->sizes[0] : 1) != x->sizes[0])
    fail(ERR_RUNTIME, "size mismatch (got input: %s, target: %s)", shape_text(x),
         shape_text(target));
  if (failed()) return;
  double total = 0;
  out[0] = nll_forward(x, target, weight, ignore_index, r, &total);
  if (out[0]) out[1] = tensor_number(r == REDUCE_NONE ? 0 : total, tensor_dtype(x));
}

Tensor *t_nll_backward(Tensor *g, Tensor *x, Tensor *target, Tensor *weight, Reduction r,
                       int64_t ignore_index, Tensor *total, bool image) {
  IN_FLOAT(t_nll_backward(g, x, target, weight, r, ignore_index, total, image), g, x, weight,
           total);
  if (blocked(g, x, target) || !total) return NULL;
  NllShape s = {.r = r, .ignore_index = ignore_index, .ndim = x->ndim};
  if (image ? x->ndim != 4 : x->ndim != 1 && x->ndim != 2)
    return fail(ERR_RUNTIME, "input tensor should be %s", image ? "4D" : "1D or 2D");
  if (!check_nll_all(x, target, weight)) return NULL;
  if (!image && x->ndim == 2 && (target->ndim ? target->sizes[0] : 1) != x->sizes[0])
    return fail(ERR_RUNTIME, "size mismatch (got input: %s, target: %s)", shape_text(x),
                shape_text(target));
  if (total->numel != 1)
    return fail(ERR_RUNTIME,
                "expected total_weight to be a  single element tensor, got: %s (%lld elements)",
                shape_text(total), (Shown)total->numel);
  if (r == REDUCE_NONE && x->ndim > 1 ? !tensor_same_shape(g, target) : g->numel != 1)
    return fail(ERR_RUNTIME, "expected a gradient of the loss, but got one of shape %s",
                shape_text(g));
  if (g->dtype != x->dtype)
    return fail(ERR_RUNTIME, "expected scalar type %s but found %s", legacy(x), legacy(g));
  memcpy(s.sizes, x->sizes, (size_t)x->ndim * sizeof *s.sizes);
  s.total = tensor_absent(total) ? 1 : tensor_get_f(total, 0);
  return nll_gradient(g, x, target, weight, total, &s);
}

/* nll_loss of an x of rank 1, 2 or 4; *total gets the sum of the weights of the targets that
 * count. */
static Tensor *nll_forward(Tensor *x, Tensor *target, Tensor *weight, int64_t ignore_index,
                           Reduction r, double *total) {
  IN_FLOAT(nll_forward(x, target, weight, ignore_index, r, total), x, weight);
  if (blocked(x, target) || r == REDUCE_BAD) return NULL;
  if (!check_nll_all(x, target, weight)) return NULL;
  Node *n = node_new(x->ndim < 4 ? &NllLossBackward0 : &NllLoss2DBackward0, 4, NLL_NUMBERS, x,
                     NULL);
  save(n, 2, x);
  save(n, 0, target);
  save(n, 1, weight);
  NllShape s = {.r = r, .ignore_index = ignore_index, .ndim = x->ndim};
  memcpy(s.sizes, x->sizes, (size_t)x->ndim * sizeof *s.sizes);
  Picks p;
  Tensor *y = NULL;
  if (picks_of(&p, x->ndim, x->sizes, &target, &weight, ignore_index))
    y = nll_plain(&p, t_detach(x), target, r, &s.total);
  nll_note(n, &s);
  if (n) save(n, 3, tensor_number(r == REDUCE_NONE ? 0 : s.total, tensor_dtype(x)));
  *total = s.total;
  return set_history(y, n);
}

static int64_t product(int n, const int64_t *sizes) {
  int64_t p = 1;
  for (int i = 0; i < n; i++) p *= sizes[i];
  return p;
}

/* Ranks 3, 5, ...: the positions become one row of an image. */
static Tensor *nll_spread(Tensor *x, Tensor *target, Tensor *weight, int64_t ignore_index,
                          Reduction r) {
  int64_t out[MAX_DIM], inner = product(x->ndim - 2, x->sizes + 2);
  out[0] = x->sizes[0];
  memcpy(out + 1, x->sizes + 2, (size_t)(x->ndim - 2) * sizeof *out);
  if (!sizes_equal(x->ndim - 1, out, target->ndim, target->sizes))
    return fail(ERR_RUNTIME, "Expected target size %s, got %s", sizes_text(x->ndim - 1, out),
                shape_text(target));
  int ndim = x->ndim;
  x = t_reshape(x, 4, (const int64_t[]){x->sizes[0], x->sizes[1], 1, inner});
  target = t_reshape(target, 3, (const int64_t[]){out[0], 1, inner});
  Tensor *y = nll_primitive(x, target, weight, ignore_index, r);
  return y && r == REDUCE_NONE ? t_reshape(y, ndim - 1, out) : y;
}

Tensor *t_nll_loss(Tensor *x, Tensor *target, Tensor *weight, int64_t ignore_index, Reduction r) {
  OP_ENTERED_AS(t_nll_loss(x, target, weight, ignore_index, r), "nll_loss", x, target, weight,
                (const char *){NULL}, ignore_index, (const char *){NULL}, r);
  if (blocked(x, target) || r == REDUCE_BAD) return NULL;
  if (x->ndim < 1) return fail(ERR_VALUE, "Expected 1 or more dimensions (got %d)", x->ndim);
  int64_t count = target->ndim ? target->sizes[0] : 0;
  if (x->ndim != 1 && x->sizes[0] != count)
    return fail(ERR_VALUE, "Expected input batch_size (%lld) to match target batch_size (%lld).",
                (Shown)x->sizes[0], (Shown)count);
  if (x->ndim == 1 || x->ndim == 2 || x->ndim == 4)
    return nll_primitive(x, target, weight, ignore_index, r);
  return nll_spread(x, target, weight, ignore_index, r);
}

/* ------------------------------------------------------------ cross_entropy */

/* (C) as (1, C, 1, ...), to multiply log-probabilities of rank ndim. */
static Tensor *class_weight(Tensor *weight, int ndim, int64_t class_dim) {
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < ndim; i++) sizes[i] = i == class_dim ? weight->numel : 1;
  return t_reshape(weight, ndim, sizes);
}

static Tensor *cross_entropy_of_probabilities(Tensor *x, Tensor *target, Tensor *weight,
                                              Reduction r, double smoothing) {
  int64_t dim = x->ndim == 1 ? 0 : 1, classes = x->ndim ? x->sizes[dim] : 1;
  if (!dtype_is_float(tensor_dtype(target)))
    return fail(ERR_RUNTIME,
                "Expected floating point type for target with class probabilities, got %s",
                legacy(target));
  if (weight && (weight->ndim != 1 || weight->numel != classes))
    return fail(ERR_RUNTIME,
                "cross_entropy: weight tensor should be defined either for all %lld classes or no "
                "classes but got weight tensor of shape: %s",
                (Shown)classes, shape_text(weight));
  int ndim = x->ndim;
  int64_t rows = classes ? x->numel / classes : 0;
  x = t_log_softmax(x, dim, DT_NONE);
  if (smoothing > 0) target = t_add_f(t_mul_f(target, 1 - smoothing), smoothing / (double)classes);
  x = t_mul(x, target);
  if (weight) x = t_mul(x, class_weight(weight, ndim, dim));
  if (r == REDUCE_NONE) return t_neg(t_sum(x, ONE_DIM(dim), false, DT_NONE));
  Tensor *y = t_neg(t_sum_all(x));
  return r == REDUCE_SUM ? y : t_div_f(y, (double)rows);
}

/* The part of the loss for label smoothing, over all classes: -sum over classes of weight *
 * log-probability, where the target is not ignored. */
static Tensor *smooth_part(Tensor *x, Tensor *target, Tensor *weight, int64_t ignore_index,
                           Reduction r) {
  int64_t dim = x->ndim == 1 ? 0 : 1;
  Tensor *wide = weight ? t_mul(x, class_weight(weight, x->ndim, dim)) : x;
  Tensor *loss = t_neg(t_sum(wide, ONE_DIM(dim), false, DT_NONE));
  Tensor *ignored = t_eq(target, tensor_wrapped_i(ignore_index));
  if (blocked(loss, ignored)) return NULL;
  if (!tensor_same_shape(loss, ignored)) ignored = t_reshape(ignored, loss->ndim, loss->sizes);
  loss = t_masked_fill(loss, ignored, tensor_wrapped_f(0));
  if (r != REDUCE_MEAN) return loss_reduced(loss, r);
  Tensor *counted = t_logical_not(ignored), *total = counted;
  if (weight && !failed()) {
    Tensor *safe = t_masked_fill(t_reshape(t_to(target, DT_I64), ignored->ndim, ignored->sizes),
                                 ignored, tensor_wrapped_i(0));
    total = t_mul(t_reshape(t_index_select(weight, 0, t_reshape(safe, 1, (const int64_t[]){-1})),
                            ignored->ndim, ignored->sizes),
                  counted);
  }
  return t_div(t_sum_all(loss), t_sum_all(total));
}

Tensor *t_cross_entropy(Tensor *x, Tensor *target, Tensor *weight, int64_t ignore_index,
                        Reduction r, double smoothing) {
  OP_ENTERED(t_cross_entropy, "cross_entropy", x, target, weight, ignore_index, r, smoothing);
  if (blocked(x, target) || r == REDUCE_BAD) return NULL;
  bool same = tensor_same_shape(x, target);
  if (same && ignore_index >= 0)
    return fail(ERR_RUNTIME, "ignore_index is not supported for floating point target");
  if (same || smoothing != 0) {
    if (smoothing < 0 || smoothing > 1)
      return fail(ERR_RUNTIME, "label_smoothing must be between 0.0 and 1.0. Got: %g", smoothing);
  }
  if (same) return cross_entropy_of_probabilities(x, target, weight, r, smoothing);
  int64_t dim = x->ndim == 1 ? 0 : 1, classes = x->ndim > dim ? x->sizes[dim] : 1;
  x = t_log_softmax(x, dim, DT_NONE);
  Tensor *hard = t_nll_loss(x, target, weight, ignore_index, r);
  if (smoothing <= 0 || failed()) return hard;
  Tensor *soft = smooth_part(x, target, weight, ignore_index, r);
  return t_add(t_mul_f(hard, 1 - smoothing), t_mul_f(soft, smoothing / (double)classes));
}

/* The shape of logits: rows of x, classes, and the weight's dimensions between. */
typedef struct {
  int rows, ndim;
  int64_t sizes[MAX_DIM];
} Logits;

static bool logits_shape(const Tensor *x, const Tensor *w, const Tensor *bias, Logits *l) {
  if (x->ndim < 1 || x->ndim > 2)
    fail(ERR_RUNTIME, "expected input with dimensionality 1 or 2, got %d", x->ndim);
  else if (w->ndim < 2)
    fail(ERR_RUNTIME, "expected linear_weight with dimensionality at least 2, got %d", w->ndim);
  else if (x->sizes[x->ndim - 1] != w->sizes[w->ndim - 1])
    fail(ERR_RUNTIME,
         "expected equal input and linear_weight last dimensions (in_features), got %lld and %lld, "
         "respectively",
         (Shown)x->sizes[x->ndim - 1], (Shown)w->sizes[w->ndim - 1]);
  else if (bias && !sizes_equal(bias->ndim, bias->sizes, w->ndim - 1, w->sizes))
    fail(ERR_RUNTIME, "expected linear_bias shape %s, got %s", nn_tuple_text(w->ndim - 1, w->sizes),
         nn_tuple_text(bias->ndim, bias->sizes));
  else if (x->ndim == 1 && w->ndim > 2)
    fail(ERR_RUNTIME,
         "K-dimensional loss defined by linear_weight shape %s requires batched input, (N, %lld), "
         "got unbatched input with shape %s",
         nn_tuple_text(w->ndim, w->sizes), (Shown)x->sizes[0], nn_tuple_text(1, x->sizes));
  if (failed()) return false;
  l->rows = x->ndim - 1;
  l->ndim = l->rows + w->ndim - 1;
  if (l->rows) l->sizes[0] = x->sizes[0];
  memcpy(l->sizes + l->rows, w->sizes, (size_t)(w->ndim - 1) * sizeof *w->sizes);
  return true;
}

/* The cross entropy of linear(x, w, bias), whose weight may have dimensions between classes and
 * features. ignore_index NULL: none. */
Tensor *t_linear_cross_entropy(Tensor *x, Tensor *w, Tensor *target, Tensor *bias, Tensor *weight,
                               Reduction r, const int64_t *ignore_index, double smoothing) {
  OP_ENTERED_AS(t_linear_cross_entropy(x, w, target, bias, weight, r, ignore_index, smoothing),
                "linear_cross_entropy", x, w, target, bias, weight, r, ignore_index, smoothing);
  Logits l;
  if (blocked(x, w, target) || r == REDUCE_BAD || !logits_shape(x, w, bias, &l)) return NULL;
  if (ignore_index && sizes_equal(target->ndim, target->sizes, l.ndim, l.sizes))
    return fail(ERR_RUNTIME, "ignore_index cannot be specified when target contains probabilities");
  if (w->ndim > 2) {
    w = t_flatten(w, 0, -2);
    if (bias) bias = t_flatten(bias, 0, -1);
  }
  Tensor *logits = t_reshape(t_linear(x, w, bias), l.ndim, l.sizes);
  return t_cross_entropy(logits, target, weight, ignore_index ? *ignore_index : -100, r, smoothing);
}

/* ------------------------------------------------------------ element by element */

/* LOSS(name, Node, error name, value, x', t'): functions of x, t (the target), q (a weight of
 * the positive class) and the host number P, with the incoming g. The derivatives mean C and op
 * calls, as in formula.h. */
#define LOSS_ROWS(LOSS)                                                                           \
  LOSS(mse, MseLoss, "mse_cpu", (x - t) * (x - t), MUL(g, MUL(C(2), SUB(x, t))),                  \
       MUL(g, MUL(C(-2), SUB(x, t))))                                                             \
  LOSS(smooth_l1, SmoothL1Loss, "smooth_l1_cpu",                                                  \
       m_abs(x - t) < P ? (T)0.5 * (x - t) * (x - t) / P : m_abs(x - t) - (T)0.5 * P, SMOOTH_L1,  \
       NEG(SMOOTH_L1))                                                                            \
  LOSS(huber, HuberLoss, "huber_cpu",                                                             \
       m_abs(x - t) <= P ? (T)0.5 * (x - t) * (x - t) : P * (m_abs(x - t) - (T)0.5 * P), HUBER,   \
       NEG(HUBER))                                                                                \
  LOSS(soft_margin, SoftMarginLoss, "soft_margin_cpu", m_log1p(m_exp(-t *x)),                     \
       MUL(g, NEG(MUL(t, SIGMOID(NEG(MUL(t, x)))))), g)                                           \
  LOSS(bce, BinaryCrossEntropy, "binary_cross_entropy",                                           \
       (t - 1) * LOG_FLOOR(m_log1p(-x)) - t * LOG_FLOOR(m_log(x)),                                \
       DIV(MUL(g, SUB(x, t)), ATLEAST(MUL(SUB(C(1), x), x))), MUL(g, SUB(LOG1P(NEG(x)), LOG(x)))) \
  LOSS(bce_logits, BinaryCrossEntropyWithLogits, "log_sigmoid_cpu",                               \
       (1 - t) * x + (1 + (q - 1) * t) * SOFTPLUS_VALUE(x),                                       \
       MUL(g, SUB(MUL(SUB(ADD(MUL(q, t), C(1)), t), SIGMOID(x)), MUL(q, t))),                     \
       MUL(g, SUB(WHERE(EQ(q, C(1)), C(0), MUL(SUB(q, C(1)), SOFTPLUS(x))), x)))
#define SMOOTH_L1 \
  MUL(g, WHERE(LE(SUB(x, t), NEG(P)), C(-1), WHERE(GE(SUB(x, t), P), C(1), DIV(SUB(x, t), P))))
#define HUBER MUL(g, WHERE(LE(SUB(x, t), NEG(P)), NEG(P), WHERE(GE(SUB(x, t), P), P, SUB(x, t))))
#define LOG_FLOOR(v) ((v) < -100 ? -100 : (v))
/* softplus(-x), without overflow */
#define SOFTPLUS_VALUE(x) (((x) < 0 ? -(x) : 0) + m_log1p(m_exp(-m_abs(x))))

typedef struct {
  const char *name;
  Loops value, grad_x, grad_t;
  const NodeType *node;
} Loss;

/* The float loops are compiled for speed, the double ones for size. */
#define SIZE_float
#define SIZE_double SMALL
#define LOSS_LOOP(FN, TYPE, OPERANDS, VALUE)                                                      \
  SIZE_##TYPE static void FN(char *const *at, size_t n, const double *numbers, LoopScratch *s_) { \
    typedef TYPE T;                                                                               \
    T *out = (T *)(void *)at[0];                                                                  \
    const T P = (T)numbers[0];                                                                    \
    (void)P, (void)s_;                                                                            \
    OPERANDS                                                                                      \
    FLAT_FOR_##TYPE for (size_t i = 0; i < n; i++) {                                              \
      T x = x_[i], t = t_[i], q = q_[i], g = g_[i];                                               \
      (void)x, (void)t, (void)q, (void)g;                                                         \
      out[i] = (T)(VALUE);                                                                        \
    }                                                                                             \
  }
#define OPERAND(name, k) const T *name = (const T *)(const void *)at[k];
#define OPERANDS_VALUE OPERAND(x_, 1) OPERAND(t_, 2) OPERAND(q_, 3) const T *g_ = x_;
#define OPERANDS_GRAD OPERAND(g_, 1) OPERAND(x_, 2) OPERAND(t_, 3) OPERAND(q_, 4)

#define FORMULA_SCALAR
#include "ops/elementwise/formula.h"
#define ATLEAST(v) ((v) < (T)1e-12 ? (T)1e-12 : (v))
#define SOFTPLUS(x) SOFTPLUS_VALUE(x)
#define LOSS_LOOPS(name, Node_, error, value, gx, gt)          \
  LOSS_LOOP(value_##name##_f32, float, OPERANDS_VALUE, value)  \
  LOSS_LOOP(value_##name##_f64, double, OPERANDS_VALUE, value) \
  LOSS_LOOP(grad_x_##name##_f32, float, OPERANDS_GRAD, gx)     \
  LOSS_LOOP(grad_x_##name##_f64, double, OPERANDS_GRAD, gx)    \
  LOSS_LOOP(grad_t_##name##_f32, float, OPERANDS_GRAD, gt)     \
  LOSS_LOOP(grad_t_##name##_f64, double, OPERANDS_GRAD, gt)
LOSS_ROWS(LOSS_LOOPS)
#undef ATLEAST
#undef SOFTPLUS

#define LOSS_TABLE(fn) {.f32 = fn##_f32, .f64 = fn##_f64}
/* The numbers are the reduction and P. */
#define FIELDS_mse "self target | reduction:int"
#define FIELDS_smooth_l1 "self target | reduction:int beta:float"
#define FIELDS_huber "self target | reduction:int delta:float"
#define FIELDS_soft_margin FIELDS_mse
#define FIELDS_bce "self target - weight | reduction:int"
#define FIELDS_bce_logits "self target pos_weight weight | reduction:int"
#define LOSS_NODES(name, Node_, error, value, gx, gt)                                          \
  static void vjp_##name(Node *n, Tensor **g, Tensor **gi);                                    \
  static const NodeType node_##name = {                                                        \
      #Node_ "Backward0", vjp_##name, FIELDS_##name, true, NULL, NULL};                        \
  static const Loss loss_##name = {error, LOSS_TABLE(value_##name), LOSS_TABLE(grad_x_##name), \
                                   LOSS_TABLE(grad_t_##name), &node_##name};
LOSS_ROWS(LOSS_NODES)

/* The gradient of one operand by its loop: g is a number or has the full shape. */
static Tensor *loss_loop(const Loops *loops, Tensor *g, Tensor *x, Tensor *t, Tensor *q, double p) {
  Tensor *in[4] = {g, x, t, q};
  if (blocked(g, x) || blocked(t, q)) return NULL;
  return elementwise_run(loops, &(Tensors){4, in}, tensor_dtype(g), &p);
}

typedef Tensor *TapeGrad(Tensor *g, Tensor *x, Tensor *t, Tensor *q, double p);

/* Spreads g over the elements: divided by their count for the mean, times the weight. */
static Tensor *loss_incoming(Node *n, Tensor *g) {
  if (n->numbers[0].i == REDUCE_MEAN) g = t_mul_f(g, 1 / n->numbers[2].f);
  return saved_tensor(n, 3) ? t_mul(g, saved_tensor(n, 3)) : g;
}

static void loss_vjp(const Loss *l, Node *n, Tensor *g, Tensor **gi, TapeGrad *tape_x,
                     TapeGrad *tape_t) {
  Tensor *x = saved_tensor(n, 0), *t = saved_tensor(n, 1), *q = saved_tensor(n, 2);
  double p = n->numbers[1].f;
  g = loss_incoming(n, g);
  if (!q) q = tensor_wrapped_f(1);
  if (needs(n, 0)) gi[0] = grad_mode ? tape_x(g, x, t, q, p) : loss_loop(&l->grad_x, g, x, t, q, p);
  if (needs(n, 1)) gi[1] = grad_mode ? tape_t(g, x, t, q, p) : loss_loop(&l->grad_t, g, x, t, q, p);
}

#define FORMULA_TAPE
#include "ops/elementwise/formula.h"
#define P tensor_wrapped_f(p)
#define ATLEAST(v) t_held_above(v, 1e-12)
#define SOFTPLUS(x) t_neg(t_logsigmoid(x))
#define LOSS_TAPE(name, Node_, error, value, gx, gt)                                   \
  static Tensor *tape_x_##name(Tensor *g, Tensor *x, Tensor *t, Tensor *q, double p) { \
    (void)q, (void)p, (void)x, (void)t;                                                \
    return gx;                                                                         \
  }                                                                                    \
  static Tensor *tape_t_##name(Tensor *g, Tensor *x, Tensor *t, Tensor *q, double p) { \
    (void)q, (void)p, (void)x, (void)t;                                                \
    return gt;                                                                         \
  }                                                                                    \
  static void vjp_##name(Node *n, Tensor **g, Tensor **gi) {                           \
    loss_vjp(&loss_##name, n, g[0], gi, tape_x_##name, tape_t_##name);                 \
  }
LOSS_ROWS(LOSS_TAPE)
#undef P

/* x and target have one shape; q and weight broadcast to it and may be NULL. */
static Tensor *loss_apply(const Loss *l, Tensor *x, Tensor *t, Tensor *q, Tensor *weight,
                          Reduction r, double p) {
  if (blocked(x, t) || r == REDUCE_BAD) return NULL;
  Tensor *in[3] = {x, t, q ? q : x};
  DType d = elementwise_result_dtype(2, in);
  if (!dtype_check_float_kernel(l->name, d)) return NULL;
  Node *n = node_new(l->node, 4, 3, x, t, NULL);
  save(n, 0, x);
  save(n, 1, t);
  save(n, 2, q);
  save(n, 3, weight);
  num_i(n, 0, r);
  num_f(n, 1, p);
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    Tensor *one = q ? NULL : tensor_number(1, d);
    if (!q) in[2] = one;
    y = elementwise_run(&l->value, &(Tensors){3, in}, d, &p);
    if (weight) y = t_mul(y, weight);
    if (y) num_f(n, 2, (double)y->numel);
    y = loss_reduced(y, r);
  }
  return set_history(y, n);
}

static void warn_sizes(const Tensor *x, const Tensor *target) {
  if (tensor_same_shape(x, target)) return;
  warn_user("Using a target size (torch.Size(%s)) that is different to the input size "
            "(torch.Size(%s)). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            shape_text(target), shape_text(x));
}

/* Warns of unequal sizes, checks the weight, and broadcasts x and target to each other. */
static bool bring_together(Tensor **x, Tensor **target, Tensor *weight, Reduction r) {
  if (blocked(*x, *target) || r == REDUCE_BAD) return false;
  warn_sizes(*x, *target);
  int64_t sizes[MAX_DIM];
  int ndim = (*x)->ndim;
  memcpy(sizes, (*x)->sizes, (size_t)ndim * sizeof *sizes);
  if (weight && !tensor_same_shape(weight, *x))
    fail(ERR_VALUE, "Weights and input must have the same size.");
  if (!sizes_broadcast(&ndim, sizes, (*target)->ndim, (*target)->sizes)) return false;
  if (!sizes_equal(ndim, sizes, (*x)->ndim, (*x)->sizes)) *x = t_expand(*x, ndim, sizes);
  if (!sizes_equal(ndim, sizes, (*target)->ndim, (*target)->sizes))
    *target = t_expand(*target, ndim, sizes);
  return !failed();
}

/* Errors times weights; their mean is over the sum of the weights. */
static Tensor *weigh_errors(Tensor *errors, Tensor *weight, Reduction r) {
  Tensor *y = t_mul(errors, weight);
  if (r == REDUCE_NONE) return y;
  return r == REDUCE_SUM ? t_sum_all(y) : t_div(t_sum_all(y), t_sum_all(weight));
}

Tensor *t_mse_loss(Tensor *x, Tensor *target, Reduction r, Tensor *weight) {
  OP_ENTERED(t_mse_loss, "mse_loss", x, target, r, weight);
  if (!bring_together(&x, &target, weight, r)) return NULL;
  if (weight) return weigh_errors(t_pow(t_sub(x, target), tensor_wrapped_i(2)), weight, r);
  return loss_apply(&loss_mse, x, target, NULL, NULL, r, 0);
}

Tensor *t_l1_loss(Tensor *x, Tensor *target, Reduction r, Tensor *weight) {
  OP_ENTERED(t_l1_loss, "l1_loss", x, target, r, weight);
  if (!bring_together(&x, &target, weight, r)) return NULL;
  Tensor *errors = t_abs(t_sub(x, target));
  return weight ? weigh_errors(errors, weight, r) : loss_reduced(errors, r);
}

Tensor *t_smooth_l1_loss(Tensor *x, Tensor *target, Reduction r, double beta) {
  OP_ENTERED(t_smooth_l1_loss, "smooth_l1_loss", x, target, r, beta);
  if (!bring_together(&x, &target, NULL, r)) return NULL;
  if (beta < 0)
    return fail(ERR_RUNTIME, "smooth_l1_loss does not support negative values for beta.");
  if (beta == 0) return loss_reduced(t_abs(t_sub(x, target)), r);
  return loss_apply(&loss_smooth_l1, x, target, NULL, NULL, r, beta);
}

Tensor *t_huber_loss(Tensor *x, Tensor *target, Reduction r, double delta, Tensor *weight) {
  OP_ENTERED(t_huber_loss, "huber_loss", x, target, r, delta, weight);
  if (!bring_together(&x, &target, weight, r)) return NULL;
  if (delta <= 0)
    return fail(ERR_RUNTIME, "huber_loss does not support non-positive values for delta.");
  if (!weight) return loss_apply(&loss_huber, x, target, NULL, NULL, r, delta);
  return loss_reduced(
      t_mul(loss_apply(&loss_huber, x, target, NULL, NULL, REDUCE_NONE, delta), weight), r);
}

Tensor *t_soft_margin_loss(Tensor *x, Tensor *target, Reduction r) {
  OP_ENTERED(t_soft_margin_loss, "soft_margin_loss", x, target, r);
  if (blocked(x, target) || !nn_check_constant("soft_margin_loss", "target", target)) return NULL;
  int64_t sizes[MAX_DIM];
  int ndim = x->ndim;
  memcpy(sizes, x->sizes, (size_t)ndim * sizeof *sizes);
  if (!sizes_broadcast(&ndim, sizes, target->ndim, target->sizes)) return NULL;
  if (!dtype_is_float(tensor_dtype(x)))
    return fail(ERR_RUNTIME, "result type Float can't be cast to the desired output type %s",
                legacy(x));
  return loss_apply(&loss_soft_margin, x, target, NULL, NULL, r, 0);
}

static bool probabilities(Tensor *x) {
  x = t_contiguous(t_detach(x));
  if (failed()) return false;
  if (tensor_absent(x)) return true;
  const char *at = tensor_data(x);
  bool good = true;
  DISPATCH_FLOAT(tensor_dtype(x), {
    const T *v = (const T *)(const void *)at;
    for (int64_t i = 0; i < x->numel; i++) good = good && v[i] >= 0 && v[i] <= 1;
  })
  if (!good) fail(ERR_RUNTIME, "all elements of input should be between 0 and 1");
  return good;
}

static bool check_weight_spread(const Tensor *weight, const Tensor *x) {
  for (int i = 1; i <= weight->ndim; i++) {
    int64_t n = weight->sizes[weight->ndim - i];
    if (n == 1 || (i <= x->ndim && n == x->sizes[x->ndim - i])) continue;
    fail(ERR_RUNTIME,
         "Attempting to broadcast a dimension of length %lld at -%d! Mismatching argument at index "
         "1 had torch.Size(%s); but expected shape should be broadcastable to %s",
         (Shown)n, i, shape_text(weight), shape_text(x));
    return false;
  }
  return true;
}

Tensor *t_binary_cross_entropy(Tensor *x, Tensor *target, Tensor *weight, Reduction r) {
  OP_ENTERED(t_binary_cross_entropy, "binary_cross_entropy", x, target, weight, r);
  IN_FLOAT(t_binary_cross_entropy(x, target, weight, r), x, target, weight);
  if (blocked(x, target) || r == REDUCE_BAD) return NULL;
  if (!tensor_same_shape(x, target))
    return fail(ERR_VALUE,
                "Using a target size (torch.Size(%s)) that is different to the input size "
                "(torch.Size(%s)) is deprecated. Please ensure they have the same size.",
                shape_text(target), shape_text(x));
  if (weight && !check_weight_spread(weight, x)) return NULL;
  if (!nn_check_constant("binary_cross_entropy", "weight", weight)) return NULL;
  if (!dtype_check_float_kernel("binary_cross_entropy", tensor_dtype(x))) return NULL;
  if (target->dtype != x->dtype)
    return fail(ERR_RUNTIME, "Found dtype %s but expected %s", legacy(target), legacy(x));
  if (weight) weight = t_expand(weight, x->ndim, x->sizes);
  return probabilities(x) ? loss_apply(&loss_bce, x, target, NULL, weight, r, 0) : NULL;
}

Tensor *t_binary_cross_entropy_with_logits(Tensor *x, Tensor *target, Tensor *weight, Reduction r,
                                           Tensor *pos_weight) {
  OP_ENTERED(t_binary_cross_entropy_with_logits, "binary_cross_entropy_with_logits", x, target,
             weight, r, pos_weight);
  static const char *const op = "binary_cross_entropy_with_logits";
  if (blocked(x, target) || r == REDUCE_BAD) return NULL;
  if (!tensor_same_shape(x, target))
    return fail(ERR_VALUE,
                "Target size (torch.Size(%s)) must be the same as input size (torch.Size(%s))",
                shape_text(target), shape_text(x));
  if (!nn_check_constant(op, "weight", weight) || !nn_check_constant(op, "pos_weight", pos_weight))
    return NULL;
  if (!dtype_is_float(tensor_dtype(target)) && dtype_is_float(tensor_dtype(x)))
    return fail(ERR_RUNTIME, "result type %s can't be cast to the desired output type %s",
                legacy(x), legacy(target));
  return loss_apply(&loss_bce_logits, x, target, pos_weight, weight, r, 0);
}

/* ctc_loss: minus the log probability of a labelling, summed over all its alignments. */
#include <math.h>

#include "nn_rows.h"
#include "ops/create/create.h"
#include "ops/nn/nn.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "ops/view/view.h"

/* The logarithm of an impossible event; finite, so that gradients through it are zeros. */
#define NEVER (-1e30)

typedef struct {
  int64_t steps, batch, longest;   /* longest: of the targets */
  const int64_t *inputs, *lengths; /* of each sample */
  int64_t *labels;                 /* (batch, longest) */
  int64_t blank;
} Alignments;

static int64_t *data_i(Tensor *t) { return (int64_t *)(void *)tensor_data(t); }
static bool *data_b(Tensor *t) { return (bool *)(void *)tensor_data(t); }

/* ------------------------------------------------------------ arguments */

#define WHILE " (while checking arguments for ctc_loss_allocate_outputs)"

/* Argument k, a tensor or a list, as (N) int64. */
static Tensor *lengths_of(Call *c, int k, const char *name) {
  if (c->v[k].tag == TAG_TENSOR) {
    Tensor *t = c->v[k].t;
    if (dtype_is_float(tensor_dtype(t)))
      return fail(ERR_RUNTIME, "%s_lengths must be integral", name);
    return tensor_settled(t_contiguous(t_to(t_reshape(t, 1, (const int64_t[]){-1}), DT_I64)));
  }
  Ints given = arg_ints(c, k);
  int64_t count = given.n < 0 ? 0 : given.n;
  Tensor *t = tensor_empty(1, &count, DT_I64);
  for (int64_t i = 0; t && i < count; i++) data_i(t)[i] = given.v[i];
  return t;
}

static void check_not_negative(const Tensor *t, const char *name) {
  const int64_t *v = data_i((Tensor *)(uintptr_t)t);
  for (int64_t i = 0; i < t->numel; i++)
    if (v[i] < 0)
      fail(ERR_RUNTIME, "Expected %s_lengths to have value at least 0, but got value %lld" WHILE,
           name, (Shown)v[i]);
}

static bool check_log_probs(const Tensor *x, int64_t blank) {
  if (x->ndim != 3)
    fail(ERR_RUNTIME,
         "Expected 3-dimensional tensor, but got %d-dimensional tensor for argument #1 "
         "'log_probs'" WHILE,
         x->ndim);
  else if (x->numel == 0) fail(ERR_RUNTIME, "log_probs tensor must not be empty");
  else if (!dtype_check_wide_kernel("ctc_loss_cpu", tensor_dtype(x))) return false;
  else if (blank < 0 || blank >= x->sizes[2]) fail(ERR_RUNTIME, "blank must be in label range");
  return !failed();
}

static bool check_lengths(const Alignments *a, const Tensor *inputs, const Tensor *lengths) {
  if (inputs->numel != a->batch) fail(ERR_RUNTIME, "input_lengths must be of size batch_size");
  else if (lengths->numel != a->batch)
    fail(ERR_RUNTIME, "target_lengths must be of size batch_size");
  if (failed()) return false;
  check_not_negative(inputs, "input");
  check_not_negative(lengths, "target");
  for (int64_t i = 0; i < a->batch; i++)
    if (a->inputs[i] > a->steps)
      fail(ERR_RUNTIME,
           "Expected input_lengths to have value at most %lld, but got value %lld" WHILE,
           (Shown)a->steps, (Shown)a->inputs[i]);
  return !failed();
}

static bool check_targets(const Alignments *a, const Tensor *targets) {
  int64_t most = 0, sum = 0;
  for (int64_t i = 0; i < a->batch; i++) {
    if (a->lengths[i] > most) most = a->lengths[i];
    sum += a->lengths[i];
  }
  if (targets->ndim == 1 && (most > targets->numel || sum != targets->numel))
    fail(ERR_RUNTIME,
         "Expected tensor to have size %lld at dimension 0, but got size %lld for argument #2 "
         "'targets'" WHILE,
         (Shown)sum, (Shown)targets->numel);
  else if (targets->ndim > 1 && most > targets->sizes[1])
    fail(ERR_RUNTIME,
         "Expected tensor to have size at least %lld at dimension 1, but got size %lld for "
         "argument #2 'targets'" WHILE,
         (Shown)most, (Shown)targets->sizes[1]);
  else if (targets->ndim == 2 && targets->sizes[0] != a->batch)
    fail(ERR_RUNTIME,
         "Expected tensor to have size %lld at dimension 0, but got size %lld for argument #2 "
         "'targets'" WHILE,
         (Shown)a->batch, (Shown)targets->sizes[0]);
  else if (targets->ndim != 1 && targets->ndim != 2)
    fail(ERR_RUNTIME, "targets must be 1- or 2-dimensional");
  return !failed();
}

/* ------------------------------------------------------------ labels */

/* Labels with blanks between and around them, (N, 2 S + 1). `targets` may be one row for all
 * samples. */
static Tensor *spaced_labels(const Alignments *a, Tensor *targets) {
  int64_t width = 2 * a->longest + 1;
  const int64_t *from = data_i(targets);
  Tensor *labels = tensor_empty(2, (const int64_t[]){a->batch, width}, DT_I64);
  for (int64_t i = 0; labels && i < a->batch; i++) {
    int64_t known = targets->ndim == 2 ? a->longest : a->lengths[i], *row = data_i(labels);
    row += i * width;
    for (int64_t k = 0; k < width; k++) row[k] = a->blank;
    for (int64_t k = 0; k < a->longest; k++) row[2 * k + 1] = k < known ? from[k] : 0;
    from += known;
  }
  return labels;
}

/* Whether a path may come from the label two places before, without the blank between. */
static Tensor *skips_of(const Alignments *a, Tensor *labels) {
  if (blocked(labels)) return NULL;
  int64_t width = 2 * a->longest + 1;
  const int64_t *label = data_i(labels);
  Tensor *skips = tensor_empty(2, labels->sizes, DT_BOOL);
  for (int64_t i = 0; skips && i < labels->numel; i++)
    data_b(skips)[i] = i % width > 1 && label[i] != a->blank && label[i] != label[i - 2];
  return skips;
}

/* (N) or (N, 1): which samples have more than `least` of something. */
static Tensor *more_than(const Alignments *a, const int64_t *of, int64_t least, int ndim) {
  Tensor *t = tensor_empty(ndim, (const int64_t[]){a->batch, 1}, DT_BOOL);
  for (int64_t i = 0; t && i < a->batch; i++) data_b(t)[i] = of[i] > least;
  return t;
}

/* ------------------------------------------------------------ the recursion over steps */

static Tensor *never(const Tensor *alpha, int64_t count) {
  return tensor_full(2, (const int64_t[]){alpha->sizes[0], count}, tensor_dtype(alpha), NEVER);
}

static Tensor *shift_right(Tensor *alpha, int64_t by) {
  if (blocked(alpha)) return NULL;
  int64_t width = alpha->sizes[1];
  if (width <= by) return never(alpha, width);
  Tensor *parts[] = {never(alpha, by), t_slice(alpha, 1, 0, width - by, 1)};
  return t_cat((Tensors){2, parts}, 1);
}

/* The logarithm of the probability of all paths that end at each label, (N, 2 S + 1). */
static Tensor *ways(const Alignments *a, Tensor *at, Tensor *skips) {
  int64_t width = 2 * a->longest + 1, begins = width < 2 ? width : 2;
  Tensor *first = t_select(at, 0, 0), *none = tensor_wrapped_f(NEVER);
  if (blocked(first, none)) return NULL;
  int32_t mark = pool_mark(); /* only alpha is kept above it */
  Tensor *parts[] = {t_slice(first, 1, 0, begins, 1), never(first, width - begins)};
  Tensor *alpha = t_cat((Tensors){2, parts}, 1);
  pool_release(mark, alpha);
  for (int64_t step = 1; step < a->steps && !failed(); step++) {
    Tensor *skipped = t_where(skips, shift_right(alpha, 2), none);
    Tensor *from[] = {alpha, shift_right(alpha, 1), skipped};
    Tensor *all = t_logsumexp(t_stack((Tensors){3, from}, 0), ONE_DIM(0), false);
    Tensor *next = t_add(all, t_select(at, 0, step));
    alpha = t_where(more_than(a, a->inputs, step, 2), next, alpha);
    pool_release(mark, alpha);
  }
  return alpha;
}

static Tensor *at_ends(const Alignments *a, Tensor *alpha, int64_t before) {
  Tensor *ends = tensor_empty(2, (const int64_t[]){a->batch, 1}, DT_I64);
  for (int64_t i = 0; ends && i < a->batch; i++) {
    int64_t end = 2 * a->lengths[i] - before;
    data_i(ends)[i] = end < 0 ? 0 : end;
  }
  return t_squeeze_dim(t_gather(alpha, 1, ends), 1);
}

/* Adds nothing to the value. To the gradient it adds the part that PyTorch's has because it assumes
 * a log_softmax as input, whose gradient would remove that part. */
static Tensor *extra(const Alignments *a, Tensor *log_probs) {
  Tensor *probs = t_exp(log_probs);
  Tensor *inside = tensor_empty(2, (const int64_t[]){a->steps, a->batch}, DT_BOOL);
  for (int64_t k = 0; inside && k < inside->numel; k++)
    data_b(inside)[k] = k / a->batch < a->inputs[k % a->batch];
  Tensor *sums = t_sum(t_sub(probs, t_detach(probs)), ONE_DIM(2), false, DT_NONE);
  return t_sum(t_mul(sums, inside), ONE_DIM(0), false, DT_NONE);
}

/* The loss of each sample; more than -NEVER / 2 without an alignment. */
static Tensor *losses(const Alignments *a, Tensor *log_probs, Tensor *targets) {
  Tensor *labels = spaced_labels(a, targets), *skips = skips_of(a, labels);
  if (blocked(labels, skips)) return NULL;
  const int64_t wide[] = {a->steps, a->batch, labels->sizes[1]};
  Tensor *alpha = ways(a, t_gather(log_probs, 2, t_expand(labels, 3, wide)), skips);
  Tensor *last = at_ends(a, alpha, 0), *before = at_ends(a, alpha, 1);
  Tensor *labelled = more_than(a, a->lengths, 0, 1);
  before = t_where(labelled, before, tensor_wrapped_f(NEVER));
  Tensor *found = t_neg(t_logaddexp(last, before));
  if (blocked(found)) return NULL;
  Tensor *empty = tensor_zeros(1, &a->batch, tensor_dtype(found)); /* for inputs without a step */
  for (int64_t i = 0; empty && i < a->batch; i++)
    if (a->lengths[i] > 0) tensor_set_f(empty, i, -NEVER);
  found = t_where(more_than(a, a->inputs, 0, 1), found, empty);
  return t_add(found, extra(a, log_probs));
}

/* ------------------------------------------------------------ the op */

static Tensor *mean_by_length(const Alignments *a, Tensor *found) {
  if (blocked(found)) return NULL;
  Tensor *counts = tensor_empty(1, &a->batch, DT_I64);
  for (int64_t i = 0; counts && i < a->batch; i++)
    data_i(counts)[i] = a->lengths[i] > 1 ? a->lengths[i] : 1;
  return t_mean(t_div(found, t_to(counts, tensor_dtype(found))), ALL_DIMS, false, DT_NONE);
}

/* Makes losses without an alignment infinite, with a gradient of NaN; or 0, with a gradient of
 * 0. */
GRAD(CtcInfinityBackward0, "never | zero_infinity:bool")
{ gi[0] = t_masked_fill(g[0], saved_tensor(n, 0), tensor_wrapped_f(n->numbers[0].i ? 0 : NAN)); }
static Tensor *without_alignment(Tensor *found, bool zero_infinity) {
  Tensor *never = t_gt(t_detach(found), tensor_wrapped_f(-NEVER / 2));
  Node *n = node_new(&CtcInfinityBackward0, 1, 1, found, NULL);
  save(n, 0, never);
  num_i(n, 0, zero_infinity);
  const double instead = zero_infinity ? 0 : INFINITY;
  return set_history(WITHOUT_GRAD(t_masked_fill(found, never, tensor_wrapped_f(instead))), n);
}

/* Zeroes the steps of x behind each length, so that their gradient is 0 whatever the loss is. */
static Tensor *cut_to_lengths(const Alignments *a, Tensor *x) {
  int64_t sizes[] = {a->steps, a->batch, 1};
  bool whole = true;
  for (int64_t i = 0; i < a->batch; i++) whole = whole && a->inputs[i] == a->steps;
  Tensor *read = whole ? NULL : tensor_empty(3, sizes, DT_BOOL);
  if (!read || tensor_absent(read)) return x;
  char *at = tensor_data(read);
  for (int64_t i = 0; i < a->steps * a->batch; i++) at[i] = i / a->batch < a->inputs[i % a->batch];
  return t_where(read, x, tensor_wrapped_f(0));
}

/* Arguments: log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity. */
Tensor *t_ctc_loss(Call *c, Reduction r) {
  OP_ENTERED(t_ctc_loss, "ctc_loss", c, r);
  Tensor *given = arg_tensor(c, 0), *targets = arg_tensor(c, 1);
  if (blocked(given, targets) || r == REDUCE_BAD) return NULL;
  bool batched = given->ndim == 3;
  Tensor *x = batched ? given : t_unsqueeze(given, 1);
  Tensor *inputs = lengths_of(c, 2, "input"), *lengths = lengths_of(c, 3, "target");
  if (!batched && targets->ndim == 1) targets = t_unsqueeze(targets, 0);
  if (blocked(x, inputs, lengths)) return NULL;
  int64_t blank = arg_int(c, 4);
  if (!check_log_probs(x, blank)) return NULL;
  Alignments a = {.steps = x->sizes[0], .batch = x->sizes[1], .blank = blank};
  a.inputs = data_i(inputs);
  a.lengths = data_i(lengths);
  if (!check_lengths(&a, inputs, lengths) || !check_targets(&a, targets)) return NULL;
  for (int64_t i = 0; i < a.batch; i++)
    if (a.lengths[i] > a.longest) a.longest = a.lengths[i];
  if (targets->ndim == 2) a.longest = targets->sizes[1];
  targets = tensor_settled(t_contiguous(t_to(t_detach(targets), DT_I64)));
  if (!targets) return NULL;
  Tensor *found = losses(&a, cut_to_lengths(&a, x), targets);
  found = without_alignment(found, arg_bool(c, 6));
  if (r == REDUCE_MEAN) return mean_by_length(&a, found);
  if (r == REDUCE_SUM) return t_sum_all(found);
  return batched ? found : t_squeeze_dim(found, 0);
}

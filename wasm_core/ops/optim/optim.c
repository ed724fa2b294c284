/* Steps of optimizers over whole lists of parameters, and operations on gradients between steps.
 *
 * A step is one crossing: everything is checked before the first write, then each parameter is
 * one loop over it, its gradient and its state. The arithmetic is that of PyTorch's loop over
 * tensors, operation by operation in the dtype of the parameter. Nothing is recorded; saved
 * tensors keep their values, because writes begin with tensor_write_begin. */
#include <math.h>

#include "ground/memory.h"
#include "ground/number.h"
#include "ground/paths.h"
#include "ops/elementwise/elementwise.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "optim_rows.h"
#include "tensor/iter.h"

/* ------------------------------------------------------------ lists side by side */

enum { MAX_LISTS = 5 };

/* The k-th tensors of all lists belong together; list 0 has the parameters. */
typedef struct {
  const char *op;
  int n, n_lists;
  bool finds_gradients; /* none were given: list 1 has the parameters' own, some of them NULL */
  const char *names[MAX_LISTS];
  Tensor **lists[MAX_LISTS];
  Loop *const *loops; /* by the parameter's dtype */
} Lists;

static bool add_list(Lists *l, const char *name, Tensors ts) {
  if (failed()) return false;
  if (l->n_lists == 0) l->n = ts.n;
  if (ts.n != l->n) {
    fail(ERR_RUNTIME, "%s: there are %d tensors in self but %d in %s", l->op, l->n, ts.n, name);
    return false;
  }
  l->names[l->n_lists] = name;
  l->lists[l->n_lists++] = ts.v;
  return true;
}

/* Each parameter's own gradient, or NULL. Sparse ones are refused with this text, unless it is
 * NULL. */
static Tensors gradients(Tensors params, const char *refusal) {
  Tensor **own = params.n > 0 ? scratch_array(params.n, sizeof *own) : NULL;
  for (int i = 0; own && i < params.n; i++)
    own[i] = params.v[i] && params.v[i]->meta ? params.v[i]->meta->grad : NULL;
  for (int i = 0; own && refusal && unusual_tensors && i < params.n; i++)
    if (is_sparse(own[i])) {
      fail(ERR_RUNTIME, "%s", refusal);
      return (Tensors){-1, NULL};
    }
  return (Tensors){own ? params.n : 0, own};
}

/* Adds the first two lists: parameters, and the given gradients or, if there are none, the
 * parameters' own. */
static void add_parameters(Lists *l, Call *c, const char *refusal) {
  Tensors params = arg_tensors(c, 0), given = arg_tensors(c, 1);
  l->finds_gradients = given.n == 0;
  add_list(l, "self", params);
  add_list(l, "grads", l->finds_gradients ? gradients(params, refusal) : given);
}

/* Drops the parameters without a gradient, if gradients were looked for; `more` is a list beside
 * l's. */
static void drop_without_gradient(Lists *l, Tensors *more) {
  int n = 0;
  if (failed() || !l->finds_gradients) return;
  for (int k = 0; k < l->n; k++) {
    if (!l->lists[1][k]) continue;
    for (int list = 0; list < l->n_lists; list++) l->lists[list][n] = l->lists[list][k];
    if (more && k < more->n) more->v[n] = more->v[k];
    n++;
  }
  if (more && more->n == l->n) more->n = n;
  l->n = n;
}

/* Checks of every tensor in a step are inlined, because most tensors are small. */
static inline bool equal_dims(int n, const int64_t *a, const int64_t *b) {
  for (int i = 0; i < n; i++)
    if (a[i] != b[i]) return false;
  return true;
}

static inline bool may_write(const Tensor *t) {
  return !(t->flags & FLAG_INFERENCE) || history_check_inference_write(t);
}
static inline bool begin_write(Tensor *t) {
  return t->storage->bytes->refs == 1 || tensor_write_begin(t, false);
}

static bool check_member(const Lists *l, int list, int k) {
  const Tensor *p = l->lists[0][k], *t = l->lists[list][k];
  if (!p || !t) return fail(ERR_RUNTIME, "%s: %s[%d] is None", l->op, l->names[list], k), false;
  if (t->dtype == p->dtype && t->ndim == p->ndim && equal_dims(p->ndim, t->sizes, p->sizes))
    return true;
  fail(ERR_RUNTIME, "%s: %s[%d] is %s of shape %s, but the parameter is %s of shape %s", l->op,
       l->names[list], k, dtype_info[t->dtype].name, shape_text(t), dtype_info[p->dtype].name,
       shape_text(p));
  return false;
}

/* Half parameters are computed in float, complex ones are two real numbers each. */
INLINE DType loop_type(const Tensor *t) {
  DType d = tensor_dtype(t);
  if (d == DT_F32 || d == DT_F64) return d;
  return dtype_is_half(d) ? DT_F32 : dtype_is_complex(d) ? dtype_real(d) : d;
}

/* Whether all tensors fit, and all but the gradients (list 1) may be written. Nothing is recorded
 * here. */
static bool check_lists(const Lists *l) {
  for (int k = 0; k < l->n && !failed(); k++)
    for (int list = 0; list < l->n_lists; list++) {
      if (!check_member(l, list, k)) return false;
      if (list != 1 && !may_write(l->lists[list][k])) return false;
      if (list) continue;
      DType d = loop_type(l->lists[0][k]);
      if (!KERNEL_OF(l->loops, d, l->op)) return false;
    }
  return !failed();
}

/* Takes all the memory that the writes need, so that a lack of memory changes nothing. */
static bool begin_writes(const Lists *l) {
  for (int k = 0; k < l->n; k++)
    for (int list = 0; list < l->n_lists; list++)
      if (list != 1 && !begin_write(l->lists[list][k])) return false;
  return true;
}

/* Runs the loop once over memory if all tensors have the same dense layout, else along their
 * strides. */
static void run_on(Tensor *const *t, int n, Loop *loop, const void *ctx) {
  bool alike = !unusual_tensors;
  for (int i = 1; i < n; i++) alike = alike && equal_dims(t[0]->ndim, t[i]->strides, t[0]->strides);
  if (!alike || !tensor_is_dense(t[0])) {
    iter_over(n, t, loop, ctx);
    return;
  }
  char *at[MAX_LISTS];
  int64_t strides[MAX_LISTS];
  for (int i = 0; i < n; i++) {
    at[i] = tensor_memory(t[i]);
    strides[i] = dtype_bytes(tensor_dtype(t[i]));
  }
  TOOK(STEP_FLAT);
  loop(at, strides, t[0]->numel, ctx);
}

/* A tensor of the loop's type. If its memory is another, writes to it must be copied back. */
static Tensor *loop_tensor(Tensor *t) {
  DType d = tensor_dtype(t);
  if (dtype_is_half(d)) return elementwise_cast(t, DT_F32);
  if (t->flags & FLAGS_LAZY) {
    Tensor *copy = tensor_empty_like(t, d);
    t = copy && tensor_copy_data(copy, t) ? copy : NULL;
  }
  return t && dtype_is_complex(d) ? t_view_as_real(t) : t;
}

static NOINLINE void run_converted(Tensor *const *to, int n, Loop *loop, const void *ctx) {
  Tensor *t[MAX_LISTS];
  int32_t mark = pool_mark();
  for (int i = 0; i < n; i++)
    if (!(t[i] = loop_tensor(to[i]))) return;
  run_on(t, n, loop, ctx);
  for (int i = 0; i < n; i++)
    if (i != 1 && t[i]->storage != to[i]->storage)
      tensor_copy_data(to[i],
                       dtype_is_complex(tensor_dtype(to[i])) ? t_view_as_complex(t[i]) : t[i]);
  pool_release(mark, NULL);
}

static void run_loop(const Lists *l, int k, const void *ctx) {
  Tensor *t[MAX_LISTS];
  DType d = loop_type(l->lists[0][k]);
  Loop *loop = l->loops[d];
  bool fit = d == tensor_dtype(l->lists[0][k]); /* the type of all: see check_member */
  for (int i = 0; i < l->n_lists; i++) t[i] = l->lists[i][k];
  for (int i = 0; unusual_tensors && i < l->n_lists; i++) fit = fit && !(t[i]->flags & FLAGS_LAZY);
  (fit ? run_on : run_converted)(t, l->n_lists, loop, ctx);
  if (failed()) return;
  for (int i = 0; i < l->n_lists; i++)
    if (i != 1) tensor_bump_version(t[i]);
}

/* A Loop over N operands of type T. Its body, an inline function with strides in elements, is
 * compiled twice: for contiguous operands, where it becomes vector code, and for others. */
#define STEP_LOOP(NAME, T, N, BODY, ...)                                      \
  static void NAME(char **q, const int64_t *st, int64_t n, const void *ctx) { \
    int64_t s[N];                                                             \
    T *t[N];                                                                  \
    bool flat = true;                                                         \
    for (int i = 0; i < N; i++) {                                             \
      t[i] = (T *)(void *)q[i];                                               \
      s[i] = st[i] / (int64_t)sizeof(T);                                      \
      flat = flat && s[i] == 1;                                               \
    }                                                                         \
    static const int64_t ones[MAX_LISTS] = {1, 1, 1, 1, 1};                   \
    if (flat) BODY(t, ones, (ptrdiff_t)n, ctx, __VA_ARGS__);                  \
    else BODY(t, s, (ptrdiff_t)n, ctx, __VA_ARGS__);                          \
  }

/* ------------------------------------------------------------ SGD */

typedef struct {
  double sign, weight_decay, momentum, lr, keep; /* keep: 1 - dampening */
  bool nesterov;
} Sgd;

enum { PLAIN, FIRST, LATER }; /* without momentum; its first step; any later one */

/* g = sign g + weight_decay p;  b = g, or momentum b + keep g;  p = p - lr (b, or g + momentum
 * b). */
#define SGD_BODY(suffix, T)                                                                        \
  INLINE void sgd_##suffix(T *const *t, const int64_t *s, ptrdiff_t n, const void *ctx,            \
                           int kind) {                                                             \
    const Sgd *k = ctx;                                                                            \
    T sign = (T)k->sign, decay = (T)k->weight_decay, momentum = (T)k->momentum, keep = (T)k->keep; \
    T step = (T) - k->lr;                                                                          \
    bool decays = k->weight_decay != 0, nesterov = k->nesterov;                                    \
    ptrdiff_t sp = (ptrdiff_t)s[0], sg = (ptrdiff_t)s[1],                                          \
              sb = kind == PLAIN ? 0 : (ptrdiff_t)s[2];                                            \
    T *ps = t[0], *gs = t[1], *bs = kind == PLAIN ? NULL : t[2];                                   \
    VECTOR_LOOP for (ptrdiff_t i = 0; i < n; i++) {                                                \
      T p = ps[i * sp], g = sign * gs[i * sg];                                                     \
      g = decays ? g + decay * p : g;                                                              \
      if (kind != PLAIN) {                                                                         \
        T b = kind == FIRST ? g : momentum * bs[i * sb] + keep * g;                                \
        bs[i * sb] = b;                                                                            \
        g = nesterov ? g + momentum * b : b;                                                       \
      }                                                                                            \
      ps[i * sp] = p + step * g;                                                                   \
    }                                                                                              \
  }
SGD_BODY(f32, float)
SGD_BODY(f64, double)
STEP_LOOP(sgd_plain_f32, float, 2, sgd_f32, PLAIN)
STEP_LOOP(sgd_plain_f64, double, 2, sgd_f64, PLAIN)
STEP_LOOP(sgd_first_f32, float, 3, sgd_f32, FIRST)
STEP_LOOP(sgd_first_f64, double, 3, sgd_f64, FIRST)
STEP_LOOP(sgd_later_f32, float, 3, sgd_f32, LATER)
STEP_LOOP(sgd_later_f64, double, 3, sgd_f64, LATER)
static Loop *const sgd_loops[3][DT_COUNT] = {
    [PLAIN] = {[DT_F32] = sgd_plain_f32, [DT_F64] = sgd_plain_f64},
    [FIRST] = {[DT_F32] = sgd_first_f32, [DT_F64] = sgd_first_f64},
    [LATER] = {[DT_F32] = sgd_later_f32, [DT_F64] = sgd_later_f64}};

/* Moves the parameters with sparse gradients behind the others, out of l; returns how many. */
static int part_sparse(Lists *l) {
  if (!unusual_tensors) return 0;
  int n = 0;
  for (int k = 0; k < l->n; k++) {
    if (is_sparse(l->lists[1][k])) continue;
    for (int list = 0; list < l->n_lists; list++) {
      Tensor *t = l->lists[list][n];
      l->lists[list][n] = l->lists[list][k];
      l->lists[list][k] = t;
    }
    n++;
  }
  int taken = l->n - n;
  l->n = n;
  return taken;
}

/* A step with a sparse gradient, in ops. Momentum is dense, since it remembers places that are gone
 * from the gradient. */
static void step_sparse(Lists *l, int k, const Sgd *by, int kind) {
  Tensor *p = l->lists[0][k], *g = l->lists[1][k], *b = kind == PLAIN ? NULL : l->lists[2][k];
  if (by->sign < 0) g = t_neg(g);
  if (by->weight_decay != 0) g = t_add(g, t_mul_f(p, by->weight_decay));
  if (b) {
    Tensor *whole = t_to_dense(g, DT_NONE, true);
    t_copy_(b, kind == FIRST ? whole : t_add(t_mul_f(b, by->momentum), t_mul_f(whole, by->keep)),
            false);
    g = by->nesterov ? t_add(whole, t_mul_f(b, by->momentum)) : b;
  }
  t_copy_(p, t_add(p, t_mul_f(g, -by->lr)), false);
}

void op_fused_sgd(Call *c) {
  /* until the crossing ends: parameters are leaves, and this is no op to record */
  grad_mode = false;
  Lists l = {.op = "_fused_sgd_"};
  Sgd k = {arg_bool(c, 8) ? -1 : 1, arg_float(c, 3),     arg_float(c, 4),
           arg_float(c, 5),         1 - arg_float(c, 6), arg_bool(c, 7)};
  int kind = k.momentum == 0 ? PLAIN : arg_bool(c, 9) ? FIRST : LATER;
  l.loops = sgd_loops[kind];
  add_parameters(&l, c, NULL);
  if (kind != PLAIN) add_list(&l, "momentum_buffers", arg_tensors(c, 2));
  drop_without_gradient(&l, NULL);
  int sparse = part_sparse(&l);
  if (failed() || !check_lists(&l) || !begin_writes(&l)) return;
  for (int i = l.n; i < l.n + sparse && !failed(); i++) step_sparse(&l, i, &k, kind);
  for (int i = 0; i < l.n && !failed(); i++) run_loop(&l, i, &k);
}

/* ------------------------------------------------------------ Adam */

typedef struct {
  double sign, add_decay, mul_decay; /* g + add_decay p; p mul_decay */
  double w1, beta2, w2;              /* 1 - beta1, beta2, 1 - beta2 */
  double eps, root2, step;           /* sqrt(1 - beta2^t), lr / (1 - beta1^t) */
} Adam;

/* m = m + w1 (g - m);  v = beta2 v + w2 g g;  p = p - step m / (sqrt(v) / root2 + eps); with
 * amsgrad the greatest v so far. As in PyTorch's lerp, m is g - (1 - w1) (g - m) when w1 is at
 * least one half. */
#define ADAM_BODY(suffix, T)                                                                      \
  INLINE void adam_##suffix(T *const *t, const int64_t *s, ptrdiff_t n, const void *ctx,          \
                            bool ams) {                                                           \
    const Adam *k = ctx;                                                                          \
    T sign = (T)k->sign, add_decay = (T)k->add_decay, mul_decay = (T)k->mul_decay, w1 = (T)k->w1; \
    T beta2 = (T)k->beta2, w2 = (T)k->w2, eps = (T)k->eps, root2 = (T)k->root2,                   \
      step = (T) - k->step;                                                                       \
    bool decays = k->add_decay != 0, near = w1 < (T)0.5;                                          \
    T share = near ? w1 : w1 - 1;                                                                 \
    ptrdiff_t sp = (ptrdiff_t)s[0], sg = (ptrdiff_t)s[1], sm = (ptrdiff_t)s[2],                   \
              sv = (ptrdiff_t)s[3];                                                               \
    ptrdiff_t sx = ams ? (ptrdiff_t)s[4] : 0;                                                     \
    T *ps = t[0], *gs = t[1], *ms = t[2], *vs = t[3], *xs = ams ? t[4] : NULL;                    \
    VECTOR_LOOP for (ptrdiff_t i = 0; i < n; i++) {                                               \
      T p = ps[i * sp], g = sign * gs[i * sg], m = ms[i * sm], v = vs[i * sv];                    \
      g = decays ? g + add_decay * p : g;                                                         \
      p = p * mul_decay;                                                                          \
      m = (near ? m : g) + share * (g - m);                                                       \
      v = beta2 * v + w2 * g * g;                                                                 \
      ms[i * sm] = m;                                                                             \
      vs[i * sv] = v;                                                                             \
      if (ams) {                                                                                  \
        T x = xs[i * sx];                                                                         \
        v = ((x < v) | (v != v)) ? v : x;                                                         \
        xs[i * sx] = v;                                                                           \
      }                                                                                           \
      ps[i * sp] = p + step * m / (m_sqrt(v) / root2 + eps);                                      \
    }                                                                                             \
  }
ADAM_BODY(f32, float)
ADAM_BODY(f64, double)
STEP_LOOP(adam_plain_f32, float, 4, adam_f32, false)
STEP_LOOP(adam_plain_f64, double, 4, adam_f64, false)
STEP_LOOP(adam_ams_f32, float, 5, adam_f32, true)
STEP_LOOP(adam_ams_f64, double, 5, adam_f64, true)
static Loop *const adam_loops[2][DT_COUNT] = {
    [false] = {[DT_F32] = adam_plain_f32, [DT_F64] = adam_plain_f64},
    [true] = {[DT_F32] = adam_ams_f32, [DT_F64] = adam_ams_f64}};

/* Counters of steps: one number for each parameter, of a dtype of its own. */
static bool check_steps(const Lists *l, Tensors steps) {
  if (steps.n != l->n)
    return fail(ERR_RUNTIME, "%s: there are %d tensors in self but %d in state_steps", l->op, l->n,
                steps.n),
           false;
  for (int i = 0; i < steps.n; i++) {
    if (!steps.v[i] || steps.v[i]->numel != 1 || !dtype_is_float(tensor_dtype(steps.v[i])))
      return fail(ERR_RUNTIME, "%s: state_steps[%d] is not a floating tensor of one element", l->op,
                  i),
             false;
    if (!may_write(steps.v[i])) return false;
  }
  for (int i = 0; i < steps.n; i++)
    if (!begin_write(steps.v[i])) return false;
  return true;
}

static double count_step(Tensor *step) {
  double now = tensor_get_f(step, 0) + 1;
  tensor_set_f(step, 0, now);
  tensor_bump_version(step);
  return now;
}

void op_fused_adam(Call *c, bool decoupled) {
  grad_mode = false;
  Lists l = {.op = decoupled ? "_fused_adamw_" : "_fused_adam_"};
  double lr = arg_float(c, 6), beta1 = arg_float(c, 7), beta2 = arg_float(c, 8),
         decay = arg_float(c, 9), eps = arg_float(c, 10);
  bool ams = arg_bool(c, 11);
  l.loops = adam_loops[ams];
  Tensors steps = arg_tensors(c, 5);
  add_parameters(&l, c,
                 "Adam does not support sparse gradients, please consider SparseAdam instead");
  add_list(&l, "exp_avgs", arg_tensors(c, 2));
  add_list(&l, "exp_avg_sqs", arg_tensors(c, 3));
  if (ams) add_list(&l, "max_exp_avg_sqs", arg_tensors(c, 4));
  drop_without_gradient(&l, &steps);
  if (failed() || !check_lists(&l) || !check_steps(&l, steps) || !begin_writes(&l)) return;
  Adam k = {.sign = arg_bool(c, 12) ? -1 : 1,
            .add_decay = decoupled ? 0 : decay,
            .mul_decay = decoupled ? 1 - lr * decay : 1,
            .w1 = 1 - beta1,
            .beta2 = beta2,
            .w2 = 1 - beta2,
            .eps = eps};
  double last = 0;
  for (int i = 0; i < l.n; i++) {
    double t = count_step(steps.v[i]);
    if (i == 0 || t != last) {
      k.root2 = sqrt(1 - pow(beta2, t));
      k.step = lr / (1 - pow(beta1, t));
      last = t;
    }
    run_loop(&l, i, &k);
  }
}

/* ------------------------------------------------------------ gradients */

/* Optimizer.zero_grad: drops gradients, or detaches them and fills them with zeros. */
void op_zero_grads(Call *c) {
  Tensors ts = arg_tensors(c, 0);
  bool drop = arg_bool(c, 1);
  WITHOUT_GRAD_BLOCK {
    for (int i = 0; i < ts.n && !failed(); i++) {
      Meta *m = ts.v[i] ? ts.v[i]->meta : NULL;
      Tensor *g = m ? m->grad : NULL;
      if (!g) continue;
      if (drop) {
        m->grad = NULL;
        tensor_release(g);
        continue;
      }
      if (g->grad_fn) t_detach_(g);
      else g->flags = (uint8_t)(g->flags & ~FLAG_REQUIRES_GRAD);
      t_zero_(g);
    }
  }
}

/* Fails with PyTorch's error unless the norm of order p is finite. */
static bool check_finite(const Tensor *total, double p) {
  if (failed() || isfinite(tensor_get_f(total, 0))) return !failed();
  return fail(ERR_RUNTIME,
              "The total norm of order %s for gradients from `parameters` is non-finite, so it "
              "cannot be clipped. To disable this error and scale the gradients by the non-finite "
              "norm anyway, set `error_if_nonfinite=False`",
              number_text(p)),
         false;
}

/* The norm of all tensors as one vector: the norm of their norms. */
Tensor *op_grad_norm(Tensors ts, double p, bool finite) {
  if (failed()) return NULL;
  if (ts.n <= 0) return tensor_number(0, dtype_default());
  Tensor **norms = scratch_array(ts.n, sizeof *norms);
  if (!norms) return NULL;
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    for (int i = 0; i < ts.n; i++) norms[i] = t_vector_norm(ts.v[i], p, ALL_DIMS, false, DT_NONE);
    y = failed() ? NULL
                 : t_vector_norm(t_stack((Tensors){ts.n, norms}, 0), p, ALL_DIMS, false, DT_NONE);
  }
  return !y || (finite && !check_finite(y, p)) ? NULL : y;
}

#define SCALE_LOOP(suffix, T)                                                           \
  static void scale_##suffix(char **q, const int64_t *st, int64_t n, const void *ctx) { \
    T by = (T) * (const double *)ctx, *x = (T *)(void *)q[0];                           \
    ptrdiff_t s = (ptrdiff_t)st[0] / (ptrdiff_t)sizeof(T);                              \
    if (s == 1) {                                                                       \
      VECTOR_LOOP for (ptrdiff_t i = 0; i < n; i++) x[i] *= by;                         \
    } else {                                                                            \
      for (ptrdiff_t i = 0; i < n; i++) x[i * s] *= by;                                 \
    }                                                                                   \
  }
SCALE_LOOP(f32, float)
SCALE_LOOP(f64, double)
static Loop *const scale_loops[DT_COUNT] = {[DT_F32] = scale_f32, [DT_F64] = scale_f64};

/* Scales the gradients of the parameters by max_norm / (total + 1e-6) where that is less than
 * one; `total` is their norm, computed unless it is given, and the result. */
Tensor *op_clip_grads(Tensors params, double max_norm, double p, bool finite, Tensor *total) {
  Lists l = {.op = "_clip_grads_", .loops = scale_loops};
  Tensors own = gradients(params, "norms of sparse gradients are not implemented");
  int n = 0;
  for (int i = 0; i < own.n; i++)
    if (own.v[i]) own.v[n++] = own.v[i];
  own.n = n;
  WITHOUT_GRAD_BLOCK {
    if (!total) total = op_grad_norm(own, p, finite);
    if (total && n > 0) {
      Tensor *below = t_add(total, tensor_number(1e-6, DT_F64));
      Tensor *one = tensor_number(1, DT_F64);
      Tensor *factor = t_clamp_max(
          t_div_mode(tensor_number(max_norm, tensor_dtype(total)), below, NULL), one);
      double by = factor ? tensor_get_f(factor, 0) : 0;
      if (add_list(&l, "grads", own) && check_lists(&l) && begin_writes(&l))
        for (int i = 0; i < n; i++) run_loop(&l, i, &by);
    }
  }
  return failed() ? NULL : total;
}

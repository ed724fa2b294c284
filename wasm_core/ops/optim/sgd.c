/* Stochastic gradient descent. */
#include "ops/op.h"
#include "ops/optim/lists.h"
#include "ops/optim/step.h"
#include "optim_rows.h"

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

void step_sgd(const Step *s, double weight_decay, double momentum, double lr, double dampening,
              bool nesterov, bool maximize, bool is_first_step) {
  Tensor *g = step_direction(s, weight_decay, maximize), *b = s->state[0];
  if (momentum != 0) { /* dense, since it remembers places that are gone from a sparse gradient */
    if (is_sparse(g)) g = t_to_dense(g, DT_NONE, true);
    if (is_first_step) t_copy_(b, g, true);
    else in_place_add(in_place_mul_f(b, momentum), g, 1 - dampening);
    g = nesterov ? t_add_scaled(g, b, tensor_wrapped_f(momentum)) : b;
  }
  in_place_add(s->p, g, -lr);
}

void op_fused_sgd(Call *c) {
  /* until the crossing ends: parameters are leaves, and this is no op to record */
  grad_mode = false;
  Lists l = {.op = "_fused_sgd_"};
  Sgd k = {arg_bool(c, 8) ? -1 : 1, arg_float(c, 3),     arg_float(c, 4),
           arg_float(c, 5),         1 - arg_float(c, 6), arg_bool(c, 7)};
  int kind = k.momentum == 0 ? PLAIN : arg_bool(c, 9) ? FIRST : LATER;
  l.loops = sgd_loops[kind];
  lists_add_parameters(&l, c, NULL);
  if (kind != PLAIN) lists_add(&l, "momentum_buffers", arg_tensors(c, 2));
  lists_drop_without_gradient(&l, NULL);
  int sparse = part_sparse(&l);
  if (failed() || !lists_check(&l) || !lists_begin_writes(&l)) return;
  for (int i = l.n; i < l.n + sparse && !failed(); i++) {
    Step s = {.p = l.lists[0][i], .g = l.lists[1][i]};
    if (kind != PLAIN) s.state[0] = l.lists[2][i];
    step_sgd(&s, k.weight_decay, k.momentum, k.lr, arg_float(c, 6), k.nesterov, k.sign < 0,
             kind == FIRST);
  }
  for (int i = 0; i < l.n && !failed(); i++) lists_run(&l, i, &k);
}

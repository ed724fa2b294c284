/* Adam, with and without decoupled decay. */
#include <math.h>

#include "kernels/maths.h"
#include "ops/op.h"
#include "ops/optim/lists.h"
#include "ops/optim/step.h"
#include "optim_rows.h"

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

void op_fused_adam(Call *c, bool decoupled) {
  grad_mode = false;
  Lists l = {.op = decoupled ? "_fused_adamw_" : "_fused_adam_"};
  double lr = arg_float(c, 6), beta1 = arg_float(c, 7), beta2 = arg_float(c, 8),
         decay = arg_float(c, 9), eps = arg_float(c, 10);
  bool ams = arg_bool(c, 11);
  l.loops = adam_loops[ams];
  Tensors steps = arg_tensors(c, 5);
  lists_add_parameters(
      &l, c, "Adam does not support sparse gradients, please consider SparseAdam instead");
  lists_add(&l, "exp_avgs", arg_tensors(c, 2));
  lists_add(&l, "exp_avg_sqs", arg_tensors(c, 3));
  if (ams) lists_add(&l, "max_exp_avg_sqs", arg_tensors(c, 4));
  lists_drop_without_gradient(&l, &steps);
  if (failed() || !lists_check(&l) || !lists_check_steps(&l, steps) || !lists_begin_writes(&l))
    return;
  Adam k = {.sign = arg_bool(c, 12) ? -1 : 1,
            .add_decay = decoupled ? 0 : decay,
            .mul_decay = decoupled ? 1 - lr * decay : 1,
            .w1 = 1 - beta1,
            .beta2 = beta2,
            .w2 = 1 - beta2,
            .eps = eps};
  double last = 0;
  for (int i = 0; i < l.n; i++) {
    double t = lists_count_step(steps.v[i]);
    if (i == 0 || t != last) {
      k.root2 = sqrt(1 - pow(beta2, t));
      k.step = lr / (1 - pow(beta1, t));
      last = t;
    }
    lists_run(&l, i, &k);
  }
}

void step_adam(const Step *s, double lr, double beta1, double beta2, double weight_decay,
               double eps, bool amsgrad, bool maximize, bool decoupled) {
  Tensor *g = step_decayed_direction(s, lr, weight_decay, maximize, decoupled);
  Tensor *m = s->state[0], *v = s->state[1], *most = s->state[2];
  step_moments(m, v, g, beta1, beta2);
  if (amsgrad) v = t_copy_(most, t_maximum(most, v), true);
  Tensor *root = t_div_f(t_sqrt(v), sqrt(1 - pow(beta2, s->t)));
  in_place_addcdiv(s->p, m, in_place_add_f(root, eps), -lr / (1 - pow(beta1, s->t)));
}

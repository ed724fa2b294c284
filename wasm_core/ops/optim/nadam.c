/* Adam with Nesterov's momentum. */
#include <math.h>

#include "ops/op.h"
#include "ops/optim/step.h"
#include "optim_rows.h"

void step_nadam(const Step *s, double beta1, double beta2, double lr, double weight_decay,
                double momentum_decay, double eps, bool maximize, bool decoupled) {
  Tensor *g = step_decayed_direction(s, lr, weight_decay, maximize, decoupled);
  Tensor *m = s->state[0], *v = s->state[1];
  double mu = beta1 * (1 - 0.5 * pow(0.96, s->t * momentum_decay));
  double next = beta1 * (1 - 0.5 * pow(0.96, (s->t + 1) * momentum_decay));
  in_place_mul_f(s->state[2], mu);
  double product = step_number(s->state[2]);
  step_moments(m, v, g, beta1, beta2);
  Tensor *root = in_place_sqrt(t_div_f(v, 1 - pow(beta2, s->t)));
  Tensor *scale = in_place_add_f(root, eps);
  in_place_addcdiv(s->p, g, scale, -lr * (1 - mu) / (1 - product));
  in_place_addcdiv(s->p, m, scale, -lr * next / (1 - product * next));
}

/* Adamax: Adam with the largest recent gradient instead of the root mean square. */
#include <math.h>

#include "ops/op.h"
#include "ops/optim/step.h"
#include "optim_rows.h"

void step_adamax(const Step *s, double eps, double beta1, double beta2, double lr,
                 double weight_decay, bool maximize) {
  Tensor *g = step_direction(s, weight_decay, maximize), *m = s->state[0], *u = s->state[1];
  in_place_lerp(m, g, 1 - beta1);
  t_copy_(u, t_maximum(in_place_mul_f(u, beta2), in_place_add_f(t_abs(g), eps)), true);
  in_place_addcdiv(s->p, m, u, -(lr / (1 - pow(beta1, s->t))));
}

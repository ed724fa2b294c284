/* Adam with a rectified step length in its first steps, where the variance is uncertain. */
#include <math.h>

#include "ops/op.h"
#include "ops/optim/step.h"
#include "optim_rows.h"

/* The factor of step t, or 0 if the average has too few steps. */
static double rectification(double t, double beta2) {
  double limit = 2 / (1 - beta2) - 1, power = pow(beta2, t);
  double rho = limit - 2 * t * power / (1 - power);
  return rho <= 5 ? 0 : sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho));
}

void step_radam(const Step *s, double beta1, double beta2, double lr, double weight_decay,
                double eps, bool maximize, bool decoupled) {
  Tensor *g = step_decayed_direction(s, lr, weight_decay, maximize, decoupled);
  Tensor *m = s->state[0], *v = s->state[1];
  step_moments(m, v, g, beta1, beta2);
  Tensor *update = in_place_mul_f(t_div_f(m, 1 - pow(beta1, s->t)), lr);
  double rectified = rectification(s->t, beta2);
  if (rectified != 0) {
    Tensor *scale = t_reciprocal(in_place_add_f(t_sqrt(v), eps));
    in_place_mul(update, t_mul_f(scale, sqrt(1 - pow(beta2, s->t))));
    in_place_mul_f(update, rectified);
  }
  in_place_sub(s->p, update);
}

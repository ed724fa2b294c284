/* Stochastic gradient descent that also averages the parameters. */
#include <math.h>

#include "ops/op.h"
#include "ops/optim/step.h"
#include "optim_rows.h"

void step_asgd(const Step *s, double lambd, double lr, double t0, double alpha, double weight_decay,
               bool maximize) {
  Tensor *g = step_direction(s, weight_decay, maximize), *average = s->state[0];
  double mu = step_number(s->state[1]), eta = step_number(s->state[2]);
  in_place_add(in_place_mul_f(s->p, 1 - lambd * eta), g, -eta);
  if (mu == 1) t_copy_(average, s->p, true);
  else in_place_add(average, in_place_mul_f(t_sub(s->p, average), mu), 1);
  step_set_number(s->state[2], lr / pow(1 + lambd * lr * s->t, alpha));
  step_set_number(s->state[1], 1 / fmax(1, s->t - t0));
}

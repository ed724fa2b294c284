/* Adadelta: the gradient over its root mean square, times that of past updates. */
#include "ops/op.h"
#include "ops/optim/step.h"
#include "optim_rows.h"

void step_adadelta(const Step *s, double lr, double rho, double eps, double weight_decay,
                   bool maximize) {
  Tensor *g = step_direction(s, weight_decay, maximize), *v = s->state[0], *u = s->state[1];
  step_average_squares(v, g, rho);
  Tensor *scale = in_place_sqrt(t_add_f(v, eps));
  Tensor *update = in_place_mul(in_place_div(in_place_sqrt(t_add_f(u, eps)), scale), g);
  step_average_squares(u, update, rho);
  in_place_add(s->p, update, -lr);
}

/* The gradient over its running root mean square. */
#include "ops/op.h"
#include "ops/optim/step.h"
#include "optim_rows.h"

void step_rmsprop(const Step *s, double lr, double alpha, double eps, double weight_decay,
                  double momentum, bool centered, bool maximize) {
  Tensor *g = step_direction(s, weight_decay, maximize);
  Tensor *v = s->state[0], *mean = s->state[1], *buffer = s->state[2], *variance = NULL;
  step_average_squares(v, g, alpha);
  if (centered) {
    in_place_lerp(mean, g, 1 - alpha);
    variance = t_addcmul(v, mean, mean, tensor_wrapped_f(-1));
  }
  Tensor *scale = in_place_add_f(centered ? in_place_sqrt(variance) : t_sqrt(v), eps);
  if (momentum > 0)
    in_place_add(s->p, in_place_addcdiv(in_place_mul_f(buffer, momentum), g, scale, 1), -lr);
  else in_place_addcdiv(s->p, g, scale, -lr);
}

/* Adam for sparse gradients: only the elements of a gradient are updated. */
#include <math.h>

#include "ops/op.h"
#include "ops/optim/step.h"
#include "ops/sparse/sparse.h"
#include "optim_rows.h"

/* Moves an average towards values at the places of g; returns its values there. */
static Tensor *update_average(Tensor *average, Tensor *g, Tensor *values, double beta) {
  Tensor *old = t_sparse_values(t_sparse_mask(average, g));
  Tensor *change = in_place_mul_f(t_sub(values, old), 1 - beta);
  in_place_add(average, t_with_values(g, change), 1);
  return in_place_add(old, change, 1);
}

void step_sparse_adam(const Step *s, double eps, double beta1, double beta2, double lr,
                      bool maximize) {
  Tensor *g = t_coalesce(step_direction(s, 0, maximize)), *values = t_sparse_values(g);
  if (failed() || !values->numel) return;
  Tensor *m = update_average(s->state[0], g, values, beta1);
  Tensor *v = update_average(s->state[1], g, t_square(values), beta2);
  double rate = lr * sqrt(1 - pow(beta2, s->t)) / (1 - pow(beta1, s->t));
  Tensor *change = in_place_div(m, in_place_add_f(in_place_sqrt(v), eps));
  in_place_add(s->p, t_with_values(g, in_place_mul_f(change, -rate)), 1);
}

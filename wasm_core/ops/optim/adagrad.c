/* Adagrad: the gradient over the root of the sum of its squares. */
#include "ops/op.h"
#include "ops/optim/step.h"
#include "ops/sparse/sparse.h"
#include "optim_rows.h"

static void step_sparse(const Step *s, Tensor *g, double rate, double eps) {
  Tensor *sum = s->state[0], *two = tensor_wrapped_i(2);
  g = t_coalesce(g);
  in_place_add(sum, t_pow(g, two), 1);
  Tensor *root = t_sqrt(t_sparse_values(t_sparse_mask(sum, g)));
  in_place_add(s->p, t_with_values(g, t_div(t_sparse_values(g), in_place_add_f(root, eps))), -rate);
}

void step_adagrad(const Step *s, double lr, double weight_decay, double lr_decay, double eps,
                  bool maximize) {
  bool sparse = is_sparse(s->g);
  if (sparse && weight_decay != 0) {
    fail(ERR_RUNTIME, "weight_decay option is not compatible with sparse gradients");
    return;
  }
  Tensor *g = step_direction(s, weight_decay, maximize), *sum = s->state[0];
  double rate = lr / (1 + (s->t - 1) * lr_decay);
  if (sparse) {
    step_sparse(s, g, rate, eps);
    return;
  }
  in_place_addcmul(sum, g, g, 1);
  in_place_addcdiv(s->p, g, in_place_add_f(t_sqrt(sum), eps), -rate);
}

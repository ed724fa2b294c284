/* Rprop: each element has its own step size, and only the signs of gradients count. */
#include "ops/op.h"
#include "ops/optim/step.h"
#include "optim_rows.h"

void step_rprop(const Step *s, double least, double most, double falling, double growing,
                bool maximize) {
  Tensor *g = maximize ? t_neg(s->g) : t_clone(s->g), *last = s->state[0], *size = s->state[1];
  Tensor *zero = tensor_wrapped_f(0), *kept = t_mul(g, last);
  Tensor *falls = t_lt(kept, zero), *factor = t_ones_like(kept);
  in_place_masked_fill(factor, t_gt(kept, zero), growing);
  in_place_masked_fill(factor, falls, falling);
  in_place_clamp(in_place_mul(size, factor), least, most);
  in_place_masked_fill(g, falls, 0);
  in_place_addcmul(s->p, t_sign(g), size, -1);
  t_copy_(last, g, true);
}

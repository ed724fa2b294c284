/* Muon: momentum with orthogonalized updates, for matrices. */
#include <math.h>
#include <string.h>

#include "ops/op.h"
#include "ops/optim/step.h"
#include "optim_rows.h"

static Factor factor(double f) { return (Factor){f, (int64_t)f, 0}; }

/* An approximation of U V^T for a matrix U S V^T, in bfloat16: some steps of x <- a x + (b m +
 * c m^2) x with m = x x^T, which move all singular values close to one. */
Tensor *op_newton_schulz(Tensor *g, Floats coefficients, int64_t steps, double eps) {
  if (blocked(g)) return NULL;
  if (steps >= 100)
    return fail(ERR_VALUE, "Number of steps must be less than 100 for computational efficiency");
  if (g->ndim != 2) return fail(ERR_VALUE, "Input tensor gradient must be a 2D matrix");
  if (coefficients.n != 3)
    return fail(ERR_VALUE, "Coefficients must be a tuple of exactly 3 values");
  const double *k = coefficients.v;
  bool tall = g->sizes[0] > g->sizes[1];
  Tensor *x = t_to(g, DT_BF16);
  if (tall) x = t_t(x);
  in_place_div(x, in_place_clamp_min(t_vector_norm(x, 2, ALL_DIMS, false, DT_NONE), eps));
  for (int64_t i = 0; i < steps && !failed(); i++) {
    Tensor *m = t_matmul(x, t_t(x));
    x = t_addmm(x, t_addmm(m, m, m, factor(k[1]), factor(k[2])), x, factor(k[0]), factor(1));
  }
  return tall ? t_t(x) : x;
}

/* The step length for a matrix of these sizes. */
static double adjusted_rate(double lr, const char *adjustment, const int64_t *sizes) {
  double rows = (double)sizes[0], columns = (double)sizes[1];
  if (!adjustment || strcmp(adjustment, "original") == 0)
    return lr * sqrt(rows / columns > 1 ? rows / columns : 1);
  return strcmp(adjustment, "match_rms_adamw") == 0
             ? lr * (0.2 * sqrt(rows > columns ? rows : columns))
             : lr;
}

void step_muon(const Step *s, double lr, double weight_decay, double momentum, bool nesterov,
               Floats coefficients, int64_t steps, double eps, const char *adjustment) {
  Tensor *mean = s->state[0];
  if (s->g->ndim != 2) {
    fail(ERR_VALUE, "Param gradient must be a 2D matrix");
    return;
  }
  in_place_lerp(mean, s->g, 1 - momentum);
  Tensor *update = nesterov ? t_lerp(s->g, mean, tensor_wrapped_f(momentum)) : mean;
  update = op_newton_schulz(update, coefficients, steps, eps);
  in_place_mul_f(s->p, 1 - lr * weight_decay);
  in_place_add(s->p, update, -adjusted_rate(lr, adjustment, s->p->sizes));
}

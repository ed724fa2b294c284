/* Adafactor: of a matrix of squared gradients only row and column averages are stored. */
#include <math.h>

#include "ops/op.h"
#include "ops/optim/step.h"
#include "optim_rows.h"

/* The distance of 1 to the next number of the type. */
static double epsilon(DType d) {
  return ldexp(1, d == DT_F16 ? -10 : d == DT_BF16 ? -7 : d == DT_F32 ? -23 : -52);
}

static void update_average(Tensor *average, Tensor *g, int64_t dim, double share) {
  Tensor *squares = t_square(t_vector_norm(g, 2, ONE_DIM(dim), true, DT_NONE));
  if (failed()) return;
  double size = (double)g->sizes[g->ndim + dim];
  in_place_lerp(average, in_place_div(squares, tensor_wrapped_f(size)), share);
}

/* Estimates of the squared gradients, after an update of the averages by g. */
static Tensor *squares_of(const Step *s, Tensor *g, double share, double least) {
  Tensor *rows = s->state[0], *columns = s->state[1], *variance = s->state[2];
  if (failed()) return NULL;
  if (g->ndim <= 1) return t_clone(in_place_lerp(variance, t_square(g), share));
  update_average(rows, g, -1, share);
  update_average(columns, g, -2, share);
  Tensor *mean = in_place_clamp_min(t_mean(rows, ONE_DIM(-2), true, DT_NONE), least);
  return in_place_div(t_matmul(rows, columns), mean);
}

static double norm(Tensor *x) {
  Tensor *y = t_vector_norm(x, 2, ALL_DIMS, false, DT_NONE);
  return y ? tensor_get_f(y, 0) : 0;
}

/* eps1: NaN for that of the parameter's type. */
void step_adafactor(const Step *s, double d, double lr, double beta2_decay, double weight_decay,
                    double eps1, double eps2, bool maximize) {
  Tensor *g = step_direction(s, 0, maximize);
  double least = isnan(eps1) ? epsilon(tensor_dtype(s->p)) : eps1;
  double root = sqrt((double)s->p->numel), size = norm(s->p);
  if (root == 0) fail(ERR_ZERO_DIVISION, "float division by zero");
  if (failed()) return;
  double shortest = 1 / sqrt(s->t), length = shortest < lr ? shortest : lr;
  double rate = length * (size / root > eps2 ? size / root : eps2);
  if (weight_decay != 0) in_place_mul_f(s->p, 1 - lr * weight_decay);
  Tensor *squares = squares_of(s, g, pow(s->t, beta2_decay), least);
  Tensor *update = in_place_mul(in_place_rsqrt(in_place_clamp_min(squares, least * least)), g);
  double excess = norm(update) / (root * d);
  in_place_add(s->p, update, -(rate / (excess > 1 ? excess : 1)));
}

/* Pathwise derivatives: how a draw moves as its distribution's parameter does, at a fixed place
 * F(x) = u in the distribution, dx/da = -(dF/da) / (dF/dx).
 *
 * Where the true quotient has no short form these are PyTorch's approximations, good to about four
 * digits: a gradient has to be its gradient, so what is approximated is part of the result. */
#ifndef PG_PATHWISE_H
#define PG_PATHWISE_H

/* Of a draw x from the standard gamma distribution, by its concentration. */
double pathwise_gamma(double concentration, double x);
/* Of the part x that one concentration has of a Dirichlet draw, by that concentration, divided by
 * 1 - x; `total` is the sum of the concentrations. */
float pathwise_dirichlet_f32(float x, float concentration, float total);
double pathwise_dirichlet_f64(double x, double concentration, double total);
#define pathwise_dirichlet(x, concentration, total)                                               \
  _Generic((x), float: pathwise_dirichlet_f32, default: pathwise_dirichlet_f64)(x, concentration, \
                                                                                total)

#endif

/* Pathwise derivatives: how a draw moves as its distribution's parameter does, at a fixed place
 * F(x) = u in the distribution, dx/da = -(dF/da) / (dF/dx).
 *
 * Where the true quotient has no short form these are PyTorch's approximations, good to about four
 * digits: gradients must equal PyTorch's, so the approximation is part of the result. */
#ifndef PG_PATHWISE_H
#define PG_PATHWISE_H

/* The derivative of a standard gamma draw x by its concentration. */
double pathwise_gamma(double concentration, double x);
/* The derivative of one part x of a Dirichlet draw by that part's concentration, divided by 1 - x;
 * `total` is the sum of the concentrations. */
float pathwise_dirichlet_f32(float x, float concentration, float total);
double pathwise_dirichlet_f64(double x, double concentration, double total);
#define pathwise_dirichlet(x, concentration, total)                                               \
  _Generic((x), float: pathwise_dirichlet_f32, default: pathwise_dirichlet_f64)(x, concentration, \
                                                                                total)

#endif

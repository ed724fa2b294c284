/* The answers of torch.autograd.functional: see jacobians.c. */
#ifndef PG_JACOBIANS_H
#define PG_JACOBIANS_H

/* X(name, what is asked of the function, the walks it takes). Hosts read their numbers by name:
 * answer_vjp. */
#define FUNCTIONAL_ANSWERS(X)                             \
  X(vjp, PRODUCT, BACK)                                   \
  X(jvp, SWAPPED | PRODUCT, BACK_TRICK)                   \
  X(vhp, GRADIENT | PRODUCT, DOUBLE_BACK)                 \
  X(hvp, GRADIENT | SWAPPED | PRODUCT, DOUBLE_BACK_TRICK) \
  X(jacobian, ROWS, ROW)                                  \
  X(hessian, GRADIENT, JACOBIAN) /* the function whose Jacobian it is */
enum {
#define X(name, asked, walks) ANSWER_##name,
  FUNCTIONAL_ANSWERS(X)
#undef X
};

#endif

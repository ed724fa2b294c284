/* The answers of torch.autograd.functional: see jacobians.c. */
#ifndef PG_JACOBIANS_H
#define PG_JACOBIANS_H

/* X(name, its walks, the last stage of strict mode). Hosts read the numbers by name: answer_vjp. */
#define FUNCTIONAL_ANSWERS(X)                             \
  X(vjp, PRODUCT, BACK)                                   \
  X(jvp, SWAPPED | PRODUCT, BACK_TRICK)                   \
  X(vhp, GRADIENT | PRODUCT, DOUBLE_BACK)                 \
  X(hvp, GRADIENT | SWAPPED | PRODUCT, DOUBLE_BACK_TRICK) \
  X(jacobian, ROWS, ROW)                                  \
  X(hessian, GRADIENT, JACOBIAN) /* the first derivative only; the host takes its Jacobian */
enum {
#define X(name, asked, walks) ANSWER_##name,
  FUNCTIONAL_ANSWERS(X)
#undef X
};

#endif

/* Ops in place on a tensor, as a host calls them: each is a call of a row. All give back x, or NULL
 * after an error. */
#ifndef PG_IN_PLACE_H
#define PG_IN_PLACE_H

#include "tensor/tensor.h"

Tensor *in_place_add(Tensor *x, Tensor *y, double scale); /* x + scale y */
Tensor *in_place_add_f(Tensor *x, double y);
Tensor *in_place_sub(Tensor *x, Tensor *y);
Tensor *in_place_mul(Tensor *x, Tensor *y);
Tensor *in_place_mul_f(Tensor *x, double y);
Tensor *in_place_div(Tensor *x, Tensor *y);
Tensor *in_place_sqrt(Tensor *x);
Tensor *in_place_rsqrt(Tensor *x);
Tensor *in_place_lerp(Tensor *x, Tensor *y, double weight);              /* x + weight (y - x) */
Tensor *in_place_addcmul(Tensor *x, Tensor *a, Tensor *b, double scale); /* x + scale a b */
Tensor *in_place_addcdiv(Tensor *x, Tensor *a, Tensor *b, double scale); /* x + scale a / b */
Tensor *in_place_clamp(Tensor *x, double least, double most);
Tensor *in_place_clamp_min(Tensor *x, double least);
Tensor *in_place_masked_fill(Tensor *x, Tensor *mask, double value);

#endif

/* Layer ops for other ops, and functions shared by the files of this folder. */
#ifndef PG_NN_H
#define PG_NN_H

#include "call/call.h"

/* --- losses --- */
typedef enum { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM, REDUCE_BATCH_MEAN, REDUCE_BAD } Reduction;
/* The reduction named by argument `reduction`, unless the older flags size_average and reduce
 * are given (and no longer advised). REDUCE_BAD with an error. size_average < 0: the op has no
 * such flags. */
Reduction arg_reduction(const Call *c, int size_average, int reduce, int reduction);
Reduction arg_numbered_reduction(const Call *c, int k); /* by its number in torch's functions */
Tensor *loss_reduced(Tensor *loss, Reduction r);        /* with history */
/* Refuses t as an argument that op has no gradient for. */
bool nn_check_constant(const char *op, const char *argument, const Tensor *t);

/* --- normalisation --- */
Tensor *t_batch_norm(Tensor *x, Tensor *weight, Tensor *bias, Tensor *running_mean,
                     Tensor *running_var, bool training, double momentum, double eps);
Tensor *t_group_norm(Tensor *x, int64_t groups, Tensor *weight, Tensor *bias, double eps,
                     bool functional);

/* --- windows --- */
Tensor *t_pad(Tensor *x, Ints pad, const char *mode, Tensor *value); /* value NULL: 0 */
/* nd spatial dims; lists of one number count for all; stride.n <= 0: the kernel; divisor NULL:
 * the window's size */
Tensor *t_avg_pool(Tensor *x, int nd, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                   bool count_include_pad, const int64_t *divisor);
Tensor *t_adaptive_avg_pool(Tensor *x, int nd, Ints size);
/* argument k, where a bare number stands for all nd */
Ints pooling_adaptive_size(Call *c, int k, int nd);
Tensor *t_adaptive_avg_pool1d(Tensor *x, Ints size);

/* --- from the arguments of interpolate and upsample --- */
const char *nn_list_text(const Value *v);               /* a list argument as Python shows it */
const char *nn_tuple_text(int n, const int64_t *sizes); /* a shape as Python shows the tuple */

/* --- attention --- */
Tensor *t_scaled_dot_product_attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask,
                                       double dropout_p, bool is_causal, const double *scale,
                                       bool enable_gqa);

/* --- dropout --- */
enum { DROP_CHANNELS = 1, DROP_ALPHA = 2 };
Tensor *t_dropout(Tensor *x, double p, bool training);
Tensor *t_functional_dropout(Tensor *x, double p, bool training, int kind); /* bits */

#endif

/* The layer ops as C functions (loss.c, margin_loss.c, ctc.c, normalization.c, conv.c, pooling.c, unpool.c,
 * fractional.c, dropout.c, pad.c, resample.c, grid.c, relaxed.c, attention.c, multihead.c), and what those
 * files share. */
#ifndef PG_NN_H
#define PG_NN_H

#include "call/call.h"

/* --- losses --- */
typedef enum { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM, REDUCE_BATCH_MEAN, REDUCE_BAD } Reduction;
/* The reduction named by argument `reduction`, unless the older flags size_average and reduce
 * are given (and no longer advised). REDUCE_BAD with an error. size_average < 0: the op has no
 * such flags. */
Reduction arg_reduction(const Call *c, int size_average, int reduce, int reduction);
/* with a shorter refusal */
Reduction arg_short_reduction(const Call *c, int size_average, int reduce, int reduction);
Reduction arg_kl_reduction(const Call *c);       /* of kl_div's arguments 2 to 4 */
Tensor *loss_reduced(Tensor *loss, Reduction r); /* with history */
/* Refuses t as an argument that op has no gradient for. */
bool check_constant(const char *op, const char *argument, const Tensor *t);

Tensor *t_nll_loss(Tensor *x, Tensor *target, Tensor *weight, int64_t ignore_index, Reduction r);
Tensor *t_cross_entropy(Tensor *x, Tensor *target, Tensor *weight, int64_t ignore_index,
                        Reduction r, double label_smoothing);
Tensor *t_mse_loss(Tensor *x, Tensor *target, Reduction r, Tensor *weight);
Tensor *t_l1_loss(Tensor *x, Tensor *target, Reduction r, Tensor *weight);
Tensor *t_smooth_l1_loss(Tensor *x, Tensor *target, Reduction r, double beta);
Tensor *t_huber_loss(Tensor *x, Tensor *target, Reduction r, double delta, Tensor *weight);
Tensor *t_binary_cross_entropy(Tensor *x, Tensor *target, Tensor *weight, Reduction r);
Tensor *t_binary_cross_entropy_with_logits(Tensor *x, Tensor *target, Tensor *weight, Reduction r,
                                           Tensor *pos_weight);
Tensor *t_soft_margin_loss(Tensor *x, Tensor *target, Reduction r);
Tensor *t_kl_div(Tensor *x, Tensor *target, Reduction r, bool log_target);
Tensor *t_poisson_nll_loss(Tensor *x, Tensor *target, bool log_input, bool full, double eps,
                           Reduction r);
Tensor *t_gaussian_nll_loss(Tensor *x, Tensor *target, Tensor *var, bool full, double eps,
                            Reduction r);
Tensor *t_multi_margin_loss(Tensor *x, Tensor *target, double p, double margin, Tensor *weight,
                            Reduction r);
Tensor *t_multilabel_margin_loss(Tensor *x, Tensor *target, Reduction r);
Tensor *t_multilabel_soft_margin_loss(Tensor *x, Tensor *target, Tensor *weight, Reduction r);
Tensor *t_hinge_embedding_loss(Tensor *x, Tensor *target, double margin, Reduction r);
Tensor *t_cosine_embedding_loss(Tensor *a, Tensor *b, Tensor *target, double margin, Reduction r);
Tensor *t_margin_ranking_loss(Tensor *a, Tensor *b, Tensor *target, double margin, Reduction r);
Tensor *t_triplet_margin_loss(Tensor *anchor, Tensor *positive, Tensor *negative, double margin,
                              double p, double eps, bool swap, Reduction r);
Tensor *t_ctc_loss(Call *c, Reduction r);
Reduction arg_numbered_reduction(const Call *c, int k); /* by its number in torch's functions */

/* --- normalisation --- */
Tensor *t_layer_norm(Tensor *x, Ints shape, Tensor *weight, Tensor *bias, double eps);
void t_native_layer_norm(Tensor *x, Ints shape, Tensor *weight, Tensor *bias, double eps,
                         Tensor *out[3]);
Tensor *t_batch_norm(Tensor *x, Tensor *weight, Tensor *bias, Tensor *running_mean,
                     Tensor *running_var, bool training, double momentum, double eps);
void t_native_batch_norm(Tensor *x, Tensor *weight, Tensor *bias, Tensor *running_mean,
                         Tensor *running_var, bool training, double momentum, double eps,
                         Tensor *out[3]);
/* With the checks that nn.functional adds. */
Tensor *t_functional_batch_norm(Tensor *x, Tensor *running_mean, Tensor *running_var,
                                Tensor *weight, Tensor *bias, bool training, double momentum,
                                double eps);
Tensor *t_group_norm(Tensor *x, int64_t groups, Tensor *weight, Tensor *bias, double eps,
                     bool functional);
/* shape: samples, channels, places; out: normalized, means, one over the deviations */
void t_native_group_norm(Tensor *x, Tensor *weight, Tensor *bias, const int64_t shape[3],
                         int64_t groups, double eps, Tensor *out[3]);
Tensor *t_instance_norm(Tensor *x, Tensor *weight, Tensor *bias, Tensor *running_mean,
                        Tensor *running_var, bool use_input_stats, double momentum, double eps,
                        bool functional);
/* NULL: of the dtype */
Tensor *t_rms_norm(Tensor *x, Ints shape, Tensor *weight, const double *eps);
Tensor *t_local_response_norm(Tensor *x, int64_t size, double alpha, double beta, double k);

/* --- convolutions of nd spatial dims; a list of one number counts for all --- */
Tensor *t_conv(Tensor *input, Tensor *w, Tensor *bias, int nd, Ints stride, Ints padding,
               Ints dilation, int64_t groups);
Tensor *t_conv_named(Tensor *x, Tensor *w, Tensor *bias, int nd, Ints stride, const char *padding,
                     Ints dilation, int64_t groups);
Tensor *t_conv_transpose(Tensor *input, Tensor *w, Tensor *bias, int nd, Ints stride, Ints padding,
                         Ints output_padding, int64_t groups, Ints dilation);
Tensor *t_unfold_patches(Tensor *x, Ints kernel, Ints dilation, Ints padding, Ints stride);
Tensor *t_fold_patches(Tensor *x, Ints output_size, Ints kernel, Ints dilation, Ints padding,
                       Ints stride);

/* --- windows --- */
Tensor *t_constant_pad(Tensor *x, Ints pad, Tensor *value);
Tensor *t_pad(Tensor *x, Ints pad, const char *mode, Tensor *value); /* value NULL: 0 */
Tensor *t_pixel_shuffle(Tensor *x, int64_t r);
Tensor *t_pixel_unshuffle(Tensor *x, int64_t r);
Tensor *t_channel_shuffle(Tensor *x, int64_t groups);
/* nd spatial dims; lists of one number count for all; stride.n <= 0: the kernel; divisor NULL:
 * the window's size */
Tensor *t_avg_pool(Tensor *x, int nd, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                   bool count_include_pad, const int64_t *divisor);
void t_max_pool(Tensor *x, int nd, Ints kernel, Ints stride, Ints padding, Ints dilation,
                bool ceil_mode, Tensor *out[2]);
Tensor *t_adaptive_avg_pool(Tensor *x, int nd, Ints size);
void t_adaptive_max_pool(Tensor *x, int nd, Ints size, Tensor *out[2]);
/* argument k, of which a bare number stands for all of nd */
Ints adaptive_size(Call *c, int k, int nd);
void t_max_pool1d(Tensor *x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode,
                  bool indices, Tensor *out[2]);
Tensor *t_avg_pool1d(Tensor *x, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                     bool count_include_pad);
Tensor *t_adaptive_avg_pool1d(Tensor *x, Ints size);
void t_adaptive_max_pool1d(Tensor *x, Ints size, Tensor *out[2]);
Tensor *t_lp_pool(Tensor *x, int nd, double p, Ints kernel, Ints stride, bool ceil_mode);

Tensor *t_max_unpool(Call *c, int nd);
void t_fractional_max_pool2d(Call *c, Tensor *out[2]);

/* --- grids; modes are numbers: their places in PyTorch's lists; rank 0: any --- */
Tensor *t_affine_grid(Call *c);
Tensor *t_affine_grid_generator(Tensor *theta, Ints size, bool centres);
Tensor *t_grid_sample(Call *c);
Tensor *t_grid_sampler(Tensor *x, Tensor *grid, int64_t mode, int64_t padding, bool centres,
                       int rank);

Tensor *t_gumbel_softmax(Tensor *logits, double tau, bool hard, double eps, int64_t dim);

/* --- from the arguments of interpolate and upsample --- */
Tensor *t_interpolate(Call *c);
Tensor *t_upsample(Call *c);
Tensor *t_upsample_by(Call *c, const char *name,
                      const char *mode); /* of size and scale_factor alone */
const char *list_text(const Value *v);   /* a list argument as Python shows it */

Tensor *t_scaled_dot_product_attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask,
                                       double dropout_p, bool is_causal, const double *scale,
                                       bool enable_gqa);
void op_multi_head_attention(Call *c);

/* --- dropout --- */
enum { DROP_CHANNELS = 1, DROP_ALPHA = 2 };
Tensor *t_dropout(Tensor *x, double p, bool training);
Tensor *t_feature_dropout(Tensor *x, double p, bool training);
Tensor *t_alpha_dropout(Tensor *x, double p, bool training);
Tensor *t_feature_alpha_dropout(Tensor *x, double p, bool training);
Tensor *t_functional_dropout(Tensor *x, double p, bool training, int kind); /* bits */
Tensor *t_dropout1d(Tensor *x, double p, bool training);
Tensor *t_dropout2d(Tensor *x, double p, bool training);
Tensor *t_dropout3d(Tensor *x, double p, bool training);
void t_native_dropout(Tensor *x, double p, const bool *training, Tensor *out[2]);

#endif

// Made by `make stubs` from the classes of pygrad.nn. Do not edit.
import type { DType, Module, Parameter, Tensor } from '../index.js';

export const definitions: Record<string, (scope: any) => any>;

/** Means of windows, as many as the output's length. Shape: (N, C, L) -> (N, C, S). */
export interface AdaptiveAvgPool1d extends Module {
  output_size: number | readonly (number | null)[] | null;
  forward(input: Tensor): Tensor;
}

/** Means of windows, as many as the output has places; `None` keeps a length. */
export interface AdaptiveAvgPool2d extends Module {
  output_size: number | readonly (number | null)[] | null;
  forward(input: Tensor): Tensor;
}

/** Means of windows, as many as the output has places; `None` keeps a length. */
export interface AdaptiveAvgPool3d extends Module {
  output_size: number | readonly (number | null)[] | null;
  forward(input: Tensor): Tensor;
}

/** Maxima of windows, as many as the output has places; with `return_indices` also the indices. */
export interface AdaptiveMaxPool1d extends Module {
  output_size: number | readonly (number | null)[] | null;
  return_indices: boolean;
  forward(input: Tensor): any;
}

/** Maxima of windows, as many as the output has places; with `return_indices` also the indices. */
export interface AdaptiveMaxPool2d extends Module {
  output_size: number | readonly (number | null)[] | null;
  return_indices: boolean;
  forward(input: Tensor): any;
}

/** Maxima of windows, as many as the output has places; with `return_indices` also the indices. */
export interface AdaptiveMaxPool3d extends Module {
  output_size: number | readonly (number | null)[] | null;
  return_indices: boolean;
  forward(input: Tensor): any;
}

/** Dropout that preserves mean and variance after a SELU. Shape: any, unchanged. */
export interface AlphaDropout extends Module {
  p: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** The mean of each window of (N, C, L) or (C, L). */
export interface AvgPool1d extends Module {
  kernel_size: number | readonly number[];
  stride: number | readonly number[];
  padding: number | readonly number[];
  ceil_mode: boolean;
  count_include_pad: boolean;
  forward(input: Tensor): Tensor;
}

/** The mean of each window of (N, C, H, W) or (C, H, W). */
export interface AvgPool2d extends Module {
  kernel_size: number | readonly number[];
  stride: number | readonly number[];
  padding: number | readonly number[];
  ceil_mode: boolean;
  count_include_pad: boolean;
  divisor_override: number | null;
  forward(input: Tensor): Tensor;
}

/** The mean of each window of (N, C, D, H, W) or (C, D, H, W). */
export interface AvgPool3d extends Module {
  kernel_size: number | readonly number[];
  stride: number | readonly number[];
  padding: number | readonly number[];
  ceil_mode: boolean;
  count_include_pad: boolean;
  divisor_override: number | null;
  forward(input: Tensor): Tensor;
}

/** -weight * (y * log(x) + (1 - y) * log(1 - x)) for probabilities x. */
export interface BCELoss extends Module {
  reduction: string;
  weight: Tensor | null;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** `BCELoss` of sigmoid(x), without overflow; `pos_weight` multiplies the term of y. */
export interface BCEWithLogitsLoss extends Module {
  reduction: string;
  weight: Tensor | null;
  pos_weight: Tensor | null;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** Batch normalisation over (N, C) or (N, C, L). */
export interface BatchNorm1d extends Module {
  weight: Parameter | null;
  bias: Parameter | null;
  running_mean: Tensor | null;
  running_var: Tensor | null;
  num_batches_tracked: Tensor | null;
  num_features: number;
  eps: number;
  momentum: number | null;
  affine: boolean;
  track_running_stats: boolean;
  reset_parameters(): void;
  reset_running_stats(): void;
  forward(input: Tensor): Tensor;
}

/** Batch normalisation over (N, C, H, W). Arguments as `BatchNorm1d`. */
export interface BatchNorm2d extends Module {
  weight: Parameter | null;
  bias: Parameter | null;
  running_mean: Tensor | null;
  running_var: Tensor | null;
  num_batches_tracked: Tensor | null;
  num_features: number;
  eps: number;
  momentum: number | null;
  affine: boolean;
  track_running_stats: boolean;
  reset_parameters(): void;
  reset_running_stats(): void;
  forward(input: Tensor): Tensor;
}

/** Batch normalisation over (N, C, D, H, W). Arguments as `BatchNorm1d`. */
export interface BatchNorm3d extends Module {
  weight: Parameter | null;
  bias: Parameter | null;
  running_mean: Tensor | null;
  running_var: Tensor | null;
  num_batches_tracked: Tensor | null;
  num_features: number;
  eps: number;
  momentum: number | null;
  affine: boolean;
  track_running_stats: boolean;
  reset_parameters(): void;
  reset_running_stats(): void;
  forward(input: Tensor): Tensor;
}

/** y_k = x1^T W_k x2 + b_k. */
export interface Bilinear extends Module {
  weight: Parameter;
  bias: Parameter | null;
  in1_features: number;
  in2_features: number;
  out_features: number;
  reset_parameters(): void;
  forward(input1: Tensor, input2: Tensor): Tensor;
}

/** max(0, x) + min(0, alpha * (exp(x / alpha) - 1)). */
export interface CELU extends Module {
  alpha: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** The negative log-probability of labellings over all their alignments (Graves, 2006). */
export interface CTCLoss extends Module {
  reduction: string;
  blank: number;
  zero_infinity: boolean;
  forward(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor): Tensor;
}

/** Distributes the channels to `groups` in turn. */
export interface ChannelShuffle extends Module {
  groups: number;
  forward(input: Tensor): Tensor;
}

/** Pads the last dimension with elements from the opposite end. */
export interface CircularPad1d extends Module {
  padding: number | readonly number[];
  forward(input: Tensor): Tensor;
}

/** Pads the last 2 dimensions with elements from the opposite end. */
export interface CircularPad2d extends Module {
  padding: number | readonly number[];
  forward(input: Tensor): Tensor;
}

/** Pads the last 3 dimensions with elements from the opposite end. */
export interface CircularPad3d extends Module {
  padding: number | readonly number[];
  forward(input: Tensor): Tensor;
}

/** Pads the last dimension with a number. */
export interface ConstantPad1d extends Module {
  padding: number | readonly number[];
  value: number;
  forward(input: Tensor): Tensor;
}

/** Pads the last 2 dimensions with a number. */
export interface ConstantPad2d extends Module {
  padding: number | readonly number[];
  value: number;
  forward(input: Tensor): Tensor;
}

/** Pads the last 3 dimensions with a number. */
export interface ConstantPad3d extends Module {
  padding: number | readonly number[];
  value: number;
  forward(input: Tensor): Tensor;
}

/** Cross-correlation of (N, C_in, L) with C_out kernels of length k. */
export interface Conv1d extends Module {
  weight: Parameter;
  bias: Parameter | null;
  in_channels: number;
  out_channels: number;
  kernel_size: number | readonly number[];
  stride: number | readonly number[];
  padding: string | number | readonly number[];
  dilation: number | readonly number[];
  transposed: boolean;
  output_padding: number[];
  groups: number;
  padding_mode: string;
  reset_parameters(): void;
  forward(input: Tensor): Tensor;
}

/** Cross-correlation of (N, C_in, H, W) with C_out kernels of size (k_h, k_w). */
export interface Conv2d extends Module {
  weight: Parameter;
  bias: Parameter | null;
  in_channels: number;
  out_channels: number;
  kernel_size: number | readonly number[];
  stride: number | readonly number[];
  padding: string | number | readonly number[];
  dilation: number | readonly number[];
  transposed: boolean;
  output_padding: number[];
  groups: number;
  padding_mode: string;
  reset_parameters(): void;
  forward(input: Tensor): Tensor;
}

/** Cross-correlation of (N, C_in, D, H, W) with C_out kernels of size (k_d, k_h, k_w). */
export interface Conv3d extends Module {
  weight: Parameter;
  bias: Parameter | null;
  in_channels: number;
  out_channels: number;
  kernel_size: number | readonly number[];
  stride: number | readonly number[];
  padding: string | number | readonly number[];
  dilation: number | readonly number[];
  transposed: boolean;
  output_padding: number[];
  groups: number;
  padding_mode: string;
  reset_parameters(): void;
  forward(input: Tensor): Tensor;
}

/** Transposed convolution of (N, C_in, L) or (C_in, L). */
export interface ConvTranspose1d extends Module {
  weight: Parameter;
  bias: Parameter | null;
  in_channels: number;
  out_channels: number;
  kernel_size: number | readonly number[];
  stride: number | readonly number[];
  padding: number[];
  dilation: number | readonly number[];
  transposed: boolean;
  output_padding: number | readonly number[];
  groups: number;
  padding_mode: string;
  reset_parameters(): void;
  forward(input: Tensor, output_size?: readonly number[] | null): Tensor;
  forward(input: Tensor, options: { output_size?: readonly number[] | null }): Tensor;
}

/** Transposed convolution of (N, C_in, H, W) or (C_in, H, W). */
export interface ConvTranspose2d extends Module {
  weight: Parameter;
  bias: Parameter | null;
  in_channels: number;
  out_channels: number;
  kernel_size: number | readonly number[];
  stride: number | readonly number[];
  padding: number[];
  dilation: number | readonly number[];
  transposed: boolean;
  output_padding: number | readonly number[];
  groups: number;
  padding_mode: string;
  reset_parameters(): void;
  forward(input: Tensor, output_size?: readonly number[] | null): Tensor;
  forward(input: Tensor, options: { output_size?: readonly number[] | null }): Tensor;
}

/** Transposed convolution of (N, C_in, D, H, W) or (C_in, D, H, W). */
export interface ConvTranspose3d extends Module {
  weight: Parameter;
  bias: Parameter | null;
  in_channels: number;
  out_channels: number;
  kernel_size: number | readonly number[];
  stride: number | readonly number[];
  padding: number[];
  dilation: number | readonly number[];
  transposed: boolean;
  output_padding: number | readonly number[];
  groups: number;
  padding_mode: string;
  reset_parameters(): void;
  forward(input: Tensor, output_size?: readonly number[] | null): Tensor;
  forward(input: Tensor, options: { output_size?: readonly number[] | null }): Tensor;
}

/** 1 - cos(x1, x2) where y = 1, and max(0, cos(x1, x2) - margin) where y = -1. */
export interface CosineEmbeddingLoss extends Module {
  reduction: string;
  margin: number;
  forward(input1: Tensor, input2: Tensor, target: Tensor): Tensor;
}

/** The cosine of the angle between x1 and x2 along `dim`. */
export interface CosineSimilarity extends Module {
  dim: number;
  eps: number;
  forward(x1: Tensor, x2: Tensor): Tensor;
}

/** `NLLLoss` of the log-softmax of the input. */
export interface CrossEntropyLoss extends Module {
  reduction: string;
  weight: Tensor | null;
  ignore_index: number;
  label_smoothing: number;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** Zeroes each element with probability `p` and scales the rest by 1 / (1 - p). */
export interface Dropout extends Module {
  p: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** Zeroes whole channels of (N, C, L) or (C, L). */
export interface Dropout1d extends Module {
  p: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** Zeroes whole channels of (N, C, H, W). */
export interface Dropout2d extends Module {
  p: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** Zeroes whole channels of (N, C, D, H, W). */
export interface Dropout3d extends Module {
  p: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** x where x > 0, else alpha * (exp(x) - 1). */
export interface ELU extends Module {
  alpha: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** A table of vectors looked up by index, drawn from the standard normal distribution. */
export interface Embedding extends Module {
  weight: Parameter;
  num_embeddings: number;
  embedding_dim: number;
  padding_idx: number | null;
  max_norm: number | null;
  norm_type: number;
  scale_grad_by_freq: boolean;
  sparse: boolean;
  reset_parameters(): void;
  forward(input: Tensor): Tensor;
}

/** Sums, means or maxima of bags of rows of a table, which is drawn as for `Embedding`. */
export interface EmbeddingBag extends Module {
  weight: Parameter;
  num_embeddings: number;
  embedding_dim: number;
  max_norm: number | null;
  norm_type: number;
  scale_grad_by_freq: boolean;
  padding_idx: number | null;
  mode: string;
  sparse: boolean;
  include_last_offset: boolean;
  reset_parameters(): void;
  forward(input: Tensor, offsets?: Tensor | null, per_sample_weights?: Tensor | null): Tensor;
  forward(input: Tensor, offsets: Tensor | null, options: { per_sample_weights?: Tensor | null }): Tensor;
  forward(input: Tensor, options: { offsets?: Tensor | null; per_sample_weights?: Tensor | null }): Tensor;
}

/** `AlphaDropout` of whole channels of (N, C, ...). */
export interface FeatureAlphaDropout extends Module {
  p: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** Merges the dimensions from `start_dim` to `end_dim`; by default all but the batch. */
export interface Flatten extends Module {
  start_dim: number;
  end_dim: number;
  forward(input: Tensor): Tensor;
}

/** Adds up patches to an image: the transpose of `Unfold`. */
export interface Fold extends Module {
  kernel_size: number | readonly number[];
  dilation: number | readonly number[];
  padding: number | readonly number[];
  stride: number | readonly number[];
  output_size: number | readonly number[];
  forward(input: Tensor): Tensor;
}

/** Fractional max pooling: the maxima of windows with random steps (Graham, 2014). */
export interface FractionalMaxPool2d extends Module {
  kernel_size: number | readonly number[];
  return_indices: boolean;
  output_size: number | readonly number[] | null;
  output_ratio: number | readonly number[] | null;
  forward(input: Tensor): any;
}

/** Fractional max pooling of volumes, see `FractionalMaxPool2d`. */
export interface FractionalMaxPool3d extends Module {
  kernel_size: number | readonly number[];
  return_indices: boolean;
  output_size: number | readonly number[] | null;
  output_ratio: number | readonly number[] | null;
  forward(input: Tensor): any;
}

/** x * Phi(x), Phi the normal distribution function; `approximate="tanh"` approximates it. */
export interface GELU extends Module {
  approximate: string;
  forward(input: Tensor): Tensor;
}

/** a * sigmoid(b), where a and b are the halves of the input along `dim`. */
export interface GLU extends Module {
  dim: number;
  forward(input: Tensor): Tensor;
}

/** Gated recurrent units: one gate resets the hidden state, another keeps it. */
export interface GRU extends Module {
  reset_parameters(): void;
  forward(input: Tensor, hx?: any): any;
  forward(input: Tensor, options: { hx?: any }): any;
}

/** One step of a `GRU`. */
export interface GRUCell extends Module {
  reset_parameters(): void;
  forward(input: Tensor, hx?: Tensor | null): Tensor;
  forward(input: Tensor, options: { hx?: Tensor | null }): Tensor;
}

/** (log(v) + (x - y)^2 / v) / 2 with v = max(var, eps); `full` adds the constant term. */
export interface GaussianNLLLoss extends Module {
  reduction: string;
  full: boolean;
  eps: number;
  forward(input: Tensor, target: Tensor, var_: number | Tensor): Tensor;
  forward(input: Tensor, target: Tensor, options: { var: number | Tensor }): Tensor;
}

/** Normalises the channels of (N, C, *) in `num_groups` groups, then scales each channel. */
export interface GroupNorm extends Module {
  weight: Parameter | null;
  bias: Parameter | null;
  num_groups: number;
  num_channels: number;
  eps: number;
  affine: boolean;
  reset_parameters(): void;
  forward(input: Tensor): Tensor;
}

/** x where abs(x) > lambd, else 0. */
export interface Hardshrink extends Module {
  lambd: number;
  forward(input: Tensor): Tensor;
}

/** min(max(x + 3, 0), 6) / 6. */
export interface Hardsigmoid extends Module {
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** x * min(max(x + 3, 0), 6) / 6. */
export interface Hardswish extends Module {
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** x, clamped to `min_val` and `max_val`. */
export interface Hardtanh extends Module {
  min_val: number;
  max_val: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** x where y = 1, and max(0, margin - x) where y = -1. */
export interface HingeEmbeddingLoss extends Module {
  reduction: string;
  margin: number;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** (x - y)^2 / 2 where abs(x - y) < delta, else delta * (abs(x - y) - delta / 2). */
export interface HuberLoss extends Module {
  reduction: string;
  delta: number;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** Returns its input; accepts and ignores any constructor arguments. */
export interface Identity extends Module {
  forward(input: Tensor): Tensor;
}

/** Instance normalisation of (N, C, L) or (C, L). */
export interface InstanceNorm1d extends Module {
  weight: Parameter | null;
  bias: Parameter | null;
  running_mean: Tensor | null;
  running_var: Tensor | null;
  num_batches_tracked: Tensor | null;
  num_features: number;
  eps: number;
  momentum: number | null;
  affine: boolean;
  track_running_stats: boolean;
  reset_parameters(): void;
  reset_running_stats(): void;
  forward(input: Tensor): Tensor;
}

/** Instance normalisation of (N, C, H, W) or (C, H, W). Arguments as `InstanceNorm1d`. */
export interface InstanceNorm2d extends Module {
  weight: Parameter | null;
  bias: Parameter | null;
  running_mean: Tensor | null;
  running_var: Tensor | null;
  num_batches_tracked: Tensor | null;
  num_features: number;
  eps: number;
  momentum: number | null;
  affine: boolean;
  track_running_stats: boolean;
  reset_parameters(): void;
  reset_running_stats(): void;
  forward(input: Tensor): Tensor;
}

/** Instance normalisation of (N, C, D, H, W) or (C, D, H, W). See `InstanceNorm1d`. */
export interface InstanceNorm3d extends Module {
  weight: Parameter | null;
  bias: Parameter | null;
  running_mean: Tensor | null;
  running_var: Tensor | null;
  num_batches_tracked: Tensor | null;
  num_features: number;
  eps: number;
  momentum: number | null;
  affine: boolean;
  track_running_stats: boolean;
  reset_parameters(): void;
  reset_running_stats(): void;
  forward(input: Tensor): Tensor;
}

/** y * (log(y) - x): the divergence from log-probabilities x to targets y, which may be logs too. */
export interface KLDivLoss extends Module {
  reduction: string;
  log_target: boolean;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** abs(x - y). */
export interface L1Loss extends Module {
  reduction: string;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** The p-norm of each window of (N, C, L) or (C, L): the p-th root of the sum of p-th powers. */
export interface LPPool1d extends Module {
  norm_type: number;
  kernel_size: number | readonly number[];
  stride: number | readonly number[] | null;
  ceil_mode: boolean;
  forward(input: Tensor): Tensor;
}

/** The p-norm of each window of (N, C, H, W) or (C, H, W); arguments as `LPPool1d`. */
export interface LPPool2d extends Module {
  norm_type: number;
  kernel_size: number | readonly number[];
  stride: number | readonly number[] | null;
  ceil_mode: boolean;
  forward(input: Tensor): Tensor;
}

/** The p-norm of each window of (N, C, D, H, W) or (C, D, H, W); arguments as `LPPool1d`. */
export interface LPPool3d extends Module {
  norm_type: number;
  kernel_size: number | readonly number[];
  stride: number | readonly number[] | null;
  ceil_mode: boolean;
  forward(input: Tensor): Tensor;
}

/** Long short-term memory: gates control how a cell keeps, adds and outputs its state. */
export interface LSTM extends Module {
  reset_parameters(): void;
  forward(input: Tensor, hx?: any): any;
  forward(input: Tensor, options: { hx?: any }): any;
}

/** One step of an `LSTM`. */
export interface LSTMCell extends Module {
  reset_parameters(): void;
  forward(input: Tensor, hx?: readonly Tensor[] | null): Tensor[];
  forward(input: Tensor, options: { hx?: readonly Tensor[] | null }): Tensor[];
}

/** Normalises the last dimensions to mean 0 and variance 1, then scales and shifts. */
export interface LayerNorm extends Module {
  weight: Parameter | null;
  bias: Parameter | null;
  normalized_shape: number | readonly number[];
  eps: number;
  elementwise_affine: boolean;
  reset_parameters(): void;
  forward(input: Tensor): Tensor;
}

/** x where x > 0, else negative_slope * x. */
export interface LeakyReLU extends Module {
  negative_slope: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** y = x W^T + b, with W drawn by Kaiming's uniform initialisation. */
export interface Linear extends Module {
  weight: Parameter;
  bias: Parameter | null;
  in_features: number;
  out_features: number;
  reset_parameters(): void;
  forward(input: Tensor): Tensor;
}

/** x / (k + alpha * mean of the squares of `size` neighboring channels)^beta. */
export interface LocalResponseNorm extends Module {
  size: number;
  alpha: number;
  beta: number;
  k: number;
  forward(input: Tensor): Tensor;
}

/** log(sigmoid(x)), without overflow. */
export interface LogSigmoid extends Module {
  forward(input: Tensor): Tensor;
}

/** x - log(sum(exp(x))) along `dim`. */
export interface LogSoftmax extends Module {
  dim: number | null;
  forward(input: Tensor): Tensor;
}

/** (x - y)^2. */
export interface MSELoss extends Module {
  reduction: string;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** max(0, -y * (x1 - x2) + margin), with targets of 1 and -1. */
export interface MarginRankingLoss extends Module {
  reduction: string;
  margin: number;
  forward(input1: Tensor, input2: Tensor, target: Tensor): Tensor;
}

/** The maximum of each window of (N, C, L) or (C, L). */
export interface MaxPool1d extends Module {
  kernel_size: number | readonly number[];
  stride: number | readonly number[] | null;
  padding: number | readonly number[];
  dilation: number | readonly number[];
  return_indices: boolean;
  ceil_mode: boolean;
  forward(input: Tensor): any;
}

/** The maximum of each window of (N, C, H, W) or (C, H, W). */
export interface MaxPool2d extends Module {
  kernel_size: number | readonly number[];
  stride: number | readonly number[] | null;
  padding: number | readonly number[];
  dilation: number | readonly number[];
  return_indices: boolean;
  ceil_mode: boolean;
  forward(input: Tensor): any;
}

/** The maximum of each window of (N, C, D, H, W) or (C, D, H, W). */
export interface MaxPool3d extends Module {
  kernel_size: number | readonly number[];
  stride: number | readonly number[] | null;
  padding: number | readonly number[];
  dilation: number | readonly number[];
  return_indices: boolean;
  ceil_mode: boolean;
  forward(input: Tensor): any;
}

/** Inverse of `MaxPool1d`: puts the maxima back at their indices, with zeros between. */
export interface MaxUnpool1d extends Module {
  kernel_size: number | readonly number[];
  stride: number | readonly number[] | null;
  padding: number | readonly number[];
  forward(input: Tensor, indices: Tensor, output_size?: readonly number[] | null): Tensor;
  forward(input: Tensor, indices: Tensor, options: { output_size?: readonly number[] | null }): Tensor;
}

/** Inverse of `MaxPool2d`: puts the maxima back at their indices, with zeros between. */
export interface MaxUnpool2d extends Module {
  kernel_size: number | readonly number[];
  stride: number | readonly number[] | null;
  padding: number | readonly number[];
  forward(input: Tensor, indices: Tensor, output_size?: readonly number[] | null): Tensor;
  forward(input: Tensor, indices: Tensor, options: { output_size?: readonly number[] | null }): Tensor;
}

/** Inverse of `MaxPool3d`: puts the maxima back at their indices, with zeros between. */
export interface MaxUnpool3d extends Module {
  kernel_size: number | readonly number[];
  stride: number | readonly number[] | null;
  padding: number | readonly number[];
  forward(input: Tensor, indices: Tensor, output_size?: readonly number[] | null): Tensor;
  forward(input: Tensor, indices: Tensor, options: { output_size?: readonly number[] | null }): Tensor;
}

/** x * tanh(softplus(x)). */
export interface Mish extends Module {
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** Mean over labels t and other classes k of max(0, 1 - x[t] + x[k]). */
export interface MultiLabelMarginLoss extends Module {
  reduction: string;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** The mean of `BCEWithLogitsLoss` over the classes. Shape: (N, C) twice. */
export interface MultiLabelSoftMarginLoss extends Module {
  reduction: string;
  weight: Tensor | null;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** Mean over classes k != t of max(0, margin - x[t] + x[k])^p, times the weight of t. */
export interface MultiMarginLoss extends Module {
  reduction: string;
  weight: Tensor | null;
  p: number;
  margin: number;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** Multi-head attention; each head has its share of the features. */
export interface MultiheadAttention extends Module {
  in_proj_weight: Parameter | null;
  in_proj_bias: Parameter | null;
  q_proj_weight: Parameter | null;
  k_proj_weight: Parameter | null;
  v_proj_weight: Parameter | null;
  bias_k: Parameter | null;
  bias_v: Parameter | null;
  forward(query: Tensor, key: Tensor, value: Tensor, key_padding_mask?: Tensor | null, need_weights?: boolean, attn_mask?: Tensor | null, average_attn_weights?: boolean, is_causal?: boolean): [Tensor, Tensor | null];
  forward(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | null, need_weights: boolean, attn_mask: Tensor | null, average_attn_weights: boolean, options: { is_causal?: boolean }): [Tensor, Tensor | null];
  forward(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | null, need_weights: boolean, attn_mask: Tensor | null, options: { average_attn_weights?: boolean; is_causal?: boolean }): [Tensor, Tensor | null];
  forward(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | null, need_weights: boolean, options: { attn_mask?: Tensor | null; average_attn_weights?: boolean; is_causal?: boolean }): [Tensor, Tensor | null];
  forward(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | null, options: { need_weights?: boolean; attn_mask?: Tensor | null; average_attn_weights?: boolean; is_causal?: boolean }): [Tensor, Tensor | null];
  forward(query: Tensor, key: Tensor, value: Tensor, options: { key_padding_mask?: Tensor | null; need_weights?: boolean; attn_mask?: Tensor | null; average_attn_weights?: boolean; is_causal?: boolean }): [Tensor, Tensor | null];
}

/** -weight[y] * x[y]: the negative log-probability of the target class. */
export interface NLLLoss extends Module {
  reduction: string;
  weight: Tensor | null;
  ignore_index: number;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** The older name of `NLLLoss` for images. */
export interface NLLLoss2d extends Module {
  reduction: string;
  weight: Tensor | null;
  ignore_index: number;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** x where x > 0, else a * x, with one trained `a`, or one for each channel. */
export interface PReLU extends Module {
  num_parameters: number;
  init: number;
  weight: number | readonly number[];
  reset_parameters(): void;
  forward(input: Tensor): Tensor;
}

/** The p-norm of x1 - x2 + eps along the last dimension. */
export interface PairwiseDistance extends Module {
  norm: number;
  eps: number;
  keepdim: boolean;
  forward(x1: Tensor, x2: Tensor): Tensor;
}

/** Rearranges channels as space: each position becomes r by r positions. */
export interface PixelShuffle extends Module {
  upscale_factor: number;
  forward(input: Tensor): Tensor;
}

/** The inverse of `PixelShuffle`. */
export interface PixelUnshuffle extends Module {
  downscale_factor: number;
  forward(input: Tensor): Tensor;
}

/** exp(x) - y * x, or x - y * log(x + eps) for an input that is no log; `full` adds Stirling's term. */
export interface PoissonNLLLoss extends Module {
  reduction: string;
  log_input: boolean;
  full: boolean;
  eps: number;
  forward(log_input: Tensor, target: Tensor): Tensor;
}

/** Divides the last dimensions by their root mean square, then scales. */
export interface RMSNorm extends Module {
  weight: Parameter | null;
  normalized_shape: number | readonly number[];
  eps: number | null;
  elementwise_affine: boolean;
  reset_parameters(): void;
  forward(x: Tensor): Tensor;
}

/** h = tanh(W x + b + U h + c) at each step, or relu instead of tanh. */
export interface RNN extends Module {
  reset_parameters(): void;
  forward(input: Tensor, hx?: any): any;
  forward(input: Tensor, options: { hx?: any }): any;
}

/** One step of an `RNN`. */
export interface RNNCell extends Module {
  reset_parameters(): void;
  forward(input: Tensor, hx?: Tensor | null): Tensor;
  forward(input: Tensor, options: { hx?: Tensor | null }): Tensor;
}

/** x where x >= 0, else a * x; in training, a is drawn for each element from [lower, upper]. */
export interface RReLU extends Module {
  lower: number;
  upper: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** max(x, 0). */
export interface ReLU extends Module {
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** min(max(x, 0), 6). */
export interface ReLU6 extends Module {
  min_val: number;
  max_val: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** Pads the last dimension by reflection at the edge. */
export interface ReflectionPad1d extends Module {
  padding: number | readonly number[];
  forward(input: Tensor): Tensor;
}

/** Pads the last 2 dimensions by reflection at the edge. */
export interface ReflectionPad2d extends Module {
  padding: number | readonly number[];
  forward(input: Tensor): Tensor;
}

/** Pads the last 3 dimensions by reflection at the edge. */
export interface ReflectionPad3d extends Module {
  padding: number | readonly number[];
  forward(input: Tensor): Tensor;
}

/** Pads the last dimension with the element at the edge. */
export interface ReplicationPad1d extends Module {
  padding: number | readonly number[];
  forward(input: Tensor): Tensor;
}

/** Pads the last 2 dimensions with the element at the edge. */
export interface ReplicationPad2d extends Module {
  padding: number | readonly number[];
  forward(input: Tensor): Tensor;
}

/** Pads the last 3 dimensions with the element at the edge. */
export interface ReplicationPad3d extends Module {
  padding: number | readonly number[];
  forward(input: Tensor): Tensor;
}

/** ELU with the scale and alpha that preserve mean 0 and variance 1. */
export interface SELU extends Module {
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** x * sigmoid(x). */
export interface SiLU extends Module {
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** 1 / (1 + exp(-x)). */
export interface Sigmoid extends Module {
  forward(input: Tensor): Tensor;
}

/** (x - y)^2 / (2 beta) where abs(x - y) < beta, else abs(x - y) - beta / 2. */
export interface SmoothL1Loss extends Module {
  reduction: string;
  beta: number;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** log(1 + exp(-y * x)), with targets of 1 and -1. */
export interface SoftMarginLoss extends Module {
  reduction: string;
  forward(input: Tensor, target: Tensor): Tensor;
}

/** exp(x) over its sum along `dim`. */
export interface Softmax extends Module {
  dim: number | null;
  forward(input: Tensor): Tensor;
}

/** Softmax over the channels of (N, C, H, W) or (C, H, W). */
export interface Softmax2d extends Module {
  forward(input: Tensor): Tensor;
}

/** exp(-x) over its sum along `dim`. */
export interface Softmin extends Module {
  dim: number | null;
  forward(input: Tensor): Tensor;
}

/** log(1 + exp(beta * x)) / beta, or x where beta * x > threshold. */
export interface Softplus extends Module {
  beta: number;
  threshold: number;
  forward(input: Tensor): Tensor;
}

/** x moved towards 0 by lambd, or 0 if it would cross 0. */
export interface Softshrink extends Module {
  lambd: number;
  forward(input: Tensor): Tensor;
}

/** x / (1 + abs(x)). */
export interface Softsign extends Module {
  forward(input: Tensor): Tensor;
}

/** The hyperbolic tangent. */
export interface Tanh extends Module {
  forward(input: Tensor): Tensor;
}

/** x - tanh(x). */
export interface Tanhshrink extends Module {
  forward(input: Tensor): Tensor;
}

/** x where x > threshold, else `value`. */
export interface Threshold extends Module {
  threshold: number;
  value: number;
  inplace: boolean;
  forward(input: Tensor): Tensor;
}

/** max(0, d(anchor, positive) - d(anchor, negative) + margin) with the p-norm distance d. */
export interface TripletMarginLoss extends Module {
  reduction: string;
  margin: number;
  p: number;
  eps: number;
  swap: boolean;
  forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor;
}

/** Splits dimension `dim` into the dimensions of `unflattened_size`, one of which may be -1. */
export interface Unflatten extends Module {
  dim: number;
  unflattened_size: readonly number[];
  forward(input: Tensor): Tensor;
}

/** Extracts the patches under a sliding window of an image, one patch per column. */
export interface Unfold extends Module {
  kernel_size: number | readonly number[];
  dilation: number | readonly number[];
  padding: number | readonly number[];
  stride: number | readonly number[];
  forward(input: Tensor): Tensor;
}

/** Resizes the spatial dimensions, by `nn.functional.interpolate`. */
export interface Upsample extends Module {
  name: string;
  size: number | readonly number[] | null;
  scale_factor: number | readonly number[] | null;
  mode: string;
  align_corners: boolean | null;
  recompute_scale_factor: boolean | null;
  forward(input: Tensor): Tensor;
}

/** `Upsample` of images with mode "bilinear" and aligned corners. */
export interface UpsamplingBilinear2d extends Module {
  name: string;
  size: number | readonly number[] | null;
  scale_factor: number | readonly number[] | null;
  mode: string;
  align_corners: boolean | null;
  recompute_scale_factor: boolean | null;
  forward(input: Tensor): Tensor;
}

/** `Upsample` of images with mode "nearest". */
export interface UpsamplingNearest2d extends Module {
  name: string;
  size: number | readonly number[] | null;
  scale_factor: number | readonly number[] | null;
  mode: string;
  align_corners: boolean | null;
  recompute_scale_factor: boolean | null;
  forward(input: Tensor): Tensor;
}

/** Pads the last dimension with zeros. */
export interface ZeroPad1d extends Module {
  padding: number | readonly number[];
  value: number;
  forward(input: Tensor): Tensor;
}

/** Pads the last 2 dimensions with zeros. */
export interface ZeroPad2d extends Module {
  padding: number | readonly number[];
  value: number;
  forward(input: Tensor): Tensor;
}

/** Pads the last 3 dimensions with zeros. */
export interface ZeroPad3d extends Module {
  padding: number | readonly number[];
  value: number;
  forward(input: Tensor): Tensor;
}

/** Classes of layers, by name. */
export interface Layers {
  AdaptiveAvgPool1d: {
    new (output_size: number | readonly (number | null)[] | null): AdaptiveAvgPool1d;
    new (options: { output_size: number | readonly (number | null)[] | null }): AdaptiveAvgPool1d;
  };
  AdaptiveAvgPool2d: {
    new (output_size: number | readonly (number | null)[] | null): AdaptiveAvgPool2d;
    new (options: { output_size: number | readonly (number | null)[] | null }): AdaptiveAvgPool2d;
  };
  AdaptiveAvgPool3d: {
    new (output_size: number | readonly (number | null)[] | null): AdaptiveAvgPool3d;
    new (options: { output_size: number | readonly (number | null)[] | null }): AdaptiveAvgPool3d;
  };
  AdaptiveMaxPool1d: {
    new (output_size: number | readonly (number | null)[] | null, return_indices?: boolean): AdaptiveMaxPool1d;
    new (output_size: number | readonly (number | null)[] | null, options: { return_indices?: boolean }): AdaptiveMaxPool1d;
    new (options: { output_size: number | readonly (number | null)[] | null; return_indices?: boolean }): AdaptiveMaxPool1d;
  };
  AdaptiveMaxPool2d: {
    new (output_size: number | readonly (number | null)[] | null, return_indices?: boolean): AdaptiveMaxPool2d;
    new (output_size: number | readonly (number | null)[] | null, options: { return_indices?: boolean }): AdaptiveMaxPool2d;
    new (options: { output_size: number | readonly (number | null)[] | null; return_indices?: boolean }): AdaptiveMaxPool2d;
  };
  AdaptiveMaxPool3d: {
    new (output_size: number | readonly (number | null)[] | null, return_indices?: boolean): AdaptiveMaxPool3d;
    new (output_size: number | readonly (number | null)[] | null, options: { return_indices?: boolean }): AdaptiveMaxPool3d;
    new (options: { output_size: number | readonly (number | null)[] | null; return_indices?: boolean }): AdaptiveMaxPool3d;
  };
  AlphaDropout: {
    new (p?: number, inplace?: boolean): AlphaDropout;
    new (p: number, options: { inplace?: boolean }): AlphaDropout;
    new (options: { p?: number; inplace?: boolean }): AlphaDropout;
  };
  AvgPool1d: {
    new (kernel_size: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], ceil_mode?: boolean, count_include_pad?: boolean): AvgPool1d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], ceil_mode: boolean, options: { count_include_pad?: boolean }): AvgPool1d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], options: { ceil_mode?: boolean; count_include_pad?: boolean }): AvgPool1d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { padding?: number | readonly number[]; ceil_mode?: boolean; count_include_pad?: boolean }): AvgPool1d;
    new (kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceil_mode?: boolean; count_include_pad?: boolean }): AvgPool1d;
    new (options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceil_mode?: boolean; count_include_pad?: boolean }): AvgPool1d;
  };
  AvgPool2d: {
    new (kernel_size: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: number | null): AvgPool2d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], ceil_mode: boolean, count_include_pad: boolean, options: { divisor_override?: number | null }): AvgPool2d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], ceil_mode: boolean, options: { count_include_pad?: boolean; divisor_override?: number | null }): AvgPool2d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], options: { ceil_mode?: boolean; count_include_pad?: boolean; divisor_override?: number | null }): AvgPool2d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { padding?: number | readonly number[]; ceil_mode?: boolean; count_include_pad?: boolean; divisor_override?: number | null }): AvgPool2d;
    new (kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceil_mode?: boolean; count_include_pad?: boolean; divisor_override?: number | null }): AvgPool2d;
    new (options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceil_mode?: boolean; count_include_pad?: boolean; divisor_override?: number | null }): AvgPool2d;
  };
  AvgPool3d: {
    new (kernel_size: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: number | null): AvgPool3d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], ceil_mode: boolean, count_include_pad: boolean, options: { divisor_override?: number | null }): AvgPool3d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], ceil_mode: boolean, options: { count_include_pad?: boolean; divisor_override?: number | null }): AvgPool3d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], options: { ceil_mode?: boolean; count_include_pad?: boolean; divisor_override?: number | null }): AvgPool3d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { padding?: number | readonly number[]; ceil_mode?: boolean; count_include_pad?: boolean; divisor_override?: number | null }): AvgPool3d;
    new (kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceil_mode?: boolean; count_include_pad?: boolean; divisor_override?: number | null }): AvgPool3d;
    new (options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; ceil_mode?: boolean; count_include_pad?: boolean; divisor_override?: number | null }): AvgPool3d;
  };
  BCELoss: {
    new (weight?: Tensor | null, size_average?: boolean | null, reduce?: boolean | null, reduction?: string): BCELoss;
    new (weight: Tensor | null, size_average: boolean | null, reduce: boolean | null, options: { reduction?: string }): BCELoss;
    new (weight: Tensor | null, size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string }): BCELoss;
    new (weight: Tensor | null, options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): BCELoss;
    new (options: { weight?: Tensor | null; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): BCELoss;
  };
  BCEWithLogitsLoss: {
    new (weight?: Tensor | null, size_average?: boolean | null, reduce?: boolean | null, reduction?: string, pos_weight?: Tensor | null): BCEWithLogitsLoss;
    new (weight: Tensor | null, size_average: boolean | null, reduce: boolean | null, reduction: string, options: { pos_weight?: Tensor | null }): BCEWithLogitsLoss;
    new (weight: Tensor | null, size_average: boolean | null, reduce: boolean | null, options: { reduction?: string; pos_weight?: Tensor | null }): BCEWithLogitsLoss;
    new (weight: Tensor | null, size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string; pos_weight?: Tensor | null }): BCEWithLogitsLoss;
    new (weight: Tensor | null, options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string; pos_weight?: Tensor | null }): BCEWithLogitsLoss;
    new (options: { weight?: Tensor | null; size_average?: boolean | null; reduce?: boolean | null; reduction?: string; pos_weight?: Tensor | null }): BCEWithLogitsLoss;
  };
  BatchNorm1d: {
    new (num_features: number, eps?: number, momentum?: number | null, affine?: boolean, track_running_stats?: boolean, device?: string | null, dtype?: DType | null, options?: { bias?: boolean }): BatchNorm1d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, device: string | null, options: { dtype?: DType | null; bias?: boolean }): BatchNorm1d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, options: { device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm1d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, options: { track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm1d;
    new (num_features: number, eps: number, momentum: number | null, options: { affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm1d;
    new (num_features: number, eps: number, options: { momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm1d;
    new (num_features: number, options: { eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm1d;
    new (options: { num_features: number; eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm1d;
  };
  BatchNorm2d: {
    new (num_features: number, eps?: number, momentum?: number | null, affine?: boolean, track_running_stats?: boolean, device?: string | null, dtype?: DType | null, options?: { bias?: boolean }): BatchNorm2d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, device: string | null, options: { dtype?: DType | null; bias?: boolean }): BatchNorm2d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, options: { device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm2d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, options: { track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm2d;
    new (num_features: number, eps: number, momentum: number | null, options: { affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm2d;
    new (num_features: number, eps: number, options: { momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm2d;
    new (num_features: number, options: { eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm2d;
    new (options: { num_features: number; eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm2d;
  };
  BatchNorm3d: {
    new (num_features: number, eps?: number, momentum?: number | null, affine?: boolean, track_running_stats?: boolean, device?: string | null, dtype?: DType | null, options?: { bias?: boolean }): BatchNorm3d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, device: string | null, options: { dtype?: DType | null; bias?: boolean }): BatchNorm3d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, options: { device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm3d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, options: { track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm3d;
    new (num_features: number, eps: number, momentum: number | null, options: { affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm3d;
    new (num_features: number, eps: number, options: { momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm3d;
    new (num_features: number, options: { eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm3d;
    new (options: { num_features: number; eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): BatchNorm3d;
  };
  Bilinear: {
    new (in1_features: number, in2_features: number, out_features: number, bias?: boolean, device?: string | null, dtype?: DType | null): Bilinear;
    new (in1_features: number, in2_features: number, out_features: number, bias: boolean, device: string | null, options: { dtype?: DType | null }): Bilinear;
    new (in1_features: number, in2_features: number, out_features: number, bias: boolean, options: { device?: string | null; dtype?: DType | null }): Bilinear;
    new (in1_features: number, in2_features: number, out_features: number, options: { bias?: boolean; device?: string | null; dtype?: DType | null }): Bilinear;
    new (in1_features: number, in2_features: number, options: { out_features: number; bias?: boolean; device?: string | null; dtype?: DType | null }): Bilinear;
    new (in1_features: number, options: { in2_features: number; out_features: number; bias?: boolean; device?: string | null; dtype?: DType | null }): Bilinear;
    new (options: { in1_features: number; in2_features: number; out_features: number; bias?: boolean; device?: string | null; dtype?: DType | null }): Bilinear;
  };
  CELU: {
    new (alpha?: number, inplace?: boolean): CELU;
    new (alpha: number, options: { inplace?: boolean }): CELU;
    new (options: { alpha?: number; inplace?: boolean }): CELU;
  };
  CTCLoss: {
    new (blank?: number, reduction?: string, zero_infinity?: boolean): CTCLoss;
    new (blank: number, reduction: string, options: { zero_infinity?: boolean }): CTCLoss;
    new (blank: number, options: { reduction?: string; zero_infinity?: boolean }): CTCLoss;
    new (options: { blank?: number; reduction?: string; zero_infinity?: boolean }): CTCLoss;
  };
  ChannelShuffle: {
    new (groups: number): ChannelShuffle;
    new (options: { groups: number }): ChannelShuffle;
  };
  CircularPad1d: {
    new (padding: number | readonly number[]): CircularPad1d;
    new (options: { padding: number | readonly number[] }): CircularPad1d;
  };
  CircularPad2d: {
    new (padding: number | readonly number[]): CircularPad2d;
    new (options: { padding: number | readonly number[] }): CircularPad2d;
  };
  CircularPad3d: {
    new (padding: number | readonly number[]): CircularPad3d;
    new (options: { padding: number | readonly number[] }): CircularPad3d;
  };
  ConstantPad1d: {
    new (padding: number | readonly number[], value: number): ConstantPad1d;
    new (padding: number | readonly number[], options: { value: number }): ConstantPad1d;
    new (options: { padding: number | readonly number[]; value: number }): ConstantPad1d;
  };
  ConstantPad2d: {
    new (padding: number | readonly number[], value: number): ConstantPad2d;
    new (padding: number | readonly number[], options: { value: number }): ConstantPad2d;
    new (options: { padding: number | readonly number[]; value: number }): ConstantPad2d;
  };
  ConstantPad3d: {
    new (padding: number | readonly number[], value: number): ConstantPad3d;
    new (padding: number | readonly number[], options: { value: number }): ConstantPad3d;
    new (options: { padding: number | readonly number[]; value: number }): ConstantPad3d;
  };
  Conv1d: {
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride?: number | readonly number[], padding?: string | number | readonly number[], dilation?: number | readonly number[], groups?: number, bias?: boolean, padding_mode?: string, device?: string | null, dtype?: DType | null): Conv1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, bias: boolean, padding_mode: string, device: string | null, options: { dtype?: DType | null }): Conv1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, bias: boolean, padding_mode: string, options: { device?: string | null; dtype?: DType | null }): Conv1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, bias: boolean, options: { padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, options: { bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], options: { groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], options: { dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], options: { padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], options: { stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv1d;
    new (in_channels: number, out_channels: number, options: { kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv1d;
    new (in_channels: number, options: { out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv1d;
    new (options: { in_channels: number; out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv1d;
  };
  Conv2d: {
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride?: number | readonly number[], padding?: string | number | readonly number[], dilation?: number | readonly number[], groups?: number, bias?: boolean, padding_mode?: string, device?: string | null, dtype?: DType | null): Conv2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, bias: boolean, padding_mode: string, device: string | null, options: { dtype?: DType | null }): Conv2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, bias: boolean, padding_mode: string, options: { device?: string | null; dtype?: DType | null }): Conv2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, bias: boolean, options: { padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, options: { bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], options: { groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], options: { dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], options: { padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], options: { stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv2d;
    new (in_channels: number, out_channels: number, options: { kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv2d;
    new (in_channels: number, options: { out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv2d;
    new (options: { in_channels: number; out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv2d;
  };
  Conv3d: {
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride?: number | readonly number[], padding?: string | number | readonly number[], dilation?: number | readonly number[], groups?: number, bias?: boolean, padding_mode?: string, device?: string | null, dtype?: DType | null): Conv3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, bias: boolean, padding_mode: string, device: string | null, options: { dtype?: DType | null }): Conv3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, bias: boolean, padding_mode: string, options: { device?: string | null; dtype?: DType | null }): Conv3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, bias: boolean, options: { padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], groups: number, options: { bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], dilation: number | readonly number[], options: { groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: string | number | readonly number[], options: { dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], options: { padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], options: { stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv3d;
    new (in_channels: number, out_channels: number, options: { kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv3d;
    new (in_channels: number, options: { out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv3d;
    new (options: { in_channels: number; out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: string | number | readonly number[]; dilation?: number | readonly number[]; groups?: number; bias?: boolean; padding_mode?: string; device?: string | null; dtype?: DType | null }): Conv3d;
  };
  ConvTranspose1d: {
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride?: number | readonly number[], padding?: number | readonly number[], output_padding?: number | readonly number[], groups?: number, bias?: boolean, dilation?: number | readonly number[], padding_mode?: string, device?: string | null, dtype?: DType | null): ConvTranspose1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, dilation: number | readonly number[], padding_mode: string, device: string | null, options: { dtype?: DType | null }): ConvTranspose1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, dilation: number | readonly number[], padding_mode: string, options: { device?: string | null; dtype?: DType | null }): ConvTranspose1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, dilation: number | readonly number[], options: { padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, options: { dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, options: { bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], options: { groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], options: { output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], options: { padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose1d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], options: { stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose1d;
    new (in_channels: number, out_channels: number, options: { kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose1d;
    new (in_channels: number, options: { out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose1d;
    new (options: { in_channels: number; out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose1d;
  };
  ConvTranspose2d: {
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride?: number | readonly number[], padding?: number | readonly number[], output_padding?: number | readonly number[], groups?: number, bias?: boolean, dilation?: number | readonly number[], padding_mode?: string, device?: string | null, dtype?: DType | null): ConvTranspose2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, dilation: number | readonly number[], padding_mode: string, device: string | null, options: { dtype?: DType | null }): ConvTranspose2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, dilation: number | readonly number[], padding_mode: string, options: { device?: string | null; dtype?: DType | null }): ConvTranspose2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, dilation: number | readonly number[], options: { padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, options: { dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, options: { bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], options: { groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], options: { output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], options: { padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose2d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], options: { stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose2d;
    new (in_channels: number, out_channels: number, options: { kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose2d;
    new (in_channels: number, options: { out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose2d;
    new (options: { in_channels: number; out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose2d;
  };
  ConvTranspose3d: {
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride?: number | readonly number[], padding?: number | readonly number[], output_padding?: number | readonly number[], groups?: number, bias?: boolean, dilation?: number | readonly number[], padding_mode?: string, device?: string | null, dtype?: DType | null): ConvTranspose3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, dilation: number | readonly number[], padding_mode: string, device: string | null, options: { dtype?: DType | null }): ConvTranspose3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, dilation: number | readonly number[], padding_mode: string, options: { device?: string | null; dtype?: DType | null }): ConvTranspose3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, dilation: number | readonly number[], options: { padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, bias: boolean, options: { dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], groups: number, options: { bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], output_padding: number | readonly number[], options: { groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], padding: number | readonly number[], options: { output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], stride: number | readonly number[], options: { padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose3d;
    new (in_channels: number, out_channels: number, kernel_size: number | readonly number[], options: { stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose3d;
    new (in_channels: number, out_channels: number, options: { kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose3d;
    new (in_channels: number, options: { out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose3d;
    new (options: { in_channels: number; out_channels: number; kernel_size: number | readonly number[]; stride?: number | readonly number[]; padding?: number | readonly number[]; output_padding?: number | readonly number[]; groups?: number; bias?: boolean; dilation?: number | readonly number[]; padding_mode?: string; device?: string | null; dtype?: DType | null }): ConvTranspose3d;
  };
  CosineEmbeddingLoss: {
    new (margin?: number, size_average?: boolean | null, reduce?: boolean | null, reduction?: string): CosineEmbeddingLoss;
    new (margin: number, size_average: boolean | null, reduce: boolean | null, options: { reduction?: string }): CosineEmbeddingLoss;
    new (margin: number, size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string }): CosineEmbeddingLoss;
    new (margin: number, options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): CosineEmbeddingLoss;
    new (options: { margin?: number; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): CosineEmbeddingLoss;
  };
  CosineSimilarity: {
    new (dim?: number, eps?: number): CosineSimilarity;
    new (dim: number, options: { eps?: number }): CosineSimilarity;
    new (options: { dim?: number; eps?: number }): CosineSimilarity;
  };
  CrossEntropyLoss: {
    new (weight?: Tensor | null, size_average?: boolean | null, ignore_index?: number, reduce?: boolean | null, reduction?: string, label_smoothing?: number): CrossEntropyLoss;
    new (weight: Tensor | null, size_average: boolean | null, ignore_index: number, reduce: boolean | null, reduction: string, options: { label_smoothing?: number }): CrossEntropyLoss;
    new (weight: Tensor | null, size_average: boolean | null, ignore_index: number, reduce: boolean | null, options: { reduction?: string; label_smoothing?: number }): CrossEntropyLoss;
    new (weight: Tensor | null, size_average: boolean | null, ignore_index: number, options: { reduce?: boolean | null; reduction?: string; label_smoothing?: number }): CrossEntropyLoss;
    new (weight: Tensor | null, size_average: boolean | null, options: { ignore_index?: number; reduce?: boolean | null; reduction?: string; label_smoothing?: number }): CrossEntropyLoss;
    new (weight: Tensor | null, options: { size_average?: boolean | null; ignore_index?: number; reduce?: boolean | null; reduction?: string; label_smoothing?: number }): CrossEntropyLoss;
    new (options: { weight?: Tensor | null; size_average?: boolean | null; ignore_index?: number; reduce?: boolean | null; reduction?: string; label_smoothing?: number }): CrossEntropyLoss;
  };
  Dropout: {
    new (p?: number, inplace?: boolean): Dropout;
    new (p: number, options: { inplace?: boolean }): Dropout;
    new (options: { p?: number; inplace?: boolean }): Dropout;
  };
  Dropout1d: {
    new (p?: number, inplace?: boolean): Dropout1d;
    new (p: number, options: { inplace?: boolean }): Dropout1d;
    new (options: { p?: number; inplace?: boolean }): Dropout1d;
  };
  Dropout2d: {
    new (p?: number, inplace?: boolean): Dropout2d;
    new (p: number, options: { inplace?: boolean }): Dropout2d;
    new (options: { p?: number; inplace?: boolean }): Dropout2d;
  };
  Dropout3d: {
    new (p?: number, inplace?: boolean): Dropout3d;
    new (p: number, options: { inplace?: boolean }): Dropout3d;
    new (options: { p?: number; inplace?: boolean }): Dropout3d;
  };
  ELU: {
    new (alpha?: number, inplace?: boolean): ELU;
    new (alpha: number, options: { inplace?: boolean }): ELU;
    new (options: { alpha?: number; inplace?: boolean }): ELU;
  };
  Embedding: {
    new (num_embeddings: number, embedding_dim: number, padding_idx?: number | null, max_norm?: number | null, norm_type?: number, scale_grad_by_freq?: boolean, sparse?: boolean, _weight?: Tensor | null, _freeze?: boolean, device?: string | null, dtype?: DType | null): Embedding;
    new (num_embeddings: number, embedding_dim: number, padding_idx: number | null, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, sparse: boolean, _weight: Tensor | null, _freeze: boolean, device: string | null, options: { dtype?: DType | null }): Embedding;
    new (num_embeddings: number, embedding_dim: number, padding_idx: number | null, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, sparse: boolean, _weight: Tensor | null, _freeze: boolean, options: { device?: string | null; dtype?: DType | null }): Embedding;
    new (num_embeddings: number, embedding_dim: number, padding_idx: number | null, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, sparse: boolean, _weight: Tensor | null, options: { _freeze?: boolean; device?: string | null; dtype?: DType | null }): Embedding;
    new (num_embeddings: number, embedding_dim: number, padding_idx: number | null, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, sparse: boolean, options: { _weight?: Tensor | null; _freeze?: boolean; device?: string | null; dtype?: DType | null }): Embedding;
    new (num_embeddings: number, embedding_dim: number, padding_idx: number | null, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, options: { sparse?: boolean; _weight?: Tensor | null; _freeze?: boolean; device?: string | null; dtype?: DType | null }): Embedding;
    new (num_embeddings: number, embedding_dim: number, padding_idx: number | null, max_norm: number | null, norm_type: number, options: { scale_grad_by_freq?: boolean; sparse?: boolean; _weight?: Tensor | null; _freeze?: boolean; device?: string | null; dtype?: DType | null }): Embedding;
    new (num_embeddings: number, embedding_dim: number, padding_idx: number | null, max_norm: number | null, options: { norm_type?: number; scale_grad_by_freq?: boolean; sparse?: boolean; _weight?: Tensor | null; _freeze?: boolean; device?: string | null; dtype?: DType | null }): Embedding;
    new (num_embeddings: number, embedding_dim: number, padding_idx: number | null, options: { max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; sparse?: boolean; _weight?: Tensor | null; _freeze?: boolean; device?: string | null; dtype?: DType | null }): Embedding;
    new (num_embeddings: number, embedding_dim: number, options: { padding_idx?: number | null; max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; sparse?: boolean; _weight?: Tensor | null; _freeze?: boolean; device?: string | null; dtype?: DType | null }): Embedding;
    new (num_embeddings: number, options: { embedding_dim: number; padding_idx?: number | null; max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; sparse?: boolean; _weight?: Tensor | null; _freeze?: boolean; device?: string | null; dtype?: DType | null }): Embedding;
    new (options: { num_embeddings: number; embedding_dim: number; padding_idx?: number | null; max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; sparse?: boolean; _weight?: Tensor | null; _freeze?: boolean; device?: string | null; dtype?: DType | null }): Embedding;
    from_pretrained(embeddings: Tensor, freeze?: boolean, padding_idx?: number | null, max_norm?: number | null, norm_type?: number, scale_grad_by_freq?: boolean, sparse?: boolean): Embedding;
    from_pretrained(embeddings: Tensor, freeze: boolean, padding_idx: number | null, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, options: { sparse?: boolean }): Embedding;
    from_pretrained(embeddings: Tensor, freeze: boolean, padding_idx: number | null, max_norm: number | null, norm_type: number, options: { scale_grad_by_freq?: boolean; sparse?: boolean }): Embedding;
    from_pretrained(embeddings: Tensor, freeze: boolean, padding_idx: number | null, max_norm: number | null, options: { norm_type?: number; scale_grad_by_freq?: boolean; sparse?: boolean }): Embedding;
    from_pretrained(embeddings: Tensor, freeze: boolean, padding_idx: number | null, options: { max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; sparse?: boolean }): Embedding;
    from_pretrained(embeddings: Tensor, freeze: boolean, options: { padding_idx?: number | null; max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; sparse?: boolean }): Embedding;
    from_pretrained(embeddings: Tensor, options: { freeze?: boolean; padding_idx?: number | null; max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; sparse?: boolean }): Embedding;
  };
  EmbeddingBag: {
    new (num_embeddings: number, embedding_dim: number, max_norm?: number | null, norm_type?: number, scale_grad_by_freq?: boolean, mode?: string, sparse?: boolean, _weight?: Tensor | null, include_last_offset?: boolean, padding_idx?: number | null, device?: string | null, dtype?: DType | null): EmbeddingBag;
    new (num_embeddings: number, embedding_dim: number, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, mode: string, sparse: boolean, _weight: Tensor | null, include_last_offset: boolean, padding_idx: number | null, device: string | null, options: { dtype?: DType | null }): EmbeddingBag;
    new (num_embeddings: number, embedding_dim: number, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, mode: string, sparse: boolean, _weight: Tensor | null, include_last_offset: boolean, padding_idx: number | null, options: { device?: string | null; dtype?: DType | null }): EmbeddingBag;
    new (num_embeddings: number, embedding_dim: number, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, mode: string, sparse: boolean, _weight: Tensor | null, include_last_offset: boolean, options: { padding_idx?: number | null; device?: string | null; dtype?: DType | null }): EmbeddingBag;
    new (num_embeddings: number, embedding_dim: number, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, mode: string, sparse: boolean, _weight: Tensor | null, options: { include_last_offset?: boolean; padding_idx?: number | null; device?: string | null; dtype?: DType | null }): EmbeddingBag;
    new (num_embeddings: number, embedding_dim: number, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, mode: string, sparse: boolean, options: { _weight?: Tensor | null; include_last_offset?: boolean; padding_idx?: number | null; device?: string | null; dtype?: DType | null }): EmbeddingBag;
    new (num_embeddings: number, embedding_dim: number, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, mode: string, options: { sparse?: boolean; _weight?: Tensor | null; include_last_offset?: boolean; padding_idx?: number | null; device?: string | null; dtype?: DType | null }): EmbeddingBag;
    new (num_embeddings: number, embedding_dim: number, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, options: { mode?: string; sparse?: boolean; _weight?: Tensor | null; include_last_offset?: boolean; padding_idx?: number | null; device?: string | null; dtype?: DType | null }): EmbeddingBag;
    new (num_embeddings: number, embedding_dim: number, max_norm: number | null, norm_type: number, options: { scale_grad_by_freq?: boolean; mode?: string; sparse?: boolean; _weight?: Tensor | null; include_last_offset?: boolean; padding_idx?: number | null; device?: string | null; dtype?: DType | null }): EmbeddingBag;
    new (num_embeddings: number, embedding_dim: number, max_norm: number | null, options: { norm_type?: number; scale_grad_by_freq?: boolean; mode?: string; sparse?: boolean; _weight?: Tensor | null; include_last_offset?: boolean; padding_idx?: number | null; device?: string | null; dtype?: DType | null }): EmbeddingBag;
    new (num_embeddings: number, embedding_dim: number, options: { max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; mode?: string; sparse?: boolean; _weight?: Tensor | null; include_last_offset?: boolean; padding_idx?: number | null; device?: string | null; dtype?: DType | null }): EmbeddingBag;
    new (num_embeddings: number, options: { embedding_dim: number; max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; mode?: string; sparse?: boolean; _weight?: Tensor | null; include_last_offset?: boolean; padding_idx?: number | null; device?: string | null; dtype?: DType | null }): EmbeddingBag;
    new (options: { num_embeddings: number; embedding_dim: number; max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; mode?: string; sparse?: boolean; _weight?: Tensor | null; include_last_offset?: boolean; padding_idx?: number | null; device?: string | null; dtype?: DType | null }): EmbeddingBag;
    from_pretrained(embeddings: Tensor, freeze?: boolean, max_norm?: number | null, norm_type?: number, scale_grad_by_freq?: boolean, mode?: string, sparse?: boolean, include_last_offset?: boolean, padding_idx?: number | null): EmbeddingBag;
    from_pretrained(embeddings: Tensor, freeze: boolean, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, mode: string, sparse: boolean, include_last_offset: boolean, options: { padding_idx?: number | null }): EmbeddingBag;
    from_pretrained(embeddings: Tensor, freeze: boolean, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, mode: string, sparse: boolean, options: { include_last_offset?: boolean; padding_idx?: number | null }): EmbeddingBag;
    from_pretrained(embeddings: Tensor, freeze: boolean, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, mode: string, options: { sparse?: boolean; include_last_offset?: boolean; padding_idx?: number | null }): EmbeddingBag;
    from_pretrained(embeddings: Tensor, freeze: boolean, max_norm: number | null, norm_type: number, scale_grad_by_freq: boolean, options: { mode?: string; sparse?: boolean; include_last_offset?: boolean; padding_idx?: number | null }): EmbeddingBag;
    from_pretrained(embeddings: Tensor, freeze: boolean, max_norm: number | null, norm_type: number, options: { scale_grad_by_freq?: boolean; mode?: string; sparse?: boolean; include_last_offset?: boolean; padding_idx?: number | null }): EmbeddingBag;
    from_pretrained(embeddings: Tensor, freeze: boolean, max_norm: number | null, options: { norm_type?: number; scale_grad_by_freq?: boolean; mode?: string; sparse?: boolean; include_last_offset?: boolean; padding_idx?: number | null }): EmbeddingBag;
    from_pretrained(embeddings: Tensor, freeze: boolean, options: { max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; mode?: string; sparse?: boolean; include_last_offset?: boolean; padding_idx?: number | null }): EmbeddingBag;
    from_pretrained(embeddings: Tensor, options: { freeze?: boolean; max_norm?: number | null; norm_type?: number; scale_grad_by_freq?: boolean; mode?: string; sparse?: boolean; include_last_offset?: boolean; padding_idx?: number | null }): EmbeddingBag;
  };
  FeatureAlphaDropout: {
    new (p?: number, inplace?: boolean): FeatureAlphaDropout;
    new (p: number, options: { inplace?: boolean }): FeatureAlphaDropout;
    new (options: { p?: number; inplace?: boolean }): FeatureAlphaDropout;
  };
  Flatten: {
    new (start_dim?: number, end_dim?: number): Flatten;
    new (start_dim: number, options: { end_dim?: number }): Flatten;
    new (options: { start_dim?: number; end_dim?: number }): Flatten;
  };
  Fold: {
    new (output_size: number | readonly number[], kernel_size: number | readonly number[], dilation?: number | readonly number[], padding?: number | readonly number[], stride?: number | readonly number[]): Fold;
    new (output_size: number | readonly number[], kernel_size: number | readonly number[], dilation: number | readonly number[], padding: number | readonly number[], options: { stride?: number | readonly number[] }): Fold;
    new (output_size: number | readonly number[], kernel_size: number | readonly number[], dilation: number | readonly number[], options: { padding?: number | readonly number[]; stride?: number | readonly number[] }): Fold;
    new (output_size: number | readonly number[], kernel_size: number | readonly number[], options: { dilation?: number | readonly number[]; padding?: number | readonly number[]; stride?: number | readonly number[] }): Fold;
    new (output_size: number | readonly number[], options: { kernel_size: number | readonly number[]; dilation?: number | readonly number[]; padding?: number | readonly number[]; stride?: number | readonly number[] }): Fold;
    new (options: { output_size: number | readonly number[]; kernel_size: number | readonly number[]; dilation?: number | readonly number[]; padding?: number | readonly number[]; stride?: number | readonly number[] }): Fold;
  };
  FractionalMaxPool2d: {
    new (kernel_size: number | readonly number[], output_size?: number | readonly number[] | null, output_ratio?: number | readonly number[] | null, return_indices?: boolean, _random_samples?: Tensor | null): FractionalMaxPool2d;
    new (kernel_size: number | readonly number[], output_size: number | readonly number[] | null, output_ratio: number | readonly number[] | null, return_indices: boolean, options: { _random_samples?: Tensor | null }): FractionalMaxPool2d;
    new (kernel_size: number | readonly number[], output_size: number | readonly number[] | null, output_ratio: number | readonly number[] | null, options: { return_indices?: boolean; _random_samples?: Tensor | null }): FractionalMaxPool2d;
    new (kernel_size: number | readonly number[], output_size: number | readonly number[] | null, options: { output_ratio?: number | readonly number[] | null; return_indices?: boolean; _random_samples?: Tensor | null }): FractionalMaxPool2d;
    new (kernel_size: number | readonly number[], options: { output_size?: number | readonly number[] | null; output_ratio?: number | readonly number[] | null; return_indices?: boolean; _random_samples?: Tensor | null }): FractionalMaxPool2d;
    new (options: { kernel_size: number | readonly number[]; output_size?: number | readonly number[] | null; output_ratio?: number | readonly number[] | null; return_indices?: boolean; _random_samples?: Tensor | null }): FractionalMaxPool2d;
  };
  FractionalMaxPool3d: {
    new (kernel_size: number | readonly number[], output_size?: number | readonly number[] | null, output_ratio?: number | readonly number[] | null, return_indices?: boolean, _random_samples?: Tensor | null): FractionalMaxPool3d;
    new (kernel_size: number | readonly number[], output_size: number | readonly number[] | null, output_ratio: number | readonly number[] | null, return_indices: boolean, options: { _random_samples?: Tensor | null }): FractionalMaxPool3d;
    new (kernel_size: number | readonly number[], output_size: number | readonly number[] | null, output_ratio: number | readonly number[] | null, options: { return_indices?: boolean; _random_samples?: Tensor | null }): FractionalMaxPool3d;
    new (kernel_size: number | readonly number[], output_size: number | readonly number[] | null, options: { output_ratio?: number | readonly number[] | null; return_indices?: boolean; _random_samples?: Tensor | null }): FractionalMaxPool3d;
    new (kernel_size: number | readonly number[], options: { output_size?: number | readonly number[] | null; output_ratio?: number | readonly number[] | null; return_indices?: boolean; _random_samples?: Tensor | null }): FractionalMaxPool3d;
    new (options: { kernel_size: number | readonly number[]; output_size?: number | readonly number[] | null; output_ratio?: number | readonly number[] | null; return_indices?: boolean; _random_samples?: Tensor | null }): FractionalMaxPool3d;
  };
  GELU: {
    new (approximate?: string): GELU;
    new (options: { approximate?: string }): GELU;
  };
  GLU: {
    new (dim?: number): GLU;
    new (options: { dim?: number }): GLU;
  };
  GRU: {
    new (input_size: number, hidden_size: number, num_layers?: number, bias?: boolean, batch_first?: boolean, dropout?: number, bidirectional?: boolean, device?: string | null, dtype?: DType | null): GRU;
    new (input_size: number, hidden_size: number, num_layers: number, bias: boolean, batch_first: boolean, dropout: number, bidirectional: boolean, device: string | null, options: { dtype?: DType | null }): GRU;
    new (input_size: number, hidden_size: number, num_layers: number, bias: boolean, batch_first: boolean, dropout: number, bidirectional: boolean, options: { device?: string | null; dtype?: DType | null }): GRU;
    new (input_size: number, hidden_size: number, num_layers: number, bias: boolean, batch_first: boolean, dropout: number, options: { bidirectional?: boolean; device?: string | null; dtype?: DType | null }): GRU;
    new (input_size: number, hidden_size: number, num_layers: number, bias: boolean, batch_first: boolean, options: { dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): GRU;
    new (input_size: number, hidden_size: number, num_layers: number, bias: boolean, options: { batch_first?: boolean; dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): GRU;
    new (input_size: number, hidden_size: number, num_layers: number, options: { bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): GRU;
    new (input_size: number, hidden_size: number, options: { num_layers?: number; bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): GRU;
    new (input_size: number, options: { hidden_size: number; num_layers?: number; bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): GRU;
    new (options: { input_size: number; hidden_size: number; num_layers?: number; bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): GRU;
  };
  GRUCell: {
    new (input_size: number, hidden_size: number, bias?: boolean, device?: string | null, dtype?: DType | null): GRUCell;
    new (input_size: number, hidden_size: number, bias: boolean, device: string | null, options: { dtype?: DType | null }): GRUCell;
    new (input_size: number, hidden_size: number, bias: boolean, options: { device?: string | null; dtype?: DType | null }): GRUCell;
    new (input_size: number, hidden_size: number, options: { bias?: boolean; device?: string | null; dtype?: DType | null }): GRUCell;
    new (input_size: number, options: { hidden_size: number; bias?: boolean; device?: string | null; dtype?: DType | null }): GRUCell;
    new (options: { input_size: number; hidden_size: number; bias?: boolean; device?: string | null; dtype?: DType | null }): GRUCell;
  };
  GaussianNLLLoss: {
    new (options?: { full?: boolean; eps?: number; reduction?: string }): GaussianNLLLoss;
  };
  GroupNorm: {
    new (num_groups: number, num_channels: number, eps?: number, affine?: boolean, device?: string | null, dtype?: DType | null, options?: { bias?: boolean }): GroupNorm;
    new (num_groups: number, num_channels: number, eps: number, affine: boolean, device: string | null, options: { dtype?: DType | null; bias?: boolean }): GroupNorm;
    new (num_groups: number, num_channels: number, eps: number, affine: boolean, options: { device?: string | null; dtype?: DType | null; bias?: boolean }): GroupNorm;
    new (num_groups: number, num_channels: number, eps: number, options: { affine?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): GroupNorm;
    new (num_groups: number, num_channels: number, options: { eps?: number; affine?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): GroupNorm;
    new (num_groups: number, options: { num_channels: number; eps?: number; affine?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): GroupNorm;
    new (options: { num_groups: number; num_channels: number; eps?: number; affine?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): GroupNorm;
  };
  Hardshrink: {
    new (lambd?: number): Hardshrink;
    new (options: { lambd?: number }): Hardshrink;
  };
  Hardsigmoid: {
    new (inplace?: boolean): Hardsigmoid;
    new (options: { inplace?: boolean }): Hardsigmoid;
  };
  Hardswish: {
    new (inplace?: boolean): Hardswish;
    new (options: { inplace?: boolean }): Hardswish;
  };
  Hardtanh: {
    new (min_val?: number, max_val?: number, inplace?: boolean, min_value?: number | null, max_value?: number | null): Hardtanh;
    new (min_val: number, max_val: number, inplace: boolean, min_value: number | null, options: { max_value?: number | null }): Hardtanh;
    new (min_val: number, max_val: number, inplace: boolean, options: { min_value?: number | null; max_value?: number | null }): Hardtanh;
    new (min_val: number, max_val: number, options: { inplace?: boolean; min_value?: number | null; max_value?: number | null }): Hardtanh;
    new (min_val: number, options: { max_val?: number; inplace?: boolean; min_value?: number | null; max_value?: number | null }): Hardtanh;
    new (options: { min_val?: number; max_val?: number; inplace?: boolean; min_value?: number | null; max_value?: number | null }): Hardtanh;
  };
  HingeEmbeddingLoss: {
    new (margin?: number, size_average?: boolean | null, reduce?: boolean | null, reduction?: string): HingeEmbeddingLoss;
    new (margin: number, size_average: boolean | null, reduce: boolean | null, options: { reduction?: string }): HingeEmbeddingLoss;
    new (margin: number, size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string }): HingeEmbeddingLoss;
    new (margin: number, options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): HingeEmbeddingLoss;
    new (options: { margin?: number; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): HingeEmbeddingLoss;
  };
  HuberLoss: {
    new (reduction?: string, delta?: number): HuberLoss;
    new (reduction: string, options: { delta?: number }): HuberLoss;
    new (options: { reduction?: string; delta?: number }): HuberLoss;
  };
  Identity: {
    new (...args: any[]): Identity;
  };
  InstanceNorm1d: {
    new (num_features: number, eps?: number, momentum?: number | null, affine?: boolean, track_running_stats?: boolean, device?: string | null, dtype?: DType | null, options?: { bias?: boolean }): InstanceNorm1d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, device: string | null, options: { dtype?: DType | null; bias?: boolean }): InstanceNorm1d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, options: { device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm1d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, options: { track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm1d;
    new (num_features: number, eps: number, momentum: number | null, options: { affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm1d;
    new (num_features: number, eps: number, options: { momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm1d;
    new (num_features: number, options: { eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm1d;
    new (options: { num_features: number; eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm1d;
  };
  InstanceNorm2d: {
    new (num_features: number, eps?: number, momentum?: number | null, affine?: boolean, track_running_stats?: boolean, device?: string | null, dtype?: DType | null, options?: { bias?: boolean }): InstanceNorm2d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, device: string | null, options: { dtype?: DType | null; bias?: boolean }): InstanceNorm2d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, options: { device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm2d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, options: { track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm2d;
    new (num_features: number, eps: number, momentum: number | null, options: { affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm2d;
    new (num_features: number, eps: number, options: { momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm2d;
    new (num_features: number, options: { eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm2d;
    new (options: { num_features: number; eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm2d;
  };
  InstanceNorm3d: {
    new (num_features: number, eps?: number, momentum?: number | null, affine?: boolean, track_running_stats?: boolean, device?: string | null, dtype?: DType | null, options?: { bias?: boolean }): InstanceNorm3d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, device: string | null, options: { dtype?: DType | null; bias?: boolean }): InstanceNorm3d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, track_running_stats: boolean, options: { device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm3d;
    new (num_features: number, eps: number, momentum: number | null, affine: boolean, options: { track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm3d;
    new (num_features: number, eps: number, momentum: number | null, options: { affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm3d;
    new (num_features: number, eps: number, options: { momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm3d;
    new (num_features: number, options: { eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm3d;
    new (options: { num_features: number; eps?: number; momentum?: number | null; affine?: boolean; track_running_stats?: boolean; device?: string | null; dtype?: DType | null; bias?: boolean }): InstanceNorm3d;
  };
  KLDivLoss: {
    new (size_average?: boolean | null, reduce?: boolean | null, reduction?: string, log_target?: boolean): KLDivLoss;
    new (size_average: boolean | null, reduce: boolean | null, reduction: string, options: { log_target?: boolean }): KLDivLoss;
    new (size_average: boolean | null, reduce: boolean | null, options: { reduction?: string; log_target?: boolean }): KLDivLoss;
    new (size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string; log_target?: boolean }): KLDivLoss;
    new (options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string; log_target?: boolean }): KLDivLoss;
  };
  L1Loss: {
    new (size_average?: boolean | null, reduce?: boolean | null, reduction?: string): L1Loss;
    new (size_average: boolean | null, reduce: boolean | null, options: { reduction?: string }): L1Loss;
    new (size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string }): L1Loss;
    new (options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): L1Loss;
  };
  LPPool1d: {
    new (norm_type: number, kernel_size: number | readonly number[], stride?: number | readonly number[] | null, ceil_mode?: boolean): LPPool1d;
    new (norm_type: number, kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { ceil_mode?: boolean }): LPPool1d;
    new (norm_type: number, kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; ceil_mode?: boolean }): LPPool1d;
    new (norm_type: number, options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; ceil_mode?: boolean }): LPPool1d;
    new (options: { norm_type: number; kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; ceil_mode?: boolean }): LPPool1d;
  };
  LPPool2d: {
    new (norm_type: number, kernel_size: number | readonly number[], stride?: number | readonly number[] | null, ceil_mode?: boolean): LPPool2d;
    new (norm_type: number, kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { ceil_mode?: boolean }): LPPool2d;
    new (norm_type: number, kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; ceil_mode?: boolean }): LPPool2d;
    new (norm_type: number, options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; ceil_mode?: boolean }): LPPool2d;
    new (options: { norm_type: number; kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; ceil_mode?: boolean }): LPPool2d;
  };
  LPPool3d: {
    new (norm_type: number, kernel_size: number | readonly number[], stride?: number | readonly number[] | null, ceil_mode?: boolean): LPPool3d;
    new (norm_type: number, kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { ceil_mode?: boolean }): LPPool3d;
    new (norm_type: number, kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; ceil_mode?: boolean }): LPPool3d;
    new (norm_type: number, options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; ceil_mode?: boolean }): LPPool3d;
    new (options: { norm_type: number; kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; ceil_mode?: boolean }): LPPool3d;
  };
  LSTM: {
    new (input_size: number, hidden_size: number, num_layers?: number, bias?: boolean, batch_first?: boolean, dropout?: number, bidirectional?: boolean, proj_size?: number, device?: string | null, dtype?: DType | null): LSTM;
    new (input_size: number, hidden_size: number, num_layers: number, bias: boolean, batch_first: boolean, dropout: number, bidirectional: boolean, proj_size: number, device: string | null, options: { dtype?: DType | null }): LSTM;
    new (input_size: number, hidden_size: number, num_layers: number, bias: boolean, batch_first: boolean, dropout: number, bidirectional: boolean, proj_size: number, options: { device?: string | null; dtype?: DType | null }): LSTM;
    new (input_size: number, hidden_size: number, num_layers: number, bias: boolean, batch_first: boolean, dropout: number, bidirectional: boolean, options: { proj_size?: number; device?: string | null; dtype?: DType | null }): LSTM;
    new (input_size: number, hidden_size: number, num_layers: number, bias: boolean, batch_first: boolean, dropout: number, options: { bidirectional?: boolean; proj_size?: number; device?: string | null; dtype?: DType | null }): LSTM;
    new (input_size: number, hidden_size: number, num_layers: number, bias: boolean, batch_first: boolean, options: { dropout?: number; bidirectional?: boolean; proj_size?: number; device?: string | null; dtype?: DType | null }): LSTM;
    new (input_size: number, hidden_size: number, num_layers: number, bias: boolean, options: { batch_first?: boolean; dropout?: number; bidirectional?: boolean; proj_size?: number; device?: string | null; dtype?: DType | null }): LSTM;
    new (input_size: number, hidden_size: number, num_layers: number, options: { bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; proj_size?: number; device?: string | null; dtype?: DType | null }): LSTM;
    new (input_size: number, hidden_size: number, options: { num_layers?: number; bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; proj_size?: number; device?: string | null; dtype?: DType | null }): LSTM;
    new (input_size: number, options: { hidden_size: number; num_layers?: number; bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; proj_size?: number; device?: string | null; dtype?: DType | null }): LSTM;
    new (options: { input_size: number; hidden_size: number; num_layers?: number; bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; proj_size?: number; device?: string | null; dtype?: DType | null }): LSTM;
  };
  LSTMCell: {
    new (input_size: number, hidden_size: number, bias?: boolean, device?: string | null, dtype?: DType | null): LSTMCell;
    new (input_size: number, hidden_size: number, bias: boolean, device: string | null, options: { dtype?: DType | null }): LSTMCell;
    new (input_size: number, hidden_size: number, bias: boolean, options: { device?: string | null; dtype?: DType | null }): LSTMCell;
    new (input_size: number, hidden_size: number, options: { bias?: boolean; device?: string | null; dtype?: DType | null }): LSTMCell;
    new (input_size: number, options: { hidden_size: number; bias?: boolean; device?: string | null; dtype?: DType | null }): LSTMCell;
    new (options: { input_size: number; hidden_size: number; bias?: boolean; device?: string | null; dtype?: DType | null }): LSTMCell;
  };
  LayerNorm: {
    new (normalized_shape: number | readonly number[], eps?: number, elementwise_affine?: boolean, bias?: boolean, device?: string | null, dtype?: DType | null): LayerNorm;
    new (normalized_shape: number | readonly number[], eps: number, elementwise_affine: boolean, bias: boolean, device: string | null, options: { dtype?: DType | null }): LayerNorm;
    new (normalized_shape: number | readonly number[], eps: number, elementwise_affine: boolean, bias: boolean, options: { device?: string | null; dtype?: DType | null }): LayerNorm;
    new (normalized_shape: number | readonly number[], eps: number, elementwise_affine: boolean, options: { bias?: boolean; device?: string | null; dtype?: DType | null }): LayerNorm;
    new (normalized_shape: number | readonly number[], eps: number, options: { elementwise_affine?: boolean; bias?: boolean; device?: string | null; dtype?: DType | null }): LayerNorm;
    new (normalized_shape: number | readonly number[], options: { eps?: number; elementwise_affine?: boolean; bias?: boolean; device?: string | null; dtype?: DType | null }): LayerNorm;
    new (options: { normalized_shape: number | readonly number[]; eps?: number; elementwise_affine?: boolean; bias?: boolean; device?: string | null; dtype?: DType | null }): LayerNorm;
  };
  LeakyReLU: {
    new (negative_slope?: number, inplace?: boolean): LeakyReLU;
    new (negative_slope: number, options: { inplace?: boolean }): LeakyReLU;
    new (options: { negative_slope?: number; inplace?: boolean }): LeakyReLU;
  };
  Linear: {
    new (in_features: number, out_features: number, bias?: boolean, device?: string | null, dtype?: DType | null): Linear;
    new (in_features: number, out_features: number, bias: boolean, device: string | null, options: { dtype?: DType | null }): Linear;
    new (in_features: number, out_features: number, bias: boolean, options: { device?: string | null; dtype?: DType | null }): Linear;
    new (in_features: number, out_features: number, options: { bias?: boolean; device?: string | null; dtype?: DType | null }): Linear;
    new (in_features: number, options: { out_features: number; bias?: boolean; device?: string | null; dtype?: DType | null }): Linear;
    new (options: { in_features: number; out_features: number; bias?: boolean; device?: string | null; dtype?: DType | null }): Linear;
  };
  LocalResponseNorm: {
    new (size: number, alpha?: number, beta?: number, k?: number): LocalResponseNorm;
    new (size: number, alpha: number, beta: number, options: { k?: number }): LocalResponseNorm;
    new (size: number, alpha: number, options: { beta?: number; k?: number }): LocalResponseNorm;
    new (size: number, options: { alpha?: number; beta?: number; k?: number }): LocalResponseNorm;
    new (options: { size: number; alpha?: number; beta?: number; k?: number }): LocalResponseNorm;
  };
  LogSigmoid: {
    new (): LogSigmoid;
  };
  LogSoftmax: {
    new (dim?: number | null): LogSoftmax;
    new (options: { dim?: number | null }): LogSoftmax;
  };
  MSELoss: {
    new (size_average?: boolean | null, reduce?: boolean | null, reduction?: string): MSELoss;
    new (size_average: boolean | null, reduce: boolean | null, options: { reduction?: string }): MSELoss;
    new (size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string }): MSELoss;
    new (options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): MSELoss;
  };
  MarginRankingLoss: {
    new (margin?: number, size_average?: boolean | null, reduce?: boolean | null, reduction?: string): MarginRankingLoss;
    new (margin: number, size_average: boolean | null, reduce: boolean | null, options: { reduction?: string }): MarginRankingLoss;
    new (margin: number, size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string }): MarginRankingLoss;
    new (margin: number, options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): MarginRankingLoss;
    new (options: { margin?: number; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): MarginRankingLoss;
  };
  MaxPool1d: {
    new (kernel_size: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], return_indices?: boolean, ceil_mode?: boolean): MaxPool1d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], dilation: number | readonly number[], return_indices: boolean, options: { ceil_mode?: boolean }): MaxPool1d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], dilation: number | readonly number[], options: { return_indices?: boolean; ceil_mode?: boolean }): MaxPool1d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], options: { dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool1d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { padding?: number | readonly number[]; dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool1d;
    new (kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool1d;
    new (options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool1d;
  };
  MaxPool2d: {
    new (kernel_size: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], return_indices?: boolean, ceil_mode?: boolean): MaxPool2d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], dilation: number | readonly number[], return_indices: boolean, options: { ceil_mode?: boolean }): MaxPool2d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], dilation: number | readonly number[], options: { return_indices?: boolean; ceil_mode?: boolean }): MaxPool2d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], options: { dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool2d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { padding?: number | readonly number[]; dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool2d;
    new (kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool2d;
    new (options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool2d;
  };
  MaxPool3d: {
    new (kernel_size: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[], dilation?: number | readonly number[], return_indices?: boolean, ceil_mode?: boolean): MaxPool3d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], dilation: number | readonly number[], return_indices: boolean, options: { ceil_mode?: boolean }): MaxPool3d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], dilation: number | readonly number[], options: { return_indices?: boolean; ceil_mode?: boolean }): MaxPool3d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, padding: number | readonly number[], options: { dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool3d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { padding?: number | readonly number[]; dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool3d;
    new (kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool3d;
    new (options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[]; dilation?: number | readonly number[]; return_indices?: boolean; ceil_mode?: boolean }): MaxPool3d;
  };
  MaxUnpool1d: {
    new (kernel_size: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[]): MaxUnpool1d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { padding?: number | readonly number[] }): MaxUnpool1d;
    new (kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[] }): MaxUnpool1d;
    new (options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[] }): MaxUnpool1d;
  };
  MaxUnpool2d: {
    new (kernel_size: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[]): MaxUnpool2d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { padding?: number | readonly number[] }): MaxUnpool2d;
    new (kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[] }): MaxUnpool2d;
    new (options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[] }): MaxUnpool2d;
  };
  MaxUnpool3d: {
    new (kernel_size: number | readonly number[], stride?: number | readonly number[] | null, padding?: number | readonly number[]): MaxUnpool3d;
    new (kernel_size: number | readonly number[], stride: number | readonly number[] | null, options: { padding?: number | readonly number[] }): MaxUnpool3d;
    new (kernel_size: number | readonly number[], options: { stride?: number | readonly number[] | null; padding?: number | readonly number[] }): MaxUnpool3d;
    new (options: { kernel_size: number | readonly number[]; stride?: number | readonly number[] | null; padding?: number | readonly number[] }): MaxUnpool3d;
  };
  Mish: {
    new (inplace?: boolean): Mish;
    new (options: { inplace?: boolean }): Mish;
  };
  MultiLabelMarginLoss: {
    new (size_average?: boolean | null, reduce?: boolean | null, reduction?: string): MultiLabelMarginLoss;
    new (size_average: boolean | null, reduce: boolean | null, options: { reduction?: string }): MultiLabelMarginLoss;
    new (size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string }): MultiLabelMarginLoss;
    new (options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): MultiLabelMarginLoss;
  };
  MultiLabelSoftMarginLoss: {
    new (weight?: Tensor | null, size_average?: boolean | null, reduce?: boolean | null, reduction?: string): MultiLabelSoftMarginLoss;
    new (weight: Tensor | null, size_average: boolean | null, reduce: boolean | null, options: { reduction?: string }): MultiLabelSoftMarginLoss;
    new (weight: Tensor | null, size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string }): MultiLabelSoftMarginLoss;
    new (weight: Tensor | null, options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): MultiLabelSoftMarginLoss;
    new (options: { weight?: Tensor | null; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): MultiLabelSoftMarginLoss;
  };
  MultiMarginLoss: {
    new (p?: number, margin?: number, weight?: Tensor | null, size_average?: boolean | null, reduce?: boolean | null, reduction?: string): MultiMarginLoss;
    new (p: number, margin: number, weight: Tensor | null, size_average: boolean | null, reduce: boolean | null, options: { reduction?: string }): MultiMarginLoss;
    new (p: number, margin: number, weight: Tensor | null, size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string }): MultiMarginLoss;
    new (p: number, margin: number, weight: Tensor | null, options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): MultiMarginLoss;
    new (p: number, margin: number, options: { weight?: Tensor | null; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): MultiMarginLoss;
    new (p: number, options: { margin?: number; weight?: Tensor | null; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): MultiMarginLoss;
    new (options: { p?: number; margin?: number; weight?: Tensor | null; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): MultiMarginLoss;
  };
  MultiheadAttention: {
    new (embed_dim: number, num_heads: number, dropout?: number, bias?: boolean, add_bias_kv?: boolean, add_zero_attn?: boolean, kdim?: number | null, vdim?: number | null, batch_first?: boolean, device?: string | null, dtype?: DType | null): MultiheadAttention;
    new (embed_dim: number, num_heads: number, dropout: number, bias: boolean, add_bias_kv: boolean, add_zero_attn: boolean, kdim: number | null, vdim: number | null, batch_first: boolean, device: string | null, options: { dtype?: DType | null }): MultiheadAttention;
    new (embed_dim: number, num_heads: number, dropout: number, bias: boolean, add_bias_kv: boolean, add_zero_attn: boolean, kdim: number | null, vdim: number | null, batch_first: boolean, options: { device?: string | null; dtype?: DType | null }): MultiheadAttention;
    new (embed_dim: number, num_heads: number, dropout: number, bias: boolean, add_bias_kv: boolean, add_zero_attn: boolean, kdim: number | null, vdim: number | null, options: { batch_first?: boolean; device?: string | null; dtype?: DType | null }): MultiheadAttention;
    new (embed_dim: number, num_heads: number, dropout: number, bias: boolean, add_bias_kv: boolean, add_zero_attn: boolean, kdim: number | null, options: { vdim?: number | null; batch_first?: boolean; device?: string | null; dtype?: DType | null }): MultiheadAttention;
    new (embed_dim: number, num_heads: number, dropout: number, bias: boolean, add_bias_kv: boolean, add_zero_attn: boolean, options: { kdim?: number | null; vdim?: number | null; batch_first?: boolean; device?: string | null; dtype?: DType | null }): MultiheadAttention;
    new (embed_dim: number, num_heads: number, dropout: number, bias: boolean, add_bias_kv: boolean, options: { add_zero_attn?: boolean; kdim?: number | null; vdim?: number | null; batch_first?: boolean; device?: string | null; dtype?: DType | null }): MultiheadAttention;
    new (embed_dim: number, num_heads: number, dropout: number, bias: boolean, options: { add_bias_kv?: boolean; add_zero_attn?: boolean; kdim?: number | null; vdim?: number | null; batch_first?: boolean; device?: string | null; dtype?: DType | null }): MultiheadAttention;
    new (embed_dim: number, num_heads: number, dropout: number, options: { bias?: boolean; add_bias_kv?: boolean; add_zero_attn?: boolean; kdim?: number | null; vdim?: number | null; batch_first?: boolean; device?: string | null; dtype?: DType | null }): MultiheadAttention;
    new (embed_dim: number, num_heads: number, options: { dropout?: number; bias?: boolean; add_bias_kv?: boolean; add_zero_attn?: boolean; kdim?: number | null; vdim?: number | null; batch_first?: boolean; device?: string | null; dtype?: DType | null }): MultiheadAttention;
    new (embed_dim: number, options: { num_heads: number; dropout?: number; bias?: boolean; add_bias_kv?: boolean; add_zero_attn?: boolean; kdim?: number | null; vdim?: number | null; batch_first?: boolean; device?: string | null; dtype?: DType | null }): MultiheadAttention;
    new (options: { embed_dim: number; num_heads: number; dropout?: number; bias?: boolean; add_bias_kv?: boolean; add_zero_attn?: boolean; kdim?: number | null; vdim?: number | null; batch_first?: boolean; device?: string | null; dtype?: DType | null }): MultiheadAttention;
  };
  NLLLoss: {
    new (weight?: Tensor | null, size_average?: boolean | null, ignore_index?: number, reduce?: boolean | null, reduction?: string): NLLLoss;
    new (weight: Tensor | null, size_average: boolean | null, ignore_index: number, reduce: boolean | null, options: { reduction?: string }): NLLLoss;
    new (weight: Tensor | null, size_average: boolean | null, ignore_index: number, options: { reduce?: boolean | null; reduction?: string }): NLLLoss;
    new (weight: Tensor | null, size_average: boolean | null, options: { ignore_index?: number; reduce?: boolean | null; reduction?: string }): NLLLoss;
    new (weight: Tensor | null, options: { size_average?: boolean | null; ignore_index?: number; reduce?: boolean | null; reduction?: string }): NLLLoss;
    new (options: { weight?: Tensor | null; size_average?: boolean | null; ignore_index?: number; reduce?: boolean | null; reduction?: string }): NLLLoss;
  };
  NLLLoss2d: {
    new (weight?: Tensor | null, size_average?: boolean | null, ignore_index?: number, reduce?: boolean | null, reduction?: string): NLLLoss2d;
    new (weight: Tensor | null, size_average: boolean | null, ignore_index: number, reduce: boolean | null, options: { reduction?: string }): NLLLoss2d;
    new (weight: Tensor | null, size_average: boolean | null, ignore_index: number, options: { reduce?: boolean | null; reduction?: string }): NLLLoss2d;
    new (weight: Tensor | null, size_average: boolean | null, options: { ignore_index?: number; reduce?: boolean | null; reduction?: string }): NLLLoss2d;
    new (weight: Tensor | null, options: { size_average?: boolean | null; ignore_index?: number; reduce?: boolean | null; reduction?: string }): NLLLoss2d;
    new (options: { weight?: Tensor | null; size_average?: boolean | null; ignore_index?: number; reduce?: boolean | null; reduction?: string }): NLLLoss2d;
  };
  PReLU: {
    new (num_parameters?: number, init?: number, device?: string | null, dtype?: DType | null): PReLU;
    new (num_parameters: number, init: number, device: string | null, options: { dtype?: DType | null }): PReLU;
    new (num_parameters: number, init: number, options: { device?: string | null; dtype?: DType | null }): PReLU;
    new (num_parameters: number, options: { init?: number; device?: string | null; dtype?: DType | null }): PReLU;
    new (options: { num_parameters?: number; init?: number; device?: string | null; dtype?: DType | null }): PReLU;
  };
  PairwiseDistance: {
    new (p?: number, eps?: number, keepdim?: boolean): PairwiseDistance;
    new (p: number, eps: number, options: { keepdim?: boolean }): PairwiseDistance;
    new (p: number, options: { eps?: number; keepdim?: boolean }): PairwiseDistance;
    new (options: { p?: number; eps?: number; keepdim?: boolean }): PairwiseDistance;
  };
  PixelShuffle: {
    new (upscale_factor: number): PixelShuffle;
    new (options: { upscale_factor: number }): PixelShuffle;
  };
  PixelUnshuffle: {
    new (downscale_factor: number): PixelUnshuffle;
    new (options: { downscale_factor: number }): PixelUnshuffle;
  };
  PoissonNLLLoss: {
    new (log_input?: boolean, full?: boolean, size_average?: boolean | null, eps?: number, reduce?: boolean | null, reduction?: string): PoissonNLLLoss;
    new (log_input: boolean, full: boolean, size_average: boolean | null, eps: number, reduce: boolean | null, options: { reduction?: string }): PoissonNLLLoss;
    new (log_input: boolean, full: boolean, size_average: boolean | null, eps: number, options: { reduce?: boolean | null; reduction?: string }): PoissonNLLLoss;
    new (log_input: boolean, full: boolean, size_average: boolean | null, options: { eps?: number; reduce?: boolean | null; reduction?: string }): PoissonNLLLoss;
    new (log_input: boolean, full: boolean, options: { size_average?: boolean | null; eps?: number; reduce?: boolean | null; reduction?: string }): PoissonNLLLoss;
    new (log_input: boolean, options: { full?: boolean; size_average?: boolean | null; eps?: number; reduce?: boolean | null; reduction?: string }): PoissonNLLLoss;
    new (options: { log_input?: boolean; full?: boolean; size_average?: boolean | null; eps?: number; reduce?: boolean | null; reduction?: string }): PoissonNLLLoss;
  };
  RMSNorm: {
    new (normalized_shape: number | readonly number[], eps?: number | null, elementwise_affine?: boolean, device?: string | null, dtype?: DType | null): RMSNorm;
    new (normalized_shape: number | readonly number[], eps: number | null, elementwise_affine: boolean, device: string | null, options: { dtype?: DType | null }): RMSNorm;
    new (normalized_shape: number | readonly number[], eps: number | null, elementwise_affine: boolean, options: { device?: string | null; dtype?: DType | null }): RMSNorm;
    new (normalized_shape: number | readonly number[], eps: number | null, options: { elementwise_affine?: boolean; device?: string | null; dtype?: DType | null }): RMSNorm;
    new (normalized_shape: number | readonly number[], options: { eps?: number | null; elementwise_affine?: boolean; device?: string | null; dtype?: DType | null }): RMSNorm;
    new (options: { normalized_shape: number | readonly number[]; eps?: number | null; elementwise_affine?: boolean; device?: string | null; dtype?: DType | null }): RMSNorm;
  };
  RNN: {
    new (input_size: number, hidden_size: number, num_layers?: number, nonlinearity?: string, bias?: boolean, batch_first?: boolean, dropout?: number, bidirectional?: boolean, device?: string | null, dtype?: DType | null): RNN;
    new (input_size: number, hidden_size: number, num_layers: number, nonlinearity: string, bias: boolean, batch_first: boolean, dropout: number, bidirectional: boolean, device: string | null, options: { dtype?: DType | null }): RNN;
    new (input_size: number, hidden_size: number, num_layers: number, nonlinearity: string, bias: boolean, batch_first: boolean, dropout: number, bidirectional: boolean, options: { device?: string | null; dtype?: DType | null }): RNN;
    new (input_size: number, hidden_size: number, num_layers: number, nonlinearity: string, bias: boolean, batch_first: boolean, dropout: number, options: { bidirectional?: boolean; device?: string | null; dtype?: DType | null }): RNN;
    new (input_size: number, hidden_size: number, num_layers: number, nonlinearity: string, bias: boolean, batch_first: boolean, options: { dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): RNN;
    new (input_size: number, hidden_size: number, num_layers: number, nonlinearity: string, bias: boolean, options: { batch_first?: boolean; dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): RNN;
    new (input_size: number, hidden_size: number, num_layers: number, nonlinearity: string, options: { bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): RNN;
    new (input_size: number, hidden_size: number, num_layers: number, options: { nonlinearity?: string; bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): RNN;
    new (input_size: number, hidden_size: number, options: { num_layers?: number; nonlinearity?: string; bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): RNN;
    new (input_size: number, options: { hidden_size: number; num_layers?: number; nonlinearity?: string; bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): RNN;
    new (options: { input_size: number; hidden_size: number; num_layers?: number; nonlinearity?: string; bias?: boolean; batch_first?: boolean; dropout?: number; bidirectional?: boolean; device?: string | null; dtype?: DType | null }): RNN;
  };
  RNNCell: {
    new (input_size: number, hidden_size: number, bias?: boolean, nonlinearity?: string, device?: string | null, dtype?: DType | null): RNNCell;
    new (input_size: number, hidden_size: number, bias: boolean, nonlinearity: string, device: string | null, options: { dtype?: DType | null }): RNNCell;
    new (input_size: number, hidden_size: number, bias: boolean, nonlinearity: string, options: { device?: string | null; dtype?: DType | null }): RNNCell;
    new (input_size: number, hidden_size: number, bias: boolean, options: { nonlinearity?: string; device?: string | null; dtype?: DType | null }): RNNCell;
    new (input_size: number, hidden_size: number, options: { bias?: boolean; nonlinearity?: string; device?: string | null; dtype?: DType | null }): RNNCell;
    new (input_size: number, options: { hidden_size: number; bias?: boolean; nonlinearity?: string; device?: string | null; dtype?: DType | null }): RNNCell;
    new (options: { input_size: number; hidden_size: number; bias?: boolean; nonlinearity?: string; device?: string | null; dtype?: DType | null }): RNNCell;
  };
  RReLU: {
    new (lower?: number, upper?: number, inplace?: boolean): RReLU;
    new (lower: number, upper: number, options: { inplace?: boolean }): RReLU;
    new (lower: number, options: { upper?: number; inplace?: boolean }): RReLU;
    new (options: { lower?: number; upper?: number; inplace?: boolean }): RReLU;
  };
  ReLU: {
    new (inplace?: boolean): ReLU;
    new (options: { inplace?: boolean }): ReLU;
  };
  ReLU6: {
    new (inplace?: boolean): ReLU6;
    new (options: { inplace?: boolean }): ReLU6;
  };
  ReflectionPad1d: {
    new (padding: number | readonly number[]): ReflectionPad1d;
    new (options: { padding: number | readonly number[] }): ReflectionPad1d;
  };
  ReflectionPad2d: {
    new (padding: number | readonly number[]): ReflectionPad2d;
    new (options: { padding: number | readonly number[] }): ReflectionPad2d;
  };
  ReflectionPad3d: {
    new (padding: number | readonly number[]): ReflectionPad3d;
    new (options: { padding: number | readonly number[] }): ReflectionPad3d;
  };
  ReplicationPad1d: {
    new (padding: number | readonly number[]): ReplicationPad1d;
    new (options: { padding: number | readonly number[] }): ReplicationPad1d;
  };
  ReplicationPad2d: {
    new (padding: number | readonly number[]): ReplicationPad2d;
    new (options: { padding: number | readonly number[] }): ReplicationPad2d;
  };
  ReplicationPad3d: {
    new (padding: number | readonly number[]): ReplicationPad3d;
    new (options: { padding: number | readonly number[] }): ReplicationPad3d;
  };
  SELU: {
    new (inplace?: boolean): SELU;
    new (options: { inplace?: boolean }): SELU;
  };
  SiLU: {
    new (inplace?: boolean): SiLU;
    new (options: { inplace?: boolean }): SiLU;
  };
  Sigmoid: {
    new (): Sigmoid;
  };
  SmoothL1Loss: {
    new (size_average?: boolean | null, reduce?: boolean | null, reduction?: string, beta?: number): SmoothL1Loss;
    new (size_average: boolean | null, reduce: boolean | null, reduction: string, options: { beta?: number }): SmoothL1Loss;
    new (size_average: boolean | null, reduce: boolean | null, options: { reduction?: string; beta?: number }): SmoothL1Loss;
    new (size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string; beta?: number }): SmoothL1Loss;
    new (options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string; beta?: number }): SmoothL1Loss;
  };
  SoftMarginLoss: {
    new (size_average?: boolean | null, reduce?: boolean | null, reduction?: string): SoftMarginLoss;
    new (size_average: boolean | null, reduce: boolean | null, options: { reduction?: string }): SoftMarginLoss;
    new (size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string }): SoftMarginLoss;
    new (options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): SoftMarginLoss;
  };
  Softmax: {
    new (dim?: number | null): Softmax;
    new (options: { dim?: number | null }): Softmax;
  };
  Softmax2d: {
    new (): Softmax2d;
  };
  Softmin: {
    new (dim?: number | null): Softmin;
    new (options: { dim?: number | null }): Softmin;
  };
  Softplus: {
    new (beta?: number, threshold?: number): Softplus;
    new (beta: number, options: { threshold?: number }): Softplus;
    new (options: { beta?: number; threshold?: number }): Softplus;
  };
  Softshrink: {
    new (lambd?: number): Softshrink;
    new (options: { lambd?: number }): Softshrink;
  };
  Softsign: {
    new (): Softsign;
  };
  Tanh: {
    new (): Tanh;
  };
  Tanhshrink: {
    new (): Tanhshrink;
  };
  Threshold: {
    new (threshold: number, value: number, inplace?: boolean): Threshold;
    new (threshold: number, value: number, options: { inplace?: boolean }): Threshold;
    new (threshold: number, options: { value: number; inplace?: boolean }): Threshold;
    new (options: { threshold: number; value: number; inplace?: boolean }): Threshold;
  };
  TripletMarginLoss: {
    new (margin?: number, p?: number, eps?: number, swap?: boolean, size_average?: boolean | null, reduce?: boolean | null, reduction?: string): TripletMarginLoss;
    new (margin: number, p: number, eps: number, swap: boolean, size_average: boolean | null, reduce: boolean | null, options: { reduction?: string }): TripletMarginLoss;
    new (margin: number, p: number, eps: number, swap: boolean, size_average: boolean | null, options: { reduce?: boolean | null; reduction?: string }): TripletMarginLoss;
    new (margin: number, p: number, eps: number, swap: boolean, options: { size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): TripletMarginLoss;
    new (margin: number, p: number, eps: number, options: { swap?: boolean; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): TripletMarginLoss;
    new (margin: number, p: number, options: { eps?: number; swap?: boolean; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): TripletMarginLoss;
    new (margin: number, options: { p?: number; eps?: number; swap?: boolean; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): TripletMarginLoss;
    new (options: { margin?: number; p?: number; eps?: number; swap?: boolean; size_average?: boolean | null; reduce?: boolean | null; reduction?: string }): TripletMarginLoss;
  };
  Unflatten: {
    new (dim: number, unflattened_size: readonly number[]): Unflatten;
    new (dim: number, options: { unflattened_size: readonly number[] }): Unflatten;
    new (options: { dim: number; unflattened_size: readonly number[] }): Unflatten;
  };
  Unfold: {
    new (kernel_size: number | readonly number[], dilation?: number | readonly number[], padding?: number | readonly number[], stride?: number | readonly number[]): Unfold;
    new (kernel_size: number | readonly number[], dilation: number | readonly number[], padding: number | readonly number[], options: { stride?: number | readonly number[] }): Unfold;
    new (kernel_size: number | readonly number[], dilation: number | readonly number[], options: { padding?: number | readonly number[]; stride?: number | readonly number[] }): Unfold;
    new (kernel_size: number | readonly number[], options: { dilation?: number | readonly number[]; padding?: number | readonly number[]; stride?: number | readonly number[] }): Unfold;
    new (options: { kernel_size: number | readonly number[]; dilation?: number | readonly number[]; padding?: number | readonly number[]; stride?: number | readonly number[] }): Unfold;
  };
  Upsample: {
    new (size?: number | readonly number[] | null, scale_factor?: number | readonly number[] | null, mode?: string, align_corners?: boolean | null, recompute_scale_factor?: boolean | null): Upsample;
    new (size: number | readonly number[] | null, scale_factor: number | readonly number[] | null, mode: string, align_corners: boolean | null, options: { recompute_scale_factor?: boolean | null }): Upsample;
    new (size: number | readonly number[] | null, scale_factor: number | readonly number[] | null, mode: string, options: { align_corners?: boolean | null; recompute_scale_factor?: boolean | null }): Upsample;
    new (size: number | readonly number[] | null, scale_factor: number | readonly number[] | null, options: { mode?: string; align_corners?: boolean | null; recompute_scale_factor?: boolean | null }): Upsample;
    new (size: number | readonly number[] | null, options: { scale_factor?: number | readonly number[] | null; mode?: string; align_corners?: boolean | null; recompute_scale_factor?: boolean | null }): Upsample;
    new (options: { size?: number | readonly number[] | null; scale_factor?: number | readonly number[] | null; mode?: string; align_corners?: boolean | null; recompute_scale_factor?: boolean | null }): Upsample;
  };
  UpsamplingBilinear2d: {
    new (size?: number | readonly number[] | null, scale_factor?: number | readonly number[] | null): UpsamplingBilinear2d;
    new (size: number | readonly number[] | null, options: { scale_factor?: number | readonly number[] | null }): UpsamplingBilinear2d;
    new (options: { size?: number | readonly number[] | null; scale_factor?: number | readonly number[] | null }): UpsamplingBilinear2d;
  };
  UpsamplingNearest2d: {
    new (size?: number | readonly number[] | null, scale_factor?: number | readonly number[] | null): UpsamplingNearest2d;
    new (size: number | readonly number[] | null, options: { scale_factor?: number | readonly number[] | null }): UpsamplingNearest2d;
    new (options: { size?: number | readonly number[] | null; scale_factor?: number | readonly number[] | null }): UpsamplingNearest2d;
  };
  ZeroPad1d: {
    new (padding: number | readonly number[]): ZeroPad1d;
    new (options: { padding: number | readonly number[] }): ZeroPad1d;
  };
  ZeroPad2d: {
    new (padding: number | readonly number[]): ZeroPad2d;
    new (options: { padding: number | readonly number[] }): ZeroPad2d;
  };
  ZeroPad3d: {
    new (padding: number | readonly number[]): ZeroPad3d;
    new (options: { padding: number | readonly number[] }): ZeroPad3d;
  };
}

/** Made by `make stubs` from the classes of pygrad.nn. Do not edit.
 *
 * Definitions of layers in order: bases before classes derived from them, functions before those
 * that call them. Each is a function of the names that it uses: of the library, and of definitions
 * above it. */
import {
  AssertionError,
  MAKE,
  ValueError,
  _reverse_repeat_tuple,
  contains,
  divide,
  equal,
  floorDivide,
  modulo,
  ntuple,
  repeat,
  repr,
  show,
  showList,
  truth,
  typeName,
  zip,
} from './python.js';

export const definitions = {
  _AdaptiveAvgPoolNd: ({ Module }) =>
    class _AdaptiveAvgPoolNd extends Module {
      [MAKE]({ output_size }) {
        this.output_size = output_size;
      }

      _sizes(input) {
        let sizes = this.output_size;
        if (sizes === null || Number.isInteger(sizes)) {
          return sizes === null ? input.shape.at(-1) : sizes;
        }
        let given = input.shape.slice(-sizes.length);
        return zip(sizes, given).map(([new_, old]) => new_ === null ? old : new_);
      }

      extra_repr() {
        return `output_size=${show(this.output_size)}`;
      }
    },

  /** Means of windows, as many as the output's length. Shape: (N, C, L) -> (N, C, S). */
  AdaptiveAvgPool1d: ({ F, _AdaptiveAvgPoolNd }) =>
    class AdaptiveAvgPool1d extends _AdaptiveAvgPoolNd {
      forward(input) {
        return F.adaptive_avg_pool1d(input, this._sizes(input));
      }
    },

  /** Means of windows, as many as the output has places; `None` keeps a length. */
  AdaptiveAvgPool2d: ({ F, _AdaptiveAvgPoolNd }) =>
    class AdaptiveAvgPool2d extends _AdaptiveAvgPoolNd {
      forward(input) {
        return F.adaptive_avg_pool2d(input, this._sizes(input));
      }
    },

  /** Means of windows, as many as the output has places; `None` keeps a length. */
  AdaptiveAvgPool3d: ({ F, _AdaptiveAvgPoolNd }) =>
    class AdaptiveAvgPool3d extends _AdaptiveAvgPoolNd {
      forward(input) {
        return F.adaptive_avg_pool3d(input, this._sizes(input));
      }
    },

  _AdaptiveMaxPoolNd: ({ _AdaptiveAvgPoolNd }) =>
    class _AdaptiveMaxPoolNd extends _AdaptiveAvgPoolNd {
      [MAKE]({ output_size, return_indices }) {
        super[MAKE]({ output_size });
        this.return_indices = return_indices;
      }
    },

  /** Maxima of windows, as many as the output has places; with `return_indices` also the indices. */
  AdaptiveMaxPool1d: ({ F, _AdaptiveMaxPoolNd }) =>
    class AdaptiveMaxPool1d extends _AdaptiveMaxPoolNd {
      forward(input) {
        return F.adaptive_max_pool1d(input, this._sizes(input), this.return_indices);
      }
    },

  /** Maxima of windows, as many as the output has places; with `return_indices` also the indices. */
  AdaptiveMaxPool2d: ({ F, _AdaptiveMaxPoolNd }) =>
    class AdaptiveMaxPool2d extends _AdaptiveMaxPoolNd {
      forward(input) {
        return F.adaptive_max_pool2d(input, this._sizes(input), this.return_indices);
      }
    },

  /** Maxima of windows, as many as the output has places; with `return_indices` also the indices. */
  AdaptiveMaxPool3d: ({ F, _AdaptiveMaxPoolNd }) =>
    class AdaptiveMaxPool3d extends _AdaptiveMaxPoolNd {
      forward(input) {
        return F.adaptive_max_pool3d(input, this._sizes(input), this.return_indices);
      }
    },

  /** The base class of dropout layers: the probability, and whether to work in place. */
  _DropoutNd: ({ Module }) =>
    class _DropoutNd extends Module {
      [MAKE]({ p, inplace }) {
        if (p < 0 || p > 1) {
          throw new ValueError(`dropout probability has to be between 0 and 1, but got ${show(p, true)}`);
        }
        this.p = p;
        this.inplace = inplace;
      }

      extra_repr() {
        return `p=${show(this.p, true)}, inplace=${show(this.inplace)}`;
      }
    },

  /** Dropout that preserves mean and variance after a SELU. Shape: any, unchanged. */
  AlphaDropout: ({ F, _DropoutNd }) =>
    class AlphaDropout extends _DropoutNd {
      forward(input) {
        return F.alpha_dropout(input, this.p, this.training);
      }
    },

  _AvgPoolNd: ({ Module }) =>
    class _AvgPoolNd extends Module {
      extra_repr() {
        return `kernel_size=${show(this.kernel_size)}, stride=${show(this.stride)}, padding=${show(this.padding)}`;
      }
    },

  /** The mean of each window of (N, C, L) or (C, L). */
  AvgPool1d: ({ F, _AvgPoolNd }) =>
    class AvgPool1d extends _AvgPoolNd {
      [MAKE]({ kernel_size, stride, padding, ceil_mode, count_include_pad }) {
        this.kernel_size = ntuple(kernel_size, 1);
        this.stride = ntuple(stride === null ? kernel_size : stride, 1);
        this.padding = ntuple(padding, 1);
        this.ceil_mode = ceil_mode;
        this.count_include_pad = count_include_pad;
      }

      forward(input) {
        return F.avg_pool1d(
          input,
          this.kernel_size,
          this.stride,
          this.padding,
          this.ceil_mode,
          this.count_include_pad,
        );
      }
    },

  /** A mean with a divisor that may differ from the window's size. */
  _DividedAvgPool: ({ _AvgPoolNd }) =>
    class _DividedAvgPool extends _AvgPoolNd {
      [MAKE]({ kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override }) {
        this.kernel_size = kernel_size;
        this.stride = stride === null ? kernel_size : stride;
        this.padding = padding;
        this.ceil_mode = ceil_mode;
        this.count_include_pad = count_include_pad;
        this.divisor_override = divisor_override;
      }

      _pool(op, input) {
        let found = op(
          input,
          this.kernel_size,
          this.stride,
          this.padding,
          this.ceil_mode,
          this.count_include_pad,
          this.divisor_override,
        );
        return found;
      }
    },

  /** The mean of each window of (N, C, H, W) or (C, H, W). */
  AvgPool2d: ({ F, _DividedAvgPool }) =>
    class AvgPool2d extends _DividedAvgPool {
      [MAKE]({ kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override }) {
        super[MAKE]({
          kernel_size,
          stride,
          padding,
          ceil_mode,
          count_include_pad,
          divisor_override,
        });
      }

      forward(input) {
        return this._pool(F.avg_pool2d, input);
      }
    },

  /** The mean of each window of (N, C, D, H, W) or (C, D, H, W). */
  AvgPool3d: ({ F, _DividedAvgPool }) =>
    class AvgPool3d extends _DividedAvgPool {
      forward(input) {
        return this._pool(F.avg_pool3d, input);
      }
    },

  /** The name of the reduction for `size_average` and `reduce`, with PyTorch's warning. */
  legacy_get_string: ({ warn }) =>
    function legacy_get_string(size_average, reduce, emit_warning = true) {
      let average = size_average === null || Boolean(size_average);
      let joined = reduce === null || Boolean(reduce);
      let name = joined ? (average ? 'mean' : 'sum') : 'none';
      if (emit_warning) {
        warn(`size_average and reduce args will be deprecated, please use reduction='${name}' instead.`);
      }
      return name;
    },

  /** The base class of losses, with their reduction. */
  _Loss: ({ Module, legacy_get_string }) =>
    class _Loss extends Module {
      [MAKE]({ size_average, reduce, reduction }) {
        if (size_average !== null || reduce !== null) {
          reduction = legacy_get_string(size_average, reduce, true);
        }
        this.reduction = reduction;
      }
    },

  /** The base class of weighted losses. The weight is a buffer, so it moves with the module. */
  _WeightedLoss: ({ _Loss }) =>
    class _WeightedLoss extends _Loss {
      [MAKE]({ weight, size_average, reduce, reduction }) {
        super[MAKE]({ size_average, reduce, reduction });
        this.register_buffer('weight', weight);
      }
    },

  /** -weight * (y * log(x) + (1 - y) * log(1 - x)) for probabilities x. */
  BCELoss: ({ F, _WeightedLoss }) =>
    class BCELoss extends _WeightedLoss {
      forward(input, target) {
        return F.binary_cross_entropy(input, target, this.weight, null, null, this.reduction);
      }
    },

  /** `BCELoss` of sigmoid(x), without overflow; `pos_weight` multiplies the term of y. */
  BCEWithLogitsLoss: ({ F, _WeightedLoss }) =>
    class BCEWithLogitsLoss extends _WeightedLoss {
      [MAKE]({ weight, size_average, reduce, reduction, pos_weight }) {
        super[MAKE]({ weight, size_average, reduce, reduction });
        this.register_buffer('pos_weight', pos_weight);
      }

      forward(input, target) {
        return F.binary_cross_entropy_with_logits(
          input,
          target,
          this.weight,
          null,
          null,
          this.reduction,
          this.pos_weight,
        );
      }
    },

  /** Scale, shift and running statistics of `num_features` channels, each of which is optional. */
  _NormBase: ({ Module, Parameter, init, torch }) =>
    class _NormBase extends Module {
      [MAKE]({ num_features, eps, momentum, affine, track_running_stats, device, dtype, bias }) {
        this.num_features = num_features;
        this.eps = eps;
        this.momentum = momentum;
        this.affine = affine;
        this.track_running_stats = track_running_stats;
        let factory = { device, dtype };
        let scale = affine ? new Parameter(torch.empty(num_features, factory)) : null;
        let shift = affine && bias ? new Parameter(torch.empty(num_features, factory)) : null;
        this.register_parameter('weight', scale);
        this.register_parameter('bias', shift);
        let tracked = track_running_stats;
        let mean = tracked ? torch.zeros(num_features, factory) : null;
        let var_ = tracked ? torch.ones(num_features, factory) : null;
        let count = tracked ? torch.tensor(0, { dtype: torch.int64, device }) : null;
        this.register_buffer('running_mean', mean);
        this.register_buffer('running_var', var_);
        this.register_buffer('num_batches_tracked', count);
        this.reset_parameters();
      }

      reset_running_stats() {
        if (this.running_mean !== null) {
          this.running_mean.zero_();
        }
        if (this.running_var !== null) {
          this.running_var.fill_(1);
        }
        if (this.num_batches_tracked !== null) {
          this.num_batches_tracked.zero_();
        }
      }

      reset_parameters() {
        this.reset_running_stats();
        if (this.weight !== null) {
          init.ones_(this.weight);
        }
        if (this.bias !== null) {
          init.zeros_(this.bias);
        }
      }

      extra_repr() {
        return `${show(this.num_features)}, eps=${show(this.eps, true)}, momentum=${show(this.momentum, true)}, affine=${show(this.affine)}, bias=${show(this.bias !== null)}, track_running_stats=${show(this.track_running_stats)}`;
      }
    },

  /** The forward pass; subclasses check the number of dimensions. */
  _BatchNorm: ({ F, _NormBase }) =>
    class _BatchNorm extends _NormBase {
      static {
        this.prototype._ranks = [];
      }

      _check_input_dim(input) {
        if (!contains(this._ranks, input.dim())) {
          let expected = this._ranks.map((rank) => `${show(rank)}D`).join(' or ');
          throw new ValueError(`expected ${expected} input (got ${show(input.dim())}D input)`);
        }
      }

      forward(input) {
        this._check_input_dim(input);
        let factor = this.momentum === null ? 0.0 : this.momentum;
        if (this.training && this.track_running_stats && this.num_batches_tracked !== null) {
          this.num_batches_tracked.add_(1);
          if (this.momentum === null) {
            factor = divide(1.0, Number(this.num_batches_tracked.item()));
          }
        }
        let use_running = !this.training || this.track_running_stats;
        let mean = use_running ? this.running_mean : null;
        let var_ = use_running ? this.running_var : null;
        let by_batch = this.training || (this.running_mean === null && this.running_var === null);
        return F.batch_norm(input, mean, var_, this.weight, this.bias, by_batch, factor, this.eps);
      }
    },

  /** Batch normalisation over (N, C) or (N, C, L). */
  BatchNorm1d: ({ _BatchNorm }) =>
    class BatchNorm1d extends _BatchNorm {
      static {
        this.prototype._ranks = [2, 3];
      }
    },

  /** Batch normalisation over (N, C, H, W). Arguments as `BatchNorm1d`. */
  BatchNorm2d: ({ _BatchNorm }) =>
    class BatchNorm2d extends _BatchNorm {
      static {
        this.prototype._ranks = [4];
      }
    },

  /** Batch normalisation over (N, C, D, H, W). Arguments as `BatchNorm1d`. */
  BatchNorm3d: ({ _BatchNorm }) =>
    class BatchNorm3d extends _BatchNorm {
      static {
        this.prototype._ranks = [5];
      }
    },

  /** y_k = x1^T W_k x2 + b_k. */
  Bilinear: ({ F, Module, Parameter, init, torch }) =>
    class Bilinear extends Module {
      [MAKE]({ in1_features, in2_features, out_features, bias, device, dtype }) {
        this.in1_features = in1_features;
        this.in2_features = in2_features;
        this.out_features = out_features;
        let shape = [out_features, in1_features, in2_features];
        this.weight = new Parameter(torch.empty(shape, { device, dtype }));
        if (bias) {
          this.bias = new Parameter(torch.empty(out_features, { device, dtype }));
        } else {
          this.register_parameter('bias', null);
        }
        this.reset_parameters();
      }

      reset_parameters() {
        if (this.in1_features <= 0) {
          throw new ValueError(`in1_features must be > 0, but got (in1_features=${show(this.in1_features)})`);
        }
        let bound = divide(1, Math.sqrt(this.in1_features));
        init.uniform_(this.weight, -bound, bound);
        if (this.bias !== null) {
          init.uniform_(this.bias, -bound, bound);
        }
      }

      forward(input1, input2) {
        return F.bilinear(input1, input2, this.weight, this.bias);
      }

      extra_repr() {
        return `in1_features=${show(this.in1_features)}, in2_features=${show(this.in2_features)}, out_features=${show(this.out_features)}, bias=${show(this.bias !== null)}`;
      }
    },

  _inplace_suffix: () =>
    function _inplace_suffix(inplace) {
      return inplace ? ', inplace=True' : '';
    },

  /** max(0, x) + min(0, alpha * (exp(x / alpha) - 1)). */
  CELU: ({ F, Module, _inplace_suffix }) =>
    class CELU extends Module {
      [MAKE]({ alpha, inplace }) {
        this.alpha = alpha;
        this.inplace = inplace;
      }

      forward(input) {
        return F.celu(input, this.alpha, this.inplace);
      }

      extra_repr() {
        return `alpha=${show(this.alpha, true)}${_inplace_suffix(this.inplace)}`;
      }
    },

  /** The negative log-probability of labellings over all their alignments (Graves, 2006). */
  CTCLoss: ({ F, _Loss }) =>
    class CTCLoss extends _Loss {
      [MAKE]({ blank, reduction, zero_infinity }) {
        super[MAKE]({ size_average: null, reduce: null, reduction });
        this.blank = blank;
        this.zero_infinity = zero_infinity;
      }

      forward(log_probs, targets, input_lengths, target_lengths) {
        return F.ctc_loss(
          log_probs,
          targets,
          input_lengths,
          target_lengths,
          this.blank,
          this.reduction,
          this.zero_infinity,
        );
      }
    },

  /** Distributes the channels to `groups` in turn. */
  ChannelShuffle: ({ F, Module }) =>
    class ChannelShuffle extends Module {
      [MAKE]({ groups }) {
        this.groups = groups;
      }

      forward(input) {
        return F.channel_shuffle(input, this.groups);
      }

      extra_repr() {
        return `groups=${show(this.groups)}`;
      }
    },

  /** `padding` is a number for all sides, or pairs (before, after) from the last dimension on. */
  _Pad: ({ F, Module }) =>
    class _Pad extends Module {
      [MAKE]({ padding }) {
        this.padding = ntuple(padding, 2 * this._n_dims);
      }

      forward(input) {
        return F.pad(input, this.padding, this._mode);
      }

      extra_repr() {
        return show(this.padding);
      }
    },

  /** Pads the last dimension with elements from the opposite end. */
  CircularPad1d: ({ _Pad }) =>
    class CircularPad1d extends _Pad {
      static {
        this.prototype._n_dims = 1;
        this.prototype._mode = 'circular';
      }
    },

  /** Pads the last 2 dimensions with elements from the opposite end. */
  CircularPad2d: ({ _Pad }) =>
    class CircularPad2d extends _Pad {
      static {
        this.prototype._n_dims = 2;
        this.prototype._mode = 'circular';
      }
    },

  /** Pads the last 3 dimensions with elements from the opposite end. */
  CircularPad3d: ({ _Pad }) =>
    class CircularPad3d extends _Pad {
      static {
        this.prototype._n_dims = 3;
        this.prototype._mode = 'circular';
      }
    },

  _ConstantPad: ({ F, _Pad }) =>
    class _ConstantPad extends _Pad {
      [MAKE]({ padding, value }) {
        super[MAKE]({ padding });
        this.value = value;
      }

      forward(input) {
        return F.pad(input, this.padding, 'constant', this.value);
      }

      extra_repr() {
        return `padding=${show(this.padding)}, value=${show(this.value, true)}`;
      }
    },

  /** Pads the last dimension with a number. */
  ConstantPad1d: ({ _ConstantPad }) =>
    class ConstantPad1d extends _ConstantPad {
      static {
        this.prototype._n_dims = 1;
      }
    },

  /** Pads the last 2 dimensions with a number. */
  ConstantPad2d: ({ _ConstantPad }) =>
    class ConstantPad2d extends _ConstantPad {
      static {
        this.prototype._n_dims = 2;
      }
    },

  /** Pads the last 3 dimensions with a number. */
  ConstantPad3d: ({ _ConstantPad }) =>
    class ConstantPad3d extends _ConstantPad {
      static {
        this.prototype._n_dims = 3;
      }
    },

  _check_channels: () =>
    function _check_channels(in_channels, out_channels, groups) {
      if (groups <= 0) {
        throw new ValueError('groups must be a positive integer');
      }
      if (modulo(in_channels, groups) !== 0) {
        throw new ValueError('in_channels must be divisible by groups');
      }
      if (modulo(out_channels, groups) !== 0) {
        throw new ValueError('out_channels must be divisible by groups');
      }
    },

  _check_padding: () =>
    function _check_padding(padding, padding_mode, stride) {
      if (typeof padding === 'string') {
        if (!contains(new Set(['same', 'valid']), padding)) {
          throw new ValueError(`Invalid padding string ${repr(padding)}, should be one of ${show(new Set(['same', 'valid']))}`);
        }
        if (padding === 'same' && stride.some((step) => step !== 1)) {
          throw new ValueError("padding='same' is not supported for strided convolutions");
        }
      }
      if (!contains(new Set(['zeros', 'reflect', 'replicate', 'circular']), padding_mode)) {
        throw new ValueError(`padding_mode must be one of ${show(new Set(['zeros', 'reflect', 'replicate', 'circular']))}, but got padding_mode='${padding_mode}'`);
      }
    },

  /** The padding in the form of `F.pad`: (before, after) for each dimension, last one first. */
  _widths: () =>
    function _widths(padding, kernel_size, dilation) {
      if (!(typeof padding === 'string')) {
        return _reverse_repeat_tuple(padding, 2);
      }
      if (padding === 'valid') {
        return repeat([0, 0], kernel_size.length);
      }
      let totals = zip(dilation, kernel_size).map(([d, k]) => d * (k - 1));
      let widths = [];
      for (const total of totals) {
        widths = [floorDivide(total, 2), total - floorDivide(total, 2), ...widths];
      }
      return widths;
    },

  /** PyTorch's default for linear and convolution layers: uniform on +-1/sqrt(fan_in). */
  init_weight_and_bias: ({ init }) =>
    function init_weight_and_bias(weight, bias) {
      init.kaiming_uniform_(weight, { a: Math.sqrt(5) });
      if (bias !== null) {
        let [fan_in, _] = init._calculate_fan_in_and_fan_out(weight);
        let bound = fan_in > 0 ? divide(1, Math.sqrt(fan_in)) : 0;
        init.uniform_(bias, -bound, bound);
      }
    },

  /** The base class of convolutions with any number of dimensions: sizes, weight, bias, printing. */
  _ConvNd: ({
    Module,
    Parameter,
    _check_channels,
    _check_padding,
    _widths,
    init_weight_and_bias,
    torch,
  }) =>
    class _ConvNd extends Module {
      [MAKE]({
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device,
        dtype,
      }) {
        _check_channels(in_channels, out_channels, groups);
        _check_padding(padding, padding_mode, stride);
        this.in_channels = in_channels;
        this.out_channels = out_channels;
        this.kernel_size = kernel_size;
        this.stride = stride;
        this.padding = padding;
        this.dilation = dilation;
        this.transposed = transposed;
        this.output_padding = output_padding;
        this.groups = groups;
        this.padding_mode = padding_mode;
        this._reversed_padding_repeated_twice = _widths(padding, kernel_size, dilation);
        let ends = [out_channels, floorDivide(in_channels, groups)];
        if (transposed) {
          ends = [in_channels, floorDivide(out_channels, groups)];
        }
        let shape = [...ends, ...kernel_size];
        this.weight = new Parameter(torch.empty(shape, { device, dtype }));
        if (bias) {
          this.bias = new Parameter(torch.empty(out_channels, { device, dtype }));
        } else {
          this.register_parameter('bias', null);
        }
        this.reset_parameters();
      }

      reset_parameters() {
        init_weight_and_bias(this.weight, this.bias);
      }

      extra_repr() {
        let parts = [
          `${show(this.in_channels)}, ${show(this.out_channels)}`,
          `kernel_size=${show(this.kernel_size)}`,
          `stride=${show(this.stride)}`,
        ];
        if (!equal(this.padding, repeat([0], this.padding.length))) {
          parts.push(`padding=${show(this.padding)}`);
        }
        if (!equal(this.dilation, repeat([1], this.dilation.length))) {
          parts.push(`dilation=${show(this.dilation)}`);
        }
        if (!equal(this.output_padding, repeat([0], this.output_padding.length))) {
          parts.push(`output_padding=${show(this.output_padding)}`);
        }
        if (this.groups !== 1) {
          parts.push(`groups=${show(this.groups)}`);
        }
        if (this.bias === null) {
          parts.push('bias=False');
        }
        if (this.padding_mode !== 'zeros') {
          parts.push(`padding_mode=${this.padding_mode}`);
        }
        return parts.join(', ');
      }
    },

  /** The base class for a fixed number of dimensions, where a size may be one number. */
  _Convolution: ({ F, _ConvNd }) =>
    class _Convolution extends _ConvNd {
      [MAKE]({
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        groups,
        bias,
        padding_mode,
        device,
        dtype,
      }) {
        let n = this._n_dims;
        super[MAKE]({
          in_channels,
          out_channels,
          kernel_size: ntuple(kernel_size, n),
          stride: ntuple(stride, n),
          padding: typeof padding === 'string' ? padding : ntuple(padding, n),
          dilation: ntuple(dilation, n),
          transposed: false,
          output_padding: repeat([0], n),
          groups,
          bias,
          padding_mode,
          device,
          dtype,
        });
      }

      forward(input) {
        return this._conv_forward(input, this.weight, this.bias);
      }

      _conv_forward(input, weight, bias) {
        let padding = this.padding;
        if (this.padding_mode !== 'zeros') {
          let widths = this._reversed_padding_repeated_twice;
          input = F.pad(input, widths, this.padding_mode);
          padding = repeat([0], this._n_dims);
        }
        let op = [F.conv1d, F.conv2d, F.conv3d][this._n_dims - 1];
        return op(input, weight, bias, this.stride, padding, this.dilation, this.groups);
      }
    },

  /** Cross-correlation of (N, C_in, L) with C_out kernels of length k. */
  Conv1d: ({ _Convolution }) =>
    class Conv1d extends _Convolution {
      static {
        this.prototype._n_dims = 1;
      }

      [MAKE]({
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        groups,
        bias,
        padding_mode,
        device,
        dtype,
      }) {
        super[MAKE]({
          in_channels,
          out_channels,
          kernel_size,
          stride,
          padding,
          dilation,
          groups,
          bias,
          padding_mode,
          device,
          dtype,
        });
      }
    },

  /** Cross-correlation of (N, C_in, H, W) with C_out kernels of size (k_h, k_w). */
  Conv2d: ({ _Convolution }) =>
    class Conv2d extends _Convolution {
      static {
        this.prototype._n_dims = 2;
      }

      [MAKE]({
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        groups,
        bias,
        padding_mode,
        device,
        dtype,
      }) {
        super[MAKE]({
          in_channels,
          out_channels,
          kernel_size,
          stride,
          padding,
          dilation,
          groups,
          bias,
          padding_mode,
          device,
          dtype,
        });
      }
    },

  /** Cross-correlation of (N, C_in, D, H, W) with C_out kernels of size (k_d, k_h, k_w). */
  Conv3d: ({ _Convolution }) =>
    class Conv3d extends _Convolution {
      static {
        this.prototype._n_dims = 3;
      }
    },

  /** The base class of transposed convolutions, which also have an output padding. */
  _ConvTransposeNd: ({ _ConvNd }) =>
    class _ConvTransposeNd extends _ConvNd {
      [MAKE]({
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device,
        dtype,
      }) {
        if (padding_mode !== 'zeros') {
          throw new ValueError(`Only "zeros" padding mode is supported for ${this.constructor.name}`);
        }
        super[MAKE]({
          in_channels,
          out_channels,
          kernel_size,
          stride,
          padding,
          dilation,
          transposed,
          output_padding,
          groups,
          bias,
          padding_mode,
          device,
          dtype,
        });
      }

      _output_padding(
        input,
        output_size,
        stride,
        padding,
        kernel_size,
        num_spatial_dims,
        dilation = null,
      ) {
        if (output_size === null) {
          return ntuple(this.output_padding, num_spatial_dims);
        }
        let n = num_spatial_dims;
        let first = input.dim() - n;
        let wanted = output_size.length === (first + n) ? output_size.slice(first) : output_size;
        if (wanted.length !== n) {
          throw new ValueError(`ConvTranspose${show(n)}D: for ${show(input.dim())}D input, output_size must have ${show(n)} or ${show(first + n)} elements (got ${show(wanted.length)})`);
        }
        let steps = dilation === null ? repeat([1], n) : dilation;
        let lengths = input.shape.slice(first);
        let least = zip(lengths, stride, padding, steps, kernel_size).map(([size, s, p, d, k]) => ((((size - 1) * s) - (2 * p)) + (d * (k - 1))) + 1);
        let most = zip(least, stride).map(([size, s]) => (size + s) - 1);
        if (zip(least, wanted, most).some(([a, b, c]) => !(a <= b && b <= c))) {
          throw new ValueError(`requested an output size of ${showList(wanted)}, but valid sizes range from ${showList(least)} to ${showList(most)} (for an input of torch.Size(${showList([...input.shape.slice(2)])}))`);
        }
        return zip(least, wanted).map(([a, b]) => b - a);
      }
    },

  /** The base class for a fixed number of dimensions, where a size may be one number. */
  _Transposed: ({ _ConvTransposeNd }) =>
    class _Transposed extends _ConvTransposeNd {
      [MAKE]({
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        output_padding,
        groups,
        bias,
        dilation,
        padding_mode,
        device,
        dtype,
      }) {
        let n = this._n_dims;
        super[MAKE]({
          in_channels,
          out_channels,
          kernel_size: ntuple(kernel_size, n),
          stride: ntuple(stride, n),
          padding: ntuple(padding, n),
          dilation: ntuple(dilation, n),
          transposed: true,
          output_padding: ntuple(output_padding, n),
          groups,
          bias,
          padding_mode,
          device,
          dtype,
        });
      }

      _transpose(op, input, output_size) {
        let more = this._output_padding(
          input,
          output_size === null ? null : [...output_size],
          this.stride,
          this.padding,
          this.kernel_size,
          this._n_dims,
          this.dilation,
        );
        return op(
          input,
          this.weight,
          this.bias,
          this.stride,
          this.padding,
          more,
          this.groups,
          this.dilation,
        );
      }
    },

  /** Transposed convolution of (N, C_in, L) or (C_in, L). */
  ConvTranspose1d: ({ F, _Transposed, take }) =>
    class ConvTranspose1d extends _Transposed {
      static {
        this.prototype._n_dims = 1;
      }

      forward(...given) {
        const { input, output_size } = take('ConvTranspose1d.forward', given);
        return this._transpose(F.conv_transpose1d, input, output_size);
      }
    },

  /** Transposed convolution of (N, C_in, H, W) or (C_in, H, W). */
  ConvTranspose2d: ({ F, _Transposed, take }) =>
    class ConvTranspose2d extends _Transposed {
      static {
        this.prototype._n_dims = 2;
      }

      forward(...given) {
        const { input, output_size } = take('ConvTranspose2d.forward', given);
        return this._transpose(F.conv_transpose2d, input, output_size);
      }
    },

  /** Transposed convolution of (N, C_in, D, H, W) or (C_in, D, H, W). */
  ConvTranspose3d: ({ F, _Transposed, take }) =>
    class ConvTranspose3d extends _Transposed {
      static {
        this.prototype._n_dims = 3;
      }

      forward(...given) {
        const { input, output_size } = take('ConvTranspose3d.forward', given);
        return this._transpose(F.conv_transpose3d, input, output_size);
      }
    },

  /** 1 - cos(x1, x2) where y = 1, and max(0, cos(x1, x2) - margin) where y = -1. */
  CosineEmbeddingLoss: ({ F, _Loss }) =>
    class CosineEmbeddingLoss extends _Loss {
      [MAKE]({ margin, size_average, reduce, reduction }) {
        super[MAKE]({ size_average, reduce, reduction });
        this.margin = margin;
      }

      forward(input1, input2, target) {
        return F.cosine_embedding_loss(input1, input2, target, this.margin, null, null, this.reduction);
      }
    },

  /** The cosine of the angle between x1 and x2 along `dim`. */
  CosineSimilarity: ({ F, Module }) =>
    class CosineSimilarity extends Module {
      [MAKE]({ dim, eps }) {
        this.dim = dim;
        this.eps = eps;
      }

      forward(x1, x2) {
        return F.cosine_similarity(x1, x2, this.dim, this.eps);
      }
    },

  /** `NLLLoss` of the log-softmax of the input. */
  CrossEntropyLoss: ({ F, _WeightedLoss }) =>
    class CrossEntropyLoss extends _WeightedLoss {
      [MAKE]({ weight, size_average, ignore_index, reduce, reduction, label_smoothing }) {
        super[MAKE]({ weight, size_average, reduce, reduction });
        this.ignore_index = ignore_index;
        this.label_smoothing = label_smoothing;
      }

      forward(input, target) {
        return F.cross_entropy(
          input,
          target,
          this.weight,
          null,
          this.ignore_index,
          null,
          this.reduction,
          this.label_smoothing,
        );
      }
    },

  /** Zeroes each element with probability `p` and scales the rest by 1 / (1 - p). */
  Dropout: ({ F, _DropoutNd }) =>
    class Dropout extends _DropoutNd {
      forward(input) {
        return F.dropout(input, this.p, this.training, this.inplace);
      }
    },

  /** Zeroes whole channels of (N, C, L) or (C, L). */
  Dropout1d: ({ F, _DropoutNd }) =>
    class Dropout1d extends _DropoutNd {
      forward(input) {
        return F.dropout1d(input, this.p, this.training, this.inplace);
      }
    },

  /** Zeroes whole channels of (N, C, H, W). */
  Dropout2d: ({ F, _DropoutNd }) =>
    class Dropout2d extends _DropoutNd {
      forward(input) {
        return F.dropout2d(input, this.p, this.training, this.inplace);
      }
    },

  /** Zeroes whole channels of (N, C, D, H, W). */
  Dropout3d: ({ F, _DropoutNd }) =>
    class Dropout3d extends _DropoutNd {
      forward(input) {
        return F.dropout3d(input, this.p, this.training, this.inplace);
      }
    },

  /** x where x > 0, else alpha * (exp(x) - 1). */
  ELU: ({ F, Module, _inplace_suffix }) =>
    class ELU extends Module {
      [MAKE]({ alpha, inplace }) {
        this.alpha = alpha;
        this.inplace = inplace;
      }

      forward(input) {
        return F.elu(input, this.alpha, this.inplace);
      }

      extra_repr() {
        return `alpha=${show(this.alpha, true)}${_inplace_suffix(this.inplace)}`;
      }
    },

  /** A table of vectors looked up by index, drawn from the standard normal distribution. */
  Embedding: ({ F, Module, Parameter, init, no_grad, take, torch }) =>
    class Embedding extends Module {
      [MAKE]({
        num_embeddings,
        embedding_dim,
        padding_idx,
        max_norm,
        norm_type,
        scale_grad_by_freq,
        sparse,
        _weight,
        _freeze,
        device,
        dtype,
      }) {
        this.num_embeddings = num_embeddings;
        this.embedding_dim = embedding_dim;
        if (padding_idx !== null) {
          if (!(padding_idx === 0 || -num_embeddings <= padding_idx && padding_idx < num_embeddings)) {
            throw new AssertionError('Padding_idx must be within num_embeddings');
          }
          padding_idx += padding_idx < 0 ? num_embeddings : 0;
        }
        this.padding_idx = padding_idx;
        this.max_norm = max_norm;
        this.norm_type = norm_type;
        this.scale_grad_by_freq = scale_grad_by_freq;
        if (_weight === null) {
          let table = torch.empty([num_embeddings, embedding_dim], { device, dtype });
          this.weight = new Parameter(table, { requires_grad: !_freeze });
          this.reset_parameters();
        } else {
          if (!equal([..._weight.shape], [num_embeddings, embedding_dim])) {
            throw new AssertionError('Shape of weight does not match num_embeddings and embedding_dim');
          }
          this.weight = new Parameter(_weight, { requires_grad: !_freeze });
        }
        this.sparse = sparse;
      }

      reset_parameters() {
        init.normal_(this.weight);
        if (this.padding_idx !== null) {
          no_grad(() => {
            this.weight.index(this.padding_idx).fill_(0);
          });
        }
      }

      forward(input) {
        return F.embedding(
          input,
          this.weight,
          this.padding_idx,
          this.max_norm,
          this.norm_type,
          this.scale_grad_by_freq,
          this.sparse,
        );
      }

      extra_repr() {
        let parts = [`${show(this.num_embeddings)}, ${show(this.embedding_dim)}`];
        if (this.padding_idx !== null) {
          parts.push(`padding_idx=${show(this.padding_idx)}`);
        }
        if (this.max_norm !== null) {
          parts.push(`max_norm=${show(this.max_norm, true)}`);
        }
        if (this.norm_type !== 2) {
          parts.push(`norm_type=${show(this.norm_type, true)}`);
        }
        if (this.scale_grad_by_freq !== false) {
          parts.push(`scale_grad_by_freq=${show(this.scale_grad_by_freq)}`);
        }
        if (this.sparse !== false) {
          parts.push('sparse=True');
        }
        return parts.join(', ');
      }

      static from_pretrained(...given) {
        const {
          embeddings,
          freeze,
          padding_idx,
          max_norm,
          norm_type,
          scale_grad_by_freq,
          sparse,
        } = take('Embedding.from_pretrained', given);
        if (embeddings.dim() !== 2) {
          throw new AssertionError('Embeddings parameter is expected to be 2-dimensional');
        }
        let [rows, cols] = embeddings.shape;
        return new this(
          {
            num_embeddings: rows,
            embedding_dim: cols,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight: embeddings,
            _freeze: freeze,
          },
        );
      }
    },

  /** Sums, means or maxima of bags of rows of a table, which is drawn as for `Embedding`. */
  EmbeddingBag: ({ F, Module, Parameter, init, no_grad, take, torch }) =>
    class EmbeddingBag extends Module {
      [MAKE]({
        num_embeddings,
        embedding_dim,
        max_norm,
        norm_type,
        scale_grad_by_freq,
        mode,
        sparse,
        _weight,
        include_last_offset,
        padding_idx,
        device,
        dtype,
      }) {
        this.num_embeddings = num_embeddings;
        this.embedding_dim = embedding_dim;
        this.max_norm = max_norm;
        this.norm_type = norm_type;
        this.scale_grad_by_freq = scale_grad_by_freq;
        if (padding_idx !== null) {
          if (!(-num_embeddings <= padding_idx && padding_idx < num_embeddings)) {
            throw new AssertionError('padding_idx must be within num_embeddings');
          }
          padding_idx += padding_idx < 0 ? num_embeddings : 0;
        }
        this.padding_idx = padding_idx;
        if (_weight === null) {
          let table = torch.empty([num_embeddings, embedding_dim], { device, dtype });
          this.weight = new Parameter(table);
          this.reset_parameters();
        } else {
          if (!equal([..._weight.shape], [num_embeddings, embedding_dim])) {
            throw new AssertionError('Shape of weight does not match num_embeddings and embedding_dim');
          }
          this.weight = new Parameter(_weight);
        }
        this.mode = mode;
        this.sparse = sparse;
        this.include_last_offset = include_last_offset;
      }

      reset_parameters() {
        init.normal_(this.weight);
        if (this.padding_idx !== null) {
          no_grad(() => {
            this.weight.index(this.padding_idx).fill_(0);
          });
        }
      }

      forward(...given) {
        const { input, offsets, per_sample_weights } = take('EmbeddingBag.forward', given);
        return F.embedding_bag(
          input,
          this.weight,
          offsets,
          this.max_norm,
          this.norm_type,
          this.scale_grad_by_freq,
          this.mode,
          this.sparse,
          per_sample_weights,
          this.include_last_offset,
          this.padding_idx,
        );
      }

      extra_repr() {
        let parts = [`${show(this.num_embeddings)}, ${show(this.embedding_dim)}`];
        if (this.max_norm !== null) {
          parts.push(`max_norm=${show(this.max_norm, true)}`);
        }
        if (this.norm_type !== 2) {
          parts.push(`norm_type=${show(this.norm_type, true)}`);
        }
        if (this.scale_grad_by_freq !== false) {
          parts.push(`scale_grad_by_freq=${show(this.scale_grad_by_freq)}`);
        }
        parts.push(`mode=${repr(this.mode)}`);
        if (this.padding_idx !== null) {
          parts.push(`padding_idx=${show(this.padding_idx)}`);
        }
        return parts.join(', ');
      }

      static from_pretrained(...given) {
        const {
          embeddings,
          freeze,
          max_norm,
          norm_type,
          scale_grad_by_freq,
          mode,
          sparse,
          include_last_offset,
          padding_idx,
        } = take('EmbeddingBag.from_pretrained', given);
        if (embeddings.dim() !== 2) {
          throw new AssertionError('Embeddings parameter is expected to be 2-dimensional');
        }
        let [rows, cols] = embeddings.shape;
        let made = new this(
          {
            num_embeddings: rows,
            embedding_dim: cols,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight: embeddings,
            include_last_offset,
            padding_idx,
          },
        );
        made.weight.requires_grad = !freeze;
        return made;
      }
    },

  /** `AlphaDropout` of whole channels of (N, C, ...). */
  FeatureAlphaDropout: ({ F, _DropoutNd }) =>
    class FeatureAlphaDropout extends _DropoutNd {
      forward(input) {
        return F.feature_alpha_dropout(input, this.p, this.training);
      }
    },

  /** Merges the dimensions from `start_dim` to `end_dim`; by default all but the batch. */
  Flatten: ({ Module }) =>
    class Flatten extends Module {
      [MAKE]({ start_dim, end_dim }) {
        this.start_dim = start_dim;
        this.end_dim = end_dim;
      }

      forward(input) {
        return input.flatten(this.start_dim, this.end_dim);
      }

      extra_repr() {
        return `start_dim=${show(this.start_dim)}, end_dim=${show(this.end_dim)}`;
      }
    },

  /** Extracts the patches under a sliding window of an image, one patch per column. */
  Unfold: ({ F, Module }) =>
    class Unfold extends Module {
      [MAKE]({ kernel_size, dilation, padding, stride }) {
        this.kernel_size = kernel_size;
        this.dilation = dilation;
        this.padding = padding;
        this.stride = stride;
      }

      forward(input) {
        return F.unfold(input, this.kernel_size, this.dilation, this.padding, this.stride);
      }

      extra_repr() {
        return `kernel_size=${show(this.kernel_size)}, dilation=${show(this.dilation)}, padding=${show(this.padding)}, stride=${show(this.stride)}`;
      }
    },

  /** Adds up patches to an image: the transpose of `Unfold`. */
  Fold: ({ F, Unfold }) =>
    class Fold extends Unfold {
      [MAKE]({ output_size, kernel_size, dilation, padding, stride }) {
        super[MAKE]({ kernel_size, dilation, padding, stride });
        this.output_size = output_size;
      }

      forward(input) {
        return F.fold(input, this.output_size, this.kernel_size, this.dilation, this.padding, this.stride);
      }

      extra_repr() {
        return `output_size=${show(this.output_size)}, ${super.extra_repr()}`;
      }
    },

  /** The base class of fractional max pooling in two and three dimensions. */
  _FractionalMaxPool: ({ F, Module }) =>
    class _FractionalMaxPool extends Module {
      [MAKE]({ kernel_size, output_size, output_ratio, return_indices, _random_samples }) {
        this.kernel_size = ntuple(kernel_size, this._dims);
        this.return_indices = return_indices;
        this.register_buffer('_random_samples', _random_samples);
        if (output_size === null && output_ratio === null) {
          throw new ValueError(`${this.constructor.name} requires specifying either an output size, or a pooling ratio`);
        }
        if (output_size !== null && output_ratio !== null) {
          throw new ValueError('only one of output_size and output_ratio may be specified');
        }
        this.output_size = output_size === null ? null : ntuple(output_size, this._dims);
        this.output_ratio = output_ratio === null ? null : ntuple(output_ratio, this._dims);
        if (this.output_ratio !== null && !(this.output_ratio.every((ratio) => 0 < ratio && ratio < 1))) {
          throw new ValueError(`output_ratio must be between 0 and 1 (got ${show(output_ratio, true)})`);
        }
      }

      forward(input) {
        let pool = this._dims === 2 ? F.fractional_max_pool2d : F.fractional_max_pool3d;
        return pool(
          input,
          this.kernel_size,
          this.output_size,
          this.output_ratio,
          this.return_indices,
          { _random_samples: this._random_samples },
        );
      }
    },

  /** Fractional max pooling: the maxima of windows with random steps (Graham, 2014). */
  FractionalMaxPool2d: ({ _FractionalMaxPool }) =>
    class FractionalMaxPool2d extends _FractionalMaxPool {
      static {
        this.prototype._dims = 2;
      }
    },

  /** Fractional max pooling of volumes, see `FractionalMaxPool2d`. */
  FractionalMaxPool3d: ({ _FractionalMaxPool }) =>
    class FractionalMaxPool3d extends _FractionalMaxPool {
      static {
        this.prototype._dims = 3;
      }
    },

  /** x * Phi(x), Phi the normal distribution function; `approximate="tanh"` approximates it. */
  GELU: ({ F, Module }) =>
    class GELU extends Module {
      [MAKE]({ approximate }) {
        this.approximate = approximate;
      }

      forward(input) {
        return F.gelu(input, { approximate: this.approximate });
      }

      extra_repr() {
        return `approximate=${repr(this.approximate)}`;
      }
    },

  /** a * sigmoid(b), where a and b are the halves of the input along `dim`. */
  GLU: ({ F, Module }) =>
    class GLU extends Module {
      [MAKE]({ dim }) {
        this.dim = dim;
      }

      forward(input) {
        return F.glu(input, this.dim);
      }

      extra_repr() {
        return `dim=${show(this.dim)}`;
      }
    },

  /** (log(v) + (x - y)^2 / v) / 2 with v = max(var, eps); `full` adds the constant term. */
  GaussianNLLLoss: ({ F, _Loss }) =>
    class GaussianNLLLoss extends _Loss {
      [MAKE]({ full, eps, reduction }) {
        super[MAKE]({ size_average: null, reduce: null, reduction });
        this.full = full;
        this.eps = eps;
      }

      forward(input, target, var_) {
        return F.gaussian_nll_loss(input, target, var_, this.full, this.eps, this.reduction);
      }
    },

  /** A scale of ones and a shift of zeros, both optional. */
  _AffineNorm: ({ Module, Parameter, init, torch }) =>
    class _AffineNorm extends Module {
      _make_affine(shape, scale, shift, factory) {
        let weight = scale ? new Parameter(torch.empty(shape, factory)) : null;
        let bias = shift ? new Parameter(torch.empty(shape, factory)) : null;
        this.register_parameter('weight', weight);
        this.register_parameter('bias', bias);
      }

      reset_parameters() {
        if (this.weight !== null) {
          init.ones_(this.weight);
        }
        if (this.bias !== null) {
          init.zeros_(this.bias);
        }
      }
    },

  /** Normalises the channels of (N, C, *) in `num_groups` groups, then scales each channel. */
  GroupNorm: ({ F, _AffineNorm }) =>
    class GroupNorm extends _AffineNorm {
      [MAKE]({ num_groups, num_channels, eps, affine, device, dtype, bias }) {
        if (modulo(num_channels, num_groups) !== 0) {
          throw new ValueError(`num_channels (${show(num_channels)}) must be divisible by num_groups (${show(num_groups)})`);
        }
        this.num_groups = num_groups;
        this.num_channels = num_channels;
        this.eps = eps;
        this.affine = affine;
        let factory = { device, dtype };
        this._make_affine(num_channels, affine, affine && bias, factory);
        this.reset_parameters();
      }

      forward(input) {
        return F.group_norm(input, this.num_groups, this.weight, this.bias, this.eps);
      }

      extra_repr() {
        return `${show(this.num_groups)}, ${show(this.num_channels)}, eps=${show(this.eps, true)}, affine=${show(this.affine)}, bias=${show(this.bias !== null)}`;
      }
    },

  /** x where abs(x) > lambd, else 0. */
  Hardshrink: ({ F, Module }) =>
    class Hardshrink extends Module {
      [MAKE]({ lambd }) {
        this.lambd = lambd;
      }

      forward(input) {
        return F.hardshrink(input, this.lambd);
      }

      extra_repr() {
        return `${show(this.lambd, true)}`;
      }
    },

  /** min(max(x + 3, 0), 6) / 6. */
  Hardsigmoid: ({ F, Module }) =>
    class Hardsigmoid extends Module {
      [MAKE]({ inplace }) {
        this.inplace = inplace;
      }

      forward(input) {
        return F.hardsigmoid(input, this.inplace);
      }
    },

  /** x * min(max(x + 3, 0), 6) / 6. */
  Hardswish: ({ F, Module }) =>
    class Hardswish extends Module {
      [MAKE]({ inplace }) {
        this.inplace = inplace;
      }

      forward(input) {
        return F.hardswish(input, this.inplace);
      }
    },

  /** The value of an argument by its current name or, with a warning, its old one (`*ue`). */
  _resolve_renamed: ({ warn }) =>
    function _resolve_renamed(name, value, old_value) {
      if (old_value === null) {
        return value;
      }
      warn(`keyword argument \`${name}ue\` is deprecated and renamed to \`${name}\``);
      return old_value;
    },

  /** x, clamped to `min_val` and `max_val`. */
  Hardtanh: ({ F, Module, _inplace_suffix, _resolve_renamed }) =>
    class Hardtanh extends Module {
      [MAKE]({ min_val, max_val, inplace, min_value, max_value }) {
        this.min_val = _resolve_renamed('min_val', min_val, min_value);
        this.max_val = _resolve_renamed('max_val', max_val, max_value);
        this.inplace = inplace;
        if (this.max_val <= this.min_val) {
          throw new AssertionError(`max_val (${show(this.max_val, true)}) must be greater than min_val (${show(this.min_val, true)})`);
        }
      }

      forward(input) {
        return F.hardtanh(input, this.min_val, this.max_val, this.inplace);
      }

      extra_repr() {
        let suffix = _inplace_suffix(this.inplace);
        return `min_val=${show(this.min_val, true)}, max_val=${show(this.max_val, true)}${suffix}`;
      }
    },

  /** x where y = 1, and max(0, margin - x) where y = -1. */
  HingeEmbeddingLoss: ({ F, _Loss }) =>
    class HingeEmbeddingLoss extends _Loss {
      [MAKE]({ margin, size_average, reduce, reduction }) {
        super[MAKE]({ size_average, reduce, reduction });
        this.margin = margin;
      }

      forward(input, target) {
        return F.hinge_embedding_loss(input, target, this.margin, null, null, this.reduction);
      }
    },

  /** (x - y)^2 / 2 where abs(x - y) < delta, else delta * (abs(x - y) - delta / 2). */
  HuberLoss: ({ F, _Loss }) =>
    class HuberLoss extends _Loss {
      [MAKE]({ reduction, delta }) {
        if (!(typeof delta === 'number')) {
          throw new TypeError(`delta must be a float or int, got: <class '${typeName(delta)}'>`);
        }
        super[MAKE]({ size_average: null, reduce: null, reduction });
        this.delta = delta;
      }

      forward(input, target) {
        return F.huber_loss(input, target, this.reduction, this.delta);
      }
    },

  /** Returns its input; accepts and ignores any constructor arguments. */
  Identity: ({ Module }) =>
    class Identity extends Module {
      [MAKE]() {
      }

      forward(input) {
        return input;
      }
    },

  /** The forward pass; subclasses define the number of dimensions of positions. */
  _InstanceNorm: ({ F, _NormBase, warn }) =>
    class _InstanceNorm extends _NormBase {
      [MAKE]({ num_features, eps, momentum, affine, track_running_stats, device, dtype, bias }) {
        super[MAKE]({
          num_features,
          eps,
          momentum,
          affine,
          track_running_stats,
          device,
          dtype,
          bias,
        });
      }

      _check_input_dim(input) {
        let alone = this._n_dims + 1;
        if (!contains([alone, alone + 1], input.dim())) {
          throw new ValueError(`expected ${show(alone)}D or ${show(alone + 1)}D input (got ${show(input.dim())}D input)`);
        }
      }

      _get_no_batch_dim() {
        return this._n_dims + 1;
      }

      _handle_no_batch_input(input) {
        return this._apply_instance_norm(input.unsqueeze(0)).squeeze(0);
      }

      _apply_instance_norm(input) {
        return F.instance_norm(
          input,
          this.running_mean,
          this.running_var,
          this.weight,
          this.bias,
          this.training || !this.track_running_stats,
          this.momentum === null ? 0.0 : this.momentum,
          this.eps,
        );
      }

      forward(input) {
        this._check_input_dim(input);
        let dim = input.dim() - this._get_no_batch_dim();
        if (input.size(dim) !== this.num_features) {
          if (this.affine) {
            throw new ValueError(`expected input's size at dim=${show(dim)} to match num_features (${show(this.num_features)}), but got: ${show(input.size(dim))}.`);
          }
          warn(`input's size at dim=${show(dim)} does not match num_features. You can silence this warning by not passing in num_features, which is not used because affine=False`);
        }
        return dim ? this._apply_instance_norm(input) : this._handle_no_batch_input(input);
      }
    },

  /** Instance normalisation of (N, C, L) or (C, L). */
  InstanceNorm1d: ({ _InstanceNorm }) =>
    class InstanceNorm1d extends _InstanceNorm {
      static {
        this.prototype._n_dims = 1;
      }
    },

  /** Instance normalisation of (N, C, H, W) or (C, H, W). Arguments as `InstanceNorm1d`. */
  InstanceNorm2d: ({ _InstanceNorm }) =>
    class InstanceNorm2d extends _InstanceNorm {
      static {
        this.prototype._n_dims = 2;
      }
    },

  /** Instance normalisation of (N, C, D, H, W) or (C, D, H, W). See `InstanceNorm1d`. */
  InstanceNorm3d: ({ _InstanceNorm }) =>
    class InstanceNorm3d extends _InstanceNorm {
      static {
        this.prototype._n_dims = 3;
      }
    },

  /** y * (log(y) - x): the divergence from log-probabilities x to targets y, which may be logs too. */
  KLDivLoss: ({ F, _Loss }) =>
    class KLDivLoss extends _Loss {
      [MAKE]({ size_average, reduce, reduction, log_target }) {
        super[MAKE]({ size_average, reduce, reduction });
        this.log_target = log_target;
      }

      forward(input, target) {
        return F.kl_div(input, target, null, null, this.reduction, this.log_target);
      }
    },

  /** abs(x - y). */
  L1Loss: ({ F, _Loss }) =>
    class L1Loss extends _Loss {
      forward(input, target) {
        return F.l1_loss(input, target, null, null, this.reduction);
      }
    },

  _LPPoolNd: ({ Module }) =>
    class _LPPoolNd extends Module {
      [MAKE]({ norm_type, kernel_size, stride, ceil_mode }) {
        this.norm_type = norm_type;
        this.kernel_size = kernel_size;
        this.stride = stride;
        this.ceil_mode = ceil_mode;
      }

      _pool(op, input) {
        let found = op(input, this.norm_type, this.kernel_size, this.stride, this.ceil_mode);
        return found;
      }

      extra_repr() {
        return `norm_type=${show(this.norm_type, true)}, kernel_size=${show(this.kernel_size)}, stride=${show(this.stride)}, ceil_mode=${show(this.ceil_mode)}`;
      }
    },

  /** The p-norm of each window of (N, C, L) or (C, L): the p-th root of the sum of p-th powers. */
  LPPool1d: ({ F, _LPPoolNd }) =>
    class LPPool1d extends _LPPoolNd {
      forward(input) {
        return this._pool(F.lp_pool1d, input);
      }
    },

  /** The p-norm of each window of (N, C, H, W) or (C, H, W); arguments as `LPPool1d`. */
  LPPool2d: ({ F, _LPPoolNd }) =>
    class LPPool2d extends _LPPoolNd {
      forward(input) {
        return this._pool(F.lp_pool2d, input);
      }
    },

  /** The p-norm of each window of (N, C, D, H, W) or (C, D, H, W); arguments as `LPPool1d`. */
  LPPool3d: ({ F, _LPPoolNd }) =>
    class LPPool3d extends _LPPoolNd {
      forward(input) {
        return this._pool(F.lp_pool3d, input);
      }
    },

  _as_shape: () =>
    function _as_shape(shape) {
      if (Number.isInteger(shape)) {
        return [Math.trunc(shape)];
      }
      return [...shape];
    },

  /** Normalises the last dimensions to mean 0 and variance 1, then scales and shifts. */
  LayerNorm: ({ F, _AffineNorm, _as_shape }) =>
    class LayerNorm extends _AffineNorm {
      [MAKE]({ normalized_shape, eps, elementwise_affine, bias, device, dtype }) {
        this.normalized_shape = _as_shape(normalized_shape);
        this.eps = eps;
        this.elementwise_affine = elementwise_affine;
        let factory = { device, dtype };
        let shift = elementwise_affine && bias;
        this._make_affine(this.normalized_shape, elementwise_affine, shift, factory);
        this.reset_parameters();
      }

      forward(input) {
        return F.layer_norm(input, this.normalized_shape, this.weight, this.bias, this.eps);
      }

      extra_repr() {
        return `${show(this.normalized_shape)}, eps=${show(this.eps, true)}, elementwise_affine=${show(this.elementwise_affine)}, bias=${show(this.bias !== null)}`;
      }
    },

  /** x where x > 0, else negative_slope * x. */
  LeakyReLU: ({ F, Module, _inplace_suffix }) =>
    class LeakyReLU extends Module {
      [MAKE]({ negative_slope, inplace }) {
        this.negative_slope = negative_slope;
        this.inplace = inplace;
      }

      forward(input) {
        return F.leaky_relu(input, this.negative_slope, this.inplace);
      }

      extra_repr() {
        return `negative_slope=${show(this.negative_slope, true)}${_inplace_suffix(this.inplace)}`;
      }
    },

  /** y = x W^T + b, with W drawn by Kaiming's uniform initialisation. */
  Linear: ({ F, Module, Parameter, init_weight_and_bias, torch }) =>
    class Linear extends Module {
      [MAKE]({ in_features, out_features, bias, device, dtype }) {
        this.in_features = in_features;
        this.out_features = out_features;
        this.weight = new Parameter(torch.empty([out_features, in_features], { device, dtype }));
        if (bias) {
          this.bias = new Parameter(torch.empty(out_features, { device, dtype }));
        } else {
          this.register_parameter('bias', null);
        }
        this.reset_parameters();
      }

      reset_parameters() {
        init_weight_and_bias(this.weight, this.bias);
      }

      forward(input) {
        let own = this;
        if ('weight' in own && 'bias' in own) {
          return F.linear(input, own.weight, own.bias);
        }
        return F.linear(input, this.weight, this.bias);
      }

      extra_repr() {
        return `in_features=${show(this.in_features)}, out_features=${show(this.out_features)}, bias=${show(this.bias !== null)}`;
      }
    },

  /** x / (k + alpha * mean of the squares of `size` neighboring channels)^beta. */
  LocalResponseNorm: ({ F, Module }) =>
    class LocalResponseNorm extends Module {
      [MAKE]({ size, alpha, beta, k }) {
        this.size = size;
        this.alpha = alpha;
        this.beta = beta;
        this.k = k;
      }

      forward(input) {
        return F.local_response_norm(input, this.size, this.alpha, this.beta, this.k);
      }

      extra_repr() {
        return `${show(this.size)}, alpha=${show(this.alpha, true)}, beta=${show(this.beta, true)}, k=${show(this.k, true)}`;
      }
    },

  /** log(sigmoid(x)), without overflow. */
  LogSigmoid: ({ F, Module }) =>
    class LogSigmoid extends Module {
      forward(input) {
        return F.logsigmoid(input);
      }
    },

  /** The base class of normalisations along `dim`; for `None` the function chooses and warns. */
  _AlongDim: ({ Module }) =>
    class _AlongDim extends Module {
      [MAKE]({ dim }) {
        this.dim = dim;
      }

      extra_repr() {
        return `dim=${show(this.dim)}`;
      }
    },

  /** x - log(sum(exp(x))) along `dim`. */
  LogSoftmax: ({ F, _AlongDim }) =>
    class LogSoftmax extends _AlongDim {
      forward(input) {
        return F.log_softmax(input, this.dim);
      }
    },

  /** (x - y)^2. */
  MSELoss: ({ F, _Loss }) =>
    class MSELoss extends _Loss {
      forward(input, target) {
        return F.mse_loss(input, target, null, null, this.reduction);
      }
    },

  /** max(0, -y * (x1 - x2) + margin), with targets of 1 and -1. */
  MarginRankingLoss: ({ F, _Loss }) =>
    class MarginRankingLoss extends _Loss {
      [MAKE]({ margin, size_average, reduce, reduction }) {
        super[MAKE]({ size_average, reduce, reduction });
        this.margin = margin;
      }

      forward(input1, input2, target) {
        return F.margin_ranking_loss(input1, input2, target, this.margin, null, null, this.reduction);
      }
    },

  _MaxPoolNd: ({ Module }) =>
    class _MaxPoolNd extends Module {
      [MAKE]({ kernel_size, stride, padding, dilation, return_indices, ceil_mode }) {
        this.kernel_size = kernel_size;
        this.stride = stride === null ? kernel_size : stride;
        this.padding = padding;
        this.dilation = dilation;
        this.return_indices = return_indices;
        this.ceil_mode = ceil_mode;
      }

      extra_repr() {
        return `kernel_size=${show(this.kernel_size)}, stride=${show(this.stride)}, padding=${show(this.padding)}, dilation=${show(this.dilation)}, ceil_mode=${show(this.ceil_mode)}`;
      }

      _pool(op, input) {
        return op(
          input,
          this.kernel_size,
          this.stride,
          this.padding,
          this.dilation,
          this.ceil_mode,
          this.return_indices,
        );
      }
    },

  /** The maximum of each window of (N, C, L) or (C, L). */
  MaxPool1d: ({ F, _MaxPoolNd }) =>
    class MaxPool1d extends _MaxPoolNd {
      forward(input) {
        return this._pool(F.max_pool1d, input);
      }
    },

  /** The maximum of each window of (N, C, H, W) or (C, H, W). */
  MaxPool2d: ({ F, _MaxPoolNd }) =>
    class MaxPool2d extends _MaxPoolNd {
      forward(input) {
        return this._pool(F.max_pool2d, input);
      }
    },

  /** The maximum of each window of (N, C, D, H, W) or (C, D, H, W). */
  MaxPool3d: ({ F, _MaxPoolNd }) =>
    class MaxPool3d extends _MaxPoolNd {
      forward(input) {
        return this._pool(F.max_pool3d, input);
      }
    },

  _MaxUnpoolNd: ({ F, Module, take }) =>
    class _MaxUnpoolNd extends Module {
      [MAKE]({ kernel_size, stride, padding }) {
        this.kernel_size = ntuple(kernel_size, this._rank);
        this.stride = ntuple(stride === null ? kernel_size : stride, this._rank);
        this.padding = ntuple(padding, this._rank);
      }

      extra_repr() {
        return `kernel_size=${show(this.kernel_size)}, stride=${show(this.stride)}, padding=${show(this.padding)}`;
      }

      forward(...given) {
        const { input, indices, output_size } = take('_MaxUnpoolNd.forward', given);
        let unpool = [F.max_unpool1d, F.max_unpool2d, F.max_unpool3d][this._rank - 1];
        return unpool(input, indices, this.kernel_size, this.stride, this.padding, output_size);
      }
    },

  /** Inverse of `MaxPool1d`: puts the maxima back at their indices, with zeros between. */
  MaxUnpool1d: ({ _MaxUnpoolNd }) =>
    class MaxUnpool1d extends _MaxUnpoolNd {
      static {
        this.prototype._rank = 1;
      }
    },

  /** Inverse of `MaxPool2d`: puts the maxima back at their indices, with zeros between. */
  MaxUnpool2d: ({ _MaxUnpoolNd }) =>
    class MaxUnpool2d extends _MaxUnpoolNd {
      static {
        this.prototype._rank = 2;
      }
    },

  /** Inverse of `MaxPool3d`: puts the maxima back at their indices, with zeros between. */
  MaxUnpool3d: ({ _MaxUnpoolNd }) =>
    class MaxUnpool3d extends _MaxUnpoolNd {
      static {
        this.prototype._rank = 3;
      }
    },

  /** The base class of activations whose only argument is `inplace`. */
  _MaybeInplace: ({ Module }) =>
    class _MaybeInplace extends Module {
      [MAKE]({ inplace }) {
        this.inplace = inplace;
      }

      extra_repr() {
        return this.inplace ? 'inplace=True' : '';
      }
    },

  /** x * tanh(softplus(x)). */
  Mish: ({ F, _MaybeInplace }) =>
    class Mish extends _MaybeInplace {
      forward(input) {
        return F.mish(input, this.inplace);
      }
    },

  /** Mean over labels t and other classes k of max(0, 1 - x[t] + x[k]). */
  MultiLabelMarginLoss: ({ F, _Loss }) =>
    class MultiLabelMarginLoss extends _Loss {
      forward(input, target) {
        return F.multilabel_margin_loss(input, target, null, null, this.reduction);
      }
    },

  /** The mean of `BCEWithLogitsLoss` over the classes. Shape: (N, C) twice. */
  MultiLabelSoftMarginLoss: ({ F, _WeightedLoss }) =>
    class MultiLabelSoftMarginLoss extends _WeightedLoss {
      forward(input, target) {
        return F.multilabel_soft_margin_loss(input, target, this.weight, null, null, this.reduction);
      }
    },

  /** Mean over classes k != t of max(0, margin - x[t] + x[k])^p, times the weight of t. */
  MultiMarginLoss: ({ F, _WeightedLoss }) =>
    class MultiMarginLoss extends _WeightedLoss {
      [MAKE]({ p, margin, weight, size_average, reduce, reduction }) {
        super[MAKE]({ weight, size_average, reduce, reduction });
        if (!contains([1, 2], p)) {
          throw new ValueError('only p == 1 and p == 2 supported');
        }
        if (weight !== null && weight.dim() !== 1) {
          throw new ValueError(`MultiMarginLoss: expected weight to be None or 1D tensor, got ${show(weight.dim())}D instead`);
        }
        this.p = p;
        this.margin = margin;
      }

      forward(input, target) {
        return F.multi_margin_loss(
          input,
          target,
          this.p,
          this.margin,
          this.weight,
          null,
          null,
          this.reduction,
        );
      }
    },

  /** -weight[y] * x[y]: the negative log-probability of the target class. */
  NLLLoss: ({ F, _WeightedLoss }) =>
    class NLLLoss extends _WeightedLoss {
      [MAKE]({ weight, size_average, ignore_index, reduce, reduction }) {
        super[MAKE]({ weight, size_average, reduce, reduction });
        this.ignore_index = ignore_index;
      }

      forward(input, target) {
        return F.nll_loss(input, target, this.weight, null, this.ignore_index, null, this.reduction);
      }
    },

  /** The older name of `NLLLoss` for images. */
  NLLLoss2d: ({ NLLLoss }) =>
    class NLLLoss2d extends NLLLoss {},

  /** x where x > 0, else a * x, with one trained `a`, or one for each channel. */
  PReLU: ({ F, Module, Parameter, init, torch }) =>
    class PReLU extends Module {
      [MAKE]({ num_parameters, init, device, dtype }) {
        this.num_parameters = num_parameters;
        this.init = init;
        this.weight = new Parameter(torch.empty(num_parameters, { device, dtype }));
        this.reset_parameters();
      }

      reset_parameters() {
        init.constant_(this.weight, this.init);
      }

      forward(input) {
        return F.prelu(input, this.weight);
      }

      extra_repr() {
        return `num_parameters=${show(this.num_parameters)}`;
      }
    },

  /** The p-norm of x1 - x2 + eps along the last dimension. */
  PairwiseDistance: ({ F, Module }) =>
    class PairwiseDistance extends Module {
      [MAKE]({ p, eps, keepdim }) {
        this.norm = p;
        this.eps = eps;
        this.keepdim = keepdim;
      }

      forward(x1, x2) {
        return F.pairwise_distance(x1, x2, this.norm, this.eps, this.keepdim);
      }
    },

  /** Rearranges channels as space: each position becomes r by r positions. */
  PixelShuffle: ({ F, Module }) =>
    class PixelShuffle extends Module {
      [MAKE]({ upscale_factor }) {
        this.upscale_factor = upscale_factor;
      }

      forward(input) {
        return F.pixel_shuffle(input, this.upscale_factor);
      }

      extra_repr() {
        return `upscale_factor=${show(this.upscale_factor)}`;
      }
    },

  /** The inverse of `PixelShuffle`. */
  PixelUnshuffle: ({ F, Module }) =>
    class PixelUnshuffle extends Module {
      [MAKE]({ downscale_factor }) {
        this.downscale_factor = downscale_factor;
      }

      forward(input) {
        return F.pixel_unshuffle(input, this.downscale_factor);
      }

      extra_repr() {
        return `downscale_factor=${show(this.downscale_factor)}`;
      }
    },

  /** exp(x) - y * x, or x - y * log(x + eps) for an input that is no log; `full` adds Stirling's term. */
  PoissonNLLLoss: ({ F, _Loss }) =>
    class PoissonNLLLoss extends _Loss {
      [MAKE]({ log_input, full, size_average, eps, reduce, reduction }) {
        super[MAKE]({ size_average, reduce, reduction });
        this.log_input = log_input;
        this.full = full;
        this.eps = eps;
      }

      forward(log_input, target) {
        return F.poisson_nll_loss(
          log_input,
          target,
          this.log_input,
          this.full,
          null,
          this.eps,
          null,
          this.reduction,
        );
      }
    },

  /** Divides the last dimensions by their root mean square, then scales. */
  RMSNorm: ({ F, Module, Parameter, _as_shape, init, torch }) =>
    class RMSNorm extends Module {
      [MAKE]({ normalized_shape, eps, elementwise_affine, device, dtype }) {
        this.normalized_shape = _as_shape(normalized_shape);
        this.eps = eps;
        this.elementwise_affine = elementwise_affine;
        if (elementwise_affine) {
          let scale = torch.empty(this.normalized_shape, { device, dtype });
          this.weight = new Parameter(scale);
        } else {
          this.register_parameter('weight', null);
        }
        this.reset_parameters();
      }

      reset_parameters() {
        if (this.weight !== null) {
          init.ones_(this.weight);
        }
      }

      forward(x) {
        return F.rms_norm(x, this.normalized_shape, this.weight, this.eps);
      }

      extra_repr() {
        return `${show(this.normalized_shape)}, eps=${show(this.eps, true)}, elementwise_affine=${show(this.elementwise_affine)}`;
      }
    },

  /** x where x >= 0, else a * x; in training, a is drawn for each element from [lower, upper]. */
  RReLU: ({ F, Module, _inplace_suffix }) =>
    class RReLU extends Module {
      [MAKE]({ lower, upper, inplace }) {
        this.lower = lower;
        this.upper = upper;
        this.inplace = inplace;
      }

      forward(input) {
        return F.rrelu(input, this.lower, this.upper, this.training, this.inplace);
      }

      extra_repr() {
        return `lower=${show(this.lower, true)}, upper=${show(this.upper, true)}${_inplace_suffix(this.inplace)}`;
      }
    },

  /** max(x, 0). */
  ReLU: ({ F, _MaybeInplace }) =>
    class ReLU extends _MaybeInplace {
      forward(input) {
        return F.relu(input, this.inplace);
      }
    },

  /** min(max(x, 0), 6). */
  ReLU6: ({ Hardtanh }) =>
    class ReLU6 extends Hardtanh {
      [MAKE]({ inplace }) {
        super[MAKE]({ min_val: 0.0, max_val: 6.0, inplace, min_value: null, max_value: null });
      }

      extra_repr() {
        return this.inplace ? 'inplace=True' : '';
      }
    },

  /** Pads the last dimension by reflection at the edge. */
  ReflectionPad1d: ({ _Pad }) =>
    class ReflectionPad1d extends _Pad {
      static {
        this.prototype._n_dims = 1;
        this.prototype._mode = 'reflect';
      }
    },

  /** Pads the last 2 dimensions by reflection at the edge. */
  ReflectionPad2d: ({ _Pad }) =>
    class ReflectionPad2d extends _Pad {
      static {
        this.prototype._n_dims = 2;
        this.prototype._mode = 'reflect';
      }
    },

  /** Pads the last 3 dimensions by reflection at the edge. */
  ReflectionPad3d: ({ _Pad }) =>
    class ReflectionPad3d extends _Pad {
      static {
        this.prototype._n_dims = 3;
        this.prototype._mode = 'reflect';
      }
    },

  /** Pads the last dimension with the element at the edge. */
  ReplicationPad1d: ({ _Pad }) =>
    class ReplicationPad1d extends _Pad {
      static {
        this.prototype._n_dims = 1;
        this.prototype._mode = 'replicate';
      }
    },

  /** Pads the last 2 dimensions with the element at the edge. */
  ReplicationPad2d: ({ _Pad }) =>
    class ReplicationPad2d extends _Pad {
      static {
        this.prototype._n_dims = 2;
        this.prototype._mode = 'replicate';
      }
    },

  /** Pads the last 3 dimensions with the element at the edge. */
  ReplicationPad3d: ({ _Pad }) =>
    class ReplicationPad3d extends _Pad {
      static {
        this.prototype._n_dims = 3;
        this.prototype._mode = 'replicate';
      }
    },

  /** ELU with the scale and alpha that preserve mean 0 and variance 1. */
  SELU: ({ F, _MaybeInplace }) =>
    class SELU extends _MaybeInplace {
      forward(input) {
        return F.selu(input, this.inplace);
      }
    },

  /** x * sigmoid(x). */
  SiLU: ({ F, _MaybeInplace }) =>
    class SiLU extends _MaybeInplace {
      forward(input) {
        return F.silu(input, this.inplace);
      }
    },

  /** 1 / (1 + exp(-x)). */
  Sigmoid: ({ Module, torch }) =>
    class Sigmoid extends Module {
      forward(input) {
        return torch.sigmoid(input);
      }
    },

  /** (x - y)^2 / (2 beta) where abs(x - y) < beta, else abs(x - y) - beta / 2. */
  SmoothL1Loss: ({ F, _Loss }) =>
    class SmoothL1Loss extends _Loss {
      [MAKE]({ size_average, reduce, reduction, beta }) {
        super[MAKE]({ size_average, reduce, reduction });
        this.beta = beta;
      }

      forward(input, target) {
        return F.smooth_l1_loss(input, target, null, null, this.reduction, this.beta);
      }
    },

  /** log(1 + exp(-y * x)), with targets of 1 and -1. */
  SoftMarginLoss: ({ F, _Loss }) =>
    class SoftMarginLoss extends _Loss {
      forward(input, target) {
        return F.soft_margin_loss(input, target, null, null, this.reduction);
      }
    },

  /** exp(x) over its sum along `dim`. */
  Softmax: ({ F, _AlongDim }) =>
    class Softmax extends _AlongDim {
      forward(input) {
        return F.softmax(input, this.dim);
      }
    },

  /** Softmax over the channels of (N, C, H, W) or (C, H, W). */
  Softmax2d: ({ F, Module }) =>
    class Softmax2d extends Module {
      forward(input) {
        if (!contains([3, 4], input.dim())) {
          throw new ValueError(`Softmax2d: expected input to be 3D or 4D, got ${show(input.dim())}D instead`);
        }
        return F.softmax(input, -3);
      }
    },

  /** exp(-x) over its sum along `dim`. */
  Softmin: ({ F, _AlongDim }) =>
    class Softmin extends _AlongDim {
      forward(input) {
        return F.softmin(input, this.dim);
      }
    },

  /** log(1 + exp(beta * x)) / beta, or x where beta * x > threshold. */
  Softplus: ({ F, Module }) =>
    class Softplus extends Module {
      [MAKE]({ beta, threshold }) {
        this.beta = beta;
        this.threshold = threshold;
      }

      forward(input) {
        return F.softplus(input, this.beta, this.threshold);
      }

      extra_repr() {
        return `beta=${show(this.beta, true)}, threshold=${show(this.threshold, true)}`;
      }
    },

  /** x moved towards 0 by lambd, or 0 if it would cross 0. */
  Softshrink: ({ F, Module }) =>
    class Softshrink extends Module {
      [MAKE]({ lambd }) {
        this.lambd = lambd;
      }

      forward(input) {
        return F.softshrink(input, this.lambd);
      }

      extra_repr() {
        return `${show(this.lambd, true)}`;
      }
    },

  /** x / (1 + abs(x)). */
  Softsign: ({ F, Module }) =>
    class Softsign extends Module {
      forward(input) {
        return F.softsign(input);
      }
    },

  /** The hyperbolic tangent. */
  Tanh: ({ Module, torch }) =>
    class Tanh extends Module {
      forward(input) {
        return torch.tanh(input);
      }
    },

  /** x - tanh(x). */
  Tanhshrink: ({ F, Module }) =>
    class Tanhshrink extends Module {
      forward(input) {
        return F.tanhshrink(input);
      }
    },

  /** x where x > threshold, else `value`. */
  Threshold: ({ F, Module, _inplace_suffix }) =>
    class Threshold extends Module {
      [MAKE]({ threshold, value, inplace }) {
        this.threshold = threshold;
        this.value = value;
        this.inplace = inplace;
      }

      forward(input) {
        return F.threshold(input, this.threshold, this.value, this.inplace);
      }

      extra_repr() {
        let suffix = _inplace_suffix(this.inplace);
        return `threshold=${show(this.threshold, true)}, value=${show(this.value, true)}${suffix}`;
      }
    },

  _require_positive_margin: () =>
    function _require_positive_margin(name, margin) {
      if (margin <= 0) {
        throw new ValueError(`${name}: expected margin to be greater than 0, got ${show(margin, true)} instead`);
      }
    },

  /** max(0, d(anchor, positive) - d(anchor, negative) + margin) with the p-norm distance d. */
  TripletMarginLoss: ({ F, _Loss, _require_positive_margin }) =>
    class TripletMarginLoss extends _Loss {
      [MAKE]({ margin, p, eps, swap, size_average, reduce, reduction }) {
        super[MAKE]({ size_average, reduce, reduction });
        _require_positive_margin('TripletMarginLoss', margin);
        this.margin = margin;
        this.p = p;
        this.eps = eps;
        this.swap = swap;
      }

      forward(anchor, positive, negative) {
        return F.triplet_margin_loss(
          anchor,
          positive,
          negative,
          this.margin,
          this.p,
          this.eps,
          this.swap,
          null,
          null,
          this.reduction,
        );
      }
    },

  /** Splits dimension `dim` into the dimensions of `unflattened_size`, one of which may be -1. */
  Unflatten: ({ Module }) =>
    class Unflatten extends Module {
      [MAKE]({ dim, unflattened_size }) {
        if (!(Array.isArray(unflattened_size))) {
          throw new TypeError(`unflattened_size must be a tuple of ints, but found type ${typeName(unflattened_size)}`);
        }
        for (const [position, size] of unflattened_size.entries()) {
          if (!(Number.isInteger(size))) {
            throw new TypeError(`unflattened_size must be tuple of ints, but found element of type ${typeName(size)} at pos ${show(position)}`);
          }
        }
        this.dim = dim;
        this.unflattened_size = unflattened_size;
      }

      forward(input) {
        return input.unflatten(this.dim, this.unflattened_size);
      }

      extra_repr() {
        return `dim=${show(this.dim)}, unflattened_size=${show(this.unflattened_size)}`;
      }
    },

  /** Resizes the spatial dimensions, by `nn.functional.interpolate`. */
  Upsample: ({ F, Module }) =>
    class Upsample extends Module {
      [MAKE]({ size, scale_factor, mode, align_corners, recompute_scale_factor }) {
        this.name = this.constructor.name;
        this.size = size;
        if (Array.isArray(scale_factor)) {
          this.scale_factor = scale_factor.map((factor) => factor);
        } else {
          this.scale_factor = truth(scale_factor) ? scale_factor : null;
        }
        this.mode = mode;
        this.align_corners = align_corners;
        this.recompute_scale_factor = recompute_scale_factor;
      }

      forward(input) {
        return F.interpolate(
          input,
          this.size,
          this.scale_factor,
          this.mode,
          this.align_corners,
          this.recompute_scale_factor,
        );
      }

      extra_repr() {
        let by_scale = this.scale_factor !== null;
        let how = by_scale ? `scale_factor=${repr(this.scale_factor, true)}` : `size=${repr(this.size)}`;
        return `${how}, mode=${repr(this.mode)}`;
      }
    },

  /** `Upsample` of images with mode "bilinear" and aligned corners. */
  UpsamplingBilinear2d: ({ Upsample }) =>
    class UpsamplingBilinear2d extends Upsample {
      [MAKE]({ size, scale_factor }) {
        super[MAKE]({
          size,
          scale_factor,
          mode: 'bilinear',
          align_corners: true,
          recompute_scale_factor: null,
        });
      }
    },

  /** `Upsample` of images with mode "nearest". */
  UpsamplingNearest2d: ({ Upsample }) =>
    class UpsamplingNearest2d extends Upsample {
      [MAKE]({ size, scale_factor }) {
        super[MAKE]({
          size,
          scale_factor,
          mode: 'nearest',
          align_corners: null,
          recompute_scale_factor: null,
        });
      }
    },

  _ZeroPad: ({ _ConstantPad }) =>
    class _ZeroPad extends _ConstantPad {
      [MAKE]({ padding }) {
        super[MAKE]({ padding, value: 0.0 });
      }

      extra_repr() {
        return show(this.padding);
      }
    },

  /** Pads the last dimension with zeros. */
  ZeroPad1d: ({ _ZeroPad }) =>
    class ZeroPad1d extends _ZeroPad {
      static {
        this.prototype._n_dims = 1;
      }
    },

  /** Pads the last 2 dimensions with zeros. */
  ZeroPad2d: ({ _ZeroPad }) =>
    class ZeroPad2d extends _ZeroPad {
      static {
        this.prototype._n_dims = 2;
      }
    },

  /** Pads the last 3 dimensions with zeros. */
  ZeroPad3d: ({ _ZeroPad }) =>
    class ZeroPad3d extends _ZeroPad {
      static {
        this.prototype._n_dims = 3;
      }
    },
};

/** Layers, created and initialised as PyTorch's, with random numbers drawn in the same order. */
import { atMost } from '../arguments.js';
import { errorClass, ValueError } from '../engine.js';
import { SELF } from './members.js';

/** @import { Given } from '../arguments.js' @import { Parameter, Tensor } from '../tensor.js' @import { Module } from './module.js'
 * @import { NewAvgPool2d, NewConv2d, NewCrossEntropyLoss, NewDropout, NewEmbedding, NewFlatten, NewGELU, NewLayerNorm, NewLinear,
 *   NewMSELoss, NewMaxPool2d, NewReLU, NewSiLU, NewSigmoid, NewSoftmax, NewTanh } from '../signatures.js' */
/** @template Own @typedef {{forward(x: Tensor): Tensor} & Module & Own} Layer a module of one tensor, with its fields */
/** @typedef {{forward(input: Tensor, target: Tensor): Tensor} & Module} Loss */
/** @typedef {{weight: Parameter, bias: Parameter | null}} Weights */
/** @typedef {{weight: Parameter, num_embeddings: number, embedding_dim: number}} Table */
/** @typedef {{padding_idx?: number | null, max_norm?: number | null, norm_type?: number, scale_grad_by_freq?: boolean}} LookupOptions */

const PADDINGS = ['same', 'valid'];
const PADDING_MODES = ['zeros', 'reflect', 'replicate', 'circular'];
const quoteNames = (names) => names.map((name) => `'${name}'`).join(', ');
const AssertionError = errorClass('AssertionError');

/** A number for each of two dimensions. */
const pair = (value) => (Array.isArray(value) ? value : [value, value]);

function checkConv2d({ in_channels, out_channels, groups, padding, padding_mode, stride }) {
  if (groups <= 0) throw new ValueError('groups must be a positive integer');
  if (in_channels % groups) throw new ValueError('in_channels must be divisible by groups');
  if (out_channels % groups) throw new ValueError('out_channels must be divisible by groups');
  if (typeof padding === 'string' && !PADDINGS.includes(padding))
    throw new ValueError(
      `Invalid padding string '${padding}', should be one of {${quoteNames(PADDINGS)}}`,
    );
  if (padding === 'same' && pair(stride).some((step) => step !== 1))
    throw new ValueError("padding='same' is not supported for strided convolutions");
  if (!PADDING_MODES.includes(padding_mode))
    throw new ValueError(
      `padding_mode must be one of {${quoteNames(PADDING_MODES)}}, but got padding_mode='${padding_mode}'`,
    );
}

/** A convolution's padding in the order of `pad`: before and after each dimension, the last dimension first. */
const paddingAround = ({ kernel_size, padding, dilation }) =>
  [1, 0].flatMap((dim) => {
    if (padding === 'valid') return [0, 0];
    if (padding !== 'same') return [pair(padding)[dim], pair(padding)[dim]];
    const total = pair(dilation)[dim] * (kernel_size[dim] - 1);
    return [Math.floor(total / 2), Math.ceil(total / 2)];
  });

/** A maker of classes of layers. */
const layerMaker =
  (Module, take) =>
  /** A class of layers. `make` sets up a new layer from its arguments (by default it stores them); `forward` computes its output. */
  (name, forward, make = Object.assign) =>
    ({
      [name]: class extends Module {
        constructor(...args) {
          super();
          make(this, take(name, args));
        }

        forward(...inputs) {
          atMost(forward.length - 1, 'forward', inputs);
          return forward(this[SELF].fields, ...inputs); // without the proxy, which is slower
        }
      },
    })[name];

/** What sets up layers with weights and losses. */
function makeSetUps({ Parameter, spaces }, engine, autograd) {
  const f = spaces.torch;
  /** Adds a weight of these sizes and optionally a bias to a module: uniform on (-b, b), b = 1 / sqrt(fan_in), computed in the
   * steps of PyTorch's formula. */
  function weigh(module, [n_out, ...n_in], hasBias, factory) {
    const fan = n_in.reduce((a, b) => a * b);
    const root = Math.sqrt(fan);
    const drawUniform = (sizes, bound) => {
      const made = f.empty(sizes, factory);
      return new Parameter(made.numel() ? made.uniform_(0 - bound, bound) : made);
    };
    if (!fan || !n_out) engine.onWarning('Initializing zero-element tensors is a no-op');
    module.weight = drawUniform(
      [n_out, ...n_in],
      Math.sqrt(3) * (Math.sqrt(2 / (1 + Math.sqrt(5) ** 2)) / root),
    );
    module.register_parameter('bias', hasBias ? drawUniform([n_out], fan ? 1 / root : 0) : null);
  }

  /** Sets up a loss: the weight becomes a buffer, and the deprecated flags set `reduction`. */
  function keepLoss(own, { weight, size_average, reduce, ...options }) {
    if (weight !== undefined) own.register_buffer('weight', weight);
    if (size_average !== null || reduce !== null) {
      options.reduction = !(reduce ?? true) ? 'none' : (size_average ?? true) ? 'mean' : 'sum';
      engine.onWarning(
        `size_average and reduce args will be deprecated, please use reduction='${options.reduction}' instead.`,
      );
    }
    Object.assign(own, options);
  }

  function makeTable(own, { _weight, _freeze, device, dtype, ...options }) {
    const { num_embeddings, embedding_dim, padding_idx } = options;
    if (
      padding_idx !== null &&
      padding_idx !== 0 &&
      !(-num_embeddings <= padding_idx && padding_idx < num_embeddings)
    )
      throw new AssertionError('Padding_idx must be within num_embeddings');
    if (_weight && String(_weight.shape) !== String([num_embeddings, embedding_dim]))
      throw new AssertionError('Shape of weight does not match num_embeddings and embedding_dim');
    Object.assign(own, options, padding_idx < 0 && { padding_idx: padding_idx + num_embeddings });
    own.weight = new Parameter(
      _weight ?? f.empty([num_embeddings, embedding_dim], { device, dtype }).normal_(),
      !_freeze,
    );
    if (!_weight && padding_idx !== null)
      autograd.no_grad(() => own.weight.index(own.padding_idx).fill_(0));
  }

  return { keepLoss, makeTable, weigh };
}

/** Layers with weights. */
function makeWeighted({ F, f, layer, Parameter, take }, { makeTable, weigh }) {
  const Embedding = layer(
    'Embedding',
    (own, x) =>
      F.embedding(
        x,
        own.weight,
        own.padding_idx,
        own.max_norm,
        own.norm_type,
        own.scale_grad_by_freq,
        own.sparse,
      ),
    makeTable,
  );

  return {
    /** @type {NewLinear<Layer<Weights & {in_features: number, out_features: number}>>} */
    Linear: layer(
      'Linear',
      (own, x) => F.linear(x, own.weight, own.bias),
      (own, { in_features, out_features, bias, ...factory }) => {
        Object.assign(own, { in_features, out_features });
        weigh(own, [out_features, in_features], bias, factory);
      },
    ),
    /** @type {NewConv2d<Layer<Weights>>} */
    Conv2d: layer(
      'Conv2d',
      (own, x) => {
        const { weight, bias, stride, padding, dilation, groups, padding_mode } = own;
        if (padding_mode === 'zeros')
          return F.conv2d(x, weight, bias, stride, padding, dilation, groups);
        return F.conv2d(
          F.pad(x, paddingAround(own), padding_mode),
          weight,
          bias,
          stride,
          0,
          dilation,
          groups,
        );
      },
      (own, { bias, device, dtype, ...options }) => {
        checkConv2d(options);
        Object.assign(own, options, { kernel_size: pair(options.kernel_size) });
        weigh(own, [own.out_channels, own.in_channels / own.groups, ...own.kernel_size], bias, {
          device,
          dtype,
        });
      },
    ),
    /** @type {NewEmbedding<Layer<Table>> & {from_pretrained(embeddings: Tensor, ...rest: (Given<LookupOptions & {freeze?: boolean}>)[]): Layer<Table>}} */
    Embedding: Object.assign(Embedding, {
      from_pretrained(...args) {
        const { embeddings, freeze, ...options } = take('Embedding.from_pretrained', args);
        if (embeddings.ndim !== 2)
          throw new AssertionError('Embeddings parameter is expected to be 2-dimensional');
        const [num_embeddings, embedding_dim] = embeddings.shape;
        return new this({
          num_embeddings,
          embedding_dim,
          ...options,
          _weight: embeddings,
          _freeze: freeze,
        });
      },
    }),
    /** @type {NewLayerNorm<Layer<{weight: Parameter | null, bias: Parameter | null, normalized_shape: number[], eps: number}>>} */
    LayerNorm: layer(
      'LayerNorm',
      (own, x) => F.layer_norm(x, own.normalized_shape, own.weight, own.bias, own.eps),
      (own, { normalized_shape, eps, elementwise_affine, bias, ...factory }) => {
        const sizes = [normalized_shape].flat();
        Object.assign(own, { normalized_shape: sizes, eps, elementwise_affine });
        own.register_parameter(
          'weight',
          elementwise_affine ? new Parameter(f.ones(sizes, factory)) : null,
        );
        own.register_parameter(
          'bias',
          elementwise_affine && bias ? new Parameter(f.zeros(sizes, factory)) : null,
        );
      },
    ),
  };
}

/** Layers without weights, and losses. */
const makeUnweighted = ({ F, f, layer, keepLoss }) => ({
  /** @type {NewDropout<Layer<{p: number}>>} */
  Dropout: layer(
    'Dropout',
    ({ p, training, inplace }, x) => F.dropout(x, p, training, inplace),
    (own, options) => {
      if (!(options.p >= 0 && options.p <= 1))
        throw new ValueError(`dropout probability has to be between 0 and 1, but got ${options.p}`);
      Object.assign(own, options);
    },
  ),
  /** @type {NewReLU<Layer<{}>>} */ ReLU: layer('ReLU', ({ inplace }, x) => F.relu(x, inplace)),
  /** @type {NewTanh<Layer<{}>>} */ Tanh: layer('Tanh', (_, x) => f.tanh(x)),
  /** @type {NewSigmoid<Layer<{}>>} */ Sigmoid: layer('Sigmoid', (_, x) => f.sigmoid(x)),
  /** @type {NewSiLU<Layer<{}>>} */ SiLU: layer('SiLU', ({ inplace }, x) => F.silu(x, inplace)),
  /** @type {NewGELU<Layer<{}>>} */ GELU: layer('GELU', ({ approximate }, x) =>
    F.gelu(x, { approximate }),
  ),
  /** @type {NewSoftmax<Layer<{}>>} */ Softmax: layer('Softmax', ({ dim }, x) => F.softmax(x, dim)),
  /** @type {NewMaxPool2d<{forward(x: Tensor): any} & Module>} */
  MaxPool2d: layer(
    'MaxPool2d',
    ({ kernel_size, stride, padding, dilation, return_indices, ceil_mode }, x) =>
      F.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices),
  ),
  /** @type {NewAvgPool2d<Layer<{}>>} */
  AvgPool2d: layer(
    'AvgPool2d',
    ({ kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override }, x) =>
      F.avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override),
  ),
  /** @type {NewFlatten<Layer<{}>>} */ Flatten: layer('Flatten', ({ start_dim, end_dim }, x) =>
    f.flatten(x, start_dim, end_dim),
  ),
  /** @type {NewMSELoss<Loss>} */ MSELoss: layer(
    'MSELoss',
    ({ reduction }, x, y) => F.mse_loss(x, y, null, null, reduction),
    keepLoss,
  ),
  /** @type {NewCrossEntropyLoss<Loss>} */
  CrossEntropyLoss: layer(
    'CrossEntropyLoss',
    ({ weight, ignore_index, reduction, label_smoothing }, x, y) =>
      F.cross_entropy(x, y, weight, null, ignore_index, null, reduction, label_smoothing),
    keepLoss,
  ),
});

/** Classes of layers. */
export function makeLayers(Module, F, library, engine, autograd) {
  const { Parameter, spaces, take } = library;
  const common = { F, f: spaces.torch, layer: layerMaker(Module, take), Parameter, take };
  const setUps = makeSetUps(library, engine, autograd);
  return { ...makeWeighted(common, setUps), ...makeUnweighted({ ...common, ...setUps }) };
}

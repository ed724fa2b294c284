/** Modules: layers with parameters, made and initialised as PyTorch's, in the same order of draws. */

/** @typedef {import('./tensor.js').Tensor} Tensor */
/** @typedef {number | readonly number[]} Sizes one number for all dimensions, or one a dimension */
/** @template Own @typedef {{forward(x: Tensor): Tensor} & Module & Own} Layer a module of one tensor, with what it keeps */
/** @typedef {new () => Layer<{}>} Plain a layer without options */
/** @typedef {{weight: Tensor, bias: Tensor | null}} Weights */
/** @typedef {{stride?: Sizes, padding?: Sizes | string, dilation?: Sizes, groups?: number, bias?: boolean}} ConvOptions */

/** torch.nn over a library of tensors. */
export function makeNn({ Tensor, spaces, outside }, autograd) {
  const f = spaces.f;
  /** Functions of layers and losses; PyTorch has most of torch's functions there too.
   * @type {Functional & Without<Functions, keyof Functional>} */
  const F = { ...f, ...spaces.n };

  /** A tensor that a module learns. @param {Tensor} tensor @returns {Tensor} */
  const Parameter = (tensor) => outside(() => tensor.detach().requires_grad_());

  /** The modules that a module has, with the names of its fields. */
  const layersOf = (module) => Object.entries(module).filter(([, child]) => child instanceof Module);

  /** Base of all layers: names its parameters, buffers and modules by its fields. */
  class Module {
    training = true;

    /** What the layer makes of its inputs; each kind of layer has its own. @param {...any} inputs @returns {any} */
    forward() { throw new Error(`Module [${this.constructor.name}] is missing the required "forward" function`); }
    /** Runs the layer. @param {...any} args @returns {any} */
    call(...args) { return this.forward(...args); }

    /** [name, module], depth first, this one included. @param {string} [prefix] @returns {IterableIterator<[string, Module]>} */
    *named_modules(prefix = '') {
      yield [prefix, this];
      for (const [name, child] of layersOf(this)) yield* child.named_modules(prefix ? `${prefix}.${name}` : name);
    }

    /** [name, tensor]: those that are learned, those that are not, or all.
     * @param {boolean} [learned] @returns {IterableIterator<[string, Tensor]>} */
    *named_tensors(learned) {
      for (const [prefix, module] of this.named_modules())
        for (const [name, value] of Object.entries(module))
          if (value instanceof Tensor && (learned ?? value.requires_grad) === value.requires_grad) yield [prefix ? `${prefix}.${name}` : name, value];
    }

    /** @returns {[string, Tensor][]} */
    named_parameters() { return [...this.named_tensors(true)]; }
    /** @returns {Tensor[]} */
    parameters() { return this.named_parameters().map(([, value]) => value); }
    zero_grad() { for (const parameter of this.parameters()) parameter.grad = null; }
    /** Parameters and buffers by name; they share memory with the module's. @returns {Record<string, Tensor>} */
    state_dict() { return Object.fromEntries([...this.named_tensors()].map(([name, value]) => [name, value.detach()])); }

    /** Copies parameters and buffers from a state dict with the same names. @param {Record<string, Tensor>} state */
    load_state_dict(state) {
      const own = new Map(this.named_tensors());
      const missing = [...own.keys()].filter((name) => !(name in state));
      const unexpected = Object.keys(state).filter((name) => !own.has(name));
      if (missing.length || unexpected.length)
        throw new Error(`Error(s) in loading state_dict: missing [${missing}], unexpected [${unexpected}]`);
      autograd.no_grad(() => own.forEach((value, name) => value.copy_(state[name])));
    }

    /** @returns {this} */
    train(mode = true) {
      for (const [, module] of this.named_modules()) module.training = mode;
      return this;
    }

    /** @returns {this} */
    eval() { return this.train(false); }

    /** The layers by name. @returns {string} */
    toString() {
      const rows = layersOf(this).map(([name, child]) => `  (${name}): ${child}`.replaceAll('\n', '\n  '));
      return `${this.constructor.name}(${rows.length ? `\n${rows.join('\n')}\n` : ''})`;
    }
  }

  /** A weight of these sizes and perhaps a bias: uniform on (-b, b), b = 1 / sqrt(fan_in), by the steps of PyTorch's formula. */
  function weights([n_out, ...n_in], hasBias) {
    const root = Math.sqrt(n_in.reduce((a, b) => a * b));
    const drawn = (sizes, bound) => Parameter(f.empty(sizes).uniform_(-bound, bound));
    const weight = drawn([n_out, ...n_in], Math.sqrt(3) * (Math.sqrt(2 / (1 + Math.sqrt(5) ** 2)) / root));
    return { weight, bias: hasBias ? drawn([n_out], 1 / root) : null };
  }

  class Sequential extends Module {
    /** @param {...Module} layers */
    constructor(...layers) {
      super();
      Object.assign(this, layers);
    }

    /** @param {Tensor} x @returns {Tensor} */
    forward(x) { return layersOf(this).reduce((y, [, layer]) => layer.call(y), x); }
  }

  /** A kind of layer: what it keeps, made of the constructor's arguments, and what it makes of itself and its inputs. */
  const layer = (name, make, forward) =>
    ({ [name]: class extends Module {
      constructor(...args) {
        super();
        Object.assign(this, make(...args));
      }

      forward(...inputs) { return forward(this, ...inputs); }
    } })[name];
  /** A function of the table that is given the inputs and then the constructor's arguments. */
  const plain = (name, fn) => layer(name, (...args) => ({ args }), ({ args }, ...inputs) => fn(...inputs, ...args));

  return {
    Module, Parameter, Sequential,
    /** @type {new (in_features: number, out_features: number, options?: {bias?: boolean}) => Layer<Weights>} */
    Linear: layer('Linear', (n_in, n_out, { bias = true } = {}) => weights([n_out, n_in], bias), (own, x) => F.linear(x, own.weight, own.bias)),
    /** @type {new (in_channels: number, out_channels: number, kernel_size: Sizes, options?: ConvOptions) => Layer<Weights>} */
    Conv2d: layer('Conv2d', (n_in, n_out, kernel_size, { bias = true, groups = 1, ...options } = {}) => {
      const kernel = Array.isArray(kernel_size) ? kernel_size : [kernel_size, kernel_size];
      return { ...weights([n_out, n_in / groups, ...kernel], bias), options: { stride: 1, padding: 0, dilation: 1, groups, ...options } };
    }, (own, x) => F.conv2d(x, own.weight, own.bias, own.options)),
    /** @type {new (num_embeddings: number, embedding_dim: number) => Layer<{weight: Tensor}>} */
    Embedding: layer('Embedding', (rows, width) => ({ weight: Parameter(f.randn([rows, width])) }), (own, x) => F.embedding(x, own.weight)),
    /** @type {new (normalized_shape: Sizes, options?: {eps?: number}) => Layer<Weights & {normalized_shape: number[], eps: number}>} */
    LayerNorm: layer('LayerNorm', (sizes, { eps = 1e-5 } = {}) =>
      ({ normalized_shape: [sizes].flat(), eps, weight: Parameter(f.ones(sizes)), bias: Parameter(f.zeros(sizes)) }),
    (own, x) => F.layer_norm(x, own.normalized_shape, own.weight, own.bias, own.eps)),
    /** @type {new (p?: number) => Layer<{p: number}>} */
    Dropout: layer('Dropout', (p = 0.5) => ({ p }), (own, x) => F.dropout(x, own.p, own.training)),
    /** @type {Plain} */ ReLU: plain('ReLU', F.relu),
    /** @type {Plain} */ Tanh: plain('Tanh', F.tanh),
    /** @type {Plain} */ Sigmoid: plain('Sigmoid', F.sigmoid),
    /** @type {Plain} */ SiLU: plain('SiLU', F.silu),
    /** @type {new (options?: {approximate?: 'none' | 'tanh'}) => Module} */ GELU: plain('GELU', F.gelu),
    /** @type {new (dim: number | {dim: number}) => Module} */ Softmax: plain('Softmax', F.softmax),
    /** @type {new (kernel_size: Sizes, options?: {stride?: Sizes, padding?: Sizes, dilation?: Sizes, ceil_mode?: boolean}) => Module} */
    MaxPool2d: plain('MaxPool2d', F.max_pool2d),
    /** @type {new (kernel_size: Sizes, options?: {stride?: Sizes, padding?: Sizes, ceil_mode?: boolean, count_include_pad?: boolean}) => Module} */
    AvgPool2d: plain('AvgPool2d', F.avg_pool2d),
    /** @type {new (start_dim?: number, end_dim?: number) => Module} */
    Flatten: plain('Flatten', (x, start = 1, end = -1) => f.flatten(x, start, end)),
    /** @type {new (options?: {reduction?: string}) => Module} */ MSELoss: plain('MSELoss', F.mse_loss),
    /** @type {new (options?: {weight?: Tensor | null, ignore_index?: number, reduction?: string, label_smoothing?: number}) => Module} */
    CrossEntropyLoss: plain('CrossEntropyLoss', F.cross_entropy),
    functional: F,
  };
}

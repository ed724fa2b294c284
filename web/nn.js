/** Modules: layers with parameters, made and initialised as PyTorch's, in the same order of draws. */

/** @typedef {import('./tensor.js').Tensor} Tensor */
/** @typedef {number | readonly number[]} Sizes one number for all dimensions, or one a dimension */
/** @typedef {new () => Module} Plain a layer without options */

/** torch.nn over a library of tensors. */
export function makeNn({ Tensor, spaces, outside }, autograd) {
  const f = spaces.f;
  /** Functions of layers and losses; PyTorch has most of torch's functions there too.
   * @type {Functional & Without<Functions, keyof Functional>} */
  const F = { ...f, ...spaces.n };

  /** A tensor that a module learns. @param {Tensor} tensor @returns {Tensor} */
  const Parameter = (tensor) => outside(() => tensor.detach().requires_grad_());

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
      for (const [name, child] of Object.entries(this))
        if (child instanceof Module) yield* child.named_modules(prefix ? `${prefix}.${name}` : name);
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
      const layers = Object.entries(this).filter(([, child]) => child instanceof Module);
      const rows = layers.map(([name, child]) => `  (${name}): ${child}`.replaceAll('\n', '\n  '));
      return `${this.constructor.name}(${rows.length ? `\n${rows.join('\n')}\n` : ''})`;
    }
  }

  /** A layer with a weight of these sizes, outputs first, and perhaps a bias: uniform on (-b, b), b = 1 / sqrt(fan_in), by the
   * steps of PyTorch's formula. */
  class Weighted extends Module {
    /** @private */
    constructor(sizes, bias) {
      super();
      this.weight = Parameter(f.empty(sizes));
      this.bias = bias ? Parameter(f.empty([sizes[0]])) : null;
      const fanIn = this.weight.numel() / sizes[0];
      const bound = Math.sqrt(3) * (Math.sqrt(2 / (1 + Math.sqrt(5) ** 2)) / Math.sqrt(fanIn));
      autograd.no_grad(() => {
        this.weight.uniform_(-bound, bound);
        this.bias?.uniform_(-1 / Math.sqrt(fanIn), 1 / Math.sqrt(fanIn));
      });
    }
  }

  class Linear extends Weighted {
    /** @param {number} in_features @param {number} out_features @param {{bias?: boolean}} [options] */
    constructor(in_features, out_features, { bias = true } = {}) { super([out_features, in_features], bias); }
    /** @param {Tensor} x @returns {Tensor} */
    forward(x) { return F.linear(x, this.weight, this.bias); }
  }

  class Conv2d extends Weighted {
    /** @param {number} in_channels @param {number} out_channels @param {Sizes} kernel_size
     * @param {{stride?: Sizes, padding?: Sizes | string, dilation?: Sizes, groups?: number, bias?: boolean}} [options] */
    constructor(in_channels, out_channels, kernel_size, { stride = 1, padding = 0, dilation = 1, groups = 1, bias = true } = {}) {
      const [h, w] = Array.isArray(kernel_size) ? kernel_size : [kernel_size, kernel_size];
      super([out_channels, in_channels / groups, h, w], bias);
      this.options = { stride, padding, dilation, groups };
    }

    /** @param {Tensor} x @returns {Tensor} */
    forward(x) { return F.conv2d(x, this.weight, this.bias, this.options); }
  }

  class Embedding extends Module {
    /** @param {number} num_embeddings @param {number} embedding_dim */
    constructor(num_embeddings, embedding_dim) {
      super();
      this.weight = Parameter(f.empty([num_embeddings, embedding_dim]));
      autograd.no_grad(() => this.weight.normal_());
    }

    /** @param {Tensor} x @returns {Tensor} */
    forward(x) { return F.embedding(x, this.weight); }
  }

  class LayerNorm extends Module {
    /** @param {Sizes} normalized_shape @param {{eps?: number}} [options] */
    constructor(normalized_shape, { eps = 1e-5 } = {}) {
      super();
      this.normalized_shape = [normalized_shape].flat();
      this.eps = eps;
      this.weight = Parameter(f.ones(this.normalized_shape));
      this.bias = Parameter(f.zeros(this.normalized_shape));
    }

    /** @param {Tensor} x @returns {Tensor} */
    forward(x) { return F.layer_norm(x, this.normalized_shape, this.weight, this.bias, this.eps); }
  }

  class Dropout extends Module {
    constructor(p = 0.5) {
      super();
      this.p = p;
    }

    /** @param {Tensor} x @returns {Tensor} */
    forward(x) { return F.dropout(x, this.p, this.training); }
  }

  class Sequential extends Module {
    /** @param {...Module} layers */
    constructor(...layers) {
      super();
      layers.forEach((layer, i) => { this[i] = layer; });
    }

    /** @param {Tensor} x @returns {Tensor} */
    forward(x) {
      let y = x;
      for (const layer of Object.values(this)) if (layer instanceof Module) y = layer.call(y);
      return y;
    }
  }

  /** A layer without parameters: a function of the table, given the inputs and then the layer's own arguments. */
  const plain = (name, fn) =>
    ({ [name]: class extends Module {
      constructor(...args) {
        super();
        this.args = args;
      }

      forward(...inputs) { return fn(...inputs, ...this.args); }
    } })[name];

  return {
    Module, Parameter, Linear, Conv2d, Embedding, LayerNorm, Dropout, Sequential,
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

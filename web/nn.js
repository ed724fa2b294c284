/** Modules: layers with parameters, created and initialised as PyTorch's, with random numbers drawn in the same order.
 *
 * Arguments are those of Python's layers, in signatures.js. A module registers the parameters and modules that are assigned to its
 * fields; a registered name takes no value of another kind. */
import { atMost, bind, isOptions, typeName } from './arguments.js';
import { ENGINE, errorClass, RuntimeError, ValueError } from './engine.js';

/** @import { Given } from './arguments.js' @import { Parameter, Tensor } from './tensor.js'
 * @import { NewAvgPool2d, NewConv2d, NewCrossEntropyLoss, NewDropout, NewEmbedding, NewFlatten, NewGELU, NewLayerNorm, NewLinear,
 *   NewMSELoss, NewMaxPool2d, NewParameter, NewReLU, NewSiLU, NewSigmoid, NewSoftmax, NewTanh } from './signatures.js' */
/** @typedef {number | readonly number[]} Sizes a number for all dimensions, or one for each */
/** @template Own @typedef {{forward(x: Tensor): Tensor} & Module & Own} Layer a module of one tensor, with its fields */
/** @typedef {{forward(input: Tensor, target: Tensor): Tensor} & Module} Loss */
/** @typedef {{weight: Parameter, bias: Parameter | null}} Weights */
/** @typedef {{weight: Parameter, num_embeddings: number, embedding_dim: number}} Table */
/** @typedef {{padding_idx?: number | null, max_norm?: number | null, norm_type?: number, scale_grad_by_freq?: boolean}} LookupOptions */
/** @typedef {Record<string, Tensor>} StateDict */
/** @typedef {Tensor | null} Maybe */
/** @typedef {{training?: boolean, key_padding_mask?: Maybe, need_weights?: boolean, attn_mask?: Maybe, use_separate_proj_weight?: boolean,
 *   q_proj_weight?: Maybe, k_proj_weight?: Maybe, v_proj_weight?: Maybe, static_k?: Maybe, static_v?: Maybe,
 *   average_attn_weights?: boolean, is_causal?: boolean}} AttentionOptions */
/** @typedef {{multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: number, num_heads: number,
 *   in_proj_weight: Maybe, in_proj_bias: Maybe, bias_k: Maybe, bias_v: Maybe, add_zero_attn: boolean, dropout_p: number,
 *   out_proj_weight: Tensor, out_proj_bias: Maybe, ...rest: Given<AttentionOptions>[]): [Tensor, Maybe]}} Attention */
/** @typedef {{prefix?: string, recurse?: boolean, remove_duplicate?: boolean}} WalkOptions */
/** @typedef {{missing_keys: string[], unexpected_keys: string[]}} IncompatibleKeys */

const PARAMETER = 'parameter',
  BUFFER = 'buffer',
  TRANSIENT = 'buffer that is not saved',
  MODULE = 'module';
/** The key of a module's object without its proxy, and of the kinds of its registered names, in order. */
const SELF = Symbol('self');
const PADDINGS = ['same', 'valid'];
const PADDING_MODES = ['zeros', 'reflect', 'replicate', 'circular'];
const quoteNames = (names) => names.map((name) => `'${name}'`).join(', ');
const KeyError = errorClass('KeyError');
const AssertionError = errorClass('AssertionError');

/** torch.nn over a library of tensors. */
export function makeNn({ C, isTensor, Parameter, spaces, take }, engine, autograd) {
  const f = spaces.torch;
  /** Functions of layers and losses; as in PyTorch, with most of torch's functions.
   * @type {Functional & Attention & Without<Functions, keyof Functional>} */
  const F = { ...f, ...spaces.nn, multi_head_attention_forward };

  /** Multi-head attention as a function of its weights. It has more arguments than a call of the engine can take.
   * @param {any[]} given the arguments of Python's function
   * @returns {[Tensor, Tensor | null]} the output, and the attention weights if requested */
  function multi_head_attention_forward(...given) {
    const {
      embed_dim_to_check,
      num_heads,
      add_zero_attn,
      dropout_p,
      training,
      need_weights,
      use_separate_proj_weight,
      average_attn_weights,
      is_causal,
      ...tensors
    } = take('multi_head_attention_forward', given);
    const [output, weights = null] = C._multi_head_attention_forward(
      Object.values(tensors),
      embed_dim_to_check,
      num_heads,
      add_zero_attn,
      dropout_p,
      training,
      need_weights,
      use_separate_proj_weight,
      average_attn_weights,
      is_causal,
    );
    return [output, weights];
  }

  const typeText = (value) => (isTensor(value) ? value.type() : typeName(value));
  const size = (tensor) => `torch.Size([${tensor.shape.join(', ')}])`;
  const isModule = (value) => {
    if (value instanceof Module) return true;
    engine.refuseOthers(value);
    return false;
  };

  /** The kind of a name after an assignment, given its kind before; undefined for an ordinary attribute. */
  function kindOf(name, value, was) {
    if (value instanceof Parameter) {
      if (value.grad_fn)
        throw new ValueError(
          `Cannot assign non-leaf Tensor to parameter '${name}'. Model parameters must be created explicitly. To express ` +
            `'${name}' as a function of another Tensor, compute the value in the forward() method.`,
        );
      return PARAMETER;
    }
    const is = {
      [MODULE]: isModule(value),
      [BUFFER]: isTensor(value),
      [TRANSIENT]: isTensor(value),
    };
    if (was !== PARAMETER && is[MODULE]) return MODULE;
    if (was === undefined || value === null || value === undefined || is[was]) return was;
    const [what, wanted] = {
      [PARAMETER]: ['parameter', 'Parameter'],
      [MODULE]: ['child module', 'Module'],
    }[was] ?? ['buffer', 'Buffer, torch.Tensor'];
    throw new TypeError(
      `cannot assign '${typeText(value)}' as ${what} '${name}' (torch.nn.${wanted} or None expected)`,
    );
  }

  /** Sets the kind of a name; a name whose kind changes moves to the end. */
  function note(kinds, name, kind) {
    if (kinds.get(name) === kind) return;
    kinds.delete(name);
    if (kind !== undefined) kinds.set(name, kind);
  }

  /** Handles every assignment to a module's fields, in class bodies too. */
  const registering = {
    defineProperty(module, name, descriptor) {
      const { kinds } = module[SELF];
      if (typeof name === 'string' && 'value' in descriptor)
        note(kinds, name, kindOf(name, descriptor.value, kinds.get(name)));
      return Reflect.defineProperty(module, name, descriptor);
    },
    deleteProperty(module, name) {
      module[SELF].kinds.delete(name);
      return Reflect.deleteProperty(module, name);
    },
  };

  /** [name, value] of a module's own members of some kinds, without nulls. */
  function members(module, ...wanted) {
    const { fields, kinds } = module[SELF];
    const found = [];
    for (const [name, kind] of kinds)
      if (wanted.includes(kind) && (fields[name] ?? null) !== null)
        found.push([name, fields[name]]);
    return found;
  }

  /** The saved members in PyTorch's order: parameters, then buffers. */
  const savedMembers = (module) => [...members(module, PARAMETER), ...members(module, BUFFER)];
  const joinPath = (prefix, name) => (prefix ? `${prefix}.${name}` : name);

  /** [name, module] of a tree, parents first, without modules in `seen`; with `isSet`, each module is added to `seen`, and so comes
   * once. */
  function* walk(module, prefix, seen, isSet = true) {
    if (seen.has(module)) return;
    if (isSet) seen.add(module);
    yield [prefix, module];
    for (const [name, child] of members(module, MODULE))
      yield* walk(child, joinPath(prefix, name), seen, isSet);
  }

  /** [name, tensor] of all tensors of some kinds, each once if remove_duplicate. */
  function tensorsOf(module, kinds, { prefix, recurse, remove_duplicate }) {
    const owners = recurse ? walk(module, prefix, new Set(), remove_duplicate) : [[prefix, module]];
    const seen = new Set();
    const found = [];
    for (const [path, owner] of owners) {
      for (const [name, tensor] of members(owner, ...kinds)) {
        if (seen.has(tensor)) continue;
        if (remove_duplicate) seen.add(tensor);
        found.push([joinPath(path, name), tensor]);
      }
    }
    return found;
  }

  function checkNewName(module, kind, name, kinds) {
    if (name.includes('.'))
      throw new KeyError(
        `${kind} name can't contain "."${kind === MODULE ? `, got: ${name}` : ''}`,
      );
    if (name === '') throw new KeyError(`${kind} name can't be empty string ""`);
    if (name in module && !kinds.includes(module[SELF].kinds.get(name)))
      throw new KeyError(`attribute '${name}' already exists`);
  }

  /** Registers a field of a kind; the value may be null. */
  function register(module, name, kind, value) {
    note(module[SELF].kinds, name, kind);
    module[name] = value;
  }

  /** Base of all layers and models: subclass it, assign parameters and layers to its fields, add `forward`. */
  class Module {
    /** @type {boolean} */
    training = true;

    constructor() {
      if (arguments.length)
        throw new TypeError(
          `${new.target.name}() takes no arguments, but ${arguments.length} were given`,
        );
      Object.defineProperty(this, SELF, { value: { fields: this, kinds: new Map() } });
      return new Proxy(this, registering);
    }

    /** Computes the layer's outputs; overridden by each kind of layer. @param {...any} inputs @returns {any} */
    forward() {
      throw new (errorClass('NotImplementedError'))(
        `Module [${this.constructor.name}] is missing the required "forward" function`,
      );
    }
    /** Runs the layer. @param {...any} args @returns {any} */
    call(...args) {
      return this.forward(...args);
    }

    /** Adds a parameter; null registers its absence.
     * @param {string} name @param {Parameter | null} param @returns {void} */
    register_parameter(name, param) {
      take('Module.register_parameter', [...arguments]);
      checkNewName(this, PARAMETER, name, [PARAMETER]);
      if (param !== null && !(param instanceof Parameter))
        throw new TypeError(
          `cannot assign '${typeText(param)}' object to parameter '${name}' (torch.nn.Parameter or None required)`,
        );
      kindOf(name, param);
      register(this, name, PARAMETER, param);
    }

    /** Adds a buffer: a tensor that is not learned, and is saved if `persistent`.
     * @param {string} name @param {Tensor | null} tensor @param {...Given<{persistent?: boolean}>} rest @returns {void} */
    register_buffer(name, tensor, ...rest) {
      const { persistent } = take('Module.register_buffer', [name, tensor, ...rest]);
      checkNewName(this, BUFFER, name, [BUFFER, TRANSIENT]);
      register(this, name, persistent ? BUFFER : TRANSIENT, tensor);
    }

    /** Adds a module under a name. @param {string} name @param {Module | null} module @returns {void} */
    add_module(name, module) {
      take('Module.add_module', [...arguments]);
      if (module !== null && !isModule(module))
        throw new TypeError(`${typeText(module)} is not a Module subclass`);
      checkNewName(this, MODULE, name, [MODULE]);
      register(this, name, MODULE, module);
    }

    /** Another name of `add_module`. @param {string} name @param {Module | null} module @returns {void} */
    register_module(name, module) {
      this.add_module(name, module);
    }

    /** [name, module] of this module and all below it, depth first, each once. @param {...(Set<Module> | string | boolean | null |
     * {memo?: Set<Module> | null, prefix?: string, remove_duplicate?: boolean})} args @returns {[string, Module][]} */
    named_modules(...args) {
      const { memo, prefix, remove_duplicate } = take('Module.named_modules', args);
      if (memo !== null && !(memo instanceof Set))
        throw new TypeError(
          `named_modules(): argument 'memo' (position 1) must be set, not ${typeName(memo)}`,
        );
      return [...walk(this, prefix, memo ?? new Set(), remove_duplicate)];
    }

    /** This module and all below it, parents first. @param {...Given<{remove_duplicate?: boolean}>} args @returns {Module[]} */
    modules(...args) {
      return this.named_modules(take('Module.modules', args)).map(([, module]) => module);
    }

    /** Each direct submodule once, with its name. @returns {[string, Module][]} */
    named_children() {
      const seen = new Set();
      return members(this, MODULE).filter(([, child]) => !seen.has(child) && seen.add(child));
    }

    /** Each direct submodule once. @returns {Module[]} */
    children() {
      return this.named_children().map(([, child]) => child);
    }

    /** Each parameter once, with its name, frozen ones too. @param {...Given<WalkOptions>} args @returns {[string, Parameter][]} */
    named_parameters(...args) {
      return tensorsOf(this, [PARAMETER], take('Module.named_parameters', args));
    }
    /** The parameters as an array, for an optimizer. @param {...Given<{recurse?: boolean}>} args @returns {Parameter[]} */
    parameters(...args) {
      return this.named_parameters(take('Module.parameters', args)).map(
        ([, parameter]) => parameter,
      );
    }
    /** Each buffer once, with its name, saved or not. @param {...Given<WalkOptions>} args @returns {[string, Tensor][]} */
    named_buffers(...args) {
      return tensorsOf(this, [BUFFER, TRANSIENT], take('Module.named_buffers', args));
    }
    /** Each buffer once. @param {...Given<{recurse?: boolean}>} args @returns {Tensor[]} */
    buffers(...args) {
      return this.named_buffers(take('Module.buffers', args)).map(([, buffer]) => buffer);
    }

    /** Sets `requires_grad` of every parameter: false freezes them. @param {...Given<{requires_grad?: boolean}>} args @returns {this} */
    requires_grad_(...args) {
      const { requires_grad } = take('Module.requires_grad_', args);
      for (const parameter of this.parameters()) parameter.requires_grad_(requires_grad);
      return this;
    }

    /** Drops every parameter's gradient, or fills it with zeros. @param {...Given<{set_to_none?: boolean}>} args @returns {void} */
    zero_grad(...args) {
      C._zero_grads(this.parameters(), take('Module.zero_grad', args).set_to_none);
    }

    /** Calls a function with every submodule, children first, then with this module. @param {(module: Module) => void} fn @returns
     * {this} */
    apply(fn) {
      for (const child of this.children()) child.apply(fn);
      fn(this);
      return this;
    }

    /** Parameters and buffers by name, those of a shared layer under each of its names. Unless `keep_vars` they are detached
     * tensors that share the module's memory. @param {{destination?: StateDict | null, prefix?: string, keep_vars?: boolean}}
     * [options]
     * @returns {StateDict} */
    state_dict(options = {}) {
      if (arguments.length > 1 || !isOptions(options))
        throw new TypeError('state_dict() takes no positional arguments: they are options');
      const { destination, prefix, keep_vars } = bind(
        'state_dict',
        { destination: null, prefix: '', keep_vars: false },
        [options],
      );
      const found = destination ?? {};
      for (const [path, module] of walk(this, '', new Set(), false))
        for (const [name, tensor] of savedMembers(module))
          found[prefix + joinPath(path, name)] = keep_vars ? tensor : tensor.detach();
      return found;
    }

    /** Copies the tensors of a state dict into the parameters and buffers of the same names. If `strict`, missing and unexpected
     * keys are errors. Different sizes always are; after an error nothing is copied. With `assign` the module takes the tensors
     * themselves. @param {StateDict | Map<string, Tensor>} state_dict @param {...Given<{strict?: boolean, assign?: boolean}>} rest
     * @returns {IncompatibleKeys} */
    load_state_dict(state_dict, ...rest) {
      if (!(state_dict instanceof Map) && !isOptions(state_dict))
        throw new TypeError(`Expected state_dict to be dict-like, got ${typeName(state_dict)}.`);
      const { strict, assign } = bind('load_state_dict', { strict: true, assign: false }, rest);
      const given = new Map(state_dict instanceof Map ? state_dict : Object.entries(state_dict));
      const report = { missing_keys: [], unexpected_keys: [], errors: [], tasks: [] };
      compare(this, '', given, assign, report);
      const { missing_keys, unexpected_keys, errors, tasks } = report;
      const keys = (kind, names) =>
        strict && names.length
          ? [`${kind} key(s) in state_dict: ${names.map((name) => `"${name}"`).join(', ')}. `]
          : [];
      const wrong = [
        ...keys('Missing', missing_keys),
        ...keys('Unexpected', unexpected_keys),
        ...errors,
      ];
      if (wrong.length)
        throw new RuntimeError(
          `Error(s) in loading state_dict for ${this.constructor.name}:\n\t${wrong.join('\n\t')}`,
        );
      autograd.no_grad(() => tasks.forEach((task) => task()));
      return { missing_keys, unexpected_keys };
    }

    /** Sets training mode for this module and all below it. @param {...Given<{mode?: boolean}>} args @returns {this} */
    train(...args) {
      const given =
        args.length === 1 && !isOptions(args[0])
          ? args[0]
          : bind('train', { mode: true }, args).mode;
      if (typeof given !== 'boolean')
        throw new ValueError('training mode is expected to be boolean');
      for (const module of this.modules()) module.training = given;
      return this;
    }

    /** Sets evaluation mode. @returns {this} */
    eval() {
      return this.train(false);
    }

    /** The tree of layers, by name. @returns {string} */
    toString() {
      const rows = members(this, MODULE).map(([name, child]) =>
        `  (${name}): ${child}`.replaceAll('\n', '\n  '),
      );
      return `${this.constructor.name}(${rows.length ? `\n${rows.join('\n')}\n` : ''})`;
    }
  }
  Object.defineProperty(Module.prototype, ENGINE, { value: engine });

  /** Collects the tasks and errors of loading a state dict into a module and all below it. */
  function compare(module, prefix, given, assign, report) {
    const own = new Map(savedMembers(module));
    for (const [name, target] of own) {
      const key = prefix + name;
      if (!given.has(key)) report.missing_keys.push(key);
      else {
        const error = entryError(key, target, given.get(key));
        if (error) report.errors.push(error);
        else report.tasks.push(() => enter(module, name, target, given.get(key), assign));
      }
    }
    const children = new Map(members(module, MODULE));
    for (const key of given.keys()) {
      if (!key.startsWith(prefix)) continue;
      const [name, ...rest] = key.slice(prefix.length).split('.');
      if (!(rest.length ? children : own).has(name)) report.unexpected_keys.push(key);
    }
    for (const [name, child] of children) {
      const path = `${prefix}${name}.`;
      compare(
        child,
        path,
        new Map([...given].filter(([key]) => key.startsWith(path))),
        assign,
        report,
      );
    }
  }

  /** Whether a value is a scalar from an old file: saved with one dimension, before PyTorch had 0-dim tensors. */
  const isOldScalar = (target, value) => !target.ndim && value.ndim === 1 && value.shape[0] === 1;

  /** The error of an entry of a state dict, or null. */
  function entryError(key, target, value) {
    if (!isTensor(value))
      return `While copying the parameter named "${key}", expected torch.Tensor or Tensor-like object from checkpoint but received ${typeName(value)}`;
    if (isOldScalar(target, value) || String(value.shape) === String(target.shape)) return null;
    return `size mismatch for ${key}: copying a param with shape ${size(value)} from checkpoint, the shape in current model is ${size(target)}.`;
  }

  /** Loads one entry of a state dict. */
  function enter(module, name, target, value, assign) {
    const from = isOldScalar(target, value) ? value.index(0) : value;
    if (!assign) target.copy_(from);
    else if (!(target instanceof Parameter)) module[name] = from;
    else
      module[name] =
        from instanceof Parameter
          ? from.requires_grad_(target.requires_grad)
          : new Parameter(from, target.requires_grad);
  }

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

  /** A number for each of two dimensions. */
  const pair = (value) => (Array.isArray(value) ? value : [value, value]);

  class Sequential extends Module {
    /** @param {...Module | Record<string, Module> | Map<string, Module>} layers or names and layers */
    constructor(...layers) {
      super();
      const [first] = layers;
      const isNamed = layers.length === 1 && (isOptions(first) || first instanceof Map);
      const entries =
        isNamed && first instanceof Map ? [...first] : Object.entries(isNamed ? first : layers);
      for (const [name, layer] of entries) {
        if (!isModule(layer)) throw new TypeError(`${typeText(layer)} is not a Module subclass`);
        this.add_module(name, layer);
      }
    }

    /** @param {Tensor} x @returns {Tensor} */
    forward(x) {
      atMost(1, 'forward', arguments);
      let y = x;
      for (const [, layer] of members(this, MODULE)) y = layer.call(y);
      return y;
    }
  }

  /** A class of layers. `make` sets up a new layer from its arguments (by default it stores them); `forward` computes its output. */
  const layer = (name, forward, make = Object.assign) =>
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
    Module,
    Sequential,
    /** @type {NewParameter<Parameter>} */ Parameter: Parameter,
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
    /** @type {NewDropout<Layer<{p: number}>>} */
    Dropout: layer(
      'Dropout',
      ({ p, training, inplace }, x) => F.dropout(x, p, training, inplace),
      (own, options) => {
        if (!(options.p >= 0 && options.p <= 1))
          throw new ValueError(
            `dropout probability has to be between 0 and 1, but got ${options.p}`,
          );
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
    /** @type {NewSoftmax<Layer<{}>>} */ Softmax: layer('Softmax', ({ dim }, x) =>
      F.softmax(x, dim),
    ),
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
        F.avg_pool2d(
          x,
          kernel_size,
          stride,
          padding,
          ceil_mode,
          count_include_pad,
          divisor_override,
        ),
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
    functional: F,
  };
}

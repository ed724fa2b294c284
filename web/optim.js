/** Optimizers: each step is one call of the engine for all parameters of a group; the engine reads their gradients.
 *
 * Arguments are those of Python's optimizers, in signatures.js. `foreach` and `fused` select PyTorch's implementation of a
 * formula; here is only one. */
import { isOptions, typeName } from './arguments.js';
import { errorClass, getOrMake, NotImplementedError, RuntimeError, ValueError } from './engine.js';
import { MODES } from './enumerations.js';
import { dtypes } from './tensor.js';

/** @import { Given } from './arguments.js' @import { Tensor } from './tensor.js' @import { NewAdam, NewAdamW, NewSGD } from './signatures.js' */
/** @typedef {Tensor | Iterable<Tensor | readonly [string, Tensor]>} Learned a parameter, several, or pairs of a name and one
 * @typedef {{params: Learned, [option: string]: any}} ParameterGroup with the options that differ from the optimizer's
 * @typedef {Iterable<Tensor> | Iterable<readonly [string, Tensor]> | Iterable<ParameterGroup>} Parameters
 * @typedef {{state: Map<any, Record<string, any>> | Record<string, Record<string, any>>, param_groups: Record<string, any>[]}} OptimizerState */

/** torch.optim over a library of tensors. */
export function makeOptim({ C, gradOf, isTensor, spaces, runOutside, take, withModes }, engine) {
  const zeros = (p) => runOutside(() => spaces.torch.zeros_like(p));
  const counter = () => runOutside(() => spaces.torch.zeros([]));
  /** The number of an option, which may be a tensor of one element. */
  const number = (value) => (typeof value !== 'number' && isTensor(value) ? value.item() : value);

  /** Converts a loaded value to the parameter's dtype; the counter of steps to float32. */
  function cast(parameter, [key, value]) {
    if (!isTensor(value)) return [key, value];
    const wanted =
      key === 'step'
        ? dtypes.float32
        : parameter.dtype.is_floating_point
          ? parameter.dtype
          : value.dtype;
    return [key, runOutside(() => value.detach().to(wanted))];
  }

  const KNOWN = {
    'learning rate': 'lr',
    'momentum': 'momentum',
    'epsilon': 'eps',
    'weight_decay': 'weight_decay',
  };

  /** Raises PyTorch's errors for options out of range. @returns {Record<string, any>} the options */
  function checkOptions(options) {
    const { lr, betas = [], momentum, dampening, nesterov } = options;
    if (isTensor(lr) && lr.numel() !== 1) throw new ValueError('Tensor lr must be 1-element');
    if (betas.length && isTensor(lr) && options.foreach)
      throw new ValueError('lr as a Tensor is not supported for capturable=False and foreach=True');
    for (const [what, name] of Object.entries(KNOWN)) {
      if (name in options && !(number(options[name]) >= 0))
        throw new ValueError(`Invalid ${what}${name === 'lr' ? '' : ' value'}: ${options[name]}`);
    }
    betas.forEach((beta, index) => {
      if (!(beta >= 0 && beta < 1))
        throw new ValueError(`Invalid beta parameter at index ${index}: ${beta}`);
    });
    if (nesterov && (momentum <= 0 || dampening !== 0))
      throw new ValueError('Nesterov momentum requires a momentum and zero dampening');
    if (options.fused && options.differentiable)
      throw new RuntimeError('`fused` does not support `differentiable`');
    if (options.fused && options.foreach)
      throw new RuntimeError('`fused` and `foreach` cannot be `True` together.');
    return options;
  }

  /** Raises for unsupported options. */
  function refuseUnsupported(options) {
    for (const name of ['capturable', 'differentiable'])
      if (options[name]) throw new NotImplementedError(`optimizers do not support ${name}=True`);
  }

  const isIterable = (value) =>
    typeof value !== 'string' && typeof value?.[Symbol.iterator] === 'function';

  /** The parameters of a group as an array, and their names if they are pairs of name and parameter. */
  function unpackParams(params) {
    const given = isTensor(params) || !isIterable(params) ? [params] : [...params];
    const pairs = given.filter(Array.isArray);
    if (!pairs.length) return { params: given };
    if (pairs.length !== given.length)
      throw new ValueError(
        'all optimizer params should be with/without names. Some param names are missing',
      );
    return {
      params: pairs.map(([, parameter]) => parameter),
      param_names: pairs.map(([name]) => name),
    };
  }

  /** Base of all optimizers: parameter groups, and a state for each parameter. */
  class Optimizer {
    /** @param {Parameters} params @param {Record<string, any>} defaults default options of the groups */
    constructor(params, defaults) {
      if (isTensor(params) || !isIterable(params))
        throw new TypeError(
          'params argument given to the optimizer should be an iterable of Tensors or dicts, but got ' +
            (isTensor(params) ? params.type() : typeName(params)),
        );
      if (!isOptions(defaults))
        throw new TypeError(
          `Optimizer(): argument 'defaults' (position 2) must be dict, not ${typeName(defaults)}`,
        );
      /** @type {Record<string, any>} */
      this.defaults = defaults;
      /** @type {{params: Tensor[], [option: string]: any}[]} */
      this.param_groups = [];
      /** @type {Map<any, Record<string, any>>} */
      this.state = new Map();
      const groups = [...params];
      if (!groups.length) throw new ValueError('optimizer got an empty parameter list');
      for (const group of isOptions(groups[0]) ? groups : [{ params: groups }])
        this.add_param_group(group);
    }

    /** Adds a group, say for layers that are thawed during training. @param {ParameterGroup} param_group */
    add_param_group(param_group) {
      if (!isOptions(param_group))
        throw new TypeError(`param_group must be a dict, but got ${typeName(param_group)}`);
      if (param_group.params === undefined) throw new (errorClass('KeyError'))("'params'");
      const group = { ...this.defaults, ...param_group, ...unpackParams(param_group.params) };
      for (const parameter of group.params) {
        if (!isTensor(parameter))
          throw new TypeError(
            `optimizer can only optimize Tensors, but one of the params is ${typeName(parameter)}`,
          );
        if (!parameter.is_leaf && !parameter.retains_grad)
          throw new ValueError("can't optimize a non-leaf Tensor");
      }
      refuseUnsupported(group);
      const params = new Set(group.params);
      if (params.size < group.params.length)
        engine.onWarning(
          'optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; ' +
            'see github.com/pytorch/pytorch/issues/40967 for more information',
        );
      const is = 'param_names' in group;
      if (this.param_groups.some((other) => is !== 'param_names' in other))
        throw new ValueError(
          'all optimizer param groups should be with/without names. ' +
            `cannot add param group ${is ? 'with' : 'without'} names to the optimizer`,
        );
      if (
        this.param_groups.some((other) => other.params.some((parameter) => params.has(parameter)))
      )
        throw new ValueError('some parameters appear in more than one parameter group');
      this.param_groups.push(group);
    }

    /** Drops the gradient of every parameter, or fills it with zeros. @param {...Given<{set_to_none?: boolean}>} rest */
    zero_grad(...rest) {
      const { set_to_none } = take('Optimizer.zero_grad', rest);
      for (const { params } of this.param_groups) C._zero_grads(params, set_to_none);
    }

    /** Updates the parameters that have a gradient.
     * @template T @param {() => T} [closure] computes the loss and its gradients; called first @returns {T} the closure's result */
    step(closure) {
      if (closure !== undefined && closure !== null && typeof closure !== 'function')
        throw new TypeError(
          `step(): argument 'closure' (position 1) must be a function, not ${typeName(closure)}`,
        );
      const loss = closure ? withModes(0, MODES.GRAD, closure) : undefined;
      withModes(MODES.GRAD, 0, () => {
        for (const group of this.param_groups) {
          const params = group.params.filter(gradOf);
          if (params.length) this.update(group, params);
        }
      });
      return loss;
    }

    /** @private Updates the parameters of a group that have gradients. @param {any} _group @param {any[]} _params */
    update(_group, _params) {
      throw new NotImplementedError(`${this.constructor.name} has no step of its own`);
    }

    /** The state and the groups, with parameters numbered by position, as in Python: each can load the other's. Tensors are not
     * copied. @returns {OptimizerState & {state: Map<any, Record<string, any>>}} */
    state_dict() {
      const positions = new Map();
      let start = 0;
      for (const { params } of this.param_groups) {
        params.forEach((p, i) => positions.has(p) || positions.set(p, start + i));
        start += params.length;
      }
      return {
        state: new Map(Array.from(this.state, ([p, own]) => [positions.get(p) ?? p, { ...own }])),
        param_groups: this.param_groups.map(({ params, ...rest }) => ({
          ...rest,
          params: params.map((p) => positions.get(p)),
        })),
      };
    }

    /** Loads the state and the options of a state dict; keeps this optimizer's parameters. @param {OptimizerState} state_dict */
    load_state_dict(state_dict) {
      const { state, param_groups } = state_dict ?? {};
      if (!Array.isArray(param_groups) || state === null || typeof state !== 'object')
        throw new TypeError(
          `load_state_dict(): an optimizer's state and param_groups are wanted, not ${typeName(state_dict)}`,
        );
      if (param_groups.length !== this.param_groups.length)
        throw new ValueError('loaded state dict has a different number of parameter groups');
      const owners = new Map();
      const groups = param_groups.map((saved, i) => {
        const { params, param_names } = this.param_groups[i];
        if (saved.params.length !== params.length)
          throw new ValueError(
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
          );
        saved.params.forEach((position, k) => owners.set(String(position), params[k]));
        const group = {
          ...this.defaults,
          ...(param_names && { param_names }),
          ...saved,
          ...this.constructor.fixed,
          params,
        };
        refuseUnsupported(group);
        return group;
      });
      this.state = new Map(
        (state instanceof Map ? [...state] : Object.entries(state)).map(([position, own]) => {
          const parameter = owners.get(String(position));
          return parameter
            ? [
                parameter,
                Object.fromEntries(Object.entries(own).map((entry) => cast(parameter, entry))),
              ]
            : [position, own];
        }),
      );
      this.param_groups = groups;
    }

    /** @private The states of some parameters by entry, each made at the first request.
     * @param {any[]} params @param {Record<string, (p: any) => any>} makers @returns {any[][]} */
    states(params, makers) {
      const states = params.map((p) => getOrMake(this.state, p, () => ({})));
      return Object.entries(makers).map(([name, make]) =>
        states.map((own, i) => (own[name] ??= make(params[i]))),
      );
    }
  }

  class SGD extends Optimizer {
    /** @private By the signature of Python's. @param {...any} args */
    constructor(...args) {
      const { params, ...options } = take('SGD', args);
      super(params, checkOptions(options));
    }

    /** @private */
    update(group, params) {
      const { momentum, dampening, nesterov, maximize } = group;
      const [lr, weight_decay] = [number(group.lr), number(group.weight_decay)];
      const hasBuffer = (p) => !momentum || this.state.get(p)?.momentum_buffer;
      for (const [is_first_step, chosen] of [
        [true, params.filter((p) => !hasBuffer(p))],
        [false, params.filter(hasBuffer)],
      ]) {
        if (!chosen.length) continue;
        const [buffers = []] = this.states(chosen, momentum ? { momentum_buffer: zeros } : {});
        C._fused_sgd_(chosen, [], buffers, {
          weight_decay,
          momentum,
          lr,
          dampening,
          nesterov,
          maximize,
          is_first_step,
        });
      }
    }
  }

  class Adam extends Optimizer {
    /** @private By the signature of Python's. @param {...any} args */
    constructor(...args) {
      const { params, ...options } = take(new.target.signature, args);
      super(params, { ...checkOptions(options), ...new.target.fixed });
    }

    /** @private */
    static signature = 'Adam';
    /** @private */
    static fixed = {};

    /** @private */
    update(group, params) {
      const {
        betas: [beta1, beta2],
        weight_decay,
        eps,
        amsgrad,
        maximize,
        decoupled_weight_decay,
      } = group;
      const [steps, means, squares, largest = []] = this.states(params, {
        step: counter,
        exp_avg: zeros,
        exp_avg_sq: zeros,
        ...(amsgrad && { max_exp_avg_sq: zeros }),
      });
      const op = decoupled_weight_decay ? C._fused_adamw_ : C._fused_adam_;
      op(params, [], means, squares, largest, steps, {
        lr: number(group.lr),
        beta1,
        beta2,
        weight_decay,
        eps,
        amsgrad,
        maximize,
      });
    }
  }

  class AdamW extends Adam {
    /** @private */
    static signature = 'AdamW';
    /** @private */
    static fixed = { decoupled_weight_decay: true };
  }

  return {
    Optimizer,
    /** Stochastic gradient descent. @type {NewSGD<SGD>} */ SGD: SGD,
    /** @type {NewAdam<Adam>} */ Adam: Adam,
    /** Adam with decoupled weight decay. @type {NewAdamW<AdamW>} */ AdamW: AdamW,
  };
}

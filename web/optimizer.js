/** The base of optimizers: groups of parameters, a state for each parameter, state dicts. */
import { isOptions, typeName } from './arguments.js';
import { errorClass, NotImplementedError, ValueError } from './engine.js';
import { MODES } from './enumerations.js';
import { dtypes } from './tensor.js';

/** @import { Given } from './arguments.js' @import { Tensor } from './tensor.js' */
/** @typedef {Tensor | Iterable<Tensor | readonly [string, Tensor]>} Learned a parameter, several, or pairs of a name and one
 * @typedef {{params: Learned, [option: string]: any}} ParameterGroup with the options that differ from the optimizer's
 * @typedef {Iterable<Tensor> | Iterable<readonly [string, Tensor]> | Iterable<ParameterGroup>} Parameters
 * @typedef {{state: Map<any, Record<string, any>> | Record<string, Record<string, any>>, param_groups: Record<string, any>[]}} OptimizerState */

const isIterable = (value) =>
  typeof value !== 'string' && typeof value?.[Symbol.iterator] === 'function';

/** Raises for unsupported options. */
function refuseUnsupported(options) {
  for (const name of ['capturable', 'differentiable'])
    if (options[name]) throw new NotImplementedError(`optimizers do not support ${name}=True`);
}

/** The parameters of a group as an array, and their names if they are pairs of name and parameter. */
function unpackParams(params, isTensor) {
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

/** Raises PyTorch's errors for what is no parameter. */
function checkParameters(params, isTensor) {
  for (const parameter of params) {
    if (!isTensor(parameter))
      throw new TypeError(
        `optimizer can only optimize Tensors, but one of the params is ${typeName(parameter)}`,
      );
    if (!parameter.is_leaf && !parameter.retains_grad)
      throw new ValueError("can't optimize a non-leaf Tensor");
  }
}

/** Raises PyTorch's errors for a group that does not go with the others. */
function checkAgainst(others, group, params) {
  const isNamed = 'param_names' in group;
  if (others.some((other) => isNamed !== 'param_names' in other))
    throw new ValueError(
      'all optimizer param groups should be with/without names. ' +
        `cannot add param group ${isNamed ? 'with' : 'without'} names to the optimizer`,
    );
  if (others.some((other) => other.params.some((parameter) => params.has(parameter))))
    throw new ValueError('some parameters appear in more than one parameter group');
}

/** The position of each parameter over all groups. */
function positionsOf(groups) {
  const positions = new Map();
  let start = 0;
  for (const { params } of groups) {
    params.forEach((p, i) => positions.has(p) || positions.set(p, start + i));
    start += params.length;
  }
  return positions;
}

/** Raises PyTorch's errors for groups that are not those of an optimizer. */
function checkSavedGroups(saved, groups) {
  if (saved.length !== groups.length)
    throw new ValueError('loaded state dict has a different number of parameter groups');
  saved.forEach(({ params }, i) => {
    if (params.length !== groups[i].params.length)
      throw new ValueError(
        "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
      );
  });
}

/** A loaded value with the parameter's dtype; a counter of steps is float32. */
function castState(parameter, key, value, { isTensor, runOutside }) {
  if (Array.isArray(value))
    return value.map((each) => castState(parameter, key, each, { isTensor, runOutside }));
  if (!isTensor(value)) return value;
  const own = parameter.dtype.is_floating_point ? parameter.dtype : value.dtype;
  return runOutside(() => value.detach().to(key === 'step' ? dtypes.float32 : own));
}

/** Base of all optimizers: parameter groups, and a state for each parameter. */
export class Optimizer {
  /** @private The library that the parameters are of. @type {any} */
  static library;
  /** @private Options that no argument gives. @type {Record<string, any>} */
  static fixed = {};

  /** @param {Parameters} params @param {Record<string, any>} defaults default options of the groups */
  constructor(params, defaults) {
    const { isTensor } = this.library;
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

  /** @private @returns {any} */
  get library() {
    return /** @type {any} */ (this.constructor).library;
  }

  /** Adds a group, say for layers that are thawed during training. @param {ParameterGroup} param_group */
  add_param_group(param_group) {
    const { engine, isTensor } = this.library;
    if (!isOptions(param_group))
      throw new TypeError(`param_group must be a dict, but got ${typeName(param_group)}`);
    if (param_group.params === undefined) throw new (errorClass('KeyError'))("'params'");
    const group = {
      ...this.defaults,
      ...param_group,
      ...unpackParams(param_group.params, isTensor),
    };
    checkParameters(group.params, isTensor);
    refuseUnsupported(group);
    const params = new Set(group.params);
    if (params.size < group.params.length)
      engine.onWarning(
        'optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; ' +
          'see github.com/pytorch/pytorch/issues/40967 for more information',
      );
    checkAgainst(this.param_groups, group, params);
    this.param_groups.push(group);
  }

  /** Drops the gradient of every parameter, or fills it with zeros. @param {...Given<{set_to_none?: boolean}>} rest */
  zero_grad(...rest) {
    const { set_to_none } = this.library.take('Optimizer.zero_grad', rest);
    for (const { params } of this.param_groups) this.library.C._zero_grads(params, set_to_none);
  }

  /** Updates the parameters that have a gradient.
   * @template T @param {() => T} [closure] computes the loss and its gradients; called first @returns {T} the closure's result */
  step(closure) {
    if (closure !== undefined && closure !== null && typeof closure !== 'function')
      throw new TypeError(
        `step(): argument 'closure' (position 1) must be a function, not ${typeName(closure)}`,
      );
    const { gradOf, withModes } = this.library;
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
    const positions = positionsOf(this.param_groups);
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
    checkSavedGroups(param_groups, this.param_groups);
    const owners = new Map();
    const groups = param_groups.map((saved, i) => {
      const { params, param_names } = this.param_groups[i];
      saved.params.forEach((position, k) => owners.set(String(position), params[k]));
      const names = param_names && { param_names };
      const { fixed } = /** @type {any} */ (this.constructor);
      const group = { ...this.defaults, ...names, ...saved, ...fixed, params };
      refuseUnsupported(group);
      return group;
    });
    const entries = state instanceof Map ? [...state] : Object.entries(state);
    this.state = new Map(entries.map(([position, own]) => this.loadState(owners, position, own)));
    this.param_groups = groups;
  }

  /** @private The state of a loaded position, by its parameter if there is one. */
  loadState(owners, position, own) {
    const parameter = owners.get(String(position));
    if (!parameter) return [position, own];
    const cast = ([key, value]) => [key, castState(parameter, key, value, this.library)];
    return [parameter, Object.fromEntries(Object.entries(own).map(cast))];
  }
}

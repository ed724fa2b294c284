/** Optimizers that descriptions make: a step is one call of the engine for all parameters of a group; the engine reads their
 * gradients.
 *
 * The descriptions are in optim_table.js, the arguments in signatures.js: both are those of Python's classes. `foreach` and `fused`
 * select PyTorch's implementation of a formula; here is only one. */
import { RuntimeError, ValueError } from './engine.js';
import { formulas, optimizers } from './optim_table.js';
import { dtypes } from './tensor.js';

/** @import { Optimizer } from './optimizer.js' */

/** The functions that checks call. */
const functionsFor = ({ isTensor }) => ({
  elements: (value) => (isTensor(value) ? value.numel() : 1),
  is_tensor: isTensor,
  is_float: (value) => typeof value === 'number',
  number: (value) => (isTensor(value) ? value.item() : value),
});

/** Raises PyTorch's error for the first check that options do not pass. */
function checkOptions(checks, options, functions) {
  for (const [passes, message] of checks)
    if (!passes(options, functions)) throw new ValueError(message(options, functions));
}

/** Raises PyTorch's errors for implementations that exclude each other. */
function checkChoice({ fused, foreach, differentiable }) {
  if (fused && differentiable) throw new RuntimeError('`fused` does not support `differentiable`');
  if (fused && foreach) throw new RuntimeError('`fused` and `foreach` cannot be `True` together.');
}

/** Raises PyTorch's error for the first check that a parameter does not pass. */
function checkParameters(checks, groups) {
  for (const [passes, message] of checks) {
    const places = groups.flatMap(({ params }, i) =>
      params.flatMap((parameter, k) => (passes({}, { parameter }) ? [] : [[i, k]])),
    );
    if (!places.length) continue;
    const [[i, k]] = places;
    const shown = `[${places.map((place) => `[${place.join(', ')}]`).join(', ')}]`;
    throw new ValueError(message({}, { places: shown, parameter: groups[i].params[k] }));
  }
}

const REFUSALS = {
  sparse: [(p) => p.grad.is_sparse, (name) => `${name} does not support sparse gradients`],
  dense: [
    (p) => !p.grad.is_sparse,
    (name) => `${name} does not support dense gradients, please consider Adam instead`,
  ],
  complex: [(p) => p.is_complex(), (name) => `${name} does not support complex parameters`],
};

/** Raises PyTorch's error for a parameter of these kinds, before its first step. */
function refuseParameter(kinds, name, parameter) {
  if (!parameter.grad) return;
  for (const kind of kinds) {
    const [isRefused, message] = REFUSALS[kind];
    if (isRefused(parameter)) throw new RuntimeError(message(name));
  }
}

/** Zeros of a matrix' sizes, but one of them 1. */
function zerosOver(parameter, dim) {
  const sizes = parameter.shape.slice();
  if (sizes.length < 2) return null;
  sizes[sizes.length + dim] = 1;
  return parameter.new_zeros(sizes);
}

/** How an entry of a state begins; null: there is none. A `first` one is filled by the parameter's first step. */
const MAKERS = {
  counter: (torch, p, value) => torch.full([], value, { dtype: dtypes.float32 }),
  zeros: (torch, p) => torch.zeros_like(p),
  full: (torch, p, value) => torch.full_like(p, p.is_complex() ? { re: value, im: value } : value),
  rows: (torch, p) => zerosOver(p, -1),
  columns: (torch, p) => zerosOver(p, -2),
  vector: (torch, p) => (p.dim() < 2 ? torch.zeros_like(p) : null),
  first: () => null,
};

/** The value at a path among options: ['float', 'betas', 0]. */
function numberAt(group, [kind, key, place], functions) {
  const value = functions.number(place === undefined ? group[key] : group[key][place]);
  return kind === 'float' ? (value ?? NaN) : value;
}

/** The row of a step. */
function rowFor({ row, loop }, group) {
  if (!loop.length) return row;
  const [one, option, other] = loop;
  return option === undefined || group[option] ? one : other;
}

/** The state of a parameter, which begins with its first gradient. */
function begin(optimizer, parameter, options) {
  const { library, description } = optimizer.constructor;
  const own = optimizer.state.get(parameter);
  if (own && Object.keys(own).length) return own;
  const functions = functionsFor(library);
  refuseParameter(description.refuses, optimizer.constructor.name, parameter);
  const begun = {};
  for (const [key, [maker, value, condition]] of Object.entries(description.state)) {
    if (condition && !options[condition]) continue;
    const start = value in options ? functions.number(options[value]) : Number(value);
    const made = library.runOutside(() => MAKERS[maker](library.spaces.torch, parameter, start));
    if (made) begun[key] = made;
  }
  if (Object.keys(begun).length) optimizer.state.set(parameter, begun);
  return begun;
}

/** One call of the engine for these parameters and their states. */
function call({ library, description }, group, params, states, isFirst) {
  const row = rowFor(description, group);
  const { states: entries, numbers } = formulas[row];
  const isKept = ([, , condition]) => !condition || group[condition];
  const lists = entries.map((key) =>
    isKept(description.state[key]) ? states.map((own) => own[key] ?? null) : [],
  );
  const functions = functionsFor(library);
  const options = Object.fromEntries(
    Object.entries(numbers).map(([name, path]) => [
      name,
      name === 'is_first_step' ? isFirst : numberAt(group, path, functions),
    ]),
  );
  library.C[row](params, [], ...lists, options);
}

/** A step whose formula is another at a parameter's first one, which fills the state. */
function stepInTurn(optimizer, group, params) {
  const { library, description } = optimizer.constructor;
  const [[key, [, , condition]]] = Object.entries(description.state);
  const stateOf = (p) => optimizer.state.get(p) ?? {};
  const isLater = (p) => !group[condition] || stateOf(p)[key];
  const [first, later] = [params.filter((p) => !isLater(p)), params.filter(isLater)];
  const empty = (p) => library.runOutside(() => library.spaces.torch.empty_like(p));
  const begun = first.map((p) => ({ [key]: empty(p) }));
  if (first.length) call(optimizer.constructor, group, first, begun, true);
  first.forEach((p, i) => optimizer.state.set(p, { ...stateOf(p), ...begun[i] }));
  if (later.length) call(optimizer.constructor, group, later, later.map(stateOf), false);
}

/** The step of a group. */
function step(optimizer, group, params) {
  const { description } = optimizer.constructor;
  if ('is_first_step' in formulas[rowFor(description, group)].numbers)
    return stepInTurn(optimizer, group, params);
  const options = description.begins_at_once ? optimizer.defaults : group;
  const states = params.map((parameter) => begin(optimizer, parameter, options));
  return call(optimizer.constructor, group, params, states, false);
}

/** The parameters and the options of a constructor's call, which are checked. */
function readArguments({ library, description, signature }, args) {
  const { params, ...given } = library.take(signature, args);
  const whole = { ...given, ...description.fixed };
  const options = Object.fromEntries(description.order.map((key) => [key, whole[key]]));
  checkOptions(description.checks, options, functionsFor(library));
  checkChoice(options);
  return [params, options];
}

/** The classes of the table. @param {typeof Optimizer} Base of a library @returns {Record<string, any>} */
export function makeBuiltins(Base) {
  class Described extends Base {
    constructor(...args) {
      const [params, options] = readArguments(new.target, args);
      super(params, options);
      const { description } = new.target;
      checkParameters(description.checks_of_parameters, this.param_groups);
      const begun = description.begins_at_once ? this.param_groups : [];
      for (const group of begun) for (const p of group.params) begin(this, p, options);
    }

    update(group, params) {
      step(this, group, params);
    }
  }
  const made = {};
  for (const [name, description] of Object.entries(optimizers)) {
    made[name] = class extends (made[description.extends] ?? Described) {
      static description = description;
      static fixed = description.fixed;
      static signature = name;
    };
    Object.defineProperty(made[name], 'name', { value: name });
  }
  return made;
}

/** State dicts: parameters and buffers by name, saved and loaded. */
import { bind, isOptions, typeName } from '../arguments.js';
import { RuntimeError } from '../engine.js';
import { joinPath, members, MODULE, savedMembers, walk } from './members.js';

/** @import { Given } from '../arguments.js' @import { Tensor } from '../tensor.js' */
/** @typedef {Record<string, Tensor>} StateDict */
/** @typedef {{missing_keys: string[], unexpected_keys: string[]}} IncompatibleKeys */

const size = (tensor) => `torch.Size([${tensor.shape.join(', ')}])`;

/** Whether a value is a scalar from an old file: saved with one dimension, before PyTorch had 0-dim tensors. */
const isOldScalar = (target, value) => !target.ndim && value.ndim === 1 && value.shape[0] === 1;

/** Functions that load entries of state dicts. */
function makeLoading({ isTensor, Parameter }) {
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

  return compare;
}

/** A class of modules that give and take their state. */
export function makeState(ModuleTree, library, autograd) {
  const compare = makeLoading(library);

  return class ModuleState extends ModuleTree {
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
  };
}

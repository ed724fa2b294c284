/** Registration of members: by assignment to a module's fields, or by methods. A registered name takes no value of another kind. */
import { typeName } from '../arguments.js';
import { ENGINE, errorClass, ValueError } from '../engine.js';
import { BUFFER, MODULE, note, PARAMETER, SELF, TRANSIENT } from './members.js';

/** @import { Given } from '../arguments.js' @import { Module } from './module.js' @import { Parameter, Tensor } from '../tensor.js' */

const KeyError = errorClass('KeyError');
/** What an assignment to a name of a kind must be, in error messages. */
const WANTED = {
  [PARAMETER]: ['parameter', 'Parameter'],
  [MODULE]: ['child module', 'Module'],
  [BUFFER]: ['buffer', 'Buffer, torch.Tensor'],
  [TRANSIENT]: ['buffer', 'Buffer, torch.Tensor'],
};

function checkNewName(module, kind, name, kinds) {
  if (name.includes('.'))
    throw new KeyError(`${kind} name can't contain "."${kind === MODULE ? `, got: ${name}` : ''}`);
  if (name === '') throw new KeyError(`${kind} name can't be empty string ""`);
  if (name in module && !kinds.includes(module[SELF].kinds.get(name)))
    throw new KeyError(`attribute '${name}' already exists`);
}

/** Registers a field of a kind; the value may be null. */
function register(module, name, kind, value) {
  note(module[SELF].kinds, name, kind);
  module[name] = value;
}

/** Functions that tell modules, types and kinds of values apart. */
export function makeKinds({ isTensor, Parameter }, engine) {
  /** The name of a value's type in error messages; of a tensor that of its elements. */
  const typeText = (value) => (isTensor(value) ? value.type() : typeName(value));
  const isModule = (value) => {
    if (value?.[SELF] !== undefined && value[ENGINE] === engine) return true;
    engine.refuseOthers(value);
    return false;
  };

  /** The kind of a name after an assignment, given its kind before; undefined for an ordinary attribute. */
  function kindOf(name, value, was) {
    if (was === undefined && (value === null || typeof value !== 'object')) return undefined;
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
    const [what, wanted] = WANTED[was];
    throw new TypeError(
      `cannot assign '${typeText(value)}' as ${what} '${name}' (torch.nn.${wanted} or None expected)`,
    );
  }

  return { isModule, kindOf, typeText };
}

/** Handles every assignment to a module's fields, in class bodies too. */
const makeRegistering = (kindOf) => ({
  /** The way of an assignment to a field that no class defines: it is shorter. */
  set(module, name, value, receiver) {
    const { accessors, kinds, proxy } = module[SELF];
    const isField = (Object.hasOwn(module, name) && !accessors.has(name)) || !(name in module);
    if (typeof name !== 'string' || receiver !== proxy || !isField)
      return Reflect.set(module, name, value, receiver);
    note(kinds, name, kindOf(name, value, kinds.get(name)));
    module[name] = value;
    return true;
  },
  defineProperty(module, name, descriptor) {
    const { accessors, kinds } = module[SELF];
    if (typeof name === 'string' && 'value' in descriptor)
      note(kinds, name, kindOf(name, descriptor.value, kinds.get(name)));
    if (descriptor.get || descriptor.set) accessors.add(name);
    return Reflect.defineProperty(module, name, descriptor);
  },
  deleteProperty(module, name) {
    module[SELF].kinds.delete(name);
    return Reflect.deleteProperty(module, name);
  },
});

/** The base class of modules that registers members. */
export function makeRegistration({ Parameter, take }, engine, { isModule, kindOf, typeText }) {
  const registering = makeRegistering(kindOf);

  class ModuleMembers {
    /** @type {boolean} */
    training = true;

    constructor() {
      if (arguments.length)
        throw new TypeError(
          `${new.target.name}() takes no arguments, but ${arguments.length} were given`,
        );
      const proxy = new Proxy(this, registering);
      const value = { fields: this, kinds: new Map(), accessors: new Set(), proxy };
      Object.defineProperty(this, SELF, { value });
      return proxy;
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
  }
  Object.defineProperty(ModuleMembers.prototype, ENGINE, { value: engine });
  return ModuleMembers;
}

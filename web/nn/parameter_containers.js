/** Containers of parameters, as modules; other values are held too. */
import { typeName } from '../arguments.js';
import { errorClass, RuntimeError } from '../engine.js';
import { pairsOf, placeOf } from './containers.js';

/** @import { Parameter, Tensor } from '../tensor.js' */

const KeyError = errorClass('KeyError');
/** The key of a container's names, in order. */
const KEYS = Symbol('keys');

/** What is shown of values, and what is held of tensors. */
const makeValues = ({ isTensor, Parameter }) => ({
  asParameter: (value) =>
    isTensor(value) && !(value instanceof Parameter) ? new Parameter(value) : value,
  describe(key, value, typeOf) {
    if (!isTensor(value)) return `  (${key}): Object of type: ${typeName(value)}`;
    const kind = value instanceof Parameter ? 'Parameter' : 'Tensor';
    return `  (${key}): ${kind} containing: [${typeOf(value)} of size ${value.shape.join('x')}]`;
  },
});

/** A class of parameters in order. */
function makeList(Module, { asParameter, describe }, { isTensor }) {
  return class ParameterList extends Module {
    /** @param {Iterable<any> | null} [values] */
    constructor(values = null) {
      super();
      this[KEYS] = 0;
      if (values !== null) this.extend(values);
    }

    /** The number of values. @returns {number} */
    get length() {
      return this[KEYS];
    }

    /** The values in order. @returns {IterableIterator<any>} */
    *[Symbol.iterator]() {
      for (let i = 0; i < this.length; i++) yield this[i];
    }

    /** The value at a place; below zero, from the end. @param {number} index @returns {any} */
    at(index) {
      return this[placeOf(index, this.length)];
    }
    /** Replaces the value at a place. @param {number} index @param {any} value @returns {void} */
    set(index, value) {
      this[placeOf(index, this.length)] = asParameter(value);
    }
    /** Adds a value at the end. @param {any} value @returns {this} */
    append(value) {
      this[this[KEYS]++] = asParameter(value);
      return this;
    }

    /** Adds values at the end. @param {Iterable<any>} values @returns {this} */
    extend(values) {
      if (isTensor(values) || typeof values?.[Symbol.iterator] !== 'function')
        throw new TypeError(
          `ParameterList.extend should be called with an iterable, but got ${typeName(values)}`,
        );
      for (const value of [...values]) this.append(value);
      return this;
    }

    /** @returns {string} */
    extra_repr() {
      return [...this].map((each, i) => describe(i, each, (x) => String(x.dtype))).join('\n');
    }
    /** @param {...any} args @returns {never} */
    call() {
      throw new RuntimeError('ParameterList should not be called.');
    }
  };
}

/** A class of parameters by name. */
function makeDictionary(Module, { asParameter, describe }) {
  return class ParameterDict extends Module {
    /** @param {Record<string, any> | Iterable<[string, any]> | null} [parameters] */
    constructor(parameters = null) {
      super();
      this[KEYS] = new Set();
      if (parameters !== null) this.update(parameters);
    }

    /** The number of values. @returns {number} */
    get length() {
      return this[KEYS].size;
    }
    /** The names in order. @returns {string[]} */
    keys() {
      return [...this[KEYS]];
    }
    /** The values in order. @returns {any[]} */
    values() {
      return this.keys().map((key) => this[key]);
    }
    /** Names and values in order. @returns {[string, any][]} */
    items() {
      return this.keys().map((key) => [key, this[key]]);
    }

    /** Whether there is a value of this name. @param {string} key @returns {boolean} */
    has(key) {
      return this[KEYS].has(key);
    }
    /** The value of a name; without one, another value. @param {string} key @param {any} [standard] @returns {any} */
    get(key, standard = null) {
      return this.has(key) ? this[key] : standard;
    }
    /** Adds or replaces a value. @param {string} key @param {any} value @returns {void} */
    set(key, value) {
      if (!this.has(key) && key in this) throw new KeyError(`attribute '${key}' already exists`);
      this[key] = asParameter(value);
      this[KEYS].add(key);
    }
    /** Removes a value and returns it. @param {string} key @returns {any} */
    pop(key) {
      if (!this.has(key)) throw new KeyError(`'${key}'`);
      const value = this[key];
      delete this[key];
      this[KEYS].delete(key);
      return value;
    }
    /** Removes all values. @returns {void} */
    clear() {
      for (const key of this.keys()) this.pop(key);
    }

    /** Adds values by name: of an object in the order of its names, of pairs in their own order.
     * @param {Record<string, any> | Iterable<[string, any]>} parameters @returns {void} */
    update(parameters) {
      const pairs = pairsOf(parameters, 'ParametersDict');
      const isSorted = typeof parameters[Symbol.iterator] !== 'function';
      if (isSorted) pairs.sort(([a], [b]) => (a < b ? -1 : 1));
      for (const [key, value] of pairs) this.set(key, value);
    }

    /** @returns {string} */
    extra_repr() {
      return this.items()
        .map(([key, value]) => describe(key, value, (x) => x.type()))
        .join('\n');
    }
    /** @param {...any} args @returns {never} */
    call() {
      throw new RuntimeError('ParameterDict should not be called.');
    }
  };
}

/** Classes of containers of parameters. */
export function makeParameterContainers(Module, library) {
  const values = makeValues(library);
  return {
    ParameterList: makeList(Module, values, library),
    ParameterDict: makeDictionary(Module, values),
  };
}

/** Containers of modules: in order, by their places, or by names. */
import { atMost, isOptions, typeName } from '../arguments.js';
import { errorClass, IndexError } from '../engine.js';
import { members, MODULE } from './members.js';
import { indent } from './module.js';

/** @import { Module } from './module.js' @import { Tensor } from '../tensor.js' */

const KeyError = errorClass('KeyError');

/** [key, value] of an object, a Map, or pairs. @returns {[string, any][]} */
export function pairsOf(source, owner) {
  if (isOptions(source)) return Object.entries(source);
  if (typeof source?.[Symbol.iterator] !== 'function')
    throw new TypeError(
      `${owner}.update should be called with an iterable of key/value pairs, but got ${typeName(source)}`,
    );
  return [...source];
}

/** The place that an index means in a sequence: one below zero counts from the end. */
export function placeOf(index, length) {
  if (!Number.isSafeInteger(index) || index < -length || index >= length)
    throw new IndexError(`index ${index} is out of range`);
  return index < 0 ? index + length : index;
}

/** The base class of modules that hold others in order. */
const makeSequence = (Module, { isModule, typeText }) =>
  class ModuleSequence extends Module {
    /** The number of modules. @returns {number} */
    get length() {
      return members(this, MODULE).length;
    }

    /** The modules in order. @returns {IterableIterator<Module>} */
    *[Symbol.iterator]() {
      for (const [, module] of members(this, MODULE)) yield module;
    }

    /** The module at a place; below zero, from the end. @param {number} index @returns {Module} */
    at(index) {
      return [...this][placeOf(index, this.length)];
    }

    /** Adds a module at the end. @param {Module} module @returns {this} */
    append(module) {
      this.add_module(String(this.length), module);
      return this;
    }

    /** Adds modules at the end. @param {Iterable<Module>} modules @returns {this} */
    extend(modules) {
      for (const module of [...modules]) this.append(module);
      return this;
    }

    /** Puts a module before the one at a place. @param {number} index @param {Module} module @returns {this} */
    insert(index, module) {
      if (!isModule(module)) throw new TypeError(`${typeText(module)} is not a Module subclass`);
      const after = [...this];
      after.splice(index, 0, module);
      return this.replaceAll(after);
    }

    /** Removes the module at a place and returns it. @param {number} index @returns {Module} */
    pop(index) {
      const after = [...this];
      const [module] = after.splice(placeOf(index, after.length), 1);
      this.replaceAll(after);
      return module;
    }

    /** Holds these modules alone, named by their places. @private */
    replaceAll(modules) {
      for (const [name] of members(this, MODULE)) delete this[name];
      return this.extend(modules);
    }
  };

/** The text of modules in order, where several that follow each other have the same. */
function runs(modules) {
  const found = [];
  [...modules].map(String).forEach((text, i) => {
    const last = found.at(-1);
    if (last?.text === text) last.end = i;
    else found.push({ start: i, end: i, text });
  });
  return found.map(({ start, end, text }) =>
    start === end
      ? `(${start}): ${indent(text)}`
      : `(${start}-${end}): ${end - start + 1} x ${indent(text)}`,
  );
}

/** Classes of modules in order. */
function makeSequences(ModuleSequence, { isModule, typeText }) {
  class Sequential extends ModuleSequence {
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

    /** Puts a module before the one at a place. @param {number} index @param {Module} module @returns {this} */
    insert(index, module) {
      if (index < -this.length || index > this.length)
        throw new IndexError(`Index out of range: ${index}`);
      return super.insert(index, module);
    }

    /** @param {Tensor} x @returns {Tensor} */
    forward(x) {
      atMost(1, 'forward', arguments);
      let y = x;
      for (const [, layer] of members(this, MODULE)) y = layer.call(y);
      return y;
    }
  }

  class ModuleList extends ModuleSequence {
    /** @param {Iterable<Module> | null} [modules] */
    constructor(modules = null) {
      super();
      if (modules !== null) this.extend(modules);
    }

    /** Adds modules at the end. @param {Iterable<Module>} modules @returns {this} */
    extend(modules) {
      if (typeof modules?.[Symbol.iterator] !== 'function')
        throw new TypeError(
          `ModuleList.extend should be called with an iterable, but got ${typeName(modules)}`,
        );
      return super.extend(modules);
    }

    /** @returns {string} */
    toString() {
      const rows = runs(this);
      const name = this.constructor.name;
      return rows.length ? `${name}(${rows.map((row) => `\n  ${row}`).join('')}\n)` : `${name}()`;
    }
  }

  return { Sequential, ModuleList };
}

/** A class of modules by name. */
const makeDictionary = (Module) =>
  class ModuleDict extends Module {
    /** @param {Record<string, Module> | Iterable<[string, Module]> | null} [modules] */
    constructor(modules = null) {
      super();
      if (modules !== null) this.update(modules);
    }

    /** The number of modules. @returns {number} */
    get length() {
      return members(this, MODULE).length;
    }
    /** The names in order. @returns {string[]} */
    keys() {
      return members(this, MODULE).map(([name]) => name);
    }
    /** The modules in order. @returns {Module[]} */
    values() {
      return members(this, MODULE).map(([, module]) => module);
    }
    /** Names and modules in order. @returns {[string, Module][]} */
    items() {
      return members(this, MODULE);
    }

    /** Whether there is a module of this name. @param {string} key @returns {boolean} */
    has(key) {
      return this.keys().includes(key);
    }
    /** The module of a name. @param {string} key @returns {Module} */
    get(key) {
      if (!this.has(key)) throw new KeyError(`'${key}'`);
      return this[key];
    }
    /** Adds or replaces a module. @param {string} key @param {Module} module @returns {void} */
    set(key, module) {
      this.add_module(key, module);
    }
    /** Removes a module and returns it. @param {string} key @returns {Module} */
    pop(key) {
      const module = this.get(key);
      delete this[key];
      return module;
    }
    /** Removes all modules. @returns {void} */
    clear() {
      for (const key of this.keys()) delete this[key];
    }

    /** Adds modules by name; replaces those of the same names.
     * @param {Record<string, Module> | Iterable<[string, Module]>} modules @returns {void} */
    update(modules) {
      for (const [key, module] of pairsOf(modules, 'ModuleDict')) this.set(key, module);
    }
  };

/** Classes of containers of modules. */
export const makeContainers = (Module, kinds) => ({
  ...makeSequences(makeSequence(Module, kinds), kinds),
  ModuleDict: makeDictionary(Module),
});

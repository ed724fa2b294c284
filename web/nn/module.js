/** The base of all layers and models. */
import { bind, isOptions } from '../arguments.js';
import { errorClass, ValueError } from '../engine.js';
import { members, MODULE } from './members.js';

/** @import { Given } from '../arguments.js' */

/** A text with its lines but the first moved to the right. */
export const indent = (text) => text.replace(/\n(?=.)/g, '\n  ');

/** A class of modules that are called, shown, and set as a whole. */
export function makeModule(ModuleState, { C, take }) {
  /** Base of all layers and models: subclass it, assign parameters and layers to its fields, add `forward`. */
  return class Module extends ModuleState {
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

    /** What is shown of the layer beside its name and layers; each kind of layer says its own. @returns {string} */
    extra_repr() {
      return '';
    }
    /** The tree of layers, by name. @returns {string} */
    toString() {
      const extra = this.extra_repr();
      const children = members(this, MODULE);
      const name = this.constructor.name;
      if (!children.length && !extra.includes('\n')) return `${name}(${extra})`;
      const rows = children.map(([key, child]) => `(${key}): ${indent(String(child))}`);
      const lines = [...(extra ? extra.split('\n') : []), ...rows];
      return `${name}(\n${lines.map((line) => `  ${line}\n`).join('')})`;
    }
  };
}

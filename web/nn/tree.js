/** The tree of modules: its modules, parameters and buffers. */
import { typeName } from '../arguments.js';
import { BUFFER, members, MODULE, PARAMETER, tensorsOf, TRANSIENT, walk } from './members.js';

/** @import { Given } from '../arguments.js' @import { Module } from './module.js' @import { Parameter, Tensor } from '../tensor.js' */
/** @typedef {{prefix?: string, recurse?: boolean, remove_duplicate?: boolean}} WalkOptions */

/** A class of modules whose tree can be walked. */
export function makeTree(ModuleMembers, { take }) {
  return class ModuleTree extends ModuleMembers {
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
  };
}

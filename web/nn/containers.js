/** Containers of modules. */
import { atMost, isOptions } from '../arguments.js';
import { members, MODULE } from './members.js';

/** @import { Module } from './module.js' @import { Tensor } from '../tensor.js' */

/** Classes of containers. */
export function makeContainers(Module, { isModule, typeText }) {
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

  return { Sequential };
}

/** Classes of layers, made from their definitions in layers.js. */
import { atMost } from '../arguments.js';
import { signatures } from '../signatures.js';
import { attention } from './attention.js';
import { makeInit } from './init.js';
import { definitions } from './layers.js';
import { SELF } from './members.js';
import { MAKE } from './python.js';
import { recurrent } from './recurrent.js';
import { dtypes } from '../tensor.js';

/** @import { Layers } from './layers.js' */

/** The key of the name of the signature that a class of layers is made with. */
const SIGNATURE = Symbol('signature');

/** The base class of layers: a new one is set up from arguments that its signature binds. */
const makeLayer = (Module, take) =>
  class Layer extends Module {
    constructor(...args) {
      super();
      const name = new.target[SIGNATURE];
      const given = signatures[name] ? take(name, args) : {};
      this[MAKE]?.(given);
    }
  };

/** Has a class compute without the proxy of its layers, which is slower, and refuse inputs that it does not know. */
function computeOnFields(made) {
  const { forward } = made.prototype;
  made.prototype.forward = function (...inputs) {
    if (forward.length) atMost(forward.length, 'forward', inputs);
    return forward.apply(this[SELF].fields, inputs);
  };
}

/** All layers by name: those that Python's classes define, and those that are written here. @returns {Layers} */
export function makeLayers(Module, library, F, engine, autograd) {
  const { isTensor, Parameter, spaces, take, tensor } = library;
  const scope = {
    Module: makeLayer(Module, take),
    Parameter,
    F,
    init: makeInit(engine, autograd),
    torch: { ...spaces.torch, ...dtypes, tensor },
    isTensor,
    no_grad: autograd.no_grad,
    is_autocast_enabled: autograd.is_autocast_enabled,
    take,
    warn: (text) => engine.onWarning(text),
  };
  const layers = {};
  for (const [name, define] of Object.entries({ ...definitions, ...attention, ...recurrent })) {
    const made = define(scope);
    scope[name] = made;
    if (!(made.prototype instanceof Module)) continue;
    if (Object.hasOwn(made.prototype, 'forward')) computeOnFields(made);
    if (name.startsWith('_')) continue;
    made[SIGNATURE] = name;
    layers[name] = made;
  }
  return layers;
}

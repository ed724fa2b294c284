/** Modules: layers with parameters, created and initialised as PyTorch's, with random numbers drawn in the same order.
 *
 * Arguments are those of Python's layers, in signatures.js. */
import { makeContainers } from './nn/containers.js';
import { makeFunctional } from './nn/functional.js';
import { makeLayers } from './nn/layer.js';
import { makeModule } from './nn/module.js';
import { makeParameterContainers } from './nn/parameter_containers.js';
import { makeKinds, makeRegistration } from './nn/registration.js';
import { makeState } from './nn/state.js';
import { makeTree } from './nn/tree.js';

/** @import { Parameter } from './tensor.js' @import { NewParameter } from './signatures.js' */

/** torch.nn over a library of tensors. */
export function makeNn(library, engine, autograd) {
  const { Parameter } = library;
  const kinds = makeKinds(library, engine);
  const ModuleTree = makeTree(makeRegistration(library, engine, kinds), library);
  const Module = makeModule(makeState(ModuleTree, library, autograd), library);
  /** Functions of layers and losses; as in PyTorch, with most of torch's functions. */
  const functional = makeFunctional(library);
  return {
    Module,
    ...makeContainers(Module, kinds),
    ...makeParameterContainers(Module, library),
    /** @type {NewParameter<Parameter>} */ Parameter: Parameter,
    ...makeLayers(Module, library, functional, engine, autograd),
    functional,
  };
}

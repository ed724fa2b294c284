/** Differentiation: backward and grad, and all that torch.autograd holds. */
import { makeAnomaly } from './anomaly.js';
import { bind, each, isOptions, RuntimeError, ValueError } from './engine.js';
import { makeForwardAd } from './forward_ad.js';
import { makeFunctional } from './functional.js';
import { makeFunction } from './function.js';
import { makeGradcheck } from './gradcheck.js';
import { GradientEdge, makeGraph } from './graph.js';
import { typeName } from './hooks.js';
import { makeModes } from './modes.js';
import { makeProfiler } from './profiler.js';

/** @import { Given } from './engine.js' @import { Tensor } from './tensor.js' */
/** @typedef {Tensor | GradientEdge | (Tensor | GradientEdge)[]} Places */
/** @typedef {Places | Record<string, Tensor>} Inputs */
/** @typedef {Tensor | (Tensor | null)[] | null} Gradients */
/** @typedef {{grad_tensors?: Gradients, retain_graph?: boolean | null, create_graph?: boolean, inputs?: Inputs | null}} BackwardOptions */
/** @typedef {{grad_outputs?: Gradients, retain_graph?: boolean | null, create_graph?: boolean, only_inputs?: boolean,
 *   allow_unused?: boolean | null, is_grads_batched?: boolean, materialize_grads?: boolean}} GradOptions */

const CYCLE =
  'Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a ' +
  'memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to ' +
  'reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak.';

/** torch.autograd over a library of tensors. */
export function makeAutograd(library, engine) {
  const { C, Tensor } = library;
  let warned = false;
  const graph = makeGraph(library, engine);
  const forward_ad = makeForwardAd(library, engine);
  const modes = makeModes(library, engine);
  const fn = makeFunction(library, engine);
  const isPlace = (it) => it instanceof Tensor || it instanceof GradientEdge;

  function roots(tensors) {
    if (each(tensors).every(isPlace)) return each(tensors);
    throw new TypeError('Expected output to be a torch.Tensor');
  }

  /** What to differentiate by: a tensor, several, or an object of them. */
  function places(inputs, caller) {
    const given = inputs && isOptions(inputs) ? Object.values(inputs) : each(inputs);
    if (!given.length) throw new RuntimeError(`\`inputs\` argument to \`${caller}()\` cannot be empty.`);
    const odd = given.find((it) => !isPlace(it));
    if (odd !== undefined) throw new RuntimeError(`all inputs have to be Tensors or GradientEdges, but got ${typeName(odd)}`);
    return given;
  }

  /** One gradient (or null) a root. */
  function seeds(outputs, grads) {
    if (grads === null) return outputs.map(() => null);
    const given = each(grads).slice(0, outputs.length).map((it) => it ?? null);
    const odd = given.find((it) => it !== null && !(it instanceof Tensor));
    if (odd !== undefined) throw new TypeError(`gradients can be either Tensors or None, but got ${typeName(odd)}`);
    if (given.length !== outputs.length) throw new RuntimeError(`got ${outputs.length} tensors and ${given.length} gradients`);
    return given;
  }

  /** Calls run(outputs, inputs, edges) as the engine takes them: null where an edge stands, edges as node and output number. */
  function walk(outputs, inputs, run) {
    const edges = [];
    const split = (given) => given.map((place) => {
      if (place instanceof Tensor) return place;
      edges.push(place.node.alive(), place.output_nr);
      return null;
    });
    return library.walk(run(split(outputs), split(inputs), edges));
  }

  /** Adds the gradients of the sum of `tensors` to the `grad` of the graph's leaves, or of `inputs` alone.
   * @param {Places} tensors the roots @param {...Given<BackwardOptions>} rest @returns {void} */
  function backward(tensors, ...rest) {
    const { grad_tensors, create_graph, inputs, retain_graph } =
      bind('backward', { grad_tensors: null, retain_graph: null, create_graph: false, inputs: null }, rest);
    const wanted = inputs === null ? [] : places(inputs, 'backward');
    const outputs = roots(tensors);
    const grads = seeds(outputs, grad_tensors);
    if (create_graph && !warned) engine.onWarning(CYCLE);
    warned ||= create_graph;
    walk(outputs, wanted, (of, at, edges) => C._backward(of, grads, retain_graph ?? create_graph, create_graph, at, edges));
  }

  /** The gradients of the sum of `outputs` with respect to `inputs`, without touching `grad`.
   * @template {Inputs} I @param {Places} outputs the roots @param {I} inputs @param {...Given<GradOptions>} rest
   * @returns {I extends Tensor | GradientEdge | any[] ? Tensor[] : {[Name in keyof I]: Tensor}} null where allow_unused allows it */
  function grad(outputs, inputs, ...rest) {
    const { create_graph, materialize_grads, ...options } = bind('grad', { grad_outputs: null, retain_graph: null, create_graph: false,
      only_inputs: true, allow_unused: null, is_grads_batched: false, materialize_grads: false }, rest);
    if (materialize_grads && options.allow_unused === false)
      throw new ValueError('Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.');
    const [of, at] = [roots(outputs), places(inputs, 'grad')];
    const found = walk(of, at, (ys, xs, edges) =>
      C._grad(ys, xs, seeds(of, options.grad_outputs), options.retain_graph ?? create_graph, create_graph,
        options.allow_unused ?? materialize_grads, materialize_grads, edges, options.is_grads_batched ? -1 : 0));
    return isOptions(inputs) ? Object.fromEntries(Object.keys(inputs).map((name, i) => [name, found[i]])) : found;
  }

  library.backward = backward;
  /** The gradients of every element of a tensor, stacked. */
  library.rowsOf = (output, inputs, create_graph) =>
    walk([output], inputs, (of, at, edges) => C._grad(of, at, [], true, create_graph, true, false, edges, output.numel()));
  const autograd = {
    backward, grad, ...modes, ...makeAnomaly(library, engine), graph, forward_ad, function: fn, Function: fn.Function,
    once_differentiable: fn.once_differentiable, allow_mutation_on_saved_tensors: graph.allow_mutation_on_saved_tensors,
  };
  return Object.assign(autograd, {
    functional: makeFunctional(library, autograd), ...makeGradcheck(library, autograd), profiler: makeProfiler(library),
  });
}

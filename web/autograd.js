/** Differentiation: backward and grad, and the rest of torch.autograd. */
import { makeAnomaly } from './anomaly.js';
import { bind, each, isOptions, typeName } from './arguments.js';
import { makeForwardAd } from './forward_ad.js';
import { makeFunctional } from './functional.js';
import { makeFunction } from './function.js';
import { makeGradcheck } from './gradcheck.js';
import { GradientEdge, makeGraph } from './graph.js';
import { makeModes } from './modes.js';
import { makeProfiler } from './profiler.js';

/** @import { Given } from './arguments.js' @import { Tensor } from './tensor.js' */
/** @typedef {Tensor | GradientEdge | (Tensor | GradientEdge)[]} Places */
/** @typedef {Places | Record<string, Tensor>} Inputs */
/** @typedef {Tensor | (Tensor | null)[] | null} Gradients */
/** @typedef {{grad_tensors?: Gradients, retain_graph?: boolean | null, create_graph?: boolean, inputs?: Inputs | null}} BackwardOptions */
/** @typedef {{grad_outputs?: Gradients, retain_graph?: boolean | null, create_graph?: boolean, only_inputs?: boolean,
 *   allow_unused?: boolean | null, is_grads_batched?: boolean, materialize_grads?: boolean}} GradOptions */

/** torch.autograd over a library of tensors. */
export function makeAutograd(library, engine) {
  const { C, isTensor } = library;
  const graph = makeGraph(library, engine);
  const forward_ad = makeForwardAd(library);
  const modes = makeModes(library, engine);
  const fn = makeFunction(library, engine);

  /** Places as an array: one, several, or the values of an object. */
  const asList = (places) => (isOptions(places) ? Object.values(places) : each(places));

  /** Splits places into tensors (null for others) and the engine's words for the others: `ends` in
   * wasm_core/walk/autograd_services.c. */
  const split = (ends, places, odd) =>
    ends.map((it) => {
      if (isTensor(it)) return it;
      const isEdge = it instanceof GradientEdge;
      if (isEdge) engine.refuseOthers(it.node);
      if (isEdge && !(it.node instanceof graph.Node && Number.isSafeInteger(it.output_nr)))
        throw new TypeError(
          `GradientEdge(): a node and an int are wanted, not ${typeName(it.node)} and ${typeName(it.output_nr)}`,
        );
      places.push(...(isEdge ? [it.node.alive(), it.output_nr] : [1, 0]));
      if (!isEdge) odd.push(typeName(it));
      return null;
    });

  /** Runs the engine's `_grad`; `how` is passed on. @param {any[] | null} inputs all leaves if null */
  function walk(outputs, inputs, grads, ...how) {
    const seeds =
      grads === null
        ? []
        : each(grads)
            .slice(0, outputs.length)
            .map((it) => it ?? null);
    const [places, odd] = [[grads === null ? -1 : seeds.length], []];
    const of = split(outputs, places, odd);
    if (odd.length) throw new TypeError('Expected output to be a torch.Tensor');
    const at = inputs ? split(inputs, places, odd) : [];
    const type = odd[0] ?? library.hooks.encode(seeds)[1];
    return library.walk(C._grad(of, at, type ? [] : seeds, places, type, ...how));
  }

  /** Adds the gradients of the sum of `tensors` to the `grad` of the graph's leaves, or only of `inputs`.
   * @param {Places} tensors the roots @param {...Given<BackwardOptions>} rest @returns {void} */
  function backward(tensors, ...rest) {
    const { grad_tensors, create_graph, inputs, retain_graph } = bind(
      'backward',
      { grad_tensors: null, retain_graph: null, create_graph: false, inputs: null },
      rest,
    );
    const outputs = each(tensors);
    const common =
      outputs.length === 1 &&
      isTensor(outputs[0]) &&
      !create_graph &&
      grad_tensors === null &&
      inputs === null;
    if (common) library.walk(C._backward_of(outputs[0], retain_graph ?? false));
    else
      walk(
        outputs,
        inputs && asList(inputs),
        grad_tensors,
        retain_graph ?? create_graph,
        create_graph,
        inputs ? 1 : 2,
      );
  }

  /** The gradients of the sum of `outputs` with respect to `inputs`; leaves `grad` unchanged.
   * @template {Inputs} I @param {Places} outputs the roots @param {I} inputs @param {...Given<GradOptions>} rest
   * @returns {I extends Tensor | GradientEdge | any[] ? Tensor[] : {[Name in keyof I]: Tensor}} null where allow_unused allows
   * it */
  function grad(outputs, inputs, ...rest) {
    const given = bind(
      'grad',
      {
        grad_outputs: null,
        retain_graph: null,
        create_graph: false,
        only_inputs: true,
        allow_unused: null,
        is_grads_batched: false,
        materialize_grads: false,
      },
      rest,
    );
    const { create_graph, materialize_grads } = given;
    if (!given.only_inputs)
      engine.onWarning(
        'only_inputs argument is deprecated and is ignored now (defaults to True). ' +
          'To accumulate gradient for other parts of the graph, please use torch.autograd.backward.',
      );
    const found = walk(
      each(outputs),
      asList(inputs),
      given.grad_outputs,
      given.retain_graph ?? create_graph,
      create_graph,
      0,
      given.allow_unused ?? materialize_grads,
      materialize_grads,
      given.is_grads_batched ? -1 : 0,
    );
    return isOptions(inputs)
      ? Object.fromEntries(Object.keys(inputs).map((name, i) => [name, found[i]]))
      : found;
  }

  library.backward = backward;
  const autograd = {
    backward,
    grad,
    ...modes,
    ...makeAnomaly(library, engine),
    graph,
    forward_ad,
    function: fn,
    Function: fn.Function,
    once_differentiable: fn.once_differentiable,
    allow_mutation_on_saved_tensors: graph.allow_mutation_on_saved_tensors,
  };
  return Object.assign(autograd, {
    functional: makeFunctional(library, autograd),
    ...makeGradcheck(library),
    profiler: makeProfiler(library),
  });
}

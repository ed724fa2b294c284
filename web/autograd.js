/** Differentiation: backward, grad, modes, and the functions over whole functions. */
import { isOptions, MODES, RuntimeError } from './engine.js';

const list = (value) => (value === null || value === undefined ? [] : Array.isArray(value) ? value : [value]);

/** torch.autograd over a library of tensors. */
export function makeAutograd({ C, Tensor, withModes }, engine, functions) {
  /** One gradient (or null) a root. */
  function seeds(roots, given) {
    const seeds = list(given);
    if (!seeds.length) return roots.map(() => null);
    if (seeds.length !== roots.length) throw new RuntimeError(`got ${roots.length} tensors and ${seeds.length} gradients`);
    return seeds;
  }

  /** backward(tensors), backward(tensors, options), backward(tensors, grad_tensors, options). */
  function backward(tensors, ...rest) {
    const options = isOptions(rest.at(-1)) ? rest.pop() : {};
    const [grads = options.grad_tensors, retain = options.retain_graph, create = options.create_graph ?? false, inputs = options.inputs] = rest;
    const roots = list(tensors);
    C._backward(roots, seeds(roots, grads), retain ?? create, create, list(inputs));
  }

  /** The gradients of the sum of outputs by each input, nothing accumulated. @returns {(Tensor | null)[]} */
  function grad(outputs, inputs, ...rest) {
    const options = isOptions(rest.at(-1)) ? rest.pop() : {};
    const [
      grads = options.grad_outputs, retain = options.retain_graph, create = options.create_graph ?? false,
      unused = options.allow_unused, materialize = options.materialize_grads ?? false,
    ] = rest;
    const roots = list(outputs);
    const wanted = list(inputs);
    return C._grad(roots, wanted, seeds(roots, grads), retain ?? create, create, unused ?? materialize, materialize);
  }

  const no_grad = (fn) => withModes(MODES.GRAD, 0, fn);
  const enable_grad = (fn) => withModes(0, MODES.GRAD, fn);
  const grad_mode = (on, fn) => (on ? enable_grad(fn) : no_grad(fn));
  const inference_mode = (fn) => withModes(MODES.GRAD, MODES.INFERENCE, fn);
  const is_grad_enabled = () => Boolean(engine.modes & MODES.GRAD);
  const is_inference_mode_enabled = () => Boolean(engine.modes & MODES.INFERENCE);
  /** Sets recording for all that follows. */
  const set_grad_enabled = (on) => { engine.modes = on ? engine.modes | MODES.GRAD : engine.modes & ~MODES.GRAD; };
  const allow_mutation_on_saved_tensors = () => true;

  // ---------------------------------------------------------------- functional

  /** Fresh leaves with the values of the inputs, the function run on them, and its results. */
  function run(func, inputs, create) {
    const leaves = list(inputs).map((x) => (create && x.requires_grad ? x.view_as(x) : x.detach().clone().requires_grad_()));
    const outputs = func(...leaves);
    return { leaves, outputs, flat: list(outputs) };
  }
  const like = (inputs, values) => (Array.isArray(inputs) ? values : values[0]);

  /** J[i][j]: the derivative of each output by each input, of their shapes one after the other. */
  function jacobian(func, inputs, ...rest) {
    const options = isOptions(rest.at(-1)) ? rest.pop() : {};
    const create = rest[0] ?? options.create_graph ?? false;
    const { leaves, outputs, flat } = run(func, inputs, create);
    const rows = flat.map((y) => {
      const units = functions.eye(y.numel(), { dtype: y.dtype });
      const grads = Array.from({ length: y.numel() }, (_, k) =>
        grad(y, leaves, { grad_outputs: units.index(k).reshape(y.shape), retain_graph: true, create_graph: create, materialize_grads: true }));
      const byInput = leaves.map((x, j) => functions.stack(grads.map((row) => row[j])).reshape([...y.shape, ...x.shape]));
      return like(inputs, create ? byInput : byInput.map((g) => g.detach()));
    });
    return like(outputs, rows);
  }

  /** H[i][j]: the second derivatives of a function of one number. */
  function hessian(func, inputs, ...rest) {
    const many = Array.isArray(inputs);
    return jacobian((...xs) => {
      const y = func(...xs);
      if (y.numel() !== 1) throw new RuntimeError('The Tensor returned by the function given to hessian should contain a single element');
      const first = grad(y, xs, { create_graph: true, materialize_grads: true });
      return many ? first : first[0];
    }, inputs, ...rest);
  }

  /** [outputs, v J]. */
  function vjp(func, inputs, v, { create_graph = false } = {}) {
    const { leaves, outputs, flat } = run(func, inputs, create_graph);
    const found = grad(flat, leaves, { grad_outputs: v === undefined ? undefined : list(v), create_graph, materialize_grads: true });
    return [outputs, like(inputs, found)];
  }

  /** [outputs, H v] of a function of one number. */
  function hvp(func, inputs, v, { create_graph = false } = {}) {
    const { leaves, outputs, flat } = run(func, inputs, true);
    const first = grad(flat, leaves, { create_graph: true, materialize_grads: true });
    const found = grad(first, leaves, { grad_outputs: list(v), create_graph, materialize_grads: true });
    return [outputs, like(inputs, found)];
  }

  return {
    backward, grad, no_grad, enable_grad, grad_mode, inference_mode, set_grad_enabled,
    is_grad_enabled, is_inference_mode_enabled, allow_mutation_on_saved_tensors, Tensor,
    graph: { allow_mutation_on_saved_tensors },
    functional: { jacobian, hessian, vjp, hvp, vhp: hvp },
  };
}

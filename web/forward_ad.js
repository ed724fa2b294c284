/** Forward mode: tangents that are computed beside values, and so directional derivatives. */
import { bind, RuntimeError, ValueError, within } from './engine.js';
import { typeName } from './hooks.js';

/** @typedef {import('./tensor.js').Tensor} Tensor */

/** torch.autograd.forward_ad over a library of tensors. */
export function makeForwardAd(library) {
  const { C, Tensor, spaces, remember, recall } = library;
  let current = -1;

  /** Enters a level, within which dual tensors may be made: one at a time, as in PyTorch. @returns {number} */
  const enter_dual_level = () => (current = C._enter_dual_level());

  /** Leaves the level, which forgets every tangent made in it. @param {...(number | {level?: number})} rest */
  function exit_dual_level(...rest) {
    const { level } = bind('exit_dual_level', { level: current }, rest);
    if (level !== current) throw new RuntimeError('Trying to exit a forward AD level that was not the last one that was created.');
    C._exit_dual_level(level);
    current = level - 1;
  }

  /** Runs fn, which is given the level, within a level of its own. @template T @param {(level: number) => T} fn @returns {T} */
  const dual_level = (fn) => within(enter_dual_level, () => exit_dual_level(), () => fn(current));

  /** A view of a tensor that carries a tangent, as functions of it then do: the directional derivative.
   * @param {Tensor} tensor @param {Tensor} tangent of its shape @param {...(number | {level?: number})} rest @returns {Tensor} */
  function make_dual(tensor, tangent, ...rest) {
    const { level } = bind('make_dual', { level: current }, rest);
    if (level < 0)
      throw new RuntimeError('Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.');
    for (const [name, { dtype }] of Object.entries({ primal: tensor, tangent }))
      if (!dtype.is_floating_point) throw new ValueError(`Expected ${name} to be floating point or complex, but got: ${dtype}`);
    const made = spaces.f._make_dual(tensor, tangent, level);
    remember(tangent);
    return made;
  }

  /** The parts of a dual tensor: a view of it without tangent, and the tangent itself or null.
   * @param {Tensor} tensor @param {...(number | {level?: number})} rest @returns {{primal: Tensor, tangent: Tensor | null}} */
  function unpack_dual(tensor, ...rest) {
    const { level } = bind('unpack_dual', { level: current }, rest);
    if (level < 0) return { primal: tensor, tangent: null };
    const [primal, tangent] = spaces.f._unpack_dual(tensor, level);
    return { primal, tangent: tangent && (recall(tangent.handle) ?? remember(tangent)) };
  }

  // ---------------------------------------------------------------- through custom functions

  /** Prepares the call of a Function with these arguments (null: no tensor): its forward runs with forward
   * mode off, its jvp after that. Null where forward mode is off. */
  library.suspendTangents = (inputs) => {
    if (current < 0 || !C._is_fwd_grad_enabled()) return null;
    const tangents = inputs.map((t) => (t && C._fw_grad(t)) ?? null);
    const versions = tangents.map((t) => t?._version);
    const resume = () => C._set_fwd_grad_enabled(true);
    C._set_fwd_grad_enabled(false);

    /** What jvp gets for an argument. */
    const argument = (ctx) => (tensor, i) => {
      if (tangents[i]) return recall(tangents[i].handle) ?? tangents[i];
      return tensor && ctx.materialize_grads && tensor.dtype.is_floating_point ? spaces.f.zeros_like(tensor) : null;
    };

    /** Whether forward wrote to an input with a tangent, which jvp has to write to then. */
    function isWritten(raw, tangent) {
      const at = inputs.findIndex((t) => t?.handle === raw.handle);
      if (at < 0 || !tangents[at]) return false;
      if (tangents[at]._version === versions[at])
        throw new RuntimeError('An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is ' +
          'modifying an input inplace, then the jvp function must modify the corresponding gradient inplace.');
      if (tangent?.handle !== tangents[at].handle)
        throw new RuntimeError('An inplace custom Function is not returning the forward mode gradients as-is. If the forward is ' +
          'modifying an input inplace, then the jvp function must modify the gradient inplace and return it as-is.');
      return true;
    }

    /** Sets the tangent of an output, which forward returned as `raw`. */
    function give(place, raw, result, tangent, { constant, dirty }) {
      if (!(raw instanceof Tensor) || !raw.dtype.is_floating_point || constant.includes(raw.handle)) {
        if (tangent)
          throw new RuntimeError(`Function's jvp returned a gradient at position ${place}, but  the corresponding forward output is ` +
            'not a differentiable Tensor.You should return None at that position instead.');
        return;
      }
      const written = dirty.includes(raw.handle);
      if (written && isWritten(raw, tangent)) return;
      if (!tangent) throw new RuntimeError('Expected both tensor and its forward grad to be floating point or complex');
      if (result._is_view() && !written && !tangent._is_view())
        throw new RuntimeError('A custom Function\'s forward is returning a view (or an input as-is) but the jvp is not returning a view.');
      C._set_fw_grad(result, tangent);
    }

    /** Calls jvp if an argument has a tangent, and gives its results to those of forward. */
    function carry(ctx, outputs, results, marks) {
      if (!tangents.some(Boolean)) return;
      const given = inputs.map(argument(ctx));
      const made = within(() => C._set_fwd_grad_enabled(false), resume, () => ctx.push(marks.saved, given));
      const grads = Array.isArray(made) ? made : [made ?? null];
      grads.forEach((grad, place) => {
        if (grad !== null && !(grad instanceof Tensor))
          throw new RuntimeError(`expected Variable or None (got ${typeName(grad)}) for grad output ${place}.`);
      });
      if (grads.length !== results.length)
        throw new RuntimeError(`Function's jvp returned an invalid number of forward gradients (expected ${results.length} but got ${grads.length})`);
      grads.forEach((grad, place) => give(place, outputs[place], results[place], grad, marks));
    }

    return { resume, carry };
  };

  return { enter_dual_level, exit_dual_level, dual_level, make_dual, unpack_dual };
}

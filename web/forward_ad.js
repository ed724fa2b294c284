/** Forward mode: tangents that are computed beside values, and so directional derivatives. */
import { bind, ValueError, within } from './engine.js';

/** @import { Given } from './engine.js' @import { Tensor } from './tensor.js' @typedef {{level?: number}} LevelOptions */

/** torch.autograd.forward_ad over a library of tensors. */
export function makeForwardAd(library, engine) {
  const { C, spaces, remember, original } = library;
  const current = () => engine.view.i32[engine.layout.frame_dual_levels / 4] - 1;

  /** Enters a level, within which dual tensors may be made: one at a time, as in PyTorch. @returns {number} */
  const enter_dual_level = () => C._enter_dual_level();

  /** Leaves the level, which forgets every tangent made in it. @param {...Given<LevelOptions>} rest */
  function exit_dual_level(...rest) {
    C._exit_dual_level(bind('exit_dual_level', { level: current() }, rest).level);
  }

  /** Runs fn, which is given the level, within a level of its own. @template T @param {(level: number) => T} fn @returns {T} */
  const dual_level = (fn) => within(enter_dual_level, () => exit_dual_level(), () => fn(current()));

  /** A view of a tensor that carries a tangent, as functions of it then do: the directional derivative.
   * @param {Tensor} tensor @param {Tensor} tangent of its shape @param {...Given<LevelOptions>} rest @returns {Tensor} */
  function make_dual(tensor, tangent, ...rest) {
    for (const [name, { dtype }] of Object.entries({ primal: tensor, tangent }))
      if (!dtype.is_floating_point) throw new ValueError(`Expected ${name} to be floating point or complex, but got: ${dtype}`);
    const made = spaces.f._make_dual(tensor, tangent, bind('make_dual', { level: current() }, rest).level);
    remember(tangent);
    return made;
  }

  /** The parts of a dual tensor: a view of it without tangent, and the tangent itself or null.
   * @param {Tensor} tensor @param {...Given<LevelOptions>} rest @returns {{primal: Tensor, tangent: Tensor | null}} */
  function unpack_dual(tensor, ...rest) {
    const [primal, tangent] = spaces.f._unpack_dual(tensor, bind('unpack_dual', { level: current() }, rest).level);
    return { primal, tangent: tangent && remember(original(tangent)) };
  }

  return { enter_dual_level, exit_dual_level, dual_level, make_dual, unpack_dual };
}

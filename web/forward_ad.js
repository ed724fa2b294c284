/** Forward mode: computes tangents along with values, and so directional derivatives. */
import { bind } from './arguments.js';
import { runWithin } from './engine.js';

/** @import { Given } from './arguments.js' @import { Tensor } from './tensor.js' @typedef {{level?: number}} LevelOptions */

/** torch.autograd.forward_ad over a library of tensors. */
export function makeForwardAd(library) {
  const { C, spaces, remember, original } = library;
  const levelOf = (name, rest) => bind(name, { level: null }, rest).level;

  /** Enters a level, in which dual tensors may be made: one at a time, as in PyTorch. @returns {number} */
  const enter_dual_level = () => C._enter_dual_level();

  /** Leaves the level, and drops every tangent made in it. @type {(...rest: Given<LevelOptions>[]) => void} */
  const exit_dual_level = (...rest) => C._exit_dual_level(levelOf('exit_dual_level', rest));

  /** Runs fn, which gets the level, within a new level. @template T @param {(level: number) => T} fn @returns {T} */
  const dual_level = (fn) =>
    runWithin(
      enter_dual_level,
      () => exit_dual_level(),
      () => fn(0),
    );

  /** A view of a tensor with a tangent; results of functions of it have tangents too: directional derivatives.
   * @param {Tensor} tensor @param {Tensor} tangent of its shape @param {...Given<LevelOptions>} rest @returns {Tensor} */
  function make_dual(tensor, tangent, ...rest) {
    const made = spaces.torch._make_dual(tensor, tangent, levelOf('make_dual', rest));
    remember(tangent);
    return made;
  }

  /** The parts of a dual tensor: a view of it without tangent, and the tangent itself or null.
   * @param {Tensor} tensor @param {...Given<LevelOptions>} rest @returns {{primal: Tensor, tangent: Tensor | null}} */
  function unpack_dual(tensor, ...rest) {
    const [primal, tangent] = spaces.torch._unpack_dual(tensor, levelOf('unpack_dual', rest));
    return { primal, tangent: tangent && remember(original(tangent)) };
  }

  return { enter_dual_level, exit_dual_level, dual_level, make_dual, unpack_dual };
}

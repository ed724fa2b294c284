/** Modes of recording: switches, and scopes that take the function to run in them. */
import { atMost, typeName } from './arguments.js';
import { MODES } from './enumerations.js';
import { dtypes } from './tensor.js';

const mustBeBool = (name, value) => {
  if (typeof value !== 'boolean')
    throw new TypeError(
      `${name}(): argument 'enabled' (position 1) must be bool, not ${typeName(value)}`,
    );
  return value;
};

/** torch.no_grad and its like over a library of tensors. */
export function makeModes({ withModes, C }, engine) {
  const { GRAD, INFERENCE, ONE_THREAD, AUTOCAST, FLOAT16, CAST_ANEW } = MODES;

  /** A function that sets a mode for good, or while fn runs. */
  const switchOf = (name, bit, meaning) => (mode, fn) => {
    const on = mustBeBool(name, mode) === meaning;
    if (fn !== undefined) return withModes(bit, on ? bit : 0, fn);
    engine.modes = on ? engine.modes | bit : engine.modes & ~bit;
  };

  /** Sets recording for all that follows, or while fn runs. @type {<T>(mode: boolean, fn?: () => T) => T | undefined} */
  const set_grad_enabled = switchOf('set_grad_enabled', GRAD, true);
  /** Accepted and remembered, but backward always runs on the calling thread.
   * @type {<T>(mode: boolean, fn?: () => T) => T | undefined} */
  const set_multithreading_enabled = switchOf('set_multithreading_enabled', ONE_THREAD, false);

  /** Runs fn without recording. @template T @param {() => T} fn @returns {T} */
  const no_grad = (fn) => withModes(GRAD, 0, fn);
  /** Runs fn with recording, even within no_grad (but not within inference_mode). @template T @param {() => T} fn @returns {T} */
  const enable_grad = (fn) => withModes(0, GRAD, fn);
  /** Runs fn with recording on or off. @template T @param {boolean} mode @param {() => T} fn @returns {T} */
  const grad_mode = (mode, fn) => (mustBeBool('grad_mode', mode) ? enable_grad(fn) : no_grad(fn));
  Object.assign(grad_mode, { no_grad, enable_grad, set_grad_enabled });

  /** Runs fn without recording; tensors made inside are never recorded, later either. `inference_mode(false, fn)` ends the mode
   * within it. @template T @param {[() => T] | [boolean, () => T]} args @returns {T} */
  function inference_mode(...args) {
    const [mode, fn] = args.length === 1 ? [true, args[0]] : atMost(2, 'inference_mode', args);
    return mustBeBool('inference_mode', mode)
      ? withModes(GRAD, INFERENCE | ONE_THREAD, fn)
      : withModes(INFERENCE | ONE_THREAD, GRAD, fn);
  }

  let casting = 0; // nested scopes of autocast
  /** Runs fn with products and convolutions computed in bfloat16 or float16, losses and decompositions in
   * float32. A parameter is cast once until the outermost of these scopes ends.
   * @template T @param {[() => T] | [{ dtype?: DType, enabled?: boolean, cache_enabled?: boolean }, () => T]} args
   * @returns {T} */
  function autocast(...args) {
    const [options, fn] = args.length === 1 ? [{}, args[0]] : atMost(2, 'autocast', args);
    const { dtype = dtypes.bfloat16, enabled = true, cache_enabled = true } = options;
    if (dtype !== dtypes.bfloat16 && dtype !== dtypes.float16)
      throw new TypeError(`autocast(): dtype must be bfloat16 or float16, not ${typeName(dtype)}`);
    mustBeBool('autocast', enabled);
    const bits = AUTOCAST | FLOAT16 | CAST_ANEW;
    const set =
      (enabled ? AUTOCAST : 0) |
      (dtype === dtypes.float16 ? FLOAT16 : 0) |
      (cache_enabled ? 0 : CAST_ANEW);
    casting++;
    try {
      return withModes(bits, set, fn);
    } finally {
      if (--casting === 0) C._autocast_forget();
    }
  }

  return {
    autocast,
    no_grad,
    enable_grad,
    grad_mode,
    set_grad_enabled,
    inference_mode,
    set_multithreading_enabled,
    /** @returns {boolean} */
    is_grad_enabled: () => Boolean(engine.modes & GRAD),
    /** @returns {boolean} */
    is_inference_mode_enabled: () => Boolean(engine.modes & INFERENCE),
    /** @returns {boolean} */
    is_autocast_enabled: () => Boolean(engine.modes & AUTOCAST),
  };
}

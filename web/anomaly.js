/** Anomaly mode: a backward that fails reports the place of its forward. While the mode is on, the engine asks for a trace whenever
 * it records a node, and passes its number again when that node fails. */
import { bind } from './arguments.js';
import { runWithin } from './engine.js';
import { HOST } from './enumerations.js';

/** @import { Given } from './arguments.js'
 * @typedef {{check_nan?: boolean}} AnomalyOptions */

const HERE = new URL('.', import.meta.url).href;
const PLUMBING = [
  'anomaly',
  'autograd',
  'engine',
  'function',
  'hooks',
  'modes',
  'owner',
  'profiler',
  'tensor',
].map((name) => `${HERE}${name}.js`);

/** The present stack, innermost call first, without the library's own calls. */
export function callers() {
  const most = Error.stackTraceLimit;
  Error.stackTraceLimit = 64;
  const lines = new Error().stack.split('\n').map((line) => line.trim());
  Error.stackTraceLimit = most;
  return lines.filter(
    (line) => /:\d+:\d+\)?$/.test(line) && !PLUMBING.some((file) => line.includes(file)),
  );
}

/** torch.autograd.detect_anomaly and its like over a library of tensors. */
export function makeAnomaly({ hooks, spaces: { torch: f } }, engine) {
  hooks.runners[HOST.TRACE] = () => [hooks.keep(callers())];
  hooks.runners[HOST.REPORT] = (id, [heading]) => {
    const trace = hooks.objects.get(id);
    engine.warnings.push(engine.text(heading) + (trace ? `  ${trace.join('\n  ')}` : ''));
  };
  hooks.runners[HOST.LINE] = (id) => engine.tell(hooks.objects.get(id)?.[0] ?? '');

  /** Turns anomaly mode on or off, at once or while fn (the last argument) runs; with `check_nan` a NaN in a gradient is a failure.
   * @param {boolean} mode @param {...(Given<AnomalyOptions> | (() => any))} rest @returns {any} the result of fn */
  function set_detect_anomaly(mode, ...rest) {
    const fn = typeof rest.at(-1) === 'function' ? rest.pop() : null;
    const { check_nan } = bind('set_detect_anomaly', { check_nan: true }, rest);
    const before = [f.is_anomaly_enabled(), f.is_anomaly_check_nan_enabled()];
    f.set_anomaly_enabled(mode, check_nan);
    return fn
      ? runWithin(
          () => before,
          () => f.set_anomaly_enabled(...before),
          fn,
        )
      : undefined;
  }

  /** Runs fn; a backward in it that fails warns with the stack of the call that made the failing node. Slow: for debugging.
   * @template T @param {() => T} fn @param {...Given<AnomalyOptions>} rest @returns {T} */
  function detect_anomaly(fn, ...rest) {
    engine.onWarning(
      'Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.',
    );
    return set_detect_anomaly(true, ...rest, fn);
  }

  /** @returns {boolean} */
  const is_anomaly_detection_enabled = () => f.is_anomaly_enabled();
  return { detect_anomaly, set_detect_anomaly, is_anomaly_detection_enabled };
}

/** The Graph room's engine: runs programs and records them. A program that does not end is stopped with the worker. */
import { load } from '../../index.js';
import { serve, tell } from '../serve.js';
import { instrument, record } from './record.js';
import { compile, lineOfSyntaxError } from './snippet.js';

const MOST_LINES = 200;
let torch;

const formatValue = (value) => {
  if (typeof value === 'string') return value;
  if (value instanceof torch.Tensor) return value.toString();
  if (Array.isArray(value)) return `[${value.map(formatValue).join(', ')}]`;
  return value !== null &&
    typeof value === 'object' &&
    Object.getPrototypeOf(value) === Object.prototype
    ? JSON.stringify(value)
    : String(value);
};

/** Runs a program. @returns {{passes: any[], variables: any[], failure: any, milliseconds: number}} */
function run(source) {
  let lines = 0;
  const print = (...values) => {
    if (++lines <= MOST_LINES) tell('printed', values.map(formatValue).join(' '));
  };
  console.log = console.info = console.warn = print;
  torch.set_grad_enabled(true); // the last program may have changed these
  torch.autograd.set_detect_anomaly(false);
  torch.autograd.graph.set_saved_tensor_mode('snapshot');
  const began = performance.now();
  let program;
  try {
    program = compile(source);
  } catch (error) {
    return {
      passes: [],
      variables: [],
      failure: {
        name: error.name,
        message: error.message,
        line: lineOfSyntaxError(error),
        syntax: true,
      },
    };
  }
  const found = record(source, (names) => program(torch, print, names));
  return {
    ...found,
    milliseconds: performance.now() - began,
    memory: torch._engine.memory.buffer.byteLength,
    unusable: torch._engine.unusable,
  };
}

serve({
  async start() {
    torch = await load();
    instrument(torch);
  },
  run,
});

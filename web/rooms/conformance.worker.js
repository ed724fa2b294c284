/** The Conformance room's engine: runs the sweep's cases and compares each with PyTorch's. */
import { load } from '../index.js';
import { agrees, decode, formatNested, show } from './expected.js';
import { breathe, serve, tell } from './serve.js';
import { applies, dtypesOf, elements, MODES, run } from './sweep.js';

const FILE = new URL('../conformance.json', import.meta.url);
const TURN = 100; // milliseconds between two reports
let torch, file, expected;
let running = 0; // the number of the sweep that may continue

/** Loads the engine and the file; returns the ops in order, and the number of cases. */
async function start() {
  torch = await load();
  torch._engine.onWarning = () => {};
  const response = await fetch(FILE);
  if (!response.ok)
    throw new Error(`no results of PyTorch at ${FILE.pathname}: ${response.status}`);
  file = await response.json();
  expected = decode(file);
  let k = 0;
  for (const op of file.ops) {
    op.first = k;
    k += op.calls.length;
  }
  const cases = file.ops.flatMap((op) =>
    op.calls.map((call) =>
      Object.keys(MODES)
        .filter((mode) => applies(op, call, mode))
        .reduce((count, mode) => count + dtypesOf(op, mode).length, 0),
    ),
  );
  return {
    torch: file.torch,
    ops: file.ops.map((op) => op.id),
    cases: cases.reduce((a, b) => a + b, 0),
    columns: columns(),
  };
}

/** Every mode and dtype in which some op has cases. */
const columns = () =>
  Object.keys(MODES).flatMap((mode) =>
    [...new Set(file.ops.flatMap((op) => dtypesOf(op, mode)))].map((dtype) => [mode, dtype]),
  );

/** All cases of an op in one mode and dtype. */
function* cases(op, mode, dtype) {
  if (!dtypesOf(op, mode).includes(dtype)) return;
  for (const [i, call] of op.calls.entries()) {
    const got = run(torch, file.tensors, op, call, mode, dtype);
    if (got === undefined) continue;
    const wanted = expected.outcome(op.first + i, op, mode, dtype);
    yield { call, got, wanted, same: wanted === null ? null : agrees(got, wanted, mode) };
  }
}

/** The state of a cell of the matrix: '' no case, 'open' nothing to compare with, 'error' only errors, all PyTorch's, 'same',
 * 'differs'; then the numbers of cases and of differing ones. */
function cell(op, mode, dtype) {
  let [count, wrong, values, compared] = [0, 0, 0, 0];
  for (const { got, same } of cases(op, mode, dtype)) {
    count++;
    if (same === false) wrong++;
    if (same !== null) compared++;
    if (typeof got !== 'string') values++;
  }
  const kind = !count ? '' : wrong ? 'differs' : !compared ? 'open' : values ? 'same' : 'error';
  return { kind, count, wrong, compared };
}

/** Runs all cases; tells `rows`: [number of the op, its cells, milliseconds]. True if it was not replaced by another sweep. */
async function sweep() {
  const mine = ++running;
  let rows = [];
  let since = performance.now();
  const all = columns();
  for (const [i, op] of file.ops.entries()) {
    const began = performance.now();
    const cells = all.map(([mode, dtype]) => cell(op, mode, dtype));
    const now = performance.now();
    rows.push([i, cells, now - began]);
    if (now - since < TURN) continue;
    tell('rows', rows);
    rows = [];
    await breathe();
    if (mine !== running) return false;
    since = performance.now();
  }
  tell('rows', rows);
  return true;
}

/** The cases of a cell, as texts. */
function detail({ number, mode, dtype }) {
  const op = file.ops[number];
  return Array.from(cases(op, mode, dtype), ({ call, got, wanted, same }) => ({
    call: formatCall(op, call, mode),
    inputs: inputs(call, dtype),
    got: show(got),
    wanted: show(wanted),
    same,
  }));
}

const NAMES = 'xyzabcdefghijklmnopqrstuvw';

/** The tensors of a call, in order. */
function tensors(value) {
  if (Array.isArray(value)) return value.flatMap(tensors);
  if (value === null || typeof value !== 'object') return [];
  return 'tensor' in value ? [value] : Object.values(value).flatMap(tensors);
}

function inputs(call, dtype) {
  return tensors(call)
    .map(({ tensor }, i) => {
      const what = file.tensors[tensor];
      const kind = what.dtype ?? dtype;
      return `${NAMES[i]} = ${formatNested(what.shape, elements(what, kind))} ${kind}`;
    })
    .join('\n');
}

/** The call as source text. */
function formatCall(op, [args, options], mode) {
  let used = 0;
  const text = (value) => {
    if (Array.isArray(value)) return `[${value.map(text).join(', ')}]`;
    if (value === null || typeof value !== 'object') return JSON.stringify(value);
    return 'tensor' in value ? NAMES[used++] : (value.float ?? `torch.${value.dtype}`);
  };
  const id = mode === 'in-place' ? op.inplace : op.id;
  const given = args.map(text);
  const named = Object.entries(options).map(([name, value]) => `${name}: ${text(value)}`);
  if (named.length) given.push(`{ ${named.join(', ')} }`);
  if (id.startsWith('Tensor.')) return `${given[0]}.${id.slice(7)}(${given.slice(1).join(', ')})`;
  return `torch.${id}(${given.join(', ')})`;
}

serve({
  start,
  sweep,
  detail,
  stop: () => {
    running++;
  },
});

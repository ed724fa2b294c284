/** PyTorch's results for the sweep's cases, from web/conformance.json (tests/parity/conformance.py). */
import { dtypesOf, MODES } from './sweep.js';

const NAMED = { 'nan': NaN, 'inf': Infinity, '-inf': -Infinity };
const numeric = (value) => NAMED[value] ?? value;

/** The tolerance of a number: [relative, absolute], by the dtype of the result. Integers and bools must be equal. */
function tolerance(dtype, mode) {
  if (mode === 'second order') return dtype === 'float32' ? [1e-3, 1e-4] : [1e-4, 1e-8];
  if (dtype === 'float16' || dtype === 'complex32') return [4e-3, 1e-3];
  if (dtype === 'bfloat16') return [3e-2, 1e-2];
  if (dtype === 'float32' || dtype === 'complex64') return [1e-4, 1e-5];
  if (dtype === 'float64' || dtype === 'complex128')
    return mode === 'forward' ? [1e-6, 1e-9] : [1e-5, 1e-8];
  return [0, 0];
}

const close = (a, b, [rtol, atol]) =>
  a === b ||
  (Number.isFinite(a) && Number.isFinite(b)
    ? Math.abs(a - b) <= atol + rtol * Math.abs(b)
    : Number.isNaN(a) && Number.isNaN(b));

/** Decodes the file: `outcome(k, op, mode, dtype)` of the k-th call is a list of leaves as in sweep.js, the name of an error, or
 * null if nothing is compared. */
export function decode(file) {
  const written = [];
  const values = file.values.map((row) =>
    row.map((value) => {
      if (!Array.isArray(value)) return written[value];
      written.push({ shape: value[0], elements: value[1]?.map(numeric) ?? null });
      return written.at(-1);
    }),
  );
  return {
    outcome(k, op, mode, dtype) {
      const row = file.rows[k];
      const modes = Object.keys(MODES).filter((name) => name !== 'in-place' || op.inplace);
      const dtypes = file.cases[row][modes.indexOf(mode)];
      const place = Math.min(dtypesOf(op, mode).indexOf(dtype), dtypes.length - 1);
      const outcome = file.outcomes[row][dtypes[place]];
      if (!Array.isArray(outcome)) return outcome;
      return outcome.map((leaf) => {
        if (typeof leaf === 'number') return { dtype, ...values[row][leaf] };
        return Array.isArray(leaf) ? { dtype: leaf[0], ...values[row][leaf[1]] } : leaf.value;
      });
    },
  };
}

/** Whether an outcome agrees with PyTorch's. */
export function agrees(got, wanted, mode) {
  if (!Array.isArray(got) || !Array.isArray(wanted)) return got === wanted;
  return got.length === wanted.length && got.every((leaf, i) => sameLeaf(leaf, wanted[i], mode));
}

function sameLeaf(leaf, wanted, mode) {
  if (typeof leaf === 'number' || typeof leaf === 'bigint')
    return close(Number(leaf), numeric(wanted), tolerance('float64', mode));
  if (leaf === null || typeof leaf !== 'object') return leaf === wanted;
  if (leaf.dtype !== wanted?.dtype || leaf.shape.join() !== wanted.shape.join()) return false;
  if (!leaf.elements || !wanted.elements) return leaf.elements === wanted.elements;
  const [elements, allowed] = abridge(leaf.elements, tolerance(leaf.dtype, mode));
  return elements.every((value, i) => close(value, wanted.elements[i], allowed[i]));
}

/** The file has up to MOST elements in full; of more elements, SHOWN elements and a weighted sum of all. */
const MOST = 8;
const SHOWN = 3;
const place = (i, length) => Math.floor((i * (length - 1)) / (SHOWN - 1));
const weight = (i) => 1 + ((7 * i) % 11);

/** The elements in the file's form, and the tolerance of each. */
function abridge(elements, [rtol, atol]) {
  const all = Array.from(elements, Number);
  const some =
    all.length > MOST ? Array.from({ length: SHOWN }, (_, i) => all[place(i, all.length)]) : all;
  const allowed = some.map(() => [rtol, atol]);
  if (all.length <= MOST) return [some, allowed];
  const sum = (of) => all.reduce((before, value, i) => before + of(value) * weight(i), 0);
  return [
    [...some, sum((v) => v)],
    [...allowed, [0, sum((v) => atol + rtol * Math.abs(v)) || 0]],
  ];
}

/** An outcome as text: tensors as nested lists. */
export function show(outcome) {
  if (outcome === null)
    return 'nothing to compare with: no derivative there, or known to differ for a reason';
  if (typeof outcome === 'string') return `raises ${outcome}`;
  return outcome.map(showLeaf).join('\n') || 'no gradient';
}

function showLeaf(leaf) {
  if (leaf === null || typeof leaf !== 'object') return String(leaf);
  const { dtype, shape } = leaf;
  const isComplex = dtype.startsWith('complex');
  const count = shape.reduce((a, b) => a * b, 1);
  const isWhole = leaf.elements?.length === count * (isComplex ? 2 : 1);
  const elements = isComplex && isWhole ? toComplex(leaf.elements) : leaf.elements;
  if (!elements) return `${dtype} of shape [${shape}], its elements left open`;
  const whole = isWhole
    ? `${formatNested(shape, elements)} ${dtype}`
    : `${dtype} of shape [${shape}]`;
  if (count <= MOST || isComplex) return whole;
  const [some] = isWhole ? abridge(elements, [0, 0]) : [elements];
  const places = Array.from({ length: SHOWN }, (_, i) => place(i, count));
  return `${whole}\n  elements ${places.join(', ')}: ${some.slice(0, SHOWN).map(brief).join(', ')}; weighted sum of all: ${brief(some[SHOWN])}`;
}

const brief = (value) =>
  typeof value === 'object'
    ? `${brief(value.re)}${value.im < 0 ? '-' : '+'}${brief(Math.abs(value.im))}j`
    : String(Number(Number(value).toPrecision(7)));

/** Complex numbers from their parts. */
const toComplex = (parts) =>
  Array.from({ length: parts.length / 2 }, (_, i) => ({ re: parts[2 * i], im: parts[2 * i + 1] }));

/** Numbers as nested lists of this shape. */
export function formatNested(shape, flat) {
  if (!shape.length) return brief(flat[0]);
  const step = shape.slice(1).reduce((a, b) => a * b, 1);
  return `[${Array.from({ length: shape[0] }, (_, i) => formatNested(shape.slice(1), flat.slice(i * step, (i + 1) * step))).join(', ')}]`;
}

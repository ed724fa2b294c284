/** What layers that are translated from Python mean by Python's operators, texts and errors. */
import { typeName } from '../arguments.js';
import { errorClass, RuntimeError, ValueError } from '../engine.js';

export { RuntimeError, typeName, ValueError };
export const AssertionError = errorClass('AssertionError');
const ZeroDivisionError = errorClass('ZeroDivisionError');

/** The key of the method that sets up a new layer from its arguments by name: Python's `__init__`. */
export const MAKE = Symbol('make');

// ---------------------------------------------------------------- operators

const areEqual = (a, b) => a.length === b.length && a.every((item, i) => equal(item, b[i]));

/** Whether two numbers, texts or sequences are equal. */
export const equal = (a, b) => (Array.isArray(a) && Array.isArray(b) ? areEqual(a, b) : a === b);

/** Whether a sequence or a set has an item. */
export const contains = (whole, item) =>
  whole instanceof Set ? whole.has(item) : whole.includes(item);

/** Whether a value counts as true: an empty sequence does not. */
export function truth(value) {
  if (Array.isArray(value)) return value.length > 0;
  if (value !== null && typeof value === 'object')
    throw new TypeError(`the truth of ${typeName(value)} is not defined here`);
  return Boolean(value);
}

/** Division. */
export function divide(a, b) {
  if (b === 0) throw new ZeroDivisionError('division by zero');
  return a / b;
}

/** Integer division, rounded down. */
export function floorDivide(a, b) {
  if (b === 0) throw new ZeroDivisionError('integer division or modulo by zero');
  return Math.floor(a / b);
}

/** The rest of integer division, with the divisor's sign. */
export function modulo(a, b) {
  if (b === 0) throw new ZeroDivisionError('integer modulo by zero');
  return a - b * Math.floor(a / b);
}

/** A sequence several times over. */
export const repeat = (items, count) =>
  Array.from({ length: Math.max(count, 0) }, () => items).flat();

/** Items of sequences of one length, taken together. */
export function zip(...sequences) {
  const [{ length }] = sequences;
  if (sequences.some((each) => each.length !== length))
    throw new ValueError('zip(): arguments differ in length');
  return Array.from({ length }, (_, i) => sequences.map((each) => each[i]));
}

/** One number as often as wanted; of a sequence a copy. */
export const ntuple = (value, count) =>
  Array.isArray(value) ? [...value] : repeat([value], count);

/** The items in reverse order, each some times. */
export const _reverse_repeat_tuple = (items, count) =>
  [...items].reverse().flatMap((item) => repeat([item], count));

// ---------------------------------------------------------------- texts

/** A float's text: the fewest digits that tell it, with an exponent where Python writes one. */
function floatText(value) {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const [digits, power] = value.toExponential().split('e');
  if (power < -4 || power >= 16) return `${digits}e${power[0]}${power.slice(1).padStart(2, '0')}`;
  const text = String(value);
  return text.includes('.') ? text : `${text}.0`;
}

function numberText(value, areFloats) {
  if (!Number.isInteger(value) || areFloats) return floatText(value);
  return String(value);
}

/** A value's text, as in Python: of a sequence that of a tuple. Numbers are floats if `areFloats`, or if they are no integers. */
export function show(value, areFloats = false) {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return numberText(value, areFloats);
  const items = (whole) => Array.from(whole, (item) => repr(item, areFloats)).join(', ');
  if (Array.isArray(value)) return `(${items(value)}${value.length === 1 ? ',' : ''})`;
  return value instanceof Set ? `{${items(value)}}` : String(value);
}

/** A sequence's text as that of a list. */
export const showList = (items) => `[${items.map((item) => repr(item)).join(', ')}]`;

/** A value's text, with quotes around a string. */
export const repr = (value, areFloats = false) =>
  typeof value === 'string' ? `'${value}'` : show(value, areFloats);

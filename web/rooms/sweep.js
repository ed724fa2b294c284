/**
 * A case of the op sweep: a call of an op in one dtype and one mode, and its outcome.
 *
 * tests/sweep.py, the Python version of this file, writes the calls; nothing here depends on an op.
 */
import { Coded, EngineError } from '../engine.js';
import { TAG } from '../enumerations.js';

const FLOATS = ['float64', 'float32'];
const DTYPES = [...FLOATS, 'int64', 'int32', 'int16', 'int8', 'uint8', 'bool'];
const [HALVES, COMPLEX] = [
  ['float16', 'bfloat16'],
  ['complex128', 'complex64'],
];
const WIDER = [...HALVES, ...COMPLEX];
const WITHOUT_ARRAY = { float16: 'float32', bfloat16: 'float32', complex32: 'complex64' };
/** The modes of a call, with their dtypes. */
export const MODES = {
  'forward': DTYPES,
  'backward': FLOATS,
  'second order': FLOATS,
  'in-place': DTYPES,
  'view': DTYPES,
};

const WIDER_MODES = ['forward', 'backward', 'in-place', 'view'];

/** The dtypes in which an op has cases: in some modes those of all ops, then its own. */
export const dtypesOf = (op, mode) =>
  WIDER_MODES.includes(mode) ? [...MODES[mode], ...(op.dtypes ?? [])] : MODES[mode];

/** The library's function of an op. */
function find(torch, id) {
  const path = id.split('.');
  if (path[0] === 'Tensor') return (self, ...rest) => self[path[1]](...rest);
  return path.reduce((found, name) => found[name], torch);
}

/** Whether an op has a case in this mode: in-place calls need an in-place form and a tensor first. */
export const applies = (op, call, mode) =>
  mode !== 'in-place' || Boolean(op.inplace && call[0][0]?.tensor !== undefined);

/** The outcome of a case: a list of numbers, strings, null and {dtype, shape, elements}, or the name of an error; undefined if the
 * op has no such case. */
export function run(torch, tensors, op, call, mode, dtype) {
  if (!applies(op, call, mode)) return undefined;
  try {
    return torch.scope(() =>
      leaves(torch, new Case(torch, tensors, dtype, mode).run(op, call), op.blank),
    );
  } catch (error) {
    if (error instanceof EngineError) throw error;
    return error.name;
  }
}

/** One call in one dtype, and the tensors that it makes. */
class Case {
  constructor(torch, tensors, dtype, mode) {
    Object.assign(this, { torch, tensors, dtype, mode, leaves: [] });
    this.grad = mode !== 'forward' && [...FLOATS, ...WIDER].includes(dtype);
  }

  run(op, [first, options]) {
    const args = this.makeArgument(first);
    const named = Object.fromEntries(
      Object.entries(options).map(([name, value]) => [name, this.makeArgument(value)]),
    );
    if (op.mutates || this.mode === 'in-place') args[0] = args[0].clone();
    this.torch.manual_seed(0);
    const result = find(this.torch, this.mode === 'in-place' ? op.inplace : op.id)(...args, named);
    if (!this.grad || op.blank) return result;
    const grads = this.gradients(result);
    return ['backward', 'second order'].includes(this.mode) ? grads : [result, grads];
  }

  /** The gradients of the sum of the result's squares by each leaf; in second order, differentiated again. */
  gradients(result) {
    const { torch, mode } = this;
    const again = mode === 'second order';
    const differentiable = (values) =>
      values.filter((t) => t instanceof torch.Tensor && t.requires_grad);
    const grad = (of, create_graph) =>
      WIDER.includes(this.dtype) // these dtypes may have no sum
        ? torch.autograd.grad(of, this.leaves, {
            grad_outputs: of.map((t) => t.detach().mul(2)),
            allow_unused: true,
          })
        : torch.autograd.grad(
            of.map((t) => t.mul(t).sum()).reduce((a, b) => a.add(b)),
            this.leaves,
            { create_graph, allow_unused: true },
          );
    let found = differentiable(flat(result));
    if (!found.length || !this.leaves.length) return [];
    const first = grad(found, again);
    if (!again) return first.map((g) => (g === null || mode !== 'view' ? g : inner(torch, g)));
    found = differentiable(first);
    return found.length ? grad(found, false) : [];
  }

  /** Converts an argument of the description for the library. */
  makeArgument(value) {
    if (Array.isArray(value))
      return value.map((item) =>
        item?.float === undefined ? this.makeArgument(item) : number(item.float),
      );
    if (value === null || typeof value !== 'object') return value;
    if (value.dtype !== undefined) return this.torch[value.dtype];
    if (value.float !== undefined) return float(value.float);
    return this.tensor(this.tensors[value.tensor], value.constant);
  }

  tensor(what, constant) {
    const { torch, mode } = this;
    const dtype = torch[what.dtype ?? this.dtype];
    let [data, shape] = [elements(what, dtype.name), what.shape];
    if (mode === 'view') [data, shape] = outer(data, shape);
    const leaf = torch.tensor(data, { dtype, shape });
    const inexact = dtype.is_floating_point || dtype.is_complex;
    if (this.grad && !constant && inexact) this.leaves.push(leaf.requires_grad_());
    return mode === 'view' ? inner(torch, leaf) : leaf;
  }
}

const number = (text) => Number(text.replace('inf', 'Infinity'));

/** A float, also if its value is whole; within lists it is an ordinary number. */
function float(text) {
  const value = number(text);
  return Number.isInteger(value) ? new Coded(TAG.FLOAT, bits(value)) : value;
}

/** The elements of a described tensor in a dtype. */
export function elements(what, dtype) {
  if (FLOATS.includes(dtype) || HALVES.includes(dtype)) return what.float.map((v) => v / 1024);
  if (COMPLEX.includes(dtype)) {
    const parts = what.float.map((v) => v / 1024);
    return parts.map((re, i) => ({ re, im: parts[parts.length - 1 - i] }));
  }
  if (what[dtype]) return what[dtype];
  return dtype === 'uint8'
    ? what.int.map(Math.abs)
    : dtype === 'bool'
      ? what.int.map((v) => v > 0)
      : what.int;
}

/** The elements and shape of a larger tensor that has these as every other element, or as the second. */
function outer(data, shape) {
  if (!shape.length) return [[0, data[0]], [2]];
  const row = shape.at(-1);
  const wide = new Array((2 * row + 1) * shape.slice(0, -1).reduce((a, b) => a * b, 1)).fill(0);
  data.forEach((v, i) => {
    wide[(2 * row + 1) * Math.floor(i / row) + 2 * (i % row) + 1] = v;
  });
  return [wide, [...shape.slice(0, -1), 2 * row + 1]];
}

/** The part of a tensor of `outer` that has the given elements. */
function inner(torch, tensor) {
  const { shape } = tensor;
  return shape.length === 1 && shape[0] === 2
    ? tensor.index(1)
    : tensor.index(torch.ellipsis, torch.slice(1, null, 2));
}

const flat = (value) => (Array.isArray(value) ? value.flatMap(flat) : [value]);

function leaves(torch, result, blank) {
  return flat(result).map((value) => {
    if (value instanceof torch.Tensor) {
      const { dtype, shape } = value;
      const plain = WITHOUT_ARRAY[dtype.name] // in a dtype that has arrays
        ? value.detach().to(torch[WITHOUT_ARRAY[dtype.name]])
        : value;
      return { dtype: dtype.name, shape, elements: blank ? null : plain.toTypedArray() };
    }
    return value?.name ?? value ?? null;
  });
}

const text = new TextEncoder();

/** An outcome as pieces of bytes, equal in each language: numbers as float64, with one bit pattern for NaN. */
export function encode(outcome) {
  if (typeof outcome === 'string') return [text.encode(`${outcome}\n`)];
  return outcome.flatMap((leaf) => {
    if (typeof leaf === 'number' || typeof leaf === 'bigint')
      return [new Uint8Array(new BigInt64Array([bits(Number(leaf))]).buffer)];
    if (leaf === null || typeof leaf !== 'object')
      return [text.encode(`${PYTHON[leaf] ?? leaf}\n`)];
    const head = text.encode(`${leaf.dtype} [${leaf.shape.join(', ')}]\n`);
    return leaf.elements ? [head, new Uint8Array(leaf.elements.buffer)] : [head];
  });
}

const PYTHON = { true: 'True', false: 'False', null: 'None' };

/** The bits of a float64. */
const bits = (value) =>
  Number.isNaN(value) ? 0x7ff8000000000000n : new BigInt64Array(Float64Array.of(value).buffer)[0];

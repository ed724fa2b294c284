/**
 * Tensors, and the functions and methods of the engine's op table: this file does not list ops.
 *
 * A call takes positional arguments and a trailing options object: `x.sum(1, {keepdim: true})`. Integral numbers are passed as
 * integers, all others as floats. Only `tensor()` takes numbers as float32 by default, bigints as int64, booleans as bool and
 * complex numbers, `{re: 1, im: -2}`, as complex64.
 */
import { atMost, bind, isComplex, isOptions, makeBinder, typeName } from './arguments.js';
import {
  ABSENT,
  Coded,
  errorClass,
  IndexError,
  PENDING,
  RuntimeError,
  ValueError,
  runWithin,
} from './engine.js';
import { CODE, FLAG, ITEM, MODE, TAG } from './enumerations.js';
import { makeHooks } from './hooks.js';
import { makeOwners, OWNED } from './owner.js';

/** @typedef {InstanceType<ReturnType<typeof makeTensors>['Tensor']>} Tensor */
/** @import { Complex, Given } from './arguments.js'
 * @typedef {{gradient?: Tensor | null, retain_graph?: boolean | null, create_graph?: boolean, inputs?: Places | null}} TensorBackwardOptions */

/** Converts a number to an integer element from `least` to `most`: drops the fraction, and raises if it does not fit. */
const integer = (name, least, most, of) => (v) => {
  if (isComplex(v)) throw new TypeError("'complex' object cannot be interpreted as an integer");
  if (typeof v === 'bigint' && BigInt.asIntN(64, v) !== v)
    throw new ValueError('Overflow when unpacking long long');
  const number = Number(v);
  const lowest = least === 0 && Number.isInteger(number) ? -most : least; // negative integers wrap around, as in PyTorch
  if (number >= lowest && number <= most) return of(v);
  throw new RuntimeError(`value cannot be converted to type ${name} without overflow`);
};

function real(v) {
  if (isComplex(v)) throw new TypeError('must be real number, not complex');
  const number = Number(v);
  if (typeof v === 'bigint' && !Number.isFinite(number))
    throw new (errorClass('OverflowError'))('int too large to convert to float');
  return number;
}

/** Converts to int64: a bigint that fits is unchanged; the largest number below 2^63 is 2^63 - 1024. */
const long = (v) => (typeof v === 'bigint' && BigInt.asIntN(64, v) === v ? v : wide(v));
const wide = integer('int64', -(2 ** 63), 2 ** 63 - 1024, (v) => BigInt(Math.trunc(Number(v))));
/** Converts to uint64; as in Python, negative numbers do not wrap around. */
function unsignedLong(v) {
  const word = typeof v === 'bigint' ? v : BigInt(Math.trunc(Number(v)));
  if (BigInt.asUintN(64, word) === word) return word;
  throw new (errorClass('OverflowError'))(
    word < 0 ? "can't convert negative int to unsigned" : 'int too big to convert',
  );
}
const complex = (v) => (isComplex(v) ? v : { re: real(v), im: 0 });
/** The array of 16-bit floats: numbers if the host has such arrays, else their bits. */
const Half = globalThis.Float16Array ?? Uint16Array;
/** Element types: the host's array, the conversion of a number to an element, and for types without host numbers the type through
 * which elements are converted. Arrays hold complex numbers as two parts. */
const KINDS = {
  uint8: [Uint8Array, integer('uint8', 0, 255, Number)],
  int8: [Int8Array, integer('int8', -128, 127, Number)],
  int16: [Int16Array, integer('int16', -(2 ** 15), 2 ** 15 - 1, Number)],
  int32: [Int32Array, integer('int32', -(2 ** 31), 2 ** 31 - 1, Number)],
  int64: [BigInt64Array, long],
  uint16: [Uint16Array, integer('uint16', 0, 2 ** 16 - 1, Number)],
  uint32: [Uint32Array, integer('uint32', 0, 2 ** 32 - 1, Number)],
  uint64: [BigUint64Array, unsignedLong],
  float16: [Half, real, 'float64'],
  bfloat16: [Uint16Array, real, 'float64'],
  float32: [Float32Array, real],
  float64: [Float64Array, real],
  complex32: [Half, complex, 'complex128'],
  complex64: [Float32Array, complex],
  complex128: [Float64Array, complex],
  bool: [Uint8Array, (v) => (isComplex(v) ? v.re !== 0 || v.im !== 0 : Number(v) !== 0)],
};

/** @typedef {Uint8Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Uint16Array | Uint32Array | BigUint64Array | Float32Array | Float64Array} TypedArray */
/** @typedef {number | bigint | boolean | Complex | TypedArray | Tensor | readonly Data[]} Data a number, or numbers in arrays of arrays */
/** @typedef {number | bigint | boolean | null | symbol | Slice | Tensor | readonly any[]} Subscript */

/** The element type of a tensor: `torch.float32`. */
export class DType extends Coded {
  /** @private @param {keyof typeof KINDS} name */
  constructor(name) {
    const [array, from, by] = KINDS[name];
    super(TAG.DTYPE, CODE[name]);
    this.name = name;
    this.array = array;
    this.is_complex = name.startsWith('complex');
    this.is_floating_point = name.includes('float');
    /** @private */
    this.from = from;
    /** The type through which elements are converted. @private */
    this.by = by;
    this.itemsize = array.BYTES_PER_ELEMENT * (this.is_complex ? 2 : 1);
  }

  toString() {
    return `torch.${this.name}`;
  }
}

/** @type {Readonly<Record<keyof typeof KINDS, DType>>} */
export const dtypes = Object.freeze(
  Object.fromEntries(Object.keys(KINDS).map((n) => [n, new DType(n)])),
);
const byCode = new Map(Object.values(dtypes).map((dtype) => [dtype.code, dtype]));
/** The dtype of an engine's code, or undefined. @param {number} code */
export const dtypeOf = (code) => byCode.get(code);

const isWhole = (value) => Number.isSafeInteger(value) || typeof value === 'bigint';

/** A part of a subscript: `x.index(slice(0, 2), null, 1)`. */
export class Slice {
  /** @param {number | null} [start] @param {number | null} [stop] @param {number | null} [step] */
  constructor(start = null, stop = null, step = null) {
    atMost(3, 'slice', arguments);
    for (const bound of [start, stop, step])
      if (bound !== null && !isWhole(bound))
        throw new TypeError('slice indices must be integers or null');
    Object.assign(this, { start, stop, step });
  }
}

/** `...` in a subscript. @type {symbol} */
export const ellipsis = Symbol('...');

// ---------------------------------------------------------------- the table

/** The ops in table order with the words of their rows and the names of their results; consecutive rows of one name are
 * overloads. */
function readTable(engine) {
  const table = [];
  engine.texts(engine.exports.pg_describe).forEach((text, row) => {
    const [, words, name, rest] = /^(\S*) (\w+)(.*)$/.exec(text);
    if (table.at(-1)?.name !== name)
      table.push({ name, row, words: new Set(), results: undefined });
    words.split('|').forEach((word) => table.at(-1).words.add(word));
    table.at(-1).results ??= /-> \((\w+ \w+(?:, \w+(?:\[\])? \w+)+)\)$/
      .exec(rest)?.[1]
      .match(/(?:\[\] )?\w+(?=,|$)/g);
  });
  return table;
}

/** Adds the results under their names; the last, if it is a list ("[] bin_edges"), takes all remaining results. */
function nameResults(results, names) {
  const last = names.length - 1;
  const list = names[last].startsWith('[] ');
  const found = list ? [...results.slice(0, last), results.slice(last)] : results;
  names.forEach((name, i) => {
    found[list && i === last ? name.slice(3) : name] = found[i];
  });
  return found;
}

/** The functions of the table by namespace, which is a word of a row; methods take their receiver as `this`. */
function makeSpaces(engine, wrap, { claim, remember }) {
  const flagsAt = engine.layout.flags;

  /** The tensor of a handle: the first argument or one of `out` if it has this handle, or a new one. Tensors that the engine may
   * return again are remembered: leaves that require grad, and a property's tensors with other owners (see pg.h). */
  function own(handle, first, out, isProperty) {
    const given =
      first?.handle === handle ? first : out && [out].flat().find((t) => t.handle === handle);
    if (given) engine.released.push(handle);
    const isOurs = isProperty
      ? engine.view.i32[handle / 4] === 1
      : !(engine.view.u8[handle + flagsAt] & FLAG.REQUIRES_GRAD);
    if (isOurs) return given ?? wrap(handle);
    return remember(given ?? claim(handle, () => wrap(handle)));
  }

  function make(row, mode, names, isProperty) {
    const invoke = (self, args) => {
      const options = args.length && isOptions(args[args.length - 1]) ? args.pop() : null;
      const r = engine.call(row, mode, self, args, options);
      const handle = r % PENDING;
      let result;
      if (handle) result = own(handle, self ?? args[0], options?.out, isProperty);
      else {
        result = engine.readResult((each) => own(each, self ?? args[0], options?.out), dtypeOf);
        if (names && Array.isArray(result)) result = nameResults(result, names);
      }
      if (r >= PENDING) engine.collectPending();
      return result;
    };
    if (mode & MODE.METHOD)
      return function method(...args) {
        return invoke(this, args);
      };
    return (...args) => invoke(undefined, args);
  }

  const spaces = {
    torch: {},
    method: {},
    property: {},
    nn: {},
    special: {},
    linalg: {},
    fft: {},
    windows: {},
    masked: {},
    internal: {},
    only_aten: {},
  };
  for (const { name, row, words, results } of readTable(engine)) {
    for (const [word, space] of Object.entries(spaces)) {
      const withInplace = words.has(`${word}_inplace`),
        isProperty = word === 'property';
      if (!words.has(word) && !withInplace) continue;
      const mode = isProperty || word === 'method' ? MODE.METHOD : 0;
      space[isProperty ? name.replace(/^(numpy|matrix)_/, '') : name] = make(
        row,
        mode,
        results,
        isProperty,
      );
      const inplace = words.has('inplace') && ['torch', 'method', 'nn'].includes(word);
      if (withInplace || inplace) space[`${name}_`] = make(row, mode | MODE.INPLACE, results);
    }
  }
  return spaces;
}

// ---------------------------------------------------------------- tensors

/** A library over one engine: tensors, functions by namespace, modes, scopes; `files` are the host's files. */
export function makeTensors(engine, files) {
  const { layout } = engine;
  const owners = makeOwners(engine);
  const { Owner, remember, claim, runOutside, scope } = owners;
  const spaces = makeSpaces(engine, (handle) => new Tensor(handle, OWNED), owners);
  const C = spaces.internal;
  /** Whether a value is a tensor; raises for a tensor of another engine. */
  const isTensor = (value) => {
    if (value instanceof Tensor) return true;
    engine.refuseOthers(value);
    return false;
  };
  /** The arguments of a call by their names in signatures.js. */
  const take = makeBinder({ Tensor: isTensor, ScalarType: (value) => value instanceof DType });
  const library = { ...owners, files, spaces, C, isTensor, take };
  const hooks = makeHooks(engine, library);

  class Tensor extends Owner {
    /** The engine's number of the tensor; 0 after it was disposed of. @returns {number} */
    get handle() {
      return this.reference;
    }
    /** @returns {DType} */
    get dtype() {
      return dtypeOf(engine.view.u8[this.alive() + layout.dtype]);
    }
    /** The number of dimensions. @returns {number} */
    get ndim() {
      return engine.view.u8[this.alive() + layout.ndim];
    }
    /** The size of each dimension. @returns {number[]} */
    get shape() {
      return engine.words(engine.u32(this.alive() + layout.sizes) / 8, this.ndim);
    }
    /** Whether it is a sparse tensor of the layout COO. @returns {boolean} */
    get is_sparse() {
      return C.layout(this) === 'sparse_coo';
    }
    /** The node that made it, or null for a leaf. @returns {import('./graph.js').Node | null} */
    get grad_fn() {
      return library.wrapNode(C._node_of(this));
    }
    /** x[a, b, ...]: integers, null, ellipsis, slices, tensors, booleans. @param {...Subscript} items @returns {Tensor} */
    index(...items) {
      return C._getitem(this, subscript(items));
    }

    /** x[a, b, ...] = value. @param {Subscript} items one, or several in an array
     * @param {Tensor | number | boolean | bigint} value @returns {this} */
    index_set(items, value) {
      C._setitem(this, subscript([items].flat()), value);
      return this;
    }

    /** The real parts of a complex tensor, a view; a real tensor itself. @returns {Tensor} */
    get real() {
      return spaces.torch.real(this);
    }
    set real(value) {
      this.real.index_set(ellipsis, value);
    }
    /** The imaginary parts of a complex tensor, a view. @returns {Tensor} */
    get imag() {
      return spaces.torch.imag(this);
    }
    set imag(value) {
      this.imag.index_set(ellipsis, value);
    }

    /** The single element: a number, a bigint if a number would lose digits, a boolean, or `{re, im}`. @returns {any} */
    item() {
      const value = spaces.method.item.call(this);
      return this.dtype === dtypes.uint64 ? small(unsigned(value)) : value;
    }

    /** A copy of the elements in order, as a typed array (int64: BigInt64Array). Complex numbers are two parts. bfloat16, and
     * float16 on hosts without Float16Array, are bits in a Uint16Array. @returns {TypedArray} */
    toTypedArray() {
      return new this.dtype.array(library.bytesOf(this).buffer);
    }

    /** The elements as nested arrays; a number for a 0-dim tensor. @returns {any} */
    tolist() {
      const { dtype, shape } = this;
      if (dtype.by) return scope(() => this.detach().to(dtypes[dtype.by]).tolist());
      const elements = this.toTypedArray();
      const flat = dtype.is_complex
        ? Array.from({ length: elements.length / 2 }, (_, i) => ({
            re: elements[2 * i],
            im: elements[2 * i + 1],
          }))
        : Array.from(elements, (v) =>
            dtype === dtypes.bool ? v !== 0 : typeof v === 'bigint' ? small(v) : v,
          );
      const nest = (row, [size, ...rest]) =>
        rest.length
          ? Array.from({ length: size }, (_, i) => nest(row * size + i, rest))
          : flat.slice(row * size, (row + 1) * size);
      return shape.length ? nest(0, shape) : flat[0];
    }

    /** @returns {any} */
    toArray() {
      return this.tolist();
    }

    /** Adds the gradients of this tensor (a scalar, or with `gradient`) to the `grad` of its leaves. @param
     * {...Given<TensorBackwardOptions>} rest */
    backward(...rest) {
      const { gradient, ...options } = bind(
        'backward',
        { gradient: null, retain_graph: null, create_graph: false, inputs: null },
        rest,
      );
      library.backward([this], ...(rest.length ? [{ grad_tensors: gradient, ...options }] : []));
    }

    /** Calls `hook` with the gradient in backward; a returned tensor replaces it.
     * @param {(grad: Tensor) => Tensor | null | void} hook @returns {import('./hooks.js').RemovableHandle} */
    register_hook(hook) {
      return hookOn(this, hook, false);
    }

    /** Calls `hook` with this leaf after backward has accumulated into its `grad`.
     * @param {(leaf: Tensor) => void} hook @returns {import('./hooks.js').RemovableHandle} */
    register_post_accumulate_grad_hook(hook) {
      return hookOn(this, hook, true);
    }

    /** @returns {string} */
    toString() {
      return C._repr(this, 'tensor');
    }
    [Symbol.for('nodejs.util.inspect.custom')]() {
      return this.handle ? this.toString() : 'tensor(disposed)';
    }

    /** The tensors along the first dimension. @returns {IterableIterator<Tensor>} */
    [Symbol.iterator]() {
      if (!this.ndim) throw new TypeError('iteration over a 0-d tensor');
      return this.unbind(0).values();
    }
  }

  for (const [name, value] of Object.entries(spaces.method))
    if (!(name in Tensor.prototype))
      Object.defineProperty(Tensor.prototype, name, { value, writable: true, configurable: true });
  for (const [name, get] of Object.entries(spaces.property)) {
    const put = C[`_set_${name}`];
    const set =
      put &&
      function set(value) {
        put(this, value);
        if (isTensor(value)) remember(value);
      };
    Object.defineProperty(Tensor.prototype, name, {
      get() {
        return get.call(this) ?? null;
      },
      set,
      configurable: true,
    });
  }

  function hookOn(tensor, hook, post) {
    tensor.alive();
    return hooks.register(
      remember(tensor),
      hook,
      (id) => C._hook_add(tensor, id, post),
      (owner, id) => C._hook_remove(owner, id),
    );
  }

  /** A tensor that a module learns: it shares the memory of `data`, and outlives scopes. */
  class Parameter extends Tensor {
    /** @private Arguments as in Python. @param {...any} args */
    constructor(...args) {
      const { data, requires_grad } = take('Parameter', args);
      runOutside(() => {
        const plain = data === null ? spaces.torch.empty([0]) : data.detach();
        super(plain.surrender(), OWNED);
      });
      if (requires_grad) this.requires_grad_();
    }

    /** Marks parameters among tensors. @returns {true} */
    get _is_param() {
      return true;
    }
    /** @returns {string} */
    toString() {
      return `Parameter containing:\n${super.toString()}`;
    }
  }

  /** The handle of a tensor's gradient, or 0; owned by the tensor. */
  function gradOf(tensor) {
    if (!isTensor(tensor)) throw new TypeError(`a tensor is wanted, not ${typeName(tensor)}`);
    const meta = engine.u32(tensor.alive() + layout.meta);
    return meta ? engine.u32(meta + layout.meta_grad) : 0;
  }

  /** The object of a handle whose reference we own. */
  const adopt = (handle) => claim(handle, () => new Tensor(handle, OWNED));

  /** Encodes the items of a subscript as words: ops/index/index.def. */
  function subscript(items) {
    const words = [];
    for (const item of items) {
      if (item === null) words.push(ITEM.NONE);
      else if (item === ellipsis) words.push(ITEM.ELLIPSIS);
      else if (isWhole(item)) words.push(ITEM.INT, item);
      else if (item instanceof Slice)
        words.push(ITEM.SLICE, ...[item.start, item.stop, item.step].map((v) => v ?? ABSENT));
      else if (isTensor(item)) words.push(ITEM.TENSOR, item.alive());
      else if (typeof item === 'boolean') words.push(ITEM.BOOL, Number(item));
      else if (Array.isArray(item)) words.push(ITEM.TENSOR, indices(item).alive());
      else
        throw new IndexError('only integers, slices, ellipsis, null and tensors are valid indices');
    }
    return new Coded(TAG.INDEX, words);
  }

  /** The tensor for an array in a subscript: indices, or a mask. */
  function indices(item) {
    const { flat } = unnest(item);
    if (flat.length && flat.every((v) => typeof v === 'boolean')) return tensor(item);
    if (flat.every((v) => typeof v === 'boolean' || isWhole(v)))
      return tensor(item, { dtype: dtypes.int64 });
    tensor(item); // raises a clearer error if it is no array of numbers
    throw new IndexError('tensors used as indices must be long, int, byte or bool tensors');
  }

  /** The dtype for elements: the one of tensors and typed arrays, int64 for bigints, bool for booleans, float32 for other
   * numbers. */
  function inferDtype({ flat, kinds, loose }) {
    const found = new Set(kinds);
    for (const v of flat) {
      if (isComplex(v)) found.add(dtypes.complex64);
      else if (typeof v !== 'number')
        found.add(
          typeof v === 'bigint' ? dtypes.int64 : typeof v === 'boolean' ? dtypes.bool : v.dtype,
        );
      else if (loose) found.add(dtypes.float32);
    }
    return found.size
      ? [...found].reduce((a, b) => spaces.torch.promote_types(a, b))
      : dtypes.float32;
  }

  /** Makes a tensor from nested arrays, a typed array, a number, or (as a copy) a tensor. @param {Data} data
   * @param {{dtype?: DType | null, device?: string | null, requires_grad?: boolean, pin_memory?: boolean, shape?: readonly
   * number[] | null}} [options] `shape`: the shape for a flat array @returns {Tensor} */
  function tensor(data, options) {
    if (!arguments.length)
      throw new TypeError("tensor() missing 1 required positional argument: 'data'");
    const surplus = arguments.length - (options === undefined || isOptions(options) ? 2 : 1);
    if (surplus > 0)
      throw new TypeError(`tensor() takes 1 positional argument but ${surplus + 1} were given`);
    const { dtype, device, requires_grad, pin_memory, shape } = bind(
      'tensor',
      { dtype: null, device: null, requires_grad: false, pin_memory: false, shape: null },
      options ? [options] : [],
    );
    if (dtype !== null && !(dtype instanceof DType))
      throw new TypeError(`tensor(): argument 'dtype' must be torch.dtype, not ${typeName(dtype)}`);
    if (shape !== null && !(Array.isArray(shape) && shape.every(Number.isSafeInteger)))
      throw new TypeError(
        `tensor(): argument 'shape' must be a list of ints, not ${typeName(shape)}`,
      );
    if (device !== null || pin_memory) spaces.torch.empty([0], { device, pin_memory }).dispose(); // raises for other devices
    const made = isTensor(data)
      ? data.detach().to(dtype ?? data.dtype, { copy: true })
      : tensorFromData(data, dtype, shape);
    const shaped = isTensor(data) && shape ? made.reshape(shape) : made;
    const leaf = device === null ? shaped : shaped.to(device);
    if (leaf !== shaped) shaped.dispose();
    return requires_grad ? leaf.requires_grad_() : leaf;
  }

  /** A new tensor from data that is no tensor. */
  function tensorFromData(data, dtype, shape) {
    const own = ArrayBuffer.isView(data) ? kindOfArray(data) : null;
    const nested = own ? { flat: data, sizes: [data.length] } : unnest(data);
    const { flat } = nested;
    const wanted = shape ?? nested.sizes;
    const count = wanted.reduce((a, b) => a * b, 1);
    if (flat.length !== count)
      throw new ValueError(
        `expected ${count} elements for the shape [${wanted}], got ${flat.length}`,
      );
    const elements = own ? flat : flat.map(plain);
    const goal = own ?? dtype ?? inferDtype(nested);
    const converted = own ? elements : elements.map(goal.from);
    const kind = own ?? dtypes[goal.by] ?? goal;
    const parts = kind.is_complex ? converted.flatMap(({ re, im }) => [re, im]) : converted;
    const made = C._empty(wanted, kind);
    new kind.array(engine.memory.buffer, made.data_ptr(), parts.length).set(parts);
    const last = dtype ?? goal;
    if (last === kind) return made;
    const cast = made.to(last); // as a tensor, for the same conversion
    made.dispose();
    return cast;
  }

  /** A copy of a tensor's elements in order, as bytes. */
  const bytesOf = (tensor) =>
    scope(() => {
      const at = C._elements(tensor).data_ptr();
      return engine.view.u8.slice(at, at + tensor.numel() * tensor.dtype.itemsize);
    });

  /** A tensor of a shape from the bytes of its elements. */
  function tensorFromBytes(bytes, dtype, shape) {
    const made = C._empty(shape, dtype);
    engine.view.u8.set(bytes, made.data_ptr());
    return made;
  }

  /** An element of nested arrays as a number, bigint, boolean or complex number. */
  function plain(v) {
    if (typeof v === 'number' || typeof v === 'bigint' || typeof v === 'boolean') return v;
    if (isComplex(v)) return v;
    if (isTensor(v)) {
      if (v.numel() !== 1)
        throw new ValueError('only one element tensors can be converted to Python scalars');
      return v.item();
    }
    if (typeof v === 'string') throw new TypeError("new(): invalid data type 'str'");
    throw new TypeError(
      Array.isArray(v)
        ? 'must be real number, not list'
        : `Could not infer dtype of ${v === undefined ? 'undefined' : typeName(v)}`,
    );
  }

  /** Runs fn with some mode bits cleared and set; restores them, also if fn throws. */
  function withModes(clear, set, fn) {
    const was = engine.modes;
    return runWithin(
      () => {
        engine.modes = (was & ~clear) | set;
      },
      () => {
        engine.modes = was;
      },
      fn,
    );
  }

  return Object.assign(library, {
    Tensor,
    Parameter,
    tensor,
    bytesOf,
    tensorFromBytes,
    hooks,
    gradOf,
    adopt,
    withModes,
  });
}

/** An integer as a number if that is exact. */
export const small = (word) => (Number.isSafeInteger(Number(word)) ? Number(word) : word);

/** A word of the engine as an unsigned integer. */
export const unsigned = (word) => (word < 0 ? 2n ** 64n + BigInt(word) : word);

/** The elements of nested arrays in order, and their sizes; the dtypes of typed arrays, and whether some innermost arrays are
 * untyped. */
function unnest(data) {
  const sizes = [];
  const kinds = [];
  const isList = (value) => Array.isArray(value) || ArrayBuffer.isView(value);
  let [flat, loose] = [[data], true];
  for (let dim = 0; isList(flat[0]); dim++) {
    const outer = flat;
    loose = outer.some(Array.isArray);
    sizes.push(outer[0].length);
    flat = [];
    for (const rows of outer) {
      if (typeof rows === 'string') throw new TypeError("new(): invalid data type 'str'");
      if (!isList(rows)) throw new TypeError(`not a sequence at dim ${dim}`);
      if (rows.length !== sizes[dim])
        throw new ValueError(
          `expected sequence of length ${sizes[dim]} at dim ${dim} (got ${rows.length})`,
        );
      if (!Array.isArray(rows)) kinds.push(kindOfArray(rows));
      for (const each of rows) flat.push(each);
    }
  }
  if (sizes.length && typeof flat[0] === 'string')
    throw new ValueError("too many dimensions 'str'");
  return { flat, sizes, kinds, loose };
}

/** The dtypes of the host's arrays; several dtypes share an array, which stands for the first of them. */
const arrays = new Map();
for (const dtype of Object.values(dtypes))
  if (!dtype.is_complex && !arrays.has(dtype.array)) arrays.set(dtype.array, dtype);

/** The dtype of a typed array. */
function kindOfArray(array) {
  const found = [...arrays].find(([kind]) => array instanceof kind)?.[1];
  if (found) return found;
  if (array instanceof Uint8ClampedArray) return dtypes.uint8;
  const names = [...arrays.keys()].map((kind) => kind.name);
  throw new TypeError(
    `can't convert ${array.constructor.name}. The only supported types are: ${[...new Set(names)].join(', ')}.`,
  );
}

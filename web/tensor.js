/**
 * Tensors, and the functions and methods that the engine's op table gives: nothing here lists ops.
 *
 * A call takes positional arguments and a trailing options object: `x.sum(1, {keepdim: true})`.
 * Numbers that are integers travel as integers, all others as floats; `tensor()` alone takes
 * numbers as float32 unless told otherwise, bigints as int64 and booleans as bool.
 */
import { atMost, bind, isOptions, makeBinder, typeName } from './arguments.js';
import {
  ABSENT,
  Coded,
  errorClass,
  IndexError,
  PENDING,
  RuntimeError,
  ValueError,
  within,
} from './engine.js';
import { CODE, FLAG, ITEM, MODE, TAG } from './enumerations.js';
import { makeHooks } from './hooks.js';
import { makeOwners, OWNED } from './owner.js';

/** @typedef {InstanceType<ReturnType<typeof makeTensors>['Tensor']>} Tensor */
/** @import { Given } from './arguments.js'
 * @typedef {{gradient?: Tensor | null, retain_graph?: boolean | null, create_graph?: boolean, inputs?: Places | null}} TensorBackwardOptions */

/** How an element of integers from `least` to `most` is made of a number: without its fraction, and not if it does not fit. */
const integer = (name, least, most, of) => (v) => {
  if (typeof v === 'bigint' && BigInt.asIntN(64, v) !== v)
    throw new ValueError('Overflow when unpacking long long');
  const number = Number(v);
  const lowest = least === 0 && Number.isInteger(number) ? -most : least; // negative integers wrap around, as in PyTorch
  if (number >= lowest && number <= most) return of(v);
  throw new RuntimeError(`value cannot be converted to type ${name} without overflow`);
};

function real(v) {
  const number = Number(v);
  if (typeof v === 'bigint' && !Number.isFinite(number))
    throw new (errorClass('OverflowError'))('int too large to convert to float');
  return number;
}

/** A bigint that fits is one already; of numbers the last below 2^63 is 2^63 - 1024. */
const long = (v) => (typeof v === 'bigint' && BigInt.asIntN(64, v) === v ? v : wide(v));
const wide = integer('int64', -(2 ** 63), 2 ** 63 - 1024, (v) => BigInt(Math.trunc(Number(v))));
/** Element types: the array of a host, and how an element is made of a number. */
const KINDS = {
  uint8: [Uint8Array, integer('uint8', 0, 255, Number)],
  int8: [Int8Array, integer('int8', -128, 127, Number)],
  int16: [Int16Array, integer('int16', -(2 ** 15), 2 ** 15 - 1, Number)],
  int32: [Int32Array, integer('int32', -(2 ** 31), 2 ** 31 - 1, Number)],
  int64: [BigInt64Array, long],
  float32: [Float32Array, real],
  float64: [Float64Array, real],
  bool: [Uint8Array, (v) => Number(v) !== 0],
};

/** @typedef {Uint8Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Float32Array | Float64Array} TypedArray */
/** @typedef {number | bigint | boolean | TypedArray | Tensor | readonly Data[]} Data a number, or numbers in arrays of arrays */
/** @typedef {number | bigint | boolean | null | symbol | Slice | Tensor | readonly any[]} Subscript */

/** The element type of a tensor: `torch.float32`. */
export class DType extends Coded {
  /** @private @param {keyof typeof KINDS} name */
  constructor(name) {
    const [array, from] = KINDS[name];
    super(TAG.DTYPE, CODE[name]);
    this.name = name;
    this.array = array;
    /** @private */
    this.from = from;
    this.itemsize = array.BYTES_PER_ELEMENT;
    this.is_floating_point = name.startsWith('float');
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

/** What `...` is in a subscript. @type {symbol} */
export const ellipsis = Symbol('...');

// ---------------------------------------------------------------- the table

/** The ops in table order with the words of their rows and the names of their results; rows of one name that stand together are overloads. */
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

/** Results under their names as well; the last, if it is a list ("[] bin_edges"), is of all that the others leave. */
function named(results, names) {
  const last = names.length - 1;
  const list = names[last].startsWith('[] ');
  const found = list ? [...results.slice(0, last), results.slice(last)] : results;
  names.forEach((name, i) => {
    found[list && i === last ? name.slice(3) : name] = found[i];
  });
  return found;
}

/** The functions of the table by namespace, which is a word of a row; a method takes its receiver as `this`. */
function makeSpaces(engine, wrap, { claim, remember }) {
  const flagsAt = engine.layout.flags;

  /** The tensor of a handle: the first argument or one of `out`, which come back as themselves, or a new one. What the engine may hand
   * back is remembered: leaves that require grad, and what a property tells of that others hold too (see pg.h). */
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
        result = engine.described((each) => own(each, self ?? args[0], options?.out), dtypeOf);
        if (names && Array.isArray(result)) result = named(result, names);
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

/** A library over one engine: tensors, functions by namespace, modes, scopes; `files` are the host's. */
export function makeTensors(engine, files) {
  const { layout } = engine;
  const owners = makeOwners(engine);
  const { Owner, remember, claim, outside, scope } = owners;
  const spaces = makeSpaces(engine, (handle) => new Tensor(handle, OWNED), owners);
  const C = spaces.internal;
  /** Whether a value is a tensor; that of another engine raises, as nothing here can be meant by it. */
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
    /** The engine's number for it; 0 once it was disposed of. @returns {number} */
    get handle() {
      return this.reference;
    }
    /** @returns {DType} */
    get dtype() {
      return dtypeOf(engine.view.u8[this.alive() + layout.dtype]);
    }
    /** How many dimensions there are. @returns {number} */
    get ndim() {
      return engine.view.u8[this.alive() + layout.ndim];
    }
    /** Sizes, one a dimension. @returns {number[]} */
    get shape() {
      return engine.words(engine.u32(this.alive() + layout.sizes) / 8, this.ndim);
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

    /** The elements in order, copied, as a typed array (int64: BigInt64Array). @returns {TypedArray} */
    toTypedArray() {
      return scope(() => {
        const at = C._elements(this).data_ptr();
        return new this.dtype.array(
          engine.memory.buffer.slice(at, at + this.numel() * this.dtype.itemsize),
        );
      });
    }

    /** The elements as nested arrays; a number of a tensor without dimensions. @returns {any} */
    tolist() {
      const { dtype, shape } = this;
      const flat = Array.from(this.toTypedArray(), (v) =>
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

    /** Adds the gradients of the leaves that this (a scalar, or with `gradient`) depends on. @param {...Given<TensorBackwardOptions>} rest */
    backward(...rest) {
      const { gradient, ...options } = bind(
        'backward',
        { gradient: null, retain_graph: null, create_graph: false, inputs: null },
        rest,
      );
      library.backward([this], ...(rest.length ? [{ grad_tensors: gradient, ...options }] : []));
    }

    /** Calls `hook` with the gradient in backward; what it returns replaces that.
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

  /** A tensor that a module learns: it shares the memory of another, and lives on when a scope ends. */
  class Parameter extends Tensor {
    /** @private By the signature of Python's. @param {...any} args */
    constructor(...args) {
      const { data, requires_grad } = take('Parameter', args);
      outside(() => {
        const plain = data === null ? spaces.torch.empty([0]) : data.detach();
        super(plain.surrender(), OWNED);
      });
      if (requires_grad) this.requires_grad_();
    }

    /** What tells it from other tensors. @returns {true} */
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

  /** The object of a handle whose reference is ours. */
  const adopt = (handle) => claim(handle, () => new Tensor(handle, OWNED));

  /** What stands between brackets, in words: ops/index/index.def. */
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

  /** The tensor that an array in a subscript stands for: places, or which ones to take. */
  function indices(item) {
    const { flat } = unnest(item);
    if (flat.length && flat.every((v) => typeof v === 'boolean')) return tensor(item);
    if (flat.every((v) => typeof v === 'boolean' || isWhole(v)))
      return tensor(item, { dtype: dtypes.int64 });
    tensor(item); // whose error says more, if it is none of numbers
    throw new IndexError('tensors used as indices must be long, int, byte or bool tensors');
  }

  /** The dtype that elements suggest: that of tensors and typed arrays, int64 of bigints, bool of booleans, float32 of other numbers. */
  function suggested({ flat, kinds, loose }) {
    const found = new Set(kinds);
    for (const v of flat) {
      if (typeof v !== 'number')
        found.add(
          typeof v === 'bigint' ? dtypes.int64 : typeof v === 'boolean' ? dtypes.bool : v.dtype,
        );
      else if (loose) found.add(dtypes.float32);
    }
    return found.size
      ? [...found].reduce((a, b) => spaces.torch.promote_types(a, b))
      : dtypes.float32;
  }

  /** A tensor of nested arrays, a typed array, a number, or (a copy) a tensor. @param {Data} data
   * @param {{dtype?: DType | null, device?: string | null, requires_grad?: boolean, pin_memory?: boolean, shape?: readonly number[] | null}} [options]
   * `shape`: of a flat array @returns {Tensor} */
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
    if (device !== null || pin_memory) spaces.torch.empty([0], { device, pin_memory }).dispose(); // which says what there is
    const made = isTensor(data)
      ? data.detach().to(dtype ?? data.dtype, { copy: true })
      : filled(data, dtype, shape);
    const leaf = isTensor(data) && shape ? made.reshape(shape) : made;
    return requires_grad ? leaf.requires_grad_() : leaf;
  }

  /** A new tensor of plain data. */
  function filled(data, dtype, shape) {
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
    const kind = own ?? dtype ?? suggested(nested);
    const converted = own ? elements : elements.map(kind.from);
    const made = C._empty(wanted, kind);
    new kind.array(engine.memory.buffer, made.data_ptr(), count).set(converted);
    if (!own || !dtype || dtype === own) return made;
    const cast = made.to(dtype); // an array is converted as a tensor is
    made.dispose();
    return cast;
  }

  /** The number, bigint or boolean that an element of nested arrays is. */
  function plain(v) {
    if (typeof v === 'number' || typeof v === 'bigint' || typeof v === 'boolean') return v;
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

  /** Runs fn with some mode bits cleared and set; puts them back, also if fn throws. */
  function withModes(clear, set, fn) {
    const was = engine.modes;
    return within(
      () => {
        engine.modes = (was & ~clear) | set;
      },
      () => {
        engine.modes = was;
      },
      fn,
    );
  }

  return Object.assign(library, { Tensor, Parameter, tensor, hooks, gradOf, adopt, withModes });
}

/** An integer as a number where that is exact. */
export const small = (word) => (Number.isSafeInteger(Number(word)) ? Number(word) : word);

/** A word of the engine without its sign. */
export const unsigned = (word) => (word < 0 ? 2n ** 64n + BigInt(word) : word);

/** What nested arrays hold in order, and their sizes; the dtypes of those that are typed, and whether any of the last are not. */
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

/** The dtype of a typed array. */
function kindOfArray(array) {
  const found = Object.values(dtypes).find((dtype) => array instanceof dtype.array);
  if (found) return found;
  if (array instanceof Uint8ClampedArray) return dtypes.uint8;
  const names = Object.values(dtypes).map((dtype) => dtype.array.name);
  throw new TypeError(
    `can't convert ${array.constructor.name}. The only supported types are: ${[...new Set(names)].join(', ')}.`,
  );
}

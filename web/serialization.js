/** `save` and `load`: tensors, and plain containers of them, as the bytes of safetensors files.
 *
 * The files are those of Python's `pygrad.save` and `pygrad.load`. A flat dict of tensors is a plain safetensors file; other
 * values have an outline in JSON in the header, under `__metadata__`. The outline of a finite number, a string, true, false or
 * null is the value itself; of other values a list whose first entry names a kind. A dict whose keys are names is an object, any
 * other dict a Map. */
import { bind, isOptions, typeName } from './arguments.js';
import { errorClass, NotImplementedError, RuntimeError } from './engine.js';
import { dtypes, small } from './tensor.js';

/** @import { Given } from './arguments.js'
 * @typedef {{map_location?: string | null, weights_only?: boolean | null, mmap?: boolean, float8?: 'float32' | null}} LoadOptions
 * `weights_only` has no effect: only tensors and plain containers are ever made. `float8`: reads tensors of 8-bit floats as
 * float32; they are an error by default */

const FORMAT = 1;
const MOST_HEADER_BYTES = 1e8;
/** The dtypes in the order of their tensors in a file: the widest elements first. */
const NAMES = {
  U64: 'uint64',
  I64: 'int64',
  F64: 'float64',
  C64: 'complex64',
  F32: 'float32',
  U32: 'uint32',
  I32: 'int32',
  BF16: 'bfloat16',
  F16: 'float16',
  U16: 'uint16',
  I16: 'int16',
  I8: 'int8',
  U8: 'uint8',
  BOOL: 'bool',
};
/** The bits and the bias of the exponent of each 8-bit float type; no tensor has these types. */
const FLOAT8 = {
  F8_E4M3: [4, 7],
  F8_E5M2: [5, 15],
  F8_E4M3FNUZ: [4, 8],
  F8_E5M2FNUZ: [5, 16],
  F8_E8M0: [8, 127],
};
/** The numbers for the bytes 0 to 255 of an 8-bit float type. */
function numbersOf(name) {
  const [bits, bias] = FLOAT8[name];
  const fraction = 7 - bits;
  const number = (byte) => {
    if (bits === 8) return byte === 255 ? NaN : 2 ** (byte - bias);
    const upper = byte & 127;
    if (name === 'F8_E4M3' && upper === 127) return NaN;
    if (name === 'F8_E5M2' && upper >= 124)
      return upper > 124 ? NaN : byte > 127 ? -Infinity : Infinity;
    if (name.endsWith('FNUZ') && byte === 128) return NaN;
    const exponent = upper >> fraction;
    const part = (upper & ((1 << fraction) - 1)) / (1 << fraction);
    const size = exponent ? (1 + part) * 2 ** (exponent - bias) : part * 2 ** (1 - bias);
    return byte > 127 ? -size : size;
  };
  return Float32Array.from({ length: 256 }, (_, byte) => number(byte));
}
const CONVERT =
  '. To convert a file of tensors, in PyTorch: safetensors.torch.save_file(torch.load(path, weights_only=True), new_path)';
const refusal = (reason) =>
  new RuntimeError(`pygrad.load reads safetensors files and never unpickles. This one: ${reason}`);
/** The types without a name in files, which are stored as their parts, with an additional dimension. */
const NAMELESS = ['complex32', 'complex128'];
const ODD_FLOATS = { 'nan': NaN, 'inf': Infinity, '-inf': -Infinity, '-0.0': -0 };
/** Makes an object of pairs of a name and a value; a Map if the object would change their order, as with numeric names. */
function inOrder(pairs) {
  const made = Object.fromEntries(pairs);
  const kept = Object.keys(made).every((name, k) => name === pairs[k][0]);
  return kept && pairs.length === Object.keys(made).length ? made : new Map(pairs);
}
/** Refuses an integer of more than 64 bits as a key or an element: a Map would mix up integers that agree in the last 64 bits. */
function keyOf(key) {
  if (typeof key === 'bigint' && BigInt.asIntN(64, key) !== key)
    throw refusal('a key is an integer of more than 64 bits');
  return key;
}
const byName = ([a], [b]) => (a < b ? -1 : Number(a > b));
/** JSON as Python writes it, in ASCII. */
const ascii = (value) =>
  JSON.stringify(value).replace(
    /[^\0-\x7f]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** torch.save and torch.load over a library of tensors. */
export function makeSerialization({
  bytesOf,
  files,
  isTensor,
  tensorFromBytes,
  Parameter,
  spaces,
}) {
  /** The outline of a value; collects its tensors by name. */
  function outline(value, path, tensors, open) {
    if (value === null || value === undefined) return null;
    if (typeof value === 'boolean' || typeof value === 'string') return value;
    if (typeof value === 'bigint') return ['int', String(value)];
    if (Number.isFinite(value) && !Object.is(value, -0)) return value;
    if (typeof value === 'number')
      return ['float', Object.keys(ODD_FLOATS).find((text) => Object.is(ODD_FLOATS[text], value))];
    if (isTensor(value)) {
      let name = path || 'tensor';
      while (tensors.has(name) || name === '__metadata__') name += '_';
      const nameless = NAMELESS.includes(value.dtype.name);
      const plain = nameless && value.detach().resolve_conj();
      tensors.set(name, plain ? spaces.torch.view_as_real(plain) : value);
      const flags = (value.requires_grad ? 'g' : '') + (value instanceof Parameter ? 'p' : '');
      return ['tensor', name, nameless ? `${flags}c` : flags];
    }
    if (dtypes[value.name] === value) return ['dtype', value.name];
    if (open.has(value)) throw new TypeError(`save: the container at '${path}' contains itself`);
    const inside = new Set(open).add(value);
    const outlineItem = (item, key) =>
      outline(item, path ? `${path}.${key}` : String(key), tensors, inside);
    if (Array.isArray(value)) return ['list', value.map(outlineItem)];
    if (value instanceof Set) return ['set', Array.from(value, outlineItem)];
    const pairs = value instanceof Map ? [...value] : isOptions(value) && Object.entries(value);
    if (pairs)
      return [
        'dict',
        pairs.map(([key, item]) => [outline(key, path, tensors, inside), outlineItem(item, key)]),
      ];
    const hint = typeof value.state_dict === 'function' ? '; save its state_dict() instead' : '';
    throw new TypeError(
      `save: cannot store an object of type ${value.constructor?.name ?? typeof value}${path ? ` at '${path}'` : ''}${hint}. Tensors, ` +
        'numbers, strings, dtypes, null, and objects, arrays, Maps and Sets of them can be stored',
    );
  }

  /** Saves a tensor, a state dict, or nested containers of tensors and numbers. @param {unknown} obj tensors, null, booleans,
   * numbers, bigints, strings, dtypes, and arrays, plain objects, Maps and Sets of them. A number without a fraction is an int to
   * Python. @param {string | URL} [f] the file to write, under Node
   * @returns {Uint8Array} the bytes of that safetensors file: for `load`, or for Python's `pygrad.load` */
  function save(obj, f) {
    if (arguments.length > 2)
      throw new NotImplementedError(
        'save: nothing is pickled, so there are no arguments behind the path',
      );
    const bytes = encodeFile(obj);
    files.write('save', f, bytes);
    return bytes;
  }

  /** The bytes of the file. */
  function encodeFile(obj) {
    const tensors = new Map();
    const entries = [
      [
        '__metadata__',
        {
          format: 'pt',
          pygrad: ascii({ version: FORMAT, object: outline(obj, '', tensors, new Set()) }),
        },
      ],
    ];
    const inOrder = [...tensors].sort(byName);
    const parts = [];
    let end = 0;
    for (const [dtype, name] of Object.entries(NAMES)) {
      for (const [key, value] of inOrder.filter(([, t]) => t.dtype.name === name)) {
        parts.push(bytesOf(value));
        entries.push([
          key,
          { data_offsets: [end, (end += parts.at(-1).length)], dtype, shape: value.shape },
        ]);
      }
    }
    const header = new TextEncoder().encode(
      `{${entries.sort(byName).map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`)}}`,
    );
    const start = 8 + Math.ceil(header.length / 8) * 8;
    const bytes = new Uint8Array(start + end).fill(32, 0, start);
    new DataView(bytes.buffer).setBigUint64(0, BigInt(start - 8), true);
    bytes.set(header, 8);
    for (const part of parts.reverse()) bytes.set(part, (end -= part.length) + start);
    return bytes;
  }

  /** The header of a safetensors file; raises for other files. */
  function readHeader(bytes) {
    if (!bytes.length) throw new (errorClass('EOFError'))('Ran out of input');
    const starts = (...codes) => codes.every((code, i) => bytes[i] === code);
    if (starts(0x50, 0x4b, 3, 4))
      throw refusal(`it is a zip archive, as torch.save writes${CONVERT}`);
    const length =
      bytes.length < 8
        ? Infinity
        : Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
    if (length > MOST_HEADER_BYTES || 8 + length > bytes.length || bytes[8] !== 0x7b)
      throw refusal(
        starts(0x80)
          ? `it is a pickle, as older versions of torch.save write${CONVERT}`
          : 'it has no safetensors header',
      );
    try {
      const { __metadata__: metadata, ...entries } = JSON.parse(
        new TextDecoder().decode(bytes.subarray(8, 8 + length)),
      );
      return { metadata, entries: Object.entries(entries), data: bytes.subarray(8 + length) };
    } catch (error) {
      throw refusal(`its header is damaged: ${error.message}`);
    }
  }

  /** The tensors of a file, by name; checks that they make up all of its data. */
  function readTensors(entries, data, float8) {
    const read = new Map();
    let end = 0;
    for (const [
      name,
      {
        dtype,
        shape,
        data_offsets: [from, to],
      },
    ] of entries.sort(
      ([, { data_offsets: a }], [, { data_offsets: b }]) => a[0] - b[0] || a[1] - b[1],
    )) {
      const isFloat8 = dtype in FLOAT8;
      if (isFloat8 && float8 !== 'float32')
        throw new NotImplementedError(
          `load: tensor '${name}' has dtype ${dtype}, of which pygrad has no tensors. With { float8: 'float32' } such tensors are ` +
            'read as float32, with the same numbers, and the others of the file as they are',
        );
      const kind = dtypes[isFloat8 ? 'uint8' : NAMES[dtype]];
      if (!kind)
        throw new NotImplementedError(`load: tensor '${name}' has unsupported dtype ${dtype}`);
      if (
        from !== end ||
        to > data.length ||
        to - from !== shape.reduce((a, b) => a * b, kind.itemsize)
      )
        throw refusal(`it is damaged: the place of tensor '${name}'`);
      end = to;
      const make = () => {
        const bytes = data.subarray(from, to);
        if (!isFloat8) return tensorFromBytes(bytes, kind, shape);
        const numbers = numbersOf(dtype);
        const wide = Float32Array.from(bytes, (byte) => numbers[byte]);
        return tensorFromBytes(new Uint8Array(wide.buffer), dtypes.float32, shape);
      };
      let made;
      read.set(name, () => (made ??= make()));
    }
    if (end !== data.length)
      throw refusal('it is damaged: its data does not end with the last tensor');
    return read;
  }

  /** The value of an outline. */
  function value(of, tensors) {
    if (!Array.isArray(of)) return of;
    const [kind, first, flags] = of;
    const list = (items = first) => items.map((item) => value(item, tensors));
    const dict = () => {
      const pairs = first.map(([key, item]) => [keyOf(value(key, tensors)), value(item, tensors)]);
      return pairs.every(([key]) => typeof key === 'string') ? inOrder(pairs) : new Map(pairs);
    };
    const kinds = {
      tensor() {
        const stored = tensors.get(first)();
        const made = flags.includes('c') ? spaces.torch.view_as_complex(stored) : stored;
        if (flags.includes('p')) return new Parameter(made, flags.includes('g'));
        return flags.includes('g') ? made.requires_grad_() : made;
      },
      int: () => small(BigInt(first)),
      float: () => ODD_FLOATS[first],
      dtype: () => dtypes[first],
      list,
      tuple: list,
      set: () => new Set(list().map(keyOf)),
      dict,
      odict: dict,
      counter: dict,
    };
    return kinds[kind]();
  }

  /** Reads a file of `save` or Python's `pygrad.save`, or any other safetensors file as an object of tensors in the file's order.
   * Lists and tuples become arrays; dicts become objects, or Maps if a key is no string or an object would change their order.
   * @param {string | URL | ArrayBufferView | ArrayBuffer} f the bytes, or under Node the path of the file @param
   * {...Given<LoadOptions>} rest @returns {any} */
  function load(f, ...rest) {
    const { map_location, mmap, float8 } = bind(
      'load',
      { map_location: null, weights_only: null, mmap: false, float8: null },
      rest,
    );
    if (float8 !== null && float8 !== 'float32')
      throw new RuntimeError(`load: float8 must be null or 'float32', not '${float8}'`);
    if (mmap) throw new NotImplementedError('load: mmap=True is not supported');
    if (map_location !== null && map_location !== 'cpu')
      throw new NotImplementedError(`load: map_location='${map_location}' is not supported`);
    const file = files.isPath('load', f, 'fetch the file, and give load its bytes')
      ? files.read(f)
      : f;
    if (
      !ArrayBuffer.isView(file) &&
      Object.prototype.toString.call(file) !== '[object ArrayBuffer]'
    )
      throw new TypeError(
        `load(): argument 'f' (position 1) must be a path or bytes, not ${typeName(file)}`,
      );
    const { metadata, entries, data } = readHeader(
      new Uint8Array(file.buffer ?? file, file.byteOffset ?? 0, file.byteLength),
    );
    const tensors = readTensors(entries, data, float8);
    if (metadata?.pygrad === undefined)
      return inOrder(Array.from(tensors, ([name, make]) => [name, make()]));
    const { version, object } = JSON.parse(metadata.pygrad);
    if (version > FORMAT)
      throw new RuntimeError(`this file was written by a newer pygrad (format ${version})`);
    try {
      return value(object, tensors);
    } catch (error) {
      if (![TypeError, SyntaxError, RangeError].some((kind) => error instanceof kind)) throw error;
      throw refusal(`its outline is damaged: ${error.name}: ${error.message}`);
    }
  }

  return { save, load };
}

/**
 * The engine's binary in an instance of WebAssembly: the only module that uses addresses.
 *
 * It runs the same file as the Python package. A call writes a frame into linear memory and crosses once; the engine checks
 * arguments, selects overloads and words errors (see wasm_core/boundary/pg.h).
 */

import { isComplex } from './arguments.js';
import { ABI, TAG } from './enumerations.js';

const BINARY = new URL('../pygrad/core.wasm', import.meta.url);
const WORD = 2 ** 32;
const MOST_MEMORY = 2 ** 32; // bytes
/** Added to the result of a call if warnings or dropped callbacks wait to be collected. */
export const PENDING = WORD;
const LIST = 2 ** 30; // in the upper half of a slot: the slot is a list
/** The word of an absent bound or element. */
export const ABSENT = -(2n ** 63n);

/** The limit of nested callbacks: V8's stack holds twice as many. */
const MOST_NESTED = 96;
const MOST_TEXT = 1024; // the most characters of a text in the frame: names of options and lines of traces

/** The engine crashed in a call; this instance is unusable. */
export class EngineError extends Error {
  name = 'EngineError';
}

const encoder = new TextEncoder();
/** The bytes of a text for C, which may contain no zero. */
function bytesOf(text) {
  if (text.includes('\0')) throw new ValueError('embedded null character');
  return encoder.encode(`${text}\0`);
}

const decoder = new TextDecoder();

/** Python's exception types, as PyTorch raises them, by the names that the engine uses. */
const errors = new Map([['TypeError', TypeError]]);

/** The value of a key in a map, made at the first request. */
export function getOrMake(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

/** The class of errors of a name. @param {string} name @returns {new (message?: string) => Error} */
export const errorClass = (name) =>
  getOrMake(errors, name, () => {
    const made = { [name]: class extends Error {} }[name];
    Object.defineProperty(made.prototype, 'name', { value: name });
    return made;
  });

export const [
  RuntimeError,
  ValueError,
  IndexError,
  NotImplementedError,
  OutOfMemoryError,
  LinAlgError,
] = [
  'RuntimeError',
  'ValueError',
  'IndexError',
  'NotImplementedError',
  'OutOfMemoryError',
  'LinAlgError',
].map(errorClass);

/** A value that the engine knows by a number, such as a dtype or a generator, or by words, such as a subscript. */
export class Coded {
  /** @private @param {number} tag @param {number | (number | bigint)[]} code */
  constructor(tag, code) {
    /** @private */
    this.tag = tag;
    this.code = code;
  }
}

/** The key under which a class (of tensors, nodes, generators, modules) holds its engine. */
export const ENGINE = Symbol.for('pygrad.engine');

/** Kinds of lists: a tag, and a function from an element to its word, undefined for an element of another kind. */
const LISTS = [
  [TAG.INTS, (v) => (Number.isSafeInteger(v) || typeof v === 'bigint' ? v : undefined)],
  [
    TAG.TENSORS,
    (v, engine) =>
      v === null ? 0 : v?.handle !== undefined && v[ENGINE] === engine ? v.alive() : undefined,
  ],
  [TAG.INTS, (v) => (v === null ? ABSENT : Number.isSafeInteger(v) ? v : undefined)],
  [TAG.BOOLS, (v) => (typeof v === 'boolean' ? Number(v) : undefined)],
  [TAG.FLOATS, (v) => (typeof v === 'number' ? v : undefined)],
];

/** Drops a callback's result that an error refuses; the rejection of a dropped promise is not reported. */
export function abandon(value) {
  if (typeof value?.then === 'function') Promise.resolve(value).catch(() => {});
}

/** Runs fn between `enter` and `leave`, which gets enter's result and also runs if fn throws. */
export function runWithin(enter, leave, fn) {
  if (typeof fn !== 'function')
    throw new TypeError('pygrad: a scope takes the function that runs in it');
  const was = enter();
  try {
    const result = fn();
    if (typeof result?.then !== 'function') return result;
    abandon(result);
    throw new TypeError('pygrad: a scope ends before an async function does');
  } finally {
    leave(was);
  }
}

/** Bytes of a binary: from a file under Node, over the network in a page. */
async function readBinary(source) {
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return source;
  const url = new URL(source, import.meta.url);
  if (url.protocol === 'file:') {
    const { readFile } = await import(/* @vite-ignore */ ['node', 'fs/promises'].join(':')); // hidden from bundlers
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok)
    throw new EngineError(`pygrad: no engine at ${url.pathname}: ${response.status}`);
  return response.arrayBuffer();
}

/** Loads the engine. @param {string | URL | BufferSource} [source] the binary; the package's own by default.
 * @returns {Promise<Engine>} an instance with memory of its own. */
export async function loadEngine(source = BINARY) {
  const module = await WebAssembly.compile(await readBinary(source)).catch((error) => {
    throw new EngineError(
      `pygrad: this is no engine, or WebAssembly SIMD is missing: ${error.message}`,
    );
  });
  const wanted = WebAssembly.Module.imports(module)
    .map((i) => `${i.module}.${i.name}`)
    .sort();
  if (wanted.join() !== 'env.memory,env.pg_host')
    throw new EngineError(`pygrad: the engine imports ${wanted}, not what this version offers`);
  const memory = new WebAssembly.Memory({ initial: 256, maximum: 65536 });
  const env = { memory, pg_host: (kind, id, n) => engine.host(kind, id, n) };
  const engine = new Engine(await WebAssembly.instantiate(module, { env }), memory);
  return engine;
}

export class Engine {
  /** Set by hooks.js: runs the callback of a kind and an id on words; drops a callback. */
  onHostCall = (_kind, _id, _words) => [];
  onDropped = (_id) => {};
  onWarning = (text) => console.warn(text);
  warnings = []; // of callbacks; collected with the engine's own
  released = []; // handles of collected objects, passed on at the next crossing
  unusable = null; // or the reason why the engine crashed
  hostError = null; // the error that a callback threw
  keywords = new Map(); // the engine's numbers for names of options
  names = []; // the numbers of a call's names

  constructor(instance, memory) {
    this.exports = instance.exports;
    this.memory = memory;
    this.exports._initialize();
    const abi = this.exports.pg_layout(0);
    if (abi !== ABI)
      throw new EngineError(`pygrad: the engine speaks version ${abi}, this front ${ABI}`);
    this.frame = this.exports.pg_frame();
    /** Offsets in a tensor's header and other structures; addresses for names frame_.... */
    this.layout = Object.fromEntries(
      this.text(this.exports.pg_layout_names())
        .split(' ')
        .map((name, k) => [
          name,
          this.exports.pg_layout(k) + (name.startsWith('frame_') ? this.frame : 0),
        ]),
    );
    this.lists = this.dataAt = this.layout.frame_data; // the area of a call's lists and texts, and the next free address in it
    this.listsEnd = this.lists + this.layout.data_bytes;
    this.view.i32[this.layout.frame_most_nested / 4] = MOST_NESTED;
  }

  // ---------------------------------------------------------------- memory

  /** Typed views of linear memory, made again after it has grown, which empties the old ones. */
  get view() {
    if (!this.views?.u8.length) {
      const { buffer } = this.memory;
      this.views = {
        u8: new Uint8Array(buffer),
        i32: new Int32Array(buffer),
        u32: new Uint32Array(buffer),
        i64: new BigInt64Array(buffer),
        f64: new Float64Array(buffer),
      };
    }
    return this.views;
  }

  /** The text at an address. */
  text(address) {
    const { u8 } = this.view;
    return decoder.decode(u8.subarray(address, u8.indexOf(0, address)));
  }

  /** All texts that an export returns, called with 0, 1, ... until it returns none. */
  texts(give) {
    const found = [];
    for (let at; (at = give(found.length)); ) found.push(this.text(at));
    return found;
  }

  u32(address) {
    return this.view.u32[address >>> 2];
  }

  /** The integer in word k of memory: a number if that is exact, else a bigint. */
  word(k) {
    const { i32, u32, i64 } = this.view;
    const value = i32[2 * k + 1] * WORD + u32[2 * k];
    return Number.isSafeInteger(value) ? value : i64[k];
  }

  /** The integers in n words from word k of memory on. */
  words(k, n) {
    const found = [];
    for (let i = 0; i < n; i++) found.push(this.word(k + i));
    return found;
  }

  /** Writes an integer to word k of memory. */
  setWord(k, value) {
    const { u32, i64 } = this.view;
    if (typeof value === 'bigint') {
      if (BigInt.asIntN(64, value) !== value)
        throw new ValueError('Overflow when unpacking long long');
      i64[k] = value;
    } else {
      u32[2 * k] = value;
      u32[2 * k + 1] = Math.floor(value / WORD);
    }
  }

  // ---------------------------------------------------------------- callbacks

  host(kind, id, n) {
    const { frame_host_in, frame_host_out, frame_host_n_out, frame_host_cap } = this.layout;
    try {
      const results = this.onHostCall(kind, id, this.words(this.u32(frame_host_in) / 8, n)) ?? [];
      const to = this.u32(frame_host_out) / 8;
      const most = this.view.i32[frame_host_cap / 4]; // room for results; the engine fails if there are more
      for (let i = 0; i < results.length && i < most; i++) this.setWord(to + i, results[i]);
      this.view.i32[frame_host_n_out / 4] = results.length;
      return 0;
    } catch (error) {
      this.hostError = error;
      return -1;
    }
  }

  /** The modes of recording, bits of MODES; assign to change them. */
  get modes() {
    return this.view.i32[this.layout.frame_modes / 4];
  }
  set modes(bits) {
    this.view.i32[this.layout.frame_modes / 4] = bits;
  }

  // ---------------------------------------------------------------- calls

  /** Writes a text to the frame for the engine. */
  tell(text) {
    this.view.u8.set(bytesOf(text.slice(0, MOST_TEXT)), this.layout.frame_data);
  }

  /** The engine's number for the name of an option. */
  intern(name) {
    return getOrMake(this.keywords, name, () => {
      this.tell(name);
      return this.exports.pg_intern();
    });
  }

  /** Calls the op whose first row is `row`; `self` is the receiver of a method, or undefined, and `options` may be null. Returns
   * the handle of a tensor, owned by the caller, or 0 for a result that `readResult` reads; plus PENDING if `collectPending` must
   * be called. */
  call(row, mode, self, args, options) {
    let r = 0;
    if (!this.unusable) {
      this.write(row, mode, self, args, options);
      try {
        r = this.exports.pg_call_double();
      } catch (error) {
        this.unusable = String(error.message ?? error);
      }
    }
    if (this.unusable) throw new EngineError(`pygrad: the engine is unusable: ${this.unusable}`);
    if (r < 0) throw this.failure(-r);
    return r;
  }

  /** Writes a call to the frame. */
  write(row, mode, self, args, options) {
    const { frame, layout, names } = this;
    let named = 0;
    for (const name in options) if (options[name] !== undefined) names[named++] = this.intern(name); // intern uses the frame's data
    const count = args.length + (self === undefined ? 0 : 1);
    if (count + named > 16)
      throw new TypeError(`pygrad: a call takes at most 16 arguments, not ${count + named}`);
    const slots = layout.frame_slots / 8;
    let k = 0,
      low = 0,
      high = 0;
    const add = (value) => {
      const tag = this.encode(value, slots + k);
      if (k < 8) low |= tag << (4 * k);
      else high |= tag << (4 * (k - 8));
      k++;
    };
    this.dataAt = this.lists;
    if (self !== undefined) add(self);
    for (let i = 0; i < args.length; i++) add(args[i]);
    if (named) for (const name in options) if (options[name] !== undefined) add(options[name]);
    const { u8, i32, u32 } = this.view;
    i32[frame / 4] = row;
    u8[frame + 4] = count;
    u8[frame + 5] = named;
    for (let i = 0; i < named; i++) i32[layout.frame_keywords / 4 + i] = names[i];
    u8[frame + 6] = mode;
    u8[frame + 7] = this.handOver();
    u32[frame / 4 + 2] = low;
    u32[frame / 4 + 3] = high;
  }

  /** Writes released handles to the frame; returns their number. */
  handOver() {
    const { released, layout } = this;
    let n = 0;
    for (; released.length && n <= layout.max_release; n++)
      this.setWord(n ? layout.frame_release / 8 + n - 1 : this.frame / 8 + 2, released.pop());
    return n;
  }

  /** The number of live tensors and nodes, after passing on all released handles. */
  liveCount() {
    while (this.released.length) {
      this.view.u8[this.frame + 7] = this.handOver();
      this.exports.pg_release();
      if (!this.released.length) this.collectPending();
    }
    return Number(this.exports.pg_live_count());
  }

  /** Writes one value into its slot; returns its tag. */
  encode(value, slot) {
    if (value === null || value === undefined) return this.put(TAG.NONE, 0, slot);
    switch (typeof value) {
      case 'object':
        return this.encodeObject(value, slot);
      case 'number':
        if (Number.isSafeInteger(value) && !Object.is(value, -0))
          return this.put(TAG.INT, value, slot);
        this.view.f64[slot] = value;
        return TAG.FLOAT;
      case 'boolean':
        return this.put(TAG.BOOL, Number(value), slot);
      case 'string':
        return this.put(TAG.STR, this.putText(value), slot);
      case 'bigint':
        return this.put(TAG.INT, value, slot);
      default:
        return this.encodeOther(value, slot);
    }
  }

  put(tag, word, slot) {
    this.setWord(slot, word);
    return tag;
  }

  encodeObject(value, slot) {
    if (value.handle !== undefined && value[ENGINE] === this)
      return this.put(TAG.TENSOR, value.alive(), slot);
    if (Array.isArray(value)) return this.encodeList(value, slot);
    if (isComplex(value)) return this.encodeComplex(value, slot);
    this.refuseOthers(value);
    if (!(value instanceof Coded)) return this.encodeOther(value, slot);
    if (!Array.isArray(value.code)) return this.put(value.tag, value.code, slot);
    this.putList(value.tag, value.code, (word) => word, slot);
    return value.tag;
  }

  /** Writes the two doubles of a complex number, and their address to the slot. */
  encodeComplex({ re, im }, slot) {
    const at = this.room(16);
    this.view.f64[at / 8] = re;
    this.view.f64[at / 8 + 1] = im;
    return this.put(TAG.COMPLEX, at, slot);
  }

  /** Raises for an object of another engine, whose handle would mean another object here. */
  refuseOthers(value) {
    const theirs = value?.[ENGINE];
    if (theirs !== undefined && theirs !== this)
      throw new RuntimeError(
        `pygrad: this ${value.constructor.name} is of another engine: each load() makes one of its own, and they share nothing`,
      );
  }

  /** Writes the type's name of a value that no op takes, for the error. */
  encodeOther(value, slot, list = '') {
    return this.put(
      TAG.OTHER,
      this.putText(list + (value?.constructor?.name ?? typeof value)),
      slot,
    );
  }

  encodeList(list, slot) {
    for (const [tag, word] of LISTS) if (this.putList(tag, list, word, slot)) return tag;
    list.forEach((v) => this.refuseOthers(v));
    return this.encodeOther(
      list.find((v) => typeof v !== 'number'),
      slot,
      'list of ',
    );
  }

  /** Writes a list by the words of its elements (floats directly), and its address to the slot; false if `word` refuses an
   * element. */
  putList(tag, list, word, slot) {
    const at = this.room(8 * list.length);
    for (let i = 0; i < list.length; i++) {
      const value = word(list[i], this);
      if (value === undefined) {
        this.dataAt = at;
        return false;
      }
      if (tag === TAG.FLOATS) this.view.f64[at / 8 + i] = value;
      else this.setWord(at / 8 + i, value);
    }
    this.view.u32[2 * slot] = at;
    this.view.u32[2 * slot + 1] = list.length | LIST;
    return true;
  }

  /** Writes a text; returns its address. */
  putText(text) {
    const bytes = bytesOf(text);
    const at = this.room(bytes.length);
    this.view.u8.set(bytes, at);
    return at;
  }

  /** The address of room for some bytes: after the call's earlier data, or in a new block that is kept for later calls. */
  room(bytes) {
    if (this.dataAt + bytes > this.listsEnd) {
      const more = 2 * (this.listsEnd - this.lists + bytes);
      const block = this.exports.pg_room(more) >>> 0;
      if (!block)
        throw new OutOfMemoryError(
          this.full(`pygrad: can't allocate memory: you tried to allocate ${more} bytes`),
        );
      this.lists = this.dataAt = block;
      this.listsEnd = block + more;
    }
    const at = this.dataAt;
    this.dataAt = at + ((bytes + 7) & ~7);
    return at;
  }

  failure(status) {
    const name = this.text(this.exports.pg_status_name(status));
    const message = this.text(this.u32(this.layout.frame_message));
    const { hostError } = this;
    this.hostError = null;
    this.collectPending();
    if (name === 'OutOfMemoryError') return new OutOfMemoryError(this.full(message));
    return name === 'host'
      ? (hostError ?? new RuntimeError('pygrad: a callback failed'))
      : new (errorClass(name))(message);
  }

  /** The message for a failed allocation. If memory could hold that much, it adds the number of live objects and ways to release
   * them. */
  full(message) {
    if (Number(/(\d+) bytes/.exec(message)?.[1] ?? MOST_MEMORY) >= MOST_MEMORY) return message;
    return (
      `${message}: ${this.exports.pg_live_count()} tensors and nodes are alive. Put each step into torch.scope(() => ...), ` +
      'or dispose() of tensors: else they live until the event loop turns and garbage is collected'
    );
  }

  collectPending() {
    const { frame_n_dropped, frame_dropped } = this.layout;
    const { i32 } = this.view;
    const at = this.u32(frame_dropped) / 4;
    const dropped = i32.slice(at, at + i32[frame_n_dropped / 4]);
    i32[frame_n_dropped / 4] = 0;
    dropped.forEach((id) => this.onDropped(id));
    this.warnings.push(...this.texts(this.exports.pg_warning));
    while (this.warnings.length) this.onWarning(this.warnings.shift());
  }

  /** The result of the last call if it is not one tensor; `tensor` makes a tensor of a handle, `dtype` finds a dtype by its code. */
  readResult(tensor, dtype) {
    const { frame_result_tag, frame_result } = this.layout;
    const value = this.word(frame_result / 8);
    const n = this.view.i32[frame_result_tag / 4 + 1];
    switch (this.view.i32[frame_result_tag / 4]) {
      case TAG.INT:
        return value;
      case TAG.FLOAT:
        return this.view.f64[frame_result / 8];
      case TAG.BOOL:
        return value !== 0;
      case TAG.COMPLEX:
        return { re: this.view.f64[value / 8], im: this.view.f64[value / 8 + 1] };
      case TAG.DTYPE:
        return dtype(value);
      case TAG.STR:
        return this.text(value);
      case TAG.INTS:
        return this.words(value / 8, n);
      case TAG.TENSORS:
        return this.words(value / 8, n).map((handle) => (handle ? tensor(handle) : null));
      default:
        return undefined;
    }
  }
}

/**
 * The engine's binary in an instance of WebAssembly: the one module that knows addresses.
 *
 * It runs the very file that the Python package ships. A call writes a frame into linear memory and
 * crosses once; what an argument may be, which overload it selects and what an error says is the
 * engine's business (see wasm_core/pg.h).
 */

const BINARY = new URL('../pygrad/core.wasm', import.meta.url);
const ABI = 1;
const PENDING = 2 ** 32;
const PAGES = { initial: 256, maximum: 65536 };
/** A bound or an element that is not there, among words. */
export const ABSENT = -(2n ** 63n);

/** How a value travels: Tag in wasm_core/call.h. */
export const TAG = Object.freeze({
  NONE: 1, TENSOR: 2, INT: 3, FLOAT: 4, BOOL: 5, STR: 6, DTYPE: 7, INTS: 8, FLOATS: 9, TENSORS: 10,
  INDEX: 11, OTHER: 12, BOOLS: 13, GENERATOR: 15,
});
export const MODE = Object.freeze({ INPLACE: 1, METHOD: 2 });
export const MODES = Object.freeze({ GRAD: 1, INFERENCE: 2 });
export const HOST = Object.freeze({ HOOK: 0, POST_HOOK: 1, CLOCK: 100 });

const LAYOUT = (
  'abi dtype ndim flags output_nr storage grad_fn version meta sizes strides offset numel ' +
  'meta_grad meta_base storage_bytes bytes_data bytes_size version_value frame_slots ' +
  'frame_keywords frame_release frame_result_tag frame_result frame_message frame_host_in ' +
  'frame_host_out frame_host_n_out frame_data data_bytes max_release storage_exports ' +
  'frame_modes frame_host_cap'
).split(' ');

/** The engine did not survive a call; nothing works any more in this instance. */
export class EngineError extends Error {
  name = 'EngineError';
}

/** Python's exception types, as PyTorch raises them, by the names that the engine uses. */
const errors = new Map([['TypeError', TypeError]]);

/** The class of errors of a name. */
export function errorClass(name) {
  if (!errors.has(name)) {
    const made = { [name]: class extends Error {} }[name];
    Object.defineProperty(made.prototype, 'name', { value: name });
    errors.set(name, made);
  }
  return errors.get(name);
}

export const RuntimeError = errorClass('RuntimeError');
export const ValueError = errorClass('ValueError');
export const IndexError = errorClass('IndexError');
export const NotImplementedError = errorClass('NotImplementedError');
export const OutOfMemoryError = errorClass('OutOfMemoryError');
export const LinAlgError = errorClass('LinAlgError');

/** An argument that stands between the brackets of x[...]: words for the engine (ops/index.def). */
export class Index {
  constructor(words) {
    this.words = words;
  }
}

/** A value that the engine knows by a number: a dtype or a generator. */
export class Coded {
  constructor(tag, code) {
    this.tag = tag;
    this.code = code;
  }
}

/** Whether a value is a trailing options object: `{dim: 1}`. */
export const isOptions = (value) =>
  value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype;

/** Bytes of a binary: from a file under Node, over the network in a page. */
async function readBinary(source) {
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return source;
  const url = new URL(source, import.meta.url);
  if (url.protocol === 'file:') {
    const { readFile } = await import('node:fs/promises');
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new EngineError(`pygrad: no engine at ${url.pathname}: ${response.status}`);
  return response.arrayBuffer();
}

/** Loads the engine.
 * @param {string | URL | BufferSource} [source] the binary; the package's own by default.
 * @returns {Promise<Engine>} an instance with memory of its own. */
export async function loadEngine(source = BINARY) {
  const bytes = await readBinary(source);
  let module;
  try {
    module = await WebAssembly.compile(bytes);
  } catch (error) {
    throw new EngineError(`pygrad: this is no engine, or WebAssembly SIMD is missing: ${error.message}`);
  }
  const wanted = WebAssembly.Module.imports(module).map((i) => `${i.module}.${i.name}`).sort();
  if (wanted.join() !== 'env.memory,env.pg_host')
    throw new EngineError(`pygrad: the engine imports ${wanted}, not what this version offers`);
  const engine = new Engine();
  const memory = new WebAssembly.Memory(PAGES);
  const env = { memory, pg_host: (kind, id, n) => engine.host(kind, id, n) };
  engine.start(await WebAssembly.instantiate(module, { env }), memory);
  return engine;
}

export class Engine {
  /** @type {(kind: number, id: number, handles: number[]) => number[]} set by tensor.js */
  onHostCall = () => [];
  /** @type {(id: number) => void} */
  onDropped = () => {};
  /** @type {(text: string) => void} */
  onWarning = (text) => console.warn(text);
  /** Handles whose objects are gone; the next crossing hands them over. @type {number[]} */
  released = [];
  /** Why nothing works any more, or null. @type {string | null} */
  unusable = null;

  start(instance, memory) {
    this.exports = instance.exports;
    this.memory = memory;
    this.exports._initialize();
    this.layout = Object.fromEntries(LAYOUT.map((name, k) => [name, this.exports.pg_layout(k)]));
    if (this.layout.abi !== ABI)
      throw new EngineError(`pygrad: the engine speaks version ${this.layout.abi}, this front ${ABI}`);
    this.frame = this.exports.pg_frame();
    this.data = this.frame + this.layout.frame_data;
    this.keywords = new Map();
    this.statuses = ['OK'];
    for (let at; (at = this.exports.pg_status_name(this.statuses.length)); ) this.statuses.push(this.text(at));
    this.hostError = null;
    this.depth = 0;
  }

  // ---------------------------------------------------------------- memory

  /** Typed views of linear memory; made anew when it has grown. */
  get view() {
    if (this.views?.buffer !== this.memory.buffer) {
      const buffer = this.memory.buffer;
      this.views = {
        buffer, u8: new Uint8Array(buffer), i32: new Int32Array(buffer), u32: new Uint32Array(buffer),
        i64: new BigInt64Array(buffer), f64: new Float64Array(buffer),
      };
    }
    return this.views;
  }

  /** The text at an address. */
  text(address) {
    const { u8 } = this.view;
    let end = address;
    while (u8[end]) end++;
    return new TextDecoder().decode(u8.slice(address, end));
  }

  u32(address) {
    return this.view.u32[address >>> 2];
  }

  // ---------------------------------------------------------------- callbacks

  host(kind, id, n) {
    const { i64, i32 } = this.view;
    const place = (name) => this.u32(this.frame + this.layout[name]) / 8;
    if (kind === HOST.CLOCK) {
      i64[place('frame_host_out')] = BigInt(Math.round(performance.now() * 1e6));
      return 0;
    }
    const from = place('frame_host_in');
    const handles = Array.from({ length: n }, (_, i) => Number(i64[from + i]));
    try {
      const results = this.onHostCall(kind, id, handles);
      const to = place('frame_host_out');
      results.forEach((handle, i) => { this.view.i64[to + i] = BigInt(handle); });
      this.view.i32[(this.frame + this.layout.frame_host_n_out) >> 2] = results.length;
      return 0;
    } catch (error) {
      this.hostError = error;
      return -1;
    }
  }

  /** The modes of recording, bits of MODES; assign to change them. */
  get modes() {
    return this.view.i32[(this.frame + this.layout.frame_modes) >> 2];
  }

  set modes(bits) {
    this.view.i32[(this.frame + this.layout.frame_modes) >> 2] = bits;
  }

  // ---------------------------------------------------------------- the op table

  /** The rows of the table: [flags, schema]. */
  describe() {
    const rows = [];
    for (let at; (at = this.exports.pg_describe(rows.length)); ) {
      const text = this.text(at);
      const gap = text.indexOf(' ');
      rows.push([text.slice(0, gap), text.slice(gap + 1)]);
    }
    return rows;
  }

  intern(name) {
    let id = this.keywords.get(name);
    if (id === undefined) {
      this.view.u8.set(new TextEncoder().encode(name + '\0'), this.data);
      id = this.exports.pg_intern();
      this.keywords.set(name, id);
    }
    return id;
  }

  // ---------------------------------------------------------------- calls

  /** Calls the op whose first row is `row`.
   * @param {number} row @param {number} mode bits of MODE
   * @param {unknown[]} args @param {Record<string, unknown>} options keyword arguments
   * @param {Finish} finish makes host values of handles and dtypes. */
  call(row, mode, args, options, finish) {
    if (this.unusable) throw new EngineError(`pygrad: the engine is unusable: ${this.unusable}`);
    const names = Object.keys(options).filter((name) => options[name] !== undefined);
    const ids = names.map((name) => this.intern(name));
    const blob = { at: this.data, end: this.data + this.layout.data_bytes };
    const { u8, i32, u32 } = this.view;
    const slots = (this.frame + this.layout.frame_slots) / 8;
    let low = 0, high = 0, k = 0;
    for (const value of [...args, ...names.map((name) => options[name])]) {
      const tag = this.encode(value, slots + k, blob);
      if (k < 8) low |= tag << (4 * k);
      else high |= tag << (4 * (k - 8));
      k++;
    }
    if (k > 16) throw new TypeError(`pygrad: a call takes at most 16 arguments, not ${k}`);
    ids.forEach((id, i) => { i32[(this.frame + this.layout.frame_keywords) / 4 + i] = id; });
    i32[this.frame / 4] = row;
    u8.set([args.length, names.length, mode, this.handOver()], this.frame + 4);
    u32[this.frame / 4 + 2] = low >>> 0;
    u32[this.frame / 4 + 3] = high >>> 0;
    return this.result(this.enter(), finish);
  }

  enter() {
    try {
      return Number(this.exports.pg_call());
    } catch (error) {
      this.unusable = String(error.message ?? error);
      throw new EngineError(`pygrad: the engine is unusable: ${this.unusable}`);
    }
  }

  /** Writes released handles into the frame; returns how many. */
  handOver() {
    const { i64 } = this.view;
    let n = 0;
    for (; this.released.length && n <= this.layout.max_release; n++) {
      const at = n === 0 ? this.frame + 16 : this.frame + this.layout.frame_release + 8 * (n - 1);
      i64[at / 8] = BigInt(this.released.pop());
    }
    return n;
  }

  /** Lets go of all that was released, without waiting for a call. */
  drain() {
    while (this.released.length) {
      this.view.u8[this.frame + 7] = this.handOver();
      this.exports.pg_release();
    }
  }

  /** Live tensors and nodes. */
  liveCount() {
    this.drain();
    return Number(this.exports.pg_live_count());
  }

  /** Writes one value into its slot; returns its tag. */
  encode(value, slot, blob) {
    const { i64, f64 } = this.view;
    if (value?.handle !== undefined) {
      i64[slot] = BigInt(value.alive());
      return TAG.TENSOR;
    }
    switch (typeof value) {
      case 'number':
        if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
          i64[slot] = BigInt(value);
          return TAG.INT;
        }
        f64[slot] = value;
        return TAG.FLOAT;
      case 'bigint':
        i64[slot] = BigInt.asIntN(64, value);
        return TAG.INT;
      case 'boolean':
        i64[slot] = BigInt(value);
        return TAG.BOOL;
      case 'string':
        i64[slot] = BigInt(this.put(new TextEncoder().encode(value + '\0'), blob));
        return TAG.STR;
      default:
    }
    if (value === null || value === undefined) {
      i64[slot] = 0n;
      return TAG.NONE;
    }
    if (value instanceof Coded) {
      i64[slot] = BigInt(value.code);
      return value.tag;
    }
    if (value instanceof Index) {
      i64[slot] = this.putWords(value.words, blob, true);
      return TAG.INDEX;
    }
    if (Array.isArray(value)) return this.encodeList(value, slot, blob);
    i64[slot] = BigInt(this.put(new TextEncoder().encode((value.constructor?.name ?? typeof value) + '\0'), blob));
    return TAG.OTHER;
  }

  encodeList(list, slot, blob) {
    const { i64 } = this.view;
    const all = (test) => list.every(test);
    if (all((v) => typeof v === 'bigint' || Number.isSafeInteger(v))) {
      i64[slot] = this.putWords(list.map(BigInt), blob, true);
      return TAG.INTS;
    }
    if (all((v) => v === null || v?.handle !== undefined)) {
      i64[slot] = this.putWords(list.map((v) => BigInt(v?.alive() ?? 0)), blob, true);
      return TAG.TENSORS;
    }
    if (all((v) => v === null || Number.isSafeInteger(v))) {
      i64[slot] = this.putWords(list.map((v) => (v === null ? ABSENT : BigInt(v))), blob, true);
      return TAG.INTS;
    }
    if (all((v) => typeof v === 'number')) {
      const at = this.put(new Uint8Array(Float64Array.from(list).buffer), blob);
      i64[slot] = BigInt(at) | (BigInt(list.length) << 32n) | (1n << 62n);
      return TAG.FLOATS;
    }
    if (all((v) => typeof v === 'boolean')) {
      i64[slot] = this.putWords(list.map((v) => BigInt(v)), blob, true);
      return TAG.BOOLS;
    }
    const odd = list.find((v) => typeof v !== 'number');
    i64[slot] = BigInt(this.put(new TextEncoder().encode(`list of ${odd?.constructor?.name ?? typeof odd}\0`), blob));
    return TAG.OTHER;
  }

  putWords(words, blob, isList) {
    const at = this.put(new Uint8Array(BigInt64Array.from(words, BigInt).buffer), blob);
    return BigInt(at) | (BigInt(words.length) << 32n) | (BigInt(isList) << 62n);
  }

  /** Copies bytes into the frame's data; returns their address. */
  put(bytes, blob) {
    const at = blob.at;
    blob.at += (bytes.length + 7) & ~7;
    if (blob.at > blob.end) throw new ValueError(`pygrad: the lists of one call may hold ${this.layout.data_bytes} bytes in all`);
    this.view.u8.set(bytes, at);
    return at;
  }

  result(r, finish) {
    if (r < 0) throw this.failure(-r);
    const pending = r >= PENDING;
    const handle = pending ? r - PENDING : r;
    const value = handle ? finish.tensor(handle) : this.described(finish);
    if (pending) this.collectPending();
    return value;
  }

  failure(status) {
    const name = this.statuses[status];
    const message = this.text(this.u32(this.frame + this.layout.frame_message));
    this.collectPending();
    if (name !== 'host') return new (errorClass(name))(message);
    const error = this.hostError;
    this.hostError = null;
    return error ?? new RuntimeError('pygrad: a callback failed');
  }

  collectPending() {
    for (let id; (id = this.exports.pg_dropped()); ) this.onDropped(id);
    for (let at; (at = this.exports.pg_warning()); ) this.onWarning(this.text(at));
  }

  described(finish) {
    const { i32, i64, f64 } = this.view;
    const tag = i32[(this.frame + this.layout.frame_result_tag) / 4];
    const n = i32[(this.frame + this.layout.frame_result_tag) / 4 + 1];
    const at = (this.frame + this.layout.frame_result) / 8;
    const address = Number(i64[at]);
    const words = () => Array.from({ length: n }, (_, i) => i64[address / 8 + i]);
    switch (tag) {
      case TAG.INT: return asNumber(i64[at]);
      case TAG.FLOAT: return f64[at];
      case TAG.BOOL: return i64[at] !== 0n;
      case TAG.DTYPE: return finish.dtype(address);
      case TAG.STR: return this.text(address);
      case TAG.INTS: return words().map(asNumber);
      case TAG.TENSORS: return finish.tensors(words().map((h) => (h ? finish.tensor(Number(h)) : null)));
      default: return undefined;
    }
  }
}

/** A number where it is exact, else a bigint. */
function asNumber(word) {
  const value = Number(word);
  return Number.isSafeInteger(value) ? value : word;
}

/** @typedef {{tensor: (handle: number) => any, tensors: (list: any[]) => any,
 *   dtype: (code: number) => any}} Finish */

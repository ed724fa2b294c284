/** What ran, when, and with what shapes: profiles of the engine's events, and the reports made of them.
 * Times are in microseconds, memory in bytes; the layout of the tables is PyTorch's. */
import { callers } from './anomaly.js';
import { bind, HOST, NotImplementedError, RuntimeError, ValueError, within } from './engine.js';

/** @import { Given } from './engine.js' */
/** @typedef {{enabled?: boolean, record_shapes?: boolean}} EmitNvtxOptions */
/** @typedef {{group_by_input_shape?: boolean, group_by_stack_n?: number}} AverageOptions */
/** @typedef {Partial<typeof OPTIONS>} ProfilerOptions */
/** @typedef {{sort_by?: string | null, row_limit?: number, max_name_column_width?: number, max_shapes_column_width?: number,
 *   max_src_column_width?: number, header?: string | null, top_level_events_only?: boolean, time_unit?: 's' | 'ms' | 'us' | null
 *   }} ProfilerTableOptions */
/** @typedef {{id: number, name: string, time_range: {start: number, end: number}, input_shapes: number[][], stack: string[],
 *   scope: number, cpu_memory_usage: number, sequence_nr: number, is_user_annotation: boolean}} EventFields */

const OPTIONS = { enabled: true, use_cuda: false, use_device: /** @type {string | null} */ (null), record_shapes: false, with_flops: false,
  profile_memory: false, with_stack: false, with_modules: false, use_kineto: false, use_cpu: true, acc_events: false };
const RANGE = 7; // PyTorch's number of the scope
const TIMES = { s: 1e6, ms: 1e3, us: 1 };
const SIZES = { GB: 2 ** 30, MB: 2 ** 20, KB: 2 ** 10, B: 1 };

/** The largest of some units that a number reaches, or their last. */
const unitOf = (number, units) => Object.keys(units).find((name) => Math.abs(number) >= units[name]) ?? Object.keys(units).at(-1);
const formatTime = (us, unit) => (unit ? `${(us / TIMES[unit]).toFixed(3)}${unit}` : formatTime(us, unitOf(us, TIMES)));
const formatMemory = (bytes, unit = unitOf(bytes, SIZES)) => `${unit === 'B' ? bytes : (bytes / SIZES[unit]).toFixed(2)} ${unit}`;
const formatShapes = (shapes) => (shapes?.length ? JSON.stringify(shapes).replaceAll(',', ', ') : '');
/** @returns {number} */
const sum = (events, name) => events.reduce((total, event) => total + event[name], 0);
const cut = (text, width) => (width > 0 && text.length > width ? `${text.slice(0, width - 3)}...` : text);

/** One call of an op, one run of a backward node, or one range that a caller named. @implements {EventFields} */
class FunctionEvent {
  count = 1;
  /** @type {FunctionEvent[]} */
  cpu_children = [];
  /** @type {FunctionEvent | null} */
  cpu_parent = null;

  /** @private @param {EventFields} fields */
  constructor(fields) { Object.assign(this, fields); }

  /** By what averages are taken: the name. @returns {string} */
  get key() { return this.name; }
  get cpu_time_total() { return this.time_range.end - this.time_range.start; }
  get cpu_time() { return this.cpu_time_total; }
  /** Its time without that of the events inside of it. */
  get self_cpu_time_total() { return this.cpu_time_total - sum(this.cpu_children, 'cpu_time_total'); }
  get self_cpu_memory_usage() { return this.cpu_memory_usage - sum(this.cpu_children, 'cpu_memory_usage'); }
}

const SUMS = ['count', 'cpu_time_total', 'self_cpu_time_total', 'cpu_memory_usage', 'self_cpu_memory_usage'];

/** Events, or averages of them, with the reports that can be made of a list. @extends {Array<FunctionEvent>} */
class EventList extends Array {
  options = {};

  /** The time of all events, each moment counted once. @returns {number} */
  get self_cpu_time_total() { return sum(this, 'self_cpu_time_total'); }

  /** Sums by name; by shapes of the inputs and the innermost calls of the stack too if asked for.
   * @param {...Given<AverageOptions>} rest @returns {EventList} */
  key_averages(...rest) {
    const { group_by_input_shape, group_by_stack_n } = bind('key_averages', { group_by_input_shape: false, group_by_stack_n: 0 }, rest);
    const groups = new Map();
    for (const event of this) {
      const key = [event.key, group_by_input_shape && formatShapes(event.input_shapes), ...event.stack.slice(0, group_by_stack_n)].join('\n');
      groups.get(key)?.push(event) ?? groups.set(key, [event]);
    }
    const averages = Array.from(groups.values(), (events) => {
      const { key, input_shapes, stack, cpu_parent } = events[0];
      const sums = Object.fromEntries(SUMS.map((name) => [name, sum(events, name)]));
      return { key, input_shapes: group_by_input_shape ? input_shapes : [], stack: stack.slice(0, group_by_stack_n), cpu_parent,
        ...sums, cpu_time: sums.cpu_time_total / sums.count };
    });
    return Object.assign(EventList.from(averages), { options: this.options });
  }

  /** The events as a text table. @param {...Given<ProfilerTableOptions>} rest @returns {string} */
  table(...rest) {
    const o = bind('table', { sort_by: null, row_limit: 100, max_src_column_width: 75, max_name_column_width: 55, max_shapes_column_width: 80,
      header: null, top_level_events_only: false, time_unit: null }, rest);
    if (!((o.time_unit ?? 's') in TIMES)) throw new ValueError(`time_unit is one of ${Object.keys(TIMES)}, not '${o.time_unit}'`);
    if (!this.length) return '';
    const columns = this.#columns(o);
    const row = (cell) => columns.map((column) => `${cell(column).padStart(column.width)}  `).join('');
    const rule = row(({ width }) => '-'.repeat(width));
    const events = [...this].filter((e) => !o.top_level_events_only || !e.cpu_parent);
    if (o.sort_by !== null) events.sort((a, b) => b[o.sort_by] - a[o.sort_by]);
    const shown = o.row_limit < 0 ? events : events.slice(0, o.row_limit);
    return [
      ...(o.header === null ? [] : ['='.repeat(rule.length - 2), o.header]), rule, row(({ title }) => title), rule,
      ...shown.map((e) => row(({ text }) => text(e))), rule,
      `Self CPU time total: ${formatTime(this.self_cpu_time_total, o.time_unit)}`, '',
    ].join('\n');
  }

  /** The columns of a table with these options. */
  #columns(o) {
    const total = this.self_cpu_time_total;
    const column = (title, text, width = 12) => ({ title, text, width });
    const time = (title, name) => column(title, (e) => formatTime(e[name], o.time_unit));
    const share = (title, name) => column(title, (e) => `${(total ? (100 * e[name]) / total : NaN).toFixed(2)}%`);
    const memory = (title, name) => (this.options.profile_memory ? [column(title, (e) => formatMemory(e[name]))] : []);
    /** As wide as its texts, within limits; left out if all are empty. */
    const texts = (title, text, most) => {
      const widest = Math.max(0, ...[...this].map((e) => text(e).length));
      return widest ? [column(title, (e) => cut(text(e), most), Math.min(Math.max(12, widest + 4), most < 0 ? Infinity : most))] : [];
    };
    return [
      ...texts('Name', (e) => e.key, o.max_name_column_width),
      share('Self CPU %', 'self_cpu_time_total'), time('Self CPU', 'self_cpu_time_total'),
      share('CPU total %', 'cpu_time_total'), time('CPU total', 'cpu_time_total'), time('CPU time avg', 'cpu_time'),
      ...memory('CPU Mem', 'cpu_memory_usage'), ...memory('Self CPU Mem', 'self_cpu_memory_usage'),
      column('# of Calls', (e) => String(e.count)),
      ...texts('Input Shapes', (e) => formatShapes(e.input_shapes), o.max_shapes_column_width),
      ...texts('Source Location', (e) => e.stack[0] ?? '', o.max_src_column_width),
    ];
  }

  /** The events as JSON that trace viewers show, arrows from each op to its backward node included. @returns {string} */
  export_chrome_trace() {
    const place = { pid: 0, tid: 1 };
    const makers = new Map([...this].filter((e) => e.sequence_nr >= 0 && e.scope === 0).map((e) => [e.sequence_nr, e]));
    const events = [...this].flatMap((e) => {
      const from = e.scope === 1 ? makers.get(e.sequence_nr) : undefined;
      const flow = { cat: 'fwdbwd', name: 'fwdbwd', id: e.sequence_nr, ...place };
      const args = { 'External id': e.id, 'Sequence number': e.sequence_nr, 'Input Dims': e.input_shapes, 'Call stack': e.stack };
      const cat = e.is_user_annotation ? 'user_annotation' : 'cpu_op';
      return [
        { ph: 'X', cat, name: e.name, ts: e.time_range.start, dur: e.cpu_time_total, args, ...place },
        ...(from ? [{ ph: 's', ts: from.time_range.start, ...flow }, { ph: 'f', bp: 'e', ts: e.time_range.start, ...flow }] : []),
      ];
    });
    const name = { ph: 'M', name: 'process_name', pid: 0, tid: 0, args: { name: 'pygrad' } };
    return JSON.stringify({ schemaVersion: 1, displayTimeUnit: 'ms', traceEvents: [name, ...events] });
  }
}

/** torch.autograd.profiler over a library of tensors. */
export function makeProfiler({ C, hooks }) {
  /** @type {Profile | null} */
  let running = null;

  /** Nanoseconds; told which event begins, or -1. */
  hooks.runners[HOST.CLOCK] = (event) => {
    if (event >= 0 && running?.options.with_stack) running.stacks.set(event, callers());
    return [Math.round(performance.now() * 1e6)];
  };

  /** Records what runs between `start` and `stop`, or while `run` runs a function. */
  class Profile {
    #events = null;
    /** @private Those of events, by number. */
    stacks = new Map();

    /** @param {ProfilerOptions} [options] */
    constructor(options = {}) {
      this.options = bind('profile', OPTIONS, [options]);
      const { use_cuda, use_device, use_cpu, with_flops } = this.options;
      if (use_cuda || !use_cpu || ![null, 'cpu'].includes(use_device)) throw new NotImplementedError('profile: there is no device but the CPU');
      if (with_flops) throw new NotImplementedError('profile: with_flops is not supported');
    }

    /** Begins to record. */
    start() {
      if (!this.options.enabled) return;
      if (running) throw new RuntimeError('Profiler is already enabled on this thread');
      if (this.#events && !this.options.acc_events) throw new RuntimeError('Profiler context manager is not reentrant');
      running = this;
      C._profile_start(this.options.record_shapes);
    }

    /** Ends it. */
    stop() {
      if (running !== this) return;
      C._profile_stop();
      running = null;
      this.#events = Object.assign(EventList.from([...(this.#events ?? []), ...this.#read()]), { options: this.options });
      this.stacks.clear();
      C._profile_clear();
    }

    /** Records what fn runs. @template T @param {() => T} fn @returns {T} */
    run(fn) { return within(() => this.start(), () => this.stop(), fn); }

    /** The engine's events, in the order in which they began. */
    #read() {
      const found = [];
      for (let fields; (fields = C._profile_event(found.length)); ) {
        const [scope, parent, start, end, sequence_nr, bytes] = fields;
        const input_shapes = [];
        for (let shape; (shape = C._profile_shape(found.length, input_shapes.length)); ) input_shapes.push(shape);
        const event = new FunctionEvent({
          id: found.length + 1, name: C._profile_name(found.length), time_range: { start: start / 1e3, end: end / 1e3 }, input_shapes,
          stack: this.stacks.get(found.length) ?? [], scope, cpu_memory_usage: this.options.profile_memory ? bytes : 0,
          sequence_nr, is_user_annotation: scope === RANGE,
        });
        event.cpu_parent = found[parent] ?? null;
        event.cpu_parent?.cpu_children.push(event);
        found.push(event);
      }
      return found;
    }

    /** All events, in the order in which they began. @returns {EventList} */
    get function_events() {
      if (this.#events) return this.#events;
      if (!this.options.enabled) return new EventList();
      throw new RuntimeError("Profiler didn't finish running");
    }

    /** See EventList. @param {...Given<AverageOptions>} rest @returns {EventList} */
    key_averages(...rest) { return this.function_events.key_averages(...rest); }
    /** See EventList. @param {...Given<ProfilerTableOptions>} rest @returns {string} */
    table(...rest) { return this.function_events.table(...rest); }
    /** See EventList. */
    export_chrome_trace() { return this.function_events.export_chrome_trace(); }
    get self_cpu_time_total() { return this.function_events.self_cpu_time_total; }
  }

  /** A profile: `profile(options)` to be started and stopped, `profile(fn, options)` of what fn runs.
   * @param {...((() => any) | ProfilerOptions)} args @returns {Profile} */
  function profile(...args) {
    const fn = typeof args[0] === 'function' ? args.shift() : null;
    const made = new Profile(args[0]);
    if (fn) made.run(fn);
    return made;
  }
  profile.prototype = Profile.prototype;

  /** Runs fn as a range of this name in the running profile. @template T @param {string} name @param {() => T} fn @returns {T} */
  const record_function = (name, fn) => within(() => C._profile_begin(name), (event) => C._profile_end(event), fn);

  /** Accepted for scripts written for NVIDIA's tools: in a profile the ranges are in its trace anyway; outside of one nobody would
   * receive them, which is an error. @template T @param {() => T} fn @param {...Given<EmitNvtxOptions>} rest @returns {T} */
  function emit_nvtx(fn, ...rest) {
    const { enabled } = bind('emit_nvtx', { enabled: true, record_shapes: false }, rest);
    if (enabled && !running)
      throw new RuntimeError('emit_nvtx: NVTX is not available; start profile() first to record the ranges, then export_chrome_trace()');
    return fn();
  }

  return { profile, record_function, emit_nvtx, EventList, FunctionEvent };
}

/** Profiles of the engine's events, with times and shapes, and the engine's reports of them. Times are in microseconds, memory in
 * bytes; the layout of the tables is PyTorch's. */
import { callers } from './anomaly.js';
import { bind } from './arguments.js';
import { errorClass, getOrMake, NotImplementedError, RuntimeError, runWithin } from './engine.js';
import { HOST } from './enumerations.js';

/** @import { Given } from './arguments.js' */
/** @typedef {Partial<typeof OPTIONS>} ProfilerOptions @typedef {Pick<ProfilerOptions, 'enabled' | 'record_shapes'>} EmitNvtxOptions */
/** @typedef {Partial<typeof TABLE>} ProfilerTableOptions @typedef {Partial<typeof AVERAGE>} AverageOptions */
/** Averages are taken by `key`; the fields self_... exclude the cpu_children.
 * @typedef {{id: number, key: string, name: string, count: number, time_range: {start: number, end: number}, cpu_time: number,
 * cpu_time_total: number, self_cpu_time_total: number, cpu_memory_usage: number, self_cpu_memory_usage: number, flops: number,
 * input_shapes: number[][], stack: string[], scope: number, sequence_nr: number, is_user_annotation: boolean, cpu_parent:
 * FunctionEvent | null, cpu_children: FunctionEvent[]}} EventFields */

const OPTIONS = {
  enabled: true,
  use_cuda: false,
  use_device: /** @type {string | null} */ (null),
  record_shapes: false,
  with_flops: false,
  profile_memory: false,
  with_stack: false,
  with_modules: false,
  use_kineto: false,
  use_cpu: true,
  acc_events: false,
};
const TABLE = {
  sort_by: /** @type {string | null} */ (null),
  row_limit: 100,
  max_src_column_width: 75,
  max_name_column_width: 55,
  max_shapes_column_width: 80,
  header: /** @type {string | null} */ (null),
  top_level_events_only: false,
  time_unit: /** @type {'s' | 'ms' | 'us' | null} */ (null),
};
const AVERAGE = { group_by_input_shape: false, group_by_stack_n: 0 };
const SUMS = [
  'self_cpu_time_total',
  'cpu_time_total',
  'cpu_memory_usage',
  'self_cpu_memory_usage',
  'count',
  'flops',
];

/** The engine's input for reports: fields of each event, as text, and numbers. */
const reportInput = (events, fields, numbers) => [
  Array.from(events, (e) => fields(e).join('\x1f')).join('\x1e'),
  Array.from(events, numbers).flat(),
];

/** A call of an op, a run of a backward node, or a range that a caller named. @implements {EventFields} */
class FunctionEvent {
  /** @private */
  constructor({ start_us: start, end_us: end, ...fields }, stack, cpu_parent) {
    const { name: key, cpu_memory_usage: bytes } = fields,
      time = end - start;
    Object.assign(this, fields, {
      key,
      count: 1,
      time_range: { start, end },
      stack,
      cpu_parent,
      cpu_children: [],
    });
    Object.assign(this, {
      cpu_time: time,
      cpu_time_total: time,
      self_cpu_time_total: time,
      self_cpu_memory_usage: bytes,
    });
    if (!cpu_parent) return;
    cpu_parent.cpu_children.push(this);
    cpu_parent.self_cpu_time_total -= time;
    cpu_parent.self_cpu_memory_usage -= bytes;
  }
}

/** torch.autograd.profiler over a library of tensors. */
export function makeProfiler({ C, files, hooks }) {
  /** @type {Profile | null} */
  let running = null;
  const stacks = new Map(); // stacks of its events, by number

  /** The time in nanoseconds; `event` is the event that begins, or -1. */
  hooks.runners[HOST.CLOCK] = (event) => {
    if (event >= 0 && running?.options.with_stack) stacks.set(event, callers());
    return [Math.round(performance.now() * 1e6)];
  };

  /** A list of events, or of averages of them, with reports. @extends {Array<FunctionEvent>} */
  class EventList extends Array {
    options = OPTIONS;

    /** The time of all events, each moment counted once. @returns {number} */
    get self_cpu_time_total() {
      return this.reduce((total, event) => total + event.self_cpu_time_total, 0);
    }

    /** Sums by name, and optionally by shapes of the inputs and the innermost calls of the stack.
     * @param {...Given<AverageOptions>} rest @returns {EventList} */
    key_averages(...rest) {
      const { group_by_input_shape, group_by_stack_n } = bind('key_averages', AVERAGE, rest);
      const groups = new Map();
      for (const event of this) {
        const input_shapes = group_by_input_shape ? event.input_shapes : [],
          stack = event.stack.slice(0, group_by_stack_n);
        const first = { ...event, input_shapes, stack };
        const average = getOrMake(
          groups,
          JSON.stringify([event.key, input_shapes, stack]),
          () => first,
        );
        if (average !== first) for (const name of SUMS) average[name] += event[name];
        average.cpu_time = average.cpu_time_total / average.count;
      }
      return Object.assign(EventList.from(groups.values()), { options: this.options });
    }

    /** The events as a text table. @param {...Given<ProfilerTableOptions>} rest @returns {string} */
    table(...rest) {
      const { sort_by, header, time_unit, ...limits } = bind('table', TABLE, rest);
      const options = [
        this.options.profile_memory,
        this.options.with_flops,
        ...Object.values(limits),
      ].map(Number);
      if (sort_by !== null && this.some((event) => typeof event[sort_by] !== 'number'))
        throw new (errorClass('AttributeError'))(
          `'FunctionEvent' object has no attribute '${sort_by}' to sort by`,
        );
      const events = sort_by === null ? this : [...this].sort((a, b) => b[sort_by] - a[sort_by]);
      const fields = (e) => [
        e.key,
        JSON.stringify(e.input_shapes).replaceAll(',', ', '),
        ...e.stack,
      ];
      const numbers = (e) => [
        ...SUMS.map((name) => e[name]),
        e.cpu_time,
        Number(e.cpu_parent !== null),
      ];
      return C._profile_table(
        ...reportInput(events, fields, numbers),
        this.self_cpu_time_total,
        options,
        header,
        time_unit,
      );
    }

    /** The events as JSON for trace viewers, with arrows from each op to its backward node.
     * @param {string | URL | null} [path] the file to write, under Node @param {Record<string, string> | null} [metadata] further
     * members of the JSON, each a JSON text @returns {string} */
    export_chrome_trace(path, metadata) {
      if (String(path).endsWith('.gz'))
        throw new NotImplementedError('export_chrome_trace: files are not compressed');
      const fields = (e) => [e.name, e.input_shapes, e.stack].map((field) => JSON.stringify(field));
      const numbers = (e) => [
        e.id,
        e.time_range.start,
        e.cpu_time_total,
        e.sequence_nr,
        e.scope,
        Number(e.is_user_annotation),
        1,
      ];
      const more = Object.entries(metadata ?? {}).map(
        ([key, value]) => `, ${JSON.stringify(key)}: ${value}`,
      );
      const trace = `${C._profile_trace(...reportInput(this, fields, numbers), 0).slice(0, -1)}${more.join('')}}`;
      files.write('export_chrome_trace', path, trace);
      return trace;
    }
  }

  /** Records events between `start` and `stop`, or while `run` runs a function. */
  class Profile {
    #events = null;

    /** @param {...((() => any) | ProfilerOptions)} args */
    constructor(...args) {
      const fn = typeof args[0] === 'function' ? args.shift() : null;
      this.options = { ...bind('profile', OPTIONS, args) };
      const { use_cuda, use_device, use_cpu } = this.options;
      if (use_cuda || !use_cpu || ![null, 'cpu'].includes(use_device))
        throw new NotImplementedError('profile: there is no device but the CPU');
      if (fn) this.run(fn);
    }

    /** Starts recording. */
    start() {
      const { enabled, acc_events, record_shapes, profile_memory, with_flops } = this.options;
      if (!enabled) return;
      if (this.#events && !acc_events)
        throw new RuntimeError('Profiler context manager is not reentrant');
      C._profile_start(record_shapes, profile_memory, with_flops);
      running = this;
    }

    /** Stops recording. */
    stop() {
      if (running !== this) return;
      C._profile_stop();
      running = null;
      const found = [];
      for (let text; (text = C._profile_event(found.length)); ) {
        const { parent, ...fields } = JSON.parse(text);
        found.push(
          new FunctionEvent(fields, stacks.get(found.length) ?? [], found[parent] ?? null),
        );
      }
      this.#events = Object.assign(EventList.from([...(this.#events ?? []), ...found]), {
        options: this.options,
      });
      stacks.clear();
      C._profile_clear();
    }

    /** Records the events of fn. @template T @param {() => T} fn @returns {T} */
    run(fn) {
      return runWithin(
        () => this.start(),
        () => this.stop(),
        fn,
      );
    }

    /** All events, in the order of their beginning. @returns {EventList} */
    get function_events() {
      if (this.#events || !this.options.enabled) return this.#events ?? new EventList();
      throw new RuntimeError("Profiler didn't finish running");
    }

    /** See EventList. @param {...Given<AverageOptions>} rest @returns {EventList} */
    key_averages(...rest) {
      return this.function_events.key_averages(...rest);
    }
    /** See EventList. @param {...Given<ProfilerTableOptions>} rest @returns {string} */
    table(...rest) {
      return this.function_events.table(...rest);
    }
    /** See EventList. @param {string | URL | null} [path] @param {Record<string, string> | null} [metadata] @returns {string} */
    export_chrome_trace(path, metadata) {
      return this.function_events.export_chrome_trace(path, metadata);
    }
    get self_cpu_time_total() {
      return this.function_events.self_cpu_time_total;
    }
  }

  /** A profile: `profile(options)` to start and stop, `profile(fn, options)` of a run of fn.
   * @param {...((() => any) | ProfilerOptions)} args @returns {Profile} */
  const profile = (...args) => new Profile(...args);
  profile.prototype = Profile.prototype;

  /** Runs fn as a named range in the running profile. @template T @param {string} name @param {() => T} fn @returns {T} */
  const record_function = (name, fn) =>
    runWithin(
      () => C._profile_begin(name),
      (event) => C._profile_end(event),
      fn,
    );

  /** Accepted for scripts written for NVIDIA's tools. In a profile the ranges are in its trace anyway; outside of one they would be
   * lost, which is an error. @template T @param {() => T} fn @param {...Given<EmitNvtxOptions>} rest @returns {T} */
  function emit_nvtx(fn, ...rest) {
    if (bind('emit_nvtx', { enabled: true, record_shapes: false }, rest).enabled && !running)
      throw new RuntimeError(
        'emit_nvtx: NVTX is not available; start profile() first to record the ranges, then export_chrome_trace()',
      );
    return fn();
  }

  return { profile, record_function, emit_nvtx, EventList, FunctionEvent };
}

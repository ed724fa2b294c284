/** Hooks: callables that the engine knows by a number, and the handles that remove them. */
import { typeName } from './arguments.js';
import { abandon } from './engine.js';
import { HOST } from './enumerations.js';

/** The name of a hook. */
const nameOf = (hook) => hook?.name || '<unknown>';

/** Removes a hook. */
export class RemovableHandle {
  /** @param {number} id @param {() => void} remove */
  constructor(id, remove) {
    this.id = id;
    /** Removes the hook; a second time does nothing. @type {() => void} */
    this.remove = remove;
  }
}

/** Objects kept for the engine, and functions that run each kind of callback. `library` is complete before the first callback. */
export function makeHooks(engine, library) {
  /** Hooks, pairs of hooks, packed objects, contexts of custom functions, by the engine's number. */
  const objects = new Map();
  const returned = new Map(); // results of applied functions, until the engine asks for them
  let last = 0;
  const newId = () => ++last;

  /** Keeps an object under a new number, which `tell` passes to the engine. The object lives until the engine drops it, or until
   * `tell` fails. */
  function keep(thing, tell = () => {}) {
    const id = newId();
    objects.set(id, thing);
    try {
      tell(id);
    } catch (error) {
      drop(id);
      throw error;
    }
    return id;
  }

  function drop(id) {
    const thing = objects.get(id);
    objects.delete(id);
    thing?.onDropped?.();
  }

  /** Keeps a hook on a tensor or node: `add(id)` and `remove(owner, id)` tell the engine. */
  function register(owner, hook, add, remove) {
    if (typeof hook !== 'function')
      throw new TypeError(`a hook must be a function, not ${typeName(hook)}`);
    const id = keep(hook, add);
    const held = new WeakRef(owner);
    return new RemovableHandle(id, () => {
      const target = held.deref();
      if (!target || target.disposed) drop(id);
      else if (objects.has(id)) remove(target, id); // the engine drops it once no list of hooks runs
    });
  }

  /** Values for the engine: handles of tensors (0: null, 1: another object), and the type of the first that is no tensor, if any. */
  function encode(values) {
    const handles = values.map((it) =>
      library.isTensor(it) ? it.alive() : it === null || it === undefined ? 0 : 1,
    );
    const odd = handles.indexOf(1);
    if (odd < 0) return [handles];
    values.forEach(abandon);
    return [handles, typeName(values[odd])];
  }

  /** The tensors of handles whose references we own; null for 0. */
  const tensors = (handles) => handles.map((handle) => (handle ? library.adopt(handle) : null));
  const hookOf = (id) => objects.get(id) ?? (() => null); // it may have been removed

  /** Encodes the results of a callback; tells the engine the type of a result that is no tensor. */
  function answer(values) {
    const [handles, odd] = encode(values);
    if (odd) engine.tell(odd);
    return handles;
  }

  /** Calls a hook and returns the replacement of its tensor, or (`several`) any word and the replacements in an array; nothing if
   * the hook returns nothing. */
  function runHook(id, given, several = false) {
    const made = hookOf(id)(...given) ?? null;
    if (made === null) return [];
    if (several && !Array.isArray(made)) {
      abandon(made);
      throw new TypeError(`expected tuple, but hook returned '${typeName(made)}'`);
    }
    return several ? [0, ...answer(made)] : answer([made]);
  }

  /** Functions by the kind of callback: (id, handles, number of grad_inputs) -> handles. */
  const runners = {
    [HOST.HOOK]: (id, handles) => runHook(id, tensors(handles)),
    [HOST.POST_HOOK]: (id, handles) => runHook(id, tensors(handles)),
    [HOST.NODE_PRE_HOOK]: (id, handles) => runHook(id, [tensors(handles)], true),
    [HOST.NODE_HOOK](id, handles, count) {
      const all = tensors(handles);
      return runHook(id, [all.slice(0, count), all.slice(count)], true);
    },
    [HOST.PACK](id, handles) {
      const [pack, unpack] = objects.get(id);
      return [keep([pack(...tensors(handles)), unpack])];
    },
    [HOST.UNPACK](id) {
      const [packed, unpack] = objects.get(id);
      return answer([unpack(packed)]);
    },
    [HOST.SEVERAL]: (id, handles, first) =>
      void hookOf(id)(first ? tensors(handles)[0] : tensors(handles)),
    [HOST.APPLY](id, handles) {
      const results = objects.get(id)(...tensors(handles));
      returned.set(id, results);
      return [results.length];
    },
    [HOST.WALK]: (id, words, what) => void objects.get(id)(what, words, tensors),
    [HOST.RETURNED](id) {
      const results = returned.get(id);
      returned.delete(id);
      return results.map((t) => t?.alive() ?? 0);
    },
    [HOST.POLL]: () => [], // a long call goes on
    [HOST.NAME]: (id) => engine.tell(nameOf(objects.get(id))),
  };

  engine.onDropped = drop;
  engine.onHostCall = (kind, id, handles) => runners[kind & 255](id, handles, kind >> 8);
  return { objects, runners, tensors, encode, answer, newId, keep, drop, register };
}

/** Hooks: callables that the engine knows by a number, and the handles that take them away again. */
import { HOST, RuntimeError } from './engine.js';

/** What an error message calls a value. */
export const typeName = (value) => (value === null || value === undefined ? 'NoneType' : value.constructor?.name ?? typeof value);

/** Takes a hook away again. */
export class RemovableHandle {
  /** @param {number} id @param {() => void} remove */
  constructor(id, remove) {
    this.id = id;
    /** Removes the hook; a second time does nothing. @type {() => void} */
    this.remove = remove;
  }
}

/** What the host keeps for the engine, and how each kind of callback is run. @param {import('./engine.js').Engine} engine
 * @param {any} library the library of tensors, whole when the first callback comes */
export function makeHooks(engine, library) {
  /** Hooks, pairs of hooks, what was packed, contexts of custom functions, by the engine's number. */
  const objects = new Map();
  let last = 0;
  const newId = () => ++last;

  /** A number by which the engine knows an object; the object lives until the engine drops it. */
  function keep(thing) {
    objects.set(newId(), thing);
    return last;
  }

  function drop(id) {
    const thing = objects.get(id);
    objects.delete(id);
    thing?.dropped?.();
  }

  /** Keeps a hook on a tensor or node: `add(id)` and `remove(owner, id)` tell the engine. */
  function register(owner, hook, add, remove) {
    const id = keep(hook);
    try {
      add(id);
    } catch (error) {
      objects.delete(id);
      throw error;
    }
    const held = new WeakRef(owner);
    return new RemovableHandle(id, () => {
      const target = held.deref();
      if (objects.delete(id) && target && !target.disposed) remove(target, id);
    });
  }

  // ---------------------------------------------------------------- what hooks give back

  const name = (hook) => hook.name || '<unknown>';

  /** PyTorch's rules for what a hook returns in place of a gradient. */
  function check(old, made, hook) {
    if (made === null || made === undefined) return;
    if (old === null) throw new RuntimeError("can't replace a None gradient with a non-None value");
    if (!(made instanceof library.Tensor)) throw new TypeError(`expected Variable, but hook returned '${typeName(made)}'`);
    if (made.dtype !== old.dtype)
      throw new RuntimeError(`hook '${name(hook)}' has changed the type of value (was ${old.type()} got ${made.type()})`);
    if (made.shape.join() !== old.shape.join()) throw new RuntimeError(`hook '${name(hook)}' has changed the size of value`);
  }

  /** The handles of gradients that stand in place of the old ones; none if the hook returned nothing. */
  function replacements(made, old, hook) {
    if (made === null || made === undefined) return [];
    if (!Array.isArray(made)) throw new TypeError(`expected tuple, but hook returned '${typeName(made)}'`);
    if (made.length !== old.length)
      throw new RuntimeError(`hook '${name(hook)}' has returned an incorrect number of values (got ${made.length}, but expected ${old.length})`);
    made.forEach((each, i) => check(old[i], each, hook));
    return made.map((each) => each?.alive() ?? 0);
  }

  const tensors = (handles) => handles.map((handle) => (handle ? library.adopt(handle) : null));
  const hookOf = (id) => objects.get(id) ?? (() => null); // it may have been removed

  /** By the kind of callback: (id, handles, number of grad_inputs) -> handles. */
  const runners = {
    [HOST.HOOK](id, handles) {
      const grads = tensors(handles);
      const made = hookOf(id)(grads[0]) ?? null;
      return made === null ? [] : replacements([made], grads, hookOf(id));
    },
    [HOST.POST_HOOK](id, handles) {
      const [leaf] = tensors(handles);
      const made = hookOf(id)(leaf) ?? null;
      if (made === null || made === leaf) return [];
      check(leaf, made, hookOf(id));
      throw new RuntimeError('Tensor post accumulate grad hooks should return None.');
    },
    [HOST.NODE_PRE_HOOK](id, handles) {
      const grads = tensors(handles);
      return replacements(hookOf(id)(grads), grads, hookOf(id));
    },
    [HOST.NODE_HOOK](id, handles, count) {
      const all = tensors(handles);
      const inputs = all.slice(0, count);
      return replacements(hookOf(id)(inputs, all.slice(count)), inputs, hookOf(id));
    },
    [HOST.PACK](id, handles) {
      const [pack, unpack] = objects.get(id);
      return [keep([pack(tensors(handles)[0]), unpack])];
    },
    [HOST.UNPACK](id) {
      const [packed, unpack] = objects.get(id);
      const made = unpack(packed);
      if (!(made instanceof library.Tensor))
        throw new TypeError(`Output of saved tensor unpack_hook expected to be a Tensor but got result of type ${typeName(made)}`);
      return [made.alive()];
    },
  };

  engine.onDropped = drop;
  engine.onHostCall = (kind, id, handles) => runners[kind & 255](id, handles, kind >> 8);
  return { objects, runners, newId, keep, drop, register };
}

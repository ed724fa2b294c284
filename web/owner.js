/** Objects that own references to the engine's tensors and nodes, and the release of these. */
import { isOptions } from './arguments.js';
import { ENGINE, RuntimeError, runWithin } from './engine.js';

/** The key for constructing an owner, known only within the library. */
export const OWNED = Symbol('a reference of the engine');

/** The base class of tensors and nodes, their scopes, and the objects that the engine may return again. */
export function makeOwners(engine) {
  const known = new Map(); // objects by reference; as WeakRefs if no scope disposes of them
  let scope = null;

  /** Passes on released handles if the next call has no room for all of them, because it may need the memory. */
  function relieve() {
    if (engine.released.length > engine.layout.max_release && !engine.unusable) engine.liveCount();
  }

  // Callbacks run only between turns of the event loop: until then a program cannot know which objects were collected.
  const finalizers = new FinalizationRegistry((reference) => {
    engine.released.push(reference);
    if (!recall(reference)) known.delete(reference);
    relieve();
  });

  function watch(object) {
    object.watched = true;
    finalizers.register(object, object.reference, object);
    if (known.get(object.reference) === object) known.set(object.reference, new WeakRef(object));
  }

  /** Makes `recall` find this object by its reference: a node, or a tensor that the engine may return again. */
  function remember(object) {
    known.set(object.reference, object.watched ? new WeakRef(object) : object);
    return object;
  }

  /** The remembered object of a reference, or undefined. */
  function recall(reference) {
    const found = known.get(reference);
    return found instanceof WeakRef ? found.deref() : found;
  }

  /** The remembered object of a reference that we own, with the surplus reference released, or else a new object from `make`. */
  function claim(reference, make) {
    const found = recall(reference);
    if (found) engine.released.push(reference);
    return found ?? make();
  }

  /** The remembered object with the same reference, or the object itself; null for null. */
  const original = (object) => recall(object?.reference) ?? object;

  /** Owns a reference to a tensor or node, until it is collected, its scope ends, or it is disposed of. */
  class Owner {
    /** @private @param {number} reference owned by this object from now on; 0: none @param {symbol} owned OWNED */
    constructor(reference, owned) {
      if (owned !== OWNED)
        throw new TypeError(
          `${new.target.name} has no public constructor: the functions of the library make its objects`,
        );
      /** @private */
      this.reference = reference;
      /** @private */
      this.watched = false;
      if (!reference) return;
      if (scope === null) watch(this);
      else scope.push(this); // the scope releases it
    }

    get disposed() {
      return !this.reference;
    }

    /** @private The reference, unless it was disposed of. */
    alive() {
      if (!this.reference)
        throw new RuntimeError(
          `pygrad: this ${'handle' in this ? 'tensor' : 'node'} was disposed of`,
        );
      return this.reference;
    }

    /** @private Gives the reference away, to another owner. */
    surrender() {
      const { reference } = this;
      if (this.watched) finalizers.unregister(this);
      if (recall(reference) === this) known.delete(reference);
      this.reference = 0;
      return reference;
    }

    /** Releases the tensor or node; any later use raises. */
    dispose() {
      if (this.reference) engine.released.push(this.surrender());
    }
  }

  Object.defineProperty(Owner.prototype, ENGINE, { value: engine });

  /** Sets the scope of new objects; returns the former one. */
  function swapScope(next) {
    const was = scope;
    scope = next;
    return was;
  }

  /** Runs fn outside any scope: objects that it makes are not disposed of. */
  const runOutside = (fn) => runWithin(() => swapScope(null), swapScope, fn);

  /** Runs fn and disposes of all tensors and nodes made meanwhile, except those that it returns (also in arrays, Maps and plain
   * objects) or passes to `keep`. @template T @param {(keep: <K>(value: K) => K) => T} fn @returns {T} */
  function runScope(fn) {
    const kept = new Set();
    const keep = (value) => {
      if (value?.disposed === false) kept.add(value);
      else if (Array.isArray(value) || value instanceof Map) value.forEach(keep);
      else if (value && isOptions(value)) Object.values(value).forEach(keep);
      return value;
    };
    return runWithin(
      () => swapScope([]),
      (outer) => {
        for (const each of swapScope(outer)) {
          if (!kept.has(each)) each.dispose();
          else if (outer) outer.push(each);
          else if (!each.disposed) watch(each);
        }
        relieve();
      },
      () => keep(fn(keep)),
    );
  }

  return { Owner, remember, recall, claim, original, runOutside, scope: runScope };
}

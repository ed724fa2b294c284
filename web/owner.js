/** Objects that own references to what the engine holds, and when they let go of them. */
import { isOptions } from './arguments.js';
import { ENGINE, RuntimeError, within } from './engine.js';

/** What only the library has: who makes an owner must say where its reference comes from. */
export const OWNED = Symbol('a reference of the engine');

/** What tensors and nodes have in common, the scopes they belong to, and those that the engine may hand back. */
export function makeOwners(engine) {
  const known = new Map(); // objects by reference; those that no scope disposes of as WeakRefs
  let scope = null;

  /** Hands over what was released if the next call has no room for all of it: it may need the memory. */
  function relieve() {
    if (engine.released.length > engine.layout.max_release && !engine.unusable) engine.liveCount();
  }

  // Its callbacks run in turns of the event loop alone, never within a program: nothing can tell before then what was collected.
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

  /** Makes `recall` find this very object for what it refers to: a node, or a tensor that the engine may hand back. */
  function remember(object) {
    known.set(object.reference, object.watched ? new WeakRef(object) : object);
    return object;
  }

  /** The object that is remembered for a reference, or undefined. */
  function recall(reference) {
    const found = known.get(reference);
    return found instanceof WeakRef ? found.deref() : found;
  }

  /** The remembered object of a reference that we own, to which that is one too many; or else the object that `make` gives it. */
  function claim(reference, make) {
    const found = recall(reference);
    if (found) engine.released.push(reference);
    return found ?? make();
  }

  /** The remembered object of what an object refers to, or itself; null of null. */
  const original = (object) => recall(object?.reference) ?? object;

  /** The owner of a reference to a tensor or node, until it dies, its scope ends, or it is disposed of. */
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
      else scope.push(this); // which lets go by itself
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

    /** @private Gives the reference away, to another object that owns it from now on. */
    surrender() {
      const { reference } = this;
      if (this.watched) finalizers.unregister(this);
      if (recall(reference) === this) known.delete(reference);
      this.reference = 0;
      return reference;
    }

    /** Lets go of the tensor or node now; any later use raises. */
    dispose() {
      if (this.reference) engine.released.push(this.surrender());
    }
  }

  Object.defineProperty(Owner.prototype, ENGINE, { value: engine });

  /** Makes another scope the one that new objects belong to; gives back which it was. */
  function swapScope(next) {
    const was = scope;
    scope = next;
    return was;
  }

  /** Runs fn outside of any scope: what it makes lives on. */
  const outside = (fn) => within(() => swapScope(null), swapScope, fn);

  /** Runs fn and disposes of all tensors and nodes made meanwhile but those that it returns (in arrays, Maps and plain objects too)
   * or that were passed to `keep`. @template T @param {(keep: <K>(value: K) => K) => T} fn @returns {T} */
  function runScope(fn) {
    const kept = new Set();
    const keep = (value) => {
      if (value?.disposed === false) kept.add(value);
      else if (Array.isArray(value) || value instanceof Map) value.forEach(keep);
      else if (value && isOptions(value)) Object.values(value).forEach(keep);
      return value;
    };
    return within(
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

  return { Owner, remember, recall, claim, original, outside, scope: runScope };
}

/** The graph as objects: nodes, edges, saved values of nodes, and hooks on all of these. */
import { atMost, bind, typeName } from './arguments.js';
import { getOrMake, runWithin } from './engine.js';
import { RemovableHandle } from './hooks.js';
import { OWNED } from './owner.js';
import { dtypeOf, unsigned } from './tensor.js';

/** @import { Given } from './arguments.js' @import { Tensor } from './tensor.js' */
/** @typedef {(tensor: Tensor) => any} PackHook called with each tensor that is saved */
/** @typedef {(packed: any) => Tensor} UnpackHook returns it in backward */

/** A place in the graph that a gradient passes: an output of a node. `grad` and `backward` take it like a tensor. */
export class GradientEdge {
  /** @param {any} node @param {number} output_nr */
  constructor(node, output_nr) {
    this.node = node;
    this.output_nr = output_nr;
  }
}

/** The nodes of the graph as objects, and their saved values. */
function makeNodes(library, engine) {
  const { C, Owner, hooks, claim, remember } = library;

  /** One recorded operation; the same object each time while it is referenced. Its class is named after the operation. The values
   * saved for the gradient are the attributes `_saved_*`; `_raw_saved_*` take hooks. */
  class Node extends Owner {
    /** @private @param {number} address of a node, with a reference for this object; 0: of none @param {symbol} owned OWNED */
    constructor(address, owned) {
      if (new.target === Node) throw new TypeError("Can't instantiate abstract class Node");
      super(address, owned);
      /** @private objects that `_raw_saved_*` returned */
      this.raws = [];
    }

    /** The engine's number of the node; 0 for none. @returns {number} */
    get address() {
      return this.reference;
    }
    /** The node's name, such as 'MulBackward0'. @returns {string} */
    name() {
      return C._node_name(this.alive());
    }
    /** Always true: only operations that need a gradient are recorded. */
    get requires_grad() {
      return true;
    }
    /** Grows with every node that is recorded. @returns {number | bigint} */
    _sequence_nr() {
      return unsigned(C._node_sequence(this.alive()));
    }

    /** The nodes of the inputs, each with the number of the output that was used. @returns {[Node | null, number][]} */
    get next_functions() {
      const flat = C._node_next(this.alive());
      return Array.from({ length: flat.length / 2 }, (_, i) => [
        wrap(flat[2 * i]),
        flat[2 * i + 1],
      ]);
    }

    /** An object for the node's users, which lives as long as the node; in anomaly mode it has the place where the node was made.
     * @returns {Record<string, any>} */
    get metadata() {
      const [id, trace, parent] = C._node_metadata(this.alive(), 0);
      if (id) return hooks.objects.get(id);
      const made = {
        ...(trace && { traceback_: hooks.objects.get(trace) }),
        ...(parent && { parent_: wrap(parent) }),
      };
      C._node_metadata(this.address, hooks.keep(made));
      return made;
    }

    /** The dtype and shape that the gradient of each output must have. @returns {{dtype: any, shape: number[]}[]} */
    get _input_metadata() {
      const found = [];
      for (let each; (each = C._node_output(this.alive(), found.length)); )
        found.push({ dtype: dtypeOf(each[0]) ?? null, shape: each.slice(1) });
      return found;
    }

    /** Calls `fn(grad_inputs, grad_outputs)` after the node ran; an array that it returns replaces the grad_inputs.
     * @param {(grad_inputs: (Tensor | null)[], grad_outputs: (Tensor | null)[]) => any} fn @returns {RemovableHandle} */
    register_hook(fn) {
      return hookOn(this, fn, false);
    }

    /** Calls `fn(grad_outputs)` before the node runs; an array that it returns replaces them.
     * @param {(grad_outputs: (Tensor | null)[]) => any} fn @returns {RemovableHandle} */
    register_prehook(fn) {
      return hookOn(this, fn, true);
    }

    /** Calls only the gradient function: from the gradients of the outputs to those of the inputs.
     * @param {...(Tensor | null)} grads @returns {any} */
    call(...grads) {
      const found = C._node_call(this.alive(), grads);
      return found.length === 1 ? found[0] : found;
    }
  }

  const hookOn = (node, fn, pre) =>
    hooks.register(
      node,
      fn,
      (id) => C._node_hook_add(node.alive(), id, pre),
      (owner, id) => C._node_hook_remove(owner.address, id),
    );

  /** One saved tensor of a node. */
  class SavedTensor {
    /** @private */
    constructor(node, slot, owned) {
      if (owned !== OWNED)
        throw new TypeError(
          "SavedTensor has no public constructor: a node's _raw_saved_* are its objects",
        );
      this.node = node;
      this.slot = slot;
    }

    get #packedObject() {
      return hooks.objects.get(C._node_packed(this.node.alive(), this.slot));
    }

    /** Packs the saved tensor now, and unpacks it whenever it is used.
     * @param {PackHook} pack_hook @param {UnpackHook} unpack_hook */
    register_hooks(pack_hook, unpack_hook) {
      hooks.drop(
        keepPair(pack_hook, unpack_hook, 'register_hooks', (id) =>
          C._node_saved_hooks(this.node.alive(), this.slot, id),
        ),
      );
    }

    /** The stored value: a tensor without history, or the pack hook's result. @returns {any} */
    get data() {
      return this.#packedObject
        ? this.#packedObject[0]
        : (C._node_saved_data(this.node.alive(), this.slot) ?? null);
    }
    /** The unpack hook, or null. @returns {((packed: any) => Tensor) | null} */
    get unpack_hook() {
      return this.#packedObject?.[1] ?? null;
    }
    /** The saved tensor, from the unpack hook if there is one. @returns {Tensor | null} */
    unpack() {
      return C._node_saved(this.node.alive(), this.slot) ?? null;
    }
  }

  /** Keeps a pair of hooks; `tell` passes its number to the engine. */
  function keepPair(pack, unpack, name, tell) {
    if (typeof pack !== 'function' || typeof unpack !== 'function')
      throw new TypeError(`${name}(): incompatible function arguments: two functions are wanted`);
    return hooks.keep([pack, unpack], tell);
  }

  /** The SavedTensor of a slot; the same object each time. */
  const raw = (node, slot) => (node.raws[slot] ??= new SavedTensor(node, slot, OWNED));
  /** The SavedTensors from a slot on. */
  const rawFrom = (node, slot) =>
    Array.from({ length: C._node_saves(node.alive()) - slot }, (_, k) => raw(node, slot + k));

  /** A saved value of a node, by kind and place: op_node_fields in wasm_core/walk/autograd_services.c. Integers are shown as
   * unsigned. */
  function savedField(node, kind, place) {
    const found = C._node_field(node.alive(), kind.charCodeAt(0), place) ?? null;
    if (kind === 'i') return unsigned(found);
    return kind === 'x' && Array.isArray(found) ? found.map(unsigned) : found;
  }

  const classes = new Map();
  const kinds = new Map(); // classes by the engine's number of the kind

  /** The class of a kind of nodes, made at the first use. */
  const classOf = (name, fields) =>
    getOrMake(classes, `${name} ${fields}`, () => {
      const short = name.slice(name.lastIndexOf(':') + 1);
      const made = { [short]: class extends Node {} }[short];
      const define = (field, get) =>
        Object.defineProperty(made.prototype, field, {
          get() {
            return get(this);
          },
        });
      for (const [, field, kind, digits] of fields.matchAll(/(\w+):(.)(\d+)/g)) {
        const place = Number(digits);
        define(`_saved_${field}`, (node) => savedField(node, kind, place));
        if ('t*'.includes(kind))
          define(`_raw_saved_${field}`, (node) => (kind === 't' ? raw : rawFrom)(node, place));
      }
      if (short === 'AccumulateGrad')
        define('variable', (node) => library.original(C._node_variable(node.alive())));
      return made;
    });

  const kindOf = (address) =>
    getOrMake(kinds, C._node_kind(address), () =>
      classOf(C._node_name(address), C._node_fields(address)),
    );

  /** The object of a node; takes over the address's reference. */
  const wrap = (address) =>
    address ? claim(address, () => remember(new (kindOf(address))(address, OWNED))) : null;

  return { Node, SavedTensor, wrap, rawFrom, keepPair };
}

/** torch.autograd.graph over a library of tensors. */
export function makeGraph(library, engine) {
  const { C, isTensor, hooks } = library;
  const { Node, SavedTensor, wrap, rawFrom, keepPair } = makeNodes(library, engine);

  /** The edge that the gradient of a tensor passes. @param {Tensor} tensor @returns {GradientEdge} */
  const get_gradient_edge = (tensor) =>
    new GradientEdge(wrap(C._edge_of(tensor)), tensor.output_nr);

  /** Increments the version of a tensor, or of several, after a mutation that the engine did not see. @param {Tensor |
   * Iterable<Tensor>} tensor */
  function increment_version(tensor) {
    const given = isTensor(tensor) ? [tensor] : tensor;
    const several = typeof given?.[Symbol.iterator] === 'function';
    C._increment_version(several ? Array.from(given, (it) => (isTensor(it) ? it : null)) : null);
  }

  /** Runs fn; tensors saved for backward meanwhile pass through a pair of hooks. Only the innermost pair is used.
   * @template T @param {PackHook} pack @param {UnpackHook} unpack @param {() => T} fn @returns {T} */
  function saved_tensors_hooks(pack, unpack, fn) {
    return runWithin(
      () => keepPair(pack, unpack, 'saved_tensors_hooks', C._saved_hooks_push),
      () => C._saved_hooks_pop(),
      fn,
    );
  }

  /** Runs fn; tensors saved meanwhile are stored outside the engine's memory, in arrays of the host. The options only matter for
   * GPUs.
   * @template T @param {() => T} fn @param {...Given<{pin_memory?: boolean, device_type?: string}>} rest @returns {T} */
  function save_on_cpu(fn, ...rest) {
    bind('save_on_cpu', { pin_memory: false, device_type: 'cuda' }, rest);
    return saved_tensors_hooks(
      (tensor) => ({ array: tensor.toTypedArray(), shape: tensor.shape, dtype: tensor.dtype }),
      ({ array, shape, dtype }) =>
        library.tensorFromBytes(new Uint8Array(array.buffer), dtype, shape),
      fn,
    );
  }

  /** Runs fn without the hooks around it. With a message it raises RuntimeError instead if hooks are active or are installed
   * within. @template T @param {[() => T] | [string | null, () => T]} args @returns {T} */
  function disable_saved_tensors_hooks(...args) {
    const [message, fn] =
      args.length === 1 ? [null, args[0]] : atMost(2, 'disable_saved_tensors_hooks', args);
    if (message === null)
      return runWithin(
        () => C._saved_hooks_push(0),
        () => C._saved_hooks_pop(),
        fn,
      );
    return runWithin(() => C._saved_hooks_disable(message) ?? null, C._saved_hooks_disable, fn);
  }

  /** Sets the mode for mutated saved tensors, at once or while fn runs: "snapshot" (the default) gives the gradients of the values
   * before the mutation, "check" raises, as PyTorch.
   * @template T @param {'snapshot' | 'check'} mode @param {() => T} [fn] @returns {T | undefined} */
  function set_saved_tensor_mode(mode, fn) {
    const set = () => C._set_saved_mode(mode);
    return fn === undefined ? void set() : runWithin(set, C._set_saved_mode, fn);
  }

  /** Calls a function once a backward, with the gradients of several tensors: in mode "all" with an array of them once the last is
   * known, null for gradients that this backward does not compute; in mode "any" with the first that is known.
   * @param {Tensor[]} tensors @param {(grads: any) => void} fn @param {...Given<{mode?: 'all' | 'any'}>} rest
   * @returns {RemovableHandle} */
  function register_multi_grad_hook(tensors, fn, ...rest) {
    if (!Array.isArray(tensors))
      throw new TypeError(
        `register_multi_grad_hook(): argument 'tensors' (position 1) must be list, not ${typeName(tensors)}`,
      );
    const { mode } = bind('register_multi_grad_hook', { mode: 'all' }, rest);
    return hooks.register(
      Node,
      fn,
      (id) => C._several_hooks_add(tensors, id, mode),
      (_, id) => C._several_hooks_remove(id),
    );
  }

  Object.assign(library, { Node, wrapNode: wrap, rawFrom });
  return {
    Node,
    GradientEdge,
    SavedTensor,
    get_gradient_edge,
    increment_version,
    saved_tensors_hooks,
    save_on_cpu,
    disable_saved_tensors_hooks,
    set_saved_tensor_mode,
    register_multi_grad_hook,
    /** Always true: saved tensors are snapshots, so mutating them is safe. @returns {true} */
    allow_mutation_on_saved_tensors: () => true,
  };
}

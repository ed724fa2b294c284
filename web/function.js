/**
 * Functions with the user's own gradient, and the host's part in a backward that reaches one.
 *
 * The graph is the engine's: wasm_core/walk/custom.c decides the outputs' history, the errors and the saved values. This file has
 * the protocol: classes, ctx, the calls of forward and backward. The engine stops at a custom node and returns it, so the function
 * runs without a frame of the engine on the stack.
 */
import { each, typeName } from './arguments.js';
import { errorClass, getOrMake, NotImplementedError, RuntimeError, runWithin } from './engine.js';
import { HOST, MODES } from './enumerations.js';
import { OWNED } from './owner.js';

/** @typedef {import('./tensor.js').Tensor} Tensor */
/** @type {any[]} */
const NONE = [];
/** The limit of nested backwards of custom functions: half of the host's stack. */
const MOST_NESTED = 400;

/** torch.autograd.Function and its helpers, over a library of tensors. */
export function makeFunction(library, engine) {
  const { C, isTensor, Node, hooks, original, recall, remember, withModes } = library;
  const { encode } = hooks;
  const handleOf = (value) => (isTensor(value) ? value.alive() : 0);

  /** The context shared by `forward`, `setup_context`, `backward` and `jvp`, and the call's node. Takes any other attribute. */
  class FunctionCtx extends Node {
    /** For each argument of forward, whether it needs a gradient. @type {boolean[]} */
    needs_input_grad = NONE;
    /** Whether missing gradients become zeros. @type {boolean} */
    materialize_grads = true;
    #saves = NONE;
    #dirty = NONE;
    #constant = NONE;
    #forward = null;

    /** @private */
    constructor(address, id, kind, owned) {
      super(address, owned);
      this.id = id;
      this.kind = kind;
    }

    /** Saves snapshots of tensors (or null) for `backward`. @param {...(Tensor | null)} tensors */
    save_for_backward(...tensors) {
      this.#saves = tensors;
    }
    /** Marks the inputs that `forward` wrote to; each must be an output too. @param {...Tensor} tensors */
    mark_dirty(...tensors) {
      this.#dirty = tensors;
    }
    /** Marks outputs that have no gradient. @param {...Tensor} tensors */
    mark_non_differentiable(...tensors) {
      this.#constant = tensors;
    }

    /** Saves tensors (or null) for `jvp`. @param {...(Tensor | null)} tensors */
    save_for_forward(...tensors) {
      if (!tensors.every((t) => t === null || isTensor(t)))
        throw new TypeError(
          'save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx.',
        );
      this.#forward = tensors;
    }

    /** Sets whether a missing gradient reaches `backward` as zeros (the default) or as null. @param {boolean} value */
    set_materialize_grads(value) {
      if (typeof value !== 'boolean')
        throw new TypeError(`set_materialize_grads expects a boolean, not ${typeName(value)}`);
      this.materialize_grads = value;
    }

    /** The saved tensors, as new copy-on-write copies with the history of the originals. @returns {(Tensor | null)[]} */
    get saved_tensors() {
      if (this.#forward) return [...this.#forward];
      return this.address ? C._custom_saved(this.address) : [];
    }

    /** The saved tensors as SavedTensors, which take hooks. @returns {SavedTensor[]} */
    get _raw_saved_tensors() {
      return this.address ? library.rawFrom(this, 0) : [];
    }

    name() {
      return `${this.kind.name}Backward`;
    }
    /** @returns {[Node | null, number][]} */
    get next_functions() {
      return this.address ? super.next_functions : [];
    }

    /** Releases the node; while the engine needs this ctx, not before it has dropped it. */
    dispose() {
      if (hooks.objects.get(this.id) === this) this.ended = true;
      else super.dispose();
    }
    /** @private */
    onDropped() {
      if (this.ended) this.dispose();
    }

    /** @private The gradients of forward's arguments, from those of its outputs. */
    run(grads) {
      if (this.kind.vjp === Function.vjp) return this.kind.backward(this, ...grads);
      if (this.kind.backward !== Function.backward)
        throw new RuntimeError(
          "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them.",
        );
      return this.kind.vjp(this, ...grads);
    }

    /** @private The outputs of forward with their history and, if an argument has a tangent (`dual`), their tangents; passes saved
     * and marked tensors to the engine. */
    finish(inputs, outputs, separate, dual) {
      const [saves, odd] = encode(this.#saves);
      const [[dirty], [constant]] = [encode(this.#dirty), encode(this.#constant)];
      const words = [
        inputs.length,
        outputs.length,
        dirty.length,
        constant.length,
        saves.length,
        Number(separate),
        Number(this.materialize_grads),
        ...inputs,
        ...outputs.map(handleOf),
        ...dirty,
        ...constant,
        ...saves,
      ];
      const made = C._custom_finish(this.address, words, odd);
      const results = outputs.map((old, i) => made[i] ?? old);
      if (dual) {
        const tangents = C._custom_tangents(inputs, this.materialize_grads).map(original);
        const given = withModes(0, MODES.NO_FORWARD, () => this.kind.jvp(this, ...tangents));
        C._custom_carry(words, results.map(handleOf), ...encode(each(given ?? null)));
      }
      this.#forward = null;
      return results;
    }
  }

  const classes = new WeakMap();

  /** The class of a Function's nodes, and the engine's type of them. */
  const nodesOf = (kind) =>
    getOrMake(classes, kind, () => {
      const name = `${kind.name}Backward`;
      return { nodes: { [name]: class extends FunctionCtx {} }[name], type: C._custom_type(name) };
    });

  /** Base class of functions with their own gradient: subclass it with static `forward` and `backward`, call `apply`. */
  class Function {
    /** Computes the outputs: `forward(ctx, ...args)`, or `forward(...args)` with a `setup_context` beside it.
     * Nothing in it is recorded. @param {...any} _args @returns {any} */
    static forward(..._args) {
      throw new NotImplementedError(
        'You must implement the forward function for custom autograd.Function.',
      );
    }

    /** Prepares ctx after a forward that takes no ctx. @param {any} _ctx @param {any[]} _inputs @param {any} _output */
    static setup_context(_ctx, _inputs, _output) {
      throw new NotImplementedError('setup_context is not implemented.');
    }

    /** Computes a gradient for each argument of forward (null: none) from a gradient for each output; returns an array, or a single
     * gradient. @param {any} _ctx @param {...any} _grad_outputs @returns {any} */
    static backward(_ctx, ..._grad_outputs) {
      throw new NotImplementedError(
        'You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD.',
      );
    }

    /** Another name of `backward`. @param {any} _ctx @param {...any} _grad_outputs @returns {any} */
    static vjp(_ctx, ..._grad_outputs) {
      return Function.backward(_ctx);
    }

    /** Computes a tangent for each output from one for each argument. @param {any} _ctx @param {...any} _grad_inputs @returns
     * {any} */
    static jvp(_ctx, ..._grad_inputs) {
      throw new NotImplementedError(
        'You must implement the jvp function for custom autograd.Function to use it with forward mode AD.',
      );
    }

    /** Calls `forward` on these arguments, records the call as one node of the graph, and returns forward's result. Bound to its
     * class. @returns {(...args: any[]) => any} */
    static get apply() {
      return (...args) => apply(this, args);
    }
  }

  function apply(kind, args) {
    const separate = kind.setup_context !== Function.setup_context;
    const { nodes, type } = nodesOf(kind);
    const id = hooks.newId();
    const inputs = args.map(handleOf);
    const [address, dual, ...needs] = C._custom_begin(id, [type, ...inputs]);
    const ctx = new nodes(address, id, kind, OWNED);
    ctx.needs_input_grad = needs.map(Boolean);
    const output = withModes(MODES.GRAD, MODES.NO_FORWARD, () => {
      const made = separate ? kind.forward(...args) : kind.forward(ctx, ...args);
      if (separate) kind.setup_context(ctx, args, made);
      return made;
    });
    const results = ctx.finish(inputs, each(output), separate, dual);
    if (address && engine.u32(address) > 1) hooks.objects.set(id, ctx);
    if (address) remember(ctx);
    return Array.isArray(output) ? results : results[0];
  }

  /** Makes a `backward` that raises RuntimeError if it is differentiated. Wraps a function, or decorates a static method. @param
   * {any} fn @param {any} [_context] @param {any} [descriptor] @returns {any} */
  function once_differentiable(fn, _context, descriptor) {
    if (descriptor) return { ...descriptor, value: once_differentiable(descriptor.value) };
    if (typeof fn !== 'function')
      throw new TypeError(
        `once_differentiable(): argument 'fn' (position 1) must be a function, not ${typeName(fn)}`,
      );
    return function once(ctx, ...args) {
      const outputs = withModes(MODES.GRAD, 0, () => fn.call(this, ctx, ...args));
      if (!(engine.modes & MODES.GRAD) || !args.some((a) => isTensor(a) && a.requires_grad))
        return outputs;
      const made = C._delayed_error(each(outputs));
      return made.length === 1 ? made[0] : made;
    };
  }

  /** The gradients that a ctx computes from those of its outputs, as an array. */
  const run = (ctx, handles) => each(ctx.run(hooks.tensors(handles)) ?? null);
  let depth = 0;

  /** Continues a backward from the engine's first answer to its last, which it returns. */
  function walk(first) {
    let step = first;
    while (typeof step?.[0] === 'number') {
      const [task, node, records, ...handles] = step;
      let given;
      try {
        if (++depth > MOST_NESTED)
          throw new (errorClass('RecursionError'))(
            `pygrad: ${MOST_NESTED} backwards within each other`,
          );
        given = withModes(MODES.GRAD, records && MODES.GRAD, () =>
          encode(run(recall(node), handles)),
        );
      } catch (error) {
        C._backward_abort(task);
        throw error;
      } finally {
        depth--;
      }
      step = C._backward_resume(task, ...given);
    }
    return step;
  }

  hooks.runners[HOST.FUNCTION] = (id, handles) => hooks.answer(run(hooks.objects.get(id), handles));
  library.walk = walk;
  return { Function, FunctionCtx, once_differentiable };
}

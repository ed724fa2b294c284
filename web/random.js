/** Generators of random numbers: PyTorch's CPU stream, number for number. */
import { Coded, TAG, ValueError } from './engine.js';
import { unsigned } from './tensor.js';

/** torch.Generator, and the functions of the default generator. */
export function makeRandom(C) {
  const unowned = new FinalizationRegistry((id) => C._generator_free(id));

  /** A stream of random numbers of its own; pass it as `{generator}`. */
  class Generator extends Coded {
    /** @param {string} [device] only the CPU @param {number} [id] of a stream that exists */
    constructor(device = 'cpu', id = C._generator_new()) {
      super(TAG.GENERATOR, id);
      if (id) unowned.register(this, id, this);
    }

    /** Restarts the stream from a seed in [-2^63, 2^64). @param {number | bigint} seed @returns {this} */
    manual_seed(seed) {
      const word = BigInt(seed);
      if (word < -(2n ** 63n) || word >= 2n ** 64n) throw new ValueError('Overflow when unpacking long long');
      C._generator_seed(this, word);
      return this;
    }

    /** The seed that the stream started from. @returns {number | bigint} */
    initial_seed() { return unsigned(C._generator_initial_seed(this)); }

    /** Restarts the stream from a seed of the host's, and returns that. @returns {number | bigint} */
    seed() {
      const [high, low] = globalThis.crypto?.getRandomValues(new Uint32Array(2)) ?? [0, 0].map(() => Math.floor(Math.random() * 2 ** 32));
      return this.manual_seed((BigInt(high) << 32n) | BigInt(low)).initial_seed();
    }

    /** A copy of the state: a uint8 tensor of 5056 elements, laid out as PyTorch's. @returns {import('./tensor.js').Tensor} */
    get_state() { return C._generator_state(this); }

    /** Continues from a state that `get_state` gave, here, in Python or in PyTorch.
     * @param {import('./tensor.js').Tensor} state @returns {this} */
    set_state(state) {
      C._generator_set_state(this, state);
      return this;
    }

    /** Lets go of the stream now; any later use raises. */
    free() {
      unowned.unregister(this);
      C._generator_free(this.code);
    }
  }

  const default_generator = new Generator('cpu', 0);
  default_generator.seed();
  return {
    Generator, default_generator,
    /** @param {number | bigint} seed */
    manual_seed: (seed) => default_generator.manual_seed(seed),
    seed: () => default_generator.seed(),
    initial_seed: () => default_generator.initial_seed(),
    /** @returns {import('./tensor.js').Tensor} */
    get_rng_state: () => default_generator.get_state(),
    /** @param {import('./tensor.js').Tensor} state */
    set_rng_state: (state) => { default_generator.set_state(state); },
  };
}

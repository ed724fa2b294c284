/** Generators of random numbers: PyTorch's CPU stream, number for number. */
import { bind, isOptions, typeName } from './arguments.js';
import { Coded, ENGINE, RuntimeError, ValueError } from './engine.js';
import { TAG } from './enumerations.js';
import { unsigned } from './tensor.js';

/** torch.Generator, and the functions of the default generator. */
export function makeRandom({ C, spaces }, engine) {
  const unowned = new FinalizationRegistry((id) => C._generator_free(id));

  /** A separate stream of random numbers; pass it as `{generator}`. */
  class Generator extends Coded {
    /** @param {string | null | {device?: string | null}} [device] only the CPU */
    constructor(device = 'cpu') {
      const place = isOptions(device)
        ? bind('Generator', { device: null }, [device]).device
        : device;
      if (place !== null) spaces.torch.empty([0], { device: place }).dispose(); // raises for other devices
      super(TAG.GENERATOR, C._generator_new());
      unowned.register(this, this.code, this);
    }

    /** Restarts the stream from a seed in [-2^63, 2^64). @param {number | bigint} seed @returns {this} */
    manual_seed(seed) {
      if (typeof seed !== 'bigint' && !Number.isInteger(seed))
        throw new RuntimeError(`manual_seed expected a long, but got ${typeName(seed)}`);
      const word = BigInt(seed);
      if (word < -(2n ** 63n) || word >= 2n ** 64n)
        throw new ValueError('Overflow when unpacking long long');
      C._generator_seed(this, BigInt.asIntN(64, word));
      return this;
    }

    /** The seed that the stream started from. @returns {number | bigint} */
    initial_seed() {
      return unsigned(C._generator_initial_seed(this));
    }

    /** Restarts the stream from a random seed of the host, and returns the seed. @returns {number | bigint} */
    seed() {
      const [high, low] =
        globalThis.crypto?.getRandomValues(new Uint32Array(2)) ??
        [0, 0].map(() => Math.floor(Math.random() * 2 ** 32));
      return this.manual_seed((BigInt(high) << 32n) | BigInt(low)).initial_seed();
    }

    /** A copy of the state: a uint8 tensor of 5056 elements, laid out as PyTorch's. @returns {import('./tensor.js').Tensor} */
    get_state() {
      return C._generator_state(this);
    }

    /** Continues from a state of `get_state`, from here, Python or PyTorch.
     * @param {import('./tensor.js').Tensor} state @returns {this} */
    set_state(state) {
      C._generator_set_state(this, state);
      return this;
    }

    /** Frees the stream; any later use raises. */
    free() {
      if (!this.code) return; // the default one
      unowned.unregister(this);
      C._generator_free(this.code);
      this.code = -1; // the engine reuses the number
    }
  }
  Object.defineProperty(Generator.prototype, ENGINE, { value: engine });

  /** The engine's default stream. @type {Generator} */
  const default_generator = Object.assign(Object.create(Generator.prototype), {
    tag: TAG.GENERATOR,
    code: 0,
  });
  default_generator.seed();
  return {
    Generator,
    default_generator,
    /** @param {number | bigint} seed */
    manual_seed: (seed) => default_generator.manual_seed(seed),
    seed: () => default_generator.seed(),
    initial_seed: () => default_generator.initial_seed(),
    /** @returns {import('./tensor.js').Tensor} */
    get_rng_state: () => default_generator.get_state(),
    /** @param {import('./tensor.js').Tensor} state */
    set_rng_state: (state) => {
      default_generator.set_state(state);
    },
  };
}

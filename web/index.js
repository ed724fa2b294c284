/**
 * pygrad for JavaScript: PyTorch's names over the same engine as Python's, with bitwise equal results.
 *
 *     import { load } from './web/index.js';
 *     const torch = await load();
 *     const x = torch.tensor([1, 2, 3], { requires_grad: true });
 *     x.mul(x).sum().backward();
 *     x.grad.tolist(); // [2, 4, 6]
 */
import { makeAutograd } from './autograd.js';
import * as core from './engine.js';
import { findFiles } from './files.js';
import { makeNn } from './nn.js';
import { makeOptim } from './optim.js';
import { makeRandom } from './random.js';
import { makeSerialization } from './serialization.js';
import { dtypes, ellipsis, makeTensors, Slice } from './tensor.js';

/** Loads a library with its own engine. @param {string | URL | BufferSource} [source] the binary; the package's own by default */
export async function load(source) {
  const [engine, files] = await Promise.all([core.loadEngine(source), findFiles()]);
  const tensors = makeTensors(engine, files);
  const { spaces, C, Tensor, tensor, scope } = tensors;
  const autograd = makeAutograd(tensors, engine);
  const {
    autocast,
    is_autocast_enabled,
    no_grad,
    enable_grad,
    inference_mode,
    set_grad_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
  } = autograd;

  return {
    ...spaces.torch,
    ...dtypes,
    Tensor,
    tensor,
    scope,
    ellipsis,
    /** A part of a subscript: `x.index(torch.slice(0, 2))`. @type {(start?: number | null, stop?: number | null, step?: number | null) => Slice} */
    slice: (...bounds) => new Slice(...bounds),
    /** The shape that tensors of these shapes broadcast to. @type {(...shapes: (number | readonly number[])[]) => number[]} */
    broadcast_shapes(...shapes) {
      const sizes = shapes.map((each) => [each].flat());
      return C._broadcast_shapes(
        sizes.flat(),
        sizes.map((each) => each.length),
      );
    },
    ...makeRandom(tensors, engine),
    ...makeSerialization(tensors),
    autograd,
    autocast,
    is_autocast_enabled,
    no_grad,
    enable_grad,
    inference_mode,
    set_grad_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    nn: makeNn(tensors, engine, autograd),
    optim: makeOptim(tensors, engine),
    /** @type {Linalg} */
    linalg: spaces.linalg,
    /** @type {Fft} */
    fft: spaces.fft,
    /** @type {Special} */
    special: spaces.special,
    /** @type {{ windows: Windows }} */
    signal: { windows: spaces.windows },
    /** @type {Masked} */
    masked: spaces.masked,
    /** Ops that only PyTorch's dispatcher has, as the gradients of layers. @type {{ aten: Aten }} */
    ops: { aten: spaces.only_aten },
    errors: core,
    _C: C,
    _engine: engine,
    _hooks: tensors.hooks.objects,
    live_count: () => engine.liveCount(),
  };
}

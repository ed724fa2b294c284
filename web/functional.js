/**
 * Products with Jacobians and Hessians, and the matrices themselves, of functions of tensors.
 *
 * Every entry point works on copies of its inputs (views of them, if the result is to be differentiated
 * further), so what the function captures by other means is a constant. Answers come back as the questions
 * were put: a tensor for a tensor, an array for an array.
 */
import { bind, each, NotImplementedError, RuntimeError } from './engine.js';
import { typeName } from './hooks.js';

/** @import { Given } from './engine.js'
 * @import { Tensor } from './tensor.js' */
/** @typedef {Tensor | Tensor[]} Tensors */
/** @template I @typedef {I extends any[] ? Tensor[] : Tensor} Like shaped as inputs (or outputs) are */
/** @template O @typedef {(...inputs: Tensor[]) => O} Of a function that returns O */
/** @typedef {{v?: Tensors | null, create_graph?: boolean, strict?: boolean}} VJPOptions */
/** @typedef {VJPOptions} JVPOptions */
/** @typedef {VJPOptions} VHPOptions */
/** @typedef {VJPOptions} HVPOptions */
/** @typedef {{create_graph?: boolean, strict?: boolean, vectorize?: boolean, strategy?: 'reverse-mode' | 'forward-mode'}} JacobianOptions */
/** @typedef {{create_graph?: boolean, strict?: boolean, vectorize?: boolean,
 *   outer_jacobian_strategy?: 'reverse-mode' | 'forward-mode'}} HessianOptions */

const NOT_STRICT = ' This is not allowed in strict mode';
/** What strict mode says of a tensor without history, by what the tensor is. */
const NEEDS_GRAD = {
  outputs: (i) => `Output ${i} of the user-provided function does not require gradients. The outputs must be computed in a ` +
    'differentiable manner from the input when running in strict mode.',
  grad_inputs: (i) => `The gradient with respect to input ${i} is independent of the inputs of the user-provided function.${NOT_STRICT}.`,
  jacobian: (i) => `While computing the hessian, found that the jacobian of the user-provided function with respect to input ${i} is ` +
    `independent of the input.${NOT_STRICT}. You should ensure that your function is twice differentiable and that the jacobian ` +
    'depends on the inputs (this would be violated by a linear function for example).',
};
/** What strict mode says of a gradient that did not arrive, by the backward it was asked from. */
const ABSENT = {
  back: (i) => `The output of the user-provided function is independent of input ${i}.${NOT_STRICT}.`,
  back_trick: (i) => `The gradient with respect to the input is independent of entry ${i} in the grad_outputs when using the double ` +
    `backward trick to compute forward mode gradients.${NOT_STRICT}.`,
  double_back: (i) => `The jacobian of the user-provided function is independent of input ${i}.${NOT_STRICT}.`,
  double_back_trick: (i) => `The hessian of the user-provided function is independent of entry ${i} in the grad_jacobian.${NOT_STRICT} ` +
    'as it prevents from using the double backward trick to replace forward mode AD.',
};
const constantMatrix = (matrix, i) =>
  `The ${matrix} of the user-provided function is independent of input ${i}.${NOT_STRICT} when create_graph=True.`;

/** torch.autograd.functional over a library of tensors and its torch.autograd. */
export function makeFunctional({ Tensor, spaces, rowsOf }, { grad, enable_grad, grad_mode, is_grad_enabled, forward_ad }) {
  const { stack, zeros_like } = spaces.f;
  const like = (question, values) => (Array.isArray(question) ? values : values[0]);

  /** A tensor or several, as an array. */
  function tensors(value, what, name) {
    each(value).forEach((item, i) => {
      if (!(item instanceof Tensor))
        throw new TypeError(`The ${what} given to ${name} must be either a Tensor or a tuple of Tensors but the ` +
          `${Array.isArray(value) ? `value at index ${i}` : `given ${what}`} has type ${typeName(item)}.`);
    });
    return each(value);
  }
  const outputsOf = (value, name) => tensors(value, 'outputs of the user-provided function', name);

  /** New tensors of the same values: views where the result is to reach the given ones. */
  const fresh = (given, create_graph, requires_grad) =>
    given.map((t) => (create_graph && t.requires_grad ? t.view_as(t) : t.detach().requires_grad_(requires_grad)));

  /** The results (of any nesting) without history, unless it was asked for. */
  const finished = (value, create_graph) =>
    (create_graph ? value : Array.isArray(value) ? value.map((v) => finished(v, false)) : value.detach());

  /** v as an array shaped like `others`, or null, of which autograd makes ones, for one number. */
  function vector(v, others, isArray, create_graph, name, of) {
    if (v === null) {
      if (others.length === 1 && others[0].numel() === 1) return null;
      throw new RuntimeError(`The vector v can only be None if the ${of} a single Tensor with a single element.`);
    }
    const given = fresh(tensors(v, 'v', name), create_graph, false);
    if (given.length !== others.length)
      throw new RuntimeError(isArray ? `v is a tuple of invalid length: should be ${others.length} but got ${given.length}.`
        : 'The given v should contain a single Tensor.');
    given.forEach((mine, i) => {
      if (mine.shape.join() !== others[i].shape.join())
        throw new RuntimeError(`${isArray ? `Entry ${i} in ` : ''}v has invalid size: should be [${others[i].shape}] but got [${mine.shape}].`);
    });
    return given;
  }

  function demandHistory(found, what, strict) {
    if (strict) found.forEach((t, i) => { if (!t?.requires_grad) throw new RuntimeError((t ? NEEDS_GRAD[what] : ABSENT.back)(i)); });
  }

  function demandOneNumber(output, outputs, name) {
    if (Array.isArray(output)) throw new RuntimeError(`The function given to ${name} should return a single Tensor`);
    if (outputs[0].numel() !== 1) throw new RuntimeError(`The Tensor returned by the function given to ${name} should contain a single element`);
  }

  /** `grad` that passes over outputs without history: their gradient is null. */
  function pullBack(outputs, inputs, cotangents, options) {
    const pairs = outputs.map((y, i) => [y, cotangents?.[i] ?? null]).filter(([y]) => y?.requires_grad);
    if (!pairs.length) return inputs.map(() => null);
    return grad(pairs.map(([y]) => y), inputs, pairs.map(([, g]) => g), { allow_unused: true, ...options });
  }

  /** The gradients with zeros for those that did not arrive; strict mode raises instead. */
  function completed(grads, others, { strict, create_graph }, stage) {
    return grads.map((g, i) => {
      if (g === null && strict) throw new RuntimeError(ABSENT[stage](i));
      if (strict && create_graph && !g.requires_grad) throw new RuntimeError(constantMatrix(stage.startsWith('double') ? 'hessian' : 'jacobian', i));
      return g ?? zeros_like(others[i]);
    });
  }

  /** What every product begins with: the options, copies of the inputs, and what the function made of them. */
  function begin(name, func, inputs, rest) {
    const options = bind(name, { v: null, create_graph: false, strict: false }, rest);
    const points = fresh(tensors(inputs, 'inputs', name), options.create_graph, true);
    const v = name === 'vjp' ? null
      : vector(options.v, points, Array.isArray(inputs), options.create_graph, name, 'input to the user-provided function is');
    const output = func(...points);
    const outputs = outputsOf(output, name);
    demandHistory(outputs, 'outputs', options.strict);
    return { options, points, v, output, outputs };
  }

  /** What every product ends with: a backward, recorded if the caller records or asked for a graph. What it gives stands for
   * `others`; question: in whose form. */
  function end({ options, output, outputs }, [ys, xs, v], others, stage, question) {
    const { create_graph } = options;
    const pull = () => completed(pullBack(ys, xs, v, { create_graph }), others, options, stage);
    const found = grad_mode(create_graph || is_grad_enabled(), pull);
    return [like(output, finished(outputs, create_graph)), like(question, finished(found, create_graph))];
  }

  /** What the function returned, and the product of a vector (shaped like that) and its Jacobian, v J.
   * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<VJPOptions>[]) => [O, Like<I>]} */
  function vjp(func, inputs, ...rest) {
    const begun = enable_grad(() => begin('vjp', func, inputs, rest));
    const { options, points, output, outputs } = begun;
    const v = vector(options.v, outputs, Array.isArray(output), options.create_graph, 'vjp', 'user-provided function returns');
    return end(begun, [outputs, points, v], points, 'back', inputs);
  }

  /** What the function returned, and the product of its Jacobian and a vector (shaped like the inputs), J v: the backward
   * is linear in what it starts from, so its own derivative by that is the product.
   * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<JVPOptions>[]) => [O, Like<O>]} */
  function jvp(func, inputs, ...rest) {
    const [begun, grads, probes] = enable_grad(() => {
      const made = begin('jvp', func, inputs, rest);
      const start = made.outputs.map((y) => zeros_like(y, { requires_grad: true }));
      const first = pullBack(made.outputs, made.points, start, { create_graph: true });
      demandHistory(first, 'grad_inputs', made.options.strict);
      return [made, first, start];
    });
    return end(begun, [grads, probes, begun.v], begun.outputs, 'back_trick', begun.output);
  }

  /** vhp and hvp: a first backward, then what `second` makes of its gradients. */
  function hessianProduct(name, func, inputs, rest, stage, second) {
    const [begun, ys, xs] = enable_grad(() => {
      const made = begin(name, func, inputs, rest);
      demandOneNumber(made.output, made.outputs, name);
      const grads = pullBack(made.outputs, made.points, null, { create_graph: true });
      demandHistory(grads, 'jacobian', made.options.strict);
      return [made, ...second(grads, made.points)];
    });
    return end(begun, [ys, xs, begun.v], begun.points, stage, inputs);
  }

  /** The one number that the function returned, and the product of a vector and its Hessian, v H.
   * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<VHPOptions>[]) => [O, Like<I>]} */
  const vhp = (func, inputs, ...rest) => hessianProduct('vhp', func, inputs, rest, 'double_back', (grads, points) => [grads, points]);

  /** The same with H v: equal to `vhp`, which is faster, wherever the second derivatives are continuous.
   * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<HVPOptions>[]) => [O, Like<I>]} */
  const hvp = (func, inputs, ...rest) => hessianProduct('hvp', func, inputs, rest, 'double_back_trick', (grads, points) => {
    const probes = points.map((x) => zeros_like(x, { requires_grad: true }));
    return [pullBack(grads, points, probes, { create_graph: true }), probes];
  });

  // ---------------------------------------------------------------- matrices

  /** The identity over all elements of several tensors, cut by tensor: (sum of all n, n_k) for each. */
  function units(given) {
    const total = given.reduce((n, t) => n + t.numel(), 0);
    let first = 0;
    return given.map((t) => {
      const piece = spaces.f.zeros([total, t.numel()], { dtype: t.dtype });
      piece.diagonal(0 - first).fill_(1);
      first += t.numel();
      return piece;
    });
  }
  const sizesOf = (given) => given.map((t) => t.numel());

  /** The Jacobian by one backward a number of the outputs, those of an output in one call. */
  function rows(outputs, points, { create_graph, strict }) {
    return outputs.map((y, i) => {
      const absent = points.map(() => null);
      const found = y.numel() ? (y.requires_grad ? rowsOf(y, points, create_graph) : absent) : stack([]);
      return points.map((x, k) => {
        const shape = [...y.shape, ...x.shape];
        if (strict && !found[k]) throw new RuntimeError(`Output ${i} of the user-provided function is independent of input ${k}.${NOT_STRICT}.`);
        if (strict && create_graph && !found[k].requires_grad) throw new RuntimeError(constantMatrix('jacobian', i));
        return found[k]?.view(shape) ?? spaces.f.zeros(shape, { dtype: x.dtype });
      });
    });
  }

  /** The Jacobian in forward mode, by the unit vectors of the inputs. */
  function columns(func, inputs, { create_graph, strict, vectorize }) {
    if (create_graph || strict || !vectorize)
      throw new NotImplementedError('jacobian: strategy="forward-mode" needs vectorize=True, and neither create_graph nor strict');
    const points = tensors(inputs, 'inputs', 'jacobian');
    const tangents = units(points).map((unit) => unit.unbind(0));
    let output;
    const pushed = tangents[0].map((_, row) => forward_ad.dual_level(() => {
      output = func(...points.map((x, k) => forward_ad.make_dual(x, tangents[k][row].view_as(x))));
      return outputsOf(output, 'jacobian').map((y) => {
        const { primal, tangent } = forward_ad.unpack_dual(y);
        return tangent ?? zeros_like(primal);
      });
    }));
    const table = each(output).map((_, i) => {
      const pieces = stack(pushed.map((row) => row[i]), -1).split(sizesOf(points), -1);
      return like(inputs, points.map((x, k) => pieces[k].reshape([...pushed[0][i].shape, ...x.shape])));
    });
    return like(output, table);
  }

  /** The Jacobian of a function, the derivative of every output number by every input number:
   * a tensor of the output's sizes followed by the input's; arrays [output][input] of them where these are.
   * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<JacobianOptions>[]) => O extends any[] ? Like<I>[] : Like<I>} */
  function jacobian(func, inputs, ...rest) {
    const options = bind('jacobian', { create_graph: false, strict: false, vectorize: false, strategy: 'reverse-mode' }, rest);
    const { create_graph, strict, vectorize, strategy } = options;
    if (!['forward-mode', 'reverse-mode'].includes(strategy)) throw new RuntimeError('Expected strategy to be either "forward-mode" or "reverse-mode".');
    if (strategy === 'forward-mode') return columns(func, inputs, options);
    return enable_grad(() => {
      const points = fresh(tensors(inputs, 'inputs', 'jacobian'), create_graph, true);
      const output = func(...points);
      const outputs = outputsOf(output, 'jacobian');
      demandHistory(outputs, 'outputs', strict);
      if (vectorize && strict)
        throw new RuntimeError('torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set `strict=False` or `vectorize=False`.');
      const table = rows(outputs, points, options);
      return like(output, finished(table, create_graph).map((row) => like(inputs, row)));
    });
  }

  /** The Hessian of a function with one number for output, the Jacobian of its Jacobian: a tensor of the input's sizes twice;
   * for an array of inputs arrays [input][input].
   * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<HessianOptions>[]) => I extends any[] ? Tensor[][] : Tensor} */
  function hessian(func, inputs, ...rest) {
    const { outer_jacobian_strategy: strategy, ...options } =
      bind('hessian', { create_graph: false, strict: false, vectorize: false, outer_jacobian_strategy: 'reverse-mode' }, rest);
    const oneNumber = (...points) => {
      const output = func(...points);
      const outputs = outputsOf(output, 'hessian');
      demandHistory(outputs, 'outputs', options.strict);
      demandOneNumber(output, outputs, 'hessian');
      return outputs[0].squeeze();
    };
    const gradient = (...points) => {
      if (strategy === 'forward-mode') points.forEach((x) => x.requires_grad_());
      const grads = jacobian(oneNumber, points, { create_graph: true });
      demandHistory(grads, 'jacobian', options.strict);
      return grads;
    };
    const table = jacobian(gradient, tensors(inputs, 'inputs', 'hessian'), { ...options, strategy });
    return Array.isArray(inputs) ? table : table[0][0];
  }

  return { vjp, jvp, vhp, hvp, jacobian, hessian };
}

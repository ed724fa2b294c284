/** Products with Jacobians and Hessians, and the matrices themselves, of functions of tensors.
 *
 * Every entry point works on copies of its inputs (views of them, if the result is to be differentiated
 * further), so what the function captures by other means is a constant. Answers come back as the questions
 * were put: a tensor for a tensor, an array for an array. */
import { bind, each, NotImplementedError, RuntimeError } from './engine.js';
import { typeName } from './hooks.js';

/** @import { Given } from './engine.js' @import { Tensor } from './tensor.js' */
/** @typedef {Tensor | Tensor[]} Tensors */
/** @template I @typedef {I extends any[] ? Tensor[] : Tensor} Like shaped as inputs (or outputs) are */
/** @template O @typedef {(...inputs: Tensor[]) => O} Of a function that returns O */
/** @typedef {{v?: Tensors | null, create_graph?: boolean, strict?: boolean}} VJPOptions */
/** @typedef {VJPOptions} JVPOptions @typedef {VJPOptions} VHPOptions @typedef {VJPOptions} HVPOptions */
/** @typedef {{create_graph?: boolean, strict?: boolean, vectorize?: boolean, strategy?: 'reverse-mode' | 'forward-mode'}} JacobianOptions */
/** @typedef {{create_graph?: boolean, strict?: boolean, vectorize?: boolean,
 *   outer_jacobian_strategy?: 'reverse-mode' | 'forward-mode'}} HessianOptions */

/** torch.autograd.functional over a library of tensors and its torch.autograd. */
export function makeFunctional({ C, Tensor, spaces, rowsOf }, { grad, enable_grad, grad_mode, is_grad_enabled, forward_ad }) {
  const { eye, stack, zeros, zeros_like } = spaces.f;
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

  /** New tensors of the same values: views where the result is to reach the given ones. */
  const fresh = (given, create_graph, requires_grad) =>
    given.map((t) => (create_graph && t.requires_grad ? t.view_as(t) : t.detach().requires_grad_(requires_grad)));
  /** The results (of any nesting) without history, unless it was asked for. */
  const finished = (value, create_graph) =>
    (create_graph ? value : Array.isArray(value) ? value.map((v) => finished(v, false)) : value.detach());
  /** In strict mode the error of a stage, unless all tensors are there and (with `history`) recorded. */
  const demand = ({ strict }, stage, found, history = true, output = -1) => { if (strict) C._strict(found, stage, history, output); };

  /** What the function makes of the points: tensors, or the one number whose Hessian is wanted. */
  function run(name, func, points, options) {
    const output = func(...points);
    demand(options, 'outputs', tensors(output, 'outputs of the user-provided function', name));
    if (!['vhp', 'hvp', 'hessian'].includes(name)) return output;
    if (Array.isArray(output)) throw new RuntimeError(`The function given to ${name} should return a single Tensor`);
    if (output.numel() === 1) return output;
    throw new RuntimeError(`The Tensor returned by the function given to ${name} should contain a single element`);
  }

  /** `grad` that passes over outputs that are absent or without history: their gradient is null. */
  function pullBack(outputs, inputs, cotangents = null, create_graph = true) {
    const pairs = outputs.map((y, i) => [y, cotangents?.[i] ?? null]).filter(([y]) => y?.requires_grad);
    if (!pairs.length) return inputs.map(() => null);
    return grad(pairs.map(([y]) => y), inputs, pairs.map(([, g]) => g), { allow_unused: true, create_graph });
  }

  /** What the function returned, and a product of its derivatives and v: the gradients that start from v of and by what `chain`
   * makes of the outputs. They are recorded if the caller records or asked for a graph. */
  const product = (name, stage, chain) => (func, inputs, ...rest) => {
    const options = bind(name, { v: null, create_graph: false, strict: false }, rest);
    const { create_graph } = options;
    const vector = (question) => {
      const v = options.v === null ? null : fresh(tensors(options.v, 'v', name), create_graph, false);
      C._check_vector(v, each(question), Array.isArray(question), name === 'vjp');
      return v;
    };
    const [v, output, [ys, xs]] = enable_grad(() => {
      const points = fresh(tensors(inputs, 'inputs', name), create_graph, true);
      const early = name === 'vjp' ? null : vector(inputs);
      const made = run(name, func, points, options);
      return [name === 'vjp' ? vector(made) : early, made, chain(each(made), points, options)];
    });
    const question = name === 'jvp' ? output : inputs;
    const found = grad_mode(create_graph || is_grad_enabled(), () => {
      const grads = pullBack(ys, xs, v, create_graph);
      demand(options, stage, grads, create_graph);
      return grads.map((g, i) => g ?? zeros_like(each(question)[i]));
    });
    return [finished(output, create_graph), like(question, finished(found, create_graph))];
  };

  /** Gradients, and the zeros that they start from: they are linear in those, so their derivative by them is a product from the right.
   * An absent output, which is a gradient itself, has the shape of its point. */
  function linear(outputs, points, options, stage) {
    const start = outputs.map((y, i) => zeros_like(y ?? points[i], { requires_grad: true }));
    const grads = pullBack(outputs, points, start);
    if (stage) demand(options, stage, grads);
    return [grads, start];
  }

  /** The recorded gradient of a function with one number for output, and by what. */
  function gradient(outputs, points, options) {
    const grads = pullBack(outputs, points);
    demand(options, 'jacobian', grads);
    return [grads, points];
  }

  /** What the function returned, and the product of a vector (shaped like that) and its Jacobian, v J.
   * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<VJPOptions>[]) => [O, Like<I>]} */
  const vjp = product('vjp', 'back', (outputs, points) => [outputs, points]);
  /** What the function returned, and the product of its Jacobian and a vector (shaped like the inputs), J v.
   * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<JVPOptions>[]) => [O, Like<O>]} */
  const jvp = product('jvp', 'back_trick', (outputs, points, options) => linear(outputs, points, options, 'grad_inputs'));
  /** The one number that the function returned, and the product of a vector and its Hessian, v H.
   * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<VHPOptions>[]) => [O, Like<I>]} */
  const vhp = product('vhp', 'double_back', gradient);
  /** The same with H v: equal to `vhp`, which is faster, wherever the second derivatives are continuous.
   * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<HVPOptions>[]) => [O, Like<I>]} */
  const hvp = product('hvp', 'double_back_trick', (...begun) => linear(...gradient(...begun)));

  /** The identity over all elements of several tensors, cut by tensor: (sum of all n, n_k) for each. */
  function units(given) {
    const sizes = given.map((t) => t.numel());
    return eye(sizes.reduce((a, b) => a + b, 0)).split(sizes, 1).map((piece, k) => piece.to(given[k].dtype));
  }

  /** The Jacobian by one backward a number of the outputs, those of an output in one call. */
  const rows = (outputs, points, options) => outputs.map((y, i) => {
    const found = y.numel() ? (y.requires_grad ? rowsOf(y, points, options.create_graph) : points.map(() => null)) : stack([]);
    demand(options, 'row', found, options.create_graph, i);
    return points.map((x, k) => found[k]?.view([...y.shape, ...x.shape]) ?? zeros([...y.shape, ...x.shape], { dtype: x.dtype }));
  });

  /** The Jacobian in forward mode, by the unit vectors of the inputs. */
  function columns(func, inputs, { create_graph, strict, vectorize }) {
    if (create_graph || strict || !vectorize)
      throw new NotImplementedError('jacobian: strategy="forward-mode" needs vectorize=True, and neither create_graph nor strict');
    const points = tensors(inputs, 'inputs', 'jacobian');
    const tangents = units(points).map((unit) => unit.unbind(0));
    let output;
    const pushed = tangents[0].map((_, row) => forward_ad.dual_level(() => {
      output = func(...points.map((x, k) => forward_ad.make_dual(x, tangents[k][row].view_as(x))));
      return tensors(output, 'outputs of the user-provided function', 'jacobian').map((y) => {
        const { primal, tangent } = forward_ad.unpack_dual(y);
        return tangent ?? zeros_like(primal);
      });
    }));
    const table = each(output).map((_, i) => {
      const pieces = stack(pushed.map((row) => row[i]), -1).split(points.map((x) => x.numel()), -1);
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
    if (strategy === 'forward-mode') return columns(func, inputs, options);
    if (strategy !== 'reverse-mode') throw new RuntimeError('Expected strategy to be either "forward-mode" or "reverse-mode".');
    return enable_grad(() => {
      const points = fresh(tensors(inputs, 'inputs', 'jacobian'), create_graph, true);
      const output = run('jacobian', func, points, options);
      if (vectorize && strict)
        throw new RuntimeError('torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please ' +
          'either set `strict=False` or `vectorize=False`.');
      return like(output, finished(rows(each(output), points, options), create_graph).map((row) => like(inputs, row)));
    });
  }

  /** The Hessian of a function with one number for output, the Jacobian of its Jacobian: a tensor of the input's sizes twice;
   * for an array of inputs arrays [input][input].
   * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<HessianOptions>[]) => I extends any[] ? Tensor[][] : Tensor} */
  function hessian(func, inputs, ...rest) {
    const { outer_jacobian_strategy: strategy, ...options } =
      bind('hessian', { create_graph: false, strict: false, vectorize: false, outer_jacobian_strategy: 'reverse-mode' }, rest);
    const inner = (...points) => {
      if (strategy === 'forward-mode') points.forEach((x) => x.requires_grad_());
      const grads = jacobian((...xs) => run('hessian', func, xs, options).squeeze(), points, { create_graph: true });
      demand(options, 'jacobian', grads);
      return grads;
    };
    const table = jacobian(inner, tensors(inputs, 'inputs', 'hessian'), { ...options, strategy });
    return Array.isArray(inputs) ? table : table[0][0];
  }

  return { vjp, jvp, vhp, hvp, jacobian, hessian };
}

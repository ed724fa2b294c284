/** Products with Jacobians and Hessians of functions of tensors, and the matrices themselves.
 *
 * The function is called with copies of the inputs, so tensors that it captures are constants. The engine makes the copies, and
 * the answer from the function's result: wasm_core/walk/jacobians.c. The answer for a tensor is a tensor, for an array an array. */
import { ANSWER } from './enumerations.js';
import { bind, each, typeName } from './arguments.js';
import { abandon } from './engine.js';

/** @import { Given } from './arguments.js' @import { Tensor } from './tensor.js' */
/** @typedef {Tensor | Tensor[]} Tensors */
/** @template I @typedef {I extends any[] ? Tensor[] : Tensor} Like shaped as inputs (or outputs) are */
/** @template O @typedef {(...inputs: Tensor[]) => O} Of a function that returns O */
/** @typedef {{v?: Tensors | null, create_graph?: boolean, strict?: boolean}} VJPOptions */
/** @typedef {VJPOptions} JVPOptions @typedef {VJPOptions} VHPOptions @typedef {VJPOptions} HVPOptions */
/** @typedef {{create_graph?: boolean, strict?: boolean, vectorize?: boolean, strategy?: 'reverse-mode' | 'forward-mode'}} JacobianOptions */
/** @typedef {Omit<JacobianOptions, 'strategy'> & {outer_jacobian_strategy?: JacobianOptions['strategy']}} HessianOptions */
/** @typedef {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<VJPOptions>[]) => [O, Like<I>]} Product */

/** torch.autograd.functional over a library of tensors and its torch.autograd. */
export function makeFunctional(
  { C, isTensor, spaces, remember, walk },
  { enable_grad, forward_ad },
) {
  const like = (question, values) => (Array.isArray(question) ? values : values[0]);

  /** A tensor or several, as an array; `name` is the calling function, for the error. */
  function tensors(name, value, what = 'outputs of the user-provided function') {
    const odd = each(value).findIndex((item) => !isTensor(item));
    if (odd < 0) return each(value);
    each(value).forEach(abandon);
    throw new TypeError(
      `The ${what} given to ${name} must be either a Tensor or a tuple of Tensors but the ` +
        `${Array.isArray(value) ? `value at index ${odd}` : `given ${what}`} has type ${typeName(each(value)[odd])}.`,
    );
  }

  /** The function's result, and the engine's answer for it: a flat array of tensors. */
  function derivative(name, func, inputs, { v = null, create_graph, strict, vectorize = false }) {
    const vector = () => (v === null ? null : tensors(name, v, 'v'));
    const ask = (row, question, outputs, points, given) =>
      row(ANSWER[name], [
        given?.length ?? -1,
        ...[Array.isArray(question), create_graph, strict, vectorize].map(Number),
        outputs.length,
        ...[...outputs, ...points, ...(given ?? [])].map((t) => t.alive()),
      ]);
    const points = ask(
      C._functional_points,
      inputs,
      [],
      tensors(name, inputs, 'inputs'),
      name === 'vjp' ? null : vector(),
    );
    const output = enable_grad(() => func(...points.map(remember)));
    return [
      output,
      walk(ask(C._functional_answer, output, tensors(name, output), points, vector())),
    ];
  }

  const product =
    (name) =>
    (func, inputs, ...rest) => {
      const options = bind(name, { v: null, create_graph: false, strict: false }, rest);
      const [output, found] = derivative(name, func, inputs, options);
      const finished = options.create_graph
        ? output
        : like(
            output,
            each(output).map((y) => y.detach()),
          );
      return [finished, like(name === 'jvp' ? output : inputs, found)];
    };

  /** The function's result, and its Jacobian by forward mode, one unit vector of the points at a time. */
  function columns(func, points, units) {
    const push = (...tangents) =>
      forward_ad.dual_level(() => {
        const output = func(
          ...points.map((x, k) => forward_ad.make_dual(x, tangents[k].view_as(x))),
        );
        const parts = tensors('jacobian', output).map((y) => forward_ad.unpack_dual(y));
        return [
          output,
          parts.map(({ primal, tangent }) => tangent ?? spaces.torch.zeros_like(primal)),
        ];
      });
    const vectors = units.map((unit) => unit.unbind(0));
    const rows = vectors[0].map((_, row) => push(...vectors.map((vector) => vector[row])));
    return [
      rows[0][0],
      C._functional_columns(
        rows[0][1].map((_, i) => spaces.torch.stack(rows.map(([, row]) => row[i]))),
        points,
      ),
    ];
  }

  /** The Jacobian of a function, or of its gradient (its Hessian): [output][input], as an array or a tensor as these are. */
  const matrix =
    (name, way) =>
    (func, inputs, ...rest) => {
      const { [way]: how, ...options } = bind(
        name,
        { create_graph: false, strict: false, vectorize: false, [way]: 'reverse-mode' },
        rest,
      );
      const points = tensors(name, inputs, 'inputs');
      const of =
        name === 'hessian'
          ? (...xs) => derivative(name, func, xs, { ...options, create_graph: true })[1]
          : func;
      const [output, found] =
        how === 'reverse-mode'
          ? derivative('jacobian', of, points, options)
          : columns(
              of,
              points,
              C._functional_units(points, {
                ...options,
                strategy: how,
                hessian: name === 'hessian',
              }),
            );
      const rows = each(output).map((_, i) =>
        like(inputs, found.slice(i * points.length, (i + 1) * points.length)),
      );
      return like(name === 'hessian' ? inputs : output, rows);
    };

  return {
    /** The function's result, and the product of a vector (shaped like the result) and its Jacobian, v J. @type {Product} */
    vjp: product('vjp'),
    /** The function's result, and the product of its Jacobian and a vector (shaped like the inputs), J v.
     * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<JVPOptions>[]) => [O, Like<O>]} */
    jvp: product('jvp'),
    /** The number that the function returned, and the product of a vector and its Hessian, v H. @type {Product} */
    vhp: product('vhp'),
    /** The number that the function returned, and H v: equal to `vhp`, which is faster, wherever the second derivatives are
     * continuous. @type {Product} */
    hvp: product('hvp'),
    /** The Jacobian of a function, the derivative of every output number by every input number: a tensor of the output's sizes
     * followed by the input's; arrays [output][input] of tensors if output or input is an array.
     * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<JacobianOptions>[]) => O extends any[] ? Like<I>[] :
     * Like<I>} */
    jacobian: matrix('jacobian', 'strategy'),
    /** The Hessian of a function with a single number as output: a tensor of the input's sizes twice; for an array, arrays
     * [input][input].
     * @type {<I extends Tensors, O>(func: Of<O>, inputs: I, ...rest: Given<HessianOptions>[]) => I extends any[] ? Tensor[][] :
     * Tensor} */
    hessian: matrix('hessian', 'outer_jacobian_strategy'),
  };
}

/** Gradients checked against finite differences: of functions, and of their gradients.
 *
 * A Jacobian here is a matrix with a row an element of the input and a column an element of the output.
 * Inputs are perturbed where they lie, since a function may reach them by other ways than its arguments;
 * they are put back exactly. Outputs are the floating ones. The first check that fails raises, and says
 * which output and input. */
import { bind, each, errorClass, NotImplementedError, RuntimeError } from './engine.js';

/** @import { Given } from './engine.js' @import { Tensor } from './tensor.js' */
/** @typedef {Partial<typeof COMMON>} CheckOptions what both checks take */
/** @typedef {CheckOptions & {check_batched_forward_grad?: boolean, check_forward_ad?: boolean, check_backward_ad?: boolean}} GradcheckOptions */
/** @typedef {CheckOptions & {grad_outputs?: Tensor | Tensor[] | null, gen_non_contig_grad_outputs?: boolean, check_fwd_over_rev?: boolean,
 *   check_rev_over_rev?: boolean}} GradgradcheckOptions grad_outputs: what the first backward starts from; random if left out */
/** @typedef {boolean} GradcheckResult */

/** What `gradcheck` and `gradgradcheck` found to be wrong. */
export class GradcheckError extends RuntimeError { name = 'GradcheckError'; }

const UNDEFINED = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"';
const COMMON = {
  eps: 1e-6, atol: 1e-5, rtol: 1e-3, raise_exception: true, nondet_tol: 0, check_undefined_grad: true, check_grad_dtypes: false,
  check_batched_grad: false, fast_mode: false, masked: false,
};

const demand = (holds, message, kind = GradcheckError) => { if (!holds) throw new kind(message); };
const assert = (holds, message) => demand(holds, message, errorClass('AssertionError'));

/** torch.autograd.gradcheck and gradgradcheck over a library of tensors and its torch.autograd. */
export function makeGradcheck({ C, Tensor, spaces, rowsOf }, { grad, forward_ad, no_grad }) {
  const { stack, zeros, zeros_like, allclose } = spaces.f;
  const floats = (value) => value instanceof Tensor && value.dtype.is_floating_point;
  const wantsGrad = (value) => value instanceof Tensor && value.requires_grad;
  const flat = (t) => t.detach().reshape([-1]);
  const matrix = (rows, like, width) => (rows.length ? stack(rows.map(flat)) : zeros([0, width], { dtype: like.dtype }));
  const units = (x) => spaces.f.eye(x.numel(), { dtype: x.dtype }).unbind(0).map((unit) => unit.view(x.shape));
  const largest = (t) => (t.numel() ? t.abs().max().item() : 0);

  // ---------------------------------------------------------------- three ways to a Jacobian

  /** (f(x + step) - f(x - step)) / (2 eps) for every floating output, as the values at `place` move by `step`. */
  function difference(func, inputs, place, step, eps) {
    const here = place.clone();
    const at = (value) => {
      place.copy_(value);
      return each(func(...inputs)).filter(floats).map((y) => y.detach().clone());
    };
    let below, above;
    try {
      [below, above] = no_grad(() => [here.sub(step), here.add(step)]).map(at);
    } finally {
      place.copy_(here);
    }
    return below.map((a, k) => {
      for (const kind of ['shape', 'dtype'])
        assert(String(a[kind]) === String(above[k][kind]), `Expected \`func\` to return outputs with the same ${kind} when inputs are perturbed ` +
          `by ${eps}, but got: ${kind}s ${a[kind]} and ${above[k][kind]}.`);
      return above[k].sub(a).div(2 * eps);
    });
  }

  /** The Jacobian of every output by one input, an element at a time. */
  function numerical(func, inputs, outputs, x, eps) {
    const places = x.shape.reduce((found, n) => found.flatMap((at) => Array.from({ length: n }, (_, i) => [...at, i])), [[]]);
    const rows = places.map((at) => difference(func, inputs, x.data.index(...at), eps, eps));
    return outputs.map((y, k) => matrix(rows.map((row) => row[k]), y, y.numel()));
  }

  /** The Jacobian of one output by every input, or its product with v, from a backward that is run twice. The engine sees to it
   * that gradients have the dtypes and sizes of the inputs. */
  function backward(wanted, output, nondet_tol, v) {
    const width = v ? 1 : output.numel();
    const run = () => {
      const found = v ? grad(output, wanted, v.reshape(output.shape), { retain_graph: true, allow_unused: true })
        : width ? rowsOf(output, wanted, false) : [];
      return wanted.map((x, i) => found[i]?.reshape([width, x.numel()]).t() ?? zeros([x.numel(), width], { dtype: x.dtype }));
    };
    const [first, second] = [run(), run()];
    demand(first.every((m, i) => largest(m.sub(second[i])) <= nondet_tol), 'Backward is not reentrant, i.e., running backward with same ' +
      'input and grad_output multiple times gives different values, although analytical gradient matches numerical gradient.' +
      `The tolerance for nondeterminism was ${nondet_tol}.`);
    return first;
  }

  /** The parts of every floating output, as the inputs have these tangents; null: none. */
  const push = (func, inputs, tangents) => forward_ad.dual_level(() => {
    const duals = inputs.map((x, i) => (tangents[i] ? forward_ad.make_dual(x.detach(), tangents[i]) : x));
    return each(func(...duals)).filter(floats).map((y) => forward_ad.unpack_dual(y));
  });

  /** The Jacobian of every output by one input in forward mode, or its product with u. */
  function forward(func, inputs, outputs, place, u) {
    const steps = u ? [u.reshape(inputs[place].shape)] : units(inputs[place]);
    const rows = steps.map((step) => push(func, inputs, inputs.map((x, i) => (i === place ? step : wantsGrad(x) ? zeros_like(x) : null))));
    return outputs.map((y, k) => matrix(rows.map((row) => row[k].tangent ?? zeros_like(y)), y, y.numel()));
  }

  // ---------------------------------------------------------------- the checks

  /** A random vector of length one with an element for each of x's, none of them negative. */
  function direction(x) {
    const vector = spaces.f.rand([x.numel()], { dtype: x.dtype });
    return vector.div(vector.norm());
  }

  /** Every element of every Jacobian; in fast mode one random combination of the elements of each. */
  function compare({ func, inputs, outputs, recorded, places, wanted, options }, isForward) {
    const { eps, rtol, atol, nondet_tol, fast_mode } = options;
    const us = wanted.map((x) => (fast_mode ? direction(x) : null));
    const vs = recorded.map((y) => (fast_mode && !isForward ? direction(y) : null));
    const numbers = wanted.map((x, i) => (fast_mode ? difference(func, inputs, x.data, us[i].reshape(x.shape).mul(eps), eps)
      : numerical(func, inputs, outputs, x, eps)));
    if (!recorded.length)
      return demand(!numbers.flat().some((t) => largest(t) > (fast_mode ? nondet_tol : 0)), 'Numerical gradient for function expected to be zero');
    const byForward = isForward ? places.map((p, i) => forward(func, inputs, outputs, p, us[i])) : null;
    const byBackward = isForward ? null : recorded.map((y, j) => backward(wanted, y, nondet_tol, vs[j]));

    function compareOne(i, j) {
      const [u, v, k] = [us[i], vs[j], outputs.indexOf(recorded[j])];
      const combined = (m, w) => (w ? flat(m).dot(w) : u ? flat(m) : m);
      const analytical = byForward ? combined(byForward[i][k]) : combined(byBackward[j][i], u);
      const numeric = combined(numbers[i][k], v);
      const tolerance = [u, v].reduce((scaled, w) => (w ? scaled * w.sum().item() : scaled), atol);
      if (!allclose(analytical, numeric.to(analytical.dtype), rtol, tolerance))
        throw new GradcheckError(`Jacobian ${isForward ? 'computed with forward mode ' : ''}mismatch for output ${j} with respect to input ${i},\n` +
          `numerical:${numeric}\nanalytical:${analytical}\n`);
    }
    if (fast_mode) wanted.forEach((x, i) => recorded.forEach((y, j) => compareOne(i, j)));
    else recorded.forEach((y, j) => wanted.forEach((x, i) => compareOne(i, j)));
  }

  /** A backward that starts from zeros must give zeros. */
  function expectZeroOfZero({ recorded, wanted, options }) {
    for (const g of grad(recorded, wanted, recorded.map((y) => zeros_like(y)), { allow_unused: true }))
      demand(!g || (options.masked ? allclose(g, zeros_like(g)) : !largest(g)), 'backward not multiplied by grad_output');
  }

  /** Gradients that do not arrive must count as zeros: all of them, then one at a time. */
  function expectZeroOfAbsent({ func, inputs, recorded, wanted }) {
    for (const absent of recorded.length > 1 ? [null, ...recorded.keys()] : [null]) {
      const outputs = each(func(...inputs)).filter(wantsGrad).map((y, i) => (absent === null || absent === i ? C._undefined_grad(y) : y));
      let grads;
      try {
        grads = grad(outputs, wanted, outputs.map((y) => zeros_like(y)), { allow_unused: true });
      } catch (error) {
        throw new GradcheckError(`Expected backward function to handle undefined output grads. ${UNDEFINED}`, { cause: error });
      }
      demand(!grads.some((g) => g && largest(g)),
        `Expected all input grads to be undefined or zero when all output grads are undefined or zero. ${UNDEFINED}`);
    }
  }

  /** An input without a tangent must do what one with a tangent of zeros does. */
  function compareAbsentTangents({ func, inputs, places }) {
    const tangents = inputs.map((x) => (wantsGrad(x) ? direction(x).reshape(x.shape) : null));
    for (const p of places) {
      const given = inputs.map((x, i) => (i === p ? x.detach() : x));
      const [zero, absent] = [zeros_like(given[p]), null].map((t) => push(func, given, tangents.map((old, i) => (i === p ? t : old))));
      zero.forEach(({ tangent }, k) => {
        if (tangent && absent[k].tangent && !allclose(tangent, absent[k].tangent))
          throw new GradcheckError(`Mismatch in tangent values for output with index: ${k} when input: ${inputs[p]} has an undefined tangent value.`);
      });
    }
  }

  /** Whether the gradients of a function are what finite differences say. The defaults are for float64.
   * @param {(...inputs: any[]) => any} func @param {any} inputs a tensor or an array; those that require grad are checked
   * @param {GradcheckOptions} [given] @returns {GradcheckResult} true; false if a check failed and `raise_exception` is false */
  function gradcheck(func, inputs, given = {}) {
    const options = bind('gradcheck', { ...COMMON, check_batched_forward_grad: false, check_forward_ad: false, check_backward_ad: true }, [given]);
    const { check_forward_ad, check_backward_ad } = options;
    assert(check_forward_ad || check_backward_ad, 'Expected at least one of check_forward_ad or check_backward_ad to be True');
    for (const name of ['check_batched_grad', 'check_batched_forward_grad'])
      if (options[name]) throw new NotImplementedError(`gradcheck: ${name} is not supported`);
    const points = each(inputs);
    try {
      C._check_inputs(points.map((x) => (x instanceof Tensor ? x : null)));
      const outputs = each(func(...points)).filter(floats);
      const places = [...points.keys()].filter((i) => wantsGrad(points[i]));
      const wanted = points.filter(wantsGrad);
      const check = { func, inputs: points, outputs, recorded: outputs.filter(wantsGrad), places, wanted, options };
      if (check_backward_ad) compare(check, false);
      if (check_forward_ad) compare(check, true);
      if (!check.recorded.length) return true;
      if (check_forward_ad && options.check_undefined_grad) compareAbsentTangents(check);
      if (check_backward_ad) expectZeroOfZero(check);
      if (check_backward_ad && options.check_undefined_grad) expectZeroOfAbsent(check);
    } catch (error) {
      if (options.raise_exception || !(error instanceof GradcheckError)) throw error;
      return false;
    }
    return true;
  }

  /** Whether the gradients of a function's gradients are what finite differences say. @param {(...inputs: any[]) => any} func
   * @param {any} inputs a tensor or an array @param {...Given<GradgradcheckOptions>} rest @returns {GradcheckResult} */
  function gradgradcheck(func, inputs, ...rest) {
    const { grad_outputs, gen_non_contig_grad_outputs, check_fwd_over_rev, check_rev_over_rev, ...options } = bind('gradgradcheck',
      { grad_outputs: null, gen_non_contig_grad_outputs: false, check_fwd_over_rev: false, check_rev_over_rev: true, ...COMMON }, rest);
    assert(check_fwd_over_rev || check_rev_over_rev, 'Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True');
    assert(check_rev_over_rev || !options.check_undefined_grad, 'Setting check_undefined_grad=True requires check_rev_over_rev to be True');
    const points = each(inputs);
    const random = (y) => {
      const spread = gen_non_contig_grad_outputs && y.numel() > 1 && y.ndim > 0;
      const values = spaces.f.empty(spread ? [...y.shape, 2] : y.shape, { dtype: y.dtype }).uniform_(-1, 1);
      return (spread ? values.select(-1, 1) : values).requires_grad_();
    };
    const cotangents = grad_outputs ? each(grad_outputs) : each(func(...points)).filter(wantsGrad).map(random);
    const restored = [...points, ...cotangents].map(wantsGrad);
    const gradient = (...args) => {
      args.forEach((x, i) => { if (restored[i]) x.requires_grad_(); });
      const given = args.slice(0, points.length);
      const outputs = each(func(...given)).filter(wantsGrad);
      const wanted = given.filter((_, i) => restored[i]);
      return grad(outputs, wanted, args.slice(points.length), { create_graph: true, allow_unused: true }).filter(Boolean);
    };
    const modes = { check_forward_ad: check_fwd_over_rev, check_backward_ad: check_rev_over_rev };
    return gradcheck(gradient, [...points, ...cotangents], { ...options, ...modes });
  }

  return { gradcheck, gradgradcheck, GradcheckError };
}

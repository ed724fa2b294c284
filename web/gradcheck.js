/**
 * Gradients checked against finite differences: of functions, and of their gradients.
 *
 * A Jacobian here is a matrix with a row an element of the input and a column an element of the output.
 * Inputs are perturbed where they lie, since a function may reach them by other ways than its arguments;
 * they are put back exactly. The first check that fails raises, and says which output and input.
 */
import { bind, each, errorClass, NotImplementedError, RuntimeError, ValueError } from './engine.js';

/** @import { Given } from './engine.js'
 * @import { Tensor } from './tensor.js' */
/** @typedef {{eps?: number, atol?: number, rtol?: number, raise_exception?: boolean, nondet_tol?: number, check_undefined_grad?: boolean,
 *   check_grad_dtypes?: boolean, check_batched_grad?: boolean, fast_mode?: boolean, masked?: boolean}} CheckOptions what both checks take */
/** @typedef {CheckOptions & {check_batched_forward_grad?: boolean, check_forward_ad?: boolean, check_backward_ad?: boolean}} GradcheckOptions */
/** @typedef {CheckOptions & {grad_outputs?: Tensor | Tensor[] | null, gen_non_contig_grad_outputs?: boolean, check_fwd_over_rev?: boolean,
 *   check_rev_over_rev?: boolean}} GradgradcheckOptions grad_outputs: what the first backward starts from; random if left out */
/** @typedef {boolean} GradcheckResult */

/** What `gradcheck` and `gradgradcheck` found to be wrong. */
export class GradcheckError extends RuntimeError { name = 'GradcheckError'; }

const UNDEFINED = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"';
const EXPECTED_ZERO = 'Numerical gradient for function expected to be zero';

function demand(holds, message, kind = errorClass('AssertionError')) { if (!holds) throw new kind(message); }

/** torch.autograd.gradcheck and gradgradcheck over a library of tensors and its torch.autograd. */
export function makeGradcheck({ C, Tensor, spaces }, { grad, forward_ad, no_grad }, engine) {
  const { stack, zeros, zeros_like, allclose, is_same_size: isSameSize } = spaces.f;
  const floats = (value) => value instanceof Tensor && value.dtype.is_floating_point;
  const wantsGrad = (value) => value instanceof Tensor && value.requires_grad;
  const flat = (t) => t.detach().reshape([-1]);
  const matrix = (rows, like, width) => (rows.length ? stack(rows.map((row) => flat(row))) : zeros([0, width], { dtype: like.dtype }));
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
        demand(String(a[kind]) === String(above[k][kind]), `Expected \`func\` to return outputs with the same ${kind} when inputs are perturbed ` +
          `by ${eps}, but got: ${kind}s ${a[kind]} and ${above[k][kind]}.`);
      return above[k].sub(a).div(2 * eps);
    });
  }

  /** The Jacobian of every floating output by one input, an element at a time. */
  function numerical(func, inputs, outputs, x, eps) {
    const places = x.shape.reduce((found, n) => found.flatMap((at) => Array.from({ length: n }, (_, i) => [...at, i])), [[]]);
    const rows = places.map((at) => difference(func, inputs, x.data.index(...at), eps, eps));
    return outputs.filter(floats).map((y, k) => matrix(rows.map((row) => row[k]), y, y.numel()));
  }

  /** The Jacobian of one output by every input, or its product with v, from a backward that is run twice. */
  function backward(wanted, output, { nondet_tol, check_grad_dtypes }, v = null) {
    const pull = (g) => grad(output, wanted, g, { retain_graph: true, allow_unused: true });
    const run = () => {
      const rows = v ? [pull(v.reshape(output.shape))] : units(output).map(pull);
      return wanted.map((x, i) => {
        const grads = rows.map((row) => row[i] ?? zeros_like(x));
        demand(!check_grad_dtypes || grads.every((g) => g.dtype === x.dtype), 'Gradient has dtype mismatch', GradcheckError);
        demand(grads.every((g) => isSameSize(g, x)), 'Analytical gradient has incorrect size', GradcheckError);
        return matrix(grads, x, x.numel()).t();
      });
    };
    const [first, second] = [run(), run()];
    demand(first.every((m, i) => largest(m.sub(second[i])) <= nondet_tol), 'Backward is not reentrant, i.e., running backward with same ' +
      'input and grad_output multiple times gives different values, although analytical gradient matches numerical gradient.' +
      `The tolerance for nondeterminism was ${nondet_tol}.`, GradcheckError);
    return first;
  }

  /** [primal, tangent] of every floating output, as the inputs have these tangents; null: none. */
  const push = (func, inputs, tangents) => forward_ad.dual_level(() => {
    const duals = inputs.map((x, i) => (tangents[i] ? forward_ad.make_dual(x.detach(), tangents[i]) : x));
    return each(func(...duals)).filter(floats).map((y) => {
      const { primal, tangent } = forward_ad.unpack_dual(y);
      return [primal, tangent?.clone() ?? null];
    });
  });

  /** The Jacobian of every floating output by one input in forward mode, or its product with u. */
  function forward(func, inputs, place, u = null) {
    const steps = u ? [u.reshape(inputs[place].shape)] : units(inputs[place]);
    const rows = steps.map((step) => push(func, inputs, inputs.map((x, i) => (i === place ? step : wantsGrad(x) ? zeros_like(x) : null))));
    return (rows[0] ?? []).map(([primal], k) => matrix(rows.map((row) => row[k][1] ?? zeros_like(primal)), primal, primal.numel()));
  }

  // ---------------------------------------------------------------- the checks

  function compare(analytical, numeric, { rtol, atol }, output, input, isForward) {
    if (allclose(analytical, numeric.to(analytical.dtype), rtol, atol)) return;
    throw new GradcheckError(`Jacobian ${isForward ? 'computed with forward mode ' : ''}mismatch for output ${output} with respect to input ` +
      `${input},\nnumerical:${numeric}\nanalytical:${analytical}\n`);
  }

  /** Every element of every Jacobian. */
  function compareInFull({ func, inputs, outputs, recorded, places, wanted, options }, isForward) {
    const kept = [...outputs.filter(floats).entries()].filter(([, y]) => y.requires_grad).map(([k]) => k);
    const table = wanted.map((x) => numerical(func, inputs, outputs, x, options.eps));
    demand(recorded.length || !table.flat().some(largest), EXPECTED_ZERO, GradcheckError);
    const byForward = isForward && recorded.length ? places.map((p) => forward(func, inputs, p)) : null;
    kept.forEach((k, i) => {
      const found = byForward ? byForward.map((of) => of[k]) : backward(wanted, recorded[i], options);
      found.forEach((a, j) => compare(a, table[j][k], options, i, j, isForward));
    });
  }

  /** A random vector of length one with an element for each of x's, none of them negative. */
  function direction(x) {
    const vector = spaces.f.rand([x.numel()], { dtype: x.dtype });
    return vector.div(vector.norm());
  }

  /** One random combination of the elements of each Jacobian. */
  function compareProducts({ func, inputs, outputs, recorded, places, wanted, options }, isForward) {
    const { eps, rtol, atol, nondet_tol } = options;
    const us = wanted.map(direction);
    const vs = isForward ? null : recorded.map(direction);
    const floating = outputs.filter(floats);
    const table = wanted.map((x, i) => difference(func, inputs, x.data, us[i].reshape(x.shape).mul(eps), eps));
    demand(recorded.length || !table.flat().some((t) => largest(t) > nondet_tol), EXPECTED_ZERO, GradcheckError);
    const columns = isForward ? null : recorded.map((y, j) => backward(wanted, y, options, vs[j]));
    places.forEach((p, i) => {
      const byForward = isForward && recorded.length ? forward(func, inputs, p, us[i]) : null;
      recorded.forEach((y, j) => {
        const k = floating.indexOf(y);
        const numeric = vs ? flat(table[i][k]).dot(vs[j]) : flat(table[i][k]);
        const a = vs ? flat(columns[j][i]).dot(us[i]) : flat(byForward[k]);
        const scaled = atol * us[i].sum().item() * (vs ? vs[j].sum().item() : 1);
        compare(a, numeric, { rtol, atol: scaled }, j, i, isForward);
      });
    });
  }

  /** A backward that starts from zeros must give zeros, of the inputs' dtypes and sizes. */
  function expectZeroOfZero({ recorded, wanted, options }) {
    if (!recorded.length) return;
    grad(recorded, wanted, recorded.map((y) => zeros_like(y)), { allow_unused: true }).forEach((g, i) => {
      if (!g) return;
      demand(options.masked ? allclose(g, zeros_like(g)) : !largest(g), 'backward not multiplied by grad_output', GradcheckError);
      demand(g.dtype === wanted[i].dtype, 'grad is incorrect type', GradcheckError);
      demand(isSameSize(g, wanted[i]), 'grad is incorrect size', GradcheckError);
    });
  }

  /** Gradients that do not arrive must count as zeros: all of them, then one at a time. */
  function expectZeroOfAbsent({ func, inputs, recorded, wanted }) {
    const runs = recorded.length > 1 ? [null, ...recorded.keys()] : recorded.length ? [null] : [];
    for (const absent of runs) {
      const outputs = each(func(...inputs)).filter(wantsGrad).map((y, i) => (absent === null || absent === i ? C._undefined_grad(y) : y));
      let grads;
      try {
        grads = grad(outputs, wanted, outputs.map((y) => zeros_like(y)), { allow_unused: true });
      } catch (error) {
        throw new GradcheckError(`Expected backward function to handle undefined output grads. ${UNDEFINED}`, { cause: error });
      }
      demand(!grads.some((g) => g && largest(g)),
        `Expected all input grads to be undefined or zero when all output grads are undefined or zero. ${UNDEFINED}`, GradcheckError);
    }
  }

  /** An input without a tangent must do what one with a tangent of zeros does. */
  function compareAbsentTangents({ func, inputs, places }) {
    const tangents = inputs.map((x) => (wantsGrad(x) ? direction(x).reshape(x.shape) : null));
    for (const p of places) {
      const given = inputs.map((x, i) => (i === p ? x.detach() : x));
      const [zero, absent] = [zeros_like(given[p]), null].map((t) => push(func, given, tangents.map((old, i) => (i === p ? t : old))));
      zero.forEach(([, a], k) => {
        if (a && absent[k][1] && !allclose(a, absent[k][1]))
          throw new GradcheckError(`Mismatch in tangent values for output with index: ${k} when input: ${inputs[p]} has an undefined tangent value.`);
      });
    }
  }

  function checkInputs(inputs) {
    inputs.forEach((x, i) => {
      if (!wantsGrad(x)) return;
      if (x.dtype.name !== 'float64')
        engine.onWarning(`Input #${i} requires gradient and is not a double precision floating point or complex. This check will likely fail if ` +
          'all the inputs are not of double precision floating point or complex. ');
      if (x.stride().some((stride, d) => stride <= 0 && x.shape[d] > 1))
        throw new RuntimeError(`The ${i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able ` +
          'to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck.');
    });
    if (!inputs.some(wantsGrad))
      throw new ValueError('gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.');
  }

  /** What both functions take. */
  const COMMON = {
    eps: 1e-6, atol: 1e-5, rtol: 1e-3, raise_exception: true, nondet_tol: 0, check_undefined_grad: true, check_grad_dtypes: false,
    check_batched_grad: false, fast_mode: false, masked: false,
  };

  /** Whether the gradients of a function are what finite differences say. The defaults are for float64.
   * @param {(...inputs: any[]) => any} func @param {any} inputs a tensor or an array; those that require grad are checked
   * @param {GradcheckOptions} [given] @returns {GradcheckResult} true; false if a check failed and `raise_exception` is false */
  function gradcheck(func, inputs, given = {}) {
    const options = bind('gradcheck', { ...COMMON, check_batched_forward_grad: false, check_forward_ad: false, check_backward_ad: true }, [given]);
    const { check_forward_ad, check_backward_ad } = options;
    demand(check_forward_ad || check_backward_ad, 'Expected at least one of check_forward_ad or check_backward_ad to be True');
    for (const name of ['check_batched_grad', 'check_batched_forward_grad'])
      if (options[name]) throw new NotImplementedError(`gradcheck: ${name} is not supported`);
    const points = each(inputs);
    try {
      checkInputs(points);
      const outputs = each(func(...points));
      const places = [...points.keys()].filter((i) => wantsGrad(points[i]));
      const wanted = points.filter(wantsGrad);
      const check = { func, inputs: points, outputs, recorded: outputs.filter(wantsGrad), places, wanted, options };
      const compareAll = options.fast_mode ? compareProducts : compareInFull;
      if (check_backward_ad) compareAll(check, false);
      if (check_forward_ad) compareAll(check, true);
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
    demand(check_fwd_over_rev || check_rev_over_rev, 'Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True');
    demand(check_rev_over_rev || !options.check_undefined_grad, 'Setting check_undefined_grad=True requires check_rev_over_rev to be True');
    const points = each(inputs);
    const random = (y) => {
      const spread = gen_non_contig_grad_outputs && y.numel() > 1 && y.ndim > 0;
      const shape = spread ? [...y.shape, 2] : y.shape;
      const values = spaces.f.empty(shape, { dtype: y.dtype }).uniform_(-1, 1);
      return (spread ? values.select(-1, 1) : values).requires_grad_();
    };
    const cotangents = grad_outputs ? each(grad_outputs) : each(func(...points)).filter(wantsGrad).map(random);
    const restored = [...points, ...cotangents].map(wantsGrad);
    const gradient = (...args) => {
      args.forEach((x, i) => { if (restored[i]) x.requires_grad_(); });
      const given = args.slice(0, points.length);
      const outputs = each(func(...given)).filter(wantsGrad);
      return grad(outputs, given.filter((_, i) => restored[i]), args.slice(points.length), { create_graph: true, allow_unused: true }).filter(Boolean);
    };
    return gradcheck(gradient, [...points, ...cotangents], { ...options, check_forward_ad: check_fwd_over_rev, check_backward_ad: check_rev_over_rev });
  }

  return { gradcheck, gradgradcheck, GradcheckError };
}

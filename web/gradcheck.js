/** Checks gradients against finite differences: of functions, and of their gradients.
 *
 * The engine does the checks (wasm_core/walk/gradcheck.c): the first that fails raises, with the output, the input and both
 * Jacobians. This file calls the functions for it. */
import { bind, each, typeName } from './arguments.js';
import { abandon, errorClass, NotImplementedError, RuntimeError } from './engine.js';

/** @import { Given } from './arguments.js' @import { Tensor } from './tensor.js' */
/** @typedef {Partial<typeof COMMON>} CheckOptions options of both checks */
/** @typedef {CheckOptions & {check_batched_forward_grad?: boolean, check_forward_ad?: boolean, check_backward_ad?: boolean}} GradcheckOptions */
/** @typedef {CheckOptions & {grad_outputs?: Tensor | Tensor[] | null, gen_non_contig_grad_outputs?: boolean, check_fwd_over_rev?:
 * boolean, check_rev_over_rev?: boolean}} GradgradcheckOptions grad_outputs: the gradients that the first backward starts from;
 * random if absent */
/** @typedef {boolean} GradcheckResult */

/** A mismatch found by `gradcheck` or `gradgradcheck`. */
export class GradcheckError extends RuntimeError {
  name = 'GradcheckError';
}

const COMMON = {
  eps: 1e-6,
  atol: 1e-5,
  rtol: 1e-3,
  raise_exception: true,
  nondet_tol: 0,
  check_undefined_grad: true,
  check_grad_dtypes: false,
  check_batched_grad: false,
  fast_mode: false,
  masked: false,
};

/** torch.autograd.gradcheck and gradgradcheck over a library of tensors. */
export function makeGradcheck({ C, isTensor, hooks }) {
  const tensors = (values) => values.map((value) => (isTensor(value) ? value : null));

  /** The results of a function, which must be tensors. */
  function results(made) {
    const odd = each(made).find((y) => !isTensor(y));
    if (odd === undefined) return each(made);
    abandon(odd);
    throw new (errorClass('AttributeError'))(
      `'${typeName(odd)}' object has no attribute 'requires_grad'`,
    );
  }

  /** Runs the engine's check; throws or returns the result. `gradients`: the options for a check of gradients. */
  function check(func, points, options, gradients, forward, backward) {
    for (const name of ['check_batched_grad', 'check_batched_forward_grad'])
      if (options[name]) throw new NotImplementedError(`gradcheck: ${name} is not supported`);
    const { eps, atol, rtol, nondet_tol, check_undefined_grad, fast_mode, masked } = options;
    const id = hooks.keep((...given) => results(func(...points.map((x, i) => given[i] ?? x))));
    try {
      const verdict = C._gradcheck(
        id,
        tensors(points),
        ...gradients,
        eps,
        atol,
        rtol,
        nondet_tol,
        check_undefined_grad,
        forward,
        backward,
        fast_mode,
        masked,
      );
      if (verdict === undefined) return true;
      throw new GradcheckError(verdict);
    } catch (cause) {
      const note = C._gradcheck_note(); // the check's text for the error
      const error = note === undefined ? cause : new GradcheckError(note, { cause });
      if (options.raise_exception || !(error instanceof GradcheckError)) throw error;
      return false;
    } finally {
      hooks.drop(id);
    }
  }

  /** Whether the gradients of a function agree with finite differences. The defaults are for float64.
   * @param {(...inputs: any[]) => any} func @param {any} inputs a tensor or an array; those that require grad are checked
   * @param {...Given<GradcheckOptions>} rest @returns {GradcheckResult} true; false if a check failed and `raise_exception` is
   * false */
  function gradcheck(func, inputs, ...rest) {
    const options = bind(
      'gradcheck',
      {
        ...COMMON,
        check_batched_forward_grad: false,
        check_forward_ad: false,
        check_backward_ad: true,
      },
      rest,
    );
    return check(
      func,
      each(inputs),
      options,
      [false, null, false],
      options.check_forward_ad,
      options.check_backward_ad,
    );
  }

  /** Whether the gradients of a function's gradients agree with finite differences. @param {(...inputs: any[]) => any} func
   * @param {any} inputs a tensor or an array @param {...Given<GradgradcheckOptions>} rest @returns {GradcheckResult} */
  function gradgradcheck(func, inputs, ...rest) {
    const {
      grad_outputs,
      gen_non_contig_grad_outputs,
      check_fwd_over_rev,
      check_rev_over_rev,
      ...options
    } = bind(
      'gradgradcheck',
      {
        grad_outputs: null,
        gen_non_contig_grad_outputs: false,
        check_fwd_over_rev: false,
        check_rev_over_rev: true,
        ...COMMON,
      },
      rest,
    );
    const gradients = [
      true,
      grad_outputs && tensors(each(grad_outputs)),
      gen_non_contig_grad_outputs,
    ];
    return check(func, each(inputs), options, gradients, check_fwd_over_rev, check_rev_over_rev);
  }

  return { gradcheck, gradgradcheck, GradcheckError };
}

/** L-BFGS: steps by an estimate of the curvature from past gradients, with a line search. The loop calls a closure, so it is the
 * host's; it is Python's, operation by operation. */
import { typeName } from './arguments.js';
import { RuntimeError, ValueError } from './engine.js';
import { MODES } from './enumerations.js';
import { search } from './line_search.js';
import { makeScalars } from './scalars.js';

/** @import { Optimizer } from './optimizer.js' */

/** The real numbers of a tensor; complex numbers are pairs. */
const numbersOf = ({ spaces }, t) =>
  t.is_complex() ? spaces.torch.view_as_real(t.resolve_conj()) : t;

/** All gradients in one row, with zeros for missing ones. */
function gradientOf(library, params) {
  const { torch } = library.spaces;
  return torch.cat(
    params.map((p) => numbersOf(library, p.grad ?? torch.zeros_like(p)).reshape([-1])),
  );
}

function move(library, params, length, along) {
  let start = 0;
  for (const p of params.map((each) => numbersOf(library, each))) {
    const part = along.narrow(0, start, p.numel()).view_as(p);
    p.add_(part, { alpha: library.scalars.value(length) });
    start += p.numel();
  }
}

/** The point at a length along a direction; the parameters are restored. */
function evaluate(library, params, closure, origin, along, length) {
  move(library, params, length, along);
  const loss = library.scalars.value(closure());
  const gradient = gradientOf(library, params);
  params.forEach((p, i) => p.copy_(origin[i]));
  return { length, loss, gradient, slope: gradient.dot(along) };
}

/** The point of a strong Wolfe search of at most `most` turns, and the number of the closure's calls. */
function searchAlong(library, params, closure, here, along, length, most) {
  const origin = params.map((p) => p.clone());
  const at = (each) => evaluate(library, params, closure, origin, along, each);
  return search(library.scalars, at, here, length, along.abs().max(), most);
}

/** Adds the last step to the past ones, of which `size` are kept. */
function remember({ keep, scalars: s }, state, gradient, size) {
  const y = gradient.sub(state.prev_flat_grad);
  const step = state.d.mul(s.value(state.t));
  const curvature = y.dot(step);
  if (!s.gt(curvature, 1e-10)) return;
  const past = [state.old_dirs, state.old_stps, state.ro];
  if (state.old_dirs.length === size) past.forEach((list) => list.shift());
  [y, step, s.div(1, curvature)].forEach((value, i) => past[i].push(keep(value)));
  state.H_diag = keep(curvature.div(y.dot(y)));
}

/** The direction of descent by the two-loop recursion of L-BFGS. */
function direction(library, state, gradient, size) {
  const { keep } = library;
  if (state.n_iter === 1) {
    const begun = { old_dirs: [], old_stps: [], ro: [], H_diag: 1 };
    Object.assign(state, { d: keep(gradient.neg()), ...begun });
    return state.d;
  }
  remember(library, state, gradient, size);
  const { old_dirs: ys, old_stps: ss, ro } = state;
  const weights = [];
  let q = gradient.neg();
  for (let i = ys.length - 1; i >= 0; i--) {
    weights[i] = ss[i].dot(q).mul(ro[i]);
    q.add_(ys[i], { alpha: -weights[i].item() });
  }
  q = q.mul(state.H_diag);
  ys.forEach((y, i) => q.add_(ss[i], { alpha: weights[i].sub(y.dot(q).mul(ro[i])).item() }));
  state.al = weights.map(keep);
  return (state.d = keep(q));
}

/** One iteration: loss and gradient after it, the length, and the number of the closure's calls; null: the direction is flat. */
function iterate(optimizer, run, state, closure) {
  const { library, params, group } = run;
  const { scalars: s, keep } = library;
  const along = direction(library, state, run.gradient, group.history_size);
  Object.assign(state, { prev_flat_grad: keep(run.gradient.clone()), prev_loss: run.loss });
  let length = group.lr;
  if (state.n_iter === 1) length = s.mul(s.min(1, s.div(1, run.gradient.abs().sum())), length);
  state.t = keep(length);
  const slope = run.gradient.dot(along);
  if (s.gt(slope, -group.tolerance_change)) return null;
  let made = 0;
  if (group.line_search_fn !== null) {
    if (group.line_search_fn !== 'strong_wolfe')
      throw new RuntimeError("only 'strong_wolfe' is supported");
    const here = { length: 0, loss: run.loss, gradient: run.gradient.clone(), slope };
    const most = group.max_eval - run.calls;
    let found;
    [found, made] = searchAlong(library, params, closure, here, along, length, most);
    ({ loss: run.loss, gradient: run.gradient, length } = found);
    move(library, params, length, along);
  } else {
    move(library, params, length, along);
    if (!run.isLast) {
      run.loss = s.value(closure());
      made = 1;
      run.gradient = gradientOf(library, params);
    }
  }
  state.t = keep(length);
  return { along, length, made };
}

/** Whether an iteration ends the step. */
function isDone({ library, group, ...run }, { along, length }, before) {
  const s = library.scalars;
  return (
    run.calls >= group.max_eval ||
    s.le(run.gradient.abs().max(), group.tolerance_grad) ||
    s.le(along.mul(length).abs().max(), group.tolerance_change) ||
    Math.abs(run.loss - before) < group.tolerance_change
  );
}

/** The iterations of a step; returns what the closure returned first. */
function minimise(optimizer, library, closure) {
  const [group] = optimizer.param_groups;
  const { params } = group;
  const state = optimizer.state.get(params[0]) ?? {};
  optimizer.state.set(params[0], state);
  state.func_evals = (state.func_evals ?? 0) + 1;
  state.n_iter ??= 0;
  const first = closure();
  const loss = library.scalars.value(first);
  const run = { library, group, params, loss, calls: 1, gradient: gradientOf(library, params) };
  if (library.scalars.le(run.gradient.abs().max(), group.tolerance_grad)) return first;
  for (let iteration = 1; iteration <= group.max_iter; iteration++) {
    state.n_iter++;
    const before = run.loss;
    run.isLast = iteration === group.max_iter;
    const made = iterate(optimizer, run, state, closure);
    if (!made) break;
    run.calls += made.made;
    state.func_evals += made.made;
    if (isDone(run, made, before)) break;
  }
  return first;
}

/** The options of a constructor's call, which are checked. */
function readArguments({ isTensor, take }, args) {
  const { params, max_eval, ...rest } = take('LBFGS', args);
  const { lr, max_iter } = rest;
  if (isTensor(lr) && lr.numel() !== 1) throw new ValueError('Tensor lr must be 1-element');
  if (!((isTensor(lr) ? lr.item() : lr) >= 0)) throw new ValueError(`Invalid learning rate: ${lr}`);
  const most = max_eval ?? Math.floor((max_iter * 5) / 4);
  return [params, { lr, max_iter, max_eval: most, ...rest }];
}

/** The class over a library. @param {typeof Optimizer} Base of a library */
export function makeLbfgs(Base) {
  const { library } = /** @type {any} */ (Base);
  const { isTensor, runOutside, withModes } = library;
  const keep = (value) => (isTensor(value) ? runOutside(() => value.detach()) : value);
  const own = { ...library, keep, scalars: makeScalars(isTensor) };
  const made = class extends Base {
    constructor(...args) {
      const [params, options] = readArguments(library, args);
      super(params, options);
      if (this.param_groups.length !== 1)
        throw new ValueError("LBFGS doesn't support per-parameter options (parameter groups)");
    }

    step(closure) {
      if (typeof closure !== 'function')
        throw new TypeError(
          closure === undefined
            ? "LBFGS.step() missing 1 required positional argument: 'closure'"
            : `step(): argument 'closure' (position 1) must be a function, not ${typeName(closure)}`,
        );
      const recorded = () => withModes(0, MODES.GRAD, closure);
      return withModes(MODES.GRAD, 0, () => minimise(this, own, recorded));
    }
  };
  return Object.defineProperty(made, 'name', { value: 'LBFGS' });
}

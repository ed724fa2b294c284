/** torch.optim: the base class, and the optimizers of the table. */
import { makeBuiltins } from './optim_builtin.js';
import { makeLbfgs } from './optim_lbfgs.js';
import { Optimizer } from './optimizer.js';

/** @import { NewLBFGS, Optimizers } from './signatures.js' */

/** torch.optim over a library of tensors. */
export function makeOptim(tensors, engine) {
  const Base = class extends Optimizer {
    static library = { ...tensors, engine };
  };
  Object.defineProperty(Base, 'name', { value: 'Optimizer' });
  return {
    /** @type {typeof Optimizer} */ Optimizer: Base,
    .../** @type {Optimizers<Optimizer>} */ (makeBuiltins(Base)),
    /** @type {NewLBFGS<Optimizer>} */ LBFGS: /** @type {any} */ (makeLbfgs(Base)),
  };
}

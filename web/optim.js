/** Optimizers: each step is one call of the engine over all parameters of a group. */

import { MODES } from './engine.js';

/** torch.optim over a library of tensors. */
export function makeOptim({ C, spaces, outside, withModes }) {
  const zerosLike = (tensors) => outside(() => tensors.map((t) => spaces.f.zeros_like(t.detach())));
  const counters = (tensors) => outside(() => tensors.map(() => spaces.f.zeros([])));

  class Optimizer {
    constructor(params, defaults) {
      const groups = [...params];
      if (!groups.length) throw new Error('optimizer got an empty parameter list');
      this.param_groups = groups[0]?.params
        ? groups.map((group) => ({ ...defaults, ...group }))
        : [{ ...defaults, params: groups }];
      this.state = new Map();
    }

    zero_grad({ set_to_none = true } = {}) {
      for (const group of this.param_groups) C._zero_grads(group.params, set_to_none);
    }

    /** Updates the parameters that have a gradient. */
    step() {
      withModes(MODES.GRAD, 0, () => {
        for (const group of this.param_groups) {
          const params = group.params.filter((p) => p.grad);
          if (params.length) this.update(group, params, params.map((p) => p.grad));
        }
      });
    }

    /** The state of each parameter under a name, made when first asked for. */
    states(params, name, make) {
      return params.map((p) => {
        if (!this.state.has(p)) this.state.set(p, {});
        const own = this.state.get(p);
        own[name] ??= make([p])[0];
        return own[name];
      });
    }
  }

  class SGD extends Optimizer {
    constructor(params, options = {}) {
      super(params, { lr: 1e-3, momentum: 0, dampening: 0, weight_decay: 0, nesterov: false, maximize: false, ...options });
    }

    update(group, params, grads) {
      const { lr, momentum, dampening, weight_decay, nesterov, maximize } = group;
      const fresh = momentum ? params.filter((p) => !this.state.has(p)) : [];
      const run = (chosen, first) => {
        if (!chosen.length) return;
        const buffers = momentum ? this.states(chosen, 'momentum_buffer', zerosLike) : [];
        C._fused_sgd_(chosen, chosen.map((p) => grads[params.indexOf(p)]), buffers,
          { weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step: first });
      };
      const old = params.filter((p) => !fresh.includes(p));
      run(fresh, true);
      run(old, false);
    }
  }

  const adam = (op, defaults) => class extends Optimizer {
    constructor(params, options = {}) {
      super(params, { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0, amsgrad: false, maximize: false, ...defaults, ...options });
    }

    update(group, params, grads) {
      const { lr, betas, weight_decay, eps, amsgrad, maximize } = group;
      op(params, grads, this.states(params, 'exp_avg', zerosLike), this.states(params, 'exp_avg_sq', zerosLike),
        amsgrad ? this.states(params, 'max_exp_avg_sq', zerosLike) : [], this.states(params, 'step', counters),
        { lr, beta1: betas[0], beta2: betas[1], weight_decay, eps, amsgrad, maximize });
    }
  };

  return {
    Optimizer, SGD,
    Adam: adam(C._fused_adam_, {}),
    AdamW: adam(C._fused_adamw_, { weight_decay: 1e-2 }),
  };
}

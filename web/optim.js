/** Optimizers: each step is one call of the engine over all parameters of a group, whose gradients it finds itself. */
import { held, MODES, NotImplementedError, ValueError } from './engine.js';
import { dtypes } from './tensor.js';

/** @typedef {import('./tensor.js').Tensor} Tensor */
/** @typedef {{lr?: number, momentum?: number, dampening?: number, weight_decay?: number, nesterov?: boolean, maximize?: boolean}} SGDOptions */
/** @typedef {{lr?: number, betas?: readonly [number, number], eps?: number, weight_decay?: number, amsgrad?: boolean,
 *   maximize?: boolean, decoupled_weight_decay?: boolean}} AdamOptions */
/** @typedef {Iterable<Tensor> | Iterable<{params: Tensor[], [option: string]: any}>} Parameters tensors, or groups with own options */

/** torch.optim over a library of tensors. */
export function makeOptim({ C, Tensor, gradOf, spaces, outside, withModes }) {
  const zeros = (p) => outside(() => spaces.f.zeros_like(p));
  const counter = () => outside(() => spaces.f.zeros([]));

  /** A loaded value in the dtype that it has beside this parameter; the counter of steps is a float32. */
  function cast(parameter, [key, value]) {
    if (!(value instanceof Tensor)) return [key, value];
    const wanted = key === 'step' ? dtypes.float32 : parameter.dtype.is_floating_point ? parameter.dtype : value.dtype;
    return [key, outside(() => value.detach().to(wanted))];
  }

  /** Base of all optimizers: parameter groups, and a state for each parameter. @template [Options=object] */
  class Optimizer {
    /** @param {Parameters} params @param {Options} [options] beside the defaults of the kind of optimizer */
    constructor(params, options) {
      const groups = [...params];
      if (!groups.length) throw new ValueError('optimizer got an empty parameter list');
      /** @type {Record<string, any>} */
      this.defaults = { ...new.target.defaults, ...options };
      /** @type {{params: Tensor[], [option: string]: any}[]} */
      this.param_groups = (groups[0]?.params ? groups : [{ params: groups }]).map((group) => this.#complete(group));
      /** @type {Map<Tensor, Record<string, any>>} */
      this.state = new Map();
    }

    #complete(group) {
      const whole = { ...this.defaults, ...group };
      for (const name of ['capturable', 'differentiable'])
        if (whole[name]) throw new NotImplementedError(`optimizers do not support ${name}=True`);
      return whole;
    }

    /** Drops the gradient of every parameter, or fills it with zeros. @param {{set_to_none?: boolean}} [options] */
    zero_grad({ set_to_none = true } = {}) {
      for (const { params } of this.param_groups) C._zero_grads(params, set_to_none);
    }

    /** Updates the parameters that have a gradient. */
    step() {
      withModes(MODES.GRAD, 0, () => {
        for (const group of this.param_groups) {
          const params = group.params.filter(gradOf);
          if (params.length) this.update(group, params);
        }
      });
    }

    /** The state and the groups, with parameters named by their position, as Python's optimizers have it: either can load the
     * other's. Tensors are not copied. @returns {{state: Map<number, Record<string, any>>, param_groups: Record<string, any>[]}} */
    state_dict() {
      const all = this.param_groups.flatMap((group) => group.params);
      return {
        state: new Map(Array.from(this.state, ([p, own]) => [all.indexOf(p), { ...own }])),
        param_groups: this.param_groups.map(({ params, ...rest }) => ({ ...rest, params: params.map((p) => all.indexOf(p)) })),
      };
    }

    /** Takes over the state and the options of a state dict; the parameters stay this one's.
     * @param {{state: Map<number, Record<string, any>> | Record<number, Record<string, any>>, param_groups: Record<string, any>[]}} state_dict */
    load_state_dict({ state, param_groups }) {
      if (param_groups.length !== this.param_groups.length)
        throw new ValueError('loaded state dict has a different number of parameter groups');
      const owners = new Map();
      const groups = param_groups.map((saved, i) => {
        const { params } = this.param_groups[i];
        if (saved.params.length !== params.length)
          throw new ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group");
        saved.params.forEach((position, k) => owners.set(String(position), params[k]));
        return this.#complete({ ...saved, params });
      });
      this.state = new Map((state instanceof Map ? [...state] : Object.entries(state)).map(([position, own]) => {
        const parameter = owners.get(String(position));
        return [parameter, Object.fromEntries(Object.entries(own).map((entry) => cast(parameter, entry)))];
      }));
      this.param_groups = groups;
    }

    /** @private The states of some parameters by entry, each made when first asked for.
     * @param {any[]} params @param {Record<string, (p: any) => any>} makers @returns {any[][]} */
    states(params, makers) {
      const states = params.map((p) => held(this.state, p, () => ({})));
      return Object.entries(makers).map(([name, make]) => states.map((own, i) => (own[name] ??= make(params[i]))));
    }
  }

  /** @extends {Optimizer<SGDOptions>} */
  class SGD extends Optimizer {
    /** @private */
    static defaults = { lr: 1e-3, momentum: 0, dampening: 0, weight_decay: 0, nesterov: false, maximize: false };

    /** @private */
    update({ lr, momentum, dampening, weight_decay, nesterov, maximize }, params) {
      const begun = (p) => !momentum || this.state.get(p)?.momentum_buffer;
      for (const [is_first_step, chosen] of [[true, params.filter((p) => !begun(p))], [false, params.filter(begun)]]) {
        if (!chosen.length) continue;
        const [buffers = []] = this.states(chosen, momentum ? { momentum_buffer: zeros } : {});
        C._fused_sgd_(chosen, [], buffers, { weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step });
      }
    }
  }

  /** @extends {Optimizer<AdamOptions>} */
  class Adam extends Optimizer {
    /** @private */
    static defaults =
      { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0, amsgrad: false, maximize: false, decoupled_weight_decay: false };

    /** @private */
    update({ lr, betas: [beta1, beta2], weight_decay, eps, amsgrad, maximize, decoupled_weight_decay }, params) {
      const [steps, means, squares, largest = []] = this.states(params,
        { step: counter, exp_avg: zeros, exp_avg_sq: zeros, ...(amsgrad && { max_exp_avg_sq: zeros }) });
      const op = decoupled_weight_decay ? C._fused_adamw_ : C._fused_adam_;
      op(params, [], means, squares, largest, steps, { lr, beta1, beta2, weight_decay, eps, amsgrad, maximize });
    }
  }

  class AdamW extends Adam {
    /** @private */
    static defaults = { ...Adam.defaults, weight_decay: 1e-2, decoupled_weight_decay: true };
  }

  return { Optimizer, SGD, Adam, AdamW };
}

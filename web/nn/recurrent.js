/** Recurrent layers over sequences, and the cells for a single step. */
import { errorClass } from '../engine.js';
import { MAKE, RuntimeError, show, ValueError } from './python.js';

const NotImplementedError = errorClass('NotImplementedError');

/** The number of gates of each mode, and its step: from the gates of input and hidden state, and the state, to the next state. */
const STEPS = {
  LSTM: [
    4,
    (x, h, [, cell]) => {
      const [i, f, g, o] = x.add(h).chunk(4, -1);
      const next = f.sigmoid().mul(cell).add(i.sigmoid().mul(g.tanh()));
      return [o.sigmoid().mul(next.tanh()), next];
    },
  ],
  GRU: [
    3,
    (x, h, [state]) => {
      const [[xr, xz, xn], [hr, hz, hn]] = [x.chunk(3, -1), h.chunk(3, -1)];
      const next = xn.add(xr.add(hr).sigmoid().mul(hn)).tanh();
      return [next.add(xz.add(hz).sigmoid().mul(state.sub(next)))];
    },
  ],
  RNN_TANH: [1, (x, h) => [x.add(h).tanh()]],
  RNN_RELU: [1, (x, h) => [x.add(h).relu()]],
};

/** Draws the parameters of a layer, uniform on +-1 / sqrt(hidden_size). */
function draw(module, hidden_size, init) {
  const bound = hidden_size > 0 ? 1 / Math.sqrt(hidden_size) : 0;
  for (const parameter of module.parameters()) init.uniform_(parameter, -bound, bound);
}

/** Raises for sizes out of range, as PyTorch does, and warns of a dropout without effect. */
function check({ input_size, hidden_size, num_layers, dropout, proj_size }, warn) {
  if (!(dropout >= 0 && dropout <= 1))
    throw new ValueError(
      'dropout should be a number in range [0, 1] representing the probability of an element being zeroed',
    );
  if (dropout > 0 && num_layers === 1)
    warn(
      'dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects ' +
        `num_layers greater than 1, but got dropout=${show(dropout, true)} and num_layers=1`,
    );
  for (const [name, size] of Object.entries({ input_size, hidden_size, num_layers }))
    if (size <= 0) throw new ValueError(`${name} must be greater than zero`);
  if (proj_size < 0)
    throw new ValueError('proj_size should be a positive integer or zero to disable projections');
  if (proj_size >= hidden_size)
    throw new ValueError('proj_size has to be smaller than hidden_size');
}

/** The sizes of the parameters of a layer's direction, by name. */
function shapesOf({ mode, hidden_size, bias, proj_size }, width, suffix) {
  const gates = STEPS[mode][0] * hidden_size;
  return {
    [`weight_ih${suffix}`]: [gates, width],
    [`weight_hh${suffix}`]: [gates, proj_size || hidden_size],
    ...(bias && { [`bias_ih${suffix}`]: [gates], [`bias_hh${suffix}`]: [gates] }),
    ...(proj_size && { [`weight_hr${suffix}`]: [proj_size, hidden_size] }),
  };
}

/** Sizes as Python shows a tuple, and as it shows a list. */
const [tuple, list] = [(sizes) => `(${sizes.join(', ')})`, (sizes) => `[${sizes.join(', ')}]`];

/** Raises unless states have the number of dimensions of their input. */
function checkRanks(given, isBatched) {
  const rank = isBatched ? 3 : 2;
  const ranks = given.map((each) => each.dim());
  if (ranks.every((each) => each === rank)) return;
  const names = ranks.length > 1 ? 'hx and cx' : 'hx';
  const got = ranks.length > 1 ? `(${ranks[0]}-D, ${ranks[1]}-D) tensors` : `${ranks[0]}-D tensor`;
  throw new RuntimeError(
    `For ${isBatched ? 'batched' : 'unbatched'} ${rank}-D input, ${names} should also be ${rank}-D but got ${got}`,
  );
}

/** A stack of recurrent layers: how it runs. */
const makeRun = ({ F, torch }) => {
  /** The outputs of a layer's direction, and its last state. */
  function direction(own, x, start, [wx, wh, ...more], isBackwards) {
    const [bx, bh] = own.bias ? more : [null, null];
    const projection = own.proj_size ? more.at(-1) : null;
    const outputs = [];
    let state = start;
    const gates = [...F.linear(x, wx, bx).unbind(0)];
    for (const each of isBackwards ? gates.reverse() : gates) {
      state = STEPS[own.mode][1](each, F.linear(state[0], wh, bh), state);
      if (projection) state = [F.linear(state[0], projection), ...state.slice(1)];
      outputs.push(state[0]);
    }
    return [torch.stack(isBackwards ? outputs.reverse() : outputs), state];
  }

  /** The outputs of all steps, and the last states of all layers. */
  return function run(own, input, states) {
    const last = [];
    let x = input;
    for (let layer = 0; layer < own.num_layers; layer++) {
      const outputs = [];
      for (const isBackwards of own.bidirectional ? [false, true] : [false]) {
        const row = last.length;
        const start = states.map((each) => each.index(row));
        const weights = own._all_weights[row].map((name) => own[name]);
        const [output, end] = direction(own, x, start, weights, isBackwards);
        outputs.push(output);
        last.push(end);
      }
      x = outputs.length > 1 ? torch.cat(outputs, -1) : outputs[0];
      if (own.dropout && layer + 1 < own.num_layers) x = F.dropout(x, own.dropout, own.training);
    }
    return [x, states.map((_, i) => torch.stack(last.map((state) => state[i])))];
  };
};

/** The initial states of a layer or cell that runs on x; zeros unless they are given. */
function zeros(x, rows, sizes, torch) {
  return sizes.map((size) => torch.zeros([...rows, size], { dtype: x.dtype }));
}

/** Raises unless an input fits a layer. */
function checkInput(own, x, isAutocast) {
  if (isAutocast)
    throw new NotImplementedError(`${own.constructor.name}: autocast of recurrent layers`);
  const kind = own[own._all_weights[0][0]].dtype;
  if (x.dtype !== kind)
    throw new ValueError(
      `RNN input dtype (${x.dtype}) does not match weight dtype (${kind}). Convert input: input.to(${kind}), ` +
        `or convert model: model.to(${x.dtype})`,
    );
  if (x.size(-1) !== own.input_size)
    throw new RuntimeError(
      `input.size(-1) must be equal to input_size. Expected ${own.input_size}, got ${x.size(-1)}`,
    );
}

/** The initial states of a layer, [layers * directions, batch, features] each. */
function initialStates(own, x, hx, isBatched, torch) {
  const isLSTM = own.mode === 'LSTM';
  const rows = own.num_layers * (own.bidirectional ? 2 : 1);
  const width = own.proj_size || own.hidden_size;
  const sizes = isLSTM ? [width, own.hidden_size] : [width];
  if (hx === null) return zeros(x, [rows, x.size(1)], sizes, torch);
  const given = isLSTM ? [...hx] : [hx];
  checkRanks(given, isBatched);
  const states = isBatched ? given : given.map((each) => each.unsqueeze(1));
  states.forEach((each, i) => {
    const wanted = [rows, x.size(1), sizes[i]];
    if (String(each.shape) !== String(wanted))
      throw new RuntimeError(
        `Expected hidden${isLSTM ? `[${i}]` : ''} size ${tuple(wanted)}, got ${list(each.shape)}`,
      );
  });
  return states;
}

/** The base of recurrent layers. */
const makeRNNBase = ({ Module, Parameter, init, is_autocast_enabled, torch, warn, ...scope }) => {
  const run = makeRun({ torch, ...scope });

  return class RNNBase extends Module {
    [MAKE]({ mode, device, dtype, ...options }) {
      this.mode = mode;
      Object.assign(this, options);
      check(this, warn);
      const directions = this.bidirectional ? 2 : 1;
      const all = [];
      for (let layer = 0; layer < this.num_layers; layer++) {
        const width = layer ? directions * (this.proj_size || this.hidden_size) : this.input_size;
        for (const suffix of [`_l${layer}`, `_l${layer}_reverse`].slice(0, directions)) {
          const shapes = shapesOf(this, width, suffix);
          for (const [name, sizes] of Object.entries(shapes))
            this.register_parameter(name, new Parameter(torch.empty(sizes, { device, dtype })));
          all.push(Object.keys(shapes));
        }
      }
      this._all_weights = all;
      this.reset_parameters();
    }

    reset_parameters() {
      draw(this, this.hidden_size, init);
    }

    forward(...given) {
      const { input, hx } = scope.take('RNNBase.forward', given);
      const rank = input.dim();
      if (rank !== 2 && rank !== 3)
        throw new ValueError(
          `${this.constructor.name}: Expected input to be 2D or 3D, got ${rank}D instead`,
        );
      const isBatched = rank === 3;
      const isTurned = this.batch_first && isBatched;
      const turn = (each) => (isTurned ? each.transpose(0, 1) : each);
      const x = turn(isBatched ? input : input.unsqueeze(1));
      checkInput(this, x, is_autocast_enabled());
      const [outputs, states] = run(this, x, initialStates(this, x, hx, isBatched, torch));
      const output = isBatched ? turn(outputs) : outputs.squeeze(1);
      const last = isBatched ? states : states.map((each) => each.squeeze(1));
      return [output, this.mode === 'LSTM' ? last : last[0]];
    }

    extra_repr() {
      const texts = {
        proj_size: this.proj_size > 0 && this.proj_size,
        num_layers: this.num_layers > 1 && this.num_layers,
        bias: !this.bias && 'False',
        batch_first: this.batch_first && 'True',
        dropout: this.dropout > 0 && show(this.dropout, true),
        bidirectional: this.bidirectional && 'True',
      };
      const shown = Object.entries(texts).filter(([, text]) => text !== false);
      return [`${this.input_size}, ${this.hidden_size}`]
        .concat(shown.map(([name, text]) => `${name}=${text}`))
        .join(', ');
    }
  };
};

/** The base of cells. */
const makeCellBase = ({ F, Module, Parameter, init, take, torch }) =>
  class RNNCellBase extends Module {
    [MAKE]({ input_size, hidden_size, bias, num_chunks, device, dtype }) {
      Object.assign(this, { input_size, hidden_size, bias });
      const rows = num_chunks * hidden_size;
      const make = (name, ...sizes) => {
        const isWanted = bias || name.startsWith('weight');
        const made = isWanted ? new Parameter(torch.empty(sizes, { device, dtype })) : null;
        this.register_parameter(name, made);
      };
      make('weight_ih', rows, input_size);
      make('weight_hh', rows, hidden_size);
      make('bias_ih', rows);
      make('bias_hh', rows);
      this.reset_parameters();
    }

    reset_parameters() {
      draw(this, this.hidden_size, init);
    }

    /** The state after a step of a mode. */
    _step(mode, given) {
      const { input, hx } = take(`${mode === 'LSTM' ? 'LSTM' : 'GRU'}Cell.forward`, given);
      const rank = input.dim();
      if (rank !== 1 && rank !== 2)
        throw new ValueError(
          `${this.constructor.name}: Expected input to be 1D or 2D, got ${rank}D instead`,
        );
      const x = rank === 2 ? input : input.unsqueeze(0);
      const state = this._states(x, hx, rank === 2, mode === 'LSTM');
      const hidden = F.linear(state[0], this.weight_hh, this.bias_hh);
      const after = STEPS[mode][1](F.linear(x, this.weight_ih, this.bias_ih), hidden, state);
      return rank === 2 ? after : after.map((each) => each.squeeze(0));
    }

    /** The state before the step, [batch, hidden_size] each. */
    _states(x, hx, isBatched, isLSTM) {
      if (x.size(1) !== this.input_size)
        throw new RuntimeError(
          `input has inconsistent input_size: got ${x.size(1)} expected ${this.input_size}`,
        );
      const sizes = Array(isLSTM ? 2 : 1).fill(this.hidden_size);
      if (hx === null) return zeros(x, [x.size(0)], sizes, torch);
      const given = isLSTM ? [...hx] : [hx];
      given.forEach((each, i) => {
        if (each.dim() !== 1 && each.dim() !== 2)
          throw new ValueError(
            `${this.constructor.name}: Expected ${isLSTM ? `hx[${i}]` : 'hidden'} to be 1D or 2D, got ${each.dim()}D instead`,
          );
      });
      const states = isBatched ? given : given.map((each) => each.unsqueeze(0));
      states.forEach((each, i) => this._check_state(x, each, i));
      return states;
    }

    _check_state(x, state, number) {
      if (state.size(0) !== x.size(0))
        throw new RuntimeError(
          `Input batch size ${x.size(0)} doesn't match hidden${number} batch size ${state.size(0)}`,
        );
      if (state.size(1) !== this.hidden_size)
        throw new RuntimeError(
          `hidden${number} has inconsistent hidden_size: got ${state.size(1)}, expected ${this.hidden_size}`,
        );
    }

    extra_repr() {
      const { input_size, hidden_size, bias, nonlinearity = 'tanh' } = this;
      const other = nonlinearity === 'tanh' ? '' : `, nonlinearity=${nonlinearity}`;
      return `${input_size}, ${hidden_size}${bias ? '' : ', bias=False'}${other}`;
    }
  };

/** Definitions of layers, as in layers.js. */
export const recurrent = {
  _RNNBase: makeRNNBase,

  /** h = tanh(W x + b + U h + c) at each step, or relu instead of tanh. */
  RNN: ({ _RNNBase }) =>
    class RNN extends _RNNBase {
      [MAKE]({ nonlinearity, ...options }) {
        if (nonlinearity !== 'tanh' && nonlinearity !== 'relu')
          throw new ValueError(
            `Unknown nonlinearity '${nonlinearity}'. Select from 'tanh' or 'relu'.`,
          );
        super[MAKE]({ mode: `RNN_${nonlinearity.toUpperCase()}`, ...options, proj_size: 0 });
        this.nonlinearity = nonlinearity;
      }
    },

  /** Long short-term memory: gates control how a cell keeps, adds and outputs its state. */
  LSTM: ({ _RNNBase }) =>
    class LSTM extends _RNNBase {
      [MAKE](options) {
        super[MAKE]({ mode: 'LSTM', ...options });
      }
    },

  /** Gated recurrent units: one gate resets the hidden state, another keeps it. */
  GRU: ({ _RNNBase }) =>
    class GRU extends _RNNBase {
      [MAKE](options) {
        super[MAKE]({ mode: 'GRU', ...options, proj_size: 0 });
      }
    },

  _RNNCellBase: makeCellBase,

  /** One step of an `RNN`. */
  RNNCell: ({ _RNNCellBase }) =>
    class RNNCell extends _RNNCellBase {
      [MAKE]({ nonlinearity, ...options }) {
        super[MAKE]({ ...options, num_chunks: 1 });
        this.nonlinearity = nonlinearity;
      }

      forward(...given) {
        if (this.nonlinearity !== 'tanh' && this.nonlinearity !== 'relu')
          throw new RuntimeError(`Unknown nonlinearity: ${this.nonlinearity}`);
        return this._step(`RNN_${this.nonlinearity.toUpperCase()}`, given)[0];
      }
    },

  /** One step of an `LSTM`. */
  LSTMCell: ({ _RNNCellBase }) =>
    class LSTMCell extends _RNNCellBase {
      [MAKE](options) {
        super[MAKE]({ ...options, num_chunks: 4 });
      }

      forward(...given) {
        return this._step('LSTM', given);
      }
    },

  /** One step of a `GRU`. */
  GRUCell: ({ _RNNCellBase }) =>
    class GRUCell extends _RNNCellBase {
      [MAKE](options) {
        super[MAKE]({ ...options, num_chunks: 3 });
      }

      forward(...given) {
        return this._step('GRU', given)[0];
      }
    },
};

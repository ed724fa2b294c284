// Optimizers: how their arguments are given, what they refuse, groups, closures, states. `node --test tests/web`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { optimizers } from '../../web/optim_table.js';
import { signatures } from '../../web/signatures.js';
import { leaf, torch, warnings } from './helpers.mjs';

const { optim } = torch;
/** All but those whose parameters or gradients must be special: see test_optimizers.py. */
const KINDS = Object.keys(optimizers).filter((name) => !['Muon', 'SparseAdam'].includes(name));
/** For each option a value that is no default. */
const VALUES = {
  lr: 0.1,
  rho: 0.5,
  alpha: 0.6,
  lambd: 0.2,
  t0: 1,
  centered: true,
  d: 1.5,
  beta2_decay: -0.5,
  lr_decay: 0.5,
  initial_accumulator_value: 0.2,
  momentum_decay: 0.2,
  etas: [0.4, 1.3],
  step_sizes: [0.15, 40],
  momentum: 0.9,
  dampening: 0,
  weight_decay: 0.3,
  nesterov: true,
  maximize: true,
  betas: [0.5, 0.6],
  eps: 1e-3,
  amsgrad: true,
  foreach: true,
  fused: null,
  capturable: false,
  differentiable: false,
  decoupled_weight_decay: true,
};

/** Where eight steps lead with an optimizer that `make` makes of a parameter. */
function walk(make) {
  const x = leaf(3, -2);
  const optimizer = make(x);
  for (let i = 0; i < 8; i++) {
    optimizer.zero_grad();
    x.square().sum().backward();
    optimizer.step();
  }
  return [x.tolist(), optimizer.defaults];
}

/** Those that PyTorch also has as one fused kernel. */
const FUSED = ['SGD', 'Adam', 'AdamW'];

for (const name of KINDS) {
  const given = { ...VALUES, ...(name === 'Adafactor' && { eps: [1e-3, 10] }) };
  const options = Object.entries(signatures[name]).filter(([key]) => key !== 'params');
  const inOrder = options.filter(([, row]) => row[2] !== 'named');
  const named = Object.fromEntries(options.map(([key]) => [key, given[key]]));

  test(`${name}: options in order are those by name, and may be mixed`, () => {
    const all = walk((x) => new optim[name]([x], named));
    for (let count = 0; count <= inOrder.length; count++) {
      const rest = { ...named };
      for (const [key] of inOrder.slice(0, count)) delete rest[key];
      assert.deepEqual(
        walk(
          (x) => new optim[name]([x], ...inOrder.slice(0, count).map(([key]) => given[key]), rest),
        ),
        all,
        `${count} in order`,
      );
    }
    assert.deepEqual(
      walk((x) => new optim[name]({ params: [x], ...named })),
      all,
    );
  });

  test(`${name}: every option that chooses no implementation changes the steps`, () => {
    const base = { lr: 0.1, ...(name === 'SGD' && { momentum: 0.5 }) };
    const standard = walk((x) => new optim[name]([x], base))[0];
    const other = { ...given, lr: 0.2, dampening: 0.4 };
    for (const [key] of options) {
      if (
        [
          'foreach',
          'fused',
          'capturable',
          'differentiable',
          'decoupled_weight_decay',
          'amsgrad',
          't0',
          'd',
        ].includes(key)
      )
        continue;
      assert.notDeepEqual(
        walk((x) => new optim[name]([x], { ...base, [key]: other[key] }))[0],
        standard,
        key,
      );
    }
  });

  test(`${name}: what it does not take is an error, not left unread`, () => {
    const x = leaf(1);
    const values = inOrder.map(([key]) => given[key]);
    assert.throws(() => new optim[name]([x], ...values, true), {
      name: 'TypeError',
      message: /takes at most \d+ positional arguments but \d+ were given/,
    });
    assert.throws(() => new optim[name]([x], { rate: 1 }), {
      name: 'TypeError',
      message: `${name}() got an unexpected keyword argument 'rate'`,
    });
    assert.throws(() => new optim[name]([x], 0.1, { lr: 0.1 }), {
      name: 'TypeError',
      message: `${name}() got multiple values for argument 'lr'`,
    });
    assert.throws(() => new optim[name](), {
      name: 'TypeError',
      message: `${name}() missing 1 required positional argument: 'params'`,
    });
    for (const [key, row] of options) {
      assert.throws(() => new optim[name]([x], { [key]: 'odd' }), {
        name: 'TypeError',
        message: new RegExp(`argument '${key}' .* must be .*, not str`),
      });
      if (!row[0].endsWith('?'))
        assert.throws(() => new optim[name]([x], { [key]: null }), { name: 'TypeError' }, key);
    }
  });

  test(`${name}: a rate may be a tensor of one element`, () => {
    const rate = torch.tensor([0.1], { dtype: torch.float64 });
    assert.deepEqual(
      walk((x) => new optim[name]([x], rate))[0],
      walk((x) => new optim[name]([x], 0.1))[0],
    );
    assert.throws(() => new optim[name]([leaf(1)], torch.ones([2])), {
      name: 'ValueError',
      message: 'Tensor lr must be 1-element',
    });
  });

  if (!FUSED.includes(name)) continue;
  test(`${name}: values out of range are errors in the words of PyTorch`, () => {
    const cases = {
      lr: [-1, 'Invalid learning rate: -1'],
      weight_decay: [-0.5, 'Invalid weight_decay value: -0.5'],
      momentum: [-1, 'Invalid momentum value: -1'],
      eps: [NaN, 'Invalid epsilon value: NaN'],
      betas: [[0.5, 1], 'Invalid beta parameter at index 1: 1'],
      nesterov: [true, 'Nesterov momentum requires a momentum and zero dampening'],
    };
    for (const [key, [value, message]] of Object.entries(cases))
      if (key in signatures[name])
        assert.throws(() => new optim[name]([leaf(1)], { [key]: value }), {
          name: 'ValueError',
          message,
        });
    assert.throws(() => new optim[name]([leaf(1)], { fused: true, foreach: true }), {
      name: 'RuntimeError',
      message: /cannot be `True` together/,
    });
    assert.throws(() => new optim[name]([leaf(1)], { differentiable: true }), {
      name: 'NotImplementedError',
      message: /differentiable=True/,
    });
    assert.throws(() => new optim[name]([{ params: [leaf(1)], capturable: true }]), {
      name: 'NotImplementedError',
      message: /capturable=True/,
    });
  });
}

test('what is no list of parameters is refused', () => {
  const x = leaf(1);
  const cases = [
    [x, 'TypeError', /should be an iterable of Tensors or dicts, but got torch.DoubleTensor/],
    [3, 'TypeError', /but got int/],
    [new torch.nn.Linear(1, 1), 'TypeError', /but got Linear/],
    ['xy', 'TypeError', /but got str/],
    [[], 'ValueError', /empty parameter list/],
    [[x, 3], 'TypeError', /one of the params is int/],
    [[null], 'TypeError', /one of the params is NoneType/],
    [[x.mul(2)], 'ValueError', /can't optimize a non-leaf Tensor/],
    [[{ lr: 1 }], 'KeyError', /params/],
    [[{ params: [x] }, 3], 'TypeError', /param_group must be a dict, but got int/],
    [[{ params: [x] }, { params: x }], 'ValueError', /more than one parameter group/],
    [[['x', x], leaf(2)], 'ValueError', /Some param names are missing/],
  ];
  for (const [params, name, message] of cases)
    assert.throws(() => new optim.SGD(params, 0.1), { name, message });
});

test('groups have options of their own, and may be added, with names or without', () => {
  const [x, y, z] = [leaf(1), leaf(1), leaf(1)];
  const optimizer = new optim.SGD(
    [{ params: [['x', x]] }, { params: new Map([['y', y]]), lr: 0.5, note: 'kept' }],
    0.25,
  );
  assert.throws(() => optimizer.add_param_group({ params: z }), {
    name: 'ValueError',
    message: /cannot add param group without names/,
  });
  assert.throws(() => optimizer.add_param_group([z]), {
    name: 'TypeError',
    message: 'param_group must be a dict, but got list',
  });
  assert.throws(() => optimizer.add_param_group({ params: [['x', x]] }), {
    name: 'ValueError',
    message: /more than one parameter group/,
  });
  optimizer.add_param_group({ params: [['z', z]], lr: 1 });
  x.add(y).add(z).sum().backward();
  optimizer.step();
  assert.deepEqual(
    [x, y, z].map((p) => p.item()),
    [0.75, 0.5, 0],
  );
  assert.deepEqual(
    optimizer.param_groups.map(({ param_names, note }) => [param_names, note]),
    [
      [['x'], undefined],
      [['y'], 'kept'],
      [['z'], undefined],
    ],
  );
});

test('a parameter that is given twice is warned of', () => {
  const x = leaf(1);
  assert.match(warnings(() => new optim.SGD([x, x], 0.1))[0], /duplicate parameters/);
});

test('a closure computes the loss anew, with gradients, and step returns it', () => {
  const x = leaf(1);
  const optimizer = new optim.SGD([x], 0.5);
  const loss = torch.no_grad(() =>
    optimizer.step(() => {
      optimizer.zero_grad();
      const y = x.mul(2).sum();
      y.backward();
      return y.item();
    }),
  );
  assert.deepEqual([loss, x.tolist(), optimizer.step()], [2, [0], undefined]);
  assert.throws(() => optimizer.step(3), {
    name: 'TypeError',
    message: /must be a function, not int/,
  });
});

test('gradients are dropped, or filled with zeros if that is asked for', () => {
  const x = leaf(1);
  const optimizer = new optim.SGD([x], 0.5);
  for (const args of [[false], [{ set_to_none: false }]]) {
    x.mul(2).sum().backward();
    optimizer.zero_grad(...args);
    assert.deepEqual(x.grad.tolist(), [0]);
  }
  optimizer.zero_grad();
  assert.equal(x.grad, null);
  assert.throws(() => optimizer.zero_grad({ set_to_zero: true }), {
    name: 'TypeError',
    message: /unexpected keyword argument 'set_to_zero'/,
  });
});

test("an optimizer of one's own needs defaults and a step", () => {
  class Descent extends optim.Optimizer {
    step() {
      torch.no_grad(() => {
        for (const { params, lr } of this.param_groups)
          for (const p of params) p.sub_(p.grad, { alpha: lr });
      });
    }
  }
  const x = leaf(1);
  const optimizer = new Descent([x], { lr: 0.5 });
  x.sum().backward();
  optimizer.step();
  assert.deepEqual(x.tolist(), [0.5]);
  assert.throws(() => new Descent([x], 0.5), {
    name: 'TypeError',
    message: /'defaults' \(position 2\) must be dict, not float/,
  });
  assert.throws(() => new optim.Optimizer([x], {}).step(), { name: 'NotImplementedError' });
});

test('a state dict that is none is refused, and options of a state that is loaded come with it', () => {
  const x = leaf(1);
  const [a, b] = [new optim.AdamW([x], 0.1), new optim.AdamW([x], 0.2)];
  for (const odd of [undefined, null, 3, {}, { state: {} }])
    assert.throws(() => a.load_state_dict(odd), {
      name: 'TypeError',
      message: /state and param_groups/,
    });
  a.load_state_dict(b.state_dict());
  assert.deepEqual([a.param_groups[0].lr, a.param_groups[0].decoupled_weight_decay], [0.2, true]);
  a.param_groups[0].betas[0] = 0.5;
  assert.deepEqual(new optim.AdamW([x]).defaults.betas, [0.9, 0.999]);
  const old = new optim.Adam([x]).state_dict();
  b.load_state_dict(old);
  assert.equal(b.param_groups[0].decoupled_weight_decay, true);
});

// Tensors, the op table, errors, layers and optimizers of the JavaScript front: `node --test tests/web`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../web/index.js';
import { leaf, leavesNothing, torch } from './helpers.mjs';

test('values travel both ways', () => {
  assert.deepEqual(
    torch
      .tensor([
        [1, 2],
        [3, 4],
      ])
      .add(1)
      .tolist(),
    [
      [2, 3],
      [4, 5],
    ],
  );
  assert.deepEqual(torch.tensor([true, false]).tolist(), [true, false]);
  assert.equal(torch.tensor([1n, 2n]).dtype, torch.int64);
  assert.deepEqual(
    torch.tensor(new Float64Array([0.1, 0.2])).toTypedArray(),
    new Float64Array([0.1, 0.2]),
  );
  assert.equal(torch.tensor(3).item(), 3);
  const x = torch.tensor([1.5, 2]);
  const y = torch.tensor(x, { dtype: torch.int64, requires_grad: false });
  assert.deepEqual([y.dtype, y.tolist()], [torch.int64, [1, 2]]);
  const z = torch.tensor(x, { requires_grad: true });
  x.zero_();
  assert.deepEqual([z.requires_grad, z.is_leaf, z.tolist()], [true, true, [1.5, 2]]);
  assert.deepEqual(torch.zeros([0, 3]).tolist(), []);
  assert.deepEqual(torch.empty([2, 0]).shape, [2, 0]);
});

test('integers of every size travel whole', () => {
  const numbers = [0, -1, 2 ** 31, -(2 ** 31) - 1, 2 ** 40, -(2 ** 53) + 1];
  for (const n of numbers) assert.equal(torch.tensor(0n).add(n).item(), n);
  const least = -(2n ** 63n);
  assert.equal(torch.tensor(0n).add(least).item(), least);
  assert.deepEqual(torch.tensor(numbers, { dtype: torch.int64 }).tolist(), numbers);
});

test('lists may be long, in a scope and out of it', async () => {
  const torch = await load(); // which has made no room for any
  const many = 70000;
  const pieces = torch.scope((keep) =>
    keep(torch.zeros([many]).split({ split_size: new Array(many).fill(1), dim: 0 })),
  );
  assert.equal(pieces.length, many);
  assert.equal(torch.cat(pieces).add(1).sum().item(), many);
  assert.equal(torch.cat({ tensors: pieces, dim: 0 }).sum().item(), 0);
  assert.throws(() => torch.autograd.grad(pieces, pieces, { grad_outputs: pieces }), {
    name: 'RuntimeError',
    message: /does not require grad/,
  });
  for (const piece of pieces) piece.dispose();
  for (const call of [(size) => torch.zeros(size), (size) => torch.zeros({ size })])
    assert.throws(() => call(new Array(9000).fill(1)), { name: 'RuntimeError' });
});

test('texts may be long, names of options too', () => {
  const long = 'x'.repeat(200_000);
  assert.throws(() => torch.ones([2]).sum({ [long]: 1 }), {
    name: 'TypeError',
    message: /sum\(\).*xxx/,
  });
  assert.throws(() => torch.einsum(long, torch.ones([2])), {
    name: 'RuntimeError',
    message: /subscripts/,
  });
  assert.deepEqual(torch.ones([2]).add(1).tolist(), [2, 2]);
});

test('functions and methods are those of the op table', () => {
  assert.ok(Object.keys(torch).length > 300);
  assert.equal(typeof torch.Tensor.prototype.logsumexp, 'function');
  assert.equal(typeof torch.nn.functional.cross_entropy, 'function');
  assert.equal(typeof torch.linalg.solve, 'function');
  assert.deepEqual(torch.ones([2, 3]).sum(1, { keepdim: true }).shape, [2, 1]);
});

test('what describes a tensor is of the op table', () => {
  const x = torch.ones([2, 3]);
  assert.deepEqual(
    [x.dim(), x.numel(), torch.numel(x), x.size(), x.size(-1), x.stride(), x.stride(0)],
    [2, 6, 6, [2, 3], 3, [3, 1], 3],
  );
  assert.deepEqual(
    [x.type(), x.is_floating_point(), x.is_inference(), x._version, x.output_nr],
    ['torch.FloatTensor', true, false, 0, 0],
  );
  assert.deepEqual(
    [x.T, x.mT, x.H, x.data].map((t) => t.shape),
    [
      [3, 2],
      [3, 2],
      [3, 2],
      [2, 3],
    ],
  );
  assert.deepEqual([x.is_leaf, x.retains_grad, x._base, x.grad], [true, false, null, null]);
  assert.throws(() => {
    x.is_leaf = false;
  }, TypeError);
});

test('properties of a tensor can be set, and give the same objects back', () => {
  const x = torch.ones([2]);
  x.requires_grad = true;
  assert.equal(x.view([2, 1])._base, x);
  assert.equal(x.mul(2).grad_fn.next_functions[0][0].variable, x);
  const grad = torch.zeros([2]);
  x.grad = grad;
  assert.equal(x.grad, grad);
  torch.scope(() => x.sum().backward());
  assert.equal(x.grad, grad);
  assert.deepEqual(grad.tolist(), [1, 1]);
  x.grad = null;
  assert.equal(x.grad, null);
  x.data = torch.zeros([3]);
  assert.deepEqual(x.tolist(), [0, 0, 0]);
  assert.throws(
    () => {
      torch.tensor([1n]).requires_grad = true;
    },
    { name: 'RuntimeError', message: /floating point/ },
  );
});

test('named results have their names', () => {
  const { values, indices } = torch.max(
    torch.tensor([
      [1, 5],
      [3, 2],
    ]),
    1,
  );
  assert.deepEqual(
    [values.tolist(), indices.tolist()],
    [
      [5, 3],
      [1, 0],
    ],
  );
});

test('in-place and out= give the receiver back', () => {
  const x = torch.ones([2]);
  assert.equal(x.add_(1), x);
  const out = torch.empty([2]);
  assert.equal(torch.mul(x, 3, { out }), out);
  assert.deepEqual(out.tolist(), [6, 6]);
});

test('subscripts', () => {
  const x = torch.arange(6).reshape([2, 3]);
  assert.deepEqual(x.index(1).tolist(), [3, 4, 5]);
  assert.deepEqual(x.index(torch.ellipsis, torch.slice(0, 2)).tolist(), [
    [0, 1],
    [3, 4],
  ]);
  assert.deepEqual(x.index([1, 0], [0, 2]).tolist(), [3, 2]);
  assert.deepEqual(x.index_set([0, torch.slice()], 9).tolist(), [
    [9, 9, 9],
    [3, 4, 5],
  ]);
});

test('backward accumulates, twice through a freed graph raises', () => {
  const x = leaf(1, 2);
  const y = x.mul(x).sum();
  y.backward();
  assert.deepEqual(x.grad.tolist(), [2, 4]);
  assert.equal(x.grad, x.grad);
  assert.throws(() => y.backward(), {
    name: 'RuntimeError',
    message: /backward through the graph a second time/,
  });
});

test('a mutation of a saved tensor changes no gradient', () => {
  assert.equal(torch.autograd.graph.allow_mutation_on_saved_tensors(), true);
  const x = leaf(1, 2);
  const hidden = x.mul(1);
  const y = hidden.mul(hidden).sum();
  hidden.zero_();
  y.backward();
  assert.deepEqual(x.grad.tolist(), [2, 4]);
});

test('errors have the types and words of PyTorch', () => {
  const cases = [
    [
      () => torch.ones([2, 3]).matmul(torch.ones([2, 3])),
      'RuntimeError',
      /mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)/,
    ],
    [() => torch.ones([2]).index(5), 'IndexError', /out of bounds/],
    [() => torch.add(torch.ones([2]), 'a'), 'TypeError', /add\(\)/],
    [() => torch.ones([3]).sum(4), 'IndexError', /Dimension out of range/],
    [
      () => torch.ones([3]).size(1),
      'IndexError',
      /Dimension out of range \(expected to be in range of \[-1, 0\], but got 1\)/,
    ],
    [
      () => torch.ones([]).size(0),
      'IndexError',
      /Dimension specified as 0 but tensor has no dimensions/,
    ],
    [() => torch.empty([1e9, 1e9]), 'OutOfMemoryError', /can't allocate memory/],
    [
      () => torch.tensor([[1], [1, 2]]),
      'ValueError',
      /expected sequence of length 1 at dim 1 \(got 2\)/,
    ],
    [
      () =>
        torch.tensor([
          [
            [1, 2],
            [3, 4],
          ],
          [[1, 2], [3]],
        ]),
      'ValueError',
      /expected sequence of length 2 at dim 2 \(got 1\)/,
    ],
    [() => torch.tensor([[1], 2]), 'TypeError', /not a sequence/],
    [() => torch.tensor([1, [2]]), 'TypeError', /must be real number, not list/],
    [() => torch.ones([2]).reshape(Array(1)), 'TypeError', /reshape\(\)/],
    [() => torch.ones([2]).reshape([1, 'a']), 'TypeError', /reshape\(\)/],
    [() => torch.tensor([1]).backward(), 'RuntimeError', /does not require grad/],
  ];
  for (const [call, name, message] of cases) assert.throws(call, { name, message });
  assert.deepEqual(torch.ones([2]).tolist(), [1, 1]);
});

test('a call gives no BigInt: Firefox 153 may run such a call twice', () => {
  const engine = torch._engine;
  const { exports } = engine;
  const giving = new Set();
  engine.exports = Object.fromEntries(
    Object.entries(exports).map(([name, value]) => [
      name,
      typeof value !== 'function'
        ? value
        : (...args) => {
            const given = value(...args);
            if (typeof given === 'bigint') giving.add(name);
            return given;
          },
    ]),
  );
  try {
    leavesNothing(() => {
      const x = leaf(1, 2);
      x.mul(x).sum().backward();
      assert.throws(() => x.view(3), { name: 'RuntimeError' });
      x.reshape([2, 1], { unused: undefined }).max(0);
    });
  } finally {
    engine.exports = exports;
  }
  assert.deepEqual([...giving], ['pg_live_count']); // which changes nothing
});

test('a scope and dispose leave nothing behind', () => {
  const before = torch.live_count();
  const kept = torch.scope(() => {
    const x = leaf(1, 2, 3);
    x.mul(x).sum().backward();
    return x.exp().detach();
  });
  assert.equal(torch.live_count(), before + 1);
  kept.dispose();
  assert.equal(torch.live_count(), before);
  assert.throws(() => kept.add(1), { name: 'RuntimeError', message: /disposed/ });
});

test('what a scope keeps lives on, in the scope around it if there is one', () => {
  const before = torch.live_count();
  const [kept, lost] = torch.scope(() =>
    torch.scope(() => [torch.ones([2]), { a: torch.zeros([2]) }]),
  );
  assert.deepEqual(
    [kept.tolist(), lost.a.tolist()],
    [
      [1, 1],
      [0, 0],
    ],
  );
  torch.scope(() => assert.deepEqual(torch.scope(() => torch.ones([1])).tolist(), [1]));
  assert.equal(torch.live_count(), before + 2);
  kept.dispose();
  lost.a.dispose();
  assert.equal(torch.live_count(), before);
});

test('a training step leaves nothing behind', () => {
  const model = new torch.nn.Linear(3, 2);
  const optimizer = new torch.optim.Adam(model.parameters(), { lr: 0.1 });
  const x = torch.ones([4, 3]);
  const step = () =>
    torch.scope(() => {
      optimizer.zero_grad();
      model.call(x).square().mean().backward();
      optimizer.step();
    });
  step();
  const before = torch.live_count();
  for (let i = 0; i < 10; i++) step();
  assert.equal(torch.live_count(), before);
});

test('memory that runs out is an error like others', () => {
  const before = torch.live_count();
  assert.throws(() => torch.empty([2 ** 29, 2]), { name: 'OutOfMemoryError' });
  assert.equal(torch.live_count(), before);
});

test('a stream of random numbers starts again from its seed', () => {
  torch.manual_seed(7);
  const first = torch.randn([3]).tolist();
  torch.manual_seed(7);
  assert.deepEqual(torch.randn([3]).tolist(), first);
  const generator = new torch.Generator().manual_seed(7);
  assert.deepEqual(torch.randn([3], { generator }).tolist(), first);
});

test('modules name, save and restore their parameters', () => {
  const model = () =>
    new torch.nn.Sequential(
      new torch.nn.Linear(2, 3),
      new torch.nn.ReLU(),
      new torch.nn.Linear(3, 1),
    );
  const [a, b] = [model(), model()];
  assert.deepEqual(
    a.named_parameters().map(([name]) => name),
    ['0.weight', '0.bias', '2.weight', '2.bias'],
  );
  b.load_state_dict(a.state_dict());
  const x = torch.ones([4, 2]);
  assert.deepEqual(a.call(x).tolist(), b.call(x).tolist());
  assert.throws(() => b.load_state_dict({}), { name: 'RuntimeError', message: /Missing key\(s\)/ });
  assert.equal(
    String(a),
    'Sequential(\n' +
      '  (0): Linear(in_features=2, out_features=3, bias=True)\n' +
      '  (1): ReLU()\n' +
      '  (2): Linear(in_features=3, out_features=1, bias=True)\n' +
      ')',
  );
});

test('a tensor is iterated over its first dimension', () => {
  assert.deepEqual(
    [...torch.eye(2)].map((row) => row.tolist()),
    [
      [1, 0],
      [0, 1],
    ],
  );
  const [x, y] = leaf(3, 4);
  x.mul(y).backward();
  assert.throws(() => [...torch.tensor(1)], {
    name: 'TypeError',
    message: 'iteration over a 0-d tensor',
  });
});

test('each optimizer descends', () => {
  for (const [name, options] of [
    ['SGD', { lr: 0.1, momentum: 0.9 }],
    ['Adam', { lr: 0.1 }],
    ['AdamW', { lr: 0.1 }],
  ]) {
    const x = leaf(3, -2);
    const optimizer = new torch.optim[name]([x], options);
    const loss = () => x.square().sum();
    const before = loss().item();
    for (let i = 0; i < 20; i++)
      torch.scope(() => {
        optimizer.zero_grad();
        loss().backward();
        optimizer.step();
      });
    assert.ok(loss().item() < before / 2, name);
  }
});

test('libraries do not share memory', async () => {
  const other = await load();
  other.set_grad_enabled(false);
  assert.equal(torch.is_grad_enabled(), true);
});

test('what is no engine is refused', async () => {
  await assert.rejects(load(new Uint8Array([1, 2, 3])), {
    name: 'EngineError',
    message: /no engine/,
  });
  const other = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
  await assert.rejects(load(other), { name: 'EngineError', message: /imports/ });
});

test('results that end in a list have it as one of them', () => {
  const points = torch.tensor([
    [0, 1],
    [1, 0],
    [2, 2],
  ]);
  const found = torch.histogramdd(points, 2);
  assert.equal(found.length, 2);
  assert.equal(found[0], found.hist);
  assert.equal(found[1], found.bin_edges);
  assert.deepEqual(found.hist.tolist(), [
    [0, 1],
    [1, 1],
  ]);
  assert.deepEqual(
    found.bin_edges.map((each) => each.tolist()),
    [
      [0, 1, 2],
      [0, 1, 2],
    ],
  );
});

test('shapes broadcast', () => {
  assert.deepEqual(torch.broadcast_shapes([2, 1], [1, 3], 3), [2, 3]);
  assert.deepEqual(torch.broadcast_shapes(), []);
  assert.throws(() => torch.broadcast_shapes([2], [3]), {
    name: 'RuntimeError',
    message: /^Shape mismatch/,
  });
});

test('windows are where PyTorch has them', () => {
  assert.deepEqual(torch.signal.windows.bartlett(4, { sym: false }).tolist(), [0, 0.5, 1, 0.5]);
  assert.deepEqual(torch.signal.windows.general_cosine(3, { a: [0.5, 0.5] }).tolist(), [0, 1, 0]);
});

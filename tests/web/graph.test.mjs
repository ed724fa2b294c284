// The graph and its hooks: `node --test tests/web`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaf, leavesNothing, torch } from './helpers.mjs';

const { graph } = torch.autograd;

test('nodes have names, edges and an order', () => {
  const x = leaf(1, 2);
  const y = x.exp().mul(x).sum();
  assert.equal(x.grad_fn, null);
  assert.equal(y.grad_fn.name(), 'SumBackward0');
  assert.equal(y.grad_fn.constructor.name, 'SumBackward0');
  assert.ok(y.grad_fn instanceof graph.Node);
  const [[product]] = y.grad_fn.next_functions;
  const [[exp], [accumulate, output]] = product.next_functions;
  assert.deepEqual(
    [product.name(), exp.name(), accumulate.name(), output],
    ['MulBackward0', 'ExpBackward0', 'torch::autograd::AccumulateGrad', 0],
  );
  assert.equal(accumulate.variable, x);
  assert.equal(exp.next_functions[0][0], accumulate);
  assert.ok(product._sequence_nr() > exp._sequence_nr());
  assert.deepEqual(product._input_metadata, [{ dtype: torch.float64, shape: [2] }]);
  assert.throws(() => new graph.Node(), { name: 'TypeError' });
});

test('a node is the same object each time, and has metadata', () => {
  const y = leaf(1).mul(2);
  assert.equal(y.grad_fn, y.grad_fn);
  y.grad_fn.metadata.mine = 'note';
  assert.deepEqual(y.grad_fn.metadata, { mine: 'note' });
});

test('what nodes saved has the names of PyTorch', () => {
  const x = leaf(1, 2);
  assert.deepEqual(x.exp().grad_fn._saved_result.tolist(), x.exp().tolist());
  const sum = x.reshape([1, 2]).sum(1, { keepdim: true }).grad_fn;
  assert.deepEqual([sum._saved_dim, sum._saved_keepdim], [[1], true]);
  assert.equal(x.pow(3).grad_fn._saved_exponent, 3);
  const stacked = torch.cat([x, x]).grad_fn;
  assert.equal(stacked._saved_dim, 0);
  const y = x.mul(x);
  y.sum().backward();
  assert.throws(() => y.grad_fn._saved_self, {
    name: 'RuntimeError',
    message: /after they have already been freed/,
  });
});

test('saved tensors take hooks, one by one', () => {
  const x = leaf(1, 2);
  const y = x.mul(x);
  const raw = y.grad_fn._raw_saved_self;
  assert.equal(raw, y.grad_fn._raw_saved_self);
  raw.register_hooks(
    (t) => t.tolist(),
    (packed) => torch.tensor(packed, { dtype: torch.float64 }).mul(10),
  );
  assert.deepEqual([raw.data, typeof raw.unpack_hook], [[1, 2], 'function']);
  y.sum().backward();
  assert.deepEqual(x.grad.tolist(), [11, 22]);
  assert.throws(() => x.exp().grad_fn._raw_saved_result.register_hooks(1, 2), {
    name: 'TypeError',
  });
});

test('saved_tensors_hooks pack and unpack, the innermost pair alone', () => {
  const x = leaf(1, 2);
  const seen = [];
  const pack = (name) => (t) => {
    seen.push(name);
    return t.toTypedArray();
  };
  const unpack = (array) => torch.tensor(array);
  const y = graph.saved_tensors_hooks(pack('outer'), unpack, () =>
    graph.saved_tensors_hooks(pack('inner'), unpack, () => x.exp()).mul(x),
  );
  assert.deepEqual(seen, ['inner', 'outer', 'outer']);
  y.sum().backward();
  const [expected] = torch.autograd.grad(x.exp().mul(x).sum(), x);
  assert.deepEqual(x.grad.tolist(), expected.tolist());
});

test('hooks that go wrong say so', () => {
  const { saved_tensors_hooks, disable_saved_tensors_hooks } = graph;
  const x = leaf(1, 2);
  const cases = [
    [
      () =>
        saved_tensors_hooks(
          () => {
            throw new RangeError('of pack');
          },
          (p) => p,
          () => x.exp(),
        ),
      'RangeError',
      /of pack/,
    ],
    [
      () =>
        saved_tensors_hooks(
          (t) => t.mul_(2),
          (p) => p,
          () => x.exp(),
        ),
      'RuntimeError',
      /pack hook is modifying its input in place/,
    ],
    [
      () =>
        saved_tensors_hooks(
          (t) => t,
          () => 1,
          () => x.exp(),
        )
          .sum()
          .backward(),
      'TypeError',
      /unpack_hook expected to be a Tensor but got result of type int/,
    ],
    [() => saved_tensors_hooks(1, 2, () => x), 'TypeError', /two functions/],
    [
      () =>
        saved_tensors_hooks(
          (t) => t,
          (t) => t,
          async () => x,
        ),
      'TypeError',
      /async/,
    ],
    [
      () =>
        disable_saved_tensors_hooks('none here', () =>
          saved_tensors_hooks(
            (t) => t,
            (t) => t,
            () => x,
          ),
        ),
      'RuntimeError',
      /none here/,
    ],
    [
      () =>
        saved_tensors_hooks(
          (t) => t,
          (t) => t,
          () => disable_saved_tensors_hooks('none here', () => x),
        ),
      'RuntimeError',
      /none here/,
    ],
  ];
  for (const [call, name, message] of cases) assert.throws(call, { name, message });
  assert.deepEqual(
    saved_tensors_hooks(
      (t) => t,
      (t) => t,
      () => x.exp(),
    ).shape,
    [2],
  );
});

test('without a message disable_saved_tensors_hooks bypasses them', () => {
  let packed = 0;
  graph.saved_tensors_hooks(
    (t) => {
      packed++;
      return t;
    },
    (t) => t,
    () => graph.disable_saved_tensors_hooks(() => leaf(1).exp()),
  );
  assert.equal(packed, 0);
});

test('save_on_cpu keeps saved tensors in arrays of the host', () => {
  const x = leaf(1, 2);
  const y = graph.save_on_cpu(() => x.exp(), { pin_memory: true });
  assert.ok(y.grad_fn._raw_saved_result.data.array instanceof Float64Array);
  y.sum().backward();
  assert.deepEqual(x.grad.tolist(), x.exp().tolist());
});

test('check mode raises for a saved tensor that was mutated', () => {
  const y = graph.set_saved_tensor_mode('check', () => {
    const a = leaf(1).mul(1);
    const made = a.mul(a);
    a.add_(1);
    return made;
  });
  assert.throws(() => y.backward(), {
    name: 'RuntimeError',
    message: /modified by an inplace operation/,
  });
  assert.throws(() => graph.set_saved_tensor_mode('odd'), { name: 'ValueError' });
});

test('versions count writes, and can be incremented', () => {
  const [x, y] = [torch.ones([2]), torch.ones([2])];
  graph.increment_version([x, x, y]);
  assert.deepEqual([x._version, y._version], [2, 1]);
  assert.throws(() => graph.increment_version(3), {
    name: 'RuntimeError',
    message: /expect a Iterable/,
  });
});

test('node hooks see and replace gradients, before and after', () => {
  const x = leaf(1, 2);
  const y = x.mul(2);
  const seen = [];
  const after = y.grad_fn.register_hook((inputs, outputs) => {
    seen.push(['after', inputs[0].tolist(), outputs[0].tolist()]);
    return [inputs[0].mul(3), ...inputs.slice(1)];
  });
  const before = y.grad_fn.register_prehook(([g]) => {
    seen.push(['before', g.tolist()]);
    return [g.mul(5)];
  });
  y.sum().backward({ retain_graph: true });
  assert.deepEqual(seen, [
    ['before', [1, 1]],
    ['after', [10, 10], [5, 5]],
  ]);
  assert.deepEqual(x.grad.tolist(), [30, 30]);
  after.remove();
  before.remove();
  before.remove();
  x.grad = null;
  y.sum().backward();
  assert.deepEqual(x.grad.tolist(), [2, 2]);
});

test('what a hook returns must fit', () => {
  const cases = [
    [(y) => y.register_hook(() => 1), 'TypeError', /expected Variable, but hook returned 'int'/],
    [
      (y) => y.register_hook((g) => g.float()),
      'RuntimeError',
      /has changed the type of value \(was torch.DoubleTensor got torch.FloatTensor\)/,
    ],
    [
      (y) =>
        y.register_hook(function total(g) {
          return g.sum();
        }),
      'RuntimeError',
      /hook 'total' has changed the size of value/,
    ],
    [
      (y) => y.grad_fn.register_hook(() => [1, 2, 3]),
      'RuntimeError',
      /returned an incorrect number of values \(got 3, but expected/,
    ],
    [
      (y) => y.grad_fn.register_prehook((grads) => grads[0]),
      'TypeError',
      /expected tuple, but hook returned 'Tensor'/,
    ],
  ];
  for (const [add, name, message] of cases) {
    const y = leaf(1, 2).mul(2);
    add(y);
    assert.throws(() => y.sum().backward(), { name, message }, String(message));
  }
  assert.throws(() => torch.ones([1]).register_hook(() => null), {
    name: 'RuntimeError',
    message: /doesn't require gradient/,
  });
});

test('a hook after accumulation gets the leaf itself', () => {
  const x = leaf(1, 2);
  const seen = [];
  x.register_post_accumulate_grad_hook((p) => {
    seen.push(p === x, p.grad.tolist());
    p.grad = null;
  });
  x.sum().backward();
  assert.deepEqual([seen, x.grad], [[true, [1, 1]], null]);
});

test('inner tensors keep their gradient when asked', () => {
  const x = leaf(1, 2);
  const y = x.mul(2);
  y.retain_grad();
  y.sum().backward();
  assert.deepEqual([y.retains_grad, y.grad.tolist()], [true, [1, 1]]);
});

test('edges stand for tensors', () => {
  const x = leaf(1, 2);
  const y = x.mul(3);
  const edge = graph.get_gradient_edge(y);
  assert.ok(edge instanceof graph.GradientEdge);
  assert.equal(edge.node, y.grad_fn);
  assert.deepEqual(torch.autograd.grad(y.square().sum(), edge)[0].tolist(), [6, 12]);
  torch.autograd.backward(edge, torch.ones([2], { dtype: torch.float64 }));
  assert.deepEqual(x.grad.tolist(), [3, 3]);
  assert.throws(() => graph.get_gradient_edge(torch.ones([1])), {
    name: 'RuntimeError',
    message: /does not require gradients/,
  });
});

test('one hook on several tensors', () => {
  const [a, b] = [leaf(1, 2), leaf(3, 4)];
  const [c, d] = [a.mul(b), a.mul(b)];
  const seen = [];
  const handle = graph.register_multi_grad_hook([a, b, c, d], (grads) => {
    seen.push(grads.map((g) => g !== null));
  });
  c.sum().backward({ retain_graph: true });
  c.sum().backward({ inputs: [a], retain_graph: true });
  assert.deepEqual(seen, [
    [true, true, true, false],
    [true, false, true, false],
  ]);
  handle.remove();
  const any = [];
  graph.register_multi_grad_hook(
    [a, b],
    (g) => {
      any.push(g.tolist());
    },
    { mode: 'any' },
  );
  c.sum().backward({ retain_graph: true });
  c.sum().backward();
  assert.equal(seen.length, 2);
  assert.equal(any.length, 2);
  assert.throws(() => graph.register_multi_grad_hook([a], () => 1, { mode: 'odd' }), {
    name: 'ValueError',
    message: /Expects mode/,
  });
});

test('hooks run within hooks, to a limit', () => {
  const deep = (n) => {
    const x = leaf(1);
    x.register_hook(() => {
      if (n)
        torch.enable_grad(() => {
          deep(n - 1);
        });
    });
    x.mul(2).backward();
  };
  deep(80);
  assert.throws(() => deep(150), {
    name: 'RecursionError',
    message: /callbacks within each other/,
  });
  deep(80);
});

test('nodes and hooks leave nothing behind', () => {
  leavesNothing(() => {
    const x = leaf(1, 2);
    const y = graph.saved_tensors_hooks(
      (t) => t,
      (t) => t,
      () => x.exp().mul(x),
    );
    y.grad_fn.next_functions[0][0].register_hook(() => null);
    y.grad_fn.metadata.own = y;
    x.register_hook((g) => g.mul(2));
    graph.get_gradient_edge(x);
    y.sum().backward();
    x.grad = null;
  });
  const node = leaf(1).mul(2).grad_fn;
  node.dispose();
  assert.throws(() => node.name(), { name: 'RuntimeError', message: /disposed/ });
});

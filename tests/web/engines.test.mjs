// Two engines share nothing: what belongs to one is refused by the other, wherever it stands.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../web/index.js';
import { leaf, leavesNothing, torch } from './helpers.mjs';

const other = await load();
const { autograd, nn, optim } = torch;
const { graph } = autograd;
const FOREIGN = { name: 'RuntimeError', message: /is of another engine/ };
const refuses = (call) => assert.throws(call, FOREIGN, String(call));

/** A tensor of the other engine, whose handle is also that of a live tensor here. */
function twin() {
  const [mine, theirs] = [new Map(), new Map()];
  for (let i = 0; i < 10_000; i++) {
    const [a, b] = [torch.tensor([1, 2]), other.tensor([10, 20])];
    mine.set(a.handle, a);
    theirs.set(b.handle, b);
    for (const [handle, b] of theirs) if (mine.has(handle)) return [mine.get(handle), b];
  }
  throw new Error('no two handles coincide');
}

const [ours, theirs] = twin();
const their_leaf = other.tensor([1, 2], { requires_grad: true });

test('handles of two engines coincide, so they cannot tell what belongs to which', () =>
  assert.equal(ours.handle, theirs.handle));

test('an argument, in order, by name, as the receiver or in a list, is refused', () => {
  const x = torch.ones([2]);
  const calls = [
    () => x.add(theirs),
    () => torch.add(x, theirs),
    () => torch.add(theirs, x),
    () => torch.add({ input: x, other: theirs }),
    () => torch.cat([x, theirs]),
    () => torch.cat({ tensors: [theirs] }),
    () => x.sum(theirs),
    () => torch.Tensor.prototype.add.call(theirs, 1),
    () => nn.functional.linear(x, theirs),
    () => torch.linalg.norm(theirs),
    () => torch.special.expit(theirs),
    () => torch.einsum('i,i', x, theirs),
    () => torch.clamp(x, { min: theirs }),
    () => x.to(theirs),
    () => torch.equal(x, theirs),
  ];
  calls.forEach(refuses);
  assert.deepEqual(x.tolist(), [1, 1]);
});

test('out= and subscripts are refused, and nothing is written', () => {
  const x = torch.ones([2]);
  const at = other.tensor([0n]);
  refuses(() => torch.mul(x, 3, { out: theirs }));
  refuses(() => torch.sort(x, { out: [theirs, at] }));
  refuses(() => x.index(at));
  refuses(() => x.index([at]));
  refuses(() => x.index_set(0, other.tensor(5)));
  refuses(() => x.index_set([at], 5));
  refuses(() => x.copy_(theirs));
  assert.deepEqual(
    [x.tolist(), theirs.tolist()],
    [
      [1, 1],
      [10, 20],
    ],
  );
});

test('a property takes none of them, and the library finds its own objects as before', () => {
  const x = leaf(1, 2);
  refuses(() => {
    x.grad = theirs;
  });
  refuses(() => {
    x.data = theirs;
  });
  assert.equal(x.grad, null);
  ours.requires_grad_();
  assert.equal(ours.mul(2).grad_fn.next_functions[0][0].variable, ours);
});

test('data and copies are made of none of them', () => {
  refuses(() => torch.tensor(theirs));
  refuses(() => torch.tensor([theirs]));
  refuses(() => torch.tensor([1, other.tensor(1)]));
  refuses(() => torch.save(theirs));
  refuses(() => torch.save({ a: [theirs] }));
});

test('roots, inputs and gradients of a backward are refused, and edges and nodes', () => {
  const x = leaf(1, 2);
  const edge = new graph.GradientEdge(their_leaf.exp().grad_fn, 0);
  const calls = [
    () => autograd.backward(their_leaf),
    () => autograd.grad(theirs, x),
    () => autograd.grad(x.sum(), theirs),
    () => autograd.grad(x.sum(), { x: theirs }),
    () => x.mul(2).backward(theirs),
    () => x.sum().backward({ inputs: theirs }),
    () => autograd.grad(x.mul(2), x, { grad_outputs: [theirs] }),
    () => autograd.grad(edge, x),
    () => autograd.grad(x.sum(), edge),
    () => x.exp().grad_fn.call(theirs),
    () => graph.get_gradient_edge(their_leaf),
    () => graph.increment_version(theirs),
    () => graph.increment_version([theirs]),
    () => graph.register_multi_grad_hook([their_leaf], () => {}),
  ];
  for (const call of calls) leavesNothing(() => refuses(call));
  assert.equal(x.grad, null);
});

test('what a hook returns is refused, wherever it hangs', () => {
  const walks = [
    () => {
      const x = leaf(1, 2);
      x.register_hook(() => theirs);
      return x.sum();
    },
    () => {
      const y = leaf(1, 2).exp();
      y.register_hook(() => theirs);
      return y.sum();
    },
    () => {
      const y = leaf(1, 2).exp();
      y.grad_fn.register_hook(() => [theirs]);
      return y.sum();
    },
    () => {
      const y = leaf(1, 2).exp();
      y.grad_fn.register_prehook(() => [theirs]);
      return y.sum();
    },
    () =>
      graph.saved_tensors_hooks(
        (t) => t,
        () => theirs,
        () => leaf(1, 2).exp().sum(),
      ),
    () => {
      const y = leaf(1, 2).exp();
      y.grad_fn._raw_saved_result.register_hooks(
        (t) => t,
        () => theirs,
      );
      return y.sum();
    },
  ];
  for (const walk of walks) leavesNothing(() => refuses(() => walk().backward()));
});

test('a Function refuses them: arguments, results, gradients, and what it saves or marks', () => {
  const made = (forward, backward = (ctx, g) => g) =>
    class Made extends autograd.Function {
      static forward(ctx, ...args) {
        return forward(ctx, ...args);
      }
      static backward(ctx, ...grads) {
        return backward(ctx, ...grads);
      }
    };
  const twice = (ctx, x) => x.mul(2);
  const calls = [
    () => made(twice).apply(theirs),
    () => made(() => theirs).apply(leaf(1, 2)),
    () => made((ctx, x) => [x.mul(2), theirs]).apply(leaf(1, 2)),
    () =>
      made(twice, () => theirs)
        .apply(leaf(1, 2))
        .sum()
        .backward(),
    () =>
      made((ctx, x) => {
        ctx.save_for_backward(theirs);
        return x.mul(2);
      }).apply(leaf(1, 2)),
    () =>
      made((ctx, x) => {
        ctx.save_for_forward(theirs);
        return x.mul(2);
      }).apply(leaf(1, 2)),
    () =>
      made((ctx, x) => {
        ctx.mark_dirty(theirs);
        return x.mul(2);
      }).apply(leaf(1, 2)),
    () =>
      made((ctx, x) => {
        ctx.mark_non_differentiable(theirs);
        return x.mul(2);
      }).apply(leaf(1, 2)),
    () =>
      made(
        twice,
        autograd.once_differentiable(() => theirs),
      )
        .apply(leaf(1, 2))
        .sum()
        .backward(),
  ];
  for (const call of calls) leavesNothing(() => refuses(call));
});

test('functional, forward_ad and gradcheck refuse them', () => {
  const { functional, forward_ad, gradcheck } = autograd;
  const x = leaf(1, 2);
  const calls = [
    () => functional.jacobian((v) => v.exp(), theirs),
    () => functional.jacobian(() => theirs, x),
    () => functional.vjp((v) => v.exp(), x, theirs),
    () => functional.hvp((v) => v.sum(), x, { v: theirs }),
    () => gradcheck((v) => v.exp(), theirs),
    () => gradcheck(() => theirs, x),
    () => autograd.gradgradcheck((v) => v.exp(), x, { grad_outputs: theirs }),
    () => forward_ad.dual_level(() => forward_ad.make_dual(x, theirs)),
    () => forward_ad.dual_level(() => forward_ad.unpack_dual(theirs)),
  ];
  for (const call of calls) leavesNothing(() => refuses(call));
});

test('generators are refused, the default one too', () => {
  const mine = new torch.Generator().manual_seed(1);
  const state = mine.get_state().tolist();
  for (const generator of [new other.Generator(), other.default_generator])
    refuses(() => torch.randn([2], { generator }));
  refuses(() => mine.set_state(new other.Generator().get_state()));
  assert.deepEqual(mine.get_state().tolist(), state);
});

test('modules, parameters and state dicts are refused', () => {
  const layer = new nn.Linear(2, 1);
  const before = layer.weight.tolist();
  const calls = [
    () => new nn.Parameter(theirs),
    () => {
      layer.weight = new other.nn.Parameter(theirs);
    },
    () => {
      layer.extra = new other.nn.Parameter(theirs);
    },
    () => {
      layer.extra = theirs;
    },
    () => {
      layer.inner = new other.nn.ReLU();
    },
    () => layer.register_buffer('extra', theirs),
    () => layer.register_parameter('extra', new other.nn.Parameter(theirs)),
    () => layer.add_module('inner', new other.nn.ReLU()),
    () => new nn.Sequential(new nn.ReLU(), new other.nn.ReLU()),
    () => layer.load_state_dict(new other.nn.Linear(2, 1).state_dict()),
    () => layer.call(theirs),
    () => new nn.CrossEntropyLoss(theirs),
    () => nn.Embedding.from_pretrained(theirs),
  ];
  calls.forEach(refuses);
  assert.deepEqual(
    [layer.weight.tolist(), Object.keys(layer.state_dict())],
    [before, ['weight', 'bias']],
  );
});

test('optimizers are refused them: as parameters, in groups, as rates, in a state', () => {
  const x = leaf(1, 2);
  const mine = new optim.Adam([x]);
  const their_optimizer = new other.optim.Adam([their_leaf]);
  their_leaf.sum().backward();
  their_optimizer.step();
  refuses(() => new optim.SGD([x, their_leaf], 0.1));
  refuses(() => new optim.SGD(their_leaf, 0.1));
  refuses(() => new optim.SGD([{ params: [their_leaf] }], 0.1));
  refuses(() => new optim.SGD([['x', their_leaf]], 0.1));
  refuses(() => new optim.SGD([x], other.tensor(0.1)));
  refuses(() => mine.add_param_group({ params: [their_leaf] }));
  refuses(() => mine.load_state_dict(their_optimizer.state_dict()));
  mine.param_groups[0].params.push(their_leaf);
  refuses(() => mine.step());
  assert.equal(mine.state.size, 0);
});

test('who takes a handle for a tensor makes none: objects are made by the library alone', () => {
  const y = leaf(1).exp();
  const constructors = [
    () => new torch.Tensor(ours.handle),
    () => new torch.Tensor([1, 2]),
    () => new y.grad_fn.constructor(y.grad_fn.address),
    () => new graph.SavedTensor(y.grad_fn, 0),
    () => new autograd.function.FunctionCtx(y.grad_fn.address, 1, null),
  ];
  for (const make of constructors)
    assert.throws(make, { name: 'TypeError', message: /has no public constructor/ });
  assert.throws(() => torch.add(torch.ones([2]), { handle: ours.handle }), { name: 'TypeError' });
  assert.throws(() => torch.cat([{ handle: ours.handle }]), { name: 'TypeError' });
});

test('what was disposed of or freed is refused, also when its number is given to something else', () => {
  const x = torch.ones([2]);
  const y = x.clone();
  y.dispose();
  torch.live_count();
  const reuses = [torch.zeros([2]), torch.zeros([2])];
  for (const call of [
    () => x.add(y),
    () => torch.cat([x, y]),
    () => x.index(y),
    () => new nn.Parameter(y),
    () => new optim.SGD([y], 0.1),
  ])
    assert.throws(call, { name: 'RuntimeError', message: /disposed/ });
  const generator = new torch.Generator();
  generator.free();
  const next = new torch.Generator();
  assert.throws(() => torch.randn([2], { generator }), {
    name: 'RuntimeError',
    message: /no generator/,
  });
  assert.throws(() => generator.manual_seed(1), { name: 'RuntimeError', message: /no generator/ });
  assert.deepEqual([reuses.length, typeof next.initial_seed()], [2, 'number']);
});

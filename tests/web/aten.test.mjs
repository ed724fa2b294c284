// Ops that only PyTorch's dispatcher has: torch.ops.aten. A gradient op gives the bits of a backward.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaf, leavesNothing, torch } from './helpers.mjs';

const { aten } = torch.ops;
const F = torch.nn.functional;

/** The gradient of fn(x) for the gradient g of its result. */
const gradient = (fn, x, g) => torch.autograd.grad(fn(x), [x], g)[0];

const CASES = {
  'gelu_backward': [(x) => F.gelu(x), (x, g) => aten.gelu_backward(g, x)],
  'gelu_backward with tanh': [
    (x) => F.gelu(x, { approximate: 'tanh' }),
    (x, g) => aten.gelu_backward(g, x, { approximate: 'tanh' }),
  ],
  'elu_backward': [(x) => F.elu(x, 0.5), (x, g) => aten.elu_backward(g, 0.5, 1, 1, false, x)],
  'tanh_backward': [(x) => torch.tanh(x), (x, g) => aten.tanh_backward(g, torch.tanh(x))],
  '_softmax_backward_data': [
    (x) => torch.softmax(x, 0),
    (x, g) => aten._softmax_backward_data(g, torch.softmax(x, 0), 0, torch.float64),
  ],
};

for (const [name, [fn, op]] of Object.entries(CASES))
  test(`${name} is the gradient`, () =>
    leavesNothing(() => {
      const x = leaf(-1.5, -0.25, 0.5, 2);
      const g = torch.tensor([1, -2, 0.5, 3], { dtype: torch.float64 });
      const expected = gradient(fn, x, g);
      const found = torch.no_grad(() => op(x.detach(), g));
      assert.deepEqual(found.tolist(), expected.tolist());
    }));

test('native_layer_norm_backward gives the wanted gradients', () =>
  leavesNothing(() => {
    const x = leaf(-1.5, -0.25, 0.5, 2).reshape([2, 2]);
    const w = leaf(0.5, 2);
    const g = torch.tensor([1, -2, 0.5, 3], { dtype: torch.float64 }).reshape([2, 2]);
    const [y, mean, rstd] = torch.native_layer_norm(x, [2], w, null, 1e-5);
    const expected = torch.autograd.grad(y, [x, w], g);
    const [gx, gw, gb] = torch.no_grad(() =>
      aten.native_layer_norm_backward(g, x, [2], mean, rstd, w, null, [true, true, false]),
    );
    assert.deepEqual(gx.tolist(), expected[0].tolist());
    assert.deepEqual(gw.tolist(), expected[1].tolist());
    assert.equal(gb, null);
  }));

test('a gradient op has a gradient', () =>
  leavesNothing(() => {
    const x = leaf(-1.5, 0.5);
    const g = leaf(1, 2);
    aten.gelu_backward(g, x).sum().backward();
    assert.ok(x.grad.tolist().every((each) => each !== 0));
    assert.ok(g.grad.tolist().every((each) => each !== 0));
  }));

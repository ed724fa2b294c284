// Custom functions: `node --test tests/web`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaf, leavesNothing, torch, warnings } from './helpers.mjs';

const { Function, grad, once_differentiable } = torch.autograd;

class Square extends Function {
  static forward(ctx, x) {
    ctx.save_for_backward(x);
    return x.mul(x);
  }

  static backward(ctx, g) {
    const [x] = ctx.saved_tensors;
    return x.mul(2).mul(g);
  }
}

class Product extends Function {
  static forward(x, y) {
    return [x.mul(y), x.add(y)];
  }

  static setup_context(ctx, [x, y], _output) {
    ctx.save_for_backward(x, y);
  }

  static backward(ctx, g, h) {
    const [x, y] = ctx.saved_tensors;
    return [
      ctx.needs_input_grad[0] ? g.mul(y).add(h) : null,
      ctx.needs_input_grad[1] ? g.mul(x).add(h) : null,
    ];
  }
}

test('a function has the gradient that it says, to any order', () => {
  const x = leaf(3);
  const y = Square.apply(x);
  const [first] = grad(y, x, { create_graph: true });
  assert.deepEqual([y.item(), first.item(), grad(first, x)[0].item()], [9, 6, 2]);
  assert.equal(torch.autograd.gradcheck?.(Square.apply, leaf(1, 2)) ?? true, true);
});

test('apply is bound to its class', () => {
  const square = Square.apply;
  assert.equal(square(leaf(2)).item(), 4);
});

test('both styles, several inputs and outputs', () => {
  const [x, y] = [leaf(2), leaf(5)];
  const [product, sum] = Product.apply(x, y);
  product.add(sum).backward();
  assert.deepEqual([x.grad.item(), y.grad.item()], [6, 3]);
  const [again] = Product.apply(x.detach(), y);
  assert.deepEqual(again.grad_fn.needs_input_grad, [false, true]);
});

test('the node of a call is its ctx, with a name and free attributes', () => {
  class Keeps extends Function {
    static forward(ctx, x) {
      ctx.factor = 3;
      return x.mul(3);
    }

    static backward(ctx, g) {
      return g.mul(ctx.factor);
    }
  }
  const x = leaf(1);
  const y = Keeps.apply(x);
  assert.equal(y.grad_fn.name(), 'KeepsBackward');
  assert.equal(y.grad_fn.constructor.name, 'KeepsBackward');
  assert.equal(y.grad_fn.factor, 3);
  assert.equal(y.grad_fn, y.grad_fn);
  y.grad_fn.factor = 7;
  y.backward();
  assert.equal(x.grad.item(), 7);
});

test('what is saved is a snapshot', () => {
  const x = leaf(3);
  const hidden = x.mul(1);
  const y = Square.apply(hidden);
  hidden.zero_();
  assert.deepEqual(y.grad_fn.saved_tensors[0].tolist(), [3]);
  y.backward();
  assert.equal(x.grad.item(), 6);
  assert.throws(() => y.grad_fn.saved_tensors, {
    name: 'RuntimeError',
    message: /after they have already been freed/,
  });
});

test('inputs can be written to, outputs marked, gradients left out', () => {
  class Double extends Function {
    static forward(ctx, x) {
      ctx.mark_dirty(x);
      return x.mul_(2);
    }

    static backward(_ctx, g) {
      return g.mul(2);
    }
  }
  const x = leaf(3);
  const copy = x.clone();
  assert.equal(Double.apply(copy), copy);
  copy.sum().backward();
  assert.deepEqual([copy.item(), x.grad.item()], [6, 2]);

  const seen = [];
  class Two extends Function {
    static forward(ctx, input) {
      ctx.set_materialize_grads(false);
      const order = input.gt(0);
      ctx.mark_non_differentiable(order);
      return [input.mul(1), input.mul(2), order];
    }

    static backward(_ctx, ...grads) {
      seen.push(grads.map((g) => g === null));
      return grads[0];
    }
  }
  const [first, , order] = Two.apply(x);
  assert.equal(order.requires_grad, false);
  first.backward();
  assert.deepEqual(seen, [[false, true, true]]);
});

test('errors have the words of PyTorch, and leave the engine whole', () => {
  const make = (forward, backward = (_ctx, g) => g) =>
    class Odd extends Function {
      static forward = forward;

      static backward = backward;
    };
  const twice = (_ctx, x) => x.mul(2);
  const cases = [
    [
      make(twice, (_ctx, g) => [g, g]),
      'RuntimeError',
      /OddBackward returned an incorrect number of gradients \(expected 1, got 2\)/,
    ],
    [make(twice, () => 1), 'RuntimeError', /expected Variable or None \(got int\)/],
    [
      make(twice, () => torch.ones([7])),
      'RuntimeError',
      /returned an invalid gradient at index 0 - got \[7\] but expected shape compatible with \[2\]/,
    ],
    [
      make((ctx, x) => {
        ctx.save_for_backward(1);
        return x.mul(2);
      }),
      'TypeError',
      /save_for_backward can only save variables, but argument 0 is of type int/,
    ],
    [
      make((ctx, x) => {
        ctx.mark_dirty(x);
        return x.mul(2);
      }),
      'RuntimeError',
      /marked as dirty during the forward method were not returned/,
    ],
    [
      make(() => {
        throw new RangeError('of forward');
      }),
      'RangeError',
      /of forward/,
    ],
    [
      make(twice, () => {
        throw new RangeError('of backward');
      }),
      'RangeError',
      /of backward/,
    ],
    [Function, 'NotImplementedError', /You must implement the forward function/],
    [
      class extends Function {
        static forward = twice;
      },
      'NotImplementedError',
      /either the backward or vjp method/,
    ],
  ];
  for (const [kind, name, message] of cases)
    leavesNothing(() =>
      assert.throws(
        () => kind.apply(leaf(1, 2)).sum().backward(),
        { name, message },
        String(message),
      ),
    );
  assert.equal(torch.is_grad_enabled(), true);
});

test('once_differentiable raises the second time, as wrapper and as decorator', () => {
  const backward = (_ctx, g) => g.mul(2);
  const descriptor = once_differentiable(class {}, 'backward', { value: backward, writable: true });
  for (const wrapped of [once_differentiable(backward), descriptor.value]) {
    class Double extends Function {
      static forward = (_ctx, x) => x.mul(2);

      static backward = wrapped;
    }
    const x = leaf(1);
    assert.equal(grad(Double.apply(x), x)[0].item(), 2);
    const [first] = grad(Double.apply(x).square(), x, { create_graph: true });
    assert.throws(() => first.backward(), {
      name: 'RuntimeError',
      message: /marked with @once_differentiable/,
    });
  }
});

test('backwards run within backwards, hundreds deep', () => {
  class Deep extends Function {
    static forward(ctx, x, depth) {
      ctx.save_for_backward(x);
      ctx.depth = depth;
      return x.mul(1);
    }

    static backward(ctx, g) {
      if (ctx.depth === 0) return [g, null];
      const x = ctx.saved_tensors[0].detach().requires_grad_();
      torch.enable_grad(() => Deep.apply(x, ctx.depth - 1)).backward();
      return [x.grad.mul(g), null];
    }
  }
  const x = leaf(2);
  Deep.apply(x, 300).backward();
  assert.equal(x.grad.item(), 1);
  assert.throws(() => Deep.apply(x, 2000).backward(), {
    name: 'RecursionError',
    message: /backwards within each other/,
  });
  Deep.apply(x, 300).backward();
  assert.equal(x.grad.item(), 2);
});

test('a function in the history of a view runs from within', () => {
  const x = leaf(1, 2, 3);
  const base = x.clone();
  class Scale extends Function {
    static forward(ctx, view) {
      ctx.mark_dirty(view);
      return view.mul_(10);
    }

    static backward(_ctx, g) {
      return g.mul(10);
    }
  }
  Scale.apply(base.index(torch.slice(1)));
  base.sum().backward();
  assert.deepEqual(x.grad.tolist(), [1, 10, 10]);
});

test('tangents pass through jvp', () => {
  class Cube extends Function {
    static forward(ctx, x) {
      ctx.save_for_forward(x);
      return x.pow(3);
    }

    static jvp(ctx, t) {
      return ctx.saved_tensors[0].pow(2).mul(3).mul(t);
    }
  }
  const { dual_level, make_dual, unpack_dual } = torch.autograd.forward_ad;
  const tangent = dual_level(() =>
    unpack_dual(
      Cube.apply(make_dual(leaf(2).detach(), torch.tensor([1], { dtype: torch.float64 }))),
    ).tangent.item(),
  );
  assert.equal(tangent, 12);
});

test('a ctx lives as long as the engine needs it, also beyond its scope', () => {
  const x = leaf(3);
  const before = torch.live_count();
  const y = torch.scope(() => Square.apply(x));
  torch.scope(() => {
    y.backward();
    assert.equal(x.grad.item(), 6);
  });
  y.dispose();
  x.grad = null;
  assert.equal(torch.live_count(), before);
});

test('functions leave nothing behind', () => {
  leavesNothing(() => {
    const x = leaf(1, 2);
    const [a, b] = Product.apply(Square.apply(x), x);
    a.add(b).sum().backward({ create_graph: true });
    x.grad.sum().backward();
    x.grad = null;
  });
  assert.equal(warnings(() => leaf(1).mul(2).backward({ create_graph: true })).length, 0);
});

// Functions of functions, gradcheck, and the arguments of grad: `node --test tests/web`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaf, leavesNothing, torch } from './helpers.mjs';

const { backward, grad, gradcheck, gradgradcheck, functional, Function } = torch.autograd;
const { jacobian, hessian, jvp, vjp, hvp, vhp } = functional;
const x = torch.tensor([1, 2]);
const ones = torch.ones([2]);

test('backward and grad take positions and options, in any mixture', () => {
  const y = leaf(1, 2);
  backward(y.mul(3), torch.tensor([1, 10], { dtype: torch.float64 }));
  backward([y.mul(3).sum()], { retain_graph: true });
  backward(y.mul(3).sum(), null, true, { inputs: y });
  y.mul(3)
    .sum()
    .backward({ retain_graph: true, inputs: [y] });
  y.mul(3).sum().backward(null, true);
  assert.deepEqual(y.grad.tolist(), [15, 42]);
  const { a, b } = grad(y.sum(), { a: y, b: leaf(1) }, { allow_unused: true });
  assert.deepEqual([a.tolist(), b], [[1, 1], null]);
  assert.deepEqual(grad(y.sum(), leaf(1), { materialize_grads: true })[0].tolist(), [0]);
  const rows = torch.tensor(
    [
      [1, 0],
      [0, 1],
    ],
    { dtype: torch.float64 },
  );
  assert.deepEqual(grad(y.square(), y, rows, { is_grads_batched: true })[0].tolist(), [
    [2, 0],
    [0, 4],
  ]);
});

test('arguments that do not fit are named', () => {
  const y = leaf(1, 2);
  const cases = [
    [
      () => grad(y.sum(), y, { odd: 1 }),
      'TypeError',
      /grad\(\) got an unexpected keyword argument 'odd'/,
    ],
    [
      () => backward(y.sum(), null, { grad_tensors: null, odd: 1 }),
      'TypeError',
      /multiple values for argument 'grad_tensors'/,
    ],
    [() => backward(3), 'TypeError', /torch.Tensor/],
    [() => grad(y.sum(), []), 'RuntimeError', /cannot be empty/],
    [() => grad(y.sum(), [1]), 'RuntimeError', /Tensors or GradientEdges, but got int/],
    [() => grad(y, y), 'RuntimeError', /grad can be implicitly created only for scalar outputs/],
    [
      () => grad(y, y, torch.ones([2, 3]), { is_grads_batched: true }),
      'RuntimeError',
      /a mismatch was detected: grad_output\[0\]/,
    ],
    [
      () =>
        grad(
          [y, y],
          y,
          [2, 3].map((n) => torch.ones([n, 2])),
          { is_grads_batched: true },
        ),
      'ValueError',
      /same size in the mapped dimension, got sizes \[2, 3\]/,
    ],
    [() => grad(y.sum(), y, [1]), 'TypeError', /either Tensors or None, but got int/],
    [() => grad([y.sum(), y.sum()], y, [null]), 'RuntimeError', /got 2 tensors and 1 gradients/],
    [() => grad(y.sum(), leaf(1)), 'RuntimeError', /appears to not have been used in the graph/],
    [
      () => grad(y.sum(), y, { materialize_grads: true, allow_unused: false }),
      'ValueError',
      /allow_unused to be True/,
    ],
  ];
  for (const [call, name, message] of cases)
    assert.throws(call, { name, message }, String(message));
});

test('jacobian and hessian, of tensors and of arrays', () => {
  assert.deepEqual(jacobian((a) => a.pow(2), x).tolist(), [
    [2, 0],
    [0, 4],
  ]);
  assert.deepEqual(hessian((a) => a.pow(3).sum(), x).tolist(), [
    [6, 0],
    [0, 12],
  ]);
  const [[da, db]] = jacobian((a, b) => [a.mul(b)], [x, ones]);
  assert.deepEqual(
    [da.tolist(), db.tolist()],
    [
      [
        [1, 0],
        [0, 1],
      ],
      [
        [1, 0],
        [0, 2],
      ],
    ],
  );
  const table = hessian((a, b) => a.mul(b).sum(), [x, ones]);
  assert.deepEqual(
    table.map((row) => row.map((h) => h.tolist())),
    [
      [
        [
          [0, 0],
          [0, 0],
        ],
        [
          [1, 0],
          [0, 1],
        ],
      ],
      [
        [
          [1, 0],
          [0, 1],
        ],
        [
          [0, 0],
          [0, 0],
        ],
      ],
    ],
  );
});

test('every strategy and vectorize give the same', () => {
  const f = (a) => a.exp().mul(a.sum());
  const plain = jacobian(f, x);
  for (const options of [{ vectorize: true }, { vectorize: true, strategy: 'forward-mode' }])
    assert.ok(torch.allclose(jacobian(f, x, options), plain));
  const g = (a) => f(a).sum();
  for (const options of [
    { vectorize: true },
    { vectorize: true, outer_jacobian_strategy: 'forward-mode' },
  ])
    assert.ok(torch.allclose(hessian(g, x, options), hessian(g, x)));
});

test('products: v J, J v, v H, H v', () => {
  const square = (a) => a.pow(2);
  const cubes = (a) => a.pow(3).sum();
  assert.deepEqual(
    vjp(square, x, ones).map((t) => t.tolist()),
    [
      [1, 4],
      [2, 4],
    ],
  );
  assert.deepEqual(
    jvp(square, x, ones).map((t) => t.tolist()),
    [
      [1, 4],
      [2, 4],
    ],
  );
  assert.deepEqual(
    vhp(cubes, x, { v: ones }).map((t) => t.tolist()),
    [9, [6, 12]],
  );
  assert.deepEqual(
    hvp(cubes, x, ones, { create_graph: false }).map((t) => t.tolist()),
    [9, [6, 12]],
  );
  assert.equal(vjp((a) => a.sum(), x)[1].requires_grad, false);
  assert.deepEqual(
    hvp((a, b) => cubes(a), [x, x], [ones, ones])[1].map((t) => t.tolist()),
    [
      [6, 12],
      [0, 0],
    ],
  );
  const y = leaf(1, 2);
  assert.equal(torch.no_grad(() => vjp(cubes, y, { create_graph: true }))[1].requires_grad, true);
});

test('create_graph lets results be differentiated', () => {
  const y = leaf(1, 2);
  const j = jacobian((a) => a.pow(3), y, true);
  j.sum().backward();
  assert.deepEqual(y.grad.tolist(), [6, 12]);
  const [, product] = vjp((a) => a.pow(3).sum(), y, { create_graph: true });
  assert.deepEqual(grad(product.sum(), y)[0].tolist(), [6, 12]);
});

test('custom functions run inside, and one that fails leaves nothing', () => {
  class Cube extends Function {
    static forward(ctx, a) {
      ctx.save_for_backward(a);
      return a.pow(3);
    }
    static backward(ctx, g) {
      return vjp((a) => a.pow(3), ctx.saved_tensors[0], g, {
        create_graph: torch.is_grad_enabled(),
      })[1];
    }
  }
  class Fails extends Function {
    static forward(ctx, a) {
      return a.mul(2);
    }
    static backward() {
      throw new RangeError('mine');
    }
  }
  const [cube, whole] = [(a) => Cube.apply(a), (a) => Cube.apply(a).sum()];
  leavesNothing(() => {
    for (const vectorize of [false, true]) {
      assert.deepEqual(
        jacobian((a, b) => [cube(a), b.mul(2)], [x, ones], { vectorize })[0][0].tolist(),
        [
          [3, 0],
          [0, 12],
        ],
      );
      assert.deepEqual(hessian(whole, x, { vectorize }).tolist(), [
        [6, 0],
        [0, 12],
      ]);
    }
    assert.deepEqual(
      [vjp, jvp].map((product) => product(cube, x, ones)[1].tolist()),
      [
        [3, 12],
        [3, 12],
      ],
    );
    assert.deepEqual(
      [vhp, hvp].map((product) => product(whole, x, ones)[1].tolist()),
      [
        [6, 12],
        [6, 12],
      ],
    );
    for (const entry of [vjp, jvp, vhp, hvp])
      assert.throws(
        () => entry((a) => Fails.apply(a).sum(), x, entry === vjp ? null : ones),
        /mine/,
      );
    for (const entry of [jacobian, hessian])
      assert.throws(() => entry((a) => Fails.apply(a).sum(), x), /mine/);
  });
  assert.equal(torch.is_grad_enabled(), true);
});

test('strict mode and wrong arguments have the words of PyTorch', () => {
  const constant = () => torch.ones([1]);
  const cases = [
    [
      () => jacobian(constant, x, { strict: true }),
      'RuntimeError',
      /Output 0 of the user-provided function does not require gradients/,
    ],
    [
      () => jacobian((a, b) => a.mul(1), [x, x], { strict: true }),
      'RuntimeError',
      /Output 0 of the user-provided function is independent of input 1/,
    ],
    [
      () => vjp((a, b) => a.sum(), [x, x], { strict: true }),
      'RuntimeError',
      /output of the user-provided function is independent of input 1/,
    ],
    [
      () => hvp((a) => a.sum(), x, ones, false, true),
      'RuntimeError',
      /jacobian of the user-provided function with respect to input 0 is independent/,
    ],
    [
      () => vjp((a) => a, x),
      'RuntimeError',
      /The vector v can only be None if the user-provided function returns a single Tensor/,
    ],
    [
      () => jvp((a) => a, x, torch.ones([3])),
      'RuntimeError',
      /v has invalid size: should be torch.Size\(\[2\]\) but got torch.Size\(\[3\]\)/,
    ],
    [() => hessian((a) => a, x), 'RuntimeError', /should contain a single element/],
    [
      () => jacobian(() => 1, x),
      'TypeError',
      /outputs of the user-provided function given to jacobian must be either a Tensor or a tuple of Tensors but the given .* has type int/,
    ],
    [
      () => jacobian((a) => a, x, { strategy: 'forward-mode' }),
      'NotImplementedError',
      /vectorize=True/,
    ],
  ];
  for (const [call, name, message] of cases)
    assert.throws(call, { name, message }, String(message));
});

test('gradcheck agrees with finite differences, and says where not', () => {
  const f = (a, b) => [a.exp().mul(b), b.sin()];
  leavesNothing(() => {
    for (const fast_mode of [false, true])
      for (const check_forward_ad of [false, true])
        assert.equal(
          gradcheck(f, [leaf(1, 2), leaf(3, 4)], {
            fast_mode,
            check_forward_ad,
            check_grad_dtypes: true,
          }),
          true,
        );
    assert.equal(
      gradcheck(
        (a) => a.mul(2),
        torch.zeros([0, 2], { dtype: torch.float64, requires_grad: true }),
        { check_forward_ad: true },
      ),
      true,
    );
    assert.equal(
      gradcheck(
        (a) => a.t().sum(0),
        torch.randn([2, 3], { dtype: torch.float64 }).t().requires_grad_(),
      ),
      true,
    );
  });
  class Bad extends Function {
    static forward = (ctx, a) => {
      ctx.save_for_backward(a);
      return a.mul(a);
    };

    static backward = (ctx, g) => ctx.saved_tensors[0].mul(g);
  }
  for (const fast_mode of [false, true])
    assert.throws(() => gradcheck(Bad.apply, [leaf(1, 2)], { fast_mode }), {
      name: 'GradcheckError',
      message: /^Jacobian mismatch for output 0 with respect to input 0,\nnumerical:/,
    });
  assert.equal(gradcheck(Bad.apply, leaf(1), { raise_exception: false }), false);
  assert.throws(() => gradcheck(f, [x, x]), {
    name: 'ValueError',
    message: /at least one input tensor to require gradient/,
  });
  assert.throws(() => gradcheck(f, [leaf(1), x], { check_backward_ad: false }), {
    name: 'AssertionError',
  });
  assert.throws(() => gradcheck(f, [leaf(1), x], { check_batched_grad: true }), {
    name: 'NotImplementedError',
    message: /check_batched_grad/,
  });
  assert.throws(() => gradcheck(f, [leaf(1), x], { eps_: 1 }), {
    name: 'TypeError',
    message: /unexpected keyword argument/,
  });
});

test('gradcheck puts its inputs back, also if the function throws', () => {
  const y = leaf(1, 2);
  let calls = 0;
  assert.throws(
    () =>
      gradcheck((a) => {
        if (++calls === 3) throw new RangeError('mine');
        return a.exp();
      }, y),
    /mine/,
  );
  assert.deepEqual(y.tolist(), [1, 2]);
});

test('gradcheck leaves all as it was, whichever call of the function fails', () => {
  const runs = [
    (f, y) => gradcheck(f, y, { check_forward_ad: true }),
    (f, y) => gradcheck(f, y, { check_forward_ad: true, fast_mode: true }),
    (f, y) => gradgradcheck(f, y, { check_fwd_over_rev: true }),
  ];
  for (const run of runs) {
    let calls = 0;
    const f = (limit) => (a) => {
      if (++calls === limit) throw new RangeError('mine');
      return [a.exp().mul(a), a.sum()];
    };
    assert.equal(run(f(0), leaf(1, 2)), true);
    for (let limit = calls; limit > 0; limit--)
      leavesNothing(() => {
        const y = leaf(1, 2);
        calls = 0;
        assert.throws(() => run(f(limit), y), RangeError);
        assert.deepEqual([y.tolist(), y.grad, torch.is_grad_enabled()], [[1, 2], null, true]);
        torch.autograd.forward_ad.dual_level(() => {});
      });
  }
});

test('gradcheck takes functions of other things too, and says what a result must be', () => {
  assert.equal(
    gradcheck((a, k) => Array.from({ length: 20 }, (_, i) => a.mul(k * i)), [leaf(1, 2), 3]),
    true,
  );
  assert.throws(() => gradcheck(() => 2, leaf(1)), {
    name: 'AttributeError',
    message: "'int' object has no attribute 'requires_grad'",
  });
});

test('the error of a backward without a gradient is the cause of that of gradcheck', () => {
  const error = new torch.errors.RuntimeError('mine');
  class Strict extends Function {
    static forward = (ctx, a) => {
      ctx.set_materialize_grads(false);
      return a.mul(2);
    };

    static backward = (_, g) => {
      if (g === null) throw error;
      return g.mul(2);
    };
  }
  assert.throws(
    () => gradcheck(Strict.apply, leaf(1)),
    (e) =>
      e.name === 'GradcheckError' && e.cause === error && /undefined output grads/.test(e.message),
  );
  assert.equal(gradcheck(Strict.apply, leaf(1), { raise_exception: false }), false);
});

test('gradgradcheck checks second derivatives', () => {
  leavesNothing(() => {
    assert.equal(
      gradgradcheck((a) => a.exp().mul(a), leaf(1, 2)),
      true,
    );
    assert.equal(
      gradgradcheck((a) => a.pow(3), [leaf(1, 2)], {
        fast_mode: true,
        check_fwd_over_rev: true,
        gen_non_contig_grad_outputs: true,
      }),
      true,
    );
    assert.equal(
      gradgradcheck((a) => a.pow(3), leaf(1, 2), leaf(1, 1)),
      true,
    );
  });
});

// Nothing that a function is given goes unread or is taken for something else. Layers are in nn.test.mjs, optimizers in optim.test.mjs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaf, torch, warnings } from './helpers.mjs';

const { autograd } = torch;
const { graph } = autograd;
const all = (cases) =>
  cases.forEach(([call, name, message]) => assert.throws(call, { name, message }, String(call)));

test('tensor() takes numbers, and says of anything else what it is', () => {
  all([
    [() => torch.tensor('abc'), 'TypeError', "new(): invalid data type 'str'"],
    [() => torch.tensor(undefined), 'TypeError', 'Could not infer dtype of undefined'],
    [() => torch.tensor(), 'TypeError', "tensor() missing 1 required positional argument: 'data'"],
    [() => torch.tensor(null), 'TypeError', 'Could not infer dtype of NoneType'],
    [() => torch.tensor([1, undefined]), 'TypeError', 'Could not infer dtype of undefined'],
    [() => torch.tensor(new Array(2)), 'TypeError', 'Could not infer dtype of undefined'],
    [() => torch.tensor([[1], [null]]), 'TypeError', 'Could not infer dtype of NoneType'],
    [() => torch.tensor({}), 'TypeError', 'Could not infer dtype of Object'],
    [() => torch.tensor([1, { a: 1 }]), 'TypeError', 'Could not infer dtype of Object'],
    [() => torch.tensor(new Set([1])), 'TypeError', 'Could not infer dtype of Set'],
    [() => torch.tensor(() => 1), 'TypeError', 'Could not infer dtype of function'],
    [() => torch.tensor([Symbol('x')]), 'TypeError', 'Could not infer dtype of symbol'],
    [() => torch.tensor([1, 'a']), 'TypeError', "new(): invalid data type 'str'"],
    [() => torch.tensor([[1], 'a']), 'TypeError', "new(): invalid data type 'str'"],
    [() => torch.tensor(['1', '2']), 'ValueError', "too many dimensions 'str'"],
    [
      () => torch.tensor([[1, 2], [3]]),
      'ValueError',
      'expected sequence of length 2 at dim 1 (got 1)',
    ],
    [() => torch.tensor([[1], 2]), 'TypeError', 'not a sequence at dim 1'],
    [() => torch.tensor([1, [2]]), 'TypeError', 'must be real number, not list'],
    [
      () => torch.tensor([new Float32Array(2), new Float32Array(3)]),
      'ValueError',
      'expected sequence of length 2 at dim 1 (got 3)',
    ],
    [
      () => torch.tensor([torch.ones([2])]),
      'ValueError',
      'only one element tensors can be converted to Python scalars',
    ],
    [
      () => torch.tensor(new DataView(new ArrayBuffer(2))),
      'TypeError',
      /^can't convert DataView\. The only supported types are: Uint8Array, .*Float64Array\.$/,
    ],
    [() => torch.tensor(new DataView(new ArrayBuffer(2))), 'TypeError', /^can't convert DataView/],
    [
      () => torch.tensor([new DataView(new ArrayBuffer(2))]),
      'TypeError',
      /^can't convert DataView/,
    ],
  ]);
});

test('tensor() takes the options that it has, and its dtype by name alone', () => {
  all([
    [
      () => torch.tensor([1], torch.int64),
      'TypeError',
      'tensor() takes 1 positional argument but 2 were given',
    ],
    [
      () => torch.tensor([1], {}, 1),
      'TypeError',
      'tensor() takes 1 positional argument but 2 were given',
    ],
    [
      () => torch.tensor([1], { dtyp: torch.int64 }),
      'TypeError',
      "tensor() got an unexpected keyword argument 'dtyp'",
    ],
    [
      () => torch.tensor([1], { toString: 1 }),
      'TypeError',
      "tensor() got an unexpected keyword argument 'toString'",
    ],
    [
      () => torch.tensor([1], { dtype: 'float32' }),
      'TypeError',
      "tensor(): argument 'dtype' must be torch.dtype, not str",
    ],
    [
      () => torch.tensor([1], { requires_grad: 'no' }),
      'TypeError',
      "tensor(): argument 'requires_grad' must be bool, not str",
    ],
    [() => torch.tensor([1], { device: 'cuda' }), 'AssertionError', /CUDA/],
    [
      () => torch.tensor([1], { shape: 1 }),
      'TypeError',
      "tensor(): argument 'shape' must be a list of ints, not int",
    ],
    [
      () => torch.tensor([1, 2], { shape: [3] }),
      'ValueError',
      'expected 3 elements for the shape [3], got 2',
    ],
    [() => torch.tensor([1n], { requires_grad: true }), 'RuntimeError', /floating point/],
  ]);
  assert.deepEqual(torch.tensor(torch.ones([4]), { shape: [2, 2], device: 'cpu' }).shape, [2, 2]);
  assert.deepEqual(torch.tensor([1], undefined).tolist(), [1]);
});

test('a number that its dtype cannot hold is an error; fractions are cut off', () => {
  const overflow = (name) => [
    'RuntimeError',
    `value cannot be converted to type ${name} without overflow`,
  ];
  const long = ['ValueError', 'Overflow when unpacking long long'];
  const make = (v, dtype) => () => torch.tensor([v], dtype && { dtype: torch[dtype] });
  all([
    ...['uint8', 'int8', 'int16', 'int32', 'int64'].flatMap((name) =>
      [NaN, Infinity, -Infinity, 2 ** 63, -(2 ** 64)].map((v) => [
        make(v, name),
        ...overflow(name),
      ]),
    ),
    [make(300, 'uint8'), ...overflow('uint8')],
    [make(-300, 'uint8'), ...overflow('uint8')],
    [make(-1.5, 'uint8'), ...overflow('uint8')],
    [make(300n, 'uint8'), ...overflow('uint8')],
    [make(128, 'int8'), ...overflow('int8')],
    [make(2 ** 31, 'int32'), ...overflow('int32')],
    [make(2n ** 63n), ...long],
    [make(-(2n ** 63n) - 1n), ...long],
    [make(10n ** 400n, 'float32'), 'OverflowError', /too large/],
  ]);
  const kept = (v, dtype) => torch.tensor([v], { dtype: torch[dtype] }).tolist()[0];
  assert.deepEqual(
    [
      kept(-1, 'uint8'),
      kept(1.9, 'int32'),
      kept(-1.9, 'int64'),
      kept(NaN, 'bool'),
      kept(0, 'bool'),
      kept(1e39, 'float32'),
    ],
    [255, 1, -1, true, false, Infinity],
  );
  assert.deepEqual(
    [kept(2n ** 63n - 1n, 'int64'), kept(-(2n ** 63n), 'int64')],
    [2n ** 63n - 1n, -(2n ** 63n)],
  );
});

test('the dtype that data suggest is that of all of them', () => {
  const cases = [
    [[], 'float32'],
    [[true], 'bool'],
    [[1n, true], 'int64'],
    [[1n, 2.5], 'float32'],
    [[true, 2], 'float32'],
    [new Uint8ClampedArray(1), 'uint8'],
    [[new Float64Array(1), new Float64Array(1)], 'float64'],
    [[new Int32Array(2), [1.5, 2]], 'float32'],
    [[new Int8Array(1), new Int32Array(1)], 'int32'],
    [[torch.tensor(1n), torch.tensor(2n)], 'int64'],
    [[1, torch.tensor(2, { dtype: torch.float64 })], 'float64'],
  ];
  for (const [data, name] of cases) assert.equal(torch.tensor(data).dtype.name, name);
  assert.deepEqual(torch.tensor([new Int32Array([1, 2]), [1.5, 2]]).tolist(), [
    [1, 2],
    [1.5, 2],
  ]);
  assert.deepEqual(torch.tensor([[torch.tensor([3])], [4]]).tolist(), [[3], [4]]);
});

test('a typed array is converted as a tensor is', () => {
  const array = new Float64Array([-1, 300, 1.5, 0]);
  for (const dtype of [torch.uint8, torch.int64, torch.float32, torch.bool]) {
    const made = torch.tensor(array, { dtype });
    assert.deepEqual([made.dtype, made.tolist()], [dtype, torch.tensor(array).to(dtype).tolist()]);
  }
});

test('an array in a subscript is of places or of truths', () => {
  const x = torch.arange(4);
  assert.deepEqual(x.index([true, false, true, false]).tolist(), [0, 2]);
  assert.deepEqual(
    [x.index([3, 0n]).tolist(), x.index([[1], [2]]).tolist(), x.index([]).tolist()],
    [[3, 0], [[1], [2]], []],
  );
  all([
    [() => x.index([1.5]), 'IndexError', /must be long, int, byte or bool/],
    [() => x.index(['a']), 'ValueError', /too many dimensions 'str'/],
    [() => x.index([null]), 'TypeError', /Could not infer dtype/],
    [() => x.index(undefined), 'IndexError', /only integers, slices/],
    [() => x.index([true]), 'IndexError', /shape of the mask/],
    [() => x.index(torch.slice('a')), 'TypeError', /slice indices must be integers/],
    [() => x.index(torch.slice(0, 1.5)), 'TypeError', /slice indices must be integers/],
    [() => torch.slice(0, 1, 1, 1), 'TypeError', /at most 3/],
    [() => x.index(torch.slice(0, 2, 0)), 'ValueError', /step cannot be zero/],
  ]);
});

test('integers beyond 64 bits and texts with a zero in them are refused', () => {
  const x = torch.tensor([1n]);
  for (const call of [
    () => x.add(2n ** 63n),
    () => torch.zeros([2n ** 64n]),
    () => x.sum(2n ** 64n),
    () => x.index(2n ** 64n),
  ])
    assert.throws(call, { name: 'ValueError', message: 'Overflow when unpacking long long' });
  for (const call of [
    () => torch.einsum('i\0->i', x),
    () => x.sum({ 'dim\0': 0 }),
    () => autograd.profiler.profile(() => autograd.profiler.record_function('a\0b', () => 1)),
  ])
    assert.throws(call, { name: 'ValueError', message: 'embedded null character' });
  assert.deepEqual(x.add(1n).tolist(), [2]);
});

test('hooks are functions', () => {
  const x = leaf(1);
  const y = x.exp();
  for (const odd of [undefined, null, 3, 'x', {}]) {
    const calls = [
      () => autograd.once_differentiable(odd),
      () => x.register_hook(odd),
      () => x.register_post_accumulate_grad_hook(odd),
      () => y.grad_fn.register_hook(odd),
      () => y.grad_fn.register_prehook(odd),
      () => graph.register_multi_grad_hook([x], odd),
      () =>
        graph.saved_tensors_hooks(
          odd,
          (t) => t,
          () => 1,
        ),
    ];
    for (const call of calls) assert.throws(call, { name: 'TypeError', message: /function/ });
  }
});

test('options of autograd are of the types that they have', () => {
  const x = leaf(1);
  const y = x.exp().sum();
  all([
    [
      () => y.backward({ create_graph: 1 }),
      'TypeError',
      "backward(): argument 'create_graph' must be bool, not int",
    ],
    [
      () => y.backward(null, true, false, null, 1),
      'TypeError',
      'backward() takes at most 4 positional arguments but 5 were given',
    ],
    [() => autograd.grad(y, x, { allow_unused: 'no' }), 'TypeError', /must be bool, not str/],
    [
      () => autograd.grad(y, x, { hasOwnProperty: 1 }),
      'TypeError',
      "grad() got an unexpected keyword argument 'hasOwnProperty'",
    ],
    [
      () => autograd.grad(new graph.GradientEdge(null, 0), x),
      'TypeError',
      /a node and an int are wanted, not NoneType and int/,
    ],
    [
      () => autograd.grad(new graph.GradientEdge(y.grad_fn, '0'), x),
      'TypeError',
      /a node and an int are wanted, not SumBackward0 and str/,
    ],
    [
      () => autograd.gradcheck((v) => v, x, 1e-6, '1'),
      'TypeError',
      "gradcheck(): argument 'atol' must be a number, not str",
    ],
    [
      () => autograd.gradcheck((v) => v, x, { raise_exception: 'no' }),
      'TypeError',
      "gradcheck(): argument 'raise_exception' must be bool, not str",
    ],
    [
      () => autograd.functional.jacobian((v) => v, x, { strategy: 1 }),
      'TypeError',
      "jacobian(): argument 'strategy' must be str, not int",
    ],
    [
      () => graph.save_on_cpu(() => 1, { pin_memori: true }),
      'TypeError',
      "save_on_cpu() got an unexpected keyword argument 'pin_memori'",
    ],
    [
      () => graph.register_multi_grad_hook(x, () => 1),
      'TypeError',
      /'tensors' \(position 1\) must be list, not Tensor/,
    ],
    [() => graph.disable_saved_tensors_hooks('m', () => 1, 1), 'TypeError', /at most 2/],
    [() => torch.inference_mode(true, () => 1, 1), 'TypeError', /at most 2/],
    [() => torch.set_grad_enabled(1), 'TypeError', /must be bool, not int/],
    [
      () => autograd.profiler.profile(() => x.exp()).table({ sort_by: 'speed' }),
      'AttributeError',
      /has no attribute 'speed'/,
    ],
    [
      () => autograd.profiler.profile({ enabled: 'no' }),
      'TypeError',
      "profile(): argument 'enabled' must be bool, not str",
    ],
  ]);
});

test('an argument that PyTorch ignores is warned of as there', () => {
  const x = leaf(1);
  assert.match(
    warnings(() => autograd.grad(x.sum(), x, { only_inputs: false }))[0],
    /^only_inputs argument is deprecated and is ignored now/,
  );
  assert.deepEqual(
    warnings(() => autograd.grad(x.sum(), x, { only_inputs: true })),
    [],
  );
});

test('generators are of the CPU, and their seeds are integers', () => {
  all([
    [() => new torch.Generator('cuda'), 'AssertionError', /CUDA/],
    [() => new torch.Generator('nowhere'), 'RuntimeError', /device string: nowhere/],
    [
      () => new torch.Generator({ devise: 'cpu' }),
      'TypeError',
      /unexpected keyword argument 'devise'/,
    ],
    [() => new torch.Generator({ device: 'cuda' }), 'AssertionError', /CUDA/],
    ...[1.5, '7', true, null, undefined, NaN].map((seed) => [
      () => torch.manual_seed(seed),
      'RuntimeError',
      /^manual_seed expected a long, but got \w+$/,
    ]),
    [() => torch.manual_seed(2n ** 64n), 'ValueError', /Overflow/],
    [() => torch.manual_seed(-(2n ** 63n) - 1n), 'ValueError', /Overflow/],
  ]);
  assert.equal(
    new torch.Generator({ device: 'cpu' }).manual_seed(2n ** 64n - 1n).initial_seed(),
    2n ** 64n - 1n,
  );
});

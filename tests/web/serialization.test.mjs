// Saving and loading: `node --test tests/web`. Files of Python are in test_exchange.py.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { load } from '../../web/index.js';
import { dtypes } from '../../web/tensor.js';
import { torch } from './helpers.mjs';

const again = (value) => torch.load(torch.save(value));

test('tensors of every dtype come back with their shapes', () => {
  for (const name of Object.keys(dtypes)) {
    const x = torch.arange(6).reshape([2, 3]).to(torch[name]);
    const y = again({ x }).x;
    assert.deepEqual([y.dtype.name, y.tolist()], [name, x.tolist()]);
  }
  assert.deepEqual([again(torch.tensor(3)).shape, again(torch.empty([0, 2])).shape], [[], [0, 2]]);
  assert.deepEqual(again([torch.arange(6).reshape([2, 3]).t()])[0].tolist(), [
    [0, 3],
    [1, 4],
    [2, 5],
  ]);
  assert.equal(again({ w: torch.ones([1], { requires_grad: true }) }).w.requires_grad, true);
});

test('containers and numbers come back as they were', () => {
  const value = {
    epoch: 3,
    rate: 1e-8,
    name: 'é𝄞"',
    none: null,
    yes: true,
    limits: [Infinity, -Infinity, NaN, -0],
    seed: 2n ** 63n,
    state: new Map([
      [0, { step: 1 }],
      ['a', [2]],
    ]),
    set: new Set([1, 2]),
    dtype: torch.float64,
    nested: [[], {}],
  };
  assert.deepEqual(again(value), value);
});

test('equal states give equal bytes, and the header is a multiple of eight', () => {
  const state = () => ({ b: torch.ones([2]), a: torch.tensor([1n]), n: 1 });
  const bytes = torch.save(state());
  assert.deepEqual(bytes, torch.save(state()));
  assert.equal(new DataView(bytes.buffer).getBigUint64(0, true) % 8n, 0n);
  assert.deepEqual(torch.load(bytes.buffer).a.tolist(), [1]);
});

test('what cannot be stored is named, with its place', () => {
  assert.throws(() => torch.save({ m: [new torch.nn.ReLU()] }), {
    name: 'TypeError',
    message: /^save: cannot store an object of type ReLU at 'm.0'; save its state_dict\(\) instead/,
  });
  assert.throws(() => torch.save({ f: () => 1 }), {
    name: 'TypeError',
    message: /type Function at 'f'/,
  });
  const loop = [];
  loop.push(loop);
  assert.throws(() => torch.save(loop), { name: 'TypeError', message: /contains itself/ });
});

test('what is no safetensors file is refused, and said why', () => {
  const good = torch.save({ x: torch.ones([2]) });
  const bad = (change) => {
    const bytes = good.slice();
    change(bytes);
    return bytes;
  };
  const cases = [
    [new Uint8Array(), 'EOFError', /Ran out of input/],
    [Uint8Array.of(0x50, 0x4b, 3, 4, 0, 0), 'RuntimeError', /zip archive/],
    [Uint8Array.of(0x80, 2, 0x7d), 'RuntimeError', /pickle/],
    [new Uint8Array(20), 'RuntimeError', /no safetensors header/],
    [good.slice(0, -1), 'RuntimeError', /damaged/],
    [
      bad((b) => {
        b[9] = 0;
      }),
      'RuntimeError',
      /header is damaged/,
    ],
    [new Uint8Array([...good, 0]), 'RuntimeError', /does not end/],
  ];
  for (const [bytes, name, message] of cases)
    assert.throws(() => torch.load(bytes), { name, message });
});

test('an optimizer goes on from its state as if nothing had happened', () => {
  for (const [name, options] of [
    ['SGD', { lr: 0.1, momentum: 0.9 }],
    ['Adam', { lr: 0.1, amsgrad: true }],
    ['AdamW', { lr: 0.1 }],
  ]) {
    const make = () => {
      const x = torch.tensor([3, -2], { requires_grad: true });
      return { x, optimizer: new torch.optim[name]([x], options) };
    };
    const step = ({ x, optimizer }, n) => {
      for (let i = 0; i < n; i++) {
        optimizer.zero_grad();
        x.pow(4).sum().backward();
        optimizer.step();
      }
    };
    const [whole, first, second] = [make(), make(), make()];
    step(whole, 5);
    step(first, 2);
    const { x, state } = torch.scope(() =>
      again({ x: first.x.detach(), state: first.optimizer.state_dict() }),
    );
    torch.no_grad(() => second.x.copy_(x));
    torch.scope(() => second.optimizer.load_state_dict(state));
    step(second, 3);
    assert.deepEqual(second.x.tolist(), whole.x.tolist(), name);
  }
});

test('a state of other groups is refused', () => {
  const x = torch.ones([1], { requires_grad: true });
  const optimizer = new torch.optim.Adam([x]);
  assert.throws(() => optimizer.load_state_dict({ state: {}, param_groups: [] }), {
    name: 'ValueError',
    message: /different number/,
  });
  assert.throws(
    () => optimizer.load_state_dict({ state: {}, param_groups: [{ params: [0, 1] }] }),
    { name: 'ValueError', message: /size/ },
  );
  assert.throws(() => new torch.optim.SGD([]), {
    name: 'ValueError',
    message: /empty parameter list/,
  });
});

test('random numbers go on from a state', () => {
  torch.manual_seed(2n ** 64n - 1n);
  assert.equal(torch.initial_seed(), 2n ** 64n - 1n);
  torch.randn([3]);
  const state = again(torch.get_rng_state());
  const drawn = torch.randn([3]).tolist();
  torch.set_rng_state(state);
  assert.deepEqual(torch.randn([3]).tolist(), drawn);
  const generator = new torch.Generator().set_state(state);
  assert.deepEqual(torch.randn([3], { generator }).tolist(), drawn);
  generator.free();
  assert.throws(() => torch.randn([3], { generator }), { name: 'RuntimeError' });
  assert.throws(() => torch.manual_seed(2n ** 64n), { name: 'ValueError', message: /Overflow/ });
});

test('saving and loading leave nothing behind', () => {
  const x = torch.randn([3, 4]).t();
  const before = torch.live_count();
  const { y } = again({ y: x });
  assert.equal(torch.live_count(), before + 1);
  y.dispose();
  assert.equal(torch.live_count(), before);
});

test('under Node a path is a file, written and read', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pygrad-'));
  try {
    const [file, other] = [
      path.join(folder, 'net.pt'),
      pathToFileURL(path.join(folder, 'other.pt')),
    ];
    const bytes = torch.save({ x: torch.ones([2]) }, file);
    assert.ok(readFileSync(file).equals(bytes));
    torch.save({ x: torch.zeros([2]) }, other);
    assert.deepEqual(
      [
        torch.load(file).x.tolist(),
        torch.load(other, { map_location: 'cpu', weights_only: true }).x.tolist(),
      ],
      [
        [1, 1],
        [0, 0],
      ],
    );
    assert.throws(() => torch.save({}, path.join(folder, 'none', 'net.pt')), { code: 'ENOENT' });
    assert.throws(() => torch.load(path.join(folder, 'none.pt')), { code: 'ENOENT' });
    assert.throws(() => torch.save({ odd: () => 1 }, path.join(folder, 'odd.pt')), {
      name: 'TypeError',
    });
    assert.equal(existsSync(path.join(folder, 'odd.pt')), false);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('in a page, which has no files, a path is an error that says so', async () => {
  const { process } = globalThis;
  globalThis.process = undefined;
  const page = await load().finally(() => {
    globalThis.process = process;
  });
  const NO_FILES = {
    name: 'NotImplementedError',
    message: /a page has no files, and 'net\.pt' is a path/,
  };
  assert.throws(() => page.save({ x: 1 }, 'net.pt'), NO_FILES);
  assert.throws(() => page.load('net.pt'), NO_FILES);
  assert.throws(
    () => page.autograd.profiler.profile(() => page.ones([1])).export_chrome_trace('net.pt'),
    NO_FILES,
  );
  assert.deepEqual(page.load(page.save({ x: 1 })), { x: 1 });
  assert.equal(existsSync('net.pt'), false);
});

test('what is neither a path nor bytes is refused, and options are those of Python', () => {
  const bytes = torch.save({});
  const cases = [
    [() => torch.load(5), 'TypeError', /must be a path or bytes, not int/],
    [() => torch.load(), 'TypeError', /not NoneType/],
    [() => torch.load([1]), 'TypeError', /not list/],
    [() => torch.save({}, 5), 'TypeError', /a path is wanted, not int/],
    [() => torch.save({}, 'x', {}), 'NotImplementedError', /nothing is pickled/],
    [
      () => torch.load(bytes, { map_loc: 'cpu' }),
      'TypeError',
      /unexpected keyword argument 'map_loc'/,
    ],
    [() => torch.load(bytes, 'cuda'), 'NotImplementedError', /map_location='cuda'/],
    [() => torch.load(bytes, { mmap: true }), 'NotImplementedError', /mmap/],
  ];
  for (const [call, name, message] of cases) assert.throws(call, { name, message });
});

test('parameters come back as parameters, learned or frozen', () => {
  const { Parameter } = torch.nn;
  const { a, b, c } = again({
    a: new Parameter(torch.ones([1])),
    b: new Parameter(torch.ones([1]), false),
    c: torch.ones([1]),
  });
  assert.deepEqual(
    [a, b, c].map((t) => [t instanceof Parameter, t.requires_grad]),
    [
      [true, true],
      [true, false],
      [false, false],
    ],
  );
});

/** A safetensors file of a header and data. */
function file(header, data = new Uint8Array()) {
  const text = new TextEncoder().encode(header);
  const bytes = new Uint8Array(8 + text.length + data.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(text, 8);
  bytes.set(data, 8 + text.length);
  return bytes;
}
const outlined = (object, more = '') =>
  file(
    `{"__metadata__":{"pygrad":${JSON.stringify(JSON.stringify({ version: 1, object }))}}${more}}`,
    new Uint8Array(more && 4),
  );

test('tensors come in the order of their places, whatever their names are', () => {
  const place = (name, from, to) =>
    `"${name}":{"dtype":"F32","shape":[${(to - from) / 4}],"data_offsets":[${from},${to}]}`;
  const names = (header, size) => {
    const found = torch.load(file(header, new Uint8Array(size)));
    return found instanceof Map ? [...found.keys()] : Object.keys(found);
  };
  assert.deepEqual(names(`{${place('b', 4, 8)},${place('c', 0, 4)}}`, 8), ['c', 'b']);
  assert.deepEqual(names(`{${place('10', 0, 4)},${place('9', 4, 8)}}`, 8), ['10', '9']);
  assert.deepEqual(names(`{${place('a', 0, 4)},${place('empty', 0, 0)}}`, 4), ['empty', 'a']);
  assert.deepEqual(names(`{${place('__proto__', 0, 4)}}`, 4), ['__proto__']);
});

test('dicts keep the order of the file', () => {
  const load = (pairs) => torch.load(outlined(['dict', pairs]));
  assert.deepEqual(
    [
      ...load([
        ['2', 0],
        ['1', 0],
      ]).keys(),
    ],
    ['2', '1'],
  );
  assert.deepEqual(
    load([
      ['1', 5],
      ['2', 6],
      ['a', 7],
    ]),
    { 1: 5, 2: 6, a: 7 },
  );
});

test('a file asks for no more than it brings', () => {
  const tensor = ',"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}';
  const before = torch.live_count();
  const same = torch.scope(() => {
    const found = torch.load(outlined(['list', new Array(1000).fill(['tensor', 'w', ''])], tensor));
    assert.equal(new Set(found).size, 1);
    return torch.live_count() - before;
  });
  assert.ok(same < 5, `${same} tensors`);
  const wide = (k) => ['int', String((1n << 64n) * BigInt(k) + 1n)];
  for (const [kind, of] of [
    ['dict', [1, 2].map((k) => [wide(k), 0])],
    ['set', [1, 2].map(wide)],
  ])
    assert.throws(() => torch.load(outlined([kind, of])), /integer of more than 64 bits/);
  assert.deepEqual(torch.load(outlined(['list', [wide(1)]])), [(1n << 64n) + 1n]);
  const deep = '['.repeat(3000) + ']'.repeat(3000);
  assert.throws(() => torch.load(outlined(JSON.parse(deep.replaceAll('[]', '[0]')))), {
    name: /Error$/,
  });
});

test('floats of 8 bits are named, or read as float32', () => {
  const bytes = Uint8Array.from([0x3c, 0xc0, 0x7f, 0x01, 0, 0, 0, 0x3f]);
  const header = (dtype) =>
    `{"w":{"dtype":"${dtype}","shape":[4],"data_offsets":[0,4]},"scale":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`;
  const read = (dtype) => torch.load(file(header(dtype), bytes), { float8: 'float32' });
  assert.throws(() => torch.load(file(header('F8_E4M3'), bytes)), {
    name: 'NotImplementedError',
    message: /tensor 'w' has dtype F8_E4M3.*float8: 'float32'/,
  });
  assert.deepEqual(read('F8_E4M3').w.tolist(), [1.5, -2, NaN, 2 ** -9]);
  assert.deepEqual(read('F8_E5M2').w.tolist(), [1, -2, NaN, 2 ** -16]);
  assert.deepEqual(read('F8_E4M3FNUZ').w.tolist(), [0.75, -1, 240, 2 ** -10]);
  assert.deepEqual(read('F8_E5M2FNUZ').w.tolist(), [0.5, -1, 57344, 2 ** -17]);
  assert.deepEqual(read('F8_E8M0').w.tolist(), [2 ** -67, 2 ** 65, 1, 2 ** -126]);
  assert.deepEqual(read('F8_E4M3').scale.tolist(), [0.5]);
});

// What the Graph room is made of, without a page: the layout, the record of a program, its replay.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../web/index.js';
import { EXAMPLES } from '../../web/rooms/graph/examples.js';
import { layout } from '../../web/rooms/graph/layout.js';
import { instrument, record } from '../../web/rooms/graph/record.js';
import { describe, stateAt } from '../../web/rooms/graph/replay.js';
import { compile } from '../../web/rooms/graph/snippet.js';

const torch = await load();
instrument(torch);

/** Runs a program; its record, as it reaches the page, and the lines that it printed. */
function run(source) {
  const printed = [];
  const program = compile(source);
  const print = (...values) => {
    printed.push(values.join(' '));
  };
  return { ...structuredClone(record(source, (names) => program(torch, print, names))), printed };
}

/** A graph with edges from earlier nodes to later ones, by a small generator. */
function randomGraph(seed, count) {
  let state = seed;
  const next = (n) => (state = (state * 48271) % 2147483647) % n;
  const nodes = Array.from({ length: count }, () => ({
    width: 60 + next(120),
    height: 30 + next(40),
  }));
  const edges = [];
  for (let to = 1; to < count; to++)
    for (let k = 0; k <= next(3); k++) edges.push({ from: next(to), to, shift: next(40) - 20 });
  return { nodes, edges };
}

test('boxes keep apart and edges go down', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const { nodes, edges } = randomGraph(seed, 30);
    const placed = layout(nodes, edges);
    for (const { from, to } of edges) assert.ok(placed.nodes[to].layer > placed.nodes[from].layer);
    placed.nodes.forEach((a, i) => {
      assert.ok(a.x - nodes[i].width / 2 > -1e-6 && a.x + nodes[i].width / 2 < placed.width + 1e-6);
      placed.nodes.slice(0, i).forEach((b, j) => {
        const apart =
          Math.abs(a.x - b.x) >= (nodes[i].width + nodes[j].width) / 2 ||
          Math.abs(a.y - b.y) >= (nodes[i].height + nodes[j].height) / 2;
        assert.ok(apart, `seed ${seed}: boxes ${j} and ${i}`);
      });
    });
    assert.deepEqual(JSON.stringify(layout(nodes, edges)), JSON.stringify(placed));
  }
});

test('a chain is drawn upright, a tree without crossings', () => {
  const box = { width: 80, height: 40 };
  const chain = layout(
    Array(6).fill(box),
    Array.from({ length: 5 }, (_, i) => ({ from: i, to: i + 1 })),
  );
  assert.equal(new Set(chain.nodes.map(({ x }) => Math.round(x))).size, 1);
  const tree = layout(
    Array(7).fill(box),
    [
      [0, 1],
      [0, 2],
      [1, 5],
      [1, 6],
      [2, 3],
      [2, 4],
    ].map(([from, to]) => ({ from, to })),
  );
  const [, left, right, c, d, a, b] = tree.nodes.map(({ x }) => x);
  assert.equal(left < right, Math.max(a, b) < Math.min(c, d));
});

for (const [name, source] of Object.entries(EXAMPLES)) {
  test(`example: ${name}`, () => {
    const { passes, failure } = run(source);
    assert.equal(failure, null);
    for (const pass of passes) {
      const done = stateAt(pass, pass.events.length);
      assert.ok(done.over && done.edges.size > 0);
      assert.ok(pass.events.every((event) => !/undefined|null|NaN/.test(describe(event, pass))));
      assert.ok(
        pass.nodes.every((node) => node.leaf || node.line !== null),
        'each node was made by a line',
      );
      const entered = pass.events.filter(({ kind }) => kind === 'enter').map(({ node }) => node);
      assert.deepEqual(entered, [...new Set(entered)], 'each node runs once');
    }
  });
}

test('gradients add up along the edges', () => {
  const {
    passes: [pass],
    variables,
  } = run(
    'const x = torch.tensor(3, { requires_grad: true });\nconst y = x.mul(x).add(x);\ny.backward();',
  );
  const state = stateAt(pass, pass.events.length);
  const leaf = pass.nodes.find((node) => node.label === 'x');
  const arriving = pass.edges.flatMap((edge, i) =>
    edge.to === leaf.id ? [state.edges.get(i).values[0]] : [],
  );
  assert.deepEqual(arriving.sort(), [1, 3, 3]);
  assert.deepEqual(state.leaves.get(leaf.id).values, [7]);
  assert.deepEqual(variables.find(({ name }) => name === 'x').grad.values, [7]);
});

test('a record has the line of a failure, also in a hook', () => {
  assert.deepEqual(run('const x = torch.ones([2]);\n\nx.matmul(torch.ones([3]));').failure.line, 3);
  const {
    failure,
    passes: [pass],
  } = run(
    'const x = torch.ones([], { requires_grad: true });\nconst y = x.exp();\ny.register_hook(() => {\n  throw new Error("mine");\n});\ny.backward();',
  );
  assert.equal(failure.line, 4);
  assert.deepEqual(pass.events.at(-1), { kind: 'end', thrown: true });
});

test('recording changes neither gradients nor what a program prints', () => {
  const source = EXAMPLES['Saved-tensor hooks'];
  const plain = [];
  compile(source)(
    torch,
    (...values) => {
      plain.push(values.join(' '));
    },
    () => {},
  );
  assert.deepEqual(run(source).printed, plain);
});

test('a backward in a backward is a record of its own', () => {
  const { passes, failure } = run(`class Twice extends torch.autograd.Function {
  static forward(ctx, x) { ctx.save_for_backward(x); return x.mul(2); }
  static backward(ctx, g) {
    const inner = torch.tensor(5, { requires_grad: true });
    torch.enable_grad(() => inner.mul(inner).backward());
    return g.mul(inner.grad);
  }
}
const x = torch.tensor(1, { requires_grad: true });
Twice.apply(x).backward();`);
  assert.equal(failure, null);
  assert.equal(passes.length, 2);
  assert.ok(passes.every((pass) => pass.events.at(-1).kind === 'end'));
  assert.deepEqual(stateAt(passes[0], passes[0].events.length).edges.get(0).values, [10]);
});

test('edges in the place of tensors do not disturb a record', () => {
  const { passes, failure, printed } = run(`const x = torch.ones([2], { requires_grad: true });
const h = x.mul(3);
const edge = torch.autograd.graph.get_gradient_edge(h);
print(torch.autograd.grad(h.exp().sum(), [edge, x], { retain_graph: true })[1]);
torch.autograd.backward(edge, torch.ones([2]));
print(x.grad);`);
  assert.equal(failure, null);
  assert.equal(printed[1], 'tensor([3., 3.])');
  assert.deepEqual(
    passes.map(({ kind, events }) => [
      kind,
      events.filter((event) => event.kind === 'capture').length,
    ]),
    [['grad', 1]],
  );
});

const PROGRAMS = {
  'a Jacobian': 'torch.autograd.functional.jacobian((t) => t.exp().mul(2), torch.ones([3]));',
  'a Hessian': 'torch.autograd.functional.hessian((t) => t.exp().sum(), torch.ones([2]));',
  'gradcheck':
    'const x = torch.ones([2], { requires_grad: true, dtype: torch.float64 });\ntorch.autograd.gradcheck((t) => t.exp(), [x]);',
  'an inference tensor':
    'const x = torch.ones([2], { requires_grad: true });\nconst y = torch.inference_mode(() => x.mul(2));\nx.exp().sum().backward();',
  'several roots':
    'const x = torch.ones([2], { requires_grad: true });\ntorch.autograd.backward([x.sum(), x.exp().sum()]);',
  'many backwards':
    'const x = torch.ones([2], { requires_grad: true });\nfor (let i = 0; i < 40; i++) x.mul(i).sum().backward();',
};
for (const [name, source] of Object.entries(PROGRAMS)) {
  test(`recorded: ${name}`, () => {
    const { failure, passes } = run(source);
    assert.equal(failure, null);
    assert.ok(passes.length);
    for (const pass of passes) assert.ok(stateAt(pass, pass.events.length).over);
  });
}

test('nothing is left over from a run', () => {
  const before = torch.live_count();
  for (const source of [
    EXAMPLES['An expression'],
    EXAMPLES.Attention,
    EXAMPLES['An in-place view'],
  ])
    run(source);
  assert.equal(torch.live_count(), before);
});

// The programs of runs.py on the JavaScript front, in Node and in browsers.
import { digits, drawOrder } from '../../web/rooms/data.js';
import { load } from '../../web/index.js';
import { dtypesOf, encode, MODES, run } from '../../web/rooms/sweep.js';
import { hash, makeNetwork, train } from '../../web/rooms/network.js';

const DIGITS = new URL('../../pygrad/datasets/digits.npz', import.meta.url);
const CALLS = new URL('../../build/bits/calls.json', import.meta.url);
let torch, sets;

async function sha256(parts) {
  const digest = await crypto.subtle.digest('SHA-256', await new Blob(parts).arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const hashOf = (tensors) => sha256(tensors.map((t) => t.toTypedArray()));

/** Three hashes after a step: of the parameters, their gradients and the optimizer's state. */
async function hashes(parameters, optimizer) {
  const names = (own) => Object.keys(own).sort();
  const state = parameters
    .map((p) => optimizer.state.get(p))
    .flatMap((own) => names(own).map((name) => own[name]));
  return [
    await hashOf(parameters),
    await hashOf(parameters.map((p) => p.grad)),
    await hashOf(state),
  ];
}

const runs = {
  async demo() {
    const model = makeNetwork(torch, 0);
    for await (const _ of train(torch, model, sets, { epochs: 2 }));
    return [await hash(model)];
  },

  async digits() {
    const model = makeNetwork(torch, 0);
    const optimizer = new torch.optim.Adam(model.parameters(), { lr: 2e-3 });
    const order = drawOrder(torch, sets.train.targets.shape[0]);
    const found = [];
    for (let step = 0; step < 10; step++) {
      const chosen = torch.tensor(order.slice(32 * step, 32 * step + 32), { dtype: torch.int64 });
      const [images, labels] = [sets.train.data.index(chosen), sets.train.targets.index(chosen)];
      optimizer.zero_grad();
      torch.nn.functional.cross_entropy(model.call(images), labels).backward();
      optimizer.step();
      found.push(...(await hashes(model.parameters(), optimizer)));
    }
    return found;
  },

  async convnet() {
    const { nn } = torch;
    torch.manual_seed(1);
    const model = new nn.Sequential(
      new nn.Conv2d(1, 4, 3, { padding: 1 }),
      new nn.ReLU(),
      new nn.MaxPool2d(2),
      new nn.Flatten(),
      new nn.Linear(64, 10),
    );
    const optimizer = new torch.optim.SGD(model.parameters(), { lr: 0.1, momentum: 0.9 });
    const [images, labels] = [torch.randn([8, 1, 8, 8]), torch.randint(10, [8])];
    const found = [];
    for (let step = 0; step < 5; step++) {
      optimizer.zero_grad();
      nn.functional.cross_entropy(model.call(images), labels).backward();
      optimizer.step();
      found.push(...(await hashes(model.parameters(), optimizer)));
    }
    return found;
  },

  async attention() {
    torch.manual_seed(2);
    const x = torch.randn([2, 6, 8]);
    const weights = [0, 1, 2, 3].map(() => torch.randn([8, 8]).mul(0.3).requires_grad_());
    const optimizer = new torch.optim.AdamW(weights, { lr: 1e-2 });
    const found = [];
    for (let step = 0; step < 5; step++) {
      const [q, k, v] = weights.slice(0, 3).map((w) => torch.matmul(x, w));
      const scores = torch.softmax(torch.matmul(q, k.transpose(-2, -1)).mul(0.35), -1);
      const y = torch.nn.functional.layer_norm(
        torch.matmul(torch.matmul(scores, v), weights[3]).add(x),
        [8],
      );
      optimizer.zero_grad();
      torch.nn.functional.gelu(y).mul(y).mul(y).sum().backward();
      optimizer.step();
      found.push(...(await hashes(weights, optimizer)));
    }
    return found;
  },

  async double_backward() {
    torch.manual_seed(3);
    const weights = [
      [4, 8],
      [8, 1],
    ].map((shape) => torch.randn(shape, { dtype: torch.float64 }).requires_grad_());
    const optimizer = new torch.optim.SGD(weights, { lr: 1e-3, momentum: 0.9 });
    const found = [];
    for (let step = 0; step < 5; step++) {
      const x = torch.randn([6, 4], { dtype: torch.float64 }).requires_grad_();
      const y = torch
        .matmul(torch.tanh(torch.matmul(x, weights[0])), weights[1])
        .sin()
        .sum();
      const [slope] = torch.autograd.grad(y, x, { create_graph: true });
      optimizer.zero_grad();
      slope.square().sum().add(y.mul(0.1)).backward();
      optimizer.step();
      found.push(...(await hashes(weights, optimizer)), await hashOf([slope, x.grad]));
    }
    return found;
  },

  /** NaNs of many origins: hosts give them other bits, which must not be seen. */
  async nan() {
    const found = [];
    for (const [float, int, payload] of [
      ['float32', 'int32', 0x7fc12345],
      ['float64', 'int64', 0x7ff8000012345678n],
    ]) {
      const given = torch.tensor([payload], { dtype: torch[int] }).view(torch[float]);
      const a = torch.tensor([0, Infinity, -1, -Infinity], { dtype: torch[float] });
      const b = torch.tensor([0, Infinity, 0, 1], { dtype: torch[float] });
      const made = [
        a.div(b),
        a.sub(b),
        a.sqrt(),
        a.log(),
        a.mul(0),
        a.sin(),
        a.fmod(0),
        a.pow(0.5),
        a.neg().acosh(),
        a.cumsum(0),
      ];
      const x = a.detach().clone().requires_grad_();
      x.sqrt().mul(b).sum().backward();
      const mixed = [
        given.add(made[0]),
        made[0].add(given),
        given.neg(),
        given.matmul(given),
        torch.maximum(made[1], given),
        given.to(torch.float32),
      ];
      for (const t of [...made, ...mixed, given, x.grad, given.expand([3]), torch.stack(made).t()])
        found.push(await hashOf([t]));
    }
    return [await sha256(found)];
  },
};

/** The hash of each op: all its calls, dtypes and modes. */
async function sweep(description) {
  const found = {};
  for (const op of description.ops) {
    const parts = [];
    for (const call of op.calls) {
      for (const mode of Object.keys(MODES)) {
        for (const dtype of dtypesOf(op, mode)) {
          const outcome = run(torch, description.tensors, op, call, mode, dtype);
          if (outcome !== undefined) parts.push(...encode(outcome));
        }
      }
    }
    found[op.id] = (await sha256(parts)).slice(0, 16);
  }
  return found;
}

/** All hashes of this host.
 * @param {(url: URL) => Promise<ArrayBuffer | Uint8Array>} read fetches a file of the repository */
export async function compute(read) {
  torch = await load();
  torch._engine.onWarning = () => {};
  sets = await digits(torch, await read(DIGITS));
  const found = {};
  for (const [name, program] of Object.entries(runs)) found[name] = await program();
  const description = JSON.parse(new TextDecoder().decode(await read(CALLS)));
  return { runs: found, ops: await sweep(description) };
}

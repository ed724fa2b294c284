// The programs of runs.py on the JavaScript front: `node tests/bits/runs.mjs` prints their hashes.
import { readFile } from 'node:fs/promises';
import { digits as readDigits } from '../../web/data.js';
import { load } from '../../web/index.js';
import { hash, makeNetwork, train } from '../../web/train.js';

globalThis.crypto ??= (await import('node:crypto')).webcrypto;
const torch = await load();
const { nn } = torch;

async function sha256(tensors) {
  const bytes = await new Blob(tensors.map((t) => t.toTypedArray())).arrayBuffer();
  const digest = await crypto.subtle.digest('SHA-256', bytes);
  return Buffer.from(digest).toString('hex');
}

const runs = {
  async digits() {
    const file = new URL('../../pygrad/datasets/digits.npz', import.meta.url);
    const sets = await readDigits(torch, await readFile(file));
    const model = makeNetwork(torch, 0);
    for await (const _ of train(torch, model, sets, { epochs: 2 }));
    return [await hash(model)];
  },

  async convnet() {
    torch.manual_seed(1);
    const model = new nn.Sequential(
      new nn.Conv2d(1, 4, 3, { padding: 1 }), new nn.ReLU(), new nn.MaxPool2d(2),
      new nn.Flatten(), new nn.Linear(64, 10),
    );
    const optimizer = new torch.optim.SGD(model.parameters(), { lr: 0.1, momentum: 0.9 });
    const images = torch.randn([8, 1, 8, 8]);
    const labels = torch.randint(10, [8]);
    const hashes = [];
    for (let step = 0; step < 3; step++) {
      optimizer.zero_grad();
      nn.functional.cross_entropy(model.call(images), labels).backward();
      optimizer.step();
      hashes.push(await sha256(model.parameters()));
    }
    return hashes;
  },

  async attention() {
    torch.manual_seed(2);
    const [q, k, v] = [0, 1, 2].map(() => torch.randn([2, 4, 8]).requires_grad_());
    const weights = torch.softmax(torch.matmul(q, k.transpose(-2, -1)).mul(0.35), -1);
    const y = nn.functional.layer_norm(torch.matmul(weights, v), [8]);
    y.mul(y).mul(y).sum().backward();
    return [await sha256([y]), await sha256([q.grad, k.grad, v.grad])];
  },

  async double_backward() {
    torch.manual_seed(3);
    const x = torch.randn([6], { dtype: torch.float64 }).requires_grad_();
    const y = x.tanh().mul(x.exp()).add(x.sin()).sum();
    const [first] = torch.autograd.grad(y, x, { create_graph: true });
    const [second] = torch.autograd.grad(first.square().sum(), x);
    return [await sha256([first]), await sha256([second])];
  },
};

const found = {};
for (const [name, run] of Object.entries(runs)) found[name] = await run();
console.log(JSON.stringify(found));

// pygrad in the side-by-side benchmark of JavaScript libraries: one function a kind of workload, see
// the README of the benchmark's adapters. It is an eager loop as one writes it for PyTorch.
import { checksum, lenetData, mlpData, uniform } from '../data.mjs';

export async function load(env) {
  const { load: start } = await import(
    env.kind === 'node' ? 'pygrad' : `${env.dir('pygrad')}web/index.js`
  );
  return { torch: await start(), version: await env.version('pygrad'), note: 'eager, one thread' };
}

export async function matmul({ torch }, { n }) {
  const [a, b] = [1, 2].map((seed) => torch.tensor(uniform(n * n, seed), { shape: [n, n] }));
  return {
    step: () => torch.matmul(a, b).dispose(),
    check: async () => checksum(torch.scope(() => torch.matmul(a, b).toTypedArray())),
    dispose: () => [a, b].forEach((x) => x.dispose()),
  };
}

/** A layer with the weights of the benchmark. */
function filled(torch, layer, weight, bias) {
  torch.no_grad(() =>
    torch.scope(() => {
      layer.weight.copy_(torch.tensor(weight, { shape: layer.weight.shape }));
      layer.bias.copy_(torch.tensor(bias));
    }),
  );
  return layer;
}

function trainer(torch, model, criterion, optimizer, x, y) {
  let last = null;
  return {
    step() {
      last?.dispose();
      last = torch.scope(() => {
        optimizer.zero_grad();
        const loss = criterion.call(model.call(x), y);
        loss.backward();
        optimizer.step();
        return loss.detach();
      });
    },
    loss: async () => last.item(),
    dispose() {
      for (const each of [x, y, last, ...model.parameters()]) each?.dispose();
    },
  };
}

const optimizers = {
  sgd: (torch, params, lr) => new torch.optim.SGD(params, { lr }),
  momentum: (torch, params, lr) => new torch.optim.SGD(params, { lr, momentum: 0.9 }),
  adam: (torch, params, lr) => new torch.optim.Adam(params, { lr }),
};

export async function mlp({ torch }, spec, lr) {
  const { nn } = torch;
  const data = mlpData(spec);
  const x = torch.tensor(data.x, { shape: [spec.batch, spec.sizes[0]] });
  const regression = spec.loss === 'mse';
  const y = regression
    ? torch.tensor(data.y, { shape: [spec.batch, 1] })
    : torch.tensor(data.y, { dtype: torch.int64 });
  const linears = data.layers.map((l) => filled(torch, new nn.Linear(l.nin, l.nout), l.w, l.b));
  const between = () => (spec.act === 'relu' ? new nn.ReLU() : new nn.Tanh());
  const model = new nn.Sequential(
    ...linears.flatMap((layer, i) => (i ? [between(), layer] : [layer])),
  );
  const criterion = regression ? new nn.MSELoss() : new nn.CrossEntropyLoss();
  return trainer(
    torch,
    model,
    criterion,
    optimizers[spec.opt](torch, model.parameters(), lr),
    x,
    y,
  );
}

export async function lenet({ torch }, spec, lr) {
  const { nn } = torch;
  const data = lenetData();
  const x = torch.tensor(data.x, { shape: [spec.batch, 1, 28, 28] });
  const y = torch.tensor(data.y, { dtype: torch.int64 });
  const convs = data.convs.map((c, i) =>
    filled(torch, new nn.Conv2d(c.cin, c.cout, c.k, { padding: i ? 0 : 2 }), c.w, c.b),
  );
  const linears = data.fcs.map((l) => filled(torch, new nn.Linear(l.nin, l.nout), l.w, l.b));
  const model = new nn.Sequential(
    ...convs.flatMap((conv) => [conv, new nn.ReLU(), new nn.MaxPool2d(2)]),
    new nn.Flatten(),
    ...linears.flatMap((layer, i) => (i ? [new nn.ReLU(), layer] : [layer])),
  );
  return trainer(
    torch,
    model,
    new nn.CrossEntropyLoss(),
    optimizers.momentum(torch, model.parameters(), lr),
    x,
    y,
  );
}

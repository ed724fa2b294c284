/** `make demo` in JavaScript: the same digits, seed and network, and so the same bits. */
import { drawOrder } from './data.js';

const BATCH = 32;
const RATE = 2e-3;
const NOISE = 0.1;

/** The network of `make demo`, made and initialised after `manual_seed(seed)`. */
export function makeNetwork(torch, seed = 0) {
  const { nn } = torch;
  torch.manual_seed(seed);
  return new nn.Sequential(
    new nn.Linear(64, 256),
    new nn.ReLU(),
    new nn.Dropout(0.3),
    new nn.Linear(256, 128),
    new nn.ReLU(),
    new nn.Dropout(0.3),
    new nn.Linear(128, 10),
  );
}

/** Trains in place, step by step: yields {epoch, loss} after each step, and {epoch, losses,
 * accuracy, sha256} after each epoch. */
export async function* train(torch, model, sets, { epochs = 30 } = {}) {
  const optimizer = new torch.optim.Adam(model.parameters(), { lr: RATE });
  const criterion = new torch.nn.CrossEntropyLoss();
  const count = sets.train.targets.shape[0];
  for (let epoch = 0; epoch < epochs; epoch++) {
    for (const group of optimizer.param_groups) group.lr = RATE * (1 - epoch / epochs);
    model.train();
    const losses = [];
    const order = drawOrder(torch, count);
    for (let from = 0; from < count; from += BATCH) {
      losses.push(
        torch.scope(() => {
          const chosen = torch.tensor(order.slice(from, from + BATCH), { dtype: torch.int64 });
          const images = sets.train.data.index(chosen);
          const labels = sets.train.targets.index(chosen);
          const noisy = images.add(torch.randn(images.shape).mul(NOISE));
          optimizer.zero_grad();
          const loss = criterion.call(model.call(noisy), labels);
          loss.backward();
          optimizer.step();
          return loss.item();
        }),
      );
      yield { epoch, loss: losses.at(-1) };
    }
    yield { epoch, losses, accuracy: accuracy(torch, model, sets.test), sha256: await hash(model) };
  }
}

/** The likeliest digit of each image. (N, 64) -> N numbers. */
export function predict(torch, model, images) {
  model.eval();
  return torch.no_grad(() => torch.scope(() => model.call(images).argmax(1).tolist()));
}

/** The share of images whose digit is predicted, in per cent. */
export function accuracy(torch, model, { data, targets }) {
  const labels = targets.tolist();
  const right = predict(torch, model, data).filter((guess, i) => guess === labels[i]).length;
  return (100 * right) / labels.length;
}

const NUMPY = { float32: '<f4', float64: '<f8', int64: '<i8' };

/** SHA-256 over the name, type, shape and bytes of every weight, as `make demo` prints it. */
export async function hash(model) {
  const parts = [];
  for (const [name, weight] of Object.entries(model.state_dict())) {
    const shape =
      weight.shape.length === 1 ? `(${weight.shape[0]},)` : `(${weight.shape.join(', ')})`;
    parts.push(new TextEncoder().encode(`${name} ${NUMPY[weight.dtype.name]} ${shape}\n`));
    parts.push(new Uint8Array(weight.toTypedArray().buffer));
    weight.dispose();
  }
  const digest = await crypto.subtle.digest('SHA-256', await new Blob(parts).arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The engine, away from the page's thread: training, predictions, and the mutation experiment. */
import { digits } from './data.js';
import { load } from './index.js';
import { makeNetwork, predict, train } from './train.js';

const DATA = new URL('../pygrad/datasets/digits.npz', import.meta.url);
const SHOWN = 24;
let torch;
let sets;
let model;
let running = 0; // the number of the training that may go on

async function start() {
  torch = await load();
  sets = await digits(torch, await (await fetch(DATA)).arrayBuffer());
  postMessage({ kind: 'ready', train: sets.train.targets.shape[0], test: sets.test.targets.shape[0] });
}

/** Pixels and labels of the first test images, to be shown beside what was read in them. */
function samples() {
  return {
    pixels: sets.test.data.index(torch.slice(0, SHOWN)).tolist(),
    labels: sets.test.targets.index(torch.slice(0, SHOWN)).tolist(),
  };
}

async function runTraining({ epochs, seed, recorded }) {
  const mine = ++running;
  model = makeNetwork(torch, seed);
  postMessage({ kind: 'samples', ...samples() });
  let steps = 0;
  const began = performance.now();
  for await (const event of train(torch, model, sets, { epochs })) {
    if (mine !== running) return;
    if (event.loss !== undefined) {
      steps++;
      continue;
    }
    postMessage({
      kind: 'epoch', epoch: event.epoch, losses: event.losses, accuracy: event.accuracy, sha256: event.sha256,
      same: recorded?.[event.epoch] === undefined ? null : recorded[event.epoch] === event.sha256,
      rate: (1000 * steps) / (performance.now() - began),
      guesses: predict(torch, model, sets.test.data.index(torch.slice(0, SHOWN))),
      weights: torch.scope(() => model[0].weight.index(torch.slice(0, 32)).tolist()),
    });
    await new Promise((resume) => { setTimeout(resume, 0); }); // let messages in
  }
  postMessage({ kind: 'done' });
}

/** The shares that the network gives to the ten digits. */
function classify({ pixels }) {
  if (!model) return;
  model.eval();
  const shares = torch.no_grad(() => torch.scope(() =>
    torch.nn.functional.softmax(model.call(torch.tensor([pixels])), 1).index(0).tolist()));
  postMessage({ kind: 'drawn', shares });
}

/** y = sum(h * h), h = tanh(w x); h is multiplied in place by `factor` after the forward. The gradient
 * of w three ways: by this engine, by one that keeps no copy of what it saved, and in "check" mode. */
function mutate({ w, x, factor }) {
  const forward = () => {
    const weight = torch.tensor([w], { requires_grad: true, dtype: torch.float64 });
    const hidden = weight.mul(x).tanh();
    return { weight, hidden, y: hidden.mul(hidden).sum() };
  };
  postMessage(torch.scope(() => {
    const calm = forward();
    calm.y.backward();
    const mutated = forward();
    mutated.hidden.mul_(factor);
    mutated.y.backward();
    const h = Math.tanh(w * x) * factor; // what an alias of h holds when backward reads it
    const strict = torch._C._set_saved_check(true);
    let message = null;
    try {
      const checked = forward();
      checked.hidden.mul_(factor);
      checked.y.backward();
    } catch (error) {
      message = error.message;
    } finally {
      torch._C._set_saved_check(strict);
    }
    return {
      kind: 'mutated', calm: calm.weight.grad.item(), mutated: mutated.weight.grad.item(),
      aliased: 2 * h * (1 - h * h) * x, hidden: Math.tanh(w * x), now: h, message,
    };
  }));
}

const answers = { train: runTraining, stop: () => { running++; }, classify, mutate };

onmessage = async ({ data }) => {
  try {
    await answers[data.kind](data);
  } catch (error) {
    postMessage({ kind: 'error', message: `${error.name}: ${error.message}` });
  }
};

start().catch((error) => postMessage({ kind: 'error', message: error.message }));

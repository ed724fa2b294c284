/** The Train room's engine: training, predictions, the drawn digit. */
import { digits } from './data.js';
import { load } from '../index.js';
import { makeNetwork, predict, train } from './network.js';
import { breathe, serve, tell } from './serve.js';

const DATA = new URL('../../pygrad/datasets/digits.npz', import.meta.url);
const SHOWN = 60;
const UNITS = 32;
const EPOCHS = 30;
const TURN = 60; // milliseconds between two checks for the page's requests
let torch, sets, model, drawing;
let running = 0; // the number of the training that may continue

async function start() {
  torch = await load();
  const response = await fetch(DATA);
  if (!response.ok) throw new Error(`no digits at ${DATA.pathname}: ${response.status}`);
  sets = await digits(torch, await response.arrayBuffer());
  const shown = torch.slice(0, SHOWN);
  return {
    training: sets.train.targets.shape[0],
    pixels: sets.test.data.index(shown).tolist(),
    labels: sets.test.targets.index(shown).tolist(),
  };
}

/** The network's shares of the ten digits, or null without a network or a drawing. */
function classify() {
  if (!model || !drawing) return null;
  const { training } = model;
  model.eval();
  const shares = torch.no_grad(() =>
    torch.scope(() =>
      torch.nn.functional
        .softmax(model.call(torch.tensor([drawing])), 1)
        .index(0)
        .tolist(),
    ),
  );
  model.train(training);
  return shares;
}

/** Trains; tells `steps` some times a second and `epoch` after each epoch. True if it was not replaced by another training. */
async function run(seed) {
  const mine = ++running;
  model = makeNetwork(torch, seed);
  let losses = [];
  let steps = 0;
  let busy = 0; // milliseconds spent in steps
  let since = performance.now();
  for await (const event of train(torch, model, sets, { epochs: EPOCHS })) {
    const now = performance.now();
    if (event.sha256 === undefined) {
      losses.push(event.loss);
      steps++;
      if (now - since < TURN) continue;
    }
    busy += now - since;
    tell('steps', { losses, rate: (1000 * steps) / busy });
    losses = [];
    if (event.sha256 !== undefined) {
      const { epoch, accuracy, sha256 } = event;
      const { guesses, weights } = torch.scope(() => ({
        guesses: predict(torch, model, sets.test.data.index(torch.slice(0, SHOWN))),
        weights: model[0].weight.index(torch.slice(0, UNITS)).tolist(),
      }));
      tell('epoch', { epoch, accuracy, sha256, guesses, weights, shares: classify() });
    }
    await breathe();
    if (mine !== running) return false;
    since = performance.now();
  }
  return true;
}

serve({
  start,
  run,
  stop: () => {
    running++;
  },
  classify(pixels) {
    drawing = pixels;
    return classify();
  },
});

/** The page: what the worker says, drawn; what the reader does, sent to the worker. */

const $ = (id) => document.getElementById(id);
const worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
const send = (kind, data = {}) => worker.postMessage({ kind, ...data });
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

let recorded = null; // what Python found, epoch by epoch
let losses = [];
let accuracies = [];
let strokes = new Float32Array(64);

// ---------------------------------------------------------------- drawing

/** Grey pixels, 0..1, as an image of the canvas's own size. */
function drawPixels(canvas, pixels, side) {
  canvas.width = canvas.height = side;
  const image = canvas.getContext('2d').createImageData(side, side);
  pixels.forEach((value, i) => image.data.set([90, 90, 90, 255 * Math.min(1, Math.max(0, value))], 4 * i));
  canvas.getContext('2d').putImageData(image, 0, 0);
}

function drawCurve(epochs) {
  const canvas = $('curve');
  const pen = canvas.getContext('2d');
  const { width, height } = canvas;
  pen.clearRect(0, 0, width, height);
  const steps = losses.flat();
  const highest = Math.max(...steps, 0.1);
  const total = epochs * (losses[0]?.length ?? 1);
  pen.strokeStyle = colour('--accent');
  pen.beginPath();
  steps.forEach((loss, i) => pen.lineTo((width * i) / total, height - 6 - ((height - 12) * loss) / highest));
  pen.stroke();
  pen.fillStyle = colour('--good');
  accuracies.forEach((value, i) => {
    pen.beginPath();
    pen.arc((width * (i + 1)) / epochs - 4, height - 6 - ((height - 12) * Math.max(0, value - 90)) / 10, 4, 0, 7);
    pen.fill();
  });
}

/** 32 images of 8 x 8 weights, in four rows. */
function drawWeights(weights) {
  const canvas = $('weights');
  canvas.width = 8 * 9;
  canvas.height = 4 * 9;
  const pen = canvas.getContext('2d');
  weights.forEach((row, unit) => {
    const most = Math.max(...row.map(Math.abs)) || 1;
    const image = pen.createImageData(8, 8);
    row.forEach((value, i) => image.data.set(value > 0 ? [31, 95, 168, 255 * (value / most)] : [179, 38, 30, 255 * (-value / most)], 4 * i));
    pen.putImageData(image, 9 * (unit % 8), 9 * Math.floor(unit / 8));
  });
}

// ---------------------------------------------------------------- what the worker says

const EPOCHS = 30;
const told = {
  ready({ train, test }) {
    $('status').textContent = `Ready: ${train} images to train with, ${test} to test with.`;
    $('train').disabled = false;
    sendMutation();
  },
  samples({ pixels, labels }) {
    $('samples').replaceChildren(...pixels.map((image, i) => {
      const cell = document.createElement('div');
      const canvas = document.createElement('canvas');
      canvas.setAttribute('aria-label', `A handwritten ${labels[i]}`);
      canvas.setAttribute('role', 'img');
      drawPixels(canvas, image, 8);
      const text = document.createElement('span');
      text.dataset.label = labels[i];
      text.textContent = '·';
      cell.append(canvas, text);
      return cell;
    }));
  },
  epoch({ epoch, losses: mine, accuracy, sha256, same, rate, guesses, weights }) {
    losses.push(mine);
    accuracies.push(accuracy);
    drawCurve(EPOCHS);
    drawWeights(weights);
    $('accuracy').textContent = `Epoch ${epoch + 1}: ${accuracy.toFixed(2)} % right.`;
    $('rate').textContent = `${Math.round(rate)} steps a second`;
    $('samples').querySelectorAll('span').forEach((text, i) => {
      text.textContent = guesses[i];
      text.className = String(guesses[i]) === text.dataset.label ? 'good' : 'bad';
    });
    const item = document.createElement('li');
    item.textContent = `${sha256} `;
    const verdict = document.createElement('b');
    verdict.textContent = same === null ? 'not recorded for this seed' : same ? '= Python' : '≠ Python';
    verdict.className = same === null ? '' : same ? 'good' : 'bad';
    item.append(verdict);
    $('hashes').append(item);
    send('classify', { pixels: Array.from(strokes) });
  },
  done() {
    $('train').disabled = false;
    $('stop').disabled = true;
  },
  drawn({ shares }) {
    const best = shares.indexOf(Math.max(...shares));
    $('drawn').textContent = strokes.some(Boolean) ? `Looks like ${best} (${Math.round(100 * shares[best])} %).` : '';
  },
  mutated({ calm, mutated, aliased, hidden, now, message }) {
    $('calm').textContent = calm.toPrecision(8);
    $('mutated').textContent = mutated.toPrecision(8);
    $('aliased').textContent = aliased.toPrecision(8);
    $('verdict').textContent = calm === mutated ? `the same bits, although h went from ${hidden.toFixed(3)} to ${now.toFixed(3)}` : 'DIFFERENT';
    $('verdict').className = calm === mutated ? 'good' : 'bad';
    $('message').textContent = message ?? 'no error';
  },
  error({ message }) {
    $('status').textContent = message;
    $('status').className = 'bad';
    told.done();
  },
};

worker.onmessage = ({ data }) => told[data.kind](data);
worker.onerror = (event) => told.error({ message: `The worker failed: ${event.message ?? 'it could not be loaded'}` });

// ---------------------------------------------------------------- what the reader does

$('train').onclick = async () => {
  recorded ??= await fetch(new URL('recorded.json', import.meta.url)).then((r) => r.json()).catch(() => ({}));
  const seed = Math.trunc(Number($('seed').value)) || 0;
  [losses, accuracies] = [[], []];
  $('hashes').replaceChildren();
  $('train').disabled = true;
  $('stop').disabled = false;
  send('train', { epochs: EPOCHS, seed, recorded: seed === recorded.seed ? recorded.hashes : null });
};
$('stop').onclick = () => {
  send('stop');
  told.done();
};

function sendMutation() {
  const values = {};
  for (const name of ['w', 'x', 'factor']) {
    values[name] = Number($(name).value);
    document.querySelector(`output[for=${name}]`).textContent = values[name].toFixed(2);
  }
  send('mutate', values);
}
for (const name of ['w', 'x', 'factor']) $(name).oninput = sendMutation;

// ---------------------------------------------------------------- the pad

function clearPad() {
  strokes = new Float32Array(64);
  drawPixels($('pad'), strokes, 8);
  $('drawn').textContent = '';
}

/** Ink around a point, as a pen wider than a pixel leaves it. */
function ink(event) {
  const box = $('pad').getBoundingClientRect();
  const [x, y] = [(8 * (event.clientX - box.left)) / box.width - 0.5, (8 * (event.clientY - box.top)) / box.height - 0.5];
  for (let i = 0; i < 64; i++) {
    const distance = Math.hypot((i % 8) - x, Math.floor(i / 8) - y);
    strokes[i] = Math.min(1, strokes[i] + Math.max(0, 0.9 - distance) * 0.8);
  }
  drawPixels($('pad'), strokes, 8);
}

$('pad').onpointerdown = (event) => {
  $('pad').setPointerCapture(event.pointerId);
  ink(event);
};
$('pad').onpointermove = (event) => { if (event.buttons) ink(event); };
$('pad').onpointerup = () => send('classify', { pixels: Array.from(strokes) });
$('pad').onkeydown = (event) => { if (event.key === 'Delete') clearPad(); };
$('clear').onclick = clearPad;
clearPad();

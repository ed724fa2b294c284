/** The Train room: draws the worker's events, and passes the reader's actions to the worker. */
import { chart, make } from './chart.js';
import { link } from './link.js';
import { makePad } from './pad.js';
import { drawInk, drawTiles } from './pixels.js';

const RECORDED = new URL('../recorded.json', import.meta.url);
const EPOCHS = 30;
const $ = (id) => document.getElementById(id);
const text = (id, value, className = '') => Object.assign($(id), { textContent: value, className });

const logarithm = (low, high) => (value) =>
  Math.log(Math.max(value, low) / low) / Math.log(high / low);

/** @param {HTMLElement} section @param {import('./page.js').Shell} shell @returns {() => Promise<void>} opens the room */
export function mount(section, shell) {
  const loss = chart($('train-loss'), {
    label: 'Training loss of every step, on a logarithmic scale',
    span: EPOCHS,
    ticks: [0.01, 0.03, 0.1, 0.3, 1, 3],
    at: logarithm(0.01, 3),
  });
  const accuracy = chart($('train-curve'), {
    label: 'Test accuracy of every epoch',
    span: EPOCHS,
    ticks: [85, 90, 95, 97, 100],
    at: (v) => (v - 85) / 15,
  });
  let recorded = { seed: null, hashes: [] };
  let losses, accuracies, weights, stepsAnEpoch, same, images, drawn;

  // ---------------------------------------------------------------- one training

  function reset(hashes) {
    [losses, accuracies, same] = [[], [], 0];
    loss.line('each', []);
    loss.line('mean', []);
    accuracy.line('best', []);
    text('train-epoch', `0 / ${EPOCHS}`);
    text('train-accuracy', '–');
    text('train-rate', '–');
    text('train-same', '–');
    const cell = (className, words) => make('td', { class: className }, words);
    $('train-hashes').tBodies[0].replaceChildren(
      ...Array.from({ length: EPOCHS }, (_, i) =>
        make(
          'tr',
          {},
          make('th', { scope: 'row' }, String(i + 1)),
          cell('hash', '·'),
          cell('verdict', ''),
          cell('hash quiet', hashes[i] ?? 'not recorded for this seed'),
        ),
      ),
    );
  }

  function drawLoss() {
    loss.line(
      'each',
      losses.map((value, i) => [(i + 1) / stepsAnEpoch, value]),
    );
    const means = [];
    for (let from = 0; from + stepsAnEpoch <= losses.length; from += stepsAnEpoch) {
      const mine = losses.slice(from, from + stepsAnEpoch);
      means.push([from / stepsAnEpoch + 0.5, mine.reduce((a, b) => a + b) / mine.length]);
    }
    loss.line('mean', means);
  }

  function showHash(epoch, sha256) {
    const row = $('train-hashes').tBodies[0].rows[epoch];
    const [, mine, verdict, theirs] = row.cells;
    mine.textContent = sha256;
    if (theirs.textContent.length !== sha256.length) return text('train-same', 'not recorded');
    const equal = theirs.textContent === sha256;
    same += equal;
    verdict.append(
      make(
        'b',
        { class: equal ? 'good' : 'bad' },
        equal ? '=' : '≠',
        make('span', { class: 'hidden' }, equal ? 'equal' : 'different'),
      ),
    );
    row.className = equal ? 'equal' : 'different';
    text('train-same', `${same} of ${epoch + 1}`, same === epoch + 1 ? 'good' : 'bad');
  }

  function showGuesses(guesses) {
    $('train-samples')
      .querySelectorAll('button')
      .forEach((button, i) => {
        const right = guesses[i] === images.labels[i];
        const read = button.querySelector('span');
        read.textContent = right ? guesses[i] : `${guesses[i]}✗`;
        read.className = right ? 'good' : 'bad';
        button.setAttribute(
          'aria-label',
          `A handwritten ${images.labels[i]}, read as ${guesses[i]}. Put it on the pad.`,
        );
      });
  }

  const worker = link(new URL('train.worker.js', import.meta.url), {
    steps({ losses: more, rate }) {
      shell.well();
      losses.push(...more);
      drawLoss();
      text('train-rate', Math.round(rate).toLocaleString('en'));
    },
    epoch({ epoch, accuracy: share, sha256, guesses, weights: found, shares }) {
      accuracies.push([epoch + 1, share]);
      accuracy.line('best', accuracies);
      text('train-epoch', `${epoch + 1} / ${EPOCHS}`);
      text('train-accuracy', `${share.toFixed(2)} %`, share >= 97 ? 'good' : '');
      drawTiles($('train-weights'), (weights = found), 8);
      showGuesses(guesses);
      showHash(epoch, sha256);
      showShares(shares);
    },
  });

  const showError = (error) => shell.fail(`${error.name}: ${error.message}`);

  let running = false;
  $('train-go').onclick = async () => {
    if (running) return worker.ask('stop');
    const seed = Math.trunc(Number($('train-seed').value)) || 0;
    reset(seed === recorded.seed ? recorded.hashes : []);
    running = true;
    $('train-go').textContent = 'Stop';
    try {
      await worker.ask('run', seed);
    } catch (error) {
      showError(error);
    }
    running = false;
    $('train-go').textContent = 'Train again';
  };

  // ---------------------------------------------------------------- the pad

  const bars = Array.from({ length: 10 }, (_, digit) =>
    make('li', {}, make('span', {}, String(digit)), make('i')),
  );
  $('pad-shares').append(...bars);

  function showShares(shares) {
    if (!shares || !drawn) return; // the drawing may be cleared by now
    const best = shares.indexOf(Math.max(...shares));
    bars.forEach((bar, i) => {
      bar.className = i === best ? 'best' : '';
      bar.lastChild.style.width = `${100 * shares[i]}%`;
    });
    $('pad-verdict').textContent = `Looks like ${best} (${Math.round(100 * shares[best])} %).`;
  }

  const pad = makePad($('pad'), async (pixels) => {
    drawn = pixels;
    drawInk($('pad-seen'), pixels ?? new Array(64).fill(0));
    if (!pixels) {
      bars.forEach((bar) => {
        bar.lastChild.style.width = 0;
        bar.className = '';
      });
      $('pad-verdict').textContent = 'Nothing is drawn.';
    }
    const shares = await worker.ask('classify', pixels).catch(showError);
    if (shares !== undefined) shell.well();
    if (shares) showShares(shares);
    else if (pixels) $('pad-verdict').textContent = 'Train, and it is read after every epoch.';
  });
  $('pad-clear').onclick = pad.clear;

  // ---------------------------------------------------------------- start

  function showImages() {
    $('train-samples').replaceChildren(
      ...images.pixels.map((pixels, i) => {
        const canvas = make('canvas', { 'aria-hidden': 'true' });
        drawInk(canvas, pixels);
        const button = make(
          'button',
          {
            'type': 'button',
            'aria-label': `A handwritten ${images.labels[i]}. Put it on the pad.`,
          },
          canvas,
          make('span', {}, '·'),
        );
        button.onclick = () => pad.put(pixels);
        return button;
      }),
    );
  }

  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    pad.redraw();
    drawInk($('pad-seen'), drawn ?? new Array(64).fill(0));
    if (weights) drawTiles($('train-weights'), weights, 8);
    if (images)
      images.pixels.forEach((pixels, i) =>
        drawInk($('train-samples').children[i].firstChild, pixels),
      );
  });

  reset([]);
  drawTiles(
    $('train-weights'),
    Array.from({ length: 32 }, () => new Array(64).fill(0)),
    8,
  );
  return async () => {
    [images, recorded] = await Promise.all([
      worker.start(),
      fetch(RECORDED).then((response) => response.json()),
    ]);
    stepsAnEpoch = Math.ceil(images.training / 32);
    reset(recorded.hashes);
    showImages();
    $('train-go').disabled = false;
  };
}

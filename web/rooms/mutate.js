/** The Mutate room: sends the sliders to its worker, and shows gradients and tangents. */
import { make } from './chart.js';
import { link } from './link.js';

const NAMES = ['w', 'x', 'h'];
const $ = (id) => document.getElementById(id);
const short = (value) => value.toFixed(2);
const long = (value) => (Object.is(value, -0) ? 0 : value).toFixed(6);

/** The plot: w from -2 to 2 over y from -0.25 to 1.25. */
const [WIDTH, HEIGHT] = [640, 320];
const px = (w) => (WIDTH * (w + 2)) / 4;
const py = (y) => HEIGHT - (HEIGHT * (y + 0.25)) / 1.5;

/** A tangent with the same length on the screen for every slope. */
function tangent(w, y, slope, name) {
  const [dx, dy] = [px(1) - px(0), (py(1) - py(0)) * slope];
  const scale = 210 / Math.hypot(dx, dy);
  return make('line', {
    class: name,
    x1: px(w) - dx * scale,
    y1: py(y) - dy * scale,
    x2: px(w) + dx * scale,
    y2: py(y) + dy * scale,
  });
}

function draw({ w, y, curve, mutated, aliased }) {
  const step = 4 / (curve.length - 1);
  const path = curve
    .map((value, i) => `${i ? 'L' : 'M'}${px(-2 + i * step).toFixed(1)} ${py(value).toFixed(1)}`)
    .join('');
  const axis = [-1, 0, 1].map((at) =>
    make('text', { 'x': px(at), 'y': py(0) + 22, 'text-anchor': 'middle' }, String(at)),
  );
  $('mutate-plot').replaceChildren(
    make('line', { class: 'axis', x1: 0, x2: WIDTH, y1: py(0), y2: py(0) }),
    make('line', { class: 'axis', x1: 0, x2: WIDTH, y1: py(1), y2: py(1) }),
    ...axis,
    make('text', { x: 6, y: py(1) - 7 }, 'y = 1'),
    make('text', { 'x': WIDTH - 6, 'y': py(0) + 22, 'text-anchor': 'end' }, 'w'),
    make('path', { class: 'curve', d: path }),
    tangent(w, y, aliased.w, 'wrong'),
    tangent(w, y, mutated.w, 'right'),
    make('circle', { cx: px(w), cy: py(y), r: 7 }),
  );
}

function showGradients(found, calm) {
  for (const [row, gradient] of [
    ['calm', found.calm],
    ['pygrad', found.mutated],
    ['aliased', found.aliased],
  ]) {
    const cells = $(`mutate-${row}`).cells;
    ['w', 'x'].forEach((name, i) => {
      cells[i + 1].textContent = long(gradient[name]);
      cells[i + 1].className =
        `mono ${row === 'calm' ? '' : gradient[name] === calm[name] ? 'good' : 'bad'}`;
    });
  }
}

function show(found) {
  const { calm, mutated, aliased, saved, message } = found;
  const same = calm.w === mutated.w && calm.x === mutated.x;
  const wrong = calm.w !== aliased.w || calm.x !== aliased.x;
  showGradients(found, calm);
  $('mutate-verdict').textContent = same ? 'the same bits' : 'DIFFERENT';
  $('mutate-wrong').textContent = wrong
    ? 'wrong, and nobody says so'
    : 'right, as nothing it kept was changed';
  $('mutate-message').textContent = message ?? 'No error: nothing that was saved has been written.';
  $('mutate-message').className = `message ${message ? 'bad' : ''}`;
  saved.forEach(({ value, version, now, newVersion }, i) => {
    const cells = $('mutate-saved').rows[i].cells;
    cells[2].textContent = long(value);
    cells[3].textContent = long(now);
    cells[4].textContent = version === newVersion ? `${version}` : `${version} → ${newVersion}`;
    $('mutate-saved').rows[i].className = version === newVersion ? '' : 'written';
  });
  draw({ w: Number($('mutate-w').value), ...found });
}

/** @param {HTMLElement} section @param {import('./page.js').Shell} shell @returns {() => Promise<void>} opens the room */
export function mount(section, shell) {
  const worker = link(new URL('mutate.worker.js', import.meta.url));
  let ready = false;
  let busy = false;
  let stale = false;

  function read() {
    const writes = {};
    for (const name of NAMES) {
      const to = $(`mutate-to-${name}`);
      const on = $(`mutate-on-${name}`);
      on.parentElement.querySelector('b').textContent = short(Number(to.value));
      if (on.checked) writes[name] = Number(to.value);
    }
    const [w, x] = ['w', 'x'].map((name) => Number($(`mutate-${name}`).value));
    $('mutate-w-value').textContent = short(w);
    $('mutate-x-value').textContent = short(x);
    return { w, x, writes };
  }

  /** Runs one experiment at a time; changes made meanwhile are tried afterwards. */
  async function update() {
    read();
    stale = true;
    if (!ready || busy) return;
    busy = true;
    while (stale) {
      stale = false;
      await worker.ask('experiment', read()).then(
        (found) => {
          show(found);
          shell.well();
        },
        (error) => shell.fail(error.message),
      );
    }
    busy = false;
  }

  section.addEventListener('input', (event) => {
    const to = /^mutate-to-(.)$/.exec(event.target.id); // moving the slider switches the write on
    if (to) $(`mutate-on-${to[1]}`).checked = true;
    update();
  });
  read();
  return async () => {
    await worker.start();
    ready = true;
    update();
  };
}

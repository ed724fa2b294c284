/** The Graph room: a program, its recorded backward, and the reader who steps through it. */
import { make } from './chart.js';
import { makeDrawing } from './graph/draw.js';
import { makeEditor } from './graph/editor.js';
import { EXAMPLES } from './graph/examples.js';
import { inspect } from './graph/inspect.js';
import { describe, stateAt } from './graph/replay.js';
import { label } from './graph/summary.js';
import { syntaxErrorLine } from './graph/syntax.js';
import { link } from './link.js';

const PATIENCE = 3000; // milliseconds that a program may take
const PAUSE = 450; // without a key before it runs
const BEAT = 700; // between two events when it plays
const PLENTY = 400 << 20; // bytes of memory after which the next program gets a new engine
const $ = (id) => document.getElementById(id);

/** A worker that is replaced when a program does not end: {run(source) -> record}.
 * @param {{printed: (text: string) => void, failed: (message: string) => void}} told */
function makeRunner(told) {
  let worker = null;
  const fresh = () => {
    worker = link(new URL('graph/worker.js', import.meta.url), told);
    worker.started = worker.ask('start');
    worker.started.catch(() => {});
  };
  const end = () => {
    worker.end();
    worker = null;
  };
  return {
    async start() {
      if (!worker) fresh();
      await worker.started;
    },
    async run(source) {
      await this.start();
      const mine = worker;
      let timer;
      const patience = new Promise((resolve) => { timer = setTimeout(resolve, PATIENCE, null); });
      const found = await Promise.race([mine.ask('run', source), patience]);
      clearTimeout(timer);
      if (found && found.memory < PLENTY && !found.unusable) return found;
      if (mine === worker) {
        end();
        fresh();
      }
      return found ?? { passes: [], variables: [], failure: { name: 'Stopped', line: null, message: `the program did not end within ${PATIENCE / 1000} seconds. It was stopped, and the engine started anew.` } };
    },
  };
}

/** @param {HTMLElement} section @param {{say: (text: string, tone?: string) => void}} shell */
export function mount(section, shell) {
  let record = null; // the last record that has a graph
  let pass = null;
  let state = null;
  let step = 0;
  let chosen = null;
  let playing = 0;
  const output = $('graph-output');

  // ---------------------------------------------------------------- the replay

  function showStep(to) {
    step = Math.max(0, Math.min(pass.events.length, to));
    state = stateAt(pass, step);
    const text = describe(state.event, pass);
    Object.assign($('graph-step'), { value: step, max: pass.events.length });
    $('graph-step').setAttribute('aria-valuetext', text);
    $('graph-count').textContent = `${step} / ${pass.events.length}`;
    $('graph-event').textContent = text;
    for (const name of ['first', 'back']) $(`graph-${name}`).disabled = step === 0;
    for (const name of ['next', 'last']) $(`graph-${name}`).disabled = step === pass.events.length;
    $('graph-play').disabled = !pass.events.length;
    drawing.update(state);
    editor.mark('active', pass.nodes[state.event?.node]?.line ?? null);
    const rows = $('graph-events').children;
    for (const row of rows) row.removeAttribute('aria-current');
    const row = rows[step - 1];
    row?.setAttribute('aria-current', 'step');
    if (row) $('graph-events').scrollTop = row.offsetTop - $('graph-events').clientHeight / 2;
    const { event } = state;
    if ($('graph-follow').checked && pass.nodes.length) {
      chosen = { kind: 'node', id: event?.node ?? (state.over ? chosen?.id : 0) ?? 0 };
      drawing.mark(chosen.kind, chosen.id);
    }
    if (chosen) inspect($('graph-inspector'), chosen, pass, state);
  }

  function stop() {
    clearInterval(playing);
    playing = 0;
    $('graph-play').textContent = 'Play';
  }

  function play() {
    if (playing) return stop();
    if (step === pass.events.length) showStep(0);
    $('graph-play').textContent = 'Pause';
    playing = setInterval(() => {
      showStep(step + 1);
      if (step === pass.events.length) stop();
    }, BEAT);
  }

  const go = (to) => () => {
    stop();
    showStep(to());
  };
  $('graph-first').onclick = go(() => 0);
  $('graph-back').onclick = go(() => step - 1);
  $('graph-next').onclick = go(() => step + 1);
  $('graph-last').onclick = go(() => pass.events.length);
  $('graph-step').oninput = go(() => Number($('graph-step').value));
  $('graph-play').onclick = play;

  // ---------------------------------------------------------------- what is chosen

  const drawing = makeDrawing($('graph-view'), (what) => {
    chosen = what;
    $('graph-follow').checked = false;
    drawing.mark(what.kind, what.id);
    if (what.kind === 'node') editor.mark('active', pass.nodes[what.id].line);
    inspect($('graph-inspector'), chosen, pass, state);
  });
  for (const [name, direction] of [['in', 1], ['out', -1], ['fit', 0]]) $(`graph-${name}`).onclick = () => drawing.zoom(direction);
  new ResizeObserver(() => drawing.zoom(0)).observe($('graph-view'));

  function showVariables(variables) {
    $('graph-variables').replaceChildren(...variables.slice(0, 60).map((variable) => {
      const button = make('button', { type: 'button' }, make('b', {}, variable.name), ` ${label(variable.value)}`);
      button.onclick = () => {
        $('graph-follow').checked = false;
        inspect($('graph-inspector'), (chosen = { kind: 'variable', variable }), pass, state);
      };
      return button;
    }));
  }

  // ---------------------------------------------------------------- a record

  function showPass(index) {
    stop();
    pass = record.passes[index];
    chosen = null;
    $('graph-follow').checked = true;
    drawing.show(pass);
    $('graph-events').replaceChildren(...pass.events.map((event, i) => {
      const button = make('button', { type: 'button', class: event.kind }, describe(event, pass));
      button.onclick = go(() => i + 1);
      return make('li', {}, button);
    }));
    $('graph-cut').hidden = !pass.truncated;
    showStep(0);
  }

  const passName = ({ kind, line, create }, i) =>
    ({ none: 'No backward was run', backward: `${i + 1}. backward`, grad: `${i + 1}. autograd.grad` })[kind] +
    (kind === 'none' ? '' : `${line ? `, line ${line}` : ''}${create ? ', create_graph' : ''}`);

  function showRecord(found) {
    record = found;
    $('graph-pass').replaceChildren(...found.passes.map((each, i) => make('option', { value: i }, passName(each, i))));
    showPass(0);
  }
  $('graph-pass').onchange = () => showPass(Number($('graph-pass').value));

  // ---------------------------------------------------------------- the program

  const runner = makeRunner({
    printed: (text) => output.append(make('div', {}, text)),
    failed: (message) => shell.say(message, 'bad'),
  });
  let busy = false;
  let again = false;
  let timer = 0;

  async function showFailure(source, { name, message, line, syntax }) {
    const at = line ?? (syntax ? await syntaxErrorLine(source) : null);
    output.append(make('div', { class: 'bad' }, `${at ? `Line ${at}: ` : ''}${name}: ${message}`));
    editor.mark('error', at);
  }

  async function run() {
    clearTimeout(timer);
    again = true;
    if (busy) return;
    busy = true;
    section.setAttribute('aria-busy', 'true');
    while (again) {
      again = false;
      const source = editor.value;
      output.replaceChildren();
      const slow = setTimeout(() => { $('graph-time').textContent = 'running …'; }, 250);
      const found = await runner.run(source).catch((error) => ({ passes: [], variables: [], failure: error }));
      clearTimeout(slow);
      editor.mark('error', null);
      $('graph-time').textContent = found.milliseconds === undefined ? '' : `${found.milliseconds.toFixed(0)} ms, recorded`;
      if (found.passes.length) showRecord(found);
      if (found.passes.length || !found.failure) showVariables(found.variables);
      if (found.failure) await showFailure(source, found.failure);
      else if (!found.passes.length) output.append(make('div', { class: 'quiet' }, 'Nothing here has a graph: no tensor requires a gradient.'));
      $('graph-view').classList.toggle('stale', !found.passes.length);
    }
    busy = false;
    section.removeAttribute('aria-busy');
  }

  const editor = makeEditor($('graph-editor'), {
    changed() {
      clearTimeout(timer);
      timer = setTimeout(run, PAUSE);
    },
    run,
    at: (line) => drawing.point(line),
  });
  $('graph-run').onclick = run;
  $('graph-example').append(...Object.keys(EXAMPLES).map((name) => make('option', {}, name)));
  $('graph-example').onchange = () => {
    editor.value = EXAMPLES[$('graph-example').value];
    run();
  };
  editor.value = Object.values(EXAMPLES)[0];
  runner.start().then(() => {
    shell.say('Engine ready.');
    return run();
  }, (error) => shell.say(error.message, 'bad'));
}

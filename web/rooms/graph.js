/** The Graph room: a program, its output, and its backwards in the player. */
import { make } from './chart.js';
import { makeDrawing } from './graph/draw.js';
import { makeEditor } from './graph/editor.js';
import { EXAMPLES } from './graph/examples.js';
import { makePlayer } from './graph/player.js';
import { makeRunner } from './graph/runner.js';
import { label } from './graph/summary.js';
import { syntaxErrorLine } from './graph/syntax.js';

const PAUSE = 450; // milliseconds without a key before a program runs
const SLOW = 250; // milliseconds after which the page says that it runs
const MOST_VARIABLES = 60;
const NOTHING = 'Nothing here has a graph: no tensor requires a gradient.';
const $ = (id) => document.getElementById(id);

/** The name of a pass: "2. backward, line 10". */
function passName({ kind, line, create }, i) {
  if (kind === 'none') return 'No backward was run';
  const name = kind === 'grad' ? 'autograd.grad' : 'backward';
  return `${i + 1}. ${name}${line ? `, line ${line}` : ''}${create ? ', create_graph' : ''}`;
}

/** @param {HTMLElement} section @param {import('./page.js').Shell} shell @returns {() => Promise<void>} opens the room */
export function mount(section, shell) {
  const output = $('graph-output');
  const drawing = makeDrawing($('graph-view'), (what) => player.choose(what));
  const player = makePlayer(drawing, (line) => editor.mark('active', line));
  const runner = makeRunner({ printed: (text) => output.append(make('div', {}, text)) });
  let passes = [];
  let busy = false;
  let again = false;
  let timer = 0;

  // ---------------------------------------------------------------- results of a program

  function showPasses(found) {
    passes = found;
    $('graph-pass').replaceChildren(
      ...passes.map((each, i) => make('option', { value: i }, passName(each, i))),
    );
    player.show(passes[0]);
  }

  function showVariables(variables) {
    $('graph-variables').replaceChildren(
      ...variables.slice(0, MOST_VARIABLES).map((variable) => {
        const button = make(
          'button',
          { type: 'button' },
          make('b', {}, variable.name),
          ` ${label(variable.value)}`,
        );
        button.onclick = () => {
          if (passes.length) player.choose({ kind: 'variable', variable });
        };
        return button;
      }),
    );
  }

  async function showFailure(source, { name, message, line = null, syntax }) {
    const at = line ?? (syntax ? await syntaxErrorLine(source) : null);
    output.append(make('div', { class: 'bad' }, `${at ? `Line ${at}: ` : ''}${name}: ${message}`));
    editor.mark('error', at);
  }

  async function show(source, found) {
    editor.mark('error', null);
    $('graph-time').textContent =
      found.milliseconds === undefined ? '' : `${found.milliseconds.toFixed(0)} ms, recorded`;
    $('graph-view').classList.toggle('stale', !found.passes.length);
    if (found.passes.length) showPasses(found.passes);
    if (found.passes.length || !found.failure) showVariables(found.variables);
    if (found.failure) await showFailure(source, found.failure);
    else if (!found.passes.length) output.append(make('div', { class: 'quiet' }, NOTHING));
  }

  // ---------------------------------------------------------------- running a program

  /** Runs the program; requests made meanwhile run it once more afterwards. */
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
      const slow = setTimeout(() => {
        $('graph-time').textContent = 'running …';
      }, SLOW);
      const found = await runner
        .run(source)
        .catch((failure) => ({ passes: [], variables: [], failure }));
      clearTimeout(slow);
      await show(source, found);
    }
    shell.well();
    busy = false;
    section.removeAttribute('aria-busy');
  }

  const editor = makeEditor($('graph-editor'), {
    onChange() {
      clearTimeout(timer);
      timer = setTimeout(run, PAUSE);
    },
    run,
    onLine: (line) => drawing.point(line),
  });

  $('graph-run').onclick = run;
  $('graph-pass').onchange = () => player.show(passes[Number($('graph-pass').value)]);
  $('graph-example').onchange = () => {
    editor.value = EXAMPLES[$('graph-example').value];
    run();
  };
  for (const [name, direction] of [
    ['in', 1],
    ['out', -1],
    ['fit', 0],
  ])
    $(`graph-${name}`).onclick = () => drawing.zoom(direction);
  new ResizeObserver(() => drawing.zoom(0)).observe($('graph-view'));
  $('graph-example').append(...Object.keys(EXAMPLES).map((name) => make('option', {}, name)));
  editor.value = Object.values(EXAMPLES)[0];
  return async () => {
    await runner.start();
    run();
  };
}

/** The replay of a recorded backward: steps, scrubs, rewinds, plays, and shows the chosen part. */
import { make } from '../chart.js';
import { inspect } from './inspect.js';
import { describe, stateAt } from './replay.js';

const BEAT = 700; // milliseconds between two events while playing
const $ = (id) => document.getElementById(id);

/** Connects the buttons, the slider, the list of events and the inspector.
 * @param {ReturnType<import('./draw.js').makeDrawing>} drawing
 * @param {(line: number | null) => void} pointAt called with the line of the program that is shown
 * @returns {{show: (pass: any) => void, choose: (what: any) => void}} `show` begins with a pass; `choose` takes a node, an edge or
 * a variable to look at, as `inspect` does */
export function makePlayer(drawing, pointAt) {
  let pass = null;
  let state = null;
  let step = 0;
  let chosen = null;
  let playing = 0;
  const end = () => pass.events.length;

  function showEvent() {
    const text = describe(state.event, pass);
    Object.assign($('graph-step'), { max: end(), value: step });
    $('graph-step').setAttribute('aria-valuetext', text);
    $('graph-count').textContent = `${step} / ${end()}`;
    $('graph-event').textContent = text;
    for (const name of ['first', 'back']) $(`graph-${name}`).disabled = step === 0;
    for (const name of ['next', 'last']) $(`graph-${name}`).disabled = step === end();
    $('graph-play').disabled = !end();
  }

  /** Marks the event in the list and scrolls to it. */
  function markRow() {
    const list = $('graph-events');
    list.querySelector('[aria-current]')?.removeAttribute('aria-current');
    const row = list.children[step - 1];
    row?.setAttribute('aria-current', 'step');
    if (row) list.scrollTop = row.offsetTop - list.clientHeight / 2;
  }

  function follow() {
    if ($('graph-follow').checked && pass.nodes.length) {
      chosen = { kind: 'node', id: state.event?.node ?? (state.over ? chosen?.id : 0) ?? 0 };
      drawing.mark(chosen.kind, chosen.id);
    }
    if (chosen) inspect($('graph-inspector'), chosen, pass, state);
  }

  function goTo(count) {
    step = Math.max(0, Math.min(end(), count));
    state = stateAt(pass, step);
    showEvent();
    drawing.update(state);
    pointAt(pass.nodes[state.event?.node]?.line ?? null);
    markRow();
    follow();
  }

  function stop() {
    clearInterval(playing);
    playing = 0;
    $('graph-play').textContent = 'Play';
  }

  function play() {
    if (playing) return stop();
    if (step === end()) goTo(0);
    $('graph-play').textContent = 'Pause';
    playing = setInterval(() => {
      goTo(step + 1);
      if (step === end()) stop();
    }, BEAT);
  }

  const stepper = (count) => () => {
    stop();
    goTo(count());
  };
  $('graph-first').onclick = stepper(() => 0);
  $('graph-back').onclick = stepper(() => step - 1);
  $('graph-next').onclick = stepper(() => step + 1);
  $('graph-last').onclick = stepper(end);
  $('graph-step').oninput = stepper(() => Number($('graph-step').value));
  $('graph-play').onclick = play;

  return {
    show(given) {
      stop();
      pass = given;
      chosen = null;
      $('graph-follow').checked = true;
      $('graph-cut').hidden = !pass.truncated;
      $('graph-events').replaceChildren(
        ...pass.events.map((event, i) => {
          const button = make(
            'button',
            { type: 'button', class: event.kind },
            describe(event, pass),
          );
          button.onclick = stepper(() => i + 1);
          return make('li', {}, button);
        }),
      );
      drawing.show(pass);
      goTo(0);
    },
    choose(what) {
      chosen = what;
      $('graph-follow').checked = false;
      if (what.kind !== 'variable') drawing.mark(what.kind, what.id);
      if (what.kind === 'node') pointAt(pass.nodes[what.id].line);
      inspect($('graph-inspector'), chosen, pass, state);
    },
  };
}

/**
 * The page's shell: the address chooses a room, and a room comes alive when it is first shown.
 *
 * A room is a module with `mount(section, shell)`: it fills `<section id=…>` and makes what workers
 * it needs. The shell is {say(text, tone)} for the line at the top of the page. Which section is
 * visible is decided by style.css alone, so that the first paint waits for no script.
 */

import { listen } from './link.js';

const ROOMS = {
  train: () => import('./train.js'),
  mutate: () => import('./mutate.js'),
  graph: () => import('./graph.js'),
  conformance: () => import('./conformance.js'),
};
const TITLE = document.title;
const mounted = new Set();

const shell = {
  /** Tells the reader how the engine is. @param {'' | 'bad'} [tone] */
  say(text, tone = '') {
    const status = document.getElementById('status');
    status.textContent = text;
    status.className = tone;
  },
};

/** The room of the address, or the first. */
const current = () => (location.hash.slice(1) in ROOMS ? location.hash.slice(1) : 'train');

async function show() {
  const room = current();
  for (const link of document.querySelectorAll('nav a')) {
    if (link.hash === `#${room}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = `${document.querySelector(`nav a[href="#${room}"]`).textContent} · ${TITLE}`;
  if (mounted.has(room)) return;
  mounted.add(room);
  try {
    (await ROOMS[room]()).mount(document.getElementById(room), shell);
  } catch (error) {
    shell.say(`This room could not be opened: ${error.message}`, 'bad');
  }
}

/** Why the engine cannot run here, or null. The bytes are a function that makes a zero vector. */
function lacking() {
  if (typeof WebAssembly !== 'object') return 'This browser has no WebAssembly: the engine cannot run here.';
  const vector = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];
  if (!WebAssembly.validate(new Uint8Array(vector)))
    return 'This browser has no WebAssembly SIMD: the engine needs it. Any browser of 2022 or later has it.';
  return null;
}

/** What this page or a worker has loaded, by its own account. */
const loaded = () => performance.getEntriesByType('resource').map(({ name }) => name).filter((url) => url.startsWith(location.origin));

/** Fetches the other rooms ahead, and keeps all that was loaded for a time without a network. */
async function prepare() {
  await Promise.allSettled(Object.values(ROOMS).map((fetched) => fetched()));
  if (!('serviceWorker' in navigator)) return;
  await navigator.serviceWorker.register(new URL('../offline.js', import.meta.url));
  const { active } = await navigator.serviceWorker.ready;
  const keep = (urls) => active.postMessage(urls);
  keep([location.href.split('#')[0], ...loaded()]);
  listen(keep);
}

const lack = lacking();
if (lack) {
  shell.say(lack, 'bad');
} else {
  addEventListener('hashchange', show);
  show();
  addEventListener('load', () => setTimeout(() => prepare().catch(() => {}), 1500));
}

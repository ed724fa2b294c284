/**
 * The page's shell: the address selects a room, and a room is mounted when it is first shown.
 *
 * A room is a module with `mount(section, shell)`: it fills `<section id=…>` and returns the function that opens the room, which is
 * called again after a failure. Only style.css decides which section is visible, so that the first paint waits for no script.
 */

import { mount as conformance } from './conformance.js';
import { mount as graph } from './graph.js';
import { mount as mutate } from './mutate.js';
import { mount as train } from './train.js';

const ROOMS = { train, mutate, graph, conformance };
const TITLE = document.title;
const rooms = new Map(); // rooms that were shown: the opening function, and its promise unless it failed
const $ = (id) => document.getElementById(id);

/** Functions with which a room reports errors at the top of the page. @typedef {typeof shell} Shell */
const shell = {
  /** Shows an error, until `well` is called. @param {string} text */
  fail(text) {
    $('problem').textContent = text;
  },

  /** Clears the error. */
  well() {
    $('problem').textContent = '';
  },
};

/** The room in the address, or the first room. */
const current = () => (location.hash.slice(1) in ROOMS ? location.hash.slice(1) : 'train');

async function show() {
  const name = current();
  for (const link of document.querySelectorAll('nav a')) {
    if (link.hash === `#${name}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.querySelector('.skip').hash = name;
  document.title = `${document.querySelector(`nav a[href="#${name}"]`).textContent} · ${TITLE}`;
  await open(name);
}

/** Opens a room, unless it is open. */
async function open(name) {
  if (!rooms.has(name)) rooms.set(name, { begin: ROOMS[name]($(name), shell), opening: null });
  const room = rooms.get(name);
  if (!room.opening) $('status').textContent = 'Loading the engine …';
  const mine = (room.opening ??= room.begin());
  try {
    await mine;
    if (current() !== name) return;
    $('status').textContent = 'Engine ready.';
    shell.well();
  } catch (error) {
    if (room.opening === mine) room.opening = null;
    if (current() !== name) return;
    $('status').textContent = '';
    shell.fail(error.message);
  }
}

/** The reason why the engine cannot run here, or null. The bytes are a function that makes a zero vector. */
function findLack() {
  if (typeof WebAssembly !== 'object')
    return 'This browser has no WebAssembly: the engine cannot run here.';
  const vector = [
    0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253,
    15, 253, 98, 11,
  ];
  if (!WebAssembly.validate(new Uint8Array(vector)))
    return 'This browser has no WebAssembly SIMD: the engine needs it. Any browser of 2022 or later has it.';
  return null;
}

/** Lets the service worker cache all files of the page for use without a network: see offline.js. */
async function keep() {
  if (!('serviceWorker' in navigator)) return;
  await navigator.serviceWorker.register(new URL('../offline.js', import.meta.url));
  const { active } = await navigator.serviceWorker.ready;
  active.postMessage('keep');
}

const lack = findLack();
if (lack) {
  $('status').textContent = '';
  shell.fail(lack);
} else {
  const tryToKeep = () => keep().catch(() => {}); // without it the page needs a network
  addEventListener('hashchange', show);
  addEventListener('online', () => Promise.all([open(current()), tryToKeep()]));
  show().then(tryToKeep);
}

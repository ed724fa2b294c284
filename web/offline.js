/**
 * The page's service worker: the network first, and without one what was kept.
 *
 * All files of all rooms are kept together, whichever were opened: the page asks for that whenever it
 * is opened or finds the network again. So what is kept is of one time, and where there is a network
 * nobody sees old files. There is no list of them: a file names those that it needs.
 */

const KEPT = 'pygrad'; // how the names of its caches begin
const START = new URL('./', self.location).href;

/** How files name others: imports, and what is found by a module's own address; what a page links to. */
const NAMES = {
  js: /(?:\bfrom |\bimport[ (])'(\.[^']+)'|new URL\('([^']+\.\w+)', import\.meta\.url\)/g,
  html: /\b(?:href|src)="([\w/-]+\.\w+)"/g,
};

/** The addresses of the files that one names, comments left out. */
async function named(url, response) {
  const pattern = NAMES[url === START ? 'html' : url.split('.').at(-1)];
  if (!pattern) return [];
  const text = (await response.clone().text()).replace(/\/\*[^]*?\*\//g, '');
  return Array.from(text.matchAll(pattern), ([, one, other]) => new URL(one ?? other, url).href);
}

/** The answers to all files that this one needs, itself included; an error if one is missing. */
async function fetchAll(url, found = new Map()) {
  if (found.has(url)) return found;
  found.set(url, null);
  const response = await fetch(url, { cache: 'no-cache' });
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  found.set(url, response);
  await Promise.all((await named(url, response)).map((each) => fetchAll(each, found)));
  return found;
}

let keeping = null;

/** The names of caches, the latest first. */
const names = async () => (await caches.keys()).filter((name) => name.startsWith(KEPT)).reverse();

/** Keeps all of the page in place of what was kept; if not all can be had, that stays. A cache is whole once the
 * page itself is in it. */
async function keep() {
  const found = await fetchAll(START);
  const page = found.get(START);
  found.delete(START);
  const old = await names();
  const cache = await caches.open(`${KEPT} ${Date.now()}`);
  await Promise.all(Array.from(found, ([url, response]) => cache.put(url, response)));
  await cache.put(START, page);
  await Promise.all(old.map((name) => caches.delete(name)));
}

/** What was kept for a request, or undefined. */
async function kept(request) {
  const url = request.mode === 'navigate' ? START : request.url;
  for (const name of await names()) {
    const cache = await caches.open(name);
    if (await cache.match(START)) return cache.match(url, { ignoreVary: true });
  }
}

async function answer(request) {
  try {
    return await fetch(request);
  } catch (error) {
    const found = await kept(request);
    if (found) return found;
    throw error;
  }
}

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('message', (event) => {
  keeping ??= keep().finally(() => {
    keeping = null;
  });
  event.waitUntil(keeping.catch(() => {})); // without a network: asked again when there is one
});
self.addEventListener('fetch', (event) => {
  if (event.request.method === 'GET' && event.request.url.startsWith(self.location.origin))
    event.respondWith(answer(event.request));
});

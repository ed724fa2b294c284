/**
 * The page's service worker: uses the network, or without one the cache.
 *
 * The files of all rooms are cached together, whichever room was opened: the page asks for that whenever it is opened or finds the
 * network again. So a cache has the files of one time, and old files are never shown while there is a network. There is no list of
 * files: each file names the ones that it needs.
 */

const KEPT = 'pygrad'; // the prefix of its caches' names
const START = new URL('./', self.location).href;

/** The names of other files in a file: imports and addresses relative to a module; links of a page. */
const NAMES = {
  js: /(?:\bfrom |\bimport[ (])'(\.[^']+)'|new URL\('([^']+\.\w+)', import\.meta\.url\)/g,
  html: /\b(?:href|src)="([\w/-]+\.\w+)"/g,
};

/** The addresses of the files that a file names outside comments. */
async function filesNamedBy(url, response) {
  const pattern = NAMES[url === START ? 'html' : url.split('.').at(-1)];
  if (!pattern) return [];
  const text = (await response.clone().text()).replace(/\/\*[^]*?\*\//g, '');
  return Array.from(text.matchAll(pattern), ([, one, other]) => new URL(one ?? other, url).href);
}

/** The responses for a file and all files that it needs; an error if one is missing. */
async function fetchAll(url, found = new Map()) {
  if (found.has(url)) return found;
  found.set(url, null);
  const response = await fetch(url, { cache: 'no-cache' });
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  found.set(url, response);
  await Promise.all((await filesNamedBy(url, response)).map((each) => fetchAll(each, found)));
  return found;
}

let keeping = null;

/** The names of caches, the latest first. */
const names = async () => (await caches.keys()).filter((name) => name.startsWith(KEPT)).reverse();

/** Replaces the cache by a new one with all files; if one cannot be fetched, the old cache stays. A cache is complete once it has
 * the page itself. */
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

/** The cached response for a request, or undefined. */
async function cachedResponse(request) {
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
    const found = await cachedResponse(request);
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
  event.waitUntil(keeping.catch(() => {})); // without a network, the page asks again when it is back
});
self.addEventListener('fetch', (event) => {
  if (event.request.method === 'GET' && event.request.url.startsWith(self.location.origin))
    event.respondWith(answer(event.request));
});

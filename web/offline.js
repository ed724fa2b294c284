/**
 * The page's service worker: the network first, and what it gave last when there is none.
 *
 * So a page that was opened once opens again without a network, and one with a network never shows
 * old files. It keeps nothing by a list of its own: page.js names what the page and its workers loaded.
 */

const KEPT = 'pygrad';

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

async function answer(request) {
  const cache = await caches.open(KEPT);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(request, { ignoreVary: true });
    if (kept) return kept;
    throw error;
  }
}

self.addEventListener('fetch', (event) => {
  if (event.request.method === 'GET' && event.request.url.startsWith(self.location.origin)) event.respondWith(answer(event.request));
});

/** Keeps files that were loaded before this worker was there: from the browser's cache, not anew. */
self.addEventListener('message', (event) => event.waitUntil((async () => {
  const cache = await caches.open(KEPT);
  for (const url of event.data) {
    if (await cache.match(url, { ignoreVary: true })) continue;
    const response = await fetch(url, { cache: 'force-cache' }).catch(() => null);
    if (response?.ok) await cache.put(url, response);
  }
})()));

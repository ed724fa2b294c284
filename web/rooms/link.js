/** The page's end of a worker: calls that are answered, events that are told (the other end is serve.js). */

const files = new Set();
let told = null;

/** Tells `keep` what files workers have loaded, also those that are still to come. @param {(urls: string[]) => void} keep */
export function listen(keep) {
  told = keep;
  keep([...files]);
}

function note(urls) {
  urls.forEach((url) => files.add(url));
  told?.(urls);
}

/** Starts a worker.
 * @param {URL} url of its module
 * @param {Record<string, (value: any) => void>} events what to do when the worker tells something;
 *   `failed` is told a message when the worker itself could not start or died
 * @returns {{ask: (name: string, value?: any) => Promise<any>, end: () => void}} */
export function link(url, events = {}) {
  const worker = new Worker(url, { type: 'module' });
  const waiting = new Map();
  let next = 1;
  worker.onmessage = ({ data: { id, event, value, error } }) => {
    if (event === 'loaded') return note(value);
    if (event) return events[event]?.(value);
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    return error ? reject(Object.assign(new Error(error.message), error)) : resolve(value);
  };
  worker.onerror = (event) => {
    event.preventDefault();
    events.failed?.(`The worker failed: ${event.message ?? 'it could not be loaded'}`);
  };
  return {
    ask(name, value) {
      return new Promise((resolve, reject) => {
        waiting.set(next, { resolve, reject });
        worker.postMessage({ id: next++, name, value });
      });
    },
    /** Stops it at once, whatever it does; what was asked is never answered. */
    end: () => worker.terminate(),
  };
}

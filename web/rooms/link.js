/** The page's end of a worker: calls with answers, and events (the other end is serve.js). */

/** A worker, made at the first request. A worker that failed to load or start, or died, is replaced at the next request; its open
 * requests are rejected.
 * @param {URL} url of its module
 * @param {Record<string, (value: any) => void>} events handlers of the worker's events
 * @returns {{start: () => Promise<any>, ask: (name: string, value?: any) => Promise<any>, end: () => void}} `start` returns the
 * result of the worker's function of that name, which runs once, before all others */
export function link(url, events = {}) {
  const waiting = new Map();
  let worker = null;
  let started = null;
  let next = 1;

  function end() {
    worker?.terminate();
    worker = started = null;
    waiting.clear();
  }

  function lose(error) {
    const asked = [...waiting.values()];
    end();
    asked.forEach(({ reject }) => reject(error));
  }

  function make() {
    worker = new Worker(url, { type: 'module' });
    worker.onmessage = ({ data: { id, event, value, error } }) => {
      if (event) return events[event]?.(value);
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      return error ? reject(Object.assign(new Error(error.message), error)) : resolve(value);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      lose(new Error(`The worker failed: ${event.message ?? 'it could not be loaded'}`));
    };
  }

  function post(name, value) {
    return new Promise((resolve, reject) => {
      waiting.set(next, { resolve, reject });
      worker.postMessage({ id: next++, name, value });
    });
  }

  function start() {
    if (started) return started;
    make();
    const mine = (started = post('start'));
    mine.catch((error) => {
      if (started === mine) lose(error);
    });
    return mine;
  }

  return {
    start,
    async ask(name, value) {
      await start();
      return post(name, value);
    },
    /** Stops the worker at once; open requests are never answered. */
    end,
  };
}

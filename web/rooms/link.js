/** The page's end of a worker: calls that are answered, events that are told (the other end is serve.js). */

/** A worker, made when it is first asked. One that could not be loaded, did not start or died is made anew when
 * it is asked again; what it had been asked is rejected.
 * @param {URL} url of its module
 * @param {Record<string, (value: any) => void>} events what to do when the worker tells something
 * @returns {{start: () => Promise<any>, ask: (name: string, value?: any) => Promise<any>, end: () => void}} `start`
 *   gives what the worker's function of that name does, which runs once, before all else */
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
    /** Stops it at once, whatever it does; what was asked is never answered. */
    end,
  };
}

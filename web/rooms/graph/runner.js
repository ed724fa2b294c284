/** The worker that runs programs; replaced after a program that does not end, or takes too much memory. */
import { link } from '../link.js';

const PATIENCE = 3000; // milliseconds that a program may take
const PLENTY = 400 << 20; // bytes of memory after which the next program gets a new engine

const STOPPED = {
  passes: [],
  variables: [],
  failure: {
    name: 'Stopped',
    line: null,
    message: `the program did not end within ${PATIENCE / 1000} seconds. It was stopped, and the engine started anew.`,
  },
};

/** @param {{printed: (text: string) => void}} events
 * @returns {{start: () => Promise<void>, run: (source: string) => Promise<any>}} */
export function makeRunner(events) {
  const worker = link(new URL('worker.js', import.meta.url), events);

  async function run(source) {
    await worker.start();
    let timer;
    const patience = new Promise((resolve) => {
      timer = setTimeout(resolve, PATIENCE, null);
    });
    const found = await Promise.race([worker.ask('run', source), patience]).finally(() =>
      clearTimeout(timer),
    );
    if (found && found.memory < PLENTY && !found.unusable) return found;
    worker.end();
    worker.start().catch(() => {}); // the next run reports the error
    return found ?? STOPPED;
  }

  return { start: worker.start, run };
}

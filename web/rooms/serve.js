/** A worker's end of link.js: answers the page's calls, and sends events. */

/** Sends an event to the page. */
export const tell = (event, value) => postMessage({ event, value });

/** Answers the page's calls with the functions of these names; their errors are passed to the caller. */
export function serve(answers) {
  globalThis.onmessage = async ({ data: { id, name, value } }) => {
    try {
      postMessage({ id, value: await answers[name](value) });
    } catch (error) {
      postMessage({ id, error: { name: error.name, message: error.message } });
    }
  };
}

const channel = new MessageChannel();
const resumes = [];
channel.port1.onmessage = () => resumes.shift()();

/** Waits for a turn of the event loop, in which messages arrive, without the delay of timers. */
export const breathe = () =>
  new Promise((resume) => {
    resumes.push(resume);
    channel.port2.postMessage(0);
  });

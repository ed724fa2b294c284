/** A worker's end of link.js: answers what the page asks, tells what it did not ask for. */

/** Tells the page something. */
export const tell = (event, value) => postMessage({ event, value });

/** Answers the page's calls by functions of these names; what they throw reaches the caller. */
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

/** Lets messages in: a turn of the event loop, without the delay that timers have. */
export const breathe = () =>
  new Promise((resume) => {
    resumes.push(resume);
    channel.port2.postMessage(0);
  });

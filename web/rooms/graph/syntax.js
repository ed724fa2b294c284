/** The line of a syntax error: Chromium provides it for a script that a worker loads, not for a function's text. */

const PATIENCE = 1000;

/** @param {string} source @returns {Promise<number | null>} */
export function syntaxErrorLine(source) {
  const url = URL.createObjectURL(
    new Blob([`(function (torch, print) { 'use strict'; ${source}\n})`], {
      type: 'text/javascript',
    }),
  );
  const worker = new Worker(url);
  return new Promise((resolve) => {
    worker.onerror = (event) => {
      event.preventDefault();
      resolve(event.lineno || null);
    };
    setTimeout(resolve, PATIENCE, null);
  }).finally(() => {
    worker.terminate();
    URL.revokeObjectURL(url);
  });
}

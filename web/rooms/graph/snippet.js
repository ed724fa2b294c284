/** The reader's program: its conversion to a function, its variables by name, its lines in stacks. */

const NAME = 'snippet.js';
const TAIL = `\n//# sourceURL=${NAME}`;

/** The first line of the program in a stack, or null. */
const rawLine = (stack) => Number(/snippet\.js:(\d+)/.exec(stack ?? '')?.[1]) || null;

/** The number of lines that browsers add to a function made from text. */
const OFFSET = (rawLine(new Function(`return new Error().stack${TAIL}`)()) ?? 1) - 1;

/** The line of the program in a stack, or null. @param {string | undefined} stack */
export function lineOf(stack) {
  const line = rawLine(stack);
  return line ? line - OFFSET : null;
}

/** The line of a syntax error, if the browser provides it (Firefox does). @param {any} error */
export const lineOfSyntaxError = (error) => (error.lineNumber ? error.lineNumber - OFFSET : null);

/** The function of a program; throws SyntaxError.
 * @returns {(torch: any, print: (...values: any[]) => void, names: (look: (name: string) => any) => void) => any} `names` is
 * called with a function that reads a variable of the program */
export function compile(source) {
  return new Function(
    'torch',
    'print',
    '__names',
    `"use strict"; __names((__name) => eval(__name)); ${source}${TAIL}`,
  );
}

/** All names in a program that can be variables. */
export const identifiers = (source) => [
  ...new Set(Array.from(source.matchAll(/(?<![.\w$])[A-Za-z_$][\w$]*/g), ([name]) => name)),
];

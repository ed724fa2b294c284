/** Files: what functions of PyTorch that take a path do here under Node, and say in a page, which has none. */
import { typeName } from './arguments.js';
import { NotImplementedError } from './engine.js';

/** The host's files, by way of Node's module or null. */
function over(fs) {
  /** Whether a value is a path; without files that is an error, which says what to do `instead`. */
  function isPath(name, value, instead) {
    if (typeof value !== 'string' && !(value instanceof URL)) return false;
    if (!fs)
      throw new NotImplementedError(
        `${name}: a page has no files, and '${value}' is a path: ${instead}`,
      );
    return true;
  }

  return {
    isPath,
    read: (path) => fs.readFileSync(path),
    /** Writes bytes or a text that a function returns as well, if there is a path. */
    write(name, path, content) {
      if (path === undefined || path === null) return;
      if (!isPath(name, path, `call it without, ${name} returns what would be written`))
        throw new TypeError(`${name}(): a path is wanted, not ${typeName(path)}`);
      fs.writeFileSync(path, content);
    },
  };
}

/** Finds the files that there are. */
export async function findFiles() {
  if (!globalThis.process?.versions?.node) return over(null);
  return over(await import(/* @vite-ignore */ ['node', 'fs'].join(':')).catch(() => null)); // which bundlers for a page do not look for
}

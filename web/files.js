/** Files, for functions of PyTorch that take a path: they work under Node, and raise in a page, which has no files. */
import { typeName } from './arguments.js';
import { NotImplementedError } from './engine.js';

/** The host's files over Node's module, or over null. */
function makeFiles(fs) {
  /** Whether a value is a path; without files a path raises an error that names an alternative, `instead`. */
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
    /** Writes bytes or a text, which the function also returns, if there is a path. */
    write(name, path, content) {
      if (path === undefined || path === null) return;
      if (!isPath(name, path, `call it without, ${name} returns what would be written`))
        throw new TypeError(`${name}(): a path is wanted, not ${typeName(path)}`);
      fs.writeFileSync(path, content);
    },
  };
}

/** Opens the host's files, if any. */
export async function findFiles() {
  if (!globalThis.process?.versions?.node) return makeFiles(null);
  return makeFiles(await import(/* @vite-ignore */ ['node', 'fs'].join(':')).catch(() => null)); // hidden from bundlers
}

// Every name that torch.js lists under torch.autograd is here too, by the table of them in web/docs/names.md; and every name that the op
// table has in Python, by the declarations that are made of it there (test_stubs.py compares them with the functions).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { torch } from './helpers.mjs';

const document = readFileSync(new URL('../../web/docs/names.md', import.meta.url), 'utf8');
const table = document.slice(document.indexOf('| torch.js | pygrad |'));
const rows = Array.from(table.matchAll(/^\| (\w+) \| `([\w.]+)` \|/gm), ([, name, path]) => [
  name,
  path,
]);
/** Where Python has a name in a module that is no namespace here. */
const here = (path) =>
  path
    .replace('autograd.profiler_util.', 'autograd.profiler.')
    .replace('.profile.', '.profile.prototype.')
    .replace('EventList.', 'EventList.prototype.')
    .replace('FunctionCtx.', 'FunctionCtx.prototype.');

for (const [name, path] of rows) {
  test(`${name} is torch.${here(path)}`, () => {
    const found = here(path)
      .split('.')
      .reduce((at, part) => at?.[part], torch);
    assert.equal(typeof found, 'function', path);
  });
}

test('the table was found', () => assert.ok(rows.length > 55));

// ---------------------------------------------------------------- the op table

const declared = readFileSync(new URL('../../web/ops.d.ts', import.meta.url), 'utf8');
/** Where the functions of an interface of ops.d.ts are. */
const SPACES = {
  Functions: torch,
  Methods: torch.Tensor.prototype,
  Functional: torch.nn.functional,
  Special: torch.special,
  Linalg: torch.linalg,
  Fft: torch.fft,
  Windows: torch.signal.windows,
  Masked: torch.masked,
  Aten: torch.ops.aten,
  Properties: torch.Tensor.prototype,
};
const bodies = Array.from(
  declared.matchAll(/^export interface (\w+) \{\n(.*?)^\}/gms),
  ([, name, body]) => [name, body],
);
const namesOf = (body) =>
  [...new Set(Array.from(body.matchAll(/^  (?:readonly )?(\w+)/gm), ([, name]) => name))].sort();

test('the interfaces of the declarations are the namespaces', () =>
  assert.deepEqual(bodies.map(([name]) => name).sort(), Object.keys(SPACES).sort()));

for (const [space, body] of bodies) {
  test(`${space} has as many names as Python, and the same`, () => {
    const names = namesOf(body);
    const found = names.filter((name) => {
      const { get, value } = Object.getOwnPropertyDescriptor(SPACES[space], name) ?? {};
      return typeof (space === 'Properties' ? get : value) === 'function';
    });
    assert.deepEqual(found, names);
    assert.ok(names.length > 5, `${names.length} of them`);
  });
}

for (const space of ['Special', 'Linalg', 'Fft', 'Windows', 'Masked', 'Aten'])
  test(`${space} has no name that Python lacks`, () =>
    assert.deepEqual(
      Object.keys(SPACES[space]).sort(),
      namesOf(bodies.find(([name]) => name === space)[1]),
    ));

// Every name that torch.js lists under torch.autograd is here too, by the README's table of them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { torch } from './helpers.mjs';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const table = readme.slice(readme.indexOf('| torch.js | pygrad |'));
const rows = Array.from(table.matchAll(/^\| (\w+) \| `([\w.]+)` \|/gm), ([, name, path]) => [name, path]);
/** Where Python has a name in a module that is no namespace here. */
const here = (path) => path.replace('autograd.profiler_util.', 'autograd.profiler.').replace('.profile.', '.profile.prototype.')
  .replace('EventList.', 'EventList.prototype.').replace('FunctionCtx.', 'FunctionCtx.prototype.');

for (const [name, path] of rows) {
  test(`${name} is torch.${here(path)}`, () => {
    const found = here(path).split('.').reduce((at, part) => at?.[part], torch);
    assert.equal(typeof found, 'function', path);
  });
}

test('the table was found', () => assert.ok(rows.length > 55));

/**
 * The npm package in a folder: `node web/npm/assemble.mjs FOLDER`, then `npm pack` there.
 *
 * It keeps the repository's layout, so the modules find the same binary by the same relative path. It
 * holds what index.js imports, the declarations, and nothing of the demo page.
 */
import { spawnSync } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const to = path.resolve(process.argv[2]);

/** The modules that a module needs, itself included. */
async function closure(module, found = new Set()) {
  if (found.has(module)) return found;
  found.add(module);
  const source = await readFile(path.join(ROOT, 'web', module), 'utf8');
  for (const [, name] of source.matchAll(/^(?:import|export) [^;]*?from '(\.[\w./]+\.js)';/gms))
    await closure(path.posix.join(path.posix.dirname(module), name), found);
  return found;
}

await rm(to, { recursive: true, force: true });
await mkdir(path.join(to, 'web'), { recursive: true });
const modules = [...(await closure('index.js'))].sort();
const files = [...modules, 'ops.d.ts', 'nn/layers.d.ts'].map((name) => `web/${name}`);
for (const file of [...files, 'pygrad/core.wasm', 'LICENSE', 'README.md'])
  await cp(path.join(ROOT, file), path.join(to, file));
await cp(path.join(ROOT, 'web/npm/apart'), path.join(to, 'web'), { recursive: true });
const declare = [path.join(ROOT, 'web/npm/declare.mjs'), path.join(to, 'web/index.d.ts')];
if (spawnSync(process.execPath, declare, { stdio: 'inherit' }).status !== 0) process.exit(1);

const [, version] = /^version = "([^"]+)"$/m.exec(
  await readFile(path.join(ROOT, 'pyproject.toml'), 'utf8'),
);
const { name, ...rest } = JSON.parse(await readFile(path.join(ROOT, 'web/package.json'), 'utf8'));
await writeFile(
  path.join(to, 'package.json'),
  `${JSON.stringify({ name, version, ...rest }, null, 2)}\n`,
);

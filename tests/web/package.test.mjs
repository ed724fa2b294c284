// The npm package as its users have it: `make npm` packs it, here it is installed, imported and bundled.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TOOLS = path.join(ROOT, 'build/node/');
const [, VERSION] = /^version = "([^"]+)"$/m.exec(
  readFileSync(path.join(ROOT, 'pyproject.toml'), 'utf8'),
);
const TARBALL = path.join(ROOT, `build/pygrad-${VERSION}.tgz`);
const skip =
  existsSync(TARBALL) && existsSync(path.join(TOOLS, 'node_modules/esbuild'))
    ? false
    : 'there is no package: make npm';
const run = (file) =>
  execFileSync(process.execPath, [file], { cwd: home, encoding: 'utf8' }).trim();
let home;

before(() => {
  if (skip) return;
  home = mkdtempSync(path.join(tmpdir(), 'pygrad-npm-'));
  writeFileSync(path.join(home, 'package.json'), '{ "type": "module" }');
  const flags = [
    '--offline',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--no-package-lock',
    '--silent',
  ];
  execFileSync('npm', ['install', ...flags, TARBALL], {
    cwd: home,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
});
after(() => {
  if (home) rmSync(home, { recursive: true, force: true });
});

test(
  'the package holds the library, its types and the binary, and nothing of the page',
  { skip },
  () => {
    const installed = path.join(home, 'node_modules/pygrad');
    const { name, version, dependencies } = JSON.parse(
      readFileSync(path.join(installed, 'package.json'), 'utf8'),
    );
    assert.deepEqual([name, version, dependencies], ['pygrad', VERSION, undefined]);
    assert.deepEqual(readdirSync(path.join(installed, 'pygrad')), ['core.wasm']);
    const binary = readFileSync(path.join(installed, 'pygrad/core.wasm'));
    assert.ok(
      binary.equals(readFileSync(path.join(ROOT, 'pygrad/core.wasm'))),
      'the package is of another binary: make npm',
    );
    const files = readdirSync(path.join(installed, 'web'));
    for (const wanted of [
      'index.js',
      'engine.js',
      'index.d.ts',
      'ops.d.ts',
      'nn',
      'apart.js',
      'apart.jsx',
    ])
      assert.ok(files.includes(wanted), wanted);
    for (const odd of ['index.html', 'offline.js', 'rooms', 'npm'])
      assert.ok(!files.includes(odd), odd);
  },
);

test('every public name of the library is declared', { skip }, async () => {
  const { load } = await import('../../web/index.js');
  const torch = await load();
  const text = ['index', 'ops', 'nn/layers']
    .map((name) => readFileSync(path.join(home, `node_modules/pygrad/web/${name}.d.ts`), 'utf8'))
    .join('');
  const declared = new Set(text.match(/\b\w+(?=[(:<?])/g));
  const missing = [];
  const visit = (object, where) => {
    for (const [name, value] of Object.entries(object).filter(([name]) => !name.startsWith('_'))) {
      if (!declared.has(name)) missing.push(where + name);
      if (value && Object.getPrototypeOf(value) === Object.prototype)
        visit(value, `${where}${name}.`);
    }
  };
  visit(torch, 'torch.');
  const isPublic = (name) => !name.startsWith('_') && !['constructor', 'alive'].includes(name);
  missing.push(
    ...Object.getOwnPropertyNames(torch.Tensor.prototype).filter(
      (name) => isPublic(name) && !declared.has(name),
    ),
  );
  assert.deepEqual(missing, []);
});

const PROGRAM = `
  const x = torch.tensor([1, 2, 3], { requires_grad: true });
  x.mul(x).sum().backward();
  console.log(JSON.stringify(x.grad.tolist()));
`;

test('Node imports it by name', { skip }, () => {
  writeFileSync(
    path.join(home, 'named.mjs'),
    `import { load } from 'pygrad';\nconst torch = await load();\n${PROGRAM}`,
  );
  assert.equal(run('named.mjs'), '[2,4,6]');
});

test('what the types allow, the engine does', { skip }, async () => {
  const esbuild = createRequire(TOOLS)('esbuild');
  await esbuild.build({
    entryPoints: [path.join(ROOT, 'tests/web/types/sample.ts')],
    outfile: path.join(home, 'sample.mjs'),
    format: 'esm',
    logLevel: 'silent',
  });
  writeFileSync(
    path.join(home, 'run.mjs'),
    "import { sample } from './sample.mjs';\nconsole.log(await sample());",
  );
  assert.match(run('run.mjs'), /^[0-9.]+$/);
});

const README = readFileSync(path.join(ROOT, 'README.md'), 'utf8');
const scripts = Array.from(README.matchAll(/^```js\n(.*?)^```/gms), ([, text]) => text);
const [, recipe] = /^```sh\nesbuild (.*?)\n```/m.exec(README);

test('the first script of the README runs as it is', { skip }, () => {
  writeFileSync(path.join(home, 'first.mjs'), scripts[0]);
  assert.equal(run('first.mjs'), '[ 2, 4, 6 ]');
});

test("esbuild puts all of it into one file by the README's command", { skip }, () => {
  const [input, ...flags] = recipe.split(' ');
  const [, output] = /--outfile=(\S+)/.exec(recipe);
  writeFileSync(
    path.join(home, input),
    scripts.find((text) => text.includes('core.wasm')) + PROGRAM,
  );
  const said = spawnSync(
    path.join(TOOLS, 'node_modules/.bin/esbuild'),
    [input, ...flags, '--log-level=warning'],
    { cwd: home, encoding: 'utf8' },
  );
  assert.deepEqual([said.status, said.stdout + said.stderr], [0, '']);
  const binary = path.join(home, 'node_modules/pygrad/pygrad');
  renameSync(binary, `${binary}-away`);
  try {
    assert.equal(run(output), '[2,4,6]');
  } finally {
    renameSync(`${binary}-away`, binary);
  }
});

test('a bundle that has the address of the binary loads it from there', { skip }, async () => {
  const esbuild = createRequire(TOOLS)('esbuild');
  writeFileSync(
    path.join(home, 'page.mjs'),
    `import { load } from 'pygrad';\nimport wasm from 'pygrad/core.wasm';\nconst torch = await load(wasm);\n${PROGRAM}`,
  );
  const { warnings } = await esbuild.build({
    absWorkingDir: home,
    entryPoints: ['page.mjs'],
    outfile: 'out/page.mjs',
    bundle: true,
    format: 'esm',
    platform: 'browser',
    loader: { '.wasm': 'file' },
    logLevel: 'silent',
  });
  assert.deepEqual(warnings, []);
  assert.equal(run('out/page.mjs'), '[2,4,6]');
});

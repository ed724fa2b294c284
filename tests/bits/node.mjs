// `node tests/bits/node.mjs` prints the hashes of Node.
import { webcrypto } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { compute } from './runs.js';

globalThis.crypto ??= webcrypto;
console.log(JSON.stringify(await compute(readFile)));

// The op sweep beside what PyTorch made of it, under Node.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { load } from '../../web/index.js';
import { agrees, decode, show } from '../../web/rooms/expected.js';
import { dtypesOf, MODES, run } from '../../web/rooms/sweep.js';

const torch = await load();
torch._engine.onWarning = () => {};
const file = JSON.parse(await readFile(new URL('../../web/conformance.json', import.meta.url)));
const expected = decode(file);

test('every case is as PyTorch has it', () => {
  const wrong = [];
  const counts = { compared: 0, open: 0 };
  let k = 0;
  for (const op of file.ops) {
    for (const call of op.calls) {
      for (const mode of Object.keys(MODES)) {
        for (const dtype of dtypesOf(op, mode)) {
          const got = run(torch, file.tensors, op, call, mode, dtype);
          if (got === undefined) continue;
          const wanted = expected.outcome(k, op, mode, dtype);
          counts[wanted === null ? 'open' : 'compared']++;
          if (wanted !== null && !agrees(got, wanted, mode))
            wrong.push(
              `${op.id} ${JSON.stringify(call)} ${mode} ${dtype}\n  ${show(got)}\n  ${show(wanted)}`,
            );
        }
      }
      k++;
    }
  }
  assert.equal(k, file.rows.length);
  assert.deepEqual(wrong.slice(0, 30), [], `${wrong.length} of ${counts.compared} differ`);
  assert.ok(counts.compared > 36_000 && counts.open < 950, JSON.stringify(counts));
});

test('what differs is seen', () => {
  const leaf = (elements, dtype = 'float64', shape = [elements.length]) => [
    { dtype, shape, elements },
  ];
  const same = (a, b, mode = 'forward') => agrees(a, b, mode);
  assert.ok(same(leaf([1, NaN, Infinity, 0]), leaf([1 + 1e-7, NaN, Infinity, -0])));
  assert.ok(
    same('TypeError', 'TypeError') &&
      same([], []) &&
      same([null, 2, 'float32'], [null, 2, 'float32']),
  );
  for (const [a, b] of [
    [leaf([1]), leaf([1 + 1e-5])],
    [leaf([NaN]), leaf([1])],
    [leaf([Infinity]), leaf([-Infinity])],
    [leaf([1]), leaf([1], 'float32')],
    [leaf([1, 2]), leaf([1, 2], 'float64', [1, 2])],
    [leaf([1]), [null]],
    [[null], leaf([1])],
    [leaf([1]), []],
    ['TypeError', leaf([1])],
    [leaf([1]), 'ValueError'],
    [[1], [2]],
    [[true], [false]],
    [leaf([3], 'int64'), leaf([4], 'int64')],
  ])
    assert.ok(!same(a, b), `${JSON.stringify(a)} ${JSON.stringify(b)}`);
});

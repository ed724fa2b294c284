// NaNs that differ in their bits leave the engine in one form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../web/index.js';

const torch = await load();
const KINDS = [
  ['float32', 'int32', Int32Array, 0x7fc00000, -4093],
  ['float64', 'int64', BigInt64Array, 0x7ff8000000000000n, -2251799813685237n],
];

for (const [float, int, Bits, canonical, payload] of KINDS) {
  test(`${float}: elements that leave, in any layout`, () => {
    const odd = torch
      .tensor(
        [
          [payload, 0, 0],
          [0, payload, 0],
        ],
        { dtype: torch[int] },
      )
      .view(torch[float]);
    assert.ok(Number.isNaN(odd.tolist()[0][0]));
    for (const layout of [
      odd,
      odd.t(),
      odd.index(torch.ellipsis, torch.slice(0, 2)),
      odd.index(0, 0),
    ]) {
      const before = torch.live_count();
      const bits = new Bits(layout.toTypedArray().buffer);
      assert.equal(torch.live_count(), before);
      for (const word of bits) assert.ok(word === canonical || !word, word.toString(16));
    }
    assert.equal(
      odd.view(torch[int]).index(0, 0).item(),
      Number(payload),
      'the tensor itself keeps its bits',
    );
  });
}

// Operators and texts of translated layers mean what they mean in Python.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as python from '../../web/nn/python.js';

test('numbers have the text that Python gives them', () => {
  for (const [value, text] of [
    [0.5, '0.5'],
    [1e-5, '1e-05'],
    [0.0001, '0.0001'],
    [1.5e-7, '1.5e-07'],
    [1e16, '1e+16'],
    [123456789012345680, '1.2345678901234568e+17'],
    [1e22, '1e+22'],
    [-2, '-2.0'],
    [1e15, '1000000000000000.0'],
    [NaN, 'nan'],
    [-Infinity, '-inf'],
    [-0, '-0.0'],
  ])
    assert.equal(python.show(value, true), text);
  assert.deepEqual(
    [3, -7, 0.25].map((value) => python.show(value)),
    ['3', '-7', '0.25'],
  );
});

test('sequences, sets and constants have the text that Python gives them', () => {
  for (const [value, text] of [
    [[1, 2], '(1, 2)'],
    [[1], '(1,)'],
    [[], '()'],
    [[null, 2], '(None, 2)'],
    [new Set(['a', 'b']), "{'a', 'b'}"],
    [true, 'True'],
    [false, 'False'],
    [null, 'None'],
    ['text', 'text'],
  ])
    assert.equal(python.show(value), text);
  assert.equal(python.show([1, 2.5], true), '(1.0, 2.5)');
  assert.equal(python.repr('text'), "'text'");
  assert.equal(python.showList([1, 'a']), "[1, 'a']");
});

test('division and rest are rounded down, and zero divides nothing', () => {
  assert.deepEqual(
    [
      python.floorDivide(7, 2),
      python.floorDivide(-7, 2),
      python.modulo(7, -2),
      python.modulo(-7, 2),
      python.divide(1, 4),
    ],
    [3, -4, -1, 1, 0.25],
  );
  for (const divide of [python.floorDivide, python.modulo, python.divide])
    assert.throws(() => divide(1, 0), { name: 'ZeroDivisionError' });
});

test('sequences are compared by their items, and are false if they are empty', () => {
  assert.deepEqual(
    [
      python.equal([1, [2]], [1, [2]]),
      python.equal([1], [1, 2]),
      python.equal([0], 0),
      python.equal(null, null),
    ],
    [true, false, false, true],
  );
  assert.deepEqual([[], [0], 0, '', null, 1].map(python.truth), [
    false,
    true,
    false,
    false,
    false,
    true,
  ]);
  assert.throws(() => python.truth({}), { name: 'TypeError' });
});

test('sequences are repeated, reversed and taken together', () => {
  assert.deepEqual(python.repeat([1, 2], 2), [1, 2, 1, 2]);
  assert.deepEqual(python.repeat([1], -1), []);
  assert.deepEqual(python.ntuple(3, 2), [3, 3]);
  assert.deepEqual(python.ntuple([1, 2], 3), [1, 2]);
  assert.deepEqual(python._reverse_repeat_tuple([1, 2], 2), [2, 2, 1, 1]);
  assert.deepEqual(python.zip([1, 2], [3, 4]), [
    [1, 3],
    [2, 4],
  ]);
  assert.throws(() => python.zip([1], [1, 2]), { name: 'ValueError' });
  assert.deepEqual(
    [[1, 2], new Set([1])].map((whole) => python.contains(whole, 2)),
    [true, false],
  );
});

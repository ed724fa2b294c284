// Elements of every dtype, on their way in and out: `node --test tests/web`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dtypes } from '../../web/tensor.js';
import { torch } from './helpers.mjs';

const names = Object.keys(dtypes);

for (const name of names) {
  const dtype = torch[name];
  const wanted = (v) => (name === 'bool' ? v !== 0 : dtype.is_complex ? { re: v, im: 0 } : v);

  test(`numbers go into ${name} and come back`, () => {
    const x = torch.tensor([[1, 2, 0]], { dtype });
    assert.equal(x.dtype, dtype);
    assert.deepEqual(x.tolist(), [[1, 2, 0].map(wanted)]);
    assert.deepEqual(x.index(0, 1).item(), wanted(2));
    assert.deepEqual(torch.tensor(1, { dtype }).tolist(), wanted(1));
    assert.deepEqual(x.select(1, 0).to(torch.float64).tolist(), [1]);
  });

  test(`a typed array holds the bytes of ${name}`, () => {
    const x = torch.tensor([1, 2, 0], { dtype });
    const array = x.toTypedArray();
    assert.equal(array.constructor, dtype.array);
    assert.equal(array.byteLength, 3 * dtype.itemsize);
    assert.equal(array.length, dtype.is_complex ? 6 : 3);
  });

  test(`what is saved of ${name} on the host comes back`, () => {
    const x = torch.tensor([1, 2], { dtype });
    if (!dtype.is_floating_point && !dtype.is_complex) return;
    x.requires_grad_();
    const y = torch.autograd.graph.save_on_cpu(() => x.mul(x));
    y.backward(torch.ones([2], { dtype }));
    assert.deepEqual(x.grad.tolist(), [2, 4].map(wanted));
  });
}

test('a half is rounded as a cast rounds it', () => {
  const numbers = [1 / 3, 65504, 65520, -1e-8, 2 ** -24, NaN, Infinity];
  for (const dtype of [torch.float16, torch.bfloat16])
    assert.deepEqual(
      torch.tensor(numbers, { dtype }).tolist(),
      torch.tensor(numbers, { dtype: torch.float64 }).to(dtype).to(torch.float64).tolist(),
    );
});

test('a complex number is an argument, an element and a result', () => {
  const z = torch.tensor([{ re: 1, im: 2 }, 3]);
  assert.equal(z.dtype, torch.complex64);
  assert.deepEqual(z.mul({ re: 0, im: 1 }).tolist(), [
    { re: -2, im: 1 },
    { re: 0, im: 3 },
  ]);
  assert.deepEqual(z.index(0).item(), { re: 1, im: 2 });
  assert.deepEqual(torch.full([1], { re: 0, im: -1 }).tolist(), [{ re: 0, im: -1 }]);
  assert.equal(String(z), 'tensor([1.+2.j, 3.+0.j])');
  assert.deepEqual([...z.toTypedArray()], [1, 2, 3, 0]);
});

test('the parts of complex numbers are views that can be set', () => {
  const z = torch.tensor([{ re: 1, im: 2 }, 3]);
  z.real = 5;
  z.imag.mul_(2);
  assert.deepEqual(z.tolist(), [
    { re: 5, im: 4 },
    { re: 5, im: 0 },
  ]);
  z.imag = torch.tensor([7, 8]);
  assert.deepEqual(z.imag.tolist(), [7, 8]);
  assert.deepEqual(z.conj().tolist()[0], { re: 5, im: -7 });
  assert.throws(() => torch.ones([1]).imag, /imag is not implemented for tensors with non-complex/);
});

test('uint64 holds integers beyond a double', () => {
  const most = 2n ** 64n - 1n;
  const x = torch.tensor([most, 1], { dtype: torch.uint64 });
  assert.deepEqual([x.tolist(), x.index(0).item()], [[most, 1], most]);
  assert.throws(() => torch.tensor([-1], { dtype: torch.uint64 }), /negative int to unsigned/);
  assert.throws(() => torch.tensor([2n ** 64n], { dtype: torch.uint64 }), /int too big/);
});

test('typed arrays of unsigned numbers are tensors of their own types', () => {
  for (const array of [new Uint16Array(2), new Uint32Array(2), new BigUint64Array(2)])
    assert.equal(torch.tensor(array).dtype.array, array.constructor);
  assert.equal(torch.tensor(new Uint16Array(2)).dtype, torch.uint16);
});

test('complex numbers are refused where a real one is wanted', () => {
  const z = { re: 1, im: 1 };
  assert.throws(() => torch.tensor([z], { dtype: torch.float32 }), /real number, not complex/);
  assert.throws(() => torch.tensor([z], { dtype: torch.float16 }), /real number, not complex/);
  assert.throws(() => torch.tensor([z], { dtype: torch.int32 }), /'complex' object cannot/);
  assert.throws(() => torch.ones([2]).sum(z), /complex/);
});

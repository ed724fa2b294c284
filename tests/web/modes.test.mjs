// Modes of recording, anomaly mode, forward mode: `node --test tests/web`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaf, leavesNothing, torch, warnings } from './helpers.mjs';

const { autograd } = torch;

test('scopes return what their function does, and end also by a throw', () => {
  assert.equal(
    torch.no_grad(() => torch.is_grad_enabled()),
    false,
  );
  assert.equal(
    torch.no_grad(() => torch.enable_grad(() => leaf(1).mul(2).requires_grad)),
    true,
  );
  assert.equal(
    torch.no_grad(() => autograd.grad_mode(true, () => autograd.is_grad_enabled())),
    true,
  );
  assert.throws(
    () =>
      torch.no_grad(() => {
        throw new Error('mine');
      }),
    /mine/,
  );
  assert.equal(torch.is_grad_enabled(), true);
});

test('set_grad_enabled lasts, or holds while a function runs', () => {
  assert.equal(
    torch.set_grad_enabled(false, () => torch.is_grad_enabled()),
    false,
  );
  assert.equal(torch.is_grad_enabled(), true);
  torch.set_grad_enabled(false);
  assert.equal(torch.is_grad_enabled(), false);
  torch.set_grad_enabled(true);
  autograd.grad_mode(true, () => {
    torch.set_grad_enabled(false);
    assert.equal(torch.is_grad_enabled(), false);
  });
  assert.equal(torch.is_grad_enabled(), true);
  assert.throws(() => torch.set_grad_enabled(1), { name: 'TypeError', message: /must be bool/ });
});

test('inference mode is for good', () => {
  const x = leaf(1);
  const made = torch.inference_mode(() =>
    torch.enable_grad(() => {
      assert.equal(torch.is_inference_mode_enabled(), true);
      assert.equal(
        torch.inference_mode(false, () => torch.is_inference_mode_enabled()),
        false,
      );
      return x.mul(2);
    }),
  );
  assert.deepEqual(
    [made.requires_grad, made.is_inference(), torch.is_inference_mode_enabled()],
    [false, true, false],
  );
  assert.throws(() => made.mul(x), {
    name: 'RuntimeError',
    message: /Inference tensors cannot be saved for backward/,
  });
});

test('set_multithreading_enabled is accepted', () => {
  assert.equal(
    autograd.set_multithreading_enabled(false, () => 3),
    3,
  );
  autograd.set_multithreading_enabled(true);
});

test('a scope refuses what it could not hold', () => {
  assert.throws(() => torch.no_grad(async () => 1), { name: 'TypeError', message: /async/ });
  assert.throws(() => torch.scope(async () => 1), { name: 'TypeError', message: /async/ });
  assert.throws(() => torch.set_grad_enabled(false, 1), {
    name: 'TypeError',
    message: /takes the function/,
  });
  assert.throws(() => torch.no_grad(1), { name: 'TypeError', message: /takes the function/ });
  assert.equal(torch.is_grad_enabled(), true);
});

test('anomaly mode says where the forward of the failing node was', () => {
  function forward() {
    return torch.zeros([1], { requires_grad: true }).sqrt().mul(0);
  }
  const texts = warnings(() => {
    assert.throws(() => autograd.detect_anomaly(() => forward().backward()), {
      name: 'RuntimeError',
      message: "Function 'SqrtBackward0' returned nan values in its 0th output.",
    });
  });
  assert.match(texts[0], /Anomaly Detection has been enabled/);
  assert.match(
    texts[1],
    /^Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n {2}at forward \(.*modes.test.mjs:\d+:\d+\)/,
  );
  assert.doesNotMatch(texts[1], /web\/(engine|tensor)\.js/);
  assert.equal(autograd.is_anomaly_detection_enabled(), false);
});

test('without a forward in the mode there is no trace', () => {
  const y = torch.zeros([1], { requires_grad: true }).sqrt().mul(0);
  const texts = warnings(() =>
    assert.throws(() => autograd.set_detect_anomaly(true, () => y.backward()), /nan values/),
  );
  assert.match(texts[0], /No forward pass information available/);
});

test('check_nan can be left out, and the mode can be switched', () => {
  const y = torch.zeros([1], { requires_grad: true }).sqrt().mul(0);
  autograd.set_detect_anomaly(true, { check_nan: false });
  assert.equal(autograd.is_anomaly_detection_enabled(), true);
  y.backward();
  autograd.set_detect_anomaly(false);
  assert.equal(autograd.is_anomaly_detection_enabled(), false);
});

test('metadata tells where a node was made; check mode names the lines that saved and wrote', () => {
  autograd.set_detect_anomaly(true, () => {
    const y = leaf(1).mul(2);
    assert.match(y.grad_fn.metadata.traceback_[0], /modes.test.mjs/);
    const z = autograd.graph.set_saved_tensor_mode('check', () => {
      const made = y.mul(y);
      y.add_(1);
      return made;
    });
    const texts = warnings(() =>
      assert.throws(() => z.backward(), {
        message:
          /It was saved by MulBackward0 at at .*modes.test.mjs:\d+:\d+.* It was modified at at .*modes.test.mjs/s,
      }),
    );
    assert.equal(texts.length, 1);
  });
});

test('anomaly mode leaves nothing behind', () => {
  const kept = torch._hooks.size;
  leavesNothing(() =>
    autograd.set_detect_anomaly(true, () => {
      leaf(1, 2).exp().sum().backward();
    }),
  );
  assert.equal(torch._hooks.size, kept);
});

test('forward mode carries tangents', () => {
  const { dual_level, make_dual, unpack_dual, enter_dual_level, exit_dual_level } =
    autograd.forward_ad;
  const [x, t] = [torch.tensor([2, 3]), torch.tensor([1, 0])];
  dual_level((level) => {
    assert.equal(level, 0);
    const dual = make_dual(x, t);
    assert.deepEqual(unpack_dual(dual.pow(2)).tangent.tolist(), [4, 0]);
    assert.equal(unpack_dual(dual).tangent, t);
    assert.equal(unpack_dual(x).tangent, null);
  });
  assert.throws(() => make_dual(x, t), { name: 'RuntimeError', message: /no level exists/ });
  assert.throws(() => dual_level(() => dual_level(() => 1)), {
    name: 'RuntimeError',
    message: /Nested forward mode AD is not supported/,
  });
  assert.throws(() => dual_level(() => make_dual(torch.tensor([1n]), t)), {
    name: 'ValueError',
    message: /floating point/,
  });
  enter_dual_level();
  const dual = make_dual(x, t);
  exit_dual_level();
  assert.equal(unpack_dual(dual).tangent, null);
});

test('autocast casts what products are given, once for a parameter, and nothing outside', () => {
  const live = torch.live_count();
  torch.scope(() => {
    const w = torch.ones([2, 2]).requires_grad_();
    const [y, z, loss, other] = torch.autocast(() => {
      assert.equal(torch.is_autocast_enabled(), true);
      const inner = torch.autocast({ enabled: false }, () => w.mm(w));
      return [w.mm(w), w.mm(w), torch.nn.functional.mse_loss(w.mm(w), inner), inner];
    });
    assert.equal(torch.is_autocast_enabled(), false);
    assert.equal(y.dtype, torch.bfloat16);
    assert.equal(loss.dtype, torch.float32);
    assert.equal(other.dtype, torch.float32);
    const cast = (of) => of.grad_fn.next_functions[0][0];
    assert.equal(cast(y).name(), 'ToCopyBackward0');
    assert.equal(cast(y), cast(z));
    y.sum().backward();
    assert.equal(w.grad.dtype, torch.float32);
    assert.equal(torch.autocast({ dtype: torch.float16 }, () => w.mm(w)).dtype, torch.float16);
  });
  assert.equal(torch.live_count(), live);
  assert.throws(() => torch.autocast({ dtype: torch.float32 }, () => 1), /bfloat16 or float16/);
  assert.throws(() => torch.autocast({ enabled: 1 }, () => 1), /must be bool/);
});

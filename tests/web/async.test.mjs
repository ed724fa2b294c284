// Functions that take a callback refuse an async one with an error that says so. The rejection of its promise is not reported.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaf, torch } from './helpers.mjs';

/** A function whose promise is rejected, once the caller is gone. */
const late = async () => {
  await null;
  throw new Error('late');
};
const { autograd, nn } = torch;
const { graph, functional } = autograd;

/** Sums a leaf on the way, so that what `prepare` hung to the leaf or its product runs in the backward. */
function backward(prepare) {
  const x = leaf([1, 2]);
  const y = x.mul(2);
  prepare(x, y);
  y.sum().backward();
}
const custom = (methods) =>
  Object.assign(
    class extends autograd.Function {
      static forward = (ctx, x) => x.mul(2);
      static backward = (ctx, g) => g.mul(2);
    },
    methods,
  );

const REFUSING = {
  'scope': () => torch.scope(late),
  'no_grad': () => torch.no_grad(late),
  'enable_grad': () => torch.enable_grad(late),
  'set_grad_enabled': () => torch.set_grad_enabled(false, late),
  'inference_mode': () => torch.inference_mode(late),
  'autocast': () => torch.autocast(late),
  'detect_anomaly': () => autograd.detect_anomaly(late),
  'set_detect_anomaly': () => autograd.set_detect_anomaly(true, late),
  'dual_level': () => autograd.forward_ad.dual_level(late),
  'profile': () => autograd.profiler.profile(late),
  'record_function': () =>
    autograd.profiler.profile(() => autograd.profiler.record_function('part', late)),
  'saved_tensors_hooks': () =>
    graph.saved_tensors_hooks(
      (x) => x,
      (x) => x,
      late,
    ),
  'save_on_cpu': () => graph.save_on_cpu(late),
  'disable_saved_tensors_hooks': () => graph.disable_saved_tensors_hooks('no', late),
  'set_saved_tensor_mode': () => graph.set_saved_tensor_mode('check', late),
  'register_hook': () => backward((x) => x.register_hook(late)),
  'register_hook of a node': () => backward((x, y) => y.grad_fn.register_hook(late)),
  'register_prehook': () => backward((x, y) => y.grad_fn.register_prehook(late)),
  'unpack': () =>
    graph.saved_tensors_hooks(
      (x) => x,
      late,
      () => leaf([2]).square().sum().backward(),
    ),
  'Function.backward': () =>
    custom({ backward: late })
      .apply(leaf([1]))
      .sum()
      .backward(),
  'Function.jvp': () =>
    autograd.forward_ad.dual_level(() =>
      custom({ jvp: late }).apply(autograd.forward_ad.make_dual(torch.ones([1]), torch.ones([1]))),
    ),
  'gradcheck': () => autograd.gradcheck(late, leaf([1]).double()),
  ...Object.fromEntries(
    Object.keys(functional).map((name) => [name, () => functional[name](late, torch.ones([2]))]),
  ),
};

for (const [name, call] of Object.entries(REFUSING)) {
  test(`${name} refuses an async function`, async () => {
    const unheard = [];
    const note = (reason) => unheard.push(reason);
    process.on('unhandledRejection', note);
    try {
      assert.throws(call);
      await new Promise((done) => setTimeout(done, 5));
      assert.deepEqual(unheard, []);
    } finally {
      process.off('unhandledRejection', note);
    }
  });
}

test('what an async function was doing goes on', async () => {
  let made;
  assert.throws(
    () =>
      torch.scope(async () => {
        const early = torch.ones([1]);
        await null;
        made = torch.ones([2]);
        early.add(1);
      }),
    { name: 'TypeError', message: /a scope ends before an async function does/ },
  );
  await new Promise((done) => setTimeout(done, 5));
  assert.deepEqual(made.tolist(), [1, 1]);
});

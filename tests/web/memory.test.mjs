// What nobody holds is let go of, by scopes and by the garbage collector: `node --test tests/web`.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import v8 from 'node:v8';
import vm from 'node:vm';
import { load } from '../../web/index.js';
import { leaf, leavesNothing, torch } from './helpers.mjs';

v8.setFlagsFromString('--expose_gc');
const gc = vm.runInNewContext('gc');
const { Function, graph } = torch.autograd;

class Scale extends Function {
  static forward(ctx, x) {
    ctx.save_for_backward(x);
    return x.mul(2);
  }

  static backward(ctx, g) {
    assert.equal(ctx.saved_tensors.length, 1);
    return g.mul(2);
  }
}

/** The live tensors and nodes once the collector has nothing more to do. */
async function settled(library = torch) {
  for (let i = 0; i < 5; i++) {
    gc();
    await sleep(5);
    library.live_count();
  }
  return library.live_count();
}

/** A library whose engine has 64 MiB at most. */
async function confined() {
  const { Memory } = WebAssembly;
  WebAssembly.Memory = class extends Memory {
    constructor(limits) {
      super({ ...limits, maximum: 1024 });
    }
  };
  return load().finally(() => {
    WebAssembly.Memory = Memory;
  });
}

const twice = (g) => g.mul(2); // outside of where x is known: a hook that holds its tensor keeps it, until a scope ends

test('the collector lets go of tensors, nodes, hooks and contexts', async () => {
  const before = [await settled(), torch._hooks.size];
  (() => {
    for (let i = 0; i < 50; i++) {
      const x = leaf(1, 2);
      x.register_hook(twice);
      const y = graph.saved_tensors_hooks(
        (t) => t,
        (t) => t,
        () => Scale.apply(x.exp()),
      );
      y.grad_fn.metadata.note = i;
      y.sum().backward();
      assert.ok(x.grad);
    }
  })();
  assert.deepEqual([await settled(), torch._hooks.size], before);
});

test('a ctx is collected with its function unused, or its output alone alive', async () => {
  const before = await settled();
  let y = (() => Scale.apply(leaf(1)))();
  await settled();
  y.sum().backward();
  assert.throws(() => y.grad_fn.saved_tensors, { name: 'RuntimeError' });
  y = null;
  assert.equal(await settled(), before);
});

test('a scope disposes of all but what it returns or keeps', () => {
  const before = torch.live_count();
  const { kept, node } = torch.scope((keep) => {
    const x = leaf(1, 2, 3);
    keep(x);
    const y = x.exp();
    y.sum().backward();
    return { kept: [new Map([['y', y.detach()]])], node: y.grad_fn };
  });
  assert.equal(kept[0].get('y').numel(), 3);
  assert.equal(node.name(), 'ExpBackward0');
  assert.ok(torch.live_count() > before);
});

test('scopes nest, and what they return goes to the outer one', () => {
  leavesNothing(() => {
    const inner = torch.scope(() => torch.ones([2]).mul(3));
    assert.deepEqual(inner.tolist(), [3, 3]);
  });
});

test('use after dispose raises, wherever the tensor stands', () => {
  const x = leaf(1, 2);
  x.dispose();
  x.dispose();
  const uses = [
    () => x.add(1),
    () => torch.ones([2]).add(x),
    () => torch.cat([x]),
    () => x.shape,
    () => x.grad,
    () => x.grad_fn,
    () => x.tolist(),
    () => x.register_hook(() => null),
    () => x.backward(),
    () => torch.autograd.grad(leaf(1).sum(), x),
    () => Scale.apply(x),
    () => graph.get_gradient_edge(x),
    () => torch.save(x),
    () => torch.ones([2]).index(x),
  ];
  for (const use of uses)
    assert.throws(use, { name: 'RuntimeError', message: /disposed/ }, String(use));
  assert.equal(String(x[Symbol.for('nodejs.util.inspect.custom')]()), 'tensor(disposed)');
});

test('a callback that throws leaves the engine whole, wherever it runs', () => {
  const mine = new Error('mine');
  const raise = () => {
    throw mine;
  };
  const programs = [
    () => {
      const x = leaf(1);
      x.register_hook(raise);
      x.mul(2).backward();
    },
    () => {
      const x = leaf(1);
      x.register_post_accumulate_grad_hook(raise);
      x.mul(2).backward();
    },
    () => {
      const y = leaf(1).mul(2);
      y.grad_fn.register_hook(raise);
      y.backward();
    },
    () => {
      const y = leaf(1).mul(2);
      y.grad_fn.register_prehook(raise);
      y.backward();
    },
    () =>
      graph.saved_tensors_hooks(
        raise,
        (t) => t,
        () => leaf(1).exp(),
      ),
    () =>
      graph
        .saved_tensors_hooks(
          (t) => t,
          raise,
          () => leaf(1).exp(),
        )
        .backward(),
    () => graph.register_multi_grad_hook([leaf(1)], raise) && raise(),
    () => torch.autograd.functional.jacobian(raise, leaf(1)),
    () => torch.autograd.forward_ad.dual_level(raise),
    () => torch.autograd.detect_anomaly(raise),
    () => torch.scope(raise),
  ];
  const was = torch._engine.onWarning;
  torch._engine.onWarning = () => {};
  for (const program of programs) {
    leavesNothing(() => assert.throws(program, (error) => error === mine, String(program)));
    assert.equal(torch.is_grad_enabled(), true);
  }
  torch._engine.onWarning = was;
  assert.deepEqual(torch.autograd.grad(leaf(3).square(), [leaf(1)], { allow_unused: true }), [
    null,
  ]);
});

test('a loop without a scope fills the heap, whose error says what lets go, until the event loop turns', async () => {
  const small = await confined();
  const steps = (n) => {
    for (let i = 0; i < n; i++) small.ones([1 << 16]).mul(2);
  };
  const full = {
    name: 'OutOfMemoryError',
    message:
      /^pygrad: can't allocate memory: you tried to allocate 262\d+ bytes; an engine has at most 4 GiB, less where it is limited, of which \d+ bytes are in use: \d+ tensors .* torch\.scope\(.* dispose\(\)/,
  };
  assert.throws(() => steps(1000), full);
  assert.throws(() => steps(1), full);
  gc();
  await sleep(5);
  steps(50);
  for (let i = 0; i < 1000; i++) small.scope(() => steps(1));
});

test('what a scope or the collector lets go of is there for the next tensor, however much it was', async () => {
  const small = await confined();
  const many = () => {
    for (let i = 0; i < 1000; i++) small.ones([1 << 13]);
  };
  const large = () =>
    small.scope(() => {
      small.ones([1 << 23]);
    });
  small.scope(many);
  large();
  many();
  gc();
  await sleep(5);
  large();
});

test('a tensor that no heap could hold is no matter of scopes', () => {
  const message =
    /^pygrad: can't allocate memory: a tensor of shape \[[\d, ]+\] takes \d+ bytes, .* on the device meta it takes none$/;
  assert.throws(() => torch.empty([1e9, 1e9]), { name: 'OutOfMemoryError', message });
  assert.throws(() => torch.empty([2 ** 30]), { name: 'OutOfMemoryError', message });
});

test('arguments that do not fit into the heap say the same', async () => {
  const small = await confined();
  const several = new Array(2 ** 22).fill(small.ones([]));
  assert.throws(() => small.cat(several), { name: 'OutOfMemoryError', message: /torch\.scope/ });
});

// Profiles: `node --test tests/web`.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { leavesNothing, torch } from './helpers.mjs';

const { profile, record_function, emit_nvtx } = torch.autograd.profiler;
const step = () => {
  const x = torch.ones([4, 4], { requires_grad: true });
  x.matmul(x).relu().sum().backward();
};

test('ops and backward nodes appear in order', () => {
  const names = profile(step).function_events.map((event) => event.name);
  assert.deepEqual(
    [...names].filter((name) => !name.includes('evaluate')),
    [
      'aten::ones',
      'aten::matmul',
      'aten::mm',
      'aten::relu',
      'aten::sum',
      'SumBackward0',
      'aten::expand',
      'ReluBackward0',
      'MmBackward0',
      'aten::add',
      'torch::autograd::AccumulateGrad',
    ],
  );
});

test('start and stop, and what runs inside of what', () => {
  const prof = profile({ record_shapes: true, with_stack: true, profile_memory: true });
  assert.ok(prof instanceof profile);
  assert.throws(() => prof.function_events, { name: 'RuntimeError', message: /didn't finish/ });
  prof.start();
  assert.throws(() => profile(step), { name: 'RuntimeError', message: /already enabled/ });
  record_function('outer', () => record_function('inner', step));
  prof.stop();
  const [outer, inner] = prof.function_events;
  assert.deepEqual([outer.name, inner.name, inner.cpu_parent], ['outer', 'inner', outer]);
  assert.equal(outer.self_cpu_time_total, outer.cpu_time_total - inner.cpu_time_total);
  const matmul = prof.function_events.find((event) => event.name === 'aten::matmul');
  assert.deepEqual(matmul.input_shapes, [
    [4, 4],
    [4, 4],
  ]);
  assert.match(matmul.stack[0], /at step .*profiler.test.mjs/);
  assert.ok(matmul.cpu_memory_usage > 0);
});

test('averages, tables and traces', () => {
  const prof = profile(
    () => {
      step();
      step();
    },
    { record_shapes: true },
  );
  const averages = prof.key_averages();
  assert.equal(averages.find((each) => each.key === 'aten::relu').count, 2);
  const table = prof
    .key_averages({ group_by_input_shape: true })
    .table({ sort_by: 'self_cpu_time_total', row_limit: 3, header: 'steps' });
  assert.match(table, /^=+\nsteps\n-+.*\n +Name +Self CPU %.*# of Calls +Input Shapes/);
  assert.equal(table.split('\n').length, 2 + 3 + 3 + 1 + 1 + 1);
  const { traceEvents } = JSON.parse(prof.export_chrome_trace());
  const [from, to] = ['s', 'f'].map((ph) => traceEvents.filter((event) => event.ph === ph).length);
  assert.ok(from > 0 && from === to);
});

test('a trace goes to the file of a path, with what is told of it', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pygrad-'));
  try {
    const file = path.join(folder, 'trace.json');
    const text = profile(step).export_chrome_trace(file, { run: '"first"', count: '3' });
    assert.equal(readFileSync(file, 'utf8'), text);
    const { run, count, traceEvents } = JSON.parse(text);
    assert.deepEqual([run, count, traceEvents.length > 0], ['first', 3, true]);
    assert.throws(() => profile(step).export_chrome_trace(`${file}.gz`), {
      name: 'NotImplementedError',
      message: /not compressed/,
    });
    assert.throws(() => profile(step).export_chrome_trace(3), {
      name: 'TypeError',
      message: /a path is wanted, not int/,
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('memory, operations and callers have columns', () => {
  const prof = profile(step, { profile_memory: true, with_flops: true, with_stack: true });
  assert.equal(
    prof.function_events.find((event) => event.name === 'aten::matmul').flops,
    2 * 4 * 4 * 4,
  );
  assert.match(
    prof.table(),
    / CPU Mem  Self CPU Mem    # of Calls  +Input Shapes  Source Location +Total FLOPs  \n/,
  );
  assert.match(
    prof.table({ top_level_events_only: true, time_unit: 'ms' }),
    /^=+\nThis report only display top-level ops statistics\n-+/,
  );
  assert.throws(() => prof.table({ time_unit: 'h' }), {
    name: 'ValueError',
    message: /time_unit is one of s, ms, us, not 'h'/,
  });
});

test('a profile that fails ends all the same', () => {
  assert.throws(
    () =>
      profile(() => {
        throw new Error('mine');
      }),
    /mine/,
  );
  leavesNothing(() => {
    profile(step);
  });
  assert.throws(() => profile({ use_cuda: true }), { name: 'NotImplementedError' });
  assert.equal(profile(step, { enabled: false }).function_events.length, 0);
});

test('emit_nvtx is accepted in a profile', () => {
  assert.throws(() => emit_nvtx(() => 1), {
    name: 'RuntimeError',
    message: /NVTX is not available/,
  });
  let result;
  profile(() => {
    result = emit_nvtx(() => 7, { record_shapes: true });
  });
  assert.equal(result, 7);
});

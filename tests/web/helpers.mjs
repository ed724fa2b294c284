// What the tests of the JavaScript front share.
import assert from 'node:assert/strict';
import { load } from '../../web/index.js';

export const torch = await load();
/** A float64 leaf that requires grad. */
export const leaf = (...values) =>
  torch.tensor(values, { requires_grad: true, dtype: torch.float64 });

/** Runs fn in a scope; it must leave as many tensors and nodes as there were. */
export function leavesNothing(fn) {
  const before = torch.live_count();
  try {
    return torch.scope(() => {
      fn();
    });
  } finally {
    assert.equal(torch.live_count(), before);
  }
}

/** The warnings that fn causes. */
export function warnings(fn) {
  const texts = [];
  const was = torch._engine.onWarning;
  torch._engine.onWarning = (text) => texts.push(text);
  try {
    fn();
  } finally {
    torch._engine.onWarning = was;
  }
  return texts;
}

/** The Mutate room's engine: y = h h, h = tanh(w x), with writes between forward and backward. */
import { load } from '../index.js';
import { serve } from './serve.js';

let torch;
const POINTS = 161;

/** The forward; w and x are leaves. */
function forward(w, x) {
  const leaf = (value) => torch.tensor([value], { requires_grad: true, dtype: torch.float64 });
  const tensors = { w: leaf(w), x: leaf(x) };
  tensors.h = tensors.w.mul(tensors.x).tanh();
  tensors.y = tensors.h.mul(tensors.h);
  return tensors;
}

/** Writes values over tensors in place: {h: 1.6} */
function write(tensors, writes) {
  torch.no_grad(() => {
    for (const [name, value] of Object.entries(writes)) tensors[name].fill_(value);
  });
}

const gradients = ({ w, x }) => ({ w: w.grad.item(), x: x.grad.item() });

/** The backward of an engine that keeps the tensors themselves instead of snapshots: it uses their present values. */
function aliasedGradients({ w, x, h }) {
  const [W, X, H] = [w.item(), x.item(), h.item()];
  const through = 2 * H * (1 - H * H);
  return { w: through * X, x: through * W };
}

/** PyTorch's error, or null if there is none. */
function checkModeError(w, x, writes) {
  try {
    torch.autograd.graph.set_saved_tensor_mode('check', () => {
      const tensors = forward(w, x);
      write(tensors, writes);
      tensors.y.backward();
    });
    return null;
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}

function experiment({ w, x, writes }) {
  return torch.scope(() => {
    const calm = forward(w, x);
    calm.y.backward();
    const mutated = forward(w, x);
    const saved = ['w', 'x', 'h'].map((name) => ({
      name,
      value: mutated[name].item(),
      version: mutated[name]._version,
    }));
    write(mutated, writes);
    for (const each of saved)
      Object.assign(each, {
        now: mutated[each.name].item(),
        newVersion: mutated[each.name]._version,
      });
    const alias = aliasedGradients(mutated);
    mutated.y.backward();
    const along = torch.linspace(-2, 2, POINTS, { dtype: torch.float64 });
    return {
      calm: gradients(calm),
      mutated: gradients(mutated),
      aliased: alias,
      saved,
      y: calm.y.item(),
      curve: along.mul(x).tanh().square().tolist(),
      message: checkModeError(w, x, writes),
    };
  });
}

serve({
  async start() {
    torch = await load();
  },
  experiment,
});

// Makes and runs each layer of layers.json, and saves what was seen; test_described_layers.py does the same in Python.
// `node tests/web/layers.mjs FILE`.
import { readFileSync, writeFileSync } from 'node:fs';
import { load } from '../../web/index.js';

const torch = await load();
torch._engine.onWarning = () => {};
const samples = JSON.parse(readFileSync(new URL('layers.json', import.meta.url)));

/** An argument of a layer: a tensor, a dtype in an object of options, or the value itself. */
function argument(value) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  if (value.values) return torch.tensor(value.values);
  const found = Object.entries(value).map(([key, each]) => [
    key,
    key === 'dtype' ? torch[each] : argument(each),
  ]);
  return Object.fromEntries(found);
}

/** An input: integers, given floats, or random ones of a shape, which are leaves. */
function input(spec, dtype) {
  if (spec.ints) return torch.tensor(spec.ints, { dtype: torch.int64 });
  const made = spec.values
    ? torch.tensor(spec.values, { dtype })
    : torch.randn(spec.split(' ').map(Number), { dtype });
  return made.requires_grad_(!spec.values);
}

const plain = (tensor) => tensor.to_dense().detach();

/** What a layer computes in training: its outputs, gradients and buffers. */
function run(layer, { of }, dtype) {
  torch.manual_seed(1);
  const inputs = of.map((spec) => input(spec, dtype));
  const outputs = [layer.call(...inputs.map((x) => (x.requires_grad ? x.clone() : x)))].flat(2);
  const learned = outputs.filter((y) => y.requires_grad);
  if (learned.length) learned[0].mul(learned[0]).sum().backward();
  const grads = [...inputs, ...layer.parameters()].filter((x) => x.grad);
  return { outputs: outputs.map(plain), gradients: grads.map((x) => plain(x.grad)) };
}

/** The name and words of the error that a call raises. */
function problem(call) {
  try {
    call();
  } catch (error) {
    return [error.name, error.message];
  }
  return [];
}

const seen = {};
for (const [name, sample] of Object.entries(samples)) {
  const Layer = torch.nn[name];
  seen[name] = { made: [], refused: [] };
  const calls = [sample, ...(sample.also ?? [])];
  for (const [own, given] of calls.flatMap((own) => own.with.map((each) => [own, each]))) {
    torch.manual_seed(0);
    const args = given.map(argument);
    const layer = new Layer(...args);
    const trained = run(layer, own, args.at(-1)?.dtype ?? torch.float32);
    const state = Object.entries(layer.state_dict());
    seen[name].made.push({
      text: String(layer),
      names: state.map(([key]) => key),
      state: state.map(([, tensor]) => tensor),
      trained,
      evaluated: run(layer.eval(), own, args.at(-1)?.dtype ?? torch.float32),
    });
  }
  for (const given of sample.fails ?? [])
    seen[name].refused.push(problem(() => new Layer(...given.map(argument))));
  for (const spec of sample.refuses ?? [])
    seen[name].refused.push(problem(() => new Layer(...sample.with[0]).call(input(spec))));
}
writeFileSync(process.argv[2], torch.save(seen));

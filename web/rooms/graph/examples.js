/** Example programs, in the style of torch.js. */
export const EXAMPLES = {
  'An expression': `// Edit me: I run as you type.
const x = torch.tensor(0.8, { requires_grad: true });
const w = torch.tensor(-1.5, { requires_grad: true });

const a = x.mul(w);         // saves x and w
const h = a.tanh();         // saves its result
const y = h.mul(h).add(x);  // x again: gradients add

x.register_hook((g) => print('gradient of x:', g));
y.backward();
print(x.grad, w.grad);
`,
  'A multilayer perceptron': `const { nn } = torch;
torch.manual_seed(0);
const model = new nn.Sequential(
  new nn.Linear(4, 8), new nn.Tanh(), new nn.Linear(8, 3),
);
const inputs = torch.randn([5, 4]);
const labels = torch.tensor([0n, 2n, 1n, 1n, 0n]);

const scores = model.call(inputs);
const loss = nn.functional.cross_entropy(scores, labels);
loss.backward();

new torch.optim.SGD(model.parameters(), { lr: 0.1 }).step();
print('loss', loss.item());
`,
  'Attention': `torch.manual_seed(0);
const q = torch.randn([4, 8], { requires_grad: true });
const k = torch.randn([4, 8], { requires_grad: true });
const v = torch.randn([4, 8], { requires_grad: true });

const scores = q.matmul(k.T).div(Math.sqrt(8));
const mask = torch.ones([4, 4]).triu(1).to(torch.bool);
const weights = scores.masked_fill(mask, -Infinity).softmax(-1);
const out = weights.matmul(v);

print(weights);
out.square().sum().backward();
`,
  'Double backward': `const x = torch.tensor([0.5, 1, 2], { requires_grad: true });
const y = x.pow(3).sum();

// The first gradient is itself part of a graph ...
const [g] = torch.autograd.grad(y, x, { create_graph: true });
print("y'  =", g);     // 3 x^2

// ... through which the second backward goes.
const penalty = g.square().sum();
penalty.backward();
print('d/dx |grad|^2 =', x.grad);  // 36 x^3
`,
  'A custom Function': `class Clip extends torch.autograd.Function {
  static forward(ctx, x, limit) {
    ctx.save_for_backward(x);
    ctx.limit = limit;
    return x.clamp(-limit, limit);
  }

  static backward(ctx, g) {
    const [x] = ctx.saved_tensors;
    const outside = x.abs().gt(ctx.limit);
    return [g.masked_fill(outside, 0), null];
  }
}

const x = torch.tensor([-3, -0.5, 0.5, 3], { requires_grad: true });
const y = Clip.apply(x, 1);
y.grad_fn.register_hook((inputs) => print('Clip sends', inputs[0]));
y.mul(torch.tensor([1, 2, 3, 4])).sum().backward();
print(x.grad);
`,
  'An in-place view': `const x = torch.ones([2, 3], { requires_grad: true });
const a = x.mul(2);
const row = a.index(0);  // a view of a

const s = a.sin();       // saves a as it is now ...
row.mul_(10);            // ... and this writes over it

// The write is part of a's history (CopySlices), and
// sin still has the a that it saved, at version 0.
const y = a.add(s).sum();
y.backward();
print(x.grad);
`,
  'Saved-tensor hooks': `// What is saved for backward is kept in eight bits.
function pack(t) {
  const scale = t.abs().max().div(127);
  print('packs', t.shape);
  return { bytes: t.div(scale).round().to(torch.int8), scale };
}
const unpack = ({ bytes, scale }) => bytes.mul(scale);

const x = torch.linspace(-2, 2, 5).requires_grad_();
const y = torch.autograd.graph.saved_tensors_hooks(
  pack, unpack, () => x.sin().exp().sum(),
);
y.backward();
print(x.grad);                    // nearly ...
print(x.cos().mul(x.sin().exp())); // ... this
`,
};

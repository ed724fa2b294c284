// Calls as they are meant: all of this has the types that it says. `make types` checks it, and package.test.mjs
// runs it, so that no declared call is one that the engine refuses.
import { load, type DType, type Module, type Parameter, type Tensor } from 'pygrad';

export async function sample(): Promise<number> {
  const torch = await load();
  const { nn, optim, autograd } = torch;
  const F = nn.functional;

  // Making tensors.
  torch.manual_seed(1);
  const x: Tensor = torch.tensor([[1, 2, 3], [4, 5, 6]], { requires_grad: true });
  const ints = torch.tensor([3n, 1n, 2n]);
  const typed = torch.tensor(new Float64Array(6), { shape: [2, 3] });
  const kind: DType = typed.dtype;
  const made: Tensor[] = [
    torch.zeros([2, 3]), torch.zeros(2, 3), torch.zeros(2, 3, { dtype: torch.float64 }), torch.ones([2], { requires_grad: true }),
    torch.full([2, 2], 7), torch.arange(5), torch.arange(1, 5, { dtype: torch.float32 }), torch.linspace(0, 1, 5), torch.eye(3),
    torch.rand([2, 2]), torch.randn(2, 3), torch.randint(10, [4]), torch.randint(0, 10, [4]), torch.randperm(4),
    torch.empty([0]), torch.zeros_like(x, { dtype: kind }),
  ];

  // Arithmetic: a tensor or a number, positions or options.
  const y = x.add(1).mul(x).sub(x, { alpha: 2 }).div(3).pow(2);
  const mixed: Tensor = torch.where(torch.gt(x, 2), x, 0);
  const more = torch.add(x, y, { alpha: 0.5 }).neg().exp().log().sqrt().clamp(0, 10).clamp({ min: 1 });
  torch.mul(torch.ones([2]), 3, { out: torch.empty([2]) });
  more.detach().add_(1).mul_(2).zero_();
  const logical: Tensor = torch.logical_and(x.gt(1), x.le(3)).logical_not();

  // Reductions, and results with names.
  const total: Tensor = x.sum();
  const rows = [x.sum(1), x.sum([0, 1], { keepdim: true }), x.sum({ dim: 0 }), x.mean(1, true), x.std({ dim: 0 }), x.amax(1)];
  const { values, indices } = torch.max(x, 1);
  const [sorted, order] = torch.sort(x, { dim: 1, descending: true });
  const top: Tensor = torch.topk(x, 2).values;
  const [spread, middle]: [Tensor, Tensor] = torch.std_mean(x);
  const decomposed = torch.linalg.svd(torch.eye(2));
  const parts: Tensor[] = [decomposed.U, decomposed.S, decomposed.Vh, torch.linalg.inv(torch.eye(2)), torch.special.expit(x)];
  parts.push(values, indices, sorted, order, top, spread, middle, torch.linalg.norm(x, { dim: 1 }), torch.cumsum(x, { dim: 0 }));
  const flags: boolean[] = [torch.allclose(x, x), torch.equal(x, x), x.is_contiguous(), x.requires_grad];

  // Shapes.
  const shape: number[] = x.shape;
  const size: number = x.size(0) + x.size().length + x.numel() + x.ndim + x.dim();
  const moved = x.reshape([3, 2]).reshape(-1).view(2, 3).transpose(0, 1).permute([1, 0]).unsqueeze(0).squeeze(0).expand([2, 3]);
  const cut: Tensor = x.index(0, torch.slice(0, 2)).add(x.index(torch.ellipsis, 1).sum());
  const pieces: Tensor[] = [...torch.split(torch.arange(6), 2), ...torch.chunk(torch.arange(6), 3), ...torch.unbind(x)];
  const joined = torch.cat([x, y], 1).add(torch.stack([x, y]).sum()).flatten().to(torch.float64);
  const grid = torch.meshgrid(torch.arange(2), torch.arange(3), { indexing: 'ij' });
  const picked = torch.gather(x, 1, torch.tensor([[0n], [1n]])).add(x.index_select(1, ints.sub(1)).sum());
  const product = torch.einsum('ij,kj->ik', x, y).add(torch.matmul(x, y.T)).add(x.mm(y.mT));

  // Differentiation, in scopes that are functions.
  total.backward();
  const gradient: number[][] = x.grad!.tolist();
  x.grad = null;
  const [first] = autograd.grad(x.pow(3).sum(), [x], { create_graph: true });
  autograd.backward(first.sum(), { inputs: [x] });
  const hook = x.register_hook((g) => g.mul(2));
  hook.remove();
  class Cube extends autograd.Function {
    static forward(ctx: any, a: Tensor): Tensor {
      ctx.save_for_backward(a);
      return a.pow(3);
    }

    static backward(ctx: any, grad: Tensor): Tensor {
      const [a] = ctx.saved_tensors;
      return grad.mul(a.square()).mul(3);
    }
  }
  Cube.apply(x).sum().backward();
  const node: string = x.exp().grad_fn!.name();
  const squared = autograd.graph.saved_tensors_hooks((t) => t.detach(), (t: Tensor) => t, () => x.mul(x));
  const number: number = torch.no_grad(() => x.sum().item() as number);
  const jacobian: Tensor = autograd.functional.jacobian((a) => a.pow(2), x);
  const both: Tensor[] = autograd.functional.jacobian((a, b) => a.mul(b).sum(), [x, typed]);
  const always: true = autograd.graph.allow_mutation_on_saved_tensors();
  const kept = torch.scope((keep) => ({ a: keep(torch.ones([1])), b: x.exp() }));
  kept.a.dispose();

  // Layers, losses, optimizers.
  class Net extends nn.Module {
    hidden = new nn.Linear(3, 8, { bias: true });
    output = new nn.Linear(8, 2);

    forward(input: Tensor): Tensor {
      return this.output.forward(F.dropout(F.relu(this.hidden.forward(input)), 0.1, this.training));
    }
  }
  const net = new Net();
  const convolution: Module = new nn.Sequential(new nn.Conv2d(1, 2, 3, { padding: 1 }), new nn.ReLU(), new nn.MaxPool2d(2), new nn.Flatten());
  class Scaled extends nn.Module {
    scale = new nn.Parameter(torch.ones([3]));
    frozen = new nn.Parameter(torch.ones([3]), { requires_grad: false });

    constructor() {
      super();
      this.register_buffer('count', torch.zeros([]), { persistent: false });
      this.register_parameter('absent', null);
      this.add_module('inner', new nn.Linear(3, 3, false, { dtype: torch.float32 }));
    }
  }
  const scaled = new Scaled();
  const names: string[] = scaled.named_parameters({ prefix: 'scaled' }).map(([name]) => name).concat(scaled.named_buffers().map(([name]) => name));
  const learned: Parameter[] = scaled.requires_grad_(true).parameters(false);
  const more_layers: Module[] = [
    new nn.Conv2d(1, 8, 3, 1, 1), new nn.Conv2d(1, 8, [3, 3], 1, { padding: 'same', bias: false }), new nn.Embedding(4, 2, { padding_idx: 0 }),
    nn.Embedding.from_pretrained(torch.eye(2), { freeze: false }), new nn.LayerNorm([3], 1e-5, { bias: false }), new nn.Dropout(0.5, true),
    new nn.MaxPool2d(2, { stride: 1 }), new nn.AvgPool2d({ kernel_size: 2 }), new nn.GELU('tanh'), new nn.Softmax({ dim: 1 }), new nn.Flatten(1, -1),
    new nn.MSELoss({ reduction: 'sum' }), new nn.CrossEntropyLoss(null, { ignore_index: -1 }), new nn.Sequential({ first: new nn.ReLU(true) }),
    new nn.Conv1d(4, 2, 3, { padding: 'same' }), new nn.ConvTranspose3d(4, 2, [2, 2, 2], 2), new nn.BatchNorm2d(3, { momentum: null, bias: false }),
    new nn.GroupNorm(2, 4, 1e-5, true, { bias: false }), new nn.InstanceNorm1d(3, { affine: true }), new nn.RMSNorm([3], { eps: null }),
    new nn.AdaptiveAvgPool2d([2, null]), new nn.FractionalMaxPool2d(2, { output_ratio: [0.5, 0.25] }), new nn.ConstantPad2d([1, 2, 1, 2], 0.5),
    new nn.Upsample({ scale_factor: [2, 1.5], mode: 'bilinear' }), new nn.EmbeddingBag(3, 4, { mode: 'sum' }), new nn.Identity(1, 'anything'),
    new nn.GaussianNLLLoss({ full: true }), new nn.CTCLoss(0, 'sum', { zero_infinity: true }), new nn.Unflatten(1, [2, 3]),
    new nn.LSTM(3, 4, 2, { bidirectional: true }), new nn.RNN(3, 4, { nonlinearity: 'relu' }), new nn.MultiheadAttention(4, 2, { batch_first: true }),
  ];
  const list = new nn.ModuleList([new nn.ReLU()]).append(new nn.Tanh());
  const heads = new nn.ModuleDict({ left: list.at(0) });
  heads.update([['right', list.pop(1)]]);
  const [attended]: [Tensor, Tensor | null] = new nn.MultiheadAttention(3, 1).forward(x, x, x, { need_weights: false });
  new nn.BatchNorm1d(3).reset_running_stats();
  class Bent extends nn.Linear {
    constructor(size: number) {
      super(size, size, { bias: false });
    }

    forward(input: Tensor): Tensor {
      return super.forward(input).relu();
    }
  }
  const bent: Tensor = new Bent(3).call(x);
  const [hidden, cell]: Tensor[] = new nn.LSTMCell(3, 4).forward(x);
  const held: number = list.length + heads.keys().length + new nn.ParameterList([x, 3]).length + new nn.ParameterDict({ x }).length;
  const bilinear: Tensor = new nn.Bilinear(3, 3, 2).forward(x, x);
  const unpooled: Tensor = new nn.MaxUnpool1d(2).forward(torch.ones([1, 1]), torch.tensor([[1n]]), { output_size: [3] });
  const rate: number = new nn.Dropout3d(0.25).p;
  const images = F.pad(torch.rand([1, 1, 4, 4]), [1, 1, 1, 1], { mode: 'constant', value: 0 });
  const features = F.conv2d(images, torch.rand([1, 1, 3, 3]), { padding: 1 }).add(F.avg_pool2d(images, 3, { stride: 1, padding: 1 }));
  const optimizer = new optim.Adam(net.parameters(), { lr: 1e-2, betas: [0.9, 0.99] });
  const labels = torch.tensor([0n, 1n]);
  const criterion = new nn.CrossEntropyLoss({ label_smoothing: 0.1 });
  optimizer.zero_grad({ set_to_none: false });
  const loss: Tensor = criterion.call(net.call(x.detach()), labels);
  const others = [F.cross_entropy(net.forward(x), labels, { reduction: 'sum' }), F.mse_loss(y, x), F.layer_norm(x, [3]), F.softmax(x, 1),
    F.log_softmax(x, { dim: 1 }), F.gelu(x, { approximate: 'tanh' }), F.one_hot(labels, 2), F.linear(x, torch.eye(3)), F.normalize(x)];
  loss.backward();
  optimizer.step();
  const { missing_keys, unexpected_keys } = net.load_state_dict(net.state_dict(), { strict: false });
  const bytes: Uint8Array = torch.save(net.state_dict());
  torch.load(bytes, { map_location: 'cpu' });
  const grouped = new optim.SGD([{ params: net.parameters(), momentum: 0.9 }], 0.1, { nesterov: false });
  grouped.add_param_group({ params: scaled.scale, lr: 1 });
  const closed: number = grouped.step(() => 1);
  new optim.RMSprop(net.parameters(), 0.1, { momentum: 0.5, centered: true }).step();
  new optim.Adafactor(net.parameters(), { eps: [null, 1e-3] }).add_param_group({ params: [scaled.scale] });
  const found: Tensor = new optim.LBFGS(net.parameters(), { line_search_fn: 'strong_wolfe' }).step(() => loss);
  new optim.AdamW(net.named_parameters(), 1e-3, [0.9, 0.99], 1e-8, { amsgrad: true }).step();

  // What went wrong has PyTorch's name.
  try {
    x.matmul(x);
  } catch (error) {
    if (!(error instanceof torch.errors.RuntimeError)) throw error;
  }

  const all = [mixed, more, squared, logical, moved, cut, joined, picked, product, jacobian, features, bent, attended, hidden, cell, bilinear, unpooled, ...made, ...rows, ...parts, ...pieces, ...grid,
    ...both, ...others];
  return all.length + node.length + flags.length + shape.length + size + gradient.length + number + Number(always) + convolution.parameters().length
    + names.length + learned.length + more_layers.length + missing_keys.length + unexpected_keys.length + closed + rate + held;
}

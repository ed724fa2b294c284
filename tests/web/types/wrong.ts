// Calls that are wrong: each line below a mark is an error, or tsc complains of the mark.
import type { Tensor, Torch } from 'pygrad';

export function wrong(torch: Torch, x: Tensor): void {
  const { nn, optim, autograd } = torch;
  const F = nn.functional;

  // @ts-expect-error no such function
  torch.ad(x, 1);
  // @ts-expect-error no such method
  x.addition(1);
  // @ts-expect-error an operand is a tensor or a number
  torch.add(x, 'one');
  // @ts-expect-error so for methods
  x.mul([1, 2]);
  // @ts-expect-error an operand is missing
  torch.matmul(x);
  // @ts-expect-error one too many
  x.relu(x, x);
  // @ts-expect-error a misspelt option
  x.sum(1, { keepdims: true });
  // @ts-expect-error an option of another type
  x.sum(1, { keepdim: 'yes' });
  // @ts-expect-error an option that was given by position already
  x.sum(1, true, { keepdim: true });
  // @ts-expect-error out is an option of functions, not of methods
  x.exp({ out: x });
  // @ts-expect-error nor of in-place functions
  torch.relu_(x, { out: x });
  // @ts-expect-error a dtype is no text
  torch.zeros([2], { dtype: 'float32' });
  // @ts-expect-error sizes are numbers
  torch.zeros(['2', '3']);
  // @ts-expect-error a required argument is missing
  x.transpose(0);
  // @ts-expect-error also among the options
  torch.topk(x, { largest: true });
  // @ts-expect-error tensors come in an array
  torch.cat(x, x);
  // @ts-expect-error of tensors
  torch.stack([1, 2]);
  // @ts-expect-error max of a dimension has no such part
  torch.max(x, 1).value;
  // @ts-expect-error max of all has none
  torch.max(x).value;
  // @ts-expect-error nor have the results of sort
  const { values, order } = torch.sort(x);
  // @ts-expect-error a number is no tensor
  const t: Tensor = torch.numel(x);
  // @ts-expect-error a tensor is no number
  const n: number = x.sum();
  // @ts-expect-error a gradient may be null
  x.grad.add(1);
  // @ts-expect-error shape is made by the engine
  x.shape = [2];
  // @ts-expect-error requires_grad is a flag
  x.requires_grad = 'yes';
  // @ts-expect-error the name of the memory format
  x.contiguous({ memory_format: 'channels_first' });
  // @ts-expect-error no nested text
  torch.tensor([['a']]);
  // @ts-expect-error an option that tensor() does not have
  torch.tensor([1], { device_: 'cpu' });
  // @ts-expect-error conv2d needs a weight
  F.conv2d(x);
  // @ts-expect-error its stride is a number, or several
  F.conv2d(x, x, { stride: '2' });
  // @ts-expect-error a misspelt option of a loss
  F.cross_entropy(x, x, { reduce_: 'sum' });
  // @ts-expect-error functions of linalg are there
  torch.svdvals_(x);
  // @ts-expect-error linalg.solve takes two
  torch.linalg.solve(x);
  // @ts-expect-error special functions take tensors
  torch.special.erf('x');
  // @ts-expect-error a scope takes a function
  torch.no_grad(x);
  // @ts-expect-error a mode is a boolean
  autograd.grad_mode('on', () => x);
  // @ts-expect-error the result is the function's
  const m: number = torch.enable_grad(() => x);
  // @ts-expect-error roots are tensors
  autograd.backward(3);
  // @ts-expect-error no such option
  autograd.grad(x, x, { retain: true });
  // @ts-expect-error no such option
  x.backward({ retain: true });
  // @ts-expect-error the Jacobian of one input is a tensor
  const j: Tensor[] = autograd.functional.jacobian((v) => v.exp(), x);
  // @ts-expect-error a hook takes a gradient
  x.register_hook(3);
  // @ts-expect-error features are numbers
  new nn.Linear('3', 2);
  // @ts-expect-error no such option
  new nn.Linear(3, 2, { biases: false });
  // @ts-expect-error a layer needs its sizes
  new nn.Conv2d(1, 2);
  // @ts-expect-error no such layer
  new nn.Linearly(3, 2);
  // @ts-expect-error a list of modules holds modules
  new nn.ModuleList([3]);
  // @ts-expect-error an option that the layer's class in Python lacks
  new nn.BatchNorm2d(3, { epsilon: 1 });
  // @ts-expect-error an input is missing
  new nn.Bilinear(3, 3, 2).forward(x);
  // @ts-expect-error layers are modules
  new nn.Sequential(new nn.ReLU(), 3);
  // @ts-expect-error parameters are tensors
  new optim.SGD([1, 2], { lr: 0.1 });
  // @ts-expect-error no such option
  new optim.Adam([x], { rate: 0.1 });
  // @ts-expect-error no such option of this optimizer
  new optim.Rprop([x], { betas: [0.9, 0.99] });
  // @ts-expect-error betas are two
  new optim.Adam([x], { betas: [0.9] });
  // @ts-expect-error no such option beside one that is
  new nn.Linear(3, 2, { bias: true, biases: false });
  // @ts-expect-error an option that was given by position already
  new nn.Linear(3, 2, true, { bias: false });
  // @ts-expect-error one argument too many
  new nn.Dropout(0.5, false, true);
  // @ts-expect-error an option that cannot stand in order
  new optim.SGD([x], 0.1, 0, 0, 0, false, true);
  // @ts-expect-error a parameter is made of a tensor
  new nn.Parameter([1, 2]);
  // @ts-expect-error a plain tensor is no parameter
  new nn.Module().register_parameter('w', x);
  // @ts-expect-error no such option
  new nn.Module().load_state_dict({}, { stric: false });
  // @ts-expect-error nobody makes tensors of handles
  new torch.Tensor(3);
}

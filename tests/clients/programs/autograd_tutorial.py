"""No package: what PyTorch's pages on autograd do: graphs, hooks, functions, transforms."""

import torch
from torch import nn
from torch.autograd.functional import hessian, jacobian
from torch.func import functional_call, grad, jacrev, vmap

torch.manual_seed(0)
x = torch.ones(5)
w = torch.randn(5, 3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
z = x @ w + b
loss = nn.functional.binary_cross_entropy_with_logits(z, torch.zeros(3))
print(z.grad_fn.name(), loss.grad_fn.name(), type(z.grad_fn).__name__)
loss.backward()
print(w.grad, b.grad)


class Legendre(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * (5 * x**3 - 3 * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 1.5 * (5 * x**2 - 1)


t = torch.linspace(-1, 1, 5, dtype=torch.double, requires_grad=True)
print(torch.autograd.gradcheck(Legendre.apply, t), Legendre.apply(t))
t.register_hook(lambda g: g * 2)
Legendre.apply(t).sum().backward()
print(t.grad)
with torch.autograd.graph.saved_tensors_hooks(lambda v: v.numpy(), torch.from_numpy):
    y = (t * t).exp().sum()
print(torch.autograd.grad(y, t))

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
params = {name: p.detach() for name, p in model.named_parameters()}
data, target = torch.randn(6, 3), torch.randn(6, 1)


def sample_loss(params, x, y):
    return nn.functional.mse_loss(functional_call(model, params, (x[None],)), y[None])


per_sample = vmap(grad(sample_loss), in_dims=(None, 0, 0))(params, data, target)
print({name: value.norm().item() for name, value in per_sample.items()})
print(jacrev(lambda v: v.sin() * v.sum())(torch.arange(3.0)))
print(hessian(lambda v: (v**3).sum(), torch.arange(3.0)), jacobian(torch.exp, torch.arange(2.0)))
with torch.autograd.profiler.profile() as profile:
    model(data).sum().backward()
print(len(profile.function_events) > 0, w.is_leaf, z.requires_grad, z.detach().requires_grad)

"""torchsde: a stochastic equation with learnt drift and diffusion, plain and by its adjoint."""

import torch
import torchsde
from torch import nn

torch.manual_seed(0)


class Equation(nn.Module):
    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self):
        super().__init__()
        self.drift = nn.Linear(3, 3)
        self.spread = nn.Linear(3, 3)

    def f(self, t, y):
        return torch.tanh(self.drift(y))

    def g(self, t, y):
        return torch.sigmoid(self.spread(y))


equation = Equation()
start = torch.full((4, 3), 0.1)
times = torch.linspace(0, 1, 5)
for solve in (torchsde.sdeint, torchsde.sdeint_adjoint):
    noise = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 3), entropy=7)
    paths = solve(equation, start, times, bm=noise, dt=1e-1, method="euler")
    equation.zero_grad()
    paths[-1].pow(2).mean().backward()
    print(paths[-1].mean().item(), [p.grad.norm().item() for p in equation.parameters()])

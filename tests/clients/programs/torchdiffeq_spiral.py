"""torchdiffeq: a spiral, solved by three methods and learnt by a small network."""

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

torch.manual_seed(0)
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
times = torch.linspace(0.0, 2.0, 12)
start = torch.tensor([[2.0, 0.0]])


class Spiral(nn.Module):
    def forward(self, t, y):
        return (y**3) @ matrix


with torch.no_grad():
    for method in ("dopri5", "rk4", "explicit_adams"):
        print(method, odeint(Spiral(), start, times, method=method)[-1])
    truth = odeint(Spiral(), start, times)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


field = Field()
optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-2)
for step in range(4):
    solve = odeint if step % 2 else odeint_adjoint
    loss = (solve(field, start, times, rtol=1e-5, atol=1e-6) - truth).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())


class Falling(nn.Module):
    def forward(self, t, state):
        _height, speed = state
        return speed, -9.8 * torch.ones_like(speed)


where = (torch.tensor([10.0]), torch.tensor([0.0]))
when, _ = odeint_event(
    Falling(), where, torch.tensor(0.0), event_fn=lambda t, s: s[0], odeint_interface=odeint
)
print("lands", when.item())

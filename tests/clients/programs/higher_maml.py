"""higher: an inner loop of training that is itself differentiated."""

import higher
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
outer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    x = torch.linspace(-1, 1, 10)[:, None]
    y = torch.sin((step + 1) * x)
    inner = torch.optim.SGD(model.parameters(), lr=1e-1)
    with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fast, opt):
        for _ in range(3):
            opt.step((fast(x) - y).pow(2).mean())
        loss = (fast(x) - y).pow(2).mean()
    outer.zero_grad()
    loss.backward()
    print(loss.item(), [p.grad.norm().item() for p in model.parameters()])
    outer.step()

"""torch_optimizer: a dozen optimizers on the same small problem."""

import torch
import torch_optimizer

NAMES = "AdaBound AdaMod AdaBelief DiffGrad Lamb NovoGrad PID QHAdam QHM RAdam SGDW Yogi MADGRAD"
for name in NAMES.split():
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 2)
    optimizer = getattr(torch_optimizer, name)(model.parameters(), lr=1e-2)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.ones(3, 5)).pow(2).sum().backward()
        optimizer.step()
    print(name, model.weight.sum().item())

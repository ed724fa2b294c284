"""opacus: training with differential privacy: gradients of each sample, clipped, with noise."""

import warnings

import torch
from opacus import GradSampleModule, PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.manual_seed(0)
data = TensorDataset(torch.randn(40, 6), torch.arange(40) % 2)

module = GradSampleModule(nn.Sequential(nn.Linear(6, 5), nn.GroupNorm(1, 5), nn.Linear(5, 2)))
nn.functional.cross_entropy(module(data.tensors[0][:4]), data.tensors[1][:4]).backward()
print([p.grad_sample.flatten(1).norm(dim=1) for p in module.parameters()])

model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(accountant="rdp")
generator = torch.Generator().manual_seed(3)
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(data, 10),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    poisson_sampling=False,
    noise_generator=generator,
)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
print(engine.get_epsilon(1e-5))

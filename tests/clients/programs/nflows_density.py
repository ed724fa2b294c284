"""nflows: a flow of masked autoregressive layers, fitted to two moons by hand."""

import torch
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
from nflows.transforms.base import CompositeTransform
from nflows.transforms.permutations import ReversePermutation

torch.manual_seed(0)
layers = []
for _ in range(2):
    layers += [ReversePermutation(2), MaskedAffineAutoregressiveTransform(2, hidden_features=8)]
flow = Flow(CompositeTransform(layers), StandardNormal([2]))
angle = torch.linspace(0, 3, 32)
data = torch.stack([angle.cos(), angle.sin()], 1)
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
for _ in range(4):
    loss = -flow.log_prob(data).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
print(flow.sample(3))

"""captum: attributions of a small network by five methods."""

import torch
from captum.attr import (
    LRP,
    DeepLift,
    FeatureAblation,
    IntegratedGradients,
    LayerGradCam,
    NoiseTunnel,
    Saliency,
)
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
x = torch.randn(2, 5)
for method in (IntegratedGradients, Saliency, DeepLift, FeatureAblation, LRP):
    print(method.__name__, method(model).attribute(x.clone().requires_grad_(), target=1))
found, delta = IntegratedGradients(model).attribute(x, target=0, return_convergence_delta=True)
print(found, delta.abs().max().item() < 1e-3)
torch.manual_seed(1)
print(NoiseTunnel(Saliency(model)).attribute(x, nt_samples=4, target=1))
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2)).eval()
print(LayerGradCam(net, net[0]).attribute(torch.randn(1, 1, 8, 8), target=1).mean().item())

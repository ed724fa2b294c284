"""backpack: more than gradients: of each sample, variances, curvature."""

import torch
from backpack import backpack, extend
from backpack.extensions import KFAC, BatchGrad, BatchL2Grad, DiagGGNExact, DiagHessian, Variance
from torch import nn

torch.manual_seed(0)
model = extend(nn.Sequential(nn.Linear(4, 6), nn.Sigmoid(), nn.Linear(6, 3)))
lossfunc = extend(nn.CrossEntropyLoss())
x, y = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
with backpack(
    BatchGrad(), BatchL2Grad(), Variance(), DiagGGNExact(), DiagHessian(), KFAC(mc_samples=1)
):
    lossfunc(model(x), y).backward()
for name, p in model.named_parameters():
    print(name, p.grad.norm().item(), p.grad_batch.norm().item(), p.batch_l2.sum().item())
    print(p.variance.sum().item(), p.diag_ggn_exact.sum().item(), p.diag_h.sum().item())
    print([each.shape for each in p.kfac])

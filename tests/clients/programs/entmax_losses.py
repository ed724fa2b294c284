"""entmax: sparse alternatives to softmax, their losses and gradients."""

import torch
from entmax import Entmax15Loss, SparsemaxLoss, entmax15, entmax_bisect, sparsemax

torch.manual_seed(0)
x = torch.randn(3, 6, requires_grad=True)
target = torch.tensor([0, 2, 5])
print(sparsemax(x, -1), entmax15(x, -1), entmax_bisect(x, alpha=1.3))
for loss in (SparsemaxLoss(), Entmax15Loss()):
    x.grad = None
    value = loss(x, target).sum()
    value.backward()
    print(value.item(), x.grad)

"""linear_operator: structured matrices that take part in torch's own functions."""

import torch
from linear_operator import operators as ops
from linear_operator import to_linear_operator

torch.manual_seed(0)
root = torch.randn(6, 6, requires_grad=True)
dense = to_linear_operator(root @ root.mT + 6 * torch.eye(6))
diagonal = ops.DiagLinearOperator(torch.arange(1.0, 7.0))
total = dense + diagonal
b = torch.randn(6, 2)
print(torch.linalg.solve(total, b).sum().item(), torch.logdet(total).item())
torch.matmul(total, b).sum().backward()
print(root.grad.norm().item(), (total @ b).shape, torch.diagonal(total, dim1=-1, dim2=-2))
kron = ops.KroneckerProductLinearOperator(to_linear_operator(torch.eye(2) * 2), dense)
print(
    kron.shape,
    kron.to_dense().sum().item(),
    kron.inv_quad_logdet(torch.ones(12, 1), logdet=True)[1].item(),
)
print(ops.ToeplitzLinearOperator(torch.tensor([4.0, 1.0, 0.5])).matmul(torch.ones(3, 1)))

"""Adam for sparse gradients: updates only the rows of a gradient."""

from __future__ import annotations

import math

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer, State, like_sparse, parameters_with_gradients
from .optimizer import Group, Params

__all__ = ["SparseAdam"]


class SparseAdam(BuiltinOptimizer):
    """Adam that updates parameters and moments only at the elements of the gradient.

    At these elements, with g the gradient (negated to maximize) and t the step:
    m = m + (1 - beta1) (g - m);  v = v + (1 - beta2) (g^2 - v);
    p = p - lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps).

    Args:
        params: dense parameters, or groups of them.
        lr: the step length.
        betas: the fractions of m, and of v, that are kept.
        eps: added to the denominator.
        maximize: ascend instead.

    Raises:
        ValueError: a number is out of range, or a parameter is sparse or complex.
        RuntimeError: (in a step) a gradient is dense.

    Example:
        >>> import pygrad
        >>> table = pygrad.nn.Embedding(4, 2, sparse=True)
        >>> before = table.weight.detach().clone()
        >>> optimizer = pygrad.optim.SparseAdam(table.parameters(), lr=0.5)
        >>> table(pygrad.tensor([1])).sum().backward()
        >>> optimizer.step()
        >>> (table.weight.detach() - before)[1:3]
        tensor([[-0.5000, -0.5000],
                [ 0.0000,  0.0000]])
    """

    _takes_sparse = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [
            ([i, k], p)
            for i, group in enumerate(self.param_groups)
            for k, p in enumerate(group["params"])
        ]
        if sparse := [at for at, p in places if p.is_sparse]:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )
        if odd := [at for at, p in places if p.is_complex()]:
            raise ValueError(
                f"Complex params at indices {odd}: SparseAdam does not support complex parameters"
            )

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        own["exp_avg"] = pygrad.zeros_like(parameter)
        own["exp_avg_sq"] = pygrad.zeros_like(parameter)

    def _update(self, group: Group) -> None:
        if not all(grad.is_sparse for grad in parameters_with_gradients(group)[1]):
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        lr, eps = float(group["lr"]), group["eps"]
        beta1, beta2 = group["betas"]
        for parameter, grad, own in self._stepping(group):
            grad = (-grad if group["maximize"] else grad).coalesce()
            values = grad._values()
            if not values.numel():
                continue
            mean = _update_average(own["exp_avg"], grad, values, beta1)
            square = _update_average(own["exp_avg_sq"], grad, values.pow(2), beta2)
            step = own["step"].item()
            length = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
            change = mean.div_(square.sqrt_().add_(eps)).mul_(-length)
            parameter.add_(like_sparse(grad, change))


def _update_average(average: Tensor, grad: Tensor, values: Tensor, beta: float) -> Tensor:
    """Moves a running average towards values at the gradient's indices; returns its values
    there.
    """
    old = average.sparse_mask(grad)._values()
    change = (values - old).mul_(1 - beta)
    average.add_(like_sparse(grad, change))
    return old.add_(change)

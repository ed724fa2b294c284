"""Adam for sparse gradients: updates only the rows of a gradient."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import BETAS, ONE_LR
from .optimizer import Params

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

    _row = "_sparse_adam_"
    _order = "lr betas eps maximize"
    _checks = (
        ONE_LR,
        ("lr > 0.0", "Invalid learning rate: {lr}"),
        ("eps > 0.0", "Invalid epsilon value: {eps}"),
        *BETAS,
    )
    _checks_of_parameters = (
        (
            "not parameter.is_sparse",
            "Sparse params at indices {places}: SparseAdam requires dense parameter tensors",
        ),
        (
            "not parameter.is_complex()",
            "Complex params at indices {places}: SparseAdam does not support complex parameters",
        ),
    )
    _state = "step: counter, exp_avg: zeros, exp_avg_sq: zeros"
    _refuses = ("dense",)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, locals())

"""Rprop: each parameter has its own step size, and only the signs of gradients count."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import LR, ONE_LR
from ._forms import forms
from .optimizer import Params

__all__ = ["Rprop", "rprop"]


class Rprop(BuiltinOptimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993).

    If the gradient keeps its sign, the step size grows by the second eta. If the sign changes, it
    shrinks by the first, and the parameter stays. Then p = p - sign(g) * step size.

    Args:
        params: parameters, or groups of them.
        lr: the first step size.
        etas: the factors by which step sizes shrink and grow.
        step_sizes: the smallest and the largest step size.
        foreach: accepted; there is one implementation.
        maximize: ascend instead.
        capturable, differentiable: only ``False``.

    Raises:
        ValueError: a number is out of range.
        NotImplementedError: ``capturable=True`` or ``differentiable=True``.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(1, requires_grad=True)
        >>> optimizer = pygrad.optim.Rprop([w], lr=0.5)
        >>> w.grad = pygrad.full((1,), 9.0)
        >>> optimizer.step()
        >>> w.item()
        0.5
    """

    _row = "_rprop_"
    _order = "lr etas step_sizes foreach maximize differentiable capturable"
    _checks = (
        ONE_LR,
        LR,
        ("0.0 < etas[0] < 1.0 < etas[1]", "Invalid eta values: {etas[0]}, {etas[1]}"),
    )
    _state = "step: counter, prev: zeros, step_size: full(lr)"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())


rprop, _single_tensor_rprop, _multi_tensor_rprop = forms(
    "_rprop_", "foreach capturable maximize differentiable has_complex"
)

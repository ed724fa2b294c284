"""Adamax: Adam with the largest recent gradient instead of the root mean square."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import ADAPTIVE
from ._forms import forms
from .optimizer import Params

__all__ = ["Adamax", "adamax"]


class Adamax(BuiltinOptimizer):
    """Adamax (Kingma and Ba, 2014).

    With g the gradient (negated to maximize) plus weight_decay * p, at step t:
    m = beta1 * m + (1 - beta1) * g;  u = max(beta2 * u, |g| + eps);
    p = p - lr / (1 - beta1^t) * m / u.

    Args:
        params: parameters, or groups of them.
        lr: the factor of the update.
        betas: the weights of past values in m and u.
        eps: added to |g|.
        weight_decay: pulls the parameters towards zero.
        foreach: accepted; there is one implementation.
        maximize: ascend instead.
        capturable, differentiable: only ``False``.

    Raises:
        ValueError: a number is out of range.
        NotImplementedError: ``capturable=True`` or ``differentiable=True``.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(1, requires_grad=True)
        >>> optimizer = pygrad.optim.Adamax([w], lr=0.5)
        >>> w.grad = pygrad.ones(1)
        >>> optimizer.step()
        >>> round(w.item(), 4)
        0.5
    """

    _row = "_adamax_"
    _order = "lr betas eps weight_decay foreach maximize differentiable capturable"
    _checks = ADAPTIVE
    _state = "step: counter, exp_avg: zeros, exp_inf: zeros"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, locals())


adamax, _single_tensor_adamax, _multi_tensor_adamax = forms(
    "_adamax_", "foreach maximize differentiable capturable has_complex"
)

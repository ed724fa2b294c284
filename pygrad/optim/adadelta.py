"""Adadelta: descent by the gradient over its root mean square, times that of past updates."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import EPS, LR, ONE_LR, WEIGHT_DECAY
from ._forms import forms
from .optimizer import Params

__all__ = ["Adadelta", "adadelta"]


class Adadelta(BuiltinOptimizer):
    """Adadelta (Zeiler, 2012).

    With g the gradient (negated to maximize) plus weight_decay * p:
    v = rho * v + (1 - rho) * g^2;  d = sqrt(u + eps) / sqrt(v + eps) * g;
    u = rho * u + (1 - rho) * d^2;  p = p - lr * d.

    Args:
        params: parameters, or groups of them.
        lr: the factor of the update.
        rho: the weight of past values.
        eps: added inside the roots.
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
        >>> optimizer = pygrad.optim.Adadelta([w], rho=0.0, eps=1.0)
        >>> w.grad = pygrad.full((1,), 3.0 ** 0.5)
        >>> optimizer.step()
        >>> round(w.item(), 4)
        0.134
    """

    _row = "_adadelta_"
    _order = "lr rho eps weight_decay maximize capturable foreach differentiable"
    _checks = (ONE_LR, LR, ("0.0 <= rho <= 1.0", "Invalid rho value: {rho}"), EPS, WEIGHT_DECAY)
    _state = "step: counter, square_avg: zeros, acc_delta: zeros"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())


adadelta, _single_tensor_adadelta, _multi_tensor_adadelta = forms(
    "_adadelta_", "capturable foreach differentiable has_complex"
)

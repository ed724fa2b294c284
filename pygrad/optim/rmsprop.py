"""RMSprop: descent by the gradient over its running root mean square."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import EPS, LR, MOMENTUM, ONE_LR, WEIGHT_DECAY
from ._forms import forms
from .optimizer import Params

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(BuiltinOptimizer):
    """RMSprop (Hinton's lectures), optionally centered (Graves, 2013).

    With g the gradient (negated to maximize) plus weight_decay * p:
    v = alpha * v + (1 - alpha) * g^2, less the square of the running mean of g if centered;
    p = p - lr * g / (sqrt(v) + eps), or by a momentum buffer of that quotient.

    Args:
        params: parameters, or groups of them.
        lr: the step length.
        alpha: the weight of past values.
        eps: added to the denominator.
        weight_decay: pulls the parameters towards zero.
        momentum: the momentum of the quotient.
        centered: subtract the squared mean.
        foreach: accepted; there is one implementation.
        maximize: ascend instead.
        capturable, differentiable: only ``False``.

    Raises:
        ValueError: a number is out of range.
        NotImplementedError: ``capturable=True`` or ``differentiable=True``.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(1, requires_grad=True)
        >>> optimizer = pygrad.optim.RMSprop([w], lr=0.1, alpha=0.75)
        >>> w.grad = pygrad.ones(1)
        >>> optimizer.step()
        >>> round(w.item(), 4)
        0.8
    """

    _row = "_rmsprop_"
    _order = (
        "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
    )
    _checks = (
        ONE_LR,
        LR,
        EPS,
        MOMENTUM,
        WEIGHT_DECAY,
        ("alpha >= 0.0", "Invalid alpha value: {alpha}"),
    )
    _state = (
        "step: counter, square_avg: zeros, momentum_buffer: zeros if momentum, "
        "grad_avg: zeros if centered"
    )

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())


rmsprop, _single_tensor_rmsprop, _multi_tensor_rmsprop = forms(
    "_rmsprop_", "foreach maximize differentiable capturable has_complex"
)

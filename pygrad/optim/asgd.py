"""ASGD: stochastic gradient descent that also averages the parameters."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import LR, ONE_LR, WEIGHT_DECAY
from ._forms import forms
from .optimizer import Params

__all__ = ["ASGD", "asgd"]


class ASGD(BuiltinOptimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

    p = (1 - lambd * eta) * p - eta * g with eta = lr / (1 + lambd * lr * t)^alpha; from step t0 on,
    ``state[p]["ax"]`` is the average of p.

    Args:
        params: parameters, or groups of them.
        lr: the first step size.
        lambd: decays the parameters.
        alpha: the exponent of the step size's decay.
        t0: the step at which averaging begins.
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
        >>> optimizer = pygrad.optim.ASGD([w], lr=0.5, lambd=0.0)
        >>> w.grad = pygrad.ones(1)
        >>> optimizer.step()
        >>> w.item()
        0.5
    """

    _row = "_asgd_"
    _order = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
    _checks = (ONE_LR, LR, WEIGHT_DECAY)
    _state = "step: counter, eta: counter(lr), mu: counter(1), ax: zeros"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, locals())


asgd, _single_tensor_asgd, _multi_tensor_asgd = forms(
    "_asgd_", "foreach maximize differentiable capturable has_complex"
)

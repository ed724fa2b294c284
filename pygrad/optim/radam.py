"""RAdam: Adam with a rectified step length in its first steps, where the variance is uncertain."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import ADAPTIVE
from ._forms import forms
from .optimizer import Params

__all__ = ["RAdam", "radam"]


class RAdam(BuiltinOptimizer):
    """RAdam (Liu and others, 2019).

    With m and v as in Adam, and rho(t) the length of the average that v is at step t:
    p = p - lr * m / (1 - beta1^t), times r(t) * sqrt(1 - beta2^t) / (sqrt(v) + eps) once rho > 5.

    Args:
        params: parameters, or groups of them.
        lr: the factor of the update.
        betas: the weights of past values in m and v.
        eps: added to the root.
        weight_decay: pulls the parameters towards zero.
        decoupled_weight_decay: decay the parameters directly, as AdamW does.
        foreach: accepted; there is one implementation.
        maximize: ascend instead.
        capturable, differentiable: only ``False``.

    Raises:
        ValueError: a number is out of range.
        NotImplementedError: ``capturable=True`` or ``differentiable=True``.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(1, requires_grad=True)
        >>> optimizer = pygrad.optim.RAdam([w], lr=0.1)
        >>> w.grad = pygrad.ones(1)
        >>> optimizer.step()
        >>> round(w.item(), 4)
        0.9
    """

    _row = "_radam_"
    _order = (
        "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay "
        "differentiable"
    )
    _checks = ADAPTIVE
    _state = "step: counter, exp_avg: zeros, exp_avg_sq: zeros"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())


radam, _single_tensor_radam, _multi_tensor_radam = forms(
    "_radam_", "decoupled_weight_decay foreach differentiable capturable has_complex maximize"
)

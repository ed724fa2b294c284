"""RAdam: Adam with a rectified step length in its first steps, where the variance is uncertain."""

from __future__ import annotations

import math

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import (
    BuiltinOptimizer,
    State,
    check_adaptive,
    decayed_direction,
)
from ._forms import forms, step_from_class
from .optimizer import Group, Params

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
        check_adaptive(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        own["exp_avg"] = pygrad.zeros_like(parameter)
        own["exp_avg_sq"] = pygrad.zeros_like(parameter)

    def _update(self, group: Group) -> None:
        beta1, beta2 = group["betas"]
        for parameter, grad, own in self._stepping(group):
            step = own["step"].item()
            grad = decayed_direction(group, parameter, grad)
            own["exp_avg"].lerp_(grad, 1 - beta1)
            own["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            update = own["exp_avg"].div(1 - beta1**step).mul_(float(group["lr"]))
            rectified = _rectification(step, beta2)
            if rectified:
                scale = own["exp_avg_sq"].sqrt().add_(group["eps"])
                update.mul_(math.sqrt(1 - beta2**step) / scale).mul_(rectified)
            parameter.sub_(update)


def _rectification(step: float, beta2: float) -> float:
    """r(t), or 0 if the average has too few steps."""
    limit = 2 / (1 - beta2) - 1
    rho = limit - 2 * step * beta2**step / (1 - beta2**step)
    if rho <= 5:
        return 0.0
    return math.sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))


radam, _single_tensor_radam, _multi_tensor_radam = forms(
    step_from_class(
        RAdam, {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "state_steps": "step"}
    ),
    lists="params grads exp_avgs exp_avg_sqs state_steps",
    options="beta1 beta2 lr weight_decay eps",
    flags="decoupled_weight_decay foreach differentiable capturable has_complex maximize",
    name="radam",
)

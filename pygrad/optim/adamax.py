"""Adamax: Adam with the largest recent gradient instead of the root mean square."""

from __future__ import annotations

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import (
    BuiltinOptimizer,
    State,
    check_adaptive,
    direction,
)
from ._forms import forms, step_from_class
from .optimizer import Group, Params

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
        check_adaptive(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        own["exp_avg"] = pygrad.zeros_like(parameter)
        own["exp_inf"] = pygrad.zeros_like(parameter)

    def _update(self, group: Group) -> None:
        beta1, beta2 = group["betas"]
        for parameter, grad, own in self._stepping(group):
            grad = direction(group, parameter, grad)
            own["exp_avg"].lerp_(grad, 1 - beta1)
            largest = own["exp_inf"]
            largest.copy_(pygrad.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"])))
            rate = float(group["lr"]) / (1 - beta1 ** own["step"].item())
            parameter.addcdiv_(own["exp_avg"], largest, value=-rate)


adamax, _single_tensor_adamax, _multi_tensor_adamax = forms(
    step_from_class(Adamax, {"exp_avgs": "exp_avg", "exp_infs": "exp_inf", "state_steps": "step"}),
    lists="params grads exp_avgs exp_infs state_steps",
    options="eps beta1 beta2 lr weight_decay",
    flags="foreach maximize differentiable capturable has_complex",
    name="adamax",
)

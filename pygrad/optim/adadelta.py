"""Adadelta: descent by the gradient over its root mean square, times that of past updates."""

from __future__ import annotations

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import (
    BuiltinOptimizer,
    State,
    check_learning_rate,
    check_not_negative,
    direction,
)
from ._forms import forms, step_from_class
from .optimizer import Group, Params

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
        check_learning_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative("epsilon value", eps)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        own["square_avg"] = pygrad.zeros_like(parameter)
        own["acc_delta"] = pygrad.zeros_like(parameter)

    def _update(self, group: Group) -> None:
        lr, rho, eps = (float(group[key]) for key in ("lr", "rho", "eps"))
        for parameter, grad, own in self._stepping(group):
            grad = direction(group, parameter, grad)
            square_avg, acc_delta = own["square_avg"], own["acc_delta"]
            square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
            scale = square_avg.add(eps).sqrt_()
            update = acc_delta.add(eps).sqrt_().div_(scale).mul_(grad)
            acc_delta.mul_(rho).addcmul_(update, update, value=1 - rho)
            parameter.add_(update, alpha=-lr)


adadelta, _single_tensor_adadelta, _multi_tensor_adadelta = forms(
    step_from_class(
        Adadelta, {"square_avgs": "square_avg", "acc_deltas": "acc_delta", "state_steps": "step"}
    ),
    lists="params grads square_avgs acc_deltas state_steps",
    options="lr rho eps weight_decay maximize",
    flags="capturable foreach differentiable has_complex",
    name="adadelta",
)

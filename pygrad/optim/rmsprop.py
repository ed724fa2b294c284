"""RMSprop: descent by the gradient over its running root mean square."""

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
        check_learning_rate(lr)
        check_not_negative("epsilon value", eps)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("alpha value", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        own["square_avg"] = pygrad.zeros_like(parameter)
        if float(group["momentum"]) > 0:
            own["momentum_buffer"] = pygrad.zeros_like(parameter)
        if group["centered"]:
            own["grad_avg"] = pygrad.zeros_like(parameter)

    def _update(self, group: Group) -> None:
        lr, alpha, eps, momentum = (float(group[k]) for k in ("lr", "alpha", "eps", "momentum"))
        for parameter, grad, own in self._stepping(group):
            grad = direction(group, parameter, grad)
            square_avg = own["square_avg"]
            square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
            if group["centered"]:
                mean = own["grad_avg"]
                mean.lerp_(grad, 1 - alpha)
                scale = square_avg.addcmul(mean, mean, value=-1).sqrt_().add_(eps)
            else:
                scale = square_avg.sqrt().add_(eps)
            if momentum > 0:
                buffer = own["momentum_buffer"]
                buffer.mul_(momentum).addcdiv_(grad, scale)
                parameter.add_(buffer, alpha=-lr)
            else:
                parameter.addcdiv_(grad, scale, value=-lr)


rmsprop, _single_tensor_rmsprop, _multi_tensor_rmsprop = forms(
    step_from_class(
        RMSprop,
        {
            "square_avgs": "square_avg",
            "grad_avgs": "grad_avg",
            "momentum_buffer_list": "momentum_buffer",
            "state_steps": "step",
        },
    ),
    lists="params grads square_avgs grad_avgs momentum_buffer_list state_steps",
    options="lr alpha eps weight_decay momentum centered",
    flags="foreach maximize differentiable capturable has_complex",
    name="rmsprop",
)

"""ASGD: stochastic gradient descent that also averages the parameters."""

from __future__ import annotations

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import (
    BuiltinOptimizer,
    State,
    check_learning_rate,
    check_not_negative,
    direction,
    new_step,
)
from ._forms import forms, step_from_class
from .optimizer import Group, Params

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
        check_learning_rate(lr)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        own["eta"] = new_step(float(group["lr"]))
        own["mu"] = new_step(1.0)
        own["ax"] = pygrad.zeros_like(parameter)

    def _update(self, group: Group) -> None:
        lr, lambd = float(group["lr"]), group["lambd"]
        for parameter, grad, own in self._stepping(group):
            step, eta, mu = (own[key].item() for key in ("step", "eta", "mu"))
            grad = direction(group, parameter, grad)
            parameter.mul_(1 - lambd * eta).add_(grad, alpha=-eta)
            average = own["ax"]
            if mu == 1:
                average.copy_(parameter)
            else:
                average.add_(parameter.sub(average).mul_(mu))
            own["eta"].copy_(new_step(lr / (1 + lambd * lr * step) ** group["alpha"]))
            own["mu"].copy_(new_step(1 / max(1, step - group["t0"])))


asgd, _single_tensor_asgd, _multi_tensor_asgd = forms(
    step_from_class(ASGD, {"axs": "ax", "mus": "mu", "etas": "eta", "state_steps": "step"}),
    lists="params grads axs mus etas state_steps",
    options="lambd lr t0 alpha weight_decay",
    flags="foreach maximize differentiable capturable has_complex",
    name="asgd",
)

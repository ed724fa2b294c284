"""Rprop: each parameter has its own step size, and only the signs of gradients count."""

from __future__ import annotations

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import (
    BuiltinOptimizer,
    State,
    check_learning_rate,
    number_for,
)
from ._forms import forms, step_from_class
from .optimizer import Group, Params

__all__ = ["Rprop", "rprop"]


class Rprop(BuiltinOptimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993).

    If the gradient keeps its sign, the step size grows by the second eta. If the sign changes, it
    shrinks by the first, and the parameter stays. Then p = p - sign(g) * step size.

    Args:
        params: parameters, or groups of them.
        lr: the first step size.
        etas: the factors by which step sizes shrink and grow.
        step_sizes: the smallest and the largest step size.
        foreach: accepted; there is one implementation.
        maximize: ascend instead.
        capturable, differentiable: only ``False``.

    Raises:
        ValueError: a number is out of range.
        NotImplementedError: ``capturable=True`` or ``differentiable=True``.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(1, requires_grad=True)
        >>> optimizer = pygrad.optim.Rprop([w], lr=0.5)
        >>> w.grad = pygrad.full((1,), 9.0)
        >>> optimizer.step()
        >>> w.item()
        0.5
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        own["prev"] = pygrad.zeros_like(parameter)
        own["step_size"] = pygrad.full_like(grad, number_for(parameter, float(group["lr"])))

    def _update(self, group: Group) -> None:
        falling, growing = group["etas"]
        smallest, largest = group["step_sizes"]
        for parameter, grad, own in self._stepping(group):
            grad = -grad if group["maximize"] else grad.clone()
            kept = grad * own["prev"]
            factor = pygrad.ones_like(kept)
            factor.masked_fill_(kept > 0, growing).masked_fill_(kept < 0, falling)
            own["step_size"].mul_(factor).clamp_(smallest, largest)
            grad.masked_fill_(kept < 0, 0)
            parameter.addcmul_(grad.sign(), own["step_size"], value=-1)
            own["prev"].copy_(grad)


rprop, _single_tensor_rprop, _multi_tensor_rprop = forms(
    step_from_class(Rprop, {"prevs": "prev", "step_sizes": "step_size", "state_steps": "step"}),
    lists="params grads prevs step_sizes state_steps",
    options="step_size_min step_size_max etaminus etaplus",
    flags="foreach capturable maximize differentiable has_complex",
    name="rprop",
)

"""Stochastic gradient descent, with momentum if wanted: one engine call a group."""

from __future__ import annotations

import pygrad
from pygrad._tensor import Tensor
from pygrad.optim._builtin import (
    BuiltinOptimizer,
    check_choice,
    check_learning_rate,
    with_gradients,
)
from pygrad.optim.optimizer import Group, Params

__all__ = ["SGD"]


class SGD(BuiltinOptimizer):
    """Stochastic gradient descent.

    With g the gradient (negated to maximize) plus weight_decay * p, and with momentum m:
    b = g at a parameter's first step, else m * b + (1 - dampening) * g; and g = b, or
    g + m * b with Nesterov's form. Then p = p - lr * g.

    Args:
        params: parameters, or groups of them.
        lr: the step length, a number or a tensor of one element.
        momentum: m.
        dampening: how much of a new gradient the momentum leaves out.
        weight_decay: pulls the parameters towards zero.
        nesterov: Nesterov's momentum.
        maximize: ascend instead.
        foreach, fused: accepted; there is one implementation.
        differentiable: only ``False``.

    Raises:
        ValueError: a number is out of range, or ``nesterov`` lacks momentum or has dampening.
        NotImplementedError: ``differentiable=True``.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(2, requires_grad=True)
        >>> optimizer = pygrad.optim.SGD([w], lr=0.25, momentum=0.5)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w.tolist()
        [0.0, 0.0]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_learning_rate(lr)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        check_choice(defaults)
        super().__init__(params, defaults)

    def _update(self, group: Group) -> None:
        params = with_gradients(group)
        if not params:
            return
        if group["momentum"] == 0:
            _step(group, params, [], False)
            return
        states = [self.state[parameter] for parameter in params]
        buffers = [state.get("momentum_buffer") for state in states]
        fresh = [i for i, buffer in enumerate(buffers) if buffer is None]
        if not fresh:
            _step(group, params, buffers, False)
            return
        # A parameter's buffer begins with its first gradient, which may come later than others'.
        for i in fresh:
            states[i]["momentum_buffer"] = buffers[i] = pygrad.empty_like(params[i])
        first = set(fresh)
        for is_first in (True, False):
            chosen = [i for i in range(len(params)) if (i in first) is is_first]
            if chosen:
                _step(
                    group,
                    [params[i] for i in chosen],
                    [buffers[i] for i in chosen],
                    is_first,
                )


def _step(
    group: Group,
    params: list[Tensor],
    buffers: list[Tensor | None],
    is_first_step: bool,
) -> None:
    pygrad._C._fused_sgd_(
        params,
        [],
        buffers,
        weight_decay=float(group["weight_decay"]),
        momentum=float(group["momentum"]),
        lr=float(group["lr"]),
        dampening=float(group["dampening"]),
        nesterov=group["nesterov"],
        maximize=group["maximize"],
        is_first_step=is_first_step,
    )

"""Stochastic gradient descent, with momentum if wanted: one engine call a group."""

from __future__ import annotations

from typing import Any

import pygrad
from pygrad._tensor import Tensor
from pygrad.optim._builtin import (
    BuiltinOptimizer,
    check_choice,
    check_learning_rate,
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

    _without_recording = True

    def _update(self, group: Group) -> None:
        params = group["params"]
        if group["momentum"] == 0:
            self._step(group, params, [], False)
            return
        state = self.state
        try:
            buffers: Any = [state.get(p)["momentum_buffer"] for p in params]  # type: ignore[index]
            self._step(group, params, buffers, False)
            return
        except (TypeError, KeyError, AttributeError):
            pass  # some parameter's first gradient is still to come, or just came
        params = [p for p in params if p._has_grad()]
        buffers = [state[p].get("momentum_buffer") for p in params]
        fresh = {i for i, buffer in enumerate(buffers) if buffer is None}
        for i in fresh:
            state[params[i]]["momentum_buffer"] = buffers[i] = pygrad.empty_like(params[i])
        for is_first in (True, False):
            chosen = [i for i in range(len(params)) if (i in fresh) is is_first]
            if chosen:
                few = [params[i] for i in chosen]
                self._step(group, few, [buffers[i] for i in chosen], is_first)

    def _step(
        self, group: Group, params: list[Tensor], buffers: list[Any], is_first_step: bool
    ) -> None:
        """One engine call. Gradients are found there, and who has none is left out."""
        numbers = (
            float(group["weight_decay"]),
            float(group["momentum"]),
            float(group["lr"]),
            float(group["dampening"]),
            group["nesterov"],
            group["maximize"],
            is_first_step,
        )
        self._run(
            group,
            (numbers, [p._h for p in params], [b._h for b in buffers]),
            "_fused_sgd_",
            lambda: ([params, [], buffers], dict(zip(_NUMBERS, numbers, strict=True))),
        )


_NUMBERS = (
    "weight_decay",
    "momentum",
    "lr",
    "dampening",
    "nesterov",
    "maximize",
    "is_first_step",
)

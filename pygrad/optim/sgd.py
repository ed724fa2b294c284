"""Stochastic gradient descent, optionally with momentum, with one engine call per group."""

from __future__ import annotations

from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import LR, ONE_LR
from ._forms import functional_forms, step_of
from .optimizer import Params

__all__ = ["SGD", "sgd"]


class SGD(BuiltinOptimizer):
    """Stochastic gradient descent.

    With g the gradient (negated to maximize) plus weight_decay * p, and with momentum m:
    b = g at a parameter's first step, else m * b + (1 - dampening) * g; and g = b, or
    g + m * b with Nesterov's form. Then p = p - lr * g.

    Args:
        params: parameters, or groups of them.
        lr: the step length, a number or a tensor of one element.
        momentum: m.
        dampening: the fraction of a new gradient that momentum omits.
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

    _row = "_sgd_"
    _loop = "_fused_sgd_"
    _order = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
    _checks = (
        ONE_LR,
        LR,
        ("not momentum < 0.0", "Invalid momentum value: {momentum}"),
        ("not weight_decay < 0.0", "Invalid weight_decay value: {weight_decay}"),
        (
            "not nesterov or not (momentum <= 0 or dampening != 0)",
            "Nesterov momentum requires a momentum and zero dampening",
        ),
    )
    _state = "momentum_buffer: first if momentum"
    _refuses = ()

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
        super().__init__(params, locals())


def _step(lists: list[list[Any]], options: dict[str, Any]) -> None:
    params, grads, buffers = lists
    if options["momentum"] == 0:
        step_of("_fused_sgd_", [params, grads, []], {**options, "is_first_step": False})
        return
    new = [buffer is None for buffer in buffers]
    for place, parameter in enumerate(params):
        if new[place]:
            buffers[place] = pygrad.empty_like(parameter)
    for first in (True, False):
        places = [place for place, is_new in enumerate(new) if is_new == first]
        if places:
            rows = [[each[place] for place in places] for each in lists]
            step_of("_fused_sgd_", rows, {**options, "is_first_step": first})


sgd, _single_tensor_sgd, _multi_tensor_sgd = functional_forms(
    _step,
    ["params", "d_p_list", "momentum_buffer_list"],
    ["params", "grads", "momentum_buffer_list"],
    "weight_decay momentum lr dampening nesterov maximize".split(),
    "has_sparse_grad foreach fused grad_scale found_inf",
    "sgd",
)
_fused_sgd = _single_tensor_sgd

"""Stochastic gradient descent, optionally with momentum, with one engine call per group."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from .._table import functions as _functions
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import check_choice, check_learning_rate, direction, parameters_with_gradients
from ._forms import forms, step_from_op
from ._fused import Form, FusedOptimizer, Lists, Numbers, Options, Plan, Rows
from .optimizer import Group, Params

__all__ = ["SGD", "sgd"]


class SGD(FusedOptimizer):
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

    _options = itemgetter("weight_decay", "momentum", "lr", "dampening", "nesterov", "maximize")
    _names = (
        "weight_decay",
        "momentum",
        "lr",
        "dampening",
        "nesterov",
        "maximize",
        "is_first_step",
    )

    def _read(self, options: Options) -> tuple[Form, Numbers]:
        decay, momentum, lr, dampening, nesterov, maximize = options
        numbers = (float(decay), float(momentum), float(lr), float(dampening))
        return ("_fused_sgd_", momentum != 0), (*numbers, bool(nesterov), bool(maximize), False)

    def _update(self, group: Group) -> None:
        momentum = float(group["momentum"])
        for parameter, grad in zip(*parameters_with_gradients(group), strict=True):
            grad = direction(group, parameter, grad)
            if momentum:
                own = self.state[parameter]
                if own.get("momentum_buffer") is None:
                    own["momentum_buffer"] = grad.detach().clone()
                else:
                    kept = 1 - float(group["dampening"])
                    own["momentum_buffer"].mul_(momentum).add_(grad, alpha=kept)
                last = own["momentum_buffer"]
                grad = grad.add(last, alpha=momentum) if group["nesterov"] else last
            parameter.add_(grad, alpha=-float(group["lr"]))

    def _is_current(self, plan: Plan, params: list[Tensor]) -> bool:
        _, has_momentum = plan.form
        if not has_momentum:
            return [p._h for p in params] == plan.rows
        rows, state_of = plan.rows, self.state.get
        if len(params) != len(rows):
            return False
        for p, (handle, buffer) in zip(params, rows):  # noqa: B905
            own = state_of(p)
            found = own.get("momentum_buffer") if own else None
            if p._h != handle or (p._has_grad() if found is None else found._h != buffer):
                return False
        return True

    def _lists(self, params: list[Tensor], form: Form, numbers: Numbers) -> tuple[Rows, Lists]:
        handles = [p._h for p in params]
        _, has_momentum = form
        if not has_momentum:
            return handles, [handles, (), ()]
        buffers = [self.state.get(p, {}).get("momentum_buffer") for p in params]
        rows = [(p._h, b._h if b is not None else 0) for p, b in zip(params, buffers, strict=True)]
        self._step_first(
            [p for p, b in zip(params, buffers, strict=True) if b is None and p._has_grad()],
            numbers,
        )
        later = [row for row in rows if row[1]]
        return rows, [[row[0] for row in later], (), [row[1] for row in later]]

    def _step_first(self, params: list[Tensor], numbers: Numbers) -> None:
        """The step of parameters with their first gradient, which begins their state."""
        for p in params:
            self.state[p]["momentum_buffer"] = pygrad.empty_like(p)
        if params:
            buffers = [self.state[p]["momentum_buffer"] for p in params]
            keywords = dict(zip(self._names, numbers, strict=True))
            _functions.C["_fused_sgd_"](params, [], buffers, **{**keywords, "is_first_step": True})


_OP = step_from_op("_fused_sgd_", " ".join(SGD._names))


def _step(lists: list[list[Any]], options: dict[str, Any]) -> None:
    params, grads, buffers = lists
    if options["momentum"] == 0:
        _OP([params, grads, []], {**options, "is_first_step": False})
        return
    new = [buffer is None for buffer in buffers]
    for place, parameter in enumerate(params):
        if new[place]:
            buffers[place] = pygrad.empty_like(parameter)
    for first in (True, False):
        places = [place for place, is_new in enumerate(new) if is_new == first]
        if places:
            rows = [[each[place] for place in places] for each in lists]
            _OP(rows, {**options, "is_first_step": first})


sgd, _single_tensor_sgd, _multi_tensor_sgd = forms(
    _step,
    lists="params d_p_list=grads momentum_buffer_list",
    options="weight_decay momentum lr dampening nesterov maximize",
    flags="has_sparse_grad foreach fused grad_scale found_inf",
    name="sgd",
)
_fused_sgd = _single_tensor_sgd

"""Adam: descent by running means of the gradient and of its square. One engine call a group."""

from __future__ import annotations

from typing import Any

import pygrad
from pygrad._tensor import Tensor
from pygrad.optim._builtin import (
    Arguments,
    BuiltinOptimizer,
    check_choice,
    check_not_negative,
    new_step,
)
from pygrad.optim.optimizer import Group, Params

__all__ = ["Adam"]


class Adam(BuiltinOptimizer):
    """Adam (Kingma and Ba, 2014).

    With g the gradient (negated to maximize) plus weight_decay * p, at step t:
    m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;
    p = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps),
    where ``amsgrad`` takes the greatest v so far. Decoupled decay leaves g alone and first sets
    p = p * (1 - lr * weight_decay).

    Args:
        params: parameters, or groups of them.
        lr: the step length, a number or a tensor of one element.
        betas: beta1 and beta2, two numbers or two tensors of one element.
        eps: added to the denominator.
        weight_decay: pulls the parameters towards zero.
        amsgrad: the variant of "On the Convergence of Adam and Beyond".
        maximize: ascend instead.
        foreach, fused: accepted; there is one implementation.
        capturable, differentiable: only ``False``.
        decoupled_weight_decay: as in :class:`AdamW`.

    State of a parameter: ``step`` (float32, no dimensions), ``exp_avg``, ``exp_avg_sq`` and with
    amsgrad ``max_exp_avg_sq`` (its own shape and dtype).

    Raises:
        ValueError: a number is out of range.
        NotImplementedError: ``capturable=True`` or ``differentiable=True``.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(2, requires_grad=True)
        >>> optimizer = pygrad.optim.Adam([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> [round(x, 4) for x in w.tolist()]
        [0.5, 0.5]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor):
            if foreach and not capturable:
                raise ValueError(
                    "lr as a Tensor is not supported for capturable=False and foreach=True"
                )
            if lr.numel() != 1:
                raise ValueError("Tensor lr must be 1-element")
        check_not_negative("learning rate", lr)
        check_not_negative("epsilon value", eps)
        _check_betas(betas, foreach=bool(foreach) and not capturable)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        check_choice(defaults)
        super().__init__(params, defaults)

    _without_recording = True

    def _update(self, group: Group) -> None:
        params = group["params"]
        state = self.state
        amsgrad = group["amsgrad"]
        beta1, beta2 = group["betas"]
        numbers = (
            float(group["lr"]),
            float(beta1),
            float(beta2),
            float(group["weight_decay"]),
            float(group["eps"]),
            amsgrad,
            group["maximize"],
        )
        handles: Any = [p._h for p in params]
        try:
            for p in params:
                own = state.get(p)
                handles += (own["step"]._h, own["exp_avg"]._h, own["exp_avg_sq"]._h)  # type: ignore[index]
                if amsgrad:
                    handles.append(own["max_exp_avg_sq"]._h)  # type: ignore[index]
        except (TypeError, KeyError):
            params = self._make_states(group)  # of some parameter nothing was known so far
            handles = None
            if not params:
                return

        def arguments() -> Arguments:
            states = [state[p] for p in params]
            lists = [
                params,
                [],  # the engine finds the gradients, and leaves out who has none
                [own["exp_avg"] for own in states],
                [own["exp_avg_sq"] for own in states],
                [own["max_exp_avg_sq"] for own in states] if amsgrad else [],
                [own["step"] for own in states],  # it adds one before it uses them
            ]
            return lists, dict(zip(_NUMBERS, numbers, strict=True))

        op = "_fused_adamw_" if group["decoupled_weight_decay"] else "_fused_adam_"
        self._run(group, (op, numbers, handles), op, arguments)

    def _make_states(self, group: Group) -> list[Tensor]:
        """Begins the state of parameters that have their first gradient; returns all that have
        one.
        """
        params = [p for p in group["params"] if p._has_grad()]
        for p in params:
            own = self.state[p]
            if not own:
                own["step"] = new_step()
                own["exp_avg"] = pygrad.zeros_like(p)
                own["exp_avg_sq"] = pygrad.zeros_like(p)
                if group["amsgrad"]:
                    own["max_exp_avg_sq"] = pygrad.zeros_like(p)
        return params


_NUMBERS = ("lr", "beta1", "beta2", "weight_decay", "eps", "amsgrad", "maximize")


def _check_betas(betas: tuple[float | Tensor, float | Tensor], foreach: bool) -> None:
    for index in (0, 1):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")
    if not any(all(isinstance(beta, kind) for beta in betas) for kind in (float, Tensor)):
        raise ValueError("betas must be either both floats or both Tensors")
    for index, beta in enumerate(betas):
        if not isinstance(beta, Tensor):
            continue
        if foreach:
            raise ValueError(
                f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True"
            )
        if beta.numel() != 1:
            raise ValueError(f"Tensor betas[{index}] must be 1-element")

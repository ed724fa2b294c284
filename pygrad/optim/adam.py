"""Adam: descent by running means of the gradient and of its square. One engine call a group."""

from __future__ import annotations

import pygrad
from pygrad._tensor import Tensor
from pygrad.optim._builtin import (
    BuiltinOptimizer,
    check_choice,
    check_not_negative,
    new_step,
    with_gradients,
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

    def _update(self, group: Group) -> None:
        params = with_gradients(group)
        if not params:
            return
        state = self.state
        states = [state[parameter] for parameter in params]
        amsgrad = group["amsgrad"]
        if not all(states):
            for parameter, own in zip(params, states, strict=True):
                if not own:
                    own["step"] = new_step()
                    own["exp_avg"] = pygrad.zeros_like(parameter)
                    own["exp_avg_sq"] = pygrad.zeros_like(parameter)
                    if amsgrad:
                        own["max_exp_avg_sq"] = pygrad.zeros_like(parameter)
        beta1, beta2 = group["betas"]
        engine = pygrad._C
        # The engine adds one to every step before it uses it: a second call would cost as much.
        op = engine._fused_adamw_ if group["decoupled_weight_decay"] else engine._fused_adam_
        op(
            params,
            [],
            [own["exp_avg"] for own in states],
            [own["exp_avg_sq"] for own in states],
            [own["max_exp_avg_sq"] for own in states] if amsgrad else [],
            [own["step"] for own in states],
            lr=float(group["lr"]),
            beta1=float(beta1),
            beta2=float(beta2),
            weight_decay=float(group["weight_decay"]),
            eps=float(group["eps"]),
            amsgrad=amsgrad,
            maximize=group["maximize"],
        )


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

"""Adam: descent by running means of the gradient and its square. One engine call per group."""

from __future__ import annotations

from typing import Any

from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import BETAS, EPS, LR, ONE_LR, WEIGHT_DECAY, chosen
from ._forms import functional_forms, step_of
from .optimizer import Params

__all__ = ["Adam", "adam"]


class Adam(BuiltinOptimizer):
    """Adam (Kingma and Ba, 2014).

    With g the gradient (negated to maximize) plus weight_decay * p, at step t:
    m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;
    p = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps),
    where ``amsgrad`` uses the maximum of all v so far. Decoupled decay leaves g unchanged and first
    sets p = p * (1 - lr * weight_decay).

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
        decoupled_weight_decay: see :class:`AdamW`.

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

    _row = "_adam_"
    _loop = "_fused_adamw_ if decoupled_weight_decay else _fused_adam_"
    _order = (
        "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused "
        "decoupled_weight_decay"
    )
    _checks = (
        (
            "not (is_tensor(lr) and foreach and not capturable)",
            "lr as a Tensor is not supported for capturable=False and foreach=True",
        ),
        ONE_LR,
        LR,
        EPS,
        *BETAS,
        (
            "is_float(betas[0]) and is_float(betas[1]) "
            "or is_tensor(betas[0]) and is_tensor(betas[1])",
            "betas must be either both floats or both Tensors",
        ),
        (
            "not (is_tensor(betas[0]) and foreach and not capturable)",
            "betas[0] as a Tensor is not supported for capturable=False and foreach=True",
        ),
        ("elements(betas[0]) == 1", "Tensor betas[0] must be 1-element"),
        (
            "not (is_tensor(betas[1]) and foreach and not capturable)",
            "betas[1] as a Tensor is not supported for capturable=False and foreach=True",
        ),
        ("elements(betas[1]) == 1", "Tensor betas[1] must be 1-element"),
        WEIGHT_DECAY,
    )
    _state = "step: counter, exp_avg: zeros, exp_avg_sq: zeros, max_exp_avg_sq: zeros if amsgrad"
    _refuses = ()  # the loop refuses sparse gradients, in other words

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
        super().__init__(params, locals())


def step(lists: list[list[Any]], options: dict[str, Any]) -> None:
    """The step of `Adam` with the state in lists."""
    step_of(chosen(Adam._loop, options), lists, options)


LISTS = "params grads exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps".split()
OPTIONS = "amsgrad beta1 beta2 lr weight_decay eps maximize".split()
FLAGS = "foreach capturable differentiable fused grad_scale found_inf has_complex"

adam, _single_tensor_adam, _multi_tensor_adam = functional_forms(
    step, LISTS, LISTS, OPTIONS, FLAGS + " decoupled_weight_decay", "adam"
)
_fused_adam = _single_tensor_adam

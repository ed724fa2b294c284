"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import ADAPTIVE
from ._forms import forms
from .optimizer import Params

__all__ = ["NAdam", "nadam"]


class NAdam(BuiltinOptimizer):
    """NAdam (Dozat, 2016).

    With m and v as in Adam and, at step t, mu(t) = beta1 * (1 - 0.96^(t * momentum_decay) / 2) and
    M the product of all mu up to t:
    p = p - lr * ((1 - mu(t)) / (1 - M) * g + mu(t + 1) / (1 - M * mu(t + 1)) * m)
    / (sqrt(v / (1 - beta2^t)) + eps).

    Args:
        params: parameters, or groups of them.
        lr: the factor of the update.
        betas: the weights of past values in m and v.
        eps: added to the root.
        weight_decay: pulls the parameters towards zero.
        momentum_decay: the rate at which mu approaches beta1.
        decoupled_weight_decay: decay the parameters directly, as AdamW does.
        foreach: accepted; there is one implementation.
        maximize: ascend instead.
        capturable, differentiable: only ``False``.

    Raises:
        ValueError: a number is out of range.
        NotImplementedError: ``capturable=True`` or ``differentiable=True``.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(1, requires_grad=True)
        >>> optimizer = pygrad.optim.NAdam([w], lr=0.1)
        >>> w.grad = pygrad.ones(1)
        >>> optimizer.step()
        >>> w.item() < 1
        True
    """

    _row = "_nadam_"
    _order = (
        "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach "
        "capturable differentiable"
    )
    _checks = (
        *ADAPTIVE,
        ("momentum_decay >= 0.0", "Invalid momentum_decay value: {momentum_decay}"),
    )
    _state = "step: counter, mu_product: counter(1), exp_avg: zeros, exp_avg_sq: zeros"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())


nadam, _single_tensor_nadam, _multi_tensor_nadam = forms(
    "_nadam_", "decoupled_weight_decay foreach capturable differentiable has_complex maximize"
)

"""AdamW: Adam with a weight decay that does not enter its running means."""

from __future__ import annotations

from types import MappingProxyType

from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._forms import functional_forms
from .adam import FLAGS, LISTS, OPTIONS, Adam, step
from .optimizer import Params

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """AdamW (Loshchilov and Hutter, 2017): :class:`Adam` with decoupled weight decay.

    Arguments, state and errors are those of Adam, except that ``weight_decay`` defaults to 0.01.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(1, requires_grad=True)
        >>> optimizer = pygrad.optim.AdamW([w], lr=0.5, weight_decay=0.2)
        >>> w.grad = pygrad.zeros(1)
        >>> optimizer.step()
        >>> round(w.item(), 4)
        0.9
    """

    _fixed = MappingProxyType({"decoupled_weight_decay": True})

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        BuiltinOptimizer.__init__(self, params, locals())


adamw = functional_forms(
    lambda lists, options: step(lists, {**options, "decoupled_weight_decay": True}),
    LISTS,
    LISTS,
    OPTIONS,
    FLAGS,
    "adamw",
)[0]

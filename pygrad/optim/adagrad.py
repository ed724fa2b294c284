"""Adagrad: descent by the gradient over the root of the sum of its squares."""

from __future__ import annotations

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import EPS, LR, ONE_LR, WEIGHT_DECAY
from ._forms import forms
from .optimizer import Params

__all__ = ["Adagrad", "adagrad"]


class Adagrad(BuiltinOptimizer):
    """Adagrad (Duchi, Hazan and Singer, 2011).

    With g the gradient (negated to maximize) plus weight_decay * p, at step t:
    s = s + g^2;  p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps).

    Args:
        params: parameters, or groups of them.
        lr: the step length.
        lr_decay: the decay of the step length.
        weight_decay: pulls the parameters towards zero.
        initial_accumulator_value: the initial value of s.
        eps: added to the denominator.
        foreach, fused: accepted; there is one implementation.
        maximize: ascend instead.
        differentiable: only ``False``.

    Raises:
        ValueError: a number is out of range.
        NotImplementedError: ``differentiable=True``.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(1, requires_grad=True)
        >>> optimizer = pygrad.optim.Adagrad([w], lr=0.25)
        >>> w.grad = pygrad.full((1,), 2.0)
        >>> optimizer.step()
        >>> round(w.item(), 4)
        0.75
    """

    _row = "_adagrad_"
    _order = (
        "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable "
        "fused"
    )
    _checks = (
        ONE_LR,
        LR,
        ("lr_decay >= 0.0", "Invalid lr_decay value: {lr_decay}"),
        WEIGHT_DECAY,
        (
            "initial_accumulator_value >= 0.0",
            "Invalid initial_accumulator_value value: {initial_accumulator_value}",
        ),
        EPS,
    )
    _state = "step: counter, sum: full(initial_accumulator_value)"
    _refuses = ()
    _begins_at_once = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())


adagrad, _single_tensor_adagrad, _multi_tensor_adagrad = forms(
    "_adagrad_", "fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex"
)
_fused_adagrad = _single_tensor_adagrad


def _make_sparse(grad: Tensor, grad_indices: Tensor, values: Tensor) -> Tensor:
    """A sparse tensor with the gradient's indices and these values."""
    return pygrad.sparse_coo_tensor(grad_indices, values, grad.size(), dtype=values.dtype)

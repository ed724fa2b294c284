"""Adafactor: stores only row and column averages of a matrix of squared gradients."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import ONE_LR
from ._forms import forms
from .optimizer import Params

__all__ = ["Adafactor", "adafactor"]


class Adafactor(BuiltinOptimizer):
    """Adafactor (Shazeer and Stern, 2018), without momentum.

    Args:
        params: parameters, or groups of them.
        lr: the largest step relative to a parameter's root mean square.
        beta2_decay: at step t, new squares have the weight t^beta2_decay.
        eps: the least root of a square (the dtype's eps if None), and the least root mean square.
        d: updates with a larger root mean square are scaled down to d.
        weight_decay: pulls the parameters towards zero.
        foreach: accepted; there is one implementation.
        maximize: ascend instead.

    Raises:
        ValueError: a number is out of range.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(2, 2, requires_grad=True)
        >>> optimizer = pygrad.optim.Adafactor([w], lr=0.5)
        >>> w.grad = pygrad.ones(2, 2)
        >>> optimizer.step()
        >>> w[0].tolist()
        [0.5, 0.5]
    """

    _row = "_adafactor_"
    _order = "lr beta2_decay eps d weight_decay foreach maximize"
    _checks = (
        ONE_LR,
        ("lr >= 0.0", "Learning rate should be >= 0 but is: {lr}"),
        ("beta2_decay <= 0.0", "beta2_decay should be <= 0 but is: {beta2_decay}"),
        ("eps[0] is None or eps[0] >= 0.0", "epsilon1 should be >= 0 but is: {eps[0]}"),
        ("eps[1] >= 0.0", "epsilon2 should be >= 0 but is: {eps[1]}"),
        ("d >= 1.0", "Clipping threshold d should be >= 1 but is: {d}"),
        ("weight_decay >= 0.0", "weight_decay should be >= 0 but is: {weight_decay}"),
    )
    _state = "step: counter, row_var: rows, col_var: columns, variance: vector"
    _refuses = ("complex", "sparse")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, locals())


adafactor, _single_tensor_adafactor, _multi_tensor_adafactor = forms(
    "_adafactor_", "foreach grad_scale found_inf has_complex"
)

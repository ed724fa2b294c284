"""Adafactor: stores only row and column averages of a matrix of squared gradients."""

from __future__ import annotations

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import (
    BuiltinOptimizer,
    State,
)
from ._forms import forms, step_from_class
from .optimizer import Group, Params

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
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        if grad.dim() > 1:
            own["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
            own["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
        else:
            own["variance"] = pygrad.zeros_like(grad)

    def _update(self, group: Group) -> None:
        lr = float(group["lr"])
        if any(p.is_complex() and p.grad is not None for p in group["params"]):
            raise RuntimeError("Adafactor does not support complex parameters")
        for parameter, grad, own in self._stepping(group):
            step = own["step"].item()
            least, least_root = group["eps"]
            least = pygrad.finfo(parameter.dtype).eps if least is None else least
            grad = -grad if group["maximize"] else grad
            root = parameter.numel() ** 0.5
            rate = max(least_root, parameter.norm(2).item() / root) * min(lr, 1 / step**0.5)
            if group["weight_decay"] != 0:
                parameter.mul_(1 - lr * group["weight_decay"])
            share = step ** group["beta2_decay"]
            update = _squares(own, grad, share, least).clamp_(min=least * least).rsqrt_().mul_(grad)
            rate /= max(1.0, update.norm(2).item() / (root * group["d"]))
            parameter.add_(update, alpha=-rate)


def _squares(own: dict[str, Tensor], grad: Tensor, share: float, least: float) -> Tensor:
    """Estimates of the squared gradients, after updating the averages with this gradient."""
    if grad.dim() <= 1:
        return own["variance"].lerp_(grad.square(), share).clone()
    for key, dim in (("row_var", -1), ("col_var", -2)):
        own[key].lerp_(grad.norm(dim=dim, keepdim=True).square_().div_(grad.size(dim)), share)
    rows = own["row_var"]
    return (rows @ own["col_var"]).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=least))


adafactor, _single_tensor_adafactor, _multi_tensor_adafactor = forms(
    step_from_class(
        Adafactor,
        {
            "row_vars": "row_var",
            "col_vars": "col_var",
            "variances": "variance",
            "state_steps": "step",
        },
    ),
    lists="params grads row_vars col_vars variances state_steps",
    options="d lr beta2_decay weight_decay eps1 eps2 maximize",
    flags="foreach grad_scale found_inf has_complex",
    name="adafactor",
)

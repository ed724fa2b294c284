"""Adagrad: descent by the gradient over the root of the sum of its squares."""

from __future__ import annotations

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import (
    BuiltinOptimizer,
    State,
    check_choice,
    check_fused,
    check_learning_rate,
    check_not_negative,
    direction,
    like_sparse,
    new_step,
    number_for,
)
from ._forms import forms, step_from_class
from .optimizer import Group, Params

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

    _takes_sparse = True

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
        check_learning_rate(lr)
        check_not_negative("lr_decay value", lr_decay)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("initial_accumulator_value value", initial_accumulator_value)
        check_not_negative("epsilon value", eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        check_choice(defaults)
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                own = self.state[parameter]
                own["step"] = new_step()
                self._begin(own, group, parameter, parameter)

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        own["sum"] = pygrad.full_like(
            parameter, number_for(parameter, self.defaults["initial_accumulator_value"])
        )

    def _update(self, group: Group) -> None:
        check_fused(group, group["params"])
        lr, lr_decay, eps = (float(group[key]) for key in ("lr", "lr_decay", "eps"))
        for parameter, grad, own in self._stepping(group):
            if grad.is_sparse and group["weight_decay"] != 0:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = direction(group, parameter, grad)
            total = own["sum"]
            length = lr / (1 + (own["step"].item() - 1) * lr_decay)
            if grad.is_sparse:
                grad = grad.coalesce()
                total.add_(grad.pow(2))
                values = grad._values() / total.sparse_mask(grad)._values().sqrt().add_(eps)
                parameter.add_(like_sparse(grad, values), alpha=-length)
                continue
            total.addcmul_(grad, grad, value=1)
            parameter.addcdiv_(grad, total.sqrt().add_(eps), value=-length)


adagrad, _single_tensor_adagrad, _multi_tensor_adagrad = forms(
    step_from_class(Adagrad, {"state_sums": "sum", "state_steps": "step"}),
    lists="params grads state_sums state_steps",
    options="lr weight_decay lr_decay eps maximize",
    flags="fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
    name="adagrad",
)
_fused_adagrad = _single_tensor_adagrad


def _make_sparse(grad: Tensor, grad_indices: Tensor, values: Tensor) -> Tensor:
    """A sparse tensor with the gradient's indices and these values."""
    return pygrad.sparse_coo_tensor(grad_indices, values, grad.size(), dtype=values.dtype)

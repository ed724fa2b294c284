"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import (
    BuiltinOptimizer,
    State,
    check_adaptive,
    check_not_negative,
    decayed_direction,
    new_step,
)
from ._forms import forms, step_from_class
from .optimizer import Group, Params

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
        check_adaptive(lr, betas, eps, weight_decay)
        check_not_negative("momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        own["mu_product"] = new_step(1.0)
        own["exp_avg"] = pygrad.zeros_like(parameter)
        own["exp_avg_sq"] = pygrad.zeros_like(parameter)

    def _update(self, group: Group) -> None:
        beta1, beta2 = group["betas"]
        lr, decay = float(group["lr"]), group["momentum_decay"]
        for parameter, grad, own in self._stepping(group):
            step = own["step"].item()
            grad = decayed_direction(group, parameter, grad)
            mu, following = (beta1 * (1 - 0.5 * 0.96 ** (t * decay)) for t in (step, step + 1))
            own["mu_product"].mul_(mu)
            product = own["mu_product"].item()
            own["exp_avg"].lerp_(grad, 1 - beta1)
            own["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            scale = own["exp_avg_sq"].div(1 - beta2**step).sqrt_().add_(group["eps"])
            parameter.addcdiv_(grad, scale, value=-lr * (1 - mu) / (1 - product))
            rate = -lr * following / (1 - product * following)
            parameter.addcdiv_(own["exp_avg"], scale, value=rate)


nadam, _single_tensor_nadam, _multi_tensor_nadam = forms(
    step_from_class(
        NAdam,
        {
            "exp_avgs": "exp_avg",
            "exp_avg_sqs": "exp_avg_sq",
            "mu_products": "mu_product",
            "state_steps": "step",
        },
    ),
    lists="params grads exp_avgs exp_avg_sqs mu_products state_steps",
    options="beta1 beta2 lr weight_decay momentum_decay eps",
    flags="decoupled_weight_decay foreach capturable differentiable has_complex maximize",
    name="nadam",
)

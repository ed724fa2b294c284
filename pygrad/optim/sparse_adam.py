"""SparseAdam: Adam for sparse gradients, of embeddings for instance."""

from __future__ import annotations

from typing import Any

from .._package import pygrad
from .._tensor import Tensor
from . import _functional as F
from ._builtin import check_not_negative
from .optimizer import Closure, Optimizer, ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam that changes the rows alone that a sparse gradient has, their running means too.

    Args:
        params: parameters, or groups of them; dense.
        lr: the step length, a number or a tensor of one element.
        betas: the weights of the past in the two running means.
        eps: added to the denominator.
        maximize: ascend instead.

    Raises:
        ValueError: a number is out of range, or a parameter is sparse.
        RuntimeError: in a step, a gradient is dense.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(2, requires_grad=True)
        >>> optimizer = pygrad.optim.SparseAdam([w], lr=0.5)
        >>> w.grad = pygrad.ones(2)
        >>> optimizer.step()
        Traceback (most recent call last):
        RuntimeError: SparseAdam does not support dense gradients, please consider Adam instead
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (("learning rate", lr), ("epsilon value", eps)):
            if not value > 0.0:
                raise ValueError(f"Invalid {name}: {value}")
        for index in (0, 1):
            if not 0.0 <= betas[index] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")
        check_not_negative("epsilon value", eps)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [
            [number, place]
            for number, group in enumerate(self.param_groups)
            for place, parameter in enumerate(group["params"])
            if parameter.is_sparse
        ]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )

    def step(self, closure: Closure | None = None) -> Any:
        """Update the parameters that have a gradient, once; as for the other optimizers."""
        loss = None
        if closure is not None:
            with pygrad.enable_grad():
                loss = closure()
        with pygrad.no_grad():
            for group in self.param_groups:
                self._update(group)
        return loss

    def _update(self, group: dict[str, Any]) -> None:
        lists: tuple[list[Any], ...] = ([], [], [], [], [])
        for parameter in group["params"]:
            grad = parameter.grad
            if grad is None:
                continue
            if not grad.is_sparse:
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead"
                )
            own = self.state[parameter]
            if not own:
                own["step"] = 0
                own["exp_avg"] = pygrad.zeros_like(parameter)
                own["exp_avg_sq"] = pygrad.zeros_like(parameter)
            own["step"] += 1
            row = (parameter, grad, own["exp_avg"], own["exp_avg_sq"], own["step"])
            for each, value in zip(lists, row, strict=True):
                each.append(value)
        beta1, beta2 = group["betas"]
        F.sparse_adam(
            *lists,
            eps=group["eps"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            maximize=group.get("maximize", False),
        )

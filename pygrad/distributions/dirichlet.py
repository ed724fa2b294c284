"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from .. import nn
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..autograd.function import Function, once_differentiable
from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    """The gradient with respect to the concentration."""
    total = concentration.sum(-1, True).expand_as(concentration)
    slope: Tensor = pygrad._dirichlet_grad(x, concentration, total)
    return slope * (grad_output - (x * grad_output).sum(-1, True))


class _Dirichlet(Function):
    """Draws with gradients."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x: Tensor = pygrad._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad_output)


class Dirichlet(ExponentialFamily):
    """Dirichlet distributions over positive numbers with a sum of 1.

    Args:
        concentration: (*, K), positive.
        validate_args: check parameters and values.

    Raises:
        ValueError: a concentration that is not positive, or that has no dimension.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Dirichlet(pygrad.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {  # noqa: RUF012
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        inside = above / above.sum(-1, True)
        # With all concentrations below 1 the mode is a corner, which the argmax over 0 / 0 selects.
        corner = nn.functional.one_hot(inside.argmax(-1), inside.shape[-1]).to(inside)
        return pygrad.where((self.concentration < 1).all(-1, True), corner, inside)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        found: Tensor = _Dirichlet.apply(
            self.concentration.expand(self._extended_shape(sample_shape))
        )
        return found

    def log_prob(self, value: Tensor) -> Any:
        self._check(value)
        power = (self.concentration - 1.0).xlogy(value).sum(-1)
        return power - self._log_normalizer(self.concentration)

    def entropy(self) -> Any:
        a, total = self.concentration, self.concentration.sum(-1)
        rest = ((a - 1.0) * a.digamma()).sum(-1)
        return self._log_normalizer(a) - (a.size(-1) - total) * total.digamma() - rest

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Any:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()

"""The beta distribution."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """Beta distributions, with densities proportional to x ** (a - 1) * (1 - x) ** (b - 1).

    Args:
        concentration1: a.
        concentration0: b.
        validate_args: check parameters and values.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Beta(1.0, 3.0).mean
        tensor(0.2500)
    """

    arg_constraints = {  # noqa: RUF012
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        both = pygrad.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._dirichlet = self._dirichlet.expand(batch_shape)

    @property
    def concentration1(self) -> Tensor:
        """a."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """b."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Any:
        self._check(value)
        return self._dirichlet.log_prob(pygrad.stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Any:
        return x.lgamma() + y.lgamma() - (x + y).lgamma()

"""The distribution of Lewandowski, Kurowicka and Joe."""

from __future__ import annotations

import math
from typing import Any

from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Distributions of Cholesky factors of correlation matrices.

    The density of a matrix is proportional to det ** (concentration - 1); 1 is uniform.

    Args:
        dim: the number of rows, at least 2.
        concentration: large values concentrate the matrices near the identity.
        validate_args: check parameters and values.

    Raises:
        ValueError: too few rows, or a concentration that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.LKJCholesky(2, 1.0).log_prob(pygrad.eye(2))
        tensor(-0.6931)
    """

    arg_constraints = {"concentration": constraints.positive}  # noqa: RUF012
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The distribution of the squared length of each row left of the diagonal. Row 0 has no
        # such elements.
        rows = pygrad.arange(dim - 1, dtype=self.concentration.dtype)
        rows = pygrad.cat([rows.new_zeros(1), rows])
        marginal = (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1)
        self._beta = Beta(rows + 0.5, marginal - 0.5 * rows)
        super().__init__(self.concentration.size(), (dim, dim), validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new.dim = self.dim
        new._beta = self._beta.expand((*batch_shape, self.dim))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Factors without gradients, by the onion method: row by row."""
        squares = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        directions = pygrad.randn(shape, dtype=squares.dtype).tril(-1)
        directions = directions / directions.norm(dim=-1, keepdim=True)
        directions[..., 0, :] = 0.0
        drawn = squares.sqrt() * directions
        left = (1 - (drawn**2).sum(-1)).clamp(min=pygrad.finfo(drawn.dtype).tiny)
        return drawn + left.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Any:
        self._check(value)
        rest = self.dim - 1
        order = self.dim - pygrad.arange(2, self.dim + 1)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + order
        found = (order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = self.concentration + 0.5 * rest
        norm = 0.5 * rest * math.log(math.pi) + (alpha - 0.5).mvlgamma(rest)
        return found - (norm - alpha.lgamma() * rest)

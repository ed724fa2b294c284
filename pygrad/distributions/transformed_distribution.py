"""The distribution of a transformed random variable."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of f(x) for x from a base distribution and f a chain of transforms.

    Args:
        base_distribution: the distribution of x.
        transforms: one transform, or a list: the first is applied first.
        validate_args: check values.

    Raises:
        ValueError: an argument that is no transform, or a base with too few dimensions.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import Normal, TransformedDistribution
        >>> from pygrad.distributions.transforms import TanhTransform
        >>> squashed = TransformedDistribution(Normal(0.0, 1.0), [TanhTransform()])
        >>> squashed.log_prob(pygrad.tensor(0.5))
        tensor(-0.7821)
    """

    arg_constraints: Any = {}  # noqa: RUF012
    base_dist: Any

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Any,
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        elif not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms: list[Transform] = transforms
        whole = ComposeTransform(transforms)
        domain, codomain = whole.domain.event_dim, whole.codomain.event_dim
        base_dims = len(base_distribution.event_shape)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(base_shape) < domain:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {domain}, "
                f"but got {base_shape}."
            )
        shape = whole.forward_shape(base_shape)
        wanted = Size(whole.inverse_shape(shape))
        if wanted != base_shape:
            base_distribution = base_distribution.expand(wanted[: len(wanted) - base_dims])
        if domain > base_dims:
            base_distribution = Independent(base_distribution, domain - base_dims)
        self.base_dist = base_distribution
        cut = len(shape) - max(codomain, base_dims + codomain - domain)
        super().__init__(shape[:cut], shape[cut:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = Size(batch_shape) + self._event_shape
        for transform in reversed(self.transforms):
            shape = Size(transform.inverse_shape(shape))
        new = self._get_checked_instance(self._owner(), _instance)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        self._expand_more(new, Size(batch_shape))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        for name in self._given_parameters():
            new.__dict__[name] = self.__dict__[name].expand(batch_shape)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the base distribution has `rsample`."""
        return self.base_dist.has_rsample  # type: ignore[no-any-return]

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """The codomain of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        more = len(self._event_shape) - last.event_dim
        return constraints.independent(last, more) if more > 0 else last

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with pygrad.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Any:
        self._check(value)
        found: Any = 0
        dims, y = len(self._event_shape), value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            grown = transform.log_abs_det_jacobian(x, y)
            found = found - _sum_rightmost(grown, dims - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return found + _sum_rightmost(base, dims - len(self.base_dist.event_shape))

    def _increasing(self, value: Tensor) -> Tensor:
        """Replaces probabilities p by 1 - p where the chain of transforms decreases."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._increasing(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._increasing(value)))

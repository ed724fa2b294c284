"""Invertible functions of values, with the logarithms of their Jacobian determinants."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from .. import linalg
from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..nn import functional as F
from . import constraints
from .constraints import Constraint
from .utils import _sum_rightmost, broadcast_all, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A function from values that satisfy `domain` to values that satisfy `codomain`.

    A subclass defines both, ``_call``, and, for densities, ``_inverse`` and
    ``log_abs_det_jacobian``.

    Args:
        cache_size: 1 to store the last value and its image, so that the inverse of that image is
            exact.

    Raises:
        ValueError: another cache_size than 0 or 1.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions.transforms import ExpTransform
        >>> ExpTransform().inv(pygrad.ones(2))
        tensor([0., 0.])
    """

    bijective = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached_x_y: tuple[Any, Any] = (None, None)
        self._inv: Transform | None = None
        super().__init__()  # a transform may also be a module: call its constructor

    @property
    def event_dim(self) -> int:
        """The number of dimensions of a value."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim  # type: ignore[no-any-return]

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 for an increasing function, -1 for a decreasing one."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with the given cache size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, x: Tensor) -> Tensor:
        """The image of x."""
        if not self._cache_size:
            return self._call(x)
        if self._cached_x_y[0] is not x:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]  # type: ignore[no-any-return]

    def _inv_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        if self._cached_x_y[1] is not y:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]  # type: ignore[no-any-return]

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The log-determinant of the absolute Jacobian at x, with image y."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the image of a value with the given shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The inverse of :meth:`forward_shape`."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform."""

    _inv: Transform

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform
        self.bijective = transform.bijective

    @property
    def domain(self) -> Constraint:
        return self._inv.codomain  # type: ignore[no-any-return]

    @property
    def codomain(self) -> Constraint:
        return self._inv.domain  # type: ignore[no-any-return]

    @property
    def sign(self) -> Any:
        return self._inv.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = Transform.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


def _extend(base: Constraint, event_dim: int) -> Constraint:
    """A constraint extended to at least the given number of dimensions."""
    more = event_dim - base.event_dim
    return constraints.independent(base, more) if more > 0 else base


class ComposeTransform(Transform):
    """A chain of transforms.

    Args:
        parts: the transforms, in order of application.
        cache_size: see :class:`Transform`; applies to all parts.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import transforms as tr
        >>> both = tr.ComposeTransform([tr.ExpTransform(), tr.AffineTransform(1.0, 2.0)])
        >>> both(pygrad.zeros(1)), both.inv(pygrad.tensor([3.0]))
        (tensor([3.]), tensor([0.]))
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts
        self.bijective = all(part.bijective for part in parts)

    @property
    def domain(self) -> Constraint:
        if not self.parts:
            return constraints.real
        need = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            need = max(
                need + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim
            )
        return _extend(self.parts[0].domain, need)

    @property
    def codomain(self) -> Constraint:
        if not self.parts:
            return constraints.real
        need = self.parts[0].domain.event_dim
        for part in self.parts:
            need = max(
                need + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim
            )
        return _extend(self.parts[-1].codomain, need)

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        if not self.parts:
            return pygrad.zeros_like(x)
        total: Any = 0
        dims, last = self.domain.event_dim, len(self.parts) - 1
        for k, part in enumerate(self.parts):
            image = y if k == last else part(x)
            grown = part.log_abs_det_jacobian(x, image)
            total = total + _sum_rightmost(grown, dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = image
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform: Final = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dimensions are reinterpreted as event dimensions.

    Args:
        base_transform: the transform to reinterpret.
        reinterpreted_batch_ndims: the number of dimensions.
        cache_size: see :class:`Transform`.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions.transforms import ExpTransform, IndependentTransform
        >>> x = pygrad.ones(3)
        >>> IndependentTransform(ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
        tensor(3.)
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.bijective = base_transform.bijective

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return type(self)(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @property
    def domain(self) -> Constraint:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Constraint:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        grown = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(grown, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Reshapes a value.

    Args:
        in_shape: the shape of a value.
        out_shape: the shape of its image, with the same number of elements.
        cache_size: see :class:`Transform`.

    Raises:
        ValueError: different numbers of elements.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions.transforms import ReshapeTransform
        >>> ReshapeTransform((2, 3), (6,))(pygrad.zeros(5, 2, 3)).shape
        torch.Size([5, 6])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    @property
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _replace_trailing_shape(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _replace_trailing_shape(shape, self.out_shape, self.in_shape)


def _replace_trailing_shape(shape: Any, end: Size, other: Size) -> Any:
    """Replaces the shape at the end of a shape by another one."""
    if len(shape) < len(end):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(end)
    if shape[cut:] != end:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {end}")
    return shape[:cut] + other


class _Alike(Transform):
    """A transform that equals any other of its class."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = Transform.__hash__


class _Increasing(_Alike):
    """An increasing function of numbers."""

    domain = constraints.real
    bijective = True
    sign: Any = 1


class ExpTransform(_Increasing):
    """y = exp(x).

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.ExpTransform()(pygrad.zeros(1))
        tensor([1.])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent for positive x.

    Args:
        exponent: a number or a tensor.
        cache_size: see :class:`Transform`.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.PowerTransform(2.0).inv(pygrad.tensor(9.0))
        tensor(3.)
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return pygrad.broadcast_shapes(shape, self.exponent.shape)

    def inverse_shape(self, shape: Any) -> Any:
        return pygrad.broadcast_shapes(shape, self.exponent.shape)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """sigmoid(x), clamped away from 0 and 1."""
    return _inside(x.sigmoid())


def _inside(y: Tensor) -> Tensor:
    """Values in (0, 1), clamped away from both ends."""
    limits = pygrad.finfo(y.dtype)
    return y.clamp(min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(_Increasing):
    """y = 1 / (1 + exp(-x)).

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.SigmoidTransform()(pygrad.zeros(1))
        tensor([0.5000])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = _inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Increasing):
    """y = log(1 + exp(x)).

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.SoftplusTransform()(pygrad.zeros(1))
        tensor([0.6931])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x)


class TanhTransform(_Increasing):
    """y = tanh(x).

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.TanhTransform()(pygrad.zeros(1))
        tensor([0.])
    """

    codomain = constraints.interval(lower_bound=-1.0, upper_bound=1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        # log(1 - tanh(x)^2), in a form without cancellation.
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(_Alike):
    """y = \\|x\\|; the inverse is the positive value.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.AbsTransform()(-pygrad.ones(1))
        tensor([1.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x.

    Args:
        loc: a number or a tensor.
        scale: a number or a tensor, not 0.
        event_dim: the number of dimensions of a value.
        cache_size: see :class:`Transform`.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.AffineTransform(1.0, 2.0)(pygrad.ones(1))
        tensor([3.])
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size)

    @property
    def domain(self) -> Constraint:
        return _extend(constraints.real, self.event_dim)

    @property
    def codomain(self) -> Constraint:
        return _extend(constraints.real, self.event_dim)

    @property
    def sign(self) -> Any:
        scale = self.scale
        return scale.sign() if isinstance(scale, Tensor) else (scale > 0) - (scale < 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(bool(pygrad.as_tensor(a == b).all()) for a, b in pairs)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            grown = self.scale.abs().log().expand(x.shape)
        else:
            grown = pygrad.full_like(x, math.log(abs(self.scale)))
        return _sum_rightmost(grown, self.event_dim)

    def forward_shape(self, shape: Any) -> Any:
        shapes = [v.shape for v in (self.loc, self.scale) if isinstance(v, Tensor)]
        return pygrad.broadcast_shapes(shape, *shapes)

    def inverse_shape(self, shape: Any) -> Any:
        return self.forward_shape(shape)


class CumulativeDistributionTransform(Transform):
    """y = P(X <= x) for a distribution of X.

    Args:
        distribution: the distribution of X, which has ``cdf`` and ``icdf``.
        cache_size: see :class:`Transform`.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import Normal
        >>> from pygrad.distributions.transforms import CumulativeDistributionTransform
        >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(pygrad.zeros(1))
        tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign: Any = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Constraint:
        return self.distribution.support  # type: ignore[no-any-return]

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else type(self)(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)  # type: ignore[no-any-return]


class CorrCholeskyTransform(Transform):
    """Maps D (D - 1) / 2 numbers to the Cholesky factor of a correlation matrix with D rows.

    The numbers fill the matrix row by row. As in `StickBreakingTransform`, each takes a part, here
    with a sign, of the rest of its row, whose length is 1.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.CorrCholeskyTransform()(pygrad.zeros(1))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = pygrad.finfo(x.dtype).eps
        parts = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - parts**2).sqrt().cumprod(-1)
        parts = parts + pygrad.eye(parts.shape[-1], dtype=parts.dtype)
        return parts * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = F.pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        parts = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (parts.log1p() - parts.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Any:
        # Elements below the diagonal: `left` is the rest of the row before each element, which
        # the cumulative sum has one place to the left.
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        of_tanh = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * left.log().sum(-1) + of_tanh

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class _PartsTransform(Transform):
    """The base class of transforms of a value's parts along a dimension."""

    def __init__(self, tseq: Iterable[Transform], dim: int, cache_size: int) -> None:
        tseq = list(tseq)
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else tseq
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    def _fits(self, size: int, name: str) -> None:
        """Raise ``AssertionError`` if the size along the dimension does not match the parts."""
        raise NotImplementedError

    def _check_parts(self, x: Tensor, name: str, dims_of: str) -> None:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for {dims_of} with {x.dim()} dimensions"
            )
        self._fits(x.size(self.dim), name)


class CatTransform(_PartsTransform):
    """Applies a transform to each part of given length, and joins the results like `cat`.

    Args:
        tseq: the transforms.
        dim: the dimension.
        lengths: the length of each part; 1 by default.
        cache_size: see :class:`Transform`.

    Raises:
        AssertionError: the wrong number of lengths, or a value of the wrong length.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import transforms as tr
        >>> both = tr.CatTransform([tr.ExpTransform(), tr.identity_transform], lengths=[1, 2])
        >>> both(pygrad.zeros(3))
        tensor([1., 0., 0.])
    """

    def __init__(
        self,
        tseq: Iterable[Transform],
        dim: int = 0,
        lengths: Iterable[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The sum of the lengths of the parts."""
        return sum(self.lengths)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _fits(self, size: int, name: str) -> None:
        if size != self.length:
            raise AssertionError(
                f"{name}.size({self.dim}) = {size} must equal length {self.length}"
            )

    def _parts(self, x: Tensor, name: str, dims_of: str = "tensor") -> Iterable[Any]:
        self._check_parts(x, name, dims_of)
        return zip(self.transforms, x.split(self.lengths, self.dim), strict=True)

    def _call(self, x: Tensor) -> Tensor:
        return pygrad.cat([t(part) for t, part in self._parts(x, "x")], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return pygrad.cat([t.inv(part) for t, part in self._parts(y, "y")], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        found: list[Any] = []
        parts, images = self._parts(x, "x", "x"), self._parts(y, "y", "y")
        for (t, part), (_, image) in zip(parts, images, strict=True):
            grown = t.log_abs_det_jacobian(part, image)
            found.append(_sum_rightmost(grown, self.event_dim - t.event_dim))
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return pygrad.cat(found, dim=dim) if dim < 0 else sum(found)


class StackTransform(_PartsTransform):
    """Applies a transform to each slice, and joins the results like `stack`.

    Args:
        tseq: the transforms.
        dim: the dimension.
        cache_size: see :class:`Transform`.

    Raises:
        AssertionError: a value with the wrong number of slices.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import transforms as tr
        >>> tr.StackTransform([tr.ExpTransform(), tr.identity_transform])(pygrad.zeros(2))
        tensor([1., 0.])
    """

    def __init__(self, tseq: Iterable[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _fits(self, size: int, name: str) -> None:
        if size != len(self.transforms):
            raise AssertionError(
                f"{name}.size({self.dim}) = {size} must equal len(transforms) "
                f"{len(self.transforms)}"
            )

    def _parts(self, x: Tensor, name: str, dims_of: str = "tensor") -> Iterable[Any]:
        self._check_parts(x, name, dims_of)
        return zip(self.transforms, x.unbind(self.dim), strict=True)

    def _call(self, x: Tensor) -> Tensor:
        return pygrad.stack([t(part) for t, part in self._parts(x, "x")], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return pygrad.stack([t.inv(part) for t, part in self._parts(y, "y")], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        parts, images = self._parts(x, "x", "x"), self._parts(y, "y", "y")
        found = [
            t.log_abs_det_jacobian(part, image)
            for (t, part), (_, image) in zip(parts, images, strict=True)
        ]
        return pygrad.stack(found, dim=self.dim)


class SoftmaxTransform(_Alike):
    """y = exp(x) / sum(exp(x)), which is not bijective, since x may be shifted.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.SoftmaxTransform()(pygrad.zeros(2))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        grown = (x - x.max(-1, True)[0]).exp()
        return grown / grown.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        return self.forward_shape(shape)


class StickBreakingTransform(_Alike):
    """Maps K numbers to K + 1 with a sum of 1. Each number breaks a part off the rest of a stick.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.StickBreakingTransform()(pygrad.zeros(1))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _remaining_sticks(x: Tensor, sticks: int) -> Tensor:
        """The number of parts after each one. With this offset, zeros give equal parts."""
        return sticks - pygrad.ones_like(x).cumsum(-1)

    def _call(self, x: Tensor) -> Tensor:
        part = _inside((x - self._remaining_sticks(x, x.shape[-1] + 1).log()).sigmoid())
        left = (1 - part).cumprod(-1)
        return F.pad(part, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=pygrad.finfo(y.dtype).tiny)
        return parts.log() - left.log() + self._remaining_sticks(parts, y.shape[-1]).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._remaining_sticks(x, x.shape[-1] + 1).log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(_Alike):
    """Maps a matrix to a lower triangular one with a positive diagonal.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.LowerCholeskyTransform()(pygrad.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Alike):
    """Maps a matrix to a positive definite one.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.transforms.PositiveDefiniteTransform()(pygrad.zeros(1, 1))
        tensor([[1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))

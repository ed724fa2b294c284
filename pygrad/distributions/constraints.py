"""What parameters and values of distributions must satisfy."""

from __future__ import annotations

from typing import Any

from .._package import pygrad
from .._tensor import Tensor

__all__ = ["Constraint"]


class Constraint:
    """A condition on the last `event_dim` dimensions of a tensor.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import constraints
        >>> constraints.positive.check(pygrad.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Where the value satisfies the condition."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


class _Bounded(Constraint):
    """A condition with bounds, which are shown."""

    _names: tuple[str, ...]

    def __init__(self, *values: Any, **bounds: Any) -> None:
        self._bounds = dict(zip(self._names, values, strict=False)) | bounds
        self.__dict__.update(self._bounds)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self._bounds.items())
        return f"{type(self).__name__.removeprefix('_')}({shown})"


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(_Bounded):
    _names = ("lower_bound",)
    lower_bound: Any

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = value > self.lower_bound
        return found


class _GreaterThanEq(_Bounded):
    _names = ("lower_bound",)
    lower_bound: Any

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = value >= self.lower_bound
        return found


class _LessThan(_Bounded):
    _names = ("upper_bound",)
    upper_bound: Any

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = value < self.upper_bound
        return found


class _Interval(_Bounded):
    _names = ("lower_bound", "upper_bound")
    lower_bound: Any
    upper_bound: Any

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = (value >= self.lower_bound) & (value <= self.upper_bound)
        return found


class _HalfOpenInterval(_Interval):
    def check(self, value: Tensor) -> Tensor:
        found: Tensor = (value >= self.lower_bound) & (value < self.upper_bound)
        return found


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(_GreaterThanEq):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _Multinomial(Constraint):
    """Counts that add up to `upper_bound`."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)
        return found


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _CorrCholesky(Constraint):
    """The Cholesky factor of a correlation matrix: rows of length 1."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        allowed = pygrad.finfo(value.dtype).eps * value.size(-1) * 10
        unit = (value.norm(dim=-1) - 1).abs().le(allowed).all(-1)
        return lower_cholesky.check(value) & unit


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return pygrad.full(value.shape[:-2], value.size(-2) == value.size(-1), dtype=pygrad.bool)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if not bool(square.all()):
            return square
        return pygrad.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not bool(symmetric.all()):
            return symmetric
        return pygrad.linalg.eigvalsh(value).ge(0).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        triangular = (value.tril() == value).flatten(-2).all(-1)
        return triangular & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _PositiveDefinite(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        symmetric = pygrad.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)
        if not bool(symmetric.all()):
            return symmetric
        return pygrad.linalg.cholesky_ex(value).info.eq(0)


class _IndependentConstraint(Constraint):
    def __init__(self, base: Constraint, dims: int) -> None:
        self.base_constraint = base
        self.reinterpreted_batch_ndims = dims
        self.is_discrete = base.is_discrete
        self.event_dim = base.event_dim + dims

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value)
        return found.flatten(found.dim() - self.reinterpreted_batch_ndims).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _MixtureSameFamilyConstraint(Constraint):
    """That of the components, for a value without their dimension."""

    def __init__(self, base: Constraint) -> None:
        self.base_constraint = base
        self.is_discrete = base.is_discrete
        self.event_dim = base.event_dim

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return found.all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


real = _Real()
boolean = _Boolean()
simplex = _Simplex()
one_hot = _OneHot()
square = _Square()
symmetric = _Symmetric()
lower_triangular = _LowerTriangular()
corr_cholesky = _CorrCholesky()
positive_semidefinite = _PositiveSemidefinite()
lower_cholesky = _LowerCholesky()
positive_definite = _PositiveDefinite()
positive = _GreaterThan(lower_bound=0.0)
nonnegative = _GreaterThanEq(lower_bound=0.0)
unit_interval = _Interval(lower_bound=0.0, upper_bound=1.0)
nonnegative_integer = _IntegerGreaterThan(lower_bound=0)
positive_integer = _IntegerGreaterThan(lower_bound=1)
real_vector = _IndependentConstraint(real, 1)
independent = _IndependentConstraint
mixture = _MixtureSameFamilyConstraint
interval = _Interval
half_open_interval = _HalfOpenInterval
integer_interval = _IntegerInterval
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial

"""Constraints on parameters and values of distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import linalg
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A constraint on the last `event_dim` dimensions of a tensor.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import constraints
        >>> constraints.positive.check(pygrad.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """A mask of the values that satisfy the constraint."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


class _Dependent(Constraint):
    """A constraint that depends on other values, so that it cannot be checked statically."""

    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> Any:
        """Whether values are discrete, if that is known."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> Any:
        """The number of dimensions of a value, if that is known."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other values.

    Example:
        >>> from pygrad.distributions import Uniform, constraints
        >>> constraints.is_dependent(Uniform.support), constraints.is_dependent(constraints.real)
        (True, False)
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint. On the class, it is a `dependent` constraint."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _Bounded(Constraint):
    """A constraint with bounds, which its printed form shows."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.__dict__.items())
        return f"{type(self).__name__.removeprefix('_')}({shown})"


class _BoundedBelow(_Bounded):
    """A constraint with a lower bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _BoundedAbove(_Bounded):
    """A constraint with an upper bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Real(Constraint):
    """All numbers except NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(_BoundedBelow):
    """Numbers above a bound."""

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = value > self.lower_bound
        return found


class _GreaterThanEq(_BoundedBelow):
    """Numbers at a bound or above."""

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = value >= self.lower_bound
        return found


class _LessThan(_BoundedAbove):
    """Numbers below a bound."""

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = value < self.upper_bound
        return found


class _Interval(_Bounded):
    """Numbers between two bounds, both included."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = (value >= self.lower_bound) & (value <= self.upper_bound)
        return found


class _HalfOpenInterval(_Interval):
    """Numbers from one bound up to another, which is excluded."""

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = (value >= self.lower_bound) & (value < self.upper_bound)
        return found


class _IntegerInterval(_Interval):
    """Integers from one bound to another."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(_GreaterThanEq):
    """Integers from a bound on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class _IntegerLessThan(_BoundedAbove):
    """Integers up to a bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = (value % 1 == 0) & (value <= self.upper_bound)
        return found


class _Boolean(Constraint):
    """The values 0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """One-hot vectors."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _Multinomial(Constraint):
    """Counts with a sum of `upper_bound`."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        found: Tensor = (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)
        return found


class _Simplex(Constraint):
    """Vectors of positive numbers with a sum of 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _LowerTriangular(Constraint):
    """Lower triangular matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices: rows of length 1."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        allowed = pygrad.finfo(value.dtype).eps * value.size(-1) * 10
        unit = (value.norm(dim=-1) - 1).abs().le(allowed).all(-1)
        return lower_cholesky.check(value) & unit


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return pygrad.full(value.shape[:-2], value.size(-2) == value.size(-1), dtype=pygrad.bool)


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if not bool(square.all()):
            return square
        return pygrad.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not bool(symmetric.all()):
            return symmetric
        return linalg.eigvalsh(value).ge(0).all(-1)


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        triangular = (value.tril() == value).flatten(-2).all(-1)
        return triangular & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _PositiveDefinite(Constraint):
    """Symmetric matrices with positive eigenvalues."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        symmetric = pygrad.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)
        if not bool(symmetric.all()):
            return symmetric
        return linalg.cholesky_ex(value).info.eq(0)


class _OfBase(Constraint):
    """A constraint derived from a base constraint."""

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(
                f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
            )
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> Any:
        """Whether the base constraint is discrete."""
        return self.base_constraint.is_discrete


class _IndependentConstraint(_OfBase):
    """Reinterprets the last batch dimensions of the base constraint as event dimensions."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        super().__init__(base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int):
            raise AssertionError(
                "reinterpreted_batch_ndims must be an int, got "
                f"{type(reinterpreted_batch_ndims).__name__}"
            )
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(
                f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
            )
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def event_dim(self) -> Any:
        """The event dimensions of the base constraint plus the reinterpreted ones."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value)
        if found.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        kept = found.shape[: found.dim() - self.reinterpreted_batch_ndims]
        return found.reshape((*kept, -1)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_OfBase):
    """The constraint of the components, for a value without the dimension of components.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import constraints
        >>> constraints.MixtureSameFamilyConstraint(constraints.positive).check(pygrad.ones(2))
        tensor([True, True])
    """

    @property
    def event_dim(self) -> Any:
        """The number of event dimensions of the components."""
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        kept = found.shape[: value.dim() - self.event_dim]
        return found.reshape((*kept, -1)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Parts(Constraint):
    """Constraints on the parts of a value along a dimension."""

    def __init__(self, cseq: Iterable[Constraint], dim: int = 0) -> None:
        self.cseq = list(cseq)
        if not all(isinstance(c, Constraint) for c in self.cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.dim = dim

    @property
    def is_discrete(self) -> Any:
        """Whether any of the constraints is discrete."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> Any:
        """The greatest number of event dimensions of the constraints."""
        return max(c.event_dim for c in self.cseq)

    def _check_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.dim()} dimensions"
            )


class _Cat(_Parts):
    """Constraints on parts of given lengths, which `cat` would join."""

    def __init__(
        self, cseq: Iterable[Constraint], dim: int = 0, lengths: Iterable[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        parts = value.narrow(self.dim, 0, sum(self.lengths)).split(self.lengths, self.dim)
        checks = [c.check(part) for c, part in zip(self.cseq, parts, strict=True)]
        return pygrad.cat(checks, self.dim)


class _Stack(_Parts):
    """Constraints on slices, which `stack` would join."""

    @property
    def event_dim(self) -> Any:
        """The greatest number of the constraints, plus one if it covers the slices' dimension."""
        most = super().event_dim
        return most + 1 if self.dim + most < 0 else most

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        slices = value.unbind(self.dim)
        checks = [c.check(v) for c, v in zip(self.cseq, slices, strict=False)]
        return pygrad.stack(checks, self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
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
interval = _Interval
half_open_interval = _HalfOpenInterval
integer_interval = _IntegerInterval
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
cat = _Cat
stack = _Stack

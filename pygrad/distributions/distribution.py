"""`Distribution`, the base class: shapes, checks of parameters and values, printing."""

from __future__ import annotations

import warnings
from typing import Any, Self

from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from .constraints import Constraint, is_dependent
from .utils import all_true, lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A batch of distributions over events of one shape.

    Args:
        batch_shape: the shape of the batch.
        event_shape: the shape of one value.
        validate_args: check parameters and values; on by default.

    Raises:
        ValueError: a parameter that is out of range.

    Example:
        >>> import pygrad
        >>> normal = pygrad.distributions.Normal(pygrad.zeros(3), 1.0)
        >>> normal.batch_shape, normal.event_shape, normal.sample((2,)).shape
        (torch.Size([3]), torch.Size([]), torch.Size([2, 3]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = True

    def __init__(
        self,
        batch_shape: Any = (),
        event_shape: Any = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_arguments()
        super().__init__()  # a distribution may also be a module: call its constructor

    def _check_arguments(self) -> None:
        """Raises ValueError unless each argument satisfies its constraint."""
        try:
            found = self.arg_constraints
        except NotImplementedError:
            found = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = "
                "{}` or initialize the distribution with `validate_args=False` to turn off "
                "validation.",
                stacklevel=3,
            )
        for name, constraint in found.items():
            derived = isinstance(getattr(type(self), name, None), lazy_property)
            if is_dependent(constraint) or (derived and name not in self.__dict__):
                continue
            value = getattr(self, name)
            if not all_true(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions check their arguments by default."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def arg_constraints(self) -> Any:
        """The constraint of each parameter, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint of values."""
        raise NotImplementedError

    def _given_parameters(self) -> list[str]:
        """The names of the parameters that were given or already computed. It is not called
        `_parameters`, because a subclass that is also a module has an attribute of that name.
        """
        return [name for name in self.arg_constraints if name in self.__dict__]

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """Expands the distribution to a larger batch shape.

        Args:
            batch_shape: the new batch shape.
            _instance: the object to fill, for subclasses of the user with their own parameters.
        """
        batch_shape = Size(batch_shape)
        new = self._get_checked_instance(self._owner(), _instance)
        for name in self._given_parameters():
            value = self.__dict__[name]
            constraint = self.arg_constraints[name]
            tail = value.shape[value.dim() - constraint.event_dim :]
            new.__dict__[name] = value.expand(batch_shape + Size(tail))
        self._expand_more(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new  # type: ignore[no-any-return]

    def _owner(self) -> Any:
        """The class of this package from which a class of the user is derived."""
        package = Distribution.__module__.rpartition(".")[0] + "."
        return next(kind for kind in type(self).__mro__ if kind.__module__.startswith(package))

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """The object that `expand` fills; an error if a subclass overrides only `__init__`."""
        if _instance is not None:
            return _instance
        if cls is Distribution:
            raise NotImplementedError
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        """Expands state that is not a parameter."""

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values without gradients, (*sample_shape, *batch_shape, *event_shape)."""
        with pygrad.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """n values; deprecated."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample((n,))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values with gradients for the parameters."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability at a value."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a value less than or equal to this one."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of :meth:`cdf`."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution with a finite number of values."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The mode."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _check(self, value: Any) -> None:
        """Raise ``ValueError`` for a value outside of the support, unless checks are off."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """Raise ``ValueError`` for a value outside of the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.dim() - len(self._event_shape)
        if value.shape[start:] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.size()} vs {self._event_shape}."
            )
        actual, expected = value.size(), self._batch_shape + self._event_shape
        for i, j in zip(reversed(actual), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{actual} vs {expected}."
                )
        try:
            constraint: Constraint = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=2,
            )
            return
        if constraint is None:
            raise AssertionError("support is unexpectedly None")
        if not all_true(constraint.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({constraint!r}) of the distribution {self!r}, but "
                f"found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        shown = []
        for name in self._given_parameters():
            value = self.__dict__[name]
            shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(shown)})"

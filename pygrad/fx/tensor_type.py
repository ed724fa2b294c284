"""Annotations of tensors with the sizes of their dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final


class _DynType:
    """A size that is not known."""

    __name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn: Final = _DynType()


class TensorType:
    """A tensor with these sizes; `Dyn` where one is not known.

    Example:
        >>> from pygrad.fx.tensor_type import Dyn, TensorType, is_consistent
        >>> is_consistent(TensorType((1, 2)), TensorType((1, Dyn)))
        True
    """

    def __init__(self, dim: Sequence[Any]) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Sequence[Any]:
        """The sizes."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.dims}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.dims) == list(other.dims)

    __hash__ = None  # type: ignore[assignment]

    def __class_getitem__(cls, dims: Any) -> TensorType:
        return cls(dims if isinstance(dims, tuple) else (dims,))


def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether the two may be the same type, `Dyn` being anything."""
    if t1 in (t2, Dyn) or t2 == Dyn:
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.dims) == len(t2.dims) and all(map(is_consistent, t1.dims, t2.dims))
    return False


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether the first type implies the second."""
    if t1 == t2 or t2 == Dyn:
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.dims) == len(t2.dims) and all(map(is_more_precise, t1.dims, t2.dims))
    return False


__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]

"""Sizes that are no single number: a ragged dimension's size is one number for each entry of the
batch.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Final

from .._ground.dtypes import Size

_ids: Final = itertools.count(1)


class SymInt:
    """The size of a ragged dimension: equal to the size of every tensor with the same offsets, and
    to no number.

    Example:
        >>> import pygrad as torch
        >>> x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
        >>> isinstance(x.shape[1], torch.SymInt), x.shape[1] == (x + 1).shape[1], x.shape[1] == 3
        (True, True, False)
    """

    __slots__ = ("_ident", "_times")
    is_symbolic_size = True  # `torch.Size` accepts it

    def __init__(self, node: int, times: int = 1) -> None:
        self._ident, self._times = node, times

    def __repr__(self) -> str:
        return f"j{self._ident}" if self._times == 1 else f"{self._times}*j{self._ident}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymInt) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, int]:
        return self._ident, self._times

    def __mul__(self, other: Any) -> SymInt:
        if isinstance(other, SymInt):
            raise ValueError("Cannot multiply nested int by nested int")
        if type(other) is not int:
            return NotImplemented
        return SymInt(self._ident, self._times * other)

    __rmul__ = __mul__

    def _at_least(self, other: Any) -> bool:
        """Compares a ragged size, whose value is unknown but assumed not to be 0 or 1."""
        if isinstance(other, SymInt) and other._ident == self._ident:
            return self._times >= other._times
        if isinstance(other, int) and other <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def _at_most(self, other: Any) -> bool:
        if isinstance(other, SymInt):
            return other._at_least(self)
        if isinstance(other, int) and other < 2:
            return False
        raise ValueError("ge: relation is indeterminate")

    def __ge__(self, other: Any) -> bool:
        return self._at_least(other)

    def __gt__(self, other: Any) -> bool:
        return not self._at_most(other)

    def __le__(self, other: Any) -> bool:
        return self._at_most(other)

    def __lt__(self, other: Any) -> bool:
        return not self._at_least(other)


_sizes: Final[dict[int, tuple[Any, SymInt]]] = {}
"""The ragged sizes, by the id of the tensor of offsets or lengths, with a weak reference to it."""


def ragged_size_of(source: Any) -> SymInt:
    """The ragged size of tensors with these offsets or lengths: one object for each `source`."""
    ident = id(source)
    found = _sizes.get(ident)
    if found is None or found[0]() is not source:
        ref = weakref.ref(source, lambda ref: _forget(ident, ref))
        found = _sizes[ident] = (ref, SymInt(next(_ids)))
    return found[1]


def _forget(ident: int, ref: Any) -> None:
    found = _sizes.get(ident)
    if found is not None and found[0] is ref:
        _sizes.pop(ident, None)


def shape_of(sizes: Any) -> Size:
    """A shape of sizes, one of which is ragged."""
    return tuple.__new__(Size, sizes)

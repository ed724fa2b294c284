"""Addresses of elements, as `data_ptr` gives them: numbers that pin the memory they are of.

A pin makes the engine copy what it saves of the memory, because a program with its address may
write there at any time. No one can see such a write. But a program that compares addresses, or
looks them up, wants to know which tensors share memory, and is through with them when it lets
them go. So the pin ends with the last of its numbers, unless one was never compared: that one may
have gone into C code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .release import released


class _Pin:
    """The pin that all addresses of one call share; it ends with the last of them."""

    __slots__ = ("for_good", "storage")

    def __init__(self, storage: int) -> None:
        self.storage, self.for_good = storage, False

    def __del__(self, end: Callable[[int], None] = released.append) -> None:
        end(self.storage | (3 if self.for_good else 2))


def _operator(name: str) -> Any:
    """A comparison, or a sum or difference; that of an address and a number is an address."""
    compute = getattr(int, name)

    def method(self: Address, other: Any) -> Any:
        found = compute(self, other)
        if isinstance(other, Address):
            self._compared = other._compared = True
        elif type(found) is int:
            return Address(found, self._pin)
        return found

    method.__name__ = name
    return method


class Address(int):
    """An int that knows whether it was compared with its like. A sum of it and a number is an
    address too.
    """

    _pin: _Pin
    _compared: bool

    def __new__(cls, value: int, pin: _Pin) -> Address:
        self = super().__new__(cls, value)
        self._pin, self._compared = pin, False
        return self

    def __del__(self) -> None:
        if not self._compared:
            self._pin.for_good = True

    def __hash__(self) -> int:
        self._compared = True
        return int.__hash__(self)

    def __int__(self) -> int:
        self._pin.for_good = True
        return int.__int__(self)

    def __reduce__(self) -> Any:
        return int, (int.__int__(self),)

    __eq__, __ne__ = map(_operator, ("__eq__", "__ne__"))
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("__lt__", "__le__", "__gt__", "__ge__"))
    __add__, __radd__, __sub__ = map(_operator, ("__add__", "__radd__", "__sub__"))


def address(place: int, storage: int) -> int:
    """A place within a storage of the engine's, which has just been pinned."""
    return Address(place, _Pin(storage))

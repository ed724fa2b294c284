"""Functions that are builtins in PyTorch: as class attributes they do not bind, here either.

In a class, ``conv = torch.conv2d`` calls a C++ function of PyTorch with the arguments alone, and a
Python function with the object before them. So a function of the op table that is such a builtin is
a method of its `Namespace`, as PyTorch's builtins are methods of a type, which costs a call
nothing; and a builtin that Python composes is a `Builtin`, which adds no frame.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Namespace:
    """A module whose functions are methods of this object. The object and its functions are pickled
    by name.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> Any:
        return namespace, (self._name,)

    def __deepcopy__(self, _: Any) -> Namespace:
        return self


@functools.cache
def namespace(name: str) -> Namespace:
    """The `Namespace` of a module."""
    return Namespace(name)


class Builtin(staticmethod):  # type: ignore[type-arg]  # it has no parameters when it runs
    """A function of Python that does not bind."""

    __name__: str
    __qualname__: str

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self

    def __repr__(self) -> str:
        return f"<built-in method {self.__name__} of {self.__module__}>"

    def __reduce__(self) -> str:  # pickled by name
        return self.__qualname__


def builtin(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: PyTorch's function of this name is a builtin."""
    return Builtin(function)

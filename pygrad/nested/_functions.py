"""Looks up which op a function of the package is, by the name that rules of nested tensors use, and
whether it is element-wise. All comes from the op table.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from .._table import functions as _ops
from .._tensor.operators import _INPLACE_OPERATORS, _OPERATORS
from .._tensor.tensor import PARTS, Tensor

_ELEMENTWISE: Final = frozenset({"direct", "batch:elementwise", "elementwise"})
"""Words of rows that compute each element of one of the same place."""
_ITSELF: Final = "batch:itself"
_SPACES: Final = {"linalg": "linalg.", "fft": "fft.", "special": "", "masked": "masked."}


class Known:
    """Facts about a function.

    Attributes:
        name: its op. each: whether it is element-wise. itself: whether it is about the tensor, not
        its elements. native: whether it is made from the op table. getter: whether it reads a
        property that is written in Python.
    """

    __slots__ = ("each", "getter", "itself", "name", "native")

    def __init__(self, name: str, words: frozenset[str] | None, getter: bool = False) -> None:
        self.name, self.native, self.getter = name, words is not None, getter
        words = words or frozenset()
        self.each = bool(words & _ELEMENTWISE)
        self.itself = _ITSELF in words


def _words(op: Any, space: str) -> frozenset[str]:
    return frozenset().union(*(words for words, _ in op.rows_in(space)))


@functools.cache
def _table_functions() -> dict[Any, Known]:
    """The facts by unbound function."""
    known, by_name = {}, {op.name: op for op in _ops.TABLE}
    for op in _ops.TABLE:
        for space, functions in _ops.SPACES.items():
            if space == "internal":
                continue
            for name in op.names(space):
                function = functions[name]
                full = _SPACES.get(space, "") + name
                inner = getattr(function, "__func__", function)
                known[inner] = Known(full, _words(op, space))
    for table, ending in ((_OPERATORS, ""), (_INPLACE_OPERATORS, "_")):
        for name, operators in table.items():
            for operator in operators.split():
                method = getattr(Tensor, operator)
                known[method] = Known(name + ending, frozenset(by_name[name].words))
    return known


def reflected_operators() -> dict[str, str]:
    """The ops of reflected operators that the class `Tensor` composes of others, by the operators'
    names. A quotient is composed of ops for nested tensors too.
    """
    own = " ".join(_OPERATORS.values()).split()
    written = {name for part in PARTS for name in vars(part)}
    pairs = [(f"__r{name[2:]}", op) for op in _OPERATORS for name in _OPERATORS[op].split()]
    return {name: op for name, op in pairs if name in written and name not in own and op != "div"}


@functools.cache
def _getters() -> dict[int, str]:
    return {
        id(each): name
        for part in PARTS
        for name, each in vars(part).items()
        if isinstance(each, property)
    }


def function_info(function: Any) -> Known:
    """The facts about a function that ``__torch_function__`` receives."""
    inner = getattr(function, "__func__", function)
    found = _table_functions().get(inner)
    if found is not None:
        return found
    owner = getattr(function, "__self__", None)
    if isinstance(owner, property):
        name = _getters().get(id(owner), "")
        words = _property_words().get(name)
        kind = function.__name__
        if kind == "__get__":
            return Known(name, words, words is None)
        return Known(f"{name}.{kind}", words)
    in_autograd = function.__module__.endswith(".autograd")
    return Known(f"autograd.{function.__name__}" if in_autograd else function.__name__, None)


@functools.cache
def _property_words() -> dict[str, frozenset[str]]:
    return {name: _words(op, "property") for op in _ops.TABLE for name in op.names("property")}

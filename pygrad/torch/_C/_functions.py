"""`torch._C._functions`: the classes of nodes, by their names."""

from __future__ import annotations

import re
from typing import Any

from ..._ground.dtypes import uint8
from ..._table import functions
from ..._tensor.creation import tensor as _tensor
from ..._tensor.tensor import Tensor
from ...autograd import graph

_C = functions.C


class _Applied(graph._Recorded):
    """A callable that returns aliases of its tensors with another history."""

    __slots__ = ()

    def __new__(cls, *args: Any) -> Any:
        made: Any = object.__new__(cls)
        made._address = 0
        return made

    def name(self) -> str:
        return f"torch::autograd::{type(self).__name__}"

    @property
    def next_functions(self) -> tuple[Any, ...]:
        """None: it is no part of a graph itself."""
        return ()


def _check_inputs(inputs: tuple[Any, ...], wanted: int) -> tuple[Any, ...]:
    if len(inputs) != wanted:
        raise TypeError(f"expected {wanted} arguments, got {len(inputs)} instead")
    for i, each in enumerate(inputs):
        if each is not None and not isinstance(each, Tensor):
            raise TypeError(f"argument {i} is not a Variable")
    return inputs


class DelayedError(_Applied):
    """Takes `n_inputs` tensors and returns aliases of them; a backward that reaches one raises
    RuntimeError.

    Args:
        message: the error's text.
        n_inputs: how many tensors.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(1, requires_grad=True)
        >>> pygrad._C._functions.DelayedError("no way back", 1)(x).backward()
        Traceback (most recent call last):
        ...
        RuntimeError: no way back
    """

    __slots__ = ("_message", "_n")

    def __init__(self, *args: Any) -> None:
        if len(args) != 2:
            raise RuntimeError(f"Requires two arguments, got {len(args)}")
        self._message, self._n = args

    def __call__(self, *inputs: Any) -> Any:
        """Aliases of the tensors; None for None."""
        given = [each for each in _check_inputs(inputs, self._n) if each is not None]
        message = _tensor([*self._message.encode(), 0], dtype=uint8)
        made = iter(_C["_delayed_error"](given, message))
        out = tuple(None if each is None else next(made) for each in inputs)
        return out[0] if len(out) == 1 else out


class UndefinedGrad(_Applied):
    """Returns an alias of a tensor through which only undefined gradients pass.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(1, requires_grad=True)
        >>> pygrad._C._functions.UndefinedGrad()(x).backward()
        >>> x.grad is None
        True
    """

    __slots__ = ()

    def __init__(self, *args: Any) -> None:
        if args:
            raise RuntimeError(f"Requires zero arguments, got {len(args)}")

    def __call__(self, *inputs: Any) -> Any:
        """An alias of the tensor."""
        return _C["_undefined_grad"](*_check_inputs(inputs, 1))


for _each in (DelayedError, UndefinedGrad):
    _each.__module__ = "builtins"
    graph._classes[_each.__name__] = _each

_NAME = re.compile(r"[A-Z]\w*Backward\d+|CopySlices|AccumulateGrad|Error|UndefinedGradBackward")


def __getattr__(name: str) -> Any:
    """The class of nodes with a name, even if no graph has such a node yet."""
    if not _NAME.fullmatch(name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return graph.class_named(name)

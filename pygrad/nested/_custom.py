"""Custom functions of nested tensors: wraps the gradients and saved tensors of their backward as
nested, like the outputs and the originals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import function

_Wrapper = Callable[[Any], Any]


def _itself(value: Any) -> Any:
    return value


def _packed_wrapper(value: Any) -> _Wrapper:
    return value._packed_wrapper() if hasattr(type(value), "_packed_wrapper") else _itself


class _OfNested(function.BackwardCFunction):
    """The ctx, and node, of a function with nested outputs or saved tensors."""

    _of_outputs: Sequence[_Wrapper]
    _of_saved: Sequence[_Wrapper]

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors."""
        found = super().saved_tensors
        return tuple(dress(t) for dress, t in zip(self._of_saved, found, strict=True))

    def apply(self, *args: Any) -> Any:
        """The gradients of forward's arguments."""
        given = []
        for dress, grad in zip(self._of_outputs, args, strict=True):
            apart = grad is not None and dress is not _itself
            given.append(dress(grad[...]) if apart else grad)  # the object is the walk's
        return super().apply(*given)


@functools.cache
def _kind_of(kind: Any) -> type[Any]:
    """The class of a ctx for nested tensors, derived from the function's ctx class."""
    return type(kind.__name__, (_OfNested, kind), {"__module__": kind.__module__})


def adopt_context(ctx: Any, outputs: Sequence[Any], saved: Sequence[Any]) -> None:
    """Gives the ctx of a call with nested outputs or saved tensors its class for these."""
    ctx._of_outputs = tuple(map(_packed_wrapper, outputs))
    ctx._of_saved = tuple(map(_packed_wrapper, saved))
    kind: Any = type(ctx)
    ctx.__class__ = _kind_of(kind)

"""The step of a group as a prepared call, which is reused while nothing changes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from typing import Any, TypeAlias

from .._tensor.tensor import Tensor
from ._description import Formula, getter

State: TypeAlias = dict[str, Any]
Form: TypeAlias = tuple[Formula, tuple[str, ...]]
"""A formula, and the entries of the state that a group's options ask for."""


class Plan:
    """The step of a group as a prepared call, with the data it was prepared from.

    Attributes:
        form: the formula and the entries.
        params: the handles of the group's parameters.
        takes: for each parameter, whether the call has it.
        waits: for each parameter, whether the call lacks it, or None if it has all. Those that
            wait have neither a gradient nor a state.
        get: reads the entries from a parameter's state, or None if there are none.
        states: the handles of the entries of the parameters that the call has.
        call: the prepared call.
        options: the options whose numbers the call has; None if they must be read each time.
        hash: the hash of the options. A tensor may equal a number, but has another hash.
    """

    __slots__ = ("call", "form", "get", "hash", "options", "params", "states", "takes", "waits")

    def __init__(self, form: Form, params: list[Tensor], takes: list[bool]) -> None:
        self.form, self.takes = form, takes
        self.params = [p._h for p in params]
        self.waits = None if all(takes) else [not each for each in takes]
        self.get = getter(form[1]) if form[1] else None
        self.states: list[int] = []
        self.call: Any = None
        self.options: Any = None
        self.hash = 0

    def know(self, options: tuple[Any, ...]) -> None:
        """Stores the options if equal ones cannot have changed in place."""
        self.options = options if _is_plain(options) else None
        self.hash = hash(self.options)

    def is_current(self, params: list[Tensor], states: Mapping[Tensor, State]) -> bool:
        """Whether the call's lists still match the parameters and their state."""
        if [p._h for p in params] != self.params:
            return False
        state_of = states.get
        get = self.get
        if get is not None:
            try:
                if [
                    t._h for p in compress(params, self.takes) for t in get(state_of(p))
                ] != self.states:
                    return False
            except (AttributeError, KeyError, TypeError):
                return False  # an incomplete state
        if self.waits is not None:
            for p in compress(params, self.waits):
                if p._has_grad() or state_of(p):
                    return False
        return True


def _is_plain(options: Any) -> bool:
    if isinstance(options, tuple):
        return all(map(_is_plain, options))
    return isinstance(options, (int, float, str, type(None)))

"""The step of a group as a prepared call, which is reused while nothing changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from .._boundary.prepared import Prepared
from .._tensor.tensor import Tensor
from ._description import Formula

State: TypeAlias = dict[str, Any]
Form: TypeAlias = tuple[Formula, tuple[str, ...]]
"""A formula, and the entries of the state that a group's options ask for."""


class Plan:
    """The step of a group as a prepared call, with the data it was prepared from.

    Attributes:
        form: the formula and the entries.
        rows: for each parameter its handle; if parameters have a state, the handle and the pairs of
            name and handle of the entries, or None: neither a gradient nor a state.
        call: the prepared call.
        options: the options whose numbers the call has; None if they must be read each time.
        hash: the hash of the options. A tensor may equal a number, but has another hash.
    """

    __slots__ = ("call", "form", "hash", "options", "rows")

    def __init__(self, form: Form, rows: list[Any], call: Prepared) -> None:
        self.form, self.rows, self.call = form, rows, call
        self.options: tuple[Any, ...] | None = None
        self.hash = 0

    def know(self, options: tuple[Any, ...]) -> None:
        """Stores the options if equal ones cannot have changed in place."""
        self.options = options if _is_plain(options) else None
        self.hash = hash(self.options)

    def is_current(self, params: list[Tensor], states: Mapping[Tensor, State]) -> bool:
        """Whether the call's lists still match the parameters and their state."""
        _, keys = self.form
        rows = self.rows
        if not keys:
            return [p._h for p in params] == rows
        if len(params) != len(rows):
            return False
        state_of = states.get
        try:
            for p, (handle, entries) in zip(params, rows):  # noqa: B905
                own: Any = state_of(p)
                if p._h != handle:
                    return False
                if entries is None:
                    if own or p._has_grad():
                        return False
                    continue
                for key, entry in entries:
                    if own[key]._h != entry:
                        return False
        except (AttributeError, KeyError, TypeError):
            return False  # an incomplete state
        return True


def _is_plain(options: Any) -> bool:
    if isinstance(options, tuple):
        return all(map(_is_plain, options))
    return isinstance(options, (int, float, str, type(None)))

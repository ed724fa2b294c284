"""Prepared calls: repeated calls with the same lists of tensors, as in an optimizer's step."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

from .. import _boundary as e
from .._ground.dtypes import uint8
from .blocks import empty_for_host
from .calls import (
    _PACK,
    _call2,
    _call2_places,
    _hand_over_rest,
    _header,
    _intern,
    _keywords,
    _lock,
    _memory,
    _mine,
    _other,
    _pop,
    _released,
    _slot,
)

_DESCRIBED = e.DESCRIBED
_HEAD: Final = e.HEAD | (e.PREPARED | e.LONG) << 48
_SLOTS: Final = e.layout["frame_slots"]
_NAMES: Final = e.layout["frame_keywords"]
_END: Final = _NAMES + 16 * 4


class Prepared:
    """A call of an op without results, whose frame is written once in own memory: the lists stay,
    the numbers may be changed.
    """

    __slots__ = ("_at", "_block", "_long", "_numbers_at", "_pack_numbers", "_row")

    def __init__(
        self,
        row: int,
        lists: Sequence[Sequence[int]],
        names: Sequence[str],
        numbers: Sequence[float],
        long: bool = False,
    ) -> None:
        """Writes the frame.

        Args:
            lists: the positional arguments: lists of handles, which the caller keeps alive.
            names, numbers: the keywords. A float must stay a float, a bool a bool.
            long: let other threads run meanwhile.
        """
        handles = [handle for items in lists for handle in items]
        self._row, self._long = row, long
        self._block, self._at = empty_for_host((_END + 8 * len(handles),), uint8)
        slots, at = [], self._at + _END
        for items in lists:
            slots.append(at | len(items) << 32)
            at += 8 * len(items)
        kinds = [e.TENSORS] * len(lists)
        kinds += [e.FLOAT if isinstance(number, float) else e.BOOL for number in numbers]
        tags = sum(kind << (4 * i) for i, kind in enumerate(kinds))
        head = _header(row, len(lists), len(names), e.PREPARED)
        _PACK[len(lists)](_memory, self._at, head, tags, 0, *slots)
        ids = [_keywords.get(name) or _intern(name) for name in names]
        struct.pack_into(f"<{len(ids)}i", _memory, self._at + _NAMES, *ids)
        struct.pack_into(f"<{len(handles)}q", _memory, self._at + _END, *handles)
        self._numbers_at = self._at + _SLOTS + 8 * len(lists)
        forms = "".join("d" if kind == e.FLOAT else "q" for kind in kinds[len(lists) :])
        self._pack_numbers = struct.Struct("<" + forms).pack_into
        self.set(numbers)

    def set(self, numbers: Sequence[float]) -> None:
        """Sets the numbers of later calls."""
        self._pack_numbers(_memory, self._numbers_at, *numbers)

    def run(self) -> None:
        """Calls the op."""
        call2 = e.call2_long if self._long else _call2
        if (key := _lock.free) and _mine() and _lock.free is key:
            _lock.free = None  # `call_with_lock`, with a frame less
            try:
                self._cross(call2)
            finally:
                _lock.free = key
        else:
            e.call_with_lock(self._cross, call2)

    def _cross(self, call2: Callable[..., None]) -> None:
        _slot[0] = _HEAD
        _slot[2] = _pop() if _released else 0
        _slot[4] = self._at
        if _released:
            _hand_over_rest()
        call2(*_call2_places)
        r = _slot[0]
        if r != _DESCRIBED:
            _other(r, self._row, ())

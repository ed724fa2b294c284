"""Calls of the engine's own services that may take long: backwards and calls that resume them.

Each is encoded here for its one row, in less Python than `_call.invoke` takes. After a short
backward the next one keeps the GIL.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from .. import _boundary as e
from . import table
from .arguments import WORDS
from .calls import (
    _DATA,
    _ONE_RELEASED,
    _PACK,
    _call,
    _call2,
    _call2_places,
    _call_long,
    _finish,
    _frame,
    _hand_over_rest,
    _head,
    _header,
    _lock,
    _memory,
    _mine,
    _other,
    _pop,
    _released,
    _result,
    _slot,
    _tensors,
    _trap,
    invoke,
)

_SHORT_WORK = 1 << 15
_call2_long, _DESCRIBED, _NONE = e.call2_long, e.DESCRIBED, e.NONE
_PENDING_LIST = e.DESCRIBED | e.PENDING
_LISTS = {e.INTS, e.TENSORS}
_TAG, _RESULT = e.RESULT_TAG, e.RESULT


def command(row: int) -> Callable[[Any], Any]:
    """A function of a tensor for a backward, which may take long. After a short backward the next
    keeps the GIL.
    """
    head = _head(row, e.LONG, e.TENSOR)
    ints, work = e.ints, e.WORK

    def write(self: Any) -> None:
        _slot[0] = head
        _slot[2] = _pop() if _released else 0
        _slot[4] = self._h
        _slot[6] = 0
        if _released:
            _hand_over_rest()

    def read(self: Any) -> Any:
        r = _result[0]
        if r == _DESCRIBED and ints[_TAG] == _NONE:
            return None
        return _other(r, row, (self,))

    def cross(self: Any, call2: Callable[..., None]) -> Any:
        write(self)
        call2(*_call2_places)
        return read(self)

    def run_command(self: Any) -> Any:
        call2 = _call2 if ints[work] <= _SHORT_WORK else _call2_long
        if (key := _lock.free) and _mine() and _lock.free is key:
            _lock.free = (
                None  # `call_with_lock`, with fewer frames: hooks may run backwards of their own
            )
            try:
                write(self)
                call2(*_call2_places)
                return read(self)
            finally:
                _lock.free = key
        return e.call_with_lock(cross, self, call2)

    return run_command


def resumption(row: int, handles: bool = False) -> Callable[[int, Sequence[int]], Any]:
    """A function (int, ints) -> list of ints, or any other result, for an op with these arguments.

    Args:
        handles: return tensors as handles, which the caller then owns; 0 for None.
    """
    head, at = _head(row, e.LONG, e.INT, e.INTS), e.DATA
    long = "effort:walk" in table.rows[row][0]
    ints, work, words = e.ints, e.WORK, e.words

    def cross(what: int, values: Sequence[int], pack: struct.Struct, call2: Any) -> Any:
        pack.pack_into(_memory, at, *values)
        _slot[0] = head
        _slot[2] = _pop() if _released else 0
        _slot[4] = what
        _slot[6] = at | len(values) << 32
        if _released:
            _hand_over_rest()
        call2(*_call2_places)
        r = _result[0]
        if r | e.PENDING == _PENDING_LIST and (tag := ints[_TAG]) in _LISTS:
            start = words[_RESULT] >> 3
            found: Any = words[start : start + ints[_TAG + 1]].tolist()
            if tag == e.TENSORS and not handles:
                found = _tensors(found, row, {})
            if r != _DESCRIBED:
                try:
                    e.collect_pending()
                except UserWarning:  # a filter made it an error: the results are dropped
                    if handles:
                        _released.extend(filter(None, found))
                    raise
            return found
        return _other(r, row, (what, values))

    def resume(what: int, values: Sequence[int]) -> Any:
        n = len(values)
        if n > 32:
            if n > e.DATA_BYTES // 8:
                return invoke(row, 0, (what, values), {})
            pack = struct.Struct(f"<{n}q")
        else:
            pack = WORDS[n]
        call2 = _call2_long if long and ints[work] > _SHORT_WORK else _call2
        return e.call_with_lock(cross, what, values, pack, call2)

    return resume


def gradient(row: int) -> Callable[..., Any]:
    """A function for the op behind `grad` and `backward`: lists of tensors, flags and numbers,
    encoded without a detour.

    Its arguments are those of the op but for `odd`; roots, inputs and gradients may be None.
    """
    kinds = (*[e.TENSORS] * 3, e.INTS, e.NONE, e.BOOL, e.BOOL, e.INT, e.BOOL, e.BOOL, e.INT)
    tags = sum(tag << (4 * i) for i, tag in enumerate(kinds))
    head = _header(row, 11, 0, e.LONG)
    pack, ints, work = _PACK[11], e.ints, e.WORK

    def cross(words: Sequence[int], slots: Sequence[int], call: Callable[[], None]) -> Any:
        dead, now = 0, head
        if _released:
            dead = _pop()
            now += _ONE_RELEASED * (e.hand_over(1) if _released else 1)
        WORDS[len(words)].pack_into(_memory, _DATA, *words)
        pack(_memory, _frame, now, tags, dead, *slots)
        call()
        if _trap[0]:
            raise e.trap_error()
        return _finish(_result[0], row, (), {})

    def run_gradient(
        roots: Sequence[Any],
        inputs: Sequence[Any],
        grads: Sequence[Any],
        places: Sequence[int],
        retain: bool,
        create: bool,
        accumulate: int,
        unused: bool,
        zeros: bool,
        rows: int,
    ) -> Any:
        words = [0 if t is None else t._h for t in (*roots, *inputs, *grads)]
        words += places
        n = len(words)
        if n > 32:
            how = (bool(retain), bool(create), accumulate, bool(unused), bool(zeros), rows)
            return invoke(row, 0, (roots, inputs, grads, places, None, *how), {})
        at, slots = _DATA, []
        for items in (roots, inputs, grads, places):
            slots.append(at | len(items) << 32)
            at += 8 * len(items)
        slots += (0, retain, create, accumulate, unused, zeros, rows)
        call = _call if ints[work] <= _SHORT_WORK else _call_long
        return e.call_with_lock(cross, words, slots, call)

    return run_gradient

"""The release queue: handles of dead Python objects, objects that the engine no longer needs, and
the engine's warnings.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from _thread import get_ident
from typing import Any, Final

from . import process
from .frame import (
    DROPPED,
    FIRST_RELEASE,
    MAX_RELEASE,
    N_DROPPED,
    N_RELEASE,
    N_WARNINGS,
    RELEASE_WORD,
)
from .host import count_live, ints, memory, scalar_export, text_at, trap_slot, unsigned, words
from .objects import drop_object, watched
from .ownership import _IN_USE, call_with_lock, lock

_next_warning, _release = scalar_export("pg_warning"), scalar_export("pg_release")
queued_warnings: Final[list[str]] = []
"""What callbacks have to warn of: raised when the crossing ends, with the engine's own."""
kept: Final[list[Any]] = []
"""What the last callback returned: the engine takes its own references when the callback ends."""
released: Final[list[int]] = []
"""Handles whose Python objects died; the next crossing hands them over."""


def hand_over(first: int) -> int:
    """Writes released handles into the frame; returns their number for its header. The engine is
    taken.

    Args:
        first: how many the caller has written already, 0 or 1.
    """
    if not first and released:
        words[FIRST_RELEASE] = released.pop()
        first = 1
    n = first
    while released and n <= MAX_RELEASE:
        words[RELEASE_WORD + n - 1] = released.pop()
        n += 1
    return n


def hand_over_rest() -> None:
    """Writes released handles into the frame for `call2`. The engine is taken."""
    memory[N_RELEASE] = hand_over(0)


def drain() -> None:
    """Releases every handle whose object is gone, without waiting for the next call."""
    if lock.free is not None:
        kept.clear()
    call_with_lock(_release_all)


def _release_all() -> None:
    while released:
        memory[N_RELEASE] = hand_over(0)
        _release()
        if not released:
            forget_dropped()


def drain_if_idle() -> bool:
    """`drain`, unless the engine is in use: nothing is waited for.

    Returns: whether it did.
    """
    if trap_slot[0] or lock.free is None:
        return False
    if lock.held is None:  # else a callback may be about to return what is kept
        kept.clear()
    return call_with_lock(_release_all, wait=False) is not _IN_USE


def drain_if_last(address: int) -> None:
    """`drain_if_idle`, if what was just released may have been the last reference to a node."""
    if ints[address >> 2] <= len(released):
        drain_if_idle()


def _at_exit() -> None:
    watched.clear()  # then nobody looks into memory that may be gone


process.hear(process.at_exit, _at_exit)


def live_count() -> int:
    """Live tensors and nodes of the engine."""
    drain()
    return call_with_lock(count_live)  # type: ignore[no-any-return]


def forget_dropped() -> None:
    """Lets go of what the engine needs no more of ours. The engine is taken."""
    while n := ints[N_DROPPED]:
        at = unsigned[DROPPED] >> 2
        idents = ints[at : at + n].tolist()
        ints[N_DROPPED] = 0
        for ident in idents:
            drop_object(ident)


def _take_warnings() -> list[str]:
    """Takes the texts of pending warnings. The caller has taken the engine."""
    texts = queued_warnings[:]
    queued_warnings.clear()
    forget_dropped()
    while address := _next_warning():
        texts.append(text_at(address))
    return texts


_FOLDER: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep


def user_level() -> int:
    """The `stacklevel` with which the caller's warning points out of this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        frame, level = frame.f_back, level + 1
    return level


def collect_pending(beside_an_error: bool = False) -> None:
    """Warnings to raise and callbacks to forget that the engine has queued.

    Args:
        beside_an_error: print what a filter makes an error of: another error is to be raised.
    """
    if lock.free is None and lock.user == get_ident():
        forget_dropped()
        texts = _take_warnings() if ints[N_WARNINGS] or queued_warnings else []
    else:
        texts = call_with_lock(_take_warnings)
    for text in texts:
        try:
            warnings.warn(text, UserWarning, stacklevel=user_level())
        except UserWarning:
            if not beside_an_error:
                raise
            traceback.print_exc()

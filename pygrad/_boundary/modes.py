"""The modes of a thread: recording, inference mode and the like.

The frame holds the modes of one thread, its owner, as a word of bits, and the thread's number, by
which the engine knows its hooks for saved tensors and its profile. A call by another thread first
brings that thread's own there (`_swap`), so that the owner, nearly always the only thread, pays
for one comparison.
"""

from __future__ import annotations

import itertools
import threading
from _thread import get_ident as get_ident
from typing import Any, Final

from . import ownership
from .constants import ANY_LAYOUT as ANY_LAYOUT
from .constants import AUTOCAST as AUTOCAST
from .constants import CAST_ANEW as CAST_ANEW
from .constants import FLOAT16 as FLOAT16
from .constants import GRAD as GRAD
from .constants import INFERENCE as INFERENCE
from .constants import LEVELS as LEVELS
from .constants import MADE_META as MADE_META
from .constants import NO_FORWARD as NO_FORWARD
from .constants import ONE_THREAD as ONE_THREAD
from .constants import VIEW_REPLAY as VIEW_REPLAY
from .frame import MODES, THREAD
from .host import ints as _ints
from .ownership import call_with_lock, farewell

_first: Final = [GRAD]
"""The modes that a thread begins with."""
_words: Final = {0: _first}
"""The word of each thread, by ident, and `_first`; a dead thread's word stays until another thread
gets its ident.
"""
here_now: Final = _ints[MODES : MODES + 1]
"""The modes in the frame, as its one item."""
_numbers = itertools.count()
owner: Final = ownership.lock


class _Farewell:
    """An object that dies with its thread; the next thread may get the same ident."""

    __slots__ = ("ident",)

    def __init__(self) -> None:
        self.ident = get_ident()

    def __del__(self, farewell: Any = farewell) -> None:
        farewell(self.ident)


class _OfThread(threading.local):
    """The word of a thread while another's is in the frame, and the thread's number; 0 is the
    first.
    """

    def __init__(self) -> None:
        self.word = _words[get_ident()] = _first.copy()
        self.number = next(_numbers)
        self.farewell = _Farewell()


_own = _OfThread()
_word_in_frame = _own.word


def _swap() -> None:
    """Puts the modes of the engine's new owner into the frame; repeated if it was interrupted."""
    global _word_in_frame
    word, number = _own.word, _own.number  # created on a thread's first access
    if _word_in_frame is not word:
        _word_in_frame[0] = _ints[MODES]
        _ints[MODES] = word[0]
        _ints[THREAD] = number
        _word_in_frame = word
    owner.ident = owner.user


ownership.on_new_owner = _swap


def _own_frame() -> None:
    call_with_lock(get_ident)


def here() -> tuple[int, list[int], int]:
    """The state with which `finally` restores the modes of this thread without a call, before which
    a signal's handler might raise: the thread, its word, and the modes. ::

        ident, word, was = here()
        try:
            switch(...)
        finally:
            if lock.ident == ident:
                here_now[0] = was
            else:
                word[0] = was
    """
    was = get()
    return get_ident(), _own.word, was


# In `get` and `put`, no call comes between the comparison and the access: another thread cannot run
# there.


def get() -> int:
    """The modes of this thread."""
    while get_ident() != owner.ident:
        _own_frame()
    return _ints[MODES]


def put(word: int) -> int:
    """Sets the modes of this thread; returns the previous ones."""
    while get_ident() != owner.ident:
        _own_frame()
    was, _ints[MODES] = _ints[MODES], word
    return was


def switch(bit: int, on: object) -> int:
    """Sets or clears one bit; returns the former modes."""
    while get_ident() != owner.ident:
        _own_frame()
    was = _ints[MODES]
    _ints[MODES] = was | bit if on else was & ~bit
    return was


def switch_on_everywhere(bit: int) -> None:
    """Sets one bit for all threads, including threads that start later."""
    switch(bit, True)  # this thread's modes are in the frame
    for word in list(_words.values()):
        word[0] |= bit


def clear_for_new_threads(bit: int) -> None:
    """Clears the bit for threads that start later."""
    _first[0] &= ~bit


def replace(clear: int, add: int) -> int:
    """Clears some bits and sets others; returns all the modes as they were."""
    while get_ident() != owner.ident:
        _own_frame()
    was = _ints[MODES]
    _ints[MODES] = was & ~clear | add
    return was

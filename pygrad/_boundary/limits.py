"""Limits of the time that a part of a program may take in the engine."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final

from .._ground.errors import LimitExceeded

_running: Final[dict[int, list[limits]]] = {}
"""The limits that each thread has entered, the innermost last."""


class limits:
    """A context in which the calls of this thread end when its time is over.

    The engine looks at the clock after every ten milliseconds of its own work, within long calls
    too. The call then raises, everything else stays alive, and each later look within the context
    raises again. A part of a program that does not call the engine is not limited.

    Args:
        seconds: the time from the start of the context.

    Raises: LimitExceeded: the time was over, by a call within the context.

    Example:
        >>> import pygrad as torch
        >>> x = torch.rand(2000, 2000)
        >>> with torch.limits(seconds=0.02):
        ...     x = torch.linalg.matrix_power(x, 100)
        Traceback (most recent call last):
        pygrad.LimitExceeded: the limit of 0.02 seconds is exceeded
    """

    def __init__(self, *, seconds: float) -> None:
        if not seconds > 0:
            raise ValueError(f"limits: seconds must be above 0, but got {seconds}")
        self.seconds = seconds
        self._end = 0.0

    def __enter__(self) -> limits:
        self._end = time.monotonic() + self.seconds
        _running.setdefault(threading.get_ident(), []).append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        ident = threading.get_ident()
        mine = _running[ident]
        mine.remove(self)
        if not mine:
            del _running[ident]


def check() -> None:
    """Raises if the time of a limit of this thread is over. The engine polls this function.

    CPython runs the handlers of signals where a function of Python begins: here, for signals that
    came while the engine was busy.
    """
    if not _running:
        return
    now = time.monotonic()
    for each in _running.get(threading.get_ident(), ()):
        if now > each._end:
            raise LimitExceeded(f"the limit of {each.seconds:g} seconds is exceeded")

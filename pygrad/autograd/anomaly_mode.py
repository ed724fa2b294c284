"""Anomaly mode: a backward that fails shows the place of the forward that led to it.

The engine asks for a trace whenever it records a node while the mode is on, and names the trace
again when that node's backward fails; the traces are kept here by id, like callbacks. While off,
the mode costs one branch a node.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from pathlib import Path
from types import FrameType
from typing import Any, Final

from .. import _boundary
from .._boundary import callbacks
from .._table import functions as _functions

__all__ = ["detect_anomaly", "is_anomaly_detection_enabled", "set_detect_anomaly"]

_f = _functions.SPACES["torch"]
_TRACE, _REPORT, _LINE = _boundary.TRACE, _boundary.REPORT, _boundary.LINE
_PACKAGE: Final = Path(__file__).parent.parent
_PLUMBING: Final = {
    str(_PACKAGE / name)
    for name in (
        "_table/functions.py",
        "_tensor/functions.py",
        "_tensor/hooks.py",
        "_tensor/tensor.py",
        "autograd/anomaly_mode.py",
    )
}
"""Files whose frames lead from the user's call to the engine, and do not help the user."""


_BOUNDARY: Final = str(_PACKAGE / "_boundary") + os.sep


def _is_plumbing(filename: str) -> bool:
    return filename in _PLUMBING or filename.startswith(_BOUNDARY)


def _caller() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_plumbing(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _note_trace(_ident: int, _words: list[int]) -> list[int]:
    """Records the current stack, without the source lines, which are read only if it is shown."""
    stack = traceback.StackSummary.extract(traceback.walk_stack(_caller()), lookup_lines=False)
    stack.reverse()
    return [callbacks.keep_object(stack)]


def _report(ident: int, words: list[int]) -> list[int]:
    """Warns of a failure: the engine's heading, and below it the lines of the trace, if any."""
    lines = forward_lines(ident) or []
    _boundary.queued_warnings.append("".join([_boundary.text_at(words[0]), *lines]))
    return []


def _write_line(ident: int, _words: list[int]) -> list[int]:
    """The innermost line of a trace as text, for the engine to read from the frame."""
    stack = callbacks.get_object(ident)
    if not stack:
        return []
    last = stack[-1]
    return callbacks.tell_text(f"{last.filename}:{last.lineno}, in {last.name}: {last.line}")


callbacks.services.update({_TRACE: _note_trace, _REPORT: _report, _LINE: _write_line})


def forward_lines(ident: int) -> list[str] | None:
    """The lines of a trace as `traceback.format_stack` returns them; None without a trace."""
    stack = callbacks.get_object(ident)
    return None if stack is None else stack.format()


def is_anomaly_detection_enabled() -> bool:
    """Whether anomaly mode is on: torch.js's name for `is_anomaly_enabled`.

    Example:
        >>> import pygrad
        >>> pygrad.autograd.is_anomaly_detection_enabled()
        False
    """
    return bool(_f["is_anomaly_enabled"]())


class detect_anomaly:
    """While in this scope, a backward that fails shows the forward that led to it.

    A warning carries the traceback of the call that made the failing node; if a backward made that
    node, one more carries that of its own forward, and so on. With `check_nan` a gradient that is
    not a number is a failure. Slow, so for debugging.

    Args:
        check_nan: raise a RuntimeError when a node's backward gives a nan.

    Warns:
        UserWarning: when it is made, that the mode is on.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore")
        >>> with pygrad.autograd.detect_anomaly():
        ...     x = pygrad.zeros(1, requires_grad=True)
        ...     (x.sqrt() * 0).backward()
        Traceback (most recent call last):
        ...
        RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = _f["is_anomaly_enabled"]()
        self.check_nan = check_nan
        self.prev_check_nan = _f["is_anomaly_check_nan_enabled"]()
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        _f["set_anomaly_enabled"](True, self.check_nan)

    def __exit__(self, *_: Any) -> None:
        _f["set_anomaly_enabled"](self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Turns anomaly mode on or off: at once if called, until the end of the block if used in
    ``with``.

    Args:
        mode: on or off.
        check_nan: raise a RuntimeError when a node's backward gives a nan.

    Example:
        >>> import pygrad
        >>> with pygrad.autograd.set_detect_anomaly(True, check_nan=False):
        ...     pygrad.is_anomaly_enabled(), pygrad.is_anomaly_check_nan_enabled()
        (True, False)
        >>> pygrad.is_anomaly_enabled()
        False
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = _f["is_anomaly_enabled"]()
        self.prev_check_nan = _f["is_anomaly_check_nan_enabled"]()
        _f["set_anomaly_enabled"](mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        _f["set_anomaly_enabled"](self.prev, self.prev_check_nan)

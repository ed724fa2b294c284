"""The only device. It has no streams: the streams of this module let programs written for devices
with streams run on it.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..._ground.absent import answers
from . import amp as amp


class Stream:
    """A stream whose work is always done already.

    Example:
        >>> import pygrad
        >>> with pygrad.cpu.stream(pygrad.cpu.Stream()) as _:
        ...     x = pygrad.ones(2)
    """

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Does nothing."""

    def record_event(self) -> None:
        """Does nothing."""

    def wait_event(self, event: Any) -> None:
        """Does nothing."""


class Event:
    """An event that has come."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing."""

    def synchronize(self) -> None:
        """Does nothing."""

    def wait(self, stream: Any = None) -> None:
        """Does nothing."""


_default = _current = Stream()


class StreamContext(AbstractContextManager[None]):
    """A scope in which a stream is :func:`current_stream`; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self.prev_stream: Stream = _default

    def __enter__(self) -> None:
        global _current
        if self.stream is not None:
            self.prev_stream, _current = _current, self.stream

    def __exit__(self, *_: object) -> None:
        global _current
        if self.stream is not None:
            _current = self.prev_stream


def current_stream(device: Any = None) -> Stream:
    """The stream chosen last."""
    return _current


def stream(stream: Stream | None) -> StreamContext:
    """A scope in which a stream is chosen."""
    return StreamContext(stream)


@functools.cache
def get_capabilities() -> Mapping[str, Any]:
    """Facts about the processor; the engine selects no instruction set by name.

    Example:
        >>> import pygrad
        >>> pygrad.cpu.get_capabilities().get("avx2", False)
        False
    """
    known = {"architecture": platform.machine(), "num_logical_cores": os.cpu_count()}
    return MappingProxyType(known)


_functions = answers(
    __name__,
    {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": "cpu",
        "set_device": None,
        "synchronize": None,
    },
)
globals().update(_functions)

__all__: list[str] = ["Event", "Stream", "StreamContext", "amp", "current_stream"]
__all__ += ["get_capabilities", "stream", *_functions]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

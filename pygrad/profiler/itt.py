"""Ranges of Intel's tools, which pygrad does not have: `is_available()` is False."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._ground.absent import answers, refusals

__all__ = ["range"]

_refused = refusals(
    __name__,
    "mark range_pop range_push",
    RuntimeError,
    "ITT functions not installed. Are you sure you have a ITT build?",
)
_answered = answers(__name__, {"is_available": False})
globals().update(_refused | _answered)
__all__ += [*_refused, *_answered]


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Stands for a range of this name.

    Raises:
        RuntimeError: on entering, since the tool is not available.
    """
    _refused["range_push"](msg.format(*args, **kwargs))
    yield


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

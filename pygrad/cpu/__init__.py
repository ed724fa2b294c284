"""The one device that is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._absent import answers
from . import amp as amp

_functions = answers(
    __name__,
    {"is_available": True, "device_count": 1, "current_device": "cpu", "synchronize": None},
)
globals().update(_functions)

__all__: list[str] = ["amp"]
__all__ += _functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

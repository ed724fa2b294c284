"""Intel's devices, which pygrad lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._ground.absent import answers, refusals

_functions = answers(
    __name__, {"is_available": False, "device_count": 0, "empty_cache": None}
) | refusals(
    __name__,
    "synchronize current_device",
    AssertionError,
    "Torch not compiled with XPU enabled",
)
globals().update(_functions)

__all__: list[str] = []
__all__ += _functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

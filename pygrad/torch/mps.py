"""Apple's devices, which pygrad lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._ground.absent import answers, refusals

_functions = answers(__name__, {"is_available": False, "device_count": 0, "manual_seed": None})
for _name, _inner in (("synchronize", "deviceSynchronize"), ("empty_cache", "emptyCache")):
    _message = f"Cannot execute {_inner}() without MPS backend."
    _functions |= refusals(__name__, _name, RuntimeError, _message)
globals().update(_functions)

__all__: list[str] = []
__all__ += _functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

"""torch.accelerator: no accelerator is present."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._absent import answers

_functions = answers(
    __name__, {"is_available": False, "device_count": 0, "current_accelerator": None}
)
globals().update(_functions)

__all__: list[str] = []
__all__ += _functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

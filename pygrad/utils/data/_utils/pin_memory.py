"""What copies batches to memory that a GPU reads directly: there is none, so they stay."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def pin_memory(data: Any, device: Any = None) -> Any:
    """The data as it is."""
    return data

"""Names of types for annotations.

Example:
    >>> import pygrad as torch
    >>> isinstance(1.5, torch.types.Number)
    True
"""

from __future__ import annotations

from typing import TypeAlias

from ._dtypes import Size, device, dtype
from ._tensor import Tensor

__all__ = ["Device", "Number", "Size", "Tensor", "device", "dtype"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None

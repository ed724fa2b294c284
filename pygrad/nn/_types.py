"""Names for the argument types that layers and initialisers share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .._ground.dtypes import device, dtype

DeviceLike: TypeAlias = device | str | int | None
DTypeLike: TypeAlias = dtype | None
Size1: TypeAlias = int | tuple[int]
Size2: TypeAlias = int | tuple[int, int]
SizeAny: TypeAlias = int | tuple[int, ...]
SizeOrNone: TypeAlias = int | None | tuple[int | None, ...]
ShapeLike: TypeAlias = int | Sequence[int]

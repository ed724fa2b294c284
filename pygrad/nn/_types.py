"""Names for the argument types that layers and initialisers share.

Only annotations use them. What is of ``pygrad`` is there for type checkers alone, so the import of
``pygrad.nn`` does not depend on the order in which ``pygrad`` defines its own names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .._package import pygrad

    DeviceLike: TypeAlias = pygrad.device | str | int | None
    DTypeLike: TypeAlias = pygrad.dtype | None

Size1: TypeAlias = int | tuple[int]
Size2: TypeAlias = int | tuple[int, int]
SizeAny: TypeAlias = int | tuple[int, ...]
SizeOrNone: TypeAlias = int | None | tuple[int | None, ...]
ShapeLike: TypeAlias = int | Sequence[int]

"""Old names of casts: `torch._cast_Long(x)` is ``x.long()``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from . import _dtypes
from ._builtins import builtin
from ._tensor import Tensor

_KINDS: Final = {
    "Byte": _dtypes.uint8,
    "Char": _dtypes.int8,
    "Double": _dtypes.float64,
    "Float": _dtypes.float32,
    "Half": _dtypes.float16,
    "Int": _dtypes.int32,
    "Long": _dtypes.int64,
    "Short": _dtypes.int16,
}


def _make(name: str, kind: Any) -> Callable[..., Tensor]:
    def cast(self: Tensor, non_blocking: bool = False) -> Tensor:
        return self.to(kind, non_blocking=non_blocking)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The tensor in {kind}; itself if it is of that type."
    return builtin(cast)


CASTS: Final = {f"_cast_{name}": _make(f"_cast_{name}", kind) for name, kind in _KINDS.items()}

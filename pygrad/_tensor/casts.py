"""Old names of casts: `torch._cast_Long(x)` is ``x.long()``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .._ground import dtypes
from .._table.builtins import builtin
from .tensor import Tensor


def _make(name: str, kind: Any) -> Callable[..., Tensor]:
    def cast(self: Tensor, non_blocking: bool = False) -> Tensor:
        return self.to(kind, non_blocking=non_blocking)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The tensor in {kind}; itself if it is of that type."
    return builtin(cast)


CASTS: Final = {
    f"_cast_{kind.legacy}": _make(f"_cast_{kind.legacy}", kind)
    for kind in dtypes.CASTS.values()
    if kind not in (dtypes.bool_, dtypes.bfloat16)
}
"""The functions by name: PyTorch had no others when it made them."""

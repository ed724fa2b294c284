"""`pygrad.amp` by the names that older scripts know, with PyTorch's warnings about them."""

from __future__ import annotations

from typing import Any

from ... import amp
from ..._ground.dtypes import bfloat16
from ...amp._older_names import warn_deprecated

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """`amp.autocast("cpu")`.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore")
        >>> with pygrad.cpu.amp.autocast():
        ...     pygrad.ones(1, 1).mm(pygrad.ones(1, 1)).dtype
        torch.bfloat16
    """

    def __init__(
        self, enabled: bool = True, dtype: Any = bfloat16, cache_enabled: bool = True
    ) -> None:
        warn_deprecated("cpu", "autocast")
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`amp.GradScaler("cpu")`.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore")
        >>> pygrad.cpu.amp.GradScaler().is_enabled()
        True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn_deprecated("cpu", "GradScaler")
        super().__init__("cpu", *args, **kwargs)

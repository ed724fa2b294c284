"""`pygrad.amp` by the names that older scripts know, with PyTorch's warnings about them."""

from __future__ import annotations

from typing import Any

from ... import amp
from ...amp._older_names import warn_deprecated

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`amp.autocast("cuda")`, which is off.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore")
        >>> with pygrad.cuda.amp.autocast():
        ...     pass
    """

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        warn_deprecated("cuda", "autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`amp.GradScaler("cuda")`, which is off.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore")
        >>> pygrad.cuda.amp.GradScaler().is_enabled()
        False
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn_deprecated("cuda", "GradScaler")
        super().__init__("cuda", *args, **kwargs)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """`amp.custom_fwd` for "cuda", with PyTorch's warning."""
    warn_deprecated("cuda", "custom_fwd")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """`amp.custom_bwd` for "cuda", with PyTorch's warning."""
    warn_deprecated("cuda", "custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")

"""`pygrad.amp` by the names that older scripts know, with PyTorch's warnings about them."""

from __future__ import annotations

import warnings
from typing import Any

from .. import amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cuda', "
        "args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(amp.autocast):
    """`amp.autocast("cuda")`, which is off.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore")
        >>> with pygrad.cuda.amp.autocast():
        ...     pass
    """

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        _deprecated("autocast")
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
        _deprecated("GradScaler")
        super().__init__("cuda", *args, **kwargs)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """`amp.custom_fwd` for "cuda", with PyTorch's warning."""
    _deprecated("custom_fwd")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """`amp.custom_bwd` for "cuda", with PyTorch's warning."""
    _deprecated("custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")

"""PyTorch's warning about the names of `pygrad.amp` in the modules of a device."""

from __future__ import annotations

import warnings


def warn_deprecated(device: str, name: str) -> None:
    """Issue a warning at the caller's caller."""
    warnings.warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use "
        f"`torch.amp.{name}('{device}', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )

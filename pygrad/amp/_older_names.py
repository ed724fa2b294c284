"""PyTorch's warning about the names of `pygrad.amp` in the modules of a device."""

from __future__ import annotations

import warnings


def deprecated(device: str, name: str) -> None:
    """Warn whoever called the caller."""
    warnings.warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use "
        f"`torch.amp.{name}('{device}', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )

"""The layers PixelShuffle and PixelUnshuffle, under PyTorch's module name."""

from __future__ import annotations

from .resampling import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]

"""The layers that exchange channels and places, where PyTorch has them."""

from __future__ import annotations

from .resampling import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]

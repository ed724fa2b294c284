"""The layer that shuffles channels, under PyTorch's module name."""

from __future__ import annotations

from .resampling import ChannelShuffle

__all__ = ["ChannelShuffle"]

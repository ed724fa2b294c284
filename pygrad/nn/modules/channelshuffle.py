"""The layers that mix channels, where PyTorch has them."""

from __future__ import annotations

from .resampling import ChannelShuffle

__all__ = ["ChannelShuffle"]

"""The layers that mix channels, where PyTorch has them."""

from __future__ import annotations

from pygrad.nn.modules.resampling import ChannelShuffle

__all__ = ["ChannelShuffle"]

"""The layers that resize images, under PyTorch's module name."""

from __future__ import annotations

from .resampling import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]

"""The layers that resample images, where PyTorch has them."""

from __future__ import annotations

from .resampling import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]

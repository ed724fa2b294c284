"""The layers that take images apart into blocks, where PyTorch has them."""

from __future__ import annotations

from .resampling import Fold, Unfold

__all__ = ["Fold", "Unfold"]

"""The layers Fold and Unfold, under PyTorch's module name."""

from __future__ import annotations

from .resampling import Fold, Unfold

__all__ = ["Fold", "Unfold"]

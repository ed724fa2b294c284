"""Optimizers of programs of several processes."""

from __future__ import annotations

from .post_localSGD_optimizer import PostLocalSGDOptimizer

__all__ = ["PostLocalSGDOptimizer"]

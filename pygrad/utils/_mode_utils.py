"""Dispatch without classes of tensors: what PyTorch's own tests and libraries say."""

from __future__ import annotations

from .._dispatch import disabled as no_dispatch

__all__ = ["no_dispatch"]

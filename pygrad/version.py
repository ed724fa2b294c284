"""pygrad's version and build; no vendor's libraries are part of it."""

from __future__ import annotations

from . import __version__ as __version__

__all__ = ["__version__", "cuda", "debug", "hip", "rocm", "xpu"]

debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None

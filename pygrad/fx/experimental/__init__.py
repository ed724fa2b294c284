"""PyTorch's experiments with graphs, of which few are here."""

from __future__ import annotations

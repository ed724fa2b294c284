"""A few of PyTorch's experiments with graphs."""

from __future__ import annotations

"""Comparisons with PyTorch: skipped where it is not installed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip(
    "torch", reason="PyTorch, which these tests compare with, is not installed"
)
torch.set_num_threads(1)

if not torch.__version__.startswith("2.13"):
    pytest.skip(f"PyTorch 2.13 is the oracle, not {torch.__version__}", allow_module_level=True)

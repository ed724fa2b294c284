"""Comparisons with PyTorch: skipped where it is not installed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip(
    "torch", reason="PyTorch, which these tests compare with, is not installed"
)
torch.set_num_threads(1)

if not torch.__version__.startswith("2.13"):
    pytest.skip(f"PyTorch 2.13 is the oracle, not {torch.__version__}", allow_module_level=True)


@pytest.fixture(autouse=True)
def distributions_look_at_their_arguments() -> None:
    """PyTorch's compiler, once used, turns that off for the whole process."""
    torch.distributions.Distribution.set_default_validate_args(True)

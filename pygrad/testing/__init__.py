"""Helpers of tests: `assert_close`, with PyTorch's tolerances and messages, and `make_tensor`.

Example:
    >>> import pygrad as torch
    >>> torch.testing.assert_close(torch.ones(2) / 3 * 3, torch.ones(2))
"""

from __future__ import annotations

from . import _comparison as _comparison
from . import _creation as _creation
from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

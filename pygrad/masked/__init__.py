"""torch.masked: reductions and normalizations of the elements that a mask lets through, functions
made from the op table's rows of this namespace.

Type checkers read masked.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

import sys

from .._table.functions import namespace

globals().update(namespace("masked"))

__all__ = sorted(namespace("masked"))

_ops = sys.modules[__name__]
"""PyTorch's name of the module that these functions are of."""

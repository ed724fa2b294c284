"""torch.masked: reductions and normalizations of the elements that a mask lets through, functions
made from the op table's rows of this namespace.

Type checkers read masked.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from . import _ops

globals().update(_ops.namespace("masked"))

__all__ = sorted(_ops.namespace("masked"))

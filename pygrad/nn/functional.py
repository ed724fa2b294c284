"""torch.nn.functional: functions made from the op table's rows of this namespace.

Type checkers read functional.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from .. import _ops
from . import _functional
from ._functional import *

globals().update(
    (name, function)
    for name, function in _ops.namespace("nn").items()
    if name not in _functional.__all__
)

__all__ = sorted({*_ops.namespace("nn"), *_functional.__all__})

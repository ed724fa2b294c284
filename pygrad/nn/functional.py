"""torch.nn.functional: functions made from the op table's rows of this namespace.

Type checkers read functional.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from pygrad import _ops
from pygrad.nn import _ctc, _functional, _sampling
from pygrad.nn._ctc import *
from pygrad.nn._functional import *
from pygrad.nn._sampling import *

globals().update(_ops.namespace("n"))

__all__ = sorted([*_ops.namespace("n"), *_functional.__all__, *_sampling.__all__, *_ctc.__all__])

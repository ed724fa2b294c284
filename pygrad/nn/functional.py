"""torch.nn.functional: functions made from the op table's rows of this namespace.

Type checkers read functional.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from pygrad import _ops
from pygrad.nn import _attention, _ctc, _fractional, _functional, _sampling, _unpool
from pygrad.nn._attention import *
from pygrad.nn._ctc import *
from pygrad.nn._fractional import *
from pygrad.nn._functional import *
from pygrad.nn._sampling import *
from pygrad.nn._unpool import *

globals().update(_ops.namespace("nn"))

COMPOSED = (_attention, _ctc, _fractional, _functional, _sampling, _unpool)
"""Where the functions are that the table has no rows for."""

__all__ = sorted([*_ops.namespace("nn"), *(name for each in COMPOSED for name in each.__all__)])

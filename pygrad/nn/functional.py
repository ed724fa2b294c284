"""torch.nn.functional: functions made from the op table's rows of this namespace.

Type checkers read functional.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from .. import _ops
from . import _attention, _ctc, _fractional, _functional, _sampling, _unpool
from ._attention import *
from ._ctc import *
from ._fractional import *
from ._functional import *
from ._sampling import *
from ._unpool import *

globals().update(_ops.namespace("nn"))

COMPOSED = (_attention, _ctc, _fractional, _functional, _sampling, _unpool)
"""Where the functions are that the table has no rows for."""

__all__ = sorted([*_ops.namespace("nn"), *(name for each in COMPOSED for name in each.__all__)])

"""torch.nn.functional: functions made from the op table's rows of this namespace.

Type checkers read functional.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from .._table import functions as _functions
from . import _functional
from ._attention_parts import _canonical_mask as _canonical_mask
from ._attention_parts import _check_key_padding_mask as _check_key_padding_mask
from ._attention_parts import _get_softmax_dim as _get_softmax_dim
from ._attention_parts import _in_projection as _in_projection
from ._attention_parts import _in_projection_packed as _in_projection_packed
from ._attention_parts import _mha_shape_check as _mha_shape_check
from ._attention_parts import _none_or_dtype as _none_or_dtype
from ._attention_parts import _verify_batch_size as _verify_batch_size
from ._attention_parts import _verify_spatial_size as _verify_spatial_size
from ._functional import *

globals().update(
    (name, function)
    for name, function in _functions.namespace("nn").items()
    if name not in _functional.__all__
)

__all__ = sorted({*_functions.namespace("nn"), *_functional.__all__})

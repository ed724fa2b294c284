"""Functions that collate samples into batches, under PyTorch's module name."""

from __future__ import annotations

import re

from ..._collate import collate as collate
from ..._collate import collate_float_fn as collate_float_fn
from ..._collate import collate_int_fn as collate_int_fn
from ..._collate import collate_numpy_array_fn as collate_numpy_array_fn
from ..._collate import collate_numpy_scalar_fn as collate_numpy_scalar_fn
from ..._collate import collate_str_fn as collate_str_fn
from ..._collate import collate_tensor_fn as collate_tensor_fn
from ..._collate import default_collate, default_convert
from ..._collate import default_collate_err_msg_format as default_collate_err_msg_format
from ..._collate import default_collate_fn_map as default_collate_fn_map

__all__ = ["default_collate", "default_convert"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")

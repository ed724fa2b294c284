"""Helpers that libraries import: how files make tensors again."""

from ._rebuild import _get_obj_state as _get_obj_state
from ._rebuild import (
    _rebuild_device_tensor_from_cpu_tensor as _rebuild_device_tensor_from_cpu_tensor,
)
from ._rebuild import _rebuild_device_tensor_from_numpy as _rebuild_device_tensor_from_numpy
from ._rebuild import _rebuild_meta_tensor_no_storage as _rebuild_meta_tensor_no_storage
from ._rebuild import _rebuild_nested_tensor as _rebuild_nested_tensor
from ._rebuild import _rebuild_parameter as _rebuild_parameter
from ._rebuild import _rebuild_parameter_with_state as _rebuild_parameter_with_state
from ._rebuild import _rebuild_qtensor as _rebuild_qtensor
from ._rebuild import _rebuild_sparse_tensor as _rebuild_sparse_tensor
from ._rebuild import _rebuild_tensor as _rebuild_tensor
from ._rebuild import _rebuild_tensor_v2 as _rebuild_tensor_v2
from ._rebuild import _rebuild_tensor_v3 as _rebuild_tensor_v3
from ._rebuild import _rebuild_wrapper_subclass as _rebuild_wrapper_subclass
from ._rebuild import _rebuild_xla_tensor as _rebuild_xla_tensor
from ._rebuild import _set_obj_state as _set_obj_state
from ._rebuild import get_tensor_metadata as get_tensor_metadata

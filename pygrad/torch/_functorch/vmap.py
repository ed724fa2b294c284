"""`torch._functorch.vmap`: the steps of vmap by PyTorch's names, for libraries that call them."""

from __future__ import annotations

from ..._transforms.vmap import _add_batch_dim as _add_batch_dim
from ..._transforms.vmap import _create_batched_inputs as _create_batched_inputs
from ..._transforms.vmap import _get_name as _get_name
from ..._transforms.vmap import _maybe_remove_batch_dim as _maybe_remove_batch_dim
from ..._transforms.vmap import _process_batched_inputs as _process_batched_inputs
from ..._transforms.vmap import _remove_batch_dim as _remove_batch_dim
from ..._transforms.vmap import _unwrap_batched as _unwrap_batched
from ..._transforms.vmap import _validate_and_get_batch_size as _validate_and_get_batch_size
from ..._transforms.vmap import _vmap_decrement_nesting as _vmap_decrement_nesting
from ..._transforms.vmap import _vmap_increment_nesting as _vmap_increment_nesting
from ..._transforms.vmap import vmap as vmap

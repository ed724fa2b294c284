"""Levels of `vmap`, and the tensors batched at them, by the names of PyTorch's functorch."""

from __future__ import annotations

from ..._table import functions
from ..._tensor.tensor import Tensor
from ..._transforms.vmap import _add_batch_dim as _add_batch_dim
from ..._transforms.vmap import _remove_batch_dim as _remove_batch_dim
from ..._transforms.vmap import _vmap_decrement_nesting as _vmap_decrement_nesting
from ..._transforms.vmap import _vmap_increment_nesting as _vmap_increment_nesting
from ..._transforms.vmap import is_batchedtensor as is_batchedtensor
from ..._transforms.vmap import levels

__all__: list[str] = []

_C = functions.C


def maybe_get_level(tensor: Tensor) -> int:
    """The innermost level that a tensor is batched at; -1: it is not."""
    return _C["_vmap_level"](tensor) or -1


def maybe_get_bdim(tensor: Tensor) -> int:
    """The batched dimension of a tensor; -1 if it is not batched."""
    level = _C["_vmap_level"](tensor)
    return int(_C["_vmap_dim"](tensor, level)) if level else -1


def get_unwrapped(tensor: Tensor) -> Tensor:
    """All slices of a batched tensor at its innermost level.

    Raises: RuntimeError: it is not batched.
    """
    level = _C["_vmap_level"](tensor)
    if not level:
        raise RuntimeError("No wrappers present!")
    return _remove_batch_dim(tensor, level, 0, maybe_get_bdim(tensor))


def maybe_current_level() -> int | None:
    """The number of the innermost level of vmap; None outside vmap."""
    return levels.stack[-1][0] if levels.stack else None

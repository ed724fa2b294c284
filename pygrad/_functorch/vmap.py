"""What `vmap` is made of, by PyTorch's private names, which containers of tensors import."""

from __future__ import annotations

from .._C._functorch import (
    _add_batch_dim,
    _remove_batch_dim,
    _vmap_decrement_nesting,
    _vmap_increment_nesting,
    is_batchedtensor,
)
from .._tensor import Tensor
from .._tree import flatten as tree_flatten
from .._tree import spread as _broadcast_to_and_flatten
from .._tree import unflatten as tree_unflatten
from .._vmap import name_of as _get_name
from .._vmap import unbatched, vmap

__all__ = [
    "Tensor",
    "_add_batch_dim",
    "_broadcast_to_and_flatten",
    "_get_name",
    "_maybe_remove_batch_dim",
    "_remove_batch_dim",
    "_vmap_decrement_nesting",
    "_vmap_increment_nesting",
    "is_batchedtensor",
    "tree_flatten",
    "tree_unflatten",
    "vmap",
]


def _maybe_remove_batch_dim(
    name: str, batched_output: object, vmap_level: int, batch_size: int, out_dim: int | None
) -> object:
    """All slices of one output of the function `name`, along `out_dim`; None: it has none.

    Raises: ValueError: the output is no tensor, or batched where it is to have no slices.
    """
    return unbatched(name, batched_output, out_dim, vmap_level, batch_size)

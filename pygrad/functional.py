"""Functions of `torch` that PyTorch composes in Python, by the module in which it has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _functions, _ops

_NAMES = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod "
    "cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot "
    "unique unique_consecutive unravel_index"
).split()
for _name in _NAMES:
    _found = getattr(_functions, _name, None) or _ops.SPACES["torch"].get(_name)
    if _found is not None:
        globals()[_name] = _found

__all__ = [_name for _name in _NAMES if _name in globals()]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

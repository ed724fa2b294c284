"""Exchange of tensors with other libraries by the array protocol DLPack."""

from __future__ import annotations

from typing import Any

from .._tensor.creation import from_dlpack
from .._tensor.tensor import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """The capsule of a tensor, which another library can read once.

    Example:
        >>> import pygrad
        >>> from pygrad.utils.dlpack import to_dlpack
        >>> type(to_dlpack(pygrad.ones(2))).__name__
        'PyCapsule'
    """
    return tensor.__dlpack__()

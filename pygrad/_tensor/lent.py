"""Memory of tensors that NumPy arrays and capsules show: who owns it, and the tensor over it."""

from __future__ import annotations

import weakref
from typing import Any, Final

from .. import _boundary
from .._boundary import header
from .._boundary.header import address_of
from .._ground.dtypes import dtype
from .._table import functions
from .base import Tensor

_C = functions.C


class Exported:
    """The owner of a NumPy view: keeps an alias of a tensor, and its export, alive as long as any
    array over it.
    """

    __slots__ = ("__array_interface__", "__weakref__", "exported", "tensor")

    tensor: Tensor

    def __init__(self, tensor: Tensor) -> None:
        self.exported = False
        self.tensor = tensor = _C["_export"](tensor)
        self.exported = True
        size, kind = tensor.itemsize, tensor.dtype
        letter = "u" if not kind.is_signed else "f" if kind.is_floating_point else "i"
        if kind.is_complex:
            letter = "c"
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(tensor.shape),
            "strides": tuple(stride * size for stride in tensor.stride()),
            "typestr": "|b1" if kind.name == "bool" else f"<{letter}{size}",
            "data": (header.place_of(tensor), False),
        }

    def __del__(self) -> None:
        if self.exported:
            _boundary.released.append(self.tensor._h | 1)


def owner_of(array: Any) -> Exported | None:
    """The owner of the memory that an array shows, or None."""
    while array is not None and not isinstance(array, Exported):
        array = getattr(array, "base", None)
    return array


lent: Final[weakref.WeakValueDictionary[int, Exported]] = weakref.WeakValueDictionary()
"""The owners of memory that capsules show, by its address: a capsule does not tell."""


def find_lent_tensor(array: Any, kind: dtype) -> Tensor | None:
    """The tensor over the memory of an array made of a capsule from `to_dlpack`, or None."""
    owner = lent.get(array.__array_interface__["data"][0])
    return None if owner is None else _tensor_over_export(array, kind, owner)


def find_exported_tensor(array: Any, kind: dtype) -> Tensor | None:
    """The tensor over the memory of an array that came from `to_numpy`, or None."""
    return _tensor_over_export(array, kind, owner_of(array))


def _tensor_over_export(array: Any, kind: dtype, owner: Exported | None) -> Tensor | None:
    if (
        owner is None
        or owner.tensor.dtype is not kind
        or any(s % kind.itemsize or s < 0 for s in array.strides)
    ):
        return None
    start = array.__array_interface__["data"][0] - _boundary.base_address
    tensor = owner.tensor
    offset = (start - address_of(tensor)) // kind.itemsize + tensor.storage_offset()
    strides = [s // kind.itemsize for s in array.strides]
    return tensor.as_strided(array.shape, strides, offset).detach()

"""The memory behind tensors, as a row of bytes or of numbers: PyTorch's ``torch.storage``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from . import _engine
from ._dtypes import device, dtype, uint8
from ._host_data import _is_batched
from ._tensor import Tensor
from ._warnings import once

__all__ = ["TypedStorage", "UntypedStorage"]


class _Storage:
    """What is behind a tensor; all views of it have the same."""

    is_cuda = False

    def __init__(self, tensor: Tensor) -> None:
        if _is_batched(tensor):
            raise NotImplementedError("Cannot access storage of BatchedTensorImpl")
        self._tensor = tensor.detach()
        layout = _engine.layout
        storage = _engine.unsigned[(tensor._h + layout["storage"]) >> 2]
        self._bytes = _engine.unsigned[(storage + layout["storage_bytes"]) >> 2]

    _element: Any

    def _flat(self) -> Tensor:
        """All elements, as a tensor of the same memory."""
        n = self.nbytes() // self._tensor.element_size()
        return self._tensor.as_strided((n,), (1,), 0).view(self._element)

    @property
    def device(self) -> device:
        """Where it is: on the CPU."""
        return self._tensor.device

    def data_ptr(self) -> int:
        """The address of the first byte in the engine's memory."""
        return _engine.unsigned[(self._bytes + _engine.layout["bytes_data"]) >> 2]

    def nbytes(self) -> int:
        """The size in bytes."""
        return _engine.words[(self._bytes + _engine.layout["bytes_size"]) >> 3]

    def element_size(self) -> int:
        """The bytes of one element."""
        return int(self._element.itemsize)

    def size(self) -> int:
        """How many elements there are."""
        return self.nbytes() // self.element_size()

    def __len__(self) -> int:
        return self.size()

    def is_shared(self) -> bool:
        """False: processes share no memory of the engine."""
        return False

    def tolist(self) -> list[Any]:
        """The elements."""
        return list(self._flat().tolist())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def _place(self, index: Any) -> Any:
        if isinstance(index, slice):
            return index
        if not isinstance(index, int):
            kind = str(type(self)).replace("pygrad", "torch")
            raise RuntimeError(f"can't index a {kind} with {type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __getitem__(self, index: Any) -> Any:
        place = self._place(index)
        found = self._flat()[place]
        return type(self)(found.clone()) if isinstance(index, slice) else found.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._flat()[self._place(index)] = value

    def fill_(self, value: Any) -> Any:
        """Sets all elements to one value."""
        self._flat().fill_(value)
        return self

    def _described(self) -> str:
        return f"device={self.device}"

    def __repr__(self) -> str:
        rows = "\n ".join(map(str, self.tolist()))
        kind = f"torch.storage.{type(self).__name__}({self._described()})"
        return f" {rows}\n[{kind} of size {len(self)}]"


class UntypedStorage(_Storage):
    """Bytes, what ``Tensor.untyped_storage()`` gives.

    Example:
        >>> import pygrad
        >>> pygrad.tensor([1, 2], dtype=pygrad.int8).untyped_storage()
         1
         2
        [torch.storage.UntypedStorage(device=cpu) of size 2]
    """

    _element = uint8

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self


class TypedStorage(_Storage):
    """Numbers, what ``Tensor.storage()`` gives.

    Example:
        >>> import pygrad
        >>> x = pygrad.zeros(1, 2)
        >>> pygrad.storage.TypedStorage(x)[1] = 3.0
        >>> x
        tensor([[0., 3.]])
    """

    @property
    def dtype(self) -> dtype:
        """That of the elements."""
        return self._tensor.dtype

    _element = dtype

    def type(self) -> str:
        """The legacy name of its type."""
        return str(self._tensor.type()).replace("Tensor", "Storage")

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._tensor)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return super().__getitem__(index)

    def clone(self) -> TypedStorage:
        """A copy of the memory."""
        return TypedStorage(self._flat().clone())

    def _described(self) -> str:
        return f"dtype={self.dtype}, {super()._described()}"


def typed_storage(tensor: Tensor) -> TypedStorage:
    """What ``Tensor.storage()`` gives, with PyTorch's warning the first time."""
    if once("typed storage"):
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will "
            "be the only storage class. This should only matter to you if you are using storages "
            "directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of "
            "tensor.storage()",
            UserWarning,
            stacklevel=3,
        )
    return TypedStorage(tensor)

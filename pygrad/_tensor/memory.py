"""Methods of `Tensor` about its memory: addresses, storages, copies."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any

from .._boundary import attributes, header, overriding
from .._boundary.addresses import address
from .._boundary.arguments import refuse_foreign
from .._table import functions
from .base import TensorBase, check_deepcopied
from .functions import is_storage
from .late import late
from .subclassing import answers_for_ops

if TYPE_CHECKING:
    from .tensor import Tensor

_C, _M = functions.C, functions.SPACES["method"]


@late
def _storage() -> Any:
    from .. import storage

    return storage


class StorageMethods(TensorBase):
    """Methods of `Tensor` that show its memory, share it or copy it."""

    __slots__ = ()

    def data_ptr(self) -> int:
        """The address of the first element in this process, 0 without elements: for code outside
        Python, ctypes and the like. Valid as long as the tensor's storage lives and does not grow.

        The engine cannot know whether or when the address is used to write. So from the first call
        on, the storage is treated like one that a NumPy array shows: it is never moved, and a value
        saved for backward is copied at once instead of at the first write (one copy serves as long
        as the bytes are the same). Values saved before keep their bytes. Hence no write through the
        address changes a gradient.

        This ends when the returned number is freed, if it was hashed or compared with another
        address: such a program only wanted to know which tensors share memory. Otherwise it lasts
        forever. Keep the number as long as you write through it, if you compare it too.

        Not detected: the version counter does not count such writes, so "check" mode does not
        raise; and a write to a gradient or to a value that hooks packed changes it.

        Example:
            >>> import ctypes, pygrad
            >>> x = pygrad.arange(3.0, requires_grad=True)
            >>> elements = (ctypes.c_float * 3).from_address(x.data_ptr())
            >>> loss = (x * x).sum()
            >>> elements[0] = 7
            >>> loss.backward()
            >>> x.tolist(), x.grad.tolist()
            ([7.0, 1.0, 2.0], [0.0, 2.0, 4.0])
        """
        if not self.numel() or attributes.is_absent(self):
            return 0
        _C["_pin"](self)
        return address(header.place_of(self), header.storage_of(self._h))  # type: ignore[arg-type]

    def untyped_storage(self) -> Any:
        """The memory behind the tensor, as bytes."""
        return _storage().UntypedStorage.from_tensor(self)

    def storage(self) -> Any:
        """The memory behind the tensor, as numbers."""
        return _storage().typed_storage(self)

    typed_storage = storage

    def _typed_storage(self) -> Any:
        return _storage().typed_storage(self, warn=False)

    def storage_type(self) -> Any:
        """The legacy class of its storage."""
        return _storage().storage_class(self.dtype)

    def set_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Makes this tensor show the memory of another tensor, or of a storage; of none without an
        argument.

        Args:
            source: the tensor or storage; a storage grows to the requested size.
            storage_offset: the place of the first element, in elements.
            size, stride: the geometry; all of a storage by default.

        Raises:
            RuntimeError: another dtype, or a storage that cannot grow.
        """
        given = args[0] if args else kwargs.get("source")
        if not isinstance(given, (TensorBase, int, float, complex, NoneType)):
            refuse_foreign(given)
            if is_storage(given):
                given = _storage().elements_of(given, self.dtype, legacy=False)
                if args:
                    args = (given, *args[1:])
                else:
                    kwargs["source"] = given
        result: Any = _M["set_"](self, *args, **kwargs)
        return self if isinstance(result, TensorBase) and answers_for_ops(self) else result  # type: ignore[return-value]

    def is_shared(self) -> bool:
        """Whether its memory is a mapped file, which alone is shared by processes."""
        return header.mapped_of(header.storage_of(self._h)) != 0

    def share_memory_(self) -> Tensor:
        """The tensor itself, if its memory is that of a file.

        Raises:
            NotImplementedError: it is not; a copy in another process would not see writes.
        """
        if self.is_shared():
            return self  # type: ignore[return-value]
        raise NotImplementedError("share_memory_: storages cannot be shared by processes")

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not overriding.is_armed() and overriding.is_overriding(self):
            return self.__deepcopy__(memo)  # armed now: the method asks
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        check_deepcopied(self)
        return _storage().deep_copy(self, memo)  # type: ignore[no-any-return]

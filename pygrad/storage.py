"""The memory behind tensors, as a row of bytes or of numbers: PyTorch's ``torch.storage``."""

from __future__ import annotations

import copy
import operator
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ._boundary import calls, header, process
from ._boundary.addresses import address
from ._boundary.mapped_files import filename_of, map_file
from ._ground.dtypes import BY_NAME, C_NAMES, CASTS, complex64, complex128, dtype, uint8
from ._ground.dtypes import device as _device
from ._ground.dtypes import dtype as _Kind
from ._ground.warnings import once
from ._table import functions as _functions
from ._table.builtins import builtin
from ._tensor.base import Tensor, slots_of
from ._tensor.creation import from_buffer, tensor
from ._tensor.host_data import _is_batched, to_bytes
from ._tensor.raw_bytes import bytes_of, check_buffer, read_file

__all__ = ["StorageBase", "TypedStorage", "UntypedStorage"]

_F, _M, _C = _functions.SPACES["torch"], _functions.SPACES["method"], _functions.C
_CASTS: Final = {**CASTS, "complex_double": complex128, "complex_float": complex64}
_INVALID: Final = " received an invalid combination of arguments"
_UNTYPED_FORMS: Final = """ - got {}, but expected one of:
 * (*, int allocator = None, torch.device device = None)
 * (int size, *, int allocator = None, torch.device device = None)
 * (object sequence, *, int allocator = None, torch.device device = None)
"""
_TYPED_FORMS: Final = f"""TypedStorage.__init__{_INVALID}. Expected one of:
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)
"""
_LEGACY_FORMS: Final = f"""{{}}.__new__{_INVALID}. Expected one of:
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)
"""


class _Storage:
    """The base class of both kinds of storage."""

    is_cuda = is_sparse = is_sparse_csr = is_hpu = False
    device: _device

    def untyped(self) -> UntypedStorage:
        """The memory as bytes."""
        raise NotImplementedError

    def _elements_as(self, kind: dtype) -> Tensor:
        """All elements as a tensor of a dtype: see `elements_of`."""
        return elements_of(self, kind, legacy=None)

    def _check(self, doing: str) -> None:
        """Raises RuntimeError: the elements are the affair of a class with __torch_dispatch__."""
        if header.hides(self._cdata):
            raise RuntimeError(f"Attempted to {doing} on an invalid python storage.")

    def data_ptr(self) -> int:
        """The address of the first byte in this process; see `UntypedStorage.data_ptr`."""
        return self.untyped().data_ptr()

    def nbytes(self) -> int:
        """The size in bytes."""
        return self.untyped().nbytes()

    def element_size(self) -> int:
        """The bytes of one element."""
        raise NotImplementedError

    def size(self) -> int:
        """How many elements there are."""
        return self.nbytes() // self.element_size()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __len__(self) -> int:
        return self.size()

    @property
    def _cdata(self) -> int:
        return self.untyped()._cdata

    @property
    def filename(self) -> str | None:
        """The name of the mapped file that is its memory, or None: see `from_file`."""
        return filename_of(self._cdata)

    def is_shared(self) -> bool:
        """Whether it is a mapped file, which alone is shared by processes."""
        return header.mapped_of(self._cdata) != 0

    def is_pinned(self, device: Any = "cuda") -> bool:
        """False: there is no accelerator that could pin memory."""
        return False

    def pin_memory(self, device: Any = "cuda") -> Any:
        """Raises RuntimeError, as PyTorch without an accelerator does."""
        raise RuntimeError("Cannot access accelerator device when none is available.")

    def share_memory_(self, *args: Any, **kwargs: Any) -> Any:
        """Itself, if it is the memory of a file.

        Raises:
            NotImplementedError: it is not: a copy in another process would not see what is written.
        """
        if self.is_shared():
            return self
        raise NotImplementedError("share_memory_: storages cannot be shared by processes")

    def cpu(self) -> Any:
        """Itself."""
        return self

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """Itself: there is only the CPU."""
        _F["empty"](0, device=device)
        return self

    def resizable(self) -> bool:
        """Whether it may grow: not while a NumPy array shows it."""
        return self.untyped().resizable()

    def _view(self, kind: dtype) -> Tensor:
        """All elements, as a tensor of the same memory."""
        return self.untyped()._view(kind)

    _element: Any

    def tolist(self) -> list[Any]:
        """The elements."""
        return list(self._view(self._element).tolist())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def _cast(self, kind: dtype) -> TypedStorage:
        """The elements as another type, in new memory unless that is theirs."""
        if kind is self._element and isinstance(self, TypedStorage):
            return self
        return _typed_storage_of(self._view(self._element).to(kind, copy=True))

    def __repr__(self) -> str:
        rows = "..." if self.device.type == "meta" else " " + "\n ".join(map(str, self.tolist()))
        return f"{rows}\n[{self._description()} of size {len(self)}]"

    def _description(self) -> str:
        raise NotImplementedError

    def __copy__(self) -> Any:
        return self.clone()

    def clone(self) -> Any:
        """A copy of the memory."""
        raise NotImplementedError


def _caster(name: str, kind: dtype) -> Callable[[_Storage], TypedStorage]:
    def cast(self: _Storage) -> TypedStorage:
        return self._cast(kind)

    cast.__name__ = name
    cast.__doc__ = f"The elements as {kind.name}: in new memory, unless they are."
    return cast


for _name, _kind in _CASTS.items():
    setattr(_Storage, _name, _caster(_name, _kind))


process.of_engines[_Storage] = __package__


class StorageBase(_Storage):
    """The base of `UntypedStorage`."""

    def __new__(cls, *_: Any, **__: Any) -> Any:
        if cls is StorageBase:
            raise RuntimeError(
                "Cannot directly construct StorageBase; subclass it and then construct that"
            )
        return object.__new__(cls)


_PINNED: Final = 1 << 30
"""The bit of a storage's exports that says that its address was given away for good."""
_alive: Final[weakref.WeakValueDictionary[int, UntypedStorage]] = weakref.WeakValueDictionary()
"""The object of each of the engine's storages that has one."""


class UntypedStorage(StorageBase):
    """Bytes, what ``Tensor.untyped_storage()`` gives; all views of a tensor have the same object.

    Args:
        size: how many bytes, uninitialised; or the bytes themselves, a sequence of ints.
        device: only the CPU.

    Example:
        >>> import pygrad
        >>> pygrad.tensor([1, 2], dtype=pygrad.int8).untyped_storage()
         1
         2
        [torch.storage.UntypedStorage(device=cpu) of size 2]
    """

    _element = uint8
    _holder: Tensor

    def __init__(self, *args: Any, allocator: Any = None, device: Any = None, **more: Any) -> None:
        if len(args) > 1 or more or allocator is not None:
            kinds = [type(each).__name__ for each in args]
            kinds += [f"{name}={type(each).__name__}" for name, each in more.items()]
            got = ", ".join(kinds) + (", " if more else "")
            raise TypeError(f"torch.UntypedStorage(){_INVALID}" + _UNTYPED_FORMS.format(f"({got})"))
        self._adopt(bytes_of(args[0] if args else 0, "cpu" if device is None else device))
        _alive[self._cdata] = self

    def _adopt(self, tensor: Tensor) -> None:
        empty = _C["data"](tensor).as_strided((0,), (1,), 0)
        self._holder = _copy_lazy_bits(empty, empty).view(uint8)

    @classmethod
    def from_tensor(cls, tensor: Tensor) -> UntypedStorage:
        """The storage of a tensor: the same object for all its views, as long as it is alive."""
        if _is_batched(tensor):
            raise NotImplementedError("Cannot access storage of BatchedTensorImpl")
        found = _alive.get(_address(tensor))
        if found is None:
            found = object.__new__(cls)
            found._adopt(tensor)
            _alive[found._cdata] = found
        return found

    @property
    def device(self) -> _device:  # type: ignore[override]
        """The device of its tensor: the CPU, or meta."""
        return self._holder.device

    @property
    def _cdata(self) -> int:
        return _address(self._holder)

    @property
    def _bytes(self) -> int:
        return header.bytes_of(self._cdata)

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def data_ptr(self) -> int:
        """The address of the first byte in this process, 0 if there is none, which holds as long
        as the storage lives and does not grow. See `Tensor.data_ptr` for what follows from it.

        Example:
            >>> import ctypes, pygrad
            >>> storage = pygrad.tensor([1, 2], dtype=pygrad.int8).untyped_storage()
            >>> ctypes.string_at(storage.data_ptr(), storage.nbytes())
            b'\\x01\\x02'
        """
        self._check("access the data pointer")
        if not self.nbytes() or self._holder.is_meta:
            return 0
        _C["_pin"](self._holder)
        return address(header.data_of(self._cdata), self._cdata)

    def nbytes(self) -> int:
        """The size in bytes."""
        return header.size_in_bytes(self._cdata)

    size = nbytes

    def element_size(self) -> int:
        """1."""
        return 1

    def get_device(self) -> None:
        """None: on the CPU, as in PyTorch."""

    def _view(self, kind: dtype) -> Tensor:
        size = kind.itemsize
        flat = self._holder.as_strided((self.nbytes() // size * size,), (1,), 0)
        return flat if kind is uint8 else flat.view(kind)

    def resizable(self) -> bool:
        """Whether it may grow: not while a NumPy array shows it."""
        return header.exports_of(self._cdata) & ~_PINNED == header.pins_of(self._cdata)

    def resize_(self, size: int) -> UntypedStorage:
        """Grows to so many bytes; what is new is uninitialised. Tensors of it stay as they are.

        Raises:
            RuntimeError: a NumPy array shows the memory.
            NotImplementedError: it would shrink, while tensors may show what is cut off.
        """
        self._check("call resize_()")
        if not isinstance(size, int):
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        if size < self.nbytes() and self.resizable():
            raise NotImplementedError("resize_: a storage cannot shrink")
        self._holder.as_strided((0,), (1,), 0).resize_(size)
        return self

    def new(self) -> UntypedStorage:
        """One of no bytes."""
        return UntypedStorage()

    def clone(self) -> UntypedStorage:
        """A copy of the memory."""
        return UntypedStorage.from_tensor(self._view(uint8).clone())

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        copies = memo.setdefault("torch", {})  # type: ignore[call-overload]
        if self._cdata not in copies:
            copies[self._cdata] = self.clone()
            memo.setdefault(id(memo), []).append(self)  # its address stays taken meanwhile
        return copies[self._cdata]  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return UntypedStorage._from_bytes, (to_bytes(self._view(uint8)),)

    def _write_file(self, f: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        self._check("call _write_file()")
        raise NotImplementedError("_write_file: `pygrad.save` writes files")

    @staticmethod
    def _from_bytes(raw: bytes) -> UntypedStorage:
        return UntypedStorage.from_tensor(from_buffer(raw, (len(raw),), uint8))

    def copy_(self, src: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Takes the bytes of another storage of the same size."""
        self._check("call copy_()")
        if not isinstance(src, _Storage):
            raise TypeError(
                "copy_(): argument 'src' (position 1) must be torch.Storage, not "
                f"{type(src).__name__}"
            )
        if src.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was "
                f"{src.nbytes()} bytes"
            )
        self._view(uint8).copy_(src._view(uint8))
        return self

    def byteswap(self, dtype: dtype) -> None:
        """Turns the bytes of each element of a type round, in place."""
        size = dtype.itemsize // (2 if dtype.is_complex else 1)
        if self.nbytes() % size:
            raise RuntimeError(f"the length of data is not a multiple of {size}")
        if size > 1:
            rows = self._view(uint8).view(-1, size)
            rows.copy_(rows.flip(1))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its class; or the bytes as numbers of another type, given by its storage's
        class or name.
        """
        if dtype is None:
            return _full_name(self)
        return self if dtype == _full_name(self) else self._cast(_legacy_dtype(dtype))

    def _place(self, index: Any) -> slice | int:
        if isinstance(index, slice):
            step = 1 if index.step is None else index.step
            if step != 1:
                raise RuntimeError(
                    f"Trying to slice with a step of {step}, but only a step of 1 is supported"
                )
            return index
        if not isinstance(index, int):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        if not -self.nbytes() <= index < self.nbytes():
            raise IndexError(f"index {index} out of range for storage of size {self.nbytes()}")
        return index

    def __getitem__(self, index: Any) -> Any:
        found = self._view(uint8)[self._place(index)]
        return (
            UntypedStorage.from_tensor(found.clone()) if isinstance(index, slice) else found.item()
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, int):
            raise RuntimeError(
                "can only set storage content with a int types, but got "
                f"{type(value).__name__} instead"
            )
        if isinstance(index, int) and not 0 <= index < self.nbytes():
            raise RuntimeError("out of bounds")
        self._view(uint8)[self._place(index)] = value & 255

    def fill_(self, value: Any) -> UntypedStorage:
        """Sets all bytes to one value."""
        self._check("call fill_()")
        if not isinstance(value, int):
            raise RuntimeError(f"fill_ expects int, but got {type(value).__name__}")
        self._view(uint8).fill_(value & 255)
        return self

    @classmethod
    def from_buffer(
        cls,
        buffer: Any,
        byte_order: str | None = None,
        count: int = -1,
        offset: int = 0,
        dtype: Any = None,
    ) -> UntypedStorage:
        """A copy of a buffer's bytes, each element's turned round if their order is not this
        machine's.

        Args:
            buffer: bytes, or what has Python's buffer interface.
            byte_order: 'native', 'little' or 'big'; needed unless elements have one byte.
            count: how many elements, -1 for all; offset: how many bytes are left out before.
            dtype: of the elements.
        """
        if dtype is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        raw = memoryview(buffer).cast("B")
        size = dtype.itemsize
        check_buffer(len(raw), byte_order, count, offset, size)
        end = len(raw) if count < 0 else offset + count * size
        made = cls._from_bytes(raw[offset:end].tobytes())
        if byte_order not in (None, "native", sys.byteorder):
            made.byteswap(dtype)
        if dtype is BY_NAME["bool"]:
            made.copy_(UntypedStorage.from_tensor(made._view(uint8) != 0))
        return made

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file.

        Args:
            filename: where.
            shared: the file itself is the memory: see `pygrad.from_file`. Else it is read once, and
                what is written to the storage stays in memory.
            nbytes: how many.

        Raises:
            RuntimeError: the file cannot be opened, or is too short and not shared.
            NotImplementedError: `shared`, but not on 64-bit Linux.
        """
        if shared:
            return cls.from_tensor(map_file(filename, nbytes))
        return cls._from_bytes(read_file(filename, nbytes))

    def _description(self) -> str:
        return f"{_full_name(self)}(device={self.device})"


def _copy_lazy_bits(tensor: Tensor, other: Tensor) -> Tensor:
    """The tensor through a lazy view for each bit, conjugate and negative, that another has."""
    if other.is_conj():
        tensor = tensor.conj()
    return tensor._neg_view() if other.is_neg() else tensor


def _address(tensor: Tensor) -> int:
    """The engine's address of the tensor's storage."""
    return header.storage_of(tensor._h)


def _full_name(storage: Any) -> str:
    kind = type(storage)
    module = str(kind.__module__).replace("pygrad", "torch")
    return f"{module}.{kind.__name__}"


@builtin
def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of the first elements of a file.

    Args:
        filename: where; size: how many elements.
        shared: the file itself is the memory. It is made if there is none, and made longer if it
            is too short; what is written to the tensor is in the file, and what others write to
            the file is in the tensor. A file must not be cut short while a tensor of it is alive:
            the next access to what was cut off ends the process. Else the file is read once, and
            what is written to the tensor stays in memory.
        dtype: of the elements; the default dtype unless given.
        device: only the CPU.

    Raises:
        RuntimeError: the file cannot be opened, or is too short and not shared.
        NotImplementedError: `shared`, but not on 64-bit Linux.

    Example:
        >>> import os, pygrad, tempfile
        >>> name = os.path.join(tempfile.mkdtemp(), "numbers")
        >>> x = pygrad.from_file(name, shared=True, size=3, dtype=pygrad.int8)
        >>> x += 7
        >>> open(name, "rb").read()
        b'\\x07\\x07\\x07'
    """
    kind = _F["get_default_dtype"]() if dtype is None else dtype
    made: Tensor = _F["empty"](0, dtype=kind, layout=layout, device=device, pin_memory=pin_memory)
    made.set_(UntypedStorage.from_file(filename, bool(shared), (size or 0) * kind.itemsize))
    return made._mark(requires_grad)


class TypedStorage(_Storage):
    """Numbers, what ``Tensor.storage()`` gives.

    Args:
        args: how many, uninitialised; or the numbers.
        dtype: of the numbers; the default dtype unless given.
        device: only the CPU.
        wrap_storage: an `UntypedStorage` whose bytes to show, with `dtype`.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore")
        >>> x = pygrad.zeros(1, 2)
        >>> x.storage()[1] = 3.0
        >>> x
        tensor([[0., 3.]])
    """

    dtype: Any
    _untyped_storage: UntypedStorage

    def __init__(
        self,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        wrap_storage: Any = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            _warn(3)
        if wrap_storage is None:
            self._make(args, device, dtype)
            return
        if args:
            raise RuntimeError(_TYPED_FORMS + _NONE_BESIDE)
        if dtype is None:
            raise RuntimeError(_TYPED_FORMS + "Argument 'dtype' must be specified")
        if not isinstance(dtype, _Kind):
            raise TypeError(
                _TYPED_FORMS + f"Argument 'dtype' must be torch.dtype, not {type(dtype)}"
            )
        if device is not None:
            raise RuntimeError(
                _TYPED_FORMS
                + "Argument 'device' should not be specified when 'wrap_storage' is given"
            )
        if not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(_TYPED_FORMS + _must_be_untyped(wrap_storage))
        self.dtype, self._untyped_storage = dtype, wrap_storage

    def _make(self, args: tuple[Any, ...], device: Any, kind: Any) -> None:
        """Takes new memory."""
        self.dtype = kind = _F["get_default_dtype"]() if kind is None else kind
        if len(args) > 1:
            raise RuntimeError(_TYPED_FORMS + "Too many positional arguments")
        if args and _is_int(args[0]):
            made = _F["empty"](int(args[0]), dtype=kind, device=device)
        elif args and not isinstance(args[0], Sequence):
            raise TypeError(_TYPED_FORMS + f"Argument type not recognized: {_shown_type(args[0])}")
        else:
            made = tensor(args[0] if args else [], dtype=kind, device=device)
        self._untyped_storage = UntypedStorage.from_tensor(made)

    @property
    def device(self) -> _device:  # type: ignore[override]
        """The device of its tensor: the CPU, or meta."""
        return self._untyped_storage.device

    @property
    def _dtype(self) -> _Kind:
        return self.dtype  # type: ignore[no-any-return]

    @property
    def _element(self) -> _Kind:
        return self.dtype  # type: ignore[no-any-return]

    def untyped(self) -> UntypedStorage:
        """The storage's memory as bytes."""
        return self._untyped_storage

    def element_size(self) -> int:
        """The bytes of one element."""
        return int(self.dtype.itemsize)

    def get_device(self) -> None:
        """None: on the CPU, as in PyTorch."""

    def resize_(self, size: int) -> None:
        """Grows to so many elements; see `UntypedStorage.resize_`."""
        if not isinstance(size, int):
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def clone(self) -> TypedStorage:
        """A copy of the memory."""
        return self._wrap_bytes(self._untyped_storage.clone())

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return self._wrap_bytes(self._untyped_storage.__deepcopy__(memo))

    def _wrap_bytes(self, untyped: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype, _internal=True)

    def __reduce__(self) -> Any:
        return _make_typed_storage, (self._untyped_storage, self.dtype)

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Takes the bytes of another storage of the same size."""
        self._untyped_storage.copy_(source)
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The legacy name of its type; or the numbers as another, given by its storage's class or
        name.
        """
        if dtype is None:
            found = _classes.get(self.dtype)
            return f"torch.{found.__name__}" if found else "torch.storage.TypedStorage"
        return self._cast(_legacy_dtype(dtype))

    def pickle_storage_type(self) -> str:
        """The name of its legacy class."""
        found = _classes.get(self.dtype)
        if found is None:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return str(found.__name__)

    def _get_legacy_storage_class(self) -> Any:
        return _classes.get(self.dtype)

    def _place(self, index: Any) -> int:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            kind = "<class 'torch.storage.TypedStorage'>"
            raise RuntimeError(f"can't index a {kind} with {_shown_type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __getitem__(self, index: Any) -> Any:
        return self._view(self.dtype)[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        place = index if isinstance(index, slice) else self._place(index)
        self._view(self.dtype)[place] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Sets all elements to one value."""
        self._view(self.dtype).fill_(value)
        return self

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> Any:
        """A copy of a buffer's elements: see `UntypedStorage.from_buffer`."""
        kwargs["dtype"] = kind = kwargs.get("dtype") or _F["get_default_dtype"]()
        made = UntypedStorage.from_buffer(*args, **kwargs)
        return TypedStorage(wrap_storage=made, dtype=kind, _internal=True)

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> Any:
        """Raises RuntimeError: a type is needed, as `FloatStorage` has one."""
        raise RuntimeError("from_file can only be called on derived classes")

    _nbytes, _size, _element_size = _Storage.nbytes, _Storage.size, element_size
    _data_ptr, _is_shared, _resize_ = _Storage.data_ptr, _Storage.is_shared, resize_

    def _description(self) -> str:
        return f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"


_NONE_BESIDE: Final = "No positional arguments should be given when using 'wrap_storage'"


def _must_be_untyped(value: Any) -> str:
    return f"Argument 'wrap_storage' must be UntypedStorage, but got {_shown_type(value)}"


def _shown_type(value: Any) -> str:
    """The class of a value, under the name that it has in PyTorch."""
    if isinstance(value, Tensor):
        return "<class 'torch.Tensor'>"
    return str(type(value)).replace("pygrad", "torch")


def _is_int(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _make_typed_storage(untyped: UntypedStorage, kind: dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=kind, _internal=True)


_wrapped = _make_typed_storage  # the name in pickles of earlier versions


def _typed_storage_of(tensor: Tensor) -> TypedStorage:
    return _make_typed_storage(UntypedStorage.from_tensor(tensor), tensor.dtype)


# ------------------------------------------------------------------ the legacy classes


class _LegacyStorageMeta(type):
    """A storage is an instance of the class of its dtype."""

    dtype: dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is getattr(cls, "dtype", None)


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    dtype = None

    def __new__(cls, *args: Any, wrap_storage: Any = None, **options: Any) -> Any:
        _warn(3)
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        forms = _LEGACY_FORMS.format(f"<class 'torch.{cls.__name__}'>")
        for name in ("device", "dtype"):
            if options.get(name) is not None:
                raise RuntimeError(forms + f"Keyword argument '{name}' cannot be specified")
        if wrap_storage is None:
            if len(args) > 1:
                raise RuntimeError(forms + "Too many positional arguments")
            if args and not _is_int(args[0]) and not isinstance(args[0], Sequence):
                raise TypeError(forms + f"Argument type not recognized: {_shown_type(args[0])}")
            return TypedStorage(*args, dtype=cls.dtype, _internal=True)
        if args:
            raise RuntimeError(forms + _NONE_BESIDE)
        if not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(forms + _must_be_untyped(wrap_storage))
        return _make_typed_storage(wrap_storage, cls.dtype)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """A copy of a buffer's elements: see `UntypedStorage.from_buffer`."""
        kwargs["dtype"] = cls.dtype
        return _make_typed_storage(UntypedStorage.from_buffer(*args, **kwargs), cls.dtype)

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first elements of a file: see `UntypedStorage.from_file`."""
        untyped = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return _make_typed_storage(untyped, cls.dtype)


def _class(kind: str) -> Any:
    of = BY_NAME[kind]
    doc = f"Legacy: makes a `TypedStorage` of {kind}, and is the class of all of them."
    body = {"__doc__": doc, "__module__": "pygrad", "dtype": of}
    name = f"{of.legacy}Storage"
    return _classes.setdefault(of, _LegacyStorageMeta(name, (_LegacyStorage,), body))


_classes: Final[dict[dtype, Any]] = {}
FloatStorage = Storage = _class("float32")
DoubleStorage = _class("float64")
HalfStorage = _class("float16")
BFloat16Storage = _class("bfloat16")
ComplexFloatStorage = _class("complex64")
ComplexDoubleStorage = _class("complex128")
LongStorage = _class("int64")
IntStorage = _class("int32")
ShortStorage = _class("int16")
CharStorage = _class("int8")
ByteStorage = _class("uint8")
BoolStorage = _class("bool")


def storage_class(kind: dtype) -> Any:
    """The legacy class of a dtype's storages, or None."""
    return _classes.get(kind)


def _legacy_dtype(kind: Any) -> dtype:
    """The dtype of a storage's class or of the class's name."""
    for found, each in _classes.items():
        if kind is each or kind == f"torch.{each.__name__}":
            return found
    raise ValueError(f"invalid type: '{kind}'")


def elements_of(storage: _Storage, kind: dtype, legacy: bool | None) -> Tensor:
    """All elements of a storage, which must have the dtype or none, in the same memory.

    Raises:
        RuntimeError: it has another; the words are those of a legacy constructor, of `set_` or, by
            None, of `tensor`.
    """
    if isinstance(storage, TypedStorage) and storage.dtype is not kind:
        name = C_NAMES[kind] if legacy is False else kind.legacy
        given = storage.dtype.legacy
        got = given if legacy is None else f"type {given} for argument 1 'storage'"
        raise RuntimeError(f"Expected a Storage of type {name} or an UntypedStorage, but got {got}")
    return storage._view(kind)


def _warn(level: int) -> None:
    if once("typed storage"):
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will "
            "be the only storage class. This should only matter to you if you are using storages "
            "directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of "
            "tensor.storage()",
            UserWarning,
            stacklevel=level + 1,
        )


def typed_storage(tensor: Tensor, warn: bool = True) -> TypedStorage:
    """The result of ``Tensor.storage()``, with PyTorch's warning the first time."""
    if warn:
        _warn(3)
    return _typed_storage_of(tensor)


def _no_copy(which: str, method: str, doing: str) -> RuntimeError:
    return RuntimeError(
        f"The default implementation of __deepcopy__() for {which} subclasses only works for "
        f"subclass types that implement {method} and for which {doing} returns another instance of "
        f"the same subclass. You should either properly implement {method} for your subclass or "
        f"override __deepcopy__() if it is intended behavior for {method} to return an instance of "
        "a different type."
    )


def deep_copy(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with copied memory, gradient and attributes; what shared memory does so again."""
    hidden = header.is_hidden(tensor._h)
    kind = type(tensor)
    if hidden:  # the class copies its elements
        made = tensor.clone()
        if type(made) is not kind:
            raise _no_copy("wrapper", "clone()", "cloning")
        made = made.detach()
    elif _is_batched(tensor) or header.is_sparse(tensor._h):
        made = tensor.detach().clone()
    else:
        untyped = UntypedStorage.from_tensor(tensor).__deepcopy__(memo)
        geometry = tensor.storage_offset(), tensor.shape, tensor.stride()
        made = _F["empty"](0, dtype=tensor.dtype, device=untyped.device).set_(untyped, *geometry)
        made = _C["data"](_copy_lazy_bits(made, tensor).resolve_conj().resolve_neg())
        if kind is not calls._tensor_type and type(tensor.new_empty([])) is not kind:
            raise _no_copy("non-wrapper", "new_empty()", "that function")
    if kind is not calls._tensor_type and not hidden:
        made = kind._make_subclass(kind, made)
    made._mark(tensor.requires_grad)
    memo[id(tensor)] = made
    if tensor.grad is not None:
        made.grad = copy.deepcopy(tensor.grad, memo)
    for name, value in (*tensor.__dict__.items(), *slots_of(tensor).items()):
        setattr(made, name, copy.deepcopy(value, memo))
    return made

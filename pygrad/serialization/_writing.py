"""Pickling with PyTorch's class names, and with storages as persistent ids."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, ClassVar

from .._ground.dtypes import dtype, layout, uint8
from .._table.builtins import Builtin, Namespace
from .._tensor import rebuild
from .._tensor.host_data import reduction, to_bytes
from ..storage import TypedStorage, UntypedStorage
from ..utils.serialization import config
from ._archive import ArchiveWriter
from ._globals import find, torch_name
from ._locations import location_tag
from ._options import local


def _get_layout(name: str) -> layout:
    """The layout with a name such as 'torch.strided'."""
    return find("torch", name.removeprefix("torch."))  # type: ignore[no-any-return]


class Storages:
    """The storages of one file, in the order of their first use.

    Raises:
        RuntimeError: two tensors view one storage as different types.
    """

    def __init__(self, key_of: Callable[[int], str]) -> None:
        self._key_of = key_of
        self._keys: dict[int, str] = {}
        self.found: dict[str, tuple[UntypedStorage, dtype]] = {}

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        """The persistent id of a storage; None for any other object."""
        if isinstance(obj, TypedStorage):
            storage, kind = obj.untyped(), obj.dtype
            cls = find("torch", obj.pickle_storage_type())
        elif isinstance(obj, UntypedStorage):
            storage, kind, cls = obj, uint8, UntypedStorage
        else:
            return None
        place = storage._cdata
        if place not in self._keys:
            self._keys[place] = self._key_of(len(self._keys))
            self.found[self._keys[place]] = storage, kind
        elif storage.nbytes() and kind is not self.found[self._keys[place]][1]:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                "types"
            )
        count = storage.nbytes() // kind.itemsize
        return "storage", cls, self._keys[place], location_tag(storage), count


_PythonPickler: Any = pickle._Pickler


class _Pickler(_PythonPickler):  # type: ignore[misc]
    """Based on the pickler in Python, because the one in C cannot override names of classes."""

    dispatch: ClassVar = dict(_PythonPickler.dispatch)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        found = torch_name(obj, name)
        if found is None or (self.proto < 4 and "." in found[1]):
            super().save_global(obj, name)
            return
        if self.proto < 4:
            self.write(pickle.GLOBAL + "{}\n{}\n".format(*found).encode())
        else:
            for part in found:
                self.save(part)
            self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)

    def save_method(self, obj: MethodType) -> None:
        """Pickles a function of the op table by name, any other method with its object."""
        if isinstance(obj.__self__, Namespace) and torch_name(obj) is not None:
            self.save_global(obj)
        else:
            self.save_reduce(*obj.__reduce__(), obj=obj)

    def save_type(self, obj: Any) -> None:
        """Pickles a class by name; leaves the types of singletons to the base class."""
        if obj in (type(None), type(NotImplemented), type(...)):
            super().save_type(obj)
        else:
            self.save_global(obj)

    def save_layout(self, obj: layout) -> None:
        """Pickles a layout as a call of a function that files of weights may call."""
        self.save_reduce(_get_layout, (str(obj),), obj=obj)

    def save_set(self, obj: Any) -> None:
        """Saves a set in the order of its elements' text forms, which is the same in every
        process.
        """
        elements = list(obj)
        if all(isinstance(each, (str, bytes, int, float, complex, type(None))) for each in obj):
            elements.sort(key=lambda each: (type(each).__name__, repr(each)))
        self.save_reduce(type(obj), (elements,), obj=obj)

    dispatch[FunctionType] = save_global
    dispatch[set] = dispatch[frozenset] = save_set
    dispatch[Builtin] = save_global
    dispatch[MethodType] = save_method
    dispatch[type] = save_type
    dispatch[layout] = save_layout


def pickle_object(obj: Any, module: Any, protocol: int, storages: Callable[[Any], Any]) -> bytes:
    """Pickles an object; `storages` returns the persistent ids of storages."""

    def persistent_id(_: Any, each: Any) -> Any:
        name = storages(each)
        if name is not None and protocol == 0:
            raise pickle.PicklingError("protocol 0 cannot name a storage")
        return name

    base = _Pickler if module in (None, pickle) else module.Pickler
    kind = type("Pickler", (base,), {"persistent_id": persistent_id})
    file = io.BytesIO()
    before, reduction.form = reduction.form, rebuild.reduce_for_file
    try:
        kind(file, protocol=protocol).dump(obj)
    finally:
        reduction.form = before
    return file.getvalue()


def data_of(storage: UntypedStorage, kind: dtype) -> bytes:
    """The bytes of a storage, with a single pattern for NaN, so that equal states give equal
    files.
    """
    return to_bytes(rebuild.bytes_as(storage, kind))


def write_archive(
    obj: Any,
    open_for_writing: Callable[[], Any],
    folder: str,
    module: Any,
    protocol: int,
    mark: bool,
) -> None:
    """Writes an object in PyTorch's format.

    Args:
        open_for_writing: returns the function that receives bytes. It is called once the object is
            pickled without errors.
        folder: the folder of the records.
        mark: whether to record the byte order.
    """
    storages = Storages(str)
    text = pickle_object(obj, module, protocol, storages.persistent_id)
    archive = ArchiveWriter(open_for_writing(), folder)
    archive.record("data.pkl", text)
    archive.record(".format_version", b"1")
    archive.record(".storage_alignment", str(config.save.storage_alignment).encode())
    if mark:
        archive.record("byteorder", sys.byteorder.encode())
    for key, (storage, kind) in storages.found.items():
        if local.skip_data:
            archive.record(f"data/{key}", bytes(storage.nbytes()), crc=0)
        else:
            archive.record(f"data/{key}", data_of(storage, kind))
    archive.finish()

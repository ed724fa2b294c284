"""Unpickling of PyTorch's files, by the restricted unpickler or by Python's."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pickle import UnpicklingError
from typing import IO, Any, Final

from .._ground.dtypes import dtype, uint8
from ..storage import TypedStorage, UntypedStorage
from ._archive import ArchiveReader
from ._globals import StorageType, find, is_torch
from ._locations import is_meta, restorer
from ._options import LoadEndianness, get_default_load_endianness, local
from ._unpickler import Unpickler

_RENAMED: Final = {"torch.tensor": "torch._tensor"}


def unpickler(
    file: IO[bytes],
    module: Any,
    storages: Callable[[Any], Any] | None,
    options: dict[str, Any],
    size: int | None = None,
) -> Any:
    """Makes an unpickler.

    Args:
        module: the module whose `Unpickler` to use; None: the one that runs no code.
        storages: returns the storage for a persistent id of the pickle.
        size: the number of bytes available, if it exceeds this file's size.
    """
    if module is None:
        return Unpickler(file, persistent_load=storages, size=size, **options)

    class Reader(module.Unpickler):  # type: ignore[misc]
        def find_class(self, name: str, cls: str) -> Any:
            """Maps PyTorch's names to pygrad's objects."""
            if "Storage" in cls:
                try:
                    return StorageType(cls)
                except KeyError:
                    pass
            name = _RENAMED.get(name, name)
            return find(name, cls) if is_torch(name) else super().find_class(name, cls)

        def persistent_load(self, name: Any) -> Any:
            if storages is None:
                raise UnpicklingError("unsupported persistent id encountered")
            return storages(name)

    return Reader(file, **options)


def text_of(value: Any) -> str:
    """A string in a persistent id, which Python 2 may have written as bytes.

    Raises:
        UnpicklingError: it is no string.
    """
    if isinstance(value, bytes):
        return value.decode("ascii", "replace")
    if not isinstance(value, str):
        raise UnpicklingError(f"a storage is named by {type(value)}, not by words")
    return value


def make_typed_storage(storage: Any, kind: Any) -> TypedStorage:
    """A typed storage over bytes; raises PyTorch's error for any other object."""
    return TypedStorage(wrap_storage=storage, dtype=kind, _internal=True)


def kind_and_size(storage_type: Any, count: Any) -> tuple[Any, int]:
    """The dtype and the size in bytes of a storage, from its persistent id.

    Raises:
        UnpicklingError: the id is invalid.
    """
    kind = uint8 if storage_type is UntypedStorage else getattr(storage_type, "dtype", None)
    if not isinstance(kind, dtype) or not isinstance(storage_type, (StorageType, type)):
        raise UnpicklingError(f"no class of storages: {type(storage_type)}")
    if type(count) is not int or count < 0:
        raise UnpicklingError("the size of a storage is no number of elements")
    return kind, count * kind.itemsize


class _Records:
    """The storages of an archive. Each is read when first named."""

    def __init__(self, archive: ArchiveReader, map_location: Any) -> None:
        self._archive = archive
        self._restore = restorer(map_location)
        self._nowhere = is_meta(map_location)
        self._turned = _byte_order(archive) != sys.byteorder
        self._made: dict[str, TypedStorage] = {}

    def load(self, name: Any) -> TypedStorage:
        """The storage of a persistent id."""
        if not isinstance(name, tuple) or len(name) != 5:
            raise UnpicklingError(f"saved_id must be a tuple of 5, got {type(name).__name__}")
        word, storage_type, key, location, count = name
        if text_of(word) != "storage":
            raise UnpicklingError("Unknown typename for persistent_load, expected 'storage'")
        key = text_of(key)
        if key not in self._made:
            made = self._read(key, *kind_and_size(storage_type, count), text_of(location))
            if not made.nbytes():
                return made
            self._made[key] = made
        return self._made[key]

    def _read(self, key: str, kind: Any, size: int, location: Any) -> TypedStorage:
        name = f"data/{key}"
        there = self._archive.size(name)
        if there != size:
            raise RuntimeError(
                f"record size ({there} bytes) does not match expected size ({size} bytes = {size} "
                "elements * 1 bytes/element) for dtype Byte"
            )
        if self._nowhere:
            return make_typed_storage(UntypedStorage(size, device="meta"), kind)
        raw = bytes(size) if local.skip_data else self._archive.read(name)
        storage = UntypedStorage._from_bytes(raw)
        if self._turned:
            storage.byteswap(kind)
        return make_typed_storage(self._restore(storage, location), kind)


def _byte_order(archive: ArchiveReader) -> str:
    if "byteorder" in archive:
        found = archive.read("byteorder")
        if found not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {found[:20].decode('utf-8', 'replace')}")
        return found.decode()
    wanted = get_default_load_endianness()
    if wanted is LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if wanted is LoadEndianness.BIG else "little"


def read_archive(
    archive: ArchiveReader, map_location: Any, module: Any, options: dict[str, Any]
) -> Any:
    """Reads the object in a zip file of PyTorch's."""
    records = _Records(archive, map_location)
    text = io.BytesIO(archive.read("data.pkl"))
    return unpickler(text, module, records.load, options, archive.size_in_all).load()

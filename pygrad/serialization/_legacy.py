"""PyTorch's files from before 1.6: pickles one after another, then the bytes of all storages."""

from __future__ import annotations

import pickle
import struct
import sys
from pickle import UnpicklingError
from typing import IO, Any, Final

from .._ground.dtypes import uint8
from .._tensor import rebuild
from ..storage import TypedStorage, UntypedStorage
from ._locations import restorer
from ._options import local
from ._reading import kind_and_size, make_typed_storage, text_of, unpickler
from ._unpickler import format_value, length_left
from ._writing import Storages, data_of, pickle_object

MAGIC_NUMBER: Final = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION: Final = 1001
_SYSTEM: Final = {
    "protocol_version": PROTOCOL_VERSION,
    "little_endian": sys.byteorder == "little",
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}
_COUNT: Final = struct.Struct("<q")


def encode(obj: Any, module: Any, protocol: int) -> bytes:
    """Serializes an object in the legacy format."""
    storages = Storages(str)

    def persistent_id(each: Any) -> Any:
        name = storages.persistent_id(each)
        return None if name is None else (*name, None)

    dump = (module or pickle).dumps
    text = pickle_object(obj, module, protocol, persistent_id)
    keys = sorted(storages.found)
    parts = [dump(each, protocol) for each in (MAGIC_NUMBER, PROTOCOL_VERSION, _SYSTEM)]
    parts += [text, dump(keys, protocol)]
    for storage, kind in (storages.found[key] for key in keys):
        parts += [_COUNT.pack(storage.nbytes() // kind.itemsize), data_of(storage, kind)]
    return b"".join(parts)


class _Awaited:
    """The storages that a pickle names before their bytes are read."""

    def __init__(self, file: IO[bytes], map_location: Any) -> None:
        self._most = length_left(file)  # the limit for all storages together
        self._restore = restorer(map_location)
        self.made: dict[str, TypedStorage] = {}

    def load(self, name: Any) -> Any:
        """The storage, or the class of a module, for a persistent id."""
        if not isinstance(name, tuple) or not name:
            raise UnpicklingError(f"saved_id must be a tuple, got {type(name).__name__}")
        if text_of(name[0]) == "module":
            return name[1]  # a class; changes of its source are not checked
        if text_of(name[0]) != "storage" or len(name) != 6:
            raise RuntimeError(f"Unknown saved id type: {type(name[0])}")
        _, storage_type, key, location, count, view = name
        kind, size = kind_and_size(storage_type, count)
        key = text_of(key)
        if key not in self.made:
            if size > self._most:
                raise RuntimeError(
                    f"unexpected EOF, expected {size - self._most} more bytes. The file might be "
                    "corrupted."
                )
            self._most -= size
            storage = UntypedStorage._from_bytes(bytes(size))
            self.made[key] = make_typed_storage(self._restore(storage, text_of(location)), kind)
        if view is not None:  # a view of another storage, from releases before 0.4
            raise NotImplementedError("load: a storage within another is not supported")
        return self.made[key]

    def fill(self, file: IO[bytes], keys: Any) -> None:
        """Reads the bytes of all storages, in the order of their keys."""
        for key in keys:
            if text_of(key) not in self.made:
                raise RuntimeError(f"storage key {key!r} not found in deserialized_objects")
            storage = self.made[text_of(key)]
            size = storage.nbytes()
            count = file.read(_COUNT.size)
            raw = file.read(size)
            missing = _COUNT.size + size - len(count) - len(raw)
            if missing:
                raise RuntimeError(
                    f"unexpected EOF, expected {missing} more bytes. The file might be corrupted."
                )
            if _COUNT.unpack(count)[0] * storage.element_size() != size:
                raise RuntimeError(
                    "storage has wrong byte size: expected "
                    f"{_COUNT.unpack(count)[0] * storage.element_size()} got {size}"
                )
            if raw:
                storage.untyped()._view(uint8).copy_(UntypedStorage._from_bytes(raw)._view(uint8))


def read(file: IO[bytes], map_location: Any, module: Any, options: dict[str, Any]) -> Any:
    """Reads an object of the legacy format from the current position of a file."""
    _refuse_tar(file, module)
    first = unpickler(file, module, None, options).load()
    if type(first) is not int or first != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = unpickler(file, module, None, options).load()
    if type(version) is not int or version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {format_value(version)}")
    unpickler(file, module, None, options).load()  # information on the machine that wrote the file
    storages = _Awaited(file, map_location)
    with rebuild.defer_place_checks() as checks:
        made = unpickler(file, module, storages.load, options).load()
    keys = unpickler(file, module, None, options).load()
    if not isinstance(keys, list):
        raise RuntimeError("the keys of storages are no list; corrupt file?")
    if not local.skip_data:
        storages.fill(file, keys)
        for check in checks:
            check()
    return made


def _refuse_tar(file: IO[bytes], module: Any) -> None:
    at = file.tell()
    start = file.read(262)
    file.seek(at)
    if not start[257:].startswith(b"ustar"):
        return
    if module is None:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with files saved in the legacy .tar format."
        )
    raise NotImplementedError("load: the .tar format of PyTorch 0.1 is not supported")

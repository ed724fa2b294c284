"""Files mapped over the engine's memory: writes to such a tensor are in the file, and writes of
others to the file are in the tensor.

wasmtime reserves the engine's memory once and never moves it (`host.base_address`). The engine
gives whole pages to a storage alone, and the file is mapped over them. They count as exported, so
snapshots of them are copies. When the storage has no more references, the engine reports it, and
keeps the pages until memory has replaced the file.

A file that is cut short while it is mapped ends the process at the next access, as in PyTorch.
"""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Final

from . import callbacks, header, process
from .calls import ROWS, invoke
from .host import MAPS_FILES, NORESERVE, map_over
from .release import drain_if_idle, released

if TYPE_CHECKING:
    from .._tensor.tensor import Tensor

_FREED: Final = 4
"""The bit of a released handle that marks a storage whose pages are memory again."""


class _Mapping:
    """The object that the engine holds by its id until the storage has no more references."""

    __slots__ = ("at", "filename", "n_bytes", "storage")

    def __init__(self, filename: str) -> None:
        self.filename, self.storage, self.at, self.n_bytes = filename, 0, 0, 0

    def __del__(self) -> None:
        if self.storage and not _is_over and not header.references_to(self.storage):
            _end(self)


_is_over = False
"""Whether the process ends: the engine's memory may be gone then."""
_not_ended: Final[list[_Mapping]] = []
"""Mappings that could not be removed: their pages are not used again meanwhile."""


def _at_exit() -> None:
    global _is_over
    _is_over = True


process.hear(process.at_exit, _at_exit)


def _end(mapping: _Mapping) -> None:
    """Puts memory in the file's place, and gives the pages back."""
    memory = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    if mapping.n_bytes and map_over(mapping.at, mapping.n_bytes, memory, -1):
        _not_ended.append(mapping)
    else:
        released.append(mapping.storage | _FREED)
        mapping.storage = 0


def _failure(doing: str, error: OSError) -> RuntimeError:
    return RuntimeError(f"unable to {doing}: {error.strerror} ({error.errno})")


def _open_file(filename: str, n_bytes: int) -> int:
    """The descriptor of a file of at least `n_bytes`, which is created if it does not exist."""
    try:
        file = os.open(filename, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _failure(f"open file <{filename}> in read-write mode", error) from None
    try:
        if os.fstat(file).st_size < n_bytes:
            os.ftruncate(file, n_bytes)
            if os.fstat(file).st_size < n_bytes:
                done = OSError(0, os.strerror(0))
                raise _failure(f"stretch file <{filename}> to the right size", done)
    except OSError as error:
        os.close(file)
        raise _failure(f"resize file <{filename}> to the right size", error) from None
    except RuntimeError:
        os.close(file)
        raise
    return file


def map_file(filename: str, n_bytes: int) -> Tensor:
    """A tensor whose memory is the first bytes of a file. With no bytes, the file is not opened.

    Raises:
        NotImplementedError: not on 64-bit Linux.
        RuntimeError: the file cannot be opened for writing, made as large, or mapped.
    """
    if not MAPS_FILES:
        raise NotImplementedError(
            "from_file: shared=True needs the file in place of the engine's memory, which is done "
            "on 64-bit Linux only"
        )
    if n_bytes < 0:
        raise _failure(f"mmap {n_bytes} bytes from file <{filename}>", OSError(12, os.strerror(12)))
    drain_if_idle()
    for each in [_not_ended.pop() for _ in _not_ended[:]]:
        _end(each)
    mapping = _Mapping(filename)
    number = callbacks.keep_object(mapping)
    try:
        tensor: Tensor = invoke(ROWS["_mapped"], 0, (n_bytes, mmap.PAGESIZE, number), {})
    except BaseException:
        callbacks.drop_object(number)
        raise
    mapping.storage, mapping.at = header.storage_of(tensor._h), header.address_of(tensor)
    if n_bytes:
        file = _open_file(filename, n_bytes)
        try:
            if error := map_over(mapping.at, n_bytes, mmap.MAP_SHARED, file):
                why = OSError(error, os.strerror(error))
                raise _failure(f"mmap {n_bytes} bytes from file <{filename}>", why)
            mapping.n_bytes = n_bytes
        finally:
            os.close(file)
    return tensor


def filename_of(storage: int) -> str | None:
    """The file that is a storage's memory, or None."""
    mapping = callbacks.get_object(header.mapped_of(storage))
    return None if mapping is None else mapping.filename

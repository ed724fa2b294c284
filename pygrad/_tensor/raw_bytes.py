"""Import of raw bytes into storages: from Python's ints, from buffers, from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._ground.dtypes import uint8
from .._table import functions
from .base import Tensor
from .creation import from_buffer


def bytes_of(what: Any, device: Any = "cpu") -> Tensor:
    """The memory that an int or a sequence of ints asks for."""
    made = functions.SPACES["torch"]["empty"]
    if isinstance(what, int):
        return made(what, dtype=uint8, device=device)  # type: ignore[no-any-return]
    made(0, device=device)
    if isinstance(what, Tensor) or not isinstance(what, Sequence):
        raise RuntimeError(
            f"torch.UntypedStorage(): Expected a sequence type, but got {type(what).__name__}"
        )
    for item in what:
        if not isinstance(item, int):
            raise RuntimeError(
                "torch.UntypedStorage(): tried to construct a storage from a sequence "
                f"({type(what).__name__}), but one of the items was of type "
                f"{type(item).__name__} instead of int"
            )
    return from_buffer(bytes(item & 255 for item in what), (len(what),), uint8)


def check_buffer(length: int, order: str | None, count: int, offset: int, size: int) -> None:
    """Raises unless `count` elements follow the offset and the byte order is known."""
    if order is None and size > 1:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if order not in (None, "native", "little", "big"):
        raise ValueError(f"invalid byte_order '{order}' (expected 'big', 'little', or 'native')")
    if not 0 <= offset <= length:
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({offset}) , but got "
            f"{length}"
        )
    if count < 0 and (length - offset) % size:
        raise ValueError(f"buffer size ({length}) must be a multiple of element size ({size})")
    if count >= 0 and count * size > length - offset:
        raise ValueError(
            f"buffer has only {length} elements after offset {offset}, but "
            f"specified a size of {count}"
        )


def read_file(filename: str, nbytes: int) -> bytes:
    """The first bytes of a file.

    Raises:
        RuntimeError: it cannot be opened, or has fewer.
    """
    try:
        with open(filename, "rb") as file:
            raw = file.read(nbytes)
            total = file.seek(0, 2)
    except OSError as error:
        raise RuntimeError(
            f"unable to open file <{filename}> in read-only mode: {error.strerror} ({error.errno})"
        ) from None
    if len(raw) < nbytes:
        raise RuntimeError(
            f"file <{filename}> size <{total}> is smaller than the required mapping size <{nbytes}>"
        )
    return raw

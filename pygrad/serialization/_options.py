"""Settings for all files: byte order, checksums, mapping, omitted data."""

from __future__ import annotations

import enum
import mmap
import threading
from typing import Any, Final

from ..utils.serialization import config

MAP_PRIVATE: Final = getattr(mmap, "MAP_PRIVATE", 2)
MAP_SHARED: Final = getattr(mmap, "MAP_SHARED", 1)  # Windows has neither


class LoadEndianness(enum.Enum):
    """A byte order."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of files that do not specify one; None: little."""
    return config.load.endianness  # type: ignore[no-any-return]


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order of files that do not specify one.

    Raises:
        TypeError: the argument is neither a `LoadEndianness` nor None.
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def get_crc32_options() -> bool:
    """Whether `save` computes checksums."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether `save` computes checksums. Other programs may refuse files without them."""
    config.save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """The flags for ``load(..., mmap=True)``."""
    return config.load.mmap_flags


class set_default_mmap_options:
    """Sets the flags for ``load(..., mmap=True)``, permanently or for a scope.

    Args:
        flags: ``mmap.MAP_PRIVATE``, or ``mmap.MAP_SHARED``, for which `load` then raises.

    Raises:
        ValueError: other flags.
    """

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self.prev = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        config.load.mmap_flags = self.prev


class _Local(threading.local):
    skip_data = False


local: Final = _Local()


class skip_data:
    """A scope in which `save` omits the bytes of storages, and `load` does not read them.

    Args:
        materialize_fake_tensors: ignored, since there are no fake tensors.

    Example:
        >>> import io, pygrad
        >>> file = io.BytesIO()
        >>> with pygrad.serialization.skip_data():
        ...     pygrad.save(pygrad.ones(3), file)
        >>> _ = file.seek(0)
        >>> pygrad.load(file)
        tensor([0., 0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = local.skip_data
        local.skip_data = True

    def __exit__(self, *_: Any) -> None:
        local.skip_data = self._before

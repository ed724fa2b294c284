"""Default settings of `pygrad.save` and `pygrad.load`.

Example:
    >>> from pygrad.utils.serialization import config
    >>> config.save.storage_alignment
    64
"""

from __future__ import annotations

from typing import Any


class load:
    """Settings of `load`."""

    mmap: bool = False
    """Whether ``mmap=None`` means True."""
    endianness: Any = None
    """The byte order of files that do not specify one; None: little."""
    mmap_flags: int | None = 2
    """``mmap.MAP_PRIVATE``."""
    calculate_storage_offsets: bool = False
    """No effect: the offsets of records are always read from the file."""
    float8: str | None = None
    """"float32": tensors of 8-bit floats are read as float32; None: they are an error. PyTorch has
    no such setting, because it has such tensors."""


class save:
    """Settings of `save`."""

    compute_crc32: bool = True
    """Whether files have checksums."""
    use_pinned_memory_for_d2h: bool = False
    """No effect: there is no device to copy from."""
    storage_alignment: int = 64
    """The alignment of records in bytes."""

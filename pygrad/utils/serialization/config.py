"""What `pygrad.save` and `pygrad.load` do unless told otherwise.

Example:
    >>> from pygrad.utils.serialization import config
    >>> config.save.storage_alignment
    64
"""

from __future__ import annotations

from typing import Any


class load:
    """Of `load`."""

    mmap: bool = False
    """Whether ``mmap=None`` means True."""
    endianness: Any = None
    """The byte order of files that do not name theirs; None: little."""
    mmap_flags: int | None = 2
    """``mmap.MAP_PRIVATE``."""
    calculate_storage_offsets: bool = False
    """Of no effect: where records are is always read."""
    float8: str | None = None
    """"float32": tensors of 8-bit floats are read as float32; None: they are an error. Of pygrad's
    own: PyTorch has such tensors."""


class save:
    """Of `save`."""

    compute_crc32: bool = True
    """Whether files have checksums."""
    use_pinned_memory_for_d2h: bool = False
    """Of no effect: there is no device to copy from."""
    storage_alignment: int = 64
    """Records begin at multiples of so many bytes."""

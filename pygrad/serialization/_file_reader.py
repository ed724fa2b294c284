"""`PyTorchFileReader`: PyTorch's C++ interface to a file's records, for other libraries'
loaders.
"""

from __future__ import annotations

import weakref
from typing import Any

from .._ground.dtypes import dtype, uint8
from .._tensor.creation import from_buffer
from .._tensor.tensor import Tensor
from ._archive import ArchiveReader


class PyTorchFileReader:
    """Reads the records of a file that `save` or PyTorch wrote.

    Args:
        name_or_buffer: the path, or a file that is open for reading bytes.

    Raises:
        RuntimeError: there is no such file, or it is no archive of PyTorch's.

    Example:
        >>> import io, pygrad
        >>> file = io.BytesIO()
        >>> pygrad.save({"a": pygrad.arange(2.0)}, file)
        >>> reader = pygrad._C.PyTorchFileReader(file)
        >>> reader.has_record("data.pkl"), reader.get_storage_from_record("data/0", 2, pygrad.float)
        (True, tensor([0., 1.]))
    """

    def __init__(self, name_or_buffer: Any) -> None:
        file = name_or_buffer
        if not hasattr(file, "read"):
            try:
                file = open(file, "rb")  # noqa: SIM115  # closed with the reader
            except OSError as error:
                raise RuntimeError(
                    f"open file failed because of errno {error.errno} on fopen: {error.strerror}, "
                    f"file path: {name_or_buffer}"
                ) from None
            weakref.finalize(self, file.close)
        self._archive = ArchiveReader(file)

    def get_all_records(self) -> list[str]:
        """The names of the records."""
        return self._archive.names()

    def has_record(self, name: str) -> bool:
        """Whether there is a record of a name."""
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        return self._archive.read(name)

    def get_record_size(self, name: str) -> int:
        """The number of bytes of a record."""
        return self._archive.size(name)

    def get_record_offset(self, name: str) -> int:
        """The offset of the bytes of a record in the file."""
        return self._archive.start(name)

    def get_record_header_offset(self, name: str) -> int:
        """The offset of the header of a record in the file."""
        return self._archive.header(name)

    def get_storage_from_record(self, name: str, numel: int, kind: Any) -> Tensor:
        """A tensor of the first elements of a record.

        Args:
            kind: the dtype; a class of storages means bytes.
        """
        element = kind if isinstance(kind, dtype) else uint8
        raw = self._archive.read(name)
        return from_buffer(raw[: numel * element.itemsize], (numel,), element)

    def serialization_id(self) -> str:
        """The identifier of the saved object, as digits; empty if the file has none."""
        name = ".data/serialization_id"
        return self._archive.read(name).decode() if name in self._archive else ""

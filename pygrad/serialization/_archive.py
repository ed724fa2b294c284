"""The zip files of PyTorch: named, uncompressed records, aligned to 64 bytes."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any, Final

from ..utils.serialization import config

MAGIC: Final = b"PK\x03\x04"
_OLDEST, _NEWEST, _WRITTEN = 1, 10, 3
"""The versions of PyTorch's format that can be read, and the version to write."""
_LARGEST_BLOW_UP: Final = 200
_LARGEST_PLAIN: Final = 1 << 24
_DAMAGED: Final = (
    " This is an internal miniz error. If you are seeing this error, there is a high likelihood "
    "that your checkpoint file is corrupted. This can happen if the checkpoint was not saved "
    "properly, was transferred incorrectly, or the file was modified after saving."
)


def _damage_error(message: str) -> RuntimeError:
    return RuntimeError(f"PytorchStreamReader failed {message}.{_DAMAGED}")


class ArchiveReader:
    """Reads records by their names below the archive's folder.

    Args:
        file: open for reading, and seekable. Record names are never used as paths.

    Raises:
        RuntimeError: the file is truncated or damaged, records overlap, or the version is unknown.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        try:
            entries = zipfile.ZipFile(file).infolist()
        except (zipfile.BadZipFile, ValueError, LookupError, EOFError, OverflowError):
            raise _damage_error("reading zip archive: failed finding central directory") from None
        except (struct.error, NotImplementedError, MemoryError, OSError) as error:
            raise _damage_error(f"reading zip archive: {error}") from None
        if not entries:
            raise _damage_error("reading zip archive: there are no records")
        folder, slash, _ = entries[0].filename.partition("/")
        if not slash:
            raise RuntimeError(f"file in archive is not in a subdirectory: {folder}")
        self._entries = {
            entry.filename.removeprefix(folder + "/"): entry
            for entry in entries
            if entry.filename.startswith(folder + "/")
        }
        self._starts = self._check_records(entries)
        self._unpacked = sum(entry.file_size for entry in entries)
        self._left = max(_LARGEST_PLAIN, _LARGEST_BLOW_UP * self._size)
        self._check_version()

    def _check_records(self, entries: list[zipfile.ZipInfo]) -> dict[str, int]:
        """Checks the records; returns the offset of each record's data by name."""
        starts: dict[str, int] = {}
        end = 0
        for entry in sorted(entries, key=lambda entry: entry.header_offset):
            if entry.header_offset < end:
                raise _damage_error(
                    f"reading zip archive: {entry.filename} overlaps another record"
                )
            self._file.seek(max(entry.header_offset, 0))
            header = self._file.read(30)
            if len(header) != 30 or not header.startswith(MAGIC):
                raise _damage_error("reading zip archive: invalid header or archive is corrupted")
            name, extra = struct.unpack("<HH", header[26:])
            starts[entry.filename] = start = entry.header_offset + 30 + name + extra
            end = start + entry.compress_size
            if end > self._size:
                raise _damage_error(f"reading file {entry.filename}: it ends beyond the archive")
        return starts

    def _check_version(self) -> None:
        name = next((n for n in (".data/version", "version") if n in self), None)
        if name is None:
            raise RuntimeError('Expected hasRecord("version") to be true, but got false.')
        text = self.read(name)
        try:
            version = int(text)
        except ValueError:
            shown = text[:20].decode("utf-8", "replace")
            raise RuntimeError(f"Couldn't parse the version {shown} as Long Long.") from None
        if not _OLDEST <= version <= _NEWEST:
            word = "maximum" if version > _NEWEST else "minimum"
            limit = _NEWEST if version > _NEWEST else _OLDEST
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {version}, but the {word} "
                f"supported version for reading is {limit}. The version of your PyTorch "
                "installation may be too old, please upgrade PyTorch to latest version to mitigate "
                "this issue."
            )

    @property
    def size_in_all(self) -> int:
        """The total size of all records, uncompressed."""
        return min(max(_LARGEST_PLAIN, _LARGEST_BLOW_UP * self._size), self._unpacked)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def _entry(self, name: str) -> zipfile.ZipInfo:
        entry = self._entries.get(name)
        if entry is None:
            raise _damage_error(f"locating file {name}: file not found")
        return entry

    def names(self) -> list[str]:
        """The names of all records, in order."""
        return list(self._entries)

    def start(self, name: str) -> int:
        """The offset of a record's bytes in the file."""
        return self._starts[self._entry(name).filename]

    def header(self, name: str) -> int:
        """The offset of a record's header in the file."""
        return self._entry(name).header_offset

    def size(self, name: str) -> int:
        """The declared size of a record in bytes."""
        return self._entry(name).file_size

    def read(self, name: str) -> bytes:
        """The bytes of a record.

        Raises:
            RuntimeError: there is no such record, it is damaged, or it is compressed beyond a
                plausible ratio.
        """
        entry = self._entry(name)
        self._file.seek(self._starts[entry.filename])
        raw = self._file.read(entry.compress_size)
        if entry.compress_type == zipfile.ZIP_DEFLATED:
            self._left -= entry.file_size
            if self._left < 0:
                raise _damage_error(f"reading file {name}: compressed records are too large")
            try:
                raw = zlib.decompressobj(-15).decompress(raw, entry.file_size + 1)
            except zlib.error:
                raise _damage_error(f"reading file {name}: decompression failed") from None
        elif entry.compress_type != zipfile.ZIP_STORED:
            raise _damage_error(f"reading file {name}: unsupported compression method")
        if len(raw) != entry.file_size:
            raise _damage_error(f"reading file {name}: unexpected decompressed size")
        if entry.CRC and zlib.crc32(raw) != entry.CRC:  # zero: it was not computed
            raise _damage_error(f"reading file {name}: CRC-32 check failed")
        return raw


class ArchiveWriter:
    """Writes an archive in PyTorch's form. Equal records give equal bytes.

    Args:
        write: receives the bytes of the file in order.
        folder: the folder of all records.
    """

    def __init__(self, write: Callable[[Any], object], folder: str) -> None:
        self._write = write
        self._folder = folder
        self._at = 0
        self._directory: list[bytes] = []
        self._check = self._names = 0

    def _put(self, raw: Any) -> None:
        self._write(raw)
        self._at += len(raw)

    def record(self, name: str, raw: Any, crc: int | None = None) -> None:
        """Writes one record.

        Raises:
            RuntimeError: the record would lie beyond the first 4 GiB.
        """
        size, begin = len(raw), self._at
        path = f"{self._folder}/{name}".encode()
        if begin + size + 2 * len(path) + 4096 > 0xFFFFFFFF:
            raise RuntimeError("save: the file would be larger than 4 GiB")
        if crc is None:
            crc = zlib.crc32(raw) if config.save.compute_crc32 else 0
        self._check = zlib.crc32(struct.pack("<I", crc), self._check)
        self._names = zlib.crc32(path + b"\0", self._names)
        flags = 0x0808 if size else 0x0800  # names are UTF-8; size and checksum follow the data
        gap = -(begin + 30 + len(path) + 4) % config.save.storage_alignment
        self._put(
            MAGIC
            + struct.pack("<HHHIIIIHH", 0, flags, 0, 0, 0, 0, 0, len(path), gap + 4)
            + path
            + struct.pack("<2sH", b"FB", gap)
            + b"Z" * gap
        )
        if size:
            self._put(raw)
            self._put(struct.pack("<4sIII", b"PK\x07\x08", crc, size, size))
        else:
            crc = 0
        self._directory.append(
            b"PK\x01\x02"
            + struct.pack("<HHHHIIII", 0, 0, flags, 0, 0, crc, size, size)
            + struct.pack("<HHHHHII", len(path), 0, 0, 0, 0, 0, begin)
            + path
        )

    def finish(self) -> None:
        """Writes the version, an identifier computed from all records, and the directory."""
        self.record("version", f"{_WRITTEN}\n".encode())
        self.record(".data/serialization_id", f"{self._names:020d}{self._check:020d}".encode())
        begin, count = self._at, len(self._directory)
        self._put(b"".join(self._directory))
        size, end = self._at - begin, self._at
        wide = struct.pack("<QHHIIQQQQ", 44, 0x31E, 45, 0, 0, count, count, size, begin)
        self._put(b"PK\x06\x06" + wide)
        self._put(b"PK\x06\x07" + struct.pack("<IQI", 0, end, 1))
        few = min(count, 0xFFFF)
        self._put(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, few, few, size, begin, 0))

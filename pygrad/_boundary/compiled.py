"""The compiled form of the binary, on disk.

To compile takes seconds of CPU; a compiled module loads in a millisecond, and processes share its
memory. It is looked for beside the package, where ``python -m pygrad precompile`` writes it, then
in the cache folder: ``PYGRAD_CACHE``, by default ``pygrad`` in the user's folder for caches. If it
is in neither, it is compiled and kept in the cache folder. ``PYGRAD_CACHE=0`` compiles at each
start.

A file's name has the hash of the binary, the machine and the reserved address space, then the hash
of its own content. wasmtime checks its version, its options and the features of the CPU. A compiled
module is machine code, so no file is trusted that another user may write.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import wasmtime

from .notices import warn

_LATEST: Final = 8
"""The compiled modules that a cache folder keeps."""
_SUFFIX: Final = ".cwasm"


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _stem(binary: bytes, reserved: int) -> str:
    """The first part of the names of compiled forms of a binary, on this machine."""
    system = f"{sys.platform}-{platform.machine()}"
    return f"core-{_short_hash(binary)}-{system}-{reserved >> 20}."


def cache_folder() -> Path | None:
    """The folder of compiled modules; None if none is wanted, or the user has no folder.

    Raises: ImportError: ``PYGRAD_CACHE`` is not an absolute path.
    """
    given = os.environ.get("PYGRAD_CACHE", "")
    if given == "0":
        return None
    if given not in ("", "1"):
        if not os.path.isabs(given):
            raise ImportError(
                f"PYGRAD_CACHE is to be the absolute path of a folder, or 0, not {given!r}"
            )
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "pygrad") if os.path.isabs(base) else None


def _writers(path: Path, binary: Path) -> str:
    """Tells of the first file or folder on the way to a path that another user may write; "" if
    there is none. The superuser may write all, and whoever owns the binary decides what runs here
    anyway. Windows has no such bits, and the folders looked into are the user's own there.
    """
    if os.name != "posix":
        return ""
    trusted = {0, os.getuid(), binary.stat().st_uid}
    path = path.resolve()
    for each in (path, *path.parents):
        found = each.stat()
        writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX and each != path
        if found.st_uid not in trusted or (writable and not sticky):
            return f"{each} can be written by others"
    return ""


def _candidates(folder: Path, stem: str) -> Iterator[Path]:
    try:
        names = [name for name in os.listdir(folder) if name.startswith(stem)]
    except OSError:
        return
    for name in sorted(names):
        if name.endswith(_SUFFIX):
            yield folder / name


def _load(
    engine: wasmtime.Engine, folder: Path, stem: str, binary: Path
) -> tuple[wasmtime.Module, Path] | None:
    """The compiled module that a folder has, and its file; None if it has none for this machine."""
    for path in _candidates(folder, stem):
        try:
            problem = _writers(path, binary)
            if problem:
                warn(f"pygrad does not load the compiled engine {path}: {problem}")
                continue
            if _short_hash(path.read_bytes()) == path.name[len(stem) : -len(_SUFFIX)]:
                return wasmtime.Module.deserialize_file(engine, str(path)), path
        except (OSError, wasmtime.WasmtimeError):
            pass  # it went away, or is of a CPU with other features
    return None


def _keep(module: wasmtime.Module, folder: Path, stem: str, binary: Path) -> Path:
    """Writes a compiled module into a folder, at once or not at all.

    Raises: OSError: the folder cannot be made or written, or others can write it.
    """
    content = bytes(module.serialize())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    problem = _writers(folder, binary)
    if problem:
        raise PermissionError(problem)
    path = folder / f"{stem}{_short_hash(content)}{_SUFFIX}"
    number, name = tempfile.mkstemp(dir=folder, prefix=".core-")
    try:
        with open(number, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    return path


def _forget_old(folder: Path) -> None:
    """Removes all but the latest compiled modules of a folder."""
    found = sorted(folder.glob(f"core-*{_SUFFIX}"), key=os.path.getmtime)
    for path in found[:-_LATEST]:
        path.unlink()


def load(
    engine: wasmtime.Engine, binary: Path, reserved: int, compile: Callable[[], wasmtime.Module]
) -> tuple[wasmtime.Module, Path | None]:
    """The compiled form of a binary, and its file: loaded, or compiled, and kept if it can be."""
    if os.environ.get("PYGRAD_CACHE") == "0":
        return compile(), None
    stem = _stem(binary.read_bytes(), reserved)
    cache = cache_folder()
    for folder in (binary.parent, cache):
        found = _load(engine, folder, stem, binary) if folder is not None else None
        if found is not None:
            return found
    start = time.perf_counter()
    module = compile()
    taken = time.perf_counter() - start
    try:
        if cache is None:
            raise OSError("the user has no folder for caches")
        path = _keep(module, cache, stem, binary)
        _forget_old(cache)
    except OSError as error:
        warn(
            f"pygrad compiled its engine in {taken:.1f} s and cannot keep the result: {error}. "
            "`python -m pygrad precompile` keeps it beside the package, `python -m pygrad "
            "precompile DIR` and PYGRAD_CACHE=DIR in another folder; PYGRAD_CACHE=0 compiles at "
            "each start"
        )
        return module, None
    return module, path


def precompile(module: wasmtime.Module, binary: Path, reserved: int, folder: Path) -> Path:
    """Writes the compiled form of a binary into a folder; see `load`.

    Raises: OSError: the folder cannot be written, or others can write it.
    """
    return _keep(module, folder, _stem(binary.read_bytes(), reserved), binary)

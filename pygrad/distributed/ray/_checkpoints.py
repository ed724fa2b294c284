"""Files of a run's states, numbered. One is there whole or not at all, whenever a process ends."""

from __future__ import annotations

import os
import re
import secrets
import zipfile
from pathlib import Path
from typing import Any

from ... import serialization

_NAME = re.compile(r"checkpoint-(\d{8})\.pt")


def _number(path: Path) -> int:
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else 0


def _numbered(folder: Path) -> list[Path]:
    """All checkpoints, the newest first."""
    return sorted((p for p in folder.iterdir() if _number(p)), key=_number, reverse=True)


def _is_whole(path: Path) -> bool:
    """Whether its bytes are those that were written, by their sums."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except Exception:  # zipfile's own are many: the bytes may tell it anything
        return False


def newest(folder: Path) -> Path | None:
    """The last checkpoint that is whole."""
    return next((path for path in _numbered(folder) if _is_whole(path)), None)


def tidy(folder: Path) -> None:
    """Makes the folder, and deletes what those left who were killed while they wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in folder.glob("checkpoint-*.part"):
        part.unlink(missing_ok=True)


def write(folder: Path, state: Any, keep: int) -> Path:
    """Writes one more checkpoint, on the disk when this returns, and deletes old ones.

    Args:
        folder: Where they are.
        state: What `pygrad.save` takes.
        keep: How many of the newest stay.
    """
    there = _numbered(folder)
    path = folder / f"checkpoint-{_number(there[0]) + 1 if there else 1:08}.pt"
    part = path.with_suffix(f".{secrets.token_hex(4)}.part")
    with part.open("wb") as file:
        serialization.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    _settle(folder)
    for old in there[keep - 1 :]:
        old.unlink(missing_ok=True)
    return path


def _settle(folder: Path) -> None:
    """The new name is on the disk too; systems that cannot open a folder keep names themselves."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read(path: Path) -> Any:
    """The state that a checkpoint holds."""
    return serialization.load(path)

"""Numbered files of a run's states. A file is complete or absent, whenever a process ends."""

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


def _list_checkpoints(folder: Path) -> list[Path]:
    """All checkpoints, the newest first."""
    return sorted((p for p in folder.iterdir() if _number(p)), key=_number, reverse=True)


def _is_whole(path: Path) -> bool:
    """Whether the file is complete, by its checksums."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except Exception:  # damaged bytes may raise any error in zipfile
        return False


def newest(folder: Path) -> Path | None:
    """The newest complete checkpoint."""
    return next((path for path in _list_checkpoints(folder) if _is_whole(path)), None)


def tidy(folder: Path) -> None:
    """Makes the folder, and deletes incomplete files of killed processes."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in folder.glob("checkpoint-*.part"):
        part.unlink(missing_ok=True)


def write(folder: Path, state: Any, keep: int) -> Path:
    """Writes a checkpoint, syncs it to the disk, and deletes old ones.

    Args:
        folder: The folder of checkpoints.
        state: An object for `pygrad.save`.
        keep: The number of newest checkpoints to keep.
    """
    there = _list_checkpoints(folder)
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
    """Syncs the new name to the disk. Systems that cannot open a folder do so themselves."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read(path: Path) -> Any:
    """Loads the state of a checkpoint."""
    return serialization.load(path)

"""Files of a run's states: the last one that is whole is found, whatever happened to the others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import pygrad as torch
from pygrad.distributed.ray import _checkpoints


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def state(step: int) -> dict[str, Any]:
    return {"weight": torch.full((50,), float(step)), "step": step}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One that holds the states of the steps 1, 2 and 3."""
    folder = tmp_path / "some" / "folder"
    _checkpoints.tidy(folder)
    for step in (1, 2, 3):
        _checkpoints.write(folder, state(step), keep=3)
    return folder


def newest_step(folder: Path) -> int | None:
    path = _checkpoints.newest(folder)
    if path is None:
        return None
    found = _checkpoints.read(path)
    assert torch.equal(found["weight"], state(found["step"])["weight"])
    return int(found["step"])


def test_newest_is_the_last_that_was_written(folder: Path) -> None:
    assert newest_step(folder) == 3


def test_empty_folder_has_none(tmp_path: Path) -> None:
    assert newest_step(tmp_path) is None


@pytest.mark.parametrize("keep", [1, 2])
def test_so_many_stay(folder: Path, keep: int) -> None:
    _checkpoints.write(folder, state(4), keep)
    assert names(folder) == [f"checkpoint-{n:08}.pt" for n in range(5 - keep, 5)]


def test_file_that_ends_early_is_passed_over(folder: Path) -> None:
    last = _checkpoints.newest(folder)
    assert last is not None
    whole = last.read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        last.write_bytes(whole[:size])
        assert newest_step(folder) == 2


def test_changed_byte_never_gives_other_numbers(folder: Path) -> None:
    """The file is passed over, or it cannot be read, or the byte means nothing to who reads it."""
    last = _checkpoints.newest(folder)
    assert last is not None
    whole = last.read_bytes()
    found = []
    for at in range(len(whole)):
        last.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            found.append(newest_step(folder))  # compares the numbers
        except RuntimeError:
            found.append(None)
    assert set(found) == {2, 3, None}
    assert found.count(2) > found.count(None)


def test_rest_of_one_that_was_killed_as_it_wrote_is_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names(folder)

    def fails(_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(KeyboardInterrupt):
            _checkpoints.write(folder, state(4), keep=3)
    assert len(names(folder)) == 4
    assert newest_step(folder) == 3
    _checkpoints.tidy(folder)
    assert names(folder) == before


def test_other_files_of_the_folder_stay(folder: Path) -> None:
    for name in ("notes.txt", "checkpoint-1.pt", "checkpoint-00000009.pt.bak"):
        (folder / name).touch()
    _checkpoints.tidy(folder)
    _checkpoints.write(folder, state(4), keep=1)
    assert newest_step(folder) == 4
    assert len(names(folder)) == 4

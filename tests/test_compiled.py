"""The compiled form of the binary: where it is kept, when it is loaded, and what is never trusted.

A tiny module stands for the engine here: it compiles in a millisecond.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import wasmtime

from pygrad._boundary import compiled, process

ENGINE = wasmtime.Engine()
RESERVED = 1 << 30

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")


class Start:
    """A start of a program: the package's folder, the cache's, and what was compiled."""

    def __init__(self, folder: Path) -> None:
        self.package, self.cache = folder / "package", folder / "cache"
        self.package.mkdir()
        self.binary = self.package / "core.wasm"
        self.binary.write_bytes(wasmtime.wat2wasm('(module (func (export "f")))'))
        self.compiled = 0

    def compile(self) -> wasmtime.Module:
        self.compiled += 1
        return wasmtime.Module.from_file(ENGINE, str(self.binary))

    def load(self, engine: wasmtime.Engine = ENGINE, reserved: int = RESERVED) -> Path | None:
        """Loads the binary; the file of its compiled form."""
        module, file = compiled.load(engine, self.binary, reserved, self.compile)
        assert [each.name for each in module.exports] == ["f"]
        return file


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    made = Start(tmp_path)
    monkeypatch.setenv("PYGRAD_CACHE", str(made.cache))
    return made


def test_second_start_compiles_nothing(start: Start) -> None:
    kept = start.load()
    assert kept is not None
    assert kept.parent == start.cache
    assert start.load() == kept
    assert start.compiled == 1


def test_file_beside_the_package_is_found_first(start: Start) -> None:
    start.load()
    beside = compiled.precompile(start.compile(), start.binary, RESERVED, start.package)
    assert beside.parent == start.package
    assert start.load() == beside


def test_another_binary_is_compiled(start: Start) -> None:
    first = start.load()
    start.binary.write_bytes(wasmtime.wat2wasm('(module (func (export "f") nop))'))
    assert start.load() != first
    assert start.compiled == 2


def test_another_address_space_is_compiled(start: Start) -> None:
    start.load()
    start.load(reserved=RESERVED // 2)
    assert start.compiled == 2


def test_damaged_file_is_compiled_anew(start: Start) -> None:
    kept = start.load()
    assert kept is not None
    content = kept.read_bytes()
    for damaged in (content[:-1], content[:1000], b"", content[:500] + b"x" + content[501:]):
        kept.write_bytes(damaged)
        before = start.compiled
        assert start.load() == kept
        assert start.compiled == before + 1
        assert kept.read_bytes() == content


def test_file_of_another_compiler_is_compiled_anew(start: Start) -> None:
    """wasmtime refuses a module of other options, of another version or for another CPU."""
    config = wasmtime.Config()
    config.consume_fuel = True
    other = wasmtime.Engine(config)
    module = wasmtime.Module.from_file(other, str(start.binary))
    foreign = compiled.precompile(module, start.binary, RESERVED, start.cache)
    kept = start.load()
    assert start.compiled == 1
    assert kept != foreign
    assert start.load() == kept


@pytest.mark.parametrize("which", ["file", "folder", "folder above"])
def test_file_that_others_can_write_is_not_loaded(start: Start, which: str) -> None:
    start.cache = start.cache / "within"
    os.environ["PYGRAD_CACHE"] = str(start.cache)
    kept = start.load()
    assert kept is not None
    path = {"file": kept, "folder": kept.parent, "folder above": kept.parent.parent}[which]
    path.chmod(path.stat().st_mode | 0o022)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start.load()
    assert start.compiled == 2
    assert "does not load" in str(caught[0].message)
    assert str(caught[0].message).endswith(f"{path} can be written by others")


def test_folder_that_others_can_write_gets_no_file(start: Start) -> None:
    start.cache.mkdir()
    start.cache.chmod(0o777)
    with pytest.raises(PermissionError, match="can be written by others"):
        compiled.precompile(start.compile(), start.binary, RESERVED, start.cache)
    assert os.listdir(start.cache) == []


def test_notice_if_nothing_can_be_kept(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start.cache.write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match="cannot keep .*python -m pygrad precompile") as caught:
        assert start.load() is None
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        start.load()  # no error
    assert "cannot keep" in capsys.readouterr().err
    monkeypatch.setenv("PYGRAD_CACHE", "0")
    assert start.load() is None
    assert capsys.readouterr().err == ""
    assert start.compiled == 3


def test_cache_keeps_the_latest_modules(start: Start) -> None:
    for i in range(10):
        start.binary.write_bytes(wasmtime.wat2wasm(f'(module (func (export "f") {"nop " * i}))'))
        kept = start.load()
        assert kept is not None
        os.utime(kept, (i, i))
    assert len(list(start.cache.iterdir())) == 8
    assert start.load() == kept


def test_folder_for_caches_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYGRAD_CACHE", raising=False)
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert compiled.cache_folder() == tmp_path / "pygrad"
        monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = compiled.cache_folder()
    assert folder is not None
    assert folder.is_relative_to(tmp_path)


def test_cache_that_is_no_absolute_path_is_an_error() -> None:
    found = command("info", PYGRAD_CACHE="banana")
    assert found.stderr.splitlines()[-1] == (
        "ImportError: PYGRAD_CACHE is to be the absolute path of a folder, or 0, not 'banana'"
    )


# ------------------------------------------------------------------ python -m pygrad


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pygrad", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_precompiled_engine_is_loaded_without_a_cache(tmp_path: Path) -> None:
    """A container's build writes it; a read-only root loads it."""
    tmp_path.chmod(0o755)
    made = command("precompile", str(tmp_path / "engine"))
    path = made.stdout.strip()
    assert made.returncode == 0, made.stderr
    assert os.path.dirname(path) == str(tmp_path / "engine")
    found = command(
        "info", PYGRAD_CACHE=str(tmp_path / "engine"), HOME="/proc/none", XDG_CACHE_HOME=""
    )
    assert found.stderr == ""
    if not list(process.BINARY.parent.glob("*.cwasm")):
        assert f"compiled       {path}\n" in found.stdout


def test_precompile_names_what_it_cannot_write() -> None:
    found = command("precompile", "/proc/none")
    assert found.returncode == 1
    assert found.stderr.startswith("pygrad precompile: [Errno 2]")
    assert found.stderr.count("\n") == 1


def test_info_names_the_binary_and_its_hash() -> None:
    import hashlib

    found = command("info").stdout
    assert f"sha256         {hashlib.sha256(process.BINARY.read_bytes()).hexdigest()}\n" in found
    for name in ("pygrad", "wasmtime", "numpy", "python", "cache", "memory", "threads"):
        assert f"\n{name} " in f"\n{found}"


def test_version() -> None:
    import pygrad

    assert command("--version").stdout == f"pygrad {pygrad.__version__}\n"


def test_file_with_the_name_of_a_command_is_run(tmp_path: Path) -> None:
    (tmp_path / "info").write_text("import torch\nprint(torch.ones(2).sum().item())\n")
    found = subprocess.run(
        [sys.executable, "-m", "pygrad", "info"], cwd=tmp_path, capture_output=True, text=True
    )
    assert found.stdout == "2.0\n"

"""The commands of ``python -m pygrad`` beside the running of programs.

python -m pygrad info              versions, binary, cache and limits
python -m pygrad precompile [DIR]  keeps the compiled engine beside the package, or in DIR
python -m pygrad --version
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from .._boundary import compiled, process
from .._ground.package import PACKAGE
from ..version import __version__


def _version_of(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _build_record() -> dict[str, str]:
    """The build record of the binary: its hash, its size and its compilers, by name."""
    lines = process.BINARY.with_name("core.build.txt").read_text("utf-8").splitlines()
    pairs = [line.split(None, 1) for line in lines if line and not line.startswith("What")]
    return {name: text for name, text in pairs if not text.startswith("wasm_core/")}


def _readable_mib(n_bytes: int) -> str:
    return f"{n_bytes >> 20} MiB"


def facts() -> dict[str, str]:
    """What a report of a fault or of a training names: versions, the binary, cache and limits."""
    record = _build_record()
    cache = "off (PYGRAD_CACHE=0)" if os.environ.get("PYGRAD_CACHE") == "0" else "none"
    return {
        "pygrad": __version__,
        "binary": f"{process.BINARY} ({record['bytes']} bytes)",
        "sha256": record["sha256"],
        "built by": f"emcc {record['emcc']}, {record['clang']}",
        "compiled": str(process.compiled_file or "at this start"),
        "cache": str(compiled.cache_folder() or cache),
        "memory": f"at most {_readable_mib(process.memory_limit(PACKAGE))} an engine",
        "address space": f"{_readable_mib(process.reserved)} an engine",
        "threads": "1 an engine",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "wasmtime": _version_of("wasmtime"),
        "numpy": _version_of("numpy"),
        "host": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
    }


def _info(arguments: Sequence[str]) -> None:
    if arguments:
        raise SystemExit(f"pygrad info: unknown argument {arguments[0]}")
    for name, text in facts().items():
        print(f"{name:14} {text}")


def _precompile(arguments: Sequence[str]) -> None:
    if len(arguments) > 1:
        raise SystemExit("usage: python -m pygrad precompile [DIR]")
    folder = Path(arguments[0]).absolute() if arguments else process.BINARY.parent
    try:
        path = compiled.precompile(process.module, process.BINARY, process.reserved, folder)
    except OSError as error:
        raise SystemExit(f"pygrad precompile: {error}") from None
    print(path)


def _version(_: Sequence[str]) -> None:
    print(f"pygrad {__version__}")


COMMANDS: Final[dict[str, Callable[[Sequence[str]], None]]] = {
    "info": _info,
    "precompile": _precompile,
    "--version": _version,
}


def is_command(name: str) -> bool:
    """Whether a word is a command, and no file or folder of that name is there to be run."""
    return name in COMMANDS and not os.path.exists(name)


def run(name: str, arguments: Sequence[str]) -> None:
    """Runs a command, and ends the process with the status of its end."""
    COMMANDS[name](arguments)
    sys.exit(0)

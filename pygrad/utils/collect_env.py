"""A report of versions, system and processor, for bug reports.

python -m pygrad -m torch.utils.collect_env
"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

from .. import __version__ as _version

__all__ = ["get_pretty_env_info", "main"]

_PACKAGES = ("pygrad", "wasmtime", "numpy", "mpi4py", "ray")


def _package(name: str) -> str:
    try:
        return f"{name}=={metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return f"{name} is not installed"


def get_pretty_env_info() -> str:
    """The report, one fact per line.

    Example:
        >>> get_pretty_env_info().splitlines()[1:3]
        ['Is debug build: False', 'CUDA used to build PyTorch: None']
    """
    bits = 64 if sys.maxsize > 1 << 32 else 32
    lines = [
        f"PyTorch version: {_version} (pygrad, in WebAssembly)",
        "Is debug build: False",
        "CUDA used to build PyTorch: None",
        f"OS: {platform.platform()}",
        f"Libc version: {'-'.join(filter(None, platform.libc_ver())) or 'N/A'}",
        f"Python version: {sys.version.splitlines()[0]} ({bits}-bit runtime)",
        "Is CUDA available: False",
        f"CPU: {platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "",
        "Versions of relevant libraries:",
        *(f"[pip3] {_package(name)}" for name in _PACKAGES),
    ]
    return "\n".join(lines)


def main() -> None:
    """Prints the report."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()

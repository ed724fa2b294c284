"""Import errors of compiled modules of packages that need PyTorch's own libraries.

The dynamic linker's error names ``libc10.so`` and no remedy. Where the dialect stands for torch,
the error names pygrad and says what to do.
"""

from __future__ import annotations

import re
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_LIBRARIES: Final = re.compile(rb"(?:lib)?(?:c10|torch(?:_cpu|_python)?)\.(?:so|dylib|dll)\b")
_load: Final = ExtensionFileLoader.create_module


def needs_torch(file: str) -> bool:
    """Whether a compiled module names one of PyTorch's libraries as one that it needs."""
    try:
        return _LIBRARIES.search(Path(file).read_bytes()) is not None
    except OSError:
        return False


def refusal(name: str) -> str:
    """The message of the import error of a module of that name."""
    package = name.partition(".")[0]
    return (
        f"{name} is compiled against PyTorch's C++ libraries, which pygrad has not: it stands for "
        f"torch in this process, and cannot run machine code of PyTorch's. Use what {package} has "
        "in Python, write the op as a torch.autograd.Function, or run the program with PyTorch"
    )


def _create_module(self: ExtensionFileLoader, spec: ModuleSpec) -> ModuleType:
    try:
        return _load(self, spec)
    except ImportError as error:
        if not needs_torch(self.path):
            raise
        raise ImportError(refusal(spec.name), name=spec.name, path=self.path) from error


def explain() -> None:
    """Makes the import errors of modules that need torch name the reason, until
    `explain_no_more`.
    """
    loader: Any = ExtensionFileLoader
    loader.create_module = _create_module


def explain_no_more() -> None:
    """Restores the import errors of such modules."""
    loader: Any = ExtensionFileLoader
    loader.create_module = _load

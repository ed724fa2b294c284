"""`install` and `uninstall`: ``import torch`` gives the dialect, here and in child processes.

Four things are changed, and restored by `uninstall`: `sys.modules` has the dialect under PyTorch's
names; a folder with a `torch` of a few lines and its metadata comes early in `sys.path` and in
``PYTHONPATH``; the `__module__` of public classes is in `torch`, which shows in their texts and
pickles; and errors of compiled modules that need PyTorch's libraries name the reason.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Final

from . import compiled_parts, dialect

FOLDER: Final = str(Path(__file__).parent / "as_torch")
_VARIABLE: Final = "PYTHONPATH"


def is_installed() -> bool:
    """Whether `install` is in force."""
    return dialect.is_installed()


def install() -> None:
    """From now on ``import torch`` gives `pygrad.torch`, here and in processes started from here.

    ``import torch.x.y`` and ``from torch import ...`` work too, in every library, whether PyTorch
    is installed or not; ``importlib.metadata.version("torch")`` and ``torch.__version__`` give the
    release that pygrad follows. Does nothing if already installed.

    Raises:
        RuntimeError: PyTorch has been imported, so that programs may hold objects of it.

    Example:
        >>> import pygrad
        >>> pygrad.install()
        >>> import torch
        >>> torch.ones(2, requires_grad=True).sum()
        tensor(2., grad_fn=<SumBackward0>)
        >>> pygrad.uninstall()
    """
    if is_installed():
        return
    there = sys.modules.get("torch")
    if there is not None:
        raise RuntimeError(
            "pygrad.install(): PyTorch is already imported in this process, from "
            f"{getattr(there, '__file__', None)}; call install() before anything imports torch, "
            "or run the program with python -m pygrad"
        )
    importlib.import_module(dialect.DIALECT)
    if FOLDER not in sys.path:
        sys.path.insert(1, FOLDER)  # the first entry is the program's own folder
    paths = os.environ.get(_VARIABLE, "").split(os.pathsep)
    if FOLDER not in paths:
        os.environ[_VARIABLE] = os.pathsep.join([FOLDER, *filter(None, paths)])
    importlib.invalidate_caches()
    dialect.stand_for_torch()
    compiled_parts.explain()


def uninstall() -> None:
    """Undoes `install`: ``import torch`` means PyTorch again, or nothing.

    Programs keep the modules that they have imported. Does nothing without `install`.
    """
    if not is_installed():
        return
    dialect.stand_aside()
    compiled_parts.explain_no_more()
    sys.path[:] = [path for path in sys.path if path != FOLDER]
    paths = os.environ.get(_VARIABLE, "").split(os.pathsep)
    os.environ[_VARIABLE] = os.pathsep.join(path for path in paths if path != FOLDER)
    if not os.environ[_VARIABLE]:
        del os.environ[_VARIABLE]
    importlib.invalidate_caches()

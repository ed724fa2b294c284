"""The module of ``import torch`` in a process started by a program with `pygrad.install()`. It
installs pygrad in that process too, so the import gives the dialect.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType


def _load_pygrad() -> ModuleType:
    """The package to which this file belongs, wherever it is."""
    init = Path(__file__).parents[3] / "__init__.py"
    found = PathFinder.find_spec("pygrad")
    if "pygrad" not in sys.modules and (found is None or found.origin != str(init)):
        spec = importlib.util.spec_from_file_location(
            "pygrad", init, submodule_search_locations=[str(init.parent)]
        )
        assert spec is not None
        assert spec.loader is not None
        sys.modules["pygrad"] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules["pygrad"])
        except BaseException:
            del sys.modules["pygrad"]
            raise
    return importlib.import_module("pygrad")


_pygrad = _load_pygrad()
# Until now this module stands for torch; install() replaces it by the dialect, which the import
# then returns.
del sys.modules[__name__]
_pygrad.install()

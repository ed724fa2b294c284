"""These tests start processes by the mpiexec that is installed beside Python: `make scale` does."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _needs_mpi() -> None:
    if find_spec("mpi4py") is None or not Path(sys.executable).with_name("mpiexec").exists():
        pytest.skip("no mpi4py and mpiexec here: make scale")

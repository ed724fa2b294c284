"""Modules for batches and workers, under PyTorch's names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ...._ground.package import submodule
from . import collate, fetch

__all__ = ["collate", "fetch", "pin_memory", "worker"]

IS_WINDOWS = sys.platform == "win32"
MP_STATUS_CHECK_INTERVAL = 5.0
"""Seconds between two checks whether a worker is alive."""
HAS_NUMPY = True
python_exit_status = False

if TYPE_CHECKING:
    from . import pin_memory, worker
else:

    def __getattr__(name):
        """Imports modules at first use, because workers need `multiprocessing`."""
        if name in ("worker", "pin_memory"):
            return submodule(f"utils.data._utils.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The level of detail in errors and checks."""

from __future__ import annotations

import enum
import os
from typing import Final

_VARIABLE: Final = "TORCH_DISTRIBUTED_DEBUG"


class DebugLevel(enum.Enum):
    """Levels of detail. At INFO and DETAIL errors of DistributedDataParallel name parameters."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_state: Final = [DebugLevel.OFF]


def get_debug_level() -> DebugLevel:
    """The current level."""
    return _state[0]


def set_debug_level(level: DebugLevel) -> None:
    """Sets the level."""
    _state[0] = level


def set_debug_level_from_env() -> None:
    """Sets the level from the environment variable TORCH_DISTRIBUTED_DEBUG; OFF without it.

    Raises:
        RuntimeError: the variable names no level.
    """
    name = os.environ.get(_VARIABLE, "OFF")
    if name not in DebugLevel.__members__:
        raise RuntimeError(
            f"The value of {_VARIABLE} must be one of `OFF`, `INFO`, or `DETAIL`, not {name!r}"
        )
    _state[0] = DebugLevel[name]


set_debug_level_from_env()

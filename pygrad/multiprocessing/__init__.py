"""Python's `multiprocessing`, with `spawn`, and with tensors that are sent by value.

Each process has its own engine. A tensor is copied when it is sent; one with a graph is refused.

Example:
    >>> import pygrad as torch
    >>> torch.multiprocessing.get_sharing_strategy()
    'file_descriptor'
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from multiprocessing import *  # noqa: F403
from typing import TYPE_CHECKING, Any

from ..utils.data._workers import refuse_graphs
from . import reductions as reductions
from .spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
__all__ += multiprocessing.__all__

_all_sharing_strategies = (
    {"file_system"} if sys.platform in ("darwin", "win32") else {"file_descriptor", "file_system"}
)
_sharing_strategy = "file_system" if len(_all_sharing_strategies) == 1 else "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Records a sharing strategy. Tensors are sent by value with any strategy.

    Raises:
        AssertionError: PyTorch has no such strategy on this system.
    """
    global _sharing_strategy
    if new_strategy not in _all_sharing_strategies:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {_all_sharing_strategies}"
        )
    _sharing_strategy = new_strategy


def get_sharing_strategy() -> str:
    """The recorded strategy."""
    return _sharing_strategy


def get_all_sharing_strategies() -> set[str]:
    """The strategies that PyTorch has on this system."""
    return _all_sharing_strategies


def _set_thread_name(name: str) -> None:
    threading.current_thread().name = name


def _get_thread_name() -> str:
    return threading.current_thread().name


def init_reductions() -> None:
    """Makes queues and pipes refuse tensors whose graph would be lost."""
    refuse_graphs()


init_reductions()

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

"""Timing of statements, with the spread of the times, and comparisons in tables.

Example:
    >>> import pygrad as torch
    >>> from pygrad.utils.benchmark import Timer
    >>> timer = Timer("x.sum()", "x = torch.ones(8)", globals={"torch": torch})
    >>> timer.timeit(10).number_per_run
    10
"""

from __future__ import annotations

from .utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from .utils.compare import Colorize, Compare
from .utils.timer import Language, Timer, timer

__all__ = [
    "Colorize",
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]

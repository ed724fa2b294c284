"""Measurements of a statement, and formatting of numbers."""

from __future__ import annotations

import contextlib
import math
import statistics
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from ...._tensor.functions import get_num_threads, set_num_threads

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_MAX_SIGNIFICANT_FIGURES = 4
_MIN_CONFIDENCE_INTERVAL = 25e-9
_IQR_WARN_THRESHOLD = 0.1
_IQR_GROSS_WARN_THRESHOLD = 0.25


@dataclass(repr=False, frozen=True)
class TaskSpec:
    """A measured statement, its setup and its labels."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        if self.label is None and "\n" in self.stmt:
            name = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{name}\n{textwrap.indent(self.stmt, '  ')}"
        behind = f": {self.sub_label}" if self.sub_label else ""
        return (self.stmt if self.label is None else self.label) + behind

    def setup_str(self) -> str:
        """The setup, as the text of a measurement shows it."""
        if not self.setup or self.setup == "pass":
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """The whole specification as a text."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(f"{each}\n" if "\n" in each else each for each in parts if each)


_SPEC = [field.name for field in fields(TaskSpec)]


@dataclass(repr=False)
class Measurement:
    """The times of a statement in several runs.

    Attributes:
        number_per_run: the number of executions per run.
        raw_times: the seconds of each run.
        task_spec: the measured task; its fields are also attributes.
        metadata: any data of the user.

    Example:
        >>> from pygrad.utils.benchmark import Measurement, TaskSpec
        >>> found = Measurement(10, [2.0, 4.0, 3.0], TaskSpec("f()", "pass"))
        >>> found.median, found.stmt
        (0.3, 'f()')
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _SPEC:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """The seconds per execution of each run."""
        return [each / self.number_per_run for each in self.raw_times]

    @property
    def median(self) -> float:
        """The median of the times."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return math.fsum(self.times) / len(self.raw_times)

    @property
    def iqr(self) -> float:
        """The interquartile range of the times."""
        return self._quantile(0.75) - self._quantile(0.25)

    def _quantile(self, share: float) -> float:
        times = sorted(self.times)
        place = share * (len(times) - 1)
        low = math.floor(place)
        high = min(low + 1, len(times) - 1)
        return times[low] + (times[high] - times[low]) * (place - low)

    @property
    def significant_figures(self) -> int:
        """An estimate of the median's significant figures, from the interquartile range."""
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = 1.645 * statistics.pstdev(middle) / math.sqrt(len(middle))
        relative = self.median / max(interval, _MIN_CONFIDENCE_INTERVAL)
        return min(max(math.floor(math.log10(relative)), 1), _MAX_SIGNIFICANT_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether the spread of the times warrants a warning."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _IQR_WARN_THRESHOLD) -> bool:
        """Whether the interquartile range is below this share of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The label, or the statement."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """The name of the row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def _warning(self) -> str:
        if self.meets_confidence(_IQR_WARN_THRESHOLD):
            return ""
        gross = not self.meets_confidence(_IQR_GROSS_WARN_THRESHOLD)
        cause = (
            "This suggests significant environmental influence."
            if gross
            else "This could indicate system fluctuation."
        )
        share = self.iqr / self.median * 100
        return (
            f"  WARNING: Interquartile range is {share:.1f}% of the median measurement.\n"
            f"           {cause}"
        )

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        number, threads = len(self.raw_times), self.task_spec.num_threads
        several = number > 1
        lines = [
            object.__repr__(self),
            self.task_spec.summarize(),
            f"  {'Median: ' if several else ''}{self.median / scale:.2f} {unit}",
        ]
        if number >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        each = "per measurement," if several else ","
        lines.append(
            f"  {number} measurement{'s' if several else ''}, {self.number_per_run} runs {each} "
            f"{threads} thread{'s' if threads > 1 else ''}"
        )
        return "\n".join([*lines, self._warning()]).strip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Merges the measurements of each task into one."""
        groups: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            groups.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(1, times, spec) for spec, times in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The best unit for a time, and the unit's seconds.

    Example:
        >>> select_unit(0.002)
        ('ms', 0.001)
    """
    units = {-3: ("ns", 1e-9), -2: ("us", 1e-6), -1: ("ms", 1e-3)}
    return units.get(int(math.log10(t) // 3), ("s", 1))


def unit_to_english(u: str) -> str:
    """The word for a unit."""
    words = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
    return words[u]


def trim_sigfig(x: float, n: int) -> float:
    """Rounds a number to some significant figures.

    Example:
        >>> trim_sigfig(3.14159, 3)
        3.14
    """
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The distinct elements, in order."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A block with a number of threads."""
    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)

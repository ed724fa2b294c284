"""Timing of statements like Python's `timeit`, with an estimate of the precision."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

from ...._ground.package import submodule
from . import common

__all__ = ["Language", "Timer", "timer"]

timer = timeit.default_timer


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures how long a statement takes.

    Args:
        stmt: the statement.
        setup: a statement that runs before, untimed.
        global_setup: ignored; it is for C++.
        timer: the clock.
        globals: the names that both statements see, besides `torch`.
        label, sub_label, description, env: the labels in a table.
        num_threads: the number of threads.
        language: must be Python.

    Raises:
        NotImplementedError: another language, or counts of instructions.

    Example:
        >>> from pygrad.utils.benchmark import Timer
        >>> Timer("1 + 1", label="sum").blocked_autorange(min_run_time=0.01).title
        'sum'
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("benchmark.Timer: pygrad compiles no C++")
        names = dict(globals or {})
        names.setdefault("torch", submodule("torch"))
        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        self._globals = names
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=names)
        self._task_spec = common.TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def timeit(self, number: int = 1000000) -> common.Measurement:
        """One measurement of some runs, after a warmup."""
        with common.set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return self._measurement(number, [self._time(number)])

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _measurement(self, number: int, times: list[float]) -> common.Measurement:
        return common.Measurement(number, times, self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Not supported; use `blocked_autorange`.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> NoReturn:
        """Not supported; use `blocked_autorange`.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, min_run_time: float) -> int:
        """The number of runs per measurement, so that the clock's overhead is negligible."""
        overhead = sorted(self._time(0) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._time(number)
            if (taken > 0 and overhead / taken <= 1e-4 and taken >= min_run_time / 1000) or (
                taken > min_run_time
            ):
                return number
            number *= 10

    def blocked_autorange(
        self,
        callback: Callable[[int, float], NoReturn] | None = None,
        min_run_time: float = 0.2,
    ) -> common.Measurement:
        """Measures until a total time is reached.

        Args:
            callback: called with the number of runs and the seconds of each measurement.
            min_run_time: the total time in seconds.
        """

        def enough(times: list[float]) -> bool:
            return sum(times) >= min_run_time

        return self._measure_until(enough, callback, min_run_time)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], NoReturn] | None = None,
    ) -> common.Measurement:
        """Measures until the interquartile range is below a share of the median.

        Args:
            threshold: the share.
            min_run_time, max_run_time: the least and the greatest total time in seconds.
            callback: called with the number of runs and the seconds of each measurement.
        """

        def enough(times: list[float]) -> bool:
            total = sum(times)
            if total < min_run_time or len(times) < 4:
                return total > max_run_time
            return total > max_run_time or self._measurement(1, times).meets_confidence(threshold)

        return self._measure_until(enough, callback, min_run_time)

    def _measure_until(
        self, enough: Callable[[list[float]], bool], callback: Any, min_run_time: float
    ) -> common.Measurement:
        with common.set_torch_threads(self._task_spec.num_threads):
            number = self._block(min_run_time)
            times: list[float] = []
            while not times or not enough(times):
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
        return self._measurement(number, times)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Would count instructions.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("collect_callgrind: pygrad's instructions are not counted")

"""Tables of measurements."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable
from typing import Any

from .common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

_BOLD, _END = "\033[1m", "\033[0m"
_SHADES: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("\033[92m" + _BOLD, _END * 2, lambda v, best: v <= best * 1.01 or v <= best + 100e-9),
    ("\033[34m" + _BOLD, _END * 2, lambda v, best: v <= best * 1.1),
    ("\033[31m" + _BOLD, _END * 2, lambda v, best: v >= best * 5),
    ("\033[2m\033[91m", _END * 2, lambda v, best: v >= best * 2),
)


class Colorize(enum.Enum):
    """Whether to color numbers by comparison with the best of their column or row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Measurements as tables: one table per label, a row per sub-label, a column per description.

    Args:
        results: the measurements.

    Raises:
        ValueError: an element is no measurement.

    Example:
        >>> from pygrad.utils.benchmark import Compare, Measurement, TaskSpec
        >>> spec = TaskSpec("f()", "pass", label="calls", sub_label="f", description="seconds")
        >>> str(Compare([Measurement(1, [1.5], spec)])).splitlines()[3]
        '      f      |    1.5  '
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False
        self._warn = False
        self._colors = Colorize.NONE

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements."""
        for each in results:
            if not isinstance(each, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(each)} instead."
                )
            self._results.append(each)

    def trim_significant_figures(self) -> None:
        """Rounds numbers to their significant figures."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colors numbers by comparison with the best of their column or row."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks measurements with a large spread."""
        self._warn = True

    def print(self) -> None:
        """Prints the tables."""
        print(self)

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(each.label for each in merged)
        return "\n".join(
            self._table([each for each in merged if each.label == label]) for label in labels
        )

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(each.median for each in results))
        keys = ordered_unique((m.num_threads, m.env, m.as_row_name) for m in results)
        keys.sort(key=lambda key: (key[0], key[1] or ""))
        names = ordered_unique(m.description for m in results)
        cells = {((m.num_threads, m.env, m.as_row_name), m.description): m for m in results}
        columns = [self._column([cells.get((key, name)) for key in keys], scale) for name in names]
        envs = {m.env for m in results}
        width = max(len(str(env)) for env in envs) if len(envs) > 1 else 0
        rows = [["", *(str(name) for name in names)]]
        shown: Any = object()
        for place, (threads, env, name) in enumerate(keys):
            told = f"({env})" if len(envs) > 1 and (threads, env) != shown else ""
            shown = threads, env
            rows.append(
                ["  " + told.ljust(width + 4) + name, *(column[place] for column in columns)]
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        head = "  |  ".join(text.center(w) for text, w in zip(rows[0], widths, strict=True))
        lines = [head]
        last = None
        for key, row in zip(keys, rows[1:], strict=True):
            if key[0] != last:
                lines.append(f"{key[0]} threads: ".ljust(len(head), "-"))
                last = key[0]
            texts = [row[0].ljust(widths[0])]
            for name, text, w in zip(names, row[1:], widths[1:], strict=True):
                texts.append(self._shade(text.center(w), key, name, cells))
            lines.append("  |  ".join(texts))
        title = f"[{(' ' + (results[0].label or '') + ' ').center(len(head) - 2, '-')}]"
        note = ""
        if self._warn and any(each.has_warnings for each in results):
            note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        times = f"Times are in {unit_to_english(unit)}s ({unit})."
        return "\n".join([title, *lines, "", times, note])

    def _column(self, results: list[Measurement | None], scale: float) -> list[str]:
        """Formats the cells of a column to equal width."""
        there = [each for each in results if each is not None]
        digits = [math.ceil(math.log10(each.median / scale)) for each in there]
        decimals = 1
        if self._trim:
            decimals = min(
                max(m.significant_figures - d, 0) for m, d in zip(there, digits, strict=True)
            )
        length = max(digits) + decimals + (1 if decimals else 0)
        spread = 7 if self._warn and any(each.has_warnings for each in there) else 0
        texts = []
        for each in results:
            if each is None:
                texts.append(" " * (max(length, 1 + decimals + bool(decimals)) + spread))
                continue
            value = each.median / scale
            value = trim_sigfig(value, each.significant_figures) if self._trim else value
            share = f" (! {each.iqr / each.median * 100:.0f}%)"
            note = share if spread and each.has_warnings else ""
            texts.append(f"{value:>{length}.{decimals}f}{note:>{spread}}")
        return texts

    def _shade(self, text: str, key: Any, name: Any, cells: dict[Any, Measurement]) -> str:
        own = cells.get((key, name))
        if self._colors is Colorize.NONE or own is None:
            return text
        if self._colors is Colorize.ROWWISE:
            best = min(m.median for (k, _), m in cells.items() if k == key)
        else:
            near = [m.median for (k, n), m in cells.items() if n == name and k[0] == key[0]]
            best = min(near)
        for before, behind, holds in _SHADES:
            if holds(own.median, best):
                return before + text + behind
        return text

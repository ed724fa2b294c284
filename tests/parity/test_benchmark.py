"""Measurements and their tables, told as PyTorch tells them."""

from __future__ import annotations

import importlib
from typing import Any

from oracle import both, result_or_error


def benchmark(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.utils.benchmark")


ROWS: list[tuple[str, str, int, list[float]]] = [
    ("x*y", "old", 1, [1e-5, 1.1e-5, 1.2e-5, 1.3e-5]),
    ("x*y", "new", 1, [2e-5, 2.1e-5, 2.2e-5, 2.25e-5]),
    ("a long name", "old", 1, [3.33e-4] * 5),
    ("x*y", "old", 4, [1e-5, 1.1e-5]),
    ("zz", "new", 1, [1e-5, 1.6e-5, 1.9e-5, 2.5e-5]),
]


def measurements(b: Any) -> list[Any]:
    return [
        b.Measurement(
            number_per_run=1,
            raw_times=times,
            task_spec=b.TaskSpec(
                stmt="x*y",
                setup="pass",
                label=label,
                sub_label=sub_label,
                description=description,
                num_threads=threads,
            ),
        )
        for label in ("mul", None)
        for sub_label, description, threads, times in ROWS
    ]


def test_tables() -> None:
    def script(t: Any) -> Any:
        b = benchmark(t)
        found = [str(b.Compare(measurements(b)))]
        for ways in (
            ["trim_significant_figures"],
            ["colorize"],
            ["highlight_warnings"],
            ["trim_significant_figures", "colorize", "highlight_warnings"],
        ):
            table = b.Compare(measurements(b)[:5])
            for way in ways:
                getattr(table, way)()
            found.append(str(table))
        table = b.Compare(measurements(b)[:5])
        table.colorize(rowwise=True)
        return [*found, str(table), result_or_error(lambda: b.Compare([3]))]

    both(script)


def test_measurements() -> None:
    def script(t: Any) -> Any:
        b = benchmark(t)
        specs = [
            b.TaskSpec(stmt="x*y\nz", setup="import a\nb", num_threads=2),
            b.TaskSpec(stmt="x", setup="y", label="L", sub_label="S", description="D"),
            b.TaskSpec(stmt="x\ny", setup="pass", sub_label="S"),
        ]
        times = [[1e-5, 1.5e-5, 2e-5, 2.5e-5, 9e-5], [1e-5], [1e-5, 1.15e-5, 1.05e-5, 1.2e-5]]
        found = []
        for spec, each in zip(specs, times, strict=True):
            m = b.Measurement(number_per_run=10, raw_times=each, task_spec=spec)
            numbers = m.median, m.mean, m.iqr, m.times, m.significant_figures
            found.append((repr(m).split("\n", 1)[1], m.title, m.as_row_name, m.stmt, numbers))
            found.append((m.has_warnings, m.meets_confidence(0.5)))
        return (
            found,
            [b.select_unit(s) for s in (3.0, 2e-3, 5e-7, 2e-9)],
            [b.unit_to_english(u) for u in ("ns", "us", "ms", "s")],
            [b.trim_sigfig(3.14159, n) for n in (1, 3)],
            b.ordered_unique("abca"),
        )

    both(script)


def test_timer() -> None:
    def script(t: Any) -> Any:
        b = benchmark(t)
        ran: list[int] = []
        names = {"ran": ran}
        timer = b.Timer("ran.append(1)", "ran.clear()", globals=names, label="L", description="D")
        once = timer.timeit(100)
        blocks = timer.blocked_autorange(min_run_time=0.005)
        adaptive = timer.adaptive_autorange(min_run_time=0.001, max_run_time=0.01)
        tensors = b.Timer("torch.ones(2)").timeit(2)
        return (
            [once.number_per_run, len(once.raw_times), once.median > 0, once.title],
            [len(blocks.raw_times) > 0, sum(blocks.raw_times) >= 0.005, blocks.mean > 0],
            adaptive.median > 0,
            tensors.number_per_run,
            result_or_error(lambda: b.Timer(3)),
            result_or_error(timer.repeat),
        )

    both(script)

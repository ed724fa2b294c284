"""`make bench`: pygrad's speed, beside PyTorch's on one thread where it is installed.

The rounds of the contenders alternate, so that a busy machine slows them alike, and the fastest
round of each counts. Nothing here fails for being slow: it prints what it measured.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kernels  # noqa: F401  each of these three puts its workloads on the list
import roofline
import small  # noqa: F401
import training  # noqa: F401
from roofline import Point
from table import Row, format_seconds, line, markdown, write_into
from work import GROUPS, Work, disagreement

import pygrad
from pygrad import _boundary
from pygrad._boundary import calls, host
from pygrad._table import functions

now = time.perf_counter
PAGE = resource.getpagesize()


def time_step(step: Callable[[], Any], budget: float) -> float:
    """The mean time of a step over about `budget` seconds."""
    start, n = now(), 0
    while True:
        step()
        n += 1
        elapsed = now() - start
        if elapsed >= budget:
            return elapsed / n


def race(works: list[Work], rounds: int, budget: float) -> list[float]:
    """The fastest round of each, a unit."""
    best = [float("inf")] * len(works)
    for work in works:
        work.step()
    gc.disable()
    for _ in range(rounds):
        for k, work in enumerate(works):
            best[k] = min(best[k], time_step(work.step, budget) / work.per)
        gc.collect()
    gc.enable()
    return best


def start_up(module: str, rounds: int) -> tuple[float, float]:
    """Importing a module in a fresh process: the seconds, the interpreter's own start not counted,
    and the bytes that the process then holds.
    """
    program = (
        f"import time; t = time.perf_counter(); import {module}; "
        "print(time.perf_counter() - t, open('/proc/self/statm').read().split()[1])"
    )
    command = [sys.executable, "-c", program]
    found = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(rounds)
    ]
    return min(float(f[0]) for f in found), PAGE * min(int(f[1]) for f in found)


def side_by_side(torch: Any, args: argparse.Namespace) -> tuple[list[Row], list[Point]]:
    """Prints a line for each workload, with the ratio if torch is here."""
    contenders = [pygrad] if torch is None else [pygrad, torch]
    rows: list[Row] = []
    points: list[Point] = []

    def add(row: Row) -> None:
        rows.append(row)
        print(line(row), flush=True)

    for group, members in GROUPS.items():
        chosen = {name: found for name, found in members.items() if re.search(args.only, name)}
        if chosen:
            print(f"\n{group}")
        for name, (make, wanted) in chosen.items():
            works = [make(module) for module in contenders]
            checks = [work.check() for work in works]
            error = max(disagreement(checks[0], check) for check in checks)
            assert error < 5e-3, f"{name}: the results differ by {error:.2g}"
            times = race(works, args.rounds, args.budget)
            add(Row(group, name, wanted, *times))
            if works[0].n_bytes and works[0].flops and "f64" not in name:
                points.append(Point(name, works[0].flops, works[0].n_bytes, times[0]))
    if re.search(args.only, "import"):
        print("\nstart")
        found = [start_up(module.__name__, min(args.rounds, 5)) for module in contenders]
        add(Row("start", "import", 8, *(seconds for seconds, _ in found)))
        add(Row("start", "resident memory", 3, *(n_bytes for _, n_bytes in found)))
    return rows, points


HOOKS = 10
"""On one tensor, so that what one costs stands out of what the backward does."""


def crossings(rounds: int, budget: float) -> None:
    """What a call costs, layer by layer."""
    x = pygrad.ones(4, 4)
    w = pygrad.ones(4, 4, requires_grad=True)
    hooked = w * 2
    for _ in range(HOOKS):
        hooked.register_hook(lambda gradient: None)
    plain = w * 2
    gradient = pygrad.ones(4, 4)
    host.slots[:] = bytes(len(host.slots))
    recording = calls._head(calls.ROWS["is_grad_enabled"], 0)

    def raw() -> None:
        _boundary.result_slot[0] = recording
        _boundary.call2(*_boundary.call2_places)

    def make_backward(tensor: Any) -> Callable[[], Any]:
        return lambda: tensor.backward(gradient, retain_graph=True)

    steps: dict[str, Callable[[], Any]] = {
        "raw call": raw,
        "add, not recorded": lambda: x + x,
        "add, recorded": lambda: w + x,
        "function by name": lambda: pygrad.add(x, x),
        "backward": make_backward(plain),
        "backward, bare hooks": make_backward(hooked),
        "backward, hooks": make_backward(hooked),
        "backward, one function": make_backward(Same.apply(w)),
        "calling a function": lambda: Same.apply(w),
    }
    took, run_hook = dict.fromkeys(steps, float("inf")), _boundary.hosting.on_hook

    def bare(ident: int, handle: int) -> int:
        _boundary.released.append(handle)
        return 0

    # Short turns, so that a busy machine disturbs as few as possible.
    end = now() + rounds * len(steps) * budget
    while now() < end:
        for name, step in steps.items():
            _boundary.hosting.on_hook = bare if name == "backward, bare hooks" else run_hook
            took[name] = min(took[name], time_step(step, 2e-4))
    _boundary.hosting.on_hook = run_hook
    print("\none call")
    for name, seconds in took.items():
        print(f"{name:24}{format_seconds(seconds):>10}")
    extras = {
        "bare host callback": ("bare hooks", HOOKS),
        "hook with its tensor": ("hooks", HOOKS),
        "custom backward": ("one function", 1),
    }
    for name, (what, number) in extras.items():
        extra = (took[f"backward, {what}"] - took["backward"]) / number
        print(f"{name:24}{format_seconds(extra):>10}  {extra / took['raw call']:.1f} raw calls")


class Same(pygrad.autograd.Function):
    """The least custom function."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """A view of the input."""
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """The gradient itself."""
        return grad


def live_bytes() -> int:
    """What the engine's allocator has given out."""
    _boundary.drain()
    return int(functions.C["_memory"]()[0])


def chain(n_nodes: int) -> None:
    """Builds, walks and frees a chain of nodes, which needs no deep stack anywhere."""
    x = pygrad.ones(1, requires_grad=True)
    one = pygrad.ones(1)
    before = live_bytes()
    start = now()
    y = x
    for _ in range(n_nodes):
        y = y + one
    built = now()
    n_bytes = live_bytes() - before
    walk = now()
    y.backward(retain_graph=True)
    walked = now()
    del y
    _boundary.drain()
    freed = now()
    assert x.grad.item() == 1.0
    parts = [
        f"{name} {format_seconds(seconds / n_nodes)}"
        for name, seconds in (
            ("built", built - start),
            ("walked", walked - walk),
            ("freed", freed - walked),
        )
    ]
    print(
        f"\na chain of {n_nodes:,} nodes: {n_bytes / n_nodes:.0f} bytes a node, "
        f"{', '.join(parts)} a node"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument(
        "--budget", type=float, default=0.03, help="seconds a round of a workload takes"
    )
    parser.add_argument("--only", default="", help="workloads whose name matches this expression")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--roofline", type=Path, help="where to draw the kernels under the bounds")
    parser.add_argument("--table", type=Path, help="the file whose table is to be written")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    torch = None
    versions = f"pygrad {pygrad.__version__}"
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        versions += f" beside torch {torch.__version__} on one thread, Python "
        versions += platform.python_version()
        print(f"{versions}; ratio: torch's time over pygrad's")
    else:
        print(f"{versions}; no ratios: torch is not installed here (make parity installs it)")
    rows, points = side_by_side(torch, args)
    if args.table and torch:
        write_into(args.table, markdown(rows, versions))
    if points:
        bounds = roofline.measure()
        print(
            "\nof the bounds of one core in WebAssembly "
            f"({bounds.flops / 1e9:.0f} GFLOP/s float32, {bounds.bandwidth / 1e9:.0f} GB/s)"
        )
        for point in points:
            print(f"{point.name:24}{100 * point.share(bounds):8.0f} %")
        if args.roofline:
            roofline.draw(points, bounds, args.roofline)
    if not args.only:
        crossings(args.rounds, args.budget)
        chain(args.nodes)


if __name__ == "__main__":
    main()

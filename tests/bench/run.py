"""`make bench`: pygrad's speed, beside PyTorch's on one thread where it is installed.

The rounds of the contenders alternate, so that a busy machine slows them alike, and the fastest
round of each counts. Nothing here fails for being slow: it prints what it measured.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import workloads

import pygrad
from pygrad import _call, _engine, _ops

now = time.perf_counter


def shown(seconds: float) -> str:
    """With the unit that fits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def timed(step: Callable[[], Any], budget: float) -> float:
    """The mean time of a step over about `budget` seconds."""
    start, n = now(), 0
    while True:
        step()
        n += 1
        elapsed = now() - start
        if elapsed >= budget:
            return elapsed / n


def race(works: list[workloads.Work], rounds: int, budget: float) -> list[float]:
    """The fastest round of each, a unit."""
    best = [float("inf")] * len(works)
    for work in works:
        work.step()
    gc.disable()
    for _ in range(rounds):
        for k, work in enumerate(works):
            best[k] = min(best[k], timed(work.step, budget) / work.per)
        gc.collect()
    gc.enable()
    return best


def import_time(module: str, rounds: int) -> float:
    """Importing a module in a fresh process, the interpreter's own start not counted."""
    program = (
        f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    )
    command = [sys.executable, "-c", program]
    return min(
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(rounds)
    )


def side_by_side(torch: Any, rounds: int, budget: float) -> None:
    """A line for each workload, with the ratio if torch is here."""
    contenders = [pygrad] if torch is None else [pygrad, torch]
    head = f"{'':20}{'pygrad':>10}"
    print(head if torch is None else f"{head}{'torch':>10}{'ratio':>8}{'wanted':>8}")
    rows: list[tuple[str, float, list[float]]] = []
    for make, wanted in workloads.WANTED.items():
        works = [make(module) for module in contenders]
        checks = [work.check() for work in works]
        error = max(workloads.disagreement(checks[0], check) for check in checks)
        assert error < 5e-3, f"{make.__name__}: the results differ by {error:.2g}"
        rows.append((make.__name__, wanted, race(works, rounds, budget)))
    names = [module.__name__ for module in contenders]
    rows.append(("import", 4.0, [import_time(name, min(rounds, 5)) for name in names]))
    for name, wanted, times in rows:
        line = f"{name:20}" + "".join(f"{shown(t):>10}" for t in times)
        if torch is not None:
            ratio = times[1] / times[0]
            line += f"{ratio:8.2f}{wanted:8.2g}{'' if ratio >= wanted else '  below'}"
        print(line)


def crossings(rounds: int, budget: float) -> None:
    """What a call costs, layer by layer."""
    x = pygrad.ones(4, 4)
    w = pygrad.ones(4, 4, requires_grad=True)
    hooked = w * 2
    hooked.register_hook(lambda gradient: None)
    plain = w * 2
    gradient = pygrad.ones(4, 4)
    recording = _call._head(_call.ROWS["is_grad_enabled"], 0)

    def raw() -> None:
        _call._pack_ints(_engine.slots, 0, recording, 0, 0, 0)
        _engine.call2()

    def back(tensor: Any) -> Callable[[], Any]:
        return lambda: tensor.backward(gradient, retain_graph=True)

    steps: dict[str, Callable[[], Any]] = {
        "raw call": raw,
        "add, not recorded": lambda: x + x,
        "add, recorded": lambda: w + x,
        "function by name": lambda: pygrad.add(x, x),
        "backward": back(plain),
        "backward, one hook": back(hooked),
        "backward, one function": back(Same.apply(w)),
        "calling a function": lambda: Same.apply(w),
    }
    best = race([workloads.Work(step, list) for step in steps.values()], rounds, budget)
    print("\none call")
    for name, seconds in zip(steps, best, strict=True):
        print(f"{name:24}{shown(seconds):>10}")
    took = dict(zip(steps, best, strict=True))
    for name, what in (("host callback", "one hook"), ("custom backward", "one function")):
        extra = took[f"backward, {what}"] - took["backward"]
        print(
            f"{name:24}{shown(extra):>10}  more than backward: {extra / took['raw call']:.1f} "
            "raw calls"
        )


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
    _engine.drain()
    return int(_ops.C["_memory"]()[0])


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
    _engine.drain()
    freed = now()
    assert x.grad.item() == 1.0
    parts = [
        f"{name} {shown(seconds / n_nodes)}"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument(
        "--budget", type=float, default=0.05, help="seconds a round of a workload takes"
    )
    parser.add_argument("--nodes", type=int, default=1_000_000)
    args = parser.parse_args()
    torch = None
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        print(
            f"pygrad {pygrad.__version__}, torch {torch.__version__} on one thread; ratio: "
            "torch's time over pygrad's"
        )
    else:
        print(
            f"pygrad {pygrad.__version__}; torch is not installed here, so there are no ratios "
            "(make parity installs it)"
        )
    side_by_side(torch, args.rounds, args.budget)
    crossings(args.rounds, args.budget)
    chain(args.nodes)


if __name__ == "__main__":
    main()

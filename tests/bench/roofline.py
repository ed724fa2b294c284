"""The bounds of one core under wasmtime, and a picture of kernels beneath them.

A kernel that does I operations a byte can do no more than min(peak, I * bandwidth) of them a second
(S. Williams, A. Waterman, D. Patterson, "Roofline", Communications of the ACM 52(4), 2009).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import wasmtime

CHAINS = 12
"""Independent multiply-adds in flight: the latency of one times the number begun in a cycle."""
TURNS = 200_000
FLOATS = 1_000_000


@dataclass
class Bounds:
    """Operations a second of 128-bit multiply and add of float32, bytes a second of c = a + b over
    a million floats, which lie in the last level of the cache.
    """

    flops: float
    bandwidth: float


@dataclass
class Point:
    """A kernel as measured."""

    name: str
    flops: int
    n_bytes: int
    seconds: float

    def share(self, bounds: Bounds) -> float:
        """Of what the bounds allow."""
        allowed = max(self.flops / bounds.flops, self.n_bytes / bounds.bandwidth)
        return allowed / self.seconds


def peak_text() -> str:
    """A loop of multiply-adds that depend only on themselves."""
    names = [f"$v{k}" for k in range(CHAINS)]
    body = "\n".join(
        f"(local.set {v} (f32x4.add (f32x4.mul (local.get {v}) (local.get $m)) (local.get $a)))"
        for v in names
    )
    total = "(f32.const 0)"
    for v in names:
        total = f"(f32.add {total} (f32x4.extract_lane 0 (local.get {v})))"
    return f"""(func (export "peak") (param $n i32) (result f32)
      {" ".join(f"(local {v} v128)" for v in names)} (local $m v128) (local $a v128)
      (local.set $m (f32x4.splat (f32.const 0.999999)))
      (local.set $a (f32x4.splat (f32.const 1e-6)))
      (loop $turn {body}
        (br_if $turn (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      {total})"""


def stream_text() -> str:
    """c = a + b, sixteen floats a turn."""

    def load(base: str, offset: int) -> str:
        return f"(v128.load offset={offset} (i32.add (local.get {base}) (local.get $i)))"

    body = "\n".join(
        f"(v128.store offset={k} (i32.add (local.get $c) (local.get $i)) "
        f"(f32x4.add {load('$a', k)} {load('$b', k)}))"
        for k in range(0, 64, 16)
    )
    return f"""(func (export "stream") (param $c i32) (param $a i32) (param $b i32) (param $n i32)
      (local $i i32)
      (loop $turn {body}
        (br_if $turn (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 64)))
                               (local.get $n)))))"""


def fastest(call: Callable[[], Any], seconds: float) -> float:
    """The shortest time of a call, over about `seconds`."""
    best, end = float("inf"), time.perf_counter() + seconds
    call()
    while (start := time.perf_counter()) < end:
        call()
        best = min(best, time.perf_counter() - start)
    return best


def measure(seconds: float = 0.5) -> Bounds:
    """Both bounds, on the machine as it is now."""
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    text = f'(module (memory (export "memory") 256) {peak_text()} {stream_text()})'
    exports = wasmtime.Instance(store, wasmtime.Module(engine, text), []).exports(store)
    peak, stream = exports["peak"], exports["stream"]
    assert isinstance(peak, wasmtime.Func)
    assert isinstance(stream, wasmtime.Func)
    n_bytes = 4 * FLOATS
    return Bounds(
        2 * 4 * CHAINS * TURNS / fastest(lambda: peak(store, TURNS), seconds),
        3 * n_bytes / fastest(lambda: stream(store, 0, n_bytes, 2 * n_bytes, n_bytes), seconds),
    )


def draw(points: list[Point], bounds: Bounds, path: Path) -> None:
    """The picture, as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5), dpi=110)
    ridge = bounds.flops / bounds.bandwidth
    span = [0.05, ridge, 1500.0]
    axes.plot(span, [min(bounds.flops, i * bounds.bandwidth) / 1e9 for i in span], color="black")
    shapes = cycle("os^vDP*X")
    for point in sorted(points, key=lambda p: p.seconds * bounds.flops / p.flops):
        place = (point.flops / point.n_bytes, point.flops / point.seconds / 1e9)
        label = f"{100 * point.share(bounds):3.0f} %  {point.name}"
        axes.plot(*place, next(shapes), markersize=6, label=label)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, title="of the bound")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="operations a byte, each operand counted once",
        ylabel="10⁹ operations a second",
        title=f"float32, one core: {bounds.flops / 1e9:.0f} GFLOP/s of 128-bit multiply and add, "
        f"{bounds.bandwidth / 1e9:.0f} GB/s",
    )
    axes.grid(visible=True, which="major", alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, bbox_inches="tight", metadata={"Software": None})
    pyplot.close(figure)

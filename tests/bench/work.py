"""What a workload is, the list of all of them, and the data that they share.

A workload is a function of the module that plays torch. It uses only common calls of torch's API,
the same lines for every module. The numbers that go in come from one formula, and `check` gives
floats that must agree, so that all contenders do the same work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

REPEATS = 100


@dataclass
class Work:
    """One workload made ready: `step` is timed and holds `per` units, `check` gives numbers to
    compare. `flops` and `n_bytes` (each operand once) of a step place it under the roofline.
    """

    step: Callable[[], Any]
    check: Callable[[], list[float]]
    per: int = 1
    flops: int = 0
    n_bytes: int = 0


Make = Callable[[Any], Work]
GROUPS: dict[str, dict[str, tuple[Make, float]]] = {}
"""Group -> workload -> (what makes it ready, the least that torch's time over pygrad's should be
on one thread)."""


def workload(group: str, wanted: float, name: str | None = None) -> Callable[[Make], Make]:
    """Puts a function on the list, under its own name unless told."""

    def enlist(make: Make) -> Make:
        GROUPS.setdefault(group, {})[name or make.__name__] = (make, wanted)
        return make

    return enlist


def wave(torch: Any, *shape: int, phase: float = 0.0, scale: float = 1.0) -> Any:
    """A float32 tensor of numbers in [-scale, scale] that look like noise."""
    n = math.prod(shape)
    ramp = torch.arange(n, dtype=torch.float64)
    return (torch.sin(ramp * 12.9898 + phase) * scale).to(torch.float32).reshape(shape)


def classes(torch: Any, *shape: int, n: int, phase: float = 0.0) -> Any:
    """An int64 tensor of numbers below n, spread as `wave` is."""
    return ((wave(torch, *shape, phase=phase) + 1) * (n / 2)).to(torch.int64).clamp(0, n - 1)


def floats(*tensors: Any) -> list[float]:
    """The root of the mean square of each, and eight elements in units of it."""
    found = []
    for tensor in tensors:
        flat = tensor.detach().reshape(-1).to("cpu")
        n = flat.numel()
        size = math.sqrt(flat.square().mean().item())
        found.append(size)
        found += [flat[(2 * k + 1) * n // 16].item() / (size or 1.0) for k in range(8)]
    return found


def disagreement(mine: Iterable[float], others: Iterable[float]) -> float:
    """The largest difference between two checks, relative to the size of the numbers."""
    return max(abs(a - b) / (1e-3 + abs(b)) for a, b in zip(mine, others, strict=True))


def linear(torch: Any, n_in: int, n_out: int, phase: float) -> Any:
    """A layer with weights from the formula, in the range that torch would draw them from."""
    layer = torch.nn.Linear(n_in, n_out)
    with torch.no_grad():
        layer.weight.copy_(wave(torch, n_out, n_in, phase=phase, scale=n_in**-0.5))
        layer.bias.copy_(wave(torch, n_out, phase=phase + 0.5, scale=n_in**-0.5))
    return layer


def tiny_net(torch: Any) -> Any:
    """2 -> 32 -> 32 -> 1 with tanh."""
    nn = torch.nn
    return nn.Sequential(
        linear(torch, 2, 32, 2),
        nn.Tanh(),
        linear(torch, 32, 32, 3),
        nn.Tanh(),
        linear(torch, 32, 1, 4),
    )

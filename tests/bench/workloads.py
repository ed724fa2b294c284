"""What `make bench` times: each function takes the module that plays torch and returns the step to
time.

Only common calls of torch's API, the same lines for every module. The numbers that go in come from
one formula, and `check` gives floats that must agree, so that both do the same work.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

REPEATS = 100


@dataclass
class Work:
    """One workload made ready: `step` is timed and holds `per` units, `check` gives numbers to
    compare.
    """

    step: Callable[[], Any]
    check: Callable[[], list[float]]
    per: int = 1


def wave(torch: Any, *shape: int, phase: float = 0.0, scale: float = 1.0) -> Any:
    """A float32 tensor of numbers in [-scale, scale] that look like noise."""
    n = math.prod(shape)
    ramp = torch.arange(n, dtype=torch.float64)
    return (torch.sin(ramp * 12.9898 + phase) * scale).to(torch.float32).reshape(shape)


def floats(*tensors: Any) -> list[float]:
    """A mean square and eight elements of each."""
    found = []
    for tensor in tensors:
        flat = tensor.detach().reshape(-1)
        n = flat.numel()
        found.append(flat.square().mean().item())
        found += [flat[(2 * k + 1) * n // 16].item() for k in range(8)]
    return found


def add_4x4_nograd(torch: Any) -> Work:
    a, b = wave(torch, 4, 4), wave(torch, 4, 4, phase=1)

    def step() -> Any:
        for _ in range(REPEATS):
            c = a + b
        return c

    return Work(step, lambda: floats(a + b), REPEATS)


def add_4x4_grad(torch: Any) -> Work:
    a, b = wave(torch, 4, 4).requires_grad_(), wave(torch, 4, 4, phase=1)

    def step() -> Any:
        for _ in range(REPEATS):
            c = a + b
        return c

    return Work(step, lambda: floats(a + b), REPEATS)


def bwd_startup(torch: Any) -> Work:
    w = wave(torch, 1, phase=1).requires_grad_()

    def step() -> Any:
        w.grad = None
        y = w * w
        y.backward()
        return w.grad

    return Work(step, lambda: floats(step()))


def fwdbwd_3op_4x4(torch: Any) -> Work:
    x = wave(torch, 4, 4)
    w, b = (wave(torch, 4, 4, phase=p).requires_grad_() for p in (1, 2))

    def step() -> Any:
        w.grad = None
        b.grad = None
        (x * w + b).sum().backward()
        return w.grad

    return Work(step, lambda: floats(step(), b.grad))


def _linear(torch: Any, n_in: int, n_out: int, phase: float) -> Any:
    layer = torch.nn.Linear(n_in, n_out)
    with torch.no_grad():
        layer.weight.copy_(wave(torch, n_out, n_in, phase=phase, scale=n_in**-0.5))
        layer.bias.copy_(wave(torch, n_out, phase=phase + 0.5, scale=n_in**-0.5))
    return layer


def mlp_tiny(torch: Any) -> Work:
    nn = torch.nn
    x, y = wave(torch, 64, 2), wave(torch, 64, 1, phase=1)

    def build(lr: float) -> Callable[[], Any]:
        net = nn.Sequential(
            _linear(torch, 2, 32, 2),
            nn.Tanh(),
            _linear(torch, 32, 32, 3),
            nn.Tanh(),
            _linear(torch, 32, 1, 4),
        )
        optimizer = torch.optim.SGD(net.parameters(), lr=lr)

        def step() -> Any:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    def check() -> list[float]:
        step = build(0.1)
        return [step().item() for _ in range(5)]

    return Work(build(1e-5), check)


def adam_step_6params(torch: Any) -> Work:
    shapes = [(2, 32), (32,), (32, 32), (32,), (32, 1), (1,)]
    parameters = [wave(torch, *s, phase=i).requires_grad_() for i, s in enumerate(shapes)]
    for i, parameter in enumerate(parameters):
        parameter.grad = wave(torch, *shapes[i], phase=9 + i)
    optimizer = torch.optim.Adam(parameters, lr=1e-5)

    def check() -> list[float]:
        for _ in range(3):
            optimizer.step()
        return floats(*parameters)

    return Work(optimizer.step, check)


def inplace_saved_4x4(torch: Any) -> Work:
    w, start = wave(torch, 4, 4).requires_grad_(), wave(torch, 4, 4, phase=1)

    def step() -> Any:
        w.grad = None
        allowed = torch.autograd.graph.allow_mutation_on_saved_tensors()
        with contextlib.nullcontext() if allowed is True else allowed:
            s = start.clone()
            out = 0.0
            for _ in range(10):
                out = out + (w * s).sum()
                s.mul_(0.9)
                s.add_(0.1)
            out.backward()  # type: ignore[attr-defined]
        return w.grad

    return Work(step, lambda: floats(step()), 10)


def matmul_f32_512(torch: Any) -> Work:
    a, b = wave(torch, 512, 512), wave(torch, 512, 512, phase=1)
    return Work(lambda: a @ b, lambda: floats(a @ b))


def add_1e6(torch: Any) -> Work:
    a, b = wave(torch, 1000, 1000), wave(torch, 1000, 1000, phase=1)
    return Work(lambda: a + b, lambda: floats(a + b))


WANTED: dict[Callable[[Any], Work], float] = {
    add_4x4_nograd: 0.8,
    add_4x4_grad: 1.0,
    bwd_startup: 6,
    fwdbwd_3op_4x4: 4,
    mlp_tiny: 2.5,
    adam_step_6params: 10,
    inplace_saved_4x4: 15,
    matmul_f32_512: 0.3,
    add_1e6: 0.5,
}
"""Workload -> the least that torch's time over pygrad's should be, on one thread."""


def disagreement(mine: Iterable[float], others: Iterable[float]) -> float:
    """The largest difference between two checks, relative to the size of the numbers."""
    return max(abs(a - b) / (1e-3 + abs(b)) for a, b in zip(mine, others, strict=True))

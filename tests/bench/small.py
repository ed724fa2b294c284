"""Workloads that are all overhead: single calls, small graphs, optimizer steps, higher order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from work import REPEATS, Make, Work, floats, tiny_net, wave, workload


def repeat_on_matrices(call: Callable[[Any, Any], Any], grad: bool = False) -> Make:
    """A hundred calls on two 4x4 matrices."""

    def make(torch: Any) -> Work:
        a, b = wave(torch, 4, 4).requires_grad_(grad), wave(torch, 4, 4, phase=1)

        def step() -> Any:
            for _ in range(REPEATS):
                c = call(a, b)
            return c

        return Work(step, lambda: floats(call(a, b)), REPEATS)

    return make


workload("crossing", 1.2, "add_4x4_nograd")(repeat_on_matrices(lambda a, b: a + b))
workload("crossing", 1.6, "add_4x4_grad")(repeat_on_matrices(lambda a, b: a + b, grad=True))
workload("crossing", 1.1, "matmul_4x4_nograd")(repeat_on_matrices(lambda a, b: a @ b))
workload("crossing", 0.8, "index_row")(repeat_on_matrices(lambda a, b: a[1]))


@workload("small graphs", 10)
def bwd_startup(torch: Any) -> Work:
    """The least that a backward can cost."""
    w = wave(torch, 1, phase=1).requires_grad_()

    def step() -> Any:
        w.grad = None
        y = w * w
        y.backward()
        return w.grad

    return Work(step, lambda: floats(step()))


@workload("small graphs", 6)
def fwdbwd_3op_4x4(torch: Any) -> Work:
    x = wave(torch, 4, 4)
    w, b = (wave(torch, 4, 4, phase=p).requires_grad_() for p in (1, 2))

    def step() -> Any:
        w.grad = None
        b.grad = None
        (x * w + b).sum().backward()
        return w.grad

    return Work(step, lambda: floats(step(), b.grad))


@workload("small graphs", 2.5)
def chain_1000_fwdbwd(torch: Any) -> Work:
    x = wave(torch, 4, 4).requires_grad_()
    factor, term = 1.0 + wave(torch, 4, 4, phase=1, scale=1e-3), wave(torch, 4, 4, phase=2)

    def step() -> Any:
        x.grad = None
        y = x
        for _ in range(500):
            y = y * factor
            y = y + term
        y.sum().backward()
        return x.grad

    return Work(step, lambda: floats(step()), 1000)


@workload("small graphs", 4)
def scalar_graph(torch: Any) -> Work:
    """A formula of float64 scalars, as one writes it with an engine of single numbers."""

    def run() -> tuple[Any, Any, Any]:
        a = torch.tensor(-3.0, dtype=torch.float64, requires_grad=True)
        b = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
        p = a * b + b**3
        q = a + b
        for k in range(3):
            q = q + (k + q) * 0.5
            p = p + (q - p).relu() * 2 + (1 + p - a)
        r = (p - q) ** 2
        y = r / 2.0 + 10.0 / (r + 1)
        y.backward()
        return a, b, y

    def check() -> list[float]:
        a, b, y = run()
        return [y.item(), a.grad.item(), b.grad.item()]

    return Work(run, check)


def optimizer(kind: str) -> Make:
    """A step over the parameters of the tiny net."""

    def make(torch: Any) -> Work:
        shapes = [(2, 32), (32,), (32, 32), (32,), (32, 1), (1,)]
        parameters = [wave(torch, *s, phase=i).requires_grad_() for i, s in enumerate(shapes)]
        for i, parameter in enumerate(parameters):
            parameter.grad = wave(torch, *shapes[i], phase=9 + i)
        opt = getattr(torch.optim, kind)(parameters, lr=1e-5)

        def check() -> list[float]:
            for _ in range(3):
                opt.step()
            return floats(*parameters)

        return Work(opt.step, check)

    return make


workload("optimizer", 8, "sgd_step_6params")(optimizer("SGD"))
workload("optimizer", 30, "adam_step_6params")(optimizer("Adam"))


@workload("higher order", 5)
def hvp_tiny(torch: Any) -> Work:
    """The Hessian of the tiny net's loss times a vector."""
    x, y = wave(torch, 64, 2), wave(torch, 64, 1, phase=1)
    net = tiny_net(torch)
    parameters = list(net.parameters())
    vectors = [wave(torch, *p.shape, phase=i) for i, p in enumerate(parameters)]

    def step() -> Any:
        loss = torch.nn.functional.mse_loss(net(x), y)
        gradients = torch.autograd.grad(loss, parameters, create_graph=True)
        dot = sum((g * v).sum() for g, v in zip(gradients, vectors, strict=True))
        return torch.autograd.grad(dot, parameters)

    return Work(step, lambda: floats(*step()))


@workload("higher order", 5)
def jacobian_32(torch: Any) -> Work:
    first, second = (wave(torch, 32, 32, phase=p, scale=0.3) for p in (1, 2))
    x = wave(torch, 32, phase=3)

    def step() -> Any:
        return torch.autograd.functional.jacobian(
            lambda x: torch.tanh(second @ torch.tanh(first @ x)), x
        )

    return Work(step, lambda: floats(step()))


@workload("higher order", 5)
def hessian_16(torch: Any) -> Work:
    w, x = wave(torch, 16, 16, scale=0.3), wave(torch, 16, phase=3)

    def step() -> Any:
        return torch.autograd.functional.hessian(
            lambda x: (torch.tanh(w @ x) ** 2).sum() + (x**3).sum(), x
        )

    return Work(step, lambda: floats(step()))


@workload("higher order", 5)
def grad_penalty(torch: Any) -> Work:
    """A training step whose loss contains the norm of a gradient."""

    def build(lr: float) -> Callable[[], Any]:
        x = wave(torch, 64, 2).requires_grad_()
        net = tiny_net(torch)
        opt = torch.optim.SGD(net.parameters(), lr=lr)

        def step() -> Any:
            opt.zero_grad()
            out = net(x)
            (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
            norm = (gradient * gradient).sum(dim=1).sqrt()
            loss = out.mean() + 10.0 * ((norm - 1.0) ** 2).mean()
            loss.backward()
            opt.step()
            return loss

        return step

    def check() -> list[float]:
        step = build(0.01)
        return [step().item() for _ in range(5)]

    return Work(build(1e-5), check)


@workload("higher order", 5)
def third_derivative(torch: Any) -> Work:
    x = wave(torch, 1000).requires_grad_()

    def step() -> Any:
        y = torch.sin(x) * x**4
        for _ in range(3):
            (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y

    return Work(step, lambda: floats(step()))


def inplace_saved(n: int) -> Make:
    """Ten saved tensors of n x n, each written over before the backward."""

    def make(torch: Any) -> Work:
        w, start = wave(torch, n, n).requires_grad_(), wave(torch, n, n, phase=1)

        def step() -> Any:
            w.grad = None
            allowed = torch.autograd.graph.allow_mutation_on_saved_tensors()
            with contextlib.nullcontext() if allowed is True else allowed:
                s = start.clone()
                out: Any = 0.0
                for _ in range(10):
                    out = out + (w * s).sum()
                    s.mul_(0.9)
                    s.add_(0.1)
                out.backward()
            return w.grad

        return Work(step, lambda: floats(step()), 10)

    return make


workload("saved and mutated", 30, "inplace_saved_4x4")(inplace_saved(4))
workload("saved and mutated", 5, "inplace_saved_256")(inplace_saved(256))

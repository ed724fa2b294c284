"""Workloads that are all arithmetic and memory: one op over much data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from work import Make, Work, classes, floats, wave, workload

MILLION = 1_000_000
SIDE = 1024


def product(n: int, double: bool = False) -> Make:
    """Two square matrices."""

    def make(torch: Any) -> Work:
        a, b = wave(torch, n, n), wave(torch, n, n, phase=1)
        if double:
            a, b = a.double(), b.double()
        n_bytes = 3 * n * n * (8 if double else 4)
        return Work(lambda: a @ b, lambda: floats(a @ b), flops=2 * n**3, n_bytes=n_bytes)

    return make


for side in (256, 512, 1024):
    workload("matmul", 0.4, f"matmul_f32_{side}")(product(side))
workload("matmul", 0.4, "matmul_f64_256")(product(256, double=True))


def work_of(
    call: Callable[..., Any],
    shape: tuple[int, ...],
    inputs: int = 1,
    bytes_each: int = 8,
    per_element: int = 1,
) -> Make:
    """A call on `inputs` tensors of a shape, which moves `bytes_each` bytes an element; a function
    of an element counts as one operation.
    """

    def make(torch: Any) -> Work:
        tensors = [wave(torch, *shape, phase=i, scale=2) for i in range(inputs)]
        n = tensors[0].numel()

        def step() -> Any:
            return call(torch, *tensors)

        return Work(
            step, lambda: floats(step().double()), flops=n * per_element, n_bytes=n * bytes_each
        )

    return make


SQUARE = (1000, 1000)
workload("memory bound", 0.7, "add_1e6")(work_of(lambda torch, a, b: a + b, (MILLION,), 2, 12))
workload("memory bound", 0.7, "relu_1e6")(work_of(lambda torch, a: torch.relu(a), (MILLION,)))
workload("memory bound", 0.7, "sum_all_1e6")(work_of(lambda torch, a: a.sum(), SQUARE, 1, 4))
workload("memory bound", 0.7, "sum_dim0")(work_of(lambda torch, a: a.sum(dim=0), SQUARE, 1, 4))
workload("memory bound", 0.7, "sum_dim1")(work_of(lambda torch, a: a.sum(dim=1), SQUARE, 1, 4))
workload("memory bound", 0.7, "transpose_copy")(
    work_of(lambda torch, a: a.t().contiguous(), (SIDE, SIDE), per_element=0)
)


@workload("memory bound", 0.7)
def embedding_gather(torch: Any) -> Work:
    """4096 rows of 128 out of 10,000."""
    table, rows = wave(torch, 10_000, 128), classes(torch, 4096, n=10_000)

    def step() -> Any:
        return torch.nn.functional.embedding(rows, table)

    return Work(step, lambda: floats(step()), n_bytes=2 * 4 * 4096 * 128)


workload("transcendental", 0.5, "exp")(work_of(lambda torch, a: torch.exp(a), (MILLION,)))
workload("transcendental", 0.5, "sigmoid")(work_of(lambda torch, a: torch.sigmoid(a), (MILLION,)))
workload("transcendental", 0.5, "gelu")(
    work_of(lambda torch, a: torch.nn.functional.gelu(a), (MILLION,))
)
workload("transcendental", 1.5, "tanh")(work_of(lambda torch, a: torch.tanh(a), (MILLION,)))
workload("fused", 0.7, "softmax_1024")(
    work_of(lambda torch, a: torch.softmax(a, dim=-1), (SIDE, SIDE))
)


@workload("fused", 0.7)
def layer_norm_fwdbwd_1024(torch: Any) -> Work:
    x = wave(torch, SIDE, SIDE).requires_grad_()
    w, b = (wave(torch, SIDE, phase=p).requires_grad_() for p in (1, 2))
    gradient = wave(torch, SIDE, SIDE, phase=3)

    def step() -> Any:
        x.grad = w.grad = b.grad = None
        torch.nn.functional.layer_norm(x, (SIDE,), w, b).backward(gradient)
        return x.grad

    return Work(step, lambda: floats(step(), w.grad, b.grad), n_bytes=28 * SIDE**2)


@workload("fused", 0.7)
def cross_entropy_fwdbwd(torch: Any) -> Work:
    """512 rows of 1,000 classes."""
    x, y = wave(torch, 512, 1000, scale=4).requires_grad_(), classes(torch, 512, n=1000)

    def step() -> Any:
        x.grad = None
        torch.nn.functional.cross_entropy(x, y).backward()
        return x.grad

    return Work(step, lambda: floats(step()), n_bytes=4 * 4 * 512_000)


@workload("others", 0.35)
def conv2d_3x3_fwdbwd(torch: Any) -> Work:
    """16 images of 32 channels of 32x32 to 32 channels."""
    shape = (16, 32, 32, 32)
    x, gradient = wave(torch, *shape).requires_grad_(), wave(torch, *shape, phase=3)
    w = wave(torch, 32, 32, 3, 3, phase=1, scale=0.1).requires_grad_()
    b = wave(torch, 32, phase=2).requires_grad_()

    def step() -> Any:
        x.grad = w.grad = b.grad = None
        torch.nn.functional.conv2d(x, w, b, padding=1).backward(gradient)
        return x.grad

    flops = 3 * 2 * 16 * 32 * 32 * 32 * 32 * 9
    return Work(
        step, lambda: floats(step(), w.grad, b.grad), flops=flops, n_bytes=4 * 5 * 16 * 32**3
    )


@workload("others", 0.7)
def maxpool2_fwdbwd(torch: Any) -> Work:
    x = wave(torch, 16, 32, 32, 32).requires_grad_()
    gradient = wave(torch, 16, 32, 16, 16, phase=3)

    def step() -> Any:
        x.grad = None
        torch.nn.functional.max_pool2d(x, 2).backward(gradient)
        return x.grad

    return Work(step, lambda: floats(step()))


workload("others", 0.7, "cumsum_dim1")(work_of(lambda torch, a: a.cumsum(dim=1), (SIDE, SIDE)))


@workload("others", 0.7)
def sort_1e5(torch: Any) -> Work:
    a = wave(torch, 100_000)

    def check() -> list[float]:
        values, places = torch.sort(a)
        return floats(values, a[places])  # equal values may come in any order

    return Work(lambda: torch.sort(a), check)


workload("others", 1.0, "argmax_dim1")(work_of(lambda torch, a: a.argmax(dim=1), SQUARE, 1, 4))

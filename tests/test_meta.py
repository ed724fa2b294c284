"""The device meta: tensors with a shape, strides and a dtype, and no elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pygrad


def meta(*shape: int, **options: Any) -> pygrad.Tensor:
    return pygrad.empty(*shape, device="meta", **options)


def test_a_tensor_of_meta_tells_its_geometry_and_prints_it() -> None:
    x = meta(2, 3, dtype=pygrad.float64, requires_grad=True)
    assert (x.device, x.is_meta, x.is_cpu) == (pygrad.device("meta"), True, False)
    assert (x.shape, x.stride(), x.nbytes, x.data_ptr()) == ((2, 3), (3, 1), 48, 0)
    assert x.untyped_storage().device == x.device
    assert x.untyped_storage().nbytes() == 48
    assert repr(x) == (
        "tensor(..., device='meta', size=(2, 3), dtype=torch.float64, requires_grad=True)"
    )


def test_sizes_past_all_memory_are_no_matter() -> None:
    big = meta(1 << 20, 1 << 20)
    product = (big @ big.T).relu().sum(0)
    assert product.shape == (1 << 20,)
    assert product.device.type == "meta"


def test_backward_runs_on_meta() -> None:
    w = meta(3, 4, requires_grad=True)
    (meta(2, 3) @ w).relu().mean().backward()
    assert w.grad is not None
    assert (w.grad.device, w.grad.shape, w.grad.stride()) == (w.device, w.shape, w.stride())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: x.tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: pygrad.ones(3).copy_(x), NotImplementedError, "Cannot copy out of meta tensor"),
        (lambda x: float(x.sum()), RuntimeError, r"Tensor.item\(\) cannot be called on meta"),
        (lambda x: bool(x[0] > 0), RuntimeError, r"Tensor.item\(\) cannot be called on meta"),
        (lambda x: x + pygrad.ones(3), RuntimeError, "on device cpu is not on the expected device"),
        (
            lambda x: pygrad.ones(3) + x,
            RuntimeError,
            "on device meta is not on the expected device",
        ),
        (lambda x: x.unique(), NotImplementedError, "aten::unique: attempted to run"),
        (lambda x: pygrad.equal(x, x), NotImplementedError, "aten::equal: attempted to run"),
    ],
)
def test_what_needs_elements_is_refused(
    call: Callable[[pygrad.Tensor], Any], error: type[Exception], message: str
) -> None:
    x = meta(3)
    with pytest.raises(error, match=message):
        call(x)
    assert (x + 1).shape == (3,)

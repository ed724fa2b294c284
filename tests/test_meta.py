"""The device meta: tensors with a shape, strides and a dtype, and no elements."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import sweep

import pygrad


def meta(*shape: int, **options: Any) -> pygrad.Tensor:
    return pygrad.empty(*shape, device="meta", **options)


def test_a_tensor_of_meta_tells_its_geometry_and_prints_it() -> None:
    x = meta(2, 3, dtype=pygrad.float64, requires_grad=True)
    assert (x.device, x.is_meta, x.is_cpu) == (pygrad.device("meta"), True, False)
    assert (x.shape, x.stride(), x.nbytes, x.data_ptr()) == ((2, 3), (3, 1), 48, 0)
    assert x.untyped_storage().device == x.device
    assert x.untyped_storage().nbytes() == 48
    assert repr(x.detach()) == "tensor(..., device='meta', size=(2, 3), dtype=torch.float64)"


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


# ------------------------------------------------------------------ every op of the table

DESCRIPTION = sweep.describe()
MODES = (
    ("forward", "float32"),
    ("forward", "int64"),
    ("backward", "float32"),
    ("backward", "complex64"),
    ("second order", "float64"),
    ("view", "float32"),
    ("in-place", "float32"),
)
REFUSED = (
    r"aten::\S+: attempted to run this operator with Meta tensors"
    r"|Tensor.item\(\) cannot be called on meta tensors"
    r"|Cannot copy out of meta tensor; no data!"
    r"|cannot repeat_interleave a meta tensor without output_size"
)
"""What needs elements says so; tests/parity/test_meta.py knows that PyTorch needs them too."""


class MetaCase(sweep._Case):
    """A call whose tensors are on meta."""

    def tensor(self, what: Any, constant: bool) -> Any:
        leaves, made = len(self.leaves), super().tensor(what, constant)
        if len(self.leaves) == leaves:
            return made.to("meta")
        leaf = self.leaves[leaves].detach().to("meta").requires_grad_()
        self.leaves[leaves] = leaf
        return sweep._inner(leaf) if self.mode == "view" else leaf


def outcome(case: type[sweep._Case], op: Any, call: Any, mode: str, dtype: str) -> list[Any] | str:
    """What came out, without its elements; or the message of an error."""
    on_meta = case is MetaCase
    with warnings.catch_warnings(), pygrad.device("meta" if on_meta else "cpu"):
        warnings.simplefilter("ignore")
        try:
            result = case(pygrad, DESCRIPTION["tensors"], dtype, mode).run(op, call)
        except pygrad.EngineError:
            raise
        except Exception as error:
            return str(error)
    return [geometry(each, on_meta) for each in sweep._flat(result)]


def geometry(value: Any, on_meta: bool) -> Any:
    if not sweep.is_tensor(value):
        return value if value is None else type(value).__name__
    strides = value.stride() if value.numel() else ()
    assert value.is_meta == on_meta
    return value.dtype, value.shape, strides, value.requires_grad


@pytest.mark.parametrize("op", DESCRIPTION["ops"], ids=lambda op: op["id"])
def test_an_op_infers_on_meta_what_it_gives_on_the_cpu(op: Any) -> None:
    for call in op["calls"]:
        for mode, dtype in MODES:
            if mode == "in-place" and not (
                "inplace" in op and call[0] and "tensor" in sweep._keys(call[0][0])
            ):
                continue
            real = outcome(sweep._Case, op, call, mode, dtype)
            inferred = outcome(MetaCase, op, call, mode, dtype)
            if isinstance(inferred, str):
                assert isinstance(real, str) or re.search(REFUSED, inferred), (call, mode, inferred)
            else:
                assert inferred == real, (call, mode, dtype)

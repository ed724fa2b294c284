"""Anomaly mode where it goes beyond PyTorch, and what it leaves behind."""

from __future__ import annotations

import gc
import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import pygrad
from pygrad._boundary import callbacks


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    pygrad.autograd.set_detect_anomaly(False)


def write(between: int = 1) -> Any:
    x = pygrad.ones(2, requires_grad=True)
    y = x * 2
    z = y * y  # saved here
    y.add_(1)  # first written here
    for _ in range(between - 1):
        y.mul_(2)
    return z.sum()


def line_of(comment: str) -> str:
    with open(__file__, encoding="utf-8") as file:
        number = next(i for i, line in enumerate(file, 1) if line.rstrip().endswith(comment))
    return f"{__file__}:{number}, in write: "


@pytest.mark.parametrize("writes", [1, 2, 5])
def test_check_mode_names_the_lines_that_saved_and_wrote(writes: int) -> None:
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        pygrad.autograd.set_detect_anomaly(True)
        with pytest.raises(RuntimeError) as caught:
            write(writes).backward()
    text = str(caught.value)
    assert f"It was saved by MulBackward0 at {line_of('# saved here')}z = y * y" in text
    assert f"It was modified at {line_of('# first written here')}y.add_(1)" in text


def test_check_mode_names_no_lines_while_anomaly_mode_is_off() -> None:
    with pygrad.autograd.graph.set_saved_tensor_mode("check"), pytest.raises(RuntimeError) as e:
        write().backward()
    assert "It was" not in str(e.value)


def test_only_the_write_is_known_if_the_mode_was_off_before() -> None:
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        y = pygrad.ones(1, requires_grad=True).exp()
        pygrad.autograd.set_detect_anomaly(True)
        y.detach().zero_()
        with pytest.raises(RuntimeError, match="It was modified at") as caught:
            y.backward()
    assert "saved by" not in str(caught.value)


def test_a_thousand_writes_keep_few_traces() -> None:
    before = len(callbacks.objects)
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        pygrad.autograd.set_detect_anomaly(True)
        x = pygrad.zeros(1)
        for _ in range(1000):
            x.add_(1)
    pygrad.ones(1).add_(1)
    assert len(callbacks.objects) - before <= 8


def test_nothing_is_left() -> None:
    gc.collect()
    pygrad.ones(1).add(1)
    live, kept = pygrad.pg_live_count(), len(callbacks.objects)
    pygrad.autograd.set_detect_anomaly(True)
    for mode in ("check", "snapshot"):
        with pygrad.autograd.graph.set_saved_tensor_mode(mode):
            x = pygrad.zeros(2, requires_grad=True)
            (g,) = pygrad.autograd.grad(x.pow(1.5).sum(), x, create_graph=True)
            x.detach().add_(0)
            with pytest.raises(RuntimeError):
                (g * 0).sum().backward()
            del x, g
    gc.collect()
    assert pygrad.pg_live_count() == live
    pygrad.ones(1).add(1)
    assert len(callbacks.objects) == kept


def test_engine_works_after_an_anomaly() -> None:
    with pygrad.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError):
        (pygrad.zeros(1, requires_grad=True).sqrt() * 0).backward()
    x = pygrad.ones(1, requires_grad=True)
    (x * 3).backward()
    assert x.grad.item() == 3


@pytest.mark.parametrize("name", ["float16", "bfloat16", "complex32", "complex64", "complex128"])
def test_nan_of_any_dtype_is_found_and_no_other_number_is(name: str) -> None:
    dtype = getattr(pygrad, name)
    for factor, infinite in ((2.0, False), (math.inf, True)):
        x = pygrad.tensor([1.0], dtype=dtype, requires_grad=True)
        zero = pygrad.tensor([0.0], dtype=dtype)
        with pygrad.autograd.detect_anomaly():
            y = (x * zero) * pygrad.tensor([factor], dtype=dtype)
            if infinite:
                with pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
                    y.backward(pygrad.ones(1, dtype=dtype))
            else:
                y.backward(pygrad.ones(1, dtype=dtype))

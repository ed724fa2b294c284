"""Subscripts: every form gives and sets what NumPy gives and sets, and differentiates as a
selection.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygrad

SUBSCRIPTS: list[Any] = [
    0,
    -1,
    slice(1, None),
    slice(None, None, 2),
    slice(5, 1),
    ...,
    None,
    (0, 1),
    (slice(None), 1),
    (..., 0),
    (0, ..., -1),
    (None, 1, None, ...),
    (slice(0, 2), slice(1, 3), slice(None, None, 3)),
    [0, 1],
    [0, -1, 0],
    ([0, 1], [2, 0]),
    (slice(None), [2, 0]),
    ([0, 1], slice(None), [1, 2]),
    ([[0], [1]], [[0, 2]]),
    (0, [1, 2]),
    (..., [0, 3, 3]),
    np.array([True, False]),
    (slice(None), np.array([True, False, True])),
    True,
    False,
    np.array(1),
    (np.int64(0), 2),
]
IDS = [str(s).replace("\n", "") for s in SUBSCRIPTS]


def ours(subscript: Any) -> Any:
    """Arrays as tensors."""
    if isinstance(subscript, tuple):
        return tuple(map(ours, subscript))
    if isinstance(subscript, list):
        return pygrad.tensor(subscript)
    if isinstance(subscript, np.ndarray):
        return pygrad.from_numpy(subscript)
    return subscript


def array() -> Any:
    return np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("subscript", SUBSCRIPTS, ids=IDS)
def test_get(subscript: Any) -> None:
    got = pygrad.from_numpy(array())[ours(subscript)]
    np.testing.assert_array_equal(got.numpy(), array()[subscript])


@pytest.mark.parametrize("subscript", SUBSCRIPTS, ids=IDS)
def test_set(subscript: Any) -> None:
    expected, x = array(), pygrad.from_numpy(array())
    expected[subscript] = -1
    x[ours(subscript)] = -1
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("subscript", SUBSCRIPTS, ids=IDS)
def test_set_to_a_tensor(subscript: Any) -> None:
    expected, x = array(), pygrad.from_numpy(array())
    part = expected[subscript]
    values = np.full(part.shape[-1:], 7.0) + np.arange(part.shape[-1] if part.ndim else 1).reshape(
        part.shape[-1:]
    )
    expected[subscript] = values
    x[ours(subscript)] = pygrad.from_numpy(np.asarray(values))
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("subscript", SUBSCRIPTS, ids=IDS)
def test_gradient_counts_how_often_an_element_was_taken(subscript: Any) -> None:
    x = pygrad.from_numpy(array()).requires_grad_(True)
    x[ours(subscript)].sum().backward()
    expected = np.zeros((2, 3, 4))
    np.add.at(expected, subscript, 1)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize("subscript", [0, slice(1, None), ..., None, (0, 1), (..., 0)], ids=str)
def test_basic_subscript_is_a_view(subscript: Any) -> None:
    x = pygrad.from_numpy(array())
    view = x[subscript]
    view.zero_()
    expected = array()
    expected[subscript] = 0
    assert view._is_view()
    np.testing.assert_array_equal(x.numpy(), expected)


def test_advanced_subscript_is_a_copy() -> None:
    x = pygrad.from_numpy(array())
    x[pygrad.tensor([0])].zero_()
    np.testing.assert_array_equal(x.numpy(), array())


def test_gradient_of_assignment() -> None:
    x, v = pygrad.ones(3, requires_grad=True), pygrad.ones(2, requires_grad=True)
    y = x * 2
    y[pygrad.tensor([0, 2])] = v * 3
    (y * pygrad.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [0, 20, 0]
    assert v.grad.tolist() == [3, 300]


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int16"])
def test_flips_of_long_rows(dtype: str) -> None:
    """By vectors, whose rest is done apart, out of the middle of a tensor, and of none at all."""
    x = np.arange(3 * 37).reshape(3, 37).astype(dtype)
    t = pygrad.from_numpy(x)
    for dims in ((0,), (1,), (0, 1)):
        np.testing.assert_array_equal(t.flip(dims).numpy(), np.flip(x, dims))
        np.testing.assert_array_equal(t[:, 2:].flip(dims).numpy(), np.flip(x[:, 2:], dims))
        assert t[:, :0].flip(dims).shape == (3, 0)

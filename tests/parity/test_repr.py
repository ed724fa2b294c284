"""Text is PyTorch's, character for character."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracle import torch

import pygrad

NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-10, 10).map(lambda v: round(v, 3)),
    st.integers(-1000, 1000).map(float),
)
ARRAYS = st.one_of(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
        elements=NUMBERS,
    ),
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=0, max_dims=3, max_side=5)),
    hnp.arrays(np.bool_, hnp.array_shapes(min_dims=1, max_dims=3, max_side=5)),
    hnp.arrays(np.int8, hnp.array_shapes(min_dims=1, max_dims=2, max_side=6)),
)


@given(ARRAYS)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_repr_of_any_array(array: Any) -> None:
    assert repr(pygrad.from_numpy(array.copy())) == repr(torch.from_numpy(array.copy()))


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.arange(2000.0),
        lambda t: t.arange(2000.0).reshape(40, 50),
        lambda t: t.ones(11, 11, 11),
        lambda t: t.zeros(0),
        lambda t: t.zeros(2, 0, 3),
        lambda t: t.ones(2, requires_grad=True),
        lambda t: (t.ones(2, requires_grad=True) * 2).sum(),
        lambda t: t.ones(2, requires_grad=True).exp(),
        lambda t: t.ones(40, requires_grad=True) + 1,
        lambda t: t.tensor(3),
        lambda t: t.tensor(True),
        lambda t: t.tensor([1e-5, 1e5]),
        lambda t: t.tensor([1e10, 1.0]),
        lambda t: t.tensor([1.0, float("nan"), float("inf")]),
        lambda t: t.ones(2, dtype=t.float64),
        lambda t: t.ones(2, dtype=t.uint8),
        lambda t: t.nn.Parameter(t.ones(2)),
        lambda t: t.ones(3, 4).t(),
        lambda t: t.Size([1, 2]),
        lambda t: t.float32,
        lambda t: t.device("cpu"),
        lambda t: t.finfo(t.float32),
        lambda t: t.iinfo(t.int8),
        lambda t: t.ones(2, 3).max(0),
        lambda t: t.ones(3).sort(),
        lambda t: t.nn.Sequential(t.nn.Linear(2, 3), t.nn.ReLU(), t.nn.Dropout(0.1)),
        lambda t: t.optim.SGD([t.ones(1)], lr=0.1),
        lambda t: t.no_grad,
    ],
)
def test_repr_of(make: Any) -> None:
    mine, theirs = make(pygrad), make(torch)
    if isinstance(theirs, type):
        return
    assert repr(mine) == repr(theirs)
    assert str(mine) == str(theirs)


@pytest.mark.parametrize(
    "options",
    [
        {"precision": 2},
        {"sci_mode": True},
        {"sci_mode": False},
        {"threshold": 5, "edgeitems": 2},
        {"linewidth": 30},
        {"profile": "short"},
        {"profile": "full"},
    ],
    ids=str,
)
def test_print_options(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    for array in (rng.normal(size=12), rng.normal(size=(4, 5)) * 1e6):
        texts = []
        for library in (pygrad, torch):
            library.set_printoptions(**options)
            texts.append(repr(library.from_numpy(array.copy())))
            library.set_printoptions(profile="default")
        assert texts[0] == texts[1]


@pytest.mark.parametrize("spec", ["", ".2f", ".3e", "8.2f"])
def test_format(spec: str) -> None:
    assert format(pygrad.tensor(3.14159), spec) == format(torch.tensor(3.14159), spec)

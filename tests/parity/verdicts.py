"""Comparing what two libraries say: verdicts of gradcheck, messages, warnings, results."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import array, assert_equal, is_tensor, torch

import pygrad

NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?")
NOTES = (
    "\n\nNOTE",
    "gradcheck or gradgradcheck failed while",
    "gradcheck failed while testing batched",
    "\n\nIf you are adding",
    "\n\nCall gradcheck/gradgradcheck",
)
"""Where the advice begins that each library gives in its own words."""


def module(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.autograd.gradcheck")


def scale_gradient(y: Any, factor: Any) -> Any:
    """y, with a gradient that is wrong by a factor."""
    y = y * 1
    if y.requires_grad:
        y.register_hook(lambda g: None if g is None else g * factor)
    return y


def result_of(run: Callable[[], Any]) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = run()
        except Exception as error:
            text = str(error)
            for note in NOTES:
                text = text.partition(note)[0]
            result = (type(error).__name__, text)
    return result, [
        f"{w.category.__name__}: {w.message}"
        for w in caught
        if w.category is not DeprecationWarning  # of PyTorch's own insides, once
    ]


def flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def agree(mine: Any, theirs: Any) -> None:
    """Equal, in messages but for the last digits of numbers."""
    mine, theirs = flat(mine), flat(theirs)
    assert len(mine) == len(theirs), (mine, theirs)
    for a, b in zip(mine, theirs, strict=True):
        if not isinstance(b, str):
            assert_equal(a, b, rtol=1e-5)
            continue
        assert NUMBER.sub("#", a) == NUMBER.sub("#", b)
        found, expected = ([float(n) for n in NUMBER.findall(text)] for text in (a, b))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


def compare(run: Callable[[Any], Any]) -> None:
    """Runs it in both libraries: results, errors and warnings are the same."""
    agree(result_of(lambda: run(pygrad)), result_of(lambda: run(torch)))


def assert_same_results(mine: Any, theirs: Any, tolerance: float) -> None:
    """Results alike in number, dtype and shape, and near in value; NaNs where there are NaNs."""
    mine, theirs = flat(mine), flat(theirs)
    assert len(mine) == len(theirs), (mine, theirs)
    for a, b in zip(mine, theirs, strict=True):
        if not is_tensor(b):
            assert a == b
            continue
        assert (str(a.dtype), tuple(a.shape)) == (str(b.dtype), tuple(b.shape))
        assert array(a) == pytest.approx(array(b), rel=tolerance, abs=tolerance, nan_ok=True)

"""The saved words of ../test_errors.py are PyTorch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from oracle import torch, tried
from test_errors import CASES

import pygrad


@pytest.mark.parametrize(("run", "error", "message"), CASES)
def test_saved_words_are_pytorchs(run: Callable[[Any], Any], error: Any, message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error) as caught:
            run(torch)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "call",
    [
        'x.max("a")',
        "x.max(None)",
        "x.max(1.5)",
        "x.max(foo=1)",
        'x.max(dim="a")',
        'x.min("a")',
        'torch.max(x, 0, "a")',
        "torch.max(x, 0, 1.5)",
        "torch.max(x, x, x)",
        "torch.max(x, 0, torch.float32)",
        "torch.max(1, 0, x)",
        'torch.max(x, 1, "a", 4, 5)',
        'torch.min(x, 0, "a")',
        'x.sort("a")',
        "x.sort(1, 2, 3, 4)",
        'x.sort(stable="a")',
        'x.argsort(0, "a")',
        'x.sum("a")',
        'x.sum(dim="a")',
        "x.sum(foo=1)",
        'x.prod("a")',
    ],
)
def test_whole_message_of_overloads(call: str) -> None:
    """PyTorch says of each overload with as many parts as arguments why it did not match."""
    texts = [
        tried(lambda t=t: eval(call, {"torch": t, "x": t.ones(2, 3)})) for t in (pygrad, torch)
    ]
    assert texts[0] == texts[1]

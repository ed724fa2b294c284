"""The saved words of ../test_errors.py are PyTorch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from oracle import torch
from test_errors import CASES


@pytest.mark.parametrize(("run", "error", "message"), CASES)
def test_saved_words_are_pytorchs(run: Callable[[Any], Any], error: Any, message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error) as caught:
            run(torch)
    assert str(caught.value).startswith(message)

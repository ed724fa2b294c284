"""The examples of the documents that pygrad was founded on, line by line in both libraries: what a
line prints, warns of and raises, and the variables that it leaves, their gradients included.

One outcome differs, by the project's first decision: a tensor saved for backward is a snapshot, so
`mark dirty`, whose point is PyTorch's error, raises in "check" mode alone.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from oracle import array, describe, is_tensor
from test_doc_examples import CHECKED, EXAMPLES, example

import pygrad.autograd.graph as graph
import pygrad.torch

IN_TIME = "Self CPU time total"


def in_the_script(text: str) -> str:
    """A text without addresses, the frames of others, times, and the ops of a table of times, of
    which PyTorch's kernels call more.
    """
    text = re.sub(r"pygrad(\.torch)?\b", "torch", re.sub(r"0x[0-9a-f]+", "0x", text))
    text = re.sub(r'(?m)^  File "(?!<example>).*\n(?:    .*\n)*', "", text.split(" (Triggered")[0])
    if IN_TIME not in text:
        return text
    rows = [re.sub(r" [\d.]+(us|ms|s|%)|-{3,}", "", row).split() for row in text.split("\n")]
    return str(sorted(row for row in rows if row and not re.match("aten::|detach$", row[0])))


def comparable(names: dict[str, Any]) -> dict[str, Any]:
    """Variables, in values that can be compared: of any other object the class it descends from."""
    found = {}
    for name, value in names.items():
        if is_tensor(value):
            grad = value.grad if value.is_leaf else None
            found[name] = (describe(value), array(value), None if grad is None else array(grad))
        elif name != "__builtins__" and type(value).__name__ != "module":
            classes = [kind.__name__ for kind in type(value).__mro__]
            general = "Module" if "Module" in classes else classes[-2]
            found[name] = value if isinstance(value, (bool, int, str)) else general
    return found


def steps(name: str, library: str) -> list[tuple[Any, ...]]:
    """For each line of an example: what it prints, warns of and raises, and the variables then."""
    torch.manual_seed(0)
    pygrad.manual_seed(0)
    names: dict[str, Any] = {}
    seen = []
    for part in example(name, library).examples:
        out, error = io.StringIO(), ""
        with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                exec(compile(part.source, "<example>", "single"), names)
            except Exception as raised:
                error = f"{type(raised).__name__}: {raised}"
        said = [(w.category.__name__, in_the_script(str(w.message))) for w in caught]
        said = [pair for pair in said if "torch.jit" not in pair[1]]  # of PyTorch's own modules
        seen.append((part.source, in_the_script(out.getvalue()), said, error, comparable(names)))
    return seen


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_line_does_the_same(name: str) -> None:
    with graph.set_saved_tensor_mode("check" if name in CHECKED else "snapshot"):
        mine = steps(name, "pygrad.torch")
    for a, b in zip(mine, steps(name, "torch"), strict=True):
        assert a[1:4] == b[1:4], a[0]
        assert a[4].keys() == b[4].keys()
        for variable, value in a[4].items():
            np.testing.assert_equal(type(value), type(b[4][variable]), variable)
            if isinstance(value, tuple):
                assert value[0] == b[4][variable][0], variable
                for x, y in zip(value[1:], b[4][variable][1:], strict=True):
                    assert_close(x, y)
            else:
                assert value == b[4][variable], variable


def assert_close(mine: Any, theirs: Any) -> None:
    assert (mine is None) == (theirs is None)
    if mine is not None:
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_nothing_raises_by_default_where_a_saved_tensor_was_mutated() -> None:
    *_, last = steps("mark dirty", "pygrad.torch")
    assert last[3] == ""

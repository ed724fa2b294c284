"""The examples of the documents that pygrad was founded on: they run with the import line changed,
and print what they print, in pygrad and in PyTorch.
"""

from __future__ import annotations

import doctest
import io
import re
import warnings
from pathlib import Path

import pytest

import pygrad.autograd.graph as graph

TEXT = (Path(__file__).parent / "doc_examples.txt").read_text()
EXAMPLES = dict(re.findall(r"^== ([^\n]*)\n(.*?)(?=^== |\Z)", TEXT, re.S | re.M))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
CHECKED = {"mark dirty"}
"""Examples whose point is that PyTorch raises for a saved tensor that was mutated: in pygrad only
in "check" mode.
"""


def example(name: str, library: str) -> doctest.DocTest:
    """An example with `library` for torch in its lines that import."""
    source = EXAMPLES[name].replace("----\n", "")
    source = re.sub(r"import torch$", f"import {library} as torch", source, flags=re.MULTILINE)
    source = source.replace("import torch.", f"import {library}.")
    source = source.replace("from torch", f"from {library}")
    return doctest.DocTestParser().get_doctest(source, {}, name, "doc_examples.txt", 0)


def run(name: str, library: str) -> None:
    """Runs an example with `library` for torch; fails with what it printed instead."""
    printed = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        doctest.DocTestRunner(optionflags=OPTIONS).run(example(name, library), out=printed.write)
    if printed.getvalue():
        pytest.fail(printed.getvalue(), pytrace=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name: str) -> None:
    with graph.set_saved_tensor_mode("check" if name in CHECKED else "snapshot"):
        run(name, "pygrad.torch")


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_what_pytorch_prints(name: str) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    run(name, "torch")


def test_there_are_as_many_as_in_the_documents() -> None:
    assert len(EXAMPLES) == 25

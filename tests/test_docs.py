"""Every example in the docs runs: code blocks of the README, doctests of the package."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import pygrad

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
)
NAMES = ["pygrad", *(m.name for m in pkgutil.walk_packages(pygrad.__path__, "pygrad."))]
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[2][:40])
def test_block_of_the_readme_runs(block: str) -> None:
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


def test_readme_has_blocks() -> None:
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_the_module_run(name: str) -> None:
    found = doctest.testmod(load(name), optionflags=OPTIONS)
    assert found.failed == 0


@pytest.mark.parametrize("name", NAMES)
def test_public_things_are_documented(name: str) -> None:
    module = load(name)
    for public in getattr(module, "__all__", []):
        thing = getattr(module, public)
        if callable(thing) and getattr(thing, "__module__", "").startswith("pygrad"):
            assert thing.__doc__, public


def test_readme_names_every_make_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE))
    for target in re.findall(r"`make (\w+)`", (ROOT / "README.md").read_text()):
        assert any(target in line.split() for line in targets), target

"""Every example in the docs runs: code blocks of the README, doctests of the package."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import test_layers

import pygrad

ROOT = Path(__file__).parent.parent
EXECUTED = ["README.md", "web/docs/noise.md"]
BLOCKS = [
    block
    for name in EXECUTED
    for block in re.findall(
        r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.DOTALL | re.MULTILINE
    )
]
NAMES = ["pygrad", *(m.name for m in pkgutil.walk_packages(pygrad.__path__, "pygrad."))]
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


@pytest.fixture(autouse=True)
def _files_of_examples_are_written_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[2][:40])
def test_block_of_a_document_runs(block: str) -> None:
    exec(compile(block, "a document", "exec"), {"__name__": "document"})


def test_documents_have_blocks() -> None:
    assert len(BLOCKS) >= 5


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


DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_of_the_document_exist(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE))
    for target in re.findall(r"`make (\w+)`", (ROOT / name).read_text()):
        assert any(target in line.split() for line in targets), target


@pytest.mark.parametrize("name", DOCUMENTS)
def test_files_of_the_document_exist(name: str) -> None:
    """Paths from the root, or from the folders that the document speaks of."""
    text = (ROOT / name).read_text()
    named = set(re.findall(r"`([\w/]+/[\w.]+\.(?:c|h|py|js|def|md|json))`", text))
    named |= set(re.findall(r"\]\(([\w/.]+)\)", text))
    roots = [ROOT, ROOT / "wasm_core", ROOT / "pygrad", ROOT / "web"]
    assert not {path for path in named if not any((root / path).exists() for root in roots)}


def test_example_of_an_op_compiles(tmp_path: Path) -> None:
    """The gradient and the function that CONTRIBUTING.md shows, beside the real declarations."""
    if not (compiler := shutil.which("gcc") or shutil.which("clang")):
        pytest.skip("no C compiler here")
    text = (ROOT / "CONTRIBUTING.md").read_text()
    example = re.search(r"^ +GRAD\(TraceBackward0.*?^       }\n\n.*?^       }\n", text, re.M | re.S)
    assert example
    source = tmp_path / "example.c"
    source.write_text(f'#include "ops/op.h"\n#include "ops/view/view.h"\n{example[0]}')
    engine = ROOT / "wasm_core"
    subprocess.run([sys.executable, engine / "declare.py", tmp_path], cwd=ROOT, check=True)
    command = [compiler, "-fsyntax-only", "-std=c11", "-Wall", "-Wextra", "-Werror"]
    found = subprocess.run(
        [*command, f"-I{engine}", f"-I{tmp_path}", source], capture_output=True, text=True
    )
    assert not found.returncode, found.stderr


def test_architecture_has_the_layers_that_are_tested() -> None:
    engine = (ROOT / "ARCHITECTURE.md").read_text().partition("## Python")[0]
    assert re.findall(r"^\| `(\w+)` \|", engine, re.MULTILINE) == test_layers.FOLDERS

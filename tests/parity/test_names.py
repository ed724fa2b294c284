"""Every public module, class and function of PyTorch can be imported and named in the dialect, and
is of the same kind there: counted against the installed torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pygrad

ROOT = Path(pygrad.__file__).parents[1]
WALK = """
import contextlib, importlib, io, json, pkgutil, sys, types, warnings
warnings.simplefilter("ignore")

def walk(name):
    try:
        module = importlib.import_module(name)
    except BaseException:
        return  # for want of another package
    yield name, module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if found.name[0] != "_":
            yield from walk(f"{name}.{found.name}")

def kind(value):
    if isinstance(value, types.ModuleType):
        name = value.__name__  # of torch.ops anything is a part
        return "module" if name.startswith("torch.") and "torch.ops." not in name else None
    home = str(getattr(value, "__module__", None) or "torch")
    if home.partition(".")[0] != "torch":
        return None
    if isinstance(value, type):
        return "class"
    return "function" if isinstance(value, FUNCTIONS) else None

FUNCTIONS = types.FunctionType, types.BuiltinFunctionType
with contextlib.redirect_stdout(io.StringIO()):
    modules = dict(walk("torch"))
    rows = [(name, "", "module") for name in modules]
    for name, module in modules.items():
        for short, value in list(vars(module).items()):
            found = short[0] != "_" and not isinstance(value, types.GenericAlias) and kind(value)
            if found:
                rows.append((name, short, found))
json.dump(rows, sys.stdout)
"""
LOOK = """
import importlib, inspect, json, sys, warnings
warnings.simplefilter("ignore")
import pygrad.torch

def kind(value):
    is_module = inspect.ismodule(value)
    return "module" if is_module else "class" if isinstance(value, type) else "function"

wrong = []
for module, name, wanted in json.load(sys.stdin):
    try:
        found = importlib.import_module(f"pygrad.{module}")
        if name:
            found = getattr(found, name)
        right = callable(found) if wanted == "function" else kind(found) == wanted
        if not right:
            wrong.append((module, name, wanted, str(found)))
    except Exception as error:
        wrong.append((module, name, wanted, f"{type(error).__name__}: {error}"))
json.dump([wrong, "torch" in sys.modules], sys.stdout)
"""


def run(program: str, text: str = "") -> Any:
    """What a program prints as JSON, in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    """Module, name and kind of all that PyTorch shows."""
    found: list[list[str]] = run(WALK)
    return found


def test_every_public_name_of_pytorch_is_there_and_of_its_kind(rows: list[list[str]]) -> None:
    counts = Counter(kind for _, _, kind in rows)
    assert counts["module"] > 2000
    assert counts["class"] > 4000
    assert counts["function"] > 4000
    wrong, imported = run(LOOK, json.dumps(rows))
    assert not imported
    assert wrong == []


def test_description_is_that_of_the_installed_pytorch(tmp_path: Path) -> None:
    script = Path(__file__).with_name("names.py")
    subprocess.run(
        [sys.executable, "-W", "ignore", script, tmp_path / "names.txt"],
        check=True,
        capture_output=True,
        timeout=300,
    )
    made = (tmp_path / "names.txt").read_text()
    kept = (ROOT / "pygrad" / "torch" / "names.txt").read_text()
    missing = set(made.splitlines()) - set(kept.splitlines())
    assert not missing, "run make names"

"""`pygrad.torch`: pygrad's own modules under PyTorch's names, left as they were."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import subprocess
import sys

import pytest

import pygrad
import pygrad.torch
from pygrad._ground import names

OVERLAID = {"pygrad.torch", "pygrad.autograd", "pygrad.autograd.graph", "pygrad.version"}
MODULES = [
    m.name
    for m in pkgutil.walk_packages(pygrad.__path__, "pygrad.")
    if not m.name.startswith("pygrad.torch")
]


def dialect(name: str) -> str:
    return name.replace("pygrad", "pygrad.torch", 1)


@pytest.mark.parametrize("name", [m for m in MODULES if m not in OVERLAID])
def test_submodule_is_the_module_of_pygrad(name: str) -> None:
    original = importlib.import_module(name)
    spec = original.__spec__
    package, _, short = name.rpartition(".")
    shown = getattr(sys.modules[package], short)
    alias = importlib.import_module(dialect(name))
    assert alias is original is sys.modules[name]
    assert getattr(sys.modules[package], short) is shown  # a function, perhaps, of that name
    assert (alias.__name__, alias.__spec__) == (name, spec)


def test_torch_is_reached_by_way_of_autograd() -> None:
    assert pygrad.torch.autograd.torch is pygrad.torch


@pytest.mark.parametrize("name", sorted(OVERLAID - {"pygrad.torch"}))
def test_overlay_shows_every_name_of_the_original(name: str) -> None:
    original, alias = importlib.import_module(name), importlib.import_module(dialect(name))
    assert alias is not original
    assert set(dir(alias)) >= {n for n in dir(original) if not n.startswith("__")}
    for public in getattr(original, "__all__", []):
        assert hasattr(alias, public)


def test_every_public_name_is_there() -> None:
    for name in pygrad.__all__:
        found, wanted = getattr(pygrad.torch, name), getattr(pygrad, name)
        assert found is wanted or name == "autograd"


def test_names_that_do_not_exist() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'pygrad\.torch\.nowhere'"):
        importlib.import_module("pygrad.torch.nowhere")
    with pytest.raises(ModuleNotFoundError, match=r"'pygrad\.torch\.nn\.nowhere'"):
        importlib.import_module("pygrad.torch.nn.nowhere")
    with pytest.raises(AttributeError, match="module 'torch' has no attribute 'nowhere'"):
        pygrad.torch.nowhere  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nowhere'"):
        from pygrad.torch.autograd import nowhere  # noqa: F401


@pytest.mark.parametrize(
    "line",
    [
        "import pygrad.torch.nn.functional as F, pygrad; assert F is pygrad.nn.functional",
        "from pygrad.torch.optim import SGD; import pygrad; assert SGD is pygrad.optim.SGD",
        "import pygrad as p; from pygrad.torch.autograd import no_grad as g; assert g is p.no_grad",
        "from pygrad.torch.utils.data import DataLoader",
        "import pygrad.torch; import pygrad.torch.nn; assert pygrad.torch.nn is pygrad.nn",
        "import pygrad.torch as t; assert t.utils.data.Dataset and t.autograd.graph.Node",
        "from pygrad.torch.autograd.gradcheck import GradcheckError; import pygrad.torch as t;"
        " assert t.autograd.gradcheck.__name__ == 'gradcheck' and callable(t.autograd.gradcheck)",
        "from pygrad.torch import *; assert tensor(1.0).item() == 1",
    ],
)
def test_import_in_a_fresh_interpreter(line: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", line], check=True, timeout=60)


@pytest.mark.parametrize("name", sorted(names.OF_TORCH))
def test_module_that_lies_in_torch_is_one_module_by_both_names(name: str) -> None:
    mine = importlib.import_module(f"pygrad.{name}")
    assert mine is importlib.import_module(f"pygrad.torch.{name}")
    assert mine is getattr(pygrad, name)
    for inner in pkgutil.iter_modules(getattr(mine, "__path__", ())):
        below = importlib.import_module(f"pygrad.{name}.{inner.name}")
        assert below is importlib.import_module(f"pygrad.torch.{name}.{inner.name}")


def test_import_of_a_module_leaves_the_function_of_its_name() -> None:
    cond = pygrad.cond
    importlib.import_module("pygrad._higher_order_ops.cond")
    assert pygrad._higher_order_ops.cond is pygrad.cond is cond


def test_module_that_is_nowhere_is_reported_by_the_name_that_was_asked() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'pygrad.cuda.nowhere'"):
        importlib.import_module("pygrad.cuda.nowhere")


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("_rebuild", "_rebuild_tensor_v2"),
        ("_utils", "_rebuild_tensor_v2"),
        ("_dtypes", "Size"),
        ("_tree", "flatten"),
        ("_legacy", "legacy_name"),
        ("futures", "Future"),
        ("return_types", "max"),
    ],
)
def test_pickles_of_earlier_versions_find_their_names(old: str, name: str) -> None:
    code = f"cpygrad.{old}\n{name}\n.".encode()  # a global, by module and name
    found = pickle.loads(code)
    assert found is getattr(importlib.import_module(found.__module__), found.__name__)


LATE = "distributed distributions fx library nested serialization torch _dispatch.answers".split()
"""Packages and modules that few programs use, or only at some point."""


def test_import_loads_no_package_that_few_programs_use() -> None:
    program = "import pygrad, sys; print(*(n for n in sys.modules if n.startswith('pygrad.')))"
    done = subprocess.check_output([sys.executable, "-c", program], text=True)
    names = {name.partition(".")[2] for name in done.split()}
    assert not {name for name in names if f"{name}.".startswith(tuple(f"{each}." for each in LATE))}

"""The table of torch.js's names in web/docs/names.md: complete, and every name is where it says."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import pygrad
import pygrad.torch

NAMES = (Path(__file__).parent.parent / "web" / "docs" / "names.md").read_text()
ROWS = [
    (
        name,
        "" if mine == "absent" else mine.strip("`"),
        "" if torch == "absent" else torch.strip("`"),
    )
    for name, mine, torch in re.findall(
        r"^\| (\w+) \| (\S+) \| (\S+) \| .*\|$",
        NAMES[NAMES.index("| torch.js | pygrad |") :],
        re.MULTILINE,
    )
]
PUBLISHED = """
    BackwardOptions EmitNvtxContext EmitNvtxOptions Function FunctionCtx GradOptions
    GradcheckOptions GradcheckResult HVPOptions HessianOptions JVPOptions JacobianOptions Node
    PackHook ProfilerContext ProfilerKeyAverages ProfilerOptions ProfilerTableOptions UnpackHook
    VHPOptions VJPOptions allow_mutation_on_saved_tensors apply backward detect_anomaly
    disable_saved_tensors_hooks emit_nvtx enable_grad executeBackward export_chrome_trace grad
    grad_mode gradcheck gradgradcheck hessian hvp inference_mode is_anomaly_detection_enabled
    is_grad_enabled is_inference_mode_enabled jacobian jvp key_averages mark_dirty
    mark_non_differentiable no_grad once_differentiable profile save_for_backward save_on_cpu
    saved_tensors_hooks set_detect_anomaly set_grad_enabled set_materialize_grads
    set_multithreading_enabled start stop table vhp vjp
""".split()
"""What torch.js lists under torch.autograd."""


def find(library: Any, path: str) -> Any:
    """What stands at a dotted path, its modules imported."""
    found = library
    for name in path.split("."):
        if not hasattr(found, name):
            importlib.import_module(f"{found.__name__}.{name}")
        found = getattr(found, name)
    return found


def test_table_has_every_name_once() -> None:
    assert sorted(name for name, _, _ in ROWS) == sorted(PUBLISHED)


@pytest.mark.parametrize(("name", "path"), [(name, mine) for name, mine, _ in ROWS if mine])
def test_name_is_in_pygrad(name: str, path: str) -> None:
    assert find(pygrad, path) is not None
    assert find(pygrad.torch, path) is not None


@pytest.mark.parametrize(("name", "path"), [(name, theirs) for name, _, theirs in ROWS if theirs])
def test_name_is_in_pytorch(name: str, path: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert find(torch, path) is not None


def test_aliases_say_the_same() -> None:
    auto = pygrad.autograd
    assert auto.is_grad_enabled() is pygrad.is_grad_enabled() is True
    with pygrad.no_grad():
        assert auto.is_grad_enabled() is pygrad.is_grad_enabled() is False
    with pygrad.inference_mode():
        assert auto.is_inference_mode_enabled() is pygrad.is_inference_mode_enabled() is True
    assert auto.is_inference_mode_enabled() is False
    with auto.set_detect_anomaly(True):
        assert auto.is_anomaly_detection_enabled() is pygrad.is_anomaly_enabled() is True
    assert auto.is_anomaly_detection_enabled() is pygrad.is_anomaly_enabled() is False
    assert auto.allow_mutation_on_saved_tensors is auto.graph.allow_mutation_on_saved_tensors


def test_profiler_starts_and_stops() -> None:
    profile = pygrad.autograd.profiler.profile()
    profile.start()
    pygrad.ones(2).exp()
    profile.stop()
    assert "exp" in profile.key_averages().table()

"""Layers that JavaScript has by Python's classes do the same there: texts, names, bits, errors."""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fronts import layers
from fronts.signatures import constructor

import pygrad as torch

ROOT = Path(__file__).parents[2]
SAMPLES = json.loads((ROOT / "tests/web/layers.json").read_text(encoding="utf-8"))
"""Layer -> the inputs that it is called `of`, the arguments that it is made `with`, arguments with
which it `fails`, inputs that it `refuses`; and samples of other inputs `also`.
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What JavaScript has seen of all layers."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    path = tmp_path_factory.mktemp("layers") / "seen.safetensors"
    subprocess.run(["node", "tests/web/layers.mjs", path], cwd=ROOT, check=True)
    return torch.load(path)


def argument(value: Any, kind: str) -> Any:
    """An argument of a type: a number in JavaScript is a float where one is wanted."""
    if isinstance(value, list):
        return tuple(argument(each, kind) for each in value)
    if isinstance(value, dict):
        return torch.tensor(value["values"])
    if kind.startswith("ScalarType"):
        return getattr(torch, value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and kind.lower().startswith("float") else value


def divided(given: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments in order, and the options behind them."""
    if given and isinstance(given[-1], dict) and "values" not in given[-1]:
        return given[:-1], given[-1]
    return given, {}


def make(name: str, given: list[Any]) -> torch.nn.Module:
    cls = getattr(torch.nn, name)
    types = {each.name: each.type for each in constructor(cls)}
    front, options = divided(given)
    made: torch.nn.Module = cls(
        *map(argument, front, [*types.values(), *[""] * len(front)]),
        **{key: argument(value, types.get(key, "")) for key, value in options.items()},
    )
    return made


def input_of(spec: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    if isinstance(spec, str):
        return torch.randn([int(size) for size in spec.split()], dtype=dtype).requires_grad_()
    return (
        torch.tensor(spec["ints"]) if "ints" in spec else torch.tensor(spec["values"], dtype=dtype)
    )


def plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_dense().detach()


def flat(found: Any) -> list[torch.Tensor]:
    """The tensors that a layer returns, in order."""
    if isinstance(found, torch.Tensor):
        return [found]
    return [tensor for each in found for tensor in flat(each)]


def run(layer: torch.nn.Module, sample: Any, dtype: torch.dtype) -> Any:
    torch.manual_seed(1)
    inputs = [input_of(spec, dtype) for spec in sample["of"]]
    found = layer(*(x.clone() if x.requires_grad else x for x in inputs))
    outputs = flat(found)
    learned = [y for y in outputs if y.requires_grad]
    if learned:
        learned[0].mul(learned[0]).sum().backward()
    grads = [x.grad for x in (*inputs, *layer.parameters()) if x.grad is not None]
    return {"outputs": [plain(y) for y in outputs], "gradients": [plain(g) for g in grads]}


def problem(call: Callable[[], Any]) -> list[str]:
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return []


def made_here(name: str, sample: Any, given: list[Any]) -> Any:
    torch.manual_seed(0)
    layer = make(name, given)
    dtype = torch.float64 if "float64" in str(given) else torch.float32
    trained = run(layer, sample, dtype)
    state = layer.state_dict()
    return {
        "text": repr(layer),
        "names": [*state],
        "state": [*state.values()],
        "trained": trained,
        "evaluated": run(layer.eval(), sample, dtype),
    }


def bits(value: Any) -> Any:
    """A value with each tensor as its type, shape and bytes."""
    if isinstance(value, torch.Tensor):
        data = value.contiguous().flatten().view(torch.uint8).tolist()
        return str(value.dtype), tuple(value.shape), bytes(data)
    if isinstance(value, dict):
        return {key: bits(each) for key, each in value.items()}
    return [bits(each) for each in value] if isinstance(value, list) else value


def test_every_layer_has_samples() -> None:
    assert SAMPLES.keys() == {cls.__name__ for cls in layers.offered()}


def test_every_argument_of_a_layer_is_given_in_a_sample() -> None:
    missing = []
    for cls in layers.offered():
        given = set()
        named = [each.name for each in constructor(cls)]
        for arguments in SAMPLES[cls.__name__]["with"]:
            front, options = divided(arguments)
            given |= {*named[: len(front)], *options}
        missing += [f"{cls.__name__}.{name}" for name in named if name not in given]
    assert missing == []


@pytest.mark.parametrize("name", SAMPLES)
def test_layer_is_the_same_in_javascript(name: str, seen: Any) -> None:
    sample = SAMPLES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = [sample, *sample.get("also", [])]
        made = [made_here(name, own, given) for own in calls for given in own["with"]]
        refused = [
            problem(lambda given=given: make(name, given)) for given in sample.get("fails", [])
        ]
        for spec in sample.get("refuses", []):
            refused.append(problem(lambda spec=spec: make(name, sample["with"][0])(input_of(spec))))
    assert bits(seen[name]["made"]) == bits(made)
    assert seen[name]["refused"] == refused
    assert all(refused)

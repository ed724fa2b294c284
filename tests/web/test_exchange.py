"""State goes from Python to JavaScript and back without loss."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import pygrad as torch
from pygrad._ground.dtypes import ALL

ROOT = Path(__file__).parents[2]
COPY = """
import { readFileSync, writeFileSync } from 'node:fs';
import { load } from './web/index.js';
const torch = await load();
writeFileSync(process.argv[2], torch.save(torch.load(readFileSync(process.argv[1]))));
"""


def pass_through_javascript(value: Any, folder: Path) -> Any:
    """What JavaScript makes of a value that it loads and saves, in the form that it knows."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    torch.save(value, folder / "in.safetensors")
    command = ["node", "--input-type=module", "-e", COPY, folder / "in.safetensors", folder / "out"]
    subprocess.run(command, cwd=ROOT, check=True)
    return torch.load(folder / "out")


def test_values(tmp_path: Path) -> None:
    value = {
        "numbers": [1, -2.5, 1e-8, 2**53 + 1, -(2**70), math.inf, True, None, "é"],
        "by number": {0: {"a": 1}, 1: {}},
        "set": {1, 2},
        "dtype": torch.int8,
    }
    assert pass_through_javascript(value, tmp_path) == value


def test_tensors(tmp_path: Path) -> None:
    made = {dtype.name: torch.arange(-2, 4).reshape(2, 3).to(dtype) for dtype in ALL}
    made["complex"] = torch.tensor([1 + 2j, -3.5j]).conj()
    made["empty"], made["scalar"] = torch.empty(2, 0), torch.tensor(7.0)
    back = pass_through_javascript(made, tmp_path)
    assert list(back) == list(made)
    for name, tensor in made.items():
        assert back[name].dtype is tensor.dtype
        assert back[name].shape == tensor.shape
        assert back[name].tolist() == tensor.tolist()
    assert (tmp_path / "in.safetensors").read_bytes() == (tmp_path / "out").read_bytes()


def test_parameters(tmp_path: Path) -> None:
    value = {
        "learned": torch.nn.Parameter(torch.ones(2)),
        "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "plain": torch.ones(2, requires_grad=True),
    }
    back = pass_through_javascript(value, tmp_path)
    kinds = {name: (type(t).__name__, t.requires_grad) for name, t in back.items()}
    assert kinds == {
        "learned": ("Parameter", True),
        "frozen": ("Parameter", False),
        "plain": ("Tensor", True),
    }
    assert (tmp_path / "in.safetensors").read_bytes() == (tmp_path / "out").read_bytes()


def test_a_training(tmp_path: Path) -> None:
    """Model, optimizer and generator: the run goes on as if it had never left Python."""

    def step(n: int) -> None:
        for _ in range(n):
            optimizer.zero_grad()
            torch.nn.functional.dropout(model(torch.ones(4, 3)), 0.5).sum().backward()
            optimizer.step()

    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    step(2)
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "generator": torch.get_rng_state(),
    }
    back = pass_through_javascript(state, tmp_path)
    step(3)
    expected = [p.tolist() for p in model.parameters()]
    model = torch.nn.Linear(3, 2)
    model.load_state_dict(back["model"])
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.load_state_dict(back["optimizer"])
    torch.set_rng_state(back["generator"])
    step(3)
    assert [p.tolist() for p in model.parameters()] == expected

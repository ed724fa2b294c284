"""Every optimizer that is described once is the same in both languages: bits of parameters and
states, the order of names, and the words for options out of range.
"""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import pygrad as torch
from pygrad.optim._builtin import BuiltinOptimizer

ROOT = Path(__file__).parents[2]
NAMES = sorted(cls.__name__ for cls in (*BuiltinOptimizer.__subclasses__(), torch.optim.AdamW))
DTYPES = ("float32", "float64", "bfloat16", "complex64")
REAL = {"Adafactor", "Muon", "SparseAdam"}
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "ASGD": [{"t0": 1, "weight_decay": 0.1}],
    "Adadelta": [{"rho": 0.5, "maximize": True}],
    "Adafactor": [{"eps": [1e-4, 1e-2], "weight_decay": 0.1}],
    "Adagrad": [{"lr_decay": 0.1, "initial_accumulator_value": 0.5}],
    "Adam": [{"amsgrad": True, "weight_decay": 0.1}, {"decoupled_weight_decay": True}],
    "AdamW": [{"betas": [0.5, 0.6]}],
    "Adamax": [{"betas": [0.5, 0.6], "weight_decay": 0.1}],
    "Muon": [{"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}],
    "NAdam": [{"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "RAdam": [{"betas": [0.5, 0.6], "maximize": True}],
    "RMSprop": [{"momentum": 0.5, "centered": True}],
    "Rprop": [{"etas": [0.3, 1.5]}],
    "SGD": [{"momentum": 0.9, "nesterov": True}, {"momentum": 0.5, "dampening": 0.3}],
    "SparseAdam": [{"maximize": True}],
}
"""For each optimizer, options that are no defaults."""
TRAINED = [
    {
        "name": name,
        "options": {"lr": 0.05, **options},
        "dtype": dtype,
        "shapes": [[2, 3], [3, 2]] if name == "Muon" else [[2, 3], [3], [4, 2]],
    }
    for name in NAMES
    for options in ({}, *OPTIONS[name])
    for dtype in DTYPES
    if not (name in REAL and dtype == "complex64") and not (name == "SparseAdam" and "b" in dtype)
]


def wrong_options() -> list[dict[str, Any]]:
    """Values out of the range of some option, for each option that is a number, pair or text."""
    kinds: dict[type, list[Any]] = {
        float: [-1.5, 2.5],
        tuple: [[-1.5, 0.5], [0.5, 1.5], [1.5, 0.5]],
    }
    found = []
    for name in NAMES:
        cls: Any = getattr(torch.optim, name)
        defaults = cls([torch.ones(2, 2, requires_grad=True)]).defaults
        for key, value in defaults.items():
            kind = float if type(value) is int and value == 0 else type(value)
            if not (name == "Muon" and kind is tuple):
                found += [{"name": name, "options": {key: each}} for each in kinds.get(kind, ())]
    return [
        *found,
        {"name": "Muon", "options": {"adjust_lr_fn": "odd"}},
        {"name": "SGD", "options": {"nesterov": True}},
        *({"name": n, "options": {"fused": True, "foreach": True}} for n in ("SGD", "Adagrad")),
    ]


def flat(x: torch.Tensor) -> Any:
    own = x.detach().resolve_conj()
    real = torch.view_as_real(own) if own.is_complex() else own
    return real.double().flatten().tolist()


def values(shape: tuple[int, ...], phase: float, dtype: str) -> torch.Tensor:
    real = torch.arange(math.prod(shape), dtype=torch.float64).add(phase).sin().reshape(shape)
    kind = getattr(torch, dtype)
    return (torch.complex(real, real.mul(3).cos()) if kind.is_complex else real).to(kind)


def in_python(options: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in options.items()}


def steps(case: dict[str, Any]) -> Any:
    """Parameters, states and the order of names after some steps."""
    name, dtype = case["name"], case["dtype"]
    params = [
        values(tuple(shape), 0.3 * k, dtype).requires_grad_()
        for k, shape in enumerate(case["shapes"])
    ]
    optimizer = getattr(torch.optim, name)(params, **in_python(case["options"]))
    for step in range(4):
        for k, p in enumerate(params):
            grad = values(tuple(p.shape), 1 + k + 0.1 * step, dtype)
            p.grad = grad.to_sparse() if name == "SparseAdam" else grad
        if step == 2:
            params[0].grad = None
        optimizer.step()
    states = [[[k, flat(v)] for k, v in optimizer.state.get(p, {}).items()] for p in params]
    group = [key for key in optimizer.param_groups[0] if key != "params"]
    return [[flat(p) for p in params], states, group]


def error(case: dict[str, Any]) -> Any:
    """The error of a constructor, or None."""
    try:
        parameter = torch.ones(2, 2, requires_grad=True)
        getattr(torch.optim, case["name"])([parameter], **in_python(case["options"]))
    except Exception as raised:
        return [type(raised).__name__, str(raised)]
    return None


MINIMIZED = [
    {"dtype": dtype, "options": {"lr": 0.7, "max_iter": 7, "line_search_fn": search}}
    for dtype in ("float32", "float64")
    for search in (None, "strong_wolfe")
]


def minimize(case: dict[str, Any]) -> Any:
    """Losses, parameter, state and counters of some steps of L-BFGS."""
    kind = getattr(torch, case["dtype"])
    x = torch.tensor([0.3, -1.2, 2.0], dtype=kind, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], **case["options"])

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        apart = x - torch.tensor([1.0, 2.0, 3.0], dtype=kind)
        loss = (apart.square() * (x.cos() + 2)).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(3)]
    own = optimizer.state[x]
    return [losses, x.tolist(), list(own), own["func_evals"], own["n_iter"]]


NODE = """
import { readFileSync } from 'node:fs';
import { load } from './web/index.js';
import { answer } from './tests/web/optimizers.js';
console.log(JSON.stringify(answer(await load(), JSON.parse(readFileSync(0)))));
"""


def test_python_and_javascript_have_the_same_optimizers() -> None:
    assert set(OPTIONS) == set(NAMES)
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    cases = {"trained": TRAINED, "wrong": wrong_options(), "minimized": MINIMIZED}
    command = ["node", "--input-type=module", "-e", NODE]
    made = subprocess.run(
        command, cwd=ROOT, check=True, input=json.dumps(cases), capture_output=True, text=True
    )
    trained, wrong, minimized = json.loads(made.stdout)
    for case, theirs in itertools.zip_longest(TRAINED, trained):
        assert json.loads(json.dumps(steps(case))) == theirs, case
    assert [minimize(case) for case in MINIMIZED] == minimized
    mine = [error(case) for case in cases["wrong"]]
    assert mine == wrong
    assert len([each for each in mine if each]) > 60

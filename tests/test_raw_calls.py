"""Names of wasmtime that are not public: where a version lacks one, its public classes serve."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import pygrad as torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
seen = []
model[0].weight.register_hook(lambda g: seen.append(float(g.abs().sum())))

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2

x = torch.randn(16, 4)
for _ in range(3):
    optimizer.zero_grad()
    Twice.apply(model(x)).square().mean().backward()
    optimizer.step()
try:
    torch.ones(2) @ torch.ones(3)
except RuntimeError as error:
    print(error)
try:
    (model[0].weight.sum() * 0).register_hook(lambda g: 1 / 0)
    y = model[0].weight.sum()
    y.register_hook(lambda g: 1 / 0)
    y.backward()
except ZeroDivisionError as error:
    print(error)
print(torch.vmap(torch.sin)(x).sum().item(), seen, [p.sum().item() for p in model.parameters()])
"""


def run(before: str = "", **environment: str) -> tuple[str, str]:
    """The output of the program and its warnings."""
    done = subprocess.run(
        [sys.executable, "-c", before + PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def expected() -> str:
    output, warnings = run()
    assert warnings == ""
    return output


def test_public_calls_give_the_same_bits(expected: str) -> None:
    assert run(PYGRAD_PUBLIC_CALL="1") == (expected, "")


@pytest.mark.parametrize(
    "change",
    [
        "del wasmtime._bindings.wasmtime_func_new_unchecked",
        "del wasmtime._bindings.wasmtime_val_raw_t",
        "import ctypes; wasmtime._bindings.wasmtime_val_raw_t = ctypes.c_int64",
        "wasmtime._ffi.dll._name = None",
    ],
)
def test_unknown_version_warns_once_and_gives_the_same_bits(change: str, expected: str) -> None:
    output, warnings = run(f"import wasmtime, wasmtime._bindings\n{change}\n")
    assert output == expected
    assert warnings.count("RuntimeWarning: pygrad does not know this version of wasmtime") == 1

"""Where Python's recursion ends while the engine runs: an error, and the engine runs on.

A crash would end the tests, so each case is a process of its own. It comes close to the limit frame
by frame, so that every frame that a callback adds is once the one too many.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import pygrad as torch
from pygrad.autograd.graph import saved_tensors_hooks
from pygrad.utils._python_dispatch import TorchDispatchMode

class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2

def mode():
    with Passing():
        torch.sin(torch.ones(2))

def hook():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: grad * 2)
    torch.sin(x).sum().backward()

def function():
    Double.apply(torch.ones(2, requires_grad=True)).sum().backward()

def saved():
    with saved_tensors_hooks(lambda x: x * 1, lambda x: x):
        torch.sin(torch.ones(2, requires_grad=True)).sum().backward()

def error():
    torch.ones(2) @ torch.ones(3)

def deep(frames, run):
    return run() if frames == 0 else deep(frames - 1, run)

run, refused = globals()[sys.argv[1]], 0
limit = sys.getrecursionlimit()
for frames in range(limit - 120, limit):
    try:
        deep(frames, run)
    except RecursionError:
        refused += 1
    except RuntimeError as found:
        assert run is error or "a callback was interrupted" in str(found), found
assert refused > 10, refused
assert (torch.ones(2, requires_grad=True) * 2).tolist() == [2.0, 2.0]
"""


@pytest.mark.parametrize("what", ["mode", "hook", "function", "saved", "error"])
def test_the_end_of_recursion_in_a_callback_is_an_error(what: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, what], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]

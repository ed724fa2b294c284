"""Limits: the memory of an engine, the address space of the process, the time of a part of a
program. What exceeds one raises, and everything else goes on.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import pytest
from helpers import leaves_nothing
from test_python import python

import pygrad as torch

MIB = 1 << 20
needs_address_limits = pytest.mark.skipif(sys.platform != "linux", reason="no ulimit -v here")


@pytest.fixture(autouse=True)
def every_look_polls() -> Any:
    usual = torch._C._poll_every(0)
    yield
    torch._C._poll_every(usual)


def with_address_space(n_bytes: int, program: str) -> str:
    """A program that may take so much address space."""
    return f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({n_bytes},) * 2)\n{program}"


# ------------------------------------------------------------------ memory


def test_engine_with_max_memory_refuses_a_tensor_beyond_it() -> None:
    engine = torch.Engine(max_memory=64 * MIB)
    with pytest.raises(torch.OutOfMemoryError, match="can't allocate memory"):
        engine.ones(32 * MIB)
    assert engine.ones(MIB).sum() == MIB
    assert torch.ones(32 * MIB).sum() == 32 * MIB  # the first engine has its own limit


def test_max_memory_too_small_for_an_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="needs at least 33554432 bytes"):
        torch.Engine(max_memory=1)


def test_environment_limits_the_first_engine() -> None:
    program = """
import pygrad
assert pygrad.ones(9).sum() == 9
try:
    pygrad.ones(1 << 26)
except pygrad.OutOfMemoryError as error:
    print(error)
"""
    said = python(program, PYGRAD_MAX_MEMORY=str(64 * MIB))
    assert said.startswith("pygrad: can't allocate memory")


def test_environment_with_a_limit_that_is_no_number_is_refused() -> None:
    program = """
try:
    import pygrad
except ValueError as error:
    print(error)
"""
    for text in ("banana", "1e9", "-1", "512M", ""):
        said = python(program, PYGRAD_MAX_MEMORY=text)
        assert said == f"PYGRAD_MAX_MEMORY is to be a number of bytes, not {text!r}"


@needs_address_limits
def test_little_address_space_makes_a_smaller_engine() -> None:
    program = """
import pygrad
assert (pygrad.ones(64, 64) @ pygrad.ones(64, 64)).sum() == 64**3
try:
    pygrad.ones(1 << 29)
except pygrad.OutOfMemoryError:
    print("refused")
"""
    assert python(with_address_space(2500 * MIB, program)) == "refused"


@needs_address_limits
def test_import_without_address_space_says_so() -> None:
    program = """
try:
    import pygrad
except ImportError as error:
    print(error)
"""
    said = python(with_address_space(250 * MIB, program))
    assert said.startswith("pygrad needs 288 MiB of address space")


# ------------------------------------------------------------------ time


def work_for_ever(x: Any) -> None:
    while True:
        x = torch.linalg.matrix_power(x, 9)


@leaves_nothing
def test_limit_of_time_ends_work_in_the_engine() -> None:
    with pytest.raises(torch.LimitExceeded, match=r"^the limit of 0\.01 seconds is exceeded$"):
        with torch.limits(seconds=0.01):
            work_for_ever(torch.eye(64))
    assert torch.ones(3).sum() == 3


@leaves_nothing
def test_limit_of_time_ends_a_backward() -> None:
    x = torch.rand(64, 64, requires_grad=True)
    y = x.sin().sum()
    context = torch.limits(seconds=60)
    with context:
        context._end = time.monotonic() - 1
        with pytest.raises(torch.LimitExceeded):
            y.backward()
    assert x.grad is None
    y.backward()
    assert torch.equal(x.grad, x.detach().cos())


def test_exceeded_limit_raises_until_its_context_ends() -> None:
    x, raised = torch.rand(64, 64), 0
    context = torch.limits(seconds=60)
    with context:
        context._end = time.monotonic() - 1
        for _ in range(3):
            try:
                x @ x
            except torch.LimitExceeded:
                raised += 1
    assert raised == 3
    assert (x @ x).shape == (64, 64)


def test_outer_limit_holds_within_an_inner_one() -> None:
    x, outer = torch.rand(64, 64), torch.limits(seconds=60)
    with outer, torch.limits(seconds=99):
        outer._end = time.monotonic() - 1
        with pytest.raises(torch.LimitExceeded, match="60 seconds"):
            x @ x


def test_limit_of_another_thread_does_not_end_this_one() -> None:
    entered, done = threading.Event(), threading.Event()

    def run_other() -> None:
        context = torch.limits(seconds=60)
        with context:
            context._end = time.monotonic() - 1
            entered.set()
            done.wait()

    thread = threading.Thread(target=run_other)
    thread.start()
    entered.wait()
    try:
        x = torch.rand(64, 64)
        assert (x @ x).shape == (64, 64)
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_limit_of_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds must be above 0"):
        torch.limits(seconds=seconds)

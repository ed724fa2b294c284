"""Devices that are not there: they can be asked for and named, and nothing can be put there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pygrad


def test_the_usual_choice_of_a_device_is_the_cpu() -> None:
    device = pygrad.device("cuda" if pygrad.cuda.is_available() else "cpu")
    assert device == pygrad.device("cpu")
    assert not pygrad.backends.mps.is_available()
    assert pygrad.cuda.device_count() == 0
    pygrad.cuda.manual_seed_all(0)
    pygrad.backends.cudnn.deterministic = True


def test_no_attention_of_cuda_is_offered() -> None:
    cuda, x = pygrad.backends.cuda, pygrad.ones(1, 2, 3, 4)
    arguments = cuda.SDPAParams(x, x, x, None, 0.5, True, False)
    assert (arguments.query is x, arguments.dropout, arguments.is_causal) == (True, 0.5, True)
    assert not cuda.can_use_flash_attention(arguments, True)
    assert not cuda.can_use_efficient_attention(arguments)
    assert not cuda.can_use_cudnn_attention(arguments)


def test_default_device_is_the_cpu() -> None:
    pygrad.set_default_device("cpu")
    pygrad.set_default_device(None)
    assert pygrad.get_default_device() == pygrad.ones(2).device


NO_CUDA = "Torch not compiled with CUDA enabled"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pygrad.ones(2, device="cuda"), AssertionError, NO_CUDA),
        (lambda: pygrad.tensor([1.0], device=pygrad.device("cuda")), AssertionError, NO_CUDA),
        (lambda: pygrad.ones(2).cuda(), AssertionError, NO_CUDA),
        (lambda: pygrad.nn.Linear(2, 2).to("cuda:1"), AssertionError, NO_CUDA),
        (lambda: pygrad.nn.Linear(2, 2).cuda(), AssertionError, NO_CUDA),
        (lambda: pygrad.set_default_device("cuda"), AssertionError, NO_CUDA),
        (pygrad.cuda.synchronize, AssertionError, NO_CUDA),
        (lambda: pygrad.ones(2).to("mps"), RuntimeError, "not linked with support for mps"),
        (lambda: pygrad.ones(2).to(0), RuntimeError, "Cannot access accelerator device"),
        (lambda: pygrad.device("gpu"), RuntimeError, "Expected one of cpu, cuda"),
        (lambda: pygrad.Generator("cuda"), RuntimeError, "Device type CUDA is not supported"),
    ],
)
def test_device_that_is_not_there(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_stream_of_the_cpu_is_chosen_for_a_scope() -> None:
    before, chosen = pygrad.cpu.current_stream(), pygrad.cpu.Stream()
    with pygrad.cpu.stream(chosen):
        assert pygrad.cpu.current_stream() is chosen
        with pygrad.cpu.stream(None):
            assert pygrad.cpu.current_stream() is chosen
    assert pygrad.cpu.current_stream() is before

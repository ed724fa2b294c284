"""Refusals of `torch.library` beside PyTorch's, misuse by misuse."""

from __future__ import annotations

from library_misuses import in_a_process, record

OURS = {
    "custom no ns": "a namespace that is missing is named",
    "custom ns": "a namespace that is missing is named",
    "autograd aten": "a limit: no rules for the autograd of PyTorch's own operators",
    "triton op": "a limit: Triton",
    "wrapped triton": "a limit: Triton",
    "ctx": "it says that there is none, instead of returning None",
    "ctx in meta": "tensors of the device meta know sizes that depend on data",
    "function for a key": "a limit: functions for PyTorch's own operators are for CPU and Meta",
    "function for a whole": "a limit: functions for operators that are made of others",
    "kernel for sparse": "a limit: kernels for CPU and Meta",
    "tag of a write": "a limit: tags that mark arguments",
    "opcheck compiled": "a limit: torch.compile",
    "no pair": "the words of a binding to C++",
    "no list": "the words of a binding to C++",
    "no list in a pair": "the words of a binding to C++",
    "boxed": "the words of a binding to C++",
    "fallback": "the words of an assertion in C++",
}
"""Misuses that pygrad answers otherwise, and why."""


def test_misuses_are_refused_and_taken_as_by_torch() -> None:
    mine, theirs = in_a_process("pygrad"), in_a_process("torch")
    assert mine == record()
    differing = {name for name in theirs if mine[name] != theirs[name]}
    assert differing == set(OURS), {n: (mine[n], theirs[n]) for n in differing ^ set(OURS)}

"""The examples in PyTorch's documentation of autograd print the same here."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import re
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from oracle import torch

import pygrad
import pygrad.torch

MODULES = [
    "torch",
    "torch.autograd",
    "torch.autograd.anomaly_mode",
    "torch.autograd.forward_ad",
    "torch.autograd.function",
    "torch.autograd.functional",
    "torch.autograd.grad_mode",
    "torch.autograd.gradcheck",
    "torch.autograd.graph",
    "torch.autograd.profiler",
    "torch.autograd.variable",
    "torch.nn.modules.module",
    "torch.nn.utils.clip_grad",
    "torch.nn.utils.convert_parameters",
    "torch.utils.checkpoint",
    "torch.utils.hooks",
]
OF_TORCH = "enable_grad inference_mode no_grad set_grad_enabled vmap".split()
DIFFERENT = {
    "torch.nn.modules.module.Module.to": "asks for a GPU",
    "torch.autograd.graph.region_activation_memory_budget": "is about torch.compile",
    "torch.autograd.profiler.record_function": "prints times",
}
TENSOR = "backward detach register_hook register_post_accumulate_grad_hook retain_grad".split()


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
    for name in OF_TORCH if module is torch else names:
        thing = getattr(module, name)
        if callable(thing) and getattr(thing, "__module__", "").startswith("torch"):
            yield f"{module.__name__}.{name}", thing
            for member, method in vars(thing).items() if inspect.isclass(thing) else ():
                if inspect.isfunction(method) and member[0] != "_":
                    yield f"{module.__name__}.{name}.{member}", method


def examples() -> dict[str, list[str]]:
    """The sources of each docstring's examples, by the name of what it documents."""
    found, seen = {}, set()
    things = [pair for name in MODULES for pair in public(importlib.import_module(name))]
    things += [(f"torch.Tensor.{name}", getattr(torch.Tensor, name)) for name in TENSOR]
    for name, thing in things:
        text = inspect.getdoc(thing) or ""
        if text in seen:
            continue
        seen.add(text)
        sources = [e.source for e in doctest.DocTestParser().get_examples(re.sub(r"\t", " ", text))]
        if sources:
            found[name] = sources
    return found


def adapted(source: str) -> str:
    source = re.sub(r"^(\s*)import torch$", r"\1import pygrad.torch as torch", source, flags=re.M)
    return re.sub(r"\b(from|import) torch\b", r"\1 pygrad.torch", source)


def run(sources: list[str], library: Any, adapt: bool) -> list[str]:
    """What the examples print, or the errors that they end in."""
    library.manual_seed(0)
    names = {
        "torch": library,
        "autograd": library.autograd,
        "fwAD": library.autograd.forward_ad,
        "nn": library.nn,
        "Function": library.autograd.Function,
        "inp": library.ones(2, requires_grad=True),
    }
    printed = []
    for source in sources:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(compile(adapted(source) if adapt else source, "example", "single"), names)
            except Exception as error:
                out.write(f"{type(error).__name__}: {error}")
        text = re.sub(r"0x[0-9a-f]+", "0x", out.getvalue())
        builtin = r"<built-in method (\w+) of type object at 0x>"
        text = re.sub(builtin, r"<bound method \1 of torch>", text)
        printed.append(re.sub(r"pygrad(\.torch)?\b", "torch", text))
    printed.append(f"recording: {library.is_grad_enabled()}")
    library.set_grad_enabled(True)
    return printed


EXAMPLES = {name: sources for name, sources in examples().items() if name not in DIFFERENT}


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 20


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_print_the_same(name: str) -> None:
    sources = EXAMPLES[name]
    theirs = run(sources, torch, adapt=False)
    mine = run(sources, pygrad.torch, adapt=True)
    for source, a, b in zip([*sources, "after"], mine, theirs, strict=True):
        assert a == b, source

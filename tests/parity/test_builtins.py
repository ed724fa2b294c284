"""As attributes of a class: PyTorch's builtins do not bind, its functions of Python do."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import reduce
from types import FunctionType
from typing import Any

import pytest
from oracle import both, torch

import pygrad
from pygrad._boundary import overriding

SPACES = ["", "nn.functional", "linalg", "special", "autograd", "autograd.profiler", "_C"]


def space(library: Any, name: str) -> Any:
    return reduce(getattr, filter(None, name.split(".")), library)


def functions(of: str) -> Iterator[str]:
    """Names of what both libraries have there to be called, classes left out."""
    spaces = space(pygrad, of), space(torch, of)
    late = {*getattr(spaces[0], "_LATE", ())} - {"_disabled_torch_dispatch_impl"}  # a method here
    names = {*vars(spaces[0]), *dir(spaces[0]), *getattr(spaces[0], "__all__", ()), *late}
    for name in sorted(names - {"__dir__"}):  # the module's own method in PyTorch
        found = [getattr(each, name, None) for each in spaces]
        if all(callable(each) and not isinstance(each, type) for each in found):
            yield name


def binds(function: Any) -> bool:
    """Whether it is another thing as the attribute of an object."""
    holder = type("Holder", (), {"held": function})
    return holder().held is not function


@pytest.mark.parametrize("of", SPACES)
def test_a_function_binds_where_pytorchs_does(of: str) -> None:
    names = list(functions(of))
    mine = {name for name in names if binds(getattr(space(pygrad, of), name))}
    theirs = {name for name in names if binds(getattr(space(torch, of), name))}
    assert mine == theirs
    assert names


def test_handlers_see_methods_of_python_as_pytorchs() -> None:
    """Methods that ask no handler are left out."""
    asked = set(torch.overrides.get_overridable_functions()[torch.Tensor])
    compared = 0
    for name in sorted({*dir(torch.Tensor)} & {*dir(pygrad.Tensor)}):
        mine, theirs = (inspect.getattr_static(t.Tensor, name) for t in (pygrad, torch))
        if isinstance(mine, FunctionType) and callable(theirs) and theirs in asked:
            assert overriding._public(mine).native != isinstance(theirs, FunctionType), name
            compared += 1
    assert compared > 500


def test_functions_of_a_class() -> None:
    def script(t: Any) -> Any:
        class Model:
            add = t.add
            conv = t.conv2d
            cond = t.linalg.cond
            linear = t.nn.functional.linear
            make = t.tensor
            psi = t.special.psi
            norm = t.norm

            def __len__(self) -> int:
                return 2

        class Other:
            add = Model.add

        model, x = Model(), t.tensor([[1.0, 2.0], [3.0, 5.0]])
        return [
            model.add(x, 2, alpha=3),
            Other().add(x, x),
            model.conv(x[None, None], x[None, None]),
            model.cond(x),
            model.linear(x, x),
            model.make([1, 2], dtype=t.float64),
            model.psi(x),
            Model.norm(x),
            model.norm.__self__ is model,
        ]

    both(script)

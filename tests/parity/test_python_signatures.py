"""No function that PyTorch has in Python takes less here: every call that its signature admits is
admitted by ours.

For each function and method, public or private, that both have, calls are bound to our signature:
all that PyTorch takes in order, all by name, and only what it asks for, in either way.
"""

from __future__ import annotations

import importlib
import inspect
import types
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import pygrad.torch
from pygrad._install import stand_ins

Parameter = inspect.Parameter
IN_ORDER = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
CALLED = {"__init__", "__call__"}
"""The special methods of a class that are compared."""
OTHERWISE = {
    # rows of the table take tensors as a list or one by one, and `out` by its name
    "torch.block_diag": "*tensors",
    "torch.broadcast_tensors": "*tensors",
    "torch.cartesian_prod": "*tensors",
    "torch.chain_matmul": "*matrices",
    "torch.meshgrid": "*tensors",
    "torch.nn.functional.normalize": "out in order",
    # called of the class; a default that stands for none
    "torch.fx.CodeGen._sym_repr": "no self",
    "torch._dynamo.graph_utils.Graph.placeholder": "default_value is inspect's own mark",
}
"""Functions that bind otherwise, and how."""


def is_theirs(value: Any) -> bool:
    return (getattr(value, "__module__", None) or "").partition(".")[0] == "torch"


def plain(value: Any) -> Any:
    """A function without what makes it static or a method of the class."""
    return value.__func__ if isinstance(value, (staticmethod, classmethod)) else value


def methods_of(name: str, theirs: type, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    """The methods of a class that are functions of Python, with ours."""
    for short, method in vars(theirs).items():
        found = inspect.getattr_static(ours, short, None)
        same_kind = isinstance(method, staticmethod) == isinstance(found, staticmethod)
        if not isinstance(plain(method), types.FunctionType) or not callable(plain(found)):
            continue
        if short.startswith("__") and short not in CALLED:
            continue
        yield f"{name}.{short}", plain(method), plain(found) if same_kind else _absent


def _absent() -> None:
    """Stands for a method that is static on one side alone."""


def pairs() -> Iterator[tuple[str, Any, Any]]:
    """Every function of PyTorch's modules that pygrad has too, by the first name that shows it."""
    seen: set[int] = set()
    for module in sorted(stand_ins._blocks()):
        try:
            theirs = importlib.import_module(module)
        except BaseException:  # of another system, or for want of a package
            continue
        ours = importlib.import_module(f"pygrad.{module}")
        for short, value in sorted(vars(theirs).items()):
            if short.startswith("__") or not is_theirs(value) or id(value) in seen:
                continue
            if not isinstance(value, (type, types.FunctionType)):
                continue
            found = getattr(ours, short, None)
            if found is None or stand_ins.is_stand_in(found):
                continue
            seen.add(id(value))
            if not isinstance(value, type):
                yield f"{module}.{short}", value, found
            elif isinstance(found, type):
                yield from methods_of(f"{module}.{short}", value, found)


def signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def calls(theirs: inspect.Signature) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Arguments that a signature admits, each the name of its parameter: in order and by name."""
    parameters = list(theirs.parameters.values())
    needed = [each for each in parameters if each.default is Parameter.empty]
    for some in (parameters, needed):
        order = [each.name for each in some if each.kind in IN_ORDER]
        rest = {each.name: each.name for each in some if each.kind is Parameter.KEYWORD_ONLY}
        extra = ["extra"] * any(each.kind is Parameter.VAR_POSITIONAL for each in some)
        more = {"other": "other"} if any(e.kind is Parameter.VAR_KEYWORD for e in some) else {}
        yield order + extra, rest | more
        by_name = {each.name: each.name for each in some if each.kind in BY_NAME}
        first = [each.name for each in some if each.kind is Parameter.POSITIONAL_ONLY]
        for receiver in ("self", "cls"):
            if receiver in by_name and parameters[0].name == receiver:
                first = [by_name.pop(receiver)]
        yield first, by_name | more


def narrower(theirs: inspect.Signature, ours: inspect.Signature) -> str:
    """A call of PyTorch's that ours refuses or binds to other parameters; empty if none."""
    told = [each for each in theirs.parameters.values() if each.name != "self"]
    if [each.kind for each in told] == [Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD]:
        return ""  # a wrapper that tells nothing
    for order, named in calls(theirs):
        try:
            bound = ours.bind(*order, **named)
        except TypeError as error:
            return f"{order} {named}: {error}"
        for place, value in bound.arguments.items():
            if isinstance(value, str) and value != place and value in ours.parameters:
                return f"{value} is taken for {place}"
    return ""


def test_no_signature_is_narrower() -> None:
    count, found = 0, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, theirs, ours in pairs():
            wanted, got = signature(theirs), signature(ours)
            if wanted is None or got is None:
                continue
            count += 1
            if name not in OTHERWISE and (reason := narrower(wanted, got)):
                found[name] = reason
    assert pygrad.torch.__name__ == "torch"
    assert count > 3000
    if found:
        pytest.fail("\n".join(f"{name}: {reason}" for name, reason in found.items()), False)


def test_what_is_narrower_is_found() -> None:
    def wide(a: Any, b: Any = 1, *, c: Any = 2) -> None: ...
    def short(a: Any, *, c: Any = 2) -> None: ...
    def renamed(a: Any, beta: Any = 1, *, c: Any = 2) -> None: ...
    def turned(b: Any, a: Any = 1, *, c: Any = 2) -> None: ...
    def needy(a: Any, b: Any, *, c: Any = 2) -> None: ...
    def wider(a: Any, b: Any = 1, d: Any = 3, **more: Any) -> None: ...

    wanted = inspect.signature(wide)
    for function in (short, renamed, turned, needy):
        assert narrower(wanted, inspect.signature(function)), function
    for function in (wide, wider):
        assert not narrower(wanted, inspect.signature(function)), function

"""The signatures by which the JavaScript front binds the arguments of layers and optimizers are
PyTorch's.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
import torch
from fronts import signatures


def describe(function: Any) -> list[tuple[str, Any, bool]]:
    """(name, default, whether it cannot stand in order) of each argument but the receiver."""
    kept = (
        each
        for each in inspect.signature(function).parameters.values()
        if each.name != "self" and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    )
    return [(each.name, each.default, each.kind is each.KEYWORD_ONLY) for each in kept]


def ours(function: Any) -> list[tuple[str, Any, bool]]:
    return [
        (
            each.name,
            inspect.Parameter.empty if each.default is None else json.loads(each.default),
            each.keyword_only,
        )
        for each in signatures.signature(function)
    ]


def to_lists(arguments: list[tuple[str, Any, bool]]) -> list[tuple[str, Any, bool]]:
    """Tuples as JSON has them; what cannot stand in order sorted by name."""
    plain = [
        (name, list(default) if isinstance(default, tuple) else default, named)
        for name, default, named in arguments
    ]
    in_order = [each for each in plain if not each[2]]
    return in_order + sorted((each for each in plain if each[2]), key=lambda each: each[0])


@pytest.mark.parametrize(
    "cls",
    [cls for cls in signatures.CLASSES if cls.__name__ != "Parameter"],
    ids=lambda c: c.__name__,
)
def test_constructor_takes_pytorchs_arguments(cls: type) -> None:
    theirs = getattr(torch.nn, cls.__name__, None) or getattr(torch.optim, cls.__name__)
    assert to_lists(ours(cls.__init__)) == to_lists(describe(theirs.__init__))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("owner", "name"),
    [(owner, name) for owner, names in signatures.METHODS.items() for name in names.split()],
    ids=str,
)
def test_method_takes_pytorchs_arguments(owner: type, name: str) -> None:
    theirs = getattr(torch.nn, owner.__name__, None) or getattr(torch.optim, owner.__name__)
    assert to_lists(ours(getattr(owner, name))) == to_lists(describe(getattr(theirs, name)))

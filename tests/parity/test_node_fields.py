"""What every op's node saved, by name: the attributes `_saved_*` beside PyTorch's.

node_fields.txt lists, by node, the names that are missing, too many, or kept in another form (a
tensor that the formula does not need, a size, a text); a name that is not listed must agree.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from helpers import choose, with_grad
from oracle import torch
from samples import Entry, entries, samples
from sampling import Call, Dtype
from test_gradients import inputs

import pygrad


def _known() -> dict[str, set[str]]:
    known: dict[str, set[str]] = defaultdict(set)
    for line in Path(__file__).with_name("node_fields.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            node, *names = line.split()
            known[node] |= {*names}
    return known


KNOWN = _known()


def theirs(entry: Entry) -> Any:
    """PyTorch's function of the same name, or None."""
    if entry.id.startswith("Tensor."):
        return getattr(torch.Tensor, entry.name, None)
    found = torch
    for part in entry.id.split("."):
        found = getattr(found, part, None)
    return found


def torch_arguments(sample: Call) -> tuple[list[Any], dict[str, Any]]:
    made = []
    for array, what in zip(inputs(sample), sample.tensors(), strict=True):
        tensor = torch.from_numpy(array.copy())
        made.append(tensor.requires_grad_(tensor.is_floating_point() and not what.constant))
    rest = iter(made)
    filled = sample.map(lambda _: next(rest))

    def named(value: Any) -> Any:
        return getattr(torch, value.name) if isinstance(value, Dtype) else value

    return [named(v) for v in filled.args], {k: named(v) for k, v in filled.kwargs.items()}


def node_of(result: Any) -> Any:
    """The node of the first tensor of a result that has one."""
    if isinstance(result, (list, tuple)):
        return next(filter(None, map(node_of, result)), None)
    return getattr(result, "grad_fn", None)


def called(function: Any, entry: Entry, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if entry.mutates:
        args = [args[0].clone(), *args[1:]]
    try:
        return node_of(function(*args, **kwargs))
    except pygrad.EngineError:
        raise
    except Exception:
        return None


def fields(node: Any) -> dict[str, Any]:
    return {name[7:]: getattr(node, name, None) for name in dir(node) if name.startswith("_saved_")}


def plain(value: Any) -> Any:
    """A value without its library: tensors by shape, dtype and whether they require grad."""
    if isinstance(value, (pygrad.Tensor, torch.Tensor)):
        return tuple(value.shape), str(value.dtype).rpartition(".")[2], value.requires_grad
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else value


def agree(name: str, mine: Any, other: Any) -> bool:
    """Equal, but that dimensions count from the front here, and "all of them" is spelt out."""
    mine, other = plain(mine), plain(other)
    if mine == other:
        return True
    if name in ("dim", "correction") and other in (None, ()):
        return True
    if isinstance(mine, int) and isinstance(other, int):
        return name.startswith(("dim", "index")) and other < 0 <= mine
    if isinstance(mine, tuple) and isinstance(other, tuple) and name.startswith("dim"):
        return len(mine) == len(other) and any(d < 0 for d in other)
    return False


def disagreements(entry: Entry, sample: Call) -> set[str]:
    """The names that differ, as ``node name``."""
    args, kwargs = choose(sample, with_grad(sample, inputs(sample)))
    mine = called(entry.function, entry, args, kwargs)
    other = called(theirs(entry), entry, *torch_arguments(sample))
    if mine is None or other is None or mine.name() != other.name():
        return set()
    a, b = fields(mine), fields(other)
    names = {n for n in {*a, *b} if n not in a or n not in b or not agree(n, a[n], b[n])}
    return {f"{other.name()} {name}" for name in names}


def compared() -> list[Any]:
    return [e for e in entries() if not e.id.startswith("_C") and theirs(e) and samples(e)]


@pytest.mark.parametrize("entry", compared(), ids=lambda entry: entry.id)
def test_saved_attributes(entry: Entry) -> None:
    found: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in samples(entry)[:6]:
            found |= disagreements(entry, sample)
    assert {f for f in found if f.split()[1] not in KNOWN[f.split()[0]]} == set()

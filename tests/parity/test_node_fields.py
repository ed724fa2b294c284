"""What every node of an op's graph saved: names and values of the attributes `_saved_*` beside
PyTorch's, whichever tensors require grad.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers import with_grad
from oracle import torch
from samples import Entry, entries, samples
from sampling import Call, fill_sample
from test_gradients import inputs

import pygrad


def theirs(entry: Entry) -> Any:
    """PyTorch's function of the same name, or None."""
    if entry.id.startswith("Tensor."):
        return getattr(torch.Tensor, entry.name, None)
    found = torch
    for part in entry.id.split("."):
        found = getattr(found, part, None)
    return found


def torch_arguments(sample: Call, leaves: set[int]) -> tuple[list[Any], dict[str, Any]]:
    made = [torch.from_numpy(array.copy()) for array in inputs(sample)]
    for place in leaves:
        made[place].requires_grad_()
    return fill_sample(sample, made, torch)


def node_of(result: Any) -> Any:
    """The node of the first tensor of a result that has one."""
    if isinstance(result, (list, tuple)):
        return next(filter(None, map(node_of, result)), None)
    return getattr(result, "grad_fn", None)


def call(function: Any, entry: Entry, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if entry.mutates:
        args = [args[0].clone(), *args[1:]]
    pygrad.manual_seed(1)
    torch.manual_seed(1)
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


def close(name: str, mine: Any, other: Any) -> bool:
    """Whether tensors have the same elements; the signs of eigenvectors and of singular vectors are
    anybody's choice.
    """
    if not isinstance(other, torch.Tensor) or tuple(mine.shape) != tuple(other.shape):
        return True
    a, b = mine.detach().numpy(), other.detach().numpy()
    if name in ("eigenvectors", "U", "Vh"):
        a, b = abs(a), abs(b)
    return a.dtype != b.dtype or np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)


def agree(name: str, mine: Any, other: Any) -> bool:
    """Equal, but that dimensions count from the front here, and "all of them" is spelt out."""
    if not close(name, mine, other):
        return False
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


def together(mine: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """The nodes of two graphs that stand in the same place, as far as both have the same names."""
    waiting = [(mine, other)]
    while waiting:
        a, b = waiting.pop()
        if a is None or b is None or a.name() != b.name():
            continue
        yield a, b
        if len(a.next_functions) == len(b.next_functions):
            below = zip(a.next_functions, b.next_functions, strict=True)
            waiting += [(x[0], y[0]) for x, y in below]


def leaves(sample: Call) -> list[set[int]]:
    """Which tensors of a sample require grad: all that can, then each by itself."""
    able = {i for i, tensor in enumerate(with_grad(sample, inputs(sample))) if tensor.requires_grad}
    return [able, *({place} for place in able if len(able) > 1)]


def disagreements(entry: Entry, sample: Call, chosen: set[int]) -> set[str]:
    """The names that differ, as ``node name``."""
    tensors = with_grad(sample, inputs(sample))
    for place, tensor in enumerate(tensors):
        tensor.requires_grad_(place in chosen)
    mine = call(entry.function, entry, *fill_sample(sample, tensors))
    other = call(theirs(entry), entry, *torch_arguments(sample, chosen))
    found = set()
    for x, y in together(mine, other):
        a, b = fields(x), fields(y)
        if "noise" in b and not b["training"]:
            b["noise"] = a["noise"]  # PyTorch's is memory that nobody wrote to
        names = {n for n in {*a, *b} if n not in a or n not in b or not agree(n, a[n], b[n])}
        found |= {f"{y.name()} {name}: {a.get(name)} for {b.get(name)}" for name in names}
    return found


APART = {
    "linalg.cond": "PyTorch writes over what a node of it has saved",
    "svd_lowrank": "of free signs, as are products with its parts",
    "pca_lowrank": "svd_lowrank",
}


def compared_entries() -> list[Any]:
    found = [e for e in entries() if not e.id.startswith("_C") and theirs(e) and samples(e)]
    return [e for e in found if e.id not in APART]


@pytest.mark.parametrize("entry", compared_entries(), ids=lambda entry: entry.id)
def test_saved_attributes(entry: Entry) -> None:
    found: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in samples(entry)[:6]:
            for chosen in leaves(sample):
                found |= disagreements(entry, sample, chosen)
    assert found == set()


KINDS: dict[str, Any] = {
    "threshold": lambda t, x, s: t.threshold(x, s, 0),
    "threshold_": lambda t, x, s: t.threshold_(x.clone(), s, 0),
    "addmm": lambda t, x, s: t.addmm(x, x, x, beta=s, alpha=s),
    "baddbmm": lambda t, x, s: t.baddbmm(x[None], x[None], x[None], beta=s, alpha=s),
    "index_add": lambda t, x, s: t.index_add(x, 0, t.tensor([0]), x[:1], alpha=s),
    "norm": lambda t, x, s: t.linalg.vector_norm(x, s),
    "dist": lambda t, x, s: t.dist(x, x * 2, s),
    "var": lambda t, x, s: t.var(x, correction=s),
    "leaky_relu": lambda t, x, s: t.nn.functional.leaky_relu(x, s),
    "softshrink": lambda t, x, s: t.nn.functional.softshrink(x, s),
    "add": lambda t, x, s: t.add(x, x, alpha=s),
    "pow": lambda t, x, s: x**s,
}


@pytest.mark.parametrize("name", KINDS)
def test_numbers_are_shown_as_what_they_were(name: str) -> None:
    def kinds(t: Any, number: Any) -> Any:
        x = t.tensor([[0.5, 1.5], [2.5, 0.3]], requires_grad=True)
        try:
            node = KINDS[name](t, x, number(t)).grad_fn
        except (RuntimeError, TypeError):
            return None
        found = fields(node)
        return {k: (type(v), v) for k, v in found.items() if isinstance(v, (int, float, complex))}

    numbers: list[Any] = [lambda _, n=n: n for n in (1, 2, 1.0, 2.5, True)]
    if name not in ("norm", "dist", "pow", "add"):  # which refuse these, or have them as tensors
        numbers += [lambda _: 1 + 0j, lambda t: t.tensor(1.0), lambda t: t.tensor(1 + 0j)]
    for number in numbers:
        assert kinds(pygrad, number) == kinds(torch, number)
    assert any(kinds(pygrad, number) for number in numbers)

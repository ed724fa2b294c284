"""Tangents at special points, op by op beside PyTorch: its own, or those of its gradient where the
two do not agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import UNINITIALISED, sweep_entries
from oracle import array, function, is_tensor, leaves, outcome, torch
from samples import Entry
from sampling import Array, Call, fill_sample
from special_points import POINTS, sample_at_point

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")

SINGULAR = "no derivative: what is nothing but rounding differs"
OTHERWISE: dict[tuple[str, str], str] = {
    **{(op, p): "PyTorch's poles are finite" for op in ("digamma", "special.psi") for p in POINTS},
    ("special.i1e", "endless"): "of NaN it is NaN",
    ("copysign", "endless"): "the slope at infinity is 1, not NaN",
    ("vander", "endless"): "no power of an infinite number is NaN",
    ("linalg.vander", "endless"): "no power of an infinite number is NaN",
    ("matrix_exp", "endless"): "of one element it is exp",
    ("linalg.matrix_exp", "endless"): "of one element it is exp",
    ("renorm", "endless"): "a norm that is NaN is no bound in PyTorch's tangent",
    ("nn.functional.fractional_max_pool2d", "endless"): "PyTorch takes the last NaN",
    ("nn.functional.fractional_max_pool3d", "endless"): "PyTorch takes the last NaN",
    ("median", "empty"): "PyTorch has zero where the value is NaN",
    ("nanmedian", "empty"): "PyTorch has zero where the value is NaN",
    ("nn.functional.cross_entropy", "empty"): "PyTorch has zero where the value is NaN",
    **{
        (op, p): SINGULAR
        for op in ("qr", "linalg.qr", "svd", "linalg.svd", "nuclear_norm")
        for p in ("zeros", "equal", "ties", "bounds")
    },
    ("orgqr", "equal"): "PyTorch's is NaN",
    ("linalg.householder_product", "equal"): "PyTorch's is NaN",
}
"""Ops and points at which the tangents are neither those of PyTorch nor of its gradients."""


def is_compared(entry: Entry) -> bool:
    return function(entry, torch) is not None and entry.name not in UNINITIALISED


def dense(tangent: Any) -> Any:
    """A tangent with memory: PyTorch has zeros without."""
    without = isinstance(tangent, torch.Tensor) and tangent._is_zerotensor()
    return torch.zeros_like(tangent) if without else tangent


def way_of(k: int, shape: tuple[int, ...], definite: bool) -> Array:
    way = np.asarray(np.random.default_rng(k).uniform(-1, 1, shape))
    return way + np.swapaxes(way, -1, -2) if definite else way


def call(entry: Entry, library: Any, sample: Call, made: list[Any]) -> list[Any]:
    args, kwargs = fill_sample(sample, made, library)
    library.manual_seed(0)
    if entry.mutates:
        args = [args[0].clone(), *args[1:]]
    return [t for t in leaves(function(entry, library)(*args, **kwargs)) if is_tensor(t)]


def make_tensors(library: Any, sample: Call, arrays: list[Array], free: Any) -> list[Any]:
    """The tensors of a sample; `free` makes those that have a tangent."""
    made = [library.from_numpy(a.copy()) for a in arrays]
    for k, (t, what) in enumerate(zip(made, sample.tensors(), strict=True)):
        if t.is_floating_point() and not what.constant:
            way = library.from_numpy(way_of(k, arrays[k].shape, what.kind == "definite"))
            made[k] = free(t, way)
    return made


def tangents(entry: Entry, library: Any, sample: Call, arrays: list[Array]) -> list[Any]:
    """The value and the tangent of each output."""
    fw = library.autograd.forward_ad
    with fw.dual_level():
        made = make_tensors(library, sample, arrays, fw.make_dual)
        pairs = [fw.unpack_dual(t) for t in call(entry, library, sample, made)]
        return [[primal, dense(tangent)] for primal, tangent in pairs]


def values_of(entry: Entry, sample: Call, arrays: list[Array]) -> list[Any]:
    made = make_tensors(pygrad, sample, arrays, lambda t, way: t)
    return call(entry, pygrad, sample, made)


def tangent_by_gradient(entry: Entry, sample: Call, arrays: list[Array]) -> Any:
    """The sum of the outputs' tangents, as PyTorch's gradient has it."""
    ways = []

    def free(t: Any, way: Any) -> Any:
        ways.append(way)
        return t.requires_grad_()

    made = make_tensors(torch, sample, arrays, free)
    total = sum(torch.real(t).sum() for t in call(entry, torch, sample, made) if t.requires_grad)
    wanted = [t for t in made if t.requires_grad]
    found = torch.autograd.grad(total, wanted, materialize_grads=True)
    return sum((g * way).sum() for g, way in zip(found, ways, strict=True)).item()


def is_same(mine: Any, theirs: Any) -> bool:
    if mine is None or theirs is None:
        other = theirs if mine is None else mine
        return other is None or not array(other).any()
    a, b = array(mine), array(theirs)
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-8, equal_nan=True)


@pytest.mark.parametrize("point", POINTS)
@sweep_entries(is_compared)
def test_tangents(entry: Entry, sample: Call, point: str) -> None:
    found = sample_at_point(sample, point)
    if found is None or (entry.id, point) in OTHERWISE:
        pytest.skip("no such point")
    theirs = outcome(lambda: tangents(entry, torch, *found))
    mine = outcome(lambda: tangents(entry, pygrad, *found))
    if theirs.error:
        pytest.skip("PyTorch has none")
    if mine.error:  # without tangents too
        assert outcome(lambda: values_of(entry, *found)).error == mine.error, mine.message
        pytest.skip("not of such sizes")
    values = zip(mine.values[::2], theirs.values[::2], strict=True)
    if not all(is_same(a, b) for a, b in values):
        pytest.skip("another value")
    pairs = list(zip(mine.values[1::2], theirs.values[1::2], strict=True))
    if all(is_same(a, b) for a, b in pairs):
        return
    total = sum(float(array(a).real.sum()) for a, _ in pairs if a is not None)
    by_gradient = outcome(lambda: tangent_by_gradient(entry, *found))
    agrees = not by_gradient.error and np.isclose(total, by_gradient.values[0], equal_nan=True)
    assert agrees, f"{[[array(x) for x in p if x is not None] for p in pairs]} {by_gradient}"

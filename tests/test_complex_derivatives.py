"""Derivatives of complex functions, over every op of the table that takes complex numbers: reverse
and forward mode, first and second order, against central differences, at points of all quadrants,
on the axes and on both sides of each cut.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import PROPER_ERRORS, floating, run, sweep_entries
from samples import Entry, samples
from sampling import RANGES, Array, Call, fill_sample, numbers
from test_gradients import STEP, contract, differentiable

import pygrad
from pygrad.autograd import forward_ad as fw

pytestmark = pytest.mark.filterwarnings("ignore")

AT = [*(complex(x, y) for x in (2, -2, 0.4, -0.4, 1.2, -1.2) for y in (0.0, -0.0))]
AT += [complex(z.imag, z.real) for z in AT]
"""Points on the axes, which are cuts of the inverse functions: the sign of a zero says on which
side of the cut a point lies.
"""

OTHERWISE = {
    "svd": "the phase of singular vectors is anybody's choice",
    "linalg.svd": "the phase of singular vectors is anybody's choice",
    "svd_lowrank": "the phase of singular vectors is anybody's choice",
    "pca_lowrank": "the phase of singular vectors is anybody's choice",
    "masked.median": "PyTorch's takes the real parts, in float32",
}


EVERY = bool(os.environ.get("PYGRAD_EVERY_POINT"))
"""Whether all samples of an op are tried, or one."""


def everywhere(what: Any, salt: int) -> Array:
    """Numbers of all four quadrants, which lie no further out than the sample's."""
    low, high = RANGES[what.kind]
    size, angle = numbers(what, "float64", salt), numbers(what, "float64", salt + 50)
    return np.asarray(size * np.exp(1j * np.pi * (angle - low) / (high - low)))


def on_the_axes(what: Any, salt: int) -> Array:
    """No two of them of one size: that is a tie to some ops."""
    made = np.random.default_rng(salt).choice(AT, int(np.prod(what.shape)))
    made.real *= 1 + 0.01 * np.arange(made.size) / max(made.size, 1)
    made.imag *= 1 + 0.01 * np.arange(made.size) / max(made.size, 1)
    return np.asarray(made.reshape(what.shape))


def ways(z: Array) -> Array:
    """A direction for each point, along the axis that it lies on."""
    rng = np.random.default_rng(z.size)
    free = rng.uniform(-1, 1, z.shape) + 1j * rng.uniform(-1, 1, z.shape)
    return np.asarray(np.where(z.imag == 0, free.real, np.where(z.real == 0, 1j * free.imag, free)))


def move(z: Array, way: Array, step: float) -> Array:
    """Moves points by parts, so that a zero keeps its sign."""
    made = np.empty_like(z)
    made.real = np.where(way.real == 0, z.real, z.real + step * way.real)
    made.imag = np.where(way.imag == 0, z.imag, z.imag + step * way.imag)
    return made


Points = Callable[[Any, int], Array]


class Function:
    """An op as a function of those of its arguments that are made complex."""

    def __init__(self, entry: Entry, sample: Call, points: Points) -> None:
        self.entry, self.sample, kinds = entry, sample, sample.tensors()
        self.free = [k for k, w in enumerate(kinds) if made_complex(w)]
        self.rest = [numbers(w, "float64", salt) for salt, w in enumerate(kinds, 1)]
        self.at = [points(kinds[k], k + 1) for k in self.free]
        self.ways = [ways(z) for z in self.at]
        self.others = [np.asarray(np.conj(1 + way) * 0.7) for way in self.ways]

    def __call__(self, inputs: list[Any]) -> list[Any]:
        made = [pygrad.from_numpy(a.copy()) for a in self.rest]
        for k, z in zip(self.free, inputs, strict=True):
            made[k] = z
        found = floating(run(self.entry, *fill_sample(self.sample, made)))
        return [y for y in found if y.requires_grad]

    def leaves(self, step: float = 0) -> list[Any]:
        arrays = [move(z, way, step) for z, way in zip(self.at, self.ways, strict=True)]
        return [pygrad.from_numpy(z).requires_grad_() for z in arrays]

    def value(self, step: float) -> float:
        return float(contract(self(self.leaves(step)), 1).item())

    def gradient(self, inputs: list[Any], create_graph: bool = False) -> list[Any]:
        total = contract(self(inputs), 1)
        found = pygrad.autograd.grad(
            total, inputs, create_graph=create_graph, materialize_grads=True
        )
        return list(found)

    def gradient_along(self, step: float) -> float:
        return sum_along(self.gradient(self.leaves(step)), self.others)

    def slope(self, value: Callable[[float], float]) -> float:
        return (value(STEP) - value(-STEP)) / (2 * STEP)

    def forward(self, value: Callable[[list[Any]], Any]) -> Any:
        """The tangent of a value, which may be none."""
        with fw.dual_level():
            tangents = map(pygrad.from_numpy, self.ways)
            inputs = [fw.make_dual(*p) for p in zip(self.leaves(), tangents, strict=True)]
            tangent = fw.unpack_dual(value(inputs)).tangent
            return 0.0 if tangent is None else tangent.item()


def made_complex(what: Any) -> bool:
    return what.kind in RANGES and what.kind != "parts" and not (what.dtype or what.constant)


def inner(g: Any, way: Any) -> Any:
    return (pygrad.view_as_real(g.resolve_conj()) * pygrad.view_as_real(way)).sum()


def sum_along(gradients: list[Any], ways: list[Array]) -> Any:
    pairs = zip(gradients, map(pygrad.from_numpy, ways), strict=True)
    return sum(inner(g, way).item() for g, way in pairs)


def second_reverse(f: Function) -> float:
    inputs = f.leaves()
    pairs = zip(f.gradient(inputs, True), map(pygrad.from_numpy, f.others), strict=True)
    total = functools.reduce(lambda a, b: a + b, (inner(g, way) for g, way in pairs))
    if not total.requires_grad:
        return 0.0
    found = pygrad.autograd.grad(total, inputs, materialize_grads=True)
    return float(sum_along(list(found), f.ways))


def second_forward(f: Function) -> Any:
    def value(inputs: list[Any]) -> Any:
        pairs = zip(f.gradient(inputs, True), map(pygrad.from_numpy, f.others), strict=True)
        return functools.reduce(lambda a, b: a + b, (inner(g, way) for g, way in pairs))

    return f.forward(value)


def takes_complex(f: Function) -> bool:
    if not f.free:
        return False
    try:
        return bool(f(f.leaves()))
    except PROPER_ERRORS:
        return False


@pytest.mark.parametrize("points", [everywhere, on_the_axes])
@sweep_entries(lambda e: differentiable(e) and e.id not in OTHERWISE and not e.mutates)
def test_derivatives(entry: Entry, sample: Call, points: Points) -> None:
    if not (EVERY or sample is samples(entry)[0]):
        pytest.skip("of make points")
    f = Function(entry, sample, points)
    if not takes_complex(f):
        pytest.skip("of real numbers")
    slope, first = f.slope(f.value), f.gradient(f.leaves())
    np.testing.assert_allclose(sum_along(first, f.ways), slope, rtol=1e-5, atol=1e-6)
    mine = f.forward(lambda z: contract(f(z), 1))
    np.testing.assert_allclose(mine, sum_along(first, f.ways), rtol=1e-8, atol=1e-10)
    slope, second = f.slope(f.gradient_along), second_reverse(f)
    np.testing.assert_allclose(second, slope, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(second_forward(f), second, rtol=1e-8, atol=1e-9)
